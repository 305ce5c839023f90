//! What the kernels of integers count in a layer, and what that takes on a Cortex-M4F: all that
//! choosing an encoding needs.
//!
//! The instructions of a layer are `sum_k price_k count_k`, with one price for each count and
//! [`Encoding`], in whole thousandths of an instruction. `cargo ci costs` counts instructions in an
//! emulator and fits them. No weight is counted twice: the first weight of a row of a bitmask is
//! counted apart, and eight weights of a row in a window are seven weights and one group.

use crate::infer::model::{WINDOW, windows};
use crate::infer::quantised::{Encoding, Weights};

/// Fractions of an instruction that prices are given in.
pub const PER_INSTRUCTION: u64 = 1000;

/// What is counted in a layer; the order of [`Shape::counts`].
///
/// A group is four weights of a dense row, a word of a bitmask, or eight weights of a row in a
/// window. Of blocks, rows are counted in each window; a row shorter than a window is copied.
pub const COUNTS: [&str; 9] = [
    "layer",
    "row",
    "first weight",
    "weight",
    "group",
    "window",
    "output",
    "short row",
    "copied byte",
];

/// Thousandths of an instruction of each of [`COUNTS`] on a Cortex-M4F, in the order of
/// [`Encoding::ALL`].
pub const CORTEX_M4F: [[u32; COUNTS.len()]; 3] = [
    [144_574, 26_522, 3_912, 5_583, 14_012, 0, 0, 0, 0],
    [143_997, 19_083, 16_488, 14_138, 6_589, 0, 0, 0, 0],
    [96_751, 14_767, 0, 5_043, 0, 44_510, 926, 132_805, 1_087],
];

/// What bytes and counts of every encoding follow from, in one pass over the weights of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shape {
    /// Numbers that the layer takes.
    pub inputs: usize,
    /// Numbers that it gives.
    pub outputs: usize,
    /// Weights.
    pub nonzeros: usize,
    /// Weights whose value is 0 all the same.
    pub zeros: usize,
    /// Rows that have weights.
    pub filled: usize,
    /// Full eights of weights of a row in a window of 256 columns.
    pub eights: usize,
    /// Most weights of a row in a window.
    pub most_run: usize,
}

impl Shape {
    /// The shape of a layer's weights.
    #[must_use]
    pub fn of(weights: &Weights<'_>) -> Self {
        let mut shape =
            Self { inputs: weights.inputs(), outputs: weights.outputs(), ..Self::default() };
        let (mut before, mut run) = (None, 0);
        weights.entries(&mut |row, column, value| {
            let window = usize::from(column) / WINDOW;
            let is_same = before == Some((row, window));
            run = if is_same { run + 1 } else { 1 };
            shape.filled += usize::from(before.is_none_or(|(last, _)| last != row));
            shape.nonzeros += 1;
            shape.zeros += usize::from(value == 0);
            shape.eights += usize::from(run % 8 == 0);
            shape.most_run = shape.most_run.max(run);
            before = Some((row, window));
        });
        shape
    }

    /// What the kernel of an encoding counts, in the order of [`COUNTS`].
    pub fn counts(&self, encoding: Encoding) -> [u64; COUNTS.len()] {
        let [inputs, rows, n] = [self.inputs, self.outputs, self.nonzeros].map(|n| n as u64);
        let [filled, eights] = [self.filled, self.eights].map(|n| n as u64);
        match encoding {
            Encoding::Dense => {
                let left = inputs % 4;
                let (first, more) =
                    (rows * left.min(1), rows.saturating_mul(left.saturating_sub(1)));
                [1, rows, first, more, rows.saturating_mul(inputs / 4), 0, 0, 0, 0]
            }
            Encoding::Mask => {
                let words = rows.saturating_mul(inputs.div_ceil(32));
                [1, rows, filled, n.saturating_sub(filled), words, 0, 0, 0, 0]
            }
            Encoding::Blocks => {
                let windows = windows(self.inputs) as u64;
                let short = u64::from(self.inputs < WINDOW);
                let runs = rows.saturating_mul(windows);
                [1, runs, 0, n.saturating_sub(eights), eights, windows, rows, short, short * inputs]
            }
        }
    }

    /// Thousandths of an instruction on a Cortex-M4F.
    pub(crate) fn price(&self, encoding: Encoding) -> u64 {
        let prices = CORTEX_M4F.get(encoding as usize).unwrap_or(&[0; _]);
        cost(&self.counts(encoding), prices)
    }
}

/// `sum_k price_k count_k`.
#[must_use]
pub fn cost(counts: &[u64], prices: &[u32]) -> u64 {
    let products =
        counts.iter().zip(prices).map(|(&count, &price)| count.saturating_mul(price.into()));
    products.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::quantised::Mask;

    #[test]
    fn counts_are_those_of_the_loops() {
        // Of 784 inputs, a row of nine weights in the columns 0 to 8, and one of a single weight in
        // column 700.
        let mut bits = [0; 50];
        (bits[0], bits[25 + 21]) = (0x1ff, 1 << 28);
        let values = [1, 2, 3, 4, 0, 6, 7, 8, 9, 10];
        let shape = Shape::of(&Weights::Mask(Mask::new(784, 2, &bits, &values).unwrap()));
        let Shape { nonzeros, zeros, filled, eights, most_run, .. } = shape;
        assert_eq!((nonzeros, zeros, filled, eights, most_run), (10, 1, 2, 1, 9));
        assert_eq!(shape.counts(Encoding::Dense), [1, 2, 0, 0, 392, 0, 0, 0, 0]);
        assert_eq!(shape.counts(Encoding::Mask), [1, 2, 2, 8, 50, 0, 0, 0, 0]);
        assert_eq!(shape.counts(Encoding::Blocks), [1, 8, 0, 9, 1, 4, 2, 0, 0]);
        let short = Shape { inputs: 30, outputs: 2, ..Shape::default() };
        assert_eq!(short.counts(Encoding::Blocks)[5..], [1, 2, 1, 30]);
        assert_eq!(short.counts(Encoding::Dense)[..5], [1, 2, 2, 2, 14]);
    }

    #[test]
    fn the_largest_counts_do_not_overflow() {
        let most = Shape {
            inputs: usize::MAX,
            outputs: usize::MAX,
            nonzeros: usize::MAX,
            ..Shape::default()
        };
        for encoding in Encoding::ALL {
            assert!(most.price(encoding) > 0);
        }
    }
}
