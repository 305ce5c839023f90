//! Changes of the support: what is dropped, what comes back, and what grows in its place.

use super::{Support, Units};
use crate::base::math;
use crate::learn::anneal::params::Params;
use crate::network::net::Network;
use crate::network::top::{DROPPED, Top, drop_least};
use crate::operator::factored::GradientMut;
use core::ops::Range;

impl Support<'_> {
    /// Keeps at most `count` entries: those that must be kept and those of largest
    /// `|theta| sqrt(v)`, and of a neuron that has lost one side none but the former. Of one
    /// output, a neuron stays that raises it and one that lowers it.
    pub(in crate::learn::anneal) fn keep(&mut self, count: usize, params: &Params<'_>) {
        let (scale, must_keep) = (params.input_scale, params.must_keep);
        let entries = self.score.iter_mut().zip(&*self.value).zip(&*self.square);
        for (e, ((score, value), square)) in entries.take(self.len).enumerate() {
            let unit = if e < self.first { scale } else { 1.0 };
            *score = (value.abs() / unit * math::sqrt(*square)).min(f32::MAX);
            if *value == 0.0 {
                *score = DROPPED;
            }
        }
        let from = self.index.get(..self.first).unwrap_or(&[]);
        for (j, score) in from.iter().zip(self.score.iter_mut()) {
            if must_keep.binary_search(j).is_ok() {
                *score = KEPT;
            }
        }
        if self.shape.output_weights() == 1 && count >= must_keep.len() + 4 {
            self.keep_signs();
        }
        let scores = self.score.get_mut(..self.len).unwrap_or(&mut []);
        drop_least(scores, count.max(must_keep.len()));
        self.clear_halves();
        self.compact();
    }

    /// Marks the best path of each sign to the one output: relus are never negative, so without one
    /// of them the output cannot be, and one of two classes is never found.
    fn keep_signs(&mut self) {
        let (from, to) = self.index.split_at_mut_checked(self.first).unwrap_or_default();
        let (w, wt) = self.score.split_at_mut_checked(self.first).unwrap_or_default();
        let signs = self.value.get(self.first..self.len).unwrap_or(&[]);
        let inputs = self.shape.inputs;
        for negative in [false, true] {
            let (mut best, mut path) = (DROPPED, None);
            let neurons = to.iter().zip(&*wt).zip(signs).enumerate();
            for (out, ((&i, &last), sign)) in neurons.filter(|(_, (_, v))| (**v < 0.0) == negative)
            {
                let run = from.partition_point(|&j| (j as usize) < i as usize * inputs)
                    ..from.partition_point(|&j| (j as usize) < (i as usize + 1) * inputs);
                let start = run.start;
                let largest = w.get(run).unwrap_or(&[]).iter().enumerate();
                let largest = largest.max_by(|(_, a), (_, b)| a.total_cmp(b));
                if let Some((at, first)) = largest
                    && *sign != 0.0
                    && first.min(last) > best
                {
                    (best, path) = (first.min(last), Some((start + at, out)));
                }
            }
            if let Some((first, last)) = path {
                w.get_mut(first).into_iter().for_each(|score| *score = KEPT);
                wt.get_mut(last).into_iter().for_each(|score| *score = KEPT);
            }
        }
    }

    /// Drops what is left of neurons without inputs or without outputs, but for what must be kept.
    fn clear_halves(&mut self) {
        let (from, to) = self.index.split_at_mut_checked(self.first).unwrap_or_default();
        let to = to.get(..self.len - self.first).unwrap_or(&[]);
        let (w, wt) = self.score.split_at_mut_checked(self.first).unwrap_or_default();
        let (mut at, mut out) = (0, 0);
        for i in 0..self.shape.hidden {
            let run = |index: &[u32], start: usize, width: usize| {
                let rest = index.get(start..).unwrap_or(&[]);
                start..start + rest.iter().take_while(|&&j| (j as usize) < (i + 1) * width).count()
            };
            let (a, b) =
                (run(from, at, self.shape.inputs), run(to, out, self.shape.output_weights()));
            (at, out) = (a.end, b.end);
            let (a, b) = (w.get_mut(a).unwrap_or(&mut []), wt.get_mut(b).unwrap_or(&mut []));
            let alive = |scores: &[f32]| scores.iter().any(|&score| score != DROPPED);
            if alive(a) != alive(b) {
                a.iter_mut().filter(|score| **score != KEPT).for_each(|score| *score = DROPPED);
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

    /// Takes back what the last call of [`Self::keep`] has dropped, but for the means; the support
    /// must not have grown since.
    pub(in crate::learn::anneal) fn restore(&mut self) {
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
            let larger =
                |a: usize, b: usize| if self.index.get(b) > self.index.get(a) { b } else { a };
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
        (self.shape.hidden * self.shape.inputs) as u32
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

    /// Index of a grown entry, in one space over both sides.
    fn found(&self, e: usize) -> u32 {
        self.score.get(e).map_or(0, |found| found.to_bits())
    }

    /// Starts looking for entries that fill the support up to `target`.
    pub(in crate::learn::anneal) fn grow(&mut self, target: usize) -> Growth<'_> {
        let room = target.min(self.index.len()).saturating_sub(self.len);
        let count = self.count();
        let (value, scores) = self.value.split_at_mut_checked(self.len).unwrap_or_default();
        let found: &mut [u32] = bytemuck::cast_slice_mut(&mut *self.score);
        let top = Top::new(
            found.get_mut(..room).unwrap_or(&mut []),
            scores.get_mut(..room).unwrap_or(&mut []),
        );
        let net = Network::cut(self.shape, self.index, value, count);
        Growth { net, at: (0, 0), top }
    }

    /// Merges the `count` entries that were found into the support, with weights of zero.
    pub(in crate::learn::anneal) fn merge(&mut self, count: usize) {
        let base = self.base();
        let (mut old, mut new) = (self.len, count);
        // From the back: what is moved never lands on what is still to be moved.
        for to in (0..self.len + count).rev() {
            let Some(last) = new.checked_sub(1) else { break };
            let candidate = self.found(last);
            let kept = old.checked_sub(1).and_then(|e| Some((e, *self.index.get(e)?)));
            match kept {
                Some((e, j)) if j + if e < self.first { 0 } else { base } > candidate => {
                    self.swap(e, to);
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
}

/// The score of what must be kept: above all others.
const KEPT: f32 = f32::INFINITY;

/// The search for new entries beside the support; it ends with the indices of the best ones, in one
/// space over both sides, where the scores were.
pub(in crate::learn::anneal) struct Growth<'s> {
    pub(in crate::learn::anneal) net: Network<'s>,
    /// Where the entries of W and of Wt stand that come next.
    at: (usize, usize),
    top: Top<'s>,
}

impl Growth<'_> {
    /// Offers the gradient of a panel, whose blocks must rise from call to call.
    ///
    /// The score of an entry is its gradient over the size of what it multiplies: the column of an
    /// input, the activation of a neuron.
    pub(in crate::learn::anneal) fn offer(
        &mut self,
        blocks: Range<usize>,
        gradient: &GradientMut<'_>,
        units: &Units<'_>,
    ) {
        let (mut w, wt) = (self.net.w(), self.net.wt());
        let (d, m, c) = (w.inputs(), w.hidden(), wt.inputs());
        let (old, old_out) = (w.index(), wt.index());
        let panels = gradient.w.chunks(d.max(1)).zip(gradient.wt.chunks(c.max(1)));
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
    pub(in crate::learn::anneal) fn finish(self) -> Option<usize> {
        self.top.finish()
    }
}

/// Whether the entry at `at`, the next one, is `flat`; if so, goes on to the one after it.
fn taken(index: &[u32], at: &mut usize, flat: usize) -> bool {
    let is = index.get(*at).is_some_and(|&j| j as usize == flat);
    *at += usize::from(is);
    is
}
