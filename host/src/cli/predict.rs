//! `tamis predict`

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::common::Common;
use super::console::{count, cut_fact, say_note};
use super::interrupt;
use super::source::{ModelColumns, TableArgs};
use crate::base::file::{self, Kind};
use crate::data::{self, Columns, Missing, Rows, Task};
use crate::model::ModelFile;
use crate::model::score::{probability, softmax};
use crate::{Error, Result};

/// Predict every row of a file, into NPY or CSV.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis predict model.tamis --data X.npy -o predictions.npy
  tamis predict model.tamis --data table.csv -o predictions.csv
  cat table.csv | tamis predict model.tamis --data - -o -")]
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
    /// The file to write, .csv (- for standard output) or .npy. CSV: the class by name and the
    /// probability of each, or the number, below a line of names. NPY: one number per row and output;
    /// binary: class 1 if the number is at least the model's threshold (see inspect); several
    /// classes: the class, then one score per class, whose softmax is the probability
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
        let is_stream = self.output == Path::new("-");
        if is_stream && common.json {
            return Err(Error::usage("standard output cannot hold predictions and an object")
                .expected("-o with the name of a file, or no --json")
                .got("-o - and --json")
                .help("leave --json out"));
        }
        if self.table.options().missing == Some(Missing::Drop) {
            return Err(Error::usage("every row gets a prediction, so none can drop out")
                .expected("--missing mean, zero or error")
                .got("drop")
                .help("leave --missing out"));
        }
        if !is_stream {
            file::check(
                &self.output,
                kind(&self.output)?,
                [self.model.as_path(), self.data.as_path()],
            )?;
        }
        let model = ModelFile::load(&self.model)?;
        let known = ModelColumns::new(&model, &self.table)?;
        let Rows { matrix: samples, notes } = known.samples(&self.data, self.target.as_deref())?;
        let n = samples.rows;
        let predictions = common.on_pool(|| model.predict(&samples))??;
        let inputs_cut = common.on_pool(|| model.inputs_cut(&samples))??;
        let outputs = predictions.len() / n.max(1);
        let task = model.task()?;
        let ending = self.output.extension();
        let columns = if is_stream || ending.is_some_and(|e| e.eq_ignore_ascii_case("csv")) {
            let table = PredictionTable {
                task,
                threshold: model.threshold()?,
                names: known.known(),
                outputs,
                predictions: &predictions,
            };
            if is_stream {
                let said = notes.into_iter().chain(cut_fact(inputs_cut).map(|(_, text)| text));
                said.filter(|_| !common.quiet).for_each(|note| say_note(Some(note)));
                return match table.write(&mut BufWriter::new(io::stdout().lock())) {
                    Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                        Err(Error::new("cannot write to standard output").source(error))
                    }
                    _ => Ok(()),
                };
            }
            interrupt::saving(|| file::write(&self.output, |out| table.write(out)))?;
            table.heading().len()
        } else {
            let (table, columns) = match task {
                Some(Task::Multiclass) => (with_classes(&predictions, outputs), outputs + 1),
                _ => (predictions, outputs),
            };
            interrupt::saving(|| data::save(&self.output, &table, columns))?;
            columns
        };
        let (model, output) = (self.model.display().to_string(), self.output.display().to_string());
        let object = Object { model, n, outputs, columns, inputs_cut, output };
        common.result_with(&notes, &object, || {
            let saved = format!("Saved {}: predictions for {} rows", object.output, count(n));
            match cut_fact(inputs_cut) {
                Some((name, text)) => format!("{saved}\n{name}: {text}"),
                None => saved,
            }
        })
    }
}

/// Predictions as rows of text: classes by name, and their probabilities.
struct PredictionTable<'a> {
    task: Option<Task>,
    /// The least prediction that is class 1.
    threshold: f32,
    names: Option<&'a Columns>,
    outputs: usize,
    predictions: &'a [f32],
}

impl PredictionTable<'_> {
    fn class(&self, class: usize) -> String {
        self.names.map_or_else(|| class.to_string(), |names| names.class(class))
    }

    fn heading(&self) -> Vec<String> {
        let target = self.names.map(|names| &names.target).filter(|name| !name.is_empty());
        let classes = match self.task {
            Some(Task::Binary) => 2,
            Some(Task::Multiclass) => self.outputs,
            Some(Task::Regression) | None => {
                let name = target.map_or("prediction", String::as_str);
                return match self.outputs {
                    1 => vec![name.to_owned()],
                    outputs => (1..=outputs).map(|k| format!("{name}_{k}")).collect(),
                };
            }
        };
        let class = target.map_or("class", String::as_str).to_owned();
        let probabilities = (0..classes).map(|k| format!("probability_{}", self.class(k)));
        std::iter::once(class).chain(probabilities).collect()
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let heading: Vec<String> = self.heading().iter().map(|name| quoted(name)).collect();
        writeln!(out, "{}", heading.join(","))?;
        let mut probabilities = Vec::new();
        for row in self.predictions.chunks(self.outputs.max(1)) {
            let class = match self.task {
                Some(Task::Binary) => {
                    let of_one = probability(row[0], self.threshold);
                    probabilities = vec![1.0 - of_one, of_one];
                    usize::from(row[0] >= self.threshold)
                }
                Some(Task::Multiclass) => {
                    softmax(row, &mut probabilities);
                    tamis::learn::loss::best(row)
                }
                Some(Task::Regression) | None => {
                    let numbers: Vec<String> = row.iter().map(f32::to_string).collect();
                    writeln!(out, "{}", numbers.join(","))?;
                    continue;
                }
            };
            write!(out, "{}", quoted(&self.class(class)))?;
            probabilities.iter().try_for_each(|p| write!(out, ",{}", *p as f32))?;
            writeln!(out)?;
        }
        out.flush()
    }
}

/// A cell of CSV, in quotes where it must be.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r', ';', '\t']) || text.trim() != text {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
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
