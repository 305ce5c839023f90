//! Dense networks on the CPU.

use super::device::{
    DenseDevice, DenseTraining, Epoch, NetOnRows, Passed, Setup, Trained, diverged,
};
use super::kept::{Kept, few};
use super::optimiser::State;
use super::pass::{Batch, Engine, Goal, Measure};
use super::shape::Shape;
use crate::Result;
use crate::data::{Problem, Task};
use crate::operator::Stop;

/// The CPU.
#[derive(Debug, Clone, Copy, Default)]
pub struct Threads;

impl DenseDevice for Threads {
    fn name(&self) -> &str {
        "cpu"
    }

    fn training(&self, setup: &Setup<'_>) -> Result<Box<dyn DenseTraining>> {
        let &Setup { shape, task, optimiser, batch, stop } = setup;
        let (shape, stop) = (shape.clone(), stop.clone());
        let state = State::new(optimiser, shape.weights());
        let products = Products { shape, task, batch, stop, engine: None };
        Ok(Box::new(OnThreads { products, state }))
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
    products: Products,
    state: State,
}

/// The products of all weights, in memory that is given back while few are trained.
struct Products {
    shape: Shape,
    task: Task,
    batch: usize,
    stop: Stop,
    engine: Option<Engine>,
}

impl Products {
    fn engine(&mut self) -> &mut Engine {
        let Self { shape, task, batch, stop, engine } = self;
        engine.get_or_insert_with(|| Engine::new(shape, *task, *batch, stop))
    }
}

impl DenseTraining for OnThreads {
    fn restart(&mut self) {
        self.state.reset();
    }

    fn keep(&mut self, mask: &[bool]) {
        self.state.keep(mask);
    }

    fn epoch(&mut self, net: Trained<'_>, of: &Epoch<'_>) -> Result<f64> {
        let Self { products, state } = self;
        let shape = &products.shape;
        if of.penalty.is_none()
            && let Some(count) = few(shape, net.weights, net.mask, of.batch)
        {
            products.engine = None;
            let kept = Kept::of(shape, net.weights, net.mask, count);
            return kept.epoch(net, state, of, &products.stop);
        }
        let engine = products.engine();
        let Trained { weights, mask, steps } = net;
        let mut sum = 0.0;
        for batch in of.batches() {
            let share = batch.rows.len() as f64 / of.rows.len() as f64;
            let loss = engine.pass(weights, &batch, Goal::Gradient)?.loss;
            if !loss.is_finite() {
                return Err(diverged(loss));
            }
            sum += loss * share;
            if let Some(penalty) = of.penalty {
                penalty(weights, engine.sum_mut());
            }
            let rate = of.rate_of(*steps);
            state.step(rate, of.decay, weights, engine.sum(), mask);
            *steps += 1;
        }
        Ok(sum)
    }

    fn measure(&mut self, weights: &[f32], set: &Problem, scale: f32) -> Result<Measure> {
        let batch = Batch { set, rows: 0..set.data.rows, order: None, scale };
        self.products.engine().pass(weights, &batch, Goal::Loss)
    }
}
