//! Adam's moments of the weights that there are, as 32-bit floats or as bfloat16.

use crate::base::budget::Workspace;
use crate::base::error::{self, Error, Result};
use crate::base::rng::{CounterRng, stream};
use crate::learn::optimiser::Decay;

/// How the two moments of a weight are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Moments {
    /// As 32-bit floats: 8 bytes a weight.
    #[default]
    F32,
    /// As bfloat16, the upper half of a 32-bit float: 4 bytes a weight. The mean is rounded to the
    /// nearest; the mean square by chance, since a step changes it by less than half of its last bit.
    Bf16,
}

impl Moments {
    /// Words of one weight.
    pub(super) const fn words(self) -> usize {
        match self {
            Self::F32 => 2,
            Self::Bf16 => 1,
        }
    }
}

/// Moments as a checkpoint has them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Held<'a> {
    /// Means of the gradients, and of their squares.
    F32 {
        /// Means of the gradients.
        mean: &'a [f32],
        /// Means of their squares.
        square: &'a [f32],
    },
    /// For each weight the bits of both: the mean's are the upper half.
    Bf16(&'a [u32]),
}

impl<'a> Held<'a> {
    /// The two vectors that a checkpoint has of them; there is no second one of bfloat16.
    pub(super) fn vectors(&self) -> [&'a [f32]; 2] {
        match *self {
            Self::F32 { mean, square } => [mean, square],
            Self::Bf16(pairs) => [bytemuck::cast_slice(pairs), &[]],
        }
    }

    /// What [`Self::vectors`] gave, of so many weights.
    pub(super) fn read(first: &'a [f32], second: &'a [f32], nnz: usize) -> Result<Self> {
        error::length("means of the checkpoint", first.len(), nnz)?;
        if second.is_empty() {
            let pairs: &[u32] = bytemuck::cast_slice(first);
            for (at, &pair) in pairs.iter().enumerate() {
                let Pair { mean, square } = Pair::unpack(pair);
                let is_finite = mean.is_finite() && square.is_finite();
                if !is_finite {
                    return Err(Error::NotFinite { what: "moments of the checkpoint", at });
                }
                none_negative(&[square])?;
            }
            return Ok(Self::Bf16(pairs));
        }
        error::length("squares of the checkpoint", second.len(), nnz)?;
        error::finite("means of the checkpoint", first)?;
        error::finite("squares of the checkpoint", second)?;
        none_negative(second)?;
        Ok(Self::F32 { mean: first, square: second })
    }
}

fn none_negative(squares: &[f32]) -> Result<()> {
    let negative = squares.iter().filter(|square| **square < 0.0).count();
    error::range("negative squares of the checkpoint", negative, 0, 0)
}

/// The moments of a run, in its memory.
#[derive(Debug)]
pub(super) enum Store<'m> {
    F32 { mean: &'m mut [f32], square: &'m mut [f32] },
    Bf16(&'m mut [u32]),
}

/// The moments of a weight.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Pair {
    pub mean: f32,
    pub square: f32,
}

impl Pair {
    const fn unpack(bits: u32) -> Self {
        Self { mean: f32::from_bits(bits & 0xffff_0000), square: f32::from_bits(bits << 16) }
    }

    /// The mean square is rounded up where its lower half is more than `chance`, of 16 bits.
    const fn pack(self, chance: u32) -> u32 {
        let (mean, square) = (self.mean.to_bits(), self.square.to_bits());
        let nearest = mean.wrapping_add(0x7fff + (mean >> 16 & 1));
        nearest & 0xffff_0000 | square.wrapping_add(chance & 0xffff) >> 16
    }
}

/// 16 bits by chance: number `at` of a step's key, in operations that vectorise.
const fn chance(key: u32, at: u32) -> u32 {
    let mut bits = (at ^ key).wrapping_mul(0x9e37_79b1);
    bits ^= bits >> 15;
    bits = bits.wrapping_mul(0x85eb_ca77);
    bits >> 16
}

impl<'m> Store<'m> {
    /// All 0, for so many weights.
    pub(super) fn new(kind: Moments, most: usize, space: &mut Workspace<'m>) -> Result<Self> {
        Ok(match kind {
            Moments::F32 => {
                let (mean, square) = (space.floats(most)?, space.floats(most)?);
                mean.fill(0.0);
                square.fill(0.0);
                Self::F32 { mean, square }
            }
            Moments::Bf16 => {
                let pairs = space.indices(most)?;
                pairs.fill(0);
                Self::Bf16(pairs)
            }
        })
    }

    /// Weights that there is room for.
    pub(super) fn room(&self) -> usize {
        match self {
            Self::F32 { mean, square } => mean.len().min(square.len()),
            Self::Bf16(pairs) => pairs.len(),
        }
    }

    /// The mean square of a weight.
    pub(super) fn square(&self, at: usize) -> f32 {
        match self {
            Self::F32 { square, .. } => square.get(at).copied().unwrap_or(0.0),
            Self::Bf16(pairs) => Pair::unpack(pairs.get(at).copied().unwrap_or(0)).square,
        }
    }

    /// Gives weight `at` moments.
    pub(super) fn set(&mut self, at: usize, pair: Pair) {
        match self {
            Self::F32 { mean, square } => {
                let own = mean.get_mut(at).zip(square.get_mut(at));
                own.into_iter().for_each(|own| (*own.0, *own.1) = (pair.mean, pair.square));
            }
            Self::Bf16(pairs) => {
                let own = pairs.get_mut(at);
                own.into_iter().for_each(|own| *own = pair.pack(0x7fff));
            }
        }
    }

    /// Gives weight `to` the moments of weight `from`; both have room.
    pub(super) fn copy(&mut self, from: usize, to: usize) {
        match self {
            Self::F32 { mean, square } => {
                mean.copy_within(from..=from, to);
                square.copy_within(from..=from, to);
            }
            Self::Bf16(pairs) => pairs.copy_within(from..=from, to),
        }
    }

    /// One step of `AdamW` of the weights from number `first` on; `factor` decays them.
    pub(super) fn step(&mut self, first: usize, weights: &mut [f32], step: &Step<'_>) {
        let range = first..first + weights.len();
        let &Step { gradient, adam, scale, rate, factor, key } = step;
        let gradient = gradient.get(range.clone()).unwrap_or(&[]);
        let weights = weights.iter_mut().zip(gradient);
        match self {
            Self::F32 { mean, square } => {
                let mean = mean.get_mut(range.clone()).unwrap_or_default();
                let square = square.get_mut(range).unwrap_or_default();
                for (((w, g), mean), square) in weights.zip(mean).zip(square) {
                    *w *= factor;
                    adam.update(w, scale * g, mean, square, rate);
                }
            }
            Self::Bf16(pairs) => {
                let pairs = pairs.get_mut(range).unwrap_or_default();
                for (((w, g), pair), at) in weights.zip(pairs).zip(first as u32..) {
                    let Pair { mut mean, mut square } = Pair::unpack(*pair);
                    *w *= factor;
                    adam.update(w, scale * g, &mut mean, &mut square, rate);
                    *pair = Pair { mean, square }.pack(chance(key, at));
                }
            }
        }
    }

    /// Those of the first `nnz` weights.
    pub(super) fn held(&self, nnz: usize) -> Held<'_> {
        match self {
            Self::F32 { mean, square } => Held::F32 {
                mean: mean.get(..nnz).unwrap_or(&[]),
                square: square.get(..nnz).unwrap_or(&[]),
            },
            Self::Bf16(pairs) => Held::Bf16(pairs.get(..nnz).unwrap_or(&[])),
        }
    }

    /// Takes over those of a checkpoint, of so many weights.
    pub(super) fn resume(&mut self, held: &Held<'_>, nnz: usize) -> Result<()> {
        error::length("room for the checkpoint", self.room().min(nnz), nnz)?;
        match (self, held) {
            (Self::F32 { mean, square }, Held::F32 { mean: means, square: squares }) => {
                for (own, held) in [(mean, means), (square, squares)] {
                    error::length("moments of the checkpoint", held.len(), nnz)?;
                    own.get_mut(..nnz).unwrap_or_default().copy_from_slice(held);
                }
                Ok(())
            }
            (Self::Bf16(own), Held::Bf16(held)) => {
                error::length("moments of the checkpoint", held.len(), nnz)?;
                own.get_mut(..nnz).unwrap_or_default().copy_from_slice(held);
                Ok(())
            }
            // Of the other kind.
            _ => error::range("moments of the checkpoint as those of the run", 0, 1, 1),
        }
    }
}

/// A step of all weights.
pub(super) struct Step<'a> {
    pub gradient: &'a [f32],
    pub adam: &'a Decay,
    /// Of the gradient.
    pub scale: f32,
    pub rate: f32,
    /// Of weights, before the step.
    pub factor: f32,
    /// Of what is rounded by chance.
    pub key: u32,
}

/// The key of a step.
pub(super) const fn key(seed: u64, step: u32) -> u32 {
    CounterRng::new(seed, stream::ROUNDING).bits(step)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn rounding_by_chance_keeps_the_mean() {
        // A third of the way from one bfloat16 to the next.
        let (low, high) = (1.0_f32, f32::from_bits(0x3f81_0000));
        let square = low + (high - low) / 3.0;
        let (mut sum, n) = (0.0, 100_000);
        for at in 0..n {
            let pair = Pair { mean: 0.0, square }.pack(chance(key(3, 5), at));
            let got = Pair::unpack(pair).square;
            assert!(got == low || got == high);
            sum += f64::from(got);
        }
        let (mean, step) = (sum / f64::from(n), f64::from(high - low));
        // Four standard errors of a share of 1/3.
        let error = 4.0 * step * (2.0 / 9.0 / f64::from(n)).sqrt();
        assert!((mean - f64::from(square)).abs() < error, "{mean} {square}");
    }

    #[test]
    fn negative_squares_are_refused() {
        let of = |square: f32| [Pair { mean: 1.0, square }.pack(0)];
        let held = |square: f32| {
            let pairs = of(square);
            Held::read(bytemuck::cast_slice(&pairs), &[], 1).is_ok()
        };
        assert!(held(2.0) && held(0.0) && !held(-2.0));
        assert!(Held::read(&[1.0], &[2.0], 1).is_ok() && Held::read(&[1.0], &[-2.0], 1).is_err());
    }

    #[test]
    fn means_are_rounded_to_the_nearest_with_ties_to_even() {
        for (bits, rounded) in [
            (0x3f80_8000_u32, 0x3f80_0000_u32),
            (0x3f81_8000, 0x3f82_0000),
            (0x3f80_8001, 0x3f81_0000),
            (0xbf80_7fff, 0xbf80_0000),
            (0, 0),
        ] {
            let pair = Pair { mean: f32::from_bits(bits), square: 0.0 }.pack(0xffff);
            assert_eq!(pair, rounded, "{bits:x}");
        }
        // What has no more digits stays, by any chance.
        assert_eq!(Pair::unpack(Pair { mean: -2.5, square: 3.0 }.pack(0xffff)).square, 3.0);
    }
}
