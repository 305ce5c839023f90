//! `tamis predict`

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::common::Common;
use super::console::{count, cut_fact};
use super::interrupt;
use super::source::{ModelColumns, TableArgs};
use crate::base::file::{self, Kind};
use crate::data::{self, Task};
use crate::model::ModelFile;
use crate::{Error, Result};

/// Predict every row of a file, into NPY or CSV.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis predict model.tamis --data X.npy -o predictions.npy
  tamis predict model.tamis --data table.csv --target price -o predictions.csv")]
pub(super) struct Predict {
    /// The model
    #[arg(value_name = "M.tamis")]
    model: PathBuf,
    /// Samples, in any format that train reads
    #[arg(long, value_name = "F[,F2…]")]
    data: PathBuf,
    /// A column of the data to leave out: the labels that the model was trained on
    #[arg(long, value_name = "COLUMN")]
    target: Option<String>,
    #[command(flatten)]
    table: TableArgs,
    /// The file to write, .npy or .csv: one number per row and output. Binary: class 1 if the number
    /// is at least the model's threshold (see inspect). Several classes: the class, then one score
    /// per class, whose softmax is the probability
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
}

#[derive(Serialize)]
struct Object {
    model: String,
    n: usize,
    outputs: usize,
    /// Columns of the file: the outputs, after the class where there are several.
    columns: usize,
    inputs_cut: Option<usize>,
    output: String,
}

impl Predict {
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        let kind = kind(&self.output)?;
        file::check(&self.output, kind, [self.model.as_path(), self.data.as_path()])?;
        let model = ModelFile::load(&self.model)?;
        let columns = ModelColumns::new(&model, &self.table)?;
        let samples = columns.samples(&self.data, self.target.as_deref(), common)?;
        let n = samples.rows;
        let predictions = common.on_pool(|| model.predict(&samples))??;
        let inputs_cut = common.on_pool(|| model.inputs_cut(&samples))??;
        let outputs = predictions.len() / n.max(1);
        let (table, columns) = match model.task()? {
            Some(Task::Multiclass) => (with_classes(&predictions, outputs), outputs + 1),
            _ => (predictions, outputs),
        };
        interrupt::saving(|| data::save(&self.output, &table, columns))?;
        let (model, output) = (self.model.display().to_string(), self.output.display().to_string());
        let object = Object { model, n, outputs, columns, inputs_cut, output };
        common.result(&object, || {
            let saved = format!("Saved {}: predictions for {} rows", object.output, count(n));
            match cut_fact(inputs_cut) {
                Some((name, text)) => format!("{saved}\n{name}: {text}"),
                None => saved,
            }
        })
    }
}

/// The class of the largest score before the scores of each row.
fn with_classes(scores: &[f32], classes: usize) -> Vec<f32> {
    let row = |scores| {
        std::iter::once(tamis::learn::loss::best(scores) as f32).chain(scores.iter().copied())
    };
    scores.chunks(classes.max(1)).flat_map(row).collect()
}

/// The format that a name ends in, NPY where it has no ending; other endings would hold another
/// format than they say.
fn kind(path: &Path) -> Result<Kind> {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some(ending) if ending.eq_ignore_ascii_case("csv") => Ok(Kind::CSV),
        Some(ending) if !ending.eq_ignore_ascii_case("npy") => {
            Err(Error::new("predictions are saved as NPY or CSV")
                .at(path)
                .expected("a name that ends in .npy or .csv")
                .got(format_args!(".{ending}"))
                .help("choose one of these endings"))
        }
        _ => Ok(Kind::NPY),
    }
}
