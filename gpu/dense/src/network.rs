//! A dense network of tensors: forwards, back, and tangents.
//!
//! With `a_0 = x`, `a_l = relu(a_(l-1) W_l^T)` and the residual `r` of the outputs (label minus output, or of
//! several classes label minus softmax), the gradient is `scale r_l^T a_(l-1)` for each layer, where
//! `r_(l-1) = (r_l W_l) * 1[a_(l-1) > 0]`.

use burn_tensor::activation::{log_sigmoid, log_softmax, sigmoid};
use burn_tensor::{Device, Tensor, TensorData};
use tamis_host::data::Task;
use tamis_host::operator::Stop;
use tamis_host::train::dense::{Batch, Head, Layer, Measure, Shape};
use tamis_host::{Error, Result};

use crate::error::failed;
use crate::rows::{inputs, labels, tiles};

/// The weights of a network on a device.
pub(crate) struct Network<'a> {
    shape: &'a Shape,
    task: Task,
    /// Of each layer outputs×inputs.
    pub(crate) weights: Vec<Tensor<2>>,
    /// Factor of the outputs of several classes before the softmax.
    coldness: f32,
    device: &'a Device,
}

/// The residual of some rows.
#[derive(Clone)]
pub(crate) struct Residual {
    /// n×outputs.
    pub(crate) values: Tensor<2>,
    /// The sum of the losses of all rows.
    pub(crate) loss: Tensor<1>,
    /// The softmax, of several classes; of one output the probability of class 1.
    share: Option<Tensor<2>>,
}

impl<'a> Network<'a> {
    pub(crate) fn new(
        shape: &'a Shape,
        task: Task,
        weights: &[f32],
        temperature: f32,
        device: &'a Device,
    ) -> Self {
        let weights = tensors(shape, weights, device);
        Self { shape, task, weights, coldness: 1.0 / temperature, device }
    }

    /// The same with other weights.
    pub(crate) fn with_weights(&self, weights: &[f32]) -> Vec<Tensor<2>> {
        tensors(self.shape, weights, self.device)
    }

    pub(crate) fn zeros(&self) -> Vec<Tensor<2>> {
        self.weights.iter().map(Tensor::zeros_like).collect()
    }

    pub(crate) fn has_classes(&self) -> bool {
        self.task != Task::Regression
    }

    /// What the losses of so many rows are divided by.
    pub(crate) fn terms(&self, rows: usize) -> f64 {
        let each = if self.task == Task::Multiclass { 1 } else { self.shape.outputs() };
        (rows * each).max(1) as f64
    }

    /// Factor from residuals of so many rows to the gradient.
    pub(crate) fn scale(&self, rows: usize) -> f32 {
        // The square has the slope 2.
        let slope = if self.task == Task::Multiclass { self.coldness } else { 2.0 };
        (-f64::from(slope) / self.terms(rows)) as f32
    }

    fn layers(&self) -> Vec<Layer> {
        self.shape.layers().collect()
    }

    /// `a_0` to `a_L`, and the sum of the last where the head is one.
    pub(crate) fn forward(&self, x: Tensor<2>) -> Vec<Tensor<2>> {
        let mut acts = vec![x];
        for (layer, w) in self.shape.layers().zip(&self.weights) {
            let z = acts[acts.len() - 1].clone().matmul(w.clone().transpose());
            // What is no number stays so, and is found out.
            let off = layer.relu.then(|| z.clone().lower_equal_scalar(0.0));
            acts.push(match off {
                Some(off) => z.mask_fill(off, 0.0),
                None => z,
            });
        }
        if self.shape.head == Head::Sum {
            acts.push(acts[acts.len() - 1].clone().sum_dim(1));
        }
        acts
    }

    /// Residual and loss of what [`Self::forward`] gave.
    pub(crate) fn residual(&self, acts: &[Tensor<2>], y: Tensor<2>) -> Residual {
        let out = acts[acts.len() - 1].clone();
        if self.task != Task::Multiclass {
            let values = y - out;
            let loss = values.clone().square().sum();
            return Residual { values, loss, share: None };
        }
        let out = out.mul_scalar(self.coldness);
        if self.shape.outputs() == 1 {
            let loss =
                (log_sigmoid(out.clone()) + y.clone().sub_scalar(1.0) * out.clone()).sum().neg();
            let share = sigmoid(out);
            return Residual { values: y - share.clone(), loss, share: Some(share) };
        }
        let logs = log_softmax(out, 1);
        let loss = (y.clone() * logs.clone()).sum().neg();
        let share = logs.exp();
        Residual { values: y - share.clone(), loss, share: Some(share) }
    }

    /// How many rows have the right class.
    fn right(&self, acts: &[Tensor<2>], y: &Tensor<2>) -> Result<usize> {
        let (out, y) = (acts[acts.len() - 1].clone(), y.clone());
        let same = match self.task {
            Task::Regression => return Ok(0),
            Task::Binary => out.greater_equal_scalar(0.5).equal(y.greater_equal_scalar(0.5)),
            Task::Multiclass if self.shape.outputs() == 1 => {
                out.greater_equal_scalar(0.0).equal(y.greater_equal_scalar(0.5))
            }
            Task::Multiclass => out.argmax(1).equal(y.argmax(1)),
        };
        Ok(self.number(same.float().sum())? as usize)
    }

    /// How good the network is on a batch; `stop` ends it within a tile.
    pub(crate) fn measure(&self, batch: &Batch<'_>, stop: &Stop) -> Result<Measure> {
        let (mut loss, mut right) = (0.0, 0);
        for rows in tiles(batch, self.shape) {
            if stop.asked() {
                return Err(Error::interrupted());
            }
            let acts = self.forward(inputs(batch, rows.clone(), self.device));
            let y = labels(batch, rows, self.shape, self.device)?;
            right += self.right(&acts, &y)?;
            loss += self.number(self.residual(&acts, y).loss)?;
        }
        let rows = batch.rows.len();
        let right = self.has_classes().then_some(right);
        Ok(Measure { rows, loss: loss / self.terms(rows), right })
    }

    /// `scale r_l^T a_(l-1)` of each layer.
    pub(crate) fn gradient(
        &self,
        acts: &[Tensor<2>],
        residual: Tensor<2>,
        scale: f32,
    ) -> Vec<Tensor<2>> {
        let mut back = self.spread(residual);
        let mut own = Vec::new();
        for (l, layer) in self.layers().iter().enumerate().rev() {
            back = gate(layer, &acts[l + 1], back);
            own.push(back.clone().transpose().matmul(acts[l].clone()).mul_scalar(scale));
            if l > 0 {
                back = back.matmul(self.weights[l].clone());
            }
        }
        own.reverse();
        own
    }

    /// The Hessian of the loss times `v`: forwards and back once more, each with its tangent.
    pub(crate) fn hessian_product(
        &self,
        acts: &[Tensor<2>],
        residual: Residual,
        v: &[Tensor<2>],
        scale: f32,
    ) -> Vec<Tensor<2>> {
        let layers = self.layers();
        let mut tangents = vec![acts[0].zeros_like()];
        for (l, layer) in layers.iter().enumerate() {
            let (before, w) = (tangents[l].clone(), self.weights[l].clone());
            let moved =
                acts[l].clone().matmul(v[l].clone().transpose()) + before.matmul(w.transpose());
            tangents.push(gate(layer, &acts[l + 1], moved));
        }
        let out = tangents[layers.len()].clone();
        let out = if self.shape.head == Head::Sum { out.sum_dim(1) } else { out };
        let moved = match residual.share {
            None => out.neg(),
            Some(share) => {
                let out = out.mul_scalar(self.coldness);
                match self.shape.outputs() {
                    1 => (share.clone() * share.sub_scalar(1.0)) * out,
                    _ => {
                        let mean = (share.clone() * out.clone()).sum_dim(1);
                        (share * (out - mean)).neg()
                    }
                }
            }
        };
        let (mut back, mut moved) = (self.spread(residual.values), self.spread(moved));
        let mut own = Vec::new();
        for (l, layer) in layers.iter().enumerate().rev() {
            back = gate(layer, &acts[l + 1], back);
            moved = gate(layer, &acts[l + 1], moved);
            let by_moved = moved.clone().transpose().matmul(acts[l].clone());
            let by_back = back.clone().transpose().matmul(tangents[l].clone());
            own.push((by_moved + by_back).mul_scalar(scale));
            if l > 0 {
                let w = self.weights[l].clone();
                moved = moved.matmul(w.clone()) + back.clone().matmul(v[l].clone());
                back = back.matmul(w);
            }
        }
        own.reverse();
        own
    }

    /// `(d out_k / d w)²` over rows and outputs k.
    pub(crate) fn jacobian_squares(&self, acts: &[Tensor<2>]) -> Vec<Tensor<2>> {
        let (layers, n) = (self.layers(), acts[0].dims()[0]);
        let outputs = self.shape.outputs();
        let mut sums = self.zeros();
        for k in 0..outputs {
            let mut one = vec![0.0; outputs];
            one[k] = 1.0;
            let one = Tensor::<2>::from_data(TensorData::new(one, [1, outputs]), self.device);
            let mut back = self.spread(one.repeat_dim(0, n));
            for (l, layer) in layers.iter().enumerate().rev() {
                back = gate(layer, &acts[l + 1], back);
                let own = back.clone().square().transpose().matmul(acts[l].clone().square());
                sums[l] = sums[l].clone() + own;
                if l > 0 {
                    back = back.matmul(self.weights[l].clone());
                }
            }
        }
        sums
    }

    /// `a_i²` over rows, for each weight from input i of its layer.
    pub(crate) fn input_squares(&self, acts: &[Tensor<2>]) -> Vec<Tensor<2>> {
        let squares = |(layer, a): (Layer, &Tensor<2>)| {
            a.clone().square().sum_dim(0).repeat_dim(0, layer.outputs)
        };
        self.shape.layers().zip(acts).map(squares).collect()
    }

    /// Where the head is a sum, each of its neurons has what its output has.
    fn spread(&self, values: Tensor<2>) -> Tensor<2> {
        match (self.shape.head, self.layers().last()) {
            (Head::Sum, Some(last)) => values.repeat_dim(1, last.outputs),
            _ => values,
        }
    }

    pub(crate) fn number(&self, of: Tensor<1>) -> Result<f64> {
        let number: f32 = of.try_into_scalar().map_err(|error| failed(self.device, error))?;
        Ok(f64::from(number))
    }

    /// What belongs to each weight, layer by layer, one after the other.
    pub(crate) fn flat(&self, of: Vec<Tensor<2>>) -> Result<Vec<f32>> {
        let mut all = Vec::with_capacity(self.shape.weights());
        for own in of {
            let own = own.try_into_vec_as::<f32>();
            all.extend(own.map_err(|error| failed(self.device, error))?);
        }
        Ok(all)
    }
}

/// Adds what belongs to each weight.
pub(crate) fn add(sums: Vec<Tensor<2>>, own: Vec<Tensor<2>>) -> Vec<Tensor<2>> {
    sums.into_iter().zip(own).map(|(sum, own)| sum + own).collect()
}

/// Values at a layer's outputs become 0 where its neurons are not active.
fn gate(layer: &Layer, act: &Tensor<2>, values: Tensor<2>) -> Tensor<2> {
    if !layer.relu {
        return values;
    }
    let active = act.clone().greater_scalar(0.0);
    values.mask_fill(active.bool_not(), 0.0)
}

/// What belongs to each weight, as a matrix for each layer.
pub(crate) fn tensors(shape: &Shape, values: &[f32], device: &Device) -> Vec<Tensor<2>> {
    let matrix = |layer: Layer| {
        let own = values[layer.range].to_vec();
        Tensor::from_data(TensorData::new(own, [layer.outputs, layer.inputs]), device)
    };
    shape.layers().map(matrix).collect()
}
