//! The recovery recipe for several outputs: planted networks come back; whatever the data, the
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
use tamis::network::weights::Weights;

/// Weights from inputs and to outputs of one neuron.
type Neuron<'a> = (&'a [(usize, f32)], &'a [(usize, f32)]);

/// Normal rows, and labels of the network with these neurons.
fn planted(
    (rows, inputs, outputs): (usize, usize, usize),
    neurons: &[Neuron<'_>],
    seed: u64,
) -> Problem {
    let x = crate::shared::normal_rows(rows, inputs, seed);
    let mut y = vec![0.0; rows * outputs];
    for (row, y) in x.chunks(inputs).zip(y.chunks_mut(outputs)) {
        for (w, wt) in neurons {
            let a = w.iter().map(|&(j, w)| w * row[j]).sum::<f32>().max(0.0);
            wt.iter().for_each(|&(k, v)| y[k] += a * v);
        }
    }
    let nnz = neurons.iter().map(|(w, wt)| w.len() + wt.len()).sum();
    let blocks = lm::slots(neurons.len(), Signs::Positive);
    Problem { x, y, dims: Dims::new(rows, inputs, neurons.len(), nnz), outputs, second: 0, blocks }
}

/// The network of three outputs that most tests plant.
const NEURONS: [Neuron<'_>; 3] = [
    (&[(0, 1.5), (3, -1.0)], &[(0, 1.0), (2, -0.5)]),
    (&[(1, 0.5), (2, 1.0)], &[(1, -1.25)]),
    (&[(0, 0.7), (4, -1.0), (5, 2.0)], &[(1, 0.75), (2, 1.5)]),
];

/// One side of a neuron in thousandths.
type Rounded = Vec<(usize, i32)>;
/// Both sides, and their size.
type Canonical = (Rounded, Rounded, i32);

/// Neurons as they are whatever their number and however their scale is split: both sides brought
/// to a first weight of size 1, and the product of these sizes, in thousandths.
fn canonical(net: Network<'_>) -> Vec<Canonical> {
    let side = |block: tamis::network::weights::Block<'_>| {
        let first = block.values()[0].abs();
        let round = |(j, w): (usize, f32)| (j, (1000.0 * w / first).round() as i32);
        (block.entries().map(round).collect::<Vec<_>>(), first)
    };
    let neuron = |block: tamis::network::weights::Block<'_>| {
        let ((w, a), (wt, b)) = (side(block), side(net.wt().block(block.neuron())));
        (w, wt, (1000.0 * a * b).round() as i32)
    };
    let mut all: Vec<_> = net.w().blocks().map(neuron).collect();
    all.sort();
    all
}

/// Flat entries of one side of these neurons.
fn flat<'n>(
    neurons: impl Iterator<Item = &'n [(usize, f32)]>,
    width: usize,
) -> (Vec<u32>, Vec<f32>) {
    let all = neurons
        .enumerate()
        .flat_map(|(i, side)| side.iter().map(move |&(j, w)| ((i * width + j) as u32, w)));
    all.unzip()
}

#[test]
fn planted_networks_come_back_neuron_by_neuron() {
    for seed in 0..8 {
        let problem = planted((400, 8, 3), &NEURONS, seed);
        let params = Params { seed, ..Params::DEFAULT };
        let result = problem.run(&params).unwrap();
        problem.check(&result, &params);
        assert!(result.1.exact, "seed {seed}: {:?}", result.1);
        let planted = [flat(NEURONS.iter().map(|n| n.0), 8), flat(NEURONS.iter().map(|n| n.1), 3)];
        assert_eq!(
            canonical(problem.net(&result.0)),
            canonical(problem.net(&planted)),
            "seed {seed}"
        );
    }
}

#[test]
fn ten_outputs_and_many_neurons_come_back() {
    for seed in 0..4 {
        // Two inputs and two outputs a neuron, drawn.
        let mut rng = Rng::new(seed, 9);
        let mut pair = |width: u32| {
            let first = rng.below(width) as usize;
            let second = (first + 1 + rng.below(width - 1) as usize) % width as usize;
            [(first, 0.5 + rng.uniform()), (second, -0.5 - rng.uniform())]
        };
        let sides: Vec<_> = (0..6).map(|_| (pair(20), pair(10))).collect();
        let neurons: Vec<Neuron<'_>> = sides.iter().map(|(w, wt)| (&w[..], &wt[..])).collect();
        let problem = planted((500, 20, 10), &neurons, seed);
        let params = Params { seed, ..Params::DEFAULT };
        let result = problem.run(&params).unwrap();
        problem.check(&result, &params);
        assert!(result.1.exact, "seed {seed}: {:?}", result.1);
    }
}

#[test]
fn one_output_is_a_network_too() {
    let neurons: [Neuron<'_>; 2] =
        [(&[(0, 1.0), (2, -2.0)], &[(0, 1.5)]), (&[(3, 1.0)], &[(0, -0.5)])];
    let problem = planted((300, 6, 1), &neurons, 2);
    let result = problem.run(&Params::DEFAULT).unwrap();
    problem.check(&result, &Params::DEFAULT);
    assert!(result.1.exact, "{:?}", result.1);
}

#[test]
fn signs_do_not_matter() {
    let problem = planted((300, 8, 3), &NEURONS, 1);
    let usual = problem.run(&Params::DEFAULT).unwrap();
    for signs in [Signs::Balanced, Signs::Free] {
        assert_eq!(problem.run(&Params { signs, ..Params::DEFAULT }).unwrap(), usual);
    }
}

#[test]
fn unexplained_labels_give_empty_or_best_network() {
    let base = planted((200, 8, 3), &NEURONS, 3);
    let run = |change: &dyn Fn(&mut Problem)| {
        let mut problem = base.clone();
        change(&mut problem);
        let params = Params { perturbations: 3, steps: 120, ..Params::DEFAULT };
        let result = problem.run(&params).unwrap();
        problem.check(&result, &params);
        (result.0[0].0.len() + result.0[1].0.len(), result.1)
    };
    let (nnz, info) = run(&|p| p.y.fill(0.0));
    assert_eq!((nnz, info.exact, info.loss), (0, true, 0.0));
    let (nnz, info) = run(&|p| p.x.fill(0.0));
    assert_eq!((nnz, info.exact, info.relative), (0, false, 1.0));
    // A network without a bias gives the same to a row and nothing to its opposite.
    let (_, info) = run(&|p| p.y.fill(-2.0));
    assert!(info.relative < 1.0 && !info.exact, "{info:?}");
    // One output of three says nothing.
    let (_, info) = run(&|p| p.y.chunks_mut(3).for_each(|y| y[1] = 0.0));
    assert!(info.exact, "{info:?}");
    // A network needs two weights.
    assert_eq!(run(&|p| p.dims.nnz = 1).0, 0);
    assert_eq!(run(&|p| p.dims.nnz = 2).0, 2);
}

/// Equal columns share what one of them would carry, so that there must be room for both.
#[test]
fn equal_columns_act_as_one_given_room() {
    let mut problem = planted((300, 8, 3), &NEURONS, 4);
    problem.x.chunks_mut(8).for_each(|row| (row[6], row[7]) = (row[0], row[5]));
    let tight = problem.run(&Params { perturbations: 2, ..Params::DEFAULT }).unwrap();
    problem.check(&tight, &Params::DEFAULT);
    problem.dims.nnz += 3;
    let result = problem.run(&Params::DEFAULT).unwrap();
    problem.check(&result, &Params::DEFAULT);
    assert!(result.1.exact, "{:?}", result.1);
}

#[test]
fn a_single_row_is_fitted() {
    let mut problem = planted((1, 4, 3), &[(&[(0, 1.0)], &[(0, 1.0), (1, 2.0), (2, -3.0)])], 5);
    problem.y.copy_from_slice(&[1.0, 2.0, -3.0]);
    let tight = problem.run(&Params::DEFAULT).unwrap();
    problem.check(&tight, &Params::DEFAULT);
    problem.dims.nnz = 7;
    let result = problem.run(&Params::DEFAULT).unwrap();
    problem.check(&result, &Params::DEFAULT);
    assert!(result.1.exact, "{:?}", result.1);
}

#[test]
fn label_scale_changes_only_output_weight_scale() {
    let problem = planted((300, 8, 3), &NEURONS, 1);
    let (net, info) = problem.run(&Params::DEFAULT).unwrap();
    for exponent in [-100, -3, 100] {
        let factor = 2.0_f32.powi(exponent);
        let mut scaled = problem.clone();
        scaled.y.iter_mut().for_each(|y| *y *= factor);
        let (other, told) = scaled.run(&Params::DEFAULT).unwrap();
        let mut expected = net.clone();
        expected[1].1.iter_mut().for_each(|v| *v *= factor);
        assert_eq!(other, expected, "2^{exponent}");
        assert_eq!(
            (told.relative, told.exact, told.rows_read),
            (info.relative, true, info.rows_read)
        );
    }
}

#[test]
fn columns_of_any_scale_are_weighed_alike() {
    let mut problem = planted((400, 8, 3), &NEURONS, 2);
    let factor = |j: usize| 10.0_f32.powi([-6, 6, -3, 0, 4, -5, 2, 1][j]);
    problem.x.iter_mut().enumerate().for_each(|(at, x)| *x *= factor(at % 8));
    let (net, info) = problem.run(&Params::DEFAULT).unwrap();
    assert!(info.exact && net[0].0.len() == 7, "{info:?} {net:?}");
}

#[test]
fn planted_networks_return_with_validation_rows() {
    for seed in 0..4 {
        let problem = planted((400, 8, 3), &NEURONS, seed);
        let params = Params { seed, validation: 40, ..Params::DEFAULT };
        let result = problem.run(&params).unwrap();
        problem.check(&result, &params);
        let (net, info) = result;
        assert!(
            info.exact && problem.relative(&net, params.signs, 0..400).0 < 1e-11,
            "seed {seed}: {info:?} {net:?}"
        );
        assert!(info.held.is_some_and(|held| held < 1e-9), "{info:?}");
    }
}

/// A problem hard enough for moves, perturbations and more rows.
fn hard() -> (Problem, Params) {
    let problem = planted((600, 8, 3), &NEURONS, 7).noisy();
    (problem, Params { rows: 150, perturbations: 2, steps: 200, polish: 3, ..Params::DEFAULT })
}

#[test]
fn every_checkpoint_resumes_bit_identically() {
    let (noisy, params) = hard();
    let exact = planted((600, 8, 3), &NEURONS, 7);
    // Few rows at first, so that all rows refute its fit, and the search goes on with more.
    let small = Params { rows: 4, ..params };
    let held = Params { validation: 100, validation_patience: 2, perturbations: 9, ..params };
    for (problem, params) in [(noisy.clone(), params), (exact, small), (noisy, held)] {
        let (checkpoints, stages) = problem.check_checkpoints(&params);
        assert!(checkpoints > 4 && stages > 3, "{checkpoints} checkpoints in {stages} stages");
    }
}

#[test]
fn invalid_checkpoints_are_refused_half_neurons_dropped() {
    let (problem, params) = hard();
    let mut words = [0; State::WORDS];
    (words[0], words[1]) = (1, 10);
    let state = State::from_words(&words).unwrap();
    let none = Network::empty(Shape::weighted(8, problem.blocks, 3));
    let go = |net| {
        let checkpoint = Checkpoint { state, net, best: none, result: none };
        problem.go(&params, Some(&checkpoint), 0, |_| true).map(|_| ())
    };
    let missing = Network::signed(Weights::empty(8, problem.blocks), Signs::Positive);
    assert!(matches!(go(missing), Err(Error::Length { expected: 3, got: 0, .. })));
    let index: Vec<u32> = (0..40).collect();
    let w = Weights::new(8, problem.blocks, &index, &[1.0; 40]).unwrap();
    let full = Network::new(w, Weights::empty(3, problem.blocks)).unwrap();
    assert!(matches!(go(full), Err(Error::Length { got: 23, .. })), "{:?}", go(full));
    let bad = Weights::new(3, problem.blocks, &[2], &[f32::INFINITY]).unwrap();
    let bad = Network::new(Weights::empty(8, problem.blocks), bad).unwrap();
    assert!(matches!(go(bad), Err(Error::NotFinite { .. })));
    let half = Weights::new(8, problem.blocks, &[9], &[1.0]).unwrap();
    go(Network::new(half, Weights::empty(3, problem.blocks)).unwrap()).unwrap();
    go(none).unwrap();
}

#[test]
fn a_run_needs_its_budget_to_the_word() {
    let problem = planted((200, 8, 3), &NEURONS, 0);
    let params = Params { perturbations: 3, steps: 100, ..Params::DEFAULT };
    problem.check_budget(&params, Recovery::factored(problem.dims, 3, 2, 408));
}

#[test]
fn state_takes_under_100_bytes_per_nonzero() {
    for (m, s, c) in [(10, 100, 10), (1000, 1000, 10), (20, 10_000, 300)] {
        let state = Recovery::factored(Dims::new(50_000, 100, m, s), c, 1, 0).state_bytes();
        assert!(state < 100 * s + 16 * 100 + 16 * c, "m = {m}, s = {s}, c = {c}: {state}");
    }
}

#[test]
fn any_positive_block_count_works_zero_is_refused() {
    for blocks in 0..7 {
        let mut problem = planted((200, 8, 3), &NEURONS, 0);
        problem.blocks = blocks;
        let params = Params { perturbations: 2, steps: 40, ..Params::DEFAULT };
        let result = problem.run(&params);
        if blocks == 0 {
            assert!(matches!(result, Err(Error::Range { got: 0, .. })), "{result:?}");
        } else {
            problem.check(&result.unwrap(), &params);
        }
    }
}

#[test]
fn bad_arguments_are_named() {
    let problem = planted((100, 8, 3), &NEURONS, 0);
    let failed = |change: &dyn Fn(&mut Problem, &mut Params)| problem.failed(change);
    assert_eq!(failed(&|p, _| p.y[7] = f32::NAN), Error::NotFinite { what: "labels", at: 7 });
    assert!(matches!(failed(&|p, _| p.y.truncate(299)), Error::Length { what: "labels", .. }));
    assert!(matches!(failed(&|p, _| p.y.truncate(99)), Error::Range { what: "outputs", .. }));
    assert!(matches!(failed(&|p, _| p.dims.nnz = 0), Error::Range { .. }));
    assert!(matches!(failed(&|p, _| p.dims.nnz = 34), Error::Range { max: 33, .. }));
    assert!(matches!(failed(&|p, _| p.dims.hidden = 0), Error::Range { .. }));
    assert!(matches!(failed(&|_, p| p.exact = f32::NAN), Error::NotFinite { .. }));
    assert!(matches!(failed(&|p, _| p.x[3] = f32::INFINITY), Error::NotFinite { .. }));
    assert!(matches!(failed(&|p, _| p.x[3] = f32::NAN), Error::NotFinite { .. }));
}

/// Any sizes, columns of any kind, labels of any kind and scale.
fn problem(seed: u64) -> (Problem, Params) {
    let mut rng = Rng::new(seed, 0);
    let (rows, d, m) =
        (1 + rng.below(60) as usize, 1 + rng.below(7) as usize, 1 + rng.below(5) as usize);
    let rows = if rng.below(10) == 0 { 1 } else { rows };
    let c = 1 + rng.below(4) as usize;
    let all = m * (d + c);
    let nnz = match rng.below(4) {
        0 => 1 + rng.below(3) as usize,
        1 => all,
        _ => 1 + rng.below(all as u32) as usize,
    };
    let nnz = nnz.min(all);
    let data = Data::draw(rows, d, &mut rng);
    let x = data.x();
    let scale = 10.0_f32.powi([0, 0, 0, -30, 30, 3][rng.below(6) as usize]);
    let kinds: Vec<u32> = (0..c).map(|_| rng.below(6)).collect();
    let a: Vec<f32> = (0..2 * d).map(|_| rng.normal()).collect();
    let mut y = Vec::new();
    for row in x.chunks(d) {
        let z = |a: &[f32]| data.dot(a, row);
        for kind in &kinds {
            y.push(
                scale
                    * match kind {
                        0 => 0.0,
                        1 => -1.5,
                        2 => rng.normal(),
                        3 => z(&a),
                        4 => z(&a).max(0.0) - z(&a[d..]).max(0.0),
                        _ => 2.0 * z(&a[d..]).max(0.0),
                    },
            );
        }
    }
    let blocks =
        if rng.below(3) == 0 { 1 + rng.below(4) as usize } else { lm::slots(m, Signs::Positive) };
    let params = crate::shared::params(seed, rows, &mut rng);
    (Problem { x, y, dims: Dims::new(rows, d, m, nnz), outputs: c, second: 0, blocks }, params)
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
