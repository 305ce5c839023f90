//! A trained model, the job that trains one hidden layer, and the data set after it.

use std::path::Path;
use std::time::Instant;

use tamis::base::dims::Dims;
use tamis::base::rng::{Permutation, stream};

use crate::base::limits::Limits;
use crate::base::peak_rss_bytes;
use crate::data::{Matrix, Problem, Task, select};
use crate::model::{ModelFile, Score};
use crate::operator::{CPU, Device, Layout, Placed};
use crate::train::budget::{Budget, Memory};
use crate::train::check::Sizes;
use crate::train::checkpoint::Checkpoint;
use crate::train::masked::MaskedStart;
use crate::train::network::SparseNetwork;
use crate::train::options::Options;
use crate::train::plan::{Plan, operator_bytes, thread_count};
use crate::train::report::{Details, Neurons, Report};
use crate::train::scaling::Scale;
use crate::{Error, Result};

/// A trained model, and what its training did.
#[derive(Debug)]
pub struct Trained {
    /// The model.
    pub model: ModelFile,
    /// Its weights, as the operator numbers them; empty of several hidden layers trained one by one
    /// and of the dense baseline.
    pub network: SparseNetwork,
    /// What was done.
    pub report: Report,
    /// Why the last checkpoint could not be written, where it could not.
    pub unsaved: Option<Error>,
}

impl Trained {
    pub(crate) fn new(model: &[u8], network: SparseNetwork, report: Report) -> Self {
        Self { model: ModelFile::new(model), network, report, unsaved: None }
    }

    /// The score on labelled rows.
    ///
    /// # Errors
    /// As [`ModelFile::score_on`].
    pub fn score(&self, problem: &Problem) -> Result<Score> {
        self.model.score_on(problem)
    }

    /// The prediction for every row, `outputs` numbers each.
    ///
    /// # Errors
    /// As [`ModelFile::predict`].
    pub fn predict(&self, data: &Matrix) -> Result<Vec<f32>> {
        self.model.predict(data)
    }

    /// Writes the model file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.model.save(path)
    }
}

/// Where a run starts.
#[derive(Debug, Clone, Copy, Default)]
pub enum Start<'a> {
    /// Without weights.
    #[default]
    Zero,
    /// From a checkpoint of the same run: model and counters are the same, bit for bit, as if it
    /// had never been interrupted, on any number of threads of a machine with the same vector
    /// instructions.
    Checkpoint(&'a Checkpoint),
    /// From the network of another run (a *warm start*) for the same columns, outputs, signs and
    /// neurons, on these rows or others, with at most as many weights: recipe `lm`, and `paper` for
    /// one output.
    Network(&'a Trained),
    /// From the weights of a mask of one hidden layer, in units of inputs of size 1: recipe
    /// `anneal`.
    Mask(&'a MaskedStart),
}

/// One hidden layer to train, or two to search for together, whatever the recipe.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job<'a> {
    pub(crate) hidden: usize,
    /// Neurons of the second layer that is searched for.
    pub(crate) second: Option<usize>,
    pub(crate) budget: Budget,
    /// Flat indices of pinned weights.
    pub(crate) pinned: &'a [u32],
    pub(crate) seed: u64,
    pub(crate) memory: Memory,
    pub(crate) threads: usize,
    pub(crate) limits: Limits,
    /// Whether checkpoints are taken, so that the plan counts the memory of two: the one to resume
    /// from, and the last one.
    pub(crate) checkpoints: bool,
    /// Where it is trained.
    pub(crate) device: &'a Device,
}

/// Numbers of a panel on a GPU where memory is not short, unless the usual panel has more.
const GPU_PANEL: usize = 1 << 20;

impl<'a> Job<'a> {
    /// The layout where memory is not short, for so many blocks of so many inputs and outputs, with
    /// panels of at most `panel` neurons: wider on a GPU, where no cache is to hold a panel and each is
    /// waited for, but a checkpoint is for any device.
    pub(crate) fn layout(
        &self,
        blocks: usize,
        inputs: usize,
        outputs: usize,
        panel: usize,
    ) -> Layout {
        let at_once = thread_count(self.threads).min(Layout::GROUPS);
        // Gates are held for one output.
        let own = Layout { hold: outputs == 0, at_once, ..Layout::new(blocks, inputs) };
        if self.device.is_cpu() || self.memory != Memory::Auto || self.checkpoints {
            return Layout { panel: own.panel.min(panel), ..own };
        }
        let panel = GPU_PANEL / (inputs + outputs).max(1);
        Layout { panel: own.panel.max(panel).min(blocks), ..own }
    }

    /// Bytes that the operator takes here besides the data.
    pub(crate) fn operator_bytes(
        &self,
        layout: Layout,
        dims: Dims,
        bytes: bool,
        outputs: usize,
    ) -> usize {
        // On a GPU all that is made on the way is there.
        if self.device.is_cpu() { operator_bytes(layout, dims, bytes, outputs) } else { 0 }
    }

    /// Of one layer, from nothing and with all memory and time.
    pub(crate) fn plain(hidden: usize, nnz: usize) -> Self {
        Self {
            hidden,
            second: None,
            budget: Budget::Nonzeros(nnz),
            pinned: &[],
            seed: 0,
            memory: Memory::Auto,
            threads: 0,
            limits: Limits::NONE,
            checkpoints: false,
            device: &CPU,
        }
    }

    /// Of options that are resolved.
    pub(crate) fn new(
        options: &'a Options,
        hidden: &[usize],
        budget: Budget,
        pinned: &'a [u32],
    ) -> Self {
        Self {
            second: hidden.get(1).copied(),
            budget,
            pinned,
            seed: options.seed,
            memory: options.memory,
            threads: options.threads,
            limits: options.limits,
            checkpoints: options.checkpoint.is_some(),
            device: &options.device,
            ..Self::plain(hidden.first().copied().unwrap_or(0), 0)
        }
    }

    /// The report of a run of these sizes on the current pool, before its result is known.
    pub(crate) fn report(
        &self,
        recipe: &'static str,
        sizes: Sizes,
        plan: &Plan,
        start: Start<'_>,
        watch: &Stopwatch,
        details: Details,
    ) -> Report {
        let Sizes { dims, outputs } = sizes;
        Report {
            inputs: dims.inputs,
            outputs: outputs.max(1),
            hidden: Neurons::One(dims.hidden),
            requested_nnz: dims.nnz,
            resumed_steps: if let Start::Checkpoint(from) = start { from.steps() } else { 0 },
            plan: Some(*plan),
            state_bytes: plan.state_bytes,
            workspace_bytes: plan.workspace_bytes,
            seed: self.seed,
            ..watch.report(recipe, details)
        }
    }
}

/// What is noted before a run: the time, and the data.
pub(crate) struct Stopwatch {
    began: Instant,
    task: Task,
    samples: usize,
    inputs: usize,
    pub(crate) data_bytes: u64,
}

impl Stopwatch {
    pub(crate) fn start(problem: &Problem) -> Self {
        let Problem { data, task, .. } = problem;
        let (began, data_bytes) = (Instant::now(), problem.bytes() as u64);
        Self { began, task: *task, samples: data.rows, inputs: data.cols, data_bytes }
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// The report of a run on the current pool up to now, before its sizes and its result are told.
    pub(crate) fn report(&self, recipe: &'static str, details: Details) -> Report {
        Report {
            recipe,
            task: self.task,
            samples: self.samples,
            inputs: self.inputs,
            outputs: 0,
            hidden: Neurons::One(0),
            requested_nnz: 0,
            scale: Scale::None,
            nnz: 0,
            biases: 0,
            pinned: Vec::new(),
            live: Neurons::One(0),
            loss: 0.0,
            psnr_db: None,
            zero_psnr_db: None,
            accuracy: None,
            class_from: None,
            epochs: 0,
            steps: 0,
            trials: 0,
            passes: 0.0,
            choice: None,
            details,
            resumed_steps: 0,
            limit: None,
            stopped: false,
            seconds: self.seconds(),
            threads: rayon::current_num_threads(),
            device: CPU.name().to_owned(),
            transferred_bytes: None,
            seed: 0,
            data_bytes: self.data_bytes,
            plan: None,
            state_bytes: 0,
            workspace_bytes: 0,
            peak_rss_bytes: peak_rss_bytes(),
            heap_peak_bytes: None,
        }
    }
}

/// Puts the rows and their labels in a random order, in place.
pub(crate) fn shuffle(problem: &mut Problem, seed: u64) {
    let order = Permutation::new(seed, stream::ROWS, problem.data.rows);
    select::reorder(&mut problem.data, &mut problem.labels, |row| order.get(row));
}

/// The data set after a run.
pub(crate) struct ReturnedData {
    pub(crate) operator: Placed,
    pub(crate) labels: Vec<f32>,
    pub(crate) task: Task,
    /// The seed of the order that the run put the rows in, if it did.
    pub(crate) order: Option<u64>,
}

impl ReturnedData {
    /// The data set, its rows perhaps in another order; in the time of a pass, and the memory of a
    /// tile.
    pub(crate) fn shuffled(self) -> Problem {
        Problem { data: self.operator.into_data(), labels: self.labels, task: self.task }
    }

    /// The labels in the original order of their rows.
    pub(crate) fn restored_labels(mut self) -> Vec<f32> {
        if let Some(seed) = self.order {
            let rows = self.operator.rows();
            let order = Permutation::new(seed, stream::ROWS, rows);
            select::restore_labels(&mut self.labels, rows, |row| order.get(row));
        }
        self.labels
    }

    /// The data set in its original order.
    pub(crate) fn restored(self) -> Problem {
        let order = self.order;
        let mut problem = self.shuffled();
        if let Some(seed) = order {
            let order = Permutation::new(seed, stream::ROWS, problem.data.rows);
            select::restore(&mut problem.data, &mut problem.labels, |row| order.get(row));
        }
        problem
    }
}

/// Recipes other than `anneal` choose their first weights themselves.
pub(crate) fn no_mask(recipe: &str) -> Error {
    Error::new(format!("recipe {recipe} cannot start from a mask"))
        .expected("a run from nothing, a checkpoint or a network")
        .got("a mask to start from")
        .help("choose --recipe anneal, or train under the mask")
}
