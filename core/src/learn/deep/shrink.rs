//! Brings a network down to s weights in levels, all layers together: fit, drop what is worth
//! least, fit again.
//!
//! ```text
//! each level   tune (Adam on the support)  ->  one pass for what each weight is worth  ->  drop the least
//! ```
//!
//! A weight is worth what the loss would rise if it were gone, to second order and by the diagonal
//! only: `w² h / 2`, where h is the mean over the rows of the squared derivative of the outputs by
//! it (Y. `LeCun`, J. Denker, S. Solla, *Optimal brain damage*, 1989). h is estimated from one
//! product per row: of the outputs' derivatives with random signs, whose square has the sum over
//! the outputs as its mean, and for classes with a class that is drawn from the network's own
//! probabilities, which gives the Fisher information.

use super::Stack;
use super::backprop::{Backprop as _, RowByRow};
use super::tune;
use crate::base::error::{Error, Result};
use crate::base::math;
use crate::base::rng::{Rng, seed_of, stream};
use crate::data::samples::Samples;
use crate::learn::loss::Labels;
use crate::network::top::{DROPPED, drop_least};
use crate::operator::sensing::head_mut;
use core::ops::ControlFlow;

/// How to shrink.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Params {
    /// Times that weights are dropped. Of the weights above s, `(1 - l / levels)³` are left after
    /// level l, rounded up.
    pub levels: u32,
    /// The fit before each level; the seed is that of the random signs too.
    pub tune: tune::Params,
}

impl Params {
    /// Ten levels with a fit of four epochs before each.
    pub const DEFAULT: Self =
        Self { levels: 10, tune: tune::Params { epochs: 4, ..tune::Params::DEFAULT } };

    /// Weights after level `level` of a network that had `from` and is to have `to`.
    fn count(&self, from: usize, to: usize, level: u32) -> usize {
        let cube = |x: u32| u128::from(x).saturating_pow(3);
        let left = cube(self.levels.saturating_sub(level));
        let excess = (from.saturating_sub(to) as u128)
            .saturating_mul(left)
            .div_ceil(cube(self.levels).max(1));
        to.saturating_add(excess as usize)
    }
}

/// Where a run stands, after an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// Levels done, and passes for what weights are worth.
    pub level: u32,
    /// Nonzeros that there are.
    pub nnz: usize,
    /// The fit of this level.
    pub tune: tune::Progress,
}

/// What an observer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Scope {
    /// This level's fit: its weights are dropped now.
    Level,
    /// The run: all weights are dropped now that are too many.
    Run,
}

/// What a run did.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Info {
    /// Loss before, as [`tune::Info::before`]; none where there was nothing to drop.
    pub before: Option<f32>,
    /// Levels done, and passes for what weights are worth.
    pub levels: u32,
    /// Epochs of all fits.
    pub epochs: u32,
    /// Whether the observer ended the run ([`Scope::Run`]).
    pub stopped: bool,
}

/// Shrinks a network that has ended to `nnz` weights; one that has no more is left as it is.
/// `observe` is called after each epoch and may end the fit of a level or the run ([`Scope`]). The
/// weights that are left want a fit of their own afterwards ([`tune::run`]).
///
/// `memory` holds at least [`tune::words`] for the weights that the network has. What it held
/// before does not matter.
///
/// # Errors
/// Those of [`tune::run`].
///
/// ```
/// use core::ops::ControlFlow::Continue;
/// use tamis::learn::deep::{Stack, shrink::{self, Params}, tune};
/// use tamis::{network::gates::Signs, data::samples::{NormalRows, Samples}, learn::loss::Labels, network::weights::Weights};
/// // Labels of relu(2 relu(x_0) - relu(x_1)), and a network with all six weights that it may have.
/// let mut rows = NormalRows::new(3, 200, 2);
/// let mut labels = [0.0_f32; 200];
/// for (k, y) in labels.iter_mut().enumerate() {
///     let mut x = [0.0; 2];
///     rows.row(k, &mut x)?;
///     *y = (2.0 * x[0].max(0.0) - x[1].max(0.0)).max(0.0);
/// }
/// let (mut index, mut value) = ([0; 6], [0.0; 6]);
/// let mut stack = Stack::new(2, &mut index, &mut value);
/// stack.push(Weights::new(2, 2, &[0, 1, 2, 3], &[1.0, 0.2, -0.2, 1.0])?, Signs::Positive)?;
/// stack.push(Weights::new(2, 1, &[0, 1], &[1.0, -1.0])?, Signs::Positive)?;
/// stack.end_sum(&[])?;
/// let mut memory = [0; tune::words(6, 5, 1)];
/// let params = Params { levels: 2, tune: tune::Params { epochs: 60, batch: 20, ..tune::Params::DEFAULT } };
/// shrink::run(&mut rows, Labels::values(&labels), &mut stack, 4, &params, &mut memory, |_| Continue(()))?;
/// tune::run(&mut rows, Labels::values(&labels), &mut stack, &params.tune, &mut memory, |_| Continue(()))?;
/// let support: Vec<u32> = stack.layers().flat_map(|layer| layer.index().to_vec()).collect();
/// assert_eq!(support, [0, 3, 0, 1]);
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn run<X: Samples>(
    rows: &mut X,
    labels: Labels<'_>,
    stack: &mut Stack<'_>,
    nnz: usize,
    params: &Params,
    memory: &mut [u32],
    mut observe: impl FnMut(&Progress) -> ControlFlow<Scope>,
) -> Result<Info, X::Source> {
    let from = stack.nnz();
    let mut info = Info { before: None, levels: 0, epochs: 0, stopped: false };
    while stack.nnz() > nnz && info.levels < params.levels.max(1) {
        let seed = seed_of(params.tune.seed, stream::SUPPORT, info.levels);
        let (level, count) = (info.levels, stack.nnz());
        let tuned = tune::Params { seed, ..params.tune };
        let done = tune::run(rows, labels, stack, &tuned, memory, |tune| {
            observe(&Progress { level, nnz: count, tune: *tune })
                .map_break(|scope| info.stopped |= scope == Scope::Run)
        })?;
        info.before = info.before.or(Some(done.before));
        info.epochs = info.epochs.saturating_add(done.epochs);
        info.levels += 1;
        let level = if info.stopped { params.levels } else { info.levels };
        let (own, rest) = memory.split_at_mut(tune::own_words(stack.nnz()).min(memory.len()));
        let mut backprop = RowByRow::new(&mut *rows, labels, stack, rest).map_err(Error::widen)?;
        let scores = bytemuck::cast_slice_mut(own);
        let scores = head_mut(scores, stack.nnz()).map_err(Error::widen)?;
        score(&mut backprop, stack, seed, scores)?;
        drop_least(scores, params.count(from, nnz, level).max(nnz));
        stack.retain(|at| scores.get(at).is_some_and(|score| *score != DROPPED));
        if info.stopped {
            break;
        }
    }
    Ok(info)
}

/// What each weight is worth, up to a factor, in `scores`.
fn score<X: Samples>(
    backprop: &mut RowByRow<'_, X>,
    stack: &Stack<'_>,
    seed: u64,
    scores: &mut [f32],
) -> Result<(), X::Source> {
    scores.fill(0.0);
    let mut rng = Rng::new(seed, stream::PROJECTION);
    for k in 0..backprop.samples() {
        backprop.residual(k, stack)?;
        match backprop.labels() {
            Labels::Values(_) => {
                let mut sign = || if rng.bits() >> 31 == 0 { 1.0 } else { -1.0 };
                backprop.out.iter_mut().for_each(|out| *out = sign());
            }
            Labels::Classes(classes) => {
                let label = classes.labels.get(k).map_or(0, |&label| label.into());
                draw(label, backprop.out, &mut rng);
            }
        }
        backprop.backwards(stack, scores, |sum, g| *sum += g * g);
    }
    for (score, w) in scores.iter_mut().zip(stack.values()) {
        // Sums beyond the range of floats count as the largest.
        let worth = math::sqrt(*score) * w.abs();
        *score = if worth < f32::MAX { worth } else { f32::MAX };
    }
    Ok(())
}

/// From the residual of a label that of a class which is drawn from the network's own
/// probabilities.
fn draw(label: usize, out: &mut [f32], rng: &mut Rng) {
    let mut left = rng.uniform();
    if let [out] = out {
        let odds = label as f32 - *out;
        *out = if left < odds { 1.0 } else { 0.0 } - odds;
        return;
    }
    if let Some(own) = out.get_mut(label) {
        *own -= 1.0;
    }
    // What is left holds the probabilities, taken away.
    for out in out.iter_mut() {
        left += *out;
        if left < 0.0 {
            *out += 1.0;
            return;
        }
    }
    // Probabilities that sum to less than 1 by rounding.
    if let Some(last) = out.last_mut() {
        *last += 1.0;
    }
}
