//! Biases as weights of one more input.

use super::network::DenseLayers;
use crate::Result;
use crate::train::dense::scores::Role;
use crate::train::dense::shape::Shape;

/// A network without biases that gives the same on rows with a last column of ones.
pub(crate) struct WithBiases {
    pub(crate) shape: Shape,
    pub(crate) weights: Vec<f32>,
    pub(crate) roles: Vec<Role>,
}

impl WithBiases {
    pub(crate) fn new(shape: &Shape, layers: &DenseLayers) -> Result<Self> {
        let last = shape.layers().len() - 1;
        let mut widths = vec![shape.inputs() + 1];
        let more = |l: usize| usize::from(l != last);
        widths.extend(shape.layers().enumerate().map(|(l, layer)| layer.outputs + more(l)));
        let mut whole = Self { shape: Shape::of(&widths)?, weights: Vec::new(), roles: Vec::new() };
        for (l, layer) in shape.layers().enumerate() {
            let biases = &layers.biases[l];
            for (row, weights) in layers.weights[layer.range].chunks(layer.inputs).enumerate() {
                let (bias, role) = match biases.get(row) {
                    Some(&bias) => (bias, Role::Bias),
                    None => (0.0, Role::Fixed),
                };
                whole.extend(weights.iter().copied(), Role::Weight);
                whole.extend([bias], role);
            }
            if l != last {
                whole.extend(std::iter::repeat_n(0.0, layer.inputs).chain([1.0]), Role::Fixed);
            }
        }
        Ok(whole)
    }

    fn extend(&mut self, weights: impl IntoIterator<Item = f32>, role: Role) {
        self.weights.extend(weights);
        self.roles.resize(self.weights.len(), role);
    }
}
