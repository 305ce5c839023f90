//! The dense baseline as a recipe: a problem in memory to the model that iterative magnitude
//! pruning leaves, and a report.

use tamis::infer::model::{MAX_INPUTS, MAX_LAYERS};

use crate::base::memory::room_for;
use crate::data::{Problem, Task};
use crate::model::score::psnr_db;
use crate::model::score_model;
use crate::operator::Stop;
use crate::train::check::at_least_one;
use crate::train::dense::{
    self, Head, Imp, ImpOptions, Level, LevelFolder, Measure, Progress, Rates, Shape,
};
use crate::train::encode::{End, SparseLayer, encode_layers};
use crate::train::network::SparseNetwork;
use crate::train::options::{ImpSettings, Options};
use crate::train::progress::Observer;
use crate::train::report::{Details, ImpDetails, LevelReport, Neurons, Report};
use crate::train::trained::{Stopwatch, Trained};
use crate::{Error, Result};

/// Trains a dense network on `problem` and prunes it to s weights, round by round; on the current
/// pool. Ended early, the outcome is the last complete level, or the last step where there is none,
/// cut to the s largest weights.
pub(crate) fn train(
    problem: &Problem,
    options: &Options,
    settings: &ImpSettings,
    hidden: &[usize],
    stop: &Stop,
    observer: &mut Observer<'_>,
) -> Result<Trained> {
    problem.check()?;
    let resolved = resolve(problem, settings, options, hidden)?;
    let test = settings.test.as_ref();
    if let Some(test) = test {
        check_test(problem, test)?;
    }
    let needed = resolved.state_bytes().saturating_add(resolved.workspace_bytes(&problem.data));
    room_for("dense training", needed, "choose smaller --hidden or --batch")?;
    let stopwatch = Stopwatch::start(problem);
    let folder = options.checkpoint.as_ref().map(|checkpoint| LevelFolder {
        folder: checkpoint.path.clone(),
        resume: checkpoint.resume,
        levels: settings.keep_levels,
    });
    let observe = |progress: &Progress| {
        let count = |epochs: u64| u32::try_from(epochs).unwrap_or(u32::MAX);
        observer.epoch(count(progress.epoch), count(progress.epochs), progress.loss as f32)
    };
    let done = dense::imp(problem, test, &resolved, folder.as_ref(), stop, observe)?;
    let model = encode(&resolved, &done, problem.task)?;
    let score = score_model(&model, problem)?;
    let shape = &resolved.shape;
    let details = Details::Imp(details(problem, test, settings, &resolved, &done));
    let report = Report {
        outputs: shape.outputs(),
        hidden: Neurons::Each(hidden.to_vec()),
        requested_nnz: resolved.nnz,
        seed: options.seed,
        nnz: done.mask.iter().filter(|&&kept| kept).count(),
        live: Neurons::Each(live(shape, &done.mask)),
        epochs: resolved.epochs,
        steps: done.steps,
        stopped: done.stopped,
        data_bytes: stopwatch.data_bytes + test.map_or(0, |test| test.bytes() as u64),
        state_bytes: resolved.state_bytes(),
        workspace_bytes: resolved.workspace_bytes(&problem.data),
        ..stopwatch.report("imp", details).scored(&score)
    };
    Ok(Trained::new(&model, SparseNetwork::default(), report))
}

/// The settings for the data at hand, checked.
fn resolve(
    problem: &Problem,
    settings: &ImpSettings,
    options: &Options,
    hidden: &[usize],
) -> Result<ImpOptions> {
    at_least_one("--epochs", settings.epochs as usize, "leave --epochs out for 20")?;
    let (d, outputs) = (problem.data.cols, problem.classes().unwrap_or_else(|| problem.outputs()));
    if let Some(&wide) = [&[d][..], hidden].concat().iter().find(|&&width| width > MAX_INPUTS) {
        return Err(Error::new("a layer is too wide for a model")
            .expected(format_args!(
                "at most {MAX_INPUTS} columns, and as many neurons of a layer (--hidden)"
            ))
            .got(wide)
            .help("leave out columns, or choose fewer neurons, such as 10 to 1000"));
    }
    if hidden.len() >= MAX_LAYERS {
        return Err(Error::new("too many layers for a model")
            .expected(format_args!("--hidden with at most {} layers", MAX_LAYERS - 1))
            .got(format_args!("{} layers", hidden.len()))
            .help("choose fewer layers"));
    }
    let shape = Shape::new(d, hidden, outputs, settings.head)?;
    let nnz = options.budget.count(shape.weights(), 1)?;
    let bytes = problem.data.is_bytes();
    let rates = settings.rates.clone();
    let resolved = ImpOptions {
        epochs: settings.epochs,
        batch: settings.batch,
        optimiser: settings.optimiser,
        rates: rates.unwrap_or_else(|| Rates::constant(settings.optimiser.default_rate())),
        part: settings.prune,
        rewind: settings.rewind,
        input_scale: if bytes && !settings.raw { 1.0 / 256.0 } else { 1.0 },
        seed: options.seed,
        ..ImpOptions::new(shape, problem.task, nnz)
    };
    resolved.check()?;
    Ok(resolved)
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
    let entry =
        |layer: &dense::Layer, k: usize, j: usize| mask[layer.range.start + k * layer.inputs + j];
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
        used = (0..layer.inputs)
            .map(|j| (0..layer.outputs).any(|k| used[k] && entry(layer, k, j)))
            .collect();
    }
    counts.reverse();
    counts
}

fn details(
    problem: &Problem,
    test: Option<&Problem>,
    settings: &ImpSettings,
    options: &ImpOptions,
    done: &Imp,
) -> ImpDetails {
    let rows = problem.data.rows;
    ImpDetails {
        head: options.shape.head(),
        dense_nnz: options.shape.weights(),
        batch: if options.batch == 0 { rows } else { options.batch.min(rows) },
        optimiser: options.optimiser,
        rates: options.rates.clone(),
        prune_part: options.part,
        rewind: settings.rewind,
        input_scale: options.input_scale,
        rounds: done.levels.len().saturating_sub(1),
        levels: levels(problem, test, &done.levels),
        dense_bytes: options.dense_bytes(rows),
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
