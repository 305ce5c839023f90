//! One run: a planted problem, the recipes on it, and how well they did.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tamis::dims::Dims;
use tamis::gates::Signs;
use tamis::lm::{self, Params, Progress};
use tamis::weights::Weights;
use tamis_host::data::planted::{self, Planted};
use tamis_host::data::{Matrix, Values};
use tamis_host::operator::Stop;
use tamis_host::run::{self, Limits, Options, Outcome, Problem, RecoverOptions, Score, Size, Task};

use super::compare::{Match, compare};
use super::jobs::{Job, NOISES, Part};
use super::{INPUTS, Settings, inputs};

/// Rows that no recipe sees.
pub(super) const UNSEEN: usize = 2000;
/// A network is recovered where its error on unseen rows is at most this part of the labels' mean square.
pub(super) const RECOVERED: f64 = 1e-8;
/// Stands for errors that are no number, which JSON cannot hold.
const HUGE: f64 = 1e300;

/// A finished run, one line of the checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// What was run.
    #[serde(flatten)]
    pub job: Job,
    /// The commit that the program was built from, as far as is known.
    pub commit: String,
    /// Threads of the recipes.
    pub threads: usize,
    /// Seconds that one recipe might take.
    pub limit: f64,
    /// The recovery recipe.
    pub recovery: Option<Fit>,
    /// The published recipe with trials, in the grid.
    pub paper: Option<Fit>,
    /// Mean square of the noise on unseen rows: the loss of the planted network itself.
    pub noise_floor: Option<f64>,
    /// Why a recipe has no result.
    pub failures: Vec<String>,
}

/// What one recipe reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// PSNR on the rows that it saw.
    pub psnr_db: Option<f64>,
    /// PSNR on rows that it did not see.
    pub unseen_db: Option<f64>,
    /// Mean squared error on them.
    pub unseen_loss: f64,
    /// The same in parts of their labels' mean square.
    pub unseen_part: f64,
    /// Whether the fit is exact in single precision.
    pub exact: bool,
    /// Whether the time limit ended it before an exact fit.
    pub limited: bool,
    /// Seconds.
    pub seconds: f64,
    /// Passes over all rows.
    pub passes: f64,
    /// The planted network against the one found.
    #[serde(rename = "match")]
    pub matched: Match,
    /// Moves taken.
    pub moves: u32,
    /// Kicks.
    pub kicks: u32,
}

impl Fit {
    /// Whether the planted function was found.
    #[must_use]
    pub fn recovered(&self) -> bool {
        self.unseen_part <= RECOVERED
    }
}

impl Record {
    /// A run that could not be done.
    #[must_use]
    pub fn failed(job: Job, commit: &str, threads: usize, limit: f64, why: String) -> Self {
        let commit = commit.to_owned();
        let failures = vec![why];
        Self { job, commit, threads, limit, recovery: None, paper: None, noise_floor: None, failures }
    }

    /// Whether a longer limit could change the result.
    #[must_use]
    pub fn limited(&self) -> bool {
        let limited = |fit: &Option<Fit>| fit.as_ref().is_none_or(|fit| fit.limited);
        limited(&self.recovery) || (self.job.part == Part::Grid && limited(&self.paper))
    }
}

/// The rows that are the same for every run.
#[derive(Debug, Default)]
pub(super) struct Bench {
    pixels: Option<Matrix>,
}

/// A planted problem: rows to fit, and rows to test on.
struct Planting {
    planted: Planted,
    unseen: Vec<f32>,
    unseen_labels: Vec<f32>,
    noise_floor: Option<f64>,
}

impl Bench {
    /// Runs a job; `observe` hears of the search.
    ///
    /// # Errors
    /// The problem cannot be made. What a recipe fails with stands in the record.
    pub(super) fn run(
        &mut self,
        job: &Job,
        settings: &Settings,
        commit: &str,
        observe: impl Fn(&Progress<'_>) + Send + Sync,
    ) -> Result<Record> {
        let made = self.plant(job, settings)?;
        let limit = job.part.limit(settings.cell_seconds);
        let mut record = Record {
            job: job.clone(),
            commit: commit.to_owned(),
            threads: settings.threads,
            limit,
            recovery: None,
            paper: None,
            noise_floor: made.noise_floor,
            failures: Vec::new(),
        };
        let time = Duration::from_secs_f64(limit);
        let options = recovery_options(job, time, settings.threads);
        let told = |progress: &Progress<'_>| {
            observe(progress);
            true
        };
        match run::recover(made.problem(), &options, &Stop::new(), told) {
            Ok(outcome) => record.recovery = Some(made.judge(&outcome, options.signs.unwrap_or_default())?),
            Err(error) => record.failures.push(format!("recovery: {}", one_line(&error))),
        }
        if job.part == Part::Grid {
            let mut options = Options::new(job.hidden, Size::Nonzeros(job.nnz));
            options.schedule.seed = job.seed;
            options.threads = settings.threads;
            let stop = Stop::new().until(Instant::now() + time);
            match run::train(made.problem(), &options, &stop, |_| true) {
                Ok(outcome) => record.paper = Some(made.judge(&outcome, Signs::Positive)?),
                Err(error) if error.is_interrupted() => record.failures.push("paper: no step in time".into()),
                Err(error) => record.failures.push(format!("paper: {}", one_line(&error))),
            }
        }
        Ok(record)
    }

    fn plant(&mut self, job: &Job, settings: &Settings) -> Result<Planting> {
        let (n, m, s, seed) = (job.samples, job.hidden, job.nnz, job.seed);
        let signs = Signs::Positive;
        let rows = n + UNSEEN;
        let planted = match (job.part, job.variant.as_str()) {
            (Part::Inputs, "pixels") => planted::network_on(self.pixels(rows, settings)?, m, s, signs, seed)?,
            (Part::Inputs, kind) => planted::network_on(inputs::draw(kind, rows, seed)?, m, s, signs, seed)?,
            _ => planted::network(Dims::new(rows, INPUTS, m, s), signs, seed)?,
        };
        let sigma = match job.part {
            Part::Noise => noise_of(&job.variant).map(|(sigma, _)| sigma),
            _ => None,
        };
        Ok(Planting::split(planted, n, sigma, seed))
    }

    fn pixels(&mut self, rows: usize, settings: &Settings) -> Result<Matrix> {
        if let Some(pixels) = &self.pixels {
            return Ok(pixels.clone());
        }
        let Some(folder) = &settings.mnist else { bail!("pixels need the MNIST files: pass --mnist") };
        let pixels = inputs::pixels(folder, rows)?;
        self.pixels = Some(pixels.clone());
        Ok(pixels)
    }
}

impl Planting {
    /// The first n rows are to be fitted. Noise of `sigma` times the labels' root mean square is added to all labels.
    fn split(planted: Planted, n: usize, sigma: Option<f64>, seed: u64) -> Self {
        let Planted { data, mut labels, .. } = planted;
        let mut noise_floor = None;
        if let Some(sigma) = sigma {
            let scale = sigma * mean_square(&labels).sqrt();
            let noise = inputs::noise(labels.len(), seed);
            let noise: Vec<f32> = noise.iter().map(|e| (f64::from(*e) * scale) as f32).collect();
            noise_floor = Some(mean_square(&noise[n..]));
            labels.iter_mut().zip(noise).for_each(|(y, e)| *y += e);
        }
        let mut values = data.values.into_f32();
        let unseen = values.split_off(n * data.cols);
        values.shrink_to_fit();
        let unseen_labels = labels.split_off(n);
        let data = Matrix { rows: n, cols: data.cols, values: Values::F32(values) };
        Self { planted: Planted { data, labels, ..planted }, unseen, unseen_labels, noise_floor }
    }

    fn problem(&self) -> Problem {
        let Planted { data, labels, .. } = &self.planted;
        Problem { data: data.clone(), labels: labels.clone(), task: Task::Regression }
    }

    fn judge(&self, outcome: &Outcome, signs: Signs) -> Result<Fit> {
        let report = &outcome.report;
        let slots = if report.search.is_some() { lm::slots(report.hidden, signs) } else { report.hidden };
        let found = Weights::new(INPUTS, slots, &outcome.index, &outcome.value)?;
        let score = Score::new(Task::Regression, &self.unseen_labels, &predict(found, signs, &self.unseen));
        let search = report.search.as_ref();
        // The published recipe does not say whether its fit is exact: the same bound.
        let bound = f64::from(Params::DEFAULT.exact) * mean_square(&self.planted.labels);
        let exact = search.map_or(report.loss <= bound, |search| search.exact);
        Ok(Fit {
            psnr_db: report.psnr_db,
            unseen_db: score.psnr_db,
            unseen_loss: score.loss.min(HUGE),
            unseen_part: (score.loss / mean_square(&self.unseen_labels)).min(HUGE),
            exact,
            // An exact fit has nothing to gain from more time.
            limited: !exact && (report.limit.is_some() || search.is_none() && report.stopped),
            seconds: report.seconds,
            passes: report.passes,
            matched: compare((self.planted.weights()?, self.planted.signs), (found, signs)),
            moves: search.map_or(0, |search| search.moves),
            kicks: search.map_or(0, |search| search.kicks),
        })
    }
}

/// The recovery recipe for a job.
fn recovery_options(job: &Job, time: Duration, threads: usize) -> RecoverOptions {
    let usual = Params { seed: job.seed, ..Params::DEFAULT };
    let params = match job.variant.as_str() {
        "no births and splits" => Params { births: false, ..usual },
        "no moves" => Params { births: false, tidy: false, kicks: 0, ..usual },
        "no kicks" => Params { kicks: 0, ..usual },
        "5 products" => Params { products: 5, ..usual },
        "search at 1.0 s" => Params { spare: 0, ..usual },
        _ => usual,
    };
    let base = RecoverOptions::new(job.hidden, Size::Nonzeros(job.nnz));
    let turns = if matches!(job.variant.as_str(), "no turns" | "no moves") { 0 } else { base.turns };
    let free = job.part == Part::Noise && noise_of(&job.variant).is_some_and(|(_, free)| free);
    RecoverOptions {
        params,
        signs: Some(if free { Signs::Free } else { Signs::Positive }),
        threads,
        turns,
        limits: Limits { time: Some(time), passes: None },
        ..base
    }
}

/// Strength of the noise that a variant names, and whether output signs are free.
fn noise_of(variant: &str) -> Option<(f64, bool)> {
    NOISES.iter().find(|(name, ..)| *name == variant).map(|&(_, sigma, free)| (sigma, free))
}

fn mean_square(values: &[f32]) -> f64 {
    values.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / values.len().max(1) as f64
}

/// Outputs of a network whose weights carry the signs, in double precision.
fn predict(w: Weights<'_>, signs: Signs, rows: &[f32]) -> Vec<f32> {
    let neuron = |row: &[f32], block: tamis::weights::Block<'_>| {
        let z: f64 = block.entries().map(|(j, v)| f64::from(v) * f64::from(row[j])).sum();
        let sign = f64::from(signs.sign(block.neuron()));
        sign * (sign * z).max(0.0)
    };
    rows.par_chunks(INPUTS)
        .map(|row| w.blocks().map(|block| neuron(row, block)).sum::<f64>() as f32)
        .collect()
}

fn one_line(error: &tamis_host::Error) -> String {
    error.to_string().lines().map(str::trim).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(part: Part, (hidden, nnz): (usize, usize), samples: usize, variant: &str) -> Job {
        Job { part, hidden, nnz, samples, variant: variant.to_owned(), seed: 0 }
    }

    fn measure(job: &Job) -> Record {
        Bench::default().run(job, &Settings::default(), "none", |_| {}).unwrap()
    }

    #[test]
    fn an_easy_network_is_recovered_by_both_recipes_and_known_to_be() {
        let record = measure(&job(Part::Grid, (2, 4), 2000, ""));
        assert!(record.failures.is_empty(), "{record:?}");
        let fit = record.recovery.clone().unwrap();
        assert!(fit.exact && fit.recovered() && fit.matched.one_to_one() && !fit.limited, "{fit:?}");
        assert!(fit.unseen_db.unwrap() > 100.0);
        assert!(record.paper.is_some() && !record.limited());
        let line = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), record);
    }

    #[test]
    fn too_few_rows_are_fitted_but_nothing_is_recovered() {
        let fit = measure(&job(Part::Phase, (10, 50), 20, "")).recovery.unwrap();
        assert!(!fit.recovered() && !fit.matched.one_to_one(), "{fit:?}");
    }

    #[test]
    fn noise_is_what_it_says() {
        let made =
            Bench::default().plant(&job(Part::Noise, (3, 6), 3000, "0.1"), &Settings::default()).unwrap();
        let clean =
            Bench::default().plant(&job(Part::Noise, (3, 6), 3000, "?"), &Settings::default()).unwrap();
        let power = mean_square(&clean.planted.labels);
        let added: Vec<f32> =
            made.planted.labels.iter().zip(&clean.planted.labels).map(|(a, b)| a - b).collect();
        for found in [mean_square(&added), made.noise_floor.unwrap()] {
            assert!((found / (0.01 * power) - 1.0).abs() < 0.15, "{found} {power}");
        }
        assert_eq!((made.planted.labels.len(), made.unseen_labels.len()), (3000, UNSEEN));
        let truth = clean.planted.weights().unwrap();
        let again = predict(truth, Signs::Positive, &clean.unseen);
        assert_eq!(again, clean.unseen_labels);
    }

    #[test]
    fn the_ablation_leaves_out_what_it_says() {
        let of = |variant| recovery_options(&job(Part::Ablation, (5, 9), 9, variant), Duration::ZERO, 1);
        let mut seen = Vec::new();
        for variant in super::super::jobs::ABLATIONS {
            assert!(!seen.contains(&of(variant)), "{variant} is like another");
            seen.push(of(variant));
        }
    }
}
