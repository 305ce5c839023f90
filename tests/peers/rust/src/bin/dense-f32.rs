//! Dense layers of floats as plain loops.
#![no_std]
#![no_main]

use tamis_peers::INPUTS;
use tamis_peers::models::dense::{F1, F2, HIDDEN, OUTPUTS};

#[inline(never)]
fn classify(x: &[f32; INPUTS]) -> usize {
    let (mut h, mut y) = ([0.0_f32; HIDDEN], [0.0_f32; OUTPUTS]);
    for (h, row) in h.iter_mut().zip(&F1) {
        *h = x.iter().zip(row).map(|(x, w)| x * w).sum::<f32>().max(0.0);
    }
    for (y, row) in y.iter_mut().zip(&F2) {
        *y = h.iter().zip(row).map(|(h, w)| h * w).sum();
    }
    tamis_peers::best(&y)
}

tamis_peers::engine!(f32::from, classify);
