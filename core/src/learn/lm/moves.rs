//! What a search does with a network of any kind: local search moves, outer steps, and the way down
//! to s weights and m neurons.

use super::fit::Readout;
use super::model::{Model, Moves, Support};
use super::neuron::{BATCH, Candidate, Candidates, Draw, Move, Origin, rank};
use super::sides::Sides;
use crate::base::budget::Recovery;
use crate::base::error::Result;
use crate::base::rng::{seed_of, stream};
use crate::network::net::Network;
use crate::operator::sensing::Sensing;

/// Steps between two cuts on the way down.
pub(super) const SLIM_STEPS: u32 = 5;
/// A loss so many times as large is as good where weights were lost.
pub(super) const AS_GOOD: f32 = 1.1;
/// Neurons with a cosine above this are the same.
pub(super) const SAME: f32 = 0.9999;

impl<S: Sensing, H: Readout<S>> Model<'_, S, H>
where
    Self: Moves<S>,
{
    pub(super) fn live(&self) -> usize {
        self.neurons().count() + self.second_live()
    }

    /// The number of the nth live neuron; those of the second layer follow the p of the first.
    pub(super) fn nth_live(&self, nth: usize) -> Option<usize> {
        let first = self.neurons().nth(nth).map(|block| block.neuron());
        first.or_else(|| {
            let k = self.nth_second(nth.saturating_sub(self.neurons().count()))?;
            Some(self.blocks() + k)
        })
    }

    /// Empties neuron `i`, numbered as by [`Self::nth_live`].
    pub(super) fn remove(&mut self, i: usize) {
        match i.checked_sub(self.blocks()) {
            None => self.net.remove(i),
            Some(k) => self.remove_second(k),
        }
    }

    /// What residuals say of outputs that may be above labels.
    pub(super) fn without_slack<T>(
        &mut self,
        of: impl FnOnce(&mut Self) -> Result<T, S::Source>,
    ) -> Result<T, S::Source> {
        let slack = core::mem::take(&mut self.fit.slack);
        let done = of(self);
        // Before a stop, too, after which the run goes on.
        self.fit.slack = slack;
        done
    }

    /// Scales the weights to those of least squared error along them.
    pub(super) fn fit_scale(&mut self) -> Result<(), S::Source> {
        let factor = self.without_slack(|model| model.loss().and_then(|_| model.fit.factor()))?;
        if factor.is_finite() && factor > 0.0 {
            self.net.last_values().iter_mut().for_each(|w| *w *= factor);
        }
        Ok(())
    }

    /// Merges neurons whose cosine is above `least`. Returns how many vanished; nothing is fitted.
    #[inline(never)]
    pub(super) fn merge(&mut self, least: f32) -> Result<u32, S::Source> {
        let mut merged = 0;
        for i in self.first()..self.blocks() {
            for j in i + 1..self.blocks() {
                if self.is_vacant(i) {
                    break;
                }
                if !self.is_vacant(j) && self.merge_two(i, j, least)? {
                    merged += 1;
                }
            }
        }
        self.task.info.merges = self.task.info.merges.saturating_add(merged);
        Ok(merged + self.merge_second(least)?)
    }

    /// The most promising moves, best first: new neurons from the best atoms, from random gates and
    /// from the outputs of the largest residual, for every sign, and splits. The residual must be
    /// current.
    pub(super) fn candidates(&mut self, draw: Draw) -> Result<Candidates, S::Source> {
        let seed = |k: u32| seed_of(draw.seed, stream::NEURON, k);
        let signs = if self.fit.signs.both() { 2 } else { 1 };
        let mut list = Candidates::new();
        self.list_pairs(&mut list)?;
        for sign in [1.0, -1.0].into_iter().take(signs) {
            let Some(i) = self.of_sign(sign) else { continue };
            let mut atoms = heapless::Vec::<Candidate<u32>, BATCH>::new();
            for number in 0..2 * self.inputs() as u32 {
                let gain = self.atom_gain(number, i)?;
                rank(&mut atoms, Candidate { gain, kind: number });
            }
            let outputs = self.rank_outputs();
            let outputs = outputs.iter().flat_map(|output| [2 * output.kind, 2 * output.kind + 1]);
            let origins = atoms.iter().map(|atom| Origin::Atom(atom.kind));
            let origins = origins
                .chain((1..=Self::RANDOM * draw.random).map(|k| Origin::Random(seed(k))))
                .chain(outputs.map(|number| Origin::Output(seed(u32::MAX - number), number)));
            for origin in origins {
                let gain = self.form(origin, i)?;
                rank(&mut list, Candidate { gain, kind: Move::Add(origin, sign) });
            }
        }
        for i in self.first()..self.blocks() {
            if !self.is_vacant(i) {
                let gain = self.form_halves(i, draw.seed)?;
                rank(&mut list, Candidate { gain, kind: Move::Split(i) });
            }
        }
        Ok(list)
    }

    /// Forms the neuron of a move from the current residual and adds it, in place of the weakest one
    /// if all are live; false, and no change, if it cannot be.
    pub(super) fn apply(&mut self, kind: Move, draw: Draw) -> Result<bool, S::Source> {
        let (i, sign, split, gain) = match kind {
            Move::Pair(pair) => return self.add_pair(pair),
            Move::Add(origin, sign) => {
                let Some(i) = self.of_sign(sign) else { return Ok(false) };
                (i, sign, None, self.form(origin, i)?)
            }
            Move::Split(i) if self.is_vacant(i) => return Ok(false),
            Move::Split(i) => (i, self.fit.signs.sign(i), Some(i), self.form_halves(i, draw.seed)?),
        };
        if Self::GAINS && !(gain > 0.0) {
            return Ok(false);
        }
        let Some(to) = self.vacate(sign, split) else { return Ok(false) };
        if split.is_none() {
            self.add_formed(i, to)?;
            return Ok(true);
        }
        self.make_room(i, 2 * self.single.entries.index().len())?;
        if Self::GAINS && self.is_vacant(i) {
            return Ok(true);
        }
        // There is room, and `to` is empty.
        self.net.copy(i, to);
        let share = self.single.share;
        for (half, share) in [(i, share), (to, 1.0 - share)] {
            self.net.values_of(half).0.iter_mut().for_each(|w| *w *= share);
        }
        self.add_single(1.0)?;
        self.single.entries.shift(i, to);
        self.add_single(-1.0)?;
        Ok(true)
    }

    /// The better one of two ways to conclude, each from the network at hand, and its loss; the
    /// second is tried only where the first is not exact, and may not exist.
    pub(super) fn better_of(
        &mut self,
        [scratch, other]: [&mut Sides<'_>; 2],
        first: impl FnOnce(&mut Self) -> Result<f32, S::Source>,
        second: impl FnOnce(&mut Self) -> Result<Option<f32>, S::Source>,
    ) -> Result<f32, S::Source> {
        scratch.store(self.view())?;
        let loss = first(self)?;
        if loss <= self.task.goal {
            return Ok(loss);
        }
        other.store(self.view())?;
        self.load(scratch.view())?;
        if let Some(better) = second(self)?.filter(|second| *second < loss) {
            return Ok(better);
        }
        self.load(other.view())?;
        self.loss()
    }

    /// Thresholds the network until a copy of neuron `i` and `more` weights fit beside it. A weight
    /// less makes room for one or two: the excess is halved each time.
    pub(super) fn make_room(&mut self, i: usize, more: usize) -> Result<(), S::Source> {
        let copied =
            |net: Network<'_>| net.w().block(i).values().len() + net.wt().block(i).values().len();
        while let excess @ 1.. =
            (self.view().nnz() + copied(self.view()) + more).saturating_sub(self.net.room())
        {
            let size = self.counted().saturating_sub(excess.div_ceil(2));
            self.threshold(size)?;
            if size == 0 {
                break;
            }
        }
        Ok(())
    }

    /// After an edit that the equations do not see: damps, and fits with at most `steps` steps.
    #[inline(never)]
    pub(super) fn refit(&mut self, steps: u32) -> Result<f32, S::Source> {
        self.solver.damp();
        let (loss, goal) = (self.loss()?, self.task.goal);
        self.improve(loss, steps, goal)
    }

    /// Thresholds to `size` weights and fits them with at most `steps` steps until `goal`.
    #[inline(never)]
    pub(super) fn cut(&mut self, size: usize, steps: u32, goal: f32) -> Result<f32, S::Source> {
        self.threshold(size)?;
        let loss = self.loss()?;
        self.improve(loss, steps, goal)
    }

    /// An outer step: grow by 0.5 s, fit, threshold to `size`, fit.
    #[inline(never)]
    pub(super) fn outer(&mut self, loss: f32, size: usize) -> Result<f32, S::Source> {
        self.grow(Recovery::growth(self.task.nnz))?;
        self.improve(loss, 2, 0.0)?;
        self.cut(size, 2, 0.0)
    }

    /// Merges what is the same, unless the fit is exact, and goes down to s weights, a third of the
    /// excess at a time, fitting in between. Calls `report` with the loss after each cut; once that
    /// returns `false`, a cut takes all that is left.
    #[inline(never)]
    pub(super) fn thin(
        &mut self,
        mut loss: f32,
        mut report: impl FnMut(&mut Self, f32) -> bool,
    ) -> Result<f32, S::Source> {
        // Of an exact fit what is the same is one already, and what is nearly so is not.
        if !(loss <= self.task.goal) && self.merge(SAME)? > 0 {
            loss = self.loss()?;
            loss = self.improve(loss, 3, self.task.goal)?;
        }
        // One that is found is as good with fewer weights where it is as exact as it can be.
        let mut enough = 0.0;
        if self.task.is_found(loss) {
            loss = self.improve(loss, SLIM_STEPS, 0.0)?;
            enough = AS_GOOD * loss;
        }
        while let excess @ 1.. = self.counted().saturating_sub(self.task.nnz) {
            loss = self.cut(self.counted() - self.task.share(excess), SLIM_STEPS, enough)?;
            self.task.hurried |= !report(self, loss);
        }
        Ok(loss)
    }

    /// Goes down to m neurons, a third of the excess at a time: those first that are least missed, of many
    /// the weakest.
    #[inline(never)]
    pub(super) fn narrow(&mut self, mut loss: f32) -> Result<f32, S::Source> {
        while let excess @ 1.. = self.live().saturating_sub(self.task.hidden) {
            for _ in 0..excess.div_ceil(3) {
                let least = self.least_missed()?.or_else(|| self.weakest(|_| true));
                least.into_iter().for_each(|i| self.remove(i));
            }
            loss = self.refit(SLIM_STEPS)?;
        }
        Ok(loss)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::data::samples::FnRows;
    use crate::learn::lm::model::Task;
    use crate::learn::lm::signed::tests::{D, N, with, with_rows};
    use crate::network::gates::Signs;
    use std::vec::Vec;

    const FIRST: [f32; D] = [1.0, -2.0, 0.5, 0.0];
    const SECOND: [f32; D] = [0.0, 1.0, 0.0, 1.0];
    const PLANTED: [(f32, [f32; D]); 2] = [(1.0, FIRST), (1.0, SECOND)];

    #[test]
    fn a_list_holds_the_best_candidates_best_first() {
        let mut list = heapless::Vec::<Candidate<()>, 3>::new();
        for gain in [2.0, 0.0, 5.0, f32::NAN, 1.0, 0.5, 3.0, 5.0] {
            rank(&mut list, Candidate { gain, kind: () });
        }
        assert!(list.iter().map(|entry| entry.gain).eq([5.0, 5.0, 3.0]));
    }

    #[test]
    fn search_exceeds_budget_by_at_most_a_quarter() {
        let size = |nnz, spare| Task { nnz, hidden: 3, spare, ..Task::default() }.work_size();
        assert_eq!([0, 10, 25, 26, 1000].map(|spare| size(100, spare)), [100, 110, 125, 125, 125]);
        // Rounded up.
        assert_eq!(
            [(6, 25), (6, 10), (1, 1), (1, 0)].map(|(nnz, spare)| size(nnz, spare)),
            [8, 7, 2, 1]
        );
        assert_eq!(size(usize::MAX, 25), usize::MAX);
    }

    #[test]
    fn cut_removes_third_of_excess_all_when_stopped() {
        let mut task = Task { nnz: 6, hidden: 3, spare: 25, ..Task::default() };
        assert_eq!([1, 2, 3, 4, 9, 10].map(|excess| task.share(excess)), [1, 1, 1, 2, 3, 4]);
        assert_eq!((task.steps(1), task.steps(9)), (1, 9));
        task.hurried = true;
        assert_eq!((task.share(9), task.steps(1), task.steps(9)), (9, 1, 2));
    }

    #[test]
    fn shrinking_removes_a_third_of_excess_each_time() {
        let net: [(u32, f32); 28] = core::array::from_fn(|j| (j as u32, 1.0 + (j * j % 11) as f32));
        for ended in [false, true] {
            with(Signs::Positive, &PLANTED, &net, |model| {
                let (mut sizes, loss) = (Vec::new(), model.loss().unwrap());
                let report = |model: &mut _, loss: f32| {
                    sizes.push(Support::counted(model));
                    assert!(loss.is_finite());
                    !(ended && sizes.len() == 2)
                };
                model.thin(loss, report).unwrap();
                assert_eq!(
                    sizes,
                    if ended { &[20, 15, 6][..] } else { &[20, 15, 12, 10, 8, 7, 6] }
                );
                assert_eq!(model.task.hurried, ended);
            });
        }
    }

    #[test]
    fn found_network_loses_weights_without_steps_where_it_stays_as_exact() {
        // Steps before the first cut, but none after the others. A third neuron stays out of reach.
        let planted = [PLANTED[0], PLANTED[1], (1.0, [0.0, 0.0, -1e-3, 1e-3])];
        let net = [0, 1, 2, 3].map(|j| (j + 16, 0.0));
        let net = [&[(4, 1.01), (5, -2.0), (6, 0.5), (13, 1.0), (15, 1.0)], &net[..]].concat();
        let [found, other] = [1e4, 10.0].map(|goal| {
            let mut read = 0;
            with(Signs::Positive, &planted, &net, |model| {
                let loss = model.loss().unwrap();
                (model.task.nnz, model.task.goal) = (5, goal * loss);
                let before = model.fit.rows_read;
                let thin = model.thin(loss, |_, _| true).unwrap();
                assert_eq!(model.view().w().index(), [4, 5, 6, 13, 15]);
                assert!(thin < 0.1 * loss);
                read = model.fit.rows_read - before;
            });
            read
        });
        assert!(found < other, "{found} {other}");
    }

    #[test]
    fn duplicates_merge_before_the_last_cuts() {
        // The first neuron in two halves: eight weights for six, and no cut is needed.
        let net =
            [(0, 0.5), (1, -1.0), (2, 0.25), (4, 0.5), (5, -1.0), (6, 0.25), (13, 1.0), (15, 1.0)];
        with(Signs::Positive, &PLANTED, &net, |model| {
            let loss = model.loss().unwrap();
            let mut cuts = 0;
            model.task.goal = -1.0;
            let loss = model.thin(loss, |_, _| {
                cuts += 1;
                true
            });
            assert!(loss.unwrap() < 1e-12 && cuts == 0 && model.counted() == 5);
        });
    }

    #[test]
    fn the_weakest_neurons_go_until_m_are_left() {
        // Neurons 1, 3 and 6 make the labels, and the others are nothing beside them.
        let third = [0.0, 0.0, 1.0, -1.0];
        let planted = [PLANTED[0], PLANTED[1], (1.0, third)];
        let net = [
            (0, 1e-3),
            (4, 1.0),
            (5, -2.0),
            (6, 0.5),
            (9, 2e-3),
            (13, 1.0),
            (15, 1.0),
            (16, 3e-3),
            (23, 1e-3),
            (26, 1.0),
            (27, -1.0),
        ];
        with(Signs::Positive, &planted, &net, |model| {
            let loss = model.loss().unwrap();
            let narrowed = model.narrow(loss).unwrap();
            assert!(model.neurons().map(|block| block.neuron()).eq([1, 3, 6]));
            assert!(narrowed < 1e-11 && loss > narrowed, "{narrowed}");
            assert_eq!(model.narrow(narrowed).unwrap(), narrowed);
        });
    }

    #[test]
    fn a_large_neuron_that_is_active_nowhere_is_not_missed() {
        let rows = |row: usize, x: &mut [f32]| {
            let parts = [7, 5, 3].map(|step| ((row * step) % 11) as f32 - 5.0);
            x.copy_from_slice(&[parts[0], parts[1], parts[2], 1.0]);
            Ok::<_, core::convert::Infallible>(())
        };
        let small = [0.1, 0.2, 0.0, 0.0];
        let net = [(3, -5.0), (4, 0.1), (5, 0.2)];
        with_rows(FnRows::new(N, D, rows), Signs::Positive, &[(1.0, small)], &net, |model| {
            model.task.hidden = 1;
            assert_eq!(model.weakest(|_| true), Some(1));
            let loss = model.loss().unwrap();
            let narrowed = model.narrow(loss).unwrap();
            assert!(narrowed < 1e-11, "{narrowed}");
            assert!(model.neurons().map(|block| block.neuron()).eq([1]));
        });
    }

    #[test]
    fn of_two_neurons_below_a_ceiling_the_other_one_is_not_missed() {
        // Neuron 1 makes outputs of twice the labels, which is no error; neuron 0 adds to it on all rows,
        // and is the larger one. Without a ceiling it would be missed less.
        let rows = |row: usize, x: &mut [f32]| {
            x.copy_from_slice(&[(row % 2) as f32, 1.0, 0.0, 0.0]);
            Ok::<_, core::convert::Infallible>(())
        };
        let net = [(1, 0.3), (4, 2.0)];
        for (slack, left) in [(2.0, 1), (0.0, 0)] {
            with_rows(
                FnRows::new(N, D, rows),
                Signs::Positive,
                &[(1.0, [1.0, 0.0, 0.0, 0.0])],
                &net,
                |model| {
                    model.fit.slack = slack * model.fit.scale;
                    assert_eq!(model.least_missed().unwrap(), Some(1 - left));
                    assert_eq!(model.fit.slack, slack * model.fit.scale);
                },
            );
        }
    }

    #[test]
    fn outer_step_adds_half_s_up_to_limit() {
        with(Signs::Positive, &PLANTED, &[(4, 1.0), (5, -1.5), (12, 0.3), (13, 1.0)], |model| {
            let loss = model.loss().unwrap();
            let after = model.outer(loss, 5).unwrap();
            assert!(after < 0.1 * loss && model.counted() == 5, "{after} {loss}");
            assert_eq!(model.loss().unwrap(), after);
            model.outer(after, 99).unwrap();
            assert_eq!(model.counted(), 8);
        });
    }

    #[test]
    fn edit_resets_damping_but_cut_does_not() {
        with(Signs::Positive, &PLANTED, &[(4, 1.0), (5, -1.5), (13, 1.0)], |model| {
            model.solver.lambda = 1e-6;
            model.refit(0).unwrap();
            assert_eq!(model.solver.lambda, 1e-2);
            // A cut leaves it, and makes no more steps than it may.
            model.solver.lambda = 1e-6;
            let read = model.fit.rows_read;
            model.cut(2, 0, 0.0).unwrap();
            assert_eq!((model.solver.lambda, model.counted()), (1e-6, 2));
            // The norms of the columns and the loss.
            assert_eq!(model.fit.rows_read - read, 2 * model.fit.rows() as u64);
        });
    }

    #[test]
    fn room_is_made_for_neuron_copy_and_growth() {
        let net: [(u32, f32); 28] = core::array::from_fn(|j| (j as u32, 1.0 + (j % 5) as f32));
        for more in [0, 32, 33, 34, 40, 55, 64] {
            with(Signs::Positive, &PLANTED, &net, |model| {
                // Room is for 64 weights.
                model.make_room(2, more).unwrap();
                let copied = model.net.view().w().block(2).values().len();
                let needed = model.net.nnz() + copied + more;
                assert!(needed <= 64, "{more}: {needed}");
                // No more goes than must: a weight less makes room for one or two.
                assert!(more < 33 || needed >= 63 || model.net.nnz() == 0, "{more}: {needed}");
                assert!(more > 32 || model.net.nnz() == 28);
            });
        }
        with(Signs::Positive, &PLANTED, &net, |model| {
            model.make_room(2, 1000).unwrap();
            assert_eq!(model.net.nnz(), 0);
        });
    }
}
