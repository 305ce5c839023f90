//! A model of 8-bit integers: 300 inputs, 3 outputs, 18 weights, checksum ddf2e563.
//!
//! Exported by tamis: export it again rather than edit it. It needs the crate `tamis`, no heap and no file.

#![allow(dead_code, missing_docs, unreachable_pub, clippy::all)]

use tamis::model::Activation;
use tamis::quantised::{Layer, Mask, Model, Scales, Weights};

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

static BITS_1: [u32; 40] = [
    1, 0, 0, 0, 0, 0, 128, 0, 0, 2048, 8192, 0, 0, 8192, 0, 0, 0, 512, 0, 0, 0, 1, 0, 0, 0, 2048, 0,
    16777216, 0, 0, 1024, 0, 0, 0, 0, 2, 0, 0, 536870912, 0,
];
static VALUES_1: [i8; 12] = [
    -71, -36, -71, 31, 111, -45, -113, 117, 21, 96, -6, -7,
];
static FACTORS_1: [u32; 1] = [
    551466520,
];
static BITS_2: [u32; 3] = [
    9, 10, 10,
];
static VALUES_2: [i8; 6] = [
    -25, -108, 89, -60, 70, -39,
];

/// The model. Its tables are checked here, once: keep it.
///
/// # Errors
/// None, unless this file was edited.
pub fn model() -> tamis::Result<Model<'static>> {
    let weights = Weights::Mask(Mask::new(300, 4, &[], &BITS_1, &VALUES_1)?);
    let layer_1 = Layer::new(weights, &FACTORS_1, &[], Activation::Relu)?;
    let weights = Weights::Mask(Mask::new(4, 3, &[], &BITS_2, &VALUES_2)?);
    let layer_2 = Layer::new(weights, &[], &[], Activation::Identity)?;
    let scales = Scales::new(INPUT_SCALE, OUTPUT_SCALE, INPUT_ZERO, 0)?;
    Model::new(&[layer_1, layer_2], None, scales)
}

/// The outputs on one row.
///
/// # Errors
/// `model` is another one.
pub fn predict(model: &Model<'_>, x: &[u8; INPUTS], y: &mut [i32; OUTPUTS]) -> tamis::Result<()> {
    model.predict(x, &mut [0; SCRATCH], y)
}

/// The class of one row.
///
/// # Errors
/// `model` is another one.
pub fn classify(model: &Model<'_>, x: &[u8; INPUTS]) -> tamis::Result<usize> {
    model.classify(x, &mut [0; SCRATCH], &mut [0; OUTPUTS])
}
