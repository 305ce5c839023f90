use proptest::prelude::*;
use tamis::base::rng::Rng;
use tamis::infer::model::{Activation, Csr, Layer, Model, Sum};
use tamis::infer::quantised::Encoding;
use tamis::store::wire::{Choice, Task, View};

use super::ascent::{Predictor, difference};
use super::*;
use crate::data::{Matrix, Values};
use crate::model::{Encodings, Granularity, ModelFile, QuantiseOptions, quantise};

/// Rows of weights of each layer; hidden layers have relu.
pub(super) type Weights = Vec<Vec<Vec<f32>>>;

/// Random weights of layers of these widths, inputs first, some of them 0.
pub(super) fn random(rng: &mut Rng, widths: &[usize]) -> Weights {
    let mut weight = |inputs: usize| match rng.uniform() {
        u if u < 0.3 => 0.0,
        _ => rng.normal() / (inputs as f32).sqrt(),
    };
    let layer = |pair: &[usize], weight: &mut dyn FnMut(usize) -> f32| {
        (0..pair[1]).map(|_| (0..pair[0]).map(|_| weight(pair[0])).collect()).collect()
    };
    widths.windows(2).map(|pair| layer(pair, &mut weight)).collect()
}

/// A model of these weights; `sum` puts a sum of both signs behind a last layer with relu.
pub(super) fn model(weights: &Weights, sum: bool) -> ModelFile {
    model_with(weights, sum, false)
}

/// The same with biases in layers of an even number of inputs.
fn biased(weights: &Weights, sum: bool) -> ModelFile {
    model_with(weights, sum, true)
}

fn model_with(weights: &Weights, sum: bool, biased: bool) -> ModelFile {
    #[derive(Default)]
    struct Flat {
        inputs: usize,
        counts: Vec<u16>,
        columns: Vec<u16>,
        values: Vec<f32>,
        biases: Vec<f32>,
    }
    let flat = |rows: &Vec<Vec<f32>>| {
        let mut flat = Flat { inputs: rows[0].len(), ..Flat::default() };
        for row in rows {
            let entries = || row.iter().enumerate().filter(|(_, w)| **w != 0.0);
            flat.counts.push(entries().count() as u16);
            flat.columns.extend(entries().map(|(column, _)| column as u16));
            flat.values.extend(entries().map(|(_, w)| w));
            // Whatever the order of the entries.
            let bias = row.iter().fold(0.0, |most: f32, &w| most.max(w)) - 0.3;
            flat.biases.extend((biased && row.len().is_multiple_of(2)).then_some(bias));
        }
        flat
    };
    let flats: Vec<Flat> = weights.iter().map(flat).collect();
    let mut layers = Vec::new();
    for (at, flat) in flats.iter().enumerate() {
        let relu = sum || at + 1 < flats.len();
        let activation = if relu { Activation::Relu } else { Activation::Identity };
        let Flat { inputs, counts, columns, values, biases } = flat;
        let csr = Csr::new(*inputs, counts, columns, values, activation).unwrap();
        layers.push(Layer::Csr(csr.with_biases(biases).unwrap()));
    }
    let outputs = weights.last().unwrap().len();
    let signs = [0b10_1010 & ((1 << outputs) - 1)];
    if sum {
        layers.push(Layer::Sum(Sum::new(outputs, &signs).unwrap()));
    }
    let view = View::new(Model::new(&layers).unwrap());
    let view = match view.model().outputs() {
        1 => view.with_task(Task::Binary { threshold: 0.25 }).unwrap(),
        _ => view,
    };
    let mut bytes = vec![0; view.encoded_len()];
    view.encode(&mut bytes).unwrap();
    ModelFile::from_bytes(&bytes).unwrap()
}

/// The same function with the neurons of every hidden layer in the opposite order: only rounding
/// differs.
fn reversed(weights: &Weights) -> Weights {
    let mut weights = weights.clone();
    for at in 0..weights.len() - 1 {
        weights[at].reverse();
        weights[at + 1].iter_mut().for_each(|row| row.reverse());
    }
    weights
}

/// Weights with some dropped and the others moved.
fn pruned(rng: &mut Rng, weights: &Weights) -> Weights {
    let mut weights = weights.clone();
    for w in weights.iter_mut().flatten().flatten() {
        *w = if rng.uniform() < 0.2 { 0.0 } else { *w * (1.0 + 0.05 * rng.normal()) };
    }
    weights
}

pub(super) fn integers(model: &ModelFile, rows: &Matrix, kind: u64) -> Option<ModelFile> {
    let encoding = Encoding::ALL[(kind % 3) as usize];
    let granularity =
        if kind.is_multiple_of(2) { Granularity::PerLayer } else { Granularity::PerNeuron };
    let options = QuantiseOptions {
        choice: Choice::Prefer(encoding),
        granularity: Some(granularity),
        ..Default::default()
    };
    let made = quantise(model, rows, None, &options).ok()?;
    Some(ModelFile::from_bytes(&made.model).unwrap())
}

pub(super) fn rows(rng: &mut Rng, n: usize, cols: usize, scale: f32) -> Matrix {
    let values = (0..n * cols).map(|_| scale * rng.normal()).collect();
    Matrix::new(n, cols, Values::F32(values)).unwrap()
}

/// The same around `far`.
fn rows_at(rng: &mut Rng, n: usize, cols: usize, scale: f32, far: f32) -> Matrix {
    let values = (0..n * cols).map(|_| far + scale * rng.normal()).collect();
    Matrix::new(n, cols, Values::F32(values)).unwrap()
}

/// Of eight kinds of pairs the one that differs by the order of sums alone.
const REVERSED: u64 = 1;

/// Two models of one shape: floats and floats, floats and integers, integers and integers, which rows
/// around `far` were read by.
fn pair(rng: &mut Rng, kind: u64, widths: &[usize], sum: bool, far: f32) -> Option<[ModelFile; 2]> {
    let weights = random(rng, widths);
    let (a, other) = (biased(&weights, sum), biased(&pruned(rng, &weights), sum));
    let data = rows_at(rng, 64, widths[0], 1.0, far);
    let others = rows_at(rng, 64, widths[0], 1.3, far);
    Some(match kind % 8 {
        0 => [a, other],
        REVERSED => [a, biased(&reversed(&weights), sum)],
        2 => [a.encoded(Encodings::Chosen(Choice::Prefer(Encoding::Blocks))).unwrap(), other],
        3 | 4 => {
            let b = integers(&a, &data, kind / 8)?;
            [a, b]
        }
        5 => [integers(&a, &data, kind / 8)?, a],
        6 => [integers(&a, &data, kind / 8)?, integers(&other, &data, kind / 11)?],
        _ => [integers(&a, &data, kind / 8)?, integers(&a, &others, kind / 11)?],
    })
}

fn check(seed: u64, widths: &[usize], sum: bool, eps: f64) -> Result<bool, TestCaseError> {
    let mut rng = Rng::new(seed, 0);
    // Of every third problem far from 0, where floats have few digits left.
    let far = if seed.is_multiple_of(3) { 10.0_f32.powf(6.0 * rng.uniform()) } else { 0.0 };
    let Some([a, b]) = pair(&mut rng, seed, widths, sum, far) else { return Ok(false) };
    // Wider than what integers were calibrated to.
    let centres = rows_at(&mut rng, 2, widths[0], 2.0, far);
    let boxes = Boxes::Around { rows: &centres, eps, range: None, held: &[] };
    let options = CertifyOptions { seed, starts: 3 };
    let report = certify(&a, &b, &boxes, Some(&centres), options, &|| ()).unwrap();
    let (opened_a, opened_b) = (a.open().unwrap(), b.open().unwrap());
    let (mut predict_a, mut predict_b) = (Predictor::new(&opened_a), Predictor::new(&opened_b));
    let Values::F32(values) = &centres.values else { unreachable!() };
    let classes = super::fresh::Classes::of(&a).unwrap();
    // Rounding alone may be missed by a search.
    let are_same = seed % 8 == REVERSED;
    for (row, centre) in report.rows.iter().zip(values.chunks(widths[0])) {
        prop_assert!(row.lower <= row.upper, "{row:?}");
        let least = row.spectral.min(row.crown).min(row.difference);
        prop_assert_eq!(row.upper, least);
        for draw in 0..40 {
            let x: Vec<f32> = centre
                .iter()
                .map(|&x| {
                    let u = 2.0 * f64::from(rng.uniform()) - 1.0;
                    let move_by = match draw {
                        0 => 0.0,
                        draw if draw % 2 == 0 => u.signum() * eps,
                        _ => u * eps,
                    };
                    let moved = (f64::from(x) + move_by) as f32;
                    // Rounded into the box.
                    if (f64::from(moved) - f64::from(x)).abs() > eps { x } else { moved }
                })
                .collect();
            predict_a.predict(&x).unwrap();
            predict_b.predict(&x).unwrap();
            let reached = difference(&predict_a.out, &predict_b.out);
            prop_assert!(reached == 0.0 || row.lower > 0.0 || are_same, "{reached} {row:?}");
            let bounds = [row.spectral, row.crown, row.difference];
            prop_assert!(bounds.iter().all(|bound| reached <= *bound), "{reached} {row:?}");
            if row.class_certain == Some(true) {
                let both = [&predict_a.out, &predict_b.out].map(|out| classes.unwrap().class(out));
                prop_assert_eq!(both, [row.class.unwrap(); 2]);
            }
        }
    }
    Ok(report.class_certain.is_some_and(|certain| certain > 0))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_difference_in_a_box_exceeds_a_bound(
        seed in any::<u64>(),
        widths in prop::collection::vec(1_usize..7, 2..5),
        inputs in 1_usize..24,
        sum in any::<bool>(),
        magnitude in -7.0_f64..0.5,
    ) {
        let mut widths = widths;
        widths[0] = inputs;
        check(seed, &widths, sum, 10.0_f64.powf(magnitude))?;
    }
}

#[test]
fn some_classes_are_certain_in_random_networks() {
    let certain = (0..40).filter(|&seed| check(seed, &[8, 6, 3], false, 0.01).unwrap()).count();
    assert!((10..40).contains(&certain), "{certain}");
}

#[test]
fn depths_and_missing_neurons_are_bounded_too() {
    let mut rng = Rng::new(5, 0);
    let a = model(&random(&mut rng, &[4, 6, 3, 2]), false);
    let b = model(&random(&mut rng, &[4, 2, 2]), false);
    let centres = rows(&mut rng, 3, 4, 1.0);
    let boxes = Boxes::Around { rows: &centres, eps: 0.1, range: None, held: &[] };
    for [a, b] in [[&a, &b], [&b, &a]] {
        let report = certify(a, b, &boxes, None, CertifyOptions::default(), &|| ()).unwrap();
        for row in &report.rows {
            assert!(row.lower > 0.1 && row.lower <= row.upper && row.upper < 10.0, "{row:?}");
        }
    }
}

#[test]
fn a_model_is_near_itself_and_its_integers() {
    let mut rng = Rng::new(3, 0);
    let weights = random(&mut rng, &[20, 8, 3]);
    let (a, centres) = (model(&weights, false), rows(&mut rng, 40, 20, 1.0));
    let boxes = Boxes::Around { rows: &centres, eps: 0.02, range: None, held: &[] };
    let ratio = |b: &ModelFile| {
        let report = certify(&a, b, &boxes, None, CertifyOptions::default(), &|| ()).unwrap();
        (report.upper, report.median_ratio)
    };
    let (upper, _) = ratio(&model(&reversed(&weights), false));
    assert!(upper < 2e-5, "rounding alone: {upper}");
    let (upper, median) = ratio(&integers(&a, &centres, 0).unwrap());
    assert!(upper < 0.5 && median.unwrap() < 2.0, "{upper} {median:?}");
}

#[test]
fn integers_are_equal_to_themselves() {
    for (seed, sum) in [(3, false), (4, true), (5, false)] {
        let mut rng = Rng::new(seed, 0);
        let mut weights = random(&mut rng, &[20, 8, 5, 1 + 2 * (seed as usize % 2)]);
        // A neuron that is never active, and one without weights.
        weights[0][2] = vec![0.0; 20];
        let (floats, centres) = (model(&weights, sum), rows(&mut rng, 5, 20, 1.0));
        let boxes = Boxes::Around { rows: &centres, eps: 0.1, range: None, held: &[] };
        let report = |a: &ModelFile, b: &ModelFile| {
            certify(a, b, &boxes, None, CertifyOptions::default(), &|| ()).unwrap()
        };
        for kind in 0..6 {
            let own = integers(&floats, &centres, kind).unwrap();
            let other = ModelFile::from_bytes(own.bytes()).unwrap();
            let found = report(&own, &other);
            assert_eq!((found.upper, found.median_ratio), (0.0, Some(1.0)), "{seed} {kind}");
            assert!(found.rows.iter().all(|row| (row.upper, row.lower) == (0.0, 0.0)));
            // The same integers in another encoding, of the same granularity.
            let other = integers(&floats, &centres, kind + 2).unwrap();
            assert_eq!(report(&own, &other).upper, 0.0, "{seed} {kind}");
        }
        if sum {
            continue;
        }
        // Other granularities are other integers.
        let [own, other] = [0, 1].map(|kind| integers(&floats, &centres, kind).unwrap());
        let found = report(&own, &other);
        assert!(0.0 < found.median_lower && found.median_lower <= found.upper, "{seed}");
    }
}

#[test]
fn layers_in_common_loosen_no_bound() {
    let mut rng = Rng::new(6, 0);
    let weights = random(&mut rng, &[20, 8, 3]);
    let mut other = weights.clone();
    other[1][2][5] += 0.05;
    let centres = rows(&mut rng, 40, 20, 1.0);
    let [a, b] =
        [&weights, &other].map(|weights| integers(&model(weights, false), &centres, 1).unwrap());
    let boxes = Boxes::Around { rows: &centres, eps: 0.1, range: None, held: &[] };
    let report = certify(&a, &b, &boxes, None, CertifyOptions::default(), &|| ()).unwrap();
    // Rounding of hidden neurons is the same in both, and only one output has other weights.
    assert!(report.median_ratio.unwrap() < 1.05, "{:?}", report.median_ratio);
}

#[test]
fn lower_bounds_move_rounding_of_wide_layers() {
    let number = |e: usize| ((e * 7919 + e / 7 * 31 + 202) % 997) as f32 / 498.5 - 1.0;
    let layer = |(l, pair): (usize, &[usize])| {
        let scale = (3.0 / pair[0] as f32).sqrt();
        let weight = |e: usize| scale * number(e + 1000 * l);
        (0..pair[1]).map(|j| (0..pair[0]).map(|i| weight(j * pair[0] + i)).collect()).collect()
    };
    let widths = [400, 300, 100, 1];
    let weights: Weights = widths.windows(2).enumerate().map(layer).collect();
    let values: Vec<f32> = (0..60 * 400).map(|e| number(3 * e + 5)).collect();
    let (a, all) = (model(&weights, false), Matrix::new(60, 400, Values::F32(values)).unwrap());
    let b = quantise(&a, &all, None, &QuantiseOptions::default()).unwrap();
    let b = ModelFile::from_bytes(&b.model).unwrap();
    let centres = all.first(6).unwrap();
    let boxes = Boxes::Around { rows: &centres, eps: 0.02, range: None, held: &[] };
    let report = certify(&a, &b, &boxes, None, CertifyOptions::default(), &|| ()).unwrap();
    // 10.6 where each trial went through the whole network, in about the same time.
    assert!(report.median_ratio.unwrap() < 10.0, "{:?}", report.median_ratio);
}

#[test]
fn held_columns_and_ranges_make_boxes_smaller() {
    let a = model(&vec![vec![vec![1.0, 1.0]]], false);
    let b = model(&vec![vec![vec![2.0, 4.0]]], false);
    let centres = Matrix::new(1, 2, Values::F32(vec![1.0, 1.0])).unwrap();
    let upper = |range, held: &[usize]| {
        let boxes = Boxes::Around { rows: &centres, eps: 0.5, range, held };
        let report = certify(&a, &b, &boxes, None, CertifyOptions::default(), &|| ()).unwrap();
        assert!(report.rows[0].lower > 0.999 * report.upper, "{report:?}");
        report.upper
    };
    // The difference is x_0 + 3 x_1.
    let expected = [
        (upper(None, &[]), 6.0),
        (upper(None, &[1]), 4.5),
        (upper(None, &[0, 1]), 4.0),
        (upper(Some([0.0, 1.25]), &[]), 5.0),
    ];
    for (upper, expected) in expected {
        assert!((expected..expected + 1e-4).contains(&upper), "{upper} {expected}");
    }
    let unit = certify(&a, &b, &Boxes::Unit { held: &[] }, None, CertifyOptions::default(), &|| ())
        .unwrap();
    assert!((4.0..4.0001).contains(&unit.upper), "{unit:?}");
}

#[test]
fn sums_beyond_floats_are_refused() {
    let a = model(&vec![vec![vec![1e30, 1e30]]], false);
    let b = model(&vec![vec![vec![1e30, 2e30]]], false);
    let centres = Matrix::new(1, 2, Values::F32(vec![1e5, 1.0])).unwrap();
    let refused = |eps| {
        let boxes = Boxes::Around { rows: &centres, eps, range: None, held: &[] };
        let report = certify(&a, &b, &boxes, None, CertifyOptions::default(), &|| ());
        report.map_err(|error| error.to_string())
    };
    assert!(refused(1.0).is_ok());
    assert!(refused(1e9).unwrap_err().contains("too large for a 32-bit float"));
    for eps in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e39] {
        assert!(refused(eps).unwrap_err().contains("--eps above 0"), "{eps}");
    }
}
