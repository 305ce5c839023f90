//! Exactly how many bytes each algorithm needs, in `const fn`, and the one buffer of 32-bit words of
//! the caller that they are carved from ([`Workspace`]). Nothing else is allocated anywhere.

use crate::base::dims::Dims;
use crate::base::error::{Error, Result};

/// Bytes of one word: an index or a float.
pub const WORD: usize = 4;

/// What terms add up to.
const fn sum(terms: &[usize]) -> usize {
    let (mut sum, mut left) = (0_usize, terms);
    while let [term, behind @ ..] = left {
        (sum, left) = (sum.saturating_add(*term), behind);
    }
    sum
}

const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// What follows from the words of state and workspace.
macro_rules! totals {
    ($budget:ident) => {
        impl $budget {
            /// All words together.
            pub const fn words(&self) -> usize {
                self.state_words().saturating_add(self.workspace_words())
            }

            /// [`Self::state_words`] in bytes.
            pub const fn state_bytes(&self) -> usize {
                self.state_words().saturating_mul(WORD)
            }

            /// [`Self::workspace_words`] in bytes.
            pub const fn workspace_bytes(&self) -> usize {
                self.workspace_words().saturating_mul(WORD)
            }
        }
    };
}

/// Memory of a training run of [`crate::learn::train`], in words; the operator's own buffers come
/// on top.
///
/// *State* survives from step to step: iterate and next iterate, index and value, 16 bytes per
/// nonzero; 8 more for a third network; and the counters of a count sketch. *Workspace* is the rest:
/// one residual per row and output of a batch or of a strip of it, and the operator's scratch. For
/// one output one buffer holds a gradient panel of p blocks or three vectors on the support, and
/// with strips another what one of them adds to it. For several outputs there is a panel of
/// p (d + c), and as many indices and values that stand for blocks without weights.
///
/// ```
/// use tamis::{base::budget::Training, base::dims::Dims};
/// use tamis::learn::{loss::Labels, train::{Rank, Schedule, SeveralOutputs}};
/// const NEEDED: Training = Training::new(Dims::new(200, 64, 10, 100), 200, 1, 264);
/// assert_eq!(NEEDED.state_bytes(), 16 * 100);
/// assert_eq!(NEEDED.workspace_bytes(), 4 * (200 + 264 + 3 * 100));
/// let paper = Schedule::paper(&Labels::classes(&[], 10), 32, 1000);
/// let schedule = Schedule { head: SeveralOutputs { rank: Rank::Exact, ..paper.head }, ..paper };
/// let needed = schedule.budget(Dims::new(5000, 784, 32, 1000), 10, 1, 10_784);
/// assert_eq!(needed.state_bytes(), 16 * 1000);
/// assert_eq!(needed.workspace_bytes(), 4 * (5000 * 10 + 3 * (784 + 10) + 10_784));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Training {
    /// The problem's sizes; `nnz` counts both sides.
    pub dims: Dims,
    /// c, outputs whose weights are trained; 0 for one output, whose weights are signs.
    pub outputs: usize,
    /// Rows of a batch.
    pub batch: usize,
    /// Rows whose residuals are held, at most a batch.
    pub strip: usize,
    /// Blocks of a gradient panel, p.
    pub panel: usize,
    /// Floats of scratch that the operator asks for, for so many rows.
    pub scratch: usize,
    /// Counters of the count sketch, if one ranks.
    pub sketch: usize,
    /// Whether a third network is held: the generators of gates that lag behind the weights, or the
    /// best iterate of a safe run.
    pub third_network: bool,
    /// Whether columns are normalised (the `theory` step), which needs a second panel.
    pub normalised_columns: bool,
}

impl Training {
    /// The budget of the default schedule for one output: gates renewed at every step, columns as
    /// they are.
    #[must_use]
    pub const fn new(dims: Dims, batch: usize, panel: usize, scratch: usize) -> Self {
        Self {
            dims,
            outputs: 0,
            batch,
            strip: batch,
            panel,
            scratch,
            sketch: 0,
            third_network: false,
            normalised_columns: false,
        }
    }

    /// Words that survive from step to step.
    pub const fn state_words(&self) -> usize {
        let networks: usize = if self.third_network { 3 } else { 2 };
        networks.saturating_mul(2).saturating_mul(self.dims.nnz).saturating_add(self.sketch)
    }

    /// Floats of the residual of a strip.
    pub const fn residual_words(&self) -> usize {
        self.strip.saturating_mul(max(self.outputs, 1))
    }

    /// Floats of a gradient panel over both sides; for one output of the buffer that panels and
    /// restricted vectors share.
    pub const fn panel_words(&self) -> usize {
        let panel = self.panel.saturating_mul(self.dims.inputs.saturating_add(self.outputs));
        if self.outputs > 0 {
            return panel;
        }
        let panels = panel.saturating_mul(if self.normalised_columns { 2 } else { 1 });
        max(panels, self.dims.nnz.saturating_mul(3))
    }

    /// Entries that stand for those of a panel; none for one output.
    pub const fn standin_entries(&self) -> usize {
        if self.outputs > 0 { self.panel_words() } else { 0 }
    }

    /// Floats of what a strip adds; none where a strip is the batch, and for several outputs.
    pub const fn strip_words(&self) -> usize {
        let has_strips = self.outputs == 0 && self.strip < self.batch;
        let panel = self.panel.saturating_mul(self.dims.inputs);
        if has_strips { max(panel, self.dims.nnz) } else { 0 }
    }

    /// Words needed within a step only.
    pub const fn workspace_words(&self) -> usize {
        let standins = self.standin_entries().saturating_mul(2);
        let (residual, panel) = (self.residual_words(), self.panel_words());
        sum(&[residual, self.scratch, panel, standins, self.strip_words()])
    }
}

totals!(Training);

/// Memory of a run of [`crate::learn::anneal`], in words; the operator's own buffers come on top.
///
/// *State* survives from step to step: index, weight, two moments and a score for each of the
/// `start` entries that the support begins with, 20 bytes each, and with validation rows one more
/// float per nonzero. *Workspace* is the rest: the residual of a batch, n·c; a gradient panel of p
/// blocks, p (d + c); the scale of each column, d; and the operator's scratch.
///
/// ```
/// use tamis::{learn::anneal::Params, base::budget::Annealing, base::dims::Dims};
/// const PARAMS: Params = Params { start_factor: 1.0, batch: 20, ..Params::DEFAULT };
/// const NEEDED: Annealing = PARAMS.budget(Dims::new(200, 64, 10, 100), 10, 1, 104);
/// assert_eq!(NEEDED.state_bytes(), 20 * 100);
/// assert_eq!(NEEDED.workspace_bytes(), 4 * (20 * 10 + (64 + 10) + 64 + 104));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Annealing {
    /// The problem's sizes; `nnz` counts both sides.
    pub dims: Dims,
    /// c: one output a class, or one for two classes.
    pub outputs: usize,
    /// Entries that the support begins with, at least s.
    pub start: usize,
    /// Rows of a batch.
    pub batch: usize,
    /// Blocks of a gradient panel, p.
    pub panel: usize,
    /// Floats of scratch that the operator asks for.
    pub scratch: usize,
    /// Whether there is a validation set, so that the best iterate is stored.
    pub validated: bool,
}

impl Annealing {
    /// Words that survive from step to step.
    pub const fn state_words(&self) -> usize {
        let best = if self.validated { self.dims.nnz } else { 0 };
        self.start.saturating_mul(5).saturating_add(best)
    }

    /// Floats of a gradient panel over both sides.
    pub const fn panel_words(&self) -> usize {
        self.panel.saturating_mul(self.dims.inputs.saturating_add(self.outputs))
    }

    /// Words needed within a step only, and the column scales.
    pub const fn workspace_words(&self) -> usize {
        let residual = self.batch.saturating_mul(self.outputs);
        sum(&[residual, self.panel_words(), self.dims.inputs, self.scratch])
    }
}

totals!(Annealing);

/// Memory of a run of [`crate::learn::lm`], in words; the operator's own buffers come on top.
///
/// *State* is what the optimiser holds: five networks (the current one, the base of the moves, the
/// best trial, the best network while searching, the result), six vectors on the support, and four
/// of one number per input and output. It is 94 bytes per nonzero, where sizes are rounded up, and
/// 16 bytes per input and output; the linear term of free signs takes 56 bytes more per input. It
/// does not depend on the number of neurons. *Workspace* is the rest, always for all rows: a
/// residual of one float per row and label, and two outputs of single neurons, with output weights
/// three, of one float per row; with two layers a bit for each row and neuron of the second; a
/// gradient panel; the operator's scratch.
///
/// ```
/// use tamis::{base::budget::Recovery, base::dims::Dims};
/// const NEEDED: Recovery = Recovery::new(Dims::new(5000, 100, 20, 1000), 1, 5100, false);
/// assert_eq!((NEEDED.work(), NEEDED.room()), (1250, 1750));
/// assert_eq!(NEEDED.state_bytes(), 4 * (2 * 1000 + 6 * 1250 + 8 * 1750 + 4 * 100));
/// assert_eq!(NEEDED.workspace_bytes(), 4 * (3 * 5000 + 100 + 5100));
/// const TEN: Recovery = Recovery::factored(Dims::new(5000, 100, 20, 1000), 10, 1, 10_100);
/// assert_eq!(TEN.state_bytes(), NEEDED.state_bytes() + 4 * (4 * 10));
/// assert_eq!(TEN.workspace_bytes(), 4 * ((10 + 3) * 5000 + (100 + 10) + 10_100));
/// // 24 neurons of the first layer, 14 outputs.
/// const DEEP: Recovery = Recovery::deep(Dims::new(5000, 100, 20, 1000), 24, 14, 1, 10_100);
/// assert_eq!(DEEP.state_bytes(), TEN.state_bytes() + 4 * (14 * 24 + 4 * 4));
/// assert_eq!(DEEP.workspace_bytes(), 4 * ((1 + 3) * 5000 + 5000 + (100 + 14) + 10_100));
/// const WIDE: Recovery = Recovery::new(Dims::new(784, 1500, 10, 100), 1, 2284, false);
/// assert_eq!((WIDE.is_wide(), WIDE.cover_words(), NEEDED.cover_words()), (true, 3 * 784 + 175, 0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// The problem's sizes.
    pub dims: Dims,
    /// Blocks of a gradient panel, p.
    pub panel: usize,
    /// Floats of scratch that the operator asks for.
    pub scratch: usize,
    /// Whether there is a linear term ([`crate::network::gates::Signs::Free`]), d weights more
    /// while searching.
    pub linear: bool,
    /// c, outputs whose weights count in s too ([`crate::learn::lm::SeveralOutputs`]); 0 where the
    /// output weights are signs.
    pub outputs: usize,
    /// Neurons of the first of two layers that may have weights at once
    /// ([`crate::learn::lm::TwoLayers`]); 0 where there is one layer.
    pub first: usize,
}

impl Recovery {
    /// The budget for `dims`, given the panel and the operator's scratch for all rows, 0 where that is for
    /// random gates alone ([`crate::operator::sensing::Sensing::always_needs_scratch`]).
    #[must_use]
    pub const fn new(dims: Dims, panel: usize, scratch: usize, linear: bool) -> Self {
        Self { dims, panel, scratch, linear, outputs: 0, first: 0 }
    }

    /// The budget for a network of several outputs, `dims.nnz` counting both sides; `scratch` is
    /// the larger of [`crate::operator::sensing::Sensing::scratch`] and
    /// [`crate::operator::factored::Factored::net_scratch`] for all rows.
    #[must_use]
    pub const fn factored(dims: Dims, outputs: usize, panel: usize, scratch: usize) -> Self {
        Self { outputs, ..Self::new(dims, panel, scratch, false) }
    }

    /// The budget for a network of two hidden layers, `dims.nnz` counting both: `first` neurons of
    /// the first layer that the operator has room for, and `outputs` of it,
    /// [`crate::learn::lm::second_slots`].
    #[must_use]
    pub const fn deep(
        dims: Dims,
        first: usize,
        outputs: usize,
        panel: usize,
        scratch: usize,
    ) -> Self {
        let most = Self::work_size(dims.nnz);
        let first = if first < most { first } else { most };
        Self { first, ..Self::factored(dims, outputs, panel, scratch) }
    }

    /// Labels of a row.
    pub const fn labels(&self) -> usize {
        if self.first > 0 { 1 } else { max(self.outputs, 1) }
    }

    /// Words for a bit a row and output, where outputs are summed up.
    pub const fn gates(&self) -> usize {
        let words = self.dims.samples.saturating_mul(self.outputs.div_ceil(32));
        if self.first > 0 { words } else { 0 }
    }

    /// Weights of neurons between two steps of the search: 1.25 s.
    #[must_use]
    pub const fn work_size(nnz: usize) -> usize {
        nnz.saturating_add(nnz.div_ceil(4))
    }

    /// Weights that an outer step adds: 0.5 s.
    #[must_use]
    pub const fn growth(nnz: usize) -> usize {
        nnz.div_ceil(2)
    }

    /// Weights that a network has between two steps at the most: 1.25 s, and d of the linear term.
    pub const fn work(&self) -> usize {
        let linear = if self.linear { self.dims.inputs } else { 0 };
        sum(&[Self::work_size(self.dims.nnz), linear, self.first])
    }

    /// Weights that a network may have at once: 0.5 s more, and at least 8, so that small networks
    /// have room for a second neuron.
    pub const fn room(&self) -> usize {
        self.work().saturating_add(max(Self::growth(self.dims.nnz), 8))
    }

    /// Whether there are at least as many inputs as rows, one output and no linear term: the search
    /// may then cover rows that no neuron is open on.
    pub const fn is_wide(&self) -> bool {
        self.dims.inputs >= self.dims.samples && self.outputs == 0 && !self.linear
    }

    /// Words of a cover: three numbers a row and one for each weight that there is room for, where
    /// [`Self::is_wide`].
    pub const fn cover_words(&self) -> usize {
        let words = self.dims.samples.saturating_mul(3).saturating_add(self.room());
        if self.is_wide() { words } else { 0 }
    }

    /// Words that the optimiser holds.
    pub const fn state_words(&self) -> usize {
        let result = self.dims.nnz.saturating_mul(2);
        let between = self.work().saturating_mul(6);
        let current = self.room().saturating_mul(8);
        let ends = self.dims.inputs.saturating_add(self.outputs).saturating_mul(4);
        sum(&[result, between, current, ends])
    }

    /// Words for rows, gradient panels, a cover and the operator.
    pub const fn workspace_words(&self) -> usize {
        let vectors = if self.outputs > 0 { 3 } else { 2 };
        let rows = self.dims.samples.saturating_mul(self.labels().saturating_add(vectors));
        let panel = self.panel.saturating_mul(self.dims.inputs.saturating_add(self.outputs));
        sum(&[rows, panel, self.scratch, self.gates(), self.cover_words()])
    }
}

totals!(Recovery);

/// Checks that there are as many words as are needed.
pub(crate) fn enough(needed: usize, got: usize) -> Result<()> {
    if got >= needed {
        return Ok(());
    }
    Err(Error::Budget { needed: needed.saturating_mul(WORD), got: got.saturating_mul(WORD) })
}

/// Rows of a batch of so many that were asked for, 0 for all, where there are `rows`.
pub(crate) const fn batch(asked: usize, rows: usize) -> usize {
    if asked == 0 || asked > rows { rows } else { asked }
}

/// Floats that [`crate::operator::gated::Gated`] needs for itself: one row, one generator, one gate
/// per neuron.
#[must_use]
pub const fn gated_words(inputs: usize, hidden: usize) -> usize {
    inputs.saturating_mul(2).saturating_add(hidden)
}

/// Hands out disjoint pieces of one caller-owned buffer.
///
/// ```
/// let mut memory = [0; 8];
/// let mut space = tamis::base::budget::Workspace::new(&mut memory);
/// let index: &mut [u32] = space.indices(3).unwrap();
/// let value: &mut [f32] = space.floats(3).unwrap();
/// assert_eq!((index.len(), value.len()), (3, 3));
/// assert!(matches!(space.floats(3), Err(tamis::Error::Budget { needed: 36, got: 32 })));
/// ```
#[derive(Debug)]
pub struct Workspace<'a> {
    free: &'a mut [u32],
    taken: usize,
}

impl<'a> Workspace<'a> {
    /// Starts handing out `memory`.
    pub fn new(memory: &'a mut [u32]) -> Self {
        Self { free: memory, taken: 0 }
    }

    /// The next `len` words as indices.
    ///
    /// # Errors
    /// [`Error::Budget`] with the bytes needed so far and the bytes given, if too few are left.
    pub fn indices(&mut self, len: usize) -> Result<&'a mut [u32]> {
        enough(self.taken.saturating_add(len), self.taken + self.free.len())?;
        let (piece, rest) = core::mem::take(&mut self.free).split_at_mut(len);
        self.free = rest;
        self.taken += len;
        Ok(piece)
    }

    /// The next `len` words as floats.
    ///
    /// # Errors
    /// As [`Self::indices`].
    pub fn floats(&mut self, len: usize) -> Result<&'a mut [f32]> {
        self.indices(len).map(bytemuck::cast_slice_mut)
    }
}

/// A workspace with its size in its type, for targets where memory is laid out at link time.
///
/// ```
/// use tamis::{base::budget::{Memory, Training}, base::dims::Dims};
/// const NEEDED: usize = Training::new(Dims::new(200, 64, 10, 100), 200, 1, 264).words();
/// let mut memory: Memory<NEEDED> = Memory::new();
/// assert_eq!(memory.words().len(), NEEDED);
/// ```
#[derive(Debug, Clone)]
pub struct Memory<const WORDS: usize>([u32; WORDS]);

impl<const WORDS: usize> Memory<WORDS> {
    /// All zero.
    #[must_use]
    pub const fn new() -> Self {
        Self([0; WORDS])
    }

    /// The words, to be lent to an algorithm.
    pub fn words(&mut self) -> &mut [u32] {
        &mut self.0
    }
}

impl<const WORDS: usize> Default for Memory<WORDS> {
    fn default() -> Self {
        Self::new()
    }
}
