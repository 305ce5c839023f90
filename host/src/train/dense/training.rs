//! Epochs of an optimiser on the weights of a mask.

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

/// A network in training.
pub(super) struct Training {
    engine: Engine,
    state: State,
    pub(super) weights: Vec<f32>,
    /// Which weights are trained; the others keep their values.
    pub(super) mask: Vec<bool>,
    /// Steps of the optimiser.
    pub(super) steps: u64,
}

/// The rows of an epoch, and the steps on them.
pub(super) struct Epoch<'a> {
    pub(super) set: &'a Problem,
    /// Factor of the inputs.
    pub(super) scale: f32,
    /// Rows of a batch, in an order that is drawn where there are several batches.
    pub(super) batch: usize,
    pub(super) seed: u64,
    /// Of all epochs with this seed, for an order of its own.
    pub(super) number: u64,
    pub(super) rate: f32,
    pub(super) decay: f32,
}

impl Training {
    /// For batches of at most `batch` rows; `stop` ends an epoch within a tile.
    pub(super) fn new(
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
    pub(super) fn restart(&mut self) {
        self.state.reset();
    }

    /// One pass over all batches; the mean loss of its steps, each before it was taken.
    pub(super) fn epoch(&mut self, of: &Epoch<'_>) -> Result<f64> {
        let &Epoch { set, scale, batch: size, seed, number, rate, decay } = of;
        let n = set.data.rows;
        let order = (size < n).then(|| Permutation::new(seed, ORDER + number, n));
        let mut sum = 0.0;
        for start in (0..n).step_by(size) {
            let rows = start..(start + size).min(n);
            let share = rows.len() as f64 / n as f64;
            let batch = Batch { set, rows, order, scale };
            let loss = self.engine.pass(&self.weights, &batch, Goal::Gradient)?.loss;
            if !loss.is_finite() {
                return Err(diverged(loss));
            }
            sum += loss * share;
            self.state.step(rate, decay, &mut self.weights, self.engine.sum(), &self.mask);
            self.steps += 1;
        }
        Ok(sum)
    }

    /// How good the network is on all rows of a set, with this factor of the inputs.
    pub(super) fn measure(&mut self, set: &Problem, scale: f32) -> Result<Measure> {
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
