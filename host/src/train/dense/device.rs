//! The seam of dense networks: where they are trained, and where their scores are computed.
//!
//! [`Threads`](super::Threads) does both on the CPU. Another crate may do them elsewhere, and says so once with
//! [`install`](super::install); what is trained, on which rows and in which order stands here and is the same
//! anywhere.

use std::fmt;
use std::ops::Range;

use tamis::base::rng::{Permutation, stream};
use tamis::learn::optimiser::Optimiser;

use super::pass::{Batch, Goal, Measure};
use super::shape::Shape;
use crate::data::{Problem, Task};
use crate::operator::Stop;
use crate::{Error, Result};

/// Stream of the orders of the rows, one per epoch.
const ORDER: u64 = stream::USER + (0xdf << 32);

/// Something that trains dense networks and differentiates them.
pub trait DenseDevice: fmt::Debug + Send + Sync {
    /// What it is called in reports.
    fn name(&self) -> &str;

    /// Memory for a network in training.
    ///
    /// # Errors
    /// There is no room for it.
    fn training(&self, setup: &Setup<'_>) -> Result<Box<dyn DenseTraining>>;

    /// The loss of a network on rows, and what the goal sums over them for each weight. Outputs of several
    /// classes are divided by `temperature` before the softmax.
    ///
    /// # Errors
    /// Labels that are no classes, no room, or a stop.
    fn pass(&self, on: &NetOnRows<'_>, goal: Goal<'_>, temperature: f32) -> Result<Passed>;
}

/// A network in training: what an optimiser remembers, and room for a batch.
pub trait DenseTraining {
    /// Forgets what the optimiser remembers.
    fn restart(&mut self);

    /// Forgets what the optimiser remembers of all weights but those of the mask.
    fn keep(&mut self, mask: &[bool]);

    /// One step for each batch of an epoch, all of which have the same set; the mean loss of the steps, each
    /// before it was taken. A stop is an error, and the weights are those of the last step then.
    ///
    /// # Errors
    /// A loss that is no finite number, labels that are no classes, or a stop.
    fn epoch(&mut self, net: Trained<'_>, of: &Epoch<'_>) -> Result<f64>;

    /// How good the network is on all rows of a set, with this factor of the inputs.
    ///
    /// # Errors
    /// Labels that are no classes, or a stop.
    fn measure(&mut self, weights: &[f32], set: &Problem, scale: f32) -> Result<Measure>;
}

/// A network that is to be trained.
pub struct Setup<'a> {
    /// Its layers.
    pub shape: &'a Shape,
    /// What its loss is: squared error, of several classes cross-entropy.
    pub task: Task,
    /// How a gradient becomes a step.
    pub optimiser: Optimiser,
    /// Rows of a batch, at most.
    pub batch: usize,
    /// Ends an epoch.
    pub stop: &'a Stop,
}

/// The numbers of a network in training.
pub struct Trained<'a> {
    /// Weights of all layers.
    pub weights: &'a mut [f32],
    /// Which of them are trained; the others keep their values.
    pub mask: &'a [bool],
    /// Steps that were taken.
    pub steps: &'a mut u64,
}

/// What a pass over rows gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Passed {
    /// The loss, and the rows whose class is right where it was the goal.
    pub measure: Measure,
    /// What the goal sums, a number for each weight; of the loss none.
    pub sum: Vec<f32>,
}

/// A dense MLP.
#[derive(Debug, Clone, Copy)]
pub struct DenseNet<'a> {
    /// Its layers.
    pub shape: &'a Shape,
    /// Weights of all layers, outputs×inputs each.
    pub weights: &'a [f32],
}

/// A dense MLP on the rows that it is scored by.
pub struct NetOnRows<'a> {
    /// The network.
    pub net: DenseNet<'a>,
    /// The rows.
    pub rows: Batch<'a>,
    /// Ends a computation within a tile.
    pub stop: &'a Stop,
    /// Where it is done.
    pub device: &'a dyn DenseDevice,
}

/// Adds to a gradient, given the weights.
pub type Penalty<'a> = dyn Fn(&[f32], &mut [f32]) + 'a;

/// The rows of an epoch, and the steps on them.
pub struct Epoch<'a> {
    /// The rows.
    pub set: &'a Problem,
    /// Positions in the order of the epoch: all, or a share of it.
    pub rows: Range<usize>,
    /// Factor of the inputs.
    pub scale: f32,
    /// Rows of a batch, in an order that is drawn where there are several batches.
    pub batch: usize,
    /// Seed of the order.
    pub seed: u64,
    /// Of all epochs with this seed, for an order of its own.
    pub number: u64,
    /// Size of the steps.
    pub rate: f32,
    /// First steps of the training, over which the rate rises linearly.
    pub warmup: u64,
    /// Adds so much of each weight to its derivative.
    pub decay: f32,
    /// Adds to the gradient that of a penalty on the weights.
    pub penalty: Option<&'a Penalty<'a>>,
}

impl<'a> Epoch<'a> {
    /// Size of a step of the training, counted from 0.
    #[must_use]
    pub fn rate_of(&self, step: u64) -> f32 {
        let grown = (step + 1) as f32 / self.warmup.max(1) as f32;
        self.rate * grown.min(1.0)
    }

    /// The rows of each step.
    pub fn batches(&self) -> impl Iterator<Item = Batch<'a>> + use<'a> {
        let &Epoch { set, ref rows, scale, batch, seed, number, .. } = self;
        let n = set.data.rows;
        let order = (batch < n).then(|| Permutation::new(seed, ORDER + number, n));
        let end = rows.end;
        rows.clone().step_by(batch).map(move |start| {
            let rows = start..(start + batch).min(end);
            Batch { set, rows, order, scale }
        })
    }
}

/// The loss is no finite number any more.
#[must_use]
pub fn diverged(loss: f64) -> Error {
    Error::new("training diverged: the loss is no finite number any more")
        .expected("a finite loss")
        .got(loss)
        .help("lower --rate, or scale inputs and labels to about 1")
}
