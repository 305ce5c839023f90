//! What is trained under a mask, and how.

use tamis::learn::optimiser::Optimiser;

use crate::data::Problem;
use crate::model::Mask;
use crate::train::dense::{DensePlace, Rates};

/// The weights that a mask keeps, and the biases of the network.
#[derive(Debug, Clone, PartialEq)]
pub struct MaskedStart {
    /// The mask.
    pub mask: Mask,
    /// Initial values of its weights, in its order.
    pub values: Vec<f32>,
    /// Biases of each layer, one for each output, which are trained too; none where it has none.
    pub biases: Vec<Vec<f32>>,
}

impl MaskedStart {
    /// Neurons of each hidden layer.
    pub(crate) fn hidden(&self) -> &[usize] {
        let widths = self.mask.widths();
        widths.get(1..widths.len() - 1).unwrap_or_default()
    }
}

/// Settings of recipe `masked`.
#[derive(Debug, Clone, PartialEq)]
pub struct MaskedSettings {
    /// What is trained.
    pub start: MaskedStart,
    /// Passes over all rows.
    pub epochs: u32,
    /// Rows of a batch; 0 for all.
    pub batch: usize,
    /// How a gradient becomes a step.
    pub optimiser: Optimiser,
    /// Step sizes and weight decay; none for the optimiser's default rate, which falls as
    /// [`Rates::falling`] says.
    pub rates: Option<Rates>,
    /// First steps, over which the rate rises linearly; none for 100, or a tenth of the steps where that
    /// is less.
    pub warmup: Option<u32>,
    /// Whether bytes are taken as 0 to 255, and not as fractions of 256.
    pub raw: bool,
    /// Rows that are scored in the end.
    pub test: Option<Problem>,
    /// Where it is trained: elsewhere than on the CPU as a dense network, whose other weights stay 0.
    pub place: DensePlace,
}

/// What a training did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ran {
    pub(crate) epochs: u32,
    pub(crate) steps: u64,
    pub(crate) stopped: bool,
    pub(crate) state_bytes: u64,
    pub(crate) workspace_bytes: u64,
}

impl MaskedSettings {
    /// Ten epochs of SGD with momentum 0.9 at rate 0.1, after 100 steps of warm-up and before the
    /// rate falls, in batches of 128 rows.
    #[must_use]
    pub fn new(start: MaskedStart) -> Self {
        Self {
            start,
            epochs: 10,
            batch: 128,
            optimiser: Optimiser::Sgd { momentum: 0.9 },
            rates: None,
            warmup: None,
            raw: false,
            test: None,
            place: DensePlace::default(),
        }
    }
}
