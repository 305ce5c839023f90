//! One step for networks of several outputs, `[W; Wt] <- H_s([W; Wt] + eta g)` over both sides at
//! once (paper IHT, section on vector outputs).
//!
//! The gradient of both sides is formed panel by panel and streamed into one selection of s entries.
//! Where a count sketch ranks the entries, all are added to it first and the gradient is gone through
//! twice more: to rank those that the step does not leave at 0, and for the values of those that stay.
//! So the result does not depend on the order of blocks. The gradient is formed again each time, but
//! where one panel has room for all of it.
//!
//! A block without weights has no gradient on the other side. While a run starts, random values
//! stand for such blocks: in the gradient, and as published in what the step starts from.

use crate::base::error::{Error, Result};
use crate::base::math::sqrt;
use crate::base::rng::{Rng, stream};
use crate::learn::loss::Labels;
use crate::network::gates::Gates;
use crate::network::net::{Count, EntriesMut, Network};
use crate::network::sketch::CountSketch;
use crate::network::top::Top;
use crate::network::weights::{Editable, check_support};
use crate::operator::factored::{Factored, GradientMut};
use crate::operator::panels::panels;
use crate::operator::sensing::{Done, Rows, Sensing, each_strip, head_mut, row_head};
use crate::operator::tables::{Residual, Tables};
use core::iter::{Peekable, Zip};
use core::ops::Range;
use core::slice::Iter;

/// Buffers of a step, all the caller's; lengths as [`crate::base::budget::Training`] says.
pub(crate) struct NetWork<'a, R: ?Sized> {
    /// n×c: the residual of the batch, or room for that of a strip of it.
    pub(crate) residual: &'a mut R,
    /// p (d + c): a gradient panel.
    pub(crate) panel: &'a mut [f32],
    /// p (d + c) each, or none where blocks without weights stay so: what stands for a panel's
    /// entries.
    pub(crate) standin: EntriesMut<'a>,
    /// The operator's.
    pub(crate) scratch: &'a mut [f32],
    /// For one output what a strip adds to a sum, see [`crate::operator::sensing::Strips`].
    pub(crate) strip: &'a mut [f32],
}

/// One step from `net` on a batch.
pub(crate) struct NetStep<'a, S: Sensing> {
    pub(crate) net: Network<'a>,
    /// Labels of all rows.
    pub(crate) labels: Labels<'a, S::Machine>,
    /// The rows of the batch, which are selected.
    pub(crate) rows: Range<usize>,
    /// Rows whose residuals there is room for.
    pub(crate) strip: usize,
    /// Length of the step, for a gradient that is divided by the rows of the batch.
    pub(crate) step_size: f32,
    /// Seed of the values that stand for blocks without weights; none where these stay so.
    pub(crate) standin: Option<u64>,
    /// Whether the step starts from these values, and gates are not of them.
    pub(crate) keep_standins: bool,
    /// The gates, where they are not those of the weights.
    pub(crate) generators: Option<Gates<'a>>,
    /// Tells the gates of a step from all others: grows by the number of blocks with every step.
    pub(crate) round: u32,
    /// As [`super::Params::must_keep`].
    pub(crate) must_keep: &'a [u32],
}

impl<S: Factored> NetStep<'_, S> {
    /// Makes the step, to new weights in a buffer of s entries, given the residual of the batch
    /// where there is room for it; the number of entries, those of W, then those of Wt with flat
    /// indices `m d + i c + k`. A sketch ranks the entries by the sum of all their steps.
    ///
    /// # Errors
    /// As [`super::step`].
    pub(crate) fn take(
        &self,
        sensing: &mut S,
        sketch: Option<&mut CountSketch<'_>>,
        EntriesMut { index, value }: EntriesMut<'_>,
        work: &mut NetWork<'_, Rows<S>>,
    ) -> Result<usize, S::Source> {
        let (net, eta, must_keep) = (self.net, self.step_size, self.must_keep);
        check_support(net.w().inputs(), net.w().hidden(), must_keep).map_err(Error::widen)?;
        if self.rows.len() <= self.strip {
            let residual = row_head::<S>(work.residual, self.rows.len() * net.outputs())?;
            sensing.machine().scale(residual, 1.0 / self.rows.len() as f32);
        }
        let top = |index, value| Top::keeping(index, value, must_keep).map_err(Error::widen);
        let diverged = Error::Diverged { step: 0 };
        let Some(sketch) = sketch else {
            let mut top = top(index, value)?;
            self.offer(sensing, work, true, &mut |j, old, g| top.push(j, old + eta * g))?;
            return top.finish().ok_or(diverged);
        };
        self.offer(sensing, work, true, &mut |j, _, g| sketch.add(j, eta * g))?;
        let mut best = top(&mut *index, &mut *value)?;
        // What a step leaves at 0 takes no place, whatever steps before it have added up to.
        self.offer(sensing, work, false, &mut |j, old, g| {
            if old + eta * g != 0.0 {
                best.push(j, sketch.estimate(j));
            }
        })?;
        let all = net.w().hidden() * (net.w().inputs() + net.outputs());
        let Some(len) = best.finish() else { return Err(diverged) };
        let (index, value) = (head_mut(index, len)?, head_mut(value, len)?);
        value.fill(0.0);
        // Each side comes in rising order of its own: the places of the next entry of either.
        let base = net.shape().input_weights();
        let (mut next, mut next_out) = (0, index.partition_point(|&j| (j as usize) < base));
        self.offer(sensing, work, false, &mut |j, old, g| {
            let at = if (j as usize) < base { &mut next } else { &mut next_out };
            if index.get(*at) == Some(&j)
                && let Some(value) = value.get_mut(*at)
            {
                *value = old + eta * g;
                *at += 1;
            }
        })?;
        if !value.iter().all(|v| v.is_finite()) {
            return Err(diverged);
        }
        // Zeros are no weights, but where they must be kept.
        let mut entries = Editable::resumed(all, 1, len, index, value);
        entries.retain(|j, v| v != 0.0 || must_keep.binary_search(&j).is_ok());
        Ok(entries.nnz())
    }

    /// Calls `offer(j, old value, gradient)` for every entry of both sides, panel by panel. Not the
    /// first time the gradient of one panel for all is what the last call left there.
    fn offer(
        &self,
        sensing: &mut S,
        work: &mut NetWork<'_, Rows<S>>,
        first: bool,
        offer: &mut dyn FnMut(u32, f32, f32),
    ) -> Done<S> {
        let &Self { net, labels, ref rows, strip, standin, generators, round, .. } = self;
        let (d, c, m) = (net.w().inputs(), net.outputs(), sensing.blocks());
        let mut own = values_of(net);
        let (NetWork { residual: room, panel, standin: entries, scratch, .. }, mut number) =
            (work, 0);
        panels(sensing, panel, d + c, |sensing, blocks, panel| {
            let is_made = !first && blocks.len() == m;
            if !is_made {
                panel.fill(0.0);
            }
            let mut gradient = GradientMut::split(panel, blocks.len() * d);
            let (panel, gates) = match standin {
                Some(seed) => {
                    let panel = standins(seed, net, blocks.clone(), entries.reborrow())?;
                    let of = if self.keep_standins { net } else { panel };
                    (panel, of.gates(round.wrapping_add(number)))
                }
                None => (net, net.gates(round)),
            };
            let gates = generators.unwrap_or(gates);
            number += 1;
            let mut add = |sensing: &mut S, r: &Rows<S>, scratch: &mut [f32]| {
                let (r, to) = (Residual::Each(r), gradient.reborrow());
                sensing.net_gradient(gates, panel, r, blocks.clone(), to, scratch)
            };
            if is_made {
                // Nothing is to be added.
            } else if rows.len() <= strip {
                add(sensing, row_head::<S>(room, rows.len() * c)?, scratch)?;
            } else {
                each_strip(sensing, rows, strip, |sensing, part| {
                    let r = row_head::<S>(room, part.len() * c)?;
                    let part = rows.start + part.start..rows.start + part.end;
                    let gates = generators.unwrap_or(net.gates(round));
                    sensing.net_forward(gates, net, r, scratch)?;
                    let machine = sensing.machine();
                    labels.residual(machine, part, c, r).map_err(Error::widen)?;
                    machine.scale(r, 1.0 / rows.len() as f32);
                    add(sensing, r, scratch)
                })?;
            }
            let mut each = |[old, old_out]: &mut [Values<'_>; 2]| {
                for (j, g) in ((blocks.start * d) as u32..).zip(&*gradient.w) {
                    offer(j, value_at(old, j), *g);
                }
                for (j, g) in ((blocks.start * c) as u32..).zip(&*gradient.wt) {
                    offer((m * d) as u32 + j, value_at(old_out, j), *g);
                }
            };
            if standin.is_some() && self.keep_standins {
                each(&mut values_of(panel));
            } else {
                each(&mut own);
            }
            Ok(())
        })
    }
}

/// Entries of a side that are gone through in order.
type Values<'a> = Peekable<Zip<Iter<'a, u32>, Iter<'a, f32>>>;

/// Those of W and of Wt.
fn values_of(net: Network<'_>) -> [Values<'_>; 2] {
    [net.w(), net.wt()].map(|side| side.index().iter().zip(side.value()).peekable())
}

/// The value at `j`, which rises from call to call.
fn value_at(values: &mut Values<'_>, j: u32) -> f32 {
    values.next_if(|&(&i, _)| i == j).map_or(0.0, |(_, &v)| v)
}

/// A network of the blocks of one panel, with random values for blocks that have no weights, or
/// none but zeros that must be kept: uniform within `±1/sqrt(d m)` for blocks of W, `±1/sqrt(m c)`
/// for those of Wt.
fn standins<'a, S>(
    seed: u64,
    net: Network<'_>,
    blocks: Range<usize>,
    EntriesMut { index, value }: EntriesMut<'a>,
) -> Result<Network<'a>, S> {
    let mut count = Count::default();
    for (which, side) in [(0, net.w()), (1, net.wt())] {
        let width = side.inputs();
        let bound = 1.0 / sqrt((width * side.hidden()).max(1) as f32);
        for i in blocks.clone() {
            let (block, start, got) = (side.block(i), count.all, value.len());
            count.all += if block.is_live() { block.values().len() } else { width };
            let (Some(index), Some(value)) =
                (index.get_mut(start..count.all), value.get_mut(start..count.all))
            else {
                let what = "room for random blocks";
                return Err(Error::Length { what, expected: count.all, got });
            };
            let mut rng = Rng::new(seed, stream::STANDIN + 2 * i as u64 + which);
            let mut random = (0..width).map(|k| (k, bound * (2.0 * rng.uniform() - 1.0)));
            let mut own = block.entries();
            let mut next = || if block.is_live() { own.next() } else { random.next() };
            for ((index, value), (k, w)) in
                index.iter_mut().zip(value).zip(core::iter::from_fn(&mut next))
            {
                (*index, *value) = ((i * width + k) as u32, w);
            }
        }
        if which == 0 {
            count.first = count.all;
        }
    }
    Ok(Network::cut(net.shape(), index, value, count))
}
