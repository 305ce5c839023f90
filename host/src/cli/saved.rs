//! What `tamis train` says of a model that it has saved, whatever the recipe.

use std::path::Path;

use serde::Serialize;

use super::console::{bytes, count, decibel, facts, percent, psnr_fact};
use crate::run::{KeptWeight, Plan, Report};

/// The object of `--json`.
#[derive(Serialize)]
pub(super) struct Object<'a, R> {
    model: String,
    pub(super) model_bytes: usize,
    #[serde(flatten)]
    pub(super) report: &'a R,
}

impl<'a, R> Object<'a, R> {
    /// Of a model at `path`, and the report of its run.
    pub(super) fn new(path: &Path, model: &[u8], report: &'a R) -> Self {
        Self { model: path.display().to_string(), model_bytes: model.len(), report }
    }

    /// The first line of a summary, of a run that was perhaps ended early on request.
    pub(super) fn title(&self, stopped: bool) -> String {
        let ended = if stopped { "Interrupted; saved" } else { "Saved" };
        format!("{ended} {} ({})", self.model, bytes(self.model_bytes as u64))
    }
}

/// Part of the training rows that is right.
pub(super) fn accuracy_fact(part: f64) -> (&'static str, String) {
    ("accuracy", format!("{} of the training rows", percent(part)))
}

/// The weights that had to be kept, if there were such: some of them by name.
pub(super) fn kept_fact(kept: &[KeptWeight]) -> Option<(&'static str, String)> {
    const SHOWN: usize = 6;
    let name = |kept: &KeptWeight| format!("{}:{} = {:.4e}", kept.neuron, kept.input, kept.value);
    let names: Vec<_> = kept.iter().take(SHOWN).map(name).collect();
    let more = match kept.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(", and {} more, which --json lists", count(more as u64)),
    };
    (!names.is_empty()).then(|| ("kept", format!("{}{more}", names.join(", "))))
}

/// What ended a run, if it was a limit.
pub(super) fn limit_fact(limit: Option<&str>) -> String {
    limit.map_or_else(String::new, |limit| format!(", ended by the limit of {limit}"))
}

/// Where a run went on from, if it did.
pub(super) fn resumed_fact(steps: u32) -> String {
    if steps > 0 { format!(", went on from step {}", count(steps)) } else { String::new() }
}

/// What a run took, as the last line of its summary.
pub(super) fn memory_fact(data: u64, plan: &Plan, peak: Option<u64>) -> (&'static str, String) {
    let (state, workspace) = (bytes(plan.state_bytes), bytes(plan.workspace_bytes));
    let data = bytes(data);
    ("memory", format!("data {data}, state {state}, workspace {workspace}{}", peak_fact(peak)))
}

/// The most memory that the process has had, behind what it took by plan.
pub(super) fn peak_fact(peak: Option<u64>) -> String {
    peak.map_or_else(String::new, |peak| format!("; the process had {} at its peak", bytes(peak)))
}

/// For people, after a recipe whose report is [`Report`].
pub(super) fn summary(object: &Object<'_, Report>, losses: &str) -> String {
    let r = object.report;
    // One output has a sign and no weight.
    let (width, shape) = match r.second_hidden.unwrap_or(r.outputs) {
        1 if r.second_hidden.is_none() => (r.inputs, count(r.inputs as u64)),
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
                percent(r.nnz as f64 / all as f64),
                count(r.hidden as u64),
                shape
            ),
        ),
        (
            "neurons",
            match (r.second_hidden, r.second_live) {
                (Some(second), Some(live)) => {
                    format!("{} of {}, and {live} of {second} have weights", r.live, r.hidden)
                }
                _ => format!("{} of {} have weights", r.live, r.hidden),
            },
        ),
        ("loss", format!("{:.4e} mean squared error  {losses}", r.loss)),
        psnr_fact(r.psnr_db, r.zero_psnr_db),
    ];
    rows.extend(kept_fact(&r.kept));
    rows.extend(r.accuracy.map(accuracy_fact));
    rows.extend(r.search.and_then(|search| {
        let loss = search.validation_loss?;
        let held = count(search.validation_samples as u64);
        let psnr = decibel(search.validation_psnr_db);
        let right = search.validation_accuracy.map(|part| format!(", accuracy {}", percent(part)));
        let right = right.unwrap_or_default();
        Some(("held out", format!("{held} rows: {loss:.4e} mean squared error, {psnr}{right}")))
    }));
    rows.extend(r.search.map(|search| {
        let found = match (search.exact, search.early) {
            (true, _) => "exact",
            (false, true) => "no better on the rows held out",
            (false, false) => "not exact",
        };
        let turns = match search.turns {
            0 => String::new(),
            turns => format!(", {turns} turns of published steps"),
        };
        let moves = format!("{} of {} moves taken, {} kicks", search.moves, search.tried, search.kicks);
        (
            "search",
            format!("{found}; {moves}{turns}, signs {}, {} rows first", search.signs, search.search_rows),
        )
    }));
    let steps = if r.search.is_some() { "steps" } else { "epochs" };
    rows.extend([
        (
            "time",
            format!(
                "{:.3} s, {} {steps}, {:.0} passes, {} threads{}{}",
                r.seconds,
                r.epochs,
                r.passes,
                r.threads,
                limit_fact(r.limit),
                resumed_fact(r.resumed_steps)
            ),
        ),
        memory_fact(r.data_bytes, &r.plan, r.peak_rss_bytes),
    ]);
    facts(&object.title(r.stopped), &rows)
}
