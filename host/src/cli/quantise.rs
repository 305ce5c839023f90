//! `tamis quantize`

use std::path::PathBuf;

use clap::Args;
use tamis::infer::quantised::Encoding;
use tamis::learn::deep::tune;
use tamis::store::wire::Choice;

use super::common::Common;
use super::console::{bytes, count, decibel, facts, percent, say_error};
use super::interrupt;
use super::parse::{self, Named, at_least_zero};
use super::progress::Bar;
use super::saved::{Object, limit_fact, save};
use super::source::{ModelColumns, TableArgs};
use crate::base::file::{self, Kind};
use crate::base::{Limits, check_setting};
use crate::data::{DataFiles, Labels, Matrix, Problem};
use crate::model::{
    Encodings, Granularity, ModelFile, QuantiseOptions, QuantiseReport, Score, TuneOptions,
    quantise_until,
};
use crate::{Error, Result};

/// Make a model of 8-bit integers, for devices without a float unit, with scales from rows of data.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis quantize model.tamis --data X.npy --labels y.npy -o small.tamis
  tamis quantize digits.tamis --data train-images-idx3-ubyte.gz --per-neuron \\
    --encoding fastest -o digits-int8.tamis
  tamis quantize model.tamis --data X.npy --labels y.npy --tune 10 -o small.tamis")]
pub(super) struct Quantise {
    /// The model
    #[arg(value_name = "M.tamis")]
    model: PathBuf,
    /// Rows like those in use, in any format that train reads: the scales come from them
    #[arg(long, value_name = "F[,F2…]")]
    data: PathBuf,
    /// Their labels, to score the model before and after
    #[arg(long, value_name = "F[,F2…]", conflicts_with = "target")]
    labels: Option<PathBuf>,
    /// The column of the data that holds the labels: its name, or its number counted from 1
    #[arg(long, value_name = "COLUMN")]
    target: Option<String>,
    /// Keep only the rows with these labels; for classes A becomes 0, B becomes 1, and so on
    #[arg(long, value_name = "A,B", value_delimiter = ',', allow_hyphen_values = true)]
    keep_labels: Option<Vec<String>>,
    #[command(flatten)]
    table: TableArgs,
    /// The model to write
    #[arg(short, long, value_name = "Q.tamis")]
    output: PathBuf,
    /// One scale for the weights of each layer [default: this, or --per-neuron where this changes the
    /// outputs by more than 0.1 % of their variance and that by at most half]
    #[arg(long, conflicts_with = "per_neuron")]
    per_layer: bool,
    /// A scale for the weights of each neuron: finer, for 4 bytes a neuron
    #[arg(long)]
    per_neuron: bool,
    /// Fraction of the activations above 0 that is not cut, such as 0.999 [default: the one with
    /// the least error of the outputs]
    #[arg(long, alias = "part", value_name = "FRACTION", value_parser = parse::number)]
    fraction: Option<f64>,
    /// Train the weights as they are rounded, for so many passes over the rows, which need labels;
    /// of the states after each pass and the one before all, that with the least loss of integers
    /// on these rows is saved
    #[arg(long, value_name = "EPOCHS", value_parser = parse::whole::<u32>)]
    tune: Option<u32>,
    /// Rows of a batch of --tune; 0 for all rows [default: 256]
    #[arg(long, value_name = "N", value_parser = parse::whole::<usize>, requires = "tune")]
    batch: Option<usize>,
    /// The first step of a weight of --tune, relative to the size of its layer's weights [default:
    /// 0.01]
    #[arg(long, value_name = "RATE", value_parser = parse::number, requires = "tune")]
    rate: Option<f64>,
    /// Seconds after which --tune ends, looked at after every batch
    #[arg(long, value_name = "SECONDS", value_parser = parse::number, requires = "tune")]
    time_limit: Option<f64>,
    /// How weights are held
    #[arg(long, default_value = "smallest", value_parser = parse::named(ENCODINGS))]
    encoding: Encodings,
}

/// dB of the outputs against those before, below which there is a warning.
const FAR: f64 = 25.0;

/// What integers that were tuned may lose: a share of the rows, or so much more loss.
const LOST: f64 = 0.005;

/// Rows below which scales are those of chance.
const FEW: usize = 32;

/// Fraction of the activations that may be cut without a warning.
const MUCH: f64 = 0.0101;

pub(super) const ENCODINGS: [Named<Encodings>; 6] = [
    Named("smallest", Encodings::Chosen(Choice::Smallest), "The fewest bytes, layer by layer"),
    Named("fastest", Encodings::Chosen(Choice::Fastest), "The fewest instructions on a Cortex-M4"),
    Named("dense", preferred(Encoding::Dense), "All weights, zeros too; of integers"),
    Named("bitmask", preferred(Encoding::Mask), "A bit for each weight that could be; of integers"),
    Named("rows", Encodings::Rows, "Columns of 16 bits; of floats"),
    Named(
        "blocks",
        preferred(Encoding::Blocks),
        "Windows of 256 columns with pairs of index and weight",
    ),
];

const fn preferred(encoding: Encoding) -> Encodings {
    Encodings::Chosen(Choice::Prefer(encoding))
}

impl Quantise {
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        let fraction = self.fraction.unwrap_or(1.0);
        let help = "leave --fraction out for the best of several";
        check_setting(
            fraction > 0.0 && fraction <= 1.0,
            "--fraction above 0, at most 1",
            fraction,
            help,
        )?;
        let inputs =
            [self.model.as_path(), self.data.as_path()].into_iter().chain(self.labels.as_deref());
        file::check(&self.output, Kind::MODEL, inputs)?;
        let model = ModelFile::load(&self.model)?;
        let (data, scored, mut notes) = self.rows(&model)?;
        let per_layer = self.per_layer.then_some(Granularity::PerLayer);
        let options = QuantiseOptions {
            granularity: self.per_neuron.then_some(Granularity::PerNeuron).or(per_layer),
            fraction: self.fraction,
            choice: self.encoding.of_integers()?,
            tune: self.tuning(common)?,
        };
        let labels = scored.as_ref().map(|problem| (problem.task, problem.labels.as_slice()));
        let rows = data.as_ref().or(scored.as_ref().map(|problem| &problem.data));
        let none = || Error::new("there are no rows").help("pass rows with --data");
        let rows = rows.ok_or_else(none)?;
        let bar = Bar::new(common);
        let run = || {
            quantise_until(&model, rows, labels, &options, interrupt::stop(), |progress| {
                bar.epoch(progress)
            })
        };
        let outcome = match options.tune {
            Some(_) => interrupt::training(|| common.on_pool(run)),
            None => common.on_pool(run),
        };
        bar.clear();
        let outcome = outcome??;
        let rounded = ModelFile::from_bytes(&outcome.model)?.with_columns_of(&model)?;
        save(&self.output, rounded.bytes())?;
        let warnings = warnings(&outcome.report);
        if (common.json || common.quiet) && is_far(&outcome.report) {
            // The last one: a script that reads no report should hear of it.
            warnings
                .iter()
                .last()
                .into_iter()
                .for_each(|text| say_error(format_args!("warning: {text}")));
        }
        if common.json {
            notes.extend(warnings);
        }
        let object = Object::new(&self.output, rounded.bytes(), &outcome.report);
        common.result_with(&notes, &object, || summary(&object))
    }

    fn tuning(&self, common: &Common) -> Result<Option<TuneOptions>> {
        let Some(epochs) = self.tune else { return Ok(None) };
        if epochs == 0 {
            return Err(Error::new("tuning needs an epoch")
                .expected("--tune 1 or more")
                .got(0)
                .help("pass --tune 10, or leave it out to round only"));
        }
        if self.labels.is_none() && self.target.is_none() {
            return Err(Error::new("tuning needs labels")
                .expected("--labels or --target")
                .got("--tune alone")
                .help("pass the labels of the rows, or leave --tune out"));
        }
        let rate = at_least_zero("--rate", self.rate)?;
        let time = at_least_zero("--time-limit", self.time_limit)?.map(parse::duration);
        let batch = match self.batch {
            Some(0) => usize::MAX,
            batch => batch.unwrap_or(tune::Params::DEFAULT.batch),
        };
        let rate = rate.map_or(TuneOptions::RATE, |rate| rate as f32);
        let params = tune::Params { epochs, batch, rate, seed: common.seed };
        Ok(Some(TuneOptions { params, limits: Limits { time, ..Limits::NONE } }))
    }

    /// Rows alone, or a problem to score as well.
    fn rows(&self, model: &ModelFile) -> Result<(Option<Matrix>, Option<Problem>, Vec<String>)> {
        let columns = ModelColumns::new(model, &self.table)?;
        let labels = match (&self.labels, &self.target) {
            (Some(path), _) => Labels::File(path.clone()),
            (None, Some(column)) => Labels::Column(column.clone()),
            (None, None) if self.keep_labels.is_some() => {
                return Err(Error::new("--keep-labels needs labels")
                    .expected("--labels or --target")
                    .got("--keep-labels alone")
                    .help("pass the labels, or leave --keep-labels out"));
            }
            (None, None) => {
                let rows = columns.samples(&self.data, None)?;
                return Ok((Some(rows.matrix), None, rows.notes));
            }
        };
        let files = DataFiles {
            keep: self.keep_labels.clone(),
            ..DataFiles::new(self.data.clone(), labels)
        };
        let loaded = columns.labelled(model, files, model.task()?)?;
        Ok((None, Some(loaded.problem), loaded.notes))
    }
}

fn summary(object: &Object<'_, QuantiseReport>) -> String {
    let r = object.report;
    let title = object.title(r.tune.as_ref().is_some_and(|tune| tune.stopped));
    let (own, before) = (bytes(object.model_bytes), bytes(r.model_bytes_before));
    let (scale, zero) = (r.input_scale, r.input_zero);
    let mut rows = vec![
        ("model", format!("{own}, of floats {before}")),
        ("nonzeros", format!("{} of {}", count(r.nnz), count(r.nnz_before))),
        (
            "inputs",
            match r.bytes_as_they_are {
                _ if r.input_columns => "rounded, a scale and a zero for each".to_owned(),
                true => format!("bytes as they are, a step stands for {scale}"),
                false => format!("rounded to steps of {scale:e}, 0 is byte {zero}"),
            },
        ),
        (
            "biases",
            match r.biases {
                0 => "none".into(),
                n => format!("{} of 32 bits", count(n)),
            },
        ),
        ("outputs", format!("{} against those before", decibel(r.outputs_psnr_db))),
    ];
    for layer in &r.layers {
        let shape = format!("{}→{}", count(layer.inputs), count(layer.outputs));
        let held = format!("{} weights as {}", count(layer.nnz), layer.encoding);
        rows.push(("layer", format!("{shape}: {held}, {}", bytes(layer.flash_bytes))));
    }
    if let Some(tune) = &r.tune {
        let best = match tune.best_epoch {
            0 => "none better than without".into(),
            best => format!("best after {}", count(best)),
        };
        let (seconds, epochs, limit) = (tune.seconds, count(tune.epochs), limit_fact(tune.limit));
        rows.push(("tuned", format!("{seconds:.3} s, {epochs} epochs, {best}{limit}")));
    }
    if let (Some(before), Some(after)) = (&r.before, &r.after) {
        // Of the floats, and of integers that were not tuned.
        let others = |of: &dyn Fn(&Score) -> String| match &r.untuned {
            Some(untuned) => format!("{} untuned, {} of floats", of(untuned), of(before)),
            None => format!("{} before", of(before)),
        };
        let loss = others(&|score| format!("{:.4e}", score.loss));
        rows.push(("loss", format!("{:.4e} mean {}, {loss}", after.loss, after.loss_kind)));
        if after.psnr_db.is_some() {
            let psnr = others(&|score| decibel(score.psnr_db));
            rows.push(("PSNR", format!("{}, {psnr}", decibel(after.psnr_db))));
        }
        if let Some(now) = after.accuracy {
            let accuracy = others(&|score| score.accuracy.map_or("none".into(), percent));
            rows.push(("accuracy", format!("{} of these rows, {accuracy}", percent(now))));
        }
    }
    rows.extend(warnings(r).into_iter().map(|text| ("warning", text)));
    facts(&title, &rows)
}

/// What of the integers is far from well.
fn warnings(r: &QuantiseReport) -> Vec<String> {
    let mut all = Vec::new();
    if r.samples < FEW {
        let rows = count(r.samples);
        all.push(format!(
            "scales of so few rows ({rows}) are those of chance: pass {FEW} or more, better hundreds"
        ));
    }
    if r.fraction_cut > MUCH {
        let share = percent(r.fraction_cut);
        all.push(format!("{share} of the activations are cut: pass a larger --fraction"));
    }
    if is_far(r) {
        all.push(
            "the outputs are far from those of the floats: the weights of a layer, or the inputs, \
             differ too much in size for 8 bits; try --tune 10 with labels, or \
             bring the inputs to one unit and train again"
                .into(),
        );
    }
    all
}

/// Whether the integers give other outputs than the floats; tuned ones may, where they are as good.
fn is_far(r: &QuantiseReport) -> bool {
    let is_worse = |before: &Score, after: &Score| match (before.accuracy, after.accuracy) {
        (Some(before), Some(after)) => after < before - LOST,
        _ => after.loss > (1.0 + LOST) * before.loss,
    };
    let is_good = match (&r.tune, &r.before, &r.after) {
        (Some(_), Some(before), Some(after)) => !is_worse(before, after),
        _ => false,
    };
    !is_good && r.outputs_psnr_db.is_some_and(|psnr| psnr < FAR)
}
