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
mod classes;
mod found;
mod imp;
mod keep;
mod layers;
mod limits;
mod memory;
mod model;
mod outputs;
mod plan;
mod problem;
mod recover;
mod score;
mod train;

pub use anneal::{AnnealOptions, AnnealOutcome, AnnealReport, anneal};
pub use imp::{ImpOutcome, ImpReport, ImpSettings, LevelReport, imp};
pub use keep::{Keep, Kept};
pub use limits::Limits;
pub use memory::peak_rss_bytes;
pub(crate) use memory::room_for;
pub use model::{Bytes, LayerCost, ModelCost, ModelFile};
pub use outputs::{OutputsOptions, Steps, train_outputs};
pub(crate) use plan::pool;
pub use plan::{Memory, Plan};
pub use problem::{Labels, Problem, Source, Task};
pub use recover::{RecoverOptions, Search, recover, recover_plan, resume};
pub use score::{MAX_PSNR_DB, Score};
pub use train::{Options, Outcome, Report, Size, train};
pub(crate) use train::{check_dims, check_recipe};
