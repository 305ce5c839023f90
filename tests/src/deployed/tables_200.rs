//! A model of 8-bit integers: 784 inputs, 10 outputs, 200 weights, checksum f9d0db15.
//!
//! Exported by tamis: export it again rather than edit it. It needs the crate `tamis`, no heap and no file.
//! The compiler checks the tables, and links the kernels that they need and no check.

#![allow(dead_code, long_running_const_eval, missing_docs, unreachable_pub, clippy::all)]

use tamis::model::{Activation, zeros};
use tamis::quantised::{Chain, Csr, Dense, Layer, Scales, Weights};

/// Numbers in one input row.
pub const INPUTS: usize = 784;
/// Numbers in one prediction.
pub const OUTPUTS: usize = 10;
/// A byte `q` of an input stands for `INPUT_SCALE * (q - INPUT_ZERO)`.
pub const INPUT_SCALE: f32 = 0.003921569;
/// The byte that stands for 0.
pub const INPUT_ZERO: u8 = 0;
/// An output `y` stands for `OUTPUT_SCALE * y`.
pub const OUTPUT_SCALE: f32 = 0.01;
/// Numbers between layers.
const SCRATCH: usize = 13;

static COUNTS_1: [u16; 10] = [
    10, 10, 10, 10, 10, 10, 10, 10, 10, 10,
];
static COLUMNS_1: [u16; 100] = [
    58, 89, 220, 283, 347, 458, 500, 599, 656, 771, 47, 87, 195, 296, 321, 463, 523, 586, 673, 745,
    45, 94, 206, 304, 351, 457, 510, 608, 637, 706, 30, 101, 171, 292, 361, 456, 471, 551, 675, 762,
    77, 116, 196, 289, 315, 448, 516, 593, 678, 736, 26, 104, 220, 264, 316, 436, 508, 610, 661,
    751, 69, 111, 226, 291, 381, 406, 475, 554, 627, 749, 33, 90, 226, 249, 341, 443, 517, 564, 700,
    766, 11, 138, 195, 257, 313, 409, 487, 570, 673, 776, 32, 155, 213, 260, 342, 423, 534, 560,
    636, 737,
];
static VALUES_1: [i8; 100] = [
    79, 75, 38, -93, -5, -124, 122, -111, -91, -118, -72, -20, 118, 65, -11, 19, -31, 23, 2, -113,
    -90, -2, 35, 53, 83, 87, -20, -10, -103, 53, -85, 10, -109, -50, 90, -1, 21, -39, -42, 74, 30,
    -71, -26, -24, 58, 33, -58, -45, -75, -69, 98, 99, 37, 106, -104, -102, 63, -12, 66, -119, 87,
    -44, 17, 35, 124, 48, 115, -122, 41, 102, -3, -74, -59, 109, 35, 32, 17, -84, -121, -96, 65, 16,
    21, -34, 67, -57, -64, -44, 32, 73, -33, 4, -86, 94, 99, -58, -95, 77, -63, 94,
];
static FACTORS_1: [u32; 1] = [
    595591168,
];
static VALUES_2: [i8; 100] = [
    -117, -57, -120, -88, 81, -52, -101, 125, 100, -38, 23, 63, -1, 60, -10, -88, 110, -83, -61,
    102, 9, 108, 38, -92, -33, 100, -33, 32, -119, 52, 20, 64, -71, -113, 111, -69, 67, 77, -27, 39,
    107, 16, 29, 112, 107, -121, -126, 106, 120, -43, 115, 51, 65, 104, 14, -48, 127, -50, -51, -61,
    -74, -112, -117, 6, -48, 86, 11, 10, 58, 68, 32, 93, -24, 98, 13, 108, 37, 84, 79, -91, -109,
    -124, 2, 114, 49, -8, 104, 22, -101, 20, 80, 9, -1, -75, 75, -110, 56, 26, -76, 51,
];

const LAYERS: [Layer<'static>; 2] = [
    checked(Layer::new(
        Weights::Csr(checked(Csr::new(784, &COUNTS_1, &COLUMNS_1, &VALUES_1))),
        &FACTORS_1,
        &[],
        Activation::Relu,
    )),
    checked(Layer::new(
        Weights::Dense(checked(Dense::new(10, 10, &[], &VALUES_2))),
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
