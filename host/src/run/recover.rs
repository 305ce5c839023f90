//! The recovery recipe: a problem in memory to the weights that made it, where there are such.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use tamis::budget::Recovery;
use tamis::dims::Dims;
use tamis::gates::{Empty, Gates, Signs};
use tamis::lm::{self, Info, Params, Progress};
use tamis::sensing::Sensing;
use tamis::weights::Weights;

use super::memory::room_for;
use super::plan::layouts;
use super::train::{Outcome, Report, Size, Start, check_recipe, encode, score, shuffle};
use super::{Memory, Plan, Problem, plan};
use crate::data::Values;
use crate::operator::{Blocked, Layout, Stop};
use crate::{Error, Result};

/// How to recover.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecoverOptions {
    /// Hidden neurons, m.
    pub hidden: usize,
    /// Nonzero weights, s.
    pub size: Size,
    /// The search; its signs are [`Self::signs`].
    pub params: Params,
    /// Output signs; none for positive ones where no label is negative, and free ones else.
    pub signs: Option<Signs>,
    /// How much memory to take.
    pub memory: Memory,
    /// Threads; 0 for one per core. They never change the result.
    pub threads: usize,
    /// When to end the search: what it has found then is thresholded to s weights and fitted, which takes a little more.
    pub limits: Limits,
}

/// When a search ends that has not found an exact fit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits {
    /// After so much time.
    pub time: Option<Duration>,
    /// After so many passes over all rows, the work of products on fewer rows counted in parts.
    pub passes: Option<f64>,
}

impl RecoverOptions {
    /// The usual search on all cores.
    #[must_use]
    pub const fn new(hidden: usize, size: Size) -> Self {
        Self {
            hidden,
            size,
            params: Params::DEFAULT,
            signs: None,
            memory: Memory::Auto,
            threads: 0,
            limits: Limits { time: None, passes: None },
        }
    }
}

/// What a search did; part of the report.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Search {
    /// Whether the fit is exact in single precision: the loss is at most 3e-11 of the mean square of the labels.
    pub exact: bool,
    /// Rows that the search looked at first.
    pub search_rows: usize,
    /// Signs of the output weights while searching.
    pub signs: &'static str,
    /// Moves taken.
    pub moves: u32,
    /// Moves tried.
    pub tried: u32,
    /// Times that part of the best network was given up to search again.
    pub kicks: u32,
    /// Neurons merged into others.
    pub merges: u32,
    /// Neurons turned round.
    pub flips: u32,
    /// Which limit ended the search.
    pub limit: Option<&'static str>,
}

/// Recovers a network of one hidden layer that explains `problem`, exactly where it can.
///
/// `observe` is called after every outer step of the search and ends it by returning `false`, as `stop` does; what was
/// found until then is the outcome. The rows are first put into a random order that the seed fixes, since the search looks
/// at the first of them. Everything is allocated before the first step.
///
/// # Errors
/// A size out of bounds, a budget that is too small, labels outside the task; or the search was ended before its first step
/// ([`Error::is_interrupted`]).
pub fn recover(
    problem: Problem,
    options: &RecoverOptions,
    stop: &Stop,
    observe: impl FnMut(&Progress<'_>) -> bool + Send,
) -> Result<Outcome> {
    problem.check()?;
    check_recipe("lm", problem.task)?;
    let signs = options.signs.unwrap_or_else(|| match problem.labels.iter().any(|&label| label < 0.0) {
        true => Signs::Free,
        false => Signs::Positive,
    });
    let options = RecoverOptions { params: Params { signs, ..options.params }, ..*options };
    let dims = super::train::sizes(&problem, options.hidden, options.size, 0)?;
    let bytes = matches!(problem.data.values, Values::U8(_));
    let plan = RecoverPlan::new(dims, bytes, &options)?;
    room_for("the search", plan.plan.total_bytes(), "choose smaller --hidden or --nnz, or set --ram")?;
    plan::pool(options.threads)?.install(|| run(problem, dims, &plan, &options, stop, observe))
}

/// The memory that [`recover`] takes for data of the given sizes, of bytes or of floats; with `options.signs` as they
/// will be.
///
/// # Errors
/// A panel of no neuron; or a budget that is too small, with the bytes needed and given.
pub fn recover_plan(dims: Dims, bytes: bool, options: &RecoverOptions) -> Result<Plan> {
    let signs = options.signs.unwrap_or(options.params.signs);
    let options = RecoverOptions { params: Params { signs, ..options.params }, ..*options };
    RecoverPlan::new(dims, bytes, &options).map(|plan| plan.plan)
}

/// The memory of a search, known before it starts.
struct RecoverPlan {
    plan: Plan,
    budget: Recovery,
    slots: usize,
}

impl RecoverPlan {
    fn new(dims: Dims, bytes: bool, options: &RecoverOptions) -> Result<Self> {
        let slots = lm::slots(dims.hidden, options.params.signs);
        let usual = Layout::new(slots, dims.inputs);
        let with = |layout| Self::of(dims, bytes, options, slots, layout);
        match options.memory {
            Memory::Auto => Ok(with(usual)),
            Memory::Panel(0) => Err(plan::no_panel()),
            Memory::Panel(panel) => Ok(with(Layout { panel: panel.min(slots), ..usual })),
            Memory::Ram(ram) => {
                let mut least = u64::MAX;
                for layout in layouts(usual) {
                    let plan = with(layout);
                    if plan.plan.total_bytes() <= ram {
                        return Ok(plan);
                    }
                    least = least.min(plan.plan.total_bytes());
                }
                Err(Error::new("the memory budget is too small for these sizes")
                    .expected(format_args!("at least {least} bytes needed"))
                    .got(format_args!("{ram} bytes"))
                    .help("raise --ram, take fewer nonzeros (--nnz) or fewer rows, or use --recipe paper, which needs less"))
            }
        }
    }

    fn of(dims: Dims, bytes: bool, options: &RecoverOptions, slots: usize, layout: Layout) -> Self {
        let scratch = dims.samples + dims.inputs;
        let budget = Recovery::new(dims, layout.panel, scratch, options.params.signs.linear(0));
        let held = Dims::new(dims.samples, dims.inputs, slots, budget.room());
        let operator = layout.bytes(held, bytes) as u64;
        let state_bytes = budget.state_bytes() as u64;
        let plan = Plan {
            panel: layout.panel,
            tile: layout.tile,
            hold: layout.hold,
            state_bytes,
            workspace_bytes: operator.saturating_add(budget.workspace_bytes() as u64),
        };
        Self { plan, budget, slots }
    }
}

fn run(
    problem: Problem,
    dims: Dims,
    plan: &RecoverPlan,
    options: &RecoverOptions,
    stop: &Stop,
    mut observe: impl FnMut(&Progress<'_>) -> bool,
) -> Result<Outcome> {
    let start = Start::new(&problem);
    let Problem { data, mut labels, task } = problem;
    let data = shuffle(data, &mut labels, options.params.seed)?;
    let mut operator = Blocked::new(data, plan.slots, plan.budget.room(), plan.plan.layout())?;
    // Before the first step nothing is lost; later the search is brought to an end.
    let nothing_yet = Arc::new(AtomicBool::new(true));
    operator.heed(Some(stop.heeded(&nothing_yet)));
    debug_assert_eq!(operator.scratch(dims.samples), plan.budget.scratch);
    let mut memory = vec![0; plan.budget.words()];
    let began = Instant::now();
    let mut limit = None;
    let mut interrupted = false;
    let limits = options.limits;
    let observe = |progress: &Progress<'_>| {
        if progress.step > 0 {
            nothing_yet.store(false, Ordering::Relaxed);
        }
        let passes = progress.rows_read as f64 / dims.samples as f64;
        if limits.time.is_some_and(|limit| began.elapsed() >= limit) {
            limit = Some("time");
        } else if limits.passes.is_some_and(|limit| passes >= limit) {
            limit = Some("passes");
        }
        let goes_on = observe(progress);
        interrupted |= !goes_on || stop.asked();
        limit.is_none() && !interrupted
    };
    let (weights, info) = match lm::run(&mut operator, &labels, dims, &options.params, &mut memory, observe) {
        Err(tamis::Error::Stopped) => return Err(Error::interrupted()),
        found => found?,
    };
    operator.heed(None);
    let signs = options.params.signs;
    let (mut index, value) = (weights.index().to_vec(), weights.value().to_vec());
    let mut neurons = plan.slots;
    if signs == Signs::Positive {
        // The search has neurons to spare; without signs any number will do.
        for (new, block) in weights.blocks().enumerate() {
            let from = index.partition_point(|&j| (j as usize) < block.neuron() * dims.inputs);
            let shift = ((block.neuron() - new) * dims.inputs) as u32;
            index[from..][..block.values().len()].iter_mut().for_each(|j| *j -= shift);
        }
        neurons = dims.hidden;
    }
    let weights = Weights::new(dims.inputs, neurons, &index, &value)?;
    let model = encode(weights, signs, dims.hidden, task)?;
    let live = weights.blocks().count();
    // The operator counts the neurons of the search.
    let own = Weights::new(dims.inputs, plan.slots, &index, &value)?;
    let gates = Gates::of(own, signs, Empty::Freeze, 0, u32::MAX);
    let score = score(&mut operator, task, &labels, own, gates, &mut memory)?;
    if weights.nnz() == 0 && labels.iter().any(|&label| label != 0.0) {
        return Err(Error::new("training found no weight that explains the labels")
            .expected(format_args!("{} nonzeros", dims.nnz))
            .got("0")
            .help("check that some column is not all zero, or scale the inputs to about 1"));
    }
    if !score.loss.is_finite() {
        return Err(Error::new("the predictions of the network leave the range of 32-bit floats")
            .expected("a finite loss")
            .got(score.loss)
            .help("scale the labels to about 1"));
    }
    let report = Report {
        recipe: "lm",
        task,
        samples: dims.samples,
        inputs: dims.inputs,
        hidden: dims.hidden,
        requested_nnz: dims.nnz,
        nnz: weights.nnz(),
        live,
        loss: score.loss,
        psnr_db: score.psnr_db,
        accuracy: score.accuracy,
        epochs: info.steps,
        steps: info.steps,
        trials: 0,
        passes: info.rows_read as f64 / dims.samples as f64,
        beta: None,
        search: Some(search(&info, options, dims, limit)),
        stopped: interrupted,
        seconds: start.seconds(),
        threads: rayon::current_num_threads(),
        seed: options.params.seed,
        data_bytes: start.data_bytes,
        plan: plan.plan,
        peak_rss_bytes: super::peak_rss_bytes(),
    };
    Ok(Outcome { index, value, model, report })
}

fn search(info: &Info, options: &RecoverOptions, dims: Dims, limit: Option<&'static str>) -> Search {
    Search {
        exact: info.exact,
        search_rows: options.params.search_rows(dims.nnz, dims.samples),
        signs: match options.params.signs {
            Signs::Positive => "positive",
            Signs::Balanced => "balanced",
            Signs::Free => "free",
        },
        moves: info.moves,
        tried: info.trials,
        kicks: info.kicks,
        merges: info.merges,
        flips: info.flips,
        limit,
    }
}
