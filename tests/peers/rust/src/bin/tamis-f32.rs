//! `tamis export --format rust` of a model of floats.
#![no_std]
#![no_main]

#[inline(never)]
fn classify(x: &[f32; 784]) -> usize {
    tamis_peers::models::floats::classify(x)
}

tamis_peers::engine!(f32::from, classify);
