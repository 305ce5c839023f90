//! Random starts of a network of several outputs.

use super::{Goal, Iterates, Run};
use crate::budget;
use crate::error::{Error, Result};
use crate::factored::Factored;
use crate::iht::NetWork;
use crate::math::{ln, norm2};
use crate::rng::{seed_of, stream};
use crate::train::checkpoint::Phase;
use crate::train::{Progress, Trials};

impl Run<'_> {
    /// Leaves the weights of the best start, and the counters of its sketch, in `state`, and turns to all rows.
    pub(super) fn starts<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &mut Iterates<'_>,
        work: &mut NetWork<'_>,
        observe: &mut impl FnMut(&Progress<'_>) -> bool,
    ) -> Result<(), S::Source> {
        let Trials { count, rows } = self.schedule.trials;
        if count > 1 && self.at.phase != Phase::All {
            self.turn_to(rows.min(self.all));
            self.search(sensing, state, work, observe)?;
            if self.at.trial != self.at.best_trial {
                self.at.phase = Phase::Again;
                let stopped = core::mem::take(&mut self.stopped);
                self.deaf = stopped;
                self.start(self.at.best_trial, sensing, state, work, observe)?;
                (self.deaf, self.stopped) = (false, stopped | self.stopped);
            }
            // What is worse than no weights is no start, but better than nothing where the run was ended.
            let is_better = self.stopped || self.at.best < self.zero();
            (self.at.tried, self.at.warm) = (self.at.step, state.net().is_live() && is_better);
            (self.at.best, self.at.step_size) = (f32::INFINITY, self.schedule.step_size);
            if !self.at.warm {
                state.clear();
            }
        }
        if count > 1 {
            self.seed = self.seed_of(self.at.best_trial);
        }
        self.at.phase = Phase::All;
        self.turn_to(self.all);
        Ok(())
    }

    /// Tries starts until one is exact or the run is ended.
    fn search<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &mut Iterates<'_>,
        work: &mut NetWork<'_>,
        observe: &mut impl FnMut(&Progress<'_>) -> bool,
    ) -> Result<(), S::Source> {
        let exact = Trials::EXACT * if let Goal::Values(_) = self.goal { self.zero() } else { 0.0 };
        while self.at.phase == Phase::Trials {
            let loss = self.start(self.at.trial, sensing, state, work, observe)?;
            self.at.trials = self.at.trials.saturating_add(1);
            if loss < self.at.best {
                (self.at.best, self.at.best_trial) = (loss, self.at.trial);
            }
            if self.stopped || loss <= exact || self.at.trial + 1 >= self.schedule.trials.count {
                break;
            }
            self.at.trial += 1;
        }
        Ok(())
    }

    /// One start on the rows of a trial, without safety; infinity where it diverges.
    fn start<S: Factored>(
        &mut self,
        trial: u32,
        sensing: &mut S,
        state: &mut Iterates<'_>,
        work: &mut NetWork<'_>,
        observe: &mut impl FnMut(&Progress<'_>) -> bool,
    ) -> Result<f32, S::Source> {
        self.seed = self.seed_of(trial);
        if !self.resumed {
            state.clear();
        }
        let mut done = Ok(());
        for epoch in self.at.epoch..self.schedule.epochs {
            self.at.epoch = epoch;
            done = self.epoch(sensing, state, work, observe);
            if done.is_err() || self.stopped {
                break;
            }
            self.at.batch = 0;
        }
        (self.at.epoch, self.at.batch) = (0, 0);
        let loss = match done {
            Ok(()) => self.loss(sensing, state, work),
            Err(Error::Stopped) => {
                self.stopped = true;
                self.loss(sensing, state, work)
            }
            Err(error) => Err(error),
        };
        match loss {
            Err(Error::Diverged { .. }) => {
                state.clear();
                Ok(f32::INFINITY)
            }
            loss => {
                self.at.passes += self.rows as f32 / self.all as f32;
                loss
            }
        }
    }

    /// Trains on the first `rows` rows from now on.
    fn turn_to(&mut self, rows: usize) {
        (self.rows, self.batch) = (rows, budget::batch(self.schedule.batch, rows));
    }

    fn seed_of(&self, trial: u32) -> u64 {
        seed_of(self.schedule.seed, stream::TRIAL, trial)
    }

    /// The loss of no weights on the rows of a trial.
    fn zero(&self) -> f32 {
        match self.goal {
            Goal::Values(labels) => {
                let labels = labels.get(..self.rows * self.outputs).unwrap_or(labels);
                norm2(labels) / labels.len().max(1) as f32
            }
            Goal::Classes(_, classes) => ln(*classes as f32),
        }
    }
}

impl Iterates<'_> {
    /// Back to no weights.
    fn clear(&mut self) {
        (self.current.first, self.current.len) = (0, 0);
        if let Some(sketch) = &mut self.sketch {
            sketch.clear();
        }
    }
}
