//! Bytes that a layout leads to.

use super::group::Group;
use super::kernel::PAD;
use super::layout::Layout;
use super::{activations, buffer, gram};
use tamis::base::dims::Dims;

impl Layout {
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
