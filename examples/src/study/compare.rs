//! Whether two networks are the same: neuron by neuron, in whatever order they stand.

use serde::{Deserialize, Serialize};
use tamis::gates::Signs;
use tamis::weights::Weights;

/// Neurons whose cosine is above this share their direction: they are one neuron in two parts.
const SAME: f64 = 0.999_999;
/// Weights below this part of the largest of their network count as none: single precision cannot tell them from 0.
const NOTHING: f64 = 1e-6;

/// How much of a planted network was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Match {
    /// Planted neurons with weights, those that share a direction counted as one.
    pub neurons: usize,
    /// Those found with all of their inputs and no other.
    pub neurons_found: usize,
    /// Weights of the planted neurons.
    pub weights: usize,
    /// Those found, each planted neuron matched with at most one that was found.
    pub weights_found: usize,
    /// Weights of the network found that stand for no planted one.
    pub extra: usize,
}

impl Match {
    /// Whether each planted weight was found and no other.
    #[must_use]
    pub const fn one_to_one(&self) -> bool {
        self.neurons_found == self.neurons && self.extra == 0
    }
}

/// A neuron: its output's sign, and the inputs that it reads, rising.
#[derive(Debug, Clone)]
struct Neuron {
    sign: f32,
    entries: Vec<(usize, f64)>,
}

impl Neuron {
    fn norm(&self) -> f64 {
        self.entries.iter().map(|(_, w)| w * w).sum::<f64>().sqrt()
    }

    /// The cosine, and the inputs that both read. Neurons of different signs have nothing in common.
    fn against(&self, other: &Self) -> (f64, usize) {
        if self.sign != other.sign {
            return (0.0, 0);
        }
        let (mut product, mut shared) = (0.0, 0);
        let mut others = other.entries.iter().peekable();
        for (input, w) in &self.entries {
            while others.next_if(|(j, _)| j < input).is_some() {}
            if let Some((_, v)) = others.next_if(|(j, _)| j == input) {
                product += w * v;
                shared += 1;
            }
        }
        (product / (self.norm() * other.norm()), shared)
    }
}

/// Matches the neurons of `found` with the planted ones, the most similar first, each at most once.
#[must_use]
pub fn compare(planted: (Weights<'_>, Signs), found: (Weights<'_>, Signs)) -> Match {
    let (planted, found) = (neurons(planted), neurons(found));
    let mut pairs = Vec::new();
    for (i, a) in planted.iter().enumerate() {
        for (k, b) in found.iter().enumerate() {
            let (cosine, shared) = a.against(b);
            if cosine > 0.0 {
                pairs.push((cosine, i, k, shared));
            }
        }
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut taken, mut used) = (vec![false; planted.len()], vec![false; found.len()]);
    let (mut neurons_found, mut weights_found) = (0, 0);
    for (_, i, k, shared) in pairs {
        if taken[i] || used[k] {
            continue;
        }
        (taken[i], used[k]) = (true, true);
        weights_found += shared;
        let whole = shared == planted[i].entries.len() && shared == found[k].entries.len();
        neurons_found += usize::from(whole);
    }
    let count = |neurons: &[Neuron]| neurons.iter().map(|n| n.entries.len()).sum::<usize>();
    Match {
        neurons: planted.len(),
        neurons_found,
        weights: count(&planted),
        weights_found,
        extra: count(&found) - weights_found,
    }
}

/// The neurons that have weights, those of one direction added up.
fn neurons((weights, signs): (Weights<'_>, Signs)) -> Vec<Neuron> {
    let largest = weights.value().iter().fold(0.0_f64, |most, w| most.max(f64::from(w.abs())));
    let mut neurons: Vec<Neuron> = Vec::new();
    for block in weights.blocks() {
        let entries = block.entries().map(|(j, w)| (j, f64::from(w)));
        let entries: Vec<_> = entries.filter(|(_, w)| w.abs() > NOTHING * largest).collect();
        let new = Neuron { sign: signs.sign(block.neuron()), entries };
        if new.entries.is_empty() {
            continue;
        }
        let same = |old: &&mut Neuron| {
            let (cosine, shared) = old.against(&new);
            cosine > SAME && shared == old.entries.len() && shared == new.entries.len()
        };
        match neurons.iter_mut().find(same) {
            Some(old) => old.entries.iter_mut().zip(&new.entries).for_each(|(old, new)| old.1 += new.1),
            None => neurons.push(new),
        }
    }
    neurons
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights<'a>(index: &'a [u32], value: &'a [f32]) -> (Weights<'a>, Signs) {
        (Weights::new(10, 4, index, value).unwrap(), Signs::Positive)
    }

    #[test]
    fn order_does_not_matter_and_empty_neurons_do_not_count() {
        let planted = weights(&[0, 3, 25, 31], &[1.0, -2.0, 0.5, 1.0]);
        let found = weights(&[5, 11, 20, 23], &[0.5, 1.0, 1.0, -2.0]);
        let same = compare(planted, found);
        assert_eq!(same, Match { neurons: 3, neurons_found: 3, weights: 4, weights_found: 4, extra: 0 });
        assert!(same.one_to_one());
    }

    #[test]
    fn neurons_of_one_direction_are_one() {
        // Neurons 0 and 2 read input 3 alone, both rightwards; neuron 3 reads it leftwards.
        let planted = weights(&[3, 23, 33], &[1.0, 2.0, -1.0]);
        let found = weights(&[13, 33], &[3.0, -1.0]);
        assert!(compare(planted, found).one_to_one());
        assert_eq!(compare(planted, found).neurons, 2);
        assert!(!compare(planted, weights(&[13, 33], &[3.0, 1.0])).one_to_one());
    }

    #[test]
    fn missing_and_extra_weights_are_counted() {
        let planted = weights(&[0, 3, 25], &[1.0, -2.0, 0.5]);
        let found = weights(&[0, 4, 15, 38], &[1.0, -2.0, 0.5, 1e-9]);
        let close = compare(planted, found);
        assert_eq!(close, Match { neurons: 2, neurons_found: 1, weights: 3, weights_found: 2, extra: 1 });
        assert!(!close.one_to_one());
        assert_eq!(compare(planted, weights(&[], &[])).weights_found, 0);
    }

    #[test]
    fn signs_tell_neurons_apart() {
        let (planted, _) = weights(&[0, 13], &[1.0, 1.0]);
        let all = compare((planted, Signs::Balanced), (planted, Signs::Balanced));
        assert!(all.one_to_one());
        assert_eq!(compare((planted, Signs::Balanced), (planted, Signs::Positive)).neurons_found, 1);
    }
}
