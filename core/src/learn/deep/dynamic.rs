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
//! in the end. A new weight starts at 0, its second moment at the mean of its layer's. What lasts from
//! step to step is, for each weight, its index, value and two moments: 16 bytes, or 12 with moments as
//! bfloat16 ([`Moments`]). Its gradient takes 4 more; where it was lie the panels that
//! weights are grown from, and those that are found lie where there is room for them in the network.
//!
//! Gradual pruning of a dense network, SET (D. Mocanu et al., 2018), sparse momentum and `RigL` (U. Evci et al.,
//! 2020) are settings: [`Params::gradual`], [`Params::set`], [`Params::momentum`], [`Params::rigl`].
//!
//! With [`Params::constant`] the last input is 1 in every row, and the last neuron of each hidden
//! layer hands it on by a weight of 1 that is neither trained nor dropped nor counted: weights to it
//! are biases, grown where they are of use.
//!
//! With [`Params::validation`] the result is not the last network but the one of least loss on these rows,
//! of those at the ends of epochs behind `settled`; a run that is ended before there is one gives the last.

mod best;
mod checkpoint;
mod live;
mod moments;
mod params;
mod schedule;
mod start;
mod support;

use super::Stack;
use super::backprop::{Batch, Panels};
use crate::base::error::{Error, Result};
use crate::base::math::Sum;
use crate::base::rng::{Permutation, stream};
use crate::learn::optimiser::Decay;
pub use checkpoint::{Checkpoint, State};
use core::ops::ControlFlow;
pub use moments::{Held, Moments};
pub use params::{Growth, Params, Salience, Selection, words};
use schedule::Schedule;
pub use start::start;
use support::{Support, check_constants};

/// Where a run stands, after an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// Epochs done.
    pub epoch: u32,
    /// Epochs planned.
    pub epochs: u32,
    /// Mean loss over the steps of the epoch, each before its step.
    pub loss: f32,
    /// Weights that there are.
    pub nnz: usize,
    /// Steps done.
    pub steps: u32,
    /// Neurons that have weights.
    pub live: usize,
    /// The loss on the validation rows, where it was looked at after this epoch.
    pub validation: Option<f32>,
    /// Where the run stands.
    pub checkpoint: Checkpoint<'a>,
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
    /// Weights above s that a run which ended too early dropped at once.
    pub cut: u32,
    /// Whether the observer ended the run.
    pub stopped: bool,
    /// Whether it ended for want of progress on the validation rows.
    pub early: bool,
    /// The loss of the network on them; none where it is the last network.
    pub validation: Option<f32>,
}

/// Trains a network on a support that shrinks and moves, from [`start`] or from a checkpoint, whose network
/// the stack has ([`Checkpoint::restore`]); `observe` is called after each epoch, and where a run resumes, and may end it,
/// which then drops at once what is too much, as it does where the machine ends it.
///
/// `memory` holds at least [`words`] with a panel of at least the longest block of a layer; more make a larger
/// panel. What it held before does not matter.
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
/// let mut memory = vec![0; dynamic::words(params.moments, 48, 26, 1, 20)];
/// let mut stack = Stack::new(20, &mut index, &mut value);
/// dynamic::start(&mut stack, &[6, 1], &params, &mut memory)?;
/// let mut own = [0; backprop::words(26, 1)];
/// let mut backprop = RowByRow::new(rows, Labels::values(&labels), &stack, &mut own)?;
/// let info = dynamic::run(&mut backprop, &mut stack, &params, &mut memory, None, |_| Continue(()))?;
/// assert!(stack.nnz() <= 12 && info.loss < 0.01, "{info:?}");
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn run<B: Panels>(
    backprop: &mut B,
    stack: &mut Stack<'_>,
    params: &Params,
    memory: &mut [u32],
    from: Option<&Checkpoint<'_>>,
    mut observe: impl FnMut(&Progress<'_>) -> ControlFlow<()>,
) -> Result<Info, B::Source> {
    let all = backprop.samples();
    params.check(all).map_err(Error::widen)?;
    // Those behind are for validation.
    let n = all.saturating_sub(params.validation);
    backprop.check(stack)?;
    let mut support = Support::new(stack, params, memory).map_err(Error::widen)?;
    let batch = params.batch.min(n);
    let steps = n.div_ceil(batch) as u64 * u64::from(params.epochs);
    let fixed = params.fixed(stack.layers.len());
    let resumed = from.map(|checkpoint| support.resume(stack, params, checkpoint)).transpose();
    let resumed = resumed.map_err(Error::widen)?;
    check_constants(stack, params).map_err(Error::widen)?;
    let start = (stack.nnz() - fixed) as u32;
    let mut at = resumed.unwrap_or(State { start, ..State::default() });
    backprop.skip(u64::from(at.epochs) * n as u64);
    let schedule = Schedule::new(params, at.start as usize, steps);
    let (terms, slope) = (backprop.labels().terms(all), backprop.labels().slope());
    let mut see = |support: &Support<'_>, stack: &Stack<'_>, at: State, validation| {
        let nnz = stack.nnz() - fixed;
        let hidden = stack.layers().take(stack.hidden().len());
        let live = hidden.map(|w| w.blocks().count()).sum::<usize>().saturating_sub(fixed);
        let State { epochs: epoch, steps, loss, .. } = at;
        let checkpoint = support.checkpoint(stack, at);
        let epochs = params.epochs;
        let progress = Progress { epoch, epochs, loss, nnz, steps, live, validation, checkpoint };
        observe(&progress).is_break()
    };
    let mut stopped = from.is_some() && see(&support, stack, at, None);
    let mut adam = Decay::PYTORCH;
    (0..at.steps).for_each(|_| adam.step());
    let is_early = |at: &State| params.patience > 0 && at.waited >= params.patience;
    'epochs: while at.epochs < params.epochs && !stopped && !is_early(&at) {
        let order = Permutation::new(params.seed, stream::ROWS + u64::from(at.epochs), n);
        let mut sum = Sum::default();
        for start in (0..n).step_by(batch) {
            let step = u64::from(at.steps);
            if step > 0 && step % u64::from(params.every) == 0 {
                let target = schedule.target(step);
                match support.change(backprop, stack, params, target, at.changes) {
                    // The machine ended it: what there is stays.
                    Err(Error::Stopped) if at.steps > 0 => {
                        stopped = true;
                        break 'epochs;
                    }
                    grown => at.grown += grown? as u64,
                }
                at.changes += 1;
            }
            let positions = start..start.saturating_add(batch).min(n);
            let scale = slope / (positions.len() as f32 * terms);
            let rows = Batch { positions, order: Some(order) };
            let loss = match backprop.gradient(stack, &rows, support.gradient(stack.nnz())) {
                Err(Error::Stopped) if at.steps > 0 => {
                    stopped = true;
                    break 'epochs;
                }
                loss => loss?,
            };
            if !loss.is_finite() {
                return Err(Error::Diverged { step: at.steps as usize });
            }
            sum.add(loss);
            adam.step();
            support.step(stack, params, &adam, at.steps, scale, schedule.rate(step));
            at.steps = at.steps.saturating_add(1);
        }
        at.epochs += 1;
        at.loss = sum.value() / (n as f32 * terms);
        if !stack.values().iter().all(|weight| weight.is_finite()) {
            return Err(Error::Diverged { step: at.steps.saturating_sub(1) as usize });
        }
        let nnz = stack.nnz() - fixed;
        let mut validation = None;
        if params.validation > 0 && nnz <= params.nnz && schedule.is_settled(at.steps.into()) {
            let held = Batch { positions: n..all, order: None };
            match backprop.loss(stack, &held) {
                Err(Error::Stopped) => {
                    stopped = true;
                    break 'epochs;
                }
                loss => {
                    let loss = loss?;
                    support.best.see(stack, &mut at, loss);
                    validation = Some(loss);
                }
            }
        }
        stopped = see(&support, stack, at, validation);
    }
    support.best.restore(stack, &at);
    let cut = stack.nnz().saturating_sub(params.nnz + fixed) as u32;
    support.shrink(stack, params);
    backprop.adopt(stack)?;
    let State { epochs, steps, changes, grown, loss, .. } = at;
    let (early, validation) = (is_early(&at) && !stopped, at.validation());
    Ok(Info { loss, epochs, steps, changes, grown, cut, stopped, early, validation })
}

#[cfg(test)]
mod tests;
