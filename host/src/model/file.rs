//! A model file: checked when it is read, predictions in parallel, and what it costs.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use tamis::infer::model::{Activation, Layer};
use tamis::store::wire::{self, Choice, Cost, MaskView, QuantisedView, View, checksum};

use crate::base::file::{self, Aligned};
use crate::data::{Matrix, Task};
use crate::model::Score;
use crate::model::cost::integer_macs;
use crate::model::predict::{inputs_cut, predict_integers, predict_rows};
use crate::model::score::threshold;
use crate::{Error, Result};

/// A `.tamis` file in memory, found to be valid.
#[derive(Debug, Clone)]
pub struct ModelFile {
    path: PathBuf,
    bytes: Aligned,
}

/// What one layer costs; bytes and operations as [`tamis::store::wire::Cost`] counts them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerCost {
    /// `sparse`, `blocks` or `sum`; of integers the encoding of the weights.
    pub kind: &'static str,
    /// `relu` or `identity`.
    pub activation: &'static str,
    /// Numbers that it takes.
    pub inputs: usize,
    /// Numbers that it gives.
    pub outputs: usize,
    /// Requested outputs; those without weights are not stored.
    pub requested: usize,
    /// Biases that are not 0; of floats they count as nonzeros.
    pub biases: usize,
    /// Weights as a fraction of those of the dense layer; 0 of a sum, which has none.
    pub density: f64,
    /// Its cost.
    #[serde(flatten, serialize_with = "cost_names")]
    pub cost: Cost,
}

/// A cost under the names that the command line uses.
fn cost_names<S: Serializer>(cost: &Cost, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("nnz", &cost.nonzeros)?;
    map.serialize_entry("flash_bytes", &cost.flash_bytes)?;
    map.serialize_entry("ram_bytes", &cost.ram_bytes)?;
    map.serialize_entry("macs", &cost.macs)?;
    map.serialize_entry("dense_flash_bytes", &cost.dense_flash_bytes)?;
    map.serialize_entry("dense_macs", &cost.dense_macs)?;
    map.end()
}

/// What the integers of a model stand for, as [`tamis::infer::quantised::Scales`] has it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct IntegerScales {
    /// Whether each input has a scale and a zero of its own, in place of the two below.
    pub columns: bool,
    /// A step of an input byte.
    pub input: f32,
    /// The byte that stands for 0.
    pub zero: u8,
    /// A step of an output.
    pub output: f32,
    /// The least output that is class 1, of a binary task.
    pub threshold: i32,
}

/// What a model costs, layer by layer and in all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelCost {
    /// The file.
    pub model: String,
    /// Its length in bytes.
    pub file_bytes: usize,
    /// Its checksum, CRC-32.
    pub crc32: String,
    /// Numbers in one input row.
    pub inputs: usize,
    /// Numbers in one prediction.
    pub outputs: usize,
    /// Requested neurons in each hidden layer.
    pub hidden: Vec<usize>,
    /// What it was trained for, as [`ModelFile::task`] says.
    pub task: Option<Task>,
    /// The least prediction that is class 1; none but for a binary task.
    pub threshold: Option<f32>,
    /// What the integers of the model stand for; none for one of floats.
    pub integers: Option<IntegerScales>,
    /// Layer by layer.
    pub layers: Vec<LayerCost>,
    /// The whole, with header, task and shared scratch.
    #[serde(serialize_with = "cost_names")]
    pub total: Cost,
}

impl ModelFile {
    /// Reads and checks a model.
    ///
    /// # Errors
    /// The file cannot be read, or is no valid model of this version.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let bytes = file::read_aligned(&path)?;
        let model = Self { path, bytes };
        model.open()?;
        Ok(model)
    }

    /// A model from the bytes of a `.tamis` file.
    ///
    /// # Errors
    /// They are no valid model of this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let model = Self::new(bytes);
        model.open()?;
        Ok(model)
    }

    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self { path: PathBuf::from("(in memory)"), bytes: Aligned::new(bytes) }
    }

    /// The same model with the path that errors name.
    pub(crate) fn named(self, path: &Path) -> Self {
        Self { path: path.to_owned(), ..self }
    }

    /// Writes the model file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        file::write(path.as_ref(), |out| out.write_all(&self.bytes))
    }

    /// The model in place.
    ///
    /// # Errors
    /// None for a model of floats, once [`load`](Self::load) has succeeded; for one of integers
    /// always.
    pub fn view(&self) -> Result<View<'_>> {
        if let Opened::Floats(view) = self.open()? {
            return Ok(view);
        }
        let what = "the model is one of integers, which cannot be fitted or rounded again";
        let error = Error::new(what).at(&self.path).expected("a model of floats");
        Err(error.help("pass the model that it was made of"))
    }

    /// The checksum as `inspect` shows it.
    pub(crate) fn checksum(&self) -> String {
        format!("{:08x}", checksum(&self.bytes))
    }

    pub(crate) fn with_bytes(&self, bytes: Aligned) -> Self {
        Self { path: self.path.clone(), bytes }
    }

    /// The bytes of the file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where the model was read.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn open(&self) -> Result<Opened<'_>> {
        let opened = if QuantisedView::is(&self.bytes) {
            QuantisedView::parse(&self.bytes).map(Opened::Integers)
        } else {
            View::parse(&self.bytes).map(Opened::Floats)
        };
        opened.map_err(|error| self.damaged(error).at(&self.path))
    }

    /// What is wrong with bytes that are no model, in numbers to compare with the file.
    fn damaged(&self, error: tamis::Error) -> Error {
        const NONE: &str = "this is no .tamis model: tamis import reads models of other programs";
        const CUT: &str = "the file is cut off or damaged: copy it again, or train it again";
        const LATER: &str = "update tamis, or train the model again with this one";
        let (len, head) = (self.bytes.len(), &self.bytes[..self.bytes.len().min(4)]);
        if MaskView::parse(&self.bytes).is_ok() {
            return Error::new("the file is a mask, not a model")
                .mismatch("a model that tamis train has written", "a mask of tamis mask")
                .help("train a model under it with tamis train --mask, and pass that model");
        }
        match error {
            tamis::Error::Version { reads, got } => {
                Error::new("the model has a later format than this program reads")
                    .expected(format_args!("format version {reads}"))
                    .got(format_args!("format version {got}"))
                    .help(LATER)
            }
            tamis::Error::Removed { what, at, got } => {
                Error::new("the model holds its integers in a way that is no longer read")
                    .expected("dense layers, bitmasks or blocks")
                    .got(format_args!("{what} {got} at byte {at}"))
                    .help(
                        "quantize the model of floats again, or, with the tamis that wrote this \
                         file, tamis export --format tamis --encoding blocks",
                    )
            }
            tamis::Error::Newer { .. } => Error::from(error).help(LATER),
            _ if len == 0 => Error::new("the model is an empty file").help(CUT),
            tamis::Error::Format { at: 0, .. } => Error::new("the file is no model")
                .expected("the magic \"\\x89TAM\" at its start")
                .got(format_args!("\"{}\"", head.escape_ascii()))
                .help(NONE),
            tamis::Error::Format { what: "length of the model", expected, got, .. }
                if got as usize == len =>
            {
                Error::new("the model does not have the length that it says")
                    .expected(format_args!("{expected} bytes"))
                    .got(format_args!("{len} bytes"))
                    .help(CUT)
            }
            tamis::Error::Format { what: "checksum", expected, got, .. } => {
                Error::new("the model is damaged")
                    .expected(format_args!("checksum {got:08x}, as the file says"))
                    .got(format_args!("checksum {expected:08x}, that of its bytes"))
                    .help(CUT)
            }
            tamis::Error::Format { what, at, expected, got } => {
                Error::new(format!("{what} at byte {at}")).expected(expected).got(got).help(CUT)
            }
            error => Error::from(error).help(CUT),
        }
    }

    /// What the model was trained for: as the file says, or several classes where it does not say
    /// and has several outputs; else none.
    ///
    /// # Errors
    /// As [`view`](Self::view); a task that only a later version can score.
    pub fn task(&self) -> Result<Option<Task>> {
        let opened = self.open()?;
        match opened.task() {
            None => Ok((opened.outputs() > 1).then_some(Task::Multiclass)),
            Some(wire::Task::Regression) => Ok(Some(Task::Regression)),
            Some(wire::Task::Binary { .. }) => Ok(Some(Task::Binary)),
            Some(wire::Task::Multiclass) => Ok(Some(Task::Multiclass)),
            Some(other) => {
                Err(Error::new("the model was trained for a task that this program cannot score")
                    .at(&self.path)
                    .expected("regression, binary or multiclass")
                    .got(format_args!("{other:?}"))
                    .help("update tamis"))
            }
        }
    }

    /// Scores predictions of the model by `task`, with the threshold of the file or else the
    /// default one.
    ///
    /// # Errors
    /// As [`view`](Self::view).
    pub fn score(&self, task: Task, labels: &[f32], predictions: &[f32]) -> Result<Score> {
        let opened = self.open()?;
        Ok(Score::stored(opened.task(), opened.outputs(), task, labels, predictions))
    }

    /// The prediction for every row, `outputs` numbers each; runs on the current rayon pool.
    ///
    /// # Errors
    /// The data has not as many columns as the model has inputs, or a prediction overflows.
    pub fn predict(&self, data: &Matrix) -> Result<Vec<f32>> {
        self.check_columns(data)?;
        match self.open()? {
            Opened::Floats(view) => predict_rows(view.model(), data),
            Opened::Integers(view) => predict_integers(view.model(), data),
        }
        .map_err(|error| error.at(&self.path))
    }

    /// Numbers of these rows, in the columns that a model of integers reads, that lie beyond what
    /// its input bytes can stand for: each is cut to the end of that range. None for a model of
    /// floats.
    ///
    /// # Errors
    /// The data has not as many columns as the model has inputs.
    pub fn inputs_cut(&self, data: &Matrix) -> Result<Option<usize>> {
        self.check_columns(data)?;
        Ok(match self.open()? {
            Opened::Floats(_) => None,
            Opened::Integers(view) => Some(inputs_cut(view.model(), data)),
        })
    }

    /// Whether the data has as many columns as the model has inputs.
    pub(crate) fn check_columns(&self, data: &Matrix) -> Result<()> {
        let inputs = self.open()?.inputs();
        if data.cols != inputs {
            let hint = "name a column of labels with --target";
            return Err(Error::new("the data does not fit the model")
                .at(&self.path)
                .expected(format_args!("{inputs} columns"))
                .got(format_args!("{} columns", data.cols))
                .help(format!("pass the columns that the model was trained on; {hint}")));
        }
        Ok(())
    }

    /// What the model costs.
    ///
    /// # Errors
    /// As [`view`](Self::view).
    pub fn cost(&self) -> Result<ModelCost> {
        let opened = self.open()?;
        let (layers, total, integers) = match &opened {
            Opened::Floats(view) => {
                let model = view.model();
                let costs = model.layers().iter().zip(model.layer_costs());
                let layers = costs.map(|(layer, cost)| layer_cost(layer, cost)).collect();
                (layers, Cost { flash_bytes: view.encoded_len(), ..model.cost() }, None)
            }
            Opened::Integers(view) => {
                let (layers, scales) = (integer_costs(view), view.model().scales());
                let total = layers.iter().fold(Cost::default(), |sum, layer| sum + layer.cost);
                let flash_bytes = view.encoded_len(Choice::Keep);
                let ram_bytes = 4 * view.model().scratch_len();
                let scales = IntegerScales {
                    columns: view.model().readings().columns().is_some(),
                    input: scales.input(),
                    zero: scales.zero,
                    output: scales.output(),
                    threshold: scales.threshold,
                };
                (layers, Cost { flash_bytes, ram_bytes, ..total }, Some(scales))
            }
        };
        Ok(ModelCost {
            model: self.path.display().to_string(),
            file_bytes: self.bytes.len(),
            crc32: self.checksum(),
            inputs: opened.inputs(),
            outputs: opened.outputs(),
            hidden: layers.iter().filter(|l| l.activation == "relu").map(|l| l.requested).collect(),
            task: self.task()?,
            threshold: threshold(opened.task()),
            integers,
            total,
            layers,
        })
    }
}

#[allow(clippy::large_enum_variant, reason = "lives on the stack for one call")]
pub(crate) enum Opened<'a> {
    Floats(View<'a>),
    Integers(QuantisedView<'a>),
}

impl Opened<'_> {
    pub(crate) fn task(&self) -> Option<wire::Task> {
        match self {
            Self::Floats(view) => view.task(),
            Self::Integers(view) => view.task(),
        }
    }

    pub(crate) fn inputs(&self) -> usize {
        match self {
            Self::Floats(view) => view.model().inputs(),
            Self::Integers(view) => view.model().inputs(),
        }
    }

    pub(crate) fn outputs(&self) -> usize {
        match self {
            Self::Floats(view) => view.model().outputs(),
            Self::Integers(view) => view.model().outputs(),
        }
    }
}

/// The costs of the layers. A layer's RAM are its sums and its bytes.
fn integer_costs(view: &QuantisedView<'_>) -> Vec<LayerCost> {
    let (model, mut dense_inputs) = (view.model(), view.model().inputs());
    let mut layers = Vec::new();
    for (at, layer) in model.layers().iter().enumerate() {
        let last = at + 1 == model.layers().len() && model.sum().is_none();
        let (weights, outputs, requested) = (layer.weights(), layer.outputs(), layer.requested());
        let dense_macs = dense_inputs.saturating_mul(requested);
        let cost = Cost {
            nonzeros: weights.nonzeros(),
            flash_bytes: wire::layer_len(layer, Choice::Keep),
            ram_bytes: if last { 0 } else { 5 * outputs },
            macs: integer_macs(weights),
            dense_flash_bytes: 4 * dense_macs,
            dense_macs,
        };
        dense_inputs = requested;
        layers.push(LayerCost {
            kind: weights.encoding().name(),
            activation: activation_name(layer.activation()),
            inputs: layer.inputs(),
            outputs,
            requested,
            biases: layer.bias().iter().filter(|&&bias| bias != 0).count(),
            density: density(&cost, 0),
            cost,
        });
    }
    layers.extend(model.sum().map(|sum| {
        let cost = Cost {
            flash_bytes: Layer::Sum(*sum).flash_bytes(),
            macs: sum.inputs(),
            dense_flash_bytes: 4 * dense_inputs,
            dense_macs: dense_inputs,
            ..Cost::default()
        };
        layer_cost(&Layer::Sum(*sum), cost)
    }));
    layers
}

fn layer_cost(layer: &Layer<'_>, cost: Cost) -> LayerCost {
    let (kind, activation) = match layer {
        Layer::Csr(csr) => ("sparse", csr.activation()),
        Layer::Blocks(blocks) => ("blocks", blocks.activation()),
        Layer::Sum(_) => ("sum", Activation::Identity),
        _ => ("sparse", Activation::Identity),
    };
    let biases = layer.biases().iter().filter(|&&bias| bias != 0.0).count();
    LayerCost {
        kind,
        activation: activation_name(activation),
        inputs: layer.inputs(),
        outputs: layer.outputs(),
        requested: layer.requested(),
        biases,
        density: density(&cost, biases),
        cost,
    }
}

const fn activation_name(activation: Activation) -> &'static str {
    if matches!(activation, Activation::Relu) { "relu" } else { "identity" }
}

fn density(cost: &Cost, biases: usize) -> f64 {
    (cost.nonzeros - biases) as f64 / cost.dense_macs.max(1) as f64
}
