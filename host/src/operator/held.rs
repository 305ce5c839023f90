//! Gates kept between products, as bits.

use std::num::NonZeroU32;
use std::slice::Chunks;
use std::sync::atomic::{AtomicU32, Ordering};
use tamis::network::gates::Gates;

/// Gates that many restricted products are under: marked, and where [`super::Layout::hold`] says so
/// computed ahead, one bit per row and neuron of the support.
#[derive(Debug)]
pub(super) struct Held {
    /// What these gates are marked with.
    pub(super) ticket: Option<NonZeroU32>,
    pub(super) neurons: Vec<u32>,
    /// By piece of the batch, then neuron, then word of 32 rows; empty where they are not held.
    pub(super) bits: Vec<u32>,
    pub(super) words: usize,
}

impl Held {
    /// The gates on piece `k`, one neuron after the other.
    pub(super) fn piece(&self, k: usize) -> Chunks<'_, u32> {
        let stride = self.neurons.len() * self.words;
        self.bits[k * stride..(k + 1) * stride].chunks(self.words)
    }

    /// Whether there are bits.
    pub(super) fn has_bits(&self) -> bool {
        !self.bits.is_empty()
    }

    /// Whether there are bits, of the gates of exactly these neurons.
    pub(super) fn fits(&self, gates: Gates<'_>, neurons: impl Iterator<Item = usize>) -> bool {
        self.has_bits() && self.are(gates, neurons)
    }

    /// Whether these are the gates of exactly these neurons.
    pub(super) fn are(&self, gates: Gates<'_>, neurons: impl Iterator<Item = usize>) -> bool {
        self.ticket.is_some()
            && self.ticket == gates.ticket()
            && neurons.eq(self.neurons.iter().map(|&i| i as usize))
    }
}

/// Closes the gates of a piece, `words` words for each neuron, on rows where r is 0.
pub(super) fn close(r: &[f32], words: usize, bits: &mut [u32]) {
    for (k, r) in r.chunks(32).enumerate() {
        let open = r.iter().enumerate().fold(0, |open, (l, r)| open | u32::from(*r != 0.0) << l);
        bits.iter_mut().skip(k).step_by(words).for_each(|word| *word &= open);
    }
}

/// A number that no operator has given out before.
pub(super) fn ticket() -> Option<NonZeroU32> {
    static LAST: AtomicU32 = AtomicU32::new(0);
    NonZeroU32::new(LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1))
}
