//! Searches for networks with output weights, `sum_i relu(w_i · x) wt_i`: of several outputs, or of
//! two layers.
//!
//! Both sides are sparse and share one budget. A neuron with weights on one side only gives nothing
//! and gets no gradient, so such neurons are emptied wherever they arise. After each fit the sides
//! of a neuron are brought to about one size by powers of two, which keeps every bit of the
//! outputs.

mod columns;
mod equations;
mod second;
mod several;
mod support;
mod two_layers;

use super::fit::{Fit, Readout, cut};
use super::goal::SeveralOutputs;
use super::model::{Model, OutputBuffers, square, square_in};
use super::solver::entries;
use super::support::add;
use crate::base::error::Result;
use crate::network::gates::Gates;
use crate::network::net::Network;
use crate::network::weights::Block;
use crate::operator::factored::{Factored, GradientMut, Tangent};
use crate::operator::machine::Machine;
use crate::operator::sensing::{Rows, Sensing, row_head};
use crate::operator::tables::{Residual, Tables};

/// A second layer, the sum of whose neurons and output 0 is the prediction.
pub(super) struct SecondLayer<'a, S: Sensing> {
    /// Which outputs are open, as in [`Residual::Open`].
    pub(super) open: &'a mut Rows<S>,
    pub(super) neurons: usize,
}

/// A head with output weights, whatever the operator: one output has none.
pub(super) trait Weighted {}

impl Weighted for SeveralOutputs {}

impl<S: Sensing> Weighted for SecondLayer<'_, S> {}

/// What follows the outputs: a second layer, or nothing, which is what is provided. The residual
/// must be current.
pub(super) trait OutputLayer<S: Factored>: Readout<S> + Weighted {
    /// Outputs without a gate, the first ones, whose weights do not count in s.
    const FREE: usize = 0;

    /// Output weights that a new neuron starts with, of at most `most`.
    fn new_outputs(most: usize) -> usize {
        most
    }

    /// What `net` predicts, in the place of the residual.
    fn forward(fit: &mut Fit<'_, S, Self>, net: Network<'_>) -> Result<(), S::Source> {
        let (terms, gates) = (fit.terms(), fit.gates(net.w()));
        let out = row_head::<S>(&mut *fit.residual, terms)?;
        if net.w().nnz() == 0 || net.wt().nnz() == 0 {
            fit.sensing.machine().fill(out, 0.0);
            return Ok(());
        }
        fit.sensing.net_forward(gates, net, out, fit.scratch)
    }

    /// Opens the outputs that are open under `net` again after others were tried; the residual is
    /// lost.
    fn reopen(_fit: &mut Fit<'_, S, Self>, _net: Network<'_>) -> Result<(), S::Source> {
        Ok(())
    }

    /// The residual of so many rows of c outputs.
    fn residual<'r>(
        &'r self,
        residual: &'r Rows<S>,
        rows: usize,
        c: usize,
    ) -> Residual<'r, Rows<S>> {
        Residual::Each(cut::<S>(residual, rows.saturating_mul(c)))
    }

    /// `JᵀJ p` under `gates` and the outputs that are open; the residual is lost.
    fn normal(
        fit: &mut Fit<'_, S, Self>,
        gates: Gates<'_>,
        at: Tangent<'_>,
        out: GradientMut<'_>,
    ) -> Result<(), S::Source>;

    /// The mean square of what one more of activation `a` adds to the prediction, where it is
    /// active.
    fn mean_square(_fit: &mut Fit<'_, S, Self>, wt: Block<'_>, _a: &Rows<S>) -> f32 {
        square(wt)
    }

    /// The squared norms of the activation `a` as the outputs that `wt` leads to see it; `whole` for
    /// all rows.
    fn norms_at(
        _fit: &mut Fit<'_, S, Self>,
        _a: &Rows<S>,
        _wt: Block<'_>,
        whole: f32,
        out: &mut [f32],
    ) {
        out.fill(whole);
    }

    /// The fraction of the rows where each output is open.
    fn open_shares(_fit: &mut Fit<'_, S, Self>, out: &mut [f32]) {
        out.fill(1.0);
    }

    /// Chooses the `l` output weights of least squares that win most, for the activation `z` of
    /// root mean square `length`; returns what they win.
    fn choose(
        fit: &mut Fit<'_, S, Self>,
        z: &Rows<S>,
        length: f32,
        l: usize,
        out: &mut OutputBuffers<'_, S>,
    ) -> f32;

    /// What the output weights of a neuron of root mean square `size` contribute; its activation is
    /// formed in `z` where it is needed.
    fn saliences(
        fit: &mut Fit<'_, S, Self>,
        net: Network<'_>,
        wt: Block<'_>,
        size: f32,
        z: &mut Rows<S>,
        out: &mut [f32],
    ) -> Result<(), S::Source>;
}

impl<S: Factored, H: OutputLayer<S>> Model<'_, S, H> {
    /// Weights of outputs without a gate.
    fn passed(&self) -> usize {
        let first = |wt: &Block<'_>| wt.entries().next().is_some_and(|(k, _)| k < H::FREE);
        self.net.view().wt().blocks().filter(first).count()
    }

    /// Adds to output 0 a zero from every live neuron that leads there not, as far as there is room.
    fn pass_through(&mut self) -> Result<(), S::Source> {
        let (c, room) = (self.fit.outputs, self.net.room() - self.net.nnz());
        let Self { solver, net, .. } = self;
        let view = net.view();
        let lacks = |&i: &usize| view.wt().block(i).entries().next().is_none_or(|(k, _)| k > 0);
        let lacking = view.w().blocks().map(|w| w.neuron()).filter(lacks).take(room);
        let zeros = lacking.map(|i| ((i * c) as u32, 0.0));
        let (index, value) = entries(solver.rhs, solver.delta, zeros);
        net.edit_wt(|wt| add(wt, index, value))
    }

    /// Brings both sides of every neuron to about one size, by powers of two.
    fn balance(&mut self) {
        for i in 0..self.blocks() {
            let (w, wt) = (self.net.view().w().block(i), self.net.view().wt().block(i));
            let ratio = square(wt) / square_in(w, self.columns.scales());
            let Some((up, down)) = quarter(ratio) else { continue };
            let (w, wt) = self.net.values_of(i);
            w.iter_mut().for_each(|w| *w *= up);
            wt.iter_mut().for_each(|wt| *wt *= down);
        }
    }
}

impl<S: Factored, H: OutputLayer<S>> Fit<'_, S, H> {
    /// `out = R wt`, one number a row.
    fn project(&mut self, wt: Block<'_>, out: &mut Rows<S>) {
        let r = self.head.residual(self.residual, self.rows(), self.outputs);
        self.sensing.machine().project(r, wt, self.outputs, out);
    }

    /// `out = Rᵀ a`, one number per output, for one number a row.
    fn transpose(&mut self, a: &Rows<S>, out: &mut [f32]) {
        out.fill(0.0);
        let r = self.head.residual(self.residual, self.rows(), self.outputs);
        self.sensing.machine().transpose(r, a, out);
    }
}

/// The power of two nearest to the fourth root of x, and its inverse; none where that is 1.
fn quarter(x: f32) -> Option<(f32, f32)> {
    if !(x.is_normal() && x > 0.0) {
        return None;
    }
    let exponent = (x.to_bits() >> 23) as i32 - 127;
    // Half a step is as good as the next: rounding down from two above.
    let root = (exponent + 2).div_euclid(4);
    let power = |k: i32| f32::from_bits(((127 + k) as u32) << 23);
    (root != 0).then(|| (power(root), power(-root)))
}

#[cfg(test)]
mod tests;
