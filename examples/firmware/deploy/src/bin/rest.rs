//! The programs without the model: what start-up and printing take alone. `tamis inspect` says what
//! the model adds to them. `under` stands for `file`: it makes a row of floats, and takes a known
//! length of stack in place of a prediction, which shows how deep the program is.
//!
//! `cargo ci deploy` holds the sum of both to the program with the model. Not needed to run a
//! model; delete it in a copy.
#![no_std]
#![no_main]

use core::mem::MaybeUninit;
use core::ptr;
use semihosting::{eprintln, println, process};

static PICTURES: &[[u8; PIXELS + 1]] = include_bytes!("../../model/pictures.bin").as_chunks().0;
/// Read in place of a prediction; the compiler does not know it.
static PREDICTION: Result<f32, tamis::Error> = Ok(0.0);

const PIXELS: usize = 64;
/// Bytes of stack, more than printing takes; `cargo ci deploy` knows them.
const ROOM: usize = 4096;
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
    let mut right = 0;
    for [picture @ .., label] in PICTURES {
        let (class, prediction) = classify(picture)?;
        right += u32::from(class == *label);
        println!("picture of a {label}: class {class}, prediction {:#010x}", prediction.to_bits());
    }
    println!("{right} of {} right", PICTURES.len());
    Ok(())
}

fn classify(bytes: &[u8]) -> tamis::Result<(u8, f32)> {
    if matches!(env!("CARGO_BIN_NAME").as_bytes(), b"under") {
        let mut row = [0.0; PIXELS];
        for (x, &byte) in row.iter_mut().zip(bytes) {
            *x = f32::from(byte) * SCALE;
        }
        take(&row);
    }
    // SAFETY: reads a valid value.
    let prediction = unsafe { ptr::read_volatile(&raw const PREDICTION) }?;
    Ok((u8::from(prediction > 0.5), prediction))
}

/// Writes to the far end of so much stack.
#[inline(never)]
fn take(row: &[f32]) {
    core::hint::black_box(row);
    let mut room = MaybeUninit::<[u8; ROOM]>::uninit();
    // SAFETY: within the array.
    unsafe { ptr::write_volatile(core::hint::black_box(&mut room).as_mut_ptr().cast::<u8>(), 0) }
}
