//! `tamis run`

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use clap::Args;
use indicatif::HumanDuration;
use serde::Serialize;

use super::common::Common;
use super::console::{self, count};
use super::parse::{self, DeviceName, limit_above_zero};
use super::train::device::no_adapter;
use super::{interrupt, progress};
use crate::lab::experiment::environment::{COMMIT_VARIABLE, commit};
use crate::lab::experiment::record::Status;
use crate::lab::experiment::runner::{self, RunOptions, Summary};
use crate::lab::experiment::{
    Cell, Choice, Place, Record, Shard, Spec, Store, figures, problem, spec,
};
use crate::operator::Device;
use crate::train::dense::DensePlace;
use crate::{Error, Result};

/// Run an experiment: every figure of the paper, the table of its runtimes, checks of its theory,
/// the tables of docs/results, or a spec file of your own.
///
/// Every cell of the grid runs in a process of its own and leaves one small file in the folder of
/// the results. Where the folder has results of the same spec already, the run resumes with what is
/// missing; killed at any point, it loses the cells on their way. Seeds are those of the spec.
#[derive(Debug, Args)]
#[command(after_help = "\
Experiments: figure-1-left, figure-1-right, figure-2-left, figure-2-right, figure-3-left,
  figure-3-right, figure-4, figure-5, runtimes, references, equal-time,
  theory-assumption, theory-curvature, theory-coverage, theory-convergence, theory-sensing,
  sketch-lemmas, sketch-magnitudes, sketch-masks, prob-table-2, prob-table-3, prob-exponents, prob-lemmas,
  prob-covertype, greedy-figure-1, greedy-guarantee, greedy-noise, greedy-start,
  recovery, lm-recipe, frontier, lm-vector, two-layers, paper-recipe, images, binary, multiclass, memory
Examples:
  tamis run figure-3-right --profile smoke -o smoke
  tamis run figure-3-left --profile reduced --data-dir data -o results/figure-3-left --jobs 2
  tamis run theory-convergence --profile reduced -o results/theory-convergence
  tamis run figure-1-left --profile paper --dry-run
  tamis run figure-1-left --profile paper -o results/figure-1-left --cell 3/100
  tamis run figure-1-left --profile paper -o results/figure-1-left --methods paper,recipe
  tamis report results/figure-3-left -o report")]
pub(super) struct Run {
    /// The name of an experiment, or a file SPEC.toml
    #[arg(value_name = "NAME|SPEC.toml")]
    experiment: String,
    /// smoke: seconds, without any files; reduced: minutes to hours on two cores; paper: the full grid
    /// [default: paper]
    #[arg(long, value_name = "PROFILE", value_parser = crate::lab::experiment::spec::PROFILES)]
    profile: Option<String>,
    /// The folder of the results
    #[arg(short, long, value_name = "DIR", required_unless_present = "dry_run")]
    output: Option<PathBuf>,
    /// Cells to run at once; --threads are divided among them
    #[arg(long, value_name = "J", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: u16,
    /// Say what would be run, and run nothing
    #[arg(long)]
    dry_run: bool,
    /// Run the cells of one of N machines, I from 1 to N; or those of these names, in this process
    #[arg(long, value_name = "I/N|NAME,…")]
    cell: Option<String>,
    /// Run the cells of these methods alone, such as paper,recipe
    #[arg(long, value_name = "METHOD,…", value_delimiter = ',')]
    methods: Vec<String>,
    /// Run the cells of at most so many neurons a layer alone
    #[arg(long, value_name = "M")]
    most_neurons: Option<usize>,
    /// Seconds that a cell may take; one that takes longer is recorded as such
    #[arg(long, value_name = "SECONDS", value_parser = parse::number)]
    time_limit: Option<f64>,
    /// Run cells again that failed, crashed or took too long
    #[arg(long)]
    retry: bool,
    /// Where the folder has results of the same experiment with other settings, or of other code:
    /// keep the cells of which both are the same, remove the others, and go on
    #[arg(long)]
    update: bool,
    /// The folder with mnist/ and cifar/ [default: that of the variable `TAMIS_DATA`]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Where networks of one hidden layer are trained by recipes of sparse weights: cpu or gpu; all
    /// else is on the CPU [default: cpu]
    #[arg(long, value_name = "DEVICE", value_enum, hide_possible_values = true)]
    device: Option<DeviceName>,
    /// The GPU, by its name or a part of it [default: the first one]
    #[arg(long, value_name = "NAME", requires = "device")]
    adapter: Option<String>,
    /// Take drawn digits in place of MNIST and CIFAR-10, which needs no files
    #[arg(long)]
    digits: bool,
}

#[derive(Serialize)]
struct Object<'a> {
    experiment: &'a str,
    profile: &'a str,
    spec: String,
    folder: String,
    #[serde(flatten)]
    summary: Summary,
}

#[derive(Serialize)]
struct Plan<'a> {
    experiment: &'a str,
    profile: &'a str,
    spec: String,
    /// Minutes of the whole grid where they were measured, on two cores.
    minutes: Option<f64>,
    cells: usize,
    before: usize,
    missing: Vec<String>,
    missing_files: Vec<String>,
}

/// Where cells are trained, by what they train.
#[derive(Default)]
struct Devices {
    sparse: Device,
    dense: DensePlace,
}

impl Run {
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        runner::watch_parent();
        let mut spec = figures::load(&self.experiment, self.profile.as_deref())?;
        if self.digits {
            spec = spec.with_digits();
        }
        let options = self.options(&spec, common)?;
        let has_names = self.cell.is_some() && options.choice.shard.is_none();
        match (&self.output, &self.cell) {
            _ if self.dry_run => {
                self.devices()?;
                self.plan(&spec, &options, common)
            }
            (Some(output), Some(names)) if has_names => {
                let on = self.devices()?;
                let cells = named(&spec, names)?;
                self.here(&Store::open(output, &spec)?, cells, &on, common)
            }
            (Some(output), _) => {
                // Before anything is run where there is no GPU.
                self.devices()?;
                if !output.join("folder.json").exists() {
                    // Before there is a folder for nothing.
                    let cells: Vec<Cell> = options.choice.trainings(&spec).flatten().collect();
                    runner::check_files(&spec, &cells, self.data_dir().as_deref())?;
                }
                let (store, removed) = match self.update {
                    true => Store::update(output, &spec)?,
                    false => (Store::open(output, &spec)?, 0),
                };
                if removed > 0 {
                    common
                        .say(format_args!("Removed {removed} cells of other settings or code."))?;
                }
                if !common.quiet && self.cell.is_none() {
                    spec.notes().into_iter().for_each(|note| console::say_note(Some(note)));
                }
                self.all(&store, &options, common)
            }
            // The parser of the flags asks for it.
            (None, _) => {
                Err(Error::new("no folder for the results").expected("-o DIR").help("name one"))
            }
        }
    }

    fn options(&self, spec: &Spec, common: &Common) -> Result<RunOptions> {
        let time_limit = limit_above_zero("--time-limit", self.time_limit)?.map(parse::duration);
        let jobs = usize::from(self.jobs);
        let threads = (threads(common) / jobs).max(1);
        Ok(RunOptions { jobs, threads, time_limit, choice: self.choice(spec)?, retry: self.retry })
    }

    fn choice(&self, spec: &Spec) -> Result<Choice> {
        let shard = self.cell.as_deref().map_or(Ok(None), Shard::parse)?;
        let most_neurons = self.most_neurons;
        if self.cell.is_some()
            && shard.is_none()
            && (most_neurons.is_some() || !self.methods.is_empty())
        {
            return Err(Error::usage("cells that are named are chosen already")
                .expected("--cell I/N, or no --methods and --most-neurons")
                .got(format_args!("--cell {}", self.cell.as_deref().unwrap_or_default()))
                .help("leave out one or the other"));
        }
        let all: BTreeSet<_> =
            spec.part.iter().flat_map(|part| part.methods.iter().copied()).collect();
        let method = |name: &String| {
            all.iter().find(|method| method.name() == name).copied().ok_or_else(|| {
                let names: Vec<&str> = all.iter().map(|method| method.name()).collect();
                Error::usage("--methods names one that the spec has not")
                    .expected(format_args!("some of {}", names.join(", ")))
                    .got(format_args!("{name:?}"))
                    .help("correct the name")
            })
        };
        let methods = self.methods.iter().map(method).collect::<Result<Vec<_>>>()?;
        // A share may be empty, what is shared out may not.
        let whole = Choice { shard: None, methods, most_neurons };
        if whole.trainings(spec).next().is_none() {
            return Err(Error::usage("no cell of the spec has so few neurons")
                .expected("--most-neurons of some cell")
                .got(most_neurons.unwrap_or_default())
                .help("--dry-run --json lists the names of all cells"));
        }
        Ok(Choice { shard, ..whole })
    }

    fn devices(&self) -> Result<Devices> {
        match self.device {
            None | Some(DeviceName::Cpu) => match &self.adapter {
                Some(adapter) => Err(no_adapter(adapter)),
                None => Ok(Devices::default()),
            },
            Some(DeviceName::Gpu) => {
                let name = self.adapter.as_deref();
                let dense = DensePlace::has_gpu().then(|| DensePlace::gpu(name)).transpose()?;
                Ok(Devices { sparse: Device::gpu(name)?, dense: dense.unwrap_or_default() })
            }
            Some(DeviceName::Auto) => Err(Error::usage("cells are all trained on one device")
                .expected("--device cpu or gpu")
                .got("auto")
                .help("pass --device gpu where there is one (tamis devices lists them)")),
        }
    }

    fn data_dir(&self) -> Option<PathBuf> {
        let variable =
            || std::env::var_os(problem::FOLDER_VARIABLE).filter(|value| !value.is_empty());
        self.data_dir.clone().or_else(|| variable().map(PathBuf::from))
    }

    /// Runs what is missing.
    fn all(&self, store: &Store, options: &RunOptions, common: &Common) -> Result<()> {
        let data = self.data_dir();
        store.prepare()?;
        let (todo, _) = runner::missing(store, options)?;
        let todo = todo.concat();
        runner::check_files(&store.spec, &todo, data.as_deref())?;
        let program = std::env::current_exe()
            .map_err(|error| Error::new("cannot find the program that is running").source(error))?;
        let commit = commit().unwrap_or_default();
        let spec = store.path.join("spec.toml");
        let command = |cells: &[Cell]| {
            let names = cells.iter().map(Cell::id).collect::<Vec<_>>().join(",");
            let mut command = Command::new(&program);
            command.arg("run").arg(&spec).arg("-o").arg(&store.path);
            command.args(["--quiet", "--cell", &names]);
            command.args(["--threads", &options.threads.to_string()]).env(COMMIT_VARIABLE, &commit);
            if let Some(data) = &data {
                command.arg("--data-dir").arg(data);
            }
            if self.device == Some(DeviceName::Gpu) {
                command.args(["--device", "gpu"]);
                command.args(self.adapter.iter().flat_map(|name| ["--adapter", name]));
            }
            command
        };
        let template = "  {bar:12} {pos}/{len}, {elapsed} {wide_msg}";
        let bar = progress::line(common, Some(todo.len() as u64), template);
        bar.enable_steady_tick(Duration::from_millis(500));
        let failure = Mutex::new(None);
        let observe = |record: &Record| {
            if record.status == Status::Failed
                && let Ok(mut failure) = failure.lock()
            {
                failure.get_or_insert_with(|| {
                    format!("{}: {}", record.id, record.reason.as_deref().unwrap_or("no reason"))
                });
            }
            bar.inc(1);
            let left = HumanDuration(bar.eta());
            bar.set_message(format!("{left:#} left, {} {}", record.id, record.status.name()));
        };
        let summary = interrupt::training(|| {
            runner::run(store, options, command, interrupt::stop(), observe)
        });
        bar.finish_and_clear();
        let summary = summary?;
        let Spec { name: experiment, resolved: profile, .. } = &store.spec;
        let (spec, folder) = (store.spec.hash(), store.path.display().to_string());
        let object = Object { experiment, profile, spec, folder, summary };
        common.result(&object, || self::summary(&object))?;
        match failure.into_inner() {
            Ok(Some(failure)) if object.summary.done == 0 => {
                Err(Error::new("no cell has a result")
                    .expected("a result of some cell")
                    .got(failure)
                    .help("change the spec; results.jsonl has the reason of each cell"))
            }
            _ => Ok(()),
        }
    }

    /// Runs cells in this process.
    fn here(&self, store: &Store, cells: Vec<Cell>, on: &Devices, common: &Common) -> Result<()> {
        let data = self.data_dir();
        let on = Place { device: &on.sparse, dense: &on.dense, threads: threads(common) };
        let run = |cells: Vec<Cell>| {
            runner::run_here(store, &cells, data.as_deref(), on, interrupt::stop())
        };
        let trainings = store.spec.together(cells).into_iter();
        let records = interrupt::training(|| trainings.map(run).collect::<Result<Vec<_>>>())?;
        records.iter().flatten().try_for_each(|record| {
            common.result(record, || {
                let reason = record.reason.iter().map(|reason| format!(": {reason}"));
                format!("{} {}{}", record.id, record.status.name(), reason.collect::<String>())
            })
        })
    }

    fn plan(&self, spec: &Spec, options: &RunOptions, common: &Common) -> Result<()> {
        let mut cells: Vec<Cell> = match &self.cell {
            Some(names) if options.choice.shard.is_none() => named(spec, names)?,
            _ => options.choice.trainings(spec).flatten().collect(),
        };
        let mut before = 0;
        let (planned, all) = (cells.len(), spec.cells().len());
        let output = self.output.as_deref();
        if let Some(output) = output.filter(|output| output.join("folder.json").exists()) {
            let store = Store::open(output, spec)?;
            store.prepare()?;
            let todo = runner::missing(&store, options)?.0.concat();
            cells.retain(|cell| todo.contains(cell));
            before = planned - cells.len();
        }
        let plan = Plan {
            experiment: &spec.name,
            profile: &spec.resolved,
            spec: spec.hash(),
            minutes: spec.minutes.filter(|_| planned == all),
            cells: planned,
            before,
            missing: cells.iter().map(Cell::id).collect(),
            missing_files: missing_files(spec, self.data_dir().as_deref()),
        };
        common.result(&plan, || plan_text(spec, &plan, &cells))
    }
}

/// Threads that are asked for, else one per core.
fn threads(common: &Common) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    if common.threads() > 0 { common.threads() } else { cores() }
}

/// The cells of names with commas between them.
fn named(spec: &Spec, names: &str) -> Result<Vec<Cell>> {
    let mut cells: Vec<Cell> = Vec::new();
    for name in names.split(',') {
        let cell = spec.cell(name.trim())?;
        if !cells.contains(&cell) {
            cells.push(cell);
        }
    }
    Ok(cells)
}

fn missing_files(spec: &Spec, folder: Option<&Path>) -> Vec<String> {
    let files: BTreeSet<String> = spec.part.iter().flat_map(problem::files_of).collect();
    let is_missing = |name: &String| folder.is_none_or(|folder| !folder.join(name).exists());
    files.into_iter().filter(is_missing).collect()
}

fn plan_text(spec: &Spec, plan: &Plan<'_>, cells: &[Cell]) -> String {
    let row = |part: &spec::Part| {
        let own = cells.iter().filter(|cell| cell.part == part.name).count();
        let methods: Vec<&str> = part.methods.iter().map(|method| method.name()).collect();
        let [sizes, seeds, own] = [part.sizes(), part.seeds.len(), own].map(count);
        vec![part.name.clone(), sizes, seeds, own, methods.join(", ")]
    };
    let heading = ["part", "sizes", "seeds", "cells to run", "methods"];
    let mut lines = vec![
        format!("{}, profile {}, {}", spec.title, spec.resolved, spec.source),
        console::table(&heading, spec.part.iter().map(row)),
        format!("  {} cells, {} of them done", count(plan.cells), count(plan.before)),
    ];
    let minutes = plan.minutes;
    lines.extend(minutes.map(|n| format!("  about {n:.0} minutes in all on two cores")));
    if !plan.missing_files.is_empty() {
        let files = plan.missing_files.join(", ");
        lines.push(format!(
            "  data that are not there: {files}; --data-dir names their folder, --digits goes \
             without"
        ));
    }
    lines.join("\n")
}

fn summary(object: &Object<'_>) -> String {
    let s = &object.summary;
    let ended = if s.stopped { "Interrupted" } else { "Done" };
    let title =
        format!("{ended}: {}, profile {}, in {}", object.experiment, object.profile, object.folder);
    let [cells, before, ran] = [s.cells, s.before, s.ran].map(count);
    let mut states = vec![format!("{} with a result", count(s.done))];
    let others = [
        (s.skipped, "skipped"),
        (s.failed, "failed"),
        (s.timeout, "too long"),
        (s.crashed, "crashed"),
    ];
    let others = others.into_iter().filter(|(n, _)| *n > 0);
    states.extend(others.map(|(n, what)| format!("{} {what}", count(n))));
    let facts = [
        ("cells", format!("{cells}: {before} done before, {ran} now")),
        ("states", states.join(", ")),
        ("next", format!("tamis report {} -o report", object.folder)),
    ];
    console::facts(&title, &facts)
}
