//! The QEMU matrix as data: which parts the firmware is built for and emulated on.
//!
//! Included by the firmware's build script (memory layout) and by the `cargo ci` runner (emulator).
//! Boards that share a target share one image, so they must share a memory layout; a test of the
//! runner holds them to it.

/// A range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// First address.
    pub origin: u32,
    /// Length in bytes.
    pub length: u32,
}

/// One emulated part.
#[derive(Debug, Clone, Copy)]
pub struct Board {
    /// Processor core, as the result table shows it.
    pub core: &'static str,
    /// Rust target.
    pub target: &'static str,
    /// QEMU program.
    pub emulator: &'static str,
    /// QEMU machine; it fixes the processor too.
    pub machine: &'static str,
    /// Further arguments of QEMU.
    pub options: &'static [&'static str],
    /// Code and constants.
    pub flash: Region,
    /// Data and stack.
    pub ram: Region,
}

impl Board {
    /// Where the models that are measured lie, behind the program.
    pub const fn models(&self) -> Region {
        let origin = self.flash.origin + self.flash.length / 4;
        Region { origin, length: self.flash.length - self.flash.length / 4 }
    }
}

const K: u32 = 1 << 10;
const M: u32 = 1 << 20;

const fn at(origin: u32, length: u32) -> Region {
    Region { origin, length }
}

/// Every board, smallest core first.
pub const BOARDS: &[Board] = &[
    Board {
        core: "Cortex-M0",
        target: "thumbv6m-none-eabi",
        emulator: "qemu-system-arm",
        machine: "microbit",
        options: &[],
        flash: at(0, 256 * K),
        ram: at(0x2000_0000, 16 * K),
    },
    Board {
        core: "Cortex-M3",
        target: "thumbv7m-none-eabi",
        emulator: "qemu-system-arm",
        machine: "mps2-an385",
        options: &[],
        flash: at(0, 4 * M),
        ram: at(0x2000_0000, 4 * M),
    },
    Board {
        core: "Cortex-M4F",
        target: "thumbv7em-none-eabihf",
        emulator: "qemu-system-arm",
        machine: "mps2-an386",
        options: &[],
        flash: at(0, 4 * M),
        ram: at(0x2000_0000, 4 * M),
    },
    Board {
        core: "Cortex-M7",
        target: "thumbv7em-none-eabihf",
        emulator: "qemu-system-arm",
        machine: "mps2-an500",
        options: &[],
        flash: at(0, 4 * M),
        ram: at(0x2000_0000, 4 * M),
    },
    Board {
        core: "Cortex-M33",
        target: "thumbv8m.main-none-eabihf",
        emulator: "qemu-system-arm",
        machine: "mps2-an505",
        options: &[],
        flash: at(0x1000_0000, 4 * M),
        ram: at(0x3800_0000, 4 * M),
    },
    Board {
        core: "RV32IMAC",
        target: "riscv32imac-unknown-none-elf",
        emulator: "qemu-system-riscv32",
        machine: "virt",
        options: &["-bios", "none"],
        flash: at(0x8000_0000, 4 * M),
        ram: at(0x8040_0000, 4 * M),
    },
];
