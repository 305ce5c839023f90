//! How far a model is from another one: sound upper bounds over boxes of rows, and differences that
//! are reached.

mod align;
mod ascent;
mod bounds;
mod fresh;
mod input;
mod near;
mod network;
mod pair;
mod relax;
mod report;
mod rows;
mod run;
mod spectral;

pub use fresh::FreshRows;
pub use report::{Certificate, RowCertificate};
pub use run::{Boxes, CertifyOptions, certify};

#[cfg(test)]
mod tests;
