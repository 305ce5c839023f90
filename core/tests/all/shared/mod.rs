//! What the tests of the search share for networks of one output and of several.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by it"
)]

mod data;
pub(crate) mod problem;

pub(crate) use data::{Data, normal_rows, params};
