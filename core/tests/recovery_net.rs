//! The recovery recipe for several outputs: planted networks come back; whatever the data, the result is within its bounds
//! or an error; runs go on from checkpoints to the same bits.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by it"
)]

mod shared;

use proptest::prelude::*;
use tamis::budget::{Recovery, gated_words};
use tamis::dims::Dims;
use tamis::error::Error;
use tamis::factored::{Factored, Net};
use tamis::gated::Gated;
use tamis::gates::Signs;
use tamis::lm::{self, Checkpoint, Info, Params, Progress, State};
use tamis::rng::Rng;
use tamis::samples::Rows;
use tamis::weights::Weights;
use tamis::wire;

/// Flat indices and values of either side.
type Network = [(Vec<u32>, Vec<f32>); 2];
/// Weights from inputs and to outputs of one neuron.
type Neuron<'a> = (&'a [(usize, f32)], &'a [(usize, f32)]);

fn owned(net: Net<'_>) -> Network {
    [net.w(), net.wt()].map(|w| (w.index().to_vec(), w.value().to_vec()))
}

/// Rows, labels and sizes.
#[derive(Debug, Clone)]
struct Problem {
    x: Vec<f32>,
    y: Vec<f32>,
    dims: Dims,
    outputs: usize,
    blocks: usize,
}

impl Problem {
    /// Normal rows, and labels of the network with these neurons.
    fn planted((rows, inputs, outputs): (usize, usize, usize), neurons: &[Neuron<'_>], seed: u64) -> Self {
        let mut x = vec![0.0; rows * inputs];
        Rng::new(seed, 0).fill_normal(&mut x);
        let mut y = vec![0.0; rows * outputs];
        for (row, y) in x.chunks(inputs).zip(y.chunks_mut(outputs)) {
            for (w, wt) in neurons {
                let a = w.iter().map(|&(j, w)| w * row[j]).sum::<f32>().max(0.0);
                wt.iter().for_each(|&(k, v)| y[k] += a * v);
            }
        }
        let nnz = neurons.iter().map(|(w, wt)| w.len() + wt.len()).sum();
        let blocks = lm::slots(neurons.len(), Signs::Positive);
        Self { x, y, dims: Dims::new(rows, inputs, neurons.len(), nnz), outputs, blocks }
    }

    /// Runs, or goes on from a checkpoint, with `words` more memory than the budget.
    fn go(
        &self,
        params: &Params,
        from: Option<&Checkpoint<'_>>,
        words: isize,
        observe: impl FnMut(&Progress<'_>) -> bool,
    ) -> tamis::Result<(Network, Info)> {
        let d = self.dims.inputs;
        let mut row = vec![0.0; gated_words(d, self.blocks)];
        let mut sensing = Gated::new(Rows::new(&self.x, d)?, self.blocks, 2, &mut row)?;
        let budget = self.budget(&sensing);
        // What memory held before must not matter.
        let mut memory = vec![0x7fc0_1234; budget.words().saturating_add_signed(words)];
        let (net, info) = match from {
            None => lm::run_net(&mut sensing, &self.y, self.dims, params, &mut memory, observe)?,
            Some(from) => {
                lm::resume_net(&mut sensing, &self.y, self.dims, params, from, &mut memory, observe)?
            }
        };
        Ok((owned(net), info))
    }

    fn budget<S: Factored>(&self, sensing: &S) -> Recovery {
        let n = self.dims.samples;
        Recovery::factored(
            self.dims,
            self.outputs,
            sensing.panel(),
            sensing.net_scratch(n).max(sensing.scratch(n)),
        )
    }

    fn run(&self, params: &Params) -> tamis::Result<(Network, Info)> {
        self.go(params, None, 0, |_| true)
    }

    fn net<'w>(&self, [w, wt]: &'w Network) -> Net<'w> {
        Net::new(
            Weights::new(self.dims.inputs, self.blocks, &w.0, &w.1).unwrap(),
            Weights::new(self.outputs, self.blocks, &wt.0, &wt.1).unwrap(),
        )
        .unwrap()
    }

    /// Mean squared error of the first `rows` rows, and mean square of the sum of all terms' magnitudes, in parts of the mean
    /// square of the labels, in double precision.
    fn relative(&self, net: &Network, rows: usize) -> (f64, f64) {
        let net = self.net(net);
        let (mut loss, mut added, mut power) = (0.0, 0.0, 0.0);
        for (row, y) in self.x.chunks(self.dims.inputs).zip(self.y.chunks(self.outputs)).take(rows) {
            let mut left: Vec<f64> = y.iter().map(|&y| f64::from(y)).collect();
            let mut sums = vec![0.0; self.outputs];
            for block in net.w().blocks() {
                let terms = block.entries().map(|(j, w)| f64::from(w) * f64::from(row[j]));
                let (z, size) = terms.fold((0.0_f64, 0.0), |(z, size), t| (z + t, size + t.abs()));
                for (k, v) in net.wt().block(block.neuron()).entries() {
                    left[k] -= z.max(0.0) * f64::from(v);
                    sums[k] += size * f64::from(v).abs();
                }
            }
            loss += left.iter().map(|x| x * x).sum::<f64>();
            added += sums.iter().map(|x| x * x).sum::<f64>();
            power += y.iter().map(|&y| f64::from(y) * f64::from(y)).sum::<f64>();
        }
        let part = |x: f64| if x == 0.0 { 0.0 } else { x / power };
        (part(loss), part(added))
    }

    /// What every result must be.
    fn check(&self, (net, info): &(Network, Info), params: &Params) {
        let view = self.net(net);
        assert!(view.nnz() <= self.dims.nnz, "{} of {} weights", view.nnz(), self.dims.nnz);
        let neurons = |w: Weights<'_>| w.blocks().map(|block| block.neuron()).collect::<Vec<_>>();
        assert_eq!(neurons(view.w()), neurons(view.wt()), "a neuron has one side of two");
        let live = neurons(view.w()).len();
        assert!(live <= self.dims.hidden, "{live} of {} neurons", self.dims.hidden);
        for side in net {
            assert!(side.1.iter().all(|w| w.is_finite() && *w != 0.0), "{net:?}");
        }
        assert!(!info.loss.is_nan() && !info.relative.is_nan(), "{info:?}");
        assert_eq!(info.exact, info.relative <= params.exact, "{info:?}");
        // f is computed in single precision: what is left of y is known to a part of what was added.
        let (relative, added) = self.relative(net, self.dims.samples - params.validation);
        assert_eq!(info.held.is_some(), params.validation > 0, "{info:?}");
        let known = (relative.sqrt() - f64::from(info.relative).sqrt()).abs();
        assert!(known < 1e-5 * (1.0 + added.sqrt()), "{relative:e}, {added:e} added, {info:?}");
        let mut bytes = vec![0; wire::net_len(view, None).unwrap()];
        assert!(wire::encode_net(view, None, &mut bytes).unwrap() > 0);
    }
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

/// Neurons as they are whatever their number and however their scale is split: both sides brought to a first weight of
/// size 1, and the product of these sizes, in thousandths.
fn canonical(net: Net<'_>) -> Vec<Canonical> {
    let side = |block: tamis::weights::Block<'_>| {
        let first = block.values()[0].abs();
        let round = |(j, w): (usize, f32)| (j, (1000.0 * w / first).round() as i32);
        (block.entries().map(round).collect::<Vec<_>>(), first)
    };
    let neuron = |block: tamis::weights::Block<'_>| {
        let ((w, a), (wt, b)) = (side(block), side(net.wt().block(block.neuron())));
        (w, wt, (1000.0 * a * b).round() as i32)
    };
    let mut all: Vec<_> = net.w().blocks().map(neuron).collect();
    all.sort();
    all
}

/// Flat entries of one side of these neurons.
fn flat<'n>(neurons: impl Iterator<Item = &'n [(usize, f32)]>, width: usize) -> (Vec<u32>, Vec<f32>) {
    let all =
        neurons.enumerate().flat_map(|(i, side)| side.iter().map(move |&(j, w)| ((i * width + j) as u32, w)));
    all.unzip()
}

#[test]
fn planted_networks_come_back_neuron_by_neuron() {
    for seed in 0..8 {
        let problem = Problem::planted((400, 8, 3), &NEURONS, seed);
        let params = Params { seed, ..Params::DEFAULT };
        let result = problem.run(&params).unwrap();
        problem.check(&result, &params);
        assert!(result.1.exact, "seed {seed}: {:?}", result.1);
        let planted = [flat(NEURONS.iter().map(|n| n.0), 8), flat(NEURONS.iter().map(|n| n.1), 3)];
        assert_eq!(canonical(problem.net(&result.0)), canonical(problem.net(&planted)), "seed {seed}");
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
        let problem = Problem::planted((500, 20, 10), &neurons, seed);
        let params = Params { seed, ..Params::DEFAULT };
        let result = problem.run(&params).unwrap();
        problem.check(&result, &params);
        assert!(result.1.exact, "seed {seed}: {:?}", result.1);
    }
}

#[test]
fn one_output_is_a_network_too() {
    let neurons: [Neuron<'_>; 2] = [(&[(0, 1.0), (2, -2.0)], &[(0, 1.5)]), (&[(3, 1.0)], &[(0, -0.5)])];
    let problem = Problem::planted((300, 6, 1), &neurons, 2);
    let result = problem.run(&Params::DEFAULT).unwrap();
    problem.check(&result, &Params::DEFAULT);
    assert!(result.1.exact, "{:?}", result.1);
}

#[test]
fn signs_do_not_matter() {
    let problem = Problem::planted((300, 8, 3), &NEURONS, 1);
    let usual = problem.run(&Params::DEFAULT).unwrap();
    for signs in [Signs::Balanced, Signs::Free] {
        assert_eq!(problem.run(&Params { signs, ..Params::DEFAULT }).unwrap(), usual);
    }
}

#[test]
fn labels_that_nothing_explains_give_an_empty_network_or_the_best_there_is() {
    let base = Problem::planted((200, 8, 3), &NEURONS, 3);
    let run = |change: &dyn Fn(&mut Problem)| {
        let mut problem = base.clone();
        change(&mut problem);
        let params = Params { kicks: 3, steps: 120, ..Params::DEFAULT };
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
fn equal_columns_are_used_as_one_where_there_is_room() {
    let mut problem = Problem::planted((300, 8, 3), &NEURONS, 4);
    problem.x.chunks_mut(8).for_each(|row| (row[6], row[7]) = (row[0], row[5]));
    let tight = problem.run(&Params { kicks: 2, ..Params::DEFAULT }).unwrap();
    problem.check(&tight, &Params::DEFAULT);
    problem.dims.nnz += 3;
    let result = problem.run(&Params::DEFAULT).unwrap();
    problem.check(&result, &Params::DEFAULT);
    assert!(result.1.exact, "{:?}", result.1);
}

#[test]
fn a_single_row_is_fitted() {
    let mut problem = Problem::planted((1, 4, 3), &[(&[(0, 1.0)], &[(0, 1.0), (1, 2.0), (2, -3.0)])], 5);
    problem.y.copy_from_slice(&[1.0, 2.0, -3.0]);
    let tight = problem.run(&Params::DEFAULT).unwrap();
    problem.check(&tight, &Params::DEFAULT);
    problem.dims.nnz = 7;
    let result = problem.run(&Params::DEFAULT).unwrap();
    problem.check(&result, &Params::DEFAULT);
    assert!(result.1.exact, "{:?}", result.1);
}

#[test]
fn the_size_of_the_labels_changes_nothing_but_the_size_of_the_output_weights() {
    let problem = Problem::planted((300, 8, 3), &NEURONS, 1);
    let (net, info) = problem.run(&Params::DEFAULT).unwrap();
    for exponent in [-100, -3, 100] {
        let factor = 2.0_f32.powi(exponent);
        let mut scaled = problem.clone();
        scaled.y.iter_mut().for_each(|y| *y *= factor);
        let (other, told) = scaled.run(&Params::DEFAULT).unwrap();
        let mut expected = net.clone();
        expected[1].1.iter_mut().for_each(|v| *v *= factor);
        assert_eq!(other, expected, "2^{exponent}");
        assert_eq!((told.relative, told.exact, told.rows_read), (info.relative, true, info.rows_read));
    }
}

#[test]
fn columns_of_any_scale_are_weighed_alike() {
    let mut problem = Problem::planted((400, 8, 3), &NEURONS, 2);
    let factor = |j: usize| 10.0_f32.powi([-6, 6, -3, 0, 4, -5, 2, 1][j]);
    problem.x.iter_mut().enumerate().for_each(|(at, x)| *x *= factor(at % 8));
    let (net, info) = problem.run(&Params::DEFAULT).unwrap();
    assert!(info.exact && net[0].0.len() == 7, "{info:?} {net:?}");
}

#[test]
fn what_is_planted_comes_back_with_rows_held_out() {
    for seed in 0..4 {
        let problem = Problem::planted((400, 8, 3), &NEURONS, seed);
        let params = Params { seed, validation: 40, ..Params::DEFAULT };
        let result = problem.run(&params).unwrap();
        problem.check(&result, &params);
        let (net, info) = result;
        assert!(info.exact && problem.relative(&net, 400).0 < 1e-11, "seed {seed}: {info:?} {net:?}");
        assert!(info.held.is_some_and(|held| held < 1e-9), "{info:?}");
    }
}

/// Copies of all that a checkpoint holds.
struct Kept {
    state: [u32; State::WORDS],
    nets: [Network; 3],
}

/// A problem hard enough for moves, kicks and more rows.
fn hard() -> (Problem, Params) {
    let mut problem = Problem::planted((600, 8, 3), &NEURONS, 7);
    // Noise, so that no fit is exact: the run goes through every stage.
    let mut rng = Rng::new(8, 0);
    problem.y.iter_mut().for_each(|y| *y += 0.05 * rng.normal());
    (problem, Params { rows: 150, kicks: 2, steps: 200, polish: 3, ..Params::DEFAULT })
}

#[test]
fn a_run_goes_on_from_every_checkpoint_to_the_same_bits() {
    let (noisy, params) = hard();
    let exact = Problem::planted((600, 8, 3), &NEURONS, 7);
    // Few rows for a part, so that all rows refute its fit, and the search goes on with more.
    let small = Params { rows: 4, ..params };
    let held = Params { validation: 100, validation_patience: 2, kicks: 9, ..params };
    for (problem, params) in [(noisy.clone(), params), (exact, small), (noisy, held)] {
        let mut kept = Vec::new();
        let whole = problem
            .go(&params, None, 0, |p| {
                if let Some(Checkpoint { state, net, best, found, .. }) = p.checkpoint {
                    kept.push(Kept { state: state.to_words(), nets: [net, best, found].map(owned) });
                }
                true
            })
            .unwrap();
        problem.check(&whole, &params);
        let stages: std::collections::BTreeSet<u32> = kept.iter().map(|kept| kept.state[0]).collect();
        assert!(kept.len() > 4 && stages.len() > 3, "{} checkpoints, {stages:?}", kept.len());
        for (number, Kept { state, nets }) in kept.iter().enumerate() {
            let [net, best, found] = nets.each_ref().map(|net| problem.net(net));
            let from = Checkpoint { state: State::from_words(state).unwrap(), net, best, found };
            let rest = problem.go(&params, Some(&from), 0, |_| true).unwrap();
            assert_eq!(rest, whole, "checkpoint {number} of {}", kept.len());
        }
    }
}

#[test]
fn checkpoints_that_do_not_fit_are_refused_and_halves_are_dropped() {
    let (problem, params) = hard();
    let mut words = [0; State::WORDS];
    (words[0], words[1]) = (1, 10);
    let state = State::from_words(&words).unwrap();
    let none = Net::empty(8, problem.blocks, 3);
    let go = |net| {
        let checkpoint = Checkpoint { state, net, best: none, found: none };
        problem.go(&params, Some(&checkpoint), 0, |_| true).map(|_| ())
    };
    let missing = Net::single(Weights::empty(8, problem.blocks));
    assert!(matches!(go(missing), Err(Error::Length { expected: 3, got: 0, .. })));
    let index: Vec<u32> = (0..40).collect();
    let w = Weights::new(8, problem.blocks, &index, &[1.0; 40]).unwrap();
    let full = Net::new(w, Weights::empty(3, problem.blocks)).unwrap();
    assert!(matches!(go(full), Err(Error::Length { got: 23, .. })), "{:?}", go(full));
    let bad = Weights::new(3, problem.blocks, &[2], &[f32::INFINITY]).unwrap();
    let bad = Net::new(Weights::empty(8, problem.blocks), bad).unwrap();
    assert!(matches!(go(bad), Err(Error::NotFinite { .. })));
    let half = Weights::new(8, problem.blocks, &[9], &[1.0]).unwrap();
    go(Net::new(half, Weights::empty(3, problem.blocks)).unwrap()).unwrap();
    go(none).unwrap();
}

#[test]
fn a_run_needs_its_budget_to_the_word() {
    let problem = Problem::planted((200, 8, 3), &NEURONS, 0);
    let params = Params { kicks: 3, steps: 100, ..Params::DEFAULT };
    let exactly = problem.run(&params).unwrap();
    assert_eq!(problem.go(&params, None, 1000, |_| true).unwrap(), exactly);
    let budget = Recovery::factored(problem.dims, 3, 2, 408);
    let bytes = 4 * budget.words();
    let short = problem.go(&params, None, -1, |_| true);
    assert_eq!(short.unwrap_err(), Error::Budget { needed: bytes, got: bytes - 4 });
}

#[test]
fn the_state_takes_less_than_100_bytes_per_nonzero_besides_rows_inputs_and_outputs() {
    for (m, s, c) in [(10, 100, 10), (1000, 1000, 10), (20, 10_000, 300)] {
        let state = Recovery::factored(Dims::new(50_000, 100, m, s), c, 1, 0).state_bytes();
        assert!(state < 100 * s + 16 * 100 + 16 * c, "m = {m}, s = {s}, c = {c}: {state}");
    }
}

#[test]
fn any_number_of_blocks_works_and_none_is_refused() {
    for blocks in 0..7 {
        let mut problem = Problem::planted((200, 8, 3), &NEURONS, 0);
        problem.blocks = blocks;
        let params = Params { kicks: 2, steps: 40, ..Params::DEFAULT };
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
    let problem = Problem::planted((100, 8, 3), &NEURONS, 0);
    let failed = |change: &dyn Fn(&mut Problem, &mut Params)| {
        let (mut problem, mut params) = (problem.clone(), Params::DEFAULT);
        change(&mut problem, &mut params);
        problem.run(&params).unwrap_err()
    };
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
    let (rows, d, m) = (1 + rng.below(60) as usize, 1 + rng.below(7) as usize, 1 + rng.below(5) as usize);
    let rows = if rng.below(10) == 0 { 1 } else { rows };
    let c = 1 + rng.below(4) as usize;
    let all = m * (d + c);
    let nnz = match rng.below(4) {
        0 => 1 + rng.below(3) as usize,
        1 => all,
        _ => 1 + rng.below(all as u32) as usize,
    };
    let nnz = nnz.min(all);
    let columns = shared::columns(rows, d, &mut rng);
    let x: Vec<f32> = (0..rows * d).map(|at| columns[at % d * rows + at / d]).collect();
    let scale = 10.0_f32.powi([0, 0, 0, -30, 30, 3][rng.below(6) as usize]);
    let kinds: Vec<u32> = (0..c).map(|_| rng.below(6)).collect();
    let a: Vec<f32> = (0..2 * d).map(|_| rng.normal()).collect();
    let mut y = Vec::new();
    for row in x.chunks(d) {
        let size =
            |j: usize| columns[j * rows..][..rows].iter().fold(f32::MIN_POSITIVE, |m, x| m.max(x.abs()));
        let z = |a: &[f32]| row.iter().enumerate().map(|(j, x)| a[j] * x / size(j)).sum::<f32>();
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
    let blocks = if rng.below(3) == 0 { 1 + rng.below(4) as usize } else { lm::slots(m, Signs::Positive) };
    let params = Params {
        seed,
        rows: rng.below(40) as usize,
        kicks: rng.below(4),
        steps: rng.below(80),
        random_births: rng.below(4),
        validation: if rng.below(2) == 0 { rng.below(rows as u32) as usize } else { 0 },
        validation_patience: rng.below(3),
        ..Params::DEFAULT
    };
    (Problem { x, y, dims: Dims::new(rows, d, m, nnz), outputs: c, blocks }, params)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_problem_gives_a_result_within_its_bounds(seed in any::<u64>()) {
        let (problem, params) = problem(seed);
        match problem.run(&params) {
            Ok(result) => problem.check(&result, &params),
            // Labels of 1e30 over inputs of 1e-6 may ask for more than floats hold.
            Err(Error::NotFinite { what, .. }) if problem.y.iter().any(|y| y.abs() > 1e20) => {
                prop_assert!(what.starts_with("weights"), "{}", what);
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }

    #[test]
    fn an_observer_may_end_a_run_at_any_call(seed in any::<u64>(), calls in 0_u32..40) {
        let (problem, params) = problem(seed);
        let mut left = calls;
        let result = problem.go(&params, None, 0, |_| {
            assert!(left != u32::MAX, "called after the end");
            left = left.wrapping_sub(1);
            left != u32::MAX
        });
        if let Ok(result) = result {
            problem.check(&result, &params);
            prop_assert_eq!(result.1.stopped, left == u32::MAX);
        }
    }
}
