//! The flags that say which rows of which files to take.

use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::Args;

use super::parse;
use crate::Result;
use crate::data::{self, DataFiles, Labels, Matrix, Problem, Task};
use crate::model::ModelFile;

#[derive(Debug, Args)]
pub(super) struct SourceArgs {
    /// Samples: idx, NPY, NPZ (FILE.npz#NAME) or CSV, also gzipped; F,F2 appends rows
    #[arg(long, value_name = "F[,F2…]")]
    data: PathBuf,
    /// Labels in these formats; several columns for regression
    #[arg(
        long,
        value_name = "F[,F2…]",
        required_unless_present = "target",
        conflicts_with = "target"
    )]
    labels: Option<PathBuf>,
    /// The labels' column of the data: its name, or its number from 1
    #[arg(long, value_name = "COLUMN")]
    target: Option<String>,
    /// Keep only rows with these labels; for classes A becomes 0, B 1, …
    #[arg(long, value_name = "A,B", value_delimiter = ',', allow_hyphen_values = true)]
    keep_labels: Option<Vec<f32>>,
    /// Keep only the occurrences A to B-1 of each label, from 0, ordered by label
    #[arg(long, value_name = "A..B", allow_hyphen_values = true, value_parser = parse::range)]
    rows_per_label: Option<Range<usize>>,
}

/// The rows of a file without the column of their labels.
pub(super) fn samples(data: &Path, target: Option<&str>) -> Result<Matrix> {
    let table = data::Table::read(data)?;
    let Some(target) = target else { return Ok(table.matrix) };
    Ok(table.split(target).map_err(|error| error.at(data))?.0)
}

impl SourceArgs {
    pub(super) fn inputs(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.data.as_path()).chain(self.labels.as_deref())
    }

    /// The rows, which the model can be scored on; without a task of the one that it was trained for.
    pub(super) fn load_for(&self, model: &ModelFile, task: Option<Task>) -> Result<Problem> {
        let source = self.source();
        let problem = source.load(task.or(model.task()?))?;
        model.check_fit(&source, &problem)?;
        Ok(problem)
    }

    pub(super) fn source(&self) -> DataFiles {
        let labels = match (&self.labels, &self.target) {
            (Some(path), _) => Labels::File(path.clone()),
            (None, target) => Labels::Column(target.clone().unwrap_or_default()),
        };
        DataFiles {
            data: self.data.clone(),
            labels,
            keep: self.keep_labels.clone(),
            rows_per_label: self.rows_per_label.clone(),
        }
    }
}
