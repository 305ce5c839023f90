//! The smooth group lasso: training under a penalty that lets whole neurons and inputs vanish.
//!
//! `lambda Σ_g |w_g|² / sqrt(|w_g|² + beta)` over groups g of weights is added to the mean loss: far
//! from 0 it is `lambda |w_g|`, near 0 it is smooth (N. Rajaraman et al., Greedy Pruning with Group
//! Lasso Provably Generalizes for Matrix Sensing, 2023). Its derivative by a weight of a group is
//! `lambda w (n + 2 beta) / (n + beta)^(3/2)`, `n = |w_g|²`. A group is a hidden neuron with its
//! bias, incoming and outgoing weights, and where inputs are cut, too, each input's column.

use super::options::LassoOptions;
use crate::train::dense::shape::Shape;

/// The penalty of a network as it is trained.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupLasso {
    pub(super) options: LassoOptions,
    /// Whether the last neuron of each layer, and the last input, is the 1 of biases.
    pub(super) has_ones: bool,
    /// Whether neurons are groups.
    pub(super) with_neurons: bool,
    /// Whether inputs are groups.
    pub(super) with_inputs: bool,
}

impl GroupLasso {
    /// Adds the gradient of the penalty.
    pub(super) fn add(&self, shape: &Shape, weights: &[f32], gradient: &mut [f32]) {
        let layers: Vec<_> = shape.layers().collect();
        let ones = usize::from(self.has_ones);
        // Squares of the rows and of the columns of each layer.
        let mut rows: Vec<Vec<f64>> = Vec::new();
        let mut columns: Vec<Vec<f64>> = Vec::new();
        for layer in &layers {
            let (mut own, mut across) = (Vec::new(), vec![0.0_f32; layer.inputs]);
            for row in weights[layer.range.clone()].chunks_exact(layer.inputs) {
                let mut sum = 0.0_f32;
                for (across, w) in across.iter_mut().zip(row) {
                    let square = w * w;
                    *across += square;
                    sum += square;
                }
                own.push(f64::from(sum));
            }
            rows.push(own);
            columns.push(across.into_iter().map(f64::from).collect());
        }
        for (l, layer) in layers.iter().enumerate() {
            // Factors of the groups of this layer's outputs and of its inputs.
            let is_last = l + 1 == layers.len();
            let group = |i: usize| self.factor(rows[l][i] + columns[l + 1][i]);
            let neurons = if is_last || !self.with_neurons { 0 } else { layer.outputs - ones };
            let of_rows: Vec<f32> = (0..neurons).map(group).collect();
            let of_columns: Vec<f32> = match l.checked_sub(1) {
                None if self.with_inputs => {
                    columns[0][..layer.inputs - ones].iter().map(|&n| self.factor(n)).collect()
                }
                Some(below) if self.with_neurons => (0..layer.inputs - ones)
                    .map(|j| self.factor(rows[below][j] + columns[l][j]))
                    .collect(),
                _ => Vec::new(),
            };
            let range = layer.range.clone();
            let own = weights[range.clone()].chunks_exact(layer.inputs);
            let gradients = gradient[range].chunks_exact_mut(layer.inputs);
            for (i, (row, gradient)) in own.zip(gradients).enumerate() {
                let of_row = of_rows.get(i).copied().unwrap_or(0.0);
                if of_row > 0.0 {
                    gradient.iter_mut().zip(row).for_each(|(g, w)| *g += of_row * w);
                }
                let each = gradient.iter_mut().zip(row).zip(&of_columns);
                each.for_each(|((g, w), factor)| *g += factor * w);
            }
        }
    }

    /// The derivative by a weight, over the weight, in a group of squared norm n.
    fn factor(&self, n: f64) -> f32 {
        let LassoOptions { lambda, beta, .. } = self.options;
        let (lambda, beta) = (f64::from(lambda), f64::from(beta));
        (lambda * (n + 2.0 * beta) / (n + beta).powf(1.5)) as f32
    }
}
