//! The two heads: one output, whose output weights are signs, with line searches and refinement on
//! the support; and several outputs, both sides sparse under one budget, with steps of a fixed
//! length, ranked exactly or by a count sketch. Gates of either are random at first, and then follow
//! the weights (sequential convex programming).

use super::run::{Method, Run, StepInfo, check_step_size};
use super::schedule::{Schedule, Trials};
use super::state::Networks;
use crate::base::budget::{self, Training};
use crate::base::dims::{Dims, MOST_ENTRIES};
use crate::base::error::{self, Error, Result};
use crate::base::math;
use crate::learn::iht::net::{NetStep, NetWork};
use crate::learn::iht::strips::Target;
use crate::learn::iht::{self, Refine, Step};
use crate::learn::loss::{Labels, check_finite};
use crate::network::gates::{Empty, Gates, Signs};
use crate::network::net::Network;
use crate::network::sketch;
use crate::network::weights::check_kept;
use crate::operator::factored::Factored;
use crate::operator::machine::Machine;
use crate::operator::sensing::{Sensing, Strips, Work, row_head};
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
    /// Epochs with random generators, and one step more, as in the published code; none in a run that
    /// starts from weights.
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

impl Refresh {
    /// Whether the gates lag behind the weights.
    const fn lags(self) -> bool {
        matches!(self, Self::Every(every) if every > 1)
    }

    fn check(self) -> Result<()> {
        let Self::Every(every) = self else { return Ok(()) };
        error::range("steps between refreshes", every as usize, 1, u32::MAX as usize)
    }
}

impl OneOutput {
    /// The published setting: normalised steps with ten Armijo refinements, and gates that follow
    /// after the first epoch.
    pub const PAPER: Self = Self {
        convex_epochs: 1,
        refresh: Refresh::Every(1),
        signs: Signs::Positive,
        empty: Empty::Freeze,
        step: Step::Normalised,
        refine: Refine::PAPER,
    };

    fn check(&self) -> Result<()> {
        let most = u32::MAX as usize;
        if self.empty == Empty::Freeze && matches!(self.refresh, Refresh::Every(_)) {
            // From no weights every gate would be inactive, and stay so.
            error::range("epochs with random gates", self.convex_epochs as usize, 1, most)?;
        }
        self.refresh.check()?;
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
        if let Refine::Armijo { decrease, .. } = self.refine {
            let fits = (0.0..2.0).contains(&decrease);
            error::range("decrease of a refinement, from 0 to below 2", fits.into(), 1, 1)?;
        }
        check_step_size(size)
    }
}

impl<'k> Schedule<'k, OneOutput> {
    /// The published setting for scalar outputs: 15 full-batch epochs, so that gates are random for two
    /// steps.
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
        budget.third_network = self.head.refresh.lags();
        budget.normalised_columns = matches!(self.head.step, Step::Theory { .. });
        budget
    }

    /// What a step does.
    const fn params(&self) -> iht::Params<'k> {
        iht::Params { step: self.head.step, refine: self.head.refine, must_keep: self.must_keep }
    }
}

impl<S: Sensing> Method<S> for OneOutput {
    const SEVERAL: bool = false;

    fn check(
        schedule: &Schedule<'_, Self>,
        dims: &Dims,
        labels: &Labels<'_, S::Machine>,
        machine: &mut S::Machine,
    ) -> Result<()> {
        dims.check()?;
        check_kept(dims, schedule.must_keep, dims.nnz)?;
        // A network of one output does not tell classes apart.
        check_finite(machine, labels.one_a_row(dims.samples)?)?;
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
        let labels = run.labels.one_a_row(run.all)?;
        let Run { sensing, schedule, networks, work, strip, seed, at, .. } = run;
        let Networks { shape, current, next, held, .. } = networks;
        let (head, strip) = (&schedule.head, *strip);
        let current = current.network(*shape);
        let generators = if head.refresh.lags() { held.network(*shape) } else { current };
        let gates = match at.round {
            0 => Gates::seeded(*seed),
            round => Gates::of(generators.w(), head.signs, head.empty, *seed, round),
        };
        let (first, w) = (rows.start, current.w());
        let mut work = Work {
            residual: row_head::<S>(work.residual, rows.len().min(strip))?,
            panel: &mut *work.panel,
            scratch: &mut *work.scratch,
            strips: (rows.len() > strip).then_some(Strips { rows, part: &mut *work.strip }),
        };
        let params = schedule.params();
        let of = Target { gates, labels, first, w, must_keep: params.must_keep };
        let info = iht::step_towards(*sensing, &of, &params, next.room(), &mut work)?;
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
        let out = row_head::<S>(run.work.residual, rows.len())?;
        run.sensing.forward(gates, w, out)?;
        let labels = run.labels.one_a_row(run.all)?;
        run.sensing.machine().residual(labels, rows.start, 1.0, out).map_err(Error::widen)
    }
}

impl<S: Sensing> Run<'_, '_, S, OneOutput> {
    /// Renews the gates where that is due; `round` 0 means that they are still random.
    fn refresh(&mut self) {
        let head = &self.schedule.head;
        let Refresh::Every(every) = head.refresh else { return };
        let is_convex = self.at.is_convex(head.convex_epochs);
        if is_convex || (self.at.round > 0 && self.at.since_refresh.saturating_add(1) < every) {
            self.at.since_refresh = self.at.since_refresh.saturating_add(1);
            return;
        }
        (self.at.round, self.at.since_refresh) = (self.at.round.wrapping_add(1), 0);
        if head.refresh.lags() {
            self.networks.hold();
        }
    }
}

/// How the s entries that stay are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Rank {
    /// By the magnitude of the step's result.
    #[default]
    Exact,
    /// By the sum of all their steps, as a count sketch estimates it ([`crate::network::sketch`]).
    /// Before each step the sketch is multiplied by `decay`; 1 as published.
    Sketch {
        /// Factor on what was added before.
        decay: f32,
    },
}

/// When random values stand for blocks without weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Standin {
    /// In all steps of the first epoch.
    FirstEpoch,
    /// In the first step of every epoch, as in the published code for batches.
    EveryEpoch,
}

/// Settings for several outputs, whose weights are trained too.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SeveralOutputs {
    /// Length of a step, eta, for residuals divided by the rows of the batch.
    pub step_size: f32,
    /// How the entries that stay are chosen.
    pub rank: Rank,
    /// As of one output.
    pub convex_epochs: u32,
    /// When the gates follow the weights.
    pub refresh: Refresh,
    /// When random values stand for blocks without weights.
    pub standin: Standin,
    /// Whether a step starts from the values that stand for such blocks, and gates are not of them, as
    /// in the published code; otherwise these are in the gradient alone, with gates of their own.
    pub keep_standins: bool,
    /// Steps that are lost when a run diverges: an epoch that ends with more than twice the least
    /// loss of an epoch so far, or with no number, is undone, and eta becomes a quarter; the result
    /// is the best iterate. It takes memory for one more network.
    pub safe: bool,
}

impl SeveralOutputs {
    /// eta for cross-entropy on pixels from 0 to 255.
    pub const CLASSES_STEP: f32 = 0.001;
    /// eta for squared loss.
    pub const VALUES_STEP: f32 = 0.005;
    /// eta for squared loss where s is small.
    pub const FEW_STEP: f32 = 2.0;

    /// The published settings for m neurons and s nonzeros: fixed steps of 0.001 for classes; for
    /// values 0.005, or 2 where `s < 6 m^0.536`; a count sketch that forgets nothing ranks the
    /// weights; gates are random in the first epoch; and random values stand for empty blocks in its
    /// steps, which start from them. That is for batches of all rows, an epoch a step.
    #[must_use]
    pub fn paper(labels: &Labels<'_>, hidden: usize, nnz: usize) -> Self {
        let few = 6.0 * math::exp(0.536 * math::ln(hidden as f32));
        let step_size = match labels {
            Labels::Classes(_) => Self::CLASSES_STEP,
            Labels::Values(_) if (nnz as f32) < few => Self::FEW_STEP,
            Labels::Values(_) => Self::VALUES_STEP,
        };
        Self {
            step_size,
            rank: Rank::Sketch { decay: 1.0 },
            convex_epochs: 1,
            refresh: Refresh::Every(1),
            standin: Standin::FirstEpoch,
            keep_standins: true,
            safe: false,
        }
    }

    /// The same with epochs that diverge undone. Gates follow the weights from the first step on, so
    /// that losses of all epochs are of one network, and random values are in the gradient alone.
    #[must_use]
    pub const fn safe(self) -> Self {
        let refresh = Refresh::Every(1);
        Self { safe: true, convex_epochs: 0, refresh, keep_standins: false, ..self }
    }

    const fn decay(&self) -> f32 {
        match self.rank {
            Rank::Exact => 1.0,
            Rank::Sketch { decay } => decay,
        }
    }
}

impl Schedule<'_, SeveralOutputs> {
    /// The published schedule, 15 full batches with the settings of [`SeveralOutputs::paper`].
    #[must_use]
    pub fn paper(labels: &Labels<'_>, hidden: usize, nnz: usize) -> Self {
        let head = SeveralOutputs::paper(labels, hidden, nnz);
        Self { epochs: 15, batch: 0, strip: 0, trials: Trials::NONE, seed: 0, must_keep: &[], head }
    }

    /// The same with divergence detected and undone, see [`SeveralOutputs::safe`].
    #[must_use]
    pub const fn safe(self) -> Self {
        Self { head: self.head.safe(), ..self }
    }

    /// The memory that a run needs for networks of `outputs` outputs, `dims.nnz` counting both
    /// sides, given the panel and the operator's scratch.
    #[must_use]
    pub const fn budget(
        &self,
        dims: Dims,
        outputs: usize,
        panel: usize,
        scratch: usize,
    ) -> Training {
        let batch = budget::batch(self.batch, dims.samples);
        let all = dims.hidden.saturating_mul(dims.inputs.saturating_add(outputs));
        let sketch = match self.head.rank {
            Rank::Exact => 0,
            Rank::Sketch { .. } => sketch::words(dims.nnz, all),
        };
        let mut budget = Training::new(dims, batch, panel, scratch);
        (budget.outputs, budget.sketch) = (outputs, sketch);
        budget.strip = budget::batch(self.strip, batch);
        budget.third_network = self.head.safe || self.head.refresh.lags();
        budget
    }
}

impl<S: Factored> Method<S> for SeveralOutputs {
    const SEVERAL: bool = true;

    fn check(
        schedule: &Schedule<'_, Self>,
        dims: &Dims,
        labels: &Labels<'_, S::Machine>,
        machine: &mut S::Machine,
    ) -> Result<()> {
        let most = u32::MAX as usize;
        error::range("samples", dims.samples, 1, most)?;
        error::range("inputs", dims.inputs, 1, most)?;
        error::range("hidden neurons", dims.hidden, 1, most)?;
        labels.check(machine, dims.samples)?;
        let c = labels.outputs(dims.samples);
        let all = dims.hidden.saturating_mul(dims.inputs.saturating_add(c));
        error::range("hidden neurons × (inputs + outputs)", all, 1, MOST_ENTRIES)?;
        error::range("nonzero weights (nnz)", dims.nnz, 1, all)?;
        check_kept(dims, schedule.must_keep, dims.nnz - 1)?;
        schedule.head.refresh.check()?;
        // The losses of a safe run are of one network.
        let convex = schedule.head.convex_epochs > 0 || schedule.head.refresh != Refresh::Every(1);
        let is_wrong = usize::from(schedule.head.safe && convex);
        error::range("random or older gates of a safe run", is_wrong, 0, 0)?;
        let (step_size, decay) = (schedule.head.step_size, schedule.head.decay());
        error::finite("step size and decay", &[step_size, decay])?;
        check_step_size(if decay >= 0.0 { step_size } else { 0.0 })
    }

    fn budget(schedule: &Schedule<'_, Self>, dims: Dims, outputs: usize, sensing: &S) -> Training {
        let mut budget = schedule.budget(dims, outputs, sensing.panel(), 0);
        budget.scratch = sensing.net_scratch(budget.strip);
        budget
    }

    fn step(run: &mut Run<'_, '_, S, Self>, rows: Range<usize>) -> Result<StepInfo, S::Source> {
        let is_start = match run.schedule.head.standin {
            Standin::FirstEpoch => run.at.epoch == 0,
            Standin::EveryEpoch => run.at.batch == 0,
        };
        // A run that was undone to its start begins like one.
        let is_start = is_start || !run.networks.network().is_live();
        run.at.round = run.at.round.wrapping_add(run.sensing.blocks() as u32 + 1);
        run.renew();
        run.in_step = true;
        let (loss, generators) = (run.sum_of_losses(rows.clone()), run.generators());
        run.in_step = false;
        let loss = loss?;
        // Reads of the batch: the outputs and the gradient, twice more for ranks and values behind a
        // sketch where it takes several panels; in strips the outputs again with every panel.
        let panels = run.sensing.blocks().div_ceil(run.sensing.panel().max(1));
        let is_exact = matches!(run.schedule.head.rank, Rank::Exact);
        let gradients = if is_exact || panels == 1 { 1.0 } else { 3.0 };
        let again = if rows.len() > run.strip { panels as f32 } else { 0.0 };
        let reads = 1.0 + gradients * (1.0 + again);
        let Run { sensing, schedule, networks, work, at, .. } = run;
        let Networks { shape, current, next, held, sketch, .. } = networks;
        let generators = generators.gates(held.network(*shape));
        let decay = schedule.head.decay();
        if let Some(sketch) = sketch.as_mut().filter(|_| decay != 1.0) {
            sketch.decay(decay);
        }
        let step = NetStep {
            net: current.network(*shape),
            labels: run.labels,
            rows,
            strip: run.strip,
            step_size: at.step_size,
            standin: is_start.then_some(run.seed),
            // What was trained is not to give way to them.
            keep_standins: schedule.head.keep_standins && !at.warm,
            generators,
            round: at.round,
            must_keep: schedule.must_keep,
        };
        let len = step.take(*sensing, sketch.as_mut(), next.room(), work)?;
        networks.advance(len);
        Ok(StepInfo { loss, step_size: at.step_size, reads })
    }

    fn residual(run: &mut Run<'_, '_, S, Self>, rows: Range<usize>) -> Result<f32, S::Source> {
        let (generators, net) = (run.generators(), run.networks.network());
        let gates = generators.gates(run.networks.held()).unwrap_or(net.gates(run.at.round));
        let NetWork { residual, scratch, .. } = &mut run.work;
        let out = row_head::<S>(residual, rows.len() * net.outputs())?;
        run.sensing.net_forward(gates, net, out, scratch)?;
        let machine = run.sensing.machine();
        run.labels.residual(machine, rows, net.outputs(), out).map_err(Error::widen)
    }

    fn is_safe(&self) -> bool {
        self.safe
    }

    fn step_size(&self) -> f32 {
        self.step_size
    }
}

/// What the gates of several outputs are of.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Generators {
    /// The weights themselves.
    Own,
    /// Random ones, drawn from this seed.
    Random(u64),
    /// The weights that are held; the number tells these gates from all others.
    Held(u32),
}

impl Generators {
    /// Their gates, given the weights that are held; none of the weights themselves.
    const fn gates(self, held: Network<'_>) -> Option<Gates<'_>> {
        match self {
            Self::Own => None,
            Self::Random(seed) => Some(Gates::seeded(seed)),
            Self::Held(round) => Some(held.gates(round)),
        }
    }
}

impl<S: Sensing> Run<'_, '_, S, SeveralOutputs> {
    /// Whether the gates of this epoch are random.
    fn is_convex(&self) -> bool {
        let head = &self.schedule.head;
        head.refresh == Refresh::Never || self.at.is_convex(head.convex_epochs)
    }

    /// Holds the weights as generators where that is due.
    fn renew(&mut self) {
        let Refresh::Every(every) = self.schedule.head.refresh else { return };
        if every > 1 && !self.is_convex() {
            if self.at.since_refresh == 0 {
                self.networks.hold();
            }
            self.at.since_refresh = (self.at.since_refresh + 1) % every;
        }
    }

    /// What the gates are of: in a step those of the step, after it those of the network.
    fn generators(&self) -> Generators {
        match self.schedule.head.refresh {
            Refresh::Every(_) if !self.in_step => Generators::Own,
            _ if self.is_convex() => Generators::Random(self.seed),
            Refresh::Every(2..) => Generators::Held(self.at.round),
            _ => Generators::Own,
        }
    }
}
