//! A bit for each weight that could be, then those that are.

use super::{check_columns, product, rolled};
use crate::Result;
use crate::error::{length, range, tri};
use crate::model::MAX_INPUTS;

/// Rows of bits, for all inputs or for those of a list, and the weights of the bits that are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mask<'a> {
    inputs: usize,
    outputs: usize,
    used: &'a [u16],
    bits: &'a [u32],
    values: &'a [i8],
}

impl<'a> Mask<'a> {
    /// A layer of `outputs`, each with `width / 32` words of bits, rounded up, where `width` is the length of `used`, or
    /// the inputs if that is empty. Bit `k mod 32` of word `k / 32` of a row is 1 where it has a value for the `k`th column.
    ///
    /// # Errors
    /// [`crate::Error::Range`] for more than 65536 inputs, a column that is not below `inputs` or a bit behind the last column,
    /// [`crate::Error::Length`] for another number of words or of values, [`crate::Error::Unsorted`] for a column that does
    /// not rise.
    pub const fn new(
        inputs: usize,
        outputs: usize,
        used: &'a [u16],
        bits: &'a [u32],
        values: &'a [i8],
    ) -> Result<Self> {
        tri!(range("inputs of a layer", inputs, 0, MAX_INPUTS));
        tri!(range("outputs of a layer", outputs, 0, super::MAX_OUTPUTS));
        tri!(check_columns(inputs, used));
        let this = Self { inputs, outputs, used, bits, values };
        let words = this.words();
        tri!(length("words of bits", bits.len(), outputs.saturating_mul(words)));
        let in_last = if this.width().is_multiple_of(32) { 32 } else { this.width() % 32 };
        let (mut set, mut at, mut left) = (0_usize, 0, bits);
        while let [word, behind @ ..] = left {
            set = set.saturating_add(word.count_ones() as usize);
            (at, left) = (at + 1, behind);
            if at == words {
                at = 0;
                let last = u32::BITS - word.leading_zeros();
                tri!(range("columns in the last word of bits", last as usize, 0, in_last));
            }
        }
        tri!(length("values", values.len(), set));
        Ok(this)
    }

    /// Numbers that the layer takes.
    #[must_use]
    pub const fn inputs(&self) -> usize {
        self.inputs
    }

    /// Numbers that the layer gives.
    #[must_use]
    pub const fn outputs(&self) -> usize {
        self.outputs
    }

    /// Weights.
    #[must_use]
    pub const fn nonzeros(&self) -> usize {
        self.values.len()
    }

    /// The columns that have bits; empty for all.
    #[must_use]
    pub const fn used(&self) -> &'a [u16] {
        self.used
    }

    /// The bits, row after row.
    #[must_use]
    pub const fn bits(&self) -> &'a [u32] {
        self.bits
    }

    /// The weights of the bits that are 1.
    #[must_use]
    pub const fn values(&self) -> &'a [i8] {
        self.values
    }

    const fn width(&self) -> usize {
        if self.used.is_empty() { self.inputs } else { self.used.len() }
    }

    const fn words(&self) -> usize {
        self.width().div_ceil(32)
    }

    pub(super) fn entries(&self, entry: &mut dyn FnMut(usize, u16, i8)) {
        let (words, mut values) = (self.words().max(1), self.values.iter());
        for (at, &bits) in self.bits.iter().enumerate() {
            for k in (0..32).filter(|k| bits >> k & 1 == 1).map(|k| at % words * 32 + k) {
                let value = values.next().copied().unwrap_or_default();
                entry(at / words, self.used.get(k).copied().unwrap_or(k as u16), value);
            }
        }
    }

    #[inline(never)]
    pub(super) fn accumulate(&self, x: &[u8], sums: &mut [i32]) -> Option<()> {
        let (mut values, mut bits, words) = (self.values.iter(), self.bits, self.words());
        for sum in sums {
            let (row, rest) = bits.split_at_checked(words)?;
            bits = rest;
            let (mut total, mut first) = (*sum, 0_usize);
            for &word in row {
                let mut word = word;
                while word != 0 {
                    let k = first.wrapping_add(word.trailing_zeros() as usize);
                    let column = if self.used.is_empty() { k } else { usize::from(*self.used.get(k)?) };
                    total = total.wrapping_add(product(*x.get(column)?, *values.next()?));
                    word &= word.wrapping_sub(1);
                    rolled();
                }
                first = first.wrapping_add(32);
            }
            *sum = total;
        }
        Some(())
    }
}
