//! Training rows on demand: slices, flash, a seed, a function, an SPI flash chip, or the last rows
//! of a sensor; in random order, or moved as pictures.

pub mod samples;
#[cfg(feature = "embedded-hal")]
pub mod spi;
