//! What a run is at one of the points between its stages, and how it continues from there.

use super::solver::LAMBDA_START;
use super::{Info, Phase};
use crate::base::budget::Recovery;
use crate::base::error::{self, Result};
use crate::base::record::{Put, Record};
use crate::learn::checkpoint::{self as record, Form};
use crate::network::gates::Signs;
use crate::network::net::{Network, Shape};

/// The state of a run: enough to resume from, see [`crate::learn::start::Start::Checkpoint`].
///
/// Weights are those of the search: they may be more than s, block 0 may be a linear term, and they
/// are for labels scaled by a power of two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Checkpoint<'a> {
    /// All numbers.
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
    /// A run that starts from `net`, with a search on `rows` rows first
    /// ([`super::Params::search_rows`]).
    ///
    /// Its weights, at most [`crate::base::budget::Recovery::work`] of which the run leaves s, are
    /// those for labels times [`crate::base::math::unit_scale`] of all labels: for one output those
    /// of the neurons are scaled, else those to the outputs.
    #[must_use]
    pub fn starting(net: Network<'a>, rows: usize) -> Self {
        let none = Network::empty(net.shape());
        Self { state: State::starting(rows), net, best: none, result: none }
    }

    /// A run that only fits the weights of `net`, of at most s weights and m neurons,
    /// to all rows (*debiasing*): least squares on its support, at most
    /// [`super::Params::final_steps`] steps, as long as each wins a millionth. A weight that
    /// becomes zero is left out of the result. Weights are scaled as for [`Self::starting`].
    ///
    /// ```
    /// use core::ops::ControlFlow::Continue;
    /// use tamis::base::{budget::{Recovery, gated_words}, dims::Dims, math};
    /// use tamis::data::samples::{NormalRows, Samples};
    /// use tamis::{learn::{lm, start::Start}, operator::gated::Gated};
    /// use tamis::network::{gates::Signs, net::Network, weights::Weights};
    /// let mut x = NormalRows::new(1, 200, 5);
    /// let mut labels = [0.0; 200];
    /// for (k, y) in labels.iter_mut().enumerate() {
    ///     let mut row = [0.0; 5];
    ///     x.row(k, &mut row)?;
    ///     *y = (2.0 * row[0] - row[3]).max(0.0);
    /// }
    /// let mut rows = [0.0; gated_words(5, 1)];
    /// let mut sensing = Gated::new(x, 1, 1, &mut rows)?;
    /// const DIMS: Dims = Dims::new(200, 5, 1, 2);
    /// let mut memory = [0; Recovery::new(DIMS, 1, 205, false).words()];
    /// let value = [1.5, -0.5].map(|w| math::unit_scale(&labels) * w);
    /// let network = Network::signed(Weights::new(5, 1, &[0, 3], &value)?, Signs::Positive);
    /// let (goal, from) = (lm::Goal::one_output(DIMS), lm::Checkpoint::fitting(network));
    /// let params = lm::Params { final_steps: 20, ..lm::Params::DEFAULT };
    /// let (start, observe) = (Start::Checkpoint(&from), |_: &lm::Progress<'_>| Continue(()));
    /// let fitted = lm::run(&mut sensing, &labels, goal, start, &params, &mut memory, observe)?;
    /// let w = fitted.network.w();
    /// assert!(fitted.info.exact && w.index() == [0, 3] && (w.value()[0] - 2.0).abs() < 1e-5);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn fitting(net: Network<'a>) -> Self {
        Self {
            state: State { stage: Stage::Refit, ..State::starting(1) },
            result: net,
            ..Self::starting(net, 1)
        }
    }

    /// What the checkpoints of a search with this budget look like; `blocks` is the number of
    /// blocks of the operator, and `signs` are those of [`super::Params`].
    #[must_use]
    pub const fn form(budget: &Recovery, blocks: usize, signs: Signs) -> Form {
        let (work, dims) = (budget.work(), &budget.dims);
        let shape = match budget.outputs {
            0 => Shape::signed(dims.inputs, blocks, signs),
            outputs => Shape::weighted(dims.inputs, blocks, outputs),
        };
        let entries = [work, work, dims.nnz];
        Form { state: State::WORDS, shape, nets: 3, entries, vectors: 0, lengths: [0, 0] }
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
    /// Damping λ of the next step.
    pub(super) lambda: f32,
    /// Loss of the best network while searching, of the scaled labels.
    pub(super) best_loss: f32,
    /// The least loss of a network of at most s weights and m neurons.
    pub(super) result_loss: f32,
    /// The least loss that counted as progress of this search, and the restarts since.
    pub(super) mark: f32,
    pub(super) idle: u32,
    /// Loss on the validation rows of the best network on them, and the restarts since.
    pub(super) held: f32,
    pub(super) stale: u32,
    /// Whether the search ended for want of progress on them.
    pub(super) early: bool,
    /// Counters so far.
    pub(super) info: Info,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The start, or more rows.
    Descend,
    /// A pass of moves, or the way down to s weights where the fit is exact.
    Moves,
    /// A restart, or the end of the search.
    Perturb,
    /// Steps on all rows.
    AllRows,
    /// Outer steps on all rows, where no exact fit is in sight.
    Support,
    /// The plain method from the start, on all rows.
    Plain,
    /// Outer steps at s weights.
    Polish,
    /// Nothing.
    End,
    /// An outer step of a descent.
    Fall,
    /// Steps on all rows and no change of the support.
    Refit,
}

impl Stage {
    const ALL: [Self; 10] = [
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
    ];
}

impl State {
    /// Words of [`Self::to_words`].
    pub const WORDS: usize = 21;

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
            early: false,
            info: Info::default(),
        }
    }

    /// As words, to be stored.
    #[must_use]
    pub fn to_words(&self) -> [u32; Self::WORDS] {
        let Info { steps, trials, moves, flips, merges, folds, perturbations, rows_read, .. } =
            self.info;
        let [lambda, best, result, mark, held] =
            [self.lambda, self.best_loss, self.result_loss, self.mark, self.held].map(f32::to_bits);
        let Self { rows, perturbations: here, turn, idle, stale, .. } = *self;
        let (stage, early) = (self.stage as u32, u32::from(self.early));
        let (low, high) = (rows_read as u32, (rows_read >> 32) as u32);
        [
            stage,
            rows,
            here,
            turn,
            lambda,
            best,
            result,
            steps,
            trials,
            moves,
            flips,
            merges,
            folds,
            perturbations,
            low,
            high,
            mark,
            idle,
            held,
            stale,
            early,
        ]
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
    /// damping that is no number.
    pub fn from_words(words: &[u32; Self::WORDS]) -> Result<Self> {
        let mut words = words.iter().copied();
        let mut next = || words.next().unwrap_or(0);
        let stage = next() as usize;
        let (rows, perturbations, turn) = (next(), next(), next());
        let [lambda, best_loss, result_loss] = [next(), next(), next()].map(f32::from_bits);
        let info = Info {
            steps: next(),
            trials: next(),
            moves: next(),
            flips: next(),
            merges: next(),
            folds: next(),
            perturbations: next(),
            rows_read: u64::from(next()) | u64::from(next()) << 32,
            ..Info::default()
        };
        let (mark, idle, held, stale) =
            (f32::from_bits(next()), next(), f32::from_bits(next()), next());
        let early = next();
        error::range("stage of the checkpoint", stage, 0, Stage::ALL.len() - 1)?;
        error::range("end of the checkpoint", early as usize, 0, 1)?;
        error::finite("damping of the checkpoint", &[lambda])?;
        let (stage, early) = (Stage::ALL.get(stage).copied().unwrap_or(Stage::End), early == 1);
        Ok(Self {
            stage,
            rows,
            perturbations,
            turn,
            lambda,
            best_loss,
            result_loss,
            mark,
            idle,
            held,
            stale,
            early,
            info,
        })
    }
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
        }
    }
}
