//! Checkpoints of a search in a file, from which it goes on.
//!
//! A file is little-endian: the magic, a version, the CRC-32 of all that follows; what the search is about ([`Terms`]); the
//! numbers of [`State`]; the counts of both sides of three networks (current, best while searching, best of s weights); and the
//! indices and values of each side. It is written beside its place and renamed over it, so that it is whole at any time.
//!
//! Reading believes nothing: the checksum is taken in pieces, at most what the sizes of the problem allow is kept, and every
//! count, index and number is checked before the search sees it.

use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crc::{CRC_32_ISO_HDLC, CRC_64_XZ, Crc, Table};
use tamis::budget::Recovery;
use tamis::factored::Net;
use tamis::lm::{Checkpoint, Params, Progress, State};
use tamis::weights::Weights;

use super::found::Found;
use super::recover::Settled;
use super::{Problem, RecoverOptions, Task};
use crate::data::Values;
use crate::{Error, Result, file};

const MAGIC: [u8; 8] = *b"tamis-lm";
const VERSION: u32 = 1;
/// Where the checksum is, and where that which it is of begins.
const SUM: usize = 12;
const SUMMED: usize = 16;
/// Bytes before the first entry of a network.
const HEAD: usize = SUMMED + 8 * TERMS + 4 * State::WORDS + 4 * COUNTS;
/// Both sides of three networks.
const COUNTS: usize = 6;
/// Bytes of an entry: index and value.
const ENTRY: usize = 8;
/// Bytes read at a time.
const PIECE: usize = 1 << 16;

static CRC_32: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);
static CRC_64: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_XZ);

/// The checkpoints of one search, and the file that they go to.
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
    terms: Terms,
    sizes: Sizes,
    /// The last checkpoint as it is stored.
    bytes: Vec<u8>,
    /// Whether it is newer than the file.
    fresh: bool,
    written: Instant,
}

/// A checkpoint that was read: all that [`super::resume`] needs.
#[derive(Debug)]
pub struct Kept {
    state: State,
    /// Blocks of the operator.
    slots: usize,
    /// The current network, the best while searching, and the best of at most s weights.
    nets: [Found; 3],
}

impl Keep {
    /// Time between two writes of [`Self::see`].
    pub const EVERY: Duration = Duration::from_secs(30);

    /// For a search on `problem` with `options`, whose `checkpoints` should be true, so that its plan counts them; nothing is
    /// read or written yet. All of the data is looked at once, for its checksum.
    ///
    /// # Errors
    /// As [`super::recover`] before its first step.
    pub fn new(path: impl AsRef<Path>, problem: &Problem, options: &RecoverOptions) -> Result<Self> {
        let settled = Settled::new(problem, options)?;
        let most = most_bytes(&settled.plan.budget);
        Ok(Self {
            path: path.as_ref().to_owned(),
            terms: Terms::new(problem, &settled),
            sizes: Sizes {
                inputs: settled.dims.inputs,
                outputs: settled.inner(),
                hidden: settled.dims.hidden,
                slots: settled.plan.slots,
                linear: settled.options.params.signs.linear(0),
                rooms: rooms(&settled.plan.budget),
            },
            bytes: Vec::with_capacity(most),
            fresh: false,
            written: Instant::now(),
        })
    }

    /// Takes over the checkpoint that `progress` offers, if it does, and writes it where the last write is longer ago than
    /// [`Self::EVERY`].
    ///
    /// # Errors
    /// The file cannot be written; the next try is as much later, and nothing is lost but time.
    pub fn see(&mut self, progress: &Progress<'_>) -> Result<()> {
        let Some(checkpoint) = &progress.checkpoint else { return Ok(()) };
        self.encode(checkpoint);
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
        file::write(&self.path, |out| out.write_all(&self.bytes))?;
        self.fresh = false;
        Ok(true)
    }

    /// The checkpoint in the file; none where there is no such file.
    ///
    /// # Errors
    /// The file cannot be read, is no checkpoint, is damaged, or is one of other data or other settings, which are named.
    pub fn load(&self) -> Result<Option<Kept>> {
        if !file::exists(&self.path)? {
            return Ok(None);
        }
        let (file, _) = file::open(&self.path)?;
        let kept = self.read(file, |error| Error::io("cannot read", &self.path, error));
        kept.map(Some).map_err(|error| error.at(&self.path))
    }

    /// The checkpoint in `bytes`, as [`Self::load`] reads it from the file.
    ///
    /// # Errors
    /// It is none, is damaged, or is one of other data or other settings.
    pub fn parse(&self, bytes: &[u8]) -> Result<Kept> {
        self.read(bytes, |error| Error::new("cannot read").source(error))
    }

    /// The last checkpoint as it is stored; empty before the first one.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The checksum that a checkpoint must hold in its bytes 12 to 15.
    #[must_use]
    pub fn checksum(bytes: &[u8]) -> u32 {
        CRC_32.checksum(bytes.get(SUMMED..).unwrap_or(&[]))
    }

    /// Takes over a checkpoint as [`Self::see`] does; nothing is written.
    fn encode(&mut self, checkpoint: &Checkpoint<'_>) {
        let bytes = &mut self.bytes;
        bytes.clear();
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend([0; SUMMED - SUM]);
        bytes.extend(self.terms.0.iter().flat_map(|term| term.to_le_bytes()));
        bytes.extend(checkpoint.state.to_words().iter().flat_map(|word| word.to_le_bytes()));
        let nets = [checkpoint.net, checkpoint.best, checkpoint.found];
        let sides = nets.each_ref().map(|net| [net.w(), net.wt()]);
        let counts = sides.as_flattened().iter().map(|side| side.nnz() as u32);
        bytes.extend(counts.flat_map(u32::to_le_bytes));
        for side in sides.as_flattened() {
            bytes.extend(side.index().iter().flat_map(|index| index.to_le_bytes()));
            bytes.extend(side.value().iter().flat_map(|value| value.to_le_bytes()));
        }
        let sum = Self::checksum(bytes);
        bytes[SUM..SUMMED].copy_from_slice(&sum.to_le_bytes());
        self.fresh = true;
    }

    fn read(&self, mut source: impl Read, failed: impl Fn(std::io::Error) -> Error) -> Result<Kept> {
        let most = HEAD + ENTRY * self.sizes.rooms.iter().sum::<usize>();
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
                check_magic(&kept)?;
            }
        }
        check_magic(&kept)?;
        let (stored, sum) = (word(&kept, SUM).unwrap_or(0), digest.finalize());
        if kept.len() < HEAD || stored != sum {
            return Err(damaged()
                .expected(format_args!("{HEAD} bytes or more with the checksum {stored:08x}"))
                .got(format_args!("{len} bytes with {sum:08x}")));
        }
        self.terms.check(&kept)?;
        self.sizes.decode(&kept, len)
    }
}

impl Kept {
    /// Outer steps that the search had done.
    #[must_use]
    pub fn steps(&self) -> u32 {
        self.state.steps()
    }

    /// As the core takes it.
    pub(super) fn checkpoint(&self) -> Result<Checkpoint<'_>> {
        let [net, best, found] = self.nets.each_ref().map(|net| net.net(self.slots));
        Ok(Checkpoint { state: self.state, net: net?, best: best?, found: found? })
    }
}

/// The longest checkpoint of a search with this budget, in bytes.
pub(super) fn most_bytes(budget: &Recovery) -> usize {
    HEAD + ENTRY * rooms(budget).iter().sum::<usize>()
}

/// Entries of the three networks at the most.
fn rooms(budget: &Recovery) -> [usize; 3] {
    [budget.work(), budget.work(), budget.dims.nnz]
}

/// What the networks of a checkpoint must be.
#[derive(Debug)]
struct Sizes {
    inputs: usize,
    /// 0 where output weights are signs.
    outputs: usize,
    hidden: usize,
    slots: usize,
    /// Whether block 0 is a linear term, which the result has not.
    linear: bool,
    rooms: [usize; 3],
}

impl Sizes {
    /// The checkpoint in `bytes`, the first of `len`, whose checksum and terms are right.
    fn decode(&self, bytes: &[u8], len: u64) -> Result<Kept> {
        let words = bytes[SUMMED + 8 * TERMS..].chunks_exact(4);
        let mut words = words.map(|word| word.try_into().map_or(0, u32::from_le_bytes));
        let state: [u32; State::WORDS] = std::array::from_fn(|_| words.next().unwrap_or(0));
        let state = State::from_words(&state).map_err(|error| damaged().source(error.to_string()))?;
        let counts: [[usize; 2]; 3] =
            std::array::from_fn(|_| std::array::from_fn(|_| words.next().unwrap_or(0) as usize));
        for (counts, room) in counts.iter().zip(self.rooms) {
            let count = counts[0].saturating_add(counts[1]);
            if count > room {
                return Err(damaged().expected(format_args!("at most {room} weights")).got(count));
            }
        }
        let expected = HEAD + ENTRY * counts.as_flattened().iter().sum::<usize>();
        if len != expected as u64 {
            return Err(damaged().expected(format_args!("{expected} bytes")).got(len));
        }
        let mut side = |count| {
            let index = words.by_ref().take(count).collect();
            (index, words.by_ref().take(count).map(f32::from_bits).collect())
        };
        let widths = [self.inputs, self.outputs];
        let nets = counts.map(|[w, wt]| Found { w: side(w), wt: side(wt), widths });
        for net in &nets {
            self.check(net.net(self.slots).map_err(|error| damaged().source(error))?)?;
        }
        self.check_result(nets[2].net(self.slots)?)?;
        Ok(Kept { state, slots: self.slots, nets })
    }

    fn check(&self, net: Net<'_>) -> Result<()> {
        match [net.w(), net.wt()].iter().flat_map(Weights::value).find(|value| !value.is_finite()) {
            Some(value) => Err(damaged().expected("finite weights").got(value)),
            None => Ok(()),
        }
    }

    /// What the best network of s weights is in addition.
    fn check_result(&self, found: Net<'_>) -> Result<()> {
        let live = found.w().blocks().count();
        if live > self.hidden || (self.linear && !found.w().block(0).is_empty()) {
            return Err(damaged()
                .expected(format_args!("a result of at most {} neurons", self.hidden))
                .got(format_args!("{live}, or a linear term")));
        }
        Ok(())
    }
}

/// What the numbers of a task and of signs stand for.
const TASKS: [&str; 2] = [Task::Regression.name(), Task::Binary.name()];
const SIGNS: [&str; 3] = ["positive", "balanced", "free"];

/// Numbers of [`Terms`].
const TERMS: usize = 26;

/// What a search is about: two searches with the same terms have the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Terms([u64; TERMS]);

impl Terms {
    /// What they are, in the words of the command line where it has some; checksums come last, since all else says more.
    const NAMES: [&'static str; TERMS] = [
        "rows",
        "columns",
        "columns of labels",
        "--task",
        "--hidden",
        "--nnz",
        "--seed",
        "--signs",
        "rows held out (--validation)",
        "--patience",
        "--search-rows",
        "--kicks",
        "--idle-kicks",
        "steps",
        "loss of an exact fit",
        "random births",
        "last steps on all rows",
        "polishing steps",
        "spare weights",
        "products of a step",
        "births",
        "tidying",
        "neurons of a panel (--panel or --ram)",
        "rows of a tile and held gates (--ram)",
        "checksum of the samples",
        "checksum of the labels",
    ];

    fn new(problem: &Problem, settled: &Settled) -> Self {
        let Settled { dims, outputs, options, plan } = settled;
        let Params {
            seed,
            signs,
            rows,
            exact,
            random_births,
            kicks,
            steps,
            final_steps,
            polish,
            patience,
            validation,
            validation_patience,
            spare,
            products,
            births,
            tidy,
        } = options.params;
        let place =
            |all: &[&str], name| all.iter().position(|other| *other == name).map_or(u64::MAX, |at| at as u64);
        let task = place(&TASKS, problem.task.name());
        let signs = place(&SIGNS, super::recover::signs_name(signs));
        let samples = match &problem.data.values {
            Values::F32(values) => CRC_64.checksum(bytemuck::cast_slice(values)),
            Values::U8(values) => !CRC_64.checksum(values),
        };
        let labels = CRC_64.checksum(bytemuck::cast_slice(&problem.labels));
        let sizes = [dims.samples, dims.inputs, *outputs].map(|size| size as u64);
        Self([
            sizes[0],
            sizes[1],
            sizes[2],
            task,
            // Two layers in one number: of one layer it stays what it was.
            dims.hidden as u64 | (options.second.unwrap_or(0) as u64) << 32,
            dims.nnz as u64,
            seed,
            signs,
            validation as u64,
            validation_patience.into(),
            rows as u64,
            kicks.into(),
            patience.into(),
            steps.into(),
            exact.to_bits().into(),
            random_births.into(),
            final_steps.into(),
            polish.into(),
            spare.into(),
            products.into(),
            births.into(),
            tidy.into(),
            plan.plan.panel as u64,
            plan.plan.tile as u64 * 2 + u64::from(plan.plan.hold),
            samples,
            labels,
        ])
    }

    /// Checks that the checkpoint in `bytes` has these terms.
    fn check(&self, bytes: &[u8]) -> Result<()> {
        let stored =
            bytes[SUMMED..].chunks_exact(8).map(|term| term.try_into().map_or(0, u64::from_le_bytes));
        for ((own, stored), name) in self.0.iter().zip(stored).zip(Self::NAMES) {
            if *own != stored {
                let error = Error::new("the checkpoint is of a search on other data or with other settings");
                return Err(error
                    .expected(format_args!("{name}: {}, as the search began", shown(name, stored)))
                    .got(shown(name, *own))
                    .help("resume with the same data and settings, or name another file to start anew"));
            }
        }
        Ok(())
    }
}

/// The value of a term as people know it.
fn shown(name: &str, value: u64) -> String {
    let names: &[&str] = match name {
        "--task" => &TASKS,
        "--signs" => &SIGNS,
        "--hidden" if value >> 32 > 0 => return format!("{},{}", value as u32, value >> 32),
        _ if name.starts_with("checksum") => return format!("{value:016x}"),
        _ => &[],
    };
    let known = usize::try_from(value).ok().and_then(|value| names.get(value));
    known.map_or_else(|| value.to_string(), |name| (*name).to_owned())
}

/// Checks magic and version, as far as they were read.
fn check_magic(bytes: &[u8]) -> Result<()> {
    if !bytes.starts_with(&MAGIC) {
        return Err(Error::new("not a checkpoint of a search")
            .expected("a file that --checkpoint wrote")
            .got("other bytes at its beginning")
            .help("name another file"));
    }
    match word(bytes, MAGIC.len()) {
        Some(VERSION) => Ok(()),
        Some(other) => Err(Error::new("the checkpoint has a version that is not known here")
            .expected(VERSION)
            .got(other)
            .help("resume with the tamis that wrote it")),
        None => Err(damaged().expected(format_args!("{HEAD} bytes or more")).got(bytes.len())),
    }
}

fn damaged() -> Error {
    Error::new("the checkpoint is damaged").help("restore it, or name another file to start anew")
}

/// The word at a place.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
