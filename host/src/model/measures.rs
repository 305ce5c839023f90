//! Measures of predictions that need all of them: R², errors, ROC AUC and calibration.

use serde::Serialize;

use crate::data::Task;
use crate::model::score::{probability, softmax};

/// Bins of [`Calibration`], of equal width.
const BINS: usize = 10;

/// What a score does not say of predictions; none where it does not suit the task.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Measures {
    /// `1 - sum (y - f)² / sum (y - mean y)²`, over all outputs; none where all labels are the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r2: Option<f64>,
    /// Root of the mean squared error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rmse: Option<f64>,
    /// Mean absolute error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mae: Option<f64>,
    /// Area under the ROC curve of two classes: how often a row of class 1 has the larger
    /// prediction than one of class 0, equal ones by half.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auc: Option<f64>,
    /// Whether probabilities are as often right as they say.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
}

/// Expected calibration error: of the predicted class of each row, by its probability.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// The mean over rows of `|share of right rows - mean probability|` of their bin.
    pub calibration_error: f64,
    /// Bins of probabilities from 0 to 1, of equal width.
    pub calibration_bins: Vec<CalibrationBin>,
}

/// The rows whose predicted class has a probability within a bin.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct CalibrationBin {
    /// How many.
    pub rows: usize,
    /// The mean probability of their predicted classes; 0 without rows.
    pub probability: f64,
    /// Fraction of them whose class is right; 0 without rows.
    pub accuracy: f64,
}

/// How good a class is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClassScore {
    /// Rows of the class.
    pub rows: usize,
    /// Of the rows that are predicted as the class, the fraction that is; none without such rows.
    pub precision: Option<f64>,
    /// Of the rows of the class, the fraction that is predicted so; none without rows.
    pub recall: Option<f64>,
}

impl ClassScore {
    /// That of every class, from `confusion[label][prediction]`.
    #[must_use]
    pub fn of(confusion: &[Vec<usize>]) -> Vec<Self> {
        let share = |part: usize, all: usize| (all > 0).then(|| part as f64 / all as f64);
        let class = |(class, row): (usize, &Vec<usize>)| {
            let (right, rows) = (row[class], row.iter().sum());
            let predicted = confusion.iter().map(|row| row[class]).sum();
            Self { rows, precision: share(right, predicted), recall: share(right, rows) }
        };
        confusion.iter().enumerate().map(class).collect()
    }
}

impl Measures {
    /// Those of so many outputs a row; `threshold` is the least prediction of class 1.
    pub(crate) fn new(
        task: Task,
        threshold: f32,
        outputs: usize,
        labels: &[f32],
        predictions: &[f32],
    ) -> Self {
        match task {
            Task::Regression => Self::of_numbers(outputs, labels, predictions),
            Task::Binary => Self {
                auc: auc(labels, predictions),
                calibration: calibration(labels.iter().zip(predictions).map(|(label, &f)| {
                    let p = probability(f, threshold);
                    let is_one = f >= threshold;
                    (if is_one { p } else { 1.0 - p }, is_one == (*label >= 0.5))
                })),
                ..Self::default()
            },
            Task::Multiclass => {
                let mut shares = Vec::new();
                let rows = labels.iter().zip(predictions.chunks(outputs.max(1)));
                let rows = rows.map(|(&label, scores)| {
                    softmax(scores, &mut shares);
                    let class = tamis::learn::loss::best(scores);
                    (shares[class], class == label as usize)
                });
                Self { calibration: calibration(rows), ..Self::default() }
            }
        }
    }

    fn of_numbers(outputs: usize, labels: &[f32], predictions: &[f32]) -> Self {
        let (outputs, n) = (outputs.max(1), labels.len().max(1) as f64);
        let mut means = vec![0.0; outputs];
        labels.iter().enumerate().for_each(|(k, y)| means[k % outputs] += f64::from(*y));
        means.iter_mut().for_each(|mean| *mean *= outputs as f64 / n);
        let (mut squares, mut spread, mut absolute) = (0.0, 0.0, 0.0);
        for (k, (&y, &f)) in labels.iter().zip(predictions).enumerate() {
            let error = f64::from(y) - f64::from(f);
            (squares, absolute) = (squares + error * error, absolute + error.abs());
            spread += (f64::from(y) - means[k % outputs]).powi(2);
        }
        Self {
            r2: (spread > 0.0).then(|| 1.0 - squares / spread),
            rmse: Some((squares / n).sqrt()),
            mae: Some(absolute / n),
            ..Self::default()
        }
    }
}

/// None where one class has no rows.
fn auc(labels: &[f32], predictions: &[f32]) -> Option<f64> {
    let mut rows: Vec<(f32, bool)> =
        predictions.iter().zip(labels).map(|(&f, &y)| (f, y >= 0.5)).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut below, mut pairs) = (0_usize, 0.0);
    for tie in rows.chunk_by(|a, b| a.0 == b.0) {
        let ones = tie.iter().filter(|(_, is_one)| *is_one).count();
        let zeros = tie.len() - ones;
        pairs += ones as f64 * (below as f64 + zeros as f64 / 2.0);
        below += zeros;
    }
    let ones = rows.len() - below;
    (below > 0 && ones > 0).then(|| pairs / (below as f64 * ones as f64))
}

/// From the probability of each row's predicted class, and whether it is right.
fn calibration(rows: impl Iterator<Item = (f64, bool)>) -> Option<Calibration> {
    let mut bins = vec![CalibrationBin::default(); BINS];
    for (probability, is_right) in rows {
        let bin = ((probability * BINS as f64) as usize).min(BINS - 1);
        bins[bin].rows += 1;
        bins[bin].probability += probability;
        bins[bin].accuracy += f64::from(u8::from(is_right));
    }
    let all: usize = bins.iter().map(|bin| bin.rows).sum();
    let mut error = 0.0;
    for bin in &mut bins {
        error += (bin.accuracy - bin.probability).abs();
        bin.accuracy /= bin.rows.max(1) as f64;
        bin.probability /= bin.rows.max(1) as f64;
    }
    let calibration_error = error / all.max(1) as f64;
    (all > 0).then_some(Calibration { calibration_error, calibration_bins: bins })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_r2_and_both_errors() {
        let own = Measures::new(Task::Regression, 0.5, 1, &[1.0, 2.0, 6.0], &[1.0, 4.0, 6.0]);
        assert_eq!((own.r2, own.mae), (Some(1.0 - 4.0 / 14.0), Some(2.0 / 3.0)));
        assert_eq!((own.rmse, own.auc), (Some((4.0_f64 / 3.0).sqrt()), None));
        // Two outputs, each around its own mean.
        let two = Measures::new(Task::Regression, 0.5, 2, &[0., 10., 2., 12.], &[1., 11., 1., 11.]);
        assert_eq!(two.r2, Some(0.0));
        let same = Measures::new(Task::Regression, 0.5, 1, &[3.0, 3.0], &[3.0, 3.0]);
        assert_eq!((same.r2, same.rmse), (None, Some(0.0)));
    }

    #[test]
    fn auc_counts_pairs_and_halves_ties() {
        assert_eq!(auc(&[0., 0., 1., 1.], &[0.1, 0.4, 0.35, 0.8]), Some(0.75));
        assert_eq!(auc(&[1., 0., 1.], &[0.5, 0.5, 0.5]), Some(0.5));
        assert_eq!(auc(&[1., 1.], &[0.5, 0.6]), None);
    }

    #[test]
    fn calibration_is_zero_only_where_probabilities_hold() {
        let half = calibration([(0.5, true), (0.5, false)].into_iter()).unwrap();
        assert_eq!(half.calibration_error, 0.0);
        assert_eq!(half.calibration_bins[5].rows, 2);
        let sure = calibration([(1.0, true), (1.0, false)].into_iter()).unwrap();
        assert_eq!(sure.calibration_error, 0.5);
    }

    #[test]
    fn precision_and_recall_are_those_of_confusion() {
        let [zero, one] = ClassScore::of(&[vec![3, 1], vec![0, 0]])[..] else { panic!() };
        assert_eq!((zero.rows, zero.precision, zero.recall), (4, Some(1.0), Some(0.75)));
        assert_eq!((one.rows, one.precision, one.recall), (0, Some(0.0), None));
    }
}
