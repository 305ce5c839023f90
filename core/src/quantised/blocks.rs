//! Pairs of an index of `u8` and a weight, in windows of 256 columns.
//!
//! An index of `u8` cannot leave an array of 256, so reads of the inputs are not checked and nothing is `unsafe`. The
//! last window reaches back into the one before it, so that every window lies within the row; a row of fewer than 256 bytes
//! is copied first.

use super::{NARROW_BLOCKS, WIDE_BLOCKS, product, rolled};
use crate::Result;
use crate::error::{range, tri};
use crate::model::{Runs, WINDOW, start};

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
    pub const fn new(inputs: usize, outputs: usize, counts: &'a [u8], pairs: &'a [[u8; 2]]) -> Result<Self> {
        tri!(range("outputs of a layer", outputs, 0, super::MAX_OUTPUTS));
        let mut runs = tri!(Runs::new(inputs, outputs, counts, pairs.len()));
        let mut left = pairs;
        while let [[index, _], behind @ ..] = left {
            tri!(runs.then(*index));
            left = behind;
        }
        Ok(Self { inputs, outputs, counts, pairs })
    }

    /// Numbers that the layer takes.
    #[must_use]
    pub const fn inputs(&self) -> usize {
        self.inputs
    }

    /// Numbers that the layer gives.
    #[must_use]
    pub const fn outputs(&self) -> usize {
        self.outputs
    }

    /// Weights.
    #[must_use]
    pub const fn nonzeros(&self) -> usize {
        self.pairs.len()
    }

    /// Weights of each row in each window.
    #[must_use]
    pub const fn counts(&self) -> &'a [u8] {
        self.counts
    }

    /// Index and weight.
    #[must_use]
    pub const fn pairs(&self) -> &'a [[u8; 2]] {
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

    /// The kernel that it needs.
    pub(super) const fn kernel(&self) -> u16 {
        if self.inputs < WINDOW { NARROW_BLOCKS } else { WIDE_BLOCKS }
    }

    #[inline(always)]
    pub(super) fn accumulate<const KERNELS: u16>(&self, x: &[u8], sums: &mut [i32]) -> Option<()> {
        let narrow = KERNELS & NARROW_BLOCKS != 0 && (KERNELS & WIDE_BLOCKS == 0 || x.len() < WINDOW);
        if narrow { self.copied(x, sums) } else { self.windows(x, sums) }
    }

    /// On a row shorter than a window.
    #[inline(never)]
    fn copied(&self, x: &[u8], sums: &mut [i32]) -> Option<()> {
        let mut window = [0; WINDOW];
        let ((to, more), (from, rest)) =
            (window.get_mut(..x.len())?.as_chunks_mut::<4>(), x.as_chunks::<4>());
        // A routine that copies takes more flash than this.
        for (to, from) in to.iter_mut().zip(from) {
            *to = *from;
            rolled();
        }
        for (to, from) in more.iter_mut().zip(rest) {
            *to = *from;
            rolled();
        }
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
