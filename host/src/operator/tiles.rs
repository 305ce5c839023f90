//! The data as the blocked operator keeps it: tiles of rows, each stored column by column.
//!
//! A tile holds the rows `t·T .. (t+1)·T`; it is transposed in place.

use super::hidden_layers::{HiddenLayers, Mapped};
use super::kernel::{Element, Piece};
use crate::data::{LINE, Matrix, Values};
use std::ops::Range;

#[derive(Debug)]
pub(super) struct Tiles {
    pub(super) values: Values,
    /// Where they begin in there, so that each tile begins at a line of the cache.
    skip: usize,
    pub(super) rows: usize,
    /// Inputs: columns of the values, or what the layers before make of them.
    pub(super) cols: usize,
    pub(super) tile: usize,
    pub(super) through: Option<HiddenLayers>,
}

#[derive(Clone, Copy)]
pub(super) enum View<'a> {
    F32(Piece<'a, f32>),
    U8(Piece<'a, u8>),
}

impl Tiles {
    /// Takes row-major data over; the inputs are what finished layers make of them, if any.
    pub(super) fn new(data: Matrix, tile: usize, through: Option<HiddenLayers>) -> Self {
        let Matrix { rows, cols, mut values } = data;
        let skip = match &mut values {
            Values::F32(values) => lay_out(values, cols, tile),
            Values::U8(values) => lay_out(values, cols, tile),
        };
        let cols = through.as_ref().map_or(cols, HiddenLayers::width);
        Self { values, skip, rows, cols, tile, through }
    }

    /// Columns of the values.
    fn source(&self) -> usize {
        self.through.as_ref().map_or(self.cols, HiddenLayers::inputs)
    }

    /// The rows as they came.
    pub(super) fn into_matrix(self) -> Matrix {
        let cols = self.source();
        let Self { rows, mut values, skip, tile, .. } = self;
        match &mut values {
            Values::F32(values) => restore(values, skip, cols, tile),
            Values::U8(values) => restore(values, skip, cols, tile),
        }
        Matrix { rows, cols, values }
    }

    /// How many pieces a batch has: the tiles that it touches.
    pub(super) fn pieces(&self, batch: &Range<usize>) -> usize {
        batch.end.div_ceil(self.tile) - batch.start / self.tile
    }

    /// The inputs of the rows of tile `batch.start / T + k` that lie in the batch; `mapped` is
    /// [`Self::map`]'s for the same tile.
    pub(super) fn view<'a>(
        &'a self,
        mapped: &'a Mapped,
        batch: &Range<usize>,
        k: usize,
    ) -> View<'a> {
        let t = batch.start / self.tile + k;
        let Some(through) = &self.through else { return self.stored(batch, t) };
        let (_, stride) = self.extent(t);
        View::F32(self.piece(through.last(&mapped.values, stride), batch, t))
    }

    /// Lets tile `batch.start / T + k` go through the layers before, unless `mapped` is of it.
    pub(super) fn map(
        &self,
        arch: pulp::Arch,
        mapped: &mut Mapped,
        batch: &Range<usize>,
        k: usize,
    ) {
        let t = batch.start / self.tile + k;
        let Some(through) = self.through.as_ref().filter(|_| mapped.tile != Some(t)) else {
            return;
        };
        let (first, stride) = self.extent(t);
        let whole = first..first + stride;
        match self.stored(&whole, t) {
            View::F32(piece) => through.fill(arch, piece, &mut mapped.values),
            View::U8(piece) => through.fill(arch, piece, &mut mapped.values),
        }
        mapped.tile = Some(t);
    }

    /// The first row of tile t, and how many it has.
    fn extent(&self, t: usize) -> (usize, usize) {
        let first = t * self.tile;
        (first, self.tile.min(self.rows - first))
    }

    fn tile<'a, T>(&self, values: &'a [T], t: usize) -> &'a [T] {
        let ((first, stride), cols) = (self.extent(t), self.source());
        &values[self.skip..][first * cols..(first + stride) * cols]
    }

    /// The stored rows of tile t that lie in the batch.
    fn stored(&self, batch: &Range<usize>, t: usize) -> View<'_> {
        match &self.values {
            Values::F32(values) => View::F32(self.piece(self.tile(values, t), batch, t)),
            Values::U8(values) => View::U8(self.piece(self.tile(values, t), batch, t)),
        }
    }

    /// The rows of tile t that lie in the batch, where `tile` is all of it.
    fn piece<'a, T: Element>(&self, tile: &'a [T], batch: &Range<usize>, t: usize) -> Piece<'a, T> {
        let (first, stride) = self.extent(t);
        let (lo, hi) = (batch.start.max(first), batch.end.min(first + stride));
        Piece { tile, stride, lo: lo - first, hi: hi - first, at: lo - batch.start }
    }
}

/// Where in the batch its piece `k` begins, in tiles of `tile` rows.
pub(super) fn start(tile: usize, batch: &Range<usize>, k: usize) -> usize {
    ((batch.start / tile + k) * tile).clamp(batch.start, batch.end) - batch.start
}

/// Turns each run of `tile` rows from row-major to column-major, then moves all to where a line of
/// the cache begins, if there is room behind them; how far.
fn lay_out<T: Element>(values: &mut Vec<T>, cols: usize, tile: usize) -> usize {
    let mut buffer = Vec::with_capacity(tile * cols);
    values.chunks_mut(tile * cols).for_each(|chunk| transpose(chunk, cols, &mut buffer));
    let skip = values.as_ptr().align_offset(LINE);
    if skip > values.capacity() - values.len() {
        return 0;
    }
    values.splice(..0, std::iter::repeat_n(T::default(), skip));
    skip
}

fn restore<T: Element>(values: &mut Vec<T>, skip: usize, cols: usize, tile: usize) {
    values.drain(..skip);
    let mut buffer = Vec::with_capacity(tile * cols);
    values
        .chunks_mut(tile * cols)
        .for_each(|chunk| transpose(chunk, chunk.len() / cols, &mut buffer));
}

/// Transposes a matrix of `cols` columns.
fn transpose<T: Element>(values: &mut [T], cols: usize, buffer: &mut Vec<T>) {
    buffer.clear();
    buffer.extend_from_slice(values);
    let rows = values.len() / cols;
    for (j, column) in values.chunks_mut(rows).enumerate() {
        for (value, row) in column.iter_mut().zip(buffer.chunks(cols)) {
            *value = row[j];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_found_in_its_tile() {
        let values: Vec<u8> = (0..7 * 3).collect();
        for tile in [1, 2, 3, 7, 10] {
            let data = Matrix { rows: 7, cols: 3, values: Values::U8(values.clone()) };
            let tiles = Tiles::new(data, tile, None);
            for batch in [0..7, 1..6, 3..4, 6..7] {
                let mut seen = 0;
                for k in 0..tiles.pieces(&batch) {
                    let none = Mapped::default();
                    let View::U8(piece) = tiles.view(&none, &batch, k) else {
                        panic!("bytes stay bytes")
                    };
                    assert_eq!(piece.at, seen);
                    for j in 0..3 {
                        let expected: Vec<u8> = (0..piece.len())
                            .map(|r| ((batch.start + seen + r) * 3 + j) as u8)
                            .collect();
                        assert_eq!(piece.column(j), expected);
                    }
                    seen += piece.len();
                }
                assert_eq!(seen, batch.len());
            }
        }
    }

    #[test]
    fn rows_come_back_from_their_tiles() {
        let data =
            Matrix { rows: 7, cols: 5, values: Values::F32((0..35).map(|e| e as f32).collect()) };
        for tile in [1, 3, 7, 100] {
            assert_eq!(Tiles::new(data.clone(), tile, None).into_matrix(), data, "{tile}");
        }
    }
}
