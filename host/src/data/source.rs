//! Bytes from anywhere, with a bound on how many there can be.

use std::fmt;
use std::io::{self, ErrorKind, Read};

use crate::{Error, Result};

/// How many bytes a source holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// This many.
    Exact(u64),
    /// No more than this: what a compressed file can expand to.
    AtMost(u64),
    /// The same, and no more than `limit` of them are taken.
    Limited {
        /// What there can be.
        most: u64,
        /// What is taken.
        limit: u64,
    },
}

/// Compressed data may expand to this many times their size, or to [`FLOOR`] bytes if that is more:
/// tables and pictures stay far below, a file that is made to fill the memory goes up to 1032
/// times.
const EXPANSION: u64 = 100;
const FLOOR: u64 = 64 << 20;

/// The most bytes that `compressed` bytes may expand to.
pub(super) fn expansion_limit(compressed: u64) -> u64 {
    compressed.saturating_mul(EXPANSION).max(FLOOR)
}

impl Size {
    /// The most that `compressed` bytes of gzip or deflate can expand to: 258 bytes per two bits,
    /// at best.
    #[must_use]
    pub fn expanded(compressed: u64) -> Self {
        Self::AtMost(compressed.saturating_mul(1032))
    }

    /// The same for data, which may expand to 100 times their compressed size, or to 64 MiB if that
    /// is more.
    #[must_use]
    pub fn limited(compressed: u64) -> Self {
        Self::Limited {
            most: Self::expanded(compressed).most(),
            limit: expansion_limit(compressed),
        }
    }

    fn most(self) -> u64 {
        match self {
            Self::Exact(n) | Self::AtMost(n) | Self::Limited { most: n, .. } => n,
        }
    }

    fn less(self, taken: u64) -> Self {
        match self {
            Self::Exact(n) => Self::Exact(n.saturating_sub(taken)),
            Self::AtMost(n) => Self::AtMost(n.saturating_sub(taken)),
            Self::Limited { most, limit } => Self::Limited {
                most: most.saturating_sub(taken),
                limit: limit.saturating_sub(taken),
            },
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(n) => write!(f, "{n} bytes"),
            Self::AtMost(n) | Self::Limited { most: n, .. } => write!(f, "at most {n} bytes"),
        }
    }
}

/// A reader and a bound on what it can give, so that a header is checked before memory is asked
/// for.
///
/// ```
/// use tamis_host::data::{Source, idx};
/// let file = [0, 0, 8, 1, 0, 0, 0, 2, 7, 9]; // two bytes: 7 and 9
/// let matrix = idx::read(Source::bytes(&file)).unwrap();
/// assert_eq!((matrix.rows, matrix.cols), (2, 1));
/// ```
#[derive(Debug)]
pub struct Source<R> {
    reader: R,
    size: Size,
    taken: u64,
}

impl<'a> Source<&'a [u8]> {
    /// A source of the bytes given.
    #[must_use]
    pub fn bytes(bytes: &'a [u8]) -> Self {
        Self::new(bytes, Size::Exact(bytes.len() as u64))
    }
}

impl<R: Read> Source<R> {
    /// A source of what `reader` gives, which is `size` bytes.
    pub fn new(reader: R, size: Size) -> Self {
        Self { reader, size, taken: 0 }
    }

    /// The next `N` bytes, of what is called `name`.
    pub(super) fn array<const N: usize>(&mut self, name: &str) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        match self.fill(&mut bytes)? {
            n if n == N => Ok(bytes),
            n => Err(Error::new(format!("the file ends inside {name}"))
                .expected(format_args!("{N} bytes"))
                .got(format_args!("{n} bytes"))
                .help(COPY_AGAIN)),
        }
    }

    /// Fills `buffer` as far as the source goes: the number of bytes read. A compressed stream that
    /// is cut off ends there.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.read(rest) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::UnexpectedEof => break,
                Err(e) => return Err(unreadable(e)),
            }
        }
        Ok(filled)
    }

    /// Checks that `bytes` more bytes of values, and no others, can follow.
    pub(super) fn expect(&self, bytes: u64) -> Result<()> {
        let left = self.size.less(self.taken);
        match left {
            Size::Exact(n) if n > bytes => Err(oversized(bytes, left)),
            _ if left.most() < bytes => Err(truncated(bytes, left)),
            Size::Limited { limit, .. } if limit < bytes => {
                Err(TooFar { limit: limit + self.taken, bytes: bytes + self.taken }.into())
            }
            _ => Ok(()),
        }
    }

    /// Checks that the source is at its end; a compressed one then also checks its sum.
    pub(super) fn end(&mut self, bytes: u64) -> Result<()> {
        let mut one = [0];
        loop {
            match self.reader.read(&mut one) {
                Ok(0) => return Ok(()),
                Ok(_) => return Err(oversized(bytes, format_args!("more than {bytes} bytes"))),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(unreadable(e)),
            }
        }
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.reader.read(buffer)?;
        self.taken += n as u64;
        Ok(n)
    }
}

const COPY_AGAIN: &str = "the file is cut off or damaged: copy or download it again";

pub(super) fn truncated(bytes: u64, got: impl fmt::Display) -> Error {
    Error::new("the file is truncated")
        .expected(format_args!("{bytes} bytes of values"))
        .got(got)
        .help(COPY_AGAIN)
}

fn oversized(bytes: u64, got: impl fmt::Display) -> Error {
    Error::new("the file is oversized: bytes follow the values that its header declares")
        .expected(format_args!("{bytes} bytes of values"))
        .got(got)
        .help("the file is damaged, or its header was edited: write it again")
}

/// Bytes behind the end of a compressed file that are no compressed data: the first of them.
#[derive(Debug)]
pub(super) struct Trailing(pub(super) Vec<u8>);

impl fmt::Display for Trailing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "trailing bytes that start with \"{}\"", self.0.escape_ascii())
    }
}

impl std::error::Error for Trailing {}

/// Compressed data that expand to more than they may: at least to `bytes`.
#[derive(Debug, Clone, Copy)]
pub(super) struct TooFar {
    pub(super) limit: u64,
    pub(super) bytes: u64,
}

impl fmt::Display for TooFar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the compressed data expand too far")
    }
}

impl std::error::Error for TooFar {}

impl From<TooFar> for Error {
    fn from(too_far: TooFar) -> Self {
        let TooFar { limit, bytes } = too_far;
        Self::new(too_far.to_string())
            .expected(format_args!(
                "at most {limit} bytes: {EXPANSION} times what is compressed, \
                or 64 MiB"
            ))
            .got(format_args!("{bytes} bytes or more"))
            .help(
                "if you trust the file, decompress it first: gzip -d, or numpy.savez in place of \
                savez_compressed",
            )
    }
}

pub(super) fn unreadable(e: io::Error) -> Error {
    if let Some(too_far) = e.get_ref().and_then(|inner| inner.downcast_ref::<TooFar>()) {
        return (*too_far).into();
    }
    if let Some(trailing) = e.get_ref().and_then(|inner| inner.downcast_ref::<Trailing>()) {
        return Error::new("bytes follow the end of the compressed data")
            .expected("the end of the file, or more data in gzip format")
            .got(trailing)
            .help(
                "something was appended to the file: copy or download it again, or compress it \
                again",
            );
    }
    Error::new("cannot read the bytes").source(e).help(COPY_AGAIN)
}
