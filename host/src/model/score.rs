//! How good predictions are: mean squared error, PSNR, accuracy and the confusion matrix.

use std::fmt;

use serde::Serialize;
use tamis::store::wire;

use crate::data::Task;

/// The PSNR of a zero error, and the most that is ever reported, in dB.
pub const MAX_PSNR_DB: f64 = 200.0;

/// The score of predictions for a set of labels.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Score {
    /// Rows.
    pub n: usize,
    /// The mean of [`Self::loss_kind`].
    pub loss: f64,
    /// `cross-entropy` for several classes and where the prediction is the log-odds of class 1,
    /// else `squared error`.
    pub loss_kind: &'static str,
    /// `20 log10(max|y|) - 10 log10(loss)`, at most [`MAX_PSNR_DB`]; none where all labels are 0
    /// and the error is not, and none for a cross-entropy.
    pub psnr_db: Option<f64>,
    /// What a prediction of 0 for every row has as [`Self::psnr_db`]; none where that is none.
    pub zero_psnr_db: Option<f64>,
    /// The least prediction that is class 1; none but for two classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class_from: Option<f32>,
    /// Fraction of the rows whose class is right; none for regression.
    pub accuracy: Option<f64>,
    /// `confusion[label][prediction]` counts rows; none for regression.
    pub confusion: Option<Vec<Vec<usize>>>,
}

impl Score {
    /// The least prediction that is class 1, where a model does not say otherwise.
    pub const THRESHOLD: f32 = 0.5;

    /// The score of a whole set with the default threshold. The shorter length counts. For several
    /// classes there is one prediction per class and row; labels are below the number of classes.
    ///
    /// ```
    /// use tamis_host::model::Score;
    /// use tamis_host::data::Task;
    /// let score = Score::new(Task::Binary, &[0.0, 1.0, 1.0, 1.0], &[0.5, 0.5, 1.0, 0.0]);
    /// assert_eq!(score.loss, 1.5 / 4.0);
    /// assert_eq!(score.accuracy, Some(0.5));
    /// assert_eq!(score.confusion, Some(vec![vec![0, 1], vec![1, 2]]));
    /// ```
    #[must_use]
    pub fn new(task: Task, labels: &[f32], predictions: &[f32]) -> Self {
        let is_multiclass = task == Task::Multiclass;
        let outputs = if is_multiclass { predictions.len() / labels.len().max(1) } else { 1 };
        Self::stored(None, outputs, task, labels, predictions)
    }

    /// The score of so many outputs each, with the threshold that a model file has or the default.
    pub(crate) fn stored(
        stored: Option<wire::Task>,
        outputs: usize,
        task: Task,
        labels: &[f32],
        predictions: &[f32],
    ) -> Self {
        let mut tally = Tally::new(task, stored, outputs);
        tally.add(labels, predictions);
        tally.score()
    }
}

impl fmt::Display for Score {
    /// Accuracy and loss of classes; root mean squared error and PSNR of numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.accuracy {
            Some(share) => {
                write!(f, "accuracy {:.2} %, {} {:.4}", 100.0 * share, self.loss_kind, self.loss)?;
            }
            None => write!(f, "RMSE {:.4e}", self.loss.sqrt())?,
        }
        if let Some((own, zero)) = self.psnr_db.zip(self.zero_psnr_db) {
            write!(f, ", PSNR {own:.1} dB; a prediction of 0: {zero:.1} dB")?;
        }
        write!(f, "; {} rows", self.n)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Tally {
    task: Task,
    threshold: f32,
    outputs: usize,
    n: usize,
    losses: f64,
    squares: f64,
    peak: f32,
    confusion: Vec<Vec<usize>>,
}

impl Tally {
    /// The threshold is that of the stored task: 0 is that of log-odds, as `anneal` trains them.
    pub(crate) fn new(task: Task, stored: Option<wire::Task>, outputs: usize) -> Self {
        let (threshold, outputs) = (threshold(stored).unwrap_or(Score::THRESHOLD), outputs.max(1));
        let classes = if task == Task::Multiclass { outputs } else { 2 };
        let confusion = vec![vec![0; classes]; classes];
        Self { task, threshold, outputs, n: 0, losses: 0.0, squares: 0.0, peak: 0.0, confusion }
    }

    fn is_odds(&self) -> bool {
        self.task == Task::Binary && self.threshold == 0.0
    }

    /// Adds rows: a label for each prediction, or for each row of them where they are classes'.
    pub(crate) fn add(&mut self, labels: &[f32], predictions: &[f32]) {
        if self.task == Task::Multiclass {
            for (&label, outputs) in labels.iter().zip(predictions.chunks(self.outputs)) {
                self.losses += cross_entropy(outputs, label as usize);
                self.count(label as usize, tamis::learn::loss::best(outputs));
            }
            return;
        }
        for (&label, &prediction) in labels.iter().zip(predictions) {
            let is_one = label >= Score::THRESHOLD;
            self.losses += if self.is_odds() {
                let wrong = f64::from(if is_one { -prediction } else { prediction });
                wrong.max(0.0) + (-wrong.abs()).exp().ln_1p()
            } else {
                (f64::from(label) - f64::from(prediction)).powi(2)
            };
            self.squares += f64::from(label).powi(2);
            self.peak = self.peak.max(label.abs());
            self.count(is_one.into(), (prediction >= self.threshold).into());
        }
    }

    fn count(&mut self, label: usize, prediction: usize) {
        self.n += 1;
        if let Some(count) = self.confusion.get_mut(label).and_then(|row| row.get_mut(prediction)) {
            *count += 1;
        }
    }

    pub(crate) fn score(self) -> Score {
        let n = self.n.max(1) as f64;
        let is_entropy = self.task == Task::Multiclass || self.is_odds();
        let psnr = |loss| if is_entropy { None } else { psnr_db(f64::from(self.peak), loss) };
        let loss = self.losses / n;
        let right: usize = self.confusion.iter().enumerate().map(|(class, row)| row[class]).sum();
        let is_numbers = self.task == Task::Regression;
        Score {
            // Labels and predictions are those of all outputs.
            n: if is_numbers { self.n / self.outputs } else { self.n },
            loss,
            loss_kind: if is_entropy { "cross-entropy" } else { "squared error" },
            psnr_db: psnr(loss),
            zero_psnr_db: psnr(self.squares / n).filter(|_| self.peak > 0.0),
            class_from: (self.task == Task::Binary).then_some(self.threshold),
            accuracy: (!is_numbers).then_some(right as f64 / n),
            confusion: (!is_numbers).then_some(self.confusion),
        }
    }
}

/// The least prediction that is class 1; none but for a binary task.
pub(crate) fn threshold(task: Option<wire::Task>) -> Option<f32> {
    if let Some(wire::Task::Binary { threshold }) = task { Some(threshold) } else { None }
}

/// Two classes with the threshold for outputs of rows with these labels; the outputs are reordered.
pub(crate) fn two_classes(labels: &[f32], outputs: &mut [f32]) -> wire::Task {
    let mut zeros = 0;
    for (i, label) in labels.iter().enumerate().take(outputs.len()) {
        if *label < Score::THRESHOLD {
            outputs.swap(zeros, i);
            zeros += 1;
        }
    }
    let (zeros, ones) = outputs.split_at_mut(zeros);
    wire::Task::Binary { threshold: tamis::learn::loss::threshold(zeros, ones) }
}

pub(crate) fn psnr_db(peak: f64, loss: f64) -> Option<f64> {
    if loss == 0.0 {
        return Some(MAX_PSNR_DB);
    }
    let db = 20.0 * peak.log10() - 10.0 * loss.log10();
    db.is_finite().then_some(db.min(MAX_PSNR_DB))
}

/// The probability of class 1 that a prediction stands for: its sigmoid where the threshold is that
/// of log-odds, else the prediction itself, shifted so that the threshold is a half, cut to 0 to 1.
pub(crate) fn probability(prediction: f32, threshold: f32) -> f64 {
    let (prediction, threshold) = (f64::from(prediction), f64::from(threshold));
    if threshold == 0.0 {
        return 1.0 / (1.0 + (-prediction).exp());
    }
    (prediction - threshold + 0.5).clamp(0.0, 1.0)
}

/// The probabilities of classes with these scores.
pub(crate) fn softmax(outputs: &[f32], out: &mut Vec<f64>) {
    let top = outputs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    out.clear();
    out.extend(outputs.iter().map(|&score| (f64::from(score) - f64::from(top)).exp()));
    let total: f64 = out.iter().sum();
    out.iter_mut().for_each(|p| *p /= total);
}

fn cross_entropy(outputs: &[f32], label: usize) -> f64 {
    let Some(&own) = outputs.get(label) else { return f64::INFINITY };
    let top = outputs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let total: f64 = outputs.iter().map(|&out| (f64::from(out) - f64::from(top)).exp()).sum();
    total.ln() + f64::from(top) - f64::from(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn psnr_is_finite_or_absent() {
        assert_eq!(psnr_db(0.0, 0.0), Some(MAX_PSNR_DB));
        assert_eq!(psnr_db(10.0, 1e-2), Some(40.0));
        assert_eq!(psnr_db(1e30, 1e-300), Some(MAX_PSNR_DB));
        assert_eq!(psnr_db(0.0, 1.0), None);
        assert_eq!(psnr_db(1.0, f64::INFINITY), None);
    }

    #[test]
    fn chunks_add_up_to_the_whole() {
        let labels: Vec<f32> = (0..10).map(|i| (i % 2) as f32).collect();
        let predictions: Vec<f32> = (0..10).map(|i| i as f32 / 10.0).collect();
        let mut tally = Tally::new(Task::Binary, None, 1);
        tally.add(&labels[..3], &predictions[..3]);
        tally.add(&labels[3..], &predictions[3..]);
        let score = Score::new(Task::Binary, &labels, &predictions);
        assert_eq!(tally.score(), score);
        assert_eq!((score.n, score.confusion), (10, Some(vec![vec![3, 2], vec![2, 3]])));
        assert_eq!(Score::new(Task::Regression, &labels, &predictions).accuracy, None);
    }

    #[test]
    fn zero_threshold_is_that_of_log_odds() {
        let stored = Some(wire::Task::Binary { threshold: 0.0 });
        let score = Score::stored(stored, 1, Task::Binary, &[0.0, 1.0], &[-1e9, 0.0]);
        assert_eq!((score.accuracy, score.loss), (Some(1.0), 2.0_f64.ln() / 2.0));
    }

    #[test]
    fn the_score_is_that_of_the_softmax() {
        let outputs = [0.0, 0.0, 3.0, 1000.0, 1.0, 0.0];
        let score = Score::new(Task::Multiclass, &[0.0, 1.0, 1.0], &outputs);
        // ln 2, 0 and ln(1 + e)
        let expected = (2.0_f64.ln() + (1.0 + 1.0_f64.exp()).ln()) / 3.0;
        assert!((score.loss - expected).abs() < 1e-12, "{}", score.loss);
        assert_eq!(score.confusion, Some(vec![vec![1, 0], vec![1, 1]]));
        assert_eq!((score.accuracy, score.psnr_db), (Some(2.0 / 3.0), None));
    }

    #[test]
    fn rows_are_told_apart_by_their_labels() {
        let mut outputs = [0.3, 0.1, 0.3, 0.0, 0.3, 0.9, 0.3, 0.2, 0.3, 0.3];
        let labels = [1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0];
        let task = two_classes(&labels, &mut outputs);
        assert_eq!(task, wire::Task::Binary { threshold: 0.25 });
        assert_eq!(two_classes(&[], &mut []), wire::Task::BINARY);
    }
}
