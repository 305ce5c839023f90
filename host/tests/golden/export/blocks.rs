//! A model of 8-bit integers: 300 inputs, 3 outputs, 18 weights, checksum edd2bf84.
//!
//! Exported by tamis: export it again rather than edit it. It needs the crate `tamis`, no heap and no file.

#![allow(dead_code, missing_docs, unreachable_pub, clippy::all)]

use tamis::model::Activation;
use tamis::quantised::{Blocks, Layer, Model, Scales, Weights};

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

static COUNTS_1: [u8; 8] = [
    2, 3, 3, 2, 1, 0, 0, 1,
];
static PAIRS_1: [[u8; 2]; 12] = [
    [0, 185], [199, 220], [13, 31], [109, 111], [233, 211], [32, 143], [171, 117], [248, 21],
    [10, 96], [161, 250], [255, 185], [241, 249],
];
static FACTORS_1: [u32; 1] = [
    551466520,
];
static COUNTS_2: [u8; 3] = [
    2, 2, 2,
];
static PAIRS_2: [[u8; 2]; 6] = [
    [0, 231], [3, 148], [1, 89], [3, 196], [1, 70], [3, 217],
];

/// The model. Its tables are checked here, once: keep it.
///
/// # Errors
/// None, unless this file was edited.
pub fn model() -> tamis::Result<Model<'static>> {
    let weights = Weights::Blocks(Blocks::new(300, 4, &COUNTS_1, &PAIRS_1)?);
    let layer_1 = Layer::new(weights, &FACTORS_1, &[], Activation::Relu)?;
    let weights = Weights::Blocks(Blocks::new(4, 3, &COUNTS_2, &PAIRS_2)?);
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
