//! New neurons and splits of the network of one output: what is listed, how it is formed, where it
//! goes.

extern crate std;
use super::super::*;
use crate::base::math::{dot, norm2, sqrt};
use crate::learn::lm::neuron::{BATCH, Draw, Move};
use crate::learn::lm::signed::tests::{D, N, P, even, with, with_rows};
use crate::network::gates::Signs;
use std::vec::Vec;

const FIRST: [f32; D] = [1.0, -2.0, 0.5, 0.0];
const SECOND: [f32; D] = [0.0, 1.0, 0.0, 1.0];
const PLANTED: [(f32, [f32; D]); 2] = [(1.0, FIRST), (1.0, SECOND)];
/// The second one as neuron 3.
const HALF: [(u32, f32); 2] = [(13, 1.0), (15, 1.0)];
const DRAW: Draw = Draw { seed: 3, random: 6 };

/// The cosine of neuron `i` and a direction, in the metric of the columns.
fn cosine<S: Sensing>(model: &Model<'_, S, OneOutput>, i: usize, w: &[f32; D]) -> f32 {
    let scales = model.columns.scales();
    let mut own = [0.0; D];
    model.net.view().w().block(i).entries().for_each(|(j, w)| own[j] = w * scales[j]);
    let other: [f32; D] = core::array::from_fn(|j| w[j] * scales[j]);
    dot(&own, &other) / sqrt(norm2(&own) * norm2(&other))
}

#[test]
fn a_new_neuron_points_along_what_is_missing() {
    let missing = [1.0, -2.0, 0.0, 0.0];
    for (signs, v, to) in [(Signs::Positive, 1.0, 0), (Signs::Balanced, -1.0, 1)] {
        let net = [(13, v), (15, v)];
        with_rows(even(), signs, &[(v, missing), (v, SECOND)], &net, |model| {
            let before = model.loss().unwrap();
            let best = model.candidates(DRAW).unwrap()[0];
            assert!(matches!(best.kind, Move::Add(_, sign) if sign == v), "{best:?}");
            assert!(model.apply(best.kind, DRAW).unwrap());
            // The first empty neuron of its sign takes it, with its share of s.
            assert_eq!(model.net.view().w().index(), [4 * to, 4 * to + 1, 13, 15]);
            let cosine = v * cosine(model, to as usize, &missing);
            assert!(cosine > 0.9999, "{cosine}");
            // Its direction is right, so steps bring it to its length.
            assert!(model.refit(9).unwrap() < 1e-11 && before > 1e-2);
        });
    }
}

#[test]
fn growth_adds_what_new_neurons_lack_room_for() {
    with(Signs::Positive, &PLANTED, &HALF, |model| {
        let before = model.loss().unwrap();
        let best = model.candidates(DRAW).unwrap()[0];
        assert!(model.apply(best.kind, DRAW).unwrap());
        assert!(model.neurons().map(|block| block.values().len()).eq([2, 2]));
        let mut loss = model.refit(2).unwrap();
        for _ in 0..3 {
            loss = model.outer(loss, 6).unwrap();
        }
        assert!(loss < 1e-11 && before > 1e-2, "{loss}");
    });
}

#[test]
fn candidates_are_sorted_by_possible_gain() {
    with(Signs::Positive, &PLANTED, &HALF, |model| {
        let power = model.loss().unwrap() * N as f32;
        let list = model.candidates(DRAW).unwrap();
        assert!(list.windows(2).all(|pair| pair[0].gain >= pair[1].gain));
        assert!(list.iter().all(|entry| entry.gain > 0.0 && entry.gain <= power * 1.0001));
        let count =
            |which: &dyn Fn(&Move) -> bool| list.iter().filter(|entry| which(&entry.kind)).count();
        assert_eq!(count(&|kind| *kind == Move::Split(3)), 1);
        assert_eq!(count(&|kind| matches!(kind, Move::Split(_))), 1);
        assert_eq!(count(&|kind| matches!(kind, Move::Add(_, -1.0))), 0);
        let random = |kind: &Move| matches!(kind, Move::Add(Origin::Random(_), _));
        assert_eq!(count(&random), 6);
        // Without random new neurons only those of atoms are left, with the same gains.
        let fewer = model.candidates(Draw { random: 0, ..DRAW }).unwrap();
        assert!(fewer.iter().eq(list.iter().filter(|entry| !random(&entry.kind))));
        // The gain is that of the neuron that is formed, by the factor that suits it best.
        for entry in &list {
            let Move::Add(seedling, _) = entry.kind else { continue };
            let Model { fit, single, columns, .. } = &mut *model;
            assert_eq!(
                single
                    .form(fit, Forming { scales: columns.scales(), neuron: 0, size: 2 }, seedling)
                    .unwrap(),
                entry.gain
            );
        }
    });
}

#[test]
fn atoms_with_largest_single_gain_are_refined() {
    with(Signs::Positive, &PLANTED, &HALF, |model| {
        model.loss().unwrap();
        let gains: Vec<f32> = (0..2 * D as u32)
            .map(|number| model.single.atom_gain(&mut model.fit, number, 0).unwrap())
            .collect();
        let mut order: Vec<u32> = (0..2 * D as u32).collect();
        order.sort_by(|&a, &b| gains[b as usize].total_cmp(&gains[a as usize]));
        let mut listed: Vec<u32> = Vec::new();
        for entry in &model.candidates(Draw { random: 0, ..DRAW }).unwrap() {
            if let Move::Add(Origin::Atom(number), _) = entry.kind {
                listed.push(number);
            }
        }
        listed.sort_unstable();
        order.truncate(BATCH);
        order.retain(|&number| gains[number as usize] > 0.0);
        order.sort_unstable();
        assert!(order.len() < 2 * D);
        assert_eq!(listed, order);
    });
}

#[test]
fn new_neurons_of_both_signs_are_listed() {
    let (up, down) = ([1.0, -2.0, 0.0, 0.0], [0.0, 0.0, 2.0, 1.0]);
    with_rows(even(), Signs::Balanced, &[(1.0, up), (-1.0, down)], &[], |model| {
        model.loss().unwrap();
        let list = model.candidates(DRAW).unwrap();
        for sign in [1.0, -1.0] {
            let best = list
                .iter()
                .find(|entry| matches!(entry.kind, Move::Add(_, s) if s == sign))
                .unwrap();
            assert!(model.apply(best.kind, DRAW).unwrap());
        }
        assert!(model.neurons().map(|block| block.neuron()).eq([0, 1]));
        let cosines = [cosine(model, 0, &up), -cosine(model, 1, &down)];
        assert!(cosines[0] > 0.9 && cosines[1] > 0.9, "{cosines:?}");
    });
    // Where all labels are above 0 a neuron below explains nothing, and the other way round.
    for (sign, only) in [(1.0, 1.0), (-1.0, -1.0)] {
        with(Signs::Balanced, &[(sign, FIRST), (sign, SECOND)], &[], |model| {
            model.loss().unwrap();
            let list = model.candidates(DRAW).unwrap();
            assert!(list.iter().all(|entry| matches!(entry.kind, Move::Add(_, s) if s == only)));
            assert!(list.len() >= BATCH);
        });
    }
}

#[test]
fn a_new_neuron_replaces_the_weakest() {
    let net: Vec<(u32, f32)> =
        (0..P as u32).map(|i| (4 * i + 3, 1.0 + (i as f32 - 4.0).abs())).collect();
    with(Signs::Positive, &PLANTED, &net, |model| {
        model.loss().unwrap();
        assert!(model.apply(Move::Add(Origin::Atom(3), 1.0), DRAW).unwrap());
        assert_eq!(model.live(), P);
        assert_eq!(model.net.view().w().block(4).values().len(), 2);
        for i in [0, 1, 2, 3, 5, 6] {
            assert!(model.net.view().w().block(i).entries().map(|(j, _)| j).eq([3]), "{i}");
        }
    });
    // Of the sign that it has.
    with(Signs::Balanced, &PLANTED, &net, |model| {
        model.loss().unwrap();
        assert!(model.apply(Move::Add(Origin::Atom(3), -1.0), DRAW).unwrap());
        // Of neurons 3 and 5, which are equal, the first.
        assert_eq!([3, 4, 5].map(|i| model.net.view().w().block(i).values().len()), [2, 1, 1]);
    });
}

#[test]
fn what_has_no_place_changes_nothing() {
    with(Signs::Positive, &PLANTED, &HALF, |model| {
        model.loss().unwrap();
        let before = model.net.view().w().value().to_vec();
        assert!(!model.apply(Move::Add(Origin::Atom(0), -1.0), DRAW).unwrap());
        assert!(!model.apply(Move::Split(0), DRAW).unwrap());
        assert_eq!(
            (model.net.view().w().index(), model.net.view().w().value()),
            (&[13, 15][..], &before[..])
        );
    });
}

#[test]
fn neuron_standing_for_two_splits_along_their_difference() {
    let (up, down) = ([1.0, 1.0, 0.0, 0.0], [1.0, -1.0, 0.0, 0.0]);
    for (signs, sign, i) in [(Signs::Positive, 1.0, 2), (Signs::Balanced, -1.0, 3)] {
        with_rows(even(), signs, &[(sign, up), (sign, down)], &[(4 * i, 2.0 * sign)], |model| {
            let before = model.loss().unwrap();
            let whole = model.net.view().w().value()[0];
            // A direction of all inputs, so that the start has something of the right one.
            model.task.nnz = 12;
            assert!(model.apply(Move::Split(i as usize), DRAW).unwrap());
            let to = if sign > 0.0 { 0 } else { 1 };
            assert!(model.neurons().map(|block| block.neuron()).eq([to, i as usize]));
            // The halves add up to the neuron, and differ along the second input.
            let mut sum = [0.0; D];
            let mut apart = [0.0; D];
            for (from, part) in [(i as usize, 1.0), (to, -1.0)] {
                for (j, w) in model.net.view().w().block(from).entries() {
                    sum[j] += w;
                    apart[j] += part * w;
                }
            }
            assert!((sum[0] / whole - 1.0).abs() < 1e-6 && sum[1..].iter().all(|w| w.abs() < 1e-6));
            let along = apart[1].abs() / sqrt(norm2(&apart));
            assert!(along > 0.99, "{along}: {apart:?}");
            assert!(model.refit(30).unwrap() < 1e-3 * before);
        });
    }
}

#[test]
fn split_halves_never_replace_each_other() {
    let net: Vec<(u32, f32)> =
        (0..P as u32).map(|i| (4 * i, 1.0 + (i as f32 - 4.0).abs())).collect();
    with(Signs::Positive, &PLANTED, &net, |model| {
        model.loss().unwrap();
        assert_eq!(model.weakest(|_| true), Some(4));
        assert!(model.apply(Move::Split(4), DRAW).unwrap());
        assert_eq!(model.live(), P);
        let more_than_one = |i: usize| model.net.view().w().block(i).values().len() > 1;
        assert_eq!(
            [0, 1, 2, 3, 4, 5, 6].map(more_than_one),
            [false, false, false, true, true, false, false]
        );
    });
}

#[test]
fn new_neuron_gets_share_of_s_within_room() {
    with(Signs::Positive, &PLANTED, &HALF, |model| {
        let mut sizes = |nnz, hidden| {
            (model.task.nnz, model.task.hidden) = (nnz, hidden);
            (model.new_size(), model.new_size().min(model.spare_room() / 2))
        };
        // s/m rounded up, at least two, at most all inputs.
        assert_eq!(
            [(6, 3), (7, 3), (6, 2), (2, 9), (40, 1)].map(|(s, m)| sizes(s, m)),
            [(2, 2), (3, 3), (3, 3), (2, 2), (4, 4)]
        );
        // Room is for 64 weights; a split needs what it adds twice.
        assert_eq!([(49, 3), (50, 3), (51, 3)].map(|(s, m)| sizes(s, m)), [(2, 1), (1, 0), (0, 0)]);
        assert_eq!(sizes(48, 0), (4, 2));
    });
}
