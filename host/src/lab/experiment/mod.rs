//! Experiments: a figure or table of many independent trainings or measurements, as data; run cell
//! by cell, and reported.
//!
//! ```text
//! spec (TOML) ── profile ──> resolved spec ──> cells ──> runner: a process per cell ──> store: a file per cell
//!                                                                                         │
//!                             page, tables, heat maps, published figures  <── report ─────┘
//! ```

pub(crate) mod cell;
mod compare;
mod course;
mod covertype;
mod dense;
pub(crate) mod environment;
pub mod figures;
mod imp;
pub(crate) mod known;
mod masked;
mod masks;
mod picture;
mod planted;
pub(crate) mod problem;
pub(crate) mod record;
pub(crate) mod report;
mod row;
pub(crate) mod runner;
pub(crate) mod solve;
pub(crate) mod spec;
pub(crate) mod store;
pub(crate) mod theory;

pub use cell::Cell;
pub(crate) use cell::{Choice, Place, Shard};
pub(crate) use record::Record;
pub use spec::Spec;
pub(crate) use store::Store;
