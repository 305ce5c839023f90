//! Epochs of an optimiser on the weights of a mask.

use std::ops::Range;

use tamis::base::rng::{Permutation, stream};
use tamis::learn::optimiser::Optimiser;

use super::device::{DenseDevice, DenseTraining, Setup, Trained, diverged};
use super::pass::{Batch, Measure};
use super::shape::Shape;
use crate::Result;
use crate::data::{Problem, Task};
use crate::operator::Stop;

/// Stream of the orders of the rows, one per epoch.
const ORDER: u64 = stream::USER + (0xdf << 32);

/// Adds to a gradient, given the weights.
pub type Penalty<'a> = dyn Fn(&[f32], &mut [f32]) + 'a;

/// A network in training.
pub(crate) struct Training {
    on: Box<dyn DenseTraining>,
    pub(crate) weights: Vec<f32>,
    /// Which weights are trained; the others keep their values.
    pub(crate) mask: Vec<bool>,
    /// Steps of the optimiser.
    pub(crate) steps: u64,
}

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
    /// Adds so much of each weight to its derivative.
    pub decay: f32,
    /// Adds to the gradient that of a penalty on the weights.
    pub penalty: Option<&'a Penalty<'a>>,
}

impl<'a> Epoch<'a> {
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

impl Training {
    /// For batches of at most `batch` rows; `stop` ends an epoch within a tile.
    pub(crate) fn new(
        shape: &Shape,
        weights: Vec<f32>,
        optimiser: Optimiser,
        task: Task,
        batch: usize,
        stop: &Stop,
    ) -> Result<Self> {
        Self::on(&super::device::Threads, weights, &Setup { shape, task, optimiser, batch, stop })
    }

    /// On a device.
    pub(crate) fn on(
        device: &dyn DenseDevice,
        weights: Vec<f32>,
        setup: &Setup<'_>,
    ) -> Result<Self> {
        let on = device.training(setup)?;
        Ok(Self { on, mask: vec![true; weights.len()], weights, steps: 0 })
    }

    /// Forgets what the optimiser remembers.
    pub(crate) fn restart(&mut self) {
        self.on.restart();
    }

    /// Trains these weights of the mask from now on; those that were dropped are 0.
    pub(crate) fn prune(&mut self, weights: Vec<f32>, mask: Vec<bool>) {
        self.on.keep(&mask);
        (self.weights, self.mask) = (weights, mask);
    }

    /// One pass over all batches of these rows; the mean loss of its steps, each before it was taken.
    pub(crate) fn epoch(&mut self, of: &Epoch<'_>) -> Result<f64> {
        let Self { on, weights, mask, steps } = self;
        on.epoch(Trained { weights, mask, steps }, of)
    }

    /// How good the network is on all rows of a set, with this factor of the inputs.
    pub(crate) fn measure(&mut self, set: &Problem, scale: f32) -> Result<Measure> {
        let measure = self.on.measure(&self.weights, set, scale)?;
        if measure.loss.is_finite() { Ok(measure) } else { Err(diverged(measure.loss)) }
    }
}
