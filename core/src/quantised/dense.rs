//! Every weight of every input that is used.

use super::{DENSE, DENSE_USED, check_columns, product, rolled};
use crate::Result;
use crate::error::{length, range, tri};
use crate::model::MAX_INPUTS;

/// Rows of weights, zeros included, for all inputs or for those of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dense<'a> {
    inputs: usize,
    outputs: usize,
    used: &'a [u16],
    values: &'a [i8],
}

impl<'a> Dense<'a> {
    /// A layer of `outputs`, each with a value for each column of `used`, or for each input if that is empty.
    ///
    /// # Errors
    /// [`crate::Error::Range`] for more than 65536 inputs or a column that is not below `inputs`, [`crate::Error::Length`] for
    /// another number of values, [`crate::Error::Unsorted`] for a column that does not rise.
    pub const fn new(inputs: usize, outputs: usize, used: &'a [u16], values: &'a [i8]) -> Result<Self> {
        tri!(range("inputs of a layer", inputs, 0, MAX_INPUTS));
        tri!(range("outputs of a layer", outputs, 0, super::MAX_OUTPUTS));
        tri!(check_columns(inputs, used));
        let this = Self { inputs, outputs, used, values };
        tri!(length("values", values.len(), outputs.saturating_mul(this.width())));
        Ok(this)
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

    /// Weights that are not 0.
    #[must_use]
    pub const fn nonzeros(&self) -> usize {
        let (mut count, mut left) = (0, self.values);
        while let [value, behind @ ..] = left {
            (count, left) = (count + (*value != 0) as usize, behind);
        }
        count
    }

    /// The columns that have weights; empty for all.
    #[must_use]
    pub const fn used(&self) -> &'a [u16] {
        self.used
    }

    /// The weights, zeros too, row after row.
    #[must_use]
    pub const fn values(&self) -> &'a [i8] {
        self.values
    }

    const fn width(&self) -> usize {
        if self.used.is_empty() { self.inputs } else { self.used.len() }
    }

    pub(super) fn entries(&self, entry: &mut dyn FnMut(usize, u16, i8)) {
        let width = self.width().max(1);
        for (k, &value) in self.values.iter().enumerate().filter(|(_, value)| **value != 0) {
            let (row, k) = (k / width, k % width);
            entry(row, self.used.get(k).copied().unwrap_or(k as u16), value);
        }
    }

    /// The kernel that it needs.
    pub(super) const fn kernel(&self) -> u16 {
        if self.used.is_empty() { DENSE } else { DENSE_USED }
    }

    #[inline(always)]
    pub(super) fn accumulate<const KERNELS: u16>(&self, x: &[u8], sums: &mut [i32]) -> Option<()> {
        if KERNELS & DENSE != 0 && (KERNELS & DENSE_USED == 0 || self.used.is_empty()) {
            rows(x, self.values, sums);
            return Some(());
        }
        let mut values = self.values;
        for sum in sums {
            let (row, rest) = values.split_at_checked(self.used.len())?;
            values = rest;
            *sum = super::csr::dot(x, self.used, row, *sum)?;
            rolled();
        }
        Some(())
    }
}

/// Rows as long as `x`, which is as long as the inputs, cut off one by one: an iterator of chunks divides to know how many there are, by a routine on the smallest
/// parts.
#[inline(never)]
fn rows(x: &[u8], values: &[i8], sums: &mut [i32]) {
    let mut values = values;
    for sum in sums {
        let Some((row, rest)) = values.split_at_checked(x.len()) else { return };
        values = rest;
        *sum = dot(x, row, *sum);
        rolled();
    }
}

/// One row: four values a turn.
#[inline(always)]
fn dot(x: &[u8], row: &[i8], mut sum: i32) -> i32 {
    let shared = x.len().min(row.len());
    let (x, row) = (x.get(..shared).unwrap_or_default(), row.get(..shared).unwrap_or_default());
    let ((x, more), (weights, left)) = (x.as_chunks::<4>(), row.as_chunks::<4>());
    for (&[x0, x1, x2, x3], &[w0, w1, w2, w3]) in x.iter().zip(weights) {
        sum = sum.wrapping_add(product(x0, w0));
        sum = sum.wrapping_add(product(x1, w1));
        sum = sum.wrapping_add(product(x2, w2));
        sum = sum.wrapping_add(product(x3, w3));
        rolled();
    }
    for (&x, &weight) in more.iter().zip(left) {
        sum = sum.wrapping_add(product(x, weight));
        rolled();
    }
    sum
}
