//! A run: a small machine that goes from stage to stage ([`super::stages`]).
//!
//! Between two stages all that a run is are the networks and the numbers of a [`Checkpoint`]; each
//! stage begins by computing the loss and the residual anew, so a run that resumes is bit-identical.

use super::checkpoint::{Checkpoint, Stage, State};
use super::fit::Readout;
use super::model::{Model, Moves, Support};
use super::sides::Sides;
use super::{Info, Params, Phase, Progress};
use crate::base::error::{self, Error, Result};
use crate::learn::start::Start;
use crate::operator::sensing::Sensing;

/// A descent has stalled where the loss does not fall below this fraction of the last one.
const STALL: f32 = 0.85;
/// Outer steps of a descent at the most.
const DESCENT: u32 = 40;
/// Where all rows refute an exact fit of some of them, the search continues with so many times more.
pub(super) const MORE_ROWS: usize = 4;

/// A run: the network at hand, those that are stored, and where it stands.
pub(super) struct Search<'a, S: Sensing, H, F> {
    pub(super) model: Model<'a, S, H>,
    pub(super) base: Sides<'a>,
    pub(super) trial: Sides<'a>,
    pub(super) best: Sides<'a>,
    /// The best of at most s weights and m neurons, on the validation rows where there are such.
    pub(super) result: Sides<'a>,
    pub(super) params: Params,
    pub(super) state: State,
    pub(super) observe: F,
    /// Whether the operator has ended the run, which it does once.
    pub(super) cut_off: bool,
}

/// What the observer is told of a model with the loss `now`; the other losses are those of `state`.
#[inline(never)]
fn progress<'p, 'a, S: Sensing, H: Readout<S>>(
    phase: Phase,
    model: &Model<'a, S, H>,
    now: f32,
    state: State,
    checkpoint: Option<Checkpoint<'p>>,
) -> Progress<'p>
where
    Model<'a, S, H>: Moves<S>,
{
    let (fit, info) = (&model.fit, &model.task.info);
    Progress {
        phase,
        step: info.steps,
        loss: fit.in_labels(now),
        best: fit.in_labels(state.result_loss),
        search_best: fit.in_labels(state.best_loss.min(now)),
        support: model.view().nnz(),
        live: model.live(),
        moves: info.moves,
        perturbations: info.perturbations,
        rows_read: fit.rows_read,
        checkpoint,
    }
}

impl<'a, S: Sensing, H: Readout<S>, F: FnMut(&Progress<'_>) -> bool> Search<'a, S, H, F>
where
    Model<'a, S, H>: Moves<S>,
{
    /// From where `start` says to the end, on `rows` rows first; the result is in `result`.
    pub(super) fn run(
        &mut self,
        rows: usize,
        start: Start<'_, Checkpoint<'_>>,
    ) -> Result<Info, S::Source> {
        match start {
            Start::Checkpoint(checkpoint) => self.restore(checkpoint)?,
            Start::Network(network) => {
                self.restore(&Checkpoint::starting(network, rows))?;
                self.trial.store(network)?;
                let scale = self.model.fit.scale;
                self.trial.last_values().iter_mut().for_each(|w| *w *= scale);
                self.model.load(self.trial.view())?;
            }
            Start::Zero
                if cfg!(feature = "first-phase")
                    && self.params.first > 0
                    && self.model.is_relaxed() =>
            {
                self.take_up(rows)?;
                self.state.stage = Stage::First;
            }
            Start::Zero => {
                self.take_up(rows)?;
                self.model.fit.cover.switch(true);
                self.model.start(self.params.seed)?;
                self.model.relax()?;
                let (loss, goal) = (self.model.loss()?, self.model.task.goal);
                self.model.improve(loss, 3, goal)?;
            }
        }
        while self.state.stage != Stage::End {
            self.tell_checkpoint();
            self.hurry();
            self.state.stage = match self.advance() {
                Err(Error::Stopped) if !self.cut_off => self.end_early()?,
                next => next?,
            };
        }
        self.end()
    }

    fn advance(&mut self) -> Result<Stage, S::Source> {
        // Results are judged without a cover.
        self.model.fit.cover.switch(self.state.stage.searches());
        let loss = self.model.loss()?;
        match self.state.stage {
            Stage::First => self.first(),
            Stage::Descend => self.begin(loss),
            Stage::Fall => self.fall(loss),
            Stage::Moves => self.moves(loss),
            Stage::Perturb => self.restart(),
            Stage::AllRows => self.all_rows(loss),
            Stage::Support => self.improve_support(loss),
            Stage::Plain => self.plain(),
            Stage::Exchange => self.exchange(loss),
            Stage::Exchanged => self.judge(),
            Stage::Refit => self.refit(),
            Stage::Polish | Stage::End => self.polish(loss),
        }
    }

    /// The operator was asked to end within a stage: the run ends with the best network stored.
    fn end_early(&mut self) -> Result<Stage, S::Source> {
        (self.model.task.info.stopped, self.cut_off) = (true, true);
        if matches!(self.state.stage, Stage::Exchange | Stage::Exchanged) {
            return Ok(self.after_exchanges());
        }
        if !self.state.stage.searches() {
            return Ok(Stage::End);
        }
        self.select(self.state.rows as usize)?;
        // Before there is a best network, that at hand is the first one.
        if self.best.nnz() == 0 {
            self.model.threshold(self.model.task.work_size())?;
            self.best.store(self.model.view())?;
        }
        Ok(Stage::Perturb)
    }

    /// Once the run was ended, what is left to do takes few steps of few products.
    pub(super) fn hurry(&mut self) {
        self.model.task.hurried = self.model.task.info.stopped;
        if self.model.task.hurried {
            self.model.solver.hurry();
        }
    }

    /// Tells the observer of an outer step, and counts it.
    pub(super) fn step(&mut self, phase: Phase, now: f32, state: State) {
        step(&mut self.observe, phase, &mut self.model, now, state);
    }

    /// Shows the observer all that this run is now, unless it was ended.
    fn tell_checkpoint(&mut self) {
        let Self { model, best, result, state, observe, .. } = self;
        if model.task.info.stopped {
            return;
        }
        state.lambda = model.solver.lambda;
        state.info = Info { rows_read: model.fit.rows_read, ..model.task.info };
        let (net, best, result) = (model.view(), best.view(), result.view());
        let checkpoint = Checkpoint { state: *state, net, best, result };
        let phase = match state.stage {
            Stage::First | Stage::Descend => Phase::Descend,
            Stage::Fall => state.falling(),
            Stage::Moves => Phase::Move,
            Stage::Perturb => Phase::Perturb,
            Stage::AllRows | Stage::Support | Stage::Refit | Stage::Exchanged => Phase::AllRows,
            Stage::Plain | Stage::Polish | Stage::Exchange | Stage::End => Phase::Polish,
        };
        let goes_on = observe(&progress(phase, model, state.best_loss, *state, Some(checkpoint)));
        model.task.info.stopped = !goes_on;
    }

    fn restore(&mut self, checkpoint: &Checkpoint<'_>) -> Result<(), S::Source> {
        let shape = self.model.view().shape();
        for from in [checkpoint.net, checkpoint.best, checkpoint.result] {
            from.check_shape(shape).map_err(Error::widen)?;
        }
        self.model.load(checkpoint.net)?;
        self.best.store(checkpoint.best)?;
        self.result.store(checkpoint.result)?;
        self.state = checkpoint.state;
        let State { rows, lambda, info, .. } = checkpoint.state;
        error::range("rows of the checkpoint", rows as usize, 1, self.model.fit.train)?;
        self.take_up(rows as usize)?;
        let Model { fit, solver, task, .. } = &mut self.model;
        (solver.lambda, fit.rows_read) = (lambda, info.rows_read);
        task.info = Info { stopped: false, ..info };
        Ok(())
    }

    /// Fits the first `rows` rows from now on.
    pub(super) fn select(&mut self, rows: usize) -> Result<(), S::Source> {
        self.model.fit.select(0..rows)?;
        self.model.task.goal = self.params.exact * self.model.fit.power;
        self.state.rows = rows as u32;
        Ok(())
    }

    /// Fits the first `rows` rows from now on, with the scales of the inputs there.
    pub(super) fn take_up(&mut self, rows: usize) -> Result<(), S::Source> {
        self.select(rows)?;
        self.model.columns.measure(&mut self.model.fit)
    }

    /// Fits so many times more rows from now on.
    pub(super) fn widen(&mut self, rows: usize) -> Result<(), S::Source> {
        self.take_up(rows.saturating_mul(MORE_ROWS).min(self.model.fit.train))
    }

    pub(super) fn is_done(&self) -> bool {
        self.model.task.info.stopped || self.model.task.info.steps >= self.params.steps
    }

    pub(super) fn is_exact(&self, loss: f32) -> bool {
        loss <= self.model.task.goal
    }

    pub(super) fn is_found(&self, loss: f32) -> bool {
        self.model.task.is_found(loss)
    }

    /// An outer step down to `size` weights; the observer sees it.
    #[inline(never)]
    pub(super) fn outer(&mut self, loss: f32, size: usize, phase: Phase) -> Result<f32, S::Source> {
        let loss = self.model.outer(loss, size)?;
        self.step(phase, loss, self.state);
        Ok(loss)
    }

    /// An outer step down to s weights, whose network may be the result; the observer sees it.
    pub(super) fn outer_at_s(&mut self, loss: f32, phase: Phase) -> Result<f32, S::Source> {
        let loss = self.model.outer(loss, self.model.task.nnz)?;
        let result_loss = self.state.result_loss.min(loss);
        self.step(phase, loss, State { result_loss, ..self.state });
        self.store_result(loss)?;
        Ok(loss)
    }

    /// Outer steps until the loss stalls or the network is found, at most [`DESCENT`].
    #[inline(never)]
    pub(super) fn descend(&mut self, mut loss: f32, phase: Phase) -> Result<f32, S::Source> {
        for _ in 0..DESCENT {
            match self.down(loss, phase)? {
                (least, true) => loss = least,
                (least, false) => return Ok(least),
            }
        }
        Ok(loss)
    }

    /// One outer step, unless there is none to make: the loss, and whether another one is worth it.
    pub(super) fn down(&mut self, before: f32, phase: Phase) -> Result<(f32, bool), S::Source> {
        if self.is_found(before) || self.is_done() {
            return Ok((before, false));
        }
        let loss = self.outer(before, self.model.task.work_size(), phase)?;
        self.store_best(loss)?;
        Ok((loss, loss < STALL * before))
    }

    pub(super) fn store_best(&mut self, loss: f32) -> Result<(), S::Source> {
        if loss < self.state.best_loss {
            self.best.store(self.model.view())?;
            self.state.best_loss = loss;
        }
        Ok(())
    }

    /// Makes the network, of at most s weights and m neurons, the result where it is better: on the
    /// validation rows where there are such, else on those that are fitted.
    pub(super) fn store_result(&mut self, loss: f32) -> Result<(), S::Source> {
        let mut is_better = loss < self.state.result_loss;
        if self.params.validation > 0 {
            let held = self.validation_loss()?;
            is_better = held < self.state.held || self.result.nnz() == 0;
            if is_better {
                (self.state.held, self.state.stale) = (held, 0);
            }
        }
        if is_better {
            self.result.store(self.model.view())?;
        }
        self.state.result_loss = self.state.result_loss.min(loss);
        Ok(())
    }

    /// The loss of the network on the validation rows; the residual stays that of the fitted rows.
    #[inline(never)]
    pub(super) fn validation_loss(&mut self) -> Result<f32, S::Source> {
        let Model { fit, .. } = &mut self.model;
        let (rows, validation) = (0..fit.sensing.batch_rows(), fit.train..fit.sensing.rows());
        fit.select(validation)?;
        let held = self.model.loss()?;
        self.model.fit.select(rows)?;
        self.model.loss()?;
        Ok(held)
    }

    /// The losses of the network on all training rows, and on the validation rows.
    fn score(&mut self) -> Result<(f32, Option<f32>), S::Source> {
        self.select(self.model.fit.train)?;
        let loss = self.model.loss()?;
        Ok((loss, if self.params.validation > 0 { Some(self.validation_loss()?) } else { None }))
    }

    /// The result without zeros, in the scale of the labels, and what was done.
    fn end(&mut self) -> Result<Info, S::Source> {
        self.model.fit.cover.switch(false);
        self.model.fit.slack = 0.0;
        self.result.compact();
        self.model.load(self.result.view())?;
        let (loss, held) =
            error::insist(self, |run| run.model.task.info.stopped = true, Self::score)?;
        let scale = self.model.fit.scale;
        self.result.last_values().iter_mut().for_each(|w| *w /= scale);
        self.result.compact();
        let result = self.result.view();
        for side in [result.w(), result.wt()] {
            error::finite("weights (scale labels and inputs to about 1)", side.value())?;
        }
        // Below the normal floats weights lose what made the fit exact.
        let precise = result.w().value().iter().chain(result.wt().value()).all(|w| w.is_normal());
        let fit = &self.model.fit;
        Ok(Info {
            loss: fit.in_labels(loss),
            relative: if loss > 0.0 { loss / fit.power } else { 0.0 },
            exact: precise && self.is_exact(loss),
            held: held.map(|held| fit.in_labels(held)),
            early: self.state.early,
            rows_read: fit.rows_read,
            ..self.model.task.info
        })
    }
}

/// Tells the observer of an outer step, and counts it.
pub(super) fn step<'a, S: Sensing, H: Readout<S>>(
    observe: &mut impl FnMut(&Progress<'_>) -> bool,
    phase: Phase,
    model: &mut Model<'a, S, H>,
    now: f32,
    state: State,
) where
    Model<'a, S, H>: Moves<S>,
{
    model.task.info.steps = model.task.info.steps.saturating_add(1);
    let goes_on = observe(&progress(phase, model, now, state, None));
    model.task.info.stopped |= !goes_on;
}

#[cfg(test)]
pub(super) mod tests;
