//! The fields of a layer before its arrays, and how long those are.

use super::reader::{Reader, activation, removed};
use super::{CSR_HEADER, SECTION, TAG_BLOCKS, TAG_DENSE, TAG_MASK, TAG_SUM, TAG_WINDOWS, padded};
use crate::base::error::{expect, range, tri};
use crate::infer::model::{Activation, MAX_INPUTS, MAX_OUTPUTS, windows};
use crate::{Error, Result};

/// The fields of a layer of floats or integers, or of a sum, and the bytes of its arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) tag: u16,
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    pub(crate) nonzeros: usize,
    pub(crate) requested: usize,
    pub(crate) activation: Activation,
    /// Words of factors and of biases that come before the weights; none in layers of floats.
    pub(crate) factors: usize,
    pub(crate) biases: usize,
    /// Bytes of the arrays in the order of the specification, without padding: in layers of floats
    /// the biases are the last, of a sum there are its signs.
    pub(crate) arrays: [usize; 4],
}

impl Head {
    /// Of a layer of floats in rows or windows.
    pub(super) const fn floats(p: &mut Reader<'_>, tag: u16) -> Result<Self> {
        let [inputs, outputs, nonzeros, requested] = tri!(p.words());
        let activation = tri!(activation(p));
        let (at, has_biases) = (p.at, tri!(p.u16()));
        tri!(biases(at, outputs, has_biases));
        let arrays = float_arrays(tag, inputs, outputs, nonzeros, has_biases as usize * outputs);
        let (factors, biases) = (0, 0);
        Ok(Self { tag, inputs, outputs, nonzeros, requested, activation, factors, biases, arrays })
    }

    /// Of a sum.
    pub(super) const fn sum(p: &mut Reader<'_>) -> Result<Self> {
        let inputs = tri!(p.u32()) as usize;
        Ok(Self {
            tag: TAG_SUM,
            inputs,
            outputs: 1,
            nonzeros: inputs,
            requested: 1,
            activation: Activation::Identity,
            factors: 0,
            biases: 0,
            arrays: [inputs.div_ceil(32).saturating_mul(4), 0, 0, 0],
        })
    }

    /// Of a layer of integers in a section that starts at `section`.
    pub(super) const fn integers(p: &mut Reader<'_>, tag: u16, section: usize) -> Result<Self> {
        let [inputs, outputs, nonzeros, requested] = tri!(p.words());
        tri!(range("inputs of a layer", inputs, 0, MAX_INPUTS));
        tri!(range("outputs of a layer", outputs, 0, MAX_OUTPUTS));
        let activation = tri!(activation(p));
        let at = p.at;
        let [factors, biases] = tri!(p.u16()).to_le_bytes();
        let factors = match factors {
            0 | 1 => factors as usize,
            2 if outputs > 1 => outputs,
            _ => {
                let (what, got) = ("factors", factors as u32);
                return Err(Error::Format { what, at, expected: 0, got });
            }
        };
        tri!(self::biases(at + 1, outputs, biases as u16));
        let biases = outputs * biases as usize;
        let at = p.at;
        match tri!(p.u32()) {
            0 => {}
            // A list of the inputs that have weights, which earlier programs wrote.
            _ if tag != TAG_BLOCKS => return Err(removed(section, tag)),
            got => return Err(Error::Format { what: "reserved", at, expected: 0, got }),
        }
        let [first, second] = integer_arrays(tag, inputs, outputs, nonzeros);
        let arrays = [first, second, 0, 0];
        Ok(Self { tag, inputs, outputs, nonzeros, requested, activation, factors, biases, arrays })
    }

    /// Bytes of all arrays with their padding.
    #[cfg(feature = "embedded-storage")]
    pub(crate) fn bytes(&self) -> usize {
        let words = self.factors.saturating_add(self.biases).saturating_mul(4);
        let [a, b, c, d] = self.arrays.map(padded);
        words.saturating_add(a).saturating_add(b).saturating_add(c).saturating_add(d)
    }

    /// Where array `k` starts, less where the arrays start.
    #[cfg(feature = "embedded-storage")]
    pub(crate) fn start(&self, k: usize) -> usize {
        let before = self.arrays.iter().take(k).map(|&len| padded(len)).sum::<usize>();
        4 * (self.factors + self.biases) + before
    }
}

/// Checks the field that says whether there is a bias for each output, at byte `at`. Without
/// outputs there is nothing to add biases to.
const fn biases(at: usize, outputs: usize, got: u16) -> Result<()> {
    let most = (outputs > 0) as u16;
    let expected = if got < most { got } else { most };
    expect("biases", at, expected as u32, got as u32)
}

/// Bytes of the arrays of a layer of floats, in the order of the specification.
#[inline(always)]
pub(super) const fn float_arrays(
    tag: u16,
    inputs: usize,
    outputs: usize,
    nonzeros: usize,
    biases: usize,
) -> [usize; 4] {
    let [counts, columns] = match tag {
        TAG_WINDOWS => [outputs.saturating_mul(windows(inputs)), nonzeros],
        _ => [outputs.saturating_mul(2), nonzeros.saturating_mul(2)],
    };
    [counts, columns, nonzeros.saturating_mul(4), biases.saturating_mul(4)]
}

/// Bytes of a layer of floats with this tag, its section header included.
pub(super) const fn float_len(
    tag: u16,
    inputs: usize,
    outputs: usize,
    nonzeros: usize,
    biases: usize,
) -> usize {
    let [counts, columns, values, biases] = float_arrays(tag, inputs, outputs, nonzeros, biases);
    (SECTION + CSR_HEADER)
        .saturating_add(padded(counts))
        .saturating_add(padded(columns))
        .saturating_add(values)
        .saturating_add(biases)
}

/// Bytes of the arrays of a layer of integers, in the order of the specification.
#[inline(always)]
pub(super) const fn integer_arrays(
    tag: u16,
    inputs: usize,
    outputs: usize,
    nonzeros: usize,
) -> [usize; 2] {
    match tag {
        TAG_DENSE => [outputs.saturating_mul(inputs), 0],
        TAG_MASK => [outputs.saturating_mul(inputs.div_ceil(32)).saturating_mul(4), nonzeros],
        _ => [outputs.saturating_mul(windows(inputs)), nonzeros.saturating_mul(2)],
    }
}
