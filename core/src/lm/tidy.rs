//! Edits that take a network to an equivalent or simpler one: turn neurons round, merge those that share a hinge, go
//! down to s weights and m neurons.

use super::bench::{Bench, scaled};
use crate::error::Result;
use crate::math::sqrt;
use crate::sensing::{Sensing, head_mut};
use crate::weights::Weights;

/// A neuron is turned round where that leaves less than this part of the loss.
const FLIP: f32 = 0.999;
/// Before the last threshold neurons with a cosine above this become one.
const SAME: f32 = 0.9999;
/// Steps between two cuts on the way down.
const SLIM_STEPS: u32 = 5;

impl<S: Sensing> Bench<'_, S> {
    /// Turns neurons round, `w_i -> -w_i`, where that alone lowers the loss, which is `loss`, and fits if any was
    /// turned. The residual must be current. Returns the loss.
    pub(super) fn flip(&mut self, loss: f32) -> Result<f32, S::Source> {
        let rows = self.fit.rows();
        let mut total = loss * rows as f32;
        let mut flipped = 0;
        for i in self.first()..self.blocks() {
            let range = self.net.range(i);
            if range.is_empty() {
                continue;
            }
            let (z, t) = (head_mut(&mut *self.single.z, rows)?, head_mut(&mut *self.single.t, rows)?);
            z.fill(0.0);
            t.fill(0.0);
            self.fit.image(self.net.view(), self.net.view().block(i), z)?;
            negate(self.net.values().get_mut(range.clone()));
            self.fit.image(self.net.view(), self.net.view().block(i), t)?;
            let residual = head_mut(&mut *self.fit.residual, rows)?;
            let mut after = 0.0;
            for ((z, t), r) in z.iter_mut().zip(&*t).zip(&*residual) {
                *z += r - t;
                after += *z * *z;
            }
            if after < FLIP * total {
                total = after;
                residual.copy_from_slice(z);
                flipped += 1;
            } else {
                negate(self.net.values().get_mut(range));
            }
        }
        if flipped == 0 {
            return Ok(loss);
        }
        self.flips += flipped;
        self.refit(2)
    }

    /// Makes one of two neurons whose cosine, in the metric of the columns, is above `least` in magnitude: they share
    /// a hinge. Those that are open on the same rows add up. Of those that are open on opposite rows the weaker one is
    /// its own mirror image and a linear function, `relu(z) = z + relu(-z)`, so they merge where there is a linear
    /// term. Returns how many vanished; nothing is fitted.
    pub(super) fn merge(&mut self, least: f32) -> Result<u32, S::Source> {
        let d = self.inputs();
        let mut merged = 0;
        for i in self.first()..self.blocks() {
            if self.net.range(i).is_empty() {
                continue;
            }
            for j in i + 1..self.blocks() {
                let w = self.net.view();
                if w.block(j).is_empty() {
                    continue;
                }
                let (cosine, first_is_stronger) = compare(w, (i, j), self.columns.scales());
                let is_equal_sign = self.fit.signs.sign(i) == self.fit.signs.sign(j);
                let is_mirrored = (cosine > 0.0) != is_equal_sign;
                if !(cosine.abs() > least) || (is_mirrored && self.linear() == 0) {
                    continue;
                }
                let (to, from) = if first_is_stronger { (i, j) } else { (j, i) };
                self.single.entries.take(w.block(from), to, d);
                self.net.remove(from);
                self.add_single(if is_mirrored { -1.0 } else { 1.0 })?;
                if is_mirrored {
                    self.single.entries.shift(to, 0, d);
                    self.add_single(1.0)?;
                }
                merged += 1;
                if from == i {
                    break;
                }
            }
        }
        self.merges += merged;
        Ok(merged)
    }

    /// Merges what is the same and goes down to s weights besides the linear term, fitting between the cuts. Each cut
    /// takes a third of the excess, so there are at most `log_1.5(s) + 2`. Calls `report` with the loss after each.
    pub(super) fn thin(
        &mut self,
        mut loss: f32,
        mut report: impl FnMut(&Self, f32),
    ) -> Result<f32, S::Source> {
        if self.merge(SAME)? > 0 {
            loss = self.loss()?;
            loss = self.improve(loss, 3, self.goal)?;
        }
        while let excess @ 1.. = self.counted().saturating_sub(self.nnz) {
            loss = self.cut(self.counted() - excess.div_ceil(3), SLIM_STEPS)?;
            report(self, loss);
        }
        Ok(loss)
    }

    /// Empties the weakest neurons, a third of the excess at a time, until m are left, fitting in between.
    pub(super) fn narrow(&mut self, mut loss: f32) -> Result<f32, S::Source> {
        while let excess @ 1.. = self.live().saturating_sub(self.hidden) {
            for _ in 0..excess.div_ceil(3) {
                self.weakest(|_| true).into_iter().for_each(|i| self.net.remove(i));
            }
            loss = self.refit(SLIM_STEPS)?;
        }
        Ok(loss)
    }
}

fn negate(values: Option<&mut [f32]>) {
    values.unwrap_or_default().iter_mut().for_each(|v| *v = -*v);
}

/// The cosine of neurons i and j in the metric of the columns, and whether i is at least as long.
fn compare(w: Weights<'_>, (i, j): (usize, usize), scales: &[f32]) -> (f32, bool) {
    let (a, b) = (w.block(i), w.block(j));
    let mut others = scaled(b, scales).peekable();
    let mut product = 0.0;
    for (at, x) in scaled(a, scales) {
        while others.next_if(|&(j, _)| j < at).is_some() {}
        if let Some((_, y)) = others.next_if(|&(j, _)| j == at) {
            product += x * y;
        }
    }
    let norm = |block| scaled(block, scales).map(|(_, x)| x * x).sum::<f32>();
    let (a, b) = (norm(a), norm(b));
    (product / sqrt(a * b), a >= b)
}
