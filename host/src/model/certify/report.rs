//! What a certificate says.

use serde::Serialize;

use super::fresh::FreshRows;
use crate::data::Task;

/// Bounds on one box.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowCertificate {
    /// The row that the box is around, counted from 0; 0 of the unit box.
    pub row: usize,
    /// No row of the box has a larger difference of any output: the least of `spectral`, `crown` and
    /// `difference`.
    pub upper: f64,
    /// A row of the box has this difference: it was found and predicted.
    pub lower: f64,
    /// The bound by the product of spectral norms.
    pub spectral: f64,
    /// The bound by joint CROWN.
    pub crown: f64,
    /// The bound by differences, neuron by neuron.
    pub difference: f64,
    /// The name of the least of the three.
    pub bound: &'static str,
    /// The class that the first model gives the row; none where there are no classes.
    pub class: Option<usize>,
    /// Whether both models provably give every row of the box this class; none where there are no
    /// classes.
    pub class_certain: Option<bool>,
}

impl RowCertificate {
    /// `upper / lower`; 1 where both are 0.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        if self.upper == self.lower { 1.0 } else { self.upper / self.lower }
    }
}

/// How far two models are apart, on boxes of rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Certificate {
    /// The first model.
    pub a: String,
    /// The second model.
    pub b: String,
    /// Numbers in one input row.
    pub inputs: usize,
    /// Numbers in one prediction.
    pub outputs: usize,
    /// What both were trained for.
    pub task: Option<Task>,
    /// Half the width of a box; none of the unit box.
    pub eps: Option<f64>,
    /// What boxes were cut to.
    pub range: Option<[f32; 2]>,
    /// Box by box.
    pub rows: Vec<RowCertificate>,
    /// The largest of all upper bounds.
    pub upper: f64,
    /// The median of upper bounds.
    pub median_upper: f64,
    /// The median of lower bounds.
    pub median_lower: f64,
    /// The median of [`RowCertificate::ratio`]; none where that is infinite.
    pub median_ratio: Option<f64>,
    /// Boxes on which the class is certain; none where there are no classes.
    pub class_certain: Option<usize>,
    /// What fresh rows say; none where there are none.
    pub fresh: Option<FreshRows>,
}
