//! Arrays of a layer, piece by piece, and the rows that they make.

use super::file::File;
use super::model::{Layer, Place};
use crate::base::error::{Error, Result, length};
use crate::infer::model::{WINDOW, start, windows};
use bytemuck::{AnyBitPattern, NoUninit};
use embedded_storage::nor_flash::ReadNorFlash;

/// An array in the file of which a piece is in memory.
pub(super) struct Array<'b> {
    /// Where the next piece starts, and the bytes that are left of the array from there on.
    at: usize,
    left: usize,
    buffer: &'b mut [u8],
    /// What of the piece was not taken yet.
    from: usize,
    to: usize,
}

impl<'b> Array<'b> {
    /// The array at `place`.
    pub(super) fn new(place: Place, buffer: &'b mut [u32]) -> Self {
        let Place { at, len } = place;
        Self { at, left: len, buffer: bytemuck::cast_slice_mut(buffer), from: 0, to: 0 }
    }

    /// Reads the next piece where all of this one was taken.
    pub(super) fn fill<R: ReadNorFlash>(&mut self, file: &mut File<R>) -> Result<(), R::Error> {
        if self.from < self.to || self.left == 0 {
            return Ok(());
        }
        // Arrays are padded to whole words.
        let bytes = self.left.next_multiple_of(4).min(self.buffer.len());
        file.read(self.at, self.buffer.get_mut(..bytes).unwrap_or_default())?;
        (self.from, self.to) = (0, bytes.min(self.left));
        let padding = self.buffer.get(self.to..bytes).unwrap_or_default();
        if let Some(k) = padding.iter().position(|&byte| byte != 0) {
            let (at, got) = (self.at + self.to + k, padding.get(k).copied().unwrap_or(0).into());
            return Err(Error::Format { what: "padding", at, expected: 0, got });
        }
        self.at += bytes;
        self.left -= self.to;
        Ok(())
    }

    /// At most so many numbers of what is there.
    pub(super) fn peek<T: AnyBitPattern + NoUninit>(&self, most: usize) -> &[T] {
        let bytes = self.buffer.get(self.from..self.to).unwrap_or_default();
        let all: &[T] = bytemuck::try_cast_slice(bytes).unwrap_or_default();
        all.get(..most.min(all.len())).unwrap_or_default()
    }

    /// Takes so many numbers that were there.
    pub(super) fn skip<T>(&mut self, count: usize) {
        self.from += count * size_of::<T>();
    }

    /// The next number.
    pub(super) fn next<T, R>(&mut self, file: &mut File<R>) -> Result<T, R::Error>
    where
        T: AnyBitPattern + NoUninit,
        R: ReadNorFlash,
    {
        self.fill(file)?;
        let number = self.peek(1).first().copied().ok_or(self.ended());
        self.skip::<T>(1);
        number
    }

    /// Checks that all of it was taken.
    pub(super) fn end<S>(&self, what: &'static str) -> Result<(), S> {
        length(what, self.left + (self.to - self.from), 0)
    }

    fn ended<S>(&self) -> Error<S> {
        Error::Format { what: "bytes left for a field", at: self.at, expected: 1, got: 0 }
    }
}

/// Goes through the rows of a layer. `visit` gets a row's number, columns and values of a piece of
/// the row, and whether the row ends there; an empty row is one empty piece.
pub(super) fn rows<R: ReadNorFlash>(
    file: &mut File<R>,
    layer: &Layer,
    buffer: &mut [u32],
    mut visit: impl FnMut(usize, &[u16], &[f32], bool) -> Result<()>,
) -> Result<(), R::Error> {
    let third = buffer.len() / 3;
    let (counts, rest) = buffer.split_at_mut_checked(third).unwrap_or_default();
    let (columns, values) = rest.split_at_mut_checked(third).unwrap_or_default();
    let mut counts = Array::new(layer.array(0), counts);
    let mut columns = Array::new(layer.array(1), columns);
    let mut values = Array::new(layer.array(2), values);
    for row in 0..layer.head.outputs {
        let mut left = usize::from(counts.next::<u16, R>(file)?);
        loop {
            columns.fill(file)?;
            values.fill(file)?;
            let len = columns.peek::<u16>(left).len().min(values.peek::<f32>(left).len());
            if len == 0 && left > 0 {
                return Err(columns.ended());
            }
            left -= len;
            visit(row, columns.peek(len), values.peek(len), left == 0).map_err(Error::widen)?;
            columns.skip::<u16>(len);
            values.skip::<f32>(len);
            if left == 0 {
                break;
            }
        }
    }
    columns.end("entries that no row has")
}

/// Goes through the weights of a layer in blocks, window after window: `visit` gets row, column and
/// value.
pub(super) fn blocks<R: ReadNorFlash>(
    file: &mut File<R>,
    layer: &Layer,
    buffer: &mut [u32],
    mut visit: impl FnMut(usize, usize, i8) -> Result<()>,
) -> Result<(), R::Error> {
    let (counts, pairs) = buffer.split_at_mut_checked(buffer.len() / 3).unwrap_or_default();
    let (mut counts, mut pairs) =
        (Array::new(layer.array(0), counts), Array::new(layer.array(1), pairs));
    let mut at = 0;
    for window in 0..windows(layer.head.inputs) {
        for row in 0..layer.head.outputs {
            // Columns of the window before are not in this one, though it reaches back to them.
            let mut least = window * WINDOW;
            for _ in 0..counts.next::<u8, R>(file)? {
                let [index, weight] = pairs.next::<[u8; 2], R>(file)?;
                let column = start(layer.head.inputs, window) + usize::from(index);
                if column < least {
                    return Err(Error::Unsorted { at });
                }
                visit(row, column, weight as i8).map_err(Error::widen)?;
                (least, at) = (column + 1, at + 1);
            }
        }
    }
    pairs.end("weights that no row has")
}
