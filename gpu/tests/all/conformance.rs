//! The conformance suite, with the reference operator as the oracle.

use crate::on_host::OnHost;
use crate::{both_bodies, gpu, limited, normal};
use std::ops::Range;
use std::sync::Arc;
use tamis::base::budget::gated_words;
use tamis::base::dims::Dims;
use tamis::data::samples::Rows;
use tamis::network::gates::{Empty, Gates, Signs};
use tamis::network::net::Network;
use tamis::network::weights::Weights;
use tamis::operator::factored::{Factored, GradientMut, Tangent};
use tamis::operator::gated::Gated;
use tamis::operator::sensing::Sensing;
use tamis::operator::solve::{Equations, Unknowns};
use tamis::operator::tables::{Residual, open_words};
use tamis_gpu::{Gpu, GpuOperator, Values};
use tamis_tests::conformance::{
    Agreement, Situation, Spy, recover, recovery_words, run, table, words,
};

/// Rows, inputs and neurons of a problem.
#[derive(Clone, Copy)]
struct Size {
    n: usize,
    d: usize,
    m: usize,
}

const fn size(n: usize, d: usize, m: usize) -> Size {
    Size { n, d, m }
}

/// Single rows, inputs and neurons, and sizes that no tile divides.
const SIZES: [Size; 7] = [
    size(1, 1, 1),
    size(1, 5, 3),
    size(7, 1, 4),
    size(2, 3, 8),
    size(67, 33, 5),
    size(300, 70, 67),
    size(530, 7, 19),
];

fn hold(
    gpu: &Arc<Gpu>,
    name: &str,
    stride: usize,
    values: &[f32],
    Size { n, d, m }: Size,
    on: Values<'_>,
) {
    let mut memory = vec![0.0; gated_words(d, m)];
    let mut reference = Gated::new(Rows::new(values, d).unwrap(), m, 1, &mut memory).unwrap();
    let mut sensing = OnHost::new(GpuOperator::new(gpu, d, m, on).unwrap());
    let mut memory = vec![0; words(n, d, m, n + d)];
    match run(&mut reference, &mut sensing, Agreement::Close, stride, &mut memory) {
        Ok(passed) => {
            let checks = table::<Gated<'_, Rows<'_>>, OnHost>().len();
            assert_eq!(passed as usize, Situation::COUNT.div_ceil(stride) * checks);
        }
        Err(failure) => panic!("{name}, {n} × {d}, {m} neurons: {failure:?}"),
    }
    // Its own provided bodies on its required products are what its bulk operations are.
    let mut inner = OnHost::new(GpuOperator::new(gpu, d, m, on).unwrap());
    let mut memory = vec![0; words(n, d, m, n + d)];
    let spy = &mut Spy::provided(&mut inner);
    if let Err(failure) = run(spy, &mut sensing, Agreement::Close, 37, &mut memory) {
        panic!("{name}, provided bodies, {n} × {d}, {m} neurons: {failure:?}");
    }
}

#[test]
fn operator_conforms_on_floats() {
    for gpu in both_bodies() {
        for size @ Size { n, d, .. } in SIZES {
            let values = normal(n * d, n as u64);
            let stride = if n * d > 10000 { 27 } else { 7 };
            hold(&gpu, "floats", stride, &values, size, Values::F32(&values));
        }
    }
}

#[test]
fn operator_conforms_on_bytes() {
    for size @ Size { n, d, .. } in [size(1, 5, 3), size(67, 33, 5), size(530, 7, 19)] {
        let bytes: Vec<u8> = (0..n * d).map(|e| (e * 7919 % 251 + e / 13 % 5) as u8).collect();
        let values: Vec<f32> = bytes.iter().map(|&b| b.into()).collect();
        hold(gpu(), "bytes", 17, &values, size, Values::U8(&bytes));
    }
}

#[test]
fn planted_weights_are_recovered() {
    let (n, d, m) = (2000, 20, 10);
    let values = normal(n * d, 5);
    let mut sensing = OnHost::new(GpuOperator::new(gpu(), d, m, Values::F32(&values)).unwrap());
    let index: Vec<u32> = (0..m as u32 * 2).map(|e| e * 10 + e % 7).collect();
    let planted = Weights::new(d, m, &index, &normal(index.len(), 6)).map(|w| w.nnz());
    let value = normal(planted.unwrap(), 6);
    let planted = Weights::new(d, m, &index, &value).unwrap();
    let gates = Gates::seeded(1);
    let dims = Dims::new(n, d, m, planted.nnz());
    let mut memory = vec![0; recovery_words(dims, m, n + d)];
    let error = recover(&mut sensing, gates, planted, 40, &mut memory).unwrap();
    assert!(error < 1e-5, "{error}");
}

/// Products on one operator: all bits of what they give.
fn products(operator: GpuOperator, [n, d, m]: [usize; 3]) -> Vec<u32> {
    let index: Vec<u32> = (0..(d * m) as u32).filter(|j| j % 3 != 1).collect();
    let value = normal(index.len(), 3);
    let w = Weights::new(d, m, &index, &value).unwrap();
    let mut operator = OnHost::new(operator);
    let r = normal(n, 4);
    let mut all = Vec::new();
    for rows in [0..n, n / 3..n - n / 5] {
        operator.select(rows.clone()).unwrap();
        for gates in [Gates::of(w, Signs::Balanced, Empty::Open, 0, 0), Gates::seeded(2)] {
            let gates = operator.hold(gates, &index).unwrap();
            let (s, r) = (index.len(), &r[..rows.len()]);
            let (mut out, mut panel) = (vec![0.0; rows.len()], vec![0.0; 2 * m * d]);
            let mut own = vec![0.0; 3 * s];
            operator.forward(gates, w, &mut out).unwrap();
            operator.gradient(gates, r, 0..m, &mut panel[..m * d]).unwrap();
            operator.column_norms(gates, 0..m, &mut panel[m * d..], &mut []).unwrap();
            operator.gradient_at(gates, &index, r, &mut own[..s], &mut []).unwrap();
            operator.diagonal_at(gates, &index, &mut own[s..2 * s], &mut []).unwrap();
            operator.normal_at(gates, w, &mut own[2 * s..], &mut []).unwrap();
            all.extend([out, panel, own].concat().iter().map(|x| x.to_bits()));
        }
    }
    all
}

#[test]
fn same_bits_on_repeat_and_whatever_a_binding_holds() {
    let sizes @ [n, d, m] = [50000, 6, 5];
    let values = normal(n * d, 9);
    let of = |gpu: &_| products(GpuOperator::new(gpu, d, m, Values::F32(&values)).unwrap(), sizes);
    let expected = of(gpu());
    assert_eq!(of(gpu()), expected, "again");
    // Seven tiles in place of one, and 13, with vectors of which a binding holds the half.
    assert_eq!(of(&limited(200 << 10)), expected, "in tiles");
    assert_eq!(of(&limited(100 << 10)), expected, "in more");
}

#[test]
fn bytes_and_their_floats_give_the_same_bits() {
    let sizes @ [n, d, m] = [5000, 9, 4];
    let bytes: Vec<u8> = (0..n * d).map(|e| (e * 7919 % 256) as u8).collect();
    let floats: Vec<f32> = bytes.iter().map(|&b| b.into()).collect();
    let of = |values| products(GpuOperator::new(gpu(), d, m, values).unwrap(), sizes);
    assert_eq!(of(Values::U8(&bytes)), of(Values::F32(&floats)));
}

/// Solves again and again: over the data first, then with the Gram matrix.
#[test]
fn solves_agree_with_the_reference() {
    both_bodies().iter().for_each(solves);
}

fn solves(gpu: &Arc<Gpu>) {
    // More weights than a tile of the Gram matrix has.
    let (n, d, m) = (900, 20, 6);
    let values = normal(n * d, 21);
    let mut memory = vec![0.0; gated_words(d, m)];
    let mut reference = Gated::new(Rows::new(&values, d).unwrap(), m, 1, &mut memory).unwrap();
    let mut sensing = OnHost::new(GpuOperator::new(gpu, d, m, Values::F32(&values)).unwrap());
    let index: Vec<u32> = (0..(d * m) as u32).filter(|j| j % 4 != 2).collect();
    let s = index.len();
    let value = normal(s, 3);
    let w = Weights::new(d, m, &index, &value).unwrap();
    let gates = Gates::of(w, Signs::Balanced, Empty::Freeze, 0, 0);
    let mut scratch = vec![0.0; n + d];
    for rows in [0..n, 100..800] {
        reference.select(rows.clone()).unwrap();
        sensing.select(rows.clone()).unwrap();
        let held = sensing.hold(gates, &index).unwrap();
        let mut diagonal = vec![0.0; s];
        reference.diagonal_at(gates, &index, &mut diagonal, &mut scratch).unwrap();
        for (lambda, products) in [(0.1, 3), (0.1, 9), (1e-3, 60), (0.1, 9), (0.5, 1)] {
            for diagonal in [Some(&diagonal[..]), None] {
                let tolerance = 1e-3;
                let equations = Equations { diagonal, lambda, tolerance, products };
                macro_rules! on {
                    ($s:expr, $gates:expr) => {{
                        let (mut delta, mut g) = (vec![0.0; s], normal(s, 8));
                        let (mut p, mut h) = (vec![0.0; s], vec![0.0; s]);
                        let unknowns =
                            Unknowns { delta: &mut delta, g: &mut g, p: &mut p, h: &mut h };
                        let solved = $s.solve_at($gates, &index, equations, unknowns, &mut scratch);
                        (solved.unwrap(), delta, g)
                    }};
                }
                let (expected, got) = (on!(reference, gates), on!(sensing, held));
                assert!(expected.0.products.abs_diff(got.0.products) <= 1, "{expected:?}");
                if expected.0 == got.0 {
                    close_by(1e-3, "solution", &expected.1, &got.1);
                }
            }
        }
    }
}

pub(crate) fn close(what: &str, expected: &[f32], got: &[f32]) {
    close_by(1e-5, what, expected, got);
}

pub(crate) fn close_by(limit: f32, what: &str, expected: &[f32], got: &[f32]) {
    close_from(limit, 0.0, what, expected, got);
}

/// Relative to the largest, which counts as `least` where it is smaller.
fn close_from(limit: f32, least: f32, what: &str, expected: &[f32], got: &[f32]) {
    let scale = expected.iter().fold(least, |most, x| most.max(x.abs()));
    for (at, (a, b)) in expected.iter().zip(got).enumerate() {
        assert!((a - b).abs() <= limit * scale, "{what}, {at}: {a} on the host, {b}");
    }
    assert_eq!(expected.len(), got.len());
}

#[test]
fn products_of_several_outputs_agree_with_the_reference() {
    for gpu in both_bodies() {
        several_outputs(&gpu, size(700, 11, 9), 13, &[0..700, 100..650]);
    }
    // More products than a grid has groups of threads in a line.
    several_outputs(gpu(), size(20, 2, 400), 700, &[0..20, 3..18]);
    // Tables that no binding holds, with several neurons of all rows in one, and with less than one.
    several_outputs(&limited(200 << 10), size(9000, 11, 9), 13, &[0..9000, 1001..8003]);
    let batches = [0..20000, 4999..19001, 7..1500];
    several_outputs(&limited(48 << 10), size(20000, 2, 3), 2, &batches);
}

fn several_outputs(gpu: &Arc<Gpu>, Size { n, d, m }: Size, c: usize, batches: &[Range<usize>]) {
    let values = normal(n * d, 11);
    let mut memory = vec![0.0; gated_words(d, m)];
    let mut reference = Gated::new(Rows::new(&values, d).unwrap(), m, 1, &mut memory).unwrap();
    let mut sensing = OnHost::new(GpuOperator::new(gpu, d, m, Values::F32(&values)).unwrap());
    // Some neurons without weights on either side.
    let index: Vec<u32> = (0..(d * m) as u32).filter(|j| j / d as u32 != 3 && j % 3 == 0).collect();
    let out: Vec<u32> = (0..(c * m) as u32).filter(|j| j / c as u32 != 5 && j % 4 != 1).collect();
    let [v, pv, u, pu] = [(index.len(), 1), (index.len(), 2), (out.len(), 3), (out.len(), 4)]
        .map(|(len, seed)| normal(len, seed));
    let net = |v, u| {
        let (w, wt) = (Weights::new(d, m, &index, v), Weights::new(c, m, &out, u));
        Network::new(w.unwrap(), wt.unwrap()).unwrap()
    };
    let (net, p) = (net(&v, &u), net(&pv, &pu));
    let mut scratch = vec![0.0; 2 * n + d];
    for rows in batches {
        let r = normal(rows.len() * c, 5);
        let words = open_words(c);
        let open: Vec<u32> =
            (0..rows.len() * words).map(|e| (e as u32).wrapping_mul(0x9e37_79b9)).collect();
        let open: &[f32] = bytemuck::cast_slice(&open);
        for gates in [net.gates(0), Gates::seeded(7)] {
            macro_rules! on {
                ($s:expr) => {{
                    $s.select(rows.clone()).unwrap();
                    let mut outputs = vec![0.0; 2 * rows.len() * c];
                    let (first, second) = outputs.split_at_mut(rows.len() * c);
                    $s.net_forward(gates, net, first, &mut scratch).unwrap();
                    let tangent = Tangent { net, p };
                    $s.net_along(gates, tangent, second, &mut scratch).unwrap();
                    let mut panel = vec![0.5; m * (d + c)];
                    let part = GradientMut::split(&mut panel, m * d);
                    let each = Residual::Each(&r[..]);
                    $s.net_gradient(gates, net, each, 0..m, part, &mut scratch).unwrap();
                    let mut own = vec![0.0; index.len() + out.len()];
                    let part = GradientMut::split(&mut own, index.len());
                    $s.net_gradient_at(gates, net, each, part, &mut scratch).unwrap();
                    // The same of a sum of open outputs.
                    let (mut sum, mut bits) = (vec![0.0; rows.len()], vec![0.0; open.len()]);
                    $s.net_sum_forward(gates, net, &mut bits, &mut sum, &mut scratch).unwrap();
                    let both = sum.clone();
                    let r = Residual::Open { r: &r[..rows.len()], open };
                    let mut of_open = vec![0.5; m * (d + c)];
                    let part = GradientMut::split(&mut of_open, m * d);
                    $s.net_gradient(gates, net, r, 0..m, part, &mut scratch).unwrap();
                    let mut at_open = vec![0.0; own.len()];
                    let part = GradientMut::split(&mut at_open, index.len());
                    $s.net_gradient_at(gates, net, r, part, &mut scratch).unwrap();
                    let mut normal = vec![0.0; own.len()];
                    let part = GradientMut::split(&mut normal, index.len());
                    let image = &mut sum[..];
                    $s.net_sum_normal_at(gates, tangent, open, part, image, &mut scratch).unwrap();
                    let is_zero = |words: &[f32]| words.iter().all(|word| word.to_bits() == 0);
                    assert!(!is_zero(&bits), "output 0 is open");
                    [outputs, panel, own, both, of_open, at_open, normal]
                }};
            }
            let (expected, got) = (on!(reference), on!(sensing));
            // Sums over rows may cancel; what was rounded is of the size of the root of their number.
            let root = (rows.len() as f32).sqrt();
            let kinds = [
                ("outputs", 0.0),
                ("panel", root),
                ("support", root),
                ("sums", 0.0),
                ("panel of open outputs", root),
                ("support of open outputs", root),
                ("normal product", root * (c as f32)),
            ];
            for ((what, least), (a, b)) in kinds.into_iter().zip(expected.iter().zip(&got)) {
                close_from(1e-5, least, what, a, b);
            }
        }
    }
}
