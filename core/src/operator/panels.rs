//! The one stream of panels: what is too large to be stored, a few blocks at a time.

use crate::base::error::{Error, Result};
use crate::operator::sensing::{Sensing, head_mut};
use core::ops::Range;

/// Calls `body(sensing, blocks, panel)` for all blocks in order, as many at a time as suit the
/// operator and fit the buffer with `width` floats each. What is in the panel before is what the
/// last call left there.
///
/// # Errors
/// [`Error::Length`] for a buffer that no block fits; those of `body`.
pub(crate) fn panels<S: Sensing + ?Sized>(
    sensing: &mut S,
    buffer: &mut [f32],
    width: usize,
    mut body: impl FnMut(&mut S, Range<usize>, &mut [f32]) -> Result<(), S::Source>,
) -> Result<(), S::Source> {
    let (m, room) = (sensing.blocks(), buffer.len() / width.max(1));
    if room == 0 {
        return Err(Error::Length { what: "panel", expected: width, got: buffer.len() });
    }
    let p = room.min(sensing.panel()).max(1);
    for first in (0..m).step_by(p) {
        let blocks = first..(first + p).min(m);
        let panel = head_mut(buffer, width * blocks.len())?;
        body(sensing, blocks, panel)?;
    }
    Ok(())
}
