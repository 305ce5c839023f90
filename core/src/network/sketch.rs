//! Count sketch: a noisy running sum of a vector that is never stored, in memory that grows with s
//! ln(N/s).
//!
//! Every entry is added, with a sign, to one counter in each of four rows; which counter and which
//! sign are hashes of the index. An estimate is the median of the four signed counters, in which
//! large entries stand out from the noise of others (paper IHT; Charikar, Chen and Farach-Colton,
//! 2002). Entries must be added in the same order for the same bits.

use crate::base::error::{self, Result};

/// Rows of counters, v.
pub const ROWS: usize = 4;

/// Counters of a row for s nonzeros of N entries: `ceil(s max(1, ln(N / s)))`.
///
/// ```
/// assert_eq!(tamis::network::sketch::width(10, 1100), 48); // ln 110 = 4.70
/// assert_eq!(tamis::network::sketch::width(10, 20), 10);
/// ```
#[must_use]
pub const fn width(nnz: usize, entries: usize) -> usize {
    let wide = nnz as f64 * ln(entries as f64 / if nnz > 0 { nnz as f64 } else { 1.0 });
    // Rounded up by hand: the standard function is not const without std.
    let whole = wide as usize;
    let up = if (whole as f64) < wide { whole.saturating_add(1) } else { whole };
    let up = if up < nnz { nnz } else { up };
    if up == 0 { 1 } else { up }
}

/// Words of the whole sketch: [`ROWS`] rows of [`width`] counters.
#[must_use]
pub const fn words(nnz: usize, entries: usize) -> usize {
    width(nnz, entries).saturating_mul(ROWS)
}

/// ln x to 1e-12, at compile time too; 0 below 1.
const fn ln(mut x: f64) -> f64 {
    let mut power = 0.0;
    if x.is_nan() || x <= 1.0 || x > f64::MAX {
        return 0.0;
    }
    while x > 1.5 {
        x *= 0.5;
        power += 1.0;
    }
    // 2 artanh((x - 1) / (x + 1)), the argument at most a fifth.
    let z = (x - 1.0) / (x + 1.0);
    let (mut term, mut sum, mut k) = (z, 0.0, 1.0);
    while k < 30.0 {
        sum += term / k;
        term *= z * z;
        k += 2.0;
    }
    power * core::f64::consts::LN_2 + 2.0 * sum
}

/// A sketch in the caller's memory.
///
/// ```
/// use tamis::network::sketch::{CountSketch, words};
/// let mut memory = [0.0; words(4, 400)];
/// let mut sketch = CountSketch::new(&mut memory, 1).unwrap();
/// for j in 0..400 { sketch.add(j, if j == 77 { -5.0 } else { 0.01 }); }
/// assert!((sketch.estimate(77) + 5.0).abs() < 0.5);
/// ```
#[derive(Debug)]
pub struct CountSketch<'a> {
    counters: &'a mut [f32],
    width: u32,
    keys: [u32; ROWS],
}

impl<'a> CountSketch<'a> {
    /// All zero; the length of `counters` is a positive multiple of [`ROWS`], and `seed` keys the
    /// hashes.
    ///
    /// # Errors
    /// [`error::Error::Range`] if it is not.
    pub fn new(counters: &'a mut [f32], seed: u64) -> Result<Self> {
        let width = counters.len() / ROWS;
        error::range("counters of a row", width, 1, u32::MAX as usize)?;
        error::length("counters of four rows", counters.len(), width * ROWS)?;
        counters.fill(0.0);
        let mut rng = crate::base::rng::Rng::new(seed, crate::base::rng::stream::SKETCH);
        Ok(Self { counters, width: width as u32, keys: core::array::from_fn(|_| rng.bits()) })
    }

    /// Back to zero.
    pub fn clear(&mut self) {
        self.counters.fill(0.0);
    }

    /// The counters, row by row.
    #[must_use]
    pub fn counters(&self) -> &[f32] {
        self.counters
    }

    /// Resumes from counters that [`Self::counters`] gave, of the same number.
    ///
    /// # Errors
    /// [`error::Error::Length`] for another number.
    pub fn load(&mut self, counters: &[f32]) -> Result<()> {
        error::length("counters of the sketch", counters.len(), self.counters.len())?;
        self.counters.copy_from_slice(counters);
        Ok(())
    }

    /// Adds `value` to entry `j`.
    #[inline]
    pub fn add(&mut self, j: u32, value: f32) {
        for row in 0..ROWS {
            let (at, sign) = self.place(row, j);
            if let Some(counter) = self.counters.get_mut(at) {
                *counter += sign * value;
            }
        }
    }

    /// What was added to entry `j`, about: the mean of the middle two of the four signed counters.
    #[inline]
    #[must_use]
    pub fn estimate(&self, j: u32) -> f32 {
        let [a, b, c, d] = core::array::from_fn(|row| {
            let (at, sign) = self.place(row, j);
            sign * self.counters.get(at).copied().unwrap_or(0.0)
        });
        let (low, high) = (a.min(b).max(c.min(d)), a.max(b).min(c.max(d)));
        0.5 * (low + high)
    }

    /// Multiplies every counter: what was added long ago counts less.
    pub fn decay(&mut self, factor: f32) {
        crate::base::math::scale(factor, self.counters);
    }

    /// Counter and sign of entry `j` in a row.
    #[inline]
    fn place(&self, row: usize, j: u32) -> (usize, f32) {
        let key = self.keys.get(row).copied().unwrap_or(0);
        let hash = mix(j ^ key).wrapping_add(key);
        let hash = mix(hash);
        // The high bits choose the counter, the lowest the sign.
        let at = (u64::from(hash) * u64::from(self.width)) >> 32;
        (row * self.width as usize + at as usize, if hash & 1 == 0 { 1.0 } else { -1.0 })
    }
}

/// A 32-bit finaliser: every bit of the result depends on every bit of `x`.
#[inline]
const fn mix(mut x: u32) -> u32 {
    x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::base::rng::Rng;
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn widths_follow_the_formula() {
        for (nnz, entries) in
            [(1, 1), (1, 2), (1, 100), (10, 1100), (50, 11_000), (1000, 784_000), (7, 8)]
        {
            let exact = (nnz as f64 * (entries as f64 / nnz as f64).ln().max(1.0)).ceil();
            assert_eq!(width(nnz, entries) as f64, exact, "{nnz} of {entries}");
        }
        assert_eq!((width(0, 10), width(10, 0)), (1, 10));
    }

    /// How many of 20 large entries of 5000 are among the 20 largest estimates.
    fn found(width: usize) -> usize {
        let n = 5000_u32;
        let mut memory = vec![0.0; width * ROWS];
        let mut sketch = CountSketch::new(&mut memory, 3).unwrap();
        let mut rng = Rng::new(1, 0);
        let large = |j: u32| j.is_multiple_of(250);
        for _ in 0..10 {
            for j in 0..n {
                sketch.add(j, if large(j) { 0.5 } else { 0.005 * rng.normal() });
            }
        }
        let mut order: Vec<u32> = (0..n).collect();
        order.sort_by(|a, b| sketch.estimate(*b).abs().total_cmp(&sketch.estimate(*a).abs()));
        order.iter().take(20).filter(|&&j| large(j)).count()
    }

    #[test]
    fn large_entries_are_found_among_noise() {
        // With true random numbers for hashes 10 to 14 of them are found: entries that collide are
        // hard to tell apart.
        let usual = width(20, 5000);
        assert!((8..16).contains(&found(usual)), "{}", found(usual));
        assert_eq!(found(8 * usual), 20);
        assert!(found(2) <= 5, "{}", found(2));
    }

    #[test]
    fn estimates_are_unbiased_and_the_median_of_four() {
        // Over many seeds the noise of other entries cancels.
        let mut mean = 0.0;
        for seed in 0..2000 {
            let mut memory = [0.0; 4 * 8];
            let mut sketch = CountSketch::new(&mut memory, seed).unwrap();
            for j in 0..40 {
                sketch.add(j, 1.0);
            }
            mean += f64::from(sketch.estimate(11)) / 2000.0;
        }
        assert!((mean - 1.0).abs() < 0.1, "{mean}");
    }

    #[test]
    fn rows_use_all_counters_and_both_signs_evenly() {
        let mut memory = [0.0; ROWS * 16];
        let sketch = CountSketch::new(&mut memory, 5).unwrap();
        for row in 0..ROWS {
            let mut counts = [0_i32; 16];
            let mut signs = 0.0;
            for j in 0..16_000 {
                let (at, sign) = sketch.place(row, j);
                counts[at - row * 16] += 1;
                signs += sign;
            }
            assert!(counts.iter().all(|&c| (c - 1000).abs() < 150), "{counts:?}");
            assert!(signs.abs() < 600.0);
        }
    }

    #[test]
    fn decay_forgets_and_sizes_are_checked() {
        let mut memory = [0.0; 8];
        let mut sketch = CountSketch::new(&mut memory, 0).unwrap();
        sketch.add(1, 4.0);
        sketch.decay(0.25);
        assert_eq!(sketch.estimate(1), 1.0);
        let counters: [f32; 8] = sketch.counters().try_into().unwrap();
        sketch.clear();
        assert_eq!(sketch.estimate(1), 0.0);
        sketch.load(&counters).unwrap();
        assert_eq!(sketch.estimate(1), 1.0);
        assert!(sketch.load(&counters[1..]).is_err());
        assert!(CountSketch::new(&mut [0.0; 7], 0).is_err());
        assert!(CountSketch::new(&mut [], 0).is_err());
    }
}
