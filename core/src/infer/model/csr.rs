//! A sparse layer `y_j = a(bias_j + sum_k value_k x_column_k)` and the kernel that runs it.
//!
//! The kernel takes four entries a turn, all into one accumulator, in the order of the entries;
//! each read of the input is checked. On a Cortex-M4F that makes 8.25 instructions per further
//! entry. Eight a turn make 7.9 and cost a short row 15 more.

use crate::base::error::{finite, length, range, tri};
use crate::{Error, Result};

use super::input::Input;
use super::kernels::BIASES;

/// The most inputs of a layer: columns are `u16`.
pub const MAX_INPUTS: usize = 1 << 16;

/// What a layer does to each of its outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activation {
    /// Nothing.
    Identity,
    /// `max(z, 0)`; NaN stays NaN.
    Relu,
}

impl Activation {
    /// The activation of one number.
    #[inline]
    pub fn of(self, z: f32) -> f32 {
        match self {
            Activation::Relu if z <= 0.0 => 0.0,
            _ => z,
        }
    }
}

/// A sparse layer: the nonzero weights of each output, in compressed rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Csr<'a> {
    inputs: usize,
    requested: usize,
    counts: &'a [u16],
    columns: &'a [u16],
    values: &'a [f32],
    biases: &'a [f32],
    activation: Activation,
}

impl<'a> Csr<'a> {
    /// A layer of `counts.len()` outputs. Row after row, `counts[j]` entries of `columns` and
    /// `values` belong to output `j`.
    ///
    /// # Errors
    /// [`Error::Range`] for more than [`MAX_INPUTS`] inputs or a column that is not below `inputs`,
    /// [`Error::Length`] if the counts do not add up to the number of columns or of values,
    /// [`Error::Unsorted`] at the first entry whose column does not rise within its row,
    /// [`Error::NotFinite`] at the first value that is NaN or infinite.
    pub const fn new(
        inputs: usize,
        counts: &'a [u16],
        columns: &'a [u16],
        values: &'a [f32],
        activation: Activation,
    ) -> Result<Self> {
        tri!(range("inputs of a layer", inputs, 0, MAX_INPUTS));
        tri!(length("values", values.len(), columns.len()));
        tri!(check_rows(inputs, counts, columns));
        tri!(finite("weights", values));
        let requested = counts.len();
        Ok(Self { inputs, requested, counts, columns, values, biases: &[], activation })
    }

    /// Notes how many outputs were asked for before those without weights were left out; it changes
    /// no prediction.
    ///
    /// # Errors
    /// [`Error::Range`] if that is below [`outputs`](Self::outputs) or above `u32::MAX`.
    pub const fn with_requested(mut self, requested: usize) -> Result<Self> {
        tri!(range("outputs asked for", requested, self.counts.len(), u32::MAX as usize));
        self.requested = requested;
        Ok(self)
    }

    /// Starts the sum of each output at its bias; none of all outputs, or one for each.
    ///
    /// # Errors
    /// [`Error::Length`] for another number of biases, [`Error::NotFinite`] at the first one that
    /// is NaN or infinite.
    pub const fn with_biases(mut self, biases: &'a [f32]) -> Result<Self> {
        if !biases.is_empty() {
            tri!(length("biases of a layer", biases.len(), self.counts.len()));
        }
        tri!(finite("biases", biases));
        self.biases = biases;
        Ok(self)
    }

    /// Numbers that the layer takes.
    pub const fn inputs(&self) -> usize {
        self.inputs
    }

    /// Numbers that the layer gives.
    pub const fn outputs(&self) -> usize {
        self.counts.len()
    }

    /// Outputs asked for in training; those without weights may have been left out since.
    pub const fn requested(&self) -> usize {
        self.requested
    }

    /// Entries over all rows.
    pub const fn nonzeros(&self) -> usize {
        self.values.len()
    }

    /// Entries of each row.
    pub const fn counts(&self) -> &'a [u16] {
        self.counts
    }

    /// The column of each entry.
    pub const fn columns(&self) -> &'a [u16] {
        self.columns
    }

    /// The value of each entry.
    pub const fn values(&self) -> &'a [f32] {
        self.values
    }

    /// Where the sum of each output starts; empty where all start at 0.
    pub const fn biases(&self) -> &'a [f32] {
        self.biases
    }

    /// What is done to each output.
    pub const fn activation(&self) -> Activation {
        self.activation
    }

    /// `out[outputs] = a(W x + b)`; `None` only if `x` is shorter than the inputs.
    pub(super) fn apply<X: Input + ?Sized, const KERNELS: u16>(
        &self,
        x: &X,
        out: &mut [f32],
    ) -> Option<()> {
        for (out, y) in out.iter_mut().zip(self.rows::<X, KERNELS>(x)) {
            *out = y?;
        }
        Some(())
    }

    /// The outputs on `x`, one by one; `None` only if `x` is shorter than the inputs.
    #[inline(always)]
    pub(super) fn rows<X: Input + ?Sized, const KERNELS: u16>(
        &self,
        x: &X,
    ) -> impl Iterator<Item = Option<f32>> {
        let (mut columns, mut values) = (self.columns, self.values);
        let mut biases = self.biases.iter();
        self.counts.iter().map(move |&count| {
            let (row, rest) = columns.split_at_checked(usize::from(count))?;
            let (weights, left) = values.split_at_checked(usize::from(count))?;
            (columns, values) = (rest, left);
            let is_linked = KERNELS & BIASES != 0;
            let bias = if is_linked { biases.next().copied().unwrap_or(0.0) } else { 0.0 };
            Some(self.activation.of(dot(x, row, weights, bias)?))
        })
    }
}

/// Counts add up, columns rise strictly within each row and stay below `inputs`.
const fn check_rows(inputs: usize, counts: &[u16], columns: &[u16]) -> Result<()> {
    let (mut rest, mut left) = (columns, counts);
    while let [count, behind @ ..] = left {
        let Some((mut row, others)) = rest.split_at_checked(*count as usize) else {
            return length("columns", columns.len(), total(counts));
        };
        let mut least = 0;
        while let [column, further @ ..] = row {
            if (*column as usize) < least {
                return Err(Error::Unsorted { at: columns.len() - others.len() - row.len() });
            }
            (least, row) = (*column as usize + 1, further);
        }
        tri!(range("columns used", least, 0, inputs));
        (rest, left) = (others, behind);
    }
    length("columns", columns.len(), columns.len() - rest.len())
}

/// What counts add up to.
const fn total(counts: &[u16]) -> usize {
    let (mut sum, mut left) = (0_usize, counts);
    while let [count, behind @ ..] = left {
        (sum, left) = (sum.saturating_add(*count as usize), behind);
    }
    sum
}

/// One row, or a piece of it behind what came before: the products are added one by one, in the
/// order of the entries.
#[inline(always)]
pub(crate) fn dot<X: Input + ?Sized>(
    x: &X,
    columns: &[u16],
    values: &[f32],
    mut sum: f32,
) -> Option<f32> {
    let (columns, more_columns) = columns.as_chunks::<4>();
    let (values, more_values) = values.as_chunks::<4>();
    for (&[v0, v1, v2, v3], &[c0, c1, c2, c3]) in values.iter().zip(columns) {
        sum += v0 * x.at(usize::from(c0))?;
        sum += v1 * x.at(usize::from(c1))?;
        sum += v2 * x.at(usize::from(c2))?;
        sum += v3 * x.at(usize::from(c3))?;
    }
    for (&value, &column) in more_values.iter().zip(more_columns) {
        sum += value * x.at(usize::from(column))?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::ALL_KERNELS;
    use super::*;
    use std::vec::Vec;

    fn new<'a>(
        inputs: usize,
        counts: &'a [u16],
        columns: &'a [u16],
        values: &'a [f32],
    ) -> Result<Csr<'a>> {
        Csr::new(inputs, counts, columns, values, Activation::Identity)
    }

    #[test]
    fn every_row_length_adds_in_entry_order() {
        let x: Vec<f32> = (0..40_u8).map(|i| 1.0 / (1.0 + f32::from(i))).collect();
        let columns: Vec<u16> = (0..40).collect();
        let values: Vec<f32> = x.iter().map(|x| 3.3 - 7.0 * x).collect();
        for len in 0..=40 {
            let expected =
                x.iter().zip(&values).take(len).fold(0.0_f32, |sum, (x, value)| sum + value * x);
            let counts = [len as u16];
            let csr = new(40, &counts, &columns[..len], &values[..len]).unwrap();
            let mut out = [f32::NAN];
            csr.apply::<_, ALL_KERNELS>(x.as_slice(), &mut out).unwrap();
            assert_eq!(out[0].to_bits(), expected.to_bits(), "{len} entries");
        }
    }

    #[test]
    fn relu_keeps_nan_and_gives_a_positive_zero() {
        let relu = |z| Activation::Relu.of(z);
        assert_eq!(relu(-0.0).to_bits(), 0);
        assert_eq!((relu(-1.0), relu(f32::NEG_INFINITY), relu(2.0)), (0.0, 0.0, 2.0));
        assert!(relu(f32::NAN).is_nan());
    }

    #[test]
    fn layers_that_contradict_themselves_are_refused() {
        let length = |what, expected, got| Err(Error::Length { what, expected, got });
        let one = [1.0; 3];
        assert_eq!(new(9, &[1, 2], &[0, 1, 2], &one[..2]), length("values", 3, 2));
        assert_eq!(new(9, &[1, 3], &[0, 1, 2], &one), length("columns", 4, 3));
        assert_eq!(new(9, &[1, 1], &[0, 1, 2], &one), length("columns", 2, 3));
        assert_eq!(new(9, &[1, 2], &[5, 4, 4], &one), Err(Error::Unsorted { at: 2 }));
        assert_eq!(
            new(9, &[2, 1], &[4, 9, 0], &one),
            Err(Error::Range { what: "columns used", min: 0, max: 9, got: 10 })
        );
        let infinite = [1.0, f32::INFINITY, 1.0];
        assert_eq!(
            new(9, &[3], &[0, 1, 2], &infinite),
            Err(Error::NotFinite { what: "weights", at: 1 })
        );
        assert!(new(MAX_INPUTS, &[1], &[u16::MAX], &one[..1]).is_ok());
        assert!(new(MAX_INPUTS + 1, &[], &[], &[]).is_err());
    }

    #[test]
    fn requested_outputs_may_not_be_below_layer_outputs() {
        let csr = new(2, &[1, 1], &[0, 1], &[1.0, 1.0]).unwrap();
        assert_eq!(csr.requested(), 2);
        assert_eq!(csr.with_requested(5).unwrap().requested(), 5);
        assert!(csr.with_requested(1).is_err());
    }
}
