//! Checkpoints of a run in a file, from which it resumes.
//!
//! A file is little-endian: the magic of its recipe, a version, the CRC-32 of all that follows;
//! what the run is bound to ([`terms`]); and the words of its checkpoint, as
//! [`tamis::learn::checkpoint`] says. It is written beside its place and renamed over it, so that
//! it is whole at any time.
//!
//! Reading believes nothing: the checksum is taken in pieces, at most what the sizes of the problem
//! allow is held, and every count, index and number is checked before the run sees it.

pub(crate) mod terms;

use std::convert::Infallible;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crc::{CRC_32_ISO_HDLC, Crc, Table};
use tamis::base::record::Record;
use tamis::learn::checkpoint::Form as BodyForm;
use tamis::learn::deep::dynamic;
use tamis::learn::{anneal, lm, train};

use crate::operator::Stop;
use crate::{Error, Result, base::file};
use terms::Term;

const VERSION: u32 = 9;
const MAGIC: usize = 8;
/// Where the checksum is, and where that which it is of begins.
const SUM: usize = 12;
const SUMMED: usize = 16;
const TERM: usize = 8;
const WORD: usize = 4;
/// Bytes read at a time.
const PIECE: usize = 1 << 16;

static CRC_32: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);

static WRITING: AtomicBool = AtomicBool::new(false);

/// Whether a checkpoint is being written, which a program that ends should wait for.
pub(crate) fn is_writing() -> bool {
    WRITING.load(Ordering::SeqCst)
}

/// Of which recipe a checkpoint is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Lm,
    Anneal,
    /// The published method for one output.
    Paper,
    /// The same for several.
    Outputs,
    Dynamic,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Lm, Self::Anneal, Self::Paper, Self::Outputs, Self::Dynamic];

    const fn magic(self) -> &'static [u8; MAGIC] {
        [b"tamis-lm", b"tamis-an", b"tamis-pa", b"tamis-po", b"tamis-dy"][self as usize]
    }

    const fn name(self) -> &'static str {
        ["lm", "anneal", "paper", "paper", "dynamic"][self as usize]
    }

    /// Terms of its checkpoints: those of all recipes, and its own.
    pub(crate) const fn terms(self) -> usize {
        [28, 27, 27, 25, 27][self as usize]
    }

    /// The longest checkpoint, in bytes.
    fn most_bytes(self, body: &BodyForm) -> usize {
        (SUMMED + TERM * self.terms()).saturating_add(body.most_words().saturating_mul(WORD))
    }

    /// Checks magic and version, as far as they were read.
    fn check_magic(self, bytes: &[u8]) -> Result<()> {
        let is_of = |kind: &Self| bytes.starts_with(kind.magic());
        match Self::ALL.into_iter().find(is_of) {
            Some(kind) if kind == self => {}
            Some(kind) if kind.name() == self.name() => {
                return Err(Error::new(
                    "the checkpoint is of a run on other data or with other settings",
                )
                .expected("labels for as many outputs as the run began with")
                .got("one output in place of several, or several in place of one")
                .help(
                    "resume with the same data and settings, or name another file to start anew",
                ));
            }
            Some(kind) => return Err(other_recipe(self.name(), kind.name())),
            None => {
                return Err(Error::new("not a checkpoint of a run")
                    .expected("a file that --checkpoint wrote")
                    .got("other bytes at its beginning")
                    .help("name another file"));
            }
        }
        match word(bytes, MAGIC) {
            Some(VERSION) => Ok(()),
            Some(other) => Err(Error::new("the checkpoint has a version that is not known here")
                .expected(VERSION)
                .got(other)
                .help("resume with the tamis that wrote it")),
            None => Err(damaged().expected(format_args!("{SUM} bytes or more")).got(bytes.len())),
        }
    }
}

/// Bytes of the checkpoints that a run holds, if they are taken: the one to resume from, and the
/// last one.
pub(crate) fn bytes(taken: bool, kind: Kind, body: &BodyForm) -> usize {
    if taken { kind.most_bytes(body).saturating_mul(2) } else { 0 }
}

/// What the checkpoints of one run look like.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) kind: Kind,
    pub(crate) terms: Vec<Term>,
    /// All behind the terms.
    pub(crate) body: BodyForm,
    /// Neurons of the result of a search at the most, and whether block 0 is a linear term.
    pub(crate) hidden: usize,
    pub(crate) linear: bool,
}

/// The file of the checkpoints of one run, as [`crate::train::checkpoint_file`] gives it.
#[derive(Debug)]
pub struct CheckpointFile {
    path: PathBuf,
    form: Form,
    /// What all checkpoints begin with, but for the checksum.
    head: Vec<u8>,
    /// The last checkpoint as it is stored, but for the checksum.
    bytes: Vec<u8>,
    /// Whether it is newer than the file.
    fresh: bool,
    written: Instant,
    every: Duration,
    stop: Option<Stop>,
    /// Hears of the first checkpoint that cannot be written.
    on_error: Option<fn(&Error)>,
}

/// A checkpoint that was read, checked against its run.
#[derive(Debug)]
pub struct Checkpoint {
    kind: Kind,
    form: BodyForm,
    words: Vec<u32>,
    steps: u32,
}

impl CheckpointFile {
    /// Nothing is read or written yet.
    pub(crate) fn new(path: &Path, form: Form) -> Self {
        let mut head = form.kind.magic().to_vec();
        head.extend(VERSION.to_le_bytes());
        head.extend([0; SUMMED - SUM]);
        head.extend(form.terms.iter().flat_map(|term| term.to_bytes()));
        Self {
            path: path.to_owned(),
            head,
            bytes: Vec::with_capacity(form.kind.most_bytes(&form.body)),
            form,
            fresh: false,
            written: Instant::now(),
            every: Duration::ZERO,
            stop: None,
            on_error: None,
        }
    }

    /// The least time between two writes, who may end the run, and who hears of a checkpoint that
    /// cannot be written.
    pub(crate) fn watch(&mut self, every: Duration, stop: &Stop, on_error: fn(&Error)) {
        (self.every, self.stop, self.on_error) = (every, Some(stop.clone()), Some(on_error));
    }

    /// Takes a checkpoint over in place of the last one, and writes it where the last write is long
    /// enough ago or the run is about to end. Where that fails it is tried again.
    pub(crate) fn take(&mut self, checkpoint: &impl Record) {
        self.bytes.clear();
        self.bytes.extend(&self.head);
        let bytes = &mut self.bytes;
        let Ok(()) = checkpoint.write::<Infallible>(&mut |words| {
            let start = bytes.len();
            bytes.extend_from_slice(bytemuck::cast_slice(words));
            if cfg!(target_endian = "big") {
                bytes[start..].chunks_exact_mut(WORD).for_each(<[u8]>::reverse);
            }
            Ok(())
        });
        self.fresh = true;
        let is_ending = self.stop.as_ref().is_some_and(Stop::asked);
        if !is_ending && self.written.elapsed() < self.every {
            return;
        }
        if let (Err(error), Some(hear)) = (self.flush(), self.on_error) {
            self.on_error = None;
            hear(&error);
        }
    }

    /// Writes the last checkpoint where that is not done yet.
    pub(crate) fn flush(&mut self) -> Result<()> {
        if !self.fresh {
            return Ok(());
        }
        self.written = Instant::now();
        // Takes longer than all else, and most checkpoints are followed by the next one unread.
        let sum = Self::checksum(&self.bytes);
        self.bytes[SUM..SUMMED].copy_from_slice(&sum.to_le_bytes());
        WRITING.store(true, Ordering::SeqCst);
        let done = file::write(&self.path, |out| out.write_all(&self.bytes));
        WRITING.store(false, Ordering::SeqCst);
        self.fresh = done.is_err();
        done
    }

    /// The checkpoint in the file; none where there is no such file.
    ///
    /// # Errors
    /// The file cannot be read, is no checkpoint, is damaged, or is one of another recipe, other
    /// data or other settings, which are named.
    pub fn load(&self) -> Result<Option<Checkpoint>> {
        if !file::exists(&self.path)? {
            return Ok(None);
        }
        file::sweep(file::folder_of(&self.path));
        let (file, _) = file::open(&self.path)?;
        self.read(file).map(Some).map_err(|error| error.at(&self.path))
    }

    /// The checkpoint in `bytes`, as [`Self::load`] reads it from the file.
    ///
    /// # Errors
    /// It is none, is damaged, or is one of another recipe, other data or other settings.
    pub fn parse(&self, bytes: &[u8]) -> Result<Checkpoint> {
        self.read(bytes)
    }

    /// The checksum that a checkpoint must hold in its bytes 12 to 15.
    #[must_use]
    pub fn checksum(bytes: &[u8]) -> u32 {
        CRC_32.checksum(bytes.get(SUMMED..).unwrap_or(&[]))
    }

    fn read(&self, mut source: impl Read) -> Result<Checkpoint> {
        let Form { kind, terms, body, hidden, linear } = &self.form;
        let mut read = |len: usize, into: &mut Vec<u8>| {
            let read = source.by_ref().take(len as u64).read_to_end(into);
            read.map_err(|error| Error::io("cannot read", &self.path, error))
        };
        let (most, mut kept) = (kind.most_bytes(body), Vec::new());
        let mut len = read(SUMMED, &mut kept)?;
        kind.check_magic(&kept)?;
        let (mut digest, mut piece) = (CRC_32.digest(), Vec::with_capacity(PIECE));
        while read(PIECE, &mut piece)? > 0 {
            digest.update(&piece);
            kept.extend_from_slice(&piece[..piece.len().min(most - kept.len())]);
            len += piece.len();
            piece.clear();
        }
        let (stored, sum) = (word(&kept, SUM).unwrap_or(0), digest.finalize());
        let least = SUMMED + TERM * terms.len() + WORD * body.least_words();
        if kept.len() < least || stored != sum {
            return Err(damaged()
                .expected(format_args!("{least} bytes or more with the checksum {stored:08x}"))
                .got(format_args!("{len} bytes with {sum:08x}")));
        }
        terms::check(terms, &kept[SUMMED..])?;
        if len != kept.len() {
            return Err(damaged()
                .expected(format_args!("at most {most} bytes"))
                .got(format_args!("{len} bytes")));
        }
        let words = kept[SUMMED + TERM * terms.len()..].chunks_exact(WORD);
        if !words.remainder().is_empty() {
            return Err(damaged().expected("whole words").got(format_args!("{len} bytes")));
        }
        let words = words.map(|word| word.try_into().map_or(0, u32::from_le_bytes)).collect();
        let mut read = Checkpoint { kind: *kind, form: *body, words, steps: 0 };
        // The state is checked on the way.
        read.steps = match kind {
            Kind::Lm => {
                let checkpoint = read.lm()?;
                let result = checkpoint.result.w();
                let live = result.blocks().count();
                if live > *hidden || (*linear && !result.block(0).is_empty()) {
                    return Err(damaged()
                        .expected(format_args!("a result of at most {hidden} neurons"))
                        .got(format_args!("{live}, or a linear term")));
                }
                checkpoint.state.steps()
            }
            Kind::Anneal => read.anneal()?.state.steps(),
            Kind::Paper | Kind::Outputs => read.paper()?.state.steps(),
            Kind::Dynamic => read.dynamic()?.steps(),
        };
        Ok(read)
    }
}

impl Checkpoint {
    /// Steps that the run had done.
    #[must_use]
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// As the core takes it, of recipe `lm`.
    pub(crate) fn lm(&self) -> Result<lm::Checkpoint<'_>> {
        self.check_recipe("lm")?;
        lm::Checkpoint::read(&self.form, &self.words).map_err(unreadable)
    }

    /// As the core takes it, of recipe `anneal`.
    pub(crate) fn anneal(&self) -> Result<anneal::Checkpoint<'_>> {
        self.check_recipe("anneal")?;
        anneal::Checkpoint::read(&self.form, &self.words).map_err(unreadable)
    }

    /// As the core takes it, of the published method for one output or for several.
    pub(crate) fn paper(&self) -> Result<train::Checkpoint<'_>> {
        self.check_recipe("paper")?;
        train::Checkpoint::read(&self.form, &self.words).map_err(unreadable)
    }

    /// As the core takes it, of recipe `dynamic`.
    pub(crate) fn dynamic(&self) -> Result<dynamic::Checkpoint<'_>> {
        self.check_recipe("dynamic")?;
        dynamic::Checkpoint::read(&self.form, &self.words).map_err(unreadable)
    }

    /// Checks that it is one of this recipe.
    fn check_recipe(&self, name: &'static str) -> Result<()> {
        if self.kind.name() == name { Ok(()) } else { Err(other_recipe(name, self.kind.name())) }
    }
}

fn other_recipe(expected: &str, got: &str) -> Error {
    Error::new("the checkpoint is of another recipe")
        .expected(format_args!("one of recipe {expected}"))
        .got(format_args!("one of recipe {got}"))
        .help(format!("choose --recipe {got}, or name another file to start anew"))
}

fn unreadable(error: tamis::Error) -> Error {
    damaged().source(error.to_string())
}

fn damaged() -> Error {
    Error::new("the checkpoint is damaged").help("restore it, or name another file to start anew")
}

/// The word at a place.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + WORD)?.try_into().ok()?))
}
