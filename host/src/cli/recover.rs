//! `tamis train --recipe lm`: flags and progress of a search.

use clap::Args;
use serde::Serialize;
use tamis::lm::{Params, Phase, Progress};

use super::history::{History, Step, check_outputs};
use super::parse;
use super::progress::Search as Bar;
use super::saved::{Object, summary};
use super::train::{KeptArgs, Train, first_given};
use super::{Common, Console, interrupt, say_error};
use crate::run::{self, Keep, Kept, Problem, RecoverOptions, Task};
use crate::{Error, Result, file};

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
    /// Kicks without progress after which a search is given up that is far from exact [default: 6]
    #[arg(long, value_name = "K", value_parser = parse::whole::<u32>)]
    pub(super) idle_kicks: Option<u32>,
}

impl RecoverArgs {
    /// The first flag that was given, if any.
    pub(super) fn given(&self) -> Option<&'static str> {
        first_given(&[
            (self.search_rows.is_some(), "--search-rows"),
            (self.kicks.is_some(), "--kicks"),
            (self.idle_kicks.is_some(), "--idle-kicks"),
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
    const TITLE: &'static str = "Search";

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
        self.add(|seconds| Line {
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

/// Trains by the search.
pub(super) fn run(train: &Train, task: Task, common: &Common, console: &Console) -> Result<()> {
    let options = options(train, common)?;
    check_outputs(train)?;
    check_checkpoint(train)?;
    let problem = train.source.source().load_to_learn(task)?;
    let mut keeper = Keeper::new(&train.kept, &problem, &options)?;
    let kept = keeper.load(&train.kept, console)?;
    let bar = Bar::new(console);
    let rows = problem.data.rows;
    let mut history = History::new(&train.course);
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
    let outcome = match outcome {
        Err(error) if error.is_interrupted() => return Err(keeper.interrupted(error)),
        outcome => outcome?,
    };
    interrupt::saving(|| {
        history.save(train, &outcome.model, &outcome.report)?;
        keeper.flush()
    })?;
    let object = Object::new(&train.output, &outcome.model, &outcome.report);
    console.result(&object, || summary(&object, &history.line()))
}

/// Checks that no checkpoint would be lost.
fn check_checkpoint(train: &Train) -> Result<()> {
    let kept = &train.kept;
    match &kept.checkpoint {
        Some(path) if !kept.resume && file::exists(path)? => Err(Error::new("there is a checkpoint already")
            .at(path)
            .expected("--resume, or the name of a file that there is not")
            .got("a file of that name, which this search would overwrite")
            .help("pass --resume to go on from it, or remove it to start anew")),
        _ => Ok(()),
    }
}

/// Keeps checkpoints where they are wanted.
struct Keeper {
    keep: Option<Keep>,
    /// Whether the user was told that the file cannot be written.
    warned: bool,
}

impl Keeper {
    fn new(args: &KeptArgs, problem: &Problem, options: &RecoverOptions) -> Result<Self> {
        let keep = args.checkpoint.as_ref().map(|path| Keep::new(path, problem, options)).transpose()?;
        Ok(Self { keep, warned: false })
    }

    /// The checkpoint to go on from.
    fn load(&self, args: &KeptArgs, console: &Console) -> Result<Option<Kept>> {
        let (Some(keep), Some(path), true) = (&self.keep, &args.checkpoint, args.resume) else {
            return Ok(None);
        };
        let kept = keep.load()?;
        if kept.is_none() {
            console.say(format_args!("There is no {} yet: the search starts anew.", path.display()))?;
        }
        Ok(kept)
    }

    /// Writes what is due; at once where the run is about to end, so that a second Ctrl-C loses nothing. A file that cannot
    /// be written is no reason to end the search: it is tried again, and told at the end.
    fn see(&mut self, progress: &Progress<'_>) {
        let Some(keep) = &mut self.keep else { return };
        if progress.checkpoint.is_none() && !interrupt::stop().asked() {
            return;
        }
        let written = interrupt::saving(|| {
            keep.see(progress)?;
            if interrupt::stop().asked() { keep.flush().map(|_| ()) } else { Ok(()) }
        });
        if let Err(error) = written
            && !self.warned
        {
            self.warned = true;
            say_error(format_args!("warning: the search goes on without a checkpoint: {error}"));
        }
    }

    fn flush(&mut self) -> Result<()> {
        self.keep.as_mut().map_or(Ok(()), |keep| keep.flush().map(|_| ()))
    }

    /// What to say of a run that was ended before its first step.
    fn interrupted(&mut self, error: Error) -> Error {
        match interrupt::saving(|| self.flush()) {
            Err(error) => error,
            Ok(()) if self.keep.is_some() => {
                error.help("--resume goes on from the checkpoint, where there is one")
            }
            Ok(()) => error,
        }
    }
}

fn options(train: &Train, common: &Common) -> Result<RecoverOptions> {
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
    let (hidden, second) = match train.hidden[..] {
        [first, second] => (first, Some(second)),
        _ => (train.one_hidden()?, None),
    };
    Ok(RecoverOptions {
        params,
        second,
        signs: train.signs.map(Into::into),
        memory: train.memory(),
        threads: common.threads(),
        limits: train.course.limits()?,
        validation,
        checkpoints: train.kept.checkpoint.is_some(),
        ..RecoverOptions::new(hidden, train.size())
    })
}
