//! How closely an operator must agree with its oracle, and what is reported where it does not.

use tamis::Error;

/// How closely an operator must follow its oracle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// Every bit, of steps and supports too.
    Bits,
    /// Every bit of `apply` and `forward` unless gates are random; the rest within tolerance.
    Outputs,
    /// Within tolerance.
    Close,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Failure {
    /// The check, by the name in the table.
    pub check: &'static str,
    /// The quantity or call.
    pub what: &'static str,
    /// The situation's number, see [`super::Situation::number`].
    pub situation: usize,
    /// Position of the first wrong element.
    pub at: usize,
    /// What the oracle says.
    pub expected: f32,
    /// What the operator says.
    pub got: f32,
}

impl Failure {
    pub(super) fn new(what: &'static str, at: usize, expected: f32, got: f32) -> Self {
        Self { check: "", what, situation: 0, at, expected, got }
    }

    /// A call that failed and should not have.
    #[allow(clippy::needless_pass_by_value, reason = "goes to map_err")]
    pub(super) fn refused<S>(error: Error<S>) -> Self {
        let what = match error {
            Error::Length { what, .. }
            | Error::Range { what, .. }
            | Error::NotFinite { what, .. } => what,
            Error::Budget { .. } => "budget",
            Error::Unsorted { .. } => "order of indices",
            Error::Diverged { .. } => "divergence",
            Error::Source(_) => "data source",
            _ => "error",
        };
        Self::new(what, 0, 0.0, f32::NAN)
    }
}

pub(super) type Outcome = Result<(), Failure>;
