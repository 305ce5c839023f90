//! What an observer sees of a run, and what the run leaves.

use super::checkpoint::{Checkpoint, Held};

/// What a run did.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Info {
    /// Steps done.
    pub steps: u32,
    /// Epochs done, the last one perhaps in part.
    pub epochs: u32,
    /// The result on the training rows.
    pub training: Held,
    /// The result on the validation rows; none without such rows, and none where the run ended
    /// before there was a best iterate on them.
    pub validation: Option<Held>,
    /// Entries that the run started with.
    pub start: usize,
    /// Nonzeros of both sides. Weights that must be kept count where they are 0 too.
    pub nnz: usize,
    /// Neurons that have weights on both sides, and those that have only such as must be kept.
    pub live: usize,
    /// As [`super::Progress::rows_read`], with the scores of the result.
    pub rows_read: u64,
    /// Whether the observer or the operator ended the run.
    pub stopped: bool,
    /// Whether the run ended early for want of progress on the validation rows.
    pub early: bool,
}

/// What an observer sees after each step.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// Steps done.
    pub step: u32,
    /// Steps of the whole run, at the most.
    pub steps: u32,
    /// Steps of an epoch.
    pub epoch_steps: u32,
    /// Mean cross-entropy on the batch before the last step; NaN in the first call of a run that
    /// resumes from a checkpoint.
    pub loss: f32,
    /// Learning rate of the last step.
    pub rate: f32,
    /// Entries of the support.
    pub nnz: usize,
    /// Neurons that have weights from the inputs.
    pub live: usize,
    /// Rows read so far: a product with a row, forward or back, is one. Steps, growth and
    /// evaluations count.
    pub rows_read: u64,
    /// Loss and accuracy at the last evaluation on the validation rows.
    pub validation: Option<Held>,
    /// Where the run stands; none once it is being ended.
    pub checkpoint: Option<Checkpoint<'a>>,
}

/// A finished run.
pub type Trained<'a> = crate::learn::start::Trained<'a, Info>;
