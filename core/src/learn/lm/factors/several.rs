//! Several outputs: each has a label.

use super::OutputLayer;
use crate::base::error::{Error, Result};
use crate::base::math::sqrt;
use crate::base::rng::{Rng, stream};
use crate::learn::lm::fit::Fit;
use crate::learn::lm::goal::SeveralOutputs;
use crate::learn::lm::model::{Model, Moves, OutputBuffers, Support};
use crate::learn::lm::sides::Sides;
use crate::learn::lm::signed::FLIP;
use crate::learn::lm::solver::Solver;
use crate::learn::lm::support::add;
use crate::network::gates::Gates;
use crate::network::net::Network;
use crate::network::top::Top;
use crate::network::weights::Block;
use crate::operator::factored::{Factored, GradientMut, Tangent};
use crate::operator::sensing::{Rows, head_mut, row_head};
use crate::operator::tables::Tables;

impl<S: Factored> OutputLayer<S> for SeveralOutputs {
    fn normal(
        fit: &mut Fit<'_, S, Self>,
        gates: Gates<'_>,
        at: Tangent<'_>,
        out: GradientMut<'_>,
    ) -> Result<(), S::Source> {
        let terms = fit.terms();
        let image = row_head::<S>(&mut *fit.residual, terms)?;
        fit.sensing.net_normal_at(gates, at, out, image, fit.scratch)
    }

    fn choose(
        fit: &mut Fit<'_, S, Self>,
        z: &Rows<S>,
        length: f32,
        l: usize,
        out: &mut OutputBuffers<'_, S>,
    ) -> f32 {
        let rows = fit.rows() as f32;
        fit.transpose(z, out.along);
        // Of unit activation: |a|² is n.
        let size = length * rows;
        out.entries.choose(out.along, 0, l, |_, g| g, |_, g| g / size);
        out.entries.value().iter().map(|v| v * v).sum::<f32>() * rows
    }

    fn saliences(
        _fit: &mut Fit<'_, S, Self>,
        _net: Network<'_>,
        wt: Block<'_>,
        size: f32,
        _z: &mut Rows<S>,
        out: &mut [f32],
    ) -> Result<(), S::Source> {
        out.iter_mut().zip(wt.values()).for_each(|(out, v)| *out = v.abs() * size);
        Ok(())
    }
}

impl<S: Factored> Moves<S> for Model<'_, S, SeveralOutputs> {
    /// Under random gates and for random output weights, half of s where `|g| / c` is largest,
    /// `w = g / c²` on them; then the other half where output weights of least squares win most.
    fn start(&mut self, seed: u64) -> Result<(), S::Source> {
        self.net.clear();
        self.loss()?;
        let (half, terms) = (self.task.nnz / 2, self.fit.terms() as f32);
        self.start_inputs(seed, half, terms, |i, wt| {
            wt.normal(Rng::new(seed, stream::OUTPUTS + i as u64));
        })?;
        let (c, rows) = (self.fit.outputs, self.fit.rows());
        let Self { fit, solver: Solver { g, p, h, .. }, net, single, out, .. } = self;
        let (z, index) = (row_head::<S>(single.z, rows)?, bytemuck::cast_slice_mut(g));
        let mut top = Top::new(head_mut(&mut *index, half)?, head_mut(p, half)?);
        let view = net.view();
        for (block, norm) in view.w().blocks().zip(h.iter_mut()) {
            fit.image(fit.gates(view.w()), block, z)?;
            *norm = sqrt(fit.norm2(z)?);
            fit.transpose(z, out.along);
            for (g, at) in out.along.iter().zip((block.neuron() * c) as u32..) {
                if *norm > 0.0 {
                    top.push(at, g / *norm);
                }
            }
        }
        let picked = top.finish().ok_or(Error::Diverged { step: 0 })?;
        let (index, values) = (head_mut(index, picked)?, head_mut(p, picked)?);
        for (v, &k) in values.iter_mut().zip(&*index) {
            let neuron = k as usize / c.max(1);
            let norm = view.w().blocks().zip(&**h).find(|(block, _)| block.neuron() == neuron);
            *v /= norm.map_or(1.0, |(_, norm)| *norm);
        }
        net.edit_wt(|wt| add(wt, index, values))?;
        net.clear_halves();
        self.fit_scale()?;
        self.balance();
        Ok(())
    }

    fn is_relaxed(&self) -> bool {
        false
    }

    fn relax(&mut self) -> Result<(), S::Source> {
        Ok(())
    }

    /// Flipped neurons get the output weights of least squares on their support. With a = relu(z)
    /// and b = relu(-z) that changes the squared error by `2 wt · Rᵀa + |wt|² |a|² - |Rᵀb|² / |b|²`,
    /// the last norm over the support of wt.
    fn flip(&mut self, loss: f32) -> Result<f32, S::Source> {
        let (rows, c) = (self.fit.rows(), self.fit.outputs);
        let mut total = loss * self.fit.terms() as f32;
        let mut flipped = 0;
        for i in 0..self.blocks() {
            let Self { fit, net, single, out, .. } = self;
            let view = net.view();
            let (block, wt) = (view.w().block(i), view.wt().block(i));
            if block.is_empty() {
                continue;
            }
            let (a, b) = (row_head::<S>(single.z, rows)?, row_head::<S>(single.t, rows)?);
            fit.image(fit.gates(view.w()), block, a)?;
            single.entries.take(block, i);
            single.entries.scale(-1.0);
            let turned = single.entries.view(view.w().hidden());
            fit.image(fit.gates(turned), turned.block(i), b)?;
            fit.transpose(a, out.along);
            fit.transpose(b, out.other);
            let (of_a, of_b) = (fit.norm2(a)?, fit.norm2(b)?);
            let mut change = 0.0;
            for (k, v) in wt.entries() {
                let at = |all: &[f32]| all.get(k).copied().unwrap_or(0.0);
                let (along, other) = (at(out.along), at(out.other));
                change += 2.0 * v * along + v * v * of_a - other * (other / of_b);
            }
            if !(of_b > 0.0 && total + change < FLIP * total) {
                continue;
            }
            total += change;
            flipped += 1;
            out.entries.take(wt, 0);
            out.entries.assign(|k| out.other.get(k).copied().unwrap_or(0.0) / of_b);
            let new = out.entries.view(view.w().hidden()).block(0);
            let r = row_head::<S>(&mut *fit.residual, rows * c)?;
            fit.sensing.machine().exchange_outer(a, wt, b, new, c, r);
            self.negate(i);
            let values = self.net.values_of(i).1.iter_mut().zip(self.out.entries.value());
            values.for_each(|(v, new)| *v = *new);
        }
        if flipped == 0 {
            return Ok(loss);
        }
        self.task.info.flips = self.task.info.flips.saturating_add(flipped);
        self.refit(2)
    }

    fn conclude(&mut self, loss: f32, _buffers: [&mut Sides<'_>; 2]) -> Result<f32, S::Source> {
        self.narrow(loss)
    }
}
