//! Tests that more than one backend shares.
#![no_std]

pub mod cases;
