//! A bit for each weight that could be, then those that are.

use super::kernels::product;
use crate::Result;
use crate::base::error::{length, range, tri};
use crate::infer::model::{MAX_INPUTS, MAX_OUTPUTS, rolled};

/// Rows of bits, and the weights of the bits that are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mask<'a> {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    bits: &'a [u32],
    values: &'a [i8],
}

impl<'a> Mask<'a> {
    /// A layer of `outputs`, each with `inputs / 32` words of bits, rounded up. Bit `k mod 32` of
    /// word `k / 32` of a row is 1 where it has a value for input `k`.
    ///
    /// # Errors
    /// [`crate::Error::Range`] for more than 65536 inputs or outputs or a bit behind the last
    /// input, [`crate::Error::Length`] for another number of words or of values.
    pub const fn new(
        inputs: usize,
        outputs: usize,
        bits: &'a [u32],
        values: &'a [i8],
    ) -> Result<Self> {
        tri!(range("inputs of a layer", inputs, 0, MAX_INPUTS));
        tri!(range("outputs of a layer", outputs, 0, MAX_OUTPUTS));
        let this = Self { inputs, outputs, bits, values };
        let words = this.row_words();
        tri!(length("words of bits", bits.len(), outputs.saturating_mul(words)));
        let in_last = if inputs.is_multiple_of(32) { 32 } else { inputs % 32 };
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

    /// Words of bits of a layer.
    #[must_use]
    pub const fn words(inputs: usize, outputs: usize) -> usize {
        outputs.saturating_mul(inputs.div_ceil(32))
    }

    /// Sets the bits of weights in `bits[words]`, row after row with as many `columns` each as
    /// `counts` says.
    pub fn mark(inputs: usize, counts: &[u16], columns: &[u16], bits: &mut [u32]) {
        let row = |(&count, row): (&u16, usize)| core::iter::repeat_n(row, count.into());
        for (row, &column) in counts.iter().zip(0..).flat_map(row).zip(columns) {
            let word = Self::words(inputs, row) + usize::from(column) / 32;
            if let Some(word) = bits.get_mut(word) {
                *word |= 1 << (column % 32);
            }
        }
    }

    pub(super) const fn nonzeros(&self) -> usize {
        self.values.len()
    }

    /// The bits, row after row.
    pub const fn bits(&self) -> &'a [u32] {
        self.bits
    }

    /// The weights of the bits that are 1.
    pub const fn values(&self) -> &'a [i8] {
        self.values
    }

    const fn row_words(&self) -> usize {
        self.inputs.div_ceil(32)
    }

    pub(super) fn entries(&self, entry: &mut dyn FnMut(usize, u16, i8)) {
        let (words, mut values) = (self.row_words().max(1), self.values.iter());
        for (at, &bits) in self.bits.iter().enumerate() {
            for k in (0..32).filter(|k| bits >> k & 1 == 1).map(|k| at % words * 32 + k) {
                let value = values.next().copied().unwrap_or_default();
                entry(at / words, k as u16, value);
            }
        }
    }

    #[inline(never)]
    pub(super) fn accumulate(&self, x: &[u8], sums: &mut [i32]) -> Option<()> {
        let (mut values, mut bits, words) = (self.values.iter(), self.bits, self.row_words());
        for sum in sums {
            let (row, rest) = bits.split_at_checked(words)?;
            bits = rest;
            let (mut total, mut first) = (*sum, 0_usize);
            for &word in row {
                let mut word = word;
                while word != 0 {
                    let k = first.wrapping_add(word.trailing_zeros() as usize);
                    total = total.wrapping_add(product(*x.get(k)?, *values.next()?));
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
