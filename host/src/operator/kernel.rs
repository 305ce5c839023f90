//! The inner loops of the blocked operator: one tile, one neuron, a few columns.
//!
//! Loops run over fixed-size chunks and are inlined into [`pulp::Arch::dispatch`], which picks the
//! widest instruction set. Sums over the columns of one neuron have the order of the reference
//! operator and no fused multiply-add, so activations, gates and outputs have its bits.

use tamis::network::weights::Block;

/// Lanes of a chunk: eight 256-bit or four 512-bit registers of additions under way at once.
const LANES: usize = 64;

/// Panels are padded to whole vectors, so that the matrix product need not pack them.
pub(super) const PAD: usize = 16;

pub(super) trait Element: Copy + Default + Send + Sync + 'static {
    fn widen(self) -> f32;

    /// The values themselves where they are floats.
    fn as_floats(_: &[Self]) -> Option<&[f32]> {
        None
    }
}

impl Element for f32 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }

    fn as_floats(values: &[Self]) -> Option<&[f32]> {
        Some(values)
    }
}

impl Element for u8 {
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from(self)
    }
}

/// Rows `lo..hi` of a tile whose `stride` rows lie column by column.
#[derive(Clone, Copy)]
pub(super) struct Piece<'a, T> {
    pub(super) tile: &'a [T],
    pub(super) stride: usize,
    pub(super) lo: usize,
    pub(super) hi: usize,
    /// Position of the first row in the batch.
    pub(super) at: usize,
}

impl<'a, T: Element> Piece<'a, T> {
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.hi - self.lo
    }

    /// `len` of its rows from `first` on.
    #[inline(always)]
    pub(super) fn rows(&self, first: usize, len: usize) -> Self {
        let lo = self.lo + first;
        Self { lo, hi: lo + len, at: self.at + first, ..*self }
    }

    /// Column `j`, one value per row of the piece.
    #[inline(always)]
    pub(super) fn column(&self, j: usize) -> &'a [T] {
        &self.tile[j * self.stride + self.lo..j * self.stride + self.hi]
    }
}

/// `out = w · x` for every row of the piece.
#[inline(always)]
pub(super) fn activate<T: Element>(piece: Piece<'_, T>, w: Block<'_>, out: &mut [f32]) {
    let mut start = 0;
    let mut chunks = out[..piece.len()].chunks_exact_mut(LANES);
    for out in &mut chunks {
        let mut sums = [0.0_f32; LANES];
        for (j, value) in w.entries() {
            let column = &piece.tile[j * piece.stride + piece.lo + start..][..LANES];
            for (sum, x) in sums.iter_mut().zip(column) {
                *sum += value * x.widen();
            }
        }
        out.copy_from_slice(&sums);
        start += LANES;
    }
    for out in chunks.into_remainder() {
        let mut sum = 0.0;
        for (j, value) in w.entries() {
            sum += value * piece.tile[j * piece.stride + piece.lo + start].widen();
        }
        *out = sum;
        start += 1;
    }
}

/// `v · x_j` over the rows of the piece, over 64 lanes whatever the machine.
#[inline(always)]
pub(super) fn project<T: Element>(v: &[f32], column: &[T]) -> f32 {
    let mut sums = [0.0_f32; LANES];
    let (vs, v_rest) = v.as_chunks::<LANES>();
    let (xs, x_rest) = column.as_chunks::<LANES>();
    for (v, x) in vs.iter().zip(xs) {
        for l in 0..LANES {
            sums[l] += v[l] * x[l].widen();
        }
    }
    // A copy, since what is indexed by a number of the data lies in memory and not in registers.
    let mut lanes = sums;
    for ((lane, v), x) in lanes.iter_mut().zip(v_rest).zip(x_rest) {
        *lane += v * x.widen();
    }
    let mut width = LANES / 2;
    while width > 0 {
        for l in 0..width {
            lanes[l] += lanes[l + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// Packs `z > 0` into words of 32 rows each.
#[inline(always)]
pub(super) fn pack(z: &[f32], bits: &mut [u32]) {
    for (word, z) in bits.iter_mut().zip(z.chunks(32)) {
        let mut packed = 0;
        for (l, z) in z.iter().enumerate() {
            packed |= u32::from(*z > 0.0) << l;
        }
        *word = packed;
    }
}

/// `out = bits ∘ r`.
#[inline(always)]
pub(super) fn unpack<T: Element>(bits: &[u32], r: &[T], out: &mut [f32]) {
    for ((word, r), out) in bits.iter().zip(r.chunks(32)).zip(out.chunks_mut(32)) {
        for (l, (r, out)) in r.iter().zip(out).enumerate() {
            *out = if (word >> l) & 1 == 1 { r.widen() } else { 0.0 };
        }
    }
}

pub(crate) struct Size {
    pub(crate) rows: usize,
    pub(crate) depth: usize,
    pub(crate) cols: usize,
}

/// A matrix column by column, with unit row stride.
#[derive(Clone, Copy)]
pub(crate) struct Columns<V> {
    pub(crate) values: V,
    pub(crate) stride: usize,
}

impl<V: std::ops::Deref<Target = [f32]>> Columns<V> {
    /// Whether the values hold so many rows and columns.
    fn holds(&self, rows: usize, cols: usize) -> bool {
        (cols - 1) * self.stride + rows <= self.values.len()
    }
}

/// A matrix that lies column by column or row by row: how far its rows and its columns are apart.
#[derive(Clone, Copy)]
pub(crate) struct Factor<'a> {
    pub(crate) values: &'a [f32],
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl<'a> From<Columns<&'a [f32]>> for Factor<'a> {
    fn from(Columns { values, stride }: Columns<&'a [f32]>) -> Self {
        Self { values, rows: 1, columns: stride }
    }
}

/// `C += A B`, on the calling thread.
///
/// The factors are cache-sized and lie as the kernel reads them, so it need not pack.
#[inline]
pub(crate) fn add_product<'b>(
    Size { rows, depth, cols }: Size,
    Columns { values: c, stride }: Columns<&mut [f32]>,
    a: Columns<&[f32]>,
    b: impl Into<Factor<'b>>,
) {
    if rows == 0 || cols == 0 || depth == 0 {
        return;
    }
    let b = b.into();
    let holds = Columns { values: &*c, stride }.holds(rows, cols);
    assert!(rows <= stride && holds, "the product does not fit its buffer");
    assert!(a.holds(rows, depth), "the left factor is too short");
    let last = (depth - 1) * b.rows + (cols - 1) * b.columns;
    assert!(last < b.values.len(), "the right factor is too short");
    let plan = nano_gemm::Plan::new_colmajor_lhs_and_dst_f32(rows, cols, depth);
    // SAFETY: the plan is of these sizes; every matrix lies within its slice (asserted above), C and A
    // with unit row stride, as the plan expects; `c` is borrowed mutably and its columns do not
    // overlap.
    unsafe {
        plan.execute_unchecked(
            rows,
            cols,
            depth,
            c.as_mut_ptr(),
            1,
            stride as isize,
            a.values.as_ptr(),
            1,
            a.stride as isize,
            b.values.as_ptr(),
            b.rows as isize,
            b.columns as isize,
            1.0,
            1.0,
            false,
            false,
        );
    }
}
