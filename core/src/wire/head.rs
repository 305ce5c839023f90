//! What stands before the arrays of a layer, and how long these are: all of a file that need not be read to know its
//! structure.

use super::read::{Reader, activation, expect, later};
use super::{TAG_BLOCKS, TAG_CSR, TAG_DELTA, TAG_DENSE, TAG_FAN, TAG_MASK, TAG_SCALES, TAG_SUM, TAG_WINDOWS};
use crate::error::{range, tri};
use crate::model::{Activation, windows};
use crate::quantised::WINDOW;
use crate::{Error, Result};

/// The fields of a layer of either kind, or of a sum, and the bytes of its arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) tag: u16,
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    pub(crate) nonzeros: usize,
    pub(crate) requested: usize,
    pub(crate) activation: Activation,
    /// Words of factors and of biases, which come before the weights; none in layers of floats.
    pub(crate) factors: usize,
    pub(crate) biases: usize,
    /// Bytes of the arrays in the order of the specification, without padding; of a sum its signs.
    pub(crate) arrays: [usize; 3],
}

impl Head {
    /// Of a layer of floats.
    #[inline(always)]
    pub(super) const fn floats(at: usize, tag: u16, p: &mut Reader<'_>) -> Result<Self> {
        match tag {
            TAG_CSR | TAG_WINDOWS => {}
            TAG_SUM => return Self::sum(p),
            TAG_DENSE..=TAG_SCALES => {
                let what = "layer of floats (QuantisedView reads models of integers)";
                return Err(Error::Format { what, at, expected: TAG_SUM as u32, got: tag as u32 });
            }
            _ => return Err(later("layer", at, tag)),
        }
        let [inputs, outputs, nonzeros, requested] = tri!(p.words());
        let activation = tri!(activation(p));
        tri!(expect("reserved", p.at, 0, tri!(p.u16()) as u32));
        let is_windows = tag == TAG_WINDOWS;
        let counts =
            if is_windows { outputs.saturating_mul(windows(inputs)) } else { outputs.saturating_mul(2) };
        let columns = if is_windows { nonzeros } else { nonzeros.saturating_mul(2) };
        let arrays = [counts, columns, nonzeros.saturating_mul(4)];
        Ok(Self { tag, inputs, outputs, nonzeros, requested, activation, factors: 0, biases: 0, arrays })
    }

    /// Of a sum.
    #[inline(always)]
    pub(super) const fn sum(p: &mut Reader<'_>) -> Result<Self> {
        let inputs = tri!(p.u32()) as usize;
        let arrays = [inputs.div_ceil(32).saturating_mul(4), 0, 0];
        let (tag, activation) = (TAG_SUM, Activation::Identity);
        Ok(Self {
            tag,
            inputs,
            outputs: 1,
            nonzeros: 0,
            requested: 1,
            activation,
            factors: 0,
            biases: 0,
            arrays,
        })
    }

    /// Of a layer of integers.
    #[inline(always)]
    pub(super) const fn integers(at: usize, tag: u16, p: &mut Reader<'_>) -> Result<Self> {
        match tag {
            TAG_CSR | TAG_SCALES | TAG_WINDOWS => {
                let what = "layer of a model of integers";
                return Err(Error::Format { what, at, expected: TAG_DENSE as u32, got: tag as u32 });
            }
            TAG_DENSE..=TAG_FAN => {}
            _ => return Err(later("layer", at, tag)),
        }
        let [inputs, outputs, nonzeros, requested] = tri!(p.words());
        tri!(range("inputs of a layer", inputs, 0, crate::model::MAX_INPUTS));
        tri!(range("outputs of a layer", outputs, 0, crate::quantised::MAX_OUTPUTS));
        let activation = tri!(activation(p));
        let at = p.at;
        let [factors, biases] = tri!(p.u16()).to_le_bytes();
        let factors = match factors {
            0 | 1 => factors as usize,
            2 if outputs > 1 => outputs,
            _ => return Err(Error::Format { what: "factors", at, expected: 0, got: factors as u32 }),
        };
        // Without outputs there is nothing to add biases to.
        let most = (outputs > 0) as u8;
        tri!(expect("biases", at + 1, if biases < most { biases } else { most } as u32, biases as u32));
        let biases = outputs * biases as usize;
        let [extent] = tri!(p.words());
        if !matches!(tag, TAG_DENSE | TAG_MASK | TAG_DELTA) {
            tri!(expect("extent of a layer that has none", p.at, 0, extent as u32));
        }
        let width = if extent == 0 { inputs } else { extent };
        let arrays = match tag {
            TAG_DENSE => [extent.saturating_mul(2), outputs.saturating_mul(width), 0],
            TAG_MASK => {
                let words = outputs.saturating_mul(width.div_ceil(32));
                [extent.saturating_mul(2), words.saturating_mul(4), nonzeros]
            }
            TAG_DELTA => [2 * outputs, extent, nonzeros],
            TAG_BLOCKS => [outputs.saturating_mul(windows(inputs)), nonzeros.saturating_mul(2), 0],
            TAG_FAN => [nonzeros.saturating_mul(if inputs > WINDOW { 2 } else { 1 }), nonzeros, 0],
            _ => [2 * outputs, nonzeros.saturating_mul(2), nonzeros],
        };
        Ok(Self { tag, inputs, outputs, nonzeros, requested, activation, factors, biases, arrays })
    }
}
