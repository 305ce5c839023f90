//! Training rows on demand: slices, flash, a seed, a function, an SPI flash chip, or the last rows
//! of a sensor.

pub mod samples;
#[cfg(feature = "embedded-hal")]
pub mod spi;
