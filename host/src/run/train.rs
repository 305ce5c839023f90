//! One training run: a problem in memory to weights, model bytes and a report.

use std::time::Instant;

use serde::Serialize;
use tamis::budget::{Training, Workspace};
use tamis::dims::Dims;
use tamis::factored::Net;
use tamis::gates::{Gates, Signs};
use tamis::iht::{Params, Step};
use tamis::model::MAX_INPUTS;
use tamis::rng::{Permutation, stream};
use tamis::sensing::Work;
use tamis::train::{Checkpoint, Info, Progress, Schedule, Trials};
use tamis::weights::Weights;
use tamis::{spectrum, train as core_train, wire};

use super::before::{Before, operator};
use super::found::{Found, score};
use super::keep::{self, Kept};
use super::limits::{Limits, Watch};
use super::outputs::Steps;
use super::recover::{Search, signs_name};
use super::rest::Rest;
use super::{KeptWeight, Memory, Plan, Problem, Score, Task, must_keep, peak_rss_bytes, plan};
use crate::data::{Matrix, select};
use crate::operator::{Blocked, Stop, Through};
use crate::{Error, Result};

/// Random supports on which the `theory` step looks at the data, and power iterations on each.
const EXTREMES: (u32, u32) = (8, 20);

/// How many weights stay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Size {
    /// So many.
    Nonzeros(usize),
    /// This part of all m·d, above 0 and at most 1, rounded to the nearest count.
    Density(f64),
}

impl Size {
    /// The nonzeros of `all` weights, as a density at least `least`.
    pub(super) fn count(self, all: usize, least: usize) -> Result<usize> {
        match self {
            Self::Nonzeros(nnz) => Ok(nnz),
            Self::Density(part) if part > 0.0 && part <= 1.0 => {
                Ok(((part * all as f64).round() as usize).max(least))
            }
            Self::Density(part) => Err(Error::new("the density is out of bounds")
                .expected("--density above 0 and at most 1")
                .got(part)
                .help("pass the part of all weights that may stay, such as 0.05")),
        }
    }
}

/// How to train.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options<'k> {
    /// Hidden neurons, m.
    pub hidden: usize,
    /// Nonzero weights, s.
    pub size: Size,
    /// Epochs, batches, steps, gates, weights that must be kept ([`super::must_keep()`]) and seed. [`Step::Theory`] with a beta of
    /// 0 asks for an estimate from the data.
    pub schedule: Schedule<'k>,
    /// How much memory to take.
    pub memory: Memory,
    /// Threads; 0 for one per core. They never change the result.
    pub threads: usize,
    /// When to end the run; during the trials the best start so far is the result.
    pub limits: Limits,
    /// Whether checkpoints are kept ([`super::Keep`]), so that the plan counts the memory of two: the one to go on from, and the
    /// last one.
    pub checkpoints: bool,
}

impl<'k> Options<'k> {
    /// The published schedule with trials ([`Schedule::PAPER`], [`Trials::DEFAULT`]) on all cores.
    #[must_use]
    pub const fn new(hidden: usize, size: Size) -> Self {
        let schedule = Schedule { trials: Trials::DEFAULT, ..Schedule::PAPER };
        Self {
            hidden,
            size,
            schedule,
            memory: Memory::Auto,
            threads: 0,
            limits: Limits::NONE,
            checkpoints: false,
        }
    }

    /// The same with weights that stay whatever their size, as [`super::must_keep()`] gives them.
    #[must_use]
    pub const fn keeping(self, must_keep: &'k [u32]) -> Self {
        let params = Params { must_keep, ..self.schedule.params };
        Self { schedule: Schedule { params, ..self.schedule }, ..self }
    }
}

/// What a run did; the fields are the keys of the command line's JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Which recipe.
    pub recipe: &'static str,
    /// What was learnt.
    pub task: Task,
    /// Rows, n.
    pub samples: usize,
    /// Columns, d.
    pub inputs: usize,
    /// Outputs, c.
    pub outputs: usize,
    /// Hidden neurons asked for, m; of the first layer where there are two.
    pub hidden: usize,
    /// Neurons asked for in the second hidden layer, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_hidden: Option<usize>,
    /// Nonzeros asked for, s.
    pub requested_nnz: usize,
    /// Nonzeros of the model. Weights that must be kept count, and are in the model, where they are 0 too.
    pub nnz: usize,
    /// The weights that had to be kept, and what they came out as.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptWeight>,
    /// Neurons that have weights; of the first layer where there are two.
    pub live: usize,
    /// Neurons of the second hidden layer that have weights, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_live: Option<usize>,
    /// Mean squared error of the model on the training data.
    pub loss: f64,
    /// As [`Score::psnr_db`], on the training data.
    pub psnr_db: Option<f64>,
    /// As [`Score::zero_psnr_db`], on the training data.
    pub zero_psnr_db: Option<f64>,
    /// As [`Score::accuracy`], on the training data.
    pub accuracy: Option<f64>,
    /// Epochs done, the last one perhaps in part; of a search, its outer steps.
    pub epochs: u32,
    /// Steps done on all rows.
    pub steps: u32,
    /// Random starts tried on a part of the rows.
    pub trials: u32,
    /// Passes over all rows.
    pub passes: f64,
    /// Largest eigenvalue that the `theory` step was given.
    pub beta: Option<f32>,
    /// What the search did; none for the published recipe.
    #[serde(flatten)]
    pub search: Option<Search>,
    /// What the published recipe did for several outputs; none elsewhere.
    #[serde(flatten)]
    pub published: Option<Steps>,
    /// Steps of the earlier parts of the run that this one went on from, those of trials included and outer ones of a search;
    /// 0 where it began anew.
    pub resumed_steps: u32,
    /// Which limit ended the run, `time` or `passes`.
    pub limit: Option<&'static str>,
    /// Whether the run was ended early on request.
    pub stopped: bool,
    /// Seconds of training and of scoring the result, without reading files.
    pub seconds: f64,
    /// Threads used.
    pub threads: usize,
    /// Seed of generators and orders.
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
pub struct Outcome {
    /// Flat indices of the nonzeros, rising: input j of neuron i is `i d + j`.
    pub index: Vec<u32>,
    /// Their values, fused with the output signs: `w_i = v_i u_i`.
    pub value: Vec<f32>,
    /// For several outputs, flat indices of the weights to them, rising: output k of neuron i is `i c + k`.
    pub out_index: Vec<u32>,
    /// Their values.
    pub out_value: Vec<f32>,
    /// The bytes of a `.tamis` file.
    pub model: Vec<u8>,
    /// What was done.
    pub report: Report,
}

/// Trains a network of one hidden layer on `problem`.
///
/// `observe` is called after every step and ends the run by returning `false`; `stop` ends it within a step, in the time
/// of a tile or a panel, and what that step did is dropped. What was reached until then is the outcome; during the
/// trials that is the best start so far, which may first have to be run again. With minibatches or trials the rows are first put into a random order that the seed fixes. Everything is allocated
/// before the first step.
///
/// # Errors
/// A size out of bounds, a budget that is too small, labels outside the task, or steps that diverge; or the run was ended
/// before its first step ([`Error::is_interrupted`]).
pub fn train(
    problem: Problem,
    options: &Options<'_>,
    stop: &Stop,
    mut observe: impl FnMut(&Progress<'_>) -> bool + Send,
) -> Result<Outcome> {
    start(problem, options, Origin::Zero, stop, &mut observe).map(|(outcome, _)| outcome)
}

/// As [`train`], from the network of another run of this recipe, or of a search with positive signs, (a *warm start*) for the same columns, neurons and signs, on these rows
/// or others, with at most as many weights: without trials, and without epochs with random gates.
///
/// # Errors
/// As [`train`]; or the network is of other sizes.
pub fn train_from(
    problem: Problem,
    options: &Options<'_>,
    from: &Outcome,
    stop: &Stop,
    mut observe: impl FnMut(&Progress<'_>) -> bool + Send,
) -> Result<Outcome> {
    start(problem, options, Origin::Network(from), stop, &mut observe).map(|(outcome, _)| outcome)
}

/// Goes on from a checkpoint that [`super::Keep::load`] gave for this problem and these options: the model and the counters are
/// the same, bit for bit, as if the run had never been interrupted, on any number of threads of a machine with the same vector
/// instructions. `observe` is called after every further step.
///
/// # Errors
/// As [`train`]; or the checkpoint does not fit.
///
/// ```
/// use tamis::{dims::Dims, gates::Signs};
/// use tamis_host::{data::planted, operator::Stop, run::{self, Keep, Options, Problem, Size, Task}};
///
/// let planted = planted::network(Dims::new(600, 16, 2, 6), Signs::Positive, 1)?;
/// let problem = Problem { data: planted.data, labels: planted.labels, task: Task::Regression };
/// let options = Options { checkpoints: true, ..Options::new(2, Size::Nonzeros(6)) };
/// let folder = tempfile::tempdir().unwrap();
/// let mut keep = Keep::new(folder.path().join("run"), &problem, &options)?;
/// // Ended after five steps …
/// run::train(problem.clone(), &options, &Stop::new(), |progress| {
///     keep.see(progress).is_ok() && progress.step < 5
/// })?;
/// keep.flush()?;
/// // … and gone on from where it was.
/// let kept = keep.load()?.expect("a checkpoint");
/// let rest = run::resume_train(problem.clone(), &options, &kept, &Stop::new(), |_| true)?;
/// assert_eq!(rest.model, run::train(problem, &options, &Stop::new(), |_| true)?.model);
/// assert_eq!(rest.report.resumed_steps, 5);
/// # Ok::<(), tamis_host::Error>(())
/// ```
pub fn resume_train(
    problem: Problem,
    options: &Options<'_>,
    kept: &Kept,
    stop: &Stop,
    mut observe: impl FnMut(&Progress<'_>) -> bool + Send,
) -> Result<Outcome> {
    start(problem, options, Origin::Kept(kept), stop, &mut observe).map(|(outcome, _)| outcome)
}

/// The outcome, and what is left of the problem.
pub(super) fn start(
    problem: Problem,
    options: &Options<'_>,
    origin: Origin<'_>,
    stop: &Stop,
    observe: &mut (dyn FnMut(&Progress<'_>) -> bool + Send),
) -> Result<(Outcome, Rest)> {
    start_behind((problem, Before::default()), options, origin, stop, observe)
}

/// The same behind finished layers.
pub(super) fn start_behind(
    (problem, before): (Problem, Before),
    options: &Options<'_>,
    origin: Origin<'_>,
    stop: &Stop,
    observe: &mut (dyn FnMut(&Progress<'_>) -> bool + Send),
) -> Result<(Outcome, Rest)> {
    let (dims, plan) = settle(&problem, &before, options)?;
    if let Origin::Network(from) = origin {
        check_start(&dims, options.schedule.signs, from)?;
    }
    plan.check_room()?;
    let pool = plan::pool(options.threads)?;
    pool.install(|| {
        let threads = pool.current_num_threads();
        Run { dims, plan, options, origin, stop, threads }.train(problem, before.through, observe)
    })
}

/// Checks that a run of these sizes can start from another one's network.
fn check_start(dims: &Dims, signs: Signs, from: &Outcome) -> Result<()> {
    let of = |inputs, hidden| format!("{inputs} columns, one output, {hidden} neurons");
    let (own, other) = (of(dims.inputs, dims.hidden), &from.report);
    let found = match other.outputs {
        1 => of(other.inputs, other.hidden),
        outputs => format!("{outputs} outputs"),
    };
    // A search may have numbered its neurons as these are.
    let is_like = match other.search {
        Some(search) => signs == Signs::Positive && search.signs == signs_name(signs),
        None => other.recipe == "paper",
    };
    if own == found && is_like && other.second_hidden.is_none() && other.nnz <= dims.nnz {
        return Ok(());
    }
    Err(Error::new("the network to start from does not fit the run")
        .expected(format_args!("recipe paper; {own}; at most {} weights", dims.nnz))
        .got(format_args!("recipe {}; {found}; {} weights", other.recipe, other.nnz))
        .help("start from a network of the same recipe and sizes, with fewer weights"))
}

/// Where a run begins.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin<'a> {
    /// Without weights.
    Zero,
    /// Where another one was.
    Kept(&'a Kept),
    /// With the network of another one.
    Network(&'a Outcome),
}

impl Origin<'_> {
    /// Steps of the earlier parts of the run.
    pub(super) fn steps(&self) -> u32 {
        if let Self::Kept(kept) = self { kept.steps() } else { 0 }
    }
}

/// Sizes and memory of a run behind finished layers.
pub(super) fn settle(problem: &Problem, before: &Before, options: &Options<'_>) -> Result<(Dims, Plan)> {
    problem.check()?;
    check_recipe("paper", problem.task)?;
    if problem.has_several_outputs() {
        return Err(Error::new("this is the published method for one output")
            .expected("labels of one column, values or two classes")
            .got("several outputs")
            .help("call train_outputs"));
    }
    let dims = dims(before.shape(problem), options)?;
    Ok((dims, plan_behind(dims, before.are_bytes(problem), options, before)?))
}

/// The memory of a run of these sizes behind finished layers.
pub(super) fn plan_behind(dims: Dims, bytes: bool, options: &Options<'_>, before: &Before) -> Result<Plan> {
    Plan::kept(dims, bytes, &options.schedule, options.memory, (options.checkpoints, before))
}

/// What is noted before a run: the time, and how large the data are.
pub(super) struct Start {
    began: Instant,
    pub(super) data_bytes: u64,
}

impl Start {
    pub(super) fn new(problem: &Problem) -> Self {
        Self { began: Instant::now(), data_bytes: problem.bytes() as u64 }
    }

    pub(super) fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }
}

/// A run whose sizes are settled.
struct Run<'a> {
    dims: Dims,
    plan: Plan,
    options: &'a Options<'a>,
    origin: Origin<'a>,
    stop: &'a Stop,
    threads: usize,
}

impl Run<'_> {
    fn train(
        &self,
        problem: Problem,
        through: Option<Through>,
        observe: &mut (dyn FnMut(&Progress<'_>) -> bool + Send),
    ) -> Result<(Outcome, Rest)> {
        let start = Start::new(&problem);
        let Problem { mut data, mut labels, task } = problem;
        let mut schedule = plan::stripped(&self.options.schedule, self.plan.layout());
        let budget = plan::budget(self.dims, &schedule, self.plan.layout());
        // Batches and trials are runs of rows.
        let is_random = budget.batch < self.dims.samples || schedule.trials.count > 1;
        let order = is_random.then_some(schedule.seed);
        if is_random {
            shuffle(&mut data, &mut labels, schedule.seed);
        }
        let sizes = (self.dims.hidden, self.dims.nnz);
        let mut operator = operator(data, through, sizes, self.plan.layout())?;
        let mut memory = vec![0; budget.words()];
        let checkpoints = plan::checkpoints(self.options.checkpoints, keep::paper_bytes(&budget));
        let workspace = [budget.workspace_bytes(), operator.workspace_bytes(), checkpoints];
        let plan = Plan::sum(self.plan.layout(), budget.state_bytes(), &workspace);
        let mut watch =
            Watch::new(self.options.limits, self.stop).resumed(matches!(self.origin, Origin::Kept(_)));
        operator.heed(Some(watch.stop()));
        let observe = |progress: &Progress<'_>| watch.show(f64::from(progress.passes), || observe(progress));
        let beta = set_beta(&mut operator, &budget, &mut schedule, &mut memory)?;
        let s = self.dims.nnz;
        let warm = match self.origin {
            Origin::Network(from) => Some(Found {
                w: (from.index.clone(), from.value.clone()),
                wt: (Vec::new(), Vec::new()),
                widths: [self.dims.inputs, 0],
            }),
            _ => None,
        };
        let from = match (self.origin, &warm) {
            (Origin::Kept(kept), _) => Some(kept.paper()?),
            (_, Some(warm)) => Some(Checkpoint::starting(warm.net(self.dims.hidden)?)),
            _ => None,
        };
        let trained = match from {
            None => core_train::run(&mut operator, &labels, s, &schedule, &mut memory, observe)?,
            Some(from) => {
                core_train::resume(&mut operator, &labels, s, &schedule, &from, &mut memory, observe)?
            }
        };
        // What is left is little, and the result needs it.
        operator.heed(None);
        let (info, weights) = (trained.info, trained.weights);
        let (limit, stopped) = watch.ended(info.stopped);
        if info.nnz == 0 && stopped {
            return Err(Error::interrupted());
        }
        if !weights.is_live() && labels.iter().any(|&label| label != 0.0) {
            return Err(Error::new("training found no weight that explains the labels")
                .expected(format_args!("{} nonzeros", self.dims.nnz))
                .got("0")
                .help("check that some column is not all zero, scale inputs and labels to about 1, or use --step normalised"));
        }
        let model = encode(weights, schedule.signs, self.dims.hidden, task)?;
        let found = Found::new(Net::single(weights));
        let net = found.net(self.dims.hidden)?;
        let gates = Gates::of(net.w(), schedule.signs, schedule.empty, schedule.seed, 1);
        let rows = (0..self.dims.samples, budget.strip);
        let score = score(&mut operator, (task, false), &labels, (net, gates), rows, &mut memory)?;
        let kept = must_keep::kept(schedule.params.must_keep, self.dims.inputs, (&found.w.0, &found.w.1));
        let (seconds, data_bytes) = (start.seconds(), start.data_bytes);
        let report = self.report(task, &info, &score);
        let report = Report { kept, beta, limit, stopped, data_bytes, seconds, plan, ..report };
        let Found { w: (index, value), wt: (out_index, out_value), .. } = found;
        let outcome = Outcome { index, value, out_index, out_value, model, report };
        Ok((outcome, Rest { operator, labels, task, order }))
    }

    fn report(&self, task: Task, info: &Info, score: &Score) -> Report {
        Report {
            recipe: "paper",
            task,
            samples: self.dims.samples,
            inputs: self.dims.inputs,
            outputs: 1,
            hidden: self.dims.hidden,
            second_hidden: None,
            requested_nnz: self.dims.nnz,
            nnz: info.nnz,
            kept: Vec::new(),
            live: info.live,
            second_live: None,
            loss: score.loss,
            psnr_db: score.psnr_db,
            zero_psnr_db: score.zero_psnr_db,
            accuracy: score.accuracy,
            epochs: info.epochs,
            steps: info.steps,
            trials: info.trials,
            passes: f64::from(info.passes),
            beta: None,
            search: None,
            published: None,
            resumed_steps: self.origin.steps(),
            limit: None,
            stopped: false,
            seconds: 0.0,
            threads: self.threads,
            seed: self.options.schedule.seed,
            data_bytes: 0,
            plan: self.plan,
            peak_rss_bytes: peak_rss_bytes(),
        }
    }
}

/// Checks that a recipe is one for the task: `anneal` for classes, `lm` for numbers and two classes, `paper` and `imp` for
/// all.
///
/// # Errors
/// It is not.
pub(crate) fn check_recipe(recipe: &str, task: Task) -> Result<()> {
    let (tasks, other, help) = match (recipe, task) {
        ("imp", _) | ("anneal", Task::Binary | Task::Multiclass) => return Ok(()),
        ("anneal", _) => (
            "--task binary or multiclass",
            "lm or paper",
            "labels 0 and 1 are classes too: pass --task binary, or leave --recipe out",
        ),
        ("paper" | "paper-safe", Task::Multiclass) => return Ok(()),
        ("paper-safe", Task::Binary) => (
            "--task regression with several outputs, or --task multiclass",
            "paper",
            "labels 0 and 1 are classes too: pass --task multiclass",
        ),
        (_, Task::Multiclass) => ("--task regression or binary", "anneal", "leave --recipe out"),
        _ => return Ok(()),
    };
    Err(Error::new(format!("recipe {recipe} does not train for this task"))
        .expected(format_args!("{tasks}, or --recipe {other}"))
        .got(format_args!("--task {} with recipe {recipe}", task.name()))
        .help(help))
}

/// The sizes of a problem of n rows and d inputs, each within its bounds; `classes` is the number of classes or other outputs that weights
/// lead to, 0 where the output weights are signs.
pub(super) fn sizes((n, d): (usize, usize), hidden: usize, size: Size, classes: usize) -> Result<Dims> {
    let m = hidden;
    if d > MAX_INPUTS {
        return Err(Error::new("too many inputs for a model")
            .expected(format_args!("at most {MAX_INPUTS} columns"))
            .got(d)
            .help("leave out columns, or scale the images down"));
    }
    let all = m.saturating_mul(d.saturating_add(classes));
    let nnz = size.count(all, least(classes))?;
    let dims = Dims::new(n, d, m, nnz);
    check_sizes(&dims, classes)?;
    Ok(dims)
}

/// The fewest nonzeros of a network: with output weights, one on each side.
const fn least(classes: usize) -> usize {
    if classes > 0 { 2 } else { 1 }
}

/// The sizes of the problem and the counts of the schedule, each within its bounds.
fn dims(shape: (usize, usize), options: &Options<'_>) -> Result<Dims> {
    let dims = sizes(shape, options.hidden, options.size, 0)?;
    let schedule = &options.schedule;
    at_least_one("--epochs", schedule.epochs as usize, "15 epochs are the published setting")?;
    check_trials(schedule.trials)?;
    must_keep::check(schedule.params.must_keep, &dims, false)?;
    Ok(dims)
}

/// How many of n rows are held out, given the part.
pub(super) fn held_out(n: usize, part: f64) -> Result<usize> {
    if !(0.0..1.0).contains(&part) {
        return Err(Error::new("the part of the rows held out is out of bounds")
            .expected("--validation 0 or more and less than 1")
            .got(part)
            .help("0.1 holds a tenth out, 0 none"));
    }
    Ok(((n as f64 * part).round() as usize).min(n - 1))
}

/// Refuses no start, and starts on no rows.
pub(super) fn check_trials(trials: Trials) -> Result<()> {
    at_least_one("--trials", trials.count as usize, "1 goes without trials, as published")?;
    match trials.count {
        1 => Ok(()),
        _ => at_least_one("--trial-rows", trials.rows, "pass --trials 1 to go without trials"),
    }
}

/// Refuses a setting of 0.
pub(super) fn at_least_one(flag: &str, value: usize, help: &str) -> Result<()> {
    match value {
        0 => Err(Error::new("a setting is out of bounds")
            .expected(format_args!("{flag} 1 or more"))
            .got(0)
            .help(help)),
        _ => Ok(()),
    }
}

/// Checks every size under the name of its flag, as [`Dims::check`] does without.
///
/// # Errors
/// A size that is 0 or too large.
pub(crate) fn check_dims(dims: &Dims) -> Result<()> {
    check_sizes(dims, 0)?;
    Ok(dims.check()?)
}

/// [`check_dims`] for networks whose weights also lead to `classes` outputs.
fn check_sizes(dims: &Dims, classes: usize) -> Result<()> {
    let most = u32::MAX as usize;
    let (n, d, m) = (dims.samples, dims.inputs, dims.hidden);
    let width = d.saturating_add(classes);
    let (weights, all) = (most / width.max(1), m.saturating_mul(width));
    let (ends, shape) = match classes {
        0 => (format!("{d} inputs"), format!("{m} hidden × {d} inputs")),
        _ => (
            format!("{d} inputs and {classes} outputs"),
            format!("{m} hidden × ({d} inputs + {classes} outputs)"),
        ),
    };
    let within = |what: &str, flag: &str, value: usize, (min, max): (usize, usize), why: &str, help: &str| {
        if (min..=max).contains(&value) {
            return Ok(());
        }
        let error = Error::new(format!("the number of {what} is out of bounds")).got(value).help(help);
        Err(error.expected(format_args!("{flag} {min} to {max}{why}")))
    };
    within("samples", "--samples", n, (1, most), "", "choose a number of rows within these bounds")?;
    within("inputs", "--inputs", d, (1, most), "", "choose a number of columns within these bounds")?;
    let why = format!(" for {ends}: weights are counted in 32 bits");
    let help = "choose fewer neurons; 10 to 1000 are usual";
    within("hidden neurons", "--hidden", m, (1, weights), &why, help)?;
    let help = "choose a part of all weights, such as a tenth";
    within("nonzeros", "--nnz", dims.nnz, (least(classes), all), &format!(" ({shape})"), help)
}

/// The rows in a random order, in place; there are as many labels for every row.
pub(super) fn shuffle(data: &mut Matrix, labels: &mut [f32], seed: u64) {
    let order = Permutation::new(seed, stream::ROWS, data.rows);
    select::reorder(data, labels, |row| order.get(row));
}

/// Estimates beta where the schedule asks for it; `memory` serves as the workspace.
fn set_beta(
    operator: &mut Blocked,
    budget: &Training,
    schedule: &mut Schedule<'_>,
    memory: &mut [u32],
) -> Result<Option<f32>> {
    let Step::Theory { beta } = schedule.params.step else { return Ok(None) };
    if beta != 0.0 {
        return Ok(Some(beta));
    }
    let (s, d) = (budget.dims.nnz, budget.dims.inputs);
    let mut space = Workspace::new(memory);
    let support = (space.indices(s)?, space.floats(s)?);
    let mut work = Work {
        residual: &mut [],
        panel: space.floats((3 * s).max(d))?,
        scratch: space.floats(budget.scratch)?,
        strips: None,
    };
    let gates = Gates::seeded(schedule.seed);
    let (_, beta) = spectrum::extremes(operator, gates, schedule.seed, EXTREMES, support, &mut work)?;
    if !(beta.is_finite() && beta > 0.0) {
        return Err(Error::new("the theory step has nothing to measure")
            .expected("data with columns that are not all zero")
            .got(format_args!("a largest eigenvalue of {beta}"))
            .help("use --step normalised"));
    }
    schedule.params.step = Step::Theory { beta };
    Ok(Some(beta))
}

pub(super) fn encode(weights: Weights<'_>, signs: Signs, hidden: usize, task: Task) -> Result<Vec<u8>> {
    let task = Some(task.stored());
    let mut model = vec![0; wire::trained_len(weights, task)?];
    wire::encode(weights, signs, hidden, task, &mut model)?;
    Ok(model)
}
