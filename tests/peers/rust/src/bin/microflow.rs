//! MicroFlow: what its macro makes of the TensorFlow Lite file.
#![no_std]
#![no_main]

use microflow::buffer::Buffer2D;
use tamis_peers::INPUTS;
use tamis_peers::models::MicroFlow;

#[inline(never)]
fn classify(x: &[i8; INPUTS]) -> usize {
    let y = MicroFlow::predict_quantized(Buffer2D::<i8, 1, INPUTS>::from_row_slice(x));
    tamis_peers::best(y.as_slice())
}

tamis_peers::engine!(|byte| byte.wrapping_sub(128) as i8, classify);
