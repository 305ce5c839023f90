//! `tamis bench`

use clap::Args;

use super::common::Common;
use super::parse;
use crate::Result;
use crate::lab::bench;

/// Measure the fast operator against the reference and against plain matrix products, in one run.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis bench --rounds 21")]
pub(super) struct Bench {
    /// Rows of the data
    #[arg(long, value_name = "N", default_value_t = 50_000,
          value_parser = parse::whole::<usize>)]
    samples: usize,
    /// Rounds; the fastest of each counts
    #[arg(long, value_name = "R", default_value_t = 15,
          value_parser = parse::whole::<usize>)]
    rounds: usize,
}

impl Bench {
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        let report = bench::run(self.samples, self.rounds, common.seed)?;
        common.result(&report, || report.to_string())
    }
}
