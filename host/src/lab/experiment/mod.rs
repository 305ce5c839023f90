//! Experiments: a figure or table of many independent trainings or measurements, as data; run cell
//! by cell, and reported.
//!
//! ```text
//! spec (TOML) ── profile ──> resolved spec ──> cells ──> runner: a process per cell ──> store: a file per cell
//!                                                                                         │
//!                             page, tables, heat maps, published figures  <── report ─────┘
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`spec`] | what a figure is: data, grid, methods, settings; profiles that change parts of it; its hash |
//! | [`figures`] | the specs that ship with the command |
//! | [`cell`] | one training: figure, method, m, s, seed; a name that never changes |
//! | [`problem`] | the data of a cell, from a seed or from files |
//! | `planted`, `compare` | rows of other distributions and noise; whether the network found is the planted one |
//! | [`solve`] | one way to call the library's runs for every method, and what is recorded of each |
//! | [`theory`] | what the checks of the theory measure in place of a training |
//! | [`record`], [`environment`] | the record of a cell, and the machine |
//! | [`store`] | a results folder: a small file per cell, written whole or not at all |
//! | [`runner`] | which cells are missing, and a process of its own for each |
//! | [`known`] | published figures, and those that were measured of the authors' code |
//! | [`report`] | tables, heat maps, curves and one page |

pub(crate) mod cell;
mod compare;
mod course;
pub(crate) mod environment;
pub mod figures;
pub(crate) mod known;
mod median;
mod picture;
mod planted;
pub(crate) mod problem;
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod runner;
pub(crate) mod solve;
pub(crate) mod spec;
pub(crate) mod store;
pub(crate) mod theory;

pub use cell::Cell;
pub(crate) use cell::Shard;
pub(crate) use record::Record;
pub use spec::Spec;
pub(crate) use store::Store;
