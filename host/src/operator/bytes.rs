//! Bytes that a layout leads to.

use super::group::Group;
use super::kernel::PAD;
use super::layout::Layout;
use super::{activations, buffer, gram};
use tamis::base::dims::Dims;

impl Layout {
    /// The same with Gram matrices of supports of `least` to `most` entries, as large as take no more
    /// memory than the data, or a few megabytes.
    #[must_use]
    pub fn with_gram(self, [least, most]: [usize; 2], data_bytes: usize) -> Self {
        Self { gram: gram::usual(least, most, data_bytes), ..self }
    }

    /// The same with activations of `neurons` neurons on `samples` rows, or as many as take a few
    /// megabytes.
    #[must_use]
    pub fn with_activations(self, samples: usize, neurons: usize) -> Self {
        let groups = self.used(samples);
        let rows = samples.div_ceil(self.tile).div_ceil(groups.max(1)).saturating_mul(self.tile);
        Self { activations: activations::usual(groups, rows, neurons), ..self }
    }

    /// Bytes that [`super::Blocked::with_outputs`] allocates in addition.
    #[must_use]
    pub fn outputs_bytes(&self, dims: Dims, outputs: usize) -> usize {
        let product = |width| dims.nnz.max(self.panel.next_multiple_of(PAD) * width);
        let (before, after) = (product(dims.inputs), product(dims.inputs + outputs));
        let all = buffer::floats(&[after, outputs * self.tile, self.tile]);
        4 * (self.used(dims.samples) * (all - buffer::floats(&[before])) + outputs)
    }

    /// Bytes that the operator allocates besides the data; `bytes` says that the data are bytes.
    #[must_use]
    pub fn bytes(&self, dims: Dims, bytes: bool) -> usize {
        let Dims { samples, inputs, hidden, nnz, .. } = dims;
        let padded = self.panel.next_multiple_of(PAD);
        let group = buffer::floats(&[
            nnz.max(padded * inputs),
            padded * self.tile,
            padded * self.tile,
            self.tile,
            self.tile,
            self.tile,
            if bytes { self.tile * inputs } else { 0 },
            self.activations,
        ]);
        let (tiles, groups) = (samples.div_ceil(self.tile), self.used(samples));
        let live = hidden.min(nnz);
        let held = if self.hold { live } else { 0 };
        let bits = (tiles + 1) * held * self.tile.div_ceil(32) + held;
        groups * size_of::<Group>()
            + 4 * (groups * group + self.panel * inputs + self.panel + bits)
            + gram::bytes(self.gram.min(nnz))
            + activations::bytes(self.activations, live, nnz)
    }
}
