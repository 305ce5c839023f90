//! `tamis inspect`

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tamis::store::wire::Cost;

use super::common::Common;
use super::console::{self, bytes, count, percent};
use super::parse::{self, Named};
use crate::Result;
use crate::base::file::{self, Kind};
use crate::data::Task;
use crate::lab::plot::{Bins, Histogram, histograms};
use crate::model::cost::{Memory, Way};
use crate::model::{
    DEVICES, Device, LayerCost, Limited, ModelCost, ModelFile, Needs, Score, Target, TargetCost,
    WayNeeds, WeightStats,
};

/// Show what a model holds and costs: flash, RAM, operations and instructions on a
/// microcontroller, against dense networks in its place.
///
/// Bytes of the model are exact. Code, stack and instructions are sums of measured ones, for
/// firmware at optimisation level 3; those with <= are upper bounds. Counted are instructions, not
/// cycles.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis inspect model.tamis
  tamis inspect small.tamis --mcu nRF52840
  tamis inspect small.tamis --mcu cortex-m0 --fail-above ram=16K,flash=32K,instructions=50000
  tamis inspect model.tamis --weights weights.svg
  tamis inspect small.tamis --mcu cortex-m0 --deploy embedded --fail-above flash=8K
  tamis inspect --mcus")]
pub(super) struct Inspect {
    /// The model
    #[arg(value_name = "M.tamis", required_unless_present = "targets")]
    model: Option<PathBuf>,
    /// The device, or the kind of processor, that it is for; a device must have room for it
    /// [default: all kinds of processors]
    #[arg(long = "mcu", value_name = "DEVICE", value_parser = parse::target)]
    target: Option<Target>,
    /// How the program has the model; what is said of the target is of that
    #[arg(long, value_name = "WAY", default_value = "auto", value_parser = parse::named(DEPLOY))]
    deploy: Deploy,
    /// Exit with code 3 if the model takes more on the target: flash, ram and stack in bytes,
    /// instructions of a prediction; K and M are 1024 and 1024² bytes, or 1000 and 1000²
    /// instructions
    #[arg(long, value_name = "WHAT=N,…", value_delimiter = ',', requires = "target",
          value_parser = parse::limit)]
    fail_above: Vec<(Limited, u64)>,
    /// Draw the histogram of the weights of each layer, and say their mean and variance; of a model
    /// of floats
    #[arg(long, value_name = "FILE.svg")]
    weights: Option<PathBuf>,
    /// List the targets
    #[arg(long = "mcus", conflicts_with_all = ["model", "target", "deploy", "fail_above", "weights"])]
    targets: bool,
}

/// `--deploy`; none where the least flash decides.
type Deploy = Option<Way>;

const DEPLOY: [Named<Deploy>; 6] = [
    Named("auto", None, "Whichever takes the least flash"),
    Named("file", Some(Way::File), "The file, read in place when the program starts"),
    Named("embedded", Some(Way::Embedded), "The file, read by the compiler"),
    Named("rust", Some(Way::Rust), "Tables of Rust: tamis export --format rust"),
    Named(
        "straight",
        Some(Way::Straight),
        "Code without tables: tamis export --format rust --straight-line",
    ),
    Named("c", Some(Way::C), "Tables of C: tamis export --format c"),
];

/// What the verb prints: on the chip of --mcu, or without it on every kind of processor.
#[derive(Debug, Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    cost: &'a ModelCost,
    target: Option<&'a TargetCost>,
    targets: &'a [TargetCost],
    /// With --weights, by layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    weights: Option<&'a [Option<WeightStats>]>,
}

#[derive(Debug, Serialize)]
struct Known {
    cores: Vec<String>,
    devices: &'static [Device],
}

impl Inspect {
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        let Some(path) = &self.model else { return list(common) };
        if let Some(picture) = &self.weights {
            file::check(picture, Kind::PICTURE, [path.as_path()])?;
        }
        let model = ModelFile::load(path)?;
        let cost = model.cost()?;
        let drawn = self.weights.as_deref().map(|path| draw(&model, path)).transpose()?;
        let weights = drawn.as_deref();
        let said = || weights.map_or(String::new(), |weights| statistics(&cost, weights));
        if let Some(target) = &self.target {
            let on = model.on(&cost, target, self.deploy, &self.fail_above)?;
            let report = Report { cost: &cost, target: Some(&on), targets: &[], weights };
            common.result(&report, || on_target(&cost, &on, target) + &said())?;
            return on.check();
        }
        let on = |target: Target| model.on(&cost, &target, self.deploy, &[]);
        let targets = kinds().map(on).collect::<Result<Vec<_>>>()?;
        let report = Report { cost: &cost, target: None, targets: &targets, weights };
        common.result(&report, || summary(&cost, &targets) + &said())
    }
}

/// Most bins of a histogram of weights.
const BINS: usize = 60;

/// Draws the weights of each layer over one axis; what they are like.
fn draw(model: &ModelFile, path: &Path) -> Result<Vec<Option<WeightStats>>> {
    let weights = model.weights()?;
    let stats: Vec<_> = weights.iter().map(|layer| WeightStats::of(layer)).collect();
    let largest = |of: &WeightStats| of.least.abs().max(of.largest.abs());
    let reach = f64::from(stats.iter().flatten().map(largest).fold(f32::MIN_POSITIVE, f32::max));
    let bins = Bins { low: -reach, high: reach, count: BINS, log: false };
    let layers = (1..).zip(&weights).filter(|(_, layer)| !layer.is_empty());
    let layers = layers
        .map(|(at, layer)| Histogram::of(&format!("layer {at}"), bins, layer.iter().copied()));
    let svg = histograms("Weights by layer", "weight", &layers.collect::<Vec<_>>());
    file::write(path, |out| out.write_all(svg.as_bytes()))?;
    Ok(stats)
}

/// The weights of each layer in numbers.
fn statistics(cost: &ModelCost, weights: &[Option<WeightStats>]) -> String {
    let row = |((at, layer), of): ((usize, &LayerCost), &Option<WeightStats>)| {
        let Some(of) = *of else { return vec![name(at, layer), count(0)] };
        let numbers = [of.mean, of.variance, of.least.into(), of.largest.into()];
        let numbers = numbers.map(|number: f64| match number.abs() {
            0.0 => "0".to_owned(),
            1e-3..1e5 => format!("{number:.5}"),
            _ => format!("{number:.3e}"),
        });
        [name(at, layer), count(of.count)].into_iter().chain(numbers).collect()
    };
    let rows = (1..).zip(&cost.layers).zip(weights).map(row);
    let heading = ["layer", "weights", "mean", "variance", "least", "largest"];
    format!("\n\n{}", console::table(&heading, rows))
}

/// The kinds of processors.
fn kinds() -> impl Iterator<Item = Target> {
    Target::all().filter(|target| target.device.is_none())
}

fn list(common: &Common) -> Result<()> {
    let cores = kinds().map(|target| target.name());
    let known = Known { cores: cores.collect(), devices: DEVICES };
    common.result(&known, || {
        let heading = ["device", "processor", "prices of", "flash", "RAM", "clock", ""];
        let row = |device: &Device| {
            let (core, clock) = (device.core.name().to_lowercase(), device.megahertz);
            let (flash, ram) = (size(device.flash_bytes), size(device.ram_bytes));
            let [name, processor, note] =
                [device.name, device.processor, device.note].map(Into::into);
            vec![name, processor, core, flash, ram, format!("{clock} MHz"), note]
        };
        let devices = console::table(&heading, DEVICES.iter().map(row));
        format!("Kinds of processors: {}\n\n{devices}", known.cores.join(", "))
    })
}

/// A size of memory in whole units.
fn size(bytes: usize) -> String {
    match bytes {
        n if n.is_multiple_of(1 << 20) => format!("{} MiB", n >> 20),
        n => format!("{} KiB", n >> 10),
    }
}

fn title(cost: &ModelCost) -> String {
    let hidden: Vec<_> = cost.hidden.iter().map(|&m| count(m)).collect();
    let ModelCost { model, outputs, crc32, .. } = cost;
    let (file, task, inputs) = (bytes(cost.file_bytes), task(cost), count(cost.inputs));
    let (hidden, s) = (hidden.join(" and "), if *outputs == 1 { "" } else { "s" });
    let hidden = if hidden.is_empty() { String::new() } else { format!("{hidden} hidden, ") };
    let shape = format!("{inputs} inputs, {hidden}{outputs} output{s}");
    let biases = match cost.layers.iter().map(|layer| layer.biases).sum() {
        0 => String::new(),
        n => format!(", {} biases", count(n)),
    };
    let columns = match &cost.integers {
        Some(scales) if scales.columns => ", a scale for each input",
        _ => "",
    };
    format!("{model}: {file}, {task}, {shape}{biases}{columns}, checksum {crc32}")
}

fn summary(cost: &ModelCost, targets: &[TargetCost]) -> String {
    let heading =
        ["layer", "nonzeros", "flash", "RAM", "operations", "dense flash", "dense operations"];
    let row = |name: String, cost: &Cost| {
        let [nnz, macs, dense_macs] = [cost.nonzeros, cost.macs, cost.dense_macs].map(count);
        let [flash, ram] = [cost.flash_bytes, cost.ram_bytes].map(long);
        vec![name, nnz, flash, ram, macs, long(cost.dense_flash_bytes), dense_macs]
    };
    let rows = (1..).zip(&cost.layers).map(|(at, layer)| row(name(at, layer), &layer.cost));
    let layers = console::table(&heading, rows.chain([row(ALL.into(), &cost.total)]));
    let heading =
        ["processor", "deployed as", "flash", "RAM", "instructions", "dense int8", "dense f32"];
    let row = |on: &TargetCost| {
        let (model, bytes) = (&on.model, &on.model.bytes);
        let of = |n| marked(bytes.is_bound, long(n));
        let (flash, ram) = (of(bytes.flash_bytes()), of(bytes.ram_bytes()));
        let own = marked(model.instructions_are_bound, count(model.instructions));
        let [int8, f32] = [&on.dense_int8, &on.dense_f32].map(|dense| count(dense.instructions));
        vec![on.target.clone(), on.deploy.into(), flash, ram, own, int8, f32]
    };
    let targets = console::table(&heading, targets.iter().map(row));
    let more = "--mcu shows one of them, or a device (--mcus), in full.".into();
    let certify = format!(
        "tamis certify ORIGINAL {} --box ROWS --eps E bounds how far it is from the model that it \
         was made of.",
        cost.model
    );
    let parts = [Some(title(cost)), Some(layers), Some(verdict(&cost.total)), units(cost)];
    let ends = [targets, more, certify].map(Some);
    parts.into_iter().chain(ends).flatten().collect::<Vec<_>>().join("\n\n")
}

/// What units of columns take, folded into the network and as a map of each column; none without biases.
fn units(cost: &ModelCost) -> Option<String> {
    let columns = cost.inputs;
    let map = format!("{} and {} operations", long(8 * columns), count(2 * columns));
    if cost.integers.as_ref().is_some_and(|scales| scales.columns) {
        return Some(format!(
            "Columns have scales of their own: {} in the file, applied where readings become bytes.",
            long(8 * columns)
        ));
    }
    let folded = cost.layers.first().map_or(0, |layer| layer.biases);
    (folded > 0 && cost.integers.is_none()).then(|| {
        format!(
            "Biases of the first layer: {}, of {}. Units of columns, where they were mapped, are folded into \
             these and the weights; a map of the columns would take {map} in a prediction.",
            count(folded),
            long(4 * folded)
        )
    })
}

const ALL: &str = "all of the file";

fn name(at: usize, layer: &LayerCost) -> String {
    format!("{at} {} {}→{}", layer.kind, layer.inputs, layer.outputs)
}

/// What the model was trained for.
fn task(cost: &ModelCost) -> String {
    match (cost.task, cost.threshold) {
        (None, _) => "of no stated task".into(),
        (Some(Task::Regression), _) => "for regression".into(),
        (Some(Task::Binary), threshold) => {
            format!("for two classes (1 from {} on)", threshold.unwrap_or(Score::THRESHOLD))
        }
        (Some(Task::Multiclass), _) => format!("for {} classes", count(cost.outputs)),
    }
}

/// Upper bounds.
fn marked(is_bound: bool, text: String) -> String {
    if is_bound { format!("<= {text}") } else { text }
}

fn long(n: usize) -> String {
    format!("{} B", count(n))
}

/// Which form is the smaller one.
fn verdict(total: &Cost) -> String {
    let ratio = |a: usize, b: usize| a as f64 / b.max(1) as f64;
    let (sparse, dense) = (total.flash_bytes, total.dense_flash_bytes);
    let fewer = format!("{:.1} times fewer operations", ratio(total.dense_macs, total.macs));
    if sparse < dense {
        let less = ratio(dense, sparse);
        return format!("Sparse wins: {less:.1} times less flash and {fewer} than dense f32.");
    }
    let more = ratio(sparse, dense);
    format!(
        "Dense wins on flash here: sparse takes {more:.1} times the bytes of dense f32 ({fewer})."
    )
}

fn on_target(cost: &ModelCost, on: &TargetCost, target: &Target) -> String {
    let place = match &on.device {
        Some(Device { name, processor, megahertz, flash_bytes, ram_bytes, .. }) => {
            let (flash, ram) = (size(*flash_bytes), size(*ram_bytes));
            format!("{name} ({processor}, {megahertz} MHz, {flash} flash, {ram} RAM)")
        }
        None => on.core.to_owned(),
    };
    let dense = [("int8", &on.dense_int8), ("f32", &on.dense_f32)];
    let blocks = [
        format!("{}\non {place}", title(cost)),
        layers(cost, on, target),
        ways(on),
        networks(on),
        dense.map(|(name, dense)| against(name, dense, &on.model)).join("\n"),
        notes(on),
    ];
    blocks.join("\n\n")
}

fn layers(cost: &ModelCost, on: &TargetCost, target: &Target) -> String {
    let heading =
        ["layer", "nonzeros", "density", "flash", "RAM", "operations", "instructions", "time"];
    let row = |name: String, cost: &Cost, density: String, instructions: u64| {
        let [nnz, macs] = [cost.nonzeros, cost.macs].map(count);
        let [flash, ram] = [cost.flash_bytes, cost.ram_bytes].map(long);
        let time = target.milliseconds(instructions).map_or_else(String::new, milliseconds);
        vec![name, nnz, density, flash, ram, macs, count(instructions), time]
    };
    let layers = (1..).zip(&cost.layers).zip(&on.layer_instructions);
    let layers = layers.map(|((at, layer), &instructions)| {
        let density = if layer.cost.nonzeros == 0 { String::new() } else { percent(layer.density) };
        row(name(at, layer), &layer.cost, density, instructions)
    });
    let total = row(ALL.into(), &cost.total, String::new(), on.model.instructions);
    console::table(&heading, layers.chain([total]))
}

fn milliseconds([least, most]: [f64; 2]) -> String {
    match most {
        most if most < 0.1 => format!("{:.1}-{:.1} µs", 1000.0 * least, 1000.0 * most),
        most if most < 10.0 => format!("{least:.2}-{most:.2} ms"),
        _ => format!("{least:.0}-{most:.0} ms"),
    }
}

/// Headings and cells of the bytes of a deployed network.
const BYTES: [&str; 6] = ["flash", "model", "code", "RAM", "scratch, output", "stack"];

fn cells(name: &str, bytes: &Memory) -> Vec<String> {
    let of = |n| marked(bytes.is_bound, long(n));
    vec![
        name.into(),
        of(bytes.flash_bytes()),
        long(bytes.model_bytes),
        of(bytes.code_bytes),
        of(bytes.ram_bytes()),
        long(bytes.scratch_bytes + bytes.output_bytes),
        of(bytes.stack_bytes),
    ]
}

fn ways(on: &TargetCost) -> String {
    let row = |way: &WayNeeds| {
        let name = match way.way {
            "file" => "file: include_model!",
            "embedded" => "embedded: embed_model!, embed_quantised!",
            "rust" => "rust: export --format rust",
            "straight" => "straight: export --format rust --straight-line",
            _ => "c: export --format c (GCC, -O2)",
        };
        cells(name, &way.bytes)
    };
    console::table(&[&["deployed as"][..], &BYTES].concat(), on.ways.iter().map(row))
}

fn networks(on: &TargetCost) -> String {
    let deployed = format!("deployed as {}", on.deploy);
    let heading = [&[deployed.as_str()][..], &BYTES, &["instructions"]].concat();
    let all =
        [("this model", &on.model), ("dense int8", &on.dense_int8), ("dense f32", &on.dense_f32)];
    let rows = all.map(|(name, needs)| {
        let mut row = cells(name, &needs.bytes);
        row.push(marked(needs.instructions_are_bound, count(needs.instructions)));
        row
    });
    console::table(&heading, rows)
}

/// Who takes less of what, in words.
fn against(name: &str, dense: &Needs, model: &Needs) -> String {
    let times = |more: u64, less: u64| match more as f64 / less as f64 {
        _ if less == 0 => "all of it".into(),
        ratio if ratio < 1.05 => "by less than a twentieth".into(),
        ratio => format!("{ratio:.1} times less"),
    };
    let names = ["flash", "bytes of the model", "RAM", "instructions"];
    let wins = |own: &Needs, other: &Needs| {
        let both = names.into_iter().zip(own.compared()).zip(other.compared());
        let less = both.filter(|((_, (_, own)), (_, other))| own < other);
        let less =
            less.map(|((what, (_, own)), (_, other))| format!("{what} ({})", times(other, own)));
        less.collect::<Vec<_>>().join(", ")
    };
    let (sparse, dense) = (wins(model, dense), wins(dense, model));
    match (sparse.is_empty(), dense.is_empty()) {
        (true, true) => format!("Dense {name} takes the same."),
        (false, true) => format!("Sparse wins against dense {name} on {sparse}."),
        (true, false) => format!("Dense {name} wins on {dense}."),
        (false, false) => format!("Dense {name} wins on {dense}; sparse on {sparse}."),
    }
}

fn notes(on: &TargetCost) -> String {
    let mut lines = Vec::new();
    if let (Some(device), Some(fits)) = (&on.device, on.fits) {
        let Device { name, megahertz, note, .. } = device;
        let fits = if fits { "Fits" } else { "Does not fit" };
        let flash = bytes(on.model.bytes.flash_bytes() + on.startup_flash_bytes);
        let ram = bytes(on.model.bytes.ram_bytes());
        let (all_flash, all_ram) = (size(device.flash_bytes), size(device.ram_bytes));
        lines.push(format!(
            "{fits}: with start-up code {flash} of {all_flash} flash, {ram} of {all_ram} RAM."
        ));
        let [least, most] = on.assumed_cycles_per_instruction;
        lines.push(format!(
            "Times assume {megahertz} MHz, {least} to {most} cycles an instruction, and flash \
             without wait states; only the instructions are measured."
        ));
        if !note.is_empty() {
            lines.push(format!("{name}: {note}."));
        }
    }
    let top = "The program's own code and data come on top";
    let row = long(on.model.row_bytes);
    lines.push(format!("{top}, and {row} for an input row where it lies in RAM."));
    if on.ways.iter().any(|way| way.bytes.is_bound) {
        lines.push(
            "Figures with <= are upper bounds, the others measured, within 8 %, RAM within \
             24 bytes where that is more."
                .into(),
        );
    }
    if on.deploy == "straight" || on.deploy == "c" {
        lines.push("Instructions are those of the crate's kernels.".into());
    }
    if !on.has_float_unit && on.numbers == "floats" {
        lines.push(
            "There is no float unit: instructions depend on the numbers, and integers \
             (tamis quantize) are faster."
                .into(),
        );
    }
    lines.join("\n")
}
