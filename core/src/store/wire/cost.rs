//! What a model costs in flash, RAM and operations, and what the dense layers in its place would.

use core::ops::Add;

use crate::infer::model::{Layer, Model};

/// The cost of one layer or of a whole model. Lengths are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Weights. Signs of a sum are none.
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

impl Model<'_> {
    /// The cost of each layer in turn. `ram_bytes` are those of the layer's own outputs, 0 where
    /// they go to the prediction or straight into the sum.
    pub fn layer_costs(&self) -> impl Iterator<Item = Cost> {
        let mut dense_inputs = self.inputs();
        let kept = self.kept_activations();
        self.layers().iter().enumerate().map(move |(at, layer)| {
            let ram = if at < kept { layer.outputs().saturating_mul(size_of::<f32>()) } else { 0 };
            let cost = layer_cost(layer, dense_inputs, ram);
            dense_inputs = layer.requested();
            cost
        })
    }

    /// The cost of the whole: header included, and the scratch that [`predict`](Model::predict)
    /// needs.
    #[must_use]
    pub fn cost(&self) -> Cost {
        let sum = self.layer_costs().fold(Cost::default(), Cost::add);
        let ram_bytes = self.scratch_len().saturating_mul(size_of::<f32>());
        Cost { flash_bytes: self.flash_bytes(), ram_bytes, ..sum }
    }
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

fn layer_cost(layer: &Layer<'_>, dense_inputs: usize, ram_bytes: usize) -> Cost {
    let (nonzeros, macs) = match layer {
        Layer::Csr(csr) => (csr.nonzeros(), csr.nonzeros()),
        Layer::Sum(sum) => (0, sum.inputs()),
        Layer::Blocks(blocks) => (blocks.nonzeros(), blocks.nonzeros()),
    };
    let dense_macs = dense_inputs.saturating_mul(layer.requested());
    let dense_flash_bytes = dense_macs.saturating_mul(size_of::<f32>());
    Cost {
        nonzeros,
        flash_bytes: layer.flash_bytes(),
        ram_bytes,
        macs,
        dense_flash_bytes,
        dense_macs,
    }
}
