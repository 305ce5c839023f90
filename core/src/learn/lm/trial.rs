//! One round of moves: tidy, list candidates, try them out one by one, and take what helps.
//!
//! Every move is a trial: it is applied to the base of the round, fitted, and descended from; only
//! then is it judged, by the loss it led to.

use super::problem::{BATCH, Candidate, Draw, Outcome, Problem};
use super::search::Search;
use super::{Phase, Progress};
use crate::base::budget::Recovery;
use crate::base::rng::{seed_of, stream};

/// Outer steps after a trial move.
const TRIAL: u32 = 4;
/// A trial goes on only while a step leaves less than this part of the loss.
const TRIAL_STALL: f32 = 0.95;
/// A trial that falls below this part of the loss is taken at once …
const SUCCESS: f32 = 0.7;
/// … and one below this part if it is the best of its batch.
const PROGRESS: f32 = 0.98;
/// Tidying is undone where it raises the loss above this multiple.
const TIDY: f32 = 1.02;
/// Steps that bring the loss down again after tidying, at the most, …
const SETTLE: u32 = 8;
/// … as long as one leaves less than this part of it.
const SETTLES: f32 = 0.5;
/// Neurons that were turned because they are mirror images stay so up to this multiple of the loss.
const UNMIRRORED: f32 = 1.5;
/// Weights that are swapped at once, by turns, at most half of s; then half of s …
const SWAPPED: [usize; 4] = [5, 10, 20, 40];
/// … with so many steps once they are added, …
const SWAP_STEPS: u32 = 4;
/// … so many once as many are dropped, …
const SETTLE_SWAP: u32 = 8;
/// … and progress is a loss below this part.
const SWAP_PROGRESS: f32 = 0.99;
/// One in so many neurons gets a candidate in the joint trial.
const JOINT: usize = 12;
/// Neurons with a cosine above these become one, by turns.
const COSINES: [f32; 5] = [0.995, 0.98, 0.95, 0.995, 0.9];

impl<'a, P: Problem<'a>, F: FnMut(&Progress<'_>) -> bool> Search<'a, P, F> {
    /// Tidies, then tries candidates until one helps; `None` if none does, with the network as
    /// tidied.
    pub(super) fn round(&mut self, loss: f32) -> Outcome<'a, P, Option<f32>> {
        let loss = self.tidy(loss)?;
        if self.is_exact(loss) {
            return Ok(Some(loss));
        }
        if self.bench.task().tight
            && let Some(swapped) = self.swap(loss)?
        {
            self.log.info.moves = self.log.info.moves.saturating_add(1);
            return Ok(Some(swapped));
        }
        let draw = Draw {
            seed: seed_of(self.params.seed, stream::TURN, self.state.turn),
            random: self.params.random_births,
        };
        let candidates = self.bench.candidates(draw)?;
        if let Some(several) =
            candidates.get(..joint(self.bench.live(), candidates.len())).filter(|c| !c.is_empty())
        {
            let tried = self.try_out(several, draw, loss)?;
            if tried < SUCCESS * loss {
                self.log.info.moves = self.log.info.moves.saturating_add(1);
                return self.descend(tried, Phase::Move).map(Some);
            }
        }
        for batch in candidates.chunks(BATCH) {
            let least = self.try_batch(batch, draw, loss)?;
            if least < PROGRESS * loss {
                self.log.info.moves = self.log.info.moves.saturating_add(1);
                self.bench.load(self.kept.view())?;
                let least = self.bench.loss()?;
                self.keep_best(least)?;
                return self.descend(least, Phase::Move).map(Some);
            }
            if self.is_done() {
                break;
            }
        }
        self.bench.load(self.base.view())?;
        Ok(None)
    }

    /// Tries candidates one by one, until one is a success; the least loss that one led to, whose
    /// network is kept.
    fn try_batch(
        &mut self,
        batch: &[Candidate<P::Move>],
        draw: Draw,
        loss: f32,
    ) -> Outcome<'a, P, f32> {
        let mut least = f32::INFINITY;
        for candidate in batch {
            let tried = self.try_out(core::slice::from_ref(candidate), draw, loss)?;
            if tried < least {
                least = tried;
                self.kept.store(self.bench.view())?;
            }
            if least < SUCCESS * loss || self.is_done() {
                break;
            }
        }
        Ok(least)
    }

    /// Adds some weights to the base, fits, drops as many and fits, until that lowers the loss,
    /// which is `loss`; the base is at hand before, and after where there is none. Every round
    /// begins with another number of weights.
    #[inline(never)]
    fn swap(&mut self, loss: f32) -> Outcome<'a, P, Option<f32>> {
        let (size, most) = (self.bench.task().work_size(), Recovery::growth(self.bench.task().nnz));
        for turn in 0..=SWAPPED.len() {
            if self.is_done() {
                break;
            }
            let count = swapped((self.state.turn as usize).wrapping_add(turn), most);
            self.log.info.trials = self.log.info.trials.saturating_add(1);
            self.bench.grow(count)?;
            self.bench.fit_mut().solver.damp();
            self.bench.improve(loss, SWAP_STEPS, 0.0)?;
            let swapped = self.bench.cut(size, SETTLE_SWAP)?;
            self.log.step(Phase::Trial, &self.bench, self.state.losses(swapped));
            if swapped < SWAP_PROGRESS * loss {
                self.keep_best(swapped)?;
                return Ok(Some(swapped));
            }
            self.bench.load(self.base.view())?;
            self.bench.loss()?;
        }
        Ok(None)
    }

    /// Flips and merges, a trial like any other: what they spoil is undone. The result is the base
    /// of the round.
    fn tidy(&mut self, loss: f32) -> Outcome<'a, P, f32> {
        let cosine = alike(self.state.turn);
        self.state.turn = self.state.turn.wrapping_add(1);
        self.base.store(self.bench.view())?;
        #[cfg(test)]
        if !self.params.tidy {
            return Ok(loss);
        }
        let loss = self.unmirror(loss)?;
        let flipped = self.bench.flip(loss)?;
        self.merge(flipped, cosine, loss)
    }

    /// Turns neurons back whose mirror images stand for them, as long as the fit bears it. The base
    /// is the network, before and after.
    #[inline(never)]
    pub(super) fn unmirror(&mut self, mut loss: f32) -> Outcome<'a, P, f32> {
        for i in 0..self.bench.view().w().hidden() {
            if self.bench.unmirror(i)? > 0 {
                self.bench.fit_mut().solver.damp();
                let turned = self.bench.cut(self.bench.task().work_size(), 3)?;
                loss = self.keep_base(turned, UNMIRRORED * loss)?;
            }
        }
        Ok(loss)
    }

    /// Merges and fits, and goes back to the base where that raises the loss above `loss`; what
    /// stays is the base.
    pub(super) fn merge(&mut self, mut tidied: f32, cosine: f32, loss: f32) -> Outcome<'a, P, f32> {
        if self.bench.merge(cosine)? > 0 {
            tidied = self.bench.refit(2)?;
        }
        self.keep_base(tidied, TIDY * loss)
    }

    /// Makes the network, whose loss is `loss`, the base where that is at most `most`, perhaps
    /// after some steps, and goes back to the base else.
    fn keep_base(&mut self, loss: f32, most: f32) -> Outcome<'a, P, f32> {
        let mut loss = loss;
        for _ in 0..SETTLE {
            let before = loss;
            if loss <= most {
                break;
            }
            loss = self.bench.improve(loss, 1, self.bench.task().goal)?;
            if !(loss < SETTLES * before) {
                break;
            }
        }
        if loss <= most {
            self.base.store(self.bench.view())?;
            return Ok(loss);
        }
        self.bench.load(self.base.view())?;
        self.bench.loss()
    }

    /// The base with these candidates applied, fitted and descended from; its loss, infinite if
    /// none could be applied.
    #[inline(never)]
    fn try_out(
        &mut self,
        candidates: &[Candidate<P::Move>],
        draw: Draw,
        loss: f32,
    ) -> Outcome<'a, P, f32> {
        self.bench.load(self.base.view())?;
        // Candidates are formed from the residual of the base.
        self.bench.loss()?;
        self.log.info.trials = self.log.info.trials.saturating_add(1);
        let mut applied = false;
        for candidate in candidates {
            applied |= self.bench.apply(candidate, draw)?;
        }
        if !applied {
            return Ok(f32::INFINITY);
        }
        let mut tried = self.bench.refit(2)?;
        for _ in 0..TRIAL {
            if self.is_exact(tried) || self.is_done() {
                break;
            }
            let before = tried;
            tried = self.outer(tried, self.bench.task().work_size(), Phase::Trial)?;
            if tried < SUCCESS * loss || !(tried < TRIAL_STALL * before) {
                break;
            }
        }
        if self.bench.counted() > self.bench.task().work_size() {
            tried = self.bench.cut(self.bench.task().work_size(), 2)?;
        }
        self.keep_best(tried)?;
        Ok(tried)
    }
}

/// Candidates in the joint trial, of so many that are listed for so many neurons: none where that
/// would be one.
fn joint(live: usize, listed: usize) -> usize {
    let joint = (live / JOINT).min(listed);
    if joint >= 2 { joint } else { 0 }
}

/// Weights that are swapped at once in this turn, at most `most`, half of s.
fn swapped(turn: usize, most: usize) -> usize {
    SWAPPED.get(turn % (SWAPPED.len() + 1)).map_or(most, |&count| count.min(most))
}

/// The cosine above which neurons become one in this turn.
fn alike(turn: u32) -> f32 {
    COSINES.get(turn as usize % COSINES.len()).copied().unwrap_or(1.0)
}

#[cfg(test)]
mod tests;
