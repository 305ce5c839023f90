//! `tamis export --format rust` of a model of floats.
#![no_std]
#![no_main]

use tamis_peers::INPUTS;

#[inline(never)]
fn classify(x: &[f32; INPUTS]) -> usize {
    tamis_peers::models::floats::classify(x)
}

tamis_peers::engine!(f32::from, classify);
