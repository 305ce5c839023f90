//! A run: a small machine that goes from stage to stage ([`super::stages`]), and what all stages
//! use.
//!
//! Between two stages all that a run is are the networks and the numbers of a [`Checkpoint`]; each
//! stage begins by computing the loss and the residual anew, so that a run that goes on from a
//! checkpoint has the same bits as one that was never interrupted.

use super::checkpoint::{Checkpoint, Stage, State};
use super::problem::{Outcome, Problem};
use super::sides::Sides;
use super::{Info, Params, Phase, Progress};
use crate::base::error::{self, Error};
use crate::learn::start::Start;

/// A descent has stalled where the loss does not fall below this part of the last one.
const STALL: f32 = 0.85;
/// Outer steps of a descent at the most.
const DESCENT: u32 = 40;
/// Below this part of the mean square of the labels is what rounding leaves.
const FLOOR: f32 = 1e-14;
/// Where all rows refute an exact fit of a part of them, the search goes on with so many times the
/// part.
pub(super) const MORE_ROWS: usize = 4;

/// A run: the network at hand, those that are kept, and where it stands.
pub(super) struct Search<'a, P, F> {
    pub(super) bench: P,
    /// Where moves start from.
    pub(super) base: Sides<'a>,
    /// The best trial of a batch.
    pub(super) kept: Sides<'a>,
    /// The best while searching.
    pub(super) best: Sides<'a>,
    /// The best of at most s weights and m neurons, without a linear term: on the rows held out
    /// where there are such.
    pub(super) found: Sides<'a>,
    pub(super) params: Params,
    pub(super) state: State,
    pub(super) log: Log<F>,
}

/// Mean squared errors that the observer is told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Losses {
    /// Of the network at hand.
    pub(super) now: f32,
    /// The least while searching.
    pub(super) search: f32,
    /// The least of networks that may be the result.
    pub(super) found: f32,
}

/// Counts, and tells the observer.
pub(super) struct Log<F> {
    pub(super) observe: F,
    pub(super) info: Info,
    /// Whether the operator has ended the run, which it does once.
    pub(super) cut_off: bool,
}

impl State {
    /// What the observer is told of a network at hand with the loss `now`.
    pub(super) fn losses(&self, now: f32) -> Losses {
        Losses { now, search: self.best_loss, found: self.found_loss }
    }
}

impl<F: FnMut(&Progress<'_>) -> bool> Log<F> {
    /// Tells the observer, once per outer step.
    pub(super) fn step<'a, P: Problem<'a>>(&mut self, phase: Phase, bench: &P, losses: Losses) {
        self.info.steps = self.info.steps.saturating_add(1);
        self.tell(phase, bench, losses, None);
    }

    /// Tells the observer. Once the run was ended there is no checkpoint any more, and what the
    /// observer says changes nothing.
    #[inline(never)]
    fn tell<'a, P: Problem<'a>>(
        &mut self,
        phase: Phase,
        bench: &P,
        losses: Losses,
        checkpoint: Option<Checkpoint<'_>>,
    ) {
        if self.info.stopped && checkpoint.is_some() {
            return;
        }
        let progress = Progress {
            phase,
            step: self.info.steps,
            loss: bench.fit().in_labels(losses.now),
            best: bench.fit().in_labels(losses.found),
            search_best: bench.fit().in_labels(losses.search.min(losses.now)),
            support: bench.view().nnz(),
            live: bench.live(),
            moves: self.info.moves,
            kicks: self.info.kicks,
            rows_read: bench.fit().rows_read,
            checkpoint,
        };
        self.info.stopped |= !(self.observe)(&progress);
    }
}

impl<'a, P: Problem<'a>, F: FnMut(&Progress<'_>) -> bool> Search<'a, P, F> {
    /// From where `start` says to the end, on `rows` rows first; the result is in `found`.
    pub(super) fn run(
        &mut self,
        rows: usize,
        start: Start<'_, Checkpoint<'_>>,
    ) -> Outcome<'a, P, Info> {
        match start {
            Start::Checkpoint(checkpoint) => self.restore(checkpoint)?,
            Start::Network(network) => {
                self.restore(&Checkpoint::starting(network, rows))?;
                self.kept.store(network)?;
                self.bench.rescale(&mut self.kept);
                self.bench.load(self.kept.view())?;
            }
            Start::Zero => {
                self.take_up(rows)?;
                self.bench.fit_mut().cover.switch(true);
                self.bench.start(self.params.seed)?;
                self.bench.relax()?;
                let (loss, goal) = (self.bench.loss()?, self.bench.task().goal);
                self.bench.improve(loss, 3, goal)?;
            }
        }
        while self.state.stage != Stage::End {
            self.tell_checkpoint();
            self.hurry();
            self.state.stage = match self.advance() {
                Err(Error::Stopped) if !self.log.cut_off => self.cut_off()?,
                next => next?,
            };
        }
        self.end()
    }

    /// One stage; the next one.
    fn advance(&mut self) -> Outcome<'a, P, Stage> {
        // What is found is judged without a cover.
        let searches =
            matches!(self.state.stage, Stage::Descend | Stage::Fall | Stage::Moves | Stage::Kick);
        self.bench.fit_mut().cover.switch(searches);
        let loss = self.bench.loss()?;
        match self.state.stage {
            Stage::Descend => self.begin(loss),
            Stage::Fall => self.fall(loss),
            Stage::Moves => self.moves(loss),
            Stage::Kick => self.kick(),
            Stage::AllRows => self.all_rows(loss),
            Stage::Settle => self.settle(loss),
            Stage::Plain => self.plain(),
            Stage::Refit => self.refit(),
            Stage::Polish | Stage::End => self.polish(loss),
        }
    }

    /// The operator was asked to end within a stage. The networks that are kept are whole, so the
    /// run ends as one that the observer has ended: with the best of them.
    fn cut_off(&mut self) -> Outcome<'a, P, Stage> {
        (self.log.info.stopped, self.log.cut_off) = (true, true);
        match self.state.stage {
            Stage::Descend | Stage::Fall | Stage::Moves | Stage::Kick => {
                self.select(self.state.rows as usize)?;
                // Before there is a best network, that at hand is the first one.
                if self.best.nnz() == 0 {
                    self.best.store(self.bench.view())?;
                }
                Ok(Stage::Kick)
            }
            Stage::AllRows
            | Stage::Settle
            | Stage::Plain
            | Stage::Polish
            | Stage::Refit
            | Stage::End => Ok(Stage::End),
        }
    }

    /// Once the run was ended, what is left to do takes few steps of few products.
    pub(super) fn hurry(&mut self) {
        let hurried = self.log.info.stopped;
        self.bench.task_mut().hurried = hurried;
        if hurried {
            self.bench.fit_mut().solver.hurry();
        }
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
            Stage::Fall => state.falling(),
            Stage::Moves => Phase::Move,
            Stage::Kick => Phase::Kick,
            Stage::AllRows | Stage::Settle | Stage::Refit => Phase::AllRows,
            Stage::Plain | Stage::Polish | Stage::End => Phase::Polish,
        };
        log.tell(phase, bench, state.losses(state.best_loss), Some(checkpoint));
    }

    /// Becomes what `checkpoint` holds.
    fn restore(&mut self, checkpoint: &Checkpoint<'_>) -> Outcome<'a, P, ()> {
        let shape = self.bench.view().shape();
        for from in [checkpoint.net, checkpoint.best, checkpoint.found] {
            from.check_shape(shape).map_err(Error::widen)?;
        }
        self.bench.load(checkpoint.net)?;
        self.best.store(checkpoint.best)?;
        self.found.store(checkpoint.found)?;
        self.state = checkpoint.state;
        let State { rows, lambda, info, .. } = checkpoint.state;
        error::range("rows of the checkpoint", rows as usize, 1, self.bench.fit().all_rows())?;
        self.take_up(rows as usize)?;
        let fit = self.bench.fit_mut();
        fit.solver.set_lambda(lambda);
        fit.rows_read = info.rows_read;
        let task = self.bench.task_mut();
        (task.flips, task.merges, task.folds) = (info.flips, info.merges, info.folds);
        self.log.info = Info { stopped: false, ..info };
        Ok(())
    }

    /// Fits the first `rows` rows from now on.
    pub(super) fn select(&mut self, rows: usize) -> Outcome<'a, P, ()> {
        self.bench.fit_mut().select(rows)?;
        self.bench.task_mut().goal = self.params.exact * self.bench.fit().power();
        self.state.rows = rows as u32;
        Ok(())
    }

    /// Fits the first `rows` rows from now on, with the scales of the inputs there.
    pub(super) fn take_up(&mut self, rows: usize) -> Outcome<'a, P, ()> {
        self.select(rows)?;
        self.bench.measure()
    }

    /// Fits so many times more rows from now on.
    pub(super) fn widen(&mut self, rows: usize) -> Outcome<'a, P, ()> {
        self.take_up(rows.saturating_mul(MORE_ROWS).min(self.bench.fit().all_rows()))
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
        self.log.step(phase, &self.bench, self.state.losses(loss));
        Ok(loss)
    }

    /// An outer step down to s weights, whose network may be the result; the observer sees it.
    pub(super) fn outer_at_s(&mut self, loss: f32, phase: Phase) -> Outcome<'a, P, f32> {
        let loss = self.bench.outer(loss, self.bench.task().nnz)?;
        let losses = self.state.losses(loss);
        self.log.step(phase, &self.bench, Losses { found: losses.found.min(loss), ..losses });
        self.keep_found(loss)?;
        Ok(loss)
    }

    /// Outer steps until the loss stalls, at most [`DESCENT`]. They go on below the goal, where
    /// weights of little effect are found.
    #[inline(never)]
    pub(super) fn descend(&mut self, mut loss: f32, phase: Phase) -> Outcome<'a, P, f32> {
        for _ in 0..DESCENT {
            match self.down(loss, phase)? {
                (least, true) => loss = least,
                (least, false) => return Ok(least),
            }
        }
        Ok(loss)
    }

    /// One outer step, unless there is none to make: the loss, and whether another one is worth it.
    pub(super) fn down(&mut self, before: f32, phase: Phase) -> Outcome<'a, P, (f32, bool)> {
        if before <= FLOOR * self.bench.fit().power() || self.is_done() {
            return Ok((before, false));
        }
        let loss = self.outer(before, self.bench.task().work_size(), phase)?;
        self.keep_best(loss)?;
        Ok((loss, loss < STALL * before))
    }

    pub(super) fn keep_best(&mut self, loss: f32) -> Outcome<'a, P, ()> {
        if loss < self.state.best_loss {
            self.best.store(self.bench.view())?;
            self.state.best_loss = loss;
        }
        Ok(())
    }

    /// Makes the network, of at most s weights and m neurons, whose loss is `loss` and whose
    /// residual is current, the result where it is better: on the rows that are fitted, or on those
    /// held out where there are such. The search goes on in the same way either way.
    pub(super) fn keep_found(&mut self, loss: f32) -> Outcome<'a, P, ()> {
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
    pub(super) fn held_loss(&mut self) -> Outcome<'a, P, f32> {
        let rows = self.bench.fit().rows();
        self.bench.fit_mut().select_held()?;
        let held = self.bench.loss()?;
        self.bench.fit_mut().select(rows)?;
        self.bench.loss()?;
        Ok(held)
    }

    /// The losses of the network: on all rows but those held out, and on these where there are
    /// such.
    fn score(&mut self) -> Outcome<'a, P, (f32, Option<f32>)> {
        self.select(self.bench.fit().all_rows())?;
        let loss = self.bench.loss()?;
        Ok((loss, if self.params.validation > 0 { Some(self.held_loss()?) } else { None }))
    }

    /// The result without zeros, in the scale of the labels, and what was done.
    fn end(&mut self) -> Outcome<'a, P, Info> {
        self.bench.fit_mut().cover.switch(false);
        self.found.compact();
        self.bench.load(self.found.view())?;
        let (loss, held) = error::insist(self, |run| run.log.info.stopped = true, Self::score)?;
        self.bench.unscale(&mut self.found);
        self.found.compact();
        let found = self.found.view();
        for side in [found.w(), found.wt()] {
            error::finite("weights (scale labels and inputs to about 1)", side.value())?;
        }
        // Below the normal floats weights lose what made the fit exact.
        let precise =
            [found.w(), found.wt()].iter().all(|side| side.value().iter().all(|w| w.is_normal()));
        let (fit, task) = (self.bench.fit(), self.bench.task());
        Ok(Info {
            loss: fit.in_labels(loss),
            relative: if loss > 0.0 { loss / fit.power() } else { 0.0 },
            exact: precise && self.is_exact(loss),
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

#[cfg(test)]
pub(super) mod tests;
