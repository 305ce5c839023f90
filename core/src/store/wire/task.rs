//! What the predictions of a model stand for.

use super::{SECTION, TAG_TASK};
use crate::base::error::{expect, finite, length, range, tri};
use crate::infer::model::MAX_INPUTS;
use crate::{Error, Result};

/// Bytes of a task, its section header included.
pub(super) const TASK: usize = SECTION + 8;

/// What a model was trained for; see [`View::task`](super::View::task).
///
/// ```
/// use tamis::store::wire::Task;
/// assert_eq!(Task::BINARY, Task::Binary { threshold: 0.5 });
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Task {
    /// Every output is a number of its own meaning.
    Regression,
    /// Class 0 or 1 from one output.
    Binary {
        /// The least prediction that is class 1; finite. With 0 a prediction is the log-odds of
        /// class 1.
        threshold: f32,
    },
    /// One class of several, one output each: that of the largest output, of equal ones the lowest.
    Multiclass,
}

impl Task {
    /// Two classes told apart in the middle, as for labels 0 and 1.
    pub const BINARY: Self = Self::Binary { threshold: 0.5 };

    const REGRESSION_KIND: u16 = 1;
    const BINARY_KIND: u16 = 2;
    const MULTICLASS_KIND: u16 = 3;

    /// Checks that a model of so many outputs can carry out the task.
    ///
    /// # Errors
    /// [`Error::Length`] or [`Error::Range`] for another number of outputs.
    pub(crate) const fn check(self, outputs: usize) -> Result<()> {
        match self {
            Self::Regression => Ok(()),
            Self::Binary { .. } => length("outputs of a binary model", outputs, 1),
            Self::Multiclass => range("outputs of a multiclass model", outputs, 2, MAX_INPUTS),
        }
    }

    /// The section, or nothing.
    pub(super) const fn len(task: Option<Self>) -> usize {
        if task.is_some() { TASK } else { 0 }
    }

    /// Kind and threshold as they are written.
    ///
    /// # Errors
    /// [`Error::NotFinite`] for a threshold that is no number.
    pub(super) fn fields(self) -> Result<[u32; 2]> {
        let (kind, threshold) = match self {
            Self::Regression => (Self::REGRESSION_KIND, 0.0),
            Self::Binary { threshold } => (Self::BINARY_KIND, threshold),
            Self::Multiclass => (Self::MULTICLASS_KIND, 0.0),
        };
        finite("threshold of a binary task", &[threshold])?;
        Ok([kind.into(), threshold.to_bits()])
    }

    /// The task with these fields, read at byte `at`.
    ///
    /// # Errors
    /// [`Error::Newer`] for a kind that this version does not know, [`Error::Format`] for a
    /// threshold where there is none, [`Error::NotFinite`] for a threshold that is no number.
    pub(super) const fn of(at: usize, kind: u16, threshold: u32) -> Result<Self> {
        let (task, what) = match kind {
            Self::REGRESSION_KIND => (Self::Regression, "threshold of a regression"),
            Self::MULTICLASS_KIND => (Self::Multiclass, "threshold of a multiclass task"),
            Self::BINARY_KIND => {
                let threshold = f32::from_bits(threshold);
                tri!(finite("threshold of a binary task", &[threshold]));
                return Ok(Self::Binary { threshold });
            }
            _ => return Err(Error::Newer { what: "task", at, got: kind as u32 }),
        };
        tri!(expect(what, at + 4, 0, threshold));
        Ok(task)
    }

    /// Tag and flags of the section as one number.
    pub(super) const HEAD: u32 = TAG_TASK as u32 | (super::OPTIONAL as u32) << 16;
}
