//! Losses and gradients of a batch: forwards and back through the layers, tile by tile.
//!
//! With `a_0 = x`, `a_l = relu(W_l a_(l-1))` and the residual `r` of the outputs (label minus
//! output, or one-hot minus softmax), the gradient is `-scale r_l^T a_(l-1)` for each layer, where
//! `r_(l-1) = (r_l W_l) * 1[a_(l-1) > 0]`.

mod group;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::shape::Shape;
use crate::data::Task;
use crate::operator::Stop;
use crate::{Error, Result};
pub(super) use group::Batch;
use group::{Group, Work};

/// Rows that go through the layers together: enough for the matrix products, few enough for the
/// cache.
const TILE: usize = 256;
/// Multiply-adds of a forward pass from which on a batch of few rows is worth sharing, and the rows
/// of its tiles.
const SHARED: usize = 1 << 22;
const SMALL_TILE: usize = 64;
/// Groups of tiles, at most, each with a gradient of its own.
const GROUPS: usize = 8;

/// How good a network is on a set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measure {
    pub(crate) rows: usize,
    /// Mean squared error over rows and outputs; of several classes mean cross-entropy over rows.
    pub(crate) loss: f64,
    /// Rows whose class is right; none for regression.
    pub(crate) right: Option<usize>,
}

impl Measure {
    /// Fraction of the rows whose class is right.
    pub(crate) fn accuracy(&self) -> Option<f64> {
        self.right.map(|right| right as f64 / self.rows.max(1) as f64)
    }
}

/// Computes losses and gradients of one network shape, in memory for batches of some size.
pub(super) struct Engine {
    shape: Shape,
    task: Task,
    /// Rows of a tile.
    tile: usize,
    groups: Vec<Group>,
    stop: Stop,
}

impl Engine {
    /// For batches of at most `batch` rows; `stop` ends a pass within a tile.
    pub(super) fn new(shape: &Shape, task: Task, batch: usize, stop: &Stop) -> Self {
        let [tile, groups] = sizes(batch, shape.weights());
        let groups = (0..groups).map(|_| Group::new(shape, task, tile)).collect();
        Self { shape: shape.clone(), task, tile, groups, stop: stop.clone() }
    }

    /// Bytes that the passes take; `gather` where rows are not used where they lie.
    pub(super) fn bytes(shape: &Shape, task: Task, batch: usize, gather: bool) -> u64 {
        let [tile, groups] = sizes(batch, shape.weights());
        let inputs = if gather { shape.inputs() } else { 0 };
        let widths = inputs + shape.acts().sum::<usize>() + 2 * shape.widest();
        let numbers = (tile as u64) * (widths as u64) + shape.weights() as u64;
        let labels = tile * (4 * shape.labels(task) + if task == Task::Multiclass { 2 } else { 0 });
        groups as u64 * (numbers * size_of::<f32>() as u64 + labels as u64)
    }

    /// The gradient of the mean loss.
    pub(super) fn gradient(&self) -> &[f32] {
        &self.groups[0].gradient
    }

    /// How good the network is on a batch; with `back` its loss alone, and the gradient of that.
    pub(super) fn pass(
        &mut self,
        weights: &[f32],
        batch: &Batch<'_>,
        back: bool,
    ) -> Result<Measure> {
        let rows = batch.rows.len();
        let tile = self.tile;
        let tiles = rows.div_ceil(tile);
        let groups = tiles.min(self.groups.len()).max(1);
        let terms = if self.task == Task::Multiclass { rows } else { rows * self.shape.outputs() };
        // The square has the slope 2.
        let slope = if self.task == Task::Multiclass { 1.0 } else { 2.0 };
        let scale = back.then(|| (-slope / terms.max(1) as f64) as f32);
        let work = Work {
            shape: &self.shape,
            task: self.task,
            weights,
            batch,
            tile,
            scale,
            stop: &self.stop,
        };
        let run = |(g, group): (usize, &mut Group)| {
            group.run(&work, g * tiles / groups..(g + 1) * tiles / groups);
        };
        match &mut self.groups[..groups] {
            [group] => run((0, group)),
            all => all.par_iter_mut().enumerate().for_each(run),
        }
        let done = &mut self.groups[..groups];
        if let Some(error) = done.iter_mut().find_map(|group| group.failed.take()) {
            return Err(Error::from(error));
        }
        if back {
            add_up(done);
        }
        let loss = done.iter().map(|group| group.loss).sum::<f64>() / terms.max(1) as f64;
        let right =
            (self.task != Task::Regression).then(|| done.iter().map(|group| group.right).sum());
        Ok(Measure { rows, loss, right })
    }
}

/// Rows of a tile and number of groups, for a network of so many weights.
fn sizes(batch: usize, weights: usize) -> [usize; 2] {
    let shared = batch.saturating_mul(weights) >= SHARED;
    let most =
        if shared { batch.div_ceil(4).next_multiple_of(16).clamp(SMALL_TILE, TILE) } else { TILE };
    let tile = batch.clamp(1, most);
    [tile, batch.div_ceil(tile).clamp(1, GROUPS)]
}

/// Adds the gradients of all groups to that of the first, in their order.
fn add_up(groups: &mut [Group]) {
    const CHUNK: usize = 1 << 14;
    let Some((first, rest)) = groups.split_first_mut() else { return };
    if rest.is_empty() {
        return;
    }
    first.gradient.par_chunks_mut(CHUNK).enumerate().for_each(|(at, sum)| {
        for group in rest.iter() {
            let own = &group.gradient[at * CHUNK..][..sum.len()];
            sum.iter_mut().zip(own).for_each(|(sum, own)| *sum += *own);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Problem;
    use crate::data::{Matrix, Values};
    use crate::train::dense::shape::Head;
    use tamis::base::rng::Permutation;

    const TASKS: [Task; 3] = [Task::Regression, Task::Binary, Task::Multiclass];

    /// Every task with networks of one to three hidden layers, and both heads where there is one
    /// output.
    fn shapes() -> Vec<(Shape, Task)> {
        let mut all = Vec::new();
        for hidden in [&[6][..], &[5, 4], &[7, 3, 4]] {
            for task in TASKS {
                let outputs = if task == Task::Binary { 1 } else { 3 };
                all.push((Shape::new(5, hidden, outputs, Head::Weights).unwrap(), task));
            }
            all.push((Shape::new(5, hidden, 1, Head::Sum).unwrap(), Task::Regression));
        }
        all
    }

    fn problem(rows: usize, shape: &Shape, task: Task) -> Problem {
        let noise = |e: usize| ((e * 7919 + e / 13 + 5) % 256) as u8;
        let values: Vec<f32> =
            (0..rows * shape.inputs()).map(|e| f32::from(noise(e)) / 100.0 - 1.27).collect();
        let labels = (0..rows * shape.labels(task)).map(|e| match task {
            Task::Regression => f32::from(noise(e + 99)) / 64.0,
            Task::Binary => f32::from(noise(e) % 2),
            Task::Multiclass => f32::from(noise(e) % shape.outputs() as u8),
        });
        let labels = labels.collect();
        let data = Matrix::new(rows, shape.inputs(), Values::F32(values)).unwrap();
        Problem { data, labels, task }
    }

    fn weights(shape: &Shape) -> Vec<f32> {
        shape.initial(1).iter().map(|&w| 2.0 * w).collect()
    }

    /// The loss in double precision, by the definitions, and the rows whose class is right.
    fn by_definition(shape: &Shape, task: Task, weights: &[f64], batch: &Batch<'_>) -> Measure {
        let Values::F32(values) = &batch.set.data.values else { panic!("floats") };
        let (d, width) = (shape.inputs(), shape.labels(task));
        let (mut loss, mut right) = (0.0, 0);
        for row in batch.rows.clone().map(|row| batch.place(row)) {
            let scale = f64::from(batch.scale);
            let mut x: Vec<f64> =
                values[row * d..][..d].iter().map(|&x| scale * f64::from(x)).collect();
            for layer in shape.layers() {
                let product = |w: &[f64]| w.iter().zip(&x).map(|(w, x)| w * x).sum::<f64>();
                let out = weights[layer.range.clone()].chunks(layer.inputs).map(product);
                x = out.map(|z| if layer.relu { z.max(0.0) } else { z }).collect();
            }
            if shape.head == Head::Sum {
                x = vec![x.iter().sum()];
            }
            let labels = &batch.set.labels[row * width..][..width];
            if task == Task::Multiclass {
                let label = labels[0] as usize;
                loss += x.iter().map(|z| z.exp()).sum::<f64>().ln() - x[label];
                right += usize::from(x.iter().all(|&z| z <= x[label]));
            } else {
                let squares = x.iter().zip(labels).map(|(z, &y)| (f64::from(y) - z).powi(2));
                loss += squares.sum::<f64>() / shape.outputs() as f64;
                right += usize::from((x[0] >= 0.5) == (labels[0] >= 0.5));
            }
        }
        let rows = batch.rows.len();
        let right = (task != Task::Regression).then_some(right);
        Measure { rows, loss: loss / rows as f64, right }
    }

    /// Central differences of the loss; the network is piecewise smooth, and few steps cross an
    /// edge.
    #[test]
    fn gradients_are_the_slopes_of_the_loss() {
        for (shape, task) in shapes() {
            // Three tiles, and rows out of order or as they lie.
            let set = &problem(700, &shape, task);
            let order = Some(Permutation::new(1, 2, 700));
            for batch in [
                Batch { set, rows: 3..600, order, scale: 0.5 },
                Batch { set, rows: 0..700, order: None, scale: 1.0 },
            ] {
                let mut engine = Engine::new(&shape, task, 700, &Stop::new());
                let single = weights(&shape);
                let mut w: Vec<f64> = single.iter().map(|&w| f64::from(w)).collect();
                let loss = engine.pass(&single, &batch, true).unwrap().loss;
                let gradient = engine.gradient().to_vec();
                let measure = engine.pass(&single, &batch, false).unwrap();
                let wanted = by_definition(&shape, task, &w, &batch);
                assert_eq!((measure.rows, measure.right), (wanted.rows, wanted.right));
                assert!((measure.loss / wanted.loss - 1.0).abs() < 1e-5, "{measure:?} {wanted:?}");
                assert!((loss / wanted.loss - 1.0).abs() < 1e-5, "{loss} {wanted:?}");
                let largest = gradient.iter().fold(0.0_f32, |top, g| top.max(g.abs()));
                let largest = f64::from(largest);
                assert!(loss > 0.01 && largest > 1e-3, "{shape:?} {task:?}");
                let step = 1e-7;
                for (j, g) in gradient.iter().enumerate() {
                    let mut at = |step: f64| {
                        let before = std::mem::replace(&mut w[j], f64::from(single[j]) + step);
                        let loss = by_definition(&shape, task, &w, &batch).loss;
                        w[j] = before;
                        loss
                    };
                    let slope = (at(step) - at(-step)) / (2.0 * step);
                    assert!(
                        (slope - f64::from(*g)).abs() < 1e-5 * (largest + largest.max(1.0)),
                        "{shape:?} {task:?} {j}: {slope} {g}"
                    );
                }
            }
        }
    }

    #[test]
    fn threads_change_no_bit() {
        let shape = Shape::new(5, &[9, 4], 3, Head::Weights).unwrap();
        let set = &problem(3000, &shape, Task::Multiclass);
        let weights = shape.initial(0);
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let order = Some(Permutation::new(1, 2, 3000));
                let mut engine = Engine::new(&shape, Task::Multiclass, 3000, &Stop::new());
                let batch = Batch { set, rows: 0..3000, order, scale: 1.0 };
                let loss = engine.pass(&weights, &batch, true).unwrap().loss;
                let bits: Vec<u32> = engine.gradient().iter().map(|g| f32::to_bits(*g)).collect();
                (loss.to_bits(), bits)
            })
        };
        let one = run(1);
        assert!([2, 3, 7].into_iter().all(|threads| run(threads) == one));
    }

    #[test]
    fn bytes_stand_for_their_numbers_and_a_stop_ends_the_pass() {
        let shape = Shape::new(5, &[6], 1, Head::Weights).unwrap();
        let bytes: Vec<u8> = (0..200).map(|e| (e * 37 % 251) as u8).collect();
        let floats = bytes.iter().map(|&b| f32::from(b)).collect();
        let labels: Vec<f32> = (0..40).map(|k| (k % 2) as f32).collect();
        let weights = shape.initial(0);
        let stop = Stop::new();
        let run = |values| {
            let data = Matrix::new(40, 5, values).unwrap();
            let set = &Problem { data, labels: labels.clone(), task: Task::Binary };
            let mut engine = Engine::new(&shape, Task::Binary, 40, &stop);
            let batch = Batch { set, rows: 0..40, order: None, scale: 1.0 / 256.0 };
            let measure = engine.pass(&weights, &batch, true);
            (measure.map(|m| m.loss.to_bits()).ok(), engine.gradient().to_vec())
        };
        assert_eq!(run(Values::U8(bytes.clone())), run(Values::F32(floats)));
        stop.ask();
        assert_eq!(run(Values::U8(bytes)).0, None);
    }
}
