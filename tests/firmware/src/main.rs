//! Runs every conformance case on the part and prints, per case, the digest of its result, the RAM it used and the
//! regions that the emulator counted instructions in.
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
mod stack;

use console::Line;
use meter::Meter;
use tamis_tests::cases::Case;

/// Runs all cases; true when every digest is the pinned one.
fn run() -> bool {
    let mut all_pinned = true;
    for case in Case::ALL {
        all_pinned &= run_one(case);
    }
    Line::new().text("done").print();
    all_pinned
}

#[inline(never)]
fn run_one(case: &Case<Meter>) -> bool {
    let mut meter = Meter::default();
    stack::paint();
    meter::start();
    let digest = (case.run)(&mut meter);
    meter::stop();
    let stack = stack::high_water();
    meter.print();
    Line::new()
        .text("case ")
        .text(case.name)
        .text(" digest=")
        .hex(digest)
        .text(" static=")
        .decimal(stack::static_bytes())
        .text(" stack=")
        .decimal(stack)
        .print();
    digest == case.pinned
}
