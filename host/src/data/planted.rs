//! Planted problems: labels from a network, or a linear measurement, whose sparse weights are known.

use super::{Matrix, Values};
use rayon::prelude::*;
use tamis::dims::Dims;
use tamis::error::Result;
use tamis::gates::Signs;
use tamis::rng::{Rng, stream};
use tamis::samples::{NormalRows, Samples};
use tamis::weights::Weights;

/// Stream of the planted positions and values.
const WEIGHTS: u64 = stream::USER;

/// A data set and the weights that made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Planted {
    /// n×d standard normal samples.
    pub data: Matrix,
    /// n labels, rounded once from double precision.
    pub labels: Vec<f32>,
    /// Flat indices of the planted weights, rising.
    pub index: Vec<u32>,
    /// Their values.
    pub value: Vec<f32>,
    /// Hidden neurons, m.
    pub hidden: usize,
    /// Output signs.
    pub signs: Signs,
}

impl Planted {
    /// The planted weights as the algorithms see weights.
    ///
    /// # Errors
    /// None for what [`network`] and [`linear`] make.
    pub fn weights(&self) -> Result<Weights<'_>> {
        Weights::new(self.data.cols, self.hidden, &self.index, &self.value)
    }
}

/// `y = sum_i v_i relu(w_i · x)`: s weights N(0, 1) at random places of m×d, x standard normal (paper IHT, 5.1).
///
/// # Errors
/// [`tamis::Error::Range`] if a size is out of bounds.
pub fn network(dims: Dims, signs: Signs, seed: u64) -> Result<Planted> {
    plant(dims, signs, seed, |z, sign| sign * (sign * z).max(0.0))
}

/// `y = w · x` with one block: the Gaussian sensing problem.
///
/// # Errors
/// [`tamis::Error::Range`] if a size is out of bounds.
pub fn linear(samples: usize, inputs: usize, nnz: usize, seed: u64) -> Result<Planted> {
    plant(Dims::new(samples, inputs, 1, nnz), Signs::Positive, seed, |z, _| z)
}

fn plant(dims: Dims, signs: Signs, seed: u64, unit: impl Fn(f64, f64) -> f64 + Sync) -> Result<Planted> {
    dims.check()?;
    let (index, value) = draw_weights(&dims, seed);
    let rows = NormalRows::new(seed, dims.samples, dims.inputs);
    let mut values = vec![0.0_f32; dims.samples * dims.inputs];
    let mut labels = vec![0.0_f32; dims.samples];
    let w = Weights::new(dims.inputs, dims.hidden, &index, &value)?;
    values.par_chunks_mut(dims.inputs).zip(&mut labels).enumerate().try_for_each(|(k, (row, label))| {
        { rows }.row(k, row)?;
        let output = |block: tamis::weights::Block<'_>| {
            let z = block.entries().map(|(j, v)| f64::from(v) * f64::from(row[j])).sum();
            unit(z, f64::from(signs.sign(block.neuron())))
        };
        *label = w.blocks().map(output).sum::<f64>() as f32;
        Ok::<(), tamis::Error>(())
    })?;
    let data = Matrix { rows: dims.samples, cols: dims.inputs, values: Values::F32(values) };
    Ok(Planted { data, labels, index, value, hidden: dims.hidden, signs })
}

/// s distinct places of m·d, each set of places as likely as any other, and their values.
fn draw_weights(dims: &Dims, seed: u64) -> (Vec<u32>, Vec<f32>) {
    let mut rng = Rng::new(seed, WEIGHTS);
    let mut places = std::collections::BTreeSet::new();
    let len = dims.parameters() as u32;
    for top in len - dims.nnz as u32..len {
        let pick = rng.below(top + 1);
        if !places.insert(pick) {
            places.insert(top);
        }
    }
    (places.into_iter().collect(), (0..dims.nnz).map(|_| rng.normal()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_the_planted_network() {
        let made = network(Dims::new(30, 7, 4, 9), Signs::Balanced, 3).unwrap();
        let Values::F32(x) = &made.data.values else { panic!("floats") };
        assert_eq!((made.index.len(), made.value.len()), (9, 9));
        let mut dense = vec![0.0_f64; 4 * 7];
        for (&j, &v) in made.index.iter().zip(&made.value) {
            dense[j as usize] = f64::from(v);
        }
        for (row, label) in x.chunks(7).zip(&made.labels) {
            let neuron = |w: &[f64]| w.iter().zip(row).map(|(w, &x)| w * f64::from(x)).sum::<f64>();
            let z: Vec<f64> = dense.chunks(7).map(neuron).collect();
            // Odd neurons count negatively: u = v w, so the unit is v relu(u·x) = -relu(-w·x).
            let y = z[0].max(0.0) + z[1].min(0.0) + z[2].max(0.0) + z[3].min(0.0);
            assert!((y - f64::from(*label)).abs() <= 1e-6 * y.abs().max(1.0), "{y} {label}");
        }
    }

    #[test]
    fn every_place_can_be_drawn_and_all_of_them() {
        let full = network(Dims::new(1, 5, 3, 15), Signs::Positive, 0).unwrap();
        assert_eq!(full.index, (0..15).collect::<Vec<u32>>());
        let mut seen = [0; 15];
        for seed in 0..300 {
            seen[network(Dims::new(1, 5, 3, 1), Signs::Positive, seed).unwrap().index[0] as usize] += 1;
        }
        assert!(seen.iter().all(|&c| c > 5), "{seen:?}");
    }

    #[test]
    fn more_samples_begin_with_the_same_rows() {
        let make = |n| network(Dims::new(n, 6, 2, 4), Signs::Positive, 8).unwrap();
        assert_eq!(make(20).labels[..10], make(10).labels);
    }
}
