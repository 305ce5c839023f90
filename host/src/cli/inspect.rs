//! `tamis inspect`

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::console::Console;
use super::console::{self, bytes, count, percent};
use super::parse;
use crate::Result;
use crate::data::Task;
use crate::model::cost::Way;
use crate::model::{
    Bytes, Limited, ModelCost, ModelFile, Needs, PARTS, Part, Score, Target, TargetCost,
};

/// Show what a model holds and costs: flash, RAM, operations and instructions on a part, against
/// dense networks in its place.
///
/// Bytes of the model are exact. Code, stack and instructions are sums of measured ones, for
/// firmware at optimisation level 3; those with <= are upper bounds. Counted are instructions, not
/// cycles.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis inspect model.tamis
  tamis inspect small.tamis --target nRF52840
  tamis inspect small.tamis --target cortex-m0 --fail-above ram=16K,flash=32K,instructions=50000
  tamis inspect small.tamis --target cortex-m0 --deploy embedded --fail-above flash=8K
  tamis inspect --targets")]
pub(super) struct Inspect {
    /// The model
    #[arg(value_name = "M.tamis", required_unless_present = "targets")]
    model: Option<PathBuf>,
    /// The part, or the kind of processor, that it is for; a part must have room for it [default:
    /// all kinds of processors]
    #[arg(long, value_name = "PART", value_parser = parse::target)]
    target: Option<Target>,
    /// How the program has the model; what is said of the target is of that
    #[arg(long, value_name = "WAY", value_enum, default_value_t = Deploy::Auto)]
    deploy: Deploy,
    /// Exit with code 3 if the model takes more on the target: flash, ram and stack in bytes,
    /// instructions of a prediction; K and M are 1024 and 1024² bytes, or 1000 and 1000²
    /// instructions
    #[arg(long, value_name = "WHAT=N,…", value_delimiter = ',', requires = "target", value_parser = parse::limit)]
    fail_above: Vec<(Limited, u64)>,
    /// List the targets
    #[arg(long, conflicts_with_all = ["model", "target", "deploy", "fail_above"])]
    targets: bool,
}

/// `--deploy`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Deploy {
    /// Whichever takes the least flash
    Auto,
    /// The file, read in place when the program starts
    File,
    /// The file, read by the compiler
    Embedded,
    /// Tables of Rust: tamis export --format rust
    Rust,
    /// Code without tables: tamis export --format rust --straight-line
    Straight,
    /// Tables of C: tamis export --format c
    C,
}

impl Deploy {
    /// The way; none where the least flash decides.
    const fn way(self) -> Option<Way> {
        match self {
            Self::Auto => None,
            Self::File => Some(Way::File),
            Self::Embedded => Some(Way::Embedded),
            Self::Rust => Some(Way::Rust),
            Self::Straight => Some(Way::Straight),
            Self::C => Some(Way::C),
        }
    }
}

/// What the verb prints.
#[derive(Debug, Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    cost: &'a ModelCost,
    /// On the target that was asked for.
    target: Option<&'a TargetCost>,
    /// On every kind of processor, where none was asked for.
    targets: &'a [TargetCost],
}

/// What `--targets` prints.
#[derive(Debug, Serialize)]
struct Known {
    cores: Vec<String>,
    parts: &'static [Part],
}

impl Inspect {
    pub(super) fn run(&self, console: &Console) -> Result<()> {
        let Some(path) = &self.model else { return list(console) };
        let model = ModelFile::load(path)?;
        let cost = model.cost()?;
        if let Some(target) = &self.target {
            let on = model.on(&cost, target, self.deploy.way(), &self.fail_above)?;
            let report = Report { cost: &cost, target: Some(&on), targets: &[] };
            console.result(&report, || on_target(&cost, &on))?;
            return on.check();
        }
        let kinds = Target::all().filter(|target| target.part().is_none());
        let targets = kinds
            .map(|target| model.on(&cost, &target, self.deploy.way(), &[]))
            .collect::<Result<Vec<_>>>()?;
        let report = Report { cost: &cost, target: None, targets: &targets };
        console.result(&report, || summary(&cost, &targets))
    }
}

fn list(console: &Console) -> Result<()> {
    let cores = Target::all().filter(|target| target.part().is_none()).map(|target| target.name());
    let known = Known { cores: cores.collect(), parts: PARTS };
    console.result(&known, || {
        let heading = ["part", "processor", "prices of", "flash", "RAM", "clock", ""];
        let mut rows = vec![heading.map(String::from).to_vec()];
        rows.extend(PARTS.iter().map(|part| {
            vec![
                part.name.into(),
                part.processor.into(),
                part.core.name().to_lowercase(),
                size(part.flash_bytes),
                size(part.ram_bytes),
                format!("{} MHz", part.megahertz),
                part.note.into(),
            ]
        }));
        format!("Kinds of processors: {}\n\n{}", known.cores.join(", "), console::table(&rows))
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
    let asked: Vec<_> = cost.hidden.iter().map(|&m| count(m as u64)).collect();
    format!(
        "{}: {}, {}, {} inputs, {} hidden, {} output{}, checksum {}",
        cost.model,
        bytes(cost.file_bytes as u64),
        task(cost),
        count(cost.inputs as u64),
        asked.join(" and "),
        cost.outputs,
        if cost.outputs == 1 { "" } else { "s" },
        cost.crc32
    )
}

fn summary(cost: &ModelCost, targets: &[TargetCost]) -> String {
    let heading =
        ["layer", "nonzeros", "flash", "RAM", "operations", "dense flash", "dense operations"];
    let mut rows = vec![heading.map(String::from).to_vec()];
    for (at, layer) in cost.layers.iter().enumerate() {
        let shape = format!("{} {} {}→{}", at + 1, layer.kind, layer.inputs, layer.outputs);
        rows.push(row(shape, &layer.cost));
    }
    rows.push(row("all of the file".into(), &cost.total));
    let heading =
        ["processor", "deployed as", "flash", "RAM", "instructions", "dense int8", "dense f32"];
    let mut kinds = vec![heading.map(String::from).to_vec()];
    kinds.extend(targets.iter().map(|on| {
        vec![
            on.target.clone(),
            on.deploy.into(),
            marked(on.model.is_bound, long(on.model.flash_bytes)),
            marked(on.model.is_bound, long(on.model.ram_bytes)),
            marked(on.model.instructions_are_bound, count(on.model.instructions)),
            count(on.dense_int8.instructions),
            count(on.dense_f32.instructions),
        ]
    }));
    format!(
        "{}\n\n{}\n\n{}\n\n{}\n\n--target shows one of them, or a part (--targets), in full.",
        title(cost),
        console::table(&rows),
        verdict(&cost.total),
        console::table(&kinds)
    )
}

/// What the model was trained for.
fn task(cost: &ModelCost) -> String {
    match (cost.task, cost.threshold) {
        (None, _) => "of no stated task".into(),
        (Some(Task::Regression), _) => "for regression".into(),
        (Some(Task::Binary), threshold) => {
            format!("for two classes (1 from {} on)", threshold.unwrap_or(Score::THRESHOLD))
        }
        (Some(Task::Multiclass), _) => format!("for {} classes", count(cost.outputs as u64)),
    }
}

/// Upper bounds.
fn marked(is_bound: bool, text: String) -> String {
    if is_bound { format!("<= {text}") } else { text }
}

fn long(n: usize) -> String {
    format!("{} B", count(n as u64))
}

fn row(name: String, cost: &Bytes) -> Vec<String> {
    vec![
        name,
        count(cost.nnz as u64),
        long(cost.flash_bytes),
        long(cost.ram_bytes),
        count(cost.macs as u64),
        long(cost.dense_flash_bytes),
        count(cost.dense_macs as u64),
    ]
}

/// Which form is the smaller one.
fn verdict(total: &Bytes) -> String {
    let ratio = |a: usize, b: usize| a as f64 / b.max(1) as f64;
    if total.flash_bytes < total.dense_flash_bytes {
        return format!(
            "Sparse wins: {:.1} times less flash and {:.1} times fewer operations than dense f32.",
            ratio(total.dense_flash_bytes, total.flash_bytes),
            ratio(total.dense_macs, total.macs)
        );
    }
    format!(
        "Dense wins on flash here: sparse takes {:.1} times the bytes of dense f32 ({:.1} times fewer operations).",
        ratio(total.flash_bytes, total.dense_flash_bytes),
        ratio(total.dense_macs, total.macs)
    )
}

fn on_target(cost: &ModelCost, on: &TargetCost) -> String {
    let place = match &on.part {
        Some(part) => format!(
            "{} ({}, {} MHz, {} flash, {} RAM)",
            part.name,
            part.processor,
            part.megahertz,
            size(part.flash_bytes),
            size(part.ram_bytes)
        ),
        None => on.core.to_owned(),
    };
    let mut parts =
        vec![format!("{}\non {place}", title(cost)), layers(cost, on), ways(on), networks(on)];
    parts.push(
        [("int8", &on.dense_int8), ("f32", &on.dense_f32)]
            .map(|(name, dense)| against(name, dense, &on.model))
            .join("\n"),
    );
    parts.push(notes(on));
    parts.join("\n\n")
}

fn layers(cost: &ModelCost, on: &TargetCost) -> String {
    let heading =
        ["layer", "nonzeros", "density", "flash", "RAM", "operations", "instructions", "time"];
    let mut rows = vec![heading.map(String::from).to_vec()];
    let time = |instructions| on.milliseconds(instructions).map_or_else(String::new, milliseconds);
    for (at, (layer, &instructions)) in cost.layers.iter().zip(&on.layer_instructions).enumerate() {
        let bytes = &layer.cost;
        rows.push(vec![
            format!("{} {} {}→{}", at + 1, layer.kind, layer.inputs, layer.outputs),
            count(bytes.nnz as u64),
            if bytes.nnz == 0 { String::new() } else { percent(layer.density) },
            long(bytes.flash_bytes),
            long(bytes.ram_bytes),
            count(bytes.macs as u64),
            count(instructions),
            time(instructions),
        ]);
    }
    let total = &cost.total;
    rows.push(vec![
        "all of the file".into(),
        count(total.nnz as u64),
        String::new(),
        long(total.flash_bytes),
        long(total.ram_bytes),
        count(total.macs as u64),
        count(on.model.instructions),
        time(on.model.instructions),
    ]);
    console::table(&rows)
}

/// From and to.
fn milliseconds([least, most]: [f64; 2]) -> String {
    match most {
        most if most < 0.1 => format!("{:.1}-{:.1} µs", 1000.0 * least, 1000.0 * most),
        most if most < 10.0 => format!("{least:.2}-{most:.2} ms"),
        _ => format!("{least:.0}-{most:.0} ms"),
    }
}

/// The ways side by side.
fn ways(on: &TargetCost) -> String {
    let heading = ["deployed as", "flash", "model", "code", "RAM", "scratch, output", "stack"];
    let mut rows = vec![heading.map(String::from).to_vec()];
    rows.extend(on.ways.iter().map(|way| {
        let name = match way.way {
            "file" => "file: include_model!",
            "embedded" => "embedded: embed_model!, embed_quantised!",
            "rust" => "rust: export --format rust",
            "straight" => "straight: export --format rust --straight-line",
            _ => "c: export --format c (GCC, -O2)",
        };
        let of = |bytes| marked(way.is_bound, long(bytes));
        vec![
            name.into(),
            of(way.flash_bytes),
            long(way.model_bytes),
            of(way.code_bytes),
            of(way.ram_bytes),
            long(way.scratch_bytes + way.output_bytes),
            of(way.stack_bytes),
        ]
    }));
    console::table(&rows)
}

fn networks(on: &TargetCost) -> String {
    let deployed = format!("deployed as {}", on.deploy);
    let heading = [
        deployed.as_str(),
        "flash",
        "model",
        "code",
        "RAM",
        "scratch, output",
        "stack",
        "instructions",
    ];
    let mut rows = vec![heading.map(String::from).to_vec()];
    let all =
        [("this model", &on.model), ("dense int8", &on.dense_int8), ("dense f32", &on.dense_f32)];
    rows.extend(all.map(|(name, needs)| {
        let of = |bytes| marked(needs.is_bound, long(bytes));
        vec![
            name.into(),
            of(needs.flash_bytes),
            long(needs.model_bytes),
            of(needs.code_bytes),
            of(needs.ram_bytes),
            long(needs.scratch_bytes + needs.output_bytes),
            of(needs.stack_bytes),
            marked(needs.instructions_are_bound, count(needs.instructions)),
        ]
    }));
    console::table(&rows)
}

/// Who takes less of what, in words.
fn against(name: &str, dense: &Needs, model: &Needs) -> String {
    let both = [
        ("flash", model.flash_bytes as u64, dense.flash_bytes as u64),
        ("bytes of the model", model.model_bytes as u64, dense.model_bytes as u64),
        ("RAM", model.ram_bytes as u64, dense.ram_bytes as u64),
        ("instructions", model.instructions, dense.instructions),
    ];
    let times = |more: u64, less: u64| match more as f64 / less as f64 {
        _ if less == 0 => "all of it".into(),
        ratio if ratio < 1.05 => "by less than a twentieth".into(),
        ratio => format!("{ratio:.1} times less"),
    };
    let (mut sparse_wins, mut dense_wins) = (Vec::new(), Vec::new());
    for (what, sparse, dense) in both {
        if sparse < dense {
            sparse_wins.push(format!("{what} ({})", times(dense, sparse)));
        } else if dense < sparse {
            dense_wins.push(format!("{what} ({})", times(sparse, dense)));
        }
    }
    match (sparse_wins.is_empty(), dense_wins.is_empty()) {
        (true, true) => format!("Dense {name} takes the same."),
        (false, true) => format!("Sparse wins against dense {name} on {}.", sparse_wins.join(", ")),
        (true, false) => format!("Dense {name} wins on {}.", dense_wins.join(", ")),
        (false, false) => {
            format!(
                "Dense {name} wins on {}; sparse on {}.",
                dense_wins.join(", "),
                sparse_wins.join(", ")
            )
        }
    }
}

fn notes(on: &TargetCost) -> String {
    let mut lines = Vec::new();
    if let (Some(part), Some(fits)) = (&on.part, on.fits) {
        let flash = on.model.flash_bytes + on.startup_flash_bytes;
        lines.push(format!(
            "{}: with start-up code {} of {} flash, {} of {} RAM.",
            if fits { "Fits" } else { "Does not fit" },
            bytes(flash as u64),
            size(part.flash_bytes),
            bytes(on.model.ram_bytes as u64),
            size(part.ram_bytes)
        ));
        let [least, most] = on.assumed_cycles_per_instruction;
        lines.push(format!(
            "Times assume {} MHz, {least} to {most} cycles an instruction, and flash without wait states; only the instructions are measured.",
            part.megahertz
        ));
        if !part.note.is_empty() {
            lines.push(format!("{}: {}.", part.name, part.note));
        }
    }
    lines.push(format!(
        "The program's own code and data come on top, and {} for an input row where it lies in RAM.",
        long(on.model.row_bytes)
    ));
    if on.ways.iter().any(|way| way.is_bound) {
        lines.push("Figures with <= are upper bounds, the others measured, within 8 %, RAM within 24 bytes where that is more.".into());
    }
    if on.deploy == "straight" || on.deploy == "c" {
        lines.push("Instructions are those of the crate's kernels.".into());
    }
    if !on.has_float_unit && on.model_has_floats() {
        lines.push("There is no float unit: instructions depend on the numbers, and integers (tamis quantize) are faster.".into());
    }
    lines.join("\n")
}
