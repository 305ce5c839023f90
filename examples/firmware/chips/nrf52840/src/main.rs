//! The vibration monitor on an nRF52840. Wiring and flashing are in `examples/firmware/README.md`.
#![no_std]
#![no_main]

#[path = "../../cortex.rs"]
mod cortex;

use defmt_rtt as _;
use hal::gpio::{Level, p0};
use hal::pac;
use hal::timer::Timer;
use hal::twim::{Frequency, Twim};
use hal::wdt::Watchdog;
use nrf52840_hal as hal;
use tamis_monitor::{Lis3dh, Monitor};

/// Turns of the 32.768 kHz clock after which the watchdog resets: four seconds.
const PATIENCE: u32 = 4 * 32_768;

#[cortex_m_rt::entry]
fn main() -> ! {
    let chip = defmt::unwrap!(pac::Peripherals::take());
    let pins = p0::Parts::new(chip.P0);

    let may_run = pins.p0_13.into_push_pull_output(Level::Low);
    let scl = pins.p0_27.into_floating_input().degrade();
    let sda = pins.p0_26.into_floating_input().degrade();
    let bus = Twim::new(chip.TWIM0, hal::twim::Pins { scl, sda }, Frequency::K400);

    #[cfg(not(feature = "spi-flash"))]
    let model = tamis_monitor::Embedded::default();
    #[cfg(feature = "spi-flash")]
    let model = {
        use hal::spim::{Frequency, MODE_0, Spim};
        let pads = hal::spim::Pins {
            sck: Some(pins.p0_28.into_push_pull_output(Level::Low).degrade()),
            mosi: Some(pins.p0_29.into_push_pull_output(Level::Low).degrade()),
            miso: Some(pins.p0_30.into_floating_input().degrade()),
        };
        let select = pins.p0_31.into_push_pull_output(Level::High);
        let spi = Spim::new(chip.SPIM1, pads, Frequency::M8, MODE_0, 0);
        let clock = Timer::new(chip.TIMER1);
        tamis_monitor::log::streamed(defmt::unwrap!(embedded_hal_bus::spi::ExclusiveDevice::new(
            spi, select, clock
        )))
    };

    // A bus that hangs ends in a reset, too.
    let mut watchdog = defmt::unwrap!(Watchdog::try_new(chip.WDT).ok());
    watchdog.set_lfosc_ticks(PATIENCE);
    let mut watchdog = watchdog.activate::<hal::wdt::count::One>();
    let delay = Timer::new(chip.TIMER0);
    Monitor::new(Lis3dh::new(bus, 0x18), model, may_run, delay).run(|step| {
        watchdog.handles.0.pet();
        tamis_monitor::log::step(step);
    })
}
