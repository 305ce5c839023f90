//! Start, faults and panics: every way out of the program is an exit status.

use crate::console::Line;
use core::panic::PanicInfo;
use semihosting::process::exit;

#[cfg(target_arch = "arm")]
#[cortex_m_rt::entry]
fn main() -> ! {
    exit(i32::from(!crate::run()))
}

#[cfg(target_arch = "riscv32")]
#[riscv_rt::entry]
fn main() -> ! {
    exit(i32::from(!crate::run()))
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let line = Line::new().text("panic ");
    match info.location() {
        Some(at) => line.text(at.file()).text(":").decimal(at.line()).print(),
        None => line.print(),
    }
    exit(1)
}

/// An access that the microcontroller refuses, such as one below the stack.
#[cfg(target_arch = "arm")]
#[cortex_m_rt::exception(trampoline = false)]
unsafe fn HardFault() -> ! {
    Line::new().text("fault").print();
    exit(1)
}

/// As `HardFault`.
#[cfg(target_arch = "riscv32")]
#[unsafe(no_mangle)]
extern "C" fn ExceptionHandler(_frame: &riscv_rt::TrapFrame) -> ! {
    Line::new().text("fault").print();
    exit(1)
}
