//! The search: descend, try moves, keep the best, kick, finish.

use super::fit::Fit;
use super::neuron::{self, Candidate, Sign, Single};
use super::{Info, Params, Phase, Progress, support};
use crate::error::Result;
use crate::math::{norm2, sqrt};
use crate::rng::{Rng, stream};
use crate::sensing::{Sensing, head_mut};
use crate::weights::{Block, Editable, Weights};

/// A descent has stalled where the loss does not fall below this part of the last one.
const STALL: f32 = 0.85;
/// Outer steps of a descent at the most.
const DESCENT: u32 = 40;
/// Outer steps after a trial move.
const TRIAL: u32 = 4;
/// A trial that falls below this part of the loss is taken at once …
const SUCCESS: f32 = 0.7;
/// … and one below this part if it is the best of its batch.
const PROGRESS: f32 = 0.98;
/// Candidates tried before the best is taken.
const BATCH: usize = 6;
/// Batches before the search gives up.
const BATCHES: usize = 4;
/// Sweeps of the coordinate descent that folds the linear term.
const FOLD_SWEEPS: u32 = 300;
/// Neurons with a cosine above these become one, by turns.
const COSINES: [f32; 5] = [0.995, 0.98, 0.95, 0.995, 0.9];

/// Everything that a run holds.
pub(super) struct Search<'a, S: ?Sized, F> {
    pub(super) fit: Fit<'a, S>,
    pub(super) net: Editable<'a>,
    pub(super) base: Editable<'a>,
    pub(super) kept: Editable<'a>,
    pub(super) best: Editable<'a>,
    pub(super) scales: &'a mut [f32],
    pub(super) panel: &'a mut [f32],
    pub(super) added: &'a mut [u32],
    pub(super) single: Single<'a>,
    pub(super) params: Params,
    /// s.
    pub(super) nnz: usize,
    /// Neurons that the final network may have, m.
    pub(super) hidden: usize,
    pub(super) info: Info,
    pub(super) observe: F,
    /// Loss at which the fit counts as exact.
    pub(super) goal: f32,
    pub(super) best_loss: f32,
    pub(super) turn: u32,
}

impl<S: Sensing + ?Sized, F: FnMut(&Progress) -> bool> Search<'_, S, F> {
    fn work_size(&self) -> usize {
        self.params.work_size(self.nnz)
    }

    /// Neurons that have weights, without the linear term.
    fn live(&self) -> usize {
        self.neurons().count()
    }

    /// The neurons that have weights, without the linear term.
    fn neurons(&self) -> impl Iterator<Item = Block<'_>> {
        let signs = self.fit.signs;
        self.net.view().blocks().filter(move |block| !signs.linear(block.neuron()))
    }

    /// The number of the first neuron.
    fn first(&self) -> usize {
        usize::from(self.fit.signs.linear(0))
    }

    /// Weights of the linear term: they do not count in s.
    fn linear(&self) -> usize {
        if self.fit.signs.linear(0) { self.net.range(0).len() } else { 0 }
    }

    /// Tells the observer, once per outer step; true if the run is to end.
    fn report(&mut self, phase: Phase, loss: f32) -> bool {
        self.info.steps += 1;
        let progress = Progress {
            phase,
            step: self.info.steps,
            loss,
            best: self.best_loss.min(loss),
            support: self.net.nnz(),
            live: self.live(),
            moves: self.info.moves,
            kicks: self.info.kicks,
            rows_read: self.fit.rows_read,
        };
        self.info.stopped |= !(self.observe)(&progress);
        self.done()
    }

    fn done(&self) -> bool {
        self.info.stopped || self.info.steps >= self.params.steps
    }

    /// Grow, fit, threshold to `size`, fit.
    fn outer(&mut self, loss: f32, size: usize, phase: Phase) -> Result<f32, S::Source> {
        let extra = self.params.growth(self.nnz);
        support::grow(&mut self.fit, &mut self.net, (self.scales, self.panel, self.added), extra)?;
        self.fit.improve(&mut self.net, loss, 2, 0.0)?;
        let loss = self.cut(size, 2)?;
        self.report(phase, loss);
        Ok(loss)
    }

    /// Thresholds to `size` weights and fits them with `steps` steps.
    fn cut(&mut self, size: usize, steps: u32) -> Result<f32, S::Source> {
        let linear = self.fit.signs.linear(0).then_some(self.scales.len());
        support::threshold(&mut self.net, self.scales, self.fit.p, (linear.unwrap_or(0), size));
        let loss = self.fit.loss(self.net.view())?;
        self.fit.improve(&mut self.net, loss, steps, 0.0)
    }

    /// Outer steps until the loss stalls, the fit is exact, or `steps` are done.
    fn descend(&mut self, mut loss: f32, steps: u32, phase: Phase) -> Result<f32, S::Source> {
        for _ in 0..steps {
            if loss <= self.goal || self.done() {
                break;
            }
            let before = loss;
            loss = self.outer(loss, self.work_size(), phase)?;
            self.keep_best(loss);
            if !(loss < STALL * before) {
                break;
            }
        }
        Ok(loss)
    }

    fn keep_best(&mut self, loss: f32) {
        if loss < self.best_loss && self.best.set(self.net.view()) {
            self.best_loss = loss;
        }
    }

    /// From the start to the end: searches on a part of the rows, then fits all of them, and goes on with more rows
    /// where they show what the part did not. The result is in `net`.
    pub(super) fn run(&mut self, rows: usize) -> Result<(), S::Source> {
        let all = self.fit.sensing.rows();
        let mut rows = rows.min(all);
        self.select(rows)?;
        support::scales(&mut self.fit, self.scales)?;
        let start = (&*self.scales, &mut *self.panel, &mut *self.added);
        support::start(&mut self.fit, &mut self.net, start, self.nnz, self.params.seed)?;
        self.add_linear();
        let mut loss = self.fit.loss(self.net.view())?;
        loss = self.fit.improve(&mut self.net, loss, 3, self.goal)?;
        loop {
            loss = self.search(loss)?;
            let claimed = loss <= self.goal;
            self.select(all)?;
            loss = self.fit.loss(self.net.view())?;
            loss = self.fit.improve(&mut self.net, loss, self.params.final_steps, 0.0)?;
            self.report(Phase::AllRows, loss);
            if loss <= self.goal || self.done() || rows == all {
                break;
            }
            if !claimed {
                // No exact fit in sight: a better support for all rows is what is left to find.
                self.best_loss = f32::INFINITY;
                loss = self.descend(loss, DESCENT, Phase::AllRows)?;
                loss = self.finish(loss)?;
                break;
            }
            rows = rows.saturating_mul(4).min(all);
            self.select(rows)?;
            loss = self.fit.loss(self.net.view())?;
        }
        loss = self.polish(loss)?;
        self.info.loss = loss;
        self.info.exact = loss <= self.goal;
        Ok(())
    }

    /// Makes neuron 0 the linear term, with all inputs, where signs are free.
    fn add_linear(&mut self) {
        if !self.fit.signs.linear(0) {
            return;
        }
        self.net.remove(0);
        for ((index, value), j) in self.single.index.iter_mut().zip(&mut *self.single.value).zip(0..) {
            (*index, *value) = (j, 0.0);
        }
        self.net.add(self.single.index, self.single.value);
    }

    /// Fits the first `rows` rows from now on.
    fn select(&mut self, rows: usize) -> Result<(), S::Source> {
        self.fit.select(rows)?;
        self.goal = self.params.exact * norm2(self.fit.labels()) / rows as f32;
        Ok(())
    }

    /// Searches on the rows selected now from `net`, whose loss is `loss`, down to s weights.
    fn search(&mut self, mut loss: f32) -> Result<f32, S::Source> {
        self.best_loss = f32::INFINITY;
        self.keep_best(loss);
        loss = self.descend(loss, DESCENT, Phase::Descend)?;
        let mut kicks = 0;
        loop {
            while loss > self.goal && !self.done() {
                match self.improve_by_moves(loss)? {
                    Some(better) => loss = better,
                    None => break,
                }
            }
            if loss <= self.goal {
                loss = self.finish(loss)?;
                if loss <= self.goal || self.done() {
                    return Ok(loss);
                }
            }
            if self.done() || kicks >= self.params.kicks {
                break;
            }
            kicks += 1;
            loss = self.kick(kicks)?;
        }
        self.net.set(self.best.view());
        let loss = self.fit.loss(self.net.view())?;
        self.finish(loss)
    }

    /// Outer steps at exactly s weights, as long as they lower the loss; weights that are missing are added first.
    fn polish(&mut self, mut loss: f32) -> Result<f32, S::Source> {
        let missing = self.nnz.saturating_sub(self.net.nnz() - self.linear());
        if missing > 0 {
            support::grow(&mut self.fit, &mut self.net, (self.scales, self.panel, self.added), missing)?;
            loss = self.fit.improve(&mut self.net, loss, 3, 0.0)?;
        }
        for _ in 0..self.params.polish {
            if loss <= self.goal || self.done() {
                break;
            }
            self.base.set(self.net.view());
            let next = self.outer(loss, self.nnz, Phase::Polish)?;
            if !(next < loss) {
                self.net.set(self.base.view());
                break;
            }
            loss = next;
        }
        self.fit.loss(self.net.view())
    }

    /// Back to the best state without a fifth of its neurons.
    fn kick(&mut self, kick: u32) -> Result<f32, S::Source> {
        self.info.kicks += 1;
        self.net.set(self.best.view());
        let live = self.live();
        let mut rng = Rng::new(self.params.seed, stream::SUPPORT + (1 << 31) + u64::from(kick));
        for _ in 0..(live / 5).max(1) {
            let nth = rng.below(self.live() as u32) as usize;
            let neuron = self.neurons().nth(nth).map(|block| block.neuron());
            neuron.into_iter().for_each(|i| self.net.remove(i));
        }
        self.fit.damp();
        let loss = self.fit.loss(self.net.view())?;
        let loss = self.fit.improve(&mut self.net, loss, 2, self.goal)?;
        self.descend(loss, DESCENT, Phase::Kick)
    }

    /// Tidies, then tries candidates until one helps; `None` if none does.
    fn improve_by_moves(&mut self, loss: f32) -> Result<Option<f32>, S::Source> {
        let cosine = COSINES.get(self.turn as usize % COSINES.len()).copied().unwrap_or(1.0);
        self.turn += 1;
        self.base.set(self.net.view());
        // Tidying is a trial like any other: what it spoils is undone.
        let mut tidied = self.flip(loss)?;
        let merged = self.merge(cosine)?;
        if merged > 0 {
            self.fit.damp();
            tidied = self.fit.loss(self.net.view())?;
            tidied = self.fit.improve(&mut self.net, tidied, 2, self.goal)?;
        }
        if tidied <= 1.02 * loss {
            self.base.set(self.net.view());
        } else {
            self.net.set(self.base.view());
            tidied = self.fit.loss(self.net.view())?;
        }
        let loss = tidied;
        if loss <= self.goal {
            return Ok(Some(loss));
        }
        let candidates = self.candidates()?;
        let joint = self.live() / 12;
        if joint >= 2 {
            let tried = self.try_out(candidates.get(..joint.min(candidates.len())).unwrap_or(&[]), loss)?;
            if tried < SUCCESS * loss {
                self.info.moves += 1;
                return self.descend(tried, DESCENT, Phase::Move).map(Some);
            }
        }
        for batch in candidates.chunks(BATCH) {
            let mut least = f32::INFINITY;
            for &candidate in batch {
                let tried = self.try_out(&[candidate], loss)?;
                if tried < least {
                    least = tried;
                    self.kept.set(self.net.view());
                }
                if least < SUCCESS * loss || self.done() {
                    break;
                }
            }
            if least < PROGRESS * loss {
                self.info.moves += 1;
                self.net.set(self.kept.view());
                let least = self.fit.loss(self.net.view())?;
                self.keep_best(least);
                return self.descend(least, DESCENT, Phase::Move).map(Some);
            }
            if self.done() {
                break;
            }
        }
        self.net.set(self.base.view());
        self.fit.loss(self.net.view())?;
        Ok(None)
    }

    /// The base with these candidates applied, fitted and descended from; its loss.
    fn try_out(&mut self, candidates: &[(f32, Candidate)], loss: f32) -> Result<f32, S::Source> {
        self.net.set(self.base.view());
        // Candidates are formed from the residual of the base.
        self.fit.loss(self.net.view())?;
        self.info.trials += 1;
        for &(_, candidate) in candidates {
            self.apply(candidate)?;
        }
        self.fit.damp();
        let tried = self.fit.loss(self.net.view())?;
        let mut tried = self.fit.improve(&mut self.net, tried, 2, self.goal)?;
        for _ in 0..TRIAL {
            if tried <= self.goal || self.done() {
                break;
            }
            let before = tried;
            tried = self.outer(tried, self.work_size(), Phase::Trial)?;
            if tried < SUCCESS * loss || !(tried < 0.95 * before) {
                break;
            }
        }
        if self.net.nnz() - self.linear() > self.work_size() {
            tried = self.cut(self.work_size(), 2)?;
        }
        self.keep_best(tried);
        Ok(tried)
    }

    /// The most promising candidates at the base, best first.
    fn candidates(&mut self) -> Result<heapless::Vec<(f32, Candidate), { BATCH * BATCHES }>, S::Source> {
        let mut list = heapless::Vec::new();
        let d = self.scales.len();
        let seed = self.params.seed ^ u64::from(self.turn);
        let k = self.birth_size();
        for sign in self.signs() {
            let Some(slot) = self.slot(sign) else { continue };
            let mut atoms = heapless::Vec::<(f32, Candidate), BATCH>::new();
            for number in 0..2 * d as u32 {
                let gain = neuron::atom(&mut self.fit, &mut self.single, d, (number, slot))?;
                rank(&mut atoms, (gain, Candidate::Atom(number, sign)));
            }
            let random = (0..self.params.random_births).map(|number| (0.0, Candidate::Random(number, sign)));
            for (_, candidate) in atoms.into_iter().chain(random) {
                let gain =
                    neuron::birth(&mut self.fit, &mut self.single, self.scales, (candidate, slot, k), seed)?;
                rank(&mut list, (gain, candidate));
            }
        }
        for i in self.first()..self.fit.sensing.blocks() {
            if self.net.range(i).is_empty() {
                continue;
            }
            let gain = neuron::split(&mut self.fit, &self.net, &mut self.single, self.scales, (i, k), seed)?;
            rank(&mut list, (gain, Candidate::Split(i as u32)));
        }
        Ok(list)
    }

    /// The signs that neurons may have.
    fn signs(&self) -> impl Iterator<Item = Sign> + use<S, F> {
        let signs = if self.fit.signs.both() { 2 } else { 1 };
        [Sign::Positive, Sign::Negative].into_iter().take(signs)
    }

    /// Any neuron of this sign.
    fn slot(&self, sign: Sign) -> Option<usize> {
        (self.first()..self.fit.sensing.blocks()).find(|&i| self.fit.signs.sign(i) == sign.value())
    }

    /// Weights that a new neuron starts with.
    fn birth_size(&self) -> usize {
        self.nnz.div_ceil(self.hidden.max(1)).max(2)
    }

    /// The first neuron without weights whose output has this sign.
    fn vacant(&self, sign: f32) -> Option<usize> {
        let mut blocks = self.neurons().map(|block| block.neuron()).peekable();
        (self.first()..self.fit.sensing.blocks())
            .find(|&i| blocks.next_if_eq(&i).is_none() && self.fit.signs.sign(i) == sign)
    }

    /// A neuron without weights, the weakest being emptied if there is none; never `but`.
    fn vacate(&mut self, sign: f32, but: Option<usize>) -> Option<usize> {
        if let Some(i) = self.vacant(sign) {
            return Some(i);
        }
        let d = self.scales.len();
        let weakest = self
            .neurons()
            .filter(|block| Some(block.neuron()) != but && self.fit.signs.sign(block.neuron()) == sign)
            .map(|block| {
                let strength: f32 = block
                    .entries()
                    .map(|(j, w)| w * self.scales.get(j % d.max(1)).copied().unwrap_or(0.0))
                    .map(|x| x * x)
                    .sum();
                (strength, block.neuron())
            })
            .min_by(|a, b| a.0.total_cmp(&b.0))?
            .1;
        self.net.remove(weakest);
        Some(weakest)
    }

    fn apply(&mut self, candidate: Candidate) -> Result<bool, S::Source> {
        let k = self.birth_size();
        let seed = self.params.seed ^ u64::from(self.turn);
        match candidate {
            Candidate::Atom(_, sign) | Candidate::Random(_, sign) => {
                let Some(i) = self.vacate(sign.value(), None) else { return Ok(false) };
                neuron::birth(&mut self.fit, &mut self.single, self.scales, (candidate, i, k), seed)?;
                // As long as the residual asks for: the least-squares factor comes with the next steps.
                Ok(self.add_single(1.0))
            }
            Candidate::Split(i) => {
                let i = i as usize;
                if self.net.range(i).is_empty() {
                    return Ok(false);
                }
                neuron::split(&mut self.fit, &self.net, &mut self.single, self.scales, (i, k), seed)?;
                let Some(to) = self.vacate(self.fit.signs.sign(i), Some(i)) else { return Ok(false) };
                let range = self.net.range(i);
                for v in self.net.values().get_mut(range).unwrap_or(&mut []) {
                    *v *= 0.5;
                }
                if !self.net.copy(i, to) {
                    return Ok(false);
                }
                let d = self.scales.len();
                let added = self.add_single(1.0);
                self.single.shift(i, to, d);
                Ok(self.add_single(-1.0) && added)
            }
        }
    }

    /// Adds the entries of the single neuron, times `factor`, to the network.
    fn add_single(&mut self, factor: f32) -> bool {
        let len = self.single.len;
        let (Some(index), Some(value)) = (self.single.index.get(..len), self.single.value.get_mut(..len))
        else {
            return false;
        };
        value.iter_mut().for_each(|v| *v *= factor);
        let added = self.net.add(index, value);
        value.iter_mut().for_each(|v| *v *= factor);
        added
    }

    /// Turns neurons round, `w_i -> -w_i`, where that alone lowers the loss; returns the loss.
    fn flip(&mut self, loss: f32) -> Result<f32, S::Source> {
        let rows = self.fit.rows();
        let mut total = loss * rows as f32;
        let mut flipped = 0;
        if self.linear() > 0 {
            // With a linear term both ways are the same.
            return Ok(loss);
        }
        for i in self.first()..self.fit.sensing.blocks() {
            let range = self.net.range(i);
            if range.is_empty() {
                continue;
            }
            let (z, t) = (head_mut(&mut *self.single.z, rows)?, head_mut(&mut *self.single.t, rows)?);
            z.fill(0.0);
            t.fill(0.0);
            let w = self.net.view();
            self.fit.image(w, w.block(i), z)?;
            let negate = |net: &mut Editable<'_>| {
                for v in net.values().get_mut(range.clone()).unwrap_or(&mut []) {
                    *v = -*v;
                }
            };
            negate(&mut self.net);
            let w = self.net.view();
            self.fit.image(w, w.block(i), t)?;
            let residual = head_mut(&mut *self.fit.residual, rows)?;
            let mut after = 0.0;
            for ((z, t), r) in z.iter_mut().zip(&*t).zip(&*residual) {
                *z += r - t;
                after += *z * *z;
            }
            if after < 0.999 * total {
                total = after;
                residual.copy_from_slice(z);
                flipped += 1;
            } else {
                negate(&mut self.net);
            }
        }
        if flipped == 0 {
            return Ok(loss);
        }
        self.info.flips += flipped;
        self.fit.damp();
        let loss = self.fit.loss(self.net.view())?;
        self.fit.improve(&mut self.net, loss, 2, self.goal)
    }

    /// Adds neurons of equal sign with a cosine above `least` to one another; returns how many vanished.
    fn merge(&mut self, least: f32) -> Result<u32, S::Source> {
        let (m, d) = (self.fit.sensing.blocks(), self.scales.len());
        let mut merged = 0;
        for i in self.first()..m {
            if self.net.range(i).is_empty() {
                continue;
            }
            for j in i + 1..m {
                let w = self.net.view();
                if w.block(j).is_empty() {
                    continue;
                }
                let (cosine, stronger) = compare(w, i, j, self.scales);
                if !(cosine.abs() > least) {
                    continue;
                }
                // Both are open on the same rows, or one where the other is closed; the latter needs the linear term.
                let same_rows = (cosine > 0.0) == (self.fit.signs.sign(i) == self.fit.signs.sign(j));
                if !same_rows && self.linear() == 0 {
                    continue;
                }
                let (to, from) = if stronger { (i, j) } else { (j, i) };
                let other = w.block(from);
                let len = other.values().len();
                let (Some(index), Some(value)) =
                    (self.single.index.get_mut(..len), self.single.value.get_mut(..len))
                else {
                    continue;
                };
                for ((index, value), (input, v)) in index.iter_mut().zip(&mut *value).zip(other.entries()) {
                    (*index, *value) = ((to * d + input) as u32, v);
                }
                self.single.len = len;
                self.net.remove(from);
                self.add_single(if same_rows { 1.0 } else { -1.0 });
                if !same_rows {
                    self.single.shift(to, 0, d);
                    self.add_single(1.0);
                }
                merged += 1;
                if from == i {
                    break;
                }
            }
        }
        self.info.merges += merged;
        Ok(merged)
    }

    /// Down to s weights and m neurons, a part at a time; the loss of the result.
    fn finish(&mut self, mut loss: f32) -> Result<f32, S::Source> {
        if self.merge(0.9999)? > 0 {
            loss = self.fit.loss(self.net.view())?;
            loss = self.fit.improve(&mut self.net, loss, 3, self.goal)?;
        }
        loop {
            let excess = (self.net.nnz() - self.linear()).saturating_sub(self.nnz);
            if excess == 0 {
                break;
            }
            let size = self.net.nnz() - self.linear() - excess.div_ceil(3);
            loss = self.cut(size, 5)?;
            self.report(Phase::Finish, loss);
        }
        if self.linear() > 0 {
            loss = self.fold_linear()?;
        }
        let mut live = self.live();
        while live > self.hidden {
            for _ in 0..(live - self.hidden).div_ceil(3) {
                self.vacate_weakest();
            }
            live = self.live();
            self.fit.damp();
            loss = self.fit.loss(self.net.view())?;
            loss = self.fit.improve(&mut self.net, loss, 5, self.goal)?;
        }
        Ok(loss)
    }

    /// Does away with the linear term l: neurons are turned round where that cancels it, since
    /// `relu(w·x) = w·x + relu(-w·x)`; what is left becomes a neuron of either sign. Down to s weights, fitted.
    fn fold_linear(&mut self) -> Result<f32, S::Source> {
        let d = self.scales.len();
        self.info.folds += 1;
        // l + Σ b_i w_i with b_i in [0, 1], by coordinate descent in the metric of the columns.
        let left = head_mut(&mut *self.single.block, d)?;
        left.fill(0.0);
        for (j, w) in self.net.view().block(0).entries() {
            if let Some(left) = left.get_mut(j) {
                *left = w;
            }
        }
        let live = self.net.view().blocks().filter(|block| block.neuron() > 0).count();
        let parts = head_mut(&mut *self.fit.p, live)?;
        parts.fill(0.0);
        let scale = |j: usize| self.scales.get(j).map_or(0.0, |c| c * c);
        for _ in 0..FOLD_SWEEPS {
            let blocks = self.net.view().blocks().filter(|block| block.neuron() > 0);
            for (part, block) in parts.iter_mut().zip(blocks) {
                let (mut along, mut norm) = (0.0, 0.0);
                for (j, w) in block.entries() {
                    along += scale(j) * w * left.get(j).copied().unwrap_or(0.0);
                    norm += scale(j) * w * w;
                }
                let new = (*part - along / norm).clamp(0.0, 1.0);
                if !new.is_finite() {
                    continue;
                }
                for (j, w) in block.entries() {
                    if let Some(left) = left.get_mut(j) {
                        *left += (new - *part) * w;
                    }
                }
                *part = new;
            }
        }
        self.net.remove(0);
        // Rounded to whole turns; what does not come out even stays in l.
        for (j, left) in left.iter_mut().enumerate() {
            *left = self.single.value.get(j).map_or(0.0, |_| *left);
        }
        let mut at = 0;
        for i in 1..self.fit.sensing.blocks() {
            let range = self.net.range(i);
            if range.is_empty() {
                continue;
            }
            let part = parts.get(at).copied().unwrap_or(0.0);
            at += 1;
            let turned = if part > 0.5 { 1.0 } else { 0.0 };
            for (j, w) in self.net.view().block(i).entries() {
                if let Some(left) = left.get_mut(j) {
                    *left += (turned - part) * w;
                }
            }
            if turned > 0.0 {
                self.net.values().get_mut(range).unwrap_or(&mut []).iter_mut().for_each(|w| *w = -*w);
            }
        }
        self.fit.damp();
        let mut loss = self.fit.loss(self.net.view())?;
        loss = self.fit.improve(&mut self.net, loss, 5, self.goal)?;
        Ok(loss)
    }

    /// Empties the neuron that contributes least.
    fn vacate_weakest(&mut self) {
        let d = self.scales.len().max(1);
        let strength = |block: Block<'_>| -> f32 {
            block
                .entries()
                .map(|(j, w)| w * self.scales.get(j % d).copied().unwrap_or(0.0))
                .map(|x| x * x)
                .sum()
        };
        let weakest = self.neurons().map(|b| (strength(b), b.neuron())).min_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((_, i)) = weakest {
            self.net.remove(i);
        }
    }
}

/// The cosine of neurons `i` and `j` in the metric of the columns' scales, and whether i is the longer.
fn compare(w: Weights<'_>, i: usize, j: usize, scales: &[f32]) -> (f32, bool) {
    let scaled = |(j, v): (usize, f32)| (j, v * scales.get(j).copied().unwrap_or(0.0));
    let (a, b) = (w.block(i), w.block(j));
    let mut others = b.entries().map(scaled).peekable();
    let mut product = 0.0;
    for (at, x) in a.entries().map(scaled) {
        while others.next_if(|&(j, _)| j < at).is_some() {}
        if let Some((_, y)) = others.next_if(|&(j, _)| j == at) {
            product += x * y;
        }
    }
    let norm = |b: Block<'_>| b.entries().map(scaled).map(|(_, x)| x * x).sum::<f32>();
    let (a, b) = (norm(a), norm(b));
    (product / sqrt(a * b), a >= b)
}

/// Enters a candidate into a list that is sorted by gain, best first, and drops the last where it is full.
fn rank<const N: usize>(list: &mut heapless::Vec<(f32, Candidate), N>, entry: (f32, Candidate)) {
    if !(entry.0 > 0.0) {
        return;
    }
    let at = list.iter().position(|other| entry.0 > other.0).unwrap_or(list.len());
    if list.is_full() {
        list.pop();
    }
    let _ = list.insert(at.min(list.len()), entry);
}
