//! How many weights are left after each round of pruning.

/// From all weights to those that are kept, in rounds; each count is rounded to the nearest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Schedule {
    /// The same number in every round.
    Linear,
    /// The same fraction in every round, as published: N d^(t/R) weights are left after round t,
    /// for a density of d.
    #[default]
    Exponential,
    /// Large fractions first, for few rounds: N d^(1 - (1 - t/R)²).
    FrontLoaded,
}

impl Schedule {
    /// Weights left after `round` of `rounds`, of `all` of which `kept` are left in the end.
    ///
    /// ```
    /// use tamis::network::mask::schedule::Schedule::{Exponential, FrontLoaded, Linear};
    /// let counts = |schedule: tamis::network::mask::schedule::Schedule| {
    ///     [0, 1, 2].map(|t| schedule.count(10_000, 100, t, 2))
    /// };
    /// assert_eq!(counts(Linear), [10_000, 5050, 100]);
    /// assert_eq!(counts(Exponential), [10_000, 1000, 100]);
    /// assert_eq!(counts(FrontLoaded), [10_000, 316, 100]);
    /// ```
    #[must_use]
    pub fn count(self, all: usize, kept: usize, round: u32, rounds: u32) -> usize {
        if round >= rounds || kept >= all {
            return kept;
        }
        let (n, k) = (all as f64, kept as f64);
        let done = f64::from(round) / f64::from(rounds);
        let left = match self {
            Self::Linear => n + (k - n) * done,
            Self::Exponential => n * libm::pow(k / n, done),
            Self::FrontLoaded => n * libm::pow(k / n, 1.0 - (1.0 - done) * (1.0 - done)),
        };
        (libm::round(left) as usize).clamp(kept, all)
    }
}
