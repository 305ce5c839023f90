//! Scores of neurons, inputs and weights: one function each. What has a larger one stays.

use super::network::Mlp;

/// The norm of the group of each neuron of a hidden layer: `sqrt(|in|² + |out|²)`, its incoming
/// weights with its bias, and its outgoing ones.
pub(super) fn group_norms(mlp: &Mlp, hidden: usize) -> Vec<f64> {
    let [own, next] = [&mlp.layers[hidden], &mlp.layers[hidden + 1]];
    let score = |i: usize| {
        let row = &own.weights[i * own.inputs..(i + 1) * own.inputs];
        let bias = own.bias.get(i);
        let column = next.weights.iter().skip(i).step_by(next.inputs);
        squares(row.iter().chain(bias).chain(column)).sqrt()
    };
    (0..own.outputs).map(score).collect()
}

/// The norm of each input's column of the first layer.
pub(super) fn input_norms(mlp: &Mlp) -> Vec<f64> {
    let first = &mlp.layers[0];
    let column = |j: usize| first.weights.iter().skip(j).step_by(first.inputs);
    (0..first.inputs).map(|j| squares(column(j)).sqrt()).collect()
}

/// `|w|` of each weight and bias, layer by layer, biases behind the weights; of biases that hold means of inputs,
/// which stay with their neurons, infinity.
pub(super) fn magnitudes(mlp: &Mlp) -> Vec<Vec<f32>> {
    let layer = |(l, layer): (usize, &crate::convert::Dense)| {
        let is_held = l == 0 && mlp.is_centred;
        let biases = layer.bias.iter().map(|&b| if is_held { f32::INFINITY } else { b.abs() });
        layer.weights.iter().map(|w| w.abs()).chain(biases).collect()
    };
    mlp.counted().iter().enumerate().map(layer).collect()
}

fn squares<'a>(values: impl Iterator<Item = &'a f32>) -> f64 {
    values.map(|&value| f64::from(value).powi(2)).sum()
}
