//! Dense MLPs by their definition, in double precision, and problems to test them on.

use super::pass::{Batch, Measure};
use super::shape::{Head, Shape};
use crate::data::{Matrix, Problem, Task, Values};

const TASKS: [Task; 3] = [Task::Regression, Task::Binary, Task::Multiclass];
/// The step of differences. Their error is of order STEP⁴, and rounding of second ones 1e-15/STEP².
const STEP: f64 = 4e-3;

/// Every task with networks of one to three hidden layers, and both heads where there is one
/// output.
pub(super) fn shapes() -> Vec<(Shape, Task)> {
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

pub(super) fn problem(rows: usize, shape: &Shape, task: Task) -> Problem {
    let noise = |e: usize| ((e * 7919 + e / 13 + 5) % 256) as u8;
    let values: Vec<f32> =
        (0..rows * shape.inputs()).map(|e| f32::from(noise(e)) / 100.0 - 1.27).collect();
    let labels = (0..rows * shape.labels(task)).map(|e| match task {
        Task::Regression => f32::from(noise(e + 99)) / 64.0,
        Task::Binary => f32::from(noise(e) % 2),
        Task::Multiclass => f32::from(noise(e) % shape.outputs().max(2) as u8),
    });
    let labels = labels.collect();
    let data = Matrix::new(rows, shape.inputs(), Values::F32(values)).unwrap();
    Problem { data, labels, task }
}

pub(super) fn weights(shape: &Shape) -> Vec<f32> {
    shape.initial(1).iter().map(|&w| 2.0 * w).collect()
}

/// A network on rows, with its neurons active where they are for some weights: so the loss has no
/// edges, and differences of it are derivatives however long their step.
pub(super) struct Definition<'a> {
    shape: &'a Shape,
    batch: &'a Batch<'a>,
    /// Those that say which neurons are active.
    pub(super) weights: Vec<f64>,
    pub(super) temperature: f64,
}

impl<'a> Definition<'a> {
    pub(super) fn new(shape: &'a Shape, batch: &'a Batch<'a>, weights: &[f32]) -> Self {
        let weights = weights.iter().map(|&w| f64::from(w)).collect();
        Self { shape, batch, weights, temperature: 1.0 }
    }

    /// The outputs of every row.
    pub(super) fn outputs(&self, weights: &[f64]) -> Vec<Vec<f64>> {
        self.batch.rows.clone().map(|row| self.row(row, weights)).collect()
    }

    fn row(&self, row: usize, weights: &[f64]) -> Vec<f64> {
        let Values::F32(values) = &self.batch.set.data.values else { panic!("floats") };
        let (d, scale) = (self.shape.inputs(), f64::from(self.batch.scale));
        let x = &values[self.batch.place(row) * d..][..d];
        let mut x: Vec<f64> = x.iter().map(|&x| scale * f64::from(x)).collect();
        let mut original = x.clone();
        for layer in self.shape.layers() {
            let product = |w: &[f64], x: &[f64]| w.iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
            let rows = |all: &'_ [f64], x: &[f64]| -> Vec<f64> {
                all[layer.range.clone()].chunks(layer.inputs).map(|w| product(w, x)).collect()
            };
            (x, original) = (rows(weights, &x), rows(&self.weights, &original));
            if layer.relu {
                for (z, original) in x.iter_mut().zip(&mut original) {
                    *z = if *original > 0.0 { *z } else { 0.0 };
                    *original = original.max(0.0);
                }
            }
        }
        if self.shape.head == Head::Sum { vec![x.iter().sum()] } else { x }
    }

    /// The loss, and the rows whose class is right.
    pub(super) fn measure(&self, weights: &[f64]) -> Measure {
        let (mut loss, mut right) = (0.0, 0);
        let task = self.batch.set.task;
        let width = self.shape.labels(task);
        for (row, x) in self.batch.rows.clone().zip(self.outputs(weights)) {
            let labels = &self.batch.set.labels[self.batch.place(row) * width..][..width];
            if task == Task::Multiclass {
                let label = labels[0] as usize;
                loss += self.cross_entropy(label, &x);
                right += usize::from(x.iter().all(|&z| z <= x[label.min(x.len() - 1)]));
            } else {
                let squares = x.iter().zip(labels).map(|(z, &y)| (f64::from(y) - z).powi(2));
                loss += squares.sum::<f64>() / self.shape.outputs() as f64;
                right += usize::from((x[0] >= 0.5) == (labels[0] >= 0.5));
            }
        }
        let rows = self.batch.rows.len();
        let right = (task != Task::Regression).then_some(right);
        Measure { rows, loss: loss / rows as f64, right }
    }

    /// One output is the log-odds of class 1.
    fn cross_entropy(&self, label: usize, x: &[f64]) -> f64 {
        let x: Vec<f64> = x.iter().map(|z| z / self.temperature).collect();
        let x = if let [odds] = x[..] { vec![0.0, odds] } else { x };
        x.iter().map(|z| z.exp()).sum::<f64>().ln() - x[label]
    }

    /// The derivative of the loss by weight j.
    pub(super) fn slope(&self, j: usize) -> f64 {
        self.slope_at(&self.weights, j)
    }

    /// Row j of the Hessian times v.
    pub(super) fn curvature(&self, j: usize, v: &[f32]) -> f64 {
        let slopes = |step: f64| {
            let along = |(w, &v): (&f64, &f32)| w + step * f64::from(v);
            let moved: Vec<f64> = self.weights.iter().zip(v).map(along).collect();
            vec![self.slope_at(&moved, j)]
        };
        derivative(slopes)[0]
    }

    /// The norm of column j of the Jacobian.
    pub(super) fn jacobian_norm(&self, j: usize) -> f64 {
        let outputs = |step: f64| self.outputs(&moved(&self.weights, j, step)).concat();
        derivative(outputs).iter().map(|slope| slope * slope).sum::<f64>().sqrt()
    }

    fn slope_at(&self, weights: &[f64], j: usize) -> f64 {
        derivative(|step| vec![self.measure(&moved(weights, j, step)).loss])[0]
    }
}

/// The derivatives of a function's numbers at 0, by differences of fourth order.
fn derivative(of: impl Fn(f64) -> Vec<f64>) -> Vec<f64> {
    let [near, far] = [STEP, 2.0 * STEP].map(|step| [of(step), of(-step)]);
    let difference = |at: &[Vec<f64>; 2], k: usize| at[0][k] - at[1][k];
    let slope = |k| (8.0 * difference(&near, k) - difference(&far, k)) / (12.0 * STEP);
    (0..near[0].len()).map(slope).collect()
}

fn moved(weights: &[f64], j: usize, step: f64) -> Vec<f64> {
    let mut weights = weights.to_vec();
    weights[j] += step;
    weights
}
