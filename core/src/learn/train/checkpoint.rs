//! What a run is between two steps, how it resumes from there, and what is seen and left of it.

use super::schedule::Trials;
use crate::base::budget::{self, Training};
use crate::base::dims::Dims;
use crate::base::error::{self, Result};
use crate::base::record::{Put, Record};
use crate::learn::checkpoint::{self as record, Form, Numbers};
use crate::network::gates::Signs;
use crate::network::net::{Network, Shape};

/// Where a run stands after a step: enough to resume from, see
/// [`crate::learn::start::Start::Checkpoint`].
///
/// It is a view of the run's own memory and takes none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Checkpoint<'a> {
    /// All numbers.
    pub state: State,
    /// The current weights, at most s.
    pub net: Network<'a>,
    /// The other weights that the run holds, at most s: for one output the generators of the gates
    /// where these lag behind the weights, for several outputs these or the best iterate of a safe
    /// run; none otherwise.
    pub held: Network<'a>,
    /// The counters of the count sketch that ranks the weights; none where none does.
    pub sketch: &'a [f32],
}

/// Shape of the networks of a run with this budget; the signs are those of one output.
pub(super) const fn shape(budget: &Training, signs: Signs) -> Shape {
    let Dims { inputs, hidden, .. } = budget.dims;
    match budget.outputs {
        0 => Shape::signed(inputs, hidden, signs),
        outputs => Shape::weighted(inputs, hidden, outputs),
    }
}

/// The numbers of a [`Checkpoint`]: which start and epoch, step sizes, losses, counters.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct State {
    pub(super) phase: Phase,
    /// The start that is tried.
    pub(super) trial: u32,
    /// The best start so far.
    pub(super) best_trial: u32,
    /// Its loss; for several outputs the least loss after an epoch of a safe run. Infinite where
    /// there is none.
    pub(super) best: f32,
    /// Epoch of the phase, and steps done in it.
    pub(super) epoch: u32,
    pub(super) batch: u32,
    /// Steps done, and those of them that were done in trials.
    pub(super) step: u32,
    pub(super) tried: u32,
    /// Starts that were tried to their end.
    pub(super) trials: u32,
    pub(super) passes: f32,
    /// What tells gates apart.
    pub(super) round: u32,
    /// Steps since the gates were renewed.
    pub(super) since_refresh: u32,
    /// Whether the run on all rows began from the weights of a trial, and has no epochs with random
    /// gates.
    pub(super) warm: bool,
    /// Several outputs: length of a step, mean loss without weights, epochs that were undone.
    pub(super) step_size: f32,
    pub(super) zero: f32,
    pub(super) undone: u32,
}

/// What a run is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub(super) enum Phase {
    /// Trying starts on some of the rows.
    #[default]
    Trials,
    /// Running the best start again.
    Again,
    /// On all rows.
    All,
}

impl<'a> Checkpoint<'a> {
    /// Where a run stands that starts from these weights, at most s, before its first step: what
    /// [`crate::learn::start::Start::Network`] is, to be stored. Without trials and without epochs
    /// with random gates.
    #[must_use]
    pub fn starting(net: Network<'a>) -> Self {
        Self { state: State::warm(), net, held: Network::empty(net.shape()), sketch: &[] }
    }

    /// What the checkpoints of a run with this budget look like; the signs are those of one output.
    ///
    /// ```
    /// use tamis::{base::dims::Dims, learn::train::{Checkpoint, Schedule}, network::gates::Signs};
    /// // 100 weights in 8 bytes each, and 21 words.
    /// let budget = Schedule::PAPER.budget(Dims::new(500, 64, 8, 100), 1, 0);
    /// let form = Checkpoint::form(&budget, Signs::Positive);
    /// assert_eq!(4 * form.most_words(), 8 * 100 + 4 * (16 + 2 * 2 + 1));
    /// ```
    #[must_use]
    pub const fn form(budget: &Training, signs: Signs) -> Form {
        let nnz = budget.dims.nnz;
        let third = if budget.third_network { nnz } else { 0 };
        let (entries, lengths) = ([nnz, third, 0], [budget.sketch, 0, 0, 0, 0, 0]);
        let shape = shape(budget, signs);
        Form { state: State::WORDS, shape, nets: 2, entries, vectors: 1, lengths }
    }

    /// The checkpoint in `words`, those that [`Record::write`] of one gave; it borrows them.
    ///
    /// # Errors
    /// As [`Form::read`] and [`State::from_words`].
    pub fn read(form: &Form, words: &'a [u32]) -> Result<Self> {
        let parts = form.read(words)?;
        let state = State::from_words(&parts.state()?)?;
        Ok(Self { state, net: parts.net(0)?, held: parts.net(1)?, sketch: parts.vector(0) })
    }
}

impl Record for Checkpoint<'_> {
    fn write<E>(&self, put: &mut impl FnMut(&[u32]) -> Put<E>) -> Put<E> {
        record::write(&self.state.to_words(), &[self.net, self.held], &[self.sketch], put)
    }
}

impl State {
    /// Words of [`Self::to_words`].
    pub const WORDS: usize = 16;

    /// Before the first step.
    pub(super) fn start() -> Self {
        Self { best: f32::INFINITY, zero: f32::INFINITY, ..Self::default() }
    }

    /// Before the first step of a run that starts from weights.
    pub(super) fn warm() -> Self {
        Self { phase: Phase::All, warm: true, ..Self::start() }
    }

    /// Whether gates are random for so many epochs and a step, and still are.
    pub(super) const fn is_convex(&self, epochs: u32) -> bool {
        let is_next = self.epoch == epochs && self.batch == 0;
        !self.warm && epochs > 0 && (self.epoch < epochs || is_next)
    }

    /// As words, to be stored.
    #[must_use]
    pub const fn to_words(&self) -> [u32; Self::WORDS] {
        [
            self.phase as u32,
            self.trial,
            self.best_trial,
            self.best.to_bits(),
            self.epoch,
            self.batch,
            self.step,
            self.tried,
            self.trials,
            self.passes.to_bits(),
            self.round,
            self.since_refresh,
            self.warm as u32,
            self.step_size.to_bits(),
            self.zero.to_bits(),
            self.undone,
        ]
    }

    /// Steps so far, those of trials included.
    #[must_use]
    pub const fn steps(&self) -> u32 {
        self.step
    }

    /// From words that [`Self::to_words`] gave.
    ///
    /// # Errors
    /// [`crate::Error::Range`] for a phase that there is not, a switch that is neither on nor off
    /// or more steps in trials than in all, [`crate::Error::NotFinite`] for a loss that is NaN, or
    /// passes or a step size that are no numbers.
    pub fn from_words(words: &[u32; Self::WORDS]) -> Result<Self> {
        let mut words = Numbers::new(words);
        let phase = words.int();
        error::range("phase of the checkpoint", phase as usize, 0, 2)?;
        let state = Self {
            phase: match phase {
                0 => Phase::Trials,
                1 => Phase::Again,
                _ => Phase::All,
            },
            trial: words.int(),
            best_trial: words.int(),
            best: words.float(),
            epoch: words.int(),
            batch: words.int(),
            step: words.int(),
            tried: words.int(),
            trials: words.int(),
            passes: words.float(),
            round: words.int(),
            since_refresh: words.int(),
            warm: words.switch("start of the checkpoint")?,
            step_size: words.float(),
            zero: words.float(),
            undone: words.int(),
        };
        let Self { tried, step, passes, step_size, best, zero, .. } = state;
        error::range("steps of the checkpoint in trials", tried as usize, 0, step as usize)?;
        error::finite("passes and step size of the checkpoint", &[passes, step_size])?;
        let losses = [best, zero].map(|loss| if loss == f32::INFINITY { 0.0 } else { loss });
        error::finite("losses of the checkpoint", &losses)?;
        Ok(state)
    }

    /// Which start this is, from 1; 0 on all rows.
    pub(super) const fn started(&self) -> u32 {
        match self.phase {
            Phase::Trials => self.trial.saturating_add(1),
            Phase::Again => self.best_trial.saturating_add(1),
            Phase::All => 0,
        }
    }

    /// Checks that a run with these trials, in epochs of so many rows, `batch` at a time, may stand
    /// here.
    pub(super) fn check(
        &self,
        trials: &Trials,
        epochs: u32,
        rows: usize,
        batch: usize,
    ) -> Result<()> {
        let of_phase = match self.phase {
            Phase::All => rows,
            Phase::Trials | Phase::Again => {
                let count = trials.count as usize;
                error::range("trials of the schedule", count, 2, u32::MAX as usize)?;
                error::range("trial of the checkpoint", self.trial as usize, 0, count - 1)?;
                error::range(
                    "best trial of the checkpoint",
                    self.best_trial as usize,
                    0,
                    count - 1,
                )?;
                trials.rows.min(rows)
            }
        };
        let batches = of_phase.div_ceil(budget::batch(batch, of_phase));
        let (least, most) = (usize::from(!self.is_first()), trials.steps(epochs, rows, batch));
        error::range("trials of the checkpoint", self.trials as usize, 0, trials.count as usize)?;
        error::range("steps of the checkpoint", self.step as usize, least, most as usize)?;
        error::range(
            "epoch of the checkpoint",
            self.epoch as usize,
            0,
            epochs.saturating_sub(1) as usize,
        )?;
        error::range("batch of the checkpoint", self.batch as usize, 0, batches)
    }

    /// Whether a run stands here that starts from weights and has done nothing yet.
    pub(super) fn is_first(&self) -> bool {
        *self == Self::warm()
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
    /// Loss on the batch before the last step, see [`Info::loss`]; NaN in the first call of a run
    /// that resumes from a checkpoint.
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

/// What a run did.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Info {
    /// Steps done on all rows.
    pub steps: u32,
    /// Epochs done on all rows, the last one perhaps in part.
    pub epochs: u32,
    /// Loss of the result over all rows: mean squared error over rows and outputs, or mean
    /// cross-entropy over rows.
    pub loss: f32,
    /// Nonzeros. Those that must be kept count, and are among the weights, where they are 0 too:
    /// they take as much memory.
    pub nnz: usize,
    /// Neurons that have weights.
    pub live: usize,
    /// Passes over all rows.
    pub passes: f32,
    /// Starts tried on the first rows; the best one, run again, counts once.
    pub trials: u32,
    /// Epochs of a safe run that diverged and were undone.
    pub undone: u32,
    /// Whether the observer or the operator ended the run.
    pub stopped: bool,
}

/// A finished run.
pub type Trained<'a> = crate::learn::start::Trained<'a, Info>;
