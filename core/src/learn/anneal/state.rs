//! The support and what Adam keeps on it: everything that survives from step to step.

mod support;

use super::checkpoint::{Checkpoint, State};
use super::params::Params;
use crate::base::budget::{self, Annealing, Workspace};
use crate::base::error::{self, Result};
use crate::base::math;
use crate::base::rng::{Rng, stream};
use crate::network::net::{Count, EntriesMut, Network, Shape};
use crate::network::top::Top;
use crate::network::weights::{Block, runs};
use crate::operator::factored::{Factored, GradientMut};
use crate::operator::machine::Machine;
use crate::operator::sensing::Rows;
use crate::operator::tables::Residual;

/// Where the clock of a draw stands at least: below every draw but zero, and far from where
/// quotients overflow.
const CLOCK: f32 = 1e-8;
/// Decay of the mean of the gradients.
const BETA1: f32 = 0.9;
/// Decay of the mean of their squares.
const BETA2: f32 = 0.999;
/// What is added to the root of the mean square.
const EPSILON: f32 = 1e-8;
/// Least size of the only weight of its sign to one output, in units of the largest.
const LAST: f32 = 0.25;

/// The units in which inputs and the weights from them are measured.
pub(super) struct Units<'a> {
    /// `1 / (rms + floor)` of each scaled input; 0 for inputs that are always zero.
    columns: &'a [f32],
    floor: f32,
    /// Factor that brings the inputs to about 1.
    scale: f32,
}

impl<'a> Units<'a> {
    pub(super) fn new(params: &Params<'_>, columns: &'a [f32]) -> Self {
        Self { columns, floor: params.floor, scale: params.input_scale }
    }

    /// Root mean square of a scaled input.
    fn rms(&self, j: usize) -> f32 {
        match self.columns.get(j) {
            Some(&inverse) if inverse > 0.0 => (1.0 / inverse - self.floor).max(0.0),
            _ => 0.0,
        }
    }

    /// About the size of a neuron's activation: that of independent inputs.
    fn activation(&self, w: Block<'_>) -> f32 {
        let terms = w.entries().map(|(j, value)| value / self.scale * self.rms(j));
        math::sqrt(terms.map(|term| term * term).sum())
    }
}

/// Buffers of a step.
pub(super) struct Buffers<'a, R: ?Sized> {
    /// n×c.
    pub(super) residual: &'a mut R,
    /// p·(d + c).
    pub(super) panel: &'a mut [f32],
    /// `1 / (scale + floor)` of each input column, d.
    pub(super) columns: &'a mut [f32],
    /// The operator's.
    pub(super) scratch: &'a mut [f32],
}

/// Entries of both sides: those of W first, then those of Wt, each with rising indices of its own
/// matrix.
pub(super) struct Support<'a> {
    shape: Shape,
    index: &'a mut [u32],
    value: &'a mut [f32],
    mean: &'a mut [f32],
    square: &'a mut [f32],
    /// Gradient of a step; between steps, scores.
    score: &'a mut [f32],
    /// Values of the best iterate. Its indices are those of the support where that is settled;
    /// where there is room for them behind s entries, they stand there.
    best: &'a mut [f32],
    /// Entries of the best iterate on W and on both sides; none before there is one.
    kept: Count,
    /// Entries of W.
    first: usize,
    /// Entries of both sides.
    len: usize,
    /// Entries behind them that the last call of [`Self::keep`] has dropped: until the support
    /// grows again they can come back. Their indices are in one space over both sides, their values
    /// where their means were.
    dropped: usize,
}

pub(super) fn carve<'a, M: Machine>(
    machine: &mut M,
    budget: &Annealing,
    memory: &'a mut [u32],
) -> Result<(Support<'a>, Buffers<'a, M::Rows>)> {
    budget::enough(budget.words(), memory.len())?;
    let mut space = Workspace::new(memory);
    let start = budget.start;
    let state = Support {
        shape: Shape::weighted(budget.dims.inputs, budget.dims.hidden, budget.outputs),
        index: space.indices(start)?,
        value: space.floats(start)?,
        mean: space.floats(start)?,
        square: space.floats(start)?,
        score: space.floats(start)?,
        best: space.floats(if budget.validated { budget.dims.nnz } else { 0 })?,
        kept: Count::default(),
        first: 0,
        len: 0,
        dropped: 0,
    };
    let buffers = Buffers {
        residual: machine.rows_in(space.floats(budget.batch.saturating_mul(budget.outputs))?),
        panel: space.floats(budget.panel_words())?,
        columns: space.floats(budget.dims.inputs)?,
        scratch: space.floats(budget.scratch)?,
    };
    Ok((state, buffers))
}

impl<'a> Support<'a> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn count(&self) -> Count {
        Count { first: self.first, all: self.len }
    }

    pub(super) fn net(&self) -> Network<'_> {
        Network::cut(self.shape, self.index, self.value, self.count())
    }

    pub(super) fn into_net(self) -> Network<'a> {
        Network::cut(self.shape, self.index, self.value, self.count())
    }

    /// A random first support with the weights that must be kept, columns in proportion to their
    /// size, and random weights on it.
    pub(super) fn start(&mut self, params: &Params<'_>, units: &Units<'_>) -> Result<()> {
        let (start, keep) = (self.index.len(), params.must_keep);
        let all = self.shape.input_weights();
        let all_out = self.shape.hidden * self.shape.output_weights();
        let out =
            all_out.min((start / 3).max(1)).max(start.saturating_sub(all)).min(start - keep.len());
        // No more neurons than there are weights from them: few weights spread over more would lie
        // on no path.
        let last = keep.last().map_or(0, |&e| 1 + e as usize / self.shape.inputs.max(1));
        let least = (start - out).div_ceil(self.shape.inputs.max(1));
        let hidden = out.max(last).max(least).min(self.shape.hidden);
        let mut rng = Rng::new(params.seed, stream::SUPPORT);
        let index = self.index.get_mut(..start - out).unwrap_or(&mut []);
        let mut from = Top::keeping(index, &mut *self.value, keep)?;
        for i in 0..hidden {
            for j in 0..self.shape.inputs {
                // The race of exponential clocks: the first to ring are a draw in proportion to
                // their rates.
                let clock = (-math::ln(1.0 - rng.uniform())).max(CLOCK);
                from.push((i * self.shape.inputs + j) as u32, units.rms(j) / clock);
            }
        }
        self.first = from.finish().unwrap_or(0);
        let rest = self.first..self.first + out;
        let index = self.index.get_mut(rest.clone()).unwrap_or(&mut []);
        let mut to = Top::new(index, self.value.get_mut(rest).unwrap_or(&mut []));
        for e in 0..hidden * self.shape.output_weights() {
            to.push(e as u32, 1.0 - rng.uniform());
        }
        self.len = self.first + to.finish().unwrap_or(0);
        self.mean.fill(0.0);
        self.square.fill(0.0);
        self.randomise(units, &mut rng);
        Ok(())
    }

    /// Weights such that activations and outputs have about unit size.
    fn randomise(&mut self, units: &Units<'_>, rng: &mut Rng) {
        let (from, to) = self.value.split_at_mut_checked(self.first).unwrap_or_default();
        let picks = self.index.get(..self.first).unwrap_or(&[]);
        for (i, run) in runs(self.shape.inputs, picks) {
            let rms = |j: &u32| units.rms(*j as usize - i * self.shape.inputs);
            let picks = picks.get(run.clone()).unwrap_or(&[]);
            let power: f32 = picks.iter().map(|j| rms(j) * rms(j)).sum();
            let deviation = units.scale * math::sqrt(2.0 / power.max(f32::MIN_POSITIVE));
            for (j, value) in picks.iter().zip(from.get_mut(run).unwrap_or(&mut [])) {
                // A column of zeros is here only if it must be kept, and tells no size.
                let seen = if rms(j) > 0.0 { 1.0 } else { 0.0 };
                *value = seen * deviation * rng.normal();
            }
        }
        let deviation =
            math::sqrt(self.shape.output_weights() as f32 / (self.len - self.first).max(1) as f32);
        for value in to.iter_mut().take(self.len - self.first) {
            *value = deviation * rng.normal();
        }
        if self.shape.output_weights() == 1 && self.signs().contains(&0) {
            // Neurons of one sign alone could tell one of two classes only.
            let to = self.value.iter_mut().take(self.len).skip(self.first);
            to.skip(1).step_by(2).for_each(|value| *value = -*value);
        }
    }

    /// The gradient of the selected rows on the support.
    pub(super) fn gradient<S: Factored>(
        &mut self,
        sensing: &mut S,
        r: &Rows<S>,
        step: u32,
        scratch: &mut [f32],
    ) -> Result<(), S::Source> {
        let net = Network::cut(self.shape, self.index, self.value, self.count());
        let g = self.score.get_mut(..self.len).unwrap_or(&mut []);
        let out = GradientMut::split(g, self.first);
        sensing.net_gradient_at(net.gates(step), net, Residual::Each(r), out, scratch)
    }

    /// Weights of the one output above 0 and below.
    fn signs(&self) -> [usize; 2] {
        let to = self.value.get(self.first..self.len).unwrap_or(&[]);
        [1.0, -1.0].map(|sign| to.iter().filter(|value| **value * sign > 0.0).count())
    }

    /// The last weight to the one output of a sign that there was `before` keeps it, and is at
    /// least [`LAST`] of the largest: how much its neuron says is for its inputs.
    fn hold_signs(&mut self, before: [usize; 2]) {
        let now = self.signs();
        let to = self.value.get_mut(self.first..self.len).unwrap_or(&mut []);
        let least = LAST * to.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
        for ((sign, before), now) in [1.0, -1.0].into_iter().zip(before).zip(now) {
            let last = match (before, now) {
                (1.., 0) => to.iter_mut().min_by(|a, b| a.abs().total_cmp(&b.abs())),
                (_, 1) => to.iter_mut().find(|value| **value * sign > 0.0),
                _ => None,
            };
            if let Some(value) = last {
                *value = sign * least.max(*value * sign);
            }
        }
    }

    /// One step along the gradient of `rows` rows.
    pub(super) fn adam(&mut self, rows: f32, rate: f32, scale: f32, at: &mut State) {
        at.decayed.mean *= BETA1;
        at.decayed.square *= BETA2;
        let (mean_part, square_part) =
            (1.0 / (1.0 - at.decayed.mean), 1.0 / (1.0 - at.decayed.square));
        let signs = (self.shape.output_weights() == 1).then(|| self.signs());
        let moments = self.mean.iter_mut().zip(&mut *self.square);
        let entries = self.value.iter_mut().zip(&*self.score).zip(moments).take(self.len);
        for (e, ((value, g), (mean, square))) in entries.enumerate() {
            let unit = if e < self.first { scale } else { 1.0 };
            let g = g * unit / rows;
            *mean += (1.0 - BETA1) * (g - *mean);
            *square += (1.0 - BETA2) * (g * g - *square);
            let step = rate * mean_part * *mean / (math::sqrt(square_part * *square) + EPSILON);
            *value += unit * step;
        }
        if let Some(before) = signs {
            self.hold_signs(before);
        }
    }

    /// Whether an iterate can be remembered while its support still changes: if the indices of s
    /// entries fit behind those of s others, where nothing is once the support has shrunk.
    pub(super) fn has_spare(&self) -> bool {
        !self.best.is_empty() && self.index.len() >= 2 * self.best.len()
    }

    /// Keeps this iterate as the best so far, if it has at most s entries; where there is no room
    /// to spare, the support must be settled.
    pub(super) fn remember(&mut self) {
        let s = self.best.len();
        if self.len > s {
            return;
        }
        for (best, value) in self.best.iter_mut().zip(&*self.value).take(self.len) {
            *best = *value;
        }
        if self.has_spare() {
            let (now, spare) = self.index.split_at_mut(s);
            for (spare, index) in spare.iter_mut().zip(now).take(self.len) {
                *spare = *index;
            }
        }
        self.kept = self.count();
    }

    /// Goes back to the weights of the best iterate, if there is one.
    pub(super) fn recall(&mut self) {
        let Count { first, all: len } = self.kept;
        if len == 0 {
            return;
        }
        if self.has_spare() {
            let (now, spare) = self.index.split_at_mut(self.best.len());
            for (index, spare) in now.iter_mut().zip(spare).take(len) {
                *index = *spare;
            }
        }
        for (value, best) in self.value.iter_mut().zip(&*self.best).take(len) {
            *value = *best;
        }
        (self.first, self.len, self.dropped) = (first, len, 0);
    }

    /// The best iterate; no weights where there is none yet.
    fn best(&self) -> Network<'_> {
        let s = self.best.len();
        let index =
            if self.has_spare() { self.index.get(s..).unwrap_or(&[]) } else { &*self.index };
        Network::cut(self.shape, index, self.best, self.kept)
    }

    /// Begins with a network that fits.
    pub(super) fn start_from(&mut self, network: Network<'_>) -> Result<()> {
        network.check_shape(self.shape)?;
        error::range("weights of the network", network.nnz(), 0, self.index.len())?;
        let all = EntriesMut { index: self.index, value: self.value };
        Count { first: self.first, all: self.len } = network.copy_to(all);
        self.mean.fill(0.0);
        self.square.fill(0.0);
        Ok(())
    }

    /// What a checkpoint holds of it.
    pub(super) fn checkpoint(&self, state: State) -> Checkpoint<'_> {
        let (mean, square) = (self.mean.get(..self.len), self.square.get(..self.len));
        Checkpoint {
            state,
            net: self.net(),
            mean: mean.unwrap_or(&[]),
            square: square.unwrap_or(&[]),
            best: self.best(),
        }
    }

    /// Becomes what a checkpoint holds, which must fit.
    pub(super) fn load(&mut self, from: &Checkpoint<'_>) -> Result<()> {
        let (s, start) = (self.best.len(), self.index.len());
        let (nnz, best) = (from.net.nnz(), from.best.nnz());
        from.net.check_shape(self.shape)?;
        from.best.check_shape(self.shape)?;
        error::range("entries of the checkpoint", nnz, 0, start)?;
        error::range("best entries of the checkpoint", best, 0, s)?;
        // There is a best iterate only where the support has shrunk.
        error::range("entries of the checkpoint", nnz, 0, if best > 0 { s } else { start })?;
        error::length("means of the checkpoint", from.mean.len(), nnz)?;
        error::length("mean squares of the checkpoint", from.square.len(), nnz)?;
        error::finite("means of the checkpoint", from.mean)?;
        error::finite("mean squares of the checkpoint", from.square)?;
        let negative = from.square.iter().filter(|square| **square < 0.0).count();
        error::range("negative squares of the checkpoint", negative, 0, 0)?;
        let all = EntriesMut { index: self.index, value: self.value };
        Count { first: self.first, all: self.len } = from.net.copy_to(all);
        for (to, from) in [(&mut *self.mean, from.mean), (&mut *self.square, from.square)] {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        }
        // Without room to spare the indices of the best iterate are those of the support.
        let at = if self.has_spare() { s } else { 0 };
        let supports = [from.net, from.best].map(|net| (net.w().index(), net.wt().index()));
        let [support, best] = supports;
        if at == 0 && support != best {
            error::range("best entries of the checkpoint off its support", from.best.nnz(), 0, 0)?;
        }
        if from.best.nnz() > 0 {
            let index = self.index.get_mut(at..).unwrap_or(&mut []);
            self.kept = from.best.copy_to(EntriesMut { index, value: self.best });
        }
        self.dropped = 0;
        Ok(())
    }
}
