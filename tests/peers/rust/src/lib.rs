//! The loop over the rows, their classes on the semihosting console, and the models: what all
//! programs in Rust share.
//!
//! Between the two markers of `tests/plugin/insncount.c` stands one call of the engine, and one
//! more of `pool` where it averages.
#![no_std]

use core::arch::asm;
use core::hint::black_box;
use core::panic::PanicInfo;
use semihosting::process::exit;
use semihosting::sys::arm_compat::sys_writec;

/// What `run.sh` has made.
#[allow(missing_docs, unused)]
pub mod models {
    include!(concat!(env!("OUT_DIR"), "/models.rs"));
}

/// Numbers that an engine takes: all pixels, or averages of 2×2.
pub use models::dense::INPUTS;

const PIXELS: usize = 784;
const POOLED: usize = PIXELS / 4;
/// The runner puts the number of rows here, and the rows behind it.
const COUNT: *const u32 = 0x2100_0000 as *const u32;
const ROWS: *const [u8; PIXELS] = 0x2100_0010 as *const [u8; PIXELS];
/// A row as the engine wants it; further on, so that it counts for nobody.
const INPUT: usize = 0x21e0_0000;
const AVERAGES: *mut [u8; POOLED] = 0x21f0_0000 as *mut [u8; POOLED];

/// Classifies every row. To bring a byte to what the engine takes is not counted, averaging is.
pub fn run<T: Copy + 'static>(number: fn(u8) -> T, classify: fn(&[T; INPUTS]) -> usize) -> ! {
    let (classify, pool) =
        (black_box(classify), black_box(pool as fn(&[u8; PIXELS], &mut [u8; POOLED])));
    // SAFETY: memory that the part has and no linker knows of; the runner has written it before the
    // start.
    let count = unsafe { COUNT.read_volatile() } as usize;
    for k in 0..count {
        // SAFETY: as above; there are as many rows.
        let row = unsafe { &*ROWS.add(k) };
        // SAFETY: memory of which nothing else knows.
        let averages = unsafe { &mut *AVERAGES };
        let mut bytes: &[u8] = row;
        if INPUTS != PIXELS {
            counted(|| pool(row, averages));
            bytes = averages;
        }
        let input = INPUT as *mut T;
        for (i, &byte) in bytes.iter().enumerate() {
            // SAFETY: at most 784 numbers of at most four bytes in memory of which nothing else
            // knows.
            unsafe { input.add(i).write_volatile(number(byte)) };
        }
        // SAFETY: they were just written.
        let input = unsafe { &*input.cast::<[T; INPUTS]>() };
        let class = counted(|| black_box(classify(input)));
        sys_writec(b'0' + class as u8);
    }
    exit(0)
}

/// Between the markers of the plugin.
#[inline(always)]
fn counted<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: each marker writes a register's own value back.
    unsafe { asm!("mov r9, r9", options(nostack, preserves_flags)) };
    let result = work();
    // SAFETY: as above.
    unsafe { asm!("mov r10, r10", options(nostack, preserves_flags)) };
    result
}

/// Means of 2×2 pixels, rounded.
fn pool(row: &[u8; PIXELS], to: &mut [u8; POOLED]) {
    for (i, to) in to.as_chunks_mut::<14>().0.iter_mut().enumerate() {
        let two: &[u8; 56] = row[56 * i..][..56].try_into().unwrap_or(&[0; 56]);
        for (j, to) in to.iter_mut().enumerate() {
            let four = [two[2 * j], two[2 * j + 1], two[28 + 2 * j], two[29 + 2 * j]];
            *to = ((four.iter().map(|&byte| u32::from(byte)).sum::<u32>() + 2) >> 2) as u8;
        }
    }
}

/// The place of the largest, of equal ones the lowest.
#[inline(always)]
pub fn best<T: Copy + PartialOrd>(y: &[T]) -> usize {
    let mut best = 0;
    for k in 1..y.len() {
        if y[k] > y[best] {
            best = k;
        }
    }
    best
}

/// A sum in units of the next layer, rounded twice as TensorFlow Lite does it.
#[inline(always)]
pub fn requantise(sum: i32, multiplier: i32, shift: u32) -> i32 {
    let high = ((i64::from(sum) * i64::from(multiplier) + (1 << 30)) >> 31) as i32;
    let mask = (1 << shift) - 1;
    (high >> shift) + i32::from(high & mask > (mask >> 1) + i32::from(high < 0))
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    exit(1)
}

/// Makes a program of a way to bring a byte to what an engine takes, and of the engine.
#[macro_export]
macro_rules! engine {
    ($number:expr, $classify:expr) => {
        #[cortex_m_rt::entry]
        fn main() -> ! {
            $crate::run($number, $classify)
        }
    };
}
