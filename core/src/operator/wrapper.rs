//! Operators around other operators, which pass on every call but those they change.

use crate::base::error::{self, Result};
use crate::network::gates::Gates;
use crate::network::weights::{Block, Weights};
use crate::operator::factored::Factored;
use crate::operator::sensing::{Done, Rows, Sensing, provided};
use crate::operator::solve::{Equations, Solved, Unknowns};
use core::ops::Range;

/// An operator around another one; the blanket implementations make it a [`Sensing`], and a
/// [`Factored`] where that is one, whose operations for several outputs run the provided bodies.
pub trait Wrapper {
    /// The operator inside.
    type Inner: Sensing + ?Sized;

    /// The operator inside.
    fn inner(&self) -> &Self::Inner;

    /// The operator inside.
    fn inner_mut(&mut self) -> &mut Self::Inner;

    /// Rows that it has, the first of those inside.
    fn first_rows(&self) -> usize {
        self.inner().rows()
    }

    /// Blocks per gradient call.
    fn panel_blocks(&self) -> usize {
        self.inner().panel()
    }

    /// Looks at a call of so many blocks before it is made, and says who makes it.
    ///
    /// # Errors
    /// Whatever the call shall fail with.
    fn before(&mut self, operation: Operation, blocks: usize) -> Result<Body, Source<Self>> {
        let _ = (operation, blocks);
        Ok(Body::Inner)
    }
}

/// What reading the data of the operator inside may fail with.
pub type Source<W> = <<W as Wrapper>::Inner as Sensing>::Source;

/// Who makes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// The operator inside.
    Inner,
    /// The provided body, by calls of the wrapper; the operator inside for operations that have
    /// none.
    Provided,
}

/// The operations of [`Sensing`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the methods of the same names say it")]
pub enum Operation {
    Select,
    Apply,
    Adjoint,
    Hold,
    Forward,
    Gradient,
    GradientAt,
    NormalAt,
    SolveAt,
    DiagonalAt,
    ColumnNorms,
}

impl<W: Wrapper + ?Sized> Sensing for W {
    type Source = Source<W>;
    type Machine = <W::Inner as Sensing>::Machine;

    fn machine(&mut self) -> &mut Self::Machine {
        self.inner_mut().machine()
    }

    fn sum(&mut self, numbers: &mut [f32]) -> Done<Self> {
        self.inner_mut().sum(numbers)
    }

    fn rows(&self) -> usize {
        self.first_rows()
    }

    fn local_rows(&self) -> usize {
        self.inner().local_rows()
    }

    fn batch_rows(&self) -> usize {
        self.inner().batch_rows()
    }

    fn local(&self, rows: Range<usize>) -> Range<usize> {
        self.inner().local(rows)
    }

    fn inputs(&self) -> usize {
        self.inner().inputs()
    }

    fn blocks(&self) -> usize {
        self.inner().blocks()
    }

    fn select(&mut self, rows: Range<usize>) -> Done<Self> {
        let least = rows.start.saturating_add(1);
        error::range("rows of the batch", rows.end, least, self.first_rows())?;
        self.before(Operation::Select, 0)?;
        self.inner_mut().select(rows)
    }

    fn apply(&mut self, gates: Gates<'_>, w: Block<'_>, out: &mut Rows<Self>) -> Done<Self> {
        self.before(Operation::Apply, 1)?;
        self.inner_mut().apply(gates, w, out)
    }

    fn adjoint(
        &mut self,
        gates: Gates<'_>,
        i: usize,
        v: &Rows<Self>,
        out: &mut [f32],
    ) -> Done<Self> {
        self.before(Operation::Adjoint, 1)?;
        self.inner_mut().adjoint(gates, i, v, out)
    }

    fn panel(&self) -> usize {
        self.panel_blocks()
    }

    fn scratch(&self, batch: usize) -> usize {
        self.inner().scratch(batch).max(provided::scratch(batch, self.inner().inputs()))
    }

    fn hold<'g>(&mut self, gates: Gates<'g>, support: &[u32]) -> Result<Gates<'g>, Self::Source> {
        match self.before(Operation::Hold, 0)? {
            Body::Inner => self.inner_mut().hold(gates, support),
            Body::Provided => Ok(gates),
        }
    }

    fn hold_where<'g>(
        &mut self,
        gates: Gates<'g>,
        support: &[u32],
        r: &Rows<Self>,
    ) -> Result<Option<Gates<'g>>, Self::Source> {
        match self.before(Operation::Hold, 0)? {
            Body::Inner => self.inner_mut().hold_where(gates, support, r),
            Body::Provided => Ok(None),
        }
    }

    fn forward(&mut self, gates: Gates<'_>, w: Weights<'_>, out: &mut Rows<Self>) -> Done<Self> {
        match self.before(Operation::Forward, 0)? {
            Body::Inner => self.inner_mut().forward(gates, w, out),
            Body::Provided => provided::forward(self, gates, w, out),
        }
    }

    fn gradient(
        &mut self,
        gates: Gates<'_>,
        r: &Rows<Self>,
        blocks: Range<usize>,
        out: &mut [f32],
    ) -> Done<Self> {
        match self.before(Operation::Gradient, blocks.len())? {
            Body::Inner => self.inner_mut().gradient(gates, r, blocks, out),
            Body::Provided => provided::gradient(self, gates, r, blocks, out),
        }
    }

    fn gradient_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        r: &Rows<Self>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<Self> {
        match self.before(Operation::GradientAt, 0)? {
            Body::Inner => self.inner_mut().gradient_at(gates, support, r, out, scratch),
            Body::Provided => provided::gradient_at(self, gates, support, r, out, scratch),
        }
    }

    fn normal_at(
        &mut self,
        gates: Gates<'_>,
        p: Weights<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<Self> {
        match self.before(Operation::NormalAt, 0)? {
            Body::Inner => self.inner_mut().normal_at(gates, p, out, scratch),
            Body::Provided => provided::normal_at(self, gates, p, out, scratch),
        }
    }

    fn solve_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        equations: Equations<'_>,
        unknowns: Unknowns<'_>,
        scratch: &mut [f32],
    ) -> Result<Solved, Self::Source> {
        match self.before(Operation::SolveAt, 0)? {
            Body::Inner => self.inner_mut().solve_at(gates, support, equations, unknowns, scratch),
            Body::Provided => {
                provided::solve_at(self, gates, support, equations, unknowns, scratch)
            }
        }
    }

    fn diagonal_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<Self> {
        match self.before(Operation::DiagonalAt, 0)? {
            Body::Inner => self.inner_mut().diagonal_at(gates, support, out, scratch),
            Body::Provided => provided::diagonal_at(self, gates, support, out, scratch),
        }
    }

    fn column_norms(
        &mut self,
        gates: Gates<'_>,
        blocks: Range<usize>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<Self> {
        match self.before(Operation::ColumnNorms, blocks.len())? {
            Body::Inner => self.inner_mut().column_norms(gates, blocks, out, scratch),
            Body::Provided => provided::column_norms(self, gates, blocks, out, scratch),
        }
    }
}

impl<W: Wrapper + ?Sized> Factored for W where W::Inner: Factored {}
