//! Losses and derivatives of a batch: forwards and back through the layers, tile by tile.
//!
//! With `a_0 = x`, `a_l = relu(W_l a_(l-1))` and the residual `r` of the outputs (label minus
//! output, or one-hot minus softmax), the gradient is `-scale r_l^T a_(l-1)` for each layer, where
//! `r_(l-1) = (r_l W_l) * 1[a_(l-1) > 0]`.

mod curvature;
mod group;
mod jacobian;
mod tile;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::shape::Shape;
use crate::data::Task;
use crate::operator::Stop;
use crate::{Error, Result};
use group::Group;
use tile::Work;
pub use tile::{Batch, Goal};

/// Rows that go through the layers together: enough for the matrix products, few enough for the
/// cache.
const TILE: usize = 256;
/// Multiply-adds of a forward pass from which on a batch of few rows is worth sharing, and the rows
/// of its tiles.
const SHARED: usize = 1 << 22;
const SMALL_TILE: usize = 64;
/// Groups of tiles, at most, each with a gradient of its own.
pub(super) const GROUPS: usize = 8;

/// How good a network is on a set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// The rows.
    pub rows: usize,
    /// Mean squared error over rows and outputs; of several classes mean cross-entropy over rows.
    pub loss: f64,
    /// Rows whose class is right; none for regression.
    pub right: Option<usize>,
}

impl Measure {
    /// Fraction of the rows whose class is right.
    pub(crate) fn accuracy(&self) -> Option<f64> {
        self.right.map(|right| right as f64 / self.rows.max(1) as f64)
    }
}

/// Computes losses and derivatives of one network shape, in memory for batches of some size.
pub(super) struct Engine {
    shape: Shape,
    task: Task,
    /// Rows of a tile.
    tile: usize,
    groups: Vec<Group>,
    stop: Stop,
    /// What outputs of several classes are divided by before the softmax.
    pub(super) temperature: f32,
}

impl Engine {
    /// For batches of at most `batch` rows; `stop` ends a pass within a tile.
    pub(super) fn new(shape: &Shape, task: Task, batch: usize, stop: &Stop) -> Self {
        let [tile, groups] = sizes(batch, shape.weights());
        let groups = (0..groups).map(|_| Group::new(shape, task, tile)).collect();
        Self { shape: shape.clone(), task, tile, groups, stop: stop.clone(), temperature: 1.0 }
    }

    /// Bytes that passes for losses and gradients take; `gather` where rows are not used where they lie.
    pub(super) fn bytes(shape: &Shape, task: Task, batch: usize, gather: bool) -> u64 {
        let [tile, groups] = sizes(batch, shape.weights());
        let inputs = if gather { shape.inputs() } else { 0 };
        let widths = inputs + shape.acts().sum::<usize>() + 2 * shape.widest();
        let numbers = (tile as u64) * (widths as u64) + shape.weights() as u64;
        let labels = tile * (4 * shape.labels(task) + if task == Task::Multiclass { 2 } else { 0 });
        groups as u64 * (numbers * size_of::<f32>() as u64 + labels as u64)
    }

    /// What the goal of the last pass sums, for each weight.
    pub(super) fn sum(&self) -> &[f32] {
        &self.groups[0].sum
    }

    pub(super) fn sum_mut(&mut self) -> &mut [f32] {
        &mut self.groups[0].sum
    }

    pub(super) fn into_sum(mut self) -> Vec<f32> {
        self.groups.swap_remove(0).sum
    }

    /// The loss of the network on a batch, but for a goal of outputs alone, which leaves it at 0,
    /// and [`Self::sum`].
    pub(super) fn pass(
        &mut self,
        weights: &[f32],
        batch: &Batch<'_>,
        goal: Goal<'_>,
    ) -> Result<Measure> {
        let rows = batch.rows.len();
        let tile = self.tile;
        let tiles = rows.div_ceil(tile);
        let groups = tiles.min(self.groups.len()).max(1);
        let terms = if self.task == Task::Multiclass { rows } else { rows * self.shape.outputs() };
        let coldness = 1.0 / self.temperature;
        // The square has the slope 2.
        let slope = if self.task == Task::Multiclass { coldness } else { 2.0 };
        let scale = (-f64::from(slope) / terms.max(1) as f64) as f32;
        let work = Work {
            shape: &self.shape,
            task: self.task,
            weights,
            batch,
            tile,
            goal,
            coldness,
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
        if !matches!(goal, Goal::Loss) {
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

/// Adds the sums of all groups to that of the first, in their order.
fn add_up(groups: &mut [Group]) {
    const CHUNK: usize = 1 << 14;
    let Some((first, rest)) = groups.split_first_mut() else { return };
    if rest.is_empty() {
        return;
    }
    first.sum.par_chunks_mut(CHUNK).enumerate().for_each(|(at, sum)| {
        for group in rest.iter() {
            let own = &group.sum[at * CHUNK..][..sum.len()];
            sum.iter_mut().zip(own).for_each(|(sum, own)| *sum += *own);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Problem;
    use crate::data::{Matrix, Values};
    use crate::train::dense::reference::{Definition, problem, shapes, weights};
    use crate::train::dense::shape::Head;
    use tamis::base::rng::Permutation;

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
                let definition = Definition::new(&shape, &batch, &single);
                let loss = engine.pass(&single, &batch, Goal::Gradient).unwrap().loss;
                let gradient = engine.sum().to_vec();
                let measure = engine.pass(&single, &batch, Goal::Loss).unwrap();
                let wanted = definition.measure(&definition.weights);
                assert_eq!((measure.rows, measure.right), (wanted.rows, wanted.right));
                assert!((measure.loss / wanted.loss - 1.0).abs() < 1e-5, "{measure:?} {wanted:?}");
                assert!((loss / wanted.loss - 1.0).abs() < 1e-5, "{loss} {wanted:?}");
                let largest = gradient.iter().fold(0.0_f32, |top, g| top.max(g.abs()));
                let largest = f64::from(largest);
                assert!(loss > 0.01 && largest > 1e-3, "{shape:?} {task:?}");
                for (j, g) in gradient.iter().enumerate() {
                    let slope = definition.slope(j);
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
                let loss = engine.pass(&weights, &batch, Goal::Gradient).unwrap().loss;
                let bits: Vec<u32> = engine.sum().iter().map(|g| f32::to_bits(*g)).collect();
                (loss.to_bits(), bits)
            })
        };
        let one = run(1);
        assert!([2, 3, 7].into_iter().all(|threads| run(threads) == one));
    }

    #[test]
    fn bytes_equal_their_floats_and_stop_ends_pass() {
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
            let measure = engine.pass(&weights, &batch, Goal::Gradient);
            (measure.map(|m| m.loss.to_bits()).ok(), engine.sum().to_vec())
        };
        assert_eq!(run(Values::U8(bytes.clone())), run(Values::F32(floats)));
        stop.ask();
        assert_eq!(run(Values::U8(bytes)).0, None);
    }
}
