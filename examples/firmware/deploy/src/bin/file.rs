//! The same with a model file that is checked and read when the program starts, so that it may
//! change without the program.
//!
//! `cargo ci deploy` holds what it takes to what `tamis inspect` says of a file. Not needed to run
//! a model; delete it in a copy.
#![no_std]
#![no_main]

use semihosting::{eprintln, println, process};
use tamis::infer::model::Model;
use tamis::store::wire::View;

/// Stays in flash.
static MODEL: &[u8] = tamis::include_model!("../../model/digits.tamis");
/// Pictures to try the model on, each 8×8 bytes and its label.
static PICTURES: &[[u8; PIXELS + 1]] = include_bytes!("../../model/pictures.bin").as_chunks().0;

const PIXELS: usize = 64;
/// What a byte of a picture stands for; as in training.
const SCALE: f32 = 1.0 / 255.0;

#[cortex_m_rt::entry]
fn main() -> ! {
    match run() {
        Ok(()) => process::exit(0),
        Err(error) => {
            eprintln!("{error}");
            process::exit(1)
        }
    }
}

fn run() -> tamis::Result<()> {
    // Every length, index and the checksum are checked here, and never again.
    let view = View::parse(MODEL)?;
    let mut right = 0;
    for [picture @ .., label] in PICTURES {
        let (class, prediction) = classify(view.model(), picture)?;
        right += u32::from(class == *label);
        // Bits rather than decimals: formatting floats takes more flash than the model.
        println!("picture of a {label}: class {class}, prediction {:#010x}", prediction.to_bits());
    }
    println!("{right} of {} right", PICTURES.len());
    Ok(())
}

/// The class, 0 or 1, and the number that it was decided by.
fn classify(model: &Model<'_>, bytes: &[u8]) -> tamis::Result<(u8, f32)> {
    // One hidden layer needs no scratch; for deeper models give `model.scratch_len()` floats.
    let mut prediction = [0.0];
    let mut row = [0.0; PIXELS];
    for (x, &byte) in row.iter_mut().zip(bytes) {
        *x = f32::from(byte) * SCALE;
    }
    model.predict(&row, &mut [], &mut prediction)?;
    Ok((u8::from(prediction[0] > 0.5), prediction[0]))
}
