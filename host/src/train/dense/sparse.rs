//! Levels of few weights: trained as the sparse network that they are, which takes time and memory
//! with the weights that are left, not with those of the dense network.

use std::ops::ControlFlow;

use tamis::base::rng::seed_of;
use tamis::learn::deep::Stack;
use tamis::learn::loss::Labels;
use tamis::learn::masked::{self, Params};
use tamis::network::gates::Signs;
use tamis::network::weights::Weights;

use super::job::ImpJob;
use super::shape::{Head, Layer};
use super::training::{ORDER, diverged};
use crate::data::{Problem, Task};
use crate::operator::Stop;
use crate::train::check::classes_of;
use crate::train::masked::Engine;
use crate::{Error, Result};

/// Weights of a dense network for each that is left, from which on a level is trained so.
const DENSE: usize = 6;

/// A level to train.
pub(super) struct Level<'a> {
    pub(super) set: &'a Problem,
    pub(super) job: &'a ImpJob<'a>,
    /// Its number, for an order of the rows of its own.
    pub(super) number: usize,
    pub(super) mask: &'a [bool],
    pub(super) stop: &'a Stop,
}

impl Level<'_> {
    /// Whether so few weights are left that this is faster, in every layer at least one.
    pub(super) fn is_sparse(&self) -> bool {
        let kept = |layer: Layer| self.mask[layer.range].iter().filter(|&&kept| kept).count();
        let kept: Vec<usize> = self.job.shape.layers().map(kept).collect();
        let all = kept.iter().sum::<usize>().saturating_mul(DENSE);
        all <= self.mask.len() && !kept.contains(&0)
    }

    /// Trains the weights of the mask; the steps. `observe` hears of the epochs done and of the loss.
    pub(super) fn train(
        &self,
        weights: &mut [f32],
        observe: &mut dyn FnMut(u32, f64) -> bool,
    ) -> Result<u64> {
        let &Self { set, job, number, mask, stop } = self;
        let (settings, rates) = (job.settings, &job.rates);
        let layers: Vec<Sparse> =
            job.shape.layers().map(|layer| Sparse::new(layer, mask, job.shape.head)).collect();
        let nnz = layers.iter().map(|layer| layer.places.len()).sum();
        let (mut index, mut value) = (vec![0; nnz], vec![0.0; nnz]);
        let mut stack = Stack::new(job.shape.inputs(), &mut index, &mut value);
        for layer in &layers {
            let own: Vec<f32> = layer.places.iter().map(|&at| weights[at]).collect();
            let of = Weights::new(layer.width, layer.neurons, &layer.index, &own)?;
            if layer.is_end { stack.end_weights(of)? } else { stack.push(of, Signs::Positive)? }
        }
        if job.shape.head == Head::Sum {
            stack.end_sum(&[])?;
        }
        let classes = classes_of(set.task, &set.labels);
        let labels = match set.task {
            Task::Multiclass => Labels::classes(&classes, job.shape.outputs()),
            _ => Labels::values(&set.labels),
        };
        let mut engine = Engine::new(&set.data, job.input_scale, labels, &stack, stop)?;
        let first = settings.rewind;
        let falls: Vec<u32> =
            rates.falls.iter().filter(|&&at| at > first).map(|at| at - first).collect();
        let params = Params {
            epochs: settings.epochs - first,
            batch: job.rows(set.data.rows),
            optimiser: settings.optimiser,
            rate: rates.at(first),
            warmup: 0,
            falls: &falls,
            factor: rates.factor,
            decay: rates.decay,
            fixed: &[],
            seed: seed_of(job.seed, ORDER, number as u32),
        };
        let mut memory = vec![0; masked::words(nnz, settings.optimiser)];
        let done = masked::run(&mut engine, &mut stack, &params, &mut memory, |progress| {
            let goes_on = observe(first + progress.epoch - 1, f64::from(progress.loss));
            if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        let done = done.map_err(|error| match error {
            tamis::Error::Diverged { .. } => diverged(f64::NAN),
            tamis::Error::Stopped => Error::interrupted(),
            error => error.into(),
        })?;
        if done.stopped {
            return Err(Error::interrupted());
        }
        let places = layers.iter().flat_map(|layer| &layer.places);
        places.zip(stack.values()).for_each(|(&at, &w)| weights[at] = w);
        Ok(done.steps.into())
    }
}

/// The weights of a layer as a [`Stack`] has them: row by row of the outputs, and of the last layer
/// row by row of the neurons below it.
struct Sparse {
    width: usize,
    neurons: usize,
    is_end: bool,
    index: Vec<u32>,
    /// Where each lies among all weights of the network.
    places: Vec<usize>,
}

impl Sparse {
    fn new(layer: Layer, mask: &[bool], head: Head) -> Self {
        let Layer { inputs, outputs, range, relu } = layer;
        let is_end = !relu && head == Head::Weights;
        let (width, neurons) = if is_end { (outputs, inputs) } else { (inputs, outputs) };
        let start = range.start;
        let kept = range.filter(|&at| mask[at]);
        let flat = |at: usize| match (at - start) / inputs {
            output if is_end => (at - start) % inputs * outputs + output,
            _ => at - start,
        };
        let mut entries: Vec<(u32, usize)> = kept.map(|at| (flat(at) as u32, at)).collect();
        entries.sort_unstable();
        let (index, places) = entries.into_iter().unzip();
        Self { width, neurons, is_end, index, places }
    }
}
