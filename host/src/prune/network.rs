//! The network that is pruned: dense layers in memory in which 0 stands for no weight.

use tamis::base::rng::{Rng, stream};
use tamis::infer::model::{Activation, Layer};
use tamis::store::wire;

use crate::convert::Dense;
use crate::convert::export::dense_layer;
use crate::convert::import::sparse_layer;
use crate::model::ModelFile;
use crate::train::dense::shape::{self, Shape};
use crate::train::encode::{End, encode_layers};
use crate::train::scaling::Mapped;
use crate::{Error, Result};

/// Stream of initial biases, one per layer.
const BIASES: u64 = stream::USER + (0xdd << 32);

/// An MLP of relu between its layers. A weight or bias of 0 is none.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mlp {
    pub(super) layers: Vec<Dense>,
    /// Whether it has biases, for which rows have a last 1 in training.
    pub(super) has_ones: bool,
    /// Whether the output is the sum of the last neurons with signs: the last layer then scales
    /// them, and its weights do not count.
    pub(super) is_sum: bool,
    /// Which inputs may be read; empty where all may.
    pub(super) readable: Vec<bool>,
    /// Whether inputs are taken less their means: each neuron that reads some has a bias then, which is
    /// where the means are in the model.
    pub(super) is_centred: bool,
}

/// What the last input of a model is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastInput {
    /// As every other one, but for models whose hidden neurons hand it on as 1.
    Unknown,
    /// 1 in every row: weights from it are biases.
    Ones,
    /// As every other one.
    Varies,
}

impl Mlp {
    /// The layers of a model of floats.
    pub(super) fn of(model: &ModelFile, last: LastInput) -> Result<Self> {
        let model = model.in_rows()?;
        let view = model.view()?;
        let layers = view.model().layers();
        let is_sum = matches!(layers, [.., Layer::Sum(_)]);
        let is_plain = |(l, layer): (usize, &Layer<'_>)| match layer {
            Layer::Csr(csr) => (csr.activation() == Activation::Relu) == (l + 1 < layers.len()),
            _ => true,
        };
        if !layers.iter().enumerate().all(is_plain) {
            return Err(Error::new("the model is of a kind that cannot be pruned")
                .at(model.path())
                .mismatch("relu behind every layer but the last", "a model that has it elsewhere")
                .help("prune a model that tamis has trained or imported"));
        }
        let mut dense = layers.iter().map(dense_layer).collect::<Result<Vec<_>>>()?;
        for (l, layer) in dense.iter_mut().enumerate() {
            layer.name = format!("layer{}", l + 1);
            layer.relu = l + 1 < layers.len();
        }
        let mut mlp = Self {
            layers: dense,
            has_ones: false,
            is_sum,
            readable: Vec::new(),
            is_centred: false,
        };
        mlp.has_ones = mlp.layers.iter().any(|layer| !layer.bias.is_empty());
        if !mlp.has_ones
            && last != LastInput::Varies
            && (last == LastInput::Ones || mlp.hands_on(0))
        {
            mlp.take_biases();
        }
        Ok(mlp)
    }

    /// A dense network with biases and initial weights.
    pub(super) fn dense(widths: &[usize], seed: u64) -> Result<Self> {
        let shape = Shape::of(widths)?;
        let layer = |(l, own): (usize, shape::Layer)| Dense {
            name: format!("layer{}", l + 1),
            inputs: own.inputs,
            outputs: own.outputs,
            weights: vec![1.0; own.range.len()],
            bias: vec![1.0; own.outputs],
            relu: own.relu,
        };
        let layers = shape.layers().enumerate().map(layer).collect();
        let (is_sum, readable, is_centred) = (false, Vec::new(), false);
        Self { layers, has_ones: true, is_sum, readable, is_centred }.fresh(seed)
    }

    /// Whether the last neuron of a hidden layer is the last input of it, times 1.
    fn hands_on(&self, l: usize) -> bool {
        let layer = &self.layers[l];
        let is_hidden = l + 1 < self.layers.len() && layer.outputs > 1 && layer.inputs > 1;
        let row = layer.weights.rchunks(layer.inputs.max(1)).next();
        is_hidden
            && row.and_then(<[f32]>::split_last).is_some_and(|(last, others)| {
                *last == 1.0 && others.iter().all(|&weight| weight == 0.0)
            })
    }

    /// Weights of a last input that is 1 become biases, and what hands it on goes: so networks had
    /// their biases before models had any.
    fn take_biases(&mut self) {
        self.has_ones = true;
        for l in 0..self.layers.len() {
            let hands_on = self.hands_on(l);
            let layer = &mut self.layers[l];
            let inputs = layer.inputs - 1;
            let rows = layer.weights.chunks_exact(layer.inputs);
            layer.bias = rows.clone().map(|row| row[inputs]).collect();
            layer.weights = rows.flat_map(|row| &row[..inputs]).copied().collect();
            layer.inputs = inputs;
            if hands_on {
                layer.outputs -= 1;
                layer.bias.truncate(layer.outputs);
                layer.weights.truncate(layer.outputs * inputs);
            }
            self.layers[l].trim_bias();
            if !hands_on {
                break;
            }
        }
        // A sum has no biases.
        self.is_sum &= self.layers.last().is_some_and(|layer| layer.bias.is_empty());
    }

    /// Widths from the inputs to the outputs, without the 1 of biases.
    pub(super) fn widths(&self) -> Vec<usize> {
        let inputs = self.layers.first().map_or(0, |layer| layer.inputs);
        std::iter::once(inputs).chain(self.layers.iter().map(|layer| layer.outputs)).collect()
    }

    /// Widths of the hidden layers.
    pub(super) fn hidden(&self) -> Vec<usize> {
        let widths = self.widths();
        widths[1..widths.len() - 1].to_vec()
    }

    /// Layers whose weights count as nonzeros.
    pub(super) fn counted(&self) -> &[Dense] {
        &self.layers[..self.layers.len() - usize::from(self.is_sum)]
    }

    /// Nonzeros of its model: weights and biases.
    pub(super) fn nnz(&self) -> usize {
        let all = self.counted().iter().flat_map(|layer| layer.weights.iter().chain(&layer.bias));
        all.filter(|&&weight| weight != 0.0).count()
    }

    /// Inputs that have weights.
    pub(super) fn inputs_read(&self) -> Vec<usize> {
        let first = &self.layers[0];
        let column = |j: usize| first.weights.iter().skip(j).step_by(first.inputs);
        (0..first.inputs).filter(|&j| column(j).any(|&w| w != 0.0)).collect()
    }

    /// Whether each neuron of the first layer that reads inputs has a bias.
    pub(super) fn has_first_biases(&self) -> bool {
        let first = &self.layers[0];
        let reads = |row: &[f32]| row.iter().any(|&w| w != 0.0);
        let has_bias = |i: usize| first.bias.get(i).is_some_and(|&bias| bias != 0.0);
        let mut rows = first.weights.chunks_exact(first.inputs.max(1)).enumerate();
        rows.all(|(i, row)| has_bias(i) || !reads(row))
    }

    /// Maps each weight of the first layer, given its input. What is there stays, however small.
    pub(super) fn map_inputs(&mut self, of: impl Fn(usize, f64) -> Mapped) {
        let first = &mut self.layers[0];
        for (i, row) in first.weights.chunks_exact_mut(first.inputs.max(1)).enumerate() {
            let mut more = 0.0;
            for (j, w) in row.iter_mut().enumerate().filter(|(_, w)| **w != 0.0) {
                let mapped = of(j, f64::from(*w));
                more += mapped.bias;
                *w = nonzero(mapped.weight, *w);
            }
            let bias = first.bias.get_mut(i).filter(|bias| **bias != 0.0);
            debug_assert!(bias.is_some() || more == 0.0, "no bias for what is shifted");
            if let Some(bias) = bias {
                *bias = nonzero(f64::from(*bias) + more, *bias);
            }
        }
    }

    /// Multiplies what the last layer gives.
    pub(super) fn scale_outputs(&mut self, factor: f32) {
        if let Some(last) = self.layers.last_mut() {
            let all = last.weights.iter_mut().chain(&mut last.bias);
            all.for_each(|w| scale_nonzero(w, factor));
        }
    }

    /// A network of the same widths with initial weights, uniform in ±1/√inputs, and biases where
    /// this one has some.
    pub(super) fn fresh(&self, seed: u64) -> Result<Self> {
        let shape = Shape::of(&self.widths())?;
        let weights = shape.initial(seed);
        let mut fresh = self.clone();
        for (l, (layer, own)) in fresh.layers.iter_mut().zip(shape.layers()).enumerate() {
            layer.weights.copy_from_slice(&weights[own.range]);
            let mut rng = Rng::new(seed, BIASES + l as u64);
            let bound = 1.0 / (layer.inputs as f32).sqrt();
            layer.bias.fill_with(|| bound * (2.0 * rng.uniform() - 1.0));
        }
        // Inputs that are not read stay so.
        fresh.keep_inputs(&self.inputs_read());
        Ok(fresh)
    }

    /// The bytes of its model.
    pub(super) fn encode(&self, task: Option<wire::Task>) -> Result<Vec<u8>> {
        let mut layers = self.layers.clone();
        let mut signs = vec![0_u32; 0];
        if self.is_sum
            && let Some(end) = layers.pop()
        {
            signs = vec![0; end.inputs.div_ceil(32)];
            if let Some(last) = layers.last_mut() {
                fold_signs(last, &end, &mut signs);
            }
        }
        let sparse = layers.iter().map(sparse_layer).collect::<Result<Vec<_>>>()?;
        let end = if self.is_sum { End::Sum(&signs) } else { End::Layer };
        encode_layers(sparse, end, task)
    }
}

/// Multiplies a weight; one that is there stays one, however small.
fn scale_nonzero(w: &mut f32, factor: f32) {
    if *w != 0.0 {
        *w = nonzero(f64::from(*w) * f64::from(factor), *w);
    }
}

/// A number that takes the place of one that is not 0.
fn nonzero(w: f64, old: f32) -> f32 {
    if w as f32 == 0.0 { f32::MIN_POSITIVE.copysign(old) } else { w as f32 }
}

/// `v relu(z)` is `sign(v) relu(|v| z)`.
fn fold_signs(last: &mut Dense, end: &Dense, signs: &mut [u32]) {
    let rows = last.weights.chunks_exact_mut(last.inputs);
    for (i, (row, &v)) in rows.zip(&end.weights).enumerate() {
        let own = row.iter_mut().chain(last.bias.get_mut(i));
        own.for_each(|weight| scale_nonzero(weight, v.abs()));
        signs[i / 32] |= u32::from(v < 0.0) << (i % 32);
    }
}
