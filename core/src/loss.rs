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
