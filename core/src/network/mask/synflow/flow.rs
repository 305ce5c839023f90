//! Flows at the neurons, and the weights that they meet.

use super::params::Info;
use crate::base::budget::Workspace;
use crate::base::error::Result;
use crate::network::mask::initial::LayerWeights;
use crate::network::mask::{LayerShape, Mlp};

/// u of the inputs and v of the outputs of every layer, layer by layer.
pub(super) struct Flow<'m> {
    pub(super) u: &'m mut [f32],
    pub(super) v: &'m mut [f32],
}

/// Those of one layer.
#[derive(Clone, Copy)]
pub(super) struct LayerFlow<'f> {
    pub(super) u: &'f [f32],
    pub(super) v: &'f [f32],
}

impl<'m> Flow<'m> {
    pub(super) fn new(net: &Mlp<'_>, space: &mut Workspace<'m>) -> Result<Self> {
        let (inputs, outputs) =
            net.layers().fold((0, 0), |(i, o), layer| (i + layer.inputs, o + layer.outputs));
        Ok(Self { u: space.floats(inputs)?, v: space.floats(outputs)? })
    }

    pub(super) fn of(&self, layer: &LayerShape) -> LayerFlow<'_> {
        LayerFlow {
            u: self.u.get(layer.all_inputs()).unwrap_or(&[]),
            v: self.v.get(layer.all_outputs()).unwrap_or(&[]),
        }
    }

    pub(super) fn is_finite(&self) -> bool {
        self.u.iter().chain(&*self.v).all(|x| x.is_finite())
    }
}

/// The score of a weight. Masks and scores agree to the bit, since both are this.
#[inline]
pub(super) fn score(w: f32, v: f32, u: f32) -> f32 {
    w * v * u
}

/// Weights that are computed at a time.
pub(super) const CHUNK: usize = 32;

/// `|w|` of some neighbours in a row; 0 where the input has no flow, since no score needs it.
pub(super) struct Chunk {
    pub(super) sizes: [f32; CHUNK],
}

impl Chunk {
    #[inline]
    pub(super) fn new(
        weights: &LayerWeights,
        row: u32,
        column: u32,
        u: &[f32],
        info: &mut Info,
    ) -> Self {
        let mut sizes = [0.0; CHUNK];
        let live = u.iter().filter(|u| **u > 0.0).count();
        info.regenerated += live as u64;
        if live == u.len() {
            weights.sizes(row, column, sizes.get_mut(..live).unwrap_or_default());
        } else {
            let all = (column..).zip(u).zip(sizes.chunks_mut(1));
            for ((column, _), size) in all.filter(|((_, u), _)| **u > 0.0) {
                weights.sizes(row, column, size);
            }
        }
        Self { sizes }
    }

    /// The scores of these weights, of an output's v and the inputs' u.
    #[inline]
    pub(super) fn scores(&self, v: f32, u: &[f32]) -> impl Iterator<Item = f32> + Clone {
        self.sizes.iter().zip(u).map(move |(&w, &u)| score(w, v, u))
    }
}
