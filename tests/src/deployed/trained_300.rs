//! A model of 8-bit integers: 64 inputs, 10 outputs, 288 weights, checksum d0d3bacb.
//!
//! Exported by tamis: export it again rather than edit it. It needs the crate `tamis`, no heap and no file.
//! The compiler checks the tables, and links the kernels that they need and no check.

#![allow(dead_code, long_running_const_eval, missing_docs, unreachable_pub, clippy::all)]

use tamis::infer::model::{Activation, zeros};
use tamis::infer::quantised::{Blocks, Chain, Dense, Layer, Mask, Scales, Weights};

/// Numbers in one input row.
pub const INPUTS: usize = 64;
/// Numbers in one prediction.
pub const OUTPUTS: usize = 10;
/// A byte `q` of an input stands for `INPUT_SCALE * (q - INPUT_ZERO)`.
pub const INPUT_SCALE: f32 = 1.0;
/// The byte that stands for 0.
pub const INPUT_ZERO: u8 = 0;
/// An output `y` stands for `OUTPUT_SCALE * y`.
pub const OUTPUT_SCALE: f32 = 0.00065206375;
/// Numbers between layers.
const SCRATCH: usize = 28;

static COUNTS_1: [u8; 22] = [
    2, 1, 14, 3, 4, 8, 4, 10, 8, 9, 1, 12, 7, 7, 10, 8, 4, 3, 1, 3, 18, 3,
];
static PAIRS_1: [[u8; 2]; 140] = [
    [26, 97], [34, 72], [45, 74], [12, 234], [20, 215], [28, 29], [29, 221], [43, 193], [44, 221],
    [49, 74], [50, 56], [51, 61], [52, 52], [53, 53], [56, 1], [59, 45], [60, 46], [27, 60],
    [35, 82], [36, 70], [3, 46], [11, 34], [12, 181], [21, 37], [11, 28], [35, 39], [36, 30],
    [37, 48], [42, 179], [43, 218], [44, 228], [52, 220], [36, 36], [42, 212], [44, 50], [50, 187],
    [10, 53], [11, 46], [12, 37], [21, 50], [25, 140], [26, 184], [27, 231], [28, 27], [36, 49],
    [43, 224], [26, 54], [27, 60], [28, 25], [29, 30], [36, 23], [37, 59], [43, 204], [45, 75],
    [11, 28], [12, 22], [19, 44], [21, 218], [22, 186], [36, 181], [43, 21], [51, 30], [53, 33],
    [28, 52], [3, 199], [11, 201], [13, 52], [19, 194], [20, 21], [21, 30], [26, 211], [27, 218],
    [28, 50], [35, 228], [36, 29], [37, 46], [11, 223], [20, 223], [26, 36], [28, 40], [35, 29],
    [36, 60], [51, 207], [4, 41], [19, 66], [20, 33], [21, 203], [34, 195], [36, 230], [37, 216],
    [2, 63], [3, 61], [4, 43], [10, 39], [14, 67], [18, 149], [19, 219], [20, 228], [28, 32],
    [34, 255], [3, 41], [12, 232], [27, 35], [33, 70], [34, 42], [35, 86], [42, 36], [44, 218],
    [10, 61], [11, 45], [13, 52], [18, 62], [13, 53], [18, 60], [29, 46], [21, 68], [20, 45],
    [35, 39], [37, 210], [12, 20], [21, 42], [22, 49], [27, 172], [28, 216], [30, 49], [37, 227],
    [38, 249], [43, 56], [45, 253], [46, 185], [50, 46], [51, 21], [52, 28], [53, 34], [58, 39],
    [60, 42], [62, 116], [33, 127], [34, 70], [42, 63],
];
static FACTORS_1: [u32; 1] = [
    550841681,
];
static BIASES_1: [i32; 22] = [
    0, 0, 0, 0, 0, 6736, 4105, 0, 0, 4654, 0, 3484, 0, 7406, 0, -4783, 0, 0, 0, 0, 3986, 0,
];
static BITS_2: [u32; 8] = [
    2517259, 1376012, 3362712, 3195785, 547437, 1266130, 3709828, 1280897,
];
static VALUES_2: [i8; 82] = [
    37, 43, 29, 41, -32, -68, -30, 25, 35, 78, 49, 17, 38, 40, 29, 100, 44, 89, -30, -30, -30, -59,
    31, -70, 54, 12, -38, 29, -83, 51, 58, 30, 32, -46, 34, 34, -34, 19, 37, -71, 81, -36, 46, 19,
    -127, 25, 105, 71, -57, 48, 46, 36, 49, 15, -57, -57, 42, 17, -54, 107, 29, 32, 25, 20, 47, -51,
    44, 42, -38, 29, 49, 74, 26, 41, -61, 18, 50, -60, -61, 26, 32, 38,
];
static FACTORS_2: [u32; 1] = [
    512487111,
];
static BIASES_2: [i32; 8] = [
    0, 1471, 0, 0, 1183, 0, 1668, 1231,
];
static VALUES_3: [i8; 80] = [
    13, -60, -54, -10, -44, 22, 20, 41, -127, 43, 0, 0, 0, -57, 44, 0, -24, -56, 22, -62, -56, 0,
    47, 0, 0, 36, 12, -97, -55, 35, -19, -50, 15, 0, -53, 20, 31, -85, -33, -17, -23, 25, 16, 0,
    -81, 0, -72, 43, 9, 35, -102, 32, -60, -46, -34, 0, -56, -30, 0, -32, 44, 27, 0, -57, 23, -26,
    18, 23, -64, 8, -28, -47, 0, -47, 25, -19, 25, -18, -52, 18,
];
static BIASES_3: [i32; 10] = [
    0, 0, 0, 0, 0, 0, 0, 0, -745, 0,
];

const LAYERS: [Layer<'static>; 3] = [
    checked(Layer::new(
        Weights::Blocks(checked(Blocks::new(64, 22, &COUNTS_1, &PAIRS_1))),
        &FACTORS_1,
        &BIASES_1,
        Activation::Relu,
    )),
    checked(Layer::new(
        Weights::Mask(checked(Mask::new(22, 8, &BITS_2, &VALUES_2))),
        &FACTORS_2,
        &BIASES_2,
        Activation::Relu,
    )),
    checked(Layer::new(
        Weights::Dense(checked(Dense::new(8, 10, &VALUES_3))),
        &[],
        &BIASES_3,
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
