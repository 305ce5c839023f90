//! A statement about the distribution of rows, from rows that were drawn from it.

use serde::Serialize;

use super::ascent::difference;
use crate::Result;
use crate::data::{Matrix, Task};
use crate::model::ModelFile;
use crate::model::score::threshold;

/// How sure [`FreshRows`] is.
const CONFIDENCE: f64 = 0.99;

/// The largest difference on n rows, and the share of all rows that it holds for, whatever their
/// distribution.
///
/// If the rows were drawn independently, and neither model was trained or chosen on them, then with
/// 99 % confidence at least the share `0.01^(1/n)` of the rows of their distribution differ by no
/// more than `largest`: were it less, n rows would all stay below with a probability of at most 1 %.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FreshRows {
    /// Rows, n.
    pub rows: usize,
    /// The largest difference of any output.
    pub largest: f64,
    /// Rows whose class is the same for both models; none where there are no classes.
    pub same_class: Option<usize>,
    /// `0.01^(1/n)`.
    pub share: f64,
    /// 0.99.
    pub confidence: f64,
}

impl FreshRows {
    /// Predicts all rows with both models.
    pub(super) fn new(a: &ModelFile, b: &ModelFile, data: &Matrix) -> Result<Self> {
        let (out_a, out_b) = (a.predict(data)?, b.predict(data)?);
        let outputs = out_a.len() / data.rows.max(1);
        let pairs = || out_a.chunks(outputs.max(1)).zip(out_b.chunks(outputs.max(1)));
        let (classes_a, classes_b) = (Classes::of(a)?, Classes::of(b)?);
        let same_class = classes_a.zip(classes_b).map(|(a, b)| {
            pairs().filter(|(out_a, out_b)| a.class(out_a) == b.class(out_b)).count()
        });
        Ok(Self {
            rows: data.rows,
            largest: pairs().map(|(a, b)| difference(a, b)).fold(0.0, f64::max),
            same_class,
            share: share(data.rows),
            confidence: CONFIDENCE,
        })
    }
}

fn share(rows: usize) -> f64 {
    ((1.0 - CONFIDENCE).ln() / rows.max(1) as f64).exp()
}

/// How outputs become a class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Classes {
    /// 1 from a threshold on, else 0.
    Two(f32),
    /// The place of the largest.
    Several,
}

impl Classes {
    /// Those of a model; none for regression, and where one output stands for nothing that is known.
    pub(super) fn of(model: &ModelFile) -> Result<Option<Self>> {
        Ok(match model.task()? {
            Some(Task::Multiclass) => Some(Self::Several),
            Some(Task::Binary) => threshold(model.open()?.task()).map(Self::Two),
            _ => None,
        })
    }

    /// The class of a prediction.
    pub(super) fn class(self, out: &[f32]) -> usize {
        match self {
            Self::Two(least) => usize::from(out.first().is_some_and(|out| *out >= least)),
            Self::Several => tamis::learn::loss::best(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_from_the_number_of_rows() {
        // 0.01^(1/n): of one row 1 %, of 459 rows 99 %.
        assert!((share(1) - 0.01).abs() < 1e-15 && (share(2) - 0.1).abs() < 1e-15);
        assert!(share(458) < 0.99 && share(459) > 0.99);
    }
}
