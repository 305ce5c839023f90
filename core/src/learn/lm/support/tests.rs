//! Scales, the first weights, growth and thresholds, each against what a plain sum over the rows
//! gives.

extern crate std;
use super::*;
use crate::data::samples::FnRows;
use crate::learn::lm::model::{Moves, Support};
use crate::learn::lm::signed::tests::{D, N, P, along, rows_of, with, with_rows};
use crate::network::gates::Signs;

/// Thresholds `value` on flat indices 0, 1, … of neurons of three inputs.
fn kept(value: &[f32], free: usize, count: usize) -> std::vec::Vec<u32> {
    let mut norms: std::vec::Vec<f32> =
        [1.0, 100.0, 0.0].into_iter().cycle().take(value.len()).collect();
    let index: std::vec::Vec<u32> = (0..value.len() as u32).collect();
    let (mut i, mut v) = ([0; 12], [0.0; 12]);
    let mut net = Editable::new(3, 4, &mut i, &mut v);
    assert!(net.add(&index, value));
    let mut buffer = [0.0; 12];
    threshold(&mut net, &mut norms, &mut buffer, free, count).unwrap();
    net.view().index().to_vec()
}

#[test]
fn threshold_weighs_by_column_and_keeps_first_tie() {
    assert_eq!(kept(&[5.0, 1.0, 9.0, 7.0, 0.1, 0.0], 0, 2), [1, 3]);
    assert_eq!(kept(&[1.0, 0.1, 0.0, -1.0, -0.1, 0.0], 0, 3), [0, 1, 3]);
    assert_eq!(kept(&[0.0; 6], 0, 2), [0, 1]);
    assert_eq!(kept(&[1.0; 6], 0, 6), [0, 1, 2, 3, 4, 5]);
    assert_eq!(kept(&[1.0; 6], 0, 0), []);
}

#[test]
fn exempt_weights_stay_and_do_not_count() {
    assert_eq!(kept(&[0.0, 0.0, 0.0, 5.0, 6.0, 7.0], 3, 1), [0, 1, 2, 4]);
    assert_eq!(kept(&[0.0, 0.0, 0.0, 5.0, 6.0, 7.0], 3, 0), [0, 1, 2]);
}

#[test]
fn too_short_threshold_buffer_is_an_error() {
    let (mut i, mut v) = ([0; 4], [0.0; 4]);
    let mut net = Editable::new(1, 4, &mut i, &mut v);
    assert!(net.add(&[0, 1, 2], &[1.0, 2.0, 3.0]));
    for (norms, buffer) in [(2, 3), (3, 2)] {
        let refused = threshold(&mut net, &mut [1.0; 3][..norms], &mut [0.0; 3][..buffer], 0, 1);
        assert!(matches!(refused, Err(Error::Length { expected: 3, got: 2, .. })));
    }
}

/// Rows whose columns are made of two normal numbers.
fn made(
    of: impl Fn(usize, f32, f32) -> [f32; D] + 'static,
) -> FnRows<impl FnMut(usize, &mut [f32]) -> core::result::Result<(), core::convert::Infallible>> {
    FnRows::new(N, D, move |k, row: &mut [f32]| {
        let mut rng = Rng::new(3, k as u64);
        let (a, b) = (rng.normal(), rng.normal());
        row.copy_from_slice(&of(k, a, b));
        Ok(())
    })
}

#[test]
fn column_scale_is_rms_and_zero_if_vanishing() {
    with_rows(made(|_, a, b| [a, 1e-16 * b, 1e3 * b, 0.0]), Signs::Positive, &[], &[], |model| {
        let rows = rows_of(model.fit.sensing);
        let rms = |j: usize| sqrt(rows.iter().map(|x| x[j] * x[j]).sum::<f32>() / N as f32);
        let scales = model.columns.scales();
        for j in [0, 2] {
            assert!((scales[j] / rms(j) - 1.0).abs() < 1e-5, "{j}");
        }
        assert_eq!((scales[1], scales[3]), (0.0, 0.0));
    });
}

#[test]
fn only_first_of_proportional_columns_counts() {
    let scales = |of: &dyn Fn(f32, f32) -> [f32; D]| {
        let table: std::vec::Vec<[f32; D]> = (0..N)
            .map(|k| {
                let mut rng = Rng::new(3, k as u64);
                let a = rng.normal();
                of(a, rng.normal())
            })
            .collect();
        let mut counts = [false; D];
        with_rows(made(move |k, _, _| table[k]), Signs::Positive, &[], &[], |model| {
            counts = core::array::from_fn(|j| model.columns.scales()[j] > 0.0);
        });
        counts
    };
    assert_eq!(scales(&|a, b| [a, -3.0 * a, b, 1e4 * b]), [true, false, true, false]);
    assert_eq!(scales(&|a, b| [a, b, -b, a]), [true, true, false, false]);
    // Three of one kind, and one that is nearly so.
    assert_eq!(scales(&|a, b| [a, 2.0 * a, a + 5e-6 * b, 0.5 * a]), [true, false, true, false]);
}

#[test]
fn initial_weights_have_largest_gradients_under_random_gates() {
    let planted = [(1.0, [1.0, -2.0, 0.5, 0.0]), (1.0, [0.0, 1.0, 0.0, 1.0])];
    with(Signs::Positive, &planted, &[(0, 9.0)], |model| {
        let seed = 5;
        model.start(seed).unwrap();
        let loss = model.loss().unwrap();
        // g = A^T y under the gates of the seed.
        let labels: std::vec::Vec<f32> = model.fit.targets().collect();
        let scales = model.columns.scales().to_vec();
        let mut all: std::vec::Vec<(f32, u32, f32)> = std::vec::Vec::new();
        for i in 0..P {
            let mut g = [0.0; D];
            model.fit.sensing.adjoint(Gates::seeded(seed), i, &labels, &mut g).unwrap();
            all.extend((0..D).map(|j| (g[j].abs() / scales[j], (i * D + j) as u32, g[j])));
        }
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        all.truncate(6);
        all.sort_by_key(|entry| entry.1);
        let net = model.net.view();
        assert!(net.w().index().iter().eq(all.iter().map(|(_, j, _)| j)), "{:?}", net.w().index());
        // w = g / c², times one factor for all …
        let factors = net
            .w()
            .value()
            .iter()
            .zip(&all)
            .map(|(w, (_, j, g))| w / (g / scales[*j as usize % D].powi(2)));
        let factors: std::vec::Vec<f32> = factors.collect();
        assert!(
            factors.iter().all(|f| (f / factors[0] - 1.0).abs() < 1e-4 && *f > 0.0),
            "{factors:?}"
        );
        // … of which none is better.
        for factor in [0.99, 1.0 / 0.99 / 0.99] {
            model.net.values().0.iter_mut().for_each(|w| *w *= factor);
            assert!(model.loss().unwrap() > loss, "{factor}");
        }
    });
}

#[test]
fn growth_adds_zeros_at_largest_scaled_gradients() {
    let planted = [(1.0, [1.0, -2.0, 0.5, 0.3]), (1.0, [0.0, 1.0, 0.0, 1.0])];
    let net = [(4, 1.0), (5, -1.0), (13, 1.0)];
    with(Signs::Positive, &planted, &net, |model| {
        let loss = model.loss().unwrap();
        let residual = model.fit.residual().to_vec();
        let scales = model.columns.scales().to_vec();
        let rows = rows_of(model.fit.sensing);
        let w = |i: usize| -> [f32; D] {
            let mut w = [0.0; D];
            model.net.view().w().block(i).entries().for_each(|(j, v)| w[j] = v);
            w
        };
        let mut missing: std::vec::Vec<(f32, u32)> = std::vec::Vec::new();
        for i in [1, 3] {
            let w = w(i);
            for (j, c) in scales.iter().enumerate().filter(|(j, _)| w[*j] == 0.0) {
                let open = rows.iter().zip(&residual).filter(|(x, _)| along(&w, x) > 0.0);
                let g: f32 = open.map(|(x, r)| x[j] * r).sum();
                missing.push((g.abs() / c, (i * D + j) as u32));
            }
        }
        missing.sort_by(|a, b| b.0.total_cmp(&a.0));
        model.grow(3).unwrap();
        let mut expected: std::vec::Vec<u32> = missing.iter().take(3).map(|(_, j)| *j).collect();
        expected.extend([4, 5, 13]);
        expected.sort_unstable();
        assert_eq!(model.net.view().w().index(), expected);
        assert_eq!(model.net.view().w().value().iter().filter(|w| **w == 0.0).count(), 3);
        assert_eq!(model.loss().unwrap(), loss);
        // Neurons without weights get none, and no neuron more than it has inputs.
        model.grow(99).unwrap();
        assert_eq!((model.net.nnz(), model.live()), (8, 2));
    });
}

#[test]
fn threshold_keeps_exact_count_of_largest_contributions() {
    let net: [(u32, f32); 12] = [
        (0, 1.0),
        (1, 0.9),
        (2, -1.1),
        (3, 0.2),
        (8, -0.7),
        (9, 0.8),
        (10, 0.6),
        (11, 1.3),
        (20, 2.0),
        (21, -0.1),
        (22, 0.5),
        (23, 0.95),
    ];
    for size in 0..=12 {
        with_rows(
            made(|k, a, b| [a, 5.0 * b, 0.2 * a + b, 1.0 + (k % 3) as f32]),
            Signs::Positive,
            &[],
            &net,
            |model| {
                let rows = rows_of(model.fit.sensing);
                // What the loss would rise by if a weight alone were removed, at fixed gates.
                let mut saliences: std::vec::Vec<(f32, u32)> = std::vec::Vec::new();
                for &(at, w) in &net {
                    let (i, j) = (at as usize / D, at as usize % D);
                    let own: [f32; D] = core::array::from_fn(|k| {
                        net.iter().find(|e| e.0 as usize == i * D + k).unwrap().1
                    });
                    let open = rows.iter().filter(|x| along(&own, x) > 0.0);
                    saliences.push((w * w * open.map(|x| x[j] * x[j]).sum::<f32>(), at));
                }
                saliences.sort_by(|a, b| b.0.total_cmp(&a.0));
                let mut expected: std::vec::Vec<u32> =
                    saliences.iter().take(size).map(|(_, at)| *at).collect();
                expected.sort_unstable();
                model.threshold(size).unwrap();
                assert_eq!(model.net.view().w().index(), expected, "{size}");
            },
        );
    }
}

#[test]
fn of_equal_saliences_those_of_lower_indices_stay() {
    let mut saliences = [2.0, 1.0, 2.0, 0.5, 2.0, 1.0];
    for (drop, kept) in [
        (1, [true, true, true, false, true, true]),
        (2, [true, true, true, false, true, false]),
        (3, [true, false, true, false, true, false]),
        (4, [true, false, true, false, false, false]),
        (5, [true, false, false, false, false, false]),
    ] {
        let mut edge = Edge::new(&mut saliences.clone(), drop);
        assert_eq!(saliences.map(|salience| edge.keeps(salience)), kept, "{drop}");
    }
    saliences.fill(0.0);
    let mut edge = Edge::new(&mut saliences.clone(), 4);
    assert_eq!(
        saliences.map(|salience| edge.keeps(salience)),
        [true, true, false, false, false, false]
    );
}
