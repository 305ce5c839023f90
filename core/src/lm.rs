//! Exact recovery: Levenberg-Marquardt hard thresholding with tried moves.
//!
//! Labels that a sparse network made are given back by that network, to the rounding of the labels, where plain hard
//! thresholding ([`crate::train`]) ends in a local minimum. Memory stays that of hard thresholding: a few vectors on
//! supports of at most 1.75 s weights, gradients streamed in panels, nothing of the size of the dense network
//! ([`crate::budget::Recovery`]).
//!
//! ```text
//! start     under random gates the s largest |g|/c; w = g/c² on them; one factor for all; 3 LM steps
//!   │
//! descend   outer steps until one leaves more than 85 % of the loss, at most 40 between moves and 200 from a start or a kick:
//!   │         grow by the 0.5 s largest |g|/c · 2 LM · threshold to 1.25 s by |w| |column| · 2 LM
//!   │
//! moves ◄─┐ tidy: turn mirror images back, flip neurons where that lowers the loss, merge neurons of one hinge;
//!   │     │ candidates by ⟨r, φ⟩²/|φ|²: births from inputs and from random gates, splits of neurons
//!   │     │ with 24 neurons or more: try one candidate in 12 neurons, all at once;
//!   │     │ try up to 24, 6 at a time: from the base, apply · 2 LM · up to 4 outer steps; a success (70 % of the
//!   ├─────┘ loss) is taken at once, the best of a batch from 98 % on; then descend
//!   │ no candidate helps
//! kick      the best network without a fifth of its neurons, or more after kicks that led nowhere; descend; back to the
//!   │       moves. On four times the rows, from the best network, where all rows refute it or kicks lead nowhere
//!   │ exact, or no kick is left
//! finish    merge · turn mirror images back · threshold to s, a third of the excess at a time, 5 LM between · fold the linear
//!   │       term · m neurons
//!   │       exact at 1.25 s weights but not at s: kick
//! all rows  LM on all rows; where an exact fit of a part is none of all, search again on four times the part
//!   │
//! polish    outer steps at exactly s weights, as long as they help
//! ```
//!
//! g is the gradient, r the residual, `c_j` the root mean square of input j, φ the change that a candidate makes. An LM
//! step solves the least-squares problem of the current gates, damped, by conjugate gradients, and is kept only where
//! the loss of the true network falls.
//!
//! With [`Signs::Free`] the search has a linear term in block 0, with which a neuron may point either way at no cost,
//! since `relu(z) = z + relu(-z)`. It does not count in s, and is folded into the neurons at the end.
//!
//! **Several outputs** ([`run_net`]): `f = sum_i relu(w_i · x) wt_i`, with W and Wt sparse under one budget s. The search
//! is the same; steps change both sides at once, and everything is measured without regard to how a neuron's scale is
//! split between its sides: a weight as `|w_ij| c_j b_i` or `|wt_ik| a_i`, with `b_i` the size of `wt_i` where the neuron
//! is open and `a_i` the root mean square of its activation. A birth alternates the sides, each the least squares of the
//! residual for the other one; turning a neuron gives it new output weights; neurons of one hinge add up their output
//! weights. There is no linear term, since output weights have signs.
//!
//! **Two hidden layers** ([`run_deep`]): `f = sum_k relu(sum_i V_ik relu(w_i · x))` is the network of several outputs with
//! another end, the sum of the outputs that are open. Its Jacobian is that of the outputs, summed up where they are open; so the
//! gradient is that of several outputs with the residual in the places that are open, and so are births, splits and steps. A
//! weight counts with the rows where what follows it is open. Output 0 is no neuron while searching: it adds up activations
//! without a gate, and its weights, one a neuron of the first layer, do not count in s. With it the signs of the second layer do
//! not matter, `relu(u) = u + relu(-u)`; at the end they are chosen so that few of its weights are left, which become a neuron.
//! New moves are births in the second layer from pairs of activations, `relu(a_i - t a_j)`, and turning a neuron of the first
//! layer that is folded over into another one. The search begins with a part of the neurons of the second layer at random.
//!
//! **Rows held out** ([`Params::validation`]): labels with noise are fitted too well by the best support of the search. The
//! last rows are then kept from every step, each network of at most s weights and m neurons is measured on them, and the best
//! is the result; so that there is something to choose from, each best network of the search is brought down to s weights
//! before the next kick. Rows held out are missing from the fit: where rows are scarce this costs more than the choice wins,
//! so they are for the measure of a result, and for searches with rows to spare.
//!
//! **Columns that repeat others**: a column that is a multiple of an earlier one, to rounding, gets no weights. A weight that
//! could be spread over both takes no more of s than it needs.
//!
//! **Few weights for the labels**: where there are at least as many inputs as rows, output weights are positive, and s is less
//! than twice the labels that are not 0, as for a picture whose rows are places, a label is an equation and a dark row a bound. Searches
//! then end with a few labels that no neuron is open for, whose gradient is zero, or lose an exact fit on the way from 1.25 s
//! weights to s. So these rows are *covered* while searching: the neuron nearest to opening counts there as if it were open.
//! The search works at s weights; its first move is a swap, some weights more and, some steps later, as many less, and the other
//! moves come where no swap helps; a kick that leaves no neuron starts anew from other gates.
//! The cover takes three numbers a row more ([`crate::budget::Recovery::cover_words`]); what is found is judged without it.
//!
//! **Ended within a step**: an operator that fails with [`crate::Error::Stopped`] ends the run as the observer does: with the best
//! network until then, brought to s weights in few steps.
//!
//! **Every loop is bounded**: a run ends after at most [`Params::steps`] outer steps, and before it does so makes at most
//! [`Params::kicks`] kicks per part of the rows, of which there are at most `log_4(n / n0) + 1`; an LM step makes at
//! most 7 attempts of at most [`Params::products`] products; a descent has at most 40 outer steps between moves, and 200 from a
//! start or a kick, since each leaves at most 85 % of the loss; the way down to s weights has at most `log_1.5(s) + 2` cuts,
//! and that to m neurons `log_1.5(m) + 2`: each takes a third of what is too much.
//!
//! Sources: K. Levenberg (1944) and D. Marquardt (1963) for the damped step; T. Blumensath and M. Davies (2009) for
//! hard thresholding, S. Foucart (2011) for least squares on its supports; M. Pilanci and T. Ergen (2020) for networks as
//! gated linear ones. Trying each move before it is taken, and the moves themselves, are Tamis's own.
#![allow(clippy::neg_cmp_op_on_partial_ord, reason = "a NaN must end a loop or fail a test")]

mod bench;
mod checkpoint;
mod cover;
mod factors;
mod fit;
mod fold;
mod mirror;
mod moves;
mod neuron;
mod problem;
mod run;
mod search;
mod sides;
mod solver;
mod stages;
mod support;
mod tidy;
mod trial;

pub use checkpoint::{Checkpoint, State};

use crate::dims::Dims;
use crate::error::Result;
use crate::factored::{Factored, Net};
use crate::gates::Signs;
use crate::sensing::Sensing;
use crate::weights::Weights;

/// How the search goes.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Params {
    /// Seed of the first gates, of births, splits and kicks.
    pub seed: u64,
    /// Output signs.
    pub signs: Signs,
    /// Rows that the search looks at first, n0, the first of the data, which must come in random order; 0 for a number
    /// that suits s, see [`Self::search_rows`].
    pub rows: usize,
    /// Mean squared error at which the fit is exact, in parts of the mean square of the labels.
    pub exact: f32,
    /// Births from random gates in each list of candidates, for either sign.
    pub random_births: u32,
    /// Kicks before a search ends.
    pub kicks: u32,
    /// Outer steps before the run ends; those that bring it to s weights come on top.
    pub steps: u32,
    /// Levenberg-Marquardt steps on all rows at the end.
    pub final_steps: u32,
    /// Outer steps at exactly s weights at the end, where the fit is not exact.
    pub polish: u32,
    /// Kicks without progress after which a search on the first rows ends whose loss is above a thousandth of the mean square of
    /// the labels; a quarter of that with every change to more rows, where kicks cost four times as much, but at least one.
    pub patience: u32,
    /// Rows held out, the last of the data, which must come in random order; fewer than there are. Where there are some,
    /// no step looks at them, and of the networks of at most s weights that the run comes to, the one of least loss on them is
    /// the result.
    pub validation: usize,
    /// Kicks without a better loss on the rows held out after which a search ends; 0 for never.
    pub validation_patience: u32,
    /// Weights above s while searching, in percent of s; more than 25 count as 25, which the memory is for. None where weights are
    /// few for the labels.
    pub spare: u32,
    /// Products of conjugate gradients in one attempt of a step.
    pub products: u32,
    /// Whether births and splits are tried.
    pub births: bool,
    /// Whether neurons are turned round and merged while searching.
    pub tidy: bool,
}

impl Params {
    /// The settings that the published grid was recovered with.
    pub const DEFAULT: Self = Self {
        seed: 0,
        signs: Signs::Positive,
        rows: 0,
        exact: 3e-11,
        random_births: 6,
        kicks: 40,
        steps: 4000,
        final_steps: 4,
        polish: 10,
        patience: 12,
        validation: 0,
        validation_patience: 0,
        spare: 25,
        products: 120,
        births: true,
        tidy: true,
    };

    /// n0 for s = `nnz` and `samples` rows that are not held out: [`Self::rows`], or 20 s between 1000 and the larger of 4000 and
    /// 10 s; never more than there are.
    #[must_use]
    pub const fn search_rows(&self, nnz: usize, samples: usize) -> usize {
        let rows = match self.rows {
            0 => {
                let (usual, many) = (nnz.saturating_mul(20), nnz.saturating_mul(10));
                let most = if many > 4000 { many } else { 4000 };
                let usual = if usual > most { most } else { usual };
                if usual < 1000 { 1000 } else { usual }
            }
            rows => rows,
        };
        if rows < samples { rows } else { samples }
    }

    /// n0 of [`run_deep`]: [`Self::search_rows`] for twice the weights, since those of the second layer depend on the first.
    #[must_use]
    pub const fn deep_search_rows(&self, nnz: usize, samples: usize) -> usize {
        self.search_rows(nnz.saturating_mul(2), samples)
    }
}

/// What a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Phase {
    /// Outer steps from the start.
    Descend,
    /// A move is tried.
    Trial,
    /// A move was taken.
    Move,
    /// Outer steps after a kick.
    Kick,
    /// Down to s weights.
    Finish,
    /// Steps on all rows.
    AllRows,
    /// Outer steps at s weights on all rows.
    Polish,
}

/// Where a run stands: after each outer step, and at each checkpoint.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// What it is doing.
    pub phase: Phase,
    /// Outer steps so far.
    pub step: u32,
    /// Mean squared error on the rows looked at, in squares of the labels' unit; infinite beyond the range of floats.
    pub loss: f32,
    /// The least so far on these rows; from [`Phase::AllRows`] on, of networks since then.
    pub best: f32,
    /// Weights now, those of the linear term included.
    pub support: usize,
    /// Neurons that have weights now.
    pub live: usize,
    /// Moves taken.
    pub moves: u32,
    /// Kicks.
    pub kicks: u32,
    /// Rows that all operations go through together; a product counts where an operator has prepared for it and reads nothing, too.
    pub rows_read: u64,
    /// Between two stages, besides the calls after steps: all that [`resume`] needs to go on from here.
    pub checkpoint: Option<Checkpoint<'a>>,
}

/// What a run did.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Info {
    /// Mean squared error of the result on all rows but those held out, in squares of the labels' unit; infinite, or 0, where that is
    /// beyond the range of floats.
    pub loss: f32,
    /// The same in parts of the mean square of the labels: within range for labels of any size.
    pub relative: f32,
    /// Whether the result fits all rows but those held out exactly, see [`Params::exact`], with weights that are all normal floats.
    pub exact: bool,
    /// Mean squared error on the rows held out, where there are such, in squares of the labels' unit.
    pub held: Option<f32>,
    /// Whether a search ended for want of progress on the rows held out, see [`Params::validation_patience`].
    pub early: bool,
    /// Outer steps.
    pub steps: u32,
    /// Moves tried.
    pub trials: u32,
    /// Moves taken.
    pub moves: u32,
    /// Neurons turned round.
    pub flips: u32,
    /// Neurons merged into others.
    pub merges: u32,
    /// Times that the linear term was folded.
    pub folds: u32,
    /// Kicks.
    pub kicks: u32,
    /// Rows that all operations go through together; a product counts where an operator has prepared for it and reads nothing, too.
    pub rows_read: u64,
    /// Whether the observer ended the run.
    pub stopped: bool,
}

impl Info {
    /// Before anything was done.
    const NONE: Self = Self {
        loss: 0.0,
        relative: 0.0,
        exact: false,
        held: None,
        early: false,
        steps: 0,
        trials: 0,
        moves: 0,
        flips: 0,
        merges: 0,
        folds: 0,
        kicks: 0,
        rows_read: 0,
        stopped: false,
    };
}

/// Blocks that the operator of a run should have for m neurons: a tenth more and two, so that the search has room; with
/// free signs as many of either sign, and the linear term.
///
/// A run works with any number of blocks (free signs need two), but with fewer it has less room for its moves.
///
/// ```
/// use tamis::{gates::Signs, lm::slots};
/// assert_eq!([slots(10, Signs::Positive), slots(10, Signs::Free)], [13, 27]);
/// ```
#[must_use]
pub const fn slots(hidden: usize, signs: Signs) -> usize {
    let slots = hidden.saturating_add(hidden.div_ceil(10)).saturating_add(2);
    match signs {
        Signs::Positive => slots,
        Signs::Balanced => slots.saturating_add(slots % 2),
        Signs::Free => slots.saturating_mul(2).saturating_add(1),
    }
}

/// Outputs of the first layer that a run of [`run_deep`] has for m neurons of the second: as many as [`slots`], and one that
/// passes activations through while searching.
#[must_use]
pub const fn second_slots(second: usize) -> usize {
    slots(second, Signs::Positive).saturating_add(1)
}

/// Recovers a network of at most `dims.hidden` neurons and `dims.nnz` weights, from zero.
///
/// The operator should have [`slots`] blocks; the result is spread over them, with the signs of `params.signs`, and block
/// 0 is empty with [`Signs::Free`]. `memory` holds at least [`crate::budget::Recovery::words`] of the budget for `dims`, the operator's
/// panel and its scratch for all rows. `observe` is called after every outer step and at every checkpoint; where it
/// returns `false` the run takes the best network down to s weights, fits it to all rows and ends; of those steps it is told too,
/// but its answers change nothing, and there are no more checkpoints.
///
/// Inputs and labels may be of any scale: columns are weighed by their root mean square (one of mean square below 1e-30
/// counts as zero), labels are scaled by an exact power of two.
///
/// # Errors
/// [`crate::Error::Range`] for sizes out of bounds, [`crate::Error::Length`] for labels or sizes that do not fit the
/// operator, [`crate::Error::Stopped`] if the operator ended the run before there were weights, [`crate::Error::NotFinite`] for labels, inputs or a goal that are no numbers, or weights beyond the range of
/// floats, [`crate::Error::Budget`] with the bytes needed and given, [`crate::Error::Diverged`] if gradients leave the
/// range of floats, [`crate::Error::Source`] if reading the data fails.
///
/// ```
/// use tamis::{budget::{Recovery, gated_words}, dims::Dims, gated::Gated, gates::Signs, lm};
/// use tamis::samples::{NormalRows, Samples};
/// // y = relu(2 x_0 - x_3) + relu(x_2 + x_3)
/// let mut x = NormalRows::new(1, 300, 6);
/// let mut labels = [0.0; 300];
/// for (k, y) in labels.iter_mut().enumerate() {
///     let mut row = [0.0; 6];
///     x.row(k, &mut row).unwrap();
///     *y = (2.0 * row[0] - row[3]).max(0.0) + (row[2] + row[3]).max(0.0);
/// }
/// const SLOTS: usize = lm::slots(2, Signs::Positive);
/// let mut rows = [0.0; gated_words(6, SLOTS)];
/// let mut sensing = Gated::new(x, SLOTS, 1, &mut rows).unwrap();
/// const DIMS: Dims = Dims::new(300, 6, 2, 4);
/// let mut memory = [0; Recovery::new(DIMS, 1, 306, false).words()];
/// let (w, info) =
///     lm::run(&mut sensing, &labels, DIMS, &lm::Params::DEFAULT, &mut memory, |_| true).unwrap();
/// assert!(info.exact && w.nnz() == 4);
/// let mut neurons: Vec<Vec<(usize, f32)>> = w.blocks().map(|block| block.entries().collect()).collect();
/// neurons.sort_by_key(|entries| entries[0].0);
/// let expected = [[(0, 2.0), (3, -1.0)], [(2, 1.0), (3, 1.0)]];
/// for ((j, v), (i, u)) in neurons.iter().flatten().zip(expected.iter().flatten()) {
///     assert!(j == i && (v - u).abs() < 1e-5);
/// }
/// ```
pub fn run<'a, S: Sensing>(
    sensing: &mut S,
    labels: &[f32],
    dims: Dims,
    params: &Params,
    memory: &'a mut [u32],
    observe: impl FnMut(&Progress<'_>) -> bool,
) -> Result<(Weights<'a>, Info), S::Source> {
    run::single(sensing, labels, (dims, params), None, memory, observe)
}

/// Goes on from a checkpoint of a run on the same data with the same sizes and parameters: the same bits come out as if it
/// had never been interrupted.
///
/// # Errors
/// As [`run`], and [`crate::Error::Length`], [`crate::Error::Range`] or [`crate::Error::NotFinite`] for a checkpoint that does not fit.
pub fn resume<'a, S: Sensing>(
    sensing: &mut S,
    labels: &[f32],
    dims: Dims,
    params: &Params,
    checkpoint: &Checkpoint<'_>,
    memory: &'a mut [u32],
    observe: impl FnMut(&Progress<'_>) -> bool,
) -> Result<(Weights<'a>, Info), S::Source> {
    run::single(sensing, labels, (dims, params), Some(checkpoint), memory, observe)
}

/// Recovers a network of c outputs, `sum_i relu(w_i · x) wt_i`, of at most `dims.hidden` neurons and `dims.nnz` weights on
/// both sides together, from zero.
///
/// Labels are n×c, row by row; c is their number over `dims.samples`. Everything is as in [`run`], but `params.signs` does
/// not matter, since output weights have signs of their own; the operator should have `slots(m, Signs::Positive)` blocks;
/// and `memory` holds at least [`crate::budget::Recovery::words`] of [`crate::budget::Recovery::factored`]. A network needs
/// two weights: with `dims.nnz` of 1 the result is empty.
///
/// # Errors
/// As [`run`].
///
/// ```
/// use tamis::{budget::{Recovery, gated_words}, dims::Dims, gated::Gated, gates::Signs, lm};
/// use tamis::samples::{NormalRows, Samples};
/// // y_0 = 2 relu(x_0 - x_3), y_1 = relu(x_2) - relu(x_0 - x_3)
/// let mut x = NormalRows::new(1, 300, 6);
/// let mut labels = [0.0; 2 * 300];
/// for (k, y) in labels.chunks_mut(2).enumerate() {
///     let mut row = [0.0; 6];
///     x.row(k, &mut row).unwrap();
///     let (a, b) = ((row[0] - row[3]).max(0.0), row[2].max(0.0));
///     y.copy_from_slice(&[2.0 * a, b - a]);
/// }
/// const SLOTS: usize = lm::slots(2, Signs::Positive);
/// let mut rows = [0.0; gated_words(6, SLOTS)];
/// let mut sensing = Gated::new(x, SLOTS, 1, &mut rows).unwrap();
/// const DIMS: Dims = Dims::new(300, 6, 2, 6);
/// let mut memory = [0; Recovery::factored(DIMS, 2, 1, 606).words()];
/// let (net, info) =
///     lm::run_net(&mut sensing, &labels, DIMS, &lm::Params::DEFAULT, &mut memory, |_| true).unwrap();
/// assert!(info.exact && (net.w().nnz(), net.wt().nnz()) == (3, 3));
/// ```
pub fn run_net<'a, S: Factored>(
    sensing: &mut S,
    labels: &[f32],
    dims: Dims,
    params: &Params,
    memory: &'a mut [u32],
    observe: impl FnMut(&Progress<'_>) -> bool,
) -> Result<(Net<'a>, Info), S::Source> {
    run::net(sensing, (labels, None), (dims, params), None, memory, observe)
}

/// Goes on from a checkpoint of [`run_net`] on the same data with the same sizes and parameters, to the same bits.
///
/// # Errors
/// As [`resume`].
pub fn resume_net<'a, S: Factored>(
    sensing: &mut S,
    labels: &[f32],
    dims: Dims,
    params: &Params,
    checkpoint: &Checkpoint<'_>,
    memory: &'a mut [u32],
    observe: impl FnMut(&Progress<'_>) -> bool,
) -> Result<(Net<'a>, Info), S::Source> {
    run::net(sensing, (labels, None), (dims, params), Some(checkpoint), memory, observe)
}

/// Recovers a network of two hidden layers, `sum_k relu(sum_i V_ik relu(w_i · x))`, of at most `dims.hidden` neurons in the
/// first layer, `second` in the second one, and `dims.nnz` weights in both together, from zero: both are searched for at
/// once.
///
/// The result is W and V, the latter with `second` outputs, as [`Net`] has them: weight `i m + k` leads from neuron i of the
/// first layer to neuron k of m of the second one. No such network is below 0 anywhere, so labels should not be.
///
/// Everything is as in [`run_net`], but there is one label a row; the operator must be ready for [`second_slots`] outputs;
/// `memory` holds at least [`crate::budget::Recovery::words`] of [`crate::budget::Recovery::deep`]; the search begins with
/// [`Params::deep_search_rows`]; and `live` of [`Progress`] counts the neurons of both layers.
///
/// # Errors
/// As [`run`].
///
/// ```
/// use tamis::{budget::{Recovery, gated_words}, dims::Dims, gated::Gated, gates::Signs, lm};
/// use tamis::samples::{NormalRows, Samples};
/// // y = relu(relu(x_0 - x_3) - relu(x_2)) + 2 relu(x_2)
/// let mut x = NormalRows::new(1, 400, 6);
/// let mut labels = [0.0; 400];
/// for (k, y) in labels.iter_mut().enumerate() {
///     let mut row = [0.0; 6];
///     x.row(k, &mut row).unwrap();
///     let (a, b) = ((row[0] - row[3]).max(0.0), row[2].max(0.0));
///     *y = (a - b).max(0.0) + 2.0 * b;
/// }
/// const SLOTS: usize = lm::slots(2, Signs::Positive);
/// let mut rows = [0.0; gated_words(6, SLOTS)];
/// let mut sensing = Gated::new(x, SLOTS, 1, &mut rows).unwrap();
/// const DIMS: Dims = Dims::new(400, 6, 2, 6);
/// let mut memory = [0; Recovery::deep(DIMS, (SLOTS, lm::second_slots(2)), 1, 806).words()];
/// let (net, info) =
///     lm::run_deep(&mut sensing, &labels, (DIMS, 2), &lm::Params::DEFAULT, &mut memory, |_| true).unwrap();
/// assert!(info.exact && (net.w().nnz(), net.wt().nnz(), net.outputs()) == (3, 3, 2));
/// ```
pub fn run_deep<'a, S: Factored>(
    sensing: &mut S,
    labels: &[f32],
    (dims, second): (Dims, usize),
    params: &Params,
    memory: &'a mut [u32],
    observe: impl FnMut(&Progress<'_>) -> bool,
) -> Result<(Net<'a>, Info), S::Source> {
    run::net(sensing, (labels, Some(second)), (dims, params), None, memory, observe)
}

/// Goes on from a checkpoint of [`run_deep`] on the same data with the same sizes and parameters, to the same bits.
///
/// # Errors
/// As [`resume`].
pub fn resume_deep<'a, S: Factored>(
    sensing: &mut S,
    labels: &[f32],
    (dims, second): (Dims, usize),
    params: &Params,
    checkpoint: &Checkpoint<'_>,
    memory: &'a mut [u32],
    observe: impl FnMut(&Progress<'_>) -> bool,
) -> Result<(Net<'a>, Info), S::Source> {
    run::net(sensing, (labels, Some(second)), (dims, params), Some(checkpoint), memory, observe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_begins_with_twenty_rows_a_weight_between_a_thousand_and_the_larger_of_4000_and_ten_a_weight()
    {
        let params = Params::DEFAULT;
        let all = |nnz| params.search_rows(nnz, usize::MAX);
        assert_eq!(
            [0, 1, 49, 51, 200, 201, 400, 401, 1000].map(all),
            [1000, 1000, 1000, 1020, 4000, 4000, 4000, 4010, 10_000]
        );
        assert_eq!(all(usize::MAX), usize::MAX);
        // Never more than there are.
        assert_eq!(
            [(1, 7), (1, 1000), (100, 1999), (100, 2001)].map(|(nnz, n)| params.search_rows(nnz, n)),
            [7, 1000, 1999, 2000]
        );
        // Two layers need them for twice the weights.
        assert_eq!(
            [(60, 9999), (60, 2000), (300, 9999)].map(|(nnz, n)| params.deep_search_rows(nnz, n)),
            [2400, 2000, 6000]
        );
    }

    #[test]
    fn rows_that_are_asked_for_are_taken_as_far_as_there_are_any() {
        let params = Params { rows: 30, ..Params::DEFAULT };
        assert_eq!(
            [(1, 60), (9999, 60), (1, 20), (1, 30)].map(|(nnz, n)| params.search_rows(nnz, n)),
            [30, 30, 20, 30]
        );
        assert_eq!(params.deep_search_rows(9999, 60), 30);
    }

    #[test]
    fn a_tenth_more_blocks_and_two_leave_room_for_moves() {
        assert_eq!([0, 1, 10, 11, 100].map(|m| slots(m, Signs::Positive)), [2, 4, 13, 15, 112]);
        // Either sign has as many.
        assert_eq!([1, 10, 11].map(|m| slots(m, Signs::Balanced)), [4, 14, 16]);
        assert_eq!([1, 10].map(|m| slots(m, Signs::Free)), [9, 27]);
        assert_eq!((slots(usize::MAX, Signs::Free), second_slots(10)), (usize::MAX, 14));
    }
}
