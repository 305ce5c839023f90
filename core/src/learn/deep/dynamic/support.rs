//! The weights that there are: their moments, which of them are dropped, and which are grown.

use super::checkpoint::{Checkpoint, State};
use super::moments::{Pair, Step, Store, key};
use super::params::{Growth, Params, Salience, words};
use super::schedule::Target;
use crate::base::budget::{self, Workspace};
use crate::base::error::{self, Error, Result};
use crate::base::math;
use crate::base::rng::{CounterRng, Permutation, stream};
use crate::learn::deep::backprop::{Batch, Panel, Panels};
use crate::learn::deep::{Head, Stack};
use crate::learn::optimiser::Decay;
use crate::network::mask::select::{self, BINS, Cut, Scores};
use crate::network::top::Top;

/// Rounds in which weights on no path are looked for; each takes at least one neuron.
const ROUNDS: usize = 64;
/// Inputs with a smaller size are as good as constant 0.
const LEAST: f32 = 1e-6;

/// State of the weights, and memory to change the support in.
pub(super) struct Support<'m> {
    /// The gradient; then which weights are kept; then the weights to grow, indices before scores.
    scratch: &'m mut [u32],
    moments: Store<'m>,
    /// Root mean squares of inputs and activations.
    sizes: &'m mut [f32],
    live: Live<'m>,
    next: Live<'m>,
    bins: &'m mut [u32],
    panel: &'m mut [f32],
}

/// Which neurons some input reaches, and which reach some output; inputs and outputs are neurons.
struct Live<'m> {
    reached: &'m mut [u32],
    leads: &'m mut [u32],
}

fn is_set(bits: &[u32], i: usize) -> bool {
    bits.get(i / 32).is_some_and(|word| word >> (i % 32) & 1 == 1)
}

fn set(bits: &mut [u32], i: usize) {
    bits.get_mut(i / 32).into_iter().for_each(|word| *word |= 1 << (i % 32));
}

/// An entry of a layer: the neurons that it is between, counted over all layers from the inputs.
#[derive(Debug, Clone, Copy)]
struct Ends {
    from: usize,
    to: usize,
}

/// Layer `l` of a network, for its entries' ends.
#[derive(Debug, Clone, Copy)]
struct Place {
    width: usize,
    /// The first neuron below, and the first above.
    below: usize,
    above: usize,
    is_end: bool,
}

impl Place {
    fn of(stack: &Stack<'_>, l: usize) -> Self {
        let mut below = 0;
        for layer in stack.layers.iter().take(l) {
            below += layer.width;
        }
        let layer = stack.layers.get(l);
        let width = layer.map_or(1, |layer| layer.width);
        let is_end = l + 1 == stack.layers.len() && matches!(stack.head, Head::Weights(_));
        let inputs = if is_end { layer.map_or(0, |layer| layer.neurons) } else { width };
        Self { width: width.max(1), below, above: below + inputs, is_end }
    }

    fn ends(self, entry: u32) -> Ends {
        let (block, within) = (entry as usize / self.width, entry as usize % self.width);
        let (from, to) = if self.is_end { (block, within) } else { (within, block) };
        Ends { from: self.below + from, to: self.above + to }
    }
}

impl Live<'_> {
    /// Those of the entries that `is_kept` says so of, by their places.
    fn find(&mut self, stack: &Stack<'_>, is_kept: impl Fn(usize) -> bool) {
        self.reached.fill(0);
        self.leads.fill(0);
        (0..stack.inputs).for_each(|i| set(self.reached, i));
        let layers = stack.layers.len();
        for l in 0..layers {
            let place = Place::of(stack, l);
            for at in stack.range(l).filter(|&at| is_kept(at)) {
                let Ends { from, to } = place.ends(stack.index.get(at).copied().unwrap_or(0));
                if is_set(self.reached, from) {
                    set(self.reached, to);
                }
            }
        }
        let outputs = stack.activations();
        (outputs..outputs + stack.outputs()).for_each(|i| set(self.leads, i));
        for l in (0..layers).rev() {
            let place = Place::of(stack, l);
            for at in stack.range(l).filter(|&at| is_kept(at)) {
                let Ends { from, to } = place.ends(stack.index.get(at).copied().unwrap_or(0));
                if is_set(self.leads, to) {
                    set(self.leads, from);
                }
            }
        }
    }

    fn has(&self, ends: Ends) -> bool {
        is_set(self.reached, ends.from) && is_set(self.leads, ends.to)
    }
}

/// What weights are worth: 0 for those on no path.
struct Worth<'a, 'm> {
    stack: &'a Stack<'a>,
    moments: &'a Store<'m>,
    live: &'a Live<'m>,
    params: &'a Params,
}

impl Worth<'_, '_> {
    fn of(&self, place: Place, last: Option<usize>, at: usize) -> f32 {
        if last == Some(at)
            || !self.live.has(place.ends(self.stack.index.get(at).copied().unwrap_or(0)))
        {
            return 0.0;
        }
        let size = self.stack.values().get(at).copied().unwrap_or(0.0).abs();
        let worth = match self.params.salience {
            Salience::Sensitivity => size * math::sqrt(self.moments.square(at)),
            Salience::Magnitude => size,
        };
        // A weight on a path is worth more than none.
        worth.max(f32::MIN_POSITIVE)
    }
}

/// Where the weight lies by which layer `l` hands on a constant.
fn handed_on(stack: &Stack<'_>, params: &Params, l: usize) -> Option<usize> {
    let is_hidden = l + 1 < stack.layers.len();
    (params.constant && is_hidden).then(|| stack.range(l).end.checked_sub(1)).flatten()
}

impl Scores for Worth<'_, '_> {
    fn each(&mut self, mut take: impl FnMut(u32, f32)) {
        for l in 0..self.stack.layers.len() {
            let (place, last) = (Place::of(self.stack, l), handed_on(self.stack, self.params, l));
            for at in self.stack.range(l) {
                take(at as u32, self.of(place, last, at));
            }
        }
    }
}

impl<'m> Support<'m> {
    pub(super) fn new(stack: &Stack<'_>, params: &Params, memory: &'m mut [u32]) -> Result<Self> {
        let (most, c, kind) = (stack.room(), stack.outputs(), params.moments);
        let acts = stack.activations();
        let longest = stack.layers.iter().map(|layer| layer.width).max().unwrap_or(0);
        let least = words(kind, most, acts, c, longest);
        budget::enough(least, memory.len())?;
        let panel = longest + memory.len() - least;
        let mut space = Workspace::new(memory);
        let bits = (acts + c).div_ceil(32);
        Ok(Self {
            scratch: space.indices(most + 2)?,
            moments: Store::new(kind, most, &mut space)?,
            sizes: space.floats(acts)?,
            live: Live { reached: space.indices(bits)?, leads: space.indices(bits)? },
            next: Live { reached: space.indices(bits)?, leads: space.indices(bits)? },
            bins: space.indices(BINS)?,
            panel: space.floats(panel)?,
        })
    }

    /// Takes over what a checkpoint has beside the network, which the stack has: its counters.
    pub(super) fn resume(
        &mut self,
        stack: &Stack<'_>,
        params: &Params,
        from: &Checkpoint<'_>,
    ) -> Result<State> {
        self.moments.resume(&from.moments, stack.nnz())?;
        let State { epochs, steps, start, .. } = from.state;
        error::range("epochs of the checkpoint", epochs as usize, 1, params.epochs as usize)?;
        error::range("steps of the checkpoint", steps as usize, 1, usize::MAX)?;
        error::range("first weights of the checkpoint", start as usize, 1, stack.room())?;
        Ok(from.state)
    }

    /// Where a run stands.
    pub(super) fn checkpoint<'a>(&'a self, stack: &'a Stack<'_>, at: State) -> Checkpoint<'a> {
        let nnz = stack.nnz();
        let mut state = at;
        for (end, layer) in state.ends.iter_mut().zip(&stack.layers) {
            *end = layer.end as u32;
        }
        Checkpoint {
            state,
            index: stack.index.get(..nnz).unwrap_or(&[]),
            value: stack.values(),
            moments: self.moments.held(nnz),
        }
    }

    /// Weights that hand on a constant, and do not count.
    pub(super) fn fixed(&self, stack: &Stack<'_>, params: &Params) -> usize {
        if params.constant { stack.layers.len().saturating_sub(1) } else { 0 }
    }

    pub(super) fn gradient(&mut self, nnz: usize) -> &mut [f32] {
        bytemuck::cast_slice_mut(self.scratch.get_mut(..nnz).unwrap_or_default())
    }

    /// Step number `step` of `AdamW`, along the gradient times `scale`.
    pub(super) fn step(
        &mut self,
        stack: &mut Stack<'_>,
        params: &Params,
        adam: &Decay,
        step: u32,
        scale: f32,
        rate: f32,
    ) {
        let step = Step {
            gradient: bytemuck::cast_slice(self.scratch),
            adam,
            scale,
            rate,
            factor: 1.0 - rate * params.decay,
            key: key(params.seed, step),
        };
        for l in 0..stack.layers.len() {
            let range = stack.range(l);
            let last = handed_on(stack, params, l);
            let range = range.start..last.unwrap_or(range.end);
            let weights = stack.value.get_mut(range.clone()).unwrap_or_default();
            self.moments.step(range.start, weights, &step);
        }
    }

    /// Drops weights down to `target.keep` and grows them up to `target.all`: how many were grown.
    pub(super) fn change<B: Panels>(
        &mut self,
        backprop: &mut B,
        stack: &mut Stack<'_>,
        params: &Params,
        target: Target,
        number: u32,
    ) -> Result<usize, B::Source> {
        let before = stack.nnz();
        self.drop_to(stack, params, target.keep).map_err(Error::widen)?;
        let left = stack.nnz() - self.fixed(stack, params);
        // Where nothing is exchanged any more, what was on no path is made up for.
        let wanted = target.all.saturating_sub(left);
        if stack.nnz() != before {
            backprop.adopt(stack)?;
        }
        if wanted == 0 || params.growth == Growth::None {
            return Ok(0);
        }
        let found = self.find(backprop, stack, params, wanted, number)?;
        self.insert(stack, found);
        backprop.adopt(stack)?;
        Ok(found)
    }

    /// Drops what is too much for the result.
    pub(super) fn shrink(&mut self, stack: &mut Stack<'_>, params: &Params) {
        // It can only fail for scores that are no numbers, which the run has refused.
        let _ = self.drop_to(stack, params, params.nnz);
    }

    /// Drops all but the `keep` weights of the largest worth, all of which lie on paths; fewer where
    /// there are no more such.
    fn drop_to(&mut self, stack: &mut Stack<'_>, params: &Params, keep: usize) -> Result<()> {
        self.live.find(stack, |_| true);
        let flags = &mut *self.scratch;
        for _ in 0..ROUNDS {
            let mut worth = Worth { stack, moments: &self.moments, live: &self.live, params };
            let mut count = 0;
            worth.each(|_, worth| count += usize::from(worth > 0.0));
            let cut = match keep < count {
                true => select::cut(&mut worth, keep, self.bins)?,
                // All that are worth anything.
                false => Cut { key: 0, ties: 0 },
            };
            let mut left = cut;
            worth.each(|at, worth| {
                let is_kept = worth > 0.0 && left.keeps(worth);
                let flag = flags.get_mut(at as usize);
                flag.into_iter().for_each(|flag| *flag = u32::from(is_kept));
            });
            for l in 0..stack.layers.len() {
                let flag = handed_on(stack, params, l).and_then(|at| flags.get_mut(at));
                flag.into_iter().for_each(|flag| *flag = 1);
            }
            let is_kept = |at: usize| flags.get(at).is_some_and(|flag| *flag > 0);
            self.next.find(stack, is_kept);
            let mut is_whole = true;
            for l in 0..stack.layers.len() {
                let (place, last) = (Place::of(stack, l), handed_on(stack, params, l));
                let mut kept = stack.range(l).filter(|&at| is_kept(at) && last != Some(at));
                is_whole &= kept
                    .all(|at| self.next.has(place.ends(stack.index.get(at).copied().unwrap_or(0))));
            }
            if is_whole {
                break;
            }
            // What leads nowhere without the weights that were not kept is worth nothing.
            let both = [
                (&mut *self.live.reached, &*self.next.reached),
                (&mut *self.live.leads, &*self.next.leads),
            ];
            for (live, next) in both {
                live.iter_mut().zip(next).for_each(|(live, next)| *live &= next);
            }
        }
        let (moments, mut len) = (&mut self.moments, 0);
        let flags = &*self.scratch;
        stack.retain(|at| {
            let is_kept = flags.get(at).is_some_and(|flag| *flag > 0);
            if is_kept && at < moments.room() {
                moments.copy(at, len);
                len += 1;
            }
            is_kept
        });
        Ok(())
    }

    /// Finds `wanted` weights to grow, as numbers over all layers in rising order: how many there are.
    fn find<B: Panels>(
        &mut self,
        backprop: &mut B,
        stack: &Stack<'_>,
        params: &Params,
        wanted: usize,
        number: u32,
    ) -> Result<usize, B::Source> {
        let n = backprop.samples();
        let order = Permutation::new(params.seed, stream::ANNEAL + u64::from(number), n);
        let batch = Batch { positions: 0..params.rows.min(n), order: Some(order) };
        let is_random = params.growth == Growth::Random;
        if !is_random {
            backprop.sizes(stack, &batch, self.sizes)?;
        }
        let rng = CounterRng::new(params.seed, stream::ANNEAL + (1 << 31) + u64::from(number));
        let (index, value) = self.scratch.split_at_mut(self.scratch.len() / 2);
        let room = wanted.min(index.len()).min(value.len());
        let (index, value) =
            (index.get_mut(..room).unwrap_or_default(), value.get_mut(..room).unwrap_or_default());
        let mut top = Top::new(index, bytemuck::cast_slice_mut(value));
        // By the size of what a weight comes from.
        let per = |score: f32, size: f32| match size > LEAST {
            true => score.abs() / (size + params.offset),
            false => 0.0,
        };
        let mut first = 0_usize;
        for (l, layer) in stack.layers.iter().enumerate() {
            let place = Place::of(stack, l);
            let width = layer.width.max(1);
            let is_hidden = !place.is_end;
            // The neuron that hands on a constant takes nothing else.
            let blocks = layer.neurons - usize::from(params.constant && is_hidden);
            let step = (self.panel.len() / width).max(1);
            let taken = stack.index.get(stack.range(l)).unwrap_or(&[]);
            for low in (0..blocks).step_by(step) {
                let blocks = low..(low + step).min(blocks);
                let len = blocks.len() * width;
                let base = low * width;
                let panel = self.panel.get_mut(..len).unwrap_or_default();
                if is_random {
                    for (at, score) in panel.iter_mut().enumerate() {
                        *score = rng.uniform((first + base + at) as u32);
                    }
                } else {
                    let of = Panel { layer: l, blocks: blocks.clone() };
                    backprop.panel(stack, &batch, &of, panel)?;
                    for (block, scores) in blocks.zip(panel.chunks_exact_mut(width)) {
                        // Weights of a block come from a neuron each, those of the end from one.
                        let from = place.below + if is_hidden { 0 } else { block };
                        let sizes = self.sizes.get(from..).unwrap_or(&[]);
                        let scores = scores.iter_mut();
                        if is_hidden {
                            scores.zip(sizes).for_each(|(score, size)| *score = per(*score, *size));
                        } else {
                            let size = sizes.first().copied().unwrap_or(0.0);
                            scores.for_each(|score| *score = per(*score, size));
                        }
                    }
                }
                // What is there already is not offered.
                let from = taken.partition_point(|&entry| (entry as usize) < base);
                for &entry in taken.iter().skip(from) {
                    let Some(score) = panel.get_mut(entry as usize - base) else { break };
                    *score = 0.0;
                }
                top.offer(first + base, panel);
            }
            first += width * layer.neurons;
        }
        top.finish().ok_or(Error::NotFinite { what: "gradient", at: 0 })
    }

    /// Puts the first `count` of the weights found into the support, with value 0.
    fn insert(&mut self, stack: &mut Stack<'_>, count: usize) {
        let (mut left, layers) = (count, stack.layers.len());
        let room = stack.index.len().min(stack.value.len()).min(self.moments.room());
        debug_assert!(stack.nnz() + count <= room, "room for what is grown");
        let mut first = stack.layers.iter().fold(0, |sum, layer| sum + layer.width * layer.neurons);
        for l in (0..layers).rev() {
            let Some(&layer) = stack.layers.get(l) else { continue };
            first -= layer.width * layer.neurons;
            let range = stack.range(l);
            let mean = {
                let sum: f32 = range.clone().map(|at| self.moments.square(at)).sum();
                sum / range.len().max(1) as f32
            };
            let (mut from, mut to) = (range.end, range.end + left);
            let end = to;
            // From the back, so that nothing is overwritten that is still to be moved.
            loop {
                let new = left.checked_sub(1).and_then(|at| self.scratch.get(at)).copied();
                let new = new.and_then(|at| (at as usize).checked_sub(first));
                let old = from.checked_sub(1).filter(|&at| at >= range.start);
                let old = old.and_then(|at| stack.index.get(at)).copied();
                if new.is_none() && old.is_none() || to == from {
                    break;
                }
                to -= 1;
                match new.filter(|&new| old.is_none_or(|old| new > old as usize)) {
                    Some(new) => {
                        left -= 1;
                        self.put(stack, to, new as u32, mean);
                    }
                    None => {
                        from -= 1;
                        stack.index.copy_within(from..=from, to);
                        stack.value.copy_within(from..=from, to);
                        self.moments.copy(from, to);
                    }
                }
            }
            if let Some(layer) = stack.layers.get_mut(l) {
                layer.end = end;
            }
        }
        debug_assert_eq!(left, 0, "all are put in");
    }

    fn put(&mut self, stack: &mut Stack<'_>, at: usize, entry: u32, mean: f32) {
        let index = stack.index.get_mut(at).zip(stack.value.get_mut(at));
        index.into_iter().for_each(|(index, value)| (*index, *value) = (entry, 0.0));
        self.moments.set(at, Pair { mean: 0.0, square: mean });
    }
}
