//! Lemma 1: how far `A_S^T A_S` is from the identity, over supports S of s unit columns.

use std::convert::Infallible;

use tamis::base::rng::{Rng, stream};
use tamis::learn::spectrum::{self, PowerIteration};
use tamis::network::{gates::Gates, net::EntriesMut};
use tamis::operator::sensing::{HostSensing, Work};

use super::generators::distinct;
use crate::Result;

/// Stream of the inputs and neurons of aligned supports, one per draw.
const ALIGNED: u64 = stream::USER + (0x7e02 << 32);

/// Power iterations for the largest eigenvalue, and as many for the smallest.
const ITERATIONS: u32 = 120;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Extremes {
    pub(crate) alpha: f64,
    pub(crate) beta: f64,
}

/// Extreme eigenvalues over `draws` random supports of s columns; or, with `is_aligned`, of those of
/// one input in random neurons, then of the next one, which gates make nearly parallel.
pub(crate) fn extremes<S: HostSensing<Source = Infallible>>(
    sensing: &mut S,
    gates: Gates<'_>,
    is_aligned: bool,
    s: usize,
    draws: u32,
    seed: u64,
) -> Result<Extremes> {
    let (d, m) = (sensing.inputs(), sensing.blocks());
    let mut panel = vec![0.0; (3 * s).max(d * sensing.panel())];
    let mut scratch = vec![0.0; sensing.scratch(sensing.local_rows())];
    let mut work: Work<'_> =
        Work { residual: &mut [], panel: &mut panel, scratch: &mut scratch, strips: None };
    let (mut index, mut value) = (vec![0; s], vec![0.0; s]);
    let at = |draw| PowerIteration { seed, draw, iterations: ITERATIONS };
    let mut found = spectrum::Extremes { alpha: f32::INFINITY, beta: 0.0 };
    if !is_aligned {
        let support = EntriesMut { index: &mut index, value: &mut value };
        found = spectrum::extremes(sensing, gates, draws, at(0), support, &mut work)?;
    } else {
        for draw in 0..draws {
            let index = aligned(d, m, s, seed, draw);
            let own =
                spectrum::extremes_at(sensing, gates, &index, at(draw), &mut value, &mut work)?;
            found.alpha = found.alpha.min(own.alpha);
            found.beta = found.beta.max(own.beta);
        }
    }
    Ok(Extremes { alpha: found.alpha.into(), beta: found.beta.into() })
}

/// One aligned support, rising; s is at most d·m.
fn aligned(d: usize, m: usize, s: usize, seed: u64, draw: u32) -> Vec<u32> {
    let mut rng = Rng::new(seed, ALIGNED + u64::from(draw));
    let mut index = Vec::with_capacity(s);
    for input in distinct(&mut rng, d, d.min(s.div_ceil(m))) {
        let neurons = distinct(&mut rng, m, m.min(s - index.len()));
        index.extend(neurons.into_iter().map(|i| (i * d + input) as u32));
    }
    index.sort_unstable();
    index
}

/// Where the eigenvalues of s independent unit columns of n rows end (Marchenko and Pastur):
/// `(1 ∓ sqrt(s/n))²`, from s = n on 0; the form of the deviations in Lemma 1.
pub(crate) fn independent(s: usize, rows: f64) -> Extremes {
    let deviation = (s as f64 / rows).sqrt();
    Extremes { alpha: (1.0 - deviation).max(0.0).powi(2), beta: (1.0 + deviation).powi(2) }
}

#[cfg(test)]
mod tests {
    use super::super::generators::Generators;
    use super::*;
    use crate::data::{Matrix, Values};
    use crate::operator::{Blocked, Layout};

    /// Eigenvalues of a symmetric matrix by rotations (Jacobi), rising.
    fn eigenvalues(mut a: Vec<Vec<f64>>) -> Vec<f64> {
        let n = a.len();
        for _ in 0..60 {
            for (p, q) in (0..n).flat_map(|p| (p + 1..n).map(move |q| (p, q))) {
                if a[p][q].abs() < 1e-14 {
                    continue;
                }
                let angle = 0.5 * (2.0 * a[p][q]).atan2(a[q][q] - a[p][p]);
                let (sin, cos) = angle.sin_cos();
                for row in &mut a {
                    (row[p], row[q]) = (cos * row[p] - sin * row[q], sin * row[p] + cos * row[q]);
                }
                let (before, rest) = a.split_at_mut(q);
                for (x, y) in before[p].iter_mut().zip(&mut rest[0]) {
                    (*x, *y) = (cos * *x - sin * *y, sin * *x + cos * *y);
                }
            }
        }
        let mut values: Vec<f64> = (0..n).map(|i| a[i][i]).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    #[test]
    fn extreme_eigenvalues_match_dense_solve() {
        let (n, d) = (40, 2);
        let own = Generators::gaussian(d, 2, 3, 4);
        let mut x = vec![0.0; n * d];
        Rng::new(8, 0).fill_normal(&mut x);
        // The six unit columns, by hand.
        let open = |i: usize, k: usize| {
            let (index, h) = own.get(i);
            index.iter().zip(h).map(|(&j, h)| h * x[k * d + j as usize - i * d]).sum::<f32>() > 0.0
        };
        let column = |c: usize| {
            let entry = |k: usize| if open(c / d, k) { f64::from(x[k * d + c % d]) } else { 0.0 };
            let column: Vec<f64> = (0..n).map(entry).collect();
            let norm = column.iter().map(|v| v * v).sum::<f64>().sqrt();
            column.into_iter().map(|v| v / norm).collect::<Vec<f64>>()
        };
        let columns: Vec<Vec<f64>> = (0..6).map(column).collect();
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let gram =
            columns.iter().map(|a| columns.iter().map(|b| product(a, b)).collect()).collect();
        let exact = eigenvalues(gram);
        let data = Matrix::new(n, d, Values::F32(x.clone())).unwrap();
        let mut operator = Blocked::new(data, 3, 6, Layout::new(3, d)).unwrap();
        for is_aligned in [false, true] {
            let found = extremes(&mut operator, own.gates().unwrap(), is_aligned, 6, 2, 0).unwrap();
            assert!(
                (found.alpha - exact[0]).abs() < 2e-3 && found.alpha > exact[0] - 1e-5,
                "{found:?} {exact:?}"
            );
            assert!((found.beta - exact[5]).abs() < 1e-3, "{found:?} {exact:?}");
        }
    }

    #[test]
    fn aligned_supports_share_an_input_and_are_distinct() {
        for s in [1, 4, 5, 7, 20] {
            let index = aligned(4, 5, s, 3, 1);
            assert!(
                index.len() == s && index.windows(2).all(|pair| pair[0] < pair[1]),
                "{index:?}"
            );
            let mut inputs: Vec<u32> = index.iter().map(|j| j % 4).collect();
            inputs.sort_unstable();
            inputs.dedup();
            assert_eq!(inputs.len(), s.div_ceil(5));
        }
    }

    /// The gates of h and -h are open on all rows together, so with two such pairs four columns of
    /// one input are dependent: no support that holds them has an alpha above 0.
    #[test]
    fn opposite_patterns_make_four_columns_dependent() {
        let own = Generators::patterns(2, 1);
        let mut x = vec![0.0; 2 * 500];
        Rng::new(2, 0).fill_normal(&mut x);
        let data = Matrix::new(500, 2, Values::F32(x)).unwrap();
        let mut operator = Blocked::new(data, 4, 4, Layout::new(4, 2)).unwrap();
        let found = extremes(&mut operator, own.gates().unwrap(), true, 4, 3, 0).unwrap();
        // Cosines 0 within a pair and about 1/2 across: eigenvalues 0, 1, 1 and 2.
        assert!(found.alpha < 1e-4 && (found.beta - 2.0).abs() < 0.05, "{found:?}");
    }
}
