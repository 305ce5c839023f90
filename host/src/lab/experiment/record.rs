//! The record of a cell.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cell::Cell;
use super::spec::Metric;

/// How good a network is on some rows.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quality {
    /// Mean squared error; for several classes mean cross-entropy.
    pub loss: f64,
    /// In dB; none for several classes.
    pub psnr_db: Option<f64>,
    /// Fraction of the rows whose class is right; none for regression.
    pub accuracy: Option<f64>,
}

/// What a training gave and took.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Solved {
    /// The recipe of `tamis train` that did it; none where nothing is trained.
    pub recipe: String,
    /// On the rows trained on; none where nothing is trained.
    #[serde(default)]
    pub train: Option<Quality>,
    /// On the test rows, where there are some.
    pub test: Option<Quality>,
    /// What a check of the theory has measured, and of planted networks how much was found.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub measured: BTreeMap<Metric, f64>,
    /// Nonzeros of the model.
    pub nnz: usize,
    /// Neurons of each hidden layer that count.
    pub live: Vec<usize>,
    /// Seconds of training and scoring on the rows trained on.
    pub seconds: f64,
    /// Passes over all rows, forwards or back.
    pub passes: f64,
    /// Which limit of the part ended it.
    pub limit: Option<String>,
    /// The most bytes of the heap that training had at once, above what was there before it with
    /// the data loaded; measured.
    pub heap_peak_bytes: Option<u64>,
    /// The most memory of the process, loading of the data included; measured.
    pub rss_peak_bytes: Option<u64>,
    /// Samples and labels trained on.
    pub data_bytes: u64,
    /// What lives from step to step; by formula.
    pub state_bytes: Option<u64>,
    /// All else of the training; by formula.
    pub workspace_bytes: Option<u64>,
    /// What a typical dense implementation takes, activations of a batch included; by formula, for
    /// IMP.
    pub dense_bytes: Option<u64>,
    /// The `.tamis` file.
    pub model_bytes: Option<u64>,
    /// Passes and the loss of a step, thinned.
    pub curve: Vec<(f64, f64)>,
    /// Of a picture, for the first seed: the picture and beside it what the network makes of it, a
    /// PNG file in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<String>,
    /// The model, until it is tested; never stored.
    #[serde(skip)]
    pub model: Option<Vec<u8>>,
}

/// How a cell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// There is a result.
    Done,
    /// There can be none: there is nothing to learn.
    Skipped,
    /// Training failed with an error, such as steps that diverge.
    Failed,
    /// It took longer than the time limit of the run.
    Timeout,
    /// The process died: a crash, or the system ended it for want of memory.
    Crashed,
}

impl Status {
    /// As the results call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        ["done", "skipped", "failed", "timeout", "crashed"][self as usize]
    }
}

/// The record of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its name.
    pub id: String,
    /// What it was.
    #[serde(flatten)]
    pub cell: Cell,
    /// How it ended.
    pub status: Status,
    /// Why, where there is no result.
    pub reason: Option<String>,
    /// What it gave.
    pub solved: Option<Solved>,
    /// Threads that it had.
    pub threads: usize,
    /// The version of tamis.
    pub version: String,
    /// The commit of its sources, as far as it can be known.
    pub commit: Option<String>,
}

impl Record {
    /// Of a cell that ended in some way, with threads and commit.
    #[must_use]
    pub fn new(cell: &Cell, status: Status, threads: usize, commit: Option<String>) -> Self {
        let (id, cell) = (cell.id(), cell.clone());
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { id, cell, status, reason: None, solved: None, threads, version, commit }
    }
}
