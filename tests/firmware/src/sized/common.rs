//! What the programs of this folder have in common: each predicts one row in one way and does
//! nothing else, so that its sections, less those of `none.rs`, are what that way of predicting
//! takes in flash.
//!
//! They link only if nothing in them can panic (see `../bin/no-panic.rs`).

use core::panic::PanicInfo;
use core::ptr;
use semihosting::process::exit;

static BYTES: [u8; 784] = [1; 784];
static FLOATS: [f32; 784] = [1.0; 784];

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
    exit(crate::predict(unknown(&BYTES), unknown(&FLOATS)))
}

#[cfg(target_arch = "riscv32")]
#[riscv_rt::entry]
fn main() -> ! {
    exit(crate::predict(unknown(&BYTES), unknown(&FLOATS)))
}

/// The same reference, of which the compiler knows nothing any more.
fn unknown<T>(value: &'static T) -> &'static T {
    let place: *const T = value;
    // SAFETY: reads a pointer on the stack, which is a copy of a valid reference.
    unsafe { &*ptr::read_volatile(&place) }
}
