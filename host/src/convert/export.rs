//! A model as source code (a Rust module or C99) or as dense layers (ONNX, safetensors).
//!
//! Predictions of source code are bit-identical to those of the model file, and its text is a
//! function of the model. Other programs add up in orders of their own.

mod c;
mod dense;
mod head;
mod rust;
mod straight;
mod table;

use serde::Serialize;
use tamis::store::wire;

use crate::data::Task;
use crate::model::file::Opened;
use crate::model::{Encodings, ModelFile, Score};
use crate::{Error, Result};
pub(crate) use dense::dense as dense_layer;
use head::{Classes, Head, Network};

/// The most weights of code without tables: each takes a line and about ten bytes of flash.
const MOST_LINES: usize = 1 << 16;
/// The longest name: external names of C99 may be told apart by 31 characters only, `_classify`
/// included.
const MOST_NAME: usize = 22;

/// What to make of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportForm {
    /// A module of tables for the crate `tamis`.
    Rust,
    /// A module of code without tables, that needs no crate.
    StraightLine,
    /// A header and a file of C99.
    C {
        /// What functions and macros start with; see [`check_name`].
        name: String,
        /// The header's file name, without `.h`.
        header: String,
    },
    /// A graph of dense layers for runtimes of ONNX; of models of floats.
    Onnx,
    /// Dense weights by name; of models of floats.
    Safetensors,
    /// The model with its layers in these encodings: of integers any, of floats rows or blocks.
    Tamis(Encodings),
}

/// What was written; the fields are the keys of the command line's JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExportReport {
    /// `rust`, `c`, `onnx`, `safetensors` or `tamis`.
    pub format: &'static str,
    /// Whether it is code without tables.
    pub straight_line: bool,
    /// `integers` or `floats`.
    pub numbers: &'static str,
    /// Numbers in one input row.
    pub inputs: usize,
    /// Numbers in one prediction.
    pub outputs: usize,
    /// Weights.
    pub nnz: usize,
    /// How the weights of each layer are held; `dense` in ONNX and safetensors, where a sum with
    /// signs is a layer too.
    pub encodings: Vec<&'static str>,
    /// Bytes of all tables, of dense weights or of the model file; 0 of code without them.
    pub table_bytes: usize,
    /// Bytes between layers, on the stack; 0 of what other programs run.
    pub scratch_bytes: usize,
}

/// A model in another form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// Endings and contents.
    pub files: Vec<(&'static str, Vec<u8>)>,
    /// What they are.
    pub report: ExportReport,
}

/// Writes a model as source code or as dense layers.
///
/// # Errors
/// The form is for other models (code without tables: integers, at most 65536 weights; ONNX and
/// safetensors: floats), the model has no inputs or outputs, a name is none, or the task is one of
/// a later version.
pub fn export(model: &ModelFile, form: &ExportForm) -> Result<Exported> {
    if let ExportForm::C { name, .. } = form {
        check_name(name)?;
    }
    // Code of C and other programs know rows only.
    let model = &match (form, model.open()?) {
        (ExportForm::Tamis(encodings), _) => model.encoded(*encodings)?,
        (ExportForm::C { .. } | ExportForm::Onnx | ExportForm::Safetensors, Opened::Floats(_)) => {
            model.in_rows()?
        }
        _ => model.clone(),
    };
    let (opened, cost) = (model.open()?, model.cost()?);
    let network = match &opened {
        Opened::Integers(view) => Network::Integers(view.model()),
        Opened::Floats(view) => Network::Floats(view.model()),
    };
    let classes = match (cost.task, opened.task()) {
        (Some(Task::Multiclass), _) => Classes::Largest,
        (Some(Task::Binary), Some(wire::Task::Binary { threshold })) => Classes::From(threshold),
        (Some(Task::Binary), _) => Classes::From(Score::THRESHOLD),
        _ => Classes::None,
    };
    let head = Head { cost, classes };
    check(network, &head, form).map_err(|error| error.at(model.path()))?;
    let (files, table_bytes) = match form {
        ExportForm::Rust => rust::module(network, &head)?,
        ExportForm::StraightLine => (straight::module(network, &head), 0),
        ExportForm::C { name, header } => c::files(network, &head, name, header)?,
        ExportForm::Onnx | ExportForm::Safetensors => {
            dense::files(network, &head, model, *form == ExportForm::Onnx)?
        }
        ExportForm::Tamis(_) => (vec![("tamis", model.bytes().to_vec())], model.bytes().len()),
    };
    let is_dense = matches!(form, ExportForm::Onnx | ExportForm::Safetensors);
    let layers = head.cost.layers.iter().filter(|layer| is_dense || layer.kind != "sum");
    let report = ExportReport {
        format: match form {
            ExportForm::Rust | ExportForm::StraightLine => "rust",
            ExportForm::C { .. } => "c",
            ExportForm::Onnx => "onnx",
            ExportForm::Safetensors => "safetensors",
            ExportForm::Tamis(_) => "tamis",
        },
        straight_line: *form == ExportForm::StraightLine,
        numbers: match network {
            Network::Integers(_) => "integers",
            Network::Floats(_) => "floats",
        },
        inputs: head.cost.inputs,
        outputs: head.cost.outputs,
        nnz: head.cost.total.nonzeros,
        encodings: layers
            .map(|layer| match layer.kind {
                _ if is_dense => "dense",
                "sparse" => "rows",
                kind => kind,
            })
            .collect(),
        table_bytes,
        scratch_bytes: match (network, form) {
            _ if is_dense => 0,
            (Network::Integers(model), ExportForm::StraightLine) => straight::scratch_bytes(model),
            (Network::Floats(model), ExportForm::C { .. }) => c::scratch_bytes(model),
            _ => head.cost.total.ram_bytes,
        },
    };
    Ok(Exported { files, report })
}

/// Whether functions and macros can start with `name`.
///
/// # Errors
/// It is no identifier, starts with an underscore, or is too long.
///
/// ```
/// use tamis_host::convert::check_name;
/// assert!(check_name("digits_8x8").is_ok());
/// assert!(check_name("8x8").is_err() && check_name("my-model").is_err());
/// ```
pub fn check_name(name: &str) -> Result<()> {
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic());
    let whole = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if starts && whole && name.len() <= MOST_NAME {
        return Ok(());
    }
    Err(Error::new("functions cannot be named so")
        .expected(format_args!("a letter, then letters, digits and _, at most {MOST_NAME} in all"))
        .got(format_args!("{name:?}"))
        .help("choose a name with --name, such as --name model"))
}

fn check(network: Network<'_>, head: &Head, form: &ExportForm) -> Result<()> {
    let (inputs, outputs, nnz) = (head.cost.inputs, head.cost.outputs, head.cost.total.nonzeros);
    if inputs == 0 || outputs == 0 {
        return Err(Error::new("the model computes nothing")
            .mismatch("inputs and outputs", format_args!("{inputs} inputs, {outputs} outputs"))
            .help("train the model again"));
    }
    if let (Network::Integers(_), ExportForm::Onnx | ExportForm::Safetensors) = (network, form) {
        return Err(Error::new("a model of integers cannot be written as dense floats")
            .expected(
                "a model of floats: the integers round in ways that ONNX has no operators for",
            )
            .got("a model of 8-bit integers")
            .help("export the model of floats that it was made of, or this one as rust or c"));
    }
    if *form != ExportForm::StraightLine {
        return Ok(());
    }
    if let Network::Floats(_) = network {
        return Err(Error::new("code without tables is for models of integers")
            .mismatch("a model that tamis quantize has made", "a model of floats")
            .help("quantize the model first, or leave --straight-line out"));
    }
    if nnz > MOST_LINES {
        return Err(Error::new("the model is too large for code without tables")
            .mismatch(format_args!("at most {MOST_LINES} weights"), format_args!("{nnz} weights"))
            .help("leave --straight-line out"));
    }
    Ok(())
}
