//! Moves out of a stall: candidates for a new neuron, and how one is tried out.

use super::bench::Bench;
use super::neuron::Seedling;
use super::problem::{BATCH, Candidate, Candidates, Draw, Problem, rank};
use crate::base::error::Result;
use crate::base::rng::{seed_of, stream};
use crate::operator::sensing::Sensing;

/// A neuron that may be added.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// A new neuron of this output sign.
    Birth(Seedling, f32),
    /// Two halves of this neuron.
    Split(usize),
}

impl<S: Sensing> Bench<'_, S> {
    /// The most promising candidates at the current network, best first: births from the best atoms
    /// and from random gates for every sign, and splits of all neurons. The residual must be
    /// current.
    pub(super) fn list(&mut self, draw: Draw) -> Result<Candidates<Kind>, S::Source> {
        let (d, k, half) = (self.inputs(), self.birth_size(), self.split_size());
        let signs = if self.fit.signs.both() { 2 } else { 1 };
        let measured = [1.0, -1.0].map(|sign| (sign, self.of_sign(sign))).into_iter().take(signs);
        let neurons = self.first()..self.blocks();
        let Self { fit, single, columns, .. } = self;
        let scales = columns.scales();
        let mut list = Candidates::new();
        for (sign, i) in measured {
            let Some(i) = i else { continue };
            let mut atoms = heapless::Vec::<Candidate<Kind>, BATCH>::new();
            for number in 0..2 * d as u32 {
                let gain = single.atom(fit, d, (number, i))?;
                rank(
                    &mut atoms,
                    Candidate { gain, kind: Kind::Birth(Seedling::Atom(number), sign) },
                );
            }
            let random =
                (1..=draw.random).map(|k| Seedling::Random(seed_of(draw.seed, stream::BIRTH, k)));
            let atoms = atoms.iter().map(|atom| atom.kind);
            for kind in atoms.chain(random.map(|seedling| Kind::Birth(seedling, sign))) {
                let Kind::Birth(seedling, _) = kind else { continue };
                let gain = single.birth(fit, scales, seedling, (i, k))?;
                rank(&mut list, Candidate { gain, kind });
            }
        }
        for i in neurons {
            let block = self.net.view().block(i);
            if !block.is_empty() {
                let gain = single.split(fit, scales, (block, half), (draw.seed, None))?;
                rank(&mut list, Candidate { gain, kind: Kind::Split(i) });
            }
        }
        Ok(list)
    }

    /// Forms a neuron from the current residual and adds it; false, and no change, if there is no
    /// place for it.
    pub(super) fn add_neuron(&mut self, kind: Kind, draw: Draw) -> Result<bool, S::Source> {
        let d = self.inputs();
        match kind {
            Kind::Birth(seedling, sign) => {
                let Some(i) = self.of_sign(sign) else { return Ok(false) };
                let k = self.birth_size();
                self.single.birth(&mut self.fit, self.columns.scales(), seedling, (i, k))?;
                let Some(to) = self.vacate(sign, None) else { return Ok(false) };
                self.single.entries.shift(i, to, d);
                // As long as the residual asks for: the least-squares factor comes with the next
                // steps.
                self.add_single(1.0)?;
                Ok(true)
            }
            Kind::Split(i) => {
                let (block, k) = (self.net.view().block(i), self.split_size());
                if block.is_empty() {
                    return Ok(false);
                }
                self.single.split(
                    &mut self.fit,
                    self.columns.scales(),
                    (block, k),
                    (draw.seed, None),
                )?;
                let Some(to) = self.vacate(self.fit.signs.sign(i), Some(i)) else {
                    return Ok(false);
                };
                self.make_room(i, 2 * self.single.entries.index().len())?;
                let range = self.net.range(i);
                self.net
                    .values()
                    .get_mut(range)
                    .unwrap_or_default()
                    .iter_mut()
                    .for_each(|v| *v *= 0.5);
                // There is room, and `to` is empty.
                self.net.copy(i, to);
                self.add_single(1.0)?;
                self.single.entries.shift(i, to, d);
                self.add_single(-1.0)?;
                Ok(true)
            }
        }
    }

    /// Any neuron of this sign, to measure births with.
    fn of_sign(&self, sign: f32) -> Option<usize> {
        (self.first()..self.blocks()).find(|&i| self.fit.signs.sign(i) == sign)
    }

    /// Weights that a new neuron starts with: its share of s, as far as there is room.
    fn birth_size(&self) -> usize {
        let share = self.task.nnz.div_ceil(self.task.hidden.max(1)).max(2);
        share.min(self.inputs()).min(self.spare_room())
    }

    /// Weights that tell the halves of a split apart: as many, if there is room for them twice.
    fn split_size(&self) -> usize {
        self.birth_size().min(self.spare_room() / 2)
    }
}

#[cfg(test)]
mod tests;
