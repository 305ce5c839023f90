//! Training: options, recipes, plans within a memory budget, checkpoints, reports. [`train`] is the
//! one way in.
//!
//! `paper`, `search`, `lm`, `anneal` and `imp` train one hidden layer; `layer` picks one of them;
//! `deep`, `path` and `driver` train whole networks.

pub(crate) mod anneal;
mod baseline;
pub(crate) mod budget;
pub(crate) mod check;
pub(crate) mod checkpoint;
mod choice;
pub(crate) mod deep;
pub mod dense;
pub(crate) mod driver;
pub(crate) mod dynamic;
pub(crate) mod dynamic_memory;
pub(crate) mod dynamic_options;
pub(crate) mod encode;
pub(crate) mod finetune;
mod folds;
pub(crate) mod imp;
pub(crate) mod joint;
mod labels;
pub(crate) mod layer;
pub(crate) mod lm;
mod lm_options;
pub(crate) mod mask;
pub mod masked;
pub(crate) mod network;
pub(crate) mod offsets;
pub(crate) mod ones;
pub(crate) mod options;
pub(crate) mod paper;
mod paper_options;
pub(crate) mod path;
pub(crate) mod pinned;
pub(crate) mod plan;
pub(crate) mod progress;
pub(crate) mod refit;
pub(crate) mod report;
pub(crate) mod resume;
pub(crate) mod scaled;
pub mod scaling;
pub(crate) mod search;
pub(crate) mod threshold;
pub(crate) mod trained;
mod units;

pub use baseline::{Baseline, Baselines, Beaten};
pub use budget::{Budget, Memory};
pub(crate) use check::check_dims;
pub(crate) use checkpoint::is_writing;
pub use checkpoint::{Checkpoint, CheckpointFile};
pub use dense::job::ImpSettings;
pub use driver::{checkpoint_file, forecast, plan, train, train_with, trains_layers};
pub use dynamic_options::{Augmentation, DynamicOptions, SupportRule};
pub use finetune::{FinetuneMethod, FinetuneOptions, FinetuneOutcome, FinetuneReport, finetune};
pub use lm_options::LmOptions;
pub use network::SparseNetwork;
pub(crate) use options::check_recipe;
pub use options::{AnnealOptions, CheckpointOptions, LayersOptions, Options, Recipe};
pub use paper_options::{OutputsOptions, PaperOptions};
pub use path::{PathOptions, PathOutcome, PathPoint, PathReport, train_path};
pub(crate) use pinned::parse_weight;
pub use pinned::{PinnedWeight, PinnedWeights};
pub(crate) use plan::pool;
pub use plan::{Forecast, Plan};
pub use progress::{Progress, Stage, StepDetails};
pub use report::{
    AnnealDetails, Choice, DeepLayer, Details, DynamicDetails, ImpDetails, LayersDetails,
    LevelReport, MaskedDetails, Neurons, OutputsDetails, PaperDetails, Report, SearchDetails,
    Tried,
};
pub use scaling::{Scale, Scaling};
pub use tamis::learn::deep::dynamic::Moments;
pub use trained::{Start, Trained};
