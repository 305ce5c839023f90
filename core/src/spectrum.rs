//! Extreme eigenvalues of Gram matrices of random supports, the alpha and beta of the recovery guarantee.

use crate::error::{Error, Result};
use crate::gates::Gates;
use crate::math::{dot, norm2, sqrt};
use crate::rng::{Rng, stream};
use crate::sensing::{Sensing, Work, carve, head_mut};
use crate::weights::{Weights, runs};

/// Extreme eigenvalues (alpha, beta) of `A_S^T A_S` with unit columns over random supports of the given size.
///
/// `supports` draws; on each, `iterations` power iterations for the largest eigenvalue and as many on the shifted
/// matrix for the smallest (paper IHT, Lemma 1). `index` and `value` have the support's length s and hold no result;
/// `work.panel` needs max(3 s, d).
///
/// # Errors
/// A wrong length, or reading the data failed.
pub fn extremes<S: Sensing>(
    sensing: &mut S,
    gates: Gates<'_>,
    seed: u64,
    (supports, iterations): (u32, u32),
    (index, value): (&mut [u32], &mut [f32]),
    work: &mut Work<'_>,
) -> Result<(f32, f32), S::Source> {
    let (d, m) = (sensing.inputs(), sensing.blocks());
    let (mut alpha, mut beta) = (f32::INFINITY, 0.0_f32);
    for draw in 0..supports {
        random_support(seed, draw, d.saturating_mul(m), index);
        sensing.hold(gates, index)?;
        let mut support = Support { sensing, gates, index, d, m };
        support.scales(value, work)?;
        let top = support.eigenvalue(value, 0.0, iterations, (seed, draw), work)?;
        let low = top - support.eigenvalue(value, top, iterations, (seed, draw), work)?;
        (alpha, beta) = (alpha.min(low.max(0.0)), beta.max(top));
    }
    Ok((alpha, beta))
}

/// One support of unit columns whose Gram matrix is examined.
struct Support<'a, 'g, S> {
    sensing: &'a mut S,
    gates: Gates<'g>,
    index: &'a [u32],
    d: usize,
    m: usize,
}

impl<S: Sensing> Support<'_, '_, S> {
    /// Writes 1/|column| of the support to `scale`; 0 for columns that vanish.
    fn scales(&mut self, scale: &mut [f32], work: &mut Work<'_>) -> Result<(), S::Source> {
        for (i, run) in runs(self.d, self.index) {
            let norms = head_mut(work.panel, self.d)?;
            self.sensing.column_norms(self.gates, i..i + 1, norms, work.scratch)?;
            for at in run {
                let (Some(&j), Some(scale)) = (self.index.get(at), scale.get_mut(at)) else { continue };
                let norm = norms.get((j as usize).wrapping_sub(i * self.d)).copied().unwrap_or(0.0);
                *scale = if norm > 0.0 { 1.0 / sqrt(norm) } else { 0.0 };
            }
        }
        Ok(())
    }

    /// The eigenvalue of `shift·I - M` (`M` itself for shift 0) of largest size, M the Gram matrix of unit columns.
    fn eigenvalue(
        &mut self,
        scale: &[f32],
        shift: f32,
        iterations: u32,
        (seed, draw): (u64, u32),
        work: &mut Work<'_>,
    ) -> Result<f32, S::Source> {
        let s = self.index.len();
        let (x, rest) = carve(work.panel, s)?;
        let (p, rest) = carve(rest, s)?;
        let (h, _) = carve(rest, s)?;
        Rng::new(seed, stream::SUPPORT + (1 << 31) + u64::from(draw)).fill_normal(x);
        let mut value = 0.0;
        for _ in 0..iterations {
            let norm = sqrt(norm2(x));
            if norm == 0.0 {
                return Ok(0.0);
            }
            x.iter_mut().for_each(|x| *x /= norm);
            for ((p, x), c) in p.iter_mut().zip(&*x).zip(scale) {
                *p = x * c;
            }
            let w = Weights::new(self.d, self.m, self.index, p).map_err(Error::widen)?;
            self.sensing.normal_at(self.gates, w, h, work.scratch)?;
            for ((h, x), c) in h.iter_mut().zip(&*x).zip(scale) {
                let product = *h * c;
                *h = if shift > 0.0 { shift * x - product } else { product };
            }
            value = dot(x, h);
            x.copy_from_slice(h);
        }
        Ok(value)
    }
}

/// A uniformly random support of `index.len()` of `len` flat indices (Floyd's method on a sorted slice).
fn random_support(seed: u64, draw: u32, len: usize, index: &mut [u32]) {
    let mut rng = Rng::new(seed, stream::SUPPORT + u64::from(draw));
    let s = index.len();
    for filled in 0..s {
        let top = (len.saturating_sub(s) + filled) as u32;
        let pick = rng.below(top.saturating_add(1));
        let (kept, _) = index.split_at(filled);
        let new = if kept.binary_search(&pick).is_ok() { top } else { pick };
        let at = kept.partition_point(|&j| j < new);
        if let Some(slot) = index.get_mut(at..=filled) {
            slot.rotate_right(1);
            slot.iter_mut().take(1).for_each(|first| *first = new);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::gaussian::Gaussian;

    #[test]
    fn random_supports_are_sorted_distinct_and_reach_every_place() {
        let mut seen = [0; 12];
        for draw in 0..200 {
            let mut index = [0; 5];
            random_support(3, draw, 12, &mut index);
            assert!(index.windows(2).all(|p| p[0] < p[1]) && index[4] < 12, "{index:?}");
            index.iter().for_each(|&j| seen[j as usize] += 1);
        }
        // 200 draws of 5 in 12: 83 expected, standard deviation 7.
        assert!(seen.iter().all(|&c| (55..112).contains(&c)), "{seen:?}");
    }

    /// Marchenko and Pastur: eigenvalues of s unit Gaussian columns in n rows lie near (1 ± sqrt(s/n))².
    #[test]
    fn a_gaussian_support_has_the_spectrum_of_random_matrix_theory() {
        let (n, d, s) = (400, 60, 16);
        let mut sensing = Gaussian::new(1, n, d, 1).unwrap();
        let (mut index, mut value) = (std::vec![0; s], std::vec![0.0; s]);
        let (mut residual, mut panel, mut scratch) =
            (std::vec![0.0; n], std::vec![0.0; d.max(3 * s)], std::vec![0.0; n + d]);
        let mut work = Work { residual: &mut residual, panel: &mut panel, scratch: &mut scratch };
        let gates = Gates::seeded(0);
        let (alpha, beta) =
            extremes(&mut sensing, gates, 0, (4, 40), (&mut index, &mut value), &mut work).unwrap();
        assert!((0.55..0.8).contains(&alpha) && (1.25..1.6).contains(&beta), "{alpha} {beta}");
    }
}
