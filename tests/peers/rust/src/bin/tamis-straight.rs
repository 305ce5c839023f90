//! `tamis export --format rust --straight-line`: code without tables.
#![no_std]
#![no_main]

use tamis_peers::INPUTS;

#[inline(never)]
fn classify(x: &[u8; INPUTS]) -> usize {
    tamis_peers::models::straight::classify(x)
}

tamis_peers::engine!(|byte| byte, classify);
