//! Weights of integers from any encoding to any other: which can hold them, in how many bytes, and
//! the bytes.

use super::head::integer_arrays;
use super::write::Writer;
use super::{TAG_BLOCKS, TAG_DENSE, TAG_MASK, padded};
use crate::Result;
use crate::infer::model::{WINDOW, start, windows};
use crate::infer::price::Shape;
use crate::infer::quantised::{Encoding, Weights};

/// How [`QuantisedView::encode`](super::QuantisedView::encode) chooses the encoding of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Choice {
    /// As it is.
    Keep,
    /// The fewest bytes; of equal ones the fastest.
    #[default]
    Smallest,
    /// The fewest instructions on a Cortex-M4F, by the measured prices of [`crate::infer::price`];
    /// of equal ones the fewest bytes.
    Fastest,
    /// This one, wherever it can hold the layer, else the smallest.
    Prefer(Encoding),
}

/// Bytes of the weights in this encoding; none if it cannot hold them.
pub(super) fn bytes(shape: &Shape, encoding: Encoding) -> Option<usize> {
    let fits = match encoding {
        Encoding::Dense => shape.zeros == 0,
        Encoding::Mask => true,
        Encoding::Blocks => shape.most_run <= usize::from(u8::MAX),
    };
    let Shape { inputs, outputs, nonzeros, .. } = *shape;
    let [first, second] = integer_arrays(tag(encoding), inputs, outputs, nonzeros);
    fits.then(|| padded(first).saturating_add(padded(second)))
}

/// The tag of a layer in this encoding.
pub(super) const fn tag(encoding: Encoding) -> u16 {
    match encoding {
        Encoding::Dense => TAG_DENSE,
        Encoding::Mask => TAG_MASK,
        Encoding::Blocks => TAG_BLOCKS,
    }
}

/// The encoding that is written.
pub(super) fn choose(shape: &Shape, own: Encoding, choice: Choice) -> Encoding {
    let preferred = match choice {
        Choice::Keep => Some(own),
        Choice::Prefer(encoding) => Some(encoding),
        Choice::Smallest | Choice::Fastest => None,
    };
    if let Some(encoding) = preferred.filter(|&encoding| bytes(shape, encoding).is_some()) {
        return encoding;
    }
    let rank = |encoding: Encoding| {
        let (len, price) = (bytes(shape, encoding)? as u64, shape.price(encoding));
        Some((if choice == Choice::Fastest { (price, len) } else { (len, price) }, encoding))
    };
    let best = Encoding::ALL.into_iter().filter_map(rank).min_by_key(|&(rank, _)| rank);
    best.map_or(own, |(_, encoding)| encoding)
}

/// Writes the weights in an encoding that can hold them.
pub(super) fn write(
    writer: &mut Writer<'_>,
    weights: &Weights<'_>,
    shape: &Shape,
    encoding: Encoding,
) -> Result<()> {
    let Shape { inputs, outputs, nonzeros, .. } = *shape;
    let [first, second] = integer_arrays(tag(encoding), inputs, outputs, nonzeros);
    let (first, second) = writer.zeros(first, second)?;
    let mut second = second.iter_mut();
    let mut put =
        |bytes: &[u8]| bytes.iter().zip(second.by_ref()).for_each(|(byte, to)| *to = *byte);
    match encoding {
        Encoding::Dense => weights.entries(&mut |row, column, value| {
            add(first, row * inputs + usize::from(column), value as u8);
        }),
        Encoding::Mask => weights.entries(&mut |row, column, value| {
            let at = 4 * inputs.div_ceil(32) * row + usize::from(column) / 8;
            add(first, at, 1 << (column % 8));
            put(&[value as u8]);
        }),
        Encoding::Blocks => {
            for window in 0..windows(inputs) {
                weights.entries(&mut |row, column, value| {
                    let column = usize::from(column);
                    if column / WINDOW == window {
                        add(first, window * outputs + row, 1);
                        put(&[(column - start(inputs, window)) as u8, value as u8]);
                    }
                });
            }
        }
    }
    Ok(())
}

fn add(bytes: &mut [u8], at: usize, number: u8) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte = byte.wrapping_add(number);
    }
}
