//! Training on the device, with its state in flash: a full run from zero on a stream of samples, a
//! fit of the same support to a later stream, and the model. A row of the stream is there once, and
//! goes to a window in RAM. Whatever session it takes, the model has the bits of a run without a
//! break.

use super::digest::{Digest, Probe};
use crate::simulated::{Nor, Tear};
use core::ops::ControlFlow::Continue;
use embedded_storage::nor_flash::NorFlash;
use tamis::base::budget::{Memory, gated_words};
use tamis::base::dims::Dims;
use tamis::data::samples::{NormalRows, Samples as _, Window};
use tamis::learn::checkpoint::Form;
use tamis::learn::iht::Refine;
use tamis::learn::loss::Labels;
use tamis::learn::start::{Start, continue_if};
use tamis::learn::train::{self, Checkpoint, OneOutput, Progress, Schedule};
use tamis::network::net::Network;
use tamis::operator::gated::Gated;
use tamis::store::flash::{Entry, Slots};
use tamis::store::wire::{self, Aligned, Task, View};
use tamis::{Error, Result};

/// Steps between two checkpoints.
pub const EVERY: u32 = 4;
/// Bytes of the flash: two slots of a sector each.
pub const FLASH: u32 = 512;
/// Bytes of the model.
pub const MODEL: usize = wire::max_len(HIDDEN, NNZ);

const ROWS: usize = 48;
const INPUTS: usize = 12;
const HIDDEN: usize = 2;
const NNZ: usize = 5;
const PAGE: usize = 32;
const DIMS: Dims = Dims::new(ROWS, INPUTS, HIDDEN, NNZ);
const SCHEDULE: Schedule<'_, OneOutput> = Schedule {
    epochs: 6,
    batch: 16,
    seed: 1,
    head: OneOutput { convex_epochs: 1, refine: Refine::None, ..OneOutput::PAPER },
    ..Schedule::PAPER
};
const WORDS: usize = SCHEDULE.budget(DIMS, 1, ROWS + INPUTS).words();
const FORM: Form = Checkpoint::form(&SCHEDULE.budget(DIMS, 1, 0), SCHEDULE.head.signs);

/// What a payload is: a phase, under these settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Phase {
    /// The support and its weights from zero, by hard thresholding.
    Training = 0x100,
    /// Weights on that support, to samples that came later.
    Tuning,
    /// Done: a model.
    Model,
}

/// Where a session began and how far it came: phase and steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// What it found in flash; the start of training where there was nothing.
    pub began: (Phase, u32),
    /// Its last step.
    pub ended: (Phase, u32),
}

impl Default for Seen {
    fn default() -> Self {
        Self { began: (Phase::Training, 0), ended: (Phase::Training, 0) }
    }
}

/// One session of the device: resumes from what the flash holds, for at most `steps` steps. The
/// length of the model in `model` if it is done, none if the plug was pulled before.
///
/// # Errors
/// Those of the flash.
pub fn session<F: NorFlash>(
    flash: F,
    steps: u32,
    seen: &mut Seen,
    model: &mut [u8; MODEL],
) -> Result<Option<usize>, F::Error> {
    let mut slots = Slots::open(flash, 0..FLASH)?;
    let mut words = [0; FORM.most_words()];
    let mut left = steps;
    let mut is_first = true;
    loop {
        let newest = slots.newest().copied();
        let kept = match newest.as_ref().map(Entry::tag) {
            Some(tag) if tag == Phase::Model as u32 => {
                if is_first {
                    (seen.began, seen.ended) = ((Phase::Model, 0), (Phase::Model, 0));
                }
                return fetch(&mut slots, model).map(Some);
            }
            Some(tag) if tag == Phase::Tuning as u32 => Some(Phase::Tuning),
            Some(tag) if tag == Phase::Training as u32 => Some(Phase::Training),
            // Nothing, or what another program left.
            _ => None,
        };
        let from = match kept {
            Some(_) => {
                slots.load(&mut words)?.map(|words| Checkpoint::read(&FORM, words)).transpose()
            }
            None => Ok(None),
        };
        let from = from.map_err(Error::widen)?;
        let phase = kept.unwrap_or(Phase::Training);
        let began = (phase, from.map_or(0, |from| from.state.steps()));
        if core::mem::take(&mut is_first) {
            seen.began = began;
        }
        seen.ended = began;
        if !run_phase(&mut slots, phase, from, &mut left, seen)? {
            return Ok(None);
        }
    }
}

/// Runs a phase to its end and writes down what the next one starts from; false if the plug was
/// pulled before.
#[inline(never)]
fn run_phase<F: NorFlash>(
    slots: &mut Slots<F, PAGE>,
    phase: Phase,
    from: Option<Checkpoint<'_>>,
    left: &mut u32,
    seen: &mut Seen,
) -> Result<bool, F::Error> {
    let mut memory = Memory::<WORDS>::new();
    let mut row_memory = [0.0; gated_words(INPUTS, HIDDEN)];
    let mut samples = [0; Window::<f32>::words(ROWS, INPUTS)];
    let window = sample(phase, &mut samples).map_err(Error::widen)?;
    let labels = Labels::Values(window.labels());
    let mut sensing =
        Gated::new(window.rows(), HIDDEN, 1, &mut row_memory).map_err(Error::widen)?;
    // What must be kept is all there is: the support stays.
    let support = match (phase, &from) {
        (Phase::Tuning, Some(from)) => from.net.w().index(),
        _ => &[],
    };
    let nnz = if support.is_empty() { NNZ } else { support.len() };
    let schedule = Schedule { must_keep: support, ..SCHEDULE };
    let (mut failed, mut is_unplugged, began) = (None, false, seen.ended.1);
    let observe = |progress: &Progress<'_>| {
        if progress.step == began {
            return Continue(());
        }
        seen.ended = (phase, progress.step);
        if let Some(checkpoint) =
            progress.checkpoint.filter(|_| progress.step.is_multiple_of(EVERY))
        {
            failed = slots.keep(phase as u32, &checkpoint).err();
        }
        is_unplugged = *left <= 1;
        *left = left.saturating_sub(1);
        continue_if(failed.is_none() && !is_unplugged)
    };
    let start = from.as_ref().map_or(Start::Zero, Start::Checkpoint);
    let trained = train::run(&mut sensing, labels, nnz, start, &schedule, memory.words(), observe);
    let network = trained.map_err(Error::widen)?.network;
    if let Some(failed) = failed {
        return Err(failed);
    }
    if is_unplugged {
        return Ok(false);
    }
    match phase {
        Phase::Training => slots.keep(Phase::Tuning as u32, &Checkpoint::starting(network))?,
        _ => finish(slots, network)?,
    };
    Ok(true)
}

/// Writes the model.
#[inline(never)]
fn finish<F: NorFlash>(
    slots: &mut Slots<F, PAGE>,
    network: Network<'_>,
) -> Result<Entry, F::Error> {
    let mut model = [0; MODEL];
    let len = wire::encode(network, HIDDEN, Some(Task::Regression), &mut model);
    slots.store(Phase::Model as u32, model.get(..len.map_err(Error::widen)?).unwrap_or_default())
}

/// Reads the model.
fn fetch<F: NorFlash>(
    slots: &mut Slots<F, PAGE>,
    model: &mut [u8; MODEL],
) -> Result<usize, F::Error> {
    let mut words = [0; MODEL.div_ceil(4)];
    let words = slots.load(&mut words)?.unwrap_or_default();
    let len = 4 * words.len();
    for (to, from) in model.iter_mut().zip(words.iter().flat_map(|word| word.to_le_bytes())) {
        *to = from;
    }
    Ok(len)
}

/// The rows of a phase, one by one, as a sensor gives them, and what each is labelled with: two
/// neurons of which one drifts. A device that has lost its window is given the same again.
#[inline(never)]
fn sample(phase: Phase, memory: &mut [u32]) -> Result<Window<'_, f32>> {
    let drift = if phase == Phase::Training { 0.0 } else { 0.5 };
    let (mut sensor, mut row) = (NormalRows::new(phase as u64, ROWS, INPUTS), [0.0; INPUTS]);
    let mut window = Window::new(memory, ROWS, INPUTS)?;
    for k in 0..ROWS {
        sensor.row(k, &mut row)?;
        let label =
            (2.0 * row[1] - row[7]).max(0.0) + ((1.0 + drift) * row[4] + row[8] - row[10]).max(0.0);
        window.push(&row, label)?;
    }
    Ok(window)
}

/// Trains in one session, and in many that end by the plug or in the midst of an operation of the
/// flash. Digest of the model and of what it predicts; 0 unless both ways give the same.
pub(super) fn learn<P: Probe>(probe: &mut P) -> u32 {
    let mut whole = Aligned([0; MODEL]);
    let (Some(len), Some(parts)) = (at_once(probe, &mut whole.0), in_parts()) else { return 0 };
    if parts != whole.0 {
        return 0;
    }
    digest(whole.0.get(..len).unwrap_or_default()).unwrap_or(0)
}

#[inline(never)]
fn at_once<P: Probe>(probe: &mut P, model: &mut [u8; MODEL]) -> Option<usize> {
    let mut flash = SimulatedFlash::new(0, Tear::Before);
    probe.start();
    let done = session(&mut flash, u32::MAX, &mut Seen::default(), model);
    probe.stop("learning, a step", 36);
    done.ok().flatten()
}

/// Flash of the simulated microcontroller.
pub type SimulatedFlash = Nor<{ FLASH as usize }, 4, 256>;

#[inline(never)]
fn in_parts() -> Option<[u8; MODEL]> {
    let mut flash = SimulatedFlash::new(1, Tear::Weak);
    let mut model = [0; MODEL];
    for k in 0..40 {
        flash.cut_in(flash.operations() + 40 + 23 * k);
        let ended = session(&mut flash, 5 + k, &mut Seen::default(), &mut model);
        flash.restart();
        if let Ok(Some(_)) = ended {
            return Some(model);
        }
    }
    None
}

#[inline(never)]
fn digest(model: &[u8]) -> Result<u32> {
    let mut digest = Digest::default();
    model.iter().for_each(|&byte| digest.word(byte.into()));
    let view = View::parse(model)?;
    let (mut row, mut f) = ([0.0; INPUTS], [0.0]);
    for k in 0..8 {
        NormalRows::new(9, 8, INPUTS).row(k, &mut row)?;
        view.model().predict(&row, &mut [], &mut f)?;
        digest.float(f[0]);
    }
    Ok(digest.value())
}
