//! Every weight, zeros included.

use super::kernels::product;
use crate::Result;
use crate::base::error::{length, range, tri};
use crate::infer::model::{MAX_INPUTS, MAX_OUTPUTS, rolled};

/// Rows of weights, zeros included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dense<'a> {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    values: &'a [i8],
}

impl<'a> Dense<'a> {
    /// A layer of `outputs`, each with a value for each input.
    ///
    /// # Errors
    /// [`crate::Error::Range`] for more than 65536 inputs or outputs, [`crate::Error::Length`] for
    /// another number of values.
    pub const fn new(inputs: usize, outputs: usize, values: &'a [i8]) -> Result<Self> {
        tri!(range("inputs of a layer", inputs, 0, MAX_INPUTS));
        tri!(range("outputs of a layer", outputs, 0, MAX_OUTPUTS));
        tri!(length("values", values.len(), outputs.saturating_mul(inputs)));
        Ok(Self { inputs, outputs, values })
    }

    pub(super) const fn nonzeros(&self) -> usize {
        let (mut count, mut left) = (0, self.values);
        while let [value, behind @ ..] = left {
            (count, left) = (count + (*value != 0) as usize, behind);
        }
        count
    }

    /// The weights, zeros too, row after row.
    pub const fn values(&self) -> &'a [i8] {
        self.values
    }

    pub(super) fn entries(&self, entry: &mut dyn FnMut(usize, u16, i8)) {
        let width = self.inputs.max(1);
        for (k, &value) in self.values.iter().enumerate().filter(|(_, value)| **value != 0) {
            entry(k / width, (k % width) as u16, value);
        }
    }

    #[inline(always)]
    pub(super) fn accumulate(&self, x: &[u8], sums: &mut [i32]) -> Option<()> {
        rows(x, self.values, sums);
        Some(())
    }
}

/// Rows as long as `x`, which is as long as the inputs, cut off one by one: an iterator of chunks
/// divides to know how many there are, by a routine on the smallest cores.
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
