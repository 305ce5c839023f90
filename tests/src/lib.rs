//! Tests that more than one backend shares: they run on a host, on every operator, and on emulated
//! parts.
//!
//! A module may use only those before it: `simulated → deployed → conformance → cases`.
#![no_std]

pub mod cases;
pub mod conformance;
pub mod deployed;
pub mod simulated;
