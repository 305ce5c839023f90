//! From outputs to residuals, in place.

use crate::error::{self, Result};
use crate::math;

/// Squared error: turns the outputs `A w` into the residual `y - A w` and returns `|y - A w|²`.
///
/// # Errors
/// [`error::Error::Length`] if there are not as many labels as outputs.
///
/// ```
/// let mut out = [1.0, 2.0];
/// assert_eq!(tamis::loss::square(&[3.0, 2.0], &mut out), Ok(4.0));
/// assert_eq!(out, [2.0, 0.0]);
/// ```
pub fn square(labels: &[f32], out: &mut [f32]) -> Result<f32> {
    error::length("labels", labels.len(), out.len())?;
    for (out, y) in out.iter_mut().zip(labels) {
        *out = y - *out;
    }
    Ok(math::norm2(out))
}

/// Softmax cross-entropy over c classes: turns the outputs, n×c, into the residual `onehot(label) - softmax(output)`
/// and returns the sum over rows of `-ln softmax(output)[label]`.
///
/// Stable for outputs of any size: the largest output of a row is taken off first. The result is NaN where an output
/// is.
///
/// # Errors
/// [`error::Error::Length`] if there are not c outputs per label, [`error::Error::Range`] for a label that is no
/// class.
///
/// ```
/// let mut out = [0.0, 0.0, 1000.0, 0.0];
/// let loss = tamis::loss::cross_entropy(&[1, 0], 2, &mut out).unwrap();
/// assert_eq!(loss, 2.0_f32.ln());
/// assert_eq!(out, [-0.5, 0.5, 0.0, 0.0]);
/// ```
pub fn cross_entropy(labels: &[u16], classes: usize, out: &mut [f32]) -> Result<f32> {
    error::range("classes", classes, 1, 1 << 16)?;
    error::length("outputs", out.len(), labels.len().saturating_mul(classes))?;
    let mut loss = math::Sum::default();
    for (out, &label) in out.chunks_mut(classes).zip(labels) {
        let top = out.get(best(out)).copied().unwrap_or(0.0);
        let Some(&own) = out.get(usize::from(label)) else {
            return Err(error::Error::Range { what: "label", min: 0, max: classes - 1, got: label.into() });
        };
        let mut total = 0.0;
        for out in out.iter_mut() {
            *out = math::exp(*out - top);
            total += *out;
        }
        loss.add(math::ln(total) + (top - own));
        let part = 1.0 / total;
        for (class, out) in out.iter_mut().enumerate() {
            let goal = if class == usize::from(label) { 1.0 } else { 0.0 };
            *out = goal - *out * part;
        }
    }
    Ok(loss.value())
}

/// Checks that all labels are classes from 0 to c - 1.
pub(crate) fn check_classes(labels: &[u16], classes: usize) -> Result<()> {
    labels.iter().try_for_each(|&label| error::range("label", label.into(), 0, classes.saturating_sub(1)))
}

/// The class of the largest output; of equal ones the lowest.
///
/// ```
/// assert_eq!(tamis::loss::best(&[0.5, 2.0, 2.0]), 1);
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
