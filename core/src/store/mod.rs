//! Models and checkpoints as bytes: the `.tamis` format, flash slots, and prediction from a chip
//! that streams.

#[cfg(feature = "embedded-storage")]
pub mod flash;
#[cfg(feature = "embedded-storage")]
pub mod stream;
pub mod wire;
