//! Which neurons lie on a path from an input to an output.

use super::network::Mlp;
use crate::convert::Dense;

/// Of the inputs, then of each layer's outputs: whether some input leads to it, and it to some
/// output. Outputs are live in any case.
pub(super) struct Paths {
    pub(super) live: Vec<Vec<bool>>,
}

impl Paths {
    pub(super) fn of(mlp: &Mlp) -> Self {
        let mut reached = vec![vec![true; mlp.layers[0].inputs]];
        let below_sum = mlp.layers.len().checked_sub(2).filter(|_| mlp.is_sum);
        for (l, layer) in mlp.layers.iter().enumerate() {
            let below = &reached[l];
            let own = rows(layer).enumerate().map(|(i, row)| {
                // What has a bias alone is folded into those behind it, but for a sum.
                let has_bias = below_sum == Some(l) && layer.bias.get(i).is_some_and(|&b| b != 0.0);
                has_bias || row.iter().zip(below).any(|(&w, &below)| below && w != 0.0)
            });
            let own = own.collect();
            reached.push(own);
        }
        let mut live = vec![vec![true; mlp.layers[mlp.layers.len() - 1].outputs]];
        for (layer, reached) in mlp.layers.iter().rev().zip(reached.iter().rev().skip(1)) {
            let above = &live[live.len() - 1];
            let mut own = vec![false; layer.inputs];
            for (row, _) in rows(layer).zip(above).filter(|(_, above)| **above) {
                own.iter_mut().zip(row).for_each(|(own, &w)| *own |= w != 0.0);
            }
            own.iter_mut().zip(reached).for_each(|(own, reached)| *own &= reached);
            live.push(own);
        }
        live.reverse();
        Self { live }
    }
}

impl Mlp {
    /// Whether some input leads to an output.
    pub(super) fn has_path(&self) -> bool {
        let live = &Paths::of(self).live[0];
        self.inputs_read().iter().any(|&input| live[input])
    }

    /// Nonzeros on no path.
    pub(super) fn dead_weights(&self) -> usize {
        let mut alive = self.clone();
        alive.drop_dead();
        self.nnz() - alive.nnz()
    }

    /// Takes away the weights and biases that lie on no path.
    pub(super) fn drop_dead(&mut self) {
        let Paths { live } = Paths::of(self);
        for (l, layer) in self.layers.iter_mut().enumerate() {
            let rows = layer.weights.chunks_exact_mut(layer.inputs);
            for (row, is_live) in rows.zip(&live[l + 1]) {
                let dead = row.iter_mut().zip(&live[l]).filter(|(_, input)| !(*is_live && **input));
                dead.for_each(|(weight, _)| *weight = 0.0);
            }
            let dead = layer.bias.iter_mut().zip(&live[l + 1]).filter(|(_, is_live)| !**is_live);
            dead.for_each(|(bias, _)| *bias = 0.0);
        }
        self.layers.iter_mut().for_each(Dense::trim_bias);
    }
}

fn rows(layer: &Dense) -> impl Iterator<Item = &[f32]> {
    layer.weights.chunks_exact(layer.inputs)
}
