//! Masks as sketches: unbiased products of a vector with few of its entries (paper SKETCH, Algorithm
//! 1).
//!
//! s indices are drawn with probabilities p, with replacement, and every draw adds `1 / (s p_i)` to
//! its entry of the mask m. Then `E[m ⊙ w] = w`, and the expected squared error of a product
//! `Xᵀ (m ⊙ w)` is `(1/s) (sum_k |X_k|² w_k² / p_k - |Xᵀ w|²)`, `X_k` being row k of X. It is least
//! for p in proportion to `|X_k| |w_k|`, where it is `(1/s) ((sum_k |X_k| |w_k|)² - |Xᵀ w|²)` (Lemma
//! 4.1).

use crate::base::error::{self, Error, Result};
use crate::base::math;
use crate::base::rng::{CounterRng, stream};

/// How far the sum of probabilities may be from 1.
const TOLERANCE: f64 = 1e-4;

/// The probabilities of least error, in proportion to `|X_k| |w_k|`, given the norms `|X_k|`; all
/// slices have one length.
///
/// # Errors
/// [`Error::Length`] for other lengths, [`Error::NotFinite`] for norms or weights that are no
/// numbers, [`Error::Range`] if all products are 0.
///
/// ```
/// let mut p = [0.0; 3];
/// tamis::network::mask::sketch::best_probabilities(&[1.0, 2.0, 0.5], &[-1.0, 1.0, 2.0], &mut p)?;
/// assert_eq!(p, [0.25, 0.5, 0.25]);
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn best_probabilities(norms: &[f32], weights: &[f32], out: &mut [f32]) -> Result<()> {
    error::length("norms", norms.len(), weights.len())?;
    error::length("probabilities", out.len(), weights.len())?;
    error::finite("norms", norms)?;
    error::finite("weights", weights)?;
    // Of any two floats: their product is in the range of `f64` alone.
    let product = |(x, w): (&f32, &f32)| (f64::from(*x) * f64::from(*w)).abs();
    let sum: f64 = norms.iter().zip(weights).map(product).sum();
    error::range("products of norms and weights above 0", usize::from(sum > 0.0), 1, 1)?;
    for (p, pair) in out.iter_mut().zip(norms.iter().zip(weights)) {
        *p = (product(pair) / sum) as f32;
    }
    Ok(())
}

/// Draws a mask: `mask_i` = how often i was drawn, over `s p_i`; the number of entries that were
/// drawn, at most s.
///
/// The draws are made in the order of their indices, by the sums of exponential numbers, which over
/// their total are sorted uniform numbers: memory for the mask only, and one pass.
///
/// # Errors
/// [`Error::Length`] for a mask of another length, [`Error::Range`] for no draw, or for
/// probabilities that are negative or do not add up to 1, [`Error::NotFinite`] if they are no
/// numbers.
///
/// ```
/// use tamis::network::mask::sketch::draw;
/// let (p, mut mask) = ([0.5, 0.0, 0.25, 0.25], [0.0; 4]);
/// assert!(draw(&p, 3, 7, &mut mask)? <= 3);
/// // s p_i m_i is how often i was drawn.
/// let drawn: f32 = p.iter().zip(&mask).map(|(p, m)| 3.0 * p * m).sum();
/// assert_eq!((drawn, mask[1]), (3.0, 0.0));
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn draw(probabilities: &[f32], draws: usize, seed: u64, mask: &mut [f32]) -> Result<usize> {
    error::length("mask", mask.len(), probabilities.len())?;
    error::range("draws", draws, 1, u32::MAX as usize - 1)?;
    error::finite("probabilities", probabilities)?;
    let negative = probabilities.iter().filter(|p| **p < 0.0).count();
    error::range("negative probabilities", negative, 0, 0)?;
    let sum: f64 = probabilities.iter().copied().map(f64::from).sum();
    if (sum - 1.0).abs() > TOLERANCE {
        let (what, unit) = ("sum of probabilities, in millionths", 1_000_000);
        return Err(Error::Range { what, min: unit, max: unit, got: (sum * 1e6) as usize });
    }
    let rng = CounterRng::new(seed, stream::MASK);
    let gap = |k: usize| f64::from(-math::ln(rng.uniform(k as u32)));
    let total: f64 = (0..=draws).map(gap).sum();
    let Some(last) = probabilities.iter().rposition(|p| *p > 0.0) else { return Ok(0) };
    // The next of the sorted uniform numbers, in units of `sum / total`.
    let (mut next, mut place) = (1, gap(0));
    let (mut reached, mut nonzeros) = (0.0, 0);
    for (i, (m, &p)) in mask.iter_mut().zip(probabilities).enumerate() {
        reached += f64::from(p) / sum * total;
        let mut count = 0_u32;
        while next <= draws && p > 0.0 && (place < reached || i == last) {
            (count, place) = (count + 1, place + gap(next));
            next += 1;
        }
        *m =
            if count > 0 { (f64::from(count) / (draws as f64 * f64::from(p))) as f32 } else { 0.0 };
        nonzeros += usize::from(count > 0);
    }
    Ok(nonzeros)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    /// Lemma 4.1, whose error is an equality: within four standard errors of the mean.
    #[test]
    fn sketched_product_error_matches_lemma() {
        let x = [[1.0, 0.5], [-2.0, 0.0], [0.3, 0.3], [0.0, 4.0_f32]];
        let w = [0.5, -1.0, 2.0, 0.25_f32];
        let norms = x.map(|row| math::sqrt(math::norm2(&row)));
        let (mut p, mut mask) = ([0.0; 4], [0.0; 4]);
        best_probabilities(&norms, &w, &mut p).unwrap();
        let product = |m: &[f32; 4]| -> [f64; 2] {
            core::array::from_fn(|j| (0..4).map(|k| f64::from(x[k][j] * m[k] * w[k])).sum())
        };
        let exact = product(&[1.0; 4]);
        for draws in [1, 3, 20] {
            let errors: Vec<f64> = (0..20_000)
                .map(|seed| {
                    draw(&p, draws, seed, &mut mask).unwrap();
                    let got = product(&mask);
                    got.iter().zip(exact).map(|(a, b)| (a - b) * (a - b)).sum()
                })
                .collect();
            let sum: f64 = norms.iter().zip(w).map(|(x, w)| f64::from((x * w).abs())).sum();
            let norm: f64 = exact.iter().map(|x| x * x).sum();
            let expected = (sum * sum - norm) / draws as f64;
            let n = errors.len() as f64;
            let mean = errors.iter().sum::<f64>() / n;
            let variance = errors.iter().map(|e| (e - mean) * (e - mean)).sum::<f64>() / n;
            let error = libm::sqrt(variance / n);
            assert!((mean - expected).abs() < 4.0 * error, "{mean} is not {expected}, {draws}");
        }
    }

    #[test]
    fn probabilities_that_are_none_are_refused() {
        let refused = |p: &[f32]| draw(p, 3, 0, &mut [0.0; 2]).is_err();
        assert!(refused(&[0.5, 0.4]) && refused(&[1.5, -0.5]) && refused(&[0.5, f32::NAN]));
        assert!(refused(&[1.0]) && refused(&[0.0, 0.0]) && !refused(&[1.0, 0.0]));
        assert!(draw(&[0.5, 0.5], 0, 0, &mut [0.0; 2]).is_err());
        let mut out = [0.0; 2];
        assert!(best_probabilities(&[1.0, 1.0], &[0.0, 0.0], &mut out).is_err());
        assert!(best_probabilities(&[1.0], &[1.0, 1.0], &mut out).is_err());
    }
}
