//! `tamis train --recipe anneal`

use clap::Args;
use serde::Serialize;
use tamis::anneal::Params;

use super::console::{self, bytes, count};
use super::parse;
use super::progress::Bar;
use super::train::{Train, first_given, memory_fact, save};
use super::{Common, Console, interrupt};
use crate::plot::sparkline;
use crate::run::{self, AnnealOptions, AnnealReport, Task};
use crate::{Result, file};

/// Flags of this recipe alone.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Several classes (recipe anneal)")]
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

#[derive(Serialize)]
struct Object<'a> {
    model: String,
    model_bytes: usize,
    #[serde(flatten)]
    report: &'a AnnealReport,
}

pub(super) fn run(train: &Train, task: Task, common: &Common, console: &Console) -> Result<()> {
    let options = options(train, common)?;
    file::check(&train.output)?;
    file::check_distinct(&train.output, train.source.inputs())?;
    let problem = train.source.source().load_to_learn(task)?;
    let bar = Bar::new(console);
    let mut losses = Vec::new();
    let outcome = interrupt::training(|| {
        run::anneal(problem, &options, interrupt::stop(), |progress| {
            bar.show(progress.step, progress.steps, progress.loss);
            losses.push(progress.loss.ln());
            true
        })
    });
    bar.clear();
    let outcome = outcome?;
    save(&train.output, &outcome.model)?;
    let model = train.output.display().to_string();
    let object = Object { model, model_bytes: outcome.model.len(), report: &outcome.report };
    console.result(&object, || summary(&object, &losses))
}

fn options(train: &Train, common: &Common) -> Result<AnnealOptions> {
    let usual = AnnealOptions::new(train.one_hidden()?, train.size());
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
        params,
        memory: train.memory(),
        threads: common.threads(),
        ..usual
    })
}

fn summary(object: &Object<'_>, losses: &[f32]) -> String {
    let r = object.report;
    let all = r.hidden * (r.inputs + r.classes);
    let ended = if r.stopped { "Interrupted; saved" } else { "Saved" };
    let title = format!("{ended} {} ({})", object.model, bytes(object.model_bytes as u64));
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
                r.classes,
                count(r.start_nnz as u64)
            ),
        ),
        ("neurons", format!("{} of {} have weights", r.live, r.hidden)),
        ("loss", format!("{:.4} mean cross-entropy  {}", r.loss, sparkline(losses))),
        ("accuracy", format!("{} of the training rows", console::percent(r.accuracy))),
    ];
    rows.extend(r.validation_accuracy.zip(r.validation_loss).map(|(accuracy, loss)| {
        let held = count(r.validation_samples as u64);
        ("held out", format!("{} of {held} rows, cross-entropy {loss:.4}", console::percent(accuracy)))
    }));
    rows.extend([
        (
            "time",
            format!("{:.3} s, {} epochs, {} steps, {} threads", r.seconds, r.epochs, r.steps, r.threads),
        ),
        memory_fact(r.data_bytes, &r.plan, r.peak_rss_bytes),
    ]);
    console::facts(&title, &rows)
}
