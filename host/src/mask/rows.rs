//! The rows that scores are computed on.

use clap::ValueEnum;

use crate::data::random_rows::{Moments, RandomRows};
use crate::data::{Matrix, Problem, Task, Values};
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
}

impl ScoredRows {
    /// Rows with labels: the first `rows` of them, or all.
    ///
    /// # Errors
    /// No rows, or labels outside the task.
    pub fn labelled(problem: Problem, rows: Option<usize>) -> Result<Self> {
        problem.check()?;
        let rows = rows.unwrap_or(problem.data.rows).min(problem.data.rows);
        let problem = problem.rows((0..rows).collect())?;
        let scale = if problem.data.is_bytes() { 1.0 / 256.0 } else { 1.0 };
        Ok(Self { problem, scale })
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
    /// More values than can be counted.
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
        let random = RandomRows { rows, inputs, outputs, task, moments, seed };
        let problem = match kind {
            RandomData::Normal => random.dense()?,
            RandomData::Sparse => random.sparse()?,
        };
        Ok(Self { problem, scale: 1.0 })
    }

    /// Numbers of a row.
    pub(crate) fn inputs(&self) -> usize {
        self.problem.data.cols
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
        let scale = self.scale;
        let values = match &data.values {
            Values::F32(values) => ones(values, data.cols, |&x| scale * x),
            Values::U8(values) => ones(values, data.cols, |&x| scale * f32::from(x)),
        };
        let data = Matrix::new(data.rows, data.cols + 1, Values::F32(values))?;
        Ok(Self { problem: Problem { data, labels: labels.clone(), task: *task }, scale: 1.0 })
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

    /// Checks that a network of these widths takes the rows, and gives what their labels need.
    pub(crate) fn check(&self, widths: &[usize]) -> Result<()> {
        let (inputs, outputs) = (widths[0], widths[widths.len() - 1]);
        if self.inputs() != inputs {
            return Err(Error::new("the rows do not fit the network")
                .mismatch(format_args!("rows of {inputs} numbers"), self.inputs())
                .help("pass the data that the network is for"));
        }
        Ok(()).and_then(|()| match self.problem.task {
            Task::Multiclass if outputs < self.problem.classes().unwrap_or(0) => Err(Error::new(
                "the network has fewer outputs than there are classes",
            )
            .mismatch(format_args!("{} outputs", self.problem.classes().unwrap_or(0)), outputs)),
            Task::Binary if outputs != 1 => Err(Error::new("two classes need one output")
                .mismatch("1 output for --task binary", outputs)
                .help("pass --task multiclass for an output a class")),
            _ => Ok(()),
        })
    }

    /// Checks that the labels are of the network's outputs, for scores that use them.
    pub(crate) fn check_labels(&self, outputs: usize) -> Result<()> {
        if self.problem.task == Task::Regression && self.problem.outputs() != outputs {
            return Err(Error::new("the labels do not fit the network")
                .mismatch(
                    format_args!("{outputs} labels a row, one for each output"),
                    self.problem.outputs(),
                )
                .help("pass the labels that the network is for, or the right --task"));
        }
        Ok(())
    }
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

fn ones<T>(values: &[T], cols: usize, value: impl Fn(&T) -> f32) -> Vec<f32> {
    values.chunks(cols.max(1)).flat_map(|row| row.iter().map(&value).chain([1.0])).collect()
}
