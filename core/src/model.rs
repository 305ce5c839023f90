//! Sparse layers and their prediction, on borrowed weights.
//!
//! A [`Model`] is a chain of layers: `x -> a_1(W_1 x) -> a_2(W_2 ·) -> …`, each `W_l` held as its nonzero entries
//! only ([`Csr`]), with a scalar `sum_j v_j h_j`, `v_j` = ±1, as the possible end ([`Sum`]). Nothing is copied: the
//! slices may lie in flash. Everything is checked once, when a layer or a model is made, so a prediction only
//! checks the lengths of its arguments.
//!
//! The order of all additions is fixed (each row from `+0`, entry by entry, product and sum rounded on their own; the
//! final sum from `+0`, neuron by neuron), so finite predictions have the same bits on every target.

mod csr;
mod input;
mod sum;

pub use csr::{Activation, Csr, MAX_INPUTS};
pub use input::{Input, Scaled};
pub use sum::Sum;

use crate::error::length;
use crate::{Error, Result};

/// The most layers that a [`Model`] holds.
pub const MAX_LAYERS: usize = 8;

/// One layer of a [`Model`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Layer<'a> {
    /// A sparse linear map and its activation.
    Csr(Csr<'a>),
    /// The scalar output `sum_j ±x_j`.
    Sum(Sum<'a>),
}

impl Layer<'_> {
    /// Numbers that the layer takes.
    #[must_use]
    pub fn inputs(&self) -> usize {
        match self {
            Layer::Csr(csr) => csr.inputs(),
            Layer::Sum(sum) => sum.inputs(),
        }
    }

    /// Numbers that the layer gives.
    #[must_use]
    pub fn outputs(&self) -> usize {
        match self {
            Layer::Csr(csr) => csr.outputs(),
            Layer::Sum(_) => 1,
        }
    }

    /// Outputs asked for in training, at least [`outputs`](Self::outputs).
    #[must_use]
    pub fn requested(&self) -> usize {
        match self {
            Layer::Csr(csr) => csr.requested(),
            Layer::Sum(_) => 1,
        }
    }

    fn apply<X: Input + ?Sized>(&self, x: &X, out: &mut [f32]) -> Result<()> {
        match self {
            Layer::Csr(csr) => csr.apply(x, out),
            Layer::Sum(sum) => put(out, sum.apply((0..x.len()).map(|i| x.at(i)))?),
        }
    }
}

/// A chain of one to [`MAX_LAYERS`] sparse layers.
///
/// ```
/// use tamis::model::{Activation, Csr, Layer, Model, Sum};
///
/// // f(x) = relu(x_0 - 0.5 x_2) - relu(2 x_1)
/// let hidden = Csr::new(3, &[2, 1], &[0, 2, 1], &[1.0, -0.5, 2.0], Activation::Relu)?;
/// let sum = Sum::new(2, &[0b10])?;
/// let model = Model::new(&[Layer::Csr(hidden), Layer::Sum(sum)])?;
/// assert_eq!((model.inputs(), model.outputs(), model.scratch_len()), (3, 1, 0));
///
/// let mut f = [0.0];
/// model.predict(&[3.0, 0.25, 1.0], &mut [], &mut f)?;
/// assert_eq!(f, [2.0]);
/// model.predict_u8(&[3, 0, 2], &mut [], &mut f)?;
/// assert_eq!(f, [2.0]);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Model<'a> {
    layers: heapless::Vec<Layer<'a>, MAX_LAYERS>,
}

impl<'a> Model<'a> {
    /// Chains `layers`, given in the order in which they run.
    ///
    /// # Errors
    /// [`Error::Range`] for no layer or more than [`MAX_LAYERS`], [`Error::Length`] where a layer does not take what
    /// the one before it gives or where a [`Sum`] is not the last.
    pub fn new(layers: &[Layer<'a>]) -> Result<Self> {
        let count = layers.len();
        let wrong = Error::Range { what: "layers of the model", min: 1, max: MAX_LAYERS, got: count };
        let layers = heapless::Vec::from_slice(layers).map_err(|_| wrong)?;
        let body = layers.split_last().ok_or(wrong)?.1;
        if let Some(at) = body.iter().position(|layer| matches!(layer, Layer::Sum(_))) {
            return Err(Error::Length { what: "layers up to the sum", expected: count, got: at + 1 });
        }
        for (before, after) in layers.iter().zip(layers.iter().skip(1)) {
            length("inputs of a layer", after.inputs(), before.outputs())?;
        }
        Ok(Self { layers })
    }

    /// The layers in the order in which they run.
    #[must_use]
    pub fn layers(&self) -> &[Layer<'a>] {
        &self.layers
    }

    /// Numbers in one input row.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.layers.first().map_or(0, Layer::inputs)
    }

    /// Numbers in one prediction.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.layers.last().map_or(0, Layer::outputs)
    }

    /// Numbers of `f32` that [`predict`](Self::predict) needs to put the activations between layers; 0 for one
    /// hidden layer under a [`Sum`].
    ///
    /// Two neighbouring layers share the scratch from both ends, so this is the largest sum of two neighbours.
    #[must_use]
    pub fn scratch_len(&self) -> usize {
        let body = self.split().0;
        let alone = body.first().map_or(0, Layer::outputs);
        let pairs = body.iter().zip(body.iter().skip(1));
        pairs.map(|(a, b)| a.outputs().saturating_add(b.outputs())).fold(alone, usize::max)
    }

    /// Layers, from the first, whose outputs go to the scratch.
    #[must_use]
    pub fn kept_activations(&self) -> usize {
        self.split().0.len()
    }

    /// Predicts one row: `x[inputs]`, `scratch[scratch_len]` or longer, `out[outputs]`.
    ///
    /// # Errors
    /// [`Error::Length`] if `x` or `out` has another length, [`Error::Budget`] if `scratch` is too short.
    pub fn predict(&self, x: &[f32], scratch: &mut [f32], out: &mut [f32]) -> Result<()> {
        self.predict_from(x, scratch, out)
    }

    /// Predicts one row of bytes that stand for the numbers 0 to 255; lengths as for [`predict`](Self::predict).
    ///
    /// For bytes that stand for `byte * scale`, use [`predict_from`](Self::predict_from) with [`Scaled`].
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    pub fn predict_u8(&self, x: &[u8], scratch: &mut [f32], out: &mut [f32]) -> Result<()> {
        self.predict_from(x, scratch, out)
    }

    /// Predicts one row read from any [`Input`]; lengths as for [`predict`](Self::predict).
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    pub fn predict_from<X>(&self, x: &X, scratch: &mut [f32], out: &mut [f32]) -> Result<()>
    where
        X: Input + ?Sized,
    {
        length("input row", x.len(), self.inputs())?;
        length("prediction", out.len(), self.outputs())?;
        let (body, tail) = self.split();
        let Some((first, rest)) = body.split_first() else { return run_tail(tail, x, out) };
        let mut ends = Ends::new(scratch, self.scratch_len())?;
        let (_, next) = ends.step(first.outputs())?;
        first.apply(x, next)?;
        for layer in rest {
            let (now, next) = ends.step(layer.outputs())?;
            layer.apply(now, next)?;
        }
        run_tail(tail, ends.step(0)?.0, out)
    }

    /// The layers whose activations go to the scratch, and those that give the prediction from them.
    fn split(&self) -> (&[Layer<'a>], &[Layer<'a>]) {
        let fused = matches!(self.layers.as_slice(), [.., Layer::Csr(_), Layer::Sum(_)]);
        let tail = if fused { 2 } else { 1 };
        self.layers.split_at_checked(self.layers.len().saturating_sub(tail)).unwrap_or_default()
    }
}

/// The last layer, or the last two where no activation has to be kept.
fn run_tail<X: Input + ?Sized>(tail: &[Layer<'_>], x: &X, out: &mut [f32]) -> Result<()> {
    match tail {
        [Layer::Csr(csr), Layer::Sum(sum)] => put(out, sum.apply(csr.rows(x))?),
        [layer] => layer.apply(x, out),
        _ => Ok(()),
    }
}

fn put(out: &mut [f32], value: f32) -> Result<()> {
    let slot = out.first_mut().ok_or(Error::Length { what: "prediction", expected: 1, got: 0 })?;
    *slot = value;
    Ok(())
}

/// The scratch, used from both ends in turn: what a layer reads at one end, the next one writes at the other.
struct Ends<'s> {
    scratch: &'s mut [f32],
    /// Length of the activations that were written last.
    now: usize,
    /// They lie at the start, not at the end.
    at_start: bool,
}

impl<'s> Ends<'s> {
    fn new(scratch: &'s mut [f32], needed: usize) -> Result<Self> {
        let got = size_of_val(scratch);
        let short = Error::Budget { needed: needed.saturating_mul(size_of::<f32>()), got };
        let scratch = scratch.get_mut(..needed).ok_or(short)?;
        Ok(Self { scratch, now: 0, at_start: false })
    }

    /// What was written last, and room for `len` numbers at the other end.
    fn step(&mut self, len: usize) -> Result<(&[f32], &mut [f32])> {
        let (total, now) = (self.scratch.len(), self.now);
        let short = Error::Length { what: "scratch", expected: now.saturating_add(len), got: total };
        let free = total.checked_sub(now).and_then(|free| free.checked_sub(len)).ok_or(short)?;
        let cut = if self.at_start { now } else { len };
        let (start, end) = self.scratch.split_at_mut_checked(cut).ok_or(short)?;
        let end = end.get_mut(free..).ok_or(short)?;
        let (old, new) = if self.at_start { (start, end) } else { (end, start) };
        (self.now, self.at_start) = (len, !self.at_start);
        Ok((old, new))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;

    fn relu<'a>(inputs: usize, counts: &'a [u16], columns: &'a [u16], values: &'a [f32]) -> Layer<'a> {
        Layer::Csr(Csr::new(inputs, counts, columns, values, Activation::Relu).unwrap())
    }

    #[test]
    fn deep_chains_alternate_between_the_ends_of_the_scratch() {
        let first = relu(2, &[1, 1, 2], &[0, 1, 0, 1], &[1.0, 2.0, 1.0, 1.0]);
        let second = relu(3, &[1, 2], &[2, 0, 1], &[3.0, 1.0, -1.0]);
        let third = relu(2, &[2, 0, 1, 1], &[0, 1, 0, 1], &[1.0, 1.0, -1.0, 4.0]);
        let last = Csr::new(4, &[2, 1], &[0, 3, 2], &[1.0, -1.0, 7.0], Activation::Identity).unwrap();
        let model = Model::new(&[first, second, third, Layer::Csr(last)]).unwrap();
        assert_eq!((model.inputs(), model.outputs(), model.scratch_len()), (2, 2, 6));
        // x = (5, 1): (5, 2, 6), (18, 3), (21, 0, 0, 12), (9, 0)
        let mut out = [f32::NAN; 2];
        let mut scratch = vec![f32::NAN; 9];
        model.predict(&[5.0, 1.0], &mut scratch, &mut out).unwrap();
        assert_eq!(out, [9.0, 0.0]);
        assert!(scratch.iter().skip(6).all(|unused| unused.is_nan()));
    }

    #[test]
    fn two_hidden_layers_under_a_sum_keep_only_the_first() {
        let first = relu(2, &[1, 1], &[0, 1], &[1.0, 1.0]);
        let second = relu(2, &[1, 2, 1], &[0, 0, 1, 1], &[1.0, 1.0, 1.0, 10.0]);
        let model = Model::new(&[first, second, Layer::Sum(Sum::new(3, &[0b010]).unwrap())]).unwrap();
        assert_eq!((model.scratch_len(), model.kept_activations()), (2, 1));
        let mut out = [0.0];
        model.predict(&[2.0, 3.0], &mut [0.0; 2], &mut out).unwrap();
        assert_eq!(out, [2.0 - 5.0 + 30.0]);
        assert_eq!(
            model.predict(&[2.0, 3.0], &mut [0.0; 1], &mut out),
            Err(Error::Budget { needed: 8, got: 4 })
        );
    }

    #[test]
    fn arguments_of_other_lengths_are_refused() {
        let model = Model::new(&[relu(2, &[1], &[1], &[1.0])]).unwrap();
        let wrong = |what, expected, got| Err(Error::Length { what, expected, got });
        assert_eq!(model.predict(&[1.0], &mut [], &mut [0.0]), wrong("input row", 2, 1));
        assert_eq!(model.predict(&[1.0, 2.0], &mut [], &mut []), wrong("prediction", 1, 0));
        assert_eq!(model.predict_u8(&[1, 2, 3], &mut [], &mut [0.0]), wrong("input row", 2, 3));
    }

    #[test]
    fn chains_that_do_not_fit_are_refused() {
        let layer = relu(2, &[1], &[1], &[1.0]);
        let sum = Layer::Sum(Sum::new(1, &[0]).unwrap());
        let layers = |min, max, got| Err(Error::Range { what: "layers of the model", min, max, got });
        assert_eq!(Model::new(&[]), layers(1, MAX_LAYERS, 0));
        assert_eq!(Model::new(&[layer; MAX_LAYERS + 1]), layers(1, MAX_LAYERS, MAX_LAYERS + 1));
        assert_eq!(
            Model::new(&[layer, layer]),
            Err(Error::Length { what: "inputs of a layer", expected: 1, got: 2 })
        );
        assert!(Model::new(&[layer, sum]).is_ok());
        assert_eq!(
            Model::new(&[layer, sum, sum]),
            Err(Error::Length { what: "layers up to the sum", expected: 3, got: 2 })
        );
    }

    #[test]
    fn bytes_and_scaled_bytes_give_the_bits_of_the_floats_they_stand_for() {
        let layer = relu(
            6,
            &[6, 5],
            &[0, 1, 2, 3, 4, 5, 0, 1, 2, 4, 5],
            &[0.1, 0.7, -0.3, 0.9, 0.2, -0.1, 0.3, 0.3, 0.4, 0.5, 0.6],
        );
        let model = Model::new(&[layer, Layer::Sum(Sum::new(2, &[0b10]).unwrap())]).unwrap();
        let bytes = [255, 3, 0, 17, 99, 200];
        let (mut a, mut b) = ([0.0], [0.0]);
        model.predict(&bytes.map(f32::from), &mut [], &mut a).unwrap();
        model.predict_u8(&bytes, &mut [], &mut b).unwrap();
        assert_eq!(a, b);
        model.predict(&bytes.map(|x| f32::from(x) * 0.003), &mut [], &mut a).unwrap();
        model.predict_from(&Scaled { bytes: &bytes, scale: 0.003 }, &mut [], &mut b).unwrap();
        assert_eq!(a, b);
    }
}
