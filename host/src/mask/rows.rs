//! The rows that scores are computed on.

use clap::ValueEnum;

use crate::base::check_setting;
use crate::base::memory::room_for;
use crate::data::random_rows::{Moments, RandomRows};
use crate::data::{Matrix, Problem, Task, Values};
use crate::train::dense::DensePlace;
use crate::train::dense::pass::Batch;
use crate::{Error, Result};

/// Random rows in place of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RandomData {
    /// Normal numbers with the mean and standard deviation of the data
    Normal,
    /// The same, but every input is 0 in all rows but one
    Sparse,
}

/// Rows that scores are computed on, bytes as fractions of 256.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoredRows {
    problem: Problem,
    scale: f32,
    place: DensePlace,
}

impl ScoredRows {
    /// Rows with labels: the first `rows` of them, or all.
    ///
    /// # Errors
    /// No rows, or labels outside the task.
    pub fn labelled(problem: Problem, rows: Option<usize>) -> Result<Self> {
        problem.check()?;
        check_rows(rows)?;
        let problem = match rows {
            Some(rows) if rows < problem.data.rows => problem.rows((0..rows).collect())?,
            _ => problem,
        };
        let problem = log_odds(problem);
        let scale = if problem.data.is_bytes() { 1.0 / 256.0 } else { 1.0 };
        Ok(Self { problem, scale, place: DensePlace::default() })
    }

    /// Rows for scores that use no labels.
    ///
    /// # Errors
    /// As [`Self::labelled`].
    pub fn unlabelled(data: Matrix, rows: Option<usize>) -> Result<Self> {
        let labels = vec![0.0; data.rows];
        Self::labelled(Problem { data, labels, task: Task::Regression }, rows)
    }

    /// Random rows with random labels for a network of `outputs` outputs, with mean and standard
    /// deviation of the data where there are some.
    ///
    /// # Errors
    /// No rows, or more than there is memory for.
    pub fn random(
        kind: RandomData,
        like: Option<&Self>,
        size: RandomSize,
        task: Task,
        seed: u64,
    ) -> Result<Self> {
        let moments =
            like.map_or(Moments::STANDARD, |own| Moments::of(&own.problem.data, own.scale));
        let RandomSize { rows, inputs, outputs } = size;
        check_rows(Some(rows))?;
        if let Some(own) = like.filter(|own| own.problem.data.cols != inputs) {
            return Err(other_width(inputs, own.problem.data.cols));
        }
        let bytes = (rows as u64).saturating_mul(4 * inputs as u64);
        room_for("the random rows", bytes, "pass a smaller --rows")?;
        let random = RandomRows { rows, inputs, outputs, task, moments, seed };
        let problem = match kind {
            RandomData::Normal => random.dense()?,
            RandomData::Sparse => random.sparse()?,
        };
        let place = like.map(|own| own.place.clone()).unwrap_or_default();
        Ok(Self { problem: log_odds(problem), scale: 1.0, place })
    }

    /// The same, with their scores computed there.
    #[must_use]
    pub fn on(self, place: DensePlace) -> Self {
        Self { place, ..self }
    }

    pub(crate) const fn place(&self) -> &DensePlace {
        &self.place
    }

    pub(crate) fn count(&self) -> usize {
        self.problem.data.rows
    }

    pub(crate) fn bytes(&self) -> usize {
        self.problem.bytes()
    }

    pub(crate) fn batch(&self) -> Batch<'_> {
        Batch { set: &self.problem, rows: 0..self.count(), order: None, scale: self.scale }
    }

    /// The same rows with a last column of ones.
    pub(crate) fn with_ones(&self) -> Result<Self> {
        let Problem { data, labels, task } = &self.problem;
        let data = data.with_ones(self.scale)?;
        let problem = Problem { data, labels: labels.clone(), task: *task };
        Ok(Self { problem, scale: 1.0, place: self.place.clone() })
    }

    /// Root mean square of each input, or its standard deviation.
    pub(crate) fn sizes(&self, centred: bool) -> Vec<f32> {
        let Matrix { rows, cols, values } = &self.problem.data;
        let (mut sum, mut squares) = (vec![0.0_f64; *cols], vec![0.0_f64; *cols]);
        let mut add = |at: usize, x: f64| {
            sum[at % cols] += x;
            squares[at % cols] += x * x;
        };
        match values {
            Values::F32(values) => {
                values.iter().enumerate().for_each(|(at, &x)| add(at, f64::from(x)));
            }
            Values::U8(values) => {
                values.iter().enumerate().for_each(|(at, &x)| add(at, f64::from(x)));
            }
        }
        let n = (*rows).max(1) as f64;
        let size = |(sum, squares): (&f64, &f64)| {
            let mean = if centred { sum / n } else { 0.0 };
            // Rounding must not make a constant input vary.
            let square = squares / n - mean * mean;
            let least = 1e-12 * squares / n;
            if square > least { (f64::from(self.scale) * square.sqrt()) as f32 } else { 0.0 }
        };
        sum.iter().zip(&squares).map(size).collect()
    }

    /// Checks that a network of these widths takes the rows, and gives what their labels need where
    /// these are used.
    pub(crate) fn check(&self, widths: &[usize], uses_labels: bool) -> Result<()> {
        let (inputs, outputs) = (widths[0], widths[widths.len() - 1]);
        let Problem { data, task, .. } = &self.problem;
        if data.cols != inputs {
            return Err(other_width(inputs, data.cols));
        }
        let labels = self.problem.network_outputs();
        let fits = match task {
            Task::Regression => labels == outputs,
            // One output is the log-odds of class 1.
            _ => labels <= outputs.max(2),
        };
        if uses_labels && !fits {
            let needed = if *task == Task::Regression { "one a label" } else { "one a class" };
            return Err(Error::new("the labels do not fit the network")
                .expected(format_args!("{labels} outputs, {needed}"))
                .got(outputs)
                .help("pass the labels that the network is for, or the right --task"));
        }
        Ok(())
    }
}

fn other_width(inputs: usize, cols: usize) -> Error {
    Error::new("the rows do not fit the network")
        .mismatch(format_args!("rows of {inputs} numbers"), cols)
        .help("pass the data that the network is for")
}

fn check_rows(rows: Option<usize>) -> Result<()> {
    let help = "leave --rows out for the default";
    check_setting(rows != Some(0), "--rows 1 or more", 0, help)
}

/// Two classes as those of one output, which is the log-odds of class 1.
fn log_odds(mut problem: Problem) -> Problem {
    if problem.task == Task::Binary {
        problem.task = Task::Multiclass;
    }
    problem
}

/// Size of random rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomSize {
    /// Rows.
    pub rows: usize,
    /// Numbers of a row.
    pub inputs: usize,
    /// Outputs of the network.
    pub outputs: usize,
}
