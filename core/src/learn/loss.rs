//! Labels of a run, and the losses of outputs.

pub use crate::operator::loss::{best, class, classes, cross_entropy, square, threshold};

use crate::base::error::{self, Error, Result};
use crate::base::math;
use crate::operator::machine::{Host, Machine};
use crate::operator::tables::Tables;
use core::ops::Range;

/// What the outputs are compared with, where the operator's rows are.
#[derive(Debug)]
pub enum Labels<'a, M: Machine = Host> {
    /// n×c numbers, row by row; squared loss.
    Values(&'a M::Rows),
    /// A class per row; cross-entropy.
    Classes(Classes<'a, M>),
}

/// A class per row, of those that c outputs tell apart ([`classes`]).
#[derive(Debug)]
pub struct Classes<'a, M: Machine = Host> {
    /// The classes, from 0.
    pub labels: &'a M::Classes,
    /// c, outputs.
    pub outputs: usize,
}

impl<M: Machine> Clone for Labels<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Machine> Copy for Labels<'_, M> {}

impl<M: Machine> Clone for Classes<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Machine> Copy for Classes<'_, M> {}

impl<'a> Labels<'a> {
    /// n×c numbers, row by row.
    #[must_use]
    pub const fn values(values: &'a [f32]) -> Self {
        Self::Values(values)
    }

    /// A class per row, and c.
    #[must_use]
    pub const fn classes(labels: &'a [u16], outputs: usize) -> Self {
        Self::Classes(Classes::new(labels, outputs))
    }
}

impl<'a> Classes<'a> {
    /// A class per row, and c.
    #[must_use]
    pub const fn new(labels: &'a [u16], outputs: usize) -> Self {
        Self { labels, outputs }
    }
}

impl<'a, M: Machine> Labels<'a, M> {
    /// The numbers, one for each of n rows.
    pub(crate) fn one_a_row<E>(&self, rows: usize) -> Result<&'a M::Rows, E> {
        let what = "labels that are values";
        let Self::Values(values) = *self else {
            return Err(Error::Length { what, expected: rows, got: 0 });
        };
        error::length(what, M::len(values), rows)?;
        Ok(values)
    }

    /// c, for n rows.
    pub(crate) fn outputs(&self, rows: usize) -> usize {
        match self {
            Self::Values(values) => M::len(values) / rows.max(1),
            Self::Classes(classes) => classes.outputs,
        }
    }

    /// Turns the outputs of `rows` into residuals; the sum of the losses of the rows.
    pub(crate) fn residual(
        &self,
        machine: &mut M,
        rows: Range<usize>,
        c: usize,
        out: &mut M::Rows,
    ) -> Result<f32>
    where
        M: Tables,
    {
        match self {
            Self::Values(values) => machine.residual(values, rows.start * c, 1.0, out),
            Self::Classes(Classes { labels, outputs }) => {
                machine.cross_entropy(labels, rows, *outputs, out)
            }
        }
    }

    /// Numbers a row over which a loss is a mean: c, or 1 for cross-entropy.
    pub(crate) fn terms(&self, rows: usize) -> f32 {
        match self {
            Self::Values(_) => self.outputs(rows) as f32,
            Self::Classes(_) => 1.0,
        }
    }

    /// The negative derivative of a loss by an output, in residuals: 2, or 1 for cross-entropy.
    #[must_use]
    pub const fn slope(&self) -> f32 {
        match self {
            Self::Values(_) => 2.0,
            Self::Classes(_) => 1.0,
        }
    }

    /// The mean loss of a network without weights on the first `rows` of n rows.
    pub(crate) fn loss_of_zero(&self, machine: &mut M, rows: usize, all: usize) -> f32 {
        match self {
            Self::Values(values) => {
                let values = M::head(values, rows * self.outputs(all)).unwrap_or(values);
                machine.dot(values, values) / M::len(values).max(1) as f32
            }
            Self::Classes(labels) => math::ln(self::classes(labels.outputs) as f32),
        }
    }

    /// Checks that there are labels for n rows.
    pub(crate) fn check(&self, machine: &mut M, rows: usize) -> Result<()>
    where
        M: Tables,
    {
        let c = self.outputs(rows);
        match self {
            Self::Values(values) => {
                error::range("outputs", c, 1, u32::MAX as usize)?;
                error::length("labels", M::len(values), rows.saturating_mul(c))?;
                check_finite(machine, values)
            }
            Self::Classes(classes) => classes.check(machine, rows),
        }
    }
}

impl<M: Tables> Classes<'_, M> {
    /// Checks that there is a class for each of n rows.
    pub(crate) fn check(&self, machine: &mut M, rows: usize) -> Result<()> {
        error::range("outputs", self.outputs, 1, 1 << 16)?;
        error::length("labels", M::classes(self.labels), rows)?;
        machine.check_classes(self.labels, self.outputs)
    }
}

/// Checks that labels are finite.
pub(crate) fn check_finite<M: Machine, E>(machine: &mut M, labels: &M::Rows) -> Result<(), E> {
    match M::numbers(labels) {
        Some(labels) => error::finite("labels", labels),
        None => error::finite("the largest label", &[machine.largest(labels)]),
    }
}
