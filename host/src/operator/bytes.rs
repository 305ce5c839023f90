//! Bytes that a layout leads to.

use super::group::Group;
use super::kernel::PAD;
use super::layout::Layout;
use super::piece::bytes_depth;
use super::{buffer, gram};
use tamis::base::dims::Dims;

impl Layout {
    /// The same with Gram matrices of supports of `least` to `most` entries, as large as take a few
    /// megabytes.
    #[must_use]
    pub fn with_gram(self, sizes: [usize; 2]) -> Self {
        Self { gram: gram::usual(sizes), ..self }
    }

    /// Floats that bytes of so many inputs become at a time.
    pub(super) fn expanded(&self, inputs: usize) -> usize {
        bytes_depth(self.panel.next_multiple_of(PAD)).min(self.tile) * inputs
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
            if bytes { self.expanded(inputs) } else { 0 },
        ]);
        let (tiles, groups) = (samples.div_ceil(self.tile), self.used(samples));
        let marked = self.marked(hidden, nnz);
        let bits = if self.hold { (tiles + 1) * marked * self.tile.div_ceil(32) } else { 0 };
        groups * size_of::<Group>()
            + 4 * (groups * group + self.panel * inputs + self.panel + bits + marked)
            + gram::bytes(self.gram.min(nnz))
    }
}
