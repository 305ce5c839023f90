//! Rows of a strip, transposed into lanes.

use super::kernel::{LANES, Lanes};

/// Columns and rows of a block that is transposed in registers.
const BLOCK: usize = 8;

/// A number of the data.
pub(super) trait Element: Copy {
    fn widen(self) -> f32;
}

impl Element for f32 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }
}

impl Element for u8 {
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from(self)
    }
}

/// Blocks of columns that hold one that is used.
pub(super) fn used_blocks(columns: usize, is_used: impl Fn(usize) -> bool) -> Vec<bool> {
    let block = |start: usize| (start..columns.min(start + BLOCK)).any(&is_used);
    (0..columns).step_by(BLOCK).map(block).collect()
}

/// `out_j[l] = scale · data[rows[l], j]` for the columns of used blocks. Lanes without a row have
/// the numbers of the first.
#[inline(always)]
pub(super) fn gather<T: Element>(
    data: &[T],
    rows: &[usize],
    scale: f32,
    used: &[bool],
    out: &mut [Lanes],
) {
    let columns = out.len();
    let row = |l: usize| &data[rows.get(l).unwrap_or(&rows[0]) * columns..][..columns];
    // A line of the cache of each column at a time.
    for l in (0..LANES).step_by(2 * BLOCK) {
        let rows: [&[T]; 2 * BLOCK] = std::array::from_fn(|i| row(l + i));
        for (b, _) in used.iter().enumerate().filter(|(_, used)| **used) {
            let j = b * BLOCK;
            if let Some(out) = out[j..].first_chunk_mut::<BLOCK>() {
                for half in [0, BLOCK] {
                    let block = std::array::from_fn(|i| {
                        let row = &rows[half + i][j..j + BLOCK];
                        std::array::from_fn(|k| row[k].widen() * scale)
                    });
                    for (out, column) in out.iter_mut().zip(transposed(block)) {
                        out.0[l + half..][..BLOCK].copy_from_slice(&column);
                    }
                }
            } else {
                for (j, out) in out.iter_mut().enumerate().skip(j) {
                    for (i, row) in rows.iter().enumerate() {
                        out.0[l + i] = row[j].widen() * scale;
                    }
                }
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
    let (avx, mut pairs, mut fours, mut out) = (simd.avx, r, r, r);
    for i in (0..BLOCK).step_by(2) {
        pairs[i] = avx._mm256_unpacklo_ps(r[i], r[i + 1]);
        pairs[i + 1] = avx._mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for i in (0..BLOCK).step_by(2) {
        let at = i / 4 * 4 + i % 4 / 2;
        let (a, b) = (pairs[at], pairs[at + 2]);
        fours[i] = avx._mm256_shuffle_ps::<0x44>(a, b);
        fours[i + 1] = avx._mm256_shuffle_ps::<0xee>(a, b);
    }
    for i in 0..4 {
        let (a, b) = (fours[i], fours[i + 4]);
        out[i] = avx._mm256_permute2f128_ps::<0x20>(a, b);
        out[i + 4] = avx._mm256_permute2f128_ps::<0x31>(a, b);
    }
    pulp::cast(out)
}
