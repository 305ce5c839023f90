//! A machine, and an accelerometer on it, that are computed from a seed: to train on, and to try
//! the monitor on hosts and emulated parts. The same bits everywhere.
//!
//! A rotor turns at about 20 Hz in the plane of x and y and shakes by as much as it is out of
//! balance, with half of that at twice the speed; z stands upright. Gravity, a slight tilt, and
//! noise come on top.

use crate::lis3dh::{
    BYPASS, CTRL_REG1, CTRL_REG4, CTRL_REG5, FIFO_CTRL, FIFO_ON, FIFO_SRC, FULL, ID, KEEP, NEXT,
    ON, OUT_X_L, TWO_G, WHO_AM_I,
};
use crate::{AXES, Class, INPUTS, RATE_HZ, Window};
use core::convert::Infallible;
use embedded_hal::delay::DelayNs;
use embedded_hal::digital::{self, OutputPin};
use embedded_hal::i2c::{self, ErrorKind, I2c, NoAcknowledgeSource, Operation};
use tamis::base::math::sin_cos;
use tamis::base::rng::{Rng, stream};

/// Steps of the accelerometer in one g.
const G: f32 = 64.0;
/// Revolutions in a second: the middle, and how far it may be off.
const SPEED_HZ: (f32, f32) = (20.0, 1.5);
/// Least and further g that the machine shakes by: standing, running, and out of balance.
const SHAKES: [(f32, f32); 3] = [(0.0, 0.02), (0.2, 0.2), (0.7, 0.5)];
const NOISE: f32 = 0.03;
const TILT: f32 = 0.05;

/// A window of a machine that does `class`, as the accelerometer gives it.
#[must_use]
pub fn window(class: Class, rng: &mut Rng) -> Window {
    let (least, further) = SHAKES[class as usize];
    let shake = least + further * rng.uniform();
    let speed = SPEED_HZ.0 + SPEED_HZ.1 * (2.0 * rng.uniform() - 1.0);
    let turn = core::f32::consts::TAU * speed / RATE_HZ as f32;
    let phases = [rng.uniform(), rng.uniform()].map(|part| core::f32::consts::TAU * part);
    let rest = [TILT * rng.normal(), TILT * rng.normal(), 1.0];
    let mut window = [0; INPUTS];
    for (k, sample) in window.as_chunks_mut::<AXES>().0.iter_mut().enumerate() {
        let (sin, cos) = sin_cos(turn * k as f32 + phases[0]);
        let (second, _) = sin_cos(2.0 * turn * k as f32 + phases[1]);
        let shaken = [cos + 0.5 * second, sin + 0.5 * second, 0.3 * second];
        for ((byte, shaken), rest) in sample.iter_mut().zip(shaken).zip(rest) {
            let g = rest + shake * shaken + NOISE * rng.normal();
            // Saturates as the chip does.
            *byte = (G * g) as i8 as u8 ^ 0x80;
        }
    }
    window
}

/// A chip on I²C that answers as an LIS3DH does, on a machine that does one thing after the other.
#[derive(Debug, Clone)]
pub struct Accelerometer {
    rng: Rng,
    plan: &'static [Class],
    /// Windows that were sampled.
    sampled: usize,
    fifo: Window,
    /// `CTRL_REG1`, 4, 5 and `FIFO_CTRL`.
    control: [u8; 4],
    transfers: u32,
    fails: Option<(u32, u32)>,
}

/// The address it answers at.
const ADDRESS: u8 = 0x18;
/// What is set before it samples.
const READY: [u8; 4] = [ON, TWO_G, FIFO_ON, KEEP];

impl Accelerometer {
    /// The machine does the entries of `plan`, a window each, and then the last one for ever.
    #[must_use]
    pub fn new(seed: u64, plan: &'static [Class]) -> Self {
        let rng = Rng::new(seed, stream::USER);
        Self {
            rng,
            plan,
            sampled: 0,
            fifo: [0; INPUTS],
            control: [0; 4],
            transfers: 0,
            fails: None,
        }
    }

    /// Transfers from number `from`, counted from 0, are not acknowledged, `count` of them.
    #[must_use]
    pub fn failing(self, from: u32, count: u32) -> Self {
        Self { fails: Some((from, count)), ..self }
    }

    /// Transfers so far, those that failed too.
    #[must_use]
    pub const fn transfers(&self) -> u32 {
        self.transfers
    }

    fn set(&mut self, register: u8, value: u8) -> Option<()> {
        let registers = [CTRL_REG1, CTRL_REG4, CTRL_REG5, FIFO_CTRL];
        let at = registers.iter().position(|&known| known == register)?;
        *self.control.get_mut(at)? = value;
        if register == FIFO_CTRL && value != BYPASS && self.control == READY {
            let class = self.plan.get(self.sampled).or(self.plan.last()).copied()?;
            self.fifo = window(class, &mut self.rng);
            self.sampled += 1;
        }
        Some(())
    }

    fn get(&self, register: u8, out: &mut [u8]) -> Option<()> {
        match (register, out) {
            (WHO_AM_I, [out]) => *out = ID,
            (FIFO_SRC, [out]) => *out = if self.control == READY { FULL } else { 0 },
            (first, out) if first == OUT_X_L | NEXT && out.len() == 2 * INPUTS => {
                for ([low, high], byte) in out.as_chunks_mut::<2>().0.iter_mut().zip(self.fifo) {
                    (*low, *high) = (0, byte ^ 0x80);
                }
            }
            _ => return None,
        }
        Some(())
    }
}

impl i2c::ErrorType for Accelerometer {
    type Error = ErrorKind;
}

impl I2c for Accelerometer {
    fn transaction(
        &mut self,
        address: u8,
        operations: &mut [Operation<'_>],
    ) -> Result<(), ErrorKind> {
        let number = self.transfers;
        self.transfers += 1;
        let is_lost = self
            .fails
            .is_some_and(|(from, count)| (from..from.saturating_add(count)).contains(&number));
        if address != ADDRESS || is_lost {
            return Err(ErrorKind::NoAcknowledge(NoAcknowledgeSource::Address));
        }
        let done = match operations {
            [Operation::Write([register, value])] => self.set(*register, *value),
            [Operation::Write([register]), Operation::Read(out)] => self.get(*register, out),
            _ => None,
        };
        done.ok_or(ErrorKind::Other)
    }
}

/// A pin that remembers its level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pin {
    /// Its level.
    pub is_high: bool,
}

impl digital::ErrorType for Pin {
    type Error = Infallible;
}

impl OutputPin for Pin {
    fn set_low(&mut self) -> Result<(), Infallible> {
        self.is_high = false;
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        self.is_high = true;
        Ok(())
    }
}

/// Waits no time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clock(());

impl DelayNs for Clock {
    fn delay_ns(&mut self, _ns: u32) {}
}
