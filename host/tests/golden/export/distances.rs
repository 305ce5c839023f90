//! A model of 8-bit integers: 300 inputs, 3 outputs, 18 weights, checksum 8bb0ba6b.
//!
//! Exported by tamis: export it again rather than edit it. It needs the crate `tamis`, no heap and no file.

#![allow(dead_code, missing_docs, unreachable_pub, clippy::all)]

use tamis::model::Activation;
use tamis::quantised::{Delta, Layer, Model, Scales, Weights};

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

static COUNTS_1: [u16; 4] = [
    3, 3, 3, 3,
];
static DISTANCES_1: [u8; 12] = [
    0, 198, 99, 13, 95, 123, 32, 138, 76, 10, 150, 123,
];
static VALUES_1: [i8; 12] = [
    -71, -36, -71, 31, 111, -45, -113, 117, 21, 96, -6, -7,
];
static FACTORS_1: [u32; 1] = [
    551466520,
];
static COUNTS_2: [u16; 3] = [
    2, 2, 2,
];
static DISTANCES_2: [u8; 6] = [
    0, 2, 1, 1, 1, 1,
];
static VALUES_2: [i8; 6] = [
    -25, -108, 89, -60, 70, -39,
];

/// The model. Its tables are checked here, once: keep it.
///
/// # Errors
/// None, unless this file was edited.
pub fn model() -> tamis::Result<Model<'static>> {
    let weights = Weights::Delta(Delta::new(300, &COUNTS_1, &DISTANCES_1, &VALUES_1)?);
    let layer_1 = Layer::new(weights, &FACTORS_1, &[], Activation::Relu)?;
    let weights = Weights::Delta(Delta::new(4, &COUNTS_2, &DISTANCES_2, &VALUES_2)?);
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
