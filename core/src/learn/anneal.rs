//! The recipe for classification: softmax cross-entropy on an annealed support.
//!
//! The network is `yhat = sum_i relu(w_i·x) wt_i^T` ([`crate::operator::factored`]); s counts the
//! nonzeros of both sides. Its c outputs are those of c classes, or one is the log-odds of class 1
//! against class 0 ([`crate::learn::loss::cross_entropy`]). Adam runs on a support whose entries
//! are all the state there is: nothing of the dense network's size exists.
//!
//! ```text
//! every step      one batch: Adam on the support, cosine learning rate after a linear warm-up
//! every R steps   drop  the entries of least |theta| sqrt(v)
//!                 clear neurons that have lost one side
//!                 grow  the entries of largest |gradient| / size of what they multiply, streamed panel by panel
//! the support     starts at `start_factor` s entries, shrinks cubically to s, is settled for the last part
//! ```
//!
//! # What is given
//!
//! A run that comes to its end gives the last iterate, or with a validation set the one of least
//! loss on it among those at the ends of epochs on the settled support. A run that is ended before
//! gives
//!
//! * while the support is larger than s, the s most important entries of the last complete step;
//! * once it has shrunk to s, the best on the validation set: of the last complete step and of
//!   those at the ends of epochs since then, where the first support had 2 s entries or more, so
//!   that there is room behind the support for the indices of the best one; otherwise of those at
//!   the ends of epochs on the settled support, and before, the last complete step;
//! * without a validation set, the last complete step.
//!
//! A run takes 20 bytes for each of the first support's `start_factor` s entries, 4 s for the best
//! iterate with a validation set, and 4 (n c + p (d + c) + d) for the residual of a batch of n
//! rows, a panel of p neurons and the columns' scales, besides the operator's scratch
//! ([`crate::base::budget::Annealing`]). A factor of 1 is for microcontrollers.
//!
//! Entries are dropped by what they are worth: `theta² v` is, up to a factor, the loss that their
//! removal adds by the diagonal of the Fisher information, of which v is Adam's running estimate.
//! They grow by their gradient over the size of what they multiply.
//!
//! Pinned weights ([`Params::must_keep`]) keep the value that they have, which may be 0; a neuron
//! of which only such weights are left says nothing until it grows a weight to an output again.
//! Weights are in units of the inputs, and measured in those of inputs that [`Params::input_scale`]
//! brings to about 1.

mod checkpoint;
mod params;
mod run;
mod state;

pub use checkpoint::{Checkpoint, Held, Info, Progress, State, Trained};
pub use params::Params;

#[cfg(doc)]
use crate::base::error::Error;
use crate::base::error::Result;
use crate::learn::loss::Classes;
use crate::learn::start::Start;
use crate::operator::factored::Factored;
use core::ops::ControlFlow;

/// Trains a classifier of `nnz` nonzero weights over both sides.
///
/// `memory` holds at least [`Params::budget`] words; `observe` is called after every step; [the
/// module](self) says what is the result of a run that it ends. An operator that fails with
/// [`Error::Stopped`] ends it too, within the step, which then has not been. A change of the
/// support that was begun is undone, and after one that was done the step of its batch is made; the
/// score that follows a step is taken, too. For this and for the final scores the operator must
/// work on after it has stopped once. A network to start from is the first support, which may have
/// as many entries as [`Params::start`] says.
///
/// The result has exactly s nonzeros unless fewer weights than that can change the loss (columns
/// that are zero on all rows, neurons that are inactive on all rows), or the run was ended.
///
/// # Errors
/// [`Error::Range`] for a size or a label out of bounds, [`Error::Length`] for labels that do not
/// fit, [`Error::NotFinite`] for parameters that are no numbers, [`Error::Budget`] with the bytes
/// needed and given, [`Error::Diverged`] with the step, [`Error::Stopped`] if the operator stopped
/// before the first step was done, [`Error::Source`] if reading the data fails; the first three for
/// a checkpoint or a network that does not fit.
///
/// ```
/// use core::ops::ControlFlow::Continue;
/// use tamis::base::{budget, dims::Dims, record::Record};
/// use tamis::learn::{anneal::{self, Checkpoint, Params}, loss::Classes, start::Start};
/// use tamis::{data::samples::Rows, operator::gated::Gated};
/// // Class 1 where the second input is the larger one.
/// let x: [f32; 80] = core::array::from_fn(|e| ((e * 37 + e / 2) % 17) as f32 / 16.0);
/// let labels: [u16; 40] = core::array::from_fn(|k| u16::from(x[2 * k + 1] > x[2 * k]));
/// let classes = Classes::new(&labels, 2);
/// let params = Params { epochs: 30, batch: 10, start_factor: 1.0, ..Params::DEFAULT };
/// let mut rows = [0.0; budget::gated_words(2, 3)];
/// let mut sensing = Gated::new(Rows::new(&x, 2)?, 3, 1, &mut rows)?;
/// let (mut memory, mut other, mut words) = ([0; 512], [0; 512], Vec::new());
/// // A run whose state after step 50 is stored.
/// let whole = anneal::run(&mut sensing, classes, 8, Start::Zero, &params, &mut memory, |progress| {
///     if progress.step == 50 {
///         progress.checkpoint.write(&mut |piece| Ok::<(), ()>(words.extend_from_slice(piece))).unwrap();
///     }
///     Continue(())
/// })?;
/// let budget = params.budget(Dims::new(40, 2, 3, 8), 2, 1, 0);
/// let from = Checkpoint::read(&Checkpoint::form(&budget), &words)?;
/// let start = Start::Checkpoint(&from);
/// let rest = anneal::run(&mut sensing, classes, 8, start, &params, &mut other, |_| Continue(()))?;
/// assert_eq!((rest.network, rest.info), (whole.network, whole.info));
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn run<'a, S: Factored>(
    sensing: &mut S,
    classes: Classes<'_, S::Machine>,
    nnz: usize,
    start: Start<'_, Checkpoint<'_>>,
    params: &Params<'_>,
    memory: &'a mut [u32],
    mut observe: impl FnMut(&Progress<'_>) -> ControlFlow<()>,
) -> Result<Trained<'a>, S::Source> {
    let mut run = run::Run::new(sensing, classes, nnz, start, params, memory)?;
    run.train(&mut observe)?;
    run.finish()
}
