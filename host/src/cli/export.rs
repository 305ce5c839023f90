//! `tamis export`

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Serialize;
use tamis::store::wire::Choice;

use super::common::Common;
use super::console::{bytes, count, facts};
use super::interrupt;
use super::parse;
use super::quantise::ENCODINGS;
use crate::base::file::{self, Kind};
use crate::convert::{ExportForm, ExportReport, check_name, export};
use crate::data::Columns;
use crate::model::{Encodings, ModelFile};
use crate::{Error, Result};

/// Write a model as source code (Rust without std, or C99), for other programs (ONNX, safetensors),
/// or in other encodings.
///
/// The code needs no heap, no file and no parsing, and its predictions are bit-identical to the
/// model's. Tables are in the encoding of the model file, of C with floats in rows. The format
/// tamis writes the model itself in the encodings of --encoding: of integers all, of floats rows
/// and blocks.
///
/// ONNX and safetensors are of models of floats, and dense: zeros take room there. The outputs of
/// the graph are those of tamis predict, without softmax. tamis import reads both back bit for bit.
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
    #[arg(long, value_parser = parse::named(ENCODINGS))]
    encoding: Option<Encodings>,
    /// Drop the names of columns and classes; with --format tamis
    #[arg(long)]
    strip: bool,
    /// Names of the classes as constants; with --format rust or c
    #[arg(long)]
    class_names: bool,
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

impl Format {
    /// The ending of its file, of C of the first of two, and what the file is.
    const fn file(self) -> (&'static str, Kind) {
        match self {
            Self::Rust => ("rs", Kind::RUST),
            Self::C => ("c", Kind::C),
            Self::Onnx => ("onnx", Kind::ONNX),
            Self::Safetensors => ("safetensors", Kind::SAFETENSORS),
            Self::Tamis => ("tamis", Kind::MODEL),
        }
    }
}

#[derive(Serialize)]
struct Object<'a> {
    files: Vec<String>,
    bytes: usize,
    name: Option<&'a str>,
    #[serde(flatten)]
    report: &'a ExportReport,
}

struct Place {
    /// A folder that may have to be made.
    folder: Option<PathBuf>,
    /// The file, of C both files without their ending.
    path: PathBuf,
}

impl Export {
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        self.check_flags()?;
        let (form, place) = match self.format {
            Format::C => self.c()?,
            Format::Rust if self.straight_line => self.file(ExportForm::StraightLine)?,
            Format::Rust => self.file(ExportForm::Rust)?,
            Format::Onnx => self.file(ExportForm::Onnx)?,
            Format::Safetensors => self.file(ExportForm::Safetensors)?,
            Format::Tamis => {
                let smallest = Encodings::Chosen(Choice::Smallest);
                self.file(ExportForm::Tamis(self.encoding.unwrap_or(smallest)))?
            }
        };
        if let Some(folder) = &place.folder {
            file::check_folder(folder)?;
        }
        let mut model = ModelFile::load(&self.model)?;
        if self.strip {
            model = model.with_columns(&Columns::default())?;
        }
        let mut made = export(&model, &form)?;
        if let Format::Tamis = self.format {
            for (_, bytes) in &mut made.files {
                *bytes = ModelFile::from_bytes(bytes)?.with_columns_of(&model)?.bytes().to_vec();
            }
        }
        if self.class_names {
            let name =
                if let ExportForm::C { name, .. } = &form { Some(name.as_str()) } else { None };
            add_class_names(&mut made.files, name, &class_names(&model)?);
        }
        let path = |ending: &str| match self.format {
            Format::C => with_ending(&place.path, ending),
            _ => place.path.clone(),
        };
        let paths: Vec<PathBuf> = made.files.iter().map(|(ending, _)| path(ending)).collect();
        paths.iter().try_for_each(|path| file::check_distinct(path, [self.model.as_path()]))?;
        let mut files = paths.iter().zip(made.files.iter().map(|(_, text)| text));
        interrupt::saving(|| match &place.folder {
            Some(folder) => file::write_folder(folder, |folder| {
                files.try_for_each(|(path, text)| {
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    folder.write(&*name, |w| w.write_all(text))
                })
            }),
            None => file::write_files(|out| {
                files.try_for_each(|(path, text)| out.write(path, |w| w.write_all(text)))
            }),
        })?;
        let object = Object {
            files: paths.iter().map(|path| path.display().to_string()).collect(),
            bytes: made.files.iter().map(|(_, text)| text.len()).sum(),
            name: if let ExportForm::C { name, .. } = &form { Some(name) } else { None },
            report: &made.report,
        };
        common.result(&object, || summary(&object))
    }

    fn check_flags(&self) -> Result<()> {
        let encoding = "write that format first, and export what it gives";
        let name = "leave --name out: a module of Rust is named by its file";
        let straight = "leave --straight-line out";
        let strip = "leave --strip out: other formats hold no names";
        if self.class_names && !matches!(self.format, Format::Rust | Format::C) {
            return Err(Error::new("only source code takes --class-names")
                .expected("--class-names with --format rust or c")
                .got("another format")
                .help("leave --class-names out"));
        }
        let flags = [
            (self.strip, "--strip", Format::Tamis, strip),
            (self.encoding.is_some(), "--encoding", Format::Tamis, encoding),
            (self.straight_line, "--straight-line", Format::Rust, straight),
            (self.name.is_some(), "--name", Format::C, name),
        ];
        let foreign =
            flags.into_iter().find(|(given, _, format, _)| *given && self.format != *format);
        let Some((_, flag, format, help)) = foreign else { return Ok(()) };
        let [format, own] = [format, self.format].map(|format| match format {
            Format::Rust => "rust",
            other => other.file().0,
        });
        Err(Error::new(format!("only the format {format} takes {flag}"))
            .expected(format_args!("{flag} with --format {format}"))
            .got(format_args!("{flag} with --format {own}"))
            .help(help))
    }

    /// A form that is one file with the ending of the format, or none.
    fn file(&self, form: ExportForm) -> Result<(ExportForm, Place)> {
        let (ending, kind) = self.format.file();
        match self.output.extension() {
            Some(other) if other != ending => {
                let expected = format!("a name that ends in .{ending}");
                return Err(wrong_ending(&self.output, other, &expected));
            }
            _ => file::check(&self.output, kind, [self.model.as_path()])?,
        }
        Ok((form, Place { folder: None, path: self.output.clone() }))
    }

    fn c(&self) -> Result<(ExportForm, Place)> {
        let stem =
            |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let is_folder = self.output.is_dir() || self.output.extension().is_none();
        if let Some(ending) = self.output.extension().filter(|ending| !is_folder && *ending != "c")
        {
            return Err(wrong_ending(&self.output, ending, "a name that ends in .c, or a folder"));
        }
        let default = stem(if is_folder { &self.model } else { &self.output });
        let name = self.name.clone().unwrap_or_else(|| default.clone());
        check_name(&name)?;
        if is_folder {
            let place = Place { folder: Some(self.output.clone()), path: self.output.join(&name) };
            return Ok((ExportForm::C { header: name.clone(), name }, place));
        }
        let path = self.output.with_extension("");
        ["c", "h"].iter().try_for_each(|ending| {
            file::check(with_ending(&path, ending), Kind::C, [self.model.as_path()])
        })?;
        Ok((ExportForm::C { name, header: default }, Place { folder: None, path }))
    }
}

/// The names of the classes of a model.
fn class_names(model: &ModelFile) -> Result<Vec<String>> {
    let classes = model.columns()?.unwrap_or_default().classes;
    if classes.is_empty() {
        return Err(Error::new("the model has no names of classes")
            .at(model.path())
            .expected("a model that was trained on classes by name")
            .got("classes 0, 1, …, or none")
            .help("leave --class-names out"));
    }
    Ok(classes)
}

/// Adds the names of classes to source code: of Rust, or of C to the header.
fn add_class_names(files: &mut [(&str, Vec<u8>)], name: Option<&str>, classes: &[String]) {
    // Bytes beyond ASCII as three octal digits, which end in any text.
    let escape = |byte: u8| match byte {
        b' '..=b'~' if !b"\"\\?".contains(&byte) => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    };
    for (ending, text) in files {
        let code = match (name, *ending) {
            (None, _) => format!(
                "\n/// The names of the classes.\npub static CLASSES: [&str; {}] = {classes:?};\n",
                classes.len()
            ),
            (Some(name), "h") => {
                let texts =
                    classes.iter().map(|class| class.bytes().map(escape).collect::<String>());
                let texts: Vec<String> = texts.map(|text| format!("\"{text}\"")).collect();
                format!(
                    "\n/* The names of the classes. */\nstatic const char *const {name}_classes[{}] = {{{}}};\n\n",
                    classes.len(),
                    texts.join(", ")
                )
            }
            (Some(_), _) => continue,
        };
        // Within the guard of a header.
        let end = match name {
            Some(_) => text.windows(6).rposition(|word| word == b"#endif").unwrap_or(text.len()),
            None => text.len(),
        };
        text.splice(end..end, code.into_bytes());
    }
}

/// The path with an ending behind it; `with_extension` would cut a name with dots.
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
    let held = if r.straight_line { "code".into() } else { r.encodings.join(", ") };
    let (inputs, outputs) = (count(r.inputs), count(r.outputs));
    let mut rows = vec![
        ("model", format!("of {}, {inputs} inputs, {outputs} outputs", r.numbers)),
        ("weights", format!("{} as {held}", count(r.nnz))),
    ];
    let table = bytes(r.table_bytes);
    if ["onnx", "safetensors"].contains(&r.format) {
        rows.push(("dense", format!("{table} with zeros; other programs run them all")));
    } else {
        if !r.straight_line {
            rows.push((if r.format == "tamis" { "file" } else { "tables" }, table));
        }
        rows.push(("stack", format!("{} between layers", bytes(r.scratch_bytes))));
    }
    let names = |name: &str| format!("{name}_predict, {}_INPUTS, …", name.to_uppercase());
    rows.extend(object.name.map(|name| ("names", names(name))));
    facts(&format!("Saved {}", object.files.join(" and ")), &rows)
}
