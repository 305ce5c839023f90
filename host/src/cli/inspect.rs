//! `tamis inspect`

use std::path::PathBuf;

use clap::Args;

use super::Console;
use super::console::{self, bytes, count};
use crate::Result;
use crate::run::{Bytes, ModelCost, ModelFile, Score, Task};

/// Show what a model holds and costs: flash, RAM and operations, against the dense network in its place.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis inspect model.tamis")]
pub(super) struct Inspect {
    /// The model
    #[arg(value_name = "M.tamis")]
    model: PathBuf,
}

impl Inspect {
    pub(super) fn run(&self, console: &Console) -> Result<()> {
        let cost = ModelFile::load(&self.model)?.cost()?;
        console.result(&cost, || summary(&cost))
    }
}

fn summary(cost: &ModelCost) -> String {
    let asked: Vec<_> = cost.hidden.iter().map(|&m| count(m as u64)).collect();
    let title = format!(
        "{}: {}, {}, {} inputs, {} hidden, {} output{}, checksum {}",
        cost.model,
        bytes(cost.file_bytes as u64),
        task(cost),
        count(cost.inputs as u64),
        asked.join(" and "),
        cost.outputs,
        if cost.outputs == 1 { "" } else { "s" },
        cost.crc32
    );
    let heading = ["layer", "nonzeros", "flash", "RAM", "operations", "dense flash", "dense operations"];
    let mut rows = vec![heading.map(String::from).to_vec()];
    for (at, layer) in cost.layers.iter().enumerate() {
        let shape = format!("{} {} {}→{}", at + 1, layer.kind, layer.inputs, layer.outputs);
        rows.push(row(shape, &layer.cost));
    }
    rows.push(row("all of the file".into(), &cost.total));
    format!("{title}\n\n{}\n\n{}", console::table(&rows), verdict(&cost.total))
}

/// What the model was trained for.
fn task(cost: &ModelCost) -> String {
    match (cost.task, cost.threshold) {
        (None, _) => "of no stated task".into(),
        (Some(Task::Regression), _) => "for regression".into(),
        (Some(Task::Binary), threshold) => {
            format!("for two classes (1 from {} on)", threshold.unwrap_or(Score::THRESHOLD))
        }
        (Some(Task::Multiclass), _) => format!("for {} classes", count(cost.outputs as u64)),
    }
}

fn row(name: String, cost: &Bytes) -> Vec<String> {
    let bytes = |n: usize| format!("{} B", count(n as u64));
    vec![
        name,
        count(cost.nnz as u64),
        bytes(cost.flash_bytes),
        bytes(cost.ram_bytes),
        count(cost.macs as u64),
        bytes(cost.dense_flash_bytes),
        count(cost.dense_macs as u64),
    ]
}

/// Which form is the smaller one.
fn verdict(total: &Bytes) -> String {
    let ratio = |a: usize, b: usize| a as f64 / b.max(1) as f64;
    if total.flash_bytes < total.dense_flash_bytes {
        return format!(
            "Sparse wins: {:.1} times less flash and {:.1} times fewer operations than dense f32.",
            ratio(total.dense_flash_bytes, total.flash_bytes),
            ratio(total.dense_macs, total.macs)
        );
    }
    format!(
        "Dense wins on flash here: sparse takes {:.1} times the bytes of dense f32 ({:.1} times fewer operations).",
        ratio(total.flash_bytes, total.dense_flash_bytes),
        ratio(total.dense_macs, total.macs)
    )
}
