//! Sparse training of deep networks from nothing as a recipe: a support that shrinks and moves, to a
//! model and a report.

use std::ops::ControlFlow;

use tamis::infer::model::{MAX_INPUTS, MAX_LAYERS};
use tamis::learn::deep::Stack;
use tamis::learn::deep::dynamic::{self, Info, Params};
use tamis::learn::loss::Labels;

use crate::base::memory::room_for;
use crate::data::augment::Augment;
use crate::data::{Problem, Task};
use crate::model::score_model;
use crate::train::budget::Memory;
use crate::train::encode::{End, encode_layers};
use crate::train::imp::check_test;
use crate::train::mask::diverged;
use crate::train::masked::{Engine, LANES};
use crate::train::network::SparseNetwork;
use crate::train::ones::layers_of_stack;
use crate::train::options::{DynamicOptions, Options, dense_weights};
use crate::train::progress::Observer;
use crate::train::report::{Details, DynamicDetails, Neurons, Report};
use crate::train::trained::{Stopwatch, Trained};
use crate::{Error, Result};

/// Numbers of a panel of gradients: within the second-level cache.
const PANEL: usize = 1 << 16;
/// Bytes of a weight: index and value, gradient and moments, half an entry to grow, and links by both
/// ends.
const WEIGHT_BYTES: f64 = 32.0;

impl DynamicOptions {
    /// Passes over so many rows.
    pub(crate) fn passes(&self, nnz: usize, rows: usize) -> u32 {
        self.params(nnz, rows, 0).epochs
    }

    /// The settings for so many nonzeros, rows and weights of the dense network.
    fn params(&self, nnz: usize, rows: usize, seed: u64) -> Params {
        let own = Params::new(nnz);
        // About a hundred batches an epoch, or more.
        let batch = self.batch.unwrap_or_else(|| (rows / 100).clamp(32, own.batch));
        let batch = if batch == 0 { rows } else { batch.min(rows) };
        let steps = rows.div_ceil(batch.max(1)).min(Self::LEAST_STEPS) as u32;
        let more = (Self::LEAST_STEPS as u32 / steps.max(1)).min(Self::MOST_EPOCHS);
        let epochs = self.epochs.unwrap_or_else(|| own.epochs.max(more));
        let steps = epochs.saturating_mul(steps);
        Params {
            factor: self.factor.unwrap_or_else(|| Self::default_factor(nnz)),
            epochs,
            batch,
            rate: self.rate.unwrap_or_else(|| Self::default_rate(nnz)),
            decay: self.decay.unwrap_or(own.decay),
            warmup: self.warmup.unwrap_or_else(|| own.warmup.min(steps / 20)),
            every: own.every.min(steps / 60).max(1),
            constant: true,
            seed,
            ..own
        }
    }

    /// Steps that a training has, as far as [`Self::MOST_EPOCHS`] go: few rows take more epochs.
    const LEAST_STEPS: usize = 6000;
    const MOST_EPOCHS: u32 = 200;

    /// More weights at the start help most where few are left.
    fn default_factor(nnz: usize) -> f32 {
        (20_000.0 / nnz as f32).clamp(3.0, 10.0)
    }

    /// Smaller steps for larger networks.
    const fn default_rate(nnz: usize) -> f32 {
        if nnz < 3500 { 0.02 } else { 0.01 }
    }
}

/// Trains a network of exactly s nonzeros on `problem`, on the current pool, in memory for the most
/// weights at a time.
pub(crate) fn train(
    problem: &Problem,
    options: &Options,
    settings: &DynamicOptions,
    hidden: &[usize],
    observer: &mut Observer<'_>,
) -> Result<Trained> {
    problem.check()?;
    settings.test.as_ref().map_or(Ok(()), |test| check_test(problem, test))?;
    let outputs = problem.classes().unwrap_or_else(|| problem.outputs());
    let widths = [hidden, &[outputs]].concat();
    check_widths(problem.data.cols, hidden)?;
    let stopwatch = Stopwatch::start(problem);
    let unit = if problem.data.is_bytes() && !settings.raw { 1.0 / 256.0 } else { 1.0 };
    let dense = dense_weights(problem, hidden);
    let nnz = options.budget.count(dense, widths.len())?;
    check_budget(nnz, widths.len(), outputs)?;
    let rows = problem.data.rows;
    let mut params = settings.params(nnz, rows, options.seed);
    // Each layer but the last has one more, for biases.
    let layers = hidden.len();
    let activations = problem.data.cols + 1 + hidden.iter().sum::<usize>() + layers;
    let longest = widths.iter().copied().max().unwrap_or(0).max(problem.data.cols) + 1;
    let mut panel = longest.max(PANEL);
    if let Memory::Ram(ram) = options.memory {
        // A small panel, and as many weights at the start as there is memory for.
        panel = longest;
        let strips = 4 * LANES * (activations + outputs) * rayon::current_num_threads();
        let fixed = 4 * dynamic::words(0, activations, outputs, panel) + strips;
        let own = 4.0 * rayon::current_num_threads().saturating_sub(1) as f64;
        let least = fixed as f64 + (WEIGHT_BYTES + own) * (nnz + layers) as f64;
        let factor = 1.0 + (ram as f64 - least) / ((WEIGHT_BYTES + own) * nnz as f64);
        if factor < 1.0 {
            return Err(Error::new("the memory budget is too small for these sizes")
                .expected(format_args!("at least {} bytes needed", least.ceil()))
                .got(format_args!("{ram} bytes"))
                .help("raise --ram, choose fewer nonzeros, neurons or --threads"));
        }
        params.factor = params.factor.min(factor as f32);
    }
    let most = params.most(dense);
    // One more in each layer but the last hands on the constant.
    let room = most + layers;
    let words = dynamic::words(room, activations, outputs, panel);
    let state_bytes = (8 * room + 4 * words) as u64;
    let help = "choose fewer nonzeros, or a smaller --start-factor";
    room_for("training", state_bytes, help)?;
    let (mut index, mut value, mut memory) = (vec![0; room], vec![0.0; room], vec![0; words]);
    let mut stack = Stack::new(problem.data.cols + 1, &mut index, &mut value);
    dynamic::start(&mut stack, &widths, &params, &mut memory)?;
    let start_nnz = stack.nnz() - layers;
    let classes: Vec<u16> = match problem.task {
        Task::Regression => Vec::new(),
        _ => problem.labels.iter().map(|&label| label as u16).collect(),
    };
    let labels = match problem.task {
        Task::Regression => Labels::values(&problem.labels),
        _ => Labels::classes(&classes, outputs),
    };
    let mut engine = Engine::new(&problem.data, unit, labels, &stack, observer.stop)?;
    if let Some(changes) = settings.augment {
        engine = engine.augmented(Augment::new(changes, problem.data.cols, options.seed)?);
    }
    let workspace_bytes = engine.bytes() as u64;
    let mut done = Info::default();
    let mut observe = |now: &dynamic::Progress| {
        (done.epochs, done.loss) = (now.epoch, now.loss);
        let goes_on = observer.epoch(now.epoch, now.epochs, now.loss);
        if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    match dynamic::run(&mut engine, &mut stack, &params, &mut memory, &mut observe) {
        Ok(info) => done = info,
        Err(tamis::Error::Diverged { step }) => return Err(diverged(step, params.rate)),
        Err(tamis::Error::Stopped) => {
            return Err(Error::interrupted().help("give it more time, or pass fewer --epochs"));
        }
        Err(error) => return Err(error.into()),
    }
    let task = match problem.task {
        Task::Binary => Task::LOG_ODDS,
        task => task.stored(),
    };
    let model =
        encode_layers(&layers_of_stack(&stack, unit, Some(hidden.len())), End::Layer, Some(task))?;
    let (test, score) = (
        settings.test.as_ref().map(|test| score_model(&model, test)).transpose()?,
        score_model(&model, problem)?,
    );
    // Without the one that hands on the constant.
    let live = stack.layers().take(layers).map(|w| w.blocks().count() - 1).collect();
    let details = DynamicDetails {
        dense_nnz: dense,
        start_nnz,
        batch: params.batch.min(rows),
        rate: params.rate,
        decay: params.decay,
        warmup: params.warmup,
        changes: done.changes,
        grown: done.grown,
        input_scale: unit,
        test_loss: test.as_ref().map(|test| test.loss),
        test_accuracy: test.as_ref().and_then(|test| test.accuracy),
    };
    let report = Report {
        outputs,
        hidden: Neurons::Each(hidden.to_vec()),
        requested_nnz: nnz,
        seed: options.seed,
        nnz: stack.nnz() - layers,
        live: Neurons::Each(live),
        epochs: done.epochs,
        steps: done.steps.into(),
        passes: f64::from(done.steps) / rows.div_ceil(params.batch.min(rows).max(1)) as f64,
        stopped: done.stopped,
        state_bytes,
        workspace_bytes,
        ..stopwatch.report("dynamic", Details::Dynamic(details)).scored(&score)
    };
    Ok(Trained::new(&model, SparseNetwork::default(), report))
}

fn check_widths(inputs: usize, hidden: &[usize]) -> Result<()> {
    let widest = hidden.iter().copied().max().unwrap_or(0).max(inputs);
    if hidden.len() < MAX_LAYERS && widest <= MAX_INPUTS {
        return Ok(());
    }
    Err(Error::new("no model is of this size")
        .expected(format_args!(
            "at most {} hidden layers, of at most {MAX_INPUTS} inputs and neurons",
            MAX_LAYERS - 1
        ))
        .got(format_args!("{inputs} inputs and --hidden {hidden:?}"))
        .help("choose fewer layers or neurons"))
}

/// Refuses fewer nonzeros than paths to all outputs take.
fn check_budget(nnz: usize, layers: usize, outputs: usize) -> Result<()> {
    let least = outputs + layers - 1;
    if nnz >= least {
        return Ok(());
    }
    Err(Error::new("too few nonzeros for a path to every output")
        .expected(format_args!(
            "{least} or more: one for each of {outputs} outputs and each layer before"
        ))
        .got(nnz)
        .help("pass a larger --nnz, or fewer layers to --hidden"))
}
