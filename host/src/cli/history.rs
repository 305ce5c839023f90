//! What a training run tells of its steps: a log as JSON lines, a picture, and bars for the terminal.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::interrupt;
use super::train::{CourseArgs, Train};
use crate::file::{self, Files};
use crate::plot::{self, Series, sparkline};
use crate::{Error, Result};

/// Lines of a log, at about the most, of recipes whose steps are many.
const LINES: u32 = 10_000;

/// What a recipe tells of a step; serialised it is a line of the log.
pub(super) trait Step: Serialize {
    /// Heading of the picture, what a step is, and what is counted beside the support.
    const NAMES: (&'static str, &'static str, &'static str);

    /// Its number, from 1.
    fn number(&self) -> u32;

    fn loss(&self) -> f32;

    /// Names and values of the curves in the three figures of the picture: losses, weights, and other counts. The names are
    /// the same in all steps; what was not measured yet has no value.
    fn curves(&self) -> [Vec<(&'static str, Option<f32>)>; 3];
}

/// What happened, step by step.
#[derive(Debug)]
pub(super) struct History<S> {
    /// Empty where neither log nor picture is wanted.
    steps: Vec<S>,
    losses: Vec<f32>,
    wanted: bool,
    /// Steps from one line of the log to the next.
    every: u32,
    start: Instant,
    /// The log of the part that this run goes on from.
    before: Vec<Before>,
    /// Seconds of that part up to where this run goes on, once its first step says where that is.
    seconds: f64,
}

/// A line of the log of an earlier part.
#[derive(Debug)]
struct Before {
    step: u32,
    seconds: f64,
    line: String,
}

/// The last line of a log.
#[derive(Serialize)]
struct Ending<'a, R> {
    result: bool,
    #[serde(flatten)]
    report: &'a R,
}

impl<S> History<S> {
    /// For what the flags ask for; seconds count from now on. A run that goes on reads the log of the part before it, where there is
    /// one.
    ///
    /// # Errors
    /// The file to log to is no log, which would be lost, or cannot be read.
    pub(super) fn new(train: &Train) -> Result<Self> {
        let CourseArgs { log, picture, .. } = &train.course;
        let before = match log {
            Some(path) if train.kept.resume && file::exists(path)? => lines(path)?,
            _ => Vec::new(),
        };
        Ok(Self { wanted: log.is_some() || picture.is_some(), before, ..Self::losses_only() })
    }

    /// Without log and picture.
    pub(super) fn losses_only() -> Self {
        Self {
            steps: Vec::new(),
            losses: Vec::new(),
            wanted: false,
            every: 1,
            start: Instant::now(),
            before: Vec::new(),
            seconds: 0.0,
        }
    }

    /// Keeps the log of a run of so many steps, so many of them an epoch, short: a line a step, or one at the end of every epoch
    /// or every few.
    pub(super) fn thin(&mut self, steps: u32, epoch: u32) {
        let epoch = epoch.max(1);
        self.every = if steps <= LINES { 1 } else { epoch.saturating_mul((steps / epoch).div_ceil(LINES)) };
    }

    /// Every loss.
    pub(super) fn losses(&self) -> &[f32] {
        &self.losses
    }

    /// The losses as bars; a loss falls over decades, so its logarithm is shown.
    pub(super) fn line(&self) -> String {
        let logs: Vec<f32> = self.losses.iter().map(|loss| loss.log10()).collect();
        sparkline(&logs)
    }

    /// Adds the loss of the result to the bars.
    pub(super) fn end(&mut self, loss: f32) {
        self.losses.push(loss);
    }
}

impl<S: Step> History<S> {
    /// Adds the step of this number, made from the seconds so far.
    pub(super) fn add(&mut self, number: u32, step: impl FnOnce(f64) -> S) {
        if self.steps.is_empty() && !self.before.is_empty() {
            // The part before may have gone further than its checkpoint.
            let kept = self.before.iter().rposition(|line| line.step < number).map_or(0, |last| last + 1);
            self.before.truncate(kept);
            self.seconds = self.before.last().map_or(0.0, |line| line.seconds);
        }
        let step = step(self.seconds + self.start.elapsed().as_secs_f64());
        self.losses.push(step.loss());
        if self.wanted {
            self.steps.push(step);
        }
    }

    /// Writes the model, and log and picture where they are wanted: all of them or none.
    pub(super) fn save(&self, train: &Train, model: &[u8], report: &impl Serialize) -> Result<()> {
        interrupt::saving(|| {
            file::write_files(|files| {
                files.write(&train.output, |out| out.write_all(model))?;
                self.write(&train.course, report, files)
            })
        })
    }

    fn write(&self, args: &CourseArgs, report: &impl Serialize, files: &mut Files) -> Result<()> {
        if let Some(path) = &args.log {
            let every = self.every.max(1);
            files.write(path, |out| {
                for before in &self.before {
                    out.write_all(before.line.as_bytes())?;
                    out.write_all(b"\n")?;
                }
                for step in self.steps.iter().filter(|step| step.number().is_multiple_of(every)) {
                    serde_json::to_writer(&mut *out, step)?;
                    out.write_all(b"\n")?;
                }
                serde_json::to_writer(&mut *out, &Ending { result: true, report })?;
                out.write_all(b"\n")
            })?;
        }
        if let Some(path) = &args.picture {
            let picture = self.draw();
            files.write(path, |out| out.write_all(picture.as_bytes()))?;
        }
        Ok(())
    }

    /// The picture of the run.
    fn draw(&self) -> String {
        let curves = [0, 1, 2].map(|figure| self.columns(figure));
        let [losses, support, counts] = [0, 1, 2].map(|figure: usize| -> Vec<Series<'_>> {
            let drawn = curves[figure].iter().filter(|(.., values)| !values.is_empty());
            drawn.map(|(label, first, values)| Series { label, first: *first, values }).collect()
        });
        plot::course(S::NAMES, &losses, &support, &counts)
    }

    /// The curves of a figure: name, number of the first step that has a value, and values from there on.
    fn columns(&self, figure: usize) -> Vec<(&'static str, usize, Vec<f32>)> {
        let Some(first) = self.steps.first() else { return Vec::new() };
        let mut columns: Vec<_> =
            first.curves()[figure].iter().map(|(label, _)| (*label, 1, Vec::new())).collect();
        for step in &self.steps {
            for ((_, first, values), (_, value)) in columns.iter_mut().zip(&step.curves()[figure]) {
                match value {
                    Some(value) => values.push(*value),
                    None if values.is_empty() => *first += 1,
                    None => values.push(f32::NAN),
                }
            }
        }
        columns
    }
}

/// The lines of a log, without its last one, of the result.
fn lines(path: &Path) -> Result<Vec<Before>> {
    #[derive(Deserialize)]
    struct Line {
        step: Option<u32>,
        seconds: Option<f64>,
        result: Option<bool>,
    }
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(BufReader::new(file::open(path)?.0).lines()) {
        let line =
            line.map_err(|error| Error::new("cannot read the log to go on with").at(path).source(error))?;
        let parsed: Option<Line> = serde_json::from_str(&line).ok();
        match parsed {
            Some(Line { result: Some(true), .. }) => {}
            Some(Line { step: Some(step), seconds, .. }) => {
                lines.push(Before { step, seconds: seconds.unwrap_or(0.0), line });
            }
            _ => {
                return Err(Error::new("the file to log to is not the log of a run to go on with")
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
    let (args, kept) = (&train.course, &train.kept);
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
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_of_many_steps_has_a_line_an_epoch_or_fewer() {
        let mut history = History::<()>::losses_only();
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
