//! A run: steps, changes of the support, scores on the validation rows, and what is left at the
//! end.

use super::checkpoint::{Checkpoint, Decayed, Held, Info, Progress, State, Trained};
use super::params::{Params, Schedule};
use super::state::{Buffers, Support, Units, carve};
use crate::base::dims::Dims;
use crate::base::error::{self, Error, Result};
use crate::base::math;
use crate::base::rng::batches;
use crate::learn::loss::Classes;
use crate::learn::start::Start;
use crate::network::gates::{Empty, Gates, Signs};
use crate::network::weights::{Weights, check_pinned};
use crate::operator::factored::{Factored, GradientMut};
use crate::operator::panels::panels;
use crate::operator::sensing::{Rows, Sensing, row_head};
use crate::operator::tables::{Residual, Tables};
use core::ops::{ControlFlow, Range};

/// Who sees each step.
type Observer<'o> = dyn FnMut(&Progress<'_>) -> ControlFlow<()> + 'o;

/// A run, and where it stands.
pub(super) struct Run<'r, 'm, S: Sensing> {
    sensing: &'r mut S,
    classes: Classes<'r, S::Machine>,
    params: &'r Params<'r>,
    schedule: Schedule<'r>,
    support: Support<'m>,
    work: Buffers<'m, Rows<S>>,
    /// Rows trained on, the first ones.
    rows: usize,
    batch: usize,
    at: State,
    /// Tells gates from all others: grows whenever weights change.
    round: u32,
    stopped: bool,
    /// Whether it resumes from a checkpoint.
    resumed: bool,
}

impl<'r, 'm, S: Factored> Run<'r, 'm, S> {
    /// A run that stands where `start` says.
    pub(super) fn new(
        sensing: &'r mut S,
        classes: Classes<'r, S::Machine>,
        nnz: usize,
        start: Start<'_, Checkpoint<'_>>,
        params: &'r Params<'r>,
        memory: &'m mut [u32],
    ) -> Result<Self, S::Source> {
        let dims = Dims::new(sensing.rows(), sensing.inputs(), sensing.blocks(), nnz);
        params.check(&dims, classes.outputs).map_err(Error::widen)?;
        classes.check(sensing.machine(), dims.samples).map_err(Error::widen)?;
        let mut budget = params.budget(dims, classes.outputs, sensing.panel(), 0);
        budget.scratch = sensing.net_scratch(budget.batch);
        let (support, work) = carve(sensing.machine(), &budget, memory).map_err(Error::widen)?;
        let rows = dims.samples - params.validation;
        let mut run = Self {
            sensing,
            classes,
            params,
            schedule: Schedule::new(params, rows, &budget),
            support,
            work,
            rows,
            batch: budget.batch,
            at: State { decayed: Decayed::START, ..State::default() },
            round: 0,
            stopped: false,
            resumed: matches!(start, Start::Checkpoint(_)),
        };
        run.column_scales()?;
        let Self { support, work, .. } = &mut run;
        match start {
            Start::Zero => support.start(params, &Units::new(params, work.columns)),
            Start::Checkpoint(from) => run.load(from),
            Start::Network(network) => support
                .start_from(network)
                .and_then(|()| check_pinned(network.w().index(), params.must_keep)),
        }
        .map_err(Error::widen)?;
        Ok(run)
    }

    /// Resumes from a checkpoint, once the column scales are there.
    fn load(&mut self, from: &Checkpoint<'_>) -> Result<()> {
        let State { step, updates, best, held, .. } = from.state;
        error::range("steps of the checkpoint", step as usize, 1, self.schedule.steps as usize)?;
        error::range("changes of the checkpoint", updates as usize, 0, step as usize)?;
        for held in best.iter().chain(&held) {
            error::length("validation rows of the checkpoint", held.rows, self.params.validation)?;
        }
        self.support.load(from)?;
        check_pinned(from.net.w().index(), self.params.must_keep)?;
        self.at = from.state;
        Ok(())
    }

    /// Whether the run has ended for want of progress on the validation rows.
    const fn early(&self) -> bool {
        self.params.patience > 0 && self.at.settled && self.at.waited >= self.params.patience
    }

    /// Batches of an epoch.
    fn batches(&self) -> usize {
        self.rows.div_ceil(self.batch)
    }

    /// `1 / (rms of the column + floor)`, in scaled units, measured on the growth rows; 0 for
    /// columns of zeros.
    fn column_scales(&mut self) -> Result<(), S::Source> {
        self.work.columns.fill(0.0);
        let (d, params) = (self.work.columns.len(), self.params);
        let mut rows = 0;
        for batch in params.growth(self.rows, self.batch, 0) {
            rows += batch.len();
            self.sensing.select(batch)?;
            let Buffers { panel, columns, scratch, .. } = &mut self.work;
            let norms = panel.get_mut(..d).unwrap_or(&mut []);
            // Open on every row: norms of the data's own columns.
            let none = Weights::empty(d, self.sensing.blocks());
            let open = Gates::of(none, Signs::Positive, Empty::Open, 0, 0);
            self.sensing.column_norms(open, 0..1, norms, scratch)?;
            math::axpy(1.0, norms, columns);
        }
        self.at.read(rows);
        error::finite("squares of the samples", self.work.columns)?;
        for column in self.work.columns.iter_mut() {
            let rms = params.input_scale * math::sqrt(*column / rows.max(1) as f32);
            *column = if rms > 0.0 { 1.0 / (rms + params.floor) } else { 0.0 };
        }
        Ok(())
    }

    /// The steps from where the run stands, until the observer or the operator ends it.
    pub(super) fn train(&mut self, observe: &mut Observer<'_>) -> Result<(), S::Source> {
        match self.steps(observe) {
            Err(Error::Stopped) if self.at.step > 0 => {
                self.stopped = true;
                Ok(())
            }
            done => done,
        }
    }

    fn steps(&mut self, observe: &mut Observer<'_>) -> Result<(), S::Source> {
        if self.resumed {
            self.tell(f32::NAN, self.schedule.rate(self.at.step.saturating_sub(1)), observe);
        }
        let epochs = self.batches().max(1) as u32;
        let (first, mut done) = (self.at.step / epochs, (self.at.step % epochs) as usize);
        for epoch in first..self.params.epochs {
            let order = batches(self.params.seed, epoch, self.rows, self.batch).enumerate();
            for (position, rows) in order.skip(core::mem::take(&mut done)) {
                if self.stopped || self.early() {
                    return Ok(());
                }
                let changes = self.schedule.changes(self.at.step);
                if changes {
                    self.update()?;
                }
                let rate = self.schedule.rate(self.at.step);
                let descend = |run: &mut Self| run.descend(rows.clone(), rate);
                let loss = match changes {
                    // What has grown is worth nothing before its first step, and what it replaced
                    // is gone.
                    true => self.insist(descend),
                    false => descend(self),
                }?;
                self.at.step = self.at.step.saturating_add(1);
                if position + 1 == self.batches() && self.params.validation > 0 {
                    self.insist(Self::validate)?;
                }
                self.tell(loss, rate, observe);
            }
        }
        Ok(())
    }

    /// Does what a run that ends needs all the same: once more if the operator stops in it, and
    /// what it had read by then does not count.
    fn insist<T>(
        &mut self,
        work: impl FnMut(&mut Self) -> Result<T, S::Source>,
    ) -> Result<T, S::Source> {
        let before = self.at.rows_read;
        let note = |run: &mut Self| (run.stopped, run.at.rows_read) = (true, before);
        error::insist(self, note, work)
    }

    /// Shows the observer where the run stands. Not inlined, so that what it shows is on the stack
    /// for that time only.
    #[inline(never)]
    fn tell(&mut self, loss: f32, rate: f32, observe: &mut Observer<'_>) {
        let progress = Progress {
            step: self.at.step,
            steps: self.schedule.steps,
            epoch_steps: self.batches() as u32,
            loss,
            rate,
            nnz: self.support.len(),
            live: self.support.net().live(),
            rows_read: self.at.rows_read,
            validation: self.at.held,
            checkpoint: self.support.checkpoint(self.at),
        };
        self.stopped |= observe(&progress).is_break();
    }

    /// One step of Adam on a batch; the mean loss before it.
    fn descend(&mut self, rows: Range<usize>, rate: f32) -> Result<f32, S::Source> {
        let count = rows.len();
        self.sensing.select(rows.clone())?;
        let (loss, _) = self.residual(rows)?;
        let Buffers { residual, scratch, .. } = &mut self.work;
        let residual = row_head::<S>(residual, count * self.classes.outputs)?;
        self.support.gradient(self.sensing, residual, self.round, scratch)?;
        self.at.read(count);
        let scale = self.params.input_scale;
        self.support.adam(count as f32, rate, scale, &mut self.at);
        self.turn();
        Ok(loss)
    }

    /// Leaves the residual of rows, which are selected, in the buffer; their mean loss, and how many
    /// of them are right.
    fn residual(&mut self, rows: Range<usize>) -> Result<(f32, usize), S::Source> {
        let (Classes { labels, outputs: c }, net) = (self.classes, self.support.net());
        let count = rows.len();
        let out = row_head::<S>(self.work.residual, count * c)?;
        self.sensing.net_forward(net.gates(self.round), net, out, self.work.scratch)?;
        self.at.read(count);
        let machine = self.sensing.machine();
        let right = machine.count_right(labels, rows.clone(), c, out);
        let loss = machine.cross_entropy(labels, rows, c, out).map_err(Error::widen)?;
        if !loss.is_finite() {
            return Err(Error::Diverged { step: self.at.step as usize });
        }
        Ok((loss / count.max(1) as f32, right))
    }

    /// Drops, clears and grows; if the operator stops, the support is as before.
    fn update(&mut self) -> Result<(), S::Source> {
        let target = self.schedule.target(self.at.step);
        let dropped = (self.schedule.drop(self.at.step) * target as f32) as usize;
        self.support.keep(target - dropped.min(target), self.params);
        self.turn();
        self.at.updates += 1;
        let grown = self.grow(target);
        if matches!(grown, Err(Error::Stopped)) {
            self.support.restore();
        }
        self.turn();
        grown
    }

    /// Fills the support up to `target` entries with those of largest gradient.
    fn grow(&mut self, target: usize) -> Result<(), S::Source> {
        let Self { sensing, classes, params, support, work, at, round, rows, batch, .. } = self;
        let Buffers { residual, panel, columns, scratch } = work;
        let (d, c, mut growth) = (columns.len(), classes.outputs, support.grow(target));
        panels(*sensing, panel, d + c, |sensing, blocks, panel| {
            panel.fill(0.0);
            let mut gradient = GradientMut::split(panel, blocks.len() * d);
            for rows in params.growth(*rows, *batch, at.updates) {
                sensing.select(rows.clone())?;
                let count = rows.len();
                let out = row_head::<S>(residual, count * c)?;
                let (net, gates) = (growth.net, growth.net.gates(*round));
                sensing.net_forward(gates, net, out, scratch)?;
                let machine = sensing.machine();
                machine.cross_entropy(classes.labels, rows, c, out).map_err(Error::widen)?;
                let (out, to) = (Residual::Each(&*out), gradient.reborrow());
                sensing.net_gradient(gates, net, out, blocks.clone(), to, scratch)?;
                at.read(2 * count);
            }
            growth.offer(blocks, &gradient, &Units::new(params, columns));
            Ok(())
        })?;
        let found = growth.finish().ok_or(Error::Diverged { step: at.step as usize })?;
        support.merge(found);
        Ok(())
    }

    /// At the end of an epoch: scores the current network on the validation rows where it may be
    /// the result. What is best on the settled support takes the place of what was best before.
    fn validate(&mut self) -> Result<(), S::Source> {
        let (step, nnz) = (self.at.step, self.schedule.nnz);
        let settled = step > self.schedule.settled();
        let shrunk = self.schedule.target(step) == nnz && self.support.len() <= nnz;
        if !(settled || shrunk && self.support.has_spare()) {
            return Ok(());
        }
        let held = self.score(self.rows..self.sensing.rows())?;
        if settled && !self.at.settled {
            (self.at.settled, self.at.best) = (true, None);
        }
        self.judge(held);
        Ok(())
    }

    /// Remembers the current network if it is the best on the validation rows.
    fn judge(&mut self, held: Held) {
        (self.at.held, self.at.scored) = (Some(held), self.at.step);
        if self.at.best.is_none_or(|best| held.loss < best.loss) {
            (self.at.best, self.at.waited) = (Some(held), 0);
            self.support.remember();
        } else {
            self.at.waited = self.at.waited.saturating_add(1);
        }
    }

    /// Weights have changed, and with them gates.
    fn turn(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    /// Loss and accuracy on a range of rows, batch by batch.
    fn score(&mut self, rows: Range<usize>) -> Result<Held, S::Source> {
        let (mut loss, mut right) = (math::Sum::default(), 0);
        for start in rows.clone().step_by(self.batch) {
            let part = start..(start + self.batch).min(rows.end);
            let count = part.len() as f32;
            self.sensing.select(part.clone())?;
            let (mean, good) = self.residual(part)?;
            loss.add(mean * count);
            right += good;
        }
        Ok(Held { loss: loss.value() / rows.len().max(1) as f32, right, rows: rows.len() })
    }

    /// What was done, and the network.
    pub(super) fn finish(mut self) -> Result<Trained<'m>, S::Source> {
        let early = self.early();
        let validation = self.rows..self.sensing.rows();
        if self.stopped && self.at.best.is_some() && self.at.scored != self.at.step {
            let held = self.insist(|run| run.score(validation.clone()))?;
            self.judge(held);
        }
        if self.stopped || self.at.settled {
            self.support.recall();
        }
        self.support.keep(self.schedule.nnz, self.params);
        self.turn();
        let training = self.insist(|run| run.score(0..run.rows))?;
        let validation = match self.at.best {
            Some(_) => Some(self.insist(|run| run.score(validation.clone()))?),
            None => None,
        };
        self.sensing.select(0..self.sensing.rows())?;
        let info = Info {
            steps: self.at.step,
            epochs: self.at.step.div_ceil(self.batches() as u32),
            training,
            validation,
            start: self.schedule.start,
            nnz: self.support.len(),
            live: self.support.net().live(),
            rows_read: self.at.rows_read,
            stopped: self.stopped,
            early,
        };
        Ok(Trained { network: self.support.into_net(), info })
    }
}
