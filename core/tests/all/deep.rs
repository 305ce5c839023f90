//! Networks of several hidden layers: built layer by layer from the recipes, and fitted together.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by it"
)]

use core::ops::ControlFlow::Continue;
use tamis::base::budget::gated_words;
use tamis::base::dims::Dims;
use tamis::base::error::Error;
use tamis::base::rng::Rng;
use tamis::data::samples::Rows;
use tamis::learn::deep::{Head, MAX_LAYERS, Stack, StackedRows, share, tune};
use tamis::learn::loss::Labels;
use tamis::learn::start::{Start, continue_if};
use tamis::learn::train::{self, Schedule};
use tamis::network::gates::Signs;
use tamis::network::weights::Weights;
use tamis::operator::gated::Gated;
use tamis::operator::sensing::Sensing;

pub(crate) const D: usize = 6;
pub(crate) const N: usize = 120;

pub(crate) fn rows(seed: u64) -> Vec<f32> {
    let mut x = vec![0.0; N * D];
    Rng::new(seed, 0).fill_normal(&mut x);
    x
}

/// A network of two hidden layers, five and four neurons, ended by `end`; its weights are those of
/// `seed`.
pub(crate) fn network<'a>(
    seed: u64,
    end: Head<'a>,
    index: &'a mut [u32],
    value: &'a mut [f32],
) -> Stack<'a> {
    let mut rng = Rng::new(seed, 1);
    let mut some = |inputs: usize, neurons: usize, every: usize| -> (Vec<u32>, Vec<f32>) {
        let index: Vec<u32> = (0..(inputs * neurons) as u32).step_by(every).collect();
        let value = index.iter().map(|_| rng.normal()).collect();
        (index, value)
    };
    let (first, second, last) = (some(D, 5, 2), some(5, 4, 2), some(3, 4, 1));
    let mut stack = Stack::new(D, index, value);
    stack.push(Weights::new(D, 5, &first.0, &first.1).unwrap(), Signs::Positive).unwrap();
    stack.push(Weights::new(5, 4, &second.0, &second.1).unwrap(), Signs::Positive).unwrap();
    match end {
        Head::Open => {}
        Head::Sum(signs) => stack.end_sum(signs).unwrap(),
        Head::Weights(_) => {
            stack.end_weights(Weights::new(3, 4, &last.0, &last.1).unwrap()).unwrap();
        }
    }
    stack
}

/// Outputs of all rows in double precision.
pub(crate) fn outputs(x: &[f32], stack: &Stack<'_>) -> Vec<f64> {
    let layers: Vec<Weights<'_>> = stack.layers().collect();
    let mut all = Vec::new();
    for row in x.chunks(D) {
        let mut a: Vec<f64> = row.iter().map(|&x| f64::from(x)).collect();
        for w in &layers[..2] {
            let mut next = vec![0.0; w.hidden()];
            for block in w.blocks() {
                next[block.neuron()] =
                    block.entries().map(|(j, v)| f64::from(v) * a[j]).sum::<f64>().max(0.0);
            }
            a = next;
        }
        match stack.head() {
            Head::Open => all.extend(a),
            Head::Sum(signs) => {
                all.push(
                    a.iter()
                        .enumerate()
                        .map(|(i, a)| {
                            if signs.first().is_some_and(|bits| bits >> i & 1 == 1) {
                                -a
                            } else {
                                *a
                            }
                        })
                        .sum(),
                );
            }
            Head::Weights(c) => {
                let mut out = vec![0.0; c];
                for block in layers[2].blocks() {
                    block.entries().for_each(|(k, v)| out[k] += f64::from(v) * a[block.neuron()]);
                }
                all.extend(out);
            }
        }
    }
    all
}

pub(crate) fn mean_square(a: &[f64], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - f64::from(*b)).powi(2)).sum::<f64>() / b.len() as f64
}

#[test]
fn predictions_are_those_of_the_layers() {
    let x = rows(1);
    for end in [Head::Open, Head::Sum(&[]), Head::Sum(&[0b1010]), Head::Weights(3)] {
        let (mut index, mut value) = ([0; 64], [0.0; 64]);
        let stack = network(2, end, &mut index, &mut value);
        let c = stack.outputs();
        let expected = outputs(&x, &stack);
        let mut scratch = vec![f32::NAN; stack.activations()];
        let mut out = vec![f32::NAN; c];
        for (row, expected) in x.chunks(D).zip(expected.chunks(c)) {
            stack.predict(row, &mut scratch, &mut out).unwrap();
            assert!(
                out.iter().zip(expected).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-5),
                "{end:?}"
            );
        }
        let wrong = stack.predict(&x[..D - 1], &mut scratch, &mut out);
        assert!(matches!(wrong, Err(Error::Length { what: "row", .. })));
    }
}

#[test]
fn refused_layers_leave_stack_unchanged() {
    let (mut index, mut value) = ([0; 8], [0.0; 8]);
    let mut stack = Stack::new(D, &mut index, &mut value);
    let full: Vec<u32> = (0..9).collect();
    let wide = Weights::new(D + 1, 2, &[0], &[1.0]).unwrap();
    assert!(matches!(stack.end_sum(&[]), Err(Error::Range { .. })));
    assert!(matches!(stack.push(wide, Signs::Positive), Err(Error::Length { .. })));
    let many = Weights::new(D, 2, &full, &[1.0; 9]).unwrap();
    assert!(matches!(
        stack.push(many, Signs::Positive),
        Err(Error::Length { expected: 9, got: 8, .. })
    ));
    assert_eq!((stack.nnz(), stack.width(), stack.outputs()), (0, D, D));
    stack.push(Weights::new(D, 2, &[0, 7], &[1.0, 2.0]).unwrap(), Signs::Balanced).unwrap();
    assert_eq!(stack.values(), [1.0, -2.0], "signs are taken out of the weights");
    let three = Weights::new(1, 3, &[0], &[1.0]).unwrap();
    assert!(matches!(stack.end_weights(three), Err(Error::Length { .. })));
    stack.end_sum(&[]).unwrap();
    let two = Weights::new(2, 2, &[0], &[1.0]).unwrap();
    assert!(matches!(stack.push(two, Signs::Positive), Err(Error::Range { .. })));
    assert!(matches!(stack.end_sum(&[]), Err(Error::Range { .. })));
    let x = rows(1);
    let mut scratch = [0.0; 16];
    let ended = StackedRows::new(Rows::new(&x, D).unwrap(), &stack, &mut scratch);
    assert!(matches!(ended, Err(Error::Range { .. })), "rows do not go through outputs");
    // At most so many layers, with one left for the outputs.
    let (mut index, mut value) = ([0; 8], [0.0; 8]);
    let mut stack = Stack::new(1, &mut index, &mut value);
    for _ in 1..MAX_LAYERS {
        stack.push(Weights::new(1, 1, &[0], &[1.0]).unwrap(), Signs::Positive).unwrap();
    }
    assert!(matches!(stack.push(Weights::empty(1, 1), Signs::Positive), Err(Error::Range { .. })));
}

#[test]
fn a_first_step_follows_the_gradient() {
    let x = rows(3);
    let noise: Vec<f32> = rows(4);
    for end in [Head::Sum(&[0b1010]), Head::Weights(3)] {
        let (mut index, mut value) = ([0; 64], [0.0; 64]);
        let mut stack = network(5, end, &mut index, &mut value);
        let labels = &noise[..N * stack.outputs()];
        let before: Vec<f32> = stack.values().to_vec();
        // The loss falls along the step as far as its slope says, the slope being the sum of |g|
        // step.
        let slopes: Vec<f64> = (0..before.len())
            .map(|at| {
                let mut side = |change: f32| {
                    stack.values_mut()[at] = before[at] + change;
                    let loss = mean_square(&outputs(&x, &stack), labels);
                    stack.values_mut()[at] = before[at];
                    loss
                };
                (side(1e-3) - side(-1e-3)) / 2e-3
            })
            .collect();
        let params = tune::Params { epochs: 1, batch: N, rate: 1e-4, seed: 0 };
        let mut memory =
            vec![u32::MAX; tune::words(stack.nnz(), stack.activations(), stack.outputs())];
        let mut samples = Rows::new(&x, D).unwrap();
        let info = tune::run(
            &mut samples,
            Labels::Values(labels),
            &mut stack,
            &params,
            &mut memory,
            |_| Continue(()),
        );
        let info = info.unwrap();
        assert!(info.loss < info.before && info.epochs == 1);
        assert!((f64::from(info.loss) - mean_square(&outputs(&x, &stack), labels)).abs() < 1e-5);
        for ((new, old), slope) in stack.values().iter().zip(&before).zip(&slopes) {
            if slope.abs() > 1e-3 {
                assert!(
                    f64::from(new - old) * slope < 0.0,
                    "{end:?}: {old} to {new}, slope {slope}"
                );
            }
        }
    }
}

/// A batch over all rows by Adam's first step moves each weight by the rate times the layer's size,
/// so the gradient's size does not show: classes are checked by what they lead to.
#[test]
fn classes_are_told_apart_better_after_than_before() {
    let x = rows(6);
    let (mut index, mut value) = ([0; 64], [0.0; 64]);
    let planted = network(7, Head::Weights(3), &mut index, &mut value);
    let classes: Vec<u16> = outputs(&x, &planted)
        .chunks(3)
        .map(|o| (0..3).max_by(|a, b| o[*a].total_cmp(&o[*b])).unwrap() as u16)
        .collect();
    let (mut index, mut value) = ([0; 64], [0.0; 64]);
    let mut stack = network(8, Head::Weights(3), &mut index, &mut value);
    let params = tune::Params { epochs: 60, batch: 16, rate: 0.05, seed: 1 };
    let mut memory = vec![0; tune::words(stack.nnz(), stack.activations(), 3)];
    let mut seen = 0;
    let info = tune::run(
        &mut Rows::new(&x, D).unwrap(),
        Labels::classes(&classes, 3),
        &mut stack,
        &params,
        &mut memory,
        |p| {
            seen += 1;
            assert!(p.epoch == seen && p.best <= p.loss);
            continue_if(seen < 50)
        },
    )
    .unwrap();
    assert!(info.stopped && info.epochs == 50 && info.loss < 0.5 * info.before, "{info:?}");
}

#[test]
fn layerwise_network_is_no_worse_after_tuning() {
    let x = rows(9);
    let (mut index, mut value) = ([0; 64], [0.0; 64]);
    let planted = network(10, Head::Sum(&[]), &mut index, &mut value);
    let labels: Vec<f32> = outputs(&x, &planted).iter().map(|&y| y as f32).collect();
    let (s, widths) = (30, [8, 5]);
    let (mut index, mut value) = (vec![0; s], vec![0.0; s]);
    let mut stack = Stack::new(D, &mut index, &mut value);
    for (l, &m) in widths.iter().enumerate() {
        let d = stack.width();
        let nnz = share(s, &[D * widths[0], widths[0] * widths[1]], l, stack.nnz());
        let mut scratch = vec![0.0; stack.activations()];
        let below = StackedRows::new(Rows::new(&x, D).unwrap(), &stack, &mut scratch).unwrap();
        let mut row = vec![0.0; gated_words(d, m)];
        let mut sensing = Gated::new(below, m, 1, &mut row).unwrap();
        let schedule = Schedule::PAPER;
        let budget = schedule.budget(Dims::new(N, d, m, nnz), sensing.panel(), sensing.scratch(N));
        let mut memory = vec![0; budget.words()];
        let found = train::run(
            &mut sensing,
            Labels::values(&labels),
            nnz,
            Start::Zero,
            &schedule,
            &mut memory,
            |_| Continue(()),
        )
        .unwrap();
        let (index, value) =
            (found.network.w().index().to_vec(), found.network.w().value().to_vec());
        stack.push(Weights::new(d, m, &index, &value).unwrap(), Signs::Positive).unwrap();
    }
    stack.end_sum(&[]).unwrap();
    assert_eq!(stack.nnz(), s);
    let before = mean_square(&outputs(&x, &stack), &labels);
    let mut memory = vec![0; tune::words(s, stack.activations(), 1)];
    let info = tune::run(
        &mut Rows::new(&x, D).unwrap(),
        Labels::values(&labels),
        &mut stack,
        &tune::Params { batch: 20, ..tune::Params::DEFAULT },
        &mut memory,
        |_| Continue(()),
    )
    .unwrap();
    let power = mean_square(&vec![0.0; N], &labels);
    assert!(
        before < 0.5 * power && f64::from(info.loss) < 0.9 * before,
        "{power} {before} {info:?}"
    );
}

#[test]
fn settings_and_labels_out_of_bounds_are_refused() {
    let x = rows(1);
    let mut rows = Rows::new(&x, D).unwrap();
    let (mut index, mut value) = ([0; 64], [0.0; 64]);
    let mut stack = network(2, Head::Sum(&[]), &mut index, &mut value);
    let labels = [1.0; N];
    let kept = stack.values().to_vec();
    let words = tune::words(stack.nnz(), stack.activations(), 1);
    let good = tune::Params::DEFAULT;
    let mut go = |labels: &[f32], params: tune::Params, words: usize| {
        tune::run(
            &mut rows,
            Labels::Values(labels),
            &mut stack,
            &params,
            &mut vec![0; words],
            |_| Continue(()),
        )
        .unwrap_err()
    };
    assert!(matches!(go(&labels, good, words - 1), Error::Budget { .. }));
    assert!(matches!(go(&labels[1..], good, words), Error::Length { .. } | Error::Range { .. }));
    assert!(matches!(go(&[f32::NAN; N], good, words), Error::NotFinite { .. }));
    assert!(matches!(go(&labels, tune::Params { batch: 0, ..good }, words), Error::Range { .. }));
    assert!(matches!(
        go(&labels, tune::Params { rate: f32::NAN, ..good }, words),
        Error::NotFinite { .. }
    ));
    assert_eq!(stack.values(), kept);
    let (mut index, mut value) = ([0; 64], [0.0; 64]);
    let mut open = network(2, Head::Open, &mut index, &mut value);
    let refused = tune::run(
        &mut rows,
        Labels::values(&[0.0; 4 * N]),
        &mut open,
        &good,
        &mut vec![0; 4 * words],
        |_| Continue(()),
    );
    assert!(matches!(refused, Err(Error::Range { .. })));
}

#[test]
fn nan_weights_are_never_accepted_as_better_fit() {
    // Squares of gradients overflow, and their quotient is NaN: every neuron would give 0, which is
    // a finite loss.
    let mut x = rows(318);
    x.iter_mut().for_each(|x| *x *= 1e19);
    let (mut index, mut value) = ([0; 64], [0.0; 64]);
    let mut stack = network(318, Head::Sum(&[0b1010]), &mut index, &mut value);
    let before = stack.values().to_vec();
    let labels: Vec<f32> = rows(319)[..N].to_vec();
    let params = tune::Params { epochs: 3, batch: 50, rate: 0.0, seed: 318 };
    let mut memory = vec![0; tune::words(stack.nnz(), stack.activations(), 1)];
    let mut samples = Rows::new(&x, D).unwrap();
    let goal = Labels::values(&labels);
    let info =
        tune::run(&mut samples, goal, &mut stack, &params, &mut memory, |_| Continue(())).unwrap();
    assert!(info.diverged && !info.stopped && info.loss == info.before, "{info:?}");
    assert_eq!(stack.values(), before);
}
