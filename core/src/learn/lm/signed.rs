//! Searches for networks of one output whose output weights are signs.

use super::equations::Jacobian;
use super::goal::OneOutput;
use super::model::{Model, Moves, Small, Support, cosine, square_in};
use super::neuron::{Forming, Origin};
use super::sides::Sides;
use super::solver::{Stepped, entries};
use super::support::{Asked, add, threshold};
use crate::base::error::{Error, Result};
use crate::operator::machine::Machine;
use crate::operator::sensing::{Sensing, row_head};

/// A neuron is flipped where that leaves less than this fraction of the loss.
pub(super) const FLIP: f32 = 0.999;
/// Neurons of which each is looked at by itself, at most: that costs a call for each.
const TOLD_APART: usize = 32;

impl<S: Sensing> Support<S> for Model<'_, S, OneOutput> {
    fn counted(&self) -> usize {
        self.net.nnz() - self.linear()
    }

    fn loss(&mut self) -> Result<f32, S::Source> {
        self.fit.loss(self.net.view().w())
    }

    fn improve(&mut self, loss: f32, steps: u32, goal: f32) -> Result<f32, S::Source> {
        let Self { fit, solver, net, task, single, .. } = self;
        solver.improve(loss, task.steps(steps), goal, |solver, loss| {
            let w = net.view().w();
            let mut jacobian = Jacobian::new(fit, w, [&mut *single.z, &mut *single.t]);
            let Stepped { loss, values } = solver.step(&mut jacobian, loss)?;
            net.set_values(values);
            Ok(loss)
        })
    }

    fn grow(&mut self, count: usize) -> Result<(), S::Source> {
        let Self { fit, solver, net, columns, .. } = self;
        net.edit_w(|w| columns.grow(fit, solver, w, Asked::by_scales(count)))
    }

    fn grow_active(&mut self, count: usize) -> Result<(), S::Source> {
        let Self { fit, solver, net, columns, single, .. } = self;
        let asked = Asked { norms: Some(&mut *single.dense), ..Asked::by_scales(count) };
        net.edit_w(|w| columns.grow(fit, solver, w, asked))
    }

    fn threshold(&mut self, size: usize) -> Result<(), S::Source> {
        let free = self.first() * self.inputs();
        let Self { fit, solver, net, .. } = self;
        fit.column_norms_of(net.view().w(), solver.diagonal)?;
        net.edit_w(|w| threshold(w, solver.diagonal, solver.p, free, size)).map_err(Error::widen)
    }

    /// Neurons that share a hinge and are active on the same rows add up. Of those that are active
    /// on opposite rows the weaker one is its own mirror image and a linear function,
    /// `relu(z) = z + relu(-z)`, so they merge where there is a linear term.
    fn merge_two(&mut self, i: usize, j: usize, least: f32) -> Result<bool, S::Source> {
        let scales = self.columns.scales();
        let (a, b) = (self.net.view().w().block(i), self.net.view().w().block(j));
        let cosine = cosine(a, b, scales);
        let is_mirrored = (cosine > 0.0) != (self.fit.signs.sign(i) == self.fit.signs.sign(j));
        if !(cosine.abs() > least) || (is_mirrored && self.linear() == 0) {
            return Ok(false);
        }
        let first_is_stronger = square_in(a, scales) >= square_in(b, scales);
        let (to, from) = if first_is_stronger { (i, j) } else { (j, i) };
        self.single.entries.take(self.net.view().w().block(from), to);
        self.net.remove(from);
        self.add_single(if is_mirrored { -1.0 } else { 1.0 })?;
        if is_mirrored {
            self.single.entries.shift(to, 0);
            self.add_single(1.0)?;
        }
        Ok(true)
    }

    fn atom_gain(&mut self, number: u32, i: usize) -> Result<f32, S::Source> {
        self.single.atom_gain(&mut self.fit, number, i)
    }

    fn form(&mut self, origin: Origin, i: usize) -> Result<f32, S::Source> {
        let of = Forming { scales: self.columns.scales(), neuron: i, size: self.new_size() };
        self.single.form(&mut self.fit, of, origin)
    }

    fn form_halves(&mut self, i: usize, seed: u64) -> Result<f32, S::Source> {
        let size = self.new_size().min(self.spare_room() / 2);
        let of = Forming { scales: self.columns.scales(), neuron: i, size };
        self.single.split(&mut self.fit, of, self.net.view().w().block(i), seed, None)
    }

    /// As long as the residual asks for: the least-squares factor comes with the next steps.
    fn add_formed(&mut self, from: usize, to: usize) -> Result<(), S::Source> {
        self.single.entries.shift(from, to);
        self.add_single(1.0)
    }
}

impl<S: Sensing> Moves<S> for Model<'_, S, OneOutput> {
    fn start(&mut self, seed: u64) -> Result<(), S::Source> {
        let Self { fit, solver, net, columns, task, .. } = self;
        net.clear();
        net.edit_w(|w| columns.start(fit, solver, w, task.nnz, seed))?;
        self.fit_scale()
    }

    #[cfg(feature = "first-phase")]
    fn adam(
        &mut self,
        steps: u32,
        seed: u64,
        tell: &mut dyn FnMut(&mut Self, f32) -> bool,
    ) -> Result<(), S::Source> {
        self.first_phase(steps, seed, tell)
    }

    fn is_relaxed(&self) -> bool {
        self.fit.signs.linear(0)
    }

    /// Adds to the linear term in block 0, where signs are free, the inputs that it lacks: all that
    /// have a scale.
    fn relax(&mut self) -> Result<(), S::Source> {
        if self.first() == 0 {
            return Ok(());
        }
        let mut old = self.net.view().w().block(0).entries().map(|(j, _)| j).peekable();
        let scales = self.columns.scales.iter().enumerate();
        let lacking = scales.filter(move |(j, c)| old.next_if_eq(j).is_none() && **c > 0.0);
        let zeros = lacking.map(|(j, _)| (j as u32, 0.0));
        let (index, value) = entries(self.solver.rhs, self.solver.delta, zeros);
        self.net.edit_w(|w| add(w, index, value))
    }

    fn flip(&mut self, loss: f32) -> Result<f32, S::Source> {
        let rows = self.fit.rows();
        let mut total = loss * self.fit.batch_rows();
        let mut flipped = 0;
        for i in self.first()..self.blocks() {
            if self.is_vacant(i) {
                continue;
            }
            if self.fit.slack > 0.0 {
                // Residuals do not say what outputs are.
                self.negate(i);
                let after = self.loss()? * self.fit.batch_rows();
                if after < FLIP * total {
                    total = after;
                    flipped += 1;
                } else {
                    self.negate(i);
                }
                continue;
            }
            let z = row_head::<S>(&mut *self.single.z, rows)?;
            let w = self.net.view().w();
            self.fit.image(self.fit.gates(w), w.block(i), z)?;
            self.negate(i);
            let z = row_head::<S>(&mut *self.single.z, rows)?;
            let t = row_head::<S>(&mut *self.single.t, rows)?;
            let w = self.net.view().w();
            self.fit.image(self.fit.gates(w), w.block(i), t)?;
            let residual = row_head::<S>(&mut *self.fit.residual, rows)?;
            let mut after = [self.fit.sensing.machine().exchange(z, t, residual)];
            self.fit.sensing.sum(&mut after)?;
            let [after] = after;
            if after < FLIP * total {
                total = after;
                self.fit.sensing.machine().copy(z, residual);
                flipped += 1;
            } else {
                self.negate(i);
            }
        }
        if flipped == 0 {
            return if self.fit.slack > 0.0 { self.loss() } else { Ok(loss) };
        }
        self.task.info.flips = self.task.info.flips.saturating_add(flipped);
        self.refit(2)
    }

    fn unmirror(&mut self, i: usize) -> Result<u32, S::Source> {
        self.flip_mirrored(i)
    }

    fn least_missed(&mut self) -> Result<Option<usize>, S::Source> {
        if self.live() > TOLD_APART {
            return Ok(None);
        }
        self.without_slack(|model| model.loss())?;
        let slack = self.fit.slack;
        let (rows, first, mut least) = (self.fit.rows(), self.fit.first_label(), None);
        let nothing = row_head::<S>(&mut *self.single.t, rows)?;
        self.fit.sensing.machine().fill(nothing, 0.0);
        for i in self.first()..self.blocks() {
            if self.is_vacant(i) {
                continue;
            }
            let z = row_head::<S>(&mut *self.single.z, rows)?;
            let w = self.net.view().w();
            self.fit.image(self.fit.gates(w), w.block(i), z)?;
            let nothing = row_head::<S>(&mut *self.single.t, rows)?;
            let residual = row_head::<S>(&mut *self.fit.residual, rows)?;
            let machine = self.fit.sensing.machine();
            let mut left = [machine.exchange(z, nothing, residual)];
            if slack > 0.0 {
                left = [machine.slacken(self.fit.labels, first, slack, z)];
            }
            self.fit.sensing.sum(&mut left)?;
            let [left] = left;
            if least.is_none_or(|(least, _)| left < least) {
                least = Some((left, i));
            }
        }
        Ok(least.map(|(_, i)| i))
    }

    fn drop_below(&mut self, least: f32) {
        self.drop_small(least);
    }

    fn drop_next(&mut self, small: Small) -> Option<f32> {
        self.drop_smallest(small)
    }

    fn turn_back(&mut self) -> Result<bool, S::Source> {
        self.turn_into_singles()
    }

    fn conclude(&mut self, loss: f32, buffers: [&mut Sides<'_>; 2]) -> Result<f32, S::Source> {
        if self.linear() > 0 { self.fold(loss, buffers) } else { self.narrow(loss) }
    }
}

impl<S: Sensing> Model<'_, S, OneOutput> {
    /// Weights of the linear term: they do not count in s.
    pub(super) fn linear(&self) -> usize {
        if self.first() > 0 { self.net.view().w().block(0).values().len() } else { 0 }
    }

    /// Weights that there is room for beyond the work size and the linear term.
    fn spare_room(&self) -> usize {
        self.net.room().saturating_sub(self.task.work_size() + self.first() * self.inputs())
    }

    /// Weights that a new neuron starts with: its share of s, as far as there is room.
    fn new_size(&self) -> usize {
        let share = self.task.nnz.div_ceil(self.task.hidden.max(1)).max(2);
        share.min(self.inputs()).min(self.spare_room())
    }
}

#[cfg(test)]
pub(super) mod tests;
