//! Sizes of the operator's buffers.

use serde::Serialize;

/// Sizes of the operator's buffers; the defaults suit data of any size on a machine with a megabyte
/// of cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Layout {
    /// Rows of a tile.
    pub tile: usize,
    /// Neurons of a gradient panel.
    pub panel: usize,
    /// Groups that tiles are divided into; no more threads take part.
    pub groups: usize,
    /// Groups that are worked on at a time, with buffers of their own: as many as there are threads.
    /// It changes no bit of a result.
    #[serde(skip)]
    pub at_once: usize,
    /// Whether gates are held between products: one bit per row and neuron of the support.
    pub hold: bool,
    /// Entries of the largest support whose Gram matrix is kept while gates stay, 0 for none: 2 bytes
    /// per pair of entries, and buffers.
    pub gram: usize,
    /// Whether a run goes through a batch in strips of a tile to each group ([`Layout::strip`]) and
    /// holds no residual of more rows.
    pub strips: bool,
}

impl Layout {
    /// Groups where memory is not short.
    pub const GROUPS: usize = 8;

    /// The layout for m hidden neurons and d inputs.
    #[must_use]
    pub fn new(hidden: usize, inputs: usize) -> Self {
        Self {
            // A tile of floats takes a quarter of a megabyte or less.
            tile: match inputs {
                ..=128 => 512,
                129..=512 => 256,
                _ => 128,
            },
            panel: hidden.min(128),
            groups: Self::GROUPS,
            at_once: Self::GROUPS,
            hold: true,
            gram: 0,
            strips: false,
        }
    }

    /// The same with no buffer larger than those of another one.
    pub(crate) fn within(self, most: Self) -> Self {
        Self {
            tile: self.tile.min(most.tile),
            panel: self.panel.min(most.panel),
            groups: self.groups.min(most.groups),
            at_once: self.at_once.min(most.at_once),
            hold: self.hold && most.hold,
            gram: self.gram.min(most.gram),
            strips: self.strips || most.strips,
        }
    }

    /// Rows of a strip; 0 for all of a batch.
    #[must_use]
    pub const fn strip(&self) -> usize {
        if self.strips { self.tile.saturating_mul(self.groups) } else { 0 }
    }

    /// Neurons whose gates may be marked, of `hidden` with `nnz` weights: none where it is of no use.
    pub(super) fn marked(&self, hidden: usize, nnz: usize) -> usize {
        if self.hold || self.gram > 0 { hidden.min(nnz) } else { 0 }
    }

    /// Groups that there are, of so many rows.
    pub(super) fn used(&self, samples: usize) -> usize {
        samples.div_ceil(self.tile).min(self.groups)
    }

    /// Rooms to work on groups in.
    pub(super) fn rooms(&self, samples: usize) -> usize {
        self.used(samples).min(self.at_once)
    }
}
