//! The recovery recipe: a problem in memory to the weights that made it, where there are such.

use serde::Serialize;
use tamis::budget::Recovery;
use tamis::dims::Dims;
use tamis::factored::{self, Net};
use tamis::gates::{Empty, Gates, Signs};
use tamis::lm::{self, Checkpoint, Info, Params, Progress};
use tamis::math::unit_scale;
use tamis::weights::Weights;

use super::anneal::encode_net;
use super::fallback;
use super::found::{self, Found};
use super::keep::{self, Kept};
use super::layers::{End, SparseLayer, encode_layers};
use super::limits::{Limits, Watch};
use super::memory::room_for;
use super::plan::choose;
use super::rest::Rest;
use super::train::{Origin, Outcome, Report, Size, Start, check_recipe, encode, held_out, shuffle};
use super::{Memory, Plan, Problem, Score, Task, plan};
use crate::data::Values;
use crate::operator::{Blocked, Layout, Stop};
use crate::{Error, Result};

/// How to recover.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecoverOptions {
    /// Hidden neurons, m; of the first layer where there are two.
    pub hidden: usize,
    /// Neurons of the second hidden layer; none for one layer. Both are searched for together ([`lm::run_deep`]).
    pub second: Option<usize>,
    /// Nonzero weights, s, of all layers.
    pub size: Size,
    /// The search; its signs are [`Self::signs`], and `validation` is set from the data.
    pub params: Params,
    /// Output signs; none for positive ones where no label is negative, and free ones else.
    pub signs: Option<Signs>,
    /// How much memory to take.
    pub memory: Memory,
    /// Threads; 0 for one per core. They never change the result.
    pub threads: usize,
    /// When to end the search: what it has found then is thresholded to s weights and fitted, which takes a little more.
    pub limits: Limits,
    /// Part of the rows that is held out to choose the best network of at most s weights, from 0 up to but not 1.
    pub validation: f64,
    /// Most turns of published steps and a search from where they end, after a search without an exact fit: for one hidden layer and
    /// one output with positive signs, and no rows held out. Of limits a part is left for them. 0 for none.
    pub turns: u32,
    /// Whether checkpoints are kept ([`super::Keep`]), so that the plan counts the memory of two: the one to go on from, and the
    /// last one.
    pub checkpoints: bool,
}

impl RecoverOptions {
    /// The usual search on all cores.
    #[must_use]
    pub const fn new(hidden: usize, size: Size) -> Self {
        Self {
            hidden,
            second: None,
            size,
            params: Params::DEFAULT,
            signs: None,
            memory: Memory::Auto,
            threads: 0,
            limits: Limits::NONE,
            validation: 0.0,
            turns: 10,
            checkpoints: false,
        }
    }
}

/// What a search did; part of the report.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Search {
    /// Whether the fit is exact in single precision: the loss is at most 3e-11 of the mean square of the labels.
    pub exact: bool,
    /// Rows that the search looked at first.
    pub search_rows: usize,
    /// Signs of the output weights while searching; `own` for several outputs, whose weights have signs of their own;
    /// `positive` for two layers, whose second one is summed up.
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
    /// Rows held out; `loss` and what follows from it are about the others.
    pub validation_samples: usize,
    /// Mean squared error on the rows held out; none without such rows.
    pub validation_loss: Option<f64>,
    /// As [`Score::psnr_db`], on the rows held out.
    pub validation_psnr_db: Option<f64>,
    /// As [`Score::accuracy`], on the rows held out.
    pub validation_accuracy: Option<f64>,
    /// Whether the search ended for want of progress on the rows held out.
    pub early: bool,
    /// Times that steps of the published method led from its network to a better one, and a search from there followed: after a
    /// search of one output with positive signs and no rows held out that ended without an exact fit.
    pub turns: u32,
}

/// Recovers a network of one hidden layer, or of two ([`RecoverOptions::second`]), that explains `problem`, exactly where it can.
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
    mut observe: impl FnMut(&Progress<'_>) -> bool + Send,
) -> Result<Outcome> {
    let settled = Settled::new(&problem, options)?;
    settled.start(problem, Origin::Zero, stop, &mut observe)
}

/// As [`recover`], from the network of another search (a *warm start*) of the same columns, outputs, signs and neurons, on these
/// rows or others, with at most as many weights.
///
/// # Errors
/// As [`recover`]; or the network is of other sizes.
///
/// ```
/// use tamis::{dims::Dims, gates::Signs};
/// use tamis_host::{data::planted, operator::Stop, run::{self, Problem, RecoverOptions, Size, Task}};
///
/// let planted = planted::network(Dims::new(600, 16, 2, 6), Signs::Positive, 1)?;
/// let problem = Problem { data: planted.data, labels: planted.labels, task: Task::Regression };
/// let few = RecoverOptions::new(2, Size::Nonzeros(3));
/// let first = run::recover(problem.clone(), &few, &Stop::new(), |_| true)?;
/// let all = RecoverOptions::new(2, Size::Nonzeros(6));
/// let second = run::recover_from(problem, &all, &first, &Stop::new(), |_| true)?;
/// assert!(second.report.search.unwrap().exact);
/// # Ok::<(), tamis_host::Error>(())
/// ```
pub fn recover_from(
    problem: Problem,
    options: &RecoverOptions,
    from: &Outcome,
    stop: &Stop,
    mut observe: impl FnMut(&Progress<'_>) -> bool + Send,
) -> Result<Outcome> {
    let settled = Settled::new(&problem, options)?;
    settled.start(problem, Origin::Network(from), stop, &mut observe)
}

/// Goes on from a checkpoint that [`super::Keep::load`] gave for this problem and these options: the model and the counters are
/// the same, bit for bit, as if the search had never been interrupted, on any number of threads of a machine with the same
/// vector instructions.
///
/// # Errors
/// As [`recover`]; or the checkpoint does not fit.
pub fn resume(
    problem: Problem,
    options: &RecoverOptions,
    kept: &Kept,
    stop: &Stop,
    mut observe: impl FnMut(&Progress<'_>) -> bool + Send,
) -> Result<Outcome> {
    let settled = Settled::new(&problem, options)?;
    settled.start(problem, Origin::Kept(kept), stop, &mut observe)
}

/// A search whose sizes, settings and memory are settled.
#[derive(Debug, Clone)]
pub(super) struct Settled {
    pub(super) dims: Dims,
    /// Outputs that weights lead to; 0 for one label a row, where output weights are signs.
    pub(super) outputs: usize,
    /// Neurons of the second layer that were asked for.
    asked: Option<usize>,
    /// With the signs and the rows held out that the problem leads to, and no more neurons in the second layer than weights.
    pub(super) options: RecoverOptions,
    pub(super) plan: RecoverPlan,
}

impl Settled {
    pub(super) fn new(problem: &Problem, options: &RecoverOptions) -> Result<Self> {
        problem.check()?;
        check_recipe("lm", problem.task)?;
        let outputs = output_weights(problem);
        if outputs > 0 && options.signs.is_some() {
            return Err(Error::new("output signs are for labels of one column")
                .expected("labels of one column, or no --signs")
                .got(format_args!("--signs for {outputs} columns"))
                .help("leave --signs out: the weights to several outputs have signs of their own"));
        }
        if options.second.is_some() {
            check_second(problem, options, outputs)?;
        }
        let signs = options.signs.unwrap_or_else(|| usual_signs(problem));
        let behind = options.second.unwrap_or(outputs);
        let dims = super::train::sizes(problem.shape(), options.hidden, options.size, behind)?;
        let asked = options.second;
        // A neuron needs a weight.
        let options = &RecoverOptions { second: asked.map(|second| second.min(dims.nnz)), ..*options };
        let inner = inner(outputs, options);
        let (slots, width) = (lm::slots(dims.hidden, signs), dims.inputs.saturating_add(inner));
        if slots.saturating_mul(width) > u32::MAX as usize {
            return Err(Error::new("the number of hidden neurons is out of bounds for a search")
                .expected(format_args!(
                    "at most {} neurons, those to spare included",
                    u32::MAX as usize / width
                ))
                .got(format_args!("{slots} for --hidden {}", dims.hidden))
                .help("choose fewer neurons; 10 to 1000 are usual"));
        }
        let (rows, part) = (dims.samples, options.validation);
        let validation = held_out(rows, part)?;
        if part > 0.0 && validation == 0 {
            return Err(Error::new("there are too few rows to hold some out")
                .expected("a part that makes at least one row, with one left")
                .got(format_args!("--validation {part} of {rows} rows"))
                .help("give more rows or a larger part, or leave --validation out"));
        }
        let options = RecoverOptions { params: Params { signs, validation, ..options.params }, ..*options };
        let bytes = matches!(problem.data.values, Values::U8(_));
        let plan = RecoverPlan::new(dims, outputs, bytes, &options)?;
        Ok(Self { dims, outputs, asked, options, plan })
    }

    fn start(
        &self,
        problem: Problem,
        origin: Origin<'_>,
        stop: &Stop,
        observe: &mut (dyn FnMut(&Progress<'_>) -> bool + Send),
    ) -> Result<Outcome> {
        let total = self.plan.plan.total_bytes();
        room_for("the search", total, "choose smaller --hidden or --nnz, or set --ram")?;
        plan::pool(self.options.threads)?.install(|| {
            let start = Start::new(&problem);
            let whole = self.options.limits;
            let limits = if self.falls_back() { fallback::searching(whole) } else { whole };
            let found = self.search(problem, origin, (limits, stop), observe)?;
            Ok(fallback::better(self, found, (&start, stop), observe))
        })
    }
}

/// Signs of the output weights where nothing else is said: what the labels ask for.
pub(super) fn usual_signs(problem: &Problem) -> Signs {
    match output_weights(problem) == 0 && problem.labels.iter().any(|&label| label < 0.0) {
        true => Signs::Free,
        false => Signs::Positive,
    }
}

/// Outputs that weights lead to; 0 for one label a row, where output weights are signs.
fn output_weights(problem: &Problem) -> usize {
    match problem.outputs() {
        0 | 1 => 0,
        outputs => outputs,
    }
}

/// Outputs of the first layer while searching; 0 where output weights are signs.
fn inner(outputs: usize, options: &RecoverOptions) -> usize {
    options.second.map_or(outputs, lm::second_slots)
}

/// Whether two hidden layers can be searched for together: one output that is never negative, as a sum of neurons is.
pub(crate) fn is_sum(problem: &Problem) -> bool {
    problem.task != Task::Multiclass && problem.outputs() == 1 && problem.labels.iter().all(|&y| y >= 0.0)
}

/// Checks that two layers can be what the problem is about.
fn check_second(problem: &Problem, options: &RecoverOptions, outputs: usize) -> Result<()> {
    let second = options.second.unwrap_or(0);
    if second == 0 || second > u16::MAX.into() {
        return Err(Error::new("the number of neurons of the second hidden layer is out of bounds")
            .expected(format_args!("--hidden M1,M2 with 1 to {} for M2", u16::MAX))
            .got(second)
            .help("10 to 100 are usual"));
    }
    if outputs > 0 {
        return Err(Error::new("a search for two hidden layers is for labels of one column")
            .expected("labels of one column, or --hidden with one number")
            .got(format_args!("{outputs} columns"))
            .help("pass one size to --nnz, which trains layer by layer, or one number to --hidden"));
    }
    if options.signs.is_some() {
        return Err(Error::new("output signs are for one hidden layer")
            .expected("no --signs")
            .got(format_args!("--signs with {second} neurons in a second layer"))
            .help("leave --signs out: the weights of the second layer have signs of their own"));
    }
    if let Some(label) = problem.labels.iter().find(|label| **label < 0.0) {
        return Err(Error::new("a sum of the second layer's neurons is never below 0")
            .expected("labels of 0 or more for a search for two hidden layers")
            .got(label)
            .help("search for one hidden layer, or train one size with --tune-epochs 20, layer by layer"));
    }
    Ok(())
}

/// The memory that [`recover`] takes for data of the given sizes and one label a row, of bytes or of floats; with `options.signs` as they
/// will be.
///
/// # Errors
/// A panel of no neuron; or a budget that is too small, with the bytes needed and given.
pub fn recover_plan(dims: Dims, bytes: bool, options: &RecoverOptions) -> Result<Plan> {
    let signs = options.signs.unwrap_or(options.params.signs);
    let options = RecoverOptions { params: Params { signs, ..options.params }, ..*options };
    RecoverPlan::new(dims, 0, bytes, &options).map(|plan| plan.plan)
}

/// How a search needs less memory.
const LESS: &str =
    "raise --ram, take fewer nonzeros (--nnz) or fewer rows, or use --recipe paper, which needs less";

/// The memory of a search, known before it starts.
#[derive(Debug, Clone)]
pub(super) struct RecoverPlan {
    pub(super) plan: Plan,
    pub(super) budget: Recovery,
    pub(super) slots: usize,
}

impl RecoverPlan {
    /// For networks of so many outputs, 0 where output weights are signs; for two layers of one.
    fn new(dims: Dims, outputs: usize, bytes: bool, options: &RecoverOptions) -> Result<Self> {
        Self::exactly(dims, outputs, bytes, options, lm::slots(dims.hidden, options.params.signs))
    }

    /// The same for an operator of so many blocks.
    pub(super) fn exactly(
        dims: Dims,
        outputs: usize,
        bytes: bool,
        options: &RecoverOptions,
        slots: usize,
    ) -> Result<Self> {
        let outputs = inner(outputs, options);
        let with = |layout| Self::of((dims, outputs), bytes, options, slots, layout);
        let usual = Layout::new(slots, dims.inputs);
        // Products of several outputs are not by one Gram matrix.
        let usual = if outputs > 0 {
            usual
        } else {
            usual.with_gram(with(usual).budget.room()).with_activations(dims.samples, slots)
        };
        let plan = choose(options.memory, (usual, slots), LESS, |layout| with(layout).plan)?;
        Ok(with(plan.layout()))
    }

    fn of(
        (dims, outputs): (Dims, usize),
        bytes: bool,
        options: &RecoverOptions,
        slots: usize,
        layout: Layout,
    ) -> Self {
        let budget = if outputs > 0 {
            let scratch = factored::provided::scratch(dims.samples, dims.inputs);
            match options.second {
                Some(_) => Recovery::deep(dims, (slots, outputs), layout.panel, scratch),
                None => Recovery::factored(dims, outputs, layout.panel, scratch),
            }
        } else {
            let scratch = dims.samples + dims.inputs;
            Recovery::new(dims, layout.panel, scratch, options.params.signs.linear(0))
        };
        let held = Dims::new(dims.samples, dims.inputs, slots, budget.room());
        let more = if outputs > 0 { layout.outputs_bytes(held, outputs) } else { 0 };
        let operator = layout.bytes(held, bytes) + more;
        let checkpoints = plan::checkpoints(options.checkpoints, keep::lm_bytes(&budget));
        let workspace = [operator, budget.workspace_bytes(), checkpoints];
        let plan = Plan::sum(layout, budget.state_bytes(), &workspace);
        Self { plan, budget, slots }
    }
}

impl Settled {
    /// The outcome of the search alone within the limits, and what is left of the problem.
    pub(super) fn search(
        &self,
        problem: Problem,
        origin: Origin<'_>,
        (limits, stop): (Limits, &Stop),
        observe: &mut (dyn FnMut(&Progress<'_>) -> bool + Send),
    ) -> Result<(Outcome, Rest)> {
        let Self { dims, outputs, options, plan, .. } = self;
        let (dims, outputs) = (*dims, *outputs);
        let start = Start::new(&problem);
        let Problem { mut data, mut labels, task } = problem;
        shuffle(&mut data, &mut labels, options.params.seed);
        let mut operator = Blocked::new(data, plan.slots, plan.budget.room(), plan.plan.layout())?;
        if let inner @ 1.. = inner(outputs, options) {
            operator = operator.with_outputs(inner);
        }
        let mut memory = vec![0; plan.budget.words()];
        let mut watch = Watch::new(limits, stop);
        operator.heed(Some(watch.stop()));
        let observe = |progress: &Progress<'_>| {
            let passes = progress.rows_read as f64 / dims.samples as f64;
            watch.goes_on(passes, observe(progress))
        };
        let warm = if let Origin::Network(from) = origin { Some(self.warm(from, &labels)?) } else { None };
        let checkpoint = match (origin, &warm) {
            (Origin::Kept(kept), _) => Some(kept.lm()?),
            (_, Some(warm)) => Some(Checkpoint::starting(warm.net(plan.slots)?, self.search_rows())),
            _ => None,
        };
        let (params, from) = (&options.params, checkpoint.as_ref());
        let memory_of = &mut memory;
        let searched = match (options.second, outputs, from) {
            (Some(second), _, None) => {
                lm::run_deep(&mut operator, &labels, (dims, second), params, memory_of, observe)
            }
            (Some(second), _, Some(from)) => {
                lm::resume_deep(&mut operator, &labels, (dims, second), params, from, memory_of, observe)
            }
            (None, 0, None) => lm::run(&mut operator, &labels, dims, params, memory_of, observe).map(single),
            (None, 0, Some(from)) => {
                lm::resume(&mut operator, &labels, dims, params, from, memory_of, observe).map(single)
            }
            (None, _, None) => lm::run_net(&mut operator, &labels, dims, params, memory_of, observe),
            (None, _, Some(from)) => {
                lm::resume_net(&mut operator, &labels, dims, params, from, memory_of, observe)
            }
        };
        let (net, info) = match searched {
            Err(tamis::Error::Stopped) => return Err(Error::interrupted()),
            found => found?,
        };
        operator.heed(None);
        let (limit, stopped) = watch.ended(info.stopped);
        let mut found = Found::new(net);
        let mut neurons = plan.slots;
        if params.signs == Signs::Positive {
            // The search has neurons to spare; without signs any number will do.
            found.renumber();
            neurons = dims.hidden;
        }
        let net = found.net(neurons)?;
        let model = match (options.second, outputs) {
            (Some(_), _) => encode_two(net, self.asked.unwrap_or(0), task)?,
            (None, 0) => encode(net.w(), params.signs, dims.hidden, task)?,
            (None, _) => encode_net(net, task.stored())?,
        };
        let (nnz, live) = (net.nnz(), net.w().blocks().count());
        let second_live = options.second.map(|second| {
            let is_live = |k: &usize| net.wt().blocks().flat_map(|wt| wt.entries()).any(|(j, _)| j == *k);
            (0..second).filter(is_live).count()
        });
        // The operator counts the neurons of the search.
        let own = found.net(plan.slots)?;
        let trained = dims.samples - params.validation;
        let own = (own, Gates::of(own.w(), params.signs, Empty::Freeze, 0, u32::MAX));
        let is_summed = options.second.is_some();
        let mut score = |rows| {
            let rows = (rows, dims.samples);
            found::score(&mut operator, (task, is_summed), &labels, own, rows, &mut memory)
        };
        let held = (params.validation > 0).then(|| score(trained..dims.samples)).transpose()?;
        let score = score(0..trained)?;
        check_result((nnz, params.signs), &labels[..trained * outputs.max(1)], (dims, outputs), &score)?;
        let report = Report {
            recipe: "lm",
            task,
            samples: dims.samples,
            inputs: dims.inputs,
            outputs: outputs.max(1),
            hidden: dims.hidden,
            second_hidden: self.asked,
            requested_nnz: dims.nnz,
            nnz,
            kept: Vec::new(),
            live,
            second_live,
            loss: score.loss,
            psnr_db: score.psnr_db,
            zero_psnr_db: score.zero_psnr_db,
            accuracy: score.accuracy,
            epochs: info.steps,
            steps: info.steps,
            trials: 0,
            passes: info.rows_read as f64 / dims.samples as f64,
            beta: None,
            published: None,
            search: Some(Search {
                validation_loss: held.as_ref().map(|held| held.loss),
                validation_psnr_db: held.as_ref().and_then(|held| held.psnr_db),
                validation_accuracy: held.as_ref().and_then(|held| held.accuracy),
                ..self.done(&info)
            }),
            resumed_steps: origin.steps(),
            limit,
            stopped,
            seconds: start.seconds(),
            threads: rayon::current_num_threads(),
            seed: options.params.seed,
            data_bytes: start.data_bytes,
            plan: plan.plan,
            peak_rss_bytes: super::peak_rss_bytes(),
        };
        let Found { w: (index, value), wt: (out_index, out_value), .. } = found;
        let outcome = Outcome { index, value, out_index, out_value, model, report };
        Ok((outcome, Rest { operator, labels, task, order: Some(options.params.seed) }))
    }

    /// Rows that the search looks at first.
    fn search_rows(&self) -> usize {
        let params = &self.options.params;
        let trained = self.dims.samples - params.validation;
        match self.options.second {
            Some(_) => params.deep_search_rows(self.dims.nnz, trained),
            None => params.search_rows(self.dims.nnz, trained),
        }
    }

    /// The network of another search as this one has it while searching.
    fn warm(&self, from: &Outcome, labels: &[f32]) -> Result<Found> {
        let Self { dims, outputs, options, plan, .. } = self;
        let other = &from.report;
        let signs = |report: &Report| report.search.map(|search| search.signs);
        let of = |inputs, outputs, hidden, second: Option<usize>, signs: &str| {
            let second = second.map_or_else(String::new, |second| format!(" and {second}"));
            format!("{inputs} columns, {outputs} outputs, {hidden}{second} neurons, signs {signs}")
        };
        let own = of(dims.inputs, (*outputs).max(1), dims.hidden, self.asked, self.signs());
        let found = of(
            other.inputs,
            other.outputs,
            other.hidden,
            other.second_hidden,
            signs(other).unwrap_or("of another recipe"),
        );
        if own != found || other.nnz > plan.budget.work() {
            return Err(Error::new("the network to start from does not fit the search")
                .expected(format_args!("{own}; at most {} weights", plan.budget.work()))
                .got(format_args!("{found}; {} weights", other.nnz))
                .help("start from a network of the same recipe and sizes, with fewer weights"));
        }
        let c = inner(*outputs, options);
        let scale = unit_scale(labels);
        let scaled = |values: &[f32]| values.iter().map(|v| scale * v).collect();
        let (index, out_index) = (from.index.clone(), &from.out_index);
        let (value, out_value) = match c {
            0 => (scaled(&from.value), Vec::new()),
            _ => (from.value.clone(), scaled(&from.out_value)),
        };
        let out_index = match options.second {
            // Output 0 passes activations through.
            Some(_) => {
                let width = other.second_hidden.unwrap_or(1).min(other.requested_nnz);
                let second = width.max(1) as u32;
                out_index.iter().map(|j| j / second * c as u32 + j % second + 1).collect()
            }
            None => out_index.clone(),
        };
        Ok(Found { w: (index, value), wt: (out_index, out_value), widths: [dims.inputs, c] })
    }

    /// As [`Search::signs`].
    const fn signs(&self) -> &'static str {
        match (self.outputs, self.options.params.signs) {
            (0, signs) => signs_name(signs),
            _ => "own",
        }
    }

    fn done(&self, info: &Info) -> Search {
        let params = &self.options.params;
        Search {
            exact: info.exact,
            search_rows: self.search_rows(),
            signs: self.signs(),
            moves: info.moves,
            tried: info.trials,
            kicks: info.kicks,
            merges: info.merges,
            flips: info.flips,
            validation_samples: params.validation,
            validation_loss: None,
            validation_psnr_db: None,
            validation_accuracy: None,
            early: info.early,
            turns: 0,
        }
    }
}

/// As `--signs` calls them.
pub(super) const fn signs_name(signs: Signs) -> &'static str {
    match signs {
        Signs::Positive => "positive",
        Signs::Balanced => "balanced",
        Signs::Free => "free",
    }
}

/// A network of one output as one of two sides.
fn single<'a>((weights, info): (Weights<'a>, Info)) -> (Net<'a>, Info) {
    (Net::single(weights), info)
}

/// The model of two hidden layers whose second one is summed up.
fn encode_two(net: Net<'_>, second: usize, task: Task) -> Result<Vec<u8>> {
    let (w, v) = (net.w(), net.wt());
    let neurons = (0..w.hidden()).map(|i| w.block(i).entries().collect()).collect();
    let first = SparseLayer { inputs: w.inputs(), requested: w.hidden(), neurons };
    let mut neurons = vec![Vec::new(); v.inputs()];
    for block in v.blocks() {
        block.entries().for_each(|(k, value)| neurons[k].push((block.neuron(), value)));
    }
    let second = SparseLayer { inputs: w.hidden(), requested: second, neurons };
    encode_layers(&[first, second], End::Sum(&[]), Some(task.stored()))
}

/// Refuses a result that says nothing.
fn check_result(
    (nnz, signs): (usize, Signs),
    labels: &[f32],
    (dims, outputs): (Dims, usize),
    score: &Score,
) -> Result<()> {
    if nnz == 0 && labels.iter().any(|&label| label != 0.0) {
        return Err(Error::new("training found no weight that explains the labels")
            .expected(format_args!("{} nonzeros", dims.nnz))
            .got("0")
            .help(match (outputs, dims.nnz) {
                (0, _) if !signs.both() && labels.iter().all(|&label| label <= 0.0) => {
                    "pass --signs free: with positive output weights no output is below 0"
                }
                (1.., ..4) => "raise --nnz: a neuron needs a weight on either side",
                _ => "check that some column is not all zero, or scale inputs and labels to about 1",
            }));
    }
    if !score.loss.is_finite() {
        return Err(Error::new("the predictions of the network leave the range of 32-bit floats")
            .expected("a finite loss")
            .got(score.loss)
            .help("scale the labels to about 1"));
    }
    Ok(())
}
