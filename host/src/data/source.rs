//! Bytes from anywhere, with a bound on how many there can be.

use std::fmt;
use std::io::{self, ErrorKind, Read};

use crate::{Error, Result};

/// How many bytes a source holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    most: u64,
    /// Whether it holds as many, not fewer.
    exact: bool,
    /// The most that is taken.
    limit: u64,
}

/// Compressed data may expand to this many times their size, or to [`FLOOR`] bytes if that is more:
/// tables and pictures stay far below.
const EXPANSION: u64 = 100;
const FLOOR: u64 = 64 << 20;

pub(super) fn expansion_limit(compressed: u64) -> u64 {
    compressed.saturating_mul(EXPANSION).max(FLOOR)
}

impl Size {
    /// This many.
    #[must_use]
    pub const fn exact(bytes: u64) -> Self {
        Self { most: bytes, exact: true, limit: u64::MAX }
    }

    /// No more than this.
    #[must_use]
    pub const fn at_most(bytes: u64) -> Self {
        Self { exact: false, ..Self::exact(bytes) }
    }

    /// The most that `compressed` bytes of gzip or deflate can expand to: 258 bytes per two bits,
    /// at best.
    #[must_use]
    pub const fn expanded(compressed: u64) -> Self {
        Self::at_most(compressed.saturating_mul(1032))
    }

    /// The same for data, of which no more is taken than 100 times their compressed size, or
    /// 64 MiB if that is more.
    #[must_use]
    pub fn limited(compressed: u64) -> Self {
        Self { limit: expansion_limit(compressed), ..Self::expanded(compressed) }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{} bytes", if self.exact { "" } else { "at most " }, self.most)
    }
}

/// A reader and a bound on what it can give, so that a header is checked before memory is asked
/// for.
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
        Self::new(bytes, Size::exact(bytes.len() as u64))
    }
}

impl<R: Read> Source<R> {
    /// A source of what `reader` gives, which is `size` bytes.
    pub fn new(reader: R, size: Size) -> Self {
        Self { reader, size, taken: 0 }
    }

    pub(super) fn array<const N: usize>(&mut self, name: &str) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        match self.fill(&mut bytes)? {
            n if n == N => Ok(bytes),
            n => Err(Error::new(format!("the file ends inside {name}"))
                .mismatch(format_args!("{N} bytes"), format_args!("{n} bytes"))
                .help(COPY_AGAIN)),
        }
    }

    /// Fills `buffer` as far as the source goes, which may be cut off; the number of bytes read.
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
        let most = self.size.most.saturating_sub(self.taken);
        let left = Size { most, ..self.size };
        if left.exact && most > bytes {
            return Err(oversized(bytes, left));
        }
        if most < bytes {
            return Err(truncated(bytes, left));
        }
        let (limit, bytes) = (self.size.limit, bytes.saturating_add(self.taken));
        if bytes > limit { Err(too_far(limit, bytes)) } else { Ok(()) }
    }

    /// Checks that the source is at its end; a compressed one then also checks its sum.
    pub(super) fn end(&mut self, bytes: u64) -> Result<()> {
        match self.reader.by_ref().take(1).read_to_end(&mut Vec::new()) {
            Ok(0) => Ok(()),
            Ok(_) => Err(oversized(bytes, format_args!("more than {bytes} bytes"))),
            Err(e) => Err(unreadable(e)),
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
        .mismatch(format_args!("{bytes} bytes of values"), got)
        .help(COPY_AGAIN)
}

fn oversized(bytes: u64, got: impl fmt::Display) -> Error {
    Error::new("the file is oversized: bytes follow the values that its header declares")
        .mismatch(format_args!("{bytes} bytes of values"), got)
        .help("the file is damaged, or its header was edited: write it again")
}

/// Bytes behind the end of a compressed file that are no compressed data.
pub(super) fn trailing(bytes: &[u8]) -> Error {
    let first = &bytes[..bytes.len().min(8)];
    Error::new("bytes follow the end of the compressed data")
        .expected("the end of the file, or more data in gzip format")
        .got(format_args!("trailing bytes that start with \"{}\"", first.escape_ascii()))
        .help("something was appended to the file: copy or download it again, or compress it again")
}

/// Compressed data that expand to at least `bytes`, more than they may.
pub(super) fn too_far(limit: u64, bytes: u64) -> Error {
    Error::new("the compressed data expand too far")
        .expected(format_args!(
            "at most {limit} bytes: {EXPANSION} times what is compressed, or 64 MiB"
        ))
        .got(format_args!("{bytes} bytes or more"))
        .help(
            "if you trust the file, decompress it first: gzip -d, or numpy.savez in place of \
            savez_compressed",
        )
}

pub(super) fn unreadable(e: io::Error) -> Error {
    match e.downcast::<Error>() {
        Ok(error) => error,
        Err(e) => Error::new("cannot read the bytes").source(e).help(COPY_AGAIN),
    }
}
