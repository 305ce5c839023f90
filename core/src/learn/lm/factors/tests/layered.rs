//! Every edit and move of networks of two layers, on a model of 200 rows of four normal inputs.

extern crate std;
use super::super::*;
use crate::base::budget::gated_words;
use crate::base::math::unit_scale;
use crate::data::samples::{NormalRows, Samples};
use crate::learn::lm::Params;
use crate::learn::lm::fit::Data;
use crate::learn::lm::model::{Moves, Support, Task};
use crate::learn::lm::neuron::{Candidates, Draw, Move, Pair};
use crate::learn::lm::neuron::{Entries, Single};
use crate::learn::lm::sides::Sides;
use crate::learn::lm::solver::{Equations, Solver};
use crate::learn::lm::support::Columns;
use crate::network::net::Shape;
use crate::operator::gated::Gated;
use std::vec;
use std::vec::Vec;

/// Inputs, outputs of the first layer with output 0, and its blocks.
const D: usize = 4;
const C: usize = 5;
const P: usize = 5;
const N: usize = 200;
/// Room for weights.
const ROOM: usize = 32;

/// A neuron of the first layer: weights from the inputs and to the outputs.
type Neuron = ([f32; D], [f32; C]);

/// `relu(a - b) + relu(2 b - a / 2)` for `a = relu(x_0 - 2 x_1)` and `b = relu(x_2 + x_3 / 2)`.
const FIRST: Neuron = ([1.0, -2.0, 0.0, 0.0], [0.0, 1.0, -0.5, 0.0, 0.0]);
const SECOND: Neuron = ([0.0, 0.0, 1.0, 0.5], [0.0, -1.0, 2.0, 0.0, 0.0]);

/// The sum of output 0 and of the others where they are positive.
fn answer(net: &[Neuron], x: &[f32]) -> f32 {
    let mut z = [0.0; C];
    for (w, wt) in net {
        let a = w.iter().zip(x).map(|(w, x)| w * x).sum::<f32>().max(0.0);
        z.iter_mut().zip(wt).for_each(|(z, v)| *z += a * v);
    }
    z[0] + z[1..].iter().map(|z| z.max(0.0)).sum::<f32>()
}

/// Calls `body` with a model on which labels are those of `planted` and the network is `net`, (its
/// number, the neuron), brought to their scale; s = 10, three neurons in either layer.
fn with(
    planted: &[Neuron],
    net: &[(usize, Neuron)],
    body: impl FnOnce(
        &mut Model<'_, Gated<'static, NormalRows>, SecondLayer<'_, Gated<'static, NormalRows>>>,
    ),
) {
    let mut rows = NormalRows::new(5, N, D);
    let mut labels = vec![0.0; N];
    for (k, y) in labels.iter_mut().enumerate() {
        let mut x = [0.0; D];
        rows.row(k, &mut x).unwrap();
        *y = answer(planted, &x);
    }
    let memory = vec![0.0; gated_words(D, P)].leak();
    let mut sensing = Gated::new(rows, P, 1, memory).unwrap();
    let mut floats = vec![vec![0.0; N * C]; 20];
    let mut next = floats.iter_mut().map(Vec::as_mut_slice);
    let mut take = |len: usize| next.next().and_then(|floats| floats.get_mut(..len)).unwrap();
    let solver = Solver::new(core::array::from_fn(|_| take(ROOM)), Params::DEFAULT.products);
    let (mut index, mut entry, mut out, mut open) = ([0; ROOM], [0; D], [0; C], [0.0; N]);
    let head = SecondLayer { open: &mut open[..], neurons: 3 };
    let (residual, scratch) = (take(N), take(2 * N + D));
    let data = Data { labels: &labels[..], outputs: C, head, residual, scratch };
    let mut fit = Fit::new(&mut sensing, data, &Params::DEFAULT).unwrap();
    let mut columns = Columns { scales: take(D), panel: take(D + C) };
    columns.measure(&mut fit).unwrap();
    let mut factors = Model {
        fit,
        solver,
        net: Sides::new(Shape::weighted(D, P, C), &mut index, take(ROOM)),
        columns,
        single: Single {
            share: 0.5,
            entries: Entries::new(&mut entry, take(D)),
            dense: take(D),
            z: take(N),
            t: take(N),
        },
        out: OutputBuffers {
            entries: Entries::new(&mut out, take(C)),
            along: take(C),
            other: take(C),
            back: take(N),
        },
        task: Task { goal: 1e-12, nnz: 10, hidden: 3, spare: 25, ..Task::default() },
    };
    let scale = unit_scale(&labels);
    for (i, (w, wt)) in net {
        let entries = |values: &[f32], scale: f32| -> (Vec<u32>, Vec<f32>) {
            let all = values.iter().zip((i * values.len()) as u32..);
            all.filter(|(v, _)| **v != 0.0).map(|(v, j)| (j, v * scale)).unzip()
        };
        let (index, value) = entries(w, 1.0);
        assert!(factors.net.edit_w(|w| w.add(&index, &value)));
        let (index, value) = entries(wt, scale);
        assert!(factors.net.edit_wt(|wt| wt.add(&index, &value)));
    }
    body(&mut factors);
}

/// Another weight of a neuron to output k.
fn leading(neuron: Neuron, k: usize, v: f32) -> Neuron {
    let mut wt = neuron.1;
    wt[k] = v;
    (neuron.0, wt)
}

/// A neuron of these weights.
fn of(w: [f32; D], wt: [f32; C]) -> Neuron {
    (w, wt)
}

#[test]
fn planted_network_has_zero_loss_residual_respects_gates() {
    with(&[FIRST, SECOND], &[(1, FIRST), (4, SECOND)], |model| {
        assert!(model.loss().unwrap() < 1e-13);
        assert_eq!((model.live(), model.counted(), model.nth_live(1)), (4, 8, Some(4)));
        assert_eq!([2, 3, 4].map(|nth| model.nth_live(nth)), [Some(P + 1), Some(P + 2), None]);
    });
    with(&[FIRST, SECOND], &[(1, FIRST)], |model| {
        let loss = model.loss().unwrap();
        let total: f32 = model.fit.residual().iter().map(|r| r * r).sum();
        assert!((total / N as f32 - loss).abs() < 1e-5 * loss);
        // Output 0 is open everywhere, output 1 where the first neuron is, and no other one anywhere.
        let open: Vec<u32> = model.fit.head.open.iter().map(|word| word.to_bits()).collect();
        assert!(open.iter().all(|word| matches!(word, 0b01 | 0b11)));
        let both = open.iter().filter(|word| **word == 0b11).count();
        assert!((N / 3..2 * N / 3).contains(&both), "{both}");
    });
}

#[test]
fn the_equations_are_those_of_the_jacobian() {
    let net = [
        (0, leading(SECOND, 0, 0.25)),
        (3, of([0.5, -1.0, 0.25, 0.0], [-0.5, 0.75, 0.0, 0.0, 0.0])),
    ];
    with(&[FIRST], &net, |model| {
        model.loss().unwrap();
        let residual: Vec<f32> = model.fit.residual().to_vec();
        let base = model.net.all_values().to_vec();
        let s = base.len();
        let mut columns = Vec::new();
        for e in 0..s {
            let mut ends = Vec::new();
            for step in [1.0 / 4096.0, -1.0 / 4096.0] {
                let mut values = base.clone();
                values[e] += step;
                model.net.set_values(&values);
                model.loss().unwrap();
                ends.push(model.fit.residual().to_vec());
            }
            let column: Vec<f32> =
                ends[1].iter().zip(&ends[0]).map(|(a, b)| (a - b) * 2048.0).collect();
            columns.push(column);
        }
        model.net.set_values(&base);
        model.loss().unwrap();
        let Model { fit, net, single, .. } = model;
        let (mut rhs, mut diagonal) = (vec![0.0; s], vec![0.0; s]);
        let mut equations = equations::Jacobian::new(fit, net, single.z);
        equations.set_up(&mut rhs, &mut diagonal).unwrap();
        // Trying others, whose second layer is open elsewhere, changes no product.
        let far: Vec<f32> = base.iter().map(|v| -v).collect();
        equations.loss(Some(&far)).unwrap();
        for (e, column) in columns.iter().enumerate() {
            let along: f32 = column.iter().zip(&residual).map(|(a, b)| a * b).sum();
            let norm: f32 = column.iter().map(|a| a * a).sum();
            assert!(
                (rhs[e] - along).abs() < 2e-2 * (1.0 + along.abs()),
                "{e}: {} and {along}",
                rhs[e]
            );
            // Inputs and open outputs are taken for independent.
            assert!((diagonal[e] / norm - 1.0).abs() < 0.8, "{e}: {} and {norm}", diagonal[e]);
            let mut product = vec![0.0; s];
            let unit: Vec<f32> = (0..s).map(|k| if k == e { 1.0 } else { 0.0 }).collect();
            equations.multiply(&unit, &mut product).unwrap();
            for (product, other) in product.iter().zip(&columns) {
                let expected: f32 = other.iter().zip(column).map(|(a, b)| a * b).sum();
                let size: f32 = other.iter().map(|a| a * a).sum::<f32>() * norm;
                assert!(
                    (product - expected).abs() < 2e-2 * (1.0 + size.sqrt()),
                    "{product} and {expected}"
                );
            }
        }
    });
}

#[test]
fn a_fit_on_the_support_is_exact() {
    let start = of([0.5, -1.5, 0.0, 0.0], [0.0, 1.5, -0.4, 0.0, 0.0]);
    with(&[FIRST, SECOND], &[(2, start), (0, SECOND)], |model| {
        let loss = model.loss().unwrap();
        assert!(model.improve(loss, 30, 0.0).unwrap() < 1e-12 && loss > 1e-4);
    });
}

#[test]
fn threshold_keeps_contributing_weights_and_all_linear_ones() {
    // Output 3 is open nowhere, so its weights contribute nothing.
    let net = [(0, leading(leading(FIRST, 0, 1e-6), 3, -9.0)), (1, leading(SECOND, 3, -9.0))];
    with(&[FIRST, SECOND], &net, |model| {
        model.loss().unwrap();
        assert_eq!((model.counted(), model.view().nnz()), (10, 11));
        model.threshold(8).unwrap();
        assert_eq!((model.counted(), model.view().nnz(), model.second_live()), (8, 9, 2));
        assert!(model.loss().unwrap() < 1e-10);
    });
}

#[test]
fn growth_finds_the_missing_weight_of_either_layer() {
    let net = [(0, of([1.0, 0.0, 0.0, 0.0], FIRST.1)), (3, SECOND)];
    with(&[FIRST, SECOND], &net, |model| {
        model.loss().unwrap();
        model.grow(1).unwrap();
        assert_eq!(model.net.view().w().index(), [0, 1, 14, 15]);
    });
    let net = [(0, FIRST), (3, of(SECOND.0, [0.0, 0.0, 2.0, 0.0, 0.0]))];
    with(&[FIRST, SECOND], &net, |model| {
        model.loss().unwrap();
        model.grow(1).unwrap();
        assert_eq!(model.net.view().wt().index(), [1, 2, 16, 17]);
        // Where activations pass through, every neuron does, beyond what is asked for.
        model.relax().unwrap();
        assert_eq!((model.passed(), model.counted()), (2, 8));
    });
}

#[test]
fn pair_move_adds_second_layer_neuron() {
    let net = [
        (0, of(FIRST.0, [0.0, 0.0, -0.5, 0.0, 0.0])),
        (3, of(SECOND.0, [0.0, 0.0, 2.0, 0.0, 0.0])),
    ];
    with(&[FIRST, SECOND], &net, |model| {
        model.loss().unwrap();
        let mut list = Candidates::new();
        model.list_pairs(&mut list).unwrap();
        let best = list.first().unwrap();
        let Move::Pair(Pair { first, other, ratio }) = best.kind else { panic!("a pair") };
        assert_eq!((first, other), (0, 3));
        assert!(best.gain > 0.2 * model.fit.power * N as f32);
        assert!(model.add_pair(Pair { first, other, ratio }).unwrap());
        assert_eq!(model.net.view().wt().index(), [1, 2, 16, 17]);
        assert!(model.refit(30).unwrap() < 1e-12);
    });
}

#[test]
fn new_first_layer_neurons_use_second_layer_gates() {
    with(&[FIRST, SECOND], &[(0, FIRST)], |model| {
        model.loss().unwrap();
        let list = model.candidates(Draw { seed: 1, random: 6 }).unwrap();
        let added = list.iter().find(|c| matches!(c.kind, Move::Add(..))).unwrap();
        let before = model.loss().unwrap();
        assert!(model.apply(added.kind, Draw { seed: 1, random: 6 }).unwrap());
        assert!(model.refit(5).unwrap() < 0.7 * before && model.live() == 4);
    });
}

#[test]
fn equivalent_second_layer_neurons_merge() {
    // Outputs 1 and 3 are parallel, 2 is linear, 4 never open.
    let wt = |v: [f32; C]| v;
    let net = [
        (0, of(FIRST.0, wt([0.5, 1.0, 1.0, 0.5, -1.0]))),
        (1, of(SECOND.0, wt([0.0, -1.0, 2.0, -0.5, -2.0]))),
    ];
    let planted = [net[0].1, net[1].1];
    with(&planted, &net, |model| {
        assert_eq!(model.merge(0.999).unwrap(), 3);
        assert!(model.loss().unwrap() < 1e-12);
        assert_eq!((model.second_live(), model.counted(), model.passed()), (1, 6, 2));
    });
    // A mirror image is what the other one is, and linear.
    let net = [
        (0, of(FIRST.0, wt([0.5, 1.0, 0.0, -0.5, 0.0]))),
        (1, of(SECOND.0, wt([0.0, -1.0, 0.0, 0.5, 0.0]))),
    ];
    let planted = [net[0].1, net[1].1];
    with(&planted, &net, |model| {
        assert_eq!(model.merge(0.999).unwrap(), 1);
        assert!(model.loss().unwrap() < 1e-12 && model.second_live() == 1);
    });
}

#[test]
fn linear_pass_through_folds_into_signs_and_neuron() {
    // relu(u) = u + relu(-u) for both outputs, and 0.75 a of its own.
    let planted = [leading(FIRST, 3, 0.75), SECOND];
    let mirrored =
        |n: Neuron, own: f32| of(n.0, [n.1[1] + n.1[2] + own, -n.1[1], -n.1[2], 0.0, 0.0]);
    with(&planted, &[(0, mirrored(FIRST, 0.75)), (2, mirrored(SECOND, 0.0))], |model| {
        let loss = model.loss().unwrap();
        assert!(loss < 1e-12 && model.passed() > 0);
        let (mut index, mut value) = ([[0; ROOM]; 2], [[0.0; ROOM]; 2]);
        let [mut scratch, mut other] = {
            let ([i, j], [v, w]) = (&mut index, &mut value);
            [Sides::new(Shape::weighted(D, P, C), i, v), Sides::new(Shape::weighted(D, P, C), j, w)]
        };
        assert!(model.conclude(loss, [&mut scratch, &mut other]).unwrap() < 1e-12);
        assert_eq!(
            (model.passed(), model.counted(), model.second_live(), model.task.info.folds),
            (0, 9, 3, 1)
        );
        let up = model.net.view().wt().block(0).entries().find(|(k, _)| *k == 1).unwrap().1;
        assert!(up > 0.0);
    });
}

#[test]
fn folded_neuron_is_flipped_back() {
    // relu(p - q) in the place of relu(relu(p) - relu(q)): a neuron of p - q, and the mirror image
    // of q.
    let planted = [
        of([1.0, -2.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0]),
        of([0.0, 0.0, 1.0, 0.5], [0.0, -1.0, 0.0, 0.0, 0.0]),
    ];
    let net = [
        (1, of([1.0, -2.0, -1.0, -0.5], [0.0, 1.0, 0.0, 0.0, 0.0])),
        (3, of([0.0, 0.0, -1.0, -0.5], [0.0, -1.0, 0.0, 0.0, 0.0])),
    ];
    with(&planted, &net, |model| {
        assert!(model.loss().unwrap() < 1e-12);
        assert_eq!([0, 1, 3].map(|i| model.unmirror(i).unwrap()), [0, 0, 1]);
        model.loss().unwrap();
        model.threshold(6).unwrap();
        assert!(model.loss().unwrap() < 1e-12);
        assert_eq!(model.net.view().w().index(), [4, 5, 14, 15]);
    });
}

#[test]
fn first_layers_fit_budget_and_reduce_loss() {
    with(&[FIRST, SECOND], &[], |model| {
        model.start(3).unwrap();
        let loss = model.loss().unwrap();
        assert!(loss < 0.9 * model.fit.power, "{loss}");
        assert!(
            model.net.view().w().nnz() <= 6 && model.passed() > 0 && model.view().nnz() <= ROOM
        );
    });
}
