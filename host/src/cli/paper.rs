//! `tamis train --recipe paper` and `paper-safe`: flags and steps of the published method.

use clap::Args;
use serde::Serialize;
use tamis::iht::{Params, Refine, Step};
use tamis::train::{Progress, Rank, Schedule, Trials};

use super::history::{self, History, check_outputs};
use super::keep::{Keeper, check_checkpoint};
use super::parse::{self, EmptyName, Recipe, SignsName};
use super::progress::Bar;
use super::saved::{Object, summary};
use super::train::{Train, first_given};
use super::{Common, Console, interrupt};
use crate::run::{self, Options, OutputsOptions, Task};
use crate::{Error, Result};

/// Settings of the published recipe.
#[derive(Debug, Args)]
#[command(next_help_heading = "Published method (recipe paper)")]
pub(super) struct PaperArgs {
    /// Random starts tried on a part of the rows, of which the best goes on; 1 for the published method alone [default: 32, of several
    /// outputs 8]
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
    pub(super) fn given(&self) -> Option<&'static str> {
        first_given(&[
            (self.trials.is_some(), "--trials"),
            (self.trial_rows.is_some(), "--trial-rows"),
            (self.step.is_some(), "--step"),
            (self.refine.is_some(), "--refine"),
            (self.empty.is_some(), "--empty"),
            (self.rank.is_some(), "--rank"),
        ])
    }

    fn trials(&self, usual: Trials) -> Trials {
        Trials { count: self.trials.unwrap_or(usual.count), rows: self.trial_rows.unwrap_or(usual.rows) }
    }

    /// The first setting that is not for the number of outputs.
    fn foreign(&self, several: bool) -> Option<&'static str> {
        if !several {
            return first_given(&[(self.rank.is_some(), "--rank")]);
        }
        first_given(&[
            (self.step.is_some_and(|step| !matches!(step, Step::Fixed(_))), "--step normalised or theory"),
            (self.refine.is_some(), "--refine"),
            (self.empty.is_some(), "--empty"),
        ])
    }
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
    const fn new(progress: &Progress<'_>, seconds: f64) -> Self {
        let &Progress { step, trial, loss, step_size, nnz, live, passes, .. } = progress;
        Self { step, trial, loss, step_size, nnz, live, passes, seconds }
    }
}

impl history::Step for PaperStep {
    const NAMES: (&'static str, &'static str, &'static str) = ("Training", "step", "Neurons and starts");

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

/// Trains by the published recipe.
pub(super) fn run(
    train: &Train,
    (task, recipe): (Task, Recipe),
    common: &Common,
    console: &Console,
) -> Result<()> {
    let hidden = train.one_hidden();
    let options = options(train, hidden, common)?;
    check_outputs(train)?;
    check_checkpoint(train)?;
    let problem = train.source.source().load_to_learn(task)?;
    let several = problem.has_several_outputs();
    fits(train, several, recipe)?;
    let must_keep = train.must_keep(&problem)?;
    let options = options.keeping(&must_keep);
    let outputs = outputs(train, hidden, recipe, common)?.keeping(&must_keep);
    let mut keeper = match several {
        true => Keeper::new(&train.kept, &problem, &outputs),
        false => Keeper::new(&train.kept, &problem, &options),
    }?;
    let kept = keeper.load(&train.kept, console)?;
    let bar = Bar::new(console);
    let mut history = History::new(train)?;
    let stop = interrupt::stop();
    let outcome = interrupt::training(|| {
        let observe = |progress: &Progress<'_>| {
            bar.update(progress);
            history.thin(progress.steps, 1);
            history.add(progress.step, |seconds| PaperStep::new(progress, seconds));
            keeper.see(progress);
            true
        };
        match (several, &kept) {
            (true, None) => run::train_outputs(problem, &outputs, stop, observe),
            (true, Some(kept)) => run::resume_outputs(problem, &outputs, kept, stop, observe),
            (false, None) => run::train(problem, &options, stop, observe),
            (false, Some(kept)) => run::resume_train(problem, &options, kept, stop, observe),
        }
    });
    bar.clear();
    let outcome = keeper.check(outcome)?;
    history.end(outcome.report.loss as f32);
    interrupt::saving(|| {
        history.save(train, &outcome.model, &outcome.report)?;
        keeper.flush()
    })?;
    let object = Object::new(&train.output, &outcome.model, &outcome.report);
    console.result(&object, || summary(&object, &history.line()))
}

/// Refuses what the published recipe has for one output only, or for several.
pub(super) fn fits(train: &Train, several: bool, recipe: Recipe) -> Result<()> {
    let one = "labels of one column";
    if !several && recipe == Recipe::PaperSafe {
        return Err(Error::new("recipe paper-safe is for several outputs")
            .expected("labels of several columns, or --task multiclass")
            .got(one)
            .help("choose --recipe paper: its steps for one output do not diverge"));
    }
    let signs = train.signs.filter(|_| several).map(|_| "--signs");
    match train.paper.foreign(several).or(signs) {
        None => Ok(()),
        Some(flag) => Err(Error::new("a setting does not suit the number of outputs")
            .expected(if several { "settings for several outputs" } else { "settings for one output" })
            .got(flag)
            .help(format!("leave {flag} out"))),
    }
}

pub(super) fn outputs(
    train: &Train,
    hidden: usize,
    recipe: Recipe,
    common: &Common,
) -> Result<OutputsOptions<'static>> {
    let usual = OutputsOptions::new(hidden, train.size());
    Ok(OutputsOptions {
        epochs: train.passes.epochs.unwrap_or(usual.epochs),
        batch: train.passes.batch.unwrap_or(usual.batch),
        step_size: match train.paper.step {
            Some(Step::Fixed(eta)) => Some(eta),
            _ => None,
        },
        rank: train.paper.rank.unwrap_or(usual.rank),
        trials: train.paper.trials(OutputsOptions::TRIALS),
        safe: recipe == Recipe::PaperSafe,
        seed: common.seed,
        memory: train.memory(),
        threads: common.threads(),
        limits: train.course.limits()?,
        checkpoints: train.kept.checkpoint.is_some(),
        ..usual
    })
}

pub(super) fn options(train: &Train, hidden: usize, common: &Common) -> Result<Options<'static>> {
    let paper = &train.paper;
    let batch = train.passes.batch.unwrap_or(Schedule::PAPER.batch);
    let epochs = train.passes.epochs.unwrap_or(Schedule::PAPER.epochs);
    if train.signs == Some(SignsName::Free) {
        return Err(Error::new("the published method has no free signs")
            .expected("--signs positive or balanced")
            .got("free")
            .help("choose --recipe lm"));
    }
    let schedule = Schedule {
        trials: paper.trials(Trials::DEFAULT),
        signs: train.signs.map_or(Schedule::PAPER.signs, Into::into),
        empty: paper.empty.map_or(Schedule::PAPER.empty, Into::into),
        params: Params {
            step: paper.step.unwrap_or(Params::PAPER.step),
            refine: paper.refine.unwrap_or(Params::PAPER.refine),
            ..Params::PAPER
        },
        ..run::published(epochs, batch, common.seed)
    };
    Ok(Options {
        hidden,
        size: train.size(),
        schedule,
        memory: train.memory(),
        threads: common.threads(),
        limits: train.course.limits()?,
        checkpoints: train.kept.checkpoint.is_some(),
    })
}
