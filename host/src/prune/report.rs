//! What pruning did.

use serde::Serialize;

use super::options::{LassoOptions, Structured};
use crate::data::Task;
use crate::model::Score;

/// How good a network is on the rows that are scored; none of it without such rows.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Quality {
    /// As [`Score::loss`].
    pub loss: Option<f64>,
    /// As [`Score::accuracy`].
    pub accuracy: Option<f64>,
    /// As [`Score::psnr_db`].
    pub psnr_db: Option<f64>,
}

fn is_zero(epochs: &u32) -> bool {
    *epochs == 0
}

impl Quality {
    pub(super) fn of(score: &Score) -> Self {
        Self { loss: Some(score.loss), accuracy: score.accuracy, psnr_db: score.psnr_db }
    }

    /// Whether it is worse than another one: by accuracy, or else by loss.
    pub(super) fn is_below(&self, other: &Self) -> bool {
        match (self.accuracy.zip(other.accuracy), self.loss.zip(other.loss)) {
            (Some((own, other)), _) => own < other,
            (None, Some((own, other))) => own > other,
            (None, None) => false,
        }
    }
}

/// A network to compare with.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// Its widths, from the inputs to the outputs.
    pub widths: Vec<usize>,
    /// Its nonzeros.
    pub nnz: usize,
    /// Passes over all rows.
    pub epochs: u32,
    /// How good it is.
    #[serde(flatten)]
    pub quality: Quality,
}

/// What was pruned; the fields are the keys of the command line's JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PruneReport {
    /// How neurons and inputs were chosen; none where all stay.
    pub structured: Option<Structured>,
    /// What the model is for; none where nobody says.
    pub task: Option<Task>,
    /// Widths from the inputs to the outputs before.
    pub widths_before: Vec<usize>,
    /// Widths from the inputs to the outputs.
    pub widths: Vec<usize>,
    /// Inputs that have weights, before.
    pub inputs_read_before: usize,
    /// Inputs that have weights.
    pub inputs_read: usize,
    /// Nonzeros before: weights and biases.
    pub nnz_before: usize,
    /// Nonzeros asked for.
    pub requested_nnz: Option<usize>,
    /// Nonzeros of the model.
    pub nnz: usize,
    /// Biases among them.
    pub biases: usize,
    /// Nonzeros on no path from an input to an output.
    pub dead_weights: usize,
    /// Rows trained on; 0 for none.
    pub samples: usize,
    /// What the network was scored on: `test` rows, the `validation` split, or nothing.
    pub scored_on: Option<&'static str>,
    /// Rows of it.
    pub scored_samples: usize,
    /// As [`Score::loss_kind`].
    pub loss_kind: Option<&'static str>,
    /// Before.
    pub loss_before: Option<f64>,
    /// Before.
    pub accuracy_before: Option<f64>,
    /// Before.
    pub psnr_db_before: Option<f64>,
    /// After pruning at once, before fine-tuning.
    pub loss_pruned: Option<f64>,
    /// After pruning at once, before fine-tuning.
    pub accuracy_pruned: Option<f64>,
    /// After pruning at once, before fine-tuning.
    pub psnr_db_pruned: Option<f64>,
    /// Of the model.
    pub loss: Option<f64>,
    /// Of the model.
    pub accuracy: Option<f64>,
    /// Of the model.
    pub psnr_db: Option<f64>,
    /// Settings of the group lasso, where it was used.
    pub lasso: Option<LassoOptions>,
    /// Epochs of a dense network from nothing, before anything was cut.
    #[serde(skip_serializing_if = "is_zero")]
    pub dense_epochs: u32,
    /// Epochs under it.
    pub lasso_epochs: u32,
    /// Epochs of fine-tuning.
    pub epochs: u32,
    /// Nonzeros that were left in each round of pruning while it was fine-tuned.
    pub rounds: Vec<usize>,
    /// A dense network of the same widths, trained from nothing for as many epochs in all.
    pub scratch: Option<Compared>,
    /// The same, pruned to the same nonzeros in its last epochs.
    pub scratch_pruned: Option<Compared>,
    /// The network before, pruned by the magnitudes of its weights alone to the same nonzeros, over as
    /// many epochs as the groups had.
    pub unstructured: Option<Compared>,
    /// What there is to say of the result.
    pub notes: Vec<String>,
    /// Seconds, without reading files.
    pub seconds: f64,
    /// Seed of what was drawn.
    pub seed: u64,
}

/// A pruned model.
#[derive(Debug, Clone, PartialEq)]
pub struct PruneOutcome {
    /// The bytes of a `.tamis` file.
    pub model: Vec<u8>,
    /// What was done.
    pub report: PruneReport,
}
