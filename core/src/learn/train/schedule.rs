//! How a run goes through the data, whatever its head.

use super::trials::Trials;

/// How a run goes through the data; `H` has the settings of the network's head,
/// [`super::OneOutput`] or [`super::SeveralOutputs`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule<'k, H> {
    /// Passes over all batches.
    pub epochs: u32,
    /// Rows of a batch; 0 for all rows. Batches are runs of consecutive rows, so rows must come in
    /// random order (see [`crate::data::samples::Shuffled`]); their order is drawn anew each epoch.
    pub batch: usize,
    /// Rows whose residuals are held at a time; 0 for those of a batch. With fewer, the memory of a
    /// step does not grow with the batch, and every product with the residual computes it again:
    /// for a few nonzeros that is little beside the product.
    pub strip: usize,
    /// Starts tried on the first rows before the run on all of them.
    pub trials: Trials,
    /// Seed of random gates or values, and of the batches' order.
    pub seed: u64,
    /// Flat indices of W, rising, of pinned weights: they are on the support whatever their size,
    /// from the first step to the last, and count in s. At most s; with output weights fewer, so
    /// that one place at least is left for one of these.
    pub must_keep: &'k [u32],
    /// Settings of the head.
    pub head: H,
}
