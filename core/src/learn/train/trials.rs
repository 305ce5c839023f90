//! Random starts on the first rows, of which the best one goes on.

use super::checkpoint::{Phase, State};
use crate::base::budget;
use crate::base::error::{self, Result};

/// Starts from several random generators, of which the best goes on.
///
/// Hard thresholding ends where its random start leads it, and where that is differs from one to
/// the next. A start is the whole schedule on the first `rows` rows; the run on all rows goes on
/// from the best one's weights. The best is computed again rather than stored, so trials need no
/// memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Trials {
    /// Starts; 1 for none but the run itself.
    pub count: u32,
    /// Rows of a trial, the first of the data, which must come in random order.
    pub rows: usize,
}

impl Trials {
    /// No trials: the published method to the letter.
    pub const NONE: Self = Self { count: 1, rows: 0 };
    /// 32 starts on 2000 rows: about the work of the run itself on the 50 000 rows of the paper's
    /// problems.
    pub const DEFAULT: Self = Self { count: 32, rows: 2000 };
    /// A trial ends the search where its mean squared error is below this part of the labels' mean
    /// square.
    pub(super) const EXACT: f32 = 1e-11;
}

impl Trials {
    /// Steps of a run at the most, trials included, in epochs of so many rows, `batch` at a time.
    pub(super) fn steps(self, epochs: u32, rows: usize, batch: usize) -> u32 {
        let per_epoch = |rows: usize| rows.div_ceil(budget::batch(batch, rows)) as u32;
        // The best one runs again.
        let starts = if self.count > 1 { self.count.saturating_add(1) } else { 0 };
        let tried =
            if starts > 0 { per_epoch(self.rows.min(rows)).saturating_mul(starts) } else { 0 };
        per_epoch(rows).saturating_add(tried).saturating_mul(epochs)
    }

    /// # Errors
    /// [`error::Error::Range`] if there are trials on no rows.
    pub(super) fn check(self) -> Result<()> {
        if self.count > 1 {
            error::range("rows of a trial", self.rows, 1, usize::MAX)
        } else {
            Ok(())
        }
    }
}

impl State {
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
}
