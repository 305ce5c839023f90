//! Fits all layers of a network together, on the weights that it has: Adam on the support, in
//! memory for it.
//!
//! Besides 16 bytes a nonzero (gradient, two moments, best values) nothing is held but the
//! activations of one row. A step is measured in the size of its layer's weights, so the scale of
//! the inputs, and how it is split over the layers, changes nothing.

use super::backprop::{self, Backprop, Batch, RowByRow};
use super::{MAX_LAYERS, Stack};
use crate::base::budget::{self, Workspace};
use crate::base::error::{self, Error, Result};
use crate::base::math::{self, sqrt};
use crate::base::rng::batches;
use crate::data::samples::Samples;
use crate::learn::loss::Labels;
use crate::learn::optimiser::Decay;
use core::iter::repeat_n;
use core::ops::ControlFlow;

/// How to fit.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Params {
    /// Passes over all batches.
    pub epochs: u32,
    /// Rows of a batch; more than there are count as all.
    pub batch: usize,
    /// The first step of a weight, in parts of the root mean square of its layer's weights; it
    /// falls to 0 along a cosine.
    pub rate: f32,
    /// Order of the batches.
    pub seed: u64,
}

impl Params {
    /// Twenty epochs of batches of 256 rows.
    pub const DEFAULT: Self = Self { epochs: 20, batch: 256, rate: 0.02, seed: 0 };

    fn check(&self, rows: usize) -> Result<()> {
        error::range("rows", rows, 1, u32::MAX as usize)?;
        error::range("rows of a batch", self.batch, 1, usize::MAX)?;
        error::finite("rate", &[self.rate])
    }
}

/// Where a run stands, after an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// Epochs done.
    pub epoch: u32,
    /// Epochs planned.
    pub epochs: u32,
    /// Loss of the weights now, on all rows, see [`Labels`].
    pub loss: f32,
    /// The least so far.
    pub best: f32,
}

impl Progress {
    /// The same at another epoch of so many: of a run that this is a part of.
    #[must_use]
    pub const fn of(self, epoch: u32, epochs: u32) -> Self {
        Self { epoch, epochs, ..self }
    }
}

/// What a run did.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Info {
    /// Loss before: mean squared error over rows and outputs, or mean cross-entropy over rows.
    pub before: f32,
    /// Loss of the result, which is not above it.
    pub loss: f32,
    /// Epochs done.
    pub epochs: u32,
    /// Whether the observer ended the run.
    pub stopped: bool,
    /// Whether steps left the range of floats, which ended it, too.
    pub diverged: bool,
}

/// Words of the memory of [`run`], for so many nonzeros, activations ([`Stack::activations`]) and
/// outputs.
#[must_use]
pub const fn words(nnz: usize, activations: usize, outputs: usize) -> usize {
    own_words(nnz).saturating_add(backprop::words(activations, outputs))
}

/// Words of the memory of [`run_with`], for so many nonzeros.
#[must_use]
pub const fn own_words(nnz: usize) -> usize {
    nnz.saturating_mul(4)
}

struct Memory<'m> {
    gradient: &'m mut [f32],
    mean: &'m mut [f32],
    square: &'m mut [f32],
    best: &'m mut [f32],
}

impl<'m> Memory<'m> {
    fn new(memory: &'m mut [u32], nnz: usize) -> Result<Self> {
        budget::enough(own_words(nnz), memory.len())?;
        let mut space = Workspace::new(memory);
        Ok(Self {
            gradient: space.floats(nnz)?,
            mean: space.floats(nnz)?,
            square: space.floats(nnz)?,
            best: space.floats(nnz)?,
        })
    }
}

/// Fits the weights of a network that has ended, on its support; `observe` is called after each
/// epoch. [`super::shrink::run`] has an example.
///
/// `memory` holds at least [`words`]. What it held before does not matter.
///
/// # Errors
/// [`Error::Range`] for settings out of bounds or a network without an end, [`Error::Length`] for
/// labels or rows that do not fit, [`Error::NotFinite`] for labels or a rate that are no numbers,
/// [`Error::Budget`] with the bytes needed and given, [`Error::Diverged`] where the network as it
/// came has no finite loss, [`Error::Source`] if reading the rows fails; the weights are then those
/// of some step.
pub fn run<X: Samples>(
    rows: &mut X,
    labels: Labels<'_>,
    stack: &mut Stack<'_>,
    params: &Params,
    memory: &mut [u32],
    observe: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Info, X::Source> {
    let (nnz, activations, outputs) = (stack.nnz(), stack.activations(), stack.outputs());
    budget::enough(words(nnz, activations, outputs), memory.len()).map_err(Error::widen)?;
    let (own, rest) = memory.split_at_mut(own_words(nnz));
    let mut rows = RowByRow::new(rows, labels, stack, rest).map_err(Error::widen)?;
    run_with(&mut rows, stack, params, own, observe)
}

/// The same on anything that computes losses and gradients. `memory` holds at least
/// [`own_words`].
///
/// # Errors
/// As [`run`], and those of [`Backprop`].
pub fn run_with<B: Backprop>(
    backprop: &mut B,
    stack: &mut Stack<'_>,
    params: &Params,
    memory: &mut [u32],
    mut observe: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Info, B::Source> {
    let n = backprop.samples();
    params.check(n).map_err(Error::widen)?;
    backprop.check(stack)?;
    let memory = Memory::new(memory, stack.nnz()).map_err(Error::widen)?;
    let before = backprop.loss(stack, &Batch::all(n))?;
    if !before.is_finite() {
        return Err(Error::Diverged { step: 0 });
    }
    memory.mean.fill(0.0);
    memory.square.fill(0.0);
    memory.best.copy_from_slice(stack.values());
    let batch = params.batch.min(n);
    let steps = params.epochs.saturating_mul(n.div_ceil(batch) as u32).max(1);
    let size = |w: &[f32]| sqrt(math::norm2(w) / w.len().max(1) as f32);
    // Of each layer at the start.
    let sizes: heapless::Vec<(usize, f32), MAX_LAYERS> =
        stack.layers().map(|w| (w.nnz(), size(w.value()))).collect();
    let mut decay = Decay::START;
    let mut info = Info { before, loss: before, epochs: 0, stopped: false, diverged: false };
    let mut step = 0_u32;
    while info.epochs < params.epochs && !info.stopped && !info.diverged {
        for positions in batches(params.seed, info.epochs, n, batch) {
            let count = positions.len() as f32;
            let batch = Batch { positions, order: None };
            backprop.gradient(stack, &batch, memory.gradient)?;
            let progress = step as f32 / steps as f32;
            let (_, cosine) = math::sin_cos(progress * core::f32::consts::PI);
            let rate = params.rate * 0.5 * (1.0 + cosine);
            let rates = sizes.iter().flat_map(|&(nnz, size)| repeat_n(rate * size, nnz));
            let moments = memory.mean.iter_mut().zip(&mut *memory.square);
            let all = stack.values_mut().iter_mut().zip(&*memory.gradient).zip(moments).zip(rates);
            decay.step();
            for (((w, g), (mean, square)), rate) in all {
                decay.update(w, g / count, mean, square, rate);
            }
            step = step.saturating_add(1);
        }
        info.epochs += 1;
        // Activations hide weights that are no numbers: a neuron of NaN gives 0.
        let is_finite = stack.values().iter().all(|weight| weight.is_finite());
        let now = if is_finite { backprop.loss(stack, &Batch::all(n))? } else { f32::INFINITY };
        if now < info.loss {
            info.loss = now;
            memory.best.copy_from_slice(stack.values());
        } else if !now.is_finite() {
            // Steps that left the range of floats lead nowhere.
            info.diverged = true;
        }
        let progress =
            Progress { epoch: info.epochs, epochs: params.epochs, loss: now, best: info.loss };
        info.stopped = observe(&progress).is_break();
    }
    stack.values_mut().copy_from_slice(memory.best);
    Ok(info)
}
