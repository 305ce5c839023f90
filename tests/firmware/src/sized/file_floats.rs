//! A file of floats, checked and read when the program runs.
#![no_std]
#![no_main]

mod common;

use tamis::store::wire::View;
use tamis_tests::deployed::{FLOATS, OUTPUTS};

fn predict(bytes: &[u8; 784], floats: &[f32; 784]) -> i32 {
    let (mut scratch, mut y) = ([0.0; 10], [0.0; OUTPUTS]);
    let done =
        View::parse(FLOATS).and_then(|view| view.model().predict(floats, &mut scratch, &mut y));
    y.into_iter().fold(i32::from(bytes[0]) + done.is_ok() as i32, |sum, y| {
        sum.wrapping_add(y.to_bits() as i32)
    })
}
