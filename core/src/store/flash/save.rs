//! Writing a payload.

use super::Slots;
use super::slot::{Entry, Header};
use crate::base::error::{self, Error, Result};
use crate::base::record::Record;
use crate::store::wire::{CRC, Table};
use embedded_storage::nor_flash::NorFlash;

/// A payload that is being written to the older slot. Until [`Self::commit`] nothing is lost by
/// dropping it.
pub struct Save<'s, F: NorFlash, const PAGE: usize> {
    slots: &'s mut Slots<F, PAGE>,
    slot: usize,
    header: Header,
    digest: crc::Digest<'static, u32, Table>,
    /// Bytes that were given.
    given: usize,
    /// Bytes of them that are written.
    written: usize,
}

impl<F: NorFlash, const PAGE: usize> Slots<F, PAGE> {
    /// Starts to write a payload of `len` bytes over the older slot. `tag` says what it is, such as
    /// the phase of a training and a number that changes with its settings.
    ///
    /// # Errors
    /// [`Error::Budget`] with the bytes of the payload and of the room if it does not fit (nothing
    /// is erased then), [`Error::Source`] if the flash fails. The newest payload stays what it is.
    pub fn save(&mut self, tag: u32, len: usize) -> Result<Save<'_, F, PAGE>, F::Error> {
        if len > self.capacity() {
            return Err(Error::Budget { needed: len, got: self.capacity() });
        }
        let (slot, sequence) = self.next()?;
        self.clear(slot, len)?;
        let header = Header { sequence, tag, len: len as u32, checksum: 0 };
        Ok(Save { slots: self, slot, header, digest: CRC.digest(), given: 0, written: 0 })
    }

    /// Writes a payload that lies in memory; see [`Self::save`].
    ///
    /// # Errors
    /// As [`Self::save`] and [`Save::commit`].
    pub fn store(&mut self, tag: u32, payload: &[u8]) -> Result<Entry, F::Error> {
        let mut save = self.save(tag, payload.len())?;
        save.put(payload)?;
        save.commit()
    }

    /// Writes a checkpoint, from where it lies; see [`Self::save`].
    ///
    /// # Errors
    /// As [`Self::save`] and [`Save::commit`].
    pub fn keep(&mut self, tag: u32, checkpoint: &impl Record) -> Result<Entry, F::Error> {
        let mut save = self.save(tag, checkpoint.words().saturating_mul(4))?;
        checkpoint.write(&mut |words| save.put(bytemuck::cast_slice(words)))?;
        save.commit()
    }
}

impl<F: NorFlash, const PAGE: usize> core::fmt::Debug for Save<'_, F, PAGE> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Save")
            .field("header", &self.header)
            .field("given", &self.given)
            .finish_non_exhaustive()
    }
}

impl<F: NorFlash, const PAGE: usize> Save<'_, F, PAGE> {
    /// Writes the next bytes of the payload, in pieces of any length.
    ///
    /// # Errors
    /// [`Error::Length`] for more bytes than were announced, [`Error::Source`] if the flash cannot
    /// be written; the save cannot be committed then.
    pub fn put(&mut self, mut bytes: &[u8]) -> Result<(), F::Error> {
        let (given, len) = (self.given.saturating_add(bytes.len()), self.header.len as usize);
        error::length("bytes of the payload", given, given.min(len))?;
        self.check()?;
        self.digest.update(bytes);
        while !bytes.is_empty() {
            let free = self.slots.page.get_mut(self.given - self.written..).unwrap_or_default();
            let piece = bytes.len().min(free.len());
            free.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            self.given += piece;
            bytes = bytes.get(piece..).unwrap_or_default();
            if self.given - self.written == PAGE {
                self.flush(PAGE)?;
            }
        }
        Ok(())
    }

    /// Ends the payload: writes the head, reads all of it back and, where it is right, marks it;
    /// from here on it is the newest, whatever comes.
    ///
    /// # Errors
    /// [`Error::Length`] for fewer bytes than were announced, [`Error::Source`] if the flash fails,
    /// [`Error::Format`] if it does not give back what was written: the payload before stays the
    /// newest.
    pub fn commit(mut self) -> Result<Entry, F::Error> {
        error::length("bytes of the payload", self.given, self.header.len as usize)?;
        self.check()?;
        let filled = self.given - self.written;
        let unit = filled.next_multiple_of(Slots::<F, PAGE>::UNIT);
        if let Some(rest) = self.slots.page.get_mut(filled..unit) {
            rest.fill(0);
        }
        self.flush(unit)?;
        self.header.checksum = self.digest.finalize();
        let Self { slots, slot, header, .. } = self;
        slots.seal(slot, header)
    }

    /// Checks that the last page was written: no word may be written again.
    fn check(&self) -> Result<(), F::Error> {
        let full = usize::from(self.given - self.written >= PAGE);
        error::range("pages of this payload that could not be written", full, 0, 0)
    }

    /// Writes so many bytes of the page.
    fn flush(&mut self, bytes: usize) -> Result<(), F::Error> {
        let at = self.slots.at(self.slot) + (Slots::<F, PAGE>::HEAD + self.written) as u32;
        let page = self.slots.page.get(..bytes).unwrap_or_default();
        if !page.is_empty() {
            self.slots.flash.write(at, page).map_err(Error::Source)?;
        }
        self.written = self.given;
        Ok(())
    }
}
