//! A dense network that is trained, and what its weights are like layer by layer (J. Qian and D. Klabjan,
//! *A Probabilistic Approach to Neural Network Pruning*, 2021, section on Covertype).

use super::cell::Job;
use super::course::{Course, gpu_name};
use super::problem::Set;
use super::record::{Quality, Solved};
use super::spec::Metric;
use crate::lab::plot::{Bins, Histogram};
use crate::model::WeightStats;
use crate::train::dense::Head;
use crate::train::dense::Rates;
use crate::train::dense::imp::{Epoch, imp};
use crate::train::dense::job::ImpJob;
use crate::train::dense::pass::Measure;
use crate::train::{Budget, ImpSettings, pool};
use crate::{Error, Result};

/// Bins of a histogram.
const COUNT: usize = 80;
/// Ends of the histograms, in standard deviations of a layer.
const WIDE: f64 = 4.0;

/// Trains the network by Adam with the settings of the part's `imp`, and measures its weights.
pub(super) fn measure(job: &Job<'_>, set: Set) -> Result<Solved> {
    let Job { part, cell, on, stop } = *job;
    let Set { train, test, .. } = set;
    let hidden = vec![cell.point(part).m; part.hidden];
    let settings = ImpSettings {
        head: Head::Weights,
        epochs: part.imp.epochs,
        batch: part.imp.batch,
        rates: Some(Rates::constant(part.imp.rate as f32)),
        test,
        place: on.dense.clone(),
        ..ImpSettings::default()
    };
    let all = Budget::density(1.0);
    let own = ImpJob::new(&train, &settings, all, &hidden, cell.seed)?;
    let mut course = Course::start();
    let rows = train.data.rows as f64;
    let mut observe = |Epoch { epoch, loss, .. }: Epoch| {
        course.see(2.0 * epoch as f64, loss);
        true
    };
    let done = pool(on.threads)?.install(|| imp(&train, &own, None, stop, &mut observe))?;
    let level = done.levels.last().ok_or_else(Error::interrupted)?;
    let layers: Vec<&[f32]> = own.shape.layers().map(|layer| &done.weights[layer.range]).collect();
    let stats: Vec<WeightStats> = layers.iter().filter_map(|w| WeightStats::of(w)).collect();
    let quality = |of: &Measure| Quality { loss: of.loss, psnr_db: None, accuracy: of.accuracy() };
    let test = level.test.as_ref().map(quality);
    let accuracy = test.and_then(|test| test.accuracy).map(|of| (Metric::Accuracy, of));
    let inner = stats.get(1..stats.len().saturating_sub(1)).unwrap_or(&[]);
    let variance = inner.iter().map(|of| of.variance).reduce(f64::max);
    let claimed = hidden.first().map(|&width| (Metric::VarianceForm, 3.0 / width as f64));
    let measured = accuracy.into_iter().chain(variance.map(|of| (Metric::InnerVariance, of)));
    let count = |(at, (weights, of)): (usize, (&&[f32], &WeightStats))| {
        let half = WIDE * of.variance.sqrt().max(f64::MIN_POSITIVE);
        let bins = Bins { low: of.mean - half, high: of.mean + half, count: COUNT, log: false };
        Histogram::of(&format!("layer {}", at + 1), bins, weights.iter().copied())
    };
    Ok(Solved {
        measured: measured.chain(claimed).collect(),
        histograms: layers.iter().zip(&stats).enumerate().map(count).collect(),
        nnz: own.nnz,
        train: Some(quality(&level.train)),
        test,
        layers: stats,
        data_bytes: train.bytes() as u64,
        device: gpu_name(on.dense.name()),
        passes: 2.0 * done.steps as f64 * own.rows(train.data.rows) as f64 / rows,
        ..course.ended(None)
    })
}
