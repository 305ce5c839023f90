//! The published method, for one output and for several: a problem in memory to weights, model and
//! report.

use tamis::base::budget::{Training, Workspace};
use tamis::base::dims::Dims;
use tamis::learn::iht::Step;
use tamis::learn::loss::{Classes, Labels};
use tamis::learn::spectrum::{self, PowerIteration};
use tamis::learn::start::{self, continue_if};
use tamis::learn::train::{self as core_train, Checkpoint, Info, OneOutput, Progress, Schedule};
use tamis::learn::train::{Refresh, SeveralOutputs, Trials};
use tamis::network::gates::{Gates, Signs};
use tamis::network::net::EntriesMut;
use tamis::operator::machine::Machine as _;
use tamis::operator::sensing::Work;

use crate::base::limits::Watch;
use crate::data::{Problem, Task};
use crate::operator::{Backend, HiddenLayers, Layout, OperatorSizes, Placed, on_device};
use crate::train::budget::Memory;
use crate::train::check::{Sizes, at_least_one, classes_of, signs_name, sizes, weighted_outputs};
use crate::train::checkpoint::{self, Kind};
use crate::train::encode::encode;
use crate::train::network::{Scored, SparseNetwork};
use crate::train::paper_options::{OutputsOptions, PaperOptions};
use crate::train::pinned;
use crate::train::plan::{LESS, Plan, choose};
use crate::train::progress::Observer;
use crate::train::report::{Details, Neurons, OutputsDetails, PaperDetails, Report};
use crate::train::trained::{Job, ReturnedData, Start, Stopwatch, Trained, no_mask, shuffle};
use crate::{Error, Result};

/// Random supports on which the `theory` step looks at the data, and power iterations on each.
const SUPPORTS: u32 = 8;
const ITERATIONS: u32 = 20;

/// Frozen layers that every row goes through before a run sees it, and memory held beside it.
#[derive(Debug, Clone, Default)]
pub(crate) struct FrozenLayers {
    /// The layers, a tile of rows at a time; none where rows are the inputs.
    pub(crate) layers: Option<HiddenLayers>,
    /// Bytes that are held beside the run and count in its memory budget.
    pub(crate) beside: usize,
}

/// Settings of the network's head.
#[derive(Clone, Copy)]
pub(crate) enum Head {
    One(OneOutput),
    Several(SeveralOutputs),
}

pub(crate) struct PaperSetup<'a> {
    /// With the outputs that weights lead to.
    pub(crate) sizes: Sizes,
    pub(crate) schedule: Schedule<'a, Head>,
    pub(crate) plan: Plan,
    job: Job<'a>,
}

impl<'a> PaperSetup<'a> {
    pub(crate) fn new(
        problem: &Problem,
        frozen: &FrozenLayers,
        options: &PaperOptions,
        job: &Job<'a>,
    ) -> Result<Self> {
        problem.check()?;
        let outputs = weighted_outputs(problem);
        if options.outputs.safe && outputs == 0 {
            return Err(Error::new("recipe paper-safe is for several outputs")
                .expected("labels of several columns, or --task multiclass")
                .got("labels of one column")
                .help("choose --recipe paper: its steps for one output do not diverge"));
        }
        let inputs = frozen.layers.as_ref().map_or(problem.data.cols, HiddenLayers::width);
        let sizes = sizes(problem.data.rows, inputs, job.hidden, job.budget, outputs)?;
        let schedule = schedule(problem.task, sizes, options, job);
        at_least_one("--epochs", schedule.epochs as usize, "15 epochs are the published setting")?;
        let refresh = match schedule.head {
            Head::One(OneOutput { refresh, .. }) => refresh,
            Head::Several(SeveralOutputs { refresh, .. }) => refresh,
        };
        if let Refresh::Every(steps) = refresh {
            at_least_one("--refresh", steps as usize, "1 is the published setting")?;
        }
        let Trials { count, rows, .. } = schedule.trials;
        at_least_one("--trials", count as usize, "1 goes without trials, as published")?;
        if count > 1 {
            at_least_one("--trial-rows", rows, "pass --trials 1 to go without trials")?;
        }
        pinned::check(job.pinned, &sizes.dims, outputs > 0)?;
        let bytes = frozen.layers.is_none() && problem.data.is_bytes();
        let plan = plan_for(sizes, bytes, &schedule, job, frozen)?;
        let schedule = Schedule { strip: plan.layout.strip(), ..schedule };
        Ok(Self { sizes, schedule, plan, job: *job })
    }

    pub(crate) fn train(
        self,
        mut problem: Problem,
        frozen: FrozenLayers,
        start: Start<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<(Trained, ReturnedData)> {
        let stopwatch = Stopwatch::start(&problem);
        let Self { sizes, mut schedule, plan, job } = self;
        let Sizes { dims, outputs } = sizes;
        let budget = budget(sizes, &schedule, plan.layout);
        // Batches and trials are runs of rows.
        let is_random = budget.batch < dims.samples || schedule.trials.count > 1;
        let order = is_random.then_some(schedule.seed);
        if is_random {
            shuffle(&mut problem, schedule.seed);
        }
        let Problem { data, labels, task } = problem;
        let classes = classes_of(task, &labels);
        let most = largest_support(sizes, plan.layout.panel);
        let operator_sizes = OperatorSizes { hidden: dims.hidden, nnz: most, outputs };
        let mut operator =
            Placed::new(job.device, data, frozen.layers, operator_sizes, plan.layout)?;
        let mut memory = vec![0; budget.words()];
        let mut watch =
            Watch::new(job.limits, observer.stop).resumed(matches!(start, Start::Checkpoint(_)));
        operator.heed(Some(watch.stop()));
        let observe = |progress: &Progress<'_>| {
            continue_if(watch.show(f64::from(progress.passes), || observer.paper(progress)))
        };
        let from = match start {
            Start::Zero => None,
            Start::Checkpoint(checkpoint) => Some(checkpoint.paper()?),
            Start::Mask(_) => return Err(no_mask("paper")),
            Start::Network(from) => {
                check_start(&dims, &schedule.head, from)?;
                Some(Checkpoint::starting(from.network.net(dims.hidden)?))
            }
        };
        let from = from.as_ref().map_or(start::Start::Zero, start::Start::Checkpoint);
        let (seed, head) = (schedule.seed, &mut schedule.head);
        let beta = on_device!(&mut operator, on => set_beta(on, &budget, head, &mut memory, seed))?;
        let (s, words) = (dims.nnz, &mut memory);
        let trained = on_device!(&mut operator, on => {
            let mut handle = Vec::new();
            let goal = match task {
                Task::Multiclass => {
                    Labels::Classes(Classes { labels: on.classes(&classes, &mut handle), outputs })
                }
                _ => Labels::Values(on.labels(&labels, &mut handle)),
            };
            match schedule.head {
                Head::One(head) => {
                    core_train::run(on, goal, s, from, &with_head(&schedule, head), words, observe)
                        .map_err(|error| on.failed(error))
                }
                Head::Several(head) => {
                    core_train::run(on, goal, s, from, &with_head(&schedule, head), words, observe)
                        .map_err(|error| diverged(error, on))
                }
            }
        })?;
        // What is left is little, and the result needs it.
        operator.heed(None);
        let (info, network) = (trained.info, trained.network);
        let (limit, stopped) = watch.ended(info.stopped);
        if !network.is_live() {
            if stopped && (outputs > 0 || info.nnz == 0) {
                return Err(Error::interrupted());
            }
            if outputs > 0 || labels.iter().any(|&label| label != 0.0) {
                return Err(nothing_found(&dims, outputs > 0));
            }
        }
        let model = encode(network, dims.hidden, task.stored())?;
        let network = SparseNetwork::new(network);
        let net = network.net(dims.hidden)?;
        let gates = match schedule.head {
            Head::One(head) => Gates::of(net.w(), head.signs, head.empty, schedule.seed, 1),
            Head::Several(_) => net.gates(u32::MAX),
        };
        let (rows, batch) = (0..dims.samples, budget.strip);
        let scored = Scored {
            net,
            gates,
            task,
            stored: task.stored(),
            is_summed: false,
            labels: &labels,
            rows,
            batch,
        };
        let score = scored.score(&mut operator, &mut memory)?;
        let (recipe, details) = match schedule.head {
            Head::One(_) => ("paper", Details::Paper(PaperDetails { beta })),
            Head::Several(SeveralOutputs { step_size, safe, .. }) => (
                if safe { "paper-safe" } else { "paper" },
                Details::Outputs(OutputsDetails {
                    step_size,
                    undone: info.undone,
                    sketch_words: budget.sketch,
                }),
            ),
        };
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
            ..job
                .report(recipe, sizes, &plan, start, &stopwatch, details)
                .scored(&score)
                .on(job.device, &operator)
        };
        Ok((Trained::new(&model, network, report), ReturnedData { operator, labels, task, order }))
    }
}

/// The schedule of a job for networks of these sizes.
pub(crate) fn schedule<'a>(
    task: Task,
    sizes: Sizes,
    options: &PaperOptions,
    job: &Job<'a>,
) -> Schedule<'a, Head> {
    let (seed, must_keep) = (job.seed, job.pinned);
    if sizes.outputs == 0 {
        let head = Head::One(options.schedule.head);
        return Schedule { seed, must_keep, ..with_head(&options.schedule, head) };
    }
    // What is fitted, without the labels.
    let goal = match task {
        Task::Multiclass => Labels::classes(&[], sizes.outputs),
        _ => Labels::values(&[]),
    };
    let OutputsOptions { epochs, batch, trials, safe, .. } = options.outputs;
    let OutputsOptions { step_size, rank, convex_epochs, refresh, standin, .. } = options.outputs;
    let published = SeveralOutputs::paper(&goal, job.hidden, sizes.dims.nnz);
    let step_size = step_size.unwrap_or(published.step_size);
    let head = SeveralOutputs { step_size, rank, standin, convex_epochs, refresh, ..published };
    let head = Head::Several(if safe { head.safe() } else { head });
    Schedule { epochs, batch, strip: 0, trials, seed, must_keep, head }
}

/// The same schedule with another head.
const fn with_head<'a, H: Copy, N: Copy>(schedule: &Schedule<'a, H>, head: N) -> Schedule<'a, N> {
    let &Schedule { epochs, batch, strip, trials, seed, must_keep, .. } = schedule;
    Schedule { epochs, batch, strip, trials, seed, must_keep, head }
}

/// Entries of the largest network that the operator meets: the result, or with output weights a
/// panel of random blocks.
fn largest_support(Sizes { dims, outputs }: Sizes, panel: usize) -> usize {
    if outputs == 0 { dims.nnz } else { dims.nnz.max(panel * (dims.inputs + outputs)) }
}

/// The core's share of the memory for the blocked operator with this layout.
pub(crate) fn budget(sizes: Sizes, schedule: &Schedule<'_, Head>, layout: Layout) -> Training {
    let Sizes { dims, outputs } = sizes;
    let schedule = Schedule { strip: layout.strip(), ..*schedule };
    let panel = layout.panel;
    let (mut budget, floats) = match schedule.head {
        Head::One(head) => (with_head(&schedule, head).budget(dims, panel, 0), 1),
        Head::Several(head) => (with_head(&schedule, head).budget(dims, outputs, panel, 0), 2),
    };
    budget.scratch = floats * budget.strip + dims.inputs;
    budget
}

/// The memory of a run of these sizes behind frozen layers; what is held beside it counts in the
/// job's memory and is not in the plan.
pub(crate) fn plan_for(
    sizes: Sizes,
    bytes: bool,
    schedule: &Schedule<'_, Head>,
    job: &Job<'_>,
    frozen: &FrozenLayers,
) -> Result<Plan> {
    let Sizes { dims, outputs } = sizes;
    let default = job.layout(dims.hidden, dims.inputs, outputs, dims.hidden);
    // The theory step measures its curvature on all rows at once.
    let is_whole = matches!(schedule.head, Head::One(OneOutput { step: Step::Theory { .. }, .. }));
    let plan = choose(job.memory, default, dims.hidden, LESS, |layout| {
        let layout = Layout { strips: layout.strips && !is_whole, ..layout };
        let budget = budget(sizes, schedule, layout);
        let most = largest_support(sizes, layout.panel);
        let most = Dims::new(dims.samples, dims.inputs, dims.hidden, most);
        let operator = job.operator_bytes(layout, most, bytes, outputs);
        let kind = if outputs > 0 { Kind::Outputs } else { Kind::Paper };
        let form = Checkpoint::form(&budget, Signs::Positive);
        let checkpoints = checkpoint::bytes(job.checkpoints, kind, &form);
        let layers = frozen.layers.as_ref().map_or(0, |layers| layers.bytes(dims.samples, layout));
        let workspace = [budget.workspace_bytes(), operator, checkpoints, layers, frozen.beside];
        Plan::sum(layout, budget.state_bytes(), &workspace)
    })?;
    let workspace_bytes = plan.workspace_bytes.saturating_sub(frozen.beside as u64);
    Ok(Plan { workspace_bytes, ..plan })
}

impl Plan {
    /// Chooses panel and tile of the published method for one output, for data of the given sizes,
    /// of bytes or of floats, and a thread for each core.
    ///
    /// # Errors
    /// A panel of no neuron; or a budget that is too small, with the bytes needed and given.
    ///
    /// ```
    /// use tamis::{base::dims::Dims, learn::train::Schedule};
    /// use tamis_host::train::{Memory, Plan};
    /// let dims = Dims::new(50_000, 100, 100, 500);
    /// let free = Plan::new(dims, false, &Schedule::PAPER, Memory::Auto)?;
    /// let tight = Plan::new(dims, false, &Schedule::PAPER, Memory::Ram(1 << 20))?;
    /// assert!(tight.total_bytes() <= 1 << 20 && tight.total_bytes() < free.total_bytes());
    /// assert!(Plan::new(dims, false, &Schedule::PAPER, Memory::Ram(1000)).is_err());
    /// # Ok::<(), tamis_host::Error>(())
    /// ```
    pub fn new(
        dims: Dims,
        bytes: bool,
        schedule: &Schedule<'_, OneOutput>,
        memory: Memory,
    ) -> Result<Self> {
        let job = Job { memory, ..Job::plain(dims.hidden, dims.nnz) };
        let schedule = with_head(schedule, Head::One(schedule.head));
        plan_for(Sizes { dims, outputs: 0 }, bytes, &schedule, &job, &FrozenLayers::default())
    }
}

/// Checks that a run of these sizes can start from another one's network.
fn check_start(dims: &Dims, head: &Head, from: &Trained) -> Result<()> {
    let Head::One(OneOutput { signs, .. }) = *head else {
        return Err(Error::new(
            "the published method for several outputs cannot start from a network",
        )
        .expected("one output, or a run from nothing")
        .got("a network to start from")
        .help("start it anew, or choose --recipe lm"));
    };
    let of = |inputs, hidden| format!("{inputs} columns, one output, {hidden} neurons");
    let (own, other) = (of(dims.inputs, dims.hidden), &from.report);
    let got = match other.outputs {
        1 => of(other.inputs, other.hidden.first()),
        outputs => format!("{outputs} outputs"),
    };
    // A search may have numbered its neurons as these are.
    let is_like = match &other.details {
        Details::Lm(search) => {
            search.second_hidden.is_none()
                && signs == Signs::Positive
                && search.signs == signs_name(signs)
        }
        details => matches!(details, Details::Paper(_)),
    };
    if own == got && is_like && other.nnz <= dims.nnz {
        return Ok(());
    }
    Err(Error::new("the network to start from does not fit the run")
        .expected(format_args!("recipe paper; {own}; at most {} weights", dims.nnz))
        .got(format_args!("recipe {}; {got}; {} weights", other.recipe, other.nnz))
        .help("start from a network of the same recipe and sizes, with fewer weights"))
}

/// Estimates beta where the settings ask for it; `memory` serves as the workspace.
fn set_beta<S: Backend>(
    operator: &mut S,
    budget: &Training,
    head: &mut Head,
    memory: &mut [u32],
    seed: u64,
) -> Result<Option<f32>> {
    let Head::One(OneOutput { step: Step::Theory { beta }, .. }) = head else { return Ok(None) };
    if *beta == 0.0 {
        let (s, d) = (budget.dims.nnz, budget.dims.inputs);
        let mut space = Workspace::new(memory);
        let support = EntriesMut { index: space.indices(s)?, value: space.floats(s)? };
        let mut nothing = [];
        let mut work = Work {
            residual: operator.machine().rows_in(&mut nothing),
            panel: space.floats((3 * s).max(d))?,
            scratch: space.floats(budget.scratch)?,
            strips: None,
        };
        let power = PowerIteration { seed, draw: 0, iterations: ITERATIONS };
        let gates = Gates::seeded(seed);
        let found = spectrum::extremes(operator, gates, SUPPORTS, power, support, &mut work);
        *beta = found.map_err(|error| operator.failed(error))?.beta;
        if !(beta.is_finite() && *beta > 0.0) {
            return Err(Error::new("the theory step has nothing to measure")
                .expected("data with columns that are not all zero")
                .got(format_args!("a largest eigenvalue of {beta}"))
                .help("use --step normalised"));
        }
    }
    Ok(Some(*beta))
}

/// The error of steps for several outputs that diverge.
fn diverged<S: Backend>(error: tamis::Error<S::Source>, on: &S) -> Error {
    let step = match error {
        tamis::Error::Diverged { step } if !on.has_failed() => step,
        error => return on.failed(error),
    };
    Error::new("the steps of the published method diverge")
        .expected("a loss that stays finite")
        .got(format_args!("an overflow in step {}", step + 1))
        .help(
            "use --recipe paper-safe, which undoes such steps, a shorter --step fixed:ETA, or the \
             default recipe",
        )
}

/// The error of a run without weights.
fn nothing_found(dims: &Dims, several: bool) -> Error {
    let other = if several { "use the default recipe" } else { "use --step normalised" };
    Error::new("training found no weight that explains the labels")
        .expected(format_args!("{} nonzeros", dims.nnz))
        .got("0")
        .help(format!(
            "check that some column is not all zero, scale inputs and labels to about 1, or {other}"
        ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Matrix, Values};
    use crate::operator::Blocked;
    use tamis::operator::sensing::Sensing;

    fn plan(ram: u64) -> Result<Plan> {
        Plan::new(Dims::new(5000, 70, 40, 90), false, &Schedule::PAPER, Memory::Ram(ram))
    }

    #[test]
    fn every_budget_is_met_or_refused_with_minimum() {
        let error = plan(1).unwrap_err().to_string();
        let needed: u64 =
            error.split("at least ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!(plan(needed - 1).is_err());
        let free =
            Plan::new(Dims::new(5000, 70, 40, 90), false, &Schedule::PAPER, Memory::Auto).unwrap();
        let mut last = 0;
        for ram in (needed..free.total_bytes() + 9973).step_by(9973) {
            let plan = plan(ram).unwrap();
            assert!((1..=40).contains(&plan.layout.panel) && plan.total_bytes() <= ram);
            last = plan.total_bytes();
        }
        assert_eq!(last, free.total_bytes(), "the largest budget lacks nothing");
        let least =
            Plan::new(Dims::new(5000, 70, 40, 90), false, &Schedule::PAPER, Memory::Least).unwrap();
        assert_eq!(least.total_bytes(), needed);
    }

    #[test]
    fn the_plan_is_what_the_operator_takes() {
        for (batch, bytes) in [(0, false), (300, false), (0, true), (9999, true)] {
            let schedule = Schedule { batch, ..Schedule::PAPER };
            let (n, d, m, s) = (1000, 30, 50, 60);
            let dims = Dims::new(n, d, m, s);
            for memory in [Memory::Panel(7), Memory::Least] {
                let plan = Plan::new(dims, bytes, &schedule, memory).unwrap();
                assert_eq!(
                    (plan.layout.strips, plan.layout.groups),
                    if memory == Memory::Least { (true, 1) } else { (false, 8) }
                );
                let values =
                    if bytes { Values::U8(vec![0; n * d]) } else { Values::F32(vec![0.0; n * d]) };
                let operator =
                    Blocked::new(Matrix::new(n, d, values).unwrap(), m, s, plan.layout).unwrap();
                let head = with_head(&schedule, Head::One(schedule.head));
                let budget = budget(Sizes { dims, outputs: 0 }, &head, plan.layout);
                assert_eq!(budget.scratch, operator.scratch(budget.strip));
                assert_eq!(budget.panel, operator.panel());
                let workspace = budget.workspace_bytes() + operator.workspace_bytes();
                assert_eq!(plan.workspace_bytes, workspace as u64);
                assert_eq!(plan.state_bytes, 16 * s as u64);
            }
        }
    }

    #[test]
    fn a_panel_is_at_most_all_neurons() {
        let dims = Dims::new(100, 5, 3, 4);
        let panel = |p| {
            Plan::new(dims, false, &Schedule::PAPER, Memory::Panel(p)).map(|plan| plan.layout.panel)
        };
        assert_eq!((panel(2).unwrap(), panel(100).unwrap()), (2, 3));
        assert!(panel(0).is_err());
    }
}
