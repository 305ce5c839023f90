//! The vibration monitor on an ESP32-C3. Wiring and flashing are in `examples/firmware/README.md`.
#![no_std]
#![no_main]

use core::panic::PanicInfo;
use defmt_rtt as _;
use esp_hal::delay::Delay;
use esp_hal::gpio::{Level, Output, OutputConfig};
use esp_hal::i2c::master::{Config, I2c};
use esp_hal::rtc_cntl::{Rtc, RwdtStage};
use esp_hal::time::{Duration, Rate};
use tamis_monitor::{Lis3dh, Monitor};

esp_bootloader_esp_idf::esp_app_desc!();

#[esp_hal::main]
fn main() -> ! {
    let chip = esp_hal::init(esp_hal::Config::default());

    let may_run = Output::new(chip.GPIO7, Level::Low, OutputConfig::default());
    let config = Config::default().with_frequency(Rate::from_khz(400));
    let bus = defmt::unwrap!(I2c::new(chip.I2C0, config)).with_sda(chip.GPIO5).with_scl(chip.GPIO6);

    #[cfg(not(feature = "spi-flash"))]
    let model = tamis_monitor::Embedded::default();
    #[cfg(feature = "spi-flash")]
    let model =
        {
            use esp_hal::spi::master::{Config, Spi};
            let spi = defmt::unwrap!(Spi::new(
                chip.SPI2,
                Config::default().with_frequency(Rate::from_mhz(8))
            ));
            let spi = spi.with_sck(chip.GPIO4).with_mosi(chip.GPIO3).with_miso(chip.GPIO10);
            let select = Output::new(chip.GPIO1, Level::High, OutputConfig::default());
            tamis_monitor::log::streamed(defmt::unwrap!(
                embedded_hal_bus::spi::ExclusiveDevice::new(spi, select, Delay::new())
            ))
        };

    // A bus that hangs ends in a reset, too.
    let mut watchdog = Rtc::new(chip.RTC_TIMER).rwdt;
    watchdog.set_timeout(RwdtStage::Stage0, Duration::from_secs(4));
    watchdog.enable();
    Monitor::new(Lis3dh::new(bus, 0x18), model, may_run, Delay::new()).run(|step| {
        watchdog.feed();
        tamis_monitor::log::step(step);
    })
}

/// What goes wrong ends in a reset. Every pin floats then, so the board pulls the machine's low.
#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let place = info.location().map_or(("", 0), |place| (place.file(), place.line()));
    defmt::error!("panicked at {=str}:{=u32}; reset", place.0, place.1);
    esp_hal::system::software_reset()
}
