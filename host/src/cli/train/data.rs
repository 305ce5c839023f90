//! What `tamis train` learns from: rows, columns and classes, and what it says of them.

use serde::Serialize;

use super::super::console::{count, noted, percent};
use super::args::Train;
use crate::Result;
use crate::data::{Columns, Loaded, Problem, Task};
use crate::model::ModelFile;
use crate::train::{Baseline, Baselines, Beaten, Report};

/// How much data there are.
#[derive(Debug, Serialize)]
pub(super) struct DataCounts {
    rows: usize,
    /// Of a table those that are read, whatever inputs they become.
    columns: usize,
    /// The classes and their rows; none for regression.
    classes: Option<Vec<ClassRows>>,
}

/// What is said of the data, and what of it goes into the model.
#[derive(Debug, Serialize)]
pub(super) struct DataFacts {
    #[serde(flatten)]
    pub(super) counts: DataCounts,
    pub(super) notes: Vec<String>,
    #[serde(skip)]
    names: Columns,
    #[serde(skip)]
    line: String,
}

#[derive(Debug, Serialize)]
struct ClassRows {
    name: String,
    rows: usize,
}

/// The most classes whose rows are printed.
const SHOWN: usize = 20;

impl DataFacts {
    fn new(loaded: &Loaded) -> Self {
        let (problem, names) = (&loaded.problem, loaded.columns.clone());
        let columns = match names.inputs.len() {
            0 => problem.data.cols,
            columns => columns,
        };
        let (rows, notes) = (problem.data.rows, loaded.notes.clone());
        let counts = DataCounts { rows, columns, classes: classes(problem, &names) };
        Self { counts, notes, names, line: String::new() }
    }

    /// The model with the names of its columns and classes.
    pub(super) fn name(&self, model: &ModelFile) -> Result<ModelFile> {
        model.with_columns(&self.names)
    }

    /// What is said before the report: the data, and what is not as it should be.
    pub(super) fn text(&self) -> String {
        format!("{}\n{}", self.line, noted(&self.notes))
    }

    /// Adds what there is to say.
    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// How well numbers of a table with names are fitted, from the mean squared error; none else.
    pub(super) fn fit(&self, loss: f64, mae: Option<f64>, own: &Baselines) -> Option<Fit> {
        let variance = own.constant.loss.filter(|_| self.names.are_named())?;
        let r2 = (variance > 0.0).then(|| 1.0 - loss / variance);
        Some(Fit { r2, rmse: loss.sqrt(), mae })
    }

    /// What of the obvious models the trained one is not better than.
    pub(super) fn warning(&self, own: &Baselines, report: &Report) -> Option<(Beaten, String)> {
        let fit = |accuracy: Option<f64>, loss: Option<f64>| match (accuracy, loss) {
            (Some(share), _) => format!("{} right", percent(share)),
            (_, loss) => format!("mean squared error {:.4e}", loss.unwrap_or(f64::NAN)),
        };
        let model = fit(report.accuracy, Some(report.loss));
        let beaten = own.beats(report);
        if beaten != Some(Beaten::Constant)
            && let Some(said) = self.left_out(own, report)
        {
            return Some(said);
        }
        let beaten = beaten?;
        let text = match beaten {
            Beaten::Constant => {
                let constant = fit(own.constant.accuracy, own.constant.loss);
                format!(
                    "warning: the model is no better than {} for every row: {model} against \
                     {constant}; try {}",
                    self.constant(own),
                    if report.recipe == "masked" {
                        "another --rate, --warmup or --epochs, or another mask"
                    } else {
                        "another --seed, a larger --nnz, or other columns"
                    }
                )
            }
            Beaten::Linear => {
                let linear = own.linear?;
                let linear = fit(linear.accuracy, linear.loss);
                format!(
                    "a linear model of as many nonzeros is better on these rows: {linear} against \
                     {model}; pass --hidden 0 for it"
                )
            }
        };
        Some((beaten, text))
    }

    /// Whether the network that cross-validation has chosen is no better than a constant on the rows that were
    /// left out.
    fn left_out(&self, own: &Baselines, report: &Report) -> Option<(Beaten, String)> {
        let choice = report.choice.as_ref()?;
        let tried = choice.tried.get(choice.chosen)?;
        let scores = match (tried.accuracy, own.constant.accuracy, own.constant.loss) {
            (Some(own), Some(constant), _) if own <= constant => {
                format!("{} right against {}", percent(own), percent(constant))
            }
            (None, _, Some(constant)) if tried.loss >= constant => {
                format!("mean squared error {:.4e} against {constant:.4e}", tried.loss)
            }
            _ => return None,
        };
        let text = format!(
            "warning: on rows that were left out the model is no better than {}: {scores}; the columns may say \
             nothing of the target",
            self.constant(own)
        );
        Some((Beaten::Constant, text))
    }

    fn constant(&self, own: &Baselines) -> String {
        match own.majority {
            Some(class) => format!("class {}", self.names.class(class)),
            None => "the mean".into(),
        }
    }

    /// The obvious models, in a line.
    pub(super) fn baselines(&self, own: &Baselines) -> String {
        let fit = |of: &Baseline| match (of.accuracy, of.loss) {
            (Some(share), _) => percent(share),
            (_, loss) => format!("error {:.4e}", loss.unwrap_or(f64::NAN).sqrt()),
        };
        let constant = format!("{} for every row {}", self.constant(own), fit(&own.constant));
        let linear = own.linear.map(|linear| {
            format!("; a linear model of {} nonzeros {}", count(linear.nnz), fit(&linear))
        });
        constant + &linear.unwrap_or_default()
    }

    pub(super) fn names(&self) -> &Columns {
        &self.names
    }
}

/// What is said where more nonzeros are asked for than there are weights.
pub(super) fn all_taken(nnz: usize, all: usize) -> Option<String> {
    (nnz > all).then(|| {
        let (nnz, all) = (count(nnz), count(all));
        format!("--nnz {nnz} is more than the network can hold, which is {all} weights")
    })
}

/// How well numbers are fitted on the training rows.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Fit {
    /// None where all labels are the same.
    pub(super) r2: Option<f64>,
    pub(super) rmse: f64,
    /// None of rows that are not at hand any more: of large data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mae: Option<f64>,
}

fn classes(problem: &Problem, names: &Columns) -> Option<Vec<ClassRows>> {
    let classes = match problem.task {
        Task::Regression => return None,
        Task::Binary => 2,
        Task::Multiclass => problem.classes().unwrap_or(0),
    };
    let mut rows = vec![0; classes];
    for label in &problem.labels {
        if let Some(count) = rows.get_mut(*label as usize) {
            *count += 1;
        }
    }
    let of = |(class, rows)| ClassRows { name: names.class(class), rows };
    Some(rows.into_iter().enumerate().map(of).collect())
}

impl Train {
    /// Reads the rows; without a task it is found in the labels.
    pub(super) fn load(&self) -> Result<(Problem, DataFacts)> {
        let loaded = self.source.source().load_to_learn(self.task)?;
        let mut facts = DataFacts::new(&loaded);
        let (rows, columns) = (count(facts.counts.rows), count(facts.counts.columns));
        let task = loaded.problem.task;
        let found = match self.task {
            None => ", found in the labels (--task says otherwise)",
            Some(_) => "",
        };
        let mut line =
            format!("Data: {rows} rows × {columns} columns, task {}{found}", task.name());
        if let Some(classes) = &facts.counts.classes {
            let shown = classes.iter().take(SHOWN);
            let shown = shown.map(|class| format!("{} {}", class.name, count(class.rows)));
            let more = if classes.len() > SHOWN { ", …" } else { "" };
            line += &format!(": {}{more}", shown.collect::<Vec<_>>().join(", "));
        }
        facts.line = line;
        Ok((loaded.problem, facts))
    }
}
