//! The weights that there are: their moments, which of them are dropped, and which are grown.

use super::best::Best;
use super::checkpoint::{Checkpoint, State};
use super::live::{Live, Place};
use super::moments::{Pair, Step, Store, key};
use super::params::{Growth, Params, Salience, Selection, words};
use super::schedule::Target;
use crate::base::budget::{self, Workspace};
use crate::base::error::{self, Error, Result};
use crate::base::math;
use crate::base::rng::{CounterRng, Permutation, stream};
use crate::learn::deep::backprop::{Batch, Derivatives, Panel, PanelMemory, Panels};
use crate::learn::deep::{MAX_LAYERS, Parts, Stack};
use crate::learn::optimiser::Decay;
use crate::network::mask::Mlp;
use crate::network::mask::allocate::{Allocation, Bounds};
use crate::network::mask::select::{self, BINS, Cut, Stored};
use crate::network::top::Top;
use crate::operator::sensing::head_mut;
use core::iter::once;
use core::ops::Range;

/// Rounds in which weights on no path are looked for; each takes at least one neuron.
const ROUNDS: usize = 64;
/// Inputs with a smaller size are as good as constant 0.
const LEAST: f32 = 1e-6;

/// State of the weights, and memory to change the support in.
pub(super) struct Support<'m> {
    /// The gradient; then what weights are worth, and which are kept; then a panel; then the indices of those to
    /// grow.
    scratch: &'m mut [u32],
    moments: Store<'m>,
    /// Root mean squares of inputs and activations.
    sizes: &'m mut [f32],
    live: Live<'m>,
    next: Live<'m>,
    bins: &'m mut [u32],
    pub(super) best: Best<'m>,
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

/// Checks that the last neuron of each hidden layer hands on a constant, where the last input is one.
pub(super) fn check_constants(stack: &Stack<'_>, params: &Params) -> Result<()> {
    let mut hidden = stack.layers.iter().enumerate().take(params.fixed(stack.layers.len()));
    hidden.try_for_each(|(l, layer)| {
        let last = (layer.width * layer.neurons).saturating_sub(1);
        // It has no other weight.
        let (first, width) = (stack.range(l).start, layer.width);
        let is_inside = |entry: &u32| *entry as usize + width > last;
        let is_there = handed_on(stack, params, l).is_some_and(|at| {
            stack.range(l).contains(&at)
                && stack.index.get(at).is_some_and(|&entry| entry as usize == last)
                && stack.values().get(at) == Some(&1.0)
                && !stack.index.get(first..at).unwrap_or(&[]).iter().any(is_inside)
        });
        error::range("weights of 1 that hand on a constant", is_there.into(), 1, 1)
    })
}

/// Layers whose weights are compared with one another, and how many there are to be.
struct Group {
    layers: Range<usize>,
    count: usize,
}

/// The groups of a network that is to have `all` weights.
fn groups(
    stack: &Stack<'_>,
    params: &Params,
    all: usize,
) -> Result<heapless::Vec<Group, MAX_LAYERS>> {
    let (mut groups, layers) = (heapless::Vec::new(), stack.layers.len());
    if params.selection == Selection::Global {
        let _ = groups.push(Group { layers: 0..layers, count: all });
        return Ok(groups);
    }
    let hidden = stack.layers.iter().take(layers.saturating_sub(1)).map(|layer| layer.neurons);
    let widths = once(stack.inputs).chain(hidden).chain(once(stack.outputs()));
    let widths: heapless::Vec<usize, { MAX_LAYERS + 1 }> = widths.collect();
    let net = Mlp::new(&widths)?;
    let mut counts = [0; MAX_LAYERS];
    let counts = counts.get_mut(..layers).unwrap_or_default();
    let all = all.max(layers).min(net.weights());
    Allocation::ErdosRenyi.share(&net, all, Bounds::at_least(1), counts)?;
    groups.extend(counts.iter().enumerate().map(|(l, &count)| Group { layers: l..l + 1, count }));
    Ok(groups)
}

/// Number of the first weight of layer `l` among those that all layers have room for.
fn first(stack: &Stack<'_>, l: usize) -> usize {
    stack.layers.iter().take(l).fold(0, |sum, layer| sum + layer.width * layer.neurons)
}

/// What weights that are not there are worth.
struct Growing<'a> {
    stack: &'a Stack<'a>,
    params: &'a Params,
    rng: CounterRng,
}

impl Growing<'_> {
    /// Offers those of a panel by their derivatives.
    fn offer(&self, of: Derivatives<'_>, top: &mut Top<'_>) {
        let Derivatives { panel, values, sizes } = of;
        let Some(layer) = self.stack.layers.get(panel.layer) else { return };
        let (place, offset) = (Place::of(self.stack, panel.layer), self.params.offset);
        // A quotient that is not taken does no harm, and loops without branches become vectors.
        let per = |score: f32, size: f32| {
            let quotient = score.abs() / (size + offset);
            if size > LEAST { quotient } else { 0.0 }
        };
        for (block, scores) in panel.blocks.clone().zip(values.chunks_exact_mut(layer.width.max(1)))
        {
            // Weights of a block come from a neuron each, those of the end from one.
            let from = place.below + if place.is_end { block } else { 0 };
            let sizes = sizes.get(from..).unwrap_or(&[]);
            if place.is_end {
                let size = sizes.first().copied().unwrap_or(0.0);
                scores.iter_mut().for_each(|score| *score = per(*score, size));
            } else {
                let scores = scores.iter_mut().zip(sizes);
                scores.for_each(|(score, size)| *score = per(*score, *size));
            }
        }
        self.offer_scores(&panel, values, top);
    }

    /// Offers those of a panel by chance.
    fn offer_any(&self, panel: &Panel, values: &mut [f32], top: &mut Top<'_>) {
        let width = self.stack.layers.get(panel.layer).map_or(0, |layer| layer.width);
        let first = first(self.stack, panel.layer) + panel.blocks.start * width;
        for (at, score) in values.iter_mut().enumerate() {
            *score = self.rng.uniform((first + at) as u32);
        }
        self.offer_scores(panel, values, top);
    }

    fn offer_scores(&self, panel: &Panel, scores: &mut [f32], top: &mut Top<'_>) {
        let l = panel.layer;
        let Some(layer) = self.stack.layers.get(l) else { return };
        let base = panel.blocks.start * layer.width;
        // What is there already is not offered.
        let taken = self.stack.index.get(self.stack.range(l)).unwrap_or(&[]);
        let from = taken.partition_point(|&entry| (entry as usize) < base);
        for &entry in taken.iter().skip(from) {
            let Some(score) = scores.get_mut(entry as usize - base) else { break };
            *score = 0.0;
        }
        // The neuron that hands on a constant, the last one, takes nothing else.
        let is_hidden = !Place::of(self.stack, l).is_end;
        let blocks = layer.neurons - usize::from(self.params.constant && is_hidden);
        let blocks = blocks.saturating_sub(panel.blocks.start);
        let scores = scores.get(..blocks * layer.width).unwrap_or(scores);
        top.offer(first(self.stack, l) + base, scores);
    }
}

impl<'m> Support<'m> {
    pub(super) fn new(stack: &Stack<'_>, params: &Params, memory: &'m mut [u32]) -> Result<Self> {
        let (most, c, kind) = (stack.room(), stack.outputs(), params.moments);
        let acts = stack.activations();
        let longest = stack.layers.iter().map(|layer| layer.width).max().unwrap_or(0);
        let best = params.best_room(stack.layers.len());
        let least = words(kind, most, acts, c, longest).saturating_add(best.saturating_mul(2));
        budget::enough(least, memory.len())?;
        let scratch = most.max(longest) + memory.len() - least;
        let mut space = Workspace::new(memory);
        let bits = (acts + c).div_ceil(32);
        Ok(Self {
            scratch: space.indices(scratch)?,
            moments: Store::new(kind, most, &mut space)?,
            sizes: space.floats(acts)?,
            live: Live { reached: space.indices(bits)?, leads: space.indices(bits)? },
            next: Live { reached: space.indices(bits)?, leads: space.indices(bits)? },
            bins: space.indices(BINS)?,
            best: Best::new(best, &mut space)?,
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
        self.best.resume(from.best_index, from.best_value, &from.state)?;
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
            best_index: self.best.index(&at),
            best_value: self.best.value(&at),
        }
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
        let left = stack.nnz() - params.fixed(stack.layers.len());
        if stack.nnz() != before {
            backprop.adopt(stack)?;
        }
        // Where nothing is exchanged any more, what was on no path is made up for.
        if left >= target.all || params.growth == Growth::None {
            return Ok(0);
        }
        let found = self.find(backprop, stack, params, target.all, number)?;
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
        let groups = groups(stack, params, keep)?;
        self.live.find(stack, |_| true);
        let flags = &mut *self.scratch;
        for _ in 0..ROUNDS {
            let worth = Worth { stack, moments: &self.moments, live: &self.live, params };
            let mut lack = 0;
            for Group { layers, count: keep } in &groups {
                // What a layer does not have the next ones may keep.
                let keep = keep + lack;
                let (first, mut end, mut count) = (stack.range(layers.start).start, 0, 0);
                for l in layers.clone() {
                    let (place, last) = (Place::of(stack, l), handed_on(stack, params, l));
                    for at in stack.range(l) {
                        let own = worth.of(place, last, at);
                        count += usize::from(own > 0.0);
                        flags.get_mut(at).into_iter().for_each(|flag| *flag = own.to_bits());
                    }
                    end = stack.range(l).end;
                }
                let flags = flags.get_mut(first..end).unwrap_or_default();
                lack = keep.saturating_sub(count);
                let mut left = match keep < count {
                    true => select::cut(&mut Stored(bytemuck::cast_slice(flags)), keep, self.bins)?,
                    // All that are worth anything.
                    false => Cut { key: 0, ties: 0 },
                };
                for flag in flags {
                    let own = f32::from_bits(*flag);
                    *flag = u32::from(own > 0.0 && left.keeps(own));
                }
            }
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

    /// Finds the weights to grow that a network of `all` lacks, as numbers over all layers in rising order at the
    /// front of the scratch: how many there are.
    fn find<B: Panels>(
        &mut self,
        backprop: &mut B,
        stack: &mut Stack<'_>,
        params: &Params,
        all: usize,
        number: u32,
    ) -> Result<usize, B::Source> {
        let n = backprop.samples().saturating_sub(params.validation);
        let order = Permutation::new(params.seed, stream::ANNEAL + u64::from(number), n);
        let batch = Batch { positions: 0..params.growth_rows().min(n), order: Some(order) };
        let key = stream::ANNEAL + (1 << 31) + u64::from(number);
        // The best of them so far lie where there is room for them in the network, behind its weights.
        let Parts { stack, index, value } = stack.parts();
        let stack = &stack;
        let growing = Growing { stack, params, rng: CounterRng::new(params.seed, key) };
        let groups = groups(stack, params, all).map_err(Error::widen)?;
        let missing = all.saturating_sub(stack.nnz() - params.fixed(stack.layers.len()));
        let room = index.len().min(value.len());
        debug_assert!(missing <= room, "room for what is grown");
        let (mut found, mut lack) = (0, 0);
        let panel = bytemuck::cast_slice_mut(self.scratch);
        let mut memory = PanelMemory { sizes: self.sizes, panel };
        for Group { layers, count } in groups {
            let has = |l| stack.range(l).len() - usize::from(handed_on(stack, params, l).is_some());
            // What a layer cannot grow the next ones do.
            let wanted = (count + lack).saturating_sub(layers.clone().map(has).sum());
            let wanted = wanted.min(missing - found);
            if wanted == 0 {
                lack = 0;
                continue;
            }
            let own = found..room.min(found + wanted);
            let (index, value) = (index.get_mut(own.clone()), value.get_mut(own));
            let mut top = Top::new(index.unwrap_or_default(), value.unwrap_or_default());
            if params.growth == Growth::Random {
                for panel in Panel::all(stack, layers, memory.panel.len()) {
                    let values = head_mut(memory.panel, panel.len(stack))?;
                    growing.offer_any(&panel, values, &mut top);
                }
            } else {
                backprop
                    .panels(stack, &batch, layers, &mut memory, |of| growing.offer(of, &mut top))?;
            }
            let grown = top.finish().ok_or(Error::NotFinite { what: "gradient", at: 0 })?;
            found += grown;
            lack = wanted - grown;
        }
        self.scratch.iter_mut().zip(index.iter().take(found)).for_each(|(to, from)| *to = *from);
        Ok(found)
    }

    /// Puts the first `count` of the weights found into the support, with value 0.
    fn insert(&mut self, stack: &mut Stack<'_>, count: usize) {
        let (mut left, layers) = (count, stack.layers.len());
        let room = stack.index.len().min(stack.value.len()).min(self.moments.room());
        debug_assert!(stack.nnz() + count <= room, "room for what is grown");
        for l in (0..layers).rev() {
            let first = first(stack, l);
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
