//! A model file in flash.

use crate::base::budget::enough;
use crate::base::error::{self, Error, Result};
use crate::store::wire::{CHECKSUM, CRC, HEADER};
use embedded_storage::nor_flash::ReadNorFlash;

/// The fewest words of a buffer.
pub const LEAST_WORDS: usize = 12;

/// Where a file is in the flash.
#[derive(Debug)]
pub(super) struct File<R> {
    pub(super) source: R,
    pub(super) start: u32,
    pub(super) len: usize,
    pub(super) checksum: u32,
}

impl<R: ReadNorFlash> File<R> {
    /// Every read starts and ends at a multiple of this.
    const UNIT: usize = {
        let is_fine = 4_usize.is_multiple_of(R::READ_SIZE);
        assert!(is_fine, "flash that is read in units of at most 4 bytes");
        4
    };

    /// Checks that the file ends within the flash.
    pub(super) fn check_end(&self) -> Result<(), R::Error> {
        let end = self.len.saturating_add(self.start as usize);
        let most = self.source.capacity().min(u32::MAX as usize);
        error::range("end of the model in flash", end, HEADER, most)
    }

    /// Reads whole words at an offset in the file.
    pub(super) fn read(&mut self, at: usize, out: &mut [u8]) -> Result<(), R::Error> {
        error::length("place in the model, at a word", at % Self::UNIT, 0)?;
        self.source.read(self.start.saturating_add(at as u32), out).map_err(Error::Source)
    }

    /// Checks the checksum.
    pub(super) fn check(&mut self, buffer: &mut [u32]) -> Result<(), R::Error> {
        check_buffer(buffer)?;
        let (mut digest, mut at) = (CRC.digest(), 0);
        while at < self.len {
            let most = if at < CHECKSUM.start { CHECKSUM.start - at } else { self.len - at };
            let buffer: &mut [u8] = bytemuck::cast_slice_mut(buffer);
            let most = most.min(buffer.len());
            let piece = buffer.get_mut(..most).unwrap_or_default();
            self.read(at, piece)?;
            digest.update(piece);
            at += piece.len();
            if at == CHECKSUM.start {
                at = CHECKSUM.end;
            }
        }
        let (expected, got) = (digest.finalize(), self.checksum);
        error::expect("checksum", 12, expected, got)
    }
}

pub(super) fn check_buffer<S>(buffer: &[u32]) -> Result<(), S> {
    enough(LEAST_WORDS, buffer.len()).map_err(Error::widen)
}
