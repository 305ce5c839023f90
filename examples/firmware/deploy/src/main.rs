//! A model in flash: checked by the compiler, then predicting from rows of bytes, without a copy
//! and without a heap. For a model that changes without the program, `tamis::include_model!` and
//! `tamis::store::wire::View` check and read its file at start.
//!
//! The host makes the files of `model/`
//! (`cargo run --release -p tamis-examples --example 4_deploy`); replace `digits.tamis` by a model
//! of yours and the pictures by what your sensor reads. Then, with the target installed
//! (`rustup target add thumbv7em-none-eabihf`), `cargo run --release` in this folder runs it in
//! QEMU, on a Cortex-M4F.
//!
//! For another board change the target and the runner in `.cargo/config.toml` and the addresses in
//! `memory.x`. The report goes to the debugger by semihosting, which stops a board that has no
//! debugger: there, act on `classify` instead of printing it.
#![no_std]
#![no_main]

use semihosting::{eprintln, println, process};
use tamis::infer::model::{Chain, Scaled};

/// Pictures to try the model on, each 8×8 bytes and its label.
static PICTURES: &[[u8; PIXELS + 1]] = include_bytes!("../model/pictures.bin").as_chunks().0;

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
    // Every length, index and the checksum are checked when this is compiled, and never again; the
    // numbers stay in flash.
    let model = tamis::embed_model!("../model/digits.tamis");
    let mut right = 0;
    for [picture @ .., label] in PICTURES {
        let (class, prediction) = classify(model, picture)?;
        right += u32::from(class == *label);
        // Bits rather than decimals: formatting floats takes more flash than the model.
        println!("picture of a {label}: class {class}, prediction {:#010x}", prediction.to_bits());
    }
    println!("{right} of {} right", PICTURES.len());
    Ok(())
}

/// The class, 0 or 1, and the number that it was decided by.
fn classify<const KERNELS: u16>(
    model: &Chain<'_, KERNELS>,
    bytes: &[u8],
) -> tamis::Result<(u8, f32)> {
    // One hidden layer needs no scratch; for deeper models give `model.scratch_len()` floats.
    let mut prediction = [0.0];
    model.predict_from(&Scaled { bytes, scale: SCALE }, &mut [], &mut prediction)?;
    Ok((u8::from(prediction[0] > 0.5), prediction[0]))
}
