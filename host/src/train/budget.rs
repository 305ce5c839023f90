//! How many weights a network may have, and how much memory its training may take.

use crate::Result;
use crate::base::check_setting;

/// How many weights are nonzero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Budget {
    /// So many nonzeros, s.
    Nonzeros(usize),
    /// This share of all weights, above 0 and at most 1, rounded to the nearest count.
    Density(f64),
}

impl Budget {
    /// So many nonzeros.
    #[must_use]
    pub const fn nnz(count: usize) -> Self {
        Self::Nonzeros(count)
    }

    /// This share of all weights.
    #[must_use]
    pub const fn density(share: f64) -> Self {
        Self::Density(share)
    }

    /// The nonzeros of `all` weights, as a density at least `least`.
    pub(crate) fn count(self, all: usize, least: usize) -> Result<usize> {
        match self {
            Self::Nonzeros(nnz) => Ok(nnz),
            Self::Density(share) => {
                let help = "pass the fraction of all weights that may be nonzero, such as 0.05";
                let holds = share > 0.0 && share <= 1.0;
                check_setting(holds, "--density above 0 and at most 1", share, help)?;
                Ok(((share * all as f64).round() as usize).max(least))
            }
        }
    }
}

/// How much memory training may take beside the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Memory {
    /// Panels and tiles that suit the machine.
    #[default]
    Auto,
    /// Panels of p neurons; all of them if there are fewer.
    Panel(usize),
    /// State and workspace in at most so many bytes.
    Ram(u64),
    /// As little as can be, for more time a step and on one thread; the recipe `anneal` then starts from s entries.
    Least,
}
