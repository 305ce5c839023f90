//! What an observer sees of a search, and what the search leaves.

use super::checkpoint::{Checkpoint, Info, Phase};

/// The state of a run: after each outer step, and at each checkpoint.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// What it is doing.
    pub phase: Phase,
    /// Outer steps so far.
    pub step: u32,
    /// Mean squared error on the rows looked at, in squares of the labels' unit; of what is above or
    /// below what outputs may be, with a [ceiling](super::Params::ceiling).
    pub loss: f32,
    /// The least so far on these rows of networks that may be the result; infinite before there is
    /// one.
    pub best: f32,
    /// The least so far on these rows, whatever the support; from [`Phase::AllRows`] on, of
    /// networks since then.
    pub search_best: f32,
    /// Weights now, those of the linear term included.
    pub support: usize,
    /// Neurons that have weights now.
    pub live: usize,
    /// Moves taken.
    pub moves: u32,
    /// Restarts.
    pub perturbations: u32,
    /// [`Info::rows_read`].
    pub rows_read: u64,
    /// Between two stages, besides the calls after steps: all that is needed to resume from here.
    pub checkpoint: Option<Checkpoint<'a>>,
}

/// A finished run.
pub type Trained<'a> = crate::learn::start::Trained<'a, Info>;
