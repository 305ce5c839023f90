//! The scalar output layer `f = sum_j v_j x_j`, `v_j` = ±1: one bit per neuron.

use crate::Result;
use crate::base::error::{length, range, tri};

/// `f = sum_j v_j x_j` with one sign bit per neuron.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sum<'a> {
    inputs: usize,
    signs: &'a [u32],
}

impl<'a> Sum<'a> {
    /// A sum over `inputs` neurons; bit `j % 32` of `signs[j / 32]` is 1 where `v_j` is -1.
    ///
    /// # Errors
    /// [`crate::Error::Length`] unless there are `inputs / 32` words, rounded up;
    /// [`crate::Error::Range`] if a bit past `inputs` is set.
    pub const fn new(inputs: usize, signs: &'a [u32]) -> Result<Self> {
        tri!(length("sign words", signs.len(), inputs.div_ceil(32)));
        let in_last = if inputs.is_multiple_of(32) { 32 } else { inputs % 32 };
        let used = if let [.., last] = signs { u32::BITS - last.leading_zeros() } else { 0 };
        tri!(range("neurons in the last sign word", used as usize, 0, in_last));
        Ok(Self { inputs, signs })
    }

    /// Neurons that are added.
    pub const fn inputs(&self) -> usize {
        self.inputs
    }

    /// The sign bits, 32 neurons a word.
    pub const fn signs(&self) -> &'a [u32] {
        self.signs
    }

    /// Adds the activations to `total` in order, as many as there are inputs; they come as an
    /// iterator so that none has to be in memory; `None` where one is missing.
    #[inline(always)]
    pub(crate) fn add(&self, mut total: f32, x: impl Iterator<Item = Option<f32>>) -> Option<f32> {
        let mut words = self.signs.iter();
        let mut word = 0;
        for (j, value) in x.enumerate() {
            if j % 32 == 0 {
                word = words.next().copied().unwrap_or(0);
            }
            let value = value?;
            total = if word & 1 == 0 { total + value } else { total - value };
            word >>= 1;
        }
        Some(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn signs_run_over_words() {
        let sum = Sum::new(34, &[1 << 31, 0b10]).unwrap();
        let f = sum
            .add(0.0, (0..34).map(|i| Some(if [31, 33].contains(&i) { 5.0 } else { 1.0 })))
            .unwrap();
        assert_eq!(f, 32.0 - 10.0);
        assert_eq!(Sum::new(0, &[]).unwrap().add(0.0, core::iter::empty()), Some(0.0));
    }

    #[test]
    fn bits_past_the_last_neuron_are_refused() {
        assert!(Sum::new(32, &[u32::MAX]).is_ok());
        assert_eq!(
            Sum::new(2, &[0b100]),
            Err(Error::Range { what: "neurons in the last sign word", min: 0, max: 2, got: 3 })
        );
        assert_eq!(
            Sum::new(33, &[0]),
            Err(Error::Length { what: "sign words", expected: 2, got: 1 })
        );
    }
}
