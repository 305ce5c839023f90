//! `tamis eval`

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::common::Common;
use super::console::{self, count};
use super::source::SourceArgs;
use crate::Result;
use crate::data::{Loaded, Task};
use crate::model::{ModelFile, Score};

/// Score a model on labelled data: loss and PSNR; for classes loss, accuracy and confusion matrix.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis eval model.tamis --data X.npy --labels y.npy
  tamis eval zero-one.tamis --data t10k-images-idx3-ubyte.gz \\
    --labels t10k-labels-idx1-ubyte.gz --keep-labels 0,1")]
pub(super) struct Eval {
    /// The model
    #[arg(value_name = "M.tamis")]
    model: PathBuf,
    #[command(flatten)]
    source: SourceArgs,
    /// What the labels are [default: what the model was trained for; where the file does not say,
    /// multiclass for several outputs, binary for two --keep-labels or where all are 0 or 1, else
    /// regression]
    #[arg(long)]
    task: Option<Task>,
}

/// The most classes whose confusion matrix is printed; `--json` has it always.
const WIDEST: usize = 20;

#[derive(Serialize)]
struct Object {
    model: String,
    task: Task,
    task_from: &'static str,
    inputs_cut: Option<usize>,
    #[serde(flatten)]
    score: Score,
}

impl Eval {
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        let model = ModelFile::load(&self.model)?;
        let stored = model.task()?;
        let (task_from, from) = match (self.task, stored) {
            (Some(_), _) => ("option", "as --task says"),
            (None, Some(_)) => ("model", "as the model says"),
            (None, None) => ("labels", "guessed from the labels: the model does not say"),
        };
        let Loaded { problem, notes, .. } = self.source.load_for(&model, self.task)?;
        let score = common.on_pool(|| model.score_on(&problem))??;
        let inputs_cut = common.on_pool(|| model.inputs_cut(&problem.data))??;
        let (model, task) = (self.model.display().to_string(), problem.task);
        let object = Object { model, task, task_from, inputs_cut, score };
        common.result_with(&notes, &object, || summary(&object, from))
    }
}

fn summary(object: &Object, from: &str) -> String {
    let score = &object.score;
    let title = format!("{} on {} rows", object.model, count(score.n));
    let mut rows = vec![("task", format!("{}, {from}", object.task.name()))];
    rows.push(("loss", format!("{:.4e} mean {}", score.loss, score.loss_kind)));
    rows.extend(score.psnr_db.map(|_| console::psnr_fact(score.psnr_db, score.zero_psnr_db)));
    rows.extend(score.accuracy.map(|part| ("accuracy", console::percent(part))));
    rows.extend(console::cut_fact(object.inputs_cut));
    let facts = console::facts(&title, &rows);
    match &score.confusion {
        Some(rows) if rows.len() <= WIDEST => format!("{facts}\n\n{}", confusion(rows)),
        _ => facts,
    }
}

/// Labels down, predictions across.
fn confusion(rows: &[Vec<usize>]) -> String {
    let name =
        |k: usize| if rows.len() == 2 { format!("predicted {k}") } else { format!("as {k}") };
    let heading: Vec<String> = (0..rows.len()).map(name).collect();
    let heading = [""].into_iter().chain(heading.iter().map(String::as_str));
    let line = |(label, row): (usize, &Vec<usize>)| {
        [format!("label {label}")].into_iter().chain(row.iter().map(|&n| count(n))).collect()
    };
    console::table(&heading.collect::<Vec<_>>(), rows.iter().enumerate().map(line))
}
