//! Predicts with models that the runner put into flash, and prints for each a digest of the
//! outputs, the stack that it took, and that of the prediction alone; the emulator's plugin counts
//! the instructions of each prediction.
//!
//! The models follow each other from the address of `_models` on. Each starts with four words: its
//! kind (0 for dense floats, 1 for a file of floats, 2 for one of integers, anything else for the
//! end), the outputs of dense floats, and the lengths in bytes of the input row and of the model,
//! which follow, each padded to whole words.
//!
//! ```text
//! model digest=0xHEX stack=BYTES alone=BYTES
//! done
//! ```
#![no_std]
#![no_main]

#[path = "../console.rs"]
mod console;
#[path = "../entry.rs"]
mod entry;
#[path = "../meter.rs"]
#[allow(dead_code, reason = "shared with the matrix, which names what it counts")]
mod meter;
#[path = "../plain.rs"]
mod plain;
#[path = "../stack.rs"]
mod stack;

use console::Line;
use core::slice;
use tamis::store::wire::{QuantisedView, View};
use tamis_tests::cases::Digest;

/// Words of the scratch and of the output.
const SCRATCH: usize = 512;
const OUTPUTS: usize = 128;

unsafe extern "C" {
    /// First word of the models.
    static _models: u32;
}

/// Predicts with each model; true unless one fails.
fn run() -> bool {
    let mut at = &raw const _models;
    let mut fine = true;
    loop {
        // SAFETY: the runner put models there and an end behind them; all lengths are theirs.
        let [kind, outputs, row_len, model_len] = unsafe { at.cast::<[u32; 4]>().read_volatile() };
        if kind > 2 {
            break;
        }
        let (row_words, model_words) =
            (row_len.div_ceil(4) as usize, model_len.div_ceil(4) as usize);
        // SAFETY: as above.
        let (row, model) = unsafe {
            let row = at.add(4);
            let model = row.add(row_words);
            at = model.add(model_words);
            (
                slice::from_raw_parts(row.cast::<u8>(), row_len as usize),
                slice::from_raw_parts(model.cast::<u8>(), model_len as usize),
            )
        };
        fine &= one(kind, outputs as usize, row, model);
    }
    Line::new().text("done").print();
    fine
}

#[inline(never)]
fn one(kind: u32, outputs: usize, row: &[u8], model: &[u8]) -> bool {
    let mut out = [0_u32; OUTPUTS];
    stack::paint();
    let depth = stack::depth();
    let written = match kind {
        0 => dense(row, model, outputs, &mut out),
        1 => floats(row, model, &mut out),
        _ => integers(row, model, &mut out),
    };
    let Some((written, [deepest, alone])) = written else { return false };
    let stack = deepest.max(stack::high_water()) - depth;
    let mut digest = Digest::default();
    out.iter().take(written).for_each(|&word| digest.word(word));
    let line = Line::new().text("model digest=").hex(digest.value()).text(" stack=").decimal(stack);
    line.text(" alone=").decimal(alone).print();
    true
}

/// A slice of words as one of floats.
fn floats_of(bytes: &[u8]) -> &[f32] {
    // SAFETY: rows and models start at whole words, and every word is a float.
    unsafe { slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / 4) }
}

/// Outputs as floats.
fn floats_mut(words: &mut [u32]) -> &mut [f32] {
    // SAFETY: as above.
    unsafe { slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len()) }
}

/// Outputs as integers.
fn integers_mut(words: &mut [u32]) -> &mut [i32] {
    // SAFETY: as above.
    unsafe { slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len()) }
}

static mut SPACE: [u32; SCRATCH] = [0; SCRATCH];

/// The scratch, which no stack holds.
fn scratch() -> &'static mut [u32] {
    // SAFETY: there is one thread of execution, and each prediction takes it once.
    unsafe { &mut *(&raw mut SPACE) }
}

/// Outputs, and the deepest stack with that of the prediction alone.
type Predicted = Option<(usize, [u32; 2])>;

/// Counts a prediction and measures its stack, from the frame that this is inlined into.
#[inline(always)]
fn counted(predict: impl FnOnce() -> bool) -> Option<[u32; 2]> {
    let before = stack::high_water();
    stack::paint();
    let depth = stack::depth();
    meter::start();
    let done = predict();
    meter::stop();
    let deepest = stack::high_water();
    done.then(|| [before.max(deepest), deepest - depth])
}

#[inline(never)]
fn dense(row: &[u8], weights: &[u8], outputs: usize, out: &mut [u32]) -> Predicted {
    let (row, weights, out) =
        (floats_of(row), floats_of(weights), floats_mut(out.get_mut(..outputs)?));
    let took = counted(|| {
        plain::dense(row, weights, out);
        true
    })?;
    Some((outputs, took))
}

#[inline(never)]
fn floats(row: &[u8], model: &[u8], out: &mut [u32]) -> Predicted {
    let view = View::parse(model).ok()?;
    let out = out.get_mut(..view.model().outputs())?;
    let scratch = scratch().get_mut(..view.model().scratch_len())?;
    let took = predict_floats(&view, floats_of(row), floats_mut(scratch), floats_mut(out))?;
    Some((out.len(), took))
}

#[inline(never)]
fn predict_floats(
    view: &View<'_>,
    row: &[f32],
    scratch: &mut [f32],
    out: &mut [f32],
) -> Option<[u32; 2]> {
    counted(|| view.model().predict(row, scratch, out).is_ok())
}

#[inline(never)]
fn integers(row: &[u8], model: &[u8], out: &mut [u32]) -> Predicted {
    let view = QuantisedView::parse(model).ok()?;
    let out = out.get_mut(..view.model().outputs())?;
    let scratch = scratch().get_mut(..view.model().scratch_len())?;
    let took = predict_integers(&view, row, integers_mut(scratch), integers_mut(out))?;
    Some((out.len(), took))
}

#[inline(never)]
fn predict_integers(
    view: &QuantisedView<'_>,
    row: &[u8],
    scratch: &mut [i32],
    out: &mut [i32],
) -> Option<[u32; 2]> {
    counted(|| view.model().predict(row, scratch, out).is_ok())
}
