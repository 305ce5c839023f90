//! The vibration monitor on an RP2040. Wiring and flashing are in `examples/firmware/README.md`.
#![no_std]
#![no_main]

#[path = "../../cortex.rs"]
mod cortex;

use defmt_rtt as _;
use hal::clocks::init_clocks_and_plls;
use hal::fugit::{ExtU32, RateExtU32};
use hal::gpio::{FunctionI2C, Pin, PullUp};
use hal::{I2C, Sio, Timer, Watchdog, pac};
use rp2040_hal as hal;
use tamis_monitor::{Lis3dh, Monitor};

/// Switches on the flash chip of a Pico; the first thing that runs.
#[unsafe(link_section = ".boot2")]
#[used]
static BOOT2: [u8; 256] = rp2040_boot2::BOOT_LOADER_W25Q080;

/// The crystal of a Pico.
const CRYSTAL_HZ: u32 = 12_000_000;

#[hal::entry]
fn main() -> ! {
    let mut chip = defmt::unwrap!(pac::Peripherals::take());
    let mut watchdog = Watchdog::new(chip.WATCHDOG);
    let clocks = init_clocks_and_plls(
        CRYSTAL_HZ,
        chip.XOSC,
        chip.CLOCKS,
        chip.PLL_SYS,
        chip.PLL_USB,
        &mut chip.RESETS,
        &mut watchdog,
    );
    let clocks = defmt::unwrap!(clocks.ok());
    let delay = Timer::new(chip.TIMER, &mut chip.RESETS, &clocks);
    let sio = Sio::new(chip.SIO);
    let pins =
        hal::gpio::Pins::new(chip.IO_BANK0, chip.PADS_BANK0, sio.gpio_bank0, &mut chip.RESETS);

    let may_run = pins.gpio15.into_push_pull_output_in_state(hal::gpio::PinState::Low);
    let sda: Pin<_, FunctionI2C, PullUp> = pins.gpio4.reconfigure();
    let scl: Pin<_, FunctionI2C, PullUp> = pins.gpio5.reconfigure();
    let bus = I2C::i2c0(chip.I2C0, sda, scl, 400.kHz(), &mut chip.RESETS, &clocks.system_clock);

    #[cfg(not(feature = "spi-flash"))]
    let model = tamis_monitor::Embedded::default();
    #[cfg(feature = "spi-flash")]
    let model = {
        use hal::Clock;
        let pads = (
            pins.gpio19.into_function::<hal::gpio::FunctionSpi>(),
            pins.gpio16.into_function::<hal::gpio::FunctionSpi>(),
            pins.gpio18.into_function::<hal::gpio::FunctionSpi>(),
        );
        let select = pins.gpio17.into_push_pull_output_in_state(hal::gpio::PinState::High);
        let clock = clocks.peripheral_clock.freq();
        let mode = embedded_hal::spi::MODE_0;
        let spi = hal::Spi::<_, _, _, 8>::new(chip.SPI0, pads).init(
            &mut chip.RESETS,
            clock,
            8.MHz(),
            mode,
        );
        tamis_monitor::log::streamed(defmt::unwrap!(embedded_hal_bus::spi::ExclusiveDevice::new(
            spi, select, delay
        )))
    };

    // A bus that hangs ends in a reset, too.
    watchdog.start(4.secs());
    Monitor::new(Lis3dh::new(bus, 0x18), model, may_run, delay).run(|step| {
        watchdog.feed();
        tamis_monitor::log::step(step);
    })
}
