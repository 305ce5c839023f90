//! Local search moves, and how one neuron is formed from the current residual: with a new direction,
//! or as half of a split neuron. What it could win at once is `⟨r, φ⟩² / |φ|²`, φ being the change
//! of the output.

use super::fit::{Fit, Readout, cut};
use crate::base::error::Result;
use crate::base::math::sqrt;
use crate::base::rng::{Rng, stream};
use crate::network::top::Top;
use crate::network::weights::{Block, Weights};
use crate::operator::machine::{Along, Halves, Hinge, Machine};
use crate::operator::sensing::{Rows, Sensing, row_head};

/// Candidates that are tried before the best of them is taken.
pub(super) const BATCH: usize = 6;
/// Batches before the search gives up.
const BATCHES: usize = 4;

/// A local search move. Its neuron is formed again where it is needed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Move {
    /// Adds a neuron of this output sign, 1 where output weights have signs of their own.
    Add(Origin, f32),
    Split(usize),
    /// Adds a neuron to the second layer.
    Pair(Pair),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// `relu(x_j)` for the even number `2 j`, `relu(-x_j)` for the odd one after it.
    Atom(u32),
    /// A random gate of this seed, and random output weights.
    Random(u64),
    /// The same, and one output alone: `2 k` for output k, `2 k + 1` for its negative.
    Output(u64, u32),
}

/// `relu(a_i - t a_j)` of two activations of the first layer, t being one of a few ratios.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) first: usize,
    pub(super) other: usize,
    pub(super) ratio: usize,
}

/// A move, or what one is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Candidate<M = Move> {
    /// By how much the loss could fall at once.
    pub(super) gain: f32,
    pub(super) kind: M,
}

pub(super) type Candidates = heapless::Vec<Candidate, { BATCH * BATCHES }>;

/// What candidates are drawn from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draw {
    /// Seed of random gates and first directions.
    pub(super) seed: u64,
    /// New neurons from random gates for either sign.
    pub(super) random: u32,
}

/// Input and sign of the atom of this number.
pub(super) fn atom(number: u32) -> (usize, f32) {
    (number as usize / 2, if number.is_multiple_of(2) { 1.0 } else { -1.0 })
}

/// Enters a candidate into a list sorted by gain, best first, and drops the last where it is full.
pub(super) fn rank<M, const N: usize>(
    list: &mut heapless::Vec<Candidate<M>, N>,
    entry: Candidate<M>,
) {
    if !(entry.gain > 0.0) {
        return;
    }
    let at = list.iter().position(|other| entry.gain > other.gain).unwrap_or(list.len());
    if at == N {
        return;
    }
    if list.is_full() {
        list.pop();
    }
    // There is room, and `at` is not behind the end.
    let _ = list.insert(at, entry);
}

/// Steps that refine the direction of a new neuron.
pub(super) const FORM_STEPS: u32 = 5;
/// Power iterations for the direction of a split.
const SPLIT_STEPS: u32 = 4;
/// A split looks at the rows where the activation is below this fraction of its root mean square.
const SPLIT_BAND: f32 = 0.35;
/// Lengths of the two halves' difference that are tried, as a fraction of the neuron's activation.
const SPLIT_LENGTHS: [f32; 5] = [0.15, 0.3, 0.5, 0.8, 1.2];
/// Near an exact fit, below this fraction of the mean square of the labels, what is missing is
/// neurons that are almost alike, or small: then narrower bands are looked at too, …
const NEAR: f32 = 1e-5;
const NARROW: [f32; 4] = [SPLIT_BAND, 0.1, 0.03, 0.01];
/// … shares of the neuron that one of the halves gets, and lengths as a fraction of its share.
const SHARES: [f32; 4] = [0.5, 0.2, 0.05, 0.015];
const SHARE_LENGTHS: [f32; 4] = [1.0, 0.3, 0.1, 0.03];

/// What a neuron is formed as.
#[derive(Clone, Copy)]
pub(super) struct Forming<'a> {
    /// The scales of the columns, d.
    pub(super) scales: &'a [f32],
    pub(super) neuron: usize,
    pub(super) size: usize,
}

/// Entries of one neuron, in buffers of length d.
pub(super) struct Entries<'a> {
    index: &'a mut [u32],
    value: &'a mut [f32],
    len: usize,
}

impl<'a> Entries<'a> {
    pub(super) fn new(index: &'a mut [u32], value: &'a mut [f32]) -> Self {
        Self { index, value, len: 0 }
    }

    pub(super) fn index(&self) -> &[u32] {
        self.index.get(..self.len).unwrap_or(&[])
    }

    pub(super) fn value(&self) -> &[f32] {
        self.value.get(..self.len).unwrap_or(&[])
    }

    /// As weights of `hidden` neurons.
    pub(super) fn view(&self, hidden: usize) -> Weights<'_> {
        let view = Weights::new(self.index.len(), hidden, self.index(), self.value());
        debug_assert!(view.is_ok(), "entries rise within one neuron: {view:?}");
        view.unwrap_or(Weights::empty(self.index.len(), hidden))
    }

    /// Becomes the single entry `value` at the flat index `j`.
    pub(super) fn unit(&mut self, j: u32, value: f32) {
        if let (Some(index), Some(first)) = (self.index.first_mut(), self.value.first_mut()) {
            (*index, *first) = (j, value);
            self.len = 1;
        }
    }

    /// Becomes a dense row of standard normal numbers, as neuron 0.
    pub(super) fn normal(&mut self, mut rng: Rng) {
        self.index.iter_mut().zip(0..).for_each(|(index, j)| *index = j);
        rng.fill_normal(self.value);
        self.len = self.index.len();
    }

    /// Gives every entry of neuron 0 the value of its input.
    pub(super) fn assign(&mut self, value: impl Fn(usize) -> f32) {
        for (v, j) in self.value.iter_mut().zip(&*self.index).take(self.len) {
            *v = value(*j as usize);
        }
    }

    /// Becomes the atom of this number, of unit activation, as neuron `i`.
    pub(super) fn atom(&mut self, number: u32, i: usize, scales: &[f32]) {
        let (j, sign) = atom(number);
        let c = scales.get(j).copied().unwrap_or(0.0);
        self.unit((i * scales.len() + j) as u32, if c > 0.0 { sign / c } else { 0.0 });
    }

    /// Becomes the weights of `block` as those of neuron `to`.
    pub(super) fn take(&mut self, block: Block<'_>, to: usize) {
        let base = to * self.index.len();
        self.len = 0;
        for ((index, value), (j, w)) in
            self.index.iter_mut().zip(&mut *self.value).zip(block.entries())
        {
            (*index, *value) = ((base + j) as u32, w);
            self.len += 1;
        }
    }

    /// Becomes the `k` entries of `dense` of largest `key`, with their `value`, as neuron `i`.
    #[inline(never)]
    pub(super) fn choose(
        &mut self,
        dense: &[f32],
        i: usize,
        k: usize,
        key: impl Fn(usize, f32) -> f32,
        value: impl Fn(usize, f32) -> f32,
    ) {
        let base = i * dense.len();
        let k = k.min(dense.len()).min(self.index.len()).min(self.value.len());
        let (Some(index), Some(values)) = (self.index.get_mut(..k), self.value.get_mut(..k)) else {
            return;
        };
        let mut top = Top::new(&mut *index, &mut *values);
        for (j, &v) in dense.iter().enumerate() {
            top.push((base + j) as u32, key(j, v));
        }
        self.len = top.finish().unwrap_or(0);
        for (v, &j) in values.iter_mut().zip(&*index).take(self.len) {
            *v = value((j as usize).wrapping_sub(base), *v);
        }
    }

    /// Becomes a random direction across `means`, normal in the metric of the columns.
    fn across(&mut self, means: &[f32], scales: &[f32], i: usize, seed: u64) {
        let mut rng = Rng::new(seed, stream::NEURON);
        let base = i * means.len();
        let (mut along, mut norm) = (0.0, 0.0);
        self.len = 0;
        for (((index, value), (&mean, &c)), j) in
            self.index.iter_mut().zip(&mut *self.value).zip(means.iter().zip(scales)).zip(base..)
        {
            let (normal, unit) = (rng.normal(), if c > 0.0 { mean / c } else { 0.0 });
            (*index, *value) = (j as u32, normal);
            along += normal * unit;
            norm += unit * unit;
            self.len += 1;
        }
        let part = if norm > 0.0 { along / norm } else { 0.0 };
        for (value, (&mean, &c)) in self.value.iter_mut().zip(means.iter().zip(scales)) {
            *value = if c > 0.0 { (*value - part * mean / c) / c } else { 0.0 };
        }
    }

    /// Becomes the largest `|g| / c` of a gradient, with value `g / c²`.
    pub(super) fn climb(&mut self, g: &[f32], of: Forming<'_>) {
        let scale = |j: usize| of.scales.get(j).copied().unwrap_or(0.0);
        let over = |j: usize, g: f32| if scale(j) > 0.0 { g / scale(j) } else { 0.0 };
        self.choose(g, of.neuron, of.size, over, over);
    }

    /// Becomes the weights of largest `|w| c` of a dense row.
    pub(super) fn sift(&mut self, w: &[f32], of: Forming<'_>) {
        let times = |j: usize, w: f32| of.scales.get(j).map_or(0.0, |c| w * c);
        let over = |j: usize, u: f32| of.scales.get(j).map_or(0.0, |c| u / c);
        self.choose(w, of.neuron, of.size, times, over);
    }

    pub(super) fn scale(&mut self, factor: f32) {
        self.value.iter_mut().take(self.len).for_each(|v| *v *= factor);
    }

    pub(super) fn shift(&mut self, from: usize, to: usize) {
        let d = self.index.len();
        for j in self.index.iter_mut().take(self.len) {
            *j = (*j as usize).wrapping_sub(from * d).wrapping_add(to * d) as u32;
        }
    }
}

/// Buffers for one neuron, and for outputs of single neurons.
pub(super) struct Single<'a, S: Sensing> {
    pub(super) entries: Entries<'a>,
    /// The share of the neuron split last that its first half gets.
    pub(super) share: f32,
    /// A dense row of weights or of a gradient, d.
    pub(super) dense: &'a mut [f32],
    pub(super) z: &'a mut Rows<S>,
    pub(super) t: &'a mut Rows<S>,
}

impl<S: Sensing> Single<'_, S> {
    /// Forms a new neuron: from its origin it climbs `A_iᵀ r / c²` under its own gate; its gain.
    #[inline(never)]
    pub(super) fn form<H: Readout<S>>(
        &mut self,
        fit: &mut Fit<'_, S, H>,
        of: Forming<'_>,
        origin: Origin,
    ) -> Result<f32, S::Source> {
        let Forming { scales, neuron: i, .. } = of;
        let (m, rows) = (fit.sensing.blocks(), fit.rows());
        let Self { entries, dense, z, .. } = self;
        match origin {
            Origin::Atom(number) => entries.atom(number, i, scales),
            Origin::Random(seed) | Origin::Output(seed, _) => {
                // A random direction across the mean of the rows, so that it splits them in halves.
                let ones = row_head::<S>(z, rows)?;
                fit.sensing.machine().fill(ones, 1.0);
                fit.correlate(fit.open(), i, Some(ones), dense)?;
                entries.across(dense, scales, i, seed);
                fit.correlate(fit.gates(entries.view(m)), i, None, dense)?;
                entries.climb(dense, of);
            }
        }
        for _ in 0..FORM_STEPS {
            fit.correlate(fit.gates(entries.view(m)), i, None, dense)?;
            entries.climb(dense, of);
        }
        let (z, w) = (row_head::<S>(z, rows)?, entries.view(m));
        fit.image(fit.gates(w), w.block(i), z)?;
        Ok(gain(fit.along(z)?))
    }

    /// What the atom of this number could win as neuron `i`, unrefined.
    pub(super) fn atom_gain<H: Readout<S>>(
        &mut self,
        fit: &mut Fit<'_, S, H>,
        number: u32,
        i: usize,
    ) -> Result<f32, S::Source> {
        let (d, m, rows) = (self.dense.len(), fit.sensing.blocks(), fit.rows());
        let (j, sign) = atom(number);
        let (index, value) = ([(i * d + j) as u32], [sign]);
        let w = Weights::new(d, m, &index, &value).unwrap_or(Weights::empty(d, m));
        let z = row_head::<S>(&mut *self.z, rows)?;
        let before = fit.rows_read;
        fit.image(fit.gates(w), w.block(i), z)?;
        // One column of d.
        fit.rows_read = before.saturating_add((rows / d.max(1)) as u64);
        Ok(gain(fit.along(z)?))
    }

    /// Forms δ such that `p w + δ` and `(1 - p) w - δ` are the halves of `block`, p being the share; the
    /// gain of the split. The direction comes of truncated power iterations on
    /// `Σ v r (1 - |z|/b)₊ x xᵀ`, the curvature of the loss at the hinge, b being a fraction of
    /// rms(z). `r` is `along`, or the residual.
    #[inline(never)]
    pub(super) fn split<H: Readout<S>>(
        &mut self,
        fit: &mut Fit<'_, S, H>,
        of: Forming<'_>,
        block: Block<'_>,
        seed: u64,
        along: Option<&Rows<S>>,
    ) -> Result<f32, S::Source> {
        let (rows, all) = (fit.rows(), fit.batch_rows());
        let z = row_head::<S>(&mut *self.z, rows)?;
        fit.image(fit.open(), block, z)?;
        let size = sqrt(fit.norm2(z)? / all);
        if !(size > 0.0) {
            return Ok(0.0);
        }
        let r = along.unwrap_or(cut::<S>(&*fit.residual, fit.terms()));
        let left = fit.sensing.machine().squares(r);
        let is_near = fit.sum([left])?[0] < NEAR * fit.power * all;
        let bands = if is_near { &NARROW[..] } else { &[SPLIT_BAND] };
        let split = Split { of, seed, size, along, is_near };
        let (mut best, mut last) = (Halved::default(), 0);
        for (nth, band) in bands.iter().enumerate() {
            let halved = self.halve(fit, &split, *band)?;
            last = nth;
            if halved.gain > best.gain {
                best = Halved { nth, ..halved };
            }
        }
        if best.nth != last {
            bands.get(best.nth).map_or(Ok(best), |band| self.halve(fit, &split, *band))?;
        }
        self.share = best.share;
        self.entries.scale(best.length);
        Ok(best.gain)
    }

    /// Forms the direction of a split by the rows in one band, of unit activation, and finds the best
    /// share and length along it.
    #[inline(never)]
    fn halve<H: Readout<S>>(
        &mut self,
        fit: &mut Fit<'_, S, H>,
        split: &Split<'_, S>,
        band: f32,
    ) -> Result<Halved, S::Source> {
        let Split { of, seed, size, along, is_near } = *split;
        let Forming { scales, neuron: i, .. } = of;
        let (m, rows, all) = (fit.sensing.blocks(), fit.rows(), fit.batch_rows());
        let (v, open, count) = (fit.signs.sign(i), fit.open(), fit.terms());
        let Self { entries, dense, z, t, .. } = self;
        let (z, t) = (row_head::<S>(z, rows)?, row_head::<S>(t, rows)?);
        let mut rng = Rng::new(seed, stream::SPLIT + i as u64);
        for (g, c) in dense.iter_mut().zip(scales) {
            *g = c * rng.normal();
        }
        for _ in 0..=SPLIT_STEPS {
            entries.climb(dense, of);
            fit.image(open, entries.view(m).block(i), t)?;
            // Unit activation, so that the numbers stay in range.
            let length = sqrt(fit.norm2(t)? / all);
            if !(length > 0.0) {
                return Ok(Halved::default());
            }
            entries.scale(1.0 / length);
            let r = along.unwrap_or(cut::<S>(&*fit.residual, count));
            fit.sensing.machine().near_hinge(t, z, r, Hinge { sign: v, band: band * size, length });
            fit.correlate(open, i, Some(t), dense)?;
        }
        // The direction's own activation again, then the best length.
        fit.image(open, entries.view(m).block(i), t)?;
        let mut best = Halved::default();
        let shares = if is_near { &SHARES[..] } else { &SHARES[..1] };
        for share in shares.iter().copied() {
            let lengths = if is_near { &SHARE_LENGTHS[..] } else { &SPLIT_LENGTHS };
            for part in lengths {
                let length = if is_near { part * share * size } else { part * size };
                let r = along.unwrap_or(cut::<S>(&*fit.residual, count));
                let halves = Halves { sign: v, share, length };
                let halves = fit.sensing.machine().halves(r, z, t, halves);
                let gain = gain(fit.sum_along(halves)?);
                if gain > best.gain {
                    best = Halved { gain, share, length, nth: 0 };
                }
            }
        }
        Ok(best)
    }
}

/// What a neuron is split by.
struct Split<'a, S: Sensing> {
    of: Forming<'a>,
    seed: u64,
    /// The root mean square of its activation.
    size: f32,
    along: Option<&'a Rows<S>>,
    is_near: bool,
}

/// The best of some ways to split a neuron along a direction of unit activation.
#[derive(Debug, Clone, Copy, Default)]
struct Halved {
    gain: f32,
    share: f32,
    length: f32,
    /// The number of the band.
    nth: usize,
}

/// `dense += a w`.
pub(super) fn add_dense(dense: &mut [f32], w: Block<'_>, a: f32) {
    for (j, w) in w.entries() {
        if let Some(x) = dense.get_mut(j) {
            *x += a * w;
        }
    }
}

/// `⟨r, φ⟩² / |φ|²` where the two agree, else 0.
fn gain(Along { product, norm2 }: Along) -> f32 {
    let gain = product * (product / norm2);
    if product > 0.0 && gain.is_finite() { gain } else { 0.0 }
}

#[cfg(test)]
mod tests;
