//! What a run holds from step to step.

use super::checkpoint::{Checkpoint, State};
use crate::base::budget::{self, Training, Workspace};
use crate::base::error::{self, Result};
use crate::learn::iht::net::NetWork;
use crate::network::net::{Count, EntriesMut, Network, Shape};
use crate::network::sketch::CountSketch;
use crate::network::weights::check_pinned;
use crate::operator::machine::Machine;

/// A network in buffers of its own: entries of W and behind them those of Wt, each with indices of
/// its own matrix.
pub(super) struct Entries<'m> {
    index: &'m mut [u32],
    value: &'m mut [f32],
    count: Count,
}

impl<'m> Entries<'m> {
    pub(super) fn network(&self, shape: Shape) -> Network<'_> {
        Network::cut(shape, self.index, self.value, self.count)
    }

    pub(super) fn room(&mut self) -> EntriesMut<'_> {
        EntriesMut { index: self.index, value: self.value }
    }

    fn load(&mut self, from: &Network<'_>) {
        self.count = from.copy_to(self.room());
    }

    /// Takes over `len` entries in one index space, where Wt begins at `at`.
    fn split(&mut self, len: usize, at: usize) {
        let index = self.index.get_mut(..len).unwrap_or(&mut []);
        let first = index.partition_point(|&j| (j as usize) < at);
        for j in index.iter_mut().skip(first) {
            *j -= at as u32;
        }
        self.count = Count { first, all: len };
    }
}

/// The networks of a run, and the counters that rank their entries.
pub(super) struct Networks<'m> {
    pub(super) shape: Shape,
    pub(super) current: Entries<'m>,
    pub(super) next: Entries<'m>,
    /// The generators of gates that lag behind the weights, or for several outputs the best iterate of
    /// a safe run.
    pub(super) held: Entries<'m>,
    pub(super) sketch: Option<CountSketch<'m>>,
}

impl<'m> Networks<'m> {
    /// The current one.
    pub(super) fn network(&self) -> Network<'_> {
        self.current.network(self.shape)
    }

    pub(super) fn held(&self) -> Network<'_> {
        self.held.network(self.shape)
    }

    pub(super) fn into_network(self) -> Network<'m> {
        let Entries { index, value, count } = self.current;
        Network::cut(self.shape, index, value, count)
    }

    /// Holds a copy of the current one.
    pub(super) fn hold(&mut self) {
        self.held.load(&self.current.network(self.shape));
    }

    /// Back to the one that is held.
    pub(super) fn recall(&mut self) {
        self.current.load(&self.held.network(self.shape));
    }

    /// Turns to the next one, whose `len` entries have the indices of one vector.
    pub(super) fn advance(&mut self, len: usize) {
        self.next.split(len, self.shape.input_weights());
        core::mem::swap(&mut self.current, &mut self.next);
    }

    /// Back to no weights.
    pub(super) fn clear(&mut self) {
        (self.current.count, self.held.count) = (Count::default(), Count::default());
        self.forget();
    }

    /// Clears the sketch.
    pub(super) fn forget(&mut self) {
        if let Some(sketch) = &mut self.sketch {
            sketch.clear();
        }
    }

    pub(super) fn checkpoint(&self, state: State) -> Checkpoint<'_> {
        let sketch = self.sketch.as_ref().map_or(&[][..], CountSketch::counters);
        Checkpoint { state, net: self.network(), held: self.held(), sketch }
    }

    /// Becomes what a checkpoint holds, whose networks and counters must fit.
    pub(super) fn load(&mut self, from: &Checkpoint<'_>, must_keep: &[u32]) -> Result<()> {
        let Checkpoint { state, net, held, sketch } = from;
        net.check_shape(self.shape)?;
        held.check_shape(self.shape)?;
        error::range("weights of the checkpoint", net.nnz(), 0, self.current.index.len())?;
        error::range("other weights of the checkpoint", held.nnz(), 0, self.held.index.len())?;
        // A run starts from any weights, and one that was undone is without.
        if !state.is_first() && net.nnz() > 0 {
            check_pinned(net.w().index(), must_keep)?;
        }
        let counters = self.sketch.as_ref().map_or(0, |sketch| sketch.counters().len());
        error::length("counters of the checkpoint", sketch.len(), counters)?;
        error::finite("counters of the checkpoint", sketch)?;
        self.current.load(net);
        self.held.load(held);
        self.sketch.as_mut().map_or(Ok(()), |own| own.load(sketch))
    }
}

/// Networks without weights, and buffers, in `memory`.
pub(super) fn carve<'m, M: Machine>(
    machine: &mut M,
    shape: Shape,
    budget: &Training,
    seed: u64,
    memory: &'m mut [u32],
) -> Result<(Networks<'m>, NetWork<'m, M::Rows>)> {
    budget::enough(budget.words(), memory.len())?;
    let nnz = budget.dims.nnz;
    let third = if budget.third_network { nnz } else { 0 };
    let mut space = Workspace::new(memory);
    let mut entries = |len| {
        Ok(Entries {
            index: space.indices(len)?,
            value: space.floats(len)?,
            count: Count::default(),
        })
    };
    let (current, next, held) = (entries(nnz)?, entries(nnz)?, entries(third)?);
    let counters = space.floats(budget.sketch)?;
    let sketch = if counters.is_empty() { None } else { Some(CountSketch::new(counters, seed)?) };
    let work = NetWork {
        residual: machine.rows_in(space.floats(budget.residual_words())?),
        panel: space.floats(budget.panel_words())?,
        standin: EntriesMut {
            index: space.indices(budget.standin_entries())?,
            value: space.floats(budget.standin_entries())?,
        },
        scratch: space.floats(budget.scratch)?,
        strip: space.floats(budget.strip_words())?,
    };
    Ok((Networks { shape, current, next, held, sketch }, work))
}
