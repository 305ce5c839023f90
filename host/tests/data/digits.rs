//! The rendered digits: reproducible to the byte, balanced, and neither too easy nor too hard to
//! tell apart.

use tamis_host::data::{Values, digits};

const SIDES: [usize; 4] = [8, 28, 13, 64];

fn pixels(samples: usize, side: usize, seed: u64) -> (Vec<u8>, Vec<u8>) {
    let (images, labels) = digits::generate(samples, side, seed).unwrap();
    assert_eq!((images.rows, images.cols), (samples, side * side));
    let Values::U8(bytes) = images.values else { panic!("digits are bytes") };
    assert_eq!(bytes.len(), samples * side * side);
    (bytes, labels)
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// The shipped data may not change: every published figure on it depends on these bytes.
#[test]
fn the_bytes_are_pinned() {
    let sums = SIDES.map(|side| checksum(&pixels(100, side, 0).0));
    assert_eq!(sums, [4_191_605_112, 4_251_958_256, 4_051_094_660, 287_497_571]);
    assert_eq!(pixels(20, 8, 0).1, [2, 9, 1, 7, 4, 8, 6, 3, 5, 0, 2, 3, 0, 8, 9, 5, 6, 4, 7, 1]);
}

#[test]
fn a_longer_set_starts_with_the_shorter_one() {
    for side in SIDES {
        let (long, long_labels) = pixels(57, side, 3);
        for samples in [0, 1, 10, 33] {
            let (short, labels) = pixels(samples, side, 3);
            assert_eq!(
                (&short[..], &labels[..]),
                (&long[..samples * side * side], &long_labels[..samples])
            );
        }
    }
}

#[test]
fn threads_change_nothing_and_seeds_do() {
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| pixels(300, 28, 1))
    };
    assert_eq!(on(1), on(3));
    assert_ne!(pixels(10, 28, 1).0, pixels(10, 28, 2).0);
    assert_ne!(pixels(100, 8, 1).1, pixels(100, 8, 2).1);
}

#[test]
fn every_ten_images_hold_each_digit_once() {
    let (_, labels) = pixels(1000, 8, 5);
    for ten in labels.chunks(10) {
        let mut sorted = ten.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..10).collect::<Vec<u8>>());
    }
    let first: Vec<usize> =
        (0..10).map(|d| labels.chunks(10).filter(|ten| ten[0] == d).count()).collect();
    assert!(first.iter().all(|&count| count >= 2), "digits that come first: {first:?}");
}

#[test]
fn sizes_that_cannot_be_drawn_are_refused() {
    for side in [0, 7, 65, usize::MAX] {
        let error = digits::generate(1, side, 0).unwrap_err().to_string();
        assert!(error.contains("8 to 64") && error.contains(&side.to_string()), "{error}");
    }
    for samples in [usize::MAX, usize::MAX / 64, 1 << 56] {
        let error = digits::generate(samples, 8, 0).unwrap_err().to_string();
        assert!(error.contains("do not fit"), "{error}");
    }
}

#[test]
fn ink_lies_inside_on_a_light_ground() {
    for side in SIDES {
        let (bytes, _) = pixels(200, side, 9);
        for image in bytes.chunks(side * side) {
            let dark = image.iter().filter(|&&p| p > 100).count() as f32 / image.len() as f32;
            assert!((0.03..0.45).contains(&dark), "side {side}: {dark} of the image is ink");
            let corners = [0, side - 1, side * (side - 1), side * side - 1].map(|at| image[at]);
            assert!(
                corners.iter().filter(|&&p| p > 100).count() <= 1,
                "side {side}: corners {corners:?}"
            );
        }
    }
}

/// A linear rule on ten classes: well above the 10 % of chance, and far enough below 99 % to leave
/// work to do.
#[test]
fn nearest_mean_classifies_most_digits_but_not_all() {
    for side in [8, 28] {
        let (bytes, labels) = pixels(3000, side, 0);
        let images: Vec<&[u8]> = bytes.chunks(side * side).collect();
        let means = means(&images[..2000], &labels[..2000]);
        let right = images[2000..]
            .iter()
            .zip(&labels[2000..])
            .filter(|(x, l)| nearest(&means, x) == **l)
            .count();
        let share = right as f64 / 1000.0;
        assert!((0.7..0.95).contains(&share), "side {side}: {share}");
    }
}

/// The task of the smallest firmware: 200 images of 0 and 1 are enough for a linear rule.
#[test]
fn least_squares_separates_zeros_and_ones_from_200() {
    for (side, floor) in [(8, 0.98), (28, 0.97)] {
        let (bytes, labels) = pixels(11_000, side, 0);
        let pairs = bytes.chunks(side * side).zip(&labels).filter(|(_, label)| **label < 2);
        let (rows, targets): (Vec<Vec<f64>>, Vec<f64>) =
            pairs.map(|(image, &label)| (with_bias(image), f64::from(label))).unzip();
        let weights = ridge(&rows[..200], &targets[..200], 1.0);
        let test = rows[200..].iter().zip(&targets[200..]);
        let right = test.filter(|(x, y)| (dot(x, &weights) > 0.5) == (**y > 0.5)).count();
        let share = right as f64 / (rows.len() - 200) as f64;
        assert!(share >= floor, "side {side}: {share}");
    }
}

fn means(images: &[&[u8]], labels: &[u8]) -> Vec<Vec<f64>> {
    let mut means = vec![vec![0.0; images[0].len()]; 10];
    for (image, &label) in images.iter().zip(labels) {
        for (mean, &pixel) in means[usize::from(label)].iter_mut().zip(*image) {
            *mean += f64::from(pixel) * 10.0 / images.len() as f64;
        }
    }
    means
}

fn nearest(means: &[Vec<f64>], image: &[u8]) -> u8 {
    let gap = |mean: &[f64]| {
        mean.iter().zip(image).map(|(m, &p)| (m - f64::from(p)).powi(2)).sum::<f64>()
    };
    (0..10).min_by(|&a, &b| gap(&means[a]).total_cmp(&gap(&means[b]))).unwrap() as u8
}

fn with_bias(image: &[u8]) -> Vec<f64> {
    image.iter().map(|&p| f64::from(p) / 255.0).chain([1.0]).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Minimises `|X w − y|² + λ|w|²` by conjugate gradients on the normal equations.
fn ridge(rows: &[Vec<f64>], targets: &[f64], lambda: f64) -> Vec<f64> {
    let adjoint = |v: &[f64]| {
        let mut out = vec![0.0; rows[0].len()];
        rows.iter()
            .zip(v)
            .for_each(|(row, v)| out.iter_mut().zip(row).for_each(|(o, x)| *o += v * x));
        out
    };
    let normal = |p: &[f64]| {
        let mut out = adjoint(&rows.iter().map(|row| dot(row, p)).collect::<Vec<f64>>());
        out.iter_mut().zip(p).for_each(|(o, p)| *o += lambda * p);
        out
    };
    let mut residual = adjoint(targets);
    let (mut w, mut p) = (vec![0.0; residual.len()], residual.clone());
    for _ in 0..200 {
        let (before, ap) = (dot(&residual, &residual), normal(&p));
        if before < 1e-16 {
            break;
        }
        let step = before / dot(&p, &ap);
        w.iter_mut().zip(&p).for_each(|(w, p)| *w += step * p);
        residual.iter_mut().zip(&ap).for_each(|(r, ap)| *r -= step * ap);
        let ratio = dot(&residual, &residual) / before;
        p.iter_mut().zip(&residual).for_each(|(p, r)| *p = r + ratio * *p);
    }
    w
}
