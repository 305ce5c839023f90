//! `tamis eval`

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::console::{self, count};
use super::parse::TaskName;
use super::source::SourceArgs;
use super::{Common, Console};
use crate::Result;
use crate::run::{ModelFile, Score, Task};

/// Score a model on labelled data: loss, PSNR, and for two classes accuracy and confusion matrix.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis eval model.tamis --data X.npy --labels y.npy
  tamis eval zero-one.tamis --data t10k-images-idx3-ubyte.gz --labels t10k-labels-idx1-ubyte.gz --keep-labels 0,1")]
pub(super) struct Eval {
    /// The model
    #[arg(value_name = "M.tamis")]
    model: PathBuf,
    #[command(flatten)]
    source: SourceArgs,
    /// What the labels are [default: binary if two labels are kept or all are 0 or 1, else regression]
    #[arg(long)]
    task: Option<TaskName>,
}

#[derive(Serialize)]
struct Object {
    model: String,
    task: Task,
    #[serde(flatten)]
    score: Score,
}

impl Eval {
    pub(super) fn run(&self, common: &Common, console: &Console) -> Result<()> {
        let task = self.task.map(TaskName::task).transpose()?;
        let model = ModelFile::load(&self.model)?;
        let problem = self.source.source().load(task)?;
        let predictions = common.on_pool(|| model.predict(&problem.data))??;
        let score = Score::new(problem.task, &problem.labels, &predictions);
        let object = Object { model: self.model.display().to_string(), task: problem.task, score };
        console.result(&object, || summary(&object))
    }
}

fn summary(object: &Object) -> String {
    let score = &object.score;
    let title = format!("{} on {} rows", object.model, count(score.n as u64));
    let mut rows = vec![
        ("loss", format!("{:.4e} mean squared error", score.loss)),
        ("PSNR", console::decibel(score.psnr_db)),
    ];
    rows.extend(score.accuracy.map(|part| ("accuracy", console::percent(part))));
    let facts = console::facts(&title, &rows);
    match score.confusion {
        None => facts,
        Some(rows) => format!("{facts}\n\n{}", confusion(&rows)),
    }
}

fn confusion(rows: &[[usize; 2]; 2]) -> String {
    let line = |name: &str, row: &[usize; 2]| vec![name.into(), count(row[0] as u64), count(row[1] as u64)];
    console::table(&[
        vec!["".into(), "predicted 0".into(), "predicted 1".into()],
        line("label 0", &rows[0]),
        line("label 1", &rows[1]),
    ])
}
