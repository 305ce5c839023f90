//! A model of 8-bit integers: 784 inputs, 10 outputs, 200 weights, checksum 57a1e39a.
//!
//! Exported by tamis: export it again rather than edit it. It needs the crate `tamis`, no heap and no file.
//! The compiler checks the tables, and links the kernels that they need and no check.

#![allow(dead_code, long_running_const_eval, missing_docs, unreachable_pub, clippy::all)]

use tamis::infer::model::{Activation, zeros};
use tamis::infer::quantised::{Blocks, Chain, Dense, Layer, Scales, Weights};

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

static COUNTS_1: [u8; 40] = [
    3, 3, 3, 3, 3, 3, 3, 4, 3, 3, 4, 3, 4, 4, 3, 4, 4, 2, 4, 3, 2, 4, 3, 3, 4, 3, 3, 4, 2, 4, 1, 0,
    0, 0, 0, 0, 0, 0, 1, 0,
];
static PAIRS_1: [[u8; 2]; 100] = [
    [58, 79], [89, 75], [220, 38], [47, 184], [87, 236], [195, 118], [45, 166], [94, 254],
    [206, 35], [30, 171], [101, 10], [171, 147], [77, 30], [116, 185], [196, 230], [26, 98],
    [104, 99], [220, 37], [69, 87], [111, 212], [226, 17], [33, 253], [90, 182], [226, 197],
    [249, 109], [11, 65], [138, 16], [195, 21], [32, 223], [155, 4], [213, 170], [27, 163],
    [91, 251], [202, 132], [244, 122], [40, 65], [65, 245], [207, 19], [48, 53], [95, 83],
    [201, 87], [254, 236], [36, 206], [105, 90], [200, 255], [215, 21], [33, 232], [59, 58],
    [192, 33], [8, 106], [60, 152], [180, 154], [252, 63], [35, 35], [125, 124], [150, 48],
    [219, 115], [85, 35], [187, 32], [1, 222], [57, 67], [153, 199], [231, 192], [4, 94], [86, 99],
    [167, 198], [87, 145], [144, 165], [11, 225], [74, 23], [161, 2], [233, 143], [96, 246],
    [125, 153], [194, 53], [39, 217], [163, 214], [250, 74], [4, 198], [81, 211], [166, 181],
    [224, 187], [98, 244], [149, 66], [239, 137], [42, 134], [115, 41], [237, 102], [5, 17],
    [52, 172], [188, 135], [254, 160], [58, 212], [161, 32], [22, 161], [48, 77], [124, 193],
    [225, 94], [243, 138], [248, 73],
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
        Weights::Blocks(checked(Blocks::new(784, 10, &COUNTS_1, &PAIRS_1))),
        &FACTORS_1,
        &[],
        Activation::Relu,
    )),
    checked(Layer::new(
        Weights::Dense(checked(Dense::new(10, 10, &VALUES_2))),
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
