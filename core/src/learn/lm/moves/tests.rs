//! Births and splits of the network of one output: what is listed, how it is formed, where it goes.

extern crate std;
use super::*;
use crate::base::math::{dot, norm2, sqrt};
use crate::learn::lm::bench::tests::{D, N, P, even, with, with_rows};
use crate::network::gates::Signs;
use std::vec::Vec;

const FIRST: [f32; D] = [1.0, -2.0, 0.5, 0.0];
const SECOND: [f32; D] = [0.0, 1.0, 0.0, 1.0];
const PLANTED: [(f32, [f32; D]); 2] = [(1.0, FIRST), (1.0, SECOND)];
/// The second one as neuron 3.
const HALF: [(u32, f32); 2] = [(13, 1.0), (15, 1.0)];
const DRAW: Draw = Draw { seed: 3, random: 6 };

/// The cosine of neuron `i` and a direction, in the metric of the columns.
fn cosine<S: Sensing>(bench: &Bench<'_, S>, i: usize, w: &[f32; D]) -> f32 {
    let scales = bench.columns.scales();
    let mut own = [0.0; D];
    bench.net.view().block(i).entries().for_each(|(j, w)| own[j] = w * scales[j]);
    let other: [f32; D] = core::array::from_fn(|j| w[j] * scales[j]);
    dot(&own, &other) / sqrt(norm2(&own) * norm2(&other))
}

#[test]
fn a_birth_points_along_what_is_missing() {
    let missing = [1.0, -2.0, 0.0, 0.0];
    for (signs, v, to) in [(Signs::Positive, 1.0, 0), (Signs::Balanced, -1.0, 1)] {
        let net = [(13, v), (15, v)];
        with_rows(even(), signs, &[(v, missing), (v, SECOND)], &net, |bench| {
            let before = bench.loss().unwrap();
            let best = bench.candidates(DRAW).unwrap()[0];
            assert!(matches!(best.kind, Kind::Birth(_, sign) if sign == v), "{best:?}");
            assert!(bench.add_neuron(best.kind, DRAW).unwrap());
            // The first empty neuron of its sign takes it, with its share of s.
            assert_eq!(bench.net.view().index(), [4 * to, 4 * to + 1, 13, 15]);
            let cosine = v * cosine(bench, to as usize, &missing);
            assert!(cosine > 0.9999, "{cosine}");
            // Its direction is right, so steps bring it to its length.
            assert!(bench.refit(9).unwrap() < 1e-11 && before > 1e-2);
        });
    }
}

#[test]
fn growth_adds_the_weights_that_a_birth_has_no_room_for() {
    with(Signs::Positive, &PLANTED, &HALF, |bench| {
        let before = bench.loss().unwrap();
        let best = bench.candidates(DRAW).unwrap()[0];
        assert!(bench.add_neuron(best.kind, DRAW).unwrap());
        assert!(bench.neurons().map(|block| block.values().len()).eq([2, 2]));
        let mut loss = bench.refit(2).unwrap();
        for _ in 0..3 {
            loss = bench.outer(loss, 6).unwrap();
        }
        assert!(loss < 1e-11 && before > 1e-2, "{loss}");
    });
}

#[test]
fn candidates_are_listed_best_first_with_what_they_could_win() {
    with(Signs::Positive, &PLANTED, &HALF, |bench| {
        let power = bench.loss().unwrap() * N as f32;
        let list = bench.candidates(DRAW).unwrap();
        assert!(list.windows(2).all(|pair| pair[0].gain >= pair[1].gain));
        assert!(list.iter().all(|entry| entry.gain > 0.0 && entry.gain <= power * 1.0001));
        let count =
            |which: &dyn Fn(&Kind) -> bool| list.iter().filter(|entry| which(&entry.kind)).count();
        assert_eq!(count(&|kind| *kind == Kind::Split(3)), 1);
        assert_eq!(count(&|kind| matches!(kind, Kind::Split(_))), 1);
        assert_eq!(count(&|kind| matches!(kind, Kind::Birth(_, -1.0))), 0);
        let random = |kind: &Kind| matches!(kind, Kind::Birth(Seedling::Random(_), _));
        assert_eq!(count(&random), 6);
        // Without random births only those of atoms are left, with the same gains.
        let fewer = bench.candidates(Draw { random: 0, ..DRAW }).unwrap();
        assert!(fewer.iter().eq(list.iter().filter(|entry| !random(&entry.kind))));
        // The gain is that of the neuron that is formed, by the factor that suits it best.
        for entry in &list {
            let Kind::Birth(seedling, _) = entry.kind else { continue };
            let Bench { fit, single, columns, .. } = &mut *bench;
            assert_eq!(single.birth(fit, columns.scales(), seedling, (0, 2)).unwrap(), entry.gain);
        }
    });
}

#[test]
fn of_the_atoms_those_that_win_most_alone_are_refined() {
    with(Signs::Positive, &PLANTED, &HALF, |bench| {
        bench.loss().unwrap();
        let gains: Vec<f32> = (0..2 * D as u32)
            .map(|number| bench.single.atom(&mut bench.fit, D, (number, 0)).unwrap())
            .collect();
        let mut order: Vec<u32> = (0..2 * D as u32).collect();
        order.sort_by(|&a, &b| gains[b as usize].total_cmp(&gains[a as usize]));
        let mut listed: Vec<u32> = Vec::new();
        for entry in &bench.candidates(Draw { random: 0, ..DRAW }).unwrap() {
            if let Kind::Birth(Seedling::Atom(number), _) = entry.kind {
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
fn births_of_either_sign_are_listed_where_there_are_both() {
    let (up, down) = ([1.0, -2.0, 0.0, 0.0], [0.0, 0.0, 2.0, 1.0]);
    with_rows(even(), Signs::Balanced, &[(1.0, up), (-1.0, down)], &[], |bench| {
        bench.loss().unwrap();
        let list = bench.candidates(DRAW).unwrap();
        for sign in [1.0, -1.0] {
            let best = list
                .iter()
                .find(|entry| matches!(entry.kind, Kind::Birth(_, s) if s == sign))
                .unwrap();
            assert!(bench.add_neuron(best.kind, DRAW).unwrap());
        }
        assert!(bench.neurons().map(|block| block.neuron()).eq([0, 1]));
        let cosines = [cosine(bench, 0, &up), -cosine(bench, 1, &down)];
        assert!(cosines[0] > 0.9 && cosines[1] > 0.9, "{cosines:?}");
    });
    // Where all labels are above 0 a neuron below explains nothing, and the other way round.
    for (sign, only) in [(1.0, 1.0), (-1.0, -1.0)] {
        with(Signs::Balanced, &[(sign, FIRST), (sign, SECOND)], &[], |bench| {
            bench.loss().unwrap();
            let list = bench.candidates(DRAW).unwrap();
            assert!(list.iter().all(|entry| matches!(entry.kind, Kind::Birth(_, s) if s == only)));
            assert!(list.len() >= BATCH);
        });
    }
}

#[test]
fn a_birth_takes_the_place_of_the_weakest_neuron_where_none_is_empty() {
    let net: Vec<(u32, f32)> =
        (0..P as u32).map(|i| (4 * i + 3, 1.0 + (i as f32 - 4.0).abs())).collect();
    with(Signs::Positive, &PLANTED, &net, |bench| {
        bench.loss().unwrap();
        assert!(bench.add_neuron(Kind::Birth(Seedling::Atom(3), 1.0), DRAW).unwrap());
        assert_eq!(bench.live(), P);
        assert_eq!(bench.net.view().block(4).values().len(), 2);
        for i in [0, 1, 2, 3, 5, 6] {
            assert!(bench.net.view().block(i).entries().map(|(j, _)| j).eq([3]), "{i}");
        }
    });
    // Of the sign that it has.
    with(Signs::Balanced, &PLANTED, &net, |bench| {
        bench.loss().unwrap();
        assert!(bench.add_neuron(Kind::Birth(Seedling::Atom(3), -1.0), DRAW).unwrap());
        // Of neurons 3 and 5, which are equal, the first.
        assert_eq!([3, 4, 5].map(|i| bench.net.view().block(i).values().len()), [2, 1, 1]);
    });
}

#[test]
fn what_has_no_place_changes_nothing() {
    with(Signs::Positive, &PLANTED, &HALF, |bench| {
        bench.loss().unwrap();
        let before = bench.net.view().value().to_vec();
        assert!(!bench.add_neuron(Kind::Birth(Seedling::Atom(0), -1.0), DRAW).unwrap());
        assert!(!bench.add_neuron(Kind::Split(0), DRAW).unwrap());
        assert_eq!(
            (bench.net.view().index(), bench.net.view().value()),
            (&[13, 15][..], &before[..])
        );
    });
}

#[test]
fn a_neuron_that_stands_for_two_is_split_along_what_tells_them_apart() {
    let (up, down) = ([1.0, 1.0, 0.0, 0.0], [1.0, -1.0, 0.0, 0.0]);
    for (signs, sign, i) in [(Signs::Positive, 1.0, 2), (Signs::Balanced, -1.0, 3)] {
        with_rows(even(), signs, &[(sign, up), (sign, down)], &[(4 * i, 2.0 * sign)], |bench| {
            let before = bench.loss().unwrap();
            let whole = bench.net.view().value()[0];
            // A direction of all inputs, so that the start has something of the right one.
            bench.task.nnz = 12;
            assert!(bench.add_neuron(Kind::Split(i as usize), DRAW).unwrap());
            let to = if sign > 0.0 { 0 } else { 1 };
            assert!(bench.neurons().map(|block| block.neuron()).eq([to, i as usize]));
            // The halves add up to the neuron, and differ along the second input.
            let mut sum = [0.0; D];
            let mut apart = [0.0; D];
            for (from, part) in [(i as usize, 1.0), (to, -1.0)] {
                for (j, w) in bench.net.view().block(from).entries() {
                    sum[j] += w;
                    apart[j] += part * w;
                }
            }
            assert!((sum[0] / whole - 1.0).abs() < 1e-6 && sum[1..].iter().all(|w| w.abs() < 1e-6));
            let along = apart[1].abs() / sqrt(norm2(&apart));
            assert!(along > 0.99, "{along}: {apart:?}");
            assert!(bench.refit(30).unwrap() < 1e-3 * before);
        });
    }
}

#[test]
fn a_half_never_takes_the_place_of_the_other() {
    let net: Vec<(u32, f32)> =
        (0..P as u32).map(|i| (4 * i, 1.0 + (i as f32 - 4.0).abs())).collect();
    with(Signs::Positive, &PLANTED, &net, |bench| {
        bench.loss().unwrap();
        assert_eq!(bench.weakest_live(), Some(4));
        assert!(bench.add_neuron(Kind::Split(4), DRAW).unwrap());
        assert_eq!(bench.live(), P);
        let more_than_one = |i: usize| bench.net.view().block(i).values().len() > 1;
        assert_eq!(
            [0, 1, 2, 3, 4, 5, 6].map(more_than_one),
            [false, false, false, true, true, false, false]
        );
    });
}

#[test]
fn a_new_neuron_has_its_share_of_s_as_far_as_there_is_room() {
    with(Signs::Positive, &PLANTED, &HALF, |bench| {
        let mut sizes = |nnz, hidden| {
            (bench.task.nnz, bench.task.hidden) = (nnz, hidden);
            (bench.birth_size(), bench.split_size())
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
