//! Models as they are put on a microcontroller: files, and what `tamis export` makes of them. 784 inputs, ten
//! hidden neurons, ten outputs, 1000, 500 or 200 weights, of which the last layer has 100 each
//! time. And a deep one that recipe `dynamic` has trained, `trained_300`: digits of 8 × 8 pixels, two hidden layers.
//!
//! `UPDATE_GOLDEN=1 cargo test -p tamis-tests --test all deployed` writes all of it anew.

use tamis::infer::model::zeros;
use tamis::infer::trace::{Kind, Trace};
use tamis::store::wire::{self, QuantisedView, View};

/// Modules that were exported.
macro_rules! exported {
    ($($name:ident $path:literal)*) => {
        $(
            #[path = $path]
            pub mod $name;
        )*
    };
}
exported! {
    tables_1000 "deployed/tables_1000.rs"
    tables_500 "deployed/tables_500.rs"
    tables_200 "deployed/tables_200.rs"
    blocks_1000 "deployed/blocks_1000.rs"
    straight_1000 "deployed/straight_1000.rs"
    straight_500 "deployed/straight_500.rs"
    floats_1000 "deployed/floats_1000.rs"
    floats_500 "deployed/floats_500.rs"
    rows_1000 "deployed/rows_1000.rs"
    rows_500 "deployed/rows_500.rs"
    trained_300 "deployed/trained_300.rs"
}

/// The file of 1000 weights, each layer in the encoding that is fastest: blocks, and all weights.
pub static INTEGERS: &[u8] = tamis::include_model!("deployed/tables_1000.tamis");
/// The same with floats, in blocks.
pub static FLOATS: &[u8] = tamis::include_model!("deployed/floats_1000.tamis");

/// What the file of 1000 weights predicts, read by the compiler.
#[must_use]
pub fn embedded(row: &[u8; INPUTS]) -> [i32; OUTPUTS] {
    let model = tamis::embed_quantised!("deployed/tables_1000.tamis");
    let mut y = zeros();
    let done = model.predict(row, &mut zeros::<_, 13>(), &mut y);
    debug_assert!(done.is_ok(), "the scratch is that of ten hidden neurons");
    y
}

/// The same of the file of floats.
#[must_use]
pub fn embedded_floats(row: &[f32; INPUTS]) -> [f32; OUTPUTS] {
    let model = tamis::embed_model!("deployed/floats_1000.tamis");
    let mut y = [0.0; OUTPUTS];
    let done = model.predict(row, &mut [0.0; 10], &mut y);
    debug_assert!(done.is_ok(), "the scratch is that of ten hidden neurons");
    y
}

/// What the layers of the file of integers give on two rows, the second of which is the first from
/// its end; each line to `put`.
///
/// # Errors
/// The file is refused.
pub fn trace_integers(put: impl FnMut(&str)) -> tamis::Result<()> {
    let view = QuantisedView::parse(INTEGERS)?;
    let mut trace = Trace::new(Kind::Integers, wire::checksum(INTEGERS), put);
    for row in rows() {
        trace.integers(&view.model().chain(), &row, &mut [0; 13], &mut [0; OUTPUTS])?;
    }
    trace.finish();
    Ok(())
}

/// The same of the file of floats.
///
/// # Errors
/// The file is refused.
pub fn trace_floats(put: impl FnMut(&str)) -> tamis::Result<()> {
    let view = View::parse(FLOATS)?;
    let mut trace = Trace::new(Kind::Floats, wire::checksum(FLOATS), put);
    for row in rows() {
        trace.floats(&view.model().chain(), &row[..], &mut [0.0; 10], &mut [0.0; OUTPUTS])?;
    }
    trace.finish();
    Ok(())
}

/// The row, and the same from its end.
fn rows() -> [[u8; INPUTS]; 2] {
    let mut back = ROW;
    back.reverse();
    [ROW, back]
}

/// Numbers in a row.
pub const INPUTS: usize = 784;
/// Numbers in a prediction.
pub const OUTPUTS: usize = 10;

/// A row.
pub static ROW: [u8; INPUTS] = {
    let (mut row, mut k, mut state) = ([0; INPUTS], 0, 7_u32);
    while k < INPUTS {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        row[k] = (state >> 24) as u8;
        k += 1;
    }
    row
};

/// The same row as floats.
pub static FLOAT_ROW: [f32; INPUTS] = {
    let (mut row, mut k) = ([0.0; INPUTS], 0);
    while k < INPUTS {
        row[k] = ROW[k] as f32 / 3.0;
        k += 1;
    }
    row
};
