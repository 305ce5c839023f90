//! The spectral norm of convolutions by their frequencies: Lemma 7 of the paper.

use faer::traits::ComplexField;
use faer::{Mat, c64};
use rayon::prelude::*;
use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

use super::entries::{chosen, draw, power};
use crate::lab::experiment::spec::{Entries, Method, Metric, Point};
use crate::lab::experiment::theory::measured::Measured;
use crate::{Error, Result};

/// A kernel of `channels` inputs and outputs and `size`×`size` weights each.
struct Kernel {
    channels: usize,
    size: usize,
    /// Outputs, inputs, rows, columns.
    weights: Vec<f32>,
}

/// What lies beyond the border of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Border {
    Circular,
    Zero,
}

impl Kernel {
    fn draw(of: &Entries, channels: usize, size: usize, seed: u64) -> Self {
        let weights = draw(of, channels, channels * size * size, seed, 0);
        Self { channels, size, weights }
    }

    /// The largest spectral norm of the channels×channels matrices of DFT coefficients on p×p
    /// frequencies: the norm of the circular convolution of p×p maps.
    fn norm_by_frequencies(&self, p: usize) -> Result<f64> {
        let Self { channels, size, .. } = *self;
        let fft = FftPlanner::new().plan_fft_forward(p);
        let filter = |at: usize| {
            let mut grid = vec![Complex::new(0.0, 0.0); p * p];
            let own = &self.weights[at * size * size..][..size * size];
            for (i, weight) in own.iter().enumerate() {
                grid[i / size * p + i % size].re = f64::from(*weight);
            }
            fft.process(&mut grid);
            let mut turned: Vec<Complex<f64>> =
                (0..p * p).map(|i| grid[i % p * p + i / p]).collect();
            fft.process(&mut turned);
            turned
        };
        let filters: Vec<Vec<Complex<f64>>> =
            (0..channels * channels).into_par_iter().map(filter).collect();
        let norm = |frequency: usize| {
            let matrix = Mat::from_fn(channels, channels, |i, j| {
                let own = filters[i * channels + j][frequency];
                c64::new(own.re, own.im)
            });
            largest(&matrix)
        };
        let norms = (0..p * p).into_par_iter().map(norm).collect::<Result<Vec<f64>>>()?;
        Ok(norms.into_iter().fold(0.0, f64::max))
    }

    /// The norm of the convolution of p×p maps as a matrix of its own, `p² channels` squared. Beyond
    /// the border of a map filters are centred on its points.
    fn norm_of_matrix(&self, p: usize, border: Border) -> Result<f64> {
        let Self { channels, size, .. } = *self;
        let n = channels * p * p;
        let mut matrix = Mat::<f64>::zeros(n, n);
        let centre = if border == Border::Zero { (size - 1) / 2 } else { 0 };
        for (at, weight) in self.weights.iter().enumerate() {
            let (filter, own) = (at / (size * size), at % (size * size));
            let (out, from) = (filter / channels, filter % channels);
            for (x, y) in (0..p).flat_map(|x| (0..p).map(move |y| (x, y))) {
                // Places in a frame around the map.
                let (u, v) = (x + own / size, y + own % size);
                let is_inside = |place: usize| (centre..p + centre).contains(&place);
                if border == Border::Circular || (is_inside(u) && is_inside(v)) {
                    let place = |u: usize| (u + p - centre) % p;
                    let column = from * p * p + place(u) * p + place(v);
                    matrix[(out * p * p + x * p + y, column)] += f64::from(*weight);
                }
            }
        }
        largest(&matrix)
    }
}

fn largest<T: ComplexField<Real = f64>>(matrix: &Mat<T>) -> Result<f64> {
    let values = matrix.singular_values().map_err(|error| {
        Error::new("the singular values of a convolution were not found")
            .got(format_args!("{error:?}"))
            .help("choose another seed")
    })?;
    Ok(values.first().copied().unwrap_or(0.0))
}

/// Norms of a convolution with d channels, s×s filters and n×n maps; of [`Method::PruneRandom`] and
/// [`Method::PruneMagnitude`] that of the whole filters that are pruned, at random or by least L1 norm.
pub(in super::super) fn convolution(
    method: Method,
    of: &Entries,
    at: Point,
    seed: u64,
) -> Result<Measured> {
    let Point { n: p, s: size, d: channels, .. } = at;
    let mut kernel = Kernel::draw(of, channels, size, seed);
    if method == Method::Convolution {
        let circular = kernel.norm_by_frequencies(p)?;
        let padded = kernel.norm_of_matrix(p, Border::Zero)?;
        return Ok(Measured::from([
            (Metric::Norm, circular),
            (Metric::MatrixNorm, kernel.norm_of_matrix(p, Border::Circular)?),
            (Metric::PaddedNorm, padded),
            (Metric::PaddedRatio, padded / circular),
            (Metric::PaddedBound, kernel.norm_by_frequencies(p + size - 1)?),
        ]));
    }
    let filters = channels * channels;
    let count = power(filters, 1.0 - of.alpha.unwrap_or(0.0) / 2.0);
    let pruned = match method {
        Method::PruneMagnitude => {
            let own = kernel.weights.chunks_exact(size * size);
            let norms: Vec<f32> = own.map(|filter| filter.iter().map(|w| w.abs()).sum()).collect();
            super::entries::smallest(&norms, count)
        }
        _ => chosen(of.choice, filters, count, seed, 0),
    };
    // The difference has the pruned filters and no others.
    let mut is_pruned = vec![false; filters];
    pruned.into_iter().for_each(|place| is_pruned[place as usize] = true);
    for (filter, is_pruned) in kernel.weights.chunks_exact_mut(size * size).zip(is_pruned) {
        if !is_pruned {
            filter.fill(0.0);
        }
    }
    Ok(Measured::from([(Metric::DeltaNorm, kernel.norm_by_frequencies(p)?)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_give_the_norm_of_circular_maps() {
        for (p, size, channels) in [(5, 3, 2), (6, 2, 3), (4, 4, 1)] {
            let at = Point { m: 0, s: size, n: p, d: channels, variant: 0 };
            let own = convolution(Method::Convolution, &Entries::default(), at, 3).unwrap();
            let (norm, matrix) = (own[&Metric::Norm], own[&Metric::MatrixNorm]);
            assert!((norm / matrix - 1.0).abs() < 1e-12, "{own:?}");
            assert!(
                own[&Metric::PaddedNorm] <= own[&Metric::PaddedBound] * (1.0 + 1e-12),
                "{own:?}"
            );
        }
    }

    #[test]
    fn more_filters_pruned_make_a_larger_difference() {
        let at = Point { m: 0, s: 3, n: 6, d: 8, variant: 0 };
        let norm = |method, alpha| {
            let of = Entries { alpha: Some(alpha), ..Entries::default() };
            convolution(method, &of, at, 1).unwrap()[&Metric::DeltaNorm]
        };
        assert!(norm(Method::PruneRandom, 0.2) > norm(Method::PruneRandom, 1.0));
        assert!(norm(Method::PruneMagnitude, 1.0) < norm(Method::PruneRandom, 1.0));
    }
}
