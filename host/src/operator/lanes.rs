//! Sixty-four rows at a time: one number of each, in whole lines of the cache.

use pulp::{Arch, Simd, WithSimd};
use tamis::base::bits::sign;

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

/// Rows that lie one behind the other.
pub(crate) const ALL_LANES: [usize; LANES] = {
    let (mut all, mut lane) = ([0; LANES], 0);
    while lane < LANES {
        all[lane] = lane;
        lane += 1;
    }
    all
};

/// The sum of the neurons from 0, one after the other, those whose bit is set taken away.
pub(crate) struct SumOfNeurons<'a> {
    pub(crate) signs: &'a [u32],
    pub(crate) neurons: &'a [Lanes],
    pub(crate) out: &'a mut Lanes,
}

impl WithSimd for SumOfNeurons<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let mut sums = Lanes::ZERO;
        for (i, a) in self.neurons.iter().enumerate() {
            let sign = sign(self.signs, i);
            sums.0.iter_mut().zip(&a.0).for_each(|(sum, a)| *sum += sign * a);
        }
        *self.out = sums;
    }
}

/// Sums of a dot product over the lanes.
const SUMS: usize = 16;

/// A loop over lanes, in registers of any width.
pub(crate) trait OverLanes: Sized {
    /// N registers of 64 lanes, of which M make up the sums of a dot product.
    fn run<S: Simd, const N: usize, const M: usize>(self, simd: S);

    /// On the widest registers of the machine.
    fn on(self, arch: Arch) {
        arch.dispatch(Dispatched(self));
    }
}

struct Dispatched<T>(T);

impl<T: OverLanes> WithSimd for Dispatched<T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match S::F32_LANES {
            16 => self.0.run::<S, 4, { SUMS / 16 }>(simd),
            8 => self.0.run::<S, 8, { SUMS / 8 }>(simd),
            4 => self.0.run::<S, 16, { SUMS / 4 }>(simd),
            _ => self.0.run::<S, LANES, SUMS>(simd),
        }
    }
}

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
