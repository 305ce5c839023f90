//! The settings of the dense baseline, and what they lead to on a problem.

use serde::{Deserialize, Serialize};
use tamis::infer::model::{MAX_INPUTS, MAX_LAYERS};
use tamis::learn::optimiser::Optimiser;

use super::kept;
use super::optimiser::{Rates, check_momentum, default_rate};
use super::pass::{Engine, Measure};
use super::place::DensePlace;
use super::shape::{Head, Shape};
use crate::base::check_setting;
use crate::data::{Problem, Task, Values};
use crate::train::budget::Budget;
use crate::train::check::at_least_one;
use crate::{Error, Result};

/// Settings of the dense baseline: by default batches of 256 rows and 20 epochs of Adam at 0.001 a
/// level, and 10 % of the weights a round, back to the initial ones.
#[derive(Debug, Clone, PartialEq)]
pub struct ImpSettings {
    /// How the outputs come from the last hidden layer.
    pub head: Head,
    /// Epochs of each level.
    pub epochs: u32,
    /// Rows of a batch, in an order that is drawn for every epoch; 0 for all rows at once, in their
    /// order.
    pub batch: usize,
    /// Adam or SGD.
    pub optimiser: Optimiser,
    /// Step sizes and weight decay; none for the optimiser's default rate.
    pub rates: Option<Rates>,
    /// Share of the weights that a round drops, rounded down, but at least one weight; 1 drops all
    /// but s at once.
    pub prune: f64,
    /// Epoch of the first level whose start the weights are set back to; later levels train from
    /// there on.
    pub rewind: u32,
    /// Whether the s weights that are left are trained once more; if not, the result is the last level
    /// above s, pruned.
    pub retrain: bool,
    /// Whether bytes are taken as 0 to 255, as in the published setting, and not brought to the
    /// unit range first.
    pub raw: bool,
    /// Rows that are scored after every level.
    pub test: Option<Problem>,
    /// Whether mask and weights of every level are saved to a file of their own, in the folder of
    /// the checkpoints.
    pub keep_levels: bool,
    /// Where it is trained.
    pub place: DensePlace,
}

impl Default for ImpSettings {
    fn default() -> Self {
        Self {
            head: Head::Weights,
            epochs: 20,
            batch: 256,
            optimiser: Optimiser::Adam,
            rates: None,
            prune: 0.1,
            rewind: 0,
            retrain: true,
            raw: false,
            test: None,
            keep_levels: false,
            place: DensePlace::default(),
        }
    }
}

/// One level of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Level {
    /// Weights that it trained.
    pub(crate) nnz: usize,
    /// Steps of the optimiser up to its end, those of the levels before included.
    pub(crate) steps: u64,
    /// How good it is on the rows trained on, and on the test rows.
    pub(crate) train: Measure,
    pub(crate) test: Option<Measure>,
}

/// A run on a problem, checked.
#[derive(Debug)]
pub(crate) struct ImpJob<'a> {
    pub(crate) settings: &'a ImpSettings,
    pub(crate) rates: Rates,
    pub(crate) shape: Shape,
    pub(crate) task: Task,
    /// Weights that are left in the end, s, over all layers.
    pub(crate) nnz: usize,
    /// A power of two, so that it is folded into the first layer without rounding.
    pub(crate) input_scale: f32,
    pub(crate) seed: u64,
}

impl<'a> ImpJob<'a> {
    pub(crate) fn new(
        problem: &Problem,
        settings: &'a ImpSettings,
        budget: Budget,
        hidden: &[usize],
        seed: u64,
    ) -> Result<Self> {
        let &ImpSettings { head, epochs, optimiser, prune, rewind, .. } = settings;
        at_least_one("--epochs", epochs as usize, "leave --epochs out for 20")?;
        let d = problem.data.cols;
        if let Some(&wide) = [&[d][..], hidden].concat().iter().find(|&&width| width > MAX_INPUTS) {
            return Err(Error::new("a layer is too wide for a model")
                .expected(format_args!(
                    "at most {MAX_INPUTS} columns, and as many neurons of a layer (--hidden)"
                ))
                .got(wide)
                .help("leave out columns, or choose fewer neurons, such as 10 to 1000"));
        }
        if hidden.len() >= MAX_LAYERS {
            return Err(Error::new("too many layers for a model")
                .expected(format_args!("--hidden with at most {} layers", MAX_LAYERS - 1))
                .got(format_args!("{} layers", hidden.len()))
                .help("choose fewer layers"));
        }
        let outputs = problem.network_outputs();
        let shape = Shape::new(d, hidden, outputs, head)?;
        let nnz = budget.count(shape.weights(), 1)?;
        let rates = settings.rates.clone();
        let rates = rates.unwrap_or_else(|| Rates::constant(default_rate(&optimiser)));
        check_momentum(&optimiser)?;
        rates.check()?;
        let all = shape.weights();
        let expected = format!("--nnz 1 to {all}, the weights of the dense network");
        let help = "choose a fraction of all weights, such as a tenth";
        check_setting((1..=all).contains(&nnz), expected, nnz, help)?;
        let help = "leave --prune-fraction out for 0.1, or pass --one-shot to prune once";
        let holds = prune > 0.0 && prune <= 1.0;
        check_setting(holds, "--prune-fraction above 0 and at most 1", prune, help)?;
        if rewind >= epochs {
            return Err(Error::new("the epoch to go back to leaves nothing to train")
                .expected(format_args!("--rewind 0 to {}, less than --epochs", epochs - 1))
                .got(rewind)
                .help("raise --epochs, or leave --rewind out for the initial weights"));
        }
        let is_scaled = problem.data.is_bytes() && !settings.raw;
        let input_scale = if is_scaled { 1.0 / 256.0 } else { 1.0 };
        Ok(Self { settings, rates, shape, task: problem.task, nnz, input_scale, seed })
    }

    /// Weights of every level, from all to s.
    pub(crate) fn counts(&self) -> Vec<usize> {
        let mut counts = vec![self.shape.weights()];
        while let Some(&count) = counts.last()
            && count > self.nnz
        {
            let drop = ((count as f64 * self.settings.prune) as usize).max(1);
            counts.push(count.saturating_sub(drop).max(self.nnz));
        }
        counts
    }

    /// Bytes of a common dense implementation of this training: weights, their gradient and
    /// moments, and the activations of all layers for a batch of `rows` at most, in 32-bit floats.
    pub(crate) fn dense_bytes(&self, rows: usize) -> u64 {
        let moments = self.settings.optimiser.moments() as u64;
        let activations = self.shape.hidden().iter().sum::<usize>() + self.shape.outputs();
        let activations = self.rows(rows) as u64 * activations as u64;
        4 * (self.shape.weights() as u64 * (2 + moments) + activations)
    }

    /// Bytes that live from step to step: weights, those to go back to, those of the last level,
    /// moments, and a byte of the mask for each.
    pub(crate) fn state_bytes(&self) -> u64 {
        let moments = self.settings.optimiser.moments() as u64;
        self.shape.weights() as u64 * (4 * (3 + moments) + 1)
    }

    /// Bytes of all else that a run on these rows allocates.
    pub(crate) fn workspace_bytes(&self, problem: &Problem) -> u64 {
        let batch = self.rows(problem.data.rows);
        let floats = matches!(problem.data.values, Values::F32(_));
        let gather = !floats || batch < problem.data.rows || self.input_scale != 1.0;
        let all = Engine::bytes(&self.shape, self.task, batch, gather);
        // Never at the same time.
        let (optimiser, rows) = (self.settings.optimiser, problem.data.rows);
        all.max(kept::bytes(&self.shape, self.task, optimiser, [rows, batch]))
    }

    /// Rows of a batch of so many rows.
    pub(crate) fn rows(&self, rows: usize) -> usize {
        if self.settings.batch == 0 { rows } else { self.settings.batch.min(rows) }
    }
}
