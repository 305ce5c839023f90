//! What a run did, whatever the recipe; the fields are the keys of the command line's JSON.

use serde::Serialize;
use tamis::learn::optimiser::Optimiser;

use crate::data::Task;
use crate::model::Score;
use crate::operator::{Device, Placed};
use crate::train::dense::{Head, Rates, Serialised};
use crate::train::dynamic_options::SupportRule;
use crate::train::pinned::PinnedWeight;
use crate::train::plan::Plan;
use crate::train::scaling::Scale;

/// What a run did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Which recipe.
    pub recipe: &'static str,
    /// What was learnt.
    pub task: Task,
    /// Rows, n; those of a validation split included.
    pub samples: usize,
    /// Columns, d.
    pub inputs: usize,
    /// Outputs, c.
    pub outputs: usize,
    /// Requested hidden neurons; of a search for two layers those of the first.
    pub hidden: Neurons,
    /// Requested nonzeros, s, over all layers.
    pub requested_nnz: usize,
    /// How columns were mapped before training.
    pub scale: Scale,
    /// Nonzeros of the model: weights and biases. Pinned weights count, and are in the model, where they are 0 too.
    pub nnz: usize,
    /// Biases among them.
    pub biases: usize,
    /// The pinned weights and their values in the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<PinnedWeight>,
    /// Hidden neurons that have weights; of the dense baseline those that the output depends on.
    pub live: Neurons,
    /// Loss of the model on the rows trained on: mean squared error, or mean cross-entropy of
    /// classes.
    pub loss: f64,
    /// As [`crate::model::Score::psnr_db`], on these rows.
    pub psnr_db: Option<f64>,
    /// As [`crate::model::Score::zero_psnr_db`], on these rows.
    pub zero_psnr_db: Option<f64>,
    /// As [`crate::model::Score::accuracy`], on these rows.
    pub accuracy: Option<f64>,
    /// As [`crate::model::Score::class_from`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class_from: Option<f32>,
    /// Epochs done, the last one perhaps not to its end; of a search its outer steps; of the dense
    /// baseline those of a level; of several layers those of the joint fit.
    pub epochs: u32,
    /// Steps done; 0 for several layers.
    pub steps: u64,
    /// Random starts tried on some of the rows.
    pub trials: u32,
    /// Passes over all rows, products on fewer rows counted as fractions; 0 of the dense
    /// baseline, which counts steps.
    pub passes: f64,
    /// How the network was chosen by cross-validation, where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// What the recipe adds.
    #[serde(flatten)]
    pub details: Details,
    /// Steps before the run was resumed, those of trials included; 0 where it was not
    /// resumed.
    pub resumed_steps: u32,
    /// Which limit ended the run, `time` or `passes`.
    pub limit: Option<&'static str>,
    /// Whether the run was ended early on request.
    pub stopped: bool,
    /// Seconds of training and of scoring the result, without reading files.
    pub seconds: f64,
    /// Threads used.
    pub threads: usize,
    /// Where it was trained: `cpu`, or the name of a GPU's adapter.
    pub device: String,
    /// Bytes that moved between this machine's memory and the GPU's, data and labels included; none
    /// on the CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transferred_bytes: Option<u64>,
    /// Seed of everything that was drawn.
    pub seed: u64,
    /// Bytes of samples and labels.
    pub data_bytes: u64,
    /// Panel and tile used, for one hidden layer and for a search for two.
    #[serde(flatten)]
    pub plan: Option<Plan>,
    /// Bytes that survive from step to step; of several layers while most is held.
    pub state_bytes: u64,
    /// All other bytes.
    pub workspace_bytes: u64,
    /// The most memory that the process has had so far; none where the system does not say.
    pub peak_rss_bytes: Option<u64>,
    /// The most heap that training had beside the data; none in programs that do not count it.
    pub heap_peak_bytes: Option<u64>,
}

impl Report {
    /// Whether a model is better: by its loss, or of two classes by recipe `lm`, which need only be told apart,
    /// by the rows that are right.
    pub(crate) fn is_better(&self, than: &Self) -> bool {
        match (self.accuracy, than.accuracy) {
            (Some(a), Some(b)) if self.recipe == "lm" && a != b => a > b,
            _ => self.loss < than.loss,
        }
    }

    /// The same with the score on the rows trained on.
    pub(crate) fn scored(self, score: &Score) -> Self {
        let &Score { loss, psnr_db, zero_psnr_db, accuracy, class_from, .. } = score;
        Self { loss, psnr_db, zero_psnr_db, accuracy, class_from, ..self }
    }

    /// The same of a run on this operator.
    pub(crate) fn on(self, device: &Device, operator: &Placed) -> Self {
        let device = device.name().to_owned();
        Self { device, transferred_bytes: operator.transferred_bytes(), ..self }
    }

    /// State and workspace together.
    #[must_use]
    pub const fn total_bytes(&self) -> u64 {
        self.state_bytes.saturating_add(self.workspace_bytes)
    }

    /// What a search did; none for other recipes.
    #[must_use]
    pub const fn search(&self) -> Option<&SearchDetails> {
        if let Details::Lm(details) = &self.details { Some(details) } else { None }
    }

    /// What recipe `anneal` did; none for others.
    #[must_use]
    pub const fn anneal(&self) -> Option<&AnnealDetails> {
        if let Details::Anneal(details) = &self.details { Some(details) } else { None }
    }

    /// Loss and accuracy on the validation split; none of other recipes, and without it.
    #[must_use]
    pub const fn validation(&self) -> [Option<f64>; 2] {
        match &self.details {
            Details::Lm(details) => [details.validation_loss, details.validation_accuracy],
            Details::Anneal(details) => [details.validation_loss, details.validation_accuracy],
            Details::Dynamic(details) => [details.validation_loss, details.validation_accuracy],
            _ => [None, None],
        }
    }

    /// What was done for several hidden layers; none elsewhere.
    #[must_use]
    pub const fn layers(&self) -> Option<&LayersDetails> {
        if let Details::Layers(details) = &self.details { Some(details) } else { None }
    }

    /// What the dense baseline did; none for other recipes.
    #[must_use]
    pub const fn imp(&self) -> Option<&ImpDetails> {
        if let Details::Imp(details) = &self.details { Some(details) } else { None }
    }
}

/// A network that was compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tried {
    /// The recipe.
    pub recipe: &'static str,
    /// Neurons of the hidden layer; 0 for a linear model.
    pub hidden: usize,
    /// Weight decay of recipe `dynamic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_decay: Option<f32>,
    /// Mean share of left-out rows whose class is right; none for regression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// Mean loss on left-out rows.
    pub loss: f64,
    /// On how many folds.
    pub folds: usize,
}

/// How a network was chosen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Choice {
    /// Folds of the cross-validation.
    pub folds: usize,
    /// All that were compared.
    pub tried: Vec<Tried>,
    /// Which of them was taken.
    pub chosen: usize,
}

/// Neurons of hidden layers; as JSON a number for a recipe of one layer, else a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Neurons {
    /// Of the one layer.
    One(usize),
    /// Of each layer.
    Each(Vec<usize>),
}

impl Default for Neurons {
    fn default() -> Self {
        Self::Each(Vec::new())
    }
}

impl Neurons {
    /// Layer by layer.
    #[must_use]
    pub fn layers(&self) -> &[usize] {
        match self {
            Self::One(neurons) => std::slice::from_ref(neurons),
            Self::Each(layers) => layers,
        }
    }

    /// Of the first layer.
    #[must_use]
    pub fn first(&self) -> usize {
        self.layers().first().copied().unwrap_or(0)
    }
}

/// What a recipe adds to a report.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Details {
    /// Recipe `lm`.
    Lm(SearchDetails),
    /// Recipe `anneal`.
    Anneal(AnnealDetails),
    /// Recipe `paper` for one output.
    Paper(PaperDetails),
    /// Recipe `paper` for several outputs.
    Outputs(OutputsDetails),
    /// Recipe `imp`.
    Imp(ImpDetails),
    /// Of recipe `masked`.
    Masked(MaskedDetails),
    /// Of recipe `dynamic`.
    Dynamic(DynamicDetails),
    /// Several hidden layers, one by one.
    Layers(LayersDetails),
}

/// What the published method adds for one output.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PaperDetails {
    /// Largest eigenvalue that the `theory` step was given.
    pub beta: Option<f32>,
}

/// What the published method adds for several outputs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OutputsDetails {
    /// Length of the first step.
    pub step_size: f32,
    /// Epochs that diverged and were undone.
    pub undone: u32,
    /// Words of the count sketch that ranks the weights; 0 where none does.
    pub sketch_words: usize,
}

/// What a search adds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct SearchDetails {
    /// Requested neurons in the second hidden layer, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_hidden: Option<usize>,
    /// Neurons of the second hidden layer that have weights, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_live: Option<usize>,
    /// Whether the fit is exact in single precision: the loss is at most 3e-11 of the mean square
    /// of the labels.
    pub exact: bool,
    /// Rows that the search looked at first.
    pub search_rows: usize,
    /// Signs of the output weights while searching; `own` for several outputs, whose weights have
    /// signs of their own; `positive` for two layers, whose second one is summed up.
    pub signs: &'static str,
    /// Moves taken.
    pub moves: u32,
    /// Moves tried.
    pub tried: u32,
    /// Perturbations: restarts from the best network with some neurons dropped.
    pub kicks: u32,
    /// Neurons merged into others.
    pub merges: u32,
    /// Neurons flipped.
    pub flips: u32,
    /// Rows of the validation split; `loss` and what follows from it are about the others.
    pub validation_samples: usize,
    /// Mean squared error on the validation split; none without it.
    pub validation_loss: Option<f64>,
    /// As [`crate::model::Score::psnr_db`], on the validation split.
    pub validation_psnr_db: Option<f64>,
    /// As [`crate::model::Score::accuracy`], on the validation split.
    pub validation_accuracy: Option<f64>,
    /// Whether the search stopped early, for want of progress on the validation split.
    pub early: bool,
    /// Times that steps of the published method led from its network to a better one, and a search
    /// from there followed: after a search of one output with positive signs and no validation
    /// split that ended without an exact fit.
    pub turns: u32,
}

/// What recipe `anneal` adds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AnnealDetails {
    /// Classes that are told apart; a binary task has one output, the log-odds of class 1.
    #[serde(skip)]
    pub classes: usize,
    /// Rows of the validation split.
    pub validation_samples: usize,
    /// Mean cross-entropy on the validation split; none without it, and none where the run was
    /// ended before there was a best iterate on it.
    pub validation_loss: Option<f64>,
    /// Share of the validation split whose class is right.
    pub validation_accuracy: Option<f64>,
    /// Rows of a batch.
    pub batch: usize,
    /// Entries of the first support in units of s.
    pub start_factor: f64,
    /// Entries of the first support.
    pub start_nnz: usize,
    /// Factor that brings the inputs to the unit range, a power of two.
    pub input_scale: f32,
    /// Whether the run stopped early, for want of progress on the validation split.
    pub early: bool,
}

/// One hidden layer of several.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DeepLayer {
    /// Requested neurons.
    pub hidden: usize,
    /// Neurons that have weights in the model.
    pub live: usize,
    /// Nonzeros that it might take when it was trained, output weights of its own included.
    pub share: usize,
    /// Nonzeros that it has in the model.
    pub nnz: usize,
    /// Loss of the network that it was trained in.
    pub loss: f64,
    /// Bytes of what was stored beside the samples to train it on: what the layers before it make
    /// of all rows, or copies; 0 where it was trained on the samples themselves, or on what is made
    /// of a tile of them at a time.
    pub mapped_bytes: u64,
}

/// What several hidden layers add.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct LayersDetails {
    /// Each hidden layer.
    pub layers: Vec<DeepLayer>,
    /// Networks that were trained, of which the best is the model
    /// ([`crate::train::LayersOptions::grow`]).
    pub attempts: u32,
    /// Nonzeros of all layers as they were trained, before they were brought down to s together.
    pub grown_nnz: usize,
    /// Loss on the rows trained on before all layers were fitted together; none where they were
    /// not.
    pub untuned_loss: Option<f64>,
    /// Epochs of that fit, those between levels included.
    pub tune_epochs: u32,
    /// Bytes stored beside the samples to train a layer on ([`DeepLayer::mapped_bytes`]), while
    /// most is held.
    pub mapped_bytes: u64,
}

/// One level of the dense baseline: as it was trained, in the order of the dense products.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LevelReport {
    /// Weights that it trained.
    pub nnz: usize,
    /// Steps up to its end.
    pub steps: u64,
    /// Loss on the rows trained on.
    pub loss: f64,
    /// As [`crate::model::Score::psnr_db`].
    pub psnr_db: Option<f64>,
    /// As [`crate::model::Score::accuracy`].
    pub accuracy: Option<f64>,
    /// The same on the test rows, where there are some.
    pub test_loss: Option<f64>,
    /// As [`crate::model::Score::psnr_db`].
    pub test_psnr_db: Option<f64>,
    /// As [`crate::model::Score::accuracy`].
    pub test_accuracy: Option<f64>,
}

/// What the dense baseline adds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImpDetails {
    /// How the outputs are made.
    pub head: Head,
    /// Weights of the dense network.
    pub dense_nnz: usize,
    /// Rows of a batch.
    pub batch: usize,
    /// How a gradient became a step.
    #[serde(serialize_with = "Serialised::serialize")]
    pub optimiser: Optimiser,
    /// Step sizes.
    pub rates: Rates,
    /// Share of the weights that a round dropped.
    #[serde(rename = "prune_part")]
    pub prune_fraction: f64,
    /// Epoch that the weights were set back to.
    pub rewind: u32,
    /// Factor of the inputs while training, folded into the model.
    pub input_scale: f32,
    /// Rounds of pruning between levels that were trained to their end.
    pub rounds: usize,
    /// The levels.
    pub levels: Vec<LevelReport>,
    /// Bytes of a common dense implementation: weights, gradient, moments, activations of a batch.
    pub dense_bytes: u64,
}

/// What training under a mask did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MaskedDetails {
    /// Weights of the dense network.
    pub dense_nnz: usize,
    /// Weights of the mask.
    pub kept: usize,
    /// Weights of the mask on no path from an input to an output.
    pub dead_weights: usize,
    /// Rows of a batch.
    pub batch: usize,
    /// How a gradient became a step.
    #[serde(serialize_with = "Serialised::serialize")]
    pub optimiser: Optimiser,
    /// Step sizes.
    pub rates: Rates,
    /// First steps, over which the rate rose.
    pub warmup: u32,
    /// What inputs were multiplied by.
    pub input_scale: f32,
    /// Loss on the test rows.
    pub test_loss: Option<f64>,
    /// Fraction of the test rows whose class is right.
    pub test_accuracy: Option<f64>,
}

/// What training on a support that moves did.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DynamicDetails {
    /// How the support shrank and moved.
    pub support: SupportRule,
    /// How Adam's moments were held: `f32` or `bf16`.
    pub moments: &'static str,
    /// Weights of the dense network.
    pub dense_nnz: usize,
    /// Weights at the start.
    pub start_nnz: usize,
    /// Rows of a batch.
    pub batch: usize,
    /// The rate after the warm-up.
    pub rate: f32,
    /// Weight decay.
    pub decay: f32,
    /// First steps, over which the rate rose.
    pub warmup: u32,
    /// Starts that diverged, beside those that the report counts.
    pub diverged: u32,
    /// How often the support changed.
    pub changes: u32,
    /// Weights that were grown.
    pub grown: u64,
    /// Weights above s that were dropped at once, as the run ended before its support had shrunk.
    pub cut: u32,
    /// What inputs were multiplied by.
    pub input_scale: f32,
    /// Rows of the validation split.
    pub validation_samples: usize,
    /// Loss on the validation split; none without it.
    pub validation_loss: Option<f64>,
    /// Fraction of the validation split whose class is right.
    pub validation_accuracy: Option<f64>,
    /// Whether the run stopped early, for want of progress on the validation split.
    pub early: bool,
    /// Loss on the test rows.
    pub test_loss: Option<f64>,
    /// Fraction of the test rows whose class is right.
    pub test_accuracy: Option<f64>,
}
