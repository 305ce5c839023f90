//! A model of 8-bit integers: 300 inputs, 3 outputs, 18 weights, checksum edd2bf84.
//!
//! Exported by tamis as code: export it again rather than edit it. It needs no crate.

#![allow(dead_code, missing_docs, unreachable_pub, unused_variables, clippy::all)]

/// Numbers in one input row.
pub const INPUTS: usize = 300;
/// Numbers in one prediction.
pub const OUTPUTS: usize = 3;
/// A byte `q` of an input stands for `INPUT_SCALE * (q - INPUT_ZERO)`.
pub const INPUT_SCALE: f32 = 0.5;
/// The byte that stands for 0.
pub const INPUT_ZERO: u8 = 3;
/// An output `y` stands for `OUTPUT_SCALE * y`.
pub const OUTPUT_SCALE: f32 = 0.001;

/// The byte of a reading of one input: rounded, halves away from 0, and cut to 0 to 255.
/// Readings of up to 24 bits are floats without rounding.
#[must_use]
pub fn quantize(column: usize, reading: f32) -> u8 {
    let (_, scale, zero) = (column, INPUT_SCALE, f32::from(INPUT_ZERO));
    let steps = reading / scale;
    // Beyond these there are whole numbers only.
    let steps = if steps > -8_388_608.0 && steps < 8_388_608.0 {
        let whole = steps as i32 as f32;
        let rest = steps - whole;
        whole + if rest >= 0.5 { 1.0 } else if rest <= -0.5 { -1.0 } else { 0.0 }
    } else if steps.is_nan() {
        0.0
    } else {
        steps
    };
    (steps + zero).clamp(0.0, 255.0) as u8
}

/// The bytes of one row of readings.
#[must_use]
pub fn quantize_input(x: &[f32; INPUTS]) -> [u8; INPUTS] {
    core::array::from_fn(|column| quantize(column, x[column]))
}

/// The outputs on one row.
#[must_use]
pub fn predict(x: &[u8; INPUTS]) -> [i32; OUTPUTS] {
    let h_1 = layer_1(x);
    layer_2(&h_1)
}

/// The class of one row.
#[must_use]
pub fn classify(x: &[u8; INPUTS]) -> usize {
    let mut best = (0, i32::MIN);
    for (class, score) in predict(x).into_iter().enumerate() {
        if score > best.1 {
            best = (class, score);
        }
    }
    best.0
}

fn layer_1(x: &[u8; 300]) -> [u8; 4] {
    [
        byte::<1868237824, 7>(row_1_0(x)),
        byte::<1868237824, 7>(row_1_1(x)),
        byte::<1868237824, 7>(row_1_2(x)),
        byte::<1868237824, 7>(row_1_3(x)),
    ]
}

#[inline(never)]
fn row_1_0(x: &[u8; 300]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[0], -71);
    let sum = add(sum, x[199], -36);
    let sum = add(sum, x[299], -71);
    sum
}

#[inline(never)]
fn row_1_1(x: &[u8; 300]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[13], 31);
    let sum = add(sum, x[109], 111);
    let sum = add(sum, x[233], -45);
    sum
}

#[inline(never)]
fn row_1_2(x: &[u8; 300]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[32], -113);
    let sum = add(sum, x[171], 117);
    let sum = add(sum, x[248], 21);
    sum
}

#[inline(never)]
fn row_1_3(x: &[u8; 300]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[10], 96);
    let sum = add(sum, x[161], -6);
    let sum = add(sum, x[285], -7);
    sum
}

fn layer_2(x: &[u8; 4]) -> [i32; 3] {
    [
        row_2_0(x),
        row_2_1(x),
        row_2_2(x),
    ]
}

#[inline(never)]
fn row_2_0(x: &[u8; 4]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[0], -25);
    let sum = add(sum, x[3], -108);
    sum
}

#[inline(never)]
fn row_2_1(x: &[u8; 4]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[1], 89);
    let sum = add(sum, x[3], -60);
    sum
}

#[inline(never)]
fn row_2_2(x: &[u8; 4]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[1], 70);
    let sum = add(sum, x[3], -39);
    sum
}

/// One weight.
#[inline(always)]
fn add(sum: i32, x: u8, weight: i32) -> i32 {
    sum.wrapping_add(i32::from(x).wrapping_mul(weight))
}

/// A sum times a factor, rounded.
#[inline(always)]
fn number<const FACTOR: i64, const SHIFT: u32>(sum: i32) -> i32 {
    let high = (i64::from(sum).wrapping_mul(FACTOR) >> 32) as i32;
    high.wrapping_add(1 << (SHIFT - 1)) >> SHIFT
}

/// A sum times a factor, rounded and cut to a byte.
#[inline(always)]
fn byte<const FACTOR: i64, const SHIFT: u32>(sum: i32) -> u8 {
    number::<FACTOR, SHIFT>(sum).clamp(0, 255) as u8
}
