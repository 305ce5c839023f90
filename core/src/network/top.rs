//! The s entries of largest magnitude of a vector that is never stored: streaming, exact, in memory
//! for s entries.
//!
//! A heap holds the s best candidates so far with the worst of them on top. A candidate that is no
//! better costs one comparison, and on a stream in random order s·ln(N/s) of N are better. Of equal
//! magnitudes the lower index goes first, so the result does not depend on the order of candidates.
//!
//! With pinned indices K ([`Top::keeping`]) the result is the Euclidean projection on the vectors
//! of at most s nonzeros whose support holds K: the nearest vector with a support S is the given
//! one cut to S, at the squared distance `sum_{j not in S} v_j²`, which is least where `S \ K` are
//! the largest entries beside K (as for `H_s`, Blumensath and Davies, *Iterative hard thresholding
//! for compressed sensing*, 2009; `always.include` of the R package `abess`, Zhu et al., PNAS
//! 2020).

#[cfg(doc)]
use crate::base::error::Error;
use crate::base::error::{self, Result};
use crate::network::weights::check_support;

/// Candidates that are looked at together.
const LANES: usize = 8;

#[derive(Clone, Copy)]
struct Entry {
    index: u32,
    value: f32,
}

impl Entry {
    /// Larger is better: magnitude first, then the lower index. Bits of nonnegative floats order as
    /// the floats do.
    #[inline]
    fn rank(self) -> u64 {
        (u64::from(self.value.abs().to_bits()) << 32) | u64::from(!self.index)
    }
}

/// Collects the best candidates into two caller-owned slices of one length, the capacity s.
///
/// ```
/// use tamis::network::top::Top;
/// let (mut index, mut value) = ([0; 2], [0.0; 2]);
/// let mut top = Top::new(&mut index, &mut value);
/// for (i, v) in [3.0, -5.0, 0.5, 4.0].into_iter().enumerate() { top.push(i as u32, v); }
/// assert_eq!(top.finish(), Some(2));
/// assert_eq!((index, value), ([1, 3], [-5.0, 4.0]));
/// ```
#[derive(Debug)]
pub struct Top<'a> {
    index: &'a mut [u32],
    value: &'a mut [f32],
    /// Indices that have places of their own, behind those of the heap.
    must_keep: &'a [u32],
    /// Places of the heap, and entries in it.
    room: usize,
    len: usize,
    finite: bool,
}

impl<'a> Top<'a> {
    /// Starts empty. The capacity is the shorter of the two lengths.
    pub fn new(index: &'a mut [u32], value: &'a mut [f32]) -> Self {
        let room = index.len().min(value.len());
        Self { index, value, must_keep: &[], room, len: 0, finite: true }
    }

    /// As [`Self::new`], with places for the entries at the indices of `must_keep`, which rise:
    /// they are in the result whatever their values, with 0 where none is offered, and count in the
    /// capacity. The others are the largest of the rest.
    ///
    /// # Errors
    /// [`Error::Range`] for more of them than the capacity, [`Error::Unsorted`] if they do not
    /// rise.
    ///
    /// ```
    /// use tamis::network::top::Top;
    /// let (mut index, mut value) = ([0; 3], [0.0; 3]);
    /// let mut top = Top::keeping(&mut index, &mut value, &[2, 7]).unwrap();
    /// for (i, v) in [3.0, -5.0, 0.5, 4.0].into_iter().enumerate() { top.push(i as u32, v); }
    /// assert_eq!(top.finish(), Some(3));
    /// assert_eq!((index, value), ([1, 2, 7], [-5.0, 0.5, 0.0]));
    /// ```
    pub fn keeping(
        index: &'a mut [u32],
        value: &'a mut [f32],
        must_keep: &'a [u32],
    ) -> Result<Self> {
        let mut top = Self::new(index, value);
        error::range("weights that must be kept", must_keep.len(), 0, top.room)?;
        check_support(usize::MAX, 1, must_keep)?;
        (top.must_keep, top.room) = (must_keep, top.room - must_keep.len());
        for (at, &j) in must_keep.iter().enumerate() {
            top.set(top.room + at, Entry { index: j, value: 0.0 });
        }
        Ok(top)
    }

    /// How many of the largest candidates are all that it can take; none where some must be kept
    /// whatever their size.
    #[must_use]
    pub const fn largest(&self) -> Option<usize> {
        if self.must_keep.is_empty() { Some(self.room) } else { None }
    }

    /// Offers the entries from the flat index `first` on.
    pub fn offer(&mut self, first: usize, values: &[f32]) {
        for (block, values) in values.chunks(LANES).enumerate() {
            // Most are less than all that are kept, and go at once.
            if values.iter().fold(true, |all, &value| all & self.is_less(value)) {
                continue;
            }
            for (j, &value) in ((first + LANES * block) as u32..).zip(values) {
                if !self.is_less(value) {
                    self.push(j, value);
                }
            }
        }
    }

    /// Whether a value is less than all that are kept, which are as many as there may be.
    fn is_less(&self, value: f32) -> bool {
        let is_full = self.len == self.room && self.must_keep.is_empty();
        is_full && value.abs() < self.get(0).value.abs()
    }

    /// Offers one candidate. Zeros are no weights and never enter but where they must be kept; each
    /// index must be offered once.
    #[inline]
    pub fn push(&mut self, index: u32, value: f32) {
        let magnitude = value.abs();
        if magnitude == 0.0 {
            return;
        }
        if !magnitude.is_finite() {
            self.finite = false;
            return;
        }
        let entry = Entry { index, value };
        if !self.must_keep.is_empty()
            && let Ok(at) = self.must_keep.binary_search(&index)
        {
            self.set(self.room + at, entry);
        } else if self.len < self.room {
            self.set(self.len, entry);
            self.len += 1;
            self.rise(self.len - 1);
        } else if self.len > 0 && entry.rank() > self.get(0).rank() {
            self.set(0, entry);
            self.sink(0, self.len, Entry::rank);
        }
    }

    /// Sorts what was kept by index and returns how many there are, or `None` if a candidate was
    /// not finite.
    #[must_use]
    pub fn finish(mut self) -> Option<usize> {
        for at in 0..self.must_keep.len() {
            self.set(self.len + at, self.get(self.room + at));
        }
        self.len += self.must_keep.len();
        // Heap sort in place: worst-case O(s log s), no memory.
        let by_index = |entry: Entry| u64::from(!entry.index);
        for i in (0..self.len / 2).rev() {
            self.sink(i, self.len, by_index);
        }
        for end in (1..self.len).rev() {
            self.swap(0, end);
            self.sink(0, end, by_index);
        }
        self.finite.then_some(self.len)
    }

    fn get(&self, i: usize) -> Entry {
        match (self.index.get(i), self.value.get(i)) {
            (Some(&index), Some(&value)) => Entry { index, value },
            _ => Entry { index: u32::MAX, value: 0.0 },
        }
    }

    fn set(&mut self, i: usize, entry: Entry) {
        if let (Some(index), Some(value)) = (self.index.get_mut(i), self.value.get_mut(i)) {
            (*index, *value) = (entry.index, entry.value);
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        let (at_a, at_b) = (self.get(a), self.get(b));
        self.set(a, at_b);
        self.set(b, at_a);
    }

    /// Moves entry `i` up while it ranks below its parent.
    fn rise(&mut self, mut i: usize) {
        while i > 0 {
            let parent = (i - 1) / 2;
            if self.get(i).rank() >= self.get(parent).rank() {
                return;
            }
            self.swap(i, parent);
            i = parent;
        }
    }

    /// Moves entry `i` down within `..len` until no child ranks below it.
    fn sink(&mut self, mut i: usize, len: usize, rank: impl Fn(Entry) -> u64) {
        let entry = self.get(i);
        loop {
            let mut child = 2 * i + 1;
            if child >= len {
                break;
            }
            if child + 1 < len && rank(self.get(child + 1)) < rank(self.get(child)) {
                child += 1;
            }
            if rank(self.get(child)) >= rank(entry) {
                break;
            }
            self.set(i, self.get(child));
            i = child;
        }
        self.set(i, entry);
    }
}

/// The score of what is dropped.
pub(crate) const DROPPED: f32 = -1.0;

/// Marks all but the `count` largest scores with [`DROPPED`]; of equal ones the later go first.
/// Bits of nonnegative floats order as the floats do, so the threshold is found by bisection on
/// bits: no memory and no sorting.
pub(crate) fn drop_least(scores: &mut [f32], count: usize) {
    let above = |scores: &[f32], bits: u32| {
        scores.iter().filter(|score| **score != DROPPED && score.to_bits() >= bits).count()
    };
    if above(scores, 0) <= count {
        return;
    }
    let (mut low, mut high) = (0_u32, u32::MAX >> 1);
    // The largest threshold that at least `count` scores reach.
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if above(scores, middle) >= count {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    let mut ties = count - above(scores, low + 1);
    for score in scores.iter_mut().filter(|score| **score != DROPPED) {
        if score.to_bits() < low || (score.to_bits() == low && ties == 0) {
            *score = DROPPED;
        } else if score.to_bits() == low {
            ties -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::base::rng::{Permutation, Rng};
    use std::{vec, vec::Vec};

    fn stream(candidates: &[(u32, f32)], capacity: usize) -> Vec<(u32, f32)> {
        let (mut index, mut value) = (vec![0; capacity], vec![0.0; capacity]);
        let mut top = Top::new(&mut index, &mut value);
        for &(i, v) in candidates {
            top.push(i, v);
        }
        let len = top.finish().unwrap();
        index.into_iter().zip(value).take(len).collect()
    }

    fn sorted(candidates: &[(u32, f32)], capacity: usize) -> Vec<(u32, f32)> {
        let mut all: Vec<_> = candidates.iter().copied().filter(|c| c.1 != 0.0).collect();
        all.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0)));
        all.truncate(capacity);
        all.sort_by_key(|c| c.0);
        all
    }

    #[test]
    fn top_equals_sort_for_any_capacity_and_order() {
        let mut rng = Rng::new(0, 0);
        for len in [0, 1, 2, 17, 300] {
            let values: Vec<(u32, f32)> =
                (0..len).map(|i| (i, rng.below(9) as f32 - 4.0)).collect();
            let order = Permutation::new(1, 0, values.len());
            let mixed: Vec<_> = (0..values.len()).map(|i| values[order.get(i)]).collect();
            for capacity in [0, 1, 2, 3, 16, 17, 150, 300, 400] {
                let expected = sorted(&values, capacity);
                assert_eq!(stream(&values, capacity), expected);
                assert_eq!(stream(&mixed, capacity), expected);
            }
        }
    }

    #[test]
    fn what_is_not_finite_is_reported() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let (mut index, mut value) = ([0; 2], [0.0; 2]);
            let mut top = Top::new(&mut index, &mut value);
            top.push(0, 1.0);
            top.push(1, bad);
            assert_eq!(top.finish(), None);
        }
    }
}
