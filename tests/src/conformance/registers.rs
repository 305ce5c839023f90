//! A device that holds row vectors, and counts what it exchanges with the algorithm.

use core::ops::Range;
use tamis::Result;
use tamis::base::rng::Rng;
use tamis::network::weights::Block;
use tamis::operator::machine::{Along, Halves, Hinge, Host, Machine};
use tamis::operator::tables::{Residual, Tables};

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

/// Registers in one memory. The handle of a register is as long as the register is, and its first
/// word says where that begins; the other words mean nothing.
#[derive(Debug)]
pub struct Registers<'a> {
    memory: &'a mut [f32],
    used: usize,
    /// What has crossed so far.
    transfers: &'a core::cell::Cell<Transfers>,
}

/// All registers but one that is written.
struct Others<'r> {
    before: &'r [f32],
    after: &'r [f32],
    /// Where `after` begins.
    from: usize,
}

fn place(handle: &[u32]) -> Range<usize> {
    let start = handle.first().map_or(0, |at| *at as usize);
    start..start + handle.len()
}

impl<'r> Others<'r> {
    fn row(&self, handle: &[u32]) -> &'r [f32] {
        let Range { start, end } = place(handle);
        match start.checked_sub(self.from) {
            Some(at) => self.after.get(at..end - self.from).unwrap_or(&[]),
            None => self.before.get(start..end).unwrap_or(&[]),
        }
    }
}

impl<'a> Registers<'a> {
    /// Registers in `memory`.
    pub fn new(memory: &'a mut [f32], transfers: &'a core::cell::Cell<Transfers>) -> Self {
        Self { memory, used: 0, transfers }
    }

    /// Writes `rows` to a new register, whose handle is kept in `handle`.
    pub fn upload<'h>(&mut self, rows: &[f32], handle: &'h mut [f32]) -> &'h mut [u32] {
        let handle = self.rows_in(handle);
        self.write(handle, |_, out| Host.copy(rows, out));
        handle
    }

    /// As [`Self::upload`], two classes in one number.
    pub fn upload_classes<'h>(&mut self, rows: &[u16], handle: &'h mut [f32]) -> &'h mut [u32] {
        let handle = self.rows_in(handle);
        self.write(handle, |_, out| {
            let out: &mut [u16] = bytemuck::cast_slice_mut(out);
            out.iter_mut().zip(rows).for_each(|(out, class)| *out = *class);
        });
        handle
    }

    /// Counts a call.
    pub(super) fn count(&self, numbers: usize, panels: usize) {
        let before = self.transfers.get();
        self.transfers.set(Transfers {
            numbers: before.numbers + numbers,
            panels: before.panels + panels,
            largest: before.largest.max(numbers),
        });
    }

    pub(super) fn row(&self, handle: &[u32]) -> &[f32] {
        self.memory.get(place(handle)).unwrap_or(&[])
    }

    /// Calls `body` with the numbers of one register, for writing.
    pub(super) fn set<T>(&mut self, handle: &[u32], body: impl FnOnce(&mut [f32]) -> T) -> T {
        self.write(handle, |_, out| body(out))
    }

    /// As [`Self::set`], with another register, for reading.
    pub(super) fn update<T>(
        &mut self,
        handle: &[u32],
        other: &[u32],
        body: impl FnOnce(&mut [f32], &[f32]) -> T,
    ) -> T {
        self.write(handle, |all, out| body(out, all.row(other)))
    }

    /// As [`Self::set`], for two registers that are written.
    pub(super) fn set_both<T>(
        &mut self,
        [first, second]: [&[u32]; 2],
        body: impl FnOnce(&mut [f32], &mut [f32]) -> T,
    ) -> T {
        let both = self.memory.get_disjoint_mut([first, second].map(place));
        let [first, second] = both.unwrap_or_default();
        body(first, second)
    }

    fn write<T>(&mut self, handle: &[u32], body: impl FnOnce(&Others<'_>, &mut [f32]) -> T) -> T {
        let Range { start, end } = place(handle);
        let (before, rest) = self.memory.split_at_mut_checked(start).unwrap_or_default();
        let (own, after) = rest.split_at_mut_checked(end - start).unwrap_or_default();
        body(&Others { before, after, from: end }, own)
    }
}

/// The classes of a register.
fn classes_of<'r>(handle: &[u32], row: &'r [f32]) -> &'r [u16] {
    bytemuck::cast_slice(row).get(..handle.len()).unwrap_or(&[])
}

impl Machine for Registers<'_> {
    type Rows = [u32];
    type Classes = [u32];

    fn rows_in<'m>(&mut self, memory: &'m mut [f32]) -> &'m mut [u32] {
        let handle: &mut [u32] = bytemuck::cast_slice_mut(memory);
        handle.iter_mut().take(1).for_each(|at| *at = self.used as u32);
        self.used += handle.len();
        handle
    }

    fn len(rows: &[u32]) -> usize {
        rows.len()
    }

    fn head(rows: &[u32], len: usize) -> Option<&[u32]> {
        rows.get(..len)
    }

    fn head_mut(rows: &mut [u32], len: usize) -> Option<&mut [u32]> {
        rows.get_mut(..len)
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
        self.write(out, |all, out| Host.copy(all.row(from), out));
    }

    fn dot(&mut self, a: &[u32], b: &[u32]) -> f32 {
        self.count(1, 0);
        Host.dot(self.row(a), self.row(b))
    }

    fn largest(&mut self, a: &[u32]) -> f32 {
        self.count(1, 0);
        Host.largest(self.row(a))
    }

    fn squares(&mut self, a: &[u32]) -> f32 {
        self.count(1, 0);
        Host.squares(self.row(a))
    }

    fn count_active(&mut self, a: &[u32], sign: f32) -> usize {
        self.count(2, 0);
        Host.count_active(self.row(a), sign)
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

    fn slacken(&mut self, labels: &[u32], first: usize, slack: f32, r: &mut [u32]) -> f32 {
        self.count(3, 0);
        self.write(r, |all, r| Host.slacken(all.row(labels), first, slack, r))
    }

    fn keep(&mut self, z: &mut [u32], r: &[u32]) {
        self.count(1, 0);
        self.write(z, |all, z| Host.keep(z, all.row(r)));
    }

    fn power(&mut self, labels: &[u32], first: usize, scale: f32, rows: usize) -> f32 {
        self.count(4, 0);
        Host.power(self.row(labels), first, scale, rows)
    }

    fn fit(&mut self, labels: &[u32], first: usize, scale: f32, r: &[u32]) -> Along {
        self.count(4, 0);
        Host.fit(self.row(labels), first, scale, self.row(r))
    }

    fn exchange(&mut self, z: &mut [u32], t: &[u32], r: &[u32]) -> f32 {
        self.count(1, 0);
        self.write(z, |all, z| Host.exchange(z, all.row(t), all.row(r)))
    }

    fn near_hinge(&mut self, t: &mut [u32], z: &[u32], r: &[u32], hinge: Hinge) {
        self.count(3, 0);
        self.write(t, |all, t| Host.near_hinge(t, all.row(z), all.row(r), hinge));
    }

    fn halves(&mut self, r: &[u32], z: &[u32], t: &[u32], halves: Halves) -> Along {
        self.count(4, 0);
        Host.halves(self.row(r), self.row(z), self.row(t), halves)
    }
}

impl Tables for Registers<'_> {
    fn classes(labels: &[u32]) -> usize {
        labels.len()
    }

    fn check_classes(&mut self, labels: &[u32], c: usize) -> Result<()> {
        self.count(2, 0);
        Host.check_classes(classes_of(labels, self.row(labels)), c)
    }

    fn cross_entropy(
        &mut self,
        labels: &[u32],
        rows: Range<usize>,
        c: usize,
        out: &mut [u32],
    ) -> Result<f32> {
        self.count(4, 0);
        self.write(out, |all, out| {
            Host.cross_entropy(classes_of(labels, all.row(labels)), rows, c, out)
        })
    }

    fn count_right(&mut self, labels: &[u32], rows: Range<usize>, c: usize, out: &[u32]) -> usize {
        self.count(4, 0);
        Host.count_right(classes_of(labels, self.row(labels)), rows, c, self.row(out))
    }

    fn scale(&mut self, out: &mut [u32], factor: f32) {
        self.count(1, 0);
        self.write(out, |_, out| Host.scale(out, factor));
    }

    fn divide(&mut self, out: &mut [u32], divisor: f32) {
        self.count(1, 0);
        self.write(out, |_, out| Host.divide(out, divisor));
    }

    fn project(&mut self, r: Residual<'_, [u32]>, wt: Block<'_>, c: usize, out: &mut [u32]) {
        self.count(2 * wt.values().len(), 0);
        self.write(out, |all, out| Host.project(r.map(|r| all.row(r)), wt, c, out));
    }

    fn transpose(&mut self, r: Residual<'_, [u32]>, a: &[u32], out: &mut [f32]) {
        self.count(out.len(), 0);
        Host.transpose(r.map(|r| self.row(r)), self.row(a), out);
    }

    fn transpose_at(
        &mut self,
        r: Residual<'_, [u32]>,
        a: &[u32],
        wt: Block<'_>,
        c: usize,
        out: &mut [f32],
    ) {
        self.count(2 * out.len(), 0);
        Host.transpose_at(r.map(|r| self.row(r)), self.row(a), wt, c, out);
    }

    fn add_outer(&mut self, a: &[u32], wt: Block<'_>, c: usize, out: &mut [u32]) {
        self.count(2 * wt.values().len(), 0);
        self.write(out, |all, out| Host.add_outer(all.row(a), wt, c, out));
    }

    fn exchange_outer(
        &mut self,
        a: &[u32],
        wt: Block<'_>,
        b: &[u32],
        new: Block<'_>,
        c: usize,
        out: &mut [u32],
    ) {
        self.count(3 * wt.values().len(), 0);
        self.write(out, |all, out| Host.exchange_outer(all.row(a), wt, all.row(b), new, c, out));
    }

    fn add_output(&mut self, z: &[u32], k: usize, c: usize, open: &mut [u32], out: &mut [u32]) {
        self.count(2, 0);
        let all = self.memory.get_disjoint_mut([z, open, out].map(place));
        let [z, open, out] = all.unwrap_or_default();
        Host.add_output(z, k, c, open, out);
    }

    fn add_open(&mut self, a: &[u32], wt: Block<'_>, open: &[u32], c: usize, out: &mut [u32]) {
        self.count(2 * wt.values().len(), 0);
        self.write(out, |all, out| Host.add_open(all.row(a), wt, all.row(open), c, out));
    }

    fn open_shares(&mut self, open: &[u32], out: &mut [f32]) {
        self.count(out.len(), 0);
        Host.open_shares(self.row(open), out);
    }

    fn transpose_open(
        &mut self,
        r: &[u32],
        open: &[u32],
        a: &[u32],
        out: &mut [f32],
        norms: &mut [f32],
    ) {
        self.count(2 * out.len(), 0);
        Host.transpose_open(self.row(r), self.row(open), self.row(a), out, norms);
    }

    fn open_norms(
        &mut self,
        open: &[u32],
        a: &[u32],
        wt: Block<'_>,
        c: usize,
        whole: f32,
        out: &mut [f32],
    ) {
        self.count(2 * out.len() + 1, 0);
        Host.open_norms(self.row(open), self.row(a), wt, c, whole, out);
    }

    fn open_square(&mut self, open: &[u32], a: &[u32], wt: Block<'_>, c: usize) -> f32 {
        self.count(2 * wt.values().len() + 1, 0);
        Host.open_square(self.row(open), self.row(a), wt, c)
    }

    fn pair(&mut self, r: &[u32], a: &[u32], b: &[u32], ratio: f32) -> Along {
        self.count(3, 0);
        Host.pair(self.row(r), self.row(a), self.row(b), ratio)
    }
}
