//! The dense baseline as a recipe: a problem in memory to the model that iterative magnitude pruning leaves, and a report.

use serde::Serialize;
use tamis::model::{MAX_INPUTS, MAX_LAYERS};

use super::layers::{End, SparseLayer, encode_layers};
use super::memory::room_for;
use super::predict::score_model;
use super::score::psnr_db;
use super::train::{Start, at_least_one};
use super::{Problem, Size, Task, peak_rss_bytes, plan};
use crate::dense::{
    self, Goal, Head, Imp, ImpOptions, Keep, Level, Measure, Optimiser, Progress, Rates, Set, Shape,
};
use crate::operator::Stop;
use crate::{Error, Result};

/// Rows of a batch, unless it is said.
const BATCH: usize = 256;
/// Epochs of a level, unless it is said.
const EPOCHS: u32 = 20;

/// How to train the dense network and to prune it.
#[derive(Debug, Clone, PartialEq)]
pub struct ImpSettings {
    /// Neurons of each hidden layer.
    pub hidden: Vec<usize>,
    /// Nonzero weights of all layers, s.
    pub size: Size,
    /// How the outputs come from the last hidden layer.
    pub head: Head,
    /// Epochs of each level.
    pub epochs: u32,
    /// Rows of a batch, 0 for all.
    pub batch: usize,
    /// Adam or SGD.
    pub optimiser: Optimiser,
    /// Step sizes; none for the optimiser's usual rate.
    pub rates: Option<Rates>,
    /// Part of the weights that a round drops; 1 for all at once.
    pub part: f64,
    /// Epoch that the weights are set back to.
    pub rewind: u32,
    /// Whether bytes are taken as 0 to 255, as in the published setting, and not brought to the unit range first.
    pub raw: bool,
    /// Seed of weights and orders.
    pub seed: u64,
    /// Where the run is kept, if it is.
    pub keep: Option<Keep>,
    /// Threads; 0 for one per core. They never change the result.
    pub threads: usize,
}

impl ImpSettings {
    /// Batches of 256 rows and 20 epochs of Adam at 0.001 a level; 10 % of the weights a round, back to the initial ones.
    #[must_use]
    pub fn new(hidden: &[usize], size: Size) -> Self {
        Self {
            hidden: hidden.to_vec(),
            size,
            head: Head::Weights,
            epochs: EPOCHS,
            batch: BATCH,
            optimiser: Optimiser::Adam,
            rates: None,
            part: 0.1,
            rewind: 0,
            raw: false,
            seed: 0,
            keep: None,
            threads: 0,
        }
    }
}

/// One level in a report: as it was trained, in the order of the dense products.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LevelReport {
    /// Weights that it trained.
    pub nnz: usize,
    /// Steps up to its end.
    pub steps: u64,
    /// Loss on the rows trained on.
    pub loss: f64,
    /// As [`super::Score::psnr_db`].
    pub psnr_db: Option<f64>,
    /// As [`super::Score::accuracy`].
    pub accuracy: Option<f64>,
    /// The same on the other rows, where there are some.
    pub test_loss: Option<f64>,
    /// As [`super::Score::psnr_db`].
    pub test_psnr_db: Option<f64>,
    /// As [`super::Score::accuracy`].
    pub test_accuracy: Option<f64>,
}

/// What a run did; the fields are the keys of the command line's JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImpReport {
    /// `imp`.
    pub recipe: &'static str,
    /// What was learnt.
    pub task: Task,
    /// Rows, n.
    pub samples: usize,
    /// Columns, d.
    pub inputs: usize,
    /// Outputs, c.
    pub outputs: usize,
    /// Neurons of each hidden layer.
    pub hidden: Vec<usize>,
    /// How the outputs are made.
    pub head: Head,
    /// Weights of the dense network.
    pub dense_nnz: usize,
    /// Nonzeros asked for, s, over all layers.
    pub requested_nnz: usize,
    /// Nonzeros of the model.
    pub nnz: usize,
    /// Neurons of each hidden layer that the output depends on.
    pub live: Vec<usize>,
    /// Mean squared error of the model on the training data; for several classes mean cross-entropy.
    pub loss: f64,
    /// As [`super::Score::psnr_db`], on the training data.
    pub psnr_db: Option<f64>,
    /// As [`super::Score::zero_psnr_db`], on the training data.
    pub zero_psnr_db: Option<f64>,
    /// As [`super::Score::accuracy`], on the training data.
    pub accuracy: Option<f64>,
    /// Epochs of each level.
    pub epochs: u32,
    /// Steps of all levels.
    pub steps: u64,
    /// Rows of a batch.
    pub batch: usize,
    /// How a gradient became a step.
    pub optimiser: Optimiser,
    /// Step sizes.
    pub rates: Rates,
    /// Part of the weights that a round dropped.
    pub prune_part: f64,
    /// Epoch that the weights were set back to.
    pub rewind: u32,
    /// Factor of the inputs while training, folded into the model.
    pub input_scale: f32,
    /// Rounds of pruning between levels that were trained to their end.
    pub rounds: usize,
    /// The levels.
    pub levels: Vec<LevelReport>,
    /// Whether the run was ended early.
    pub stopped: bool,
    /// Seconds of training and of scoring the result, without reading files.
    pub seconds: f64,
    /// Threads used.
    pub threads: usize,
    /// Seed of weights and orders.
    pub seed: u64,
    /// Bytes of samples and labels, those of the test included.
    pub data_bytes: u64,
    /// Bytes of a usual dense implementation: weights, gradient, moments, activations of a batch.
    pub dense_bytes: u64,
    /// Bytes that this one holds from step to step.
    pub state_bytes: u64,
    /// All its other bytes.
    pub workspace_bytes: u64,
    /// The most memory that the process has had so far; none where the system does not say.
    pub peak_rss_bytes: Option<u64>,
}

/// A finished run.
#[derive(Debug, Clone, PartialEq)]
pub struct ImpOutcome {
    /// The bytes of a `.tamis` file.
    pub model: Vec<u8>,
    /// What was done.
    pub report: ImpReport,
}

/// Trains a dense network on `problem` and prunes it to s weights, round by round.
///
/// `observe` is called after every epoch and ends the run by returning `false`; `stop` ends it within a step. The outcome is
/// then the last complete level, or the last step where there is none, cut to the s largest weights. `test` is scored after
/// every level.
///
/// # Errors
/// A size or setting out of bounds, labels outside the task, steps that diverge, or a folder that holds another run; or the
/// run was ended before its first step ([`Error::is_interrupted`]).
pub fn imp(
    problem: &Problem,
    test: Option<&Problem>,
    settings: &ImpSettings,
    stop: &Stop,
    observe: impl FnMut(&Progress) -> bool + Send,
) -> Result<ImpOutcome> {
    problem.check()?;
    let options = options(problem, settings)?;
    if let Some(test) = test {
        check_test(problem, test)?;
    }
    let needed = options.state_bytes().saturating_add(options.workspace_bytes(&problem.data));
    room_for("dense training", needed, "choose smaller --hidden or --batch")?;
    plan::pool(settings.threads)?.install(|| {
        let start = Start::new(problem);
        let other = test.map(set);
        let done = dense::imp(set(problem), other, &options, settings.keep.as_ref(), stop, observe)?;
        let model = encode(&options, &done, problem.task)?;
        let score = score_model(&model, problem)?;
        let report = ImpReport {
            loss: score.loss,
            psnr_db: score.psnr_db,
            zero_psnr_db: score.zero_psnr_db,
            accuracy: score.accuracy,
            seconds: start.seconds(),
            data_bytes: start.data_bytes + test.map_or(0, |test| test.bytes() as u64),
            ..report(problem, test, settings, &options, &done)
        };
        Ok(ImpOutcome { model, report })
    })
}

fn set(problem: &Problem) -> Set<'_> {
    Set { data: &problem.data, labels: &problem.labels }
}

/// The settings for the data at hand, checked.
fn options(problem: &Problem, settings: &ImpSettings) -> Result<ImpOptions> {
    at_least_one("--epochs", settings.epochs as usize, "leave --epochs out for 20")?;
    let (d, outputs) = (problem.data.cols, problem.classes().unwrap_or_else(|| problem.outputs()));
    if let Some(&wide) = [&[d][..], &settings.hidden].concat().iter().find(|&&width| width > MAX_INPUTS) {
        return Err(Error::new("a layer is too wide for a model")
            .expected(format_args!("at most {MAX_INPUTS} columns, and as many neurons of a layer (--hidden)"))
            .got(wide)
            .help("leave out columns, or choose fewer neurons; 10 to 1000 are usual"));
    }
    if settings.hidden.len() >= MAX_LAYERS {
        return Err(Error::new("too many layers for a model")
            .expected(format_args!("--hidden with at most {} layers", MAX_LAYERS - 1))
            .got(format_args!("{} layers", settings.hidden.len()))
            .help("choose fewer layers"));
    }
    let shape = Shape::new(d, &settings.hidden, outputs, settings.head)?;
    let nnz = settings.size.count(shape.weights(), 1)?;
    let goal = match problem.task {
        Task::Regression => Goal::Regression,
        Task::Binary => Goal::Binary,
        Task::Multiclass => Goal::Classes,
    };
    let bytes = problem.data.is_bytes();
    let rates = settings.rates.clone();
    let options = ImpOptions {
        epochs: settings.epochs,
        batch: settings.batch,
        optimiser: settings.optimiser,
        rates: rates.unwrap_or_else(|| Rates::constant(settings.optimiser.usual_rate())),
        part: settings.part,
        rewind: settings.rewind,
        input_scale: if bytes && !settings.raw { 1.0 / 256.0 } else { 1.0 },
        seed: settings.seed,
        ..ImpOptions::new(shape, goal, nnz)
    };
    options.check()?;
    Ok(options)
}

/// Checks that other rows are such as the network can be scored on.
fn check_test(problem: &Problem, test: &Problem) -> Result<()> {
    let shape = |problem: &Problem| (problem.data.cols, problem.outputs());
    let classes = |problem: &Problem| problem.classes().unwrap_or(0);
    if test.data.rows == 0 || shape(test) != shape(problem) || classes(test) > classes(problem) {
        let text = |p: &Problem| {
            format!("{} columns, {} labels a row, {} classes", p.data.cols, p.outputs(), classes(p))
        };
        return Err(Error::new("the test data do not fit the training data")
            .expected(text(problem))
            .got(format_args!("{} rows of {}", test.data.rows, text(test)))
            .help("pass test data with the same columns and labels"));
    }
    Ok(())
}

/// The model of the weights that are left: a sparse layer for each, and the sum where there is one.
fn encode(options: &ImpOptions, done: &Imp, task: Task) -> Result<Vec<u8>> {
    let layers: Vec<SparseLayer> = options
        .shape
        .layers()
        .enumerate()
        .map(|(l, layer)| {
            let scale = if l == 0 { options.input_scale } else { 1.0 };
            let neurons = done.mask[layer.range.clone()].chunks(layer.inputs);
            let neurons = neurons.zip(done.weights[layer.range.clone()].chunks(layer.inputs));
            let entries = |(mask, weights): (&[bool], &[f32])| {
                (0..layer.inputs).filter(|&j| mask[j]).map(|j| (j, scale * weights[j])).collect()
            };
            SparseLayer {
                inputs: layer.inputs,
                requested: layer.outputs,
                neurons: neurons.map(entries).collect(),
            }
        })
        .collect();
    let end = if options.shape.head() == Head::Sum { End::Sum(&[]) } else { End::Layer };
    encode_layers(&layers, end, Some(task.stored()))
}

/// Neurons of each hidden layer that some input reaches and that reach some output.
fn live(shape: &Shape, mask: &[bool]) -> Vec<usize> {
    let layers: Vec<_> = shape.layers().collect();
    let entry = |layer: &dense::Layer, k: usize, j: usize| mask[layer.range.start + k * layer.inputs + j];
    let mut reached = vec![vec![true; shape.inputs()]];
    for (l, layer) in layers.iter().enumerate() {
        let from = |k| (0..layer.inputs).any(|j| reached[l][j] && entry(layer, k, j));
        reached.push((0..layer.outputs).map(from).collect());
    }
    let hidden = shape.hidden().len();
    let mut used = vec![true; reached[hidden].len()];
    if let Some(last) = layers.get(hidden) {
        used = (0..last.inputs).map(|j| (0..last.outputs).any(|k| entry(last, k, j))).collect();
    }
    let mut counts = Vec::new();
    for l in (1..=hidden).rev() {
        counts.push(reached[l].iter().zip(&used).filter(|&(&a, &b)| a && b).count());
        let layer = &layers[l - 1];
        used = (0..layer.inputs).map(|j| (0..layer.outputs).any(|k| used[k] && entry(layer, k, j))).collect();
    }
    counts.reverse();
    counts
}

fn report(
    problem: &Problem,
    test: Option<&Problem>,
    settings: &ImpSettings,
    options: &ImpOptions,
    done: &Imp,
) -> ImpReport {
    let rows = problem.data.rows;
    ImpReport {
        recipe: "imp",
        task: problem.task,
        samples: rows,
        inputs: problem.data.cols,
        outputs: options.shape.outputs(),
        hidden: options.shape.hidden().to_vec(),
        head: options.shape.head(),
        dense_nnz: options.shape.weights(),
        requested_nnz: options.nnz,
        nnz: done.mask.iter().filter(|&&kept| kept).count(),
        live: live(&options.shape, &done.mask),
        loss: 0.0,
        psnr_db: None,
        zero_psnr_db: None,
        accuracy: None,
        epochs: options.epochs,
        steps: done.steps,
        batch: if options.batch == 0 { rows } else { options.batch.min(rows) },
        optimiser: options.optimiser,
        rates: options.rates.clone(),
        prune_part: options.part,
        rewind: options.rewind,
        input_scale: options.input_scale,
        rounds: done.levels.len().saturating_sub(1),
        levels: levels(problem, test, &done.levels),
        stopped: done.stopped,
        seconds: 0.0,
        threads: rayon::current_num_threads(),
        seed: settings.seed,
        data_bytes: 0,
        dense_bytes: options.dense_bytes(rows),
        state_bytes: options.state_bytes(),
        workspace_bytes: options.workspace_bytes(&problem.data),
        peak_rss_bytes: peak_rss_bytes(),
    }
}

fn levels(problem: &Problem, test: Option<&Problem>, levels: &[Level]) -> Vec<LevelReport> {
    let peak = |problem: &Problem| problem.labels.iter().fold(0.0_f32, |top, y| top.max(y.abs()));
    let (own, other) = (peak(problem), test.map_or(0.0, peak));
    let psnr = |measure: Measure, peak: f32| match problem.task {
        Task::Multiclass => None,
        Task::Regression | Task::Binary => psnr_db(f64::from(peak), measure.loss),
    };
    let report = |level: &Level| LevelReport {
        nnz: level.nnz,
        steps: level.steps,
        loss: level.train.loss,
        psnr_db: psnr(level.train, own),
        accuracy: level.train.accuracy(),
        test_loss: level.test.map(|test| test.loss),
        test_psnr_db: level.test.and_then(|test| psnr(test, other)),
        test_accuracy: level.test.and_then(|test| test.accuracy()),
    };
    levels.iter().map(report).collect()
}
