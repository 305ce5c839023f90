//! One way to train a cell by any method: the library's runs, their settings from the part, and what is kept of each.

use tamis::deep::{shrink, tune};
use tamis::train::{Schedule, Trials};
use tamis::{anneal, lm};

use super::cell::Cell;
use super::problem::Set;
use super::record::{Quality, Solved};
use super::spec::{Method, Part};
use super::theory;
use crate::Result;
use crate::dense::{Head, Rates};
use crate::operator::Stop;
use crate::run::{
    self, AnnealOptions, DeepOptions, HeapPeak, ImpSettings, LayerRecipe, Limits, Memory, Options,
    OutputsOptions, Problem, RecoverOptions, Score, Size, Task, score_model,
};

/// Most points of a curve that are kept.
const POINTS: usize = 64;

/// How a cell ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// There is a result.
    Solved(Box<Solved>),
    /// There can be none; why.
    Skipped(String),
}

/// Trains a cell on its data.
///
/// # Errors
/// Those of the run: a size out of bounds, steps that diverge, or the run was ended.
pub fn solve(part: &Part, cell: &Cell, set: Set, threads: usize, stop: &Stop) -> Result<Ending> {
    if let Some(why) = skipped(&set.train) {
        return Ok(Ending::Skipped(why));
    }
    let work = Work { part, cell, threads, stop };
    let Set { train, test } = set;
    let data_bytes = train.bytes() as u64;
    let mut solved = match cell.method {
        Method::Zero | Method::Mean => constant(cell.method, &train, test.as_ref()),
        Method::Imp | Method::ImpPublished => work.imp(&train)?,
        Method::Recipe if part.hidden == 2 && run::is_sum(&train) => work.recover(train)?,
        _ if part.hidden > 1 => work.deep(train)?,
        method if method.is_published() && train.has_several_outputs() => work.paper_outputs(train)?,
        Method::Paper | Method::PaperLeast | Method::PaperSafe | Method::PaperTrials => work.paper(train)?,
        Method::Recipe if run::usual_recipe(train.task, cell.m, work.size()) == "anneal" => {
            work.anneal(train)?
        }
        Method::Recipe => work.recover(train)?,
        // The spec refuses them on data to train on.
        Method::Assumption | Method::Curvature | Method::Theory | Method::Normalised => {
            return Ok(Ending::Skipped("a check of the theory trains nothing".into()));
        }
    };
    solved.data_bytes = data_bytes;
    if let Some(model) = solved.model.take() {
        solved.test = test.map(|test| score_model(&model, &test).map(|score| quality(&score))).transpose()?;
    }
    solved.rss_peak_bytes = run::peak_rss_bytes();
    Ok(Ending::Solved(Box::new(solved)))
}

/// Measures a cell that checks the theory; its data are made from its seed.
///
/// # Errors
/// Steps that diverge, want of memory, or the run was ended.
pub fn check(part: &Part, cell: &Cell, threads: usize, stop: &Stop) -> Result<Ending> {
    let mut solved = theory::measure(part, cell, threads, stop)?;
    solved.rss_peak_bytes = run::peak_rss_bytes();
    Ok(Ending::Solved(Box::new(solved)))
}

/// Why there can be no result.
fn skipped(train: &Problem) -> Option<String> {
    let silent = train.task == Task::Regression && train.labels.iter().all(|&y| y == 0.0);
    silent.then(|| "the planted network gives 0 for every row".into())
}

struct Work<'a> {
    part: &'a Part,
    cell: &'a Cell,
    threads: usize,
    stop: &'a Stop,
}

/// What is noted from step to step: a curve of at most [`POINTS`] points, and the peak of the heap.
pub(super) struct Course {
    heap: HeapPeak,
    peak: Option<u64>,
    every: u64,
    curve: Vec<(f64, f64)>,
    steps: u64,
}

impl Course {
    pub(super) fn start() -> Self {
        let curve = Vec::with_capacity(POINTS + 1);
        Self { heap: HeapPeak::start(), peak: None, every: 1, curve, steps: 0 }
    }

    /// After a step: what the run has taken so far, and the loss after so many passes.
    pub(super) fn see(&mut self, at: f64, loss: f64) {
        self.peak = self.heap.bytes();
        if self.steps.is_multiple_of(self.every) && loss.is_finite() {
            if self.curve.len() == POINTS {
                let mut kept = 0;
                self.curve.retain(|_| {
                    kept += 1;
                    kept % 2 == 1
                });
                self.every *= 2;
            }
            self.curve.push((at, loss));
        }
        self.steps += 1;
    }
}

impl Work<'_> {
    fn size(&self) -> Size {
        Size::Nonzeros(self.cell.s)
    }

    /// Random starts: those that are usual where the method has them.
    fn trials(&self, usual: Trials) -> Trials {
        if self.cell.method == Method::PaperTrials { usual } else { Trials::NONE }
    }

    fn paper_options(&self) -> Options<'static> {
        let schedule = run::published(self.part.epochs, self.part.batch, self.cell.seed);
        let schedule = Schedule { trials: self.trials(Trials::DEFAULT), ..schedule };
        let usual = Options::new(self.cell.m, self.size());
        Options { schedule, memory: self.memory(), threads: self.threads, ..usual }
    }

    fn paper(&self, train: Problem) -> Result<Solved> {
        let options = self.paper_options();
        let mut course = Course::start();
        let outcome = run::train(train, &options, self.stop, |step| {
            course.see(f64::from(step.passes), f64::from(step.loss));
            true
        })?;
        Ok(of_report(&outcome.report, outcome.model, course))
    }

    fn outputs_options(&self) -> OutputsOptions<'static> {
        OutputsOptions {
            epochs: self.part.epochs,
            batch: self.part.batch,
            safe: matches!(self.cell.method, Method::PaperSafe | Method::PaperLeast),
            trials: self.trials(OutputsOptions::TRIALS),
            memory: self.memory(),
            seed: self.cell.seed,
            threads: self.threads,
            ..OutputsOptions::new(self.cell.m, self.size())
        }
    }

    fn paper_outputs(&self, train: Problem) -> Result<Solved> {
        let options = self.outputs_options();
        let mut course = Course::start();
        let outcome = run::train_outputs(train, &options, self.stop, |step| {
            course.see(f64::from(step.passes), f64::from(step.loss));
            true
        })?;
        Ok(of_report(&outcome.report, outcome.model, course))
    }

    fn recover_options(&self) -> RecoverOptions {
        let usual = RecoverOptions::new(self.cell.m, self.size());
        RecoverOptions {
            params: lm::Params { seed: self.cell.seed, ..usual.params },
            threads: self.threads,
            limits: self.limits(),
            second: (self.part.hidden == 2).then_some(self.cell.m),
            ..usual
        }
    }

    fn recover(&self, train: Problem) -> Result<Solved> {
        let options = self.recover_options();
        let rows = train.data.rows as f64;
        let mut course = Course::start();
        let outcome = run::recover(train, &options, self.stop, |step| {
            course.see(step.rows_read as f64 / rows, f64::from(step.best));
            true
        })?;
        Ok(of_report(&outcome.report, outcome.model, course))
    }

    fn anneal_options(&self) -> AnnealOptions<'static> {
        let usual = AnnealOptions::new(self.cell.m, self.size());
        AnnealOptions {
            params: anneal::Params { seed: self.cell.seed, ..usual.params },
            threads: self.threads,
            limits: self.limits(),
            ..usual
        }
    }

    /// Several hidden layers, one by one; the published method does not fit them together in the end, and of the recipes only those
    /// for labels that no sum of neurons can be.
    fn deep(&self, train: Problem) -> Result<Solved> {
        let (part, cell) = (self.part, self.cell);
        let recipe = match cell.method {
            Method::Recipe if train.task == Task::Multiclass => LayerRecipe::Anneal(self.anneal_options()),
            Method::Recipe => {
                let mut options = self.recover_options();
                options.params.kicks = run::LAYER_KICKS;
                LayerRecipe::Lm(RecoverOptions { second: None, ..options })
            }
            _ => LayerRecipe::Paper(self.paper_options(), self.outputs_options()),
        };
        let epochs = if cell.method == Method::Recipe { tune::Params::DEFAULT.epochs } else { 0 };
        let tries = if train.task == Task::Multiclass { 1 } else { run::LAYER_GROWTH.len() };
        let options = DeepOptions {
            hidden: vec![cell.m; part.hidden],
            size: self.size(),
            recipe,
            grow: run::LAYER_GROWTH[..tries].to_vec(),
            shrink: shrink::Params {
                tune: tune::Params { seed: cell.seed, ..shrink::Params::DEFAULT.tune },
                ..shrink::Params::DEFAULT
            },
            tune: tune::Params { epochs, seed: cell.seed, ..tune::Params::DEFAULT },
            limits: if cell.method == Method::Recipe { self.limits() } else { Limits::NONE },
            threads: self.threads,
        };
        let mut course = Course::start();
        let mut step = 0.0;
        let outcome = run::train_deep(train, &options, self.stop, |progress| {
            step += 1.0;
            course.see(step, f64::from(progress.loss));
            true
        })?;
        let report = outcome.report;
        Ok(Solved {
            recipe: report.recipe.into(),
            train: Some(Quality { loss: report.loss, psnr_db: report.psnr_db, accuracy: report.accuracy }),
            nnz: report.nnz,
            live: report.layers.iter().map(|layer| layer.live).collect(),
            seconds: report.seconds,
            passes: report.passes,
            limit: report.limit.map(Into::into),
            state_bytes: Some(report.state_bytes),
            workspace_bytes: Some(report.workspace_bytes + report.mapped_bytes),
            model_bytes: Some(outcome.model.len() as u64),
            ..course.ended(Some(outcome.model))
        })
    }

    fn anneal(&self, train: Problem) -> Result<Solved> {
        let options = self.anneal_options();
        let rows = train.data.rows as f64;
        let mut course = Course::start();
        let outcome = run::anneal(train, &options, self.stop, |step| {
            course.see(step.rows_read as f64 / rows, f64::from(step.loss));
            true
        })?;
        let report = outcome.report;
        Ok(Solved {
            recipe: report.recipe.into(),
            train: Some(Quality { loss: report.loss, psnr_db: None, accuracy: Some(report.accuracy) }),
            nnz: report.nnz,
            live: vec![report.live],
            seconds: report.seconds,
            passes: report.passes,
            limit: report.limit.map(Into::into),
            state_bytes: Some(report.plan.state_bytes),
            workspace_bytes: Some(report.plan.workspace_bytes),
            model_bytes: Some(outcome.model.len() as u64),
            ..course.ended(Some(outcome.model))
        })
    }

    fn imp(&self, train: &Problem) -> Result<Solved> {
        let (part, cell) = (self.part, self.cell);
        let published = cell.method == Method::ImpPublished;
        // As the sparse networks: for one output the sum of the neurons.
        let head = if train.has_several_outputs() { Head::Weights } else { Head::Sum };
        let usual = ImpSettings::new(&vec![cell.m; part.hidden], self.size());
        let settings = ImpSettings {
            head,
            epochs: if published { part.epochs } else { part.imp.epochs },
            batch: if published { part.batch } else { part.imp.batch },
            rates: (!published).then(|| Rates::constant(part.imp.rate as f32)),
            part: if published { usual.part } else { part.imp.prune },
            raw: published,
            seed: cell.seed,
            threads: self.threads,
            ..usual
        };
        let mut course = Course::start();
        let outcome = run::imp(train, None, &settings, self.stop, |epoch| {
            // A pass forwards and one back.
            course.see(2.0 * epoch.epoch as f64, epoch.loss);
            true
        })?;
        let report = outcome.report;
        let epochs = report.steps as f64 * report.batch as f64 / report.samples as f64;
        Ok(Solved {
            recipe: report.recipe.into(),
            train: Some(Quality { loss: report.loss, psnr_db: report.psnr_db, accuracy: report.accuracy }),
            nnz: report.nnz,
            live: report.live,
            seconds: report.seconds,
            passes: 2.0 * epochs,
            state_bytes: Some(report.state_bytes),
            workspace_bytes: Some(report.workspace_bytes),
            dense_bytes: Some(report.dense_bytes),
            model_bytes: Some(outcome.model.len() as u64),
            ..course.ended(Some(outcome.model))
        })
    }

    fn memory(&self) -> Memory {
        if self.cell.method == Method::PaperLeast { Memory::Least } else { Memory::Auto }
    }

    fn limits(&self) -> Limits {
        Limits { passes: self.part.passes, ..Limits::NONE }
    }
}

impl Course {
    /// What was noted, and nothing else yet.
    pub(super) fn ended(self, model: Option<Vec<u8>>) -> Solved {
        Solved { heap_peak_bytes: self.peak, curve: self.curve, model, ..Solved::default() }
    }
}

fn of_report(report: &run::Report, model: Vec<u8>, course: Course) -> Solved {
    Solved {
        recipe: report.recipe.into(),
        train: Some(Quality { loss: report.loss, psnr_db: report.psnr_db, accuracy: report.accuracy }),
        nnz: report.nnz,
        live: [Some(report.live), report.second_live].into_iter().flatten().collect(),
        seconds: report.seconds,
        passes: report.passes,
        limit: report.limit.map(Into::into),
        state_bytes: Some(report.plan.state_bytes),
        workspace_bytes: Some(report.plan.workspace_bytes),
        model_bytes: Some(model.len() as u64),
        ..course.ended(Some(model))
    }
}

fn quality(score: &Score) -> Quality {
    Quality { loss: score.loss, psnr_db: score.psnr_db, accuracy: score.accuracy }
}

/// The same prediction for every row: 0, or for each output the mean of the training labels. For several classes these are
/// no preference at all, and the logarithms of how often each class occurs.
fn constant(method: Method, train: &Problem, test: Option<&Problem>) -> Solved {
    let outputs = train.classes().unwrap_or_else(|| train.outputs());
    let rows = train.data.rows.max(1) as f64;
    let mut prediction = vec![0.0_f32; outputs];
    if method == Method::Mean {
        let mut sums = vec![0.0_f64; outputs];
        if train.task == Task::Multiclass {
            train.labels.iter().for_each(|&label| sums[label as usize] += 1.0);
        } else {
            train.labels.iter().enumerate().for_each(|(i, &label)| sums[i % outputs] += f64::from(label));
        }
        for (out, sum) in prediction.iter_mut().zip(sums) {
            *out =
                if train.task == Task::Multiclass { (sum / rows).ln() as f32 } else { (sum / rows) as f32 };
        }
    }
    let score = |problem: &Problem| {
        let all: Vec<f32> = prediction.iter().copied().cycle().take(problem.data.rows * outputs).collect();
        quality(&Score::new(problem.task, &problem.labels, &all))
    };
    Solved {
        recipe: method.name().into(),
        train: Some(score(train)),
        test: test.map(score),
        ..Solved::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Matrix, Values};

    fn problem(task: Task, labels: &[f32], outputs: usize) -> Problem {
        let rows = labels.len() / outputs;
        Problem {
            data: Matrix::new(rows, 1, Values::U8(vec![0; rows])).unwrap(),
            labels: labels.to_vec(),
            task,
        }
    }

    #[test]
    fn constant_predictors_score_what_can_be_computed_by_hand() {
        let two = problem(Task::Regression, &[1.0, 2.0, 3.0, 2.0], 2);
        let zero = constant(Method::Zero, &two, None).train.unwrap();
        let mean = constant(Method::Mean, &two, Some(&two));
        assert_eq!(zero.loss, 18.0 / 4.0);
        // Column means 2 and 2.
        assert_eq!((mean.train.unwrap().loss, mean.test), (0.5, mean.train));
        let classes = problem(Task::Multiclass, &[0.0, 2.0, 2.0, 1.0], 1);
        let zero = constant(Method::Zero, &classes, None).train.unwrap();
        let mean = constant(Method::Mean, &classes, None).train.unwrap();
        assert!((zero.loss - 3.0_f64.ln()).abs() < 1e-6 && zero.accuracy == Some(0.25));
        let entropy = 0.5 * 4.0_f64.ln() + 0.5 * 2.0_f64.ln();
        assert!((mean.loss - entropy).abs() < 1e-6 && mean.accuracy == Some(0.5));
        let half = problem(Task::Binary, &[0.0, 1.0], 1);
        assert_eq!(constant(Method::Zero, &half, None).train.unwrap().accuracy, Some(0.5));
    }

    #[test]
    fn curves_are_thinned_and_keep_their_first_point() {
        let mut course = Course::start();
        (0..10_000).for_each(|i| course.see(f64::from(i), 1.0));
        assert!((POINTS / 2..=POINTS).contains(&course.curve.len()), "{}", course.curve.len());
        assert_eq!(course.curve[0].0, 0.0);
        let step = course.curve[1].0;
        assert!(course.curve.windows(2).all(|pair| pair[1].0 - pair[0].0 == step));
    }
}
