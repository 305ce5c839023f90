//! Experiments, pictures and benchmarks.

pub mod bench;
pub mod experiment;
pub mod plot;
