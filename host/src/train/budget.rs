//! How many weights a network may have, and how much memory its training may take.

use crate::{Error, Result};

/// How many weights stay.
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
            Self::Density(share) if share > 0.0 && share <= 1.0 => {
                Ok(((share * all as f64).round() as usize).max(least))
            }
            Self::Density(share) => Err(Error::new("the density is out of bounds")
                .expected("--density above 0 and at most 1")
                .got(share)
                .help("pass the part of all weights that may stay, such as 0.05")),
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
    /// As little as can be, for more time a step; the recipe `anneal` then starts from s entries.
    Least,
}
