//! The recipe for classification: softmax cross-entropy on an annealed support.
//!
//! The network is `yhat = sum_i relu(w_i·x) wt_i^T` ([`crate::factored`]); s counts the nonzeros of both sides. Its c outputs
//! are those of c classes, or one is the log-odds of class 1 against class 0 ([`crate::loss::cross_entropy`]). Adam
//! runs on a support whose entries are all the state there is: nothing of the dense network's size exists.
//!
//! ```text
//! every step      one batch: Adam on the support, cosine learning rate after a linear warm-up
//! every R steps   drop  the entries of least |theta| sqrt(v)
//!                 clear neurons that have lost one side
//!                 grow  the entries of largest |gradient| / size of what they multiply, streamed panel by panel
//! the support     starts at `start_factor` s entries, shrinks cubically to s, is settled for the last part
//! ```
//!
//! # What is given
//!
//! A run that comes to its end gives the last iterate, or where rows are held out the one of least loss on them among those
//! at the ends of epochs on the settled support. A run that is ended before gives
//!
//! * while the support is larger than s, the s most important entries of the last complete step;
//! * once it has shrunk to s, the best on the rows held out: of the last complete step and of those at the ends of epochs
//!   since then, where the first support had 2 s entries or more, so that there is room behind the support for the indices
//!   of the best one; otherwise of those at the ends of epochs on the settled support, and before, the last complete step;
//! * without rows held out, the last complete step.
//!
//! # Checkpoints
//!
//! After every step the observer is offered a [`Checkpoint`], a view of the state. [`resume`] goes on from one, to the bits
//! that the run would have given.
//!
//! A run takes 20 bytes for each of the first support's `start_factor` s entries, 4 s for the best iterate where rows are
//! held out, and 4 (n c + p (d + c) + d) for the residual of a batch of n rows, a panel of p neurons and the columns'
//! scales, besides the operator's scratch ([`crate::budget::Annealing`]). A factor of 1 is for parts.
//!
//! Entries are dropped by what they are worth: `theta² v` is, up to a factor, the loss that their removal adds by the
//! diagonal of the Fisher information, of which v is Adam's running estimate. They grow by their gradient over the
//! size of what they multiply.
//!
//! Weights that must be kept ([`Params::must_keep`]) are in the first support, are never dropped, and stay in the result with
//! the value that they have, which may be 0. A neuron of which only such weights are left keeps them: they say nothing until it
//! grows a weight to an output again.
//!
//! Inputs of any range: [`Params::input_scale`] is the factor that brings them to about 1, and weights and gradients of
//! the first layer are measured in those units. The weights themselves stay in units of the inputs, so there is nothing
//! to undo at the end.

mod checkpoint;
mod params;
mod schedule;
mod state;

pub use checkpoint::{Checkpoint, State};
pub use params::Params;

use crate::budget::Annealing;
use crate::dims::Dims;
use crate::error::{self, Error, Result};
use crate::factored::{Factored, Net};
use crate::loss;
use crate::math;
use crate::rng::{self, batches, stream};
use core::ops::Range;
use schedule::Schedule;
use state::{Buffers, Support, Units, carve};

/// What an observer sees after each step.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// Steps done.
    pub step: u32,
    /// Steps of the whole run, at the most.
    pub steps: u32,
    /// Steps of an epoch.
    pub epoch_steps: u32,
    /// Mean cross-entropy on the batch before the last step; no number (NaN) in the first call of a run that goes on from a
    /// checkpoint.
    pub loss: f32,
    /// Learning rate of the last step.
    pub rate: f32,
    /// Entries of the support.
    pub nnz: usize,
    /// Neurons that have weights from the inputs.
    pub live: usize,
    /// Rows read so far: a product with a row, forward or back, is one. Steps, growth and evaluations count.
    pub rows_read: u64,
    /// Loss and accuracy at the last evaluation on the validation rows.
    pub validation: Option<Held>,
    /// Where the run stands; none once it is being ended.
    pub checkpoint: Option<Checkpoint<'a>>,
}

/// A score on some rows.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Held {
    /// Mean cross-entropy.
    pub loss: f32,
    /// Rows whose outputs say their label ([`loss::class`]).
    pub right: usize,
    /// Rows.
    pub rows: usize,
}

impl Held {
    /// Part of the rows that is right.
    #[must_use]
    pub fn accuracy(&self) -> f32 {
        self.right as f32 / self.rows.max(1) as f32
    }
}

/// What a run did.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Info {
    /// Steps done.
    pub steps: u32,
    /// Epochs done, the last one perhaps in part.
    pub epochs: u32,
    /// The result on the training rows.
    pub training: Held,
    /// The result on the validation rows; none without such rows, and none where the run ended before there was a best
    /// iterate on them.
    pub validation: Option<Held>,
    /// Entries that the run started with.
    pub start: usize,
    /// Nonzeros of both sides. Weights that must be kept count where they are 0 too.
    pub nnz: usize,
    /// Neurons that have weights on both sides, and those that have only such as must be kept.
    pub live: usize,
    /// As [`Progress::rows_read`], with the scores of the result.
    pub rows_read: u64,
    /// Whether the observer or the operator ended the run.
    pub stopped: bool,
    /// Whether the run ended early for want of progress on the validation rows.
    pub early: bool,
}

/// A finished run: the network, borrowed from the memory it was given, and what was done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trained<'a> {
    /// Both sides.
    pub net: Net<'a>,
    /// What was done.
    pub info: Info,
}

/// Trains a classifier of `nnz` nonzero weights over both sides.
///
/// `labels` are classes from 0 to `outputs - 1`, or 0 and 1 for one output. `memory` holds at least [`Params::budget`]
/// words; `observe` is called after every step and ends the run by returning `false`; [the module](self) says what is then
/// the result. An operator that fails with [`Error::Stopped`] ends it too, within the step, which then has not been. A
/// change of the support that was begun is undone, and after one that was done the step of its batch is made. For this and
/// for the final scores the operator must work on after it has stopped once.
///
/// The result has exactly s nonzeros unless fewer weights than that can change the loss (columns that are zero on all
/// rows, neurons that are closed on all rows), or the run was ended.
///
/// # Errors
/// [`Error::Range`] for a size or a label out of bounds, [`Error::Length`] for labels that do not fit,
/// [`Error::NotFinite`] for parameters that are no numbers, [`Error::Budget`] with the bytes needed and given,
/// [`Error::Diverged`] with the step, [`Error::Stopped`] if the operator stopped before the first step was done,
/// [`Error::Source`] if reading the data fails.
pub fn run<'a, S: Factored>(
    sensing: &mut S,
    labels: &[u16],
    outputs: usize,
    nnz: usize,
    params: &Params<'_>,
    memory: &'a mut [u32],
    observe: impl FnMut(&Progress<'_>) -> bool,
) -> Result<Trained<'a>, S::Source> {
    start(sensing, (labels, outputs, nnz), params, None, memory, observe)
}

/// Goes on from a checkpoint that a run with the same arguments has offered: the result and all counts are those that it
/// would have had, bit for bit, with an operator that has the same bits.
///
/// `observe` is first called with the step that the checkpoint is of, which it may end the run at, and then after every
/// further one.
///
/// # Errors
/// As [`run`]; [`Error::Range`], [`Error::Length`] or [`Error::NotFinite`] for a checkpoint that does not fit.
///
/// ```
/// use tamis::{anneal::{self, Params, State}, budget, factored::{Factored, Net}, gated::Gated, samples::Rows, weights::Weights};
/// // Class 1 where the second input is the larger one.
/// let x: [f32; 80] = core::array::from_fn(|e| ((e * 37 + e / 2) % 17) as f32 / 16.0);
/// let labels: [u16; 40] = core::array::from_fn(|k| u16::from(x[2 * k + 1] > x[2 * k]));
/// let params = Params { epochs: 30, batch: 10, start_factor: 1.0, ..Params::DEFAULT };
/// let mut rows = [0.0; budget::gated_words(2, 3)];
/// let mut sensing = Gated::new(Rows::new(&x, 2).unwrap(), 3, 1, &mut rows).unwrap();
/// let (mut memory, mut other) = ([0; 512], [0; 512]);
/// // A run whose state after step 50 is kept.
/// let (mut words, mut index, mut values, mut len) = ([0; State::WORDS], [0; 8], [[0.0; 8]; 3], (0, 0));
/// let whole = anneal::run(&mut sensing, &labels, 2, 8, &params, &mut memory, |progress| {
///     if let (50, Some(at)) = (progress.step, progress.checkpoint) {
///         words = at.state.to_words();
///         len = (at.net.w().nnz(), at.net.nnz());
///         index[..len.0].copy_from_slice(at.net.w().index());
///         index[len.0..len.1].copy_from_slice(at.net.wt().index());
///         values[0][..len.0].copy_from_slice(at.net.w().value());
///         values[0][len.0..len.1].copy_from_slice(at.net.wt().value());
///         values[1][..len.1].copy_from_slice(at.mean);
///         values[2][..len.1].copy_from_slice(at.square);
///     }
///     true
/// }).unwrap();
/// let w = Weights::new(2, 3, &index[..len.0], &values[0][..len.0]).unwrap();
/// let wt = Weights::new(2, 3, &index[len.0..len.1], &values[0][len.0..len.1]).unwrap();
/// let from = anneal::Checkpoint {
///     state: State::from_words(&words).unwrap(),
///     net: Net::new(w, wt).unwrap(),
///     mean: &values[1][..len.1],
///     square: &values[2][..len.1],
///     best: Net::empty(2, 3, 2),
/// };
/// let rest = anneal::resume(&mut sensing, &labels, 2, 8, &params, &from, &mut other, |_| true).unwrap();
/// assert_eq!((rest.net, rest.info), (whole.net, whole.info));
/// ```
#[allow(clippy::too_many_arguments, reason = "those of a run, and where it goes on")]
pub fn resume<'a, S: Factored>(
    sensing: &mut S,
    labels: &[u16],
    outputs: usize,
    nnz: usize,
    params: &Params<'_>,
    from: &Checkpoint<'_>,
    memory: &'a mut [u32],
    observe: impl FnMut(&Progress<'_>) -> bool,
) -> Result<Trained<'a>, S::Source> {
    start(sensing, (labels, outputs, nnz), params, Some(from), memory, observe)
}

/// From the first step, or from a checkpoint, to the result.
fn start<'a, S: Factored>(
    sensing: &mut S,
    (labels, outputs, nnz): (&[u16], usize, usize),
    params: &Params<'_>,
    from: Option<&Checkpoint<'_>>,
    memory: &'a mut [u32],
    mut observe: impl FnMut(&Progress<'_>) -> bool,
) -> Result<Trained<'a>, S::Source> {
    let dims = Dims::new(sensing.rows(), sensing.inputs(), sensing.blocks(), nnz);
    params.check(&dims, labels, outputs).map_err(Error::widen)?;
    let mut budget = params.budget(dims, outputs, sensing.panel(), 0);
    budget.scratch = sensing.net_scratch(budget.batch);
    let (mut state, mut work) = carve(&budget, memory).map_err(Error::widen)?;
    let mut run = Run::new(params, &budget, labels);
    run.column_scales(sensing, &mut work)?;
    match from {
        None => state.start(params, &run.units(work.columns)).map_err(Error::widen)?,
        Some(from) => run.load(from, &mut state).map_err(Error::widen)?,
    }
    match run.train(sensing, &mut state, &mut work, from.is_some(), &mut observe) {
        Err(Error::Stopped) if run.at.step > 0 => run.stopped = true,
        done => done?,
    }
    let info = run.finish(sensing, &mut state, &mut work)?;
    Ok(Trained { net: state.into_net(), info })
}

/// What stays the same over a run, and its counts.
struct Run<'p> {
    params: &'p Params<'p>,
    labels: &'p [u16],
    outputs: usize,
    nnz: usize,
    start: usize,
    /// Rows trained on, the first ones.
    rows: usize,
    batch: usize,
    steps: u32,
    /// Where it stands.
    at: State,
    /// Tells gates from all others: grows whenever weights change.
    round: u32,
    stopped: bool,
}

impl<'p> Run<'p> {
    fn new(params: &'p Params<'p>, budget: &Annealing, labels: &'p [u16]) -> Self {
        let rows = labels.len() - params.validation;
        let steps = params.epochs.saturating_mul(rows.div_ceil(budget.batch) as u32);
        Self {
            params,
            labels,
            outputs: budget.outputs,
            nnz: budget.dims.nnz,
            start: budget.start,
            rows,
            batch: budget.batch,
            steps,
            at: State::START,
            round: 0,
            stopped: false,
        }
    }

    /// Goes on from a checkpoint, once the column scales are there.
    fn load(&mut self, from: &Checkpoint<'_>, support: &mut Support<'_>) -> Result<()> {
        error::range("steps of the checkpoint", from.state.step as usize, 1, self.steps as usize)?;
        error::range("changes of the checkpoint", from.state.updates as usize, 0, from.state.step as usize)?;
        for held in from.state.best.iter().chain(&from.state.held) {
            error::length("validation rows of the checkpoint", held.rows, self.params.validation)?;
        }
        support.load(from)?;
        let index = from.net.w().index();
        let kept = self.params.must_keep.iter().filter(|j| index.binary_search(j).is_ok()).count();
        error::length("weights of the checkpoint that must be kept", kept, self.params.must_keep.len())?;
        self.at = from.state;
        Ok(())
    }

    /// Whether the run has ended for want of progress on the validation rows.
    const fn early(&self) -> bool {
        self.params.patience > 0 && self.at.settled && self.at.waited >= self.params.patience
    }

    /// Batches of an epoch.
    fn batches(&self) -> usize {
        self.rows.div_ceil(self.batch)
    }

    /// Selects rows; their labels.
    fn select<S: Factored>(&self, sensing: &mut S, rows: Range<usize>) -> Result<&'p [u16], S::Source> {
        sensing.select(rows.clone())?;
        Ok(self.labels.get(rows).unwrap_or(&[]))
    }

    /// `1 / (rms of the column + floor)`, in scaled units, measured on the growth rows; 0 for columns of zeros.
    fn column_scales<S: Factored>(
        &mut self,
        sensing: &mut S,
        work: &mut Buffers<'_>,
    ) -> Result<(), S::Source> {
        work.columns.fill(0.0);
        let d = work.columns.len();
        let mut rows = 0;
        for batch in self.growth(0) {
            rows += self.select(sensing, batch)?.len();
            let norms = work.panel.get_mut(..d).unwrap_or(&mut []);
            sensing.column_norms(state::open(d, sensing.blocks()), 0..1, norms, work.scratch)?;
            math::axpy(1.0, norms, work.columns);
        }
        self.read(rows);
        error::finite("squares of the samples", work.columns)?;
        let scale = self.params.input_scale;
        for column in work.columns.iter_mut() {
            let rms = scale * math::sqrt(*column / rows.max(1) as f32);
            *column = if rms > 0.0 { 1.0 / (rms + self.params.floor) } else { 0.0 };
        }
        Ok(())
    }

    fn units<'c>(&self, columns: &'c [f32]) -> Units<'c> {
        Units { columns, floor: self.params.floor, scale: self.params.input_scale }
    }

    /// The batches that growth goes through, as many as make up its rows, in an order of their own for each update.
    fn growth(&self, update: u32) -> impl Iterator<Item = Range<usize>> + use<> {
        let wanted = self.params.growth_rows.div_ceil(self.batch).max(1);
        rng::runs(self.params.seed, stream::ANNEAL + u64::from(update), self.rows, self.batch).take(wanted)
    }

    /// The steps from where the run stands.
    fn train<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &mut Support<'_>,
        work: &mut Buffers<'_>,
        resumed: bool,
        observe: &mut impl FnMut(&Progress<'_>) -> bool,
    ) -> Result<(), S::Source> {
        let schedule = Schedule::new(self.params, self.steps);
        if resumed {
            self.tell(state, f32::NAN, schedule.rate(self.at.step.saturating_sub(1)), observe);
        }
        let epochs = self.batches().max(1) as u32;
        let (first, mut done) = (self.at.step / epochs, (self.at.step % epochs) as usize);
        for epoch in first..self.params.epochs {
            let order = batches(self.params.seed, epoch, self.rows, self.batch).enumerate();
            for (position, rows) in order.skip(core::mem::take(&mut done)) {
                if self.stopped || self.early() {
                    return Ok(());
                }
                let changes = schedule.changes(self.at.step);
                if changes {
                    self.update(sensing, state, work, &schedule)?;
                }
                let labels = self.select(sensing, rows)?;
                let rate = schedule.rate(self.at.step);
                let mut descend = |run: &mut Self| run.descend(sensing, labels, state, work, rate);
                let loss = match changes {
                    // What has grown is worth nothing before its first step, and what it replaced is gone.
                    true => error::insist(self, |run| run.stopped = true, descend),
                    false => descend(self),
                }?;
                self.at.step = self.at.step.saturating_add(1);
                if position + 1 == self.batches() && self.params.validation > 0 {
                    self.validate(sensing, state, work, &schedule)?;
                }
                self.tell(state, loss, rate, observe);
            }
        }
        Ok(())
    }

    /// Shows the observer where the run stands. Not inlined, so that what it shows is on the stack for that time only.
    #[inline(never)]
    fn tell(
        &mut self,
        state: &Support<'_>,
        loss: f32,
        rate: f32,
        observe: &mut impl FnMut(&Progress<'_>) -> bool,
    ) {
        let progress = Progress {
            step: self.at.step,
            steps: self.steps,
            epoch_steps: self.batches() as u32,
            loss,
            rate,
            nnz: state.len(),
            live: state.net().w().blocks().count(),
            rows_read: self.at.rows_read,
            validation: self.at.held,
            checkpoint: (!self.stopped).then(|| state.checkpoint(self.at)),
        };
        self.stopped |= !observe(&progress);
    }

    /// One step of Adam on the selected batch; the mean loss before it.
    fn descend<S: Factored>(
        &mut self,
        sensing: &mut S,
        labels: &[u16],
        state: &mut Support<'_>,
        work: &mut Buffers<'_>,
        rate: f32,
    ) -> Result<f32, S::Source> {
        let (loss, _) = self.residual(sensing, labels, state, work)?;
        let residual = work.residual.get(..labels.len() * self.outputs).unwrap_or(&[]);
        state.gradient(sensing, residual, self.round, work.scratch)?;
        self.read(labels.len());
        state.adam(labels.len() as f32, rate, self.params.input_scale);
        self.turn();
        Ok(loss)
    }

    /// Leaves the residual of the selected rows in the buffer; mean loss.
    fn residual<S: Factored>(
        &mut self,
        sensing: &mut S,
        labels: &[u16],
        state: &Support<'_>,
        work: &mut Buffers<'_>,
    ) -> Result<(f32, usize), S::Source> {
        let out = work.residual.get_mut(..labels.len() * self.outputs).unwrap_or(&mut []);
        let net = state.net();
        sensing.net_forward(net.gates(self.round), net, out, work.scratch)?;
        self.read(labels.len());
        let rows = out.chunks(self.outputs.max(1)).zip(labels);
        let right = rows.filter(|(out, label)| loss::class(out) == usize::from(**label)).count();
        let loss = loss::cross_entropy(labels, self.outputs, out).map_err(Error::widen)?;
        if !loss.is_finite() {
            return Err(Error::Diverged { step: self.at.step as usize });
        }
        Ok((loss / labels.len().max(1) as f32, right))
    }

    /// Drops, clears and grows; if the operator stops, the support is as before.
    fn update<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &mut Support<'_>,
        work: &mut Buffers<'_>,
        schedule: &Schedule,
    ) -> Result<(), S::Source> {
        let target = schedule.target(self.at.step, self.nnz, self.start);
        let dropped = (schedule.drop(self.at.step) * target as f32) as usize;
        state.keep(target - dropped.min(target), self.params);
        self.turn();
        self.at.updates += 1;
        let grown = self.grow(sensing, state, work, target);
        if matches!(grown, Err(Error::Stopped)) {
            state.restore();
        }
        self.turn();
        grown
    }

    /// Fills the support up to `target` entries with those of largest gradient.
    fn grow<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &mut Support<'_>,
        work: &mut Buffers<'_>,
        target: usize,
    ) -> Result<(), S::Source> {
        let mut growth = state.grow(target);
        let panel = sensing.panel();
        for first in (0..sensing.blocks()).step_by(panel.max(1)) {
            let blocks = first..(first + panel.max(1)).min(sensing.blocks());
            let (d, c) = (work.columns.len(), self.outputs);
            let (dw, rest) = work.panel.split_at_mut_checked(blocks.len() * d).unwrap_or_default();
            let dwt = rest.get_mut(..blocks.len() * c).unwrap_or(&mut []);
            dw.fill(0.0);
            dwt.fill(0.0);
            for rows in self.growth(self.at.updates) {
                let labels = self.select(sensing, rows)?;
                let out = work.residual.get_mut(..labels.len() * c).unwrap_or(&mut []);
                let net = growth.net;
                let gates = net.gates(self.round);
                sensing.net_forward(gates, net, out, work.scratch)?;
                loss::cross_entropy(labels, c, out).map_err(Error::widen)?;
                sensing.net_gradient(gates, net, out, blocks.clone(), (&mut *dw, &mut *dwt), work.scratch)?;
                self.read(2 * labels.len());
            }
            growth.offer(blocks, dw, dwt, &self.units(work.columns));
        }
        match growth.finish() {
            Some(count) => state.merge(count),
            None => return Err(Error::Diverged { step: self.at.step as usize }),
        }
        Ok(())
    }

    /// At the end of an epoch: scores the current network on the validation rows where it may be the result. What is best
    /// on the settled support takes the place of what was best before.
    fn validate<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &mut Support<'_>,
        work: &mut Buffers<'_>,
        schedule: &Schedule<'_>,
    ) -> Result<(), S::Source> {
        let settled = self.at.step > schedule.settled();
        let shrunk =
            schedule.target(self.at.step, self.nnz, self.start) == self.nnz && state.len() <= self.nnz;
        if !(settled || shrunk && state.has_spare()) {
            return Ok(());
        }
        let held = self.score(sensing, state, work, self.rows..self.labels.len())?;
        if settled && !self.at.settled {
            (self.at.settled, self.at.best) = (true, None);
        }
        self.judge(state, held);
        Ok(())
    }

    /// Keeps the current network if it is the best on the validation rows.
    fn judge(&mut self, state: &mut Support<'_>, held: Held) {
        (self.at.held, self.at.scored) = (Some(held), self.at.step);
        if self.at.best.is_none_or(|best| held.loss < best.loss) {
            (self.at.best, self.at.waited) = (Some(held), 0);
            state.remember();
        } else {
            self.at.waited = self.at.waited.saturating_add(1);
        }
    }

    /// Counts rows that were read.
    fn read(&mut self, rows: usize) {
        self.at.rows_read = self.at.rows_read.saturating_add(rows as u64);
    }

    /// Weights have changed, and with them gates.
    fn turn(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    /// [`Self::score`] of the result, which a run that ends needs all the same.
    fn last_score<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &Support<'_>,
        work: &mut Buffers<'_>,
        rows: Range<usize>,
    ) -> Result<Held, S::Source> {
        error::insist(self, |run| run.stopped = true, |run| run.score(sensing, state, work, rows.clone()))
    }

    /// Loss and accuracy on a range of rows, batch by batch.
    fn score<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &Support<'_>,
        work: &mut Buffers<'_>,
        rows: Range<usize>,
    ) -> Result<Held, S::Source> {
        let (mut loss, mut right) = (math::Sum::default(), 0);
        for start in rows.clone().step_by(self.batch) {
            let part = start..(start + self.batch).min(rows.end);
            let labels = self.select(sensing, part)?;
            let (mean, good) = self.residual(sensing, labels, state, work)?;
            loss.add(mean * labels.len() as f32);
            right += good;
        }
        Ok(Held { loss: loss.value() / rows.len().max(1) as f32, right, rows: rows.len() })
    }

    fn finish<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &mut Support<'_>,
        work: &mut Buffers<'_>,
    ) -> Result<Info, S::Source> {
        let early = self.early();
        if self.stopped && self.params.validation > 0 && self.at.scored != self.at.step {
            if self.at.step.is_multiple_of(self.batches().max(1) as u32) {
                let schedule = Schedule::new(self.params, self.steps);
                let validate = |run: &mut Self| run.validate(sensing, state, work, &schedule);
                error::insist(self, |run| run.stopped = true, validate)?;
            } else if self.at.best.is_some() {
                let held = self.last_score(sensing, state, work, self.rows..self.labels.len())?;
                self.judge(state, held);
            }
        }
        if self.stopped || self.at.settled {
            state.recall();
        }
        state.keep(self.nnz, self.params);
        self.turn();
        let training = self.last_score(sensing, state, work, 0..self.rows)?;
        let validation = match self.at.best {
            Some(_) => Some(self.last_score(sensing, state, work, self.rows..self.labels.len())?),
            None => None,
        };
        sensing.select(0..sensing.rows())?;
        Ok(Info {
            steps: self.at.step,
            epochs: self.at.step.div_ceil(self.batches() as u32),
            training,
            validation,
            start: self.start,
            nnz: state.len(),
            live: state.net().w().blocks().count(),
            rows_read: self.at.rows_read,
            stopped: self.stopped,
            early,
        })
    }
}
