//! `tamis train`

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tamis::iht::{Params, Refine, Step};
use tamis::train::{Progress, Schedule, Trials};

use super::anneal::{self, AnnealArgs};
use super::console::{self, bytes, count};
use super::parse::{self, EmptyName, Recipe, SignsName, TaskName};
use super::progress::Bar;
use super::source::SourceArgs;
use super::{Common, Console, interrupt};
use crate::plot::sparkline;
use crate::run::{self, Memory, Options, Report, Size, Task};
use crate::{Error, Result, file};

/// Train a sparse network on your own data, to a model of at most S nonzero weights.
///
/// Ctrl-C ends the run after the current step, saves the model reached so far and exits with 130.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis train --data X.npy --labels y.npy --task regression --hidden 10 --nnz 50 -o model.tamis
  tamis train --data table.csv --target price --task regression --hidden 20 --density 0.1 --batch 1000 -o m.tamis
  tamis train --data train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz \\
      --keep-labels 0,1 --task binary --hidden 10 --nnz 100 --ram 512K -o zero-one.tamis
  tamis train --data train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz \
      --task multiclass --hidden 50 --nnz 1000 -o digits.tamis")]
pub(super) struct Train {
    #[command(flatten)]
    pub(super) source: SourceArgs,
    /// What the output stands for
    #[arg(long)]
    task: TaskName,
    /// Hidden neurons
    #[arg(long, value_name = "M", value_delimiter = ',', required = true)]
    hidden: Vec<usize>,
    /// Nonzero weights that the model may have
    #[arg(long, value_name = "S", required_unless_present = "density", conflicts_with = "density")]
    nnz: Option<usize>,
    /// The same as a part of all weights, above 0 and at most 1
    #[arg(long, value_name = "PART")]
    density: Option<f64>,
    /// Passes over all batches [default: 15; anneal: 100]
    #[arg(long, value_name = "E")]
    pub(super) epochs: Option<u32>,
    /// Random starts tried on a part of the rows, of which the best goes on; 1 for the published method alone
    #[arg(long, value_name = "R", default_value_t = Trials::DEFAULT.count)]
    trials: u32,
    /// Rows of a trial
    #[arg(long, value_name = "N", default_value_t = Trials::DEFAULT.rows)]
    trial_rows: usize,
    /// Rows of a batch; 0 for all rows [default: 0; anneal: a hundredth of the rows, 32 to 512]
    #[arg(long, value_name = "N")]
    pub(super) batch: Option<usize>,
    /// Settings to start from
    #[arg(long, value_enum, default_value_t = Recipe::Auto)]
    recipe: Recipe,
    #[command(flatten)]
    pub(super) anneal: AnnealArgs,
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
    #[arg(long, value_name = "P", conflicts_with = "ram")]
    panel: Option<usize>,
    /// Most bytes for state and workspace, beside the data; with K, M or G for powers of 1024
    #[arg(long, value_name = "BYTES", value_parser = parse::bytes)]
    ram: Option<u64>,
    /// The model to write
    #[arg(short, long, value_name = "M.tamis")]
    pub(super) output: PathBuf,
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
        let task = Task::from(self.task);
        match (self.recipe, task) {
            (Recipe::Anneal, _) | (Recipe::Auto, Task::Multiclass) => {
                return anneal::run(self, task, common, console);
            }
            (Recipe::Auto | Recipe::Paper, _) => self.anneal.refuse()?,
        }
        let options = self.options(common)?;
        file::check(&self.output)?;
        file::check_distinct(&self.output, self.source.inputs())?;
        let problem = self.source.source().load(Some(task))?;
        let bar = Bar::new(console);
        let mut losses = Losses::default();
        let outcome = interrupt::training(|| {
            run::train(problem, &options, |progress| {
                bar.update(progress);
                losses.add(progress);
                !interrupt::asked()
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
        let batch = self.batch.unwrap_or(0);
        let schedule = Schedule {
            epochs: self.epochs.unwrap_or(Schedule::PAPER.epochs),
            batch,
            // Random generators for the first epoch, and for two steps where an epoch is one.
            convex_epochs: if batch == 0 { Schedule::PAPER.convex_epochs } else { 1 },
            trials: Trials { count: self.trials, rows: self.trial_rows },
            signs: self.signs.into(),
            empty: self.empty.into(),
            seed: common.seed,
            params: Params { step: self.step, refine: self.refine },
            ..Schedule::PAPER
        };
        let (hidden, size, memory) = (self.hidden()?, self.size(), self.memory());
        Ok(Options { hidden, size, schedule, memory, threads: common.threads() })
    }

    /// The neurons of the one hidden layer.
    pub(super) fn hidden(&self) -> Result<usize> {
        match &self.hidden[..] {
            &[hidden] => Ok(hidden),
            several => Err(Error::new("networks of several hidden layers are not supported yet")
                .expected("--hidden M")
                .got(format_args!("{} layers", several.len()))),
        }
    }

    pub(super) fn size(&self) -> Size {
        match (self.nnz, self.density) {
            (None, Some(part)) => Size::Density(part),
            (nnz, _) => Size::Nonzeros(nnz.unwrap_or(0)),
        }
    }

    pub(super) fn memory(&self) -> Memory {
        match (self.ram, self.panel) {
            (Some(ram), _) => Memory::Ram(ram),
            (None, Some(panel)) => Memory::Panel(panel),
            (None, None) => Memory::Auto,
        }
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
