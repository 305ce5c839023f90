//! Dense layers of 8-bit weights as plain loops: bytes in and out of hidden neurons, sums at the
//! end.
#![no_std]
#![no_main]

use tamis_peers::INPUTS;
use tamis_peers::models::dense::{HIDDEN, MULTIPLIER_1, OUTPUTS, SHIFT_1, W1, W2};

#[inline(never)]
fn classify(x: &[u8; INPUTS]) -> usize {
    let (mut h, mut y) = ([0_u8; HIDDEN], [0_i32; OUTPUTS]);
    for (h, row) in h.iter_mut().zip(&W1) {
        let sum = x.iter().zip(row).map(|(&x, &w)| i32::from(x) * i32::from(w)).sum();
        *h = tamis_peers::requantise(sum, MULTIPLIER_1, SHIFT_1).clamp(0, 255) as u8;
    }
    for (y, row) in y.iter_mut().zip(&W2) {
        *y = h.iter().zip(row).map(|(&h, &w)| i32::from(h) * i32::from(w)).sum();
    }
    tamis_peers::best(&y)
}

tamis_peers::engine!(|byte| byte, classify);
