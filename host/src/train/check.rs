//! Sizes and settings, each checked under the name of its flag.

use std::ops::RangeInclusive;

use tamis::base::dims::Dims;
use tamis::infer::model::MAX_INPUTS;
use tamis::network::gates::Signs;

use crate::base::check_setting;
use crate::data::{Problem, Task};
use crate::train::budget::Budget;
use crate::{Error, Result};

/// Sizes of a network, and the outputs that weights lead to: 0 where the output weights are signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) dims: Dims,
    pub(crate) outputs: usize,
}

/// The sizes of a network of `hidden` neurons for n rows of d inputs, each within its bounds.
pub(crate) fn sizes(
    n: usize,
    d: usize,
    hidden: usize,
    budget: Budget,
    outputs: usize,
) -> Result<Sizes> {
    let m = hidden;
    if d > MAX_INPUTS {
        return Err(Error::new("too many inputs for a model")
            .expected(format_args!("at most {MAX_INPUTS} columns"))
            .got(d)
            .help("leave out columns, or scale the images down"));
    }
    let all = m.saturating_mul(d.saturating_add(outputs));
    let nnz = budget.count(all, least(outputs))?;
    let dims = Dims::new(n, d, m, nnz);
    check_sizes(&dims, outputs)?;
    Ok(Sizes { dims, outputs })
}

/// The fewest nonzeros of a network: with output weights, one on each side.
const fn least(classes: usize) -> usize {
    if classes > 0 { 2 } else { 1 }
}

/// Rows of the validation split, given their share of n rows.
pub(crate) fn validation_rows(n: usize, share: f64) -> Result<usize> {
    let help = "0.1 is a tenth of the rows, 0 is no validation split";
    let holds = (0.0..1.0).contains(&share);
    check_setting(holds, "--validation 0 or more and less than 1", share, help)?;
    Ok(((n as f64 * share).round() as usize).min(n - 1))
}

/// The same of a share that was given: any but 0 is at least one row.
pub(crate) fn given_validation_rows(rows: usize, share: f64) -> Result<usize> {
    let validation = validation_rows(rows, share)?;
    if share > 0.0 && validation == 0 {
        return Err(Error::new("there are too few rows for a validation split")
            .expected("a fraction that gives at least one row, with one left to train on")
            .got(format_args!("--validation {share} of {rows} rows"))
            .help("give more rows or a larger fraction, or leave --validation out"));
    }
    Ok(validation)
}

/// Refuses `--patience` without a validation split.
pub(crate) fn check_patience(patience: u32, validation: f64) -> Result<()> {
    if patience == 0 || validation > 0.0 {
        return Ok(());
    }
    Err(Error::new("patience needs a validation split")
        .expected("--validation above 0, such as 0.1")
        .got(format_args!("--patience {patience} without it"))
        .help("pass --validation 0.1 too, or leave --patience out"))
}

/// c, where weights lead to the outputs: several labels a row, or classes; 0 for one label a row,
/// where output weights are signs.
pub(crate) fn weighted_outputs(problem: &Problem) -> usize {
    let values = if problem.outputs() > 1 { problem.outputs() } else { 0 };
    problem.classes().unwrap_or(values)
}

/// Weights between layers of these widths, all of them.
pub(crate) fn weights_between(widths: &[usize]) -> usize {
    let layers = widths.windows(2).map(|pair| pair[0].saturating_mul(pair[1]));
    layers.fold(0, usize::saturating_add)
}

/// Weights and biases of the dense network of these hidden layers.
pub(crate) fn dense_weights(problem: &Problem, hidden: &[usize]) -> usize {
    let outputs = problem.network_outputs();
    let widths = [&[problem.data.cols], hidden, &[outputs]].concat();
    let layers = widths.windows(2).map(|pair| pair[0].saturating_add(1).saturating_mul(pair[1]));
    layers.fold(0, usize::saturating_add)
}

/// The fewest nonzeros of a path to every output.
pub(crate) fn paths(problem: &Problem, hidden: &[usize]) -> usize {
    problem.network_outputs() + hidden.len()
}

/// Labels that are classes, checked before; none for another task.
pub(crate) fn classes_of(task: Task, labels: &[f32]) -> Vec<u16> {
    let labels = if task == Task::Multiclass { labels } else { &[] };
    labels.iter().map(|&label| label as u16).collect()
}

/// Refuses a setting of 0.
pub(crate) fn at_least_one(flag: &str, value: usize, help: &str) -> Result<()> {
    check_setting(value > 0, format_args!("{flag} 1 or more"), value, help)
}

/// Checks every size under the name of its flag, as [`Dims::check`] does without.
pub(crate) fn check_dims(dims: &Dims) -> Result<()> {
    check_sizes(dims, 0)?;
    Ok(dims.check()?)
}

/// [`check_dims`] for networks whose weights also lead to `classes` outputs.
fn check_sizes(dims: &Dims, classes: usize) -> Result<()> {
    let most = u32::MAX as usize;
    let (n, d, m) = (dims.samples, dims.inputs, dims.hidden);
    let width = d.saturating_add(classes);
    // What saturates on a target of 32 bits is too much there as well.
    let (weights, all) = ((most - 1) / width.max(1), m.saturating_mul(width));
    let (ends, shape) = match classes {
        0 => (format!("{d} inputs"), format!("{m} hidden × {d} inputs")),
        _ => (
            format!("{d} inputs and {classes} outputs"),
            format!("{m} hidden × ({d} inputs + {classes} outputs)"),
        ),
    };
    let within = |flag: &str, value: usize, range: RangeInclusive<usize>, why: &str, help: &str| {
        let expected = format!("{flag} {} to {}{why}", range.start(), range.end());
        check_setting(range.contains(&value), expected, value, help)
    };
    within("--samples", n, 1..=most, "", "choose a number of rows within these bounds")?;
    within("--inputs", d, 1..=most, "", "choose a number of columns within these bounds")?;
    let why = format!(" for {ends}: weights are counted in 32 bits");
    within("--hidden", m, 1..=weights, &why, "choose fewer neurons, such as 10 to 1000")?;
    let help =
        "choose a fraction of all weights, such as a tenth, or more hidden neurons (--hidden)";
    within("--nnz", dims.nnz, least(classes)..=all, &format!(" ({shape})"), help)
}

/// As `--signs` calls them.
pub(crate) const fn signs_name(signs: Signs) -> &'static str {
    match signs {
        Signs::Positive => "positive",
        Signs::Balanced => "balanced",
        Signs::Free => "free",
        Signs::Unoriented => "unoriented",
    }
}
