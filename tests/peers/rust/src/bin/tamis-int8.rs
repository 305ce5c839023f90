//! `tamis export --format rust`: tables for the kernels of the crate.
#![no_std]
#![no_main]

use tamis_peers::INPUTS;

#[inline(never)]
fn classify(x: &[u8; INPUTS]) -> usize {
    tamis_peers::models::tables::classify(x)
}

tamis_peers::engine!(|byte| byte, classify);
