//! `tamis train --recipe imp`: flags and summary of the dense baseline.

use std::path::PathBuf;

use clap::Args;

use super::console::{self, bytes, count};
use super::parse::{self, OptimiserName};
use super::progress::Bar;
use super::saved::{Object, accuracy_fact, peak_fact};
use super::train::{Train, first_given, save};
use super::{Common, Console, interrupt};
use crate::dense::{Head, Keep, Optimiser, Rates};
use crate::plot::sparkline;
use crate::run::{self, ImpReport, ImpSettings, Labels, Problem, Source, Task};
use crate::{Error, Result, file};

/// Flags of the dense baseline.
#[derive(Debug, Args)]
#[command(next_help_heading = "Dense baseline (recipe imp)")]
pub(super) struct ImpArgs {
    /// Part of the weights that each round prunes by magnitude [default: 0.1]
    #[arg(long, value_name = "PART", conflicts_with = "one_shot", value_parser = parse::number)]
    prune_part: Option<f64>,
    /// Prune to S weights in one round
    #[arg(long)]
    one_shot: bool,
    /// Set surviving weights back to those at the start of this epoch of the first training [default: 0, the initial ones]
    #[arg(long, value_name = "EPOCH", value_parser = parse::whole::<u32>)]
    rewind: Option<u32>,
    /// How a gradient becomes a step [default: adam]
    #[arg(long, value_enum)]
    optimiser: Option<OptimiserName>,
    /// Momentum of sgd [default: 0.9]
    #[arg(long, value_name = "PART", value_parser = parse::number)]
    momentum: Option<f64>,
    /// Weight decay [default: 0]
    #[arg(long, value_name = "DECAY", value_parser = parse::number)]
    weight_decay: Option<f64>,
    /// Epochs of a level, counted from 0, at which the rate falls [default: none]
    #[arg(long, value_name = "E,E2…", value_delimiter = ',', value_parser = parse::whole::<u32>)]
    rate_falls: Option<Vec<u32>>,
    /// What the rate is multiplied by when it falls [default: 0.1]
    #[arg(long, value_name = "FACTOR", value_parser = parse::number)]
    rate_factor: Option<f64>,
    /// The output is the sum of the last hidden neurons, as in the figures of the paper; for one output
    #[arg(long)]
    sum_output: bool,
    /// Take bytes as 0 to 255, as published, and do not bring them to the unit range for training
    #[arg(long)]
    raw_inputs: bool,
    /// Rows that are scored after every training
    #[arg(long, value_name = "F[,F2…]")]
    test_data: Option<PathBuf>,
    /// Labels of --test-data; without it they are in its column --target
    #[arg(long, value_name = "F[,F2…]", requires = "test_data")]
    test_labels: Option<PathBuf>,
    /// Keep mask and weights of every training in a file of their own in the folder of --checkpoint
    #[arg(long, requires = "checkpoint")]
    keep_levels: bool,
}

impl ImpArgs {
    /// The first flag that was given, if any.
    pub(super) fn given(&self) -> Option<&'static str> {
        first_given(&[
            (self.prune_part.is_some(), "--prune-part"),
            (self.one_shot, "--one-shot"),
            (self.rewind.is_some(), "--rewind"),
            (self.optimiser.is_some(), "--optimiser"),
            (self.momentum.is_some(), "--momentum"),
            (self.weight_decay.is_some(), "--weight-decay"),
            (self.rate_falls.is_some(), "--rate-falls"),
            (self.rate_factor.is_some(), "--rate-factor"),
            (self.sum_output, "--sum-output"),
            (self.raw_inputs, "--raw-inputs"),
            (self.test_data.is_some(), "--test-data"),
            (self.keep_levels, "--keep-levels"),
        ])
    }

    fn optimiser(&self) -> Result<Optimiser> {
        match self.optimiser.unwrap_or(OptimiserName::Adam) {
            OptimiserName::Adam if self.momentum.is_some() => Err(Error::new("adam has no momentum to set")
                .expected("--momentum with --optimiser sgd")
                .got("--optimiser adam")
                .help("leave --momentum out, or choose --optimiser sgd")),
            OptimiserName::Adam => Ok(Optimiser::Adam),
            OptimiserName::Sgd => Ok(Optimiser::Sgd { momentum: self.momentum.unwrap_or(0.9) as f32 }),
        }
    }

    /// The test rows: from files of their own, chosen as those to train on but for the occurrences.
    fn test(&self, train: &Source, task: Task) -> Result<Option<Problem>> {
        let Some(data) = &self.test_data else { return Ok(None) };
        let labels = match (&self.test_labels, &train.labels) {
            (Some(path), _) => Labels::File(path.clone()),
            (None, Labels::Column(name)) => Labels::Column(name.clone()),
            (None, Labels::File(_)) => {
                return Err(Error::new("the test data have no labels")
                    .at(data)
                    .expected("--test-labels FILE, as --labels is a file")
                    .got("no --test-labels")
                    .help("name the file of their labels"));
            }
        };
        let source = Source { data: data.clone(), labels, keep: train.keep.clone(), rows_per_label: None };
        source.load(Some(task)).map(Some)
    }
}

/// Trains the dense network and prunes it.
pub(super) fn run(train: &Train, task: Task, common: &Common, console: &Console) -> Result<()> {
    let settings = settings(train, common)?;
    let args = &train.imp;
    file::check(&train.output)?;
    let inputs = || train.source.inputs().chain(args.test_data.as_deref()).chain(args.test_labels.as_deref());
    file::check_distinct(&train.output, inputs())?;
    let source = train.source.source();
    let problem = source.load_to_learn(task)?;
    let test = args.test(&source, task)?;
    let bar = Bar::new(console);
    let outcome = interrupt::training(|| {
        run::imp(&problem, test.as_ref(), &settings, interrupt::stop(), |progress| {
            let count = |epochs: u64| u32::try_from(epochs).unwrap_or(u32::MAX);
            bar.show(count(progress.epoch), count(progress.epochs), progress.loss as f32);
            true
        })
    });
    bar.clear();
    let outcome = outcome?;
    save(&train.output, &outcome.model)?;
    let object = Object::new(&train.output, &outcome.model, &outcome.report);
    console.result(&object, || summary(&object))
}

fn settings(train: &Train, common: &Common) -> Result<ImpSettings> {
    let args = &train.imp;
    if let Some(flag) = train.memory_given() {
        return Err(Error::new("dense training cannot be fitted to a memory budget")
            .expected(format_args!("no {flag} with --recipe imp"))
            .got(flag)
            .help(format!("leave {flag} out, or choose another recipe")));
    }
    let usual = ImpSettings::new(&train.hidden, train.size());
    let optimiser = args.optimiser()?;
    let rates = Rates {
        falls: args.rate_falls.clone().unwrap_or_default(),
        factor: args.rate_factor.unwrap_or(0.1) as f32,
        decay: args.weight_decay.unwrap_or(0.0) as f32,
        ..Rates::constant(train.passes.rate.map_or(optimiser.usual_rate(), |rate| rate as f32))
    };
    let kept = &train.kept;
    let keep =
        kept.checkpoint.clone().map(|folder| Keep { folder, resume: kept.resume, levels: args.keep_levels });
    Ok(ImpSettings {
        head: if args.sum_output { Head::Sum } else { Head::Weights },
        epochs: train.passes.epochs.unwrap_or(usual.epochs),
        batch: train.passes.batch.unwrap_or(usual.batch),
        optimiser,
        rates: Some(rates),
        part: if args.one_shot { 1.0 } else { args.prune_part.unwrap_or(usual.part) },
        rewind: args.rewind.unwrap_or(usual.rewind),
        raw: args.raw_inputs,
        seed: common.seed,
        keep,
        threads: common.threads(),
        ..usual
    })
}

fn summary(object: &Object<'_, ImpReport>) -> String {
    let r = object.report;
    let neurons = r.live.iter().zip(&r.hidden).map(|(live, all)| format!("{live} of {all}"));
    let losses: Vec<f32> = r.levels.iter().map(|level| level.loss.log10() as f32).collect();
    let name = if r.task == Task::Multiclass { "mean cross-entropy" } else { "mean squared error" };
    let mut rows = vec![
        (
            "nonzeros",
            format!(
                "{} ({} of {} weights)",
                count(r.nnz as u64),
                console::percent(r.nnz as f64 / r.dense_nnz as f64),
                count(r.dense_nnz as u64)
            ),
        ),
        ("neurons", format!("{} count", neurons.collect::<Vec<_>>().join(", "))),
        ("loss", format!("{:.4e} {name}; trained level by level {}", r.loss, sparkline(&losses))),
    ];
    if r.task != Task::Multiclass {
        rows.push(console::psnr_fact(r.psnr_db, r.zero_psnr_db));
    }
    rows.extend(r.accuracy.map(accuracy_fact));
    if let Some(level) = r.levels.last().filter(|_| !r.stopped) {
        let accuracy = level.test_accuracy.map(|part| format!(", {} right", console::percent(part)));
        let psnr = level.test_psnr_db.map(|db| format!(", {}", console::decibel(Some(db))));
        rows.extend(level.test_loss.map(|loss| {
            let [psnr, accuracy] = [psnr, accuracy].map(Option::unwrap_or_default);
            ("test", format!("{loss:.4e} {name}{psnr}{accuracy}"))
        }));
    }
    rows.extend([
        (
            "time",
            format!(
                "{:.3} s, {} rounds of pruning, {} epochs each training, {} steps, {} threads",
                r.seconds,
                r.rounds,
                r.epochs,
                count(r.steps),
                r.threads
            ),
        ),
        (
            "memory",
            format!(
                "data {}, dense training {} (here {} with tiles){}",
                bytes(r.data_bytes),
                bytes(r.dense_bytes),
                bytes(r.state_bytes + r.workspace_bytes),
                peak_fact(r.peak_rss_bytes)
            ),
        ),
    ]);
    console::facts(&object.title(r.stopped), &rows)
}
