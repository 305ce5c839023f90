//! Dense networks on the CPU.

use super::device::{
    DenseDevice, DenseTraining, Epoch, NetOnRows, Passed, Setup, Trained, diverged,
};
use super::optimiser::State;
use super::pass::{Batch, Engine, Goal, Measure};
use crate::Result;
use crate::data::Problem;

/// The CPU.
#[derive(Debug, Clone, Copy, Default)]
pub struct Threads;

impl DenseDevice for Threads {
    fn name(&self) -> &str {
        "cpu"
    }

    fn training(&self, setup: &Setup<'_>) -> Result<Box<dyn DenseTraining>> {
        let &Setup { shape, task, optimiser, batch, stop } = setup;
        Ok(Box::new(OnThreads {
            engine: Engine::new(shape, task, batch, stop),
            state: State::new(optimiser, shape.weights()),
        }))
    }

    fn pass(&self, on: &NetOnRows<'_>, goal: Goal<'_>, temperature: f32) -> Result<Passed> {
        let rows = &on.rows;
        let mut engine = Engine::new(on.net.shape, rows.set.task, rows.rows.len(), on.stop);
        engine.temperature = temperature;
        let measure = engine.pass(on.net.weights, rows, goal)?;
        let sum = if matches!(goal, Goal::Loss) { Vec::new() } else { engine.into_sum() };
        Ok(Passed { measure, sum })
    }
}

struct OnThreads {
    engine: Engine,
    state: State,
}

impl DenseTraining for OnThreads {
    fn restart(&mut self) {
        self.state.reset();
    }

    fn keep(&mut self, mask: &[bool]) {
        self.state.keep(mask);
    }

    fn epoch(&mut self, net: Trained<'_>, of: &Epoch<'_>) -> Result<f64> {
        let Trained { weights, mask, steps } = net;
        let mut sum = 0.0;
        for batch in of.batches() {
            let share = batch.rows.len() as f64 / of.rows.len() as f64;
            let loss = self.engine.pass(weights, &batch, Goal::Gradient)?.loss;
            if !loss.is_finite() {
                return Err(diverged(loss));
            }
            sum += loss * share;
            if let Some(penalty) = of.penalty {
                penalty(weights, self.engine.sum_mut());
            }
            let rate = of.rate_of(*steps);
            self.state.step(rate, of.decay, weights, self.engine.sum(), mask);
            *steps += 1;
        }
        Ok(sum)
    }

    fn measure(&mut self, weights: &[f32], set: &Problem, scale: f32) -> Result<Measure> {
        let batch = Batch { set, rows: 0..set.data.rows, order: None, scale };
        self.engine.pass(weights, &batch, Goal::Loss)
    }
}
