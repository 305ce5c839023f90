//! The vibration monitor on an STM32F411. Wiring and flashing are in `examples/firmware/README.md`.
#![no_std]
#![no_main]

#[path = "../../cortex.rs"]
mod cortex;

use defmt_rtt as _;
use stm32f4xx_hal::gpio::PinState;
use stm32f4xx_hal::i2c::{I2c, Mode};
use stm32f4xx_hal::prelude::*;
use stm32f4xx_hal::watchdog::IndependentWatchdog;
use stm32f4xx_hal::{pac, rcc};
use tamis_monitor::{Lis3dh, Monitor};

#[cortex_m_rt::entry]
fn main() -> ! {
    let chip = defmt::unwrap!(pac::Peripherals::take());
    let mut rcc = chip.RCC.freeze(rcc::Config::hse(25.MHz()).sysclk(48.MHz()));
    let pins_a = chip.GPIOA.split(&mut rcc);
    let pins_b = chip.GPIOB.split(&mut rcc);

    let may_run = pins_b.pb0.into_push_pull_output_in_state(PinState::Low);
    let bus = I2c::new(chip.I2C1, (pins_b.pb6, pins_b.pb7), Mode::standard(100.kHz()), &mut rcc);

    #[cfg(not(feature = "spi-flash"))]
    let (model, _) = (tamis_monitor::Embedded::default(), pins_a);
    #[cfg(feature = "spi-flash")]
    let model = {
        let pads = (Some(pins_a.pa5), Some(pins_a.pa6), Some(pins_a.pa7));
        let select = pins_a.pa4.into_push_pull_output_in_state(PinState::High);
        let spi = chip.SPI1.spi(pads, embedded_hal::spi::MODE_0, 8.MHz(), &mut rcc);
        let clock = chip.TIM3.delay_us(&mut rcc);
        tamis_monitor::log::streamed(defmt::unwrap!(embedded_hal_bus::spi::ExclusiveDevice::new(
            spi, select, clock
        )))
    };

    // A bus that hangs ends in a reset, too.
    let mut watchdog = IndependentWatchdog::new(chip.IWDG);
    watchdog.start(4.secs());
    let delay = chip.TIM2.delay_us(&mut rcc);
    Monitor::new(Lis3dh::new(bus, 0x18), model, may_run, delay).run(|step| {
        watchdog.feed();
        tamis_monitor::log::step(step);
    })
}
