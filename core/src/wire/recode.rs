//! Weights of integers from any encoding to any other: which can hold them, in how many bytes, and the bytes.

use super::integers::Choice;
use super::padding;
use super::write::Writer;
use crate::Result;
use crate::model::{WINDOW, start, windows};
use crate::quantised::{Encoding, SKIP, Weights};

/// The most inputs of which the unused ones are looked for: their bits lie on the stack.
const MOST_LISTED: usize = 4096;

/// What the sizes of all encodings follow from.
pub(super) struct Shape<'a> {
    inputs: usize,
    outputs: usize,
    nonzeros: usize,
    /// Most weights of a row.
    most: usize,
    /// Every row has so many.
    equal: bool,
    /// Bytes of distances.
    deltas: usize,
    /// Most weights of a row in a window.
    most_run: usize,
    /// Weights that are 0: a dense layer does not hold them apart.
    zeros: usize,
    used: Used<'a>,
}

/// The columns that have weights.
#[allow(clippy::large_enum_variant, reason = "lives for one layer, on the stack")]
enum Used<'a> {
    /// As they are listed in the weights that are read.
    Listed(&'a [u16]),
    /// Found here.
    Bits([u32; MOST_LISTED / 32]),
    /// Too many inputs to look.
    Unknown,
}

impl Used<'_> {
    fn len(&self) -> usize {
        match self {
            Used::Listed(list) => list.len(),
            Used::Bits(bits) => bits.iter().map(|word| word.count_ones() as usize).sum(),
            Used::Unknown => 0,
        }
    }

    /// Columns that have weights and lie before `column`.
    fn before(&self, column: usize) -> usize {
        match self {
            Used::Listed(list) => list.partition_point(|&listed| usize::from(listed) < column),
            Used::Bits(bits) => {
                let whole =
                    bits.iter().take(column / 32).map(|word| word.count_ones() as usize).sum::<usize>();
                let word = bits.get(column / 32).copied().unwrap_or(0) & ((1 << (column % 32)) - 1);
                whole + word.count_ones() as usize
            }
            Used::Unknown => column,
        }
    }

    fn has(&self, column: u16) -> bool {
        match self {
            Used::Listed(list) => list.binary_search(&column).is_ok(),
            Used::Bits(bits) => {
                bits.get(usize::from(column) / 32).is_some_and(|word| word >> (column % 32) & 1 == 1)
            }
            Used::Unknown => true,
        }
    }
}

impl<'a> Shape<'a> {
    pub(super) fn of(weights: &'a Weights<'_>) -> Self {
        let (inputs, outputs) = (weights.inputs(), weights.outputs());
        let used = match weights.used() {
            [] if inputs <= MOST_LISTED => Used::Bits([0; MOST_LISTED / 32]),
            [] => Used::Unknown,
            list => Used::Listed(list),
        };
        let mut shape = Self {
            inputs,
            outputs,
            nonzeros: 0,
            most: 0,
            equal: true,
            deltas: 0,
            most_run: 0,
            zeros: 0,
            used,
        };
        // Of the row that is being read: its number, weights, the column after the last, weights in the same window.
        let (mut at, mut count, mut next, mut run) = (0, 0, 0, 0);
        let mut first = None;
        weights.entries(&mut |row, column, value| {
            if row != at {
                first = first.or(Some(count));
                shape.equal &= first == Some(count) && row == at + 1;
                (at, count, next, run) = (row, 0, 0, 0);
            }
            let column = usize::from(column);
            run = if next > 0 && (next - 1) / WINDOW == column / WINDOW { run + 1 } else { 1 };
            shape.deltas += 1 + (column - next) / usize::from(SKIP);
            (count, next) = (count + 1, column + 1);
            shape.most = shape.most.max(count);
            shape.most_run = shape.most_run.max(run);
            shape.nonzeros += 1;
            shape.zeros += usize::from(value == 0);
            if let Used::Bits(bits) = &mut shape.used
                && let Some(word) = bits.get_mut(column / 32)
            {
                *word |= 1 << (column % 32);
            }
        });
        let last = outputs == 0 || shape.nonzeros == 0 || at + 1 == outputs;
        shape.equal &= last && first.is_none_or(|first| first == count);
        shape
    }

    fn width(&self, encoding: Encoding) -> usize {
        match encoding {
            Encoding::DenseUsed | Encoding::MaskUsed => self.used.len(),
            _ => self.inputs,
        }
    }

    /// Bytes of the weights in this encoding; none if it cannot hold them.
    pub(super) fn len(&self, encoding: Encoding) -> Option<usize> {
        let padded = |len: usize| len.saturating_add(padding(len));
        let counts = padded(self.outputs.saturating_mul(2));
        let (values, width) = (padded(self.nonzeros), self.width(encoding));
        let list = if self.is_listed(encoding) { padded(2 * width) } else { 0 };
        // A list of none would say that all are used.
        let listed = !self.is_listed(encoding) || width > 0;
        match encoding {
            Encoding::Dense | Encoding::DenseUsed => (self.zeros == 0 && listed)
                .then(|| list.saturating_add(padded(self.outputs.saturating_mul(width)))),
            Encoding::Mask | Encoding::MaskUsed => listed.then(|| {
                let bits = self.outputs.saturating_mul(width.div_ceil(32)).saturating_mul(4);
                list.saturating_add(bits).saturating_add(values)
            }),
            Encoding::Csr => (self.most <= usize::from(u16::MAX)).then(|| {
                counts.saturating_add(padded(self.nonzeros.saturating_mul(2))).saturating_add(values)
            }),
            Encoding::Delta => (self.most <= usize::from(u16::MAX))
                .then(|| counts.saturating_add(padded(self.deltas)).saturating_add(values)),
            Encoding::Blocks => (self.most_run <= usize::from(u8::MAX)).then(|| {
                let counts = padded(self.outputs.saturating_mul(windows(self.inputs)));
                counts.saturating_add(padded(self.nonzeros.saturating_mul(2)))
            }),
            Encoding::Fan => (self.equal && self.outputs > 0).then(|| {
                padded(self.nonzeros * if self.inputs > WINDOW { 2 } else { 1 }).saturating_add(values)
            }),
        }
    }

    fn is_listed(&self, encoding: Encoding) -> bool {
        matches!(encoding, Encoding::DenseUsed | Encoding::MaskUsed)
    }

    /// Instructions on a Cortex-M4, about: fitted to those that were counted in each kernel on a layer of 784 inputs, 32 outputs
    /// and 1248 weights.
    fn instructions(&self, encoding: Encoding) -> u64 {
        let [n, rows, width] = [self.nonzeros, self.outputs, self.width(encoding)].map(|count| count as u64);
        let words = width.div_ceil(32);
        match encoding {
            Encoding::Dense => rows * (20 + 7 * width / 2),
            Encoding::DenseUsed => rows * (35 + 15 * width / 2),
            Encoding::Mask => 14 * n + rows * (20 + 7 * words),
            Encoding::MaskUsed => 18 * n + rows * (20 + 7 * words),
            Encoding::Csr => 8 * n + 42 * rows,
            Encoding::Delta => 19 * n + 26 * rows,
            Encoding::Fan => 8 * n + 34 * rows,
            Encoding::Blocks => {
                let copy = if self.inputs < WINDOW { 130 } else { 0 };
                (9 * n).div_ceil(2) + windows(self.inputs) as u64 * (40 + 31 * rows) + copy
            }
        }
    }

    /// The encoding that is written.
    pub(super) fn choose(&self, weights: &Weights<'_>, choice: Choice) -> Encoding {
        let own = weights.encoding();
        let (preferred, fast) = match choice {
            Choice::Keep => (Some(own), false),
            Choice::Prefer(encoding) => (Some(encoding), false),
            Choice::Smallest => (None, false),
            Choice::Fastest => (None, true),
        };
        if let Some(encoding) = preferred.filter(|&encoding| self.len(encoding).is_some()) {
            return encoding;
        }
        let rank = |encoding: Encoding| {
            let (len, instructions) = (self.len(encoding)? as u64, self.instructions(encoding));
            Some((if fast { (instructions, len) } else { (len, instructions) }, encoding))
        };
        let best = Encoding::ALL.into_iter().filter_map(rank).min_by_key(|&(rank, _)| rank);
        best.map_or(own, |(_, encoding)| encoding)
    }

    /// The field of the head that only some encodings have.
    pub(super) fn extent(&self, encoding: Encoding) -> usize {
        match encoding {
            Encoding::DenseUsed | Encoding::MaskUsed => self.used.len(),
            Encoding::Delta => self.deltas,
            _ => 0,
        }
    }
}

/// Writes the weights in an encoding that can hold them.
pub(super) fn write(
    writer: &mut Writer<'_>,
    weights: &Weights<'_>,
    shape: &Shape<'_>,
    encoding: Encoding,
) -> Result<()> {
    let (outputs, width) = (shape.outputs, shape.width(encoding));
    if shape.is_listed(encoding) {
        let mut columns =
            (0..shape.inputs).map(|column| column as u16).filter(|&column| shape.used.has(column));
        columns.try_for_each(|column| writer.put(&column.to_le_bytes()))?;
        writer.pad()?;
    }
    // Where a weight stands among those of a dense layer.
    let place = |row: usize, column: u16| {
        let column = usize::from(column);
        row * width + if shape.is_listed(encoding) { shape.used.before(column) } else { column }
    };
    match encoding {
        Encoding::Dense | Encoding::DenseUsed => {
            let mut next = 0;
            each(writer, weights, |writer, row, column, value| {
                let at = place(row, column);
                (next..at).try_for_each(|_| writer.put(&[0]))?;
                next = at + 1;
                writer.put(&[value as u8])
            })?;
            (next..outputs * width).try_for_each(|_| writer.put(&[0]))?;
            return writer.pad();
        }
        Encoding::Mask | Encoding::MaskUsed => {
            let (words, mut bits, mut done) = (width.div_ceil(32), 0_u32, 0);
            each(writer, weights, |writer, row, column, _| {
                let k = place(row, column) - row * width;
                let word = row * words + k / 32;
                while done < word {
                    writer.put(&bits.to_le_bytes())?;
                    (bits, done) = (0, done + 1);
                }
                bits |= 1 << (k % 32);
                Ok(())
            })?;
            while done < outputs * words {
                writer.put(&bits.to_le_bytes())?;
                (bits, done) = (0, done + 1);
            }
        }
        Encoding::Csr => {
            counts(
                writer,
                weights,
                outputs,
                |_| true,
                |writer, count| writer.put(&(count as u16).to_le_bytes()),
            )?;
            writer.pad()?;
            each(writer, weights, |writer, _, column, _| writer.put(&column.to_le_bytes()))?;
            writer.pad()?;
        }
        Encoding::Delta => {
            counts(
                writer,
                weights,
                outputs,
                |_| true,
                |writer, count| writer.put(&(count as u16).to_le_bytes()),
            )?;
            writer.pad()?;
            let (mut at, mut next) = (0, 0);
            each(writer, weights, |writer, row, column, _| {
                if row != at {
                    (at, next) = (row, 0);
                }
                let gap = usize::from(column) - next;
                next = usize::from(column) + 1;
                (0..gap / usize::from(SKIP)).try_for_each(|_| writer.put(&[SKIP]))?;
                writer.put(&[(gap % usize::from(SKIP)) as u8])
            })?;
            writer.pad()?;
        }
        Encoding::Fan => {
            let wide = shape.inputs > WINDOW;
            each(writer, weights, |writer, _, column, _| {
                writer.put(column.to_le_bytes().get(..1 + usize::from(wide)).unwrap_or_default())
            })?;
            writer.pad()?;
        }
        Encoding::Blocks => {
            let windows = windows(shape.inputs);
            let inside = |window: usize| move |column: u16| usize::from(column) / WINDOW == window;
            for window in 0..windows {
                counts(writer, weights, outputs, inside(window), |writer, count| writer.put(&[count as u8]))?;
            }
            writer.pad()?;
            for window in 0..windows {
                let (inside, start) = (inside(window), start(shape.inputs, window));
                each(writer, weights, |writer, _, column, value| {
                    if !inside(column) {
                        return Ok(());
                    }
                    writer.put(&[(usize::from(column) - start) as u8, value as u8])
                })?;
            }
            return writer.pad();
        }
    }
    each(writer, weights, |writer, _, _, value| writer.put(&[value as u8]))?;
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

/// Calls `put` with the number of weights of each row whose columns `take` has.
fn counts<'o>(
    writer: &mut Writer<'o>,
    weights: &Weights<'_>,
    outputs: usize,
    take: impl Fn(u16) -> bool,
    mut put: impl FnMut(&mut Writer<'o>, usize) -> Result<()>,
) -> Result<()> {
    let (mut at, mut count) = (0, 0);
    each(writer, weights, |writer, row, column, _| {
        while at < row {
            put(writer, count)?;
            (at, count) = (at + 1, 0);
        }
        count += usize::from(take(column));
        Ok(())
    })?;
    while at < outputs {
        put(writer, count)?;
        (at, count) = (at + 1, 0);
    }
    Ok(())
}
