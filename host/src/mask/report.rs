//! What was done for a mask; the fields are the keys of the command line's JSON.

use serde::Serialize;

use super::options::Method;
use crate::model::MaskedLayer;

/// What was done for a mask.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MaskReport {
    /// What a weight's score was.
    pub method: Method,
    /// `threshold` or `sample`.
    pub select: &'static str,
    /// Rounds of pruning.
    pub rounds: u32,
    /// `linear`, `exponential` or `front-loaded`.
    pub schedule: &'static str,
    /// Whether the dense network was never held in memory.
    pub memoryless: bool,
    /// What logits were divided by, for method `grasp`.
    pub temperature: Option<f32>,
    /// Rows that scores were computed on.
    pub rows: usize,
    /// Weights of the dense network, N.
    pub weights: usize,
    /// Weights of the mask.
    pub kept: usize,
    /// Layers in which all paths end; where more than half of the weights lie on no path, the layer
    /// that keeps the fewest.
    pub collapsed: Vec<String>,
    /// Its layers.
    pub layers: Vec<MaskedLayer>,
    /// Weights computed from the seed.
    pub regenerated_weights: u64,
    /// Memory that it took beside data and mask: weights, scores and all that live between rounds.
    pub state_bytes: u64,
    /// Wall-clock time.
    pub seconds: f64,
    /// Seed of what was drawn.
    pub seed: u64,
}
