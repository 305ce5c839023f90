//! Which column of a file is which input.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::columns::{Column, ColumnKind, listed, shown};
use super::csv::Lines;
use super::request::{Reading, Request};
use super::table::{column_index, nearest};

use super::{Source, load};
use crate::{Error, Result};

/// The first line of a file.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) names: Option<Vec<String>>,
    cols: usize,
    is_numbered: bool,
    is_unclear: bool,
}

impl Head {
    pub(super) fn new(lines: &Lines<Source<load::Text>>) -> Result<Self> {
        if lines.cols == 0 {
            return Err(lines.no_rows());
        }
        let names = lines.names.clone();
        let &Lines { cols, is_numbered, is_unclear, .. } = lines;
        Ok(Self { names, cols, is_numbered, is_unclear })
    }

    fn column(&self, name: &str, flag: &str) -> Result<usize> {
        column_index(self.names.as_deref().unwrap_or_default(), self.cols, name, flag)
    }

    fn name(&self, column: usize) -> &str {
        self.names.as_ref().and_then(|names| names.get(column)).map_or("", String::as_str)
    }
}

/// What a column of a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Input(usize),
    Target,
    Skip,
}

/// The inputs of a table, and what else is known of its columns.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) inputs: Vec<Column>,
    /// The name of the target.
    pub(super) target: Option<String>,
    pub(super) has_target: bool,
    pub(super) notes: Vec<String>,
    /// As the command has it.
    asked: Option<String>,
    labelled: bool,
    is_model: bool,
    ignore: Vec<String>,
}

impl Layout {
    /// The layout of a table whose first file has this head.
    pub(super) fn new(head: &Head, request: &Request<'_>) -> Result<Self> {
        let known = match request.reading {
            Reading::Known(columns) => Some(columns),
            Reading::Learn | Reading::Numbers => None,
        };
        let model_target = known.map(|known| known.target.clone()).filter(|name| !name.is_empty());
        let mut layout = Self {
            inputs: known.map_or_else(Vec::new, |known| known.inputs.clone()),
            target: None,
            has_target: false,
            notes: Vec::new(),
            asked: request.target.map(str::to_owned).or(model_target.clone()),
            labelled: request.labelled,
            is_model: known.is_some(),
            ignore: request.options.ignore.clone(),
        };
        let (target, ignored) = layout.special(head)?;
        layout.has_target = target.is_some();
        layout.target = match (target, model_target) {
            (Some(target), _) => Some(head.name(target).to_owned()),
            (None, target) => target,
        };
        if layout.inputs.is_empty() {
            let is_input = |column: &usize| Some(*column) != target && !ignored.contains(column);
            let inputs: Vec<usize> = (0..head.cols).filter(is_input).collect();
            let is_named = inputs.iter().any(|&at| !head.name(at).is_empty());
            let mut unnamed = Vec::new();
            for at in inputs {
                let mut name = head.name(at).to_owned();
                if is_named && name.is_empty() {
                    name = shown("", at);
                    unnamed.push(name.clone());
                }
                layout.inputs.push(Column { name, kind: ColumnKind::Number { fill: 0.0 } });
            }
            if layout.inputs.is_empty() {
                return Err(Error::new("no inputs are left beside the target column")
                    .mismatch("at least 2 columns", format_args!("{} columns", head.cols))
                    .help("pass a table that also holds the inputs"));
            }
            if !unnamed.is_empty() {
                let first = &unnamed[0];
                let help = format!("--ignore \"{first}\" leaves it out if it numbers the rows");
                let unnamed = listed(&unnamed);
                layout.notes.push(format!("columns without a name are called {unnamed}; {help}"));
            }
        }
        if head.is_numbered {
            layout.notes.push(
                "warning: the first line is 0, 1, … or 1, 2, … and is taken for names of columns"
                    .into(),
            );
        }
        if head.is_unclear {
            layout.notes.push(
                "warning: the first line is 0, 1 or 1, 2 and is taken for a row: name the columns if \
                 it is none"
                    .into(),
            );
        }
        Ok(layout)
    }

    /// The column of labels, if the file has it, and those to ignore.
    fn special(&self, head: &Head) -> Result<(Option<usize>, Vec<usize>)> {
        let names = head.names.as_deref().unwrap_or_default();
        let target = match &self.asked {
            Some(name) if self.labelled => {
                let column = head.column(name, "--target");
                let is_other = || self.is_model && nearest(names, name).is_none();
                Some(
                    column
                        .map_err(|error| if is_other() { error.help(UNLABELLED) } else { error })?,
                )
            }
            None if self.labelled => return Err(no_target(names)),
            Some(name) => {
                let is_number = head.cols != self.inputs.len() || !self.is_model;
                let by_number =
                    || if is_number { head.column(name, "--target").ok() } else { None };
                names.iter().position(|own| own == name).or_else(by_number)
            }
            None => None,
        };
        // What a later file or the data of a model do not have need not be ignored.
        let ignored = self.ignore.iter().map(|name| head.column(name, "--ignore"));
        let ignored: Vec<usize> = match self.is_model {
            true => ignored.flatten().collect(),
            false => ignored.collect::<Result<_>>()?,
        };
        Ok((target, ignored))
    }

    /// What the columns of a file are; `notes` takes what there is to say.
    pub(super) fn of(&self, head: &Head, notes: &mut Vec<String>) -> Result<Vec<Use>> {
        let (target, ignored) = self.special(head)?;
        let mut uses = vec![Use::Skip; head.cols];
        if let Some(target) = target.filter(|_| self.labelled) {
            uses[target] = Use::Target;
        }
        let is_free = |column: &usize| Some(*column) != target && !ignored.contains(column);
        let is_named = self.inputs.iter().any(|column| !column.name.is_empty());
        let free = (0..head.cols).filter(is_free);
        let Some(names) = head.names.as_ref().filter(|_| is_named) else {
            let free: Vec<usize> = free.collect();
            if free.len() != self.inputs.len() {
                return Err(self.other_number(head, free.len()));
            }
            if is_named && self.is_model {
                notes.push(
                    "the data have no names of columns: they are taken in the order of the model"
                        .into(),
                );
            }
            free.iter().enumerate().for_each(|(input, &column)| uses[column] = Use::Input(input));
            return Ok(uses);
        };
        let mut left: HashMap<&str, usize> =
            self.inputs.iter().enumerate().map(|(at, column)| (column.name.as_str(), at)).collect();
        let mut extra = Vec::new();
        for column in free {
            let unnamed = shown("", column);
            let name = if names[column].is_empty() { &unnamed } else { &names[column] };
            match left.remove(name.as_str()) {
                Some(input) => uses[column] = Use::Input(input),
                None => extra.push(format!("{name:?}")),
            }
        }
        if !left.is_empty() {
            let mut missing: Vec<(usize, &str)> =
                left.iter().map(|(name, at)| (*at, *name)).collect();
            missing.sort_unstable();
            return Err(no_inputs(&missing, names));
        }
        if !extra.is_empty() {
            let of = if self.is_model { "the model" } else { "the first file" };
            notes.push(format!("columns that {of} does not have are ignored: {}", listed(&extra)));
        }
        Ok(uses)
    }

    fn other_number(&self, head: &Head, free: usize) -> Error {
        let inputs = self.inputs.len();
        if !self.is_model {
            return Error::new("the files have different numbers of columns")
                .expected(format_args!(
                    "{} columns, as in the files before",
                    head.cols + inputs - free
                ))
                .got(format_args!("{} columns", head.cols))
                .help("join only files with the same columns, in the same order");
        }
        Error::new("the data does not fit the model")
            .expected(format_args!("{inputs} columns"))
            .got(format_args!("{free} columns"))
            .help(
                "pass the columns that the model was trained on; name a column of labels with \
                 --target",
            )
    }

    /// The place of every category of the columns of text.
    pub(super) fn categories(&self) -> Vec<HashMap<&str, usize>> {
        self.inputs
            .iter()
            .map(|column| match &column.kind {
                ColumnKind::Number { .. } => HashMap::new(),
                ColumnKind::Text { categories, .. } => {
                    categories.iter().enumerate().map(|(at, text)| (text.as_str(), at)).collect()
                }
            })
            .collect()
    }
}

/// Calls `each` with the lines of every file, what its columns are, and its name.
pub(super) fn each_file(
    files: &[PathBuf],
    layout: &Layout,
    mut each: impl FnMut(&mut Lines<Source<load::Text>>, &[Use], &Path) -> Result<bool>,
) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    for file in files {
        let mut read = |notes: &mut Vec<String>| {
            let Some(source) = load::text(file)? else {
                return Err(Error::new("the files are of different formats")
                    .expected("CSV, as the first of them")
                    .help("pass files of one format"));
            };
            let mut lines = Lines::new(source)?;
            let uses = layout.of(&Head::new(&lines)?, notes)?;
            each(&mut lines, &uses, file)
        };
        if !read(&mut notes).map_err(|error| error.at(file))? {
            break;
        }
    }
    notes.dedup();
    Ok(notes)
}

/// Of data without the labels that a model was trained on.
const UNLABELLED: &str = "these data have no labels, which tamis predict does without; else name their column with \
                          --target, or their file with --labels";

/// The error of labels that nothing names, with the columns that could be them.
pub(super) fn no_target(names: &[String]) -> Error {
    const USUAL: [&str; 10] = [
        "target",
        "label",
        "labels",
        "class",
        "diagnosis",
        "y",
        "outcome",
        "species",
        "price",
        "quality",
    ];
    let is_usual = |name: &&String| USUAL.iter().any(|usual| name.eq_ignore_ascii_case(usual));
    let likely = names.iter().find(is_usual).or(names.last());
    let columns: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    let help = match likely {
        Some(likely) => {
            format!("did you mean --target {likely}? The columns are {}", listed(&columns))
        }
        None => "name the column of labels with --target (its name, or its number from 1), or \
                 their file with --labels"
            .into(),
    };
    Error::usage("the labels are missing")
        .expected("--target COLUMN, a column of the data, or --labels FILE")
        .got("neither")
        .help(help)
}

fn no_inputs(missing: &[(usize, &str)], names: &[String]) -> Error {
    let shown: Vec<String> = missing.iter().map(|(_, name)| format!("{name:?}")).collect();
    let what = if missing.len() == 1 { "a column is missing" } else { "columns are missing" };
    let there: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    let near = missing.first().and_then(|(_, name)| nearest(names, name));
    let near = near.map(|near| format!("; is it {near:?}?")).unwrap_or_default();
    Error::new(what)
        .expected(format_args!("{}, as the model was trained on", listed(&shown)))
        .got(format_args!("{}", listed(&there)))
        .help(format!("add the column, or give it the name that it had in training{near}"))
}
