//! Training of the weights of a fixed mask: batches of rows in random order, SGD with momentum or
//! Adam, a rate that falls in steps.
//!
//! The mask is the support of the network, which does not change: weights, gradient and moments are
//! vectors on it, 16 bytes a weight with SGD and 20 with Adam, indices included.
//!
//! ```text
//! each step    g = slope / (rows of the batch × terms of a row) Σ_rows residual · ∂ outputs / ∂ w  -  decay w
//! SGD          b <- momentum b + g,                       w <- w + rate b
//! Adam         m <- 0.9 m + 0.1 g,  v <- 0.999 v + 0.001 g²,  w <- w + rate m' / (sqrt(v') + 1e-8)
//! ```
//!
//! With m' and v' free of their start at 0. The loss is the mean over rows and outputs of squared
//! errors (slope 2), or over rows of cross-entropies.

use super::deep::Stack;
use super::deep::backprop::{Backprop, Batch};
use super::optimiser::{Decay, Optimiser};
use crate::base::budget::{self, Workspace};
use crate::base::error::{self, Error, Result};
use crate::base::math::Sum;
use crate::base::rng::{Permutation, stream};
use core::ops::{ControlFlow, Range};

/// How to train.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Params<'k> {
    /// Passes over all rows.
    pub epochs: u32,
    /// Rows of a batch; more than there are count as all.
    pub batch: usize,
    /// How a gradient becomes a step.
    pub optimiser: Optimiser,
    /// The rate after the warm-up.
    pub rate: f32,
    /// First steps, over which the rate rises linearly.
    pub warmup: u32,
    /// Epochs, counted from 0 and not falling, from which on the rate is `factor` times what it
    /// was.
    pub falls: &'k [u32],
    /// See [`Self::falls`].
    pub factor: f32,
    /// Weight decay: this times the weight is added to its derivative.
    pub decay: f32,
    /// Places in the support, rising, of weights that are not trained.
    pub fixed: &'k [u32],
    /// Seed of the order of the rows.
    pub seed: u64,
}

impl Params<'_> {
    /// A hundred epochs of SGD with momentum 0.9 and rate 0.1, batches of 128 rows.
    pub const SGD: Self = Self {
        epochs: 100,
        batch: 128,
        optimiser: Optimiser::Sgd { momentum: 0.9 },
        rate: 0.1,
        warmup: 0,
        falls: &[],
        factor: 0.1,
        decay: 0.0,
        fixed: &[],
        seed: 0,
    };

    /// The same with Adam and rate 0.001.
    pub const ADAM: Self = Self { optimiser: Optimiser::Adam, rate: 0.001, ..Self::SGD };

    fn check(&self, rows: usize) -> Result<()> {
        let &Self { rate, factor, decay, .. } = self;
        error::range("rows", rows, 1, u32::MAX as usize)?;
        error::range("epochs", self.epochs as usize, 1, u32::MAX as usize)?;
        error::range("rows of a batch", self.batch, 1, usize::MAX)?;
        self.optimiser.check()?;
        error::finite("rate, factor or weight decay", &[rate, factor, decay])?;
        let above = |what, x: f32| error::range(what, usize::from(x > 0.0), 1, 1);
        above("rate above 0", rate)?;
        above("factor of the rate above 0", factor)?;
        error::range("weight decay of 0 or more", usize::from(decay >= 0.0), 1, 1)?;
        let falls = self.falls.windows(2).position(|pair| matches!(pair, [a, b] if a > b));
        let fixed = self.fixed.windows(2).position(|pair| matches!(pair, [a, b] if a >= b));
        falls.or(fixed).map_or(Ok(()), |at| Err(Error::Unsorted { at: at + 1 }))
    }

    /// The rate of step `step`, which is in epoch `epoch`, both counted from 0.
    fn rate(&self, epoch: u32, step: u32) -> f32 {
        let falls = self.falls.iter().filter(|&&fall| epoch >= fall);
        let fallen = falls.fold(self.rate, |rate, _| rate * self.factor);
        let grown = step.saturating_add(1) as f32 / self.warmup.max(1) as f32;
        fallen * grown.min(1.0)
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
    /// Mean loss over the steps of the epoch, each before its step.
    pub loss: f32,
    /// Rate of the last step.
    pub rate: f32,
}

/// What a run did.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Info {
    /// As [`Progress::loss`], of the last epoch.
    pub loss: f32,
    /// Epochs done.
    pub epochs: u32,
    /// Steps done.
    pub steps: u32,
    /// Whether the observer ended the run.
    pub stopped: bool,
}

/// Words of the memory of [`run`], for so many nonzeros: gradient and moments.
#[must_use]
pub const fn words(nnz: usize, optimiser: Optimiser) -> usize {
    nnz.saturating_mul(1 + optimiser.moments())
}

/// Trains the weights of a network that has ended, on its support; `observe` is called after each
/// epoch. The weights of the last step are the result.
///
/// `memory` holds at least [`words`]. What it held before does not matter.
///
/// # Errors
/// [`Error::Range`], [`Error::NotFinite`] or [`Error::Unsorted`] for settings out of bounds,
/// [`Error::Budget`] with the bytes needed and given, [`Error::Diverged`] with the step whose loss
/// or weights are no finite numbers, and those of [`Backprop`]; the weights are then those of some
/// step.
///
/// ```
/// use core::ops::ControlFlow::Continue;
/// use tamis::learn::{deep::{Stack, backprop::{self, RowByRow}}, loss::Labels, masked::{self, Params}};
/// use tamis::{data::samples::{NormalRows, Samples}, network::{gates::Signs, weights::Weights}};
/// // Labels of 2 relu(x_0) - relu(x_1), and a network that has weights for them.
/// let mut rows = NormalRows::new(3, 200, 2);
/// let mut labels = [0.0_f32; 200];
/// for (k, y) in labels.iter_mut().enumerate() {
///     let mut x = [0.0; 2];
///     rows.row(k, &mut x)?;
///     *y = 2.0 * x[0].max(0.0) - x[1].max(0.0);
/// }
/// let (mut index, mut value) = ([0; 4], [0.0; 4]);
/// let mut stack = Stack::new(2, &mut index, &mut value);
/// stack.push(Weights::new(2, 2, &[0, 3], &[1.0, 1.0])?, Signs::Positive)?;
/// stack.end_weights(Weights::new(1, 2, &[0, 1], &[0.5, 0.5])?)?;
/// let mut memory = [0; backprop::words(4, 1)];
/// let mut backprop = RowByRow::new(rows, Labels::values(&labels), &stack, &mut memory)?;
/// let params = Params { epochs: 40, batch: 20, rate: 0.02, ..Params::SGD };
/// let mut memory = [0; masked::words(4, Params::SGD.optimiser)];
/// let info = masked::run(&mut backprop, &mut stack, &params, &mut memory, |_| Continue(()))?;
/// assert!(info.loss < 1e-6);
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn run<B: Backprop>(
    backprop: &mut B,
    stack: &mut Stack<'_>,
    params: &Params<'_>,
    memory: &mut [u32],
    mut observe: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Info, B::Source> {
    let n = backprop.samples();
    params.check(n).map_err(Error::widen)?;
    if let Some(&last) = params.fixed.last() {
        let most = stack.nnz().saturating_sub(1);
        error::range("place of a weight that is not trained", last as usize, 0, most)?;
    }
    backprop.check(stack)?;
    let mut state = State::new(params, stack.nnz(), memory).map_err(Error::widen)?;
    let batch = params.batch.min(n);
    let (terms, slope) = (backprop.labels().terms(n), backprop.labels().slope());
    let mut info = Info { loss: 0.0, epochs: 0, steps: 0, stopped: false };
    while info.epochs < params.epochs && !info.stopped {
        let epoch = info.epochs;
        let order = Permutation::new(params.seed, stream::ROWS + u64::from(epoch), n);
        let (mut sum, mut rate) = (Sum::default(), 0.0);
        for start in (0..n).step_by(batch) {
            let positions = start..start.saturating_add(batch).min(n);
            let scale = slope / (positions.len() as f32 * terms);
            let batch = Batch { positions, order: Some(order) };
            let loss = backprop.gradient(stack, &batch, state.gradient)?;
            let diverged = Error::Diverged { step: info.steps as usize };
            if !loss.is_finite() {
                return Err(diverged);
            }
            sum.add(loss);
            rate = params.rate(epoch, info.steps);
            state.step(stack.values_mut(), params, scale, rate);
            info.steps = info.steps.saturating_add(1);
        }
        info.epochs += 1;
        info.loss = sum.value() / (n as f32 * terms);
        // Activations hide weights that are no numbers: a neuron of NaN gives 0.
        if !stack.values().iter().all(|weight| weight.is_finite()) {
            return Err(Error::Diverged { step: info.steps.saturating_sub(1) as usize });
        }
        let progress =
            Progress { epoch: info.epochs, epochs: params.epochs, loss: info.loss, rate };
        info.stopped = observe(&progress).is_break();
    }
    Ok(info)
}

/// Gradient and moments of a run.
struct State<'m> {
    gradient: &'m mut [f32],
    /// Means of the gradients, or the last step.
    first: &'m mut [f32],
    /// Means of their squares; empty for SGD.
    second: &'m mut [f32],
    adam: Decay,
}

impl<'m> State<'m> {
    fn new(params: &Params<'_>, nnz: usize, memory: &'m mut [u32]) -> Result<Self> {
        let optimiser = params.optimiser;
        budget::enough(words(nnz, optimiser), memory.len())?;
        let mut space = Workspace::new(memory);
        let [gradient, first] = [space.floats(nnz)?, space.floats(nnz)?];
        let second = space.floats(if optimiser.moments() > 1 { nnz } else { 0 })?;
        first.fill(0.0);
        second.fill(0.0);
        Ok(Self { gradient, first, second, adam: Decay::PYTORCH })
    }

    /// One step along the gradient times `scale`, of all weights but the fixed ones.
    fn step(&mut self, weights: &mut [f32], params: &Params<'_>, scale: f32, rate: f32) {
        if params.optimiser.moments() > 1 {
            self.adam.step();
        }
        let (mut from, all) = (0, weights.len());
        for at in params.fixed.iter().map(|&at| at as usize).chain([all]) {
            self.step_range(from..at, weights, params, scale, rate);
            from = at.saturating_add(1);
        }
    }

    fn step_range(
        &mut self,
        range: Range<usize>,
        weights: &mut [f32],
        params: &Params<'_>,
        scale: f32,
        rate: f32,
    ) {
        let decay = params.decay;
        let weights = weights.get_mut(range.clone()).unwrap_or_default();
        let gradient = self.gradient.get(range.clone()).unwrap_or_default();
        let first = self.first.get_mut(range.clone()).unwrap_or_default();
        let all = weights.iter_mut().zip(gradient).zip(first);
        match params.optimiser {
            Optimiser::Sgd { momentum } => {
                for ((w, g), last) in all {
                    *last = momentum * *last + (scale * g - decay * *w);
                    *w += rate * *last;
                }
            }
            Optimiser::Adam => {
                let second = self.second.get_mut(range).unwrap_or_default();
                for (((w, g), mean), square) in all.zip(second) {
                    let g = scale * g - decay * *w;
                    self.adam.update(w, g, mean, square, rate);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
