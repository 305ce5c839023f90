//! The support and what Adam keeps on it: everything that survives from step to step.

use crate::budget::{Annealing, WORD, Workspace};
use crate::error::{Error, Result};
use crate::factored::{Factored, Net};
use crate::gates::{Empty, Gates, Signs};
use crate::math;
use crate::rng::{Rng, stream};
use crate::top::Top;
use crate::weights::{Block, Weights, runs};
use core::ops::Range;

/// Where the clock of a draw stands at least: below every draw but zero, and far from where quotients overflow.
const CLOCK: f32 = 1e-8;
/// Decay of the mean of the gradients.
const BETA1: f32 = 0.9;
/// Decay of the mean of their squares.
const BETA2: f32 = 0.999;
/// What is added to the root of the mean square.
const EPSILON: f32 = 1e-8;

/// The units in which inputs and the weights from them are measured.
pub(super) struct Units<'a> {
    /// `1 / (rms + floor)` of each scaled input; 0 for inputs that are always zero.
    pub(super) columns: &'a [f32],
    pub(super) floor: f32,
    /// Factor that brings the inputs to about 1.
    pub(super) scale: f32,
}

impl Units<'_> {
    /// Root mean square of a scaled input.
    fn rms(&self, j: usize) -> f32 {
        match self.columns.get(j) {
            Some(&inverse) if inverse > 0.0 => (1.0 / inverse - self.floor).max(0.0),
            _ => 0.0,
        }
    }

    /// About the size of a neuron's activation: that of independent inputs.
    fn activation(&self, w: Block<'_>) -> f32 {
        let terms = w.entries().map(|(j, value)| value / self.scale * self.rms(j));
        math::sqrt(terms.map(|term| term * term).sum())
    }
}

/// Buffers of a step.
pub(super) struct Buffers<'a> {
    /// n×c.
    pub(super) residual: &'a mut [f32],
    /// p·(d + c).
    pub(super) panel: &'a mut [f32],
    /// `1 / (scale + floor)` of each input column, d.
    pub(super) columns: &'a mut [f32],
    /// The operator's.
    pub(super) scratch: &'a mut [f32],
}

/// Entries of both sides: those of W first, then those of Wt, each with rising indices of its own matrix.
pub(super) struct State<'a> {
    inputs: usize,
    hidden: usize,
    outputs: usize,
    index: &'a mut [u32],
    value: &'a mut [f32],
    mean: &'a mut [f32],
    square: &'a mut [f32],
    /// Gradient of a step; between steps, scores.
    score: &'a mut [f32],
    /// Values of the best iterate on the settled support.
    best: &'a mut [f32],
    /// Entries of W.
    first: usize,
    /// Entries of both sides.
    len: usize,
    /// Entries behind them that the last call of [`Self::keep`] has dropped: until the support grows again they can come
    /// back. Their indices are in one space over both sides, their values where their means were.
    dropped: usize,
    /// `BETA1^t` and `BETA2^t`.
    decayed: (f32, f32),
}

pub(super) fn carve<'a>(budget: &Annealing, memory: &'a mut [u32]) -> Result<(State<'a>, Buffers<'a>)> {
    if memory.len() < budget.words() {
        let needed = budget.words().saturating_mul(WORD);
        return Err(Error::Budget { needed, got: memory.len() * WORD });
    }
    let mut space = Workspace::new(memory);
    let start = budget.start;
    let state = State {
        inputs: budget.dims.inputs,
        hidden: budget.dims.hidden,
        outputs: budget.outputs,
        index: space.indices(start)?,
        value: space.floats(start)?,
        mean: space.floats(start)?,
        square: space.floats(start)?,
        score: space.floats(start)?,
        best: space.floats(if budget.validated { budget.dims.nnz } else { 0 })?,
        first: 0,
        len: 0,
        dropped: 0,
        decayed: (1.0, 1.0),
    };
    let buffers = Buffers {
        residual: space.floats(budget.batch.saturating_mul(budget.outputs))?,
        panel: space.floats(budget.panel_words())?,
        columns: space.floats(budget.dims.inputs)?,
        scratch: space.floats(budget.scratch)?,
    };
    Ok((state, buffers))
}

/// Gates that are open on every row: norms of the data's own columns.
pub(super) fn open(inputs: usize, hidden: usize) -> Gates<'static> {
    Gates::of(Weights::empty(inputs, hidden), Signs::Positive, Empty::Open, 0, 0)
}

impl<'a> State<'a> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn sizes(&self) -> (usize, usize, usize) {
        (self.inputs, self.hidden, self.outputs)
    }

    pub(super) fn net(&self) -> Net<'_> {
        Net::cut(self.sizes(), (&*self.index, &*self.value), (self.first, self.len))
    }

    pub(super) fn into_net(self) -> Net<'a> {
        Net::cut(self.sizes(), (self.index, self.value), (self.first, self.len))
    }

    /// A random first support, columns in proportion to their size, and random weights on it.
    pub(super) fn start(&mut self, seed: u64, units: &Units<'_>) {
        let start = self.index.len();
        let (all, all_out) = (self.hidden * self.inputs, self.hidden * self.outputs);
        let out = all_out.min((start / 3).max(1)).max(start.saturating_sub(all));
        let mut rng = Rng::new(seed, stream::SUPPORT);
        let mut from = Top::new(self.index.get_mut(..start - out).unwrap_or(&mut []), &mut *self.value);
        for i in 0..self.hidden {
            for j in 0..self.inputs {
                // The race of exponential clocks: the first to ring are a draw in proportion to their rates.
                let clock = (-math::ln(1.0 - rng.uniform())).max(CLOCK);
                from.push((i * self.inputs + j) as u32, units.rms(j) / clock);
            }
        }
        self.first = from.finish().unwrap_or(0);
        let rest = self.first..self.first + out;
        let index = self.index.get_mut(rest.clone()).unwrap_or(&mut []);
        let mut to = Top::new(index, self.value.get_mut(rest).unwrap_or(&mut []));
        for e in 0..all_out {
            to.push(e as u32, 1.0 - rng.uniform());
        }
        self.len = self.first + to.finish().unwrap_or(0);
        self.mean.fill(0.0);
        self.square.fill(0.0);
        self.randomise(units, &mut rng);
    }

    /// Weights such that activations and outputs have about unit size.
    fn randomise(&mut self, units: &Units<'_>, rng: &mut Rng) {
        let (from, to) = self.value.split_at_mut_checked(self.first).unwrap_or_default();
        let picks = self.index.get(..self.first).unwrap_or(&[]);
        for (i, run) in runs(self.inputs, picks) {
            let rms = |j: &u32| units.rms(*j as usize - i * self.inputs);
            let power: f32 = picks.get(run.clone()).unwrap_or(&[]).iter().map(|j| rms(j) * rms(j)).sum();
            let deviation = units.scale * math::sqrt(2.0 / power.max(f32::MIN_POSITIVE));
            for value in from.get_mut(run).unwrap_or(&mut []) {
                *value = deviation * rng.normal();
            }
        }
        let deviation = math::sqrt(self.outputs as f32 / (self.len - self.first).max(1) as f32);
        for value in to.iter_mut().take(self.len - self.first) {
            *value = deviation * rng.normal();
        }
    }

    /// The gradient of the selected rows on the support.
    pub(super) fn gradient<S: Factored>(
        &mut self,
        sensing: &mut S,
        r: &[f32],
        step: u32,
        scratch: &mut [f32],
    ) -> Result<(), S::Source> {
        let net = Net::cut(self.sizes(), (&*self.index, &*self.value), (self.first, self.len));
        let g = self.score.get_mut(..self.len).unwrap_or(&mut []);
        let out = g.split_at_mut_checked(self.first).unwrap_or_default();
        sensing.net_gradient_at(net.gates(step), net, r, out, scratch)
    }

    /// One step along the gradient of `rows` rows.
    pub(super) fn adam(&mut self, rows: f32, rate: f32, scale: f32) {
        self.decayed = (self.decayed.0 * BETA1, self.decayed.1 * BETA2);
        let (mean_part, square_part) = (1.0 / (1.0 - self.decayed.0), 1.0 / (1.0 - self.decayed.1));
        let entries =
            self.value.iter_mut().zip(&*self.score).zip(self.mean.iter_mut().zip(&mut *self.square));
        for (e, ((value, g), (mean, square))) in entries.take(self.len).enumerate() {
            let unit = if e < self.first { scale } else { 1.0 };
            let g = g * unit / rows;
            *mean += (1.0 - BETA1) * (g - *mean);
            *square += (1.0 - BETA2) * (g * g - *square);
            let step = rate * mean_part * *mean / (math::sqrt(square_part * *square) + EPSILON);
            *value += unit * step;
        }
    }

    /// Keeps at most `count` entries, those of largest `|theta| sqrt(v)`, and no neuron that has lost one side.
    pub(super) fn keep(&mut self, count: usize, scale: f32) {
        let entries = self.score.iter_mut().zip(&*self.value).zip(&*self.square);
        for (e, ((score, value), square)) in entries.take(self.len).enumerate() {
            let unit = if e < self.first { scale } else { 1.0 };
            *score = value.abs() / unit * math::sqrt(*square);
            if *value == 0.0 {
                *score = DROPPED;
            }
        }
        let scores = self.score.get_mut(..self.len).unwrap_or(&mut []);
        drop_least(scores, count);
        self.clear_halves();
        self.compact();
    }

    /// Drops what is left of neurons without inputs or without outputs.
    fn clear_halves(&mut self) {
        let (from, to) = self.index.split_at_mut_checked(self.first).unwrap_or_default();
        let to = to.get(..self.len - self.first).unwrap_or(&[]);
        let (w, wt) = self.score.split_at_mut_checked(self.first).unwrap_or_default();
        let (mut at, mut out) = (0, 0);
        for i in 0..self.hidden {
            let run = |index: &[u32], start: usize, width: usize| {
                let rest = index.get(start..).unwrap_or(&[]);
                start..start + rest.iter().take_while(|&&j| (j as usize) < (i + 1) * width).count()
            };
            let (a, b) = (run(from, at, self.inputs), run(to, out, self.outputs));
            (at, out) = (a.end, b.end);
            let (a, b) = (w.get_mut(a).unwrap_or(&mut []), wt.get_mut(b).unwrap_or(&mut []));
            let alive = |scores: &[f32]| scores.iter().any(|&score| score != DROPPED);
            if alive(a) != alive(b) {
                a.fill(DROPPED);
                b.fill(DROPPED);
            }
        }
    }

    /// Moves dropped entries behind the others.
    fn compact(&mut self) {
        let len = self.len;
        self.join();
        let (mut to, mut first) = (0, 0);
        for e in 0..len {
            if self.score.get(e).is_none_or(|&score| score == DROPPED) {
                continue;
            }
            self.swap(e, to);
            to += 1;
            if e < self.first {
                first = to;
            }
        }
        (self.first, self.len, self.dropped) = (first, to, len - to);
        self.part();
        // Growth needs the room of the values; the means would never be read again.
        for (mean, value) in self.mean.iter_mut().zip(&*self.value).take(len).skip(to) {
            *mean = *value;
        }
    }

    /// Takes back what the last call of [`Self::keep`] has dropped, but for the means; the support must not have grown
    /// since.
    pub(super) fn restore(&mut self) {
        let len = self.len + self.dropped;
        for (value, mean) in self.value.iter_mut().zip(&*self.mean).take(len).skip(self.len) {
            *value = *mean;
        }
        self.join();
        // Heap sort by index: no memory, and nothing worse than n log n.
        for root in (0..len / 2).rev() {
            self.sink(root, len);
        }
        for end in (1..len).rev() {
            self.swap(0, end);
            self.sink(0, end);
        }
        let base = self.base();
        self.first = self.index.get(..len).unwrap_or(&[]).partition_point(|&j| j < base);
        (self.len, self.dropped) = (len, 0);
        self.part();
    }

    /// Moves the entry at `root` down within `..len` until no child has a larger index.
    fn sink(&mut self, mut root: usize, len: usize) {
        loop {
            let larger = |a: usize, b: usize| if self.index.get(b) > self.index.get(a) { b } else { a };
            let (left, right) = (2 * root + 1, 2 * root + 2);
            let mut most = root;
            if left < len {
                most = larger(most, left);
            }
            if right < len {
                most = larger(most, right);
            }
            if most == root {
                return;
            }
            self.swap(root, most);
            root = most;
        }
    }

    /// Where the indices of Wt begin in one space over both sides, those of W first.
    fn base(&self) -> u32 {
        (self.hidden * self.inputs) as u32
    }

    /// Brings the indices of the support into one space.
    fn join(&mut self) {
        let base = self.base();
        let to = self.index.get_mut(self.first..self.len).unwrap_or(&mut []);
        to.iter_mut().for_each(|j| *j = j.wrapping_add(base));
    }

    /// Undoes [`Self::join`].
    fn part(&mut self) {
        let base = self.base();
        let to = self.index.get_mut(self.first..self.len).unwrap_or(&mut []);
        to.iter_mut().for_each(|j| *j = j.wrapping_sub(base));
    }

    /// Swaps what belongs to two entries, but for the scores.
    fn swap(&mut self, a: usize, b: usize) {
        if a.max(b) < self.index.len() {
            self.index.swap(a, b);
            self.value.swap(a, b);
            self.mean.swap(a, b);
            self.square.swap(a, b);
        }
    }

    /// Copies what belongs to entry `from` to the place of entry `to`, but for the score.
    fn shift(&mut self, from: usize, to: usize) {
        let [value, mean, square] = [&mut *self.value, &mut *self.mean, &mut *self.square];
        let [value, mean, square] = [value, mean, square].map(bytemuck::cast_slice_mut);
        for array in [&mut *self.index, value, mean, square] {
            let moved = array.get(from).copied();
            if let (Some(moved), Some(place)) = (moved, array.get_mut(to)) {
                *place = moved;
            }
        }
    }

    /// Index of a grown entry, in one space over both sides.
    fn found(&self, e: usize) -> u32 {
        self.score.get(e).map_or(0, |found| found.to_bits())
    }

    /// Starts looking for entries that fill the support up to `target`.
    pub(super) fn grow(&mut self, target: usize) -> Growth<'_> {
        let sizes = self.sizes();
        let room = target.min(self.index.len()).saturating_sub(self.len);
        let (value, scores) = self.value.split_at_mut_checked(self.len).unwrap_or_default();
        let found: &mut [u32] = bytemuck::cast_slice_mut(&mut *self.score);
        let top =
            Top::new(found.get_mut(..room).unwrap_or(&mut []), scores.get_mut(..room).unwrap_or(&mut []));
        let net = Net::cut(sizes, (&*self.index, value), (self.first, self.len));
        Growth { net, at: (0, 0), top }
    }

    /// Merges the `count` entries that were found into the support, with weights of zero.
    pub(super) fn merge(&mut self, count: usize) {
        let base = self.base();
        let (mut old, mut new) = (self.len, count);
        // From the back: what is moved never lands on what is still to be moved.
        for to in (0..self.len + count).rev() {
            let Some(last) = new.checked_sub(1) else { break };
            let candidate = self.found(last);
            let kept = old.checked_sub(1).and_then(|e| Some((e, *self.index.get(e)?)));
            match kept {
                Some((e, j)) if j + if e < self.first { 0 } else { base } > candidate => {
                    self.shift(e, to);
                    old = e;
                }
                _ => {
                    let j = if candidate < base { candidate } else { candidate - base };
                    let zeros = [&mut *self.value, &mut *self.mean, &mut *self.square];
                    zeros.into_iter().filter_map(|array| array.get_mut(to)).for_each(|x| *x = 0.0);
                    if let Some(index) = self.index.get_mut(to) {
                        *index = j;
                    }
                    new = last;
                }
            }
        }
        self.first += (0..count).filter(|&e| self.found(e) < base).count();
        self.len += count;
        self.dropped = 0;
    }

    /// Keeps the values as the best so far.
    pub(super) fn remember(&mut self) {
        for (best, value) in self.best.iter_mut().zip(&*self.value) {
            *best = *value;
        }
    }

    /// Goes back to the best values.
    pub(super) fn recall(&mut self) {
        for (value, best) in self.value.iter_mut().zip(&*self.best).take(self.len) {
            *value = *best;
        }
    }
}

/// The score of what leaves the support.
const DROPPED: f32 = -1.0;

/// Marks all but the `count` largest scores; of equal ones the later go first. Bits of nonnegative floats order as the
/// floats do, so the threshold is found by bisection on bits: no memory and no sorting.
fn drop_least(scores: &mut [f32], count: usize) {
    let above = |scores: &[f32], bits: u32| {
        scores.iter().filter(|score| **score != DROPPED && score.to_bits() >= bits).count()
    };
    if above(scores, 0) <= count {
        return;
    }
    let (mut low, mut high) = (0_u32, u32::MAX >> 1);
    // The largest threshold that at least `count` scores reach.
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if above(scores, middle) >= count {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    let mut ties = count - above(scores, low + 1);
    for score in scores.iter_mut().filter(|score| **score != DROPPED) {
        if score.to_bits() < low || (score.to_bits() == low && ties == 0) {
            *score = DROPPED;
        } else if score.to_bits() == low {
            ties -= 1;
        }
    }
}

/// The search for new entries beside the support; it ends with the indices of the best ones, in one space over both
/// sides, where the scores were.
pub(super) struct Growth<'s> {
    pub(super) net: Net<'s>,
    /// Where the entries of W and of Wt stand that come next.
    at: (usize, usize),
    top: Top<'s>,
}

impl Growth<'_> {
    /// Offers the gradient of a panel, whose blocks must rise from call to call.
    ///
    /// The score of an entry is its gradient over the size of what it multiplies: the column of an input, the
    /// activation of a neuron.
    pub(super) fn offer(&mut self, blocks: Range<usize>, dw: &[f32], dwt: &[f32], units: &Units<'_>) {
        let (mut w, wt) = (self.net.w(), self.net.wt());
        let (d, m, c) = (w.inputs(), w.hidden(), wt.inputs());
        let (old, old_out) = (w.index(), wt.index());
        let panels = dw.chunks(d.max(1)).zip(dwt.chunks(c.max(1)));
        for (i, (dw, dwt)) in blocks.zip(panels) {
            for (j, (g, inverse)) in dw.iter().zip(units.columns).enumerate() {
                if !taken(old, &mut self.at.0, i * d + j) {
                    self.top.push((i * d + j) as u32, g * units.scale * inverse);
                }
            }
            let size = units.activation(w.take_block(i));
            for (k, g) in dwt.iter().enumerate() {
                if !taken(old_out, &mut self.at.1, i * c + k) && size > 0.0 {
                    self.top.push((m * d + i * c + k) as u32, g / size);
                }
            }
        }
    }

    /// How many entries were found; none if a gradient was not finite.
    pub(super) fn finish(self) -> Option<usize> {
        self.top.finish()
    }
}

/// Whether the entry at `at`, the next one, is `flat`; if so, goes on to the one after it.
fn taken(index: &[u32], at: &mut usize, flat: usize) -> bool {
    let is = index.get(*at).is_some_and(|&j| j as usize == flat);
    *at += usize::from(is);
    is
}
