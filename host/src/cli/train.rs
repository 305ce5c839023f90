//! `tamis train`

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tamis::iht::{Params, Refine, Step};
use tamis::train::{Progress, Rank, Schedule, Trials};

use super::anneal::{self, AnnealArgs};
use super::console::{self, count};
use super::history::{self, History, check_outputs};
use super::imp::{self, ImpArgs};
use super::parse::{self, EmptyName, Recipe, SignsName, TaskName};
use super::progress::Bar;
use super::recover::{self, RecoverArgs};
use super::saved::{Object, accuracy_fact, limit_fact, memory_fact};
use super::source::SourceArgs;
use super::{Common, Console, interrupt};
use crate::run::{self, Limits, Memory, Options, OutputsOptions, Report, Size, Task};
use crate::{Error, Result, file};

/// Train a sparse network on your own data, to a model of at most S nonzero weights.
///
/// Ctrl-C ends the run within a step, saves the model that the steps so far have reached and exits with 130; before the
/// first step nothing is saved. During the trials the best start so far is run again first. A second Ctrl-C ends at once.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis train --data X.npy --labels y.npy --task regression --hidden 10 --nnz 50 -o model.tamis
  tamis train --data X.npy --labels ten-columns.npy --task regression --hidden 10 --nnz 50 -o ten.tamis
  tamis train --data X.npy --labels y.npy --task regression --hidden 20 --nnz 400 --time-limit 3600 \
      --checkpoint search.state --resume -o model.tamis
  tamis train --data table.csv --target price --task regression --hidden 20 --density 0.1 --time-limit 30 -o m.tamis
  tamis train --data train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz \\
      --keep-labels 0,1 --task binary --hidden 10 --nnz 100 --time-limit 60 --ram 4M -o zero-one.tamis
  tamis train --data train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz \\
      --task multiclass --hidden 32 --nnz 1000 -o digits.tamis
  tamis train --data X.npy --labels y.npy --task regression --hidden 64,32 --nnz 500 \\
      --recipe imp --checkpoint pruning --resume -o pruned.tamis")]
pub(super) struct Train {
    #[command(flatten)]
    pub(super) source: SourceArgs,
    /// What the output stands for
    #[arg(long)]
    task: TaskName,
    /// Hidden neurons; for several classes about the square root of S is a good number, such as 32 for 1000 weights. Recipe imp
    /// takes several layers, as in 64,32
    #[arg(long, value_name = "M", value_delimiter = ',', required = true, value_parser = parse::whole::<usize>)]
    pub(super) hidden: Vec<usize>,
    /// Nonzero weights that the model may have
    #[arg(long, value_name = "S", required_unless_present = "density", conflicts_with = "density", value_parser = parse::whole::<usize>)]
    nnz: Option<usize>,
    /// The same as a part of all weights, above 0 and at most 1
    #[arg(long, value_name = "PART", value_parser = parse::number)]
    density: Option<f64>,
    /// How to train; auto is anneal for several classes, else lm, and paper where one of its settings is given
    #[arg(long, value_enum, default_value_t = Recipe::Auto)]
    recipe: Recipe,
    /// Signs of the output weights, but for several classes and labels of several columns [default: positive; lm: free where a label is negative]
    #[arg(long, value_enum)]
    pub(super) signs: Option<SignsName>,
    /// Neurons of a gradient panel: fewer take less memory and more time, and change the result in rounding only
    #[arg(long, value_name = "P", conflicts_with = "ram", value_parser = parse::whole::<usize>)]
    panel: Option<usize>,
    /// Most bytes for state and workspace, beside the data; with K, M or G for powers of 1024
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = parse::bytes)]
    ram: Option<u64>,
    /// The model to write
    #[arg(short, long, value_name = "M.tamis")]
    pub(super) output: PathBuf,
    // Last, since the heading of a group holds for all flags behind it.
    #[command(flatten)]
    pub(super) passes: PassArgs,
    #[command(flatten)]
    pub(super) held: HeldArgs,
    #[command(flatten)]
    pub(super) kept: KeptArgs,
    #[command(flatten)]
    pub(super) course: CourseArgs,
    #[command(flatten)]
    pub(super) recover: RecoverArgs,
    #[command(flatten)]
    pub(super) anneal: AnnealArgs,
    #[command(flatten)]
    paper: PaperArgs,
    #[command(flatten)]
    pub(super) imp: ImpArgs,
}

/// Settings that several recipes share; the search goes without, and does not mind them.
#[derive(Debug, Args)]
#[command(next_help_heading = "Epochs and batches (recipes paper, anneal and imp)")]
pub(super) struct PassArgs {
    /// Passes over all batches; a search (lm) has none and does not mind them: --passes-limit and --time-limit end it [default: 15; anneal: 100; imp: 20 each training]
    #[arg(long, value_name = "E", value_parser = parse::whole::<u32>)]
    pub(super) epochs: Option<u32>,
    /// Rows of a batch; 0 for all rows [default: 0; anneal: a hundredth of the rows, 32 to 512; imp: 256]
    #[arg(long, value_name = "N", value_parser = parse::whole::<usize>)]
    pub(super) batch: Option<usize>,
    /// Learning rate (recipes anneal and imp) [default: anneal: at most 0.02, for inputs brought to the unit range; imp: 0.001, sgd 0.1]
    #[arg(long, value_name = "RATE", value_parser = parse::number)]
    pub(super) rate: Option<f64>,
}

/// Rows held out, which the published recipe has not.
#[derive(Debug, Args)]
#[command(next_help_heading = "Rows held out (recipes lm and anneal)")]
pub(super) struct HeldArgs {
    /// Part of the rows that no step looks at, chosen by the seed: the network that is best on them is the result, of at most
    /// S weights; 0 for none [default: 0; anneal: 0.1]
    #[arg(long, value_name = "PART", value_parser = parse::number)]
    pub(super) validation: Option<f64>,
    /// End after N rounds without a better loss on the rows held out: kicks of a search on the same rows (lm), epochs on the
    /// final support (anneal); 0 for never [default: 0]
    #[arg(long, value_name = "N", value_parser = parse::whole::<u32>)]
    pub(super) patience: Option<u32>,
}

impl HeldArgs {
    /// The first flag that was given, if any.
    fn given(&self) -> Option<&'static str> {
        first_given(&[(self.validation.is_some(), "--validation"), (self.patience.is_some(), "--patience")])
    }
}

/// Runs that are ended and gone on with.
#[derive(Debug, Args)]
#[command(next_help_heading = "Checkpoints (recipes lm and imp)")]
pub(super) struct KeptArgs {
    /// Keep the state of the run, for --resume. lm: in this file, written every 30 seconds at most, between two stages, and when
    /// the search ends or is ended. imp: in this folder, written after every training
    #[arg(long, value_name = "PATH")]
    pub(super) checkpoint: Option<PathBuf>,
    /// Go on from the state that --checkpoint has kept, where there is one, to the model that a run without a break would have
    /// given; with the same data and settings, but for limits, threads and outputs
    #[arg(long, requires = "checkpoint")]
    pub(super) resume: bool,
}

/// The recipe that checkpoints belong to: the chosen one where it has such, else the one for the task.
fn kept_by(recipe: Recipe, task: Task) -> Recipe {
    match (recipe, task) {
        (Recipe::Imp, _) | (_, Task::Multiclass) => Recipe::Imp,
        _ => Recipe::Lm,
    }
}

/// What ends a run before its last step, and what tells of it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits, log and picture (recipes lm, anneal and paper)")]
pub(super) struct CourseArgs {
    /// Seconds after which this run ends; what it has found until then becomes the model, which takes a little more
    #[arg(long, value_name = "SECONDS", value_parser = parse::number)]
    time_limit: Option<f64>,
    /// Passes over all rows after which the run ends in the same way, those of the parts before --resume included
    #[arg(long, value_name = "P", value_parser = parse::number)]
    passes_limit: Option<f64>,
    /// Write one JSON object per step of this run to this file, and a last one of the result; of more than 10000 steps anneal
    /// logs the ends of epochs, and paper every few
    #[arg(long, value_name = "FILE.jsonl")]
    pub(super) log: Option<PathBuf>,
    /// Draw this run to this file: loss, support, live neurons
    #[arg(long, value_name = "FILE.svg")]
    pub(super) picture: Option<PathBuf>,
}

impl CourseArgs {
    /// The first flag that was given, if any.
    fn given(&self) -> Option<&'static str> {
        first_given(&[
            (self.time_limit.is_some(), "--time-limit"),
            (self.passes_limit.is_some(), "--passes-limit"),
            (self.log.is_some(), "--log"),
            (self.picture.is_some(), "--picture"),
        ])
    }

    pub(super) fn limits(&self) -> Result<Limits> {
        let limit = |flag: &str, value: Option<f64>| match value {
            Some(value) if !(value > 0.0 && value.is_finite()) => Err(Error::new("a limit is out of bounds")
                .expected(format_args!("{flag} above 0"))
                .got(value)
                .help(format!("leave {flag} out for no limit"))),
            value => Ok(value),
        };
        let seconds = limit("--time-limit", self.time_limit)?;
        let time = seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
        Ok(Limits { time, passes: limit("--passes-limit", self.passes_limit)? })
    }
}

/// The recipe that limits, log and picture belong to: all but the dense baseline have them.
fn told_by(recipe: Recipe, task: Task) -> Recipe {
    match recipe {
        Recipe::Imp => held_by(recipe, task),
        recipe => recipe,
    }
}

/// Settings of the published recipe.
#[derive(Debug, Args)]
#[command(next_help_heading = "Published method (recipe paper)")]
struct PaperArgs {
    /// Random starts tried on a part of the rows, of which the best goes on; 1 for the published method alone [default: 32]
    #[arg(long, value_name = "R", value_parser = parse::whole::<u32>)]
    trials: Option<u32>,
    /// Rows of a trial [default: 2000]
    #[arg(long, value_name = "N", value_parser = parse::whole::<usize>)]
    trial_rows: Option<usize>,
    /// Step size: normalised, theory or fixed:ETA [default: normalised]
    #[arg(long, value_parser = parse::step)]
    step: Option<Step>,
    /// Refinement on the chosen weights after each step: armijo, cg or none; cg:K takes K steps [default: armijo]
    #[arg(long, value_parser = parse::refine)]
    refine: Option<Refine>,
    /// What becomes of neurons that lose all weights [default: freeze]
    #[arg(long, value_enum)]
    empty: Option<EmptyName>,
    /// How the weights that stay are chosen where there are several outputs: exact, by their magnitudes, or sketch, by the
    /// sums of all their steps in a count sketch, which sketch:DECAY multiplies by DECAY before each step [default: sketch]
    #[arg(long, value_parser = parse::rank)]
    rank: Option<Rank>,
}

impl PaperArgs {
    /// The first setting that was given, all of this recipe alone.
    fn given(&self) -> Option<&'static str> {
        first_given(&[
            (self.trials.is_some(), "--trials"),
            (self.trial_rows.is_some(), "--trial-rows"),
            (self.step.is_some(), "--step"),
            (self.refine.is_some(), "--refine"),
            (self.empty.is_some(), "--empty"),
            (self.rank.is_some(), "--rank"),
        ])
    }

    /// The first setting that is not for the number of outputs.
    fn foreign(&self, several: bool) -> Option<&'static str> {
        if !several {
            return first_given(&[(self.rank.is_some(), "--rank")]);
        }
        first_given(&[
            (self.trials.is_some(), "--trials"),
            (self.trial_rows.is_some(), "--trial-rows"),
            (self.step.is_some_and(|step| !matches!(step, Step::Fixed(_))), "--step normalised or theory"),
            (self.refine.is_some(), "--refine"),
            (self.empty.is_some(), "--empty"),
        ])
    }
}

/// The recipe that rows held out belong to: the chosen one where it has such, else the one for the task.
fn held_by(recipe: Recipe, task: Task) -> Recipe {
    match (recipe, task) {
        (Recipe::Anneal, _) | (_, Task::Multiclass) => Recipe::Anneal,
        _ => Recipe::Lm,
    }
}

/// The first flag that was given, if any.
pub(super) fn first_given(flags: &[(bool, &'static str)]) -> Option<&'static str> {
    flags.iter().find_map(|&(given, flag)| given.then_some(flag))
}

impl Train {
    pub(super) fn run(&self, common: &Common, console: &Console) -> Result<()> {
        let task = Task::from(self.task);
        if self.passes.epochs == Some(0) {
            return Err(Error::new("training needs an epoch")
                .expected("--epochs 1 or more")
                .got(0)
                .help("leave --epochs out for the usual number; recipe lm needs none"));
        }
        match self.recipe(task)? {
            Recipe::Anneal => anneal::run(self, task, common, console),
            recipe @ (Recipe::Paper | Recipe::PaperSafe) => self.paper(task, recipe, common, console),
            Recipe::Imp => imp::run(self, task, common, console),
            Recipe::Lm | Recipe::Auto => recover::run(self, task, common, console),
        }
    }

    /// Trains by the published recipe.
    fn paper(&self, task: Task, recipe: Recipe, common: &Common, console: &Console) -> Result<()> {
        let options = self.options(common)?;
        check_outputs(self)?;
        let problem = self.source.source().load_to_learn(task)?;
        let several = task == Task::Multiclass || problem.outputs() > 1;
        self.fits(several, recipe)?;
        let bar = Bar::new(console);
        let mut history = History::new(&self.course);
        let observe = |progress: &Progress| {
            bar.update(progress);
            history.thin(progress.steps, 1);
            history.add(|seconds| PaperStep::new(progress, seconds));
            true
        };
        let outcome = interrupt::training(|| match several {
            true => run::train_outputs(problem, &self.outputs(recipe, common)?, interrupt::stop(), observe),
            false => run::train(problem, &options, interrupt::stop(), observe),
        });
        bar.clear();
        let outcome = outcome?;
        history.end(outcome.report.loss as f32);
        history.save(self, &outcome.model, &outcome.report)?;
        let object = Object::new(&self.output, &outcome.model, &outcome.report);
        console.result(&object, || summary(&object, &history.line()))
    }

    /// Refuses what the published recipe has for one output only, or for several.
    fn fits(&self, several: bool, recipe: Recipe) -> Result<()> {
        let one = "labels of one column";
        if !several && recipe == Recipe::PaperSafe {
            return Err(Error::new("recipe paper-safe is for several outputs")
                .expected("labels of several columns, or --task multiclass")
                .got(one)
                .help("choose --recipe paper: its steps for one output do not diverge"));
        }
        let signs = self.signs.filter(|_| several).map(|_| "--signs");
        match self.paper.foreign(several).or(signs) {
            None => Ok(()),
            Some(flag) => Err(Error::new("a setting does not suit the number of outputs")
                .expected(if several { "settings for several outputs" } else { "settings for one output" })
                .got(flag)
                .help(format!("leave {flag} out"))),
        }
    }

    fn outputs(&self, recipe: Recipe, common: &Common) -> Result<OutputsOptions> {
        let usual = OutputsOptions::new(self.one_hidden()?, self.size());
        Ok(OutputsOptions {
            epochs: self.passes.epochs.unwrap_or(usual.epochs),
            batch: self.passes.batch.unwrap_or(usual.batch),
            step_size: match self.paper.step {
                Some(Step::Fixed(eta)) => Some(eta),
                _ => None,
            },
            rank: self.paper.rank.unwrap_or(usual.rank),
            safe: recipe == Recipe::PaperSafe,
            seed: common.seed,
            memory: self.memory(),
            threads: common.threads(),
            limits: self.course.limits()?,
            ..usual
        })
    }

    /// The recipe that is meant, and not auto; one that does not suit the task and settings of another one are refused.
    fn recipe(&self, task: Task) -> Result<Recipe> {
        let recipe = match (self.recipe, task) {
            (Recipe::Auto, Task::Multiclass) => Recipe::Anneal,
            (Recipe::Auto, _) if self.paper.given().is_some() => Recipe::Paper,
            (Recipe::Auto, _) => Recipe::Lm,
            (recipe, _) => recipe,
        };
        run::check_recipe(recipe.name(), task)?;
        let groups = [
            (Recipe::Lm, self.recover.given()),
            (Recipe::Anneal, self.anneal.given()),
            (if recipe == Recipe::PaperSafe { recipe } else { Recipe::Paper }, self.paper.given()),
            (Recipe::Imp, self.imp.given()),
            // Shared by the recipes that take steps of Adam.
            (
                if recipe == Recipe::Anneal { Recipe::Anneal } else { Recipe::Imp },
                self.passes.rate.map(|_| "--rate"),
            ),
            // Shared by the recipes whose output weights are signs.
            (
                if matches!(recipe, Recipe::Paper | Recipe::PaperSafe) { recipe } else { Recipe::Lm },
                self.signs.map(|_| "--signs"),
            ),
            // Shared by the others.
            (held_by(recipe, task), self.held.given()),
            (told_by(recipe, task), self.course.given()),
            (kept_by(recipe, task), self.kept.checkpoint.as_ref().map(|_| "--checkpoint")),
        ];
        let foreign = groups.into_iter().filter(|(of, _)| *of != recipe);
        let Some((of, flag)) = foreign.filter_map(|(of, flag)| Some((of, flag?))).next() else {
            return Ok(recipe);
        };
        Err(Error::new("a setting does not belong to the recipe")
            .expected(format_args!("settings of recipe {}", recipe.name()))
            .got(flag)
            .help(match run::check_recipe(of.name(), task) {
                Ok(()) if of == Recipe::Paper && task == Task::Multiclass && flag != "--rank" => {
                    format!("leave {flag} out: it belongs to --recipe paper for one output")
                }
                Ok(()) => format!("leave {flag} out, or choose --recipe {}", of.name()),
                Err(_) => format!(
                    "leave {flag} out: it belongs to --recipe {}, which does not train for --task {}",
                    of.name(),
                    task.name()
                ),
            }))
    }

    /// The neurons of the one hidden layer.
    pub(super) fn one_hidden(&self) -> Result<usize> {
        let &[hidden] = &self.hidden[..] else {
            return Err(Error::new("the recipe does not train networks of several hidden layers yet")
                .expected("--hidden M")
                .got(format_args!("{} layers", self.hidden.len()))
                .help("pass the neurons of one layer, or choose --recipe imp"));
        };
        Ok(hidden)
    }

    pub(super) fn size(&self) -> Size {
        match (self.nnz, self.density) {
            (None, Some(part)) => Size::Density(part),
            (nnz, _) => Size::Nonzeros(nnz.unwrap_or(0)),
        }
    }

    pub(super) fn memory(&self) -> Memory {
        match (self.ram, self.panel) {
            (Some(ram), _) => Memory::Ram(ram),
            (None, Some(panel)) => Memory::Panel(panel),
            (None, None) => Memory::Auto,
        }
    }

    /// The flag that bounds the memory, if one was given.
    pub(super) fn memory_given(&self) -> Option<&'static str> {
        first_given(&[(self.ram.is_some(), "--ram"), (self.panel.is_some(), "--panel")])
    }

    fn options(&self, common: &Common) -> Result<Options> {
        let paper = &self.paper;
        let batch = self.passes.batch.unwrap_or(0);
        if self.signs == Some(SignsName::Free) {
            return Err(Error::new("the published method has no free signs")
                .expected("--signs positive or balanced")
                .got("free")
                .help("choose --recipe lm"));
        }
        let schedule = Schedule {
            epochs: self.passes.epochs.unwrap_or(Schedule::PAPER.epochs),
            batch,
            // Random generators for the first epoch, and for two steps where an epoch is one.
            convex_epochs: if batch == 0 { Schedule::PAPER.convex_epochs } else { 1 },
            trials: Trials {
                count: paper.trials.unwrap_or(Trials::DEFAULT.count),
                rows: paper.trial_rows.unwrap_or(Trials::DEFAULT.rows),
            },
            signs: self.signs.map_or(Schedule::PAPER.signs, Into::into),
            empty: paper.empty.map_or(Schedule::PAPER.empty, Into::into),
            seed: common.seed,
            params: Params {
                step: paper.step.unwrap_or(Params::PAPER.step),
                refine: paper.refine.unwrap_or(Params::PAPER.refine),
            },
            ..Schedule::PAPER
        };
        Ok(Options {
            hidden: self.one_hidden()?,
            size: self.size(),
            schedule,
            memory: self.memory(),
            threads: common.threads(),
            limits: self.course.limits()?,
        })
    }
}

/// Writes the bytes of a model.
pub(super) fn save(path: &Path, model: &[u8]) -> Result<()> {
    interrupt::saving(|| file::write(path, |w| std::io::Write::write_all(w, model)))
}

/// One line of the log of the published recipe.
#[derive(Debug, Clone, Serialize)]
struct PaperStep {
    step: u32,
    /// Random start, from 1; 0 in the run on all rows.
    trial: u32,
    loss: f32,
    step_size: f32,
    nnz: usize,
    live: usize,
    passes: f32,
    seconds: f64,
}

impl PaperStep {
    const fn new(progress: &Progress, seconds: f64) -> Self {
        let &Progress { step, trial, loss, step_size, nnz, live, passes, .. } = progress;
        Self { step, trial, loss, step_size, nnz, live, passes, seconds }
    }
}

impl history::Step for PaperStep {
    const TITLE: &'static str = "Training";

    fn number(&self) -> u32 {
        self.step
    }

    fn loss(&self) -> f32 {
        self.loss
    }

    fn curves(&self) -> [Vec<(&'static str, Option<f32>)>; 3] {
        [
            vec![("batch", Some(self.loss))],
            vec![("weights", Some(self.nnz as f32))],
            vec![("live neurons", Some(self.live as f32)), ("random start", Some(self.trial as f32))],
        ]
    }
}

pub(super) fn summary(object: &Object<'_, Report>, losses: &str) -> String {
    let r = object.report;
    // One output has a sign and no weight.
    let (width, shape) = match r.outputs {
        1 => (r.inputs, count(r.inputs as u64)),
        outputs => (r.inputs + outputs, format!("({} + {})", count(r.inputs as u64), count(outputs as u64))),
    };
    let all = r.hidden * width;
    let mut rows = vec![
        (
            "nonzeros",
            format!(
                "{} of {} asked for ({} of {} × {} weights)",
                count(r.nnz as u64),
                count(r.requested_nnz as u64),
                console::percent(r.nnz as f64 / all as f64),
                count(r.hidden as u64),
                shape
            ),
        ),
        ("neurons", format!("{} of {} have weights", r.live, r.hidden)),
        ("loss", format!("{:.4e} mean squared error  {losses}", r.loss)),
        ("PSNR", console::decibel(r.psnr_db)),
    ];
    rows.extend(r.accuracy.map(accuracy_fact));
    rows.extend(r.search.and_then(|search| {
        let loss = search.validation_loss?;
        let held = count(search.validation_samples as u64);
        let psnr = console::decibel(search.validation_psnr_db);
        let right = search.validation_accuracy.map(|part| format!(", accuracy {}", console::percent(part)));
        let right = right.unwrap_or_default();
        Some(("held out", format!("{held} rows: {loss:.4e} mean squared error, {psnr}{right}")))
    }));
    rows.extend(r.search.map(|search| {
        let found = match (search.exact, search.early) {
            (true, _) => "exact",
            (false, true) => "no better on the rows held out",
            (false, false) => "not exact",
        };
        let resumed = match search.resumed_steps {
            0 => String::new(),
            steps => format!(", went on from step {}", count(steps)),
        };
        let moves = format!("{} of {} moves taken, {} kicks", search.moves, search.tried, search.kicks);
        (
            "search",
            format!("{found}; {moves}, signs {}, {} rows first{resumed}", search.signs, search.search_rows),
        )
    }));
    let steps = if r.search.is_some() { "steps" } else { "epochs" };
    rows.extend([
        (
            "time",
            format!(
                "{:.3} s, {} {steps}, {:.0} passes, {} threads{}",
                r.seconds,
                r.epochs,
                r.passes,
                r.threads,
                limit_fact(r.limit)
            ),
        ),
        memory_fact(r.data_bytes, &r.plan, r.peak_rss_bytes),
    ]);
    console::facts(&object.title(r.stopped), &rows)
}
