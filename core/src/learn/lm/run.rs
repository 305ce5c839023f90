//! From arguments to a search and back: checks, memory, the result.

use super::bench::Bench;
use super::checkpoint::State;
use super::cover::Cover;
use super::factors::Factors;
use super::fit::{Fit, Head};
use super::neuron::{Entries, Single};
use super::problem::{Problem, Task};
use super::search::{Log, Search};
use super::sides::Sides;
use super::solver::Vectors;
use super::support::Columns;
use super::{Checkpoint, Goal, Info, Params, Progress, Trained};
use crate::base::budget::{Recovery, WORD, Workspace};
use crate::base::dims::Dims;
use crate::base::error::{self, Error, Result};
use crate::learn::start::Start;
use crate::network::gates::Signs;
use crate::network::net::{Network, Shape};
use crate::network::weights::{Editable, Weights};
use crate::operator::factored::Factored;
use crate::operator::machine::Machine;
use crate::operator::sensing::{Rows, Sensing};
use core::ops::RangeInclusive;

/// Searches for a network of one output.
pub(super) fn single<'a, S: Sensing>(
    sensing: &mut S,
    labels: &Rows<S>,
    dims: Dims,
    start: Start<'_, Checkpoint<'_>>,
    params: &Params,
    memory: &'a mut [u32],
    observe: impl FnMut(&Progress<'_>) -> bool,
) -> Result<Trained<'a>, S::Source> {
    dims.check().map_err(Error::widen)?;
    let fewest = if params.signs.linear(0) { 2 } else { 1 };
    check(sensing, (labels, 1), &dims, params, fewest..=u32::MAX as usize / dims.inputs)?;
    let (d, p, scratch) = (dims.inputs, sensing.blocks(), sensing.scratch(dims.samples));
    let budget = Recovery::new(dims, sensing.panel(), scratch, params.signs.linear(0));
    let shape = Shape::signed(d, p, params.signs);
    let ((index, value), memory) = result(&budget, memory)?;
    let info;
    let len;
    {
        let Buffers { single, columns, net: (places, values), kept, rows, cover, .. } =
            Buffers::new(&budget, shape, sensing.machine(), memory).map_err(Error::widen)?;
        let mut fit = Fit::new(sensing, (labels, 1, Head::Each), params, rows)?;
        let read = S::Machine::numbers(labels);
        let tight = read.is_some_and(|labels| {
            budget.is_wide() && !params.signs.both() && is_tight(labels, dims.nnz)
        });
        if tight {
            fit.cover = cover;
        }
        let spare = if tight { 0 } else { params.spare };
        let bench = Bench {
            net: Editable::new(d, p, places, values),
            single,
            columns,
            fit,
            task: Task { tight, ..Task::new(dims.nnz, dims.hidden, spare) },
        };
        let found = Sides::new(shape, &mut *index, &mut *value);
        let rows = params.search_rows(dims.nnz, dims.samples - params.validation);
        (info, len, _) = search(bench, (kept, found), (rows, params), start, observe)?;
    }
    let (index, value) = (index.split_at_mut(len).0, value.split_at_mut(len).0);
    let w = Weights::new(d, p, index, value).map_err(Error::widen)?;
    Ok(Trained { network: Network::signed(w, params.signs), info })
}

/// Whether s weights are few for the labels that are not 0, each of which is an equation.
fn is_tight(labels: &[f32], nnz: usize) -> bool {
    let equations = labels.iter().filter(|y| **y != 0.0).count();
    nnz < equations.saturating_mul(2)
}

/// Searches for a network of several outputs, or of two hidden layers, of which the second one has
/// `second` neurons.
pub(super) fn net<'a, S: Factored>(
    sensing: &mut S,
    labels: &[f32],
    goal: Goal<Option<usize>>,
    start: Start<'_, Checkpoint<'_>>,
    params: &Params,
    memory: &'a mut [u32],
    observe: impl FnMut(&Progress<'_>) -> bool,
) -> Result<Trained<'a>, S::Source> {
    let Goal { dims, head: second } = goal;
    let params = &Params { signs: Signs::Positive, ..*params };
    let (n, d, p) = (dims.samples, dims.inputs, sensing.blocks());
    let (c, width) = match second {
        Some(second) => (super::second_slots(second), 1),
        None => (labels.len() / n.max(1), labels.len() / n.max(1)),
    };
    check_sides(&dims, second.unwrap_or(c)).map_err(Error::widen)?;
    error::range("rows × outputs of the first layer", n.saturating_mul(c), 1, u32::MAX as usize)?;
    check(sensing, (labels, width), &dims, params, 1..=u32::MAX as usize / d.saturating_add(c))?;
    let scratch = sensing.scratch(n).max(sensing.net_scratch(n));
    let budget = match second {
        Some(_) => Recovery::deep(dims, p, c, sensing.panel(), scratch),
        None => Recovery::factored(dims, c, sensing.panel(), scratch),
    };
    let trained = n - params.validation;
    let rows_first = match second {
        Some(_) => params.deep_search_rows(dims.nnz, trained),
        None => params.search_rows(dims.nnz, trained),
    };
    let shape = Shape::weighted(d, p, c);
    let ((index, value), memory) = result(&budget, memory)?;
    let info;
    let (first, behind);
    {
        let Buffers {
            single, columns, net: (places, values), kept, rows, ends, back, open, ..
        } = Buffers::new(&budget, shape, sensing.machine(), &mut *memory).map_err(Error::widen)?;
        let (out, [along, other]) = ends;
        let head = if second.is_some() { Head::Sum(open) } else { Head::Each };
        let factors = Factors {
            net: Sides::new(shape, places, values),
            single,
            columns,
            out,
            along,
            other,
            back,
            fit: Fit::new(sensing, (labels, c, head), params, rows)?,
            task: Task::new(dims.nnz, dims.hidden, params.spare),
            second: second.unwrap_or(0),
        };
        let found = Sides::new(shape, &mut *index, &mut *value);
        (info, first, behind) =
            search(factors, (kept, found), (rows_first, params), start, observe)?;
    }
    let (index, value) =
        (index.split_at_mut(first + behind).0, value.split_at_mut(first + behind).0);
    let (index, out_index) = index.split_at_mut(first);
    let (value, out_value) = value.split_at_mut(first);
    let c = match second {
        Some(second) => number(out_index, (c, second), memory),
        None => c,
    };
    let w = Weights::new(d, p, index, value).map_err(Error::widen)?;
    let wt = Weights::new(c, p, out_index, out_value).map_err(Error::widen)?;
    Ok(Trained { network: Network::new(w, wt).map_err(Error::widen)?, info })
}

/// The search itself: what was done, and how many weights the result has on either side.
fn search<'a, P: Problem<'a>>(
    bench: P,
    ([base, kept, best], found): ([Sides<'a>; 3], Sides<'a>),
    (rows, params): (usize, &Params),
    start: Start<'_, Checkpoint<'_>>,
    observe: impl FnMut(&Progress<'_>) -> bool,
) -> Result<(Info, usize, usize), <P::Sensing as Sensing>::Source> {
    let log = Log { observe, info: Info::NONE, cut_off: false };
    let mut search =
        Search { bench, base, kept, best, found, params: *params, state: State::starting(0), log };
    let info = search.run(rows, start)?;
    let found = search.found.view();
    Ok((info, found.w().nnz(), found.wt().nnz()))
}

/// Numbers the outputs of c that have weights from 0 on, in their order, as those of at most
/// `most`, of which there are so many then; `numbers` holds c words.
fn number(index: &mut [u32], (c, most): (usize, usize), numbers: &mut [u32]) -> usize {
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

/// Room for the result, and the rest of the memory.
type Parts<'a> = ((&'a mut [u32], &'a mut [f32]), &'a mut [u32]);

fn result<'a, S>(budget: &Recovery, memory: &'a mut [u32]) -> Result<Parts<'a>, S> {
    if memory.len() < budget.words() {
        return Err(Error::Budget {
            needed: budget.words().saturating_mul(WORD),
            got: memory.len() * WORD,
        });
    }
    let (result, rest) = memory.split_at_mut(2 * budget.dims.nnz);
    let (index, value) = result.split_at_mut(budget.dims.nnz);
    Ok(((index, bytemuck::cast_slice_mut(value)), rest))
}

/// All memory of a search but that of the result.
struct Buffers<'a, S: Sensing> {
    single: Single<'a, S>,
    columns: Columns<'a>,
    /// The current network.
    net: (&'a mut [u32], &'a mut [f32]),
    /// The base of the moves, the best trial, the best.
    kept: [Sides<'a>; 3],
    /// Residual, vectors and scratch.
    rows: (&'a mut Rows<S>, Vectors<'a>, &'a mut [f32]),
    /// Output weights of a neuron, and two vectors over the outputs.
    ends: (Entries<'a>, [&'a mut [f32]; 2]),
    /// One number a row, for several outputs.
    back: &'a mut [f32],
    /// A bit a row and output, where these are summed up.
    open: &'a mut [u32],
    cover: Cover<'a>,
}

impl<'a, S: Sensing> Buffers<'a, S> {
    fn new(
        budget: &Recovery,
        shape: Shape,
        machine: &mut S::Machine,
        memory: &'a mut [u32],
    ) -> Result<Self> {
        let Recovery { dims, panel, scratch, outputs: c, .. } = *budget;
        let (n, d, room, work) = (dims.samples, dims.inputs, budget.room(), budget.work());
        let mut space = Workspace::new(memory);
        let mut floats = |len| space.floats(len);
        let mut vectors = || floats(room);
        let vectors = [vectors()?, vectors()?, vectors()?, vectors()?, vectors()?, vectors()?];
        // One number a row and output, of which there is one where output weights are signs.
        let residual = machine.rows_in(floats(n * c.max(1))?);
        let rows = (residual, Vectors::new(vectors), floats(scratch)?);
        let columns = Columns::new(floats(d)?, floats(panel.saturating_mul(d + c))?);
        let (entries, dense) = (floats(d)?, floats(d)?);
        let (z, t) = (machine.rows_in(floats(n)?), machine.rows_in(floats(n)?));
        let back = floats(if c > 0 { n } else { 0 })?;
        let (out, along, other) = (floats(c)?, floats(c)?, floats(c)?);
        let (net, base, kept, best) = (floats(room)?, floats(work)?, floats(work)?, floats(work)?);
        let (covered, parts) = if budget.is_wide() { (n, room) } else { (0, 0) };
        let (image, part) = (floats(covered)?, floats(parts)?);
        let mut indices = |len| space.indices(len);
        let open = indices(budget.gates())?;
        Ok(Self {
            cover: Cover::new(indices(covered)?, indices(covered)?, image, part),
            net: (indices(room)?, net),
            single: Single { entries: Entries::new(indices(d)?, entries), dense, z, t },
            columns,
            kept: [
                Sides::new(shape, indices(work)?, base),
                Sides::new(shape, indices(work)?, kept),
                Sides::new(shape, indices(work)?, best),
            ],
            rows,
            ends: (Entries::new(indices(c)?, out), [along, other]),
            back,
            open,
        })
    }
}

fn check<S: Sensing>(
    sensing: &mut S,
    (labels, outputs): (&Rows<S>, usize),
    dims: &Dims,
    params: &Params,
    blocks: RangeInclusive<usize>,
) -> Result<(), S::Source> {
    error::length("rows of the operator", sensing.rows(), dims.samples)?;
    error::length("inputs of the operator", sensing.inputs(), dims.inputs)?;
    error::range("blocks of the operator", sensing.blocks(), *blocks.start(), *blocks.end())?;
    error::length("labels", S::Machine::len(labels), dims.samples.saturating_mul(outputs))?;
    match S::Machine::numbers(labels) {
        Some(labels) => error::finite("labels", labels)?,
        None => error::finite("the largest label", &[sensing.machine().largest(labels)])?,
    }
    error::range("rows held out", params.validation, 0, dims.samples - 1)?;
    error::finite("loss of an exact fit", &[params.exact])
}

/// Checks the sizes of a network of c outputs, each within its bounds.
fn check_sides(dims: &Dims, c: usize) -> Result<()> {
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
        assert_eq!(number(&mut index, (5, 3), &mut [9; 7]), 3);
        assert_eq!(index, [0, 2, 4, 9, 10]);
        // The width stays where fewer have weights, and grows where more have.
        let mut index = [4, 9];
        assert_eq!((number(&mut index, (5, 2), &mut [0; 5]), index), (2, [0, 2]));
        let mut index = [0, 1, 2];
        assert_eq!((number(&mut index, (5, 2), &mut [0; 5]), index), (3, [0, 1, 2]));
        assert_eq!(number(&mut [], (5, 2), &mut [0; 5]), 2);
    }
}
