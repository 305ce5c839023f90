//! The first phase of a search with a linear term: Adam on a support that shrinks and moves.
//!
//! In the coordinates `f(x) = Σ ±|w_i·x|/2 + l·x` no neuron can point the wrong way, and many small
//! steps on all rows find nearly all neurons of networks for which Levenberg-Marquardt steps from
//! random gates end early. As `relu(z) = z/2 + |z|/2`, its network is that of the search with
//! `l - Σ w_i/2` as the linear term, and its gradient is that of the search less half of the linear
//! term's.
//!
//! ```text
//! start      1.5 s weights, as many of each neuron, normal, of the size that the labels ask for
//! each step  256 rows in a row, from anywhere; Adam (D. Kingma and J. Ba, 2015) with a falling rate
//! every 100  the smallest |w| c go, as many of the largest |g| / c on 4000 rows come at 0; neurons
//!            without weights get three; 1.25 s weights are left at the end
//! ```
//!
//! Moments take the place of two vectors of the solver, so that the phase needs no memory of its own.

use super::fit::cut;
use super::goal::OneOutput;
use super::model::{Model, Moves, Support};
use super::neuron::add_dense;
use super::sides::Sides;
use super::support::{Asked, Edge, add};
use crate::base::error::{self, Result};
use crate::base::math::{sin_cos, sqrt};
use crate::base::rng::{Permutation, Rng, stream};
use crate::operator::sensing::{Sensing, head_mut};
use core::f32::consts::PI;

/// Rows of a step, and those that the support changes by.
const BATCH: usize = 256;
const GROWTH_ROWS: usize = 4000;
/// Steps from one change of the support to the next, and those in which the rate rises.
const EVERY: u32 = 100;
const WARM: u32 = 100;
/// The rate at first and in the end, in weights of the size that the labels ask for.
const RATE: [f32; 2] = [0.02, 5e-4];
/// What of the moments stays from step to step.
const KEEP: [f32; 2] = [0.9, 0.999];
/// What keeps a step finite where the gradient is 0, in the unit of the gradient.
const LEAST: f32 = 1e-6;
/// Weights in percent of s, at the start and in the end; these hold where so much is done, and from there on.
const SUPPORT: [f32; 2] = [150.0, 125.0];
const HELD: [f32; 2] = [0.5, 0.9];
/// The share of the support that changes at first; it falls to 0 where so much is done.
const CHANGED: f32 = 0.3;
const CHANGES: f32 = 0.8;
/// Weights of a neuron that begins anew, and their size.
const ANEW: usize = 3;
const ANEW_SIZE: f32 = 0.3;
/// The mean of a neuron's output, and its variance, on normal inputs with a weight vector of norm 1.
const MEAN: f32 = 0.4;
const VARIANCE: f32 = 0.34;

impl<S: Sensing> Model<'_, S, OneOutput> {
    /// So many steps from nothing; `tell` is told of the loss of a step in a hundred, and ends the
    /// phase by returning false. The rows selected are others afterwards.
    pub(super) fn first_phase(
        &mut self,
        steps: u32,
        seed: u64,
        tell: &mut dyn FnMut(&mut Self, f32) -> bool,
    ) -> Result<(), S::Source> {
        let unit = self.begin_first(seed)?;
        let (train, batch) = (self.fit.train, BATCH.min(self.fit.train).max(1));
        let mut rng = Rng::new(seed, stream::FIRST);
        let mut kept = KEEP;
        for step in 1..=steps {
            let part = step as f32 / steps as f32;
            let first = rng.below((train / batch) as u32) as usize * batch;
            self.fit.select(first..first + batch)?;
            let loss = self.loss()?;
            let rate = unit * falling(RATE, part) * (step as f32 / WARM as f32).min(1.0);
            self.adam_step(rate, kept, LEAST * unit)?;
            kept = [kept[0] * KEEP[0], kept[1] * KEEP[1]];
            if step % EVERY == 0 {
                if !tell(self, loss) {
                    break;
                }
                let rows = GROWTH_ROWS.min(train);
                let first = rng.below((train - rows + 1) as u32) as usize;
                self.fit.select(first..first + rows)?;
                self.change_support(part, unit, &mut rng)?;
            }
        }
        Ok(())
    }

    /// Random weights and the linear term that makes absolute values of their neurons; the size of
    /// weights that the labels ask for.
    fn begin_first(&mut self, seed: u64) -> Result<f32, S::Source> {
        let (d, neurons) = (self.inputs(), self.first()..self.blocks());
        let usable = self.columns.scales.iter().filter(|c| **c > 0.0).count();
        let all = (SUPPORT[0] / 100.0 * self.task.nnz as f32) as usize;
        let size = (all / neurons.len().max(1)).clamp(1, usable.max(1));
        let size_of = |neurons: usize, size: f32| {
            let (m, power) = (neurons.max(1) as f32, self.fit.power);
            // The mean square of all neurons' sum, which is mostly the square of its mean unless signs differ.
            let variance = VARIANCE * m;
            let mean = if self.fit.signs.both() { 0.0 } else { MEAN * m };
            sqrt(power / ((mean * mean + variance) * size))
        };
        let planted = self.task.nnz as f32 / self.task.hidden.max(1) as f32;
        let unit = size_of(self.task.hidden, planted.max(1.0));
        let start = size_of(neurons.len().min(all), size as f32);
        self.net.clear();
        for i in neurons.take(all / size) {
            let order = Permutation::new(seed, stream::FIRST + (1 << 24) + i as u64, d);
            let mut rng = Rng::new(seed, stream::FIRST + (2 << 24) + i as u64);
            let Self { solver, net, columns, .. } = self;
            let index: &mut [u32] = bytemuck::cast_slice_mut(&mut *solver.g);
            let (index, value) = (head_mut(index, size)?, head_mut(solver.p, size)?);
            let inputs = (0..d)
                .map(|at| order.get(at))
                .filter(|&j| columns.scales.get(j).is_some_and(|c| *c > 0.0));
            let mut len = 0;
            for (to, j) in index.iter_mut().zip(inputs) {
                *to = (i * d + j) as u32;
                len += 1;
            }
            let (index, value) = (head_mut(index, len)?, head_mut(value, len)?);
            index.sort_unstable();
            for (to, j) in value.iter_mut().zip(&*index) {
                let c = columns.scales.get(*j as usize % d).copied().unwrap_or(1.0);
                *to = start * rng.normal() / c;
            }
            net.edit_w(|w| add(w, index, value))?;
        }
        self.relax()?;
        let shift = head_mut(&mut *self.solver.h, d)?;
        shift.fill(0.0);
        let blocks = self.net.view().w().blocks();
        blocks.filter(|block| block.neuron() > 0).for_each(|block| add_dense(shift, block, -0.5));
        self.shift_linear()?;
        self.solver.diagonal.fill(0.0);
        self.solver.delta.fill(0.0);
        Ok(unit)
    }

    /// Adds the shift to the linear term.
    fn shift_linear(&mut self) -> Result<(), S::Source> {
        let linear = self.linear();
        let shift = head_mut(&mut *self.solver.h, self.columns.scales.len())?;
        for at in 0..linear {
            let j = self.net.view().w().index().get(at).map_or(0, |j| *j as usize);
            if let (Some(w), Some(by)) = (self.net.values().0.get_mut(at), shift.get(j)) {
                *w += by;
            }
        }
        Ok(())
    }

    /// One step on the rows selected, whose residual is current; `kept` are what is left of the
    /// first moments.
    fn adam_step(&mut self, rate: f32, kept: [f32; 2], least: f32) -> Result<(), S::Source> {
        let linear = self.linear();
        let Self { fit, solver, net, columns, single, .. } = self;
        let (w, d, rows) = (net.view().w(), columns.scales.len(), fit.batch_rows());
        let g = head_mut(&mut *solver.rhs, w.nnz())?;
        let gates = fit.gates(w);
        let gates = fit.sensing.hold(gates, w.index())?;
        let residual = cut::<S>(&*fit.residual, fit.sensing.local_rows());
        fit.sensing.gradient_at(gates, w.index(), residual, g, fit.scratch)?;
        fit.sensing.sum(g)?;
        fit.read();
        error::finite("gradient", g)?;
        let (half, shift) = (head_mut(single.dense, d)?, head_mut(&mut *solver.h, d)?);
        half.fill(0.0);
        shift.fill(0.0);
        let places = w.index().iter().map(|&j| j as usize % d);
        for (j, g) in places.clone().zip(&*g).take(linear) {
            if let Some(half) = half.get_mut(j) {
                *half = 0.5 * g;
            }
        }
        let moments = solver.diagonal.iter_mut().zip(&mut *solver.delta);
        let mut changes = g.iter_mut().zip(moments).zip(places);
        let change = |g: f32, m: &mut f32, v: &mut f32, c: f32| {
            let g = g / (rows * c);
            *m = KEEP[0] * *m + (1.0 - KEEP[0]) * g;
            *v = KEEP[1] * *v + (1.0 - KEEP[1]) * g * g;
            rate * *m / (1.0 - kept[0]) / (sqrt(*v / (1.0 - kept[1])) + least) / c
        };
        // The linear term is first in order, but its change counts those of the neurons in.
        for ((g, (m, v)), j) in changes.by_ref().take(linear) {
            *g = change(*g, m, v, columns.scales.get(j).copied().unwrap_or(1.0));
        }
        for ((g, (m, v)), j) in changes {
            let half = half.get(j).copied().unwrap_or(0.0);
            *g = change(*g - half, m, v, columns.scales.get(j).copied().unwrap_or(1.0));
            if let Some(to) = shift.get_mut(j) {
                *to -= 0.5 * *g;
            }
        }
        net.values().0.iter_mut().zip(&*solver.rhs).for_each(|(w, by)| *w += by);
        self.shift_linear()
    }

    /// Drops the smallest weights and adds as many where the gradient of the rows selected is
    /// largest, with a part of all steps done.
    fn change_support(&mut self, part: f32, unit: f32, rng: &mut Rng) -> Result<(), S::Source> {
        let [held, ended] = HELD;
        let left = ((ended - part.max(held)) / (ended - held)).max(0.0);
        let percent = SUPPORT[1] + (SUPPORT[0] - SUPPORT[1]) * left * left * left;
        let target = (percent / 100.0 * self.task.nnz as f32) as usize;
        let share = if part < CHANGES { falling([CHANGED, 0.0], part / CHANGES) } else { 0.0 };
        let grown = (share * target as f32) as usize;
        // Neurons without weights begin anew, as far as there is a change.
        let vacant = (self.first()..self.blocks()).filter(|&i| self.is_vacant(i)).count();
        let anew = (ANEW * vacant).min(grown / 2);
        let grown = grown - anew;
        let drop = self.counted().saturating_sub(target - grown - anew);
        if drop == 0 && grown == 0 {
            return Ok(());
        }
        let added = if grown > 0 { self.pick_first(grown)? } else { 0 };
        self.drop_first(drop)?;
        self.add_first(added)?;
        let mut left = anew / ANEW;
        for i in self.first()..self.blocks() {
            if left > 0 && self.is_vacant(i) {
                self.begin_anew(i, unit, rng)?;
                left -= 1;
            }
        }
        Ok(())
    }

    /// The largest gradients off the support, as indices in a vector of the solver; how many.
    fn pick_first(&mut self, count: usize) -> Result<usize, S::Source> {
        self.loss()?;
        let Self { fit, solver, net, columns, single, .. } = self;
        let open = fit.open();
        let half = head_mut(single.dense, columns.scales.len())?;
        fit.correlate(open, 0, None, half)?;
        half.iter_mut().for_each(|g| *g *= 0.5);
        net.edit_w(|w| {
            let gates = fit.gates(w.view());
            let asked = Asked { less: Some(half), ..Asked::by_scales(count) };
            let picked = columns.pick(fit, solver, gates, w, asked)?;
            Ok(picked.0.len())
        })
    }

    /// Drops so many weights of the smallest `|w| c`, whose absolute values leave the linear term.
    fn drop_first(&mut self, drop: usize) -> Result<(), S::Source> {
        let linear = self.linear();
        let Self { solver, net, columns, .. } = self;
        let d = columns.scales.len();
        let of =
            |j: u32, w: f32| w.abs() * columns.scales.get(j as usize % d).copied().unwrap_or(0.0);
        let w = net.view().w();
        let sizes = head_mut(&mut *solver.rhs, w.nnz() - linear)?;
        for (size, (&j, &w)) in sizes.iter_mut().zip(w.index().iter().zip(w.value()).skip(linear)) {
            *size = of(j, w);
        }
        let shift = head_mut(&mut *solver.h, d)?;
        shift.fill(0.0);
        if drop > 0 && drop < sizes.len() {
            let mut edge = Edge::new(sizes, drop);
            let (m, v) = (&mut *solver.diagonal, &mut *solver.delta);
            let (mut from, mut to) = (0, 0);
            net.edit_w(|net| {
                net.retain(|j, w| {
                    let keep = from < linear || edge.keeps(of(j, w));
                    if keep {
                        m.copy_within(from..=from, to);
                        v.copy_within(from..=from, to);
                        to += 1;
                    } else if let Some(by) = shift.get_mut(j as usize % d) {
                        *by += 0.5 * w;
                    }
                    from += 1;
                    keep
                });
            });
        }
        self.shift_linear()
    }

    /// Adds the weights that were picked, at 0 and with no moments.
    fn add_first(&mut self, count: usize) -> Result<(), S::Source> {
        let Self { solver, net, .. } = self;
        let index: &mut [u32] = bytemuck::cast_slice_mut(&mut *solver.g);
        let (index, value) = (head_mut(index, count)?, head_mut(&mut *solver.p, count)?);
        value.fill(0.0);
        add_still(net, [&mut *solver.diagonal, &mut *solver.delta], index, value)
    }

    /// Gives a neuron without weights a few random ones.
    fn begin_anew(&mut self, i: usize, unit: f32, rng: &mut Rng) -> Result<(), S::Source> {
        let Self { solver, net, columns, .. } = self;
        let d = columns.scales.len();
        let (mut index, mut value) = ([0; ANEW], [0.0; ANEW]);
        let mut len = 0;
        for _ in 0..2 * ANEW {
            let j = rng.below(d as u32);
            let of = (i * d) as u32 + j;
            let is_new = columns.scales.get(j as usize).is_some_and(|c| *c > 0.0)
                && !index.iter().take(len).any(|old| *old == of);
            if let (true, Some(to)) = (is_new, index.get_mut(len)) {
                *to = of;
                len += 1;
            }
        }
        let (index, value) = (head_mut(&mut index, len)?, head_mut(&mut value, len)?);
        index.sort_unstable();
        let shift = head_mut(&mut *solver.h, d)?;
        shift.fill(0.0);
        for (to, of) in value.iter_mut().zip(&*index) {
            let j = *of as usize % d;
            *to = ANEW_SIZE * unit * rng.normal() / columns.scales.get(j).copied().unwrap_or(1.0);
            if let Some(by) = shift.get_mut(j) {
                *by -= 0.5 * *to;
            }
        }
        add_still(net, [&mut *solver.diagonal, &mut *solver.delta], index, value)?;
        self.shift_linear()
    }
}

/// From the first to the second along half a cosine.
fn falling([from, to]: [f32; 2], part: f32) -> f32 {
    to + (from - to) * 0.5 * (1.0 + sin_cos(PI * part).1)
}

/// Adds weights that have no moments yet.
fn add_still<E>(
    net: &mut Sides<'_>,
    moments: [&mut [f32]; 2],
    index: &[u32],
    value: &[f32],
) -> Result<(), E> {
    net.edit_w(|w| add(w, index, value))?;
    let all = net.view().w().index();
    moments.into_iter().for_each(|moments| widen(moments, all, index));
    Ok(())
}

/// Makes room for 0 where the indices are those `added`, which rise as all do.
fn widen(values: &mut [f32], index: &[u32], added: &[u32]) {
    let mut left = added.len();
    for (at, j) in index.iter().enumerate().rev() {
        let is_added = left.checked_sub(1).and_then(|last| added.get(last)) == Some(j);
        if is_added {
            left -= 1;
        }
        let from = at.wrapping_sub(left);
        let value = if is_added { 0.0 } else { values.get(from).copied().unwrap_or(0.0) };
        if let Some(to) = values.get_mut(at) {
            *to = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_stay_with_their_weights() {
        let mut values = [1.0, 2.0, 3.0, 9.0, 9.0, 9.0];
        widen(&mut values, &[0, 2, 4, 5, 7, 8], &[2, 7, 8]);
        assert_eq!(values, [1.0, 0.0, 2.0, 3.0, 0.0, 0.0]);
        widen(&mut values, &[0, 2], &[]);
        assert_eq!(values[..2], [1.0, 0.0]);
        let mut none = [5.0];
        widen(&mut none, &[3], &[3]);
        assert_eq!(none, [0.0]);
    }

    #[test]
    fn rates_fall_from_first_to_last() {
        assert!((falling(RATE, 0.0) - RATE[0]).abs() < 1e-6);
        assert!((falling(RATE, 1.0) - RATE[1]).abs() < 1e-6);
        assert!((falling([1.0, 0.0], 0.5) - 0.5).abs() < 1e-6);
    }
}
