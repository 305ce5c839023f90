//! The recipe for classification: a problem in memory to weights of both sides, model and report.

use tamis::base::budget::Annealing;
use tamis::base::dims::Dims;
use tamis::base::math::unit_scale;
use tamis::learn::anneal::{self as core_anneal, Checkpoint, Held, Info, Params, Progress};
use tamis::learn::loss::Classes;
use tamis::learn::loss::classes;
use tamis::learn::start::{self, continue_if};
use tamis::operator::factored;

use crate::base::check_setting;
use crate::base::limits::Watch;
use crate::data::{Matrix, Problem, Task, Values};
use crate::model::score::threshold;
use crate::operator::{Backend, Layout, OperatorSizes, Placed, on_device};
use crate::train::budget::Memory;
use crate::train::check::{Sizes, sizes, validation_rows};
use crate::train::checkpoint::{self, Kind};
use crate::train::encode::encode;
use crate::train::masked::MaskedStart;
use crate::train::network::SparseNetwork;
use crate::train::options::AnnealOptions;
use crate::train::pinned;
use crate::train::plan::{LESS, Plan, choose};
use crate::train::progress::Observer;
use crate::train::report::{AnnealDetails, Details, Neurons, Report};
use crate::train::trained::{Job, Start, Stopwatch, Trained, shuffle};
use crate::{Error, Result};

/// Rows of a tile, at most: a batch of twice as many keeps two cores busy.
const TILE: usize = 256;
/// Neurons of a gradient panel, at most: with four times as many a run takes two to three times the memory, and 0.7 to 0.9
/// of the time.
const PANEL: usize = 32;
/// By how much a smaller budget shrinks the first support from one try to the next.
const SHRINK: f32 = 0.9;

pub(crate) struct AnnealSetup<'a> {
    pub(crate) sizes: Sizes,
    pub(crate) params: Params<'a>,
    pub(crate) plan: Plan,
    pub(crate) job: Job<'a>,
}

impl<'a> AnnealSetup<'a> {
    /// Weights of the support at its largest, in the beginning.
    pub(crate) fn support(&self) -> usize {
        budget(self.sizes, &self.params, self.plan.layout.panel).start
    }

    pub(crate) fn new(problem: &Problem, options: &AnnealOptions, job: &Job<'a>) -> Result<Self> {
        problem.check()?;
        let (n, d) = (problem.data.rows, problem.data.cols);
        let sizes = sizes(n, d, job.hidden, job.budget, problem.classes().unwrap_or(1))?;
        let validation = validation_rows(n, options.validation)?;
        let batch = options.batch.unwrap_or_else(|| ((n - validation) / 100).clamp(32, 512));
        check(&options.params)?;
        pinned::check(job.pinned, &sizes.dims, true)?;
        let per_epoch = (n - validation).div_ceil(if batch == 0 { n } else { batch }) as u32;
        let epochs = options.params.epochs.max(options.least_steps.div_ceil(per_epoch));
        let input_scale = input_scale(&problem.data);
        let (seed, must_keep) = (job.seed, job.pinned);
        let params =
            Params { epochs, batch, validation, input_scale, seed, must_keep, ..options.params };
        let (params, plan) = fit(sizes, problem.data.is_bytes(), params, job)?;
        Ok(Self { sizes, params, plan, job: *job })
    }

    /// The outcome of a run that is ended is the best iterate on the validation split since the
    /// support has shrunk to s, and before that the s most important nonzeros of the last step.
    pub(crate) fn train(
        self,
        mut problem: Problem,
        start: Start<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<Trained> {
        let stopwatch = Stopwatch::start(&problem);
        let Self { sizes, params, plan, job } = &self;
        let Sizes { dims, outputs } = *sizes;
        shuffle(&mut problem, params.seed);
        let Problem { mut data, labels, task } = problem;
        let columns = data.scale_columns();
        // Checked to be classes. The floats are given back.
        let labels: Vec<u16> = labels.into_iter().map(|label| label as u16).collect();
        let support = params.start(dims, outputs);
        let operator_sizes = OperatorSizes { hidden: dims.hidden, nnz: support, outputs };
        let mut operator = Placed::new(job.device, data, None, operator_sizes, plan.layout)?;
        let budget = budget(*sizes, params, plan.layout.panel);
        let mut memory = vec![0; budget.words()];
        let mut watch =
            Watch::new(job.limits, observer.stop).resumed(matches!(start, Start::Checkpoint(_)));
        operator.heed(Some(watch.stop()));
        let passes = |rows_read: u64| rows_read as f64 / dims.samples as f64;
        let observe = |progress: &Progress<'_>| {
            continue_if(
                watch.show(passes(progress.rows_read), || observer.anneal(progress, dims.samples)),
            )
        };
        let (s, memory) = (dims.nnz, &mut memory[..]);
        let (mut resumed, mut masked) = (None, None);
        match start {
            Start::Zero => (),
            Start::Checkpoint(checkpoint) => resumed = Some(checkpoint.anneal()?),
            Start::Mask(start) => masked = Some(first_support(start, *sizes, params, &columns)?),
            Start::Network(_) => {
                return Err(Error::new("recipe anneal cannot start from a network")
                    .expected("a run from nothing, from a mask, or from a checkpoint")
                    .got("a network to start from")
                    .help("start it anew, or choose --recipe lm or paper"));
            }
        }
        let from = match (&resumed, &masked) {
            (Some(checkpoint), _) => start::Start::Checkpoint(checkpoint),
            (_, Some(network)) => start::Start::Network(network.net(dims.hidden)?),
            _ => start::Start::Zero,
        };
        let trained = on_device!(&mut operator, on => {
            let mut handle = Vec::new();
            let labels = Classes { labels: on.classes(&labels, &mut handle), outputs };
            let trained = core_anneal::run(on, labels, s, from, params, memory, observe);
            trained.map_err(|error| on.failed(error))
        })?;
        let (info, net) = (trained.info, trained.network);
        let (limit, stopped) = watch.ended(info.stopped);
        if info.nnz == 0 && !stopped {
            return Err(Error::new("training found no weight that tells the classes apart")
                .expected(format_args!("{s} nonzeros"))
                .got("0")
                .help("check that some column is not all zero, or train for more epochs"));
        }
        let mut network = SparseNetwork::new(net);
        for (index, value) in network.index.iter().zip(&mut network.value) {
            *value *= columns.get(*index as usize % dims.inputs).unwrap_or(&1.0);
        }
        let stored = if task == Task::Binary { Task::LOG_ODDS } else { task.stored() };
        let model = encode(network.net(dims.hidden)?, dims.hidden, stored)?;
        let Info { nnz, live, epochs, steps, rows_read, .. } = info;
        let details = Details::Anneal(AnnealDetails {
            classes: classes(outputs),
            validation_samples: params.validation,
            validation_loss: info.validation.map(|Held { loss, .. }| f64::from(loss)),
            validation_accuracy: info.validation.map(share_right),
            batch: budget.batch,
            start_factor: info.start as f64 / dims.nnz as f64,
            start_nnz: info.start,
            input_scale: params.input_scale,
            early: info.early,
        });
        let report = Report {
            nnz,
            pinned: pinned::report(params.must_keep, &network),
            live: Neurons::One(live),
            loss: f64::from(info.training.loss),
            accuracy: Some(share_right(info.training)),
            class_from: threshold(Some(stored)),
            epochs,
            steps: steps.into(),
            passes: passes(rows_read),
            limit,
            stopped,
            ..job
                .report("anneal", *sizes, plan, start, &stopwatch, details)
                .on(job.device, &operator)
        };
        Ok(Trained::new(&model, network, report))
    }
}

fn share_right(held: Held) -> f64 {
    held.right as f64 / held.rows.max(1) as f64
}

/// The weights of a mask as a first support, in units of the columns.
fn first_support(
    start: &MaskedStart,
    sizes: Sizes,
    params: &Params<'_>,
    columns: &[f32],
) -> Result<SparseNetwork> {
    let Sizes { dims, outputs } = sizes;
    let (most, widths) = (params.start(dims, outputs), [dims.inputs, dims.hidden, outputs]);
    let kept = start.mask.index().len();
    if start.mask.widths() != widths || kept > most || start.biases.iter().any(|b| !b.is_empty()) {
        return Err(Error::new("the run cannot start from the mask")
            .expected(format_args!("layers {widths:?} without biases, at most {most} weights"))
            .got(format_args!("layers {:?}, {kept} weights", start.mask.widths()))
            .help("make a mask of these layers, with fewer weights"));
    }
    let mut network = SparseNetwork { inputs: dims.inputs, outputs, ..SparseNetwork::default() };
    let first = start.mask.index().partition_point(|&at| (at as usize) < dims.inputs * dims.hidden);
    let (index, second) = start.mask.index().split_at(first);
    network.index = index.to_vec();
    let unit =
        |at: u32| columns.get(at as usize % dims.inputs).map_or(params.input_scale, |x| 1.0 / x);
    network.value = index.iter().zip(&start.values).map(|(&at, value)| value * unit(at)).collect();
    let neuron = |at: u32| at as usize - dims.inputs * dims.hidden;
    let mut entries: Vec<(u32, f32)> = second
        .iter()
        .map(|&at| (neuron(at) % dims.hidden * outputs + neuron(at) / dims.hidden) as u32)
        .zip(start.values[first..].iter().copied())
        .collect();
    entries.sort_unstable_by_key(|entry| entry.0);
    (network.out_index, network.out_value) = entries.into_iter().unzip();
    Ok(network)
}

/// Refuses what the core would refuse, in the words of the command line.
fn check(params: &Params<'_>) -> Result<()> {
    let &Params { epochs, start_factor, rate, drop, .. } = params;
    check_setting(epochs > 0, "--epochs 1 or more", epochs, "leave --epochs out for 100")?;
    let help = "10 gives the best accuracy, 1 takes the least memory";
    let holds = start_factor >= 1.0 && start_factor.is_finite();
    check_setting(holds, "--start-factor 1 or more", start_factor, help)?;
    let holds = rate > 0.0 && rate.is_finite();
    check_setting(holds, "--rate above 0, such as 0.02", rate, "leave --rate out for 0.02")?;
    let help = "leave --drop out for 0.3, or pass 0 to let nothing grow again";
    check_setting((0.0..=1.0).contains(&drop), "--drop 0 to 1", drop, help)
}

/// The power of two that brings the largest magnitude below 1. Columns of floats are scaled one by
/// one before that.
fn input_scale(data: &Matrix) -> f32 {
    match &data.values {
        Values::F32(_) => 1.0,
        Values::U8(values) => {
            0.5 * unit_scale(&[f32::from(values.iter().copied().max().unwrap_or(0))])
        }
    }
}

/// The first support and the layout that fit the memory: the largest support first, then the
/// fastest layout for it.
fn fit<'a>(
    sizes: Sizes,
    bytes: bool,
    params: Params<'a>,
    job: &Job<'_>,
) -> Result<(Params<'a>, Plan)> {
    let Sizes { dims, outputs } = sizes;
    let batch = params.budget(dims, outputs, 1, 0).batch;
    // Two pieces or more a batch, in whole vectors.
    let tile = TILE.min(batch.div_ceil(2).next_multiple_of(64));
    let own = job.layout(dims.hidden, dims.inputs, outputs, PANEL);
    let default = Layout { tile, hold: false, ..own };
    let memory = job.memory;
    let mut factor = if memory == Memory::Least { 1.0 } else { params.start_factor };
    loop {
        let params = Params { start_factor: factor, ..params };
        let with = |layout: Layout| {
            let budget = budget(sizes, &params, layout.panel);
            let support = Dims::new(dims.samples, dims.inputs, dims.hidden, budget.start);
            let operator = job.operator_bytes(layout, support, bytes, outputs);
            let form = Checkpoint::form(&budget);
            let checkpoints = checkpoint::bytes(job.checkpoints, Kind::Anneal, &form);
            // Of the columns of floats.
            let scales = if bytes { 0 } else { dims.inputs * size_of::<f32>() };
            let workspace = [budget.workspace_bytes(), operator, checkpoints, scales];
            Plan::sum(layout, budget.state_bytes(), &workspace)
        };
        match choose(memory, default, dims.hidden, LESS, with) {
            Err(_) if factor > 1.0 && matches!(memory, Memory::Ram(_)) => {
                factor = (factor * SHRINK).max(1.0);
            }
            chosen => return chosen.map(|plan| (params, plan)),
        }
    }
}

/// The core's share of the memory for an operator of such panels.
fn budget(sizes: Sizes, params: &Params<'_>, panel: usize) -> Annealing {
    let Sizes { dims, outputs } = sizes;
    let mut budget = params.budget(dims, outputs, panel, 0);
    budget.scratch = factored::provided::scratch(budget.batch, dims.inputs);
    budget
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::operator::Stop;

    /// 900 rows of noise in classes for that many outputs.
    fn problem(outputs: usize, bytes: bool) -> Problem {
        let (n, d) = (900, 21);
        let noise = |e: usize| ((e * 7919 + e / 13) % 256) as u8;
        let values: Vec<u8> = (0..n * d).map(noise).collect();
        let values = match bytes {
            true => Values::U8(values),
            false => Values::F32(values.iter().map(|&b| f32::from(b) - 100.0).collect()),
        };
        let labels = (0..n).map(|k| (k % classes(outputs)) as f32).collect();
        let task = if outputs == 1 { Task::Binary } else { Task::Multiclass };
        Problem { data: Matrix::new(n, d, values).unwrap(), labels, task }
    }

    fn train(problem: Problem, options: &AnnealOptions, job: &Job<'_>) -> Trained {
        let setup = AnnealSetup::new(&problem, options, job).unwrap();
        let mut tell = |_: &_| ControlFlow::Continue(());
        let stop = Stop::new();
        setup.train(problem, Start::Zero, &mut Observer::new(&stop, &mut tell)).unwrap()
    }

    #[test]
    fn plan_equals_run_memory_within_every_budget() {
        // 270 rows a batch lead to tiles of 192 rows, of which no half is the smallest tile.
        // One output for two classes, two for two.
        for (outputs, bytes, batch) in [
            (1, true, None),
            (2, false, None),
            (7, true, None),
            (30, false, None),
            (7, false, Some(270)),
        ] {
            let default = AnnealOptions::default();
            let params = Params { epochs: 3, ..default.params };
            let options = AnnealOptions { params, batch, least_steps: 0, ..default };
            let job = |memory| Job { memory, checkpoints: bytes, ..Job::plain(20, 90) };
            let plan = |memory| {
                AnnealSetup::new(&problem(outputs, bytes), &options, &job(memory))
                    .map(|run| (run.plan, run.params))
            };
            let free = plan(Memory::Auto).unwrap().0.total_bytes();
            let least = plan(Memory::Ram(1)).unwrap_err().to_string();
            let least: u64 = least
                .split("at least ")
                .nth(1)
                .unwrap()
                .split(' ')
                .next()
                .unwrap()
                .parse()
                .unwrap();
            assert!(plan(Memory::Ram(least - 1)).is_err());
            assert_eq!(plan(Memory::Ram(least)).unwrap().1.start_factor, 1.0);
            for ram in [least, (least + free) / 2, free] {
                let (plan, _) = plan(Memory::Ram(ram)).unwrap();
                let run = train(problem(outputs, bytes), &options, &job(Memory::Ram(ram)));
                assert!(plan.total_bytes() <= ram);
                assert_eq!(run.report.plan, Some(plan));
            }
        }
    }

    #[test]
    fn byte_scale_is_power_of_two_below_one() {
        let scale = |values: Vec<u8>| {
            input_scale(&Matrix::new(1, values.len(), Values::U8(values)).unwrap())
        };
        assert_eq!((scale(vec![255, 0]), scale(vec![3]), scale(vec![0])), (1.0 / 256.0, 0.25, 0.5));
    }

    #[test]
    fn columns_of_any_size_are_worth_the_same() {
        let (n, d) = (600, 6);
        let noise = |k: usize, j: usize| {
            ((k * 7919 + j * 104_729 + k * k % 251) % 997) as f32 / 997.0 - 0.5
        };
        let labels: Vec<f32> =
            (0..n).map(|k| f32::from(u8::from(noise(k, 0) + noise(k, 5) > 0.0))).collect();
        let run = |sizes: [f32; 6]| {
            let values = (0..n * d).map(|e| noise(e / d, e % d) * sizes[e % d]).collect();
            let data = Matrix::new(n, d, Values::F32(values)).unwrap();
            let problem = Problem { data, labels: labels.clone(), task: Task::Binary };
            train(problem, &AnnealOptions::default(), &Job::plain(4, 12))
        };
        let plain = run([1.0; 6]);
        assert!(
            plain.report.accuracy > Some(0.9) && plain.report.steps >= 2000,
            "{:?}",
            plain.report
        );
        let sizes = [2.0_f32.powi(-20), 1.0, 2.0_f32.powi(9), 1.0, 1.0, 2.0_f32.powi(20)];
        let (plain, scaled) = (plain.network, run(sizes).network);
        assert_eq!((&scaled.index, &scaled.out_value), (&plain.index, &plain.out_value));
        for ((index, scaled), plain) in scaled.index.iter().zip(&scaled.value).zip(&plain.value) {
            assert_eq!(scaled * sizes[*index as usize % d], *plain);
        }
    }
}
