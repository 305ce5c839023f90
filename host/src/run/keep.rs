//! Checkpoints of a run in a file, from which it goes on.
//!
//! A file is little-endian: the magic of its recipe, a version, the CRC-32 of all that follows; what the run is about
//! ([`terms`]); and the words of its checkpoint, as [`tamis::record`] says. It is written beside its place and renamed over it, so
//! that it is whole at any time.
//!
//! Reading believes nothing: the checksum is taken in pieces, at most what the sizes of the problem allow is kept, and every
//! count, index and number is checked before the run sees it.

mod anneal;
mod lm;
mod paper;
mod terms;

use std::convert::Infallible;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crc::{CRC_32_ISO_HDLC, CRC_64_XZ, Crc, Table};
use tamis::record;

pub(super) use anneal::most_bytes as anneal_bytes;
pub(super) use lm::most_bytes as lm_bytes;
pub(super) use paper::{most_bytes as paper_bytes, most_bytes_outputs as outputs_bytes};
use terms::Term;

use super::Problem;
use crate::{Error, Result, file};

const VERSION: u32 = 2;
/// Bytes of the magic.
const MAGIC: usize = 8;
/// Where the checksum is, and where that which it is of begins.
const SUM: usize = 12;
const SUMMED: usize = 16;
/// Bytes of a term.
const TERM: usize = 8;
/// Bytes of a number.
const WORD: usize = 4;
/// Bytes read at a time.
const PIECE: usize = 1 << 16;

static CRC_32: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);
static CRC_64: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_XZ);

/// Settings of a recipe whose runs can be kept: [`super::RecoverOptions`], [`super::AnnealOptions`], [`super::Options`] and
/// [`super::OutputsOptions`]. Their `checkpoints` should be true, so that the plan counts them.
pub trait Keeps {
    /// What the checkpoints of a run on `problem` look like.
    ///
    /// # Errors
    /// As the run before its first step.
    fn form(&self, problem: &Problem) -> Result<Form>;
}

/// Progress that may offer a checkpoint: that of all recipes in the core.
pub trait Offers {
    /// Writes it down, if there is one.
    fn offer(&self, record: &mut Record<'_>);
}

/// What the checkpoints of one run look like.
#[derive(Debug)]
pub struct Form {
    recipe: Recipe,
    terms: Vec<Term>,
    /// All behind the terms.
    body: record::Form,
}

/// Where a checkpoint is written down.
#[derive(Debug)]
pub struct Record<'k> {
    /// What all checkpoints of the run begin with.
    head: &'k [u8],
    bytes: &'k mut Vec<u8>,
    written: bool,
}

impl Record<'_> {
    /// Takes a checkpoint over, in place of the last one.
    fn take(&mut self, checkpoint: &impl record::Record) {
        self.written = true;
        self.bytes.clear();
        self.bytes.extend(self.head);
        let put = checkpoint.write::<Infallible>(&mut |words| {
            self.put(words);
            Ok(())
        });
        match put {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    fn put(&mut self, words: &[u32]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytemuck::cast_slice(words));
        if cfg!(target_endian = "big") {
            self.bytes[start..].chunks_exact_mut(WORD).for_each(<[u8]>::reverse);
        }
    }
}

/// The checkpoints of one run, and the file that they go to.
///
/// ```
/// use tamis::{dims::Dims, gates::Signs};
/// use tamis_host::{data::planted, operator::Stop, run::{self, Keep, Problem, RecoverOptions, Size, Task}};
///
/// let planted = planted::network(Dims::new(600, 16, 2, 6), Signs::Positive, 1)?;
/// let problem = Problem { data: planted.data, labels: planted.labels, task: Task::Regression };
/// let options = RecoverOptions { checkpoints: true, ..RecoverOptions::new(2, Size::Nonzeros(6)) };
/// let folder = tempfile::tempdir().unwrap();
/// let mut keep = Keep::new(folder.path().join("search"), &problem, &options)?;
/// // Ended after five steps …
/// run::recover(problem.clone(), &options, &Stop::new(), |progress| {
///     keep.see(progress).is_ok() && progress.step < 5
/// })?;
/// keep.flush()?;
/// // … and gone on from where it was.
/// let kept = keep.load()?.expect("a checkpoint");
/// let outcome = run::resume(problem, &options, &kept, &Stop::new(), |progress| keep.see(progress).is_ok())?;
/// assert!(outcome.report.psnr_db.unwrap() > 100.0);
/// # Ok::<(), tamis_host::Error>(())
/// ```
#[derive(Debug)]
pub struct Keep {
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
}

/// A checkpoint that was read: all that [`super::resume`], [`super::resume_anneal`], [`super::resume_train`] or
/// [`super::resume_outputs`] needs.
#[derive(Debug)]
pub struct Kept {
    recipe: Recipe,
    form: record::Form,
    words: Vec<u32>,
    steps: u32,
}

impl Keep {
    /// Time between two writes of [`Self::see`].
    pub const EVERY: Duration = Duration::from_secs(5);

    /// For a run on `problem` with `options`; nothing is read or written yet. All of the data is looked at once, for its
    /// checksum.
    ///
    /// # Errors
    /// As the run before its first step.
    pub fn new(path: impl AsRef<Path>, problem: &Problem, options: &impl Keeps) -> Result<Self> {
        let form = options.form(problem)?;
        let most = most_bytes(&form.body, form.terms.len());
        let mut head = form.recipe.magic().to_vec();
        head.extend(VERSION.to_le_bytes());
        head.extend([0; SUMMED - SUM]);
        head.extend(form.terms.iter().flat_map(|term| term.to_bytes()));
        Ok(Self {
            path: path.as_ref().to_owned(),
            form,
            head,
            bytes: Vec::with_capacity(most),
            sealed: false,
            fresh: false,
            written: Instant::now(),
        })
    }

    /// Takes over the checkpoint that `progress` offers, if it does, and writes it where the last write is longer ago than
    /// [`Self::EVERY`].
    ///
    /// # Errors
    /// The file cannot be written; the next try is as much later, and nothing is lost but time.
    pub fn see(&mut self, progress: &impl Offers) -> Result<()> {
        let mut record = Record { head: &self.head, bytes: &mut self.bytes, written: false };
        progress.offer(&mut record);
        if !record.written {
            return Ok(());
        }
        (self.sealed, self.fresh) = (false, true);
        if self.written.elapsed() < Self::EVERY {
            return Ok(());
        }
        self.flush().map(|_| ())
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
        file::write(&self.path, |out| out.write_all(&self.bytes))?;
        self.fresh = false;
        Ok(true)
    }

    /// The checkpoint in the file; none where there is no such file.
    ///
    /// # Errors
    /// The file cannot be read, is no checkpoint, is damaged, or is one of another recipe, other data or other settings,
    /// which are named.
    pub fn load(&self) -> Result<Option<Kept>> {
        if !file::exists(&self.path)? {
            return Ok(None);
        }
        file::sweep(file::folder_of(&self.path), file::STALE);
        let (file, _) = file::open(&self.path)?;
        let kept = self.read(file, |error| Error::io("cannot read", &self.path, error));
        kept.map(Some).map_err(|error| error.at(&self.path))
    }

    /// The checkpoint in `bytes`, as [`Self::load`] reads it from the file.
    ///
    /// # Errors
    /// It is none, is damaged, or is one of another recipe, other data or other settings.
    pub fn parse(&self, bytes: &[u8]) -> Result<Kept> {
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

    /// Puts the checksum in, which takes longer than all else: most checkpoints are followed by the next one unread.
    fn seal(&mut self) {
        if core::mem::replace(&mut self.sealed, true) {
            return;
        }
        let sum = Self::checksum(&self.bytes);
        if let Some(place) = self.bytes.get_mut(SUM..SUMMED) {
            place.copy_from_slice(&sum.to_le_bytes());
        }
    }

    fn read(&self, mut source: impl Read, failed: impl Fn(std::io::Error) -> Error) -> Result<Kept> {
        let Form { recipe, terms, body } = &self.form;
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
                recipe.check_magic(&kept)?;
            }
        }
        recipe.check_magic(&kept)?;
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
        let kept = Kept::new(*recipe, body, &kept[SUMMED + TERM * terms.len()..])?;
        recipe.check(&kept)?;
        Ok(kept)
    }
}

impl Kept {
    /// The checkpoint in `bytes`, which are all behind the terms; these are right as the checksum is.
    fn new(recipe: Recipe, form: &record::Form, bytes: &[u8]) -> Result<Self> {
        let words = bytes.chunks_exact(WORD);
        if !words.remainder().is_empty() {
            return Err(damaged().expected("whole words").got(format_args!("{} bytes", bytes.len())));
        }
        let words = words.map(|word| word.try_into().map_or(0, u32::from_le_bytes)).collect();
        let mut kept = Self { recipe, form: *form, words, steps: 0 };
        kept.steps = recipe.steps(&kept)?;
        Ok(kept)
    }

    /// Steps that the run had done.
    #[must_use]
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Checks that it is one of this recipe.
    fn check_recipe(&self, name: &'static str) -> Result<()> {
        if self.recipe.name() == name { Ok(()) } else { Err(other_recipe(name, self.recipe.name())) }
    }
}

/// The longest checkpoint with so many terms.
fn most_bytes(body: &record::Form, terms: usize) -> usize {
    (SUMMED + TERM * terms).saturating_add(body.most_words().saturating_mul(WORD))
}

/// Whose checkpoint it is.
#[derive(Debug, Clone, Copy)]
enum Recipe {
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

impl Recipe {
    const MAGICS: [(&'static [u8; MAGIC], &'static str); 4] =
        [(b"tamis-lm", "lm"), (b"tamis-an", "anneal"), (b"tamis-pa", "paper"), (b"tamis-po", "paper")];

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
            return Err(match Self::MAGICS.iter().find(|(magic, _)| bytes.starts_with(&magic[..])) {
                Some((_, name)) if *name == self.name() => {
                    Error::new("the checkpoint is of a run on other data or with other settings")
                        .expected("labels for as many outputs as the run began with")
                        .got("one output in place of several, or several in place of one")
                        .help("resume with the same data and settings, or name another file to start anew")
                }
                Some((_, name)) => other_recipe(self.name(), name),
                None => Error::new("not a checkpoint of a run")
                    .expected("a file that --checkpoint wrote")
                    .got("other bytes at its beginning")
                    .help("name another file"),
            });
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
    fn steps(self, kept: &Kept) -> Result<u32> {
        Ok(match self {
            Self::Lm { .. } => kept.lm()?.state.steps(),
            Self::Anneal => kept.anneal()?.state.steps(),
            Self::Paper | Self::Outputs => kept.paper()?.state.steps(),
        })
    }

    /// What else a checkpoint of this recipe must be.
    fn check(self, kept: &Kept) -> Result<()> {
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

fn damaged() -> Error {
    Error::new("the checkpoint is damaged").help("restore it, or name another file to start anew")
}

/// The word at a place.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + WORD)?.try_into().ok()?))
}
