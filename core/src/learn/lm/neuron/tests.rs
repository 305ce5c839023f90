//! How new neurons and splits are formed, and the entries that they are formed in.

extern crate std;
use super::*;
use crate::base::math::{dot, norm2};
use crate::learn::lm::model::Model;
use crate::learn::lm::model::Support;
use crate::learn::lm::signed::tests::{D, N, even, rows_of, with, with_rows};
use crate::network::gates::Signs;
use crate::operator::machine::Host;

/// What two halves could win.
fn halves(r: &[f32], (z, t): (&[f32], &[f32]), v: f32, a: f32) -> f32 {
    gain(Host.halves(r, z, t, Halves { sign: v, share: 0.5, length: a }))
}

#[test]
fn a_split_wins_what_its_halves_explain() {
    // relu(x + y) + relu(x - y) against relu(2 x) on a small grid.
    let grid: std::vec::Vec<(f32, f32)> =
        (-5..=5).flat_map(|x| (-5..=5).map(move |y| (x as f32, y as f32))).collect();
    let (z, t): (std::vec::Vec<f32>, std::vec::Vec<f32>) =
        grid.iter().map(|&(x, y)| (2.0 * x, y)).unzip();
    let r: std::vec::Vec<f32> = grid
        .iter()
        .map(|&(x, y)| (x + y).max(0.0) + (x - y).max(0.0) - (2.0 * x).max(0.0))
        .collect();
    assert!((halves(&r, (&z, &t), 1.0, 1.0) / norm2(&r) - 1.0).abs() < 1e-5);
    assert!(halves(&r, (&z, &t), 1.0, 0.3) < 0.99 * norm2(&r));
    // Halves add where a neuron is positive, so they explain nothing that is to be taken away.
    let negative: std::vec::Vec<f32> = r.iter().map(|r| -r).collect();
    assert_eq!(halves(&negative, (&z, &t), 1.0, 1.0), 0.0);
    assert!(halves(&negative, (&z, &t), -1.0, 1.0) > 0.99 * norm2(&r));
}

#[test]
fn entries_are_chosen_in_column_metric() {
    let (mut index, mut value) = ([0; 4], [0.0; 4]);
    let mut entries = Entries::new(&mut index, &mut value);
    let scales = [1.0, 10.0, 0.0, 2.0];
    entries.climb(&[3.0, 40.0, 99.0, -2.0], Forming { scales: &scales, neuron: 2, size: 2 });
    assert_eq!((entries.index(), entries.value()), (&[8, 9][..], &[3.0, 0.4][..]));
    entries.sift(&[3.0, 0.5, 99.0, -2.0], Forming { scales: &scales, neuron: 0, size: 2 });
    assert_eq!((entries.index(), entries.value()), (&[1, 3][..], &[0.5, -2.0][..]));
    entries.shift(0, 3);
    assert_eq!(entries.index(), [13, 15]);
    entries.climb(&[0.0; 4], Forming { scales: &scales, neuron: 0, size: 4 });
    assert!(entries.index().is_empty());
}

const W: [f32; D] = [1.0, -2.0, 0.5, 0.0];

#[test]
fn entries_copy_and_scale_only_their_own_length() {
    let (mut index, mut value) = ([0; 4], [7.0; 4]);
    let mut entries = Entries::new(&mut index, &mut value);
    assert!(entries.index().is_empty() && entries.value().is_empty());
    entries.unit(9, 3.0);
    assert_eq!((entries.index(), entries.value()), (&[9][..], &[3.0][..]));
    let net = Weights::new(4, 3, &[0, 5, 7], &[1.0, 2.0, -3.0]).unwrap();
    entries.take(net.block(1), 2);
    entries.scale(-2.0);
    assert_eq!((entries.index(), entries.value()), (&[9, 11][..], &[-4.0, 6.0][..]));
    assert_eq!(entries.view(3).nnz(), 2);
    assert_eq!(value[2..], [7.0; 2]);
}

#[test]
fn random_direction_splits_rows_at_their_mean() {
    let (mut index, mut value) = ([0; 4], [0.0; 4]);
    let mut entries = Entries::new(&mut index, &mut value);
    let (means, scales) = ([3.0, -1.0, 5.0, 0.5], [2.0, 1.0, 0.0, 4.0]);
    let mut directions = std::vec::Vec::new();
    for seed in 0..3 {
        entries.across(&means, &scales, 2, seed);
        assert_eq!(entries.index(), [8, 9, 10, 11]);
        // Its activation is 0 at the mean, and an input without a scale has no part in it.
        let at_mean: f32 = entries.value().iter().zip(&means).map(|(w, mean)| w * mean).sum();
        assert!(at_mean.abs() < 1e-5 && entries.value()[2] == 0.0, "{at_mean}");
        assert!(entries.value().iter().map(|w| w.abs()).sum::<f32>() > 0.1);
        directions.push(entries.value().to_vec());
    }
    assert!(directions[0] != directions[1] && directions[1] != directions[2]);
    // Without a mean it is normal in the metric of the columns.
    entries.across(&[0.0; 4], &scales, 0, 1);
    let mut rng = Rng::new(1, stream::NEURON);
    let normal: [f32; 4] = core::array::from_fn(|_| rng.normal());
    assert_eq!(entries.value(), [normal[0] / 2.0, normal[1], 0.0, normal[3] / 4.0]);
}

#[test]
fn an_atom_wins_what_its_input_alone_explains() {
    with(Signs::Positive, &[(1.0, W)], &[(8, 0.5)], |model| {
        model.loss().unwrap();
        let residual = model.fit.residual().to_vec();
        let rows = rows_of(model.fit.sensing);
        let read = model.fit.rows_read;
        for number in 0..2 * D as u32 {
            let (j, sign) = (number as usize / 2, if number % 2 == 0 { 1.0 } else { -1.0 });
            let image: std::vec::Vec<f32> = rows.iter().map(|x| (sign * x[j]).max(0.0)).collect();
            let along = dot(&image, &residual);
            let expected = if along > 0.0 { along * along / norm2(&image) } else { 0.0 };
            let gain = model.single.atom_gain(&mut model.fit, number, 3).unwrap();
            assert!((gain - expected).abs() <= 1e-4 * expected, "{number}: {gain} {expected}");
        }
        // It reads one column of four.
        assert_eq!(model.fit.rows_read - read, 2 * N as u64);
    });
}

#[test]
fn a_new_neuron_gains_what_it_promises() {
    for (seedling, signs, i) in [
        (Origin::Atom(3), Signs::Positive, 0),
        (Origin::Random(5), Signs::Positive, 4),
        (Origin::Random(5), Signs::Balanced, 3),
    ] {
        let v = signs.sign(i);
        with(signs, &[(v, W), (v, [0.0, 1.0, 0.0, 1.0])], &[], |model| {
            let before = model.loss().unwrap() * N as f32;
            let residual = model.fit.residual().to_vec();
            let Model { fit, single, columns, .. } = &mut *model;
            let gain = single
                .form(fit, Forming { scales: columns.scales(), neuron: i, size: 3 }, seedling)
                .unwrap();
            assert!(gain > 0.3 * before && single.entries.index().len() == 3);
            // The image that it was measured by is that of the neuron.
            let factor = dot(&residual, &*single.z) / norm2(&*single.z);
            single.entries.scale(factor);
            model.add_single(1.0).unwrap();
            let won = before - model.loss().unwrap() * N as f32;
            assert!((won - gain).abs() < 1e-4 * gain, "{seedling:?}: {won} {gain}");
        });
    }
}

#[test]
fn a_dense_new_neuron_finds_the_missing_one() {
    for seedling in [Origin::Atom(0), Origin::Atom(3), Origin::Random(1), Origin::Random(2)] {
        with_rows(even(), Signs::Positive, &[(1.0, W)], &[], |model| {
            model.loss().unwrap();
            let Model { fit, single, columns, .. } = &mut *model;
            single
                .form(fit, Forming { scales: columns.scales(), neuron: 0, size: D }, seedling)
                .unwrap();
            let scales = columns.scales();
            let (mut own, mut other) = ([0.0; D], W);
            other.iter_mut().zip(scales).for_each(|(w, c)| *w *= c);
            for (j, w) in single.entries.view(1).block(0).entries() {
                own[j] = w * scales[j];
            }
            let cosine = dot(&own, &other) / sqrt(norm2(&own) * norm2(&other));
            assert!(cosine > 0.9999, "{seedling:?}: {cosine}");
        });
    }
}

#[test]
fn split_uses_best_length_none_for_inactive_neuron() {
    let (up, down) = ([1.0, 1.0, 0.0, 0.0], [1.0, -1.0, 0.0, 0.0]);
    with(Signs::Positive, &[(1.0, up), (1.0, down)], &[(8, 2.0), (12, 0.0)], |model| {
        let before = model.loss().unwrap() * N as f32;
        let Model { fit, single, columns, net, .. } = &mut *model;
        let gain = single
            .split(
                fit,
                Forming { scales: columns.scales(), neuron: 2, size: 2 },
                net.view().w().block(2),
                1,
                None,
            )
            .unwrap();
        assert!(gain > 0.5 * before && gain <= before * 1.001, "{gain} {before}");
        // No other of the lengths wins more.
        let (z, t) = (&*single.z, &mut *single.t);
        let length = single.entries.value().iter().map(|w| w.abs()).fold(0.0, f32::max);
        assert!(length > 0.0);
        let size = sqrt(norm2(z) / N as f32);
        let best = SPLIT_LENGTHS.map(|part| halves(fit.residual(), (z, t), 1.0, part * size));
        assert_eq!(best.into_iter().fold(0.0, f32::max), gain);
        // Along labels that ask for the opposite there is nothing to win, and it has no length.
        let opposite: std::vec::Vec<f32> = fit.residual().iter().map(|r| -r.abs()).collect();
        let lost = single
            .split(
                fit,
                Forming { scales: columns.scales(), neuron: 2, size: 2 },
                net.view().w().block(2),
                1,
                Some(&opposite),
            )
            .unwrap();
        assert_eq!(lost, 0.0);
        assert!(single.entries.value().iter().all(|w| *w == 0.0));
        let none = single
            .split(
                fit,
                Forming { scales: columns.scales(), neuron: 3, size: 2 },
                net.view().w().block(3),
                1,
                None,
            )
            .unwrap();
        assert_eq!(none, 0.0);
    });
}
