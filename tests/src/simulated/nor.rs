//! NOR flash whose power fails at any operation.

use embedded_storage::nor_flash::{
    ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash, check_erase, check_read,
    check_write,
};
use tamis::base::rng::Rng;

/// Flash of `BYTES` bytes that is written in words of `WORD` bytes and erased in sectors of
/// `SECTOR`.
///
/// Erasing sets all bits of a sector, writing clears bits of a word, and a word is written once
/// between two erases: to write it again is an error, as on flash with error correction. Each
/// sector and each word is one operation, and power can be made to fail in any of them: what was
/// being changed is left as [`Tear`] says, and nothing more is done until [`Self::restart`].
#[derive(Debug, Clone)]
pub struct Nor<const BYTES: usize, const WORD: usize, const SECTOR: usize> {
    bytes: [u8; BYTES],
    /// Bits that an operation was cut in: they are read one way or the other.
    weak: [u8; BYTES],
    /// What became of a byte since its sector was erased: [`USED`] and what follows there.
    marks: [u8; BYTES],
    /// See [`Self::has_come_back`].
    least_missing: usize,
    rng: Rng,
    tear: Tear,
    /// Operations so far.
    operations: u32,
    /// The operation, from 0, in which power fails.
    cut: Option<u32>,
    is_on: bool,
}

/// Of a byte: it was written.
const USED: u8 = 1;
/// Power failed in an erase of it.
const ERASING: u8 = 2;
/// It was not the same at every reset even before that.
const LOOSE: u8 = 4;

/// What an operation leaves behind in which power failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tear {
    /// All as it was.
    Before,
    /// All as it should be, but nobody was told.
    After,
    /// Each bit that was to change did or did not, for good.
    Halfway,
    /// Each bit that was to change is read one way or the other, at every read anew.
    Weak,
    /// Each word that was to change is read as it was or as it should be, and after every
    /// [`Nor::restart`] perhaps the other way.
    Drifting,
    /// Words that cannot be read: error correction finds no code.
    Unreadable,
}

impl Tear {
    /// Every one of them.
    pub const ALL: [Self; 6] =
        [Self::Before, Self::After, Self::Halfway, Self::Weak, Self::Drifting, Self::Unreadable];
}

/// Why an operation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Power is off.
    Off,
    /// A word was to be written again before it was erased.
    Twice(u32),
    /// A word that has no code.
    Unreadable(u32),
    /// A place that is outside or not the start of a word.
    Place(NorFlashErrorKind),
}

impl NorFlashError for Fault {
    fn kind(&self) -> NorFlashErrorKind {
        match self {
            Self::Place(kind) => *kind,
            _ => NorFlashErrorKind::Other,
        }
    }
}

impl<const BYTES: usize, const WORD: usize, const SECTOR: usize> Nor<BYTES, WORD, SECTOR> {
    /// Flash that was never written; `seed` says what torn bits become.
    #[must_use]
    pub fn new(seed: u64, tear: Tear) -> Self {
        let rng = Rng::new(seed, 0);
        let (bytes, weak, marks) = ([0xff; BYTES], [0; BYTES], [0; BYTES]);
        Self {
            bytes,
            weak,
            marks,
            least_missing: usize::MAX,
            rng,
            tear,
            operations: 0,
            cut: None,
            is_on: true,
        }
    }

    /// Power will fail in the operation of this number, from 0, counted from [`Self::new`].
    pub fn cut_in(&mut self, operation: u32) {
        self.cut = Some(operation);
    }

    /// Operations so far.
    #[must_use]
    pub fn operations(&self) -> u32 {
        self.operations
    }

    /// Whether power is on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Power is back, and stays.
    pub fn restart(&mut self) {
        (self.is_on, self.cut) = (true, None);
        if self.tear == Tear::Drifting {
            let words = self.bytes.chunks_mut(WORD).zip(self.weak.chunks(WORD));
            for (word, weak) in words.filter(|(_, weak)| weak.iter().any(|&bits| bits != 0)) {
                let other = if self.rng.bits() & 1 == 0 { 0 } else { 0xff };
                word.iter_mut().zip(weak).for_each(|(byte, weak)| *byte ^= weak & other);
            }
            let missing =
                (0..BYTES).step_by(SECTOR).filter_map(|sector| self.missing(sector)).min();
            self.least_missing = self.least_missing.min(missing.unwrap_or(usize::MAX));
        }
    }

    /// Whether a sector in whose erase power failed was ever found after a reset with all its words
    /// as they were before, but for `words`: with [`Tear::Drifting`] that happens.
    #[must_use]
    pub fn has_come_back(&self, words: usize) -> bool {
        self.least_missing <= words
    }

    /// How many words are erased of those that a sector had for certain when power failed in its
    /// erase.
    fn missing(&self, sector: usize) -> Option<usize> {
        let sector = sector..sector + SECTOR;
        self.marks[sector.clone()].iter().find(|&marks| marks & ERASING != 0)?;
        let words = sector.step_by(WORD).map(|word| word..word + WORD);
        let is_missing = |mut word: core::ops::Range<usize>| {
            word.any(|at| {
                self.marks[at] & (ERASING | LOOSE) == ERASING && self.bytes[at] & self.weak[at] != 0
            })
        };
        Some(words.filter(|word| is_missing(word.clone())).count())
    }

    /// All bytes, to look at and to damage.
    pub fn bytes(&mut self) -> &mut [u8; BYTES] {
        &mut self.bytes
    }

    /// Counts an operation; whether it is done, what is left of it if power fails in it, or nothing
    /// at all.
    fn begin(&mut self) -> Result<Option<Tear>, Fault> {
        if !self.is_on {
            return Err(Fault::Off);
        }
        let cut = self.cut == Some(self.operations);
        self.operations += 1;
        self.is_on = !cut;
        Ok(cut.then_some(self.tear))
    }

    /// Changes the byte at `at` to `to`, which is to write or to erase it, or leaves what is left
    /// of that.
    fn change(&mut self, at: usize, to: u8, is_write: bool, tear: Option<Tear>) {
        let (random, was_weak, byte) =
            (self.rng.bits() as u8, self.weak[at] != 0, &mut self.bytes[at]);
        let changed = *byte ^ to;
        match tear {
            Some(Tear::Before) => return,
            None | Some(Tear::After) => {
                (*byte, self.weak[at]) = (to, 0);
            }
            Some(Tear::Halfway) => *byte ^= changed & random,
            Some(Tear::Weak | Tear::Drifting) => self.weak[at] |= changed,
            // Some code is broken in a word that changes at all.
            Some(Tear::Unreadable) => self.weak[at] = 0xff,
        }
        let is_done = matches!(tear, None | Some(Tear::After));
        match (is_write, is_done) {
            (true, _) => self.marks[at] |= USED,
            (_, true) => self.marks[at] = 0,
            (_, false) if self.marks[at] & ERASING == 0 && (changed != 0 || was_weak) => {
                self.marks[at] |= ERASING | if was_weak { LOOSE } else { 0 };
            }
            _ => {}
        }
    }
}

impl<const BYTES: usize, const WORD: usize, const SECTOR: usize> ErrorType
    for Nor<BYTES, WORD, SECTOR>
{
    type Error = Fault;
}

impl<const BYTES: usize, const WORD: usize, const SECTOR: usize> ReadNorFlash
    for Nor<BYTES, WORD, SECTOR>
{
    const READ_SIZE: usize = WORD;

    fn read(&mut self, offset: u32, out: &mut [u8]) -> Result<(), Fault> {
        check_read(self, offset, out.len()).map_err(Fault::Place)?;
        if !self.is_on {
            return Err(Fault::Off);
        }
        let start = offset as usize;
        for (k, out) in out.iter_mut().enumerate() {
            let weak = self.weak[start + k];
            if weak != 0 && self.tear == Tear::Unreadable {
                return Err(Fault::Unreadable(offset + k as u32));
            }
            let random =
                if weak != 0 && self.tear == Tear::Weak { self.rng.bits() as u8 } else { 0 };
            *out = self.bytes[start + k] ^ (weak & random);
        }
        Ok(())
    }

    fn capacity(&self) -> usize {
        BYTES
    }
}

impl<const BYTES: usize, const WORD: usize, const SECTOR: usize> NorFlash
    for Nor<BYTES, WORD, SECTOR>
{
    const WRITE_SIZE: usize = WORD;
    const ERASE_SIZE: usize = SECTOR;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), Fault> {
        check_erase(self, from, to).map_err(Fault::Place)?;
        for sector in (from as usize..to as usize).step_by(SECTOR) {
            let tear = self.begin()?;
            (sector..sector + SECTOR).for_each(|at| self.change(at, 0xff, false, tear));
            if tear.is_some() {
                return Err(Fault::Off);
            }
        }
        Ok(())
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Fault> {
        check_write(self, offset, bytes.len()).map_err(Fault::Place)?;
        for (word, at) in bytes.chunks(WORD).zip((offset as usize..).step_by(WORD)) {
            if self.is_on && self.marks[at..at + WORD].iter().any(|marks| marks & USED != 0) {
                return Err(Fault::Twice(at as u32));
            }
            let tear = self.begin()?;
            for (k, &byte) in word.iter().enumerate() {
                let to = byte & self.bytes[at + k];
                self.change(at + k, to, true, tear);
            }
            if tear.is_some() {
                return Err(Fault::Off);
            }
        }
        Ok(())
    }
}
