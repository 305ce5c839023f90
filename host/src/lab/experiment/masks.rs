//! Which weights of an untrained network masks keep (N. Bar and R. Giryes, arXiv 2305.17559, figures
//! 1 and 2): their initial magnitudes, and the scores that `SynFlow` gives them in the dense network.

use tamis::network::mask::select::Choice;

use super::cell::{Cell, Job};
use super::course::Course;
use super::problem::Set;
use super::record::Solved;
use super::spec::{Method, Metric};
use crate::Result;
use crate::data::Problem;
use crate::lab::plot::{Bins, Histogram};
use crate::mask::{self, DenseLayers, InitialWeights, MaskOptions, SourceNetwork};
use crate::model::LayerName;
use crate::operator::Stop;
use crate::train::dense::DenseNet;
use crate::train::dense::Head;
use crate::train::dense::imp::imp;
use crate::train::dense::job::ImpJob;
use crate::train::dense::scores::synflow;
use crate::train::dense::shape::Shape;
use crate::train::{Budget, ImpSettings, pool};

/// Bins of a histogram.
const COUNT: usize = 60;

/// Measures what a mask of s weights keeps. The data are for masks that take training.
pub(super) fn measure(job: &Job<'_>, set: &Set) -> Result<Solved> {
    let Job { part, cell, on, stop } = *job;
    let hidden = part.data.hidden();
    let outputs = set.train.network_outputs();
    let shape = Shape::new(set.train.data.cols, hidden, outputs, Head::Weights)?;
    let weights = shape.initial(cell.seed);
    let net = DenseNet { shape: &shape, weights: &weights };
    let mut course = Course::start();
    let mask = pool(on.threads)?.install(|| match cell.method {
        Method::KeptImp => by_imp(job, &set.train, hidden),
        _ => by_weights(net, cell, stop),
    })?;
    course.see(0.0, f64::NAN);
    let scores = synflow(net, &vec![1.0; shape.inputs()]);
    let magnitudes: Vec<f32> = weights.iter().map(|w| w.abs()).collect();
    let kept = |of: &[f32]| -> Vec<f32> {
        of.iter().zip(&mask).filter(|(_, kept)| **kept).map(|(value, _)| *value).collect()
    };
    let count = |values: &[f32], log: bool| {
        let own = kept(values);
        let [label, all] = ["kept", "all weights"];
        let bins = bins(values, log);
        [Histogram::of(label, bins, own), Histogram::of(all, bins, values.iter().copied())]
    };
    let mean = |of: &[f32]| of.iter().map(|&x| f64::from(x)).sum::<f64>() / of.len() as f64;
    let measured = [
        (Metric::KeptMagnitude, mean(&kept(&magnitudes)) / mean(&magnitudes)),
        (
            Metric::KeptScore,
            kept(&scores).iter().map(|&x| f64::from(x)).sum::<f64>()
                / scores.iter().map(|&x| f64::from(x)).sum::<f64>(),
        ),
    ];
    Ok(Solved {
        measured: measured.into_iter().collect(),
        histograms: [count(&magnitudes, false), count(&scores, true)].concat(),
        nnz: mask.iter().filter(|kept| **kept).count(),
        ..course.ended(None)
    })
}

/// From 0, or on a logarithmic axis from the least, to the largest of all values.
fn bins(values: &[f32], log: bool) -> Bins {
    let high = values.iter().fold(0.0_f32, |top, &x| top.max(x)).into();
    let least = values.iter().copied().filter(|&x| x > 0.0).fold(f32::INFINITY, f32::min);
    // Products of several small weights reach far down, and are few.
    let low = if log { f64::from(least).max(high * 1e-6) } else { 0.0 };
    Bins { low, high, count: COUNT, log }
}

fn by_imp(of: &Job<'_>, train: &Problem, hidden: &[usize]) -> Result<Vec<bool>> {
    let Job { part, cell, on, stop } = *of;
    let settings = ImpSettings {
        epochs: part.imp.epochs,
        batch: part.imp.batch,
        prune: part.imp.prune,
        place: on.dense.clone(),
        ..ImpSettings::default()
    };
    let job = ImpJob::new(train, &settings, Budget::nnz(cell.s), hidden, cell.seed)?;
    Ok(imp(train, &job, None, stop, &mut |_| true)?.mask)
}

/// A mask of the weights by themselves.
fn by_weights(net: DenseNet<'_>, cell: &Cell, stop: &Stop) -> Result<Vec<bool>> {
    let DenseNet { shape, weights } = net;
    let widths = [&[shape.inputs()], shape.hidden(), &[shape.outputs()]].concat();
    let (weights, layers) = (weights.to_vec(), widths.len() - 1);
    let mut mask = vec![false; weights.len()];
    let dense = DenseLayers { weights, biases: vec![Vec::new(); layers] };
    let (names, weights) = (LayerName::numbered(layers), InitialWeights::Dense(dense));
    let network = SourceNetwork { names, widths, weights, skipped: Vec::new() };
    let (method, choice) = match cell.method {
        Method::KeptUniform => (mask::Method::Random, Choice::Largest),
        Method::KeptSampled => (mask::Method::Synflow, Choice::Sampled),
        _ => (mask::Method::Synflow, Choice::Largest),
    };
    let default = MaskOptions::new(method, Budget::nnz(cell.s));
    let options = MaskOptions { choice, seed: cell.seed, ..default };
    let found = mask::find(&network, &options, None, stop, |_| ())?.mask;
    found.index().iter().for_each(|&index| mask[index as usize] = true);
    Ok(mask)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Matrix, Task, Values};
    use crate::lab::experiment::Spec;
    use crate::lab::experiment::cell::Place;
    use crate::operator::CPU;
    use crate::train::dense::DensePlace;

    const METHODS: [&str; 4] = ["kept-synflow", "kept-sampled", "kept-imp", "kept-uniform"];

    fn solve(method: &str) -> Solved {
        let text = format!(
            "name='t'\ntitle='t'\nsource='t'\n[[part]]\nname='p'\ntitle='p'\ns=[200]\nmethods={METHODS:?}\n\
             seeds=[3]\nmetric='kept-magnitude'\nrange=[0,1]\nimp={{epochs=1,batch=20,prune=0.5}}\n\
             data={{kind='masks',from='digits',hidden=[30,20],train=6}}\n"
        );
        let spec = Spec::parse(&text, None).unwrap();
        let (rows, d) = (60, 40);
        let values = (0..rows * d).map(|e| (e * 7919 % 251) as u8).collect();
        let data = Matrix::new(rows, d, Values::U8(values)).unwrap();
        let labels = (0..rows).map(|row| (row % 10) as f32).collect();
        let train = Problem { data, labels, task: Task::Multiclass };
        let set = Set::new(train, None);
        let cell = spec.cells().into_iter().find(|cell| cell.method.name() == method).unwrap();
        let on = Place { device: &CPU, dense: &DensePlace::default(), threads: 1 };
        let job = Job { part: &spec.part[0], cell: &cell, on, stop: &Stop::new() };
        measure(&job, &set).unwrap()
    }

    #[test]
    fn every_mask_keeps_s_weights_and_counts_all() {
        for method in METHODS {
            let solved = solve(method);
            assert_eq!(solved.nnz, 200, "{method}");
            let total = |of: &Histogram| of.counts.iter().sum::<u64>() + of.outside;
            let totals: Vec<u64> = solved.histograms.iter().map(total).collect();
            // 40·30 + 30·20 + 20·10 weights.
            assert_eq!(totals, [200, 2000, 200, 2000], "{method}");
        }
    }

    #[test]
    fn scores_keep_larger_weights_than_chance() {
        let kept = METHODS.map(|method| solve(method).measured[&Metric::KeptMagnitude]);
        assert!(kept[..3].iter().all(|kept| *kept > 1.3), "{kept:?}");
        assert!((kept[3] - 1.0).abs() < 0.2, "{kept:?}");
    }

    /// Each round keeps the k largest of the layer as often as their scores say, so that small
    /// scores remain in the sample and none of them in the largest.
    #[test]
    fn samples_keep_small_scores_too() {
        let least = |method: &str| {
            let scores = &solve(method).histograms[2];
            scores.counts.iter().position(|&count| count > 0).unwrap()
        };
        assert!(least("kept-sampled") < least("kept-synflow"));
    }
}
