//! Sparse layers and their prediction, on borrowed weights.
//!
//! A [`Model`] is a chain of layers: `x -> a_1(W_1 x) -> a_2(W_2 ·) -> …`, each `W_l` held as its nonzero entries
//! only ([`Csr`]), with a scalar `sum_j v_j h_j`, `v_j` = ±1, as the possible end ([`Sum`]). Nothing is copied: the
//! slices may lie in flash. Everything is checked once, when a layer or a model is made, so a prediction only
//! checks the lengths of its arguments.
//!
//! The order of all additions is fixed (each row from `+0`, entry by entry, product and sum rounded on their own; the
//! final sum from `+0`, neuron by neuron), so finite predictions have the same bits on every target.

mod blocks;
mod chain;
mod csr;
mod input;
mod observe;
mod sum;

pub(crate) use blocks::{Runs, start, windows};
#[cfg(feature = "embedded-storage")]
pub(crate) use chain::Ends;
#[cfg(feature = "embedded-storage")]
pub(crate) use csr::dot;
pub(crate) use observe::{Blind, Observer, Seeing};

pub use blocks::{Blocks, Entries, MAX_OUTPUTS, WINDOW};
pub use chain::{Chain, Model};
pub use csr::{Activation, Csr, MAX_INPUTS};
pub use input::{Input, Scaled};
pub use sum::Sum;

/// The most layers that a [`Model`] holds.
pub const MAX_LAYERS: usize = 8;

/// The kernel of [`Csr`]: a bit of a set of kernels, as the others are.
const CSR: u16 = 1;
const SUM: u16 = 1 << 1;
const WIDE_BLOCKS: u16 = 1 << 2;
const NARROW_BLOCKS: u16 = 1 << 3;
/// Layers whose activations are kept; a prediction from the row at once; rows under a sum as the end; one layer as the end.
const KEPT: u16 = 1 << 4;
const DIRECT: u16 = 1 << 5;
const FUSED: u16 = 1 << 6;
const ALONE: u16 = 1 << 7;
/// The set of all kernels.
pub const ALL_KERNELS: u16 = (1 << 8) - 1;

/// Keeps the compiler from unrolling the loop that it stands in, at no instruction: bodies are as long as they should be,
/// and unrolled again they would take more flash than the weights, and time before every short run. How often a loop runs is
/// known where the model is a constant, and loops of few turns are unrolled whatever stands in them, if only that is short: so
/// the compiler is given many nothings to count.
#[inline(always)]
pub(crate) fn rolled() {
    macro_rules! often {
        ($($of:tt)*) => { $( { let _ = $of; nothings(); } )* };
    }
    often!(0 0 0 0 0 0 0 0 0 0);
}

/// Sixteen.
#[inline(always)]
fn nothings() {
    macro_rules! often {
        ($($of:tt)*) => { $( { let _ = $of; apart(); } )* };
    }
    often!(0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0);
}

/// Keeps what stands before it apart from what stands behind it, at no instruction.
#[inline(always)]
pub(crate) fn apart() {
    core::hint::black_box(());
}

/// An array of zeros. The routine that clears memory, which `[0; N]` calls, takes more flash than short arrays do without it. Modules
/// that `tamis export --format rust` writes have their scratch from here, and programs that embed a model may, too.
///
/// ```
/// assert_eq!(tamis::model::zeros::<i32, 33>(), [0; 33]);
/// ```
#[must_use]
#[inline(always)]
pub fn zeros<T: Copy + Default, const N: usize>() -> [T; N] {
    if N.saturating_mul(size_of::<T>()) > ROUTINE {
        return [T::default(); N];
    }
    // Of a number that it does not know the compiler makes no call.
    [core::hint::black_box(T::default()); N]
}

/// Bytes beyond which the routine takes less flash than a store for each word.
pub(crate) const ROUTINE: usize = 256;

/// One layer of a [`Model`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Layer<'a> {
    /// A sparse linear map and its activation, in rows.
    Csr(Csr<'a>),
    /// The scalar output `sum_j ±x_j`.
    Sum(Sum<'a>),
    /// A sparse linear map and its activation, in windows of columns: smaller and faster.
    Blocks(Blocks<'a>),
}

impl Layer<'_> {
    /// Numbers that the layer takes.
    #[must_use]
    pub const fn inputs(&self) -> usize {
        match self {
            Layer::Csr(csr) => csr.inputs(),
            Layer::Sum(sum) => sum.inputs(),
            Layer::Blocks(blocks) => blocks.inputs(),
        }
    }

    /// Numbers that the layer gives.
    #[must_use]
    pub const fn outputs(&self) -> usize {
        match self {
            Layer::Csr(csr) => csr.outputs(),
            Layer::Sum(_) => 1,
            Layer::Blocks(blocks) => blocks.outputs(),
        }
    }

    /// Outputs asked for in training, at least [`outputs`](Self::outputs).
    #[must_use]
    pub const fn requested(&self) -> usize {
        match self {
            Layer::Csr(csr) => csr.requested(),
            Layer::Sum(_) => 1,
            Layer::Blocks(blocks) => blocks.requested(),
        }
    }

    /// Entries; signs of a sum are none.
    #[must_use]
    pub const fn nonzeros(&self) -> usize {
        match self {
            Layer::Csr(csr) => csr.nonzeros(),
            Layer::Sum(_) => 0,
            Layer::Blocks(blocks) => blocks.nonzeros(),
        }
    }

    /// The kernel that it needs, as a set of one.
    const fn kernel(&self) -> u16 {
        match self {
            Layer::Csr(_) => CSR,
            Layer::Sum(_) => SUM,
            Layer::Blocks(blocks) => blocks.kernel(),
        }
    }

    /// `None` only if `x` is shorter than the inputs or the kernel not one of `KERNELS`: the others are not linked.
    fn apply<X: Input + ?Sized, const KERNELS: u16>(&self, x: &X, out: &mut [f32]) -> Option<()> {
        match self {
            Layer::Csr(csr) if KERNELS & CSR != 0 => csr.apply(x, out),
            Layer::Sum(sum) if KERNELS & SUM != 0 => {
                *out.first_mut()? = sum.apply((0..x.len()).map(|i| x.at(i)))?;
                Some(())
            }
            Layer::Blocks(blocks) if KERNELS & (WIDE_BLOCKS | NARROW_BLOCKS) != 0 => blocks.apply(x, out),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::Error;
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
