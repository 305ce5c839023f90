//! Iterative magnitude pruning of cells: one run of levels for all sizes of a network, by each rate.

use super::cell::{Cell, Job};
use super::course::Course;
use super::record::Solved;
use super::spec::{Imp, Metric, Part};
use crate::data::Problem;
use crate::train::dense::imp::Epoch;
use crate::train::dense::{Head, Rates};
use crate::train::imp::{DenseNetwork, train_sizes};
use crate::train::{ImpSettings, Trained, pool};
use crate::{Error, Result};

/// Trains `cells`, which are alike but for s, on the rows that all of them have; what came of each,
/// with the passes and seconds of a run of its own. Of several rates each takes the one with the
/// least loss on these rows.
pub(super) fn train(job: &Job<'_>, cells: &[Cell], problem: &Problem) -> Result<Vec<Solved>> {
    let mut sizes: Vec<usize> = cells.iter().map(|cell| cell.s).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let mut best: Vec<Solved> = Vec::new();
    let mut failed = None;
    for settings in settings(job.part, job.cell) {
        match at_rate(job, &settings, &sizes, problem) {
            Ok(all) if best.is_empty() => best = all,
            Ok(all) => best.iter_mut().zip(all).for_each(|(best, own)| {
                if loss(&own) < loss(best) {
                    *best = own;
                }
            }),
            Err(error) if error.is_interrupted() => return Err(error),
            // It diverges at this rate.
            Err(error) => failed = Some(error),
        }
    }
    if best.is_empty() {
        return Err(failed.unwrap_or_else(Error::interrupted));
    }
    let of = |cell: &Cell| sizes.iter().position(|&s| s == cell.s).map(|at| best[at].clone());
    Ok(cells.iter().filter_map(of).collect())
}

fn loss(solved: &Solved) -> f64 {
    solved.train.map_or(f64::INFINITY, |train| train.loss)
}

/// One run of levels.
fn at_rate(
    job: &Job<'_>,
    settings: &ImpSettings,
    sizes: &[usize],
    problem: &Problem,
) -> Result<Vec<Solved>> {
    let hidden = vec![job.cell.m; job.part.hidden];
    let network = DenseNetwork { hidden: &hidden, sizes, seed: job.cell.seed };
    let mut levels = Course::start();
    let mut own: Vec<(usize, Course)> = Vec::new();
    // Of epochs, a pass forwards and one back.
    let mut observe = |epoch: Epoch| {
        let course = match epoch.size {
            None => &mut levels,
            Some(size) => {
                if own.last().is_none_or(|(last, _)| *last != size) {
                    own.push((size, levels.clone()));
                }
                let Some((_, course)) = own.last_mut() else { return };
                course
            }
        };
        course.see(2.0 * epoch.epoch as f64, epoch.loss);
    };
    let all = pool(job.threads)?
        .install(|| train_sizes(problem, settings, &network, job.stop, &mut observe))?;
    let rate = settings.rates.as_ref().map(|rates| (Metric::LearningRate, f64::from(rates.rate)));
    let rows = problem.data.rows as f64;
    let one = |(trained, size): (&Trained, &usize)| {
        let at = own.iter().position(|(own, _)| own == size);
        let course = at.map_or_else(|| levels.clone(), |at| own[at].1.clone());
        let mut solved = course.trained(trained);
        let batch = trained.report.imp().map_or(0, |imp| imp.batch);
        solved.passes = 2.0 * trained.report.steps as f64 * batch as f64 / rows;
        // Where s has no level of its own, levels below it are others'.
        solved.curve.retain(|&(at, _)| at <= solved.passes.next_up());
        solved.measured.extend(rate);
        solved
    };
    Ok(all.iter().zip(sizes).map(one).collect())
}

/// The settings of a cell, for each of its rates.
fn settings(part: &Part, cell: &Cell) -> Vec<ImpSettings> {
    let default = ImpSettings {
        head: if cell.method.is_sum() { Head::Sum } else { Head::Weights },
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
