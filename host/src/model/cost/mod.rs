//! What a model takes on a processor before it is flashed: flash, RAM, stack and instructions, and
//! what dense layers would.
//!
//! Bytes of the model, scratch and outputs are exact; code, stack and instructions (not cycles) are
//! sums of measured rows, for firmware at optimisation level 3 with one code unit and link-time
//! optimisation. A sum over several kernels or things is an upper bound and says so.
//!
//! `cargo ci costs` measures the rows and writes `table.rs`; `cargo ci estimates` holds other
//! models to them. That runner includes these files, so they name nothing of this crate.

mod count;
mod estimate;
mod kernel;
mod rows;
mod table;

pub use count::{
    Around, EXTRAS, STRAIGHT, Straight, Work, float_extras, float_work, integer_extras,
    integer_work,
};
pub use estimate::{Estimate, Memory, integer_macs};
pub use kernel::{Core, Kernel, Numbers, Way};
pub use rows::{Prices, Row, zeros};
