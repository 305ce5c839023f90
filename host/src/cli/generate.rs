//! `tamis generate`

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;
use tamis::base::dims::Dims;

use super::common::Common;
use super::console::Console;
use super::console::count;
use super::interrupt;
use super::parse::{self, SignsName};
use crate::base::file::{self, Folder};
use crate::base::room_for;
use crate::data::planted::{self, Planted};
use crate::data::{Array, Matrix, Values, digits, npy, npz};
use crate::train::check_dims;
use crate::{Error, Result};

/// Make data sets from a seed: X.npy and y.npy, and the planted weights where there are any.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis generate planted --samples 50000 --inputs 100 --hidden 10 --nnz 50 --seed 0 -o planted
  tamis generate planted --samples 50000 --inputs 100 --hidden 10 --outputs 10 --nnz 50 -o ten
  tamis generate planted --samples 50000 --inputs 100 --hidden 10,10 --nnz 50 --seed 3 -o two-layers
  tamis generate planted --samples 5000 --inputs 100 --hidden 10 --nnz 50 --noise 0.1 -o noisy
  tamis generate gaussian --samples 400 --inputs 1000 --nnz 20 -o sensing
  tamis generate digits --samples 2000 --side 8 -o digits")]
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
        #[arg(long, value_name = "M", value_delimiter = ',', required = true, value_parser = parse::whole::<usize>)]
        hidden: Vec<usize>,
        /// Signs of the output weights
        #[arg(long, value_enum, default_value_t = SignsName::Positive)]
        signs: SignsName,
        /// Outputs, each a label of a row: half of the nonzero weights lead to them
        #[arg(long, value_name = "C", conflicts_with = "signs", value_parser = parse::whole::<usize>)]
        outputs: Option<usize>,
    },
    /// Labels from sparse linear weights, y = X w, on standard normal samples
    Gaussian {
        #[command(flatten)]
        size: Sizes,
    },
    /// Drawn digits 0 to 9 as bytes, with random shapes, places and noise
    Digits {
        /// Images
        #[arg(long, value_name = "N", value_parser = parse::whole::<usize>)]
        samples: usize,
        /// Pixels of a side
        #[arg(long, value_name = "PIXELS", default_value_t = 8, value_parser = parse::whole::<usize>)]
        side: usize,
        /// The folder to write
        #[arg(short, long, value_name = "DIR")]
        output: PathBuf,
    },
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

/// Most hidden layers.
const LAYERS: usize = 8;

/// Bytes for each planted weight while it is drawn: its place in a sorted set, its index and its
/// value.
const WEIGHT_BYTES: u64 = 24;

#[derive(Serialize)]
struct Object {
    kind: &'static str,
    samples: usize,
    inputs: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    hidden: Option<Vec<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outputs: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nnz: Option<usize>,
    seed: u64,
    files: Vec<String>,
}

impl Generate {
    pub(super) fn run(&self, common: &Common, console: &Console) -> Result<()> {
        let object = match &self.kind {
            Kind::Planted { size, hidden, signs, outputs } => match (hidden.as_slice(), outputs) {
                (&[hidden], None) => {
                    let dims = size.check(hidden)?;
                    size.make("planted", common, || {
                        planted::network(dims, (*signs).into(), common.seed)
                    })?
                }
                (&[hidden], Some(outputs)) => size.make_factored(hidden, *outputs, common)?,
                (_, outputs) => size.make_deep(hidden, *signs, outputs.unwrap_or(1), common)?,
            },
            Kind::Gaussian { size } => {
                size.check(1)?;
                let linear = || planted::linear(size.samples, size.inputs, size.nnz, common.seed);
                size.make("gaussian", common, linear)?
            }
            Kind::Digits { samples, side, output } => make_digits(*samples, *side, output, common)?,
        };
        console.result(&object, || {
            format!(
                "{} rows of {} inputs, seed {}\n  {}",
                count(object.samples as u64),
                count(object.inputs as u64),
                object.seed,
                object.files.join("\n  ")
            )
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

    /// A network of several outputs.
    fn make_factored(&self, hidden: usize, outputs: usize, common: &Common) -> Result<Object> {
        let dims = Dims::new(self.samples, self.inputs, hidden, self.nnz);
        check_dims(&Dims::new(self.samples, self.inputs, hidden, 1))?;
        let bounds = |what: &str, flag: &str, most: usize, got: usize, help: &str| {
            if (1..=most).contains(&got) {
                return Ok(());
            }
            Err(Error::new(format!("the number of {what} is out of bounds"))
                .expected(format_args!("{flag} 1 to {most}"))
                .got(got)
                .help(help))
        };
        let help = "choose fewer outputs, neurons or rows";
        bounds(
            "outputs",
            "--outputs",
            u32::MAX as usize / hidden.max(self.samples),
            outputs,
            help,
        )?;
        // Half of the weights lie on either side.
        let most = 2 * hidden * self.inputs.min(outputs);
        let help = "half of them lead to the outputs: choose fewer, or more --hidden or --outputs";
        bounds("nonzeros", "--nnz", most, self.nnz, help)?;
        self.check_room(hidden, outputs)?;
        self.sigma()?;
        file::check_folder(&self.output)?;
        let mut made = common.on_pool(|| planted::factored(dims, outputs, common.seed))??;
        planted::add_noise(&mut made.labels, self.sigma()?, common.seed);
        let labels = Array::new(&[made.data.rows, outputs], &made.labels[..])?;
        save(&self.output, &made.data, &labels, |folder| {
            let shape = [hidden, made.data.cols].map(|len| len as u32);
            let out_shape = [hidden, outputs].map(|len| len as u32);
            let arrays = [
                ("index", Array::new(&[made.index.len()], &made.index[..])?),
                ("value", Array::new(&[made.value.len()], &made.value[..])?),
                ("shape", Array::new(&[2], &shape[..])?),
                ("out_index", Array::new(&[made.out_index.len()], &made.out_index[..])?),
                ("out_value", Array::new(&[made.out_value.len()], &made.out_value[..])?),
                ("out_shape", Array::new(&[2], &out_shape[..])?),
            ];
            folder.write("weights.npz", |w| npz::write(w, &arrays))
        })?;
        Ok(Object {
            kind: "planted",
            samples: self.samples,
            inputs: self.inputs,
            hidden: Some(vec![hidden]),
            outputs: Some(outputs),
            nnz: Some(self.nnz),
            seed: common.seed,
            files: names(&self.output, &["X.npy", "y.npy", "weights.npz"]),
        })
    }

    /// A network of several hidden layers.
    fn make_deep(
        &self,
        hidden: &[usize],
        signs: SignsName,
        outputs: usize,
        common: &Common,
    ) -> Result<Object> {
        if signs != SignsName::Positive || hidden.len() > LAYERS {
            return Err(Error::new("such a network of several hidden layers cannot be planted")
                .expected(format_args!(
                    "2 to {LAYERS} hidden layers, which are summed up with positive signs"
                ))
                .got(format_args!("{} layers", hidden.len()))
                .help("leave --signs out, and pass fewer numbers to --hidden"));
        }
        if hidden.contains(&0) || outputs == 0 {
            return Err(Error::new("a layer has no neurons")
                .expected("at least one neuron in every layer, and one output")
                .got(format_args!("--hidden {hidden:?} and {outputs} outputs"))
                .help("10 neurons a layer are usual"));
        }
        let end: &[usize] = if outputs > 1 { &[outputs] } else { &[] };
        let widths = [&[self.inputs], hidden, end].concat();
        let layers = widths.len() - 1;
        for (l, pair) in widths.windows(2).enumerate() {
            let share = planted::share(self.nnz, layers, l);
            let most = pair[0].saturating_mul(pair[1]);
            if !(1..=most.min(u32::MAX as usize)).contains(&share) {
                return Err(Error::new("the nonzero weights do not fit the layers")
                    .expected(format_args!(
                        "1 to {most} weights in layer {}, of {} × {}",
                        l + 1,
                        pair[1],
                        pair[0]
                    ))
                    .got(format_args!(
                        "{share}, of --nnz {} split evenly over {layers} layers",
                        self.nnz
                    ))
                    .help("choose another --nnz, or more neurons"));
            }
        }
        check_dims(&Dims::new(self.samples, self.inputs, 1, 1))?;
        self.check_room(hidden.iter().fold(0, |sum, m| sum.saturating_add(*m)), outputs)?;
        let sigma = self.sigma()?;
        file::check_folder(&self.output)?;
        let (rows, inputs, nnz) = (self.samples, self.inputs, self.nnz);
        let mut made =
            common.on_pool(|| planted::deep(rows, inputs, hidden, outputs, nnz, common.seed))??;
        if made.labels.iter().all(|&label| label == 0.0) {
            return Err(Error::new("the planted network gives 0 for every row")
                .expected("weights that lead from the inputs to the outputs")
                .got(format_args!(
                    "{nnz} weights at random places of {layers} layers, seed {}",
                    common.seed
                ))
                .help("choose another --seed, more --nnz or fewer neurons"));
        }
        planted::add_noise(&mut made.labels, sigma, common.seed);
        let shape = if outputs > 1 { vec![rows, outputs] } else { vec![rows] };
        let labels = Array::new(&shape, &made.labels[..])?;
        save(&self.output, &made.data, &labels, |folder| {
            let shapes: Vec<[u32; 2]> =
                made.widths.windows(2).map(|pair| [pair[1] as u32, pair[0] as u32]).collect();
            let named: Vec<[String; 3]> = (1..=layers)
                .map(|l| ["index", "value", "shape"].map(|name| format!("{name}{l}")))
                .collect();
            let mut arrays = Vec::new();
            for (((index, value), shape), [of_index, of_value, of_shape]) in
                made.layers.iter().zip(&shapes).zip(&named)
            {
                arrays.push((of_index.as_str(), Array::new(&[index.len()], &index[..])?));
                arrays.push((of_value.as_str(), Array::new(&[value.len()], &value[..])?));
                arrays.push((of_shape.as_str(), Array::new(&[2], &shape[..])?));
            }
            folder.write("weights.npz", |w| npz::write(w, &arrays))
        })?;
        Ok(Object {
            kind: "planted",
            samples: rows,
            inputs,
            hidden: Some(hidden.to_vec()),
            outputs: (outputs > 1).then_some(outputs),
            nnz: Some(nnz),
            seed: common.seed,
            files: names(&self.output, &["X.npy", "y.npy", "weights.npz"]),
        })
    }

    /// The noise of the labels.
    fn sigma(&self) -> Result<f32> {
        match self.noise.unwrap_or(0.0) {
            sigma if sigma >= 0.0 && (sigma as f32).is_finite() => Ok(sigma as f32),
            sigma => Err(Error::new("the noise is out of bounds")
                .expected("--noise 0 or more")
                .got(sigma)
                .help("leave --noise out for labels without noise")),
        }
    }

    /// Checks that there is memory for samples, labels and weights.
    fn check_room(&self, hidden: usize, outputs: usize) -> Result<()> {
        let numbers = (self.samples as u64)
            .saturating_mul((self.inputs as u64).saturating_add(outputs as u64));
        room_for("the samples", numbers.saturating_mul(4), "choose smaller --samples or --inputs")?;
        let weights = (self.nnz as u64).saturating_mul(WEIGHT_BYTES).saturating_add(hidden as u64);
        room_for("the planted weights", weights, "choose smaller --nnz or --hidden")
    }

    fn make(
        &self,
        kind: &'static str,
        common: &Common,
        plant: impl FnOnce() -> tamis::Result<Planted> + Send,
    ) -> Result<Object> {
        let sigma = self.sigma()?;
        file::check_folder(&self.output)?;
        let mut made = common.on_pool(plant)??;
        planted::add_noise(&mut made.labels, sigma, common.seed);
        let labels = Array::new(&[made.labels.len()], &made.labels[..])?;
        save(&self.output, &made.data, &labels, |folder| write_weights(folder, &made))?;
        Ok(Object {
            kind,
            samples: self.samples,
            inputs: self.inputs,
            hidden: Some(vec![made.hidden]),
            outputs: None,
            nnz: Some(made.index.len()),
            seed: common.seed,
            files: names(&self.output, &["X.npy", "y.npy", "weights.npz"]),
        })
    }
}

fn make_digits(samples: usize, side: usize, output: &Path, common: &Common) -> Result<Object> {
    if samples == 0 {
        return Err(Error::new("a data set needs samples")
            .expected("--samples 1 or more")
            .got(0)
            .help("pass the number of images to draw"));
    }
    digits::check_side(side)?;
    let pixels = (samples as u64).saturating_mul((side as u64).saturating_mul(side as u64));
    room_for(
        "the images",
        pixels.saturating_add(samples as u64),
        "choose smaller --samples or --side",
    )?;
    file::check_folder(output)?;
    let (images, labels) = common.on_pool(|| digits::generate(samples, side, common.seed))??;
    save(output, &images, &Array::new(&[samples], &labels[..])?, |_| Ok(()))?;
    let files = names(output, &["X.npy", "y.npy"]);
    Ok(Object {
        kind: "digits",
        samples,
        inputs: images.cols,
        hidden: None,
        outputs: None,
        nnz: None,
        seed: common.seed,
        files,
    })
}

/// Samples, labels and what `more` writes: all of them or none.
fn save(
    output: &Path,
    data: &Matrix,
    labels: &Array<'_>,
    more: impl FnOnce(&mut Folder) -> Result<()>,
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

fn write_weights(folder: &mut Folder, made: &Planted) -> Result<()> {
    let shape = [made.hidden, made.data.cols].map(|len| len as u32);
    let signs: Vec<i8> = (0..made.hidden).map(|i| made.signs.sign(i) as i8).collect();
    let arrays = [
        ("index", Array::new(&[made.index.len()], &made.index[..])?),
        ("value", Array::new(&[made.value.len()], &made.value[..])?),
        ("shape", Array::new(&[2], &shape[..])?),
        ("signs", Array::new(&[signs.len()], &signs[..])?),
    ];
    folder.write("weights.npz", |w| npz::write(w, &arrays))
}

fn names(folder: &Path, files: &[&str]) -> Vec<String> {
    files.iter().map(|name| folder.join(name).display().to_string()).collect()
}
