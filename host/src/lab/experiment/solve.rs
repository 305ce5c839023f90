//! One way to train a cell by any method: the library's runs, their settings from the part, and
//! what is recorded of each.

use std::ops::ControlFlow;
use std::time::Duration;

use tamis::learn::deep::tune;
use tamis::learn::train::{OneOutput, Schedule, Trials};
use tamis::network::gates::Signs;
use tamis::{learn::anneal, learn::lm};

use super::cell::{Cell, Job, Place};
use super::compare::{self, Neuron};
use super::course::Course;
use super::imp;
use super::picture;
use super::problem::Set;
use super::record::{Ending, Quality, Solved};
use super::spec::{Data, Method, Metric, Part, Variant};
use crate::Result;
use crate::base;
use crate::base::Limits;
use crate::base::statistics::mean_square;
use crate::data::{Problem, Task};
use crate::model::{Score, score_model};
use crate::operator::{Device, Stop};
use crate::train::{
    AnnealOptions, Budget, Details, LayersOptions, LmOptions, Memory, Options, OutputsOptions,
    PaperOptions, Recipe, Scale, Start, train_with,
};

/// Mean squared error on test rows over the labels' mean square of a network that is recovered.
const RECOVERED: f64 = 1e-8;

/// Trains a cell on its data, or those that one training gives together.
pub(crate) fn solve(
    part: &Part,
    cells: &[Cell],
    set: Set,
    on: Place<'_>,
    stop: &Stop,
) -> Result<Vec<Ending>> {
    let Some(cell) = cells.first() else { return Ok(Vec::new()) };
    if set.train.task == Task::Regression && set.train.labels.iter().all(|&y| y == 0.0) {
        let reason = "the planted network gives 0 for every row";
        return Ok(vec![Ending::Skipped(reason.into()); cells.len()]);
    }
    let variant = part.variant(cell.point(part));
    let work = Work { part, cell, variant, on, stop };
    let Set { train, test, planted, noise, picture } = set;
    let is_first = part.seeds.first() == Some(&cell.seed);
    let picture = picture.filter(|_| is_first).map(|shape| (shape, train.clone()));
    let data_bytes = train.bytes() as u64;
    let goal = f64::from(lm::Params::DEFAULT.exact) * mean_square(&train.labels);
    let seen = Seen { part, test, planted, noise, picture, data_bytes, goal };
    let all = match cell.method {
        Method::Zero | Method::Mean => vec![Ok(constant(cell.method, &train, seen.test.as_ref()))],
        method if method.is_dense() => imp::train(&Job { part, cell, on, stop }, cells, &train)?,
        // The spec refuses them on data to train on.
        method if method.is_check() => {
            return Ok(vec![Ending::Skipped("a check of the theory trains nothing".into())]);
        }
        _ => vec![Ok(work.train(train)?)],
    };
    let ending = |solved: Result<Solved>| match solved {
        Ok(solved) => Ok(Ending::Done(Box::new(seen.complete(solved)?))),
        Err(error) => Ok(Ending::Failed(error.to_string())),
    };
    all.into_iter().map(ending).collect()
}

/// What a trained network is looked at with.
struct Seen<'a> {
    part: &'a Part,
    test: Option<Problem>,
    planted: Option<Vec<Neuron>>,
    noise: Option<f64>,
    picture: Option<([usize; 3], Problem)>,
    data_bytes: u64,
    /// The loss of a fit that is exact.
    goal: f64,
}

impl Seen<'_> {
    /// Adds what is measured of the model.
    fn complete(&self, mut solved: Solved) -> Result<Solved> {
        solved.data_bytes = self.data_bytes;
        if let Some(model) = solved.model.take() {
            let score = self.test.as_ref().map(|test| score_model(&model, test)).transpose()?;
            solved.test = score.as_ref().map(Quality::of);
            if matches!(self.part.data, Data::Planted { .. }) {
                let exact = solved.train.is_some_and(|train| train.loss <= self.goal);
                let found = compare::measure(&model, self.planted.as_deref(), exact)?;
                solved.measured.extend(found);
                if let (Some(score), Some(test)) = (solved.test, &self.test) {
                    let recovered = score.loss <= RECOVERED * mean_square(&test.labels);
                    solved.measured.insert(Metric::Success, f64::from(u8::from(recovered)));
                    let over_noise = self.noise.map(|noise| score.loss / noise);
                    solved.measured.extend(over_noise.map(|of| (Metric::LossOverNoise, of)));
                }
            }
            if let Some((shape, train)) = &self.picture {
                solved.picture = Some(picture::side_by_side(&model, train, *shape)?);
            }
        }
        solved.rss_peak_bytes = base::peak_rss_bytes();
        Ok(solved)
    }
}

struct Work<'a> {
    part: &'a Part,
    cell: &'a Cell,
    variant: Variant,
    on: Place<'a>,
    stop: &'a Stop,
}

impl Work<'_> {
    fn train(&self, train: Problem) -> Result<Solved> {
        let options = self.options(&train);
        let mut course = Course::start();
        let mut epochs = 0.0;
        let trained = train_with(train, &options, Start::Zero, self.stop, |step| {
            epochs += 1.0;
            let at = if self.part.hidden == 1 { step.passes } else { epochs };
            course.see(at, f64::from(step.details.least().unwrap_or(step.loss)));
            ControlFlow::Continue(())
        })?;
        let mut solved = course.trained(&trained);
        if let Details::Anneal(anneal) = &trained.report.details {
            let accuracy = anneal.validation_accuracy;
            solved.measured.extend(accuracy.map(|of| (Metric::ValidationAccuracy, of)));
        }
        Ok(solved)
    }

    /// The options of a cell. The published method does not fit several layers together in the end.
    fn options(&self, train: &Problem) -> Options {
        let (part, cell) = (self.part, self.cell);
        let budget = Budget::nnz(cell.s);
        let hidden = vec![cell.m; part.hidden];
        let (recipe, is_own) = match cell.method {
            Method::Recipe => (
                own_recipe(&self.variant, Recipe::layered(train.task, &hidden, budget, false)),
                true,
            ),
            _ => (Recipe::Paper(self.paper(train)), false),
        };
        let time = part.seconds.map(Duration::from_secs_f64);
        let limits = Limits { passes: part.passes, time };
        let untuned = tune::Params { epochs: 0, ..tune::Params::DEFAULT };
        // As published, weights of a layer that are thrown away are lost.
        let even = self.variant.give_back != Some(true);
        Options {
            hidden,
            recipe,
            layers: (!is_own).then(|| LayersOptions {
                tune: untuned,
                even,
                ..LayersOptions::default()
            }),
            seed: cell.seed,
            memory: match self.variant.ram {
                _ if cell.method == Method::PaperLeast => Memory::Least,
                Some(bytes) => Memory::Ram(bytes),
                None => Memory::Auto,
            },
            threads: self.on.threads,
            device: if part.hidden == 1 { self.on.device.clone() } else { Device::Cpu },
            limits: if is_own { limits } else { Limits::NONE },
            scale: Scale::None,
            ..Options::new(budget)
        }
    }

    fn paper(&self, train: &Problem) -> PaperOptions {
        let method = self.cell.method;
        // Random starts: the default ones where the method has them.
        let trials =
            |default: Trials| if method == Method::PaperTrials { default } else { Trials::NONE };
        let &Part { epochs, batch, .. } = self.part;
        let schedule = PaperOptions::published(epochs, batch);
        let is_convex = self.variant.convex == Some(true);
        let refresh = PaperOptions::refresh(is_convex, self.variant.refresh);
        let head = OneOutput { refresh, ..schedule.head };
        PaperOptions {
            schedule: Schedule { trials: trials(Trials::DEFAULT), head, ..schedule },
            outputs: OutputsOptions {
                safe: train.has_several_outputs()
                    && matches!(method, Method::PaperSafe | Method::PaperLeast),
                trials: trials(OutputsOptions::TRIALS),
                refresh,
                ..OutputsOptions::published(epochs, batch)
            },
        }
    }
}

/// The same prediction for every row: 0, or for each output the mean of the training labels; for
/// several classes no preference, or the logarithms of how often each occurs.
pub(super) fn constant(method: Method, train: &Problem, test: Option<&Problem>) -> Solved {
    let outputs = train.network_outputs();
    let rows = train.data.rows.max(1) as f64;
    let mut prediction = vec![0.0_f32; outputs];
    if method == Method::Mean {
        let has_classes = train.task == Task::Multiclass;
        let mut sums = vec![0.0_f64; outputs];
        for (i, &label) in train.labels.iter().enumerate() {
            let (at, one) = if has_classes { (label as usize, 1.0) } else { (i % outputs, label) };
            sums[at] += f64::from(one);
        }
        let value = |sum: f64| if has_classes { (sum / rows).ln() } else { sum / rows };
        prediction = sums.into_iter().map(|sum| value(sum) as f32).collect();
    }
    let score = |problem: &Problem| {
        let all = prediction.iter().copied().cycle().take(problem.data.rows * outputs);
        Quality::of(&Score::new(problem.task, &problem.labels, &all.collect::<Vec<f32>>()))
    };
    Solved {
        recipe: method.name().into(),
        train: Some(score(train)),
        test: test.map(score),
        ..Solved::default()
    }
}

/// A recipe with what a variant changes.
pub(super) fn own_recipe(of: &Variant, recipe: Recipe) -> Recipe {
    match recipe {
        Recipe::Lm(default) => Recipe::Lm(LmOptions {
            params: lm::Params {
                perturbations: of.kicks.unwrap_or(default.params.perturbations),
                products: of.products.unwrap_or(default.params.products),
                spare: of.spare.unwrap_or(default.params.spare),
                ..default.params
            },
            signs: of.free_signs.map(|free| if free { Signs::Free } else { Signs::Positive }),
            turns: of.turns.unwrap_or(default.turns),
            adam_steps: of.adam_steps.or(default.adam_steps),
            ..default
        }),
        Recipe::Anneal(default) => Recipe::Anneal(AnnealOptions {
            params: anneal::Params {
                epochs: of.epochs.unwrap_or(default.params.epochs),
                start_factor: of.start_factor.unwrap_or(default.params.start_factor),
                drop: of.drop.unwrap_or(default.params.drop),
                rate: of.rate.unwrap_or(default.params.rate),
                ..default.params
            },
            validation: of.validation.unwrap_or(default.validation),
            batch: of.batch.or(default.batch),
            ..default
        }),
        recipe => recipe,
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
    fn constant_predictors_score_as_computed_by_hand() {
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
}
