//! What a run for several outputs learns, and how it goes through the data.

use crate::budget::{self, Outputs};
use crate::dims::Dims;
use crate::error::{self, Error, Result};
use crate::loss;
use crate::math;
use crate::sketch;
use crate::train::Trials;
use crate::weights::check_kept;
use core::ops::Range;

/// What the outputs are compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal<'a> {
    /// n×c numbers, row by row; squared loss.
    Values(&'a [f32]),
    /// A class per row, from 0 to c - 1; softmax cross-entropy.
    Classes(&'a [u16], usize),
}

impl Goal<'_> {
    /// c, for n rows.
    pub(crate) fn outputs(&self, rows: usize) -> usize {
        match self {
            Self::Values(values) => values.len() / rows.max(1),
            Self::Classes(_, classes) => *classes,
        }
    }

    /// Turns the outputs of `rows` into residuals; the sum of the losses of the rows.
    pub(crate) fn residual(&self, rows: Range<usize>, c: usize, out: &mut [f32]) -> Result<f32> {
        match self {
            Self::Values(values) => {
                loss::square(values.get(rows.start * c..rows.end * c).unwrap_or(&[]), out)
            }
            Self::Classes(classes, c) => loss::cross_entropy(classes.get(rows).unwrap_or(&[]), *c, out),
        }
    }

    pub(crate) fn check(&self, rows: usize) -> Result<()> {
        let c = self.outputs(rows);
        match self {
            Self::Values(values) => {
                error::range("outputs", c, 1, u32::MAX as usize)?;
                error::length("labels", values.len(), rows.saturating_mul(c))?;
                error::finite("labels", values)
            }
            Self::Classes(classes, _) => {
                error::range("outputs", c, 1, 1 << 16)?;
                error::length("labels", classes.len(), rows)?;
                loss::check_classes(classes, c)
            }
        }
    }
}

/// How the s entries that stay are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Rank {
    /// By the magnitude of the step's result.
    #[default]
    Exact,
    /// By the sum of all their steps, as a count sketch estimates it ([`crate::sketch`]). Before each step the sketch
    /// is multiplied by `decay`; 1 as published.
    Sketch {
        /// Factor on what was added before.
        decay: f32,
    },
}

/// When random values stand for blocks without weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Standin {
    /// In all steps of the first epoch.
    FirstEpoch,
    /// In the first step of every epoch, as in the published code.
    EveryEpoch,
}

/// How a run goes through the data; [`NetSchedule::paper`] gives the published settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NetSchedule<'k> {
    /// Passes over all batches.
    pub epochs: u32,
    /// Rows of a batch; 0 for all rows. See [`crate::train::Schedule::batch`].
    pub batch: usize,
    /// Rows whose residuals are held at a time; 0 for those of a batch. See [`crate::train::Schedule::strip`].
    pub strip: usize,
    /// Length of a step, eta, for residuals divided by the rows of the batch.
    pub step_size: f32,
    /// How the entries that stay are chosen.
    pub rank: Rank,
    /// When random values stand for blocks without weights.
    pub standin: Standin,
    /// Starts with random values of their own, of which the best goes on from its weights; see [`Trials`].
    pub trials: Trials,
    /// Steps that are lost when a run diverges: an epoch that ends with more than twice the least loss of an epoch so
    /// far, or with no number, is undone, and eta becomes a quarter; the result is the best iterate. It takes memory for
    /// one more network.
    pub safe: bool,
    /// Seed of the random values and the batch orders.
    pub seed: u64,
    /// Flat indices of W, rising and fewer than s, of weights that are on the support whatever their size, as
    /// [`crate::iht::Params::must_keep`]. Both sides count in s, so that one place at least is left for a weight to an output.
    pub must_keep: &'k [u32],
}

impl NetSchedule<'_> {
    /// eta for cross-entropy on pixels from 0 to 255.
    pub const CLASSES_STEP: f32 = 0.001;
    /// eta for squared loss.
    pub const VALUES_STEP: f32 = 0.005;
    /// eta for squared loss where s is small.
    pub const FEW_STEP: f32 = 2.0;

    /// The published settings for m neurons and s nonzeros: fixed steps of 0.001 for classes; for values 0.005, or 2
    /// where `s < 6 m^0.536`; a count sketch that forgets nothing ranks the weights; random values stand for empty blocks in
    /// the first step of every epoch. Full batches, 15 epochs.
    #[must_use]
    pub fn paper(goal: &Goal<'_>, hidden: usize, nnz: usize) -> Self {
        let few = 6.0 * math::exp(0.536 * math::ln(hidden as f32));
        let step_size = match goal {
            Goal::Classes(..) => Self::CLASSES_STEP,
            Goal::Values(_) if (nnz as f32) < few => Self::FEW_STEP,
            Goal::Values(_) => Self::VALUES_STEP,
        };
        Self {
            epochs: 15,
            batch: 0,
            strip: 0,
            step_size,
            rank: Rank::Sketch { decay: 1.0 },
            standin: Standin::EveryEpoch,
            trials: Trials::NONE,
            safe: false,
            seed: 0,
            must_keep: &[],
        }
    }

    /// The same with divergence detected and undone.
    #[must_use]
    pub const fn safe(self) -> Self {
        Self { safe: true, ..self }
    }

    /// The memory that a run needs for networks of `outputs` outputs, `dims.nnz` counting both sides, given the panel and
    /// the operator's scratch.
    #[must_use]
    pub const fn budget(&self, dims: Dims, outputs: usize, panel: usize, scratch: usize) -> Outputs {
        let batch = budget::batch(self.batch, dims.samples);
        let sketch = match self.rank {
            Rank::Exact => 0,
            Rank::Sketch { .. } => {
                sketch::words(dims.nnz, dims.hidden.saturating_mul(dims.inputs.saturating_add(outputs)))
            }
        };
        let strip = budget::batch(self.strip, batch);
        Outputs { dims, outputs, batch, strip, panel, scratch, sketch, safe: self.safe }
    }

    /// Checks sizes, labels and settings of a run for `c` outputs.
    pub(super) fn check(&self, dims: &Dims, c: usize, goal: &Goal<'_>) -> Result<()> {
        let most = u32::MAX as usize;
        error::range("samples", dims.samples, 1, most)?;
        error::range("inputs", dims.inputs, 1, most)?;
        error::range("hidden neurons", dims.hidden, 1, most)?;
        goal.check(dims.samples)?;
        let all = dims.hidden.saturating_mul(dims.inputs.saturating_add(c));
        error::range("hidden neurons × (inputs + outputs)", all, 1, most)?;
        error::range("nonzero weights (nnz)", dims.nnz, 1, all)?;
        check_kept(dims, self.must_keep, dims.nnz - 1)?;
        error::range("epochs", self.epochs as usize, 1, most)?;
        self.trials.check()?;
        let decay = match self.rank {
            Rank::Exact => 1.0,
            Rank::Sketch { decay } => decay,
        };
        error::finite("step size and decay", &[self.step_size, decay])?;
        if self.step_size > 0.0 && decay >= 0.0 {
            Ok(())
        } else {
            Err(Error::Range { what: "step size", min: 1, max: usize::MAX, got: 0 })
        }
    }
}
