//! What a run keeps from step to step, and the step itself.

use super::{Checkpoint, Refresh, Schedule, State};
use crate::budget::{self, Training, Workspace};
use crate::error::{Error, Result};
use crate::factored::Net;
use crate::gates::Gates;
use crate::sensing::{Sensing, Strips, Work};
use crate::weights::{Weights, runs};
use crate::{iht, loss};
use core::ops::Range;

/// The state of a run: iterate, next iterate, and the generators where they lag behind.
pub(super) struct Iterates<'a, 'k> {
    pub(super) schedule: Schedule<'k>,
    pub(super) inputs: usize,
    hidden: usize,
    current: (&'a mut [u32], &'a mut [f32]),
    next: (&'a mut [u32], &'a mut [f32]),
    lagging: (&'a mut [u32], &'a mut [f32]),
    pub(super) len: usize,
    lagging_len: usize,
    round: u32,
    since_refresh: u32,
}

impl<'a> Iterates<'a, '_> {
    /// Back to no weights and random gates.
    pub(super) fn clear(&mut self) {
        (self.len, self.lagging_len, self.since_refresh, self.round) = (0, 0, 0, 0);
    }

    pub(super) fn weights(&self) -> Weights<'_> {
        Weights::cut((self.inputs, self.hidden), (self.current.0, self.current.1), 0..self.len)
    }

    /// Whether a weight is not 0.
    pub(super) fn is_live(&self) -> bool {
        self.weights().is_live()
    }

    /// Neurons that have weights.
    pub(super) fn live(&self) -> usize {
        runs(self.inputs, self.current.0.get(..self.len).unwrap_or(&[])).count()
    }

    pub(super) fn into_weights(self) -> Weights<'a> {
        Weights::cut((self.inputs, self.hidden), (self.current.0, self.current.1), 0..self.len)
    }

    /// What a checkpoint holds of it.
    pub(super) fn checkpoint(&self, state: State) -> Checkpoint<'_> {
        let lagging = (&*self.lagging.0, &*self.lagging.1);
        Checkpoint {
            state: State { round: self.round, since_refresh: self.since_refresh, ..state },
            net: Net::single(self.weights()),
            held: Net::single(Weights::cut((self.inputs, self.hidden), lagging, 0..self.lagging_len)),
            sketch: &[],
        }
    }

    /// Becomes what a checkpoint holds.
    pub(super) fn load(&mut self, from: &Checkpoint<'_>) -> Result<()> {
        let rooms = (self.current.0.len(), self.lagging.0.len(), 0);
        from.check((self.inputs, self.hidden, 0), rooms, self.schedule.params.must_keep)?;
        self.len = store(&mut self.current, from.net.w());
        self.lagging_len = store(&mut self.lagging, from.held.w());
        (self.round, self.since_refresh) = (from.state.round, from.state.since_refresh);
        Ok(())
    }

    /// One step with the gates that are due, and the swap to the new weights.
    pub(super) fn step<S: Sensing>(
        &mut self,
        sensing: &mut S,
        (labels, rows): (&[f32], Range<usize>),
        schedule: &Schedule<'_>,
        convex: bool,
        work: &mut Work<'_>,
    ) -> Result<iht::Info, S::Source> {
        self.refresh(schedule, convex);
        let gates = gates(
            schedule,
            (self.inputs, self.hidden),
            (self.current.0, self.current.1, self.len),
            (self.lagging.0, self.lagging.1, self.lagging_len),
            self.round,
        );
        let w = Weights::cut((self.inputs, self.hidden), (self.current.0, self.current.1), 0..self.len);
        let residual_len = work.residual.len();
        let mut batch = Work {
            residual: work.residual.get_mut(..labels.len().min(residual_len)).unwrap_or(&mut []),
            panel: &mut *work.panel,
            scratch: &mut *work.scratch,
            strips: match &mut work.strips {
                Some(strips) if rows.len() > residual_len => Some(Strips { rows, part: &mut *strips.part }),
                _ => None,
            },
        };
        let next = (&mut *self.next.0, &mut *self.next.1);
        let info = iht::step(sensing, gates, labels, w, &schedule.params, next, &mut batch)?;
        core::mem::swap(&mut self.current, &mut self.next);
        self.len = info.nnz;
        Ok(info)
    }

    /// Renews the gates where that is due; `round` 0 means that they are still random.
    fn refresh(&mut self, schedule: &Schedule<'_>, convex: bool) {
        let Refresh::Every(every) = schedule.refresh else { return };
        if convex || (self.round > 0 && self.since_refresh.saturating_add(1) < every) {
            self.since_refresh = self.since_refresh.saturating_add(1);
            return;
        }
        self.round = self.round.wrapping_add(1);
        self.since_refresh = 0;
        if every > 1 {
            self.lagging.0.copy_from_slice(self.current.0);
            self.lagging.1.copy_from_slice(self.current.1);
            self.lagging_len = self.len;
        }
    }

    /// Mean squared error over all rows with the final gates, and the passes that took.
    pub(super) fn loss<S: Sensing>(
        &self,
        sensing: &mut S,
        labels: &[f32],
        schedule: &Schedule<'_>,
        work: &mut Work<'_>,
    ) -> Result<(f32, f32), S::Source> {
        let batch = budget::batch(schedule.batch, labels.len()).min(work.residual.len()).max(1);
        let w = self.weights();
        let gates = match schedule.refresh {
            Refresh::Never => Gates::seeded(schedule.seed),
            Refresh::Every(_) => {
                Gates::of(w, schedule.signs, schedule.empty, schedule.seed, self.round.wrapping_add(1))
            }
        };
        let mut total = crate::math::Sum::default();
        for start in (0..labels.len()).step_by(batch) {
            let rows = start..(start + batch).min(labels.len());
            let labels = labels.get(rows.clone()).unwrap_or(&[]);
            let out = work.residual.get_mut(..labels.len()).unwrap_or(&mut []);
            sensing.select(rows)?;
            sensing.forward(gates, w, out)?;
            total.add(loss::square(labels, out).map_err(Error::widen)?);
        }
        sensing.select(0..labels.len())?;
        let loss = total.value() / labels.len() as f32;
        if loss.is_finite() { Ok((loss, 1.0)) } else { Err(Error::Diverged { step: 0 }) }
    }
}

/// Copies weights into buffers; how many.
fn store((index, value): &mut (&mut [u32], &mut [f32]), from: Weights<'_>) -> usize {
    index.iter_mut().zip(from.index()).for_each(|(to, from)| *to = *from);
    value.iter_mut().zip(from.value()).for_each(|(to, from)| *to = *from);
    from.nnz()
}

type Sparse<'a> = (&'a [u32], &'a [f32], usize);

fn gates<'a>(
    schedule: &Schedule<'_>,
    (inputs, hidden): (usize, usize),
    current: Sparse<'a>,
    lagging: Sparse<'a>,
    round: u32,
) -> Gates<'a> {
    if round == 0 {
        return Gates::seeded(schedule.seed);
    }
    let (index, value, len) =
        if matches!(schedule.refresh, Refresh::Every(r) if r > 1) { lagging } else { current };
    let generators = Weights::cut((inputs, hidden), (index, value), 0..len);
    Gates::of(generators, schedule.signs, schedule.empty, schedule.seed, round)
}

pub(super) fn carve<'a, 'k>(
    budget: &Training,
    schedule: &Schedule<'k>,
    memory: &'a mut [u32],
) -> Result<(Iterates<'a, 'k>, Work<'a>)> {
    budget::enough(budget.words(), memory.len())?;
    let mut space = Workspace::new(memory);
    let s = budget.dims.nnz;
    let lagging = if budget.lagging_gates { s } else { 0 };
    let state = Iterates {
        schedule: *schedule,
        inputs: budget.dims.inputs,
        hidden: budget.dims.hidden,
        current: (space.indices(s)?, space.floats(s)?),
        next: (space.indices(s)?, space.floats(s)?),
        lagging: (space.indices(lagging)?, space.floats(lagging)?),
        len: 0,
        lagging_len: 0,
        round: 0,
        since_refresh: 0,
    };
    let work = Work {
        residual: space.floats(budget.strip)?,
        panel: space.floats(budget.panel_words())?,
        scratch: space.floats(budget.scratch)?,
        strips: match budget.part_words() {
            0 => None,
            words => Some(Strips { rows: 0..budget.batch, part: space.floats(words)? }),
        },
    };
    Ok((state, work))
}
