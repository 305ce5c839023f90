//! Bytes that a layout leads to.

use super::buffer::Buffer;
use super::group::Group;
use super::kernel::PAD;
use super::layout::Layout;
use super::piece::{DEPTH, bytes_depth};
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
        let product =
            |width| buffer::floats(&[dims.nnz.max(self.panel.next_multiple_of(PAD) * width)]);
        let more = product(dims.inputs + outputs) - product(dims.inputs);
        let room = buffer::floats(&[outputs * self.tile, self.tile]);
        4 * (self.used(dims.samples) * more + self.rooms(dims.samples) * room + outputs)
    }

    /// Bytes that the operator allocates besides the data; `bytes` says that the data are bytes.
    #[must_use]
    pub fn bytes(&self, dims: Dims, bytes: bool) -> usize {
        let Dims { samples, inputs, hidden, nnz, .. } = dims;
        let padded = self.panel.next_multiple_of(PAD);
        let product = buffer::floats(&[nnz.max(padded * inputs)]);
        let room = buffer::floats(&[
            padded * self.tile.min(DEPTH),
            padded * self.tile,
            self.tile,
            self.tile,
            self.tile,
            if bytes { self.expanded(inputs) } else { 0 },
        ]);
        let (tiles, groups) = (samples.div_ceil(self.tile), self.used(samples));
        let rooms = self.rooms(samples);
        let marked = self.marked(hidden, nnz);
        let bits = if self.hold { (tiles + 1) * marked * self.tile.div_ceil(32) } else { 0 };
        groups * size_of::<Buffer>()
            + rooms * size_of::<Group>()
            + 4 * (groups * product + rooms * room + self.panel * inputs + self.panel)
            + 4 * (bits + marked)
            + gram::bytes(self.gram.min(nnz))
    }
}
