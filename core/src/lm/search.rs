//! The flow of a run: descend, try moves, kick, finish, all rows, polish.
//!
//! The flow is a small machine. Between two stages all that a run is are the networks and the numbers of a
//! [`Checkpoint`]; each stage begins by computing the loss and the residual anew, so that a run that goes on from a
//! checkpoint has the same bits as one that was never interrupted.

use super::checkpoint::{Checkpoint, Stage, State};
use super::problem::{Outcome, Problem};
use super::sides::Sides;
use super::solver::LAMBDA_START;
use super::{Info, Params, Phase, Progress};
use crate::error::{self, Error};
use crate::rng::{Rng, stream};

/// A descent has stalled where the loss does not fall below this part of the last one.
const STALL: f32 = 0.85;
/// Outer steps of a descent at the most.
const DESCENT: u32 = 40;
/// Below this part of the mean square of the labels is what rounding leaves.
const FLOOR: f32 = 1e-14;
/// A kick empties one in so many neurons.
const KICK: usize = 5;
/// Before the way down to s weights neurons with a cosine above this are merged, where that does not raise the loss.
const ALIKE: f32 = 0.99;
/// The way down to s weights has spoilt an exact fit where the loss is more than so many times as large.
const SPOILT: f32 = 4.0;
/// All rows refute a fit of a part of them where the loss is more than so many times as large.
const REFUTED: f32 = 2.0;
/// A loss above this part of the mean square of the labels is far from exact …
const POOR: f32 = 1e-3;
/// … and one below this part of the last is progress.
const PROGRESS: f32 = 0.98;
/// Where all rows refute an exact fit of a part of them, the search goes on with so many times the part.
const MORE_ROWS: usize = 4;

/// A run: the network at hand, those that are kept, and where it stands.
pub(super) struct Search<'a, P, F> {
    pub(super) bench: P,
    /// Where moves start from.
    pub(super) base: Sides<'a>,
    /// The best trial of a batch.
    pub(super) kept: Sides<'a>,
    /// The best while searching.
    pub(super) best: Sides<'a>,
    /// The best of at most s weights and m neurons, without a linear term: on the rows held out where there are such.
    pub(super) found: Sides<'a>,
    pub(super) params: Params,
    pub(super) state: State,
    pub(super) log: Log<F>,
}

/// Counts, and tells the observer.
pub(super) struct Log<F> {
    pub(super) observe: F,
    pub(super) info: Info,
}

impl<F: FnMut(&Progress<'_>) -> bool> Log<F> {
    /// Tells the observer, once per outer step.
    fn step<'a, P: Problem<'a>>(&mut self, phase: Phase, bench: &P, (loss, best): (f32, f32)) {
        self.info.steps = self.info.steps.saturating_add(1);
        self.tell(phase, bench, (loss, best), None);
    }

    /// Tells the observer, unless it ended the run already.
    #[inline(never)]
    fn tell<'a, P: Problem<'a>>(
        &mut self,
        phase: Phase,
        bench: &P,
        (loss, best): (f32, f32),
        checkpoint: Option<Checkpoint<'_>>,
    ) {
        if self.info.stopped {
            return;
        }
        let progress = Progress {
            phase,
            step: self.info.steps,
            loss: bench.fit().in_labels(loss),
            best: bench.fit().in_labels(best.min(loss)),
            support: bench.view().nnz(),
            live: bench.live(),
            moves: self.info.moves,
            kicks: self.info.kicks,
            rows_read: bench.fit().rows_read,
            checkpoint,
        };
        self.info.stopped = !(self.observe)(&progress);
    }
}

impl<'a, P: Problem<'a>, F: FnMut(&Progress<'_>) -> bool> Search<'a, P, F> {
    /// From the first weights, or from `checkpoint`, to the end; the result is in `found`.
    pub(super) fn run(&mut self, rows: usize, checkpoint: Option<&Checkpoint<'_>>) -> Outcome<'a, P, Info> {
        // Scales are always those of the rows that a run begins with.
        self.select(rows)?;
        self.bench.measure()?;
        match checkpoint {
            Some(checkpoint) => self.restore(checkpoint)?,
            None => {
                self.bench.start(self.params.seed)?;
                self.bench.relax()?;
                let (loss, goal) = (self.bench.loss()?, self.bench.task().goal);
                self.bench.improve(loss, 3, goal)?;
            }
        }
        while self.state.stage != Stage::End {
            self.tell_checkpoint();
            self.hurry();
            let loss = self.bench.loss()?;
            self.state.stage = match self.state.stage {
                Stage::Descend => self.begin(loss)?,
                Stage::Moves => self.moves(loss)?,
                Stage::Kick => self.kick()?,
                Stage::AllRows => self.all_rows(loss)?,
                Stage::Settle => self.settle(loss)?,
                Stage::Plain => self.plain()?,
                Stage::Polish | Stage::End => self.polish(loss)?,
            };
        }
        self.end()
    }

    /// Once the observer has ended the run, what is left to do takes few steps.
    fn hurry(&mut self) {
        self.bench.task_mut().hurried = self.log.info.stopped;
    }

    /// Shows the observer all that this run is now.
    fn tell_checkpoint(&mut self) {
        let Self { bench, best, found, state, log, .. } = self;
        state.lambda = bench.fit().solver.lambda();
        let task = bench.task();
        state.info = Info {
            flips: task.flips,
            merges: task.merges,
            folds: task.folds,
            rows_read: bench.fit().rows_read,
            ..log.info
        };
        let checkpoint =
            Checkpoint { state: *state, net: bench.view(), best: best.view(), found: found.view() };
        let phase = match state.stage {
            Stage::Descend => Phase::Descend,
            Stage::Moves => Phase::Move,
            Stage::Kick => Phase::Kick,
            Stage::AllRows | Stage::Settle => Phase::AllRows,
            Stage::Plain | Stage::Polish | Stage::End => Phase::Polish,
        };
        log.tell(phase, bench, (state.best_loss, state.best_loss), Some(checkpoint));
    }

    /// Becomes what `checkpoint` holds.
    fn restore(&mut self, checkpoint: &Checkpoint<'_>) -> Outcome<'a, P, ()> {
        let own = self.bench.view();
        let (d, p, c) = (own.w().inputs(), own.w().hidden(), own.outputs());
        for from in [checkpoint.net, checkpoint.best, checkpoint.found] {
            from.check(d, p).map_err(Error::widen)?;
            from.wt().check(c, p).map_err(Error::widen)?;
            error::finite("weights of the checkpoint", from.w().value())?;
            error::finite("output weights of the checkpoint", from.wt().value())?;
        }
        self.bench.load(checkpoint.net)?;
        self.best.store(checkpoint.best)?;
        self.found.store(checkpoint.found)?;
        self.state = checkpoint.state;
        let State { rows, lambda, info, .. } = checkpoint.state;
        error::range("rows of the checkpoint", rows as usize, 1, self.bench.fit().all_rows())?;
        self.select(rows as usize)?;
        let fit = self.bench.fit_mut();
        fit.solver.set_lambda(lambda);
        fit.rows_read = info.rows_read;
        let task = self.bench.task_mut();
        (task.flips, task.merges, task.folds) = (info.flips, info.merges, info.folds);
        self.log.info = Info { stopped: false, ..info };
        Ok(())
    }

    /// Fits the first `rows` rows from now on.
    fn select(&mut self, rows: usize) -> Outcome<'a, P, ()> {
        self.bench.fit_mut().select(rows)?;
        self.bench.task_mut().goal = self.params.exact * self.bench.fit().power();
        self.state.rows = rows as u32;
        Ok(())
    }

    pub(super) fn is_done(&self) -> bool {
        self.log.info.stopped || self.log.info.steps >= self.params.steps
    }

    pub(super) fn is_exact(&self, loss: f32) -> bool {
        loss <= self.bench.task().goal
    }

    /// An outer step down to `size` weights; the observer sees it.
    #[inline(never)]
    pub(super) fn outer(&mut self, loss: f32, size: usize, phase: Phase) -> Outcome<'a, P, f32> {
        let loss = self.bench.outer(loss, size)?;
        self.log.step(phase, &self.bench, (loss, self.state.best_loss));
        Ok(loss)
    }

    /// Outer steps until the loss stalls, at most [`DESCENT`]. They go on below the goal, where weights of little effect
    /// are found.
    #[inline(never)]
    pub(super) fn descend(&mut self, mut loss: f32, phase: Phase) -> Outcome<'a, P, f32> {
        for _ in 0..DESCENT {
            if loss <= FLOOR * self.bench.fit().power() || self.is_done() {
                break;
            }
            let before = loss;
            loss = self.outer(loss, self.bench.task().work_size(), phase)?;
            self.keep_best(loss)?;
            if !(loss < STALL * before) {
                break;
            }
        }
        Ok(loss)
    }

    pub(super) fn keep_best(&mut self, loss: f32) -> Outcome<'a, P, ()> {
        if loss < self.state.best_loss {
            self.best.store(self.bench.view())?;
            self.state.best_loss = loss;
        }
        Ok(())
    }

    /// Makes the network, of at most s weights and m neurons, whose loss is `loss` and whose residual is current, the
    /// result where it is better: on the rows that are fitted, or on those held out where there are such. The search goes
    /// on in the same way either way.
    fn keep_found(&mut self, loss: f32) -> Outcome<'a, P, ()> {
        let mut is_better = loss < self.state.found_loss;
        if self.params.validation > 0 {
            let held = self.held_loss()?;
            is_better = held < self.state.held || self.found.nnz() == 0;
            if is_better {
                (self.state.held, self.state.stale) = (held, 0);
            }
        }
        if is_better {
            self.found.store(self.bench.view())?;
        }
        if loss < self.state.found_loss {
            self.state.found_loss = loss;
        }
        Ok(())
    }

    /// The loss of the network on the rows held out. The residual is that of the fitted rows again.
    #[inline(never)]
    fn held_loss(&mut self) -> Outcome<'a, P, f32> {
        let rows = self.bench.fit().rows();
        self.bench.fit_mut().select_held()?;
        let held = self.bench.loss()?;
        self.bench.fit_mut().select(rows)?;
        self.bench.loss()?;
        Ok(held)
    }

    /// [`Stage::Descend`].
    fn begin(&mut self, loss: f32) -> Outcome<'a, P, Stage> {
        (self.state.best_loss, self.state.found_loss, self.state.kicks) = (f32::INFINITY, f32::INFINITY, 0);
        (self.state.mark, self.state.idle, self.state.stale) = (f32::INFINITY, 0, 0);
        self.bench.relax()?;
        self.keep_best(loss)?;
        self.descend(loss, Phase::Descend)?;
        Ok(Stage::Moves)
    }

    /// [`Stage::Moves`].
    fn moves(&mut self, mut loss: f32) -> Outcome<'a, P, Stage> {
        if !self.is_exact(loss) && !self.is_done() {
            match self.round(loss)? {
                Some(better) => loss = better,
                None => return Ok(Stage::Kick),
            }
            if !self.is_exact(loss) {
                return Ok(Stage::Moves);
            }
        }
        if !self.is_exact(loss) {
            return Ok(Stage::Kick);
        }
        let loss = self.finish(loss)?;
        Ok(if self.is_exact(loss) { self.leave()? } else { Stage::Kick })
    }

    /// Whether all rows say otherwise than those that are fitted: these are too few then, and the search goes on with
    /// more of them.
    fn refute(&mut self) -> Outcome<'a, P, bool> {
        let (rows, all) = (self.state.rows as usize, self.bench.fit().all_rows());
        if rows >= all {
            return Ok(false);
        }
        self.select(all)?;
        let refuted = self.bench.loss()? > REFUTED * self.state.best_loss;
        self.select(if refuted { rows.saturating_mul(MORE_ROWS).min(all) } else { rows })?;
        Ok(refuted)
    }

    /// Whether kicks have led nowhere for some time, and the fit is far from exact: noise, or no such network.
    fn is_idle(&mut self) -> bool {
        if self.state.best_loss < PROGRESS * self.state.mark {
            (self.state.mark, self.state.idle) = (self.state.best_loss, 0);
        } else {
            self.state.idle = self.state.idle.saturating_add(1);
        }
        self.state.best_loss > POOR * self.bench.fit().power() && self.state.idle >= self.params.patience
    }

    /// With rows held out, whether kicks have brought nothing better on them for some time. Where the best network has got
    /// better since the last kick it is brought down to s weights, which may be the result; it is at hand before and after.
    fn is_stale(&mut self) -> Outcome<'a, P, bool> {
        if self.params.validation == 0 {
            return Ok(false);
        }
        self.state.stale = self.state.stale.saturating_add(1);
        if self.state.idle == 0 {
            let loss = self.bench.loss()?;
            self.finish(loss)?;
            self.bench.load(self.best.view())?;
        }
        let patience = self.params.validation_patience;
        Ok(patience > 0 && self.state.stale >= patience)
    }

    /// [`Stage::Kick`]: back to the best network without a fifth of its neurons; the end of the search where there
    /// were enough kicks, and more rows where these are too few or kicks on them lead nowhere.
    fn kick(&mut self) -> Outcome<'a, P, Stage> {
        self.bench.load(self.best.view())?;
        if !self.is_done() && self.refute()? {
            return Ok(Stage::Descend);
        }
        let (idle, rows, all) = (self.is_idle(), self.state.rows as usize, self.bench.fit().all_rows());
        self.state.early = !self.is_done() && self.is_stale()?;
        if idle && !self.state.early && !self.is_done() && rows < all {
            self.select(rows.saturating_mul(MORE_ROWS).min(all))?;
            return Ok(Stage::Descend);
        }
        if idle || self.state.early || self.is_done() || self.state.kicks >= self.params.kicks {
            let loss = self.bench.loss()?;
            self.finish(loss)?;
            return self.leave();
        }
        self.state.kicks = self.state.kicks.saturating_add(1);
        self.log.info.kicks = self.log.info.kicks.saturating_add(1);
        let mut rng = Rng::new(self.params.seed, stream::KICK + u64::from(self.state.kicks));
        for _ in 0..(self.bench.live() / KICK).max(1) {
            let nth = rng.below(self.bench.live() as u32) as usize;
            self.bench.nth_live(nth).into_iter().for_each(|i| self.bench.remove(i));
        }
        let loss = self.bench.refit(2)?;
        self.descend(loss, Phase::Kick)?;
        Ok(Stage::Moves)
    }

    /// Ends the search with the best network of at most s weights.
    fn leave(&mut self) -> Outcome<'a, P, Stage> {
        self.bench.load(self.found.view())?;
        Ok(Stage::AllRows)
    }

    /// Down to s weights and m neurons without a linear term; keeps the result.
    #[inline(never)]
    fn finish(&mut self, loss: f32) -> Outcome<'a, P, f32> {
        // Two neurons that stand for one may be further apart than those that are the same.
        self.base.store(self.bench.view())?;
        let before = self.merge(loss, ALIKE, loss)?;
        self.hurry();
        let Self { bench, log, state, base, kept, .. } = self;
        let loss = bench.thin(before, |bench, loss| {
            log.step(Phase::Finish, bench, (loss, state.best_loss));
            !log.info.stopped
        })?;
        let loss = bench.conclude(loss, base, kept)?;
        self.keep_found(loss)?;
        // An exact fit that the way down has spoilt: a weight too many went, and comes back.
        if self.is_exact(before) && loss > SPOILT * before {
            self.descend_at_s(loss, before, Phase::Finish)?;
        }
        Ok(self.state.found_loss)
    }

    /// [`Stage::AllRows`].
    fn all_rows(&mut self, loss: f32) -> Outcome<'a, P, Stage> {
        let (all, rows, claimed) =
            (self.bench.fit().all_rows(), self.state.rows as usize, self.is_exact(loss));
        self.select(all)?;
        let loss = self.bench.loss()?;
        let loss = self.bench.improve(loss, self.params.final_steps, 0.0)?;
        self.state.found_loss = f32::INFINITY;
        self.keep_found(loss)?;
        self.log.step(Phase::AllRows, &self.bench, (loss, loss));
        if self.is_exact(loss) || self.is_done() || rows == all {
            return Ok(Stage::Polish);
        }
        if !claimed {
            return Ok(Stage::Settle);
        }
        self.select(rows.saturating_mul(MORE_ROWS).min(all))?;
        Ok(Stage::Descend)
    }

    /// [`Stage::Settle`]: no exact fit is in sight, so a better support for all rows is what is left to find.
    fn settle(&mut self, loss: f32) -> Outcome<'a, P, Stage> {
        self.state.best_loss = f32::INFINITY;
        let loss = self.descend(loss, Phase::AllRows)?;
        self.finish(loss)?;
        self.bench.load(self.found.view())?;
        Ok(Stage::Polish)
    }

    /// [`Stage::Polish`]: outer steps at exactly s weights as long as they lower the loss; weights that are missing are
    /// added first.
    fn polish(&mut self, mut loss: f32) -> Outcome<'a, P, Stage> {
        let missing = self.bench.task().nnz.saturating_sub(self.bench.view().nnz());
        if missing > 0 {
            self.bench.grow(missing)?;
            loss = self.bench.improve(loss, 3, 0.0)?;
            self.keep_found(loss)?;
        }
        self.descend_at_s(loss, self.bench.task().goal, Phase::Polish)?;
        Ok(if self.is_exact(self.state.found_loss) || self.is_done() { Stage::End } else { Stage::Plain })
    }

    /// Outer steps at exactly s weights as long as they lower the loss and it is above `goal`, at most
    /// [`Params::polish`].
    fn descend_at_s(&mut self, mut loss: f32, goal: f32, phase: Phase) -> Outcome<'a, P, ()> {
        for _ in 0..self.params.polish {
            if loss <= goal || self.is_done() {
                break;
            }
            let before = loss;
            loss = self.outer(loss, self.bench.task().nnz, phase)?;
            self.keep_found(loss)?;
            if !(loss < before) {
                break;
            }
        }
        Ok(())
    }

    /// [`Stage::Plain`]: where no exact fit was found, the plain method at s weights from the first weights of all rows;
    /// with one or two weights there is nothing to search, and this is better.
    fn plain(&mut self) -> Outcome<'a, P, Stage> {
        if self.bench.is_relaxed() {
            return Ok(Stage::End);
        }
        self.bench.start(self.params.seed)?;
        let (loss, goal) = (self.bench.loss()?, self.bench.task().goal);
        let loss = self.bench.improve(loss, 3, goal)?;
        let loss = self.bench.narrow(loss)?;
        self.keep_found(loss)?;
        if self.bench.live() <= self.bench.task().hidden {
            self.descend_at_s(loss, goal, Phase::Polish)?;
        }
        Ok(Stage::End)
    }

    /// The result without zeros, in the scale of the labels, and what was done.
    fn end(&mut self) -> Outcome<'a, P, Info> {
        self.found.compact();
        self.bench.load(self.found.view())?;
        let loss = self.bench.loss()?;
        let held = if self.params.validation > 0 { Some(self.held_loss()?) } else { None };
        self.bench.unscale(&mut self.found);
        self.found.compact();
        let found = self.found.view();
        for side in [found.w(), found.wt()] {
            error::finite("weights (scale labels and inputs to about 1)", side.value())?;
        }
        let (fit, task) = (self.bench.fit(), self.bench.task());
        Ok(Info {
            loss: fit.in_labels(loss),
            relative: if loss > 0.0 { loss / fit.power() } else { 0.0 },
            exact: self.is_exact(loss),
            held: held.map(|held| fit.in_labels(held)),
            early: self.state.early,
            flips: task.flips,
            merges: task.merges,
            folds: task.folds,
            rows_read: fit.rows_read,
            ..self.log.info
        })
    }
}

/// A state before anything was done.
pub(super) const fn first_state() -> State {
    let loss = f32::INFINITY;
    let info = Info::NONE;
    State {
        stage: Stage::Descend,
        rows: 0,
        kicks: 0,
        turn: 0,
        lambda: LAMBDA_START,
        best_loss: loss,
        found_loss: loss,
        mark: loss,
        idle: 0,
        held: loss,
        stale: 0,
        early: false,
        info,
    }
}
