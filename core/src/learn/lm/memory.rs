//! A search in the caller's memory.

use super::checkpoint::{Checkpoint, State};
use super::cover::Cover;
use super::fit::{Data, Fit, FitMemory, Readout};
use super::info::Info;
use super::model::{Model, Moves, OutputBuffers, Task};
use super::neuron::{Entries, Single};
use super::params::Params;
use super::progress::{Progress, Trained};
use super::search::{Log, Search};
use super::sides::Sides;
use super::solver::Vectors;
use super::support::Columns;
use crate::base::budget::{Recovery, WORD, Workspace};
use crate::base::error::{Error, Result};
use crate::learn::start::Start;
use crate::network::net::{Count, Network, Shape};
use crate::operator::machine::Machine;
use crate::operator::sensing::Sensing;

/// What a search is told, besides its data.
pub(super) struct Setup<'p> {
    pub(super) budget: Recovery,
    pub(super) shape: Shape,
    pub(super) params: &'p Params,
    /// Rows that it looks at first.
    pub(super) rows: usize,
    /// [`Task::tight`].
    pub(super) tight: bool,
}

/// Memory of a search: room for the result, and the rest.
pub(super) struct Memory<'a> {
    index: &'a mut [u32],
    value: &'a mut [f32],
    free: &'a mut [u32],
}

impl<'a> Memory<'a> {
    pub(super) fn new<E>(budget: &Recovery, memory: &'a mut [u32]) -> Result<Self, E> {
        if memory.len() < budget.words() {
            return Err(Error::Budget {
                needed: budget.words().saturating_mul(WORD),
                got: memory.len() * WORD,
            });
        }
        let (index, free) = memory.split_at_mut(budget.dims.nnz);
        let (value, free) = free.split_at_mut(budget.dims.nnz);
        Ok(Self { index, value: bytemuck::cast_slice_mut(value), free })
    }

    /// So many words.
    pub(super) fn take(&mut self, len: usize) -> &'a mut [u32] {
        let free = core::mem::take(&mut self.free);
        let (taken, free) = free.split_at_mut(len.min(free.len()));
        self.free = free;
        taken
    }
}

/// The weights of the result, what the search did, and memory that is free again.
pub(super) struct Found<'a> {
    pub(super) index: &'a mut [u32],
    value: &'a mut [f32],
    pub(super) count: Count,
    info: Info,
    pub(super) free: &'a mut [u32],
}

impl<'a> Found<'a> {
    /// The network, of this shape.
    pub(super) fn trained(self, shape: Shape) -> Trained<'a> {
        Trained {
            network: Network::cut(shape, self.index, self.value, self.count),
            info: self.info,
        }
    }
}

/// The search itself.
pub(super) fn search<'a, S: Sensing, H: Readout<S>>(
    sensing: &mut S,
    data: Data<'_, S, H>,
    setup: &Setup<'_>,
    start: Start<'_, Checkpoint<'_>>,
    memory: Memory<'a>,
    observe: impl FnMut(&Progress<'_>) -> bool,
) -> Result<Found<'a>, S::Source>
where
    for<'m> Model<'m, S, H>: Moves<S>,
{
    let Memory { index, value, free } = memory;
    let Setup { budget, shape, params, rows, tight } = *setup;
    let Recovery { dims, panel, scratch, outputs: c, .. } = budget;
    let (n, d, room, work) = (dims.samples, dims.inputs, budget.room(), budget.work());
    let mut space = Workspace::new(&mut *free);
    let mut floats = |len| space.floats(len).map_err(Error::widen);
    let mut vectors = || floats(room);
    let vectors = [vectors()?, vectors()?, vectors()?, vectors()?, vectors()?, vectors()?];
    let machine = sensing.machine();
    let rows_of = FitMemory {
        // One number a row and output, of which there is one where output weights are signs.
        residual: machine.rows_in(floats(n * c.max(1))?),
        vectors: Vectors::new(vectors),
        scratch: floats(scratch)?,
    };
    let columns = Columns::new(floats(d)?, floats(panel.saturating_mul(d + c))?);
    let (entries, dense) = (floats(d)?, floats(d)?);
    let (z, t) = (machine.rows_in(floats(n)?), machine.rows_in(floats(n)?));
    let back = floats(if c > 0 { n } else { 0 })?;
    let (out, along, other) = (floats(c)?, floats(c)?, floats(c)?);
    let values = [floats(room)?, floats(work)?, floats(work)?, floats(work)?];
    let (covered, weights) = if budget.is_wide() { (n, room) } else { (0, 0) };
    let (image, buffer) = (floats(covered)?, floats(weights)?);
    let mut indices = |len| space.indices(len).map_err(Error::widen);
    let cover = Cover::new(indices(covered)?, indices(covered)?, image, buffer);
    let mut sides = |len, value| indices(len).map(|index| Sides::new(shape, index, value));
    let [net, base, trial, best] = values;
    let (net, base) = (sides(room, net)?, sides(work, base)?);
    let (trial, best) = (sides(work, trial)?, sides(work, best)?);
    let mut fit = Fit::new(sensing, data, params, rows_of)?;
    if tight {
        fit.cover = cover;
    }
    let spare = if tight { 0 } else { params.spare };
    let model = Model {
        fit,
        net,
        columns,
        single: Single { entries: Entries::new(indices(d)?, entries), dense, z, t },
        out: OutputBuffers { entries: Entries::new(indices(c)?, out), along, other, back },
        task: Task { tight, ..Task::new(dims.nnz, dims.hidden, spare) },
    };
    let result = Sides::new(shape, &mut *index, &mut *value);
    let log = Log { observe, info: Info::default(), cut_off: false };
    let state = State::starting(0);
    let mut search = Search { model, base, trial, best, result, params: *params, state, log };
    let info = search.run(rows, start)?;
    let result = search.result.view();
    let count = Count { first: result.w().nnz(), all: result.nnz() };
    Ok(Found { index, value, count, info, free })
}
