//! `tamis bench`

use std::path::PathBuf;

use clap::Args;

use super::common::Common;
use super::parse;
use crate::Result;
use crate::lab::bench;

/// Measure the fast operator against the reference and plain matrix products, and training under a
/// mask against the peak of the processor, in one run.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis bench --rounds 21
  tamis bench --numpy python3")]
pub(super) struct Bench {
    /// Rows of the data
    #[arg(long, value_name = "N", default_value_t = 50_000,
          value_parser = parse::whole::<usize>)]
    samples: usize,
    /// Rounds; the fastest of each counts
    #[arg(long, value_name = "R", default_value_t = 15,
          value_parser = parse::whole::<usize>)]
    rounds: usize,
    /// A Python that has numpy, to measure dense weights times a mask beside training under it
    #[arg(long, value_name = "PYTHON")]
    numpy: Option<PathBuf>,
}

impl Bench {
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        let report = bench::run(self.samples, self.rounds, common.seed, self.numpy.as_deref())?;
        common.result(&report, || report.to_string())
    }
}
