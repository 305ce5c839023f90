//! What a run is after an epoch, and how it resumes from there.

use super::moments::Held;
use super::params::Params;
use crate::base::error::{self, Result};
use crate::base::record::{Put, Record};
use crate::learn::checkpoint::{self as record, Form, Numbers};
use crate::learn::deep::{Head, MAX_LAYERS, Stack};
use crate::network::net::Shape;
use crate::network::weights::Weights;
use core::ops::Range;

/// Counters of a run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct State {
    pub(super) epochs: u32,
    pub(super) steps: u32,
    pub(super) changes: u32,
    pub(super) grown: u64,
    pub(super) loss: f32,
    /// Weights at the start.
    pub(super) start: u32,
    /// Where the entries of each layer end.
    pub(super) ends: [u32; MAX_LAYERS],
    /// The least loss on the validation rows, where there is a best network.
    pub(super) best_loss: f32,
    /// Epochs since.
    pub(super) waited: u32,
    /// As `ends`, of the best network; 0 where there is none.
    pub(super) best_ends: [u32; MAX_LAYERS],
}

impl State {
    /// Words of a state.
    const WORDS: usize = 9 + 2 * MAX_LAYERS;

    /// Weights of the best network; 0 where there is none.
    pub(super) fn best_nnz(&self) -> usize {
        self.best_ends.iter().fold(0, |most, &end| most.max(end as usize))
    }

    /// The least loss on the validation rows.
    pub(super) fn validation(&self) -> Option<f32> {
        (self.best_nnz() > 0).then_some(self.best_loss)
    }

    fn to_words(self) -> [u32; Self::WORDS] {
        let Self { epochs, steps, changes, grown, loss, start, best_loss, waited, .. } = self;
        let (low, high) = (grown as u32, (grown >> 32) as u32);
        let [loss, best_loss] = [loss, best_loss].map(f32::to_bits);
        let mut words = [0; Self::WORDS];
        let all = [epochs, steps, changes, low, high, loss, start, best_loss, waited].into_iter();
        let all = all.chain(self.ends).chain(self.best_ends);
        words.iter_mut().zip(all).for_each(|(word, number)| *word = number);
        words
    }

    fn from_words(words: &[u32; Self::WORDS]) -> Result<Self> {
        let mut words = Numbers::new(words);
        let mut state = Self {
            epochs: words.int(),
            steps: words.int(),
            changes: words.int(),
            grown: u64::from(words.int()) | u64::from(words.int()) << 32,
            loss: words.float(),
            start: words.int(),
            best_loss: words.float(),
            waited: words.int(),
            ends: [0; MAX_LAYERS],
            best_ends: [0; MAX_LAYERS],
        };
        let ends = state.ends.iter_mut().chain(&mut state.best_ends);
        ends.for_each(|end| *end = words.int());
        error::finite("loss of the checkpoint", &[state.loss, state.best_loss])?;
        Ok(state)
    }
}

/// Where a run stands after an epoch: enough to resume from, bit for bit. It is a view of the run's own
/// memory and takes none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Checkpoint<'a> {
    /// All numbers.
    pub state: State,
    /// The support, layer by layer.
    pub index: &'a [u32],
    /// The weights on it.
    pub value: &'a [f32],
    /// Adam's moments.
    pub moments: Held<'a>,
    /// The support of the best network on the validation rows; empty where there is none.
    pub best_index: &'a [u32],
    /// The weights on it.
    pub best_value: &'a [f32],
}

impl<'a> Checkpoint<'a> {
    /// What the checkpoints of a run look like, of a stack with room for so many weights, and for so many
    /// of the best network ([`Params::best_room`]).
    #[must_use]
    pub const fn form(room: usize, best: usize) -> Form {
        let shape = Shape::weighted(1, 1, 1);
        let lengths = [room, room, room, room, best, best];
        Form { state: State::WORDS, shape, nets: 0, entries: [0; 3], vectors: 6, lengths }
    }

    /// The checkpoint in `words`, those that [`Record::write`] of one gave; it borrows them.
    ///
    /// # Errors
    /// As [`Form::read`]; [`crate::Error::Length`] for vectors of different lengths,
    /// [`crate::Error::NotFinite`] for numbers that are none.
    pub fn read(form: &Form, words: &'a [u32]) -> Result<Self> {
        let contents = form.read(words)?;
        let state = State::from_words(&contents.state()?)?;
        let [value, first, second, best_value] = [1, 2, 3, 5].map(|vector| contents.vector(vector));
        let best_index: &[u32] = bytemuck::cast_slice(contents.vector(4));
        let index: &[u32] = bytemuck::cast_slice(contents.vector(0));
        error::length("weights", value.len(), index.len())?;
        error::finite("weights of the checkpoint", value)?;
        error::length("weights of the best network", best_value.len(), best_index.len())?;
        error::finite("weights of the best network", best_value)?;
        let moments = Held::read(first, second, index.len())?;
        Ok(Self { state, index, value, moments, best_index, best_value })
    }

    /// Steps done.
    #[must_use]
    pub const fn steps(&self) -> u32 {
        self.state.steps
    }

    /// Epochs done.
    #[must_use]
    pub const fn epochs(&self) -> u32 {
        self.state.epochs
    }

    /// Weights that the run started with.
    #[must_use]
    pub const fn start_nnz(&self) -> usize {
        self.state.start as usize
    }

    /// Fills an empty stack with the network, in place of [`super::start`] with the same widths.
    ///
    /// # Errors
    /// [`crate::Error::Range`] or [`crate::Error::Unsorted`] for a network of other widths,
    /// [`crate::Error::Length`] for a stack that is not empty or has too little room.
    pub fn restore(&self, stack: &mut Stack<'_>, widths: &[usize], params: &Params) -> Result<()> {
        error::length("layers of the stack", stack.layers.len(), 0)?;
        error::range("layers", widths.len(), 1, MAX_LAYERS)?;
        let one = usize::from(params.constant);
        let (mut from, mut inputs) = (0, stack.inputs);
        let has_best = self.state.best_nnz() > 0;
        let ends = self.state.ends.iter().zip(&self.state.best_ends);
        let mut best_from = 0;
        for (l, (&width, (&end, &best_end))) in widths.iter().zip(ends).enumerate() {
            let is_end = l + 1 == widths.len();
            // The end is laid out input by input.
            let neurons = if is_end { inputs } else { width.saturating_add(one) };
            let inner = if is_end { width } else { inputs };
            let layer = |index: &'a [u32], value: &'a [f32], range: Range<usize>| {
                let (Some(index), Some(value)) =
                    (index.get(range.clone()), value.get(range.clone()))
                else {
                    error::range("end of a layer", range.end, range.start, index.len())?;
                    return Weights::new(inner, neurons, &[], &[]);
                };
                Weights::new(inner, neurons, index, value)
            };
            stack.add(layer(self.index, self.value, from..end as usize)?)?;
            if has_best {
                layer(self.best_index, self.best_value, best_from..best_end as usize)?;
                best_from = best_end as usize;
            }
            (from, inputs) = (end as usize, neurons);
            if is_end {
                stack.head = Head::Weights(width);
            }
        }
        error::length("weights of the best network", best_from, self.best_index.len())?;
        error::length("weights of the layers", from, self.index.len())
    }
}

impl Record for Checkpoint<'_> {
    fn write<E>(&self, put: &mut impl FnMut(&[u32]) -> Put<E>) -> Put<E> {
        let [first, second] = self.moments.vectors();
        let [index, best_index] = [self.index, self.best_index].map(bytemuck::cast_slice);
        let vectors = [index, self.value, first, second, best_index, self.best_value];
        record::write(&self.state.to_words(), &[], &vectors, put)
    }
}
