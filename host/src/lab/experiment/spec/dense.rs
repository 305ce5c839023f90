//! The words of a spec on dense networks that are trained, and whose weights are looked at.

use serde::{Deserialize, Serialize};

/// Networks of the part's hidden layers, without biases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DenseData {
    pub(crate) from: Tables,
    /// Rows to train on, where they are no axis.
    pub(crate) samples: usize,
    pub(crate) test: usize,
    #[serde(default)]
    pub(crate) inputs: Inputs,
}

/// What a network is given of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Inputs {
    /// Numbers as they are, bytes as fractions of 256.
    #[default]
    Raw,
    /// Their difference from the mean over the training rows, over the standard deviation of these: of
    /// each column, or of all pixels.
    Standardised,
}

/// Where rows of a table come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Tables {
    /// Forest cover types (J. Blackard, 1998; UCI): 581 012 rows of 54 columns, seven classes.
    Covertype,
    /// Generated rows of the same columns and classes, with nothing of the forest in them.
    StandIn,
}

impl Tables {
    /// Columns but for the class.
    pub(crate) const COLUMNS: usize = 54;
    pub(crate) const CLASSES: usize = 7;
    pub(crate) const ROWS: usize = 581_012;
}
