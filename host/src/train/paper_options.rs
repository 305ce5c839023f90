//! Settings of the published method, and what they are by default.

use tamis::learn::train::{OneOutput, Rank, Refresh, Schedule, Standin, Trials};

/// Settings of the published method, for one output and for several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PaperOptions {
    /// For one output: epochs, batches, steps and gates; seed and pinned weights are set from
    /// [`Options`](super::options::Options). `Step::Theory` with a beta of 0 asks for an estimate from the data.
    pub schedule: Schedule<'static, OneOutput>,
    /// For several outputs.
    pub outputs: OutputsOptions,
}

impl PaperOptions {
    /// The published schedule for one output, without trials, for batches of so many rows (0 for
    /// all).
    #[must_use]
    pub const fn published(epochs: u32, batch: usize) -> Schedule<'static, OneOutput> {
        Schedule { epochs, batch, ..Schedule::PAPER }
    }

    /// When gates follow the weights: never where the problem is to stay convex, else after so many
    /// steps, without a number as published.
    pub(crate) fn refresh(convex: bool, steps: Option<u32>) -> Refresh {
        match steps {
            _ if convex => Refresh::Never,
            Some(steps) => Refresh::Every(steps),
            None => OneOutput::PAPER.refresh,
        }
    }
}

impl Default for PaperOptions {
    /// The published settings, with random starts.
    fn default() -> Self {
        Self {
            schedule: Schedule { trials: Trials::DEFAULT, ..Schedule::PAPER },
            outputs: OutputsOptions { trials: OutputsOptions::TRIALS, ..OutputsOptions::PUBLISHED },
        }
    }
}

/// Settings of the published method for several outputs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutputsOptions {
    /// Passes over all batches.
    pub epochs: u32,
    /// Rows of a batch; 0 for all rows.
    pub batch: usize,
    /// Length of a step; none for the published one, which depends on task and sizes.
    pub step_size: Option<f32>,
    /// How the weights that stay are chosen.
    pub rank: Rank,
    /// Epochs with random gates, and a step; none of a safe run.
    pub convex_epochs: u32,
    /// When the gates follow the weights from then on; after every step of a safe run.
    pub refresh: Refresh,
    /// When random values stand for blocks without weights.
    pub standin: Standin,
    /// Random starts on the first rows, of which the best continues.
    pub trials: Trials,
    /// Whether epochs that diverge are undone, with shorter steps, and the best iterate is the
    /// result.
    pub safe: bool,
}

impl OutputsOptions {
    /// The starts that `tamis train --recipe paper` takes: fewer than for one output, since a step
    /// with a count sketch takes three gradients.
    pub const TRIALS: Trials = Trials { count: 8, ..Trials::DEFAULT };

    /// The published settings: 15 full batches, a count sketch that ranks the weights, random gates in
    /// the first epoch with random values for empty blocks, no trials and no safety.
    pub const PUBLISHED: Self = Self {
        epochs: 15,
        batch: 0,
        step_size: None,
        rank: Rank::Sketch { decay: 1.0 },
        convex_epochs: 1,
        refresh: Refresh::Every(1),
        standin: Standin::FirstEpoch,
        trials: Trials::NONE,
        safe: false,
    };

    /// The same for batches of so many rows (0 for all): where an epoch has several steps, random
    /// values come in the first one of each.
    #[must_use]
    pub const fn published(epochs: u32, batch: usize) -> Self {
        let standin = if batch == 0 { Standin::FirstEpoch } else { Standin::EveryEpoch };
        Self { epochs, batch, standin, ..Self::PUBLISHED }
    }
}
