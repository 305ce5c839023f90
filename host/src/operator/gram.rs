//! The Gram matrix of a support: products that need the data no more.
//!
//! Under held gates conjugate gradients multiply by `A_S^T A_S` dozens of times. The matrix takes s²
//! floats and costs as much as a few products, and is made once about as many were asked for.

use super::group::{Shared, fork};
use super::hidden_layers::Mapped;
use super::kernel::{Columns, Element, PAD, Piece, Size, add_product, unpack};
use super::piece::interleave;
use super::tiles::View;
use crate::base::vectorise;
use tamis::network::weights::runs;

/// Groups that the pieces are divided into, each with a matrix of its own.
const GROUPS: usize = 4;
/// Rows of one matrix product, a whole number of words of gates.
const DEPTH: usize = 128;
/// Columns of one matrix product: about their square is computed above the diagonal for nothing.
const COLUMNS: usize = 64;
/// So many more entries of a support make its matrix worth waiting for one more product: matrix
/// products have four times the rate of sparse ones, as measured.
const ENTRIES_A_PRODUCT: usize = 96;
/// Bytes that matrices and buffers may take where the data take less, …
const LEAST_BYTES: usize = 4 << 20;
/// … and at the most.
const MOST_BYTES: usize = 64 << 20;

/// The matrix, or how many products were asked for without it.
#[derive(Debug)]
pub(super) struct Gram {
    /// Entries of the largest support, 0 if no matrix is kept.
    most: usize,
    support: Vec<u32>,
    products: usize,
    made: bool,
    /// The first one's matrix is that of all in the end.
    sums: Vec<GroupSums>,
}

#[derive(Debug)]
struct GroupSums {
    /// Column by column, each padded.
    matrix: Vec<f32>,
    /// Gated columns on a strip of rows, column by column.
    columns: Vec<f32>,
    rows: Vec<f32>,
}

/// Bytes of the matrices and buffers for supports of at most `most` entries.
pub(super) const fn bytes(most: usize) -> usize {
    if most == 0 {
        return 0;
    }
    let padded = most.next_multiple_of(PAD);
    let part = padded.saturating_mul(padded.saturating_add(2 * DEPTH)).saturating_mul(4);
    part.saturating_add(size_of::<GroupSums>()).saturating_mul(GROUPS).saturating_add(4 * most)
}

/// Entries of the largest support whose matrix takes no more memory than the data do, of those from
/// the `least` to the `most` that there will be; 0 where there is none.
pub(super) fn usual(least: usize, most: usize, data_bytes: usize) -> usize {
    let room = data_bytes.clamp(LEAST_BYTES, MOST_BYTES);
    let pairs = room / (4 * GROUPS);
    let largest = most.min(pairs.isqrt()).max(least);
    (least..=largest).rev().find(|entries| bytes(*entries) <= room).unwrap_or(0)
}

impl Gram {
    pub(super) fn new(most: usize) -> Self {
        let (groups, padded) = (if most == 0 { 0 } else { GROUPS }, most.next_multiple_of(PAD));
        let zeros = |columns| vec![0.0; padded * columns];
        let group =
            |_| GroupSums { matrix: zeros(padded), columns: zeros(DEPTH), rows: zeros(DEPTH) };
        let sums = (0..groups).map(group).collect();
        Self { most, support: Vec::with_capacity(most), products: 0, made: false, sums }
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

    /// Makes the matrix of the support that was noted last, from the gates that are held.
    pub(super) fn make(&mut self, shared: &Shared) {
        let pieces = shared.tiles.pieces(&shared.batch);
        let groups = self.sums.len().min(pieces);
        let (support, s) = (&*self.support, self.support.len());
        let padded = s.next_multiple_of(PAD);
        // No matrix is kept where rows go through layers.
        let none = Mapped::default();
        fork(&mut self.sums[..groups], 0, &mut [(); 0], &|_| 0, &|g, group: &mut GroupSums, _| {
            group.matrix[..padded * padded].fill(0.0);
            let all = pieces * g / groups..pieces * (g + 1) / groups;
            for k in all.take_while(|_| !shared.stopped()) {
                match shared.tiles.view(&none, &shared.batch, k) {
                    View::F32(piece) => group.add(shared, piece, k, support),
                    View::U8(piece) => group.add(shared, piece, k, support),
                }
            }
        });
        if let Some((first, others)) = self.sums[..groups].split_first_mut() {
            for other in others {
                for (sum, x) in first.matrix[..padded * padded].iter_mut().zip(&other.matrix) {
                    *sum += x;
                }
            }
            for c in 0..s {
                for i in c + 1..s {
                    first.matrix[i * padded + c] = first.matrix[c * padded + i];
                }
            }
        }
        self.made = true;
    }

    /// `out = A_S^T A_S p`.
    pub(super) fn product(&self, arch: pulp::Arch, p: &[f32], out: &mut [f32]) {
        let padded = p.len().next_multiple_of(PAD);
        out.fill(0.0);
        let Some(GroupSums { matrix, .. }) = self.sums.first() else { return };
        vectorise(
            arch,
            #[inline(always)]
            || {
                for (p, column) in p.iter().zip(matrix.chunks(padded)) {
                    for (out, entry) in out.iter_mut().zip(column) {
                        *out += p * entry;
                    }
                }
            },
        );
    }
}

impl GroupSums {
    /// Adds the rows of a piece, whose gates are held.
    fn add<T: Element>(&mut self, shared: &Shared, piece: Piece<'_, T>, k: usize, support: &[u32]) {
        let (s, padded) = (support.len(), support.len().next_multiple_of(PAD));
        let held = shared.held.piece(k);
        let Self { matrix, columns, rows } = self;
        for t in (0..piece.len()).step_by(DEPTH) {
            let depth = DEPTH.min(piece.len() - t);
            vectorise(
                shared.arch,
                #[inline(always)]
                || {
                    let inputs = shared.tiles.cols;
                    for ((i, run), bits) in runs(inputs, support).zip(held.clone()) {
                        for e in run {
                            let x = &piece.column(support[e] as usize - i * inputs)[t..t + depth];
                            unpack(&bits[t / 32..], x, &mut columns[e * depth..][..depth]);
                        }
                    }
                    columns[s * depth..padded * depth].fill(0.0);
                    for (g, columns) in columns[..padded * depth].chunks(PAD * depth).enumerate() {
                        interleave(columns, depth, &mut rows[g * PAD..], padded);
                    }
                },
            );
            for c in (0..s).step_by(COLUMNS) {
                let size = Size { rows: padded - c, depth, cols: COLUMNS.min(s - c) };
                let sum = Columns { values: &mut matrix[c * padded + c..], stride: padded };
                let left = Columns { values: &rows[c..], stride: padded };
                let right = Columns { values: &columns[c * depth..], stride: depth };
                add_product(size, sum, left, right);
            }
        }
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
