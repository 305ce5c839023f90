//! embedded-nn: `fully_connected_s8` twice. The offsets are those of TensorFlow Lite: bytes less
//! 128.
#![no_std]
#![no_main]

use embedded_nn::fully_connected::fully_connected_s8;
use embedded_nn::types::{Activation, Dims, FcParams, PerTensorQuantParams};
use tamis_peers::INPUTS;
use tamis_peers::models::dense::{
    HIDDEN, MULTIPLIER_1, MULTIPLIER_2, OUTPUTS, SHIFT_1, SHIFT_2, W1, W2,
};

fn layer(x: &[i8], w: &[i8], y: &mut [i8], (multiplier, shift): (i32, u32), zero: i32) -> bool {
    let (inputs, outputs) = (x.len() as i32, y.len() as i32);
    let activation = Activation::int8_unconstrained();
    let params = FcParams { input_offset: 128, filter_offset: 0, output_offset: zero, activation };
    let quant = PerTensorQuantParams { multiplier, shift: -(shift as i32) };
    let row = |c| Dims { n: 1, h: 1, w: 1, c };
    let filter = Dims { n: inputs, ..row(outputs) };
    fully_connected_s8(&params, &quant, &row(inputs), x, &filter, w, None, &row(outputs), y).is_ok()
}

#[inline(never)]
fn classify(x: &[i8; INPUTS]) -> usize {
    let (mut h, mut y) = ([0_i8; HIDDEN], [0_i8; OUTPUTS]);
    let done = layer(x, W1.as_flattened(), &mut h, (MULTIPLIER_1, SHIFT_1), -128)
        && layer(&h, W2.as_flattened(), &mut y, (MULTIPLIER_2, SHIFT_2), 0);
    if done { tamis_peers::best(&y) } else { 99 }
}

tamis_peers::engine!(|byte| byte.wrapping_sub(128) as i8, classify);
