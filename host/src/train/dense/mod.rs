//! The dense baseline: MLPs held and trained in full, and pruned by magnitude round by round
//! (`imp`), and the scores of masks at initialisation (`scores`).
//!
//! `x -> relu(W_1 x) -> … -> W_L ·`, without biases; for one output the last layer may be the plain
//! sum of the hidden neurons, as in the figures of the IHT paper. Weights of a layer lie row by
//! row, one row per output, as in `PyTorch`.
//!
//! **Tiles.** A batch is cut into tiles of rows, and these go to a fixed number of groups, each
//! with a gradient of its own; the gradients are added in the order of the groups. So the number of
//! threads changes no bit, and activations are held for a tile of each group only. The kernels of
//! `gemm` differ from one kind of processor to another, and so do the last bits.

pub(crate) mod derivatives;
pub(crate) mod device;
mod folder;
pub(crate) mod imp;
pub(crate) mod job;
mod kept;
mod optimiser;
pub(crate) mod pass;
mod place;
pub(crate) mod product;
#[cfg(test)]
mod reference;
pub(crate) mod scores;
pub(crate) mod shape;
mod threads;
pub(crate) mod training;

pub use device::{
    DenseDevice, DenseNet, DenseTraining, Epoch, NetOnRows, Passed, Penalty, Setup, Trained,
    diverged,
};
pub use optimiser::Rates;
pub(crate) use optimiser::{Serialised, check_momentum, default_rate};
pub use pass::{Batch, Goal, Measure};
pub use place::{DensePlace, install};
pub use shape::{Head, Layer, Shape};
pub use threads::Threads;
