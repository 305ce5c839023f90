//! The neurons of a second layer, each a column of the output weights: those that are added,
//! `relu(a_i - t a_j)` of two activations of the first layer, and those that are merged.
//!
//! While searching, output 0 is a linear function of the first layer's activations, whose weights
//! do not count in s, so that a neuron may have either sign, `relu(u) = u + relu(-u)`, and neurons
//! of positive weights, which are linear, need no place. At the end [`super::two_layers`] does away
//! with it.

use super::SecondLayer;
use crate::base::error::Result;
use crate::base::math::sqrt;
use crate::learn::lm::fit::cut;
use crate::learn::lm::model::{Model, Support, square_in};
use crate::learn::lm::neuron::{BATCH, Candidate, Candidates, Move, Pair, rank};
use crate::learn::lm::solver::entries;
use crate::learn::lm::support::add;
use crate::network::weights::Weights;
use crate::operator::factored::Factored;
use crate::operator::machine::Along;
use crate::operator::sensing::row_head;
use crate::operator::tables::Tables;

/// t, for activations of unit mean square.
const RATIOS: [f32; 3] = [0.5, 1.0, 2.0];

/// (neuron of the first layer, weight) of output k.
fn column<'w>(wt: Weights<'w>, k: usize) -> impl Iterator<Item = (usize, f32)> + use<'w> {
    let entries = wt.blocks().flat_map(|wt| wt.entries().map(move |(j, v)| (wt.neuron(), j, v)));
    entries.filter(move |(_, j, _)| *j == k).map(|(i, _, v)| (i, v))
}

impl<S: Factored> Model<'_, S, SecondLayer<'_, S>> {
    /// Lists the best new neurons `relu(a_i / |a_i| - t a_j / |a_j|)` in the second layer.
    pub(super) fn rank_pairs(&mut self, list: &mut Candidates) -> Result<(), S::Source> {
        let mut pairs = heapless::Vec::<Candidate, { 2 * BATCH }>::new();
        for i in 0..self.blocks() {
            if self.activation(i, false)?.is_none() {
                continue;
            }
            for j in 0..self.blocks() {
                if i == j || self.activation(j, true)?.is_none() {
                    continue;
                }
                let pair = |ratio| Move::Pair(Pair { first: i, other: j, ratio });
                let mut best = Candidate { gain: 0.0, kind: pair(0) };
                for ratio in 0..RATIOS.len() {
                    let (gain, _) = self.pair(ratio);
                    if gain > best.gain {
                        best = Candidate { gain, kind: pair(ratio) };
                    }
                }
                rank(&mut pairs, best);
            }
        }
        pairs.into_iter().for_each(|pair| rank(list, pair));
        Ok(())
    }

    /// Brings the activation of neuron i to unit mean square, as the first of two or as the other;
    /// what its root was.
    fn activation(&mut self, i: usize, is_other: bool) -> Result<Option<f32>, S::Source> {
        let rows = self.fit.rows();
        let Self { fit, net, single, .. } = self;
        let w = net.view().w();
        if w.block(i).is_empty() {
            return Ok(None);
        }
        let out = row_head::<S>(if is_other { &mut *single.t } else { &mut *single.z }, rows)?;
        fit.image(fit.gates(w), w.block(i), out)?;
        let size = sqrt(fit.norm2(out)? / rows as f32);
        if !(size > 0.0) {
            return Ok(None);
        }
        fit.sensing.machine().divide(out, size);
        Ok(Some(size))
    }

    /// What a pair could win, and its factor; both 0 unless that is positive.
    fn pair(&mut self, ratio: usize) -> (f32, f32) {
        let t = RATIOS.get(ratio).copied().unwrap_or(1.0);
        let Self { fit, single, .. } = self;
        let rows = fit.rows();
        let (a, b) = (cut::<S>(&*single.z, rows), cut::<S>(&*single.t, rows));
        let r = cut::<S>(&*fit.residual, rows);
        let Along { product, norm2 } = fit.sensing.machine().pair(r, a, b, t);
        let factor = product / norm2;
        if factor > 0.0 && factor.is_finite() { (product * factor, factor) } else { (0.0, 0.0) }
    }

    /// [`Moves::add_pair`](crate::learn::lm::model::Moves::add_pair).
    pub(super) fn form_pair(&mut self, pair: Pair) -> Result<bool, S::Source> {
        let Pair { first: i, other: j, ratio } = pair;
        let (Some(first), Some(other)) = (self.activation(i, false)?, self.activation(j, true)?)
        else {
            return Ok(false);
        };
        let (_, factor) = self.pair(ratio);
        if !(factor > 0.0) {
            return Ok(false);
        }
        let Some(k) = self.vacate_output() else { return Ok(false) };
        if self.net.room() - self.net.nnz() < 2 {
            self.threshold(self.counted().saturating_sub(2))?;
        }
        let (c, t) = (self.fit.outputs, RATIOS.get(ratio).copied().unwrap_or(1.0));
        let (up, down) =
            (((i * c + k) as u32, factor / first), ((j * c + k) as u32, -factor * t / other));
        let [(a, v), (b, w)] = if i < j { [up, down] } else { [down, up] };
        self.net.edit_wt(|wt| add(wt, &[a, b], &[v, w]))?;
        // Making room may have emptied one of the two.
        self.net.clear_halves();
        Ok(true)
    }

    pub(super) fn fan_in(&self, k: usize) -> usize {
        column(self.net.view().wt(), k).count()
    }

    /// Neurons of the second layer that have weights, but output 0.
    pub(super) fn live_outputs(&self) -> impl Iterator<Item = usize> {
        (1..self.fit.outputs).filter(|&k| self.fan_in(k) > 0)
    }

    pub(super) fn weakest_output(&self) -> Option<usize> {
        let net = self.net.view();
        let size = |i| square_in(net.w().block(i), self.columns.scales);
        let strength = |k| column(net.wt(), k).map(|(i, v)| v * v * size(i)).sum::<f32>();
        let live = self.live_outputs().map(|k| (strength(k), k));
        live.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, k)| k)
    }

    /// An output without weights, the weakest one being emptied if there is none.
    pub(super) fn vacate_output(&mut self) -> Option<usize> {
        (1..self.fit.outputs).find(|&k| self.fan_in(k) == 0).or_else(|| {
            let weakest = self.weakest_output()?;
            self.remove_output(weakest);
            Some(weakest)
        })
    }

    pub(super) fn remove_output(&mut self, k: usize) {
        let c = self.fit.outputs.max(1);
        self.net.edit_wt(|wt| wt.retain(|at, _| at as usize % c != k));
    }

    /// Merges equivalent neurons of the second layer: those that are linear go into output 0 where
    /// there is that, else into one of them, those that are never active vanish, and those that are
    /// parallel add up. Returns how many vanished.
    pub(super) fn merge_outputs(&mut self, least: f32) -> Result<u32, S::Source> {
        let mut merged = 0;
        let mut linear = if self.passed() > 0 { Some(0) } else { None };
        for k in 1..self.fit.outputs {
            let up = column(self.net.view().wt(), k).filter(|(_, v)| *v >= 0.0).count();
            let down = self.fan_in(k) - up;
            if up + down == 0 {
                continue;
            }
            if up == 0 {
                self.remove_output(k);
                merged += 1;
            } else if down == 0 {
                match linear {
                    Some(to) if self.add_column(k, to, 1.0) => {
                        self.remove_output(k);
                        merged += 1;
                    }
                    Some(_) => {}
                    None => linear = Some(k),
                }
            }
        }
        for k in 1..self.fit.outputs {
            for l in k + 1..self.fit.outputs {
                let Some((cosine, ratio)) = self.compare_columns(k, l) else { continue };
                if cosine > least {
                    self.scale_column(k, 1.0 + ratio);
                } else if -cosine > least && self.passed() > 0 && self.add_column(k, 0, -ratio) {
                    // relu(u) + r relu(-u) = (1 + r) relu(u) - r u.
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

    /// Cosine and ratio of lengths of outputs k and l; none where one has no weights.
    fn compare_columns(&self, k: usize, l: usize) -> Option<(f32, f32)> {
        let net = self.net.view();
        let (mut product, mut of_k, mut of_l) = (0.0, 0.0, 0.0);
        for wt in net.wt().blocks() {
            let value = |k: usize| wt.weight(k).unwrap_or(0.0);
            let (a, b) = (value(k), value(l));
            if a != 0.0 || b != 0.0 {
                let size = square_in(net.w().block(wt.neuron()), self.columns.scales);
                product += a * b * size;
                of_k += a * a * size;
                of_l += b * b * size;
            }
        }
        (of_k > 0.0 && of_l > 0.0).then(|| (product / sqrt(of_k * of_l), sqrt(of_l / of_k)))
    }

    pub(super) fn scale_column(&mut self, k: usize, factor: f32) {
        let c = self.fit.outputs.max(1);
        self.net.edit_wt(|wt| {
            for at in 0..wt.nnz() {
                let is_here = wt.view().index().get(at).is_some_and(|j| *j as usize % c == k);
                if let (true, Some(v)) = (is_here, wt.values().get_mut(at)) {
                    *v *= factor;
                }
            }
        });
    }

    /// Gives output `to`, which must have no weights, those of output `from`.
    pub(super) fn move_column(&mut self, from: usize, to: usize) -> Result<(), S::Source> {
        let c = self.fit.outputs;
        for i in 0..self.blocks() {
            let wt = self.net.view().wt().block(i);
            let Some(v) = wt.weight(from) else { continue };
            // One by one, since there may be no room for two of them.
            self.net.edit_wt(|wt| {
                wt.retain(|at, _| at as usize != i * c + from);
                add(wt, &[(i * c + to) as u32], &[v])
            })?;
        }
        Ok(())
    }

    /// Adds `factor` times the weights of one output to another one; false if there is no room.
    pub(super) fn add_column(&mut self, from: usize, to: usize, factor: f32) -> bool {
        let c = self.fit.outputs;
        let Self { solver, net, .. } = self;
        let column = column(net.view().wt(), from);
        let scaled = column.map(|(i, v)| ((i * c + to) as u32, factor * v));
        let (index, value) = entries(solver.rhs, solver.delta, scaled);
        net.edit_wt(|wt| wt.add(index, value))
    }
}
