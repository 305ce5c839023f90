//! A model of 8-bit integers: 300 inputs, 3 outputs, 18 weights, checksum c845d1fa.
//!
//! Exported by tamis: export it again rather than edit it. It needs the crate `tamis`, no heap and no file.
//! The compiler checks the tables, and links the kernels that they need and no check.

#![allow(dead_code, long_running_const_eval, missing_docs, unreachable_pub, clippy::all)]

use tamis::infer::model::{Activation, zeros};
use tamis::infer::quantised::{Chain, Dense, Layer, Scales, Weights};

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
/// Numbers between layers.
const SCRATCH: usize = 5;

static VALUES_1: [i8; 1200] = [
    -71, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, -36, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -71, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 31, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 111, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -45, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -113, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 117, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 21, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 96, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, -7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
];
static FACTORS_1: [u32; 1] = [
    551466520,
];
static VALUES_2: [i8; 12] = [
    -25, 0, 0, -108, 0, 89, 0, -60, 0, 70, 0, -39,
];

const LAYERS: [Layer<'static>; 2] = [
    checked(Layer::new(
        Weights::Dense(checked(Dense::new(300, 4, &VALUES_1))),
        &FACTORS_1,
        &[],
        Activation::Relu,
    )),
    checked(Layer::new(
        Weights::Dense(checked(Dense::new(4, 3, &VALUES_2))),
        &[],
        &[],
        Activation::Identity,
    )),
];

/// The model, with the kernels that its layers need.
pub static MODEL: Chain<'static, { Chain::kernels(&LAYERS) }> =
    checked(Chain::new(&LAYERS, None, checked(Scales::new(INPUT_SCALE, OUTPUT_SCALE, INPUT_ZERO, 0))));

/// What was checked; an error ends the compilation.
const fn checked<T: Copy>(result: tamis::Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{}", error.what()),
    }
}

const _: () = assert!(
    MODEL.inputs() == INPUTS && MODEL.outputs() == OUTPUTS && MODEL.scratch_len() == SCRATCH,
    "the sizes are not those of the layers"
);

/// The outputs on one row.
#[must_use]
pub fn predict(x: &[u8; INPUTS]) -> [i32; OUTPUTS] {
    let mut y = zeros();
    let done = MODEL.predict(x, &mut zeros::<_, SCRATCH>(), &mut y);
    debug_assert!(done.is_ok(), "the compiler has compared the lengths");
    y
}

/// The class of one row.
#[must_use]
pub fn classify(x: &[u8; INPUTS]) -> usize {
    MODEL.class(&predict(x))
}

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
