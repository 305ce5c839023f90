//! Training runs: epochs, minibatches, and when the gates follow the weights.
//!
//! Phase 1 keeps random generators (a convex problem); from then on the gates are renewed from the current weights
//! (sequential convex programming, paper IHT, section 1.3 of the method). With a renewal at every step the current
//! weights *are* the generators, and two sparse vectors are all the state there is.
//!
//! After every step the observer is offered a [`Checkpoint`], a view of that state, the trial and the counts. [`resume`] and
//! [`resume_net`] go on from one, to the bits that the run would have given.

mod checkpoint;
mod net;
mod state;
mod trials;

pub use checkpoint::{Checkpoint, State};
pub use net::{Goal, NetSchedule, NetTrained, Rank, Standin, resume_net, run_net};
pub use trials::Trials;

use crate::budget::{self, Training};
use crate::dims::Dims;
use crate::error::{self, Error, Result};
use crate::gates::{Empty, Signs};
use crate::iht::{self, Params, Refine, Step};
use crate::rng::{batches, seed_of, stream};
use crate::sensing::{First, Sensing, Work};
use crate::weights::{Weights, check_kept};
use checkpoint::Phase;
use state::{Iterates, carve};

/// When the gates follow the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Refresh {
    /// After every r-th step, once phase 1 is over; 1 as published.
    Every(u32),
    /// Never: the convex problem with random gates to the end.
    Never,
}

/// How a run goes through the data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule<'k> {
    /// Passes over all batches.
    pub epochs: u32,
    /// Rows of a batch; 0 for all rows. Batches are runs of consecutive rows, so rows must come in random order
    /// (see [`crate::samples::Shuffled`]); their order is drawn anew each epoch.
    pub batch: usize,
    /// Rows whose residuals are held at a time; 0 for those of a batch. With fewer, the memory of a step does not grow with the
    /// batch, and every product with the residual computes it again: for a few nonzeros that is little beside the product.
    pub strip: usize,
    /// Epochs with random generators.
    pub convex_epochs: u32,
    /// Starts tried on a part of the rows before the run on all of them.
    pub trials: Trials,
    /// When the gates follow the weights.
    pub refresh: Refresh,
    /// Signs of the output weights.
    pub signs: Signs,
    /// Gates of neurons without weights.
    pub empty: Empty,
    /// Seed of generators and batch orders.
    pub seed: u64,
    /// What a step does, and which weights it must keep ([`Params::must_keep`]): they are on the support of every start and
    /// from the first step to the last.
    pub params: Params<'k>,
}

impl Schedule<'_> {
    /// The published setting for scalar outputs: 15 full-batch epochs. The published code keeps random generators for
    /// two steps.
    pub const PAPER: Self = Self {
        epochs: 15,
        batch: 0,
        strip: 0,
        convex_epochs: 2,
        trials: Trials::NONE,
        refresh: Refresh::Every(1),
        signs: Signs::Positive,
        empty: Empty::Freeze,
        seed: 0,
        params: Params::PAPER,
    };

    /// The memory that a run needs, given the panel and the operator's scratch.
    #[must_use]
    pub const fn budget(&self, dims: Dims, panel: usize, scratch: usize) -> Training {
        let batch = budget::batch(self.batch, dims.samples);
        let mut budget = Training::new(dims, batch, panel, scratch);
        budget.strip = budget::batch(self.strip, batch);
        budget.lagging_gates = matches!(self.refresh, Refresh::Every(r) if r > 1);
        budget.normalised_columns = matches!(self.params.step, Step::Theory { .. });
        budget
    }
}

/// What an observer sees after each step.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// Steps done.
    pub step: u32,
    /// Steps of the whole run, trials included, at the most.
    pub steps: u32,
    /// Which trial, from 1; 0 in the run on all rows.
    pub trial: u32,
    /// Mean squared error on the batch before the last step; no number (NaN) in the first call of a run that goes on from
    /// a checkpoint.
    pub loss: f32,
    /// Step size of the last step; 0 in that call.
    pub step_size: f32,
    /// Nonzeros after the last step, with those that must be kept, whatever their value.
    pub nnz: usize,
    /// Neurons that have weights.
    pub live: usize,
    /// Passes over all rows so far.
    pub passes: f32,
    /// Where the run stands; none once it is being ended.
    pub checkpoint: Option<Checkpoint<'a>>,
}

impl Progress<'_> {
    /// Before the first step.
    const NONE: Self = Self {
        step: 0,
        steps: 0,
        trial: 0,
        loss: f32::NAN,
        step_size: 0.0,
        nnz: 0,
        live: 0,
        passes: 0.0,
        checkpoint: None,
    };
}

/// What a run did.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Info {
    /// Steps done on all rows.
    pub steps: u32,
    /// Epochs done on all rows, the last one perhaps in part.
    pub epochs: u32,
    /// Mean squared error of the final weights over all rows, with the final gates.
    pub loss: f32,
    /// Nonzeros. Those that must be kept count, and are among the weights, where they are 0 too: they take as much memory.
    pub nnz: usize,
    /// Neurons that have weights.
    pub live: usize,
    /// Passes over all rows.
    pub passes: f32,
    /// Starts tried on a part of the rows; the best one, run again, counts once.
    pub trials: u32,
    /// Whether the observer or the operator ended the run.
    pub stopped: bool,
}

/// A finished run: the weights, borrowed from the memory it was given, and what was done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trained<'a> {
    /// The sparse weights, ready for [`crate::gates`] and for a model.
    pub weights: Weights<'a>,
    /// What was done.
    pub info: Info,
}

/// Trains a network of one hidden layer and one output from zero to at most `nnz` nonzero weights.
///
/// `memory` holds at least [`Schedule::budget`] words; `observe` is called after every step and ends the run by
/// returning `false`. An operator that fails with [`Error::Stopped`] ends it too, within the step, which then has not
/// been: the result is that of the last complete one. Ended during the trials, the result is the best start so far; if
/// that is not the last one, it is run again first. For this, and for the final loss, the operator must work on after it
/// has stopped once.
///
/// # Errors
/// [`Error::Range`] for sizes out of bounds and more than s weights that must be kept, [`Error::Unsorted`] where these do not
/// rise, [`Error::Length`] for labels that do not fit, [`Error::NotFinite`] for
/// labels that are no numbers, [`Error::Budget`] with the bytes needed and given, [`Error::Diverged`] with the step,
/// [`Error::Source`] if reading the data fails.
///
/// ```
/// use tamis::{budget, dims::Dims, gated::Gated, samples::NormalRows, sensing::Sensing, train::{self, Schedule}};
/// let x = NormalRows::new(1, 400, 8);
/// let mut row_memory = [0.0; budget::gated_words(8, 1)];
/// let mut sensing = Gated::new(x, 1, 1, &mut row_memory).unwrap();
/// // y = relu(2 x_3)
/// let mut y = [0.0; 400];
/// for (k, y) in y.iter_mut().enumerate() {
///     let mut row = [0.0; 8];
///     tamis::samples::Samples::row(&mut { x }, k, &mut row).unwrap();
///     *y = (2.0 * row[3]).max(0.0);
/// }
/// const SCHEDULE: Schedule = Schedule::PAPER;
/// let mut memory = [0; SCHEDULE.budget(Dims::new(400, 8, 1, 1), 1, 408).words()];
/// let trained = train::run(&mut sensing, &y, 1, &SCHEDULE, &mut memory, |_| true).unwrap();
/// assert_eq!(trained.weights.index(), [3]);
/// assert!((trained.weights.value()[0] - 2.0).abs() < 1e-5);
/// // The same with a weight from input 6, which says nothing, whatever its size.
/// let params = tamis::iht::Params { must_keep: &[6], ..SCHEDULE.params };
/// let keeping = Schedule { params, ..SCHEDULE };
/// let mut memory = [0; SCHEDULE.budget(Dims::new(400, 8, 1, 2), 1, 408).words()];
/// let trained = train::run(&mut sensing, &y, 2, &keeping, &mut memory, |_| true).unwrap();
/// assert_eq!(trained.weights.index(), [3, 6]);
/// ```
pub fn run<'a, S: Sensing>(
    sensing: &mut S,
    labels: &[f32],
    nnz: usize,
    schedule: &Schedule<'_>,
    memory: &'a mut [u32],
    observe: impl FnMut(&Progress<'_>) -> bool,
) -> Result<Trained<'a>, S::Source> {
    start(sensing, (labels, nnz), schedule, None, memory, observe)
}

/// Goes on from a checkpoint that a run with the same arguments has offered: the result and all counts are those that it
/// would have had, bit for bit, with an operator that has the same bits.
///
/// `observe` is first called with the step that the checkpoint is of, which it may end the run at, and then after every
/// further one. From [`Checkpoint::starting`] a run starts, which is no step.
///
/// # Errors
/// As [`run`]; [`Error::Range`], [`Error::Length`] or [`Error::NotFinite`] for a checkpoint that does not fit.
///
/// ```
/// use tamis::{budget, factored::Net, gated::Gated, samples::NormalRows, train::{self, Checkpoint, Schedule, State}};
/// use tamis::weights::Weights;
/// let mut row_memory = [0.0; budget::gated_words(8, 2)];
/// let mut sensing = Gated::new(NormalRows::new(1, 60, 8), 2, 1, &mut row_memory).unwrap();
/// let y: [f32; 60] = core::array::from_fn(|k| (k % 7) as f32);
/// let (mut memory, mut other) = ([0; 256], [0; 256]);
/// // A run whose state after step 4 is kept.
/// let (mut words, mut index, mut value, mut nnz) = ([0; State::WORDS], [0; 3], [0.0; 3], 0);
/// let whole = train::run(&mut sensing, &y, 3, &Schedule::PAPER, &mut memory, |progress| {
///     if let (4, Some(at)) = (progress.step, progress.checkpoint) {
///         (words, nnz) = (at.state.to_words(), at.net.nnz());
///         index[..nnz].copy_from_slice(at.net.w().index());
///         value[..nnz].copy_from_slice(at.net.w().value());
///     }
///     true
/// }).unwrap();
/// let from = Checkpoint {
///     state: State::from_words(&words).unwrap(),
///     net: Net::single(Weights::new(8, 2, &index[..nnz], &value[..nnz]).unwrap()),
///     held: Net::empty(8, 2, 0),
///     sketch: &[],
/// };
/// let rest = train::resume(&mut sensing, &y, 3, &Schedule::PAPER, &from, &mut other, |_| true).unwrap();
/// assert_eq!((rest.weights, rest.info), (whole.weights, whole.info));
/// ```
pub fn resume<'a, S: Sensing>(
    sensing: &mut S,
    labels: &[f32],
    nnz: usize,
    schedule: &Schedule<'_>,
    from: &Checkpoint<'_>,
    memory: &'a mut [u32],
    observe: impl FnMut(&Progress<'_>) -> bool,
) -> Result<Trained<'a>, S::Source> {
    start(sensing, (labels, nnz), schedule, Some(from), memory, observe)
}

/// From the first step, or from a checkpoint, to the result.
fn start<'a, S: Sensing>(
    sensing: &mut S,
    (labels, nnz): (&[f32], usize),
    schedule: &Schedule<'_>,
    from: Option<&Checkpoint<'_>>,
    memory: &'a mut [u32],
    mut observe: impl FnMut(&Progress<'_>) -> bool,
) -> Result<Trained<'a>, S::Source> {
    let dims = Dims::new(sensing.rows(), sensing.inputs(), sensing.blocks(), nnz);
    check(&dims, labels, schedule).map_err(Error::widen)?;
    let mut budget = schedule.budget(dims, sensing.panel(), 0);
    budget.scratch = sensing.scratch(budget.strip);
    let (mut state, mut work) = carve(&budget, schedule, memory).map_err(Error::widen)?;
    let mut run = Run::new(dims.samples, &mut observe);
    if let Some(from) = from {
        run.load(from, &mut state).map_err(Error::widen)?;
    }
    let start = run.trials(sensing, labels, &mut state, &mut work)?;
    run.epochs(sensing, labels, &start, &mut state, &mut work)?;
    let (loss, reads) = run.loss(sensing, labels, &start, &state, &mut work)?;
    let info = Info {
        steps: run.at.step - run.at.tried,
        epochs: run.at.epoch + u32::from(run.at.batch > 0),
        loss,
        nnz: state.len,
        live: state.live(),
        passes: run.at.passes + reads,
        trials: run.at.trials,
        stopped: run.stopped,
    };
    Ok(Trained { weights: state.into_weights(), info })
}

/// Counts and the observer of one call of [`run`].
struct Run<'o, F> {
    rows: usize,
    /// Where it stands.
    at: State,
    stopped: bool,
    /// Whether steps go on whatever the observer says: those of the best start after the run was ended.
    deaf: bool,
    /// Whether it goes on from a checkpoint and has not shown that yet.
    resumed: bool,
    observe: &'o mut F,
}

impl<'o, F: FnMut(&Progress<'_>) -> bool> Run<'o, F> {
    fn new(rows: usize, observe: &'o mut F) -> Self {
        Self { rows, at: State::START, stopped: false, deaf: false, resumed: false, observe }
    }

    /// Steps of the whole run at the most.
    fn steps(&self, schedule: &Schedule<'_>) -> u32 {
        schedule.trials.steps(schedule.epochs, (self.rows, schedule.batch))
    }

    /// Goes on from a checkpoint.
    fn load(&mut self, from: &Checkpoint<'_>, state: &mut Iterates<'_, '_>) -> Result<()> {
        let (schedule, at) = (&state.schedule, from.state);
        at.check(&schedule.trials, schedule.epochs, (self.rows, schedule.batch))?;
        let most = at.step as usize;
        error::range("trials of the checkpoint", at.trials as usize, 0, schedule.trials.count as usize)?;
        error::range("gates of the checkpoint", at.round.max(at.since_refresh) as usize, 0, most)?;
        state.load(from)?;
        (self.at, self.resumed) = (at, !at.is_first());
        Ok(())
    }

    /// Leaves the weights of the best start in `state`; the schedule that goes on from there.
    fn trials<'k, S: Sensing>(
        &mut self,
        sensing: &mut S,
        labels: &[f32],
        state: &mut Iterates<'_, 'k>,
        work: &mut Work<'_>,
    ) -> Result<Schedule<'k>, S::Source> {
        let schedule = state.schedule;
        let Trials { count, rows } = schedule.trials;
        let labels = labels.get(..rows.min(labels.len())).unwrap_or(labels);
        let exact = Trials::EXACT * crate::math::norm2(labels) / labels.len().max(1) as f32;
        let count = if count > 1 { count } else { 0 };
        while self.at.phase == Phase::Trials && self.at.trial < count {
            let loss = self.trial(sensing, labels, self.at.trial, state, work)?;
            self.at.trials = self.at.trials.saturating_add(1);
            if loss < self.at.best {
                (self.at.best, self.at.best_trial) = (loss, self.at.trial);
            }
            if self.stopped || loss <= exact || self.at.trial + 1 == count {
                break;
            }
            self.at.trial += 1;
        }
        if self.at.phase != Phase::All && self.at.trial != self.at.best_trial {
            self.at.phase = Phase::Again;
            let stopped = core::mem::take(&mut self.stopped);
            self.deaf = stopped;
            self.trial(sensing, labels, self.at.best_trial, state, work)?;
            self.deaf = false;
            self.stopped |= stopped;
        }
        if self.at.phase != Phase::All {
            // What a trial found is a network already; without one the run starts with random generators.
            (self.at.phase, self.at.tried, self.at.warm) = (Phase::All, self.at.step, state.is_live());
            if !self.at.warm {
                state.clear();
            }
        }
        let chosen = Schedule { seed: seed_of(schedule.seed, stream::TRIAL, self.at.best_trial), ..schedule };
        let convex_epochs = if self.at.warm { 0 } else { schedule.convex_epochs };
        Ok(Schedule { convex_epochs, ..chosen })
    }

    /// One start on the rows of `labels`; infinity where it diverges.
    fn trial<S: Sensing>(
        &mut self,
        sensing: &mut S,
        labels: &[f32],
        trial: u32,
        state: &mut Iterates<'_, '_>,
        work: &mut Work<'_>,
    ) -> Result<f32, S::Source> {
        let part = &mut First::new(sensing, labels.len())?;
        let schedule =
            Schedule { seed: seed_of(state.schedule.seed, stream::TRIAL, trial), ..state.schedule };
        if !self.resumed {
            state.clear();
        }
        let done = self
            .epochs(part, labels, &schedule, state, work)
            .and_then(|()| self.loss(part, labels, &schedule, state, work));
        (self.at.epoch, self.at.batch) = (0, 0);
        match done {
            Ok((loss, reads)) => {
                self.at.passes += reads * labels.len() as f32 / self.rows as f32;
                Ok(loss)
            }
            Err(Error::Diverged { .. }) => {
                state.clear();
                Ok(f32::INFINITY)
            }
            Err(error) => Err(error),
        }
    }

    /// The epochs of a schedule on the rows of `labels`, from where the run and the weights in `state` stand.
    fn epochs<S: Sensing>(
        &mut self,
        sensing: &mut S,
        labels: &[f32],
        schedule: &Schedule<'_>,
        state: &mut Iterates<'_, '_>,
        work: &mut Work<'_>,
    ) -> Result<(), S::Source> {
        let batch = budget::batch(schedule.batch, labels.len());
        if core::mem::take(&mut self.resumed) {
            self.stopped |= !self.tell(state, f32::NAN, 0.0);
        }
        for epoch in self.at.epoch..schedule.epochs {
            if self.stopped {
                break;
            }
            let order = batches(schedule.seed, epoch, labels.len(), batch);
            for rows in order.skip(self.at.batch as usize) {
                let batch = labels.get(rows.clone()).unwrap_or(&[]);
                sensing.select(rows.clone())?;
                let convex = epoch < schedule.convex_epochs;
                let done = match state.step(sensing, (batch, rows), schedule, convex, work) {
                    Err(Error::Stopped) => {
                        self.stopped = true;
                        return Ok(());
                    }
                    done => done.map_err(|e| self.place(e))?,
                };
                if !self.report(state, &done, batch.len()) {
                    self.stopped = true;
                    return Ok(());
                }
            }
            (self.at.epoch, self.at.batch) = (epoch + 1, 0);
        }
        Ok(())
    }

    /// [`Iterates::loss`], which a run that ends needs all the same.
    fn loss<S: Sensing>(
        &mut self,
        sensing: &mut S,
        labels: &[f32],
        schedule: &Schedule<'_>,
        state: &Iterates<'_, '_>,
        work: &mut Work<'_>,
    ) -> Result<(f32, f32), S::Source> {
        let loss = |_: &mut Self| state.loss(sensing, labels, schedule, work);
        error::insist(self, |run| run.stopped = true, loss)
    }

    /// Counts a step and shows it to the observer.
    fn report(&mut self, state: &Iterates<'_, '_>, done: &iht::Info, rows: usize) -> bool {
        self.at.step = self.at.step.saturating_add(1);
        self.at.batch += 1;
        self.at.passes += done.reads as f32 * rows as f32 / self.rows as f32;
        self.tell(state, done.loss / rows.max(1) as f32, done.step_size)
    }

    /// Shows the observer where the run stands. Not inlined, so that what it shows is on the stack for that time only.
    #[inline(never)]
    fn tell(&mut self, state: &Iterates<'_, '_>, loss: f32, step_size: f32) -> bool {
        let progress = Progress {
            step: self.at.step,
            steps: self.steps(&state.schedule),
            trial: self.at.started(),
            loss,
            step_size,
            nnz: state.len,
            live: state.live(),
            passes: self.at.passes,
            checkpoint: (!self.stopped && !self.deaf).then(|| state.checkpoint(self.at)),
        };
        (self.observe)(&progress) || self.deaf
    }

    /// Says at which step a divergence happened.
    fn place<E>(&self, error: Error<E>) -> Error<E> {
        match error {
            Error::Diverged { .. } => Error::Diverged { step: self.at.step as usize },
            other => other,
        }
    }
}

fn check(dims: &Dims, labels: &[f32], schedule: &Schedule<'_>) -> Result<()> {
    dims.check()?;
    check_kept(dims, schedule.params.must_keep, dims.nnz)?;
    error::length("labels", labels.len(), dims.samples)?;
    error::finite("labels", labels)?;
    schedule.trials.check()?;
    if schedule.empty == Empty::Freeze && matches!(schedule.refresh, Refresh::Every(_)) {
        // From no weights every gate would be closed, and stay so.
        error::range("epochs with random gates", schedule.convex_epochs as usize, 1, u32::MAX as usize)?;
    }
    error::range("epochs", schedule.epochs as usize, 1, u32::MAX as usize)?;
    if let Refresh::Every(every) = schedule.refresh {
        error::range("steps between refreshes", every as usize, 1, u32::MAX as usize)?;
    }
    let sizes = match schedule.params.step {
        Step::Fixed(eta) => [eta, 1.0],
        Step::Theory { beta } => [beta, 1.0],
        Step::Normalised => [1.0, 1.0],
    };
    let [size, tolerance] = match schedule.params.refine {
        Refine::ConjugateGradient { tolerance, .. } => [sizes[0], tolerance],
        _ => sizes,
    };
    error::finite("step size and tolerance", &[size, tolerance])?;
    if size > 0.0 { Ok(()) } else { Err(Error::Range { what: "step size", min: 1, max: usize::MAX, got: 0 }) }
}
