//! Networks of several hidden layers: each layer by a recipe for one, on what the layers before it give; then all together.

mod attempt;
mod joint;
mod layer;

use serde::Serialize;
use tamis::deep::{self, shrink, tune};

use super::limits::Limits;
use super::memory::room_for;
use super::single::LayerRecipe;
use super::train::Start;
use super::{Memory, Problem, Size, Task, peak_rss_bytes, plan};
use crate::operator::Stop;
use crate::{Error, Result};
use attempt::{Attempt, Run};
pub(super) use joint::{Joint, ending, fit_together, layers_of, push_layer};

/// Kicks of a search for one of several layers, unless it is said: only the last one can fit exactly.
pub const LAYER_KICKS: u32 = 2;

/// Weights that layers are trained to, in units of s, unless it is said; for classes the first only, since a fit of classes is
/// never exact.
pub const LAYER_GROWTH: [f64; 3] = [3.0, 2.0, 4.0];

/// How to train.
#[derive(Debug, Clone, PartialEq)]
pub struct DeepOptions {
    /// Neurons of each hidden layer.
    pub hidden: Vec<usize>,
    /// Nonzero weights of all layers, s.
    pub size: Size,
    /// What trains each layer.
    pub recipe: LayerRecipe<'static>,
    /// Weights that the layers are trained to, in units of s, 1 or more: all layers together are then brought down to s. One
    /// after the other is tried until the labels are fitted exactly, and the best network is the result. The published method
    /// takes no more than s, and nor does a run without a joint fit.
    pub grow: Vec<f64>,
    /// How they are brought down.
    pub shrink: shrink::Params,
    /// How all layers are fitted together in the end; no epochs for not at all.
    pub tune: tune::Params,
    /// Time and passes for all attempts and all layers, an even part for each; the joint fit takes what is left of the time.
    pub limits: Limits,
    /// Threads; 0 for one per core. They never change the result.
    pub threads: usize,
}

/// What is being done, and how good it is.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct DeepProgress {
    /// The attempt, from 0.
    pub attempt: u32,
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
    /// Networks that were trained, of which the best is the model ([`DeepOptions::grow`]).
    pub attempts: u32,
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
/// The share of s that a layer's output weights took is given back to the layers behind it. `observe` is called after every
/// step and ends the run by returning `false`, as `stop` does. Ended in the last layer or later, or in another attempt than the first, the run gives a model.
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
    let pool = plan::pool(options.threads)?;
    let (task, samples, inputs) = (problem.task, problem.data.rows, problem.data.cols);
    let mut run = Run::new(options, sizes);
    let best = run.attempts(problem, (&pool, stop), &mut observe)?;
    let Attempt { model, score, nnz, grown_nnz, layers, tuned, limit, stopped } = best;
    let report = DeepReport {
        recipe: options.recipe.name(),
        task,
        samples,
        inputs,
        outputs: run.sizes.outputs.max(1),
        hidden: options.hidden.clone(),
        requested_nnz: run.sizes.nnz,
        nnz,
        layers,
        passes: run.passes,
        attempts: run.attempts,
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
        threads: pool.current_num_threads(),
        seed: options.tune.seed,
        data_bytes: start.data_bytes,
        mapped_bytes: run.most.mapped,
        state_bytes: run.most.state,
        workspace_bytes: run.most.workspace,
        peak_rss_bytes: peak_rss_bytes(),
    };
    Ok(DeepOutcome { model, report })
}

/// Sizes that were checked.
struct Sizes {
    /// c, where weights lead to the outputs; 0 where they have signs.
    outputs: usize,
    nnz: usize,
    /// Nonzeros of every attempt before all layers are brought down to `nnz` together.
    grown: Vec<usize>,
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
                let mut grown = Vec::new();
                for grow in options.grow.iter().chain(options.grow.is_empty().then_some(&1.0)) {
                    let count = ((nnz as f64 * grow) as usize).clamp(nnz, all);
                    if !grown.contains(&count) {
                        grown.push(count);
                    }
                }
                grown
            }
            _ => vec![nnz],
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

    /// The most nonzeros of an attempt.
    fn most(&self) -> usize {
        self.grown.iter().copied().max().unwrap_or(self.nnz)
    }

    /// Bytes of the layers that are done.
    fn layers_bytes(&self) -> usize {
        self.most().saturating_mul(8)
    }

    /// Checks that a budget has room for the joint fit.
    fn check_joint(&self, inputs: usize, options: &DeepOptions, memory: Memory) -> Result<()> {
        let Memory::Ram(ram) = memory else { return Ok(()) };
        if options.tune.epochs == 0 {
            return Ok(());
        }
        let activations = options.hidden.iter().fold(inputs, |sum, &m| sum.saturating_add(m));
        let words = tune::words(self.most(), activations, self.outputs.max(1));
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
