//! Models of other programs: dense layers in, dense layers out.
//!
//! | format | module | reads | writes |
//! |---|---|---|---|
//! | ONNX | [`onnx`] | chains of `Gemm`, `MatMul`, `Add` and `Relu` | one `Gemm` a layer, opset 11 |
//! | safetensors | [`safetensors`] | floats of 16 to 64 bits, by name | `F32`, named as PyTorch's `Sequential` does |
//! | NPZ | [`npz`] | arrays by name, also scikit-learn's `coefs_` and `intercepts_` | |
//!
//! A reader gives a [`Network`]. Formats that hold arrays alone give [`Tensor`]s, which
//! [`named::network`] makes layers of by their names and shapes.
//!
//! Files are not believed: a reader, and `convert::import` with it, takes no more memory than 32
//! times the bytes that it is given, and 32 MiB. Compressed archives count as what they unpack to,
//! which is [`npz::LIMIT`] at the most.

mod cut;
pub(crate) mod export;
pub(crate) mod import;
pub mod named;
pub mod npz;
pub mod onnx;
pub mod safetensors;

pub use cut::Cut;
pub use export::{ExportForm, ExportReport, Exported, check_name, export};
pub use import::{ImportOptions, ImportOutcome, ImportReport, ImportedLayer, import};

use serde::{Deserialize, Serialize};
use tamis::infer::model::{MAX_INPUTS, MAX_LAYERS};

use crate::model::LayerName;
use crate::{Error, Result};

/// An array of floats.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// As the file calls it.
    pub name: String,
    /// Its axes.
    pub dims: Vec<usize>,
    /// As many as the axes say, the last axis fastest; none where the file holds no floats.
    pub values: Option<Vec<f32>>,
}

/// A dense layer: `y = W x + b`, and relu behind it or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Dense {
    /// As errors call it.
    pub name: String,
    /// Numbers that it takes.
    pub inputs: usize,
    /// Numbers that it gives.
    pub outputs: usize,
    /// `outputs × inputs`, row by row.
    pub weights: Vec<f32>,
    /// One for each output; none is all zeros.
    pub bias: Vec<f32>,
    /// Whether relu follows.
    pub relu: bool,
}

/// Where the numbers of a column lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Around this number, such as the mean.
    pub centre: f64,
    /// How far from it, such as the standard deviation.
    pub size: f64,
}

/// How a class follows from the outputs, where the file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The largest output is the class.
    Largest,
    /// The only output is the log-odds of class 1.
    LogOdds,
}

/// Layers as a file has them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Network {
    /// In the order in which they run, each taking what the one before gives.
    pub layers: Vec<Dense>,
    /// Their names in a file of named arrays; empty for other files.
    pub names: Vec<LayerName>,
    /// How far each input spreads, where the file scales them.
    pub spreads: Option<Vec<Spread>>,
    /// What the end of the file's network decides.
    pub decision: Option<Decision>,
    /// What was skipped or folded, as lines for the user.
    pub notes: Vec<String>,
    /// Named arrays that an optimiser keeps, which are skipped.
    pub skipped: Vec<String>,
    /// Named arrays that are of no layer and may change what the network gives, such as those of
    /// normalisation.
    pub left_out: Vec<String>,
    /// What [`Meta`] a file of `tamis export` holds.
    pub meta: Option<Meta>,
}

/// What a model says beside its weights, in the metadata of exported files under the key
/// [`Meta::KEY`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// `regression`, `binary` or `multiclass`; none where the model does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The least output that is class 1 of a binary task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f32>,
    /// Whether the last layer is a sum with signs, which is written as a row of 1 and -1.
    pub sum: bool,
    /// Neurons asked for in training, of every other layer.
    pub requested: Vec<usize>,
}

impl Meta {
    /// Its key in the metadata of a file.
    pub const KEY: &str = "tamis";

    /// As the text that files hold.
    #[must_use]
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Back from the text; none where it is another program's.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        // Lists are of a number for each layer: nothing sensible is long.
        (text.len() <= 4096).then(|| serde_json::from_str(text).ok()).flatten()
    }
}

impl Network {
    /// Checks what every reader owes: a layer at least and at most as many as a model holds, sizes
    /// that fit, finite weights, and relu between layers.
    ///
    /// # Errors
    /// The first layer that is not so, by name.
    pub fn check(&self) -> Result<()> {
        self.check_order()?;
        self.layers.iter().try_for_each(Dense::check)
    }

    /// The same without sizes and weights.
    fn check_order(&self) -> Result<()> {
        if self.layers.is_empty() || self.layers.len() > MAX_LAYERS {
            return Err(Error::new("the network has too few or too many layers")
                .mismatch(format_args!("1 to {MAX_LAYERS} layers with weights"), self.layers.len())
                .help("make a smaller network, or import some layers of it with --layers"));
        }
        let mut pairs = self.layers.iter().zip(self.layers.iter().skip(1));
        pairs.try_for_each(|(layer, next)| layer.fits(next))
    }
}

impl Dense {
    /// Biases that are all 0 are none.
    pub(crate) fn trim_bias(&mut self) {
        if self.bias.iter().all(|&bias| bias == 0.0) {
            self.bias.clear();
        }
    }

    fn fits(&self, after: &Self) -> Result<()> {
        if self.outputs != after.inputs {
            let what = format!("layer {} does not take what the layer before it gives", after.name);
            return Err(Error::new(what)
                .expected(format_args!("{} inputs, the outputs of {}", self.outputs, self.name))
                .got(format_args!("{} inputs", after.inputs))
                .help("name the layers in the order in which they run with --layers"));
        }
        if !self.relu {
            let (own, next) = (&self.name, &after.name);
            return Err(Error::new(format!("there is no Relu between layers {own} and {next}"))
                .mismatch("Relu behind every layer but the last", "two linear layers in a row")
                .help("multiply their weights into one layer before the export"));
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let Self { name, inputs, outputs, .. } = self;
        if [*inputs, *outputs].iter().any(|&n| n == 0 || n > MAX_INPUTS) {
            return Err(Error::new(format!("layer {name} is too wide for a model"))
                .expected(format_args!("1 to {MAX_INPUTS} inputs and outputs"))
                .got(format_args!("{inputs} inputs, {outputs} outputs"))
                .help("make the network smaller"));
        }
        let whole = inputs.checked_mul(*outputs) == Some(self.weights.len());
        if !whole || ![0, *outputs].contains(&self.bias.len()) {
            return Err(Error::new(format!("the arrays of layer {name} do not fit its size"))
                .expected(format_args!("{outputs} × {inputs} weights, {outputs} biases or none"))
                .got(format_args!("{} weights, {} biases", self.weights.len(), self.bias.len())));
        }
        check_finite(&format!("layer {name}"), &self.weights)?;
        check_finite(&format!("the bias of layer {name}"), &self.bias)
    }
}

/// A name out of a file, as errors show it: short and on one line.
pub(crate) fn shown(name: &str) -> String {
    let more = if name.chars().nth(80).is_some() { "…" } else { "" };
    name.chars().take(80).flat_map(char::escape_debug).chain(more.chars()).collect()
}

fn shape(dims: &[usize]) -> String {
    let shown: Vec<_> = dims.iter().take(8).map(ToString::to_string).collect();
    format!("[{}{}]", shown.join(", "), if dims.len() > 8 { ", …" } else { "" })
}

/// Numbers of an array of these axes; none where it is empty or they cannot be counted.
fn elements(dims: &[usize]) -> Option<usize> {
    dims.iter().try_fold(1_usize, |product, &dim| product.checked_mul(dim)).filter(|&n| n > 0)
}

/// Floats as little-endian bytes.
fn le_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Little-endian numbers as floats; those of an element type that takes `N` bytes.
fn floats<const N: usize>(bytes: &[u8], value: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    bytes.as_chunks::<N>().0.iter().map(|&chunk| value(chunk)).collect()
}

/// The first value that is not finite is an error that says where it is; the name is [`shown`].
fn check_finite(name: &str, values: &[f32]) -> Result<()> {
    let Some(at) = values.iter().position(|value| !value.is_finite()) else { return Ok(()) };
    Err(Error::new(format!("{name} holds a value that is not a finite 32-bit float"))
        .expected("numbers within the range of 32-bit floats")
        .got(format_args!("{} at place {at} (counted from 0)", values[at]))
        .help("the training of the network has diverged, or its file is damaged: save it again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dense(name: &str, outputs: usize, inputs: usize, relu: bool) -> Dense {
        Dense {
            name: name.into(),
            inputs,
            outputs,
            weights: vec![0.5; inputs * outputs],
            bias: Vec::new(),
            relu,
        }
    }

    fn complaint(layers: Vec<Dense>) -> String {
        Network { layers, ..Network::default() }.check().unwrap_err().to_string()
    }

    #[test]
    fn unrepresentable_networks_are_refused_naming_the_layer() {
        assert!(
            Network {
                layers: vec![dense("a", 2, 3, true), dense("b", 1, 2, false)],
                ..Network::default()
            }
            .check()
            .is_ok()
        );
        assert!(complaint(vec![]).contains("1 to 8 layers"));
        assert!(complaint(vec![dense("a", 1, 1, true); 9]).contains("got: 9"));
        let text = complaint(vec![dense("a", 2, 3, true), dense("b", 1, 4, false)]);
        assert!(text.contains("layer b") && text.contains("2 inputs, the outputs of a"), "{text}");
        assert!(
            complaint(vec![dense("a", 2, 3, false), dense("b", 1, 2, false)])
                .contains("no Relu between")
        );
        assert!(complaint(vec![dense("wide", 1, 70_000, false)]).contains("70000 inputs"));
        assert!(
            complaint(vec![Dense { weights: vec![1.0], ..dense("a", 1, 2, false) }])
                .contains("1 weights")
        );
        assert!(
            complaint(vec![Dense { bias: vec![1.0; 3], ..dense("a", 1, 2, false) }])
                .contains("3 biases")
        );
        let bad = Dense { weights: vec![1.0, f32::NAN], ..dense("a", 1, 2, false) };
        assert!(complaint(vec![bad]).contains("NaN"));
    }

    #[test]
    fn metadata_roundtrips_bit_identical_unknown_keys_ignored() {
        let meta = Meta {
            task: Some("binary".into()),
            threshold: Some(f32::from_bits(0x3eaa_aaab)),
            sum: true,
            requested: vec![5],
        };
        assert_eq!(Meta::from_text(&meta.to_text()), Some(meta));
        for other in ["", "{}", "[1]", "{\"sum\": 3}", &"[".repeat(5000)] {
            assert_eq!(Meta::from_text(other), None, "{other:.20}");
        }
    }
}
