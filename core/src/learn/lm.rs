//! Exact recovery: Levenberg-Marquardt hard thresholding with local search moves.
//!
//! Labels that a sparse network made are given back by that network, to the rounding of the labels,
//! where plain hard thresholding ([`crate::learn::train`]) ends in a local minimum. Memory is a few
//! vectors on supports of at most 1.75 s weights, and gradients streamed in panels
//! ([`crate::base::budget::Recovery`]).
//!
//! ```text
//! start      random gates: the s largest |g|/c, w = g/c² on them; one factor for all; 3 LM steps
//!   │
//! descend    outer steps while one leaves at most 85 % of the loss:
//!   │          grow by the 0.5 s largest |g|/c · 2 LM · threshold to 1.25 s by |w| |column| · 2 LM
//!   │
//! moves ◄─┐  an exact fit is finished, which ends the search where the network is found, and again
//!   │     │  with a quarter of its loss; the better one of both goes on;
//!   │     │  flip mirror images back, flip neurons that lower the loss, merge those of one hinge,
//!   │     │  pair by pair where all blocks are in use and all at once spoil the fit;
//!   │     │  candidates by ⟨r, φ⟩²/|φ|²: new neurons from inputs and random gates, splits
//!   │     │  from 24 neurons on: one candidate for every 12 neurons at once, while 70 % is in reach;
//!   │     │  else up to 24, 6 at a time: apply · 2 LM · up to 4 outer steps while one leaves 95 %;
//!   │     │  one that leaves 70 % of the loss is taken at once, the best of a batch from 98 % on;
//!   ├─────┘  then descend
//!   │ no candidate helps
//! restart    the best network without a fifth of its neurons, or more after restarts without
//!   │        progress; descend; back to the moves. On four times the rows, from the best network,
//!   │        where all rows refute it or restarts make no progress
//!   │ exact, or no restart is left
//! finish     merge · flip mirror images back · threshold to s, a third of the excess at a time,
//!   │        5 LM between · lighter, fold the linear term · m neurons · 5 LM where that is exact
//!   │        exact at 1.25 s weights but not at s: restart, or the end with unoriented neurons
//! all rows   LM on all rows; where an exact fit of some rows is not the network on all, search on
//!   │        four times as many
//! polish     an exact fit: drop small weights, merge and turn neurons, as long as it stays as exact;
//!            grow what is missing from s, where that makes it more exact
//!            else outer steps at exactly s weights, as long as they help; the plain method from
//!            the start; with one output and at most [`EXCHANGED`] weights each in turn for others, by
//!            [`Params::exchange_rows`], and of the networks before and after the better one on all rows
//! ```
//!
//! g is the gradient, r the residual, `c_j` the root mean square of input j, φ the change that a
//! candidate makes. An LM step solves the least-squares problem of the current gates, damped, by
//! conjugate gradients, and is accepted only where the loss of the true network falls.
//!
//! **Two classes** need only be told apart: with a [`Params::ceiling`] outputs may be above a label, rows
//! on which they are leave the equations of a step, and the loss is that of the others.
//!
//! With [`Signs::Free`] and [`Signs::Unoriented`] the search has a linear term in block 0, with which
//! a neuron may point either way at no cost, since `relu(z) = z + relu(-z)`. It does not count in s,
//! and is folded into the neurons at the end. Then [`Params::first`] steps of Adam on a moving support
//! may take the place of the start: they find nearly all neurons of large networks.
//!
//! **Several outputs** ([`Goal::several_outputs`]): `f = sum_i relu(w_i · x) wt_i`, with W and Wt
//! sparse under one budget s. Steps change both sides at once, and all measures are free of how a
//! neuron's scale is split between its sides: a weight counts as `|w_ij| c_j b_i` or `|wt_ik| a_i`,
//! with `b_i` the size of `wt_i` where the neuron is active and `a_i` the root mean square of its
//! activation. A new neuron alternates its sides, each the least squares of the residual for the
//! other one.
//!
//! **Two hidden layers** ([`Goal::two_layers`]): `f = sum_k relu(sum_i V_ik relu(w_i · x))` is the
//! network of several outputs with another head, the sum of its open outputs: its residual is that
//! of each of these, one number a row and a bit for every output. While searching, output 0 adds up activations without a
//! gate, and its weights do not count in s; at the end the signs of the second layer are chosen so
//! that few of them are left, which become a neuron. Further moves add a neuron to the second layer
//! from a pair of activations, `relu(a_i - t a_j)`, and flip a neuron of the first layer that is
//! folded over into another one.
//!
//! **Validation** ([`Params::validation`]): noise in the labels is fitted too well by the best
//! support of the search. So no step sees the last rows, and of the networks of at most s weights,
//! to which each best one is brought down before the next restart, the best on them is the result.
//!
//! **Repeated columns**: a column that is a multiple of an earlier one, to rounding, gets no
//! weights.
//!
//! **Few weights for the labels**: where n ≤ d, output weights are positive, and s is less than
//! twice the labels that are not 0, e.g. in images, searches end with labels that no neuron is
//! active for, whose gradient is zero. So these rows are *covered* while searching: the neuron
//! nearest to activity counts there as if it were active. The search works at s weights; its first
//! move is a swap, some weights more and, some steps later, as many less; a restart that leaves no
//! neuron begins from other gates. The cover takes
//! [`crate::base::budget::Recovery::cover_words`]; results are judged without it.
//!
//! **Every loop is bounded**: a run ends after at most [`Params::steps`] outer steps, and makes at
//! most [`Params::perturbations`] restarts on each number of rows, of which there are at most
//! `log_4(n / n0) + 1`; an LM step makes at most 7 attempts of at most [`Params::products`]
//! products; a way down to k weights or neurons has at most `log_1.5(k) + 2` cuts, each a third of
//! the excess. An operator that fails with [`crate::Error::Stopped`] ends the run as the observer
//! does: with the best network so far, brought to s weights in few steps.
//!
//! Sources: K. Levenberg (1944) and D. Marquardt (1963) for the damped step; T. Blumensath and M.
//! Davies (2009) for hard thresholding, S. Foucart (2011) for least squares on its supports; M.
//! Pilanci and T. Ergen (2020) for networks as gated linear ones. The moves, and trying each before
//! it is taken, are Tamis's own.
#![allow(clippy::neg_cmp_op_on_partial_ord, reason = "a NaN must end a loop or fail a test")]

mod checkpoint;
mod cover;
mod equations;
mod exchange;
mod factors;
#[cfg(feature = "first-phase")]
mod first;
mod fit;
mod fold;
mod goal;
mod lighten;
mod method;
mod mirror;
mod model;
mod moves;
mod neuron;
mod orient;
mod params;
mod parts;
mod progress;
mod search;
mod share;
mod sides;
mod signed;
mod solver;
mod stages;
mod support;
mod trial;

pub use checkpoint::{Checkpoint, Info, Phase, State};
pub use goal::{Goal, OneOutput, SeveralOutputs, TwoLayers};
pub use method::Method;
pub use params::{EXCHANGED, Params, second_slots, slots};
pub use progress::{Progress, Trained};

#[cfg(doc)]
use crate::base::budget::Recovery;
use crate::base::error::Result;
use crate::learn::start::Start;
#[cfg(doc)]
use crate::network::gates::Signs;
use crate::operator::sensing::{Rows, Sensing};
use core::ops::ControlFlow;
use method::Run;

/// Recovers a network of at most m neurons and s weights.
///
/// `memory` holds at least the words of the goal's [`Recovery`], with the operator's panel and its
/// scratch for all rows, unless that is for random gates alone
/// ([`Sensing::always_needs_scratch`]). `observe` is called after every outer step and at every checkpoint; where
/// it breaks, the run takes the best network down to s weights, fits it to all rows and ends, in
/// steps that are observed too, without checkpoints. From a network the search begins with
/// [`Params::search_rows`] rows.
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
/// let (start, observe) = (Start::Zero, |_: &lm::Progress<'_>| Continue(()));
/// let trained = lm::run(&mut sensing, &labels, goal, start, &params, &mut memory, observe)?;
/// assert!(trained.info.exact && trained.network.nnz() == 4);
/// let blocks = trained.network.w().blocks();
/// let mut neurons: Vec<Vec<_>> = blocks.map(|block| block.entries().collect()).collect();
/// neurons.sort_by_key(|entries| entries[0].0);
/// let expected = [[(0, 2.0), (3, -1.0)], [(2, 1.0), (3, 1.0)]];
/// for ((j, v), (i, u)) in neurons.iter().flatten().zip(expected.iter().flatten()) {
///     assert!(j == i && (v - u).abs() < 1e-5);
/// }
/// // From a network that is right, a search has nothing left to try.
/// let start = Start::Network(trained.network);
/// let mut other = [0; Recovery::new(DIMS, 1, 306, false).words()];
/// let again = lm::run(&mut sensing, &labels, goal, start, &params, &mut other, |_| Continue(()))?;
/// assert!(again.info.exact && again.info.moves == 0 && again.info.perturbations == 0);
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
    H::search(goal, Run { sensing, labels, start, params: *params, memory, observe })
}
