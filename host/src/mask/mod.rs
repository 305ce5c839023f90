//! Masks at initialisation: which weights a network keeps, chosen before it is trained.
//!
//! Four things that do not know of each other make a mask, so that a new method is one function:
//!
//! | thing | where | what it is |
//! |---|---|---|
//! | score | `scores` | a number for each weight of a network, on rows where it needs some |
//! | selection | `select` | which weights have the largest scores, or are drawn by them |
//! | schedule | `rounds` | how many weights each round leaves |
//! | data | `rows` | labelled rows, unlabelled rows, random ones, or none |
//!
//! Networks come from files or from a seed (`network`), masks go to files of the same names and
//! shapes (`file`). From a seed, masks by flow, by magnitude and at random are made in core and the
//! dense network never is; all others are made from its weights in memory.

pub(crate) mod biases;
mod file;
mod find;
mod network;
mod options;
mod report;
mod rounds;
mod rows;
mod scores;
mod select;

pub use file::{export_weights, kind, read, weights_kind, write};
pub use find::{ReportedMask, find};
pub use network::{DenseLayers, InitialWeights, SourceNetwork};
pub use options::{InputSize, MaskOptions, Method, RowsNeeded, Scope, WeightLaw};
pub use report::MaskReport;
pub use rows::{RandomData, RandomSize, ScoredRows};
