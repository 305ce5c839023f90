//! A program that reads a model of integers and classifies; the runner looks into the image for
//! what must not be in it.
//!
//! It links only if nothing in it can panic (see `no-panic.rs`), and the runner refuses an image
//! that holds a routine of the compiler's library for floats, on parts that have no float unit. The
//! model and the row are volatile, so nothing about them is known when the program is built.
#![no_std]
#![no_main]

use core::panic::PanicInfo;
use core::ptr;
use semihosting::process::exit;
use tamis::store::wire::{Aligned, QuantisedView};

/// Room for a model.
static MODEL: Aligned<[u8; 1024]> = Aligned([0; 1024]);
/// Its length, and that of the row.
static LENGTHS: [usize; 2] = [92, 3];
static ROW: [u8; 784] = [0; 784];

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
    exit(classify().map_or(-1, |class| class as i32))
}

#[cfg(target_arch = "riscv32")]
#[riscv_rt::entry]
fn main() -> ! {
    exit(classify().map_or(-1, |class| class as i32))
}

/// The class of the row, with a scratch and an output of the lengths that the model asks for.
fn classify() -> tamis::Result<usize> {
    let (model, row) = (unknown(&MODEL.0), unknown(&ROW));
    let [len, inputs] = unknown(&LENGTHS);
    let view = QuantisedView::parse(model.get(..*len).unwrap_or(&[]))?;
    let (mut scratch, mut out) = ([0; 80], [0; 64]);
    let out = out.get_mut(..view.model().outputs()).unwrap_or(&mut []);
    view.model().classify(row.get(..*inputs).unwrap_or(&[]), &mut scratch, out)
}

/// The same reference, of which the compiler knows nothing any more.
fn unknown<T>(value: &'static T) -> &'static T {
    let place: *const T = value;
    // SAFETY: reads a pointer on the stack, which is a copy of a valid reference.
    unsafe { &*ptr::read_volatile(&place) }
}
