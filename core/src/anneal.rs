//! The recipe for classification: softmax cross-entropy on an annealed support.
//!
//! The network is `yhat = sum_i relu(w_i·x) wt_i^T` ([`crate::factored`]); s counts the nonzeros of both sides. Adam
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
//! A run takes 20 bytes for each of the first support's `start_factor` s entries, 4 s for the best iterate where rows are
//! held out, and 4 (n c + p (d + c) + d) for the residual of a batch of n rows, a panel of p neurons and the columns'
//! scales, besides the operator's scratch ([`crate::budget::Annealing`]). A factor of 1 is for parts.
//!
//! Entries are dropped by what they are worth: `theta² v` is, up to a factor, the loss that their removal adds by the
//! diagonal of the Fisher information, of which v is Adam's running estimate. They grow by their gradient over the
//! size of what they multiply.
//!
//! Inputs of any range: [`Params::input_scale`] is the factor that brings them to about 1, and weights and gradients of
//! the first layer are measured in those units. The weights themselves stay in units of the inputs, so there is nothing
//! to undo at the end.

mod params;
mod schedule;
mod state;

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
use state::{Buffers, State, Units, carve};

/// What an observer sees after each step.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Progress {
    /// Steps done.
    pub step: u32,
    /// Steps of the whole run, at the most.
    pub steps: u32,
    /// Mean cross-entropy on the batch before the last step.
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
}

/// A score on some rows.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Held {
    /// Mean cross-entropy.
    pub loss: f32,
    /// Rows whose largest output is that of their label.
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
    /// The result on the validation rows; none without such rows, and none where the run ended before the support was
    /// settled.
    pub validation: Option<Held>,
    /// Entries that the run started with.
    pub start: usize,
    /// Nonzeros of both sides.
    pub nnz: usize,
    /// Neurons that have weights on both sides.
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
/// `labels` are classes from 0 to `classes - 1`. `memory` holds at least [`Params::budget`] words; `observe` is called
/// after every step and ends the run by returning `false`: the s best entries at that point are the result. An operator
/// that fails with [`Error::Stopped`] ends it too, within the step, which then has not been: the result is that of the last
/// complete one. A change of the support that was begun is undone, and after one that was done the step of its batch is
/// made. For this and for the final scores the operator must work on after it has stopped once.
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
    classes: usize,
    nnz: usize,
    params: &Params,
    memory: &'a mut [u32],
    mut observe: impl FnMut(&Progress) -> bool,
) -> Result<Trained<'a>, S::Source> {
    let dims = Dims::new(sensing.rows(), sensing.inputs(), sensing.blocks(), nnz);
    params.check(&dims, labels, classes).map_err(Error::widen)?;
    let mut budget = params.budget(dims, classes, sensing.panel(), 0);
    budget.scratch = sensing.net_scratch(budget.batch);
    let (mut state, mut work) = carve(&budget, memory).map_err(Error::widen)?;
    let mut run = Run::new(params, &budget, labels);
    run.column_scales(sensing, &mut work)?;
    state.start(params.seed, &run.units(work.columns));
    match run.train(sensing, &mut state, &mut work, &mut observe) {
        Err(Error::Stopped) if run.step > 0 => run.stopped = true,
        done => done?,
    }
    let info = run.finish(sensing, &mut state, &mut work)?;
    Ok(Trained { net: state.into_net(), info })
}

/// What stays the same over a run, and its counts.
struct Run<'p> {
    params: &'p Params,
    labels: &'p [u16],
    classes: usize,
    nnz: usize,
    start: usize,
    /// Rows trained on, the first ones.
    rows: usize,
    batch: usize,
    steps: u32,
    step: u32,
    updates: u32,
    best: Option<Held>,
    /// Evaluations since the best one.
    waited: u32,
    rows_read: u64,
    stopped: bool,
    early: bool,
}

impl<'p> Run<'p> {
    fn new(params: &'p Params, budget: &Annealing, labels: &'p [u16]) -> Self {
        let rows = labels.len() - params.validation;
        let steps = params.epochs.saturating_mul(rows.div_ceil(budget.batch) as u32);
        Self {
            params,
            labels,
            classes: budget.outputs,
            nnz: budget.dims.nnz,
            start: budget.start,
            rows,
            batch: budget.batch,
            steps,
            step: 0,
            updates: 0,
            best: None,
            waited: 0,
            rows_read: 0,
            stopped: false,
            early: false,
        }
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
        self.rows_read += rows as u64;
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

    fn train<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &mut State<'_>,
        work: &mut Buffers<'_>,
        observe: &mut impl FnMut(&Progress) -> bool,
    ) -> Result<(), S::Source> {
        let schedule = Schedule::new(self.params, self.steps);
        let mut held = None;
        for epoch in 0..self.params.epochs {
            for (position, rows) in batches(self.params.seed, epoch, self.rows, self.batch).enumerate() {
                let changes = schedule.changes(self.step);
                if changes {
                    self.update(sensing, state, work, &schedule)?;
                }
                let labels = self.select(sensing, rows)?;
                let rate = schedule.rate(self.step);
                let mut descend = |run: &mut Self| run.descend(sensing, labels, state, work, rate);
                let loss = match changes {
                    // What has grown is worth nothing before its first step, and what it replaced is gone.
                    true => error::insist(self, |run| run.stopped = true, descend),
                    false => descend(self),
                }?;
                self.step += 1;
                let settled = self.step > schedule.settled();
                if settled && position + 1 == self.batches() && self.params.validation > 0 {
                    held = Some(self.validate(sensing, state, work)?);
                }
                let progress = Progress {
                    step: self.step,
                    steps: self.steps,
                    loss,
                    rate,
                    nnz: state.len(),
                    live: state.net().w().blocks().count(),
                    rows_read: self.rows_read,
                    validation: held,
                };
                self.stopped |= !observe(&progress);
                if self.stopped || self.early {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// One step of Adam on the selected batch; the mean loss before it.
    fn descend<S: Factored>(
        &mut self,
        sensing: &mut S,
        labels: &[u16],
        state: &mut State<'_>,
        work: &mut Buffers<'_>,
        rate: f32,
    ) -> Result<f32, S::Source> {
        let (loss, _) = self.residual(sensing, labels, state, work)?;
        let residual = work.residual.get(..labels.len() * self.classes).unwrap_or(&[]);
        state.gradient(sensing, residual, self.step, work.scratch)?;
        self.rows_read += labels.len() as u64;
        state.adam(labels.len() as f32, rate, self.params.input_scale);
        Ok(loss)
    }

    /// Leaves the residual of the selected rows in the buffer; mean loss.
    fn residual<S: Factored>(
        &mut self,
        sensing: &mut S,
        labels: &[u16],
        state: &State<'_>,
        work: &mut Buffers<'_>,
    ) -> Result<(f32, usize), S::Source> {
        let out = work.residual.get_mut(..labels.len() * self.classes).unwrap_or(&mut []);
        let net = state.net();
        sensing.net_forward(net.gates(self.step), net, out, work.scratch)?;
        self.rows_read += labels.len() as u64;
        let rows = out.chunks(self.classes.max(1)).zip(labels);
        let right = rows.filter(|(out, label)| loss::best(out) == usize::from(**label)).count();
        let loss = loss::cross_entropy(labels, self.classes, out).map_err(Error::widen)?;
        if !loss.is_finite() {
            return Err(Error::Diverged { step: self.step as usize });
        }
        Ok((loss / labels.len().max(1) as f32, right))
    }

    /// Drops, clears and grows; if the operator stops, the support is as before.
    fn update<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &mut State<'_>,
        work: &mut Buffers<'_>,
        schedule: &Schedule,
    ) -> Result<(), S::Source> {
        let target = schedule.target(self.step, self.nnz, self.start);
        let dropped = (schedule.drop(self.step) * target as f32) as usize;
        state.keep(target - dropped.min(target), self.params.input_scale);
        self.updates += 1;
        let grown = self.grow(sensing, state, work, target);
        if matches!(grown, Err(Error::Stopped)) {
            state.restore();
        }
        grown
    }

    /// Fills the support up to `target` entries with those of largest gradient.
    fn grow<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &mut State<'_>,
        work: &mut Buffers<'_>,
        target: usize,
    ) -> Result<(), S::Source> {
        let mut growth = state.grow(target);
        let panel = sensing.panel();
        for first in (0..sensing.blocks()).step_by(panel.max(1)) {
            let blocks = first..(first + panel.max(1)).min(sensing.blocks());
            let (d, c) = (work.columns.len(), self.classes);
            let (dw, rest) = work.panel.split_at_mut_checked(blocks.len() * d).unwrap_or_default();
            let dwt = rest.get_mut(..blocks.len() * c).unwrap_or(&mut []);
            dw.fill(0.0);
            dwt.fill(0.0);
            for rows in self.growth(self.updates) {
                let labels = self.select(sensing, rows)?;
                let out = work.residual.get_mut(..labels.len() * c).unwrap_or(&mut []);
                let net = growth.net;
                let gates = net.gates(self.step);
                sensing.net_forward(gates, net, out, work.scratch)?;
                loss::cross_entropy(labels, c, out).map_err(Error::widen)?;
                sensing.net_gradient(gates, net, out, blocks.clone(), (&mut *dw, &mut *dwt), work.scratch)?;
                self.rows_read += 2 * labels.len() as u64;
            }
            growth.offer(blocks, dw, dwt, &self.units(work.columns));
        }
        match growth.finish() {
            Some(count) => state.merge(count),
            None => return Err(Error::Diverged { step: self.step as usize }),
        }
        Ok(())
    }

    /// Scores the current network on the validation rows, and keeps it if it is the best.
    fn validate<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &mut State<'_>,
        work: &mut Buffers<'_>,
    ) -> Result<Held, S::Source> {
        let held = self.score(sensing, state, work, self.rows..self.labels.len())?;
        if self.best.is_none_or(|best| held.loss < best.loss) {
            self.best = Some(held);
            self.waited = 0;
            state.remember();
        } else {
            self.waited += 1;
            self.early = self.waited == self.params.patience;
        }
        Ok(held)
    }

    /// [`Self::score`] of the result, which a run that ends needs all the same.
    fn last_score<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &State<'_>,
        work: &mut Buffers<'_>,
        rows: Range<usize>,
    ) -> Result<Held, S::Source> {
        error::insist(self, |run| run.stopped = true, |run| run.score(sensing, state, work, rows.clone()))
    }

    /// Loss and accuracy on a range of rows, batch by batch.
    fn score<S: Factored>(
        &mut self,
        sensing: &mut S,
        state: &State<'_>,
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
        state: &mut State<'_>,
        work: &mut Buffers<'_>,
    ) -> Result<Info, S::Source> {
        if self.best.is_some() && !self.stopped {
            state.recall();
        }
        state.keep(self.nnz, self.params.input_scale);
        let training = self.last_score(sensing, state, work, 0..self.rows)?;
        let validation = match self.best {
            Some(_) => Some(self.last_score(sensing, state, work, self.rows..self.labels.len())?),
            None => None,
        };
        sensing.select(0..sensing.rows())?;
        Ok(Info {
            steps: self.step,
            epochs: self.step.div_ceil(self.batches() as u32),
            training,
            validation,
            start: self.start,
            nnz: state.len(),
            live: state.net().w().blocks().count(),
            rows_read: self.rows_read,
            stopped: self.stopped,
            early: self.early,
        })
    }
}
