//! Constant fan-in: rows without counts, columns of `u8` where they fit.

use super::csr::dot;
use super::{NARROW_FAN, Rising, WIDE_FAN, rolled};
use crate::Result;
use crate::error::{length, range, tri};
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
    const fn len(&self) -> usize {
        match self {
            Columns::U8(columns) => columns.len(),
            Columns::U16(columns) => columns.len(),
        }
    }

    const fn split_first(self) -> Option<(usize, Self)> {
        match self {
            Columns::U8([column, behind @ ..]) => Some((*column as usize, Columns::U8(behind))),
            Columns::U16([column, behind @ ..]) => Some((*column as usize, Columns::U16(behind))),
            _ => None,
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
    /// Held, since a prediction would divide for it.
    fan_in: usize,
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
    pub const fn new(inputs: usize, outputs: usize, columns: Columns<'a>, values: &'a [i8]) -> Result<Self> {
        tri!(range("inputs of a layer", inputs, 0, MAX_INPUTS));
        tri!(range("outputs of a layer", outputs, 1, super::MAX_OUTPUTS));
        tri!(length("columns", columns.len(), values.len()));
        let wide = matches!(columns, Columns::U16(_)) as usize;
        tri!(length("bytes of a column", 1 + wide, 1 + (inputs > super::WINDOW) as usize));
        // There is an output.
        let fan_in = match values.len().checked_div(outputs) {
            Some(fan_in) => fan_in,
            None => 0,
        };
        tri!(length("values", values.len(), fan_in.saturating_mul(outputs)));
        let (mut left, mut rising, mut within) = (columns, Rising::from(0), 0);
        while let Some((column, behind)) = left.split_first() {
            tri!(rising.then(column));
            (left, within) = (behind, within + 1);
            if within == fan_in {
                tri!(rising.end(inputs));
                (rising.least, within) = (0, 0);
            }
        }
        Ok(Self { inputs, outputs, fan_in, columns, values })
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

    /// Weights.
    #[must_use]
    pub const fn nonzeros(&self) -> usize {
        self.values.len()
    }

    /// Weights of each row.
    #[must_use]
    pub const fn fan_in(&self) -> usize {
        self.fan_in
    }

    /// Column of each weight.
    #[must_use]
    pub const fn columns(&self) -> Columns<'a> {
        self.columns
    }

    /// The weights.
    #[must_use]
    pub const fn values(&self) -> &'a [i8] {
        self.values
    }

    pub(super) fn entries(&self, entry: &mut dyn FnMut(usize, u16, i8)) {
        for (k, &value) in self.values.iter().enumerate() {
            let column = self.columns.at(k).unwrap_or_default();
            entry(k / self.fan_in().max(1), column as u16, value);
        }
    }

    /// The kernel that it needs.
    pub(super) const fn kernel(&self) -> u16 {
        match self.columns {
            Columns::U8(_) => NARROW_FAN,
            Columns::U16(_) => WIDE_FAN,
        }
    }

    #[inline(always)]
    pub(super) fn accumulate<const KERNELS: u16>(&self, x: &[u8], sums: &mut [i32]) -> Option<()> {
        match self.columns {
            Columns::U8(columns) if KERNELS & NARROW_FAN != 0 => self.rows(columns, x, sums),
            Columns::U16(columns) if KERNELS & WIDE_FAN != 0 => self.rows(columns, x, sums),
            _ => None,
        }
    }

    #[inline(always)]
    fn rows<C: Copy>(&self, columns: &[C], x: &[u8], sums: &mut [i32]) -> Option<()>
    where
        usize: From<C>,
    {
        let (mut columns, mut values, fan_in) = (columns, self.values, self.fan_in());
        for sum in sums {
            let (row, rest) = columns.split_at_checked(fan_in)?;
            let (weights, left) = values.split_at_checked(fan_in)?;
            (columns, values) = (rest, left);
            *sum = dot(x, row, weights, *sum)?;
            rolled();
        }
        Some(())
    }
}
