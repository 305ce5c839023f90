//! The log of a run as JSON lines, its picture, and its losses as bars for the terminal.

use std::io::{self, BufRead as _, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::super::interrupt;
use super::args::{LimitArgs, Train};
use crate::base::file::{self, Files, Kind};
use crate::lab::plot::{self, Names, Series, sparkline};
use crate::train::{Progress, StepDetails};
use crate::{Error, Result};

/// Lines of a log, at about the most, of recipes whose steps are many.
const LINES: u32 = 10_000;

/// A line of the log.
#[derive(Debug, Clone, Serialize)]
struct Line {
    step: u32,
    /// Of recipe `anneal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<u32>,
    loss: f32,
    /// Of recipe `lm`, which may have more than s weights on its way; else `nnz`.
    #[serde(skip_serializing_if = "Option::is_none")]
    support: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nnz: Option<usize>,
    live: usize,
    passes: f64,
    seconds: f64,
    #[serde(flatten)]
    details: StepDetails,
    /// After the step that the validation split was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    validation_loss: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    validation_accuracy: Option<f32>,
}

/// Names and values of the curves of a figure; none for what was not measured yet.
type Curves = Vec<(&'static str, Option<f32>)>;

impl Line {
    fn new(progress: &Progress, seconds: f64) -> Self {
        let &Progress { step, loss, nnz, live, passes, details, .. } = progress;
        let is_search = matches!(details, StepDetails::Lm { .. });
        let (support, nnz) = if is_search { (Some(nnz), None) } else { (None, Some(nnz)) };
        let (mut epoch, mut validation) = (None, (None, None));
        if let StepDetails::Anneal { epoch_steps, validation_loss, validation_accuracy, .. } =
            details
        {
            let steps = epoch_steps.max(1);
            epoch = Some(step.div_ceil(steps));
            if step.is_multiple_of(steps) {
                validation = (validation_loss, validation_accuracy);
            }
        }
        if let StepDetails::Dynamic { validation_loss, .. } = details {
            validation = (validation_loss, None);
        }
        let (validation_loss, validation_accuracy) = validation;
        Self {
            step,
            epoch,
            loss,
            support,
            nnz,
            live,
            passes,
            seconds,
            details,
            validation_loss,
            validation_accuracy,
        }
    }

    /// The curves of the three figures: losses, weights, and other counts; all steps have the same.
    fn curves(&self) -> [Curves; 3] {
        let weights = self.support.or(self.nnz).map(|nnz| nnz as f32);
        let live = ("live neurons", Some(self.live as f32));
        let loss = Some(self.loss);
        let (losses, counts) = match self.details {
            StepDetails::Lm { best, search_best, moves, kicks, .. } => {
                let search = ("best of any support", Some(search_best));
                let moves = ("moves taken", Some(moves as f32));
                let perturbations = ("perturbations", Some(kicks as f32));
                let losses = vec![("tried", loss), search, ("best of s weights", best)];
                (losses, vec![live, moves, perturbations])
            }
            StepDetails::Anneal { validation_loss, .. } => {
                (vec![("batch", loss), ("validation", validation_loss)], vec![live])
            }
            StepDetails::Dynamic { validation_loss, .. } => {
                (vec![("epoch", loss), ("validation", validation_loss)], vec![live])
            }
            StepDetails::Paper { trial, .. } => {
                (vec![("batch", loss)], vec![live, ("random start", Some(trial as f32))])
            }
            _ => (vec![("batch", loss)], vec![live]),
        };
        [losses, vec![("weights", weights)], counts]
    }
}

#[derive(Debug)]
pub(crate) struct History {
    /// Empty where neither log nor picture is wanted.
    steps: Vec<Line>,
    /// Every loss; that of the result may be the last.
    pub(crate) losses: Vec<f32>,
    wanted: bool,
    /// Steps from one line of the log to the next.
    every: u32,
    start: Instant,
    /// The log of the run that this one resumes.
    earlier: Vec<LogLine>,
    /// Seconds of that run up to where this run resumes, once its first step says where that is.
    seconds: f64,
}

/// A line of the log of an earlier run; the last one is of the result, and has no step.
#[derive(Debug, Deserialize)]
struct LogLine {
    step: Option<u32>,
    #[serde(default)]
    seconds: f64,
    #[serde(default)]
    result: bool,
    #[serde(skip)]
    line: String,
}

/// The last line of a log.
#[derive(Serialize)]
struct Ending<'a, R> {
    result: bool,
    #[serde(flatten)]
    report: &'a R,
}

impl History {
    /// A run that resumes reads the earlier log, where there is one; seconds count from now on.
    pub(super) fn new(train: &Train) -> Result<Self> {
        let LimitArgs { log, picture, .. } = &train.limits;
        let earlier = match log {
            Some(path) if train.checkpoints.resume && file::exists(path)? => lines(path)?,
            _ => Vec::new(),
        };
        Ok(Self { wanted: log.is_some() || picture.is_some(), earlier, ..Self::losses_only() })
    }

    /// Without log and picture.
    pub(crate) fn losses_only() -> Self {
        Self {
            steps: Vec::new(),
            losses: Vec::new(),
            wanted: false,
            every: 1,
            start: Instant::now(),
            earlier: Vec::new(),
            seconds: 0.0,
        }
    }

    /// Keeps the log short: a line a step, or one at the end of every epoch or every few.
    fn thin(&mut self, steps: u32, epoch: u32) {
        let epoch = epoch.max(1);
        self.every =
            if steps <= LINES { 1 } else { epoch.saturating_mul((steps / epoch).div_ceil(LINES)) };
    }

    /// The losses as bars; a loss falls over decades, so its logarithm is shown.
    pub(crate) fn line(&self) -> String {
        let logs: Vec<f32> = self.losses.iter().map(|loss| loss.log10()).collect();
        sparkline(&logs)
    }

    pub(crate) fn add(&mut self, progress: &Progress) {
        let steps = progress.details;
        let epoch =
            if let StepDetails::Anneal { epoch_steps, .. } = steps { epoch_steps } else { 1 };
        self.thin(progress.steps, epoch);
        if self.steps.is_empty() && !self.earlier.is_empty() {
            // The earlier run may have gone further than its checkpoint.
            let last = self.earlier.iter().rposition(|line| line.step < Some(progress.step));
            self.earlier.truncate(last.map_or(0, |last| last + 1));
            self.seconds = self.earlier.last().map_or(0.0, |line| line.seconds);
        }
        self.losses.push(progress.loss);
        if self.wanted {
            self.steps.push(Line::new(progress, self.seconds + self.start.elapsed().as_secs_f64()));
        }
    }

    /// Writes the model, and log and picture where they are wanted: all of them or none.
    pub(super) fn save(&self, train: &Train, model: &[u8], report: &impl Serialize) -> Result<()> {
        let write = |files: &mut Files| {
            files.write(&train.output, |out| out.write_all(model))?;
            if let Some(path) = &train.limits.log {
                files.write(path, |out| self.write_log(out, report))?;
            }
            if let Some(path) = &train.limits.picture {
                files.write(path, |out| out.write_all(self.draw().as_bytes()))?;
            }
            Ok(())
        };
        interrupt::saving(|| file::write_files(write))
    }

    fn write_log(&self, mut out: impl Write, report: &impl Serialize) -> io::Result<()> {
        for line in &self.earlier {
            writeln!(out, "{}", line.line)?;
        }
        let every = self.every.max(1);
        for step in self.steps.iter().filter(|step| step.step.is_multiple_of(every)) {
            writeln!(out, "{}", serde_json::to_string(step)?)?;
        }
        writeln!(out, "{}", serde_json::to_string(&Ending { result: true, report })?)
    }

    fn draw(&self) -> String {
        let curves = [0, 1, 2].map(|figure| self.columns(figure));
        let [losses, support, counts] = curves.each_ref().map(|columns| -> Vec<Series<'_>> {
            let drawn = columns.iter().filter(|(.., values)| !values.is_empty());
            drawn.map(|(label, first, values)| Series { label, first: *first, values }).collect()
        });
        // Heading, what a step is, and what is counted beside the support.
        let (title, step, counted) = match self.steps.first().map(|step| step.details) {
            Some(StepDetails::Lm { .. }) => ("Search", "outer step", "Neurons and moves"),
            Some(StepDetails::Paper { .. }) => ("Training", "step", "Neurons and starts"),
            _ => ("Training", "step", "Neurons"),
        };
        plot::course(Names { title, step, counted }, &losses, &support, &counts)
    }

    /// Name of each curve, number of the first step that has a value, and values from there on.
    fn columns(&self, figure: usize) -> Vec<(&'static str, usize, Vec<f32>)> {
        let Some(first) = self.steps.first() else { return Vec::new() };
        let mut columns: Vec<_> =
            first.curves()[figure].iter().map(|(label, _)| (*label, 1, Vec::new())).collect();
        for step in &self.steps {
            for ((_, first, values), (_, value)) in columns.iter_mut().zip(&step.curves()[figure]) {
                match value {
                    None if values.is_empty() => *first += 1,
                    value => values.push(value.unwrap_or(f32::NAN)),
                }
            }
        }
        columns
    }
}

/// The lines of a log, without its last one, of the result.
fn lines(path: &Path) -> Result<Vec<LogLine>> {
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(BufReader::new(file::open(path)?.0).lines()) {
        let line = line
            .map_err(|error| Error::new("cannot read the log to resume").at(path).source(error))?;
        match serde_json::from_str::<LogLine>(&line) {
            Ok(parsed) if parsed.result => {}
            Ok(parsed) if parsed.step.is_some() => lines.push(LogLine { line, ..parsed }),
            _ => {
                return Err(Error::new("the file to log to is not the log of a run to resume")
                    .at(path)
                    .expected("a JSON object with a step on each line, as --log writes them")
                    .got(format_args!("something else on line {number}"))
                    .help("choose another name, or remove it"));
            }
        }
    }
    Ok(lines)
}

/// Checks that all files can be written, and that they are different ones.
pub(super) fn check_outputs(train: &Train) -> Result<()> {
    let LimitArgs { log, picture, .. } = &train.limits;
    let outputs = [
        (Some(&train.output), Kind::MODEL),
        (log.as_ref(), Kind::LOG),
        (picture.as_ref(), Kind::PICTURE),
        (train.checkpoints.checkpoint.as_ref(), Kind::CHECKPOINT),
    ];
    for (k, (path, kind)) in outputs.iter().enumerate() {
        let Some(path) = path else { continue };
        let is_same = |other: &PathBuf| file::place(other) == file::place(path);
        if outputs[..k].iter().any(|(other, _)| other.is_some_and(is_same)) {
            return Err(Error::new("two outputs have one name")
                .at(path)
                .expected("a file for each of -o, --log, --picture and --checkpoint")
                .got(path.display())
                .help("name them differently"));
        }
        file::check(path, *kind, train.source.inputs())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_log_never_exceeds_one_line_per_epoch() {
        let mut history = History::losses_only();
        let mut every = |steps, epoch| {
            history.thin(steps, epoch);
            history.every
        };
        assert_eq!((every(10_000, 100), every(10_001, 100)), (1, 100));
        // 20 000 epochs of one step; an epoch longer than the log; counts that stand for no run.
        assert_eq!((every(20_000, 1), every(3_000_000, 1_000_000)), (2, 1_000_000));
        assert_eq!((every(0, 0), every(u32::MAX, 0)), (1, 429_497));
    }
}
