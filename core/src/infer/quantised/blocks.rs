//! Pairs of an index of `u8` and a weight, in windows of 256 columns.
//!
//! Reads of the inputs are not checked, as in [`crate::infer::model::Blocks`]; a row of fewer than
//! 256 bytes is copied first.

use super::kernels::{NARROW_BLOCKS, WIDE_BLOCKS, product};
use crate::Result;
use crate::base::error::{range, tri};
use crate::infer::model::{MAX_OUTPUTS, Runs, WINDOW, apart, rolled, start};

/// Windows of columns, and in each the pairs of row after row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks<'a> {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    counts: &'a [u8],
    pairs: &'a [[u8; 2]],
}

impl<'a> Blocks<'a> {
    /// A layer of `outputs`: in each window in turn, each row in turn has `counts` pairs, of an
    /// index and a weight of `i8`; windows are those of
    /// [`model::Blocks::new`](crate::infer::model::Blocks::new).
    ///
    /// # Errors
    /// [`crate::Error::Range`] for more than 65536 inputs or an index outside its window,
    /// [`crate::Error::Length`] unless there is a count for each window and row, and they add up to
    /// the pairs, [`crate::Error::Unsorted`] for an index that does not rise.
    pub const fn new(
        inputs: usize,
        outputs: usize,
        counts: &'a [u8],
        pairs: &'a [[u8; 2]],
    ) -> Result<Self> {
        tri!(range("outputs of a layer", outputs, 0, MAX_OUTPUTS));
        let mut runs = tri!(Runs::new(inputs, outputs, counts, pairs.len()));
        let mut left = pairs;
        while let [[index, _], behind @ ..] = left {
            tri!(runs.then(*index));
            left = behind;
        }
        Ok(Self { inputs, outputs, counts, pairs })
    }

    pub(super) const fn nonzeros(&self) -> usize {
        self.pairs.len()
    }

    /// Weights of each row in each window.
    pub const fn counts(&self) -> &'a [u8] {
        self.counts
    }

    /// Index and weight.
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
        let narrow =
            KERNELS & NARROW_BLOCKS != 0 && (KERNELS & WIDE_BLOCKS == 0 || x.len() < WINDOW);
        if narrow { self.copied(x, sums) } else { self.windows(x, sums) }
    }

    /// On a row shorter than a window.
    #[inline(never)]
    fn copied(&self, x: &[u8], sums: &mut [i32]) -> Option<()> {
        // Routines that clear and copy take more flash than these loops.
        let zero = core::hint::black_box(0);
        let mut window = core::array::from_fn::<[u32; 4], 16, _>(|_| {
            rolled();
            [zero; 4]
        });
        let window: &mut [u8] = bytemuck::cast_slice_mut(window.as_flattened_mut());
        let ((to, more), (from, rest)) =
            (window.get_mut(..x.len())?.as_chunks_mut::<4>(), x.as_chunks::<4>());
        for (to, from) in to.iter_mut().zip(from) {
            *to = *from;
            rolled();
        }
        for (to, from) in more.iter_mut().zip(rest) {
            *to = *from;
            rolled();
        }
        run(window.first_chunk()?, sums, self.counts, self.pairs)?;
        Some(())
    }

    #[inline(always)]
    fn windows(&self, x: &[u8], sums: &mut [i32]) -> Option<()> {
        let (mut counts, mut pairs, mut window) = (self.counts, self.pairs, 0);
        // Where there are no outputs, there are no counts.
        while !counts.is_empty() {
            let (now, rest) = counts.split_at_checked(self.outputs)?;
            let x = x.get(start(x.len(), window)..)?.first_chunk::<WINDOW>()?;
            pairs = run(x, sums, now, pairs)?;
            (counts, window) = (rest, window.wrapping_add(1));
            rolled();
        }
        Some(())
    }
}

/// One window; the pairs behind it. Many of its rows may have none, so those are passed by.
#[inline(never)]
fn run<'p>(
    x: &[u8; WINDOW],
    sums: &mut [i32],
    counts: &[u8],
    pairs: &'p [[u8; 2]],
) -> Option<&'p [[u8; 2]]> {
    let mut pairs = pairs;
    for (sum, &count) in sums.iter_mut().zip(counts) {
        if count == 0 {
            apart();
            continue;
        }
        let (run, rest) = pairs.split_at_checked(usize::from(count))?;
        *sum = dot(x, run, *sum);
        pairs = rest;
    }
    Some(pairs)
}

/// Enters a list of steps so that the last `count` of them are done, by one jump. Steps are
/// numbered down to 0; each has a label, and all are done where `count` is above the first of them.
macro_rules! last {
    ($count:expr, $step:ident: $($label:lifetime $k:literal)*) => {
        last!(@ $step, { match $count { $($k => break $label,)* _ => {} } } $($label $k)*)
    };
    (@ $step:ident, $inner:block) => { $inner };
    (@ $step:ident, $inner:block $label:lifetime $k:literal $($more:tt)*) => {
        last!(@ $step, { $label: { $inner $step($k); } } $($more)*)
    };
}

/// One run: fifteen pairs a turn, or as many as are left, by one jump to where so many are left to
/// add. Most runs are shorter: they take no loop and no call.
#[inline(always)]
fn dot(x: &[u8; WINDOW], run: &[[u8; 2]], mut sum: i32) -> i32 {
    let mut left = run;
    loop {
        let mut add = |k: usize| {
            let [index, weight] = left.get(k).copied().unwrap_or_default();
            let x = x.get(usize::from(index)).copied().unwrap_or_default();
            sum = sum.wrapping_add(product(x, weight as i8));
            // One after the other, in few registers.
            apart();
        };
        last!(left.len(), add: 'p14 14 'p13 13 'p12 12 'p11 11 'p10 10 'p9 9 'p8 8 'p7 7 'p6 6 'p5 5 'p4 4 'p3 3 'p2 2 'p1 1 'p0 0);
        let Some((_, behind)) = left.split_first_chunk::<15>() else { return sum };
        left = behind;
        apart();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of no pair, of one turn less and more than full, and of all of a window: each adds its
    /// products to its sum.
    #[test]
    fn runs_of_every_length_add_their_pair_products() {
        let x: [u8; WINDOW] = core::array::from_fn(|k| (k * 7 + 3) as u8);
        let pairs: [[u8; 2]; 255] = core::array::from_fn(|k| [k as u8, (k * 31 + 101) as u8]);
        let products = |run: &[[u8; 2]]| -> i32 {
            run.iter()
                .map(|&[at, weight]| i32::from(x[usize::from(at)]) * i32::from(weight as i8))
                .sum()
        };
        for count in 0..=255 {
            let counts = [count, 0, 255 - count];
            let layer = Blocks::new(WINDOW, 3, &counts, &pairs).unwrap();
            let (mut sums, (first, last)) = ([5, -6, 7], pairs.split_at(count.into()));
            layer.accumulate::<WIDE_BLOCKS>(&x, &mut sums).unwrap();
            assert_eq!(sums, [5 + products(first), -6, 7 + products(last)], "{count}");
        }
    }

    #[test]
    fn rows_shorter_than_window_are_read_fully() {
        for inputs in [1, 3, 4, 26, 254, 255] {
            let mut x = [9; WINDOW];
            x[inputs - 1] = 200;
            let last = [[(inputs - 1) as u8, 0x81]];
            let layer = Blocks::new(inputs, 1, &[1], &last).unwrap();
            let mut sums = [1];
            layer.accumulate::<NARROW_BLOCKS>(&x[..inputs], &mut sums).unwrap();
            assert_eq!(sums, [1 - 127 * 200], "{inputs}");
        }
    }
}
