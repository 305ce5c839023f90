//! The reference operator: gates and products row by row, over any [`Samples`], with the same bits
//! on every target.
//!
//! Bulk operations are overridden to read each row once instead of once per block, with the bits of
//! the provided bodies (the conformance suite compares them). Where gates are random, a generator
//! of d numbers belongs to each block, so these bodies, block by block, are the better order and
//! stay.

use crate::base::budget;
use crate::base::error::{self, Error, Result};
use crate::base::math;
use crate::data::samples::Samples;
use crate::network::gates::{Cursor, Gate, Gates};
use crate::network::net::{Head, Network};
use crate::network::weights::{Block, Weights, check_support, runs};
use crate::operator::factored::{Factored, GradientMut, provided as outputs};
use crate::operator::machine::Host;
use crate::operator::sensing::{Done, Sensing, provided};
use crate::operator::tables::{Residual, add_row, open_output, open_words};
use core::ops::Range;

/// Sensing by a gated linear network over rows read on demand.
///
/// ```
/// use tamis::{base::budget, operator::gated::Gated, network::gates::Gates, data::samples::Rows, operator::sensing::Sensing, network::weights::Weights};
/// let x = [1.0, 2.0, -1.0, 0.5];
/// let mut memory = [0.0; budget::gated_words(2, 1)];
/// let mut sensing = Gated::new(Rows::new(&x, 2).unwrap(), 1, 1, &mut memory).unwrap();
/// let w = Weights::new(2, 1, &[0], &[3.0]).unwrap();
/// let relu = Gates::of(w, Default::default(), Default::default(), 0, 0);
/// let mut y = [0.0; 2];
/// sensing.forward(relu, w, &mut y).unwrap();
/// assert_eq!(y, [3.0, 0.0]);
/// ```
#[derive(Debug)]
pub struct Gated<'a, X> {
    samples: X,
    hidden: usize,
    panel: usize,
    batch: Range<usize>,
    /// One row of the data, d.
    row: &'a mut [f32],
    /// One random generator, d.
    generator: &'a mut [f32],
    /// Gate weights of one row, one per neuron, m.
    open: &'a mut [f32],
    host: Host,
}

impl<'a, X: Samples> Gated<'a, X> {
    /// Gates `hidden` neurons over `samples`, `panel` blocks per gradient call; `memory` as
    /// [`budget::gated_words`] says. The batch is all rows.
    ///
    /// # Errors
    /// [`Error::Range`] if a size is 0, [`Error::Budget`] if the memory is too small.
    pub fn new(samples: X, hidden: usize, panel: usize, memory: &'a mut [f32]) -> Result<Self> {
        let (n, d) = (samples.samples(), samples.inputs());
        error::range("samples", n, 1, usize::MAX)?;
        error::range("inputs", d, 1, usize::MAX)?;
        error::range("hidden neurons", hidden, 1, usize::MAX)?;
        error::range("panel", panel, 1, usize::MAX)?;
        budget::enough(budget::gated_words(d, hidden), memory.len()).map_err(Error::widen)?;
        let (row, rest) = memory.split_at_mut(d);
        let (generator, rest) = rest.split_at_mut(d);
        let (open, _) = rest.split_at_mut(hidden);
        let (panel, batch) = (panel.min(hidden), 0..n);
        Ok(Self { samples, hidden, panel, batch, row, generator, open, host: Host })
    }

    /// Calls `body(self, k, position)` with every row k of the batch in `self.row`.
    fn each_row(&mut self, mut body: impl FnMut(&mut Self, usize)) -> Result<(), X::Source> {
        for (position, k) in self.batch.clone().enumerate() {
            self.samples.row(k, self.row)?;
            body(self, position);
        }
        Ok(())
    }

    /// Checks that gates are of these rows and neurons.
    fn check(&self, gates: Gates<'_>) -> Result<(), X::Source> {
        gates.check(self.row.len(), self.hidden).map_err(Error::widen)
    }

    /// The same of gates, and of flat indices.
    fn check_support(&self, gates: Gates<'_>, support: &[u32]) -> Result<(), X::Source> {
        self.check(gates)?;
        check_support(self.row.len(), self.hidden, support).map_err(Error::widen)
    }

    /// The same of gates, and of weights.
    fn check_weights(&self, gates: Gates<'_>, w: Weights<'_>) -> Result<(), X::Source> {
        self.check(gates)?;
        w.check(self.row.len(), self.hidden).map_err(Error::widen)
    }

    /// Adds the outputs of the current row; no random gates.
    fn add_outputs(&self, gates: Gates<'_>, net: Network<'_>, out: &mut [f32]) {
        let (mut cursor, mut wt) = (gates.cursor(), net.wt());
        for block in net.w().blocks() {
            let open = self.open(&mut cursor, block.neuron());
            if open != 0.0 {
                let to = wt.take_block(block.neuron());
                add_row(to, open * block.dot(self.row), out);
            }
        }
    }

    /// Gate weight of a neuron on the current row; no random gates.
    fn open(&self, cursor: &mut Cursor<'_>, i: usize) -> f32 {
        cursor.at(i).weight(self.row, &[])
    }
}

impl<X: Samples> Sensing for Gated<'_, X> {
    type Source = X::Source;
    type Machine = Host;

    fn machine(&mut self) -> &mut Host {
        &mut self.host
    }

    fn rows(&self) -> usize {
        self.samples.samples()
    }

    fn local_rows(&self) -> usize {
        self.batch.len()
    }

    fn inputs(&self) -> usize {
        self.row.len()
    }

    fn blocks(&self) -> usize {
        self.hidden
    }

    fn panel(&self) -> usize {
        self.panel
    }

    fn select(&mut self, rows: Range<usize>) -> Done<Self> {
        error::range("rows of the batch", rows.end, rows.start.saturating_add(1), self.rows())?;
        self.batch = rows;
        Ok(())
    }

    fn apply(&mut self, gates: Gates<'_>, w: Block<'_>, out: &mut [f32]) -> Done<Self> {
        error::length("apply output", out.len(), self.local_rows())?;
        self.check(gates)?;
        w.check(self.row.len(), self.hidden).map_err(Error::widen)?;
        let gate = gates.gate(w.neuron());
        if gate == Gate::Closed {
            return Ok(());
        }
        gate.generator(self.generator);
        self.each_row(|this, at| {
            let open = gate.weight(this.row, this.generator);
            if let Some(out) = out.get_mut(at).filter(|_| open != 0.0) {
                *out += open * w.dot(this.row);
            }
        })
    }

    fn adjoint(&mut self, gates: Gates<'_>, i: usize, v: &[f32], out: &mut [f32]) -> Done<Self> {
        error::range("block", i, 0, self.hidden - 1)?;
        error::length("adjoint input", v.len(), self.local_rows())?;
        error::length("adjoint output", out.len(), self.inputs())?;
        self.check(gates)?;
        let gate = gates.gate(i);
        if gate == Gate::Closed {
            return Ok(());
        }
        gate.generator(self.generator);
        self.each_row(|this, at| {
            let open = gate.weight(this.row, this.generator);
            if let Some(v) = v.get(at).filter(|_| open != 0.0) {
                math::axpy(open * v, this.row, out);
            }
        })
    }

    fn forward(&mut self, gates: Gates<'_>, w: Weights<'_>, out: &mut [f32]) -> Done<Self> {
        if gates.may_be_random() {
            return provided::forward(self, gates, w, out);
        }
        error::length("forward output", out.len(), self.local_rows())?;
        self.check_weights(gates, w)?;
        out.fill(0.0);
        self.each_row(|this, at| {
            let Some(out) = out.get_mut(at) else { return };
            let mut cursor = gates.cursor();
            for block in w.blocks() {
                let open = this.open(&mut cursor, block.neuron());
                if open != 0.0 {
                    *out += open * block.dot(this.row);
                }
            }
        })
    }

    fn gradient(
        &mut self,
        gates: Gates<'_>,
        r: &[f32],
        blocks: Range<usize>,
        out: &mut [f32],
    ) -> Done<Self> {
        if gates.may_be_random() {
            return provided::gradient(self, gates, r, blocks, out);
        }
        let d = self.inputs();
        error::range("block", blocks.end, blocks.start, self.hidden)?;
        error::length("residual", r.len(), self.local_rows())?;
        error::length("gradient panel", out.len(), blocks.len() * d)?;
        self.check(gates)?;
        out.fill(0.0);
        self.each_row(|this, at| {
            let r = r.get(at).copied().unwrap_or(0.0);
            let mut cursor = gates.cursor();
            for (i, out) in blocks.clone().zip(out.chunks_mut(d)) {
                let open = this.open(&mut cursor, i);
                if open != 0.0 {
                    math::axpy(open * r, this.row, out);
                }
            }
        })
    }

    fn gradient_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        r: &[f32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<Self> {
        if gates.may_be_random() {
            return provided::gradient_at(self, gates, support, r, out, scratch);
        }
        error::length("residual", r.len(), self.local_rows())?;
        error::length("restricted gradient", out.len(), support.len())?;
        self.check_support(gates, support)?;
        out.fill(0.0);
        self.each_row(|this, at| {
            let r = r.get(at).copied().unwrap_or(0.0);
            let mut cursor = gates.cursor();
            for (i, run) in runs(this.row.len(), support) {
                let open = this.open(&mut cursor, i);
                if open != 0.0 {
                    add_at(this.row, i, support, out, run, |x| open * r * x);
                }
            }
        })
    }

    fn normal_at(
        &mut self,
        gates: Gates<'_>,
        p: Weights<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<Self> {
        if gates.may_be_random() {
            return provided::normal_at(self, gates, p, out, scratch);
        }
        error::length("restricted product", out.len(), p.nnz())?;
        self.check_weights(gates, p)?;
        out.fill(0.0);
        self.each_row(|this, _| {
            let mut image = 0.0;
            let mut cursor = gates.cursor();
            for block in p.blocks() {
                let open = this.open(&mut cursor, block.neuron());
                if let Some(kept) = this.open.get_mut(block.neuron()) {
                    *kept = open;
                }
                if open != 0.0 {
                    image += open * block.dot(this.row);
                }
            }
            for (i, run) in runs(this.row.len(), p.index()) {
                let open = this.open.get(i).copied().unwrap_or(0.0);
                if open != 0.0 {
                    add_at(this.row, i, p.index(), out, run, |x| open * image * x);
                }
            }
        })
    }

    fn diagonal_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<Self> {
        if gates.may_be_random() {
            return provided::diagonal_at(self, gates, support, out, scratch);
        }
        error::length("diagonal", out.len(), support.len())?;
        self.check_support(gates, support)?;
        out.fill(0.0);
        self.each_row(|this, _| {
            let mut cursor = gates.cursor();
            for (i, run) in runs(this.row.len(), support) {
                let open = this.open(&mut cursor, i);
                add_at(this.row, i, support, out, run, |x| (open * x) * (open * x));
            }
        })
    }

    fn column_norms(
        &mut self,
        gates: Gates<'_>,
        blocks: Range<usize>,
        out: &mut [f32],
        _scratch: &mut [f32],
    ) -> Done<Self> {
        let d = self.inputs();
        error::range("block", blocks.end, blocks.start, self.hidden)?;
        error::length("column norms", out.len(), blocks.len() * d)?;
        self.check(gates)?;
        out.fill(0.0);
        for (i, out) in blocks.zip(out.chunks_mut(d)) {
            let gate = gates.gate(i);
            gate.generator(self.generator);
            self.each_row(|this, _| {
                let open = gate.weight(this.row, this.generator);
                if open != 0.0 {
                    for (out, x) in out.iter_mut().zip(this.row.iter()) {
                        *out += open * open * (x * x);
                    }
                }
            })?;
        }
        Ok(())
    }
}

impl<X: Samples> Factored for Gated<'_, X> {
    fn net_forward(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<Self> {
        if gates.may_be_random() {
            return outputs::forward(self, gates, net, out, scratch);
        }
        net.check(self.inputs(), self.hidden).map_err(Error::widen)?;
        let c = net.outputs();
        error::length("outputs", out.len(), self.local_rows().saturating_mul(c))?;
        if let Head::Signs(_) = net.head() {
            return self.forward(gates, net.w(), out);
        }
        self.check(gates)?;
        out.fill(0.0);
        self.each_row(|this, at| {
            let Some(out) = out.get_mut(at * c..(at + 1) * c) else { return };
            this.add_outputs(gates, net, out);
        })
    }

    fn net_sum_forward(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        open: &mut [f32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<Self> {
        let c = outputs::check_sum(self, net, open, out)?;
        self.check(gates)?;
        let z = match scratch.get_mut(..c) {
            Some(z) if !gates.may_be_random() => z,
            _ => return outputs::sum_forward(self, gates, net, open, out, scratch),
        };
        let (words, open): (_, &mut [u32]) = (open_words(c), bytemuck::cast_slice_mut(open));
        self.each_row(|this, at| {
            let first = at * words;
            let (Some(open), Some(out)) = (open.get_mut(first..first + words), out.get_mut(at))
            else {
                return;
            };
            z.fill(0.0);
            open.fill(0);
            this.add_outputs(gates, net, z);
            *out = z.iter().enumerate().map(|(k, z)| open_output(k, *z, open)).sum();
        })
    }

    fn net_gradient(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        r: Residual<'_, [f32]>,
        blocks: Range<usize>,
        out: GradientMut<'_>,
        scratch: &mut [f32],
    ) -> Done<Self> {
        if gates.may_be_random() {
            return outputs::gradient(self, gates, net, r, blocks, out, scratch);
        }
        let (d, c) = outputs::check(self, net, r)?;
        self.check(gates)?;
        out.check_panel(net, &blocks).map_err(Error::widen)?;
        let GradientMut { w: dw, wt: dwt } = out;
        self.each_row(|this, at| {
            let r = r.row(at, c);
            let (mut cursor, mut w, mut wt) = (gates.cursor(), net.w(), net.wt());
            let panels = dw.chunks_mut(d).zip(dwt.chunks_mut(c.max(1)));
            for (i, (dw, dwt)) in blocks.clone().zip(panels) {
                let open = this.open(&mut cursor, i);
                if open != 0.0 {
                    math::axpy(open * r.dot(wt.take_block(i)), this.row, dw);
                    r.add_to(open * w.take_block(i).dot(this.row), dwt);
                }
            }
        })
    }

    fn net_gradient_at(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        r: Residual<'_, [f32]>,
        out: GradientMut<'_>,
        scratch: &mut [f32],
    ) -> Done<Self> {
        if gates.may_be_random() {
            return outputs::gradient_at(self, gates, net, r, out, scratch);
        }
        let (_, c) = outputs::check(self, net, r)?;
        self.check(gates)?;
        out.check_support(net).map_err(Error::widen)?;
        let GradientMut { w: dw, wt: dwt } = out;
        dw.fill(0.0);
        dwt.fill(0.0);
        self.each_row(|this, at| {
            let r = r.row(at, c);
            let (mut cursor, mut wt) = (gates.cursor(), net.wt());
            let mut dw = &mut *dw;
            for from in net.w().blocks() {
                let to = wt.take_block(from.neuron());
                let dw = outputs::take(&mut dw, from.values().len());
                // What is left of the view begins with this block.
                let first = net.wt().nnz() - wt.nnz();
                let open = this.open(&mut cursor, from.neuron());
                if open == 0.0 {
                    continue;
                }
                let back = open * r.dot(to);
                for (out, (j, _)) in dw.iter_mut().zip(from.entries()) {
                    *out += back * this.row.get(j).copied().unwrap_or(0.0);
                }
                let a = open * from.dot(this.row);
                for (out, (k, _)) in dwt.iter_mut().skip(first).zip(to.entries()) {
                    *out += r.at(k) * a;
                }
            }
        })
    }
}

/// `out[run] += term(x)` at the inputs that `support[run]` names in block `i`.
fn add_at(
    row: &[f32],
    i: usize,
    support: &[u32],
    out: &mut [f32],
    run: Range<usize>,
    term: impl Fn(f32) -> f32,
) {
    let picks = support.get(run.clone()).unwrap_or(&[]);
    for (out, &j) in out.get_mut(run).unwrap_or(&mut []).iter_mut().zip(picks) {
        *out += term(row.get((j as usize).wrapping_sub(i * row.len())).copied().unwrap_or(0.0));
    }
}
