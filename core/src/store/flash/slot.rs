//! What stands at the head of a slot.

use crate::base::error::{self, Error, Result};
use crate::store::wire::CRC;
use core::ops::Range;

/// A byte of erased flash.
pub(super) const ERASED: u8 = 0xff;
/// Bytes of a header.
pub(super) const HEADER: usize = 28;

const MAGIC: u32 = u32::from_le_bytes([0x89, b'T', b'F', b'S']);
const VERSION: u16 = 1;
const MARK: [u8; 4] = *b"CMT1";

/// What one of the two slots holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Slot<E> {
    /// A whole payload.
    Held(Entry),
    /// No header: erased, or being written.
    Empty,
    /// A header without a mark: power was lost before all was known to be written.
    Unfinished,
    /// Damage, or something else: [`Error::Format`] with its place in the flash,
    /// [`Error::Version`], [`Error::Range`] for a payload that is longer than the slot;
    /// [`Error::Source`] where the flash could not be read.
    Refused(Error<E>),
}

/// A payload that is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Entry {
    pub(super) header: Header,
    /// Where the payload is in the flash.
    pub(super) at: u32,
}

impl Entry {
    /// What the payload is, as [`super::Slots::save`] was told.
    pub const fn tag(&self) -> u32 {
        self.header.tag
    }

    /// How many payloads were written before, modulo 2³²; a copy that [`super::Slots::open`] makes
    /// counts as one.
    pub const fn sequence(&self) -> u32 {
        self.header.sequence
    }

    /// Bytes of the payload.
    pub const fn len(&self) -> usize {
        self.header.len as usize
    }

    /// Whether the payload has no bytes.
    pub const fn is_empty(&self) -> bool {
        self.header.len == 0
    }

    /// Where the payload is in the flash; it starts at a multiple of 4. Where flash is mapped into
    /// memory, a model can be used there without a copy until the next payload but one is written:
    /// [`crate::store::wire::View::parse`].
    pub const fn range(&self) -> Range<u32> {
        self.at..self.at + self.header.len
    }
}

/// The fields of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub(super) struct Header {
    pub(super) sequence: u32,
    pub(super) tag: u32,
    pub(super) len: u32,
    pub(super) checksum: u32,
}

impl Header {
    /// The fields in `bytes`, read at `at` of the flash, of a payload of at most `room` bytes.
    pub(super) fn parse(bytes: &[u8], at: usize, room: usize) -> Result<Self> {
        let word = |k: usize| {
            let word = bytes.as_chunks().0.get(k).copied();
            word.map_or(0, u32::from_le_bytes)
        };
        error::expect("magic of a slot in flash", at, MAGIC, word(0))?;
        let sum = CRC.checksum(bytes.get(..HEADER - 4).unwrap_or_default());
        let version = word(1) as u16;
        if version > VERSION && sum == word(6) {
            return Err(Error::Version { reads: VERSION, got: version });
        }
        error::expect("checksum of a slot's head in flash", at + HEADER - 4, sum, word(6))?;
        error::expect("version and reserved field of a slot", at + 4, VERSION.into(), word(1))?;
        error::range("payload of a slot in flash", word(4) as usize, 0, room)?;
        Ok(Self { sequence: word(2), tag: word(3), len: word(4), checksum: word(5) })
    }

    /// Writes the fields to the start of `bytes`, and zeros behind them.
    pub(super) fn fill(&self, bytes: &mut [u8]) {
        let words = [MAGIC, VERSION.into(), self.sequence, self.tag, self.len, self.checksum];
        bytes.fill(0);
        let (fields, rest) = bytes.split_at_mut_checked(HEADER - 4).unwrap_or_default();
        let slots = fields.as_chunks_mut().0.iter_mut();
        slots.zip(words).for_each(|(to, word)| *to = word.to_le_bytes());
        if let Some(sum) = rest.first_chunk_mut() {
            *sum = CRC.checksum(fields).to_le_bytes();
        }
    }
}

/// A word that says that all before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Whole,
    Erased,
    Torn,
}

impl Mark {
    pub(super) fn of(bytes: &[u8]) -> Self {
        if bytes.chunks(MARK.len()).all(|chunk| chunk == MARK) {
            Self::Whole
        } else if bytes.iter().all(|&byte| byte == ERASED) {
            Self::Erased
        } else {
            Self::Torn
        }
    }

    pub(super) fn fill(bytes: &mut [u8]) {
        bytes.chunks_exact_mut(MARK.len()).for_each(|chunk| chunk.copy_from_slice(&MARK));
    }
}

/// Which slot to go on from: of two payloads the later one.
pub(super) fn newest<E>(slots: &[Slot<E>; 2]) -> Option<usize> {
    match slots {
        [Slot::Held(a), Slot::Held(b)] => {
            let ahead = b.header.sequence.wrapping_sub(a.header.sequence);
            Some(usize::from(ahead != 0 && ahead <= i32::MAX as u32))
        }
        [Slot::Held(_), _] => Some(0),
        [_, Slot::Held(_)] => Some(1),
        _ => None,
    }
}
