//! The program without the model: what start-up and printing take alone. `tamis inspect` says what the model adds to it.
//!
//! `cargo ci deploy` holds the sum of both to the program with the model. Not needed to run a model; delete it in a copy.
#![no_std]
#![no_main]

use core::ptr;
use semihosting::{eprintln, println, process};

static PICTURES: &[[u8; PIXELS + 1]] = include_bytes!("../../model/pictures.bin").as_chunks().0;
/// Read in place of a prediction; the compiler does not know it.
static PREDICTION: Result<f32, tamis::Error> = Ok(0.0);

const PIXELS: usize = 64;

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
    let mut right = 0;
    for [_picture @ .., label] in PICTURES {
        let (class, prediction) = classify()?;
        right += u32::from(class == *label);
        println!("picture of a {label}: class {class}, prediction {:#010x}", prediction.to_bits());
    }
    println!("{right} of {} right", PICTURES.len());
    Ok(())
}

fn classify() -> tamis::Result<(u8, f32)> {
    // SAFETY: reads a valid value.
    let prediction = unsafe { ptr::read_volatile(&raw const PREDICTION) }?;
    Ok((u8::from(prediction > 0.5), prediction))
}
