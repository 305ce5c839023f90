//! The tiles of one group: forwards and back through the layers.

use std::ops::Range;

use tamis::base::rng::Permutation;
use tamis::learn::loss;

use crate::data::{Problem, Task, Values};
use crate::operator::Stop;
use crate::train::dense::product::{Mat, product};
use crate::train::dense::shape::{Head, Shape};

/// Rows of a set, as a step takes them.
#[derive(Clone)]
pub(crate) struct Batch<'a> {
    pub(crate) set: &'a Problem,
    /// Which rows, as positions in the order.
    pub(crate) rows: Range<usize>,
    /// Where the rows of these positions lie; none for the order of the set.
    pub(crate) order: Option<Permutation>,
    /// Factor of the inputs.
    pub(crate) scale: f32,
}

impl Batch<'_> {
    pub(super) fn place(&self, row: usize) -> usize {
        self.order.map_or(row, |order| order.get(row))
    }
}

/// Memory of one group of tiles, and what it sums up.
pub(super) struct Group {
    /// Rows of a tile that do not lie together or are scaled; empty until there are such.
    x: Vec<f32>,
    /// Outputs of each layer, those of the last one where the head is a sum included.
    acts: Vec<Vec<f32>>,
    /// Residuals of two neighbouring layers.
    back: [Vec<f32>; 2],
    labels: Vec<f32>,
    classes: Vec<u16>,
    pub(super) gradient: Vec<f32>,
    pub(super) loss: f64,
    pub(super) right: usize,
    pub(super) failed: Option<tamis::Error>,
}

/// One pass, as every group sees it.
pub(super) struct Work<'a> {
    pub(super) shape: &'a Shape,
    pub(super) task: Task,
    pub(super) weights: &'a [f32],
    pub(super) batch: &'a Batch<'a>,
    pub(super) tile: usize,
    /// Factor from residuals to the gradient; none for the loss alone.
    pub(super) scale: Option<f32>,
    pub(super) stop: &'a Stop,
}

impl Work<'_> {
    fn weights(&self, layer: usize) -> Mat<'_> {
        let layer = self.shape.layer(layer);
        Mat::new(&self.weights[layer.range], layer.outputs, layer.inputs)
    }

    /// The labels of each of `rows`, `width` of them, with its position among these.
    fn label_rows(&self, rows: Range<usize>, width: usize, mut put: impl FnMut(usize, &[f32])) {
        for (at, row) in rows.enumerate() {
            put(at, &self.batch.set.labels[self.batch.place(row) * width..][..width]);
        }
    }
}

/// The inputs of `rows`: where they lie, or gathered and scaled in `x`.
fn inputs<'a>(x: &'a mut Vec<f32>, batch: &Batch<'a>, rows: Range<usize>) -> &'a [f32] {
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
    for (row, x) in rows.zip(x.chunks_exact_mut(d)) {
        let from = batch.place(row) * d;
        match &batch.set.data.values {
            Values::F32(values) => {
                x.iter_mut().zip(&values[from..][..d]).for_each(|(x, v)| *x = v * scale);
            }
            Values::U8(values) => {
                x.iter_mut()
                    .zip(&values[from..][..d])
                    .for_each(|(x, b)| *x = f32::from(*b) * scale);
            }
        }
    }
    x
}

/// Outputs of all layers for `n` rows.
fn forward(work: &Work<'_>, x: &[f32], acts: &mut [Vec<f32>], n: usize) {
    for (l, layer) in work.shape.layers().enumerate() {
        let (before, from) = acts.split_at_mut(l);
        let left = before.last().map_or(x, |act| &act[..n * layer.inputs]);
        let out = &mut from[0][..n * layer.outputs];
        product(out, false, 1.0, Mat::new(left, n, layer.inputs), work.weights(l).t());
        if layer.relu {
            // What is no number stays so, and is found out.
            out.iter_mut().for_each(|z| *z = if *z <= 0.0 { 0.0 } else { *z });
        }
    }
    if work.shape.head == Head::Sum
        && let [.., neurons, out] = acts
    {
        let width = neurons.len() / out.len();
        for (out, neurons) in out.iter_mut().zip(neurons.chunks_exact(width)).take(n) {
            *out = 0.0;
            neurons.iter().for_each(|a| *out += *a);
        }
    }
}

/// How many of the rows have the right class.
fn right(work: &Work<'_>, rows: Range<usize>, out: &[f32]) -> usize {
    let mut count = 0;
    let outputs = work.shape.outputs();
    match work.task {
        Task::Regression => {}
        Task::Binary => work.label_rows(rows, outputs, |at, label| {
            count += usize::from((out[at] >= 0.5) == (label[0] >= 0.5));
        }),
        Task::Multiclass => work.label_rows(rows, 1, |at, label| {
            count += usize::from(loss::best(&out[at * outputs..][..outputs]) == label[0] as usize);
        }),
    }
    count
}

impl Group {
    pub(super) fn new(shape: &Shape, task: Task, tile: usize) -> Self {
        let classes = if task == Task::Multiclass { tile } else { 0 };
        Self {
            x: Vec::new(),
            acts: shape.acts().map(|width| vec![0.0; tile * width]).collect(),
            back: [(); 2].map(|()| vec![0.0; tile * shape.widest()]),
            labels: vec![0.0; tile * shape.labels(task)],
            classes: vec![0; classes],
            gradient: vec![0.0; shape.weights()],
            loss: 0.0,
            right: 0,
            failed: None,
        }
    }

    /// Runs the tiles of the group.
    pub(super) fn run(&mut self, work: &Work<'_>, tiles: Range<usize>) {
        (self.loss, self.right, self.failed) = (0.0, 0, None);
        for tile in tiles.clone() {
            if work.stop.asked() {
                self.failed = Some(tamis::Error::Stopped);
                return;
            }
            let all = &work.batch.rows;
            let start = all.start + tile * work.tile;
            let rows = start..(start + work.tile).min(all.end);
            if let Err(error) = self.tile(work, rows, tile > tiles.start) {
                self.failed = Some(error);
                return;
            }
        }
    }

    /// One tile; `add` where the gradient already holds that of others.
    fn tile(&mut self, work: &Work<'_>, rows: Range<usize>, add: bool) -> tamis::Result<()> {
        let Self { x, acts, back, gradient, .. } = self;
        let n = rows.len();
        let x = inputs(x, work.batch, rows.clone());
        forward(work, x, acts, n);
        let [mut residual, mut other] = back.each_mut().map(|back| &mut back[..]);
        let outputs = work.shape.outputs();
        residual[..n * outputs].copy_from_slice(&acts[acts.len() - 1][..n * outputs]);
        let out = &mut residual[..n * outputs];
        if work.scale.is_none() {
            self.right += right(work, rows.clone(), out);
        }
        let loss: f64 = match work.task {
            Task::Multiclass => {
                work.label_rows(rows, 1, |at, row| self.classes[at] = row[0] as u16);
                loss::cross_entropy(&self.classes[..n], outputs, out)?.into()
            }
            Task::Regression | Task::Binary => {
                let put = |at: usize, row: &[f32]| {
                    self.labels[at * outputs..][..outputs].copy_from_slice(row);
                };
                work.label_rows(rows, outputs, put);
                loss::square(&self.labels[..n * outputs], out)?.into()
            }
        };
        self.loss += loss;
        let Some(scale) = work.scale else { return Ok(()) };
        if work.shape.head == Head::Sum {
            // Every neuron of the last layer has the residual of the row.
            let width = work.shape.layer(work.shape.layers().len() - 1).outputs;
            for (all, one) in other.chunks_exact_mut(width).zip(&residual[..n]) {
                all.fill(*one);
            }
            std::mem::swap(&mut residual, &mut other);
        }
        for l in (0..work.shape.layers().len()).rev() {
            let layer = work.shape.layer(l);
            if layer.relu {
                for (r, a) in residual.iter_mut().zip(&acts[l][..n * layer.outputs]) {
                    *r = if *a > 0.0 { *r } else { 0.0 };
                }
            }
            let r = Mat::new(&residual[..n * layer.outputs], n, layer.outputs);
            let left = if l == 0 { x } else { &acts[l - 1][..n * layer.inputs] };
            let left = Mat::new(left, n, layer.inputs);
            product(&mut gradient[layer.range], add, scale, r.t(), left);
            if l > 0 {
                product(&mut other[..n * layer.inputs], false, 1.0, r, work.weights(l));
                std::mem::swap(&mut residual, &mut other);
            }
        }
        Ok(())
    }
}
