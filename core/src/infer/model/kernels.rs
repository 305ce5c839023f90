//! Which kernels there are, as bits of a set, and what keeps their loops small.

/// The most layers that a [`Model`](super::Model) holds.
pub const MAX_LAYERS: usize = 8;

/// The kernel of [`Csr`](super::Csr): a bit of a set of kernels, as the others are.
pub(super) const CSR: u16 = 1;
pub(super) const SUM: u16 = 1 << 1;
pub(super) const WIDE_BLOCKS: u16 = 1 << 2;
pub(super) const NARROW_BLOCKS: u16 = 1 << 3;
/// Layers whose activations are kept; a prediction from the row at once; rows under a sum as the
/// end; one layer as the end.
pub(super) const KEPT: u16 = 1 << 4;
pub(super) const DIRECT: u16 = 1 << 5;
pub(super) const FUSED: u16 = 1 << 6;
pub(super) const ALONE: u16 = 1 << 7;
/// Sums that start at biases, in layers of any kind.
pub(super) const BIASES: u16 = 1 << 8;
/// The set of all kernels.
pub const ALL_KERNELS: u16 = (1 << 9) - 1;

/// Keeps the compiler from unrolling the loop that it stands in, at no instruction: unrolled they
/// would take more flash than the weights, and time before every short run. Where the model is a
/// constant, loops of few turns are unrolled if what stands in them is short: so the compiler is
/// given 160 nothings to count.
#[inline(always)]
pub(crate) fn rolled() {
    macro_rules! often {
        ($what:expr; $($of:tt)*) => { $( { let _ = $of; $what; } )* };
    }
    often!(often!(apart(); 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0); 0 0 0 0 0 0 0 0 0 0);
}

/// Keeps what stands before it apart from what stands behind it, at no instruction.
#[inline(always)]
pub(crate) fn apart() {
    core::hint::black_box(());
}

/// An array of zeros. The routine that clears memory, which `[0; N]` calls, takes more flash than
/// short arrays do without it. Modules that `tamis export --format rust` writes have their scratch
/// from here, and programs that embed a model may, too.
///
/// ```
/// assert_eq!(tamis::infer::model::zeros::<i32, 33>(), [0; 33]);
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
const ROUTINE: usize = 256;
