//! Moves out of a stall: candidates for a new neuron of several outputs, and how one is added.

use super::Factors;
use super::neuron::Seedling;
use crate::base::error::Result;
use crate::base::rng::{seed_of, stream};
use crate::learn::lm::problem::{BATCH, Candidate, Candidates, Draw, Problem, rank};
use crate::learn::lm::support::add;
use crate::operator::factored::Factored;

/// A neuron that may be added.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::learn::lm) enum Kind {
    /// A new neuron.
    Birth(Seedling),
    /// Two halves of this neuron.
    Split(usize),
    /// A neuron of the second layer, of two activations in one of a few ratios.
    Pair(usize, usize, usize),
}

impl<S: Factored> Factors<'_, S> {
    /// The most promising candidates, best first: births from the best atoms, from random gates and
    /// from the outputs of the largest residual, and splits of all neurons. The residual must be
    /// current.
    pub(super) fn list(&mut self, draw: Draw) -> Result<Candidates<Kind>, S::Source> {
        let (d, sizes) = (self.inputs(), self.birth_sizes());
        let mut list = Candidates::new();
        let mut atoms = heapless::Vec::<Candidate<u32>, BATCH>::new();
        for number in 0..2 * d as u32 {
            let gain = self.atom(number, sizes.1)?;
            rank(&mut atoms, Candidate { gain, kind: number });
        }
        let mut outputs = heapless::Vec::<Candidate<u32>, BATCH>::new();
        self.square_residual();
        for (k, &gain) in self.along.iter().enumerate() {
            rank(&mut outputs, Candidate { gain, kind: k as u32 });
        }
        let seed = |k: u32| seed_of(draw.seed, stream::BIRTH, k);
        let atoms = atoms.iter().map(|atom| Seedling::Atom(atom.kind));
        let random = (1..=2 * draw.random).map(|k| Seedling::Random(seed(k)));
        let outputs = outputs.iter().flat_map(|output| [2 * output.kind, 2 * output.kind + 1]);
        let outputs = outputs.map(|number| Seedling::Output(seed(u32::MAX - number), number));
        if self.fit.is_summed() {
            self.list_pairs(&mut list)?;
        }
        for seedling in atoms.chain(random).chain(outputs) {
            let gain = self.birth(seedling, sizes)?;
            rank(&mut list, Candidate { gain, kind: Kind::Birth(seedling) });
        }
        for i in 0..self.blocks() {
            if !self.net.view().w().block(i).is_empty() {
                let gain = self.split(i, self.split_size(), draw.seed)?;
                rank(&mut list, Candidate { gain, kind: Kind::Split(i) });
            }
        }
        Ok(list)
    }

    /// Forms a neuron from the current residual and adds it; false, and no change, if there is no
    /// place for it.
    pub(super) fn add_neuron(&mut self, kind: Kind, draw: Draw) -> Result<bool, S::Source> {
        match kind {
            Kind::Birth(seedling) => {
                if !(self.birth(seedling, self.birth_sizes())? > 0.0) {
                    return Ok(false);
                }
                let Some(to) = self.vacate(None) else { return Ok(false) };
                self.add_formed(to)?;
                Ok(true)
            }
            Kind::Pair(i, j, ratio) => self.add_pair((i, j, ratio)),
            Kind::Split(i) => {
                let d = self.inputs();
                if !(self.split(i, self.split_size(), draw.seed)? > 0.0) {
                    return Ok(false);
                }
                let Some(to) = self.vacate(Some(i)) else { return Ok(false) };
                self.make_room(i, 2 * self.single.entries.index().len())?;
                let halves = self.net.values_of(i).0;
                if halves.is_empty() {
                    return Ok(true);
                }
                halves.iter_mut().for_each(|w| *w *= 0.5);
                // There is room, and `to` is empty.
                self.net.copy(i, to);
                let entries = &mut self.single.entries;
                self.net.edit_w(|w| add(w, entries.index(), entries.value()))?;
                entries.shift(i, to, d);
                entries.scale(-1.0);
                self.net.edit_w(|w| add(w, entries.index(), entries.value()))?;
                Ok(true)
            }
        }
    }

    /// `|R e_k|²` of every output.
    fn square_residual(&mut self) {
        let Self { fit, along, .. } = self;
        along.fill(0.0);
        for r in fit.residual().chunks(fit.outputs().max(1)) {
            along.iter_mut().zip(r).for_each(|(sum, r)| *sum += r * r);
        }
    }

    /// Weights that a new neuron starts with on either side: its share of half of s, as far as
    /// there is room.
    fn birth_sizes(&self) -> (usize, usize) {
        let share = self.task.nnz.div_ceil(2 * self.task.hidden.max(1)).max(2);
        let spare = self.net.room().saturating_sub(self.task.work_size());
        let from = share.min(self.inputs()).min(spare / 2);
        if self.fit.is_summed() {
            return (from, 1);
        }
        (from, share.min(self.outputs()).min(spare - from))
    }

    /// Weights that tell the halves of a split apart: as many, if there is room for them twice.
    fn split_size(&self) -> usize {
        let spare = self.net.room().saturating_sub(self.task.work_size());
        self.birth_sizes().0.min(spare / 2)
    }
}
