//! Operations on row vectors and tables, with those of the host as the oracle.

use crate::conformance::{close, close_by};
use crate::{gpu, limited, normal};
use std::sync::Arc;
use tamis::network::weights::Weights;
use tamis::operator::machine::{Halves, Hinge, Host, Machine};
use tamis::operator::sensing::Sensing;
use tamis::operator::tables::{Residual, Tables};
use tamis_gpu::{Gpu, GpuOperator, Values};

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
