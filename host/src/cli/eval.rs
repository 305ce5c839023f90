//! `tamis eval`

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::common::Common;
use super::console::{self, count};
use super::source::SourceArgs;
use crate::Result;
use crate::data::{Loaded, Task};
use crate::model::{ClassScore, Measures, ModelFile, Score};

/// Score a model on labelled data: loss, R2 and errors; for classes accuracy, precision, recall,
/// calibration and confusion matrix.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis eval model.tamis --data test.csv
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
    rows: usize,
    /// Of a table those that are read, whatever inputs they become.
    columns: usize,
    inputs_cut: Option<usize>,
    #[serde(flatten)]
    score: Score,
    #[serde(flatten)]
    measures: Measures,
    /// None for regression.
    classes: Option<Vec<NamedClass>>,
}

#[derive(Serialize)]
struct NamedClass {
    name: String,
    #[serde(flatten)]
    score: ClassScore,
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
        let Loaded { problem, columns, notes } = self.source.load_for(&model, self.task)?;
        let (score, measures) = common.on_pool(|| model.measure(&problem))??;
        let inputs_cut = common.on_pool(|| model.inputs_cut(&problem.data))??;
        let (model, task) = (self.model.display().to_string(), problem.task);
        let named = |confusion: &Vec<Vec<usize>>| {
            let scores = ClassScore::of(confusion).into_iter().enumerate();
            scores.map(|(class, score)| NamedClass { name: columns.class(class), score }).collect()
        };
        let object = Object {
            model,
            task,
            task_from,
            rows: problem.data.rows,
            columns: if columns.inputs.is_empty() {
                problem.data.cols
            } else {
                columns.inputs.len()
            },
            inputs_cut,
            classes: score.confusion.as_ref().map(named),
            score,
            measures,
        };
        let is_table = columns.are_named();
        common.result_with(&notes, &object, || summary(&object, from, is_table))
    }
}

fn summary(object: &Object, from: &str, is_table: bool) -> String {
    let Object { score, measures, .. } = object;
    let title = format!("{} on {} rows", object.model, count(score.n));
    let mut rows = vec![("task", format!("{}, {from}", object.task.name()))];
    rows.push(("loss", format!("{:.4e} mean {}", score.loss, score.loss_kind)));
    if let (Some(rmse), Some(mae)) = (measures.rmse, measures.mae) {
        let r2 =
            measures.r2.map_or("none (all labels are the same)".into(), |r2| format!("{r2:.4}"));
        rows.push(("R2", r2));
        rows.push(("errors", format!("{rmse:.4e} root mean square, {mae:.4e} mean absolute")));
    }
    // Of a table the labels have units, and their largest says little.
    let psnr = score.psnr_db.filter(|_| !is_table);
    rows.extend(psnr.map(|_| console::psnr_fact(score.psnr_db, score.zero_psnr_db)));
    rows.extend(score.accuracy.map(|part| ("accuracy", console::percent(part))));
    rows.extend(measures.auc.map(|auc| ("ROC AUC", format!("{auc:.4}"))));
    rows.extend(measures.calibration.as_ref().map(|own| {
        let bins = own.calibration_bins.iter().filter(|bin| bin.rows > 0).count();
        let error = console::percent(own.calibration_error);
        (
            "calibration",
            format!("probabilities are off by {error} on average, in {bins} of 10 bins"),
        )
    }));
    rows.extend(console::cut_fact(object.inputs_cut));
    let facts = console::facts(&title, &rows);
    match (&score.confusion, &object.classes) {
        (Some(rows), Some(classes)) if rows.len() <= WIDEST => {
            format!("{facts}\n\n{}\n\n{}", confusion(rows, classes), per_class(classes))
        }
        _ => facts,
    }
}

/// Labels down, predictions across.
fn confusion(rows: &[Vec<usize>], classes: &[NamedClass]) -> String {
    let name = |class: &NamedClass| match rows.len() {
        2 => format!("predicted {}", class.name),
        _ => format!("as {}", class.name),
    };
    let heading: Vec<String> = classes.iter().map(name).collect();
    let heading = [""].into_iter().chain(heading.iter().map(String::as_str));
    let line = |(class, row): (&NamedClass, &Vec<usize>)| {
        [format!("label {}", class.name)].into_iter().chain(row.iter().map(|&n| count(n))).collect()
    };
    console::table(&heading.collect::<Vec<_>>(), classes.iter().zip(rows).map(line))
}

fn per_class(classes: &[NamedClass]) -> String {
    let share = |share: Option<f64>| share.map_or("none".into(), console::percent);
    let line = |class: &NamedClass| {
        let ClassScore { rows, precision, recall } = class.score;
        vec![format!("class {}", class.name), count(rows), share(precision), share(recall)]
    };
    console::table(&["", "rows", "precision", "recall"], classes.iter().map(line))
}
