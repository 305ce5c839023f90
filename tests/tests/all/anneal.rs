//! Networks with several outputs and the annealed recipe: gradients against differences, overrides
//! against provided bodies, exact counts and budgets, results that depend neither on panels nor on
//! threads, and bad input.

use proptest::prelude::*;
use std::ops::ControlFlow::Continue;
use tamis::Error;
use tamis::base::budget::{WORD, gated_words};
use tamis::base::dims::Dims;
use tamis::base::rng::{Permutation, Rng};
use tamis::data::samples::Rows;
use tamis::learn::anneal::{self, Params};
use tamis::learn::loss::{self, Classes};
use tamis::learn::start::{Start, continue_if};
use tamis::network::gates::{Empty, Gates, Signs};
use tamis::network::net::{Network, Shape};
use tamis::network::weights::Weights;
use tamis::operator::factored::{Factored, GradientMut, Tangent, open_words, provided};
use tamis::operator::gated::Gated;
use tamis::operator::sensing::Sensing;
use tamis::operator::wrapper::{Body, Operation, Wrapper};
use tamis_host::data::{Matrix, Values, digits};
use tamis_host::operator::{Blocked, Layout};

/// A problem with its network, all drawn from a seed.
#[derive(Debug, Clone)]
struct Case {
    n: usize,
    d: usize,
    m: usize,
    c: usize,
    x: Vec<f32>,
    labels: Vec<u16>,
    w: (Vec<u32>, Vec<f32>),
    wt: (Vec<u32>, Vec<f32>),
}

impl Case {
    fn new((n, d, m, c): (usize, usize, usize, usize), (s, t): (usize, usize), seed: u64) -> Self {
        let mut rng = Rng::new(seed, 1);
        let mut normal = |len: usize| (0..len).map(|_| rng.normal()).collect::<Vec<f32>>();
        let (x, w, wt) = (normal(n * d), normal(s.min(m * d)), normal(t.min(m * c)));
        let side = |values: Vec<f32>, all: usize, stream: u64| {
            let order = Permutation::new(seed, stream, all);
            let mut index: Vec<u32> = (0..values.len()).map(|e| order.get(e) as u32).collect();
            index.sort_unstable();
            (index, values)
        };
        let labels = (0..n).map(|_| rng.below(c as u32) as u16).collect();
        Self { n, d, m, c, x, labels, w: side(w, m * d, 2), wt: side(wt, m * c, 3) }
    }

    fn classes(&self) -> Classes<'_> {
        Classes { labels: &self.labels, outputs: self.c }
    }

    fn net(&self) -> Network<'_> {
        let w = Weights::new(self.d, self.m, &self.w.0, &self.w.1).unwrap();
        Network::new(w, Weights::new(self.c, self.m, &self.wt.0, &self.wt.1).unwrap()).unwrap()
    }

    fn gates(&self) -> Gates<'_> {
        Gates::of(self.net().w(), Signs::Positive, Empty::Freeze, 0, 1)
    }

    fn blocked(&self, tile: usize, panel: usize) -> Blocked {
        let data = Matrix::new(self.n, self.d, Values::F32(self.x.clone())).unwrap();
        let layout =
            Layout { tile, panel: panel.min(self.m), hold: false, gram: 0, ..Layout::new(1, 1) };
        Blocked::new(data, self.m, self.w.0.len() + self.wt.0.len(), layout)
            .unwrap()
            .with_outputs(self.c)
    }

    /// Outputs, outputs along a direction, restricted gradient, full gradient, and normal products,
    /// of the outputs and of their sum where they are open, under own and under other gates, by one
    /// operator, and by the provided bodies on it.
    fn products<S: Factored<Source: std::fmt::Debug>>(
        &self,
        sensing: &mut S,
        oracle: bool,
    ) -> [Vec<f32>; 15] {
        let (n, d, m, c) = (sensing.local_rows(), self.d, self.m, self.c);
        let (net, gates) = (self.net(), self.gates());
        let mut scratch = vec![f32::NAN; sensing.net_scratch(n)];
        let mut out = vec![f32::NAN; n * c];
        let r: Vec<f32> = (0..n * c).map(|e| ((e * 7 % 13) as f32 - 6.0) / 13.0).collect();
        let mut at = (vec![0.5; net.w().nnz()], vec![0.5; net.wt().nnz()]);
        let mut full = (vec![0.5; m * d], vec![0.5; m * c]);
        let (a, f) = (sides(&mut at), sides(&mut full));
        // A direction on the support, and gates of other weights.
        let change = |len: usize, step: usize| -> Vec<f32> {
            (0..len).map(|e| ((e * step % 11) as f32 - 5.0) / 11.0).collect()
        };
        let changes = (change(self.w.0.len(), 3), change(self.wt.0.len(), 5));
        let p = Network::new(
            Weights::new(d, m, &self.w.0, &changes.0).unwrap(),
            Weights::new(c, m, &self.wt.0, &changes.1).unwrap(),
        );
        let p = p.unwrap();
        let tangent = Tangent { net, p };
        let other = Gates::of(p.w(), Signs::Positive, Empty::Freeze, 0, 2);
        let mut image = vec![f32::NAN; n * c];
        let open: Vec<u32> =
            (0..n * open_words(c)).map(|e| (e as u32).wrapping_mul(0x9e37_79b9)).collect();
        let normal = [gates, other].map(|gates| {
            let room = || (vec![0.5; net.w().nnz()], vec![0.5; net.wt().nnz()]);
            let (mut normal, mut sum, mut along) = (room(), room(), vec![f32::NAN; n * c]);
            let (out, of_sum) = (sides(&mut normal), sides(&mut sum));
            let (image, scratch) = (&mut image[..], &mut scratch[..]);
            if oracle {
                provided::along(sensing, gates, tangent, &mut along, scratch).unwrap();
                provided::normal_at(sensing, gates, tangent, out, image, scratch).unwrap();
                provided::sum_normal_at(sensing, gates, tangent, &open, of_sum, image, scratch)
                    .unwrap();
            } else {
                sensing.net_along(gates, tangent, &mut along, scratch).unwrap();
                sensing.net_normal_at(gates, tangent, out, image, scratch).unwrap();
                sensing.net_sum_normal_at(gates, tangent, &open, of_sum, image, scratch).unwrap();
            }
            [normal.0, normal.1, sum.0, sum.1, along]
        });
        if oracle {
            provided::forward(sensing, gates, net, &mut out, &mut scratch).unwrap();
            provided::gradient_at(sensing, gates, net, &r, a, &mut scratch).unwrap();
            provided::gradient(sensing, gates, net, &r, 0..m, f, &mut scratch).unwrap();
        } else {
            sensing.net_forward(gates, net, &mut out, &mut scratch).unwrap();
            sensing.net_gradient_at(gates, net, &r, a, &mut scratch).unwrap();
            sensing.net_gradient(gates, net, &r, 0..m, f, &mut scratch).unwrap();
        }
        let [[a, b, e, f, g], [h, i, j, k, l]] = normal;
        [out, at.0, at.1, full.0, full.1, a, b, e, f, g, h, i, j, k, l]
    }
}

/// Room for a gradient by both sides.
fn sides(room: &mut (Vec<f32>, Vec<f32>)) -> GradientMut<'_> {
    GradientMut { w: &mut room.0, wt: &mut room.1 }
}

fn gated<T>(case: &Case, work: impl FnOnce(&mut Gated<'_, Rows<'_>>) -> T) -> T {
    let mut memory = vec![0.0; gated_words(case.d, case.m)];
    work(&mut Gated::new(Rows::new(&case.x, case.d).unwrap(), case.m, 1, &mut memory).unwrap())
}

fn close(a: &[f32], b: &[f32], tolerance: f32) {
    assert_eq!(a.len(), b.len());
    let scale = a.iter().fold(1.0_f32, |scale, x| scale.max(x.abs()));
    for (k, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() <= tolerance * scale, "entry {k}: {a} and {b}, scale {scale}");
    }
}

fn cases() -> impl Strategy<Value = Case> {
    (
        (1..40_usize, 1..9_usize, 1..7_usize, prop_oneof![4 => 1..6_usize, 1 => 30..40_usize]),
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

fn words<S: Factored>(sensing: &S, case: &Case, s: usize, params: &Params<'_>) -> usize {
    let mut budget =
        params.budget(Dims::new(case.n, case.d, case.m, s), case.c, sensing.panel(), 0);
    budget.scratch = sensing.net_scratch(budget.batch);
    budget.words()
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
        sensing.net_gradient(gates, net, &r, 0..4, sides(&mut full), &mut scratch).unwrap();
        sensing.net_gradient_at(gates, net, &r, sides(&mut at), &mut scratch).unwrap();
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
fn the_residual_and_the_loss_are_finite_for_outputs_of_any_size() {
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

const DIGITS: usize = 600;

fn pictures() -> (Vec<u8>, Vec<u16>) {
    let (data, labels) = digits::generate(DIGITS, 8, 3).unwrap();
    let Values::U8(pixels) = data.values else { panic!("digits are bytes") };
    (pixels, labels.into_iter().map(u16::from).collect())
}

fn on_digits(
    params: &Params<'_>,
    (tile, panel, threads): (usize, usize, usize),
    s: usize,
) -> (anneal::Info, Vec<u32>) {
    let (pixels, labels) = pictures();
    let data = Matrix::new(DIGITS, 64, Values::U8(pixels)).unwrap();
    let dims = Dims::new(DIGITS, 64, 12, s);
    let layout = Layout { tile, panel, hold: false, gram: 0, ..Layout::new(1, 1) };
    let mut sensing =
        Blocked::new(data, 12, params.start(dims, 10), layout).unwrap().with_outputs(10);
    let mut budget = params.budget(dims, 10, panel, 0);
    budget.scratch = sensing.net_scratch(budget.batch);
    let mut memory = vec![0; budget.words()];
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let classes = Classes { labels: &labels, outputs: 10 };
        let trained =
            anneal::run(&mut sensing, classes, s, Start::Zero, params, &mut memory, |_| {
                Continue(())
            })
            .unwrap();
        let (w, wt) = (trained.network.w(), trained.network.wt());
        let values = w.value().iter().chain(wt.value()).map(|v| v.to_bits());
        (trained.info, w.index().iter().chain(wt.index()).copied().chain(values).collect())
    })
}

const PARAMS: Params<'_> = Params {
    epochs: 80,
    batch: 64,
    validation: 100,
    input_scale: 1.0 / 256.0,
    growth_rows: 200,
    ..Params::DEFAULT
};

#[test]
fn digits_are_told_apart_with_exactly_s_weights_on_any_number_of_threads() {
    let (info, bits) = on_digits(&PARAMS, (32, 12, 1), 150);
    assert_eq!(info.nnz, 150);
    let held = info.validation.unwrap();
    assert!(held.accuracy() > 0.7 && info.training.accuracy() > 0.8, "{info:?}");
    for threads in [2, 3] {
        assert_eq!(on_digits(&PARAMS, (32, 12, threads), 150).1, bits, "{threads} threads");
    }
    // Other panels and tiles add in another order only.
    let (narrow, _) = on_digits(&PARAMS, (32, 1, 1), 150);
    assert!((narrow.training.loss - info.training.loss).abs() < 0.1, "{narrow:?}");
}

#[test]
fn a_start_of_exactly_s_weights_works_too() {
    let params = Params { start_factor: 1.0, ..PARAMS };
    let (info, _) = on_digits(&params, (64, 12, 1), 150);
    assert_eq!((info.nnz, info.start), (150, 150));
    assert!(info.training.accuracy() > 0.7, "{info:?}");
}

#[test]
fn every_product_with_a_row_counts_as_one_read() {
    let case = Case::new((30, 5, 4, 3), (4, 4), 7);
    let params = Params { epochs: 3, batch: 0, start_factor: 1.0, ..Params::DEFAULT };
    let mut sensing = case.blocked(8, 2);
    let mut memory = vec![0; words(&sensing, &case, 8, &params)];
    let mut seen = Vec::new();
    let trained = anneal::run(
        &mut sensing,
        case.classes(),
        8,
        Start::Zero,
        &params,
        &mut memory,
        |progress| {
            seen.push((progress.rows_read, progress.live));
            Continue(())
        },
    )
    .unwrap();
    // Scales of the columns; steps forward and back; before the second and the third the growth of
    // two panels.
    assert_eq!(seen.iter().map(|(read, _)| *read).collect::<Vec<_>>(), [3 * 30, 9 * 30, 15 * 30]);
    assert_eq!(trained.info.rows_read, 16 * 30, "the score of the result");
    assert_eq!(seen[2].1, trained.info.live);
}

#[test]
fn a_run_starts_from_a_network_of_its_shape() {
    let case = Case::new((30, 5, 4, 3), (20, 12), 7);
    let params = Params { epochs: 3, batch: 10, rate: 1e-6, ..Params::DEFAULT };
    gated(&case, |sensing| {
        let (net, s) = (case.net(), case.net().nnz());
        let mut memory = vec![0; words(sensing, &case, s, &params)];
        let mut start = |network| {
            let start = Start::Network(network);
            anneal::run(sensing, case.classes(), s, start, &params, &mut memory, |_| {
                continue_if(false)
            })
            .map(|trained| {
                [trained.network.w().value().to_vec(), trained.network.wt().value().to_vec()]
            })
        };
        let values = start(net).unwrap();
        for (after, before) in
            values.iter().flatten().zip(net.w().value().iter().chain(net.wt().value()))
        {
            assert!((after - before).abs() < 1e-5, "{after} {before}");
        }
        let other = start(Network::empty(Shape::weighted(5, 4, 2)));
        assert!(matches!(other, Err(Error::Length { expected: 3, got: 2, .. })), "{other:?}");
    });
}

#[test]
fn patience_ends_a_run_and_the_best_iterate_is_the_result() {
    let params = Params { patience: 1, epochs: 200, rate: 0.3, settle: 0.1, shrink: 0.1, ..PARAMS };
    let (info, _) = on_digits(&params, (64, 12, 1), 400);
    assert!(info.early && info.epochs < 200, "{info:?}");
    assert_eq!(info.nnz, 400);
}

#[test]
fn whoever_watches_may_end_the_run_at_any_step() {
    let (pixels, labels) = pictures();
    let x: Vec<f32> = pixels.iter().map(|&p| f32::from(p)).collect();
    let case = Case { x, labels, ..Case::new((DIGITS, 64, 12, 10), (0, 0), 0) };
    for last in [1, 20, 100] {
        gated(&case, |sensing| {
            let mut memory = vec![0; words(sensing, &case, 100, &PARAMS)];
            let trained =
                anneal::run(sensing, case.classes(), 100, Start::Zero, &PARAMS, &mut memory, |p| {
                    continue_if(p.step < last)
                });
            let info = trained.unwrap().info;
            assert!(info.stopped && info.steps == last && info.nnz <= 100, "{info:?}");
        });
    }
}

/// Fails once with [`Error::Stopped`] in the call after `left` others, and works on.
struct Stopping<'a, S> {
    inner: &'a mut S,
    left: Option<usize>,
}

impl<S: Sensing> Wrapper for Stopping<'_, S> {
    type Inner = S;

    fn inner(&self) -> &S {
        self.inner
    }

    fn inner_mut(&mut self) -> &mut S {
        self.inner
    }

    fn before(&mut self, operation: Operation, _: usize) -> Result<Body, Error<S::Source>> {
        if matches!(operation, Operation::Apply | Operation::Adjoint) {
            if self.left == Some(0) {
                self.left = None;
                return Err(Error::Stopped);
            }
            self.left = self.left.map(|left| left - 1);
        }
        Ok(Body::Provided)
    }
}

type Ended = (Vec<(u32, u32)>, Vec<(u32, u32)>, u32, u32);

/// Both sides, the loss and the steps of a run that the operator stops after so many calls, or the
/// observer after so many steps; and whether it was ended. None where it was stopped before the
/// first step.
fn ended(
    case: &Case,
    s: usize,
    params: &Params<'_>,
    calls: Option<usize>,
    last: u32,
) -> Option<(Ended, bool)> {
    gated(case, |inner| {
        let mut sensing = Stopping { inner, left: calls };
        let mut memory = vec![0; words(&sensing, case, s, params)];
        let observe = |p: &anneal::Progress<'_>| continue_if(p.step < last);
        match anneal::run(
            &mut sensing,
            case.classes(),
            s,
            Start::Zero,
            params,
            &mut memory,
            observe,
        ) {
            Err(error) => {
                assert_eq!(error, Error::Stopped);
                None
            }
            Ok(trained) => {
                let side = |side: Weights<'_>| -> Vec<(u32, u32)> {
                    side.index()
                        .iter()
                        .copied()
                        .zip(side.value().iter().map(|v| v.to_bits()))
                        .collect()
                };
                let (net, info) = (trained.network, trained.info);
                let loss = info.training.loss.to_bits();
                Some(((side(net.w()), side(net.wt()), loss, info.steps), info.stopped))
            }
        }
    })
}

/// The support changes before nearly every step, below s too, and shrinks; each call of the
/// operator may be the last.
#[test]
fn an_operator_that_stops_leaves_the_last_complete_step() {
    let case = Case::new((24, 5, 6, 3), (0, 0), 3);
    for (factor, validation, s) in [(1.0, 0, 14), (2.0, 6, 10)] {
        let params = Params {
            epochs: 12,
            batch: 8,
            start_factor: factor,
            validation,
            growth_rows: 16,
            drop: 0.5,
            ..Params::DEFAULT
        };
        let steps = 12 * (24 - validation as u32).div_ceil(8);
        let by_step: Vec<_> = (0..=steps)
            .map(|last| ended(&case, s, &params, None, last.max(1)).unwrap().0)
            .collect();
        let whole = ended(&case, s, &params, None, u32::MAX).unwrap();
        assert!(!whole.1);
        let (mut calls, mut before, mut seen) = (0, 0, vec![0; steps as usize + 1]);
        loop {
            match ended(&case, s, &params, Some(calls), u32::MAX) {
                None => before += 1,
                Some((_, false)) => break,
                Some((found, true)) => {
                    seen[found.3 as usize] += 1;
                    let expected = &by_step[found.3 as usize];
                    // Stopped while the finished result is scored, it is the result.
                    assert!(
                        found == *expected || found == whole.0,
                        "call {calls}, step {}",
                        found.3
                    );
                    assert!(found == *expected || found.3 == steps, "call {calls}");
                }
            }
            calls += 1;
        }
        assert!(before > 0 && seen[0] == 0 && seen[1..].iter().all(|&n| n > 0), "{seen:?}");
    }
}

#[test]
fn bad_input_is_named() {
    let case = Case::new((6, 3, 2, 2), (0, 0), 1);
    let run = |labels: &[u16], c: usize, s: usize, params: Params<'_>| {
        gated(&case, |sensing| {
            let mut memory = vec![0; 4096];
            let classes = Classes { labels, outputs: c };
            anneal::run(sensing, classes, s, Start::Zero, &params, &mut memory, |_| Continue(()))
                .unwrap_err()
        })
    };
    let what = |error| match error {
        Error::Range { what, .. } | Error::Length { what, .. } | Error::NotFinite { what, .. } => {
            what
        }
        other => panic!("{other:?}"),
    };
    let good = Params { epochs: 1, ..Params::DEFAULT };
    assert_eq!(what(run(&[0, 1, 2, 0, 1, 0], 1, 4, good)), "label");
    assert_eq!(what(run(&case.labels, 0, 4, good)), "outputs");
    assert_eq!(what(run(&[0, 1, 2, 0, 1, 0], 2, 4, good)), "label");
    assert_eq!(what(run(&case.labels[1..], 2, 4, good)), "labels");
    assert_eq!(what(run(&case.labels, 2, 1, good)), "nonzero weights (nnz)");
    assert_eq!(what(run(&case.labels, 2, 11, good)), "nonzero weights (nnz)");
    assert_eq!(what(run(&case.labels, 2, 4, Params { epochs: 0, ..good })), "epochs");
    assert_eq!(what(run(&case.labels, 2, 4, Params { validation: 6, ..good })), "validation rows");
    assert_eq!(what(run(&case.labels, 2, 4, Params { rate: f32::NAN, ..good })), "parameters");
    for wrong in [
        Params { start_factor: 0.5, ..good },
        Params { rate: 0.0, ..good },
        Params { drop: 1.5, ..good },
        Params { settle: -0.1, ..good },
        Params { input_scale: 0.0, ..good },
    ] {
        assert!(matches!(run(&case.labels, 2, 4, wrong), Error::Range { .. }));
    }
    let far = Params { rate: 1e38, epochs: 50, ..good };
    assert!(matches!(run(&case.labels, 2, 10, far), Error::Diverged { .. }));
}
