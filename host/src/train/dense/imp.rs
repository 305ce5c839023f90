//! Iterative magnitude pruning (IMP): train the dense network, drop the smallest of its weights,
//! set the others back to where they started, train again, until so many are left.
//!
//! A *level* is one training; between two levels lies a round of pruning, in which every weight of
//! every layer competes by its magnitude. The last level trains exactly s weights.

use std::path::Path;

use tamis::network::top::Top;

use super::folder::{LevelFolder, Saved};
use super::job::{ImpJob, Level};
use super::training::{self, Training, diverged};
use crate::data::Problem;
use crate::operator::Stop;
use crate::{Error, Result};

/// An epoch of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Epoch {
    /// Epochs done of all levels, and those of the whole run.
    pub(crate) epoch: u64,
    pub(crate) epochs: u64,
    /// Mean loss of its steps, each before it was taken.
    pub(crate) loss: f64,
}

/// A finished run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Imp {
    /// Weights of all layers, for scaled inputs; 0 where they are pruned.
    pub(crate) weights: Vec<f32>,
    /// Which are left: exactly s.
    pub(crate) mask: Vec<bool>,
    /// The levels that were trained to their end.
    pub(crate) levels: Vec<Level>,
    /// Steps of the optimiser.
    pub(crate) steps: u64,
    /// Whether it was ended early: the last complete level, or the last step where there is none,
    /// cut to the s largest weights.
    pub(crate) stopped: bool,
}

/// Trains a dense network and prunes it to s weights, on the current pool. `observe` hears of every
/// epoch; `stop` ends the run within a step, and what that step did is dropped. With a folder every
/// level is saved when it is done, and with `resume` a run continues from there, bit for bit.
pub(crate) fn imp(
    train: &Problem,
    job: &ImpJob<'_>,
    folder: Option<&Path>,
    resume: bool,
    stop: &Stop,
    observe: &mut dyn FnMut(Epoch) -> bool,
) -> Result<Imp> {
    let open = folder.map(|folder| LevelFolder::open(folder, resume, train, job)).transpose()?;
    let (folder, saved) = open.unzip();
    let mut run = Run::new(train, job, stop);
    if let Some(saved) = saved.flatten() {
        run.resume(saved);
    }
    run.run(folder.as_ref(), observe)
}

struct Run<'a> {
    train: &'a Problem,
    job: &'a ImpJob<'a>,
    counts: Vec<usize>,
    training: Training,
    /// What surviving weights are set back to.
    origin: Vec<f32>,
    /// What the last level ended with.
    trained: Vec<f32>,
    levels: Vec<Level>,
}

impl<'a> Run<'a> {
    fn new(train: &'a Problem, job: &'a ImpJob<'a>, stop: &'a Stop) -> Self {
        let weights = job.shape.initial(job.seed);
        Self {
            train,
            job,
            counts: job.counts(),
            origin: weights.clone(),
            trained: weights.clone(),
            training: Training::new(
                &job.shape,
                weights,
                job.settings.optimiser,
                job.task,
                job.rows(train.data.rows),
                stop,
            ),
            levels: Vec::new(),
        }
    }

    /// Goes to where the saved run stood after its last level.
    fn resume(&mut self, saved: Saved) {
        let Saved { weights, origin, mask, levels } = saved;
        self.trained.clone_from(&weights);
        self.training.steps = levels.last().map_or(0, |level| level.steps);
        (self.training.weights, self.training.mask) = (weights, mask);
        (self.origin, self.levels) = (origin, levels);
    }

    fn run(
        mut self,
        folder: Option<&LevelFolder<'_>>,
        observe: &mut dyn FnMut(Epoch) -> bool,
    ) -> Result<Imp> {
        while self.levels.len() < self.counts.len() {
            if !self.levels.is_empty() {
                self.prune(self.counts[self.levels.len()])?;
                self.rewind();
            }
            match self.level(observe) {
                Err(error) if error.is_interrupted() && self.training.steps > 0 => {
                    if !self.levels.is_empty() {
                        self.training.weights.copy_from_slice(&self.trained);
                    }
                    self.prune(self.job.nnz)?;
                    return Ok(self.finish(true));
                }
                done => done?,
            }
            if let Some(folder) = folder {
                let Training { weights, mask, .. } = &self.training;
                folder.save(weights, &self.origin, mask, &self.levels)?;
            }
        }
        Ok(self.finish(false))
    }

    fn finish(self, stopped: bool) -> Imp {
        let Self { training: Training { weights, mask, steps, .. }, levels, .. } = self;
        Imp { weights, mask, levels, steps, stopped }
    }

    /// Trains the weights of the mask and measures what became of them.
    fn level(&mut self, observe: &mut dyn FnMut(Epoch) -> bool) -> Result<()> {
        let (level, settings, scale) = (self.levels.len(), self.job.settings, self.job.input_scale);
        let first = if level == 0 { 0 } else { settings.rewind };
        self.training.restart();
        for epoch in first..settings.epochs {
            if level == 0 && epoch == settings.rewind {
                self.origin.copy_from_slice(&self.training.weights);
            }
            let loss = self.training.epoch(&training::Epoch {
                set: self.train,
                rows: 0..self.train.data.rows,
                scale,
                batch: self.job.rows(self.train.data.rows),
                seed: self.job.seed,
                number: level as u64 * u64::from(settings.epochs) + u64::from(epoch),
                rate: self.job.rates.at(epoch),
                decay: self.job.rates.decay,
                penalty: None,
            })?;
            if !observe(self.progress(level, epoch, loss)) {
                return Err(Error::interrupted());
            }
        }
        let train = self.training.measure(self.train, scale)?;
        let test = settings.test.as_ref();
        let test = test.map(|test| self.training.measure(test, scale)).transpose()?;
        self.trained.copy_from_slice(&self.training.weights);
        let (nnz, steps) = (self.counts[level], self.training.steps);
        self.levels.push(Level { nnz, steps, train, test });
        Ok(())
    }

    /// Keeps the `count` largest weights of the mask; of equal ones those of lower index.
    fn prune(&mut self, count: usize) -> Result<()> {
        let Training { weights, mask, .. } = &mut self.training;
        let (mut index, mut value) = (vec![0; count], vec![0.0; count]);
        let mut top = Top::new(&mut index, &mut value);
        let survivors = || mask.iter().enumerate().filter(|&(_, &kept)| kept).map(|(j, _)| j);
        survivors().for_each(|j| top.push(j as u32, weights[j]));
        let found = top.finish().ok_or_else(|| diverged(f64::NAN))?;
        let mut next = vec![false; mask.len()];
        index[..found].iter().for_each(|&j| next[j as usize] = true);
        // Weights that are 0 do not enter the top, and some may be needed.
        let zeros: Vec<usize> = survivors().filter(|&j| !next[j]).take(count - found).collect();
        zeros.into_iter().for_each(|j| next[j] = true);
        *mask = next;
        let gone = weights.iter_mut().zip(mask).filter(|(_, kept)| !**kept);
        gone.for_each(|(w, _)| *w = 0.0);
        Ok(())
    }

    /// Sets the weights of the mask back.
    fn rewind(&mut self) {
        let Training { weights, mask, .. } = &mut self.training;
        for ((w, origin), kept) in weights.iter_mut().zip(&self.origin).zip(mask) {
            *w = if *kept { *origin } else { 0.0 };
        }
    }

    fn progress(&self, level: usize, epoch: u32, loss: f64) -> Epoch {
        let settings = self.job.settings;
        let [all, rewind] = [settings.epochs, settings.rewind].map(u64::from);
        let before =
            |level: usize| if level == 0 { 0 } else { all + (level as u64 - 1) * (all - rewind) };
        let own = u64::from(epoch) + 1 - if level == 0 { 0 } else { rewind };
        Epoch { epoch: before(level) + own, epochs: before(self.counts.len()), loss }
    }
}

#[cfg(test)]
mod tests;
