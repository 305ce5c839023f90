//! The rows of the study, by distribution.

use std::path::Path;

use anyhow::{Context, Result, bail};
use rayon::prelude::*;
use tamis::rng::{Rng, stream};
use tamis_host::data::{self, Matrix, Values};

use super::INPUTS;

/// Streams of the rows, away from those of the weights.
const ROWS: u64 = stream::USER + (1 << 32);
/// Streams of the noise.
const NOISE: u64 = stream::USER + (2 << 32);
/// Correlation of neighbouring inputs.
const NEIGHBOURS: f32 = 0.7;
/// Degrees of freedom of Student's distribution.
const FREEDOM: usize = 5;

/// `rows` rows of [`INPUTS`] inputs of a kind out of [`super::jobs::KINDS`]; pixels come from elsewhere.
///
/// # Errors
/// There is no such kind.
pub(super) fn draw(kind: &str, rows: usize, seed: u64) -> Result<Matrix> {
    let fill: fn(&mut Rng, &mut [f32]) = match kind {
        "gaussian" => |rng, row| rng.fill_normal(row),
        "correlated" => |rng, row| {
            rng.fill_normal(row);
            let fresh = (1.0 - NEIGHBOURS * NEIGHBOURS).sqrt();
            for j in 1..row.len() {
                row[j] = NEIGHBOURS * row[j - 1] + fresh * row[j];
            }
        },
        "student-t" => |rng, row| row.fill_with(|| student(rng)),
        "ternary" => |rng, row| row.fill_with(|| rng.below(3) as f32 - 1.0),
        "uniform" => |rng, row| row.fill_with(|| rng.uniform()),
        kind => bail!("there are no inputs called {kind}"),
    };
    let mut values = vec![0.0; rows * INPUTS];
    values
        .par_chunks_mut(INPUTS)
        .enumerate()
        .for_each(|(k, row)| fill(&mut Rng::new(seed, ROWS + k as u64), row));
    Ok(Matrix { rows, cols: INPUTS, values: Values::F32(values) })
}

fn student(rng: &mut Rng) -> f32 {
    let normal = rng.normal();
    let chi: f32 = (0..FREEDOM).map(|_| rng.normal().powi(2)).sum();
    normal / (chi / FREEDOM as f32).sqrt()
}

/// So many standard normal numbers.
#[must_use]
pub(super) fn noise(rows: usize, seed: u64) -> Vec<f32> {
    let mut out = vec![0.0; rows];
    Rng::new(seed, NOISE).fill_normal(&mut out);
    out
}

/// The first `rows` training images of the MNIST files in `folder`: their [`INPUTS`] most variable pixels, 0 to 1.
///
/// # Errors
/// The file is not there, is damaged or holds fewer images.
pub(super) fn pixels(folder: &Path, rows: usize) -> Result<Matrix> {
    let name = ["train-images-idx3-ubyte.gz", "train-images-idx3-ubyte"].map(|name| folder.join(name));
    let path = name.iter().find(|path| path.exists()).with_context(|| {
        format!("no train-images-idx3-ubyte(.gz) in {}: pass the folder with --mnist", folder.display())
    })?;
    let images = data::load(path)?;
    if images.rows < rows || images.cols < INPUTS {
        bail!(
            "{} holds {} × {} values, and {rows} × {INPUTS} are needed",
            path.display(),
            images.rows,
            images.cols
        );
    }
    let cols = images.cols;
    let values = images.values.into_f32();
    let chosen = most_variable(&values[..rows * cols], cols);
    let pick = |row: &[f32]| chosen.iter().map(|&j| row[j] / 255.0).collect::<Vec<_>>();
    let values = values.chunks_exact(cols).take(rows).flat_map(pick).collect();
    Ok(Matrix { rows, cols: INPUTS, values: Values::F32(values) })
}

/// The columns of greatest variance, rising.
fn most_variable(values: &[f32], cols: usize) -> Vec<usize> {
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
    columns.truncate(INPUTS);
    columns.sort_unstable();
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::jobs::KINDS;

    /// Mean, mean square and correlation of neighbours.
    fn moments(kind: &str) -> [f64; 3] {
        let values = draw(kind, 4000, 1).unwrap().values.into_f32();
        let mean = |f: &dyn Fn(&[f32]) -> f64| {
            values.chunks_exact(INPUTS).map(f).sum::<f64>() / (values.len() / INPUTS) as f64
        };
        let first = |x: &[f32]| f64::from(x[50]);
        let (average, square) = (mean(&first), mean(&|x| first(x).powi(2)));
        let product = mean(&|x| f64::from(x[50]) * f64::from(x[51]));
        [average, square, (product - average * average) / (square - average * average)]
    }

    #[test]
    fn inputs_have_the_moments_of_their_distribution() {
        let expected = [
            [0.0, 1.0, 0.0],
            [0.0, 1.0, 0.7],
            [0.0, 5.0 / 3.0, 0.0],
            [0.0, 2.0 / 3.0, 0.0],
            [0.5, 1.0 / 3.0, 0.0],
        ];
        for (kind, expected) in KINDS.iter().zip(expected) {
            let found = moments(kind);
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.15), "{kind} {found:?}");
        }
        assert!(draw("pixels", 1, 0).is_err());
    }

    #[test]
    fn variable_columns_are_chosen() {
        let cols = INPUTS + 2;
        let row =
            |k: usize| (0..cols).map(move |j| if j == 3 || j == 7 { 5.0 } else { (k * (j + 1)) as f32 });
        let values: Vec<f32> = (0..4).flat_map(row).collect();
        let chosen = most_variable(&values, cols);
        assert_eq!(chosen.len(), INPUTS);
        assert!(!chosen.contains(&3) && !chosen.contains(&7) && chosen.is_sorted());
    }
}
