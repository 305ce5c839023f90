//! Checkpoints and models in NOR flash that survive a loss of power at any write: two slots,
//! through the traits of `embedded-storage`.
//!
//! A payload goes to the slot that does not hold the newest one. A slot is a head and the payload
//! behind it, all little-endian:
//!
//! | offset | type | field | content |
//! |---|---|---|---|
//! | 0 | 4 bytes | magic | `89 54 46 53` (the last three are `TFS`) |
//! | 4 | u16 | version | 1 |
//! | 6 | u16 | reserved | 0 |
//! | 8 | u32 | sequence | one more than that of the payload before, modulo 2³² |
//! | 12 | u32 | tag | what the payload is, in the caller's words |
//! | 16 | u32 | length | bytes of the payload |
//! | 20 | u32 | checksum | CRC-32/ISO-HDLC of the payload |
//! | 24 | u32 | checksum | that of bytes 0 to 23 |
//! | U·⌈28 / U⌉ | U bytes | mark | `43 4D 54 31`, again and again |
//! | | U bytes, twice | further marks | erased, or the same |
//! | | | payload | |
//!
//! U is the largest of 4 and the flash's `WRITE_SIZE` and `READ_SIZE`. [`Save`] erases the sectors
//! that it needs, writes the payload page by page, then the head, reads both back, and writes two
//! marks last. Every word is written once between two erases, as flash with error correction asks
//! for.
//!
//! **Why more than one mark.** A mark is begun when all before it is written and read back. So a
//! payload whose head and checksum are right counts as soon as any of its marks is no longer
//! erased, even a torn one. But a word whose write was cut may be read one way now and another way
//! after the next reset. The second mark is begun when the first is done: where both are there, the
//! first is there for good. Where only one is, [`Slots::open`] writes the third before the payload
//! is believed; if power has failed in that too, or a payload has no mark and there is no other, it
//! copies the payload to the other slot first.
//!
//! **What holds.** *Acknowledged* is a payload that [`Save::commit`] has returned; *reported* is
//! one that was the newest after [`Slots::open`]. Neither is lost before a newer one is whole, and
//! what is found is never a piece of a payload. It depends on what a cut leaves behind how far that
//! goes:
//!
//! | in the word or sector in which power failed | holds for |
//! |---|---|
//! | nothing done, or all done: a supply that lasts for one operation | any number of cuts |
//! | each bit done or not, for good: what most chips show | any number of cuts |
//! | each bit read anew in each read: cells at their threshold | any number of cuts, but for chances of 2⁻¹⁹: all bits of a mark look erased |
//! | words that cannot be read: error correction | any number of cuts |
//! | words that are read as before or as they should be, and change between the two at resets | any number of cuts, unless a slot comes back |
//!
//! In the last row, of which we know no chip, a slot whose erase was cut *comes back*: its head,
//! one mark and all words of its payload are read as before, all together, and not at a later
//! reset. With w words that is a chance of 2⁻ʷ, and it harms only a payload that is newer than the
//! other one or the source of a copy, so after a cut in a mark. No scheme of words that are written
//! once does away with it.
//!
//! Whatever is wrong with a slot is reported by [`Slots::state`], and the other one is used.
//!
//! ```
//! # mod ram {
//! #     use embedded_storage::nor_flash::{ErrorType, NorFlash, ReadNorFlash};
//! #     pub struct Ram(pub [u8; 1024]);
//! #     impl ErrorType for Ram { type Error = core::convert::Infallible; }
//! #     impl ReadNorFlash for Ram {
//! #         const READ_SIZE: usize = 1;
//! #         fn read(&mut self, at: u32, out: &mut [u8]) -> Result<(), Self::Error> {
//! #             out.copy_from_slice(&self.0[at as usize..][..out.len()]);
//! #             Ok(())
//! #         }
//! #         fn capacity(&self) -> usize { self.0.len() }
//! #     }
//! #     impl NorFlash for Ram {
//! #         const WRITE_SIZE: usize = 4;
//! #         const ERASE_SIZE: usize = 256;
//! #         fn erase(&mut self, from: u32, to: u32) -> Result<(), Self::Error> {
//! #             self.0[from as usize..to as usize].fill(0xff);
//! #             Ok(())
//! #         }
//! #         fn write(&mut self, at: u32, bytes: &[u8]) -> Result<(), Self::Error> {
//! #             self.0[at as usize..][..bytes.len()].copy_from_slice(bytes);
//! #             Ok(())
//! #         }
//! #     }
//! # }
//! # let mut chip = ram::Ram([0xff; 1024]);
//! use tamis::{store::flash::Slots, learn::train::{Checkpoint, Schedule}, network::{gates::Signs, net::Network, weights::Weights}};
//! const TRAINING: u32 = 1;
//!
//! // A driver of the flash with sectors of 256 bytes; slots at 0 and 512, written 64 bytes at a time.
//! let mut slots = Slots::<_, 64>::open(&mut chip, 0..1024)?;
//! assert!(slots.newest().is_none());
//! let net = Network::signed(Weights::new(4, 2, &[1, 6], &[0.5, 2.0]).unwrap(), Signs::Positive);
//! slots.keep(TRAINING, &Checkpoint::starting(net))?;
//!
//! // After a reset: open, and resume from what is there.
//! let mut slots = Slots::<_, 64>::open(&mut chip, 0..1024)?;
//! assert_eq!(slots.newest().map(|entry| entry.tag()), Some(TRAINING));
//! let form = Checkpoint::form(&Schedule::PAPER.budget(tamis::base::dims::Dims::new(60, 4, 2, 3), 1, 0), Signs::Positive);
//! let mut words = [0; 32];
//! assert!(form.most_words() <= words.len());
//! let words = slots.load(&mut words)?.unwrap();
//! assert_eq!(Checkpoint::read(&form, words).unwrap().net, net);
//! # Ok::<(), tamis::Error>(())
//! ```

mod save;
mod settle;
mod slot;

pub use save::Save;
pub use slot::{Entry, Slot};

use crate::base::error::{self, Error, Result};
use crate::store::wire::CRC;
use core::ops::Range;
use embedded_storage::nor_flash::NorFlash;
use slot::{ERASED, HEADER, Header, Mark};

/// Two slots in one range of a flash, and a page through which all is written and read.
///
/// A larger page makes for fewer calls of the driver. Its size is a multiple of the flash's
/// `WRITE_SIZE` and `READ_SIZE` (powers of two), and at least 28 bytes.
#[derive(Debug)]
pub struct Slots<F: NorFlash, const PAGE: usize> {
    flash: F,
    start: u32,
    /// Of one slot.
    bytes: u32,
    page: [u8; PAGE],
    state: [Slot<F::Error>; 2],
    newest: Option<usize>,
    /// Whether the newest payload will be there after every reset to come.
    is_settled: bool,
}

/// Marks of a slot: two of each save, and one for what is found with one of them.
const MARKS: usize = 3;

impl<F: NorFlash, const PAGE: usize> Slots<F, PAGE> {
    /// The unit of all writes and reads.
    const UNIT: usize = {
        let (write, read, sector) = (F::WRITE_SIZE, F::READ_SIZE, F::ERASE_SIZE);
        let unit = if write > read { write } else { read };
        let unit = if unit > 4 { unit } else { 4 };
        assert!(write.is_power_of_two() && read.is_power_of_two(), "sizes of the flash");
        assert!(sector.is_multiple_of(unit) && sector > 0, "sectors of whole units");
        let head = HEADER.next_multiple_of(unit);
        assert!(PAGE.is_multiple_of(unit) && PAGE >= head, "a page for a head");
        unit
    };
    /// Where the marks are.
    const MARKS: usize = HEADER.next_multiple_of(Self::UNIT);
    /// Bytes of a slot before its payload.
    pub const HEAD: usize = Self::MARKS + MARKS * Self::UNIT;

    /// The fewest bytes of a slot for payloads of up to so many bytes: whole sectors. The range of
    /// [`Self::open`] has two slots.
    #[must_use]
    pub const fn slot_bytes(payload: usize) -> usize {
        payload.saturating_add(Self::HEAD).div_ceil(F::ERASE_SIZE).saturating_mul(F::ERASE_SIZE)
    }

    /// Reads all of both slots of `range`, whose halves are whole sectors. Only if power has failed
    /// between the head and the last mark of the newest payload, one mark is written, or the payload
    /// once more to the other slot. If the flash takes neither, the next save fails with the reason.
    ///
    /// # Errors
    /// [`Error::Range`] for a range beyond the flash, [`Error::Length`] where its halves are no
    /// whole sectors, [`Error::Budget`] where they have no room for a head, [`Error::Source`] if
    /// neither slot can be read.
    pub fn open(flash: F, range: Range<u32>) -> Result<Self, F::Error> {
        let mut slots = Self::new(flash, range)?;
        slots.state = match [slots.inspect(0), slots.inspect(1)] {
            [Slot::Refused(Error::Source(error)), Slot::Refused(Error::Source(_))] => {
                return Err(Error::Source(error));
            }
            state => state,
        };
        slots.choose();
        if !slots.is_settled {
            slots.is_settled = slots.settle().is_ok();
        }
        Ok(slots)
    }

    /// Erases both slots of `range`, whatever they hold.
    ///
    /// # Errors
    /// As [`Self::open`]; [`Error::Source`] if the flash cannot be erased.
    pub fn format(flash: F, range: Range<u32>) -> Result<Self, F::Error> {
        let mut slots = Self::new(flash, range)?;
        let end = slots.start + 2 * slots.bytes;
        slots.flash.erase(slots.start, end).map_err(Error::Source)?;
        Ok(slots)
    }

    fn new(flash: F, range: Range<u32>) -> Result<Self, F::Error> {
        let [start, end] = [range.start as usize, range.end as usize];
        error::range("end of the slots in flash", end, start, flash.capacity())?;
        let (half, sector) = ((end - start) / 2, F::ERASE_SIZE);
        error::length("start of the slots, at a sector", start, start - start % sector)?;
        let whole = 2 * (half - half % sector);
        error::length("bytes of two slots of whole sectors", end - start, whole)?;
        if half < Self::HEAD {
            return Err(Error::Budget { needed: Self::slot_bytes(0), got: half });
        }
        let (start, bytes, page) = (range.start, half as u32, [0; PAGE]);
        let state = [Slot::Empty, Slot::Empty];
        Ok(Self { flash, start, bytes, page, state, newest: None, is_settled: true })
    }

    /// Bytes of the longest payload.
    pub const fn capacity(&self) -> usize {
        (self.bytes as usize).saturating_sub(Self::HEAD)
    }

    /// What either slot holds, or what is wrong with it.
    pub const fn state(&self) -> &[Slot<F::Error>; 2] {
        &self.state
    }

    /// The newest payload that is whole.
    pub fn newest(&self) -> Option<&Entry> {
        match self.state.get(self.newest?)? {
            Slot::Held(entry) => Some(entry),
            _ => None,
        }
    }

    /// Reads the newest payload to the start of `out`, a last incomplete word filled with zeros,
    /// and checks it once more; `None` where there is none.
    ///
    /// # Errors
    /// [`Error::Budget`] if `out` is too short, [`Error::Source`] if the flash cannot be read,
    /// [`Error::Format`] if what it gives is no longer what was there when it was opened.
    pub fn load<'o>(&mut self, out: &'o mut [u32]) -> Result<Option<&'o [u32]>, F::Error> {
        let Some(&entry) = self.newest() else { return Ok(None) };
        let (words, got) = (entry.len().div_ceil(4), size_of_val(out));
        let out = out.get_mut(..words).ok_or(Error::Budget { needed: 4 * words, got })?;
        if let Some(last) = out.last_mut() {
            *last = 0;
        }
        let mut left: &mut [u8] = bytemuck::cast_slice_mut(out);
        self.payload(&entry.header, entry.at, |piece| {
            let (chunk, rest) =
                core::mem::take(&mut left).split_at_mut_checked(piece.len()).unwrap_or_default();
            chunk.iter_mut().zip(piece).for_each(|(to, from)| *to = *from);
            left = rest;
        })?;
        Ok(Some(out))
    }

    /// The flash, to read a payload where it lies ([`Entry::range`]).
    pub const fn flash(&mut self) -> &mut F {
        &mut self.flash
    }

    /// Gives the flash back.
    pub fn release(self) -> F {
        self.flash
    }

    /// The slot to write next and its sequence number. The newest payload is certain when the other
    /// slot is erased.
    fn next(&mut self) -> Result<(usize, u32), F::Error> {
        if !self.is_settled {
            self.settle()?;
        }
        let Some((newest, entry)) = self.newest.zip(self.newest()) else {
            // One that cannot be read now might be read later, and pass for newer than what is
            // written now.
            let unread = |slot: &Slot<F::Error>| matches!(slot, Slot::Refused(Error::Source(_)));
            return Ok((self.state.iter().position(unread).unwrap_or(0), 0));
        };
        Ok((1 - newest, entry.sequence().wrapping_add(1)))
    }

    fn set(&mut self, slot: usize, to: Slot<F::Error>) {
        if let Some(state) = self.state.get_mut(slot) {
            *state = to;
        }
    }

    /// Where a slot starts.
    const fn at(&self, slot: usize) -> u32 {
        self.start + slot as u32 * self.bytes
    }

    /// Reads all of a slot.
    fn inspect(&mut self, slot: usize) -> Slot<F::Error> {
        let at = self.at(slot);
        let header = match self.header(at) {
            Ok(Some(header)) => header,
            Ok(None) => return Slot::Empty,
            Err(error) => return Slot::Refused(error),
        };
        if self.marks(slot) == [Mark::Erased; MARKS] {
            return Slot::Unfinished;
        }
        self.read(slot, header)
    }

    /// Reads the payload of a slot.
    fn read(&mut self, slot: usize, header: Header) -> Slot<F::Error> {
        let at = self.at(slot) + Self::HEAD as u32;
        match self.payload(&header, at, |_| ()) {
            Ok(()) => Slot::Held(Entry { header, at }),
            Err(error) => Slot::Refused(error),
        }
    }

    /// The header of the slot at `at`; none where it is erased.
    fn header(&mut self, at: u32) -> Result<Option<Header>, F::Error> {
        let head = self.page.get_mut(..Self::MARKS).unwrap_or_default();
        self.flash.read(at, head).map_err(Error::Source)?;
        if head.iter().all(|&byte| byte == ERASED) {
            return Ok(None);
        }
        let room = (self.bytes as usize).saturating_sub(Self::HEAD);
        Header::parse(head, at as usize, room).map(Some).map_err(Error::widen)
    }

    /// Gives the payload at `at` to `take`, piece by piece, and checks it.
    fn payload(
        &mut self,
        header: &Header,
        at: u32,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), F::Error> {
        let (mut digest, mut done) = (CRC.digest(), 0);
        while done < header.len {
            let left = (header.len - done) as usize;
            let whole = left.next_multiple_of(Self::UNIT).min(PAGE);
            let piece = self.page.get_mut(..whole).unwrap_or_default();
            self.flash.read(at + done, piece).map_err(Error::Source)?;
            let piece = piece.get(..left.min(PAGE)).unwrap_or_default();
            digest.update(piece);
            take(piece);
            done += piece.len() as u32;
        }
        let (expected, got) = (header.checksum, digest.finalize());
        error::expect("checksum of the payload in flash", at as usize, expected, got)
    }
}
