//! What to read of a table, and how its cells are taken.

use super::columns::Columns;

/// What becomes of missing cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Missing {
    /// The mean of the training rows; of text a category of its own
    Mean,
    /// 0; of text no category
    Zero,
    /// Their rows are left out
    Drop,
    /// They are an error
    Error,
}

/// What becomes of text that training did not see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Unseen {
    /// It is an error
    #[default]
    Error,
    /// It is the category of the rare ones, or none
    Other,
}

/// How the cells of a table are taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableOptions {
    /// What becomes of missing cells; none is [`Missing::Mean`], or an error where nothing is known
    /// of the columns.
    pub missing: Option<Missing>,
    /// Columns that are left out, by name or by number counted from 1.
    pub ignore: Vec<String>,
    /// What becomes of text that training did not see.
    pub unseen: Unseen,
}

/// What is known of the columns of a table before it is read.
#[derive(Debug, Clone, Copy)]
pub enum Reading<'a> {
    /// Nothing: they are those to learn from.
    Learn,
    /// They are those that a model was trained on.
    Known(&'a Columns),
    /// They are numbers, in the order of the inputs.
    Numbers,
}

/// What to read of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) reading: Reading<'a>,
    /// The column of labels, by name or by number counted from 1.
    pub(super) target: Option<&'a str>,
    /// Whether the labels are wanted: else their column may be absent.
    pub(super) labelled: bool,
    pub(super) options: &'a TableOptions,
    /// The rows to take, by their number among all.
    pub(super) keep: Option<&'a [bool]>,
}

/// Labels as a column has them: numbers, or texts by their number in a list.
#[derive(Debug, Default)]
pub(super) struct RawLabels {
    pub(super) values: Vec<f32>,
    /// None where the labels are numbers.
    pub(super) texts: Vec<String>,
}
