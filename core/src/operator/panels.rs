//! Panels: what is too large to be stored, a few blocks at a time.

use crate::base::error::{Error, Result};
use crate::operator::sensing::{Done, Sensing, head_mut};
use core::ops::Range;

/// Calls `body(sensing, blocks, panel)` for all blocks in order, as many at a time as suit the
/// operator and fit the buffer with `width` floats each. What is in the panel before is what the
/// last call left there.
///
/// # Errors
/// As [`ranges`]; those of `body`.
pub(crate) fn panels<S: Sensing + ?Sized>(
    sensing: &mut S,
    buffer: &mut [f32],
    width: usize,
    mut body: impl FnMut(&mut S, Range<usize>, &mut [f32]) -> Done<S>,
) -> Done<S> {
    ranges(sensing, buffer.len(), width)?.try_for_each(|blocks| {
        let panel = head_mut(buffer, width * blocks.len())?;
        body(sensing, blocks, panel)
    })
}

/// The blocks of each panel, in order, for a buffer of `room` floats.
///
/// # Errors
/// [`Error::Length`] for a buffer that no block fits.
pub(crate) fn ranges<S: Sensing + ?Sized>(
    sensing: &S,
    room: usize,
    width: usize,
) -> Result<impl Iterator<Item = Range<usize>> + use<S>, S::Source> {
    let (m, p) = (sensing.blocks(), (room / width.max(1)).min(sensing.panel().max(1)));
    if p == 0 {
        return Err(Error::Length { what: "panel", expected: width, got: room });
    }
    Ok((0..m).step_by(p).map(move |first| first..(first + p).min(m)))
}
