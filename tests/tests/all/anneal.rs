//! Networks with several outputs and the annealed recipe: gradients against differences, overrides
//! against provided bodies, exact counts and budgets, results that depend neither on panels nor on
//! threads, and bad input.

use std::ops::ControlFlow::Continue;
use tamis::Error;
use tamis::base::bits::is_set;
use tamis::base::budget::gated_words;
use tamis::base::dims::Dims;
use tamis::base::rng::{Permutation, Rng};
use tamis::data::samples::Rows;
use tamis::learn::anneal::{self, Params};
use tamis::learn::loss::Classes;
use tamis::learn::start::{Start, continue_if};
use tamis::network::gates::{Empty, Gates, Signs};
use tamis::network::net::{Network, Shape};
use tamis::network::weights::Weights;
use tamis::operator::factored::{Factored, GradientMut, Tangent, provided};
use tamis::operator::gated::Gated;
use tamis::operator::machine::Host;
use tamis::operator::tables::{Residual, open_words};
use tamis_host::data::{Matrix, Values, digits};
use tamis_host::operator::{Blocked, Layout};

/// A problem with its network, all drawn from a seed.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) n: usize,
    pub(crate) d: usize,
    pub(crate) m: usize,
    pub(crate) c: usize,
    pub(crate) x: Vec<f32>,
    pub(crate) labels: Vec<u16>,
    pub(crate) w: (Vec<u32>, Vec<f32>),
    pub(crate) wt: (Vec<u32>, Vec<f32>),
}

impl Case {
    pub(crate) fn new(
        (n, d, m, c): (usize, usize, usize, usize),
        (s, t): (usize, usize),
        seed: u64,
    ) -> Self {
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

    pub(crate) fn classes(&self) -> Classes<'_> {
        Classes::new(&self.labels, self.c)
    }

    pub(crate) fn net(&self) -> Network<'_> {
        let w = Weights::new(self.d, self.m, &self.w.0, &self.w.1).unwrap();
        Network::new(w, Weights::new(self.c, self.m, &self.wt.0, &self.wt.1).unwrap()).unwrap()
    }

    pub(crate) fn gates(&self) -> Gates<'_> {
        Gates::of(self.net().w(), Signs::Positive, Empty::Freeze, 0, 1)
    }

    pub(crate) fn blocked(&self, tile: usize, panel: usize) -> Blocked {
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
    pub(crate) fn products<S: Factored<Source: std::fmt::Debug, Machine = Host>>(
        &self,
        sensing: &mut S,
        oracle: bool,
    ) -> [Vec<f32>; 21] {
        let (n, d, m, c) = (sensing.local_rows(), self.d, self.m, self.c);
        let (net, gates) = (self.net(), self.gates());
        let mut scratch = vec![f32::NAN; sensing.net_scratch(n)];
        let mut out = vec![f32::NAN; n * c];
        let r: Vec<f32> = (0..n * c).map(|e| ((e * 7 % 13) as f32 - 6.0) / 13.0).collect();
        let mut at = (vec![0.5; net.w().nnz()], vec![0.5; net.wt().nnz()]);
        let mut full = (vec![0.5; m * d], vec![0.5; m * c]);
        let (mut open_at, mut open_full) = (at.clone(), full.clone());
        let (a, f) = (sides(&mut at), sides(&mut full));
        let (open_a, open_f) = (sides(&mut open_at), sides(&mut open_full));
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
        let open: &[f32] = bytemuck::cast_slice(&open);
        let normal = [gates, other].map(|gates| {
            let room = || (vec![0.5; net.w().nnz()], vec![0.5; net.wt().nnz()]);
            let (mut normal, mut sum, mut along) = (room(), room(), vec![f32::NAN; n * c]);
            let (out, of_sum) = (sides(&mut normal), sides(&mut sum));
            let scratch = &mut scratch[..];
            if oracle {
                provided::along(sensing, gates, tangent, &mut along, scratch).unwrap();
                provided::normal_at(sensing, gates, tangent, out, &mut image, scratch).unwrap();
                let image = &mut image[..n];
                provided::sum_normal_at(sensing, gates, tangent, open, of_sum, image, scratch)
                    .unwrap();
            } else {
                sensing.net_along(gates, tangent, &mut along, scratch).unwrap();
                sensing.net_normal_at(gates, tangent, out, &mut image, scratch).unwrap();
                let image = &mut image[..n];
                sensing.net_sum_normal_at(gates, tangent, open, of_sum, image, scratch).unwrap();
            }
            [normal.0, normal.1, sum.0, sum.1, along]
        });
        let (each, of_open) = (Residual::Each(&r[..]), Residual::Open { r: &r[..n], open });
        let (mut sum, mut bits) = (vec![f32::NAN; n], vec![f32::NAN; open.len()]);
        let (of_sum, of_bits, scratch) = (&mut sum[..], &mut bits[..], &mut scratch[..]);
        if oracle {
            provided::forward(sensing, gates, net, &mut out, scratch).unwrap();
            provided::sum_forward(sensing, gates, net, of_bits, of_sum, scratch).unwrap();
            provided::gradient_at(sensing, gates, net, each, a, scratch).unwrap();
            provided::gradient_at(sensing, gates, net, of_open, open_a, scratch).unwrap();
            provided::gradient(sensing, gates, net, each, 0..m, f, scratch).unwrap();
            provided::gradient(sensing, gates, net, of_open, 0..m, open_f, scratch).unwrap();
        } else {
            sensing.net_forward(gates, net, &mut out, scratch).unwrap();
            sensing.net_sum_forward(gates, net, of_bits, of_sum, scratch).unwrap();
            sensing.net_gradient_at(gates, net, each, a, scratch).unwrap();
            sensing.net_gradient_at(gates, net, of_open, open_a, scratch).unwrap();
            sensing.net_gradient(gates, net, each, 0..m, f, scratch).unwrap();
            sensing.net_gradient(gates, net, of_open, 0..m, open_f, scratch).unwrap();
        }
        // The sums are those of the outputs, and the bits say which: all output 0 and the positive ones.
        let (words, bits) = (open_words(c), bytemuck::cast_slice::<f32, u32>(&bits));
        for ((out, sum), bits) in out.chunks(c).zip(&sum).zip(bits.chunks(words)) {
            let is_open = |k: usize| is_set(bits, k);
            let total: f32 = (0..c).filter(|&k| is_open(k)).map(|k| out[k]).sum();
            assert!((total - sum).abs() <= 1e-4 * (1.0 + sum.abs()), "{total} and {sum}");
            let rounding = 1e-5 * out.iter().fold(1.0, |most: f32, z| most.max(z.abs()));
            assert!(is_open(0) && !(c..32 * words).any(is_open));
            assert!((1..c).all(|k| is_open(k) == (out[k] > 0.0) || out[k].abs() < rounding));
        }
        let bits = bits.iter().map(|word| word.count_ones() as f32).collect();
        let [[a, b, e, f, g], [h, i, j, k, l]] = normal;
        let open = (open_at, open_full);
        [
            out, at.0, at.1, full.0, full.1, a, b, e, f, g, h, i, j, k, l, sum, bits, open.0.0,
            open.0.1, open.1.0, open.1.1,
        ]
    }
}

pub(crate) fn gated<T>(case: &Case, work: impl FnOnce(&mut Gated<'_, Rows<'_>>) -> T) -> T {
    let mut memory = vec![0.0; gated_words(case.d, case.m)];
    work(&mut Gated::new(Rows::new(&case.x, case.d).unwrap(), case.m, 1, &mut memory).unwrap())
}

/// Room for a gradient by both sides.
pub(crate) fn sides(room: &mut (Vec<f32>, Vec<f32>)) -> GradientMut<'_> {
    GradientMut { w: &mut room.0, wt: &mut room.1 }
}

pub(crate) fn words<S: Factored>(sensing: &S, case: &Case, s: usize, params: &Params<'_>) -> usize {
    let mut budget =
        params.budget(Dims::new(case.n, case.d, case.m, s), case.c, sensing.panel(), 0);
    budget.scratch = sensing.net_scratch(budget.batch);
    budget.words()
}

const DIGITS: usize = 600;

fn pictures() -> (Vec<u8>, Vec<u16>) {
    let (data, labels) = digits::generate(DIGITS, 8, 3).unwrap();
    let Values::U8(pixels) = data.values else { panic!("digits are bytes") };
    (pixels, labels.into_iter().map(u16::from).collect())
}

fn layout(tile: usize, panel: usize) -> Layout {
    Layout { tile, panel, hold: false, gram: 0, ..Layout::new(1, 1) }
}

fn on_digits(
    params: &Params<'_>,
    (tile, panel, threads): (usize, usize, usize),
    s: usize,
) -> (anneal::Info, Vec<u32>) {
    digits_by(params, layout(tile, panel), threads, s)
}

fn digits_by(
    params: &Params<'_>,
    layout: Layout,
    threads: usize,
    s: usize,
) -> (anneal::Info, Vec<u32>) {
    let (pixels, labels) = pictures();
    let data = Matrix::new(DIGITS, 64, Values::U8(pixels)).unwrap();
    let dims = Dims::new(DIGITS, 64, 12, s);
    let panel = layout.panel;
    let mut sensing =
        Blocked::new(data, 12, params.start(dims, 10), layout).unwrap().with_outputs(10);
    let mut budget = params.budget(dims, 10, panel, 0);
    budget.scratch = sensing.net_scratch(budget.batch);
    let mut memory = vec![0; budget.words()];
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let classes = Classes::new(&labels, 10);
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
fn exactly_s_weights_classify_digits_independent_of_threads() {
    let (info, bits) = on_digits(&PARAMS, (32, 12, 1), 150);
    assert_eq!(info.nnz, 150);
    let held = info.validation.unwrap();
    assert!(held.accuracy() > 0.7 && info.training.accuracy() > 0.8, "{info:?}");
    for threads in [2, 3] {
        assert_eq!(on_digits(&PARAMS, (32, 12, threads), 150).1, bits, "{threads} threads");
    }
    // Nor on how many groups of tiles there are buffers for.
    for at_once in [1, 2] {
        let layout = Layout { at_once, ..layout(32, 12) };
        assert_eq!(digits_by(&PARAMS, layout, 3, 150).1, bits, "{at_once} at once");
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
fn one_output_keeps_neurons_of_both_signs() {
    let (pixels, labels) = pictures();
    let rows: Vec<usize> = (0..DIGITS).filter(|&k| labels[k] < 2).collect();
    let row = |&k: &usize| pixels[64 * k..][..64].iter().map(|&p| f32::from(p));
    let x: Vec<f32> = rows.iter().flat_map(row).collect();
    let labels = rows.iter().map(|&k| labels[k]).collect();
    let case = Case { x, labels, ..Case::new((rows.len(), 64, 3, 1), (0, 0), 0) };
    let mut good = 0;
    for seed in 0..16 {
        let params = Params { epochs: 60, batch: 30, validation: 0, seed, ..PARAMS };
        gated(&case, |sensing| {
            let mut memory = vec![0; words(sensing, &case, 8, &params)];
            let (start, classes) = (Start::Zero, case.classes());
            let trained =
                anneal::run(sensing, classes, 8, start, &params, &mut memory, |_| Continue(()));
            let trained = trained.unwrap();
            let signs = trained.network.wt().value();
            assert!(signs.iter().any(|&v| v > 0.0) && signs.iter().any(|&v| v < 0.0), "{seed}");
            assert!(trained.info.training.accuracy() > 0.85, "{seed}: {:?}", trained.info);
            // Half of the rows at odds of one to one have ln 2 / 2 at least.
            good += usize::from(trained.info.training.loss < 0.3);
        });
    }
    assert!(good >= 14, "{good}");
}

#[test]
fn every_product_with_row_counts_one_read() {
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
fn run_starts_from_a_network_of_its_shape() {
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
fn early_stopping_returns_the_best_iterate() {
    let params = Params { patience: 1, epochs: 200, rate: 0.3, settle: 0.1, shrink: 0.1, ..PARAMS };
    let (info, _) = on_digits(&params, (64, 12, 1), 400);
    assert!(info.early && info.epochs < 200, "{info:?}");
    assert_eq!(info.nnz, 400);
}

#[test]
fn observer_may_stop_run_at_any_step() {
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

#[test]
fn bad_input_is_named() {
    let case = Case::new((6, 3, 2, 2), (0, 0), 1);
    let run = |labels: &[u16], c: usize, s: usize, params: Params<'_>| {
        gated(&case, |sensing| {
            let mut memory = vec![0; 4096];
            let classes = Classes::new(labels, c);
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

/// Ten weights spread at random over a thousand neurons would be on no path from an input.
#[test]
fn few_weights_find_one_another_in_a_wide_network() {
    let (n, d) = (300, 40);
    let mut rng = Rng::new(3, 0);
    let x: Vec<f32> = (0..n * d).map(|_| rng.normal()).collect();
    let labels: Vec<u16> = x.chunks(d).map(|row| u16::from(row[7] + row[21] > 0.0)).collect();
    for seed in 0..2 {
        let params = Params { epochs: 20, batch: 20, seed, ..Params::DEFAULT };
        let mut rows = vec![0.0; gated_words(d, 1000)];
        let mut sensing = Gated::new(Rows::new(&x, d).unwrap(), 1000, 1, &mut rows).unwrap();
        let mut memory = vec![0; params.budget(Dims::new(n, d, 1000, 10), 1, 1, 4096).words()];
        let classes = Classes::new(&labels, 1);
        let found =
            anneal::run(&mut sensing, classes, 10, Start::Zero, &params, &mut memory, |_| {
                Continue(())
            })
            .unwrap();
        assert!(found.info.training.loss < 0.5, "{seed}: {:?}", found.info);
    }
}
