//! The Hessian of the loss times a vector, exactly (B. Pearlmutter, Fast exact multiplication by
//! the Hessian, 1994).
//!
//! `R` is the derivative along v, with `V_l` what v has of layer l. Forwards `R z_l = V_l a_(l-1) +
//! W_l R a_(l-1)` and `R a_l = R z_l * 1[a_l > 0]`: the second derivative of relu is 0. Back, `R
//! r_(l-1) = (R r_l W_l + r_l V_l) * 1[a_(l-1) > 0]`, and the product is `-scale ((R r_l)^T
//! a_(l-1) + r_l^T R a_(l-1))`. The first residual is label minus output, so `R r = -R z` for
//! squared loss; for cross-entropy `R r = -(diag(p) - p p^T) R z / T`.

use super::tile::{Tile, Work, buffers, matrix, sum_neurons};
use crate::data::Task;
use crate::train::dense::product::{Mat, product};

/// Memory of a tile for derivatives along a vector.
pub(super) struct Tangents {
    /// `R a_l` of each layer.
    acts: Vec<Vec<f32>>,
    /// `R r_l` of two neighbouring layers.
    back: [Vec<f32>; 2],
}

impl Tangents {
    pub(super) fn new(work: &Work<'_>) -> Self {
        let back = vec![0.0; work.tile * work.shape.widest()];
        Self { acts: buffers(work.shape, work.tile), back: [back.clone(), back] }
    }

    /// One tile, from the residuals of its outputs.
    pub(super) fn tile(
        &mut self,
        tile: &Tile<'_>,
        v: &[f32],
        residuals: [&mut [f32]; 2],
        sum: &mut [f32],
    ) {
        self.forward(tile, v);
        self.residual(tile, residuals[0]);
        let scale = tile.work.scale;
        let mut residuals = tile.spread(residuals);
        let mut back = tile.spread(self.back.each_mut().map(|back| &mut back[..]));
        for (l, layer) in tile.work.shape.layers().enumerate().rev() {
            tile.gate(l, &layer, residuals[0]);
            tile.gate(l, &layer, back[0]);
            let own = &mut sum[layer.range.clone()];
            let tangent = tile.at_outputs(&layer, back[0]);
            product(own, tile.add, scale, tangent.t(), tile.input_matrix(l, &layer));
            if l > 0 {
                let residual = tile.at_outputs(&layer, residuals[0]);
                let acts = &self.acts[l - 1][..tile.n * layer.inputs];
                product(own, true, scale, residual.t(), Mat::new(acts, tile.n, layer.inputs));
                tile.step_back(&layer, &mut back);
                let next = &mut back[0][..tile.n * layer.inputs];
                product(next, true, 1.0, residual, matrix(&layer, v));
                tile.step_back(&layer, &mut residuals);
            }
        }
    }

    /// `R a_l` of all layers.
    fn forward(&mut self, tile: &Tile<'_>, v: &[f32]) {
        let n = tile.n;
        for (l, layer) in tile.work.shape.layers().enumerate() {
            let (before, from) = self.acts.split_at_mut(l);
            let out = &mut from[0][..n * layer.outputs];
            product(out, false, 1.0, tile.input_matrix(l, &layer), matrix(&layer, v).t());
            if let Some(before) = before.last() {
                let before = Mat::new(&before[..n * layer.inputs], n, layer.inputs);
                product(out, true, 1.0, before, tile.work.weights(&layer).t());
            }
            tile.gate(l, &layer, out);
        }
        sum_neurons(tile.work.shape, &mut self.acts, n);
    }

    /// `R r` of the outputs.
    fn residual(&mut self, tile: &Tile<'_>, residual: &[f32]) {
        let width = tile.work.shape.outputs();
        let Some(out) = self.acts.last() else { return };
        let rows = self.back[0].chunks_exact_mut(width).zip(out.chunks_exact(width)).take(tile.n);
        if tile.work.task != Task::Multiclass {
            return rows.flat_map(|(r, z)| r.iter_mut().zip(z)).for_each(|(r, z)| *r = -z);
        }
        for ((own, z), residual) in rows.zip(residual.chunks_exact(width)) {
            // Of the label's class the residual is 1 - p and above 0, of the others it is -p.
            let p = |k: usize| if residual[k] > 0.0 { 1.0 - residual[k] } else { -residual[k] };
            let mean: f32 = z.iter().enumerate().map(|(k, z)| p(k) * z).sum();
            for (k, own) in own.iter_mut().enumerate() {
                *own = -tile.work.coldness * p(k) * (z[k] - mean);
            }
        }
    }
}
