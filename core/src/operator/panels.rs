//! Panels: what is too large to be stored, a few blocks at a time.

use crate::base::error::{Error, Result};
use crate::network::gates::Gates;
use crate::network::weights::runs;
use crate::operator::machine::Machine;
use crate::operator::sensing::{Rows, Sensing, Work, add_up, head_mut};
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

/// Calls `use_it(position, |A_j|²)` for every index j of a support in order, neuron by neuron.
pub(crate) fn norms_at<S: Sensing>(
    sensing: &mut S,
    gates: Gates<'_>,
    support: &[u32],
    work: &mut Work<'_, Rows<S>>,
    mut use_it: impl FnMut(usize, f32),
) -> Result<(), S::Source> {
    let d = sensing.inputs();
    for (i, run) in runs(d, support) {
        let norms = head_mut(work.panel, d)?;
        let mut of_block = |sensing: &mut S, norms: &mut [f32]| {
            sensing.column_norms(gates, i..i + 1, norms, work.scratch)
        };
        match &mut work.strips {
            None => of_block(sensing, norms)?,
            Some(strips) => {
                let strip = S::Machine::len(work.residual);
                add_up(sensing, strips, strip, norms, |sensing, _, norms| {
                    of_block(sensing, norms)
                })?;
            }
        }
        for at in run {
            let Some(&j) = support.get(at) else { continue };
            use_it(at, norms.get((j as usize).wrapping_sub(i * d)).copied().unwrap_or(0.0));
        }
    }
    Ok(())
}
