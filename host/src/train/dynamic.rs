//! Sparse training of deep networks from nothing as a recipe: a support that shrinks and moves, to a
//! model and a report.

use std::path::Path;

use tamis::infer::model::{MAX_INPUTS, MAX_LAYERS};
use tamis::learn::deep::Stack;
use tamis::learn::deep::dynamic::{self, Moments, Params};
use tamis::learn::start::continue_if;
use tamis::network::gates::Signs;
use tamis::network::mask::Mlp;
use tamis::network::mask::allocate::{Allocation, Bounds};
use tamis::network::weights::Weights;

use crate::base::limits::{Limits, Watch};
use crate::base::memory::room_for;
use crate::data::augment::Augment;
use crate::data::{Problem, Task, Values};
use crate::model::{score_model, score_rows};
use crate::operator::Stop;
use crate::operator::backprop::Engine;
use crate::operator::lanes::Lanes;
use crate::train::budget::Memory;
use crate::train::check::{dense_weights, given_validation_rows, paths};
use crate::train::checkpoint::CheckpointFile;
use crate::train::dynamic_memory::{Share, Sizes};
use crate::train::dynamic_options::DynamicOptions;
use crate::train::encode::{End, encode_layers};
use crate::train::imp::check_test;
use crate::train::labels::HeldLabels;
use crate::train::mask::diverged;
use crate::train::network::SparseNetwork;
use crate::train::ones::layers_of_stack;
use crate::train::options::Options;
use crate::train::plan::Forecast;
use crate::train::progress::{Observer, Stage};
use crate::train::report::{Details, DynamicDetails, Neurons, Report};
use crate::train::resume;
use crate::train::trained::{Start, Stopwatch, Trained, shuffle};
use crate::{Error, Result};

/// One training of a run.
struct Trial<'t, 's> {
    number: u32,
    /// Of the run.
    stopwatch: &'t Stopwatch,
    watch: &'t mut Watch<'s>,
    /// Passes before it.
    passes: f64,
}

/// A training whose sizes are settled.
pub(crate) struct DynamicSetup<'a> {
    settings: &'a DynamicOptions,
    hidden: &'a [usize],
    limits: Limits,
    params: Params,
    /// By which inputs are multiplied.
    unit: f32,
    /// Weights and biases of the dense network.
    dense: usize,
    /// Weights that the stack has room for.
    room: usize,
    /// Words beside the stack.
    words: usize,
    augment: Option<Augment>,
    /// Bytes of the checkpoints that it holds.
    checkpoints: usize,
    /// Threads that there is memory for.
    pub(crate) threads: usize,
}

impl<'a> DynamicSetup<'a> {
    /// For the threads of the current pool.
    pub(crate) fn new(
        problem: &Problem,
        options: &Options,
        settings: &'a DynamicOptions,
        hidden: &'a [usize],
    ) -> Result<Self> {
        problem.check()?;
        settings.check()?;
        if settings.starts() > 1 && options.checkpoint.is_some() {
            return Err(Error::new("a checkpoint is of one training")
                .expected("--checkpoint without --starts, or --starts 1")
                .got(format_args!("--starts {}", settings.starts()))
                .help("leave --checkpoint out, or train with one --seed after the other"));
        }
        check_rows(problem)?;
        settings.test.as_ref().map_or(Ok(()), |test| check_test(problem, test))?;
        let outputs = problem.network_outputs();
        let inputs = problem.data.cols;
        check_widths(inputs, hidden)?;
        let unit = if problem.data.is_bytes() && !settings.raw { 1.0 / 256.0 } else { 1.0 };
        let dense = dense_weights(problem, hidden);
        let layers = hidden.len();
        let nnz = options.budget.count(dense, layers + 1)?;
        check_budget(nnz, problem, hidden)?;
        let rows = problem.data.rows;
        let validation = given_validation_rows(rows, settings.validation)?;
        let mut params =
            Params { validation, ..settings.params(nnz, rows - validation, options.seed) };
        let augment = settings
            .augment
            .map(|of| Augment::new(of.changes(nnz), inputs, params.seed))
            .transpose()?;
        let sizes = Sizes {
            inputs,
            hidden,
            outputs,
            dense,
            params: &params,
            augment: augment.as_ref(),
            has_checkpoints: options.checkpoint.is_some(),
        };
        let Share { factor, threads } = match options.memory {
            Memory::Ram(ram) => sizes.within(ram, settings.factor)?,
            _ => sizes.all(),
        };
        let room = sizes.room(factor);
        let words = sizes.words(room);
        let checkpoints = sizes.checkpoint_bytes(room);
        params.factor = factor;
        let limits = options.limits;
        Ok(Self {
            settings,
            hidden,
            limits,
            params,
            unit,
            dense,
            room,
            words,
            augment,
            checkpoints,
            threads,
        })
    }

    fn ready<'e>(&'e self, engine: Engine<'e>) -> Engine<'e> {
        let engine = if self.params.grows() { engine.growing() } else { engine };
        match &self.augment {
            Some(augment) => engine.augmented(augment),
            None => engine,
        }
    }

    const fn state_bytes(&self) -> u64 {
        (8 * self.room + 4 * self.words) as u64
    }

    /// What it would take, with the kernels for a network as it begins.
    pub(crate) fn forecast(&self, problem: &Problem) -> Result<Forecast> {
        let (mut index, mut value) = (vec![0; self.room], vec![0.0; self.room]);
        let mut stack = Stack::new(problem.data.cols + 1, &mut index, &mut value);
        self.fill(&mut stack, problem)?;
        let held = HeldLabels::new(problem.labels.clone(), problem.task, 0);
        let labels = held.labels(problem.network_outputs());
        let engine = Engine::new(&problem.data, self.unit, labels, &stack, &Stop::new())?;
        let engine = self.ready(engine);
        Ok(Forecast {
            requested_nnz: self.params.nnz,
            support: self.room,
            state_bytes: self.state_bytes(),
            workspace_bytes: (engine.bytes() + self.checkpoints) as u64,
            data_bytes: problem.bytes() as u64,
            ..Forecast::default()
        })
    }

    /// As many weights as training begins with, wherever: which ones takes a pass over all that there may be.
    fn fill(&self, stack: &mut Stack<'_>, problem: &Problem) -> Result<()> {
        let widths = [&[problem.data.cols], self.hidden, &[problem.network_outputs()][..]].concat();
        let net = Mlp::new(&widths)?;
        let mut counts = vec![0; widths.len() - 1];
        let most = self.params.most(net.weights());
        Allocation::ErdosRenyi.share(&net, most, Bounds::at_least(1), &mut counts)?;
        for (layer, count) in net.layers().zip(counts) {
            let is_end = layer.number + 1 == net.layers().len();
            // One more hands on the constant.
            let index: Vec<u32> = (0..count as u32 + u32::from(!is_end)).collect();
            let values = vec![1.0; index.len()];
            if is_end {
                let blocks = layer.inputs + 1;
                stack.end_weights(Weights::new(layer.outputs, blocks, &index, &values)?)?;
            } else {
                let own = Weights::new(layer.inputs + 1, layer.outputs + 1, &index, &values)?;
                stack.push(own, Signs::Positive)?;
            }
        }
        Ok(())
    }

    /// The file of its checkpoints.
    pub(crate) fn checkpoint_file(&self, path: &Path, problem: &Problem) -> CheckpointFile {
        let Self { settings, hidden, room, unit, params, .. } = self;
        let form = resume::dynamic_form(problem, hidden, *room, *unit, settings, params);
        CheckpointFile::new(path, form)
    }

    /// Trains a network of exactly s nonzeros, on the current pool, in memory for the most weights at a
    /// time: of several starts the one that is best on the validation split.
    pub(crate) fn train(
        &self,
        mut problem: Problem,
        start: Start<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<Trained> {
        let stopwatch = Stopwatch::start(&problem);
        if self.params.validation > 0 {
            shuffle(&mut problem, self.params.seed);
        }
        let is_resumed = matches!(start, Start::Checkpoint(_));
        let mut watch = Watch::new(self.limits, observer.stop).resumed(is_resumed);
        let first = Trial { number: 0, stopwatch: &stopwatch, watch: &mut watch, passes: 0.0 };
        let mut trained = self.trial(&mut problem, start, first, observer)?;
        let mut passes = trained.report.passes;
        trained.report.trials = u32::from(self.settings.starts() > 1);
        let mut diverged = 0;
        for number in 1..self.settings.starts() {
            if trained.report.limit.is_some() || trained.report.stopped {
                break;
            }
            let mut observer = observer.at(Stage { attempt: number, ..observer.stage() });
            let next = Trial { number, stopwatch: &stopwatch, watch: &mut watch, passes };
            let other = match self.trial(&mut problem, Start::Zero, next, &mut observer) {
                Ok(other) => other,
                // Ended before its first step.
                Err(error) if error.is_interrupted() => {
                    let (limit, stopped) = watch.ended(true);
                    trained.report = Report { limit, stopped, ..trained.report };
                    break;
                }
                // Those before it stay.
                Err(_) => {
                    diverged += 1;
                    continue;
                }
            };
            passes += other.report.passes;
            let Report { limit, stopped, .. } = other.report;
            let trials = trained.report.trials + 1;
            let held = |trained: &Trained| trained.report.validation()[0].unwrap_or(f64::INFINITY);
            if held(&other) < held(&trained) {
                trained = other;
            }
            trained.report = Report { limit, stopped, trials, ..trained.report };
        }
        if let Details::Dynamic(details) = &mut trained.report.details {
            details.diverged = diverged;
        }
        trained.report.passes = passes;
        trained.report.seconds = stopwatch.seconds();
        Ok(trained)
    }

    /// One training.
    fn trial(
        &self,
        problem: &mut Problem,
        start: Start<'_>,
        trial: Trial<'_, '_>,
        observer: &mut Observer<'_>,
    ) -> Result<Trained> {
        let Self { settings, hidden, unit, dense, room, words, .. } = self;
        let Trial { number, stopwatch, watch, passes: before } = trial;
        let params = &Params { seed: self.params.seed.wrapping_add(number.into()), ..self.params };
        let layers = hidden.len();
        let outputs = problem.network_outputs();
        let widths = [hidden, &[outputs][..]].concat();
        let rows = problem.data.rows - params.validation;
        let state_bytes = self.state_bytes();
        let help = "choose fewer nonzeros, or a smaller --start-factor";
        room_for("training", state_bytes, help)?;
        let resumed = match start {
            Start::Checkpoint(checkpoint) => Some(checkpoint.dynamic()?),
            _ => None,
        };
        let (mut index, mut value, mut memory) =
            (vec![0; *room], vec![0.0; *room], vec![0; *words]);
        let mut stack = Stack::new(problem.data.cols + 1, &mut index, &mut value);
        let start_nnz = match &resumed {
            Some(checkpoint) => {
                checkpoint.restore(&mut stack, &widths, params)?;
                checkpoint.start_nnz()
            }
            None => {
                dynamic::start(&mut stack, &widths, params, &mut memory)?;
                stack.nnz() - layers
            }
        };
        // Before there are strips, whose memory is free until then.
        let neurons = problem.data.cols + widths.iter().sum::<usize>();
        let strips = rayon::current_num_threads() * neurons * size_of::<Lanes>();
        let kept = HeldLabels::new(std::mem::take(&mut problem.labels), problem.task, strips);
        let mut workspace_bytes = 0;
        let mut train = || {
            let (data, labels) = (&problem.data, kept.labels(outputs));
            let engine = Engine::new(data, *unit, labels, &stack, &watch.stop())?;
            let mut engine = self.ready(engine);
            workspace_bytes = (engine.bytes() + self.checkpoints) as u64;
            let observe = |now: &dynamic::Progress<'_>| {
                let passes = before + f64::from(now.epoch);
                continue_if(watch.show(passes, || observer.dynamic(now)))
            };
            dynamic::run(&mut engine, &mut stack, params, &mut memory, resumed.as_ref(), observe)
        };
        let run = train();
        // What scores the model needs memory of its own.
        drop(memory);
        problem.labels = kept.into_numbers();
        let done = match run {
            Ok(info) => info,
            Err(tamis::Error::Diverged { step }) => return Err(diverged(step, params.rate)),
            Err(tamis::Error::Stopped) => {
                return Err(Error::interrupted().help("give it more time, or pass fewer --epochs"));
            }
            Err(error) => return Err(error.into()),
        };
        let (limit, stopped) = watch.ended(done.stopped);
        let task = match problem.task {
            Task::Binary => Task::LOG_ODDS,
            task => task.stored(),
        };
        let layers_of = layers_of_stack(&stack, *unit, Some(layers));
        // Weights that were grown last are 0 where a run was ended.
        let nnz = stack.values().iter().filter(|value| **value != 0.0).count() - layers;
        // Without the one that hands on the constant.
        let live = stack.layers().take(layers).map(|w| w.blocks().count() - 1).collect();
        drop((index, value));
        let model = encode_layers(layers_of, End::Layer, Some(task))?;
        let held = rows..problem.data.rows;
        let (test, held, score) = (
            settings.test.as_ref().map(|test| score_model(&model, test)).transpose()?,
            (!held.is_empty()).then(|| score_rows(&model, problem, held)).transpose()?,
            score_rows(&model, problem, 0..rows)?,
        );
        let batch = params.batch.min(rows).max(1);
        let details = DynamicDetails {
            support: settings.support,
            moments: match params.moments {
                Moments::F32 => "f32",
                Moments::Bf16 => "bf16",
            },
            dense_nnz: *dense,
            start_nnz,
            batch,
            rate: params.rate,
            decay: params.decay,
            warmup: params.warmup,
            diverged: 0,
            changes: done.changes,
            grown: done.grown,
            cut: done.cut,
            input_scale: *unit,
            validation_samples: params.validation,
            validation_loss: held.as_ref().map(|held| held.loss),
            validation_accuracy: held.as_ref().and_then(|held| held.accuracy),
            early: done.early,
            test_loss: test.as_ref().map(|test| test.loss),
            test_accuracy: test.as_ref().and_then(|test| test.accuracy),
        };
        let report = Report {
            outputs,
            hidden: Neurons::Each(hidden.to_vec()),
            requested_nnz: params.nnz,
            seed: self.params.seed,
            nnz,
            live: Neurons::Each(live),
            epochs: done.epochs,
            steps: done.steps.into(),
            passes: f64::from(done.steps) / rows.div_ceil(batch) as f64,
            resumed_steps: resumed.map_or(0, |checkpoint| checkpoint.steps()),
            limit,
            stopped,
            state_bytes,
            workspace_bytes,
            ..stopwatch.report("dynamic", Details::Dynamic(details)).scored(&score)
        };
        Ok(Trained::new(&model, SparseNetwork::default(), report))
    }
}

/// Refuses rows that are all the same: no weight tells them apart.
fn check_rows(problem: &Problem) -> Result<()> {
    fn are_same<T: PartialEq>(values: &[T], cols: usize) -> bool {
        let mut rows = values.chunks_exact(cols.max(1));
        rows.next().is_none_or(|first| rows.all(|row| row == first))
    }
    let cols = problem.data.cols;
    let are_same = match &problem.data.values {
        Values::F32(values) => are_same(values, cols),
        Values::U8(values) => are_same(values, cols),
    };
    if !are_same {
        return Ok(());
    }
    Err(Error::new("all rows are the same, and no weight tells them apart")
        .expected("a column with different numbers")
        .got(format_args!("{} equal rows", problem.data.rows))
        .help("check that some column is not all zero"))
}

fn check_widths(inputs: usize, hidden: &[usize]) -> Result<()> {
    // One more hands on the constant.
    const MOST: usize = MAX_INPUTS - 1;
    let widest = hidden.iter().copied().max().unwrap_or(0).max(inputs);
    if hidden.len() < MAX_LAYERS && widest <= MOST && !hidden.contains(&0) {
        return Ok(());
    }
    Err(Error::new("no model is of this size")
        .expected(format_args!(
            "at most {} hidden layers, each of 1 to {MOST} neurons, and at most {MOST} inputs",
            MAX_LAYERS - 1
        ))
        .got(format_args!("{inputs} inputs and --hidden {hidden:?}"))
        .help("choose fewer layers or neurons"))
}

/// Refuses fewer nonzeros than paths to all outputs take.
fn check_budget(nnz: usize, problem: &Problem, hidden: &[usize]) -> Result<()> {
    let [least, linear] = [hidden, &[][..]].map(|hidden| paths(problem, hidden));
    if nnz >= least {
        return Ok(());
    }
    let without =
        if hidden.is_empty() { String::new() } else { format!("; {linear} with --hidden 0") };
    Err(Error::new("too few nonzeros for a path to every output")
        .expected(format_args!(
            "{least} or more: one for each of {} outputs and each layer before{without}",
            problem.network_outputs()
        ))
        .got(nnz)
        .help(
            "pass a larger --nnz, fewer layers to --hidden, or fewer classes (--keep-labels, another \
             --target)",
        ))
}
