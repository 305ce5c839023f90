//! Runs every conformance case on the device and prints, per case, the digest of its result, the RAM
//! it used and the regions that the emulator counted instructions in.
//!
//! Lines on the semihosting console, in the order in which the counted regions end:
//!
//! ```text
//! region NAME units=DECIMAL
//! case NAME digest=0xHEX static=BYTES stack=BYTES
//! done
//! ```
//!
//! Exit status 0 when every digest is the pinned one, else 1.
#![no_std]
#![no_main]

mod console;
mod entry;
mod meter;
mod runner;
mod stack;

use tamis_tests::cases::Case;

/// Runs the first image's cases; true when every digest is the pinned one.
fn run() -> bool {
    runner::run(Case::FIRST)
}
