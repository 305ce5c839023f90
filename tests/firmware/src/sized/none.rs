//! Predicts nothing.
#![no_std]
#![no_main]

mod common;

fn predict(bytes: &[u8; 784], floats: &[f32; 784]) -> i32 {
    i32::from(bytes[0]) + floats[0].to_bits() as i32
}
