//! What is learnt from: samples and labels, from files, selected and mapped to what the task needs.

use std::ops::Range;

use serde::Serialize;

use crate::data::{Matrix, Table, Values, classes, select};
use crate::{Error, Result};
use tamis::base::rng::{Permutation, stream};
use tamis::store::wire;

/// What the output of the network stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// A number, or several; squared loss
    Regression,
    /// Two classes: squared loss to 0 and 1, or the log-odds of class 1
    Binary,
    /// Classes 0, 1, …: cross-entropy of the softmax of one output per class
    Multiclass,
}

impl Task {
    /// As `--task` calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        ["regression", "binary", "multiclass"][self as usize]
    }

    /// What a model file says of a binary task whose output is the log-odds of class 1.
    pub const LOG_ODDS: wire::Task = wire::Task::Binary { threshold: 0.0 };

    /// What a model file says of it; of a binary one that its output is fitted to labels 0 and 1.
    #[must_use]
    pub const fn stored(self) -> wire::Task {
        match self {
            Self::Regression => wire::Task::Regression,
            Self::Binary => wire::Task::BINARY,
            Self::Multiclass => wire::Task::Multiclass,
        }
    }
}

/// Samples, their labels and what these mean.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// n×d samples.
    pub data: Matrix,
    /// n labels; 0 or 1 for [`Task::Binary`], 0, 1, … for [`Task::Multiclass`]. For
    /// [`Task::Regression`] perhaps several for each row, n×c row by row: see [`Self::outputs`].
    pub labels: Vec<f32>,
    /// What they mean.
    pub task: Task,
}

pub(super) fn check_binary(labels: &[f32]) -> Result<()> {
    match labels.iter().position(|label| !is_class(label)) {
        None => Ok(()),
        Some(row) => Err(Error::new("a label is outside the binary task")
            .mismatch("0 or 1", format_args!("{} in row {row} (counted from 0)", labels[row]))
            .help("name the two classes with --keep-labels A,B, or use --task regression")),
    }
}

impl Table {
    /// Samples and labels, which are the column `name`, or its number counted from 1. The task is
    /// binary where all labels are 0 or 1, else regression; [`Problem::with_task`] says otherwise.
    ///
    /// # Errors
    /// No such column, several of that name, or no other column.
    pub fn target(self, name: &str) -> Result<Problem> {
        let (data, labels) = self.split(name)?;
        let is_binary = labels.iter().all(is_class);
        Ok(Problem { data, labels, task: if is_binary { Task::Binary } else { Task::Regression } })
    }
}

impl Problem {
    /// The rows of each class; none of numbers.
    pub(crate) fn class_rows(&self) -> Vec<usize> {
        if self.task == Task::Regression {
            return Vec::new();
        }
        let largest = self.labels.iter().copied().fold(0.0, f32::max);
        let mut counts = vec![0; largest as usize + 1];
        self.labels.iter().for_each(|&label| counts[label as usize] += 1);
        counts
    }

    /// The same for another task.
    ///
    /// # Errors
    /// The labels are not 0 and 1 for a binary task, or not classes 0, 1, … for a multiclass one.
    pub fn with_task(mut self, task: Task) -> Result<Self> {
        if task != Task::Regression {
            self.labels = classes::labels(self.labels, None)?;
        }
        if task == Task::Binary {
            check_binary(&self.labels)?;
        }
        Ok(Self { task, ..self })
    }

    /// Splits the rows at random, by a seed: this share to train on, the others to test on.
    ///
    /// # Errors
    /// A share that leaves either side without rows.
    ///
    /// ```
    /// use tamis_host::data::{Matrix, Problem, Task, Values};
    /// let data = Matrix::new(5, 1, Values::F32(vec![0.0, 1.0, 2.0, 3.0, 4.0]))?;
    /// let all = Problem { data, labels: vec![0.0, 1.0, 2.0, 3.0, 4.0], task: Task::Regression };
    /// let (train, test) = all.split(0.8, 1)?;
    /// assert_eq!((train.data.rows, test.data.rows), (4, 1));
    /// assert_eq!(train.data.values.into_f32(), train.labels);
    /// # Ok::<(), tamis_host::Error>(())
    /// ```
    pub fn split(self, share: f64, seed: u64) -> Result<(Self, Self)> {
        let rows = self.data.rows;
        let first = (rows as f64 * share).round() as usize;
        if first == 0 || first >= rows {
            return Err(Error::new("a split leaves no rows on one side")
                .expected("a share above 0 and below 1, of rows enough")
                .got(format_args!("{share} of {rows} rows"))
                .help("0.8 trains on four fifths"));
        }
        let order = Permutation::new(seed, stream::ROWS, rows);
        let subset = |range: Range<usize>| self.rows(range.map(|k| order.get(k)).collect());
        Ok((subset(0..first)?, subset(first..rows)?))
    }

    /// The data set of these rows, in this order.
    pub(crate) fn rows(&self, chosen: Vec<usize>) -> Result<Self> {
        let width = self.outputs();
        let labels = chosen.iter().flat_map(|row| &self.labels[row * width..(row + 1) * width]);
        let labels = labels.copied().collect();
        Ok(Self { data: select::gather(self.data.clone(), chosen)?, labels, task: self.task })
    }

    /// Labels of a row; more than one for a network of several outputs.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.labels.len() / self.data.rows.max(1)
    }

    /// Whether its network has several outputs: several labels a row, or several classes.
    #[must_use]
    pub fn has_several_outputs(&self) -> bool {
        self.task == Task::Multiclass || self.outputs() > 1
    }

    /// c, the number of classes of a multiclass task: one more than the largest label.
    #[must_use]
    pub fn classes(&self) -> Option<usize> {
        let largest = self.labels.iter().copied().fold(0.0, f32::max);
        (self.task == Task::Multiclass).then_some(largest as usize + 1)
    }

    /// Outputs of a network with output weights: one for each class, else one for each label of a row.
    #[must_use]
    pub fn network_outputs(&self) -> usize {
        self.classes().unwrap_or_else(|| self.outputs())
    }

    /// Checks that there is something to learn, and that sums of squares are 32-bit floats.
    ///
    /// # Errors
    /// All labels of a binary task are the same, a class has no rows, the number of labels does not
    /// fit rows and task, or a column or the labels are too large.
    pub fn check(&self) -> Result<()> {
        self.check_inputs()?;
        self.check_labels()
    }

    pub(super) fn check_inputs(&self) -> Result<()> {
        let Values::F32(values) = &self.data.values else { return Ok(()) };
        check_columns("the inputs", self.data.cols, |see| {
            values.chunks(self.data.cols.max(1)).for_each(see);
            Ok(())
        })
    }

    /// The same for a model that is there: not all of its classes need rows.
    pub(crate) fn check_for_model(&self) -> Result<()> {
        self.check_inputs()?;
        self.check_label_count()?;
        self.check_several()
    }

    pub(super) fn check_labels(&self) -> Result<()> {
        self.check_label_count()?;
        self.check_several()?;
        self.classes().map_or(Ok(()), |classes| classes::check(&self.labels, classes))
    }

    fn check_several(&self) -> Result<()> {
        match self.task {
            Task::Regression => Ok(()),
            Task::Binary => classes::check_several(&self.labels, "labels 0 and 1"),
            Task::Multiclass => {
                classes::check_several(&self.labels, "labels of at least two classes, 0, 1, …")
            }
        }
    }

    fn check_label_count(&self) -> Result<()> {
        let (rows, labels, outputs) = (self.data.rows, self.labels.len(), self.outputs());
        if labels != rows * outputs
            || outputs == 0
            || (outputs > 1 && self.task != Task::Regression)
        {
            let expected =
                if self.task == Task::Regression { "one, or as many for every row" } else { "one" };
            return Err(Error::new("the number of labels does not fit the samples")
                .expected(format_args!("{expected}, for {rows} rows"))
                .got(format_args!("{labels} labels"))
                .help("pass the labels that belong to the data, in the same order"));
        }
        if self.labels.iter().map(|&y| f64::from(y).powi(2)).sum::<f64>() > MOST {
            return Err(too_large("the column of the labels", self.labels.iter(), outputs));
        }
        Ok(())
    }

    /// Bytes of samples and labels.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.data.values.bytes() + size_of_val(&self.labels[..])
    }
}

/// The largest sum of squares of a column or of the labels, with room for the sums of their
/// products.
const MOST: f64 = f32::MAX as f64 / 65536.0;

/// Checks that the sums of squares of columns stay within the range of 32-bit floats; `rows` shows
/// all rows of `inputs`, which have so many numbers, as often as it is asked.
pub(crate) fn check_columns(
    inputs: &str,
    cols: usize,
    rows: impl Fn(&mut dyn FnMut(&[f32])) -> Result<()>,
) -> Result<()> {
    let mut norms = vec![0.0; cols];
    rows(&mut |row| {
        norms.iter_mut().zip(row).for_each(|(norm, x)| *norm += f64::from(*x).powi(2));
    })?;
    let Some(col) = norms.iter().position(|&norm| norm > MOST) else { return Ok(()) };
    let mut column = Vec::new();
    rows(&mut |row| column.extend(row.get(col)))?;
    Err(too_large(&format!("column {} of {inputs}", col + 1), column.iter(), 1))
}

/// Numbers whose squares leave the range of floats, so many a row; `column` is not empty.
fn too_large<'a>(
    what: &str,
    column: impl ExactSizeIterator<Item = &'a f32>,
    numbers: usize,
) -> Error {
    let most = (MOST / column.len() as f64).sqrt();
    let (row, value) =
        column.enumerate().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs())).unwrap_or((0, &0.0));
    Error::new(format!("{what} has numbers that are too large to be squared"))
        .expected(format_args!("magnitudes up to about {most:.0e}"))
        .got(format_args!("{value:e} in row {} (counted from 0)", row / numbers.max(1)))
        .help("divide the column by its largest magnitude, or take out the row if it is wrong")
}

fn is_class(label: &f32) -> bool {
    [0.0, 1.0].contains(label)
}
