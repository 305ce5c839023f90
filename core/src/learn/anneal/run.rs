//! A run: steps, changes of the support, scores on the validation rows, and what is left at the
//! end.

use super::checkpoint::{Checkpoint, State};
use super::info::{Held, Info};
use super::params::Params;
use super::progress::Progress;
use super::schedule::Schedule;
use super::state::{self, Buffers, Support, Units};
use crate::base::budget::Annealing;
use crate::base::error::{self, Error, Result};
use crate::base::math;
use crate::base::rng::{self, batches, stream};
use crate::learn::loss;
use crate::network::net::Network;
use crate::operator::factored::{Factored, GradientMut};
use crate::operator::panels::panels;
use core::ops::{ControlFlow, Range};

/// What stays the same over a run, and its counts.
pub(super) struct Run<'p> {
    params: &'p Params<'p>,
    labels: &'p [u16],
    outputs: usize,
    nnz: usize,
    start: usize,
    /// Rows trained on, the first ones.
    rows: usize,
    batch: usize,
    steps: u32,
    /// Where it stands.
    pub(super) at: State,
    /// Tells gates from all others: grows whenever weights change.
    round: u32,
    pub(super) stopped: bool,
}

impl<'p> Run<'p> {
    pub(super) fn new(params: &'p Params<'p>, budget: &Annealing, labels: &'p [u16]) -> Self {
        let rows = labels.len() - params.validation;
        let steps = params.epochs.saturating_mul(rows.div_ceil(budget.batch) as u32);
        Self {
            params,
            labels,
            outputs: budget.outputs,
            nnz: budget.dims.nnz,
            start: budget.start,
            rows,
            batch: budget.batch,
            steps,
            at: State::START,
            round: 0,
            stopped: false,
        }
    }

    /// Goes on from a checkpoint, once the column scales are there.
    pub(super) fn load(&mut self, from: &Checkpoint<'_>, support: &mut Support<'_>) -> Result<()> {
        error::range("steps of the checkpoint", from.state.step as usize, 1, self.steps as usize)?;
        error::range(
            "changes of the checkpoint",
            from.state.updates as usize,
            0,
            from.state.step as usize,
        )?;
        for held in from.state.best.iter().chain(&from.state.held) {
            error::length("validation rows of the checkpoint", held.rows, self.params.validation)?;
        }
        support.load(from)?;
        self.check_kept(&from.net)?;
        self.at = from.state;
        Ok(())
    }

    /// Checks that a network has the weights that must be kept.
    pub(super) fn check_kept(&self, network: &Network<'_>) -> Result<()> {
        let index = network.w().index();
        let kept = self.params.must_keep.iter().filter(|j| index.binary_search(j).is_ok()).count();
        error::length(
            "weights of the checkpoint that must be kept",
            kept,
            self.params.must_keep.len(),
        )
    }

    /// Whether the run has ended for want of progress on the validation rows.
    const fn early(&self) -> bool {
        self.params.patience > 0 && self.at.settled && self.at.waited >= self.params.patience
    }

    /// Batches of an epoch.
    fn batches(&self) -> usize {
        self.rows.div_ceil(self.batch)
    }

    /// Selects rows; their labels.
    fn select<S: Factored>(
        &self,
        sensing: &mut S,
        rows: Range<usize>,
    ) -> Result<&'p [u16], S::Source> {
        sensing.select(rows.clone())?;
        Ok(self.labels.get(rows).unwrap_or(&[]))
    }

    /// `1 / (rms of the column + floor)`, in scaled units, measured on the growth rows; 0 for
    /// columns of zeros.
    pub(super) fn column_scales<S: Factored>(
        &mut self,
        sensing: &mut S,
        work: &mut Buffers<'_>,
    ) -> Result<(), S::Source> {
        work.columns.fill(0.0);
        let d = work.columns.len();
        let mut rows = 0;
        for batch in self.growth(0) {
            rows += self.select(sensing, batch)?.len();
            let norms = work.panel.get_mut(..d).unwrap_or(&mut []);
            sensing.column_norms(state::open(d, sensing.blocks()), 0..1, norms, work.scratch)?;
            math::axpy(1.0, norms, work.columns);
        }
        self.read(rows);
        error::finite("squares of the samples", work.columns)?;
        let scale = self.params.input_scale;
        for column in work.columns.iter_mut() {
            let rms = scale * math::sqrt(*column / rows.max(1) as f32);
            *column = if rms > 0.0 { 1.0 / (rms + self.params.floor) } else { 0.0 };
        }
        Ok(())
    }

    pub(super) fn units<'c>(&self, columns: &'c [f32]) -> Units<'c> {
        Units { columns, floor: self.params.floor, scale: self.params.input_scale }
    }

    /// The batches that growth goes through, as many as make up its rows, in an order of their own
    /// for each update.
    fn growth(&self, update: u32) -> impl Iterator<Item = Range<usize>> + use<> {
        let wanted = self.params.growth_rows.div_ceil(self.batch).max(1);
        rng::runs(self.params.seed, stream::ANNEAL + u64::from(update), self.rows, self.batch)
            .take(wanted)
    }

    /// The steps from where the run stands.
    pub(super) fn train<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &mut Support<'_>,
        work: &mut Buffers<'_>,
        resumed: bool,
        observe: &mut impl FnMut(&Progress<'_>) -> ControlFlow<()>,
    ) -> Result<(), S::Source> {
        let schedule = Schedule::new(self.params, self.steps);
        if resumed {
            self.tell(state, f32::NAN, schedule.rate(self.at.step.saturating_sub(1)), observe);
        }
        let epochs = self.batches().max(1) as u32;
        let (first, mut done) = (self.at.step / epochs, (self.at.step % epochs) as usize);
        for epoch in first..self.params.epochs {
            let order = batches(self.params.seed, epoch, self.rows, self.batch).enumerate();
            for (position, rows) in order.skip(core::mem::take(&mut done)) {
                if self.stopped || self.early() {
                    return Ok(());
                }
                let changes = schedule.changes(self.at.step);
                if changes {
                    self.update(sensing, state, work, &schedule)?;
                }
                let labels = self.select(sensing, rows)?;
                let rate = schedule.rate(self.at.step);
                let mut descend = |run: &mut Self| run.descend(sensing, labels, state, work, rate);
                let loss = match changes {
                    // What has grown is worth nothing before its first step, and what it replaced
                    // is gone.
                    true => error::insist(self, |run| run.stopped = true, descend),
                    false => descend(self),
                }?;
                self.at.step = self.at.step.saturating_add(1);
                if position + 1 == self.batches() && self.params.validation > 0 {
                    self.validate(sensing, state, work, &schedule)?;
                }
                self.tell(state, loss, rate, observe);
            }
        }
        Ok(())
    }

    /// Shows the observer where the run stands. Not inlined, so that what it shows is on the stack
    /// for that time only.
    #[inline(never)]
    fn tell(
        &mut self,
        state: &Support<'_>,
        loss: f32,
        rate: f32,
        observe: &mut impl FnMut(&Progress<'_>) -> ControlFlow<()>,
    ) {
        let progress = Progress {
            step: self.at.step,
            steps: self.steps,
            epoch_steps: self.batches() as u32,
            loss,
            rate,
            nnz: state.len(),
            live: state.net().w().blocks().count(),
            rows_read: self.at.rows_read,
            validation: self.at.held,
            checkpoint: (!self.stopped).then(|| state.checkpoint(self.at)),
        };
        self.stopped |= observe(&progress).is_break();
    }

    /// One step of Adam on the selected batch; the mean loss before it.
    fn descend<S: Factored>(
        &mut self,
        sensing: &mut S,
        labels: &[u16],
        state: &mut Support<'_>,
        work: &mut Buffers<'_>,
        rate: f32,
    ) -> Result<f32, S::Source> {
        let (loss, _) = self.residual(sensing, labels, state, work)?;
        let residual = work.residual.get(..labels.len() * self.outputs).unwrap_or(&[]);
        state.gradient(sensing, residual, self.round, work.scratch)?;
        self.read(labels.len());
        state.adam(labels.len() as f32, rate, self.params.input_scale);
        self.turn();
        Ok(loss)
    }

    /// Leaves the residual of the selected rows in the buffer; mean loss.
    fn residual<S: Factored>(
        &mut self,
        sensing: &mut S,
        labels: &[u16],
        state: &Support<'_>,
        work: &mut Buffers<'_>,
    ) -> Result<(f32, usize), S::Source> {
        let out = work.residual.get_mut(..labels.len() * self.outputs).unwrap_or(&mut []);
        let net = state.net();
        sensing.net_forward(net.gates(self.round), net, out, work.scratch)?;
        self.read(labels.len());
        let rows = out.chunks(self.outputs.max(1)).zip(labels);
        let right = rows.filter(|(out, label)| loss::class(out) == usize::from(**label)).count();
        let loss = loss::cross_entropy(labels, self.outputs, out).map_err(Error::widen)?;
        if !loss.is_finite() {
            return Err(Error::Diverged { step: self.at.step as usize });
        }
        Ok((loss / labels.len().max(1) as f32, right))
    }

    /// Drops, clears and grows; if the operator stops, the support is as before.
    fn update<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &mut Support<'_>,
        work: &mut Buffers<'_>,
        schedule: &Schedule,
    ) -> Result<(), S::Source> {
        let target = schedule.target(self.at.step, self.nnz, self.start);
        let dropped = (schedule.drop(self.at.step) * target as f32) as usize;
        state.keep(target - dropped.min(target), self.params);
        self.turn();
        self.at.updates += 1;
        let grown = self.grow(sensing, state, work, target);
        if matches!(grown, Err(Error::Stopped)) {
            state.restore();
        }
        self.turn();
        grown
    }

    /// Fills the support up to `target` entries with those of largest gradient.
    fn grow<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &mut Support<'_>,
        work: &mut Buffers<'_>,
        target: usize,
    ) -> Result<(), S::Source> {
        let mut growth = state.grow(target);
        let (d, c) = (work.columns.len(), self.outputs);
        let Buffers { residual, panel, columns, scratch } = work;
        panels(sensing, panel, d + c, |sensing, blocks, panel| {
            panel.fill(0.0);
            let mut gradient = GradientMut::split(panel, blocks.len() * d);
            for rows in self.growth(self.at.updates) {
                let labels = self.select(sensing, rows)?;
                let out = residual.get_mut(..labels.len() * c).unwrap_or(&mut []);
                let net = growth.net;
                let gates = net.gates(self.round);
                sensing.net_forward(gates, net, out, scratch)?;
                loss::cross_entropy(labels, c, out).map_err(Error::widen)?;
                let to = gradient.reborrow();
                sensing.net_gradient(gates, net, out, blocks.clone(), to, scratch)?;
                self.read(2 * labels.len());
            }
            growth.offer(blocks, &gradient, &self.units(columns));
            Ok(())
        })?;
        match growth.finish() {
            Some(count) => state.merge(count),
            None => return Err(Error::Diverged { step: self.at.step as usize }),
        }
        Ok(())
    }

    /// At the end of an epoch: scores the current network on the validation rows where it may be
    /// the result. What is best on the settled support takes the place of what was best before.
    fn validate<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &mut Support<'_>,
        work: &mut Buffers<'_>,
        schedule: &Schedule<'_>,
    ) -> Result<(), S::Source> {
        let settled = self.at.step > schedule.settled();
        let shrunk = schedule.target(self.at.step, self.nnz, self.start) == self.nnz
            && state.len() <= self.nnz;
        if !(settled || shrunk && state.has_spare()) {
            return Ok(());
        }
        let held = self.score(sensing, state, work, self.rows..self.labels.len())?;
        if settled && !self.at.settled {
            (self.at.settled, self.at.best) = (true, None);
        }
        self.judge(state, held);
        Ok(())
    }

    /// Keeps the current network if it is the best on the validation rows.
    fn judge(&mut self, state: &mut Support<'_>, held: Held) {
        (self.at.held, self.at.scored) = (Some(held), self.at.step);
        if self.at.best.is_none_or(|best| held.loss < best.loss) {
            (self.at.best, self.at.waited) = (Some(held), 0);
            state.remember();
        } else {
            self.at.waited = self.at.waited.saturating_add(1);
        }
    }

    /// Counts rows that were read.
    fn read(&mut self, rows: usize) {
        self.at.rows_read = self.at.rows_read.saturating_add(rows as u64);
    }

    /// Weights have changed, and with them gates.
    fn turn(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    /// [`Self::score`] of the result, which a run that ends needs all the same.
    fn last_score<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &Support<'_>,
        work: &mut Buffers<'_>,
        rows: Range<usize>,
    ) -> Result<Held, S::Source> {
        error::insist(
            self,
            |run| run.stopped = true,
            |run| run.score(sensing, state, work, rows.clone()),
        )
    }

    /// Loss and accuracy on a range of rows, batch by batch.
    fn score<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &Support<'_>,
        work: &mut Buffers<'_>,
        rows: Range<usize>,
    ) -> Result<Held, S::Source> {
        let (mut loss, mut right) = (math::Sum::default(), 0);
        for start in rows.clone().step_by(self.batch) {
            let part = start..(start + self.batch).min(rows.end);
            let labels = self.select(sensing, part)?;
            let (mean, good) = self.residual(sensing, labels, state, work)?;
            loss.add(mean * labels.len() as f32);
            right += good;
        }
        Ok(Held { loss: loss.value() / rows.len().max(1) as f32, right, rows: rows.len() })
    }

    pub(super) fn finish<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &mut Support<'_>,
        work: &mut Buffers<'_>,
    ) -> Result<Info, S::Source> {
        let early = self.early();
        if self.stopped && self.params.validation > 0 && self.at.scored != self.at.step {
            if self.at.step.is_multiple_of(self.batches().max(1) as u32) {
                let schedule = Schedule::new(self.params, self.steps);
                let validate = |run: &mut Self| run.validate(sensing, state, work, &schedule);
                error::insist(self, |run| run.stopped = true, validate)?;
            } else if self.at.best.is_some() {
                let held = self.last_score(sensing, state, work, self.rows..self.labels.len())?;
                self.judge(state, held);
            }
        }
        if self.stopped || self.at.settled {
            state.recall();
        }
        state.keep(self.nnz, self.params);
        self.turn();
        let training = self.last_score(sensing, state, work, 0..self.rows)?;
        let validation = match self.at.best {
            Some(_) => Some(self.last_score(sensing, state, work, self.rows..self.labels.len())?),
            None => None,
        };
        sensing.select(0..sensing.rows())?;
        Ok(Info {
            steps: self.at.step,
            epochs: self.at.step.div_ceil(self.batches() as u32),
            training,
            validation,
            start: self.start,
            nnz: state.len(),
            live: state.net().w().blocks().count(),
            rows_read: self.at.rows_read,
            stopped: self.stopped,
            early,
        })
    }
}
