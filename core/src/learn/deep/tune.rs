//! Fits all layers of a network together, on the weights that it has: Adam on the support, in
//! memory for it.
//!
//! Besides 16 bytes a nonzero (gradient, two moments, best values) nothing is held but the
//! activations of one row. A step is measured in the size of its layer's weights, so the scale of
//! the inputs, and how it is split over the layers, changes nothing.

use super::{Head, MAX_LAYERS, Stack, sign};
use crate::base::budget::{self, Workspace};
use crate::base::error::{self, Error, Result};
use crate::base::math::{self, Sum, sqrt};
use crate::base::rng::batches;
use crate::data::samples::Samples;
use crate::learn::loss::Labels;
use crate::operator::sensing::head_mut;
use core::iter::repeat_n;
use core::ops::ControlFlow;

/// Decay of the first moment.
const BETA1: f32 = 0.9;
/// Decay of the second moment.
const BETA2: f32 = 0.999;
/// Keeps a step finite where the second moment is 0.
const EPSILON: f32 = 1e-30;
/// The longest step in units of the rate: what the two decays allow for.
const LONGEST: f32 = 4.0;

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
}

/// Words of the memory of [`run`], for so many nonzeros, activations ([`Stack::activations`]) and
/// outputs.
#[must_use]
pub const fn words(nnz: usize, activations: usize, outputs: usize) -> usize {
    nnz.saturating_mul(4).saturating_add(activations.saturating_mul(2)).saturating_add(outputs)
}

pub(super) struct Memory<'m> {
    pub(super) gradient: &'m mut [f32],
    mean: &'m mut [f32],
    square: &'m mut [f32],
    best: &'m mut [f32],
    acts: &'m mut [f32],
    deltas: &'m mut [f32],
    pub(super) out: &'m mut [f32],
}

impl<'m> Memory<'m> {
    pub(super) fn new(memory: &'m mut [u32], stack: &Stack<'_>) -> Result<Self> {
        let (s, acts, c) = (stack.nnz(), stack.activations(), stack.outputs());
        budget::enough(words(s, acts, c), memory.len())?;
        let mut space = Workspace::new(memory);
        Ok(Self {
            gradient: space.floats(s)?,
            mean: space.floats(s)?,
            square: space.floats(s)?,
            best: space.floats(s)?,
            acts: space.floats(acts)?,
            deltas: space.floats(acts)?,
            out: space.floats(c)?,
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
    mut observe: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Info, X::Source> {
    let n = rows.samples();
    params.check(n).map_err(Error::widen)?;
    error::length("inputs of the rows", rows.inputs(), stack.inputs())?;
    error::range("layers before the end", usize::from(stack.head() != Head::Open), 1, 1)?;
    labels.check(n).map_err(Error::widen)?;
    error::length("outputs of the network", stack.outputs(), labels.outputs(n))?;
    let mut memory = Memory::new(memory, stack).map_err(Error::widen)?;
    let before = loss(rows, labels, stack, &mut memory)?;
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
    let mut info = Info { before, loss: before, epochs: 0, stopped: false };
    let mut step = 0_u32;
    while info.epochs < params.epochs && !info.stopped {
        for batch in batches(params.seed, info.epochs, n, batch) {
            memory.gradient.fill(0.0);
            let count = batch.len() as f32;
            for k in batch {
                residual(rows, k, labels, stack, &mut memory)?;
                backwards(stack, &mut memory, |sum, g| *sum += g);
            }
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
        let now = if is_finite { loss(rows, labels, stack, &mut memory)? } else { f32::INFINITY };
        if now < info.loss {
            info.loss = now;
            memory.best.copy_from_slice(stack.values());
        } else if !now.is_finite() {
            // Steps that left the range of floats lead nowhere.
            info.stopped = true;
        }
        let progress =
            Progress { epoch: info.epochs, epochs: params.epochs, loss: now, best: info.loss };
        info.stopped |= observe(&progress).is_break();
    }
    stack.values_mut().copy_from_slice(memory.best);
    Ok(info)
}

/// The residual of row `k` in `out`, and its loss; activations stay.
pub(super) fn residual<X: Samples>(
    rows: &mut X,
    k: usize,
    labels: Labels<'_>,
    stack: &Stack<'_>,
    memory: &mut Memory<'_>,
) -> Result<f32, X::Source> {
    rows.row(k, head_mut(memory.acts, stack.inputs())?)?;
    stack.activate(memory.acts);
    stack.output(memory.acts, memory.out);
    let c = memory.out.len();
    labels.residual(k..k + 1, c, memory.out).map_err(Error::widen)
}

/// Mean loss of all rows.
fn loss<X: Samples>(
    rows: &mut X,
    labels: Labels<'_>,
    stack: &Stack<'_>,
    memory: &mut Memory<'_>,
) -> Result<f32, X::Source> {
    let n = rows.samples();
    let mut sum = Sum::default();
    for k in 0..n {
        sum.add(residual(rows, k, labels, stack, memory)?);
    }
    let terms = match labels {
        Labels::Values(values) => values.len(),
        Labels::Classes(..) => n,
    };
    Ok(sum.value() / terms as f32)
}

/// The derivative by every weight of the outputs' product with `out`, for the row that the
/// activations are of, given to `add` with that weight's place in `gradient`.
pub(super) fn backwards(stack: &Stack<'_>, memory: &mut Memory<'_>, add: impl Fn(&mut f32, f32)) {
    let Memory { gradient, acts, deltas, out, .. } = memory;
    deltas.fill(0.0);
    let mut first = acts.len() - stack.width();
    let above = deltas.get_mut(first..).unwrap_or_default();
    match stack.head() {
        Head::Open => {}
        Head::Sum(signs) => {
            let r = out.first().copied().unwrap_or(0.0);
            above.iter_mut().enumerate().for_each(|(i, delta)| *delta = sign(signs, i) * r);
        }
        Head::Weights(_) => {
            let own = stack.layers.len().saturating_sub(1);
            let mut gradient = gradient.get_mut(stack.range(own)).unwrap_or_default().iter_mut();
            for block in stack.layer(own).blocks() {
                let i = block.neuron();
                let a = acts.get(first + i).copied().unwrap_or(0.0);
                let mut delta = 0.0;
                for ((k, v), g) in block.entries().zip(&mut gradient) {
                    let r = out.get(k).copied().unwrap_or(0.0);
                    add(g, a * r);
                    delta += v * r;
                }
                above.get_mut(i).into_iter().for_each(|above| *above = delta);
            }
        }
    }
    for (l, layer) in stack.hidden().iter().enumerate().rev() {
        let before = first.saturating_sub(layer.width);
        let (below, own) = deltas.split_at_mut(first);
        let below = below.get_mut(before..).unwrap_or_default();
        let row = acts.get(before..first).unwrap_or(&[]);
        let mut gradient = gradient.get_mut(stack.range(l)).unwrap_or_default().iter_mut();
        for block in stack.layer(l).blocks() {
            let i = block.neuron();
            let is_open = acts.get(first + i).is_some_and(|a| *a > 0.0);
            let delta = own.get(i).copied().filter(|_| is_open).unwrap_or(0.0);
            for ((j, w), g) in block.entries().zip(&mut gradient) {
                add(g, delta * row.get(j).copied().unwrap_or(0.0));
                if let Some(below) = below.get_mut(j) {
                    *below += delta * w;
                }
            }
        }
        first = before;
    }
}

/// Adam's two moments of a weight after some steps: what is left of their start at 0.
///
/// ```
/// use tamis::learn::deep::tune::Decay;
/// let (mut decay, mut w, mut mean, mut square) = (Decay::START, 1.0, 0.0, 0.0);
/// decay.step();
/// decay.update(&mut w, 5.0, &mut mean, &mut square, 0.25);
/// assert!((w - 1.25_f32).abs() < 1e-6); // the first step is one rate long, whatever the gradient's size
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decay {
    first: f32,
    second: f32,
}

impl Decay {
    /// Before the first step.
    pub const START: Self = Self { first: 1.0, second: 1.0 };

    /// One more step, whose weights are updated behind this.
    pub fn step(&mut self) {
        (self.first, self.second) = (self.first * BETA1, self.second * BETA2);
    }

    /// Moves a weight along `gradient`, the negative derivative of the loss, by about `rate`.
    #[inline]
    pub fn update(
        &self,
        weight: &mut f32,
        gradient: f32,
        mean: &mut f32,
        square: &mut f32,
        rate: f32,
    ) {
        *mean = BETA1 * *mean + (1.0 - BETA1) * gradient;
        *square = BETA2 * *square + (1.0 - BETA2) * gradient * gradient;
        let step = (*mean / (1.0 - self.first)) / (sqrt(*square / (1.0 - self.second)) + EPSILON);
        // Squares below the range of floats count as 0.
        *weight += rate * step.clamp(-LONGEST, LONGEST);
    }
}
