//! Whether two networks of one hidden layer and one output are the same: neuron by neuron, in
//! whatever order they stand.

use std::collections::BTreeMap;

use tamis::base::bits::sign;
use tamis::infer::model::{Layer, Model};
use tamis::network::gates::Signs;
use tamis::network::weights::{Block, Weights};
use tamis::store::wire::View;

use super::spec::Metric;
use crate::Result;
use crate::base::file::Aligned;

/// Neurons whose cosine is above this share their direction: no data tell them from one neuron.
const SAME: f64 = 0.999_999;
/// Weights below this fraction of the largest count as none: single precision cannot tell.
const NOTHING: f64 = 1e-6;

/// How much of a planted network was found; neurons that share a direction count as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Match {
    neurons: usize,
    /// With all of their inputs and no other.
    neurons_found: usize,
    weights: usize,
    weights_found: usize,
    /// Weights of the network found that stand for no planted one.
    extra: usize,
}

impl Match {
    const fn one_to_one(&self) -> bool {
        self.neurons_found == self.neurons && self.extra == 0
    }
}

/// A neuron: its output's sign, and the inputs that it reads, rising.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Neuron {
    sign: f32,
    entries: Vec<(usize, f64)>,
}

impl Neuron {
    fn norm(&self) -> f64 {
        self.entries.iter().map(|(_, w)| w * w).sum::<f64>().sqrt()
    }

    /// The cosine, and the number of inputs that both read; 0 for different signs.
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

/// The neurons of weights that carry the output signs.
pub(super) fn planted(weights: Weights<'_>, signs: Signs) -> Vec<Neuron> {
    let neuron = |block: Block<'_>| {
        let entries = block.entries().map(|(j, w)| (j, f64::from(w))).collect();
        Neuron { sign: signs.sign(block.neuron()), entries }
    };
    weights.blocks().map(neuron).collect()
}

/// The neurons of a model; none where it is of another shape.
fn of_model(model: &Model<'_>) -> Option<Vec<Neuron>> {
    let [Layer::Csr(hidden), Layer::Sum(sum)] = model.layers() else { return None };
    let mut weights = hidden.columns().iter().zip(hidden.values());
    let neuron = |(i, &count): (usize, &u16)| {
        let sign = sign(sum.signs(), i);
        let own = weights.by_ref().take(count.into());
        let entries = own.map(|(&j, &w)| (j.into(), f64::from(sign * w))).collect();
        Some(Neuron { sign, entries })
    };
    hidden.counts().iter().enumerate().map(neuron).collect()
}

/// What a model, if the bytes are one, has of a planted network.
pub(super) fn measure(
    model: &[u8],
    planted: Option<&[Neuron]>,
    exact: bool,
) -> Result<BTreeMap<Metric, f64>> {
    let yes = |yes: bool| f64::from(u8::from(yes));
    let mut measured = BTreeMap::from([(Metric::Exact, yes(exact))]);
    let bytes = Aligned::new(model);
    if let Some((planted, found)) = planted.zip(of_model(View::parse(&bytes)?.model())) {
        let found = compare(planted, &found);
        measured.insert(Metric::OneToOne, yes(found.one_to_one()));
        let fraction = found.weights_found as f64 / found.weights.max(1) as f64;
        measured.insert(Metric::WeightsFound, fraction);
        measured.insert(Metric::ExtraWeights, found.extra as f64);
    }
    Ok(measured)
}

/// Matches the neurons of `found` with the planted ones, the most similar first, each at most once.
fn compare(planted: &[Neuron], found: &[Neuron]) -> Match {
    let (planted, found) = (joined(planted), joined(found));
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
fn joined(all: &[Neuron]) -> Vec<Neuron> {
    let weights = all.iter().flat_map(|neuron| &neuron.entries);
    let largest = weights.fold(0.0_f64, |most, (_, w)| most.max(w.abs()));
    let mut neurons: Vec<Neuron> = Vec::new();
    for Neuron { sign, entries } in all {
        let entries =
            entries.iter().copied().filter(|(_, w)| w.abs() > NOTHING * largest).collect();
        let new = Neuron { sign: *sign, entries };
        if new.entries.is_empty() {
            continue;
        }
        let same = |old: &&mut Neuron| {
            let (cosine, shared) = old.against(&new);
            cosine > SAME && shared == old.entries.len() && shared == new.entries.len()
        };
        match neurons.iter_mut().find(same) {
            Some(old) => {
                old.entries.iter_mut().zip(&new.entries).for_each(|(old, new)| old.1 += new.1);
            }
            None => neurons.push(new),
        }
    }
    neurons
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(index: &[u32], value: &[f32]) -> Vec<Neuron> {
        planted(Weights::new(10, 4, index, value).unwrap(), Signs::Positive)
    }

    #[test]
    fn neuron_order_and_empty_neurons_are_ignored() {
        let planted = weights(&[0, 3, 25, 31], &[1.0, -2.0, 0.5, 1.0]);
        let found = weights(&[5, 11, 20, 23], &[0.5, 1.0, 1.0, -2.0]);
        let same = compare(&planted, &found);
        assert_eq!(
            same,
            Match { neurons: 3, neurons_found: 3, weights: 4, weights_found: 4, extra: 0 }
        );
        assert!(same.one_to_one());
    }

    #[test]
    fn neurons_of_one_direction_are_one() {
        // Neurons 0 and 2 read input 3 alone, both rightwards; neuron 3 reads it leftwards.
        let planted = weights(&[3, 23, 33], &[1.0, 2.0, -1.0]);
        let found = weights(&[13, 33], &[3.0, -1.0]);
        assert!(compare(&planted, &found).one_to_one());
        assert_eq!(compare(&planted, &found).neurons, 2);
        assert!(!compare(&planted, &weights(&[13, 33], &[3.0, 1.0])).one_to_one());
    }

    #[test]
    fn missing_and_extra_weights_are_counted() {
        let planted = weights(&[0, 3, 25], &[1.0, -2.0, 0.5]);
        let found = weights(&[0, 4, 15, 38], &[1.0, -2.0, 0.5, 1e-9]);
        let close = compare(&planted, &found);
        assert_eq!(
            close,
            Match { neurons: 2, neurons_found: 1, weights: 3, weights_found: 2, extra: 1 }
        );
        assert!(!close.one_to_one());
        assert_eq!(compare(&planted, &weights(&[], &[])).weights_found, 0);
    }

    #[test]
    fn signs_tell_neurons_apart() {
        let of = |signs| planted(Weights::new(10, 4, &[0, 13], &[1.0, 1.0]).unwrap(), signs);
        assert!(compare(&of(Signs::Balanced), &of(Signs::Balanced)).one_to_one());
        assert_eq!(compare(&of(Signs::Balanced), &of(Signs::Positive)).neurons_found, 1);
    }
}
