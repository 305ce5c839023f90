//! Spectral norms of random matrices: Tables 2 and 3 of the paper.

use rayon::prelude::*;
use tamis::base::rng::{seed_of, stream};

use super::super::lanczos::spectral_norm;
use super::entries::{chosen, draw, power};
use crate::lab::experiment::spec::{Choice, Entries, EntryLaw, Metric, Point};
use crate::lab::experiment::theory::measured::Measured;
use crate::operator::Stop;
use crate::{Error, Result};

/// Seeds of draws, see [`seed_of`].
const DRAWS: u64 = stream::USER + (0x7e23 << 32);
/// Sums of moments under way at once: fixed, so that the number of threads changes nothing.
const GROUPS: usize = 8;
/// Most repetitions of all draws.
const MOST_SETS: u64 = 100;

/// Quantiles of Table 2.
const QUANTILES: [(Metric, Metric, f64); 4] = [
    (Metric::Q95, Metric::Delta95, 0.95),
    (Metric::Q99, Metric::Delta99, 0.99),
    (Metric::Q999, Metric::Delta999, 0.999),
    (Metric::Q9999, Metric::Delta9999, 0.9999),
];

/// Matrices to draw.
pub(in super::super) struct Draws<'a> {
    pub(in super::super) of: Entries,
    pub(in super::super) at: Point,
    pub(in super::super) draws: u32,
    /// The draws are repeated until so many entries were drawn.
    pub(in super::super) least_entries: u64,
    pub(in super::super) seed: u64,
    pub(in super::super) stop: &'a Stop,
}

/// Mean, deviation and quantiles of `|B|_2`; and the paper's `delta0 = ln(2/(1 - q))/(4 n)`.
pub(in super::super) fn norms(task: &Draws<'_>) -> Result<Measured> {
    let mut measured = task.repeated(|set| task.norms_of(set))?;
    let n = task.at.n.max(task.at.d) as f64;
    for (_, delta_of, q) in QUANTILES {
        measured.insert(delta_of, (2.0 / (1.0 - q)).ln() / (4.0 * n));
    }
    Ok(measured)
}

/// The constant of Lemma 4 (R. Latała): `E|A|_2` over the sum of three moments.
pub(in super::super) fn constant(task: &Draws<'_>) -> Result<Measured> {
    task.repeated(|set| task.constant_of(set))
}

impl Draws<'_> {
    /// Means over repetitions of all draws, until `least_entries` were drawn.
    fn repeated(&self, of: impl Fn(u32) -> Result<Measured>) -> Result<Measured> {
        let rows = if self.at.n == 0 { self.at.d } else { self.at.n };
        let entries = (rows * self.at.d) as u64 * u64::from(self.draws);
        let sets = self.least_entries.div_ceil(entries).clamp(1, MOST_SETS) as u32;
        let mut measured = Measured::new();
        for set in 0..sets {
            for (metric, value) in of(set)? {
                *measured.entry(metric).or_insert(0.0) += value / f64::from(sets);
            }
        }
        Ok(measured)
    }

    /// The seed of a draw: no two of a part are the same.
    fn seed_of(&self, draw: u32) -> u64 {
        seed_of(self.seed, DRAWS + ((self.at.variant as u64) << 34), 1 + draw)
    }

    /// Of one set of draws.
    fn norms_of(&self, set: u32) -> Result<Measured> {
        let &Draws { ref of, at, draws, stop, .. } = self;
        let norm = |draw_at: u32| -> Result<f64> {
            if stop.asked() {
                return Err(Error::interrupted());
            }
            let own = self.seed_of(set * draws + draw_at);
            Ok(spectral_norm(&draw(of, at.n, at.d, own, 0), at.d, own))
        };
        let mut norms = (0..draws).into_par_iter().map(norm).collect::<Result<Vec<f64>>>()?;
        norms.sort_by(f64::total_cmp);
        let mean = norms.iter().sum::<f64>() / norms.len() as f64;
        let square = norms.iter().map(|norm| (norm - mean).powi(2)).sum::<f64>();
        let deviation = (square / (norms.len() - 1).max(1) as f64).sqrt();
        let mut measured = Measured::from([(Metric::Mean, mean), (Metric::Std, deviation)]);
        measured.extend(QUANTILES.map(|(metric, _, q)| (metric, quantile(&norms, q))));
        Ok(measured)
    }

    /// The constant of one set of draws.
    fn constant_of(&self, set: u32) -> Result<Measured> {
        let &Draws { ref of, at, draws, stop, .. } = self;
        let (d, len) = (at.d, at.d * at.d);
        let pruned = of.alpha.map_or(0, |alpha| power_of_matrix(d, alpha));
        let group = |group: usize| -> Result<Sums> {
            let mut sums = Sums { squares: vec![0.0; len], fourths: vec![0.0; len], norms: 0.0 };
            for draw_at in (group as u32..draws).step_by(GROUPS) {
                if stop.asked() {
                    return Err(Error::interrupted());
                }
                let own = self.seed_of(set * draws + draw_at);
                let mut matrix = draw(of, d, d, own, 0);
                let choice = self.seed_of(set * draws + if of.fixed { 0 } else { draw_at });
                for place in chosen(of.choice, len, pruned, choice, 0) {
                    matrix[place as usize] = 0.0;
                }
                sums.norms += spectral_norm(&matrix, d, own);
                let moments = sums.squares.iter_mut().zip(&mut sums.fourths);
                for (entry, (square, fourth)) in matrix.iter().zip(moments) {
                    let own = f64::from(entry * entry);
                    *square += own;
                    *fourth += own * own;
                }
            }
            Ok(sums)
        };
        let all = (0..GROUPS).into_par_iter().map(group).collect::<Result<Vec<Sums>>>()?;
        let count = f64::from(draws);
        let norm = all.iter().map(|sums| sums.norms).sum::<f64>() / count;
        let mean = |of: fn(&Sums) -> &Vec<f64>, place: usize| -> f64 {
            all.iter().map(|sums| of(sums)[place]).sum::<f64>() / count
        };
        let exact = exact_moments(of, d, pruned);
        let square = |i: usize, j: usize| match of.exact_moments {
            true => exact[0],
            false => mean(|sums| &sums.squares, i * d + j),
        };
        let fourth = |place: usize| match of.exact_moments {
            true => exact[1],
            false => mean(|sums| &sums.fourths, place),
        };
        let row = |i: usize| (0..d).map(|j| square(i, j)).sum::<f64>().sqrt();
        let column = |j: usize| (0..d).map(|i| square(i, j)).sum::<f64>().sqrt();
        let row = (0..d).map(row).fold(0.0, f64::max);
        let column = (0..d).map(column).fold(0.0, f64::max);
        let fourth = (0..len).map(fourth).sum::<f64>().powf(0.25);
        Ok(Measured::from([
            (Metric::RowMoment, row),
            (Metric::ColumnMoment, column),
            (Metric::FourthMoment, fourth),
            (Metric::Norm, norm),
            (Metric::C, norm / (row + column + fourth)),
        ]))
    }
}

/// The q-quantile of rising values, linear between them.
fn quantile(values: &[f64], q: f64) -> f64 {
    let place = q * (values.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(values.len() - 1);
    values[below] + (place - below as f64) * (values[above] - values[below])
}

/// Sums over draws of squares and fourth powers of each entry, and of norms.
struct Sums {
    squares: Vec<f64>,
    fourths: Vec<f64>,
    norms: f64,
}

/// `⌊d^(2 - α)⌋`.
fn power_of_matrix(d: usize, alpha: f64) -> usize {
    power(d * d, 1.0 - alpha / 2.0)
}

/// `E A_ij²` and `E A_ij⁴` of the law, of entries that survive pruning with their probability.
fn exact_moments(of: &Entries, d: usize, pruned: usize) -> [f64; 2] {
    let (square, len) = (of.k * of.k / d as f64, (d * d) as f64);
    let left = match of.choice {
        Choice::Repeated => (1.0 - 1.0 / len).powf(pruned as f64),
        Choice::Distinct => 1.0 - pruned as f64 / len,
    };
    match of.law {
        EntryLaw::Uniform => [left * square / 3.0, left * square * square / 5.0],
        EntryLaw::Normal => [left * square, left * 3.0 * square * square],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Measure = fn(&Draws<'_>) -> Result<Measured>;

    fn measured(by: Measure, of: Entries, [n, d]: [usize; 2], draws: u32) -> Measured {
        let at = Point { m: 0, s: 0, n, d, variant: 0 };
        by(&Draws { of, at, draws, least_entries: 0, seed: 1, stop: &Stop::new() }).unwrap()
    }

    #[test]
    fn quantiles_lie_between_values() {
        let values = [1.0, 2.0, 3.0, 5.0];
        assert_eq!(quantile(&values, 0.5), 2.5);
        assert_eq!((quantile(&values, 1.0), quantile(&values, 0.0)), (5.0, 1.0));
    }

    /// Two rows of Table 2, with a tenth of its draws.
    #[test]
    fn norms_are_near_printed_ones() {
        let own = measured(norms, Entries::default(), [32, 128], 200);
        assert!((own[&Metric::Mean] / 0.836 - 1.0).abs() < 0.006, "{own:?}");
        assert!((own[&Metric::Delta95] - 0.0072).abs() < 1e-4, "{own:?}");
        let wide = Entries { k: 3.0_f64.sqrt(), ..Entries::default() };
        let own = measured(norms, wide, [64, 64], 200);
        assert!((own[&Metric::Mean] / 1.932 - 1.0).abs() < 0.006, "{own:?}");
        assert!((own[&Metric::Std] - 0.045).abs() < 0.01, "{own:?}");
    }

    #[test]
    fn constants_follow_the_paper_with_replacement() {
        let zeroed = Entries { law: EntryLaw::Normal, alpha: Some(0.01), ..Entries::default() };
        let own = measured(constant, zeroed, [32, 32], 100);
        assert!((own[&Metric::Norm] / 1.237 - 1.0).abs() < 0.02, "{own:?}");
        assert!((own[&Metric::C] / 0.540 - 1.0).abs() < 0.03, "{own:?}");
        let distinct = Entries { choice: Choice::Distinct, ..zeroed };
        let own = measured(constant, distinct, [32, 32], 100);
        assert!(own[&Metric::Norm] < 0.6, "{own:?}");
    }

    #[test]
    fn exact_moments_are_limits_of_means() {
        let law = Entries { law: EntryLaw::Normal, exact_moments: true, ..Entries::default() };
        let own = measured(constant, law, [16, 16], 10);
        assert!((own[&Metric::RowMoment] - 1.0).abs() < 1e-12, "{own:?}");
        assert!((own[&Metric::FourthMoment] - 3.0_f64.powf(0.25)).abs() < 1e-12, "{own:?}");
    }
}
