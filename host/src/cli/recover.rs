//! `tamis train --recipe lm`: flags, progress, log and picture of a search.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use tamis::lm::{Params, Phase, Progress};

use super::parse;
use super::progress::Search as Bar;
use super::train::{KeptArgs, Object, Train, first_given, summary};
use super::{Common, Console, interrupt, say_error};
use crate::file::Files;
use crate::plot::{self, Series, sparkline};
use crate::run::{self, Keep, Kept, Limits, Problem, RecoverOptions, Task};
use crate::{Error, Result, file};

/// Flags of the search.
#[derive(Debug, Args)]
#[command(next_help_heading = "Search (recipe lm)")]
pub(super) struct RecoverArgs {
    /// Seconds after which this run ends the search; what it has found is thresholded and fitted, which takes a little more
    #[arg(long, value_name = "SECONDS", value_parser = parse::number)]
    pub(super) time_limit: Option<f64>,
    /// Passes over all rows after which the search ends, those of the parts before --resume included
    #[arg(long, value_name = "P", value_parser = parse::number)]
    pub(super) passes_limit: Option<f64>,
    /// Rows that the search looks at first [default: 20 a nonzero, at least 1000; 10 a nonzero for large models]
    #[arg(long, value_name = "N", value_parser = parse::whole::<usize>)]
    pub(super) search_rows: Option<usize>,
    /// Times that a search that found nothing better gives part of the network up and goes on [default: 40]
    #[arg(long, value_name = "K", value_parser = parse::whole::<u32>)]
    pub(super) kicks: Option<u32>,
    /// Kicks without progress after which a search is given up that is far from exact [default: 6]
    #[arg(long, value_name = "K", value_parser = parse::whole::<u32>)]
    pub(super) idle_kicks: Option<u32>,
    /// Write one JSON object per outer step of this run to this file
    #[arg(long, value_name = "FILE.jsonl")]
    pub(super) log: Option<PathBuf>,
    /// Draw this run to this file: loss, support, live neurons
    #[arg(long, value_name = "FILE.svg")]
    pub(super) picture: Option<PathBuf>,
}

impl RecoverArgs {
    /// The first flag that was given, if any.
    pub(super) fn given(&self) -> Option<&'static str> {
        first_given(&[
            (self.time_limit.is_some(), "--time-limit"),
            (self.passes_limit.is_some(), "--passes-limit"),
            (self.search_rows.is_some(), "--search-rows"),
            (self.kicks.is_some(), "--kicks"),
            (self.idle_kicks.is_some(), "--idle-kicks"),
            (self.log.is_some(), "--log"),
            (self.picture.is_some(), "--picture"),
        ])
    }

    fn limits(&self) -> Result<Limits> {
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

/// What happened, step by step.
#[derive(Debug)]
pub(super) struct History {
    pub(super) lines: Vec<Line>,
    rows: usize,
    start: Instant,
}

impl History {
    pub(super) fn new(rows: usize) -> Self {
        Self { lines: Vec::new(), rows, start: Instant::now() }
    }

    pub(super) fn add(&mut self, progress: &Progress<'_>) {
        if progress.checkpoint.is_some() {
            return;
        }
        self.lines.push(Line {
            step: progress.step,
            phase: name(progress.phase),
            loss: progress.loss,
            best: progress.best,
            support: progress.support,
            live: progress.live,
            moves: progress.moves,
            kicks: progress.kicks,
            passes: progress.rows_read as f64 / self.rows.max(1) as f64,
            seconds: self.start.elapsed().as_secs_f64(),
        });
    }

    /// The loss of every step.
    pub(super) fn losses(&self) -> Vec<f32> {
        self.lines.iter().map(|line| line.loss).collect()
    }

    /// The losses as bars.
    pub(super) fn line(&self) -> String {
        let logs: Vec<f32> = self.lines.iter().map(|line| line.loss.log10()).collect();
        sparkline(&logs)
    }

    /// Writes log and picture where they are wanted.
    fn write(&self, args: &RecoverArgs, files: &mut Files) -> Result<()> {
        if let Some(path) = &args.log {
            files.write(path, |out| {
                for line in &self.lines {
                    serde_json::to_writer(&mut *out, line)?;
                    out.write_all(b"\n")?;
                }
                Ok(())
            })?;
        }
        if let Some(path) = &args.picture {
            let picture = self.draw();
            files.write(path, |out| out.write_all(picture.as_bytes()))?;
        }
        Ok(())
    }

    /// The picture of the run.
    pub(super) fn draw(&self) -> String {
        let column = |value: fn(&Line) -> f32| -> Vec<f32> { self.lines.iter().map(value).collect() };
        let (loss, best) = (column(|line| line.loss), column(|line| line.best));
        let (support, live) = (column(|line| line.support as f32), column(|line| line.live as f32));
        let (moves, kicks) = (column(|line| line.moves as f32), column(|line| line.kicks as f32));
        let series = |label, values| Series { label, first: 1, values };
        plot::search(
            "Search",
            &[series("tried", &loss), series("best", &best)],
            &[series("weights", &support)],
            &[series("live neurons", &live), series("moves taken", &moves), series("kicks", &kicks)],
        )
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
    let args = &train.recover;
    let options = options(train, common)?;
    check_outputs(train)?;
    let problem = train.source.source().load_to_learn(task)?;
    let mut keeper = Keeper::new(&train.kept, &problem, &options)?;
    let kept = keeper.load(&train.kept, console)?;
    let bar = Bar::new(console);
    let mut history = History::new(problem.data.rows);
    let outcome = interrupt::training(|| {
        let observe = |progress: &Progress<'_>| {
            bar.update(progress);
            history.add(progress);
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
        file::write_files(|files| {
            files.write(&train.output, |out| out.write_all(&outcome.model))?;
            history.write(args, files)
        })?;
        keeper.flush()
    })?;
    let object = Object {
        model: train.output.display().to_string(),
        model_bytes: outcome.model.len(),
        report: &outcome.report,
    };
    console.result(&object, || summary(&object, &history.line()))
}

/// Checks that all files can be written, and that they are different ones.
fn check_outputs(train: &Train) -> Result<()> {
    let (args, kept) = (&train.recover, &train.kept);
    let outputs = [Some(&train.output), args.log.as_ref(), args.picture.as_ref(), kept.checkpoint.as_ref()];
    for (k, path) in outputs.iter().enumerate() {
        let Some(path) = path else { continue };
        file::check(path)?;
        file::check_distinct(path, train.source.inputs())?;
        if outputs[..k].contains(&Some(path)) {
            return Err(Error::new("two outputs have one name")
                .at(path)
                .expected("a file for each of -o, --log, --picture and --checkpoint")
                .got(path.display())
                .help("name them differently"));
        }
    }
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
    Ok(RecoverOptions {
        params,
        signs: train.signs.map(Into::into),
        memory: train.memory(),
        threads: common.threads(),
        limits: args.limits()?,
        validation,
        checkpoints: train.kept.checkpoint.is_some(),
        ..RecoverOptions::new(train.one_hidden()?, train.size())
    })
}
