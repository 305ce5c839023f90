//! Layers of integers from rounded weights and scales: factors, biases, and the bytes of a file.

use tamis::infer::model::{Activation, Sum};
use tamis::infer::quantised::{Columns, Layer, Mask, Model, Rescale, Scales, Weights};
use tamis::store::wire::{self, Choice, QuantisedView};

use super::round::Sparse;
use super::scales::{ColumnScales, InputScale};
use crate::base::file::Aligned;
use crate::data::Matrix;
use crate::model::predict::{self, predict_integers};
use crate::{Error, Result};

/// Factors are below 1/4; sums are so much finer than outputs at least.
const FINER: f32 = 4.2;

/// What a model is made of beside its weights.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'a> {
    pub(super) input: InputScale,
    /// Scales of the inputs where they differ; weights are in steps of these.
    pub(super) columns: Option<&'a ColumnScales>,
    /// The activation of each hidden layer that becomes 255.
    pub(super) cuts: &'a [f32],
    pub(super) task: Option<wire::Task>,
}

#[derive(Debug)]
struct IntegerLayer {
    inputs: usize,
    outputs: usize,
    requested: usize,
    activation: Activation,
    bits: Vec<u32>,
    values: Vec<i8>,
    factors: Vec<u32>,
    bias: Vec<i32>,
}

#[derive(Debug)]
pub(super) struct Built {
    built: Vec<IntegerLayer>,
    /// Neurons of the sum at the end, and their signs.
    sum: Option<(usize, Vec<u32>)>,
    scales: Scales,
    columns: Option<ColumnScales>,
    task: Option<wire::Task>,
}

impl Built {
    pub(super) fn new(
        layers: &[Sparse<i8>],
        signs: Option<&[bool]>,
        frame: Frame<'_>,
    ) -> Result<Self> {
        let Frame { input, columns, cuts, task } = frame;
        let (mut built, mut scale) = (Vec::new(), input.scale);
        for (at, layer) in layers.iter().enumerate() {
            let zero = |column: usize| match columns {
                _ if at > 0 => 0,
                Some(columns) => i64::from(columns.zeros[column]),
                None => i64::from(input.zero),
            };
            let sums: Vec<f32> = layer.scales.iter().map(|own| own * scale).collect();
            let most = sums.iter().copied().fold(0.0, f32::max);
            let one = layer.scales.windows(2).all(|pair| pair[0] == pair[1]);
            let next = match cuts.get(at) {
                Some(cut) => Some((cut / 255.0).max(FINER * most)),
                // The last layer: sums as they are where they all stand for the same.
                None if one => None,
                None => Some(FINER * most),
            };
            let taken = if one { sums.get(..1).unwrap_or_default() } else { &sums };
            let factors = next.map(|next| taken.iter().map(|sum| factor(sum / next)).collect());
            let factors: Vec<u32> = factors.unwrap_or_else(|| Ok(vec![]))?;
            let bias = |(j, row): (usize, &Vec<(usize, i8)>)| {
                // The zeros of inputs far from 0 and the offset make up for each other.
                let shifted: i64 =
                    row.iter().map(|&(column, w)| -zero(column) * i64::from(w)).sum();
                let whole = shifted as f64 + (layer.offsets[j] / f64::from(sums[j])).round();
                // Beyond what an `i32` holds it stays at the end of them, and the layer refuses it.
                whole as i32
            };
            let is_shifted = layer.rows.iter().flatten().any(|&(column, _)| zero(column) != 0);
            let biased = is_shifted || layer.offsets.iter().any(|offset| *offset != 0.0);
            let rows = layer.rows.iter().enumerate();
            built.push(IntegerLayer {
                inputs: layer.inputs,
                requested: layer.requested,
                activation: if layer.relu { Activation::Relu } else { Activation::Identity },
                outputs: layer.rows.len(),
                bits: bits(layer),
                values: layer.rows.iter().flatten().map(|&(_, weight)| weight).collect(),
                factors,
                bias: if biased { rows.map(bias).collect() } else { vec![] },
            });
            scale = next.unwrap_or(most);
        }
        let sum = signs.map(|signs| {
            let mut words = vec![0_u32; signs.len().div_ceil(32)];
            for (j, _) in signs.iter().enumerate().filter(|(_, minus)| **minus) {
                words[j / 32] |= 1 << (j % 32);
            }
            (signs.len(), words)
        });
        let threshold = match task {
            Some(wire::Task::Binary { threshold }) => least(threshold, scale),
            _ => 0,
        };
        let scales = Scales::new(input.scale, scale, input.zero, threshold)?;
        Ok(Self { built, sum, scales, columns: columns.cloned(), task })
    }

    /// The layers, for a model that borrows them.
    pub(super) fn layers(&self) -> Result<Vec<Layer<'_>>> {
        fn layer(built: &IntegerLayer) -> tamis::Result<Layer<'_>> {
            let IntegerLayer {
                inputs,
                outputs,
                requested,
                activation,
                bits,
                values,
                factors,
                bias,
            } = built;
            let weights = Weights::Mask(Mask::new(*inputs, *outputs, bits, values)?);
            Layer::new(weights, factors, bias, *activation)?.with_requested(*requested)
        }
        let far = |error: tamis::Error| {
            Error::from(error).help(
                "biases are too far from the weights for integers: use the model of floats, or \
                 take a constant from the labels",
            )
        };
        self.built.iter().map(|built| layer(built).map_err(far)).collect()
    }

    /// The model of [`Self::layers`].
    pub(super) fn model<'a>(&'a self, layers: &[Layer<'a>]) -> Result<Model<'a>> {
        let sum = self.sum.as_ref().map(|(inputs, words)| Sum::new(*inputs, words)).transpose()?;
        let own = self.columns.as_ref();
        let own = own.map(|own| Columns::new(&own.scales, &own.zeros)).transpose()?;
        Ok(Model::new(layers, sum, self.scales)?.with_columns(own)?)
    }

    pub(super) fn encode(&self, choice: Choice) -> Result<Vec<u8>> {
        let layers = self.layers()?;
        let mut made = QuantisedView::new(self.model(&layers)?);
        if let Some(task) = self.task {
            made = made.with_task(task)?;
        }
        let mut bytes = vec![0; made.encoded_len(choice)];
        made.encode(choice, &mut bytes)?;
        Ok(bytes)
    }
}

fn bits(layer: &Sparse<i8>) -> Vec<u32> {
    let mut bits = vec![0; Mask::words(layer.inputs, layer.rows.len())];
    let counts: Vec<_> = layer.rows.iter().map(|row| row.len() as u16).collect();
    let columns: Vec<_> = layer.rows.iter().flatten().map(|&(column, _)| column as u16).collect();
    Mask::mark(layer.inputs, &counts, &columns, &mut bits);
    bits
}

fn factor(factor: f32) -> Result<u32> {
    Rescale::near(factor).map(Rescale::bits).map_err(|error| {
        Error::from(error).got(format_args!("a factor of {factor:e} between two layers")).help(
            "the sizes of weights and activations are too far apart for 8 bits: use the model of \
             floats",
        )
    })
}

/// The least integer that stands for at least `threshold`.
fn least(threshold: f32, scale: f32) -> i32 {
    let steps = (f64::from(threshold) / f64::from(scale))
        .ceil()
        .clamp(f64::from(i32::MIN + 1), f64::from(i32::MAX));
    let reaches = |steps: i32| predict::number(steps, scale) >= threshold;
    let steps = steps as i32;
    [steps - 1, steps].into_iter().find(|&steps| reaches(steps)).unwrap_or(steps.saturating_add(1))
}

/// Outputs of the model in `bytes` on all rows.
pub(super) fn predict_bytes(bytes: &[u8], data: &Matrix) -> Result<Vec<f32>> {
    let aligned = Aligned::new(bytes);
    predict_integers(QuantisedView::parse(&aligned)?.model(), data)
}
