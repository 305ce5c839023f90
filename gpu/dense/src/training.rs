//! Steps of Adam and of SGD with momentum on a device, as [`tamis_host`] takes them.

use burn_tensor::{Device, Tensor};
use tamis::learn::optimiser::Optimiser;
use tamis_host::data::{Problem, Task};
use tamis_host::operator::Stop;
use tamis_host::train::dense::{
    Batch, DenseTraining, Epoch, Measure, Setup, Shape, Trained, diverged,
};
use tamis_host::{Error, Result};

use crate::error::failed;
use crate::network::{Network, add, tensors};
use crate::rows::Held;

/// Adam's memory of gradients, of their squares, and what is added to the root.
const BETAS: (f32, f32) = (0.9, 0.999);
const EPSILON: f32 = 1e-8;
/// Steps after which the device is waited for: what is queued must not grow without end.
const QUEUED: u64 = 256;

/// What is multiplied to a layer's gradient, and what its optimiser remembers.
struct LayerState {
    first: Tensor<2>,
    /// Of Adam alone.
    second: Option<Tensor<2>>,
}

/// Sizes of a step, and of the weights' share in it.
#[derive(Clone, Copy)]
struct Sizes {
    rate: f32,
    decay: f32,
}

/// A network in training.
pub(crate) struct Training {
    shape: Shape,
    task: Task,
    optimiser: Optimiser,
    device: Device,
    stop: Stop,
    state: Vec<LayerState>,
    steps: i32,
    /// The rows of the first epoch, which are those of all.
    held: Option<Held>,
}

impl Training {
    pub(crate) fn new(setup: &Setup<'_>, device: &Device) -> Self {
        let &Setup { shape, task, optimiser, stop, .. } = setup;
        let mut new = Self {
            shape: shape.clone(),
            task,
            optimiser,
            device: device.clone(),
            stop: stop.clone(),
            state: Vec::new(),
            steps: 0,
            held: None,
        };
        new.restart();
        new
    }

    /// One step along the gradients of all layers.
    fn step(
        &mut self,
        weights: &mut [Tensor<2>],
        gradients: Vec<Tensor<2>>,
        mask: &[Tensor<2>],
        Sizes { rate: size, decay }: Sizes,
    ) {
        self.steps = self.steps.saturating_add(1);
        let (b1, b2) = BETAS;
        let unbias = |beta: f32| 1.0 - f64::from(beta).powi(self.steps);
        let rate = (f64::from(size) / unbias(b1)) as f32;
        let root = (1.0 / unbias(b2).sqrt()) as f32;
        let layers = weights.iter_mut().zip(gradients).zip(mask).zip(&mut self.state);
        for (((w, g), mask), state) in layers {
            let g = if decay == 0.0 { g } else { g + w.clone().mul_scalar(decay) };
            let g = g * mask.clone();
            let first = state.first.clone();
            let step = match (self.optimiser, &mut state.second) {
                (Optimiser::Adam, Some(second)) => {
                    state.first = first.mul_scalar(b1) + g.clone().mul_scalar(1.0 - b1);
                    let square = g.square().mul_scalar(1.0 - b2);
                    *second = second.clone().mul_scalar(b2) + square;
                    let size = second.clone().sqrt().mul_scalar(root).add_scalar(EPSILON);
                    state.first.clone().mul_scalar(rate) / size
                }
                (Optimiser::Sgd { momentum }, _) => {
                    state.first = first.mul_scalar(momentum) + g;
                    state.first.clone().mul_scalar(size)
                }
                // Adam has both from the start.
                (Optimiser::Adam, None) => continue,
            };
            *w = w.clone() - step;
        }
    }
}

impl DenseTraining for Training {
    fn restart(&mut self) {
        let zeros = vec![0.0; self.shape.weights()];
        let zeros = || tensors(&self.shape, &zeros, &self.device);
        let has_second = self.optimiser.moments() > 1;
        let layer = |(first, second)| LayerState { first, second: has_second.then_some(second) };
        self.state = zeros().into_iter().zip(zeros()).map(layer).collect();
        self.steps = 0;
    }

    fn keep(&mut self, mask: &[bool]) {
        let mask = as_numbers(&self.shape, mask, &self.device);
        for (state, mask) in self.state.iter_mut().zip(mask) {
            state.first = state.first.clone() * mask.clone();
            state.second = state.second.take().map(|second| second * mask);
        }
    }

    fn epoch(&mut self, net: Trained<'_>, of: &Epoch<'_>) -> Result<f64> {
        if of.penalty.is_some() {
            return Err(Error::new("penalties are for the CPU").help("leave --device out"));
        }
        let (shape, device) = (self.shape.clone(), self.device.clone());
        let held = match self.held.take() {
            Some(held) => held,
            None => Held::new(of.set, of.scale, &shape, &device)?,
        };
        let mask = as_numbers(&shape, net.mask, &device);
        let mut network = Network::new(&shape, self.task, net.weights, 1.0, &device);
        let mut sum = Tensor::<1>::zeros([1], &device);
        let mut done = 0;
        let mut stopped = false;
        for batch in of.batches() {
            if self.stop.asked() {
                stopped = true;
                break;
            }
            let n = batch.rows.len();
            let (scale, terms) = (network.scale(n), network.terms(n));
            let mut gradients: Option<Vec<Tensor<2>>> = None;
            for tile in held.tiles(&batch) {
                let acts = network.forward(tile.x);
                let residual = network.residual(&acts, tile.y);
                let share = n as f64 / of.rows.len() as f64 / terms;
                sum = sum + residual.loss.mul_scalar(share as f32);
                let own = network.gradient(&acts, residual.values, scale);
                gradients = Some(match gradients {
                    None => own,
                    Some(all) => add(all, own),
                });
            }
            let sizes = Sizes { rate: of.rate_of(*net.steps + done), decay: of.decay };
            self.step(&mut network.weights, gradients.unwrap_or_default(), &mask, sizes);
            done += 1;
            if done % QUEUED == 0 {
                device.sync().map_err(|error| failed(&device, error))?;
            }
        }
        let loss = network.number(sum)?;
        let weights = std::mem::take(&mut network.weights);
        net.weights.copy_from_slice(&network.flat(weights)?);
        *net.steps += done;
        self.held = Some(held);
        match loss.is_finite() {
            _ if stopped => Err(Error::interrupted()),
            true => Ok(loss),
            false => Err(diverged(loss)),
        }
    }

    fn measure(&mut self, weights: &[f32], set: &Problem, scale: f32) -> Result<Measure> {
        let network = Network::new(&self.shape, self.task, weights, 1.0, &self.device);
        let batch = Batch { set, rows: 0..set.data.rows, order: None, scale };
        network.measure(&batch, &self.stop)
    }
}

/// A mask as numbers: 1 for what it has.
fn as_numbers(shape: &Shape, mask: &[bool], device: &Device) -> Vec<Tensor<2>> {
    let numbers: Vec<f32> = mask.iter().map(|&own| f32::from(u8::from(own))).collect();
    tensors(shape, &numbers, device)
}
