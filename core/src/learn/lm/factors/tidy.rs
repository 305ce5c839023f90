//! Edits that take a network of several outputs to an equivalent or simpler one: turn neurons
//! round, merge those that share a hinge.

use super::{Factors, square_in};
use crate::base::error::Result;
use crate::base::math::{norm2, sqrt};
use crate::learn::lm::problem::Problem;
use crate::learn::lm::support::add;
use crate::learn::lm::tidy::{FLIP, compare, negate};
use crate::operator::factored::Factored;
use crate::operator::sensing::head_mut;

impl<S: Factored> Factors<'_, S> {
    /// Turns neurons round, `w_i -> -w_i` with the output weights of least squares on their
    /// support, where that alone lowers the loss, which is `loss`, and fits if any was turned. The
    /// residual must be current. Returns the loss.
    ///
    /// With a = relu(z) and b = relu(-z), of which one is zero on every row, turning changes the
    /// squared error by `2 wt · Rᵀa + |wt|² |a|² - |Rᵀb|² / |b|²`, the last norm over the support
    /// of wt.
    pub(super) fn turn_round(&mut self, loss: f32) -> Result<f32, S::Source> {
        let (rows, c, d) = (self.fit.rows(), self.outputs(), self.inputs());
        let mut total = loss * self.fit.terms() as f32;
        let mut flipped = 0;
        for i in 0..self.blocks() {
            let Self { fit, net, single, along, other, .. } = self;
            let view = net.view();
            let (block, wt) = (view.w().block(i), view.wt().block(i));
            if block.is_empty() {
                continue;
            }
            let (a, b) = (head_mut(&mut *single.z, rows)?, head_mut(&mut *single.t, rows)?);
            let gates = fit.gates(view.w());
            fit.image(gates, block, a)?;
            single.entries.take(block, i, d);
            single.entries.scale(-1.0);
            let turned = single.entries.view(d, view.w().hidden());
            let gates = fit.gates(turned);
            fit.image(gates, turned.block(i), b)?;
            fit.transpose(a, along);
            fit.transpose(b, other);
            let (of_a, of_b) = (norm2(a), norm2(b));
            let mut change = 0.0;
            for (k, v) in wt.entries() {
                let (along, other) =
                    (along.get(k).copied().unwrap_or(0.0), other.get(k).copied().unwrap_or(0.0));
                change += 2.0 * v * along + v * v * of_a - other * (other / of_b);
            }
            if !(of_b > 0.0 && total + change < FLIP * total) {
                continue;
            }
            total += change;
            flipped += 1;
            for ((r, a), b) in fit.residual.chunks_mut(c).zip(&*a).zip(&*b) {
                for (k, v) in wt.entries() {
                    if let (Some(r), Some(other)) = (r.get_mut(k), other.get(k)) {
                        *r += a * v - b * (other / of_b);
                    }
                }
            }
            self.out.take(view.wt().block(i), 0, c);
            let (w, out) = self.net.values_of(i);
            negate(Some(w));
            for (v, k) in out.iter_mut().zip(self.out.index()) {
                *v = self.other.get(*k as usize).copied().unwrap_or(0.0) / of_b;
            }
        }
        if flipped == 0 {
            return Ok(loss);
        }
        self.task.flips = self.task.flips.saturating_add(flipped);
        self.refit(2)
    }

    /// Makes one of two neurons whose cosine, in the metric of the inputs, is above `least`: they
    /// share a hinge and are open on the same rows, so their output weights add up. Returns how
    /// many vanished; nothing is fitted.
    #[inline(never)]
    pub(super) fn join(&mut self, least: f32) -> Result<u32, S::Source> {
        let c = self.outputs();
        let mut merged = 0;
        for i in 0..self.blocks() {
            if self.net.view().w().block(i).is_empty() {
                continue;
            }
            for j in i + 1..self.blocks() {
                let net = self.net.view();
                if net.w().block(j).is_empty() {
                    continue;
                }
                let (cosine, _) = compare(net.w(), (i, j), self.columns.scales());
                if !(cosine > least) {
                    continue;
                }
                let [first, second] = [i, j].map(|i| {
                    let wt: f32 = net.wt().block(i).values().iter().map(|v| v * v).sum();
                    (square_in(net.w().block(i), self.columns.scales()), wt)
                });
                let (to, from, ratio) = if first.0 * first.1 >= second.0 * second.1 {
                    (i, j, second.0 / first.0)
                } else {
                    (j, i, first.0 / second.0)
                };
                self.out.take(net.wt().block(from), to, c);
                self.out.scale(sqrt(ratio));
                self.net.remove(from);
                let out = &self.out;
                self.net.edit_wt(|wt| add(wt, out.index(), out.value()))?;
                merged += 1;
                if from == i {
                    break;
                }
            }
        }
        self.task.merges = self.task.merges.saturating_add(merged);
        Ok(merged)
    }
}
