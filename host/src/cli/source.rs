//! The flags that say which rows of which files to take, and how a table is taken.

use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::Args;

use super::parse;
use crate::Result;
use crate::data::{
    Columns, DataFiles, Labels, Loaded, Matrix, Missing, Rows, TableOptions, Task, Unseen, row_axes,
};
use crate::model::ModelFile;

#[derive(Debug, Args)]
pub(super) struct SourceArgs {
    /// Samples: CSV (- for stdin), idx, NPY, NPZ (F.npz#NAME), gzipped; F,F2 appends rows
    #[arg(long, value_name = "F[,F2…]")]
    data: PathBuf,
    /// Labels in these formats; several columns for regression
    #[arg(long, value_name = "F[,F2…]", conflicts_with = "target")]
    labels: Option<PathBuf>,
    /// The labels' column of the data: its name, or its number from 1
    #[arg(long, value_name = "COLUMN")]
    target: Option<String>,
    /// Keep only rows with these labels; for classes A becomes 0, B 1, …
    #[arg(long, value_name = "A,B", value_delimiter = ',', allow_hyphen_values = true)]
    keep_labels: Option<Vec<String>>,
    /// Keep only the occurrences A to B-1 of each label, from 0, ordered by label
    #[arg(long, value_name = "A..B", allow_hyphen_values = true, value_parser = parse::range)]
    rows_per_label: Option<Range<usize>>,
    #[command(flatten)]
    table: TableArgs,
}

/// How the cells of a table are taken.
#[derive(Debug, Clone, Args)]
pub(super) struct TableArgs {
    /// Missing cells of a table: mean (of the training rows; of text a category of its own), zero,
    /// drop (their rows) or error [default: mean]
    #[arg(long, value_name = "WAY", value_enum, hide_possible_values = true)]
    missing: Option<Missing>,
    /// Columns of a table to leave out, by name or number
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    ignore: Vec<String>,
    /// Text of a table that training did not see: error, or other (none of the categories, or that
    /// of the rare ones)
    #[arg(long, value_name = "WAY", value_enum, default_value_t, hide_possible_values = true)]
    unseen: Unseen,
}

impl TableArgs {
    pub(super) fn options(&self) -> TableOptions {
        let (missing, unseen) = (self.missing, self.unseen);
        TableOptions { missing, ignore: self.ignore.clone(), unseen }
    }
}

/// The columns of a model, and how they are said to be read.
#[derive(Debug)]
pub(super) struct ModelColumns {
    columns: Option<Columns>,
    options: TableOptions,
}

impl ModelColumns {
    pub(super) fn new(model: &ModelFile, table: &TableArgs) -> Result<Self> {
        Ok(Self { columns: model.columns()?, options: table.options() })
    }

    pub(super) const fn known(&self) -> Option<&Columns> {
        self.columns.as_ref()
    }

    /// The rows of a file, without the column of the labels.
    pub(super) fn samples(&self, data: &Path, target: Option<&str>) -> Result<Rows> {
        Rows::load(data, target, ModelFile::reading(self.known()), &self.options)
    }

    /// The labelled rows of files, which the model can be scored on.
    pub(super) fn labelled(
        &self,
        model: &ModelFile,
        files: DataFiles,
        task: Option<Task>,
    ) -> Result<Loaded> {
        let files = DataFiles { table: self.options.clone(), ..files };
        let loaded = files.load_as(task, ModelFile::reading(self.known()))?;
        model.check_fit(&files, &loaded.problem)?;
        Ok(loaded)
    }
}

/// The rows of a file of numbers without the column of their labels.
pub(super) fn samples(data: &Path, target: Option<&str>) -> Result<Matrix> {
    let rows = Rows::load(data, target, ModelFile::reading(None), &TableOptions::default());
    rows.map(|rows| rows.matrix)
}

impl SourceArgs {
    /// The axes of a row of the data, where its file has several.
    pub(super) fn row_axes(&self) -> Result<Option<Vec<usize>>> {
        row_axes(&self.data)
    }

    pub(super) fn inputs(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.data.as_path()).chain(self.labels.as_deref())
    }

    /// The rows, which the model can be scored on; without a task of the one that it was trained for.
    pub(super) fn load_for(&self, model: &ModelFile, task: Option<Task>) -> Result<Loaded> {
        let task = task.or(model.task()?);
        ModelColumns::new(model, &self.table)?.labelled(model, self.source(), task)
    }

    pub(super) fn source(&self) -> DataFiles {
        let labels = match (&self.labels, &self.target) {
            (Some(path), _) => Labels::File(path.clone()),
            (None, target) => Labels::Column(target.clone().unwrap_or_default()),
        };
        DataFiles {
            keep: self.keep_labels.clone(),
            rows_per_label: self.rows_per_label.clone(),
            table: self.table.options(),
            ..DataFiles::new(self.data.clone(), labels)
        }
    }
}
