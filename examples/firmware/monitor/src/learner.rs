//! A network that learns on the device: from windows that somebody who stands beside the machine has
//! labelled, on and on, with all that it knows in NOR flash. While a run from zero is under way,
//! the flash has that run and its rows, and no longer the weights before it: after a loss of power
//! there are none until it has come to its end, and the machine may not run.

use crate::{AXES, Class, Classifier, SAMPLES, Window};
use embedded_storage::nor_flash::NorFlash;
use tamis::base::budget::{Memory, gated_words};
use tamis::base::dims::Dims;
use tamis::data::samples::Window as Rows;
use tamis::learn::checkpoint::Form;
use tamis::learn::iht::Refine;
use tamis::learn::loss::Labels;
use tamis::learn::start::{Start, continue_if};
use tamis::learn::train::{self, Checkpoint, OneOutput, Progress, Schedule, Trials};
use tamis::network::net::Network;
use tamis::network::weights::Weights;
use tamis::operator::gated::Gated;
use tamis::store::flash::Slots;
use tamis::store::wire::{self, Aligned, Task, View};
use tamis::{Error, Result};

/// Rows that a run learns from: the last that were taken.
pub const ROWS: usize = 24;
/// New rows after which the next run is due.
pub const STRIDE: usize = 12;
/// Bytes of flash for sectors of up to 2 KiB: two slots.
pub const FLASH: u32 = 4096;

/// Rows after which the window is written to flash.
const KEEP: usize = 4;
/// Steps between two checkpoints.
const EVERY: u32 = 15;
/// Random starts of a run from zero, of which the best is continued: on so few rows one of them may end
/// with neurons that are closed everywhere.
const STARTS: Trials = Trials { count: 8, rows: ROWS };
/// Numbers that are measured on a window: four for each axis.
const INPUTS: usize = 4 * AXES;
const HIDDEN: usize = 2;
const NNZ: usize = 3;
const PAGE: usize = 64;
/// A window with a score above this one shakes.
const LIMIT: f32 = 0.5;

const DIMS: Dims = Dims::new(ROWS, INPUTS, HIDDEN, NNZ);
const SCHEDULE: Schedule<'_, OneOutput> = Schedule {
    epochs: 20,
    batch: 0,
    trials: STARTS,
    seed: 7,
    head: OneOutput {
        convex_epochs: 5,
        refine: Refine::ConjugateGradient { steps: 8, tolerance: 1e-3 },
        ..OneOutput::PAPER
    },
    ..Schedule::PAPER
};
const RUN: usize = SCHEDULE.budget(DIMS, 1, ROWS + INPUTS).words();
const FORM: Form = Checkpoint::form(&SCHEDULE.budget(DIMS, 1, 0), SCHEDULE.head.signs);
const WINDOW: usize = Rows::<f32>::words(ROWS, INPUTS);
const PAYLOAD: usize = WINDOW + FORM.most_words();
const MODEL: usize = wire::max_len(HIDDEN, NNZ);

/// What a run begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum How {
    /// The weights there are: their values are tuned and the support stays. Without weights as
    /// [`Self::Anew`].
    Support = 1,
    /// Zero: hard thresholding finds a support for these rows, from the best of several random
    /// starts.
    Anew,
}

/// First byte of a tag: what the payloads of this program and of these settings are.
const PROGRAM: u8 = 0x4c;

/// Rows, the run that is under way, and weights; after each loss of power as they were last
/// written.
#[derive(Debug)]
pub struct Learner<F: NorFlash> {
    slots: Slots<F, PAGE>,
    rows: [u32; WINDOW],
    /// Rows that no run has seen.
    fresh: usize,
    run: Option<How>,
    /// Weights of the last run that came to its end; after a reset within a run those of its last
    /// checkpoint.
    index: [u32; NNZ],
    value: [f32; NNZ],
    nnz: usize,
}

impl<F: NorFlash> Learner<F> {
    /// Resumes from what `flash` holds in its bytes from `start` to `start +` [`FLASH`].
    ///
    /// # Errors
    /// Those of [`Slots::open`] and [`Slots::load`]; those of [`Rows::open`] and
    /// [`Checkpoint::read`] for what another program has left under the same tag.
    pub fn open(flash: F, start: u32) -> Result<Self, F::Error> {
        let slots = Slots::open(flash, start..start.saturating_add(FLASH))?;
        let (rows, index, value) = ([0; WINDOW], [0; NNZ], [0.0; NNZ]);
        let mut learner = Self { slots, rows, fresh: 0, run: None, index, value, nnz: 0 };
        Rows::<f32>::new(&mut learner.rows, ROWS, INPUTS).map_err(Error::widen)?;
        let tag = learner.slots.newest().map(|entry| entry.tag().to_be_bytes());
        let Some([PROGRAM, run, fresh, has_weights]) = tag else { return Ok(learner) };
        let mut payload = [0; PAYLOAD];
        let (rows, checkpoint) = learner
            .slots
            .load(&mut payload)?
            .and_then(|words| words.split_at_checked(WINDOW))
            .unwrap_or_default();
        learner.rows.iter_mut().zip(rows).for_each(|(to, from)| *to = *from);
        Rows::<f32>::open(&mut learner.rows, ROWS, INPUTS).map_err(Error::widen)?;
        learner.fresh = fresh.into();
        learner.run = [How::Support, How::Anew].into_iter().find(|&how| how as u8 == run);
        if has_weights != 0 {
            let weights = Checkpoint::read(&FORM, checkpoint).map_err(Error::widen)?.net.w();
            learner.nnz = store(weights, &mut learner.index, &mut learner.value);
        }
        Ok(learner)
    }

    /// Takes a window and how much it shakes: 0 for not at all, from 0.5 on too much. True if a run
    /// is due ([`Self::learn`]); while one is under way nothing is taken.
    ///
    /// # Errors
    /// [`Error::NotFinite`] for such a label; those of [`Slots::keep`], whose rows are taken all
    /// the same.
    pub fn take(&mut self, window: &Window, label: f32) -> Result<bool, F::Error> {
        if self.is_learning() {
            return Ok(true);
        }
        let mut rows = Rows::<f32>::open(&mut self.rows, ROWS, INPUTS).map_err(Error::widen)?;
        rows.push(&measures(window), label).map_err(Error::widen)?;
        self.fresh = (self.fresh + 1).min(ROWS);
        if self.fresh.is_multiple_of(KEEP) {
            self.keep()?;
        }
        Ok(self.is_due())
    }

    /// Learns from the rows that were taken last, or resumes a run in which power failed,
    /// whatever `how` says then. A checkpoint goes to flash every 15 steps. True if the run has
    /// come to its end; `go_on` is asked after each step, and what follows the last checkpoint is
    /// done again if it says no.
    ///
    /// # Errors
    /// Those of the flash; [`Error::Diverged`] for rows that nothing can be learned from, such as a
    /// label that is far too large: the run is given up then, the weights stay, and the next run is
    /// due after as many new rows as ever.
    pub fn learn(&mut self, how: How, go_on: impl FnMut(u32) -> bool) -> Result<bool, F::Error> {
        if self.run.is_none() {
            // Where the run begins: with all its rows, so that it ends with the same bits wherever
            // power fails.
            self.run = Some(if self.nnz == 0 { How::Anew } else { how });
            self.keep()?;
        }
        self.go_on(go_on)
    }

    /// How much a window shakes, by what was learned; none if that is nothing yet.
    ///
    /// # Errors
    /// Of a network that no run leaves behind.
    pub fn score(&self, window: &Window) -> Result<Option<f32>> {
        if self.nnz == 0 {
            return Ok(None);
        }
        let mut file = Aligned([0; MODEL]);
        let len =
            wire::encode(network(self.weights()?), HIDDEN, Some(Task::Regression), &mut file.0)?;
        let mut score = [0.0];
        let view = View::parse(file.0.get(..len).unwrap_or_default())?;
        view.model().predict(&measures(window), &mut [], &mut score)?;
        let [score] = score;
        Ok(Some(score))
    }

    /// The weights, 12 inputs to 2 neurons.
    ///
    /// # Errors
    /// As [`Self::score`].
    pub fn weights(&self) -> Result<Weights<'_>> {
        view(&self.index, &self.value, self.nnz)
    }

    /// Rows that were ever taken, modulo 2³²; after a loss of power those that the flash knows of,
    /// so up to four fewer.
    #[must_use]
    pub fn taken(&self) -> u32 {
        let mut rows = self.rows;
        Rows::<f32>::open(&mut rows, ROWS, INPUTS).map_or(0, |rows| rows.pushed())
    }

    /// Whether there are enough new rows for a run.
    #[must_use]
    pub fn is_due(&self) -> bool {
        let mut rows = self.rows;
        self.fresh >= STRIDE
            && Rows::<f32>::open(&mut rows, ROWS, INPUTS).is_ok_and(|rows| rows.is_full())
    }

    /// Whether a run is under way: call [`Self::learn`].
    #[must_use]
    pub const fn is_learning(&self) -> bool {
        self.run.is_some()
    }

    /// Gives the flash back.
    pub fn release(self) -> F {
        self.slots.release()
    }

    /// The run under way, from its last checkpoint on.
    #[inline(never)]
    fn go_on(&mut self, mut go_on: impl FnMut(u32) -> bool) -> Result<bool, F::Error> {
        let Some(run) = self.run else { return Ok(true) };
        let mut payload = [0; PAYLOAD];
        let words = self
            .slots
            .load(&mut payload)?
            .and_then(|words| words.get(WINDOW..))
            .unwrap_or_default();
        let from = if words.is_empty() { None } else { Some(Checkpoint::read(&FORM, words)) };
        let from = from.transpose().map_err(Error::widen)?;
        let began = from.map_or(0, |from| from.state.steps());
        let rows = Rows::<f32>::open(&mut self.rows, ROWS, INPUTS).map_err(Error::widen)?;
        let mut row_memory = [0.0; gated_words(INPUTS, HIDDEN)];
        let mut sensing =
            Gated::new(rows.rows(), HIDDEN, 1, &mut row_memory).map_err(Error::widen)?;
        // What must be kept is all there is: the support stays.
        let support =
            from.filter(|_| run == How::Support).map_or(&[][..], |from| from.net.w().index());
        let nnz = if support.is_empty() { NNZ } else { support.len() };
        let schedule = Schedule { must_keep: support, ..SCHEDULE };
        let tag = tag(Some(run), self.fresh, true);
        let (slots, mut failed, mut is_over) = (&mut self.slots, None, true);
        let observe = |progress: &Progress<'_>| {
            let is_due = progress.step > began && progress.step.is_multiple_of(EVERY);
            if let Some(checkpoint) = progress.checkpoint.filter(|_| is_due) {
                failed = slots.keep(tag, &(&rows, &checkpoint)).err();
            }
            is_over = failed.is_none() && go_on(progress.step);
            continue_if(is_over)
        };
        let mut memory = Memory::<RUN>::new();
        let (labels, memory) = (Labels::Values(rows.labels()), memory.words());
        let start = from.as_ref().map_or(Start::Zero, Start::Checkpoint);
        let trained = train::run(&mut sensing, labels, nnz, start, &schedule, memory, observe);
        if let Some(failed) = failed {
            return Err(failed);
        }
        let weights = match trained {
            Ok(trained) => trained.network.w(),
            Err(error) => {
                // Nothing can be learned from these rows: the weights stay as they were, and the
                // next run waits for other rows.
                (self.run, self.fresh) = (None, 0);
                self.keep()?;
                return Err(error.widen());
            }
        };
        if is_over {
            let learned = Checkpoint::starting(network(weights));
            self.slots.keep(self::tag(None, 0, true), &(&rows, &learned))?;
            (self.run, self.fresh) = (None, 0);
            self.nnz = store(weights, &mut self.index, &mut self.value);
        }
        Ok(is_over)
    }

    /// Writes what is known: the rows, and the weights of the last run if there are any.
    fn keep(&mut self) -> Result<(), F::Error> {
        let rows = Rows::<f32>::open(&mut self.rows, ROWS, INPUTS).map_err(Error::widen)?;
        let has_weights = self.nnz != 0 && self.run != Some(How::Anew);
        let tag = tag(self.run, self.fresh, has_weights);
        if !has_weights {
            return self.slots.keep(tag, &rows).map(|_| ());
        }
        let weights = view(&self.index, &self.value, self.nnz).map_err(Error::widen)?;
        self.slots.keep(tag, &(&rows, &Checkpoint::starting(network(weights)))).map(|_| ())
    }
}

/// A network that says nothing yet is no reason to let the machine run.
impl<F: NorFlash> Classifier for Learner<F> {
    type Error = Error;

    fn classify(&mut self, window: &Window) -> Result<Class> {
        let is_good = self.score(window)?.is_some_and(|score| score < LIMIT);
        Ok(if is_good { Class::Running } else { Class::Unbalanced })
    }
}

/// Copies weights; how many.
fn store(weights: Weights<'_>, index: &mut [u32; NNZ], value: &mut [f32; NNZ]) -> usize {
    index.iter_mut().zip(weights.index()).for_each(|(to, from)| *to = *from);
    value.iter_mut().zip(weights.value()).for_each(|(to, from)| *to = *from);
    weights.nnz().min(NNZ)
}

/// The first `nnz` weights.
fn view<'w>(index: &'w [u32], value: &'w [f32], nnz: usize) -> Result<Weights<'w>> {
    let (index, value) = (index.get(..nnz), value.get(..nnz));
    Weights::new(INPUTS, HIDDEN, index.unwrap_or_default(), value.unwrap_or_default())
}

/// The network with these weights.
const fn network(weights: Weights<'_>) -> Network<'_> {
    Network::signed(weights, SCHEDULE.head.signs)
}

/// What a payload is: the program, the run, rows that no run has seen, and whether weights stand
/// behind the window.
const fn tag(run: Option<How>, fresh: usize, has_weights: bool) -> u32 {
    let run = match run {
        None => 0,
        Some(how) => how as u8,
    };
    u32::from_be_bytes([PROGRAM, run, fresh as u8, has_weights as u8])
}

/// What a row has of a window, in g: for each axis the mean distances from the mean, from the
/// sample before and from the one before that, and half the range.
fn measures(window: &Window) -> [f32; INPUTS] {
    const G: f32 = 64.0;
    let mut row = [0.0; INPUTS];
    for (axis, out) in row.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let mut samples = [0.0; SAMPLES];
        for (to, sample) in samples.iter_mut().zip(window.as_chunks::<AXES>().0) {
            *to = f32::from(sample.get(axis).copied().unwrap_or_default()) / G;
        }
        let mean = samples.iter().sum::<f32>() / SAMPLES as f32;
        let apart = |by: usize| {
            let pairs = samples.iter().zip(samples.get(by..).unwrap_or_default());
            pairs.map(|(a, b)| (a - b).abs()).sum::<f32>() / (SAMPLES - by) as f32
        };
        let (least, most) = samples
            .iter()
            .fold((f32::MAX, f32::MIN), |(least, most), &x| (least.min(x), most.max(x)));
        let spread = samples.iter().map(|x| (x - mean).abs()).sum::<f32>() / SAMPLES as f32;
        *out = [spread, apart(1), apart(2), 0.5 * (most - least)];
    }
    row
}
