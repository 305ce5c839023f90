//! The recovery recipe for two hidden layers: planted networks come back; whatever the data, the
//! result is within its bounds or an error; runs go on from checkpoints to the same bits.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by it"
)]

use crate::shared::Data;
use crate::shared::problem::Problem;
use proptest::prelude::*;
use tamis::base::budget::Recovery;
use tamis::base::dims::Dims;
use tamis::base::error::Error;
use tamis::base::rng::Rng;
use tamis::learn::lm::{self, Checkpoint, Params, State};
use tamis::network::gates::Signs;
use tamis::network::net::{Network, Shape};

/// Weights of one neuron.
type Neuron<'a> = &'a [(usize, f32)];

/// Normal rows, and labels of the network with these neurons in its first and second layer.
fn planted(
    (rows, inputs): (usize, usize),
    first: &[Neuron<'_>],
    second: &[Neuron<'_>],
    seed: u64,
) -> Problem {
    let x = crate::shared::normal_rows(rows, inputs, seed);
    let layer = |neurons: &[Neuron<'_>], x: &[f32]| -> Vec<f32> {
        neurons.iter().map(|w| w.iter().map(|&(j, w)| w * x[j]).sum::<f32>().max(0.0)).collect()
    };
    let y = x.chunks(inputs).map(|row| layer(second, &layer(first, row)).iter().sum()).collect();
    let nnz = first.iter().chain(second).map(|w| w.len()).sum();
    let blocks = lm::slots(first.len(), Signs::Positive);
    let dims = Dims::new(rows, inputs, first.len(), nnz);
    Problem { x, y, dims, outputs: 0, second: second.len(), blocks }
}

/// The network that most tests plant: the last neuron of the second layer is linear.
const FIRST: [Neuron<'_>; 3] =
    [&[(0, 1.5), (3, -1.0)], &[(1, 0.5), (2, 1.0)], &[(0, 0.7), (4, -1.0), (5, 2.0)]];
const SECOND: [Neuron<'_>; 3] = [&[(0, 1.0), (2, -0.5)], &[(1, 1.25), (0, -1.0)], &[(2, 0.75)]];

#[test]
fn planted_networks_come_back_with_as_many_weights() {
    for seed in 0..8 {
        let problem = planted((800, 8), &FIRST, &SECOND, seed);
        let params = Params { seed, ..Params::DEFAULT };
        let result = problem.run(&params).unwrap();
        problem.check(&result, &params);
        let (net, info) = result;
        assert!(info.exact && info.folds > 0, "seed {seed}: {info:?} {net:?}");
        assert!(net[0].0.len() + net[1].0.len() <= 12, "seed {seed}: {net:?}");
    }
}

#[test]
fn label_scale_changes_only_second_layer_weight_scale() {
    let problem = planted((400, 8), &FIRST, &SECOND, 1);
    let params = Params { perturbations: 2, steps: 60, ..Params::DEFAULT };
    let (net, info) = problem.run(&params).unwrap();
    let mut large = problem.clone();
    large.y.iter_mut().for_each(|y| *y *= 1024.0);
    let (scaled, other) = large.run(&params).unwrap();
    assert_eq!((&scaled[0], &scaled[1].0, info.relative), (&net[0], &net[1].0, other.relative));
    assert!(scaled[1].1.iter().zip(&net[1].1).all(|(a, b)| *a == 1024.0 * b));
}

#[test]
fn planted_networks_return_with_validation_rows() {
    let problem = planted((900, 8), &FIRST, &SECOND, 2);
    let params = Params { validation: 100, ..Params::DEFAULT };
    let result = problem.run(&params).unwrap();
    problem.check(&result, &params);
    let (net, info) = result;
    assert!(info.exact && problem.relative(&net, params.signs, 0..900).0 < 1e-11, "{info:?}");
    assert!(info.held.is_some_and(|held| held < 1e-9), "{info:?}");
}

/// A problem hard enough for moves, perturbations and more rows.
fn hard() -> (Problem, Params) {
    let problem = planted((600, 8), &FIRST, &SECOND, 7).noisy();
    (problem, Params { rows: 150, perturbations: 2, steps: 120, polish: 3, ..Params::DEFAULT })
}

#[test]
fn every_checkpoint_resumes_bit_identically() {
    let (noisy, params) = hard();
    let exact = planted((600, 8), &FIRST, &SECOND, 7);
    // Few rows at first, so that all rows refute its fit, and the search goes on with more.
    let small = Params { rows: 10, ..params };
    for (problem, params) in [(noisy, params), (exact, small)] {
        let (checkpoints, stages) = problem.check_checkpoints(&params);
        assert!(checkpoints > 4 && stages > 3, "{checkpoints} checkpoints in {stages} stages");
    }
}

#[test]
fn a_checkpoint_of_other_sizes_is_refused() {
    let (problem, params) = hard();
    let mut words = [0; State::WORDS];
    (words[0], words[1]) = (1, 10);
    let state = State::from_words(&words).unwrap();
    let go = |net| {
        let checkpoint = Checkpoint { state, net, best: net, result: net };
        problem.go(&params, Some(&checkpoint), 0, |_| true).map(|_| ())
    };
    assert!(matches!(
        go(Network::empty(Shape::weighted(8, problem.blocks, 3))),
        Err(Error::Length { expected: 7, got: 3, .. })
    ));
    go(Network::empty(Shape::weighted(8, problem.blocks, 7))).unwrap();
}

#[test]
fn a_run_needs_its_budget_to_the_word() {
    let problem = planted((200, 8), &FIRST, &SECOND, 0);
    let params = Params { perturbations: 3, steps: 100, ..Params::DEFAULT };
    let budget = Recovery::deep(problem.dims, problem.blocks, lm::second_slots(3), 2, 408);
    problem.check_budget(&params, budget);
}

#[test]
fn the_state_is_bounded_however_many_neurons() {
    for (m, s) in [(10, 100), (1000, 1000), (100_000, 100)] {
        let slots = lm::slots(m, Signs::Positive);
        let state = Recovery::deep(Dims::new(50_000, 100, m, s), slots, 23, 1, 0).state_bytes();
        assert!(state < 170 * s + 16 * (100 + 23), "m = {m}, s = {s}: {state}");
    }
}

#[test]
fn bad_arguments_are_named() {
    let problem = planted((100, 8), &FIRST, &SECOND, 0);
    let failed = |change: &dyn Fn(&mut Problem, &mut Params)| problem.failed(change);
    assert_eq!(failed(&|p, _| p.y[7] = f32::NAN), Error::NotFinite { what: "labels", at: 7 });
    assert!(matches!(failed(&|p, _| p.y.truncate(99)), Error::Length { what: "labels", .. }));
    assert!(matches!(failed(&|p, _| p.dims.nnz = 0), Error::Range { .. }));
    assert!(matches!(failed(&|p, _| p.dims.nnz = 34), Error::Range { max: 33, .. }));
    assert!(matches!(failed(&|p, _| p.dims.hidden = 0), Error::Range { .. }));
    assert!(matches!(failed(&|p, _| p.x[3] = f32::NAN), Error::NotFinite { .. }));
}

/// Any sizes, columns of any kind, labels of any kind and scale.
fn problem(seed: u64) -> (Problem, Params) {
    let mut rng = Rng::new(seed, 0);
    let (rows, d, m) =
        (1 + rng.below(60) as usize, 1 + rng.below(7) as usize, 1 + rng.below(5) as usize);
    let most = if rng.below(8) == 0 { 40 } else { 4 };
    let second = 1 + rng.below(most) as usize;
    let all = m * (d + second);
    let nnz = match rng.below(4) {
        0 => 1 + rng.below(3) as usize,
        1 => all,
        _ => 1 + rng.below(all as u32) as usize,
    };
    let nnz = nnz.min(all);
    let data = Data::draw(rows, d, &mut rng);
    let x = data.x();
    let scale = 10.0_f32.powi([0, 0, 0, -30, 30, 3][rng.below(6) as usize]);
    let kind = rng.below(6);
    let a: Vec<f32> = (0..2 * d).map(|_| rng.normal()).collect();
    let mut y = Vec::new();
    for row in x.chunks(d) {
        let z = |a: &[f32]| data.dot(a, row);
        let value = match kind {
            0 => 0.0,
            1 => -1.5,
            2 => rng.normal(),
            3 => z(&a),
            4 => (z(&a).max(0.0) - z(&a[d..]).max(0.0)).max(0.0) + z(&a[d..]).max(0.0),
            _ => 2.0 * z(&a[d..]).max(0.0),
        };
        y.push(scale * value);
    }
    let blocks =
        if rng.below(3) == 0 { 1 + rng.below(4) as usize } else { lm::slots(m, Signs::Positive) };
    let params = crate::shared::params(seed, rows, &mut rng);
    (Problem { x, y, dims: Dims::new(rows, d, m, nnz), outputs: 0, second, blocks }, params)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

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
