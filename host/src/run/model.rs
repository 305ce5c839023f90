//! A model file: checked when it is read, predictions in parallel, and what it costs.

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;
use tamis::model::{Activation, Input, Layer, Model};
use tamis::wire::{self, Cost, View, checksum};

use super::memory::room_for;
use super::{Problem, Score, Source, Task, classes};
use crate::data::{Matrix, Values};
use crate::file::{self, Aligned};
use crate::{Error, Result};

/// Rows that a thread predicts at a time.
const CHUNK: usize = 256;

/// A `.tamis` file in memory, found to be valid.
#[derive(Debug, Clone)]
pub struct ModelFile {
    path: PathBuf,
    bytes: Aligned,
}

/// What one layer costs; bytes and operations as [`tamis::wire::Cost`] counts them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LayerCost {
    /// `sparse` or `sum`.
    pub kind: &'static str,
    /// `relu` or `identity`.
    pub activation: &'static str,
    /// Numbers that it takes.
    pub inputs: usize,
    /// Numbers that it gives.
    pub outputs: usize,
    /// Outputs asked for in training; those without weights are not stored.
    pub requested: usize,
    /// Its cost.
    #[serde(flatten)]
    pub cost: Bytes,
}

/// A cost under the names that the command line uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bytes {
    /// Nonzero weights.
    pub nnz: usize,
    /// Encoded bytes.
    pub flash_bytes: usize,
    /// Scratch for activations.
    pub ram_bytes: usize,
    /// Multiplications with addition; for a sum its additions.
    pub macs: usize,
    /// Bytes of the `f32` weights of the dense layer.
    pub dense_flash_bytes: usize,
    /// Multiplications with addition of the dense layer.
    pub dense_macs: usize,
}

/// What a model costs, layer by layer and in all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelCost {
    /// The file.
    pub model: String,
    /// Its length in bytes.
    pub file_bytes: usize,
    /// Its checksum, CRC-32.
    pub crc32: String,
    /// Numbers in one input row.
    pub inputs: usize,
    /// Numbers in one prediction.
    pub outputs: usize,
    /// Neurons asked for in each hidden layer.
    pub hidden: Vec<usize>,
    /// What it was trained for, as [`ModelFile::task`] says.
    pub task: Option<Task>,
    /// The least prediction that is class 1; none but for a binary task.
    pub threshold: Option<f32>,
    /// Layer by layer.
    pub layers: Vec<LayerCost>,
    /// The whole, with header, task and shared scratch.
    pub total: Bytes,
}

impl ModelFile {
    /// Reads and checks a model.
    ///
    /// # Errors
    /// The file cannot be read, or is no valid model of this version.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let bytes = file::read_aligned(&path)?;
        let model = Self { path, bytes };
        model.view()?;
        Ok(model)
    }

    /// The model in place.
    ///
    /// # Errors
    /// None once [`load`](Self::load) has succeeded.
    pub fn view(&self) -> Result<View<'_>> {
        View::parse(&self.bytes).map_err(|error| {
            if let tamis::Error::Version { reads, got } = error {
                return Error::new("the model has a later format than this program reads")
                    .at(&self.path)
                    .expected(format_args!("format version {reads}"))
                    .got(format_args!("format version {got}"))
                    .help("update tamis, or train the model again with this one");
            }
            Error::from(error).at(&self.path).help(
                "this is no .tamis model, or it is damaged or cut off: copy it again, or train it again",
            )
        })
    }

    /// What the model was trained for: as the file says, or several classes where it does not say and has several outputs;
    /// else none.
    ///
    /// # Errors
    /// As [`view`](Self::view); a task that only a later version can score.
    pub fn task(&self) -> Result<Option<Task>> {
        let view = self.view()?;
        match view.task() {
            None => Ok((view.model().outputs() > 1).then_some(Task::Multiclass)),
            Some(wire::Task::Regression) => Ok(Some(Task::Regression)),
            Some(wire::Task::Binary { .. }) => Ok(Some(Task::Binary)),
            Some(wire::Task::Multiclass) => Ok(Some(Task::Multiclass)),
            Some(other) => Err(Error::new("the model was trained for a task that this program cannot score")
                .at(&self.path)
                .expected("regression, binary or multiclass")
                .got(format_args!("{other:?}"))
                .help("update tamis")),
        }
    }

    /// Scores predictions of the model by `task`, with the threshold of the file or else the usual one.
    ///
    /// # Errors
    /// As [`view`](Self::view).
    pub fn score(&self, task: Task, labels: &[f32], predictions: &[f32]) -> Result<Score> {
        Ok(score(&self.view()?, task, labels, predictions))
    }

    /// The prediction for every row, `outputs` numbers each; runs on the current rayon pool.
    ///
    /// # Errors
    /// The data has not as many columns as the model has inputs, or a prediction overflows.
    pub fn predict(&self, data: &Matrix) -> Result<Vec<f32>> {
        let view = self.view()?;
        let model = view.model();
        if data.cols != model.inputs() {
            return Err(Error::new("the data does not fit the model")
                .at(&self.path)
                .expected(format_args!("{} columns", model.inputs()))
                .got(format_args!("{} columns", data.cols))
                .help(
                    "pass the columns that the model was trained on; name a column of labels with --target",
                ));
        }
        predict_rows(model, data).map_err(|error| error.at(&self.path))
    }

    /// Checks that a problem from `source` is such as the model can be scored on.
    ///
    /// # Errors
    /// The task needs another number of outputs, or a label is none of the model's classes.
    pub fn check_fit(&self, source: &Source, problem: &Problem) -> Result<()> {
        let outputs = self.view()?.model().outputs();
        let labels = problem.outputs();
        if problem.task == Task::Regression && labels == outputs {
            return Ok(());
        }
        if problem.task == Task::Regression && (labels > 1 || self.task()? == Some(Task::Regression)) {
            return Err(Error::new("the labels do not fit the model")
                .at(source.labels_file())
                .expected(format_args!("{outputs} columns, one per output"))
                .got(format_args!("{labels} columns"))
                .help("pass the labels of the outputs that the model was trained for"));
        }
        let (expected, help) = match (problem.task, outputs) {
            (Task::Multiclass, 2..) => {
                let keep = source.keep.as_deref();
                return classes::check_known(&problem.labels, keep, outputs)
                    .map_err(|error| error.at(source.labels_file()));
            }
            (Task::Binary, 1) => return Ok(()),
            (Task::Multiclass, _) => ("--task regression or binary", "leave --task out"),
            (Task::Regression | Task::Binary, _) => ("--task multiclass", "score it as multiclass"),
        };
        Err(Error::new("the task does not fit the model")
            .at(&self.path)
            .expected(expected)
            .got(format_args!("{} with {outputs} outputs", problem.task.name()))
            .help(help))
    }

    /// What the model costs.
    ///
    /// # Errors
    /// As [`view`](Self::view).
    pub fn cost(&self) -> Result<ModelCost> {
        let view = self.view()?;
        let model = view.model();
        let layers: Vec<_> = model
            .layers()
            .iter()
            .zip(model.layer_costs())
            .map(|(layer, cost)| layer_cost(layer, cost))
            .collect();
        Ok(ModelCost {
            model: self.path.display().to_string(),
            file_bytes: self.bytes.len(),
            crc32: format!("{:08x}", checksum(&self.bytes)),
            inputs: model.inputs(),
            outputs: model.outputs(),
            hidden: layers.iter().filter(|l| l.activation == "relu").map(|l| l.requested).collect(),
            task: self.task()?,
            threshold: threshold(&view),
            total: Bytes { flash_bytes: view.encoded_len(), ..Bytes::from(model.cost()) },
            layers,
        })
    }
}

impl From<Cost> for Bytes {
    fn from(cost: Cost) -> Self {
        Self {
            nnz: cost.nonzeros,
            flash_bytes: cost.flash_bytes,
            ram_bytes: cost.ram_bytes,
            macs: cost.macs,
            dense_flash_bytes: cost.dense_flash_bytes,
            dense_macs: cost.dense_macs,
        }
    }
}

fn threshold(view: &View<'_>) -> Option<f32> {
    match view.task() {
        Some(wire::Task::Binary { threshold }) => Some(threshold),
        _ => None,
    }
}

fn layer_cost(layer: &Layer<'_>, cost: Cost) -> LayerCost {
    let (kind, activation) = match layer {
        Layer::Csr(csr) if csr.activation() == Activation::Relu => ("sparse", "relu"),
        Layer::Sum(_) => ("sum", "identity"),
        _ => ("sparse", "identity"),
    };
    LayerCost {
        kind,
        activation,
        inputs: layer.inputs(),
        outputs: layer.outputs(),
        requested: layer.requested(),
        cost: Bytes::from(cost),
    }
}

/// Scores predictions of a model, with its threshold or else the usual one.
fn score(view: &View<'_>, task: Task, labels: &[f32], predictions: &[f32]) -> Score {
    let threshold = threshold(view).unwrap_or(Score::THRESHOLD);
    let mut score = Score::with_threshold(task, threshold, labels, predictions);
    if task == Task::Regression {
        // Labels and predictions are those of all outputs.
        score.n /= view.model().outputs().max(1);
    }
    score
}

/// Scores the bytes of a model on labelled rows; runs on the current rayon pool.
///
/// # Errors
/// The bytes are no model of as many inputs, or a prediction overflows.
pub fn score_model(model: &[u8], problem: &Problem) -> Result<Score> {
    let bytes = Aligned::new(model);
    let view = View::parse(&bytes)?;
    let predictions = predict_rows(view.model(), &problem.data)?;
    Ok(score(&view, problem.task, &problem.labels, &predictions))
}

/// The prediction of a model for every row, on the current rayon pool.
fn predict_rows(model: &Model<'_>, data: &Matrix) -> Result<Vec<f32>> {
    let numbers = (data.rows as u64).saturating_mul(model.outputs() as u64);
    room_for("the predictions", numbers.saturating_mul(4), "predict fewer rows at a time")?;
    match &data.values {
        Values::F32(values) => predict(model, values, data),
        Values::U8(values) => predict(model, values, data),
    }
}

fn predict<T: Sync>(model: &Model<'_>, values: &[T], data: &Matrix) -> Result<Vec<f32>>
where
    [T]: Input,
{
    let (d, c) = (data.cols.max(1), model.outputs().max(1));
    let mut out = vec![0.0; data.rows * c];
    let chunks = out.par_chunks_mut(CHUNK * c).zip(values.par_chunks(CHUNK * d)).enumerate();
    chunks.try_for_each(|(chunk, (out, rows))| {
        let mut scratch = vec![0.0; model.scratch_len()];
        for (k, (out, row)) in out.chunks_mut(c).zip(rows.chunks(d)).enumerate() {
            model.predict_from(row, &mut scratch, out)?;
            if out.iter().any(|value| !value.is_finite()) {
                return Err(Error::new("a prediction is too large for a 32-bit float")
                    .got(format_args!("{} in row {} (counted from 0)", out[0], chunk * CHUNK + k))
                    .help("scale the data as it was for training"));
            }
        }
        Ok(())
    })?;
    Ok(out)
}
