//! Fine-tuning on columns of different units: the rows are mapped to mean 0 and deviation 1, and the network
//! with them so that it gives the same; what is trained is mapped back.
//!
//! For `x' = (x - shift) factor` a weight `w` becomes `w / factor`, and the weight from the last column, which is
//! 1 in every row, takes `sum_j w_j shift_j`. Where a neuron has no such weight nothing is shifted, since its
//! nonzeros do not change.

use crate::Result;
use crate::data::{Matrix, Problem};
use crate::train::encode::SparseLayer;
use crate::train::scaling::{Mapped, Scaling};

/// Maps of the columns of rows.
pub(crate) struct Units {
    map: Scaling,
    /// The column of ones.
    ones: Option<usize>,
}

impl Units {
    /// None where the columns are alike; `has_ones` where the last one is 1 in every row.
    pub(crate) fn of(problem: &Problem, has_ones: bool, first: &SparseLayer) -> Option<Self> {
        if !Scaling::is_needed(problem, true) {
            return None;
        }
        let ones = has_ones.then(|| problem.data.cols - 1);
        let is_biased = |neuron: &Vec<(usize, f32)>| {
            neuron.is_empty() || neuron.last().is_some_and(|&(column, _)| Some(column) == ones)
        };
        let map = Scaling::standard(&problem.data).for_network(first.neurons.iter().all(is_biased));
        Some(Self { map, ones })
    }

    /// The rows mapped.
    pub(crate) fn rows(&self, data: &Matrix) -> Result<Matrix> {
        self.map.apply(data, false)
    }

    /// The first layer of a network for rows as they are, for mapped rows.
    pub(crate) fn enter(&self, first: &mut SparseLayer) {
        self.change(first, |w, j| self.map.enter(j, w));
    }

    /// The first layer of a network for mapped rows, for rows as they are.
    pub(crate) fn leave(&self, first: &mut SparseLayer) {
        self.change(first, |w, j| self.map.leave(j, w));
    }

    fn change(&self, first: &mut SparseLayer, of: impl Fn(f64, usize) -> Mapped) {
        for neuron in &mut first.neurons {
            let mut bias = 0.0;
            for (column, w) in neuron.iter_mut().filter(|(column, _)| Some(*column) != self.ones) {
                let mapped = of(f64::from(*w), *column);
                bias += mapped.bias;
                *w = stays(mapped.weight as f32);
            }
            if let Some((column, w)) = neuron.last_mut()
                && Some(*column) == self.ones
            {
                *w = stays((f64::from(*w) + bias) as f32);
            }
        }
    }
}

/// A weight that is there stays one.
fn stays(w: f32) -> f32 {
    if w == 0.0 { f32::MIN_POSITIVE } else { w }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Task, Values};

    fn layer(neurons: Vec<Vec<(usize, f32)>>) -> SparseLayer {
        SparseLayer { inputs: 3, requested: neurons.len(), neurons, biases: Vec::new() }
    }

    fn problem() -> Problem {
        let row = |k: usize| [1000.0 + k as f32, 1e-4 * (k * k % 17) as f32, 1.0];
        let values = (0..40).flat_map(row).collect();
        let data = Matrix::new(40, 3, Values::F32(values)).unwrap();
        Problem { data, labels: vec![0.0; 40], task: Task::Regression }
    }

    fn sums(layer: &SparseLayer, data: &Matrix) -> Vec<f64> {
        let Values::F32(values) = &data.values else { unreachable!() };
        let sum = |row: &[f32], neuron: &[(usize, f32)]| {
            neuron.iter().map(|&(j, w)| f64::from(w) * f64::from(row[j])).sum::<f64>()
        };
        let rows = values.chunks(data.cols);
        rows.flat_map(|row| layer.neurons.iter().map(|neuron| sum(row, neuron))).collect()
    }

    #[test]
    fn mapped_networks_give_the_same() {
        let biased = vec![vec![(0, 0.5), (1, 3e4), (2, -510.0)], vec![(1, -2e4), (2, 0.5)]];
        let bare = vec![vec![(0, 0.01), (1, 3e4)], vec![(1, -2e4)]];
        for (neurons, is_shifted) in [(biased, true), (bare, false)] {
            let problem = problem();
            let (before, mut now) = (layer(neurons.clone()), layer(neurons));
            let units = Units::of(&problem, true, &now).unwrap();
            assert_eq!(units.map.shift[0] > 0.0, is_shifted);
            units.enter(&mut now);
            let mapped = units.rows(&problem.data).unwrap();
            let wanted = sums(&before, &problem.data);
            for (got, wanted) in sums(&now, &mapped).iter().zip(&wanted) {
                assert!((got - wanted).abs() < 2e-4 * wanted.abs().max(1.0), "{got} {wanted}");
            }
            units.leave(&mut now);
            for (got, wanted) in sums(&now, &problem.data).iter().zip(&wanted) {
                assert!((got - wanted).abs() < 2e-4 * wanted.abs().max(1.0), "{got} {wanted}");
            }
        }
        let alike = Problem { labels: vec![1.0, -1.0, 1.0, -1.0], ..problem() };
        let data = Matrix::new(4, 1, Values::F32(vec![-1.0, 1.0, 0.5, -0.5])).unwrap();
        assert!(Units::of(&Problem { data, ..alike }, false, &layer(vec![])).is_none());
    }
}
