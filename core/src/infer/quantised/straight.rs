//! Derivatives of a model of integers, straight through its rounding (*straight-through
//! estimation*): predict with the integers, differentiate as if nothing were rounded.
//!
//! A byte `a = cut(r s)` of a sum `s = b + sum_k w_k x_k` has the derivative `r` by `s` from 1 to
//! 254, and 0 where it is cut. The prediction itself is that of [`Chain::predict_observed`], the
//! code that microcontrollers run.

use super::{Chain, Layer, Rescale};
#[cfg(any(doc, test))]
use crate::Error;
use crate::Result;
use crate::base::bits::is_set;
use crate::base::error::length;

/// Bytes that the hidden layers give on a row: all layers before a sum, else all but the last.
#[must_use]
pub fn bytes(model: &Chain<'_>) -> usize {
    hidden(model).iter().fold(0, |sum: usize, layer| sum.saturating_add(layer.outputs()))
}

fn hidden<'a>(model: &Chain<'a>) -> &'a [Layer<'a>] {
    match (model.sum(), model.layers()) {
        (None, [hidden @ .., _]) => hidden,
        (_, layers) => layers,
    }
}

/// Adds the derivatives of `sum_k residual[k] y[k]` by every weight and every bias to `gradient`,
/// with `y` the outputs of the row `x[inputs]`.
///
/// * `given[bytes]` is what [`Chain::predict_observed`] has shown on the row of the layers that
///   give bytes ([`bytes`]), and `deltas` as many words, for use in here.
/// * `residual[outputs]` is by the integers that come out; where relu behind a last layer has cut
///   an output, it is 0.
/// * `gradient` has the **last layer first**: of each layer its weights, in the order of
///   [`Weights::entries`](super::Weights::entries), then a number for each output: that of its
///   bias, whether it has one or not. All is in units of the integers.
///
/// A bias is taken to follow the weights where the byte [`Scales::zero`](super::Scales::zero)
/// stands for 0: a weight that grows by 1 takes `zero` from it, so an input that is 0 has no
/// derivative.
///
/// # Errors
/// [`Error::Length`] for a slice of another length; of `gradient` once it was added to.
///
/// ```
/// use tamis::infer::model::Activation;
/// use tamis::infer::quantised::{Chain, Dense, Layer, Rescale, Scales, Weights, straight};
///
/// // h = relu(100 x_0 - 50 x_1) / 128, y = 3 h
/// let factor = [Rescale::near(1.0 / 128.0)?.bits()];
/// let first = Layer::new(Weights::Dense(Dense::new(2, 1, &[100, -50])?), &factor, &[], Activation::Relu)?;
/// let last = Layer::new(Weights::Dense(Dense::new(1, 1, &[3])?), &[], &[], Activation::Identity)?;
/// let layers = [first, last];
/// let model: Chain<'_> = Chain::new(&layers, None, Scales::new(1.0, 1.0, 0, 0)?)?;
///
/// let (x, mut given, mut y) = ([128, 64], [0; 1], [0]);
/// model.predict_observed(&x, &mut [0; 2], &mut y, |layer, neuron, value| {
///     if layer == 0 {
///         given[neuron] = value as u8;
///     }
/// })?;
/// let mut gradient = [0.0; 5];
/// straight::add_gradient(&model, &x, &given, &[1.0], &mut [0.0; 1], &mut gradient)?;
/// // y by its weight and bias, then by the weights of h and its bias.
/// assert_eq!((given, gradient), ([75], [75.0, 1.0, 3.0, 1.5, 3.0 / 128.0]));
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn add_gradient(
    model: &Chain<'_>,
    x: &[u8],
    given: &[u8],
    residual: &[f32],
    deltas: &mut [f32],
    gradient: &mut [f32],
) -> Result<()> {
    length("input row", x.len(), model.inputs())?;
    length("residual", residual.len(), model.outputs())?;
    length("bytes of hidden layers", given.len(), bytes(model))?;
    length("words for deltas", deltas.len(), given.len())?;
    deltas.fill(0.0);
    if let (Some(sum), [residual]) = (model.sum(), residual) {
        let first = deltas.len().saturating_sub(sum.inputs());
        for (i, delta) in deltas.get_mut(first..).unwrap_or_default().iter_mut().enumerate() {
            *delta = if is_set(sum.signs(), i) { -residual } else { *residual };
        }
    }
    let (mut end, mut done, mut is_last) = (given.len(), 0, model.sum().is_none());
    for (at, layer) in model.layers().iter().enumerate().rev() {
        let start = if is_last { end } else { end.saturating_sub(layer.outputs()) };
        let before = if at == 0 { start } else { start.saturating_sub(layer.inputs()) };
        let (left, own) = deltas.split_at_mut(start);
        let own = own.get_mut(..end - start).unwrap_or_default();
        let bytes = given.get(start..end).unwrap_or_default();
        for ((delta, byte), j) in own.iter_mut().zip(bytes).zip(0..) {
            *delta = if (1..=254).contains(byte) { *delta * factor(layer, j) } else { 0.0 };
        }
        let delta = |j: usize| match is_last {
            true => residual.get(j).map_or(0.0, |residual| residual * factor(layer, j)),
            false => own.get(j).copied().unwrap_or(0.0),
        };
        let zero = if at == 0 { model.scales().zero } else { 0 };
        let row = if at == 0 { x } else { given.get(before..start).unwrap_or_default() };
        let below = left.get_mut(before..).unwrap_or_default();
        layer.weights().entries(&mut |j, k, weight| {
            let (delta, k) = (delta(j), usize::from(k));
            if delta != 0.0 {
                let number = row.get(k).map_or(0, |&byte| i16::from(byte) - i16::from(zero));
                add(gradient, done, delta * f32::from(number));
                add(below, k, delta * f32::from(weight));
            }
            done += 1;
        });
        for j in 0..layer.outputs() {
            add(gradient, done, delta(j));
            done += 1;
        }
        (end, is_last) = (start, false);
    }
    length("derivatives", gradient.len(), done)
}

fn add(sums: &mut [f32], at: usize, number: f32) {
    if let Some(sum) = sums.get_mut(at) {
        *sum += number;
    }
}

/// The factor of output `j`; 1 where sums stay as they are.
fn factor(layer: &Layer<'_>, j: usize) -> f32 {
    match layer.rescale() {
        [] => 1.0,
        [one] => Rescale::known(*one).value(),
        each => each.get(j).map_or(0.0, |&factor| Rescale::known(factor).value()),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;
    use crate::infer::model::{Activation, Sum};
    use crate::infer::quantised::{Mask, Scales, Weights};

    const FACTOR: f32 = 1.0 / 64.0;
    /// Weights and biases of 2 neurons on 3 inputs and of 2 on these, by which sums are multiples
    /// of 64.
    const FIRST: [i8; 5] = [64, -32, 32, 96, 64];
    const SECOND: [i8; 3] = [64, 32, -64];
    const BIAS: [[i32; 2]; 2] = [[640, -64], [128, 256]];

    /// As the model without any rounding: `y = c_0 h_0 - c_1 h_1` behind two layers cut to 0 to
    /// 255.
    fn soft(x: &[f64; 3], zero: f64, p: &[f64]) -> f64 {
        let x = x.map(|x| x - zero);
        let cut = |sum: f64| (sum * f64::from(FACTOR)).clamp(0.0, 255.0);
        let a = [
            cut(p[5] + p[0] * x[0] + p[1] * x[2]),
            cut(p[6] + p[2] * x[0] + p[3] * x[1] + p[4] * x[2]),
        ];
        let h = [cut(p[10] + p[7] * a[0]), cut(p[11] + p[8] * a[0] + p[9] * a[1])];
        h[0] - h[1]
    }

    /// The gradient and the bytes of the model, in the order of `soft`.
    fn straight(x: &[u8; 3], zero: u8) -> (Vec<f64>, Vec<u8>) {
        let factor = [Rescale::near(FACTOR).unwrap().bits()];
        let taken = [64 - 32, 32 + 96 + 64].map(|sum| i32::from(zero) * sum);
        let bias = [BIAS[0][0] - taken[0], BIAS[0][1] - taken[1]];
        let first = Weights::Mask(Mask::new(3, 2, &[0b101, 0b111], &FIRST).unwrap());
        let second = Weights::Mask(Mask::new(2, 2, &[0b01, 0b11], &SECOND).unwrap());
        let layers = [
            Layer::new(first, &factor, &bias, Activation::Relu).unwrap(),
            Layer::new(second, &factor, &BIAS[1], Activation::Relu).unwrap(),
        ];
        let sum = Sum::new(2, &[0b10]).unwrap();
        let model: Chain<'_> =
            Chain::new(&layers, Some(sum), Scales::new(1.0, 1.0, zero, 0).unwrap()).unwrap();
        let (mut given, mut y) = (Vec::new(), [0]);
        model
            .predict_observed(x, &mut [0; 4], &mut y, |layer, _, value| {
                given.extend((layer < 2).then_some(value as u8));
            })
            .unwrap();
        let mut gradient = [0.0; 12];
        add_gradient(&model, x, &given, &[1.0], &mut [0.0; 4], &mut gradient).unwrap();
        let (last, first) = gradient.split_at(5);
        (first.iter().chain(last).map(|&g| f64::from(g)).collect(), given)
    }

    #[test]
    fn derivatives_are_those_of_the_model_without_rounding() {
        let numbers = FIRST.iter().map(|&w| f64::from(w));
        let numbers = numbers.chain(BIAS[0].map(f64::from));
        let numbers = numbers.chain(SECOND.iter().map(|&w| f64::from(w)));
        let p: Vec<f64> = numbers.chain(BIAS[1].map(f64::from)).collect();
        let mut open = 0;
        for (x, zero) in [
            ([40, 4, 10], 0),
            ([60, 12, 30], 8),
            ([0, 0, 40], 0),
            ([200, 90, 20], 0),
            ([20, 30, 40], 16),
        ] {
            let (gradient, given) = straight(&x, zero);
            open += given.iter().filter(|byte| (1..=254).contains(*byte)).count();
            for i in 0..p.len() {
                let at = |step: f64| {
                    let mut moved = p.clone();
                    moved[i] += step;
                    soft(&x.map(f64::from), zero.into(), &moved)
                };
                let slope = (at(1e-4) - at(-1e-4)) / 2e-4;
                assert!(
                    (slope - gradient[i]).abs() < 1e-4 * slope.abs().max(1.0),
                    "{x:?} {i}: {slope} {}",
                    gradient[i]
                );
            }
        }
        // Neurons that are open, closed and full were all seen.
        assert!((8..20).contains(&open), "{open}");
    }

    #[test]
    fn other_lengths_are_refused() {
        let last = Weights::Mask(Mask::new(2, 1, &[0b10], &[3]).unwrap());
        let layers = [Layer::new(last, &[], &[], Activation::Identity).unwrap()];
        let model: Chain<'_> =
            Chain::new(&layers, None, Scales::new(1.0, 1.0, 0, 0).unwrap()).unwrap();
        let run = |x: &[u8], given: &[u8], residual: &[f32], deltas: usize, gradient: usize| {
            add_gradient(
                &model,
                x,
                given,
                residual,
                &mut std::vec![0.0; deltas],
                &mut std::vec![0.0; gradient],
            )
        };
        assert_eq!(run(&[1, 2], &[], &[1.0], 0, 2), Ok(()));
        let wrong = [
            run(&[1], &[], &[1.0], 0, 2),
            run(&[1, 2], &[1], &[1.0], 1, 2),
            run(&[1, 2], &[], &[], 0, 2),
            run(&[1, 2], &[], &[1.0], 1, 2),
            run(&[1, 2], &[], &[1.0], 0, 3),
            run(&[1, 2], &[], &[1.0], 0, 1),
        ];
        assert!(
            wrong.iter().all(|result| matches!(result, Err(Error::Length { .. }))),
            "{wrong:?}"
        );
    }
}
