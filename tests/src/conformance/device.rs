//! An operator that pretends to live on a device, and counts what it exchanges with the algorithm.
//!
//! Row vectors are registers of the device; the algorithm holds their handles. What it asks for is
//! computed by an operator of the host. That an algorithm runs on it says that it reads no row
//! vector; what is counted, how much else moves.

use super::registers::Registers;
use core::num::NonZeroU32;
use core::ops::Range;
use tamis::Result;
use tamis::network::gates::Gates;
use tamis::network::net::Network;
use tamis::network::weights::{Block, Weights};
use tamis::operator::factored::{Factored, GradientMut, Tangent};
use tamis::operator::machine::Host;
use tamis::operator::sensing::Sensing;
use tamis::operator::solve::{Equations, Solved, Unknowns};
use tamis::operator::tables::Residual;

/// An operator of the host behind registers.
#[derive(Debug)]
pub struct Device<'a, S> {
    inner: &'a mut S,
    registers: Registers<'a>,
    held: Option<NonZeroU32>,
}

impl<'a, S: Sensing<Machine = Host>> Device<'a, S> {
    /// What `inner` computes, all of whose rows are selected.
    pub fn new(inner: &'a mut S, registers: Registers<'a>) -> Self {
        Self { inner, registers, held: None }
    }

    /// The registers.
    pub fn registers(&mut self) -> &mut Registers<'a> {
        &mut self.registers
    }
}

impl<'a, S: Sensing<Machine = Host>> Sensing for Device<'a, S> {
    type Source = S::Source;
    type Machine = Registers<'a>;

    fn machine(&mut self) -> &mut Registers<'a> {
        &mut self.registers
    }

    fn rows(&self) -> usize {
        self.inner.rows()
    }

    fn local_rows(&self) -> usize {
        self.inner.local_rows()
    }

    fn inputs(&self) -> usize {
        self.inner.inputs()
    }

    fn blocks(&self) -> usize {
        self.inner.blocks()
    }

    fn select(&mut self, rows: Range<usize>) -> Result<(), S::Source> {
        self.registers.count(2, 0);
        self.inner.select(rows)
    }

    fn apply(&mut self, gates: Gates<'_>, w: Block<'_>, out: &mut [u32]) -> Result<(), S::Source> {
        self.registers.count(gates.numbers() + 2 * w.values().len(), 0);
        self.registers.set(out, |out| self.inner.apply(gates, w, out))
    }

    fn adjoint(
        &mut self,
        gates: Gates<'_>,
        i: usize,
        v: &[u32],
        out: &mut [f32],
    ) -> Result<(), S::Source> {
        self.registers.count(gates.numbers(), out.len());
        self.inner.adjoint(gates, i, self.registers.row(v), out)
    }

    fn panel(&self) -> usize {
        self.inner.panel()
    }

    fn scratch(&self, batch: usize) -> usize {
        self.inner.scratch(batch)
    }

    fn hold<'g>(&mut self, gates: Gates<'g>, support: &[u32]) -> Result<Gates<'g>, S::Source> {
        self.registers.count(gates.numbers() + support.len(), 0);
        let gates = self.inner.hold(gates, support)?;
        self.held = NonZeroU32::new(self.held.map_or(0, NonZeroU32::get).wrapping_add(1));
        Ok(self.held.map_or(gates, |ticket| gates.held(ticket)))
    }

    fn forward(
        &mut self,
        gates: Gates<'_>,
        w: Weights<'_>,
        out: &mut [u32],
    ) -> Result<(), S::Source> {
        self.registers.count(gates.numbers() + 2 * w.nnz(), 0);
        self.registers.set(out, |out| self.inner.forward(gates, w, out))
    }

    fn gradient(
        &mut self,
        gates: Gates<'_>,
        r: &[u32],
        blocks: Range<usize>,
        out: &mut [f32],
    ) -> Result<(), S::Source> {
        self.registers.count(gates.numbers(), out.len());
        self.inner.gradient(gates, self.registers.row(r), blocks, out)
    }

    fn gradient_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        r: &[u32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), S::Source> {
        self.registers.count(gates.numbers() + support.len() + out.len(), 0);
        self.inner.gradient_at(gates, support, self.registers.row(r), out, scratch)
    }

    fn normal_at(
        &mut self,
        gates: Gates<'_>,
        p: Weights<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), S::Source> {
        self.registers.count(gates.numbers() + 2 * p.nnz() + out.len(), 0);
        self.inner.normal_at(gates, p, out, scratch)
    }

    fn solve_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        equations: Equations<'_>,
        unknowns: Unknowns<'_>,
        scratch: &mut [f32],
    ) -> Result<Solved, S::Source> {
        // Support, diagonal and residual go in, the solution in and out.
        let vectors = if equations.diagonal.is_some() { 5 } else { 4 };
        self.registers.count(gates.numbers() + vectors * support.len() + 5, 0);
        self.inner.solve_at(gates, support, equations, unknowns, scratch)
    }

    fn diagonal_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), S::Source> {
        self.registers.count(gates.numbers() + support.len() + out.len(), 0);
        self.inner.diagonal_at(gates, support, out, scratch)
    }

    fn column_norms(
        &mut self,
        gates: Gates<'_>,
        blocks: Range<usize>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), S::Source> {
        self.registers.count(gates.numbers(), out.len());
        self.inner.column_norms(gates, blocks, out, scratch)
    }
}

impl<'a, S: Factored<Machine = Host>> Factored for Device<'a, S> {
    fn net_scratch(&self, batch: usize) -> usize {
        self.inner.net_scratch(batch)
    }

    fn net_forward(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        out: &mut [u32],
        scratch: &mut [f32],
    ) -> Result<(), S::Source> {
        self.registers.count(gates.numbers() + 2 * net.nnz(), 0);
        self.registers.set(out, |out| self.inner.net_forward(gates, net, out, scratch))
    }

    fn net_sum_forward(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        open: &mut [u32],
        out: &mut [u32],
        scratch: &mut [f32],
    ) -> Result<(), S::Source> {
        self.registers.count(gates.numbers() + 2 * net.nnz(), 0);
        let inner = &mut *self.inner;
        self.registers.set_both([open, out], |open, out| {
            inner.net_sum_forward(gates, net, open, out, scratch)
        })
    }

    fn net_gradient(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        r: Residual<'_, [u32]>,
        blocks: Range<usize>,
        out: GradientMut<'_>,
        scratch: &mut [f32],
    ) -> Result<(), S::Source> {
        let panel = out.w.len() + out.wt.len();
        self.registers.count(gates.numbers() + 2 * net.nnz(), panel);
        let r = r.map(|r| self.registers.row(r));
        self.inner.net_gradient(gates, net, r, blocks, out, scratch)
    }

    fn net_gradient_at(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        r: Residual<'_, [u32]>,
        out: GradientMut<'_>,
        scratch: &mut [f32],
    ) -> Result<(), S::Source> {
        self.registers.count(gates.numbers() + 3 * net.nnz(), 0);
        let r = r.map(|r| self.registers.row(r));
        self.inner.net_gradient_at(gates, net, r, out, scratch)
    }

    fn net_along(
        &mut self,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        out: &mut [u32],
        scratch: &mut [f32],
    ) -> Result<(), S::Source> {
        self.registers.count(gates.numbers() + 3 * tangent.net.nnz(), 0);
        self.registers.set(out, |out| self.inner.net_along(gates, tangent, out, scratch))
    }

    fn net_normal_at(
        &mut self,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        out: GradientMut<'_>,
        image: &mut [u32],
        scratch: &mut [f32],
    ) -> Result<(), S::Source> {
        self.registers.count(gates.numbers() + 4 * tangent.net.nnz(), 0);
        let inner = &mut *self.inner;
        self.registers.set(image, |image| inner.net_normal_at(gates, tangent, out, image, scratch))
    }

    fn net_sum_normal_at(
        &mut self,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        open: &[u32],
        out: GradientMut<'_>,
        image: &mut [u32],
        scratch: &mut [f32],
    ) -> Result<(), S::Source> {
        self.registers.count(gates.numbers() + 4 * tangent.net.nnz(), 0);
        let inner = &mut *self.inner;
        self.registers.update(image, open, |image, open| {
            inner.net_sum_normal_at(gates, tangent, open, out, image, scratch)
        })
    }
}
