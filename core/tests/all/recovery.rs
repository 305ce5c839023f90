//! The recovery recipe: planted networks come back; whatever the data, the result is within its
//! bounds or an error; runs go on from checkpoints to the same bits.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by it"
)]

use crate::shared::Data;
use crate::shared::problem::{Network, Problem};
use proptest::prelude::*;
use tamis::base::budget::Recovery;
use tamis::base::dims::Dims;
use tamis::base::error::Error;
use tamis::base::rng::Rng;
use tamis::learn::lm::{self, Checkpoint, Info, Params, State};
use tamis::network::gates::Signs;
use tamis::network::net;
use tamis::network::weights::Weights;

const SIGNS: [Signs; 3] = [Signs::Positive, Signs::Balanced, Signs::Free];

/// Normal rows, and labels of the network with these neurons: output sign and weights.
fn planted(
    rows: usize,
    inputs: usize,
    blocks: usize,
    neurons: &[(f32, &[(usize, f32)])],
    seed: u64,
) -> Problem {
    let x = crate::shared::normal_rows(rows, inputs, seed);
    let output = |row: &[f32]| -> f32 {
        neurons
            .iter()
            .map(|(v, w)| v * w.iter().map(|&(j, w)| w * row[j]).sum::<f32>().max(0.0))
            .sum()
    };
    let y = x.chunks(inputs).map(output).collect();
    let nnz = neurons.iter().map(|(_, w)| w.len()).sum();
    Problem {
        x,
        y,
        dims: Dims::new(rows, inputs, neurons.len(), nnz),
        outputs: 0,
        second: 0,
        blocks,
    }
}

/// The three-neuron network that most tests plant.
const NEURONS: [(f32, &[(usize, f32)]); 3] = [
    (1.0, &[(0, 1.5), (3, -1.0)]),
    (1.0, &[(1, 0.5), (2, 1.0)]),
    (1.0, &[(4, -1.0), (0, 0.7), (5, 2.0)]),
];

#[test]
fn planted_networks_are_recovered_with_every_sign_constraint() {
    for signs in SIGNS {
        let neurons =
            NEURONS.map(|(v, w)| if w.len() == 2 && signs.both() { (-v, w) } else { (v, w) });
        for seed in 0..4 {
            let problem = planted(400, 8, lm::slots(3, signs), &neurons, seed);
            let params = Params { signs, seed, ..Params::DEFAULT };
            let result = problem.run(&params).unwrap();
            problem.check(&result, &params);
            let (net, info) = result;
            assert!(info.exact, "{signs:?}, seed {seed}: {info:?}");
            let mut found: Vec<(bool, Vec<(usize, i32)>)> = problem
                .net(&net)
                .w()
                .blocks()
                .map(|block| {
                    let v = signs.sign(block.neuron());
                    let round = |(j, w): (usize, f32)| (j, (1000.0 * v * w).round() as i32);
                    (v > 0.0, block.entries().map(round).collect())
                })
                .collect();
            let mut expected: Vec<(bool, Vec<(usize, i32)>)> = neurons
                .iter()
                .map(|(v, w)| {
                    (*v > 0.0, w.iter().map(|&(j, w)| (j, (1000.0 * w).round() as i32)).collect())
                })
                .collect();
            expected.iter_mut().for_each(|(_, w)| w.sort_unstable());
            expected.sort();
            found.sort();
            assert_eq!(found, expected, "{signs:?}, seed {seed}");
        }
    }
}

/// `x_0 - 2 x_1` has no hinge to fold into: it takes a neuron of either sign.
#[test]
fn uncancelled_linear_term_becomes_two_neurons() {
    let w: &[(usize, f32)] = &[(0, 1.0), (1, -2.0)];
    let minus: &[(usize, f32)] = &[(0, -1.0), (1, 2.0)];
    let problem = planted(300, 6, lm::slots(2, Signs::Free), &[(1.0, w), (-1.0, minus)], 3);
    let params = Params { signs: Signs::Free, ..Params::DEFAULT };
    let (net, info) = problem.run(&params).unwrap();
    assert!(info.exact && info.folds > 0, "{info:?}");
    assert_eq!((net[0].0.len(), problem.net(&net).w().blocks().count()), (4, 2));
}

#[test]
fn label_scale_changes_only_weight_scale() {
    let problem = planted(300, 8, lm::slots(3, Signs::Positive), &NEURONS, 1);
    let (net, info) = problem.run(&Params::DEFAULT).unwrap();
    for exponent in [-100, -3, 100] {
        let factor = 2.0_f32.powi(exponent);
        let mut scaled = problem.clone();
        scaled.y.iter_mut().for_each(|y| *y *= factor);
        let (other, told) = scaled.run(&Params::DEFAULT).unwrap();
        let mut expected = net.clone();
        expected[0].1.iter_mut().for_each(|w| *w *= factor);
        assert_eq!(other, expected, "2^{exponent}");
        assert_eq!(
            (told.relative, told.exact, told.rows_read),
            (info.relative, true, info.rows_read)
        );
    }
}

#[test]
fn columns_of_any_scale_are_weighed_alike() {
    let problem = planted(400, 8, lm::slots(3, Signs::Positive), &NEURONS, 2);
    let (plain, _) = problem.run(&Params::DEFAULT).unwrap();
    let mut scaled = problem.clone();
    let factor = |j: usize| 10.0_f32.powi([-6, 6, -3, 0, 4, -5, 2, 1][j]);
    scaled.x.iter_mut().enumerate().for_each(|(at, x)| *x *= factor(at % 8));
    let (net, info) = scaled.run(&Params::DEFAULT).unwrap();
    assert!(info.exact, "{info:?}");
    let inputs = |net: &Network| {
        let mut inputs: Vec<Vec<usize>> =
            problem.net(net).w().blocks().map(|b| b.entries().map(|(j, _)| j).collect()).collect();
        inputs.sort();
        inputs
    };
    assert_eq!(inputs(&net), inputs(&plain));
}

#[test]
fn planted_networks_return_with_validation_rows() {
    for signs in SIGNS {
        for seed in 0..4 {
            let problem =
                planted(400, 8, lm::slots(3, signs), &NEURONS.map(|(_, w)| (1.0, w)), seed);
            let params = Params { signs, seed, validation: 40, ..Params::DEFAULT };
            let result = problem.run(&params).unwrap();
            problem.check(&result, &params);
            let (net, info) = result;
            assert!(info.exact && net[0].0.len() == 7, "{signs:?}, seed {seed}: {info:?} {net:?}");
            assert!(problem.relative(&net, signs, 360..400).0 < 1e-11, "{info:?}");
            assert!(info.held.is_some_and(|held| held < 1e-9) && !info.early, "{info:?}");
        }
    }
}

/// The losses of a run until its end begins, and what it gave.
fn losses(problem: &Problem, params: &Params) -> (Vec<u32>, (Network, Info)) {
    let (mut losses, mut ending) = (Vec::new(), false);
    let result = problem.go(params, None, 0, |p| {
        ending |= p.phase == lm::Phase::AllRows;
        if !ending {
            losses.push(p.loss.to_bits());
        }
        true
    });
    (losses, result.unwrap())
}

#[test]
fn validation_rows_choose_and_are_never_fitted() {
    let (problem, params) = hard();
    let params = Params { validation: 150, perturbations: 6, ..params };
    let (seen, result) = losses(&problem, &params);
    problem.check(&result, &params);
    let (net, info) = result;
    let mut other = problem.clone();
    other.y[450..].iter_mut().for_each(|y| *y = -*y);
    assert_eq!(losses(&other, &params).0, seen);
    // Nothing that a search without rows held out gives from the same rows is better on the others.
    let mut short = problem.clone();
    short.x.truncate(450 * 8);
    short.y.truncate(450);
    short.dims.samples = 450;
    let plain = Params { validation: 0, ..params };
    let (_, (least, _)) = losses(&short, &plain);
    let held = |net: &Network| problem.relative(net, params.signs, 450..600).0;
    assert!(held(&net) <= held(&least) * (1.0 + 1e-5), "{} {}", held(&net), held(&least));
    let power = problem.y[450..].iter().map(|&y| f64::from(y * y)).sum::<f64>() / 150.0;
    let told = f64::from(info.held.unwrap()) / power;
    assert!((told - held(&net)).abs() < 1e-4 * told, "{told} {}", held(&net));
}

#[test]
fn patience_stops_a_search_without_validation_progress() {
    let (problem, params) = hard();
    let forever =
        Params { validation: 150, perturbations: 30, patience: 30, steps: 4000, ..params };
    let (_, all) = problem.run(&forever).unwrap();
    let (_, some) = problem.run(&Params { validation_patience: 2, ..forever }).unwrap();
    assert!(some.early && !all.early && some.perturbations < all.perturbations, "{some:?} {all:?}");
    // Nothing is held out: nothing ends.
    let (_, none) =
        problem.run(&Params { validation: 0, validation_patience: 2, ..forever }).unwrap();
    assert!(!none.early && none.perturbations == 30, "{none:?}");
}

/// A problem hard enough for moves, perturbations and more rows.
fn hard() -> (Problem, Params) {
    let problem = planted(600, 8, lm::slots(3, Signs::Free), &NEURONS, 7).noisy();
    (
        problem,
        Params {
            signs: Signs::Free,
            rows: 150,
            perturbations: 2,
            steps: 200,
            polish: 3,
            ..Params::DEFAULT
        },
    )
}

#[test]
fn every_checkpoint_resumes_bit_identically() {
    let (noisy, params) = hard();
    let exact = planted(600, 8, lm::slots(3, Signs::Free), &NEURONS, 7);
    // Few rows at first, so that all rows refute its fit, and the search goes on with more.
    let small = Params { rows: 12, ..params };
    let held = Params { validation: 100, validation_patience: 2, perturbations: 9, ..params };
    for (problem, params) in [(noisy.clone(), params), (exact, small), (noisy, held)] {
        let (checkpoints, stages) = problem.check_checkpoints(&params);
        assert!(checkpoints > 5 && stages > 3, "{checkpoints} checkpoints in {stages} stages");
    }
}

#[test]
fn counters_of_any_size_overflow_nowhere() {
    let (problem, params) = hard();
    let mut words = [0; State::WORDS];
    // All counters, and rows read.
    words[7..16].fill(u32::MAX);
    (words[0], words[1], words[4]) = (1, 150, 1.0_f32.to_bits());
    words[17] = u32::MAX;
    for steps in [0, u32::MAX - 1] {
        words[7] = steps;
        let none = net::Network::signed(Weights::empty(8, problem.blocks), params.signs);
        let state = State::from_words(&words).unwrap();
        let from = Checkpoint { state, net: none, best: none, result: none };
        let (_, info) = problem.go(&params, Some(&from), 0, |_| true).unwrap();
        assert_eq!(
            (info.rows_read, info.perturbations, info.trials),
            (u64::MAX, u32::MAX, u32::MAX),
            "{info:?}"
        );
    }
}

#[test]
fn checkpoints_that_do_not_fit_are_refused() {
    let (problem, params) = hard();
    let mut words = [0; State::WORDS];
    words[0] = 99;
    assert!(matches!(State::from_words(&words), Err(Error::Range { got: 99, .. })));
    (words[0], words[4]) = (1, f32::NAN.to_bits());
    assert!(matches!(State::from_words(&words), Err(Error::NotFinite { .. })));
    words[4] = 0;
    let state = |rows| {
        let mut words = words;
        words[1] = rows;
        State::from_words(&words).unwrap()
    };
    let none = Weights::empty(8, problem.blocks);
    let go = |state, net| {
        let [net, none] = [net, none].map(|w| net::Network::signed(w, params.signs));
        let checkpoint = Checkpoint { state, net, best: none, result: none };
        problem.go(&params, Some(&checkpoint), 0, |_| true).map(|_| ())
    };
    assert!(matches!(go(state(601), none), Err(Error::Range { got: 601, .. })));
    assert!(matches!(go(state(0), none), Err(Error::Range { got: 0, .. })));
    assert!(matches!(
        go(state(10), Weights::empty(9, problem.blocks)),
        Err(Error::Length { got: 9, .. })
    ));
    let index: Vec<u32> = (0..56).collect();
    let full = Weights::new(8, problem.blocks, &index, &[1.0; 56]).unwrap();
    assert!(matches!(go(state(10), full), Err(Error::Length { expected: 56, .. })));
    let bad = Weights::new(8, problem.blocks, &[9], &[f32::NAN]).unwrap();
    assert!(matches!(go(state(10), bad), Err(Error::NotFinite { .. })));
    go(state(10), none).unwrap();
}

#[test]
fn a_run_needs_its_budget_to_the_word() {
    for signs in SIGNS {
        let problem = planted(200, 8, lm::slots(3, signs), &NEURONS, 0);
        let params = Params { signs, perturbations: 3, steps: 100, ..Params::DEFAULT };
        problem.check_budget(&params, Recovery::new(problem.dims, 2, 208, signs.linear(0)));
    }
}

#[test]
fn state_takes_under_100_bytes_per_nonzero() {
    let bytes = |m, s| Recovery::new(Dims::new(50_000, 100, m, s), 1, 0, false).state_bytes();
    let (many, few) = (bytes(1000, 1000), bytes(100, 1000));
    assert!(many.abs_diff(few) * 10 <= few, "{many} and {few}");
    assert!(many < 100 * 1000, "{many}");
    assert!(bytes(10, 10_000) < 100 * 10_000);
}

#[test]
fn any_sufficient_block_count_works_fewer_are_refused() {
    for signs in SIGNS {
        for blocks in 0..10 {
            let mut problem = planted(200, 8, lm::slots(3, signs), &NEURONS, 0);
            problem.blocks = blocks;
            let params = Params { signs, perturbations: 2, steps: 40, ..Params::DEFAULT };
            let result = problem.run(&params);
            if blocks < 1 + usize::from(signs.linear(0)) {
                assert!(
                    matches!(result, Err(Error::Range { got, .. }) if got == blocks),
                    "{result:?}"
                );
            } else {
                problem.check(&result.unwrap(), &params);
            }
        }
    }
}

#[test]
fn bad_arguments_are_named() {
    let problem = planted(100, 8, 6, &NEURONS, 0);
    let failed = |change: &dyn Fn(&mut Problem, &mut Params)| problem.failed(change);
    let refused = failed(&|p, _| p.y[7] = f32::NAN);
    assert_eq!(refused, Error::NotFinite { what: "labels", at: 7 });
    assert!(matches!(failed(&|p, _| p.y.truncate(99)), Error::Length { what: "labels", .. }));
    assert!(matches!(failed(&|p, _| p.dims.nnz = 0), Error::Range { .. }));
    assert!(matches!(failed(&|p, _| p.dims.nnz = 25), Error::Range { max: 24, .. }));
    assert!(matches!(failed(&|p, _| p.dims.hidden = 0), Error::Range { .. }));
    assert!(matches!(failed(&|p, _| p.dims.samples = 99), Error::Length { .. }));
    assert!(matches!(failed(&|_, p| p.exact = f32::NAN), Error::NotFinite { .. }));
    let refused = failed(&|_, p| p.validation = 100);
    assert!(
        matches!(refused, Error::Range { what: "validation rows", max: 99, got: 100, .. }),
        "{refused}"
    );
    assert!(matches!(failed(&|p, _| p.x[3] = f32::INFINITY), Error::NotFinite { .. }));
    assert!(matches!(failed(&|p, _| p.x[3] = f32::NAN), Error::NotFinite { .. }));
}

/// Any sizes, columns of any kind, labels of any kind and scale.
fn problem(seed: u64) -> (Problem, Params) {
    let mut rng = Rng::new(seed, 0);
    let (rows, d, m) =
        (1 + rng.below(60) as usize, 1 + rng.below(7) as usize, 1 + rng.below(5) as usize);
    let rows = if rng.below(10) == 0 { 1 } else { rows };
    let nnz = match rng.below(4) {
        0 => 1,
        1 => m * d,
        _ => 1 + rng.below((m * d) as u32) as usize,
    };
    let data = Data::draw(rows, d, &mut rng);
    let x = data.x();
    let kind = rng.below(6);
    let scale = 10.0_f32.powi([0, 0, 0, -30, 30, 3][rng.below(6) as usize]);
    let a: Vec<f32> = (0..2 * d).map(|_| rng.normal()).collect();
    let y = x
        .chunks(d)
        .map(|row| {
            let z = |a: &[f32]| data.dot(a, row);
            scale
                * match kind {
                    0 => 0.0,
                    1 => -1.5,
                    2 => rng.normal(),
                    3 => z(&a),
                    _ => z(&a).max(0.0) - z(&a[d..]).max(0.0),
                }
        })
        .collect();
    let signs = SIGNS[rng.below(3) as usize];
    let least = 1 + usize::from(signs.linear(0));
    let blocks =
        if rng.below(3) == 0 { least + rng.below(4) as usize } else { lm::slots(m, signs) };
    let params = Params { signs, ..crate::shared::params(seed, rows, &mut rng) };
    (Problem { x, y, dims: Dims::new(rows, d, m, nnz), outputs: 0, second: 0, blocks }, params)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_problem_gives_a_result_within_its_bounds(seed in any::<u64>()) {
        let (problem, params) = problem(seed);
        problem.check_run(&params);
    }

    #[test]
    fn observer_may_stop_run_at_any_call(seed in any::<u64>(), calls in 0_u32..40) {
        let (problem, params) = problem(seed);
        problem.check_ended(&params, calls);
    }
}
