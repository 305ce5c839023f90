//! Operators around other operators, which pass on every call but those they change.
//!
//! A type that is a [`Wrapper`] is an operator. It says where the operator inside is, and what it
//! changes: fewer rows, another panel, a look at each call before it is passed on
//! ([`Wrapper::before`]).

use crate::base::error::{self, Result};
use crate::network::gates::Gates;
use crate::network::net::Network;
use crate::network::weights::{Block, Weights};
use crate::operator::factored::{self, Factored, GradientMut, Tangent};
use crate::operator::machine::Machine;
use crate::operator::sensing::{Rows, Sensing, provided};
use crate::operator::solve::{Equations, Solved, Unknowns};
use core::ops::Range;

/// What reading the data of the operator inside may fail with.
pub type Source<W> = <<W as Wrapper>::Inner as Sensing>::Source;

/// An operator around another one; the blanket implementations make it a [`Sensing`], and a
/// [`Factored`] where that is one.
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

    /// Looks at a call before it is made, and says who makes it.
    ///
    /// # Errors
    /// Whatever the call shall fail with.
    fn before(&mut self, call: &Call) -> Result<Body, Source<Self>> {
        let _ = call;
        Ok(Body::Inner)
    }
}

/// Who makes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// The operator inside.
    Inner,
    /// The provided body, by calls of the wrapper; the operator inside for operations that have
    /// none.
    Provided,
}

/// One call of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Which one.
    pub operation: Operation,
    /// Blocks that it is of.
    pub blocks: usize,
    /// Numbers that the caller and the operator exchange beside row vectors: weights, supports,
    /// panels and products.
    pub numbers: usize,
    /// Numbers of row vectors: one per row of the batch, or one per row and output.
    pub rows: usize,
}

/// The operations of [`Sensing`] and [`Factored`].
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
    NetForward,
    NetGradient,
    NetGradientAt,
    NetAlong,
    NetNormalAt,
    NetSumNormalAt,
}

/// A sparse vector: an index and a value each.
const fn sparse(nnz: usize) -> usize {
    2 * nnz
}

/// `self.before` a call, and whether the operator inside makes it.
fn goes_in<W: Wrapper + ?Sized>(
    wrapper: &mut W,
    operation: Operation,
    blocks: usize,
    numbers: usize,
    rows: usize,
) -> Result<bool, Source<W>> {
    let body = wrapper.before(&Call { operation, blocks, numbers, rows })?;
    Ok(body == Body::Inner)
}

impl<W: Wrapper + ?Sized> Sensing for W {
    type Source = Source<W>;
    type Machine = <W::Inner as Sensing>::Machine;

    fn machine(&mut self) -> &mut Self::Machine {
        self.inner_mut().machine()
    }

    fn sum(&mut self, numbers: &mut [f32]) -> Result<(), Self::Source> {
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

    fn inputs(&self) -> usize {
        self.inner().inputs()
    }

    fn blocks(&self) -> usize {
        self.inner().blocks()
    }

    fn select(&mut self, rows: Range<usize>) -> Result<(), Self::Source> {
        error::range(
            "rows of the batch",
            rows.end,
            rows.start.saturating_add(1),
            self.first_rows(),
        )?;
        goes_in(self, Operation::Select, 0, 0, 0)?;
        self.inner_mut().select(rows)
    }

    fn apply(
        &mut self,
        gates: Gates<'_>,
        w: Block<'_>,
        out: &mut Rows<Self>,
    ) -> Result<(), Self::Source> {
        let numbers = gates.numbers() + sparse(w.values().len());
        goes_in(self, Operation::Apply, 1, numbers, Self::Machine::len(out))?;
        self.inner_mut().apply(gates, w, out)
    }

    fn adjoint(
        &mut self,
        gates: Gates<'_>,
        i: usize,
        v: &Rows<Self>,
        out: &mut [f32],
    ) -> Result<(), Self::Source> {
        goes_in(self, Operation::Adjoint, 1, gates.numbers() + out.len(), Self::Machine::len(v))?;
        self.inner_mut().adjoint(gates, i, v, out)
    }

    fn panel(&self) -> usize {
        self.panel_blocks()
    }

    fn scratch(&self, batch: usize) -> usize {
        self.inner().scratch(batch).max(provided::scratch(batch, self.inner().inputs()))
    }

    fn hold<'g>(&mut self, gates: Gates<'g>, support: &[u32]) -> Result<Gates<'g>, Self::Source> {
        if goes_in(self, Operation::Hold, 0, gates.numbers() + support.len(), 0)? {
            return self.inner_mut().hold(gates, support);
        }
        Ok(gates)
    }

    fn forward(
        &mut self,
        gates: Gates<'_>,
        w: Weights<'_>,
        out: &mut Rows<Self>,
    ) -> Result<(), Self::Source> {
        let numbers = gates.numbers() + sparse(w.nnz());
        if goes_in(self, Operation::Forward, 0, numbers, Self::Machine::len(out))? {
            return self.inner_mut().forward(gates, w, out);
        }
        provided::forward(self, gates, w, out)
    }

    fn gradient(
        &mut self,
        gates: Gates<'_>,
        r: &Rows<Self>,
        blocks: Range<usize>,
        out: &mut [f32],
    ) -> Result<(), Self::Source> {
        let numbers = gates.numbers() + out.len();
        if goes_in(self, Operation::Gradient, blocks.len(), numbers, Self::Machine::len(r))? {
            return self.inner_mut().gradient(gates, r, blocks, out);
        }
        provided::gradient(self, gates, r, blocks, out)
    }

    fn gradient_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        r: &Rows<Self>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Self::Source> {
        let numbers = gates.numbers() + support.len() + out.len();
        if goes_in(self, Operation::GradientAt, 0, numbers, Self::Machine::len(r))? {
            return self.inner_mut().gradient_at(gates, support, r, out, scratch);
        }
        provided::gradient_at(self, gates, support, r, out, scratch)
    }

    fn normal_at(
        &mut self,
        gates: Gates<'_>,
        p: Weights<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Self::Source> {
        let numbers = gates.numbers() + sparse(p.nnz()) + out.len();
        if goes_in(self, Operation::NormalAt, 0, numbers, 0)? {
            return self.inner_mut().normal_at(gates, p, out, scratch);
        }
        provided::normal_at(self, gates, p, out, scratch)
    }

    fn solve_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        equations: Equations<'_>,
        unknowns: Unknowns<'_>,
        scratch: &mut [f32],
    ) -> Result<Solved, Self::Source> {
        // The support, both sides of the equations, and the solution.
        let numbers = gates.numbers() + 4 * support.len();
        if goes_in(self, Operation::SolveAt, 0, numbers, 0)? {
            return self.inner_mut().solve_at(gates, support, equations, unknowns, scratch);
        }
        provided::solve_at(self, gates, support, equations, unknowns, scratch)
    }

    fn diagonal_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Self::Source> {
        let numbers = gates.numbers() + support.len() + out.len();
        if goes_in(self, Operation::DiagonalAt, 0, numbers, 0)? {
            return self.inner_mut().diagonal_at(gates, support, out, scratch);
        }
        provided::diagonal_at(self, gates, support, out, scratch)
    }

    fn column_norms(
        &mut self,
        gates: Gates<'_>,
        blocks: Range<usize>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Self::Source> {
        if goes_in(self, Operation::ColumnNorms, blocks.len(), gates.numbers() + out.len(), 0)? {
            return self.inner_mut().column_norms(gates, blocks, out, scratch);
        }
        provided::column_norms(self, gates, blocks, out, scratch)
    }
}

impl<W: Wrapper + ?Sized> Factored for W
where
    W::Inner: Factored,
{
    fn net_scratch(&self, batch: usize) -> usize {
        let needed = factored::provided::scratch(batch, self.inner().inputs());
        self.inner().net_scratch(batch).max(needed)
    }

    fn net_forward(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Self::Source> {
        let numbers = gates.numbers() + sparse(net.nnz());
        if goes_in(self, Operation::NetForward, 0, numbers, out.len())? {
            return self.inner_mut().net_forward(gates, net, out, scratch);
        }
        factored::provided::forward(self, gates, net, out, scratch)
    }

    fn net_gradient(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        r: &[f32],
        blocks: Range<usize>,
        out: GradientMut<'_>,
        scratch: &mut [f32],
    ) -> Result<(), Self::Source> {
        let numbers = gates.numbers() + sparse(net.nnz()) + out.w.len() + out.wt.len();
        if goes_in(self, Operation::NetGradient, blocks.len(), numbers, r.len())? {
            return self.inner_mut().net_gradient(gates, net, r, blocks, out, scratch);
        }
        factored::provided::gradient(self, gates, net, r, blocks, out, scratch)
    }

    fn net_gradient_at(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        r: &[f32],
        out: GradientMut<'_>,
        scratch: &mut [f32],
    ) -> Result<(), Self::Source> {
        let numbers = gates.numbers() + sparse(net.nnz()) + net.nnz();
        if goes_in(self, Operation::NetGradientAt, 0, numbers, r.len())? {
            return self.inner_mut().net_gradient_at(gates, net, r, out, scratch);
        }
        factored::provided::gradient_at(self, gates, net, r, out, scratch)
    }

    fn net_along(
        &mut self,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Self::Source> {
        let numbers = gates.numbers() + sparse(tangent.net.nnz()) + tangent.p.nnz();
        if goes_in(self, Operation::NetAlong, 0, numbers, out.len())? {
            return self.inner_mut().net_along(gates, tangent, out, scratch);
        }
        factored::provided::along(self, gates, tangent, out, scratch)
    }

    fn net_normal_at(
        &mut self,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        out: GradientMut<'_>,
        image: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Self::Source> {
        let numbers = gates.numbers() + sparse(tangent.net.nnz()) + 2 * tangent.p.nnz();
        if goes_in(self, Operation::NetNormalAt, 0, numbers, 0)? {
            return self.inner_mut().net_normal_at(gates, tangent, out, image, scratch);
        }
        factored::provided::normal_at(self, gates, tangent, out, image, scratch)
    }

    fn net_sum_normal_at(
        &mut self,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        open: &[u32],
        out: GradientMut<'_>,
        image: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Self::Source> {
        let numbers = gates.numbers() + sparse(tangent.net.nnz()) + 2 * tangent.p.nnz();
        if goes_in(self, Operation::NetSumNormalAt, 0, numbers, open.len())? {
            return self.inner_mut().net_sum_normal_at(gates, tangent, open, out, image, scratch);
        }
        factored::provided::sum_normal_at(self, gates, tangent, open, out, image, scratch)
    }
}
