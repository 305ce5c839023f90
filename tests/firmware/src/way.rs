//! What the programs have in common that `cargo ci` writes to measure a way of deploying a model:
//! each predicts one row and ends with what the outputs add up to.
#![allow(dead_code, missing_docs)]

use core::panic::PanicInfo;
use core::ptr;
use semihosting::process::exit;

/// Numbers that no prediction gave.
static NUMBERS: [i32; 16] = [1; 16];

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

#[cfg(target_arch = "arm")]
#[cortex_m_rt::entry]
fn main() -> ! {
    exit(crate::run())
}

#[cfg(target_arch = "riscv32")]
#[riscv_rt::entry]
fn main() -> ! {
    exit(crate::run())
}

/// The status of a program without a model.
#[inline(always)]
pub(crate) fn nothing() -> i32 {
    let numbers: &[i32; 16] = unknown(&NUMBERS);
    fold_u8(numbers)
}

/// What outputs of a model of integers add up to.
#[inline(always)]
pub(crate) fn fold_u8(y: &[i32]) -> i32 {
    let mut sum = 0_i32;
    for &y in y {
        sum = sum.wrapping_add(y);
        // No turn is unrolled, or programs would differ by it.
        core::hint::black_box(());
    }
    sum
}

/// The same of a model of floats.
#[inline(always)]
pub(crate) fn fold_f32(y: &[f32]) -> i32 {
    let mut sum = 0_i32;
    for &y in y {
        sum = sum.wrapping_add(y.to_bits() as i32);
        core::hint::black_box(());
    }
    sum
}

/// The same reference, of which the compiler knows nothing any more.
#[inline(always)]
pub(crate) fn unknown<T>(value: &'static T) -> &'static T {
    let place: *const T = value;
    // SAFETY: reads a pointer on the stack, which is a copy of a valid reference.
    unsafe { &*ptr::read_volatile(&place) }
}

/// Errors are looked at, as programs do: 1 unless there is one.
#[inline(always)]
pub(crate) fn looked_at<E>(done: Result<(), E>) -> i32 {
    i32::from(core::hint::black_box(done).is_ok())
}
