//! Labels as a task needs them: which task, and which class is which number.

use std::collections::HashMap;
use std::path::PathBuf;

use super::cell::{is_missing, number};
use super::columns::listed;
use super::csv::Lines;
use super::element::not_finite;
use super::request::RawLabels;
use super::table::nearest;
use super::{Task, classes, load};
use crate::{Error, Result};

/// The most different whole numbers of a column that are taken for classes.
const MOST_CLASSES: usize = 20;

/// Labels of a task, before rows are chosen.
#[derive(Debug)]
pub(super) struct Settled {
    /// Numbers; of classes 0, 1, …, or NaN for a row whose label is none that is kept.
    pub(super) values: Vec<f32>,
    pub(super) task: Task,
    /// Names of the classes, where they are not but 0, 1, ….
    pub(super) classes: Vec<String>,
    /// The classes to keep, as in `values`.
    pub(super) keep: Option<Vec<f32>>,
    /// Whether classes keep their numbers when others are left out.
    pub(super) is_known: bool,
}

/// What the labels are to be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) task: Option<Task>,
    pub(super) keep: Option<&'a [String]>,
    /// The classes of a model.
    pub(super) known: &'a [String],
    /// Whether the labels stand in a text, so that any whole numbers may be classes.
    pub(super) is_text: bool,
    /// Whether classes may be found in the labels, and not only in a model.
    pub(super) learns: bool,
}

/// Finds task and classes of labels.
///
/// # Errors
/// Labels of text for a regression, of one class only, or that the model does not have; a label to
/// keep that there is not.
pub(super) fn settle(raw: RawLabels, wanted: Wanted<'_>) -> Result<Settled> {
    if !raw.texts.is_empty() {
        return if wanted.known.is_empty() { texts(&raw, wanted) } else { known(&raw, wanted) };
    }
    let numbers = |keep: &[String]| keep.iter().map(|label| to_keep(label)).collect();
    let are_names = wanted.known.iter().all(|name| name.parse::<f32>().is_ok());
    let is_regression = wanted.task == Some(Task::Regression);
    if !is_regression && !wanted.known.is_empty() && (wanted.is_text || are_names) {
        return known(&raw, wanted);
    }
    let keep = wanted.keep.map(numbers).transpose()?;
    let plain = |task| {
        let (values, classes, is_known) = (raw.values.clone(), Vec::new(), false);
        Settled { values, task, classes, keep: keep.clone(), is_known }
    };
    let distinct = distinct(&raw.values);
    // Larger floats are whole whatever they stand for.
    let is_whole = |label: &f32| label.fract() == 0.0 && label.abs() <= 16_777_216.0;
    let whole = distinct.iter().all(is_whole);
    let are_first = distinct.iter().zip(0_u16..).all(|(label, k)| *label == f32::from(k));
    let two = keep.as_ref().map_or(distinct.len(), Vec::len) <= 2;
    let few = distinct.len() <= if wanted.learns { MOST_CLASSES } else { 2 };
    let task = wanted.task.unwrap_or(match whole && few && (wanted.learns || are_first) {
        true if two => Task::Binary,
        true => Task::Multiclass,
        false if keep.as_ref().is_some_and(|keep| keep.len() == 2) => Task::Binary,
        false => Task::Regression,
    });
    let is_coded = wanted.learns && (wanted.is_text || wanted.task.is_none());
    if let (&[label], true) = (&distinct[..], is_coded && task != Task::Regression) {
        return Err(one_class(label, raw.values.len()));
    }
    let fits = distinct.len() <= classes::MOST && (task == Task::Multiclass || distinct.len() == 2);
    if task == Task::Regression || !is_coded || !whole || are_first || !fits || keep.is_some() {
        let mut settled = plain(task);
        if let Some(keep) = &keep
            && task != Task::Regression
            && !(0_u16..).zip(keep).all(|(k, &label)| label == f32::from(k))
        {
            settled.classes = keep.iter().map(f32::to_string).collect();
        }
        return Ok(settled);
    }
    let places: HashMap<u32, f32> =
        distinct.iter().zip(0..).map(|(label, k)| (label.to_bits(), k as f32)).collect();
    let mut values = raw.values;
    // -0 and 0 are one.
    values.iter_mut().for_each(|value| *value = places[&(*value + 0.0).to_bits()]);
    let classes = distinct.iter().map(f32::to_string).collect();
    Ok(Settled { values, task, classes, keep, is_known: false })
}

fn one_class(label: impl std::fmt::Display, rows: usize) -> Error {
    Error::new("there is nothing to tell apart")
        .expected("labels of at least two classes")
        .got(format_args!("{label} in all {rows} rows"))
        .help("check which column the labels come from")
}

/// Labels of text, to learn from: their classes are in the order of the alphabet.
fn texts(raw: &RawLabels, wanted: Wanted<'_>) -> Result<Settled> {
    let mut sorted = raw.texts.clone();
    sorted.sort();
    let keep = wanted.keep.map(|keep| places(keep, &sorted)).transpose()?;
    let kept = keep.as_ref().map_or(sorted.len(), Vec::len);
    let task = wanted.task.unwrap_or(if kept <= 2 { Task::Binary } else { Task::Multiclass });
    let shown = || listed(&sorted.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>());
    if task == Task::Regression {
        return Err(Error::new("the labels are text, which is no number")
            .mismatch("numbers, for --task regression", shown())
            .help("leave --task out: text is classes"));
    }
    if kept < 2 {
        return Err(one_class(shown(), raw.values.len()));
    }
    if task == Task::Binary && kept > 2 {
        return Err(Error::new("a binary task has two classes")
            .mismatch("labels of two classes", shown())
            .help("name two with --keep-labels A,B, or leave --task out"));
    }
    let place = |text: &String| sorted.binary_search(text).unwrap_or(0) as f32;
    let places: Vec<f32> = raw.texts.iter().map(place).collect();
    let values = raw.values.iter().map(|&text| places[text as usize]).collect();
    let classes = wanted.keep.map_or(sorted, <[String]>::to_vec);
    Ok(Settled { values, task, classes, keep, is_known: false })
}

/// Labels by the classes that a model knows.
fn known(raw: &RawLabels, wanted: Wanted<'_>) -> Result<Settled> {
    let known = wanted.known;
    let task =
        wanted.task.unwrap_or(if known.len() == 2 { Task::Binary } else { Task::Multiclass });
    if task == Task::Regression {
        return texts(raw, wanted);
    }
    let keep = wanted.keep.map(|keep| places(keep, known)).transpose()?;
    let numbers: Vec<Option<f32>> = known.iter().map(|name| name.parse().ok()).collect();
    let text = |label: f32| raw.texts.get(label as usize);
    let place = |label: f32| match text(label) {
        Some(text) => known.iter().position(|name| name == text),
        None => numbers.iter().position(|number| *number == Some(label)),
    };
    let mut values = Vec::with_capacity(raw.values.len());
    for (row, &label) in raw.values.iter().enumerate() {
        match place(label) {
            Some(class) => values.push(class as f32),
            None if keep.is_some() => values.push(f32::NAN),
            None => {
                let shown = text(label).map_or(label.to_string(), |text| format!("{text:?}"));
                return Err(Error::new("a label is none of the model's classes")
                    .expected(format_args!("one of {}", listed(known)))
                    .got(format_args!("{shown} in row {row} (counted from 0)"))
                    .help("leave such rows out: name those to score with --keep-labels A,B,…"));
            }
        }
    }
    let classes = known.to_vec();
    Ok(Settled { values, task, classes, keep, is_known: true })
}

/// The labels of CSV files of one column; none of other files.
///
/// # Errors
/// A file cannot be read, or a label is missing.
pub(super) fn label_column(files: &[PathBuf]) -> Result<Option<RawLabels>> {
    let Some(numbers) = column(files, false)? else { return Ok(None) };
    match numbers {
        Some(labels) => Ok(Some(labels)),
        // A text stands among them.
        None => Ok(column(files, true)?.flatten()),
    }
}

/// The same as numbers, or none in these where one is text; or as texts.
fn column(files: &[PathBuf], as_text: bool) -> Result<Option<Option<RawLabels>>> {
    let (mut labels, mut places) = (RawLabels::default(), HashMap::new());
    for file in files {
        let Some(source) = load::text(file).map_err(|error| error.at(file))? else {
            return Ok(None);
        };
        let read = |labels: &mut RawLabels| -> Result<Option<bool>> {
            let mut lines = Lines::new(source)?;
            if lines.cols != 1 {
                return Ok(None);
            }
            let (mut cells, first) = (Vec::new(), labels.values.len());
            while lines.next(&mut cells)? {
                let cell = cells[0].trim();
                match number(cell, lines.decimal_comma).filter(|_| !as_text) {
                    Some(value) if value.is_finite() => labels.values.push(value),
                    Some(_) => return Err(not_finite(cell, lines.place(0))),
                    None if is_missing(cell) => return Err(lines.not_a_number(cell, 0)),
                    None if !as_text => return Ok(Some(false)),
                    None => {
                        let code = code(cell, labels, &mut places);
                        labels.values.push(code);
                    }
                }
            }
            // A first line that is one of the labels is no name.
            if let Some([name]) = lines.names.as_deref()
                && places.contains_key(name)
            {
                labels.values.insert(first, places[name] as f32);
            }
            if labels.values.len() == first { Err(lines.no_rows()) } else { Ok(Some(true)) }
        };
        match read(&mut labels).map_err(|error| error.at(file))? {
            None => return Ok(None),
            Some(false) => return Ok(Some(None)),
            Some(true) => {}
        }
    }
    Ok(Some(Some(labels)))
}

/// The number of a text among the labels.
fn code(text: &str, labels: &mut RawLabels, places: &mut HashMap<String, usize>) -> f32 {
    let next = places.len();
    let place = *places.entry(text.to_owned()).or_insert(next);
    if place == next {
        labels.texts.push(text.to_owned());
    }
    place as f32
}

/// The places of labels to keep among the classes.
fn places(keep: &[String], classes: &[String]) -> Result<Vec<f32>> {
    let place = |label: &String| {
        let class = classes.iter().position(|class| class == label.trim());
        class.map(|class| class as f32).ok_or_else(|| {
            let help = match nearest(classes, label) {
                Some(near) => format!("did you mean {near}?"),
                None => "keep labels that are there".into(),
            };
            Error::new(format!("no sample has the label {label}"))
                .mismatch(format_args!("labels among {}", listed(classes)), label)
                .help(help)
        })
    };
    keep.iter().map(place).collect()
}

fn to_keep(label: &str) -> Result<f32> {
    label.trim().parse::<f32>().ok().filter(|label| label.is_finite()).ok_or_else(|| {
        Error::new("a label to keep is not among the labels, which are numbers")
            .mismatch("numbers, such as --keep-labels 0,1", format_args!("{label:?}"))
            .help("name labels as they stand in the file")
    })
}

/// The different labels, rising; no more than a model can have classes, and one.
fn distinct(labels: &[f32]) -> Vec<f32> {
    let mut seen = std::collections::HashSet::new();
    for label in labels {
        seen.insert((label + 0.0).to_bits());
        if seen.len() > classes::MOST {
            break;
        }
    }
    let mut distinct: Vec<f32> = seen.into_iter().map(f32::from_bits).collect();
    distinct.sort_by(f32::total_cmp);
    distinct
}
