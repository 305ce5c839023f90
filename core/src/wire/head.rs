//! How long the arrays of a layer are, from the fields before them.

use super::{TAG_BLOCKS, TAG_DELTA, TAG_DENSE, TAG_FAN, TAG_MASK, TAG_WINDOWS};
use crate::model::windows;
use crate::quantised::WINDOW;

/// Bytes of the arrays of a layer of floats, in the order of the specification.
#[inline(always)]
pub(super) const fn float_arrays(tag: u16, inputs: usize, outputs: usize, nonzeros: usize) -> [usize; 3] {
    let is_windows = tag == TAG_WINDOWS;
    let counts = if is_windows { outputs.saturating_mul(windows(inputs)) } else { outputs.saturating_mul(2) };
    let columns = if is_windows { nonzeros } else { nonzeros.saturating_mul(2) };
    [counts, columns, nonzeros.saturating_mul(4)]
}

/// The same of the weights of a layer of integers, of so many inputs, outputs and nonzeros.
#[inline(always)]
pub(super) const fn integer_arrays(
    tag: u16,
    [inputs, outputs, nonzeros]: [usize; 3],
    extent: usize,
) -> [usize; 3] {
    let width = if extent == 0 { inputs } else { extent };
    match tag {
        TAG_DENSE => [extent.saturating_mul(2), outputs.saturating_mul(width), 0],
        TAG_MASK => {
            let words = outputs.saturating_mul(width.div_ceil(32));
            [extent.saturating_mul(2), words.saturating_mul(4), nonzeros]
        }
        TAG_DELTA => [2 * outputs, extent, nonzeros],
        TAG_BLOCKS => [outputs.saturating_mul(windows(inputs)), nonzeros.saturating_mul(2), 0],
        TAG_FAN => [nonzeros.saturating_mul(if inputs > WINDOW { 2 } else { 1 }), nonzeros, 0],
        _ => [2 * outputs, nonzeros.saturating_mul(2), nonzeros],
    }
}
