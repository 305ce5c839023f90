//! Which rows each neuron is active on: `1[v_i · X h_i > 0]`, and where the generators `h_i` come
//! from.
//!
//! With fixed generators the network is linear in its weights; with `h_i = w_i` it is the `ReLU`
//! network itself (sequential convex programming). Gates are computed from a seed or from sparse
//! weights where they are needed.

use crate::base::error::Result;
use crate::base::math;
use crate::base::rng::{Rng, seed_of, stream};
use crate::network::weights::{Block, Weights};
use core::num::NonZeroU32;

/// Signs of the fixed output weights `v_i`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Signs {
    /// All +1, as published.
    #[default]
    Positive,
    /// +1 for even neurons and -1 for odd ones: for targets that take both signs.
    Balanced,
    /// Neuron 0 is a linear term, open on every row, while a network is searched for; then +1 for
    /// odd neurons and -1 for even ones. With a linear term a neuron may point either way, since
    /// `relu(z) = z + relu(-z)`.
    Free,
    /// Neuron 0 is a linear term as with [`Self::Free`], and all others are +1.
    Unoriented,
}

impl Signs {
    /// `v_i` of neuron `i`: 1 or -1.
    #[must_use]
    pub const fn sign(self, i: usize) -> f32 {
        match (self, i % 2) {
            (Self::Balanced, 1) => -1.0,
            (Self::Free, 0) if i > 0 => -1.0,
            _ => 1.0,
        }
    }

    /// Whether neuron `i` is the linear term of [`Self::Free`] or [`Self::Unoriented`].
    #[must_use]
    pub const fn linear(self, i: usize) -> bool {
        matches!(self, Self::Free | Self::Unoriented) && i == 0
    }

    /// Whether both signs exist.
    #[must_use]
    pub const fn both(self) -> bool {
        !matches!(self, Self::Positive | Self::Unoriented)
    }
}

/// What the gate of a neuron without weights does; one whose weights are all 0 is such a neuron.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Empty {
    /// Closed for ever, as in the published code (`> 0`).
    #[default]
    Freeze,
    /// Open on every row, as the paper's formula says (`>= 0`).
    Open,
    /// A fresh random generator at every refresh.
    Reseed,
}

/// The gates of all neurons during one convex step.
///
/// Gates that an operator holds are a value of their own, which
/// [`crate::operator::sensing::Sensing::hold`] gives: they borrow the weights that they are of, so
/// these stay as they are as long as the held gates are in use.
#[derive(Debug, Clone, Copy)]
#[must_use = "products with the gates that were given to `hold` do not use the held ones"]
pub struct Gates<'a> {
    /// The generators, where they are weights.
    weights: Option<Weights<'a>>,
    signs: Signs,
    empty: Empty,
    seed: u64,
    round: u32,
    ticket: Option<NonZeroU32>,
}

impl<'a> Gates<'a> {
    /// Standard normal generators, drawn from the seed whenever they are needed.
    pub const fn seeded(seed: u64) -> Self {
        let (signs, empty) = (Signs::Positive, Empty::Reseed);
        Self { weights: None, signs, empty, seed, round: 0, ticket: None }
    }

    /// The current weights as generators. `round` counts the refreshes: it keys [`Empty::Reseed`].
    pub const fn of(
        weights: Weights<'a>,
        signs: Signs,
        empty: Empty,
        seed: u64,
        round: u32,
    ) -> Self {
        Self { weights: Some(weights), signs, empty, seed, round, ticket: None }
    }

    /// The gate of neuron `i`. O(log s); [`Self::cursor`] is faster for neurons in order.
    #[must_use]
    pub fn gate(&self, i: usize) -> Gate<'a> {
        self.with_block(i, self.weights.unwrap_or(NONE).block(i))
    }

    /// Gates of neurons asked for in rising order, in O(1) amortised.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'a> {
        Cursor { gates: *self, rest: self.weights.unwrap_or(NONE) }
    }

    /// The same gates, held by an operator under this number: for operators, in their
    /// [`crate::operator::sensing::Sensing::hold`].
    pub const fn held(self, ticket: NonZeroU32) -> Self {
        Self { ticket: Some(ticket), ..self }
    }

    /// The number under which an operator holds them.
    #[must_use]
    pub const fn ticket(&self) -> Option<NonZeroU32> {
        self.ticket
    }

    /// Numbers that a machine elsewhere would be sent for them: index and value of each weight of
    /// the generators, none where it holds them.
    #[must_use]
    pub const fn numbers(&self) -> usize {
        match self.weights {
            Some(weights) if self.ticket.is_none() => 2 * weights.nnz(),
            _ => 0,
        }
    }

    /// Checks that the generators belong to `hidden` neurons of `inputs` inputs.
    ///
    /// # Errors
    /// [`crate::Error::Length`] or [`crate::Error::Range`] if they do not.
    pub fn check(&self, inputs: usize, hidden: usize) -> Result<()> {
        self.weights.map_or(Ok(()), |weights| weights.check(inputs, hidden))
    }

    /// Whether some gate may be random, and so costs d random numbers to form.
    #[must_use]
    pub const fn may_be_random(&self) -> bool {
        matches!(self.empty, Empty::Reseed)
    }

    fn with_block(&self, i: usize, block: Block<'a>) -> Gate<'a> {
        match self.empty {
            _ if self.signs.linear(i) && !block.is_empty() => Gate::Open,
            _ if block.is_live() => Gate::Weights { block, sign: self.signs.sign(i) },
            Empty::Freeze => Gate::Closed,
            Empty::Open => Gate::Open,
            Empty::Reseed => self.random(i),
        }
    }

    fn random(&self, i: usize) -> Gate<'a> {
        let seed = seed_of(self.seed, stream::ROUND, self.round);
        Gate::Random { seed, stream: stream::GATE + i as u64 }
    }
}

/// The weights of random generators.
const NONE: Weights<'_> = Weights::empty(1, 0);

/// Walks the gates in rising order of the neurons; see [`Gates::cursor`].
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    gates: Gates<'a>,
    rest: Weights<'a>,
}

impl<'a> Cursor<'a> {
    /// The gate of neuron `i`, which must not be below the last one asked for.
    #[inline]
    pub fn at(&mut self, i: usize) -> Gate<'a> {
        let block = self.rest.take_block(i);
        self.gates.with_block(i, block)
    }
}

/// The gate of one neuron.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Gate<'a> {
    /// Active on no row.
    Closed,
    /// Active on every row.
    Open,
    /// Active where a standard normal generator, drawn from (seed, stream), has a positive product
    /// with the row.
    Random {
        /// Seed of the generator.
        seed: u64,
        /// Stream of the generator.
        stream: u64,
    },
    /// Active where the neuron itself is: `sign · w_i·x > 0`.
    Weights {
        /// The neuron's weights.
        block: Block<'a>,
        /// The neuron's output sign.
        sign: f32,
    },
}

impl Gate<'_> {
    /// Writes a random generator to `h`, of length d; the other gates need none.
    pub fn generator(&self, h: &mut [f32]) {
        if let Self::Random { seed, stream } = *self {
            Rng::new(seed, stream).fill_normal(h);
        }
    }

    /// The gate's weight on a row of length d: 1 where it is open, 0 where it is closed.
    ///
    /// `h` is what [`Self::generator`] wrote. A weight rather than a flag, since a deeper network
    /// passes through a neuron with the weight of the layers above it.
    #[inline]
    #[must_use]
    pub fn weight(&self, row: &[f32], h: &[f32]) -> f32 {
        let open = match self {
            Self::Closed => false,
            Self::Open => true,
            Self::Random { .. } => math::dot(h, row) > 0.0,
            Self::Weights { block, sign } => sign * block.dot(row) > 0.0,
        };
        if open { 1.0 } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    const INDEX: [u32; 3] = [0, 7, 8];
    const VALUE: [f32; 3] = [1.0, -1.0, 2.0];

    fn gates(signs: Signs, empty: Empty, round: u32) -> Gates<'static> {
        Gates::of(Weights::new(3, 4, &INDEX, &VALUE).unwrap(), signs, empty, 9, round)
    }

    #[test]
    fn gate_is_one_where_neuron_is_active() {
        for (signs, expected) in [(Signs::Positive, [1.0, 0.0]), (Signs::Balanced, [1.0, 0.0])] {
            let gate = gates(signs, Empty::Freeze, 0).gate(0);
            assert_eq!(
                [gate.weight(&[2.0, 0.0, 0.0], &[]), gate.weight(&[-2.0, 0.0, 0.0], &[])],
                expected
            );
        }
        let w = Weights::new(3, 4, &[3], &[1.0]).unwrap();
        let negative = Gates::of(w, Signs::Balanced, Empty::Freeze, 0, 0).gate(1);
        assert_eq!(
            [negative.weight(&[1.0, 0.0, 0.0], &[]), negative.weight(&[-1.0, 0.0, 0.0], &[])],
            [0.0, 1.0]
        );
    }

    #[test]
    fn empty_neurons_follow_the_policy() {
        assert_eq!(gates(Signs::Positive, Empty::Freeze, 0).gate(1), Gate::Closed);
        assert_eq!(gates(Signs::Positive, Empty::Open, 0).gate(1), Gate::Open);
        let fresh = |round| gates(Signs::Positive, Empty::Reseed, round).gate(1);
        assert_eq!(fresh(1), fresh(1));
        assert_ne!(fresh(1), fresh(2));
    }

    #[test]
    fn the_cursor_agrees_with_single_gates() {
        for empty in [Empty::Freeze, Empty::Open, Empty::Reseed] {
            let gates = gates(Signs::Balanced, empty, 3);
            for step in 1..4 {
                let mut cursor = gates.cursor();
                for i in (0..4).step_by(step) {
                    assert_eq!(cursor.at(i), gates.gate(i));
                }
            }
        }
        let seeded = Gates::seeded(4);
        assert_eq!(seeded.cursor().at(2), seeded.gate(2));
    }
}
