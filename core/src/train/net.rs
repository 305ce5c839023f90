//! Runs for networks of several outputs, both sides sparse under one budget.

mod schedule;
mod starts;

pub use schedule::{Goal, NetSchedule, Rank, Standin};

use super::{Checkpoint, Info, Progress, State};
use crate::budget::{self, Outputs, Workspace};
use crate::dims::Dims;
use crate::error::{self, Error, Result};
use crate::factored::{Factored, Net};
use crate::iht::{self, NetStep, NetStrips, NetWork};
use crate::math;
use crate::rng::batches;
use crate::sketch::CountSketch;
use core::ops::Range;

/// A finished run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NetTrained<'a> {
    /// Both sides.
    pub net: Net<'a>,
    /// What was done. Losses are those of [`Goal`]: mean squared error over rows and outputs, mean cross-entropy over
    /// rows.
    pub info: Info,
    /// Epochs that were undone.
    pub undone: u32,
}

/// Trains a network of several outputs by the published method, from zero to at most `nnz` nonzeros over both sides.
///
/// `memory` holds at least [`NetSchedule::budget`] words; `observe` is called after every step and ends the run by
/// returning `false`, and so does an operator that fails with [`Error::Stopped`]: the result is then that of the last
/// complete step, or the best iterate of a safe run.
///
/// # Errors
/// [`Error::Range`] for sizes, settings, weights that must be kept or labels out of bounds, [`Error::Unsorted`] where indices
/// that must be kept do not rise, [`Error::Length`] for labels that do not fit,
/// [`Error::NotFinite`] for labels that are no numbers, [`Error::Budget`] with the bytes needed and given,
/// [`Error::Diverged`] with the step where the weights leave the finite numbers and the run is not safe,
/// [`Error::Source`] if reading the data fails.
pub fn run_net<'a, S: Factored>(
    sensing: &mut S,
    goal: Goal<'_>,
    nnz: usize,
    schedule: &NetSchedule<'_>,
    memory: &'a mut [u32],
    observe: impl FnMut(&Progress<'_>) -> bool,
) -> Result<NetTrained<'a>, S::Source> {
    start(sensing, (goal, nnz), schedule, None, memory, observe)
}

/// Goes on from a checkpoint that a run with the same arguments has offered: the result and all counts are those that it
/// would have had, bit for bit, with an operator that has the same bits.
///
/// `observe` is first called with the step that the checkpoint is of, which it may end the run at, and then after every
/// further one. [`super::resume`] has an example for one output.
///
/// # Errors
/// As [`run_net`]; [`Error::Range`], [`Error::Length`] or [`Error::NotFinite`] for a checkpoint that does not fit.
pub fn resume_net<'a, S: Factored>(
    sensing: &mut S,
    goal: Goal<'_>,
    nnz: usize,
    schedule: &NetSchedule<'_>,
    from: &Checkpoint<'_>,
    memory: &'a mut [u32],
    observe: impl FnMut(&Progress<'_>) -> bool,
) -> Result<NetTrained<'a>, S::Source> {
    start(sensing, (goal, nnz), schedule, Some(from), memory, observe)
}

/// From the first step, or from a checkpoint, to the result.
fn start<'a, S: Factored>(
    sensing: &mut S,
    (goal, nnz): (Goal<'_>, usize),
    schedule: &NetSchedule<'_>,
    from: Option<&Checkpoint<'_>>,
    memory: &'a mut [u32],
    mut observe: impl FnMut(&Progress<'_>) -> bool,
) -> Result<NetTrained<'a>, S::Source> {
    let dims = Dims::new(sensing.rows(), sensing.inputs(), sensing.blocks(), nnz);
    let c = goal.outputs(dims.samples);
    schedule.check(&dims, c, &goal).map_err(Error::widen)?;
    let mut budget = schedule.budget(dims, c, sensing.panel(), 0);
    budget.scratch = sensing.net_scratch(budget.strip);
    budget::enough(budget.words(), memory.len()).map_err(Error::widen)?;
    let (mut state, mut work) = carve(&budget, schedule.seed, memory).map_err(Error::widen)?;
    let mut run = Run::new(&goal, schedule, &budget);
    if let Some(from) = from {
        run.load(from, &mut state).map_err(Error::widen)?;
    }
    run.starts(sensing, &mut state, &mut work, &mut observe)?;
    run.train(sensing, &mut state, &mut work, &mut observe)?;
    let loss = run.loss(sensing, &state, &mut work)?;
    let net = state.into_net();
    let info = Info {
        steps: run.at.step - run.at.tried,
        epochs: run.at.epoch,
        loss,
        nnz: net.nnz(),
        live: net.w().blocks().count(),
        passes: run.at.passes + 1.0,
        trials: run.at.trials,
        stopped: run.stopped,
    };
    Ok(NetTrained { net, info, undone: run.at.undone })
}

/// Iterate, next iterate, best iterate.
struct Iterates<'a> {
    sizes: (usize, usize, usize),
    current: Sparse<'a>,
    next: Sparse<'a>,
    best: Sparse<'a>,
    sketch: Option<CountSketch<'a>>,
}

/// Entries of W and behind them those of Wt, each with indices of its own matrix.
struct Sparse<'a> {
    index: &'a mut [u32],
    value: &'a mut [f32],
    first: usize,
    len: usize,
}

impl Sparse<'_> {
    fn copy_from(&mut self, other: &Sparse<'_>) {
        self.index.copy_from_slice(other.index);
        self.value.copy_from_slice(other.value);
        (self.first, self.len) = (other.first, other.len);
    }

    /// The entries as a network of (d, m, c).
    fn net(&self, sizes: (usize, usize, usize)) -> Net<'_> {
        Net::cut(sizes, (self.index, self.value), (self.first, self.len))
    }

    /// Becomes a copy of a network that fits.
    fn load(&mut self, from: Net<'_>) {
        let sides = [from.w(), from.wt()];
        let indices = sides.iter().flat_map(|side| side.index());
        self.index.iter_mut().zip(indices).for_each(|(to, from)| *to = *from);
        let values = sides.iter().flat_map(|side| side.value());
        self.value.iter_mut().zip(values).for_each(|(to, from)| *to = *from);
        (self.first, self.len) = (from.w().nnz(), from.nnz());
    }

    /// Takes over `len` entries in one index space, where Wt begins at `at`.
    fn split(&mut self, len: usize, at: usize) {
        let index = self.index.get_mut(..len).unwrap_or(&mut []);
        self.first = index.partition_point(|&j| (j as usize) < at);
        for j in index.iter_mut().skip(self.first) {
            *j -= at as u32;
        }
        self.len = len;
    }
}

impl<'a> Iterates<'a> {
    fn net(&self) -> Net<'_> {
        self.current.net(self.sizes)
    }

    /// What a checkpoint holds of it.
    fn checkpoint(&self, state: State) -> Checkpoint<'_> {
        let (net, held) = (self.net(), self.best.net(self.sizes));
        Checkpoint { state, net, held, sketch: self.sketch.as_ref().map_or(&[], CountSketch::counters) }
    }

    /// Becomes what a checkpoint holds.
    fn load(&mut self, from: &Checkpoint<'_>, must_keep: &[u32]) -> Result<()> {
        let counters = self.sketch.as_ref().map_or(0, |sketch| sketch.counters().len());
        from.check(self.sizes, (self.current.index.len(), self.best.index.len(), counters), must_keep)?;
        self.current.load(from.net);
        self.best.load(from.held);
        self.sketch.as_mut().map_or(Ok(()), |sketch| sketch.load(from.sketch))
    }

    fn into_net(self) -> Net<'a> {
        let Sparse { index, value, first, len } = self.current;
        Net::cut(self.sizes, (index, value), (first, len))
    }
}

fn carve<'a>(budget: &Outputs, seed: u64, memory: &'a mut [u32]) -> Result<(Iterates<'a>, NetWork<'a>)> {
    let mut space = Workspace::new(memory);
    let mut sparse =
        |len| Ok(Sparse { index: space.indices(len)?, value: space.floats(len)?, first: 0, len: 0 });
    let s = budget.dims.nnz;
    let (current, next, best) = (sparse(s)?, sparse(s)?, sparse(if budget.safe { s } else { 0 })?);
    let counters = space.floats(budget.sketch)?;
    let sketch = if counters.is_empty() { None } else { Some(CountSketch::new(counters, seed)?) };
    let panel = budget.panel_words();
    let work = NetWork {
        residual: space.floats(budget.strip.saturating_mul(budget.outputs))?,
        panel: space.floats(panel)?,
        standin: (space.indices(panel)?, space.floats(panel)?),
        scratch: space.floats(budget.scratch)?,
    };
    let sizes = (budget.dims.inputs, budget.dims.hidden, budget.outputs);
    Ok((Iterates { sizes, current, next, best, sketch }, work))
}

/// Counts of one call of [`run_net`].
struct Run<'g> {
    goal: &'g Goal<'g>,
    schedule: &'g NetSchedule<'g>,
    /// All rows.
    all: usize,
    /// The rows that are trained on now, and those of a batch of them.
    rows: usize,
    batch: usize,
    /// What random values and the batches' order are drawn from now.
    seed: u64,
    strip: usize,
    outputs: usize,
    /// Where it stands; the best loss is the least after an epoch, infinite as long as there are no weights to come back to.
    at: State,
    stopped: bool,
    /// Whether steps go on whatever the observer says: those of the best start after the run was ended.
    deaf: bool,
    /// Whether it goes on from a checkpoint and has not shown that yet.
    resumed: bool,
}

impl<'g> Run<'g> {
    /// An epoch that ends with so many times the least loss has diverged.
    const DIVERGED: f32 = 2.0;
    /// Factor on the step size then.
    const SHORTER: f32 = 0.25;

    fn new(goal: &'g Goal<'g>, schedule: &'g NetSchedule<'g>, budget: &Outputs) -> Self {
        let (rows, batch) = (budget.dims.samples, budget.batch);
        Self {
            goal,
            schedule,
            all: rows,
            rows,
            batch,
            seed: schedule.seed,
            strip: budget.strip,
            outputs: budget.outputs,
            at: State { step_size: schedule.step_size, ..State::START },
            stopped: false,
            deaf: false,
            resumed: false,
        }
    }

    /// Steps of the whole run at the most.
    fn steps(&self) -> u32 {
        self.schedule.trials.steps(self.schedule.epochs, (self.all, self.schedule.batch))
    }

    /// Goes on from a checkpoint.
    fn load(&mut self, from: &Checkpoint<'_>, state: &mut Iterates<'_>) -> Result<()> {
        let at = from.state;
        at.check(&self.schedule.trials, self.schedule.epochs, (self.all, self.schedule.batch))?;
        error::range("trials of the checkpoint", at.trials as usize, 0, self.schedule.trials.count as usize)?;
        error::range("steps in trials of the checkpoint", at.tried as usize, 0, at.step as usize)?;
        state.load(from, self.schedule.must_keep)?;
        (self.at, self.resumed) = (at, true);
        Ok(())
    }

    fn train<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &mut Iterates<'_>,
        work: &mut NetWork<'_>,
        observe: &mut impl FnMut(&Progress<'_>) -> bool,
    ) -> Result<(), S::Source> {
        if self.schedule.safe && !self.resumed {
            self.at.zero = self.loss(sensing, state, work)?;
            if state.net().is_live() {
                // From the weights of a trial: what there is to come back to.
                self.at.best = self.at.zero;
                state.best.copy_from(&state.current);
            }
        }
        for epoch in self.at.epoch..self.schedule.epochs {
            self.at.epoch = epoch;
            match self.epoch(sensing, state, work, observe) {
                Err(Error::Stopped) => {
                    self.stopped = true;
                    if self.schedule.safe {
                        self.judge(sensing, state, work)?;
                    }
                }
                Err(Error::Diverged { .. }) if self.schedule.safe => self.undo(state),
                Err(Error::Diverged { .. }) => {
                    return Err(Error::Diverged { step: self.at.step as usize });
                }
                Err(error) => return Err(error),
                Ok(()) if self.schedule.safe => self.judge(sensing, state, work)?,
                Ok(()) => {}
            }
            (self.at.epoch, self.at.batch) = (epoch + u32::from(self.at.batch > 0 || !self.stopped), 0);
            if self.stopped {
                break;
            }
        }
        if self.schedule.safe {
            state.current.copy_from(&state.best);
        }
        Ok(())
    }

    /// The steps of an epoch from where the run stands, until the observer ends the run.
    fn epoch<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &mut Iterates<'_>,
        work: &mut NetWork<'_>,
        observe: &mut impl FnMut(&Progress<'_>) -> bool,
    ) -> Result<(), S::Source> {
        if core::mem::take(&mut self.resumed) {
            self.tell(state, f32::NAN, observe);
        }
        let (epoch, done) = (self.at.epoch, self.at.batch as usize);
        let order = batches(self.seed, epoch, self.rows, self.batch).enumerate();
        for (position, rows) in order.skip(done) {
            if self.stopped {
                break;
            }
            let standin = match self.schedule.standin {
                Standin::FirstEpoch => epoch == 0,
                Standin::EveryEpoch => position == 0,
            };
            // A run that was undone to its start begins like one.
            let standin = standin || !state.net().is_live();
            let done = rows.len();
            let loss = self.step(sensing, state, work, rows, standin)?;
            self.at.step = self.at.step.saturating_add(1);
            self.at.batch += 1;
            self.at.passes += self.reads(sensing, done) * done as f32 / self.all as f32;
            self.tell(state, loss / done as f32 / self.terms(), observe);
        }
        Ok(())
    }

    /// Shows the observer where the run stands. Not inlined, so that what it shows is on the stack for that time only.
    #[inline(never)]
    fn tell(&mut self, state: &Iterates<'_>, loss: f32, observe: &mut impl FnMut(&Progress<'_>) -> bool) {
        let progress = Progress {
            step: self.at.step,
            steps: self.steps(),
            loss,
            step_size: self.at.step_size,
            nnz: state.current.len,
            live: state.net().w().blocks().count(),
            passes: self.at.passes,
            trial: self.at.started(),
            checkpoint: (!self.stopped && !self.deaf).then(|| state.checkpoint(self.at)),
            ..Progress::NONE
        };
        self.stopped |= !observe(&progress) && !self.deaf;
    }

    /// One step on a batch; the sum of the losses of its rows before it.
    fn step<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &mut Iterates<'_>,
        work: &mut NetWork<'_>,
        rows: Range<usize>,
        standin: bool,
    ) -> Result<f32, S::Source> {
        self.at.round = self.at.round.wrapping_add(sensing.blocks() as u32 + 1);
        let n = rows.len();
        let loss = self.sum_of_losses(sensing, state, work, rows.clone())?;
        let residual = work.residual.get_mut(..n.min(self.strip) * self.outputs).unwrap_or(&mut []);
        math::scale(1.0 / n as f32, residual);
        let Iterates { sizes, current, next, sketch, .. } = state;
        let net = Net::cut(*sizes, (current.index, current.value), (current.first, current.len));
        if let (Some(sketch), Rank::Sketch { decay }) = (sketch.as_mut(), self.schedule.rank)
            && decay != 1.0
        {
            sketch.decay(decay);
        }
        let how = NetStep {
            step_size: self.at.step_size,
            standin: standin.then_some(self.seed),
            sketch: sketch.as_mut(),
            round: self.at.round,
            must_keep: self.schedule.must_keep,
        };
        let mut batch = NetWork {
            residual,
            panel: &mut *work.panel,
            standin: (&mut *work.standin.0, &mut *work.standin.1),
            scratch: &mut *work.scratch,
        };
        let (goal, round, c) = (self.goal, self.at.round, self.outputs);
        let mut again = |sensing: &mut S, rows: Range<usize>, out: &mut [f32], scratch: &mut [f32]| {
            sensing.net_forward(net.gates(round), net, out, scratch)?;
            goal.residual(rows, c, out).map_err(Error::widen)?;
            math::scale(1.0 / n as f32, out);
            Ok(())
        };
        let strips = (n > self.strip).then_some(NetStrips { rows, residual: &mut again });
        let next_entries = (&mut *next.index, &mut *next.value);
        let len = iht::step_net(sensing, net, how, strips, next_entries, &mut batch)?;
        next.split(len, sizes.0 * sizes.1);
        core::mem::swap(current, next);
        Ok(loss)
    }

    /// The sum of the losses of `rows`, which are selected in the end. Their residual is left in the buffer where there is room.
    fn sum_of_losses<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &Iterates<'_>,
        work: &mut NetWork<'_>,
        rows: Range<usize>,
    ) -> Result<f32, S::Source> {
        if rows.len() <= self.strip {
            return self.residual(sensing, state, work, rows);
        }
        let mut sum = math::Sum::default();
        for start in rows.clone().step_by(self.strip) {
            sum.add(self.residual(sensing, state, work, start..(start + self.strip).min(rows.end))?);
        }
        sensing.select(rows)?;
        Ok(sum.value())
    }

    /// Leaves the residual of `rows` in the buffer; the sum of their losses.
    fn residual<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &Iterates<'_>,
        work: &mut NetWork<'_>,
        rows: Range<usize>,
    ) -> Result<f32, S::Source> {
        let out = work.residual.get_mut(..rows.len() * self.outputs).unwrap_or(&mut []);
        sensing.select(rows.clone())?;
        let net = state.net();
        sensing.net_forward(net.gates(self.at.round), net, out, work.scratch)?;
        let loss = self.goal.residual(rows, self.outputs, out).map_err(Error::widen)?;
        if loss.is_finite() { Ok(loss) } else { Err(Error::Diverged { step: 0 }) }
    }

    /// After an epoch of a safe run: keeps what is best so far, or goes back to it.
    fn judge<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &mut Iterates<'_>,
        work: &mut NetWork<'_>,
    ) -> Result<(), S::Source> {
        let loss = match self.loss(sensing, state, work) {
            Err(Error::Diverged { .. }) => f32::INFINITY,
            loss => loss?,
        };
        self.at.passes += 1.0;
        let most = Self::DIVERGED * self.at.best.min(self.at.zero);
        if loss.is_nan() || loss > most {
            self.undo(state);
        } else if loss < self.at.best {
            self.at.best = loss;
            state.best.copy_from(&state.current);
        }
        Ok(())
    }

    /// Back to the best iterate, with shorter steps.
    fn undo(&mut self, state: &mut Iterates<'_>) {
        self.at.undone = self.at.undone.saturating_add(1);
        self.at.step_size *= Self::SHORTER;
        state.current.copy_from(&state.best);
        if let Some(sketch) = &mut state.sketch {
            sketch.clear();
        }
    }

    /// [`Self::mean_loss`], which a run that ends needs all the same.
    fn loss<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &Iterates<'_>,
        work: &mut NetWork<'_>,
    ) -> Result<f32, S::Source> {
        error::insist(self, |run| run.stopped = true, |run| run.mean_loss(sensing, state, work))
    }

    /// Mean loss over all rows.
    fn mean_loss<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &Iterates<'_>,
        work: &mut NetWork<'_>,
    ) -> Result<f32, S::Source> {
        self.at.round = self.at.round.wrapping_add(1);
        let mut total = math::Sum::default();
        for start in (0..self.rows).step_by(self.strip) {
            let rows = start..(start + self.strip).min(self.rows);
            total.add(self.residual(sensing, state, work, rows)?);
        }
        sensing.select(0..self.rows)?;
        Ok(total.value() / self.rows as f32 / self.terms())
    }

    /// Numbers a row over which a loss is a mean.
    const fn terms(&self) -> f32 {
        match self.goal {
            Goal::Values(_) => self.outputs as f32,
            Goal::Classes(..) => 1.0,
        }
    }

    /// Reads of a batch of `rows` rows that a step takes: the outputs and the gradient, once more for the values behind a sketch;
    /// in strips the outputs again with every panel.
    fn reads<S: Factored>(&self, sensing: &S, rows: usize) -> f32 {
        let gradients = match self.schedule.rank {
            Rank::Exact => 1.0,
            Rank::Sketch { .. } => 2.0,
        };
        let panels = sensing.blocks().div_ceil(sensing.panel().max(1));
        let again = if rows > self.strip { panels as f32 } else { 0.0 };
        1.0 + gradients * (1.0 + again)
    }
}
