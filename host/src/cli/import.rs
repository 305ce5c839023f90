//! `tamis import`

use std::path::PathBuf;

use clap::Args;

use super::common::Common;
use super::console::{count, facts, percent};
use super::parse;
use super::saved::{Object, save};
use crate::Result;
use crate::base::file::{self, Kind};
use crate::convert::named::Layout;
use crate::convert::{Cut, ImportOptions, ImportReport, Spread, import};
use crate::data::{self, Task};
use crate::train::{Budget, Scaling};

/// Make a model of one that another program has trained: ONNX, safetensors or NPZ.
///
/// Only nonzero weights are stored: all of them, or with --nnz, --density or --threshold the
/// largest.
/// Pruning so costs accuracy; tamis finetune fits the weights that are left. Biases stay, and count.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis import mlp.onnx -o model.tamis
  tamis import pipeline.onnx --nnz 100 --data X.npy -o model.tamis
  tamis import mlp.safetensors --nnz 1000 --task multiclass -o model.tamis
  tamis import weights.npz --layers fc1,fc2 --layout in-out -o model.tamis")]
pub(super) struct Import {
    /// The file: an ONNX graph of Gemm, MatMul, Add and Relu, or arrays named as layers in
    /// safetensors or NPZ
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The model to write
    #[arg(short, long, value_name = "M.tamis")]
    output: PathBuf,
    /// What it predicts [default: what the file says; else it is not stored]
    #[arg(long, value_enum)]
    task: Option<Task>,
    /// The least output that is class 1 of --task binary [default: 0, for log-odds]
    #[arg(long, value_name = "Y", value_parser = parse::number)]
    class_from: Option<f64>,
    /// Nonzeros of the model: the largest over all layers; biases count, and are never pruned
    #[arg(long, value_name = "S", value_parser = parse::whole::<usize>,
          conflicts_with_all = ["density", "threshold"])]
    nnz: Option<usize>,
    /// The same as a fraction of all weights and biases, such as 0.05
    #[arg(long, value_name = "P", value_parser = parse::number, conflicts_with = "threshold")]
    density: Option<f64>,
    /// Keep weights of at least this absolute value
    #[arg(long, value_name = "T", value_parser = parse::number)]
    threshold: Option<f64>,
    /// Rows that the network takes, unscaled: with --nnz or --density, weights of the first layer are
    /// ranked by what they do, |w| times the deviation of their column [default: as the file scales
    /// its inputs]
    #[arg(long, value_name = "X", conflicts_with = "threshold")]
    data: Option<PathBuf>,
    /// Layers of safetensors or NPZ in the order in which they run, such as fc1,fc2 [default: all,
    /// by their names]
    #[arg(long, value_name = "A,B…", value_delimiter = ',')]
    layers: Option<Vec<String>>,
    /// Which way weights lie in safetensors or NPZ
    #[arg(long, value_enum, default_value_t = Layout::Auto)]
    layout: Layout,
}

impl Import {
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        let read = [Some(self.file.as_path()), self.data.as_deref()];
        file::check(&self.output, Kind::MODEL, read.into_iter().flatten())?;
        let cut = match (self.nnz, self.density, self.threshold) {
            (Some(nnz), ..) => Cut::Size(Budget::Nonzeros(nnz)),
            (_, Some(density), _) => Cut::Size(Budget::Density(density)),
            (.., Some(least)) => Cut::Threshold(least as f32),
            (None, None, None) => Cut::None,
        };
        let options = ImportOptions {
            task: self.task,
            class_from: self.class_from.map(|from| from as f32),
            cut,
            layers: self.layers.clone(),
            layout: self.layout,
            spreads: self.spreads()?,
        };
        let outcome = import(&self.file, &options)?;
        save(&self.output, &outcome.model)?;
        let object = Object::new(&self.output, &outcome.model, &outcome.report);
        common.result(&object, || summary(&object))
    }
}

impl Import {
    /// Mean and standard deviation of each column of `--data`.
    fn spreads(&self) -> Result<Option<Vec<Spread>>> {
        let Some(path) = &self.data else { return Ok(None) };
        let Scaling { shift, factor } = Scaling::standard(&data::load(path)?);
        let spread = |(&centre, &factor): (&f64, &f64)| {
            // A column that is always the same.
            let size = if factor > 0.0 { 1.0 / factor } else { 0.0 };
            Spread { centre, size }
        };
        Ok(Some(shift.iter().zip(&factor).map(spread).collect()))
    }
}

fn summary(object: &Object<'_, ImportReport>) -> String {
    let r = object.report;
    let task = match (r.task, r.threshold) {
        (Some(task), Some(from)) => format!("{}, class 1 from {from} on", task.name()),
        (Some(task), None) => task.name().to_owned(),
        (None, _) => "not said by the file: pass --task to store it".to_owned(),
    };
    let (inputs, outputs) = (count(r.inputs), count(r.outputs));
    let mut rows =
        vec![("from", format!("{}, {inputs} inputs, {outputs} outputs", r.format)), ("task", task)];
    let mut nonzeros = count(r.nnz);
    if let Some(requested) = r.requested_nnz {
        nonzeros += &format!(" of {} requested", count(requested));
    }
    let part = percent(r.nnz as f64 / r.dense_nnz.max(1) as f64);
    nonzeros +=
        &format!(": {} of {} weights and biases ({part})", count(r.nnz), count(r.dense_nnz));
    rows.push(("nonzeros", nonzeros));
    for layer in &r.layers {
        let shape = format!("{}: {}→{}", layer.name, count(layer.inputs), count(layer.outputs));
        let (nnz, before) = (count(layer.nnz), count(layer.nnz_before));
        let mut text = format!("{shape}, {nnz} of {before} nonzeros");
        if layer.biases > 0 {
            text += &format!(", {} biases", count(layer.biases));
        }
        rows.push(("layer", text));
    }
    rows.extend(r.notes.iter().map(|note| match note.strip_prefix("warning: ") {
        Some(text) => ("warning", text.to_owned()),
        None => ("note", note.clone()),
    }));
    if r.nnz < r.nnz_before {
        let next = "weights were pruned by size: tamis finetune fits the others";
        rows.push(("next", next.to_owned()));
    }
    facts(&object.title(false), &rows)
}
