//! Files to learn from: which rows of them, their labels, and what these mean.

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::data::columns::Columns;
use crate::data::labels::{Settled, Wanted, label_column, settle};
use crate::data::layout::no_target;
use crate::data::load::{self, files};
use crate::data::problem::check_binary;
use crate::data::request::{RawLabels, Reading, Request, TableOptions};
use crate::data::tabular::{self, ReadTable};
use crate::data::{Matrix, Problem, Task, Values, classes, oddities, select};
use crate::{Error, Result};

/// Where the labels are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Labels {
    /// In a file of their own; several, separated by commas, follow each other.
    File(PathBuf),
    /// In a column of the data: its name, or its number counted from 1.
    Column(String),
}

/// Which rows of which files to take.
#[derive(Debug, Clone, PartialEq)]
pub struct DataFiles {
    /// A file of any format that [`load`](fn@super::load) reads; several, separated by commas, follow each
    /// other.
    pub data: PathBuf,
    /// Where the labels are.
    pub labels: Labels,
    /// Only rows with these labels, as they stand in the file.
    pub keep: Option<Vec<String>>,
    /// Only these occurrences of each label, in order of the labels (see
    /// [`select::rows_per_label`]).
    pub rows_per_label: Option<Range<usize>>,
    /// How the cells of a table are taken.
    pub table: TableOptions,
}

/// Labelled rows of files, and what was found of their columns.
#[derive(Debug)]
pub struct Loaded {
    /// Samples and labels.
    pub problem: Problem,
    /// The columns and classes; none that say nothing.
    pub columns: Columns,
    /// What there is to say of the table: missing cells, columns that carry nothing.
    pub notes: Vec<String>,
}

/// Rows of files without labels.
#[derive(Debug)]
pub struct Rows {
    /// The samples.
    pub matrix: Matrix,
    /// What there is to say of the table.
    pub notes: Vec<String>,
}

impl Rows {
    /// Reads samples as `reading` has it; a column `target` is left out where there is one.
    ///
    /// # Errors
    /// A file cannot be read or is damaged; columns of the model are missing.
    pub fn load(
        data: &Path,
        target: Option<&str>,
        reading: Reading<'_>,
        options: &TableOptions,
    ) -> Result<Self> {
        let request = Request { reading, target, labelled: false, options, keep: None };
        match tabular::read(&files(data)?, &request)? {
            Some(table) => Ok(Self { matrix: table.matrix, notes: table.notes }),
            None => Ok(Self { matrix: plain(data, target)?.0, notes: Vec::new() }),
        }
    }
}

/// The samples of files that are no CSV, and the labels that are a column of them.
fn plain(data: &Path, target: Option<&str>) -> Result<(Matrix, Vec<f32>)> {
    let table = super::Table::read(data)?;
    match target {
        Some(target) => table.split(target).map_err(|error| error.at(data)),
        None => Ok((table.matrix, Vec::new())),
    }
}

impl DataFiles {
    /// All rows of these files.
    #[must_use]
    pub fn new(data: PathBuf, labels: Labels) -> Self {
        Self { data, labels, keep: None, rows_per_label: None, table: TableOptions::default() }
    }

    /// Reads rows to learn from. Without a task it is found in the labels: text and columns of at
    /// most 20 different whole numbers are classes, all others a regression.
    ///
    /// For a binary or multiclass task, kept labels become 0, 1, … in the order given; without,
    /// the labels of a text file in the order of the alphabet or of the numbers, and those of other
    /// files must be such numbers. A file of several columns of labels is for regression, of all
    /// rows.
    ///
    /// # Errors
    /// A file cannot be read or is damaged, the numbers of samples and labels differ, a label is
    /// missing or outside the task.
    pub fn load(&self, task: Option<Task>) -> Result<Problem> {
        self.load_as(task, Reading::Learn).map(|loaded| loaded.problem)
    }

    /// Reads rows as [`load`](Self::load), with columns and classes as `reading` has them.
    ///
    /// # Errors
    /// As [`load`](Self::load); columns or classes that the model does not have.
    pub fn load_as(&self, task: Option<Task>, reading: Reading<'_>) -> Result<Loaded> {
        if let (Some(Task::Binary), Some(keep)) = (task, &self.keep)
            && keep.len() != 2
        {
            return Err(Error::new("a binary task has two classes")
                .mismatch("two labels to keep, such as 0,1", format_args!("{} labels", keep.len()))
                .help("name two labels, or use --task regression"));
        }
        let paths = files(&self.data)?;
        let column = match &self.labels {
            Labels::Column(name) => Some(name.as_str()),
            Labels::File(_) => None,
        };
        let request = Request {
            reading,
            target: column.filter(|name| !name.is_empty()),
            labelled: column.is_some(),
            options: &self.table,
            keep: None,
        };
        match &self.labels {
            Labels::Column(name) => match tabular::read(&paths, &request)? {
                Some(mut table) => {
                    let labels = table.labels.take().unwrap_or_default();
                    let settled = self.settle(labels, task, reading, true)?;
                    let rows = self.choose(&settled)?;
                    self.finish(settled, rows, table)
                }
                None if name.is_empty() => Err(no_target(&[]).at(&self.data)),
                None => {
                    let (data, values) = plain(&self.data, Some(name))?;
                    let labels = RawLabels { values, texts: Vec::new() };
                    let settled = self.settle(labels, task, reading, false)?;
                    let rows = self.choose(&settled)?;
                    self.finish(settled, rows, matrix_alone(data))
                }
            },
            Labels::File(path) => self.load_beside(path, &paths, task, &request),
        }
    }

    /// Reads rows whose labels are in a file of their own.
    fn load_beside(
        &self,
        path: &Path,
        paths: &[PathBuf],
        task: Option<Task>,
        request: &Request<'_>,
    ) -> Result<Loaded> {
        let (labels, is_text) = match label_column(&files(path)?)? {
            Some(labels) => (labels, true),
            None => {
                let labels = super::load(path)?;
                if labels.cols > 1 && matches!(task, None | Some(Task::Regression)) {
                    self.check_several(labels.cols).map_err(|error| error.at(path))?;
                    return self.load_several(labels, paths, request);
                }
                let values = labels.into_column().map_err(|error| error.at(path))?;
                (RawLabels { values, texts: Vec::new() }, false)
            }
        };
        let mut settled = self.settle(labels, task, request.reading, is_text)?;
        let chosen = self.choose(&settled)?;
        let all = settled.values.len();
        let keep = chosen.as_deref().map(|rows| select::mask(rows, all)).transpose()?;
        let Some(table) = tabular::read(paths, &Request { keep: keep.as_deref(), ..*request })?
        else {
            let labels = Matrix { rows: all, cols: 1, values: Values::F32(settled.values) };
            let (data, values) = super::load_beside(&self.data, path, labels, chosen)?;
            settled.values = values;
            return self.finish(settled, None, matrix_alone(data));
        };
        if table.seen != all {
            return Err(load::other_number(table.seen, all).at(path));
        }
        // The rows of the table are those kept and not dropped, in the order of the files.
        let is_there = |row: &usize| {
            keep.as_ref().is_none_or(|keep| keep[*row]) && table.dropped.binary_search(row).is_err()
        };
        let there: Vec<usize> = (0..all).filter(is_there).collect();
        let order = chosen.map(|rows| {
            rows.iter().filter_map(|row| there.binary_search(row).ok()).collect::<Vec<_>>()
        });
        settled.values = there.iter().map(|&row| settled.values[row]).collect();
        self.finish(settled, order, table)
    }

    /// Reads all rows, with several labels each.
    fn load_several(
        &self,
        labels: Matrix,
        paths: &[PathBuf],
        request: &Request<'_>,
    ) -> Result<Loaded> {
        let path = self.labels_file();
        let (rows, cols) = (labels.rows, labels.cols);
        let Some(table) = tabular::read(paths, request)? else {
            let (data, labels) = super::load_beside(&self.data, path, labels, None)?;
            let problem = Problem { data, labels, task: Task::Regression };
            return Ok(Loaded { problem, columns: Columns::default(), notes: Vec::new() });
        };
        if table.seen != rows {
            return Err(load::other_number(table.seen, rows).at(path));
        }
        let mut values = labels.values.into_f32();
        if !table.dropped.is_empty() {
            let is_there = |row: &usize| table.dropped.binary_search(row).is_err();
            let there = (0..rows).filter(is_there);
            values = there.flat_map(|row| values[row * cols..][..cols].to_vec()).collect();
        }
        let problem = Problem { data: table.matrix, labels: values, task: Task::Regression };
        Ok(Loaded { problem, columns: table.columns, notes: table.notes })
    }

    fn settle(
        &self,
        labels: RawLabels,
        task: Option<Task>,
        reading: Reading<'_>,
        is_text: bool,
    ) -> Result<Settled> {
        let known: &[String] = match reading {
            Reading::Known(columns) => &columns.classes,
            Reading::Learn | Reading::Numbers => &[],
        };
        let learns = matches!(reading, Reading::Learn);
        let keep = self.keep.as_deref();
        let wanted = Wanted { task, keep, known, is_text, learns };
        settle(labels, wanted).map_err(|error| error.at(self.labels_file()))
    }

    /// The chosen rows, in their order, with their labels as the task needs them.
    fn finish(
        &self,
        settled: Settled,
        rows: Option<Vec<usize>>,
        table: ReadTable,
    ) -> Result<Loaded> {
        let Settled { values, task, classes, keep, is_known } = settled;
        let (data, values) = match rows {
            Some(rows) => select::gather_labelled(table.matrix, &values, rows)?,
            None => (table.matrix, values),
        };
        let keep = keep.filter(|_| !is_known);
        let labels = match (task, keep.as_deref()) {
            (Task::Regression, _) => Ok(values),
            (Task::Binary, None) => check_binary(&values).map(|()| values),
            (_, keep) => classes::labels(values, keep),
        };
        let labels = labels.map_err(|error| error.at(self.labels_file()))?;
        let columns = Columns { classes, ..table.columns };
        Ok(Loaded { problem: Problem { data, labels, task }, columns, notes: table.notes })
    }

    /// Reads rows as [`load`](Self::load), and checks them as [`Problem::check`] does.
    ///
    /// # Errors
    /// Those of both.
    pub fn load_to_learn(&self, task: Option<Task>) -> Result<Loaded> {
        let mut loaded = self.load_as(task, Reading::Learn)?;
        loaded.problem.check_inputs().map_err(|error| error.at(&self.data))?;
        loaded.problem.check_labels().map_err(|error| error.at(self.labels_file()))?;
        loaded.notes.extend(oddities::of(&loaded.problem, &loaded.columns));
        Ok(loaded)
    }

    fn check_several(&self, columns: usize) -> Result<()> {
        if self.labels_file() == self.data {
            return Err(Error::new("the samples are given as their own labels")
                .mismatch("labels of one column", format_args!("the samples, {columns} columns"))
                .help("pass the file of labels"));
        }
        if self.keep.is_some() || self.rows_per_label.is_some() {
            let flag = if self.keep.is_some() { "--keep-labels" } else { "--rows-per-label" };
            return Err(Error::new("rows cannot be chosen by several labels")
                .mismatch("labels of one column", format_args!("{columns} columns"))
                .help(format!("leave {flag} out: rows are chosen by one label each")));
        }
        Ok(())
    }

    pub(crate) fn labels_file(&self) -> &Path {
        match &self.labels {
            Labels::File(path) => path,
            Labels::Column(_) => &self.data,
        }
    }

    /// The rows to take, in this order; none stands for all.
    fn choose(&self, settled: &Settled) -> Result<Option<Vec<usize>>> {
        let labels = &settled.values[..];
        let keep = settled.keep.as_ref();
        let kept = keep.map(|keep| select::rows_with(labels, keep)).transpose();
        let kept = kept.map_err(|error| error.at(self.labels_file()))?;
        let Some(range) = &self.rows_per_label else { return Ok(kept) };
        let Some(kept) = kept else { return select::occurrences(labels, range.clone()).map(Some) };
        let labels: Vec<f32> = kept.iter().map(|&row| labels[row]).collect();
        let chosen = select::occurrences(&labels, range.clone())?;
        Ok(Some(chosen.into_iter().map(|at| kept[at]).collect()))
    }
}

/// A matrix of a file that is no table.
fn matrix_alone(matrix: Matrix) -> ReadTable {
    let seen = matrix.rows;
    let columns = Columns::default();
    ReadTable { matrix, labels: None, columns, seen, dropped: Vec::new(), notes: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn source(csv: &str, keep: Option<&[&str]>) -> (TempDir, DataFiles) {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("d.csv");
        std::fs::write(&data, csv).unwrap();
        let labels = Labels::Column("y".into());
        let keep = keep.map(|keep| keep.iter().map(|&label| label.to_owned()).collect());
        (folder, DataFiles { keep, ..DataFiles::new(data, labels) })
    }

    const THREE: &str = "a,y\n10,7\n20,3\n30,7\n40,5\n";

    #[test]
    fn kept_labels_become_classes_in_the_order_given() {
        for task in [Some(Task::Binary), None] {
            let (_folder, source) = source(THREE, Some(&["7", "5"]));
            let problem = source.load(task).unwrap();
            assert_eq!((problem.task, &problem.labels[..]), (Task::Binary, &[0.0, 0.0, 1.0][..]));
        }
        let (_folder, source) = source(THREE, Some(&["7", "5"]));
        assert_eq!(source.load(Some(Task::Regression)).unwrap().labels, [7.0, 7.0, 5.0]);
    }

    #[test]
    fn labels_outside_the_task_are_refused() {
        let (_folder, three) = source(THREE, None);
        let error = three.load(Some(Task::Binary)).unwrap_err().to_string();
        assert!(error.contains("7 in row 0") && error.contains("0 or 1"), "{error}");
        let found = three.load_as(None, Reading::Learn).unwrap();
        assert_eq!(
            (found.problem.task, found.columns.classes),
            (Task::Multiclass, vec!["3".into(), "5".into(), "7".into()])
        );
        assert_eq!(found.problem.labels, [2.0, 0.0, 2.0, 1.0]);
        let (_folder, keep) = source(THREE, Some(&["7", "5", "3"]));
        assert!(keep.load(Some(Task::Binary)).unwrap_err().to_string().contains("two classes"));
    }

    #[test]
    fn numbers_whose_squares_overflow_are_named() {
        let (_folder, source) = source("a,b,y\n1,1,1\n2,-3e38,2\n", None);
        let error = source.load(None).unwrap().check().unwrap_err().to_string();
        for part in ["column 2 of the inputs", "-3e38 in row 1", "up to about 5e16", "divide"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        let (_folder, source) = self::source("a,y\n1,1\n2,3e38\n", None);
        let error = source.load(None).unwrap().check().unwrap_err().to_string();
        assert!(error.contains("labels") && error.contains("3e38 in row 1"), "{error}");
    }

    #[test]
    fn several_label_columns_require_regression_on_all_rows() {
        let folder = tempfile::tempdir().unwrap();
        let (x, y) = (folder.path().join("x.csv"), folder.path().join("y.csv"));
        std::fs::write(&x, "1,2,5\n4,5,6\n").unwrap();
        std::fs::write(&y, "1,0\n0,1\n").unwrap();
        let usual = DataFiles::new(x.clone(), Labels::File(y));
        for task in [None, Some(Task::Regression)] {
            let problem = usual.load(task).unwrap();
            assert_eq!((problem.task, problem.outputs()), (Task::Regression, 2));
            assert_eq!(problem.labels, [1.0, 0.0, 0.0, 1.0]);
            problem.check().unwrap();
        }
        let error = |source: &DataFiles, task| source.load(task).unwrap_err().to_string();
        for task in [Task::Binary, Task::Multiclass] {
            assert!(error(&usual, Some(task)).contains("one column"));
        }
        let keep = DataFiles { keep: Some(vec!["1".into()]), ..usual.clone() };
        assert!(error(&keep, Some(Task::Regression)).contains("--keep-labels"));
        let some = DataFiles { rows_per_label: Some(0..1), ..usual.clone() };
        assert!(error(&some, None).contains("--rows-per-label"));
        let own = DataFiles { labels: Labels::File(x), ..usual.clone() };
        assert!(error(&own, None).contains("their own labels"));
        let mut problem = usual.load(None).unwrap();
        problem.task = Task::Binary;
        assert!(problem.check().is_err());
        problem.task = Task::Regression;
        problem.labels.pop();
        assert!(problem.check().unwrap_err().to_string().contains("3 labels"));
    }

    #[test]
    fn one_class_alone_is_nothing_to_learn() {
        let (_folder, one) = source("a,y\n1,1\n2,1\n", None);
        assert!(one.load(None).unwrap_err().to_string().contains("1 in all 2 rows"));
    }
}
