//! Compressed rows with the distance from column to column in bytes.

use super::{check_counts, product, rolled};
use crate::error::{length, range, tri};
use crate::model::MAX_INPUTS;
use crate::{Error, Result};

/// A distance that only skips: 255 columns, none of them with a weight.
pub(crate) const SKIP: u8 = 255;

/// The weights of each row, with the columns that lie between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delta<'a> {
    inputs: usize,
    counts: &'a [u16],
    deltas: &'a [u8],
    values: &'a [i8],
}

impl<'a> Delta<'a> {
    /// A layer of `counts.len()` outputs, of `counts[j]` values each. The distance of a value is the number of columns
    /// without a weight before it, from the start of the row or the value before; one of 255 skips so many columns and
    /// another follows.
    ///
    /// # Errors
    /// [`Error::Range`] for more than 65536 inputs or a column that is not below `inputs`, [`Error::Length`] if the counts do
    /// not add up to the values, or the distances do not end where the values do.
    pub const fn new(inputs: usize, counts: &'a [u16], deltas: &'a [u8], values: &'a [i8]) -> Result<Self> {
        tri!(range("inputs of a layer", inputs, 0, MAX_INPUTS));
        tri!(check_counts(counts, values.len()));
        let (mut left, mut rows) = (deltas, counts);
        while let [count, behind @ ..] = rows {
            let (mut next, mut more) = (0, *count);
            while more > 0 {
                let Some(column) = step(&mut left, &mut next) else {
                    let expected = deltas.len() + 1;
                    return Err(Error::Length { what: "distances", expected, got: deltas.len() });
                };
                tri!(range("columns used", column + 1, 0, inputs));
                more -= 1;
            }
            rows = behind;
        }
        tri!(length("distances", deltas.len(), deltas.len() - left.len()));
        Ok(Self { inputs, counts, deltas, values })
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

    /// Distances, those that only skip too.
    #[must_use]
    pub const fn deltas(&self) -> &'a [u8] {
        self.deltas
    }

    /// The weights.
    #[must_use]
    pub const fn values(&self) -> &'a [i8] {
        self.values
    }

    pub(super) fn entries(&self, entry: &mut dyn FnMut(usize, u16, i8)) {
        let (mut deltas, mut values) = (self.deltas, self.values.iter());
        for (row, &count) in self.counts.iter().enumerate() {
            let mut next = 0;
            for &value in values.by_ref().take(usize::from(count)) {
                entry(row, step(&mut deltas, &mut next).unwrap_or_default() as u16, value);
            }
        }
    }

    #[inline(never)]
    pub(super) fn accumulate(&self, x: &[u8], sums: &mut [i32]) -> Option<()> {
        let (mut deltas, mut values) = (self.deltas.iter(), self.values);
        for (sum, &count) in sums.iter_mut().zip(self.counts) {
            let (row, left) = values.split_at_checked(usize::from(count))?;
            values = left;
            let (mut next, mut total) = (0_usize, *sum);
            for &value in row {
                let mut delta = *deltas.next()?;
                while delta == SKIP {
                    next = next.wrapping_add(usize::from(SKIP));
                    delta = *deltas.next()?;
                }
                next = next.wrapping_add(usize::from(delta));
                total = total.wrapping_add(product(*x.get(next)?, value));
                next = next.wrapping_add(1);
                rolled();
            }
            *sum = total;
        }
        Some(())
    }
}

/// The column of the next value; `next` is the first that it may be.
const fn step(deltas: &mut &[u8], next: &mut usize) -> Option<usize> {
    loop {
        let Some((&delta, rest)) = deltas.split_first() else { return None };
        *deltas = rest;
        let column = next.wrapping_add(delta as usize);
        if delta != SKIP {
            *next = column.wrapping_add(1);
            return Some(column);
        }
        *next = column;
    }
}
