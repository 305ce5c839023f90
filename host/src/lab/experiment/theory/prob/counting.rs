//! Order statistics and balls in bins: Lemmas 1 and 6 of the paper.

use rayon::prelude::*;
use tamis::base::rng::{Rng, seed_of, stream};

use crate::lab::experiment::spec::{Metric, Point};
use crate::lab::experiment::theory::measured::Measured;

/// Seeds of draws, see [`seed_of`].
const DRAWS: u64 = stream::USER + (0x7e25 << 32);

/// The mean over draws of the `power`-th power, 1 or 2, of the s-th least of n squares of numbers
/// uniform in ±1, and what Lemma 1 says that it is.
pub(in super::super) fn order(power: i32, at: Point, draws: u32, seed: u64) -> Measured {
    let (n, r) = (at.n, at.s);
    let draw = |draw_at: u32| {
        let mut rng = Rng::new(seed_of(seed, DRAWS, draw_at), 0);
        let mut squares: Vec<f64> =
            (0..n).map(|_| (2.0 * f64::from(rng.uniform()) - 1.0).powi(2)).collect();
        let (_, own, _) = squares.select_nth_unstable_by(r - 1, f64::total_cmp);
        own.powi(power)
    };
    let values: Vec<f64> = (0..draws).into_par_iter().map(draw).collect();
    let count = f64::from(draws);
    let mean = values.iter().sum::<f64>() / count;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let (n, r) = (n as f64, r as f64);
    // A product of r, r + 1, … over one of n + 1, n + 2, …, of twice as many factors as the power.
    let factors = (0..2 * power).map(|k| (r + f64::from(k)) / (n + 1.0 + f64::from(k)));
    Measured::from([
        (Metric::Estimate, mean),
        (Metric::StandardError, (square / (count - 1.0) / count).sqrt()),
        (Metric::ExactForm, factors.product()),
    ])
}

/// The fraction of draws in which `⌈d ln d⌉` balls put more than three times the mean into one of d
/// bins, and the bound of Lemma 6; and the mean of the fullest bin over that of all.
pub(in super::super) fn balls(at: Point, draws: u32, seed: u64) -> Measured {
    let bins = at.d;
    let count = (bins as f64 * (bins as f64).ln()).ceil().max(1.0);
    let mean = count / bins as f64;
    let draw = |draw_at: u32| {
        let mut rng = Rng::new(seed_of(seed, DRAWS, draw_at), 0);
        let mut held = vec![0_u32; bins];
        (0..count as u64).for_each(|_| held[rng.below(bins as u32) as usize] += 1);
        f64::from(held.into_iter().max().unwrap_or(0)) / mean
    };
    let fullest: Vec<f64> = (0..draws).into_par_iter().map(draw).collect();
    let draws = f64::from(draws);
    let failures = fullest.iter().filter(|own| **own > 3.0).count() as f64 / draws;
    Measured::from([
        (Metric::Failures, failures),
        (Metric::FailureForm, (bins as f64).powf(-1.0 / 3.0)),
        (Metric::Fullest, fullest.iter().sum::<f64>() / draws),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_statistics_have_their_moments() {
        let at = Point { m: 0, s: 3, n: 7, d: 0, variant: 0 };
        for power in [1, 2] {
            let own = order(power, at, 20_000, 1);
            let (mean, exact) = (own[&Metric::Estimate], own[&Metric::ExactForm]);
            assert!((mean - exact).abs() < 4.0 * own[&Metric::StandardError], "{own:?}");
        }
        let exact = order(2, at, 2, 1)[&Metric::ExactForm];
        assert!((exact - 3.0 * 4.0 * 5.0 * 6.0 / (8.0 * 9.0 * 10.0 * 11.0)).abs() < 1e-12);
    }

    #[test]
    fn few_bins_overflow_within_the_bound() {
        let own = balls(Point { m: 0, s: 0, n: 0, d: 64, variant: 0 }, 5000, 2);
        let (failures, bound) = (own[&Metric::Failures], own[&Metric::FailureForm]);
        assert!(failures > 0.0 && failures < bound, "{own:?}");
        assert!((bound - 0.25).abs() < 1e-12 && own[&Metric::Fullest] > 1.5, "{own:?}");
    }
}
