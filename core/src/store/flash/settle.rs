//! Making certain of what was found after a reset.

use super::slot::{Entry, Header, Mark, Slot};
use super::{MARKS, Slots};
use crate::base::error::{Error, Result};
use embedded_storage::nor_flash::NorFlash;

impl<F: NorFlash, const PAGE: usize> Slots<F, PAGE> {
    /// Chooses the newest payload, and whether it needs more than it has to be there after every
    /// reset to come.
    pub(super) fn choose(&mut self) {
        self.newest = super::slot::newest(&self.state);
        if self.newest.is_none() {
            self.newest = self.unmarked();
        }
        self.is_settled = self.newest.is_none_or(|slot| self.is_certain(slot));
    }

    /// The second mark was begun when the first was done, so where there is one now, the first is
    /// there for good.
    fn is_certain(&mut self, slot: usize) -> bool {
        let [first, second, _] = self.marks(slot);
        first == Mark::Whole && second != Mark::Erased
    }

    /// Where no payload has a mark: one that is whole all the same. Of two the one that was there
    /// first: the other one is a copy of it, in whose head power may have failed.
    fn unmarked(&mut self) -> Option<usize> {
        for slot in 0..2 {
            let is_unfinished = matches!(self.state.get(slot), Some(Slot::Unfinished));
            let header = is_unfinished.then(|| self.header(self.at(slot)).ok().flatten()).flatten();
            if let Some(held @ Slot::Held(_)) = header.map(|header| self.read(slot, header)) {
                self.set(slot, held);
            }
        }
        let later = super::slot::newest(&self.state)?;
        let other = 1 - later;
        if matches!(self.state.get(other), Some(Slot::Held(_))) {
            self.set(later, Slot::Unfinished);
            return Some(other);
        }
        Some(later)
    }

    /// Makes certain of the newest payload: by its last mark, or by a copy in the other slot.
    pub(super) fn settle(&mut self) -> Result<(), F::Error> {
        let Some((slot, entry)) = self.newest.zip(self.newest().copied()) else { return Ok(()) };
        let marks = self.marks(slot);
        let is_marked = marks.iter().any(|&mark| mark != Mark::Erased);
        let [.., last] = marks;
        if is_marked && last == Mark::Erased && self.write_mark(slot, MARKS - 1).is_ok() {
            self.is_settled = true;
            return Ok(());
        }
        self.copy(slot, entry)
    }

    /// Writes the payload of a slot to the other one; it is the newest then.
    fn copy(&mut self, slot: usize, entry: Entry) -> Result<(), F::Error> {
        let (other, len) = (1 - slot, entry.header.len);
        self.clear(other, entry.len())?;
        let to = self.at(other) + Self::HEAD as u32;
        let mut done = 0;
        while done < len {
            let unit = ((len - done) as usize).next_multiple_of(Self::UNIT).min(PAGE);
            let piece = self.page.get_mut(..unit).unwrap_or_default();
            self.flash.read(entry.at + done, piece).map_err(Error::Source)?;
            self.flash.write(to + done, piece).map_err(Error::Source)?;
            done += unit as u32;
        }
        let sequence = entry.sequence().wrapping_add(1);
        self.seal(other, Header { sequence, ..entry.header }).map(|_| ())
    }

    /// Erases as much of a slot as a payload takes. Never spared, not even where all reads as
    /// erased: an erase that was cut may look like one that was not.
    pub(super) fn clear(&mut self, slot: usize, len: usize) -> Result<(), F::Error> {
        self.set(slot, Slot::Empty);
        let from = self.at(slot);
        self.flash.erase(from, from + Self::slot_bytes(len) as u32).map_err(Error::Source)
    }

    /// Ends a slot whose payload is written: the head, all of it read back, and two marks. It is
    /// the newest then.
    pub(super) fn seal(&mut self, slot: usize, header: Header) -> Result<Entry, F::Error> {
        let (at, head) = (self.at(slot), self.page.get_mut(..Self::MARKS).unwrap_or_default());
        header.fill(head);
        self.flash.write(at, head).map_err(Error::Source)?;
        if self.header(at)? != Some(header) {
            let what = "head of a slot just written";
            return Err(Error::Format { what, at: at as usize, expected: header.checksum, got: 0 });
        }
        let payload = at + Self::HEAD as u32;
        self.payload(&header, payload, |_| ())?;
        self.write_mark(slot, 0)?;
        self.write_mark(slot, 1)?;
        let entry = Entry { header, at: payload };
        self.set(slot, Slot::Held(entry));
        (self.newest, self.is_settled) = (Some(slot), true);
        Ok(entry)
    }

    /// The marks of a slot.
    pub(super) fn marks(&mut self, slot: usize) -> [Mark; MARKS] {
        let mut marks = [Mark::Torn; MARKS];
        for (k, mark) in marks.iter_mut().enumerate() {
            let at = self.mark(slot, k);
            let bytes = self.page.get_mut(..Self::UNIT).unwrap_or_default();
            // What cannot be read was written to, or is damaged: either way it is not erased.
            if self.flash.read(at, bytes).is_ok() {
                *mark = Mark::of(bytes);
            }
        }
        marks
    }

    fn write_mark(&mut self, slot: usize, mark: usize) -> Result<(), F::Error> {
        let at = self.mark(slot, mark);
        let bytes = self.page.get_mut(..Self::UNIT).unwrap_or_default();
        Mark::fill(bytes);
        self.flash.write(at, bytes).map_err(Error::Source)
    }

    /// Where a mark is.
    const fn mark(&self, slot: usize, mark: usize) -> u32 {
        self.at(slot) + (Self::MARKS + mark * Self::UNIT) as u32
    }
}
