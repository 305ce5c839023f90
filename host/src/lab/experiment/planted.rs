//! Planted rows of other distributions than the normal one, and noise on their labels.

use std::path::Path;

use rayon::prelude::*;
use tamis::base::rng::{Rng, stream};

use super::spec::Distribution;
use crate::Result;
use crate::base::statistics::mean_square;
use crate::data::{self, Matrix, Values};

/// Streams of the rows, away from those of the weights.
const ROWS: u64 = stream::USER + (1 << 32);
const NOISE: u64 = stream::USER + (2 << 32);
const NEIGHBOURS: f32 = 0.7;
const FREEDOM: usize = 5;

/// n×d rows of a distribution; pixels are those of the images in a file.
pub(super) fn rows(
    of: Distribution,
    n: usize,
    d: usize,
    seed: u64,
    images: &Path,
) -> Result<Matrix> {
    let fill: fn(&mut Rng, &mut [f32]) = match of {
        Distribution::Gaussian => |rng, row| rng.fill_normal(row),
        Distribution::Correlated => |rng, row| {
            rng.fill_normal(row);
            let fresh = (1.0 - NEIGHBOURS * NEIGHBOURS).sqrt();
            for j in 1..row.len() {
                row[j] = NEIGHBOURS * row[j - 1] + fresh * row[j];
            }
        },
        Distribution::StudentT => |rng, row| row.fill_with(|| student(rng)),
        Distribution::Ternary => |rng, row| row.fill_with(|| rng.below(3) as f32 - 1.0),
        Distribution::Uniform => |rng, row| row.fill_with(|| rng.uniform()),
        Distribution::Pixels => return pixels(images, n, d),
    };
    let mut values = vec![0.0; n * d];
    let chunks = values.par_chunks_mut(d.max(1)).enumerate();
    chunks.for_each(|(k, row)| fill(&mut Rng::new(seed, ROWS + k as u64), row));
    Matrix::new(n, d, Values::F32(values))
}

fn student(rng: &mut Rng) -> f32 {
    let normal = rng.normal();
    let chi: f32 = (0..FREEDOM).map(|_| rng.normal().powi(2)).sum();
    normal / (chi / FREEDOM as f32).sqrt()
}

/// Adds normal noise of `sigma` times the labels' root mean square, and returns it.
pub(super) fn add_noise(labels: &mut [f32], sigma: f64, seed: u64) -> Vec<f32> {
    let scale = sigma * mean_square(labels).sqrt();
    let mut noise = vec![0.0; labels.len()];
    Rng::new(seed, NOISE).fill_normal(&mut noise);
    noise.iter_mut().for_each(|e| *e = (f64::from(*e) * scale) as f32);
    labels.iter_mut().zip(&noise).for_each(|(y, e)| *y += e);
    noise
}

/// The d most variable pixels of the first n images of a file, 0 to 1.
fn pixels(path: &Path, n: usize, d: usize) -> Result<Matrix> {
    let images = data::load(path)?;
    if images.rows < n || images.cols < d {
        return Err(crate::Error::new("there are too few images or pixels")
            .at(path)
            .expected(format_args!("{n} × {d} or more"))
            .got(format_args!("{} × {}", images.rows, images.cols))
            .help("choose fewer data.samples or data.inputs in the spec"));
    }
    let cols = images.cols;
    let values = images.values.into_f32();
    let chosen = most_variable(&values[..n * cols], cols, d);
    let pick = |row: &[f32]| chosen.iter().map(|&j| row[j] / 255.0).collect::<Vec<_>>();
    let values = values.chunks_exact(cols).take(n).flat_map(pick).collect();
    Matrix::new(n, d, Values::F32(values))
}

/// The d columns of greatest variance, rising.
fn most_variable(values: &[f32], cols: usize, d: usize) -> Vec<usize> {
    let rows = (values.len() / cols) as f64;
    let mut sums = vec![(0.0_f64, 0.0_f64); cols];
    for row in values.chunks_exact(cols) {
        for (sum, &x) in sums.iter_mut().zip(row) {
            *sum = (sum.0 + f64::from(x), sum.1 + f64::from(x).powi(2));
        }
    }
    let variance = |j: usize| sums[j].1 / rows - (sums[j].0 / rows).powi(2);
    let mut columns: Vec<usize> = (0..cols).collect();
    columns.sort_by(|&a, &b| variance(b).total_cmp(&variance(a)));
    columns.truncate(d);
    columns.sort_unstable();
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    const D: usize = 20;

    /// Mean, mean square and correlation of neighbours.
    fn moments(of: Distribution) -> [f64; 3] {
        let values = rows(of, 4000, D, 1, Path::new("")).unwrap().values.into_f32();
        let mean = |f: &dyn Fn(&[f32]) -> f64| {
            values.chunks_exact(D).map(f).sum::<f64>() / (values.len() / D) as f64
        };
        let first = |x: &[f32]| f64::from(x[9]);
        let (average, square) = (mean(&first), mean(&|x| first(x).powi(2)));
        let product = mean(&|x| f64::from(x[9]) * f64::from(x[10]));
        [average, square, (product - average * average) / (square - average * average)]
    }

    #[test]
    fn inputs_have_the_moments_of_their_distribution() {
        for (of, expected) in [
            (Distribution::Gaussian, [0.0, 1.0, 0.0]),
            (Distribution::Correlated, [0.0, 1.0, 0.7]),
            (Distribution::StudentT, [0.0, 5.0 / 3.0, 0.0]),
            (Distribution::Ternary, [0.0, 2.0 / 3.0, 0.0]),
            (Distribution::Uniform, [0.5, 1.0 / 3.0, 0.0]),
        ] {
            let found = moments(of);
            assert!(
                found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.15),
                "{of:?} {found:?}"
            );
        }
        assert!(rows(Distribution::Pixels, 1, 1, 0, Path::new("")).is_err());
    }

    #[test]
    fn noise_is_as_strong_as_asked() {
        let clean: Vec<f32> = (0..4000).map(|k| (k % 7) as f32).collect();
        let mut labels = clean.clone();
        let noise = add_noise(&mut labels, 0.1, 3);
        assert!((mean_square(&noise) / (0.01 * mean_square(&clean)) - 1.0).abs() < 0.1);
        assert!(labels.iter().zip(&clean).zip(&noise).all(|((y, x), e)| *y == x + e));
    }

    #[test]
    fn variable_columns_are_chosen() {
        let cols = 12;
        let row = |k: usize| {
            (0..cols).map(move |j| if j == 3 || j == 7 { 5.0 } else { (k * (j + 1)) as f32 })
        };
        let values: Vec<f32> = (0..4).flat_map(row).collect();
        let chosen = most_variable(&values, cols, 10);
        assert!(
            chosen.len() == 10
                && !chosen.contains(&3)
                && !chosen.contains(&7)
                && chosen.is_sorted()
        );
    }
}
