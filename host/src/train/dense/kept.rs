//! Epochs of a network with few weights left: the sparse products of these in place of those of all.

use std::ops::Range;

use tamis::infer::model::MAX_LAYERS;
use tamis::learn::deep::Stack;
use tamis::learn::deep::backprop::{Backprop, Batch};
use tamis::learn::loss::Labels;
use tamis::learn::optimiser::Optimiser;
use tamis::network::gates::Signs;
use tamis::network::weights::Weights;

use super::device::{Epoch, Trained, diverged};
use super::optimiser::State;
use super::pass::GROUPS;
use super::shape::{Head, Layer, Shape};
use crate::Result;
use crate::data::Task;
use crate::operator::Stop;
use crate::operator::backprop::{Engine, MOST_NEURONS, strip_bytes};
use crate::operator::lanes::LANES;

/// Share of all weights up to which the products of these alone take less time, in batches that fill their strips.
const FEW: f64 = 0.5;

/// Strips of rows that go through the network at once, at most: as many as groups of all products.
fn strips(batch: usize) -> usize {
    batch.div_ceil(LANES).clamp(1, GROUPS)
}

/// The most weights that are few.
fn most(shape: &Shape, batch: usize) -> usize {
    let filled = batch as f64 / batch.next_multiple_of(LANES).max(1) as f64;
    (shape.weights() as f64 * FEW * filled) as usize
}

/// How many weights of a network are trained, or not 0, where these are few and sparse layers can be made of them.
pub(super) fn few(shape: &Shape, weights: &[f32], mask: &[bool], batch: usize) -> Option<usize> {
    let layers = shape.layers().len() + usize::from(shape.head == Head::Sum);
    let widest = shape.inputs().max(shape.widest());
    let count = || (0..weights.len()).filter(|&at| is_kept(weights, mask, at)).count();
    let can_be = layers <= MAX_LAYERS && widest <= MOST_NEURONS;
    can_be.then(count).filter(|&count| count <= most(shape, batch))
}

fn is_kept(weights: &[f32], mask: &[bool], at: usize) -> bool {
    mask[at] || weights[at] != 0.0
}

/// The weights that are left: those that are trained, and those that are not 0.
pub(super) struct Kept<'a> {
    shape: &'a Shape,
    /// Their places among all, in the order of a [`Stack`].
    places: Vec<u32>,
    layers: Vec<Sparse>,
    /// Their places in their layers.
    index: Vec<u32>,
}

/// A layer of a [`Stack`].
struct Sparse {
    width: usize,
    blocks: usize,
    /// Its weights among those that are left.
    range: Range<usize>,
    /// Whether it leads to the outputs: then its weights lie by their inputs.
    is_end: bool,
}

impl<'a> Kept<'a> {
    /// Of as many as [`few`] says.
    pub(super) fn of(shape: &'a Shape, weights: &[f32], mask: &[bool], count: usize) -> Self {
        let (mut places, mut index) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let last = (shape.head == Head::Weights).then(|| shape.last());
        let layers = shape.layers().map(|layer| {
            let start = places.len();
            let Layer { inputs, outputs, range, .. } = &layer;
            let is_end = last.as_ref() == Some(&layer);
            let [width, blocks] = if is_end { [*outputs, *inputs] } else { [*inputs, *outputs] };
            for (block, other) in (0..blocks).flat_map(|block| (0..width).map(move |j| (block, j)))
            {
                let [output, input] = if is_end { [other, block] } else { [block, other] };
                let at = range.start + output * inputs + input;
                if is_kept(weights, mask, at) {
                    places.push(at as u32);
                    index.push((block * width + other) as u32);
                }
            }
            Sparse { width, blocks, range: start..places.len(), is_end }
        });
        let layers = layers.collect();
        Self { shape, places, layers, index }
    }

    /// As [`DenseTraining::epoch`](super::DenseTraining::epoch), without a penalty.
    pub(super) fn epoch(
        &self,
        net: Trained<'_>,
        state: &mut State,
        of: &Epoch<'_>,
        stop: &Stop,
    ) -> Result<f64> {
        let Trained { weights, mask, steps } = net;
        let places = || self.places.iter().map(|&at| at as usize);
        let values: Vec<f32> = places().map(|at| weights[at]).collect();
        let mask: Vec<bool> = places().map(|at| mask[at]).collect();
        let (mut index, mut value) = (vec![0; values.len()], vec![0.0; values.len()]);
        let mut stack = self.stack(&values, &mut index, &mut value)?;
        let mut own = state.of(&self.places);
        let mut step = |gradient: &[f32], stack: &mut Stack<'_>| {
            own.step(of.rate_of(*steps), of.decay, stack.values_mut(), gradient, &mask);
            *steps += 1;
        };
        let loss = steps_of(&mut stack, of, stop, &mut step);
        // A stop leaves what the steps before it have reached.
        places().zip(stack.values()).for_each(|(at, &value)| weights[at] = value);
        state.put(&self.places, &own);
        // A neuron that is no number counts as inactive here, and is found in no loss.
        match places().find(|&at| !weights[at].is_finite()) {
            Some(at) if loss.is_ok() => Err(diverged(weights[at].into())),
            _ => loss,
        }
    }

    fn stack<'s>(
        &self,
        values: &[f32],
        index: &'s mut [u32],
        value: &'s mut [f32],
    ) -> Result<Stack<'s>> {
        let mut stack = Stack::new(self.shape.inputs(), index, value);
        for Sparse { width, blocks, range, is_end } in &self.layers {
            let (index, values) = (&self.index[range.clone()], &values[range.clone()]);
            let weights = Weights::new(*width, *blocks, index, values)?;
            if *is_end {
                stack.end_weights(weights)?;
            } else {
                stack.push(weights, Signs::Positive)?;
            }
        }
        if self.shape.head == Head::Sum {
            stack.end_sum(&[])?;
        }
        Ok(stack)
    }
}

/// One step for each batch of an epoch, of the gradient of its mean loss; the mean loss of all, each before its step.
fn steps_of(
    stack: &mut Stack<'_>,
    of: &Epoch<'_>,
    stop: &Stop,
    step: &mut dyn FnMut(&[f32], &mut Stack<'_>),
) -> Result<f64> {
    let set = of.set;
    let classes: Vec<u16>;
    let (labels, terms) = if set.task == Task::Multiclass {
        classes = set.labels.iter().map(|&label| label as u16).collect();
        (Labels::classes(&classes, stack.outputs()), 1)
    } else {
        (Labels::values(&set.labels), stack.outputs())
    };
    let strips = strips(of.batch);
    let mut engine = Engine::with_strips(strips, &set.data, of.scale, labels, stack, stop)?;
    let mut gradient = vec![0.0; stack.nnz()];
    let mut sum = 0.0;
    for batch in of.batches() {
        let terms = (batch.rows.len() * terms) as f64;
        let rows = Batch { positions: batch.rows.clone(), order: batch.order };
        let loss = f64::from(engine.gradient(stack, &rows, &mut gradient)?) / terms;
        let scale = (-f64::from(labels.slope()) / terms) as f32;
        gradient.iter_mut().for_each(|g| *g *= scale);
        if !loss.is_finite() {
            return Err(diverged(loss));
        }
        sum += loss * batch.rows.len() as f64 / of.rows.len() as f64;
        step(&gradient, stack);
    }
    Ok(sum)
}

/// Bytes that an epoch of few weights takes at most, on so many rows in batches of so many.
pub(super) fn bytes(
    shape: &Shape,
    task: Task,
    optimiser: Optimiser,
    [rows, batch]: [usize; 2],
) -> u64 {
    // Places among all, places in a layer and values here and in a stack, the gradient, what the optimiser
    // remembers, a byte of the mask, and the block of a weight by its other end.
    let weight = 4 * (6 + optimiser.moments()) + 1 + 2;
    let widths = || std::iter::once(shape.inputs()).chain(shape.acts());
    let strips = strips(batch) * strip_bytes(widths());
    let starts: usize = widths().map(|width| 2 * size_of::<u32>() * (width + 1)).sum();
    let labels = if task == Task::Multiclass { size_of::<u16>() * rows } else { 0 };
    (most(shape, batch) as u64) * weight as u64 + (strips + starts + labels) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Problem;
    use crate::train::dense::device::{DenseDevice, Setup};
    use crate::train::dense::reference::{problem, shapes};
    use crate::train::dense::threads::Threads;

    const ROWS: usize = 300;
    const BATCH: usize = 100;
    const OPTIMISERS: [Optimiser; 2] = [Optimiser::Adam, Optimiser::Sgd { momentum: 0.9 }];

    /// A third of all weights, some of which are not trained.
    fn network(shape: &Shape) -> (Vec<f32>, Vec<bool>) {
        let is_kept = |at: usize| at.is_multiple_of(3);
        let weights = shape.initial(1).into_iter().enumerate();
        let weights: Vec<f32> =
            weights.map(|(at, w)| if is_kept(at) { 2.0 * w } else { 0.0 }).collect();
        let mask: Vec<bool> = (0..weights.len()).map(|at| is_kept(at) && at % 4 > 0).collect();
        assert!(super::few(shape, &weights, &mask, BATCH).is_some());
        (weights, mask)
    }

    fn epoch<'a>(set: &'a Problem, number: u64) -> Epoch<'a> {
        Epoch {
            set,
            rows: 0..ROWS,
            scale: 0.5,
            batch: BATCH,
            seed: 3,
            number,
            rate: 0.05,
            warmup: 2,
            decay: 0.001,
            penalty: None,
        }
    }

    /// Loss and weights after two epochs, of all products where there is a penalty of nothing.
    fn trained(shape: &Shape, task: Task, optimiser: Optimiser, is_dense: bool) -> (f64, Vec<f32>) {
        let (set, stop) = (problem(ROWS, shape, task), Stop::new());
        let (mut weights, mask) = network(shape);
        let setup = Setup { shape, task, optimiser, batch: BATCH, stop: &stop };
        let mut training = Threads.training(&setup).unwrap();
        let (mut steps, mut loss) = (0, 0.0);
        for number in 0..2 {
            let net = Trained { weights: &mut weights, mask: &mask, steps: &mut steps };
            let nothing = |_: &[f32], _: &mut [f32]| {};
            let penalty: Option<&super::super::Penalty<'_>> =
                if is_dense { Some(&nothing) } else { None };
            loss = training.epoch(net, &Epoch { penalty, ..epoch(&set, number) }).unwrap();
        }
        assert_eq!(steps, 6);
        (loss, weights)
    }

    #[test]
    fn epochs_of_few_weights_are_those_of_all_but_for_rounding() {
        for (shape, task) in shapes() {
            for optimiser in OPTIMISERS {
                let [few, all] =
                    [false, true].map(|is_dense| trained(&shape, task, optimiser, is_dense));
                assert!((few.0 / all.0 - 1.0).abs() < 1e-5, "{shape:?} {task:?} {optimiser:?}");
                let (before, mask) = network(&shape);
                let (mut moved, mut apart) = (0.0_f32, 0.0_f32);
                for (at, (few, all)) in few.1.iter().zip(&all.1).enumerate() {
                    assert!(mask[at] || *few == before[at], "{at} is not trained");
                    moved = moved.max((few - before[at]).abs());
                    apart = apart.max((few - all).abs());
                }
                let is_near = apart < 1e-3 * moved && moved > 1e-3;
                assert!(is_near, "{shape:?} {task:?} {optimiser:?}: {apart} {moved}");
            }
        }
    }

    #[test]
    fn threads_change_no_bit() {
        for (shape, task) in shapes() {
            let run = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let (loss, weights) =
                    pool.install(|| trained(&shape, task, Optimiser::Adam, false));
                (loss.to_bits(), weights.into_iter().map(f32::to_bits).collect::<Vec<_>>())
            };
            let one = run(1);
            assert!([2, 3].into_iter().all(|threads| run(threads) == one), "{shape:?} {task:?}");
        }
    }

    #[test]
    fn a_stop_leaves_the_weights_of_the_last_step_and_overflow_is_found() {
        let (shape, task) = shapes().remove(0);
        let (set, stop) = (problem(ROWS, &shape, task), Stop::new());
        let (weights, mask) = network(&shape);
        let setup =
            Setup { shape: &shape, task, optimiser: Optimiser::Adam, batch: BATCH, stop: &stop };
        let run = |mut weights: Vec<f32>, rate: f32| {
            let mut training = Threads.training(&setup).unwrap();
            let net = Trained { weights: &mut weights, mask: &mask, steps: &mut 0 };
            let of = Epoch { rate, warmup: 0, batch: ROWS, ..epoch(&set, 0) };
            (training.epoch(net, &of).unwrap_err(), weights)
        };
        let huge: Vec<f32> = weights.iter().map(|w| w * 1e30).collect();
        assert!(run(huge, 0.05).0.to_string().contains("diverged"));
        // The only step, whose loss and gradient are numbers.
        let (error, after) = run(weights.clone(), f32::MAX);
        assert!(error.to_string().contains("diverged") && after.iter().any(|w| !w.is_finite()));
        stop.ask();
        let (error, after) = run(weights.clone(), 0.05);
        assert!(error.is_interrupted());
        assert_eq!(after, weights);
    }

    #[test]
    fn small_batches_and_what_no_sparse_layers_can_be_have_all_products() {
        let few = |widths: &[usize], batch| {
            let shape = Shape::of(widths).unwrap();
            let weights = vec![0.0; shape.weights()];
            let mut mask = vec![false; weights.len()];
            mask[..weights.len() / 4].fill(true);
            super::few(&shape, &weights, &mask, batch).is_some()
        };
        assert!(few(&[4, 4, 2], 64) && few(&[4, 4, 2], 40));
        // Half of the rows of a strip, or fewer.
        assert!(!few(&[4, 4, 2], 20) && !few(&[4, 4, 2], 1));
        assert!(few(&[3; 1 + MAX_LAYERS], 64) && !few(&[3; 2 + MAX_LAYERS], 64));
        let deepest = Shape::of(&[3; 1 + MAX_LAYERS]).unwrap();
        assert!(trained(&deepest, Task::Regression, Optimiser::Adam, false).0 > 0.0);
        assert!(few(&[MOST_NEURONS, 4, 2], 64) && !few(&[MOST_NEURONS + 1, 4, 2], 64));
    }

    #[test]
    fn bytes_are_those_of_an_engine_and_its_vectors() {
        for (shape, task) in shapes() {
            let (weights, mask) = network(&shape);
            let count = few(&shape, &weights, &mask, BATCH).unwrap();
            let kept = Kept::of(&shape, &weights, &mask, count);
            assert_eq!(kept.places.len(), count);
            let set = problem(ROWS, &shape, task);
            let (mut index, mut value) = (vec![0; kept.places.len()], vec![0.0; kept.places.len()]);
            let values: Vec<f32> = kept.places.iter().map(|&at| weights[at as usize]).collect();
            let stack = kept.stack(&values, &mut index, &mut value).unwrap();
            let classes = vec![0; ROWS];
            let labels = match task {
                Task::Multiclass => Labels::classes(&classes, shape.outputs()),
                _ => Labels::values(&set.labels),
            };
            let pool = rayon::ThreadPoolBuilder::new().num_threads(8).build().unwrap();
            let new =
                || Engine::with_strips(strips(BATCH), &set.data, 1.0, labels, &stack, &Stop::new());
            let engine = pool.install(new).unwrap();
            let classes = if task == Task::Multiclass { 2 * ROWS } else { 0 };
            let vectors = (4 * (6 + 2) + 1) * kept.places.len() + classes;
            let (own, stated) = (
                (engine.bytes() + vectors) as u64,
                bytes(&shape, task, Optimiser::Adam, [ROWS, BATCH]),
            );
            // A half of the weights may be left, and all layers have both ends.
            assert!(own <= stated && stated <= 2 * own, "{shape:?} {task:?}: {own} {stated}");
        }
    }
}
