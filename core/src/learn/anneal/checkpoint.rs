//! What a run is between two steps, how it resumes from there, and what is seen and left of it.

use crate::base::budget::Annealing;
use crate::base::error::{self, Result};
use crate::base::record::{Put, Record};
use crate::learn::checkpoint::{self as record, Form, Numbers};
use crate::network::net::{Network, Shape};

/// Where a run stands after a step: enough to resume from, see
/// [`crate::learn::start::Start::Checkpoint`].
///
/// It is a view of the run's own memory and takes none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Checkpoint<'a> {
    /// All numbers.
    pub state: State,
    /// The weights on the support: at most [`crate::base::budget::Annealing::start`] entries.
    pub net: Network<'a>,
    /// Adam's mean of the gradients, one number for each entry of the support, those of W before
    /// those of Wt.
    pub mean: &'a [f32],
    /// Adam's mean of their squares, in the same order.
    pub square: &'a [f32],
    /// The iterate of least validation loss so far, at most s entries; no weights where there is
    /// none.
    pub best: Network<'a>,
}

/// A score on some rows.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Held {
    /// Mean cross-entropy.
    pub loss: f32,
    /// Rows whose outputs say their label ([`crate::learn::loss::class`]).
    pub right: usize,
    /// Rows.
    pub rows: usize,
}

impl Held {
    /// Share of the rows that is right.
    #[must_use]
    pub fn accuracy(&self) -> f32 {
        self.right as f32 / self.rows.max(1) as f32
    }
}

/// What Adam's decays have come to after t steps.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub(super) struct Decayed {
    /// `BETA1^t`.
    pub(super) mean: f32,
    /// `BETA2^t`.
    pub(super) square: f32,
}

impl Decayed {
    /// Before the first step.
    pub(super) const START: Self = Self { mean: 1.0, square: 1.0 };
}

/// The numbers of a [`Checkpoint`]: counters, scores, and powers of Adam's decays.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct State {
    /// Steps done.
    pub(super) step: u32,
    /// Changes of the support.
    pub(super) updates: u32,
    pub(super) rows_read: u64,
    pub(super) decayed: Decayed,
    /// The best score on the validation rows.
    pub(super) best: Option<Held>,
    /// Evaluations since then.
    pub(super) waited: u32,
    /// The last score, and the step after which it was taken.
    pub(super) held: Option<Held>,
    pub(super) scored: u32,
    /// Whether the best score is one on the settled support.
    pub(super) settled: bool,
}

impl State {
    /// Words of [`Self::to_words`].
    pub const WORDS: usize = 15;

    /// Counts rows that were read.
    pub(super) fn read(&mut self, rows: usize) {
        self.rows_read = self.rows_read.saturating_add(rows as u64);
    }

    /// As words, to be stored.
    #[must_use]
    pub fn to_words(&self) -> [u32; Self::WORDS] {
        let score = |held: Option<Held>| {
            held.map_or([0; 3], |held| [held.loss.to_bits(), held.right as u32, held.rows as u32])
        };
        let ([best, right, rows], [held, held_right, held_rows]) =
            (score(self.best), score(self.held));
        [
            self.step,
            self.updates,
            self.rows_read as u32,
            (self.rows_read >> 32) as u32,
            self.decayed.mean.to_bits(),
            self.decayed.square.to_bits(),
            best,
            right,
            rows,
            self.waited,
            held,
            held_right,
            held_rows,
            self.scored,
            u32::from(self.settled),
        ]
    }

    /// Steps so far.
    #[must_use]
    pub const fn steps(&self) -> u32 {
        self.step
    }

    /// From words that [`Self::to_words`] gave.
    ///
    /// # Errors
    /// [`crate::Error::Range`] for a switch that is neither on nor off, or more rows right than
    /// there are, [`crate::Error::NotFinite`] for a number that is none.
    pub fn from_words(words: &[u32; Self::WORDS]) -> Result<Self> {
        let mut words = Numbers::new(words);
        let score = |words: &mut Numbers<'_>| {
            let (loss, right, rows) = (words.float(), words.int() as usize, words.int() as usize);
            error::finite("loss of the checkpoint", &[loss])?;
            error::range("rows of the checkpoint that are right", right, 0, rows)?;
            Ok((rows > 0).then_some(Held { loss, right, rows }))
        };
        let state = Self {
            step: words.int(),
            updates: words.int(),
            rows_read: u64::from(words.int()) | u64::from(words.int()) << 32,
            decayed: Decayed { mean: words.float(), square: words.float() },
            best: score(&mut words)?,
            waited: words.int(),
            held: score(&mut words)?,
            scored: words.int(),
            settled: words.switch("support of the checkpoint")?,
        };
        error::finite("decays of the checkpoint", &[state.decayed.mean, state.decayed.square])?;
        Ok(state)
    }
}

impl<'a> Checkpoint<'a> {
    /// What the checkpoints of a run with this budget look like.
    #[must_use]
    pub const fn form(budget: &Annealing) -> Form {
        let dims = &budget.dims;
        let best = if budget.validated { dims.nnz } else { 0 };
        let shape = Shape::weighted(dims.inputs, dims.hidden, budget.outputs);
        let (entries, lengths) =
            ([budget.start, best, 0], [budget.start, budget.start, 0, 0, 0, 0]);
        Form { state: State::WORDS, shape, nets: 2, entries, vectors: 2, lengths }
    }

    /// The checkpoint in `words`, those that [`Record::write`] of one gave; it borrows them.
    ///
    /// # Errors
    /// As [`Form::read`] and [`State::from_words`].
    pub fn read(form: &Form, words: &'a [u32]) -> Result<Self> {
        let parts = form.read(words)?;
        let state = State::from_words(&parts.state()?)?;
        let (mean, square) = (parts.vector(0), parts.vector(1));
        Ok(Self { state, net: parts.net(0)?, mean, square, best: parts.net(1)? })
    }
}

impl Record for Checkpoint<'_> {
    fn write<E>(&self, put: &mut impl FnMut(&[u32]) -> Put<E>) -> Put<E> {
        let (nets, vectors) = ([self.net, self.best], [self.mean, self.square]);
        record::write(&self.state.to_words(), &nets, &vectors, put)
    }
}

/// What an observer sees after each step.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// Steps done.
    pub step: u32,
    /// Steps of the whole run, at the most.
    pub steps: u32,
    /// Steps of an epoch.
    pub epoch_steps: u32,
    /// Mean cross-entropy on the batch before the last step; NaN in the first call of a run that
    /// resumes from a checkpoint.
    pub loss: f32,
    /// Learning rate of the last step.
    pub rate: f32,
    /// Entries of the support.
    pub nnz: usize,
    /// Neurons that have weights from the inputs.
    pub live: usize,
    /// Rows read so far: a product with a row, forward or back, is one. Steps, growth and
    /// evaluations count.
    pub rows_read: u64,
    /// Loss and accuracy at the last evaluation on the validation rows.
    pub validation: Option<Held>,
    /// Where the run stands.
    pub checkpoint: Checkpoint<'a>,
}

/// What a run did.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Info {
    /// Steps done.
    pub steps: u32,
    /// Epochs done, the last one perhaps in part.
    pub epochs: u32,
    /// The result on the training rows.
    pub training: Held,
    /// The result on the validation rows; none without such rows, and none where the run ended
    /// before there was a best iterate on them.
    pub validation: Option<Held>,
    /// Entries that the run started with.
    pub start: usize,
    /// Nonzeros of both sides. Weights that must be kept count where they are 0 too.
    pub nnz: usize,
    /// Neurons that have weights on both sides, and those that have only such as must be kept.
    pub live: usize,
    /// As [`Progress::rows_read`], with the scores of the result.
    pub rows_read: u64,
    /// Whether the observer or the operator ended the run.
    pub stopped: bool,
    /// Whether the run ended early for want of progress on the validation rows.
    pub early: bool,
}

/// A finished run.
pub type Trained<'a> = crate::learn::start::Trained<'a, Info>;
