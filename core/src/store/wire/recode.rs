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
    let Shape { inputs, outputs, .. } = *shape;
    match encoding {
        Encoding::Dense => {
            let mut next = 0;
            each(writer, weights, |writer, row, column, value| {
                let at = row * inputs + usize::from(column);
                (next..at).try_for_each(|_| writer.put(&[0]))?;
                next = at + 1;
                writer.put(&[value as u8])
            })?;
            (next..outputs * inputs).try_for_each(|_| writer.put(&[0]))?;
        }
        Encoding::Mask => {
            let (words, mut bits, mut done) = (inputs.div_ceil(32), 0_u32, 0);
            each(writer, weights, |writer, row, column, _| {
                let word = row * words + usize::from(column) / 32;
                while done < word {
                    writer.put(&bits.to_le_bytes())?;
                    (bits, done) = (0, done + 1);
                }
                bits |= 1 << (column % 32);
                Ok(())
            })?;
            while done < outputs * words {
                writer.put(&bits.to_le_bytes())?;
                (bits, done) = (0, done + 1);
            }
            each(writer, weights, |writer, _, _, value| writer.put(&[value as u8]))?;
        }
        Encoding::Blocks => {
            let windows = windows(inputs);
            let inside = |window: usize| move |column: u16| usize::from(column) / WINDOW == window;
            for window in 0..windows {
                counts(writer, weights, outputs, inside(window))?;
            }
            writer.pad()?;
            for window in 0..windows {
                let (inside, start) = (inside(window), start(inputs, window));
                each(writer, weights, |writer, _, column, value| {
                    if !inside(column) {
                        return Ok(());
                    }
                    writer.put(&[(usize::from(column) - start) as u8, value as u8])
                })?;
            }
        }
    }
    writer.pad()
}

/// Calls `put` for each weight, until one fails.
fn each<'o>(
    writer: &mut Writer<'o>,
    weights: &Weights<'_>,
    mut put: impl FnMut(&mut Writer<'o>, usize, u16, i8) -> Result<()>,
) -> Result<()> {
    let mut done = Ok(());
    weights.entries(&mut |row, column, value| {
        if done.is_ok() {
            done = put(writer, row, column, value);
        }
    });
    done
}

/// Writes the number of weights of each row whose columns `take` has.
fn counts(
    writer: &mut Writer<'_>,
    weights: &Weights<'_>,
    outputs: usize,
    take: impl Fn(u16) -> bool,
) -> Result<()> {
    let (mut at, mut count) = (0, 0_u8);
    each(writer, weights, |writer, row, column, _| {
        while at < row {
            writer.put(&[count])?;
            (at, count) = (at + 1, 0);
        }
        count += u8::from(take(column));
        Ok(())
    })?;
    while at < outputs {
        writer.put(&[count])?;
        (at, count) = (at + 1, 0);
    }
    Ok(())
}
