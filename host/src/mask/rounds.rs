//! Rounds of scores and selections on weights in memory.

use tamis::base::rng::{CounterRng, stream};
use tamis::network::mask::Mlp;
use tamis::network::mask::schedule::Schedule;
use tamis::network::mask::synflow::chi;

use super::network::DenseLayers;
use super::options::{InputSize, MaskOptions, Method};
use super::rows::ScoredRows;
use super::scores::{Scored, scores};
use super::select::{Selection, select};
use crate::operator::Stop;
use crate::train::dense::shape::Shape;
use crate::{Error, Result};

/// A network, and what its weights are scored on.
pub(super) struct Rounds<'a> {
    pub(super) net: Mlp<'a>,
    pub(super) options: &'a MaskOptions,
    pub(super) rows: Option<&'a ScoredRows>,
    /// Weights of the mask.
    pub(super) count: usize,
    pub(super) stop: &'a Stop,
}

/// What the rounds leave.
pub(super) struct Rounded {
    /// Flat indices of the mask's weights.
    pub(super) index: Vec<u32>,
    /// Rounds that were made.
    pub(super) rounds: u32,
}

impl Rounds<'_> {
    /// All rounds, until too few weights have a score for the next; `layers` then holds the weights
    /// that the round before the last left. `observe` is called after every round.
    pub(super) fn run(
        &self,
        layers: &mut DenseLayers,
        mut observe: impl FnMut(u32),
    ) -> Result<Rounded> {
        let Self { net, options, count, stop, .. } = self;
        let rounds = options.exact_rounds();
        let shape = Shape::of(net.widths())?;
        let (mut before, mut input) = (Vec::new(), Vec::new());
        let mut round = 0;
        loop {
            round += 1;
            if stop.asked() {
                return Err(Error::interrupted_in(format_args!(
                    "in round {round} of {rounds}: no mask is written"
                )));
            }
            // All but random lengths are the same in every round; a pass over all rows is not cheap.
            if round == 1 || options.input == InputSize::Chi {
                input = self.input(round)?;
            }
            let of = Scored {
                shape: &shape,
                layers,
                rows: self.rows,
                input: &input,
                options,
                round,
                stop,
            };
            let mut scores = scores(&of)?;
            // Where the neurons that are left have too few weights between them, those of the round
            // before are chosen from, and rounds end.
            let is_short = round > 1 && positive(&scores) < *count;
            if is_short {
                scores = std::mem::take(&mut before);
            }
            let is_last = round >= rounds || is_short;
            let left = if is_last { *count } else { self.left(&scores, round, rounds) };
            let selection = Selection {
                count: left,
                choice: options.choice,
                scope: options.scope(),
                allocation: options.allocation(),
                least: options.least,
            };
            // Every round draws anew.
            let rng = CounterRng::new(options.seed, stream::MASK + u64::from(round));
            let index = select(net, &scores, &selection, rng)?;
            observe(round);
            if is_last {
                debug_assert_eq!(index.len(), *count);
                return Ok(Rounded { index, rounds: if is_short { round - 1 } else { round } });
            }
            keep(&mut layers.weights, &index);
            before = scores;
        }
    }

    /// How many weights a round before the last leaves: no more than have scores above 0.
    fn left(&self, scores: &[f32], round: u32, rounds: u32) -> usize {
        let schedule = self.options.schedule.unwrap_or(Schedule::Exponential);
        let left = schedule.count(self.net.weights(), self.count, round, rounds);
        left.min(positive(scores))
    }

    /// What flows into the network in a round.
    fn input(&self, round: u32) -> Result<Vec<f32>> {
        let inputs = self.net.widths()[0];
        if self.options.method != Method::Synflow {
            return Ok(Vec::new());
        }
        match self.options.input {
            InputSize::Ones => Ok(vec![1.0; inputs]),
            InputSize::Chi => {
                let mut sizes = vec![0.0; inputs];
                chi(self.options.seed, round, &mut sizes);
                Ok(sizes)
            }
            InputSize::PixelRms | InputSize::PixelSd => input_sizes(self.options.input, self.rows),
        }
    }
}

fn positive(scores: &[f32]) -> usize {
    scores.iter().filter(|score| **score > 0.0).count()
}

/// Sizes of the inputs from the data.
pub(super) fn input_sizes(input: InputSize, rows: Option<&ScoredRows>) -> Result<Vec<f32>> {
    let Some(rows) = rows else {
        return Err(Error::new("sizes of the inputs come from data")
            .mismatch("--data with --input pixel-rms or pixel-sd", "no data")
            .help("pass --data X.npy, or --input ones"));
    };
    Ok(rows.sizes(input == InputSize::PixelSd))
}

/// Sets all weights to 0 but those at these indices.
fn keep(weights: &mut [f32], index: &[u32]) {
    let mut next = 0;
    for &index in index {
        weights[next..index as usize].fill(0.0);
        next = index as usize + 1;
    }
    weights[next..].fill(0.0);
}
