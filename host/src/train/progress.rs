//! What a run tells of its steps, whatever the recipe.

use std::ops::ControlFlow;

use serde::Serialize;
use tamis::base::record::Record;
use tamis::learn::deep::dynamic;
use tamis::learn::{anneal, lm, train};

use crate::operator::Stop;
use crate::train::checkpoint::CheckpointFile;

/// Which network of a run is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage {
    /// Number of the training along a regularisation path, from 0, …
    pub training: usize,
    /// … of so many; 1 where there is no path.
    pub trainings: usize,
    /// Its nonzeros, where there is a path.
    pub nnz: usize,
    /// The fold that it leaves out, from 0; none for all rows.
    pub fold: Option<usize>,
    /// The attempt at a network of several hidden layers, or the start of recipe `dynamic`, from 0.
    pub attempt: u32,
    /// The hidden layer, from 0; the number of layers while all are fitted together.
    pub layer: usize,
}

impl Default for Stage {
    fn default() -> Self {
        Self { training: 0, trainings: 1, nnz: 0, fold: None, attempt: 0, layer: 0 }
    }
}

/// One step of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// Which network.
    pub stage: Stage,
    /// The step, or the epoch of recipe `imp` and of a joint fit, from 1.
    pub step: u32,
    /// Planned ones; 0 where that is open.
    pub steps: u32,
    /// The loss: of the rows of the step, and of a joint fit the least so far.
    pub loss: f32,
    /// Nonzeros.
    pub nnz: usize,
    /// Neurons that have weights.
    pub live: usize,
    /// Passes over all rows so far.
    pub passes: f64,
    /// What the recipe adds.
    pub details: StepDetails,
}

/// What a recipe tells of a step beyond [`Progress`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum StepDetails {
    /// Of recipe `lm`.
    Lm {
        /// What the search does: `descend`, `trial`, `move`, `kick`, `finish`, `all-rows` or
        /// `polish`.
        phase: &'static str,
        /// The least loss so far of networks that may be the result, with at most s weights; none
        /// before there is one.
        best: Option<f32>,
        /// The least loss so far, whatever the support.
        search_best: f32,
        /// Local search moves taken.
        moves: u32,
        /// Perturbations.
        kicks: u32,
    },
    /// Of recipe `anneal`.
    Anneal {
        /// Steps of an epoch.
        #[serde(skip)]
        epoch_steps: u32,
        /// The learning rate.
        rate: f32,
        /// The last loss on the validation split.
        #[serde(skip)]
        validation_loss: Option<f32>,
        /// The share of it that is right.
        #[serde(skip)]
        validation_accuracy: Option<f32>,
    },
    /// Of recipe `paper`.
    Paper {
        /// Random start, from 1; 0 in the run on all rows.
        trial: u32,
        /// Length of the step.
        step_size: f32,
    },
    /// Of an epoch of recipe `dynamic`.
    Dynamic {
        /// Random start, from 1.
        start: u32,
        /// The loss on the validation split, where it was looked at.
        #[serde(skip)]
        validation_loss: Option<f32>,
    },
    /// Of a level of recipe `imp`, or a joint fit of all layers.
    Epoch,
}

impl StepDetails {
    /// The least loss so far where the recipe tells it.
    #[must_use]
    pub const fn least(&self) -> Option<f32> {
        if let Self::Lm { search_best, .. } = self { Some(*search_best) } else { None }
    }
}

/// The observer of a run, what may end it besides, and the file of its checkpoints.
pub(crate) struct Observer<'o> {
    stage: Stage,
    pub(crate) checkpoint: Option<&'o mut CheckpointFile>,
    pub(crate) stop: &'o Stop,
    tell: &'o mut (dyn FnMut(&Progress) -> ControlFlow<()> + Send),
}

impl<'o> Observer<'o> {
    pub(crate) fn new(
        stop: &'o Stop,
        tell: &'o mut (dyn FnMut(&Progress) -> ControlFlow<()> + Send),
    ) -> Self {
        Self { stage: Stage::default(), checkpoint: None, stop, tell }
    }

    /// Where it is.
    pub(crate) const fn stage(&self) -> Stage {
        self.stage
    }

    /// The same at another stage, without checkpoints.
    pub(crate) fn at(&mut self, stage: Stage) -> Observer<'_> {
        Observer { stage, checkpoint: None, stop: self.stop, tell: self.tell }
    }

    /// Tells of an epoch; whether the run continues.
    pub(crate) fn epoch(&mut self, step: u32, steps: u32, loss: f32) -> bool {
        let (stage, details) = (self.stage, StepDetails::Epoch);
        self.tell(Progress { stage, step, steps, loss, nnz: 0, live: 0, passes: 0.0, details })
    }

    /// Tells of an epoch of recipe `dynamic`.
    pub(crate) fn dynamic(&mut self, now: &dynamic::Progress<'_>) -> bool {
        let &dynamic::Progress { epoch: step, epochs: steps, loss, nnz, live, validation, .. } =
            now;
        let (stage, passes) = (self.stage, f64::from(step));
        let start = stage.attempt + 1;
        let details = StepDetails::Dynamic { start, validation_loss: validation };
        let goes_on = self.tell(Progress { stage, step, steps, loss, nnz, live, passes, details });
        self.offer(Some(&now.checkpoint));
        goes_on
    }

    /// Tells of an outer step of a search on so many rows, or takes its checkpoint.
    pub(crate) fn lm(&mut self, progress: &lm::Progress<'_>, rows: usize) -> bool {
        if progress.checkpoint.is_some() {
            self.offer(progress.checkpoint.as_ref());
            return true;
        }
        let phase = match progress.phase {
            lm::Phase::Descend => "descend",
            lm::Phase::Trial => "trial",
            lm::Phase::Move => "move",
            lm::Phase::Perturb => "kick",
            lm::Phase::Finish => "finish",
            lm::Phase::AllRows => "all-rows",
            lm::Phase::Polish => "polish",
        };
        let &lm::Progress {
            step,
            loss,
            best,
            search_best,
            support,
            live,
            moves,
            perturbations: kicks,
            rows_read,
            ..
        } = progress;
        let best = Some(best).filter(|best| best.is_finite());
        self.tell(Progress {
            stage: self.stage,
            step,
            steps: 0,
            loss,
            nnz: support,
            live,
            passes: rows_read as f64 / rows.max(1) as f64,
            details: StepDetails::Lm { phase, best, search_best, moves, kicks },
        })
    }

    /// Tells of a step of recipe `anneal` on so many rows.
    pub(crate) fn anneal(&mut self, progress: &anneal::Progress<'_>, rows: usize) -> bool {
        let &anneal::Progress { step, steps, epoch_steps, loss, rate, nnz, live, .. } = progress;
        let (stage, passes) = (self.stage, progress.rows_read as f64 / rows.max(1) as f64);
        let validation = progress.validation;
        let details = StepDetails::Anneal {
            epoch_steps,
            rate,
            validation_loss: validation.map(|split| split.loss),
            validation_accuracy: validation.map(|split| split.accuracy()),
        };
        let goes_on = self.tell(Progress { stage, step, steps, loss, nnz, live, passes, details });
        self.offer(Some(&progress.checkpoint));
        goes_on
    }

    /// Tells of a step of the published method.
    pub(crate) fn paper(&mut self, progress: &train::Progress<'_>) -> bool {
        let &train::Progress { step, steps, trial, loss, step_size, nnz, live, passes, .. } =
            progress;
        let (stage, passes) = (self.stage, f64::from(passes));
        let details = StepDetails::Paper { trial, step_size };
        let goes_on = self.tell(Progress { stage, step, steps, loss, nnz, live, passes, details });
        self.offer(progress.checkpoint.as_ref());
        goes_on
    }

    fn tell(&mut self, progress: Progress) -> bool {
        (self.tell)(&progress).is_continue()
    }

    fn offer(&mut self, checkpoint: Option<&impl Record>) {
        if let (Some(file), Some(checkpoint)) = (&mut self.checkpoint, checkpoint) {
            file.take(checkpoint);
        }
    }
}
