//! Masks that need the network's shape and its initial weights only: by magnitude, and at random.

use super::initial::Initial;
use super::select::{Scores, largest, sampled};
use super::{LayerShape, Mlp};
use crate::base::error::{self, Result};
use crate::base::rng::{CounterRng, stream};

/// Score of a weight that is not wanted, in units of that of others: so small that no chance makes up
/// for it.
const OTHERS: f32 = 1e-12;

/// Calls `emit` with the flat indices of the `count` largest initial weights of all layers, in
/// rising order. `bins` has [`super::select::BINS`] words.
///
/// # Errors
/// As [`largest`].
pub fn magnitude(
    net: &Mlp<'_>,
    weights: Initial,
    count: usize,
    bins: &mut [u32],
    emit: impl FnMut(u32),
) -> Result<()> {
    largest(&mut Magnitude { net: *net, weights }, count, bins, emit)
}

/// `|w|` of the initial weights.
struct Magnitude<'a> {
    net: Mlp<'a>,
    weights: Initial,
}

impl Scores for Magnitude<'_> {
    fn each(&mut self, mut take: impl FnMut(u32, f32)) {
        for layer in self.net.layers() {
            let weights = self.weights.layer(&layer);
            let mut index = layer.first as u32;
            for row in 0..layer.outputs as u32 {
                for column in 0..layer.inputs as u32 {
                    take(index, weights.weight(row, column).abs());
                    index = index.wrapping_add(1);
                }
            }
        }
    }
}

/// Calls `emit` with the flat indices of a random mask of so many weights in each layer
/// ([`super::allocate`]), in rising order; every choice is equally likely. `bins` has
/// [`super::select::BINS`] words.
///
/// # Errors
/// [`error::Error::Length`] for counts of another number of layers, [`error::Error::Range`] for
/// more weights than a layer has, and as [`largest`].
///
/// ```
/// use tamis::network::mask::{Mlp, allocate::{Allocation, Bounds}, select::BINS, simple};
/// let net = Mlp::new(&[30, 20, 5])?;
/// let mut counts = [0; 2];
/// Allocation::ErdosRenyi.share(&net, 70, Bounds::at_least(1), &mut counts)?;
/// let mut mask = Vec::new();
/// simple::random(&net, &counts, 7, &mut [0; BINS], |index| mask.push(index))?;
/// assert_eq!(mask.iter().filter(|&&index| index < 600).count(), counts[0]);
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn random(
    net: &Mlp<'_>,
    counts: &[usize],
    seed: u64,
    bins: &mut [u32],
    mut emit: impl FnMut(u32),
) -> Result<()> {
    error::length("counts of the layers", counts.len(), net.layers().len())?;
    for (layer, &count) in net.layers().zip(counts) {
        error::range("weights of a layer", count, 0, layer.weights().len())?;
        random_among(layer, count, seed, bins, |_| true, &mut emit)?;
    }
    Ok(())
}

/// So many weights of one layer at random, as [`random`]: those that `is_wanted` says so of, and where
/// these are too few, others too.
pub(crate) fn random_among(
    layer: LayerShape,
    count: usize,
    seed: u64,
    bins: &mut [u32],
    is_wanted: impl Fn(usize) -> bool,
    emit: impl FnMut(u32),
) -> Result<()> {
    let rng = CounterRng::new(seed, stream::MASK);
    largest(&mut Chance { layer, rng, is_wanted }, count, bins, emit)
}

/// The same score for every weight of a layer that is wanted, sampled.
struct Chance<F> {
    layer: LayerShape,
    rng: CounterRng,
    is_wanted: F,
}

impl<F: Fn(usize) -> bool> Scores for Chance<F> {
    fn each(&mut self, mut take: impl FnMut(u32, f32)) {
        for index in self.layer.weights() {
            let score = if (self.is_wanted)(index) { 1.0 } else { OTHERS };
            take(index as u32, sampled(score, &self.rng, index as u32));
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::initial::Law;
    use super::super::select::BINS;
    use super::*;
    use std::{vec, vec::Vec};

    #[test]
    fn exactly_count_largest_weights_selected_despite_ties() {
        let net = Mlp::new(&[30, 20, 10]).unwrap();
        for law in [Law::HeNormal, Law::Uniform, Law::Signs] {
            let weights = Initial { seed: 3, law };
            for count in [1, 5, 77, 800] {
                let mut mask = Vec::new();
                magnitude(&net, weights, count, &mut vec![0; BINS], |k| mask.push(k)).unwrap();
                let mut all: Vec<u32> = (0..800).collect();
                let size = |k: &u32| weights.weight(&net, *k).abs();
                all.sort_by(|a, b| size(b).total_cmp(&size(a)).then(a.cmp(b)));
                all.truncate(count);
                all.sort_unstable();
                assert_eq!(mask, all, "{law:?} {count}");
            }
        }
    }

    #[test]
    fn random_masks_are_uniform_seeded_and_exact_count() {
        let net = Mlp::new(&[10, 8, 6]).unwrap();
        let mut hits = [0; 128];
        let mut seen = Vec::new();
        for seed in 0..4000 {
            let mut mask = Vec::new();
            random(&net, &[20, 12], seed, &mut vec![0; BINS], |k| mask.push(k)).unwrap();
            assert_eq!(mask.iter().filter(|&&k| k < 80).count(), 20);
            assert!(mask.len() == 32 && mask.is_sorted());
            mask.iter().for_each(|&k| hits[k as usize] += 1);
            seen.push(mask);
        }
        // Each entry is in a quarter of the masks; the standard error is 27.4.
        assert!(hits.iter().all(|hits: &i32| hits.abs_diff(1000) < 130), "{hits:?}");
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 4000);
    }

    #[test]
    fn counts_beyond_a_layer_are_refused() {
        let net = Mlp::new(&[4, 3, 2]).unwrap();
        let run = |counts: &[usize]| random(&net, counts, 0, &mut vec![0; BINS], |_| ()).is_err();
        assert!(run(&[13, 1]) && run(&[1]) && !run(&[12, 6]));
    }
}
