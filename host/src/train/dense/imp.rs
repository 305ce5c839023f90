//! Iterative magnitude pruning (IMP): train the dense network, drop the smallest of its weights,
//! set the others back to where they started, train again, until so many are left.
//!
//! A *level* is one training; between two levels lies a round of pruning. The last level trains
//! exactly s weights, and what it gives is the result. Every weight of every layer competes by its
//! magnitude, on inputs in their scaled units.

use tamis::base::rng::{Permutation, stream};
use tamis::network::top::Top;

use super::folder::{LevelFolder, OpenFolder, Saved};
use super::optimiser::State;
use super::options::{ImpOptions, Level};
use super::pass::{Batch, Engine, Measure};
use crate::data::Problem;
use crate::operator::Stop;
use crate::{Error, Result};

/// Stream of the orders of the rows, one per epoch of each level.
const ORDER: u64 = stream::USER + (0xdf << 32);

/// Where a run stands after an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// The level, counted from 0, of `levels`.
    pub level: usize,
    /// Levels of the whole run.
    pub levels: usize,
    /// Weights that the level trains.
    pub nnz: usize,
    /// Epochs done of all levels.
    pub epoch: u64,
    /// Epochs of all levels.
    pub epochs: u64,
    /// Mean loss of the steps of the epoch, each before it was taken.
    pub loss: f64,
}

/// A finished run.
#[derive(Debug, Clone, PartialEq)]
pub struct Imp {
    /// Weights of all layers, for scaled inputs; 0 where they are pruned.
    pub weights: Vec<f32>,
    /// Which are left: exactly s.
    pub mask: Vec<bool>,
    /// The levels that were trained to their end.
    pub levels: Vec<Level>,
    /// Steps of the optimiser.
    pub steps: u64,
    /// Whether the run was ended early: then the weights are those of the last level that was
    /// trained to its end, or of the last step where there is none, and all but the s largest are
    /// dropped.
    pub stopped: bool,
}

/// Trains a dense network and prunes it to s weights.
///
/// `observe` is called after every epoch and ends the run by returning `false`; `stop` ends it
/// within a step, in the time of a tile of rows, and what that step did is dropped. With `folder`
/// every level is saved when it is done, and a run that was ended can be resumed from there, bit
/// for bit. Runs on the current rayon pool, whose size changes no bit.
///
/// # Errors
/// A setting out of bounds, rows or labels of other lengths, a run that diverges, a folder that
/// holds another run or cannot be written; or the run was ended before its first step
/// ([`Error::is_interrupted`]).
///
/// ```
/// use tamis::{base::dims::Dims, network::gates::Signs};
/// use tamis_host::data::{Problem, Task, planted};
/// use tamis_host::train::dense::{Head, ImpOptions, Rates, Shape, imp};
/// use tamis_host::operator::Stop;
///
/// let planted = planted::network(Dims::new(600, 8, 2, 4), Signs::Positive, 1)?;
/// let problem = &Problem { data: planted.data, labels: planted.labels, task: Task::Regression };
/// let shape = Shape::new(8, &[4], 1, Head::Weights)?;
/// let usual = ImpOptions::new(shape, Task::Regression, 10);
/// let options = ImpOptions { batch: 50, rates: Rates::constant(0.01), part: 0.2, ..usual };
/// let pruned = imp(problem, None, &options, None, &Stop::new(), |_| true)?;
/// assert_eq!(pruned.mask.iter().filter(|&&kept| kept).count(), 10);
/// assert_eq!(pruned.levels.last().map(|level| level.nnz), Some(10));
/// # Ok::<(), tamis_host::Error>(())
/// ```
pub fn imp(
    train: &Problem,
    test: Option<&Problem>,
    options: &ImpOptions,
    folder: Option<&LevelFolder>,
    stop: &Stop,
    mut observe: impl FnMut(&Progress) -> bool,
) -> Result<Imp> {
    options.check()?;
    options.check_set(train)?;
    test.map_or(Ok(()), |test| options.check_set(test))?;
    let open = folder.map(|folder| OpenFolder::open(folder, train, test, options)).transpose()?;
    let mut run = Run::new(train, test, options, stop);
    if let Some(saved) = open.as_ref().and_then(|(_, saved)| saved.as_ref()) {
        run.resume(saved);
    }
    run.run(open.as_ref().map(|(folder, _)| folder), &mut observe)
}

struct Run<'a> {
    train: &'a Problem,
    test: Option<&'a Problem>,
    options: &'a ImpOptions,
    counts: Vec<usize>,
    engine: Engine<f32>,
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
    fn new(
        train: &'a Problem,
        test: Option<&'a Problem>,
        options: &'a ImpOptions,
        stop: &'a Stop,
    ) -> Self {
        let weights = options.shape.initial(options.seed);
        let batch = options.rows(train.data.rows);
        Self {
            train,
            test,
            options,
            counts: options.counts(),
            engine: Engine::new(&options.shape, options.task, batch, stop),
            state: State::new(options.optimiser, weights.len()),
            origin: weights.clone(),
            trained: weights.clone(),
            mask: vec![true; weights.len()],
            weights,
            levels: Vec::new(),
            steps: 0,
        }
    }

    /// Goes to where the saved run stood after its last level.
    fn resume(&mut self, saved: &Saved) {
        self.weights.clone_from(&saved.weights);
        self.trained.clone_from(&saved.weights);
        self.origin.clone_from(&saved.origin);
        self.mask.clone_from(&saved.mask);
        self.levels.clone_from(&saved.levels);
        self.steps = saved.levels.last().map_or(0, |level| level.steps);
    }

    fn run(
        mut self,
        folder: Option<&OpenFolder>,
        observe: &mut dyn FnMut(&Progress) -> bool,
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
                    self.prune(self.options.nnz)?;
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
    fn level(&mut self, observe: &mut dyn FnMut(&Progress) -> bool) -> Result<()> {
        let (level, options) = (self.levels.len(), self.options);
        let first = if level == 0 { 0 } else { options.rewind };
        self.state.reset();
        for epoch in first..options.epochs {
            if level == 0 && epoch == options.rewind {
                self.origin.copy_from_slice(&self.weights);
            }
            let loss = self.epoch(level, epoch)?;
            if !observe(&self.progress(level, epoch, loss)) {
                return Err(Error::interrupted());
            }
        }
        let train = self.measure(self.train)?;
        let test = self.test.map(|test| self.measure(test)).transpose()?;
        self.trained.copy_from_slice(&self.weights);
        self.levels.push(Level { nnz: self.counts[level], steps: self.steps, train, test });
        Ok(())
    }

    /// One pass over all batches; the mean loss.
    fn epoch(&mut self, level: usize, epoch: u32) -> Result<f64> {
        let (options, n) = (self.options, self.train.data.rows);
        let size = options.rows(n);
        let number = level as u64 * u64::from(options.epochs) + u64::from(epoch);
        let order = (size < n).then(|| Permutation::new(options.seed, ORDER + number, n));
        let mut sum = 0.0;
        for start in (0..n).step_by(size) {
            let rows = start..(start + size).min(n);
            let share = rows.len() as f64 / n as f64;
            let batch = Batch { set: self.train, rows, order, scale: options.input_scale };
            let loss = self.engine.descend(&self.weights, &batch)?;
            if !loss.is_finite() {
                return Err(diverged(loss));
            }
            sum += loss * share;
            let (rate, decay) = (options.rates.at(epoch), options.rates.decay);
            let (weights, gradient) = (&mut self.weights, self.engine.gradient());
            self.state.step(rate, decay, weights, gradient, &self.mask);
            self.steps += 1;
        }
        Ok(sum)
    }

    fn measure(&mut self, set: &Problem) -> Result<Measure> {
        let batch =
            Batch { set, rows: 0..set.data.rows, order: None, scale: self.options.input_scale };
        let measure = self.engine.measure(&self.weights, &batch)?;
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

    fn progress(&self, level: usize, epoch: u32, loss: f64) -> Progress {
        let (levels, [all, rewind]) =
            (self.counts.len(), [self.options.epochs, self.options.rewind].map(u64::from));
        let before =
            |level: usize| if level == 0 { 0 } else { all + (level as u64 - 1) * (all - rewind) };
        let own = u64::from(epoch) + 1 - if level == 0 { 0 } else { rewind };
        Progress {
            level,
            levels,
            nnz: self.counts[level],
            epoch: before(level) + own,
            epochs: before(levels),
            loss,
        }
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
