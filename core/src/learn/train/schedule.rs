//! How a run goes through the data, whatever its head, and the random starts before it.

use crate::base::budget;
use crate::base::error::{self, Result};

/// How a run goes through the data; `H` has the settings of the network's head,
/// [`super::OneOutput`] or [`super::SeveralOutputs`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule<'k, H> {
    /// Passes over all batches.
    pub epochs: u32,
    /// Rows of a batch; 0 for all rows. Batches are runs of consecutive rows, so rows must come in
    /// random order (see [`crate::data::samples::Shuffled`]); their order is drawn anew each epoch.
    pub batch: usize,
    /// Rows whose residuals are held at a time; 0 for those of a batch. With fewer, the memory of a
    /// step does not grow with the batch, and every product with the residual computes it again:
    /// for a few nonzeros that is little beside the product.
    pub strip: usize,
    /// Starts tried on the first rows before the run on all of them.
    pub trials: Trials,
    /// Seed of random gates or values, and of the batches' order.
    pub seed: u64,
    /// Flat indices of W, rising, of pinned weights: they are on the support whatever their size,
    /// from the first step to the last, and count in s. At most s; with output weights fewer, so
    /// that one place at least is left for one of these.
    pub must_keep: &'k [u32],
    /// Settings of the head.
    pub head: H,
}

/// Starts from several random generators, of which the best is continued.
///
/// Where hard thresholding ends depends on its random start. A start is the whole schedule on the
/// first `rows` rows; the run on all rows continues from the best one's weights, which are computed
/// again rather than stored.
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
    /// [`crate::Error::Range`] if there are trials on no rows.
    pub(super) fn check(self) -> Result<()> {
        if self.count > 1 {
            error::range("rows of a trial", self.rows, 1, usize::MAX)
        } else {
            Ok(())
        }
    }
}
