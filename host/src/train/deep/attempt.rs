//! One attempt after the other: all layers, one by one, then together.

use std::time::{Duration, Instant};

use rayon::ThreadPool;
use tamis::infer::model::Layer;
use tamis::learn::deep::{self, Stack, shrink, tune};

use super::job::DeepJob;
use super::layer::{DeepRun, TrainedLayer};
use crate::base::limits::Limits;
use crate::data::{Problem, Task};
use crate::model::{ModelFile, Score, score_model};
use crate::train::joint::{
    EXACT, Ending, Joint, encode_stack, fit_together, push_layer, two_layers,
};
use crate::train::options::Recipe;
use crate::train::progress::{Observer, Stage};
use crate::train::report::{DeepLayer, LayersDetails};
use crate::train::threshold;
use crate::train::trained::shuffle;
use crate::{Error, Result};

/// What a run holds while it holds the most.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Most {
    pub(super) mapped: u64,
    pub(super) state: u64,
    pub(super) workspace: u64,
}

impl Most {
    fn see(&mut self, now: Self) {
        let total = |most: &Self| most.mapped.saturating_add(most.state + most.workspace);
        if total(&now) > total(self) {
            *self = now;
        }
    }
}

/// The layers as their recipes gave them.
struct TrainedLayers {
    layers: Vec<DeepLayer>,
    ending: Ending,
    limit: Option<&'static str>,
    stopped: bool,
}

/// A network that was trained.
pub(super) struct Attempt {
    pub(super) model: ModelFile,
    pub(super) score: Score,
    pub(super) nnz: usize,
    pub(super) details: LayersDetails,
    pub(super) limit: Option<&'static str>,
    pub(super) stopped: bool,
}

impl Attempt {
    /// Whether another one could only be better by rounding.
    fn is_exact(&self) -> bool {
        let above = self.score.psnr_db.zip(self.score.zero_psnr_db).map(|(own, zero)| own - zero);
        above.is_some_and(|db| db > -10.0 * EXACT.log10())
    }
}

/// A run over its attempts.
pub(super) struct Run<'a> {
    job: &'a DeepJob<'a>,
    pool: &'a ThreadPool,
    pub(super) most: Most,
    pub(super) passes: f64,
    /// Attempts that were begun.
    pub(super) attempts: u32,
    start: Instant,
}

impl<'a> Run<'a> {
    pub(super) fn new(job: &'a DeepJob<'a>, pool: &'a ThreadPool) -> Self {
        let start = Instant::now();
        Self { job, pool, most: Most::default(), passes: 0.0, attempts: 0, start }
    }

    /// What the next of so many stages of an attempt may take: an even share of what is left, or of
    /// half of that where there are attempts behind this one, and at least a millisecond.
    fn share(&self, parts: usize) -> Limits {
        let is_last = self.attempts as usize >= self.job.grown.len();
        let parts = parts * if is_last { 1 } else { 2 };
        let left = |limit: Duration| {
            limit.saturating_sub(self.start.elapsed()).max(Duration::from_millis(1))
        };
        let Limits { time, passes } = self.job.options.limits;
        Limits {
            time: time.map(|limit| left(limit) / parts as u32),
            passes: passes.map(|limit| (limit - self.passes).max(0.0) / parts as f64),
        }
    }

    /// Whether a limit of the whole run is reached.
    fn is_over(&self) -> bool {
        let Limits { time, passes } = self.job.options.limits;
        time.is_some_and(|limit| self.start.elapsed() >= limit)
            || passes.is_some_and(|limit| self.passes >= limit)
    }

    /// The joint fit in so many passes, or in as few as it can be.
    fn planned(&self, passes: Option<f64>) -> (shrink::Params, tune::Params) {
        let (shrink, tune) = (self.job.shrink, self.job.tune);
        let all = f64::from(shrink.levels) * (3.0 + 3.0 * f64::from(shrink.tune.epochs))
            + 3.0 * f64::from(tune.epochs);
        let part = passes.map_or(1.0, |passes| (passes / all.max(1.0)).min(1.0));
        let of =
            |count: u32| if count == 0 { 0 } else { ((f64::from(count) * part) as u32).max(1) };
        let shrink = shrink::Params { levels: of(shrink.levels), ..shrink };
        (shrink, tune::Params { epochs: of(tune.epochs), ..tune })
    }

    /// The best attempt. What ends another one than the first, ends the run with the best so far.
    pub(super) fn attempts(
        &mut self,
        mut problem: Problem,
        observer: &mut Observer<'_>,
    ) -> Result<Attempt> {
        let mut best: Option<Attempt> = None;
        for grown in self.job.grown.clone() {
            self.attempts += 1;
            match (self.attempt(problem, grown, observer), &mut best) {
                (Ok((attempt, back)), _) => {
                    problem = back;
                    let is_last = attempt.stopped || attempt.is_exact() || self.is_over();
                    let (limit, stopped) = (attempt.limit, attempt.stopped);
                    let best = match &mut best {
                        Some(best) if best.score.loss <= attempt.score.loss => best,
                        _ => best.insert(attempt),
                    };
                    (best.limit, best.stopped) = (limit.or(best.limit), stopped);
                    if is_last {
                        break;
                    }
                }
                (Err(error), None) => return Err(error),
                (Err(error), Some(best)) => {
                    best.stopped |= error.is_interrupted();
                    break;
                }
            }
        }
        best.ok_or_else(two_layers)
    }

    /// One attempt; the problem is given back with its rows in another order.
    fn attempt(
        &mut self,
        problem: Problem,
        grown: usize,
        observer: &mut Observer<'_>,
    ) -> Result<(Attempt, Problem)> {
        let (mut index, mut value) = (vec![0; grown], vec![0.0; grown]);
        let mut stack = Stack::new(problem.data.cols, &mut index, &mut value);
        let (mut trained, problem) = self.layers(problem, &mut stack, grown, observer)?;
        // The signs and weights of the end outlive the stack's end.
        let ending = core::mem::take(&mut trained.ending);
        ending.end(&mut stack)?;
        self.pool.install(|| self.finish(problem, stack, &ending.signs, trained, observer))
    }

    /// Trains all hidden layers, one by one, into `stack`, to `grown` nonzeros; the problem is
    /// given back as it was.
    fn layers(
        &mut self,
        mut problem: Problem,
        stack: &mut Stack<'_>,
        grown: usize,
        observer: &mut Observer<'_>,
    ) -> Result<(TrainedLayers, Problem)> {
        let count = self.job.hidden.len();
        let mut rooms = self.job.rooms.clone();
        let mut done = Vec::new();
        for layer in 0..count {
            if layer > 0 {
                // Neurons without weights were pruned, and take room from the layer behind them.
                let ends = if layer + 1 == count { self.job.outputs } else { 0 };
                let most =
                    self.job.hidden[layer].saturating_mul(stack.width().saturating_add(ends));
                rooms[layer] = most.min(rooms[layer]);
            }
            let share = match self.job.even {
                true => (grown / count).min(rooms[layer]),
                false => deep::share(grown, &rooms, layer, stack.nnz()),
            };
            let parts = count - layer + usize::from(self.job.tune.epochs > 0);
            let run = DeepRun { job: self.job, layer, share, limits: self.share(parts) };
            let attempt = self.attempts.saturating_sub(1);
            let mut observer = observer.at(Stage { attempt, layer, ..Stage::default() });
            let TrainedLayer { trained, mapped, problem: back } =
                run.train(problem, stack, &mut observer)?;
            problem = back;
            let found = &trained.report;
            if found.stopped && layer + 1 < count {
                return Err(Error::interrupted_in(format_args!(
                    "in hidden layer {} of {count}, and only a run whose last layer has begun \
                     gives a model: nothing is saved",
                    layer + 1
                )));
            }
            let view = trained.model.view()?;
            let [Layer::Csr(csr), end] = view.model().layers() else { return Err(two_layers()) };
            push_layer(stack, csr)?;
            done.push(DeepLayer {
                hidden: self.job.hidden[layer],
                live: csr.outputs(),
                share,
                nnz: csr.nonzeros(),
                loss: found.loss,
                mapped_bytes: mapped,
            });
            self.passes += found.passes;
            self.most.see(Most {
                mapped,
                state: found.state_bytes + self.job.layers_bytes() as u64,
                workspace: found.workspace_bytes,
            });
            if layer + 1 == count {
                let ending = Ending::new(end)?;
                let (limit, stopped) = (found.limit, found.stopped);
                return Ok((TrainedLayers { layers: done, ending, limit, stopped }, problem));
            }
        }
        Err(two_layers())
    }

    /// Fits all layers together, encodes and scores them.
    fn finish(
        &mut self,
        mut problem: Problem,
        mut stack: Stack<'_>,
        signs: &[u32],
        trained: TrainedLayers,
        observer: &mut Observer<'_>,
    ) -> Result<(Attempt, Problem)> {
        shuffle(&mut problem, self.job.tune.seed);
        let TrainedLayers { layers, mut limit, mut stopped, .. } = trained;
        let grown_nnz = stack.nnz();
        let mut details = LayersDetails { layers, grown_nnz, ..LayersDetails::default() };
        if self.job.tune.epochs > 0 && (!stopped || grown_nnz > self.job.nnz) {
            let (attempt, layer) = (self.attempts.saturating_sub(1), self.job.hidden.len());
            let mut observer = observer.at(Stage { attempt, layer, ..Stage::default() });
            let share = self.share(1);
            let (mut shrink, mut tune) = self.planned(share.passes);
            if stopped {
                // Weights are dropped all the same.
                (shrink.levels, shrink.tune.epochs, tune.epochs) = (1, 0, 0);
            }
            let (nnz, is_class) = (self.job.nnz, problem.task == Task::Multiclass);
            let joint =
                Joint { shrink: Some(&shrink), nnz, tune: &tune, is_class, time: share.time };
            let fitted =
                fit_together(&mut stack, &problem, &joint, observer.stop, &mut |progress| {
                    observer.epoch(progress.epoch, progress.epochs, progress.best)
                })?;
            let state = fitted.memory_bytes + self.job.layers_bytes() as u64;
            self.most.see(Most { state, ..Most::default() });
            self.passes += fitted.passes;
            limit = limit.or(fitted.limit);
            stopped |= fitted.stopped;
            details.untuned_loss = Some(f64::from(fitted.before));
            details.tune_epochs = fitted.epochs;
        }
        for (layer, w) in details.layers.iter_mut().zip(stack.layers()) {
            (layer.nnz, layer.live) = (w.nnz(), w.blocks().count());
        }
        let model = encode_stack(&stack, self.job.hidden, signs, Some(problem.task.stored()))?;
        let mut model = ModelFile::new(&model);
        if matches!(self.job.recipe, Recipe::Lm(_)) {
            model = threshold::of_model(&model, &problem, 0..problem.data.rows)?;
        }
        let score = score_model(model.bytes(), &problem)?;
        let nnz = stack.nnz();
        Ok((Attempt { model, score, nnz, details, limit, stopped }, problem))
    }
}
