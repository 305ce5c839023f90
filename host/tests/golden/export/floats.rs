//! A model of floats: 20 inputs, 1 output, 20 weights, checksum 1332d866.
//!
//! Exported by tamis: export it again rather than edit it. It needs the crate `tamis`, no heap and no file.

#![allow(dead_code, missing_docs, unreachable_pub, clippy::all)]

use tamis::model::{Activation, Csr, Layer, Model, Sum};

/// Numbers in one input row.
pub const INPUTS: usize = 20;
/// Numbers in one prediction.
pub const OUTPUTS: usize = 1;
/// The least output that is class 1.
pub const THRESHOLD: f32 = -0.25;
/// Numbers between layers.
const SCRATCH: usize = 0;

static COUNTS_1: [u16; 5] = [
    4, 4, 4, 4, 4,
];
static COLUMNS_1: [u16; 20] = [
    0, 9, 14, 19, 0, 8, 13, 16, 4, 7, 12, 17, 3, 9, 14, 16, 4, 9, 12, 19,
];
static VALUES_1: [f32; 20] = [
    -0.7837838, -2.7297297, 3.0, -0.6216216, -0.6216216, 1.6756756, 1.081081, -1.2432432, 1.945946,
    -0.5135135, 2.7027028, 2.0270271, 1.2432432, 3.2702703, -1.8108108, -2.108108, -3.108108,
    3.2162163, -0.6756757, 3.108108,
];
static SIGNS_2: [u32; 1] = [
    9,
];

/// The model. Its tables are checked here, once: keep it.
///
/// # Errors
/// None, unless this file was edited.
pub fn model() -> tamis::Result<Model<'static>> {
    let layer_1 = Layer::Csr(Csr::new(20, &COUNTS_1, &COLUMNS_1, &VALUES_1, Activation::Relu)?);
    let layer_2 = Layer::Sum(Sum::new(5, &SIGNS_2)?);
    Model::new(&[layer_1, layer_2])
}

/// The outputs on one row.
///
/// # Errors
/// `model` is another one.
pub fn predict(model: &Model<'_>, x: &[f32; INPUTS], y: &mut [f32; OUTPUTS]) -> tamis::Result<()> {
    model.predict(x, &mut [0.0; SCRATCH], y)
}

/// The class of one row.
///
/// # Errors
/// `model` is another one.
pub fn classify(model: &Model<'_>, x: &[f32; INPUTS]) -> tamis::Result<usize> {
    let mut y = [0.0; OUTPUTS];
    predict(model, x, &mut y)?;
    Ok(usize::from(y[0] >= THRESHOLD))
}
