//! Iterative magnitude pruning (IMP): train the dense network, drop the smallest of its weights,
//! set the others back to where they started, train again, until so many are left.
//!
//! A *level* is one training; between two levels lies a round of pruning, in which every weight of
//! every layer competes by its magnitude. The last level trains exactly s weights.

use std::path::Path;

use tamis::base::rng::{Permutation, stream};
use tamis::network::top::Top;

use super::folder::{LevelFolder, Saved};
use super::job::{ImpJob, Level};
use super::optimiser::State;
use super::pass::{Batch, Engine, Goal, Measure};
use crate::data::Problem;
use crate::operator::Stop;
use crate::{Error, Result};

/// Stream of the orders of the rows, one per epoch of each level.
const ORDER: u64 = stream::USER + (0xdf << 32);

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
    engine: Engine,
    state: State,
    weights: Vec<f32>,
    /// What surviving weights are set back to.
    origin: Vec<f32>,
    /// What the last level ended with.
    trained: Vec<f32>,
    mask: Vec<bool>,
    levels: Vec<Level>,
    steps: u64,
}

impl<'a> Run<'a> {
    fn new(train: &'a Problem, job: &'a ImpJob<'a>, stop: &'a Stop) -> Self {
        let weights = job.shape.initial(job.seed);
        Self {
            train,
            job,
            counts: job.counts(),
            engine: Engine::new(&job.shape, job.task, job.rows(train.data.rows), stop),
            state: State::new(job.settings.optimiser, weights.len()),
            origin: weights.clone(),
            trained: weights.clone(),
            mask: vec![true; weights.len()],
            weights,
            levels: Vec::new(),
            steps: 0,
        }
    }

    /// Goes to where the saved run stood after its last level.
    fn resume(&mut self, saved: Saved) {
        self.steps = saved.levels.last().map_or(0, |level| level.steps);
        self.trained.clone_from(&saved.weights);
        let Saved { weights, origin, mask, levels } = saved;
        (self.weights, self.origin, self.mask, self.levels) = (weights, origin, mask, levels);
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
                Err(error) if error.is_interrupted() && self.steps > 0 => {
                    if !self.levels.is_empty() {
                        self.weights.copy_from_slice(&self.trained);
                    }
                    self.prune(self.job.nnz)?;
                    return Ok(self.finish(true));
                }
                done => done?,
            }
            if let Some(folder) = folder {
                folder.save(&self.weights, &self.origin, &self.mask, &self.levels)?;
            }
        }
        Ok(self.finish(false))
    }

    fn finish(self, stopped: bool) -> Imp {
        let Self { weights, mask, levels, steps, .. } = self;
        Imp { weights, mask, levels, steps, stopped }
    }

    /// Trains the weights of the mask and measures what became of them.
    fn level(&mut self, observe: &mut dyn FnMut(Epoch) -> bool) -> Result<()> {
        let (level, settings) = (self.levels.len(), self.job.settings);
        let first = if level == 0 { 0 } else { settings.rewind };
        self.state.reset();
        for epoch in first..settings.epochs {
            if level == 0 && epoch == settings.rewind {
                self.origin.copy_from_slice(&self.weights);
            }
            let loss = self.epoch(level, epoch)?;
            if !observe(self.progress(level, epoch, loss)) {
                return Err(Error::interrupted());
            }
        }
        let train = self.measure(self.train)?;
        let test = settings.test.as_ref().map(|test| self.measure(test)).transpose()?;
        self.trained.copy_from_slice(&self.weights);
        self.levels.push(Level { nnz: self.counts[level], steps: self.steps, train, test });
        Ok(())
    }

    /// One pass over all batches; the mean loss.
    fn epoch(&mut self, level: usize, epoch: u32) -> Result<f64> {
        let (job, n) = (self.job, self.train.data.rows);
        let size = job.rows(n);
        let number = level as u64 * u64::from(job.settings.epochs) + u64::from(epoch);
        let order = (size < n).then(|| Permutation::new(job.seed, ORDER + number, n));
        let mut sum = 0.0;
        for start in (0..n).step_by(size) {
            let rows = start..(start + size).min(n);
            let share = rows.len() as f64 / n as f64;
            let batch = Batch { set: self.train, rows, order, scale: job.input_scale };
            let loss = self.engine.pass(&self.weights, &batch, Goal::Gradient)?.loss;
            if !loss.is_finite() {
                return Err(diverged(loss));
            }
            sum += loss * share;
            let (rate, decay) = (job.rates.at(epoch), job.rates.decay);
            let (weights, gradient) = (&mut self.weights, self.engine.sum());
            self.state.step(rate, decay, weights, gradient, &self.mask);
            self.steps += 1;
        }
        Ok(sum)
    }

    fn measure(&mut self, set: &Problem) -> Result<Measure> {
        let (rows, scale) = (0..set.data.rows, self.job.input_scale);
        let batch = Batch { set, rows, order: None, scale };
        let measure = self.engine.pass(&self.weights, &batch, Goal::Loss)?;
        if measure.loss.is_finite() { Ok(measure) } else { Err(diverged(measure.loss)) }
    }

    /// Keeps the `count` largest weights of the mask; of equal ones those of lower index.
    fn prune(&mut self, count: usize) -> Result<()> {
        let (mut index, mut value) = (vec![0; count], vec![0.0; count]);
        let mut top = Top::new(&mut index, &mut value);
        let survivors = || self.mask.iter().enumerate().filter(|&(_, &kept)| kept).map(|(j, _)| j);
        survivors().for_each(|j| top.push(j as u32, self.weights[j]));
        let found = top.finish().ok_or_else(|| diverged(f64::NAN))?;
        let mut mask = vec![false; self.mask.len()];
        index[..found].iter().for_each(|&j| mask[j as usize] = true);
        // Weights that are 0 do not enter the top, and some may be needed.
        let zeros: Vec<usize> = survivors().filter(|&j| !mask[j]).take(count - found).collect();
        zeros.into_iter().for_each(|j| mask[j] = true);
        self.mask = mask;
        let gone = self.weights.iter_mut().zip(&self.mask).filter(|(_, kept)| !**kept);
        gone.for_each(|(w, _)| *w = 0.0);
        Ok(())
    }

    /// Sets the weights of the mask back.
    fn rewind(&mut self) {
        for ((w, origin), kept) in self.weights.iter_mut().zip(&self.origin).zip(&self.mask) {
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

fn diverged(loss: f64) -> Error {
    Error::new("training diverged: the loss is no finite number any more")
        .expected("a finite loss")
        .got(loss)
        .help("lower --rate, or scale inputs and labels to about 1")
}

#[cfg(test)]
mod tests;
