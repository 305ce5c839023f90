//! What tests share: problems of one output and of several, and an operator that ends a run.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by it"
)]

mod data;
pub(crate) mod ending;
pub(crate) mod problem;

pub(crate) use data::{Data, normal_rows, params};
