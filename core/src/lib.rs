//! Sparse MLPs where memory is the limit.
//!
//! `tamis` trains, prunes and runs networks of which only the nonzero weights exist. Everything here is `no_std`,
//! needs no allocator, contains no `unsafe`, and gives the same bits on an x86-64 host and on every Cortex-M.
//! Memory belongs to the caller; [`budget`] says in `const fn` how much each algorithm needs.
//!
//! Data flows one way, and a module may use only those before it in this list:
//!
//! `error → math → rng → dims → budget → spi → samples → weights → top → sketch → gates → sensing → factored → record →
//! gated → gaussian → loss → spectrum → iht → lm → anneal → train → deep → model → quantised → trace → price → wire → estimate →
//! flash → stream`
#![no_std]

pub mod anneal;
pub mod budget;
pub mod deep;
pub mod dims;
pub mod error;
pub mod estimate;
pub mod factored;
#[cfg(feature = "embedded-storage")]
pub mod flash;
pub mod gated;
pub mod gates;
pub mod gaussian;
pub mod iht;
pub mod lm;
pub mod loss;
pub mod math;
pub mod model;
pub mod price;
pub mod quantised;
pub mod record;
pub mod rng;
pub mod samples;
pub mod sensing;
pub mod sketch;
pub mod spectrum;
#[cfg(feature = "embedded-hal")]
pub mod spi;
#[cfg(feature = "embedded-storage")]
pub mod stream;
pub mod top;
pub mod trace;
pub mod train;
pub mod weights;
pub mod wire;

pub use error::{Error, Result};
