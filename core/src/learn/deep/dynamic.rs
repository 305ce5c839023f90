//! Sparse training of deep networks from nothing: the support shrinks to its final size, and moves
//! meanwhile, in memory for the weights that there are.
//!
//! ```text
//! start    F s random weights, shared out over the layers by ERK, He-normal by fan-in
//! a step   AdamW on the support:  w <- (1 - rate decay) w,  then Adam;  rate: warm-up, then a cosine to 0
//! every E steps, with x the share of the steps that are done:
//!   k      = s + (F - 1) s (1 - clip((x - hold) / (settled - hold)))^power     weights that there may be
//!   drop   to k (1 - f) by salience |w| sqrt(v), all layers together; f falls as a cosine to 0 at x = `still`
//!   grow   to k by |g| / (rms of the input + offset), g streamed panel by panel over some rows
//! ```
//!
//! Weights on no path from an input to an output go first, whatever their salience, so none is left
//! in the end. A new weight starts at 0, its second moment at the mean of its layer's. What is held
//! for each weight: index, value, gradient and two moments, and half an entry to grow: 24 bytes.
//!
//! Gradual pruning of a dense network, SET (D. Mocanu et al., 2018) and `RigL` (U. Evci et al.,
//! 2020) are settings: [`Params::gradual`], [`Params::set`], [`Params::rigl`].
//!
//! With [`Params::constant`] the last input is 1 in every row, and the last neuron of each hidden
//! layer hands it on by a weight of 1 that is neither trained nor dropped nor counted: weights to it
//! are biases, grown where they are of use.

mod schedule;
mod start;
mod support;

use super::Stack;
use super::backprop::{Batch, Panels};
use crate::base::error::{self, Error, Result};
use crate::base::math::Sum;
use crate::base::rng::{Permutation, stream};
use crate::learn::optimiser::Decay;
use crate::network::mask::select::BINS;
use core::ops::ControlFlow;
use schedule::Schedule;
pub use start::start;
use support::Support;

/// By what weights are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Salience {
    /// `|w| sqrt(v)`, v the second moment of the gradient.
    #[default]
    Sensitivity,
    /// `|w|`.
    Magnitude,
}

/// By what weights are grown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Growth {
    /// The gradient of the loss over the size of the input.
    #[default]
    Gradient,
    /// Chance.
    Random,
    /// None is.
    None,
}

/// How to train.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Params {
    /// s, nonzeros of the result.
    pub nnz: usize,
    /// F, times as many that training starts from; 1 or more.
    pub factor: f32,
    /// Passes over all rows.
    pub epochs: u32,
    /// Rows of a batch; more than there are count as all.
    pub batch: usize,
    /// The rate after the warm-up.
    pub rate: f32,
    /// First steps, over which the rate rises linearly.
    pub warmup: u32,
    /// Decoupled weight decay (I. Loshchilov, F. Hutter, 2019).
    pub decay: f32,
    /// E, steps from one change of the support to the next.
    pub every: u32,
    /// Share of the steps up to which the support keeps its first size.
    pub hold: f32,
    /// Share of the steps from which on it has its last size.
    pub settled: f32,
    /// How fast it shrinks at first.
    pub power: i32,
    /// Share of the weights that are dropped and grown at first.
    pub exchange: f32,
    /// Share of the steps from which on the support is fixed.
    pub still: f32,
    /// Rows that gradients are taken on for growth.
    pub rows: usize,
    /// Added to the size of an input, for rows that are mostly within 1.
    pub offset: f32,
    /// By what weights are kept.
    pub salience: Salience,
    /// By what they are grown.
    pub growth: Growth,
    /// Whether the last input is 1 in every row, for biases.
    pub constant: bool,
    /// Seed of the start, the order of the rows and those of growth.
    pub seed: u64,
}

impl Params {
    /// Twenty epochs from ten times as many weights.
    #[must_use]
    pub const fn new(nnz: usize) -> Self {
        Self {
            nnz,
            factor: 10.0,
            epochs: 20,
            batch: 128,
            rate: 0.02,
            warmup: 200,
            decay: 0.1,
            every: 100,
            hold: 0.3,
            settled: 0.8,
            power: 2,
            exchange: 0.5,
            still: 0.9,
            rows: 512,
            offset: 0.05,
            salience: Salience::Sensitivity,
            growth: Growth::Gradient,
            constant: false,
            seed: 0,
        }
    }

    /// Gradual magnitude pruning (M. Zhu, S. Gupta, 2017): set `factor` to that of the dense network.
    #[must_use]
    pub const fn gradual(self) -> Self {
        let (hold, settled, power) = (0.0, 0.8, 3);
        let (salience, growth) = (Salience::Magnitude, Growth::None);
        Self { hold, settled, power, salience, growth, exchange: 0.0, decay: 0.0, ..self }
    }

    /// `RigL`: as many weights all the time, the least dropped, those of largest gradient grown.
    #[must_use]
    pub const fn rigl(self) -> Self {
        let salience = Salience::Magnitude;
        Self { factor: 1.0, salience, exchange: 0.3, still: 0.75, decay: 0.0, ..self }
    }

    /// `SET`: the same with random growth.
    #[must_use]
    pub const fn set(self) -> Self {
        Self { growth: Growth::Random, still: 1.0, ..self.rigl() }
    }

    /// The most weights that there are at a time, of a network that has room for `all`.
    #[must_use]
    pub fn most(&self, all: usize) -> usize {
        let start = (f64::from(self.factor) * self.nnz as f64 + 0.5) as usize;
        start.max(self.nnz).min(all)
    }

    fn check(&self, rows: usize) -> Result<()> {
        let &Self { rate, decay, offset, factor, .. } = self;
        error::range("rows", rows, 1, u32::MAX as usize)?;
        error::range("nonzeros", self.nnz, 1, u32::MAX as usize)?;
        error::range("epochs", self.epochs as usize, 1, u32::MAX as usize)?;
        error::range("rows of a batch", self.batch, 1, usize::MAX)?;
        error::range("steps between changes", self.every as usize, 1, u32::MAX as usize)?;
        error::range("rows for growth", self.rows, 1, usize::MAX)?;
        error::finite("rate, decay, offset or factor", &[rate, decay, offset, factor])?;
        let holds = |what, is_so: bool| error::range(what, usize::from(is_so), 1, 1);
        holds("rate above 0", rate > 0.0)?;
        holds("weight decay of 0 or more, and below 1 over the rate", {
            decay >= 0.0 && decay * rate < 1.0
        })?;
        holds("offset of 0 or more", offset >= 0.0)?;
        holds("factor of 1 or more", factor >= 1.0)?;
        let Self { hold, settled, exchange, still, .. } = *self;
        let share = |x: f32| (0.0..=1.0).contains(&x);
        holds("shares of the steps from 0 to 1", [hold, settled, still].into_iter().all(share))?;
        holds("hold before settled", hold < settled)?;
        holds("exchange from 0 to 1", share(exchange))
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
    /// Weights that there are.
    pub nnz: usize,
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
    /// Changes of the support.
    pub changes: u32,
    /// Weights that were grown over all changes.
    pub grown: u64,
    /// Whether the observer ended the run.
    pub stopped: bool,
}

/// Words of the memory of [`run`], beside the network: for the most weights at a time
/// ([`Params::most`]), so many activations ([`Stack::activations`]) and outputs, and panels of
/// `panel` numbers.
#[must_use]
pub const fn words(most: usize, activations: usize, outputs: usize, panel: usize) -> usize {
    let grown = most / 2 + 1;
    let weights = most.saturating_mul(3).saturating_add(grown.saturating_mul(2));
    let neurons = activations.saturating_add(outputs);
    let bits = neurons.div_ceil(32).saturating_mul(4);
    weights.saturating_add(activations).saturating_add(bits).saturating_add(panel + BINS)
}

/// Trains a network on a support that shrinks and moves, from [`start`]; `observe` is called after
/// each epoch and may end the run, which then drops at once what is too much.
///
/// `memory` holds at least [`words`] with a panel of at least the longest block of a layer; more are
/// taken as a larger panel. What it held before does not matter.
///
/// # Errors
/// [`Error::Range`] or [`Error::NotFinite`] for settings out of bounds, [`Error::Budget`] with the
/// bytes needed and given, [`Error::Diverged`] with the step whose loss is no finite number, and
/// those of [`Panels`].
///
/// ```
/// use core::ops::ControlFlow::Continue;
/// use tamis::data::samples::{NormalRows, Samples};
/// use tamis::learn::deep::{Stack, backprop::{self, RowByRow}, dynamic::{self, Params}};
/// use tamis::learn::loss::Labels;
/// // Labels of 2 relu(x_0) - relu(x_1), of rows of twenty inputs.
/// let mut rows = NormalRows::new(3, 400, 20);
/// let mut labels = [0.0_f32; 400];
/// for (k, y) in labels.iter_mut().enumerate() {
///     let mut x = [0.0; 20];
///     rows.row(k, &mut x)?;
///     *y = 2.0 * x[0].max(0.0) - x[1].max(0.0);
/// }
/// let params = Params { factor: 4.0, epochs: 60, batch: 20, every: 20, ..Params::new(12) };
/// let (mut index, mut value) = ([0; 48], [0.0; 48]);
/// let mut memory = vec![0; dynamic::words(48, 26, 1, 20)];
/// let mut stack = Stack::new(20, &mut index, &mut value);
/// dynamic::start(&mut stack, &[6, 1], &params, &mut memory)?;
/// let mut own = [0; backprop::words(26, 1)];
/// let mut backprop = RowByRow::new(rows, Labels::values(&labels), &stack, &mut own)?;
/// let info = dynamic::run(&mut backprop, &mut stack, &params, &mut memory, |_| Continue(()))?;
/// assert!(stack.nnz() <= 12 && info.loss < 0.01, "{info:?}");
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn run<B: Panels>(
    backprop: &mut B,
    stack: &mut Stack<'_>,
    params: &Params,
    memory: &mut [u32],
    mut observe: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Info, B::Source> {
    let n = backprop.samples();
    params.check(n).map_err(Error::widen)?;
    backprop.check(stack)?;
    let mut support = Support::new(stack, params, memory).map_err(Error::widen)?;
    let batch = params.batch.min(n);
    let steps = n.div_ceil(batch) as u64 * u64::from(params.epochs);
    let schedule = Schedule::new(params, stack.nnz() - support.fixed(stack, params), steps);
    let (terms, slope) = (backprop.labels().terms(n), backprop.labels().slope());
    let mut info = Info::default();
    let mut adam = Decay::PYTORCH;
    while info.epochs < params.epochs && !info.stopped {
        let epoch = info.epochs;
        let order = Permutation::new(params.seed, stream::ROWS + u64::from(epoch), n);
        let mut sum = Sum::default();
        for start in (0..n).step_by(batch) {
            let at = u64::from(info.steps);
            if at > 0 && at % u64::from(params.every) == 0 {
                let target = schedule.target(at);
                info.grown += support.change(backprop, stack, params, target, info.changes)? as u64;
                info.changes += 1;
            }
            let positions = start..start.saturating_add(batch).min(n);
            let scale = slope / (positions.len() as f32 * terms);
            let rows = Batch { positions, order: Some(order) };
            let loss = backprop.gradient(stack, &rows, support.gradient(stack.nnz()))?;
            if !loss.is_finite() {
                return Err(Error::Diverged { step: info.steps as usize });
            }
            sum.add(loss);
            adam.step();
            support.step(stack, params, &adam, scale, schedule.rate(at));
            info.steps = info.steps.saturating_add(1);
        }
        info.epochs += 1;
        info.loss = sum.value() / (n as f32 * terms);
        if !stack.values().iter().all(|weight| weight.is_finite()) {
            return Err(Error::Diverged { step: info.steps.saturating_sub(1) as usize });
        }
        let nnz = stack.nnz() - support.fixed(stack, params);
        let progress = Progress { epoch: info.epochs, epochs: params.epochs, loss: info.loss, nnz };
        info.stopped = observe(&progress).is_break();
    }
    support.shrink(stack, params);
    backprop.adopt(stack)?;
    Ok(info)
}

#[cfg(test)]
mod tests;
