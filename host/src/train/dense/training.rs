//! A network in training, with its weights, on the CPU or on a device.

use tamis::learn::optimiser::Optimiser;

use super::device::{DenseDevice, DenseTraining, Epoch, Setup, Trained, diverged};
use super::pass::Measure;
use super::shape::Shape;
use super::threads::Threads;
use crate::Result;
use crate::data::{Problem, Task};
use crate::operator::Stop;

/// A network in training.
pub(crate) struct Training {
    on: Box<dyn DenseTraining>,
    pub(crate) weights: Vec<f32>,
    /// Which weights are trained; the others keep their values.
    pub(crate) mask: Vec<bool>,
    /// Steps of the optimiser.
    pub(crate) steps: u64,
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
        Self::on(&Threads, weights, &Setup { shape, task, optimiser, batch, stop })
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
