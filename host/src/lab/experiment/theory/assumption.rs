//! Assumption 2: no gate is active on too few rows, and no two gates on nearly the same rows.

use rayon::prelude::*;
use tamis::network::gates::Gates;

use super::generators::Generators;
use crate::data::Matrix;

/// What rows and generators give (paper IHT, Assumption 2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Assumption {
    /// `min_i |{k: x_k·h_i > 0}| / n`, 0 to 1.
    pub(crate) eps: f64,
    /// `min_{i ≠ i'}` of the fraction of the rows on which the gates differ; 1 of one generator.
    pub(crate) gamma: f64,
}

/// The rows that each of `count` gates is active on, a bit each.
pub(super) fn active(data: Matrix, gates: Gates<'_>, count: usize) -> Vec<Vec<u64>> {
    let (words, values) = (data.rows.div_ceil(64), data.values.into_f32());
    let active = |i: usize| {
        let gate = gates.gate(i);
        let mut bits = vec![0_u64; words];
        for (k, row) in values.chunks_exact(data.cols.max(1)).enumerate() {
            if gate.weight(row, &[]) > 0.0 {
                bits[k / 64] |= 1 << (k % 64);
            }
        }
        bits
    };
    (0..count).into_par_iter().map(active).collect()
}

/// On how many rows two gates differ.
pub(super) fn differ(a: &[u64], b: &[u64]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

/// Measures n×d rows against m gates, in m·n bits of memory and m²·n/64 steps.
pub(crate) fn measure(data: Matrix, gates: Gates<'_>, count: usize) -> Assumption {
    let n = data.rows;
    let bits = active(data, gates, count);
    let words = n.div_ceil(64);
    let least = bits.iter().map(|bits| differ(bits, &vec![0; words])).min();
    let nearest = bits
        .par_iter()
        .enumerate()
        .filter_map(|(i, own)| bits[..i].iter().map(|other| differ(own, other)).min());
    let fraction = |count: u32| f64::from(count) / n.max(1) as f64;
    let gamma = nearest.min().map_or(1.0, fraction);
    Assumption { eps: least.map_or(0.0, fraction), gamma }
}

/// The limit of gamma for many standard normal rows: the smallest angle between two generators over
/// π, since two gates differ where a row falls between their hyperplanes. That of eps is 1/2.
pub(crate) fn limit(generators: &Generators) -> f64 {
    let nearest = |i: usize| (0..i).map(|other| generators.angle(i, other)).fold(1.0, f64::min);
    (0..generators.len()).into_par_iter().map(nearest).reduce(|| 1.0, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Values;

    fn rows(values: &[f32], cols: usize) -> Matrix {
        Matrix::new(values.len() / cols, cols, Values::F32(values.to_vec())).unwrap()
    }

    /// Gates of (1, 0), (-1, 0), (0, 1), (0, -1) on four rows, counted by hand.
    #[test]
    fn eps_and_gamma_match_hand_count() {
        let own = Generators::patterns(2, 1);
        let data = rows(&[1.0, 2.0, 3.0, -1.0, 0.5, 0.5, -1.0, 4.0], 2);
        // Open rows: {0 1 2}, {3}, {0 2 3}, {1}. Fewest 1 of 4. Differing rows: 4 2 2 | 2 2 | 4.
        let found = measure(data, own.gates().unwrap(), own.len());
        assert_eq!(found, Assumption { eps: 0.25, gamma: 0.5 });
        assert!((limit(&own) - 0.5).abs() < 1e-12);
        // Rows of one quadrant do not tell (1, 0) from (0, 1), and close the others.
        let narrow = measure(rows(&[1.0; 6], 2), own.gates().unwrap(), own.len());
        assert_eq!(narrow, Assumption { eps: 0.0, gamma: 0.0 });
    }

    /// Rows beyond a word of bits count too.
    #[test]
    fn every_row_counts() {
        let own = Generators::patterns(1, 1);
        let mut x = vec![1.0; 130];
        x[129] = -1.0;
        let found = measure(rows(&x, 1), own.gates().unwrap(), 2);
        assert_eq!(found, Assumption { eps: 1.0 / 130.0, gamma: 1.0 });
        let one = measure(rows(&x, 1), own.gates().unwrap(), 1);
        assert_eq!(one, Assumption { eps: 129.0 / 130.0, gamma: 1.0 });
    }

    #[test]
    fn random_gates_differ_by_their_angle() {
        let own = Generators::gaussian(6, 3, 2, 5);
        let mut rng = tamis::base::rng::Rng::new(1, 0);
        let mut x = vec![0.0; 6 * 40_000];
        rng.fill_normal(&mut x);
        let found = measure(rows(&x, 6), own.gates().unwrap(), 2);
        // Standard errors below 0.0025.
        assert!((found.gamma - limit(&own)).abs() < 0.01, "{found:?} {}", limit(&own));
        assert!((found.eps - 0.5).abs() < 0.01, "{found:?}");
    }
}
