//! What an observer sees of a run, and what the run leaves.

use super::checkpoint::Checkpoint;
use super::info::{Held, Info};
use crate::network::net::Network;

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

/// A finished run: the network, borrowed from the memory it was given, and what was done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trained<'a> {
    /// The network.
    pub network: Network<'a>,
    /// What was done.
    pub info: Info,
}
