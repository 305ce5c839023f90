//! Two of the least programs, for their size alone: one that does nothing, and one with a plain
//! loop over dense floats. Which one it is follows from the name of the binary.
#![no_std]
#![no_main]

#[path = "plain.rs"]
#[allow(dead_code, reason = "of one program")]
mod plain;

use core::panic::PanicInfo;
use core::ptr;
use semihosting::process::exit;

static FLOATS: &[f32] = &[];
static INPUTS: usize = 0;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

#[cfg(target_arch = "arm")]
#[cortex_m_rt::entry]
fn main() -> ! {
    exit(run(env!("CARGO_BIN_NAME")))
}

#[cfg(target_arch = "riscv32")]
#[riscv_rt::entry]
fn main() -> ! {
    exit(run(env!("CARGO_BIN_NAME")))
}

/// The program of a name, of which the compiler keeps only that.
#[inline(always)]
fn run(name: &str) -> i32 {
    let mut out = [0.0; 32];
    if name.as_bytes() == b"flash-dense-floats" {
        plain::dense(unknown(&FLOATS), unknown(&FLOATS), &mut out);
        return out.first().map_or(0, |&y| y.to_bits() as i32);
    }
    unknown(&INPUTS) as i32
}

/// A value of which the compiler knows nothing any more.
fn unknown<T: Copy>(place: &'static T) -> T {
    // SAFETY: reads a valid value.
    unsafe { ptr::read_volatile(place) }
}
