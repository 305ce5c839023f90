//! `tamis train --recipe anneal`

use clap::Args;
use serde::Serialize;
use tamis::anneal::{Params, Progress};

use super::console::{self, count};
use super::history::{History, Step, check_outputs};
use super::keep::{Keeper, check_checkpoint};
use super::parse;
use super::progress::Bar;
use super::saved::{Object, accuracy_fact, kept_fact, limit_fact, memory_fact, resumed_fact};
use super::train::{Train, first_given};
use super::{Common, Console, interrupt};
use crate::Result;
use crate::run::{self, AnnealOptions, AnnealReport, Task};

/// Flags of this recipe alone.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Classes (recipe anneal)")]
pub(super) struct AnnealArgs {
    /// Entries of the first support in units of S; --ram may lower it [default: 10]
    #[arg(long, value_name = "F", value_parser = parse::number)]
    start_factor: Option<f64>,
    /// Part of the support that the first change of it drops and grows again, from 0 to 1 [default: 0.3]
    #[arg(long, value_name = "PART", value_parser = parse::number)]
    drop: Option<f64>,
}

impl AnnealArgs {
    /// The first flag that was given, if any.
    pub(super) fn given(&self) -> Option<&'static str> {
        first_given(&[(self.start_factor.is_some(), "--start-factor"), (self.drop.is_some(), "--drop")])
    }
}

/// One line of the log.
#[derive(Debug, Clone, Serialize)]
struct Line {
    step: u32,
    epoch: u32,
    loss: f32,
    rate: f32,
    nnz: usize,
    live: usize,
    passes: f64,
    seconds: f64,
    /// After the step that the rows held out were looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    validation_loss: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    validation_accuracy: Option<f32>,
    /// The last such loss.
    #[serde(skip)]
    held: Option<f32>,
}

impl Line {
    /// With `epoch` steps an epoch.
    fn new(progress: &Progress<'_>, epoch: u32, rows: usize, seconds: f64) -> Self {
        let &Progress { step, loss, rate, nnz, live, rows_read, validation, .. } = progress;
        let measured = validation.filter(|_| step.is_multiple_of(epoch));
        Self {
            step,
            epoch: step.div_ceil(epoch),
            loss,
            rate,
            nnz,
            live,
            passes: rows_read as f64 / rows.max(1) as f64,
            seconds,
            validation_loss: measured.map(|held| held.loss),
            validation_accuracy: measured.map(|held| held.accuracy()),
            held: validation.map(|held| held.loss),
        }
    }
}

impl Step for Line {
    const NAMES: (&'static str, &'static str, &'static str) = ("Training", "step", "Neurons");

    fn number(&self) -> u32 {
        self.step
    }

    fn loss(&self) -> f32 {
        self.loss
    }

    fn curves(&self) -> [Vec<(&'static str, Option<f32>)>; 3] {
        [
            vec![("batch", Some(self.loss)), ("held out", self.held)],
            vec![("weights", Some(self.nnz as f32))],
            vec![("live neurons", Some(self.live as f32))],
        ]
    }
}

pub(super) fn run(train: &Train, task: Task, common: &Common, console: &Console) -> Result<()> {
    let options = options(train, train.one_hidden(), common)?;
    check_outputs(train)?;
    check_checkpoint(train)?;
    let problem = train.source.source().load_to_learn(task)?;
    let must_keep = train.must_keep(&problem)?;
    let options = options.keeping(&must_keep);
    let mut keeper = Keeper::new(&train.kept, &problem, &options)?;
    let kept = keeper.load(&train.kept, console)?;
    let bar = Bar::new(console);
    let mut history = History::new(train)?;
    let rows = problem.data.rows;
    let outcome = interrupt::training(|| {
        let observe = |progress: &Progress<'_>| {
            bar.show(progress.step, progress.steps, progress.loss);
            let epoch = progress.epoch_steps.max(1);
            history.thin(progress.steps, epoch);
            history.add(progress.step, |seconds| Line::new(progress, epoch, rows, seconds));
            keeper.see(progress);
            true
        };
        match &kept {
            Some(kept) => run::resume_anneal(problem, &options, kept, interrupt::stop(), observe),
            None => run::anneal(problem, &options, interrupt::stop(), observe),
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

pub(super) fn options(train: &Train, hidden: usize, common: &Common) -> Result<AnnealOptions<'static>> {
    let usual = AnnealOptions::new(hidden, train.size());
    let flags = &train.anneal;
    let params = Params {
        epochs: train.passes.epochs.unwrap_or(usual.params.epochs),
        patience: train.held.patience.unwrap_or(usual.params.patience),
        start_factor: flags.start_factor.map_or(usual.params.start_factor, |value| value as f32),
        rate: train.passes.rate.map_or(usual.params.rate, |value| value as f32),
        drop: flags.drop.map_or(usual.params.drop, |value| value as f32),
        seed: common.seed,
        ..usual.params
    };
    Ok(AnnealOptions {
        validation: train.held.validation.unwrap_or(usual.validation),
        batch: train.passes.batch,
        least_steps: if train.passes.epochs.is_some() { 0 } else { usual.least_steps },
        params,
        memory: train.memory(),
        threads: common.threads(),
        limits: train.course.limits()?,
        checkpoints: train.kept.checkpoint.is_some(),
        ..usual
    })
}

fn summary(object: &Object<'_, AnnealReport>, losses: &str) -> String {
    let r = object.report;
    let all = r.hidden * (r.inputs + r.outputs);
    let mut rows = vec![
        (
            "nonzeros",
            format!(
                "{} of {} asked for ({} of {} × ({} + {}) weights), from {} at the start",
                count(r.nnz as u64),
                count(r.requested_nnz as u64),
                console::percent(r.nnz as f64 / all as f64),
                count(r.hidden as u64),
                count(r.inputs as u64),
                r.outputs,
                count(r.start_nnz as u64)
            ),
        ),
        ("neurons", format!("{} of {} have weights", r.live, r.hidden)),
        ("loss", format!("{:.4} mean cross-entropy  {}", r.loss, losses)),
        accuracy_fact(r.accuracy),
    ];
    rows.extend(kept_fact(&r.kept));
    rows.extend(r.validation_accuracy.zip(r.validation_loss).map(|(accuracy, loss)| {
        let held = count(r.validation_samples as u64);
        ("held out", format!("{} of {held} rows, cross-entropy {loss:.4}", console::percent(accuracy)))
    }));
    rows.extend([
        (
            "time",
            format!(
                "{:.3} s, {} epochs, {} steps, {:.0} passes, {} threads{}{}",
                r.seconds,
                r.epochs,
                r.steps,
                r.passes,
                r.threads,
                limit_fact(r.limit),
                resumed_fact(r.resumed_steps)
            ),
        ),
        memory_fact(r.data_bytes, &r.plan, r.peak_rss_bytes),
    ]);
    console::facts(&object.title(r.stopped), &rows)
}
