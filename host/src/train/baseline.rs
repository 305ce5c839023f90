//! What a model is compared with: the same answer to every row, and a linear model of the same size.

use std::ops::ControlFlow;

use serde::Serialize;

use crate::Result;
use crate::base::Limits;
use crate::data::{Problem, Task};
use crate::operator::Stop;
use crate::train::budget::Budget;
use crate::train::driver::train_with;
use crate::train::dynamic_options::DynamicOptions;
use crate::train::options::{Options, Recipe};
use crate::train::report::Report;
use crate::train::trained::Start;

/// Numbers of the data up to which a linear model is trained for comparison, in about a second.
const MOST_NUMBERS: usize = 200_000;
/// The most nonzeros of it.
const MOST_NNZ: usize = 2000;
/// By how much of accuracy, or of the loss of regression, a linear model is clearly better.
const CLEAR: f64 = 0.01;

/// How good an obvious model is on the rows trained on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Baseline {
    /// Its nonzeros.
    pub nnz: usize,
    /// Share of the rows whose class is right; none for regression.
    pub accuracy: Option<f64>,
    /// Mean squared error of regression; none for classes.
    pub loss: Option<f64>,
}

/// Obvious models for some rows.
///
/// ```
/// use tamis_host::data::{Matrix, Problem, Task, Values};
/// use tamis_host::{Budget, train::Baselines};
/// let data = Matrix::new(4, 1, Values::F32(vec![0.0, 1.0, 2.0, 3.0]))?;
/// let problem = Problem { data, labels: vec![0.0, 0.0, 0.0, 1.0], task: Task::Binary };
/// let baselines = Baselines::constant(&problem);
/// assert_eq!(baselines.constant.accuracy, Some(0.75));
/// # Ok::<(), tamis_host::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Baselines {
    /// The class of the most rows, or the mean, whatever the row.
    pub constant: Baseline,
    /// A linear or logistic model of as many nonzeros; none where it would take long.
    pub linear: Option<Baseline>,
    /// The class of the most rows.
    #[serde(skip)]
    pub majority: Option<usize>,
}

impl Baselines {
    /// The class of the most rows, or the mean.
    #[must_use]
    pub fn constant(problem: &Problem) -> Self {
        let (labels, outputs) = (&problem.labels, problem.outputs().max(1));
        let rows = (labels.len() / outputs).max(1) as f64;
        let classes = problem.class_rows();
        // Of equal ones the first.
        let majority = (0..classes.len()).rev().max_by_key(|&class| classes[class]);
        let variance = |output: usize| {
            let of = || labels.iter().skip(output).step_by(outputs).map(|&y| f64::from(y));
            let mean = of().sum::<f64>() / rows;
            of().map(|y| (y - mean).powi(2)).sum::<f64>() / rows
        };
        let is_regression = problem.task == Task::Regression;
        let loss = || (0..outputs).map(variance).sum::<f64>() / outputs as f64;
        let constant = Baseline {
            nnz: outputs,
            accuracy: majority.map(|class| classes[class] as f64 / rows),
            loss: is_regression.then(loss),
        };
        Self { constant, linear: None, majority }
    }

    /// Whether a linear model is trained in about a second: for data up to 200,000 numbers, and a run
    /// without limits. Of a linear model there is none beside it.
    #[must_use]
    pub fn is_cheap(problem: &Problem, options: &Options) -> bool {
        let numbers = problem.data.rows * problem.data.cols;
        let outputs = problem.network_outputs();
        let is_few = |nnz| (outputs..=MOST_NNZ).contains(&nnz) && numbers <= MOST_NUMBERS;
        let is_few = matches!(options.budget, Budget::Nonzeros(nnz) if is_few(nnz));
        is_few && options.limits == Limits::NONE && !options.is_linear()
    }

    /// The same with a linear model of as many nonzeros as the options say.
    ///
    /// # Errors
    /// Those of training.
    pub fn with_linear(self, problem: &Problem, options: &Options, stop: &Stop) -> Result<Self> {
        let linear = Options {
            hidden: vec![0],
            recipe: Recipe::Dynamic(DynamicOptions::default()),
            seed: options.seed,
            threads: options.threads,
            ..Options::new(options.budget)
        }
        .within(problem);
        let trained =
            train_with(problem.clone(), &linear, Start::Zero, stop, |_| ControlFlow::Continue(()))?;
        Ok(Self { linear: Some(Baseline::of(&trained.report)), ..self })
    }

    /// What of them a model is not better than.
    #[must_use]
    pub fn beats(&self, report: &Report) -> Option<Beaten> {
        let own = Baseline::of(report);
        let is_one_class = self.constant.accuracy == Some(1.0) || self.constant.loss == Some(0.0);
        if !is_one_class && !own.is_better(&self.constant, 0.0) {
            return Some(Beaten::Constant);
        }
        let linear = self.linear.filter(|linear| linear.is_better(&own, CLEAR));
        linear.map(|_| Beaten::Linear)
    }
}

/// An obvious model that a trained one is not better than.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beaten {
    /// The same answer to every row.
    Constant,
    /// A linear model of the same size, by a percent or more.
    Linear,
}

impl Baseline {
    fn of(report: &Report) -> Self {
        let is_regression = report.task == Task::Regression;
        Self {
            nnz: report.nnz,
            accuracy: report.accuracy,
            loss: is_regression.then_some(report.loss),
        }
    }

    /// Whether it is better by more than `by`: of accuracy, or of the other's loss.
    fn is_better(&self, other: &Self, by: f64) -> bool {
        match (self.accuracy, other.accuracy, self.loss, other.loss) {
            (Some(own), Some(other), ..) => own > other + by,
            (_, _, Some(own), Some(other)) => own < other * (1.0 - by),
            // Nothing to compare.
            _ => by == 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Matrix, Values};

    fn problem(labels: &[f32], task: Task) -> Problem {
        let rows = labels.len();
        let data = Matrix::new(rows, 1, Values::F32((0..rows).map(|k| k as f32).collect()));
        Problem { data: data.unwrap(), labels: labels.to_vec(), task }
    }

    #[test]
    fn constant_is_majority_or_mean() {
        let classes = Baselines::constant(&problem(&[2.0, 0.0, 2.0, 1.0], Task::Multiclass));
        assert_eq!((classes.constant.accuracy, classes.majority), (Some(0.5), Some(2)));
        let numbers = Baselines::constant(&problem(&[1.0, 3.0], Task::Regression));
        assert_eq!((numbers.constant.loss, numbers.majority), (Some(1.0), None));
    }

    #[test]
    fn baselines_tell_models_that_are_no_better() {
        let rows = problem(&(0..40).map(|k| k as f32).collect::<Vec<_>>(), Task::Regression);
        let options = Options { hidden: vec![2], ..Options::new(Budget::nnz(4)) };
        assert!(Baselines::is_cheap(&rows, &options));
        let constant = Baselines::constant(&rows);
        let baselines = constant.with_linear(&rows, &options, &Stop::new()).unwrap();
        let linear = baselines.linear.unwrap();
        // A line is fitted.
        assert!(linear.loss.unwrap() < 0.01 * baselines.constant.loss.unwrap(), "{linear:?}");
        let own = crate::train(&rows, Options { hidden: vec![0], ..options }).unwrap().report;
        assert_eq!(baselines.beats(&own), None);
        let with = |loss: f64| baselines.beats(&Report { loss, ..own.clone() });
        assert_eq!(with(2.0 * linear.loss.unwrap() + 1.0), Some(Beaten::Linear));
        assert_eq!(with(baselines.constant.loss.unwrap()), Some(Beaten::Constant));
    }
}
