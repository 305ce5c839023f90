//! What a run is at one of the points between its stages, and how it continues from there.

use super::solver::LAMBDA_START;
use crate::base::budget::Recovery;
use crate::base::error::{self, Result};
use crate::base::record::{Put, Record};
use crate::learn::checkpoint::{self as record, Form};
use crate::network::gates::Signs;
use crate::network::net::{Network, Shape};

/// The state of a run: enough to resume from, see [`crate::learn::start::Start::Checkpoint`].
/// Weights may be more than s, block 0 may be a linear term, and labels are scaled by a power of 2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Checkpoint<'a> {
    /// All counts and settings.
    pub state: State,
    /// The current network: at most [`crate::base::budget::Recovery::work`] weights.
    pub net: Network<'a>,
    /// The best network while searching: at most as many.
    pub best: Network<'a>,
    /// The best network of at most s weights and m neurons so far, on the validation rows where
    /// there are such.
    pub result: Network<'a>,
}

impl<'a> Checkpoint<'a> {
    /// A run that starts from `net`, of at most [`crate::base::budget::Recovery::work`] weights,
    /// with a search on `rows` rows first ([`super::Params::search_rows`]). Its weights are those
    /// for labels times [`crate::base::math::unit_scale`] of all labels: for one output those of
    /// the neurons are scaled, else those to the outputs.
    #[must_use]
    pub fn starting(net: Network<'a>, rows: usize) -> Self {
        let none = Network::empty(net.shape());
        Self { state: State::starting(rows), net, best: none, result: none }
    }

    /// A run that only fits the weights of `net`, of at most s weights and m neurons, to all rows
    /// (*debiasing*): at most [`super::Params::final_steps`] steps, as long as each wins a
    /// millionth. Weights are scaled as for [`Self::starting`]; those that become 0 go.
    #[must_use]
    pub fn fitting(net: Network<'a>) -> Self {
        Self {
            state: State { stage: Stage::Refit, ..State::starting(1) },
            result: net,
            ..Self::starting(net, 1)
        }
    }

    /// What the checkpoints of a search look like, for the number of blocks of the operator and the
    /// signs of [`super::Params`].
    #[must_use]
    pub const fn form(budget: &Recovery, blocks: usize, signs: Signs) -> Form {
        let (work, dims) = (budget.work(), &budget.dims);
        let shape = match budget.outputs {
            0 => Shape::signed(dims.inputs, blocks, signs),
            outputs => Shape::weighted(dims.inputs, blocks, outputs),
        };
        let entries = [work, work, dims.nnz];
        Form { state: State::WORDS, shape, nets: 3, entries, vectors: 0, lengths: [0; 6] }
    }

    /// The checkpoint in `words`, those that [`Record::write`] of one gave; it borrows them.
    ///
    /// # Errors
    /// As [`Form::read`] and [`State::from_words`].
    pub fn read(form: &Form, words: &'a [u32]) -> Result<Self> {
        let parts = form.read(words)?;
        let state = State::from_words(&parts.state()?)?;
        Ok(Self { state, net: parts.net(0)?, best: parts.net(1)?, result: parts.net(2)? })
    }
}

impl Record for Checkpoint<'_> {
    fn write<E>(&self, put: &mut impl FnMut(&[u32]) -> Put<E>) -> Put<E> {
        record::write(&self.state.to_words(), &[self.net, self.best, self.result], &[], put)
    }
}

/// The numbers of a [`Checkpoint`]: stage, rows, damping, counters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct State {
    pub(super) stage: Stage,
    /// Rows that are fitted now.
    pub(super) rows: u32,
    /// Restarts of this search.
    pub(super) perturbations: u32,
    /// Passes of moves.
    pub(super) turn: u32,
    pub(super) lambda: f32,
    /// Loss of the best network while searching, of the scaled labels.
    pub(super) best_loss: f32,
    /// The least loss of a network of at most s weights and m neurons.
    pub(super) result_loss: f32,
    /// The least loss that counted as progress, and the restarts since.
    pub(super) mark: f32,
    pub(super) idle: u32,
    /// Loss on the validation rows of the best network on them, and the restarts since.
    pub(super) held: f32,
    pub(super) stale: u32,
    /// The least loss of an exact fit from which the way down to s weights was tried before it was found.
    pub(super) finished: f32,
    /// Whether early stopping ended the search.
    pub(super) early: bool,
    pub(super) info: Info,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The start, or more rows.
    Descend,
    /// A pass of moves, or the way down to s weights of an exact fit.
    Moves,
    /// A restart, or the end of the search.
    Perturb,
    AllRows,
    /// Outer steps on all rows, where no exact fit is in sight.
    Support,
    /// Plain hard thresholding from the start, on all rows.
    Plain,
    Polish,
    End,
    Fall,
    /// Steps on all rows and no change of the support.
    Refit,
    /// [`super::Params::first`] steps of Adam from nothing.
    First,
    /// One weight for another, where weights are few.
    Exchange,
    /// After exchanges on some of the rows.
    Exchanged,
}

impl Stage {
    /// Whether it searches, on some of the rows, rather than to fit all of them.
    pub(super) const fn searches(self) -> bool {
        matches!(self, Self::First | Self::Descend | Self::Fall | Self::Moves | Self::Perturb)
    }

    const ALL: [Self; 13] = [
        Self::Descend,
        Self::Moves,
        Self::Perturb,
        Self::AllRows,
        Self::Support,
        Self::Plain,
        Self::Polish,
        Self::End,
        Self::Fall,
        Self::Refit,
        Self::First,
        Self::Exchange,
        Self::Exchanged,
    ];
}

impl State {
    /// Words of [`Self::to_words`].
    pub const WORDS: usize = 22;

    /// Before anything was done, with a search on so many rows to come.
    pub(super) fn starting(rows: usize) -> Self {
        let loss = f32::INFINITY;
        Self {
            stage: Stage::Descend,
            rows: if rows < u32::MAX as usize { rows as u32 } else { u32::MAX },
            perturbations: 0,
            turn: 0,
            lambda: LAMBDA_START,
            best_loss: loss,
            result_loss: loss,
            mark: loss,
            idle: 0,
            held: loss,
            stale: 0,
            finished: loss,
            early: false,
            info: Info::default(),
        }
    }

    /// Every number that is a word of its own, with the place of that word. The others are the
    /// stage (0), two halves of the rows read (14, 15), and whether it ended early (21).
    fn numbers(&mut self) -> [(usize, &mut u32); 18] {
        let Info { steps, trials, moves, flips, merges, folds, perturbations, .. } = &mut self.info;
        let float = bytemuck::cast_mut::<f32, u32>;
        [
            (1, &mut self.rows),
            (2, &mut self.perturbations),
            (3, &mut self.turn),
            (4, float(&mut self.lambda)),
            (5, float(&mut self.best_loss)),
            (6, float(&mut self.result_loss)),
            (7, steps),
            (8, trials),
            (9, moves),
            (10, flips),
            (11, merges),
            (12, folds),
            (13, perturbations),
            (16, float(&mut self.mark)),
            (17, &mut self.idle),
            (18, float(&mut self.held)),
            (19, &mut self.stale),
            (20, float(&mut self.finished)),
        ]
    }

    /// As words, to be stored.
    #[must_use]
    pub fn to_words(&self) -> [u32; Self::WORDS] {
        let (mut words, mut state, read) = ([0; Self::WORDS], *self, self.info.rows_read);
        for (at, number) in state.numbers() {
            if let Some(word) = words.get_mut(at) {
                *word = *number;
            }
        }
        (words[0], words[21]) = (self.stage as u32, u32::from(self.early));
        (words[14], words[15]) = (read as u32, (read >> 32) as u32);
        words
    }

    /// What an outer step of a descent is for.
    pub(super) const fn falling(&self) -> Phase {
        if self.perturbations == 0 { Phase::Descend } else { Phase::Perturb }
    }

    /// Outer steps so far.
    #[must_use]
    pub const fn steps(&self) -> u32 {
        self.info.steps
    }

    /// From words that [`Self::to_words`] gave.
    ///
    /// # Errors
    /// [`crate::Error::Range`] for a stage that there is not, [`crate::Error::NotFinite`] for a
    /// damping or a loss that is no number.
    pub fn from_words(words: &[u32; Self::WORDS]) -> Result<Self> {
        let (mut state, [stage, .., early]) = (Self::starting(0), *words);
        for (at, number) in state.numbers() {
            *number = words.get(at).copied().unwrap_or_default();
        }
        state.info.rows_read = u64::from(words[14]) | u64::from(words[15]) << 32;
        error::range("stage of the checkpoint", stage as usize, 0, Stage::ALL.len() - 1)?;
        error::range("end of the checkpoint", early as usize, 0, 1)?;
        error::finite("damping of the checkpoint", &[state.lambda])?;
        let State { best_loss, result_loss, mark, held, finished, .. } = state;
        // Infinite before there is one.
        let losses = [best_loss, result_loss, mark, held, finished];
        let losses = losses.map(|loss| if loss == f32::INFINITY { 0.0 } else { loss });
        error::finite("losses of the checkpoint", &losses)?;
        state.stage = Stage::ALL.get(stage as usize).copied().unwrap_or(Stage::End);
        state.early = early == 1;
        Ok(state)
    }
}

/// What a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Phase {
    /// Outer steps from the start.
    Descend,
    /// A move is tried.
    Trial,
    /// A move was taken.
    Move,
    /// Outer steps after a restart.
    Perturb,
    /// Down to s weights.
    Finish,
    /// Steps on all rows.
    AllRows,
    /// Outer steps at s weights on all rows.
    Polish,
}

/// What a run did.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Info {
    /// Mean squared error of the result on all training rows, in squares of the labels' unit.
    pub loss: f32,
    /// The same as a fraction of the mean square of the labels: in range for labels of any size.
    pub relative: f32,
    /// Whether the result fits all training rows exactly, see [`super::Params::exact`], with
    /// weights that are all normal floats.
    pub exact: bool,
    /// The same as `loss` on the validation rows, where there are such.
    pub held: Option<f32>,
    /// Whether early stopping ended a search, see [`super::Params::validation_patience`].
    pub early: bool,
    /// Outer steps.
    pub steps: u32,
    /// Moves tried.
    pub trials: u32,
    /// Moves taken.
    pub moves: u32,
    /// Neurons flipped.
    pub flips: u32,
    /// Neurons merged into others.
    pub merges: u32,
    /// Times that the linear term was folded.
    pub folds: u32,
    /// Restarts.
    pub perturbations: u32,
    /// Rows that all operations go through together; a product counts where an operator has
    /// prepared for it and reads nothing, too.
    pub rows_read: u64,
    /// Whether the observer ended the run.
    pub stopped: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_give_the_state_back() {
        for stage in Stage::ALL {
            let info = Info {
                steps: 8,
                trials: 9,
                moves: 10,
                flips: 11,
                merges: 12,
                folds: 13,
                perturbations: 14,
                rows_read: 0x1234_5678_9abc_def0,
                ..Info::default()
            };
            let state = State {
                stage,
                rows: 1,
                perturbations: 2,
                turn: 3,
                lambda: 0.5,
                best_loss: 0.25,
                result_loss: f32::INFINITY,
                mark: 0.125,
                idle: 4,
                held: 0.75,
                stale: 5,
                finished: 0.375,
                early: true,
                info,
            };
            let words = state.to_words();
            assert_eq!(State::from_words(&words).unwrap(), state);
            // Every word counts.
            for at in 0..State::WORDS {
                let mut other = words;
                other[at] ^= 1;
                assert!(State::from_words(&other) != Ok(state), "{at}");
            }
            for at in [4, 5, 6, 16, 18, 20] {
                let mut other = words;
                other[at] = f32::NAN.to_bits();
                assert!(State::from_words(&other).is_err(), "{at}");
            }
        }
    }
}
