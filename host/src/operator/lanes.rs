//! Sixty-four rows at a time: one number of each, in whole lines of the cache.

use pulp::Simd;

/// Rows of a strip: eight 256-bit or four 512-bit registers of sums under way at once.
pub(crate) const LANES: usize = 64;

/// One number for each row of a strip, in whole lines of the cache.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Lanes(pub(crate) [f32; LANES]);

impl Lanes {
    pub(crate) const ZERO: Self = Self([0.0; LANES]);
    pub(crate) const ONE: Self = Self([1.0; LANES]);
}

// SAFETY: all zero bits are zeros.
unsafe impl bytemuck::Zeroable for Lanes {}
// SAFETY: 64 floats without padding, since 256 bytes are a multiple of the alignment.
unsafe impl bytemuck::Pod for Lanes {}

#[inline(always)]
pub(crate) fn registers<S: Simd, const N: usize>(lanes: &Lanes) -> &[S::f32s; N] {
    match S::as_simd_f32s(&lanes.0).0.first_chunk() {
        Some(registers) => registers,
        None => unreachable!("N registers hold 64 lanes"),
    }
}

#[inline(always)]
pub(crate) fn registers_mut<S: Simd, const N: usize>(lanes: &mut Lanes) -> &mut [S::f32s; N] {
    match S::as_mut_simd_f32s(&mut lanes.0).0.first_chunk_mut() {
        Some(registers) => registers,
        None => unreachable!("N registers hold 64 lanes"),
    }
}
