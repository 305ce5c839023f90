//! `SynFlow` from a seed, in memory for a few numbers a neuron: the dense network is never stored.
//!
//! With weights `W_l`, a mask M and an input x that is not negative, the flow is
//! `R = 1ᵀ |W_L ⊙ M_L| … |W_1 ⊙ M_1| x`, and the score of a weight is its share of it (H. Tanaka et
//! al., *Pruning neural networks without any data by iteratively conserving synaptic flow*, 2020):
//!
//! ```text
//! u_0 = x    u_l = |W_l ⊙ M_l| u_(l-1)    v_L = 1    v_(l-1) = |W_l ⊙ M_l|ᵀ v_l
//! score of w from i to o of layer l:      |w| v_l[o] u_(l-1)[i]
//! ```
//!
//! A mask of N bits would be most of the memory, so a round's mask is what its scores say: an entry
//! is in it if `|w| v[o] u[i]`, u and v being those of the round before, reaches that round's
//! threshold. Weights are computed again wherever they are needed:
//!
//! ```text
//! for round t = 1 … R
//!     backward  v  of the mask, of all layers but the first one: entries whose neurons are alive
//!     forward   u  of the mask; a histogram of all scores;
//!               c_l[o] = max over i of min(c_(l-1)[i], score), the widest path to o
//!     threshold at k_t of N weights, by interpolation, but no higher than the widest path
//! the last round: the exact k-th score; the entries of a widest path are in the mask first
//! ```
//!
//! The first layer, mostly the largest one, is computed once a round: v at its outputs comes from the
//! layers behind. A neuron that turns out to be without inputs is taken back from v and the histogram.
//!
//! Rounds end early where the neurons that are left have too few weights between them.
//! An entry that a round has dropped may come back, which is rare. The widest path keeps a layer
//! from being pruned away whole, so the mask always connects some input with some output. Against
//! 100 exact rounds with a stored mask, 20 of these agree on 94 to 97 % of the weights.

mod flow;
mod last;
mod params;

use super::initial::Law;
use super::schedule::Schedule;
use super::select::{self, BINS, Choice, Cut, Histogram, key};
use super::{LayerShape, Mlp};
use crate::base::budget::{self, Workspace};
use crate::base::error::{self, Error, Result};
use crate::base::math;
use crate::base::rng::{CounterRng, stream};
use flow::{CHUNK, Chunk, Flow, score};
use last::{Last, Others};
pub use params::{Info, Input, Params};

/// Words of the memory of [`run`]: two sets of u and v, widest paths, a histogram. `held` is how
/// many indices [`indices`] leaves there in the end, over what the rounds needed; 0 for [`run`].
///
/// ```
/// use tamis::network::mask::{Mlp, synflow::words};
/// let net = Mlp::new(&[784, 512, 512, 10])?;
/// assert_eq!(4 * words(&net, 0), 35_100); // bytes
/// assert_eq!(4 * words(&net, 6687), 38_152); // with a mask of 1 % left there
/// # Ok::<(), tamis::Error>(())
/// ```
#[must_use]
pub const fn words(net: &Mlp<'_>, held: usize) -> usize {
    let Parts { flow, layers, rounds } = Parts::new(net);
    let tail = if held > rounds { held } else { rounds };
    flow.saturating_add(layers.saturating_mul(PER_LAYER)).saturating_add(tail)
}

/// Words for each layer: an entry of the widest path, and a cut.
const PER_LAYER: usize = 3;

/// Words of the parts of the memory.
struct Parts {
    /// u and v.
    flow: usize,
    /// The number of layers.
    layers: usize,
    /// What the rounds need beside them, up to the cut.
    rounds: usize,
}

impl Parts {
    const fn new(net: &Mlp<'_>) -> Self {
        let (mut flow, mut layers, mut rounds) = (0_usize, 0, BINS);
        let mut left = net.widths();
        while let [inputs, behind @ ..] = left {
            if let [outputs, ..] = behind {
                let both = inputs.saturating_add(*outputs);
                flow = flow.saturating_add(both);
                rounds = rounds.saturating_add(both).saturating_add(*outputs);
                layers += 1;
            }
            left = behind;
        }
        Self { flow, layers, rounds }
    }
}

/// A run's memory, and where it stands.
struct Run<'r, 'm, 't> {
    last: Last<'r, 'm>,
    /// Of the round before.
    before: Flow<'t>,
    /// c of the outputs of every layer: how wide the widest path is from an input to there.
    widest: &'t mut [f32],
    /// Entries of the mask have at least this key by [`Self::before`].
    threshold: u32,
}

/// Calls `emit` with the flat indices of the mask's weights, exactly `params.count` of them, in
/// rising order.
///
/// `memory` holds at least [`words`]. What it held before does not matter.
///
/// # Errors
/// [`Error::Range`] for no round, fewer weights than layers, or more than have a score above 0;
/// [`Error::Length`] for sizes of another number of inputs, [`Error::NotFinite`] for sizes that are
/// no numbers, [`Error::Diverged`] where the flow leaves the range of floats, [`Error::Budget`] with
/// the bytes needed and given.
pub fn run(
    net: &Mlp<'_>,
    params: &Params<'_>,
    memory: &mut [u32],
    emit: impl FnMut(u32),
) -> Result<Info> {
    budget::enough(words(net, 0), memory.len())?;
    let (head, tail) = split(net, memory);
    Ok(rounds(net, params, head, tail)?.emit(emit))
}

/// A mask in the memory that it was made in.
#[derive(Debug, PartialEq, Eq)]
pub struct Indices<'m> {
    /// The flat indices of its weights, in rising order.
    pub index: &'m mut [u32],
    /// What was done.
    pub info: Info,
}

/// The same mask, left in `memory`, of at least [`words`] for `params.count` weights.
///
/// # Errors
/// As [`run`].
///
/// ```
/// use tamis::network::mask::{Mlp, initial::{Initial, Law}, select::Choice};
/// use tamis::network::mask::synflow::{self, Input, Params};
/// let net = Mlp::new(&[40, 30, 10])?;
/// let weights = Initial { seed: 7, law: Law::HeNormal };
/// let (rounds, choice) = (Params::ROUNDS, Choice::Largest);
/// let params = Params { weights, input: Input::Ones, rounds, count: 60, choice };
/// let mut memory = vec![0; synflow::words(&net, 60)];
/// let mask = synflow::indices(&net, &params, &mut memory)?;
/// assert_eq!(mask.index.len(), 60);
/// assert!(mask.index.is_sorted());
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn indices<'m>(
    net: &Mlp<'_>,
    params: &Params<'_>,
    memory: &'m mut [u32],
) -> Result<Indices<'m>> {
    budget::enough(words(net, params.count), memory.len())?;
    let (head, tail) = split(net, memory);
    let last = rounds(net, params, head, &mut *tail)?;
    let index = tail.get_mut(..params.count).unwrap_or_default();
    let mut places = index.iter_mut();
    let info = last.emit(|index| places.next().into_iter().for_each(|place| *place = index));
    debug_assert!(places.next().is_none(), "as many as asked for");
    Ok(Indices { index, info })
}

/// What is needed to the end, and what the rounds alone need.
fn split<'m>(net: &Mlp<'_>, memory: &'m mut [u32]) -> (&'m mut [u32], &'m mut [u32]) {
    let Parts { flow, layers, .. } = Parts::new(net);
    memory.split_at_mut(memory.len().min(flow + layers * PER_LAYER))
}

/// All rounds, up to the cuts of the mask.
fn rounds<'r, 'm>(
    net: &Mlp<'r>,
    params: &'r Params<'r>,
    head: &'m mut [u32],
    tail: &mut [u32],
) -> Result<Last<'r, 'm>> {
    let layers = net.layers().len();
    error::range("rounds", params.rounds as usize, 1, u32::MAX as usize)?;
    error::range("weights of the mask", params.count, layers, net.weights())?;
    if let Input::Sizes(sizes) = params.input {
        error::length(
            "sizes of the inputs",
            sizes.len(),
            net.widths().first().copied().unwrap_or(0),
        )?;
        error::finite("sizes of the inputs", sizes)?;
    }
    let (mut head, mut tail) = (Workspace::new(head), Workspace::new(tail));
    let now = Flow::new(net, &mut head)?;
    let path = head.indices(layers)?;
    let (keys, ties) = (head.indices(layers)?, head.indices(layers)?);
    let before = Flow::new(net, &mut tail)?;
    let widest = tail.floats(before.v.len())?;
    let bins = tail.indices(BINS)?;
    // Before the first round every entry is in the mask.
    before.u.fill(1.0);
    before.v.fill(1.0);
    // No entries yet.
    path.fill(u32::MAX);
    let info = Info { regenerated: 0, guarded: false };
    let cut = Cut { key: u32::MAX, ties: 0 };
    let last = Last { net: *net, params, now, path, cut, keys, ties, info };
    let mut run = Run { last, before, widest, threshold: 0 };
    for round in 1..params.rounds {
        let count = Schedule::FrontLoaded.count(net.weights(), params.count, round, params.rounds);
        let mut histogram = Histogram::new(&mut *bins, count)?;
        run.round(round, &mut histogram)?;
        if run.is_short(&histogram) {
            break;
        }
        let widest = key(run.width());
        // Scores of random signs are so near each other that they share a bin.
        let least = match params.weights.law {
            Law::Signs => run.last.threshold(histogram),
            Law::HeNormal | Law::Uniform => histogram.estimate(),
        };
        run.last.info.guarded |= widest < least;
        run.threshold = least.min(widest);
        run.before.u.copy_from_slice(run.last.now.u);
        run.before.v.copy_from_slice(run.last.now.v);
    }
    run.cut(bins)
}

impl<'r, 'm> Run<'r, 'm, '_> {
    /// u and v of the mask, and the histogram of all scores.
    fn round(&mut self, round: u32, histogram: &mut Histogram<'_>) -> Result<()> {
        let Last { net, now, .. } = &mut self.last;
        let net = *net;
        now.u.fill(0.0);
        now.v.fill(0.0);
        self.widest.fill(0.0);
        if let Some(last) = net.layers().last() {
            now.v.get_mut(last.all_outputs()).unwrap_or_default().fill(1.0);
        }
        self.input(round);
        for number in (1..net.layers().len()).rev() {
            net.layer(number).into_iter().for_each(|layer| self.backward(&layer));
        }
        for layer in net.layers() {
            self.forward(&layer, histogram);
        }
        if self.last.now.is_finite() && self.width().is_finite() {
            Ok(())
        } else {
            Err(Error::Diverged { step: round as usize })
        }
    }

    fn input(&mut self, round: u32) {
        let Last { net, params, now, .. } = &mut self.last;
        let Some(first) = net.layer(0) else { return };
        let u = now.u.get_mut(first.all_inputs()).unwrap_or_default();
        match params.input {
            Input::Ones => u.fill(1.0),
            Input::Chi => chi(params.weights.seed, round, u),
            Input::Sizes(sizes) => {
                // A power of two changes all scores alike.
                let scale = math::unit_scale(sizes);
                u.iter_mut().zip(sizes).for_each(|(u, size)| *u = scale * size.abs());
            }
        }
    }

    /// v of the layer before this one. What was dead before stays so and is not computed.
    fn backward(&mut self, layer: &LayerShape) {
        let Self { last: Last { params, now, info, .. }, before, threshold, .. } = self;
        let weights = params.weights.layer(layer);
        let old = before.of(layer);
        let (below, v) = now.v.split_at_mut(layer.outputs_before.min(now.v.len()));
        let below =
            layer.outputs_before.checked_sub(layer.inputs).and_then(|at| below.get_mut(at..));
        let below = below.unwrap_or_default();
        for ((row, &v), &v_old) in (0..).zip(&*v).zip(old.v) {
            if v == 0.0 || v_old == 0.0 {
                continue;
            }
            let columns = old.u.chunks(CHUNK).zip(below.chunks_mut(CHUNK));
            for (first, (u_old, below)) in (0..).step_by(CHUNK).zip(columns) {
                let w = Chunk::new(&weights, row, first, u_old, info);
                for ((&w, &u_old), below) in w.sizes.iter().zip(u_old).zip(below) {
                    if key(score(w, v_old, u_old)) >= *threshold {
                        *below += w * v;
                    }
                }
            }
        }
    }

    /// u of the layer behind this one, this one's scores, and the widest paths to its outputs.
    fn forward(&mut self, layer: &LayerShape, histogram: &mut Histogram<'_>) {
        let Self { last: Last { params, now, info, .. }, before, widest, threshold } = self;
        let weights = params.weights.layer(layer);
        let old = before.of(layer);
        let (done, next) = now.u.split_at_mut(layer.all_inputs().end.min(now.u.len()));
        let u = done.get(layer.inputs_before..).unwrap_or(&[]);
        let v = now.v.get_mut(layer.all_outputs()).unwrap_or_default();
        let (wide, paths) = split_paths(widest, layer);
        // There is none behind the last one.
        let mut next = next.iter_mut();
        for (((row, v), &v_old), path) in (0..).zip(v).zip(old.v).zip(paths) {
            let place = next.next();
            if v_old == 0.0 {
                *v = 0.0;
                continue;
            }
            let mut sum = 0.0;
            let columns = u.chunks(CHUNK).zip(old.u.chunks(CHUNK));
            for (first, (u, u_old)) in (0..).step_by(CHUNK).zip(columns) {
                let w = Chunk::new(&weights, row, first as u32, u, info);
                for ((&w, &u), &u_old) in w.sizes.iter().zip(u).zip(u_old) {
                    if key(score(w, v_old, u_old)) >= *threshold {
                        sum += w * u;
                    }
                }
                if *v > 0.0 {
                    let scores = w.scores(*v, u);
                    scores.clone().for_each(|score| histogram.add(score));
                    *path = path.max(widest_of(scores, wide, first));
                }
            }
            let Some(place) = place else { continue };
            *place = sum;
            if sum == 0.0 && *v > 0.0 {
                for (first, u) in (0..).step_by(CHUNK).zip(u.chunks(CHUNK)) {
                    let w = Chunk::new(&weights, row, first, u, info);
                    w.scores(*v, u).for_each(|score| histogram.remove(score));
                }
                (*v, *path) = (0.0, 0.0);
            }
        }
    }

    /// Whether fewer weights have a score than the mask has.
    fn is_short(&self, histogram: &Histogram<'_>) -> bool {
        histogram.count() < self.last.params.count
    }

    /// The widest paths, of u and v as they are.
    fn widen(&mut self) {
        let Last { net, params, now, info, .. } = &mut self.last;
        for layer in net.layers() {
            let weights = params.weights.layer(&layer);
            let flow = now.of(&layer);
            let (wide, paths) = split_paths(self.widest, &layer);
            for ((row, &v), path) in (0..).zip(flow.v).zip(paths) {
                *path = 0.0;
                for (first, u) in (0..).step_by(CHUNK).zip(flow.u.chunks(CHUNK)) {
                    let w = Chunk::new(&weights, row, first as u32, u, info);
                    *path = path.max(widest_of(w.scores(v, u), wide, first));
                }
            }
        }
    }

    /// How wide the widest path from an input to each output is.
    fn at_outputs(&self) -> &[f32] {
        let last = self.last.net.layers().last();
        last.and_then(|layer| self.widest.get(layer.all_outputs())).unwrap_or(&[])
    }

    /// How wide the widest path from an input to an output is.
    fn width(&self) -> f32 {
        self.at_outputs().iter().fold(0.0, |most, &c| most.max(c))
    }

    /// The last round: the entries of a widest path are in the mask, and beside them those that
    /// the cuts select.
    fn cut(mut self, bins: &mut [u32]) -> Result<Last<'r, 'm>> {
        let Params { rounds, count, choice, .. } = *self.last.params;
        let beside = count.saturating_sub(self.last.path.len());
        let mut histogram = Histogram::new(&mut *bins, beside)?;
        self.round(rounds, &mut histogram)?;
        if self.is_short(&histogram) && self.threshold > 0 {
            // Too few neurons are left for so many weights: those of the round before are not.
            self.last.now.u.copy_from_slice(self.before.u);
            self.last.now.v.copy_from_slice(self.before.v);
            self.widen();
        }
        if self.width() == 0.0 {
            return Err(select::too_few(0, count));
        }
        self.trace();
        let mut last = self.last;
        last.cut = select::cut(&mut Others { last: &mut last, of: None }, beside, bins)?;
        if choice == Choice::Sampled {
            last.cut_layers(bins)?;
        }
        Ok(last)
    }

    /// Finds the entries of a widest path.
    fn trace(&mut self) {
        let wide = self.width();
        let mut row = self.at_outputs().iter().position(|&c| c == wide).unwrap_or(0);
        let Last { net, params, now, path, info, .. } = &mut self.last;
        let layers = (0..net.layers().len()).rev().filter_map(|number| net.layer(number));
        for (layer, entry) in layers.zip(path.iter_mut().rev()) {
            let weights = params.weights.layer(&layer);
            let flow = now.of(&layer);
            let (before, paths) = split_paths(self.widest, &layer);
            let wide = paths.get(row).copied().unwrap_or(0.0);
            let v = flow.v.get(row).copied().unwrap_or(0.0);
            let leads_here = |(first, u): (usize, &[f32])| {
                let w = Chunk::new(&weights, row as u32, first as u32, u, info);
                let mut ways = w.scores(v, u).zip(first..);
                ways.find(|&(score, i)| reach(before, i).min(score) == wide).map(|(_, i)| i)
            };
            let column = (0..).step_by(CHUNK).zip(flow.u.chunks(CHUNK)).find_map(leads_here);
            debug_assert!(column.is_some(), "a widest path leads here");
            let column = column.unwrap_or(0);
            *entry = (layer.first + row * layer.inputs + column) as u32;
            row = column;
        }
    }
}

/// How wide the widest paths are to a layer's inputs (none for the first one: any width) and outputs.
fn split_paths<'w>(widest: &'w mut [f32], layer: &LayerShape) -> (&'w [f32], &'w mut [f32]) {
    let (before, own) = widest.split_at_mut(layer.outputs_before.min(widest.len()));
    let at = layer.outputs_before.checked_sub(layer.inputs);
    (at.and_then(|at| before.get(at..)).unwrap_or(&[]), own)
}

/// How wide the widest path to input `i` is.
fn reach(before: &[f32], i: usize) -> f32 {
    before.get(i).copied().unwrap_or(f32::INFINITY)
}

/// How wide the widest path is that ends in an entry with one of these scores, of the inputs from
/// `first` on.
fn widest_of(scores: impl Iterator<Item = f32>, before: &[f32], first: usize) -> f32 {
    scores.zip(first..).fold(0.0, |most, (score, i)| most.max(reach(before, i).min(score)))
}

/// What flows in at a round, counted from 1, for [`Input::Chi`].
pub fn chi(seed: u64, round: u32, out: &mut [f32]) {
    let rng = CounterRng::new(seed, stream::FLOW + u64::from(round));
    for (i, x) in (0_u32..).zip(out) {
        let first = i.wrapping_mul(CHI_DIMENSIONS);
        let normals = (0..CHI_DIMENSIONS).map(|k| rng.normal(first.wrapping_add(k)));
        *x = math::sqrt(normals.map(|x| x * x).sum());
    }
}

/// Dimensions of the normal vectors of [`Input::Chi`].
const CHI_DIMENSIONS: u32 = 128;

#[cfg(test)]
mod tests;
