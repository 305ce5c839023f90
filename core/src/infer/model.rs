//! Sparse layers and their prediction, on borrowed weights.
//!
//! A [`Model`] is a chain of layers: `x -> a_1(W_1 x + b_1) -> a_2(W_2 · + b_2) -> …`, each `W_l` held
//! as its nonzero entries only ([`Csr`]), with a scalar `sum_j v_j h_j`, `v_j` = ±1, as the possible end
//! ([`Sum`]). The slices may lie in flash, and are checked once, when a layer or a model is made.
//!
//! The order of all additions is fixed (each row from its bias or `+0`, entry by entry, product and sum rounded
//! on their own; the final sum from `+0`, neuron by neuron), so finite predictions have the same
//! bits on every target.

mod blocks;
mod chain;
mod csr;
mod entries;
mod input;
mod kernels;
mod layer;
mod observe;
mod sum;

pub(crate) use blocks::{Runs, start, windows};
#[cfg(feature = "embedded-storage")]
pub(crate) use chain::Ends;
pub(crate) use chain::push;
#[cfg(feature = "embedded-storage")]
pub(crate) use csr::dot;
pub(crate) use kernels::{apart, rolled};
pub(crate) use observe::{Blind, Observer, Seeing};

pub use blocks::{Blocks, MAX_OUTPUTS};
pub use chain::{Chain, Model};
pub use csr::{Activation, Csr, MAX_INPUTS};
pub use entries::{Entries, WINDOW};
pub use input::{Input, Scaled};
pub use kernels::{ALL_KERNELS, MAX_LAYERS, zeros};
pub use layer::Layer;
pub use sum::Sum;

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::Error;
    use std::vec;

    fn relu<'a>(
        inputs: usize,
        counts: &'a [u16],
        columns: &'a [u16],
        values: &'a [f32],
    ) -> Layer<'a> {
        Layer::Csr(Csr::new(inputs, counts, columns, values, Activation::Relu).unwrap())
    }

    #[test]
    fn deep_chains_alternate_between_scratch_ends() {
        let first = relu(2, &[1, 1, 2], &[0, 1, 0, 1], &[1.0, 2.0, 1.0, 1.0]);
        let second = relu(3, &[1, 2], &[2, 0, 1], &[3.0, 1.0, -1.0]);
        let third = relu(2, &[2, 0, 1, 1], &[0, 1, 0, 1], &[1.0, 1.0, -1.0, 4.0]);
        let last =
            Csr::new(4, &[2, 1], &[0, 3, 2], &[1.0, -1.0, 7.0], Activation::Identity).unwrap();
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
    fn two_hidden_layers_under_sum_store_first_only() {
        let first = relu(2, &[1, 1], &[0, 1], &[1.0, 1.0]);
        let second = relu(2, &[1, 2, 1], &[0, 0, 1, 1], &[1.0, 1.0, 1.0, 10.0]);
        let model =
            Model::new(&[first, second, Layer::Sum(Sum::new(3, &[0b010]).unwrap())]).unwrap();
        assert_eq!((model.scratch_len(), model.chain().kept_activations()), (2, 1));
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
        let layers =
            |min, max, got| Err(Error::Range { what: "layers of the model", min, max, got });
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
    fn byte_inputs_are_bit_identical_to_their_floats() {
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
