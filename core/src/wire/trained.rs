//! What the trainer holds, written without a copy: one hidden layer and the signs of its neurons.

use super::write::{CsrHead, Writer};
use super::{HEADER, csr_len, sum_len};
use crate::error::{finite, length, range};
use crate::model::{Activation, MAX_INPUTS};
use crate::{Error, Result};

/// One trained hidden layer, `f(x) = sum_i v_i relu(w_i x)`, as its sorted nonzero entries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trained<'a> {
    /// Numbers in one input row, at most 65536.
    pub inputs: usize,
    /// Hidden neurons asked for. Those without entries are not written.
    pub hidden: usize,
    /// `neuron * inputs + input` of each entry, strictly rising.
    pub index: &'a [u32],
    /// The weight of each entry.
    pub value: &'a [f32],
}

impl<'a> Trained<'a> {
    /// Exactly the bytes that [`encode`](Self::encode) writes.
    ///
    /// # Errors
    /// Those of [`encode`](Self::encode), but for the buffer.
    pub fn encoded_len(&self) -> Result<usize> {
        self.check()?;
        Ok(shallow_len(self.neurons().count(), self.value.len()))
    }

    /// Writes the model to the start of `out` and gives its length in bytes. `negative(i)` says that `v_i` is -1.
    ///
    /// # Errors
    /// [`Error::Range`] for no input or more than 65536, for an index past the last neuron, or for a neuron with
    /// more than 65535 entries; [`Error::Length`] if there are not as many values as indices;
    /// [`Error::Unsorted`] if the indices do not rise; [`Error::NotFinite`] for a NaN or infinite weight;
    /// [`Error::Budget`] if `out` is too short (nothing is written then).
    pub fn encode(&self, out: &mut [u8], negative: impl Fn(usize) -> bool) -> Result<usize> {
        let needed = self.encoded_len()?;
        let (neurons, nonzeros) = (self.neurons().count(), self.value.len());
        let mut writer = Writer::new(out, needed)?;
        writer.header(self.inputs, 1)?;
        writer.csr_head(&CsrHead {
            inputs: self.inputs,
            outputs: neurons,
            nonzeros,
            requested: self.hidden,
            activation: Activation::Relu,
        })?;
        writer.u16s(self.neurons().map(|(_, row)| row.len() as u16))?;
        writer.u16s(self.index.iter().map(|&index| (index as usize % self.inputs) as u16))?;
        writer.f32s(self.value)?;
        writer.sum_head(neurons)?;
        writer.signs(self.neurons().map(|(neuron, _)| negative(neuron)))?;
        writer.finish()
    }

    fn check(&self) -> Result<()> {
        range("inputs of a layer", self.inputs, 1, MAX_INPUTS)?;
        range("hidden neurons", self.hidden, 0, u32::MAX as usize)?;
        length("values", self.value.len(), self.index.len())?;
        if let Some(down) = self.index.iter().zip(self.index.iter().skip(1)).position(|(a, b)| a >= b) {
            return Err(Error::Unsorted { at: down + 1 });
        }
        let used = self.index.last().map_or(0, |&last| last as usize / self.inputs + 1);
        range("neurons used", used, 0, self.hidden)?;
        let most = self.neurons().map(|(_, row)| row.len()).max().unwrap_or(0);
        range("entries of one neuron", most, 0, usize::from(u16::MAX))?;
        finite("weights", self.value)
    }

    /// The neurons that have entries, and the indices of each.
    fn neurons(&self) -> impl Iterator<Item = (usize, &'a [u32])> {
        let inputs = self.inputs.max(1);
        let neuron = move |index: u32| index as usize / inputs;
        let rows = self.index.chunk_by(move |&a, &b| neuron(a) == neuron(b));
        rows.map(move |row| (row.first().map_or(0, |&first| neuron(first)), row))
    }
}

/// The most bytes that a trained hidden layer takes: for the length of a buffer, before training.
///
/// ```
/// const BYTES: usize = tamis::wire::max_len(10, 100);
/// assert_eq!(BYTES, 24 + 28 + 20 + 200 + 400 + 16);
/// ```
#[must_use]
pub const fn max_len(hidden: usize, nonzeros: usize) -> usize {
    shallow_len(if hidden < nonzeros { hidden } else { nonzeros }, nonzeros)
}

const fn shallow_len(neurons: usize, nonzeros: usize) -> usize {
    HEADER.saturating_add(csr_len(neurons, nonzeros)).saturating_add(sum_len(neurons))
}
