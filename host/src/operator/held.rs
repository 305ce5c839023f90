//! Gates kept between products, as bits.

use tamis::gates::{Gates, Key};

/// Gates computed ahead for the restricted products: one bit per row and neuron of the support.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) key: Option<Key>,
    pub(super) neurons: Vec<u32>,
    /// By piece of the batch, then neuron, then word of 32 rows.
    pub(super) bits: Vec<u32>,
    /// Words of a tile.
    pub(super) words: usize,
}

impl Held {
    /// The words of piece `k`, all neurons, and how many a neuron has.
    pub(super) fn piece(&self, k: usize) -> (&[u32], usize) {
        let stride = self.neurons.len() * self.words;
        (&self.bits[k * stride..(k + 1) * stride], self.words)
    }

    /// Whether these are the gates of exactly these neurons.
    pub(super) fn fits(&self, gates: Gates<'_>, neurons: impl Iterator<Item = usize>) -> bool {
        self.key == Some(gates.key()) && neurons.eq(self.neurons.iter().map(|&i| i as usize))
    }
}
