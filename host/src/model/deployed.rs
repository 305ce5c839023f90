//! What a model takes on a target against dense layers in its place.

use clap::ValueEnum;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::model::cost::{Estimate, Memory, Numbers, Way};
use crate::model::file::Opened;
use crate::model::target::{Device, Target};
use crate::model::{ModelCost, ModelFile};
use crate::{Error, Result};

impl Serialize for Memory {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("is_bound", &self.is_bound)?;
        map.serialize_entry("flash_bytes", &self.flash_bytes())?;
        map.serialize_entry("model_bytes", &self.model_bytes)?;
        map.serialize_entry("code_bytes", &self.code_bytes)?;
        map.serialize_entry("ram_bytes", &self.ram_bytes())?;
        map.serialize_entry("scratch_bytes", &self.scratch_bytes)?;
        map.serialize_entry("output_bytes", &self.output_bytes)?;
        map.serialize_entry("stack_bytes", &self.stack_bytes)?;
        map.end()
    }
}

/// What one network takes on a target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Needs {
    /// Flash and RAM.
    #[serde(flatten)]
    pub bytes: Memory,
    /// Instructions are an upper bound; otherwise measured, within 20 %.
    pub instructions_are_bound: bool,
    /// The input row, in no sum: it may lie in flash or RAM.
    pub row_bytes: usize,
    /// Multiplications with addition, and additions of a sum.
    pub macs: usize,
    /// Instructions of one prediction.
    pub instructions: u64,
    /// Time of one prediction at the device's clock, from and to; none for a kind of processor.
    pub milliseconds: Option<[f64; 2]>,
}

impl Needs {
    fn new(estimate: &Estimate, bytes: Memory, target: &Target) -> Self {
        Self {
            bytes,
            instructions_are_bound: estimate.is_bound,
            row_bytes: estimate.row_bytes,
            macs: estimate.macs,
            instructions: estimate.instructions,
            milliseconds: target.milliseconds(estimate.instructions),
        }
    }

    /// Where a dense network may take less or more than a model, by the names in a report.
    #[must_use]
    pub const fn compared(&self) -> [(&'static str, u64); 4] {
        [
            ("flash_bytes", self.bytes.flash_bytes() as u64),
            ("model_bytes", self.bytes.model_bytes as u64),
            ("ram_bytes", self.bytes.ram_bytes() as u64),
            ("instructions", self.instructions),
        ]
    }

    fn wins(&self, other: &Self) -> Vec<&'static str> {
        let both = self.compared().into_iter().zip(other.compared());
        both.filter(|((_, own), (_, other))| own < other).map(|((name, _), _)| name).collect()
    }
}

/// Bytes of the model in one way of deploying it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WayNeeds {
    /// `file`, `embedded`, `rust`, `straight` or `c`.
    pub way: &'static str,
    /// Flash and RAM.
    #[serde(flatten)]
    pub bytes: Memory,
}

/// Something that a target or the user bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Limited {
    /// Bytes of flash of model and code.
    Flash,
    /// Bytes of scratch, output and stack.
    Ram,
    /// Bytes of stack.
    Stack,
    /// Instructions of one prediction.
    Instructions,
}

impl Limited {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    fn of(self, needs: &Needs) -> u64 {
        match self {
            Self::Flash => needs.bytes.flash_bytes() as u64,
            Self::Ram => needs.bytes.ram_bytes() as u64,
            Self::Stack => needs.bytes.stack_bytes as u64,
            Self::Instructions => needs.instructions,
        }
    }
}

/// A bound and what is held to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// What is bounded.
    pub what: Limited,
    /// The most that it may be.
    pub limit: u64,
    /// What it is.
    pub got: u64,
    /// Whether it is more.
    pub exceeded: bool,
    /// `--fail-above`, or the device's name.
    pub from: String,
}

/// What a model takes on one target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TargetCost {
    /// The target's name.
    pub target: String,
    /// The kind of processor.
    pub core: &'static str,
    /// Whether the processor has instructions for floats.
    pub has_float_unit: bool,
    /// `floats` or `integers`: what the model computes with.
    pub numbers: &'static str,
    /// The device; none for a kind of processor.
    pub device: Option<Device>,
    /// Cycles an instruction that times assume, from and to, without wait states.
    pub assumed_cycles_per_instruction: [f64; 2],
    /// Flash of a program that does nothing, which is in no sum.
    pub startup_flash_bytes: usize,
    /// Instructions of each layer.
    pub layer_instructions: Vec<u64>,
    /// Every way of deploying the model, the least flash first.
    pub ways: Vec<WayNeeds>,
    /// The way that `model`, `fits` and the bounds are of.
    pub deploy: &'static str,
    /// The model; instructions are those of the crate's kernels.
    pub model: Needs,
    /// Dense layers of 8-bit integers of the requested shape; where there is no such
    /// way, embedded.
    pub dense_int8: Needs,
    /// Dense layers of floats of that shape.
    pub dense_f32: Needs,
    /// Where dense layers take less than the model: `flash_bytes`, `model_bytes`, `ram_bytes`,
    /// `instructions`.
    pub dense_int8_wins: Vec<&'static str>,
    /// The same for floats.
    pub dense_f32_wins: Vec<&'static str>,
    /// Whether the device has the flash and the RAM, start-up code included; none for a kind of
    /// processor.
    pub fits: Option<bool>,
    /// Every bound.
    pub limits: Vec<Limit>,
}

impl ModelFile {
    /// What the model, whose costs are `cost`, takes on a target if it is deployed in one way, or
    /// in the one with the least flash, held to bounds besides those of the device.
    ///
    /// # Errors
    /// As [`cost`](Self::cost), and where the model cannot be deployed so.
    pub fn on(
        &self,
        cost: &ModelCost,
        target: &Target,
        deploy: Option<Way>,
        limits: &[(Limited, u64)],
    ) -> Result<TargetCost> {
        let core = target.core;
        let (numbers, estimate) = match &self.open()? {
            Opened::Floats(view) => ("floats", Estimate::of_floats(view, core)),
            Opened::Integers(view) => ("integers", Estimate::of_integers(view, core)),
        };
        let mut ways: Vec<_> = Way::ALL
            .into_iter()
            .filter_map(|way| Some((way, estimate.ways[way as usize]?)))
            .collect();
        ways.sort_by_key(|(_, memory)| memory.flash_bytes());
        let deploy = deploy.or(ways.first().map(|(way, _)| *way)).unwrap_or(Way::File);
        let dense = |numbers| {
            let dense = Estimate::of_dense(&dense_shape(cost), numbers, core);
            let memory = dense.ways[deploy as usize].or(dense.ways[Way::Embedded as usize]);
            Needs::new(&dense, memory.unwrap_or_default(), target)
        };
        let memory = estimate.ways[deploy as usize].ok_or_else(|| {
            Error::new("a model of floats cannot be deployed so")
                .expected("a way for floats: file, embedded, rust or c")
                .got(deploy.name())
                .help("quantize the model first, or choose another way")
        })?;
        let model = Needs::new(&estimate, memory, target);
        let (dense_int8, dense_f32) = (dense(Numbers::Integers), dense(Numbers::Floats));
        let startup = core.prices().startup;
        let held_to = |what: Limited, limit: u64, startup: u32, from: &str| {
            let got = what.of(&model) + u64::from(startup);
            Limit { what, limit, got, exceeded: got > limit, from: from.to_owned() }
        };
        let mut held = Vec::new();
        if let Some(device) = target.device {
            held.push(held_to(Limited::Flash, device.flash_bytes as u64, startup, device.name));
            held.push(held_to(Limited::Ram, device.ram_bytes as u64, 0, device.name));
        }
        let fits = target.device.map(|_| held.iter().all(|limit| !limit.exceeded));
        held.extend(limits.iter().map(|&(what, most)| held_to(what, most, 0, "--fail-above")));
        Ok(TargetCost {
            target: target.name(),
            core: core.name(),
            has_float_unit: core.has_floats(),
            numbers,
            device: target.device.copied(),
            assumed_cycles_per_instruction: target.cycles(),
            startup_flash_bytes: startup as usize,
            layer_instructions: estimate.layers,
            ways: ways
                .iter()
                .map(|(way, bytes)| WayNeeds { way: way.name(), bytes: *bytes })
                .collect(),
            deploy: deploy.name(),
            dense_int8_wins: dense_int8.wins(&model),
            dense_f32_wins: dense_f32.wins(&model),
            fits,
            model,
            dense_int8,
            dense_f32,
            limits: held,
        })
    }
}

/// Inputs and outputs of the dense layers in the place of the model's.
fn dense_shape(cost: &ModelCost) -> Vec<[usize; 2]> {
    let layers = cost.layers.iter().scan(cost.inputs, |inputs, layer| {
        let shape = [*inputs, layer.requested];
        *inputs = layer.requested;
        Some(shape)
    });
    layers.collect()
}

impl TargetCost {
    /// Nothing where every bound is kept.
    ///
    /// # Errors
    /// One that names each bound that is exceeded; [`Error::is_over_limit`] tells it from others.
    pub fn check(&self) -> Result<()> {
        let over: Vec<_> = self.limits.iter().filter(|limit| limit.exceeded).collect();
        if over.is_empty() {
            return Ok(());
        }
        let unit = |what| if what == Limited::Instructions { "" } else { " bytes" };
        let list = |of: &dyn Fn(&Limit) -> String| {
            over.iter().map(|limit| of(limit)).collect::<Vec<_>>().join(", ")
        };
        let most = |Limit { what, limit, from, .. }: &Limit| {
            format!("{} at most {limit}{} ({from})", what.name(), unit(*what))
        };
        let got = |Limit { what, got, .. }: &Limit| format!("{} {got}{}", what.name(), unit(*what));
        let quantize =
            if self.numbers == "floats" { "make integers of it (tamis quantize), " } else { "" };
        let help = "train it with fewer nonzeros or neurons, ";
        Err(Error::over_limit(format!("the model takes more than it may on {}", self.target))
            .expected(list(&most))
            .got(list(&got))
            .help(format!("{help}{quantize}or take a larger device")))
    }
}
