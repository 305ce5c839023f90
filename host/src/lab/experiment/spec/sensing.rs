//! The words of a spec on matrix sensing (N. Rajaraman, Devvrit, A. Mokhtari and K. Ramchandran, *Greedy
//! Pruning with Group Lasso Provably Generalizes for Matrix Sensing*, 2023).

use serde::{Deserialize, Serialize};

/// What is sensed: d×s factors `U*` of singular values from 1 to `sr`, by models of m columns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SensingData {
    /// Measurements, where they are no axis; 0 for the population loss.
    pub(crate) samples: usize,
    /// Rows d of the factors, where they are no axis.
    pub(crate) inputs: usize,
    #[serde(default)]
    pub(crate) measurements: Measurements,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Measurements {
    /// `<A_i, U Uᵀ>` with normal entries `A_i`.
    #[default]
    Gaussian,
    /// `A_i = x_i x_iᵀ`: a network of one hidden layer with quadratic activations on normal rows.
    Quadratic,
}

/// How a matrix is sensed, in a variant.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Sensed {
    /// The smallest singular value of `U*`.
    pub(crate) sr: f64,
    /// Standard deviation of the noise of a measurement.
    pub(crate) sigma: f64,
    /// Weight of the group lasso; without it eq. 10, `c_l sr³/√(k r)`, and under noise at least
    /// `1.2 σ √(d/n)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lambda: Option<f64>,
    /// Smoothing of the group lasso; without it eq. 10, `c_b sr²/r`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) beta: Option<f64>,
    pub(crate) c_b: f64,
    pub(crate) c_l: f64,
    /// Whether lambda is the best of eight by cross-validation over five folds of the measurements.
    pub(crate) validated: bool,
    /// Standard deviation of the entries of the start.
    pub(crate) start: f64,
    pub(crate) step: f64,
    /// Without it `t/(t + 3)` at step t, begun anew where it leads uphill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) momentum: Option<f64>,
    /// The norm of the gradient at which a descent ends; without it eq. 10's, at most 1e-4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) goal: Option<f64>,
}

impl Default for Sensed {
    fn default() -> Self {
        Self {
            sr: 1.0,
            sigma: 0.0,
            lambda: None,
            beta: None,
            c_b: 0.05,
            c_l: 1.0,
            validated: false,
            start: 1e-3,
            step: 0.05,
            momentum: None,
            goal: None,
        }
    }
}
