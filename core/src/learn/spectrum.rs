//! Extreme eigenvalues of Gram matrices of random supports, the alpha and beta of the recovery
//! guarantee.

use crate::base::error::{self, Error, Result};
use crate::base::math::{dot, norm2, sqrt};
use crate::base::rng::{Rng, stream};
use crate::learn::iht::strips::Batch;
use crate::network::gates::Gates;
use crate::network::net::EntriesMut;
use crate::network::top::Top;
use crate::network::weights::Weights;
use crate::operator::panels::panels;
use crate::operator::sensing::{Rows, Sensing, Work, carve, head_mut};

/// The power iterations from one random start.
#[derive(Debug, Clone, Copy)]
pub struct PowerIteration {
    /// Seed of supports and starts.
    pub seed: u64,
    /// Number of the support and its start among all that the seed gives.
    pub draw: u32,
    /// Iterations for the largest eigenvalue, and as many on the shifted matrix for the smallest.
    pub iterations: u32,
}

/// The extreme eigenvalues of a matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extremes {
    /// The smallest, alpha.
    pub alpha: f32,
    /// The largest, beta.
    pub beta: f32,
}

/// Extreme eigenvalues of `A_S^T A_S` with unit columns over random supports of s entries (paper
/// IHT, Lemma 1).
///
/// `supports` are drawn, from number `power.draw` on. `support` has room for s entries and holds no
/// result; `work.panel` needs max(3 s, d).
///
/// Supports are drawn from the columns that do not vanish, and are smaller than s only where there
/// are fewer. Without any column both values are 0.
///
/// # Errors
/// A wrong length, or reading the data failed.
pub fn extremes<S: Sensing>(
    sensing: &mut S,
    gates: Gates<'_>,
    supports: u32,
    mut power: PowerIteration,
    mut support: EntriesMut<'_>,
    work: &mut Work<'_, Rows<S>>,
) -> Result<Extremes, S::Source> {
    let mut all = Extremes { alpha: f32::INFINITY, beta: 0.0 };
    for _ in 0..supports {
        let len = random_support(sensing, gates, power, support.reborrow(), work)?;
        let (index, scale) = (&*head_mut(support.index, len)?, head_mut(support.value, len)?);
        let Extremes { alpha, beta } = extremes_at(sensing, gates, index, power, scale, work)?;
        all = Extremes { alpha: all.alpha.min(alpha), beta: all.beta.max(beta) };
        power.draw += 1;
    }
    Ok(all)
}

/// Extreme eigenvalues of `A_S^T A_S` with unit columns on one support S of s flat indices.
///
/// `scale` has length s and holds no result; `work.panel` needs max(3 s, d). The largest eigenvalue
/// comes from below and the smallest from above, the nearer the more iterations. A column that
/// vanishes has the eigenvalue 0.
///
/// # Errors
/// A wrong length or support, or reading the data failed.
pub fn extremes_at<S: Sensing>(
    sensing: &mut S,
    gates: Gates<'_>,
    support: &[u32],
    power: PowerIteration,
    scale: &mut [f32],
    work: &mut Work<'_, Rows<S>>,
) -> Result<Extremes, S::Source> {
    error::length("scales", scale.len(), support.len())?;
    let gates = sensing.hold(gates, support)?;
    let (panel, mut rows) = Batch::new(sensing, work);
    rows.norms_at(panel, gates, support, |at, norm2| {
        if let Some(scale) = scale.get_mut(at) {
            *scale = if norm2 > 0.0 { 1.0 / sqrt(norm2) } else { 0.0 };
        }
    })?;
    let beta = eigenvalue(sensing, gates, support, scale, 0.0, power, work)?;
    let alpha = beta - eigenvalue(sensing, gates, support, scale, beta, power, work)?;
    Ok(Extremes { alpha: alpha.max(0.0), beta })
}

/// The eigenvalue of `shift·I - M` (`M` itself for shift 0) of largest size, M the Gram matrix of
/// unit columns, whose lengths are `1 / scale`.
fn eigenvalue<S: Sensing>(
    sensing: &mut S,
    gates: Gates<'_>,
    support: &[u32],
    scale: &[f32],
    shift: f32,
    power: PowerIteration,
    work: &mut Work<'_, Rows<S>>,
) -> Result<f32, S::Source> {
    let (s, d, m) = (support.len(), sensing.inputs(), sensing.blocks());
    let (x, rest) = carve("panel", work.panel, s)?;
    let (p, rest) = carve("panel", rest, s)?;
    let (h, _) = carve("panel", rest, s)?;
    Rng::new(power.seed, stream::SUPPORT + (1 << 31) + u64::from(power.draw)).fill_normal(x);
    let mut value = 0.0;
    for _ in 0..power.iterations {
        let norm = sqrt(norm2(x));
        if norm == 0.0 {
            return Ok(0.0);
        }
        x.iter_mut().for_each(|x| *x /= norm);
        for ((p, x), c) in p.iter_mut().zip(&*x).zip(scale) {
            *p = x * c;
        }
        let w = Weights::new(d, m, support, p).map_err(Error::widen)?;
        sensing.normal_at(gates, w, h, work.scratch)?;
        for ((h, x), c) in h.iter_mut().zip(&*x).zip(scale) {
            let product = *h * c;
            *h = if shift > 0.0 { shift * x - product } else { product };
        }
        value = dot(x, h);
        x.copy_from_slice(h);
    }
    Ok(value)
}

/// A uniformly random support among the columns that do not vanish, those with the s largest of
/// random numbers; its length, s where there are as many.
fn random_support<S: Sensing>(
    sensing: &mut S,
    gates: Gates<'_>,
    power: PowerIteration,
    EntriesMut { index, value }: EntriesMut<'_>,
    work: &mut Work<'_, Rows<S>>,
) -> Result<usize, S::Source> {
    let mut rng = Rng::new(power.seed, stream::SUPPORT + u64::from(power.draw));
    let d = sensing.inputs();
    let mut top = Top::new(index, value);
    panels(sensing, work.panel, d, |sensing, blocks, norms| {
        sensing.column_norms(gates, blocks.clone(), norms, work.scratch)?;
        for (j, &norm) in (blocks.start * d..).zip(&*norms) {
            // Drawn for every column, so that a draw depends on its place only; in (0, 1], for
            // zeros never enter.
            let key = 1.0 - rng.uniform();
            if norm > 0.0 {
                top.push(j as u32, key);
            }
        }
        Ok(())
    })?;
    Ok(top.finish().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::data::samples::Rows;
    use crate::network::gates::{Empty, Signs};
    use crate::operator::gated::Gated;
    use crate::operator::gaussian::Gaussian;

    /// One row: the norms of the columns are its squares.
    fn row(x: &[f32]) -> Gated<'_, Rows<'_>> {
        let memory = std::vec![0.0; crate::base::budget::gated_words(x.len(), 2)].leak();
        Gated::new(Rows::new(x, x.len()).unwrap(), 2, 1, memory).unwrap()
    }

    /// Gates that are open on every row.
    fn open() -> Gates<'static> {
        Gates::of(Weights::empty(12, 2), Signs::Positive, Empty::Open, 0, 1)
    }

    fn support(sensing: &mut Gated<'_, Rows<'_>>, draw: u32, index: &mut [u32]) -> usize {
        let (mut key, mut panel, mut scratch) = (std::vec![0.0; index.len()], [0.0; 12], [0.0; 13]);
        let mut work: Work<'_> =
            Work { residual: &mut [], panel: &mut panel, scratch: &mut scratch, strips: None };
        let power = PowerIteration { seed: 3, draw, iterations: 0 };
        let room = EntriesMut { index, value: &mut key };
        random_support(sensing, open(), power, room, &mut work).unwrap()
    }

    #[test]
    fn random_supports_are_sorted_distinct_and_cover_columns() {
        let x = [1.0, 0.0, -3.0, 0.0, 0.0, 2.0, 0.5, 0.0, 0.0, 1e-3, 0.0, 7.0];
        let mut sensing = row(&x);
        let mut seen = [0; 24];
        for draw in 0..200 {
            let mut index = [0; 5];
            assert_eq!(support(&mut sensing, draw, &mut index), 5);
            assert!(index.windows(2).all(|p| p[0] < p[1]) && index[4] < 24, "{index:?}");
            index.iter().for_each(|&j| seen[j as usize] += 1);
        }
        // 200 draws of 5 in 12: 83 expected, standard deviation 7.
        for (j, &count) in seen.iter().enumerate() {
            let range = if x[j % 12] == 0.0 { 0..1 } else { 55..112 };
            assert!(range.contains(&count), "column {j}: {count}");
        }
    }

    #[test]
    fn a_support_is_smaller_where_columns_are_few() {
        let mut index = [0; 5];
        let x = [0.0, 0.0, -3.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        assert_eq!(support(&mut row(&x), 0, &mut index), 4);
        assert_eq!(index[..4], [2, 5, 14, 17]);
        assert_eq!(support(&mut row(&[0.0; 12]), 0, &mut index), 0);
    }

    /// Columns that vanish change neither the columns drawn from nor what is measured on them.
    #[test]
    fn empty_columns_do_not_hide_the_largest_eigenvalue() {
        // Two columns a neuron, the same up to a factor: on all four, with gates open, all are
        // parallel.
        let x = [0.0, 0.0, -3.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let (mut index, mut value) = ([0; 4], [0.0; 4]);
        let (mut panel, mut scratch) = ([0.0; 12], [0.0; 13]);
        let mut work: Work<'_> =
            Work { residual: &mut [], panel: &mut panel, scratch: &mut scratch, strips: None };
        let power = PowerIteration { seed: 0, draw: 0, iterations: 20 };
        let mut room = EntriesMut { index: &mut index, value: &mut value };
        let both = extremes(&mut row(&x), open(), 2, power, room.reborrow(), &mut work).unwrap();
        assert!((both.beta - 4.0).abs() < 1e-5 && both.alpha < 1e-5, "{both:?}");
        let none = extremes(&mut row(&[0.0; 12]), open(), 2, power, room, &mut work);
        assert_eq!(none, Ok(Extremes { alpha: 0.0, beta: 0.0 }));
    }

    /// Gram matrix of the unit columns: (1, c; c, 1) has the eigenvalues 1 ± c.
    #[test]
    fn two_columns_have_the_eigenvalues_of_their_cosine() {
        // Columns (1, 1, 0) and (1, 0, 1): c = 1/2.
        let x = [1.0, 1.0, 1.0, 0.0, 0.0, 1.0];
        let memory = std::vec![0.0; crate::base::budget::gated_words(2, 1)].leak();
        let mut sensing = Gated::new(Rows::new(&x, 2).unwrap(), 1, 1, memory).unwrap();
        let open = Gates::of(Weights::empty(2, 1), Signs::Positive, Empty::Open, 0, 1);
        let (mut scale, mut panel, mut scratch) = ([0.0; 2], [0.0; 6], [0.0; 5]);
        let mut work: Work<'_> =
            Work { residual: &mut [], panel: &mut panel, scratch: &mut scratch, strips: None };
        let power = PowerIteration { seed: 0, draw: 0, iterations: 60 };
        let both = extremes_at(&mut sensing, open, &[0, 1], power, &mut scale, &mut work).unwrap();
        assert!((both.alpha - 0.5).abs() < 1e-6 && (both.beta - 1.5).abs() < 1e-6, "{both:?}");
        assert!(extremes_at(&mut sensing, open, &[0, 1], power, &mut [0.0], &mut work).is_err());
    }

    /// Marchenko and Pastur: eigenvalues of s unit Gaussian columns in n rows lie near (1 ±
    /// sqrt(s/n))².
    #[test]
    fn gaussian_support_spectrum_matches_marchenko_pastur() {
        let (n, d, s) = (400, 60, 16);
        let mut sensing = Gaussian::new(1, n, d, 1).unwrap();
        let (mut index, mut value) = (std::vec![0; s], std::vec![0.0; s]);
        let (mut residual, mut panel, mut scratch) =
            (std::vec![0.0; n], std::vec![0.0; d.max(3 * s)], std::vec![0.0; n + d]);
        let mut work: Work<'_> = Work {
            residual: &mut residual,
            panel: &mut panel,
            scratch: &mut scratch,
            strips: None,
        };
        let gates = Gates::seeded(0);
        let power = PowerIteration { seed: 0, draw: 0, iterations: 40 };
        let room = EntriesMut { index: &mut index, value: &mut value };
        let Extremes { alpha, beta } =
            extremes(&mut sensing, gates, 4, power, room, &mut work).unwrap();
        assert!((0.55..0.8).contains(&alpha) && (1.25..1.6).contains(&beta), "{alpha} {beta}");
    }
}
