//! One layer of a chain, of any kind.

use super::blocks::Blocks;
use super::csr::Csr;
use super::input::Input;
use super::kernels::{BIASES, CSR, NARROW_BLOCKS, SUM, WIDE_BLOCKS};
use super::sum::Sum;

/// One layer of a [`Model`](super::Model).
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
    pub const fn inputs(&self) -> usize {
        match self {
            Layer::Csr(csr) => csr.inputs(),
            Layer::Sum(sum) => sum.inputs(),
            Layer::Blocks(blocks) => blocks.inputs(),
        }
    }

    /// Numbers that the layer gives.
    pub const fn outputs(&self) -> usize {
        match self {
            Layer::Csr(csr) => csr.outputs(),
            Layer::Sum(_) => 1,
            Layer::Blocks(blocks) => blocks.outputs(),
        }
    }

    /// Outputs asked for in training, at least [`outputs`](Self::outputs).
    pub const fn requested(&self) -> usize {
        match self {
            Layer::Csr(csr) => csr.requested(),
            Layer::Sum(_) => 1,
            Layer::Blocks(blocks) => blocks.requested(),
        }
    }

    /// Entries; biases are counted apart, and signs of a sum are none.
    pub const fn nonzeros(&self) -> usize {
        match self {
            Layer::Csr(csr) => csr.nonzeros(),
            Layer::Sum(_) => 0,
            Layer::Blocks(blocks) => blocks.nonzeros(),
        }
    }

    /// Where the sum of each output starts; empty where all start at 0.
    pub const fn biases(&self) -> &[f32] {
        match self {
            Layer::Csr(csr) => csr.biases(),
            Layer::Sum(_) => &[],
            Layer::Blocks(blocks) => blocks.biases(),
        }
    }

    /// The kernels that it needs, as a set.
    pub(super) const fn kernels(&self) -> u16 {
        let biases = if self.biases().is_empty() { 0 } else { BIASES };
        biases
            | match self {
                Layer::Csr(_) => CSR,
                Layer::Sum(_) => SUM,
                Layer::Blocks(blocks) => blocks.kernel(),
            }
    }

    /// `None` only if `x` is shorter than the inputs or the kernel not one of `KERNELS`: the others
    /// are not linked.
    pub(super) fn apply<X: Input + ?Sized, const KERNELS: u16>(
        &self,
        x: &X,
        out: &mut [f32],
    ) -> Option<()> {
        match self {
            Layer::Csr(csr) if KERNELS & CSR != 0 => csr.apply::<X, KERNELS>(x, out),
            Layer::Sum(sum) if KERNELS & SUM != 0 => {
                *out.first_mut()? = sum.add(0.0, (0..x.len()).map(|i| x.at(i)))?;
                Some(())
            }
            Layer::Blocks(blocks) if KERNELS & (WIDE_BLOCKS | NARROW_BLOCKS) != 0 => {
                blocks.apply::<X, KERNELS>(x, out)
            }
            _ => None,
        }
    }
}
