//! What takes a network of two layers to an equivalent one of fewer weights: the end of output 0,
//! and neurons of the first layer that are folded over.

use super::SecondLayer;
use crate::base::error::Result;
use crate::base::math::sqrt;
use crate::learn::lm::model::{Model, square_in};
use crate::learn::lm::moves::SLIM_STEPS;
use crate::learn::lm::sides::Sides;
use crate::learn::lm::support::add;
use crate::network::net::Network;
use crate::operator::factored::Factored;

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

/// How the weights of output 0 are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    /// By whether they are there: right where the fit is exact, however small they are.
    Count,
    /// By the roots of their sizes: what is there in part counts in part.
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

impl<S: Factored> Model<'_, S, SecondLayer<'_>> {
    /// Does away with output 0: flips neurons of the second layer so that few weights of it are
    /// left, which become a neuron of the second layer; then goes down to s weights and to the
    /// numbers of neurons. Which few is measured in two ways, of which the better one is taken.
    /// Returns the loss; both buffers hold the networks of a search.
    pub(super) fn fold(
        &mut self,
        loss: f32,
        scratch: &mut Sides<'_>,
        other: &mut Sides<'_>,
    ) -> Result<f32, S::Source> {
        if self.passed() == 0 {
            return self.narrow_layers(loss);
        }
        self.task.folds = self.task.folds.saturating_add(1);
        self.better_of(
            scratch,
            other,
            |model| model.fold_by(Measure::Count),
            |model| model.fold_by(Measure::Root).map(Some),
        )
    }

    /// One of the two ways of [`Self::fold`].
    fn fold_by(&mut self, measure: Measure) -> Result<f32, S::Source> {
        self.choose_signs(measure)?;
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
            let second = self.live_outputs().saturating_sub(self.fit.head.neurons);
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
        let c = self.outputs().max(1);
        let Self { net, columns, .. } = self;
        let size = |net: &Sides<'_>, i| square_in(net.view().w().block(i), columns.scales());
        let largest = largest(net.view(), columns.scales());
        for i in 0..net.view().w().hidden() {
            let least = ROUNDING * ROUNDING * largest / size(net, i);
            net.edit_wt(|wt| wt.retain(|at, v| at as usize != i * c || v * v > least));
        }
    }

    /// Flips neurons of the second layer, `V_k -> -V_k` and `l -> l + V_k`, one or two at a time,
    /// as long as the weights of l become fewer and smaller.
    fn choose_signs(&mut self, measure: Measure) -> Result<(), S::Source> {
        let most = sqrt(largest(self.net.view(), self.columns.scales()));
        for _ in 0..SWEEPS {
            let mut turned = false;
            for k in 1..self.outputs() {
                for l in k..self.outputs() {
                    if self.fan_in(k) == 0 || self.fan_in(l) == 0 {
                        continue;
                    }
                    if self.cost(k, l, most, measure) < CHEAPER * self.cost(0, 0, most, measure) {
                        self.flip_second(k)?;
                        if l > k {
                            self.flip_second(l)?;
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

    /// Flips neuron k of the second layer.
    fn flip_second(&mut self, k: usize) -> Result<(), S::Source> {
        if self.add_column(k, 0, 1.0)? {
            self.scale_column(k, -1.0);
        }
        Ok(())
    }

    /// How many or how large the weights of output 0 were with neurons k and l flipped, 0 standing
    /// for none, beside the largest weight there is; those below zero count more, since no neuron
    /// without a gate has such.
    fn cost(&self, k: usize, l: usize, most: f32, measure: Measure) -> f32 {
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
            let part = sum.abs() * size / most;
            let part = match measure {
                Measure::Count => part / (part + PRESENT),
                Measure::Root => sqrt(part),
            };
            cost += if sum < 0.0 { BELOW * part } else { part };
        }
        cost
    }

    /// Flips neuron j of the first layer where the same function then has fewer weights,
    ///
    /// ```text
    /// relu(u relu(z_i) - v relu(z_j)) = relu(u relu(z_i - (v/u) z_j) - v relu(-z_j)),
    /// ```
    ///
    /// which holds where both lead to this neuron of the second layer alone. Returns 1 if it was
    /// flipped.
    pub(super) fn unfold(&mut self, j: usize) -> Result<u32, S::Source> {
        let Some((k, v)) = self.only_output(j).filter(|(_, v)| *v < 0.0) else { return Ok(0) };
        for i in 0..self.blocks() {
            let Some((_, u)) = self.only_output(i).filter(|&(l, u)| l == k && u > 0.0) else {
                continue;
            };
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
            self.negate(j);
            return Ok(1);
        }
        Ok(0)
    }

    /// The one output that neuron i of the first layer leads to, but for negligible weights, and
    /// the weight.
    fn only_output(&self, i: usize) -> Option<(usize, f32)> {
        let wt = self.net.view().wt().block(i);
        let largest = wt.entries().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
        let others =
            wt.entries().filter(|(k, v)| *k != largest.0 && v.abs() > IDLE * largest.1.abs());
        (largest.0 > 0 && others.count() == 0).then_some(largest)
    }
}
