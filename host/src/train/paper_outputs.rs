//! The published method for several outputs: a problem in memory to weights of both sides, model
//! and report.

use tamis::base::dims::Dims;
use tamis::learn::loss::Labels;
use tamis::learn::start::{self, continue_if};
use tamis::learn::train::{self as core_train, Info, Progress, Schedule, SeveralOutputs};
use tamis::operator::factored::Factored;
use tamis::operator::sensing::Sensing;

use crate::base::limits::Watch;
use crate::data::{Problem, Task};
use crate::operator::{Layout, Stop};
use crate::train::check::{Sizes, at_least_one, check_trials, sizes};
use crate::train::checkpoint;
use crate::train::encode::encode;
use crate::train::frozen::FrozenLayers;
use crate::train::network::{Scored, SparseNetwork};
use crate::train::options::OutputsOptions;
use crate::train::paper::nothing_found;
use crate::train::pinned;
use crate::train::plan::{LESS, Plan, checkpoint_bytes, choose};
use crate::train::progress::Observer;
use crate::train::report::{Details, Neurons, OutputsDetails, Report};
use crate::train::returned::{ReturnedData, shuffle};
use crate::train::trained::{Job, Start, Stopwatch, Trained};
use crate::{Error, Result};

pub(crate) struct OutputsSetup<'a> {
    pub(crate) sizes: Sizes,
    pub(crate) schedule: Schedule<'a, SeveralOutputs>,
    pub(crate) plan: Plan,
    pub(crate) job: Job<'a>,
}

impl<'a> OutputsSetup<'a> {
    pub(crate) fn new(
        problem: &Problem,
        frozen: &FrozenLayers,
        options: &OutputsOptions,
        job: &Job<'a>,
    ) -> Result<Self> {
        problem.check()?;
        at_least_one("--epochs", options.epochs as usize, "15 epochs are the published setting")?;
        check_trials(options.trials)?;
        let outputs = match problem.task {
            Task::Multiclass => problem.classes().unwrap_or(0),
            _ => problem.outputs(),
        };
        let inputs = frozen.inputs(problem);
        let sizes = sizes(problem.data.rows, inputs, job.hidden, job.budget, outputs)?;
        pinned::check(job.pinned, &sizes.dims, true)?;
        let schedule = schedule(problem.task, sizes, options, job);
        let plan = plan_for(sizes, frozen.are_bytes(problem), &schedule, job, frozen)?;
        let schedule = Schedule { strip: plan.layout.strip(), ..schedule };
        Ok(Self { sizes, schedule, plan, job: *job })
    }

    pub(crate) fn train(
        self,
        problem: Problem,
        frozen: FrozenLayers,
        stop: &Stop,
        observer: &mut Observer<'_>,
    ) -> Result<(Trained, ReturnedData)> {
        let stopwatch = Stopwatch::start(&problem);
        let Problem { mut data, mut labels, task } = problem;
        let Self { sizes, schedule, plan, job } = &self;
        let Sizes { dims, outputs: c } = *sizes;
        // Batches and trials are runs of rows.
        let is_random =
            schedule.batch > 0 && schedule.batch < dims.samples || schedule.trials.count > 1;
        let order = is_random.then_some(schedule.seed);
        if is_random {
            shuffle(&mut data, &mut labels, schedule.seed);
        }
        // Checked to be classes.
        let classes: Vec<u16> = match task {
            Task::Multiclass => labels.iter().map(|&label| label as u16).collect(),
            _ => Vec::new(),
        };
        let goal = if task == Task::Multiclass {
            Labels::classes(&classes, c)
        } else {
            Labels::Values(&labels)
        };
        let layout = plan.layout;
        let most = largest_support(*sizes, layout.panel);
        let mut operator = frozen.operator(data, dims.hidden, most, layout)?.with_outputs(c);
        let mut budget = schedule.budget(dims, c, operator.panel(), 0);
        budget.scratch = operator.net_scratch(budget.strip);
        let mut memory = vec![0; budget.words()];
        let mut watch = Watch::new(job.limits, stop).resumed(job.start.is_checkpoint());
        operator.heed(Some(watch.stop()));
        let observe = |progress: &Progress<'_>| {
            continue_if(watch.show(f64::from(progress.passes), || observer.paper(progress)))
        };
        let s = dims.nnz;
        let from = match job.start {
            Start::Checkpoint(checkpoint) => Some(checkpoint.paper()?),
            Start::Zero => None,
            Start::Network(_) => return Err(no_warm_start()),
        };
        let start = from.as_ref().map_or(start::Start::Zero, start::Start::Checkpoint);
        let trained =
            match core_train::run(&mut operator, goal, s, start, schedule, &mut memory, observe) {
                Err(tamis::Error::Diverged { step }) => {
                    return Err(Error::new("the steps of the published method diverge")
                        .expected("a loss that stays finite")
                        .got(format_args!("an overflow in step {}", step + 1))
                        .help(
                            "use --recipe paper-safe, which undoes such steps, a shorter --step \
                         fixed:ETA, or the default recipe",
                        ));
                }
                done => done?,
            };
        operator.heed(None);
        let info = trained.info;
        let (limit, stopped) = watch.ended(info.stopped);
        if !trained.network.is_live() {
            return Err(if stopped {
                Error::interrupted()
            } else {
                nothing_found(&dims, "use the default recipe")
            });
        }
        let network = SparseNetwork::new(trained.network);
        let net = network.net(dims.hidden)?;
        let model = encode(net, dims.hidden, task.stored())?;
        let scored = Scored {
            net,
            gates: net.gates(u32::MAX),
            task,
            is_summed: false,
            labels: &labels,
            rows: 0..dims.samples,
            batch: budget.strip,
        };
        let score = scored.score(&mut operator, &mut memory)?;
        let checkpoints = checkpoint_bytes(job.checkpoints, checkpoint::outputs_bytes(&budget));
        let workspace = [budget.workspace_bytes(), operator.workspace_bytes(), checkpoints];
        let plan = Plan::sum(layout, budget.state_bytes(), &workspace);
        let recipe = if schedule.head.safe { "paper-safe" } else { "paper" };
        let details = OutputsDetails {
            step_size: schedule.head.step_size,
            undone: info.undone,
            sketch_words: budget.sketch,
        };
        let Info { nnz, live, epochs, steps, trials, passes, .. } = info;
        let report = Report {
            nnz,
            pinned: pinned::report(schedule.must_keep, &network),
            live: Neurons::One(live),
            epochs,
            steps: steps.into(),
            trials,
            passes: passes.into(),
            limit,
            stopped,
            ..job.report(recipe, *sizes, plan, &stopwatch, Details::Outputs(details)).scored(&score)
        };
        Ok((Trained::new(&model, network, report), ReturnedData { operator, labels, task, order }))
    }
}

/// Entries of the largest network that the operator meets: the result, or a panel of random blocks.
fn largest_support(sizes: Sizes, panel: usize) -> usize {
    sizes.dims.nnz.max(panel * (sizes.dims.inputs + sizes.outputs))
}

/// The schedule of a job for networks of these sizes.
pub(crate) fn schedule<'a>(
    task: Task,
    sizes: Sizes,
    options: &OutputsOptions,
    job: &Job<'a>,
) -> Schedule<'a, SeveralOutputs> {
    // What is fitted, without the labels.
    let goal = if task == Task::Multiclass {
        Labels::classes(&[], sizes.outputs)
    } else {
        Labels::Values(&[])
    };
    let paper = Schedule::paper(&goal, job.hidden, sizes.dims.nnz);
    let &OutputsOptions { epochs, batch, step_size, rank, standin, trials, safe } = options;
    let step_size = step_size.unwrap_or(paper.head.step_size);
    let head = SeveralOutputs { step_size, rank, standin, safe };
    Schedule { epochs, strip: 0, batch, trials, seed: job.seed, must_keep: job.pinned, head }
}

/// The memory of a run of these sizes behind frozen layers.
pub(crate) fn plan_for(
    sizes: Sizes,
    bytes: bool,
    schedule: &Schedule<'_, SeveralOutputs>,
    job: &Job<'_>,
    frozen: &FrozenLayers,
) -> Result<Plan> {
    let Sizes { dims, outputs } = sizes;
    let default = Layout { hold: false, ..Layout::new(dims.hidden, dims.inputs) };
    let plan = choose(job.memory, default, dims.hidden, LESS, |layout| {
        let schedule = Schedule { strip: layout.strip(), ..*schedule };
        let mut budget = schedule.budget(dims, outputs, layout.panel, 0);
        budget.scratch = tamis::operator::factored::provided::scratch(budget.strip, dims.inputs);
        let held =
            Dims::new(dims.samples, dims.inputs, dims.hidden, largest_support(sizes, layout.panel));
        let operator = layout.bytes(held, bytes) + layout.outputs_bytes(held, outputs);
        let checkpoints = checkpoint_bytes(job.checkpoints, checkpoint::outputs_bytes(&budget));
        let layers = frozen.layers_bytes(dims, layout);
        let workspace = [budget.workspace_bytes(), operator, checkpoints, layers, frozen.beside];
        Plan::sum(layout, budget.state_bytes(), &workspace)
    })?;
    Ok(plan.without(frozen.beside))
}

fn no_warm_start() -> Error {
    Error::new("the published method for several outputs cannot start from a network")
        .expected("one output, or a run from nothing")
        .got("a network to start from")
        .help("start it anew, or choose --recipe lm")
}
