//! The words of a spec on pruned random matrices and networks (J. Qian and D. Klabjan, *A Probabilistic
//! Approach to Neural Network Pruning*, 2021).

use serde::{Deserialize, Serialize};

/// How the entries of random matrices are drawn, and which of them are pruned.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entries {
    #[serde(default)]
    pub(crate) law: EntryLaw,
    /// The scale K: entries are `U[-K/√n, K/√n]` or `N(0, K²/n)`, n the larger side.
    #[serde(default = "one")]
    pub(crate) k: f64,
    /// The exponent α of the paper: of D entries `⌊D^(1 - α)⌋` are pruned in a network, and
    /// `⌊d^(2 - α)⌋` in a d×d matrix or of d² filters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) alpha: Option<f64>,
    /// Which entries random pruning takes.
    #[serde(default)]
    pub(crate) choice: Choice,
    /// Random pruning of one matrix over many draws: whether entries are chosen once for all draws.
    #[serde(default)]
    pub(crate) fixed: bool,
    /// Whether moments are those of the law, and not means over the draws.
    #[serde(default)]
    pub(crate) exact_moments: bool,
    /// Networks: whether the entries of all inner layers are ranked together.
    #[serde(default)]
    pub(crate) global: bool,
}

const fn one() -> f64 {
    1.0
}

impl Default for Entries {
    fn default() -> Self {
        Self {
            law: EntryLaw::Uniform,
            k: 1.0,
            alpha: None,
            choice: Choice::Repeated,
            fixed: false,
            exact_moments: false,
            global: false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum EntryLaw {
    #[default]
    Uniform,
    Normal,
}

/// How random pruning chooses entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Choice {
    /// With replacement, as the paper analyses it: fewer different entries than draws.
    #[default]
    Repeated,
    /// Without replacement.
    Distinct,
}

/// Networks of L layers and no biases, whose inner layers are pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NetworkData {
    /// Width of the hidden layers, where it is no axis.
    pub(crate) width: usize,
    /// Layers of weights, 3 or more: the first and the last are not pruned.
    pub(crate) layers: usize,
    /// As many as the width without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) inputs: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) outputs: Option<usize>,
}

impl NetworkData {
    /// Widths from the inputs to the outputs, of hidden layers of this width.
    pub(crate) fn widths(&self, width: usize) -> Vec<usize> {
        let mut widths = vec![width; self.layers + 1];
        widths[0] = self.inputs.unwrap_or(width);
        widths[self.layers] = self.outputs.unwrap_or(width);
        widths
    }
}
