//! Rows of a strip, transposed into lanes, and back.

use pulp::{Simd, WithSimd};

use super::lanes::{LANES, Lanes};
use crate::data::LINE;

/// Columns, and rows, of a block.
const BLOCK: usize = 8;

/// Eight columns of the rows of a strip.
type Columns = [Lanes; BLOCK];

/// A number of the data.
pub(crate) trait Element: Copy + 'static {
    fn widen(self) -> f32;

    /// `out_j[l] = scale · rows[l][start + j]` for eight columns.
    fn transpose(rows: &[&[Self]; LANES], start: usize, scale: f32, out: &mut Columns);
}

impl Element for f32 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }

    #[inline(always)]
    fn transpose(rows: &[&[f32]; LANES], start: usize, scale: f32, out: &mut Columns) {
        for (b, rows) in rows.as_chunks::<BLOCK>().0.iter().enumerate() {
            let mut block = [[0.0; BLOCK]; BLOCK];
            for (own, row) in block.iter_mut().zip(rows) {
                own.copy_from_slice(&row[start..start + BLOCK]);
            }
            block = transposed(block);
            for (out, column) in out.iter_mut().zip(block) {
                out.0[b * BLOCK..][..BLOCK].copy_from_slice(&column.map(|x| x * scale));
            }
        }
    }
}

type Block = [[f32; BLOCK]; BLOCK];

#[inline(always)]
fn transposed(block: Block) -> Block {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        return x86(simd, block);
    }
    std::array::from_fn(|j| std::array::from_fn(|i| block[i][j]))
}

/// Pairs, then pairs of pairs, then halves change places.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn x86(simd: pulp::x86::V3, block: Block) -> Block {
    use std::arch::x86_64::__m256;
    let r: [__m256; BLOCK] = pulp::cast(block);
    let avx = simd.avx;
    let mut pairs = r;
    for i in 0..4 {
        pairs[2 * i] = avx._mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        pairs[2 * i + 1] = avx._mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    let mut fours = r;
    for i in [0, 4] {
        for k in 0..2 {
            let (a, b) = (pairs[i + k], pairs[i + k + 2]);
            fours[i + 2 * k] = avx._mm256_shuffle_ps::<0x44>(a, b);
            fours[i + 2 * k + 1] = avx._mm256_shuffle_ps::<0xee>(a, b);
        }
    }
    let mut halves = r;
    for i in 0..4 {
        halves[i] = avx._mm256_permute2f128_ps::<0x20>(fours[i], fours[i + 4]);
        halves[i + 4] = avx._mm256_permute2f128_ps::<0x31>(fours[i], fours[i + 4]);
    }
    pulp::cast(halves)
}

impl Element for u8 {
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from(self)
    }

    /// Eight blocks of 8 x 8 bytes at once: rows are words, and bytes of words change places.
    #[inline(always)]
    fn transpose(rows: &[&[u8]; LANES], start: usize, scale: f32, out: &mut Columns) {
        // Word b of `words[i]` is row 8b + i, then column i of the rows 8b to 8b + 7.
        let mut words = [[0_u64; BLOCK]; BLOCK];
        for (l, row) in rows.iter().enumerate() {
            let mut bytes = [0; BLOCK];
            bytes.copy_from_slice(&row[start..start + BLOCK]);
            words[l % BLOCK][l / BLOCK] = u64::from_le_bytes(bytes);
        }
        for (width, mask) in
            [(4, 0x0000_0000_ffff_ffff), (2, 0x0000_ffff_0000_ffff), (1, 0x00ff_00ff_00ff_00ff)]
        {
            for i in (0..BLOCK).filter(|i| i & width == 0) {
                let (low, high) = words.split_at_mut(i + width);
                for (low, high) in low[i].iter_mut().zip(&mut high[0]) {
                    let change = (*low >> (8 * width) ^ *high) & mask;
                    *low ^= change << (8 * width);
                    *high ^= change;
                }
            }
        }
        for (out, words) in out.iter_mut().zip(&words) {
            for (out, word) in out.0.as_chunks_mut::<BLOCK>().0.iter_mut().zip(words) {
                *out = word.to_le_bytes().map(|byte| f32::from(byte) * scale);
            }
        }
    }
}

/// Numbers from one row of so many to the next in [`Rows`]: whole lines of the cache, an odd number of them, so that
/// rows do not compete for the same places in it.
pub(crate) const fn row_stride(columns: usize) -> usize {
    const NUMBERS: usize = LINE / size_of::<f32>();
    (columns.div_ceil(NUMBERS) | 1) * NUMBERS
}

/// `out[l · row_stride + j] = columns_j[l]`.
pub(crate) struct Rows<'a> {
    pub(crate) columns: &'a [Lanes],
    pub(crate) out: &'a mut [f32],
}

impl WithSimd for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { columns, out } = self;
        let stride = row_stride(columns.len());
        for (columns, start) in columns.chunks(BLOCK).zip((0..).step_by(BLOCK)) {
            for (b, rows) in out.chunks_mut(BLOCK * stride).enumerate().take(LANES / BLOCK) {
                let mut block = [[0.0; BLOCK]; BLOCK];
                for (own, column) in block.iter_mut().zip(columns) {
                    own.copy_from_slice(&column.0[b * BLOCK..][..BLOCK]);
                }
                for (row, own) in rows.chunks_mut(stride).zip(transposed(block)) {
                    row[start..start + BLOCK].copy_from_slice(&own);
                }
            }
        }
    }
}

/// Blocks of so many columns that hold one of those that are used.
pub(crate) fn used_blocks(columns: usize, used: impl Iterator<Item = usize>) -> Vec<bool> {
    let mut blocks = vec![false; columns.div_ceil(BLOCK)];
    used.for_each(|j| blocks[j / BLOCK] = true);
    blocks
}

/// Reads a number of nearly each line of the cache that these rows take, so that all misses are under way at once: rows
/// in a random order are read in 0.6 to 0.8 of the time then.
#[inline(always)]
pub(crate) fn touch<'a, T: Element>(rows: impl Iterator<Item = &'a [T]>) {
    let mut sum = 0.0;
    for row in rows {
        for x in row.iter().step_by(LINE / size_of::<T>()) {
            sum += x.widen();
        }
    }
    std::hint::black_box(sum);
}

/// `out_j[l] = scale · data[rows[l], j]` for the columns of used blocks. Lanes without a row have
/// the numbers of the first.
pub(crate) struct Gather<'a, T> {
    pub(crate) data: &'a [T],
    pub(crate) rows: &'a [usize],
    pub(crate) scale: f32,
    /// Blocks of columns, of [`used_blocks`].
    pub(crate) used: &'a [bool],
    pub(crate) out: &'a mut [Lanes],
}

impl<T: Element> WithSimd for Gather<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { data, rows, scale, used, out } = self;
        let columns = out.len();
        let row = |l: usize| &data[rows.get(l).unwrap_or(&rows[0]) * columns..][..columns];
        let rows: [&[T]; LANES] = std::array::from_fn(row);
        touch(rows.iter().copied());
        for (b, _) in used.iter().enumerate().filter(|(_, used)| **used) {
            let start = b * BLOCK;
            if let Some(out) = out[start..].first_chunk_mut() {
                T::transpose(&rows, start, scale, out);
            } else {
                for (j, out) in out.iter_mut().enumerate().skip(start) {
                    out.0
                        .iter_mut()
                        .zip(&rows)
                        .for_each(|(out, row)| *out = row[j].widen() * scale);
                }
            }
        }
    }
}
