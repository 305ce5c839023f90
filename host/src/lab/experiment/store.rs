//! A results folder: what belongs to which spec, and a small file for every cell that is done, as
//! docs/experiments.md describes.
//!
//! A run that is killed leaves whole files only, and perhaps one whose name begins with a point,
//! which nobody reads. A folder without `cells` but with `results.jsonl` can be reported and
//! resumed.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::cell::Cell;
use super::environment::{CODE, Environment};
use super::record::Record;
use super::row::row;
use super::spec::Spec;
use crate::{Error, Result, base::file};

/// Version of what stands in a results folder.
const FORMAT: u32 = 1;
/// The version of tamis.
const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Folder {
    format: u32,
    /// The version of tamis that ran it.
    pub(crate) version: String,
    name: String,
    profile: String,
    spec: String,
    /// A hash of the sources that made its cells; none where they are older than it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    /// Toolchain and machine of the first run.
    pub(crate) environment: Environment,
}

/// A line of a file: a record, and the row of a table that it is. Readers take the record alone.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    record: &'a Record,
    #[serde(flatten)]
    row: Map<String, Value>,
}

#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) path: PathBuf,
    pub(crate) spec: Spec,
    pub(crate) folder: Folder,
}

impl Store {
    /// Opens the folder of a spec to run it, and makes it where there is none.
    pub(crate) fn open(path: &Path, spec: &Spec) -> Result<Self> {
        // Made first, and not only tried: other processes may be about to write into it.
        make_folder(path)?;
        let store = match read_folder(path)? {
            Some(folder) => {
                folder.check(path, spec)?;
                Self { path: path.to_owned(), spec: spec.clone(), folder }
            }
            None => Self::make(path, spec)?,
        };
        make_folder(&store.path.join("cells"))?;
        Ok(store)
    }

    /// Opens the folder of an earlier state of a spec, or of the code, to run the present one: cells
    /// whose settings and code are the same are kept, the others are removed. How many were removed.
    /// Killed at any point, it can be called again.
    pub(crate) fn update(path: &Path, spec: &Spec) -> Result<(Self, usize)> {
        let folder = match read_folder(path)? {
            Some(folder) if folder.name == spec.name => folder,
            _ => return Ok((Self::open(path, spec)?, 0)),
        };
        folder.check_run(path)?;
        let is_own = |record: &Record| record.code.as_deref() == CODE;
        let old = if folder.is_of(spec) {
            let store = Self::open(path, spec)?;
            store.heal()?;
            if store.records()?.iter().all(is_own) {
                return Ok((store, 0));
            }
            store
        } else {
            Self::read(path)?
        };
        let settings = |spec: &Spec, cell: &Cell| {
            spec.part_of(cell).ok().map(|part| part.behind(cell.method, cell.variant.as_deref()))
        };
        let all = spec.cells();
        let (valid, others): (Vec<Record>, Vec<Record>) =
            old.records()?.into_iter().partition(|record| {
                let cell = &record.cell;
                is_own(record)
                    && all.contains(cell)
                    && settings(&old.spec, cell) == settings(spec, cell)
            });
        for record in &others {
            let file = old.cell_file(&record.id);
            if file::exists(&file)? {
                std::fs::remove_file(&file).map_err(|error| {
                    Error::io("cannot remove", &file, error)
                        .help("results are to be files that you may remove")
                })?;
            }
        }
        old.write_records(&valid)?;
        let folder = Folder::new(spec);
        // The spec comes last, and also where the update was killed before it: prepare() writes it.
        write_json(&path.join("folder.json"), &[folder])?;
        let store = Self::open(path, spec)?;
        store.heal()?;
        Ok((store, others.len()))
    }

    /// Writes cells that only the merged results have, and repairs what a kill has left.
    pub(crate) fn prepare(&self) -> Result<()> {
        self.heal()?;
        let cells = self.spec.cells().into_iter();
        let known: BTreeMap<String, Cell> = cells.map(|cell| (cell.id(), cell)).collect();
        let merged = self.merged()?;
        // All of them, before a cell is written.
        merged.values().try_for_each(|record| check_code(&self.path, record.code.as_deref()))?;
        for (id, record) in merged {
            if known.get(&id) == Some(&record.cell) && !file::exists(&self.cell_file(&id))? {
                self.write(&record)?;
            }
        }
        self.sweep();
        Ok(())
    }

    /// Opens a folder to report it.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let Some(folder) = read_folder(path)? else {
            return Err(Error::new("there are no results")
                .at(path)
                .expected("a folder that tamis run has made, with folder.json in it")
                .got(if path.exists() { "another folder or file" } else { "nothing of that name" })
                .help("pass the folder that was given to tamis run with -o"));
        };
        folder.check_format(path)?;
        let file = path.join("spec.toml");
        let spec = Spec::load(&file, None)?;
        if spec.hash() != folder.spec {
            return Err(Error::new("the spec of the results was changed")
                .at(file)
                .expected(format_args!("the spec of hash {}", folder.spec))
                .got(spec.hash())
                .help("take the change back, or run the changed spec into a folder of its own"));
        }
        Ok(Self { path: path.to_owned(), spec, folder })
    }

    fn cell_file(&self, id: &str) -> PathBuf {
        self.path.join("cells").join(format!("{id}.json"))
    }

    pub(crate) fn cell(&self, cell: &Cell) -> Result<Option<Record>> {
        let id = cell.id();
        let path = self.cell_file(&id);
        if !file::exists(&path)? {
            return Ok(None);
        }
        let record: Record = read_json(&path)?;
        if record.id == id && record.cell == *cell {
            return Ok(Some(record));
        }
        Err(Error::new("a file of the results is of another cell")
            .at(path)
            .expected(id)
            .got(record.id)
            .help("remove the file: the cell is run again"))
    }

    pub(crate) fn write(&self, record: &Record) -> Result<()> {
        write_json(&self.cell_file(&record.id), &[self.line(record)?])
    }

    fn line<'a>(&self, record: &'a Record) -> Result<Line<'a>> {
        Ok(Line { record, row: row(self.spec.part_of(&record.cell)?, record) })
    }

    /// All cells that are done, in the order of the spec.
    pub(crate) fn records(&self) -> Result<Vec<Record>> {
        let mut merged = self.merged()?;
        let cells = self.spec.cells().into_iter();
        let records = cells.map(|cell| Ok(self.cell(&cell)?.or_else(|| merged.remove(&cell.id()))));
        records.filter_map(Result::transpose).collect()
    }

    /// Writes `results.jsonl` from the cells that are done, and removes half-written files.
    pub(crate) fn merge(&self) -> Result<()> {
        // One at a time, so that the last one to end has seen all cells.
        let path = self.path.join("folder.json");
        let (lock, _) = file::open(&path)?;
        // Not every file system can lock; the cells stay in any case.
        let _ = lock.lock();
        self.write_records(&self.records()?)?;
        self.sweep();
        Ok(())
    }

    fn write_records(&self, records: &[Record]) -> Result<()> {
        let lines = records.iter().map(|record| self.line(record)).collect::<Result<Vec<_>>>()?;
        write_json(&self.path.join("results.jsonl"), &lines)
    }

    fn make(path: &Path, spec: &Spec) -> Result<Self> {
        let unreadable = |error| {
            Error::io("cannot read", path, error).help(
                "results are plain files in plain folders: see that nothing else is in their place",
            )
        };
        for entry in std::fs::read_dir(path).map_err(unreadable)? {
            let name = entry.map_err(unreadable)?.file_name();
            let name = name.to_string_lossy();
            if !matches!(name.as_ref(), "spec.toml" | "cells") && !file::is_partial(&name) {
                if file::exists(&path.join("folder.json"))? {
                    // Another process has made it since.
                    return Self::open(path, spec);
                }
                return Err(Error::new("the folder holds something else than results")
                    .at(path)
                    .expected("a new folder, an empty one, or one that tamis run has made")
                    .got(format_args!("{name} in it, and no folder.json"))
                    .help("choose another folder with -o"));
            }
        }
        let store = Self { path: path.to_owned(), spec: spec.clone(), folder: Folder::new(spec) };
        store.write_spec()?;
        // Last: what has it is complete.
        write_json(&path.join("folder.json"), &[&store.folder])?;
        Ok(store)
    }

    fn write_spec(&self) -> Result<()> {
        let text = self.spec.to_toml()?;
        file::write(self.path.join("spec.toml"), |w| w.write_all(text.as_bytes()))
    }

    /// Writes the spec anew where an update was killed before it was written, or where it says something else
    /// of the same results.
    fn heal(&self) -> Result<()> {
        let file = self.path.join("spec.toml");
        let is_other = Spec::load(&file, None).map_or(true, |spec| spec != self.spec);
        if is_other { self.write_spec() } else { Ok(()) }
    }

    /// The records of `results.jsonl`, by name.
    fn merged(&self) -> Result<BTreeMap<String, Record>> {
        let path = self.path.join("results.jsonl");
        if !file::exists(&path)? {
            return Ok(BTreeMap::new());
        }
        let text = file::read_text(&path)?;
        let record = |(line, text): (usize, &str)| {
            let record: Record =
                serde_json::from_str(text).map_err(|error| damaged(&path, line + 1, error))?;
            Ok((record.id.clone(), record))
        };
        text.lines().enumerate().map(record).collect()
    }

    fn sweep(&self) {
        file::sweep(&self.path);
        file::sweep(&self.path.join("cells"));
    }
}

impl Folder {
    fn new(spec: &Spec) -> Self {
        Self {
            format: FORMAT,
            version: VERSION.to_owned(),
            name: spec.name.clone(),
            profile: spec.resolved.clone(),
            spec: spec.hash(),
            code: CODE.map(str::to_owned),
            environment: Environment::here(),
        }
    }

    /// Whether this program may add to it with this spec.
    fn is_of(&self, spec: &Spec) -> bool {
        self.spec == spec.hash() && self.code.as_deref() == CODE
    }

    fn check_format(&self, path: &Path) -> Result<()> {
        if self.format == FORMAT {
            return Ok(());
        }
        Err(Error::new("the results folder has another version")
            .at(path)
            .expected(format_args!("version {FORMAT}"))
            .got(format_args!("version {}, of tamis {}", self.format, self.version))
            .help("use that tamis, or run into another folder"))
    }

    /// Checks that this program may add to the results.
    fn check_run(&self, path: &Path) -> Result<()> {
        self.check_format(path)?;
        if self.version == VERSION {
            return Ok(());
        }
        Err(Error::new("the results are of another version of tamis")
            .at(path)
            .expected(format_args!("tamis {VERSION}"))
            .got(format_args!("tamis {}", self.version))
            .help(
                "run into another folder, so that results of two versions are not mixed; \
                tamis report reads either",
            ))
    }

    fn check(&self, path: &Path, spec: &Spec) -> Result<()> {
        self.check_run(path)?;
        if self.is_of(spec) {
            return Ok(());
        }
        if self.spec == spec.hash() {
            return check_code(path, self.code.as_deref());
        }
        let state = |name: &str, profile: &str, hash: &str| {
            format!("{name}, profile {profile}, hash {hash}")
        };
        Err(Error::new("the folder holds results of another spec")
            .at(path)
            .expected(state(&spec.name, &spec.resolved, &spec.hash()))
            .got(state(&self.name, &self.profile, &self.spec))
            .help(
                "choose another folder with -o, or the spec, profile and --digits of these \
                results; --update keeps the cells whose settings are the same, where the spec \
                was changed",
            ))
    }
}

/// Refuses what other code than this has made.
pub(crate) fn check_code(path: &Path, code: Option<&str>) -> Result<()> {
    if code == CODE {
        return Ok(());
    }
    Err(Error::new("the results are of another state of the code")
        .at(path)
        .expected(format_args!("sources of hash {}", CODE.unwrap_or("unknown")))
        .got(code.unwrap_or("none: they are older than it"))
        .help(
            "run the program that made them, or choose another folder with -o; --update removes \
             the cells of other code and runs them again",
        ))
}

fn make_folder(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|error| {
        Error::io("cannot make the folder", path, error)
            .help("choose a place that you may write to")
    })?;
    file::check_folder(path)
}

fn read_folder(path: &Path) -> Result<Option<Folder>> {
    let about = path.join("folder.json");
    if file::exists(&about)? { read_json(&about).map(Some) } else { Ok(None) }
}

fn read_json<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T> {
    serde_json::from_str(&file::read_text(path)?).map_err(|error| damaged(path, 1, error))
}

fn damaged(path: &Path, line: usize, error: serde_json::Error) -> Error {
    Error::new("a file of the results is damaged")
        .at(path)
        .source(error)
        .got(format_args!("something else than tamis wrote, in line {line}"))
        .help("remove the file: what is missing is run again")
}

/// Writes values, a line each.
fn write_json(path: &Path, values: &[impl Serialize]) -> Result<()> {
    let lines: serde_json::Result<Vec<String>> = values.iter().map(serde_json::to_string).collect();
    let lines = lines.map_err(|error| Error::new("cannot write JSON").source(error))?;
    file::write(path, |w| lines.iter().try_for_each(|line| writeln!(w, "{line}")))
}
