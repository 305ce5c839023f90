//! `tamis mask`

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, ValueEnum};
use serde::Serialize;
use tamis::network::mask::allocate::Allocation;
use tamis::network::mask::initial::Initial;
use tamis::network::mask::schedule::Schedule;
use tamis::network::mask::select::Choice;

use super::common::Common;
use super::console::{bytes, count, facts, percent, say_error, say_note};
use super::parse::{self, DeviceName, Named, named};
use super::train::device::dense_place;
use super::{interrupt, progress};
use crate::base::file;
use crate::convert::named::Layout;
use crate::data::{DataFiles, Labels, Task};
use crate::mask::{
    self, InputSize, MaskOptions, MaskReport, Method, RandomData, RandomSize, RowsNeeded, Scope,
    ScoredRows, SourceNetwork, WeightLaw,
};
use crate::train::Budget;
use crate::train::mask::check_size;
use crate::{Error, Result};

const CHOICES: [Named<Choice>; 2] = [
    Named("threshold", Choice::Largest, "Those of the largest scores"),
    Named("sample", Choice::Sampled, "As many in each layer, drawn in proportion to the scores"),
];

const SCHEDULES: [Named<Schedule>; 3] = [
    Named("linear", Schedule::Linear, "The same number in every round"),
    Named("exponential", Schedule::Exponential, "The same fraction in every round"),
    Named("front-loaded", Schedule::FrontLoaded, "Large fractions first, for few rounds"),
];

const ALLOCATIONS: [Named<Allocation>; 2] = [
    Named("uniform", Allocation::Uniform, "The same density in every layer"),
    Named("erk", Allocation::ErdosRenyi, "By Erdős-Rényi: small layers are denser"),
];

/// Choose which weights of a network are kept, before it is trained.
///
/// The mask has exactly round(density × weights) weights. Weights come from a file, or from --seed:
/// then the dense network is never made for synflow, magnitude, random and erk, and a
/// microcontroller makes the same mask. tamis train --mask trains under it.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("network").required(true),
    group = ArgGroup::new("size").required(true),
    after_help = "\
Examples:
  tamis mask --layers 784,300,100,10 --method synflow --density 0.01 --seed 7 -o mask.npz
  tamis mask --weights w.npz --method synflow --rounds 100 --density 0.05 -o mask.npz
  tamis mask --weights w.npz --method snip --data X.npy --labels y.npy --task multiclass \\
    --density 0.05 -o mask.safetensors

Ctrl-C ends it at once: no mask is written."
)]
pub(super) struct MaskVerb {
    /// Widths from the inputs to the outputs; weights are drawn from --seed
    #[arg(long, value_name = "D,M…,C", value_delimiter = ',', group = "network",
          value_parser = parse::whole::<usize>)]
    layers: Option<Vec<usize>>,
    /// Initial weights: NPZ, safetensors or ONNX, arrays named as layers (fc1.weight, fc1.bias)
    #[arg(long, value_name = "FILE", group = "network")]
    weights: Option<PathBuf>,
    /// Which way weights lie in the file
    #[arg(long, value_enum, default_value_t = Layout::Auto, requires = "weights")]
    layout: Layout,
    /// The law of weights from --seed
    #[arg(long, value_enum, default_value_t = WeightLaw::He, conflicts_with = "weights")]
    init: WeightLaw,
    /// What a weight's score is
    #[arg(long, value_enum)]
    method: Method,
    /// Which weights are kept by their scores [default: threshold; sketch: sample]
    #[arg(long, value_name = "HOW", value_parser = named(CHOICES))]
    select: Option<Choice>,
    /// Weights that are kept, as a fraction of all
    #[arg(long, value_name = "P", value_parser = parse::number, group = "size")]
    density: Option<f64>,
    /// Weights that are kept
    #[arg(long, value_name = "K", value_parser = parse::whole::<usize>, group = "size")]
    nnz: Option<usize>,
    /// Rounds of pruning [default: 1; synflow: 100 on a file, 20 from a seed; imp: 10]
    #[arg(long, value_name = "R", value_parser = parse::whole::<u32>)]
    rounds: Option<u32>,
    /// How many weights each round leaves [default: exponential; synflow from a seed: front-loaded]
    #[arg(long, value_name = "HOW", value_parser = named(SCHEDULES))]
    schedule: Option<Schedule>,
    /// Among which weights the largest scores are looked for [default: global; random, erk, sketch:
    /// layer]
    #[arg(long, value_enum)]
    scope: Option<Scope>,
    /// How weights are shared out over the layers for --scope layer [default: uniform; erk, sketch:
    /// erk]
    #[arg(long, value_name = "HOW", value_parser = named(ALLOCATIONS))]
    allocation: Option<Allocation>,
    /// Weights that each layer keeps at least
    #[arg(long, value_name = "K", default_value_t = 0, value_parser = parse::whole::<usize>)]
    min_layer: usize,
    /// What flows into the network, for synflow
    #[arg(long, value_enum, default_value_t = InputSize::Ones)]
    input: InputSize,
    /// What logits are divided by, for grasp [default: 200, as published]
    #[arg(long, value_name = "T", value_parser = parse::number)]
    temperature: Option<f64>,
    /// Epochs of training in each round, for imp [default: 20]
    #[arg(long, value_name = "E", value_parser = parse::whole::<u32>)]
    epochs: Option<u32>,
    /// Rows that weights are scored on: idx, NPY, NPZ (FILE.npz#NAME) or CSV
    #[arg(long, value_name = "F")]
    data: Option<PathBuf>,
    /// Their labels, for snip, grasp and imp
    #[arg(long, value_name = "F", requires = "data")]
    labels: Option<PathBuf>,
    /// The labels' column of the data: its name, or its number from 1
    #[arg(long, value_name = "COLUMN", requires = "data", conflicts_with = "labels")]
    target: Option<String>,
    /// What the outputs stand for [default: multiclass; with one output binary]
    #[arg(long, value_enum)]
    task: Option<Task>,
    /// Random rows and labels in place of the data, with its mean and standard deviation
    #[arg(long, value_enum)]
    random_data: Option<RandomData>,
    /// The first N rows only [default: all; random data: 256]
    #[arg(long, value_name = "N", value_parser = parse::whole::<usize>)]
    rows: Option<usize>,
    /// Hold weights from a seed in memory all the same, for exact rounds
    #[arg(long, requires = "layers")]
    exact: bool,
    /// Write the weights that the seed means
    #[arg(long, value_name = "W.npz", requires = "layers")]
    export_weights: Option<PathBuf>,
    /// Fail if a layer collapses, in place of a warning
    #[arg(long)]
    strict: bool,
    /// Where scores on rows are computed: cpu, or gpu in the program of gpu/dense [default: cpu]
    #[arg(long, value_name = "DEVICE", value_enum, hide_possible_values = true)]
    device: Option<DeviceName>,
    /// The GPU, by its name or a part of it [default: the first one]
    #[arg(long, value_name = "NAME", requires = "device")]
    adapter: Option<String>,
    /// The mask to write: .npz, .safetensors or .tamis
    #[arg(short, long, value_name = "MASK")]
    output: PathBuf,
}

/// The object of `--json`.
#[derive(Serialize)]
struct Object<'a> {
    mask: String,
    #[serde(flatten)]
    report: &'a MaskReport,
}

impl MaskVerb {
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        self.check()?;
        let network = self.network(common)?;
        say_note(network.note());
        let options = self.options(common);
        let rows = self.scored_rows(&network, common)?;
        let bar = progress::line(common, None, "  {spinner} {wide_msg}");
        let rounds = |round: u32| bar.set_message(format!("round {round}"));
        let found = interrupt::unsaved(|| {
            common.on_pool(|| {
                mask::find(&network, &options, rows.as_ref(), interrupt::stop(), rounds)
            })
        });
        bar.finish_and_clear();
        let mask::ReportedMask { mask, report } = found??;
        self.check_paths(&report)?;
        interrupt::saving(|| {
            let weights = self.export_weights.as_ref();
            weights.map_or(Ok(()), |path| mask::export_weights(path, &network))?;
            mask::write(&self.output, &mask)
        })?;
        let object = Object { mask: self.output.display().to_string(), report: &report };
        common.result(&object, || self.summary(&report, &network.widths))
    }

    /// Refuses what no run could do, before any work.
    fn check(&self) -> Result<()> {
        let read = [&self.weights, &self.data, &self.labels];
        let read = || read.into_iter().filter_map(|path| path.as_deref());
        file::check(&self.output, mask::kind(&self.output)?, read())?;
        if let Some(path) = &self.export_weights {
            file::check(path, mask::weights_kind(path)?, read())?;
            if file::place(path) == file::place(&self.output) {
                return Err(Error::usage("the mask and the weights would be one file")
                    .at(path)
                    .help("choose another name for --export-weights"));
            }
        }
        let needs = self.method.needs();
        let has_rows = self.data.is_some() || self.random_data.is_some();
        let has_labels =
            self.labels.is_some() || self.target.is_some() || self.random_data.is_some();
        let name = self.method.name();
        if needs == RowsNeeded::Labelled && !has_labels
            || needs == RowsNeeded::Unlabelled && !has_rows
        {
            let expected = match needs {
                RowsNeeded::Labelled => "--data with --labels or --target, or --random-data normal",
                _ => "--data, or --random-data normal",
            };
            return Err(Error::usage(format!("method {name} scores weights on rows"))
                .mismatch(expected, if has_rows { "no labels" } else { "no rows" })
                .help("pass them, or choose --method synflow, which needs none"));
        }
        if self.input.needs_rows() && self.data.is_none() {
            return Err(Error::usage("sizes of the inputs come from data")
                .mismatch("--data with --input pixel-rms or pixel-sd", "no --data")
                .help("pass --data X.npy, or leave --input out"));
        }
        self.check_unused()
    }

    /// Refuses settings that would change nothing; of those that one line may have for all methods
    /// it says so.
    fn check_unused(&self) -> Result<()> {
        let is = |method| self.method == method;
        let (is_random, is_erk) = (is(Method::Random) || is(Method::Erk), is(Method::Erk));
        let is_by_layer = self.scope.map_or(is_random || is(Method::Sketch), |s| s == Scope::Layer);
        let has_rounds =
            self.rounds.map_or(is(Method::Synflow) || is(Method::Imp), |rounds| rounds != 1);
        let needs = self.method.needs();
        let has_labels = needs == RowsNeeded::Labelled;
        let has_rows = self.uses_rows();
        let is_drawn = self.random_data.is_some();
        let scored = "a method with scores: random and erk have none";
        let on_rows = "a method that uses rows, or --method synflow --input pixel-rms or pixel-sd";
        let refused = [
            (self.input != InputSize::Ones, is(Method::Synflow), "--input", "--method synflow"),
            (self.temperature.is_some(), is(Method::Grasp), "--temperature", "--method grasp"),
            (self.epochs.is_some(), is(Method::Imp), "--epochs", "--method imp"),
            (is_drawn, needs != RowsNeeded::None, "--random-data", "a method that uses rows"),
            (self.rows.is_some(), has_rows, "--rows", on_rows),
            (self.labels.is_some(), !is_drawn, "--labels", "--data, without --random-data"),
            (
                self.allocation.is_some(),
                !is_erk,
                "--allocation",
                "another --method: erk is --method random --allocation erk",
            ),
            (self.allocation.is_some(), is_by_layer, "--allocation", "--scope layer"),
            (self.exact, !is_random, "--exact", scored),
            (self.rounds.is_some(), !is_random, "--rounds", scored),
            (self.schedule.is_some(), !is_random, "--schedule", scored),
            (self.schedule.is_some(), has_rounds, "--schedule", "--rounds 2 or more"),
        ];
        let name = self.method.name();
        let wrong = refused.into_iter().find(|(is_given, is_used, ..)| *is_given && !is_used);
        if let Some((.., flag, with)) = wrong {
            return Err(Error::usage(format!("{flag} would change nothing"))
                .expected(format_args!("{flag} with {with}"))
                .got(format_args!("{flag} with --method {name}"))
                .help(format!("leave {flag} out")));
        }
        let noted = [
            (self.data.is_some(), has_rows, "--data"),
            (self.labels.is_some(), has_labels, "--labels"),
            (self.target.is_some(), has_rows, "--target"),
            (self.task.is_some(), has_labels, "--task"),
            (self.select.is_some(), !is_random, "--select"),
        ];
        for (.., flag) in noted.iter().filter(|(is_given, is_used, _)| *is_given && !is_used) {
            say_note(Some(format!("--method {name} does not use {flag}")));
        }
        Ok(())
    }

    fn uses_rows(&self) -> bool {
        let has_sizes = self.method == Method::Synflow && self.input.needs_rows();
        self.method.needs() != RowsNeeded::None || has_sizes
    }

    fn network(&self, common: &Common) -> Result<SourceNetwork> {
        match (&self.weights, &self.layers) {
            (Some(path), _) => SourceNetwork::from_file(path, None, self.layout),
            (None, layers) => {
                let initial = Initial { seed: common.seed, law: self.init.into() };
                SourceNetwork::from_seed(layers.as_deref().unwrap_or_default(), initial)
            }
        }
    }

    fn options(&self, common: &Common) -> MaskOptions {
        let size = match (self.density, self.nnz) {
            (Some(density), _) => Budget::Density(density),
            (None, nnz) => Budget::Nonzeros(nnz.unwrap_or(0)),
        };
        let default = MaskOptions::new(self.method, size);
        let by_draws =
            if self.method == Method::Sketch { Choice::Sampled } else { Choice::Largest };
        MaskOptions {
            choice: self.select.unwrap_or(by_draws),
            rounds: self.rounds,
            schedule: self.schedule,
            scope: self.scope,
            allocation: self.allocation,
            least: self.min_layer,
            input: self.input,
            temperature: self.temperature.map_or(default.temperature, |t| t as f32),
            epochs: self.epochs.unwrap_or(default.epochs),
            seed: common.seed,
            exact: self.exact,
            ..default
        }
    }

    /// The rows, as far as the method uses them.
    fn scored_rows(&self, network: &SourceNetwork, common: &Common) -> Result<Option<ScoredRows>> {
        let place = dense_place(self.device, self.adapter.as_deref())?;
        if self.device == Some(DeviceName::Auto) {
            let why = "scores of a mask take less time than a GPU takes to begin";
            say_note(Some(format!("--device auto takes cpu: {why}")));
        }
        Ok(self.rows_on_cpu(network, common)?.map(|rows| rows.on(place)))
    }

    fn rows_on_cpu(&self, network: &SourceNetwork, common: &Common) -> Result<Option<ScoredRows>> {
        let outputs = network.widths[network.widths.len() - 1];
        let default = if outputs == 1 { Task::Binary } else { Task::Multiclass };
        let task = self.task.unwrap_or(default);
        let fits = match task {
            Task::Binary => outputs == 1,
            Task::Multiclass => outputs > 1,
            Task::Regression => true,
        };
        if self.method.needs() == RowsNeeded::Labelled && !fits {
            return Err(Error::new("the network is not of this task")
                .expected("one output for --task binary, or one a class for --task multiclass")
                .got(format_args!("--task {} with {outputs} outputs", task.name()))
                .help("pass the right --task, or leave it out"));
        }
        if let Some(kind) = self.random_data {
            let like = self.data.as_deref().map(|data| self.unlabelled(data)).transpose()?;
            let rows = self.rows.unwrap_or(256);
            let size = RandomSize { rows, inputs: network.widths[0], outputs };
            return ScoredRows::random(kind, like.as_ref(), size, task, common.seed).map(Some);
        }
        let Some(data) = self.data.as_ref().filter(|_| self.uses_rows()) else { return Ok(None) };
        if self.method.needs() != RowsNeeded::Labelled {
            return self.unlabelled(data).map(Some);
        }
        let labels = match (&self.labels, &self.target) {
            (Some(path), _) => Labels::File(path.clone()),
            (None, target) => Labels::Column(target.clone().unwrap_or_default()),
        };
        let files = DataFiles::new(data.clone(), labels);
        ScoredRows::labelled(files.load_to_learn(Some(task))?.problem, self.rows).map(Some)
    }

    fn unlabelled(&self, data: &Path) -> Result<ScoredRows> {
        let samples = super::source::samples(data, self.target.as_deref())?;
        if samples.rows == 0 {
            return Err(Error::new("there are no rows").at(data).mismatch("1 or more rows", 0));
        }
        let rows = if self.random_data.is_some() { None } else { self.rows };
        ScoredRows::unlabelled(samples, rows).map_err(|error| error.at(data))
    }

    /// Warns of layers in which all paths end, or fails with --strict.
    fn check_paths(&self, report: &MaskReport) -> Result<()> {
        if report.collapsed.is_empty() {
            return Ok(());
        }
        let names = report.collapsed.join(", ");
        let dead: usize = report.layers.iter().map(|layer| layer.dead_weights).sum();
        let (dead, all) = (count(dead), count(report.kept));
        let what = format!("the mask collapses in {names}: {dead} of {all} weights lie on no path");
        let help =
            "keep more weights there with --min-layer, take more --rounds, or another --method";
        if self.strict {
            return Err(Error::new(what)
                .expected("weights on paths from inputs to outputs in every layer")
                .got(kept(report))
                .help(help));
        }
        say_error(format_args!("warning: {what} ({}); {help}", kept(report)));
        Ok(())
    }

    /// The flags of `tamis train` that give the same weights.
    fn source(&self, report: &MaskReport) -> String {
        match &self.weights {
            Some(path) if self.layout != Layout::Auto => {
                format!("--weights {} --layout {}", path.display(), flag_value(&self.layout))
            }
            Some(path) => format!("--weights {}", path.display()),
            None if self.init != WeightLaw::He => {
                format!("--seed {} --init {}", report.seed, flag_value(&self.init))
            }
            None => format!("--seed {}", report.seed),
        }
    }

    fn summary(&self, report: &MaskReport, widths: &[usize]) -> String {
        let MaskReport { kept, weights, method, select, rounds, .. } = report;
        let share = percent(*kept as f64 / *weights as f64);
        let plural = if *rounds == 1 { "round" } else { "rounds" };
        let mut how = format!("{}, {select}, {rounds} {plural}", method.name());
        if let Some(temperature) = report.temperature {
            how += &format!(", temperature {temperature}");
        }
        if report.rows > 0 {
            how += &format!(", on {} rows", count(report.rows));
        }
        let memory = format!(
            "{}{}",
            bytes(report.state_bytes),
            if report.memoryless { "; the dense network was never made" } else { "" }
        );
        let mut rows = vec![
            ("weights", format!("{} of {} ({share})", count(*kept), count(*weights))),
            ("method", how),
            ("memory", memory),
            ("time", format!("{:.2} s", report.seconds)),
        ];
        for layer in &report.layers {
            let text = format!(
                "{}: {} weights, {} live neurons, {} dead weights",
                layer.name,
                count(layer.kept),
                count(layer.live_neurons),
                count(layer.dead_weights)
            );
            rows.push(("layer", text));
        }
        let (mask, source) = (self.output.display(), self.source(report));
        let next = match check_size(widths) {
            Ok(()) => format!("tamis train --mask {mask} {source} --data …"),
            Err(_) => "tamis train takes no network of this size; other programs may".into(),
        };
        rows.push(("next", next));
        facts(&format!("Saved {}", self.output.display()), &rows)
    }
}

/// A value as its flag takes it.
fn flag_value(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn kept(report: &MaskReport) -> String {
    let layers = report.layers.iter();
    let texts: Vec<_> = layers.map(|layer| format!("{} {}", layer.name, layer.kept)).collect();
    format!("kept: {}", texts.join(", "))
}
