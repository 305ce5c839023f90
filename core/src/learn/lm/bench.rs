//! A network of one output whose output weights are signs, with all that rules and moves need to
//! change and to fit it.

use super::fit::Fit;
use super::moves::Kind;
use super::neuron::Single;
use super::problem::{Candidate, Candidates, Draw, Problem, Task};
use super::sides::Sides;
use super::support::{Columns, add, store, threshold};
use crate::base::error::{Error, Result};
use crate::network::net::Network;
use crate::network::weights::{Block, Editable, Weights};
use crate::operator::sensing::{Sensing, head_mut};

/// A network, its data, and buffers. Block 0 may be the linear term; what is said of neurons
/// excludes it.
pub(super) struct Bench<'a, S: Sensing> {
    pub(super) fit: Fit<'a, S>,
    pub(super) net: Editable<'a>,
    pub(super) columns: Columns<'a>,
    pub(super) single: Single<'a, S>,
    pub(super) task: Task,
}

impl<'a, S: Sensing> Problem<'a> for Bench<'a, S> {
    type Sensing = S;
    type Move = Kind;

    fn fit(&self) -> &Fit<'a, S> {
        &self.fit
    }

    fn fit_mut(&mut self) -> &mut Fit<'a, S> {
        &mut self.fit
    }

    fn task(&self) -> &Task {
        &self.task
    }

    fn task_mut(&mut self) -> &mut Task {
        &mut self.task
    }

    fn view(&self) -> Network<'_> {
        Network::signed(self.net.view(), self.fit.signs)
    }

    fn room(&self) -> usize {
        self.net.room()
    }

    fn load(&mut self, from: Network<'_>) -> Result<(), S::Source> {
        store(&mut self.net, from.w())
    }

    fn live(&self) -> usize {
        self.neurons().count()
    }

    fn counted(&self) -> usize {
        self.net.nnz() - self.linear()
    }

    fn weakest_live(&self) -> Option<usize> {
        self.weakest(|_| true)
    }

    fn nth_live(&self, nth: usize) -> Option<usize> {
        self.neurons().nth(nth).map(|block| block.neuron())
    }

    fn remove(&mut self, i: usize) {
        self.net.remove(i);
    }

    fn measure(&mut self) -> Result<(), S::Source> {
        self.columns.measure(&mut self.fit)
    }

    fn start(&mut self, seed: u64) -> Result<(), S::Source> {
        self.columns.start(&mut self.fit, &mut self.net, self.task.nnz, seed)
    }

    fn is_relaxed(&self) -> bool {
        self.fit.signs.linear(0)
    }

    fn relax(&mut self) -> Result<(), S::Source> {
        self.add_linear()
    }

    fn loss(&mut self) -> Result<f32, S::Source> {
        self.fit.loss(self.net.view())
    }

    fn improve(&mut self, loss: f32, steps: u32, goal: f32) -> Result<f32, S::Source> {
        self.fit.improve(&mut self.net, loss, self.task.steps(steps), goal)
    }

    fn grow(&mut self, count: usize) -> Result<(), S::Source> {
        self.columns.grow(&mut self.fit, &mut self.net, count)
    }

    fn threshold(&mut self, size: usize) -> Result<(), S::Source> {
        let free = if self.first() > 0 { self.inputs() } else { 0 };
        self.fit.column_norms_of(self.net.view())?;
        let vectors = self.fit.solver.free();
        threshold(&mut self.net, (&*vectors.diagonal, &mut *vectors.p), (free, size))
            .map_err(Error::widen)
    }

    fn flip(&mut self, loss: f32) -> Result<f32, S::Source> {
        self.turn_round(loss)
    }

    fn unmirror(&mut self, i: usize) -> Result<u32, S::Source> {
        self.turn_mirrored(i)
    }

    fn merge(&mut self, least: f32) -> Result<u32, S::Source> {
        self.join(least)
    }

    fn candidates(&mut self, draw: Draw) -> Result<Candidates<Kind>, S::Source> {
        self.list(draw)
    }

    fn apply(&mut self, candidate: &Candidate<Kind>, draw: Draw) -> Result<bool, S::Source> {
        self.add_neuron(candidate.kind, draw)
    }

    fn conclude(
        &mut self,
        loss: f32,
        scratch: &mut Sides<'_>,
        other: &mut Sides<'_>,
    ) -> Result<f32, S::Source> {
        if self.linear() > 0 { self.fold(scratch, other) } else { self.narrow(loss) }
    }

    fn unscale(&self, found: &mut Sides<'_>) {
        self.fit.unscale(found.values().0);
    }

    fn rescale(&self, given: &mut Sides<'_>) {
        self.fit.rescale(given.values().0);
    }
}

impl<S: Sensing> Bench<'_, S> {
    /// d.
    pub(super) fn inputs(&self) -> usize {
        self.columns.scales().len()
    }

    /// p, blocks: neurons that there is room for, and the linear term.
    pub(super) fn blocks(&self) -> usize {
        self.fit.sensing.blocks()
    }

    /// The number of the first neuron.
    pub(super) fn first(&self) -> usize {
        usize::from(self.fit.signs.linear(0))
    }

    /// The neurons that have weights.
    pub(super) fn neurons(&self) -> impl Iterator<Item = Block<'_>> {
        neurons(self.net.view(), self.first())
    }

    /// Weights of the linear term: they do not count in s.
    pub(super) fn linear(&self) -> usize {
        if self.first() > 0 { self.net.range(0).len() } else { 0 }
    }

    /// Weights that there is room for beyond the work size and the linear term.
    pub(super) fn spare_room(&self) -> usize {
        self.net.room().saturating_sub(self.task.work_size() + self.first() * self.inputs())
    }

    /// Adds the entries of the single neuron, times `sign`, which is 1 or -1.
    pub(super) fn add_single(&mut self, sign: f32) -> Result<(), S::Source> {
        self.single.entries.scale(sign);
        let added = add(&mut self.net, self.single.entries.index(), self.single.entries.value());
        self.single.entries.scale(sign);
        added
    }

    /// Adds to the linear term in block 0, where signs are free, the inputs that it lacks: all that
    /// have a scale.
    pub(super) fn add_linear(&mut self) -> Result<(), S::Source> {
        if self.first() == 0 {
            return Ok(());
        }
        let (value, index) = self.fit.spare();
        let mut count = 0;
        {
            let mut old = self.net.view().block(0).entries().map(|(j, _)| j).peekable();
            let lacking = self.columns.scales().iter().enumerate();
            let lacking = lacking.filter(|(j, c)| old.next_if_eq(j).is_none() && **c > 0.0);
            for ((j, _), slot) in lacking.zip(&mut *index) {
                *slot = j as u32;
                count += 1;
            }
        }
        let value = head_mut(value, count)?;
        value.fill(0.0);
        add(&mut self.net, head_mut(index, count)?, value)
    }

    /// The first neuron without weights whose output has this sign.
    pub(super) fn vacant(&self, sign: f32) -> Option<usize> {
        let mut live = self.neurons().map(|block| block.neuron()).peekable();
        (self.first()..self.blocks())
            .find(|&i| live.next_if_eq(&i).is_none() && self.fit.signs.sign(i) == sign)
    }

    /// The neuron that contributes least to the output, of those that `which` holds for.
    #[inline(never)]
    pub(super) fn weakest(&self, which: impl Fn(usize) -> bool) -> Option<usize> {
        let strength = |block: Block<'_>| {
            scaled(block, self.columns.scales()).map(|(_, x)| x * x).sum::<f32>()
        };
        let candidates = self.neurons().filter(|block| which(block.neuron()));
        let weakest =
            candidates.map(|b| (strength(b), b.neuron())).min_by(|a, b| a.0.total_cmp(&b.0));
        weakest.map(|(_, i)| i)
    }

    /// A neuron of this sign without weights, the weakest one being emptied if there is none; never
    /// `but`.
    pub(super) fn vacate(&mut self, sign: f32, but: Option<usize>) -> Option<usize> {
        self.vacant(sign).or_else(|| {
            let weakest = self.weakest(|i| Some(i) != but && self.fit.signs.sign(i) == sign)?;
            self.net.remove(weakest);
            Some(weakest)
        })
    }
}

/// The blocks from number `first` on that have weights.
pub(super) fn neurons(w: Weights<'_>, first: usize) -> impl Iterator<Item = Block<'_>> {
    w.blocks().filter(move |block| block.neuron() >= first)
}

/// (input, `w c`) of every weight of a block.
pub(super) fn scaled<'w>(
    block: Block<'w>,
    scales: &'w [f32],
) -> impl Iterator<Item = (usize, f32)> {
    block.entries().map(|(j, w)| (j, w * scales.get(j).copied().unwrap_or(0.0)))
}

#[cfg(test)]
pub(super) mod tests {
    extern crate std;
    use super::*;
    use crate::data::samples::{FnRows, NormalRows, Samples};
    use crate::learn::lm::Params;
    use crate::learn::lm::neuron::Entries;
    use crate::learn::lm::solver::Vectors;
    use crate::network::gates::Signs;
    use crate::operator::gated::Gated;
    use core::convert::Infallible;
    use std::{vec, vec::Vec};

    /// Inputs and blocks of the bench in [`with`].
    pub(in crate::learn::lm) const D: usize = 4;
    pub(in crate::learn::lm) const P: usize = 7;
    pub(in crate::learn::lm) const N: usize = 60;

    /// Calls `body` with a bench of 60 rows of four normal inputs for seven blocks, on which labels
    /// are the outputs of `planted`, (output sign, weights), and the network is `net`, brought to
    /// their scale; s = 6, m = 3.
    pub(in crate::learn::lm) fn with(
        signs: Signs,
        planted: &[(f32, [f32; D])],
        net: &[(u32, f32)],
        body: impl FnOnce(&mut Bench<'_, Gated<'static, NormalRows>>),
    ) {
        with_rows(NormalRows::new(5, N, D), signs, planted, net, body);
    }

    /// The same on rows of another kind, [`N`] of [`D`] inputs.
    pub(in crate::learn::lm) fn with_rows<R: Samples>(
        rows: R,
        signs: Signs,
        planted: &[(f32, [f32; D])],
        net: &[(u32, f32)],
        body: impl FnOnce(&mut Bench<'_, Gated<'static, R>>),
    ) {
        // A bench whose buffers are never given back serves any lifetime.
        let sensing = vec![operator(rows)].leak();
        body(&mut bench(&mut sensing[0], &Params { signs, ..Params::DEFAULT }, planted, net));
    }

    /// Rows that come with their mirror images and have the same second moment in all directions,
    /// as the vertices of two 24-cells, and some rows of zeros: a gradient `Σ_{w·x > 0} (w·x) x` is
    /// along w itself.
    pub(in crate::learn::lm) fn even()
    -> FnRows<impl FnMut(usize, &mut [f32]) -> core::result::Result<(), Infallible>> {
        FnRows::new(N, D, |k, row: &mut [f32]| {
            row.fill(0.0);
            let sign = |bit: usize| if k >> bit & 1 == 0 { 1.0 } else { -1.0 };
            match k {
                // ±1 in two of four places, in all of them, and ±2 in one.
                0..24 => {
                    let (i, j) = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)][k / 4];
                    (row[i], row[j]) = (sign(0), sign(1));
                }
                24..40 => row.iter_mut().enumerate().for_each(|(j, x)| *x = sign(j)),
                40..48 => row[(k - 40) / 2] = 2.0 * sign(0),
                _ => {}
            }
            Ok(())
        })
    }

    /// The operator of these rows for [`P`] blocks.
    pub(in crate::learn::lm) fn operator<R: Samples>(rows: R) -> Gated<'static, R> {
        Gated::new(rows, P, 1, vec![0.0; crate::base::budget::gated_words(D, P)].leak()).unwrap()
    }

    /// The rows of an operator.
    pub(in crate::learn::lm) fn rows_of<R: Samples>(sensing: &mut Gated<'_, R>) -> Vec<[f32; D]> {
        let open = crate::network::gates::Gates::of(
            Weights::empty(D, P),
            Signs::Positive,
            crate::network::gates::Empty::Open,
            0,
            0,
        );
        let mut rows = vec![[0.0; D]; N];
        for j in 0..D {
            let mut column = [0.0; N];
            let index = [j as u32];
            let unit = Weights::new(D, P, &index, &[1.0]).unwrap();
            sensing.apply(open, unit.block(0), &mut column).unwrap();
            rows.iter_mut().zip(column).for_each(|(row, x)| row[j] = x);
        }
        rows
    }

    /// `w · x`.
    pub(in crate::learn::lm) fn along(w: &[f32; D], x: &[f32; D]) -> f32 {
        w.iter().zip(x).map(|(w, x)| w * x).sum()
    }

    /// The bench of [`with`] on an operator of [`N`] rows.
    pub(in crate::learn::lm) fn bench<'a, R: Samples>(
        sensing: &'a mut Gated<'static, R>,
        params: &Params,
        planted: &[(f32, [f32; D])],
        net: &[(u32, f32)],
    ) -> Bench<'a, Gated<'static, R>> {
        let rows = rows_of(sensing);
        let label = |x: &[f32; D]| planted.iter().map(|(v, w)| v * along(w, x).max(0.0)).sum();
        let labels: &[f32] = rows.iter().map(label).collect::<Vec<f32>>().leak();
        let take = |len: usize| vec![0.0; len].leak();
        let vectors = Vectors::new(core::array::from_fn(|_| take(64)));
        let mut columns = Columns::new(take(D), take(D));
        let data = (labels, 1, crate::learn::lm::fit::Head::Each);
        let mut fit = Fit::new(sensing, data, params, (take(N), vectors, take(64 * 4))).unwrap();
        columns.measure(&mut fit).unwrap();
        fit.rows_read = 0;
        let entries = Entries::new(vec![0; D].leak(), take(D));
        let mut bench = Bench {
            fit,
            net: Editable::new(D, P, vec![0; 64].leak(), take(64)),
            columns,
            single: Single { entries, dense: take(D), z: take(N), t: take(N) },
            task: Task { goal: 1e-12, ..Task::new(6, 3, params.spare) },
        };
        let (index, value): (Vec<u32>, Vec<f32>) = net.iter().copied().unzip();
        let scaled: Vec<f32> =
            value.iter().map(|w| w * crate::base::math::unit_scale(labels)).collect();
        assert!(bench.net.add(&index, &scaled));
        bench
    }

    #[test]
    fn the_weakest_neuron_makes_room_where_there_is_none() {
        let net: Vec<(u32, f32)> = (0..7).map(|i| (4 * i, 1.0 + (i as f32 - 3.0).abs())).collect();
        with(Signs::Positive, &[], &net, |bench| {
            assert_eq!((bench.live(), bench.vacant(1.0), bench.vacant(-1.0)), (7, None, None));
            assert_eq!((bench.vacate(1.0, Some(3)), bench.vacate(1.0, None)), (Some(2), Some(2)));
            assert_eq!((bench.live(), bench.weakest(|_| true)), (6, Some(3)));
        });
        with(Signs::Free, &[], &[(0, 9.0), (4, 1.0), (8, 2.0)], |bench| {
            bench.add_linear().unwrap();
            assert_eq!((bench.linear(), bench.counted(), bench.live()), (4, 2, 2));
            assert_eq!((bench.vacant(1.0), bench.vacant(-1.0)), (Some(3), Some(4)));
        });
    }

    #[test]
    fn the_linear_term_has_all_inputs_that_have_a_scale_and_keeps_what_it_has() {
        let rows =
            FnRows::new(N, D, |k, row: &mut [f32]| -> core::result::Result<(), Infallible> {
                crate::base::rng::Rng::new(3, k as u64).fill_normal(row);
                row[2] = 0.0;
                Ok(())
            });
        with_rows(rows, Signs::Free, &[], &[(1, 5.0), (6, 1.0)], |bench| {
            let before = bench.net.view().value()[0];
            bench.add_linear().unwrap();
            bench.add_linear().unwrap();
            assert_eq!(bench.net.view().index(), [0, 1, 3, 6]);
            assert_eq!(bench.net.view().value()[..3], [0.0, before, 0.0]);
        });
        with(Signs::Positive, &[], &[(6, 1.0)], |bench| {
            bench.add_linear().unwrap();
            assert_eq!((bench.net.nnz(), bench.linear()), (1, 0));
        });
    }

    #[test]
    fn thresholding_leaves_the_linear_term_alone() {
        with(Signs::Free, &[], &[(0, 1e-3), (3, 1e-3), (4, 1.0), (9, 3.0), (14, 2.0)], |bench| {
            bench.threshold(2).unwrap();
            assert_eq!((bench.net.view().index(), bench.counted()), (&[0, 3, 9, 14][..], 2));
        });
    }
}
