//! Compressed rows with columns of `u16`.

use super::{Rising, check_counts, product, rolled};
use crate::Result;
use crate::error::{length, range, tri};
use crate::model::MAX_INPUTS;

/// The weights of each row, with their columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Csr<'a> {
    inputs: usize,
    counts: &'a [u16],
    columns: &'a [u16],
    values: &'a [i8],
}

impl<'a> Csr<'a> {
    /// A layer of `counts.len()` outputs. Row after row, `counts[j]` entries of `columns` and `values` belong to output `j`.
    ///
    /// # Errors
    /// [`crate::Error::Range`] for more than 65536 inputs or a column that is not below `inputs`, [`crate::Error::Length`] if
    /// the counts do not add up to the columns or the values, [`crate::Error::Unsorted`] for a column that does not rise.
    pub const fn new(inputs: usize, counts: &'a [u16], columns: &'a [u16], values: &'a [i8]) -> Result<Self> {
        tri!(range("inputs of a layer", inputs, 0, MAX_INPUTS));
        tri!(length("values", values.len(), columns.len()));
        tri!(check_counts(counts, columns.len()));
        let (mut rest, mut left) = (columns, counts);
        while let [count, behind @ ..] = left {
            let Some((mut row, others)) = rest.split_at_checked(*count as usize) else { break };
            let mut rising = Rising::from(columns.len() - rest.len());
            while let [column, others @ ..] = row {
                tri!(rising.then(*column as usize));
                row = others;
            }
            tri!(rising.end(inputs));
            (rest, left) = (others, behind);
        }
        Ok(Self { inputs, counts, columns, values })
    }

    /// Numbers that the layer takes.
    #[must_use]
    pub const fn inputs(&self) -> usize {
        self.inputs
    }

    /// Numbers that the layer gives.
    #[must_use]
    pub const fn outputs(&self) -> usize {
        self.counts.len()
    }

    /// Weights.
    #[must_use]
    pub const fn nonzeros(&self) -> usize {
        self.values.len()
    }

    /// Weights of each row.
    #[must_use]
    pub const fn counts(&self) -> &'a [u16] {
        self.counts
    }

    /// Column of each weight.
    #[must_use]
    pub const fn columns(&self) -> &'a [u16] {
        self.columns
    }

    /// The weights.
    #[must_use]
    pub const fn values(&self) -> &'a [i8] {
        self.values
    }

    pub(super) fn entries(&self, entry: &mut dyn FnMut(usize, u16, i8)) {
        let mut entries = self.columns.iter().zip(self.values);
        for (row, &count) in self.counts.iter().enumerate() {
            let row_entries = entries.by_ref().take(usize::from(count));
            row_entries.for_each(|(&column, &value)| entry(row, column, value));
        }
    }

    #[inline(always)]
    pub(super) fn accumulate(&self, x: &[u8], sums: &mut [i32]) -> Option<()> {
        let (mut columns, mut values) = (self.columns, self.values);
        for (sum, &count) in sums.iter_mut().zip(self.counts) {
            let (row, rest) = columns.split_at_checked(usize::from(count))?;
            let (weights, left) = values.split_at_checked(usize::from(count))?;
            (columns, values) = (rest, left);
            *sum = dot(x, row, weights, *sum)?;
            rolled();
        }
        Some(())
    }
}

/// One row, of columns of either width.
#[inline(never)]
pub(crate) fn dot<C: Copy>(x: &[u8], columns: &[C], values: &[i8], mut sum: i32) -> Option<i32>
where
    usize: From<C>,
{
    for (&value, &column) in values.iter().zip(columns) {
        sum = sum.wrapping_add(product(*x.get(usize::from(column))?, value));
        rolled();
    }
    Some(sum)
}
