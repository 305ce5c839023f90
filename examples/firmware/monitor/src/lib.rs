//! A vibration monitor for any device with a driver of `embedded-hal` 1.0: it samples an
//! accelerometer on I²C, asks a sparse network of 8-bit integers what the machine does, and lets
//! the machine run by a pin.
//!
//! ```text
//! LIS3DH ──I²C──> Lis3dh ──96 bytes──> Classifier ──Class──> Monitor ──> pin: the machine may run
//!                                      Embedded: weights in the program, read by the compiler
//!                                      Streamed: weights in a chip on SPI, read while predicting
//!                                      Learner: weights learned on the device, in NOR flash
//! ```
//!
//! The pin is low from the start, in every fault, and after a reset if the board pulls it down. The
//! crates of `examples/firmware/chips` give this one the drivers of four chips and nothing else; on
//! a host and on emulated parts the drivers are those of [`simulated`] (feature `simulated`).
//!
//! ```
//! use tamis_monitor::simulated::{Accelerometer, Clock, Pin};
//! use tamis_monitor::{Class, Embedded, Lis3dh, Monitor};
//!
//! let sensor = Lis3dh::new(Accelerometer::new(1, &[Class::Running, Class::Running]), 0x18);
//! let mut monitor = Monitor::new(sensor, Embedded::default(), Pin::default(), Clock::default());
//! let first = monitor.step().unwrap();
//! assert_eq!((first.class, first.may_run), (Class::Running, false));
//! assert!(monitor.step().unwrap().may_run, "two windows say that it runs well");
//! ```
#![no_std]

mod classifier;
#[cfg(feature = "learn")]
mod learner;
mod lis3dh;
#[cfg(feature = "defmt")]
pub mod log;
mod monitor;
#[cfg(feature = "simulated")]
pub mod simulated;
#[cfg(feature = "spi-flash")]
mod streamed;

pub use classifier::{Class, Classifier, Embedded, MODEL_FILE};
#[cfg(feature = "learn")]
pub use learner::{FLASH, How, Learner, ROWS, STRIDE};
pub use lis3dh::{Lis3dh, SensorError};
pub use monitor::{CONFIRM, Fault, Monitor, Status, TRIES};
#[cfg(feature = "spi-flash")]
pub use streamed::{StreamError, Streamed};

/// Samples of a window: what the accelerometer keeps by itself.
pub const SAMPLES: usize = 32;
/// Samples in a second.
pub const RATE_HZ: u32 = 100;
/// Axes of a sample: x, y and z.
pub const AXES: usize = 3;
/// Bytes of a window: sample after sample, each x, y and z, in steps of 1/64 g above -2 g, so that
/// 128 is 0.
pub const INPUTS: usize = SAMPLES * AXES;
/// A window as the network takes it.
pub type Window = [u8; INPUTS];
