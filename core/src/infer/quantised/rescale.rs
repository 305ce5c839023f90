//! Fixed-point factors: a 24-bit number and a shift in one word.

use crate::base::error::{finite, range, tri};
use crate::{Error, Result};

/// A factor `m / 2^s` with `m` from 2²³ to 2²⁴ - 1 in the low 24 bits and `s` from 26 to 56 in the
/// high 8: every `f32` from 2⁻³³ to below 1/4, exactly.
///
/// A sum times the factor is rounded to the nearest integer, halves up:
/// `floor(sum * m / 2^s + 1/2)`. What a sum loses by a factor of 1/4 is beyond what the weights, of
/// 8 bits each, hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rescale(u32);

impl Rescale {
    const ONE: u32 = 1 << 23;
    /// The least shift: 32 for the high word of the product, 1 for the half that is added to it,
    /// less 7 (see `number`).
    const LEAST: u32 = 26;
    const MOST: u32 = 56;

    /// The factor of a number that is one.
    ///
    /// # Errors
    /// [`Error::Range`] for a number that is negative, below 2⁻³³, or 1/4 and more;
    /// [`Error::NotFinite`] for NaN or an infinity.
    pub const fn near(factor: f32) -> Result<Self> {
        tri!(finite("factors", &[factor]));
        let bits = factor.to_bits();
        let shift = 150_u32.wrapping_sub(bits >> 23);
        tri!(range("shift of a factor", shift as usize, Self::LEAST as usize, Self::MOST as usize));
        Ok(Self(shift << 24 | Self::ONE | bits & (Self::ONE - 1)))
    }

    /// The word as it is stored.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The number that it is, exactly.
    ///
    /// ```
    /// use tamis::infer::quantised::Rescale;
    /// assert_eq!(Rescale::near(0.01)?.value(), 0.01);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub const fn value(self) -> f32 {
        f32::from_bits(150_u32.wrapping_sub(self.0 >> 24) << 23 | self.0 & (Self::ONE - 1))
    }

    /// The factor that a word stands for.
    ///
    /// # Errors
    /// [`Error::Range`] if it stands for none.
    pub const fn of(bits: u32) -> Result<Self> {
        if bits & Self::ONE != 0 && Self::LEAST <= bits >> 24 && bits >> 24 <= Self::MOST {
            return Ok(Self(bits));
        }
        let (min, max) =
            ((Self::LEAST << 24 | Self::ONE) as usize, (Self::MOST << 24 | 0xFF_FFFF) as usize);
        Err(Error::Range { what: "factor of a layer", min, max, got: bits as usize })
    }

    /// A word that was checked.
    #[inline(always)]
    pub(super) fn known(bits: u32) -> Self {
        Self(bits)
    }

    /// `sum` times the factor, cut to a byte: `ReLU` and a cut at 255.
    #[inline(always)]
    pub(crate) fn byte(self, sum: i32) -> u8 {
        self.fixed().byte(sum)
    }

    /// `sum` times the factor.
    #[inline(always)]
    pub(crate) fn number(self, sum: i32) -> i32 {
        self.fixed().number(sum)
    }

    /// What a loop over many sums has in registers.
    #[inline(always)]
    pub(super) fn fixed(self) -> Fixed {
        let shift = (self.0 >> 24).wrapping_sub(25);
        Fixed {
            m: (self.0 << 8 >> 1) as i32,
            half: 1_i32.wrapping_shl(shift.wrapping_sub(1)),
            shift,
        }
    }
}

/// A factor taken apart: 31 bits, the half that is added to the high word of the product, and what
/// that is shifted by.
#[derive(Clone, Copy)]
pub(super) struct Fixed {
    m: i32,
    half: i32,
    shift: u32,
}

impl Fixed {
    /// As [`Rescale::byte`].
    #[inline(always)]
    pub(super) fn byte(self, sum: i32) -> u8 {
        self.number(sum).clamp(0, 255) as u8
    }

    /// As [`Rescale::number`].
    #[inline(always)]
    fn number(self, sum: i32) -> i32 {
        // Of the product, below 2^62, the high word is enough. What is dropped with the low one
        // cannot change the floor.
        let high = (i64::from(sum).wrapping_mul(i64::from(self.m)) >> 32) as i32;
        high.wrapping_add(self.half).wrapping_shr(self.shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_exact_and_round_halves_up() {
        let eighth = Rescale::near(0.125).unwrap();
        assert_eq!([12, 20, -12, -20, 16].map(|sum| eighth.number(sum)), [2, 3, -1, -2, 2]);
        assert_eq!(
            [12, 20, -12, 2036, 2043, 2044, i32::MAX, i32::MIN].map(|sum| eighth.byte(sum)),
            [2, 3, 0, 255, 255, 255, 255, 0]
        );
        for factor in [
            f32::from_bits(0.25_f32.to_bits() - 1),
            1.0 / 12.0,
            0.001_234_5,
            1e-7,
            2.0_f32.powi(-33),
        ] {
            let fixed = Rescale::near(factor).unwrap();
            for sum in [0, 1, 2, 6, 18, 100, 765, 12_345_678, -7, i32::MIN, i32::MIN + 1, i32::MAX]
            {
                let exact = i128::from(sum) * i128::from(fixed.0 & 0xFF_FFFF);
                let shift = fixed.0 >> 24;
                assert_eq!(
                    i128::from(fixed.number(sum)),
                    (exact + (1 << (shift - 1))) >> shift,
                    "{sum} {factor}"
                );
                let float = f64::from(sum) * f64::from(factor);
                assert!((f64::from(fixed.number(sum)) - float).abs() <= 0.5, "{sum} {factor}");
            }
        }
    }

    #[test]
    fn numbers_that_are_no_factors_are_refused() {
        for wrong in [0.0, -0.1, 1e-12, 0.25, 1e30, f32::NAN, f32::INFINITY, f32::from_bits(1)] {
            assert!(Rescale::near(wrong).is_err(), "{wrong}");
        }
        for wrong in [0, 1 << 23, 57 << 24 | 1 << 23, 25 << 24 | 1 << 23, 30 << 24] {
            assert!(Rescale::of(wrong).is_err(), "{wrong:#x}");
        }
        let fifth = Rescale::near(0.2).unwrap();
        assert_eq!(Rescale::of(fifth.bits()), Ok(fifth));
    }
}
