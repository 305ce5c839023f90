//! What a cell of a check has measured.

use std::collections::BTreeMap;

use crate::lab::experiment::spec::Metric;

pub(super) type Measured = BTreeMap<Metric, f64>;
