//! What a search needs to know of the networks that it searches: how they are fitted, changed and
//! simplified.

use super::fit::Fit;
use super::sides::Sides;
use crate::base::budget::Recovery;
use crate::base::error::Result;
use crate::network::net::Network;
use crate::operator::sensing::Sensing;

/// Candidates that are tried before the best of them is taken.
pub(super) const BATCH: usize = 6;
/// Batches before the search gives up.
const BATCHES: usize = 4;
/// Steps of a fit once the run was ended.
const HURRIED_STEPS: u32 = 2;
/// Steps between two cuts on the way down.
pub(super) const SLIM_STEPS: u32 = 5;
/// Before the last threshold neurons with a cosine above this become one.
const SAME: f32 = 0.9999;

/// What is wanted, and what was done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task {
    /// s, weights of the result.
    pub(super) nnz: usize,
    /// m, neurons of the result.
    pub(super) hidden: usize,
    /// Weights above s while searching, in percent of s.
    pub(super) spare: u32,
    /// Loss at which the fit counts as exact on the rows selected.
    pub(super) goal: f32,
    /// Neurons turned round, neurons merged, linear terms folded.
    pub(super) flips: u32,
    pub(super) merges: u32,
    pub(super) folds: u32,
    /// Whether the run was ended: what is left to do takes few steps.
    pub(super) hurried: bool,
    /// Whether weights are few for the labels: the search covers rows, works at s and swaps weights
    /// there.
    pub(super) tight: bool,
}

impl Task {
    /// Nothing was done yet.
    pub(super) const fn new(nnz: usize, hidden: usize, spare: u32) -> Self {
        Self {
            nnz,
            hidden,
            spare,
            goal: 0.0,
            flips: 0,
            merges: 0,
            folds: 0,
            hurried: false,
            tight: false,
        }
    }

    /// Of so many steps, those that are made.
    pub(super) fn steps(&self, steps: u32) -> u32 {
        if self.hurried { steps.min(HURRIED_STEPS) } else { steps }
    }

    /// Of so many weights too many, those that go at once: a third, rounded up, and all once the
    /// run was ended.
    pub(super) fn share(&self, excess: usize) -> usize {
        if self.hurried { excess } else { excess.div_ceil(3) }
    }

    /// Weights while searching.
    pub(super) fn work_size(&self) -> usize {
        let spare = self.nnz.saturating_mul(self.spare as usize).div_ceil(100);
        Recovery::work_size(self.nnz).min(self.nnz.saturating_add(spare))
    }
}

/// A way to add a neuron. It is formed again where it is needed, so that a list of candidates takes
/// no memory that grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Candidate<M> {
    /// What it could win at once.
    pub(super) gain: f32,
    pub(super) kind: M,
}

/// The most promising candidates, best first.
pub(super) type Candidates<M> = heapless::Vec<Candidate<M>, { BATCH * BATCHES }>;

/// What candidates are drawn from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draw {
    /// Seed of random gates and first directions.
    pub(super) seed: u64,
    /// Births from random gates for either sign.
    pub(super) random: u32,
}

/// What an operation gives, or how reading the data failed.
pub(super) type Outcome<'a, P, T> = Result<T, <<P as Problem<'a>>::Sensing as Sensing>::Source>;

/// A network at hand, its data, and what a search does with it. *Live* neurons are those that have
/// weights.
pub(super) trait Problem<'a> {
    /// The operator.
    type Sensing: Sensing + 'a;
    /// A kind of candidate.
    type Move: Copy;

    fn fit(&self) -> &Fit<'a, Self::Sensing>;
    fn fit_mut(&mut self) -> &mut Fit<'a, Self::Sensing>;
    fn task(&self) -> &Task;
    fn task_mut(&mut self) -> &mut Task;

    /// The network.
    fn view(&self) -> Network<'_>;

    /// Weights that there is room for.
    fn room(&self) -> usize;

    /// Becomes a copy of a network, which must fit.
    fn load(&mut self, from: Network<'_>) -> Outcome<'a, Self, ()>;

    /// Live neurons.
    fn live(&self) -> usize;

    /// Weights that count in s.
    fn counted(&self) -> usize;

    /// The live neuron that contributes least.
    fn weakest_live(&self) -> Option<usize>;

    /// The number of the nth live neuron.
    fn nth_live(&self, nth: usize) -> Option<usize>;

    /// Empties neuron `i`.
    fn remove(&mut self, i: usize);

    /// Takes the scales of the inputs from the rows that are selected.
    fn measure(&mut self) -> Outcome<'a, Self, ()>;

    /// The first weights, s of them at most, from the data and a seed.
    fn start(&mut self, seed: u64) -> Outcome<'a, Self, ()>;

    /// Whether the search relaxes the model by more than weights that count.
    fn is_relaxed(&self) -> bool {
        false
    }

    /// Adds what relaxes the model, where there is such and it is missing.
    fn relax(&mut self) -> Outcome<'a, Self, ()> {
        Ok(())
    }

    /// Loss of the network as it is; the residual is current from then on.
    fn loss(&mut self) -> Outcome<'a, Self, f32>;

    /// At most `steps` steps from the network, whose loss is `loss` and whose residual is current,
    /// until `goal`.
    fn improve(&mut self, loss: f32, steps: u32, goal: f32) -> Outcome<'a, Self, f32>;

    /// Adds up to `count` weights where the gradient asks for them; the residual must be current.
    /// The outputs stay.
    fn grow(&mut self, count: usize) -> Outcome<'a, Self, ()>;

    /// Keeps the `size` counted weights that contribute most.
    fn threshold(&mut self, size: usize) -> Outcome<'a, Self, ()>;

    /// Turns neurons round where that alone lowers the loss, which is `loss`, and fits if any was
    /// turned. The residual must be current. Returns the loss.
    fn flip(&mut self, loss: f32) -> Outcome<'a, Self, f32>;

    /// Turns neurons back whose mirror images, together with neuron `i`, stand for them. Returns
    /// how many; nothing is fitted.
    fn unmirror(&mut self, _i: usize) -> Outcome<'a, Self, u32> {
        Ok(0)
    }

    /// Makes one of two neurons whose cosine is above `least`. Returns how many vanished; nothing
    /// is fitted.
    fn merge(&mut self, least: f32) -> Outcome<'a, Self, u32>;

    /// The most promising candidates at the current network, best first. The residual must be
    /// current.
    fn candidates(&mut self, draw: Draw) -> Outcome<'a, Self, Candidates<Self::Move>>;

    /// Forms a candidate from the current residual and applies it, into an empty neuron or in place
    /// of the weakest one; false, and no change, if there is none to take its place.
    fn apply(&mut self, candidate: &Candidate<Self::Move>, draw: Draw) -> Outcome<'a, Self, bool>;

    /// Brings a network of at most s counted weights to m neurons and to what the model allows;
    /// returns the loss. Both buffers have room for s weights.
    fn conclude(
        &mut self,
        loss: f32,
        _scratch: &mut Sides<'_>,
        _other: &mut Sides<'_>,
    ) -> Outcome<'a, Self, f32> {
        self.narrow(loss)
    }

    /// Turns weights for the scaled labels into those for the labels.
    fn unscale(&self, found: &mut Sides<'_>);

    /// Turns weights for the labels into those for the scaled labels.
    fn rescale(&self, given: &mut Sides<'_>);

    /// Thresholds the network until a copy of neuron `i` and `more` weights fit beside it. A weight
    /// less makes room for at least one, and for two if it is one of the neuron's: the excess is
    /// halved each time.
    fn make_room(&mut self, i: usize, more: usize) -> Outcome<'a, Self, ()> {
        let copied =
            |net: Network<'_>| net.w().block(i).values().len() + net.wt().block(i).values().len();
        while let excess @ 1.. =
            (self.view().nnz() + copied(self.view()) + more).saturating_sub(self.room())
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
    fn refit(&mut self, steps: u32) -> Outcome<'a, Self, f32> {
        self.fit_mut().solver.damp();
        let (loss, goal) = (self.loss()?, self.task().goal);
        self.improve(loss, steps, goal)
    }

    /// Thresholds to `size` weights and fits them with at most `steps` steps.
    #[inline(never)]
    fn cut(&mut self, size: usize, steps: u32) -> Outcome<'a, Self, f32> {
        self.threshold(size)?;
        let loss = self.loss()?;
        self.improve(loss, steps, 0.0)
    }

    /// An outer step: grow by 0.5 s, fit, threshold to `size`, fit.
    #[inline(never)]
    fn outer(&mut self, loss: f32, size: usize) -> Outcome<'a, Self, f32> {
        self.grow(Recovery::growth(self.task().nnz))?;
        self.improve(loss, 2, 0.0)?;
        self.cut(size, 2)
    }

    /// Merges what is the same and goes down to s weights, fitting between the cuts. Each cut takes
    /// a third of the excess, so there are at most `log_1.5(s) + 2`. Calls `report` with the loss
    /// after each; once that returns `false`, or the run was ended before, a cut takes all that is
    /// left.
    #[inline(never)]
    fn thin(
        &mut self,
        mut loss: f32,
        mut report: impl FnMut(&Self, f32) -> bool,
    ) -> Outcome<'a, Self, f32> {
        if self.merge(SAME)? > 0 {
            loss = self.loss()?;
            loss = self.improve(loss, 3, self.task().goal)?;
        }
        while let excess @ 1.. = self.counted().saturating_sub(self.task().nnz) {
            loss = self.cut(self.counted() - self.task().share(excess), SLIM_STEPS)?;
            self.task_mut().hurried |= !report(self, loss);
        }
        Ok(loss)
    }

    /// Empties the weakest neurons, a third of the excess at a time, until m are left, fitting in
    /// between.
    #[inline(never)]
    fn narrow(&mut self, mut loss: f32) -> Outcome<'a, Self, f32> {
        while let excess @ 1.. = self.live().saturating_sub(self.task().hidden) {
            for _ in 0..excess.div_ceil(3) {
                self.weakest_live().into_iter().for_each(|i| self.remove(i));
            }
            loss = self.refit(SLIM_STEPS)?;
        }
        Ok(loss)
    }
}

/// Enters a candidate into a list that is sorted by gain, best first, and drops the last where it
/// is full.
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

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::learn::lm::bench::tests::{D, with};
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
    fn a_search_works_at_up_to_a_quarter_more_weights() {
        let size = |nnz, spare| Task::new(nnz, 3, spare).work_size();
        assert_eq!([0, 10, 25, 26, 1000].map(|spare| size(100, spare)), [100, 110, 125, 125, 125]);
        // Rounded up.
        assert_eq!(
            [(6, 25), (6, 10), (1, 1), (1, 0)].map(|(nnz, spare)| size(nnz, spare)),
            [8, 7, 2, 1]
        );
        assert_eq!(size(usize::MAX, 25), usize::MAX);
    }

    #[test]
    fn a_third_of_the_excess_goes_at_once_and_all_where_the_run_was_ended() {
        let mut task = Task::new(6, 3, 25);
        assert_eq!([1, 2, 3, 4, 9, 10].map(|excess| task.share(excess)), [1, 1, 1, 2, 3, 4]);
        assert_eq!((task.steps(1), task.steps(9)), (1, 9));
        task.hurried = true;
        assert_eq!((task.share(9), task.steps(1), task.steps(9)), (9, 1, 2));
    }

    #[test]
    fn the_way_down_goes_by_thirds_of_what_is_too_much() {
        let net: [(u32, f32); 28] = core::array::from_fn(|j| (j as u32, 1.0 + (j * j % 11) as f32));
        for ended in [false, true] {
            with(Signs::Positive, &PLANTED, &net, |bench| {
                let (mut sizes, loss) = (Vec::new(), bench.loss().unwrap());
                let report = |bench: &_, loss: f32| {
                    sizes.push(Problem::counted(bench));
                    assert!(loss.is_finite());
                    !(ended && sizes.len() == 2)
                };
                bench.thin(loss, report).unwrap();
                assert_eq!(
                    sizes,
                    if ended { &[20, 15, 6][..] } else { &[20, 15, 12, 10, 8, 7, 6] }
                );
                assert_eq!(bench.task.hurried, ended);
            });
        }
    }

    #[test]
    fn before_the_last_cuts_what_is_the_same_becomes_one() {
        // The first neuron in two halves: eight weights for six, and no cut is needed.
        let net =
            [(0, 0.5), (1, -1.0), (2, 0.25), (4, 0.5), (5, -1.0), (6, 0.25), (13, 1.0), (15, 1.0)];
        with(Signs::Positive, &PLANTED, &net, |bench| {
            let loss = bench.loss().unwrap();
            let mut cuts = 0;
            let loss = bench.thin(loss, |_, _| {
                cuts += 1;
                true
            });
            assert!(loss.unwrap() < 1e-12 && cuts == 0 && bench.counted() == 5);
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
        with(Signs::Positive, &planted, &net, |bench| {
            let loss = bench.loss().unwrap();
            let narrowed = bench.narrow(loss).unwrap();
            assert!(bench.neurons().map(|block| block.neuron()).eq([1, 3, 6]));
            assert!(narrowed < 1e-11 && loss > narrowed, "{narrowed}");
            assert_eq!(bench.narrow(narrowed).unwrap(), narrowed);
        });
    }

    #[test]
    fn an_outer_step_adds_half_of_s_and_ends_at_its_size() {
        with(Signs::Positive, &PLANTED, &[(4, 1.0), (5, -1.5), (12, 0.3), (13, 1.0)], |bench| {
            let loss = bench.loss().unwrap();
            let after = bench.outer(loss, 5).unwrap();
            assert!(after < 0.1 * loss && bench.counted() == 5, "{after} {loss}");
            assert_eq!(bench.loss().unwrap(), after);
            bench.outer(after, 99).unwrap();
            assert_eq!(bench.counted(), 8);
        });
    }

    #[test]
    fn after_an_edit_a_fit_starts_with_the_damping_of_a_start() {
        with(Signs::Positive, &PLANTED, &[(4, 1.0), (5, -1.5), (13, 1.0)], |bench| {
            bench.fit.solver.set_lambda(1e-6);
            bench.refit(0).unwrap();
            assert_eq!(bench.fit.solver.lambda(), 1e-2);
            // A cut leaves it, and makes no more steps than it may.
            bench.fit.solver.set_lambda(1e-6);
            let read = bench.fit.rows_read;
            bench.cut(2, 0).unwrap();
            assert_eq!((bench.fit.solver.lambda(), bench.counted()), (1e-6, 2));
            // The norms of the columns and the loss.
            assert_eq!(bench.fit.rows_read - read, 2 * bench.fit.rows() as u64);
        });
    }

    #[test]
    fn room_is_made_for_a_copy_of_a_neuron_and_some_weights_more() {
        let net: [(u32, f32); 28] = core::array::from_fn(|j| (j as u32, 1.0 + (j % 5) as f32));
        for more in [0, 32, 33, 34, 40, 55, 64] {
            with(Signs::Positive, &PLANTED, &net, |bench| {
                // Room is for 64 weights.
                bench.make_room(2, more).unwrap();
                let copied = bench.net.view().block(2).values().len();
                let needed = bench.net.nnz() + copied + more;
                assert!(needed <= 64, "{more}: {needed}");
                // No more goes than must: a weight less makes room for one or two.
                assert!(more < 33 || needed >= 63 || bench.net.nnz() == 0, "{more}: {needed}");
                assert!(more > 32 || bench.net.nnz() == 28);
            });
        }
        with(Signs::Positive, &PLANTED, &net, |bench| {
            bench.make_room(2, 1000).unwrap();
            assert_eq!(bench.net.nnz(), 0);
        });
    }
}
