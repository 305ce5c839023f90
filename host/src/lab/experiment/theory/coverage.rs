//! Theorem 6: how many random generators it takes until the gates of sparse neurons are among theirs.
//!
//! n rows cut the directions of k inputs into `N = 2 Σ_{i<k} C(n - 1, i)` regions, in each of which
//! the gate is the same on all rows. A neuron has the gate of a generator where one of as many
//! inputs, the same ones, lies in its region.

use std::collections::HashSet;

use rayon::prelude::*;

use super::assumption::{active, differ};
use super::generators::Generators;
use super::measured::Measured;
use crate::Result;
use crate::data::Matrix;
use crate::lab::experiment::spec::Metric;

/// How many of the `drawn` neurons have a gate that `own` generators have, on rows of d inputs.
pub(super) fn measure(data: &Matrix, own: &Generators, drawn: &Generators) -> Result<Measured> {
    let own_bits = active(data.clone(), own.gates()?, own.len());
    let drawn_bits = active(data.clone(), drawn.gates()?, drawn.len());
    let known: HashSet<&[u64]> = own_bits.iter().map(Vec::as_slice).collect();
    let count = drawn.len().max(1) as f64;
    let covered = drawn_bits.iter().filter(|bits| known.contains(bits.as_slice())).count();
    let nearest = |bits: &Vec<u64>| own_bits.iter().map(|own| differ(own, bits)).min().unwrap_or(0);
    let differing: u64 = drawn_bits.par_iter().map(|bits| u64::from(nearest(bits))).sum();
    let (n, d, k) = (data.rows as f64, data.cols as f64, own.weights());
    let mut measured = Measured::from([
        (Metric::Coverage, covered as f64 / count),
        (Metric::Nearest, differing as f64 / count / n),
        (Metric::Regions, choose(d, k) * regions(n, k)),
    ]);
    measured.extend(expected(n, d, k, own.len() as f64).map(|share| (Metric::CoverageForm, share)));
    Ok(measured)
}

/// The expected fraction of covered neurons of k inputs by T generators. Of one input there are two
/// regions, of equal chance; of two, the 2 n regions are arcs between neighbours of n random lines,
/// of which a neuron is in the larger ones more often: their sizes have a gamma law of shape 2. None
/// for more inputs.
fn expected(n: f64, d: f64, k: usize, generators: f64) -> Option<f64> {
    match k {
        1 => Some(1.0 - (1.0 - 0.5 / d).powf(generators)),
        2 => Some(1.0 - (1.0 + generators / (regions(n, 2) * choose(d, 2))).powi(-2)),
        _ => None,
    }
}

/// `2 Σ_{i<k} C(n - 1, i)`, the regions of k dimensions between n hyperplanes through 0.
fn regions(n: f64, k: usize) -> f64 {
    2.0 * (0..k).map(|i| choose(n - 1.0, i)).sum::<f64>()
}

fn choose(of: f64, count: usize) -> f64 {
    (0..count).fold(1.0, |ways, i| ways * (of - i as f64) / (i + 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Values;
    use tamis::base::rng::Rng;

    fn rows(n: usize, d: usize) -> Matrix {
        let mut x = vec![0.0; n * d];
        Rng::new(3, 0).fill_normal(&mut x);
        Matrix::new(n, d, Values::F32(x)).unwrap()
    }

    #[test]
    fn regions_of_lines_and_planes_are_counted() {
        assert_eq!((regions(7.0, 1), regions(7.0, 2), regions(4.0, 3)), (2.0, 14.0, 14.0));
        assert_eq!((choose(5.0, 2), choose(5.0, 0)), (10.0, 1.0));
    }

    /// All patterns of one input are all gates of one input.
    #[test]
    fn all_patterns_cover_neurons_of_one_input() {
        let found =
            measure(&rows(50, 6), &Generators::patterns(6, 1), &Generators::gaussian(6, 1, 30, 1));
        let found = found.unwrap();
        assert_eq!((found[&Metric::Coverage], found[&Metric::Nearest]), (1.0, 0.0));
    }

    #[test]
    fn coverage_is_the_expected_one_of_one_and_two_inputs() {
        for (d, k, generators) in [(20, 1, 40), (4, 2, 300)] {
            let (data, drawn) = (rows(30, d), Generators::gaussian(d, k, 2000, 7));
            let found = measure(&data, &Generators::gaussian(d, k, generators, 5), &drawn).unwrap();
            let (share, form) = (found[&Metric::Coverage], found[&Metric::CoverageForm]);
            // The rows and generators are one draw.
            assert!((share - form).abs() < 0.12 && share > 0.2, "{k}: {share} {form}");
            assert!(found[&Metric::Nearest] < 0.3 && share < 0.95);
        }
    }
}
