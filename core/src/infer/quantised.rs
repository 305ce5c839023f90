//! Models of 8-bit integers, and their prediction without a float.
//!
//! A row is bytes, a weight an `i8`, a sum an `i32`. The sums of a hidden layer are multiplied by a
//! fixed-point number and cut to 0 to 255, which is `ReLU` at the same time: bytes without a sign
//! are one bit finer than `i8`, at the same cost. The last layer gives its sums: a class is the
//! place of the largest. What a 1 stands for is kept beside as floats ([`Scales`]); no prediction
//! reads them. Sums of integers are the same in any order, so a prediction has the same bits
//! everywhere, whatever the encoding of its [`Weights`].
//!
//! Everything is checked once, when a layer is made. No sum can overflow: a layer has at most 65536
//! inputs, 65536 · 255 · 128 is below 2³¹, and what a bias adds is held to the room that is left.

mod blocks;
mod chain;
mod dense;
mod kernels;
mod mask;
mod readings;
mod rescale;
pub mod straight;

#[cfg(feature = "embedded-storage")]
pub(crate) use chain::{class, signed_sum};
#[cfg(feature = "embedded-storage")]
pub(crate) use kernels::product;

pub use crate::infer::model::{MAX_OUTPUTS, WINDOW};
pub use blocks::Blocks;
pub use chain::{Chain, Model};
pub use dense::Dense;
pub use kernels::ALL_KERNELS;
pub use mask::Mask;
pub(crate) use readings::check_scale;
pub use readings::{Columns, Reading, Readings, Scales};
pub use rescale::Rescale;

#[cfg(doc)]
use crate::Error;
use crate::Result;
use crate::base::error::{length, range, tri};
use crate::infer::model::{Activation, MAX_INPUTS, rolled};
use kernels::{BIASES, DENSE, MASK, NARROW_BLOCKS, WIDE_BLOCKS};

/// The weights of a layer, in one of the encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Weights<'a> {
    /// Every weight, zeros included: the smallest above 7/8 of the weights.
    Dense(Dense<'a>),
    /// A bit per weight, then those that are not zero: the smallest from 1/8 to 7/8 of the weights.
    Mask(Mask<'a>),
    /// Windows of 256 columns, pairs of `u8` index and weight: the smallest below 1/8 of the
    /// weights, and the fastest.
    Blocks(Blocks<'a>),
}

/// How weights are held; see [`Weights`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// [`Dense`].
    Dense,
    /// [`Mask`].
    Mask,
    /// [`Blocks`].
    Blocks,
}

impl Encoding {
    /// Every one of them.
    pub const ALL: [Self; 3] = [Self::Dense, Self::Mask, Self::Blocks];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Mask => "bitmask",
            Self::Blocks => "blocks",
        }
    }
}

/// Calls the same of every encoding.
macro_rules! each {
    ($weights:expr, $inner:ident => $call:expr) => {
        match $weights {
            Weights::Dense($inner) => $call,
            Weights::Mask($inner) => $call,
            Weights::Blocks($inner) => $call,
        }
    };
}

impl Weights<'_> {
    /// Numbers that the layer takes.
    pub const fn inputs(&self) -> usize {
        each!(self, inner => inner.inputs)
    }

    /// Numbers that the layer gives.
    pub const fn outputs(&self) -> usize {
        each!(self, inner => inner.outputs)
    }

    /// Weights that are there; of a dense layer those that are not 0.
    pub const fn nonzeros(&self) -> usize {
        each!(self, inner => inner.nonzeros())
    }

    /// Calls `entry` with the row, the column and the value of each weight, row after row and
    /// columns rising.
    pub fn entries(&self, entry: &mut dyn FnMut(usize, u16, i8)) {
        each!(self, inner => inner.entries(entry));
    }

    /// Which encoding it is.
    pub const fn encoding(&self) -> Encoding {
        match self {
            Weights::Dense(_) => Encoding::Dense,
            Weights::Mask(_) => Encoding::Mask,
            Weights::Blocks(_) => Encoding::Blocks,
        }
    }

    /// The kernel that it needs, as a set of one.
    const fn kernel(&self) -> u16 {
        match self {
            Weights::Dense(_) => DENSE,
            Weights::Mask(_) => MASK,
            Weights::Blocks(blocks) => blocks.kernel(),
        }
    }

    /// `sums[outputs] += W x`; `None` only if `x` is not as long as the inputs or the kernel not
    /// one of `KERNELS`: the others are not linked.
    #[inline(always)]
    fn accumulate<const KERNELS: u16>(&self, x: &[u8], sums: &mut [i32]) -> Option<()> {
        match self {
            Weights::Dense(dense) if KERNELS & DENSE != 0 => dense.accumulate(x, sums),
            Weights::Mask(mask) if KERNELS & MASK != 0 => mask.accumulate(x, sums),
            Weights::Blocks(blocks) if KERNELS & (WIDE_BLOCKS | NARROW_BLOCKS) != 0 => {
                blocks.accumulate::<KERNELS>(x, sums)
            }
            _ => None,
        }
    }
}

/// Sums that start at 0.
#[inline(never)]
fn clear(sums: &mut [i32]) {
    for sum in sums {
        *sum = 0;
        rolled();
    }
}

/// A layer `y_j = a(r_j(b_j + sum_k w_jk x_k))`: weights, biases that may be missing, fixed-point
/// factors `r`, and an activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layer<'a> {
    inputs: usize,
    outputs: usize,
    weights: Weights<'a>,
    rescale: &'a [u32],
    bias: &'a [i32],
    activation: Activation,
    requested: usize,
}

impl<'a> Layer<'a> {
    /// A layer of these weights. `rescale` has no word of a [`Rescale`] (sums stay as they are: for
    /// a last layer), one for all outputs, or one for each; `bias` has none or one for each.
    ///
    /// # Errors
    /// [`Error::Length`] for other lengths, [`Error::Range`] for a word that is no factor, a bias
    /// that could make a sum overflow and for more than [`MAX_OUTPUTS`] outputs.
    pub const fn new(
        weights: Weights<'a>,
        rescale: &'a [u32],
        bias: &'a [i32],
        activation: Activation,
    ) -> Result<Self> {
        let outputs = weights.outputs();
        tri!(range("outputs of a layer", outputs, 0, MAX_OUTPUTS));
        let mut left = rescale;
        while let [factor, behind @ ..] = left {
            tri!(Rescale::of(*factor));
            left = behind;
        }
        if rescale.len() > 1 {
            tri!(length("factors of a layer", rescale.len(), outputs));
        }
        if !bias.is_empty() {
            tri!(length("biases of a layer", bias.len(), outputs));
        }
        let inputs = weights.inputs();
        let (most, mut left) = (Self::most_bias(inputs) as usize, bias);
        while let [bias, behind @ ..] = left {
            tri!(range("bias of a layer", bias.unsigned_abs() as usize, 0, most));
            left = behind;
        }
        Ok(Self { inputs, outputs, weights, rescale, bias, activation, requested: outputs })
    }

    /// The largest bias, of either sign, of a layer of so many inputs.
    #[must_use]
    pub const fn most_bias(inputs: usize) -> u32 {
        // At most 65536 inputs, so the product is below 2^31.
        (i32::MAX as u32).saturating_sub(
            255 * 128 * (if inputs < MAX_INPUTS { inputs } else { MAX_INPUTS }) as u32,
        )
    }

    /// Notes how many outputs were asked for before those without use were left out; it changes no
    /// prediction.
    ///
    /// # Errors
    /// [`Error::Range`] if that is below [`outputs`](Self::outputs) or above `u32::MAX`.
    pub const fn with_requested(mut self, requested: usize) -> Result<Self> {
        tri!(range("outputs asked for", requested, self.outputs, u32::MAX as usize));
        self.requested = requested;
        Ok(self)
    }

    /// Numbers that the layer takes.
    pub const fn inputs(&self) -> usize {
        self.inputs
    }

    /// Numbers that the layer gives.
    pub const fn outputs(&self) -> usize {
        self.outputs
    }

    /// The weights.
    pub const fn weights(&self) -> &Weights<'a> {
        &self.weights
    }

    /// The factors of the sums: none, one, or one for each output.
    pub const fn rescale(&self) -> &'a [u32] {
        self.rescale
    }

    /// The biases: none, or one for each output.
    pub const fn bias(&self) -> &'a [i32] {
        self.bias
    }

    /// What is done to each output.
    pub const fn activation(&self) -> Activation {
        self.activation
    }

    /// Outputs asked for in training.
    pub const fn requested(&self) -> usize {
        self.requested
    }

    /// `sums[outputs] = b + W x`.
    #[inline(always)]
    fn sums<const KERNELS: u16>(&self, x: &[u8], sums: &mut [i32]) -> Option<()> {
        clear(sums);
        if KERNELS & BIASES != 0 {
            for (sum, &bias) in sums.iter_mut().zip(self.bias) {
                *sum = bias;
                rolled();
            }
        }
        self.weights.accumulate::<KERNELS>(x, sums)
    }
}
