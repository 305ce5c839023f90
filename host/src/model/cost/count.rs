//! What is counted in a layer, around it, and in code without tables.

use tamis::infer::model::{Activation, Layer, WINDOW};
use tamis::infer::price::{COUNTS, Shape, cost};
use tamis::infer::quantised::{self, Encoding, Weights};

/// What a kernel counts in a layer, one number for each of [`COUNTS`]. Of sparse floats, full fours
/// of weights are the groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work(pub [u64; Work::COUNT]);

impl Work {
    /// How many counts there are.
    pub const COUNT: usize = COUNTS.len();

    /// Of a dense layer, of floats or of integers.
    #[must_use]
    pub fn dense(inputs: usize, outputs: usize) -> Self {
        Self(Shape { inputs, outputs, ..Shape::default() }.counts(Encoding::Dense))
    }
}

/// Of a layer of integers.
#[must_use]
pub fn integer_work(weights: &Weights<'_>) -> Work {
    Work(Shape::of(weights).counts(weights.encoding()))
}

/// Of a layer of floats; nothing of a sum.
#[must_use]
pub fn float_work(layer: &Layer<'_>) -> Work {
    let sparse = |rows: u64, n: u64, filled: u64, fours: u64, windows: [u64; 2]| {
        let further = n.saturating_sub(filled).saturating_sub(fours);
        Work([1, rows, filled, further, fours, windows[0], windows[1], 0, 0])
    };
    match layer {
        Layer::Csr(csr) => {
            let filled = csr.counts().iter().filter(|&&count| count > 0).count() as u64;
            let fours = csr.counts().iter().map(|&count| u64::from(count) / 4).sum();
            sparse(csr.outputs() as u64, csr.nonzeros() as u64, filled, fours, [0, 0])
        }
        Layer::Blocks(blocks) => {
            let (counts, rows) = (blocks.counts(), blocks.outputs());
            let filled =
                |row: &usize| counts.iter().skip(*row).step_by(rows).any(|&count| count > 0);
            let filled = (0..rows).filter(filled).count() as u64;
            let n = blocks.nonzeros() as u64;
            if blocks.inputs() < WINDOW {
                return sparse(rows as u64, n, filled, 0, [0, 0]);
            }
            let fours = counts.iter().map(|&count| u64::from(count) / 4).sum();
            let windows = blocks.inputs().div_ceil(WINDOW) as u64;
            sparse(rows as u64 * windows, n, filled, fours, [windows, rows as u64])
        }
        _ => Work::default(),
    }
}

/// What a prediction takes besides its kernels: the prediction itself, outputs that become bytes,
/// those of the last layer that are scaled, both once more where each has a factor of its own,
/// biases, outputs with `ReLU` (of integers those of a last layer), a sum with signs, and what it
/// adds, and of floats in windows, whose sums lie in memory, the sum, what it adds, and `ReLU`
/// apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Around(pub [u64; Around::COUNT]);

impl Around {
    /// How many counts there are.
    pub const COUNT: usize = 11;

    /// The prediction itself, without any layer.
    pub const PREDICTION: Self = Self([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);

    /// Around the layer of floats at a place of a model, or the sum that it is; nothing past the
    /// last.
    #[must_use]
    pub fn of_floats(layers: &[Layer<'_>], at: usize) -> Self {
        let before = at.checked_sub(1).and_then(|before| layers.get(before));
        match layers.get(at) {
            Some(Layer::Csr(csr)) => {
                Self::of_dense_floats(csr.outputs(), csr.activation() == Activation::Relu)
            }
            Some(Layer::Blocks(blocks)) => {
                let has_relu = blocks.activation() == Activation::Relu;
                let relu = if has_relu { blocks.outputs() as u64 } else { 0 };
                Self([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, relu])
            }
            Some(Layer::Sum(sum)) if matches!(before, Some(Layer::Csr(_))) => {
                Self::of_sum(sum.inputs())
            }
            Some(Layer::Sum(sum)) => Self([0, 0, 0, 0, 0, 0, 0, 0, 1, sum.inputs() as u64, 0]),
            _ => Self::default(),
        }
    }

    /// Around a plain loop over floats.
    #[must_use]
    pub const fn of_dense_floats(outputs: usize, relu: bool) -> Self {
        Self([0, 0, 0, 0, 0, if relu { outputs as u64 } else { 0 }, 0, 0, 0, 0, 0])
    }

    /// Around a dense layer of integers with one factor if it is hidden.
    #[must_use]
    pub const fn of_dense_integers(outputs: usize, hidden: bool) -> Self {
        Self([0, if hidden { outputs as u64 } else { 0 }, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    }

    /// Around a layer of integers; the `last` one gives sums.
    #[must_use]
    pub fn of_integers(layer: &quantised::Layer<'_>, last: bool) -> Self {
        let outputs = layer.outputs() as u64;
        let numbers = if last && !layer.rescale().is_empty() { outputs } else { 0 };
        let relu = if last && layer.activation() == Activation::Relu { outputs } else { 0 };
        let own = if layer.rescale().len() > 1 { outputs } else { 0 };
        let bytes = if last { 0 } else { outputs };
        Self([0, bytes, numbers, own, layer.bias().len() as u64, relu, 0, 0, 0, 0, 0])
    }

    /// A sum with signs of so many inputs.
    #[must_use]
    pub const fn of_sum(inputs: usize) -> Self {
        Self([0, 0, 0, 0, 0, 0, 1, inputs as u64, 0, 0, 0])
    }
}

/// How many things a chain may have that change its code and stack, with numbers of either kind:
/// the places below.
pub const EXTRAS: usize = 9;
const BIASES: usize = 0;
/// A last layer with factors, and one with relu.
const SCALED: usize = 1;
const RELU: usize = 2;
const SUM_OF_SEVERAL: usize = 3;
const SUM_OF_ONE: usize = 4;
/// One layer without a sum.
const ALONE: usize = 5;
/// A factor for each output of a hidden layer.
const OWN_FACTORS: usize = 6;
const MORE_THAN_TWO_LAYERS: usize = 7;
/// Kernels but the first.
pub(super) const MORE_KERNELS: usize = 8;

/// What a chain of one kernel has, by the numbers of its layers and of sums behind them.
pub(super) fn extras(layers: usize, sum: bool) -> [u8; EXTRAS] {
    let mut extras = [0; EXTRAS];
    extras[SUM_OF_SEVERAL] = (sum && layers > 1).into();
    extras[SUM_OF_ONE] = (sum && layers < 2).into();
    extras[ALONE] = (!sum && layers < 2).into();
    extras[MORE_THAN_TWO_LAYERS] = (layers > 2).into();
    extras
}

/// The same of a model of floats.
#[must_use]
pub fn float_extras(layers: &[Layer<'_>]) -> [u8; EXTRAS] {
    let sum = matches!(layers, [.., Layer::Sum(_)]);
    extras(layers.len() - usize::from(sum), sum)
}

/// The same of a model of integers.
#[must_use]
pub fn integer_extras(model: &quantised::Model<'_>) -> [u8; EXTRAS] {
    let (layers, sum) = (model.layers(), model.sum().is_some());
    let mut extras = extras(layers.len(), sum);
    extras[BIASES] = layers.iter().any(|layer| !layer.bias().is_empty()).into();
    if let Some(last) = layers.last().filter(|_| !sum) {
        extras[SCALED] = (!last.rescale().is_empty()).into();
        extras[RELU] = (last.activation() == Activation::Relu).into();
    }
    let mut hidden = layers.iter().take(layers.len() - usize::from(!sum));
    extras[OWN_FACTORS] = hidden.any(|layer| layer.rescale().len() > 1).into();
    extras
}

/// How many counts there are of code without tables.
pub const STRAIGHT: usize = 12;

/// What is counted of code without tables: the prediction itself, rows with weights, weights, once
/// more those of columns from 32 on and from 256 on, those beyond 31 in size, outputs that become
/// bytes, those of the last layer that are scaled, biases, outputs with `ReLU`, what a sum adds,
/// and outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Straight(pub [u64; STRAIGHT]);

impl Straight {
    /// Of a model.
    #[must_use]
    pub fn of(model: &quantised::Model<'_>) -> Self {
        let mut counts = [0_usize; STRAIGHT];
        counts[0] = 1;
        let layers = model.layers();
        for (at, layer) in layers.iter().enumerate() {
            let hidden = at + 1 < layers.len() || model.sum().is_some();
            let mut before = usize::MAX;
            layer.weights().entries(&mut |row, column, weight| {
                counts[1] += usize::from(row != before);
                before = row;
                counts[2] += 1;
                counts[3] += usize::from(column >= 32);
                counts[4] += usize::from(column >= 256);
                counts[5] += usize::from(weight.unsigned_abs() > 31);
            });
            let of = |is: bool| if is { layer.outputs() } else { 0 };
            counts[6] += of(hidden);
            counts[7] += of(!hidden && !layer.rescale().is_empty());
            counts[8] += layer.bias().iter().filter(|&&bias| bias != 0).count();
            counts[9] += of(!hidden && layer.activation() == Activation::Relu);
            counts[11] += of(!hidden);
        }
        counts[10] = model.sum().map_or(0, tamis::infer::model::Sum::inputs);
        Self(counts.map(|count| count as u64))
    }

    /// Whole bytes.
    #[must_use]
    pub fn bytes(&self, prices: &[u32]) -> usize {
        cost(&self.0, prices).div_ceil(tamis::infer::price::PER_INSTRUCTION) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis::infer::model::{Blocks, Csr};

    #[test]
    fn counts_of_floats_are_those_of_the_loops() {
        let columns = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
        let csr = Csr::new(784, &[9, 1], &columns, &[1.0; 10], Activation::Relu).unwrap();
        assert_eq!(float_work(&Layer::Csr(csr)).0, [1, 2, 2, 6, 2, 0, 0, 0, 0]);
        let indices = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
        let counts = [9, 1, 0, 0, 0, 0, 0, 0];
        let blocks = Blocks::new(784, 2, &counts, &indices, &[1.0; 10], Activation::Relu).unwrap();
        assert_eq!(float_work(&Layer::Blocks(blocks)).0, [1, 8, 2, 6, 2, 4, 2, 0, 0]);
        assert_eq!(Work::dense(784, 2).0, [1, 2, 0, 0, 392, 0, 0, 0, 0]);
    }
}
