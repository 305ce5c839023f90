//! What is done with a second layer: its first weights, new neurons in it, those that are one, and the pass-through term.
//!
//! While searching, output 0 is a linear function of the first layer's activations, `z_0 = l · a`, whose weights do not count
//! in s. With it a neuron of the second layer may have either sign at no cost, since `relu(u) = u + relu(-u)`, and neurons
//! whose weights are all positive, which are linear, need no place of their own. At the end signs are chosen so that few
//! weights of l are left; these become a neuron like the others.

use super::{Factors, square_in};
use crate::error::{Error, Result};
use crate::factored::Factored;
use crate::gates::Gates;
use crate::lm::fit::Fit;
use crate::lm::problem::{BATCH, Candidate, Candidates, Problem, SLIM_STEPS, rank};
use crate::lm::solver::Vectors;
use crate::lm::support::add;
use crate::lm::tidy::{FLIP, negate};
use crate::math::{norm2, sqrt};
use crate::rng::{Rng, stream};
use crate::sensing::head_mut;
use crate::top::Top;

use super::moves::Kind;

/// Weights of a new neuron `relu(a_i - t a_j)` of the second layer, for activations of unit size.
const RATIOS: [f32; 3] = [0.5, 1.0, 2.0];
/// Weights that a neuron of the second layer starts with.
const INPUTS: usize = 3;
/// Sweeps over all signs at the most.
const SWEEPS: u32 = 16;

impl<S: Factored> Factors<'_, S> {
    /// Whether output 0 has weights.
    pub(super) fn is_open_ended(&self) -> bool {
        self.passed() > 0
    }

    /// Weights of output 0, where outputs are summed up.
    pub(super) fn passed(&self) -> usize {
        if !self.fit.is_summed() {
            return 0;
        }
        self.net.view().wt().blocks().filter(|wt| wt.entries().next().is_some_and(|(k, _)| k == 0)).count()
    }

    /// Weights of output k.
    pub(super) fn fan_in(&self, k: usize) -> usize {
        self.net.view().wt().blocks().flat_map(|wt| wt.entries()).filter(|(j, _)| *j == k).count()
    }

    /// Neurons of the second layer that have weights, but output 0.
    pub(super) fn second_live(&self) -> usize {
        (1..self.outputs()).filter(|&k| self.fan_in(k) > 0).count()
    }

    /// The first neuron of the second layer without weights.
    fn vacant_output(&self) -> Option<usize> {
        (1..self.outputs()).find(|&k| self.fan_in(k) == 0)
    }

    /// The neuron of the second layer that contributes least.
    fn weakest_output(&self) -> Option<usize> {
        let net = self.net.view();
        let strength = |k: usize| {
            let of = |i: usize| {
                let v = net.wt().block(i).entries().find(|(j, _)| *j == k).map_or(0.0, |(_, v)| v);
                v * v * square_in(net.w().block(i), self.columns.scales())
            };
            net.wt().blocks().map(|wt| of(wt.neuron())).sum::<f32>()
        };
        let live = (1..self.outputs()).filter(|&k| self.fan_in(k) > 0).map(|k| (strength(k), k));
        live.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, k)| k)
    }

    /// A neuron of the second layer without weights, the weakest one being emptied if there is none.
    fn vacate_output(&mut self) -> Option<usize> {
        self.vacant_output().or_else(|| {
            let weakest = self.weakest_output()?;
            self.remove_output(weakest);
            Some(weakest)
        })
    }

    /// Removes the weights of output k.
    pub(super) fn remove_output(&mut self, k: usize) {
        let c = self.outputs().max(1);
        self.net.edit_wt(|wt| wt.retain(|at, _| at as usize % c != k));
    }

    /// Adds to output 0 a weight of 0 from every live neuron that has none, as far as there is room.
    pub(super) fn pass_through(&mut self) -> Result<(), S::Source> {
        let (c, room) = (self.outputs(), self.net.room() - self.net.nnz());
        let Self { fit, net, .. } = self;
        let (value, index) = fit.spare();
        let mut count = 0;
        let view = net.view();
        let lacking = view.w().blocks().map(|w| w.neuron());
        let lacking = lacking.filter(|&i| view.wt().block(i).entries().next().is_none_or(|(k, _)| k > 0));
        for (i, slot) in lacking.zip(&mut *index).take(room) {
            *slot = (i * c) as u32;
            count += 1;
        }
        let value = head_mut(value, count)?;
        value.fill(0.0);
        let index = head_mut(index, count)?;
        net.edit_wt(|wt| add(wt, index, value))
    }

    /// The first weights: under random gates 0.6 s where `|g| / c` is largest, `w = g / c²` on them; all of them passed
    /// through; and three random ones of them to every neuron of the second layer; one scale for all.
    pub(super) fn first_layers(&mut self, seed: u64) -> Result<(), S::Source> {
        self.net.clear();
        self.loss()?;
        let count = (self.task.nnz * 3).div_ceil(5);
        let (d, c, m) = (self.inputs(), self.outputs(), self.blocks());
        let rows = self.fit.rows();
        let Self { fit, net, columns, single, back, second, .. } = self;
        let mut vectors = core::mem::take(fit.solver.free());
        let Vectors { g, p, .. } = &mut vectors;
        let index: &mut [u32] = bytemuck::cast_slice_mut(g);
        let scales = columns.scales();
        let mut top = Top::new(head_mut(&mut *index, count)?, head_mut(&mut *p, count)?);
        let back = head_mut(back, rows)?;
        for (back, r) in back.iter_mut().zip(fit.residual().chunks(c.max(1))) {
            *back = r.first().copied().unwrap_or(0.0);
        }
        for i in 0..m {
            fit.correlate(Gates::seeded(seed), i, Some(back), single.dense)?;
            for ((g, s), at) in single.dense.iter().zip(scales).zip((i * d) as u32..) {
                if *s > 0.0 {
                    top.push(at, g / (s * rows as f32));
                }
            }
        }
        let picked = top.finish().ok_or(Error::Diverged { step: 0 })?;
        let (flat, values) = (head_mut(&mut *index, picked)?, head_mut(&mut *p, picked)?);
        for (v, &j) in values.iter_mut().zip(&*flat) {
            *v /= scales.get(j as usize % d.max(1)).copied().unwrap_or(1.0);
        }
        net.edit_w(|w| add(w, flat, values))?;
        let live = net.view().w().blocks().count();
        let mut rng = Rng::new(seed, stream::OUTPUTS);
        let spare = (net.room() - net.nnz()).saturating_sub(live);
        for k in 1..=(*second).min(c.saturating_sub(1)).min(spare / INPUTS) {
            for _ in 0..INPUTS.min(live) {
                let nth = rng.below(live as u32) as usize;
                let i = net.view().w().blocks().nth(nth).map_or(0, |w| w.neuron());
                let value = rng.normal() / sqrt(square_in(net.view().w().block(i), scales));
                if value.is_finite() {
                    net.edit_wt(|wt| add(wt, &[(i * c + k) as u32], &[value]))?;
                }
            }
        }
        *fit.solver.free() = vectors;
        self.pass_through()?;
        for i in 0..m {
            let (w, wt) = self.net.values_of(i);
            if let (false, Some(first)) = (w.is_empty(), wt.first_mut()) {
                *first = 1.0;
            }
        }
        self.loss()?;
        let factor = self.fit.factor();
        if factor.is_finite() && factor > 0.0 {
            self.net.values().1.iter_mut().for_each(|wt| *wt *= factor);
        }
        self.balance();
        Ok(())
    }

    /// Lists the best births `relu(a_i / |a_i| - t a_j / |a_j|)` in the second layer.
    pub(super) fn list_pairs(&mut self, list: &mut Candidates<Kind>) -> Result<(), S::Source> {
        let mut pairs = heapless::Vec::<Candidate<Kind>, { 2 * BATCH }>::new();
        for i in 0..self.blocks() {
            if !self.activation(i, false)? {
                continue;
            }
            for j in 0..self.blocks() {
                if i == j || !self.activation(j, true)? {
                    continue;
                }
                let mut best = Candidate { gain: 0.0, kind: Kind::Pair(i, j, 0) };
                for ratio in 0..RATIOS.len() {
                    let (gain, _) = self.pair(ratio);
                    if gain > best.gain {
                        best = Candidate { gain, kind: Kind::Pair(i, j, ratio) };
                    }
                }
                rank(&mut pairs, best);
            }
        }
        for pair in pairs {
            rank(list, pair);
        }
        Ok(())
    }

    /// The activation of neuron i, of unit mean square, as the first of two or as the other one; false if there is none.
    fn activation(&mut self, i: usize, is_other: bool) -> Result<bool, S::Source> {
        let rows = self.fit.rows();
        let Self { fit, net, single, .. } = self;
        let block = net.view().w().block(i);
        if block.is_empty() {
            return Ok(false);
        }
        let out = head_mut(if is_other { &mut *single.t } else { &mut *single.z }, rows)?;
        let gates = fit.gates(net.view().w());
        fit.image(gates, block, out)?;
        let size = sqrt(norm2(out) / rows as f32);
        if !(size > 0.0) {
            return Ok(false);
        }
        out.iter_mut().for_each(|a| *a /= size);
        Ok(true)
    }

    /// What a pair could win, and its factor.
    fn pair(&self, ratio: usize) -> (f32, f32) {
        let t = RATIOS.get(ratio).copied().unwrap_or(1.0);
        let (mut along, mut norm) = (0.0, 0.0);
        let rows = self.fit.residual().chunks(self.outputs().max(1));
        for ((a, b), r) in self.single.z.iter().zip(&*self.single.t).zip(rows) {
            let phi = (a - t * b).max(0.0);
            along += r.first().copied().unwrap_or(0.0) * phi;
            norm += phi * phi;
        }
        let factor = along / norm;
        if factor.is_finite() { (along.abs() * factor.abs(), factor) } else { (0.0, 0.0) }
    }

    /// Adds a pair; false, and no change, if there is none.
    pub(super) fn add_pair(&mut self, (i, j, ratio): (usize, usize, usize)) -> Result<bool, S::Source> {
        if !self.activation(i, false)? || !self.activation(j, true)? {
            return Ok(false);
        }
        let (rows, c) = (self.fit.rows(), self.outputs());
        let (gain, factor) = self.pair(ratio);
        if !(gain > 0.0) {
            return Ok(false);
        }
        // Back to weights of the activations as they are.
        let mut sizes = [0.0; 2];
        for (size, at) in sizes.iter_mut().zip([i, j]) {
            let Self { fit, net, single, .. } = self;
            let out = head_mut(&mut *single.z, rows)?;
            let gates = fit.gates(net.view().w());
            fit.image(gates, net.view().w().block(at), out)?;
            *size = sqrt(norm2(out) / rows as f32);
        }
        let Some(k) = self.vacate_output() else { return Ok(false) };
        if self.net.room() - self.net.nnz() < 2 {
            self.threshold(self.counted().saturating_sub(2))?;
        }
        let t = RATIOS.get(ratio).copied().unwrap_or(1.0);
        // A neuron that would have to count negatively is its mirror image and a linear function.
        let sign = if factor < 0.0 { -1.0 } else { 1.0 };
        let factor = factor.abs();
        let values = [sign * factor / sizes[0], -sign * factor * t / sizes[1]];
        let mut entries = [((i * c + k) as u32, values[0]), ((j * c + k) as u32, values[1])];
        if i > j {
            entries.swap(0, 1);
        }
        let [a, b] = entries;
        self.net.edit_wt(|wt| add(wt, &[a.0, b.0], &[a.1, b.1]))?;
        if sign < 0.0 && self.is_open_ended() {
            // -relu(u) = relu(-u) - … : what is missing is linear.
            let linear = entries.map(|(at, v)| (at - k as u32, v));
            let [a, b] = linear;
            if self.net.room() - self.net.nnz() >= 2 {
                self.net.edit_wt(|wt| add(wt, &[a.0, b.0], &[a.1, b.1]))?;
            }
        }
        self.net.clear_halves();
        Ok(true)
    }

    /// Turns neurons of the first layer round where that alone lowers the loss, and fits if any was turned.
    pub(super) fn turn_first(&mut self, loss: f32) -> Result<f32, S::Source> {
        let (mut least, mut flipped) = (loss, 0);
        for i in 0..self.blocks() {
            if self.net.view().w().block(i).is_empty() {
                continue;
            }
            negate(Some(self.net.values_of(i).0));
            let turned = self.loss()?;
            if turned < FLIP * least {
                least = turned;
                flipped += 1;
            } else {
                negate(Some(self.net.values_of(i).0));
            }
        }
        self.task.flips = self.task.flips.saturating_add(flipped);
        if flipped > 0 { self.refit(2) } else { self.loss() }
    }

    /// Makes one of neurons of the second layer that stand for one: those that are linear go into output 0 where there is
    /// that, and else into one of them, those that are never open vanish, and those that are parallel add up. Returns how many
    /// vanished.
    pub(super) fn join_outputs(&mut self, least: f32) -> Result<u32, S::Source> {
        let mut merged = 0;
        let mut linear = if self.is_open_ended() { Some(0) } else { None };
        for k in 1..self.outputs() {
            let (up, down) = self.column_signs(k);
            if up + down == 0 {
                continue;
            }
            if up == 0 {
                self.remove_output(k);
                merged += 1;
            } else if down == 0 {
                match linear {
                    Some(to) => {
                        self.add_column((k, to), 1.0)?;
                        self.remove_output(k);
                        merged += 1;
                    }
                    None => linear = Some(k),
                }
            }
        }
        for k in 1..self.outputs() {
            for l in k + 1..self.outputs() {
                let Some((cosine, ratio)) = self.compare_columns(k, l) else { continue };
                if cosine > least {
                    self.scale_column(k, 1.0 + ratio);
                } else if -cosine > least && self.is_open_ended() {
                    // relu(u) + r relu(-u) = (1 + r) relu(u) - r u.
                    self.add_column((k, 0), -ratio)?;
                    self.scale_column(k, 1.0 + ratio);
                } else {
                    continue;
                }
                self.remove_output(l);
                merged += 1;
            }
        }
        if merged > 0 {
            self.net.clear_halves();
        }
        Ok(merged)
    }

    /// Weights above and below zero of output k.
    fn column_signs(&self, k: usize) -> (usize, usize) {
        let (mut up, mut down) = (0, 0);
        for (_, v) in self.net.view().wt().blocks().flat_map(|wt| wt.entries()).filter(|(j, _)| *j == k) {
            if v >= 0.0 { up += 1 } else { down += 1 }
        }
        (up, down)
    }

    /// Cosine and ratio of lengths of outputs k and l; none where one has no weights.
    fn compare_columns(&self, k: usize, l: usize) -> Option<(f32, f32)> {
        let net = self.net.view();
        let (mut product, mut of_k, mut of_l) = (0.0, 0.0, 0.0);
        for wt in net.wt().blocks() {
            let value = |k: usize| wt.entries().find(|(j, _)| *j == k).map_or(0.0, |(_, v)| v);
            let (a, b) = (value(k), value(l));
            if a != 0.0 || b != 0.0 {
                let size = square_in(net.w().block(wt.neuron()), self.columns.scales());
                product += a * b * size;
                of_k += a * a * size;
                of_l += b * b * size;
            }
        }
        (of_k > 0.0 && of_l > 0.0).then(|| (product / sqrt(of_k * of_l), sqrt(of_l / of_k)))
    }

    fn scale_column(&mut self, k: usize, factor: f32) {
        let c = self.outputs().max(1);
        self.net.edit_wt(|wt| {
            for at in 0..wt.nnz() {
                let is_here = wt.view().index().get(at).is_some_and(|j| *j as usize % c == k);
                if let (true, Some(v)) = (is_here, wt.values().get_mut(at)) {
                    *v *= factor;
                }
            }
        });
    }

    /// Adds `factor` times the weights of one output to another one, as far as there is room; false if there was not.
    fn add_column(&mut self, (from, to): (usize, usize), factor: f32) -> Result<bool, S::Source> {
        let c = self.outputs();
        let Self { fit, net, .. } = self;
        let (value, index) = fit.spare();
        let mut count = 0;
        let wt = net.view().wt();
        let column = wt.blocks().flat_map(|wt| wt.entries().map(move |(k, v)| (wt.neuron(), k, v)));
        for ((i, _, v), (value, index)) in
            column.filter(|(_, k, _)| *k == from).zip(value.iter_mut().zip(&mut *index))
        {
            (*value, *index) = (factor * v, (i * c + to) as u32);
            count += 1;
        }
        let (value, index) = (head_mut(value, count)?, head_mut(index, count)?);
        Ok(net.edit_wt(|wt| wt.add(index, value)))
    }

    /// Does away with output 0: turns neurons of the second layer so that few weights of it are left, which become a neuron of
    /// the second layer; then goes down to s weights and to the numbers of neurons. Returns the loss.
    pub(super) fn fold_layers(&mut self, mut loss: f32) -> Result<f32, S::Source> {
        if self.is_open_ended() {
            self.task.folds = self.task.folds.saturating_add(1);
            self.choose_signs()?;
            // Room for a column that had none.
            if let Some(k) = self.vacate_output() {
                self.add_column((0, k), 1.0)?;
            }
            self.remove_output(0);
            self.net.clear_halves();
            self.join_outputs(0.9999)?;
            loss = self.refit(SLIM_STEPS)?;
        }
        loss = self.thin(loss, |_, _| true)?;
        loop {
            let first = self.net.view().w().blocks().count().saturating_sub(self.task.hidden);
            let second = self.second_live().saturating_sub(self.second);
            if first + second == 0 {
                return Ok(loss);
            }
            for _ in 0..first.div_ceil(3) {
                self.weakest(None).into_iter().for_each(|i| self.net.remove(i));
            }
            for _ in 0..second.div_ceil(3) {
                self.weakest_output().into_iter().for_each(|k| self.remove_output(k));
            }
            self.net.clear_halves();
            loss = self.refit(SLIM_STEPS)?;
        }
    }

    /// Turns neurons of the second layer, `V_k -> -V_k` and `l -> l + V_k`, one or two at a time, as long as the weights of l
    /// become fewer and smaller.
    fn choose_signs(&mut self) -> Result<(), S::Source> {
        for _ in 0..SWEEPS {
            let mut turned = false;
            for k in 1..self.outputs() {
                for l in k..self.outputs() {
                    if self.fan_in(k) == 0 || self.fan_in(l) == 0 {
                        continue;
                    }
                    if self.cost((k, l)) < 0.999 * self.cost((0, 0)) {
                        self.turn_second(k)?;
                        if l > k {
                            self.turn_second(l)?;
                        }
                        turned = true;
                    }
                }
            }
            if !turned {
                break;
            }
        }
        Ok(())
    }

    /// Turns neuron k of the second layer.
    fn turn_second(&mut self, k: usize) -> Result<(), S::Source> {
        self.add_column((k, 0), 1.0)?;
        self.scale_column(k, -1.0);
        Ok(())
    }

    /// How many and how large the weights of output 0 were with neurons k and l turned, 0 standing for none; those below
    /// zero count twice.
    fn cost(&self, (k, l): (usize, usize)) -> f32 {
        let net = self.net.view();
        let mut cost = 0.0;
        for wt in net.wt().blocks() {
            let mut sum = 0.0;
            for (at, v) in wt.entries() {
                if at == 0 || at == k || at == l {
                    sum += v;
                }
            }
            let size = sqrt(square_in(net.w().block(wt.neuron()), self.columns.scales()));
            let size = sqrt(sum.abs() * size);
            cost += if sum < 0.0 { 2.0 * size } else { size };
        }
        cost
    }
}

impl<S: Factored> Fit<'_, S> {
    /// `out = Rᵀ a`, and the squared norms of `a` where the outputs are open.
    pub(super) fn transpose_open(&self, a: &[f32], out: &mut [f32], norms: &mut [f32]) {
        out.fill(0.0);
        norms.fill(0.0);
        for (a, r) in a.iter().zip(self.residual().chunks(self.outputs().max(1))) {
            if *a == 0.0 {
                continue;
            }
            for (k, ((out, norm), r)) in out.iter_mut().zip(&mut *norms).zip(r).enumerate() {
                *out += a * r;
                *norm += if k == 0 || *r != 0.0 { a * a } else { 0.0 };
            }
        }
    }
}

/// Weights below this part of the others of a neuron do not count where neurons are compared.
const IDLE: f32 = 1e-2;
/// A weight cancels another one where less than this part of it is left.
const CANCELS: f32 = 0.2;

impl<S: Factored> Factors<'_, S> {
    /// Turns neuron j of the first layer round where the same function then has fewer weights,
    ///
    /// ```text
    /// relu(u relu(z_i) - v relu(z_j)) = relu(u relu(z_i - (v/u) z_j) - v relu(-z_j)),
    /// ```
    ///
    /// which holds where both lead to this neuron of the second layer alone. Returns 1 if it was turned.
    pub(super) fn unfold(&mut self, j: usize) -> Result<u32, S::Source> {
        let Some((k, v)) = self.only_output(j).filter(|(_, v)| *v < 0.0) else { return Ok(0) };
        for i in 0..self.blocks() {
            let Some((_, u)) = self.only_output(i).filter(|&(l, u)| l == k && u > 0.0) else { continue };
            let ratio = v / u;
            let (from, to) = (self.net.view().w().block(j), self.net.view().w().block(i));
            let mut change = 0;
            for (at, w) in from.entries() {
                let old = to.entries().find(|(e, _)| *e == at).map_or(0.0, |(_, w)| w);
                let is_there = |sum: f32| i32::from(sum.abs() > CANCELS * (ratio * w).abs());
                change += is_there(old + ratio * w) - is_there(old);
            }
            if change >= 0 || self.net.room() - self.net.nnz() < from.values().len() {
                continue;
            }
            let d = self.inputs();
            let Self { net, single, .. } = self;
            single.entries.take(net.view().w().block(j), i, d);
            single.entries.scale(ratio);
            net.edit_w(|w| add(w, single.entries.index(), single.entries.value()))?;
            negate(Some(net.values_of(j).0));
            return Ok(1);
        }
        Ok(0)
    }

    /// The one output that neuron i of the first layer leads to, but for negligible weights, and the weight.
    fn only_output(&self, i: usize) -> Option<(usize, f32)> {
        let wt = self.net.view().wt().block(i);
        let largest = wt.entries().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
        let others = wt.entries().filter(|(k, v)| *k != largest.0 && v.abs() > IDLE * largest.1.abs());
        (largest.0 > 0 && others.count() == 0).then_some(largest)
    }
}
