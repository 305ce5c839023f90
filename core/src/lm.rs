//! Exact recovery by Levenberg-Marquardt hard thresholding with tried moves.

mod fit;
mod neuron;
mod search;
mod support;

use crate::budget::{Recovery, WORD, Workspace};
use crate::dims::Dims;
use crate::error::{self, Error, Result};
use crate::gates::Signs;
use crate::sensing::Sensing;
use crate::weights::{Editable, Weights};
use fit::{Fit, Vectors};
use neuron::Single;
use search::Search;

/// How the search goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Params {
    /// Seed of the first gates, of births, splits and kicks.
    pub seed: u64,
    /// Output signs.
    pub signs: Signs,
    /// Rows that the search looks at, n0; 0 for a number that suits s.
    pub rows: usize,
    /// Loss at which the fit is exact, in parts of the mean square of the labels.
    pub exact: f32,
    /// Births from random gates in a list of candidates.
    pub random_births: u32,
    /// Kicks before the search ends.
    pub kicks: u32,
    /// Outer steps before the search ends.
    pub steps: u32,
    /// Steps on all rows at the end.
    pub final_steps: u32,
    /// Outer steps at exactly s weights at the end, where the fit is not exact.
    pub polish: u32,
}

impl Params {
    /// The settings that the published grid was recovered with.
    pub const DEFAULT: Self = Self {
        seed: 0,
        signs: Signs::Positive,
        rows: 0,
        exact: 3e-11,
        random_births: 6,
        kicks: 40,
        steps: 4000,
        final_steps: 4,
        polish: 10,
    };

    /// Weights while searching.
    #[must_use]
    pub const fn work_size(&self, nnz: usize) -> usize {
        nnz + nnz.div_ceil(4)
    }

    /// Weights that an outer step adds.
    #[must_use]
    pub const fn growth(&self, nnz: usize) -> usize {
        nnz.div_ceil(2)
    }

    /// n0 for data of `samples` rows.
    #[must_use]
    pub const fn search_rows(&self, nnz: usize, samples: usize) -> usize {
        let rows = if self.rows > 0 {
            self.rows
        } else {
            let usual = 20 * nnz;
            let most = if usual > 4000 { if 10 * nnz > 4000 { 10 * nnz } else { 4000 } } else { usual };
            if most < 1000 { 1000 } else { most }
        };
        if rows < samples { rows } else { samples }
    }
}

/// What a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Outer steps from the start.
    Descend,
    /// A move is tried.
    Trial,
    /// A move was taken.
    Move,
    /// Outer steps after a kick.
    Kick,
    /// Down to s weights.
    Finish,
    /// Steps on all rows.
    AllRows,
    /// Outer steps at s weights on all rows.
    Polish,
}

/// Where a run stands, after each outer step.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// What it is doing.
    pub phase: Phase,
    /// Outer steps so far.
    pub step: u32,
    /// Mean squared error on the rows looked at.
    pub loss: f32,
    /// The least so far.
    pub best: f32,
    /// Weights now.
    pub support: usize,
    /// Neurons that have weights now.
    pub live: usize,
    /// Moves taken.
    pub moves: u32,
    /// Kicks.
    pub kicks: u32,
    /// Rows read by all operations together.
    pub rows_read: u64,
}

/// What a run did.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Info {
    /// Mean squared error on all rows.
    pub loss: f32,
    /// Whether the fit is exact, see [`Params::exact`].
    pub exact: bool,
    /// Outer steps.
    pub steps: u32,
    /// Moves tried.
    pub trials: u32,
    /// Moves taken.
    pub moves: u32,
    /// Neurons turned round.
    pub flips: u32,
    /// Neurons merged into others.
    pub merges: u32,
    /// Times that the linear term was done away with.
    pub folds: u32,
    /// Kicks.
    pub kicks: u32,
    /// Rows read by all operations together.
    pub rows_read: u64,
    /// Whether the observer ended the run.
    pub stopped: bool,
}

/// Blocks that the operator of a run should have for m neurons: a tenth more, so that the search has room.
#[must_use]
pub const fn slots(hidden: usize, signs: Signs) -> usize {
    let slots = hidden + hidden.div_ceil(10) + 2;
    match signs {
        Signs::Positive => slots,
        Signs::Balanced => slots + slots % 2,
        // As many of either sign, and the linear term.
        Signs::Free => 2 * slots + 1,
    }
}

/// Recovers a network of at most `dims.hidden` neurons and `dims.nnz` weights.
///
/// # Errors
/// Sizes, budget, labels.
pub fn run<'a, S: Sensing>(
    sensing: &mut S,
    labels: &[f32],
    dims: Dims,
    params: &Params,
    memory: &'a mut [u32],
    observe: impl FnMut(&Progress) -> bool,
) -> Result<(Weights<'a>, Info), S::Source> {
    error::length("labels", labels.len(), sensing.rows())?;
    error::finite("labels", labels)?;
    let (d, p, n) = (sensing.inputs(), sensing.blocks(), sensing.rows());
    let rows = params.search_rows(dims.nnz, n);
    let panel = sensing.panel();
    let budget = Recovery::new(dims, rows, panel, sensing.scratch(n), params.signs.linear(0));
    if memory.len() < budget.words() {
        return Err(Error::Budget { needed: budget.words().saturating_mul(WORD), got: memory.len() * WORD });
    }
    let (result, rest) = memory.split_at_mut(2 * dims.nnz);
    let mut result = Workspace::new(result);
    let (index, value) =
        (result.indices(dims.nnz).map_err(Error::widen)?, result.floats(dims.nnz).map_err(Error::widen)?);
    let mut last = Editable::new(d, p, index, value);
    let info = {
        let mut space = Workspace::new(rest);
        let mut floats = |len: usize| space.floats(len).map_err(Error::widen::<S::Source>);
        let cap = budget.room();
        let work = budget.work();
        let vectors = Vectors {
            residual: floats(n)?,
            support: [floats(cap)?, floats(cap)?, floats(cap)?, floats(cap)?, floats(cap)?, floats(cap)?],
            scratch: floats(sensing.scratch(n))?,
        };
        let (value, base, kept, best) = (floats(cap)?, floats(cap)?, floats(work)?, floats(work)?);
        let (scales, panel) = (floats(d)?, floats(panel * d)?);
        let (single_value, block, z, t) = (floats(d)?, floats(d)?, floats(n)?, floats(n)?);
        let mut indices = |len: usize| space.indices(len).map_err(Error::widen::<S::Source>);
        let mut search = Search {
            net: Editable::new(d, p, indices(cap)?, value),
            base: Editable::new(d, p, indices(cap)?, base),
            kept: Editable::new(d, p, indices(work)?, kept),
            best: Editable::new(d, p, indices(work)?, best),
            added: indices(dims.nnz)?,
            single: Single { index: indices(d)?, value: single_value, len: 0, block, z, t },
            fit: Fit::new(sensing, labels, params.signs, vectors),
            scales,
            panel,
            params: *params,
            nnz: dims.nnz,
            hidden: dims.hidden,
            info: Info::default(),
            observe,
            goal: 0.0,
            best_loss: f32::INFINITY,
            turn: 0,
        };
        search.run(rows)?;
        search.info.rows_read = search.fit.rows_read;
        search.net.retain(|_, w| w != 0.0);
        last.set(search.net.view());
        search.info
    };
    Ok((last.into_view(), info))
}
