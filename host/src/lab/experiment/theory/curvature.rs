//! Lemma 1: how far `A_S^T A_S` is from the identity, over supports S of s unit columns.

use std::convert::Infallible;

use faer::{Mat, Side};
use tamis::base::rng::{Rng, stream};
use tamis::network::gates::Gates;
use tamis::network::weights::Weights;
use tamis::operator::sensing::HostSensing;

use super::generators::distinct;
use crate::base::room_for;
use crate::{Error, Result};

/// Stream of supports, one per draw.
const SUPPORT: u64 = stream::USER + (0x7e02 << 32);

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Extremes {
    pub(crate) alpha: f64,
    pub(crate) beta: f64,
}

/// Which supports of s columns eigenvalues are taken over.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Supports<'p> {
    /// Random ones.
    Random,
    /// The columns of one input in random neurons, then those of the next one: gates make them
    /// nearly parallel.
    OneInput,
    /// The same from two pairs h and -h on. The gates of a pair add up to all rows, so that four
    /// columns are dependent; s is at least 4, and there are two pairs at least.
    Opposite(&'p [[usize; 2]]),
}

impl Supports<'_> {
    /// Flat indices of a support, rising; s is at most d·m.
    fn draw(self, d: usize, m: usize, s: usize, mut rng: Rng) -> Vec<u32> {
        let mut index = Vec::with_capacity(s);
        if matches!(self, Supports::Random) {
            index.extend(distinct(&mut rng, d * m, s).into_iter().map(|column| column as u32));
        } else {
            for input in distinct(&mut rng, d, d.min(s.div_ceil(m))) {
                let mut neurons = distinct(&mut rng, m, m.min(s - index.len()));
                if let (Supports::Opposite(pairs), true) = (self, index.is_empty()) {
                    let two = distinct(&mut rng, pairs.len(), 2);
                    let four: Vec<usize> = two.into_iter().flat_map(|at| pairs[at]).collect();
                    neurons.retain(|i| !four.contains(i));
                    neurons.truncate(m.min(s) - 4);
                    neurons.extend(four);
                }
                index.extend(neurons.into_iter().map(|i| (i * d + input) as u32));
            }
        }
        index.sort_unstable();
        index
    }
}

/// Extreme eigenvalues over `draws` supports of s columns, of which those that vanish do not count.
pub(crate) fn extremes<S: HostSensing<Source = Infallible>>(
    sensing: &mut S,
    gates: Gates<'_>,
    supports: Supports<'_>,
    s: usize,
    draws: u32,
    seed: u64,
) -> Result<Extremes> {
    let (d, m) = (sensing.inputs(), sensing.blocks());
    // The products, the matrix of unit columns, and what the solver takes.
    let bytes = (s as u64).saturating_mul(s as u64).saturating_mul(4 * 8);
    room_for("the products of a support", bytes, "choose fewer nonzeros or less inflation")?;
    let mut all = Extremes { alpha: f64::INFINITY, beta: 0.0 };
    for draw in 0..draws {
        let index = supports.draw(d, m, s, Rng::new(seed, SUPPORT + u64::from(draw)));
        let gram = gram(sensing, gates, &index)?;
        let values = gram.self_adjoint_eigenvalues(Side::Lower).map_err(|_| {
            Error::new("the eigenvalues of a support were not found")
                .expected("finite products of columns")
                .help("choose fewer columns, or another seed")
        })?;
        all.alpha = all.alpha.min(values.first().map_or(0.0, |least| least.max(0.0)));
        all.beta = all.beta.max(values.last().copied().unwrap_or(0.0));
    }
    Ok(all)
}

/// `A_S^T A_S` of unit columns, column by column.
fn gram<S: HostSensing<Source = Infallible>>(
    sensing: &mut S,
    gates: Gates<'_>,
    support: &[u32],
) -> Result<Mat<f64>> {
    let (s, d, m) = (support.len(), sensing.inputs(), sensing.blocks());
    let gates = sensing.hold(gates, support)?;
    let mut scratch = vec![0.0; sensing.scratch(sensing.local_rows())];
    let (mut unit, mut product) = (vec![0.0; s], vec![0.0; s]);
    let mut products = Vec::with_capacity(s * s);
    for at in 0..s {
        unit[at] = 1.0;
        let column = Weights::new(d, m, support, &unit)?;
        sensing.normal_at(gates, column, &mut product, &mut scratch)?;
        unit[at] = 0.0;
        products.extend(product.iter().map(|&product| f64::from(product)));
    }
    let seen: Vec<usize> = (0..s).filter(|at| products[at * s + at] > 0.0).collect();
    let length = |at: usize| products[at * s + at].sqrt();
    Ok(Mat::from_fn(seen.len(), seen.len(), |a, b| {
        let (a, b) = (seen[a], seen[b]);
        f64::midpoint(products[a * s + b], products[b * s + a]) / (length(a) * length(b))
    }))
}

/// Lemma 1 with a constant of 1: `1 ∓ (sqrt(1 - gamma) + s / n^(1/4))`, in which the second term is
/// 0 for many rows. Below 0 the bound of alpha says nothing.
pub(crate) fn bound(s: usize, rows: f64, gamma: f64) -> Extremes {
    let deviation = (1.0 - gamma).sqrt() + s as f64 / rows.powf(0.25);
    Extremes { alpha: 1.0 - deviation, beta: 1.0 + deviation }
}

/// Where the eigenvalues of s independent unit columns of n rows end (Marchenko and Pastur):
/// `(1 ∓ sqrt(s/n))²`, from s = n on 0.
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
        for supports in [Supports::Random, Supports::OneInput] {
            let found = extremes(&mut operator, own.gates().unwrap(), supports, 6, 2, 0).unwrap();
            assert!((found.alpha - exact[0]).abs() < 1e-5, "{found:?} {exact:?}");
            assert!((found.beta - exact[5]).abs() < 1e-5, "{found:?} {exact:?}");
        }
    }

    #[test]
    fn aligned_supports_share_an_input_and_are_distinct() {
        for s in [1, 4, 5, 7, 20] {
            let index = Supports::OneInput.draw(4, 5, s, Rng::new(3, 1));
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
        let pairs = own.opposites();
        let supports = Supports::Opposite(&pairs);
        let found = extremes(&mut operator, own.gates().unwrap(), supports, 4, 3, 0).unwrap();
        // Cosines 0 within a pair and about 1/2 across: eigenvalues 0, 1, 1 and 2.
        assert!(found.alpha < 1e-5 && (found.beta - 2.0).abs() < 0.05, "{found:?}");
        // gamma is 1/2: the bound comes to .29, which this refutes.
        let bound = bound(4, f64::INFINITY, 0.5);
        assert!((bound.alpha - (1.0 - 0.5_f64.sqrt())).abs() < 1e-12 && bound.beta < found.beta);
        assert!(bound.alpha > 0.29 && bound.alpha > found.alpha);
    }

    #[test]
    fn supports_with_opposites_hold_two_pairs_of_one_input() {
        let own = Generators::patterns(4, 2);
        let (d, m) = (4, own.len());
        for (s, draw) in [(4, 0), (9, 1), (30, 2)] {
            let index = Supports::Opposite(&own.opposites()).draw(d, m, s, Rng::new(3, draw));
            assert!(index.len() == s && index.windows(2).all(|pair| pair[0] < pair[1]));
            let has = |i: usize, j: u32| index.contains(&((i * d) as u32 + j));
            let pairs = |j: u32| {
                own.opposites().iter().filter(|pair| pair.iter().all(|&i| has(i, j))).count()
            };
            assert!((0..4).any(|j| pairs(j) >= 2), "{index:?}");
        }
    }
}
