//! Networks of several hidden layers: each layer by a recipe for one, on what the layers before it give; then all together.

mod joint;
mod layer;

use std::time::{Duration, Instant};

use serde::Serialize;
use tamis::deep::{self, Stack, shrink, tune};
use tamis::model::Layer;
use tamis::weights::Weights;
use tamis::wire;

use super::layers::encode_layers;
use super::limits::Limits;
use super::memory::room_for;
use super::single::LayerRecipe;
use super::train::{Start, shuffle};
use super::{Memory, Problem, Size, Task, peak_rss_bytes, plan, score_model};
use crate::file::Aligned;
use crate::operator::Stop;
use crate::{Error, Result};
use joint::two_layers;
pub(super) use joint::{Joint, ending, fit_together, layers_of, push_layer};
use layer::Found;

/// Kicks of a search for one of several layers, unless it is said: only the last one can fit exactly.
pub const LAYER_KICKS: u32 = 2;

/// Weights that layers are trained to, in units of s, unless it is said.
pub const LAYER_GROWTH: f64 = 3.0;

/// How to train.
#[derive(Debug, Clone, PartialEq)]
pub struct DeepOptions {
    /// Neurons of each hidden layer.
    pub hidden: Vec<usize>,
    /// Nonzero weights of all layers, s.
    pub size: Size,
    /// What trains each layer.
    pub recipe: LayerRecipe<'static>,
    /// Weights that the layers are trained to, in units of s, 1 or more: all layers together are then brought down to s. The
    /// published method takes no more than s, and nor does a run without a joint fit.
    pub grow: f64,
    /// How they are brought down.
    pub shrink: shrink::Params,
    /// How all layers are fitted together in the end; no epochs for not at all.
    pub tune: tune::Params,
    /// Time and passes for all layers, an even part for each; the joint fit takes what is left of the time.
    pub limits: Limits,
    /// Threads; 0 for one per core. They never change the result.
    pub threads: usize,
}

/// What is being done, and how good it is.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct DeepProgress {
    /// The hidden layer that is trained, from 0; their number while all are fitted together.
    pub layer: usize,
    /// The step of its recipe, or the epoch of the fit.
    pub step: u32,
    /// The steps or epochs that are planned; 0 where that is open.
    pub steps: u32,
    /// The loss after it.
    pub loss: f32,
}

/// One hidden layer in a report.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DeepLayer {
    /// Neurons asked for.
    pub hidden: usize,
    /// Neurons that have weights in the model.
    pub live: usize,
    /// Nonzeros that it might take when it was trained, output weights of its own included.
    pub share: usize,
    /// Nonzeros that it has in the model.
    pub nnz: usize,
    /// Loss of the network that it was trained in.
    pub loss: f64,
    /// Bytes of what was stored beside the samples to train it on: what the layers before it make of all rows, or copies; 0
    /// where it was trained on the samples themselves, or on what is made of a tile of them at a time.
    pub mapped_bytes: u64,
}

/// What a run did; the fields are the keys of the command line's JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeepReport {
    /// The recipe of each layer.
    pub recipe: &'static str,
    /// What was learnt.
    pub task: Task,
    /// Rows, n.
    pub samples: usize,
    /// Columns, d.
    pub inputs: usize,
    /// Outputs, c.
    pub outputs: usize,
    /// Neurons asked for in each hidden layer.
    pub hidden: Vec<usize>,
    /// Nonzeros asked for, s, over all layers.
    pub requested_nnz: usize,
    /// Nonzeros of the model.
    pub nnz: usize,
    /// Each hidden layer.
    pub layers: Vec<DeepLayer>,
    /// Passes over all rows, those through what the layers make of them included; a step of the joint fit counts as two.
    pub passes: f64,
    /// Nonzeros of all layers as they were trained, before they were brought down to s together.
    pub grown_nnz: usize,
    /// Loss on the rows trained on before all layers were fitted together; none where they were not.
    pub untuned_loss: Option<f64>,
    /// Epochs of that fit, those between levels included.
    pub tune_epochs: u32,
    /// Loss of the model on the rows trained on.
    pub loss: f64,
    /// As [`super::Score::psnr_db`].
    pub psnr_db: Option<f64>,
    /// As [`super::Score::zero_psnr_db`].
    pub zero_psnr_db: Option<f64>,
    /// As [`super::Score::accuracy`].
    pub accuracy: Option<f64>,
    /// Which limit ended the run.
    pub limit: Option<&'static str>,
    /// Whether the run was ended early on request.
    pub stopped: bool,
    /// Seconds of training and of scoring the result, without reading files.
    pub seconds: f64,
    /// Threads used.
    pub threads: usize,
    /// Seed.
    pub seed: u64,
    /// Bytes of samples and labels.
    pub data_bytes: u64,
    /// Bytes stored beside the samples to train a layer on ([`DeepLayer::mapped_bytes`]); this and the next two while most
    /// is held.
    pub mapped_bytes: u64,
    /// Bytes that survive from step to step, the layers that are done included.
    pub state_bytes: u64,
    /// All other bytes.
    pub workspace_bytes: u64,
    /// The most memory that the process has had so far; none where the system does not say.
    pub peak_rss_bytes: Option<u64>,
}

/// A finished run.
#[derive(Debug, Clone, PartialEq)]
pub struct DeepOutcome {
    /// The bytes of a `.tamis` file.
    pub model: Vec<u8>,
    /// What was done.
    pub report: DeepReport,
}

/// Trains a network of several hidden layers, layer by layer, then all together: brought down to s nonzeros where the layers
/// have more ([`DeepOptions::grow`]), and fitted on those.
///
/// The share of s that a layer's output weights took is given back to the layers behind it. `observe` is called after every step and ends the run by returning `false`, as `stop` does. Ended in the
/// last layer or later the run gives a model.
///
/// A layer behind others is trained on what these make of all rows, which is stored, 4 bytes a row and neuron. The
/// published method ([`LayerRecipe::Paper`]) needs not store it: with [`Memory::Least`], or within a budget that has no
/// room for it, a tile of rows goes through the layers whenever it is read, to the same bits for more time. It also trains
/// the first layer on the samples themselves; the other recipes change the rows that they are given, and get copies.
///
/// # Errors
/// Those of the recipe; sizes out of bounds; or the run was ended before the last layer had a step
/// ([`Error::is_interrupted`]).
pub fn train_deep(
    problem: Problem,
    options: &DeepOptions,
    stop: &Stop,
    mut observe: impl FnMut(&DeepProgress) -> bool + Send,
) -> Result<DeepOutcome> {
    problem.check()?;
    let sizes = Sizes::new(&problem, options)?;
    let start = Start::new(&problem);
    let mut run =
        Run { passes: 0.0, options, sizes, start: Instant::now(), most: Most::default(), layers: Vec::new() };
    let (mut index, mut value) = (vec![0; run.sizes.grown], vec![0.0; run.sizes.grown]);
    let mut stack = Stack::new(problem.data.cols, &mut index, &mut value);
    let (mut trained, problem) = run.layers(problem, &mut stack, stop, &mut observe)?;
    // The bits of the signs outlive the stack's end.
    let signs = core::mem::take(&mut trained.signs);
    match &trained.outputs {
        None => stack.end_sum(&signs)?,
        Some((outputs, index, value)) => {
            let live = stack.width();
            stack.end_weights(Weights::new(*outputs, live, index, value)?)?;
        }
    }
    let pool = plan::pool(options.threads)?;
    pool.install(|| run.finish(problem, (stack, &signs), &trained, (&start, stop), &mut observe))
}

/// Sizes that were checked.
struct Sizes {
    /// c, where weights lead to the outputs; 0 where they have signs.
    outputs: usize,
    nnz: usize,
    /// Nonzeros before all layers are brought down to `nnz` together.
    grown: usize,
    /// Weights that each hidden layer has room for, those to the outputs counted with the last.
    rooms: Vec<usize>,
}

impl Sizes {
    fn new(problem: &Problem, options: &DeepOptions) -> Result<Self> {
        let hidden = &options.hidden;
        if !(1..deep::MAX_LAYERS).contains(&hidden.len()) {
            return Err(Error::new("the number of hidden layers is out of bounds")
                .expected(format_args!("1 to {}", deep::MAX_LAYERS - 1))
                .got(hidden.len())
                .help("pass fewer layers to --hidden"));
        }
        if let (Task::Binary, LayerRecipe::Anneal(_)) = (problem.task, &options.recipe) {
            return Err(Error::new("recipe anneal tells two classes apart with one hidden layer only")
                .expected("--recipe lm or paper, or --task multiclass")
                .got(format_args!("--recipe anneal --task binary and --hidden {hidden:?}"))
                .help("leave --recipe out"));
        }
        let outputs = match (problem.task, problem.outputs()) {
            (Task::Multiclass, _) => problem.classes().unwrap_or(0),
            (_, 1) => 0,
            (_, outputs) => outputs,
        };
        let widths = core::iter::once(problem.data.cols).chain(hidden.iter().copied());
        let mut rooms: Vec<usize> = widths.zip(hidden).map(|(d, &m)| d.saturating_mul(m)).collect();
        if let (Some(last), Some(&m)) = (rooms.last_mut(), hidden.last()) {
            *last = last.saturating_add(outputs.saturating_mul(m));
        }
        let all = rooms.iter().fold(0_usize, |sum, room| sum.saturating_add(*room));
        let least = hidden.len() * if outputs > 0 { 2 } else { 1 };
        let nnz = options.size.count(all, least)?;
        if hidden.contains(&0) || !(least..=all).contains(&nnz) {
            return Err(Error::new("the sizes of the network do not fit")
                .expected(format_args!("layers of at least one neuron, and --nnz from {least} to {all}"))
                .got(format_args!("--hidden {hidden:?} and {nnz} nonzeros"))
                .help("each hidden layer needs a weight, and with several outputs two"));
        }
        let grown = match options.recipe {
            LayerRecipe::Lm(_) | LayerRecipe::Anneal(_) if options.tune.epochs > 0 => {
                ((nnz as f64 * options.grow) as usize).clamp(nnz, all)
            }
            _ => nnz,
        };
        let sizes = Self { outputs, nnz, grown, rooms };
        let (memory, copies) = match &options.recipe {
            LayerRecipe::Paper(one, _) => (one.memory, 0),
            LayerRecipe::Anneal(inner) => (inner.memory, problem.bytes()),
            LayerRecipe::Lm(inner) => (inner.memory, problem.bytes()),
        };
        sizes.check_joint(problem.data.cols, options, memory)?;
        if !matches!(memory, Memory::Least | Memory::Ram(_)) {
            let widest = hidden.iter().rev().skip(1).copied().max().unwrap_or(0) as u64;
            let mapped = (problem.data.rows as u64).saturating_mul(widest).saturating_mul(4);
            let help = "take fewer neurons or rows, or set --ram";
            room_for("what the layers make of the rows", mapped.max(copies as u64), help)?;
        }
        Ok(sizes)
    }

    /// Bytes of the layers that are done.
    const fn layers_bytes(&self) -> usize {
        self.grown.saturating_mul(8)
    }

    /// Checks that a budget has room for the joint fit.
    fn check_joint(&self, inputs: usize, options: &DeepOptions, memory: Memory) -> Result<()> {
        let Memory::Ram(ram) = memory else { return Ok(()) };
        if options.tune.epochs == 0 {
            return Ok(());
        }
        let activations = options.hidden.iter().fold(inputs, |sum, &m| sum.saturating_add(m));
        let words = tune::words(self.grown, activations, self.outputs.max(1));
        let needed = words.saturating_mul(4).saturating_add(self.layers_bytes()) as u64;
        if needed > ram {
            return Err(Error::new("the memory budget is too small to fit all layers together")
                .expected(format_args!("at least {needed} bytes"))
                .got(format_args!("{ram} bytes"))
                .help("raise --ram, or pass --tune-epochs 0"));
        }
        Ok(())
    }
}

/// What a run holds while it holds the most.
#[derive(Debug, Clone, Copy, Default)]
struct Most {
    mapped: u64,
    state: u64,
    workspace: u64,
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

/// How the network ends, from the last layer's recipe.
struct Trained {
    /// Neurons of the last layer whose output is taken away, as bits.
    signs: Vec<u32>,
    /// Outputs and the weights to them: flat indices over the live neurons of the last layer, and values.
    outputs: Option<(usize, Vec<u32>, Vec<f32>)>,
    limit: Option<&'static str>,
    stopped: bool,
}

struct Run<'a> {
    passes: f64,
    options: &'a DeepOptions,
    sizes: Sizes,
    start: Instant,
    most: Most,
    layers: Vec<DeepLayer>,
}

impl Run<'_> {
    /// Time left, if it is limited; none at all is as little as there is.
    fn left(&self) -> Option<Duration> {
        let left = |limit: Duration| limit.saturating_sub(self.start.elapsed()).max(Duration::from_millis(1));
        self.options.limits.time.map(left)
    }

    /// Trains all hidden layers, one by one, into `stack`; the problem is given back as it was.
    fn layers(
        &mut self,
        mut problem: Problem,
        stack: &mut Stack<'_>,
        stop: &Stop,
        observe: &mut (dyn FnMut(&DeepProgress) -> bool + Send),
    ) -> Result<(Trained, Problem)> {
        let count = self.options.hidden.len();
        for layer in 0..count {
            if layer > 0 {
                // Neurons without weights were left out, and take room from the layer behind them.
                let ends = if layer + 1 == count { self.sizes.outputs } else { 0 };
                let most = self.options.hidden[layer].saturating_mul(stack.width().saturating_add(ends));
                self.sizes.rooms[layer] = most.min(self.sizes.rooms[layer]);
            }
            let share = deep::share(self.sizes.grown, &self.sizes.rooms, layer, stack.nnz());
            let found;
            (found, problem) = self.layer(problem, stack, (layer, share), stop, observe)?;
            let Found { single: found, mapped } = found;
            if found.stopped && layer + 1 < count {
                return Err(Error::interrupted().of(format_args!(
                    "hidden layer {} of {count}, and only a run whose last layer has begun gives a model",
                    layer + 1
                )));
            }
            let bytes = Aligned::new(&found.model);
            let view = wire::View::parse(&bytes)?;
            let [Layer::Csr(csr), end] = view.model().layers() else { return Err(two_layers()) };
            push_layer(stack, csr)?;
            self.layers.push(DeepLayer {
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
                let trained = Trained { signs, outputs, limit: found.limit, stopped: found.stopped };
                return Ok((trained, problem));
            }
        }
        Err(two_layers())
    }

    /// Fits all layers together, encodes and scores them.
    fn finish(
        mut self,
        problem: Problem,
        (mut stack, signs): (Stack<'_>, &[u32]),
        trained: &Trained,
        (start, stop): (&Start, &Stop),
        observe: &mut (dyn FnMut(&DeepProgress) -> bool + Send),
    ) -> Result<DeepOutcome> {
        let params = self.options.tune;
        let Problem { mut data, mut labels, task } = problem;
        let (samples, inputs) = (data.rows, data.cols);
        shuffle(&mut data, &mut labels, params.seed);
        let (mut limit, mut stopped) = (trained.limit, trained.stopped);
        let grown_nnz = stack.nnz();
        let mut tuned = None;
        if params.epochs > 0 && !stopped {
            let layer = self.options.hidden.len();
            let told = |progress: &tune::Progress| {
                observe(&DeepProgress {
                    layer,
                    step: progress.epoch,
                    steps: progress.epochs,
                    loss: progress.best,
                })
            };
            let rows = (&data, &labels[..], task == Task::Multiclass);
            let joint = Joint { shrink: Some((self.sizes.nnz, &self.options.shrink)), tune: &params };
            let fitted = fit_together(&mut stack, rows, joint, (self.left(), stop), told)?;
            let state = fitted.memory_bytes + self.sizes.layers_bytes() as u64;
            self.most.see(Most { state, ..Most::default() });
            self.passes += fitted.passes;
            limit = limit.or(fitted.is_late.then_some("time"));
            stopped |= fitted.is_stopped;
            tuned = Some((fitted.before, fitted.epochs));
        }
        for (layer, w) in self.layers.iter_mut().zip(stack.layers()) {
            (layer.nnz, layer.live) = (w.nnz(), w.blocks().count());
        }
        let (layers, end) = layers_of(&stack, &self.options.hidden, signs);
        let model = encode_layers(&layers, end, Some(task.stored()))?;
        let score = score_model(&model, &Problem { data, labels, task })?;
        let report = DeepReport {
            recipe: self.options.recipe.name(),
            task,
            samples,
            inputs,
            outputs: self.sizes.outputs.max(1),
            hidden: self.options.hidden.clone(),
            requested_nnz: self.sizes.nnz,
            nnz: stack.nnz(),
            layers: self.layers,
            passes: self.passes,
            grown_nnz,
            untuned_loss: tuned.map(|(before, _)| f64::from(before)),
            tune_epochs: tuned.map_or(0, |(_, epochs)| epochs),
            loss: score.loss,
            psnr_db: score.psnr_db,
            zero_psnr_db: score.zero_psnr_db,
            accuracy: score.accuracy,
            limit,
            stopped,
            seconds: start.seconds(),
            threads: rayon::current_num_threads(),
            seed: params.seed,
            data_bytes: start.data_bytes,
            mapped_bytes: self.most.mapped,
            state_bytes: self.most.state,
            workspace_bytes: self.most.workspace,
            peak_rss_bytes: peak_rss_bytes(),
        };
        Ok(DeepOutcome { model, report })
    }
}
