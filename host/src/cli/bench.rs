//! `tamis bench`

use clap::Args;

use super::{Common, Console};
use crate::Result;
use crate::bench::{self, BenchOptions};

/// Measure the fast operator against the reference and against plain matrix products, in one run.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis bench --threads 2")]
pub(super) struct Bench {}

impl Bench {
    #[expect(clippy::unused_self, reason = "every verb runs the same way")]
    pub(super) fn run(&self, common: &Common, console: &Console) -> Result<()> {
        let report = bench::run(&BenchOptions { seed: common.seed, threads: common.threads() })?;
        console.result(&report, || report.to_string())
    }
}
