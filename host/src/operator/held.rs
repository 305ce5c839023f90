//! Gates kept between products, as bits.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use tamis::network::gates::Gates;

/// Gates computed ahead for the restricted products: one bit per row and neuron of the support.
#[derive(Debug)]
pub(super) struct Held {
    /// What the gates that they are of are marked with.
    pub(super) ticket: Option<NonZeroU32>,
    pub(super) neurons: Vec<u32>,
    /// By piece of the batch, then neuron, then word of 32 rows.
    pub(super) bits: Vec<u32>,
    /// Words of a tile.
    pub(super) words: usize,
}

/// Gates on the rows of a piece.
#[derive(Clone, Copy)]
pub(super) struct Bits<'a> {
    all: &'a [u32],
    words: usize,
}

impl<'a> Bits<'a> {
    /// Those of one neuron after the other.
    #[inline(always)]
    pub(super) fn neurons(self) -> std::slice::Chunks<'a, u32> {
        self.all.chunks(self.words)
    }

    /// Those of the neuron at a place of the support.
    #[inline(always)]
    pub(super) fn neuron(self, at: usize) -> &'a [u32] {
        &self.all[at * self.words..][..self.words]
    }
}

impl Held {
    /// The gates on piece `k`.
    pub(super) fn piece(&self, k: usize) -> Bits<'_> {
        let stride = self.neurons.len() * self.words;
        Bits { all: &self.bits[k * stride..(k + 1) * stride], words: self.words }
    }

    /// Whether these are the gates of exactly these neurons.
    pub(super) fn fits(&self, gates: Gates<'_>, neurons: impl Iterator<Item = usize>) -> bool {
        self.ticket.is_some()
            && self.ticket == gates.ticket()
            && neurons.eq(self.neurons.iter().map(|&i| i as usize))
    }
}

/// A number that no operator has given out before.
pub(super) fn ticket() -> Option<NonZeroU32> {
    static LAST: AtomicU32 = AtomicU32::new(0);
    NonZeroU32::new(LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1))
}
