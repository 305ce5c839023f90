//! The nonzero weights: sorted flat indices and their values, nothing else.
//!
//! Weight j of neuron i has the flat index `i * d + j`, so the weights of one neuron, a *block*,
//! lie together.

mod editable;

pub use editable::Editable;

use crate::base::dims::Dims;
use crate::base::error::{self, Error, Result};
use core::ops::Range;

/// A sparse m×d weight matrix, borrowed: strictly rising flat indices and one value each.
///
/// ```
/// use tamis::network::weights::Weights;
/// let w = Weights::new(3, 2, &[1, 3, 5], &[0.5, 2.0, -1.0]).unwrap();
/// assert_eq!(w.nnz(), 3);
/// assert_eq!(w.block(1).dot(&[1.0, 10.0, 100.0]), 1.0 * 2.0 + 100.0 * -1.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights<'a> {
    inputs: usize,
    hidden: usize,
    index: &'a [u32],
    value: &'a [f32],
}

impl<'a> Weights<'a> {
    /// Views `index` and `value` as the nonzeros of an m×d matrix, `hidden` = m, `inputs` = d.
    ///
    /// # Errors
    /// [`Error::Length`] if the slices differ, [`Error::Unsorted`] or [`Error::Range`] for indices
    /// that do not rise or lie outside.
    pub fn new(inputs: usize, hidden: usize, index: &'a [u32], value: &'a [f32]) -> Result<Self> {
        error::length("weight values", value.len(), index.len())?;
        check_support(inputs, hidden, index)?;
        Ok(Self { inputs, hidden, index, value })
    }

    /// No weights at all.
    #[must_use]
    pub const fn empty(inputs: usize, hidden: usize) -> Self {
        Self { inputs, hidden, index: &[], value: &[] }
    }

    /// As [`Self::new`] for entries that are known to be in order.
    pub(crate) fn trusted(
        inputs: usize,
        hidden: usize,
        index: &'a [u32],
        value: &'a [f32],
    ) -> Self {
        debug_assert!(Self::new(inputs, hidden, index, value).is_ok(), "indices in order");
        Self { inputs, hidden, index, value }
    }

    /// Checks that these are weights of `hidden` neurons of `inputs` inputs.
    ///
    /// # Errors
    /// [`Error::Length`] if either differs.
    pub fn check(&self, inputs: usize, hidden: usize) -> Result<()> {
        error::length("inputs of the weights", self.inputs, inputs)?;
        error::length("neurons of the weights", self.hidden, hidden)
    }

    /// d, inputs of a neuron.
    #[must_use]
    pub const fn inputs(&self) -> usize {
        self.inputs
    }

    /// m, neurons.
    #[must_use]
    pub const fn hidden(&self) -> usize {
        self.hidden
    }

    /// Number of nonzeros.
    #[must_use]
    pub const fn nnz(&self) -> usize {
        self.index.len()
    }

    /// The support: flat indices, rising.
    #[must_use]
    pub const fn index(&self) -> &'a [u32] {
        self.index
    }

    /// The values on the support.
    #[must_use]
    pub const fn value(&self) -> &'a [f32] {
        self.value
    }

    /// The weights of neuron `i`; empty if it has none. O(log s).
    #[must_use]
    pub fn block(&self, i: usize) -> Block<'a> {
        let start = self.index.partition_point(|&j| (j as usize) < i.saturating_mul(self.inputs));
        let rest = self.index.get(start..).unwrap_or(&[]);
        let len = rest.partition_point(|&j| (j as usize) < (i + 1).saturating_mul(self.inputs));
        self.part(i, start..start + len)
    }

    /// Whether there is a weight that is not 0.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.value.iter().any(|&value| value != 0.0)
    }

    /// The neurons that have weights, in order.
    pub fn blocks(&self) -> impl Iterator<Item = Block<'a>> + use<'a> {
        let this = *self;
        runs(self.inputs, self.index).map(move |(i, range)| this.part(i, range))
    }

    /// The weights of neuron `i`, dropping those of the neurons before it from the view, which has
    /// none of a neuron before the last one asked for any more: neurons in rising order take O(s) in
    /// all.
    pub fn take_block(&mut self, i: usize) -> Block<'a> {
        let base = i.saturating_mul(self.inputs);
        let skip = self.index.iter().take_while(|&&j| (j as usize) < base).count();
        self.index = self.index.get(skip..).unwrap_or(&[]);
        self.value = self.value.get(skip..).unwrap_or(&[]);
        let own =
            self.index.iter().take_while(|&&j| (j as usize) < base.saturating_add(self.inputs));
        self.part(i, 0..own.count())
    }

    fn part(&self, neuron: usize, range: Range<usize>) -> Block<'a> {
        Block {
            neuron,
            base: neuron.saturating_mul(self.inputs),
            index: self.index.get(range.clone()).unwrap_or(&[]),
            value: self.value.get(range).unwrap_or(&[]),
        }
    }
}

/// The weights of one neuron.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block<'a> {
    neuron: usize,
    base: usize,
    index: &'a [u32],
    value: &'a [f32],
}

impl<'a> Block<'a> {
    /// The unit vector of one flat index of neuron `neuron`.
    #[must_use]
    pub fn unit(neuron: usize, inputs: usize, index: &'a [u32; 1]) -> Self {
        Self { neuron, base: neuron.saturating_mul(inputs), index, value: &[1.0] }
    }

    /// Which neuron, i.
    #[must_use]
    pub const fn neuron(&self) -> usize {
        self.neuron
    }

    /// Checks that the block belongs to one of `hidden` neurons of `inputs` inputs, and that its
    /// weights lie within.
    ///
    /// # Errors
    /// [`Error::Range`] with what lies outside.
    pub fn check(&self, inputs: usize, hidden: usize) -> Result<()> {
        error::range("block", self.neuron, 0, hidden.saturating_sub(1))?;
        let last = self.index.last().map_or(0, |&j| (j as usize).wrapping_sub(self.base));
        error::range("input of a weight", last, 0, inputs.saturating_sub(1))?;
        let first = self.index.first().map_or(0, |&j| (j as usize).wrapping_sub(self.base));
        error::range("input of a weight", first, 0, last)
    }

    /// Whether it has no weights.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Whether one of its weights is not 0: those that must be kept may be.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.value.iter().any(|&value| value != 0.0)
    }

    /// Whether both are the same weights in the same memory; a cheap test that never errs on the
    /// side of yes.
    #[must_use]
    pub fn is(&self, other: &Block<'_>) -> bool {
        core::ptr::eq(self.index, other.index) && core::ptr::eq(self.value, other.value)
    }

    /// The values, in order of the inputs.
    #[must_use]
    pub const fn values(&self) -> &'a [f32] {
        self.value
    }

    /// (input, value) of every weight, in order of the inputs.
    pub fn entries(&self) -> impl Iterator<Item = (usize, f32)> + use<'a> {
        let base = self.base;
        self.index.iter().zip(self.value).map(move |(&j, &v)| ((j as usize).wrapping_sub(base), v))
    }

    /// The weight from input j, if there is one.
    pub(crate) fn weight(&self, j: usize) -> Option<f32> {
        self.entries().find_map(|(at, w)| (at == j).then_some(w))
    }

    /// `w_i · x` for a row x of length d, added from the lowest input on.
    #[must_use]
    pub fn dot(&self, row: &[f32]) -> f32 {
        let mut sum = 0.0;
        for (input, value) in self.entries() {
            sum += value * row.get(input).copied().unwrap_or(0.0);
        }
        sum
    }
}

/// The runs of a sorted support that belong to one neuron each: (neuron, range of positions).
pub fn runs(inputs: usize, index: &[u32]) -> impl Iterator<Item = (usize, Range<usize>)> + use<'_> {
    let mut start = 0;
    core::iter::from_fn(move || {
        let neuron = *index.get(start)? as usize / inputs.max(1);
        let end_index = (neuron + 1).saturating_mul(inputs);
        let rest = index.get(start..)?;
        let len = rest.iter().position(|&j| j as usize >= end_index).unwrap_or(rest.len()).max(1);
        let run = start..start + len;
        start += len;
        Some((neuron, run))
    })
}

/// Checks that flat indices rise strictly and lie within m·d.
///
/// # Errors
/// [`Error::Unsorted`] or [`Error::Range`] with what is wrong.
pub fn check_support(inputs: usize, hidden: usize, index: &[u32]) -> Result<()> {
    if let Some(at) = index.windows(2).position(|pair| matches!(pair, [a, b] if a >= b)) {
        return Err(Error::Unsorted { at: at + 1 });
    }
    match index.last() {
        None => Ok(()),
        Some(&last) => error::range(
            "weight index",
            last as usize,
            0,
            inputs.saturating_mul(hidden).saturating_sub(1),
        ),
    }
}

/// Checks that the flat indices of weights that must be kept rise strictly, lie within m·d and are
/// at most `most`.
pub(crate) fn check_kept(dims: &Dims, must_keep: &[u32], most: usize) -> Result<()> {
    error::range("weights that must be kept", must_keep.len(), 0, most)?;
    check_support(dims.inputs, dims.hidden, must_keep)
}

/// Checks that a support has all pinned weights.
pub(crate) fn check_pinned(index: &[u32], must_keep: &[u32]) -> Result<()> {
    let pinned = must_keep.iter().filter(|j| index.binary_search(j).is_ok()).count();
    error::length("weights of the checkpoint that must be kept", pinned, must_keep.len())
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn blocks_are_found_individually_and_in_order() {
        let index = [0, 1, 7, 8, 14, 20];
        let value = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let w = Weights::new(7, 4, &index, &value).unwrap();
        let listed: Vec<(usize, Vec<(usize, f32)>)> =
            w.blocks().map(|b| (b.neuron(), b.entries().collect())).collect();
        assert_eq!(
            listed,
            [
                (0, std::vec![(0, 1.0), (1, 2.0)]),
                (1, std::vec![(0, 3.0), (1, 4.0)]),
                (2, std::vec![(0, 5.0), (6, 6.0)])
            ]
        );
        for (i, entries) in listed {
            assert_eq!(w.block(i).entries().collect::<Vec<_>>(), entries);
        }
        assert!(w.block(3).is_empty() && w.block(99).is_empty());
    }

    #[test]
    fn bad_supports_are_refused() {
        assert_eq!(Weights::new(3, 2, &[2, 1], &[0.0; 2]), Err(Error::Unsorted { at: 1 }));
        assert_eq!(Weights::new(3, 2, &[1, 1], &[0.0; 2]), Err(Error::Unsorted { at: 1 }));
        assert!(matches!(
            Weights::new(3, 2, &[6], &[0.0]),
            Err(Error::Range { max: 5, got: 6, .. })
        ));
        assert!(matches!(
            Weights::new(3, 2, &[1], &[]),
            Err(Error::Length { expected: 1, got: 0, .. })
        ));
        assert!(matches!(Weights::new(0, 2, &[1], &[1.0]), Err(Error::Range { .. })));
    }
}
