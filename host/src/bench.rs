//! Ratios that anyone can measure, all within one run.

use std::fmt;

use serde::Serialize;

use crate::Result;

/// What to measure, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BenchOptions {
    /// Seed of the data.
    pub seed: u64,
    /// Threads; 0 for one per core.
    pub threads: usize,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchReport {}

impl fmt::Display for BenchReport {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

/// Measures.
///
/// # Errors
/// A measurement cannot be made.
pub fn run(_: &BenchOptions) -> Result<BenchReport> {
    Err(crate::Error::new("there are no benchmarks yet"))
}
