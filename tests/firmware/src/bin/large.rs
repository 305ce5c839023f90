//! The cases that one core alone runs, reported as those of `main.rs`.
#![no_std]
#![no_main]

#[path = "../console.rs"]
mod console;
#[path = "../entry.rs"]
mod entry;
#[path = "../meter.rs"]
mod meter;
#[path = "../runner.rs"]
mod runner;
#[path = "../stack.rs"]
mod stack;

use tamis_tests::cases::Case;

/// Runs the cases of one core; true when every digest is the pinned one.
fn run() -> bool {
    runner::run(Case::LARGE)
}
