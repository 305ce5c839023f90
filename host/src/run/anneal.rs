//! The recipe for classification: a problem in memory to weights of both sides, model bytes and a report.

use serde::Serialize;
use tamis::anneal::{self as core_anneal, Held, Info, Params, Progress};
use tamis::dims::Dims;
use tamis::factored::{Factored, Net};
use tamis::loss::classes;
use tamis::math::unit_scale;
use tamis::sensing::Sensing;
use tamis::wire;

use super::found::Found;
use super::keep::{self, Kept};
use super::limits::{Limits, Watch};
use super::plan::{self, choose};
use super::train::{Start, at_least_one, check_recipe, held_out, shuffle, sizes};
use super::{KeptWeight, Memory, Plan, Problem, Size, Task, must_keep, peak_rss_bytes};
use crate::data::{Matrix, Values};
use crate::operator::{Blocked, Layout, Stop};
use crate::{Error, Result};

/// Rows of a tile, at most: a batch of twice as many keeps two cores busy.
const TILE: usize = 256;
/// By how much a smaller budget shrinks the first support from one try to the next.
const SHRINK: f32 = 0.9;

/// How to train a classifier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AnnealOptions<'k> {
    /// Hidden neurons, m.
    pub hidden: usize,
    /// Nonzero weights of both sides, s.
    pub size: Size,
    /// Part of the rows that is held out to choose the best iterate, from 0 up to but not 1.
    pub validation: f64,
    /// Rows of a batch, 0 for all; without it a hundredth of the rows, at least 32 and at most 512, so that an epoch has
    /// about a hundred steps or more.
    pub batch: Option<usize>,
    /// Steps that a run has at least: for few rows there are more epochs than `params` says.
    pub least_steps: u32,
    /// Epochs, rates, weights that must be kept ([`super::must_keep()`]) and seed. `batch`, `validation` and `input_scale` are set
    /// from the data.
    pub params: Params<'k>,
    /// How much memory to take. A budget shrinks the first support where it must.
    pub memory: Memory,
    /// Threads; 0 for one per core. They never change the result.
    pub threads: usize,
    /// When to end the run: what [`tamis::anneal`] gives then is the result, as when it is interrupted.
    pub limits: Limits,
    /// Whether checkpoints are kept ([`super::Keep`]), so that the plan counts the memory of two: the one to go on from, and the
    /// last one.
    pub checkpoints: bool,
}

impl<'k> AnnealOptions<'k> {
    /// The settings of `docs/results/multiclass.md`, with a tenth of the rows held out.
    #[must_use]
    pub const fn new(hidden: usize, size: Size) -> Self {
        Self {
            hidden,
            size,
            validation: 0.1,
            batch: None,
            least_steps: 2000,
            params: Params::DEFAULT,
            memory: Memory::Auto,
            threads: 0,
            limits: Limits::NONE,
            checkpoints: false,
        }
    }

    /// The same with weights from the inputs that stay whatever their size, as [`super::must_keep()`] gives them.
    #[must_use]
    pub const fn keeping(self, must_keep: &'k [u32]) -> Self {
        Self { params: Params { must_keep, ..self.params }, ..self }
    }
}

/// What a run did; the fields are the keys of the command line's JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AnnealReport {
    /// What was learnt.
    pub task: Task,
    /// `anneal`.
    pub recipe: &'static str,
    /// Rows, n, those held out included.
    pub samples: usize,
    /// Columns, d.
    pub inputs: usize,
    /// Hidden neurons asked for, m.
    pub hidden: usize,
    /// Classes that are told apart.
    pub classes: usize,
    /// Outputs, c: one a class, or one alone for a binary task, the log-odds of class 1.
    pub outputs: usize,
    /// Nonzeros asked for, s, over both sides.
    pub requested_nnz: usize,
    /// Nonzeros of the model. Weights that must be kept count, and are in the model, where they are 0 too.
    pub nnz: usize,
    /// The weights that had to be kept, and what they came out as.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptWeight>,
    /// Neurons that have weights.
    pub live: usize,
    /// Mean cross-entropy of the model on the rows trained on.
    pub loss: f64,
    /// None: classes have no PSNR; the key is that of the other recipes.
    pub psnr_db: Option<f64>,
    /// Part of the rows trained on whose class is right.
    pub accuracy: f64,
    /// Rows held out.
    pub validation_samples: usize,
    /// Mean cross-entropy on the rows held out; none without such rows, and none where the run was ended before there
    /// was a best iterate on them.
    pub validation_loss: Option<f64>,
    /// Part of the rows held out whose class is right.
    pub validation_accuracy: Option<f64>,
    /// Epochs done, the last one perhaps in part.
    pub epochs: u32,
    /// Steps done.
    pub steps: u32,
    /// Passes over all rows, the work of products on fewer rows counted in parts.
    pub passes: f64,
    /// Rows of a batch.
    pub batch: usize,
    /// Entries of the first support in units of s.
    pub start_factor: f64,
    /// Entries of the first support.
    pub start_nnz: usize,
    /// Factor that brings the inputs to the unit range, a power of two.
    pub input_scale: f32,
    /// Steps of the earlier parts of the run that this one went on from; 0 where it began anew.
    pub resumed_steps: u32,
    /// Which limit ended the run, `time` or `passes`.
    pub limit: Option<&'static str>,
    /// Whether the run was ended early on request.
    pub stopped: bool,
    /// Whether it ended for want of progress on the rows held out.
    pub early: bool,
    /// Seconds of training and of scoring the result, without reading files.
    pub seconds: f64,
    /// Threads used.
    pub threads: usize,
    /// Seed of the first support and of all orders.
    pub seed: u64,
    /// Bytes of samples and labels.
    pub data_bytes: u64,
    /// Panel and tile used, and the bytes of state and workspace.
    #[serde(flatten)]
    pub plan: Plan,
    /// The most memory that the process has had so far; none where the system does not say.
    pub peak_rss_bytes: Option<u64>,
}

/// A finished run.
#[derive(Debug, Clone, PartialEq)]
pub struct AnnealOutcome {
    /// Flat indices of the nonzeros of W, rising: input j of neuron i is `i d + j`.
    pub index: Vec<u32>,
    /// Their values.
    pub value: Vec<f32>,
    /// Flat indices of the nonzeros of Wt, rising: output k of neuron i is `i c + k`.
    pub out_index: Vec<u32>,
    /// Their values.
    pub out_value: Vec<f32>,
    /// The bytes of a `.tamis` file.
    pub model: Vec<u8>,
    /// What was done.
    pub report: AnnealReport,
}

/// Trains a classifier of one hidden layer on a problem with classes 0, 1, … as labels; for a binary task one of one output,
/// the log-odds of class 1.
///
/// The rows are put into a random order that the seed fixes; the last ones of it are held out. `observe` is called after
/// every step and ends the run by returning `false`; `stop` ends it within a step, in the time of a tile or a panel, and what
/// that step did is dropped. The outcome is then the best iterate on the rows held out since the support has shrunk to s, and
/// before that the s most important nonzeros of the last complete step; [`tamis::anneal`] says more. Everything is allocated before the first step.
///
/// # Errors
/// A size out of bounds, labels that are no classes or leave one out, a budget that is too small, or a run that diverges; or
/// the run was ended before its first step ([`Error::is_interrupted`]).
pub fn anneal(
    problem: Problem,
    options: &AnnealOptions<'_>,
    stop: &Stop,
    mut observe: impl FnMut(&Progress<'_>) -> bool + Send,
) -> Result<AnnealOutcome> {
    start(problem, options, None, stop, &mut observe)
}

/// Goes on from a checkpoint that [`super::Keep::load`] gave for this problem and these options: the model and the counters are
/// the same, bit for bit, as if the run had never been interrupted, on any number of threads of a machine with the same vector
/// instructions. `observe` is called after every further step.
///
/// # Errors
/// As [`anneal`]; or the checkpoint does not fit.
pub fn resume_anneal(
    problem: Problem,
    options: &AnnealOptions<'_>,
    kept: &Kept,
    stop: &Stop,
    mut observe: impl FnMut(&Progress<'_>) -> bool + Send,
) -> Result<AnnealOutcome> {
    start(problem, options, Some(kept), stop, &mut observe)
}

fn start(
    problem: Problem,
    options: &AnnealOptions<'_>,
    kept: Option<&Kept>,
    stop: &Stop,
    observe: &mut (dyn FnMut(&Progress<'_>) -> bool + Send),
) -> Result<AnnealOutcome> {
    let settled = Settled::new(&problem, options)?;
    settled.plan.check_room()?;
    plan::pool(options.threads)?.install(|| settled.train(problem, kept, stop, observe))
}

/// A run whose sizes, settings and memory are settled.
pub(super) struct Settled<'k> {
    task: Task,
    pub(super) dims: Dims,
    pub(super) outputs: usize,
    pub(super) params: Params<'k>,
    pub(super) plan: Plan,
    limits: Limits,
    checkpoints: bool,
}

impl<'k> Settled<'k> {
    pub(super) fn new(problem: &Problem, options: &AnnealOptions<'k>) -> Result<Self> {
        problem.check()?;
        check_recipe("anneal", problem.task)?;
        let outputs = problem.classes().unwrap_or(1);
        let dims = sizes(problem.shape(), options.hidden, options.size, outputs)?;
        let n = dims.samples;
        let validation = held_out(n, options.validation)?;
        let batch = options.batch.unwrap_or_else(|| ((n - validation) / 100).clamp(32, 512));
        let input_scale = input_scale(&problem.data);
        check(&options.params)?;
        must_keep::check(options.params.must_keep, &dims, true)?;
        let per_epoch = (n - validation).div_ceil(if batch == 0 { n } else { batch }) as u32;
        let epochs = options.params.epochs.max(options.least_steps.div_ceil(per_epoch));
        let params = Params { epochs, batch, validation, input_scale, ..options.params };
        let bytes = problem.data.is_bytes();
        let (limits, checkpoints) = (options.limits, options.checkpoints);
        let (params, plan) = fit((dims, outputs), bytes, params, options.memory, checkpoints)?;
        Ok(Self { task: problem.task, dims, outputs, params, plan, limits, checkpoints })
    }

    fn train(
        &self,
        problem: Problem,
        kept: Option<&Kept>,
        stop: &Stop,
        observe: &mut (dyn FnMut(&Progress<'_>) -> bool + Send),
    ) -> Result<AnnealOutcome> {
        let start = Start::new(&problem);
        let Problem { mut data, mut labels, .. } = problem;
        shuffle(&mut data, &mut labels, self.params.seed);
        let columns = data.scale_columns();
        // Checked to be classes. The floats are given back.
        let labels: Vec<u16> = labels.into_iter().map(|label| label as u16).collect();
        let support = self.params.start(self.dims, self.outputs);
        let mut operator =
            Blocked::new(data, self.dims.hidden, support, self.plan.layout())?.with_outputs(self.outputs);
        let mut budget = self.params.budget(self.dims, self.outputs, operator.panel(), 0);
        budget.scratch = operator.net_scratch(budget.batch);
        let mut memory = vec![0; budget.words()];
        let checkpoints = plan::checkpoints(self.checkpoints, keep::anneal_bytes(&budget));
        let scales = size_of_val(&columns[..]);
        let workspace = [budget.workspace_bytes(), operator.workspace_bytes(), checkpoints, scales];
        let plan = Plan::sum(self.plan.layout(), budget.state_bytes(), &workspace);
        let (s, outputs) = (self.dims.nnz, self.outputs);
        let mut watch = Watch::new(self.limits, stop).resumed(kept.is_some());
        operator.heed(Some(watch.stop()));
        let observe = |progress: &Progress<'_>| {
            let passes = self.passes(progress.rows_read);
            watch.show(passes, || observe(progress))
        };
        let (params, memory, operator) = (&self.params, &mut memory[..], &mut operator);
        let trained = match kept.map(Kept::anneal).transpose()? {
            None => core_anneal::run(operator, &labels, outputs, s, params, memory, observe)?,
            Some(from) => core_anneal::resume(operator, &labels, outputs, s, params, &from, memory, observe)?,
        };
        let (info, net) = (trained.info, trained.net);
        let (limit, stopped) = watch.ended(info.stopped);
        if info.nnz == 0 && !stopped {
            return Err(Error::new("training found no weight that tells the classes apart")
                .expected(format_args!("{s} nonzeros"))
                .got("0")
                .help("check that some column is not all zero, or train for more epochs"));
        }
        let (seconds, data_bytes) = (start.seconds(), start.data_bytes);
        let report = AnnealReport {
            resumed_steps: kept.map_or(0, Kept::steps),
            limit,
            stopped,
            seconds,
            threads: rayon::current_num_threads(),
            data_bytes,
            plan,
            ..self.report(&info, budget.batch)
        };
        let mut found = Found::new(net);
        for (index, value) in found.w.0.iter().zip(&mut found.w.1) {
            *value *= columns.get(*index as usize % self.dims.inputs).unwrap_or(&1.0);
        }
        let stored = if self.task == Task::Binary { Task::LOG_ODDS } else { self.task.stored() };
        let model = encode_net(found.net(self.dims.hidden)?, stored)?;
        let kept = must_keep::kept(self.params.must_keep, self.dims.inputs, (&found.w.0, &found.w.1));
        let report = AnnealReport { kept, ..report };
        let Found { w: (index, value), wt: (out_index, out_value), .. } = found;
        Ok(AnnealOutcome { index, value, out_index, out_value, model, report })
    }

    fn passes(&self, rows_read: u64) -> f64 {
        rows_read as f64 / self.dims.samples as f64
    }

    fn report(&self, info: &Info, batch: usize) -> AnnealReport {
        AnnealReport {
            task: self.task,
            recipe: "anneal",
            samples: self.dims.samples,
            inputs: self.dims.inputs,
            hidden: self.dims.hidden,
            classes: classes(self.outputs),
            outputs: self.outputs,
            requested_nnz: self.dims.nnz,
            nnz: info.nnz,
            kept: Vec::new(),
            live: info.live,
            loss: f64::from(info.training.loss),
            psnr_db: None,
            accuracy: part_right(info.training),
            validation_samples: self.params.validation,
            validation_loss: info.validation.map(|Held { loss, .. }| f64::from(loss)),
            validation_accuracy: info.validation.map(part_right),
            epochs: info.epochs,
            steps: info.steps,
            passes: self.passes(info.rows_read),
            batch,
            start_factor: info.start as f64 / self.dims.nnz as f64,
            start_nnz: info.start,
            input_scale: self.params.input_scale,
            resumed_steps: 0,
            limit: None,
            stopped: false,
            early: info.early,
            seconds: 0.0,
            threads: 0,
            seed: self.params.seed,
            data_bytes: 0,
            plan: self.plan,
            peak_rss_bytes: peak_rss_bytes(),
        }
    }
}

fn part_right(held: Held) -> f64 {
    held.right as f64 / held.rows.max(1) as f64
}

/// What the core would refuse, in the words of the command line.
fn check(params: &Params<'_>) -> Result<()> {
    at_least_one("--epochs", params.epochs as usize, "leave --epochs out for 100")?;
    if !(params.start_factor >= 1.0 && params.start_factor.is_finite()) {
        return Err(Error::new("the first support is smaller than the last")
            .expected("--start-factor 1 or more")
            .got(params.start_factor)
            .help("10 gives the best accuracy, 1 takes the least memory"));
    }
    if !(params.rate > 0.0 && params.rate.is_finite()) {
        return Err(Error::new("the learning rate is out of bounds")
            .expected("--rate above 0, such as 0.02")
            .got(params.rate)
            .help("leave --rate out for 0.02"));
    }
    if !(0.0..=1.0).contains(&params.drop) {
        return Err(Error::new("the part that is dropped is out of bounds")
            .expected("--drop 0 to 1")
            .got(params.drop)
            .help("leave --drop out for 0.3, or pass 0 to let nothing grow again"));
    }
    Ok(())
}

/// The power of two that brings the largest magnitude below 1. Columns of floats are scaled one by one before that.
fn input_scale(data: &Matrix) -> f32 {
    match &data.values {
        Values::F32(_) => 1.0,
        Values::U8(values) => 0.5 * unit_scale(&[f32::from(values.iter().copied().max().unwrap_or(0))]),
    }
}

/// The first support and the layout that fit the memory: the largest support first, then the fastest layout for it.
fn fit<'k>(
    (dims, outputs): (Dims, usize),
    bytes: bool,
    params: Params<'k>,
    memory: Memory,
    checkpoints: bool,
) -> Result<(Params<'k>, Plan)> {
    let layout = Layout::new(dims.hidden, dims.inputs);
    let batch = params.budget(dims, outputs, 1, 0).batch;
    // Two pieces or more a batch, in whole vectors.
    let tile = TILE.min(batch.div_ceil(2).next_multiple_of(64));
    let usual = Layout { tile, hold: false, ..layout };
    let mut factor = if memory == Memory::Least { 1.0 } else { params.start_factor };
    loop {
        let params = Params { start_factor: factor, ..params };
        let with = |layout| plan_of((dims, outputs), bytes, &params, layout, checkpoints);
        match choose(memory, (usual, dims.hidden), plan::LESS, with) {
            Err(_) if factor > 1.0 && matches!(memory, Memory::Ram(_)) => factor = (factor * SHRINK).max(1.0),
            chosen => return chosen.map(|plan| (params, plan)),
        }
    }
}

fn plan_of(
    (dims, outputs): (Dims, usize),
    bytes: bool,
    params: &Params<'_>,
    layout: Layout,
    checkpoints: bool,
) -> Plan {
    let mut budget = params.budget(dims, outputs, layout.panel, 0);
    budget.scratch = tamis::factored::provided::scratch(budget.batch, dims.inputs);
    let support = Dims::new(dims.samples, dims.inputs, dims.hidden, budget.start);
    let operator = layout.bytes(support, bytes) + layout.outputs_bytes(support, outputs);
    let checkpoints = plan::checkpoints(checkpoints, keep::anneal_bytes(&budget));
    // Of the columns of floats.
    let scales = if bytes { 0 } else { dims.inputs * size_of::<f32>() };
    Plan::sum(layout, budget.state_bytes(), &[budget.workspace_bytes(), operator, checkpoints, scales])
}

/// The model of a network of several outputs.
pub(super) fn encode_net(net: Net<'_>, task: wire::Task) -> Result<Vec<u8>> {
    let task = Some(task);
    let mut model = vec![0; wire::net_len(net, task)?];
    wire::encode_net(net, task, &mut model)?;
    Ok(model)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn options(memory: Memory) -> AnnealOptions<'static> {
        let usual = AnnealOptions::new(20, Size::Nonzeros(90));
        AnnealOptions { params: Params { epochs: 3, ..usual.params }, least_steps: 0, memory, ..usual }
    }

    #[test]
    fn the_plan_is_what_the_run_takes_and_keeps_every_budget() {
        // 270 rows a batch lead to tiles of 192 rows, of which no half is the smallest tile.
        // One output for two classes, two for two.
        for (outputs, bytes, batch) in
            [(1, true, None), (2, false, None), (7, true, None), (30, false, None), (7, false, Some(270))]
        {
            let options = |memory| AnnealOptions { batch, checkpoints: bytes, ..options(memory) };
            let plan = |memory| {
                Settled::new(&problem(outputs, bytes), &options(memory)).map(|run| (run.plan, run.params))
            };
            let free = plan(Memory::Auto).unwrap().0.total_bytes();
            let least = plan(Memory::Ram(1)).unwrap_err().to_string();
            let least: u64 =
                least.split("at least ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
            assert!(plan(Memory::Ram(least - 1)).is_err());
            assert_eq!(plan(Memory::Ram(least)).unwrap().1.start_factor, 1.0);
            for ram in [least, (least + free) / 2, free] {
                let (plan, _) = plan(Memory::Ram(ram)).unwrap();
                let run = anneal(problem(outputs, bytes), &options(Memory::Ram(ram)), &Stop::new(), |_| true)
                    .unwrap();
                assert!(plan.total_bytes() <= ram);
                assert_eq!(run.report.plan, plan);
            }
        }
    }

    #[test]
    fn bytes_are_scaled_by_a_power_of_two_that_brings_them_below_one() {
        let scale = |values: Vec<u8>| input_scale(&Matrix::new(1, values.len(), Values::U8(values)).unwrap());
        assert_eq!((scale(vec![255, 0]), scale(vec![3]), scale(vec![0])), (1.0 / 256.0, 0.25, 0.5));
    }

    #[test]
    fn columns_of_any_size_are_worth_the_same() {
        let (n, d) = (600, 6);
        let noise = |k: usize, j: usize| ((k * 7919 + j * 104_729 + k * k % 251) % 997) as f32 / 997.0 - 0.5;
        let labels: Vec<f32> = (0..n).map(|k| f32::from(u8::from(noise(k, 0) + noise(k, 5) > 0.0))).collect();
        let run = |sizes: [f32; 6]| {
            let values = (0..n * d).map(|e| noise(e / d, e % d) * sizes[e % d]).collect();
            let data = Matrix::new(n, d, Values::F32(values)).unwrap();
            let problem = Problem { data, labels: labels.clone(), task: Task::Binary };
            let usual = AnnealOptions::new(4, Size::Nonzeros(12));
            anneal(problem, &usual, &Stop::new(), |_| true).unwrap()
        };
        let plain = run([1.0; 6]);
        assert!(plain.report.accuracy > 0.9 && plain.report.steps >= 2000, "{:?}", plain.report);
        let sizes = [2.0_f32.powi(-20), 1.0, 2.0_f32.powi(9), 1.0, 1.0, 2.0_f32.powi(20)];
        let scaled = run(sizes);
        assert_eq!((&scaled.index, &scaled.out_value), (&plain.index, &plain.out_value));
        for ((index, scaled), plain) in scaled.index.iter().zip(&scaled.value).zip(&plain.value) {
            assert_eq!(scaled * sizes[*index as usize % d], *plain);
        }
    }
}
