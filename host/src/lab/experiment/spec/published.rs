//! A printed row of a table, beside which a cell stands.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::metric::Metric;

/// What a paper prints for one size and variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Published {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) n: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) d: Option<usize>,
    /// The name of the variant, where the part has several.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) variant: String,
    /// The printed numbers.
    pub(crate) values: BTreeMap<Metric, f64>,
    /// Those of them that are wrong in print, as measuring shows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) wrong: Vec<Metric>,
}
