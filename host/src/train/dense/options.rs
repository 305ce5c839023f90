//! The settings of a run, and the memory that they lead to.

use serde::{Deserialize, Serialize};

use super::optimiser::{Optimiser, Rates};
use super::pass::{Engine, Measure, labels_of};
use super::shape::Shape;
use crate::base::check_setting;
use crate::data::{Matrix, Problem, Task, Values};
use crate::{Error, Result};

/// One level of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Weights that it trained.
    pub nnz: usize,
    /// Steps of the optimiser up to its end, those of the levels before included.
    pub steps: u64,
    /// How good it is on the rows trained on.
    pub train: Measure,
    /// On the other rows, where there are some.
    pub test: Option<Measure>,
}

/// How to train and prune.
#[derive(Debug, Clone, PartialEq)]
pub struct ImpOptions {
    /// The dense network.
    pub shape: Shape,
    /// What is learnt.
    pub task: Task,
    /// Weights that are left in the end, s, over all layers.
    pub nnz: usize,
    /// Epochs of each level.
    pub epochs: u32,
    /// Rows of a batch, in an order that is drawn for every epoch; 0 for all rows at once, in their
    /// order.
    pub batch: usize,
    /// How a gradient becomes a step.
    pub optimiser: Optimiser,
    /// Step sizes and weight decay.
    pub rates: Rates,
    /// Fraction of the weights that a round drops, rounded down, but at least one weight; 1 drops
    /// all but s at once.
    pub part: f64,
    /// Epoch of the first level whose start the weights are set back to; later levels train from
    /// there on. 0 is the initial weights.
    pub rewind: u32,
    /// Factor of the inputs, a power of two so that it can be folded into the first layer without
    /// rounding.
    pub input_scale: f32,
    /// Seed of initial weights and orders.
    pub seed: u64,
}

impl ImpOptions {
    /// The published recipe of pruning, 10 % a round back to the initial weights, with Adam at
    /// 0.001 on all rows at once.
    #[must_use]
    pub fn new(shape: Shape, task: Task, nnz: usize) -> Self {
        Self {
            shape,
            task,
            nnz,
            epochs: 15,
            batch: 0,
            optimiser: Optimiser::Adam,
            rates: Rates::constant(0.001),
            part: 0.1,
            rewind: 0,
            input_scale: 1.0,
            seed: 0,
        }
    }

    /// Weights of every level, from all to s.
    #[must_use]
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![self.shape.weights()];
        while let Some(&count) = counts.last()
            && count > self.nnz
        {
            let drop = ((count as f64 * self.part) as usize).max(1);
            counts.push(count.saturating_sub(drop).max(self.nnz));
        }
        counts
    }

    /// Bytes of a common dense implementation of this training: weights, their gradient and
    /// moments, and the activations of all layers for a batch of `rows` at most, in 32-bit floats.
    #[must_use]
    pub fn dense_bytes(&self, rows: usize) -> u64 {
        let weights = self.shape.weights() as u64 * (2 + self.optimiser.moments() as u64);
        let acts = self.shape.hidden().iter().sum::<usize>() + self.shape.outputs();
        4 * (weights + self.rows(rows) as u64 * acts as u64)
    }

    /// Bytes that live from step to step: weights, those to go back to, those of the last level,
    /// moments, and a byte of the mask for each.
    #[must_use]
    pub fn state_bytes(&self) -> u64 {
        self.shape.weights() as u64 * (4 * (3 + self.optimiser.moments() as u64) + 1)
    }

    /// Bytes of all else that a run on these rows allocates itself: gradients and activations of
    /// each group, and its rows where they are not used as they lie.
    #[must_use]
    pub fn workspace_bytes(&self, data: &Matrix) -> u64 {
        let batch = self.rows(data.rows);
        let floats = matches!(data.values, Values::F32(_));
        let gather = !floats || batch < data.rows || self.input_scale != 1.0;
        Engine::<f32>::bytes(&self.shape, self.task, batch, gather)
    }

    /// Rows of a batch of a set.
    pub(super) fn rows(&self, rows: usize) -> usize {
        if self.batch == 0 { rows } else { self.batch.min(rows) }
    }

    /// Checks the settings, as flags of the command line.
    ///
    /// # Errors
    /// One is out of bounds.
    pub fn check(&self) -> Result<()> {
        self.optimiser.check()?;
        self.rates.check()?;
        let all = self.shape.weights();
        let expected = format!("--nnz 1 to {all}, the weights of the dense network");
        let help = "choose a fraction of all weights, such as a tenth";
        check_setting((1..=all).contains(&self.nnz), expected, self.nnz, help)?;
        let help = "leave --prune-part out for 0.1, or pass --one-shot to prune once";
        let holds = self.part > 0.0 && self.part <= 1.0;
        check_setting(holds, "--prune-part above 0 and at most 1", self.part, help)?;
        if self.rewind >= self.epochs {
            return Err(Error::new("the epoch to go back to leaves nothing to train")
                .expected(format_args!(
                    "--rewind 0 to {}, less than --epochs",
                    self.epochs.saturating_sub(1)
                ))
                .got(self.rewind)
                .help("raise --epochs, or leave --rewind out for the initial weights"));
        }
        Ok(())
    }

    /// Checks that rows and labels are such as the network takes.
    pub(super) fn check_set(&self, set: &Problem) -> Result<()> {
        let (shape, rows) = (&self.shape, set.data.rows);
        let width = labels_of(shape, self.task);
        let wrong = |what: &str, expected: usize, got: usize| {
            let error = Error::new(format!("the {what} do not fit the network"))
                .expected(expected)
                .got(got);
            Err(error.help("pass samples and labels such as the network was made for"))
        };
        if rows == 0 || set.data.cols != shape.inputs() {
            return wrong("columns of the samples", shape.inputs(), set.data.cols);
        }
        if set.labels.len() != rows * width {
            return wrong("labels", rows * width, set.labels.len());
        }
        if self.task == Task::Multiclass
            && let Some(label) = set.labels.iter().find(|&&label| {
                !(label >= 0.0
                    && label.fract() == 0.0
                    && label < shape.outputs().min(1 << 16) as f32)
            })
        {
            return Err(Error::new("a label is none of the network's classes")
                .expected(format_args!("whole numbers from 0 to {}", shape.outputs() - 1))
                .got(label)
                .help("pass labels of the classes that the network was made for"));
        }
        Ok(())
    }
}
