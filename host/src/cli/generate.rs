//! `tamis generate`

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;
use tamis::base::dims::Dims;
use tamis::network::gates::Signs;

use super::common::Common;
use super::console::count;
use super::interrupt;
use super::parse::{self, SIGNS};
use crate::base::file::{self, Files};
use crate::base::{check_setting, room_for};
use crate::data::planted::{self, Planted, PlantedDeep, PlantedNet};
use crate::data::{Array, Matrix, Values, digits, mixed, npy, npz};
use crate::train::check_dims;
use crate::{Error, Result};

/// Make data sets from a seed: X.npy and y.npy, and the planted weights where there are any; or a
/// table.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis generate planted --samples 50000 --inputs 100 --hidden 10 --nnz 50 --seed 0 -o planted
  tamis generate planted --samples 50000 --inputs 100 --hidden 10 --outputs 10 --nnz 50 -o ten
  tamis generate planted --samples 50000 --inputs 100 --hidden 10,10 --nnz 50 --seed 3 -o two-layers
  tamis generate planted --samples 5000 --inputs 100 --hidden 10 --nnz 50 --noise 0.1 -o noisy
  tamis generate gaussian --samples 400 --inputs 1000 --nnz 20 -o sensing
  tamis generate digits --samples 2000 --side 8 -o digits
  tamis generate table --samples 2000 -o people")]
pub(super) struct Generate {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, Subcommand)]
enum Kind {
    /// Labels from a network with known sparse weights, on standard normal samples
    ///
    /// weights.npz holds `index` (neuron · inputs + input), `value` (fused with the output sign),
    /// `shape` and `signs`; with --outputs, instead of `signs`, also `out_index` (neuron ·
    /// outputs + output), `out_value` and `out_shape`. With several hidden layers it holds `index1`,
    /// `value1` and `shape1` of the first layer, and so on.
    Planted {
        #[command(flatten)]
        size: Sizes,
        /// Hidden neurons; several numbers are several hidden layers, among which the nonzero
        /// weights are split evenly
        #[arg(long, value_name = "M", value_delimiter = ',', required = true,
              value_parser = parse::whole::<usize>)]
        hidden: Vec<usize>,
        /// Signs of the output weights
        #[arg(long, default_value = "positive", value_parser = parse::named(SIGNS))]
        signs: Signs,
        /// Outputs, each a label of a row: half of the nonzero weights lead to them
        #[arg(long, value_name = "C", conflicts_with = "signs",
              value_parser = parse::whole::<usize>)]
        outputs: Option<usize>,
    },
    /// Labels from sparse linear weights, y = X w, on standard normal samples
    Gaussian {
        #[command(flatten)]
        size: Sizes,
    },
    /// A table of people as CSV: numbers in several units, text, missing cells, two classes by name
    ///
    /// table.csv has the columns age, work, education, marital, occupation, sex, gain, hours and
    /// the target income.
    Table(TableSize),
    /// Drawn digits 0 to 9 as bytes, with random shapes, places and noise
    Digits {
        /// Images
        #[arg(long, value_name = "N", value_parser = parse::whole::<usize>)]
        samples: usize,
        /// Pixels of a side
        #[arg(long, value_name = "PIXELS", default_value_t = 8,
              value_parser = parse::whole::<usize>)]
        side: usize,
        /// The folder to write
        #[arg(short, long, value_name = "DIR")]
        output: PathBuf,
    },
}

#[derive(Debug, Clone, Args)]
struct TableSize {
    /// Rows
    #[arg(long, value_name = "N", value_parser = parse::whole::<usize>)]
    samples: usize,
    /// The folder to write
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

#[derive(Debug, Clone, Args)]
struct Sizes {
    /// Rows
    #[arg(long, value_name = "N", value_parser = parse::whole::<usize>)]
    samples: usize,
    /// Columns
    #[arg(long, value_name = "D", value_parser = parse::whole::<usize>)]
    inputs: usize,
    /// Nonzero weights
    #[arg(long, value_name = "S", value_parser = parse::whole::<usize>)]
    nnz: usize,
    /// Add normal noise of this standard deviation to the labels; the weights stay those of the
    /// labels without [default: 0]
    #[arg(long, value_name = "SIGMA", value_parser = parse::number)]
    noise: Option<f64>,
    /// The folder to write
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

const MOST_LAYERS: usize = 8;

/// Bytes for each planted weight while it is drawn: entry of a set, index and value.
const WEIGHT_BYTES: u64 = 24;

#[derive(Default, Serialize)]
struct Object {
    kind: &'static str,
    samples: usize,
    inputs: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hidden: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outputs: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nnz: Option<usize>,
    seed: u64,
    files: Vec<String>,
}

/// An array of weights.npz.
enum Stored {
    Indices(Vec<u32>),
    Values(Vec<f32>),
    Signs(Vec<i8>),
}

impl Stored {
    fn array(&self) -> Result<Array<'_>> {
        match self {
            Self::Indices(list) => Array::new(&[list.len()], list),
            Self::Values(list) => Array::new(&[list.len()], list),
            Self::Signs(list) => Array::new(&[list.len()], list),
        }
    }
}

/// A data set, and the weights that labelled it, by name.
struct Drawn {
    data: Matrix,
    labels: Vec<f32>,
    weights: Vec<(String, Stored)>,
}

/// A matrix of weights; {} in its names stands for `index`, `value` and `shape`.
fn matrix(
    names: &str,
    index: Vec<u32>,
    value: Vec<f32>,
    shape: [usize; 2],
) -> Vec<(String, Stored)> {
    let shape = Stored::Indices(shape.map(|len| len as u32).to_vec());
    let arrays = [Stored::Indices(index), Stored::Values(value), shape];
    let names = ["index", "value", "shape"].map(|name| names.replace("{}", name));
    names.into_iter().zip(arrays).collect()
}

impl From<Planted> for Drawn {
    fn from(planted: Planted) -> Self {
        let Planted { data, labels, index, value, hidden, signs } = planted;
        let signs = (0..hidden).map(|i| signs.sign(i) as i8).collect();
        let mut weights = matrix("{}", index, value, [hidden, data.cols]);
        weights.push(("signs".into(), Stored::Signs(signs)));
        Self { data, labels, weights }
    }
}

impl From<PlantedNet> for Drawn {
    fn from(planted: PlantedNet) -> Self {
        let PlantedNet { data, labels, hidden, outputs, .. } = planted;
        let mut weights = matrix("{}", planted.index, planted.value, [hidden, data.cols]);
        let (index, value) = (planted.out_index, planted.out_value);
        weights.extend(matrix("out_{}", index, value, [hidden, outputs]));
        Self { data, labels, weights }
    }
}

impl From<PlantedDeep> for Drawn {
    fn from(planted: PlantedDeep) -> Self {
        let PlantedDeep { data, labels, layers, widths } = planted;
        let layers = (1..).zip(layers).zip(widths.windows(2));
        let weights = layers.flat_map(|((at, (index, value)), width)| {
            matrix(&format!("{{}}{at}"), index, value, [width[1], width[0]])
        });
        Self { data, labels, weights: weights.collect() }
    }
}

impl Generate {
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        let object = match &self.kind {
            Kind::Planted { size, hidden, signs, outputs } => match (hidden.as_slice(), outputs) {
                (&[hidden], None) => {
                    let dims = size.check(hidden)?;
                    let draw = || planted::network(dims, *signs, common.seed);
                    size.make("planted", &[hidden], None, common, draw)?
                }
                (&[hidden], Some(outputs)) => {
                    let dims = size.check_outputs(hidden, *outputs)?;
                    let draw = || planted::factored(dims, *outputs, common.seed);
                    size.make("planted", &[hidden], Some(*outputs), common, draw)?
                }
                (_, outputs) => size.make_deep(hidden, *signs, outputs.unwrap_or(1), common)?,
            },
            Kind::Gaussian { size } => {
                size.check(1)?;
                let draw = || planted::linear(size.samples, size.inputs, size.nnz, common.seed);
                size.make("gaussian", &[1], None, common, draw)?
            }
            Kind::Table(size) => make_table(size, common)?,
            Kind::Digits { samples, side, output } => make_digits(*samples, *side, output, common)?,
        };
        common.result(&object, || {
            let (rows, inputs) = (count(object.samples), count(object.inputs));
            let files = object.files.join("\n  ");
            format!("{rows} rows of {inputs} inputs, seed {}\n  {files}", object.seed)
        })
    }
}

impl Sizes {
    fn check(&self, hidden: usize) -> Result<Dims> {
        let dims = Dims::new(self.samples, self.inputs, hidden, self.nnz);
        check_dims(&dims)?;
        self.check_room(hidden, 1)?;
        Ok(dims)
    }

    fn check_outputs(&self, hidden: usize, outputs: usize) -> Result<Dims> {
        check_dims(&Dims::new(self.samples, self.inputs, hidden, 1))?;
        let bounds = |flag: &str, most: usize, got: usize, help: &str| {
            check_setting((1..=most).contains(&got), format_args!("{flag} 1 to {most}"), got, help)
        };
        let most = u32::MAX as usize / hidden.max(self.samples);
        bounds("--outputs", most, outputs, "choose fewer outputs, neurons or rows")?;
        // Half of the weights lie on either side.
        let most = 2 * hidden * self.inputs.min(outputs);
        let help = "half of them lead to the outputs: choose fewer, or more --hidden or --outputs";
        bounds("--nnz", most, self.nnz, help)?;
        self.check_room(hidden, outputs)?;
        Ok(Dims::new(self.samples, self.inputs, hidden, self.nnz))
    }

    fn make_deep(
        &self,
        hidden: &[usize],
        signs: Signs,
        outputs: usize,
        common: &Common,
    ) -> Result<Object> {
        if signs != Signs::Positive || hidden.len() > MOST_LAYERS {
            let most = format!("2 to {MOST_LAYERS} hidden layers");
            return Err(Error::new("such a network of several hidden layers cannot be planted")
                .expected(most + ", which are summed up with positive signs")
                .got(format_args!("{} layers", hidden.len()))
                .help("leave --signs out, and pass fewer numbers to --hidden"));
        }
        if hidden.contains(&0) || outputs == 0 {
            return Err(Error::new("a layer has no neurons")
                .expected("at least one neuron in every layer, and one output")
                .got(format_args!("--hidden {hidden:?} and {outputs} outputs"))
                .help("try 10 neurons a layer"));
        }
        let (rows, inputs, nnz, seed) = (self.samples, self.inputs, self.nnz, common.seed);
        let ends = (outputs > 1).then_some(outputs);
        let widths = [&[inputs], hidden, ends.as_slice()].concat();
        let layers = widths.len() - 1;
        for (l, pair) in widths.windows(2).enumerate() {
            let share = planted::share(nnz, layers, l);
            let most = pair[0].saturating_mul(pair[1]);
            if !(1..=most.min(u32::MAX as usize)).contains(&share) {
                let shape = format!("layer {}, of {} × {}", l + 1, pair[1], pair[0]);
                return Err(Error::new("the nonzero weights do not fit the layers")
                    .expected(format_args!("1 to {most} weights in {shape}"))
                    .got(format_args!("{share}, of --nnz {nnz} split evenly over {layers} layers"))
                    .help("choose another --nnz, or more neurons"));
            }
        }
        check_dims(&Dims::new(rows, inputs, 1, 1))?;
        self.check_room(hidden.iter().fold(0, |sum, m| sum.saturating_add(*m)), outputs)?;
        let draw = || planted::deep(rows, inputs, hidden, outputs, nnz, seed);
        self.make("planted", hidden, ends, common, draw)
    }

    fn check_room(&self, hidden: usize, outputs: usize) -> Result<()> {
        let numbers = (self.samples as u64)
            .saturating_mul((self.inputs as u64).saturating_add(outputs as u64));
        room_for("the samples", numbers.saturating_mul(4), "choose smaller --samples or --inputs")?;
        let weights = (self.nnz as u64).saturating_mul(WEIGHT_BYTES).saturating_add(hidden as u64);
        room_for("the planted weights", weights, "choose smaller --nnz or --hidden")
    }

    /// Draws a data set, adds noise to its labels, and writes it with its weights.
    fn make<T: Into<Drawn> + Send>(
        &self,
        kind: &'static str,
        hidden: &[usize],
        outputs: Option<usize>,
        common: &Common,
        draw: impl FnOnce() -> tamis::Result<T> + Send,
    ) -> Result<Object> {
        let sigma = self.noise.unwrap_or(0.0);
        let holds = sigma >= 0.0 && (sigma as f32).is_finite();
        check_setting(holds, "--noise 0 or more", sigma, "leave --noise out for no noise")?;
        check_folder(&self.output, &["X.npy", "y.npy", "weights.npz"])?;
        let Drawn { data, mut labels, weights } = common.on_pool(draw)??.into();
        if hidden.len() > 1 && labels.iter().all(|&label| label == 0.0) {
            return Err(Error::new("the planted network gives 0 for every row")
                .expected("weights that lead from the inputs to the outputs")
                .got(format_args!("{} weights at random places, seed {}", self.nnz, common.seed))
                .help("choose another --seed, more --nnz or fewer neurons"));
        }
        planted::add_noise(&mut labels, sigma as f32, common.seed);
        let shape = [&[data.rows][..], outputs.as_slice()].concat();
        let labels = Array::new(&shape, &labels[..])?;
        save(&self.output, &data, &labels, |folder| {
            let arrays = weights.iter().map(|(name, stored)| Ok((name.as_str(), stored.array()?)));
            let arrays = arrays.collect::<Result<Vec<_>>>()?;
            folder.write("weights.npz", |w| npz::write(w, &arrays))
        })?;
        let (samples, inputs, nnz, seed) = (self.samples, self.inputs, Some(self.nnz), common.seed);
        let (hidden, files) = (hidden.to_vec(), ["X.npy", "y.npy", "weights.npz"]);
        let files = names(&self.output, &files);
        Ok(Object { kind, samples, inputs, hidden, outputs, nnz, seed, files })
    }
}

fn make_table(size: &TableSize, common: &Common) -> Result<Object> {
    let TableSize { samples, output } = size;
    check_setting(*samples > 0, "--samples 1 or more", 0, "pass the number of rows to make")?;
    check_folder(output, &["table.csv"])?;
    interrupt::saving(|| {
        file::write_folder(output, |folder| {
            folder.write("table.csv", |w| mixed::write(*samples, common.seed, w))
        })
    })?;
    let (kind, seed, files) = ("table", common.seed, names(output, &["table.csv"]));
    Ok(Object { kind, samples: *samples, inputs: mixed::INPUTS, seed, files, ..Object::default() })
}

fn make_digits(samples: usize, side: usize, output: &Path, common: &Common) -> Result<Object> {
    check_setting(samples > 0, "--samples 1 or more", 0, "pass the number of images to draw")?;
    digits::check_side(side)?;
    let pixels = (samples as u64).saturating_mul((side as u64).saturating_mul(side as u64));
    let help = "choose smaller --samples or --side";
    room_for("the images", pixels.saturating_add(samples as u64), help)?;
    check_folder(output, &["X.npy", "y.npy"])?;
    let (images, labels) = common.on_pool(|| digits::generate(samples, side, common.seed))??;
    save(output, &images, &Array::new(&[samples], &labels[..])?, |_| Ok(()))?;
    let (kind, inputs, seed) = ("digits", images.cols, common.seed);
    let files = names(output, &["X.npy", "y.npy"]);
    Ok(Object { kind, samples, inputs, seed, files, ..Object::default() })
}

/// Checks that these files can be made in a folder, and that none of another kind lies where they go.
pub(super) fn check_folder(output: &Path, names: &[&str]) -> Result<()> {
    file::check_folder(output)?;
    names.iter().try_for_each(|name| {
        let (path, kind) = (
            output.join(name),
            match *name {
                "table.csv" => file::Kind::table(const { &[mixed::COLUMNS.as_bytes()] }),
                "weights.npz" => file::Kind::NPZ.by_content(),
                _ => file::Kind::NPY.by_content(),
            },
        );
        if file::exists(&path)? { file::check(&path, kind, []) } else { Ok(()) }
    })
}

/// Writes samples, labels and what `more` writes: all of them or none.
pub(super) fn save(
    output: &Path,
    data: &Matrix,
    labels: &Array<'_>,
    more: impl FnOnce(&mut Files) -> Result<()>,
) -> Result<()> {
    let shape = [data.rows, data.cols];
    let samples = match &data.values {
        Values::F32(values) => Array::new(&shape, &values[..])?,
        Values::U8(values) => Array::new(&shape, &values[..])?,
    };
    interrupt::saving(|| {
        file::write_folder(output, |folder| {
            folder.write("X.npy", |w| npy::write(w, &samples))?;
            folder.write("y.npy", |w| npy::write(w, labels))?;
            more(folder)
        })
    })
}

fn names(folder: &Path, files: &[&str]) -> Vec<String> {
    files.iter().map(|name| folder.join(name).display().to_string()).collect()
}
