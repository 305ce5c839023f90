//! `tamis export`

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::console::Console;
use super::console::{bytes, count, facts};
use super::interrupt;
use super::quantise::EncodingName;
use crate::base::file::{self, Kind};
use crate::convert::{ExportForm, ExportReport, check_name, export};
use crate::model::ModelFile;
use crate::{Error, Result};

/// Write a model as source code (Rust without std, or C99), for other programs (ONNX, safetensors),
/// or in other encodings.
///
/// The code needs no heap, no file and no parsing, and predicts to the bits of the model. Tables
/// are in the encoding of the model file, of C with floats in rows. The format tamis writes the
/// model itself in the encodings of --encoding: of integers all, of floats rows and blocks.
///
/// ONNX and safetensors are of models of floats, and dense: zeros take room there. The outputs of
/// the graph are those of tamis predict, without softmax. tamis import reads both back to the bit.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis export small.tamis --format rust -o src/digits.rs
  tamis export small.tamis --format rust --straight-line -o src/digits.rs
  tamis export small.tamis --format c -o digits.c
  tamis export model.tamis --format c --name digits -o firmware/model
  tamis export model.tamis --format tamis --encoding fastest -o deployed.tamis
  tamis export model.tamis --format onnx -o model.onnx")]
pub(super) struct Export {
    /// The model: of floats, or of integers
    #[arg(value_name = "M.tamis")]
    model: PathBuf,
    /// What to write
    #[arg(long, value_enum)]
    format: Format,
    /// Code without tables, for models of integers: needs no crate, three instructions a weight on
    /// a Cortex-M4, about ten bytes of flash each
    #[arg(long)]
    straight_line: bool,
    /// What functions and macros of C start with [default: the name of the file]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// How weights are held [default: smallest]; with --format tamis
    #[arg(long, value_enum)]
    encoding: Option<EncodingName>,
    /// The file to write: .rs, .onnx, .safetensors or .tamis; of C the .c, with the .h beside it,
    /// or a folder for both
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
}

/// `--format`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A Rust module for the crate tamis
    Rust,
    /// A header and a file of C99
    C,
    /// A graph of dense layers: Gemm and Relu, opset 11
    Onnx,
    /// Dense weights by the names of PyTorch's Sequential
    Safetensors,
    /// The model in other encodings
    Tamis,
}

#[derive(Serialize)]
struct Object<'a> {
    files: Vec<String>,
    bytes: usize,
    /// What functions and macros of C start with.
    name: Option<&'a str>,
    #[serde(flatten)]
    report: &'a ExportReport,
}

/// Where the files go.
struct Place {
    /// A folder that may have to be made.
    folder: Option<PathBuf>,
    /// The file or files without their ending, or the file as it is.
    path: PathBuf,
}

impl Export {
    pub(super) fn run(&self, console: &Console) -> Result<()> {
        if let Some(encoding) = self.encoding.filter(|_| self.format != Format::Tamis) {
            return Err(Error::new("only the format tamis has a choice of encodings")
                .expected("--encoding with --format tamis")
                .got(format_args!(
                    "--encoding {}",
                    encoding.to_possible_value().map_or_else(String::new, |v| v.get_name().into())
                ))
                .help("write the model with --format tamis first, and export what it gives"));
        }
        let (form, place) = match self.format {
            Format::Rust => self.rust()?,
            Format::C => self.c()?,
            Format::Onnx => self.dense(ExportForm::Onnx, "onnx", Kind::ONNX)?,
            Format::Safetensors => {
                self.dense(ExportForm::Safetensors, "safetensors", Kind::SAFETENSORS)?
            }
            Format::Tamis => {
                let encoding = self.encoding.unwrap_or(EncodingName::Smallest);
                self.dense(ExportForm::Tamis(encoding.into()), "tamis", Kind::MODEL)?
            }
        };
        if let Some(folder) = &place.folder {
            file::check_folder(folder)?;
        }
        let model = ModelFile::load(&self.model)?;
        let made = export(&model, &form)?;
        let paths: Vec<PathBuf> = match self.format {
            Format::Rust | Format::Onnx | Format::Safetensors | Format::Tamis => {
                vec![place.path.clone()]
            }
            // Not with_extension: that would cut a name with dots.
            Format::C => {
                made.files.iter().map(|(ending, _)| with_ending(&place.path, ending)).collect()
            }
        };
        paths.iter().try_for_each(|path| file::check_distinct(path, [self.model.as_path()]))?;
        let texts = made.files.iter().map(|(_, text)| text);
        interrupt::saving(|| match &place.folder {
            Some(folder) => file::write_folder(folder, |folder| {
                paths.iter().zip(texts).try_for_each(|(path, text)| {
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    folder.write(&name, |w| w.write_all(text))
                })
            }),
            None => file::write_files(|files| {
                paths
                    .iter()
                    .zip(texts)
                    .try_for_each(|(path, text)| files.write(path, |w| w.write_all(text)))
            }),
        })?;
        let object = Object {
            files: paths.iter().map(|path| path.display().to_string()).collect(),
            bytes: made.files.iter().map(|(_, text)| text.len()).sum(),
            name: match &form {
                ExportForm::C { name, .. } => Some(name),
                _ => None,
            },
            report: &made.report,
        };
        console.result(&object, || summary(&object))
    }

    fn rust(&self) -> Result<(ExportForm, Place)> {
        let form = if self.straight_line { ExportForm::StraightLine } else { ExportForm::Rust };
        self.file(form, "rs", Kind::RUST)
    }

    fn dense(&self, form: ExportForm, ending: &str, kind: Kind) -> Result<(ExportForm, Place)> {
        if self.straight_line {
            return Err(Error::new("code without tables is written as Rust")
                .expected("--straight-line with --format rust")
                .got(format_args!("--format {ending}"))
                .help("leave --straight-line out"));
        }
        self.file(form, ending, kind)
    }

    /// A form that is one file with this ending, or none.
    fn file(&self, form: ExportForm, ending: &str, kind: Kind) -> Result<(ExportForm, Place)> {
        if let Some(name) = &self.name {
            return Err(Error::new(
                "only functions of C are named; a module of Rust is named by its file",
            )
            .expected("--name with --format c")
            .got(format_args!("--name {name}"))
            .help("leave --name out"));
        }
        match self.output.extension() {
            Some(other) if other != ending => {
                return Err(wrong_ending(
                    &self.output,
                    other,
                    &format!("a name that ends in .{ending}"),
                ));
            }
            _ => file::check(&self.output, kind, [self.model.as_path()])?,
        }
        Ok((form, Place { folder: None, path: self.output.clone() }))
    }

    fn c(&self) -> Result<(ExportForm, Place)> {
        if self.straight_line {
            return Err(Error::new("code without tables is written as Rust")
                .expected("--straight-line with --format rust")
                .got("--format c")
                .help("leave --straight-line out, or call the module from C by extern \"C\""));
        }
        let stem =
            |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let is_folder = self.output.is_dir() || self.output.extension().is_none();
        if let Some(ending) = self.output.extension().filter(|ending| !is_folder && *ending != "c")
        {
            return Err(wrong_ending(&self.output, ending, "a name that ends in .c, or a folder"));
        }
        if is_folder {
            let name = self.name.clone().unwrap_or_else(|| stem(&self.model));
            check_name(&name)?;
            let place = Place { folder: Some(self.output.clone()), path: self.output.join(&name) };
            return Ok((ExportForm::C { header: name.clone(), name }, place));
        }
        let header = stem(&self.output);
        let name = self.name.clone().unwrap_or_else(|| header.clone());
        check_name(&name)?;
        let path = self.output.with_extension("");
        ["c", "h"].iter().try_for_each(|ending| {
            file::check(with_ending(&path, ending), Kind::C, [self.model.as_path()])
        })?;
        Ok((ExportForm::C { name, header }, Place { folder: None, path }))
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

fn wrong_ending(path: &Path, ending: &OsStr, expected: &str) -> Error {
    Error::new("the name of the output does not fit the format")
        .at(path)
        .expected(expected)
        .got(format_args!(".{}", ending.display()))
        .help("change the ending, or --format")
}

fn summary(object: &Object<'_>) -> String {
    let r = object.report;
    let mut rows = vec![
        (
            "model",
            format!("of {}, {} inputs, {} outputs", r.numbers, count(r.inputs), count(r.outputs)),
        ),
        (
            "weights",
            format!(
                "{} as {}",
                count(r.nnz),
                if r.straight_line { "code".into() } else { r.encodings.join(", ") }
            ),
        ),
    ];
    if ["onnx", "safetensors"].contains(&r.format) {
        rows.push((
            "dense",
            format!("{} with zeros; other programs run them all", bytes(r.table_bytes)),
        ));
    } else {
        if !r.straight_line {
            let what = if r.format == "tamis" { "file" } else { "tables" };
            rows.push((what, bytes(r.table_bytes)));
        }
        rows.push(("stack", format!("{} between layers", bytes(r.scratch_bytes))));
    }
    rows.extend(
        object
            .name
            .map(|name| ("names", format!("{name}_predict, {}_INPUTS, …", name.to_uppercase()))),
    );
    facts(&format!("Saved {}", object.files.join(" and ")), &rows)
}
