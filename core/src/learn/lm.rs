//! Exact recovery: Levenberg-Marquardt hard thresholding with tried moves.
//!
//! Labels that a sparse network made are given back by that network, to the rounding of the labels,
//! where plain hard thresholding ([`crate::learn::train`]) ends in a local minimum. Memory stays
//! that of hard thresholding: a few vectors on supports of at most 1.75 s weights, gradients
//! streamed in panels, nothing of the size of the dense network
//! ([`crate::base::budget::Recovery`]).
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
//! g is the gradient, r the residual, `c_j` the root mean square of input j, φ the change that a
//! candidate makes. An LM step solves the least-squares problem of the current gates, damped, by
//! conjugate gradients, and is kept only where the loss of the true network falls.
//!
//! With [`Signs::Free`] the search has a linear term in block 0, with which a neuron may point
//! either way at no cost, since `relu(z) = z + relu(-z)`. It does not count in s, and is folded
//! into the neurons at the end.
//!
//! **Several outputs** ([`Goal::several_outputs`]): `f = sum_i relu(w_i · x) wt_i`, with W and Wt
//! sparse under one budget s. The search is the same; steps change both sides at once, and
//! everything is measured without regard to how a neuron's scale is split between its sides: a
//! weight as `|w_ij| c_j b_i` or `|wt_ik| a_i`, with `b_i` the size of `wt_i` where the neuron is
//! open and `a_i` the root mean square of its activation. A birth alternates the sides, each the
//! least squares of the residual for the other one; turning a neuron gives it new output weights;
//! neurons of one hinge add up their output weights. There is no linear term, since output weights
//! have signs.
//!
//! **Two hidden layers** ([`Goal::two_layers`]): `f = sum_k relu(sum_i V_ik relu(w_i · x))` is the
//! network of several outputs with another end, the sum of the outputs that are open. Its Jacobian
//! is that of the outputs, summed up where they are open; so the gradient is that of several
//! outputs with the residual in the places that are open, and so are births, splits and steps. A
//! weight counts with the rows where what follows it is open. Output 0 is no neuron while
//! searching: it adds up activations without a gate, and its weights, one a neuron of the first
//! layer, do not count in s. With it the signs of the second layer do not matter,
//! `relu(u) = u + relu(-u)`; at the end they are chosen so that few of its weights are left, which
//! become a neuron. New moves are births in the second layer from pairs of activations,
//! `relu(a_i - t a_j)`, and turning a neuron of the first layer that is folded over into another
//! one. The search begins with a part of the neurons of the second layer at random.
//!
//! **Rows held out** ([`Params::validation`]): labels with noise are fitted too well by the best
//! support of the search. The last rows are then kept from every step, each network of at most s
//! weights and m neurons is measured on them, and the best is the result; so that there is
//! something to choose from, each best network of the search is brought down to s weights before
//! the next kick. Rows held out are missing from the fit: where rows are scarce this costs more
//! than the choice wins, so they are for the measure of a result, and for searches with rows to
//! spare.
//!
//! **Columns that repeat others**: a column that is a multiple of an earlier one, to rounding, gets
//! no weights. A weight that could be spread over both takes no more of s than it needs.
//!
//! **Few weights for the labels**: where there are at least as many inputs as rows, output weights
//! are positive, and s is less than twice the labels that are not 0, as for a picture whose rows
//! are places, a label is an equation and a dark row a bound. Searches then end with a few labels
//! that no neuron is open for, whose gradient is zero, or lose an exact fit on the way from 1.25 s
//! weights to s. So these rows are *covered* while searching: the neuron nearest to opening counts
//! there as if it were open. The search works at s weights; its first move is a swap, some weights
//! more and, some steps later, as many less, and the other moves come where no swap helps; a kick
//! that leaves no neuron starts anew from other gates. The cover takes three numbers a row more
//! ([`crate::base::budget::Recovery::cover_words`]); what is found is judged without it.
//!
//! **Ended within a step**: an operator that fails with [`crate::Error::Stopped`] ends the run as
//! the observer does: with the best network until then, brought to s weights in few steps.
//!
//! **Every loop is bounded**: a run ends after at most [`Params::steps`] outer steps, and before it
//! does so makes at most [`Params::kicks`] kicks per part of the rows, of which there are at most
//! `log_4(n / n0) + 1`; an LM step makes at most 7 attempts of at most [`Params::products`]
//! products; a descent has at most 40 outer steps between moves, and 200 from a start or a kick,
//! since each leaves at most 85 % of the loss; the way down to s weights has at most
//! `log_1.5(s) + 2` cuts, and that to m neurons `log_1.5(m) + 2`: each takes a third of what is too
//! much.
//!
//! Sources: K. Levenberg (1944) and D. Marquardt (1963) for the damped step; T. Blumensath and M.
//! Davies (2009) for hard thresholding, S. Foucart (2011) for least squares on its supports; M.
//! Pilanci and T. Ergen (2020) for networks as gated linear ones. Trying each move before it is
//! taken, and the moves themselves, are Tamis's own.
#![allow(clippy::neg_cmp_op_on_partial_ord, reason = "a NaN must end a loop or fail a test")]

mod candidate;
mod checkpoint;
mod cover;
mod equations;
mod factors;
mod fit;
mod fold;
mod goal;
mod info;
mod method;
mod mirror;
mod model;
mod moves;
mod neuron;
mod params;
mod progress;
mod run;
mod search;
mod sides;
mod signed;
mod solver;
mod stages;
mod support;
mod trial;

pub use checkpoint::{Checkpoint, State};
pub use goal::{Goal, OneOutput, SeveralOutputs, TwoLayers};
pub use info::{Info, Phase};
pub use method::Method;
pub use params::{Params, second_slots, slots};
pub use progress::{Progress, Trained};

#[cfg(doc)]
use crate::base::budget::Recovery;
use crate::base::error::Result;
use crate::learn::start::Start;
#[cfg(doc)]
use crate::network::gates::Signs;
use crate::operator::sensing::{Rows, Sensing};
use core::ops::ControlFlow;

/// Recovers a network of at most m neurons and s weights.
///
/// `memory` holds at least the words of the goal's [`Recovery`], with the operator's panel and its
/// scratch for all rows. `observe` is called after every outer step and at every checkpoint; where
/// it breaks, the run takes the best network down to s weights, fits it to all rows and ends; of
/// those steps it is told too, but its answers change nothing, and there are no more checkpoints.
/// From a network the search begins with [`Params::search_rows`] rows.
///
/// Inputs and labels may be of any scale: columns are weighed by their root mean square (one of
/// mean square below 1e-30 counts as zero), labels are scaled by an exact power of two.
///
/// # Errors
/// [`crate::Error::Range`] for sizes out of bounds, [`crate::Error::Length`] for labels or sizes
/// that do not fit the operator, [`crate::Error::Stopped`] if the operator ended the run before
/// there were weights, [`crate::Error::NotFinite`] for labels, inputs or a goal that are no
/// numbers, or weights beyond the range of floats, [`crate::Error::Budget`] with the bytes needed
/// and given, [`crate::Error::Diverged`] if gradients leave the range of floats,
/// [`crate::Error::Source`] if reading the data fails; the first two and
/// [`crate::Error::NotFinite`] for a checkpoint or a network that does not fit.
///
/// ```
/// use core::ops::ControlFlow::Continue;
/// use tamis::base::{budget::{Recovery, gated_words}, dims::Dims};
/// use tamis::data::samples::{NormalRows, Samples};
/// use tamis::{learn::{lm, start::Start}, network::gates::Signs, operator::gated::Gated};
/// // y = relu(2 x_0 - x_3) + relu(x_2 + x_3)
/// let mut x = NormalRows::new(1, 300, 6);
/// let mut labels = [0.0; 300];
/// for (k, y) in labels.iter_mut().enumerate() {
///     let mut row = [0.0; 6];
///     x.row(k, &mut row)?;
///     *y = (2.0 * row[0] - row[3]).max(0.0) + (row[2] + row[3]).max(0.0);
/// }
/// const SLOTS: usize = lm::slots(2, Signs::Positive);
/// let mut rows = [0.0; gated_words(6, SLOTS)];
/// let mut sensing = Gated::new(x, SLOTS, 1, &mut rows)?;
/// const DIMS: Dims = Dims::new(300, 6, 2, 4);
/// let mut memory = [0; Recovery::new(DIMS, 1, 306, false).words()];
/// let (goal, params) = (lm::Goal::one_output(DIMS), lm::Params::DEFAULT);
/// let found = lm::run(&mut sensing, &labels, goal, Start::Zero, &params, &mut memory, |_| Continue(()))?;
/// assert!(found.info.exact && found.network.nnz() == 4);
/// let blocks = found.network.w().blocks();
/// let mut neurons: Vec<Vec<(usize, f32)>> = blocks.map(|block| block.entries().collect()).collect();
/// neurons.sort_by_key(|entries| entries[0].0);
/// let expected = [[(0, 2.0), (3, -1.0)], [(2, 1.0), (3, 1.0)]];
/// for ((j, v), (i, u)) in neurons.iter().flatten().zip(expected.iter().flatten()) {
///     assert!(j == i && (v - u).abs() < 1e-5);
/// }
/// // From a network that is right, a search has nothing left to try.
/// let start = Start::Network(found.network);
/// let mut other = [0; Recovery::new(DIMS, 1, 306, false).words()];
/// let again = lm::run(&mut sensing, &labels, goal, start, &params, &mut other, |_| Continue(()))?;
/// assert!(again.info.exact && again.info.moves == 0 && again.info.kicks == 0);
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn run<'a, S: Sensing, H: Method<S>>(
    sensing: &mut S,
    labels: &Rows<S>,
    goal: Goal<H>,
    start: Start<'_, Checkpoint<'_>>,
    params: &Params,
    memory: &'a mut [u32],
    mut observe: impl FnMut(&Progress<'_>) -> ControlFlow<()>,
) -> Result<Trained<'a>, S::Source> {
    let observe = |progress: &Progress<'_>| observe(progress).is_continue();
    H::search(goal, sensing, labels, start, params, memory, observe)
}
