//! `tamis quantize`

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tamis::quantised::Encoding;
use tamis::wire::Choice;

use super::console::{bytes, count, decibel, facts, percent};
use super::saved::Object;
use super::train::save;
use super::{Common, Console, parse};
use crate::run::{
    Granularity, Labels, ModelFile, Problem, QuantiseOptions, QuantiseReport, Source, quantise,
};
use crate::{Error, Result, data, file};

/// Make a model of 8-bit integers, for parts without a float unit, with scales from rows of data.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis quantize model.tamis --data X.npy --labels y.npy -o small.tamis
  tamis quantize digits.tamis --data train-images-idx3-ubyte.gz --per-neuron --encoding fastest -o digits-int8.tamis")]
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
    keep_labels: Option<Vec<f32>>,
    /// The model to write
    #[arg(short, long, value_name = "Q.tamis")]
    output: PathBuf,
    /// One scale for the weights of each layer (the default)
    #[arg(long, conflicts_with = "per_neuron")]
    per_layer: bool,
    /// A scale for the weights of each neuron: finer, for 4 bytes a neuron
    #[arg(long)]
    per_neuron: bool,
    /// Part of the activations above 0 that is not cut, such as 0.999 [default: the one with the least error of the outputs]
    #[arg(long, value_name = "PART", value_parser = parse::number)]
    part: Option<f64>,
    /// How weights are held
    #[arg(long, value_enum, default_value_t = EncodingName::Smallest)]
    encoding: EncodingName,
}

/// The PSNR of outputs against those before, in dB, below which a model of integers is not what it was made of.
const FAR: f64 = 25.0;

/// `--encoding`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum EncodingName {
    /// The fewest bytes, layer by layer
    Smallest,
    /// The fewest instructions on a Cortex-M4
    Fastest,
    /// All weights, zeros too
    Dense,
    /// A bit for each weight that could be
    Bitmask,
    /// Columns of 16 bits
    Rows,
    /// Distances of 8 bits
    Distances,
    /// Windows of 256 columns with pairs of index and weight
    Blocks,
}

impl From<EncodingName> for Choice {
    fn from(name: EncodingName) -> Self {
        match name {
            EncodingName::Smallest => Self::Smallest,
            EncodingName::Fastest => Self::Fastest,
            EncodingName::Dense => Self::Prefer(Encoding::Dense),
            EncodingName::Bitmask => Self::Prefer(Encoding::Mask),
            EncodingName::Rows => Self::Prefer(Encoding::Csr),
            EncodingName::Distances => Self::Prefer(Encoding::Delta),
            EncodingName::Blocks => Self::Prefer(Encoding::Blocks),
        }
    }
}

impl Quantise {
    pub(super) fn run(&self, common: &Common, console: &Console) -> Result<()> {
        if let Some(part) = self.part.filter(|part| !(*part > 0.0 && *part <= 1.0)) {
            return Err(Error::new("a setting is out of bounds")
                .expected("--part above 0, at most 1")
                .got(part)
                .help("leave --part out for the best of several"));
        }
        file::check(&self.output)?;
        let inputs = [self.model.as_path(), self.data.as_path()].into_iter().chain(self.labels.as_deref());
        file::check_distinct(&self.output, inputs)?;
        let model = ModelFile::load(&self.model)?;
        let (data, scored) = self.rows(&model)?;
        let options = QuantiseOptions {
            granularity: if self.per_neuron { Granularity::PerNeuron } else { Granularity::PerLayer },
            part: self.part,
            choice: self.encoding.into(),
        };
        let labels = scored.as_ref().map(|problem| (problem.task, problem.labels.as_slice()));
        let rows = data.as_ref().or(scored.as_ref().map(|problem| &problem.data));
        let rows = rows.ok_or_else(|| Error::new("there are no rows").help("pass rows with --data"))?;
        let outcome = common.on_pool(|| quantise(&model, rows, labels, &options))??;
        save(&self.output, &outcome.model)?;
        let object = Object::new(&self.output, &outcome.model, &outcome.report);
        console.result(&object, || summary(&object))
    }

    /// Rows alone, or a problem to score as well.
    fn rows(&self, model: &ModelFile) -> Result<(Option<data::Matrix>, Option<Problem>)> {
        let labels = match (&self.labels, &self.target) {
            (Some(path), _) => Labels::File(path.clone()),
            (None, Some(column)) => Labels::Column(column.clone()),
            (None, None) if self.keep_labels.is_some() => {
                return Err(Error::new("labels to keep need labels")
                    .expected("--labels or --target")
                    .got("--keep-labels alone")
                    .help("pass the labels, or leave --keep-labels out"));
            }
            (None, None) => return Ok((Some(data::load_table(&self.data)?.matrix), None)),
        };
        let source =
            Source { data: self.data.clone(), labels, keep: self.keep_labels.clone(), rows_per_label: None };
        let problem = source.load(model.task()?)?;
        model.check_fit(&source, &problem)?;
        Ok((None, Some(problem)))
    }
}

fn summary(object: &Object<'_, QuantiseReport>) -> String {
    let r = object.report;
    let title = object.title(false);
    let mut rows = vec![
        (
            "model",
            format!("{}, of floats {}", bytes(object.model_bytes as u64), bytes(r.model_bytes_before as u64)),
        ),
        ("nonzeros", format!("{} of {}", count(r.nnz as u64), count(r.nnz_before as u64))),
        (
            "inputs",
            if r.bytes_as_they_are {
                format!("bytes as they are, a step stands for {}", r.input_scale)
            } else {
                format!("rounded to steps of {:e}, 0 is byte {}", r.input_scale, r.input_zero)
            },
        ),
        (
            "biases",
            match r.biases {
                0 => "none".into(),
                some => format!("{}, of a last input that is 1 in every row", count(some as u64)),
            },
        ),
        ("outputs", format!("{} against those before", decibel(r.outputs_psnr_db))),
    ];
    for layer in &r.layers {
        let shape = format!("{}→{}", count(layer.inputs as u64), count(layer.outputs as u64));
        let held = format!("{} weights as {}", count(layer.nnz as u64), layer.encoding);
        rows.push(("layer", format!("{shape}: {held}, {}", bytes(layer.flash_bytes as u64))));
    }
    if let (Some(before), Some(after)) = (&r.before, &r.after) {
        rows.push((
            "loss",
            format!("{:.4e} mean {}, {:.4e} before", after.loss, after.loss_kind, before.loss),
        ));
        if after.psnr_db.is_some() {
            rows.push(("PSNR", format!("{}, {} before", decibel(after.psnr_db), decibel(before.psnr_db))));
        }
        if let (Some(now), Some(before)) = (after.accuracy, before.accuracy) {
            rows.push(("accuracy", format!("{} of these rows, {} before", percent(now), percent(before))));
        }
    }
    if r.outputs_psnr_db.is_some_and(|psnr| psnr < FAR) {
        let far = "the outputs are far from those of the floats: the weights of a layer, or the inputs, differ too much in \
                   size for 8 bits; bring the inputs to one unit and train again, or try --per-neuron";
        rows.push(("warning", far.into()));
    }
    facts(&title, &rows)
}
