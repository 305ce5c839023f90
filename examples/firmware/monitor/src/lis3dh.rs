//! The accelerometer LIS3DH of ST on I²C: windows of 32 samples without a gap, since the chip
//! itself keeps them. Registers are those of its data sheet.

use crate::{INPUTS, RATE_HZ, SAMPLES, Window};
use embedded_hal::delay::DelayNs;
use embedded_hal::i2c::{Error, ErrorKind, I2c};

/// Registers.
pub(crate) const WHO_AM_I: u8 = 0x0f;
pub(crate) const CTRL_REG1: u8 = 0x20;
pub(crate) const CTRL_REG4: u8 = 0x23;
pub(crate) const CTRL_REG5: u8 = 0x24;
pub(crate) const OUT_X_L: u8 = 0x28;
pub(crate) const FIFO_CTRL: u8 = 0x2e;
pub(crate) const FIFO_SRC: u8 = 0x2f;
/// Added to a register's number: a long read goes on with the next ones.
pub(crate) const NEXT: u8 = 0x80;

/// What `WHO_AM_I` holds.
pub(crate) const ID: u8 = 0x33;
/// 100 samples a second of 8 bits, all axes.
pub(crate) const ON: u8 = 0x5f;
/// Both bytes of a number belong together; ±2 g.
pub(crate) const TWO_G: u8 = 0x80;
/// The chip keeps samples.
pub(crate) const FIFO_ON: u8 = 0x40;
/// It forgets them.
pub(crate) const BYPASS: u8 = 0x00;
/// It keeps the first 32.
pub(crate) const KEEP: u8 = 0x40;
/// The bit of `FIFO_SRC` that says that it has them.
pub(crate) const FULL: u8 = 0x40;

/// Milliseconds in which a window is sampled.
const WINDOW_MS: u32 = SAMPLES as u32 * 1000 / RATE_HZ;
/// Looks at a window that should be there, and milliseconds between them: the chip's clock is right
/// within a tenth.
const LOOKS: u32 = 10;
const LOOK_MS: u32 = 5;

/// Why there is no window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SensorError {
    /// The bus failed.
    Bus(ErrorKind),
    /// Another chip answers at the address, or none does and the bus reads as ones or zeros.
    Identity {
        /// What an LIS3DH answers.
        expected: u8,
        /// What was read.
        got: u8,
    },
    /// The samples are not there in time; a chip that lost power forgets that it was switched on.
    Late {
        /// Milliseconds after which the window was given up.
        waited_ms: u32,
    },
}

/// The chip on a bus. It is switched on by the first window, and again by the one after an error.
#[derive(Debug)]
pub struct Lis3dh<Bus> {
    bus: Bus,
    address: u8,
    is_on: bool,
}

impl<Bus: I2c> Lis3dh<Bus> {
    /// A chip at `address`: 0x18 where its pin SA0 is low, 0x19 where it is high.
    pub const fn new(bus: Bus, address: u8) -> Self {
        Self { bus, address, is_on: false }
    }

    /// Waits for the next 32 samples, about a third of a second, and gives them.
    ///
    /// # Errors
    /// [`SensorError`]; `window` is as it was then, and the next call begins by switching the chip
    /// on.
    pub fn window(
        &mut self,
        delay: &mut impl DelayNs,
        window: &mut Window,
    ) -> Result<(), SensorError> {
        let was_on = core::mem::replace(&mut self.is_on, false);
        if !was_on {
            self.switch_on()?;
        }
        self.write(FIFO_CTRL, BYPASS)?;
        self.write(FIFO_CTRL, KEEP)?;
        self.wait(delay)?;
        // In turn: the low byte, of which 8-bit samples use nothing, and the high one.
        let mut bytes = [[0; 2]; INPUTS];
        self.read(OUT_X_L | NEXT, bytes.as_flattened_mut())?;
        for (to, [_, high]) in window.iter_mut().zip(bytes) {
            // From -128..128 to 0..256.
            *to = high ^ 0x80;
        }
        self.is_on = true;
        Ok(())
    }

    /// Gives the bus back.
    pub fn release(self) -> Bus {
        self.bus
    }

    fn switch_on(&mut self) -> Result<(), SensorError> {
        let mut id = [0];
        self.read(WHO_AM_I, &mut id)?;
        let [got] = id;
        if got != ID {
            return Err(SensorError::Identity { expected: ID, got });
        }
        self.write(CTRL_REG1, ON)?;
        self.write(CTRL_REG4, TWO_G)?;
        self.write(CTRL_REG5, FIFO_ON)
    }

    fn wait(&mut self, delay: &mut impl DelayNs) -> Result<(), SensorError> {
        delay.delay_ms(WINDOW_MS);
        for _ in 0..LOOKS {
            let mut source = [0];
            self.read(FIFO_SRC, &mut source)?;
            if source[0] & FULL != 0 {
                return Ok(());
            }
            delay.delay_ms(LOOK_MS);
        }
        Err(SensorError::Late { waited_ms: WINDOW_MS + LOOKS * LOOK_MS })
    }

    fn write(&mut self, register: u8, value: u8) -> Result<(), SensorError> {
        self.bus
            .write(self.address, &[register, value])
            .map_err(|error| SensorError::Bus(error.kind()))
    }

    fn read(&mut self, register: u8, out: &mut [u8]) -> Result<(), SensorError> {
        self.bus
            .write_read(self.address, &[register], out)
            .map_err(|error| SensorError::Bus(error.kind()))
    }
}
