//! Experiments, pictures and benchmarks.

pub(crate) mod bench;
pub mod experiment;
pub mod plot;
