//! Which kernels of integers there are, as bits of a set, and the product that all of them add up.

/// The kernel of [`Dense`](super::Dense) weights: a bit of a set of kernels, as the others are.
pub(super) const DENSE: u16 = 1;
pub(super) const MASK: u16 = 1 << 1;
pub(super) const WIDE_BLOCKS: u16 = 1 << 2;
pub(super) const NARROW_BLOCKS: u16 = 1 << 3;
/// What is not a kernel but is linked only where a layer needs it: biases, and factors and `ReLU`
/// of the last layer.
pub(super) const BIASES: u16 = 1 << 4;
pub(super) const LAST_FACTORS: u16 = 1 << 5;
pub(super) const LAST_RELU: u16 = 1 << 6;
/// Layers that give bytes by one factor, and by one for each output.
pub(super) const ONE_FACTOR: u16 = 1 << 7;
pub(super) const OWN_FACTORS: u16 = 1 << 8;
/// The set of all kernels and of what may follow them.
pub const ALL_KERNELS: u16 = (1 << 9) - 1;

/// One product; neither it nor a sum of 65536 of them overflows.
#[inline(always)]
pub(crate) fn product(x: u8, weight: i8) -> i32 {
    i32::from(x) * i32::from(weight)
}
