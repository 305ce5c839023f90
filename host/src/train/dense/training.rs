//! Epochs of an optimiser on the weights of a mask.

use std::ops::Range;

use tamis::base::rng::{Permutation, stream};
use tamis::learn::optimiser::Optimiser;

use super::optimiser::State;
use super::pass::{Batch, Engine, Goal, Measure};
use super::shape::Shape;
use crate::data::{Problem, Task};
use crate::operator::Stop;
use crate::{Error, Result};

/// Stream of the orders of the rows, one per epoch.
const ORDER: u64 = stream::USER + (0xdf << 32);

/// Adds to a gradient, given the weights.
pub(crate) type Penalty<'a> = dyn Fn(&[f32], &mut [f32]) + 'a;

/// A network in training.
pub(crate) struct Training {
    engine: Engine,
    state: State,
    pub(crate) weights: Vec<f32>,
    /// Which weights are trained; the others keep their values.
    pub(crate) mask: Vec<bool>,
    /// Steps of the optimiser.
    pub(crate) steps: u64,
}

/// The rows of an epoch, and the steps on them.
pub(crate) struct Epoch<'a> {
    pub(crate) set: &'a Problem,
    /// Positions in the order of the epoch: all, or a share of it.
    pub(crate) rows: Range<usize>,
    /// Factor of the inputs.
    pub(crate) scale: f32,
    /// Rows of a batch, in an order that is drawn where there are several batches.
    pub(crate) batch: usize,
    pub(crate) seed: u64,
    /// Of all epochs with this seed, for an order of its own.
    pub(crate) number: u64,
    pub(crate) rate: f32,
    pub(crate) decay: f32,
    /// Adds to the gradient that of a penalty on the weights.
    pub(crate) penalty: Option<&'a Penalty<'a>>,
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
    ) -> Self {
        Self {
            engine: Engine::new(shape, task, batch, stop),
            state: State::new(optimiser, weights.len()),
            mask: vec![true; weights.len()],
            weights,
            steps: 0,
        }
    }

    /// Forgets what the optimiser remembers.
    pub(crate) fn restart(&mut self) {
        self.state.reset();
    }

    /// Trains these weights of the mask from now on; those that were dropped are 0.
    pub(crate) fn prune(&mut self, weights: Vec<f32>, mask: Vec<bool>) {
        self.state.keep(&mask);
        (self.weights, self.mask) = (weights, mask);
    }

    /// One pass over all batches of these rows; the mean loss of its steps, each before it was taken.
    pub(crate) fn epoch(&mut self, of: &Epoch<'_>) -> Result<f64> {
        let &Epoch { set, ref rows, scale, batch: size, seed, number, rate, decay, penalty } = of;
        let n = set.data.rows;
        let order = (size < n).then(|| Permutation::new(seed, ORDER + number, n));
        let mut sum = 0.0;
        for start in rows.clone().step_by(size) {
            let own = start..(start + size).min(rows.end);
            let share = own.len() as f64 / rows.len() as f64;
            let batch = Batch { set, rows: own, order, scale };
            let loss = self.engine.pass(&self.weights, &batch, Goal::Gradient)?.loss;
            if !loss.is_finite() {
                return Err(diverged(loss));
            }
            sum += loss * share;
            if let Some(penalty) = penalty {
                penalty(&self.weights, self.engine.sum_mut());
            }
            self.state.step(rate, decay, &mut self.weights, self.engine.sum(), &self.mask);
            self.steps += 1;
        }
        Ok(sum)
    }

    /// How good the network is on all rows of a set, with this factor of the inputs.
    pub(crate) fn measure(&mut self, set: &Problem, scale: f32) -> Result<Measure> {
        let batch = Batch { set, rows: 0..set.data.rows, order: None, scale };
        let measure = self.engine.pass(&self.weights, &batch, Goal::Loss)?;
        if measure.loss.is_finite() { Ok(measure) } else { Err(diverged(measure.loss)) }
    }
}

pub(super) fn diverged(loss: f64) -> Error {
    Error::new("training diverged: the loss is no finite number any more")
        .expected("a finite loss")
        .got(loss)
        .help("lower --rate, or scale inputs and labels to about 1")
}
