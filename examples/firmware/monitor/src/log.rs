//! What is sent through defmt; each chip's crate brings the transport.

use crate::{Fault, Status};
use defmt::Format;

/// One line a window: the status, or the fault.
pub fn step<ModelError: Format>(step: &Result<Status, Fault<ModelError>>) {
    match step {
        Ok(status) => defmt::info!("{}", status),
        Err(fault) => defmt::error!("the machine is off: {}", fault),
    }
}

/// Capacity of the chip with the weights: 16 MiB, a W25Q128; a smaller one is read from the same
/// addresses.
#[cfg(feature = "spi-flash")]
pub const CAPACITY: u32 = 1 << 24;

/// The network at the first byte of a flash chip; without one nothing can be done, and the panic
/// handler starts anew.
///
/// # Panics
/// The chip cannot be read, or holds no network for this monitor.
#[cfg(feature = "spi-flash")]
pub fn streamed<Spi: embedded_hal::spi::SpiDevice>(spi: Spi) -> crate::Streamed<Spi> {
    match crate::Streamed::open(spi, CAPACITY, 0) {
        Ok(model) => model,
        Err(error) => defmt::panic!("no network in the flash chip: {}", error),
    }
}
