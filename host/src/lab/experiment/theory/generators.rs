//! The directions whose gates the theory takes: k-sparse vectors in d dimensions.

use tamis::base::rng::{Rng, stream};
use tamis::network::gates::{Empty, Gates, Signs};
use tamis::network::weights::Weights;

use crate::Result;

const DIRECTION: u64 = stream::USER + (0x7e00 << 32);

/// m generators of k nonzeros each.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Generators {
    inputs: usize,
    weights: usize,
    /// Whether each has its opposite among them, in the block of its inputs.
    has_opposites: bool,
    /// Flat indices in m×d, rising, and their values.
    index: Vec<u32>,
    value: Vec<f32>,
}

impl Generators {
    /// All vectors of k entries ±1, subset by subset in order; none where k is not in 1 to d.
    pub(crate) fn patterns(inputs: usize, weights: usize) -> Self {
        let (index, value) = (Vec::new(), Vec::new());
        let mut own = Self { inputs, weights, has_opposites: true, index, value };
        if !(1..=inputs).contains(&weights) {
            return own;
        }
        let mut subset: Vec<usize> = (0..weights).collect();
        loop {
            for signs in 0..1_u64 << weights {
                let base = own.value.len() / weights * inputs;
                own.index.extend(subset.iter().map(|&j| (base + j) as u32));
                own.value
                    .extend((0..weights).map(|at| if signs >> at & 1 == 0 { 1.0 } else { -1.0 }));
            }
            // The last place that can still move to the right.
            let Some(at) = (0..weights).rev().find(|&at| subset[at] < inputs - weights + at) else {
                return own;
            };
            subset[at] += 1;
            (at + 1..weights).for_each(|next| subset[next] = subset[next - 1] + 1);
        }
    }

    /// `count` vectors with k standard normal entries at random places (Theorem 6).
    pub(crate) fn gaussian(inputs: usize, weights: usize, count: usize, seed: u64) -> Self {
        let (mut index, mut value) = (Vec::new(), Vec::new());
        for i in 0..count {
            let mut rng = Rng::new(seed, DIRECTION + i as u64);
            let mut places = distinct(&mut rng, inputs, weights.min(inputs));
            places.sort_unstable();
            index.extend(places.iter().map(|&j| (i * inputs + j) as u32));
            value.extend(places.iter().map(|_| rng.normal()));
        }
        Self { inputs, weights: weights.min(inputs), has_opposites: false, index, value }
    }

    /// k, the nonzeros of each.
    pub(crate) fn weights(&self) -> usize {
        self.weights
    }

    pub(crate) fn len(&self) -> usize {
        self.value.len() / self.weights.max(1)
    }

    /// The places of all pairs h and -h.
    pub(crate) fn opposites(&self) -> Vec<[usize; 2]> {
        if !self.has_opposites {
            return Vec::new();
        }
        let signs = 1_usize << self.weights;
        let blocks = (0..self.len()).step_by(signs);
        blocks
            .flat_map(|base| (0..signs / 2).map(move |at| [base + at, base + signs - 1 - at]))
            .collect()
    }

    /// Active where `x · h_i > 0`; Assumption 2 has `>= 0`, the same for normal rows.
    pub(crate) fn gates(&self) -> Result<Gates<'_>> {
        let weights = Weights::new(self.inputs, self.len(), &self.index, &self.value)?;
        Ok(Gates::of(weights, Signs::Positive, Empty::Open, 0, 1))
    }

    /// Flat indices and values of generator i, k each.
    pub(crate) fn get(&self, i: usize) -> (&[u32], &[f32]) {
        let own = i * self.weights..(i + 1) * self.weights;
        (&self.index[own.clone()], &self.value[own])
    }

    /// The angle between two of them over π: the fraction of normal rows on which gates differ.
    pub(crate) fn angle(&self, a: usize, b: usize) -> f64 {
        let entries = |i: usize| {
            let (index, value) = self.get(i);
            let base = (i * self.inputs) as u32;
            index.iter().zip(value).map(move |(&j, &v)| (j - base, f64::from(v)))
        };
        let norm = |i: usize| entries(i).map(|(_, v)| v * v).sum::<f64>().sqrt();
        let shared = |j: u32| entries(b).find(|(other, _)| *other == j).map_or(0.0, |(_, v)| v);
        let product: f64 = entries(a).map(|(j, v)| v * shared(j)).sum();
        (product / (norm(a) * norm(b))).clamp(-1.0, 1.0).acos() / std::f64::consts::PI
    }
}

/// `count` of `0..of`, all different, in random order; `count` is at most `of`.
pub(super) fn distinct(rng: &mut Rng, of: usize, count: usize) -> Vec<usize> {
    // Floyd's method: memory for what is drawn only.
    let mut drawn: Vec<usize> = Vec::with_capacity(count);
    for last in of - count..of {
        let next = rng.below(last as u32 + 1) as usize;
        drawn.push(if drawn.contains(&next) { last } else { next });
    }
    drawn
}

/// A seed of its own for the generators, so that they share nothing with the rows of the same seed.
pub(super) fn seed(cell: u64) -> u64 {
    tamis::base::rng::seed_of(cell, stream::GATE, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_all_sign_vectors_on_subsets_once() {
        let own = Generators::patterns(3, 2);
        assert_eq!(own.len(), 12);
        let dense = |i: usize| {
            let (index, value) = own.get(i);
            let mut h = [0.0; 3];
            index.iter().zip(value).for_each(|(&j, &v)| h[j as usize - 3 * i] = v);
            h
        };
        assert_eq!(
            [dense(0), dense(1), dense(2), dense(3)],
            [[1.0, 1.0, 0.0], [-1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [-1.0, -1.0, 0.0]]
        );
        assert_eq!((dense(4), dense(11)), ([1.0, 0.0, 1.0], [0.0, -1.0, -1.0]));
        let mut all: Vec<String> = (0..12).map(|i| format!("{:?}", dense(i))).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 12);
        assert_eq!(Generators::patterns(4, 4).len(), 16);
        assert!(Generators::patterns(2, 3).len() == 0 && own.gates().is_ok());
    }

    #[test]
    fn opposites_are_at_an_angle_of_pi() {
        let own = Generators::patterns(4, 2);
        let pairs = own.opposites();
        assert_eq!(pairs.len(), own.len() / 2);
        assert!(pairs.iter().all(|&[a, b]| own.angle(a, b) > 1.0 - 1e-7));
        let mut all = pairs.concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..own.len()));
        assert!(Generators::gaussian(4, 2, 6, 0).opposites().is_empty());
    }

    #[test]
    fn angles_are_those_of_the_vectors() {
        let own = Generators::patterns(3, 2);
        // (1, 1, 0) and (-1, 1, 0), (-1, -1, 0), (1, 0, 1): cosines 0, -1, 1/2.
        for (other, angle) in [(1, 0.5), (3, 1.0), (4, 1.0 / 3.0), (0, 0.0)] {
            assert!((own.angle(0, other) - angle).abs() < 1e-7, "{other}");
        }
    }

    #[test]
    fn random_generators_have_k_nonzeros_and_follow_seed() {
        let own = Generators::gaussian(9, 4, 50, 1);
        assert_eq!(own, Generators::gaussian(9, 4, 50, 1));
        assert_ne!(own, Generators::gaussian(9, 4, 50, 2));
        assert!(own.len() == 50 && own.gates().is_ok());
        let mut seen = [0; 9];
        (0..50).for_each(|i| own.get(i).0.iter().for_each(|&j| seen[j as usize - 9 * i] += 1));
        // 200 places in 9: 22 expected, standard deviation below 4.
        assert!(seen.iter().all(|&count| (8..38).contains(&count)), "{seen:?}");
    }
}
