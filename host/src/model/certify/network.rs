//! A network as the analysis sees it: every layer as sparse rows in real units, with what rounding
//! may add to each neuron.
//!
//! A neuron is `h_j = act_j(b_j + sum_k w_jk h_k + e_j) + r_j`, where `act_j` is the identity, relu
//! or relu cut at `cap_j`. Whatever the encoding, the numbers that a device computes satisfy this
//! with
//!
//! * floats: `|e_j| <= g_n sum_k |w_jk h_k| + n 2^-125`, `g_n = n u / (1 - n u)`, `u = 2^-24`, for n
//!   products added in any order, with fused multiply-adds or without, with results below the normal range
//!   flushed to zero or not; `r_j = 0`;
//! * integers: `e_j = 0`, since sums are exact, and `|r_j| <= 1/2` step of rescaling, 0 where relu
//!   or the cut at 255 decide; input bytes by [`Bytes`].
//!
//! Hidden bytes are of no stated unit: [`Network::rescale`] chooses one for each neuron, which
//! changes no prediction.

use tamis::base::bits::is_set;
use tamis::infer::model::{Activation, Layer as FloatLayer, Model, Sum};
use tamis::infer::quantised::{self, Reading, Rescale};
use tamis::store::wire;

use super::rows::Entry;
use crate::model::file::Opened;
use crate::{Error, Result};

/// One layer of a network: its weights, and what each neuron has beside them.
#[derive(Debug, Clone, Default)]
pub(super) struct Layer<Weights = Vec<Vec<Entry>>> {
    pub(super) inputs: usize,
    pub(super) relu: bool,
    pub(super) rows: Weights,
    pub(super) neurons: Vec<Params>,
}

/// What a neuron has beside its weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Params {
    pub(super) bias: f64,
    /// The most that comes out; infinite where nothing cuts.
    pub(super) cap: f64,
    /// What rounding behind the activation may change.
    pub(super) half: f64,
    /// What rounding of the sum may change, as a multiple of `sum_k |w_jk h_k|`.
    pub(super) relative: f64,
    /// The same in absolute numbers.
    pub(super) tiny: f64,
    /// What a model of integers has of it; none for floats.
    pub(super) integers: Option<Integers>,
}

/// Numbers of a neuron of integers as its model has them: with equal weights and inputs, neurons
/// with equal ones give equal integers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Integers {
    /// The bias, with what the byte of 0 adds.
    bias: i64,
    /// The word of its [`Rescale`].
    rescale: Option<u32>,
    /// What an integer that comes out stands for.
    unit: f64,
}

impl Default for Params {
    /// No bias, no cut and no rounding.
    fn default() -> Self {
        let cap = f64::INFINITY;
        Self { bias: 0.0, cap, half: 0.0, relative: 0.0, tiny: 0.0, integers: None }
    }
}

/// How an input becomes a byte of a model of integers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bytes(pub(super) Reading);

impl Bytes {
    /// The number that the byte of `x` stands for.
    pub(super) fn number(self, x: f32) -> f64 {
        self.step() * (f64::from(self.0.byte(x)) - f64::from(self.0.zero))
    }

    /// A step of a byte.
    pub(super) fn step(self) -> f64 {
        f64::from(self.0.scale)
    }

    /// What its number may be off by before it is cut, for inputs of at most `size`: half a step, what the
    /// division of 32-bit floats rounds, and what the zero has too many digits for.
    pub(super) fn rounding(self, size: f64) -> f64 {
        /// Of a quotient; a little more than 2^-24.
        const DIVISION: f64 = 1.01 / 16_777_216.0;
        let zero = (self.0.zero as f32) as f64 - f64::from(self.0.zero);
        self.step() * (0.5 + zero.abs()) + (size + self.step()) * DIVISION
    }

    /// The least and the largest number that a byte stands for.
    pub(super) fn ends(self) -> [f64; 2] {
        [0.0, 255.0].map(|byte| self.step() * (byte - f64::from(self.0.zero)))
    }
}

/// A network in real units.
#[derive(Debug, Clone)]
pub(super) struct Network {
    /// How each input becomes a byte; none for a model of floats.
    pub(super) bytes: Option<Vec<Bytes>>,
    pub(super) layers: Vec<Layer>,
    /// Rounding of outputs to 32-bit floats, as a multiple of the output.
    pub(super) output: f64,
    /// Outputs below the first are class 0 and outputs above the second class 1, of a binary task.
    pub(super) threshold: Option<[f64; 2]>,
}

impl Network {
    /// The network of a model file.
    ///
    /// # Errors
    /// A layer of a kind that this program does not know.
    pub(super) fn new(model: &Opened<'_>) -> Result<Self> {
        let threshold = match model.task() {
            Some(wire::Task::Binary { threshold }) => Some(f64::from(threshold)),
            _ => None,
        };
        match model {
            Opened::Floats(view) => Ok(Self {
                bytes: None,
                layers: floats(view.model())?,
                output: 0.0,
                threshold: threshold.map(|least| [least, least]),
            }),
            Opened::Integers(view) => {
                let model = view.model();
                let scales = model.scales();
                let own = f64::from(scales.threshold) * f64::from(scales.output());
                Ok(Self {
                    bytes: Some(
                        (0..model.inputs()).map(|j| Bytes(model.readings().of(j))).collect(),
                    ),
                    layers: integers(model)?,
                    output: 1.001 * f64::from(f32::EPSILON) / 2.0,
                    threshold: threshold.map(|least| [least.min(own), least.max(own)]),
                })
            }
        }
    }

    /// Whether the bytes of hidden neurons are of no stated unit.
    pub(super) fn is_free(&self) -> bool {
        self.bytes.is_some()
    }

    /// Multiplies what the neurons of a hidden layer give by positive factors, and takes them back
    /// in the layer behind it.
    pub(super) fn rescale(&mut self, layer: usize, factors: &[f64]) {
        let Some([here, next]) = self.layers.get_mut(layer..layer + 2) else { return };
        for (j, factor) in factors.iter().enumerate() {
            here.rows[j].iter_mut().for_each(|entry| entry.value *= factor);
            here.neurons[j].bias *= factor;
            here.neurons[j].cap *= factor;
            here.neurons[j].half *= factor;
        }
        for entry in next.rows.iter_mut().flatten() {
            entry.value /= factors[entry.column as usize];
        }
    }

    /// Adds layers that hand on what they are given until there are `depth`, before the last one.
    pub(super) fn deepen(&mut self, depth: usize) {
        while self.layers.len() < depth {
            let at = self.layers.len() - 1;
            let width = self.layers[at].inputs;
            let row = |column: usize| vec![Entry { column: column as u32, value: 1.0 }];
            let mut layer = Layer {
                inputs: width,
                relu: at > 0 && self.layers[at - 1].relu,
                ..Layer::default()
            };
            (0..width).for_each(|j| layer.push(row(j)));
            self.layers.insert(at, layer);
        }
    }
}

impl Layer {
    /// One more neuron, without rounding and cut.
    pub(super) fn push(&mut self, row: Vec<Entry>) {
        self.push_with(row, Params::default());
    }

    fn push_with(&mut self, row: Vec<Entry>, params: Params) {
        self.rows.push(row);
        self.neurons.push(params);
    }

    /// One more neuron whose sum is rounded as 32-bit floats are.
    fn push_float(&mut self, row: Vec<Entry>, bias: f32) {
        // A bias takes part in the additions as one more product does.
        let n = row.len() as f64 + if bias == 0.0 { 0.0 } else { 1.0 };
        let rounding = n * f64::from(f32::EPSILON) / 2.0;
        let relative = 1.000_001 * rounding / (1.0 - rounding);
        let tiny = n * f64::from(f32::MIN_POSITIVE) * 2.0;
        self.push_with(row, Params { relative, tiny, bias: bias.into(), ..Params::default() });
    }
}

fn unknown() -> Error {
    Error::new("the model has a layer that this program cannot bound").help("update tamis")
}

fn floats(model: &Model<'_>) -> Result<Vec<Layer>> {
    let layer = |layer: &FloatLayer<'_>| {
        let mut rows = vec![Vec::new(); layer.outputs()];
        let entry = |column: u16, value: f32| Entry { column: column.into(), value: value.into() };
        let activation = match layer {
            FloatLayer::Csr(csr) => {
                let mut entries = csr.columns().iter().zip(csr.values());
                for (row, &count) in rows.iter_mut().zip(csr.counts()) {
                    let own = entries.by_ref().take(count.into());
                    row.extend(own.map(|(&column, &value)| entry(column, value)));
                }
                csr.activation()
            }
            FloatLayer::Blocks(blocks) => {
                blocks.entries(&mut |row, column, value| rows[row].push(entry(column, value)));
                blocks.activation()
            }
            FloatLayer::Sum(sum) => {
                rows[0] = signs(sum, 1.0);
                Activation::Identity
            }
            _ => return Err(unknown()),
        };
        let relu = is_relu(activation)?;
        let mut made = Layer { inputs: layer.inputs(), relu, ..Layer::default() };
        let biases = layer.biases().iter().copied().chain(std::iter::repeat(0.0));
        rows.into_iter().zip(biases).for_each(|(row, bias)| made.push_float(row, bias));
        Ok(made)
    };
    model.layers().iter().map(layer).collect()
}

fn is_relu(activation: Activation) -> Result<bool> {
    match activation {
        Activation::Relu => Ok(true),
        Activation::Identity => Ok(false),
        _ => Err(unknown()),
    }
}

fn signs(sum: &Sum<'_>, one: f64) -> Vec<Entry> {
    let value = |j: usize| match is_set(sum.signs(), j) {
        true => -one,
        false => one,
    };
    (0..sum.inputs()).map(|j| Entry { column: j as u32, value: value(j) }).collect()
}

fn integers(model: &quantised::Model<'_>) -> Result<Vec<Layer>> {
    let scales = model.scales();
    let (readings, output) = (model.readings(), f64::from(scales.output()));
    let mut layers = Vec::new();
    for (at, layer) in model.layers().iter().enumerate() {
        let is_last = model.sum().is_none() && at + 1 == model.layers().len();
        let mut rows = vec![Vec::new(); layer.outputs()];
        let mut bias: Vec<i64> = layer.bias().iter().map(|&bias| bias.into()).collect();
        bias.resize(layer.outputs(), 0);
        layer.weights().entries(&mut |row, column, weight| {
            let zero = if at == 0 { i64::from(readings.of(column.into()).zero) } else { 0 };
            bias[row] += zero * i64::from(weight);
            if weight != 0 {
                rows[row].push(Entry { column: column.into(), value: weight.into() });
            }
        });
        let mut made = Layer {
            inputs: layer.inputs(),
            relu: is_relu(layer.activation())?,
            ..Layer::default()
        };
        for (j, mut row) in rows.into_iter().enumerate() {
            let factors = layer.rescale();
            let word = if factors.len() > 1 { factors.get(j) } else { factors.first() };
            let factor = match word {
                Some(&word) => f64::from(Rescale::of(word)?.value()),
                None => 1.0,
            };
            let one = if is_last { output } else { 1.0 };
            for entry in &mut row {
                let input = match at {
                    0 => f64::from(readings.of(entry.column as usize).scale),
                    _ => 1.0,
                };
                entry.value *= factor * one / input;
            }
            let params = Params {
                bias: bias[j] as f64 * factor * one,
                cap: if is_last { f64::INFINITY } else { 255.0 },
                half: if word.is_some() { 0.5 * one } else { 0.0 },
                integers: Some(Integers { bias: bias[j], rescale: word.copied(), unit: one }),
                ..Params::default()
            };
            made.push_with(row, params);
        }
        layers.push(made);
    }
    if let Some(sum) = model.sum() {
        let mut made = Layer { inputs: sum.inputs(), ..Layer::default() };
        let integers = Some(Integers { bias: 0, rescale: None, unit: output });
        made.push_with(signs(sum, output), Params { integers, ..Params::default() });
        layers.push(made);
    }
    Ok(layers)
}
