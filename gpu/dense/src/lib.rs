//! Dense networks on [burn](burn_tensor): what iterative magnitude pruning trains, and the derivatives that
//! scores of masks are made of, on a GPU or on burn's own CPU backend.
//!
//! A file may use those before its own: `error → rows → network → training → device`.
//!
//! What is trained, on which rows and in which order is said by [`tamis_host::train::dense`]; this crate
//! implements its [`DenseDevice`]. Results differ from those of the CPU in the last bits of products, and are
//! the same each time on one device.

mod device;
mod error;
mod network;
mod rows;
mod training;

pub use device::{Burn, gpu};
