//! Sizes of the operator's buffers, and the bytes they add up to.

use super::{Group, PAD, activations, buffer, gram};
use serde::Serialize;
use tamis::base::dims::Dims;

/// Sizes of the operator's buffers; the defaults suit data of any size on a machine with a megabyte
/// of cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Layout {
    /// Rows of a tile.
    pub tile: usize,
    /// Neurons of a gradient panel.
    pub panel: usize,
    /// Groups that tiles are divided into, whatever the number of threads; each has accumulators of
    /// its own, and no more threads than groups take part.
    pub groups: usize,
    /// Whether gates are held between products: one bit per row and neuron of the support, for a
    /// third of the time.
    pub hold: bool,
    /// Entries of the largest support whose Gram matrix is kept while gates are held, 0 for none:
    /// 16 bytes per pair of entries, for much of the time where conjugate gradients need many
    /// products.
    pub gram: usize,
    /// Floats of a group for activations that are kept from one evaluation of the network to the
    /// next, one per row and neuron; 0 for none. A network that they are too few for keeps none.
    pub activations: usize,
    /// Whether a run goes through a batch in strips of a tile to each group ([`Layout::strip`]) and
    /// holds no residual of more rows.
    pub strips: bool,
}

impl Layout {
    /// Groups where memory is not short.
    pub const GROUPS: usize = 8;

    /// The layout for m hidden neurons and d inputs.
    #[must_use]
    pub const fn new(hidden: usize, inputs: usize) -> Self {
        let panel = if hidden < 128 { hidden } else { 128 };
        // A tile of floats takes a quarter of a megabyte or less.
        let tile = if inputs <= 128 {
            512
        } else if inputs <= 512 {
            256
        } else {
            128
        };
        Self {
            tile,
            panel,
            groups: Self::GROUPS,
            hold: true,
            gram: 0,
            activations: 0,
            strips: false,
        }
    }

    /// The same with the Gram matrices of supports of `entries` entries, if they take a few
    /// megabytes at most.
    #[must_use]
    pub const fn with_gram(self, entries: usize) -> Self {
        Self { gram: gram::usual(entries), ..self }
    }

    /// The same with activations of `neurons` neurons on `samples` rows, or as many as take a few
    /// megabytes.
    #[must_use]
    pub const fn with_activations(self, samples: usize, neurons: usize) -> Self {
        let groups = self.used(samples);
        let pieces = samples.div_ceil(self.tile).div_ceil(if groups == 0 { 1 } else { groups });
        Self {
            activations: activations::usual(groups, pieces.saturating_mul(self.tile), neurons),
            ..self
        }
    }

    /// Rows of a strip; 0 for all of a batch.
    #[must_use]
    pub const fn strip(&self) -> usize {
        if self.strips { self.tile.saturating_mul(self.groups) } else { 0 }
    }

    /// Groups that have tiles.
    pub(super) const fn used(&self, samples: usize) -> usize {
        let tiles = samples.div_ceil(self.tile);
        if tiles < self.groups { tiles } else { self.groups }
    }

    /// Bytes that [`super::Blocked::with_outputs`] allocates in addition.
    #[must_use]
    pub const fn outputs_bytes(&self, dims: Dims, outputs: usize) -> usize {
        let padded = self.panel.next_multiple_of(PAD);
        let (before, after) = (padded * dims.inputs, padded * (dims.inputs + outputs));
        let before = if before > dims.nnz { before } else { dims.nnz };
        let after = if after > dims.nnz { after } else { dims.nnz };
        let more =
            buffer::floats(&[after, outputs * self.tile, self.tile]) - buffer::floats(&[before]);
        4 * self.used(dims.samples) * more
    }

    /// Bytes that the operator allocates besides the data; `bytes` says that the data are bytes.
    #[must_use]
    pub const fn bytes(&self, dims: Dims, bytes: bool) -> usize {
        let Dims { samples, inputs, hidden, nnz, .. } = dims;
        let padded = self.panel.next_multiple_of(PAD);
        let product = if padded * inputs > nnz { padded * inputs } else { nnz };
        let expanded = if bytes { self.tile * inputs } else { 0 };
        let sizes = [
            product,
            padded * self.tile,
            padded * self.tile,
            self.tile,
            self.tile,
            self.tile,
            expanded,
            self.activations,
        ];
        let group = buffer::floats(&sizes);
        let (tiles, groups) = (samples.div_ceil(self.tile), self.used(samples));
        let held = if !self.hold {
            0
        } else if hidden < nnz {
            hidden
        } else {
            nnz
        };
        let gram = gram::bytes(if self.gram < nnz { self.gram } else { nnz });
        let bits = (tiles + 1) * held * self.tile.div_ceil(32) + held;
        let kept =
            activations::bytes(self.activations, if hidden < nnz { hidden } else { nnz }, nnz);
        groups * size_of::<Group>()
            + 4 * (groups * group + self.panel * inputs + self.panel + bits)
            + gram
            + kept
    }
}
