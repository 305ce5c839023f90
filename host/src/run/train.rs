//! One training run: a problem in memory to weights, model bytes and a report.

use std::time::Instant;

use bytemuck::cast_slice_mut;
use serde::Serialize;
use tamis::budget::{Training, Workspace};
use tamis::dims::Dims;
use tamis::gates::Gates;
use tamis::iht::Step;
use tamis::model::MAX_INPUTS;
use tamis::rng::{Permutation, stream};
use tamis::sensing::{Sensing, Work};
use tamis::train::{Info, Progress, Schedule, Trials};
use tamis::weights::Weights;
use tamis::{spectrum, train as core_train, wire};

use super::memory::room_for;
use super::score::Tally;
use super::{Memory, Plan, Problem, Score, Task, peak_rss_bytes, plan};
use crate::data::{Matrix, Values, select};
use crate::operator::Blocked;
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

/// How to train.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Hidden neurons, m.
    pub hidden: usize,
    /// Nonzero weights, s.
    pub size: Size,
    /// Epochs, batches, steps, gates and seed. [`Step::Theory`] with a beta of 0 asks for an estimate from the data.
    pub schedule: Schedule,
    /// How much memory to take.
    pub memory: Memory,
    /// Threads; 0 for one per core. They never change the result.
    pub threads: usize,
}

impl Size {
    /// The count, at least `least` and at most `all`, the number of weights of a network of this `shape`.
    pub(super) fn count(self, all: usize, least: usize, shape: &str) -> Result<usize> {
        match self {
            Self::Nonzeros(nnz) if (least..=all).contains(&nnz) => Ok(nnz),
            Self::Nonzeros(nnz) => Err(Error::new("the number of nonzeros is out of bounds")
                .expected(format_args!("--nnz {least} to {all} ({shape})"))
                .got(nnz)),
            Self::Density(part) if part > 0.0 && part <= 1.0 => {
                Ok(((part * all as f64).round() as usize).max(least))
            }
            Self::Density(part) => Err(Error::new("the density is out of bounds")
                .expected("--density above 0 and at most 1")
                .got(part)),
        }
    }
}

impl Options {
    /// The published schedule with trials ([`Schedule::PAPER`], [`Trials::DEFAULT`]) on all cores.
    #[must_use]
    pub const fn new(hidden: usize, size: Size) -> Self {
        let schedule = Schedule { trials: Trials::DEFAULT, ..Schedule::PAPER };
        Self { hidden, size, schedule, memory: Memory::Auto, threads: 0 }
    }
}

/// What a run did; the fields are the keys of the command line's JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// What was learnt.
    pub task: Task,
    /// Rows, n.
    pub samples: usize,
    /// Columns, d.
    pub inputs: usize,
    /// Hidden neurons asked for, m.
    pub hidden: usize,
    /// Nonzeros asked for, s.
    pub requested_nnz: usize,
    /// Nonzeros of the model.
    pub nnz: usize,
    /// Neurons that have weights.
    pub live: usize,
    /// Mean squared error of the model on the training data.
    pub loss: f64,
    /// As [`Score::psnr_db`], on the training data.
    pub psnr_db: Option<f64>,
    /// As [`Score::accuracy`], on the training data.
    pub accuracy: Option<f64>,
    /// Epochs done, the last one perhaps in part.
    pub epochs: u32,
    /// Steps done on all rows.
    pub steps: u32,
    /// Random starts run on a part of the rows, the best one run again included.
    pub trials: u32,
    /// Passes over all rows.
    pub passes: f64,
    /// Largest eigenvalue that the `theory` step was given.
    pub beta: Option<f32>,
    /// Whether the observer ended the run early.
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
    /// The bytes of a `.tamis` file.
    pub model: Vec<u8>,
    /// What was done.
    pub report: Report,
}

/// Trains a network of one hidden layer on `problem`.
///
/// `observe` is called after every step and ends the run by returning `false`; what was reached until then is the
/// outcome. With minibatches or trials the rows are first put into a random order that the seed fixes. Everything is allocated
/// before the first step.
///
/// # Errors
/// A size out of bounds, a budget that is too small, labels outside the task, or steps that diverge.
pub fn train(
    problem: Problem,
    options: &Options,
    observe: impl FnMut(&Progress) -> bool + Send,
) -> Result<Outcome> {
    problem.check()?;
    if problem.task == Task::Multiclass {
        return Err(Error::new("this recipe has one output")
            .expected("--task regression or binary")
            .got("multiclass")
            .help("use --recipe anneal for several classes"));
    }
    let dims = dims(&problem, options)?;
    let bytes = matches!(problem.data.values, Values::U8(_));
    let plan = Plan::new(dims, bytes, &options.schedule, options.memory)?;
    room_for("training", plan.total_bytes())?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads).build().map_err(|error| {
        Error::new("cannot start the threads").source(error).help("ask for fewer with --threads")
    })?;
    pool.install(|| Run { dims, plan, options, threads: pool.current_num_threads() }.train(problem, observe))
}

/// A run whose sizes are settled.
struct Run<'a> {
    dims: Dims,
    plan: Plan,
    options: &'a Options,
    threads: usize,
}

impl Run<'_> {
    fn train(&self, problem: Problem, observe: impl FnMut(&Progress) -> bool) -> Result<Outcome> {
        let start = Instant::now();
        let data_bytes = problem.bytes() as u64;
        let Problem { mut data, mut labels, task } = problem;
        let mut schedule = self.options.schedule;
        let budget = plan::budget(self.dims, &schedule, self.plan.layout());
        // Batches and trials are runs of rows.
        if budget.batch < self.dims.samples || schedule.trials.count > 1 {
            data = shuffle(data, &mut labels, schedule.seed)?;
        }
        let mut operator = Blocked::new(data, self.dims.hidden, self.dims.nnz, self.plan.layout())?;
        let mut memory = vec![0; budget.words()];
        let plan = Plan {
            state_bytes: budget.state_bytes() as u64,
            workspace_bytes: (budget.workspace_bytes() + operator.workspace_bytes()) as u64,
            ..self.plan
        };
        let beta = set_beta(&mut operator, &budget, &mut schedule, &mut memory)?;
        let trained =
            core_train::run(&mut operator, &labels, self.dims.nnz, &schedule, &mut memory, observe)?;
        let (info, weights) = (trained.info, trained.weights);
        if info.nnz == 0 && !info.stopped && labels.iter().any(|&label| label != 0.0) {
            return Err(Error::new("training found no weight that explains the labels")
                .expected(format_args!("{} nonzeros", self.dims.nnz))
                .got("0")
                .help("check that some column is not all zero, scale inputs and labels to about 1, or use --step normalised"));
        }
        let model = encode(weights, &schedule)?;
        let (index, value) = (weights.index().to_vec(), weights.value().to_vec());
        let weights = Weights::new(self.dims.inputs, self.dims.hidden, &index, &value)?;
        let score = score(&mut operator, task, &labels, weights, &schedule, &mut memory[..budget.batch])?;
        let seconds = start.elapsed().as_secs_f64();
        let report = Report { beta, data_bytes, seconds, plan, ..self.report(task, &info, &score) };
        Ok(Outcome { index, value, model, report })
    }

    fn report(&self, task: Task, info: &Info, score: &Score) -> Report {
        Report {
            task,
            samples: self.dims.samples,
            inputs: self.dims.inputs,
            hidden: self.dims.hidden,
            requested_nnz: self.dims.nnz,
            nnz: info.nnz,
            live: info.live,
            loss: score.loss,
            psnr_db: score.psnr_db,
            accuracy: score.accuracy,
            epochs: info.epochs,
            steps: info.steps,
            trials: info.trials,
            passes: f64::from(info.passes),
            beta: None,
            stopped: info.stopped,
            seconds: 0.0,
            threads: self.threads,
            seed: self.options.schedule.seed,
            data_bytes: 0,
            plan: self.plan,
            peak_rss_bytes: peak_rss_bytes(),
        }
    }
}

/// The sizes of the problem, each within its bounds.
fn dims(problem: &Problem, options: &Options) -> Result<Dims> {
    let (n, d, m) = (problem.data.rows, problem.data.cols, options.hidden);
    if m == 0 {
        return Err(Error::new("a network needs hidden neurons").expected("--hidden 1 or more").got(0));
    }
    if d > MAX_INPUTS {
        return Err(Error::new("too many inputs for a model")
            .expected(format_args!("at most {MAX_INPUTS} columns"))
            .got(d));
    }
    let all = m.saturating_mul(d);
    let nnz = options.size.count(all, 1, &format!("{m} hidden × {d} inputs"))?;
    if options.schedule.epochs == 0 {
        return Err(Error::new("training needs an epoch").expected("--epochs 1 or more").got(0));
    }
    let dims = Dims::new(n, d, m, nnz);
    dims.check()?;
    Ok(dims)
}

/// The rows in a random order, in place.
pub(super) fn shuffle(data: Matrix, labels: &mut Vec<f32>, seed: u64) -> Result<Matrix> {
    let order = Permutation::new(seed, stream::ROWS, labels.len());
    let rows: Vec<usize> = (0..labels.len()).map(|row| order.get(row)).collect();
    *labels = rows.iter().map(|&row| labels[row]).collect();
    select::gather(data, rows)
}

/// Estimates beta where the schedule asks for it; `memory` serves as the workspace.
fn set_beta(
    operator: &mut Blocked,
    budget: &Training,
    schedule: &mut Schedule,
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

fn encode(weights: Weights<'_>, schedule: &Schedule) -> Result<Vec<u8>> {
    let mut model = vec![0; wire::trained_len(weights)?];
    wire::encode(weights, schedule.signs, &mut model)?;
    Ok(model)
}

/// Scores the network itself (gates from its own weights) on all rows, batch by batch in the memory of training.
fn score(
    operator: &mut Blocked,
    task: Task,
    labels: &[f32],
    weights: Weights<'_>,
    schedule: &Schedule,
    memory: &mut [u32],
) -> Result<Score> {
    let gates = Gates::of(weights, schedule.signs, schedule.empty, schedule.seed, 1);
    let mut tally = Tally::default();
    let mut start = 0;
    for labels in labels.chunks(memory.len()) {
        let out: &mut [f32] = cast_slice_mut(&mut memory[..labels.len()]);
        operator.select(start..start + labels.len())?;
        operator.forward(gates, weights, out)?;
        tally.add(labels, out.iter().copied());
        start += labels.len();
    }
    Ok(tally.score(task))
}
