//! What a model takes on a processor before it is flashed: flash, RAM, stack and instructions, and
//! what dense layers would.
//!
//! Bytes of the model, scratch and outputs are exact. Code, stack and instructions are sums of
//! measured rows: one for each kernel and core, and one for each thing a chain of layers may have
//! besides. A sum over several kernels or things is an upper bound and says so. Firmware is taken
//! to be built at optimisation level 3 with one code unit and link-time optimisation. Counted are
//! instructions, not cycles.
//!
//! `cargo ci costs` measures the rows in an emulator and writes `table.rs`; `cargo ci estimates`
//! holds other models to them. That runner includes these files, so they name nothing of this
//! crate.

mod count;
mod estimate;
mod kernel;
mod rows;
mod table;

pub use count::{
    Around, Chain, EXTRAS, STRAIGHT, Straight, Work, extras, float_work, integer_work,
};
pub use estimate::{Estimate, Memory, integer_macs};
pub use kernel::{Core, Kernel, Numbers, Way};
pub use rows::{Prices, Row, zeros};
