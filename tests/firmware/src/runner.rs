//! Runs cases and prints what they gave.

use crate::console::Line;
use crate::meter::{self, Meter};
use crate::stack;
use tamis_tests::cases::Case;

/// True when every digest is the pinned one.
pub(crate) fn run(cases: &[Case<Meter>]) -> bool {
    let mut all_pinned = true;
    for case in cases {
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
