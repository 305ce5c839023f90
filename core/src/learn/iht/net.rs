//! One step for networks of several outputs, `[W; Wt] <- H_s([W; Wt] + eta g)` over both sides at
//! once (paper IHT, section on vector outputs).
//!
//! The gradient of W is formed panel by panel together with that of Wt and streamed into one
//! selection of s entries; neither is ever stored. Where a count sketch ranks the entries, every
//! one of them is added to it first and the gradient is formed once more for the values of those
//! that stay, so the result does not depend on the order of blocks.
//!
//! A block without weights has no gradient on the other side. While a run starts, random values
//! stand for such blocks, in the gradient alone: they are generated for one panel at a time.

use crate::base::error::{Error, Result};
use crate::base::math::{scale, sqrt};
use crate::base::rng::{Rng, stream};
use crate::learn::loss::Labels;
use crate::network::net::{Count, EntriesMut, Network};
use crate::network::sketch::CountSketch;
use crate::network::top::Top;
use crate::network::weights::{Weights, check_support};
use crate::operator::factored::{Factored, GradientMut};
use crate::operator::panels::panels;
use crate::operator::sensing::{each_strip, head_mut};
use core::ops::Range;

/// Buffers of a step, all the caller's; lengths as [`crate::base::budget::Training`] says.
pub(crate) struct NetWork<'a> {
    /// n×c: the residual of the batch, or room for that of a strip of it.
    pub(crate) residual: &'a mut [f32],
    /// p (d + c): a gradient panel.
    pub(crate) panel: &'a mut [f32],
    /// p (d + c) each, or none where blocks without weights stay so: what stands for a panel's
    /// entries.
    pub(crate) standin: EntriesMut<'a>,
    /// The operator's.
    pub(crate) scratch: &'a mut [f32],
}

/// The rows that a step looks at.
#[derive(Clone)]
pub(crate) struct Batch<'a> {
    /// Labels of all rows.
    pub(crate) labels: Labels<'a>,
    /// The rows of the batch, which are selected.
    pub(crate) rows: Range<usize>,
    /// Rows whose residuals there is room for.
    pub(crate) strip: usize,
}

/// What one step is to do.
pub(crate) struct NetStep<'a, 's> {
    /// Length of the step, for a gradient that is divided by the rows of the batch.
    pub(crate) step_size: f32,
    /// Seed of the values that stand for blocks without weights; none where these stay so.
    pub(crate) standin: Option<u64>,
    /// Ranks the entries, if given, by the sum of all their steps.
    pub(crate) sketch: Option<&'a mut CountSketch<'s>>,
    /// Tells the gates of a step from all others, see [`crate::network::gates::Gates::key`]: grows
    /// by the number of blocks with every step.
    pub(crate) round: u32,
    /// Flat indices of W that are on the support whatever their size, as
    /// [`super::Params::must_keep`].
    pub(crate) must_keep: &'a [u32],
}

/// Leaves the residual of `rows`, which are selected, in `out`; the sum of their losses.
pub(crate) fn residual<S: Factored>(
    sensing: &mut S,
    net: Network<'_>,
    round: u32,
    labels: Labels<'_>,
    rows: Range<usize>,
    out: &mut [f32],
    scratch: &mut [f32],
) -> Result<f32, S::Source> {
    sensing.net_forward(net.gates(round), net, out, scratch)?;
    labels.residual(rows, net.outputs(), out).map_err(Error::widen)
}

/// One step from `net` to new weights in `out`, whose length is s, given the residual of the batch
/// where there is room for it; the number of entries.
///
/// The result lists the entries of W, then those of Wt with indices behind all of W: flat index
/// `m d + i c + k`.
///
/// # Errors
/// [`Error::Length`] if a buffer is too short, [`Error::Range`] or [`Error::Unsorted`] for indices
/// that must be kept and are more than s, lie outside or do not rise, [`Error::Diverged`] if the
/// iterate leaves the finite numbers, [`Error::Source`] if reading the data fails.
pub(crate) fn step_net<S: Factored>(
    sensing: &mut S,
    net: Network<'_>,
    batch: &Batch<'_>,
    mut step: NetStep<'_, '_>,
    mut out: EntriesMut<'_>,
    work: &mut NetWork<'_>,
) -> Result<usize, S::Source> {
    let (eta, must_keep) = (step.step_size, step.must_keep);
    check_support(net.w().inputs(), net.w().hidden(), must_keep).map_err(Error::widen)?;
    if batch.rows.len() <= batch.strip {
        scale(1.0 / batch.rows.len() as f32, work.residual);
    }
    let stream = Stream { net, batch, standin: step.standin, round: step.round };
    let Some(sketch) = step.sketch.as_deref_mut() else {
        let mut top = Top::keeping(out.index, out.value, must_keep).map_err(Error::widen)?;
        stream.offer(sensing, work, &mut |j, old, g| top.push(j, old + eta * g))?;
        return top.finish().ok_or(Error::Diverged { step: 0 });
    };
    stream.offer(sensing, work, &mut |j, _, g| sketch.add(j, eta * g))?;
    let len = ranked(sketch, &net, out.reborrow(), must_keep)?;
    let (index, value) = (head_mut(out.index, len)?, head_mut(out.value, len)?);
    value.fill(0.0);
    let [mut to, mut to_out] = split(index, value, net.shape().input_weights());
    stream.offer(sensing, work, &mut |j, old, g| {
        // Each side comes in rising order of its own.
        let side = if to.next == Some(j) { &mut to } else { &mut to_out };
        if side.next == Some(j) {
            side.set(old + eta * g);
        }
    })?;
    if !value.iter().all(|v| v.is_finite()) {
        return Err(Error::Diverged { step: 0 });
    }
    Ok(compact(index, value, must_keep))
}

/// The entries of largest sum by the sketch, and those that must be kept; how many.
fn ranked<S>(
    sketch: &CountSketch<'_>,
    net: &Network<'_>,
    out: EntriesMut<'_>,
    must_keep: &[u32],
) -> Result<usize, S> {
    let EntriesMut { index, value } = out;
    let mut top = Top::keeping(index, value, must_keep).map_err(Error::widen)?;
    let all = net.w().hidden() * (net.w().inputs() + net.outputs());
    for j in 0..all as u32 {
        top.push(j, sketch.estimate(j));
    }
    top.finish().ok_or(Error::Diverged { step: 0 })
}

/// Values of one side, filled in rising order of their indices.
struct Side<'a> {
    /// The index of the next value.
    next: Option<u32>,
    index: &'a [u32],
    value: core::slice::IterMut<'a, f32>,
}

impl<'a> Side<'a> {
    fn new(index: &'a [u32], value: &'a mut [f32]) -> Self {
        Self { next: index.first().copied(), index, value: value.iter_mut() }
    }

    fn set(&mut self, value: f32) {
        if let Some(to) = self.value.next() {
            *to = value;
        }
        self.index = self.index.get(1..).unwrap_or(&[]);
        self.next = self.index.first().copied();
    }
}

/// A result cut where the entries of Wt begin.
fn split<'a>(index: &'a [u32], value: &'a mut [f32], at: usize) -> [Side<'a>; 2] {
    let first = index.partition_point(|&j| (j as usize) < at);
    let ((index, out_index), (value, out_value)) =
        (index.split_at(first), value.split_at_mut(first));
    [Side::new(index, value), Side::new(out_index, out_value)]
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

/// The gradient of one batch, panel by panel.
struct Stream<'a> {
    net: Network<'a>,
    batch: &'a Batch<'a>,
    standin: Option<u64>,
    round: u32,
}

impl Stream<'_> {
    /// Calls `offer(j, old value, gradient)` for every entry of both sides.
    fn offer<S: Factored>(
        &self,
        sensing: &mut S,
        work: &mut NetWork<'_>,
        offer: &mut dyn FnMut(u32, f32, f32),
    ) -> Result<(), S::Source> {
        let &Stream { net, batch: Batch { labels, rows, strip }, standin, round } = self;
        let (d, c, m, labels, strip) =
            (net.w().inputs(), net.outputs(), sensing.blocks(), *labels, *strip);
        let [mut old, mut old_out] =
            [net.w(), net.wt()].map(|side| side.index().iter().zip(side.value()).peekable());
        let (NetWork { residual: room, panel, standin: entries, scratch }, mut number) = (work, 0);
        panels(sensing, panel, d + c, |sensing, blocks, panel| {
            panel.fill(0.0);
            let mut gradient = GradientMut::split(panel, blocks.len() * d);
            let (panel, gates) = match standin {
                Some(seed) => {
                    let panel =
                        Standin { seed, entries: entries.reborrow() }.panel(net, blocks.clone())?;
                    (panel, panel.gates(round.wrapping_add(number)))
                }
                None => (net, net.gates(round)),
            };
            number += 1;
            let mut add = |sensing: &mut S, r: &[f32], scratch: &mut [f32]| {
                let to = gradient.reborrow();
                sensing.net_gradient(gates, panel, r, blocks.clone(), to, scratch)
            };
            if rows.len() <= strip {
                add(sensing, room, scratch)?;
            } else {
                each_strip(sensing, rows, strip, |sensing, part| {
                    let r = head_mut(room, part.len() * c)?;
                    let part = rows.start + part.start..rows.start + part.end;
                    residual(sensing, net, round, labels, part, r, scratch)?;
                    scale(1.0 / rows.len() as f32, r);
                    add(sensing, r, scratch)
                })?;
            }
            let base = (blocks.start * d) as u32;
            for (j, g) in (base..).zip(&*gradient.w) {
                offer(j, old.next_if(|&(&i, _)| i == j).map_or(0.0, |(_, &v)| v), *g);
            }
            let base = (blocks.start * c) as u32;
            for (j, g) in (base..).zip(&*gradient.wt) {
                let old = old_out.next_if(|&(&i, _)| i == j).map_or(0.0, |(_, &v)| v);
                offer((m * d) as u32 + j, old, *g);
            }
            Ok(())
        })
    }
}

/// Builds a network of the blocks of one panel, with random values for blocks that have no weights,
/// or none but zeros that must be kept.
struct Standin<'b> {
    seed: u64,
    entries: EntriesMut<'b>,
}

impl<'b> Standin<'b> {
    /// Uniform values within `±1/sqrt(d m)` for empty blocks of W, `±1/sqrt(m c)` for those of Wt.
    fn panel<S>(mut self, net: Network<'_>, blocks: Range<usize>) -> Result<Network<'b>, S> {
        let mut at = 0;
        self.side(net.w(), blocks.clone(), 0, &mut at)?;
        let first = at;
        self.side(net.wt(), blocks, 1, &mut at)?;
        let EntriesMut { index, value } = self.entries;
        Ok(Network::cut(net.shape(), index, value, Count { first, all: at }))
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
            let (index, value) =
                (self.entries.index.get_mut(*at..end), self.entries.value.get_mut(*at..end));
            let (Some(index), Some(value)) = (index, value) else {
                return Err(Error::Length {
                    what: "room for random blocks",
                    expected: end,
                    got: self.entries.value.len(),
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
