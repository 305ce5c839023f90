//! `tamis train --recipe lm`: flags and progress of a search.

use clap::Args;
use serde::Serialize;
use tamis::lm::{Params, Phase, Progress};

use super::history::{History, Step, check_outputs};
use super::keep::{Keeper, check_checkpoint};
use super::parse::{self, Recipe};
use super::progress::Search as Bar;
use super::saved::{Object, summary};
use super::train::{Train, first_given};
use super::{Common, Console, deep, interrupt};
use crate::run::{self, RecoverOptions, Task};
use crate::{Error, Result};

/// Flags of the search.
#[derive(Debug, Args)]
#[command(next_help_heading = "Search (recipe lm)")]
pub(super) struct RecoverArgs {
    /// Rows that the search looks at first [default: 20 a nonzero, at least 1000; 10 a nonzero for large models]
    #[arg(long, value_name = "N", value_parser = parse::whole::<usize>)]
    pub(super) search_rows: Option<usize>,
    /// Times that a search that found nothing better gives part of the network up and goes on [default: 40]
    #[arg(long, value_name = "K", value_parser = parse::whole::<u32>)]
    pub(super) kicks: Option<u32>,
    /// Kicks without progress after which a search is given up that is far from exact [default: 12]
    #[arg(long, value_name = "K", value_parser = parse::whole::<u32>)]
    pub(super) idle_kicks: Option<u32>,
    /// Most turns of published steps, and a search from where they end, after a search that ended without an exact fit; 0 for none.
    /// For one output with positive signs and no rows held out, and as long as they gain a hundredth of the loss. Of limits the
    /// search leaves a part for them [default: 10]
    #[arg(long, value_name = "T", value_parser = parse::whole::<u32>)]
    pub(super) turns: Option<u32>,
}

impl RecoverArgs {
    /// Whether the number of kicks was given.
    pub(super) const fn has_kicks(&self) -> bool {
        self.kicks.is_some()
    }

    /// The first flag that was given, if any.
    pub(super) fn given(&self) -> Option<&'static str> {
        first_given(&[
            (self.search_rows.is_some(), "--search-rows"),
            (self.kicks.is_some(), "--kicks"),
            (self.idle_kicks.is_some(), "--idle-kicks"),
            (self.turns.is_some(), "--turns"),
        ])
    }
}

/// One line of the log.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Line {
    step: u32,
    phase: &'static str,
    loss: f32,
    best: f32,
    support: usize,
    live: usize,
    moves: u32,
    kicks: u32,
    passes: f64,
    seconds: f64,
}

impl Step for Line {
    const NAMES: (&'static str, &'static str, &'static str) = ("Search", "outer step", "Neurons and moves");

    fn number(&self) -> u32 {
        self.step
    }

    fn loss(&self) -> f32 {
        self.loss
    }

    fn curves(&self) -> [Vec<(&'static str, Option<f32>)>; 3] {
        let count = |label, value: usize| (label, Some(value as f32));
        [
            vec![("tried", Some(self.loss)), ("best", Some(self.best))],
            vec![count("weights", self.support)],
            vec![
                count("live neurons", self.live),
                count("moves taken", self.moves as usize),
                count("kicks", self.kicks as usize),
            ],
        ]
    }
}

impl History<Line> {
    /// Adds an outer step of a search on so many rows.
    pub(super) fn see(&mut self, progress: &Progress<'_>, rows: usize) {
        if progress.checkpoint.is_some() {
            return;
        }
        self.add(progress.step, |seconds| Line {
            step: progress.step,
            phase: name(progress.phase),
            loss: progress.loss,
            best: progress.best,
            support: progress.support,
            live: progress.live,
            moves: progress.moves,
            kicks: progress.kicks,
            passes: progress.rows_read as f64 / rows.max(1) as f64,
            seconds,
        });
    }
}

const fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Descend => "descend",
        Phase::Trial => "trial",
        Phase::Move => "move",
        Phase::Kick => "kick",
        Phase::Finish => "finish",
        Phase::AllRows => "all-rows",
        Phase::Polish => "polish",
    }
}

/// Trains by the search: one hidden layer, or two together where there is one output that is never negative; two layers of other
/// networks are trained one by one.
pub(super) fn run(train: &Train, task: Task, common: &Common, console: &Console) -> Result<()> {
    let second = train.hidden.get(1).copied();
    let options = RecoverOptions { second, ..options(train, train.one_hidden(), common)? };
    check_outputs(train)?;
    check_checkpoint(train)?;
    let problem = train.source.source().load_to_learn(task)?;
    if second.is_some() && !run::is_sum(&problem) {
        return deep::learn(train, problem, Recipe::Lm, common, console);
    }
    let mut keeper = Keeper::new(&train.kept, &problem, &options)?;
    let kept = keeper.load(&train.kept, console)?;
    let bar = Bar::new(console);
    let rows = problem.data.rows;
    let mut history = History::new(train)?;
    let outcome = interrupt::training(|| {
        let observe = |progress: &Progress<'_>| {
            bar.update(progress);
            history.see(progress, rows);
            keeper.see(progress);
            true
        };
        match &kept {
            Some(kept) => run::resume(problem, &options, kept, interrupt::stop(), observe),
            None => run::recover(problem, &options, interrupt::stop(), observe),
        }
    });
    bar.clear();
    let outcome = keeper.check(outcome)?;
    interrupt::saving(|| {
        history.save(train, &outcome.model, &outcome.report)?;
        keeper.flush()
    })?;
    let object = Object::new(&train.output, &outcome.model, &outcome.report);
    console.result(&object, || summary(&object, &history.line()))
}

pub(super) fn options(train: &Train, hidden: usize, common: &Common) -> Result<RecoverOptions> {
    let args = &train.recover;
    let mut params = Params { seed: common.seed, ..Params::DEFAULT };
    match args.search_rows {
        Some(0) => {
            return Err(Error::new("the search needs rows")
                .expected("--search-rows 1 or more")
                .got(0)
                .help("leave --search-rows out for a number that suits --nnz"));
        }
        Some(rows) => params.rows = rows,
        None => {}
    }
    params.kicks = args.kicks.unwrap_or(params.kicks);
    params.patience = args.idle_kicks.unwrap_or(params.patience);
    params.validation_patience = train.held.patience.unwrap_or(params.validation_patience);
    let validation = train.held.validation.unwrap_or(0.0);
    if params.validation_patience > 0 && validation == 0.0 {
        return Err(Error::new("patience needs rows held out")
            .expected("--validation above 0, such as 0.1")
            .got(format_args!("--patience {} without it", params.validation_patience))
            .help("pass --validation 0.1 too, or leave --patience out"));
    }
    if args.kicks.is_some() {
        // As many steps as they take: there are other limits.
        params.steps = u32::MAX;
    }
    let usual = RecoverOptions::new(hidden, train.size());
    Ok(RecoverOptions {
        params,
        signs: train.signs.map(Into::into),
        memory: train.memory(),
        threads: common.threads(),
        limits: train.course.limits()?,
        validation,
        turns: args.turns.unwrap_or(usual.turns),
        checkpoints: train.kept.checkpoint.is_some(),
        ..usual
    })
}
