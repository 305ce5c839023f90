//! `tamis finetune`

use std::path::PathBuf;

use clap::Args;
use tamis::learn::deep::tune;

use super::common::Common;
use super::console::{bytes, count, decibel, facts, percent, refuse};
use super::interrupt;
use super::parse::{self, at_least_zero};
use super::progress::Bar;
use super::saved::{Object, limit_fact, peak_fact, save};
use super::source::SourceArgs;
use crate::Result;
use crate::base::Limits;
use crate::base::file::{self, Kind};
use crate::data::Loaded;
use crate::model::ModelFile;
use crate::train::{self, FinetuneMethod, FinetuneOptions, FinetuneReport};

/// Fit all layers of a model together, on the weights that it has (debiasing).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis finetune model.tamis --data X.npy --labels y.npy -o better.tamis
  tamis finetune old.tamis --data new.csv --target price --epochs 50 --time-limit 60 -o new.tamis")]
pub(super) struct Finetune {
    /// The model
    #[arg(value_name = "M.tamis")]
    model: PathBuf,
    #[command(flatten)]
    source: SourceArgs,
    /// The model to write
    #[arg(short, long, value_name = "N.tamis")]
    output: PathBuf,
    /// What fits: auto is least-squares for one hidden layer and squared errors, which is exact and
    /// quick, else adam
    #[arg(long, value_enum, default_value_t = FinetuneMethod::Auto)]
    method: FinetuneMethod,
    /// Passes over all batches, of least squares steps at the most; the result is the best of them,
    /// or the model as it was [default: 20; least-squares: 100]
    #[arg(long, value_name = "E", value_parser = parse::whole::<u32>)]
    epochs: Option<u32>,
    /// Rows of a batch; 0 for all rows [default: 256]
    #[arg(long, value_name = "N", value_parser = parse::whole::<usize>)]
    batch: Option<usize>,
    /// The first step of a weight, relative to the size of its layer's weights [default: 0.02]
    #[arg(long, value_name = "RATE", value_parser = parse::number)]
    rate: Option<f64>,
    /// Seconds after which the fit ends, looked at after every epoch
    #[arg(long, value_name = "SECONDS", value_parser = parse::number)]
    time_limit: Option<f64>,
}

/// Steps of least squares at the most, unless it is said.
const STEPS: u32 = 100;

impl Finetune {
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        let options = self.options(common)?;
        if self.method == FinetuneMethod::LeastSquares {
            let flags = [(self.batch.is_some(), "--batch"), (self.rate.is_some(), "--rate")];
            let expected = "settings of least squares: --epochs and --time-limit";
            let what = "a setting does not belong to the method";
            refuse(&flags, what, expected, ", or pass --method adam")?;
        }
        let inputs = self.source.inputs().chain([self.model.as_path()]);
        file::check(&self.output, Kind::MODEL, inputs)?;
        let model = ModelFile::load(&self.model)?;
        let Loaded { problem, notes, .. } = self.source.load_for(&model, None)?;
        let bar = Bar::new(common);
        let outcome = interrupt::training(|| {
            train::finetune(&model, problem, &options, interrupt::stop(), |progress| {
                bar.epoch(progress)
            })
        });
        bar.clear();
        let outcome = outcome?;
        let tuned = ModelFile::from_bytes(&outcome.model)?.with_columns_of(&model)?;
        save(&self.output, tuned.bytes())?;
        let object = Object::new(&self.output, tuned.bytes(), &outcome.report);
        common.result_with(&notes, &object, || summary(&object))
    }

    fn options(&self, common: &Common) -> Result<FinetuneOptions> {
        let defaults = tune::Params::DEFAULT;
        let rate = at_least_zero("--rate", self.rate)?;
        let time = at_least_zero("--time-limit", self.time_limit)?;
        let batch = match self.batch {
            Some(0) => usize::MAX,
            batch => batch.unwrap_or(defaults.batch),
        };
        // With a setting that only Adam has, Adam is meant.
        let is_adam = self.batch.is_some() || self.rate.is_some();
        Ok(FinetuneOptions {
            method: match self.method {
                FinetuneMethod::Auto if is_adam => FinetuneMethod::Adam,
                method => method,
            },
            params: tune::Params {
                epochs: self.epochs.unwrap_or(defaults.epochs),
                batch,
                rate: rate.map_or(defaults.rate, |rate| rate as f32),
                seed: common.seed,
            },
            steps: self.epochs.unwrap_or(STEPS),
            limits: Limits { time: time.map(parse::duration), ..Limits::NONE },
            threads: common.threads(),
        })
    }
}

fn summary(object: &Object<'_, FinetuneReport>) -> String {
    let r = object.report;
    let mut rows = vec![
        ("nonzeros", count(r.nnz)),
        ("loss", format!("{:.4e} mean {}, {:.4e} before", r.loss, r.loss_kind, r.loss_before)),
    ];
    rows.extend(r.psnr_db.map(|_| {
        ("PSNR", format!("{}, {} before", decibel(r.psnr_db), decibel(r.psnr_db_before)))
    }));
    rows.extend(r.accuracy.zip(r.accuracy_before).map(|(now, before)| {
        ("accuracy", format!("{} of these rows, {} before", percent(now), percent(before)))
    }));
    let steps = match r.method {
        "adam" => format!("{} epochs", r.epochs),
        method => format!("{} steps of {method}", r.epochs),
    };
    rows.push(("time", format!("{:.3} s, {steps}{}", r.seconds, limit_fact(r.limit))));
    let (data, state, peak) =
        (bytes(r.data_bytes), bytes(r.state_bytes), peak_fact(r.peak_rss_bytes));
    rows.push(("memory", format!("data {data}, state {state}{peak}")));
    facts(&object.title(r.stopped), &rows)
}
