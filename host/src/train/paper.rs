//! The published method for one output: a problem in memory to weights, model and report.

use tamis::base::budget::{Training, Workspace};
use tamis::base::dims::Dims;
use tamis::learn::iht::Step;
use tamis::learn::loss::Labels;
use tamis::learn::spectrum::{self, PowerIteration};
use tamis::learn::start::{self, continue_if};
use tamis::learn::train as core_train;
use tamis::learn::train::{Checkpoint, Info, OneOutput, Progress, Schedule};
use tamis::network::gates::{Gates, Signs};
use tamis::network::net::EntriesMut;
use tamis::operator::sensing::Work;

use crate::base::limits::Watch;
use crate::data::Problem;
use crate::operator::{Blocked, Stop};
use crate::train::check::{Sizes, at_least_one, check_trials, signs_name, sizes};
use crate::train::checkpoint;
use crate::train::encode::encode;
use crate::train::frozen::FrozenLayers;
use crate::train::network::{Scored, SparseNetwork};
use crate::train::options::PaperOptions;
use crate::train::pinned;
use crate::train::plan::{Plan, budget, checkpoint_bytes, stripped};
use crate::train::progress::Observer;
use crate::train::report::{Details, Neurons, PaperDetails, Report};
use crate::train::returned::{ReturnedData, shuffle};
use crate::train::trained::{Job, Start, Stopwatch, Trained};
use crate::{Error, Result};

/// Random supports on which the `theory` step looks at the data, and power iterations on each.
const SUPPORTS: u32 = 8;
const ITERATIONS: u32 = 20;

pub(crate) struct PaperSetup<'a> {
    pub(crate) sizes: Sizes,
    pub(crate) schedule: Schedule<'a, OneOutput>,
    pub(crate) plan: Plan,
    pub(crate) job: Job<'a>,
}

impl<'a> PaperSetup<'a> {
    pub(crate) fn new(
        problem: &Problem,
        frozen: &FrozenLayers,
        options: &PaperOptions,
        job: &Job<'a>,
    ) -> Result<Self> {
        problem.check()?;
        let inputs = frozen.inputs(problem);
        let sizes = sizes(problem.data.rows, inputs, job.hidden, job.budget, 0)?;
        let schedule = schedule(options, job);
        at_least_one("--epochs", schedule.epochs as usize, "15 epochs are the published setting")?;
        check_trials(schedule.trials)?;
        pinned::check(job.pinned, &sizes.dims, false)?;
        let plan = plan_for(sizes.dims, frozen.are_bytes(problem), options, job, frozen)?;
        if let Start::Network(from) = job.start {
            check_start(&sizes.dims, schedule.head.signs, from)?;
        }
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
        let Self { sizes, plan, job, .. } = self;
        let (dims, layout) = (sizes.dims, plan.layout);
        let mut schedule = stripped(&self.schedule, layout);
        let budget = budget(dims, &schedule, layout);
        // Batches and trials are runs of rows.
        let is_random = budget.batch < dims.samples || schedule.trials.count > 1;
        let order = is_random.then_some(schedule.seed);
        if is_random {
            shuffle(&mut data, &mut labels, schedule.seed);
        }
        let mut operator = frozen.operator(data, dims.hidden, dims.nnz, layout)?;
        let mut memory = vec![0; budget.words()];
        let checkpoints = checkpoint_bytes(job.checkpoints, checkpoint::paper_bytes(&budget));
        let workspace = [budget.workspace_bytes(), operator.workspace_bytes(), checkpoints];
        let plan = Plan::sum(layout, budget.state_bytes(), &workspace);
        let mut watch = Watch::new(job.limits, stop).resumed(job.start.is_checkpoint());
        operator.heed(Some(watch.stop()));
        let observe = |progress: &Progress<'_>| {
            continue_if(watch.show(f64::from(progress.passes), || observer.paper(progress)))
        };
        let beta = set_beta(&mut operator, &budget, &mut schedule, &mut memory)?;
        let s = dims.nnz;
        let from = match job.start {
            Start::Zero => None,
            Start::Checkpoint(checkpoint) => Some(checkpoint.paper()?),
            Start::Network(from) => Some(Checkpoint::starting(from.network.net(dims.hidden)?)),
        };
        let start = from.as_ref().map_or(start::Start::Zero, start::Start::Checkpoint);
        let values = Labels::Values(&labels);
        let trained =
            core_train::run(&mut operator, values, s, start, &schedule, &mut memory, observe)?;
        // What is left is little, and the result needs it.
        operator.heed(None);
        let (info, network) = (trained.info, trained.network);
        let (limit, stopped) = watch.ended(info.stopped);
        if info.nnz == 0 && stopped {
            return Err(Error::interrupted());
        }
        if !network.is_live() && labels.iter().any(|&label| label != 0.0) {
            return Err(nothing_found(&dims, "use --step normalised"));
        }
        let model = encode(network, dims.hidden, task.stored())?;
        let network = SparseNetwork::new(network);
        let net = network.net(dims.hidden)?;
        let scored = Scored {
            net,
            gates: Gates::of(net.w(), schedule.head.signs, schedule.head.empty, schedule.seed, 1),
            task,
            is_summed: false,
            labels: &labels,
            rows: 0..dims.samples,
            batch: budget.strip,
        };
        let score = scored.score(&mut operator, &mut memory)?;
        let details = Details::Paper(PaperDetails { beta });
        let Info { nnz, live, epochs, steps, trials, passes, .. } = info;
        let report = Report {
            nnz,
            pinned: pinned::report(job.pinned, &network),
            live: Neurons::One(live),
            epochs,
            steps: steps.into(),
            trials,
            passes: passes.into(),
            limit,
            stopped,
            ..job.report("paper", sizes, plan, &stopwatch, details).scored(&score)
        };
        Ok((Trained::new(&model, network, report), ReturnedData { operator, labels, task, order }))
    }
}

/// The schedule of a job.
fn schedule<'a>(options: &PaperOptions, job: &Job<'a>) -> Schedule<'a, OneOutput> {
    Schedule { must_keep: job.pinned, seed: job.seed, ..options.schedule }
}

/// The memory of a run of these sizes behind frozen layers.
pub(crate) fn plan_for(
    dims: Dims,
    bytes: bool,
    options: &PaperOptions,
    job: &Job<'_>,
    frozen: &FrozenLayers,
) -> Result<Plan> {
    Plan::of_run(dims, bytes, &schedule(options, job), job.memory, job.checkpoints, frozen)
}

/// Checks that a run of these sizes can start from another one's network.
fn check_start(dims: &Dims, signs: Signs, from: &Trained) -> Result<()> {
    let of = |inputs, hidden| format!("{inputs} columns, one output, {hidden} neurons");
    let (own, other) = (of(dims.inputs, dims.hidden), &from.report);
    let found = match other.outputs {
        1 => of(other.inputs, other.hidden.first()),
        outputs => format!("{outputs} outputs"),
    };
    // A search may have numbered its neurons as these are.
    let is_like = match other.search() {
        Some(search) => {
            search.second_hidden.is_none()
                && signs == Signs::Positive
                && search.signs == signs_name(signs)
        }
        None => matches!(other.details, Details::Paper(_)),
    };
    if own == found && is_like && other.nnz <= dims.nnz {
        return Ok(());
    }
    Err(Error::new("the network to start from does not fit the run")
        .expected(format_args!("recipe paper; {own}; at most {} weights", dims.nnz))
        .got(format_args!("recipe {}; {found}; {} weights", other.recipe, other.nnz))
        .help("start from a network of the same recipe and sizes, with fewer weights"))
}

/// Estimates beta where the schedule asks for it; `memory` serves as the workspace.
fn set_beta(
    operator: &mut Blocked,
    budget: &Training,
    schedule: &mut Schedule<'_, OneOutput>,
    memory: &mut [u32],
) -> Result<Option<f32>> {
    let Step::Theory { beta } = schedule.head.step else { return Ok(None) };
    if beta != 0.0 {
        return Ok(Some(beta));
    }
    let (s, d) = (budget.dims.nnz, budget.dims.inputs);
    let mut space = Workspace::new(memory);
    let support = EntriesMut { index: space.indices(s)?, value: space.floats(s)? };
    let mut work: Work<'_> = Work {
        residual: &mut [],
        panel: space.floats((3 * s).max(d))?,
        scratch: space.floats(budget.scratch)?,
        strips: None,
    };
    let gates = Gates::seeded(schedule.seed);
    let power = PowerIteration { seed: schedule.seed, draw: 0, iterations: ITERATIONS };
    let beta = spectrum::extremes(operator, gates, SUPPORTS, power, support, &mut work)?.beta;
    if !(beta.is_finite() && beta > 0.0) {
        return Err(Error::new("the theory step has nothing to measure")
            .expected("data with columns that are not all zero")
            .got(format_args!("a largest eigenvalue of {beta}"))
            .help("use --step normalised"));
    }
    schedule.head.step = Step::Theory { beta };
    Ok(Some(beta))
}

/// The error of a run without weights, and what else may help.
pub(crate) fn nothing_found(dims: &Dims, other: &str) -> Error {
    Error::new("training found no weight that explains the labels")
        .expected(format_args!("{} nonzeros", dims.nnz))
        .got("0")
        .help(format!(
            "check that some column is not all zero, scale inputs and labels to about 1, or {other}"
        ))
}
