//! A search for the network that made the labels: Levenberg-Marquardt hard thresholding with local
//! search moves.

use tamis::base::budget::Recovery;
use tamis::base::dims::Dims;
use tamis::base::math::unit_scale;
use tamis::learn::lm::{self, Checkpoint, Goal, Params, Progress};
use tamis::learn::start::{self, continue_if};
use tamis::network::gates::{Empty, Gates, Signs};
use tamis::network::net::Network;

use crate::base::limits::Watch;
use crate::data::{Matrix, Problem, Task};
use crate::model::Score;
use crate::operator::{Backend, Layout, OperatorSizes, Placed, on_device};
use crate::train::budget::Memory;
use crate::train::check::{Sizes, given_validation_rows, signs_name, sizes, weighted_outputs};
use crate::train::checkpoint::{self, Kind};
use crate::train::encode::{End, SparseLayer, encode, encode_layers};
use crate::train::lm_options::LmOptions;
use crate::train::network::{Scored, SparseNetwork};
use crate::train::plan::{Plan, SMALL_PANEL, choose};
use crate::train::report::{Details, Neurons, Report, SearchDetails};
use crate::train::trained::{Job, ReturnedData, Start, Stopwatch, Trained, no_mask, shuffle};
use crate::{Error, Result};

/// A search whose sizes and memory are known.
#[derive(Debug, Clone)]
pub(crate) struct SearchSetup<'a> {
    /// With the outputs that weights lead to.
    pub(crate) sizes: Sizes,
    /// Neurons of the second layer, no more than weights: a neuron needs one.
    pub(crate) second: Option<usize>,
    /// With the signs, the validation split and the seed.
    pub(crate) params: Params,
    pub(crate) plan: Plan,
    pub(crate) budget: Recovery,
    /// Blocks of the operator.
    pub(crate) slots: usize,
    pub(crate) job: Job<'a>,
}

impl<'a> SearchSetup<'a> {
    pub(crate) fn new(problem: &Problem, options: &LmOptions, job: &Job<'a>) -> Result<Self> {
        problem.check()?;
        let outputs = weighted_outputs(problem);
        if outputs > 0 && options.signs.is_some() {
            return Err(Error::new("output signs are for labels of one column")
                .expected("labels of one column, or no --signs")
                .got(format_args!("--signs for {outputs} columns"))
                .help(
                    "leave --signs out: the weights to several outputs have signs of their own",
                ));
        }
        if let Some(second) = job.second {
            check_second(problem, options, second, outputs)?;
        }
        let (rows, inputs) = (problem.data.rows, problem.data.cols);
        let behind = job.second.unwrap_or(outputs);
        let sizes = Sizes { outputs, ..sizes(rows, inputs, job.hidden, job.budget, behind)? };
        let dims = sizes.dims;
        let second = job.second.map(|second| second.min(dims.nnz));
        let signs = options.signs.unwrap_or_else(|| default_signs(problem));
        let has_term = outputs == 0 && second.is_none() && signs != Signs::Balanced;
        let first = match options.adam_steps {
            Some(steps) if steps > 0 && !has_term => return Err(no_adam()),
            Some(steps) => steps,
            None if has_term && has_first(problem, dims) => FIRST.saturating_mul(dims.nnz as u32),
            None => 0,
        };
        // Alternations, and searches after steps of Adam, lower the squared error.
        let is_squared = options.turns > 0 || first > 0;
        let ceiling = if is_squared { 1.0 } else { options.params.ceiling };
        let is_turned = first > 0 && signs == Signs::Positive;
        let signs = if is_turned { Signs::Unoriented } else { signs };
        let width = dims.inputs.saturating_add(inner_outputs(outputs, second));
        let slots = lm::slots(dims.hidden, signs);
        if slots.saturating_mul(width) > u32::MAX as usize {
            return Err(Error::new("the number of hidden neurons is out of bounds for a search")
                .expected(format_args!(
                    "at most {} neurons, those to spare included",
                    u32::MAX as usize / width
                ))
                .got(format_args!("{slots} for --hidden {}", dims.hidden))
                .help("choose fewer neurons, such as 10 to 1000"));
        }
        let validation = given_validation_rows(rows, options.validation)?;
        let seed = job.seed;
        let params = Params { signs, first, validation, seed, ceiling, ..options.params };
        Self::planned(sizes, second, params, problem.data.is_bytes(), slots, job, None)
    }

    /// With the layout that fits the memory of the job, for an operator of so many blocks; none that takes
    /// more than `most`, where there is such.
    pub(crate) fn planned(
        sizes: Sizes,
        second: Option<usize>,
        params: Params,
        bytes: bool,
        slots: usize,
        job: &Job<'a>,
        most: Option<Layout>,
    ) -> Result<Self> {
        let Sizes { dims, outputs } = sizes;
        let outputs = inner_outputs(outputs, second);
        let budget_of = |panel: usize| {
            // The operators need scratch for random gates alone.
            match second {
                Some(_) => Recovery::deep(dims, slots, outputs, panel, 0),
                None if outputs > 0 => Recovery::factored(dims, outputs, panel, 0),
                None => Recovery::new(dims, panel, 0, params.signs.linear(0)),
            }
        };
        let with = |layout: Layout| {
            let budget = budget_of(layout.panel);
            let held = Dims::new(dims.samples, dims.inputs, slots, budget.room());
            let operator = job.operator_bytes(layout, held, bytes, outputs);
            let form = Checkpoint::form(&budget, 0, Signs::Positive);
            let checkpoints = checkpoint::bytes(job.checkpoints, Kind::Lm, &form);
            let workspace = [operator, budget.workspace_bytes(), checkpoints];
            Plan::sum(layout, budget.state_bytes(), &workspace)
        };
        // A search spends its time elsewhere than in panels.
        let mut default = job.layout(slots, dims.inputs, outputs, SMALL_PANEL);
        if outputs == 0 {
            // Products of several outputs are not by one Gram matrix.
            let budget = budget_of(default.panel);
            default = default.with_gram([budget.work(), budget.room()]);
            // Gates are read to make the matrix, and then no more; a ceiling closes some of them.
            let held = slots.min(budget.room()).saturating_mul(dims.samples) / 8;
            let has_room = held <= MOST_HELD || matches!(job.memory, Memory::Ram(_));
            let is_of_use = default.gram == 0 && has_room;
            default.hold = is_of_use || params.ceiling > 1.0;
        }
        if let Some(most) = most {
            default = default.within(most);
        }
        let plan = choose(job.memory, default, slots, LESS, with)?;
        let budget = budget_of(plan.layout.panel);
        Ok(Self { sizes, second, params, plan, budget, slots, job: *job })
    }

    /// The operator over these rows.
    pub(crate) fn operator(&self, data: Matrix) -> Result<Placed> {
        let outputs = inner_outputs(self.sizes.outputs, self.second);
        let sizes = OperatorSizes { hidden: self.slots, nnz: self.budget.room(), outputs };
        Placed::new(self.job.device, data, None, sizes, self.plan.layout)
    }

    /// The search alone, from a checkpoint or from nothing.
    pub(crate) fn run<'m>(
        &self,
        operator: &mut Placed,
        labels: &[f32],
        from: Option<&Checkpoint<'_>>,
        memory: &'m mut [u32],
        watch: &mut Watch<'_>,
        observe: &mut dyn FnMut(&Progress<'_>) -> bool,
    ) -> Result<lm::Trained<'m>> {
        operator.heed(Some(watch.stop()));
        let trained =
            on_device!(operator, on => self.run_on(on, labels, from, memory, watch, observe))?;
        operator.heed(None);
        Ok(trained)
    }

    fn run_on<'m>(
        &self,
        on: &mut impl Backend,
        labels: &[f32],
        from: Option<&Checkpoint<'_>>,
        memory: &'m mut [u32],
        watch: &mut Watch<'_>,
        observe: &mut dyn FnMut(&Progress<'_>) -> bool,
    ) -> Result<lm::Trained<'m>> {
        let Self { sizes: Sizes { dims, outputs }, params, .. } = self;
        let mut handle = Vec::new();
        let y = on.labels(labels, &mut handle);
        let from = from.map_or(start::Start::Zero, start::Start::Checkpoint);
        let observe = |progress: &Progress<'_>| {
            let passes = progress.rows_read as f64 / dims.samples as f64;
            if progress.checkpoint.is_some() {
                watch.reach(progress.search_best);
            }
            continue_if(watch.goes_on(passes, observe(progress)))
        };
        let (one, several) = (Goal::one_output(*dims), Goal::several_outputs(*dims));
        let trained = match (self.second, outputs) {
            (Some(second), _) => {
                let goal = Goal::two_layers(*dims, second);
                lm::run(on, y, goal, from, params, memory, observe)
            }
            (None, 0) => lm::run(on, y, one, from, params, memory, observe),
            (None, _) => lm::run(on, y, several, from, params, memory, observe),
        };
        trained.map_err(|error| on.failed(error))
    }

    /// The model of a search as long as `watch` lets it, from `start`.
    pub(crate) fn search(
        &self,
        mut problem: Problem,
        start: Start<'_>,
        mut watch: Watch<'_>,
        observe: &mut dyn FnMut(&Progress<'_>) -> bool,
    ) -> Result<(Trained, ReturnedData)> {
        let Self { sizes, second, ref params, slots, ref job, .. } = *self;
        let Sizes { dims, outputs } = sizes;
        let stopwatch = Stopwatch::start(&problem);
        shuffle(&mut problem, params.seed);
        let Problem { data, labels, task } = problem;
        let mut operator = self.operator(data)?;
        let mut memory = vec![0; self.budget.words()];
        let warm = match start {
            Start::Network(from) => Some(self.warm(from, &labels)?),
            Start::Mask(_) => return Err(no_mask("lm")),
            _ => None,
        };
        let rows = match second {
            Some(_) => params.deep_search_rows(dims.nnz, dims.samples - params.validation),
            None => params.search_rows(dims.nnz, dims.samples - params.validation),
        };
        let from = match (start, &warm) {
            (Start::Checkpoint(checkpoint), _) => Some(checkpoint.lm()?),
            (_, Some(warm)) => Some(Checkpoint::starting(warm.net(slots)?, rows)),
            _ => None,
        };
        let lm::Trained { network: net, info } =
            self.run(&mut operator, &labels, from.as_ref(), &mut memory, &mut watch, observe)?;
        let (limit, stopped) = watch.ended(info.stopped);
        let mut network = SparseNetwork::new(net);
        let mut neurons = slots;
        if !params.signs.both() {
            // The search has neurons to spare; without signs any number will do.
            network.renumber();
            (neurons, network.signs) = (dims.hidden.max(job.hidden), Signs::Positive);
        }
        let signs = network.signs;
        let net = network.net(neurons)?;
        let (nnz, live) = (net.nnz(), net.w().blocks().count());
        let second_live = second.map(|second| {
            let is_live =
                |k: &usize| net.wt().blocks().flat_map(|wt| wt.entries()).any(|(j, _)| j == *k);
            (0..second).filter(is_live).count()
        });
        // The operator counts the neurons of the search.
        let scored = self.scored(network.net(slots)?, signs, task, &labels);
        let scored = scored.with_threshold(&mut operator, &mut memory)?;
        let trained = scored.rows.end;
        let mut score = |rows| Scored { rows, ..scored.clone() }.score(&mut operator, &mut memory);
        let validation =
            (params.validation > 0).then(|| score(trained..dims.samples)).transpose()?;
        let score = score(0..trained)?;
        self.check_result(nnz, &labels[..trained * outputs.max(1)], &score)?;
        let net = network.net(neurons)?;
        let model = match (second, outputs) {
            (Some(_), _) => {
                let first = SparseLayer::new(net.w(), net.w().hidden());
                let second = SparseLayer::behind(net.wt(), job.second.unwrap_or(0));
                encode_layers(vec![first, second], End::Sum(&[]), Some(scored.stored))?
            }
            (None, 0) => encode(net, dims.hidden, scored.stored)?,
            (None, _) => encode(net, net.w().hidden(), scored.stored)?,
        };
        let details = Details::Lm(SearchDetails {
            second_hidden: job.second,
            second_live,
            exact: info.exact,
            search_rows: rows,
            signs: self.signs(),
            moves: info.moves,
            tried: info.trials,
            kicks: info.perturbations,
            merges: info.merges,
            flips: info.flips,
            validation_samples: params.validation,
            validation_loss: validation.as_ref().map(|split| split.loss),
            validation_psnr_db: validation.as_ref().and_then(|split| split.psnr_db),
            validation_accuracy: validation.as_ref().and_then(|split| split.accuracy),
            early: info.early,
            turns: 0,
        });
        let report = Report {
            nnz,
            live: Neurons::One(live),
            epochs: info.steps,
            steps: info.steps.into(),
            passes: info.rows_read as f64 / dims.samples as f64,
            limit,
            stopped,
            ..job
                .report("lm", sizes, &self.plan, start, &stopwatch, details)
                .scored(&score)
                .on(job.device, &operator)
        };
        let returned = ReturnedData { operator, labels, task, order: Some(params.seed) };
        Ok((Trained::new(&model, network, report), returned))
    }

    /// A network of so many neurons as a search has, on the rows that are trained on.
    fn scored<'n>(
        &self,
        net: Network<'n>,
        signs: Signs,
        task: Task,
        labels: &'n [f32],
    ) -> Scored<'n> {
        let (rows, held) = (self.sizes.dims.samples, self.params.validation);
        Scored {
            net,
            gates: Gates::of(net.w(), signs, Empty::Freeze, 0, u32::MAX),
            task,
            stored: task.stored(),
            is_summed: self.second.is_some(),
            labels,
            rows: 0..rows - held,
            // The outputs that are summed up take more memory than the search has.
            batch: match self.second {
                Some(_) => self.budget.words() / net.outputs().max(1) / 2,
                None => rows,
            },
        }
    }

    /// The network of another search as this one has it while searching.
    fn warm(&self, from: &Trained, labels: &[f32]) -> Result<SparseNetwork> {
        let Self { sizes: Sizes { dims, outputs }, second, .. } = *self;
        let most = self.budget.work();
        let (other, search) = (&from.report, from.report.search());
        let of = |inputs, outputs, hidden, second: Option<usize>, signs: &str| {
            let second = second.map_or_else(String::new, |second| format!(" and {second}"));
            format!("{inputs} columns, {outputs} outputs, {hidden}{second} neurons, signs {signs}")
        };
        let own = of(dims.inputs, outputs.max(1), dims.hidden, self.job.second, self.signs());
        let got = of(
            other.inputs,
            other.outputs,
            other.hidden.first(),
            search.and_then(|search| search.second_hidden),
            search.map_or("of another recipe", |search| search.signs),
        );
        if own != got || other.nnz > most {
            return Err(Error::new("the network to start from does not fit the search")
                .expected(format_args!("{own}; at most {most} weights"))
                .got(format_args!("{got}; {} weights", other.nnz))
                .help("start from a network of the same recipe and sizes, with fewer weights"));
        }
        let c = inner_outputs(outputs, second);
        let mut network = SparseNetwork {
            inputs: dims.inputs,
            outputs: c,
            signs: self.params.signs,
            ..from.network.clone()
        };
        if self.params.signs.linear(0) && !self.params.signs.both() {
            // The linear term comes before all neurons.
            network.index.iter_mut().for_each(|j| *j += dims.inputs as u32);
        }
        let scale = unit_scale(labels);
        let values = if c == 0 { &mut network.value } else { &mut network.out_value };
        values.iter_mut().for_each(|v| *v *= scale);
        if second.is_some() {
            // Output 0 passes activations through.
            let width = search
                .and_then(|search| search.second_hidden)
                .unwrap_or(1)
                .min(other.requested_nnz);
            let width = width.max(1) as u32;
            network.out_index.iter_mut().for_each(|j| *j = *j / width * c as u32 + *j % width + 1);
        }
        Ok(network)
    }

    /// As [`SearchDetails::signs`].
    const fn signs(&self) -> &'static str {
        match self.params.signs {
            _ if self.sizes.outputs > 0 => "own",
            // Those of the result.
            Signs::Unoriented => signs_name(Signs::Positive),
            signs => signs_name(signs),
        }
    }

    /// Refuses a result that says nothing.
    fn check_result(&self, nnz: usize, labels: &[f32], score: &Score) -> Result<()> {
        let Sizes { dims, outputs } = self.sizes;
        if nnz == 0 && labels.iter().any(|&label| label != 0.0) {
            return Err(Error::new("training found no weight that explains the labels")
                .expected(format_args!("{} nonzeros", dims.nnz))
                .got("0")
                .help(match (outputs, dims.nnz) {
                    (0, _)
                        if !self.params.signs.both()
                            && labels.iter().all(|&label| label <= 0.0) =>
                    {
                        "pass --signs free: with positive output weights no output is below 0"
                    }
                    (1.., ..4) => "raise --nnz: a neuron needs a weight on either side",
                    _ => {
                        "check that some column is not all zero, or scale inputs and labels to \
                         about 1"
                    }
                }));
        }
        if !score.loss.is_finite() {
            return Err(Error::new(
                "the predictions of the network leave the range of 32-bit floats",
            )
            .expected("a finite loss")
            .got(score.loss)
            .help("scale the labels to about 1"));
        }
        Ok(())
    }
}

fn no_adam() -> Error {
    Error::new("a search has no steps of Adam here")
        .expected("labels of one column, one hidden layer, and --signs positive or free")
        .got("--adam-steps above 0")
        .help("leave --adam-steps out")
}

/// Steps of Adam before a search, for each weight.
const FIRST: u32 = 20;
/// Weights from which they pay, those from which they do where neurons have no more than two each, and rows
/// for each weight.
const FIRST_NNZ: usize = 300;
const FIRST_FEW: usize = 200;
const FIRST_ROWS: usize = 10;

/// Whether a search begins with steps of Adam: for large networks, whose neurons it finds nearly all, with rows
/// that tell them apart.
fn has_first(problem: &Problem, dims: Dims) -> bool {
    let least = if dims.hidden.saturating_mul(2) >= dims.nnz { FIRST_FEW } else { FIRST_NNZ };
    let is_large = dims.nnz >= least && dims.samples >= FIRST_ROWS.saturating_mul(dims.nnz);
    problem.task == Task::Regression && is_large && dims.hidden > 1
}

/// Signs of the output weights where nothing else is said: what the labels ask for.
pub(crate) fn default_signs(problem: &Problem) -> Signs {
    match weighted_outputs(problem) == 0 && problem.labels.iter().any(|&label| label < 0.0) {
        true => Signs::Free,
        false => Signs::Positive,
    }
}

/// Outputs of the first layer while searching; 0 where output weights are signs.
fn inner_outputs(outputs: usize, second: Option<usize>) -> usize {
    second.map_or(outputs, lm::second_slots)
}

/// Checks that two layers can be what the problem is about.
fn check_second(
    problem: &Problem,
    options: &LmOptions,
    second: usize,
    outputs: usize,
) -> Result<()> {
    if second == 0 || second > u16::MAX.into() {
        return Err(Error::new(
            "the number of neurons of the second hidden layer is out of bounds",
        )
        .expected(format_args!("--hidden M1,M2 with 1 to {} for M2", u16::MAX))
        .got(second)
        .help("choose 10 to 100"));
    }
    if outputs > 0 {
        return Err(Error::new("a search for two hidden layers is for labels of one column")
            .expected("labels of one column, or --hidden with one number")
            .got(format_args!("{outputs} columns"))
            .help(
                "pass one size to --nnz, which trains layer by layer, or one number to --hidden",
            ));
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
            .help(
                "search for one hidden layer, or train one size with --tune-epochs 20, layer by \
                 layer",
            ));
    }
    Ok(())
}

/// Bytes of held gates at the most, where no ceiling closes some and no budget is given: without them searches
/// take up to 1.2 times the time, as measured.
const MOST_HELD: usize = 1 << 18;

/// How a search needs less memory.
const LESS: &str = "raise --ram, take fewer nonzeros (--nnz) or fewer rows, or use --recipe \
     paper, which needs less";
