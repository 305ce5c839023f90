//! The accuracy of networks that are trained under masks at initialisation, beside sparse training
//! with as many weights.

use std::ops::ControlFlow;

use tamis::base::dims::Dims;
use tamis::network::mask::initial::Initial;
use tamis::network::mask::select::Choice;

use super::cell::Job;
use super::course::Course;
use super::problem::Set;
use super::record::{Quality, Solved};
use super::solve::{constant, own_recipe};
use super::spec::{Inputs, MaskSpec, MaskedData, Method, Metric, ScoreData, Variant};
use crate::data::{Problem, Task, Values};
use crate::mask::{
    self, MaskOptions, RandomData, RandomSize, ReportedMask, RowsNeeded, ScoredRows, SourceNetwork,
};
use crate::model::score_model;
use crate::train::masked::MaskedSettings;
use crate::train::{Budget, Options, Recipe, Scale, Start, pool, train_with};
use crate::{Error, Result};

/// Training rows, or random ones, that weights are scored on.
const ROWS: usize = 256;

/// Trains the s weights of a mask, or s weights by the default recipe, and tests the network.
pub(super) fn measure(data: &MaskedData, job: &Job<'_>, set: Set) -> Result<Solved> {
    let Set { mut train, test, .. } = set;
    let mut test = test.ok_or_else(|| {
        Error::new("there are no rows to test on").expected("data.test of 1 or more").got("0")
    })?;
    if data.inputs == Inputs::Standardised {
        standardise(&mut train, &mut test);
    }
    let data_bytes = train.bytes() as u64;
    let variant = job.part.variant(job.cell.point(job.part));
    let mut solved = match (variant.mask, variant.neurons) {
        (Some(mask), None) => {
            pool(job.on.threads)?.install(|| by_mask(data, &mask, job, train, &test))?
        }
        _ => sparse(data, &variant, job, train)?,
    };
    if let Some(model) = solved.model.take() {
        solved.test = Some(Quality::of(&score_model(&model, &test)?));
    }
    solved.data_bytes = data_bytes;
    Ok(solved)
}

/// Sparse training of one hidden layer: from a start of its own, or from a mask of as many weights
/// as its first support has.
fn sparse(data: &MaskedData, variant: &Variant, job: &Job<'_>, train: Problem) -> Result<Solved> {
    let neurons = variant.neurons.unwrap_or(1);
    let (hidden, budget) = (vec![neurons], Budget::nnz(job.cell.s));
    let recipe = own_recipe(variant, Recipe::layered(train.task, &hidden, budget, false));
    let course = Course::start();
    let start = variant.mask.map(|mask| {
        let widths = [784, neurons, 10];
        let dims = Dims::new(train.data.rows, 784, neurons, job.cell.s);
        let first = match &recipe {
            Recipe::Anneal(anneal) => anneal.params.start(dims, 10),
            _ => job.cell.s,
        };
        let initial = Initial { seed: job.cell.seed, law: data.initial.into() };
        let network = SourceNetwork::from_seed(&widths, initial)?;
        let rows = rows(&mask, &train, job.cell.seed)?;
        let options = mask_options(&mask, first, job.cell.seed);
        let found = pool(job.on.threads)?
            .install(|| mask::find(&network, &options, rows.as_ref(), job.stop, |_| ()))?;
        let mut start = network.start(found.mask)?;
        // Activations of about the size that they have in the dense network.
        let scale = (network.net()?.weights() as f32 / first as f32).sqrt();
        start.values.iter_mut().for_each(|value| *value *= scale);
        Ok::<_, Error>(start)
    });
    let start = start.transpose()?;
    let start = start.as_ref().map_or(Start::Zero, Start::Mask);
    job.train_from(train, Options { hidden, recipe, ..Options::new(budget) }, start, course)
}

impl Job<'_> {
    fn train(&self, train: Problem, options: Options, course: Course) -> Result<Solved> {
        self.train_from(train, options, Start::Zero, course)
    }

    fn train_from(
        &self,
        train: Problem,
        options: Options,
        start: Start<'_>,
        mut course: Course,
    ) -> Result<Solved> {
        let options = Options {
            seed: self.cell.seed,
            threads: self.on.threads,
            scale: Scale::None,
            ..options
        };
        let mut steps = 0.0;
        let trained = train_with(train, &options, start, self.stop, |step| {
            steps += 1.0;
            course.see(steps, f64::from(step.loss));
            ControlFlow::Continue(())
        })?;
        Ok(course.trained(&trained))
    }
}

fn by_mask(
    data: &MaskedData,
    mask: &MaskSpec,
    job: &Job<'_>,
    train: Problem,
    test: &Problem,
) -> Result<Solved> {
    let Job { part, cell, on, stop } = *job;
    let initial = Initial { seed: cell.seed, law: data.initial.into() };
    let network = SourceNetwork::from_seed(&data.widths(), initial)?;
    let options = mask_options(mask, cell.s, cell.seed);
    let rows = rows(mask, &train, cell.seed)?.map(|rows| rows.on(on.dense.clone()));
    let mut course = Course::start();
    let found = mask::find(&network, &options, rows.as_ref(), stop, |_| ())?;
    course.see(0.0, f64::NAN);
    let mut measured = vec![
        (Metric::MaskSeconds, found.report.seconds),
        (Metric::MaskState, found.report.state_bytes as f64),
        (Metric::CollapsedLayers, found.report.collapsed.len() as f64),
        (Metric::DeadWeights, dead_weights(&found) as f64),
    ];
    let is_synflow = mask.method == mask::Method::Synflow;
    let compared = is_synflow && found.report.memoryless && !mask.sample;
    let kept = found.mask.clone();
    let nnz = kept.index().len();
    let mut all = if found.mask.collapsed().is_some() {
        // Its outputs are 0 for every row.
        let nothing = constant(Method::Zero, &train, Some(test));
        Solved { train: nothing.train, test: nothing.test, ..course.ended(None) }
    } else {
        let start = network.start(found.mask)?;
        let hidden = data.hidden.clone();
        let place = on.dense.clone();
        let settings = MaskedSettings { epochs: part.epochs, place, ..MaskedSettings::new(start) };
        let recipe = Recipe::Masked(settings);
        job.train(train, Options { hidden, recipe, ..Options::new(Budget::nnz(nnz)) }, course)?
    };
    if compared {
        let options = MaskOptions { exact: true, rounds: None, ..options };
        let exact = mask::find(&network, &options, rows.as_ref(), stop, |_| ())?.mask;
        let shared = kept.index().iter().filter(|at| exact.index().binary_search(at).is_ok());
        measured.push((Metric::Overlap, shared.count() as f64 / nnz as f64));
    }
    all.measured.extend(measured);
    all.nnz = nnz;
    Ok(all)
}

fn mask_options(mask: &MaskSpec, nnz: usize, seed: u64) -> MaskOptions {
    let default = MaskOptions::new(mask.method, Budget::nnz(nnz));
    MaskOptions {
        choice: if mask.sample { Choice::Sampled } else { Choice::Largest },
        rounds: mask.rounds,
        input: mask.input,
        seed,
        exact: mask.exact,
        epochs: mask.epochs.unwrap_or(default.epochs),
        ..default
    }
}

fn dead_weights(found: &ReportedMask) -> usize {
    found.report.layers.iter().map(|layer| layer.dead_weights).sum()
}

/// What the weights are scored on: of training rows those that lie evenly over all.
fn rows(mask: &MaskSpec, train: &Problem, seed: u64) -> Result<Option<ScoredRows>> {
    if mask.method.needs() == RowsNeeded::None {
        let all = mask.input.needs_rows();
        return all.then(|| ScoredRows::unlabelled(train.data.clone(), None)).transpose();
    }
    let n = train.data.rows;
    let count = if mask.method == mask::Method::Imp { n } else { ROWS.min(n) };
    let chosen = (0..count).map(|k| k * n / count).collect();
    let own = ScoredRows::labelled(train.clone().rows(chosen)?, None)?;
    let kind = match mask.rows {
        ScoreData::Data => return Ok(Some(own)),
        ScoreData::Random => RandomData::Normal,
        ScoreData::Sparse => RandomData::Sparse,
    };
    let size = RandomSize { rows: ROWS, inputs: train.data.cols, outputs: 10 };
    ScoredRows::random(kind, Some(&own), size, Task::Multiclass, seed).map(Some)
}

/// Takes the mean of all training pixels off every pixel, and divides by their standard deviation.
fn standardise(train: &mut Problem, test: &mut Problem) {
    let taken = |of: &mut Problem| {
        std::mem::replace(&mut of.data.values, Values::F32(Vec::new())).into_f32()
    };
    let mut values = taken(train);
    let n = values.len().max(1) as f64;
    let mean = values.iter().map(|&x| f64::from(x)).sum::<f64>() / n;
    let square = values.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n;
    let deviation = square.sqrt().max(f64::MIN_POSITIVE);
    let change = |x: &mut f32| *x = ((f64::from(*x) - mean) / deviation) as f32;
    values.iter_mut().for_each(change);
    train.data.values = Values::F32(values);
    let mut values = taken(test);
    values.iter_mut().for_each(change);
    test.data.values = Values::F32(values);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Matrix;

    #[test]
    fn standardised_pixels_have_mean_0_and_deviation_1() {
        let problem = |bytes: Vec<u8>| {
            let data = Matrix::new(2, 2, Values::U8(bytes)).unwrap();
            Problem { data, labels: vec![0.0, 1.0], task: Task::Multiclass }
        };
        let (mut train, mut test) = (problem(vec![0, 0, 20, 20]), problem(vec![10, 30, 0, 10]));
        standardise(&mut train, &mut test);
        assert_eq!(train.data.values, Values::F32(vec![-1.0, -1.0, 1.0, 1.0]));
        assert_eq!(test.data.values, Values::F32(vec![0.0, 2.0, -1.0, 0.0]));
    }
}
