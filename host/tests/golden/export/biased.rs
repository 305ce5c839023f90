//! A model of floats: 20 inputs, 1 output, 24 weights, checksum d51d2af9.
//!
//! Exported by tamis: export it again rather than edit it. It needs the crate `tamis`, no heap and no file.
//! The compiler checks the tables, and links the kernels that they need and no check.

#![allow(dead_code, long_running_const_eval, missing_docs, unreachable_pub, clippy::all)]

use tamis::infer::model::{Activation, Chain, Csr, Layer, Sum};

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
static BIASES_1: [f32; 5] = [
    0.25, -3.0, 0.0, 0.001, 7.5,
];
static SIGNS_2: [u32; 1] = [
    9,
];

const LAYERS: [Layer<'static>; 2] = [
    Layer::Csr(checked(checked(Csr::new(20, &COUNTS_1, &COLUMNS_1, &VALUES_1, Activation::Relu)).with_biases(&BIASES_1))),
    Layer::Sum(checked(Sum::new(5, &SIGNS_2))),
];

/// The model, with the kernels that its layers need.
pub static MODEL: Chain<'static, { Chain::kernels(&LAYERS) }> =
    checked(Chain::new(&LAYERS));

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
pub fn predict(x: &[f32; INPUTS]) -> [f32; OUTPUTS] {
    let mut y = [0.0; OUTPUTS];
    let done = MODEL.predict(x, &mut [0.0; SCRATCH], &mut y);
    debug_assert!(done.is_ok(), "the compiler has compared the lengths");
    y
}

/// The class of one row.
#[must_use]
pub fn classify(x: &[f32; INPUTS]) -> usize {
    usize::from(predict(x)[0] >= THRESHOLD)
}
