//! Local search moves: what they are, and the list of the most promising ones.

/// Candidates that are tried before the best of them is taken.
pub(super) const BATCH: usize = 6;
/// Batches before the search gives up.
const BATCHES: usize = 4;

/// A local search move. Its neuron is formed again where it is needed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Move {
    /// Adds a neuron of this output sign, 1 where output weights have signs of their own.
    Add(Origin, f32),
    Split(usize),
    /// Adds a neuron to the second layer.
    Pair(Pair),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// `relu(x_j)` for the even number `2 j`, `relu(-x_j)` for the odd one after it.
    Atom(u32),
    /// A random gate of this seed, and random output weights.
    Random(u64),
    /// The same, and one output alone: `2 k` for output k, `2 k + 1` for its negative.
    Output(u64, u32),
}

/// `relu(a_i - t a_j)` of two activations of the first layer, t being one of a few ratios.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) first: usize,
    pub(super) other: usize,
    pub(super) ratio: usize,
}

/// A move, or what one is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Candidate<M = Move> {
    /// By how much the loss could fall at once.
    pub(super) gain: f32,
    pub(super) kind: M,
}

pub(super) type Candidates = heapless::Vec<Candidate, { BATCH * BATCHES }>;

/// What candidates are drawn from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draw {
    /// Seed of random gates and first directions.
    pub(super) seed: u64,
    /// New neurons from random gates for either sign.
    pub(super) random: u32,
}

/// Input and sign of the atom of this number.
pub(super) fn atom(number: u32) -> (usize, f32) {
    (number as usize / 2, if number.is_multiple_of(2) { 1.0 } else { -1.0 })
}

/// Enters a candidate into a list sorted by gain, best first, and drops the last where it is full.
pub(super) fn rank<M, const N: usize>(
    list: &mut heapless::Vec<Candidate<M>, N>,
    entry: Candidate<M>,
) {
    if !(entry.gain > 0.0) {
        return;
    }
    let at = list.iter().position(|other| entry.gain > other.gain).unwrap_or(list.len());
    if at == N {
        return;
    }
    if list.is_full() {
        list.pop();
    }
    // There is room, and `at` is not behind the end.
    let _ = list.insert(at, entry);
}
