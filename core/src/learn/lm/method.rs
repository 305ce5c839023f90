//! The search for each kind of head: its checks, its memory, and its result.

use super::checkpoint::{Checkpoint, Info, State};
use super::cover::Cover;
use super::factors::SecondLayer;
use super::fit::{Data, Fit, Readout};
use super::goal::{Goal, OneOutput, SeveralOutputs, TwoLayers};
use super::model::{Model, Moves, OutputBuffers, Task};
use super::neuron::{Entries, Single};
use super::params::{Params, second_slots};
use super::progress::{Progress, Trained};
use super::search::Search;
use super::sides::Sides;
use super::solver::Solver;
use super::support::Columns;
use crate::base::budget::{Recovery, Workspace, enough};
use crate::base::dims::{Dims, MOST_ENTRIES};
use crate::base::error::{self, Error, Result};
use crate::learn::loss::check_finite;
use crate::learn::start::Start;
use crate::network::gates::Signs;
use crate::network::net::{Count, Network, Shape};
use crate::operator::factored::Factored;
use crate::operator::machine::Machine;
use crate::operator::sensing::{Rows, Sensing};
use core::ops::RangeInclusive;

/// What a search is given besides its goal.
#[doc(hidden)]
pub struct Run<'r, 'a, S: Sensing, O> {
    pub(super) sensing: &'r mut S,
    pub(super) labels: &'r Rows<S>,
    pub(super) start: Start<'r, Checkpoint<'r>>,
    pub(super) params: Params,
    pub(super) memory: &'a mut [u32],
    pub(super) observe: O,
}

/// What differs between heads: [`OneOutput`], [`SeveralOutputs`] and [`TwoLayers`], which are all
/// that there are.
pub trait Method<S: Sensing>: Copy {
    /// The search.
    #[doc(hidden)]
    fn search<'a>(
        goal: Goal<Self>,
        run: Run<'_, 'a, S, impl FnMut(&Progress<'_>) -> bool>,
    ) -> Result<Trained<'a>, S::Source>;
}

impl<S: Sensing> Method<S> for OneOutput {
    fn search<'a>(
        goal: Goal<Self>,
        mut run: Run<'_, 'a, S, impl FnMut(&Progress<'_>) -> bool>,
    ) -> Result<Trained<'a>, S::Source> {
        let (dims, signs) = (goal.dims, run.params.signs);
        dims.check().map_err(Error::widen)?;
        let least = if signs.linear(0) { 2 } else { 1 };
        run.check(&dims, 1, least..=u32::MAX as usize / dims.inputs)?;
        let scratch = run.scratch(|sensing| sensing.scratch(dims.samples));
        let budget = Recovery::new(dims, run.sensing.panel(), scratch, signs.linear(0));
        let may_cover = budget.is_wide() && !signs.both() && !run.is_spread(&dims);
        let labels = S::Machine::numbers(run.labels).filter(|_| may_cover);
        let tight = labels.is_some_and(|labels| is_tight(labels, dims.nnz));
        Ok(run.search(budget, tight, |_| Self)?.trained())
    }
}

impl<S: Factored> Method<S> for SeveralOutputs {
    fn search<'a>(
        goal: Goal<Self>,
        mut run: Run<'_, 'a, S, impl FnMut(&Progress<'_>) -> bool>,
    ) -> Result<Trained<'a>, S::Source> {
        let dims = goal.dims;
        let c = S::Machine::len(run.labels) / dims.samples.max(1);
        let scratch = run.check_outputs(&dims, c, c, c)?;
        let budget = Recovery::factored(dims, c, run.sensing.panel(), scratch);
        Ok(run.search(budget, false, |_| Self)?.trained())
    }
}

impl<S: Factored> Method<S> for TwoLayers {
    fn search<'a>(
        goal: Goal<Self>,
        mut run: Run<'_, 'a, S, impl FnMut(&Progress<'_>) -> bool>,
    ) -> Result<Trained<'a>, S::Source> {
        let (dims, neurons, blocks) = (goal.dims, goal.head.second, run.sensing.blocks());
        let c = second_slots(neurons);
        let scratch = run.check_outputs(&dims, 1, c, neurons)?;
        let budget = Recovery::deep(dims, blocks, c, run.sensing.panel(), scratch);
        let mut found = run.search(budget, false, |open| SecondLayer { open, neurons })?;
        let wt = found.index.get_mut(found.count.first..found.count.all).unwrap_or_default();
        found.shape = Shape::weighted(dims.inputs, blocks, number(wt, c, neurons, found.free));
        Ok(found.trained())
    }
}

/// The weights of the result, what the search did, and memory that is free again.
struct Outcome<'a> {
    index: &'a mut [u32],
    value: &'a mut [f32],
    count: Count,
    shape: Shape,
    info: Info,
    free: &'a mut [u32],
}

impl<'a> Outcome<'a> {
    fn trained(self) -> Trained<'a> {
        let network = Network::cut(self.shape, self.index, self.value, self.count);
        Trained { network, info: self.info }
    }
}

impl<'a, S: Sensing, O: FnMut(&Progress<'_>) -> bool> Run<'_, 'a, S, O> {
    fn check(
        &mut self,
        dims: &Dims,
        width: usize,
        blocks: RangeInclusive<usize>,
    ) -> Result<(), S::Source> {
        let Self { sensing, labels, params, .. } = self;
        error::length("rows of the operator", sensing.rows(), dims.samples)?;
        error::length("inputs of the operator", sensing.inputs(), dims.inputs)?;
        error::range("blocks of the operator", sensing.blocks(), *blocks.start(), *blocks.end())?;
        let rows = sensing.local(0..dims.samples).len();
        error::length("labels", S::Machine::len(labels), rows.saturating_mul(width))?;
        check_finite(sensing.machine(), labels)?;
        error::range("validation rows", params.validation, 0, dims.samples - 1)?;
        error::finite(
            "loss of an exact fit, and most labels of an output",
            &[params.exact, params.ceiling],
        )
    }

    /// Whether rows are held elsewhere too: there is no cover then, which only one process knows of.
    fn is_spread(&self, dims: &Dims) -> bool {
        self.sensing.local(0..dims.samples) != (0..dims.samples)
    }

    /// Checks a search with output weights, which have signs of their own, for so many labels of a
    /// row, outputs `c` while searching, and outputs of the result; floats of scratch that it needs.
    fn check_outputs(
        &mut self,
        dims: &Dims,
        labels: usize,
        c: usize,
        result: usize,
    ) -> Result<usize, S::Source>
    where
        S: Factored,
    {
        self.params.signs = Signs::Positive;
        let (n, most) = (dims.samples, u32::MAX as usize);
        let local = self.sensing.local(0..n).len();
        error::length("rows held here, in a search with several outputs or layers", local, n)?;
        check_sizes(dims, result).map_err(Error::widen)?;
        error::range("rows × outputs of the first layer", n.saturating_mul(c), 1, MOST_ENTRIES)?;
        self.check(dims, labels, 1..=most / dims.inputs.saturating_add(c))?;
        Ok(self.scratch(|sensing| sensing.scratch(n).max(sensing.net_scratch(n))))
    }

    /// The scratch of products, of which none is under random gates.
    fn scratch(&self, of: impl FnOnce(&S) -> usize) -> usize {
        if self.sensing.always_needs_scratch() { of(self.sensing) } else { 0 }
    }

    /// The search itself; `head` is given a bit a row and output where there is a second layer, and
    /// `tight` is that of [`Task`].
    fn search<H: Readout<S>>(
        mut self,
        budget: Recovery,
        tight: bool,
        head: impl FnOnce(&'a mut Rows<S>) -> H,
    ) -> Result<Outcome<'a>, S::Source>
    where
        for<'m> Model<'m, S, H>: Moves<S>,
    {
        enough(budget.words(), self.memory.len()).map_err(Error::widen)?;
        let Recovery { dims, panel, scratch, outputs: c, first, .. } = budget;
        let (n, d, room, work) = (dims.samples, dims.inputs, budget.room(), budget.work());
        let (blocks, train) = (self.sensing.blocks(), n - self.params.validation);
        let shape = match c {
            0 => Shape::signed(d, blocks, self.params.signs),
            c => Shape::weighted(d, blocks, c),
        };
        let rows = match first {
            0 => self.params.search_rows(dims.nnz, train),
            _ => self.params.deep_search_rows(dims.nnz, train),
        };
        let bits = bytemuck::cast_slice_mut(take(&mut self.memory, budget.gates()));
        let head = head(self.sensing.machine().rows_in(bits));
        let index = take(&mut self.memory, dims.nnz);
        let value = bytemuck::cast_slice_mut(take(&mut self.memory, dims.nnz));
        let has_cover = budget.is_wide() && !self.is_spread(&dims);
        let Self { sensing, labels, start, params, memory: free, observe } = self;
        let mut space = Workspace::new(&mut *free);
        let mut floats = |len| space.floats(len).map_err(Error::widen);
        let mut vectors = || floats(room);
        let vectors = [vectors()?, vectors()?, vectors()?, vectors()?, vectors()?, vectors()?];
        let machine = sensing.machine();
        // One number a row and label.
        let residual = machine.rows_in(floats(n * budget.labels())?);
        let data = Data { labels, outputs: c.max(1), head, residual, scratch: floats(scratch)? };
        let columns = Columns { scales: floats(d)?, panel: floats(panel.saturating_mul(d + c))? };
        let (entries, dense) = (floats(d)?, floats(d)?);
        let (z, t) = (machine.rows_in(floats(n)?), machine.rows_in(floats(n)?));
        let back = machine.rows_in(floats(if c > 0 { n } else { 0 })?);
        let (out, along, other) = (floats(c)?, floats(c)?, floats(c)?);
        let values = [floats(room)?, floats(work)?, floats(work)?, floats(work)?];
        let (covered, weights) = if has_cover { (n, room) } else { (0, 0) };
        let (image, buffer) = (floats(covered)?, floats(weights)?);
        let mut indices = |len| space.indices(len).map_err(Error::widen);
        let cover = Cover::new(indices(covered)?, indices(covered)?, image, buffer);
        let mut sides = |len, value| indices(len).map(|index| Sides::new(shape, index, value));
        let [net, base, trial, best] = values;
        let (net, base) = (sides(room, net)?, sides(work, base)?);
        let (trial, best) = (sides(work, trial)?, sides(work, best)?);
        let mut fit = Fit::new(sensing, data, &params)?;
        if tight {
            fit.cover = cover;
        }
        let spare = if tight { 0 } else { params.spare };
        let model = Model {
            fit,
            solver: Solver::new(vectors, params.products),
            net,
            columns,
            single: Single { entries: Entries::new(indices(d)?, entries), share: 0.5, dense, z, t },
            out: OutputBuffers { entries: Entries::new(indices(c)?, out), along, other, back },
            task: Task { nnz: dims.nnz, hidden: dims.hidden, spare, tight, ..Task::default() },
        };
        let result = Sides::new(shape, &mut *index, &mut *value);
        let (state, cut_off) = (State::starting(0), false);
        let mut search =
            Search { model, base, trial, best, result, params, state, observe, cut_off };
        let info = search.run(rows, start)?;
        let result = search.result.view();
        let count = Count { first: result.w().nnz(), all: result.nnz() };
        Ok(Outcome { index, value, count, shape, info, free })
    }
}

fn take<'a>(memory: &mut &'a mut [u32], len: usize) -> &'a mut [u32] {
    let (taken, free) = core::mem::take(memory).split_at_mut_checked(len).unwrap_or_default();
    *memory = free;
    taken
}

/// Whether s weights are few for the labels that are not 0, each of which is an equation.
fn is_tight(labels: &[f32], nnz: usize) -> bool {
    let equations = labels.iter().filter(|y| **y != 0.0).count();
    nnz < equations.saturating_mul(2)
}

/// Numbers the outputs of c that have weights from 0 on, in their order, as those of at most
/// `most`, of which there are so many then; `numbers` holds c words.
fn number(index: &mut [u32], c: usize, most: usize, numbers: &mut [u32]) -> usize {
    let c = c.max(1);
    let numbers = numbers.get_mut(..c).unwrap_or_default();
    numbers.fill(0);
    for at in &*index {
        numbers.get_mut(*at as usize % c).into_iter().for_each(|used| *used = 1);
    }
    let mut live = 0;
    for number in &mut *numbers {
        let used = *number;
        *number = live;
        live += used;
    }
    let width = most.max(live as usize);
    for at in index {
        let (i, k) = (*at as usize / c, *at as usize % c);
        *at = (i * width) as u32 + numbers.get(k).copied().unwrap_or(0);
    }
    width
}

/// Checks the sizes of a network of c outputs, each within its bounds.
fn check_sizes(dims: &Dims, c: usize) -> Result<()> {
    let most = u32::MAX as usize;
    error::range("samples", dims.samples, 1, most)?;
    error::range("inputs", dims.inputs, 1, most)?;
    error::range("hidden neurons", dims.hidden, 1, most)?;
    error::range("outputs", c, 1, most)?;
    error::range("samples × outputs", dims.samples.saturating_mul(c), 1, MOST_ENTRIES)?;
    let all = dims.hidden.saturating_mul(dims.inputs.saturating_add(c));
    error::range("hidden neurons × (inputs + outputs)", all, 1, MOST_ENTRIES)?;
    error::range("nonzero weights (nnz)", dims.nnz, 1, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_is_tight_below_two_weights_per_label() {
        let labels = [1.0, 0.0, -2.0, 0.0, 3.0];
        assert_eq!([5, 6, 7].map(|nnz| is_tight(&labels, nnz)), [true, false, false]);
        assert!(!is_tight(&[0.0; 3], 0) && !is_tight(&[], 1));
    }

    #[test]
    fn outputs_with_weights_are_renumbered_in_order() {
        // Outputs 1, 3 and 4 of five, of neurons 0, 1 and 3.
        let mut index = [1, 4, 8, 16, 18];
        assert_eq!(number(&mut index, 5, 3, &mut [9; 7]), 3);
        assert_eq!(index, [0, 2, 4, 9, 10]);
        // The width stays where fewer have weights, and grows where more have.
        let mut index = [4, 9];
        assert_eq!((number(&mut index, 5, 2, &mut [0; 5]), index), (2, [0, 2]));
        let mut index = [0, 1, 2];
        assert_eq!((number(&mut index, 5, 2, &mut [0; 5]), index), (3, [0, 1, 2]));
        assert_eq!(number(&mut [], 5, 2, &mut [0; 5]), 2);
    }
}
