//! A file of integers, checked and read when the program runs.
#![no_std]
#![no_main]

mod common;

use tamis::store::wire::QuantisedView;
use tamis_tests::deployed::{INTEGERS, OUTPUTS};

fn predict(bytes: &[u8; 784], floats: &[f32; 784]) -> i32 {
    let (mut scratch, mut y) = ([0; 13], [0; OUTPUTS]);
    let done = QuantisedView::parse(INTEGERS)
        .and_then(|view| view.model().predict(bytes, &mut scratch, &mut y));
    y.into_iter().fold(floats[0].to_bits() as i32 + done.is_ok() as i32, i32::wrapping_add)
}
