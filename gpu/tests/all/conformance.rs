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
use tamis::operator::machine::{Halves, Hinge, Host, Machine};
use tamis::operator::sensing::Sensing;
use tamis::operator::solve::{Equations, Unknowns};
use tamis::operator::tables::{Residual, Tables, open_words};
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

fn close(what: &str, expected: &[f32], got: &[f32]) {
    close_by(1e-5, what, expected, got);
}

fn close_by(limit: f32, what: &str, expected: &[f32], got: &[f32]) {
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

#[test]
fn operations_on_vectors_agree_with_the_host() {
    operations_on_vectors(gpu(), 3001);
    // Vectors of two windows, tables of nine.
    operations_on_vectors(&limited(24 << 10), 9001);
}

fn operations_on_vectors(gpu: &Arc<Gpu>, n: usize) {
    let c = 3;
    let mut operator = GpuOperator::new(gpu, 1, 1, Values::F32(&[1.0])).unwrap();
    let device = operator.machine();
    let [x, y, z] = [1, 2, 3].map(|seed| normal(n, seed));
    let table = normal(n * c, 4);
    let mut handles = vec![vec![0.0; n]; 3];
    let [hx, hy, hz] = &mut handles[..] else { unreachable!() };
    let [hx, hy, hz] = [(hx, &x), (hy, &y), (hz, &z)].map(|(h, v)| device.upload(v, h));
    let mut memory = vec![0.0; n * c];
    let ht = device.upload(&table, &mut memory);
    let near = |what: &str, a: f32, b: f32, scale: f32| {
        assert!((a - b).abs() <= 1e-5 * scale, "{what}: {a} on the host, {b}");
    };
    let size = n as f32;
    near("dot", Host.dot(&x, &y), device.dot(hx, hy), size);
    near("squares", Host.squares(&x), device.squares(hx), size);
    assert_eq!(Host.largest(&x), device.largest(hx));
    assert_eq!(Host.count_active(&x, -1.0), device.count_active(hx, -1.0));
    let power = |m: &mut Host| m.power(&x, 5, 0.5, n - 9);
    near("power", power(&mut Host), device.power(hx, 5, 0.5, n - 9), size);
    let (a, b) = (Host.fit(&x, 0, 0.5, &y), device.fit(hx, 0, 0.5, hy));
    near("fit", a.product, b.product, size);
    near("fit", a.norm2, b.norm2, size);
    let halves = Halves { sign: -1.0, share: 0.2, length: 0.4 };
    let (a, b) = (Host.halves(&x, &y, &z, halves), device.halves(hx, hy, hz, halves));
    near("halves", a.product, b.product, size);
    near("halves", a.norm2, b.norm2, size);
    let (a, b) = (Host.pair(&z, &x, &y, 0.3), device.pair(hz, hx, hy, 0.3));
    near("pair", a.product, b.product, size);
    near("pair", a.norm2, b.norm2, size);
    // Those that change a vector.
    let (mut own, hinge) = (x.clone(), Hinge { sign: -1.0, band: 0.7, length: 3.0 });
    let r = Host.residual(&y[..n - 1], 3, 2.0, &mut own[..n - 4]).unwrap();
    let (head, labels) = (&mut hx[..n - 4], &hy[..n - 1]);
    near("residual", r, device.residual(labels, 3, 2.0, head).unwrap(), 9.0 * size);
    let own_head = &mut own[..n - 4];
    let (a, b) = (Host.slacken(&y, 3, 0.4, own_head), device.slacken(hy, 3, 0.4, head));
    near("slacken", a, b, 9.0 * size);
    let mut z = z;
    Host.keep(&mut z[..n - 4], own_head);
    device.keep(&mut hz[..n - 4], head);
    close("kept", &z, &device.download(hz));
    near("exchange", Host.exchange(&mut own, &y, &z), device.exchange(hx, hy, hz), 9.0 * size);
    Host.near_hinge(&mut own, &y, &z, hinge);
    device.near_hinge(hx, hy, hz, hinge);
    close("vector", &own, &device.download(hx));
    let (mut own, weights) = (table, [1.5, -0.5]);
    let wt = Weights::new(c, 1, &[0, 2], &weights).unwrap().block(0);
    Host.scale(&mut own, 3.0);
    device.scale(ht, 3.0);
    Host.add_outer(&y, wt, c, &mut own);
    device.add_outer(hy, wt, c, ht);
    Host.exchange_outer(&y, wt, &z, wt, c, &mut own);
    device.exchange_outer(hy, wt, hz, wt, c, ht);
    Host.divide(&mut own, 1.7);
    device.divide(ht, 1.7);
    close("table", &own, &device.download(ht));
    let (mut a, mut b) = ([0.5; 3], [0.5; 3]);
    Host.transpose(Residual::Each(&own), &y, &mut a);
    device.transpose(Residual::Each(ht), hy, &mut b);
    close("transpose", &a, &b);
    let (mut a, mut b) = ([0.5; 2], [0.5; 2]);
    Host.transpose_at(Residual::Each(&own), &y, wt, c, &mut a);
    device.transpose_at(Residual::Each(ht), hy, wt, c, &mut b);
    close("transpose_at", &a, &b);
    let mut projected = vec![0.0; n];
    Host.project(Residual::Each(&own), wt, c, &mut projected);
    device.project(Residual::Each(ht), wt, c, hz);
    close("project", &projected, &device.download(hz));
    // A sum of three outputs where they are open.
    let (mut bits, mut sums, mut marks) = (vec![0.0; n], z.clone(), vec![0.0; n]);
    let marked = device.rows_in(&mut marks);
    device.fill(marked, 0.0);
    device.upload(&z, &mut handles[2]);
    let [hx, hy, hz] = &mut handles[..] else { unreachable!() };
    let [hx, hy, hz] = [(hx, &x), (hy, &y), (hz, &z)].map(|(h, v)| device.upload(v, h));
    for (k, (own, of)) in [(&y, &*hy), (&x, &*hx), (&y, &*hy)].into_iter().enumerate() {
        Host.add_output(own, k, c, &mut bits, &mut sums);
        device.add_output(of, k, c, marked, hz);
    }
    let words = |numbers: &[f32]| numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(words(&device.download(marked)), words(&bits));
    Host.add_open(&x, wt, &bits, c, &mut sums);
    device.add_open(hx, wt, marked, c, hz);
    close("sums of open outputs", &sums, &device.download(hz));
    let (mut a, mut b) = ([[0.0; 3]; 3], [[0.0; 3]; 3]);
    Host.open_shares(&bits, &mut a[0]);
    device.open_shares(marked, &mut b[0]);
    let [shares, dots, norms] = &mut a;
    Host.transpose_open(&sums, &bits, &y, dots, norms);
    // The host adds fractions.
    close_by(1e-4, "shares", shares, &b[0]);
    let [_, own_dots, own_norms] = &mut b;
    device.transpose_open(hz, marked, hy, own_dots, own_norms);
    close("products of open outputs", dots, own_dots);
    close("norms of open outputs", norms, own_norms);
    let (mut a, mut b) = ([0.0; 2], [0.0; 2]);
    Host.open_norms(&bits, &y, wt, c, 7.0, &mut a);
    device.open_norms(marked, hy, wt, c, 7.0, &mut b);
    close("norms", &a, &b);
    let square = Host.open_square(&bits, &y, wt, c);
    near("square", square, device.open_square(marked, hy, wt, c), square);
    let (own, r) = (
        Residual::Open { r: &sums[..], open: &bits[..] },
        Residual::Open { r: &*hz, open: &*marked },
    );
    let (mut a, mut b) = ([0.5; 3], [0.5; 3]);
    Host.transpose(own, &y, &mut a);
    device.transpose(r, hy, &mut b);
    close("transpose of open outputs", &a, &b);
    Host.project(own, wt, c, &mut projected);
    device.project(r, wt, c, hx);
    close("projection of open outputs", &projected, &device.download(hx));
    // Classes, of one output and of several.
    for c in [1, 3] {
        let classes: Vec<u16> = (0..n).map(|k| (k % if c == 1 { 2 } else { c }) as u16).collect();
        let (mut handle, mut memory) = (vec![0.0; n], vec![0.0; n * c]);
        let labels = device.upload_classes(&classes, &mut handle);
        let mut own = normal(n * c, 8);
        let outputs = device.upload(&own, &mut memory);
        device.check_classes(labels, c).unwrap();
        assert!(c == 1 || device.check_classes(labels, c - 1).is_err());
        let right = Host.count_right(&classes, 0..n, c, &own);
        assert_eq!(device.count_right(labels, 0..n, c, outputs), right);
        let loss = Host.cross_entropy(&classes, 0..n, c, &mut own).unwrap();
        near("loss", loss, device.cross_entropy(labels, 0..n, c, outputs).unwrap(), loss);
        close("residual of classes", &own, &device.download(outputs));
    }
    assert_eq!(device.failure(), None);
}

/// All bits of what operations on vectors and tables give, one after the other.
fn bits_of_operations(gpu: &Arc<Gpu>) -> Vec<u32> {
    let (n, c) = (9001, 3);
    let mut operator = GpuOperator::new(gpu, 1, 1, Values::F32(&[1.0])).unwrap();
    let device = operator.machine();
    let (mut handles, mut memory) = (vec![vec![0.0; n]; 4], vec![0.0; n * c]);
    let [x, y, z, labels] = &mut handles[..] else { unreachable!() };
    let [x, y, z] = [(x, 1), (y, 2), (z, 3)].map(|(h, seed)| device.upload(&normal(n, seed), h));
    let classes: Vec<u16> = (0..n).map(|k| (k % c) as u16).collect();
    let labels = device.upload_classes(&classes, labels);
    let table = device.upload(&normal(n * c, 4), &mut memory);
    let weights = [1.5, -0.5];
    let wt = Weights::new(c, 1, &[0, 2], &weights).unwrap().block(0);
    let halves = Halves { sign: -1.0, share: 0.2, length: 0.4 };
    let mut all = vec![device.dot(x, y), device.largest(x), device.power(x, 5, 0.5, n - 9)];
    all.push(device.count_active(x, 1.0) as f32);
    for along in
        [device.fit(x, 0, 0.5, y), device.halves(x, y, z, halves), device.pair(z, x, y, 0.3)]
    {
        all.extend([along.product, along.norm2]);
    }
    all.push(device.residual(y, 3, 2.0, &mut z[..n - 4]).unwrap());
    device.add_outer(y, wt, c, table);
    let mut sums = [[0.0; 3]; 5];
    let [own, at, dots, norms, open_sums] = &mut sums;
    let r = Residual::Each(&*table);
    device.transpose(r, y, own);
    device.transpose_at(r, y, wt, c, &mut at[..2]);
    device.project(r, wt, c, z);
    all.extend(device.download(z));
    let mut marks = vec![0.0; n];
    let open = device.rows_in(&mut marks);
    device.fill(open, 0.0);
    for (k, of) in [&*y, &*x, &*y].into_iter().enumerate() {
        device.add_output(of, k, c, open, z);
    }
    device.transpose_open(z, open, y, dots, norms);
    all.push(device.open_square(open, y, wt, c));
    device.add_open(x, wt, open, c, z);
    let r = Residual::Open { r: &*z, open };
    device.transpose(r, y, open_sums);
    all.extend(device.download(z));
    all.push(device.cross_entropy(labels, 0..n, c, table).unwrap());
    all.extend(device.download(table));
    all.extend(sums.concat());
    assert_eq!(device.failure(), None);
    all.into_iter().map(f32::to_bits).collect()
}

#[test]
fn windows_of_rows_give_the_same_bits() {
    assert_eq!(bits_of_operations(&limited(24 << 10)), bits_of_operations(gpu()));
}

#[test]
fn vectors_with_infinities_have_no_largest_magnitude() {
    let mut operator = GpuOperator::new(gpu(), 1, 1, Values::F32(&[1.0])).unwrap();
    let (device, mut memory) = (operator.machine(), vec![0.0; 5]);
    for bad in [f32::NAN, f32::INFINITY] {
        let handle = device.upload(&[1.0, 2.0, bad, 0.0, 9.0], &mut memory);
        assert!(device.largest(handle).is_nan());
    }
}
