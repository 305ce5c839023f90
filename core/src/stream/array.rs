//! Arrays of a layer, piece by piece, and the rows that they make.

use super::Layer;
use super::file::File;
use crate::error::{Error, Result, length};
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
    /// The array of `len` bytes at `at`.
    pub(super) fn new((at, len): (usize, usize), buffer: &'b mut [u32]) -> Self {
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
            let got = padding.get(k).copied().unwrap_or(0).into();
            return Err(Error::Format { what: "padding", at: self.at + self.to + k, expected: 0, got });
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
        let left = self.left + (self.to - self.from);
        length(what, left, 0)
    }

    fn ended<S>(&self) -> Error<S> {
        Error::Format { what: "bytes left for a field", at: self.at, expected: 1, got: 0 }
    }
}

/// Goes through the rows of a layer. `visit` gets a row's number, columns and values of a part of the row, and whether the
/// row ends there; an empty row is one empty part.
pub(super) fn rows<V, R>(
    file: &mut File<R>,
    layer: &Layer,
    buffer: &mut [u32],
    mut visit: impl FnMut(usize, &[u16], &[V], bool) -> Result<()>,
) -> Result<(), R::Error>
where
    V: AnyBitPattern + NoUninit,
    R: ReadNorFlash,
{
    let [mut counts, mut columns, mut values] = parts(layer, buffer);
    for row in 0..layer.head.outputs {
        let mut left = usize::from(counts.next::<u16, R>(file)?);
        loop {
            columns.fill(file)?;
            values.fill(file)?;
            let part = columns.peek::<u16>(left).len().min(values.peek::<V>(left).len());
            if part == 0 && left > 0 {
                return Err(columns.ended());
            }
            left -= part;
            visit(row, columns.peek(part), values.peek(part), left == 0).map_err(Error::widen)?;
            columns.skip::<u16>(part);
            values.skip::<V>(part);
            if left == 0 {
                break;
            }
        }
    }
    columns.end("entries that no row has")
}

/// Goes through the weights of a layer of distances: `visit` gets row, column and value.
pub(super) fn distances<R: ReadNorFlash>(
    file: &mut File<R>,
    layer: &Layer,
    buffer: &mut [u32],
    mut visit: impl FnMut(usize, usize, i8) -> Result<()>,
) -> Result<(), R::Error> {
    let [mut counts, mut distances, mut values] = parts(layer, buffer);
    for row in 0..layer.head.outputs {
        let mut next = 0_usize;
        for _ in 0..counts.next::<u16, R>(file)? {
            let mut distance: u8 = distances.next(file)?;
            while distance == crate::quantised::SKIP {
                next = next.saturating_add(usize::from(distance));
                distance = distances.next(file)?;
            }
            let column = next.saturating_add(usize::from(distance));
            visit(row, column, values.next(file)?).map_err(Error::widen)?;
            next = column.saturating_add(1);
        }
    }
    distances.end("distances that no weight has")?;
    values.end("weights that no row has")
}

/// The three arrays of a layer in parts of one buffer.
fn parts<'b>(layer: &Layer, buffer: &'b mut [u32]) -> [Array<'b>; 3] {
    let third = buffer.len() / 3;
    let (counts, rest) = buffer.split_at_mut_checked(third).unwrap_or_default();
    let (second, values) = rest.split_at_mut_checked(third).unwrap_or_default();
    [
        Array::new(layer.array(0), counts),
        Array::new(layer.array(1), second),
        Array::new(layer.array(2), values),
    ]
}
