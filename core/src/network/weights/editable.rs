//! Weights under construction, in the caller's buffers.

use super::{Weights, check_support};
use core::ops::Range;

/// Weights under construction: entries that can be added, moved and removed within caller-owned
/// buffers.
///
/// The buffers' length is the room; nothing is ever written beyond it, an edit that does not fit
/// changes nothing.
///
/// ```
/// use tamis::network::weights::Editable;
/// let (mut index, mut value) = ([0; 4], [0.0; 4]);
/// let mut net = Editable::new(3, 2, &mut index, &mut value);
/// assert!(net.add(&[1, 5], &[0.5, 2.0]) && net.add(&[1, 3], &[1.0, -1.0]));
/// assert_eq!((net.view().index(), net.view().value()), (&[1, 3, 5][..], &[1.5, -1.0, 2.0][..]));
/// net.remove(1);
/// assert!(net.copy(0, 1) && net.view().index() == [1, 4]);
/// ```
#[derive(Debug)]
pub struct Editable<'a> {
    inputs: usize,
    hidden: usize,
    len: usize,
    index: &'a mut [u32],
    value: &'a mut [f32],
}

impl<'a> Editable<'a> {
    /// No weights yet of an m×d matrix, `hidden` = m, `inputs` = d; room for as many as the shorter
    /// buffer holds.
    pub fn new(inputs: usize, hidden: usize, index: &'a mut [u32], value: &'a mut [f32]) -> Self {
        Self { inputs, hidden, len: 0, index, value }
    }

    /// As [`Self::new`], with the first `len` entries of the buffers.
    pub(crate) fn resumed(
        inputs: usize,
        hidden: usize,
        len: usize,
        index: &'a mut [u32],
        value: &'a mut [f32],
    ) -> Self {
        Self { inputs, hidden, len, index, value }
    }

    /// The weights as they are now.
    #[must_use]
    pub fn view(&self) -> Weights<'_> {
        Weights {
            inputs: self.inputs,
            hidden: self.hidden,
            index: self.index.get(..self.len).unwrap_or(&[]),
            value: self.value.get(..self.len).unwrap_or(&[]),
        }
    }

    /// Number of entries.
    #[must_use]
    pub const fn nnz(&self) -> usize {
        self.len
    }

    /// Entries that it can hold.
    #[must_use]
    pub fn room(&self) -> usize {
        self.index.len().min(self.value.len())
    }

    /// The values, to be changed in place.
    pub fn values(&mut self) -> &mut [f32] {
        self.value.get_mut(..self.len).unwrap_or(&mut [])
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Becomes a copy of `from`; false, and no change, if that does not fit.
    pub fn set(&mut self, from: Weights<'_>) -> bool {
        let (Some(index), Some(value)) =
            (self.index.get_mut(..from.nnz()), self.value.get_mut(..from.nnz()))
        else {
            return false;
        };
        index.copy_from_slice(from.index);
        value.copy_from_slice(from.value);
        self.len = from.nnz();
        true
    }

    /// The positions of the entries of neuron `i`.
    #[must_use]
    pub fn range(&self, i: usize) -> Range<usize> {
        let index = self.index.get(..self.len).unwrap_or(&[]);
        let below = |end: usize| index.partition_point(|&j| (j as usize) < end);
        below(i.saturating_mul(self.inputs))..below(i.saturating_add(1).saturating_mul(self.inputs))
    }

    /// Keeps the entries of which `keep(flat index, value)` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(u32, f32) -> bool) {
        let mut kept = 0;
        for at in 0..self.len {
            let (Some(&j), Some(&v)) = (self.index.get(at), self.value.get(at)) else { break };
            if keep(j, v) {
                if let (Some(index), Some(value)) =
                    (self.index.get_mut(kept), self.value.get_mut(kept))
                {
                    (*index, *value) = (j, v);
                }
                kept += 1;
            }
        }
        self.len = kept;
    }

    /// Removes the entries of neuron `i`.
    pub fn remove(&mut self, i: usize) {
        let range = self.range(i);
        self.index.copy_within(range.end..self.len, range.start);
        self.value.copy_within(range.end..self.len, range.start);
        self.len -= range.len();
    }

    /// Adds `value` at the strictly rising flat indices `index`, where entries that exist already
    /// grow by it; false, and no change, if the new ones do not fit or an index lies outside.
    pub fn add(&mut self, index: &[u32], value: &[f32]) -> bool {
        if check_support(self.inputs, self.hidden, index).is_err() || index.len() != value.len() {
            return false;
        }
        let mut old = self.view().index.iter().peekable();
        let fresh = index.iter().filter(|&&j| {
            while old.next_if(|&&i| i < j).is_some() {}
            old.next_if(|&&i| i == j).is_none()
        });
        let total = self.len + fresh.count();
        if total > self.room() {
            return false;
        }
        // From the back, so that every entry is read before its place is written.
        let mut added = index.iter().zip(value).rev().peekable();
        let mut from = self.len;
        for to in (0..total).rev() {
            let Some(&(&j, &v)) = added.peek() else { break };
            let last = from
                .checked_sub(1)
                .and_then(|at| Some((*self.index.get(at)?, *self.value.get(at)?)));
            let entry = match last {
                Some((i, old)) if i > j => (i, old),
                Some((i, old)) if i == j => (i, old + v),
                _ => (j, v),
            };
            if last.is_some_and(|(i, _)| i >= j) {
                from -= 1;
            }
            if last.is_none_or(|(i, _)| i <= j) {
                added.next();
            }
            if let (Some(index), Some(value)) = (self.index.get_mut(to), self.value.get_mut(to)) {
                (*index, *value) = entry;
            }
        }
        self.len = total;
        true
    }

    /// Gives neuron `to`, which must have no entries, those of neuron `from`; false, and no change,
    /// if they do not fit or `to` has some.
    pub fn copy(&mut self, from: usize, to: usize) -> bool {
        let (source, place) = (self.range(from), self.range(to));
        let total = self.len + source.len();
        if total > self.room() || !place.is_empty() || to >= self.hidden {
            return false;
        }
        let shift = source.len();
        self.index.copy_within(place.start..self.len, place.start + shift);
        self.value.copy_within(place.start..self.len, place.start + shift);
        let source = if source.start >= place.start {
            source.start + shift..source.end + shift
        } else {
            source
        };
        self.index.copy_within(source.clone(), place.start);
        self.value.copy_within(source, place.start);
        let (old, new) = (from.saturating_mul(self.inputs), to.saturating_mul(self.inputs));
        for j in self.index.get_mut(place.start..place.start + shift).unwrap_or(&mut []) {
            *j = (*j as usize).wrapping_sub(old).wrapping_add(new) as u32;
        }
        self.len = total;
        true
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn edits_agree_with_a_dense_matrix() {
        let (d, m, room) = (5, 4, 12);
        let (mut index, mut value) = (std::vec![0; room], std::vec![0.0; room]);
        let mut net = Editable::new(d, m, &mut index, &mut value);
        let mut dense: std::collections::BTreeMap<u32, f32> = std::collections::BTreeMap::new();
        let mut rng = crate::base::rng::Rng::new(5, 0);
        let mut refused = 0;
        for step in 0..3000 {
            let (i, j) = (rng.below(4), rng.below(4));
            let fits = match rng.below(4) {
                0 => {
                    let entries: std::collections::BTreeMap<u32, f32> =
                        (0..rng.below(5)).map(|_| (rng.below(20), step as f32)).collect();
                    let mut after = dense.clone();
                    for (&j, v) in &entries {
                        *after.entry(j).or_insert(0.0) += v;
                    }
                    let fits = after.len() <= room;
                    let (index, value): (Vec<u32>, Vec<f32>) = entries.into_iter().unzip();
                    assert_eq!(net.add(&index, &value), fits);
                    if fits {
                        dense = after;
                    }
                    fits
                }
                1 => {
                    net.remove(i as usize);
                    dense.retain(|&k, _| k / 5 != i);
                    true
                }
                2 => {
                    let block: Vec<(u32, f32)> = dense
                        .iter()
                        .filter(|(k, _)| *k / 5 == i)
                        .map(|(k, v)| (k % 5 + 5 * j, *v))
                        .collect();
                    let fits =
                        dense.len() + block.len() <= room && !dense.keys().any(|k| k / 5 == j);
                    assert_eq!(net.copy(i as usize, j as usize), fits);
                    if fits {
                        dense.extend(block);
                    }
                    fits
                }
                _ => {
                    net.retain(|k, v| !(k + v as u32).is_multiple_of(7));
                    dense.retain(|&k, v| !(k + *v as u32).is_multiple_of(7));
                    true
                }
            };
            refused += u32::from(!fits);
            let view = net.view();
            assert!(
                view.index().iter().eq(dense.keys()) && view.value().iter().eq(dense.values()),
                "step {step}"
            );
        }
        assert!(refused > 50, "{refused}");
        assert!(!net.add(&[3, 2], &[1.0, 1.0]) && !net.add(&[20], &[1.0]));
    }
}
