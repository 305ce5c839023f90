//! Runs behind the command line, as library calls: data from files, training within a byte budget, scores, models.
//!
//! ```text
//! Source::load -> Problem -> train(Options) -> Outcome: weights, model bytes, Report
//!                                 ModelFile -> predict -> Score
//! ```
//!
//! ```
//! use tamis::{dims::Dims, gates::Signs};
//! use tamis_host::{data::planted, operator::Stop, run::{self, Options, Problem, Size, Task}};
//!
//! let planted = planted::network(Dims::new(600, 16, 1, 3), Signs::Positive, 1)?;
//! let problem = Problem { data: planted.data, labels: planted.labels, task: Task::Regression };
//! let options = Options::new(1, Size::Nonzeros(3));
//! let outcome = run::train(problem, &options, &Stop::new(), |_| true)?;
//! assert_eq!(outcome.index, planted.index);
//! assert!(outcome.report.psnr_db.unwrap() > 100.0);
//! # Ok::<(), tamis_host::Error>(())
//! ```

mod anneal;
mod before;
mod classes;
mod compare;
mod deep;
mod export;
mod fallback;
mod finetune;
mod found;
mod imp;
mod import;
mod keep;
mod layers;
mod limits;
mod memory;
mod model;
mod must_keep;
mod outputs;
mod path;
mod plan;
mod predict;
mod problem;
mod quantise;
mod recipe;
mod recover;
mod refit;
mod rest;
mod score;
mod single;
mod target;
mod train;
mod windows;

pub use anneal::{AnnealOptions, AnnealOutcome, AnnealReport, anneal, resume_anneal};
pub use compare::{ComparedLayer, Comparison, Difference, TraceLog, TracedRow};
pub use deep::{
    DeepLayer, DeepOptions, DeepOutcome, DeepProgress, DeepReport, LAYER_GROWTH, LAYER_KICKS, train_deep,
};
pub use export::{ExportForm, ExportReport, Exported, check_name, export};
pub use finetune::{
    FinetuneMethod, FinetuneOptions, FinetuneOutcome, FinetuneProgress, FinetuneReport, finetune,
};
pub use imp::{ImpOutcome, ImpReport, ImpSettings, LevelReport, imp};
pub use import::{Cut, ImportOptions, ImportOutcome, ImportReport, ImportedLayer, import};
pub use keep::{Form, Keep, Keeps, Kept, Offers, Record};
pub use limits::Limits;
pub(crate) use memory::room_for;
pub use memory::{HeapPeak, peak_rss_bytes};
pub use model::{Bytes, IntegerScales, LayerCost, ModelCost, ModelFile};
pub(crate) use must_keep::parse_weight;
pub use must_keep::{KeepList, KeptWeight, must_keep};
pub use outputs::{OutputsOptions, Steps, resume_outputs, train_outputs};
pub use path::{PathOptions, PathOutcome, PathPoint, PathProgress, PathReport, train_path};
pub(crate) use plan::pool;
pub use plan::{Memory, Plan};
pub use predict::score_model;
pub use problem::{Labels, Problem, Source, Task};
pub use quantise::{
    Granularity, QuantiseOptions, QuantiseOutcome, QuantiseReport, QuantisedLayer, TuneOptions, TuneProgress,
    TuneReport, quantise, quantise_until,
};
pub use recipe::{published, usual_recipe};
pub(crate) use recover::is_sum;
pub use recover::{RecoverOptions, Search, recover, recover_from, recover_plan, resume};
pub use score::{MAX_PSNR_DB, Score};
pub use single::LayerRecipe;
pub use target::{Limit, Limited, Needs, PARTS, Part, Target, TargetCost, WayNeeds};
pub use train::{Options, Outcome, Report, Size, resume_train, train, train_from};
pub(crate) use train::{check_dims, check_recipe};
