//! One step for networks of several outputs, `[W; Wt] <- H_s([W; Wt] + eta g)` over both sides at once (paper IHT,
//! section on vector outputs).
//!
//! The gradient of W is formed panel by panel together with that of Wt and streamed into one selection of s entries;
//! neither is ever stored. Where a count sketch ranks the entries, every one of them is added to it first and the
//! gradient is formed once more for the values of those that stay, so the result does not depend on the order of blocks.
//!
//! A block without weights has no gradient on the other side. While a run starts, random values stand for such blocks, in
//! the gradient alone: they are generated for one panel at a time.

use crate::error::{Error, Result};
use crate::factored::{Factored, Net};
use crate::math::sqrt;
use crate::rng::{Rng, stream};
use crate::sensing::{Sensing, each_strip, head_mut};
use crate::sketch::CountSketch;
use crate::top::Top;
use crate::weights::{Weights, check_support};
use core::ops::Range;

/// Buffers of a step, all the caller's; lengths as [`crate::budget::Outputs`] says.
#[derive(Debug)]
pub struct NetWork<'a> {
    /// n×c: the residual, from the caller; or room for that of a strip.
    pub residual: &'a mut [f32],
    /// p (d + c): a gradient panel.
    pub panel: &'a mut [f32],
    /// p (d + c) each, or none where blocks without weights stay so: indices and values that stand for a panel's.
    pub standin: (&'a mut [u32], &'a mut [f32]),
    /// The operator's.
    pub scratch: &'a mut [f32],
}

/// A batch that is gone through in strips of rows, as many as the residual has room for, as [`crate::sensing::Strips`].
pub struct NetStrips<'a, S: Factored + ?Sized> {
    /// The rows of the batch, which is selected before and after.
    pub rows: Range<usize>,
    /// Computes the residual of the given rows, which are those that are selected, with the operator's scratch.
    pub residual: &'a mut Residual<'a, S>,
}

/// `(sensing, rows, residual, scratch)`, see [`NetStrips`].
pub type Residual<'a, S> =
    dyn FnMut(&mut S, Range<usize>, &mut [f32], &mut [f32]) -> Result<(), <S as Sensing>::Source> + 'a;

/// What one step is to do.
#[derive(Debug)]
pub struct NetStep<'a, 's> {
    /// Length of the step, times the rows of the batch where the residual is not divided by them.
    pub step_size: f32,
    /// Seed of the values that stand for blocks without weights; none where these stay so.
    pub standin: Option<u64>,
    /// Ranks the entries, if given, by the sum of all their steps.
    pub sketch: Option<&'a mut CountSketch<'s>>,
    /// Tells the gates of a step from all others, see [`crate::gates::Gates::key`]: grows by the number of blocks with
    /// every step.
    pub round: u32,
    /// Flat indices of W that are on the support whatever their size, as [`super::Params::must_keep`].
    pub must_keep: &'a [u32],
}

/// One step from `net` to new weights in (`index`, `value`), whose length is s, given the residual of the selected rows, or
/// how to compute it strip by strip.
///
/// The result lists the entries of W, then those of Wt with indices behind all of W: flat index `m d + i c + k`.
///
/// # Errors
/// [`Error::Length`] if a buffer is too short, [`Error::Range`] or [`Error::Unsorted`] for indices that must be kept and are
/// more than s, lie outside or do not rise, [`Error::Diverged`] if the iterate leaves the finite numbers, [`Error::Source`] if
/// reading the data fails.
pub fn step_net<S: Factored>(
    sensing: &mut S,
    net: Net<'_>,
    mut step: NetStep<'_, '_>,
    mut strips: Option<NetStrips<'_, S>>,
    (index, value): (&mut [u32], &mut [f32]),
    work: &mut NetWork<'_>,
) -> Result<usize, S::Source> {
    let how = How { standin: step.standin, round: step.round };
    let mut stream_net = |sensing: &mut S, work: &mut NetWork<'_>, offer: &mut dyn FnMut(u32, f32, f32)| {
        stream_net(sensing, net, how, &mut strips, work, offer)
    };
    let keep = step.must_keep;
    check_support(net.w().inputs(), net.w().hidden(), keep).map_err(Error::widen)?;
    if let Some(sketch) = step.sketch.as_deref_mut() {
        stream_net(sensing, work, &mut |j, _, g| sketch.add(j, step.step_size * g))?;
        let mut top = Top::keeping(&mut *index, &mut *value, keep).map_err(Error::widen)?;
        let all = sensing.blocks() * (net.w().inputs() + net.outputs());
        for j in 0..all as u32 {
            top.push(j, sketch.estimate(j));
        }
        let len = top.finish().ok_or(Error::Diverged { step: 0 })?;
        let (index, value) = (head_mut(index, len)?, head_mut(value, len)?);
        value.fill(0.0);
        let [mut to, mut to_out] = split((index, value), sensing.blocks() * net.w().inputs());
        stream_net(sensing, work, &mut |j, old, g| {
            // Each side comes in rising order of its own.
            let side = if to.0.first() == Some(&j) { &mut to } else { &mut to_out };
            if side.0.first() == Some(&j)
                && let Some((_, rest)) = core::mem::take(&mut side.0).split_first()
                && let Some((value, values)) = core::mem::take(&mut side.1).split_first_mut()
            {
                *value = old + step.step_size * g;
                *side = (rest, values);
            }
        })?;
        if !value.iter().all(|v| v.is_finite()) {
            return Err(Error::Diverged { step: 0 });
        }
        return Ok(compact(index, value, keep));
    }
    let mut top = Top::keeping(index, value, keep).map_err(Error::widen)?;
    stream_net(sensing, work, &mut |j, old, g| top.push(j, old + step.step_size * g))?;
    top.finish().ok_or(Error::Diverged { step: 0 })
}

/// What the stream needs of a step.
#[derive(Clone, Copy)]
struct How {
    standin: Option<u64>,
    round: u32,
}

/// A result cut where the entries of Wt begin.
fn split<'a>((index, value): (&'a [u32], &'a mut [f32]), at: usize) -> [(&'a [u32], &'a mut [f32]); 2] {
    let first = index.partition_point(|&j| (j as usize) < at);
    let (index, out_index) = index.split_at(first);
    let (value, out_value) = value.split_at_mut(first);
    [(index, value), (out_index, out_value)]
}

/// Takes zeros out: they are no weights, but where they must be kept.
fn compact(index: &mut [u32], value: &mut [f32], keep: &[u32]) -> usize {
    let mut len = 0;
    for at in 0..value.len() {
        let (Some(&j), Some(&v)) = (index.get(at), value.get(at)) else { continue };
        if (v != 0.0 || keep.binary_search(&j).is_ok())
            && let (Some(index), Some(value)) = (index.get_mut(len), value.get_mut(len))
        {
            (*index, *value) = (j, v);
            len += 1;
        }
    }
    len
}

/// Calls `offer(j, old value, gradient)` for every entry of both sides, panel by panel.
fn stream_net<S: Factored>(
    sensing: &mut S,
    net: Net<'_>,
    how: How,
    strips: &mut Option<NetStrips<'_, S>>,
    work: &mut NetWork<'_>,
    offer: &mut dyn FnMut(u32, f32, f32),
) -> Result<(), S::Source> {
    let (d, c, m) = (net.w().inputs(), net.outputs(), sensing.blocks());
    let room = work.panel.len() / (d + c).max(1);
    if room == 0 {
        return Err(Error::Length { what: "panel", expected: d + c, got: work.panel.len() });
    }
    let p = room.min(sensing.panel()).max(1);
    let [mut old, mut old_out] =
        [net.w(), net.wt()].map(|side| side.index().iter().zip(side.value()).peekable());
    for first in (0..m).step_by(p) {
        let blocks = first..(first + p).min(m);
        let (dw, rest) = work.panel.split_at_mut_checked(blocks.len() * d).unwrap_or_default();
        let dwt = head_mut(rest, blocks.len() * c)?;
        dw.fill(0.0);
        dwt.fill(0.0);
        let mut at;
        let (panel, round) = match how.standin {
            Some(seed) => {
                at = Standin { seed, index: &mut *work.standin.0, value: &mut *work.standin.1 };
                (at.panel(net, blocks.clone())?, how.round.wrapping_add((first / p) as u32))
            }
            None => (net, how.round),
        };
        let gates = panel.gates(round);
        let mut add = |sensing: &mut S, r: &[f32], scratch: &mut [f32]| {
            sensing.net_gradient(gates, panel, r, blocks.clone(), (&mut *dw, &mut *dwt), scratch)
        };
        match strips {
            None => add(sensing, work.residual, work.scratch)?,
            Some(NetStrips { rows, residual }) => {
                each_strip(sensing, rows, work.residual.len() / c.max(1), |sensing, part| {
                    let r = head_mut(work.residual, part.len() * c)?;
                    residual(sensing, rows.start + part.start..rows.start + part.end, r, work.scratch)?;
                    add(sensing, r, work.scratch)
                })?;
            }
        }
        let base = (first * d) as u32;
        for (j, g) in (base..).zip(&*dw) {
            offer(j, old.next_if(|&(&i, _)| i == j).map_or(0.0, |(_, &v)| v), *g);
        }
        let base = (first * c) as u32;
        for (j, g) in (base..).zip(&*dwt) {
            let old = old_out.next_if(|&(&i, _)| i == j).map_or(0.0, |(_, &v)| v);
            offer((m * d) as u32 + j, old, *g);
        }
    }
    Ok(())
}

/// Builds a network of the blocks of one panel, with random values for blocks that have no weights, or none but
/// zeros that must be kept.
struct Standin<'b> {
    seed: u64,
    index: &'b mut [u32],
    value: &'b mut [f32],
}

impl Standin<'_> {
    /// Uniform values within `±1/sqrt(d m)` for empty blocks of W, `±1/sqrt(m c)` for those of Wt.
    fn panel<S>(&mut self, net: Net<'_>, blocks: Range<usize>) -> Result<Net<'_>, S> {
        let mut at = 0;
        self.side(net.w(), blocks.clone(), 0, &mut at)?;
        let first = at;
        self.side(net.wt(), blocks, 1, &mut at)?;
        let (index, value) = (self.index.get(..at).unwrap_or(&[]), self.value.get(..at).unwrap_or(&[]));
        let ((index, out_index), (value, out_value)) = (index.split_at(first), value.split_at(first));
        let m = net.w().hidden();
        let w = Weights::new(net.w().inputs(), m, index, value).map_err(Error::widen)?;
        let wt = Weights::new(net.outputs(), m, out_index, out_value).map_err(Error::widen)?;
        Net::new(w, wt).map_err(Error::widen)
    }

    fn side<S>(
        &mut self,
        side: Weights<'_>,
        blocks: Range<usize>,
        which: u64,
        at: &mut usize,
    ) -> Result<(), S> {
        let width = side.inputs();
        let bound = 1.0 / sqrt((width * side.hidden()).max(1) as f32);
        for i in blocks {
            let block = side.block(i);
            let base = (i * width) as u32;
            let mut rng = Rng::new(self.seed, stream::STANDIN + 2 * i as u64 + which);
            let len = if block.is_live() { block.values().len() } else { width };
            let end = *at + len;
            let (index, value) = (self.index.get_mut(*at..end), self.value.get_mut(*at..end));
            let (Some(index), Some(value)) = (index, value) else {
                return Err(Error::Length {
                    what: "room for random blocks",
                    expected: end,
                    got: self.value.len(),
                });
            };
            *at = end;
            if block.is_live() {
                for ((index, value), (k, w)) in index.iter_mut().zip(value).zip(block.entries()) {
                    (*index, *value) = (base + k as u32, w);
                }
            } else {
                for (k, (index, value)) in (base..).zip(index.iter_mut().zip(value)) {
                    (*index, *value) = (k, bound * (2.0 * rng.uniform() - 1.0));
                }
            }
        }
        Ok(())
    }
}
