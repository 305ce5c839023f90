//! `tamis train`

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tamis::iht::{Params, Refine, Step};
use tamis::train::{Progress, Schedule, Trials};

use super::console::{self, bytes, count};
use super::parse::{self, EmptyName, Recipe, SignsName, TaskName};
use super::progress::Bar;
use super::source::SourceArgs;
use super::{Common, Console, interrupt};
use crate::plot::sparkline;
use crate::run::{self, Memory, Options, Report, Size};
use crate::{Error, Result, file};

/// Train a sparse network on your own data, to a model of at most S nonzero weights.
///
/// Ctrl-C ends the run within a step, saves the model that the steps so far have reached and exits with 130; before the
/// first step nothing is saved. During the trials the best start so far is run again first. A second Ctrl-C ends at once.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis train --data X.npy --labels y.npy --task regression --hidden 10 --nnz 50 -o model.tamis
  tamis train --data table.csv --target price --task regression --hidden 20 --density 0.1 --batch 1000 -o m.tamis
  tamis train --data train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz \\
      --keep-labels 0,1 --task binary --hidden 10 --nnz 100 --ram 512K -o zero-one.tamis")]
pub(super) struct Train {
    #[command(flatten)]
    source: SourceArgs,
    /// What the output stands for
    #[arg(long)]
    task: TaskName,
    /// Hidden neurons
    #[arg(long, value_name = "M", value_delimiter = ',', required = true, value_parser = parse::whole::<usize>)]
    hidden: Vec<usize>,
    /// Nonzero weights that the model may have
    #[arg(long, value_name = "S", required_unless_present = "density", conflicts_with = "density", value_parser = parse::whole::<usize>)]
    nnz: Option<usize>,
    /// The same as a part of all weights, above 0 and at most 1
    #[arg(long, value_name = "PART", value_parser = parse::number)]
    density: Option<f64>,
    /// Passes over all batches
    #[arg(long, value_name = "E", default_value_t = Schedule::PAPER.epochs, value_parser = parse::whole::<u32>)]
    epochs: u32,
    /// Random starts tried on a part of the rows, of which the best goes on; 1 for the published method alone
    #[arg(long, value_name = "R", default_value_t = Trials::DEFAULT.count, value_parser = parse::whole::<u32>)]
    trials: u32,
    /// Rows of a trial
    #[arg(long, value_name = "N", default_value_t = Trials::DEFAULT.rows, value_parser = parse::whole::<usize>)]
    trial_rows: usize,
    /// Rows of a batch; 0 for all rows
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = parse::whole::<usize>)]
    batch: usize,
    /// Settings to start from
    #[arg(long, value_enum, default_value_t = Recipe::Paper)]
    recipe: Recipe,
    /// Step size: normalised, theory or fixed:ETA
    #[arg(long, default_value = "normalised", value_parser = parse::step)]
    step: Step,
    /// Refinement on the chosen weights after each step: armijo, cg or none; cg:K takes K steps
    #[arg(long, default_value = "armijo", value_parser = parse::refine)]
    refine: Refine,
    /// Signs of the output weights
    #[arg(long, value_enum, default_value_t = SignsName::Positive)]
    signs: SignsName,
    /// What becomes of neurons that lose all weights
    #[arg(long, value_enum, default_value_t = EmptyName::Freeze)]
    empty: EmptyName,
    /// Neurons of a gradient panel: fewer take less memory and more time, and change the result in rounding only
    #[arg(long, value_name = "P", conflicts_with = "ram", value_parser = parse::whole::<usize>)]
    panel: Option<usize>,
    /// Most bytes for state and workspace, beside the data; with K, M or G for powers of 1024
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = parse::bytes)]
    ram: Option<u64>,
    /// The model to write
    #[arg(short, long, value_name = "M.tamis")]
    output: PathBuf,
}

#[derive(Serialize)]
struct Object<'a> {
    model: String,
    model_bytes: usize,
    #[serde(flatten)]
    report: &'a Report,
}

impl Train {
    pub(super) fn run(&self, common: &Common, console: &Console) -> Result<()> {
        let options = self.options(common)?;
        let task = self.task.task()?;
        file::check(&self.output)?;
        file::check_distinct(&self.output, self.source.inputs())?;
        let problem = self.source.source().load(Some(task))?;
        let bar = Bar::new(console);
        let mut losses = Losses::default();
        let outcome = interrupt::training(|| {
            run::train(problem, &options, interrupt::stop(), |progress| {
                bar.update(progress);
                losses.add(progress);
                true
            })
        });
        bar.clear();
        let outcome = outcome?;
        losses.run.push(outcome.report.loss as f32);
        save(&self.output, &outcome.model)?;
        let model = self.output.display().to_string();
        let object = Object { model, model_bytes: outcome.model.len(), report: &outcome.report };
        console.result(&object, || summary(&object, &losses))
    }

    fn options(&self, common: &Common) -> Result<Options> {
        let &[hidden] = &self.hidden[..] else {
            return Err(Error::new("networks of several hidden layers are not supported yet")
                .expected("--hidden M")
                .got(format_args!("{} layers", self.hidden.len()))
                .help("pass the neurons of one layer"));
        };
        let Recipe::Paper = self.recipe;
        let schedule = Schedule {
            epochs: self.epochs,
            batch: self.batch,
            // Random generators for the first epoch, and for two steps where an epoch is one.
            convex_epochs: if self.batch == 0 { Schedule::PAPER.convex_epochs } else { 1 },
            trials: Trials { count: self.trials, rows: self.trial_rows },
            signs: self.signs.into(),
            empty: self.empty.into(),
            seed: common.seed,
            params: Params { step: self.step, refine: self.refine },
            ..Schedule::PAPER
        };
        let size = match (self.nnz, self.density) {
            (None, Some(part)) => Size::Density(part),
            (nnz, _) => Size::Nonzeros(nnz.unwrap_or(0)),
        };
        let memory = match (self.ram, self.panel) {
            (Some(ram), _) => Memory::Ram(ram),
            (None, Some(panel)) => Memory::Panel(panel),
            (None, None) => Memory::Auto,
        };
        Ok(Options { hidden, size, schedule, memory, threads: common.threads() })
    }
}

/// Writes the bytes of a model.
pub(super) fn save(path: &Path, model: &[u8]) -> Result<()> {
    interrupt::saving(|| file::write(path, |w| std::io::Write::write_all(w, model)))
}

/// Losses step by step: those of the random starts, one after the other, and of the run on all rows.
#[derive(Debug, Default)]
pub(super) struct Losses {
    pub(super) trials: Vec<f32>,
    pub(super) run: Vec<f32>,
}

impl Losses {
    pub(super) fn add(&mut self, progress: &Progress) {
        let part = if progress.trial > 0 { &mut self.trials } else { &mut self.run };
        part.push(progress.loss);
    }

    /// As bars; the loss falls over decades, so its logarithm is shown.
    pub(super) fn line(&self) -> String {
        let logs: Vec<f32> = self.trials.iter().chain(&self.run).map(|loss| loss.log10()).collect();
        sparkline(&logs)
    }
}

fn summary(object: &Object<'_>, losses: &Losses) -> String {
    let r = object.report;
    let all = r.hidden * r.inputs;
    let ended = if r.stopped { "Interrupted; saved" } else { "Saved" };
    let title = format!("{ended} {} ({})", object.model, bytes(object.model_bytes as u64));
    let peak = r.peak_rss_bytes.map(|peak| format!("; the process had {} at its peak", bytes(peak)));
    let mut rows = vec![
        (
            "nonzeros",
            format!(
                "{} of {} asked for ({} of {} × {} weights)",
                count(r.nnz as u64),
                count(r.requested_nnz as u64),
                console::percent(r.nnz as f64 / all as f64),
                count(r.hidden as u64),
                count(r.inputs as u64)
            ),
        ),
        ("neurons", format!("{} of {} have weights", r.live, r.hidden)),
        ("loss", format!("{:.4e} mean squared error  {}", r.loss, losses.line())),
        ("PSNR", console::decibel(r.psnr_db)),
    ];
    rows.extend(
        r.accuracy.map(|part| ("accuracy", format!("{} of the training rows", console::percent(part)))),
    );
    rows.extend([
        (
            "time",
            format!("{:.3} s, {} epochs, {:.0} passes, {} threads", r.seconds, r.epochs, r.passes, r.threads),
        ),
        (
            "memory",
            format!(
                "data {}, state {}, workspace {}{}",
                bytes(r.data_bytes),
                bytes(r.plan.state_bytes),
                bytes(r.plan.workspace_bytes),
                peak.unwrap_or_default()
            ),
        ),
    ]);
    console::facts(&title, &rows)
}
