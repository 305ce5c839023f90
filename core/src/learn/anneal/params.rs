//! The settings of a run, the memory that they lead to, and how a run changes with its steps.

use crate::base::budget::{self, Annealing};
use crate::base::dims::{Dims, MOST_ENTRIES};
use crate::base::error::{self, Error, Result};
use crate::base::math;
use crate::base::rng::{self, stream};
use crate::network::weights::check_kept;
use core::ops::Range;

/// How to train.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Params<'k> {
    /// Passes over the training rows.
    pub epochs: u32,
    /// Rows of a batch; 0 or more than there are for all. Batches are runs of consecutive rows, so
    /// rows must come in random order; the order of the batches is drawn anew each epoch.
    pub batch: usize,
    /// Rows, the last ones of the data, that are never trained on. With 0 the last iterate is the
    /// result, otherwise the iterate of least validation loss among those at the ends of epochs on
    /// the settled support.
    pub validation: usize,
    /// Evaluations on the validation rows without a new least loss after which a run ends; 0 for
    /// never.
    pub patience: u32,
    /// Entries of the first support, in units of s; at least 1. Accuracy rises with it to about 10.
    pub start_factor: f32,
    /// Largest learning rate.
    pub rate: f32,
    /// Steps until the learning rate has grown to its largest; a tenth of the run if that is less.
    pub warmup: u32,
    /// Steps between changes of the support; a fortieth of the run if that is less.
    pub update_every: u32,
    /// Fraction of the support that the first change drops and grows again; falls to 0 with a
    /// cosine.
    pub drop: f32,
    /// Fraction of the run over which the support shrinks to s.
    pub shrink: f32,
    /// Fraction of the run after which the support stays as it is.
    pub settle: f32,
    /// Rows on which candidates for growth are measured.
    pub growth_rows: usize,
    /// What is added to a column's scale where growth divides by it, in units of scaled inputs.
    pub floor: f32,
    /// Factor that brings the inputs to about 1; a power of two rounds nothing. There is one for
    /// all inputs: columns of very different size should be brought to a like one first.
    pub input_scale: f32,
    /// Seed of the first support and of all orders.
    pub seed: u64,
    /// Flat indices of W, rising and fewer than s, of weights that are on the support whatever
    /// their size, from the first one to the last. Both sides count in s, so that one place at
    /// least is left for a weight to an output.
    pub must_keep: &'k [u32],
}

impl Params<'_> {
    /// Measured to work well on images; see `docs/results/multiclass.md`.
    pub const DEFAULT: Self = Self {
        epochs: 100,
        batch: 512,
        validation: 0,
        patience: 0,
        start_factor: 10.0,
        rate: 0.02,
        warmup: 200,
        update_every: 100,
        drop: 0.3,
        shrink: 0.5,
        settle: 0.8,
        growth_rows: 5000,
        floor: 0.05,
        input_scale: 1.0,
        seed: 0,
        must_keep: &[],
    };

    /// The memory that a run needs for c outputs, given the panel and the operator's scratch.
    #[must_use]
    pub const fn budget(
        &self,
        dims: Dims,
        outputs: usize,
        panel: usize,
        scratch: usize,
    ) -> Annealing {
        let batch = budget::batch(self.batch, dims.samples.saturating_sub(self.validation));
        let (start, validated) = (self.start(dims, outputs), self.validation > 0);
        Annealing { dims, outputs, start, batch, panel, scratch, validated }
    }

    /// Entries of the first support: `start_factor` s, at most all.
    #[must_use]
    pub const fn start(&self, dims: Dims, outputs: usize) -> usize {
        let all = all_weights(dims, outputs);
        let start = (dims.nnz as f32 * self.start_factor) as usize;
        let start = if start > dims.nnz { start } else { dims.nnz };
        if start < all { start } else { all }
    }

    /// Checks sizes and settings of a run.
    pub(super) fn check(&self, dims: &Dims, outputs: usize) -> Result<()> {
        let (n, d, m, s) = (dims.samples, dims.inputs, dims.hidden, dims.nnz);
        error::range("samples", n, 1, u32::MAX as usize)?;
        error::range("inputs", d, 1, u32::MAX as usize)?;
        error::range("hidden neurons", m, 1, u32::MAX as usize)?;
        error::range("outputs", outputs, 1, 1 << 16)?;
        let all = all_weights(*dims, outputs);
        error::range("hidden neurons × (inputs + outputs)", all, 1, MOST_ENTRIES)?;
        error::range("nonzero weights (nnz)", s, 2, all)?;
        check_kept(dims, self.must_keep, s - 1)?;
        error::range("epochs", self.epochs as usize, 1, u32::MAX as usize)?;
        error::range("validation rows", self.validation, 0, n - 1)?;
        let &Params { start_factor, rate, drop, shrink, settle, floor, input_scale, .. } = self;
        let numbers = [start_factor, rate, drop, shrink, settle, floor, input_scale];
        error::finite("parameters", &numbers)?;
        let share = |x: f32| (0.0..=1.0).contains(&x);
        let fits =
            start_factor >= 1.0 && rate > 0.0 && share(drop) && share(shrink) && share(settle);
        let fits = fits && floor >= 0.0 && input_scale > 0.0;
        let what = "start factor, rate, drop, shrink, settle, floor or input scale";
        if fits { Ok(()) } else { Err(Error::Range { what, min: 0, max: 1, got: 0 }) }
    }

    /// The batches that growth goes through, as many as make up its rows, in an order of their own
    /// for each update.
    pub(super) fn growth(
        &self,
        rows: usize,
        batch: usize,
        update: u32,
    ) -> impl Iterator<Item = Range<usize>> + use<> {
        let wanted = self.growth_rows.div_ceil(batch).max(1);
        rng::runs(self.seed, stream::ANNEAL + u64::from(update), rows, batch).take(wanted)
    }
}

impl Default for Params<'_> {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// m (d + c).
const fn all_weights(dims: Dims, outputs: usize) -> usize {
    dims.hidden.saturating_mul(dims.inputs.saturating_add(outputs))
}

/// Learning rate, size of the support and drop rate as functions of the step.
pub(super) struct Schedule<'p> {
    params: &'p Params<'p>,
    pub(super) steps: u32,
    /// Entries of the last support, and of the first.
    pub(super) nnz: usize,
    pub(super) start: usize,
    warmup: u32,
    every: u32,
}

impl<'p> Schedule<'p> {
    pub(super) fn new(params: &'p Params<'p>, rows: usize, budget: &Annealing) -> Self {
        let steps = params.epochs.saturating_mul(rows.div_ceil(budget.batch) as u32);
        let warmup = params.warmup.min(steps / 10);
        let every = params.update_every.min(steps / 40).max(1);
        Self { params, steps, nnz: budget.dims.nnz, start: budget.start, warmup, every }
    }

    /// Falls from 1 to 0 as `part` rises from 0 to 1.
    fn cosine(part: f32) -> f32 {
        0.5 * (1.0 + math::sin_cos(core::f32::consts::PI * part.clamp(0.0, 1.0)).1)
    }

    pub(super) fn rate(&self, step: u32) -> f32 {
        let grown = if step < self.warmup { (step + 1) as f32 / self.warmup as f32 } else { 1.0 };
        self.params.rate * grown * Self::cosine(step as f32 / self.steps as f32)
    }

    /// The last step before which the support changes.
    pub(super) fn settled(&self) -> u32 {
        let last = (self.params.settle * self.steps as f32) as u32;
        last / self.every * self.every
    }

    /// Whether the support changes before this step.
    pub(super) fn changes(&self, step: u32) -> bool {
        step > 0 && step.is_multiple_of(self.every) && step <= self.settled()
    }

    /// Entries that the support has from this step on.
    pub(super) fn target(&self, step: u32) -> usize {
        let over = self.params.shrink.min(self.params.settle) * self.steps as f32;
        let left = 1.0 - (step as f32 / over.max(1.0)).min(1.0);
        if step >= self.settled() {
            return self.nnz;
        }
        self.nnz + ((self.start - self.nnz) as f32 * left * left * left) as usize
    }

    pub(super) fn drop(&self, step: u32) -> f32 {
        self.params.drop * Self::cosine(step as f32 / self.settled().max(1) as f32)
    }
}
