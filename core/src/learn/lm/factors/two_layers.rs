//! Searches for networks of two layers: the first weights, flips, neurons of the first layer that
//! are folded over, and the end of output 0.

use super::SecondLayer;
use crate::base::error::Result;
use crate::base::math::sqrt;
use crate::base::rng::{Rng, stream};
use crate::learn::lm::model::{Model, Moves, Support, square_in};
use crate::learn::lm::moves::SLIM_STEPS;
use crate::learn::lm::neuron::{Candidates, Pair};
use crate::learn::lm::sides::Sides;
use crate::learn::lm::signed::FLIP;
use crate::learn::lm::support::add;
use crate::network::net::Network;
use crate::operator::factored::Factored;

/// Weights that a neuron of the second layer starts with.
const INPUTS: usize = 3;
/// Sweeps over all signs at the most.
const SWEEPS: u32 = 16;
/// Weights that cancel leave less than this fraction of the largest one.
const ROUNDING: f32 = 1e-5;
/// A weight of this fraction of the largest one is half there.
const PRESENT: f32 = 1e-4;
/// A weight below zero counts so many times.
const BELOW: f32 = 3.0;
/// A flip must leave less than this fraction of the cost.
const CHEAPER: f32 = 0.999;
/// At the end neurons of the second layer with a cosine above this become one.
const SAME: f32 = 0.9999;
/// A weight below this fraction of another one of its neuron is as good as none.
const IDLE: f32 = 1e-2;
/// A weight cancels another one where less than this fraction of it is left.
const CANCELS: f32 = 0.2;

/// How the weights of output 0 are counted: by whether they are there, which is right where the fit
/// is exact, or by the roots of their sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    Count,
    Root,
}

/// The square of the largest weight of the second layer, for inputs of unit size.
fn largest(net: Network<'_>, scales: &[f32]) -> f32 {
    let largest = net.wt().blocks().map(|wt| {
        let most = wt.values().iter().fold(0.0_f32, |most, v| most.max(v * v));
        most * square_in(net.w().block(wt.neuron()), scales)
    });
    largest.fold(0.0, f32::max)
}

impl<S: Factored> Moves<S> for Model<'_, S, SecondLayer<'_, S>> {
    fn second_live(&self) -> usize {
        self.live_outputs().count()
    }

    fn nth_second(&self, nth: usize) -> Option<usize> {
        self.live_outputs().nth(nth)
    }

    fn remove_second(&mut self, k: usize) {
        self.remove_output(k);
        self.net.clear_halves();
    }

    /// Under random gates 0.6 s where `|g| / c` is largest, `w = g / c²` on them, all of which pass
    /// through; and [`INPUTS`] random ones to every neuron of the second layer.
    fn start(&mut self, seed: u64) -> Result<(), S::Source> {
        self.net.clear();
        self.loss()?;
        let count = self.task.nnz.saturating_mul(3).div_ceil(5);
        self.start_inputs(seed, count, self.fit.rows() as f32, |_, wt| wt.unit(0, 1.0))?;
        let work_size = self.task.work_size();
        let Self { fit, net, columns, .. } = self;
        let (c, live) = (fit.outputs, net.view().w().blocks().count());
        let mut rng = Rng::new(seed, stream::OUTPUTS);
        // What is stored between steps has at most the work size.
        let spare =
            work_size.saturating_sub(net.nnz()).min((net.room() - net.nnz()).saturating_sub(live));
        for k in 1..=fit.head.neurons.min(c.saturating_sub(1)).min(spare / INPUTS) {
            for _ in 0..INPUTS.min(live) {
                let nth = rng.below(live as u32) as usize;
                let i = net.view().w().blocks().nth(nth).map_or(0, |w| w.neuron());
                let size = sqrt(square_in(net.view().w().block(i), columns.scales()));
                let value = rng.normal() / size;
                if value.is_finite() {
                    net.edit_wt(|wt| add(wt, &[(i * c + k) as u32], &[value]))?;
                }
            }
        }
        self.pass_through()?;
        for i in 0..self.blocks() {
            let (w, wt) = self.net.values_of(i);
            if let (false, Some(first)) = (w.is_empty(), wt.first_mut()) {
                *first = 1.0;
            }
        }
        self.fit_scale()?;
        self.balance();
        Ok(())
    }

    fn is_relaxed(&self) -> bool {
        true
    }

    fn relax(&mut self) -> Result<(), S::Source> {
        self.pass_through()
    }

    fn flip(&mut self, loss: f32) -> Result<f32, S::Source> {
        let (mut least, mut flipped) = (loss, 0);
        for i in 0..self.blocks() {
            if self.is_vacant(i) {
                continue;
            }
            self.negate(i);
            let turned = self.loss()?;
            if turned < FLIP * least {
                least = turned;
                flipped += 1;
            } else {
                self.negate(i);
            }
        }
        self.task.info.flips = self.task.info.flips.saturating_add(flipped);
        if flipped > 0 { self.refit(2) } else { self.loss() }
    }

    fn merge_second(&mut self, least: f32) -> Result<u32, S::Source> {
        self.merge_outputs(least)
    }

    fn list_pairs(&mut self, list: &mut Candidates) -> Result<(), S::Source> {
        self.rank_pairs(list)
    }

    fn add_pair(&mut self, pair: Pair) -> Result<bool, S::Source> {
        self.form_pair(pair)
    }

    /// Does away with output 0: flips neurons of the second layer so that few of its weights are
    /// left, by either measure, which become a neuron.
    fn conclude(&mut self, loss: f32, buffers: [&mut Sides<'_>; 2]) -> Result<f32, S::Source> {
        if self.passed() == 0 {
            return self.narrow_layers(loss);
        }
        self.task.info.folds = self.task.info.folds.saturating_add(1);
        self.better_of(
            buffers,
            |model| model.fold_by(Measure::Count),
            |model| model.fold_by(Measure::Root).map(Some),
        )
    }

    /// Flips neuron j of the first layer where the same function then has fewer weights,
    ///
    /// ```text
    /// relu(u relu(z_i) - v relu(z_j)) = relu(u relu(z_i - (v/u) z_j) - v relu(-z_j)),
    /// ```
    ///
    /// which holds where both lead to this neuron of the second layer alone.
    fn unmirror(&mut self, j: usize) -> Result<u32, S::Source> {
        let Some((k, v)) = self.only_output(j).filter(|(_, v)| *v < 0.0) else { return Ok(0) };
        for i in 0..self.blocks() {
            let Some((_, u)) = self.only_output(i).filter(|&(l, u)| l == k && u > 0.0) else {
                continue;
            };
            let ratio = v / u;
            let (from, to) = (self.net.view().w().block(j), self.net.view().w().block(i));
            let mut change = 0;
            for (at, w) in from.entries() {
                let old = to.weight(at).unwrap_or(0.0);
                let is_there = |sum: f32| i32::from(sum.abs() > CANCELS * (ratio * w).abs());
                change += is_there(old + ratio * w) - is_there(old);
            }
            if change >= 0 || self.net.room() - self.net.nnz() < from.values().len() {
                continue;
            }
            self.single.entries.take(self.net.view().w().block(j), i);
            self.single.entries.scale(ratio);
            self.add_single(1.0)?;
            self.negate(j);
            return Ok(1);
        }
        Ok(0)
    }
}

impl<S: Factored> Model<'_, S, SecondLayer<'_, S>> {
    /// One of the two ways of [`Moves::conclude`].
    fn fold_by(&mut self, measure: Measure) -> Result<f32, S::Source> {
        self.choose_signs(measure);
        self.drop_rounding();
        if let Some(k) = self.vacate_output() {
            self.move_column(0, k)?;
        }
        self.remove_output(0);
        self.net.clear_halves();
        self.merge_outputs(SAME)?;
        let loss = self.refit(SLIM_STEPS)?;
        self.narrow_layers(loss)
    }

    /// Goes down to s weights and to the numbers of neurons.
    fn narrow_layers(&mut self, mut loss: f32) -> Result<f32, S::Source> {
        loss = self.thin(loss, |_, _| true)?;
        loop {
            let first = self.net.view().w().blocks().count().saturating_sub(self.task.hidden);
            let second = self.second_live().saturating_sub(self.fit.head.neurons);
            if first + second == 0 {
                return Ok(loss);
            }
            for _ in 0..first.div_ceil(3) {
                self.weakest(|_| true).into_iter().for_each(|i| self.net.remove(i));
            }
            for _ in 0..second.div_ceil(3) {
                self.weakest_output().into_iter().for_each(|k| self.remove_output(k));
            }
            self.net.clear_halves();
            loss = self.refit(SLIM_STEPS)?;
        }
    }

    /// Removes the weights of output 0 that are what rounding leaves of those that cancel.
    fn drop_rounding(&mut self) {
        let (c, scales) = (self.fit.outputs.max(1), self.columns.scales());
        let largest = largest(self.net.view(), scales);
        for i in 0..self.net.view().w().hidden() {
            let size = square_in(self.net.view().w().block(i), scales);
            let least = ROUNDING * ROUNDING * largest / size;
            self.net.edit_wt(|wt| wt.retain(|at, v| at as usize != i * c || v * v > least));
        }
    }

    /// Flips neurons of the second layer, `V_k -> -V_k` and `l -> l + V_k`, one or two at a time,
    /// as long as that lowers the cost.
    fn choose_signs(&mut self, measure: Measure) {
        let most = sqrt(largest(self.net.view(), self.columns.scales()));
        for _ in 0..SWEEPS {
            let mut turned = false;
            for k in 1..self.fit.outputs {
                for l in k..self.fit.outputs {
                    let cost = |k, l| self.cost(k, l, most, measure);
                    let is_live = self.fan_in(k) > 0 && self.fan_in(l) > 0;
                    if is_live && cost(k, l) < CHEAPER * cost(0, 0) {
                        self.flip_second(k);
                        if l > k {
                            self.flip_second(l);
                        }
                        turned = true;
                    }
                }
            }
            if !turned {
                break;
            }
        }
    }

    fn flip_second(&mut self, k: usize) {
        if self.add_column(k, 0, 1.0) {
            self.scale_column(k, -1.0);
        }
    }

    /// The measure of the weights of output 0 with neurons k and l flipped, 0 standing for none;
    /// those below zero count more, since no linear neuron has such.
    fn cost(&self, k: usize, l: usize, most: f32, measure: Measure) -> f32 {
        let net = self.net.view();
        let mut cost = 0.0;
        for wt in net.wt().blocks() {
            let counts = |at| at == 0 || at == k || at == l;
            let sum: f32 = wt.entries().filter(|(at, _)| counts(*at)).map(|(_, v)| v).sum();
            let size = sqrt(square_in(net.w().block(wt.neuron()), self.columns.scales()));
            let size = sum.abs() * size / most;
            let size = match measure {
                Measure::Count => size / (size + PRESENT),
                Measure::Root => sqrt(size),
            };
            cost += if sum < 0.0 { BELOW * size } else { size };
        }
        cost
    }

    /// The one output that neuron i leads to, but for negligible weights, and the weight.
    fn only_output(&self, i: usize) -> Option<(usize, f32)> {
        let wt = self.net.view().wt().block(i);
        let largest = wt.entries().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
        let others =
            wt.entries().filter(|(k, v)| *k != largest.0 && v.abs() > IDLE * largest.1.abs());
        (largest.0 > 0 && others.count() == 0).then_some(largest)
    }
}
