//! Iterative magnitude pruning of cells: one run of levels for all sizes of a network, by each rate.

use std::sync::Mutex;

use super::cell::{Cell, Job};
use super::course::Course;
use super::record::Solved;
use super::spec::{Imp, Metric, Part};
use crate::data::Problem;
use crate::train::dense::imp::Epoch;
use crate::train::dense::{Head, Rates};
use crate::train::imp::{DenseNetwork, train_sizes};
use crate::train::{ImpSettings, Trained, pool, threshold};
use crate::{Error, Result};

/// Trains `cells`, which are alike but for s, on the rows that all of them have; what came of each,
/// with the passes and seconds of a run of its own. Of several rates each takes the one with the
/// least loss on these rows; a cell fails where training diverges before its size, by all of them.
pub(super) fn train(
    job: &Job<'_>,
    cells: &[Cell],
    problem: &Problem,
) -> Result<Vec<Result<Solved>>> {
    let mut sizes: Vec<usize> = cells.iter().map(|cell| cell.s).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let mut best: Vec<Option<Solved>> = vec![None; sizes.len()];
    let mut failed = String::new();
    for settings in settings(job) {
        let mut at = best.iter_mut();
        let done = at_rate(job, &settings, &sizes, problem, &mut |own| {
            if let Some(best) = at.next()
                && best.as_ref().is_none_or(|best| loss(&own) < loss(best))
            {
                *best = Some(own);
            }
        });
        match done {
            Err(error) if error.is_interrupted() => return Err(error),
            // It diverges at this rate.
            Err(error) => failed = error.to_string(),
            Ok(()) => {}
        }
    }
    let of = |cell: &Cell| {
        let at = sizes.iter().position(|&s| s == cell.s);
        let own = at.and_then(|at| best[at].clone());
        own.ok_or_else(|| Error::new(failed.clone()))
    };
    Ok(cells.iter().map(of).collect())
}

fn loss(solved: &Solved) -> f64 {
    solved.train.map_or(f64::INFINITY, |train| train.loss)
}

/// One run of levels; `done` takes what came of each size, in their order.
fn at_rate(
    job: &Job<'_>,
    settings: &ImpSettings,
    sizes: &[usize],
    problem: &Problem,
    done: &mut (dyn FnMut(Solved) + Send),
) -> Result<()> {
    let hidden = vec![job.cell.m; job.part.hidden];
    let network = DenseNetwork { hidden: &hidden, sizes, seed: job.cell.seed };
    let rate = settings.rates.as_ref().map(|rates| (Metric::LearningRate, f64::from(rates.rate)));
    let rows = problem.data.rows as f64;
    // Of the levels that others go on from, and of a size where that has a level of its own.
    let courses = Mutex::new((Course::start(), None::<Course>));
    // Of epochs, a pass forwards and one back.
    let mut observe = |epoch: Epoch| {
        let Ok(mut courses) = courses.lock() else { return };
        let (levels, own) = &mut *courses;
        let course = match epoch.size {
            None => levels,
            Some(_) => own.get_or_insert_with(|| levels.clone()),
        };
        course.see(2.0 * epoch.epoch as f64, epoch.loss);
    };
    let mut record = |mut trained: Trained| {
        if !job.cell.method.is_published_imp() {
            trained = threshold::of_trained(trained, problem)?;
        }
        let Ok(mut courses) = courses.lock() else { return Ok(()) };
        let (levels, own) = &mut *courses;
        let mut solved = own.take().unwrap_or_else(|| levels.clone()).trained(&trained);
        let batch = trained.report.imp().map_or(0, |imp| imp.batch);
        solved.passes = 2.0 * trained.report.steps as f64 * batch as f64 / rows;
        solved.measured.extend(rate);
        done(solved);
        Ok(())
    };
    pool(job.on.threads)?
        .install(|| train_sizes(problem, settings, &network, job.stop, &mut observe, &mut record))
}

/// The settings of a cell, for each of its rates.
fn settings(job: &Job<'_>) -> Vec<ImpSettings> {
    let Job { part, cell, on, .. } = *job;
    let default = ImpSettings {
        head: if cell.method.is_sum() { Head::Sum } else { Head::Weights },
        place: on.dense.clone(),
        ..ImpSettings::default()
    };
    if cell.method.is_published_imp() {
        // As the authors score: right after the last pruning, and on bytes as they are.
        let &Part { epochs, batch, .. } = part;
        return vec![ImpSettings { epochs, batch, retrain: false, raw: true, ..default }];
    }
    let Imp { epochs, batch, prune, .. } = part.imp;
    let rate = |rate: f64| {
        let rates = Some(Rates::constant(rate as f32));
        ImpSettings { epochs, batch, prune, rates, ..default.clone() }
    };
    part.imp.rates().into_iter().map(rate).collect()
}
