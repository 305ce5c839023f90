//! An operator that pretends to live on a device, and counts what it exchanges with the algorithm.
//!
//! Row vectors are registers of the device; the algorithm holds their numbers. What it asks for is
//! computed by an operator of the host. That an algorithm runs on it says that it reads no row
//! vector; what is counted, how much else moves.

use core::num::NonZeroU32;
use core::ops::Range;
use tamis::Result;
use tamis::base::rng::Rng;
use tamis::network::gates::Gates;
use tamis::network::weights::{Block, Weights};
use tamis::operator::machine::{Along, Hinge, Host, Machine};
use tamis::operator::sensing::Sensing;
use tamis::operator::solve::{Equations, Solved, Unknowns};

/// Registers of a device: labels, residual, and what a search needs of single neurons.
pub const REGISTERS: usize = 6;

/// What has crossed between the device and the algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transfers {
    /// Weights, supports, products on a support, sums.
    pub numbers: usize,
    /// Numbers of panels: gradients and column norms of whole blocks.
    pub panels: usize,
    /// The most numbers that one call moved.
    pub largest: usize,
}

/// The registers, each for as many rows as the data has.
#[derive(Debug)]
pub struct Registers<'a> {
    memory: [&'a mut [f32]; REGISTERS],
    used: u32,
    /// Rows of the batch.
    batch: usize,
    /// What has crossed so far.
    transfers: &'a core::cell::Cell<Transfers>,
}

impl<'a> Registers<'a> {
    /// Registers in `memory`, each a sixth of it.
    pub fn new(memory: &'a mut [f32], transfers: &'a core::cell::Cell<Transfers>) -> Self {
        let rows = memory.len() / REGISTERS;
        let mut chunks = memory.chunks_mut(rows.max(1));
        let memory = core::array::from_fn(|_| chunks.next().unwrap_or_default());
        Self { memory, used: 0, batch: rows, transfers }
    }

    /// Writes `rows` to a new register, whose handle is kept in `handle`.
    pub fn upload<'h>(&mut self, rows: &[f32], handle: &'h mut [f32]) -> &'h mut [u32] {
        let handle = self.rows_in(handle);
        let out = self.row_mut(handle).unwrap_or_default();
        out.iter_mut().zip(rows).for_each(|(out, x)| *out = *x);
        handle
    }

    fn count(&self, numbers: usize, panels: usize) {
        let before = self.transfers.get();
        self.transfers.set(Transfers {
            numbers: before.numbers + numbers,
            panels: before.panels + panels,
            largest: before.largest.max(numbers),
        });
    }

    /// All rows of a register.
    fn row(&self, handle: &[u32]) -> &[f32] {
        let register = handle.first().and_then(|at| self.memory.get(*at as usize));
        register.map_or(&[], |register| &**register)
    }

    fn row_mut(&mut self, handle: &[u32]) -> Option<&mut [f32]> {
        let register = handle.first().and_then(|at| self.memory.get_mut(*at as usize))?;
        Some(register)
    }

    /// The rows of the batch of a register.
    fn of_batch(&self, handle: &[u32]) -> &[f32] {
        self.row(handle).get(..self.batch).unwrap_or(&[])
    }

    /// Calls `body` with the rows of the batch of one register, for writing, and all registers but
    /// that one.
    fn write<T>(&mut self, handle: &[u32], body: impl FnOnce(&Self, &mut [f32]) -> T) -> T {
        let at = handle.first().map_or(0, |at| *at as usize) % REGISTERS;
        let register = self.memory.get_mut(at).map(core::mem::take).unwrap_or_default();
        let batch = self.batch.min(register.len());
        let done = body(self, register.get_mut(..batch).unwrap_or_default());
        if let Some(place) = self.memory.get_mut(at) {
            *place = register;
        }
        done
    }
}

impl Machine for Registers<'_> {
    /// The number of the register, and its rows.
    type Rows = [u32];

    fn rows_in<'m>(&mut self, memory: &'m mut [f32]) -> &'m mut [u32] {
        let len = self.memory.first().map_or(0, |register| register.len()).min(memory.len());
        let handle: &mut [u32] = bytemuck::cast_slice_mut(memory.get_mut(..2).unwrap_or_default());
        handle.iter_mut().zip([self.used, len as u32]).for_each(|(to, from)| *to = from);
        self.used += 1;
        handle
    }

    fn len(rows: &[u32]) -> usize {
        rows.get(1).map_or(0, |len| *len as usize)
    }

    fn head(rows: &[u32], len: usize) -> Option<&[u32]> {
        (len <= Self::len(rows)).then_some(rows)
    }

    fn head_mut(rows: &mut [u32], len: usize) -> Option<&mut [u32]> {
        (len <= Self::len(rows)).then_some(rows)
    }

    fn numbers(_: &[u32]) -> Option<&[f32]> {
        None
    }

    fn numbers_mut(_: &mut [u32]) -> Option<&mut [f32]> {
        None
    }

    fn fill(&mut self, out: &mut [u32], x: f32) {
        self.count(1, 0);
        self.write(out, |_, out| Host.fill(out, x));
    }

    fn fill_normal(&mut self, out: &mut [u32], rng: &mut Rng) {
        self.count(2, 0);
        self.write(out, |_, out| Host.fill_normal(out, rng));
    }

    fn copy(&mut self, from: &[u32], out: &mut [u32]) {
        self.count(0, 0);
        self.write(out, |all, out| Host.copy(all.of_batch(from), out));
    }

    fn dot(&mut self, a: &[u32], b: &[u32]) -> f32 {
        self.count(1, 0);
        Host.dot(self.of_batch(a), self.of_batch(b))
    }

    fn largest(&mut self, a: &[u32]) -> f32 {
        self.count(1, 0);
        Host.largest(self.row(a))
    }

    fn squares(&mut self, a: &[u32]) -> f32 {
        self.count(1, 0);
        Host.squares(self.of_batch(a))
    }

    fn count_active(&mut self, a: &[u32], sign: f32) -> usize {
        self.count(2, 0);
        Host.count_active(self.of_batch(a), sign)
    }

    fn residual(
        &mut self,
        labels: &[u32],
        first: usize,
        scale: f32,
        out: &mut [u32],
    ) -> Result<f32> {
        self.count(3, 0);
        self.write(out, |all, out| Host.residual(all.row(labels), first, scale, out))
    }

    fn power(&mut self, labels: &[u32], first: usize, scale: f32, rows: usize) -> f32 {
        self.count(4, 0);
        Host.power(self.row(labels), first, scale, rows)
    }

    fn fit(&mut self, labels: &[u32], first: usize, scale: f32, r: &[u32]) -> Along {
        self.count(4, 0);
        Host.fit(self.row(labels), first, scale, self.of_batch(r))
    }

    fn exchange(&mut self, z: &mut [u32], t: &[u32], r: &[u32]) -> f32 {
        self.count(1, 0);
        self.write(z, |all, z| Host.exchange(z, all.of_batch(t), all.of_batch(r)))
    }

    fn near_hinge(&mut self, t: &mut [u32], z: &[u32], r: &[u32], hinge: Hinge) {
        self.count(3, 0);
        self.write(t, |all, t| Host.near_hinge(t, all.of_batch(z), all.of_batch(r), hinge));
    }

    fn halves(&mut self, r: &[u32], z: &[u32], t: &[u32], v: f32, a: f32) -> Along {
        self.count(4, 0);
        Host.halves(self.of_batch(r), self.of_batch(z), self.of_batch(t), v, a)
    }
}

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
        self.registers.batch = rows.len();
        self.inner.select(rows)
    }

    fn apply(&mut self, gates: Gates<'_>, w: Block<'_>, out: &mut [u32]) -> Result<(), S::Source> {
        self.registers.count(gates.numbers() + 2 * w.values().len(), 0);
        self.registers.write(out, |_, out| self.inner.apply(gates, w, out))
    }

    fn adjoint(
        &mut self,
        gates: Gates<'_>,
        i: usize,
        v: &[u32],
        out: &mut [f32],
    ) -> Result<(), S::Source> {
        self.registers.count(gates.numbers(), out.len());
        self.inner.adjoint(gates, i, self.registers.of_batch(v), out)
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
        self.registers.write(out, |_, out| self.inner.forward(gates, w, out))
    }

    fn gradient(
        &mut self,
        gates: Gates<'_>,
        r: &[u32],
        blocks: Range<usize>,
        out: &mut [f32],
    ) -> Result<(), S::Source> {
        self.registers.count(gates.numbers(), out.len());
        self.inner.gradient(gates, self.registers.of_batch(r), blocks, out)
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
        self.inner.gradient_at(gates, support, self.registers.of_batch(r), out, scratch)
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
