//! Rows of a tile, and what the layers give for them.

use std::ops::Range;

use tamis::base::rng::Permutation;

use crate::data::{Problem, Task, Values};
use crate::operator::Stop;
use crate::operator::gather::{Element, touch};
use crate::train::dense::product::{Mat, product};
use crate::train::dense::shape::{Head, Layer, Shape};

/// Rows of a set, as a step takes them.
#[derive(Clone)]
pub struct Batch<'a> {
    /// All rows.
    pub set: &'a Problem,
    /// Which rows, as positions in the order.
    pub rows: Range<usize>,
    /// Where the rows of these positions lie; none for the order of the set.
    pub order: Option<Permutation>,
    /// Factor of the inputs.
    pub scale: f32,
}

impl Batch<'_> {
    /// Where the row of a position lies.
    #[must_use]
    pub fn place(&self, row: usize) -> usize {
        self.order.map_or(row, |order| order.get(row))
    }
}

/// What a pass sums over the rows.
#[derive(Debug, Clone, Copy)]
pub enum Goal<'a> {
    /// The loss alone, and the rows whose class is right.
    Loss,
    /// The gradient of the mean loss.
    Gradient,
    /// The Hessian of the mean loss times this vector of all weights.
    HessianProduct(&'a [f32]),
    /// `(d out_k / d w)²` over rows and outputs k, for each weight w.
    JacobianSquares,
    /// `a_i²` over rows, for each weight from input i of its layer.
    InputSquares,
}

/// One pass, as every group sees it.
pub(super) struct Work<'a> {
    pub(super) shape: &'a Shape,
    pub(super) task: Task,
    pub(super) weights: &'a [f32],
    pub(super) batch: &'a Batch<'a>,
    pub(super) tile: usize,
    pub(super) goal: Goal<'a>,
    /// Factor of the outputs of several classes before the softmax: one over the temperature.
    pub(super) coldness: f32,
    /// Factor from residuals to the gradient.
    pub(super) scale: f32,
    pub(super) stop: &'a Stop,
}

impl Work<'_> {
    pub(super) fn weights(&self, layer: &Layer) -> Mat<'_> {
        matrix(layer, self.weights)
    }

    /// The labels of each of `rows`, `width` of them, with its position among these.
    pub(super) fn label_rows(
        &self,
        rows: Range<usize>,
        width: usize,
        mut put: impl FnMut(usize, &[f32]),
    ) {
        for (at, row) in rows.enumerate() {
            put(at, &self.batch.set.labels[self.batch.place(row) * width..][..width]);
        }
    }
}

/// What belongs to a layer of a vector of all weights.
pub(super) fn matrix<'a>(layer: &Layer, all: &'a [f32]) -> Mat<'a> {
    Mat::new(&all[layer.range.clone()], layer.outputs, layer.inputs)
}

/// The inputs of `rows`: where they lie, or gathered and scaled in `x`.
pub(super) fn inputs<'a>(x: &'a mut Vec<f32>, batch: &Batch<'a>, rows: Range<usize>) -> &'a [f32] {
    let (d, scale) = (batch.set.data.cols, batch.scale);
    if let Values::F32(values) = &batch.set.data.values
        && batch.order.is_none()
        && scale == 1.0
    {
        return &values[rows.start * d..rows.end * d];
    }
    if x.len() < rows.len() * d {
        *x = vec![0.0; rows.len() * d];
    }
    let x = &mut x[..rows.len() * d];
    match &batch.set.data.values {
        Values::F32(values) => gather(values, batch, rows, x),
        Values::U8(values) => gather(values, batch, rows, x),
    }
    x
}

/// Copies rows in the order of the batch to `x`, times its scale.
fn gather<T: Element>(values: &[T], batch: &Batch<'_>, mut rows: Range<usize>, x: &mut [f32]) {
    // As many at a time as stay in the cache from the first look at them.
    const NEAR: usize = 1 << 15;
    const AT_ONCE: usize = 64;
    let (d, scale) = (batch.set.data.cols, batch.scale);
    let near = (NEAR / (d * size_of::<T>())).clamp(1, AT_ONCE);
    let mut from: [&[T]; AT_ONCE] = [&[]; AT_ONCE];
    for x in x.chunks_mut(near * d) {
        let from = &mut from[..x.len() / d];
        for (from, row) in from.iter_mut().zip(&mut rows) {
            *from = &values[batch.place(row) * d..][..d];
        }
        touch(from.iter().copied());
        for (x, from) in x.chunks_exact_mut(d).zip(&*from) {
            x.iter_mut().zip(*from).for_each(|(x, v)| *x = v.widen() * scale);
        }
    }
}

/// A vector for each layer's outputs of `rows` rows, those of the sum behind them included.
pub(super) fn buffers(shape: &Shape, rows: usize) -> Vec<Vec<f32>> {
    shape.acts().map(|width| vec![0.0; rows * width]).collect()
}

/// Outputs of all layers for `n` rows.
pub(super) fn forward(work: &Work<'_>, x: &[f32], acts: &mut [Vec<f32>], n: usize) {
    for (l, layer) in work.shape.layers().enumerate() {
        let (before, from) = acts.split_at_mut(l);
        let left = before.last().map_or(x, |act| &act[..n * layer.inputs]);
        let out = &mut from[0][..n * layer.outputs];
        product(out, false, 1.0, Mat::new(left, n, layer.inputs), work.weights(&layer).t());
        if layer.relu {
            // What is no number stays so, and is found out.
            out.iter_mut().for_each(|z| *z = if *z <= 0.0 { 0.0 } else { *z });
        }
    }
    sum_neurons(work.shape, acts, n);
}

/// The output that is a sum of the last layer, where the head is one.
pub(super) fn sum_neurons(shape: &Shape, acts: &mut [Vec<f32>], n: usize) {
    if shape.head == Head::Sum
        && let [.., neurons, out] = acts
    {
        let width = neurons.len() / out.len();
        for (out, neurons) in out.iter_mut().zip(neurons.chunks_exact(width)).take(n) {
            *out = 0.0;
            neurons.iter().for_each(|a| *out += *a);
        }
    }
}

/// A tile after its forward pass.
#[derive(Clone, Copy)]
pub(super) struct Tile<'a> {
    pub(super) work: &'a Work<'a>,
    /// Rows, n.
    pub(super) n: usize,
    /// Their inputs, n×d.
    pub(super) x: &'a [f32],
    /// Outputs of each layer, as [`buffers`] has them.
    pub(super) acts: &'a [Vec<f32>],
    /// Whether the group's sum already holds that of other tiles.
    pub(super) add: bool,
}

impl<'a> Tile<'a> {
    /// What goes into a layer, `a_(l-1)`, n×inputs.
    pub(super) fn input(&self, l: usize, layer: &Layer) -> &'a [f32] {
        let input = if l == 0 { self.x } else { &self.acts[l - 1] };
        &input[..self.n * layer.inputs]
    }

    /// [`Self::input`] as a matrix.
    pub(super) fn input_matrix(&self, l: usize, layer: &Layer) -> Mat<'a> {
        Mat::new(self.input(l, layer), self.n, layer.inputs)
    }

    /// Values at a layer's outputs, n×outputs.
    pub(super) fn at_outputs<'b>(&self, layer: &Layer, values: &'b [f32]) -> Mat<'b> {
        Mat::new(&values[..self.n * layer.outputs], self.n, layer.outputs)
    }

    /// Values at a layer's outputs become 0 where its neurons are not active.
    pub(super) fn gate(&self, l: usize, layer: &Layer, values: &mut [f32]) {
        if layer.relu {
            for (value, a) in values.iter_mut().zip(&self.acts[l][..self.n * layer.outputs]) {
                *value = if *a > 0.0 { *value } else { 0.0 };
            }
        }
    }

    /// Residuals of the outputs become those of the last layer: where the head is a sum, each of
    /// its neurons has that of the row.
    pub(super) fn spread<'b>(&self, mut back: [&'b mut [f32]; 2]) -> [&'b mut [f32]; 2] {
        if self.work.shape.head == Head::Sum {
            let [residual, other] = &mut back;
            let width = self.work.shape.last().outputs;
            for (all, one) in other.chunks_exact_mut(width).zip(&residual[..self.n]) {
                all.fill(*one);
            }
            back.swap(0, 1);
        }
        back
    }

    /// From residuals of a layer's outputs to those of its inputs, `other = residual W`, which
    /// then stand first.
    pub(super) fn step_back(&self, layer: &Layer, back: &mut [&mut [f32]; 2]) {
        let [residual, other] = back;
        let other = &mut other[..self.n * layer.inputs];
        let residual = self.at_outputs(layer, residual);
        product(other, false, 1.0, residual, self.work.weights(layer));
        back.swap(0, 1);
    }
}
