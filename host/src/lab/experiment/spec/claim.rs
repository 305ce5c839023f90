//! A claim: a difference between variants of a part, and where it is expected to lie.

use serde::{Deserialize, Serialize};

use super::metric::Metric;

/// The mean of `of` less `minus`, pair by pair, at each s of the part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    /// What is compared, in words.
    pub(crate) says: String,
    /// Names of variants.
    pub(crate) of: Vec<String>,
    /// As many, or one for all; without it the values of `of` themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) minus: Vec<String>,
    /// In place of the accuracy, in points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metric: Option<Metric>,
    /// The least that is expected: one for all s, or one for each; no bound without it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) least: Vec<f64>,
    /// The most that is expected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) most: Vec<f64>,
}

impl Claim {
    /// What is expected at the s at this place of the part.
    pub(crate) fn expected(&self, at: usize) -> Expected {
        let bound = |of: &[f64], none: f64| of.get(at).or(of.last()).copied().unwrap_or(none);
        let least = bound(&self.least, f64::NEG_INFINITY);
        Expected { least, most: bound(&self.most, f64::INFINITY) }
    }
}

/// Where a difference is expected to lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Expected {
    pub(crate) least: f64,
    pub(crate) most: f64,
}
