//! Memories of a microcontroller that do what theirs do when power fails, and when the bus does.

mod nor;
mod spi;

pub use nor::{Fault, Nor, Tear};
pub use spi::{BusFault, Chip};
