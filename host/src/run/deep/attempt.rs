//! One attempt after the other: all layers, one by one, then together.

use std::time::{Duration, Instant};

use rayon::ThreadPool;
use tamis::deep::{self, Stack, shrink, tune};
use tamis::model::Layer;
use tamis::weights::Weights;
use tamis::wire;

use super::joint::{EXACT, Joint, ending, fit_together, layers_of, push_layer, two_layers};
use super::layer::Found;
use super::{DeepLayer, DeepOptions, DeepProgress, Sizes};
use crate::file::Aligned;
use crate::operator::Stop;
use crate::run::layers::encode_layers;
use crate::run::limits::Limits;
use crate::run::train::shuffle;
use crate::run::{Problem, Score, Task, score_model};
use crate::{Error, Result};

/// What a run holds while it holds the most.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Most {
    pub(super) mapped: u64,
    pub(super) state: u64,
    pub(super) workspace: u64,
}

impl Most {
    const fn total(&self) -> u64 {
        self.mapped.saturating_add(self.state).saturating_add(self.workspace)
    }

    fn see(&mut self, now: Self) {
        if now.total() > self.total() {
            *self = now;
        }
    }
}

/// The layers as their recipes gave them.
struct Trained {
    layers: Vec<DeepLayer>,
    /// Neurons of the last layer whose output is taken away, as bits.
    signs: Vec<u32>,
    /// Outputs and the weights to them: flat indices over the live neurons of the last layer, and values.
    outputs: Option<(usize, Vec<u32>, Vec<f32>)>,
    limit: Option<&'static str>,
    stopped: bool,
}

/// A network that was trained.
pub(super) struct Attempt {
    pub(super) model: Vec<u8>,
    pub(super) score: Score,
    pub(super) nnz: usize,
    pub(super) grown_nnz: usize,
    pub(super) layers: Vec<DeepLayer>,
    /// Loss before the joint fit, and its epochs.
    pub(super) tuned: Option<(f32, u32)>,
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
    pub(super) options: &'a DeepOptions,
    pub(super) sizes: Sizes,
    pub(super) most: Most,
    pub(super) passes: f64,
    /// Attempts that were begun.
    pub(super) attempts: u32,
    start: Instant,
}

type Observe<'o> = dyn FnMut(&DeepProgress) -> bool + Send + 'o;

impl<'a> Run<'a> {
    pub(super) fn new(options: &'a DeepOptions, sizes: Sizes) -> Self {
        Self { options, sizes, most: Most::default(), passes: 0.0, attempts: 0, start: Instant::now() }
    }

    /// What the next of so many parts of an attempt may take of the time and the passes that are left: an even part of them,
    /// of half of them where there are attempts behind this one. No time at all is as little as there is.
    pub(super) fn share(&self, parts: usize) -> Limits {
        let is_last = self.attempts as usize >= self.sizes.grown.len();
        let parts = parts * if is_last { 1 } else { 2 };
        let time = |limit: Duration| limit.saturating_sub(self.start.elapsed()).max(Duration::from_millis(1));
        Limits {
            time: self.options.limits.time.map(|limit| time(limit) / parts as u32),
            passes: self.options.limits.passes.map(|limit| (limit - self.passes).max(0.0) / parts as f64),
        }
    }

    /// Whether a limit of the whole run is reached.
    fn is_over(&self) -> bool {
        let Limits { time, passes } = self.options.limits;
        time.is_some_and(|limit| self.start.elapsed() >= limit)
            || passes.is_some_and(|limit| self.passes >= limit)
    }

    /// The joint fit in so many passes, or in as few as it can be.
    fn planned(&self, passes: Option<f64>) -> (shrink::Params, tune::Params) {
        let (shrink, tune) = (self.options.shrink, self.options.tune);
        let all = f64::from(shrink.levels) * (3.0 + 3.0 * f64::from(shrink.tune.epochs))
            + 3.0 * f64::from(tune.epochs);
        let part = passes.map_or(1.0, |passes| (passes / all.max(1.0)).min(1.0));
        let of = |count: u32| if count == 0 { 0 } else { ((f64::from(count) * part) as u32).max(1) };
        let shrink = shrink::Params { levels: of(shrink.levels), ..shrink };
        (shrink, tune::Params { epochs: of(tune.epochs), ..tune })
    }

    /// The best of all attempts. What ends another one than the first, ends the run with the best so far.
    pub(super) fn attempts(
        &mut self,
        mut problem: Problem,
        (pool, stop): (&ThreadPool, &Stop),
        observe: &mut Observe<'_>,
    ) -> Result<Attempt> {
        let mut best: Option<Attempt> = None;
        for grown in self.sizes.grown.clone() {
            self.attempts += 1;
            match (self.attempt(problem, grown, (pool, stop), observe), &mut best) {
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

    /// A network of layers that are trained to `grown` nonzeros; the problem is given back with its rows in another order.
    fn attempt(
        &mut self,
        problem: Problem,
        grown: usize,
        (pool, stop): (&ThreadPool, &Stop),
        observe: &mut Observe<'_>,
    ) -> Result<(Attempt, Problem)> {
        let (mut index, mut value) = (vec![0; grown], vec![0.0; grown]);
        let mut stack = Stack::new(problem.data.cols, &mut index, &mut value);
        let (mut trained, problem) = self.layers(problem, (&mut stack, grown), stop, observe)?;
        // The bits of the signs outlive the stack's end.
        let signs = core::mem::take(&mut trained.signs);
        match &trained.outputs {
            None => stack.end_sum(&signs)?,
            Some((outputs, index, value)) => {
                let live = stack.width();
                stack.end_weights(Weights::new(*outputs, live, index, value)?)?;
            }
        }
        pool.install(|| self.finish(problem, (stack, &signs), trained, stop, observe))
    }

    /// Trains all hidden layers, one by one, into `stack`, to `grown` nonzeros; the problem is given back as it was.
    fn layers(
        &mut self,
        mut problem: Problem,
        (stack, grown): (&mut Stack<'_>, usize),
        stop: &Stop,
        observe: &mut (dyn FnMut(&DeepProgress) -> bool + Send),
    ) -> Result<(Trained, Problem)> {
        let count = self.options.hidden.len();
        let mut rooms = self.sizes.rooms.clone();
        let mut done = Vec::new();
        for layer in 0..count {
            if layer > 0 {
                // Neurons without weights were left out, and take room from the layer behind them.
                let ends = if layer + 1 == count { self.sizes.outputs } else { 0 };
                let most = self.options.hidden[layer].saturating_mul(stack.width().saturating_add(ends));
                rooms[layer] = most.min(rooms[layer]);
            }
            let share = deep::share(grown, &rooms, layer, stack.nnz());
            let found;
            (found, problem) = self.layer(problem, stack, (layer, share), stop, observe)?;
            let Found { single: found, mapped } = found;
            if found.stopped && layer + 1 < count {
                return Err(Error::interrupted_in(format_args!(
                    "in hidden layer {} of {count}, and only a run whose last layer has begun gives a model: nothing is saved",
                    layer + 1
                )));
            }
            let bytes = Aligned::new(&found.model);
            let view = wire::View::parse(&bytes)?;
            let [Layer::Csr(csr), end] = view.model().layers() else { return Err(two_layers()) };
            push_layer(stack, csr)?;
            done.push(DeepLayer {
                hidden: self.options.hidden[layer],
                live: csr.outputs(),
                share,
                nnz: csr.nonzeros(),
                loss: found.loss,
                mapped_bytes: mapped,
            });
            self.passes += found.passes;
            self.most.see(Most {
                mapped,
                state: found.plan.state_bytes + self.sizes.layers_bytes() as u64,
                workspace: found.plan.workspace_bytes,
            });
            if layer + 1 == count {
                let (signs, outputs) = ending(end, csr.outputs())?;
                let (limit, stopped) = (found.limit, found.stopped);
                let trained = Trained { layers: done, signs, outputs, limit, stopped };
                return Ok((trained, problem));
            }
        }
        Err(two_layers())
    }

    /// Fits all layers together, encodes and scores them.
    fn finish(
        &mut self,
        problem: Problem,
        (mut stack, signs): (Stack<'_>, &[u32]),
        trained: Trained,
        stop: &Stop,
        observe: &mut Observe<'_>,
    ) -> Result<(Attempt, Problem)> {
        let Problem { mut data, mut labels, task } = problem;
        shuffle(&mut data, &mut labels, self.options.tune.seed);
        let Trained { mut layers, mut limit, mut stopped, .. } = trained;
        let grown_nnz = stack.nnz();
        let mut tuned = None;
        if self.options.tune.epochs > 0 && (!stopped || grown_nnz > self.sizes.nnz) {
            let (attempt, layer) = (self.attempts.saturating_sub(1), self.options.hidden.len());
            let told = |progress: &tune::Progress| {
                let tune::Progress { epoch: step, epochs: steps, best: loss, .. } = *progress;
                observe(&DeepProgress { attempt, layer, step, steps, loss })
            };
            let share = self.share(1);
            let (mut shrink, mut tune) = self.planned(share.passes);
            if stopped {
                // Weights are dropped all the same.
                (shrink.levels, shrink.tune.epochs, tune.epochs) = (1, 0, 0);
            }
            let joint = Joint { shrink: Some((self.sizes.nnz, &shrink)), tune: &tune };
            let rows = (&data, &labels[..], task == Task::Multiclass);
            let fitted = fit_together(&mut stack, rows, joint, (share.time, stop), told)?;
            let state = fitted.memory_bytes + self.sizes.layers_bytes() as u64;
            self.most.see(Most { state, ..Most::default() });
            self.passes += fitted.passes;
            limit = limit.or(fitted.is_late.then_some("time"));
            stopped |= fitted.is_stopped;
            tuned = Some((fitted.before, fitted.epochs));
        }
        for (layer, w) in layers.iter_mut().zip(stack.layers()) {
            (layer.nnz, layer.live) = (w.nnz(), w.blocks().count());
        }
        let (parts, end) = layers_of(&stack, &self.options.hidden, signs);
        let model = encode_layers(&parts, end, Some(task.stored()))?;
        let problem = Problem { data, labels, task };
        let score = score_model(&model, &problem)?;
        let nnz = stack.nnz();
        Ok((Attempt { model, score, nnz, grown_nnz, layers, tuned, limit, stopped }, problem))
    }
}
