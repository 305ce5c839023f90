//! Networks of several hidden layers: each layer by a recipe for one, on what the layers before it give; then all together.

use std::time::{Duration, Instant};

use rayon::prelude::*;
use serde::Serialize;
use tamis::deep::{self, Stack, tune};
use tamis::gates::Signs;
use tamis::model::{Csr, Layer};
use tamis::samples::{ByteRows, Rows, Samples};
use tamis::train::Goal;
use tamis::weights::Weights;
use tamis::wire;

use super::layers::{End, SparseLayer, encode_layers};
use super::limits::Limits;
use super::memory::room_for;
use super::single::{Asked, LayerRecipe, Single, single};
use super::train::{Start, shuffle};
use super::{Problem, Size, Task, peak_rss_bytes, plan, score_model};
use crate::data::{Matrix, Values};
use crate::file::Aligned;
use crate::operator::Stop;
use crate::{Error, Result};

/// Rows that are mapped through a layer at a time.
const CHUNK: usize = 256;

/// Kicks of a search for one of several layers, unless it is said: only the last one can fit exactly.
pub const LAYER_KICKS: u32 = 2;

/// How to train.
#[derive(Debug, Clone, PartialEq)]
pub struct DeepOptions {
    /// Neurons of each hidden layer.
    pub hidden: Vec<usize>,
    /// Nonzero weights of all layers, s.
    pub size: Size,
    /// What trains each layer.
    pub recipe: LayerRecipe<'static>,
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
    /// Neurons that have weights.
    pub live: usize,
    /// Nonzeros that it might take when it was trained, output weights of its own included.
    pub share: usize,
    /// Nonzeros that it has.
    pub nnz: usize,
    /// Loss of the network that it was trained in.
    pub loss: f64,
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
    /// Loss on the rows trained on before all layers were fitted together; none where they were not.
    pub untuned_loss: Option<f64>,
    /// Epochs of that fit.
    pub tune_epochs: u32,
    /// Loss of the model on the rows trained on.
    pub loss: f64,
    /// As [`super::Score::psnr_db`].
    pub psnr_db: Option<f64>,
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
    /// Bytes of what the layers before the one that is trained make of the samples, beside these, at the most.
    pub mapped_bytes: u64,
    /// Bytes that survive from step to step, the layers that are done included, at the most.
    pub state_bytes: u64,
    /// All other bytes, at the most.
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

/// Trains a network of several hidden layers, layer by layer, then all together on the weights that are there.
///
/// The share of s that a layer's output weights took is given back, so that the model has s nonzeros where the recipes fill
/// their shares. `observe` is called after every step and ends the run by returning `false`, as `stop` does. Ended in the
/// last layer or later the run gives a model.
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
    let (mut index, mut value) = (vec![0; run.sizes.nnz], vec![0.0; run.sizes.nnz]);
    let mut stack = Stack::new(problem.data.cols, &mut index, &mut value);
    let mut trained = run.layers(&problem, &mut stack, stop, &mut observe)?;
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
        let widest = hidden.iter().copied().max().unwrap_or(0) as u64;
        let mapped = (problem.data.rows as u64).saturating_mul(widest).saturating_mul(8);
        let copies = mapped.saturating_add(problem.data.values.bytes() as u64);
        room_for("what the layers make of the rows", copies, "take fewer neurons or rows")?;
        Ok(Self { outputs, nnz, rooms })
    }
}

/// The most that a run has taken at any time.
#[derive(Debug, Clone, Copy, Default)]
struct Most {
    mapped: u64,
    state: u64,
    workspace: u64,
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

    /// Trains all hidden layers, one by one, into `stack`.
    fn layers(
        &mut self,
        problem: &Problem,
        stack: &mut Stack<'_>,
        stop: &Stop,
        observe: &mut (impl FnMut(&DeepProgress) -> bool + Send),
    ) -> Result<Trained> {
        let count = self.options.hidden.len();
        for layer in 0..count {
            let data = if layer == 0 { problem.data.clone() } else { self.map(&problem.data, stack)? };
            self.most.mapped = self.most.mapped.max(data.values.bytes() as u64);
            let part = Problem { data, labels: problem.labels.clone(), task: problem.task };
            if layer > 0 {
                // Neurons without weights were left out, and take room from the layer behind them.
                let ends = if layer + 1 == count { self.sizes.outputs } else { 0 };
                let most = self.options.hidden[layer].saturating_mul(stack.width().saturating_add(ends));
                self.sizes.rooms[layer] = most.min(self.sizes.rooms[layer]);
            }
            let share = deep::share(self.sizes.nnz, &self.sizes.rooms, layer, stack.nnz());
            let found = self.train(part, (layer, share), stop, observe)?;
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
            });
            self.passes += found.passes;
            self.most.state = self.most.state.max(found.plan.state_bytes + 8 * self.sizes.nnz as u64);
            self.most.workspace = self.most.workspace.max(found.plan.workspace_bytes);
            if layer + 1 == count {
                let (signs, outputs) = ending(end, csr.outputs())?;
                return Ok(Trained { signs, outputs, limit: found.limit, stopped: found.stopped });
            }
        }
        Err(two_layers())
    }

    fn train(
        &self,
        part: Problem,
        (layer, share): (usize, usize),
        stop: &Stop,
        observe: &mut (impl FnMut(&DeepProgress) -> bool + Send),
    ) -> Result<Single> {
        let (hidden, size) = (self.options.hidden[layer], Size::Nonzeros(share));
        let threads = self.options.threads;
        let behind = (self.options.hidden.len() - layer) as u32 + u32::from(self.options.tune.epochs > 0);
        let passes = self.options.limits.passes.map(|passes| passes / self.options.hidden.len() as f64);
        let limits = Limits { time: self.left().map(|left| left / behind), passes };
        let asked = Asked { hidden, size, limits, threads, from: None };
        let tell = |step, steps, loss| observe(&DeepProgress { layer, step, steps, loss });
        single(&self.options.recipe, asked, part, stop, tell).map_err(|error| {
            if error.is_interrupted() { error } else { error.of(format_args!("hidden layer {}", layer + 1)) }
        })
    }

    /// What the layers so far make of all rows.
    fn map(&self, data: &Matrix, stack: &Stack<'_>) -> Result<Matrix> {
        let (d, m) = (data.cols, stack.width());
        let mut out = vec![0.0; data.rows * m];
        plan::pool(self.options.threads)?.install(|| {
            out.par_chunks_mut(CHUNK * m).enumerate().try_for_each(|(chunk, out)| {
                let mut scratch = vec![0.0; stack.activations()];
                let mut row = vec![0.0; d];
                for (k, out) in out.chunks_mut(m).enumerate() {
                    let from = (chunk * CHUNK + k) * d;
                    match &data.values {
                        Values::F32(values) => row.copy_from_slice(&values[from..from + d]),
                        Values::U8(values) => {
                            row.iter_mut().zip(&values[from..from + d]).for_each(|(x, &b)| *x = f32::from(b));
                        }
                    }
                    stack.predict(&row, &mut scratch, out)?;
                }
                Ok::<(), Error>(())
            })
        })?;
        Matrix::new(data.rows, m, Values::F32(out))
    }

    /// Fits all layers together, encodes and scores them.
    fn finish(
        mut self,
        problem: Problem,
        (mut stack, signs): (Stack<'_>, &[u32]),
        trained: &Trained,
        (start, stop): (&Start, &Stop),
        observe: &mut (impl FnMut(&DeepProgress) -> bool + Send),
    ) -> Result<DeepOutcome> {
        let params = self.options.tune;
        let Problem { mut data, mut labels, task } = problem;
        let (samples, inputs) = (data.rows, data.cols);
        shuffle(&mut data, &mut labels, params.seed);
        let (mut limit, mut stopped) = (trained.limit, trained.stopped);
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
            let fitted = fit_together(&mut stack, rows, &params, (self.left(), stop), told)?;
            self.most.state = self.most.state.max(fitted.memory_bytes + 8 * self.sizes.nnz as u64);
            self.passes += 1.0 + 3.0 * f64::from(fitted.info.epochs);
            limit = limit.or(fitted.is_late.then_some("time"));
            stopped |= fitted.is_stopped;
            tuned = Some(fitted.info);
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
            untuned_loss: tuned.map(|info| f64::from(info.before)),
            tune_epochs: tuned.map_or(0, |info| info.epochs),
            loss: score.loss,
            psnr_db: score.psnr_db,
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

/// A joint fit.
pub(super) struct Fitted {
    pub(super) info: tune::Info,
    /// Bytes that it took.
    pub(super) memory_bytes: u64,
    /// Whether its time was up.
    pub(super) is_late: bool,
    /// Whether the observer or the wish to end ended it.
    pub(super) is_stopped: bool,
}

/// Fits all layers of a network that has ended together, on rows in random order, for so much time: to labels that are
/// classes, which one output gives the log-odds of, or to their values.
pub(super) fn fit_together(
    stack: &mut Stack<'_>,
    (data, labels, is_class): (&Matrix, &[f32], bool),
    params: &tune::Params,
    (left, stop): (Option<Duration>, &Stop),
    mut observe: impl FnMut(&tune::Progress) -> bool,
) -> Result<Fitted> {
    let classes: Vec<u16> =
        if is_class { labels.iter().map(|&label| label as u16).collect() } else { Vec::new() };
    let goal = if is_class { Goal::Classes(&classes, stack.outputs()) } else { Goal::Values(labels) };
    let mut memory = vec![0; tune::words(stack.nnz(), stack.activations(), stack.outputs())];
    let memory_bytes = size_of_val(&memory[..]) as u64;
    let began = Instant::now();
    let (mut is_late, mut is_stopped) = (false, false);
    let told = |progress: &tune::Progress| {
        is_late = left.is_some_and(|left| began.elapsed() >= left);
        is_stopped |= !observe(progress) || stop.asked();
        !is_late && !is_stopped
    };
    let d = data.cols;
    let info = match &data.values {
        Values::F32(values) => fit(Rows::new(values, d)?, goal, stack, params, &mut memory, told),
        Values::U8(values) => fit(ByteRows::new(values, d, 1.0)?, goal, stack, params, &mut memory, told),
    }?;
    Ok(Fitted { info, memory_bytes, is_late, is_stopped })
}

fn fit<X: Samples<Source = core::convert::Infallible>>(
    mut rows: X,
    goal: Goal<'_>,
    stack: &mut Stack<'_>,
    params: &tune::Params,
    memory: &mut [u32],
    observe: impl FnMut(&tune::Progress) -> bool,
) -> Result<tune::Info> {
    Ok(tune::run(&mut rows, goal, stack, params, memory, observe)?)
}

/// Adds a hidden layer of a model.
pub(super) fn push_layer(stack: &mut Stack<'_>, csr: &Csr<'_>) -> Result<()> {
    let width = csr.inputs();
    let rows = csr.counts().iter().enumerate().flat_map(|(i, &n)| core::iter::repeat_n(i, n.into()));
    let flat: Vec<u32> = rows.zip(csr.columns()).map(|(i, &j)| (i * width + usize::from(j)) as u32).collect();
    Ok(stack.push(Weights::new(width, csr.outputs(), &flat, csr.values())?, Signs::Positive)?)
}

fn two_layers() -> Error {
    Error::new("a recipe gave a model of another shape").expected("a hidden layer and its end")
}

/// Signs of the neurons as bits, or the weights to so many outputs.
pub(super) type Ending = (Vec<u32>, Option<(usize, Vec<u32>, Vec<f32>)>);

pub(super) fn ending(end: &Layer<'_>, live: usize) -> Result<Ending> {
    match end {
        Layer::Sum(sum) => Ok((sum.signs().to_vec(), None)),
        Layer::Csr(csr) => {
            let outputs = csr.outputs();
            let rows = csr.counts().iter().enumerate().flat_map(|(k, &n)| core::iter::repeat_n(k, n.into()));
            let mut entries: Vec<(u32, f32)> = rows
                .zip(csr.columns().iter().zip(csr.values()))
                .map(|(k, (&i, &v))| ((usize::from(i) * outputs + k) as u32, v))
                .collect();
            entries.sort_unstable_by_key(|&(at, _)| at);
            debug_assert!(entries.iter().all(|&(at, _)| (at as usize) < live * outputs));
            let (index, value) = entries.into_iter().unzip();
            Ok((Vec::new(), Some((outputs, index, value))))
        }
        _ => Err(two_layers()),
    }
}

/// The layers of a finished stack as the parts of a model, with the neurons asked for.
pub(super) fn layers_of<'a>(
    stack: &Stack<'_>,
    hidden: &[usize],
    signs: &'a [u32],
) -> (Vec<SparseLayer>, End<'a>) {
    let mut layers = Vec::new();
    for (l, w) in stack.layers().enumerate() {
        let mut layer =
            SparseLayer { inputs: w.inputs(), requested: 0, neurons: vec![Vec::new(); w.hidden()] };
        for block in w.blocks() {
            layer.neurons[block.neuron()] = block.entries().collect();
        }
        match hidden.get(l) {
            Some(&requested) => layer.requested = requested,
            // The weights to the outputs lie neuron by neuron, and a model wants them output by output.
            None => {
                let mut outputs = vec![Vec::new(); w.inputs()];
                for (i, neuron) in layer.neurons.iter().enumerate() {
                    neuron.iter().for_each(|&(k, v)| outputs[k].push((i, v)));
                }
                layer = SparseLayer { inputs: w.hidden(), requested: outputs.len(), neurons: outputs };
            }
        }
        layers.push(layer);
    }
    let end = if layers.len() > hidden.len() { End::Layer } else { End::Sum(signs) };
    (layers, end)
}
