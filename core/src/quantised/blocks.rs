//! Pairs of an index of `u8` and a weight, in windows of 256 columns.
//!
//! An index of `u8` cannot leave an array of 256, so reads of the inputs are not checked and nothing is `unsafe`. The
//! last window reaches back into the one before it, so that every window lies within the row; a row of fewer than 256 bytes
//! is copied first.

use super::{check_columns, product, rolled};
use crate::Result;
use crate::error::{length, range};
use crate::model::MAX_INPUTS;

/// Columns of a window.
pub const WINDOW: usize = 256;

/// Windows of columns, and in each the pairs of row after row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks<'a> {
    inputs: usize,
    outputs: usize,
    counts: &'a [u8],
    pairs: &'a [[u8; 2]],
}

impl<'a> Blocks<'a> {
    /// A layer of `outputs`. Columns are parted into windows of [`WINDOW`]; in each window in turn, each row in turn has
    /// `counts` pairs, of an index and a weight of `i8`. The index is the column less the window's start; the last window
    /// starts at `inputs - 256`, or 0 for fewer inputs.
    ///
    /// # Errors
    /// [`crate::Error::Range`] for more than 65536 inputs or an index outside its window, [`crate::Error::Length`] unless there
    /// is a count for each window and row, and they add up to the pairs, [`crate::Error::Unsorted`] for an index that does not rise.
    pub fn new(inputs: usize, outputs: usize, counts: &'a [u8], pairs: &'a [[u8; 2]]) -> Result<Self> {
        range("inputs of a layer", inputs, 0, MAX_INPUTS)?;
        range("outputs of a layer", outputs, 0, super::MAX_OUTPUTS)?;
        length("counts", counts.len(), outputs.saturating_mul(windows(inputs)))?;
        let total = counts.iter().fold(0_usize, |sum, &count| sum.saturating_add(usize::from(count)));
        length("pairs", pairs.len(), total)?;
        let (mut rest, mut at) = (pairs, 0);
        for (window, counts) in counts.chunks(outputs.max(1)).enumerate() {
            let (from, start) = (window * WINDOW, start(inputs, window));
            for &count in counts {
                let (run, left) = rest.split_at_checked(usize::from(count)).unwrap_or_default();
                rest = left;
                // Columns of the window before are not in this one, though it reaches back to them.
                let least = run.first().map_or(from, |&[index, _]| start + usize::from(index));
                range("columns of a window", least, from, from + WINDOW - 1)?;
                check_columns(inputs, at, run.iter().map(|&[index, _]| start + usize::from(index)))?;
                at += run.len();
            }
        }
        Ok(Self { inputs, outputs, counts, pairs })
    }

    /// Numbers that the layer takes.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Numbers that the layer gives.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Weights.
    #[must_use]
    pub fn nonzeros(&self) -> usize {
        self.pairs.len()
    }

    /// Weights of each row in each window.
    #[must_use]
    pub fn counts(&self) -> &'a [u8] {
        self.counts
    }

    /// Index and weight.
    #[must_use]
    pub fn pairs(&self) -> &'a [[u8; 2]] {
        self.pairs
    }

    pub(super) fn entries(&self, entry: &mut dyn FnMut(usize, u16, i8)) {
        let outputs = self.outputs.max(1);
        for row in 0..self.outputs {
            let mut rest = self.pairs;
            for (k, &count) in self.counts.iter().enumerate() {
                let (run, left) = rest.split_at_checked(usize::from(count)).unwrap_or_default();
                rest = left;
                let start = start(self.inputs, k / outputs);
                for &[index, weight] in run.iter().filter(|_| k % outputs == row) {
                    entry(row, (start + usize::from(index)) as u16, weight as i8);
                }
            }
        }
    }

    #[inline(always)]
    pub(super) fn accumulate(&self, x: &[u8], sums: &mut [i32]) -> Option<()> {
        if x.len() < WINDOW { self.copied(x, sums) } else { self.windows(x, sums) }
    }

    /// On a row shorter than a window.
    #[inline(never)]
    fn copied(&self, x: &[u8], sums: &mut [i32]) -> Option<()> {
        let mut window = [0; WINDOW];
        window.get_mut(..x.len())?.copy_from_slice(x);
        run(&window, sums, self.counts, self.pairs)?;
        Some(())
    }

    #[inline(always)]
    fn windows(&self, x: &[u8], sums: &mut [i32]) -> Option<()> {
        let mut pairs = self.pairs;
        for (window, counts) in self.counts.chunks(self.outputs.max(1)).enumerate() {
            let x = x.get(start(self.inputs, window)..)?.first_chunk::<WINDOW>()?;
            pairs = run(x, sums, counts, pairs)?;
        }
        Some(())
    }
}

/// Windows that cover so many inputs.
pub(crate) const fn windows(inputs: usize) -> usize {
    inputs.div_ceil(WINDOW)
}

/// First column of a window.
pub(crate) fn start(inputs: usize, window: usize) -> usize {
    (window * WINDOW).min(inputs.saturating_sub(WINDOW))
}

/// One window; the pairs behind it.
#[inline(never)]
fn run<'p>(x: &[u8; WINDOW], sums: &mut [i32], counts: &[u8], pairs: &'p [[u8; 2]]) -> Option<&'p [[u8; 2]]> {
    let mut pairs = pairs;
    for (sum, &count) in sums.iter_mut().zip(counts) {
        let (run, rest) = pairs.split_at_checked(usize::from(count))?;
        pairs = rest;
        *sum = dot(x, run, *sum);
    }
    Some(pairs)
}

/// One run: eight pairs a turn, and the rest by one jump to where so many are left to add.
#[inline(never)]
fn dot(x: &[u8; WINDOW], run: &[[u8; 2]], mut sum: i32) -> i32 {
    let at = |pair: Option<&[u8; 2]>| {
        let [index, weight] = pair.copied().unwrap_or_default();
        product(x.get(usize::from(index)).copied().unwrap_or_default(), weight as i8)
    };
    let (chunks, rest) = run.as_chunks::<8>();
    for pairs in chunks {
        sum = pairs.iter().fold(sum, |sum, pair| sum.wrapping_add(at(Some(pair))));
        rolled();
    }
    'zero: {
        'one: {
            'two: {
                'three: {
                    'four: {
                        'five: {
                            'six: {
                                match rest.len() {
                                    0 => break 'zero,
                                    1 => break 'one,
                                    2 => break 'two,
                                    3 => break 'three,
                                    4 => break 'four,
                                    5 => break 'five,
                                    6 => break 'six,
                                    _ => {}
                                }
                                sum = sum.wrapping_add(at(rest.get(6)));
                            }
                            sum = sum.wrapping_add(at(rest.get(5)));
                        }
                        sum = sum.wrapping_add(at(rest.get(4)));
                    }
                    sum = sum.wrapping_add(at(rest.get(3)));
                }
                sum = sum.wrapping_add(at(rest.get(2)));
            }
            sum = sum.wrapping_add(at(rest.get(1)));
        }
        sum = sum.wrapping_add(at(rest.first()));
    }
    sum
}
