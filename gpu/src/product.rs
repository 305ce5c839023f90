//! Products of dense matrices by the tiles that gradients are made of.

use crate::device::Gpu;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::recorder::{Recorder, Work};
use std::sync::Arc;

/// Numbers that are added up as one.
const PART: usize = 512;
/// Lines of a tile.
const TILE: usize = 64;

/// Lines of a matrix, one after the other, of `inner` numbers each.
#[derive(Debug, Clone, Copy)]
pub struct Lines<'a> {
    /// The numbers.
    pub values: &'a [f32],
    /// Numbers of a line.
    pub inner: usize,
}

impl Lines<'_> {
    fn count(&self) -> usize {
        self.values.len() / self.inner.max(1)
    }

    /// As many lines from `first` on as there are, and at most so many.
    fn some(&self, first: usize, most: usize) -> Lines<'_> {
        let end = self.count().min(first + most);
        Lines { values: &self.values[first * self.inner..end * self.inner], ..*self }
    }
}

/// Products of dense matrices, with buffers that are kept from one to the next.
#[derive(Debug)]
pub struct Products {
    recorder: Recorder,
    /// Two sides and what they give.
    buffers: [Option<wgpu::Buffer>; 3],
}

impl Products {
    /// On a device.
    #[must_use]
    pub fn new(gpu: &Arc<Gpu>) -> Self {
        Self { recorder: Recorder::new(Arc::clone(gpu), false), buffers: [const { None }; 3] }
    }

    /// `A Bᵀ`, row by row, of the lines of A and of B. Matrices that no binding holds go piece by piece.
    ///
    /// # Errors
    /// The device fails, or a line is larger than a binding.
    ///
    /// # Panics
    /// Never in release; debug builds assert that lines are of one length.
    pub fn multiply(&mut self, a: Lines<'_>, b: Lines<'_>) -> Result<Vec<f32>, Error> {
        debug_assert_eq!(a.inner, b.inner, "lines of one length");
        let most = (self.recorder.gpu.binding_limit() / 4) as usize;
        // As many lines on a side as it holds, and their products.
        let lines = (most / a.inner.max(1)).min(most.isqrt()).max(1);
        let (rows, columns) = (a.count(), b.count());
        let mut out = vec![0.0; rows * columns];
        for row in (0..rows).step_by(lines) {
            for column in (0..columns).step_by(lines) {
                let (left, right) = (a.some(row, lines), b.some(column, lines));
                let piece = self.piece(left, right)?;
                let width = right.count();
                for (own, piece) in
                    out[row * columns..].chunks_mut(columns).zip(piece.chunks(width))
                {
                    own[column..column + width].copy_from_slice(bytemuck::cast_slice(piece));
                }
            }
        }
        Ok(out)
    }

    fn piece(&mut self, a: Lines<'_>, b: Lines<'_>) -> Result<Vec<u32>, Error> {
        let Self { recorder, buffers: [first, second, out] } = self;
        let [rows, columns, inner] = [a.count(), b.count(), a.inner];
        let sides = [(a, first), (b, second)].map(|(side, buffer)| {
            let buffer = recorder.grow(buffer, "a side of a product", side.values.len());
            recorder.write(&buffer, bytemuck::cast_slice(side.values));
            buffer
        });
        let sums = recorder.grow(out, "a product", rows * columns);
        recorder.clear(&sums, rows * columns);
        let part = PART.min(inner.next_multiple_of(32)).max(32);
        let dims = [0, 0, inner, 0, inner.next_multiple_of(part), part, rows, columns];
        let dims = dims.map(|size| size as u32);
        let places = [(&sides[0]).into(), (&sides[1]).into(), (&sums).into()];
        let grid = [rows.div_ceil(TILE), columns.div_ceil(TILE), 1];
        recorder.run(Kernel::Product, &dims, &places, grid);
        let numbers = rows * inner + columns * inner + rows * columns;
        let work = Work { multiply_adds: rows * columns * inner, bytes: 4 * numbers };
        recorder.note_work(Kernel::Product, work);
        let read = recorder.read(&sums, rows * columns);
        recorder.failure.clone().map_or(Ok(read), Err)
    }
}
