//! Settings of a mask, and what was done for it.

use crate::network::mask::initial::Initial;
use crate::network::mask::select::Choice;

/// What flows in: one number for each input.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Input<'a> {
    /// Ones, as published.
    #[default]
    Ones,
    /// Lengths of random normal vectors of 128 dimensions, drawn anew in every round (SKETCH).
    Chi,
    /// Sizes of the inputs, such as their root mean square or standard deviation over the data.
    Sizes(&'a [f32]),
}

/// Settings of a mask.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Params<'a> {
    /// The initial weights.
    pub weights: Initial,
    /// What flows in.
    pub input: Input<'a>,
    /// R, rounds.
    pub rounds: u32,
    /// k, weights of the mask: exactly so many.
    pub count: usize,
    /// Which weights these are in the last round.
    pub choice: Choice,
}

impl Params<'_> {
    /// Rounds that come close to many exact ones.
    pub const ROUNDS: u32 = 20;
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Info {
    /// Weights computed from the seed, over all passes.
    pub regenerated: u64,
    /// Whether the widest path held a round's threshold down: without it a layer would have lost
    /// its last weights.
    pub guarded: bool,
}
