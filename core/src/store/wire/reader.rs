//! Fields of a file, read forward, and the header that it starts with.

use super::{HEADER, MAGIC, OPTIONAL, SECTION, VERSION, checksum, padding};
use crate::base::error::{expect, tri};
use crate::infer::model::Activation;
use crate::{Error, Result};

/// Reads forward; `at` is the offset from the start of the model, and `bytes` end where what
/// is read ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reader<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// What was not read yet.
    pub(super) const fn rest(&self) -> &'a [u8] {
        match self.bytes.split_at_checked(self.at) {
            Some((_, rest)) => rest,
            None => &[],
        }
    }

    /// Checks that everything was read.
    pub(super) const fn end(&self, what: &'static str) -> Result<()> {
        expect(what, self.at, self.at as u32, self.bytes.len() as u32)
    }

    const fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let left = self.bytes.len().saturating_sub(self.at);
        if let Some((taken, _)) = self.rest().split_at_checked(len) {
            self.at += len;
            return Ok(taken);
        }
        let expected = if len > u32::MAX as usize { u32::MAX } else { len as u32 };
        let (what, got) = ("bytes left for a field", left as u32);
        Err(Error::Format { what, at: self.at, expected, got })
    }

    pub(super) const fn u16(&mut self) -> Result<u16> {
        match tri!(self.take(2)).first_chunk() {
            Some(bytes) => Ok(u16::from_le_bytes(*bytes)),
            None => Ok(0),
        }
    }

    pub(super) const fn u32(&mut self) -> Result<u32> {
        match tri!(self.take(4)).first_chunk() {
            Some(bytes) => Ok(u32::from_le_bytes(*bytes)),
            None => Ok(0),
        }
    }

    pub(super) const fn words<const N: usize>(&mut self) -> Result<[usize; N]> {
        let mut words = [0; N];
        let mut left: &mut [usize] = &mut words;
        while let [word, behind @ ..] = left {
            *word = tri!(self.u32()) as usize;
            left = behind;
        }
        Ok(words)
    }

    /// An array of so many bytes, and the zero bytes that fill the last word.
    pub(super) const fn array(&mut self, len: usize) -> Result<&'a [u8]> {
        let bytes = tri!(self.take(len));
        let at = self.at;
        let mut left = tri!(self.take(padding(len)));
        while let [zero, behind @ ..] = left {
            tri!(expect("padding", at + padding(len) - left.len(), 0, *zero as u32));
            left = behind;
        }
        Ok(bytes)
    }

    /// Offset, tag, whether it may be skipped, and payload of the next section.
    pub(super) const fn section(&mut self) -> Result<(usize, u16, bool, Self)> {
        let at = self.at;
        let (tag, flags, len) = (tri!(self.u16()), tri!(self.u16()), tri!(self.u32()) as usize);
        tri!(expect("flags of a section", at + 2, (flags & OPTIONAL) as u32, flags as u32));
        tri!(expect("length of a section, modulo 4", at + 4, 0, (len % 4) as u32));
        tri!(self.take(len));
        let bytes = match self.bytes.split_at_checked(self.at) {
            Some((payload, _)) => payload,
            None => &[],
        };
        Ok((at, tag, flags == OPTIONAL, Self { bytes, at: at + SECTION }))
    }
}

/// The length in bytes that a header states, for a model at the start of a longer region such as a
/// flash sector.
///
/// Only magic, version, the reserved field and the length itself are checked here; the header is
/// the first 24 bytes.
///
/// # Errors
/// [`Error::Version`] for a model of a later version, [`Error::Format`] if `bytes` does not start
/// with the header of a model.
pub const fn encoded_len(bytes: &[u8]) -> Result<usize> {
    let mut reader = Reader { bytes, at: 0 };
    tri!(expect("magic of a model", 0, MAGIC, tri!(reader.u32())));
    let version = tri!(reader.u16());
    if version > VERSION {
        // Nothing else in a later version needs to be as it is here, the checksum included.
        return Err(Error::Version { reads: VERSION, got: version });
    }
    tri!(expect("version", 4, VERSION as u32, version as u32));
    tri!(expect("reserved", 6, 0, tri!(reader.u16()) as u32));
    let len = tri!(reader.u32());
    let least = if len < HEADER as u32 { HEADER as u32 } else { len };
    tri!(expect("length of the model", 8, least.saturating_add(padding(len as usize) as u32), len));
    Ok(len as usize)
}

/// Checks the address, the head and the checksum; what follows, inputs and outputs.
pub(super) fn encoded(bytes: &[u8]) -> Result<(Reader<'_>, u32, u32)> {
    let off = bytes.as_ptr().addr() % align_of::<u32>();
    let what = "address of the model, modulo 4 (see Aligned, include_model!)";
    expect(what, 0, 0, off as u32)?;
    head(bytes)
}

/// Checks the head and the checksum; what follows, inputs and outputs.
pub(super) const fn head(bytes: &[u8]) -> Result<(Reader<'_>, u32, u32)> {
    let len = tri!(encoded_len(bytes));
    let there = if bytes.len() > u32::MAX as usize { u32::MAX } else { bytes.len() as u32 };
    tri!(expect("length of the model", 8, len as u32, there));
    let mut reader = Reader { bytes, at: 12 };
    tri!(expect("checksum", 12, checksum(bytes), tri!(reader.u32())));
    let (inputs, outputs) = (tri!(reader.u32()), tri!(reader.u32()));
    Ok((reader, inputs, outputs))
}

/// Bytes as words, where they lie.
pub(super) fn cast(bytes: &[u8]) -> Result<&[u32]> {
    let off = Error::Format { what: "alignment", at: 0, expected: 4, got: 1 };
    bytemuck::try_cast_slice(bytes).map_err(|_| off)
}

/// What a later program wrote: the checksum is right, so this is no damage.
pub(super) const fn later(what: &'static str, at: usize, got: u16) -> Error {
    Error::Newer { what, at, got: got as u32 }
}

/// A layer of integers in an encoding that is no longer read.
pub(super) const fn removed(at: usize, tag: u16) -> Error {
    Error::Removed { what: "encoding of a layer", at, got: tag as u32 }
}

pub(super) const fn activation(payload: &mut Reader<'_>) -> Result<Activation> {
    let at = payload.at;
    match tri!(payload.u16()) {
        0 => Ok(Activation::Identity),
        1 => Ok(Activation::Relu),
        got => Err(later("activation", at, got)),
    }
}
