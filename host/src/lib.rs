//! Tamis on a host: data files in and out, the fast CPU operator, training runs, experiments, pictures and the command line.
//!
//! Algorithms live in the core crate [`tamis`]; this crate brings them data, speed and a user interface. A module may
//! use only those before it: `error → file → data → convert → plot → operator → dense → run → bench → experiment → cli`.

pub mod bench;
pub mod cli;
pub mod convert;
pub mod data;
pub mod dense;
pub mod error;
pub mod experiment;
pub mod file;
pub mod operator;
pub mod plot;
pub mod run;

pub use error::{Error, Result};
