//! Markers between which the emulator's plugin counts instructions.
//!
//! A marker is an instruction that does nothing and that no compiler emits: on Arm a move of r9 or
//! r10 to itself, on RISC-V `slti` into x0, from the space of hints that the architecture leaves to
//! custom use. The plugin does not count markers themselves, and regions nest.

use crate::console::Line;
use core::arch::asm;
use tamis_tests::cases::Probe;

/// Regions that one case may count.
const REGIONS: usize = 8;

/// Remembers what was counted, to print it when nothing is being counted any more.
#[derive(Default)]
pub(crate) struct Meter {
    regions: [(&'static str, u32); REGIONS],
    used: usize,
}

impl Meter {
    pub(crate) fn print(&self) {
        for (name, units) in self.regions.iter().take(self.used) {
            Line::new().text("region ").text(name).text(" units=").decimal(*units).print();
        }
    }
}

impl Probe for Meter {
    // Not inlined: inside a case the optimiser may move, predicate or split the code around a
    // marker.
    #[inline(never)]
    fn start(&mut self) {
        start();
    }

    #[inline(never)]
    fn stop(&mut self, region: &'static str, units: u32) {
        stop();
        let slot = self.regions.get_mut(self.used).expect("a case counts at most eight regions");
        *slot = (region, units);
        self.used += 1;
    }
}

#[inline(always)]
pub(crate) fn start() {
    // SAFETY: the instruction writes a register's own value back, or nothing at all.
    unsafe {
        #[cfg(target_arch = "arm")]
        asm!("mov r9, r9", options(nostack, preserves_flags));
        #[cfg(target_arch = "riscv32")]
        asm!("slti x0, x9, 9", options(nostack, preserves_flags));
    }
}

#[inline(always)]
pub(crate) fn stop() {
    // SAFETY: as in `start`.
    unsafe {
        #[cfg(target_arch = "arm")]
        asm!("mov r10, r10", options(nostack, preserves_flags));
        #[cfg(target_arch = "riscv32")]
        asm!("slti x0, x10, 10", options(nostack, preserves_flags));
    }
}
