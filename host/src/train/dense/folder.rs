//! Checkpoints of the dense baseline in a folder: one file that is replaced as a whole.
//!
//! `imp.npz` holds the settings and the levels as JSON, the weights that the last level ended with,
//! its mask, and the weights to go back to. `level-NNN.npz`, where wanted, holds mask and weights
//! of one level, an array of outputs×inputs per layer.

use std::path::Path;

use flate2::Crc;
use serde_json::{Map, Value, json};

use super::job::{ImpJob, Level};
use super::optimiser::Term;
use crate::data::{Array, Problem, Task, Values, npz};
use crate::{Error, Result, base::file};

/// The file that a run resumes from.
const STATE: &str = "imp.npz";
/// Rises when a resumed run would differ from what it was when the file was written.
const FORMAT: u32 = 2;

/// A folder that belongs to one run.
#[derive(Debug)]
pub(super) struct LevelFolder<'a> {
    path: &'a Path,
    job: &'a ImpJob<'a>,
    settings: Value,
}

/// What a folder held.
#[derive(Debug)]
pub(super) struct Saved {
    pub(super) weights: Vec<f32>,
    pub(super) origin: Vec<f32>,
    pub(super) mask: Vec<bool>,
    pub(super) levels: Vec<Level>,
}

impl<'a> LevelFolder<'a> {
    /// The folder for this run, which is made if it is missing, and what it holds of it.
    pub(super) fn open(
        path: &'a Path,
        resume: bool,
        train: &Problem,
        job: &'a ImpJob<'a>,
    ) -> Result<(Self, Option<Saved>)> {
        file::check_folder(path)?;
        let open = Self { path, job, settings: settings(train, job) };
        let state = path.join(STATE);
        if !state.exists() {
            return Ok((open, None));
        }
        if !resume {
            return Err(Error::new("the folder holds a run already")
                .at(path)
                .expected("a folder without one, or --resume to resume it")
                .got(STATE)
                .help("pass --resume, or choose another folder"));
        }
        file::sweep(path);
        let saved = open.read(&state).map_err(|error| error.at(&state))?;
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
        let settings = self.settings.to_string();
        let (settings, json) = (settings.as_bytes(), json.as_bytes());
        let arrays = [
            ("settings", Array::new(&[settings.len()], settings)?),
            ("levels", Array::new(&[json.len()], json)?),
            ("weights", Array::new(&[weights.len()], weights)?),
            ("origin", Array::new(&[origin.len()], origin)?),
            ("mask", Array::new(&[mask.len()], &mask)?),
        ];
        file::write_folder(self.path, |folder| {
            if self.job.settings.keep_levels {
                let name = format!("level-{:03}.npz", levels.len().saturating_sub(1));
                let mut own = Vec::new();
                for (l, layer) in self.job.shape.layers().enumerate() {
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

    fn read(&self, path: &Path) -> Result<Saved> {
        let (mut file, len) = file::open(path)?;
        let mut bytes = |name| match npz::read(&mut file, len, Some(name))?.values {
            Values::U8(values) => Ok(values),
            Values::F32(_) => Err(damaged(format_args!("floats as {name}"))),
        };
        let [settings, levels, mask] = [bytes("settings")?, bytes("levels")?, bytes("mask")?];
        let mut floats = |name| match npz::read(&mut file, len, Some(name))?.values {
            Values::F32(values) => Ok(values),
            Values::U8(_) => Err(damaged(format_args!("bytes as {name}"))),
        };
        let [weights, origin] = [floats("weights")?, floats("origin")?];
        let unreadable = |error| damaged("settings").source(error);
        let stored: Value = serde_json::from_slice(&settings).map_err(unreadable)?;
        // Through text, as the saved ones went.
        let own: Value = serde_json::from_str(&self.settings.to_string()).map_err(unreadable)?;
        if let (Some(own), Some(stored)) = (own.as_object(), stored.as_object())
            && let Some(name) = difference(own, stored)
        {
            let text =
                |map: &Map<String, Value>| map.get(name).map_or("nothing".into(), Value::to_string);
            return Err(Error::new("the folder holds a run with other settings or other data")
                .expected(format_args!("{name} {}", text(own)))
                .got(format_args!("{name} {}", text(stored)))
                .help("pass the settings and the data of that run, or choose another folder"));
        }
        let levels: Vec<Level> =
            serde_json::from_slice(&levels).map_err(|error| damaged("levels").source(error))?;
        let count = levels.iter().map(|level| level.nnz).collect::<Vec<_>>();
        if levels.is_empty() || !self.job.counts().starts_with(&count) {
            return Err(damaged(format_args!("levels of {count:?} weights")));
        }
        let nnz = mask.iter().filter(|&&bit| bit == 1).count();
        let valid = mask.iter().all(|&bit| bit <= 1)
            && [mask.len(), weights.len(), origin.len()] == [self.job.shape.weights(); 3]
            && Some(&nnz) == count.last()
            && weights.iter().zip(&mask).all(|(&w, &bit)| bit == 1 || w == 0.0);
        if !valid {
            return Err(damaged(format_args!("{nnz} weights in the mask of {}", mask.len())));
        }
        let mask = mask.iter().map(|&bit| bit == 1).collect();
        Ok(Saved { weights, origin, mask, levels })
    }
}

/// Everything that the result depends on. Rows are known by a checksum.
fn settings(train: &Problem, job: &ImpJob<'_>) -> Value {
    let ImpJob { settings, rates, shape, task, nnz, input_scale, seed } = job;
    json!({
        "format": FORMAT,
        "inputs": shape.inputs(),
        "hidden": shape.hidden(),
        "outputs": shape.outputs(),
        "head": shape.head,
        "goal": if *task == Task::Multiclass { "classes" } else { task.name() },
        "nnz": nnz,
        "epochs": settings.epochs,
        "batch": settings.batch,
        "optimiser": Term(settings.optimiser),
        "rates": rates,
        "part": settings.prune,
        "rewind": settings.rewind,
        "retrain": settings.retrain,
        "input_scale": input_scale,
        "seed": seed,
        "rows": train.data.rows,
        "data": checksum(train),
        "test": settings.test.as_ref().map(checksum),
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

/// The first setting in which two runs differ.
fn difference<'a>(a: &'a Map<String, Value>, b: &'a Map<String, Value>) -> Option<&'a str> {
    a.keys().chain(b.keys()).find(|name| a.get(*name) != b.get(*name)).map(String::as_str)
}

fn damaged(got: impl std::fmt::Display) -> Error {
    Error::new("the file to resume from is damaged")
        .expected("a whole file of a run, as it was saved")
        .got(got)
        .help("choose another folder, or delete the file to start again")
}
