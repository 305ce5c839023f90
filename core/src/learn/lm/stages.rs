//! The stages of a run: descend, try moves, restart, finish, all rows, polish. Each returns the
//! next one.

use super::checkpoint::{Stage, State};
use super::fit::Readout;
use super::lighten::ALIKE;
use super::model::{Model, Moves, Support};
use super::moves::SLIM_STEPS;
use super::search::{MORE_ROWS, Search, step};
use super::{Phase, Progress};
use crate::base::error::Result;
use crate::base::rng::{Rng, seed_of, stream};
use crate::network::gates::Signs;
use crate::operator::sensing::Sensing;

/// A restart empties one in so many neurons, …
const PERTURBED: usize = 5;
/// … and as many again for every so many restarts without progress.
const PATIENT_RESTARTS: usize = 3;
/// The way down to s weights has spoilt an exact fit where the loss is so many times as large.
const SPOILT: f32 = 4.0;
/// An exact fit that has not borne it is brought down again where the loss is below this fraction.
const AGAIN: f32 = 0.25;
/// All rows refute a fit of some of them where the loss is so many times as large.
const REFUTED: f32 = 2.0;
/// With so many weights the plain method is worth its few passes even where the run was ended, …
const FEW: usize = 2;
/// … and so it is where more than this fraction of the mean square of the labels is left.
const NOTHING: f32 = 0.9;
/// A loss above this fraction of the mean square of the labels is far from exact …
const POOR: f32 = 1e-3;
/// … and one below this fraction of the last is progress.
const PROGRESS: f32 = 0.98;
/// An outer step after the end of a run is worth another one where it leaves less of the loss …
const HALF: f32 = 0.5;
/// … and so is a step on a fixed support.
const WORTH: f32 = 0.999_999;

impl<'a, S: Sensing, H: Readout<S>, F: FnMut(&Progress<'_>) -> bool> Search<'a, S, H, F>
where
    Model<'a, S, H>: Moves<S>,
{
    /// [`Stage::First`]: steps of Adam on all rows, then on those of the search.
    pub(super) fn first(&mut self) -> Result<Stage, S::Source> {
        let Self { model, params, state, observe, .. } = self;
        model.adam(params.first, params.seed, &mut |model, loss| {
            step(observe, Phase::Descend, model, loss, *state);
            !model.task.info.stopped
        })?;
        self.select(self.state.rows as usize)?;
        // Those that end early have more weights than a search.
        self.model.threshold(self.model.task.work_size())?;
        let (loss, goal) = (self.model.loss()?, self.model.task.goal);
        self.model.improve(loss, 3, goal)?;
        Ok(Stage::Descend)
    }

    pub(super) fn begin(&mut self, loss: f32) -> Result<Stage, S::Source> {
        (self.state.best_loss, self.state.perturbations) = (f32::INFINITY, 0);
        self.state.result_loss = self.result_loss()?;
        (self.state.mark, self.state.idle, self.state.stale) = (f32::INFINITY, 0, 0);
        self.state.finished = f32::INFINITY;
        self.model.relax()?;
        self.store_best(loss)?;
        Ok(Stage::Fall)
    }

    /// The loss of the result of other rows on the rows of now; infinity where there is none. The residual is
    /// another one then.
    fn result_loss(&mut self) -> Result<f32, S::Source> {
        if self.result.nnz() == 0 {
            return Ok(f32::INFINITY);
        }
        self.base.store(self.model.view())?;
        self.model.load(self.result.view())?;
        let loss = self.model.loss()?;
        self.model.load(self.base.view())?;
        Ok(loss)
    }

    /// [`Stage::Fall`]: one outer step of a descent. Each that leads to another leaves less than a
    /// fixed fraction of the loss, so that there are few in a row.
    pub(super) fn fall(&mut self, loss: f32) -> Result<Stage, S::Source> {
        let (_, again) = self.down(loss, self.state.falling())?;
        Ok(if again { Stage::Fall } else { Stage::Moves })
    }

    pub(super) fn moves(&mut self, mut loss: f32) -> Result<Stage, S::Source> {
        if self.may_bear(loss) {
            self.state.finished = loss;
            self.store_best(loss)?;
            self.finish(loss)?;
            if self.is_found(self.state.result_loss) {
                return self.take_result();
            }
            return self.go_on();
        }
        if !self.is_found(loss) {
            let better = if self.is_done() { None } else { self.try_moves(loss)? };
            loss = match better {
                Some(better) if self.is_found(better) => better,
                Some(better) if better < loss => return Ok(Stage::Moves),
                // The way down after a move has lost what it won: the move's network goes on.
                Some(_) if self.state.best_loss < PROGRESS * loss => {
                    self.model.load(self.best.view())?;
                    return Ok(Stage::Moves);
                }
                Some(_) if !self.is_exact(loss) => return Ok(Stage::Perturb),
                Some(_) => {
                    self.model.load(self.best.view())?;
                    self.model.loss()?
                }
                None => self.model.loss()?,
            };
            if !self.is_exact(loss) {
                return Ok(Stage::Perturb);
            }
        }
        let loss = self.finish(loss)?;
        Ok(if self.is_exact(loss) { self.take_result()? } else { Stage::Perturb })
    }

    /// From the better one of the result and the best network, which an exact fit is before the way down to s weights.
    fn go_on(&mut self) -> Result<Stage, S::Source> {
        self.model.load(self.result.view())?;
        let loss = self.model.loss()?;
        if loss < self.state.best_loss {
            self.model.relax()?;
            self.store_best(loss)?;
            return Ok(Stage::Fall);
        }
        self.model.load(self.best.view())?;
        Ok(Stage::Moves)
    }

    /// Whether an exact fit may bear the way down to s weights though it may become more exact. That is tried
    /// first, and again where much less of the loss is left.
    fn may_bear(&self, loss: f32) -> bool {
        let is_new = loss < AGAIN * self.state.finished && !self.is_done();
        is_new && self.is_exact(loss) && !self.is_found(loss)
    }

    /// Whether all rows say otherwise than those that are fitted; more are fitted then.
    fn refute(&mut self) -> Result<bool, S::Source> {
        let (rows, all) = (self.state.rows as usize, self.model.fit.train);
        if rows >= all {
            return Ok(false);
        }
        self.select(all)?;
        let loss = self.model.loss();
        self.select(rows)?;
        let refuted = loss? > REFUTED * self.state.best_loss;
        if refuted {
            self.widen(rows)?;
        }
        Ok(refuted)
    }

    /// Whether restarts have made no progress for some time, and the fit is far from exact.
    fn is_idle(&mut self) -> bool {
        if self.state.best_loss < PROGRESS * self.state.mark {
            (self.state.mark, self.state.idle) = (self.state.best_loss, 0);
        } else {
            self.state.idle = self.state.idle.saturating_add(1);
        }
        let patience = patient(self.params.patience, self.widenings());
        self.state.best_loss > POOR * self.model.fit.power && self.state.idle >= patience
    }

    /// How many times the search has continued with more rows.
    fn widenings(&self) -> u32 {
        let first = self.params.search_rows(self.model.task.nnz, self.model.fit.train);
        let (mut rows, mut widenings) = (first, 0);
        while rows < self.state.rows as usize && rows > 0 {
            rows = rows.saturating_mul(MORE_ROWS);
            widenings += 1;
        }
        widenings
    }

    /// Early stopping: whether restarts have brought nothing better on the validation rows for some
    /// time. A better network since the last restart is brought down to s weights first, which may
    /// be the result; the best is at hand before and after.
    fn is_stale(&mut self) -> Result<bool, S::Source> {
        if self.params.validation == 0 {
            return Ok(false);
        }
        self.state.stale = self.state.stale.saturating_add(1);
        if self.state.idle == 0 {
            let loss = self.model.loss()?;
            self.finish(loss)?;
            self.model.load(self.best.view())?;
        }
        let patience = self.params.validation_patience;
        Ok(patience > 0 && self.state.stale >= patience)
    }

    /// [`Stage::Perturb`]: back to the best network without a fifth of its neurons; or the end of
    /// the search, or more rows where these are too few or restarts on them lead nowhere.
    pub(super) fn restart(&mut self) -> Result<Stage, S::Source> {
        self.model.load(self.best.view())?;
        if !self.is_done() && self.refute()? {
            return Ok(Stage::Descend);
        }
        let (idle, rows, all) = (self.is_idle(), self.state.rows as usize, self.model.fit.train);
        self.state.early = !self.is_done() && self.is_stale()?;
        if idle && !self.state.early && !self.is_done() && rows < all {
            self.widen(rows)?;
            return Ok(Stage::Descend);
        }
        // An exact fit of unoriented neurons needs no other one, but a search of oriented ones from its result.
        let is_fit = self.params.signs == Signs::Unoriented && self.is_exact(self.state.best_loss);
        let was_last = is_fit || self.state.perturbations >= self.params.perturbations;
        if idle || self.state.early || self.is_done() || was_last {
            let loss = self.model.loss()?;
            self.finish(loss)?;
            return self.take_result();
        }
        self.state.perturbations = self.state.perturbations.saturating_add(1);
        self.model.task.info.perturbations = self.model.task.info.perturbations.saturating_add(1);
        self.drop_neurons();
        // Without new neurons an empty network stays empty.
        if self.model.live() == 0 && self.model.task.tight {
            self.model.start(seed_of(self.params.seed, stream::TRIAL, self.state.perturbations))?;
        }
        self.model.refit(2)?;
        Ok(Stage::Fall)
    }

    /// Empties neurons that the seed and the number of the restart say, as many as [`emptied`].
    fn drop_neurons(&mut self) {
        let mut rng =
            Rng::new(self.params.seed, stream::RESTART + u64::from(self.state.perturbations));
        for _ in 0..emptied(self.model.live(), self.state.idle) {
            let nth = rng.below(self.model.live() as u32) as usize;
            self.model.nth_live(nth).into_iter().for_each(|i| self.model.remove(i));
        }
    }

    fn take_result(&mut self) -> Result<Stage, S::Source> {
        self.model.load(self.result.view())?;
        Ok(Stage::AllRows)
    }

    /// Down to s weights and m neurons without a linear term; stores the result.
    #[inline(never)]
    fn finish(&mut self, loss: f32) -> Result<f32, S::Source> {
        // Two neurons that are equivalent may be further apart than those that are the same.
        self.base.store(self.model.view())?;
        let before = self.merge(loss, ALIKE, loss)?;
        let before = if self.is_exact(before) { self.merge_pairs(ALIKE, before)? } else { before };
        self.hurry();
        // Mirror images take more weights than there will be.
        let before = if self.is_exact(before) { self.unmirror(before)? } else { before };
        let ended = self.model.task.info.stopped;
        let mut loss = self.thin(before)?;
        if !ended && self.model.task.info.stopped && loss > SPOILT * before {
            loss = self.thin_again(loss)?;
        }
        if self.is_exact(loss) && self.model.first() > 0 {
            // Folding needs room.
            loss = self.lighten(loss)?;
        }
        let Self { model, base, trial, .. } = self;
        let mut loss = model.conclude(loss, [base, trial])?;
        // Whether it is the network shows once it is as exact as it can be.
        if loss <= model.task.goal && !model.task.is_found(loss) {
            loss = model.improve(loss, SLIM_STEPS, 0.0)?;
        }
        self.store_result(loss)?;
        // An exact fit that the way down has spoilt: a weight too many went, and comes back.
        if self.is_exact(before) && loss > SPOILT * before {
            self.descend_at_s(loss, before, Phase::Finish)?;
        }
        Ok(self.state.result_loss)
    }

    fn thin(&mut self, loss: f32) -> Result<f32, S::Source> {
        let Self { model, observe, state, .. } = self;
        model.thin(loss, |model, loss| {
            step(observe, Phase::Finish, model, loss, *state);
            !model.task.info.stopped
        })
    }

    /// The way down was ended half way: from the base once more, in a hurry, and the better of both.
    fn thin_again(&mut self, loss: f32) -> Result<f32, S::Source> {
        self.trial.store(self.model.view())?;
        self.model.load(self.base.view())?;
        self.hurry();
        let before = self.model.loss()?;
        let again = self.thin(before)?;
        if again < loss {
            return Ok(again);
        }
        self.model.load(self.trial.view())?;
        self.model.loss()
    }

    pub(super) fn all_rows(&mut self, loss: f32) -> Result<Stage, S::Source> {
        let (all, rows, claimed) =
            (self.model.fit.train, self.state.rows as usize, self.is_exact(loss));
        self.take_up(all)?;
        let loss = self.model.loss()?;
        let loss = self.model.improve(loss, self.params.final_steps, 0.0)?;
        self.state.result_loss = f32::INFINITY;
        self.store_result(loss)?;
        self.step(Phase::AllRows, loss, State { best_loss: loss, ..self.state });
        // Rows that tell two networks apart may be few.
        if self.is_found(loss) || self.is_done() || rows == all {
            return Ok(Stage::Polish);
        }
        if !claimed {
            return Ok(Stage::Support);
        }
        self.widen(rows)?;
        Ok(Stage::Descend)
    }

    /// [`Stage::Refit`]: steps on all rows as long as each wins enough, on the same support.
    pub(super) fn refit(&mut self) -> Result<Stage, S::Source> {
        self.take_up(self.model.fit.train)?;
        let mut loss = self.model.loss()?;
        self.store_result(loss)?;
        for _ in 0..self.params.final_steps {
            let before = loss;
            loss = self.model.improve(loss, 1, 0.0)?;
            self.store_result(loss)?;
            self.step(Phase::AllRows, loss, self.state);
            if self.model.task.info.stopped || !(loss < WORTH * before) {
                break;
            }
        }
        Ok(Stage::End)
    }

    /// [`Stage::Support`]: where no exact fit is in sight, a better support for all rows.
    pub(super) fn improve_support(&mut self, loss: f32) -> Result<Stage, S::Source> {
        self.state.best_loss = f32::INFINITY;
        let loss = self.descend(loss, Phase::AllRows)?;
        self.finish(loss)?;
        self.model.load(self.result.view())?;
        Ok(Stage::Polish)
    }

    /// [`Stage::Polish`]: missing weights, and outer steps at s weights while they lower the loss.
    pub(super) fn polish(&mut self, mut loss: f32) -> Result<Stage, S::Source> {
        if self.is_exact(loss) {
            loss = self.thin_exact(loss)?;
        }
        let missing = self.model.task.nnz.saturating_sub(self.model.view().nnz());
        if missing > 0 && !self.is_exact(loss) {
            self.model.grow(missing)?;
            loss = self.model.improve(loss, 3, 0.0)?;
            self.store_result(loss)?;
        }
        // In a hurry weights may have gone that a fit needs: one outer step brings them back.
        let mut before = f32::INFINITY;
        for _ in 0..if self.model.task.info.stopped { self.params.polish } else { 0 } {
            if self.is_exact(loss) || !(loss < HALF * before) {
                break;
            }
            before = loss;
            loss = self.outer_at_s(loss, Phase::Polish)?;
        }
        self.descend_at_s(loss, self.model.task.goal, Phase::Polish)?;
        let is_good = self.state.result_loss < NOTHING * self.model.fit.power;
        let is_hasty = self.is_done() && self.model.task.nnz > FEW && is_good;
        Ok(if self.is_exact(self.state.result_loss) || is_hasty {
            Stage::End
        } else {
            Stage::Plain
        })
    }

    /// At most [`Params::polish`] outer steps at s weights while they lower the loss above `goal`.
    fn descend_at_s(&mut self, mut loss: f32, goal: f32, phase: Phase) -> Result<(), S::Source> {
        for _ in 0..self.params.polish {
            if loss <= goal || self.is_done() {
                break;
            }
            let before = loss;
            loss = self.outer_at_s(loss, phase)?;
            if !(loss < before) {
                break;
            }
        }
        Ok(())
    }

    /// [`Stage::Plain`]: without an exact fit, the plain method at s weights from the first weights
    /// of all rows, which is better for one or two weights.
    pub(super) fn plain(&mut self) -> Result<Stage, S::Source> {
        if self.model.is_relaxed() {
            return Ok(Stage::End);
        }
        self.model.start(self.params.seed)?;
        let (loss, goal) = (self.model.loss()?, self.model.task.goal);
        let loss = self.model.improve(loss, 3, goal)?;
        let loss = self.model.narrow(loss)?;
        self.store_result(loss)?;
        if self.model.live() <= self.model.task.hidden {
            self.descend_at_s(loss, goal, Phase::Polish)?;
        }
        self.model.load(self.result.view())?;
        self.state.idle = 0;
        Ok(Stage::Exchange)
    }
}

/// Neurons that a restart empties after so many restarts without progress: a fifth, two fifths from
/// [`PATIENT_RESTARTS`] on, and so on up to four, but at least one.
fn emptied(live: usize, idle: u32) -> usize {
    let strength = (1 + idle as usize / PATIENT_RESTARTS).min(PERTURBED - 1);
    (live.saturating_mul(strength) / PERTURBED).max(1)
}

/// [`Params::patience`](super::Params::patience) after so many changes to more rows.
fn patient(patience: u32, widenings: u32) -> u32 {
    patience.checked_shr(2 * widenings).unwrap_or(0).max(1)
}

#[cfg(test)]
mod tests;
