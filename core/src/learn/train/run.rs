//! A run of the published method, whatever the head: trials, epochs, checkpoints, and epochs that
//! diverge.

use super::checkpoint::{Checkpoint, Info, Phase, Progress, State, Trained, shape};
use super::schedule::{Schedule, Trials};
use super::state::{Networks, carve};
use crate::base::budget::{self, Training};
use crate::base::dims::Dims;
use crate::base::error::{self, Error, Result};
use crate::base::math::Sum;
use crate::base::rng::{batches, seed_of, stream};
use crate::learn::iht::net::NetWork;
use crate::learn::loss::Labels;
use crate::learn::start::Start;
use crate::network::gates::Signs;
use crate::operator::sensing::{Rows, Sensing};
use core::ops::{ControlFlow, Range};

/// Who sees each step.
pub(super) type Observer<'o> = dyn FnMut(&Progress<'_>) -> ControlFlow<()> + 'o;

/// What differs between heads: [`super::OneOutput`] and [`super::SeveralOutputs`], which are all
/// that there are.
pub trait Method<S: Sensing>: Copy {
    /// Whether there are several outputs, with weights of their own.
    const SEVERAL: bool;

    /// Checks sizes, labels and settings.
    fn check(
        schedule: &Schedule<'_, Self>,
        dims: &Dims,
        labels: &Labels<'_, S::Machine>,
        machine: &mut S::Machine,
    ) -> Result<()>;

    /// Memory of such a run.
    fn budget(schedule: &Schedule<'_, Self>, dims: Dims, outputs: usize, sensing: &S) -> Training;

    /// One step on a batch of the epoch, which is selected in it.
    fn step(run: &mut Run<'_, '_, S, Self>, rows: Range<usize>) -> Result<StepInfo, S::Source>;

    /// The sum of the losses of `rows`, which are selected, by the network as it is; leaves their
    /// residual.
    fn residual(run: &mut Run<'_, '_, S, Self>, rows: Range<usize>) -> Result<f32, S::Source>;

    /// Signs of the output weights, where they are such.
    fn signs(&self) -> Signs {
        Signs::Positive
    }

    /// Whether epochs that diverge are undone.
    fn is_safe(&self) -> bool {
        false
    }

    /// Length of the first step, where a run changes it.
    fn step_size(&self) -> f32 {
        0.0
    }
}

/// Checks that a step has a length.
pub(super) fn check_step_size(size: f32) -> Result<()> {
    let what = "step size";
    if size > 0.0 { Ok(()) } else { Err(Error::Range { what, min: 1, max: usize::MAX, got: 0 }) }
}

/// What a step did.
pub struct StepInfo {
    /// Sum of the losses of the rows before the step.
    pub(super) loss: f32,
    pub(super) step_size: f32,
    /// Reads of the batch.
    pub(super) reads: f32,
}

/// A run, and where it stands.
pub struct Run<'r, 'm, S: Sensing, H> {
    pub(super) sensing: &'r mut S,
    pub(super) labels: Labels<'r, S::Machine>,
    pub(super) schedule: &'r Schedule<'r, H>,
    pub(super) networks: Networks<'m>,
    pub(super) work: NetWork<'m, Rows<S>>,
    /// Counts; the best loss is that of the best trial or the least after an epoch of a safe run,
    /// infinite as long as there are no weights to come back to.
    pub(super) at: State,
    /// What random gates or values and the batches' order are drawn from now.
    pub(super) seed: u64,
    /// All rows, and those that are trained on now.
    pub(super) all: usize,
    rows: usize,
    /// Rows whose residuals there is room for.
    pub(super) strip: usize,
    pub(super) stopped: bool,
    /// Whether steps continue whatever the observer says: those of the best start after the run was
    /// ended.
    deaf: bool,
    /// Whether a step is on its way, whose gates may be others than those of the network.
    pub(super) in_step: bool,
    /// Whether epochs that diverge are undone.
    is_safe: bool,
    /// Whether it resumes from a checkpoint and has not shown that yet.
    resumed: bool,
}

impl<'r, 'm, S: Sensing, H: Method<S>> Run<'r, 'm, S, H> {
    /// A run with at most `nnz` weights that has done nothing yet, or stands where `start` says.
    pub(super) fn new(
        sensing: &'r mut S,
        labels: Labels<'r, S::Machine>,
        nnz: usize,
        start: Start<'_, Checkpoint<'_>>,
        schedule: &'r Schedule<'r, H>,
        memory: &'m mut [u32],
    ) -> Result<Self> {
        let dims = Dims::new(sensing.rows(), sensing.inputs(), sensing.blocks(), nnz);
        H::check(schedule, &dims, &labels, sensing.machine())?;
        schedule.trials.check()?;
        error::range("epochs", schedule.epochs as usize, 1, u32::MAX as usize)?;
        let outputs = labels.outputs(dims.samples);
        let budget = H::budget(schedule, dims, outputs, sensing);
        let shape = shape(&budget, schedule.head.signs());
        let (networks, work) = carve(sensing.machine(), shape, &budget, schedule.seed, memory)?;
        let all = dims.samples;
        let mut run = Self {
            sensing,
            labels,
            schedule,
            networks,
            work,
            at: State { step_size: schedule.head.step_size(), ..State::start() },
            seed: schedule.seed,
            all,
            rows: all,
            strip: budget::batch(schedule.strip, budget::batch(schedule.batch, all)),
            stopped: false,
            deaf: false,
            in_step: false,
            is_safe: schedule.head.is_safe(),
            resumed: false,
        };
        match start {
            Start::Zero => {}
            Start::Checkpoint(from) => run.load(from)?,
            Start::Network(network) => run.load(&Checkpoint::starting(network))?,
        }
        Ok(run)
    }

    fn load(&mut self, from: &Checkpoint<'_>) -> Result<()> {
        let (at, schedule) = (from.state, self.schedule);
        at.check(&schedule.trials, schedule.epochs, self.all, schedule.batch)?;
        // The gates of several outputs are numbered by their blocks.
        let round = if H::SEVERAL { 0 } else { at.round };
        let gates = round.max(at.since_refresh) as usize;
        error::range("gates of the checkpoint", gates, 0, at.step as usize)?;
        self.networks.load(from, schedule.must_keep)?;
        self.resumed = !at.is_first();
        self.at = if self.resumed { at } else { State { step_size: self.at.step_size, ..at } };
        Ok(())
    }

    /// All trials, and all epochs on all rows.
    pub(super) fn train(&mut self, observe: &mut Observer<'_>) -> Result<(), S::Source> {
        let Trials { count, rows } = self.schedule.trials;
        if count > 1 && self.at.phase != Phase::All {
            self.rows = rows.min(self.all);
            self.trials(observe)?;
        }
        if count > 1 {
            self.seed = self.seed_of(self.at.best_trial);
        }
        (self.at.phase, self.rows) = (Phase::All, self.all);
        self.epochs(observe)
    }

    /// Leaves the weights of the best start, and the counters of its sketch.
    fn trials(&mut self, observe: &mut Observer<'_>) -> Result<(), S::Source> {
        let zero = self.labels.loss_of_zero(self.sensing.machine(), self.rows, self.all);
        let exact = if let Labels::Values(_) = self.labels { Trials::EXACT * zero } else { 0.0 };
        while self.at.phase == Phase::Trials {
            let loss = self.attempt(self.at.trial, observe)?;
            self.at.trials = self.at.trials.saturating_add(1);
            if loss < self.at.best {
                (self.at.best, self.at.best_trial) = (loss, self.at.trial);
            }
            if self.stopped || loss <= exact || self.at.trial + 1 >= self.schedule.trials.count {
                break;
            }
            self.at.trial += 1;
        }
        if self.at.trial != self.at.best_trial {
            self.at.phase = Phase::Again;
            let stopped = core::mem::take(&mut self.stopped);
            self.deaf = stopped;
            self.attempt(self.at.best_trial, observe)?;
            (self.deaf, self.stopped) = (false, stopped | self.stopped);
        }
        // What is worse than no weights may be no start, but is better than nothing where the run
        // was ended.
        let is_start = self.stopped || !H::SEVERAL || self.at.best < zero;
        (self.at.tried, self.at.warm) =
            (self.at.step, is_start && self.networks.network().is_live());
        (self.at.best, self.at.step_size) = (f32::INFINITY, self.schedule.head.step_size());
        if !self.at.warm {
            self.clear();
        }
        Ok(())
    }

    /// One start on the rows of a trial, without safety; infinity where it diverges.
    fn attempt(&mut self, trial: u32, observe: &mut Observer<'_>) -> Result<f32, S::Source> {
        self.seed = self.seed_of(trial);
        if !self.resumed {
            self.clear();
        }
        let mut done = Ok(());
        for epoch in self.at.epoch..self.schedule.epochs {
            self.at.epoch = epoch;
            done = self.epoch(observe);
            if done.is_err() || self.stopped {
                break;
            }
            self.at.batch = 0;
        }
        (self.at.epoch, self.at.batch) = (0, 0);
        match self.heed(done).and_then(|()| self.loss()) {
            Err(Error::Diverged { .. }) => {
                self.clear();
                Ok(f32::INFINITY)
            }
            loss => {
                self.at.passes += self.rows as f32 / self.all as f32;
                loss
            }
        }
    }

    /// Notes where the operator has ended the run, which is no failure.
    fn heed(&mut self, done: Result<(), S::Source>) -> Result<(), S::Source> {
        match done {
            Err(Error::Stopped) => {
                self.stopped = true;
                Ok(())
            }
            done => done,
        }
    }

    /// The epochs on all rows.
    fn epochs(&mut self, observe: &mut Observer<'_>) -> Result<(), S::Source> {
        let is_safe = self.is_safe;
        if is_safe && !self.resumed {
            self.at.zero = self.loss()?;
            if self.networks.network().is_live() {
                // From weights: what there is to come back to.
                self.at.best = self.at.zero;
                self.networks.hold();
            }
        }
        for epoch in self.at.epoch..self.schedule.epochs {
            self.at.epoch = epoch;
            match self.epoch(observe) {
                Err(Error::Diverged { .. }) if is_safe => self.undo(),
                Err(Error::Diverged { .. }) => {
                    return Err(Error::Diverged { step: self.at.step as usize });
                }
                done => {
                    self.heed(done)?;
                    if is_safe {
                        self.judge()?;
                    }
                }
            }
            (self.at.epoch, self.at.batch) =
                (epoch + u32::from(self.at.batch > 0 || !self.stopped), 0);
            if self.stopped {
                break;
            }
        }
        if is_safe {
            self.networks.recall();
        }
        Ok(())
    }

    /// The steps of an epoch from where the run stands, until the observer ends the run.
    fn epoch(&mut self, observe: &mut Observer<'_>) -> Result<(), S::Source> {
        if core::mem::take(&mut self.resumed) {
            self.tell(f32::NAN, 0.0, observe);
        }
        let (epoch, done) = (self.at.epoch, self.at.batch as usize);
        let batch = budget::batch(self.schedule.batch, self.rows);
        for rows in batches(self.seed, epoch, self.rows, batch).skip(done) {
            if self.stopped {
                break;
            }
            let count = rows.len() as f32;
            let done = H::step(self, rows)?;
            self.at.step = self.at.step.saturating_add(1);
            self.at.batch += 1;
            self.at.passes += done.reads * count / self.all as f32;
            self.tell(done.loss / count / self.labels.terms(self.all), done.step_size, observe);
        }
        Ok(())
    }

    /// Shows the observer where the run stands. Not inlined, so that what it shows is on the stack
    /// for that time only.
    #[inline(never)]
    fn tell(&mut self, loss: f32, step_size: f32, observe: &mut Observer<'_>) {
        let (network, schedule) = (self.networks.network(), self.schedule);
        let progress = Progress {
            step: self.at.step,
            steps: schedule.trials.steps(schedule.epochs, self.all, schedule.batch),
            trial: self.at.started(),
            loss,
            step_size,
            nnz: network.nnz(),
            live: network.live(),
            passes: self.at.passes,
            checkpoint: (!self.stopped && !self.deaf).then(|| self.networks.checkpoint(self.at)),
        };
        self.stopped |= observe(&progress).is_break() && !self.deaf;
    }

    /// After an epoch of a safe run: keeps what is best so far, or goes back to it.
    fn judge(&mut self) -> Result<(), S::Source> {
        let loss = match self.loss() {
            Err(Error::Diverged { .. }) => f32::INFINITY,
            loss => loss?,
        };
        self.at.passes += 1.0;
        let most = DIVERGED * self.at.best.min(self.at.zero);
        if loss.is_nan() || loss > most {
            self.undo();
        } else if loss < self.at.best {
            self.at.best = loss;
            self.networks.hold();
        }
        Ok(())
    }

    /// Back to the best iterate, with shorter steps.
    fn undo(&mut self) {
        self.at.undone = self.at.undone.saturating_add(1);
        self.at.step_size *= SHORTER;
        self.networks.recall();
        self.networks.forget();
    }

    /// Back to no weights.
    fn clear(&mut self) {
        self.networks.clear();
        self.at.since_refresh = 0;
        if !H::SEVERAL {
            self.at.round = 0;
        }
    }

    /// Mean loss over the rows that are trained on, which a run that ends needs all the same.
    pub(super) fn loss(&mut self) -> Result<f32, S::Source> {
        error::insist(
            self,
            |run| run.stopped = true,
            |run| {
                // The gates of a network that has changed.
                run.at.round = run.at.round.wrapping_add(u32::from(H::SEVERAL));
                let (rows, terms) = (run.rows, run.labels.terms(run.all));
                let loss = run.sum_of_losses(0..rows)? / rows as f32 / terms;
                if loss.is_finite() { Ok(loss) } else { Err(Error::Diverged { step: 0 }) }
            },
        )
    }

    /// The sum of the losses of `rows`, which are selected in the end. Their residual is left where
    /// there is room for it.
    pub(super) fn sum_of_losses(&mut self, rows: Range<usize>) -> Result<f32, S::Source> {
        let mut sum = Sum::default();
        for start in rows.clone().step_by(self.strip.max(1)) {
            let part = start..(start + self.strip).min(rows.end);
            self.sensing.select(part.clone())?;
            let loss = H::residual(self, part)?;
            if !loss.is_finite() {
                return Err(Error::Diverged { step: 0 });
            }
            sum.add(loss);
        }
        if rows.len() > self.strip {
            self.sensing.select(rows)?;
        }
        Ok(sum.value())
    }

    /// What was done, and the network.
    pub(super) fn finish(self, loss: f32) -> Trained<'m> {
        let (at, network) = (self.at, self.networks.into_network());
        let info = Info {
            steps: at.step - at.tried,
            epochs: at.epoch,
            loss,
            nnz: network.nnz(),
            live: network.live(),
            passes: at.passes + 1.0,
            trials: at.trials,
            undone: at.undone,
            stopped: self.stopped,
        };
        Trained { network, info }
    }

    fn seed_of(&self, trial: u32) -> u64 {
        seed_of(self.schedule.seed, stream::TRIAL, trial)
    }
}

/// An epoch that ends with so many times the least loss has diverged.
const DIVERGED: f32 = 2.0;
/// Factor on the step size then.
const SHORTER: f32 = 0.25;
