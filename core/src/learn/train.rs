//! The published method, hard thresholding: epochs, minibatches, and when the gates follow the
//! weights.
//!
//! **One output** ([`OneOutput`]). Phase 1 keeps random generators (a convex problem); from then on
//! the gates are renewed from the current weights (sequential convex programming, paper IHT,
//! section 1.3 of the method). With a renewal at every step the current weights *are* the
//! generators, and two sparse vectors are all the state there is.
//!
//! **Several outputs** ([`SeveralOutputs`]), values or classes: `yhat = sum_i relu(w_i·x) wt_i^T`,
//! both sides sparse under one budget s, with steps of a fixed length.
//!
//! After every step the observer is offered a [`Checkpoint`] to resume from, as in the example of
//! [`crate::learn::anneal::run`].

mod checkpoint;
mod heads;
mod run;
mod schedule;
mod state;

pub use checkpoint::{Checkpoint, Info, Progress, State, Trained};
pub use heads::{OneOutput, Rank, Refresh, SeveralOutputs, Standin};
pub use schedule::{Schedule, Trials};

use crate::base::error::{Error, Result};
use crate::learn::loss::Labels;
use crate::learn::start::Start;
use crate::operator::sensing::Sensing;
use core::ops::ControlFlow;
use run::{Method, Run};

/// Trains a network of one hidden layer to at most `nnz` nonzero weights, those to several outputs
/// included.
///
/// `memory` holds at least the words of the schedule's budget; `observe` is called after every
/// step. An operator that fails with [`Error::Stopped`] ends the run too, within the step, which
/// then has not been: the result is that of the last complete one, or the best iterate of a safe
/// run. Ended during the trials, the result is the best start so far; if that is not the last one,
/// it is run again first. For this, and for the final loss, the operator must work on after it has
/// stopped once.
///
/// # Errors
/// [`Error::Range`] for sizes, settings or labels out of bounds and for too many weights that must
/// be kept, [`Error::Unsorted`] where these do not rise, [`Error::Length`] for labels that do not
/// fit, [`Error::NotFinite`] for labels that are no numbers, [`Error::Budget`] with the bytes
/// needed and given, [`Error::Diverged`] with the step where the weights leave the finite numbers
/// and the run is not safe, [`Error::Source`] if reading the data fails; the first three and
/// [`Error::NotFinite`] for a checkpoint or a network that does not fit.
///
/// ```
/// use core::ops::ControlFlow::Continue;
/// use tamis::{base::budget, base::dims::Dims, data::samples::{NormalRows, Samples}, operator::gated::Gated};
/// use tamis::learn::{loss::Labels, start::Start, train::{self, Schedule}};
/// let x = NormalRows::new(1, 400, 8);
/// let mut row_memory = [0.0; budget::gated_words(8, 1)];
/// let mut sensing = Gated::new(x, 1, 1, &mut row_memory)?;
/// // y = relu(2 x_3)
/// let mut y = [0.0; 400];
/// for (k, y) in y.iter_mut().enumerate() {
///     let mut row = [0.0; 8];
///     { x }.row(k, &mut row)?;
///     *y = (2.0 * row[3]).max(0.0);
/// }
/// let (labels, schedule) = (Labels::values(&y), Schedule::PAPER);
/// let mut memory = [0; Schedule::PAPER.budget(Dims::new(400, 8, 1, 1), 1, 408).words()];
/// let trained = train::run(&mut sensing, labels, 1, Start::Zero, &schedule, &mut memory, |_| Continue(()))?;
/// assert_eq!(trained.network.w().index(), [3]);
/// assert!((trained.network.w().value()[0] - 2.0).abs() < 1e-5);
/// // The same with a weight from input 6, which says nothing, whatever its size.
/// let keeping = Schedule { must_keep: &[6], ..schedule };
/// let mut other = [0; Schedule::PAPER.budget(Dims::new(400, 8, 1, 2), 1, 408).words()];
/// let start = Start::Network(trained.network);
/// let trained = train::run(&mut sensing, labels, 2, start, &keeping, &mut other, |_| Continue(()))?;
/// assert_eq!(trained.network.w().index(), [3, 6]);
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn run<'a, S: Sensing, H: Method<S>>(
    sensing: &mut S,
    labels: Labels<'_, S::Machine>,
    nnz: usize,
    start: Start<'_, Checkpoint<'_>>,
    schedule: &Schedule<'_, H>,
    memory: &'a mut [u32],
    mut observe: impl FnMut(&Progress<'_>) -> ControlFlow<()>,
) -> Result<Trained<'a>, S::Source> {
    let mut run = Run::new(sensing, labels, nnz, start, schedule, memory).map_err(Error::widen)?;
    run.train(&mut observe)?;
    let loss = run.loss()?;
    Ok(run.finish(loss))
}
