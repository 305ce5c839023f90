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
    /// What the labels are [default: what the model was trained for; where the file does not say, binary if two labels
    /// are kept or all are 0 or 1, else regression]
    #[arg(long)]
    task: Option<TaskName>,
}

#[derive(Serialize)]
struct Object {
    model: String,
    task: Task,
    task_from: TaskFrom,
    #[serde(flatten)]
    score: Score,
}

/// Where the task comes from.
#[derive(Serialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum TaskFrom {
    Option,
    Model,
    Labels,
}

impl Eval {
    pub(super) fn run(&self, common: &Common, console: &Console) -> Result<()> {
        let asked = self.task.map(TaskName::task).transpose()?;
        let model = ModelFile::load(&self.model)?;
        let stored = model.task()?;
        let task_from = match (asked, stored) {
            (Some(_), _) => TaskFrom::Option,
            (None, Some(_)) => TaskFrom::Model,
            (None, None) => TaskFrom::Labels,
        };
        let problem = self.source.source().load(asked.or(stored))?;
        let predictions = common.on_pool(|| model.predict(&problem.data))??;
        let score = model.score(problem.task, &problem.labels, &predictions)?;
        let object = Object { model: self.model.display().to_string(), task: problem.task, task_from, score };
        console.result(&object, || summary(&object))
    }
}

fn summary(object: &Object) -> String {
    let score = &object.score;
    let title = format!("{} on {} rows", object.model, count(score.n as u64));
    let task = match object.task {
        Task::Regression => "regression",
        Task::Binary => "binary",
    };
    let from = match object.task_from {
        TaskFrom::Option => "as asked",
        TaskFrom::Model => "as the model says",
        TaskFrom::Labels => "guessed from the labels: the model does not say",
    };
    let mut rows = vec![
        ("task", format!("{task}, {from}")),
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
