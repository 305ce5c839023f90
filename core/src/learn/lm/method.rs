//! The search for each kind of head: its checks, its memory, and its result.

use super::checkpoint::Checkpoint;
use super::factors::SecondLayer;
use super::fit::Data;
use super::goal::{Goal, OneOutput, SeveralOutputs, TwoLayers};
use super::memory::{Memory, Setup, search};
use super::params::{Params, second_slots};
use super::progress::{Progress, Trained};
use crate::base::budget::Recovery;
use crate::base::dims::Dims;
use crate::base::error::{self, Error, Result};
use crate::learn::start::Start;
use crate::network::gates::Signs;
use crate::network::net::Shape;
use crate::operator::factored::Factored;
use crate::operator::machine::Machine;
use crate::operator::sensing::{Rows, Sensing};
use core::ops::RangeInclusive;

/// What differs between heads: [`OneOutput`], [`SeveralOutputs`] and [`TwoLayers`], which are all
/// that there are.
pub trait Method<S: Sensing>: Copy {
    /// The search.
    #[doc(hidden)]
    fn search<'a>(
        goal: Goal<Self>,
        sensing: &mut S,
        labels: &Rows<S>,
        start: Start<'_, Checkpoint<'_>>,
        params: &Params,
        memory: &'a mut [u32],
        observe: impl FnMut(&Progress<'_>) -> bool,
    ) -> Result<Trained<'a>, S::Source>;
}

impl<S: Sensing> Method<S> for OneOutput {
    fn search<'a>(
        goal: Goal<Self>,
        sensing: &mut S,
        labels: &Rows<S>,
        start: Start<'_, Checkpoint<'_>>,
        params: &Params,
        memory: &'a mut [u32],
        observe: impl FnMut(&Progress<'_>) -> bool,
    ) -> Result<Trained<'a>, S::Source> {
        let dims = goal.dims;
        dims.check().map_err(Error::widen)?;
        let is_free = params.signs.linear(0);
        let blocks = if is_free { 2 } else { 1 }..=u32::MAX as usize / dims.inputs;
        check(sensing, labels, 1, &dims, params, blocks)?;
        let budget = Recovery::new(dims, sensing.panel(), sensing.scratch(dims.samples), is_free);
        let memory = Memory::new(&budget, memory)?;
        let setup = Setup {
            shape: Shape::signed(dims.inputs, sensing.blocks(), params.signs),
            rows: params.search_rows(dims.nnz, dims.samples - params.validation),
            params,
            tight: S::Machine::numbers(labels).is_some_and(|labels| {
                budget.is_wide() && !params.signs.both() && is_tight(labels, dims.nnz)
            }),
            budget,
        };
        let data = Data { labels, outputs: 1, head: Self };
        let found = search(sensing, data, &setup, start, memory, observe)?;
        Ok(found.trained(setup.shape))
    }
}

impl<S: Factored> Method<S> for SeveralOutputs {
    fn search<'a>(
        goal: Goal<Self>,
        sensing: &mut S,
        labels: &Rows<S>,
        start: Start<'_, Checkpoint<'_>>,
        params: &Params,
        memory: &'a mut [u32],
        observe: impl FnMut(&Progress<'_>) -> bool,
    ) -> Result<Trained<'a>, S::Source> {
        let (dims, params) = (goal.dims, &Params { signs: Signs::Positive, ..*params });
        let c = labels.len() / dims.samples.max(1);
        let outputs = Outputs { labels: c, searched: c, result: c };
        let scratch = check_outputs(sensing, labels, &outputs, &dims, params)?;
        let budget = Recovery::factored(dims, c, sensing.panel(), scratch);
        let memory = Memory::new(&budget, memory)?;
        let setup = Setup {
            shape: Shape::weighted(dims.inputs, sensing.blocks(), c),
            rows: params.search_rows(dims.nnz, dims.samples - params.validation),
            params,
            tight: false,
            budget,
        };
        let data = Data { labels, outputs: c, head: Self };
        let found = search(sensing, data, &setup, start, memory, observe)?;
        Ok(found.trained(setup.shape))
    }
}

impl<S: Factored> Method<S> for TwoLayers {
    fn search<'a>(
        goal: Goal<Self>,
        sensing: &mut S,
        labels: &Rows<S>,
        start: Start<'_, Checkpoint<'_>>,
        params: &Params,
        memory: &'a mut [u32],
        observe: impl FnMut(&Progress<'_>) -> bool,
    ) -> Result<Trained<'a>, S::Source> {
        let (dims, params) = (goal.dims, &Params { signs: Signs::Positive, ..*params });
        let neurons = goal.head.second;
        let c = second_slots(neurons);
        let outputs = Outputs { labels: 1, searched: c, result: neurons };
        let scratch = check_outputs(sensing, labels, &outputs, &dims, params)?;
        let budget = Recovery::deep(dims, sensing.blocks(), c, sensing.panel(), scratch);
        let mut memory = Memory::new(&budget, memory)?;
        let setup = Setup {
            shape: Shape::weighted(dims.inputs, sensing.blocks(), c),
            rows: params.deep_search_rows(dims.nnz, dims.samples - params.validation),
            params,
            tight: false,
            budget,
        };
        let head = SecondLayer { active: memory.take(budget.gates()), neurons };
        let data = Data { labels, outputs: c, head };
        let found = search(sensing, data, &setup, start, memory, observe)?;
        let wt = found.index.get_mut(found.count.first..found.count.all).unwrap_or_default();
        let width = number(wt, c, neurons, found.free);
        Ok(found.trained(Shape::weighted(dims.inputs, setup.shape.hidden, width)))
    }
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

fn check<S: Sensing>(
    sensing: &mut S,
    labels: &Rows<S>,
    width: usize,
    dims: &Dims,
    params: &Params,
    blocks: RangeInclusive<usize>,
) -> Result<(), S::Source> {
    error::length("rows of the operator", sensing.rows(), dims.samples)?;
    error::length("inputs of the operator", sensing.inputs(), dims.inputs)?;
    error::range("blocks of the operator", sensing.blocks(), *blocks.start(), *blocks.end())?;
    error::length("labels", S::Machine::len(labels), dims.samples.saturating_mul(width))?;
    match S::Machine::numbers(labels) {
        Some(labels) => error::finite("labels", labels)?,
        None => error::finite("the largest label", &[sensing.machine().largest(labels)])?,
    }
    error::range("validation rows", params.validation, 0, dims.samples - 1)?;
    error::finite("loss of an exact fit", &[params.exact])
}

/// Labels of a row, outputs while searching, and those of the result.
struct Outputs {
    labels: usize,
    searched: usize,
    result: usize,
}

/// Checks a search with output weights; floats of scratch that it needs.
fn check_outputs<S: Factored>(
    sensing: &mut S,
    labels: &[f32],
    outputs: &Outputs,
    dims: &Dims,
    params: &Params,
) -> Result<usize, S::Source> {
    let (n, most, c) = (dims.samples, u32::MAX as usize, outputs.searched);
    check_sizes(dims, outputs.result).map_err(Error::widen)?;
    error::range("rows × outputs of the first layer", n.saturating_mul(c), 1, most)?;
    let blocks = 1..=most / dims.inputs.saturating_add(c);
    check(sensing, labels, outputs.labels, dims, params, blocks)?;
    Ok(sensing.scratch(n).max(sensing.net_scratch(n)))
}

/// Checks the sizes of a network of c outputs, each within its bounds.
fn check_sizes(dims: &Dims, c: usize) -> Result<()> {
    let most = u32::MAX as usize;
    error::range("samples", dims.samples, 1, most)?;
    error::range("inputs", dims.inputs, 1, most)?;
    error::range("hidden neurons", dims.hidden, 1, most)?;
    error::range("outputs", c, 1, most)?;
    error::range("samples × outputs", dims.samples.saturating_mul(c), 1, most)?;
    let all = dims.hidden.saturating_mul(dims.inputs.saturating_add(c));
    error::range("hidden neurons × (inputs + outputs)", all, 1, most)?;
    error::range("nonzero weights (nnz)", dims.nnz, 1, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_few_where_there_are_less_than_two_for_a_label_that_is_not_zero() {
        let labels = [1.0, 0.0, -2.0, 0.0, 3.0];
        assert_eq!([5, 6, 7].map(|nnz| is_tight(&labels, nnz)), [true, false, false]);
        assert!(!is_tight(&[0.0; 3], 0) && !is_tight(&[], 1));
    }

    #[test]
    fn outputs_with_weights_are_numbered_from_zero_in_their_order() {
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
