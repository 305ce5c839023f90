//! The published method for several outputs: a problem in memory to weights of both sides, model bytes and a report.

use serde::Serialize;
use tamis::dims::Dims;
use tamis::factored::Factored;
use tamis::sensing::Sensing;
use tamis::train::{Goal, NetSchedule, Progress, Rank, Standin, Trials, resume_net, run_net};

use super::anneal::encode_net;
use super::before::{Before, operator};
use super::found::{Found, score};
use super::keep::{self, Kept};
use super::limits::{Limits, Watch};
use super::plan::{self, choose};
use super::rest::Rest;
use super::train::{Outcome, Report, Start, at_least_one, check_trials, shuffle, sizes};
use super::{Memory, Plan, Problem, Size, Task, must_keep, peak_rss_bytes};
use crate::operator::{Layout, Stop, Through};
use crate::{Error, Result};

/// How to train several outputs by the published method.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutputsOptions<'k> {
    /// Hidden neurons, m.
    pub hidden: usize,
    /// Nonzero weights of both sides, s.
    pub size: Size,
    /// Passes over all batches.
    pub epochs: u32,
    /// Rows of a batch; 0 for all rows.
    pub batch: usize,
    /// Length of a step; none for the published one, which depends on task and sizes.
    pub step_size: Option<f32>,
    /// How the weights that stay are chosen.
    pub rank: Rank,
    /// When random values stand for blocks without weights.
    pub standin: Standin,
    /// Random starts on the first rows, of which the best goes on.
    pub trials: Trials,
    /// Whether epochs that diverge are undone, with shorter steps, and the best iterate is the result.
    pub safe: bool,
    /// Seed of the random values and of all orders.
    pub seed: u64,
    /// Weights from the inputs that must be kept, as [`super::must_keep()`] gives them.
    pub must_keep: &'k [u32],
    /// How much memory to take.
    pub memory: Memory,
    /// Threads; 0 for one per core. They never change the result.
    pub threads: usize,
    /// When to end the run.
    pub limits: Limits,
    /// Whether checkpoints are kept ([`super::Keep`]), so that the plan counts the memory of two: the one to go on from, and the
    /// last one.
    pub checkpoints: bool,
}

impl<'k> OutputsOptions<'k> {
    /// The starts that `tamis train --recipe paper` takes: fewer than for one output, since a step with a count sketch takes two
    /// gradients.
    pub const TRIALS: Trials = Trials { count: 8, ..Trials::DEFAULT };

    /// The published settings on all cores: 15 full batches, a count sketch that ranks the weights, no safety.
    #[must_use]
    pub const fn new(hidden: usize, size: Size) -> Self {
        Self {
            hidden,
            size,
            epochs: 15,
            batch: 0,
            step_size: None,
            rank: Rank::Sketch { decay: 1.0 },
            standin: Standin::EveryEpoch,
            trials: Trials::NONE,
            safe: false,
            seed: 0,
            must_keep: &[],
            memory: Memory::Auto,
            threads: 0,
            limits: Limits::NONE,
            checkpoints: false,
        }
    }

    /// The same with weights from the inputs that stay whatever their size, as [`super::must_keep()`] gives them.
    #[must_use]
    pub const fn keeping(self, must_keep: &'k [u32]) -> Self {
        Self { must_keep, ..self }
    }

    pub(super) fn schedule(&self, goal: &Goal<'_>, nnz: usize) -> NetSchedule<'k> {
        let paper = NetSchedule::paper(goal, self.hidden, nnz);
        NetSchedule {
            epochs: self.epochs,
            strip: 0,
            batch: self.batch,
            step_size: self.step_size.unwrap_or(paper.step_size),
            rank: self.rank,
            standin: self.standin,
            trials: self.trials,
            safe: self.safe,
            seed: self.seed,
            must_keep: self.must_keep,
        }
    }
}

/// What a run for several outputs did; part of the report.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Steps {
    /// Length of the first step.
    pub step_size: f32,
    /// Epochs that diverged and were undone.
    pub undone: u32,
    /// Words of the count sketch that ranks the weights; 0 where none does.
    pub sketch_words: usize,
}

/// Trains a network of several outputs, values or classes, by the published method.
///
/// `observe` is called after every step and ends the run by returning `false`; `stop` ends it within a step, in the time of
/// a tile or a panel, and what that step did is dropped. With minibatches the rows are first put into a random order that the
/// seed fixes. Everything is allocated before the first step.
///
/// # Errors
/// One output; a size out of bounds, a budget that is too small, labels outside the task, or steps that diverge in a run that
/// is not safe; or the run was ended before its first step ([`Error::is_interrupted`]).
pub fn train_outputs(
    problem: Problem,
    options: &OutputsOptions<'_>,
    stop: &Stop,
    mut observe: impl FnMut(&Progress<'_>) -> bool + Send,
) -> Result<Outcome> {
    start((problem, Before::default()), options, None, stop, &mut observe).map(|(outcome, _)| outcome)
}

/// Goes on from a checkpoint that [`super::Keep::load`] gave for this problem and these options: the model and the counters are
/// the same, bit for bit, as if the run had never been interrupted, on any number of threads of a machine with the same vector
/// instructions. `observe` is called after every further step.
///
/// # Errors
/// As [`train_outputs`]; or the checkpoint does not fit.
pub fn resume_outputs(
    problem: Problem,
    options: &OutputsOptions<'_>,
    kept: &Kept,
    stop: &Stop,
    mut observe: impl FnMut(&Progress<'_>) -> bool + Send,
) -> Result<Outcome> {
    start((problem, Before::default()), options, Some(kept), stop, &mut observe).map(|(outcome, _)| outcome)
}

/// The outcome of a run behind finished layers, and what is left of the problem.
pub(super) fn start(
    (problem, before): (Problem, Before),
    options: &OutputsOptions<'_>,
    kept: Option<&Kept>,
    stop: &Stop,
    observe: &mut (dyn FnMut(&Progress<'_>) -> bool + Send),
) -> Result<(Outcome, Rest)> {
    let settled = Settled::behind(&problem, &before, options)?;
    settled.plan.check_room()?;
    plan::pool(options.threads)?.install(|| settled.train((problem, before.through), kept, stop, observe))
}

/// A run whose sizes, settings and memory are settled.
pub(super) struct Settled<'k> {
    pub(super) dims: Dims,
    pub(super) outputs: usize,
    pub(super) schedule: NetSchedule<'k>,
    pub(super) plan: Plan,
    limits: Limits,
    checkpoints: bool,
}

impl<'k> Settled<'k> {
    pub(super) fn new(problem: &Problem, options: &OutputsOptions<'k>) -> Result<Self> {
        Self::behind(problem, &Before::default(), options)
    }

    /// The same behind finished layers.
    fn behind(problem: &Problem, before: &Before, options: &OutputsOptions<'k>) -> Result<Self> {
        problem.check()?;
        at_least_one("--epochs", options.epochs as usize, "15 epochs are the published setting")?;
        check_trials(options.trials)?;
        let outputs = match problem.task {
            Task::Multiclass => problem.classes().unwrap_or(0),
            _ => problem.outputs(),
        };
        if outputs < 2 {
            return Err(Error::new("there is only one output")
                .expected("labels of several columns, or --task multiclass")
                .got("labels of one column")
                .help("train one output by the method for it"));
        }
        let dims = sizes(before.shape(problem), options.hidden, options.size, outputs)?;
        must_keep::check(options.must_keep, &dims, true)?;
        let (limits, checkpoints) = (options.limits, options.checkpoints);
        let schedule = options.schedule(&goal_of(problem.task, outputs), dims.nnz);
        let bytes = before.are_bytes(problem);
        let plan = plan_behind((dims, outputs), bytes, (options, &schedule), before)?;
        let schedule = NetSchedule { strip: plan.layout().strip(), ..schedule };
        Ok(Self { dims, outputs, schedule, plan, limits, checkpoints })
    }

    fn train(
        &self,
        (problem, through): (Problem, Option<Through>),
        kept: Option<&Kept>,
        stop: &Stop,
        observe: &mut (dyn FnMut(&Progress<'_>) -> bool + Send),
    ) -> Result<(Outcome, Rest)> {
        let start = Start::new(&problem);
        let Problem { mut data, mut labels, task } = problem;
        let (dims, c, schedule) = (self.dims, self.outputs, &self.schedule);
        // Batches and trials are runs of rows.
        let is_random = schedule.batch > 0 && schedule.batch < dims.samples || schedule.trials.count > 1;
        let order = is_random.then_some(schedule.seed);
        if is_random {
            shuffle(&mut data, &mut labels, schedule.seed);
        }
        // Checked to be classes.
        let classes: Vec<u16> = match task {
            Task::Multiclass => labels.iter().map(|&label| label as u16).collect(),
            _ => Vec::new(),
        };
        let goal = if task == Task::Multiclass { Goal::Classes(&classes, c) } else { Goal::Values(&labels) };
        let layout = self.plan.layout();
        let held = (dims.hidden, support(dims, c, layout.panel));
        let mut operator = operator(data, through, held, layout)?.with_outputs(c);
        let mut budget = schedule.budget(dims, c, operator.panel(), 0);
        budget.scratch = operator.net_scratch(budget.strip);
        let mut memory = vec![0; budget.words()];
        let mut watch = Watch::new(self.limits, stop).resumed(kept.is_some());
        operator.heed(Some(watch.stop()));
        let observe = |progress: &Progress<'_>| watch.show(f64::from(progress.passes), || observe(progress));
        let (s, from) = (dims.nnz, kept.map(Kept::paper).transpose()?);
        let trained = match &from {
            None => run_net(&mut operator, goal, s, schedule, &mut memory, observe),
            Some(from) => resume_net(&mut operator, goal, s, schedule, from, &mut memory, observe),
        };
        let trained = match trained {
            Err(tamis::Error::Diverged { step }) => {
                return Err(Error::new("the steps of the published method diverge")
                    .expected("a loss that stays finite")
                    .got(format_args!("an overflow in step {}", step + 1))
                    .help("use --recipe paper-safe, which undoes such steps, a shorter --step fixed:ETA, or the usual recipe"));
            }
            done => done?,
        };
        operator.heed(None);
        let (info, undone) = (trained.info, trained.undone);
        let (limit, stopped) = watch.ended(info.stopped);
        if !trained.net.is_live() {
            return Err(if stopped {
                Error::interrupted()
            } else {
                Error::new("training found no weight that explains the labels")
                    .expected(format_args!("{} nonzeros", dims.nnz))
                    .got("0")
                    .help("check that some column is not all zero, scale inputs and labels to about 1, or use the usual recipe")
            });
        }
        let found = Found::new(trained.net);
        let net = found.net(dims.hidden)?;
        let model = encode_net(net, task.stored())?;
        let own = (net, net.gates(u32::MAX));
        let rows = (0..dims.samples, budget.strip);
        let score = score(&mut operator, (task, false), &labels, own, rows, &mut memory)?;
        let checkpoints = plan::checkpoints(self.checkpoints, keep::outputs_bytes(&budget));
        let workspace = [budget.workspace_bytes(), operator.workspace_bytes(), checkpoints];
        let plan = Plan::sum(self.plan.layout(), budget.state_bytes(), &workspace);
        let report = Report {
            recipe: if schedule.safe { "paper-safe" } else { "paper" },
            task,
            samples: dims.samples,
            inputs: dims.inputs,
            outputs: c,
            hidden: dims.hidden,
            second_hidden: None,
            requested_nnz: dims.nnz,
            nnz: info.nnz,
            kept: must_keep::kept(schedule.must_keep, dims.inputs, (&found.w.0, &found.w.1)),
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
            published: Some(Steps { step_size: schedule.step_size, undone, sketch_words: budget.sketch }),
            resumed_steps: kept.map_or(0, Kept::steps),
            limit,
            stopped,
            seconds: start.seconds(),
            threads: rayon::current_num_threads(),
            seed: schedule.seed,
            data_bytes: start.data_bytes,
            plan,
            peak_rss_bytes: peak_rss_bytes(),
        };
        let Found { w: (index, value), wt: (out_index, out_value), .. } = found;
        let outcome = Outcome { index, value, out_index, out_value, model, report };
        Ok((outcome, Rest { operator, labels, task, order }))
    }
}

/// Entries of the largest network that the operator meets: the result, or a panel of random blocks.
fn support(dims: Dims, outputs: usize, panel: usize) -> usize {
    dims.nnz.max(panel * (dims.inputs + outputs))
}

/// What a run of the task fits, without the labels.
pub(super) fn goal_of(task: Task, outputs: usize) -> Goal<'static> {
    match task {
        Task::Multiclass => Goal::Classes(&[], outputs),
        _ => Goal::Values(&[]),
    }
}

/// The memory of a run of these sizes behind finished layers.
pub(super) fn plan_behind(
    (dims, outputs): (Dims, usize),
    bytes: bool,
    (options, schedule): (&OutputsOptions<'_>, &NetSchedule<'_>),
    before: &Before,
) -> Result<Plan> {
    let usual = Layout { hold: false, ..Layout::new(dims.hidden, dims.inputs) };
    let plan = choose(options.memory, (usual, dims.hidden), plan::LESS, |layout| {
        let schedule = NetSchedule { strip: layout.strip(), ..*schedule };
        plan_of((dims, outputs), bytes, &schedule, layout, (options.checkpoints, before))
    })?;
    Ok(plan.without(before.beside))
}

fn plan_of(
    (dims, outputs): (Dims, usize),
    bytes: bool,
    schedule: &NetSchedule<'_>,
    layout: Layout,
    (checkpoints, before): (bool, &Before),
) -> Plan {
    let mut budget = schedule.budget(dims, outputs, layout.panel, 0);
    budget.scratch = tamis::factored::provided::scratch(budget.strip, dims.inputs);
    let held = Dims::new(dims.samples, dims.inputs, dims.hidden, support(dims, outputs, layout.panel));
    let operator = layout.bytes(held, bytes) + layout.outputs_bytes(held, outputs);
    let checkpoints = plan::checkpoints(checkpoints, keep::outputs_bytes(&budget));
    let layers = before.layers_bytes(dims, layout);
    let workspace = [budget.workspace_bytes(), operator, checkpoints, layers, before.beside];
    Plan::sum(layout, budget.state_bytes(), &workspace)
}
