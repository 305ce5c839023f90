//! One output, whose output weights are signs: gates that follow the weights, line searches,
//! refinement on the support.

use super::run::{Method, Run, StepInfo, check_step_size};
use super::schedule::{Schedule, Trials};
use super::state::Networks;
use crate::base::budget::{self, Training};
use crate::base::dims::Dims;
use crate::base::error::{self, Error, Result};
use crate::learn::iht::{self, Refine, Step};
use crate::learn::loss::Labels;
use crate::network::gates::{Empty, Gates, Signs};
use crate::network::weights::check_kept;
use crate::operator::machine::Host;
use crate::operator::sensing::{Sensing, Strips, Work};
use core::ops::Range;

/// When the gates follow the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Refresh {
    /// After every r-th step, once phase 1 is over; 1 as published.
    Every(u32),
    /// Never: the convex problem with random gates to the end.
    Never,
}

/// Settings for one output, whose output weights are signs.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct OneOutput {
    /// Epochs with random generators; none in a run that starts from weights.
    pub convex_epochs: u32,
    /// When the gates follow the weights.
    pub refresh: Refresh,
    /// Signs of the output weights.
    pub signs: Signs,
    /// Gates of neurons without weights.
    pub empty: Empty,
    /// Length of the gradient step.
    pub step: Step,
    /// Refinement on the new support.
    pub refine: Refine,
}

impl OneOutput {
    /// The published setting: normalised steps with ten Armijo refinements, and gates that follow
    /// after two epochs.
    pub const PAPER: Self = Self {
        convex_epochs: 2,
        refresh: Refresh::Every(1),
        signs: Signs::Positive,
        empty: Empty::Freeze,
        step: Step::Normalised,
        refine: Refine::PAPER,
    };

    /// Whether the gates lag behind the weights.
    const fn lags(&self) -> bool {
        matches!(self.refresh, Refresh::Every(every) if every > 1)
    }

    fn check(&self) -> Result<()> {
        let most = u32::MAX as usize;
        if self.empty == Empty::Freeze && matches!(self.refresh, Refresh::Every(_)) {
            // From no weights every gate would be inactive, and stay so.
            error::range("epochs with random gates", self.convex_epochs as usize, 1, most)?;
        }
        if let Refresh::Every(every) = self.refresh {
            error::range("steps between refreshes", every as usize, 1, most)?;
        }
        let size = match self.step {
            Step::Fixed(eta) => eta,
            Step::Theory { beta } => beta,
            Step::Normalised => 1.0,
        };
        let tolerance = match self.refine {
            Refine::ConjugateGradient { tolerance, .. } => tolerance,
            _ => 1.0,
        };
        error::finite("step size and tolerance", &[size, tolerance])?;
        check_step_size(size)
    }
}

impl<'k> Schedule<'k, OneOutput> {
    /// The published setting for scalar outputs: 15 full-batch epochs. The published code keeps
    /// random generators for two steps.
    pub const PAPER: Self = Self {
        epochs: 15,
        batch: 0,
        strip: 0,
        trials: Trials::NONE,
        seed: 0,
        must_keep: &[],
        head: OneOutput::PAPER,
    };

    /// The memory that a run needs, given the panel and the operator's scratch.
    #[must_use]
    pub const fn budget(&self, dims: Dims, panel: usize, scratch: usize) -> Training {
        let batch = budget::batch(self.batch, dims.samples);
        let mut budget = Training::new(dims, batch, panel, scratch);
        budget.strip = budget::batch(self.strip, batch);
        budget.third_network = self.head.lags();
        budget.normalised_columns = matches!(self.head.step, Step::Theory { .. });
        budget
    }

    /// What a step does.
    const fn params(&self) -> iht::Params<'k> {
        iht::Params { step: self.head.step, refine: self.head.refine, must_keep: self.must_keep }
    }
}

impl<S: Sensing<Machine = Host>> Method<S> for OneOutput {
    const SEVERAL: bool = false;

    fn check(schedule: &Schedule<'_, Self>, dims: &Dims, labels: &Labels<'_>) -> Result<()> {
        dims.check()?;
        check_kept(dims, schedule.must_keep, dims.nnz)?;
        // A network of one output does not tell classes apart.
        error::length("labels that are values", labels.values().len(), dims.samples)?;
        error::finite("labels", labels.values())?;
        schedule.head.check()
    }

    fn signs(&self) -> Signs {
        self.signs
    }

    fn budget(schedule: &Schedule<'_, Self>, dims: Dims, _outputs: usize, sensing: &S) -> Training {
        let mut budget = schedule.budget(dims, sensing.panel(), 0);
        budget.scratch = sensing.scratch(budget.strip);
        budget
    }

    fn step(run: &mut Run<'_, '_, S, Self>, rows: Range<usize>) -> Result<StepInfo, S::Source> {
        run.sensing.select(rows.clone())?;
        run.refresh();
        let Run { sensing, schedule, networks, work, strip, seed, at, .. } = run;
        let Networks { shape, current, next, held, .. } = networks;
        let (head, strip) = (&schedule.head, *strip);
        let current = current.network(*shape);
        let generators = if head.lags() { held.network(*shape) } else { current };
        let gates = match at.round {
            0 => Gates::seeded(*seed),
            round => Gates::of(generators.w(), head.signs, head.empty, *seed, round),
        };
        let labels = run.labels.values().get(rows.clone()).unwrap_or(&[]);
        let mut work: Work<'_> = Work {
            residual: work.residual.get_mut(..labels.len().min(strip)).unwrap_or(&mut []),
            panel: &mut *work.panel,
            scratch: &mut *work.scratch,
            strips: (rows.len() > strip).then_some(Strips { rows, part: &mut *work.strip }),
        };
        let params = schedule.params();
        let info =
            iht::step(*sensing, gates, labels, current.w(), &params, next.room(), &mut work)?;
        networks.advance(info.nnz);
        Ok(StepInfo { loss: info.loss, step_size: info.step_size, reads: info.reads as f32 })
    }

    fn residual(run: &mut Run<'_, '_, S, Self>, rows: Range<usize>) -> Result<f32, S::Source> {
        let (head, w) = (&run.schedule.head, run.networks.network().w());
        let gates = match head.refresh {
            Refresh::Never => Gates::seeded(run.seed),
            Refresh::Every(_) => {
                Gates::of(w, head.signs, head.empty, run.seed, run.at.round.wrapping_add(1))
            }
        };
        let out = run.work.residual.get_mut(..rows.len()).unwrap_or(&mut []);
        run.sensing.forward(gates, w, out)?;
        run.labels.residual(rows, 1, out).map_err(Error::widen)
    }
}

impl<S: Sensing<Machine = Host>> Run<'_, '_, S, OneOutput> {
    /// Renews the gates where that is due; `round` 0 means that they are still random.
    fn refresh(&mut self) {
        let head = &self.schedule.head;
        let Refresh::Every(every) = head.refresh else { return };
        let is_convex = !self.at.warm && self.at.epoch < head.convex_epochs;
        if is_convex || (self.at.round > 0 && self.at.since_refresh.saturating_add(1) < every) {
            self.at.since_refresh = self.at.since_refresh.saturating_add(1);
            return;
        }
        (self.at.round, self.at.since_refresh) = (self.at.round.wrapping_add(1), 0);
        if head.lags() {
            self.networks.hold();
        }
    }
}
