//! The second layer: outputs that are summed up where they are open.
//!
//! `f(x) = z_0 + sum_(k>0) relu(z_k)`, z being the outputs of the network: descending the loss means
//! what it means for several outputs, the residual of a row being that of each of its open outputs,
//! and 0 for the others. A normal product sums up the open outputs along the direction, and takes
//! that for the residual.

use super::{OutputLayer, SecondLayer};
use crate::base::error::Result;
use crate::base::math::sqrt;
use crate::learn::lm::fit::{Fit, Readout, cut};
use crate::learn::lm::model::OutputBuffers;
use crate::network::gates::Gates;
use crate::network::net::Network;
use crate::network::weights::Block;
use crate::operator::factored::{Factored, GradientMut, Tangent};
use crate::operator::sensing::{Rows, row_head};
use crate::operator::tables::{Residual, Tables, open_words};

impl<S: Factored> Readout<S> for SecondLayer<'_, S> {}

impl<S: Factored> SecondLayer<'_, S> {
    /// The bits of so many rows.
    fn bits(&self, rows: usize, c: usize) -> &Rows<S> {
        cut::<S>(self.open, rows.saturating_mul(open_words(c)))
    }
}

impl<S: Factored> OutputLayer<S> for SecondLayer<'_, S> {
    const FREE: usize = 1;

    fn new_outputs(_most: usize) -> usize {
        1
    }

    fn forward(fit: &mut Fit<'_, S, Self>, net: Network<'_>) -> Result<(), S::Source> {
        let (rows, gates) = (fit.rows(), fit.gates(net.w()));
        let out = row_head::<S>(&mut *fit.residual, rows)?;
        let open = row_head::<S>(fit.head.open, rows.saturating_mul(open_words(fit.outputs)))?;
        fit.sensing.net_sum_forward(gates, net, open, out, fit.scratch)
    }

    fn reopen(fit: &mut Fit<'_, S, Self>, net: Network<'_>) -> Result<(), S::Source> {
        fit.read();
        Self::forward(fit, net)
    }

    fn residual<'r>(
        &'r self,
        residual: &'r Rows<S>,
        rows: usize,
        c: usize,
    ) -> Residual<'r, Rows<S>> {
        Residual::Open { r: cut::<S>(residual, rows), open: self.bits(rows, c) }
    }

    fn normal(
        fit: &mut Fit<'_, S, Self>,
        gates: Gates<'_>,
        at: Tangent<'_>,
        out: GradientMut<'_>,
    ) -> Result<(), S::Source> {
        let rows = fit.rows();
        let image = row_head::<S>(&mut *fit.residual, rows)?;
        let open = fit.head.bits(rows, fit.outputs);
        fit.sensing.net_sum_normal_at(gates, at, open, out, image, fit.scratch)
    }

    fn mean_square(fit: &mut Fit<'_, S, Self>, wt: Block<'_>, a: &Rows<S>) -> f32 {
        let open = fit.head.bits(fit.rows(), fit.outputs);
        fit.sensing.machine().open_square(open, a, wt, fit.outputs)
    }

    fn norms_at(
        fit: &mut Fit<'_, S, Self>,
        a: &Rows<S>,
        wt: Block<'_>,
        whole: f32,
        out: &mut [f32],
    ) {
        let open = fit.head.bits(fit.rows(), fit.outputs);
        fit.sensing.machine().open_norms(open, a, wt, fit.outputs, whole, out);
    }

    fn open_shares(fit: &mut Fit<'_, S, Self>, out: &mut [f32]) {
        let open = fit.head.bits(fit.rows(), fit.outputs);
        fit.sensing.machine().open_shares(open, out);
    }

    fn choose(
        fit: &mut Fit<'_, S, Self>,
        z: &Rows<S>,
        length: f32,
        l: usize,
        out: &mut OutputBuffers<'_, S>,
    ) -> f32 {
        let OutputBuffers { entries, along, other: norms, .. } = out;
        let (rows, c) = (fit.rows(), fit.outputs);
        let (r, open) = (cut::<S>(&*fit.residual, rows), fit.head.bits(rows, c));
        fit.sensing.machine().transpose_open(r, open, z, along, norms);
        // What a handful of rows say is not to be trusted.
        let least = 0.01 * length * length * fit.rows() as f32;
        let norm = |k: usize| norms.get(k).copied().filter(|norm| *norm > least);
        let key = |k: usize, g: f32| norm(k).map_or(0.0, |norm| g / sqrt(norm));
        let value = |k: usize, won: f32| norm(k).map_or(0.0, |norm| won * length / sqrt(norm));
        entries.choose(along, 0, l, key, value);
        let view = entries.view(fit.sensing.blocks());
        let won = view.block(0).entries().map(|(k, v)| v * v * norm(k).unwrap_or(0.0));
        won.sum::<f32>() / (length * length)
    }

    fn saliences(
        fit: &mut Fit<'_, S, Self>,
        net: Network<'_>,
        wt: Block<'_>,
        _size: f32,
        z: &mut Rows<S>,
        out: &mut [f32],
    ) -> Result<(), S::Source> {
        let rows = fit.rows() as f32;
        fit.image(fit.gates(net.w()), net.w().block(wt.neuron()), z)?;
        let whole = fit.norm2(z)?;
        Self::norms_at(fit, z, wt, whole, out);
        for ((k, v), out) in wt.entries().zip(out) {
            // Weights without a gate stay, and do not count.
            *out = if k == 0 { f32::INFINITY } else { v.abs() * sqrt(*out / rows) };
        }
        Ok(())
    }
}
