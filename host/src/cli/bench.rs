//! `tamis bench`

use std::io::Write;

use clap::Args;

use super::console::{count, table};
use super::{Common, Console};
use crate::Result;
use crate::bench::{self, BenchOptions, BenchReport, ShapeReport};

/// Measure the fast operator against the reference and against plain matrix products, in one run.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis bench
  tamis bench --samples 10000 --rounds 3 --json")]
pub(super) struct Bench {
    /// Rows of the data
    #[arg(long, value_name = "N", default_value_t = BenchOptions::default().samples)]
    samples: usize,
    /// Rounds, of which the median counts
    #[arg(long, value_name = "N", default_value_t = BenchOptions::default().rounds)]
    rounds: usize,
}

impl Bench {
    pub(super) fn run(&self, common: &Common, console: &Console) -> Result<()> {
        let options = BenchOptions { samples: self.samples, rounds: self.rounds, seed: common.seed };
        let report = bench::run(&options, |shape| {
            if console.shows_progress() {
                let _ = writeln!(std::io::stderr(), "  measuring {shape}");
            }
        })?;
        console.result(&report, || summary(&report))
    }
}

fn summary(report: &BenchReport) -> String {
    let heading = ["shape", "of matrix product", "2 threads", "of reference", "gradient", "restricted"];
    let mut rows = vec![heading.map(String::from).to_vec()];
    rows.extend(report.shapes.iter().map(row));
    format!(
        "The blocked operator on {} hardware threads; gradients on one thread unless stated\n\n{}\n\n\
         Ratios are speeds: 60 % of the matrix product's rate, times one thread, times the reference operator.",
        report.threads,
        table(&rows)
    )
}

fn row(shape: &ShapeReport) -> Vec<String> {
    vec![
        format!("n={} d={} m={} s={}", count(shape.samples as u64), shape.inputs, shape.hidden, shape.nnz),
        format!("{:.0} %", 100.0 * shape.gradient_over_gemm),
        shape.two_threads_over_one.map_or("-".into(), |ratio| format!("{ratio:.2}×")),
        format!("{:.0}×", shape.blocked_over_reference),
        format!("{:.1} GFLOP/s", shape.gradient_gflops),
        format!("{:.2} GMAC/s", shape.normal_gmacs),
    ]
}
