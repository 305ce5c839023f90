//! The dense baseline as a recipe: a problem in memory to the model that iterative magnitude
//! pruning leaves, and a report.

use crate::base::memory::room_for;
use crate::data::{Problem, Task};
use crate::model::score::psnr_db;
use crate::model::{LayerName, Mask, score_model};
use crate::operator::Stop;
use crate::train::budget::Budget;
use crate::train::dense::Head;
use crate::train::dense::imp::{Epoch, Imp, Keep, Sized, imp, imp_of_sizes};
use crate::train::dense::job::{ImpJob, ImpSettings, Level};
use crate::train::dense::shape::{Layer, Shape};
use crate::train::encode::{End, SparseLayer, encode_layers};
use crate::train::network::SparseNetwork;
use crate::train::options::{CheckpointOptions, Options};
use crate::train::progress::Observer;
use crate::train::report::{Details, ImpDetails, LevelReport, Neurons, Report};
use crate::train::trained::{Stopwatch, Trained};
use crate::{Error, Result};

/// Trains a dense network on `problem` and prunes it to s weights, on the current pool.
pub(crate) fn train(
    problem: &Problem,
    options: &Options,
    settings: &ImpSettings,
    hidden: &[usize],
    observer: &mut Observer<'_>,
) -> Result<Trained> {
    let job = checked(problem, settings, options.budget, hidden, options.seed)?;
    let stopwatch = Stopwatch::start(problem);
    let stop = observer.stop;
    let mut observe = |Epoch { epoch, epochs, loss, .. }: Epoch| {
        let [epoch, epochs] = [epoch, epochs].map(|count| count.try_into().unwrap_or(u32::MAX));
        observer.epoch(epoch, epochs, loss as f32)
    };
    // Of the last level; the first of all is heard of at once.
    let (mut unsaved, mut is_heard) = (None, false);
    let mut saved = |error: Option<Error>| {
        let hear = options.checkpoint.as_ref().map(|kept| kept.on_error);
        if let (Some(error), Some(hear), false) = (&error, hear, is_heard) {
            hear(error);
            is_heard = true;
        }
        unsaved = error;
    };
    let keep = options.checkpoint.as_ref().map(|CheckpointOptions { path, resume, .. }| Keep {
        folder: path,
        resume: *resume,
        saved: &mut saved,
    });
    let done = imp(problem, &job, keep, stop, &mut observe)?;
    Ok(Trained { unsaved, ..outcome(problem, &job, &done, &stopwatch)? })
}

/// Trains one run of levels for several sizes, which fall; `done` takes the network of each, in their
/// order, with the steps and seconds that a run of its own would have taken.
pub(crate) fn train_sizes(
    problem: &Problem,
    settings: &ImpSettings,
    network: &DenseNetwork<'_>,
    stop: &Stop,
    observe: &mut dyn FnMut(Epoch),
    done: &mut dyn FnMut(Trained) -> Result<()>,
) -> Result<()> {
    let &DenseNetwork { hidden, sizes, seed } = network;
    let least = Budget::nnz(sizes.last().copied().unwrap_or(0));
    let job = checked(problem, settings, least, hidden, seed)?;
    let mut observe = |epoch| {
        observe(epoch);
        !stop.asked()
    };
    imp_of_sizes(problem, &job, sizes, stop, &mut observe, &mut |Sized { imp, seconds }| {
        let mut trained = outcome(problem, &job, &imp, &Stopwatch::start(problem))?;
        trained.report.seconds += seconds;
        done(trained)
    })
}

/// What [`train_sizes`] trains.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DenseNetwork<'a> {
    pub(crate) hidden: &'a [usize],
    /// Weights that are left, from the most to the least.
    pub(crate) sizes: &'a [usize],
    pub(crate) seed: u64,
}

/// The job, where its data are in order and there is memory for it.
fn checked<'a>(
    problem: &Problem,
    settings: &'a ImpSettings,
    budget: Budget,
    hidden: &[usize],
    seed: u64,
) -> Result<ImpJob<'a>> {
    problem.check()?;
    let job = ImpJob::new(problem, settings, budget, hidden, seed)?;
    let test = settings.test.as_ref();
    test.map_or(Ok(()), |test| check_test(problem, test))?;
    let needed = job.state_bytes().saturating_add(job.workspace_bytes(problem));
    room_for("dense training", needed, "choose smaller --hidden or --batch")?;
    Ok(job)
}

/// The model of what is left, and the report.
fn outcome(
    problem: &Problem,
    job: &ImpJob<'_>,
    done: &Imp,
    stopwatch: &Stopwatch,
) -> Result<Trained> {
    let model = encode(job, done)?;
    let score = score_model(&model, problem)?;
    let (settings, hidden) = (job.settings, job.shape.hidden().to_vec());
    let test_bytes = settings.test.as_ref().map_or(0, |test| test.bytes() as u64);
    let nnz = done.mask.iter().filter(|&&kept| kept).count();
    let report = Report {
        outputs: job.shape.outputs(),
        hidden: Neurons::Each(hidden),
        requested_nnz: nnz,
        seed: job.seed,
        nnz,
        device: settings.place.name().to_owned(),
        live: Neurons::Each(live(&job.shape, &done.mask)?),
        epochs: settings.epochs,
        steps: done.steps,
        stopped: done.stopped,
        data_bytes: stopwatch.data_bytes + test_bytes,
        state_bytes: job.state_bytes(),
        workspace_bytes: job.workspace_bytes(problem),
        ..stopwatch.report("imp", details(problem, job, done)).scored(&score)
    };
    Ok(Trained::new(&model, SparseNetwork::default(), report))
}

/// Checks that other rows are such as the network can be scored on.
pub(crate) fn check_test(problem: &Problem, test: &Problem) -> Result<()> {
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
    let is_class = |label: &&f32| **label >= 0.0 && label.fract() == 0.0;
    match test.labels.iter().find(|label| !is_class(label)) {
        Some(label) if problem.task == Task::Multiclass => {
            Err(Error::new("a label is none of the network's classes")
                .expected(format_args!("whole numbers from 0 to {}", classes(problem) - 1))
                .got(label)
                .help("pass labels of the classes that the network was made for"))
        }
        _ => Ok(()),
    }
}

/// The model of the weights that are left: a sparse layer for each, and the sum where there is one.
fn encode(job: &ImpJob<'_>, done: &Imp) -> Result<Vec<u8>> {
    let sparse = |(l, Layer { inputs, outputs, range, .. })| {
        let scale = if l == 0 { job.input_scale } else { 1.0 };
        let neurons = done.mask[range.clone()].chunks(inputs);
        let neurons = neurons.zip(done.weights[range].chunks(inputs));
        let entries = |(mask, weights): (&[bool], &[f32])| {
            (0..inputs).filter(|&j| mask[j]).map(|j| (j, scale * weights[j])).collect()
        };
        let neurons = neurons.map(entries).collect();
        SparseLayer { inputs, requested: outputs, neurons, biases: Vec::new() }
    };
    let layers: Vec<SparseLayer> = job.shape.layers().enumerate().map(sparse).collect();
    let end = if job.shape.head == Head::Sum { End::Sum(&[]) } else { End::Layer };
    encode_layers(layers, end, Some(job.task.stored()))
}

/// Neurons of each hidden layer that some input reaches and that reach some output.
fn live(shape: &Shape, mask: &[bool]) -> Result<Vec<usize>> {
    let widths: Vec<usize> =
        std::iter::once(shape.inputs()).chain(shape.layers().map(|layer| layer.outputs)).collect();
    let names = LayerName::numbered(widths.len() - 1);
    let index = (0..).zip(mask).filter_map(|(index, &kept)| kept.then_some(index)).collect();
    let layers = Mask::new(names, widths, index)?.layers();
    Ok(layers.iter().map(|layer| layer.live_neurons).take(shape.hidden().len()).collect())
}

fn details(problem: &Problem, job: &ImpJob<'_>, done: &Imp) -> Details {
    let rows = problem.data.rows;
    Details::Imp(ImpDetails {
        head: job.shape.head,
        dense_nnz: job.shape.weights(),
        batch: job.rows(rows),
        optimiser: job.settings.optimiser,
        prune_fraction: job.settings.prune,
        rewind: job.settings.rewind,
        input_scale: job.input_scale,
        rounds: done.levels.len().saturating_sub(1),
        levels: levels(problem, job.settings.test.as_ref(), &done.levels),
        dense_bytes: job.dense_bytes(rows),
        rates: job.rates.clone(),
    })
}

fn levels(problem: &Problem, test: Option<&Problem>, levels: &[Level]) -> Vec<LevelReport> {
    let peak = |problem: &Problem| problem.labels.iter().fold(0.0_f32, |top, y| top.max(y.abs()));
    let (own, other) = (peak(problem), test.map_or(0.0, peak));
    let psnr = |loss: f64, peak: f32| {
        (problem.task != Task::Multiclass).then(|| psnr_db(f64::from(peak), loss)).flatten()
    };
    let report = |level: &Level| LevelReport {
        nnz: level.nnz,
        steps: level.steps,
        loss: level.train.loss,
        psnr_db: psnr(level.train.loss, own),
        accuracy: level.train.accuracy(),
        test_loss: level.test.map(|test| test.loss),
        test_psnr_db: level.test.and_then(|test| psnr(test.loss, other)),
        test_accuracy: level.test.and_then(|test| test.accuracy()),
    };
    levels.iter().map(report).collect()
}
