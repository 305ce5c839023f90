//! Of the three Cortex-M: what goes wrong ends in a reset. Every pin floats then, so the board
//! pulls the machine's low.

use core::panic::PanicInfo;
use cortex_m::peripheral::SCB;
use cortex_m_rt::ExceptionFrame;

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let place = info.location().map_or(("", 0), |place| (place.file(), place.line()));
    defmt::error!("panicked at {=str}:{=u32}; reset", place.0, place.1);
    SCB::sys_reset()
}

#[cortex_m_rt::exception]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    defmt::error!("fault at {=u32:#x}; reset", frame.pc());
    SCB::sys_reset()
}
