//! How long the arrays of a layer are, from the fields before them.

use super::{TAG_DENSE, TAG_MASK, TAG_WINDOWS};
use crate::infer::model::windows;

/// Bytes of the arrays of a layer of floats, in the order of the specification.
#[inline(always)]
pub(super) const fn float_arrays(
    tag: u16,
    inputs: usize,
    outputs: usize,
    nonzeros: usize,
) -> [usize; 3] {
    let is_windows = tag == TAG_WINDOWS;
    let counts = if is_windows {
        outputs.saturating_mul(windows(inputs))
    } else {
        outputs.saturating_mul(2)
    };
    let columns = if is_windows { nonzeros } else { nonzeros.saturating_mul(2) };
    [counts, columns, nonzeros.saturating_mul(4)]
}

/// The same of the weights of a layer of integers.
#[inline(always)]
pub(super) const fn integer_arrays(
    tag: u16,
    inputs: usize,
    outputs: usize,
    nonzeros: usize,
) -> [usize; 2] {
    match tag {
        TAG_DENSE => [outputs.saturating_mul(inputs), 0],
        TAG_MASK => [outputs.saturating_mul(inputs.div_ceil(32)).saturating_mul(4), nonzeros],
        _ => [outputs.saturating_mul(windows(inputs)), nonzeros.saturating_mul(2)],
    }
}
