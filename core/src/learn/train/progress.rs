//! What an observer sees of a run, and what the run leaves.

use super::checkpoint::Checkpoint;

/// What an observer sees after each step.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// Steps done.
    pub step: u32,
    /// Steps of the whole run, trials included, at the most.
    pub steps: u32,
    /// Which trial, from 1; 0 in the run on all rows.
    pub trial: u32,
    /// Loss on the batch before the last step, see [`Info::loss`]; NaN in the first call of a run
    /// that resumes from a checkpoint.
    pub loss: f32,
    /// Step size of the last step; 0 in that call.
    pub step_size: f32,
    /// Nonzeros after the last step, with those that must be kept, whatever their value.
    pub nnz: usize,
    /// Neurons that have weights.
    pub live: usize,
    /// Passes over all rows so far.
    pub passes: f32,
    /// Where the run stands; none once it is being ended.
    pub checkpoint: Option<Checkpoint<'a>>,
}

/// What a run did.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Info {
    /// Steps done on all rows.
    pub steps: u32,
    /// Epochs done on all rows, the last one perhaps in part.
    pub epochs: u32,
    /// Loss of the result over all rows: mean squared error over rows and outputs, or mean
    /// cross-entropy over rows.
    pub loss: f32,
    /// Nonzeros. Those that must be kept count, and are among the weights, where they are 0 too:
    /// they take as much memory.
    pub nnz: usize,
    /// Neurons that have weights.
    pub live: usize,
    /// Passes over all rows.
    pub passes: f32,
    /// Starts tried on the first rows; the best one, run again, counts once.
    pub trials: u32,
    /// Epochs of a safe run that diverged and were undone.
    pub undone: u32,
    /// Whether the observer or the operator ended the run.
    pub stopped: bool,
}

/// A finished run.
pub type Trained<'a> = crate::learn::start::Trained<'a, Info>;
