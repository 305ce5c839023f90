//! Networks of several hidden layers, brought down to fewer weights.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by it"
)]

use crate::deep::{D, N, mean_square, network, outputs, rows};
use core::ops::ControlFlow::{Break, Continue};
use proptest::prelude::*;
use tamis::base::error::Error;
use tamis::base::rng::Rng;
use tamis::data::samples::{Rows, Samples};
use tamis::learn::deep::shrink::{self, Scope};
use tamis::learn::deep::{Head, Stack, share, tune};
use tamis::learn::loss::Labels;
use tamis::network::gates::Signs;
use tamis::network::weights::Weights;

/// All weights that two layers and their outputs may have: those of `planted`, and small ones.
fn full<'a>(
    planted: &Stack<'_>,
    index: &'a mut [u32],
    value: &'a mut [f32],
    seed: u64,
) -> Stack<'a> {
    let mut rng = Rng::new(seed, 3);
    let mut stack = Stack::new(D, index, value);
    for (l, w) in planted.layers().enumerate() {
        let all: Vec<u32> = (0..(w.inputs() * w.hidden()) as u32).collect();
        let own = |j: &u32| w.index().binary_search(j).map_or(0.0, |at| w.value()[at]);
        let values: Vec<f32> = all.iter().map(|j| own(j) + 0.1 * rng.normal()).collect();
        let layer = Weights::new(w.inputs(), w.hidden(), &all, &values).unwrap();
        match (l, planted.head()) {
            (2, _) => stack.end_weights(layer).unwrap(),
            _ => stack.push(layer, Signs::Positive).unwrap(),
        }
    }
    if let Head::Sum(_) = planted.head() {
        stack.end_sum(&[]).unwrap();
    }
    stack
}

/// Support of all layers.
fn support(stack: &Stack<'_>) -> Vec<(usize, u32)> {
    stack.layers().enumerate().flat_map(|(l, w)| w.index().iter().map(move |&j| (l, j))).collect()
}

#[test]
fn full_network_shrinks_to_planted_support() {
    let x = rows(20);
    for end in [Head::Sum(&[]), Head::Weights(3)] {
        let (mut index, mut value) = ([0; 80], [0.0; 80]);
        let planted = network(25, end, &mut index, &mut value);
        let labels: Vec<f32> = outputs(&x, &planted).iter().map(|&y| y as f32).collect();
        let (mut index, mut value) = ([0; 80], [0.0; 80]);
        let mut stack = full(&planted, &mut index, &mut value, 21);
        let (s, c, from) = (planted.nnz(), planted.outputs(), stack.nnz());
        let mut memory = vec![u32::MAX; tune::words(from, stack.activations(), c)];
        let tune = tune::Params { epochs: 40, batch: 12, ..tune::Params::DEFAULT };
        let params = shrink::Params { levels: 6, tune };
        let mut samples = Rows::new(&x, D).unwrap();
        let (mut counts, mut epochs) = (Vec::new(), 0);
        let info = shrink::run(
            &mut samples,
            Labels::values(&labels),
            &mut stack,
            s,
            &params,
            &mut memory,
            |p| {
                epochs += 1;
                assert_eq!(p.level as usize, (epochs - 1) / 40);
                if p.tune.epoch == 1 {
                    counts.push(p.nnz);
                }
                Continue(())
            },
        )
        .unwrap();
        assert_eq!((info.levels, info.epochs as usize, info.stopped), (6, epochs, false));
        let cubic = |level: usize| s + ((from - s) * (6 - level).pow(3)).div_ceil(216);
        assert_eq!(counts, (0..6).map(cubic).collect::<Vec<_>>());
        let power = labels.iter().map(|y| y * y).sum::<f32>() / labels.len() as f32;
        assert!(info.before.unwrap() > 1e-3 * power, "{info:?}");
        tune::run(&mut samples, Labels::values(&labels), &mut stack, &tune, &mut memory, |_| {
            Continue(())
        })
        .unwrap();
        // Weights that the labels hardly show are not found again.
        let (found, wanted) = (support(&stack), support(&planted));
        let right = found.iter().filter(|at| wanted.contains(at)).count();
        assert!(found.len() == s && right + s / 6 >= s, "{end:?}: {right} of {s}");
        let loss = mean_square(&outputs(&x, &stack), &labels);
        assert!(loss < f64::from(1e-3 * power), "{end:?}: {loss:e} of {power:e}");
    }
}

/// What a weight is worth is what it does to the outputs, whatever the scale of its layer.
#[test]
fn layer_scales_do_not_affect_dropped_weights() {
    let x = rows(30);
    let (mut index, mut value) = ([0; 80], [0.0; 80]);
    let planted = network(31, Head::Weights(3), &mut index, &mut value);
    let labels: Vec<f32> = outputs(&x, &planted).iter().map(|&y| y as f32).collect();
    let mut supports = Vec::new();
    for scale in [1.0_f32, 64.0] {
        let (mut index, mut value) = ([0; 80], [0.0; 80]);
        let mut stack = full(&planted, &mut index, &mut value, 32);
        let first = stack.layers().next().unwrap().nnz();
        let second = first + stack.layers().nth(1).unwrap().nnz();
        stack.values_mut()[..first].iter_mut().for_each(|w| *w *= scale);
        stack.values_mut()[first..second].iter_mut().for_each(|w| *w /= scale);
        let mut memory = vec![0; tune::words(stack.nnz(), stack.activations(), 3)];
        let tune = tune::Params { epochs: 0, ..tune::Params::DEFAULT };
        let params = shrink::Params { levels: 2, tune };
        let mut samples = Rows::new(&x, D).unwrap();
        shrink::run(
            &mut samples,
            Labels::values(&labels),
            &mut stack,
            25,
            &params,
            &mut memory,
            |_| Continue(()),
        )
        .unwrap();
        assert_eq!(stack.nnz(), 25);
        supports.push(support(&stack));
    }
    assert_eq!(supports[0], supports[1]);
}

#[test]
fn stopped_run_drops_all_excess_weights_immediately() {
    let x = rows(40);
    let classes: Vec<u16> =
        (0..N).map(|k| (x[k * D] > 0.0) as u16 + (x[k * D + 1] > 1.0) as u16).collect();
    for (c, goal) in [(3, Labels::classes(&classes, 3)), (1, Labels::values(&x[..N]))] {
        let end = if c == 3 { Head::Weights(3) } else { Head::Sum(&[]) };
        let (mut index, mut value) = ([0; 64], [0.0; 64]);
        let mut stack = network(41, end, &mut index, &mut value);
        let mut memory = vec![0; tune::words(stack.nnz(), stack.activations(), c)];
        let mut samples = Rows::new(&x, D).unwrap();
        let mut go = |stack: &mut Stack<'_>, nnz, goal, most| {
            let mut seen = 0;
            shrink::run(
                &mut samples,
                goal,
                stack,
                nnz,
                &shrink::Params::DEFAULT,
                &mut memory,
                |_| {
                    seen += 1;
                    if seen < most { Continue(()) } else { Break(Scope::Run) }
                },
            )
            .unwrap()
        };
        let info = go(&mut stack, 11, goal, 6);
        assert!(
            info.stopped && info.epochs == 6 && info.levels == 2 && stack.nnz() == 11,
            "{info:?}"
        );
        let before = stack.values().to_vec();
        let info = go(&mut stack, 11, Labels::values(&[]), 6);
        assert!(info.levels == 0 && info.before.is_none() && stack.values() == before, "{info:?}");
    }
}

#[test]
fn level_with_stopped_fit_drops_own_weights_only() {
    let x = rows(50);
    let labels: Vec<f32> = x[..3 * N].to_vec();
    let (mut index, mut value) = ([0; 64], [0.0; 64]);
    let mut stack = network(51, Head::Weights(3), &mut index, &mut value);
    let from = stack.nnz();
    let mut memory = vec![0; tune::words(from, stack.activations(), 3)];
    let params =
        shrink::Params { levels: 3, tune: tune::Params { epochs: 4, ..tune::Params::DEFAULT } };
    let mut samples = Rows::new(&x, D).unwrap();
    let mut seen = Vec::new();
    let info = shrink::run(
        &mut samples,
        Labels::values(&labels),
        &mut stack,
        10,
        &params,
        &mut memory,
        |p| {
            seen.push((p.level, p.tune.epoch, p.nnz));
            if p.level == 1 { Break(Scope::Level) } else { Continue(()) }
        },
    )
    .unwrap();
    assert!(!info.stopped && (info.levels, info.epochs, stack.nnz()) == (3, 9, 10), "{info:?}");
    let left = |level: usize| 10 + ((from - 10) * (3 - level).pow(3)).div_ceil(27);
    let expected =
        [(0, 1, left(0)), (0, 2, left(0)), (0, 3, left(0)), (0, 4, left(0)), (1, 1, left(1))];
    assert_eq!((&seen[..5], seen.len(), seen[5]), (&expected[..], 9, (2, 1, left(2))));
}

proptest! {
    /// Shares are used up exactly wherever there is room, and no layer that has room goes without.
    #[test]
    fn shares_add_up(nnz in 1_usize..300, rooms in proptest::collection::vec(1_usize..200, 1..7), less in 0_usize..5) {
        let total: usize = rooms.iter().sum();
        let mut kept = 0;
        for l in 0..rooms.len() {
            let own = share(nnz, &rooms, l, kept);
            prop_assert!(own <= rooms[l]);
            prop_assert!(own > 0 || nnz < rooms.len());
            // A trainer may leave some of its share.
            kept += if l + 1 < rooms.len() { own.saturating_sub(less).max(own.min(1)) } else { own };
        }
        if less == 0 {
            prop_assert_eq!(kept, nnz.min(total));
        }
        prop_assert!(kept <= nnz);
    }

    /// Whatever the numbers, a run ends with finite values or an error, and is never worse than it
    /// was.
    #[test]
    fn any_network_stays_finite(seed in 0_u64..500, size in -30_i32..30, rate in 0.0_f32..100.0) {
        let mut x = rows(seed);
        x.iter_mut().for_each(|x| *x *= 10_f32.powi(size));
        let (mut index, mut value) = ([0; 64], [0.0; 64]);
        let mut stack = network(seed, Head::Sum(&[0b1010]), &mut index, &mut value);
        let labels: Vec<f32> = rows(seed + 1)[..N].to_vec();
        let params = tune::Params { epochs: 3, batch: 50, rate, seed };
        let mut memory = vec![0; tune::words(stack.nnz(), stack.activations(), 1)];
        let mut samples = Rows::new(&x, D).unwrap();
        match tune::run(&mut samples, Labels::values(&labels), &mut stack, &params, &mut memory, |_| Continue(())) {
            Ok(info) => prop_assert!(info.loss <= info.before && stack.values().iter().all(|w| w.is_finite())),
            Err(error) => prop_assert!(matches!(error, Error::Diverged { .. }), "{error}"),
        }
        prop_assert!(samples.samples() == N);
    }

    /// Whatever the numbers, a network is brought down to exactly what is asked for, or there is an
    /// error.
    #[test]
    fn any_network_is_brought_down_exactly(seed in 0_u64..500, size in -30_i32..30, nnz in 0_usize..40, levels in 0_u32..5) {
        let mut x = rows(seed);
        x.iter_mut().for_each(|x| *x *= 10_f32.powi(size));
        let (mut index, mut value) = ([0; 64], [0.0; 64]);
        let mut stack = network(seed, Head::Weights(3), &mut index, &mut value);
        let from = stack.nnz();
        let labels = vec![0.5; 3 * N];
        let params = shrink::Params { levels, tune: tune::Params { epochs: 1, ..tune::Params::DEFAULT } };
        let mut memory = vec![0; tune::words(from, stack.activations(), 3)];
        let mut samples = Rows::new(&x, D).unwrap();
        let goal = Labels::values(&labels);
        match shrink::run(&mut samples, goal, &mut stack, nnz, &params, &mut memory, |_| Continue(())) {
            Ok(_) => {
                prop_assert_eq!(stack.nnz(), nnz.min(from));
                prop_assert!(stack.values().iter().all(|w| w.is_finite()));
            }
            Err(error) => prop_assert!(matches!(error, Error::Diverged { .. }), "{error}"),
        }
    }
}
