//! Runs the cells that are missing, each in a process of its own.
//!
//! So a crash, want of memory or the time limit costs one cell, and the measured memory is that of
//! the cell. Its process ends when its parent has ended, however that came: it reads its standard
//! input, which nobody writes to, and exits where that ends.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::cell::{Cell, Choice, Job, Place};
use super::masked;
use super::masks;
use super::problem;
use super::record::{Ending, Record, Status, one_line};
use super::solve;
use super::spec::{Data, Part, Spec};
use super::store::{Store, check_code};
use super::theory;
use super::{dense, environment};
use crate::operator::Stop;
use crate::{Error, Result};

/// The variable that tells a process that its parent holds its standard input.
pub(crate) const WATCH_VARIABLE: &str = "TAMIS_WATCH_PARENT";
/// The longest time from one look at a process to the next.
const LOOK: Duration = Duration::from_millis(20);
/// Most bytes of the error of a process in its record.
const ERROR_BYTES: u64 = 4000;

/// Which cells to run, and how.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunOptions {
    /// Processes at once.
    pub(crate) jobs: usize,
    pub(crate) threads: usize,
    pub(crate) time_limit: Option<Duration>,
    pub(crate) choice: Choice,
    /// Whether cells that failed, crashed or took too long are run again.
    pub(crate) retry: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub(crate) struct Summary {
    /// That are meant.
    pub(crate) cells: usize,
    /// That were done before.
    pub(crate) before: usize,
    /// That this run has added.
    pub(crate) ran: usize,
    /// With a result, those before included; and so on by status.
    pub(crate) done: usize,
    pub(crate) skipped: usize,
    pub(crate) failed: usize,
    pub(crate) timeout: usize,
    pub(crate) crashed: usize,
    pub(crate) stopped: bool,
}

impl Summary {
    fn count(&mut self, status: Status) {
        match status {
            Status::Done => self.done += 1,
            Status::Skipped => self.skipped += 1,
            Status::Failed => self.failed += 1,
            Status::Timeout => self.timeout += 1,
            Status::Crashed => self.crashed += 1,
        }
    }
}

/// The trainings that a run has to do, each with the cells that it is for, and what it finds done.
pub(crate) fn missing(store: &Store, options: &RunOptions) -> Result<(Vec<Vec<Cell>>, Summary)> {
    let (mut todo, mut summary) = (Vec::new(), Summary::default());
    for training in options.choice.trainings(&store.spec) {
        let mut cells = Vec::new();
        for cell in training {
            summary.cells += 1;
            let found = store.cell(&cell)?;
            if let Some(record) = &found {
                check_code(&store.path, record.code.as_deref())?;
            }
            match found {
                Some(record) if !(options.retry && record.status > Status::Skipped) => {
                    summary.before += 1;
                    summary.count(record.status);
                }
                _ => cells.push(cell),
            }
        }
        todo.extend(Some(cells).filter(|cells| !cells.is_empty()));
    }
    Ok((todo, summary))
}

/// Checks that the files of all these cells are there.
pub(crate) fn check_files(spec: &Spec, cells: &[Cell], folder: Option<&Path>) -> Result<()> {
    let has_cells = |part: &&Part| cells.iter().any(|cell| cell.part == part.name);
    spec.part.iter().filter(has_cells).try_for_each(|part| problem::check_files(part, folder))
}

/// Runs cells in processes that `command` makes, and merges the results. `observe` is told of every
/// cell that has ended. `stop`, or an error, ends the run: the cells on their way are given up.
pub(crate) fn run(
    store: &Store,
    options: &RunOptions,
    command: impl Fn(&[Cell]) -> Command + Sync,
    stop: &Stop,
    observe: impl Fn(&Record) + Sync,
) -> Result<Summary> {
    let (todo, mut summary) = missing(store, options)?;
    let queue = Mutex::new(todo.into_iter());
    let ended = Mutex::new((Vec::new(), None));
    // A worker that meets an error ends the others.
    let give_up = || stop.asked() || ended.lock().is_ok_and(|ended| ended.1.is_some());
    let next = || queue.lock().ok().and_then(|mut queue| queue.next());
    let worker = || {
        while let Some(cells) = next().filter(|_| !give_up()) {
            let outcome = run_training(store, &cells, command(&cells), options, give_up);
            if let Ok(Some(records)) = &outcome {
                records.iter().for_each(&observe);
            }
            let Ok(mut ended) = ended.lock() else { return };
            match outcome {
                Ok(Some(records)) => ended.0.extend(records.iter().map(|record| record.status)),
                Ok(None) => return,
                Err(error) => drop(ended.1.get_or_insert(error)),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(worker);
        }
    });
    let (statuses, error) = ended.into_inner().unwrap_or_default();
    if let Some(error) = error {
        return Err(error);
    }
    store.merge()?;
    summary.ran = statuses.len();
    statuses.into_iter().for_each(|status| summary.count(status));
    summary.stopped = stop.asked();
    Ok(summary)
}

/// Runs the cells of one training in a process; their records, or nothing where it was given up.
fn run_training(
    store: &Store,
    cells: &[Cell],
    mut command: Command,
    options: &RunOptions,
    give_up: impl Fn() -> bool,
) -> Result<Option<Vec<Record>>> {
    let failed = |error| {
        Error::new("cannot start the process of a cell")
            .source(error)
            .help("check that the program is still there")
    };
    // A pipe would be full at some time.
    let mut said = tempfile::tempfile().map_err(failed)?;
    command.env(WATCH_VARIABLE, "1").stdin(Stdio::piped()).stdout(Stdio::null());
    command.stderr(said.try_clone().map_err(failed)?);
    let read = || cells.iter().map(|cell| store.cell(cell)).collect::<Result<Vec<_>>>();
    let retried = read()?;
    let mut child = command.spawn().map_err(failed)?;
    let limit = options.time_limit.map(|limit| limit.saturating_mul(cells.len() as u32));
    let (status, reason) = match attend(&mut child, limit, &give_up).map_err(failed)? {
        None if give_up() => return Ok(None),
        None => {
            let seconds = limit.unwrap_or_default().as_secs_f64();
            (Status::Timeout, format!("longer than {seconds} s"))
        }
        Some(exit) => {
            let records = read()?;
            let is_new = exit.success() || records.iter().zip(&retried).all(|(a, b)| a != b);
            if let Some(records) = records.into_iter().collect::<Option<Vec<_>>>()
                && is_new
            {
                return Ok(Some(records));
            }
            let text = last_words(&mut said);
            let reason = match exit.code() {
                // Ended by the same Ctrl-C as the run, which has not seen it yet.
                Some(130) => return Ok(None),
                // What training meets is recorded by the process itself: this is about all cells.
                Some(1 | 2) => return Err(cannot_run(&cells[0], &text)),
                Some(_) => format!("the process crashed ({exit}): {text}"),
                None => {
                    format!("the process was ended ({exit}), perhaps for want of memory {text}")
                }
            };
            (Status::Crashed, reason.trim_end().to_owned())
        }
    };
    let lost = |cell: &Cell| {
        let mut record = Record::new(cell, status, options.threads, environment::commit());
        record.reason = Some(reason.clone());
        store.write(&record)?;
        Ok(record)
    };
    cells.iter().map(lost).collect::<Result<Vec<_>>>().map(Some)
}

/// The data are damaged, or the record cannot be written.
fn cannot_run(cell: &Cell, text: &str) -> Error {
    let said = one_line(text.strip_prefix("error: ").unwrap_or(text));
    Error::new(format!("cell {} cannot be run", cell.id()))
        .got(if said.is_empty() { "no reason: perhaps the disk is full" } else { &said })
        .help("mend the cause and run the same command again: it resumes with what is missing")
}

/// Waits for a process; ends it after the limit, or when it is to be given up, and returns none.
fn attend(
    child: &mut Child,
    limit: Option<Duration>,
    give_up: impl Fn() -> bool,
) -> std::io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    while !give_up() && limit.is_none_or(|limit| start.elapsed() < limit) {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(LOOK);
    }
    if let Some(status) = child.try_wait()? {
        return Ok(Some(status));
    }
    // It may just have ended.
    let _ = child.kill();
    child.wait().map(|_| None)
}

/// The end of what a process has said.
fn last_words(said: &mut std::fs::File) -> String {
    let mut text = Vec::new();
    let len = said.metadata().map_or(0, |about| about.len());
    if said.seek(SeekFrom::Start(len.saturating_sub(ERROR_BYTES))).is_ok() {
        let _ = said.read_to_end(&mut text);
    }
    String::from_utf8_lossy(&text).trim().to_owned()
}

/// Runs the cells of one training here and writes their records, also of a failure; nothing if
/// interrupted.
pub(crate) fn run_here(
    store: &Store,
    cells: &[Cell],
    folder: Option<&Path>,
    on: Place<'_>,
    stop: &Stop,
) -> Result<Vec<Record>> {
    let Some(cell) = cells.first() else { return Ok(Vec::new()) };
    let part = store.spec.part_of(cell)?;
    let load = || problem::load(part, cell, folder);
    let job = Job { part, cell, on, stop };
    let one = |solved| vec![Ending::Done(Box::new(solved))];
    let endings = match &part.data {
        Data::Masks { .. } => masks::measure(&job, &load()?).map(one),
        Data::Masked(data) => masked::measure(data, &job, load()?).map(one),
        Data::Dense(_) => dense::measure(&job, load()?).map(one),
        data if data.is_check() => theory::measure(&job).map(one),
        _ => solve::solve(part, cells, load()?, on, stop),
    };
    if stop.asked() {
        return Err(Error::interrupted());
    }
    let endings =
        endings.unwrap_or_else(|error| vec![Ending::Failed(error.to_string()); cells.len()]);
    debug_assert_eq!(endings.len(), cells.len());
    let record = |(cell, ending): (&Cell, Ending)| {
        let mut record = Record::new(cell, Status::Done, on.threads, environment::commit());
        match ending {
            Ending::Done(solved) => record.solved = Some(*solved),
            Ending::Skipped(why) => (record.status, record.reason) = (Status::Skipped, Some(why)),
            Ending::Failed(why) => (record.status, record.reason) = (Status::Failed, Some(why)),
        }
        store.write(&record)?;
        Ok(record)
    };
    cells.iter().zip(endings).map(record).collect()
}

/// Ends this process when the one that has started it has ended, where that asked for it.
pub(crate) fn watch_parent() {
    if std::env::var_os(WATCH_VARIABLE).is_none() {
        return;
    }
    std::thread::spawn(|| {
        let mut bytes = [0; 64];
        while matches!(std::io::stdin().read(&mut bytes), Ok(1..)) {}
        std::process::exit(130);
    });
}
