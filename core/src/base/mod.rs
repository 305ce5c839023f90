//! What every room may use: errors, mathematics, random numbers, sizes, byte budgets and checkpoint
//! records.

pub mod budget;
pub mod dims;
pub mod error;
pub mod math;
pub mod record;
pub mod rng;
