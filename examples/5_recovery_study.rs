//! Measures the recovery recipe on planted networks: a grid of sizes beside the published recipe, an ablation, phase
//! diagrams of exact recovery, other inputs, and noise in the labels. It writes tables and heat maps.
//!
//! Every finished run is a line in a checkpoint. Stop it whenever you like, with Ctrl-C too; started again it goes on
//! where it was, and only the run under way is lost. `--hours 0` writes the tables anew from what is there. Everything
//! takes about a day on one core; cheap cells come first.
//!
//! Run: `cargo run --release -p tamis-examples --example 5_recovery_study -- --hours 1 -o docs/results/recovery`

use std::path::PathBuf;

use clap::Parser;
use tamis_examples::study::{self, Part, Settings};

/// Measure the recovery recipe on planted networks; goes on where it was stopped.
#[derive(Debug, Parser)]
struct Arguments {
    /// Start no run after so many hours; 0 only writes the tables. Without it, until all is measured
    #[arg(long, value_name = "H")]
    hours: Option<f64>,
    /// Seeds of a cell: of the ablation at most 3, of the phase diagrams twice as many
    #[arg(long, default_value_t = 5)]
    seeds: u64,
    /// Seconds that each recipe may take in one run; in the phase diagrams a sixth of it
    #[arg(long, default_value_t = 60.0)]
    cell_seconds: f64,
    /// Run only these parts
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = Part::ALL)]
    only: Vec<Part>,
    /// Run only cells with at most so many neurons and weights
    #[arg(long, default_value_t = usize::MAX, hide_default_value = true)]
    up_to: usize,
    /// Run only cells whose line of progress has this text in it, such as pixels or "m=20 s=100"
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    matching: String,
    /// Threads of the recipes; 0 for one per core
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// The folder with the MNIST files, for pixels as inputs; without it that of `TAMIS_MNIST`, or ../shared/data/mnist
    #[arg(long, value_name = "FOLDER")]
    mnist: Option<PathBuf>,
    /// The folder for the checkpoint cells.jsonl and the pictures; the tables go to the same name with .md
    #[arg(short, long, default_value = "docs/results/recovery")]
    out: PathBuf,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let usual = || std::env::var_os("TAMIS_MNIST").map_or("../shared/data/mnist".into(), PathBuf::from);
    let mnist = arguments.mnist.or_else(|| Some(usual()).filter(|folder| folder.is_dir()));
    let settings = Settings {
        hours: arguments.hours,
        seeds: arguments.seeds,
        cell_seconds: arguments.cell_seconds,
        only: arguments.only,
        up_to: arguments.up_to,
        matching: arguments.matching,
        threads: arguments.threads,
        mnist,
        out: arguments.out,
    };
    let (finished, left) = study::run(&settings)?;
    println!("{finished} runs done, {left} left");
    Ok(())
}
