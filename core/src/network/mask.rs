//! Masks: which weights of a dense MLP are kept, chosen before it is trained.
//!
//! The dense network exists nowhere. Its initial weights are a function of seed and place
//! ([`initial`]), scores are computed again wherever they are needed, and the k largest are found by
//! histograms in constant memory ([`select`]). Masks come out entry by entry, in rising order.
//!
//! | mask | by |
//! |---|---|
//! | [`synflow`] | the flow through the network: no data, or one number for each input |
//! | [`simple::magnitude`] | the size of the initial weights |
//! | [`simple::random`] | chance, with a count for each layer ([`allocate`]: uniform, `ERK`) |
//! | [`sketch`] | draws with replacement, for unbiased products (Algorithm 1 of paper SKETCH) |
//!
//! A weight's place is its flat index: layer after layer, each `outputs × inputs`, row by row.

pub mod allocate;
pub mod initial;
pub mod packed;
pub mod schedule;
pub mod select;
pub mod simple;
pub mod sketch;
pub mod synflow;

use crate::base::dims::MOST_ENTRIES;
use crate::base::error::{self, Result};
use core::ops::Range;

/// The shape of an MLP: widths from the inputs to the outputs.
///
/// ```
/// use tamis::network::mask::Mlp;
/// let net = Mlp::new(&[784, 300, 100, 10])?;
/// assert_eq!((net.layers().len(), net.weights()), (3, 266_200));
/// assert_eq!(net.layer(1).unwrap().weights(), 235_200..265_200);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mlp<'a> {
    widths: &'a [usize],
}

/// A layer of weights, and where its numbers lie among those of all layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerShape {
    /// Its number, from 0.
    pub number: usize,
    /// Columns.
    pub inputs: usize,
    /// Rows.
    pub outputs: usize,
    /// The flat index of its first weight.
    pub first: usize,
    /// Inputs of all layers before it.
    pub inputs_before: usize,
    /// Outputs of all layers before it.
    pub outputs_before: usize,
}

impl LayerShape {
    /// Its weights, as flat indices.
    #[must_use]
    pub const fn weights(&self) -> Range<usize> {
        self.first..self.first.saturating_add(self.inputs.saturating_mul(self.outputs))
    }

    /// Its inputs among those of all layers.
    #[must_use]
    pub const fn all_inputs(&self) -> Range<usize> {
        self.inputs_before..self.inputs_before.saturating_add(self.inputs)
    }

    /// Its outputs among those of all layers.
    #[must_use]
    pub const fn all_outputs(&self) -> Range<usize> {
        self.outputs_before..self.outputs_before.saturating_add(self.outputs)
    }
}

impl<'a> Mlp<'a> {
    /// # Errors
    /// [`error::Error::Range`] for fewer than two widths, a width of 0, or more weights than 32
    /// bits count.
    pub fn new(widths: &'a [usize]) -> Result<Self> {
        error::range("widths from inputs to outputs", widths.len(), 2, usize::MAX)?;
        widths
            .iter()
            .try_for_each(|&w| error::range("width of a layer", w, 1, u32::MAX as usize))?;
        let net = Self { widths };
        error::range("weights", net.weights(), 1, MOST_ENTRIES)?;
        Ok(net)
    }

    /// As given.
    #[must_use]
    pub const fn widths(&self) -> &'a [usize] {
        self.widths
    }

    /// The layers, from the inputs to the outputs.
    #[must_use]
    pub fn layers(&self) -> impl ExactSizeIterator<Item = LayerShape> + 'a {
        let mut next = LayerShape {
            number: 0,
            inputs: 0,
            outputs: 0,
            first: 0,
            inputs_before: 0,
            outputs_before: 0,
        };
        self.widths.windows(2).map(move |widths| {
            if let &[inputs, outputs] = widths {
                (next.inputs, next.outputs) = (inputs, outputs);
            }
            let layer = next;
            next.number += 1;
            next.first = layer.weights().end;
            next.inputs_before = next.inputs_before.saturating_add(next.inputs);
            next.outputs_before = next.outputs_before.saturating_add(next.outputs);
            layer
        })
    }

    /// Layer `number`, if there is one.
    #[must_use]
    pub fn layer(&self, number: usize) -> Option<LayerShape> {
        self.layers().nth(number)
    }

    /// N, weights of all layers.
    #[must_use]
    pub const fn weights(&self) -> usize {
        let (mut sum, mut left) = (0_usize, self.widths);
        while let [inputs, behind @ ..] = left {
            if let [outputs, ..] = behind {
                sum = sum.saturating_add(inputs.saturating_mul(*outputs));
            }
            left = behind;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn layers_lie_one_behind_the_other() {
        let net = Mlp::new(&[3, 5, 4, 2]).unwrap();
        assert!(net.layers().map(|l| l.weights()).eq([0..15, 15..35, 35..43]));
        let last = net.layer(2).unwrap();
        assert_eq!((last.inputs, last.outputs, last.number), (4, 2, 2));
        assert_eq!((last.inputs_before, last.outputs_before), (8, 9));
        assert_eq!(net.layer(3), None);
    }

    #[test]
    fn networks_that_cannot_be_are_refused() {
        let refused = |widths: &[usize]| matches!(Mlp::new(widths), Err(Error::Range { .. }));
        assert!(refused(&[]) && refused(&[3]) && refused(&[3, 0, 2]));
        assert!(refused(&[1 << 16, 1 << 16]) && refused(&[usize::MAX, usize::MAX, 2]));
    }
}
