//! Constant fan-in: rows without counts, columns of `u8` where they fit.

use super::csr::dot;
use super::{check_columns, rolled};
use crate::Result;
use crate::error::{length, range};
use crate::model::MAX_INPUTS;

/// The columns of a [`Fan`]: bytes for at most 256 inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns<'a> {
    /// For at most 256 inputs.
    U8(&'a [u8]),
    /// For more.
    U16(&'a [u16]),
}

impl Columns<'_> {
    fn len(&self) -> usize {
        match self {
            Columns::U8(columns) => columns.len(),
            Columns::U16(columns) => columns.len(),
        }
    }

    fn at(&self, k: usize) -> Option<usize> {
        match self {
            Columns::U8(columns) => columns.get(k).map(|&column| usize::from(column)),
            Columns::U16(columns) => columns.get(k).map(|&column| usize::from(column)),
        }
    }
}

/// As many weights in every row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fan<'a> {
    inputs: usize,
    outputs: usize,
    columns: Columns<'a>,
    values: &'a [i8],
}

impl<'a> Fan<'a> {
    /// A layer of `outputs`, to each of which the same number of `columns` and `values` belong.
    ///
    /// # Errors
    /// [`crate::Error::Range`] for more than 65536 inputs, no output or a column that is not below `inputs`,
    /// [`crate::Error::Length`] if the values are no multiple of the outputs, the columns not as many, or of another width
    /// than the inputs ask for; [`crate::Error::Unsorted`] for a column that does not rise.
    pub fn new(inputs: usize, outputs: usize, columns: Columns<'a>, values: &'a [i8]) -> Result<Self> {
        range("inputs of a layer", inputs, 0, MAX_INPUTS)?;
        range("outputs of a layer", outputs, 1, super::MAX_OUTPUTS)?;
        length("columns", columns.len(), values.len())?;
        let wide = matches!(columns, Columns::U16(_));
        length("bytes of a column", 1 + usize::from(wide), 1 + usize::from(inputs > super::WINDOW))?;
        let this = Self { inputs, outputs, columns, values };
        length("values", values.len(), this.fan_in().saturating_mul(outputs))?;
        for row in 0..outputs {
            let at = row * this.fan_in();
            check_columns(inputs, at, (at..at + this.fan_in()).filter_map(|k| columns.at(k)))?;
        }
        Ok(this)
    }

    /// Numbers that the layer takes.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Numbers that the layer gives.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Weights.
    #[must_use]
    pub fn nonzeros(&self) -> usize {
        self.values.len()
    }

    /// Weights of each row.
    #[must_use]
    pub fn fan_in(&self) -> usize {
        self.values.len() / self.outputs.max(1)
    }

    /// Column of each weight.
    #[must_use]
    pub fn columns(&self) -> Columns<'a> {
        self.columns
    }

    /// The weights.
    #[must_use]
    pub fn values(&self) -> &'a [i8] {
        self.values
    }

    pub(super) fn entries(&self, entry: &mut dyn FnMut(usize, u16, i8)) {
        for (k, &value) in self.values.iter().enumerate() {
            let column = self.columns.at(k).unwrap_or_default();
            entry(k / self.fan_in().max(1), column as u16, value);
        }
    }

    #[inline(always)]
    pub(super) fn accumulate(&self, x: &[u8], sums: &mut [i32]) -> Option<()> {
        match self.columns {
            Columns::U8(columns) => self.rows(columns, x, sums),
            Columns::U16(columns) => self.rows(columns, x, sums),
        }
    }

    #[inline(always)]
    fn rows<C: Copy>(&self, columns: &[C], x: &[u8], sums: &mut [i32]) -> Option<()>
    where
        usize: From<C>,
    {
        let fan_in = self.fan_in().max(1);
        let rows = columns.chunks_exact(fan_in).zip(self.values.chunks_exact(fan_in));
        for (sum, (columns, values)) in sums.iter_mut().zip(rows) {
            *sum = dot(x, columns, values, *sum)?;
            rolled();
        }
        Some(())
    }
}
