//! The sizes of a dense MLP and where the weights of each layer lie.

use std::ops::Range;

use serde::Serialize;
use tamis::base::rng::{Rng, stream};

use crate::data::Task;
use crate::{Error, Result};

/// Stream of the initial weights, one per layer.
const INIT: u64 = stream::USER + (0xde << 32);

/// How the outputs come from the last hidden layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Head {
    /// By a layer of weights, which are trained and pruned as all others.
    Weights,
    /// One output, the sum of the neurons: all output weights are +1, fixed and not counted.
    Sum,
}

/// Widths from the inputs to the outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    widths: Vec<usize>,
    /// How the outputs come from the last hidden layer.
    pub head: Head,
    /// Layers that have weights.
    layers: usize,
}

/// One layer of weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Numbers that it takes.
    pub inputs: usize,
    /// Numbers that it gives.
    pub outputs: usize,
    /// Where its weights lie among all: `outputs` rows of `inputs` each.
    pub range: Range<usize>,
    /// Whether negative outputs become 0.
    pub relu: bool,
}

impl Shape {
    /// From inputs over hidden layers to outputs.
    ///
    /// # Errors
    /// A layer of no neurons, no hidden layer, or a sum that is to be several outputs.
    pub fn new(inputs: usize, hidden: &[usize], outputs: usize, head: Head) -> Result<Self> {
        let widths: Vec<usize> = [&[inputs], hidden, &[outputs]].concat();
        if hidden.is_empty() || widths.contains(&0) {
            return Err(Error::new("a layer of the network is empty")
                .expected(
                    "one or more hidden layers (--hidden M,…), each of 1 or more neurons; inputs \
                     and outputs",
                )
                .got(format_args!("widths {widths:?} from the inputs to the outputs"))
                .help("choose 10 to 1000 neurons"));
        }
        if head == Head::Sum && outputs != 1 {
            return Err(Error::new("a sum of the neurons is one output")
                .expected("1 output")
                .got(outputs)
                .help("leave --sum-output out: weights to several outputs are trained"));
        }
        let layers = hidden.len() + usize::from(head == Head::Weights);
        Self::with_layers(widths, head, layers)
    }

    /// Of these widths, all layers with weights; there may be no hidden one.
    pub(crate) fn of(widths: &[usize]) -> Result<Self> {
        Self::with_layers(widths.to_vec(), Head::Weights, widths.len().saturating_sub(1))
    }

    fn with_layers(widths: Vec<usize>, head: Head, layers: usize) -> Result<Self> {
        let products = widths.windows(2).take(layers).map(|w| w[0].saturating_mul(w[1]));
        let weights = products.fold(0usize, usize::saturating_add);
        if weights > u32::MAX as usize {
            return Err(Error::new("the network has too many weights")
                .expected(format_args!("at most {}: weights are counted in 32 bits", u32::MAX))
                .got(format_args!("widths {widths:?} from the inputs to the outputs"))
                .help("choose fewer neurons, such as 10 to 1000"));
        }
        Ok(Self { widths, head, layers })
    }

    /// Numbers of a row.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.widths[0]
    }

    /// Numbers that it gives for a row.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.widths[self.widths.len() - 1]
    }

    /// Neurons of each hidden layer.
    pub(crate) fn hidden(&self) -> &[usize] {
        &self.widths[1..self.widths.len() - 1]
    }

    /// The layers that have weights, in order.
    #[must_use]
    pub fn layers(
        &self,
    ) -> impl DoubleEndedIterator<Item = Layer> + ExactSizeIterator + Clone + '_ {
        (0..self.layers).map(|l| self.layer(l))
    }

    /// The last layer that has weights.
    pub(super) fn last(&self) -> Layer {
        self.layer(self.layers - 1)
    }

    /// Weights of all layers.
    #[must_use]
    pub fn weights(&self) -> usize {
        self.offset(self.layers)
    }

    /// Widths of what the layers give, and of the sum behind them where there is one.
    pub(super) fn acts(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        let sum = (self.head == Head::Sum).then_some(1);
        self.layers().map(|layer| layer.outputs).chain(sum)
    }

    pub(super) fn widest(&self) -> usize {
        self.acts().max().unwrap_or(1)
    }

    /// Labels of a row.
    #[must_use]
    pub fn labels(&self, task: Task) -> usize {
        if task == Task::Multiclass { 1 } else { self.outputs() }
    }

    /// Uniform in ±1/√inputs, layer by layer: what `PyTorch`'s `Linear` starts from.
    #[must_use]
    pub fn initial(&self, seed: u64) -> Vec<f32> {
        let mut weights = vec![0.0; self.weights()];
        for (l, layer) in self.layers().enumerate() {
            let mut rng = Rng::new(seed, INIT + l as u64);
            let bound = 1.0 / (layer.inputs as f32).sqrt();
            weights[layer.range].fill_with(|| bound * (2.0 * rng.uniform() - 1.0));
        }
        weights
    }

    pub(crate) fn layer(&self, l: usize) -> Layer {
        let relu = l + 1 < self.widths.len() - 1;
        let range = self.offset(l)..self.offset(l + 1);
        Layer { inputs: self.widths[l], outputs: self.widths[l + 1], range, relu }
    }

    fn offset(&self, layer: usize) -> usize {
        self.widths.windows(2).take(layer).map(|w| w[0] * w[1]).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_follow_each_other() {
        let shape = Shape::new(7, &[5, 3], 2, Head::Weights).unwrap();
        let layers: Vec<_> =
            shape.layers().map(|l| (l.inputs, l.outputs, l.range, l.relu)).collect();
        assert_eq!(layers, [(7, 5, 0..35, true), (5, 3, 35..50, true), (3, 2, 50..56, false)]);
        let sum = Shape::new(7, &[5, 3], 1, Head::Sum).unwrap();
        assert_eq!(
            (sum.layers().len(), sum.layers().all(|l| l.relu), sum.weights()),
            (2, true, 50)
        );
    }

    #[test]
    fn networks_that_cannot_be_are_refused() {
        let refused =
            |d, hidden: &[usize], c, head| Shape::new(d, hidden, c, head).unwrap_err().to_string();
        assert!(refused(3, &[], 1, Head::Weights).contains("--hidden"));
        assert!(refused(3, &[4, 0], 1, Head::Weights).contains("[3, 4, 0, 1]"));
        assert!(refused(3, &[4], 2, Head::Sum).contains("--sum-output"));
        assert!(refused(1 << 16, &[1 << 17], 1, Head::Weights).contains("32 bits"));
        assert!(refused(1 << 16, &[usize::MAX], 1, Head::Weights).contains("32 bits"));
    }

    #[test]
    fn initial_weights_are_uniform_within_layer_bound() {
        let shape = Shape::new(400, &[100], 25, Head::Weights).unwrap();
        let weights = shape.initial(3);
        for (layer, bound) in shape.layers().zip([0.05_f64, 0.1]) {
            let own: Vec<f64> = weights[layer.range].iter().map(|&w| f64::from(w)).collect();
            assert!(own.iter().all(|w| w.abs() <= bound * 1.000001));
            let n = own.len() as f64;
            let square = own.iter().map(|w| w * w).sum::<f64>() / n;
            // The variance is bound²/3; its estimate has a relative standard error of sqrt(4/5n).
            assert!(
                (square / (bound * bound / 3.0) - 1.0).abs() < 5.0 * (0.8 / n).sqrt(),
                "{square}"
            );
        }
        assert_ne!(weights, shape.initial(4));
    }
}
