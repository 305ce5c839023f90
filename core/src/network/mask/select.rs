//! The k largest of scores that are never stored, by histograms of their bits: exact, in constant
//! memory, three passes.
//!
//! Scores are 0 or more, and bits of nonnegative floats order as the floats do. A pass counts one
//! digit of the scores' bits, 11, 11 and 10 bits long; after the last the k-th largest is known to
//! the bit. Of equal scores those of lower index are selected. A score of 0 never is.

use crate::base::error::{Error, Result};
use crate::base::math;
use crate::base::rng::CounterRng;

/// Words of memory that a histogram takes.
pub const BINS: usize = 1 << DIGIT;
/// Bits of the first two digits.
const DIGIT: u32 = 11;

/// How the weights of a mask are chosen by their scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Choice {
    /// The largest scores.
    #[default]
    Largest,
    /// As many in each layer as of the largest, drawn there with probabilities in proportion to
    /// their scores ([`sampled`]).
    Sampled,
}

/// Where a digit lies in a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Digit {
    /// Bits behind it, and bits up to those in front of it.
    shift: u32,
    above: u32,
}

impl Digit {
    /// The digit of a key.
    #[inline]
    const fn of(self, key: u32) -> usize {
        let width = self.above - self.shift;
        (key >> self.shift & ((1 << width) - 1)) as usize
    }
}

const FIRST: Digit = Digit { shift: 21, above: 32 };
const SECOND: Digit = Digit { shift: 10, above: 21 };
const THIRD: Digit = Digit { shift: 0, above: 10 };

/// What orders as a score does, of 32 bits: 0 for scores that are not above 0.
#[inline]
#[must_use]
pub fn key(score: f32) -> u32 {
    if score > 0.0 { score.to_bits() << 1 } else { 0 }
}

/// Which scores are selected: those above a key, and the first so many equal to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Cut {
    /// The [`key`] of the k-th largest score.
    pub key: u32,
    /// Scores of that key that are selected.
    pub ties: u32,
}

impl Cut {
    /// Whether the next score is selected; scores come in the order of their indices.
    #[inline]
    pub fn keeps(&mut self, score: f32) -> bool {
        let key = key(score);
        if key == self.key && self.ties > 0 {
            self.ties -= 1;
            return true;
        }
        key > self.key
    }
}

/// Counts scores by one digit, and finds in which bin the k-th largest is.
#[derive(Debug)]
pub struct Histogram<'m> {
    bins: &'m mut [u32],
    digit: Digit,
    /// The digits before.
    prefix: u32,
    /// Scores wanted of those with this prefix.
    wanted: u32,
}

/// The bin of the k-th largest score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bin {
    number: u32,
    /// Which of its scores it is, from the largest one, from 1.
    place: u32,
    /// Scores in it.
    count: u32,
}

impl<'m> Histogram<'m> {
    /// For the `wanted` largest scores; `bins` has [`BINS`] words.
    ///
    /// # Errors
    /// [`Error::Length`] for fewer words.
    pub fn new(bins: &'m mut [u32], wanted: usize) -> Result<Self> {
        let got = bins.len();
        let what = "bins of a histogram";
        let bins = bins.get_mut(..BINS).ok_or(Error::Length { what, expected: BINS, got })?;
        bins.fill(0);
        Ok(Self { bins, digit: FIRST, prefix: 0, wanted: wanted as u32 })
    }

    /// Counts one score.
    #[inline]
    pub fn add(&mut self, score: f32) {
        self.bin(score).into_iter().for_each(|bin| *bin = bin.wrapping_add(1));
    }

    /// Takes back a score that was counted.
    #[inline]
    pub fn remove(&mut self, score: f32) {
        self.bin(score).into_iter().for_each(|bin| *bin = bin.wrapping_sub(1));
    }

    /// Where a score is counted, if it is.
    #[inline]
    fn bin(&mut self, score: f32) -> Option<&mut u32> {
        let key = key(score);
        let is_here = key != 0 && u64::from(key) >> self.digit.above == u64::from(self.prefix);
        if is_here { self.bins.get_mut(self.digit.of(key)) } else { None }
    }

    /// Where the last wanted score is; none where there are fewer.
    fn find(&self) -> Option<Bin> {
        let mut left = self.wanted;
        for (number, &count) in self.bins.iter().enumerate().rev() {
            if left <= count {
                return Some(Bin { number: number as u32, place: left, count });
            }
            left -= count;
        }
        None
    }

    /// Scores that were counted: all above 0, for the first digit.
    #[must_use]
    pub fn count(&self) -> usize {
        self.bins.iter().fold(0, |sum, &count| sum.saturating_add(count as usize))
    }

    /// About the key of the last wanted score, by interpolation in its bin; 1 where there are
    /// fewer scores. For the first digit.
    #[must_use]
    pub fn estimate(&self) -> u32 {
        debug_assert_eq!(self.digit, FIRST, "the first digit");
        let Some(Bin { number, place, count }) = self.find() else { return 1 };
        let width = 1_u64 << FIRST.shift;
        let top = (u64::from(number) + 1) * width;
        let down = u64::from(place) * width / u64::from(count.max(1));
        top.saturating_sub(down).clamp(1, u64::from(u32::MAX)) as u32
    }

    /// Goes on to the next digit, for which all scores are counted again; after the last one the
    /// cut is known.
    ///
    /// # Errors
    /// [`Error::Range`] for more scores wanted than are above 0.
    pub fn next(mut self) -> Result<Next<'m>> {
        if self.wanted == 0 {
            return Ok(Next::Done(Cut { key: u32::MAX, ties: 0 }));
        }
        let Some(Bin { number, place, .. }) = self.find() else {
            return Err(too_few(self.count(), self.wanted as usize));
        };
        self.prefix = self.prefix << (self.digit.above - self.digit.shift) | number;
        self.wanted = place;
        self.digit = match self.digit {
            FIRST => SECOND,
            SECOND => THIRD,
            _ => return Ok(Next::Done(Cut { key: self.prefix, ties: place })),
        };
        self.bins.fill(0);
        Ok(Next::Digit(self))
    }
}

/// What comes after a digit.
#[derive(Debug)]
pub enum Next<'m> {
    /// Another digit.
    Digit(Histogram<'m>),
    /// The cut.
    Done(Cut),
}

/// Scores that are computed again in every pass: what a way of choosing weights is.
pub trait Scores {
    /// Calls `take` with index and score of the entries, in rising order of the indices and the
    /// same in every pass; entries whose score is 0 may be left out.
    fn each(&mut self, take: impl FnMut(u32, f32));
}

/// Scores that are held, each at its index.
#[derive(Debug, Clone, Copy)]
pub struct Stored<'a>(pub &'a [f32]);

impl Scores for Stored<'_> {
    fn each(&mut self, mut take: impl FnMut(u32, f32)) {
        (0..).zip(self.0).for_each(|(index, &score)| take(index, score));
    }
}

/// Calls `emit` with the indices of the `count` largest scores, in rising order; scores are
/// computed four times. `bins` has [`BINS`] words.
///
/// # Errors
/// [`Error::Range`] for more than there are scores above 0, [`Error::NotFinite`] for a score that
/// is no number, [`Error::Length`] for fewer bins.
///
/// ```
/// use tamis::network::mask::select::{BINS, Stored, largest};
/// let mut found = Vec::new();
/// largest(&mut Stored(&[0.5, 2.0, 0.0, 2.0, 1.0]), 2, &mut [0; BINS], |k| found.push(k))?;
/// assert_eq!(found, [1, 3]);
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn largest(
    scores: &mut impl Scores,
    count: usize,
    bins: &mut [u32],
    emit: impl FnMut(u32),
) -> Result<()> {
    let mut cut = cut(scores, count, bins)?;
    above(scores, &mut cut, emit);
    Ok(())
}

/// The cut of the `count` largest scores, which are computed three times.
///
/// # Errors
/// As [`largest`].
pub fn cut(scores: &mut impl Scores, count: usize, bins: &mut [u32]) -> Result<Cut> {
    let mut histogram = Histogram::new(bins, count)?;
    let mut at = 0;
    let mut finite = Ok(());
    scores.each(|_, score| {
        if finite.is_ok() && !score.is_finite() {
            finite = Err(Error::NotFinite { what: "scores", at });
        }
        at += 1;
        histogram.add(score);
    });
    finite?;
    loop {
        match histogram.next()? {
            Next::Done(cut) => return Ok(cut),
            Next::Digit(next) => histogram = next,
        }
        scores.each(|_, score| histogram.add(score));
    }
}

/// Calls `emit` with the indices of the scores that a cut selects, in rising order.
pub fn above(scores: &mut impl Scores, cut: &mut Cut, mut emit: impl FnMut(u32)) {
    scores.each(|index, score| {
        if cut.keeps(score) {
            emit(index);
        }
    });
}

/// More weights wanted than there are scores above 0.
pub(super) fn too_few(scores: usize, wanted: usize) -> Error {
    let what = "weights wanted, of those with a score above 0";
    Error::Range { what, min: 0, max: scores, got: wanted }
}

/// The key that makes the k largest a sample: weights drawn one after the other without
/// replacement, each with probability in proportion to its score (P. Efraimidis and P. Spirakis,
/// 2006). It is `score / e` with e exponential, which orders as `u^(1/score)`.
///
/// ```
/// use tamis::{base::rng::CounterRng, network::mask::select::sampled};
/// // Of scores 3 and 1, the first is drawn three times in four.
/// let first = (0..4000_u64).filter(|&seed| {
///     let rng = CounterRng::new(seed, 0);
///     sampled(3.0, &rng, 0) > sampled(1.0, &rng, 1)
/// });
/// assert!((2880..3120).contains(&first.count()));
/// ```
#[inline]
#[must_use]
pub fn sampled(score: f32, rng: &CounterRng, index: u32) -> f32 {
    if score <= 0.0 {
        return 0.0;
    }
    // Never 0, as the uniform number may be 1.
    let e = (-math::ln(rng.uniform(index))).max(1.0 / 33_554_432.0);
    (score / e).clamp(f32::MIN_POSITIVE, f32::MAX)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::base::rng::Rng;
    use std::{vec, vec::Vec};

    fn select(scores: &[f32], count: usize) -> Vec<u32> {
        let (mut bins, mut found) = (vec![7; BINS], Vec::new());
        largest(&mut Stored(scores), count, &mut bins, |k| found.push(k)).unwrap();
        found
    }

    fn sorted(scores: &[f32], count: usize) -> Vec<u32> {
        let mut all: Vec<u32> = (0..scores.len() as u32).collect();
        all.sort_by(|&a, &b| scores[b as usize].total_cmp(&scores[a as usize]).then(a.cmp(&b)));
        all.truncate(count);
        all.sort_unstable();
        all
    }

    #[test]
    fn selection_equals_sort_with_ties_and_extreme_scores() {
        let mut rng = Rng::new(5, 0);
        for len in [1, 2, 100, 3000] {
            let few: Vec<f32> = (0..len).map(|_| 1.0 + rng.below(3) as f32).collect();
            let wide: Vec<f32> =
                (0..len).map(|_| f32::from_bits(1 + rng.below(0x7f7f_fffe))).collect();
            let near: Vec<f32> =
                (0..len).map(|_| f32::from_bits(0x3f80_0000 + rng.below(40))).collect();
            for scores in [few, wide, near] {
                for count in [0, 1, len / 3, len - 1, len] {
                    assert_eq!(select(&scores, count), sorted(&scores, count));
                }
            }
        }
    }

    #[test]
    fn zero_scores_are_skipped_non_finite_ones_refused() {
        let mut bins = [0; BINS];
        let mut run =
            |scores: &[f32], count| largest(&mut Stored(scores), count, &mut bins, |_| ());
        assert_eq!(run(&[1.0, 0.0, -1.0], 2), Err(too_few(1, 2)));
        assert_eq!(run(&[1.0, f32::NAN], 1), Err(Error::NotFinite { what: "scores", at: 1 }));
        assert_eq!(run(&[], 0), Ok(()));
    }

    #[test]
    fn estimated_threshold_is_within_one_histogram_bin() {
        let mut rng = Rng::new(6, 0);
        let scores: Vec<f32> = (0..5000).map(|_| rng.normal().abs()).collect();
        for count in [1, 50, 2500, 4999] {
            let mut bins = vec![0; BINS];
            let mut histogram = Histogram::new(&mut bins, count).unwrap();
            scores.iter().for_each(|&score| histogram.add(score));
            let estimate = histogram.estimate();
            let above = scores.iter().filter(|&&score| key(score) >= estimate).count();
            // Bins are an eighth wide.
            assert!(above.abs_diff(count) <= 2 + count / 8, "{above} of {count}");
        }
    }
}
