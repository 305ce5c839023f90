//! What every room may use: errors, mathematics, random numbers, sizes, sets of bits, byte budgets and
//! checkpoint records.

pub mod bits;
pub mod budget;
pub mod dims;
pub mod error;
pub mod math;
pub mod record;
pub mod rng;
