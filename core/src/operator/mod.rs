//! The seam between algorithms and machines: the trait [`sensing::Sensing`], its provided bodies
//! and the reference operators.

pub mod factored;
pub mod gated;
pub mod gaussian;
pub(crate) mod loss;
pub mod machine;
pub(crate) mod panels;
pub mod sensing;
pub mod solve;
pub mod tables;
pub mod wrapper;
