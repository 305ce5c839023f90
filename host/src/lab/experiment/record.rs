//! The record of a cell.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cell::Cell;
use super::environment::CODE;
use super::spec::Metric;
use crate::lab::plot::Histogram;
use crate::model::{Score, WeightStats};

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Quality {
    /// Mean squared error; for several classes mean cross-entropy.
    pub(crate) loss: f64,
    /// In dB; none for several classes.
    pub(crate) psnr_db: Option<f64>,
    /// Fraction of the rows whose class is right; none for regression.
    pub(crate) accuracy: Option<f64>,
}

impl Quality {
    pub(super) fn of(score: &Score) -> Self {
        Self { loss: score.loss, psnr_db: score.psnr_db, accuracy: score.accuracy }
    }
}

/// What a training gave and took.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Solved {
    /// The recipe of `tamis train` that did it; empty where nothing is trained.
    pub(crate) recipe: String,
    #[serde(default)]
    pub(crate) train: Option<Quality>,
    pub(crate) test: Option<Quality>,
    /// What a check has measured, and how much of a planted network was found.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) measured: BTreeMap<Metric, f64>,
    pub(crate) nnz: usize,
    /// Neurons of each hidden layer that count.
    pub(crate) live: Vec<usize>,
    /// The GPU that it was trained on; none for the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) device: Option<String>,
    /// Seconds of training and scoring on the rows trained on.
    pub(crate) seconds: f64,
    /// Passes over all rows, forwards or back.
    pub(crate) passes: f64,
    pub(crate) limit: Option<String>,
    /// The peak of the heap above what was there with the data loaded; measured.
    pub(crate) heap_peak_bytes: Option<u64>,
    /// The peak of the process, loading included; measured.
    pub(crate) rss_peak_bytes: Option<u64>,
    pub(crate) data_bytes: u64,
    /// What lives from step to step; by formula.
    pub(crate) state_bytes: Option<u64>,
    /// All else of the training; by formula.
    pub(crate) workspace_bytes: Option<u64>,
    /// What a typical dense implementation takes; by formula, for IMP.
    pub(crate) dense_bytes: Option<u64>,
    pub(crate) model_bytes: Option<u64>,
    /// Passes and the loss of a step, thinned.
    pub(crate) curve: Vec<(f64, f64)>,
    /// What masks keep and all weights, by magnitude and by score.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) histograms: Vec<Histogram>,
    /// The weights of each layer of a trained network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) layers: Vec<WeightStats>,
    /// A picture and what the network makes of it, a PNG file in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) picture: Option<String>,
    /// The model, until it is tested; never stored.
    #[serde(skip)]
    pub(crate) model: Option<Vec<u8>>,
}

/// What came of a cell.
#[derive(Debug, Clone)]
pub(crate) enum Ending {
    Done(Box<Solved>),
    /// There is nothing to learn, for this reason.
    Skipped(String),
    Failed(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Status {
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
    pub(crate) const fn name(self) -> &'static str {
        ["done", "skipped", "failed", "timeout", "crashed"][self as usize]
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) id: String,
    #[serde(flatten)]
    pub(crate) cell: Cell,
    pub(crate) status: Status,
    /// Why, where there is no result.
    pub(crate) reason: Option<String>,
    pub(crate) solved: Option<Solved>,
    pub(crate) threads: usize,
    pub(crate) version: String,
    /// The commit of its sources, as far as it can be known.
    pub(crate) commit: Option<String>,
    /// A hash of its sources; none of records that were made before there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<String>,
}

pub(super) fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("; ")
}

impl Record {
    pub(crate) fn new(cell: &Cell, status: Status, threads: usize, commit: Option<String>) -> Self {
        let (id, cell) = (cell.id(), cell.clone());
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let code = CODE.map(str::to_owned);
        Self { id, cell, status, reason: None, solved: None, threads, version, commit, code }
    }
}
