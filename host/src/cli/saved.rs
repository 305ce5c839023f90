//! What a verb says of a model that it has saved.

use std::path::Path;

use serde::Serialize;

use super::console::bytes;
use super::interrupt;
use crate::Result;
use crate::base::file;

/// The object of `--json`.
#[derive(Serialize)]
pub(super) struct Object<'a, R> {
    model: String,
    pub(super) model_bytes: usize,
    #[serde(flatten)]
    pub(super) report: &'a R,
}

impl<'a, R> Object<'a, R> {
    pub(super) fn new(path: &Path, model: &[u8], report: &'a R) -> Self {
        Self { model: path.display().to_string(), model_bytes: model.len(), report }
    }

    /// The first line of a summary, of a run that was perhaps ended early on request.
    pub(super) fn title(&self, stopped: bool) -> String {
        let ended = if stopped { "Interrupted; saved" } else { "Saved" };
        format!("{ended} {} ({})", self.model, bytes(self.model_bytes))
    }
}

pub(super) fn limit_fact(limit: Option<&str>) -> String {
    limit.map_or_else(String::new, |limit| format!(", ended by the limit of {limit}"))
}

/// The most memory that the process has had, behind what it took by plan.
pub(super) fn peak_fact(peak: Option<u64>) -> String {
    peak.map_or_else(String::new, |peak| format!("; the process had {} at its peak", bytes(peak)))
}

pub(super) fn save(path: &Path, model: &[u8]) -> Result<()> {
    interrupt::saving(|| file::write(path, |w| std::io::Write::write_all(w, model)))
}
