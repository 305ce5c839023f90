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
    /// all). Generators are random for the first epoch, and for two steps where an epoch is one.
    #[must_use]
    pub const fn published(epochs: u32, batch: usize) -> Schedule<'static, OneOutput> {
        let convex_epochs = if batch == 0 { OneOutput::PAPER.convex_epochs } else { 1 };
        let head = OneOutput { convex_epochs, ..OneOutput::PAPER };
        Schedule { epochs, batch, head, ..Schedule::PAPER }
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
    /// Epochs with random gates; none of a safe run.
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
    /// with a count sketch takes two gradients.
    pub const TRIALS: Trials = Trials { count: 8, ..Trials::DEFAULT };

    /// The published settings: 15 full batches, a count sketch that ranks the weights, gates that are
    /// random for two of them and random values for empty blocks in the first, no trials and no
    /// safety.
    pub const PUBLISHED: Self = Self {
        epochs: 15,
        batch: 0,
        step_size: None,
        rank: Rank::Sketch { decay: 1.0 },
        convex_epochs: 2,
        refresh: Refresh::Every(1),
        standin: Standin::FirstEpoch,
        trials: Trials::NONE,
        safe: false,
    };

    /// The same for batches of so many rows (0 for all). Where an epoch has several steps its gates
    /// are random in the first epoch, and random values come in the first step of each.
    #[must_use]
    pub const fn published(epochs: u32, batch: usize) -> Self {
        let full = Self { epochs, batch, ..Self::PUBLISHED };
        match batch {
            0 => full,
            _ => Self { convex_epochs: 1, standin: Standin::EveryEpoch, ..full },
        }
    }
}
