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
use tamis::base::budget::{Annealing, Recovery, Training};
use tamis::base::record::Record;
use tamis::learn::checkpoint::Form as BodyForm;
use tamis::learn::{anneal, lm, train};
use tamis::network::gates::Signs;

use crate::operator::Stop;
use crate::{Error, Result, base::file};
use terms::Term;

const VERSION: u32 = 2;
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

/// What the checkpoints of one run look like.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) kind: Kind,
    pub(crate) terms: Vec<Term>,
    /// All behind the terms.
    pub(crate) body: BodyForm,
}

/// The file of the checkpoints of one run, as [`crate::train::checkpoint_file`] gives it.
#[derive(Debug)]
pub struct CheckpointFile {
    path: PathBuf,
    form: Form,
    /// What all checkpoints begin with, but for the checksum.
    head: Vec<u8>,
    /// The last checkpoint as it is stored, but for the checksum where `sealed` is false.
    bytes: Vec<u8>,
    sealed: bool,
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
        let most = most_bytes(&form.body, form.terms.len());
        let mut head = form.kind.magic().to_vec();
        head.extend(VERSION.to_le_bytes());
        head.extend([0; SUMMED - SUM]);
        head.extend(form.terms.iter().flat_map(|term| term.to_bytes()));
        Self {
            path: path.to_owned(),
            form,
            head,
            bytes: Vec::with_capacity(most),
            sealed: false,
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
    /// enough ago or the run is about to end. A file that cannot be written is no reason to end a
    /// run: it is tried again.
    pub(crate) fn take(&mut self, checkpoint: &impl Record) {
        self.bytes.clear();
        self.bytes.extend(&self.head);
        let bytes = &mut self.bytes;
        let put = checkpoint.write::<Infallible>(&mut |words| {
            let start = bytes.len();
            bytes.extend_from_slice(bytemuck::cast_slice(words));
            if cfg!(target_endian = "big") {
                bytes[start..].chunks_exact_mut(WORD).for_each(<[u8]>::reverse);
            }
            Ok(())
        });
        match put {
            Ok(()) => {}
            Err(never) => match never {},
        }
        (self.sealed, self.fresh) = (false, true);
        let is_ending = self.stop.as_ref().is_some_and(Stop::asked);
        if !is_ending && self.written.elapsed() < self.every {
            return;
        }
        if let (Err(error), Some(hear)) = (self.flush(), self.on_error) {
            self.on_error = None;
            hear(&error);
        }
    }

    /// Writes the last checkpoint where that is not done yet; whether there was one to write.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn flush(&mut self) -> Result<bool> {
        if !self.fresh {
            return Ok(false);
        }
        self.written = Instant::now();
        self.seal();
        WRITING.store(true, Ordering::SeqCst);
        let done = file::write(&self.path, |out| out.write_all(&self.bytes));
        WRITING.store(false, Ordering::SeqCst);
        done?;
        self.fresh = false;
        Ok(true)
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
        let kept = self.read(file, |error| Error::io("cannot read", &self.path, error));
        kept.map(Some).map_err(|error| error.at(&self.path))
    }

    /// The checkpoint in `bytes`, as [`Self::load`] reads it from the file.
    ///
    /// # Errors
    /// It is none, is damaged, or is one of another recipe, other data or other settings.
    pub fn parse(&self, bytes: &[u8]) -> Result<Checkpoint> {
        self.read(bytes, |error| Error::new("cannot read").source(error))
    }

    /// The last checkpoint as it is stored; empty before the first one.
    #[must_use]
    pub fn bytes(&mut self) -> &[u8] {
        self.seal();
        &self.bytes
    }

    /// The checksum that a checkpoint must hold in its bytes 12 to 15.
    #[must_use]
    pub fn checksum(bytes: &[u8]) -> u32 {
        CRC_32.checksum(bytes.get(SUMMED..).unwrap_or(&[]))
    }

    /// Puts the checksum in, which takes longer than all else: most checkpoints are followed by the
    /// next one unread.
    fn seal(&mut self) {
        if core::mem::replace(&mut self.sealed, true) {
            return;
        }
        let sum = Self::checksum(&self.bytes);
        if let Some(place) = self.bytes.get_mut(SUM..SUMMED) {
            place.copy_from_slice(&sum.to_le_bytes());
        }
    }

    fn read(
        &self,
        mut source: impl Read,
        failed: impl Fn(std::io::Error) -> Error,
    ) -> Result<Checkpoint> {
        let Form { kind, terms, body } = &self.form;
        let most = most_bytes(body, terms.len());
        // What is kept, the checksum of all of it, and how long it is.
        let (mut kept, mut digest, mut len) = (Vec::new(), CRC_32.digest(), 0_u64);
        let mut piece = vec![0; PIECE];
        loop {
            let got = match source.read(&mut piece) {
                Ok(0) => break,
                Ok(got) => got,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(failed(error)),
            };
            let skip = (SUMMED as u64).saturating_sub(len).min(got as u64) as usize;
            digest.update(&piece[skip..got]);
            kept.extend_from_slice(&piece[..got.min(most.saturating_sub(kept.len()))]);
            len += got as u64;
            // No need to read all of a large file that is none.
            if kept.len() >= SUM {
                kind.check_magic(&kept)?;
            }
        }
        kind.check_magic(&kept)?;
        let (stored, sum) = (word(&kept, SUM).unwrap_or(0), digest.finalize());
        let least = SUMMED + TERM * terms.len() + WORD * body.least_words();
        if kept.len() < least || stored != sum {
            return Err(damaged()
                .expected(format_args!("{least} bytes or more with the checksum {stored:08x}"))
                .got(format_args!("{len} bytes with {sum:08x}")));
        }
        terms::check(terms, &kept[SUMMED..])?;
        if len != kept.len() as u64 {
            return Err(damaged()
                .expected(format_args!("at most {most} bytes"))
                .got(format_args!("{len} bytes")));
        }
        let kept = Checkpoint::new(*kind, body, &kept[SUMMED + TERM * terms.len()..])?;
        kind.check(&kept)?;
        Ok(kept)
    }
}

impl Checkpoint {
    /// The checkpoint in `bytes`, which are all behind the terms; these are right as the checksum
    /// is.
    fn new(kind: Kind, form: &BodyForm, bytes: &[u8]) -> Result<Self> {
        let words = bytes.chunks_exact(WORD);
        if !words.remainder().is_empty() {
            return Err(damaged()
                .expected("whole words")
                .got(format_args!("{} bytes", bytes.len())));
        }
        let words = words.map(|word| word.try_into().map_or(0, u32::from_le_bytes)).collect();
        let mut kept = Self { kind, form: *form, words, steps: 0 };
        kept.steps = kind.steps(&kept)?;
        Ok(kept)
    }

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

    /// What the best network of s weights of a search is in addition.
    fn check_lm(&self, hidden: usize, linear: bool) -> Result<()> {
        let found = self.lm()?.result;
        let live = found.w().blocks().count();
        if live > hidden || (linear && !found.w().block(0).is_empty()) {
            return Err(damaged()
                .expected(format_args!("a result of at most {hidden} neurons"))
                .got(format_args!("{live}, or a linear term")));
        }
        Ok(())
    }

    /// Checks that it is one of this recipe.
    fn check_recipe(&self, name: &'static str) -> Result<()> {
        if self.kind.name() == name { Ok(()) } else { Err(other_recipe(name, self.kind.name())) }
    }
}

/// Terms of a recipe's own; [`terms::COMMON`] are those of all.
pub(crate) const LM_TERMS: usize = 16;
pub(crate) const ANNEAL_TERMS: usize = 16;
pub(crate) const PAPER_TERMS: usize = 16;
pub(crate) const OUTPUTS_TERMS: usize = 11;

/// The longest checkpoint of a search with this budget, in bytes.
pub(crate) fn lm_bytes(budget: &Recovery) -> usize {
    most_bytes(&lm::Checkpoint::form(budget, 0, Signs::Positive), terms::COMMON + LM_TERMS)
}

pub(crate) fn anneal_bytes(budget: &Annealing) -> usize {
    most_bytes(&anneal::Checkpoint::form(budget), terms::COMMON + ANNEAL_TERMS)
}

pub(crate) fn paper_bytes(budget: &Training) -> usize {
    most_bytes(&train::Checkpoint::form(budget, Signs::Positive), terms::COMMON + PAPER_TERMS)
}

/// The same for several outputs.
pub(crate) fn outputs_bytes(budget: &Training) -> usize {
    most_bytes(&train::Checkpoint::form(budget, Signs::Positive), terms::COMMON + OUTPUTS_TERMS)
}

/// The longest checkpoint with so many terms.
fn most_bytes(body: &BodyForm, terms: usize) -> usize {
    (SUMMED + TERM * terms).saturating_add(body.most_words().saturating_mul(WORD))
}

/// Of which recipe a checkpoint is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// A search for networks of so many neurons, perhaps with a linear term in block 0.
    Lm {
        hidden: usize,
        linear: bool,
    },
    Anneal,
    /// The published method for one output.
    Paper,
    /// The same for several.
    Outputs,
}

impl Kind {
    const MAGICS: [(&'static [u8; MAGIC], &'static str); 4] = [
        (b"tamis-lm", "lm"),
        (b"tamis-an", "anneal"),
        (b"tamis-pa", "paper"),
        (b"tamis-po", "paper"),
    ];

    const fn place(self) -> (&'static [u8; MAGIC], &'static str) {
        let [lm, anneal, paper, outputs] = Self::MAGICS;
        match self {
            Self::Lm { .. } => lm,
            Self::Anneal => anneal,
            Self::Paper => paper,
            Self::Outputs => outputs,
        }
    }

    const fn magic(self) -> &'static [u8; MAGIC] {
        self.place().0
    }

    const fn name(self) -> &'static str {
        self.place().1
    }

    /// Checks magic and version, as far as they were read.
    fn check_magic(self, bytes: &[u8]) -> Result<()> {
        if !bytes.starts_with(self.magic()) {
            return Err(
                match Self::MAGICS.iter().find(|(magic, _)| bytes.starts_with(&magic[..])) {
                    Some((_, name)) if *name == self.name() => Error::new(
                        "the checkpoint is of a run on other data or with other settings",
                    )
                    .expected("labels for as many outputs as the run began with")
                    .got("one output in place of several, or several in place of one")
                    .help(
                        "resume with the same data and settings, or name another file to \
                             start anew",
                    ),
                    Some((_, name)) => other_recipe(self.name(), name),
                    None => Error::new("not a checkpoint of a run")
                        .expected("a file that --checkpoint wrote")
                        .got("other bytes at its beginning")
                        .help("name another file"),
                },
            );
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

    /// Steps of a checkpoint, whose state is checked on the way.
    fn steps(self, kept: &Checkpoint) -> Result<u32> {
        Ok(match self {
            Self::Lm { .. } => kept.lm()?.state.steps(),
            Self::Anneal => kept.anneal()?.state.steps(),
            Self::Paper | Self::Outputs => kept.paper()?.state.steps(),
        })
    }

    /// What else a checkpoint of this recipe must be.
    fn check(self, kept: &Checkpoint) -> Result<()> {
        match self {
            Self::Lm { hidden, linear } => kept.check_lm(hidden, linear),
            Self::Anneal | Self::Paper | Self::Outputs => Ok(()),
        }
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
