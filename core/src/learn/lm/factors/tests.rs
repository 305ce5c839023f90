//! Every edit and move of networks of several outputs, on a model of 60 rows of four normal inputs.

mod layered;

extern crate std;
use super::*;
use crate::base::budget::gated_words;
use crate::base::math::unit_scale;
use crate::data::samples::{NormalRows, Samples};
use crate::learn::lm::Params;
use crate::learn::lm::fit::Data;
use crate::learn::lm::model::{Moves, Support, Task};
use crate::learn::lm::neuron::{Draw, Move, Origin};
use crate::learn::lm::neuron::{Entries, Single};
use crate::learn::lm::sides::Sides;
use crate::learn::lm::solver::{Equations, Solver};
use crate::learn::lm::support::Columns;
use crate::network::net::Shape;
use crate::network::weights::Weights;
use crate::operator::gated::Gated;
use std::vec;
use std::vec::Vec;

/// Inputs, outputs and blocks.
const D: usize = 4;
const C: usize = 3;
const P: usize = 5;
const N: usize = 60;
/// Room for weights.
const ROOM: usize = 24;

/// A neuron: weights from the inputs and to the outputs.
type Neuron = ([f32; D], [f32; C]);

const FIRST: Neuron = ([1.0, -2.0, 0.5, 0.0], [0.0, 1.5, -1.0]);
const SECOND: Neuron = ([0.0, 1.0, 0.0, 1.0], [2.0, 0.0, 0.0]);

/// Calls `body` with a model on which labels are the outputs of `planted` and the network is `net`,
/// (its number, the neuron), brought to their scale; s = 10, m = 3.
fn with(
    planted: &[Neuron],
    net: &[(usize, Neuron)],
    body: impl FnOnce(&mut Model<'_, Gated<'static, NormalRows>, SeveralOutputs>),
) {
    let mut rows = NormalRows::new(5, N, D);
    let mut labels = vec![0.0; N * C];
    for (k, y) in labels.chunks_mut(C).enumerate() {
        let mut x = [0.0; D];
        rows.row(k, &mut x).unwrap();
        for (w, wt) in planted {
            let a = w.iter().zip(&x).map(|(w, x)| w * x).sum::<f32>().max(0.0);
            y.iter_mut().zip(wt).for_each(|(y, v)| *y += a * v);
        }
    }
    let memory = vec![0.0; gated_words(D, P)].leak();
    let mut sensing = Gated::new(rows, P, 1, memory).unwrap();
    let mut floats = vec![vec![0.0; N * C]; 20];
    let mut next = floats.iter_mut().map(Vec::as_mut_slice);
    let mut take = |len: usize| next.next().and_then(|floats| floats.get_mut(..len)).unwrap();
    let solver = Solver::new(core::array::from_fn(|_| take(ROOM)), Params::DEFAULT.products);
    let (mut index, mut entry, mut out) = ([0; ROOM], [0; D], [0; C]);
    let (residual, scratch) = (take(N * C), take(2 * N + D));
    let data = Data { labels: &labels[..], outputs: C, head: SeveralOutputs, residual, scratch };
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
    let entries = |i: usize, values: &[f32], scale: f32| -> Vec<(u32, f32)> {
        let all = values.iter().zip((i * values.len()) as u32..);
        all.filter(|(v, _)| **v != 0.0).map(|(v, j)| (j, v * scale)).collect()
    };
    let scale = unit_scale(&labels);
    for (i, (w, wt)) in net {
        let (index, value): (Vec<u32>, Vec<f32>) = entries(*i, w, 1.0).into_iter().unzip();
        assert!(factors.net.edit_w(|w| w.add(&index, &value)));
        let (index, value): (Vec<u32>, Vec<f32>) = entries(*i, wt, scale).into_iter().unzip();
        assert!(factors.net.edit_wt(|wt| wt.add(&index, &value)));
    }
    body(&mut factors);
}

fn scaled_by(neuron: Neuron, a: f32, b: f32) -> Neuron {
    (neuron.0.map(|w| w * a), neuron.1.map(|w| w * b))
}

#[test]
fn planted_loss_is_zero_empty_loss_label_power() {
    with(&[FIRST, SECOND], &[(1, FIRST), (4, SECOND)], |model| {
        assert!(model.loss().unwrap() < 1e-13);
        assert_eq!((model.live(), model.counted(), model.nth_live(1)), (2, 8, Some(4)));
    });
    with(&[FIRST, SECOND], &[], |model| {
        assert_eq!(model.loss().unwrap(), model.fit.power);
    });
}

#[test]
fn the_equations_are_those_of_the_jacobian() {
    with(&[FIRST], &[(0, SECOND), (3, scaled_by(FIRST, 0.5, 0.5))], |model| {
        model.loss().unwrap();
        let residual = model.fit.residual().to_vec();
        let base = model.net.all_values().to_vec();
        let s = base.len();
        // Columns of J by central differences: the outputs are bilinear between two hinges.
        let mut columns = Vec::new();
        for e in 0..s {
            let mut ends = Vec::new();
            for step in [1.0 / 1024.0, -1.0 / 1024.0] {
                let mut values = base.clone();
                values[e] += step;
                model.net.set_values(&values);
                model.loss().unwrap();
                ends.push(model.fit.residual().to_vec());
            }
            let column: Vec<f32> =
                ends[1].iter().zip(&ends[0]).map(|(a, b)| (a - b) * 512.0).collect();
            columns.push(column);
        }
        model.net.set_values(&base);
        model.loss().unwrap();
        let Model { fit, net, single, .. } = model;
        let (mut rhs, mut diagonal) = (vec![0.0; s], vec![0.0; s]);
        let mut equations = equations::Jacobian::new(fit, net, single.z);
        equations.set_up(&mut rhs, &mut diagonal).unwrap();
        for (e, column) in columns.iter().enumerate() {
            let along: f32 = column.iter().zip(&residual).map(|(a, b)| a * b).sum();
            let norm: f32 = column.iter().map(|a| a * a).sum();
            assert!(
                (rhs[e] - along).abs() < 1e-2 * (1.0 + along.abs()),
                "{e}: {} and {along}",
                rhs[e]
            );
            assert!((diagonal[e] - norm).abs() < 1e-2 * norm, "{e}: {} and {norm}", diagonal[e]);
            let mut product = vec![0.0; s];
            let unit: Vec<f32> = (0..s).map(|k| if k == e { 1.0 } else { 0.0 }).collect();
            equations.multiply(&unit, &mut product).unwrap();
            for (product, other) in product.iter().zip(&columns) {
                let expected: f32 = other.iter().zip(column).map(|(a, b)| a * b).sum();
                assert!(
                    (product - expected).abs() < 2e-2 * (1.0 + expected.abs()),
                    "{product} and {expected}"
                );
            }
        }
    });
}

#[test]
fn support_fit_is_exact_and_balanced_across_layers() {
    let start = scaled_by(([0.5, -1.0, 1.0, 0.0], [0.0, 1.0, -0.5]), 100.0, 0.01);
    with(&[FIRST, SECOND], &[(2, start), (0, scaled_by(SECOND, 0.01, 20.0))], |model| {
        let loss = model.loss().unwrap();
        let loss = model.improve(loss, 30, 0.0).unwrap();
        assert!(loss < 1e-12, "{loss}");
        assert_eq!(model.loss().unwrap(), loss);
        for i in [0, 2] {
            let w = square_in(model.net.view().w().block(i), model.columns.scales());
            let wt: f32 = model.net.view().wt().block(i).values().iter().map(|v| v * v).sum();
            assert!((0.24..4.2).contains(&(w / wt)), "{w} {wt}");
        }
    });
}

#[test]
fn balancing_keeps_every_bit_of_the_outputs() {
    let net = [(0, scaled_by(FIRST, 3e-9, 7e8)), (3, scaled_by(SECOND, 5e5, 1e-6))];
    with(&[FIRST, SECOND], &net, |model| {
        model.loss().unwrap();
        let before = model.fit.residual().to_vec();
        model.balance();
        model.loss().unwrap();
        assert_eq!(model.fit.residual(), before);
    });
    assert_eq!(quarter(1.0), None);
    assert_eq!(quarter(16.0), Some((2.0, 0.5)));
    assert_eq!(quarter(0.06), Some((0.5, 2.0)));
    for x in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e-40] {
        assert_eq!(quarter(x), None);
    }
    assert!(quarter(f32::MAX).is_some() && quarter(f32::MIN_POSITIVE).is_some());
}

#[test]
fn growth_finds_the_missing_weights_on_either_side() {
    let missing: Neuron = ([1.0, -2.0, 0.0, 0.0], [0.0, 1.5, 0.0]);
    with(&[FIRST], &[(2, missing)], |model| {
        model.loss().unwrap();
        model.grow(2).unwrap();
        let net = model.net.view();
        assert_eq!((net.w().index(), net.wt().index()), (&[8, 9, 10][..], &[7, 8][..]));
        // Zeros change nothing.
        let loss = model.loss().unwrap();
        assert!(model.improve(loss, 20, 0.0).unwrap() < 1e-12);
    });
    // No more than a neuron has, and none for neurons without weights.
    with(&[FIRST, SECOND], &[(2, missing)], |model| {
        model.loss().unwrap();
        model.grow(100).unwrap();
        assert_eq!((model.live(), model.counted()), (1, D + C));
    });
    with(&[FIRST], &[], |model| {
        model.loss().unwrap();
        model.grow(5).unwrap();
        assert_eq!(model.counted(), 0);
    });
}

#[test]
fn thresholding_weighs_both_sides_whatever_their_scale() {
    let small: Neuron = ([1.0, -2.0, 0.5, 0.01], [0.01, 1.5, -1.0]);
    for split in [1.0, 1024.0, 1.0 / 1024.0] {
        with(&[FIRST], &[(1, scaled_by(small, split, 1.0 / split))], |model| {
            model.threshold(5).unwrap();
            let net = model.net.view();
            assert_eq!((net.w().index(), net.wt().index()), (&[4, 5, 6][..], &[4, 5][..]));
            model.threshold(0).unwrap();
            assert_eq!(model.counted(), 0);
        });
    }
}

#[test]
fn neuron_without_input_weights_loses_output_weights_too() {
    let weak = scaled_by(([0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0]), 0.01, 0.01);
    with(&[FIRST], &[(0, FIRST), (1, weak)], |model| {
        model.threshold(6).unwrap();
        assert_eq!((model.live(), model.counted()), (1, 5));
    });
}

#[test]
fn neuron_with_wrong_direction_is_flipped() {
    let wrong = (FIRST.0.map(|w| -w), [0.0, 0.5, 0.5]);
    with(&[FIRST, SECOND], &[(1, wrong), (3, SECOND)], |model| {
        let loss = model.loss().unwrap();
        let turned = model.flip(loss).unwrap();
        assert!(turned < 1e-10 && loss > 1e-2, "{loss} {turned}");
        assert_eq!(model.task.info.flips, 1);
        assert_eq!(model.flip(turned).unwrap(), turned);
    });
}

#[test]
fn neurons_with_same_hinge_merge_summing_output_weights() {
    let parts = [
        (0, (FIRST.0.map(|w| 0.5 * w), [0.0, 3.0, 0.0])),
        (2, (FIRST.0, [0.0, 0.0, -1.0])),
        (3, (FIRST.0.map(|w| -w), [1.0, 0.0, 0.0])),
    ];
    let mirrored = (FIRST.0.map(|w| -w), [1.0, 0.0, 0.0]);
    with(&[FIRST, mirrored], &parts, |model| {
        assert_eq!(model.merge(0.999).unwrap(), 1);
        assert!(model.loss().unwrap() < 1e-12);
        assert_eq!((model.live(), model.counted(), model.task.info.merges), (2, 5 + 4, 1));
    });
}

/// The loss after some outer steps.
fn settled(model: &mut Model<'_, Gated<'static, NormalRows>, SeveralOutputs>) -> f32 {
    let mut loss = model.refit(5).unwrap();
    for _ in 0..6 {
        loss = model.outer(loss, 12).unwrap();
    }
    loss
}

#[test]
fn a_new_neuron_is_the_missing_one() {
    for seedling in [Origin::Atom(3), Origin::Random(9), Origin::Output(4, 2)] {
        with(&[FIRST, SECOND], &[(3, SECOND)], |model| {
            let before = model.loss().unwrap();
            let gain = model.alternate(seedling, 3, 2).unwrap();
            // What it says to win it wins.
            model.add_formed(0, 1).unwrap();
            let after = model.loss().unwrap();
            let won = (before - after) * (N * C) as f32;
            assert!((won - gain).abs() < 1e-3 * gain && gain > 0.0, "{seedling:?}: {won} {gain}");
            assert!(settled(model) < 1e-8, "{seedling:?}");
        });
    }
}

#[test]
fn candidates_are_sorted_by_gain_and_best_helps() {
    with(&[FIRST, SECOND], &[(3, SECOND)], |model| {
        let before = model.loss().unwrap();
        let draw = Draw { seed: 3, random: 2 };
        let list = model.candidates(draw).unwrap();
        assert!(list.len() > 8 && list.windows(2).all(|pair| pair[0].gain >= pair[1].gain));
        model.loss().unwrap();
        assert!(model.apply(list[0].kind, draw).unwrap());
        assert!(settled(model) < 1e-8 && before > 1e-2);
        assert_eq!(model.live(), 2);
    });
}

#[test]
fn one_neuron_that_stands_for_two_is_split() {
    let up = ([1.0, 1.0, 0.0, 0.0], [1.0, 0.0, -1.0]);
    let down = ([1.0, -1.0, 0.0, 0.0], [1.0, 0.0, -1.0]);
    let both = ([2.0, 0.0, 0.0, 0.0], [1.0, 0.0, -1.0]);
    with(&[up, down], &[(2, both)], |model| {
        let before = model.loss().unwrap();
        assert!(model.apply(Move::Split(2), Draw { seed: 1, random: 0 }).unwrap());
        assert_eq!(model.live(), 2);
        assert!(model.refit(30).unwrap() < 1e-3 * before);
    });
}

#[test]
fn weakest_neuron_is_evicted_when_none_is_vacant() {
    let net: Vec<(usize, Neuron)> =
        (0..P).map(|i| (i, scaled_by(SECOND, 1.0 + (i as f32 - 2.0).abs(), 1.0))).collect();
    with(&[SECOND], &net, |model| {
        assert_eq!(
            (model.vacant(1.0), model.weakest(|_| true), model.weakest(|i| i != 2)),
            (None, Some(2), Some(1))
        );
        assert_eq!(
            (model.vacate(1.0, Some(2)), model.vacate(1.0, None), model.live()),
            (Some(1), Some(1), P - 1)
        );
    });
}

#[test]
fn initial_support_fits_budget_with_both_sides_nonempty() {
    with(&[FIRST, SECOND], &[], |model| {
        model.start(1).unwrap();
        assert!((2..=10).contains(&model.counted()), "{}", model.counted());
        let net = model.net.view();
        let neurons = |w: Weights<'_>| w.blocks().map(|block| block.neuron()).collect::<Vec<_>>();
        assert_eq!(neurons(net.w()), neurons(net.wt()));
        // One factor for all: the outputs are no longer than they should be.
        assert!(model.loss().unwrap() <= model.fit.power);
    });
}

#[test]
fn shrinking_ends_at_s_weights_and_m_neurons() {
    let net: Vec<(usize, Neuron)> = (0..P - 1)
        .map(|i| (i, scaled_by(FIRST, 1.0 + i as f32, 1.0)))
        .chain([(4, SECOND)])
        .collect();
    with(&[FIRST], &net, |model| {
        let loss = model.loss().unwrap();
        let mut reports = 0;
        let report = |_: &mut _, _| {
            reports += 1;
            true
        };
        let loss = model.thin(loss, report).unwrap();
        assert!(model.counted() <= 10, "{}", model.counted());
        let loss = model.narrow(loss).unwrap();
        assert!(model.live() <= 3 && loss.is_finite());
    });
}
