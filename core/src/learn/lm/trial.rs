//! One pass of local search: simplify, list candidates, try them one by one, and take what helps.
//! Every move is applied to the base of the pass, fitted, descended from, and then judged.

use super::fit::Readout;
use super::model::{Model, Moves, Support};
use super::neuron::{BATCH, Candidate, Draw};
use super::search::Search;
use super::{Phase, Progress};
use crate::base::budget::Recovery;
use crate::base::error::Result;
use crate::base::rng::{seed_of, stream};
use crate::operator::sensing::Sensing;

/// Outer steps after a trial move.
const TRIAL: u32 = 4;
/// A trial continues only while a step leaves less than this fraction of the loss.
const TRIAL_STALL: f32 = 0.95;
/// A trial that falls below this fraction of the loss is taken at once …
const SUCCESS: f32 = 0.7;
/// … and one below this fraction if it is the best of its batch.
const PROGRESS: f32 = 0.98;
/// Simplification is undone where it raises the loss above this multiple.
const SIMPLIFIED: f32 = 1.02;
/// Steps that repair the loss after simplifying, at the most, …
const REPAIR: u32 = 8;
/// … as long as one leaves less than this fraction of it.
const REPAIRED: f32 = 0.5;
/// Mirror images that were flipped stay so up to this multiple of the loss.
const UNMIRRORED: f32 = 1.5;
/// Weights that are swapped at once, in turn, at most half of s; then half of s …
const SWAPPED: [usize; 4] = [5, 10, 20, 40];
/// … with so many steps once they are added, …
const SWAP_STEPS: u32 = 4;
/// … so many once as many are dropped, …
const DROP_STEPS: u32 = 8;
/// … and progress is a loss below this fraction.
const SWAP_PROGRESS: f32 = 0.99;
/// One in so many neurons gets a candidate in the joint trial.
const JOINT: usize = 12;
/// Neurons with a cosine above these become one, in turn.
const COSINES: [f32; 5] = [0.995, 0.98, 0.95, 0.995, 0.9];

impl<'a, S: Sensing, H: Readout<S>, F: FnMut(&Progress<'_>) -> bool> Search<'a, S, H, F>
where
    Model<'a, S, H>: Moves<S>,
{
    /// Simplifies, then tries candidates until one helps; `None` if none does.
    pub(super) fn try_moves(&mut self, loss: f32) -> Result<Option<f32>, S::Source> {
        let loss = self.simplify(loss)?;
        if self.is_found(loss) { Ok(Some(loss)) } else { self.try_candidates(loss) }
    }

    /// The same from the base as it is.
    fn try_candidates(&mut self, loss: f32) -> Result<Option<f32>, S::Source> {
        if self.model.task.tight
            && let Some(swapped) = self.swap(loss)?
        {
            self.model.task.info.moves = self.model.task.info.moves.saturating_add(1);
            return Ok(Some(swapped));
        }
        let draw = Draw {
            seed: seed_of(self.params.seed, stream::PASS, self.state.turn),
            random: self.params.random_neurons,
        };
        let candidates = self.model.candidates(draw)?;
        if let Some(several) =
            candidates.get(..joint(self.model.live(), candidates.len())).filter(|c| !c.is_empty())
        {
            let tried = self.try_out(several, draw, loss)?;
            if tried < SUCCESS * loss {
                self.model.task.info.moves = self.model.task.info.moves.saturating_add(1);
                return self.descend(tried, Phase::Move).map(Some);
            }
        }
        for batch in candidates.chunks(BATCH) {
            let least = self.try_batch(batch, draw, loss)?;
            if least < PROGRESS * loss {
                self.model.task.info.moves = self.model.task.info.moves.saturating_add(1);
                self.model.load(self.trial.view())?;
                let least = self.model.loss()?;
                self.store_best(least)?;
                return self.descend(least, Phase::Move).map(Some);
            }
            if self.is_done() {
                break;
            }
        }
        self.model.load(self.base.view())?;
        Ok(None)
    }

    /// Tries candidates one by one, until one is a success; the least loss, of `trial`.
    fn try_batch(&mut self, batch: &[Candidate], draw: Draw, loss: f32) -> Result<f32, S::Source> {
        let mut least = f32::INFINITY;
        for candidate in batch {
            let tried = self.try_out(core::slice::from_ref(candidate), draw, loss)?;
            if tried < least {
                least = tried;
                self.trial.store(self.model.view())?;
            }
            if least < SUCCESS * loss || self.is_done() {
                break;
            }
        }
        Ok(least)
    }

    /// Adds some weights to the base, fits, drops as many and fits, until that lowers the loss; else
    /// the base is at hand again. Every pass begins with another number of weights.
    #[inline(never)]
    fn swap(&mut self, loss: f32) -> Result<Option<f32>, S::Source> {
        let (size, most) = (self.model.task.work_size(), Recovery::growth(self.model.task.nnz));
        for turn in 0..=SWAPPED.len() {
            if self.is_done() {
                break;
            }
            let count = swapped((self.state.turn as usize).wrapping_add(turn), most);
            self.model.task.info.trials = self.model.task.info.trials.saturating_add(1);
            self.model.grow(count)?;
            self.model.solver.damp();
            self.model.improve(loss, SWAP_STEPS, 0.0)?;
            let swapped = self.model.cut(size, DROP_STEPS, 0.0)?;
            self.step(Phase::Trial, swapped, self.state);
            if swapped < SWAP_PROGRESS * loss {
                self.store_best(swapped)?;
                return Ok(Some(swapped));
            }
            self.model.load(self.base.view())?;
            self.model.loss()?;
        }
        Ok(None)
    }

    /// Flips and merges, and undoes what they spoil; the result is the base of the pass.
    fn simplify(&mut self, loss: f32) -> Result<f32, S::Source> {
        let cosine = alike(self.state.turn);
        self.state.turn = self.state.turn.wrapping_add(1);
        self.base.store(self.model.view())?;
        let loss = self.unmirror(loss)?;
        let flipped = self.model.flip(loss)?;
        let loss = self.merge(flipped, cosine, loss)?;
        // Where all at once were too many, a new neuron would take the place of one that is needed.
        let used = self.model.first() + self.model.neurons().count();
        let is_full = used >= self.model.view().w().hidden();
        if is_full && !self.is_done() { self.merge_pairs(cosine, loss) } else { Ok(loss) }
    }

    /// Flips mirror images back as long as the fit bears it. The base is the network throughout.
    #[inline(never)]
    pub(super) fn unmirror(&mut self, mut loss: f32) -> Result<f32, S::Source> {
        for i in 0..self.model.view().w().hidden() {
            if self.model.unmirror(i)? > 0 {
                self.model.solver.damp();
                let turned = self.model.cut(self.model.task.work_size(), 3, 0.0)?;
                loss = self.accept(turned, UNMIRRORED * loss)?;
            }
        }
        Ok(loss)
    }

    /// Merges and fits, and goes back to the base where that spoils the loss; what stays is the base.
    pub(super) fn merge(
        &mut self,
        mut simplified: f32,
        cosine: f32,
        loss: f32,
    ) -> Result<f32, S::Source> {
        if self.model.merge(cosine)? > 0 {
            simplified = self.model.refit(2)?;
        }
        self.accept(simplified, SIMPLIFIED * loss)
    }

    /// Merges pair by pair what the fit bears. The base is the network throughout.
    pub(super) fn merge_pairs(&mut self, cosine: f32, mut loss: f32) -> Result<f32, S::Source> {
        let blocks = self.model.view().w().hidden();
        for i in self.model.first()..blocks {
            for j in i + 1..blocks {
                let is_pair = !self.model.is_vacant(i) && !self.model.is_vacant(j);
                if is_pair && !self.is_done() && self.model.merge_two(i, j, cosine)? {
                    let merged = self.model.refit(2)?;
                    loss = self.accept(merged, SIMPLIFIED * loss)?;
                }
            }
        }
        Ok(loss)
    }

    /// Makes the network the base where its loss is at most `most`, perhaps after some steps, and
    /// goes back to the base else.
    pub(super) fn accept(&mut self, mut loss: f32, most: f32) -> Result<f32, S::Source> {
        for _ in 0..REPAIR {
            let before = loss;
            if loss <= most {
                break;
            }
            loss = self.model.improve(loss, 1, most.min(self.model.task.goal))?;
            if !(loss < REPAIRED * before) {
                break;
            }
        }
        self.keep(loss, most)
    }

    /// The same without steps.
    pub(super) fn keep(&mut self, loss: f32, most: f32) -> Result<f32, S::Source> {
        if loss <= most {
            self.base.store(self.model.view())?;
            return Ok(loss);
        }
        self.model.load(self.base.view())?;
        self.model.loss()
    }

    /// The base with these candidates, fitted and descended from; its loss, infinite if none could
    /// be applied.
    #[inline(never)]
    fn try_out(
        &mut self,
        candidates: &[Candidate],
        draw: Draw,
        loss: f32,
    ) -> Result<f32, S::Source> {
        self.model.load(self.base.view())?;
        // Candidates are formed from the residual of the base.
        self.model.loss()?;
        self.model.task.info.trials = self.model.task.info.trials.saturating_add(1);
        let mut applied = false;
        for candidate in candidates {
            applied |= self.model.apply(candidate.kind, draw)?;
        }
        if !applied {
            return Ok(f32::INFINITY);
        }
        let mut tried = self.model.refit(2)?;
        for left in (0..TRIAL).rev() {
            if self.is_found(tried) || self.is_done() {
                break;
            }
            let before = tried;
            tried = self.outer(tried, self.model.task.work_size(), Phase::Trial)?;
            // A single candidate has no others to be tried with, and may win more later.
            let is_hopeful =
                candidates.len() == 1 || expected(before, tried, left) < SUCCESS * loss;
            if tried < SUCCESS * loss || !(tried < TRIAL_STALL * before && is_hopeful) {
                break;
            }
        }
        if self.model.counted() > self.model.task.work_size() {
            tried = self.model.cut(self.model.task.work_size(), 2, 0.0)?;
        }
        self.store_best(tried)?;
        Ok(tried)
    }
}

/// The loss after so many steps that are left if each wins as much as the last one.
pub(super) fn expected(before: f32, loss: f32, left: u32) -> f32 {
    let ratio = loss / before;
    (0..left).fold(loss, |loss, _| ratio * loss)
}

/// Candidates in the joint trial, of so many that are listed; none where that would be one.
fn joint(live: usize, listed: usize) -> usize {
    let joint = (live / JOINT).min(listed);
    if joint >= 2 { joint } else { 0 }
}

/// Weights that are swapped at once in this pass, at most `most`, half of s.
fn swapped(turn: usize, most: usize) -> usize {
    SWAPPED.get(turn % (SWAPPED.len() + 1)).map_or(most, |&count| count.min(most))
}

fn alike(turn: u32) -> f32 {
    COSINES.get(turn as usize % COSINES.len()).copied().unwrap_or(1.0)
}

#[cfg(test)]
mod tests;
