//! The cases that the first two images have no room for, run and reported the same way; see
//! `main.rs`.
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

/// Runs the third image's cases; true when every digest is the pinned one.
fn run() -> bool {
    runner::run(Case::THIRD)
}
