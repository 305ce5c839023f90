//! Iterative magnitude pruning (IMP): train the dense network, drop the smallest of its weights,
//! set the others back to where they started, train again, until so many are left.
//!
//! A *level* is one training; between two levels lies a round of pruning, in which every weight of
//! every layer competes by its magnitude. The last level trains exactly s weights.
//!
//! One run of levels gives networks of several sizes: each is pruned from the last level above it
//! and trained in a level of its own, which no other goes on from.
//!
//! ```text
//! all ──> 0.9 ──> 0.81 ──> 0.73 ──> …
//!              └─> s_1          └─> s_2
//! ```

use std::mem::replace;
use std::path::Path;
use std::time::Instant;

use tamis::network::top::Top;

use super::device::{self, Setup, diverged};
use super::folder::{LevelFolder, Saved};
use super::job::{ImpJob, Level};
use super::training::Training;
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
    /// The size whose own level it is of, in a run of several.
    pub(crate) size: Option<usize>,
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

/// Where every level is saved when it is done.
pub(crate) struct Keep<'a> {
    pub(crate) folder: &'a Path,
    /// Continue from what the folder holds, bit for bit.
    pub(crate) resume: bool,
    /// Hears of each level why it could not be saved; the run continues. Nothing where it was.
    pub(crate) saved: &'a mut dyn FnMut(Option<Error>),
}

/// Trains a dense network and prunes it to s weights, on the current pool. `observe` hears of every
/// epoch; `stop` ends the run within a step, and what that step did is dropped.
pub(crate) fn imp(
    train: &Problem,
    job: &ImpJob<'_>,
    keep: Option<Keep<'_>>,
    stop: &Stop,
    observe: &mut dyn FnMut(Epoch) -> bool,
) -> Result<Imp> {
    let mut run = Run::new(train, job, stop)?;
    let Some(Keep { folder, resume, saved }) = keep else {
        return run.run(&mut |_| (), observe);
    };
    let (folder, before) = LevelFolder::open(folder, resume, train, job)?;
    before.into_iter().for_each(|before| run.resume(before));
    let mut save = |run: &Run<'_>| {
        let Training { weights, mask, .. } = &run.training;
        saved(folder.save(weights, &run.origin, mask, &run.levels).err());
    };
    run.run(&mut save, observe)
}

/// One size of a run of several: bit for bit what a run of its own gives.
#[derive(Debug)]
pub(crate) struct Sized {
    pub(crate) imp: Imp,
    /// Seconds of the levels above it and of its own.
    pub(crate) seconds: f64,
}

/// Trains one run of levels for `sizes`, which fall to that of the job; `done` takes the network of
/// each, in their order.
pub(crate) fn imp_of_sizes(
    train: &Problem,
    job: &ImpJob<'_>,
    sizes: &[usize],
    stop: &Stop,
    observe: &mut dyn FnMut(Epoch) -> bool,
    done: &mut dyn FnMut(Sized) -> Result<()>,
) -> Result<()> {
    debug_assert!(sizes.is_sorted_by(|a, b| a > b) && sizes.last() == Some(&job.nnz));
    let mut run = Run::new(train, job, stop)?;
    let (began, mut others) = (Instant::now(), 0.0);
    for &nnz in sizes {
        while let Some(&next) = run.counts.get(run.levels.len())
            && next > nnz
        {
            run.advance(next, None, observe)?;
        }
        let before = began.elapsed().as_secs_f64();
        let imp = run.size(nnz, observe)?;
        done(Sized { imp, seconds: began.elapsed().as_secs_f64() - others })?;
        others += began.elapsed().as_secs_f64() - before;
    }
    Ok(())
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
    fn new(train: &'a Problem, job: &'a ImpJob<'a>, stop: &'a Stop) -> Result<Self> {
        let weights = job.shape.initial(job.seed);
        let setup = Setup {
            shape: &job.shape,
            task: job.task,
            optimiser: job.settings.optimiser,
            batch: job.rows(train.data.rows),
            stop,
        };
        Ok(Self {
            train,
            job,
            counts: job.counts(),
            origin: weights.clone(),
            trained: weights.clone(),
            training: Training::on(&*job.settings.place, weights, &setup)?,
            levels: Vec::new(),
        })
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
        save: &mut dyn FnMut(&Self),
        observe: &mut dyn FnMut(Epoch) -> bool,
    ) -> Result<Imp> {
        while let Some(&count) = self.counts.get(self.levels.len()) {
            if !self.levels.is_empty() && count == self.job.nnz && !self.job.settings.retrain {
                self.prune(count)?;
                break;
            }
            match self.advance(count, None, observe) {
                Err(error) if error.is_interrupted() && self.training.steps > 0 => {
                    if !self.levels.is_empty() {
                        self.training.weights.copy_from_slice(&self.trained);
                    }
                    self.prune(self.job.nnz)?;
                    return Ok(self.finish(true));
                }
                done => done?,
            }
            save(&self);
        }
        Ok(self.finish(false))
    }

    /// Prunes to `count` weights, but before the first level, and trains them.
    fn advance(
        &mut self,
        count: usize,
        size: Option<usize>,
        observe: &mut dyn FnMut(Epoch) -> bool,
    ) -> Result<()> {
        if !self.levels.is_empty() {
            self.prune(count)?;
            self.rewind();
        }
        self.level(count, &mut |epoch| observe(Epoch { size, ..epoch }))
    }

    /// The network of a size below the last level, which stays as it is.
    fn size(&mut self, nnz: usize, observe: &mut dyn FnMut(Epoch) -> bool) -> Result<Imp> {
        let Training { weights, mask, steps, .. } = &self.training;
        let (weights, mask, steps) = (weights.clone(), mask.clone(), *steps);
        let levels = self.levels.clone();
        if levels.is_empty() || self.job.settings.retrain {
            self.advance(nnz, Some(nnz), observe)?;
        } else {
            self.prune(nnz)?;
        }
        Ok(Imp {
            weights: replace(&mut self.training.weights, weights),
            mask: replace(&mut self.training.mask, mask),
            levels: replace(&mut self.levels, levels),
            steps: replace(&mut self.training.steps, steps),
            stopped: false,
        })
    }

    fn finish(self, stopped: bool) -> Imp {
        let Self { training: Training { weights, mask, steps, .. }, levels, .. } = self;
        Imp { weights, mask, levels, steps, stopped }
    }

    /// Trains the weights of the mask, so many, and measures what became of them.
    fn level(&mut self, nnz: usize, observe: &mut dyn FnMut(Epoch) -> bool) -> Result<()> {
        let (settings, scale) = (self.job.settings, self.job.input_scale);
        self.epochs(observe)?;
        let train = self.training.measure(self.train, scale)?;
        let test = settings.test.as_ref();
        let test = test.map(|test| self.training.measure(test, scale)).transpose()?;
        self.trained.copy_from_slice(&self.training.weights);
        let steps = self.training.steps;
        self.levels.push(Level { nnz, steps, train, test });
        Ok(())
    }

    /// The epochs of a level.
    fn epochs(&mut self, observe: &mut dyn FnMut(Epoch) -> bool) -> Result<()> {
        let (level, settings) = (self.levels.len(), self.job.settings);
        let first = if level == 0 { 0 } else { settings.rewind };
        self.training.restart();
        for epoch in first..settings.epochs {
            if level == 0 && epoch == settings.rewind {
                self.origin.copy_from_slice(&self.training.weights);
            }
            let loss = self.training.epoch(&device::Epoch {
                set: self.train,
                rows: 0..self.train.data.rows,
                scale: self.job.input_scale,
                batch: self.job.rows(self.train.data.rows),
                seed: self.job.seed,
                number: level as u64 * u64::from(settings.epochs) + u64::from(epoch),
                rate: self.job.rates.at(epoch),
                decay: self.job.rates.decay,
                warmup: 0,
                penalty: None,
            })?;
            if !observe(self.progress(level, epoch, loss)) {
                return Err(Error::interrupted());
            }
        }
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
        let levels = self.counts.len() - usize::from(!settings.retrain && self.counts.len() > 1);
        Epoch { epoch: before(level) + own, epochs: before(levels), loss, size: None }
    }
}

#[cfg(test)]
mod tests;
