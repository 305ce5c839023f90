//! Squares of the derivatives of the outputs by each weight, summed over rows and outputs.
//!
//! With `delta_l` the derivatives of output k by what layer l gives before its relu, the derivative
//! by weight (o, i) of the layer is `delta_l[o] a_(l-1)[i]` for each row. So outputs go back one by
//! one, but only their summed squares meet the activations: `sum_k (delta_l²)^T a_(l-1)²`, one
//! product for each layer.

use super::tile::{Goal, Tile, Work, buffers};
use crate::train::dense::product::{Mat, product};

/// Memory of a tile for squares.
pub(super) struct Squares {
    /// `sum_k delta_l²` of each layer.
    deltas: Vec<Vec<f32>>,
    /// `a_(l-1)²` of a layer.
    inputs: Vec<f32>,
}

impl Squares {
    pub(super) fn new(work: &Work<'_>) -> Self {
        let widest = work.shape.widest().max(work.shape.inputs());
        Self { deltas: buffers(work.shape, work.tile), inputs: vec![0.0; work.tile * widest] }
    }

    /// One tile.
    pub(super) fn tile(&mut self, tile: &Tile<'_>, mut back: [&mut [f32]; 2], sum: &mut [f32]) {
        let shape = tile.work.shape;
        // Of a layer by itself the outputs are its own.
        let by_itself = matches!(tile.work.goal, Goal::InputSquares);
        self.deltas.iter_mut().for_each(|deltas| deltas.fill(f32::from(u8::from(by_itself))));
        for output in (0..shape.outputs()).filter(|_| !by_itself) {
            self.output(tile, output, back.each_mut().map(|back| &mut **back));
        }
        for (l, layer) in shape.layers().enumerate() {
            let inputs = &mut self.inputs[..tile.n * layer.inputs];
            inputs.iter_mut().zip(tile.input(l, &layer)).for_each(|(square, a)| *square = a * a);
            let inputs = Mat::new(inputs, tile.n, layer.inputs);
            let deltas = tile.at_outputs(&layer, &self.deltas[l]);
            product(&mut sum[layer.range], tile.add, 1.0, deltas.t(), inputs);
        }
    }

    /// Goes back through the layers with the derivatives of one output.
    fn output(&mut self, tile: &Tile<'_>, output: usize, back: [&mut [f32]; 2]) {
        let shape = tile.work.shape;
        for row in back[0].chunks_exact_mut(shape.outputs()).take(tile.n) {
            row.fill(0.0);
            row[output] = 1.0;
        }
        let mut back = tile.spread(back);
        for (l, layer) in shape.layers().enumerate().rev() {
            tile.gate(l, &layer, back[0]);
            let own = &mut self.deltas[l][..tile.n * layer.outputs];
            own.iter_mut().zip(&*back[0]).for_each(|(square, delta)| *square += delta * delta);
            if l > 0 {
                tile.step_back(&layer, &mut back);
            }
        }
    }
}
