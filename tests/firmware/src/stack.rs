//! How much RAM a case used: static data from the linker's symbols, stack from paint that was
//! overwritten.

use core::arch::asm;
use core::ptr;

/// Not a likely value of anything.
const PAINT: u32 = 0x5ac3_96e1;
/// Bytes below the stack pointer that painting leaves alone: its own frame.
const MARGIN: usize = 64;

unsafe extern "C" {
    /// First address of RAM.
    static _ram_origin: u32;
    /// First address behind static data; the stack grows down to it.
    static mut __sheap: u32;
    /// Address behind the stack's first word.
    static _stack_start: u32;
}

/// Bytes of static data.
#[allow(dead_code, reason = "of the programs that run cases")]
pub(crate) fn static_bytes() -> u32 {
    (lowest() as usize - (&raw const _ram_origin) as usize) as u32
}

/// Paints the stack's unused part.
#[inline(never)]
pub(crate) fn paint() {
    let end = stack_pointer() - MARGIN;
    let mut at = lowest();
    while (at as usize) < end {
        // SAFETY: from the end of static data to below this frame RAM belongs to nobody: there is
        // no heap, one thread of execution, and no interrupt is enabled.
        unsafe { ptr::write_volatile(at, PAINT) };
        at = at.wrapping_add(1);
    }
}

/// Bytes of stack in use at the deepest point since `paint`, the callers' frames included.
///
/// # Panics
/// When no paint is left: the stack may have run into static data.
#[inline(never)]
pub(crate) fn high_water() -> u32 {
    let top = (&raw const _stack_start) as usize;
    let mut at = lowest();
    // SAFETY: the addresses lie in RAM, are aligned and were written by `paint` or by stack frames.
    while (at as usize) < top && unsafe { ptr::read_volatile(at) } == PAINT {
        at = at.wrapping_add(1);
    }
    assert!(at != lowest(), "stack overflow");
    (top - at as usize) as u32
}

/// Bytes of stack that the caller and those above it hold.
#[inline(always)]
#[allow(dead_code, reason = "of the program that measures models")]
pub(crate) fn depth() -> u32 {
    ((&raw const _stack_start) as usize - stack_pointer()) as u32
}

fn lowest() -> *mut u32 {
    &raw mut __sheap
}

#[inline(always)]
fn stack_pointer() -> usize {
    let sp: usize;
    // SAFETY: copies a register.
    unsafe {
        #[cfg(target_arch = "arm")]
        asm!("mov {}, sp", out(reg) sp, options(nomem, nostack, preserves_flags));
        #[cfg(target_arch = "riscv32")]
        asm!("mv {}, sp", out(reg) sp, options(nomem, nostack, preserves_flags));
    }
    sp
}
