//! The Gram matrix of a support: products that need the data no more.
//!
//! Under gates that stay conjugate gradients multiply by `A_S^T A_S` dozens of times. The matrix costs as
//! much as a few products, and is made once about as many were asked for. Of its s² floats those
//! above the diagonal are left out, but for the blocks on it.

use super::group::{Shared, fork};
use super::hidden_layers::Mapped;
use super::kernel::{Columns, Element, Factor, PAD, Piece, Size, add_product, project, unpack};
use super::piece::{interleave, pack_gate};
use super::tiles::View;
use crate::base::vectorise;
use std::iter;
use std::slice::Chunks;
use tamis::network::gates::Gates;
use tamis::network::weights::runs;

/// Rows of one matrix product: so few take little memory, and so many that the matrix is not read and
/// written too often.
const DEPTH: usize = 128;
/// Rows of a part of these, whose gates are applied side by side: whole words of gates.
const PART: usize = 64;
/// Columns of a block.
const COLUMNS: usize = 64;
/// So many more entries of a support make its matrix worth waiting for one more product: matrix
/// products have four times the rate of sparse ones, as measured.
const ENTRIES_A_PRODUCT: usize = 96;
/// Bytes that the matrix and its buffers may take: up to a thousand entries it saves half of the time of a search and
/// more, as measured.
const MOST_BYTES: usize = 5 << 19;

/// The matrix, or how many products were asked for without it.
#[derive(Debug)]
pub(super) struct Gram {
    /// Entries of the largest support, 0 if no matrix is kept.
    most: usize,
    support: Vec<u32>,
    products: usize,
    made: bool,
    blocks: Vec<Block>,
    /// [`DEPTH`] rows of the data with gates applied, one number for each entry of the support, padded.
    rows: Vec<f32>,
    parts: Vec<Part>,
}

/// [`COLUMNS`] columns of the matrix, each from the block's first row on.
#[derive(Debug)]
struct Block {
    values: Vec<f32>,
}

/// What applies gates to [`PART`] rows.
#[derive(Debug)]
struct Part {
    /// [`PAD`] columns of them.
    columns: [f32; PAD * PART],
    z: [f32; PART],
    bits: [u32; PART / 32],
}

/// Some rows of a piece, from `first` on, and their gates.
struct Rows<'a, T> {
    piece: Piece<'a, T>,
    gates: Gates<'a>,
    held: Option<Chunks<'a, u32>>,
    first: usize,
}

/// Floats of the blocks, for so many entries, padded.
fn floats(padded: usize) -> impl Iterator<Item = usize> {
    (0..padded).step_by(COLUMNS).map(move |first| (padded - first) * COLUMNS.min(padded - first))
}

/// Bytes of the matrix and its buffers for supports of at most `most` entries.
pub(super) fn bytes(most: usize) -> usize {
    if most == 0 {
        return 0;
    }
    let padded = most.next_multiple_of(PAD);
    let matrix: usize = floats(padded).map(|floats| 4 * floats + size_of::<Block>()).sum();
    matrix + 4 * DEPTH * padded + DEPTH / PART * size_of::<Part>() + 4 * most
}

/// Entries of the largest support whose matrix takes a few megabytes, of those from the `least` to the
/// `most` that there will be; 0 where there is none.
pub(super) fn usual([least, most]: [usize; 2]) -> usize {
    // Of a matrix alone there would be so many.
    let largest = most.min((MOST_BYTES / 2).isqrt());
    (least..=largest).rev().find(|entries| bytes(*entries) <= MOST_BYTES).unwrap_or(0)
}

impl Gram {
    pub(super) fn new(most: usize) -> Self {
        let padded = most.next_multiple_of(PAD);
        let zeros = |floats| vec![0.0; floats];
        let part = || Part { columns: [0.0; PAD * PART], z: [0.0; PART], bits: [0; PART / 32] };
        let parts = if most == 0 { 0 } else { DEPTH / PART };
        Self {
            most,
            support: Vec::with_capacity(most),
            products: 0,
            made: false,
            blocks: floats(padded).map(|floats| Block { values: zeros(floats) }).collect(),
            rows: zeros(DEPTH * padded),
            parts: iter::repeat_with(part).take(parts).collect(),
        }
    }

    /// The gates or rows are others from now on.
    pub(super) fn forget(&mut self) {
        (self.products, self.made) = (0, false);
    }

    /// Notes a product on a support; whether the matrix of this support is to be made now.
    pub(super) fn wanted(&mut self, support: &[u32]) -> bool {
        if support.is_empty() || support.len() > self.most {
            return false;
        }
        if self.products == 0 || self.support != support {
            self.forget();
            self.support.clear();
            self.support.extend_from_slice(support);
        }
        self.products += 1;
        !self.made && self.products * ENTRIES_A_PRODUCT > support.len()
    }

    pub(super) fn is_of(&self, support: &[u32]) -> bool {
        self.made && self.support == support
    }

    /// Makes the matrix of the support that was noted last, under the gates that are marked.
    pub(super) fn make(&mut self, shared: &Shared, gates: Gates<'_>) {
        let padded = self.support.len().next_multiple_of(PAD);
        for (block, floats) in self.blocks.iter_mut().zip(floats(padded)) {
            block.values[..floats].fill(0.0);
        }
        // No matrix is kept where rows go through layers.
        let none = Mapped::default();
        let pieces = 0..shared.tiles.pieces(&shared.batch);
        for k in pieces.take_while(|_| !shared.stopped()) {
            match shared.tiles.view(&none, &shared.batch, k) {
                View::F32(piece) => self.add(shared, piece, gates, k),
                View::U8(piece) => self.add(shared, piece, gates, k),
            }
        }
        self.made = true;
    }

    /// Adds the rows of piece `k`.
    fn add<T: Element>(
        &mut self,
        shared: &Shared,
        piece: Piece<'_, T>,
        gates: Gates<'_>,
        k: usize,
    ) {
        let Self { support, blocks, rows, parts, .. } = self;
        let padded = support.len().next_multiple_of(PAD);
        let (count, len) = (padded.div_ceil(COLUMNS), piece.len());
        for first in (0..len).step_by(DEPTH) {
            let depth = DEPTH.min(len - first);
            let rows = &mut rows[..depth * padded];
            let start = |part: usize| (PART * part).min(depth) * padded;
            let parts = &mut parts[..depth.div_ceil(PART)];
            fork(parts, 0, &mut *rows, &start, &|at, part: &mut Part, rows| {
                let held = shared.held.has_bits().then(|| shared.held.piece(k));
                let first = first + PART * at;
                let of = Rows { piece: piece.rows(first, rows.len() / padded), gates, held, first };
                part.gate(shared, of, support, rows);
            });
            let rows = &*rows;
            fork(&mut blocks[..count], 0, (), &|_| 0, &|at, block: &mut Block, ()| {
                let (first, stride) = (at * COLUMNS, padded - at * COLUMNS);
                let size = Size { rows: stride, depth, cols: COLUMNS.min(stride) };
                let sum = Columns { values: &mut *block.values, stride };
                let left = Columns { values: &rows[first..], stride: padded };
                let right = Factor { values: &rows[first..], rows: padded, columns: 1 };
                add_product(size, sum, left, right);
            });
        }
    }

    /// `out = A_S^T A_S p`.
    pub(super) fn product(&self, arch: pulp::Arch, p: &[f32], out: &mut [f32]) {
        let (s, padded) = (p.len(), p.len().next_multiple_of(PAD));
        out.fill(0.0);
        vectorise(
            arch,
            #[inline(always)]
            || {
                for (first, block) in (0..s).step_by(COLUMNS).zip(&self.blocks) {
                    let width = COLUMNS.min(s - first);
                    let columns = block.values.chunks(padded - first).take(width);
                    for (c, column) in (first..).zip(columns) {
                        let column = &column[..s - first];
                        for (out, entry) in out[first..].iter_mut().zip(column) {
                            *out += p[c] * entry;
                        }
                        // What is left out stands here as a column.
                        out[c] += project(&p[first + width..], &column[width..]);
                    }
                }
            },
        );
    }
}

impl Part {
    /// Writes rows with their gates applied to `out`, padded.
    fn gate<T: Element>(
        &mut self,
        shared: &Shared,
        Rows { piece, gates, mut held, first }: Rows<'_, T>,
        support: &[u32],
        out: &mut [f32],
    ) {
        let (s, padded, len) = (support.len(), support.len().next_multiple_of(PAD), piece.len());
        let Self { columns, z, bits } = self;
        let (columns, bits) = (&mut columns[..PAD * len], &mut bits[..len.div_ceil(32)]);
        vectorise(
            shared.arch,
            #[inline(always)]
            || {
                let (inputs, mut cursor) = (shared.tiles.cols, gates.cursor());
                for (i, run) in runs(inputs, support) {
                    match held.as_mut().and_then(Chunks::next) {
                        Some(held) => bits.copy_from_slice(&held[first / 32..][..bits.len()]),
                        None => pack_gate(piece, cursor.at(i), z, bits),
                    }
                    for e in run {
                        let x = piece.column(support[e] as usize - i * inputs);
                        unpack(bits, x, &mut columns[e % PAD * len..][..len]);
                        if e + 1 == s {
                            columns[(e % PAD + 1) * len..].fill(0.0);
                        }
                        if e % PAD == PAD - 1 || e + 1 == s {
                            let columns = Columns { values: &columns[..], stride: len };
                            interleave(columns, len, &mut out[e / PAD * PAD..], padded);
                        }
                    }
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::data::{Matrix, Values, planted};
    use crate::operator::{Blocked, Layout, Stop};
    use tamis::base::dims::Dims;
    use tamis::network::gates::{Gates, Signs};
    use tamis::operator::sensing::Sensing;

    /// 300 nonzeros: three products without a matrix, which the fourth one makes.
    const DIMS: Dims = Dims::new(700, 60, 8, 300);

    #[test]
    fn gram_is_built_on_repeated_products_then_invalidated() {
        let planted = planted::network(DIMS, Signs::Positive, 0).unwrap();
        let w = planted.weights().unwrap();
        let gates = Gates::of(w, Signs::Positive, Default::default(), 0, 1);
        let layout =
            Layout { tile: 128, gram: usize::MAX, ..Layout::new(DIMS.hidden, DIMS.inputs) };
        let mut plain =
            Blocked::new(planted.data.clone(), 8, 300, Layout { gram: 0, ..layout }).unwrap();
        let mut kept = Blocked::new(planted.data.clone(), 8, 300, layout).unwrap();
        let products =
            |plain: &mut Blocked, kept: &mut Blocked, gates: [Gates<'_>; 2], made: [bool; 5]| {
                for made in made {
                    let (mut expected, mut got) = ([0.0; 300], [f32::NAN; 300]);
                    plain.normal_at(gates[0], w, &mut expected, &mut []).unwrap();
                    kept.normal_at(gates[1], w, &mut got, &mut []).unwrap();
                    assert_eq!((kept.gram.made, plain.gram.made), (made, false));
                    let scale = expected.iter().fold(0.0_f32, |most, e| most.max(e.abs()));
                    for (expected, got) in expected.iter().zip(got) {
                        assert!((expected - got).abs() < 1e-5 * scale, "{expected} {got}");
                    }
                }
            };
        let fourth = [false, false, false, true, true];
        for rows in [0..700, 100..650] {
            let held = [&mut plain, &mut kept].map(|operator| {
                operator.select(rows.clone()).unwrap();
                operator.hold(gates, w.index()).unwrap()
            });
            products(&mut plain, &mut kept, held, fourth);
            let again = [held[0], kept.hold(gates, w.index()).unwrap()];
            products(&mut plain, &mut kept, again, fourth);
            // Gates that nobody holds, or held no more, are computed without the matrix, which
            // stays that of the held ones.
            products(&mut plain, &mut kept, held, [true; 5]);
            products(&mut plain, &mut kept, [gates; 2], [true; 5]);
            kept.select(rows).unwrap();
            products(&mut plain, &mut kept, again, [false; 5]);
        }
    }

    #[test]
    fn matrix_needs_no_held_gates_and_threads_change_no_bit() {
        let planted = planted::network(DIMS, Signs::Positive, 2).unwrap();
        let w = planted.weights().unwrap();
        let gates = Gates::of(w, Signs::Positive, Default::default(), 0, 1);
        let layout = Layout { gram: usize::MAX, ..Layout::new(DIMS.hidden, DIMS.inputs) };
        for rows in [0..700, 37..650] {
            let product = |hold, threads| {
                let layout = Layout { hold, ..layout };
                let mut operator = Blocked::new(planted.data.clone(), 8, 300, layout).unwrap();
                operator.select(rows.clone()).unwrap();
                let gates = operator.hold(gates, w.index()).unwrap();
                let mut out = [0.0; 300];
                crate::train::pool(threads).unwrap().install(|| {
                    for _ in 0..4 {
                        operator.normal_at(gates, w, &mut out, &mut []).unwrap();
                    }
                });
                assert!(operator.gram.made);
                out
            };
            let expected = product(true, 1);
            assert!(
                [(true, 3), (false, 1), (false, 3)]
                    .iter()
                    .all(|of| product(of.0, of.1) == expected)
            );
        }
    }

    #[test]
    fn interrupted_gram_matrix_is_discarded() {
        let planted = planted::network(DIMS, Signs::Positive, 1).unwrap();
        let w = planted.weights().unwrap();
        let gates = Gates::of(w, Signs::Positive, Default::default(), 0, 1);
        let layout = Layout { gram: usize::MAX, ..Layout::new(DIMS.hidden, DIMS.inputs) };
        let mut operator = Blocked::new(planted.data.clone(), 8, 300, layout).unwrap();
        let gates = operator.hold(gates, w.index()).unwrap();
        let mut out = [0.0; 300];
        for _ in 0..3 {
            operator.normal_at(gates, w, &mut out, &mut []).unwrap();
        }
        let stop = Stop::new();
        operator.heed(Some(stop.clone()));
        stop.ask();
        assert!(operator.normal_at(gates, w, &mut out, &mut []).is_err());
        assert!(!operator.gram.made);
        operator.normal_at(gates, w, &mut out, &mut []).unwrap();
        operator.normal_at(gates, w, &mut out, &mut []).unwrap();
    }

    #[test]
    fn single_weight_and_byte_supports_get_gram_matrix() {
        let values = Values::U8((0..90).map(|e| (e * 37 % 256) as u8).collect());
        let mut operator = Blocked::new(
            Matrix::new(30, 3, values).unwrap(),
            2,
            1,
            Layout { gram: 1, ..Layout::new(2, 3) },
        )
        .unwrap();
        let w = tamis::network::weights::Weights::new(3, 2, &[4], &[0.5]).unwrap();
        let gates = Gates::of(w, Signs::Positive, Default::default(), 0, 1);
        let gates = operator.hold(gates, w.index()).unwrap();
        let mut out = [0.0];
        operator.normal_at(gates, w, &mut out, &mut []).unwrap();
        assert!(operator.gram.made);
        let squares: u32 = (0..30).map(|k| ((k * 3 + 1) * 37 % 256_u32).pow(2)).sum();
        assert_eq!(out[0], 0.5 * squares as f32);
    }
}
