//! `tamis prune`

use std::path::{Path, PathBuf};

use clap::Args;

use super::common::Common;
use super::console::{count, decibel, facts, percent};
use super::progress::Bar;
use super::saved::{Object, save};
use super::source::{ModelColumns, TableArgs};
use super::{interrupt, parse};
use crate::base::check_setting;
use crate::base::file::{self, Kind};
use crate::convert::ImportOptions;
use crate::convert::named::Layout;
use crate::data::{DataFiles, Labels, Loaded, Problem, Rows, Task};
use crate::model::ModelFile;
use crate::prune::{
    Compared, LassoOptions, Neurons, PruneOptions, PruneReport, PruneRows, PruneSource, Structured,
    prune,
};
use crate::train::Budget;
use crate::{Error, Result};

/// Make a trained network smaller: fewer neurons, inputs and weights, with fine-tuning on data.
///
/// Whole neurons and inputs go first, by their groups of weights, then single weights by their
/// magnitude, until exactly --nnz are left, all of them on paths from inputs to outputs. With
/// --data and --labels the network is trained meanwhile, and compared with the obvious ones.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis prune model.tamis --nnz 2000 --data X.npy --labels y.npy -o small.tamis
  tamis prune mlp.onnx --neurons 18,12 --data X.npy --labels y.npy -o small.tamis
  tamis prune weights.npz --neurons 20 --inputs 100 --structured norm -o small.tamis

Ctrl-C ends it at once: no model is written.")]
pub(super) struct Prune {
    /// The network: a .tamis model of floats, ONNX, or arrays named as layers in safetensors or NPZ
    #[arg(value_name = "M")]
    model: PathBuf,
    /// The model to write
    #[arg(short, long, value_name = "N.tamis")]
    output: PathBuf,
    /// Neurons left in each hidden layer, such as 18,12; all of them, or as many as suit --nnz
    /// [default: auto where --nnz is given and there are labels, else all]
    #[arg(long, value_name = "M1,M2…|auto|all", value_parser = neurons)]
    neurons: Option<Neurons>,
    /// Inputs that are read: those of the largest columns of weights
    #[arg(long, value_name = "K", value_parser = parse::whole::<usize>)]
    inputs: Option<usize>,
    /// Nonzeros of the model; biases count, and the weights of 1 that hand them on
    #[arg(long, value_name = "S", value_parser = parse::whole::<usize>, conflicts_with = "density")]
    nnz: Option<usize>,
    /// The same as a fraction of all weights and biases, such as 0.01
    #[arg(long, value_name = "P", value_parser = parse::number)]
    density: Option<f64>,
    /// How neurons and inputs are chosen [default: lasso with data and labels, else norm]
    #[arg(long, value_enum, value_name = "METHOD")]
    structured: Option<Structured>,
    /// Layers of safetensors or NPZ in the order in which they run [default: all, by their names]
    #[arg(long, value_name = "A,B…", value_delimiter = ',')]
    layers: Option<Vec<String>>,
    /// Which way weights lie in safetensors or NPZ
    #[arg(long, value_enum, default_value_t = Layout::Auto)]
    layout: Layout,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    fit: FitArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Data")]
struct RowArgs {
    /// Samples: idx, NPY, NPZ (FILE.npz#NAME) or CSV, also gzipped; F,F2 appends rows
    #[arg(long, value_name = "F[,F2…]")]
    data: Option<PathBuf>,
    /// Their labels; without labels, method greedy alone uses the data
    #[arg(long, value_name = "F[,F2…]", requires = "data", conflicts_with = "target")]
    labels: Option<PathBuf>,
    /// The labels' column of the data: its name, or its number from 1
    #[arg(long, value_name = "COLUMN", requires = "data")]
    target: Option<String>,
    #[command(flatten)]
    table: TableArgs,
    /// What the labels are [default: as the model says; else multiclass for several outputs, binary
    /// where all are 0 or 1, else regression]
    #[arg(long, value_enum, requires = "data")]
    task: Option<Task>,
    /// Rows to score on [default: a validation split of the data]
    #[arg(
        long,
        alias = "test",
        value_name = "F[,F2…]",
        requires = "data",
        conflicts_with = "validation"
    )]
    test_data: Option<PathBuf>,
    /// Labels of --test-data; without it they are in its column --target
    #[arg(long, value_name = "F[,F2…]", requires = "test_data")]
    test_labels: Option<PathBuf>,
    /// Fraction of the rows for the validation split, chosen by the seed [default: 0.1]
    #[arg(long, value_name = "FRACTION", requires = "data", value_parser = parse::number)]
    validation: Option<f64>,
    /// A network of another program takes bytes as 0 to 255, not as fractions of 256
    #[arg(long, requires = "data")]
    raw_inputs: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Training")]
struct FitArgs {
    /// Epochs of fine-tuning; 0 for none [default: 6, or as many as make 2000 steps]
    #[arg(long, value_name = "E", value_parser = parse::whole::<u32>)]
    epochs: Option<u32>,
    /// Epochs under the group lasso [default: 6, or as many as make 2000 steps]
    #[arg(long, value_name = "E", value_parser = parse::whole::<u32>)]
    lasso_epochs: Option<u32>,
    /// Factor of the group lasso [default: 0.003]
    #[arg(long, value_name = "L", value_parser = parse::number)]
    lambda: Option<f64>,
    /// What makes the group lasso smooth at 0 [default: 0.0001]
    #[arg(long, value_name = "B", value_parser = parse::number)]
    beta: Option<f64>,
    /// Rows of a batch [default: 128]
    #[arg(long, value_name = "N", value_parser = parse::whole::<usize>)]
    batch: Option<usize>,
    /// Rate of Adam in fine-tuning, before it falls [default: 0.005]
    #[arg(long, value_name = "RATE", value_parser = parse::number)]
    rate: Option<f64>,
    /// Train no networks to compare with
    #[arg(long)]
    no_scratch: bool,
}

/// `auto`, `all`, or numbers with commas between them.
fn neurons(text: &str) -> std::result::Result<Neurons, String> {
    match text {
        "auto" => Ok(Neurons::Auto),
        "all" => Ok(Neurons::All),
        numbers => {
            let each = numbers.split(',').map(|number| number.trim().parse());
            let each: std::result::Result<Vec<usize>, _> = each.collect();
            each.map(Neurons::Each).map_err(|_| {
                "expected numbers with commas between them, such as 18,12, or auto or all".into()
            })
        }
    }
}

impl Prune {
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        let rows = &self.rows;
        let read = [&rows.data, &rows.labels, &rows.test_data, &rows.test_labels];
        let read = read.into_iter().filter_map(|path| path.as_deref());
        file::check(&self.output, Kind::MODEL, read.chain([self.model.as_path()]))?;
        let options = self.options(common);
        let import = ImportOptions {
            layers: self.layers.clone(),
            layout: self.layout,
            ..Default::default()
        };
        let source = PruneSource::load(&self.model, &import)?;
        let (rows, mut notes) = rows.load(&source, common.seed)?;
        notes.extend(self.unused(&source, &rows));
        let bar = Bar::new(common);
        let outcome = interrupt::unsaved(|| {
            prune(&source, rows, &options, interrupt::stop(), |progress| {
                bar.epoch(progress);
            })
        });
        bar.clear();
        let mut outcome = outcome?;
        outcome.report.notes.splice(0..0, notes);
        let pruned = ModelFile::from_bytes(&outcome.model)?.with_columns_of(&source.model)?;
        save(&self.output, pruned.bytes())?;
        let object = Object::new(&self.output, pruned.bytes(), &outcome.report);
        common.result(&object, || summary(&object))
    }

    /// Notes of settings that change nothing.
    fn unused(&self, source: &PruneSource, loaded: &PruneRows) -> Vec<String> {
        let Self { rows, fit, .. } = self;
        let has_labels = rows.labels.is_some() || rows.target.is_some();
        let is_greedy = self.structured == Some(Structured::Greedy);
        let cuts_groups = self.neurons != Some(Neurons::All) || self.inputs.is_some();
        let is_lasso = self.structured.is_none_or(|method| method == Structured::Lasso);
        let is_auto = self.neurons == Some(Neurons::Auto);
        let has_nnz = self.nnz.is_some() || self.density.is_some();
        let without_labels = [
            (rows.data.is_some() && !is_greedy, "--data"),
            (rows.task.is_some(), "--task"),
            (rows.test_data.is_some(), "--test-data"),
            (rows.validation.is_some(), "--validation"),
            (fit.epochs.is_some(), "--epochs"),
            (fit.lasso_epochs.is_some(), "--lasso-epochs"),
            (fit.lambda.is_some(), "--lambda"),
            (fit.beta.is_some(), "--beta"),
            (fit.batch.is_some(), "--batch"),
            (fit.rate.is_some(), "--rate"),
            (fit.no_scratch, "--no-scratch"),
            (is_auto && has_nnz, "--neurons auto"),
        ];
        let without_lasso = [
            (fit.lasso_epochs.is_some(), "--lasso-epochs"),
            (fit.lambda.is_some(), "--lambda"),
            (fit.beta.is_some(), "--beta"),
        ];
        let is_for_other_bytes = source.is_imported && loaded.are_bytes();
        let raw = if source.is_imported {
            "where data are no bytes"
        } else {
            "for a .tamis model, which takes its data as they are"
        };
        let mut notes = Vec::new();
        let mut say = |flags: &[(bool, &str)], why: &str| {
            let given = flags.iter().filter(|(is_given, _)| *is_given);
            notes.extend(given.map(|(_, flag)| format!("{flag} changes nothing {why}")));
        };
        if !has_labels {
            say(&without_labels, "without --labels or --target");
        } else if !is_lasso {
            say(&without_lasso, "without --structured lasso");
        } else if !cuts_groups {
            say(&without_lasso, "where no neurons or inputs are cut");
        }
        say(&[(is_auto && !has_nnz, "--neurons auto")], "without --nnz or --density");
        say(&[(rows.raw_inputs && !is_for_other_bytes, "--raw-inputs")], raw);
        notes
    }

    fn options(&self, common: &Common) -> PruneOptions {
        let defaults = PruneOptions::default();
        let LassoOptions { lambda, beta } = defaults.lasso;
        let fit = &self.fit;
        let nnz = self.nnz.map(Budget::Nonzeros);
        PruneOptions {
            structured: self.structured,
            neurons: self.neurons.clone().unwrap_or(defaults.neurons),
            inputs: self.inputs,
            nnz: nnz.or(self.density.map(Budget::Density)),
            lasso: LassoOptions {
                lambda: fit.lambda.map_or(lambda, |lambda| lambda as f32),
                beta: fit.beta.map_or(beta, |beta| beta as f32),
            },
            lasso_epochs: fit.lasso_epochs,
            epochs: fit.epochs,
            batch: fit.batch.unwrap_or(defaults.batch),
            rate: fit.rate.map_or(defaults.rate, |rate| rate as f32),
            raw: self.rows.raw_inputs,
            compare: !fit.no_scratch,
            seed: common.seed,
            threads: common.threads(),
        }
    }
}

impl RowArgs {
    /// The rows, and what there is to say of them.
    fn load(&self, source: &PruneSource, seed: u64) -> Result<(PruneRows, Vec<String>)> {
        let Some(data) = &self.data else { return Ok((PruneRows::None, Vec::new())) };
        let labels = match (&self.labels, &self.target) {
            (Some(path), _) => Labels::File(path.clone()),
            (None, Some(target)) => Labels::Column(target.clone()),
            (None, None) => {
                let columns = ModelColumns::new(&source.model, &self.table)?;
                let Rows { matrix, notes } = columns.samples(data, None)?;
                return Ok((PruneRows::Samples(matrix), notes));
            }
        };
        let (problem, mut notes) = self.problem(source, data, labels.clone())?;
        if let Some(test) = &self.test_data {
            let labels = match (&self.test_labels, labels) {
                (Some(path), _) => Labels::File(path.clone()),
                (None, column @ Labels::Column(_)) => column,
                (None, Labels::File(_)) => return Err(no_test_labels(test)),
            };
            let columns = ModelColumns::new(&source.model, &self.table)?;
            let files = DataFiles::new(test.clone(), labels);
            let test = columns.labelled(&source.model, files, Some(problem.task))?;
            notes.extend(test.notes.iter().map(|note| match note.strip_prefix("warning: ") {
                Some(note) => format!("warning: test data: {note}"),
                None => format!("test data: {note}"),
            }));
            let rows =
                PruneRows::Labelled { train: problem, test: test.problem, scored_on: "test" };
            return Ok((rows, notes));
        }
        let share = self.validation.unwrap_or(0.1);
        let help = "leave --validation out for a tenth, or pass --test-data";
        let holds = share > 0.0 && share < 1.0;
        check_setting(holds, "--validation above 0 and below 1", share, help)?;
        let (train, test) = problem.split(1.0 - share, seed)?;
        Ok((PruneRows::Labelled { train, test, scored_on: "validation" }, notes))
    }

    /// The rows to learn from, with the task of the model or else what the labels say.
    fn problem(
        &self,
        source: &PruneSource,
        data: &Path,
        labels: Labels,
    ) -> Result<(Problem, Vec<String>)> {
        let model = &source.model;
        let columns = ModelColumns::new(model, &self.table)?;
        let stored = model.view()?.task().and(model.task()?);
        let files = DataFiles::new(data.to_owned(), labels);
        let files = DataFiles { table: self.table.options(), ..files };
        let reading = ModelFile::reading(columns.known());
        let Loaded { mut problem, notes, .. } = files.load_as(self.task.or(stored), reading)?;
        if self.task.or(stored).is_none() && model.cost()?.outputs > 1 && problem.outputs() == 1 {
            problem = problem.with_task(Task::Multiclass)?;
        }
        model.check_fit(&files, &problem)?;
        problem.check_for_model()?;
        Ok((problem, notes))
    }
}

fn no_test_labels(data: &Path) -> Error {
    Error::new("the test data have no labels")
        .at(data)
        .expected("--test-labels FILE, as --labels is a file")
        .got("no --test-labels")
        .help("name the file of their labels")
}

pub(super) fn summary(object: &Object<'_, PruneReport>) -> String {
    let r = object.report;
    let widths =
        |widths: &[usize]| widths.iter().map(|&width| count(width)).collect::<Vec<_>>().join("→");
    let mut rows = vec![
        ("widths", format!("{}, before {}", widths(&r.widths), widths(&r.widths_before))),
        ("nonzeros", format!("{}, before {}", count(r.nnz), count(r.nnz_before))),
        (
            "inputs",
            format!("{} read, before {}", count(r.inputs_read), count(r.inputs_read_before)),
        ),
    ];
    if r.biases > 0 {
        rows.push(("biases", format!("{}; they count", count(r.biases))));
    }
    if let Some(method) = r.structured {
        let name = match method {
            Structured::Norm => "norm of the groups of weights",
            Structured::Lasso => "group lasso",
            Structured::Greedy => "greedy, by least squares",
        };
        rows.push(("chosen by", name.to_owned()));
    }
    if let Some(on) = r.scored_on {
        let on = if on == "test" { "test rows" } else { "rows of the validation split" };
        rows.push(("scored on", format!("{} {on}", count(r.scored_samples))));
    }
    let quality = |loss: Option<f64>, accuracy: Option<f64>, psnr: Option<f64>| {
        let numbers = || match (psnr, loss) {
            (Some(_), _) => Some(decibel(psnr)),
            (None, loss) => loss.map(|loss| format!("loss {loss:.4e}")),
        };
        accuracy.map(percent).or_else(numbers)
    };
    let mut push = |name, text: Option<String>| rows.extend(text.map(|text| (name, text)));
    push("before", quality(r.loss_before, r.accuracy_before, r.psnr_db_before));
    push("pruned", quality(r.loss_pruned, r.accuracy_pruned, r.psnr_db_pruned));
    if r.epochs > 0 {
        push("fine-tuned", quality(r.loss, r.accuracy, r.psnr_db));
    }
    let compared = |of: &Option<Compared>, what: &str| {
        let of = of.as_ref()?;
        let own = quality(of.quality.loss, of.quality.accuracy, of.quality.psnr_db)?;
        Some(format!("{own}: {what}, {} nonzeros, {} epochs", count(of.nnz), of.epochs))
    };
    push("scratch", compared(&r.scratch, "dense, the same widths, from nothing"));
    push("", compared(&r.scratch_pruned, "the same, pruned by magnitude"));
    push("magnitude", compared(&r.unstructured, "pruned by magnitude alone"));
    rows.extend(r.notes.iter().map(|note| ("note", note.clone())));
    rows.push(("time", format!("{:.2} s", r.seconds)));
    facts(&object.title(false), &rows)
}
