//! The numbers of binary files, streamed into a matrix through one buffer of 64 KiB. Rows that are
//! not chosen are decoded and checked, but take no room.

use std::io::Read;

use super::Values;
use super::matrix::Incoming;
use super::source::{Source, truncated};
use crate::{Error, Result};

/// The types of numbers in files, as NPY calls them.
pub(super) const ELEMENTS: [&str; 12] =
    ["b1", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// One of [`ELEMENTS`].
    pub(super) element: &'static str,
    pub(super) big_endian: bool,
    /// The first axis runs fastest.
    pub(super) fortran: bool,
    pub(super) dims: Vec<u64>,
}

impl Layout {
    /// Appends the values of `source`: a row per index of the first axis, the others flattened.
    pub(super) fn append<R: Read>(
        &self,
        mut source: Source<R>,
        into: &mut Incoming<'_>,
    ) -> Result<()> {
        let (rows, cols) = self.shape()?;
        let bytes = self.bytes(rows, cols)?;
        source.expect(bytes)?;
        into.announce(rows, cols, ["b1", "u1"].contains(&self.element))?;
        // Taken out for the loop, so that `into` can say which rows are chosen.
        let mut values = std::mem::replace(&mut into.matrix.values, Values::U8(Vec::new()));
        match &mut values {
            Values::U8(out) => self.stream(&mut source, into, out, rows, cols, |chunk, out| {
                decode_bytes(self.element, chunk, out);
            })?,
            Values::F32(out) => self.stream(&mut source, into, out, rows, cols, |chunk, out| {
                decode_floats(self.element, self.big_endian, chunk, out);
            })?,
        }
        into.matrix.values = values;
        source.end(bytes)?;
        into.matrix.rows += into.kept(rows);
        into.seen += rows;
        Ok(())
    }

    /// Calls `each` with the values of `source` that are not 0 and their places, the last axis
    /// fastest, in the order of the file.
    pub(super) fn nonzeros<R: Read>(
        &self,
        mut source: Source<R>,
        mut each: impl FnMut(usize, f32) -> Result<()>,
    ) -> Result<()> {
        let (rows, cols) = self.shape()?;
        let bytes = self.bytes(rows, cols)?;
        source.expect(bytes)?;
        let (size, mut done) = (self.size(), 0);
        let (mut buffer, mut values) = (vec![0; 1 << 16], Vec::new());
        while done < rows * cols {
            let want = (buffer.len() / size).min(rows * cols - done);
            let chunk = &mut buffer[..want * size];
            let got = source.fill(chunk)?;
            if got < chunk.len() {
                return Err(truncated(bytes, format_args!("{} bytes", done * size + got)));
            }
            values.clear();
            decode_floats(self.element, self.big_endian, chunk, &mut values);
            self.finite(&values, chunk, done, rows, cols)?;
            for (k, &value) in values.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                let (row, column) = self.place(done + k, rows, cols);
                each(row * cols + column, value)?;
            }
            done += want;
        }
        source.end(bytes)
    }

    /// Rows and columns: the first axis, and the product of the others.
    fn shape(&self) -> Result<(usize, usize)> {
        let Some((&rows, rest)) = self.dims.split_first() else {
            return Err(Error::new("the array is a single number")
                .mismatch("at least one axis, of rows", "shape []")
                .help("save an array, in numpy: array.reshape(1, -1) is one row"));
        };
        if self.dims.contains(&0) {
            return Err(Error::new("the array holds no values")
                .mismatch("every axis to be 1 or longer", format_args!("shape {:?}", self.dims))
                .help("check what wrote the file, or pass another"));
        }
        let cols = rest.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim));
        let fits = |n: u64| usize::try_from(n).ok();
        fits(rows).zip(cols.and_then(fits)).ok_or_else(|| self.too_large())
    }

    /// Bytes of a number.
    fn size(&self) -> usize {
        usize::from(self.element.as_bytes()[1] - b'0')
    }

    fn bytes(&self, rows: usize, cols: usize) -> Result<u64> {
        let bytes = rows.checked_mul(cols).and_then(|n| n.checked_mul(self.size()));
        bytes.map(|n| n as u64).ok_or_else(|| self.too_large())
    }

    fn too_large(&self) -> Error {
        Error::new("the shape in the header is larger than any file")
            .mismatch("a shape whose values fill the file", format_args!("shape {:?}", self.dims))
            .help("the header is damaged or was edited: write the file again")
    }

    /// Reads all values and puts those of chosen rows into `out`, which has room for them.
    fn stream<T: Number, R: Read>(
        &self,
        source: &mut Source<R>,
        into: &Incoming<'_>,
        out: &mut Vec<T>,
        rows: usize,
        cols: usize,
        decode: impl Fn(&[u8], &mut Vec<T>),
    ) -> Result<()> {
        let (size, total) = (self.size(), rows * cols);
        let (start, by_column) = (out.len(), self.fortran && cols > 1);
        let mut chosen = 0..;
        // Number of each row among the chosen ones, where not all are.
        let ranks = (by_column && into.keep.is_some()).then(|| {
            let rank = |row| if into.keeps(row) { chosen.next() } else { None };
            (0..rows).map(rank).collect::<Vec<_>>()
        });
        if by_column {
            out.resize(start + into.kept(rows) * cols, T::default());
        }
        let mut buffer = vec![0; 1 << 16];
        let mut piece = Vec::new();
        let mut done = 0;
        while done < total {
            let want = (buffer.len() / size).min(total - done);
            let chunk = &mut buffer[..want * size];
            let got = source.fill(chunk)?;
            if got < chunk.len() {
                let bytes = (total * size) as u64;
                return Err(truncated(bytes, format_args!("{} bytes", done * size + got)));
            }
            piece.clear();
            decode(chunk, &mut piece);
            self.finite(&piece, chunk, done, rows, cols)?;
            if by_column {
                for (k, &value) in piece.iter().enumerate() {
                    let (row, column) = self.place(done + k, rows, cols);
                    if let Some(at) = ranks.as_ref().map_or(Some(row), |ranks| ranks[row]) {
                        out[start + at * cols + column] = value;
                    }
                }
            } else if into.keep.is_some() {
                append_chosen(&piece, done, cols, into, out);
            } else {
                out.extend_from_slice(&piece);
            }
            done += want;
        }
        Ok(())
    }

    fn place(&self, k: usize, rows: usize, cols: usize) -> (usize, usize) {
        if !self.fortran {
            return (k / cols, k % cols);
        }
        // k counts rows fastest, then the second axis, and so on; in memory the last axis is the
        // fastest.
        let (row, mut rest) = (k % rows, k / rows);
        let (mut column, mut stride) = (0, cols);
        for &dim in &self.dims[1..] {
            let dim = dim as usize; // at most `cols`
            stride /= dim;
            column += rest % dim * stride;
            rest /= dim;
        }
        (row, column)
    }

    /// Checks `values`, decoded from `chunk`, of which the first is value `first` of the file.
    fn finite<T: Number>(
        &self,
        values: &[T],
        chunk: &[u8],
        first: usize,
        rows: usize,
        cols: usize,
    ) -> Result<()> {
        let is_finite = |&value: &T| Into::<f64>::into(value).is_finite();
        let Some(at) = values.iter().position(|value| !is_finite(value)) else { return Ok(()) };
        let (row, column) = self.place(first + at, rows, cols);
        let place = format_args!("row {row}, column {column} (counted from 0)");
        Err(match self.double(chunk, at) {
            Some(value) if value.is_finite() => not_finite(format_args!("{value:e}"), place),
            _ => not_finite(values[at], place),
        })
    }

    /// Number `at` of `chunk` as the file has it, where that is more than an `f32` can hold.
    fn double(&self, chunk: &[u8], at: usize) -> Option<f64> {
        let word = *chunk.as_chunks::<8>().0.get(at).filter(|_| self.element == "f8")?;
        Some(if self.big_endian { f64::from_be_bytes(word) } else { f64::from_le_bytes(word) })
    }
}

/// Appends those of `piece`, values `at` and on in C order, that lie in chosen rows.
fn append_chosen<T: Copy>(
    mut piece: &[T],
    mut at: usize,
    cols: usize,
    into: &Incoming<'_>,
    out: &mut Vec<T>,
) {
    while !piece.is_empty() {
        let (row, rest) = piece.split_at(piece.len().min(cols - at % cols));
        if into.keeps(at / cols) {
            out.extend_from_slice(row);
        }
        at += row.len();
        piece = rest;
    }
}

/// The error for a value that is not finite, or not as a 32-bit float.
pub(super) fn not_finite(value: impl std::fmt::Display, place: impl std::fmt::Display) -> Error {
    Error::new("a value is not a finite 32-bit float")
        .mismatch("numbers between -3.4e38 and 3.4e38", format_args!("{value} in {place}"))
        .help("remove NaN and infinite values; scale those that are beyond 32-bit floats")
}

trait Number: Copy + Default + Into<f64> + std::fmt::Display {}

impl Number for f32 {}
impl Number for u8 {}

fn decode_bytes(element: &str, chunk: &[u8], out: &mut Vec<u8>) {
    match element {
        "b1" => out.extend(chunk.iter().map(|&byte| u8::from(byte != 0))),
        element => {
            debug_assert_eq!(element, "u1", "a matrix of bytes");
            out.extend_from_slice(chunk);
        }
    }
}

fn decode_floats(element: &str, big_endian: bool, chunk: &[u8], out: &mut Vec<f32>) {
    macro_rules! decode {
        ($number:ty) => {{
            let (words, _) = chunk.as_chunks::<{ size_of::<$number>() }>();
            if big_endian {
                out.extend(words.iter().map(|&word| <$number>::from_be_bytes(word) as f32));
            } else {
                out.extend(words.iter().map(|&word| <$number>::from_le_bytes(word) as f32));
            }
        }};
    }
    match element {
        "b1" => out.extend(chunk.iter().map(|&byte| f32::from(u8::from(byte != 0)))),
        "u1" => decode!(u8),
        "i1" => decode!(i8),
        "u2" => decode!(u16),
        "i2" => decode!(i16),
        "u4" => decode!(u32),
        "i4" => decode!(i32),
        "u8" => decode!(u64),
        "i8" => decode!(i64),
        "f2" => {
            let (words, _) = chunk.as_chunks::<2>();
            let float = |&word: &[u8; 2]| match big_endian {
                true => half::f16::from_be_bytes(word),
                false => half::f16::from_le_bytes(word),
            };
            out.extend(words.iter().map(|word| float(word).to_f32()));
        }
        "f4" => decode!(f32),
        element => {
            debug_assert_eq!(element, "f8", "the last of the types");
            decode!(f64);
        }
    }
}
