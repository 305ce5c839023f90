//! Checkpoints of the dense baseline in a folder: one file that is replaced as a whole.
//!
//! `imp.npz` holds the settings and the levels as JSON, the weights that the last level ended with,
//! its mask, and the weights to go back to; the next round of pruning follows from these.
//! `level-NNN.npz`, where wanted, holds mask and weights of one level, an array of outputs×inputs
//! per layer.

use std::fs::File;
use std::path::{Path, PathBuf};

use flate2::Crc;
use serde_json::{Map, Value, json};

use super::options::{ImpOptions, Level};
use super::shape::Shape;
use crate::data::{Array, Problem, Task, Values, npz};
use crate::{Error, Result, base::file};

/// The file that a run resumes from.
const STATE: &str = "imp.npz";
/// Rises when a resumed run would differ from what it was when the file was written.
const FORMAT: u32 = 1;

/// Where a run saves its levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelFolder {
    /// The folder, which is made if it is missing.
    pub folder: PathBuf,
    /// Resume the run that the folder holds, if it holds one; else that is an error.
    pub resume: bool,
    /// `LevelFolder` mask and weights of every level as well, each in a file of its own.
    pub levels: bool,
}

/// A folder that belongs to one run.
#[derive(Debug)]
pub(super) struct OpenFolder {
    own: LevelFolder,
    settings: String,
    shape: Shape,
}

/// What a folder held.
#[derive(Debug)]
pub(super) struct Saved {
    pub(super) weights: Vec<f32>,
    pub(super) origin: Vec<f32>,
    pub(super) mask: Vec<bool>,
    pub(super) levels: Vec<Level>,
}

impl OpenFolder {
    /// The folder for this run, and what it holds of it.
    ///
    /// # Errors
    /// The folder cannot be written, holds another run or a damaged one, or holds this one and
    /// it is not to be resumed.
    pub(super) fn open(
        own: &LevelFolder,
        train: &Problem,
        test: Option<&Problem>,
        options: &ImpOptions,
    ) -> Result<(Self, Option<Saved>)> {
        file::check_folder(&own.folder)?;
        let settings = settings(train, test, options);
        let open =
            Self { own: own.clone(), settings: settings.to_string(), shape: options.shape.clone() };
        let path = own.folder.join(STATE);
        if !path.exists() {
            return Ok((open, None));
        }
        if !own.resume {
            return Err(Error::new("the folder holds a run already")
                .at(&own.folder)
                .expected("a folder without one, or --resume to resume it")
                .got(STATE)
                .help("pass --resume, or choose another folder"));
        }
        file::sweep(&own.folder);
        let saved = Stored::read(&path).map_err(|error| error.at(&path))?;
        let saved = saved.check(&settings, options).map_err(|error| error.at(&path))?;
        Ok((open, Some(saved)))
    }

    /// Saves a level that is done.
    pub(super) fn save(
        &self,
        weights: &[f32],
        origin: &[f32],
        mask: &[bool],
        levels: &[Level],
    ) -> Result<()> {
        let mask: Vec<u8> = mask.iter().map(|&bit| u8::from(bit)).collect();
        let json = serde_json::to_string(levels)
            .map_err(|error| Error::new("cannot write the levels as JSON").source(error))?;
        let (settings, json) = (self.settings.as_bytes(), json.as_bytes());
        let arrays = [
            ("settings", Array::new(&[settings.len()], settings)?),
            ("levels", Array::new(&[json.len()], json)?),
            ("weights", Array::new(&[weights.len()], weights)?),
            ("origin", Array::new(&[origin.len()], origin)?),
            ("mask", Array::new(&[mask.len()], &mask)?),
        ];
        file::write_folder(&self.own.folder, |folder| {
            if self.own.levels {
                let name = format!("level-{:03}.npz", levels.len().saturating_sub(1));
                let mut own = Vec::new();
                for (l, layer) in self.shape.layers().enumerate() {
                    let shape = [layer.outputs, layer.inputs];
                    own.push((format!("mask{l}"), Array::new(&shape, &mask[layer.range.clone()])?));
                    own.push((format!("weights{l}"), Array::new(&shape, &weights[layer.range])?));
                }
                let own: Vec<_> =
                    own.iter().map(|(name, array)| (name.as_str(), array.clone())).collect();
                folder.write(&name, |out| npz::write(out, &own))?;
            }
            folder.write(STATE, |out| npz::write(out, &arrays))
        })
    }
}

/// Everything that the result depends on. Rows are known by a checksum.
fn settings(train: &Problem, test: Option<&Problem>, options: &ImpOptions) -> Value {
    let ImpOptions {
        shape,
        task,
        nnz,
        epochs,
        batch,
        optimiser,
        rates,
        part,
        rewind,
        input_scale,
        seed,
    } = options;
    json!({
        "format": FORMAT,
        "inputs": shape.inputs(),
        "hidden": shape.hidden(),
        "outputs": shape.outputs(),
        "head": shape.head(),
        "goal": if *task == Task::Multiclass { "classes" } else { task.name() },
        "nnz": nnz,
        "epochs": epochs,
        "batch": batch,
        "optimiser": optimiser,
        "rates": rates,
        "part": part,
        "rewind": rewind,
        "input_scale": input_scale,
        "seed": seed,
        "rows": train.data.rows,
        "data": checksum(train),
        "test": test.map(checksum),
    })
}

/// CRC-32 of samples and labels, as hexadecimal digits.
fn checksum(set: &Problem) -> String {
    let mut crc = Crc::new();
    match &set.data.values {
        Values::F32(values) => crc.update(bytemuck::cast_slice(values)),
        Values::U8(values) => crc.update(values),
    }
    crc.update(bytemuck::cast_slice(&set.labels));
    format!("{:08x}", crc.sum())
}

/// The arrays of a file, as they are.
struct Stored {
    settings: Vec<u8>,
    levels: Vec<u8>,
    mask: Vec<u8>,
    weights: Vec<f32>,
    origin: Vec<f32>,
}

impl Stored {
    fn read(path: &Path) -> Result<Self> {
        let (mut file, len) = file::open(path)?;
        let mut bytes = |name| match array(&mut file, len, name)? {
            Values::U8(values) => Ok(values),
            Values::F32(_) => Err(damaged(format_args!("floats as {name}"))),
        };
        let [settings, levels, mask] = [bytes("settings")?, bytes("levels")?, bytes("mask")?];
        let mut floats = |name| match array(&mut file, len, name)? {
            Values::F32(values) => Ok(values),
            Values::U8(_) => Err(damaged(format_args!("bytes as {name}"))),
        };
        Ok(Self { settings, levels, mask, weights: floats("weights")?, origin: floats("origin")? })
    }

    fn check(self, settings: &Value, options: &ImpOptions) -> Result<Saved> {
        let own: Value = serde_json::from_slice(&self.settings)
            .map_err(|error| damaged("settings").source(error))?;
        // Through text, as the saved ones went.
        let wanted: Value = serde_json::from_str(&settings.to_string())
            .map_err(|error| damaged("settings").source(error))?;
        if let (Some(wanted), Some(own)) = (wanted.as_object(), own.as_object())
            && let Some(name) = difference(wanted, own)
        {
            let text =
                |map: &Map<String, Value>| map.get(name).map_or("nothing".into(), Value::to_string);
            return Err(Error::new("the folder holds a run with other settings or other data")
                .expected(format_args!("{name} {}", text(wanted)))
                .got(format_args!("{name} {}", text(own)))
                .help("pass the settings and the data of that run, or choose another folder"));
        }
        let levels: Vec<Level> = serde_json::from_slice(&self.levels)
            .map_err(|error| damaged("levels").source(error))?;
        let counts = options.counts();
        let count = levels.iter().map(|level| level.nnz).collect::<Vec<_>>();
        if levels.is_empty() || !counts.starts_with(&count) {
            return Err(damaged(format_args!("levels of {count:?} weights")));
        }
        let all = options.shape.weights();
        let nnz = self.mask.iter().filter(|&&bit| bit == 1).count();
        let valid = self.mask.iter().all(|&bit| bit <= 1)
            && [self.mask.len(), self.weights.len(), self.origin.len()] == [all; 3]
            && Some(&nnz) == count.last()
            && self.weights.iter().zip(&self.mask).all(|(&w, &bit)| bit == 1 || w == 0.0);
        if !valid {
            return Err(damaged(format_args!("{nnz} weights in the mask of {}", self.mask.len())));
        }
        let mask = self.mask.iter().map(|&bit| bit == 1).collect();
        Ok(Saved { weights: self.weights, origin: self.origin, mask, levels })
    }
}

/// The first setting in which two runs differ.
fn difference<'a>(a: &'a Map<String, Value>, b: &'a Map<String, Value>) -> Option<&'a str> {
    a.keys().chain(b.keys()).find(|name| a.get(*name) != b.get(*name)).map(String::as_str)
}

fn array(file: &mut File, len: u64, name: &str) -> Result<Values> {
    Ok(npz::read(file, len, Some(name))?.values)
}

fn damaged(got: impl std::fmt::Display) -> Error {
    Error::new("the file to resume from is damaged")
        .expected("a whole file of a run, as it was saved")
        .got(got)
        .help("choose another folder, or delete the file to start again")
}
