//! Randomness as a function of (seed, stream): Xoshiro128++ keyed by both, so that any block can be
//! generated again. [`stream`] names the streams that the crate itself uses, so that two places
//! given the same seed never draw the same numbers.

use crate::base::math;
use core::ops::Range;
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro128PlusPlus;

/// The streams this crate draws from. A stream is `NAME + index`; names are 2^32 apart.
pub mod stream {
    /// Gate generators, one per hidden neuron.
    pub const GATE: u64 = 1 << 32;
    /// Order of the rows, one per training run.
    pub const ROWS: u64 = 2 << 32;
    /// Order of the minibatches, one per epoch.
    pub const BATCH: u64 = 3 << 32;
    /// Blocks of the Gaussian sensing operator.
    pub const SENSING: u64 = 4 << 32;
    /// Rows of generated data.
    pub const DATA: u64 = 6 << 32;
    /// Random supports on which extreme eigenvalues are estimated.
    pub const SUPPORT: u64 = 5 << 32;
    /// Seeds of further starts of a run, see [`super::seed_of`].
    pub const TRIAL: u64 = 7 << 32;
    /// Seeds of the gates drawn anew at a refresh, see [`super::seed_of`].
    pub const ROUND: u64 = 8 << 32;
    /// Order in which growth goes through the batches, one per change of the support.
    pub const ANNEAL: u64 = 9 << 32;
    /// Seeds of the blocks of the Gaussian sensing operator, see [`super::seed_of`].
    pub const BLOCK: u64 = 10 << 32;
    /// Seeds of the passes of moves of a search, see [`super::seed_of`].
    pub const PASS: u64 = 16 << 32;
    /// Seeds of the random gates that a new neuron starts from, see [`super::seed_of`].
    pub const NEURON: u64 = 17 << 32;
    /// First directions of splits, one per neuron.
    pub const SPLIT: u64 = 18 << 32;
    /// First output weights of the neurons that a search for several outputs starts from, one per
    /// neuron.
    pub const OUTPUTS: u64 = 19 << 32;
    /// The vector that columns are projected on to find those that repeat others.
    pub const PROJECTION: u64 = 28 << 32;
    /// Hashes of a count sketch.
    pub const SKETCH: u64 = 20 << 32;
    /// Values that stand for empty blocks in a gradient of [`crate::learn::train::SeveralOutputs`],
    /// one per neuron and side.
    pub const STANDIN: u64 = 21 << 32;
    /// Initial weights of a network that is never stored, one stream per layer.
    pub const WEIGHTS: u64 = 22 << 32;
    /// Random inputs of `SynFlow`, one stream per round.
    pub const FLOW: u64 = 23 << 32;
    /// Draws of a mask: random masks, and sampling by scores.
    pub const MASK: u64 = 24 << 32;
    /// Moves of pictures, one stream per row that is read.
    pub const SHIFT: u64 = 25 << 32;
    /// The first phase of a search: rows of a step, weights of a neuron.
    pub const FIRST: u64 = 26 << 32;
    /// Rounding of moments by chance, one number per step.
    pub const ROUNDING: u64 = 27 << 32;
    /// Neurons that a restart empties, one per restart.
    pub const RESTART: u64 = 110 << 32;
    /// First stream free for callers.
    pub const USER: u64 = 1 << 40;
}

/// A generator of uniform and normal numbers, a pure function of its seed and stream.
///
/// ```
/// use tamis::base::rng::Rng;
/// let draw = |stream| Rng::new(7, stream).normal();
/// assert_eq!(draw(0).to_bits(), draw(0).to_bits());
/// assert_ne!(draw(0).to_bits(), draw(1).to_bits());
/// ```
#[derive(Debug, Clone)]
pub struct Rng {
    bits: Xoshiro128PlusPlus,
    /// The second normal number of a pair, not handed out yet.
    spare: Option<f32>,
}

impl Rng {
    /// The generator of `stream` under `seed`.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        Self { bits: Xoshiro128PlusPlus::seed_from_u64(key(seed, stream)), spare: None }
    }

    /// 32 random bits.
    pub fn bits(&mut self) -> u32 {
        self.bits.next_u32()
    }

    /// Uniform in [0, 1), on a grid of 2^-24.
    pub fn uniform(&mut self) -> f32 {
        (self.bits() >> 8) as f32 * (1.0 / 16_777_216.0)
    }

    /// Uniform integer in `0..bound` without bias (Lemire's method); 0 when `bound` is 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        if bound == 0 {
            return 0;
        }
        let reject = bound.wrapping_neg() % bound;
        loop {
            let wide = u64::from(self.bits()) * u64::from(bound);
            if wide as u32 >= reject {
                return (wide >> 32) as u32;
            }
        }
    }

    /// Standard normal (Box and Muller; two numbers from two uniforms).
    pub fn normal(&mut self) -> f32 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = math::sqrt(-2.0 * math::ln(1.0 - self.uniform()));
        let (sin, cos) = math::sin_cos(core::f32::consts::TAU * self.uniform());
        self.spare = Some(radius * sin);
        radius * cos
    }

    /// Fills a slice with standard normal numbers.
    pub fn fill_normal(&mut self, out: &mut [f32]) {
        out.fill_with(|| self.normal());
    }
}

/// A counter-based generator: number `index` of (seed, stream), in any order and as often as
/// wanted, without a state.
///
/// ```
/// use tamis::base::rng::CounterRng;
/// let rng = CounterRng::new(7, 0);
/// assert_eq!(rng.normal(5).to_bits(), CounterRng::new(7, 0).normal(5).to_bits());
/// assert_ne!(rng.bits(5), rng.bits(6));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterRng {
    key: u64,
}

impl CounterRng {
    /// The generator of `stream` under `seed`.
    #[must_use]
    pub const fn new(seed: u64, stream: u64) -> Self {
        Self { key: key(seed, stream) }
    }

    /// 32 random bits.
    #[inline]
    #[must_use]
    pub const fn bits(&self, index: u32) -> u32 {
        let step = (index as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mix(self.key.wrapping_add(step)) >> 32) as u32
    }

    /// Uniform in (0, 1], on a grid of 2^-24.
    #[inline]
    #[must_use]
    pub fn uniform(&self, index: u32) -> f32 {
        ((self.bits(index) >> 8) + 1) as f32 * (1.0 / 16_777_216.0)
    }

    /// Standard normal: the quantile of [`Self::bits`], at most 6.4 in magnitude.
    #[inline]
    #[must_use]
    pub fn normal(&self, index: u32) -> f32 {
        let mut number = [0.0];
        self.fill_normal(index, &mut number);
        number[0]
    }

    /// [`Self::normal`] of the indices from `index` on.
    #[inline]
    pub fn fill_normal(&self, index: u32, out: &mut [f32]) {
        let mut first = index;
        for out in out.chunks_mut(NORMALS) {
            let mut bits = [0; NORMALS];
            for bits in bits.iter_mut().take(out.len()) {
                *bits = self.bits(first) as i32;
                first = first.wrapping_add(1);
            }
            math::normal_quantiles(&bits, out);
        }
    }
}

/// Normal numbers that are computed at a time.
const NORMALS: usize = 32;

/// The seed of member `k` of a family, such as trial k of a run: `seed` itself for member 0, so
/// that what has one member needs no other seed.
///
/// Members of one family differ; `family` is one of [`stream`], or from [`stream::USER`] on.
///
/// ```
/// use tamis::base::rng::{seed_of, stream};
/// assert_eq!(seed_of(7, stream::TRIAL, 0), 7);
/// assert_ne!(seed_of(7, stream::TRIAL, 1), seed_of(7, stream::ROUND, 1));
/// ```
#[must_use]
pub const fn seed_of(seed: u64, family: u64, k: u32) -> u64 {
    if k == 0 { seed } else { key(seed, family.wrapping_add(k as u64)) }
}

/// Two rounds of a 64-bit finaliser: for one seed a bijection of the stream, and the other way round.
const fn key(seed: u64, stream: u64) -> u64 {
    mix(mix(seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_add(stream))
}

/// 64-bit finaliser of `SplitMix64`.
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A random order of `0..len` in constant memory: a keyed bijection, evaluated where it is needed.
///
/// A four-round Feistel network on the smallest even number of bits that holds `len`, walked until
/// it lands inside; fewer than four evaluations on average.
///
/// ```
/// let order = tamis::base::rng::Permutation::new(0, 0, 1000);
/// let mut seen = [false; 1000];
/// for i in 0..1000 { seen[order.get(i)] = true; }
/// assert!(seen.iter().all(|&s| s));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permutation {
    keys: [u32; 4],
    half: u32,
    len: usize,
}

impl Permutation {
    /// The order of `0..len` that belongs to (seed, stream). `len` counts up to 2^32.
    #[must_use]
    pub fn new(seed: u64, stream: u64, len: usize) -> Self {
        let mut rng = Rng::new(seed, stream);
        let bits = usize::BITS - len.saturating_sub(1).leading_zeros();
        Self {
            keys: core::array::from_fn(|_| rng.bits()),
            half: bits.div_ceil(2).clamp(1, 16),
            len,
        }
    }

    /// Where position `i` goes; `i` itself if it lies outside.
    pub fn get(&self, i: usize) -> usize {
        if i >= self.len {
            return i;
        }
        let mut at = i as u32;
        loop {
            at = self.feistel(at);
            // The walk follows a cycle of the bijection that holds `i`, which is inside: it ends.
            if (at as usize) < self.len {
                return at as usize;
            }
        }
    }

    fn feistel(&self, x: u32) -> u32 {
        let mask = (1u32 << self.half) - 1;
        let (mut left, mut right) = ((x >> self.half) & mask, x & mask);
        for key in self.keys {
            let mut f = right.wrapping_add(key).wrapping_mul(0x9e37_79b1);
            f ^= f >> 15;
            f = f.wrapping_mul(0x85eb_ca77);
            f ^= f >> 13;
            (left, right) = (right, left ^ (f & mask));
        }
        (left << self.half) | right
    }
}

/// The batches of an epoch: [`runs`] in an order that seed and epoch fix.
pub(crate) fn batches(
    seed: u64,
    epoch: u32,
    rows: usize,
    batch: usize,
) -> impl Iterator<Item = Range<usize>> {
    runs(seed, stream::BATCH + u64::from(epoch), rows, batch)
}

/// Runs of at most `batch` of `rows` rows, in the order that belongs to (seed, stream).
pub(crate) fn runs(
    seed: u64,
    stream: u64,
    rows: usize,
    batch: usize,
) -> impl Iterator<Item = Range<usize>> {
    let count = rows.div_ceil(batch.max(1));
    let order = Permutation::new(seed, stream, count);
    (0..count).map(move |position| {
        let start = order.get(position) * batch;
        start..(start + batch).min(rows)
    })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn normal_draws_have_standard_normal_moments() {
        let mut rng = Rng::new(1, 2);
        let draws: Vec<f64> = (0..200_000).map(|_| f64::from(rng.normal())).collect();
        let moment = |p: i32| draws.iter().map(|x| x.powi(p)).sum::<f64>() / draws.len() as f64;
        // Standard errors: 0.0022, 0.0032, 0.0087, 0.022.
        for (p, expected, error) in
            [(1, 0.0, 0.0022), (2, 1.0, 0.0032), (3, 0.0, 0.0087), (4, 3.0, 0.022)]
        {
            assert!((moment(p) - expected).abs() < 4.0 * error, "moment {p} is {}", moment(p));
        }
    }

    #[test]
    fn counter_draws_have_standard_normal_moments() {
        let rng = CounterRng::new(1, stream::WEIGHTS);
        let draws: Vec<f64> = (0..200_000).map(|k| f64::from(rng.normal(k))).collect();
        let moment = |p: i32| draws.iter().map(|x| x.powi(p)).sum::<f64>() / draws.len() as f64;
        for (p, expected, error) in
            [(1, 0.0, 0.0022), (2, 1.0, 0.0032), (3, 0.0, 0.0087), (4, 3.0, 0.022)]
        {
            assert!((moment(p) - expected).abs() < 4.0 * error, "moment {p} is {}", moment(p));
        }
        // Neighbours, and the same place under another seed, have nothing to do with each other.
        let other = CounterRng::new(2, stream::WEIGHTS);
        let dot = |f: &dyn Fn(u32) -> f32| -> f64 {
            (0..200_000).map(|k| f64::from(rng.normal(k) * f(k))).sum::<f64>() / 200_000.0
        };
        let apart = [dot(&|k| rng.normal(k + 1)), dot(&|k| other.normal(k))];
        assert!(apart.iter().all(|x| x.abs() < 4.0 * 0.0022), "{apart:?}");
    }

    #[test]
    fn below_is_uniform() {
        let mut rng = Rng::new(3, 0);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[rng.below(7) as usize] += 1;
        }
        assert!(counts.iter().all(|&c| (9_600..10_400).contains(&c)), "{counts:?}");
        assert_eq!(rng.below(0), 0);
    }

    /// With shifts and exclusive or, trial 1 of one run was trial 0 of the run whose seed differs
    /// in that bit.
    #[test]
    fn member_seeds_differ_across_seeds_families_and_members() {
        let bits = (0..64).map(|bit| 1_u64 << bit);
        let mut seeds: Vec<u64> =
            (0..100).chain(bits.clone()).chain(bits.map(|bit| bit ^ 42)).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let mut seen: Vec<u64> = Vec::new();
        for &seed in &seeds {
            seen.push(seed_of(seed, stream::TRIAL, 0));
            for family in [stream::TRIAL, stream::ROUND, stream::BLOCK] {
                seen.extend(
                    (1..=100).chain([1 << 8, 1 << 31, u32::MAX]).map(|k| seed_of(seed, family, k)),
                );
            }
        }
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!((seen.len(), count > 60_000), (count, true));
    }

    #[test]
    fn permutations_of_every_small_length_are_bijections() {
        for len in 0..200 {
            let order = Permutation::new(9, 1, len);
            let mut seen: Vec<usize> = (0..len).map(|i| order.get(i)).collect();
            seen.sort_unstable();
            assert!(seen.iter().copied().eq(0..len), "len = {len}");
        }
    }

    #[test]
    fn streams_have_numbers_of_their_own() {
        let text = include_str!("rng.rs");
        let numbers = text.split("pub const ").skip(1).filter_map(|rest| {
            let (name, rest) = rest.split_once(": u64 = ")?;
            Some((name, rest.split_once(" << 32;")?.0.parse::<u64>().ok()?))
        });
        let mut numbers: Vec<_> = numbers.map(|(name, number)| (number, name)).collect();
        assert!(numbers.len() > 20, "{numbers:?}");
        numbers.sort_unstable();
        assert!(numbers.windows(2).all(|pair| pair[0].0 < pair[1].0), "{numbers:?}");
    }

    /// The bits of the generator belong to every stored result; they may not change.
    #[test]
    fn the_generator_is_pinned() {
        let mut rng = Rng::new(0, 0);
        let drawn: Vec<u32> = (0..4).map(|_| rng.bits()).collect();
        let normal = Rng::new(0, stream::GATE).normal().to_bits();
        assert_eq!((drawn, normal), (PINNED_BITS.to_vec(), PINNED_NORMAL));
    }

    const PINNED_BITS: [u32; 4] = [2_735_428_763, 3_099_499_286, 2_241_967_927, 3_741_033_647];
    const PINNED_NORMAL: u32 = 3_215_412_901;
}
