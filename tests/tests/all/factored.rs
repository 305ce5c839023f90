//! Products of networks of several outputs against sums in double precision.

use crate::anneal::{Case, gated, sides, words};
use proptest::prelude::*;
use std::ops::ControlFlow::Continue;
use tamis::Error;
use tamis::base::budget::WORD;
use tamis::learn::anneal::{self, Params};
use tamis::learn::loss::{self};
use tamis::learn::start::Start;
use tamis::network::net::Network;
use tamis::network::weights::Weights;
use tamis::operator::factored::{Factored, GradientMut, Tangent};
use tamis::operator::sensing::Sensing;
use tamis::operator::tables::Residual;

fn close(a: &[f32], b: &[f32], tolerance: f32) {
    assert_eq!(a.len(), b.len());
    let scale = a.iter().fold(1.0_f32, |scale, x| scale.max(x.abs()));
    for (k, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() <= tolerance * scale, "entry {k}: {a} and {b}, scale {scale}");
    }
}

pub(crate) fn cases() -> impl Strategy<Value = Case> {
    (
        (1..40_usize, 1..9_usize, 1..7_usize, prop_oneof![4 => 1..6_usize, 1 => 30..70_usize]),
        (0..30_usize, 0..20_usize),
        any::<u64>(),
    )
        .prop_map(|(sizes, counts, seed)| Case::new(sizes, counts, seed))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn overrides_do_what_the_provided_bodies_do(case in cases(), from in 0..40_usize, tile in 1..50_usize, panel in 1..8_usize) {
        let rows = from.min(case.n - 1)..case.n;
        let (reference, oracle) = gated(&case, |sensing| {
            sensing.select(rows.clone()).unwrap();
            (case.products(sensing, false), case.products(sensing, true))
        });
        prop_assert_eq!(&reference, &oracle);
        let mut blocked = case.blocked(tile, panel);
        blocked.select(rows).unwrap();
        let [out, others @ ..] = case.products(&mut blocked, false);
        prop_assert_eq!(&out, &reference[0]);
        for (fast, slow) in others.iter().zip(&reference[1..]) {
            close(slow, fast, 2e-5);
        }
    }

    #[test]
    fn counts_budgets_and_results_hold_for_every_size(
        (n, d, m, c) in (1..60_usize, 1..8_usize, 1..6_usize, 2..5_usize),
        s in 2..60_usize, batch in 0..70_usize, validation in 0..20_usize, factor in 1.0..4.0_f32, seed in any::<u64>(),
    ) {
        let case = Case::new((n, d, m, c), (0, 0), seed);
        let s = s.min(m * (d + c));
        let params = Params {
            epochs: 6, batch, validation: validation.min(n - 1), start_factor: factor, seed, ..Params::DEFAULT
        };
        let (info, index, out) = gated(&case, |sensing| {
            let words = words(sensing, &case, s, &params);
            let mut memory = vec![0; words];
            let short = anneal::run(sensing, case.classes(), s, Start::Zero, &params, &mut memory[1..], |_| Continue(()));
            assert_eq!(short.unwrap_err(), Error::Budget { needed: WORD * words, got: WORD * (words - 1) });
            let trained = anneal::run(sensing, case.classes(), s, Start::Zero, &params, &mut memory, |_| Continue(()));
            let trained = trained.unwrap();
            let net = trained.network;
            (trained.info, net.w().index().to_vec(), net.wt().index().to_vec())
        });
        prop_assert_eq!(info.nnz, index.len() + out.len());
        prop_assert!(info.nnz <= s);
        let mut neurons: Vec<u32> = index.iter().map(|j| j / d as u32).collect();
        let mut to: Vec<u32> = out.iter().map(|k| k / c as u32).collect();
        neurons.dedup();
        to.dedup();
        prop_assert_eq!(neurons, to);
    }
}

/// The loss of the whole network in double precision.
fn exact_loss(case: &Case, w: &[f64], wt: &[f64]) -> f64 {
    let row = |(x, &label): (&[f32], &u16)| {
        let mut out = vec![0.0; case.c];
        for i in 0..case.m {
            let z: f64 = x.iter().zip(&w[i * case.d..]).map(|(x, w)| f64::from(*x) * w).sum();
            for (out, v) in out.iter_mut().zip(&wt[i * case.c..]) {
                *out += z.max(0.0) * v;
            }
        }
        out.iter().map(|out| out.exp()).sum::<f64>().ln() - out[usize::from(label)]
    };
    case.x.chunks(case.d).zip(&case.labels).map(row).sum()
}

#[test]
fn normal_products_are_those_of_the_jacobian() {
    let case = Case::new((30, 5, 4, 3), (20, 12), 6);
    let (s, t) = (case.w.0.len(), case.wt.0.len());
    let gates = case.gates();
    gated(&case, |sensing| {
        let mut scratch = vec![0.0; sensing.net_scratch(case.n)];
        // Column e of J: the outputs of a network with one unit weight beside the other side.
        let mut column = |e: usize| {
            let mut values = (case.w.1.clone(), case.wt.1.clone());
            let unit = |values: &mut Vec<f32>, at: usize| {
                values.fill(0.0);
                values[at] = 1.0;
            };
            if e < s {
                unit(&mut values.0, e);
            } else {
                unit(&mut values.1, e - s);
            }
            let w = Weights::new(case.d, case.m, &case.w.0, &values.0).unwrap();
            let net = Network::new(w, Weights::new(case.c, case.m, &case.wt.0, &values.1).unwrap())
                .unwrap();
            let mut out = vec![0.0; case.n * case.c];
            sensing.net_forward(gates, net, &mut out, &mut scratch).unwrap();
            out
        };
        let columns: Vec<Vec<f32>> = (0..s + t).map(&mut column).collect();
        let mut image = vec![0.0; case.n * case.c];
        for e in [0, 7, s, s + t - 1] {
            let unit: Vec<f32> = (0..s + t).map(|k| f32::from(u8::from(k == e))).collect();
            let p = Network::new(
                Weights::new(case.d, case.m, &case.w.0, &unit[..s]).unwrap(),
                Weights::new(case.c, case.m, &case.wt.0, &unit[s..]).unwrap(),
            );
            let (mut dw, mut dwt) = (vec![0.0; s], vec![0.0; t]);
            let out = GradientMut { w: &mut dw, wt: &mut dwt };
            let tangent = Tangent { net: case.net(), p: p.unwrap() };
            sensing.net_normal_at(gates, tangent, out, &mut image, &mut scratch).unwrap();
            dw.extend(dwt);
            let expected: Vec<f32> =
                columns.iter().map(|other| tamis::base::math::dot(other, &columns[e])).collect();
            close(&expected, &dw, 1e-5);
        }
    });
}

#[test]
fn gradients_are_those_of_the_cross_entropy() {
    let case = Case::new((30, 5, 4, 3), (20, 12), 5);
    let dense = |(index, value): &(Vec<u32>, Vec<f32>), len: usize| {
        let mut dense = vec![0.0; len];
        for (&j, &v) in index.iter().zip(value) {
            dense[j as usize] = f64::from(v);
        }
        dense
    };
    let (w, wt) = (dense(&case.w, 20), dense(&case.wt, 12));
    let mut r = vec![0.0; 90];
    let (total, full, at) = gated(&case, |sensing| {
        let (net, gates, mut scratch) =
            (case.net(), case.gates(), vec![0.0; sensing.net_scratch(30)]);
        sensing.net_forward(gates, net, &mut r, &mut scratch).unwrap();
        let total = loss::cross_entropy(&case.labels, 3, &mut r).unwrap();
        let (mut full, mut at) = ((vec![0.0; 20], vec![0.0; 12]), (vec![0.0; 20], vec![0.0; 12]));
        let r = Residual::Each(&r[..]);
        sensing.net_gradient(gates, net, r, 0..4, sides(&mut full), &mut scratch).unwrap();
        sensing.net_gradient_at(gates, net, r, sides(&mut at), &mut scratch).unwrap();
        (total, full, at)
    });
    assert!((f64::from(total) / exact_loss(&case, &w, &wt) - 1.0).abs() < 1e-5);
    let step = 1e-5;
    let slope = |w: &mut Vec<f64>, wt: &mut Vec<f64>, first: bool, e: usize| {
        let mut shifted = |by: f64| {
            if first {
                w[e] += by;
            } else {
                wt[e] += by;
            }
            exact_loss(&case, w, wt)
        };
        let (up, down) = (shifted(step), shifted(-2.0 * step));
        shifted(step);
        // What is added to the weights is the descent direction.
        ((down - up) / (2.0 * step)) as f32
    };
    let differences: Vec<f32> =
        (0..20).map(|e| slope(&mut w.clone(), &mut wt.clone(), true, e)).collect();
    close(&differences, &full.0, 1e-4);
    let differences: Vec<f32> =
        (0..12).map(|e| slope(&mut w.clone(), &mut wt.clone(), false, e)).collect();
    close(&differences, &full.1, 1e-4);
    assert_eq!(at, full, "every weight is on the support here");
}

#[test]
fn residual_and_loss_are_finite_for_any_outputs() {
    // One output is the softmax of itself and 0.
    for top in [-3e38, -88.0, -1.0, 0.0, 1.0, 88.0, 3e38_f32] {
        for label in [0, 1] {
            let (mut one, mut two) = ([top], [0.0, top]);
            let loss = loss::cross_entropy(&[label], 1, &mut one).unwrap();
            let expected = loss::cross_entropy(&[label], 2, &mut two).unwrap();
            assert!(
                (loss - expected).abs() <= 1e-6 * expected,
                "{top}, {label}: {loss} and {expected}"
            );
            assert!((one[0] - two[1]).abs() <= 1e-6, "{top}, {label}: {one:?} and {two:?}");
        }
        assert_eq!(loss::class(&[top]), usize::from(top >= 0.0));
    }
    assert!(loss::cross_entropy(&[0], 1, &mut [f32::NAN]).unwrap().is_nan());
    assert!(matches!(
        loss::cross_entropy(&[2], 1, &mut [0.0]),
        Err(Error::Range { what: "label", max: 1, got: 2, .. })
    ));
    for top in [0.0, 1.0, 88.0, 1e4, 3e38] {
        let mut out = [top, -top, 0.0];
        let loss = loss::cross_entropy(&[0], 3, &mut out).unwrap();
        assert!(loss.is_finite() && loss >= 0.0, "{top}: {loss}");
        assert!(
            out.iter().all(|r| r.abs() <= 1.0) && out.iter().sum::<f32>().abs() < 1e-6,
            "{out:?}"
        );
    }
    assert!(loss::cross_entropy(&[0], 2, &mut [f32::NAN, 0.0]).unwrap().is_nan());
    assert!(matches!(
        loss::cross_entropy(&[2], 2, &mut [0.0; 2]),
        Err(Error::Range { what: "label", got: 2, .. })
    ));
    assert!(matches!(loss::cross_entropy(&[0], 2, &mut [0.0; 3]), Err(Error::Length { .. })));
}
