//! A program that reads a model and predicts, and can be linked only if nothing in it can panic.
//!
//! The panic handler calls a function that does not exist. Where the optimiser can show that no panic is reached, the
//! handler is dropped and the program links; otherwise the linker names `prediction_can_panic`. The model and the
//! row are volatile, so nothing about them is known when the program is built.
#![no_std]
#![no_main]

use core::panic::PanicInfo;
use core::ptr;
use semihosting::process::exit;
use tamis::wire::{Aligned, View};

/// Room for a model.
static MODEL: Aligned<[u8; 1024]> = Aligned([0; 1024]);
/// Its length, and that of the row.
static LENGTHS: [usize; 2] = [92, 3];
static FLOATS: [f32; 784] = [0.0; 784];
static BYTES: [u8; 784] = [0; 784];

unsafe extern "C" {
    /// Defined nowhere.
    safe fn prediction_can_panic() -> !;
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    prediction_can_panic()
}

#[cfg(target_arch = "arm")]
#[cortex_m_rt::entry]
fn main() -> ! {
    exit(i32::from(predict().is_err()))
}

#[cfg(target_arch = "riscv32")]
#[riscv_rt::entry]
fn main() -> ! {
    exit(i32::from(predict().is_err()))
}

/// Both kinds of rows, with a scratch and an output of the lengths that the model asks for.
fn predict() -> tamis::Result<f32> {
    let (model, floats, bytes) = (unknown(&MODEL.0), unknown(&FLOATS), unknown(&BYTES));
    let [len, inputs] = unknown(&LENGTHS);
    let view = View::parse(model.get(..*len).unwrap_or(&[]))?;
    let model = view.model();
    let (mut scratch, mut out) = ([0.0; 64], [0.0; 64]);
    let out = out.get_mut(..model.outputs()).unwrap_or(&mut []);
    model.predict(floats.get(..*inputs).unwrap_or(&[]), &mut scratch, out)?;
    model.predict_u8(bytes.get(..*inputs).unwrap_or(&[]), &mut scratch, out)?;
    Ok(out.first().copied().unwrap_or(0.0))
}

/// The same reference, of which the compiler knows nothing any more.
fn unknown<T>(value: &'static T) -> &'static T {
    let place: *const T = value;
    // SAFETY: reads a pointer on the stack, which is a copy of a valid reference.
    unsafe { &*ptr::read_volatile(&place) }
}
