//! Few weights, each in turn exchanged for others.

use super::checkpoint::Stage;
use super::fit::Readout;
use super::model::{Model, Moves, Support};
use super::moves::SLIM_STEPS;
use super::search::Search;
use super::{EXCHANGED, Phase, Progress};
use crate::base::error::Result;
use crate::base::rng::{seed_of, stream};
use crate::operator::sensing::Sensing;

/// Weights that are tried at once in the place of another, after so many steps.
const CANDIDATES: usize = 8;
const EXCHANGE_STEPS: u32 = 2;
/// Starts besides that of the run.
pub(super) const STARTS: u32 = 3;
/// What is left of the only weight of a neuron.
const FAINT: f32 = 1e-3;
/// An exchange stays where less than this part of the loss is left.
const WON: f32 = 0.9999;

impl<'a, S: Sensing, H: Readout<S>, F: FnMut(&Progress<'_>) -> bool> Search<'a, S, H, F>
where
    Model<'a, S, H>: Moves<S>,
{
    /// [`Stage::Exchange`], with one output: of few weights each in turn goes, and the best of others in its place stays
    /// where that lowers the loss; then the same from other starts. Outer steps keep the weights that
    /// are largest, which is another choice: they end on supports that one exchange improves. Where there are
    /// more rows than [`Params::exchange_rows`](super::Params::exchange_rows), they say which support it is.
    pub(super) fn exchange(&mut self, loss: f32) -> Result<Stage, S::Source> {
        let is_small = self.model.net.is_signed() && self.model.task.nnz <= EXCHANGED;
        if !is_small || self.is_exact(loss) || self.is_done() {
            return Ok(self.after_exchanges());
        }
        let rows = self.params.exchange_rows.max(1);
        if self.state.rows as usize > rows {
            self.best.store(self.result.view())?;
            self.state.best_loss = self.state.result_loss;
            self.take_up(rows)?;
            self.state.result_loss = self.model.loss()?;
            return Ok(Stage::Exchange);
        }
        self.base.store(self.model.view())?;
        for nth in 0..2 * self.base.view().w().nnz() {
            if self.is_done() {
                return Ok(self.after_exchanges());
            }
            let Some(&j) = self.base.view().w().index().get(nth / 2) else { break };
            let changed = self.replace(j, nth % 2 == 0)?;
            self.step(Phase::Polish, changed, self.state);
            if changed < WON * loss {
                self.store_result(changed)?;
                return Ok(Stage::Exchange);
            }
            self.model.load(self.base.view())?;
        }
        if self.state.idle >= STARTS {
            return Ok(self.after_exchanges());
        }
        self.state.idle += 1;
        self.model.start(seed_of(self.params.seed, stream::TRIAL, self.state.idle))?;
        let loss = self.model.loss()?;
        let loss = self.model.improve(loss, SLIM_STEPS, 0.0)?;
        let loss = self.model.narrow(loss)?;
        self.store_result(loss)?;
        Ok(Stage::Exchange)
    }

    /// What follows exchanges, or a stop meanwhile.
    pub(super) fn after_exchanges(&self) -> Stage {
        let is_part = (self.state.rows as usize) < self.model.fit.train;
        if is_part { Stage::Exchanged } else { Stage::End }
    }

    /// [`Stage::Exchanged`]: after exchanges on a part of the rows, of the network before them and of the one
    /// after the better one on all rows.
    pub(super) fn judge(&mut self) -> Result<Stage, S::Source> {
        let before = self.state.best_loss;
        self.model.load(self.result.view())?;
        self.model.fit.select(0..self.model.fit.train)?;
        let loss = self.model.loss()?;
        let loss = self.model.improve(loss, self.params.final_steps, 0.0)?;
        self.state.result_loss = before;
        self.step(Phase::AllRows, loss, self.state);
        if self.params.validation == 0 {
            self.result.store(self.best.view())?;
        }
        self.store_result(loss)?;
        self.select(self.model.fit.train)?;
        Ok(Stage::End)
    }

    /// Takes weight `j` away, adds others, and comes down to s weights and m neurons; the loss.
    fn replace(&mut self, j: u32, by_active_rows: bool) -> Result<f32, S::Source> {
        let model = &mut self.model;
        let (i, d) = (j as usize / model.inputs().max(1), model.inputs());
        let is_alone = model.view().w().block(i).values().len() == 1;
        if is_alone && let Some(w) = model.weight_mut(i, j as usize % d.max(1)) {
            // What is left of it keeps the neuron on its rows, so that it can have others.
            *w *= FAINT;
        } else {
            model.net.edit_w(|w| w.retain(|at, _| at != j));
        }
        let mut loss = model.loss()?;
        if !is_alone {
            loss = model.improve(loss, EXCHANGE_STEPS, 0.0)?;
        }
        if by_active_rows {
            model.grow_active(CANDIDATES)?;
        } else {
            model.grow(CANDIDATES)?;
        }
        let mut loss = model.improve(loss, EXCHANGE_STEPS, 0.0)?;
        // One by one, as others mean more where one has gone.
        for size in (model.task.nnz..model.counted()).rev() {
            loss = model.cut(size, EXCHANGE_STEPS, 0.0)?;
        }
        let loss = model.improve(loss, SLIM_STEPS, 0.0)?;
        model.narrow(loss)
    }
}
