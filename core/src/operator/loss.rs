//! Losses of outputs, and from outputs to residuals, in place.

use crate::base::error::{self, Result};
use crate::base::math;

/// Squared error: turns the outputs `A w` into the residual `y - A w` and returns `|y - A w|²`.
///
/// # Errors
/// [`error::Error::Length`] if there are not as many labels as outputs.
///
/// ```
/// let mut out = [1.0, 2.0];
/// assert_eq!(tamis::learn::loss::square(&[3.0, 2.0], &mut out), Ok(4.0));
/// assert_eq!(out, [2.0, 0.0]);
/// ```
pub fn square(labels: &[f32], out: &mut [f32]) -> Result<f32> {
    error::length("labels", labels.len(), out.len())?;
    for (out, y) in out.iter_mut().zip(labels) {
        *out = y - *out;
    }
    Ok(math::norm2(out))
}

/// Softmax cross-entropy over c outputs: turns them, n×c, into the residual
/// `onehot(label) - softmax(output)` and returns the sum over rows of `-ln softmax(output)[label]`.
///
/// With one output the classes are 0 and 1 and the output is the log-odds of class 1: the softmax
/// of 0 and the output, with the residual `label - 1 / (1 + exp(-output))`.
///
/// Stable for outputs of any size: the largest output of a row is taken off first. The result is
/// NaN where an output is.
///
/// # Errors
/// [`error::Error::Length`] if there are not c outputs per label, [`error::Error::Range`] for a
/// label that is no class.
///
/// ```
/// let mut out = [0.0, 0.0, 1000.0, 0.0];
/// let loss = tamis::learn::loss::cross_entropy(&[1, 0], 2, &mut out).unwrap();
/// assert_eq!(loss, 2.0_f32.ln());
/// assert_eq!(out, [-0.5, 0.5, 0.0, 0.0]);
/// // Even odds, and certainty.
/// let mut out = [0.0, -1000.0];
/// let loss = tamis::learn::loss::cross_entropy(&[1, 0], 1, &mut out).unwrap();
/// assert_eq!((loss, out), (2.0_f32.ln(), [0.5, 0.0]));
/// ```
pub fn cross_entropy(labels: &[u16], outputs: usize, out: &mut [f32]) -> Result<f32> {
    error::range("outputs", outputs, 1, 1 << 16)?;
    error::length("outputs", out.len(), labels.len().saturating_mul(outputs))?;
    let mut loss = math::Sum::default();
    for (out, &label) in out.chunks_mut(outputs).zip(labels) {
        error::range("label", label.into(), 0, classes(outputs) - 1)?;
        loss.add(match out {
            [out] => binary(label == 1, out),
            _ => softmax(label.into(), out),
        });
    }
    Ok(loss.value())
}

/// One row of one output.
fn binary(label: bool, out: &mut f32) -> f32 {
    // Of the class that is not the label's.
    let odds = if label { -*out } else { *out };
    let small = math::exp(-odds.abs());
    let part = if odds > 0.0 { 1.0 } else { small } / (1.0 + small);
    *out = if label { part } else { -part };
    odds.max(0.0) + math::ln(1.0 + small)
}

/// One row of several outputs.
fn softmax(label: usize, out: &mut [f32]) -> f32 {
    let [top, own] = [best(out), label].map(|class| out.get(class).copied().unwrap_or(0.0));
    let mut total = 0.0;
    for out in out.iter_mut() {
        *out = math::exp(*out - top);
        total += *out;
    }
    let part = 1.0 / total;
    for (class, out) in out.iter_mut().enumerate() {
        let goal = if class == label { 1.0 } else { 0.0 };
        *out = goal - *out * part;
    }
    math::ln(total) + (top - own)
}

/// The classes that so many outputs tell apart: one output tells two, several one each.
#[must_use]
pub const fn classes(outputs: usize) -> usize {
    if outputs == 1 { 2 } else { outputs }
}

/// The class that a row's outputs say: of one output 1 where it is 0 or more, of several that of
/// the largest one.
///
/// ```
/// use tamis::learn::loss::class;
/// assert_eq!((class(&[-0.5]), class(&[0.0]), class(&[0.5, 2.0, 1.0])), (0, 1, 1));
/// ```
#[must_use]
pub fn class(outputs: &[f32]) -> usize {
    match outputs {
        [out] => usize::from(*out >= 0.0),
        _ => best(outputs),
    }
}

/// The class of the largest output; of equal ones the lowest.
///
/// ```
/// assert_eq!(tamis::learn::loss::best(&[0.5, 2.0, 2.0]), 1);
/// ```
#[must_use]
pub fn best(outputs: &[f32]) -> usize {
    let mut best = (0, f32::NEG_INFINITY);
    for (class, &out) in outputs.iter().enumerate() {
        if out > best.1 {
            best = (class, out);
        }
    }
    best.0
}
