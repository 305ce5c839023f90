//! A network of several outputs, `sum_i relu(w_i · x) wt_i`, with all that a search needs to change
//! and to fit it.
//!
//! Both sides are sparse and share one budget. A neuron with weights on one side only gives nothing
//! and gets no gradient, so such neurons are emptied wherever they arise: a live neuron has both
//! sides. Scaling `w_i` up and `wt_i` down by one factor changes nothing; after each fit the sides
//! of a neuron are brought to about one size by powers of two, which keeps every bit of the
//! outputs.

mod equations;
mod fold;
mod head;
mod moves;
mod neuron;
mod pairs;
mod second;
mod support;
mod tidy;

use super::fit::Fit;
use super::neuron::{Entries, Single};
use super::problem::{Candidate, Candidates, Draw, Problem, Task};
use super::sides::Sides;
use super::support::Columns;
use crate::base::error::Result;
use crate::network::net::Network;
use crate::network::weights::Block;
use crate::operator::factored::Factored;
use moves::Kind;

/// A network, its data, and buffers.
pub(super) struct Factors<'a, S: Factored> {
    pub(super) fit: Fit<'a, S>,
    pub(super) net: Sides<'a>,
    /// The scales of the inputs, and a panel over both sides.
    pub(super) columns: Columns<'a>,
    pub(super) single: Single<'a, S>,
    /// Output weights of the single neuron.
    pub(super) out: Entries<'a>,
    /// Two vectors over the outputs, c each.
    pub(super) along: &'a mut [f32],
    pub(super) other: &'a mut [f32],
    /// The residual along output weights, n.
    pub(super) back: &'a mut [f32],
    pub(super) task: Task,
    /// Neurons of the second layer of the result, where outputs are summed up.
    pub(super) second: usize,
}

impl<'a, S: Factored> Problem<'a> for Factors<'a, S> {
    type Sensing = S;
    type Move = Kind;

    fn fit(&self) -> &Fit<'a, S> {
        &self.fit
    }

    fn fit_mut(&mut self) -> &mut Fit<'a, S> {
        &mut self.fit
    }

    fn task(&self) -> &Task {
        &self.task
    }

    fn task_mut(&mut self) -> &mut Task {
        &mut self.task
    }

    fn view(&self) -> Network<'_> {
        self.net.view()
    }

    fn room(&self) -> usize {
        self.net.room()
    }

    fn load(&mut self, from: Network<'_>) -> Result<(), S::Source> {
        self.net.store(from)?;
        self.net.clear_halves();
        Ok(())
    }

    fn live(&self) -> usize {
        let second = if self.fit.is_summed() { self.second_live() } else { 0 };
        self.net.view().w().blocks().count() + second
    }

    fn counted(&self) -> usize {
        self.net.nnz() - self.passed()
    }

    fn weakest_live(&self) -> Option<usize> {
        self.weakest(None)
    }

    fn nth_live(&self, nth: usize) -> Option<usize> {
        let first = self.net.view().w().blocks().map(|block| block.neuron());
        // Those of the second layer come behind those of the first.
        let p = self.blocks();
        let second = if self.fit.is_summed() { 1..self.outputs() } else { 0..0 };
        first.chain(second.filter(|&k| self.fan_in(k) > 0).map(|k| p + k)).nth(nth)
    }

    fn remove(&mut self, i: usize) {
        match i.checked_sub(self.blocks()) {
            None => self.net.remove(i),
            Some(k) => {
                self.remove_output(k);
                self.net.clear_halves();
            }
        }
    }

    fn measure(&mut self) -> Result<(), S::Source> {
        self.columns.measure(&mut self.fit)
    }

    fn start(&mut self, seed: u64) -> Result<(), S::Source> {
        if self.fit.is_summed() { self.first_layers(seed) } else { self.first_weights(seed) }
    }

    fn is_relaxed(&self) -> bool {
        self.fit.is_summed()
    }

    fn relax(&mut self) -> Result<(), S::Source> {
        if self.fit.is_summed() { self.pass_through() } else { Ok(()) }
    }

    fn loss(&mut self) -> Result<f32, S::Source> {
        self.fit.net_loss(self.net.view())
    }

    fn improve(&mut self, loss: f32, steps: u32, goal: f32) -> Result<f32, S::Source> {
        let steps = self.task.steps(steps);
        let loss = self.fit.net_improve((&mut self.net, self.single.z), loss, steps, goal)?;
        self.balance();
        Ok(loss)
    }

    fn grow(&mut self, count: usize) -> Result<(), S::Source> {
        if self.is_open_ended() {
            self.pass_through()?;
        }
        self.add_zeros(count)
    }

    fn threshold(&mut self, size: usize) -> Result<(), S::Source> {
        self.keep(size)
    }

    fn flip(&mut self, loss: f32) -> Result<f32, S::Source> {
        if self.fit.is_summed() { self.turn_first(loss) } else { self.turn_round(loss) }
    }

    fn unmirror(&mut self, i: usize) -> Result<u32, S::Source> {
        if self.fit.is_summed() { self.unfold(i) } else { Ok(0) }
    }

    fn merge(&mut self, least: f32) -> Result<u32, S::Source> {
        let merged = self.join(least)?;
        Ok(merged + if self.fit.is_summed() { self.join_outputs(least)? } else { 0 })
    }

    fn candidates(&mut self, draw: Draw) -> Result<Candidates<Kind>, S::Source> {
        self.list(draw)
    }

    fn apply(&mut self, candidate: &Candidate<Kind>, draw: Draw) -> Result<bool, S::Source> {
        self.add_neuron(candidate.kind, draw)
    }

    fn conclude(
        &mut self,
        loss: f32,
        scratch: &mut Sides<'_>,
        other: &mut Sides<'_>,
    ) -> Result<f32, S::Source> {
        if self.fit.is_summed() {
            self.fold_layers(loss, scratch, other)
        } else {
            self.narrow(loss)
        }
    }

    fn unscale(&self, found: &mut Sides<'_>) {
        self.fit.unscale(found.values().1);
    }

    fn rescale(&self, given: &mut Sides<'_>) {
        self.fit.rescale(given.values().1);
    }
}

impl<S: Factored> Factors<'_, S> {
    /// d.
    fn inputs(&self) -> usize {
        self.columns.scales().len()
    }

    /// c.
    fn outputs(&self) -> usize {
        self.fit.outputs()
    }

    /// p, neurons that there is room for.
    fn blocks(&self) -> usize {
        self.fit.sensing.blocks()
    }

    /// The first neuron without weights.
    fn vacant(&self) -> Option<usize> {
        let mut live = self.net.view().w().blocks().map(|block| block.neuron()).peekable();
        (0..self.blocks()).find(|&i| live.next_if_eq(&i).is_none())
    }

    /// The neuron that contributes least to the outputs; never `but`.
    fn weakest(&self, but: Option<usize>) -> Option<usize> {
        let net = self.net.view();
        let strength = |w: Block<'_>| {
            let wt = net.wt().block(w.neuron());
            square_in(w, self.columns.scales()) * wt.values().iter().map(|v| v * v).sum::<f32>()
        };
        let others = net.w().blocks().filter(|block| Some(block.neuron()) != but);
        let weakest = others.map(|w| (strength(w), w.neuron())).min_by(|a, b| a.0.total_cmp(&b.0));
        weakest.map(|(_, i)| i)
    }

    /// A neuron without weights, the weakest one being emptied if there is none; never `but`.
    fn vacate(&mut self, but: Option<usize>) -> Option<usize> {
        self.vacant().or_else(|| {
            let weakest = self.weakest(but)?;
            self.net.remove(weakest);
            Some(weakest)
        })
    }

    /// Brings both sides of every neuron to about one size, by powers of two.
    fn balance(&mut self) {
        for i in 0..self.blocks() {
            let net = self.net.view();
            let (w, wt) = (net.w().block(i), net.wt().block(i));
            let (w, wt) = (
                square_in(w, self.columns.scales()),
                wt.values().iter().map(|v| v * v).sum::<f32>(),
            );
            let Some((up, down)) = quarter(wt / w) else { continue };
            let (w, wt) = self.net.values_of(i);
            w.iter_mut().for_each(|w| *w *= up);
            wt.iter_mut().for_each(|wt| *wt *= down);
        }
    }
}

/// The squared norm of weights in the metric of the inputs.
fn square_in(w: Block<'_>, scales: &[f32]) -> f32 {
    super::bench::scaled(w, scales).map(|(_, x)| x * x).sum()
}

/// The power of two nearest to the fourth root of x, and its inverse; none where that is 1, or x no
/// positive number.
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
mod layered;
#[cfg(test)]
mod tests;
