//! What a search is doing, and what it did.

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
