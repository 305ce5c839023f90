//! Prints what every layer of a model of floats gives, as `tamis compare` reads it.
#![no_std]
#![no_main]

#[path = "../console.rs"]
mod console;
#[path = "../entry.rs"]
mod entry;

use console::Line;
use tamis_tests::deployed;

/// True when all was printed.
fn run() -> bool {
    deployed::trace_floats(|line| Line::new().text(line).print()).is_ok()
}
