//! Models of other programs as `.tamis` files: their nonzero weights, all of them or the largest.
//!
//! Inputs and biases stay as the other program has them; a sum starts at its bias.

use std::io::{BufReader, Read};
use std::path::Path;

use bytes::Bytes;
use clap::ValueEnum;
use serde::Serialize;
use tamis::infer::model::MAX_INPUTS;
use tamis::store::wire;

use crate::base::file;
use crate::convert::cut::{Cut, check_spreads, cut, starved};
use crate::convert::named::{self, Layout};
use crate::convert::{Decision, Dense, Meta, Network, Spread, npz, onnx, safetensors};
use crate::data::Task;
use crate::train::encode::{End, SparseLayer, encode_layers};
use crate::{Error, Result};

/// How to import.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ImportOptions {
    /// What the model is for; none as the file says.
    pub task: Option<Task>,
    /// The least output that is class 1 of a binary task; none for what the file says, or else 0,
    /// where outputs are log-odds.
    pub class_from: Option<f32>,
    /// Which weights the model has.
    pub cut: Cut,
    /// Layers of a file of named arrays, in order; none for all.
    pub layers: Option<Vec<String>>,
    /// Which way weights of named arrays lie.
    pub layout: Layout,
    /// How far each input spreads: weights of the first layer are ranked by what they do, and one that
    /// goes leaves what it does at the centre in the bias. None for what the file says, where it scales
    /// its inputs.
    pub spreads: Option<Vec<Spread>>,
}

/// One layer in a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportedLayer {
    /// As the file calls it.
    pub name: String,
    /// Numbers that it takes.
    pub inputs: usize,
    /// Numbers that it gives.
    pub outputs: usize,
    /// Weights and biases that are not 0 in the file.
    pub nnz_before: usize,
    /// Those of them that the model has.
    pub nnz: usize,
    /// Biases that are not 0.
    pub biases: usize,
}

/// What was imported; the fields are the keys of the command line's JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImportReport {
    /// `onnx`, `safetensors` or `npz`.
    pub format: &'static str,
    /// What the model is for; none where nobody says.
    pub task: Option<Task>,
    /// The least output that is class 1 of a binary task.
    pub threshold: Option<f32>,
    /// Numbers in one input row.
    pub inputs: usize,
    /// Numbers in one prediction.
    pub outputs: usize,
    /// Weights and biases of the dense network, zeros too.
    pub dense_nnz: usize,
    /// Those that are not 0 in the file.
    pub nnz_before: usize,
    /// Nonzeros asked for; none where none were.
    pub requested_nnz: Option<usize>,
    /// Nonzeros of the model: weights and biases.
    pub nnz: usize,
    /// The layers.
    pub layers: Vec<ImportedLayer>,
    /// What was skipped or folded.
    pub notes: Vec<String>,
}

/// An imported model.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportOutcome {
    /// The bytes of a `.tamis` file.
    pub model: Vec<u8>,
    /// What it is.
    pub report: ImportReport,
    /// How far each input spreads, where the file scales them or the options say so.
    pub spreads: Option<Vec<Spread>>,
}

/// Reads a model of another program, by what is in the file: safetensors, NPZ or ONNX.
///
/// # Errors
/// A file that is none of them, or is damaged; layers, operators or sizes that a model of Tamis has
/// not; more nonzeros asked for than there are, or fewer than its biases take.
pub fn import(path: &Path, options: &ImportOptions) -> Result<ImportOutcome> {
    let (format, mut network) = read(path, options.layers.as_deref(), options.layout)?;
    if let Some(names) = named::listed(&network.left_out) {
        return Err(Error::new("the network has arrays that are of no layer")
            .at(path)
            .expected("the weights and biases of layers, with relu between them")
            .got(names)
            .help(
                "fold normalisation into the weights before it and leave its arrays out of the \
                 file, or choose layers with --layers",
            ));
    }
    // Biases of 0 are none to a model.
    network.layers.iter_mut().for_each(Dense::trim_bias);
    let skipped = named::listed(&network.skipped);
    network.notes.extend(skipped.map(|names| format!("skipped arrays of an optimiser: {names}")));
    convert(format, network, options).map_err(|error| error.at(path))
}

const LIMIT: u64 = 1 << 30;
const TOO_LARGE: &str = "save the layers of the MLP alone";

/// The layers of a file, and its format.
///
/// # Errors
/// As [`import`], up to the sizes.
pub(crate) fn read(
    path: &Path,
    layers: Option<&[String]>,
    layout: Layout,
) -> Result<(&'static str, Network)> {
    read_file(path, layers, layout).map_err(|error| error.at(path))
}

fn read_file(
    path: &Path,
    layers: Option<&[String]>,
    layout: Layout,
) -> Result<(&'static str, Network)> {
    let (mut file, len) = file::open(path)?;
    file::check_len("file", len, LIMIT, TOO_LARGE)?;
    let unreadable = |error| Error::new("cannot read").source(error);
    let mut head = Vec::with_capacity(16);
    file.by_ref().take(16).read_to_end(&mut head).map_err(unreadable)?;
    if let Some((what, help)) = stranger(&head, path) {
        return Err(Error::new("the file is of another format")
            .mismatch("ONNX, safetensors or NPZ", what)
            .help(help));
    }
    std::io::Seek::rewind(&mut file).map_err(unreadable)?;
    let named = |tensors| named::network(tensors, layers, layout);
    if head.starts_with(b"PK") {
        return Ok(("npz", named(npz::read(BufReader::new(file), len)?)?));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(unreadable)?;
    if safetensors::matches(&head, len) {
        let (tensors, meta) = safetensors::read(&bytes)?;
        return Ok(("safetensors", Network { meta, ..named(tensors)? }));
    }
    if layers.is_some() || layout != Layout::Auto {
        return Err(Error::new("layers are chosen in files of named arrays")
            .expected("--layers and --layout with safetensors or NPZ")
            .got("a file that is neither, such as ONNX, which says its layers")
            .help("leave --layers and --layout out"));
    }
    let (folder, mut last) = (path.parent().unwrap_or(Path::new("")), None);
    let mut beside = |name: &str| beside(folder, name, &mut last);
    Ok(("onnx", onnx::read(bytes, &mut beside)?))
}

/// The bytes of a file of weights in the folder of a model; the last one stays in memory.
fn beside(folder: &Path, name: &str, last: &mut Option<(String, Bytes)>) -> Result<Bytes> {
    if let Some((_, bytes)) = last.as_ref().filter(|(last, _)| last == name) {
        return Ok(bytes.clone());
    }
    *last = None;
    let opened = file::open_in(folder, name).and_then(|(file, len)| {
        let path = folder.join(name);
        file::check_len("file", len, LIMIT, TOO_LARGE).map_err(|error| error.at(&path))?;
        let mut bytes = Vec::new();
        let read = file.take(len).read_to_end(&mut bytes);
        read.map_err(|e| Error::io("cannot read", &path, e))?;
        Ok(Bytes::from(bytes))
    });
    let bytes = opened.map_err(|error| {
        Error::new("the model keeps its weights in another file, which cannot be read")
            .source(error)
            .help("put the file of weights beside the model, or export it with its weights inside")
    })?;
    *last = Some((name.to_owned(), bytes.clone()));
    Ok(bytes)
}

/// Formats that people take for one of those that are read, and what to do about it.
fn stranger(head: &[u8], path: &Path) -> Option<(&'static str, &'static str)> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("");
    match head {
        [0x89, b'T', b'A', b'M', ..] => Some((
            "a .tamis model",
            "it needs no import: pass it to predict, eval, inspect or finetune",
        )),
        [0x89, b'H', b'D', b'F', ..] => Some(("HDF5, as Keras saves it", KERAS)),
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Some((
            "NPY, a single array",
            "save all arrays with numpy.savez: weights, biases, layer by layer",
        )),
        [0x80, 2..=5, ..] => Some((
            "a pickle of Python, which could run any program",
            "export it as ONNX (skl2onnx, torch.onnx.export), or save the arrays with numpy.savez",
        )),
        [b'P', b'K', ..] if ["pt", "pth", "bin", "ckpt"].contains(&ending) => Some((
            "a pickle of PyTorch, which could run any program",
            "save its weights: safetensors.torch.save_file(model.state_dict(), \"m.safetensors\")",
        )),
        [b'P', b'K', ..] if ending == "keras" => Some(("an archive of Keras", KERAS)),
        [_, _, _, _, b'T', b'F', b'L', b'3', ..] => {
            Some(("a TFLite model", "export the network as ONNX before it becomes TFLite"))
        }
        [] => Some(("an empty file", "export the network again")),
        _ => None,
    }
}

const KERAS: &str = "export it as ONNX: model.export(\"m.onnx\", format=\"onnx\")";

fn convert(
    format: &'static str,
    network: Network,
    options: &ImportOptions,
) -> Result<ImportOutcome> {
    let Network { mut layers, decision, mut notes, meta, spreads, .. } = network;
    let all = options.spreads.clone().or(spreads);
    let spreads = all.as_deref();
    check_spreads(spreads, &layers)?;
    let outputs = layers.last().map_or(0, |layer| layer.outputs);
    let meta = meta.filter(|meta| fits(meta, &layers));
    let task = task(options, decision, meta.as_ref(), outputs)?;
    let sum = ends_in_sum(&mut layers, meta.as_ref())?;
    let dense_nnz = layers.iter().map(|layer| layer.weights.len() + layer.bias.len()).sum();
    let nnz_before: Vec<usize> = layers.iter().map(nonzeros).collect();
    let requested_nnz = cut(&mut layers, options.cut, dense_nnz, spreads)?;
    if options.cut != Cut::None {
        let is_ranked = spreads.is_some();
        notes.extend(layers.iter().filter_map(|layer| starved(layer, is_ranked)));
    }
    let of_layer = |(layer, &nnz_before): (&Dense, &usize)| ImportedLayer {
        name: layer.name.clone(),
        inputs: layer.inputs,
        outputs: layer.outputs,
        nnz_before,
        nnz: nonzeros(layer),
        biases: layer.bias.iter().filter(|&&b| b != 0.0).count(),
    };
    let report_layers: Vec<_> = layers.iter().zip(&nnz_before).map(of_layer).collect();
    let nnz_before = nnz_before.iter().sum();
    let nnz: usize = report_layers.iter().map(|layer| layer.nnz).sum();
    if nnz == 0 {
        return Err(Error::new("the model would have no weights")
            .expected("a weight or bias that is kept")
            .got(format_args!("{nnz_before} in the file that are not 0"))
            .help("choose a smaller --threshold, or check what wrote the file"));
    }
    let mut sparse = layers.iter().map(sparse_layer).collect::<Result<Vec<_>>>()?;
    let requested = meta.iter().flat_map(|meta| &meta.requested);
    for (layer, &requested) in sparse.iter_mut().zip(requested) {
        layer.requested = layer.requested.max(requested);
    }
    let end = sum.as_deref().map_or(End::Layer, End::Sum);
    let inputs = sparse.first().map_or(0, |layer| layer.inputs);
    let model = encode_layers(
        sparse,
        end,
        task.map(|(task, from)| match task {
            Task::Binary => wire::Task::Binary { threshold: from },
            other => other.stored(),
        }),
    )?;
    let report = ImportReport {
        format,
        task: task.map(|(task, _)| task),
        threshold: task.filter(|(task, _)| *task == Task::Binary).map(|(_, from)| from),
        inputs,
        outputs,
        dense_nnz,
        nnz_before,
        requested_nnz,
        nnz,
        layers: report_layers,
        notes,
    };
    Ok(ImportOutcome { model, report, spreads: all })
}

fn fits(meta: &Meta, layers: &[Dense]) -> bool {
    let body = layers.len().saturating_sub(usize::from(meta.sum));
    let wide = |&n: &usize| u32::try_from(n).is_ok();
    meta.requested.len() == body
        && meta.requested.iter().all(wide)
        && meta.threshold.is_none_or(f32::is_finite)
}

/// What the model is for, and the least output that is class 1.
fn task(
    options: &ImportOptions,
    decision: Option<Decision>,
    meta: Option<&Meta>,
    outputs: usize,
) -> Result<Option<(Task, f32)>> {
    let said = meta.and_then(|meta| Task::from_str(meta.task.as_deref()?, false).ok());
    let decided = decision.map(|decision| match decision {
        Decision::LogOdds => Task::Binary,
        Decision::Largest => Task::Multiclass,
    });
    let task = options.task.or(said).or(decided);
    let expected = match task {
        Some(Task::Binary) if outputs != 1 => "one output",
        Some(Task::Multiclass) if outputs < 2 => "two outputs or more",
        _ if options.class_from.is_some() && task != Some(Task::Binary) => {
            "--class-from with --task binary"
        }
        _ if options.class_from.is_some_and(|from| !from.is_finite()) => {
            "--class-from with a finite number"
        }
        _ => {
            let from = options.class_from.or(meta.and_then(|meta| meta.threshold)).unwrap_or(0.0);
            return Ok(task.map(|task| (task, from)));
        }
    };
    Err(Error::new("the task does not fit the network")
        .expected(expected)
        .got(format_args!("{} with {outputs} outputs", task.map_or("no task", Task::name)))
        .help("leave --task out for what the file says, or choose another"))
}

/// Takes the last layer off where the outputs are a sum with signs of relus, which stores no
/// weights: 1 or -1 for each neuron. The signs as bits. A relu at the end of one output is such a
/// sum too.
fn ends_in_sum(layers: &mut Vec<Dense>, meta: Option<&Meta>) -> Result<Option<Vec<u32>>> {
    let count = layers.len();
    let Some(last) = layers.last() else { return Ok(None) };
    let is_one = last.outputs == 1;
    if last.relu && is_one {
        return Ok(Some(vec![0]));
    }
    if last.relu {
        return Err(Error::new(format!("there is a Relu behind the last layer, {}", last.name))
            .expected("outputs that are sums: no Relu at the end of a network of several outputs")
            .got(format_args!("Relu of {} outputs", last.outputs))
            .help("export the network without its last Relu"));
    }
    let signs = is_one && last.bias.is_empty() && last.weights.iter().all(|w| w.abs() == 1.0);
    if !signs || count < 2 || meta.is_some_and(|meta| !meta.sum) {
        return Ok(None);
    }
    let mut bits = vec![0_u32; last.inputs.div_ceil(32)];
    for (i, weight) in last.weights.iter().enumerate() {
        bits[i / 32] |= u32::from(*weight < 0.0) << (i % 32);
    }
    layers.pop();
    Ok(Some(bits))
}

fn nonzeros(layer: &Dense) -> usize {
    layer.weights.iter().chain(&layer.bias).filter(|&&w| w != 0.0).count()
}

/// The nonzeros of a layer.
pub(crate) fn sparse_layer(layer: &Dense) -> Result<SparseLayer> {
    let inputs = layer.inputs;
    if inputs > MAX_INPUTS {
        return Err(Error::new(format!("layer {} is too wide for a model", layer.name))
            .expected(format_args!("at most {MAX_INPUTS} inputs"))
            .got(inputs)
            .help("make the network smaller"));
    }
    let entries = |row: &[f32]| {
        let mut entries = Vec::with_capacity(row.iter().filter(|&&w| w != 0.0).count());
        entries.extend(row.iter().copied().enumerate().filter(|(_, w)| *w != 0.0));
        entries
    };
    let neurons: Vec<_> = layer.weights.chunks_exact(inputs.max(1)).map(entries).collect();
    Ok(SparseLayer { inputs, requested: neurons.len(), neurons, biases: layer.bias.clone() })
}
