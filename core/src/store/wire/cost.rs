//! What a model costs in flash, RAM and operations, and what the dense layers in its place would.

use core::ops::Add;

use crate::infer::model::{Layer, Model};

/// The cost of one layer or of a whole model. Lengths are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Weights, and biases that are not 0. Signs of a sum are none.
    pub nonzeros: usize,
    /// Exactly the encoded bytes, headers included.
    pub flash_bytes: usize,
    /// Scratch for activations; those of a whole model share it.
    pub ram_bytes: usize,
    /// Multiplications with addition; for a sum its additions.
    pub macs: usize,
    /// `f32` weights of the dense layer with the outputs asked for, without any header.
    pub dense_flash_bytes: usize,
    /// Multiplications with addition of that dense layer.
    pub dense_macs: usize,
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            nonzeros: self.nonzeros.saturating_add(other.nonzeros),
            flash_bytes: self.flash_bytes.saturating_add(other.flash_bytes),
            ram_bytes: self.ram_bytes.saturating_add(other.ram_bytes),
            macs: self.macs.saturating_add(other.macs),
            dense_flash_bytes: self.dense_flash_bytes.saturating_add(other.dense_flash_bytes),
            dense_macs: self.dense_macs.saturating_add(other.dense_macs),
        }
    }
}

impl Model<'_> {
    /// The cost of each layer in turn. `ram_bytes` are those of the layer's own outputs, 0 where
    /// they go to the prediction or straight into the sum.
    pub fn layer_costs(&self) -> impl Iterator<Item = Cost> {
        let (mut dense_inputs, hidden) = (self.inputs(), self.chain().kept_activations());
        self.layers().iter().enumerate().map(move |(at, layer)| {
            let activations = if at < hidden { layer.outputs() } else { 0 };
            let dense_macs = dense_inputs.saturating_mul(layer.requested());
            dense_inputs = layer.requested();
            Cost {
                nonzeros: layer.nonzeros() + layer.biases().iter().filter(|&&b| b != 0.0).count(),
                flash_bytes: layer.flash_bytes(),
                ram_bytes: activations.saturating_mul(size_of::<f32>()),
                macs: if let Layer::Sum(sum) = layer { sum.inputs() } else { layer.nonzeros() },
                dense_flash_bytes: dense_macs.saturating_mul(size_of::<f32>()),
                dense_macs,
            }
        })
    }

    /// The cost of the whole: header included, and the scratch that [`predict`](Model::predict)
    /// needs.
    pub fn cost(&self) -> Cost {
        Cost {
            flash_bytes: self.flash_bytes(),
            ram_bytes: self.scratch_len().saturating_mul(size_of::<f32>()),
            ..self.layer_costs().fold(Cost::default(), Add::add)
        }
    }
}
