//! Predicts with models that the runner put into flash, and prints for each a digest of the outputs and the stack that it took; the
//! emulator's plugin counts the instructions of each prediction.
//!
//! The models follow each other from the address of `_models` on. Each starts with four words: its kind (0 for dense floats, 1 for
//! a file of floats, 2 for one of integers, anything else for the end), the outputs of dense floats, and the lengths in bytes of
//! the input row and of the model, which follow, each padded to whole words.
//!
//! ```text
//! model digest=0xHEX stack=BYTES
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
use tamis::wire::{QuantisedView, View};
use tamis_tests::cases::Digest;

/// Words of the scratch and of the output.
const SCRATCH: usize = 256;
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
        let (row_words, model_words) = (row_len.div_ceil(4) as usize, model_len.div_ceil(4) as usize);
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
    let stack = stack::high_water() - depth;
    let mut digest = Digest::default();
    out.iter().take(written.unwrap_or(0)).for_each(|&word| digest.word(word));
    Line::new().text("model digest=").hex(digest.value()).text(" stack=").decimal(stack).print();
    written.is_some()
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

#[inline(never)]
fn dense(row: &[u8], weights: &[u8], outputs: usize, out: &mut [u32]) -> Option<usize> {
    let (row, weights, out) = (floats_of(row), floats_of(weights), floats_mut(out.get_mut(..outputs)?));
    meter::start();
    plain::dense(row, weights, out);
    meter::stop();
    Some(outputs)
}

#[inline(never)]
fn floats(row: &[u8], model: &[u8], out: &mut [u32]) -> Option<usize> {
    let view = View::parse(model).ok()?;
    let out = out.get_mut(..view.model().outputs())?;
    let scratch = scratch().get_mut(..view.model().scratch_len())?;
    predict_floats(&view, floats_of(row), floats_mut(scratch), floats_mut(out))?;
    Some(out.len())
}

#[inline(never)]
fn predict_floats(view: &View<'_>, row: &[f32], scratch: &mut [f32], out: &mut [f32]) -> Option<()> {
    meter::start();
    let done = view.model().predict(row, scratch, out);
    meter::stop();
    done.ok()
}

#[inline(never)]
fn integers(row: &[u8], model: &[u8], out: &mut [u32]) -> Option<usize> {
    let view = QuantisedView::parse(model).ok()?;
    let out = out.get_mut(..view.model().outputs())?;
    let scratch = scratch().get_mut(..view.model().scratch_len())?;
    predict_integers(&view, row, integers_mut(scratch), integers_mut(out))?;
    Some(out.len())
}

#[inline(never)]
fn predict_integers(
    view: &QuantisedView<'_>,
    row: &[u8],
    scratch: &mut [i32],
    out: &mut [i32],
) -> Option<()> {
    meter::start();
    let done = view.model().predict(row, scratch, out);
    meter::stop();
    done.ok()
}
