//! A mask in one bit a weight, in the order of the flat indices.

use super::{LayerShape, Mlp};
use crate::base::error::{self, Result};

/// Words that hold a bit for each of so many weights.
#[must_use]
pub const fn words(weights: usize) -> usize {
    weights.div_ceil(u32::BITS as usize)
}

/// A mask of a network.
///
/// ```
/// use tamis::network::mask::{Mlp, packed::{Packed, insert, words}};
/// let net = Mlp::new(&[8, 4, 2])?;
/// let mut bits = [0; words(40)];
/// for index in [3, 31, 32, 39] { insert(&mut bits, index); }
/// let mask = Packed::new(net, &bits)?;
/// assert_eq!((mask.count(), mask.contains(31), mask.contains(30)), (4, true, false));
/// assert!(mask.layer(net.layer(1).unwrap()).eq([32, 39]));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packed<'a> {
    net: Mlp<'a>,
    bits: &'a [u32],
}

/// Puts the weight at a flat index into a mask; one beyond it changes nothing.
pub fn insert(bits: &mut [u32], index: u32) {
    let word = bits.get_mut((index / u32::BITS) as usize);
    debug_assert!(word.is_some(), "an index of the network");
    word.into_iter().for_each(|word| *word |= 1 << (index % u32::BITS));
}

/// Checks the words of a mask of so many weights.
pub(crate) fn check(weights: usize, bits: &[u32]) -> Result<()> {
    error::length("words of the mask", bits.len(), words(weights))?;
    let used = weights as u32 % u32::BITS;
    let spare = if used == 0 { 0 } else { bits.last().map_or(0, |word| word >> used) };
    error::range("bits behind the last weight", spare.count_ones() as usize, 0, 0)
}

impl<'a> Packed<'a> {
    /// # Errors
    /// [`error::Error::Length`] for another number of words than [`words`],
    /// [`error::Error::Range`] for bits behind the last weight that are set.
    pub fn new(net: Mlp<'a>, bits: &'a [u32]) -> Result<Self> {
        check(net.weights(), bits)?;
        Ok(Self { net, bits })
    }

    /// The network's shape.
    #[must_use]
    pub const fn net(&self) -> Mlp<'a> {
        self.net
    }

    /// As given.
    #[must_use]
    pub const fn bits(&self) -> &'a [u32] {
        self.bits
    }

    /// Weights of the mask.
    #[must_use]
    pub fn count(&self) -> usize {
        self.bits.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the weight at a flat index is in the mask.
    #[must_use]
    pub fn contains(&self, index: u32) -> bool {
        let word = self.bits.get((index / u32::BITS) as usize).copied().unwrap_or(0);
        word >> (index % u32::BITS) & 1 == 1
    }

    /// The flat indices of the mask's weights in a layer, in rising order.
    pub fn layer(&self, layer: LayerShape) -> impl Iterator<Item = u32> + use<'a> {
        let mask = *self;
        let range = layer.weights();
        let first = range.start as u32 / u32::BITS;
        let behind = range.end.div_ceil(u32::BITS as usize);
        let words = mask.bits.get(first as usize..behind).unwrap_or(&[]);
        let bits = (first..).zip(words).flat_map(|(at, &word)| {
            let mut left = word;
            core::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                left &= left.wrapping_sub(1);
                (bit < u32::BITS).then_some(at * u32::BITS + bit)
            })
        });
        bits.filter(move |&index| range.contains(&(index as usize)))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn layers_hold_what_was_put_in() {
        let net = Mlp::new(&[7, 9, 5, 1]).unwrap();
        let mut bits = std::vec![0; words(net.weights())];
        let chosen: Vec<u32> = (0..net.weights() as u32).filter(|k| k * k % 7 < 3).collect();
        chosen.iter().for_each(|&k| insert(&mut bits, k));
        let mask = Packed::new(net, &bits).unwrap();
        let all: Vec<u32> = net.layers().flat_map(|layer| mask.layer(layer)).collect();
        assert_eq!((&all, mask.count()), (&chosen, chosen.len()));
        assert!((0..net.weights() as u32).all(|k| mask.contains(k) == chosen.contains(&k)));
        assert!(!mask.contains(4_000_000));
    }

    #[test]
    fn wrong_lengths_and_trailing_bits_are_refused() {
        let net = Mlp::new(&[5, 7]).unwrap();
        assert!(Packed::new(net, &[0]).is_err() && Packed::new(net, &[0; 3]).is_err());
        assert!(Packed::new(net, &[0, 8]).is_err() && Packed::new(net, &[0, 7]).is_ok());
    }
}
