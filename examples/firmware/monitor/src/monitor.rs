//! Window after window: sample, predict, drive the pin.

use crate::{Class, Classifier, INPUTS, Lis3dh, SensorError};
use embedded_hal::delay::DelayNs;
use embedded_hal::digital::{Error, ErrorKind, OutputPin};
use embedded_hal::i2c::I2c;

/// Tries to see a window before that is a fault.
pub const TRIES: u8 = 3;
/// Windows in a row that must say the same before the pin changes.
pub const CONFIRM: u8 = 2;
/// Milliseconds between tries.
const PAUSE_MS: u32 = 50;

/// What a window has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Status {
    /// What the machine does.
    pub class: Class,
    /// Whether it may run: the level of the pin.
    pub may_run: bool,
    /// Tries that failed before.
    pub retries: u8,
}

/// Why there is no status; unless it is the pin that failed, it is low.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Fault<ModelError> {
    /// No window in [`TRIES`] tries; why the last one failed.
    Sensor(SensorError),
    /// No prediction; why the last one failed.
    Model(ModelError),
    /// The pin does not obey, whatever else there is.
    Pin(ErrorKind),
}

/// A sensor, a network, a pin that lets the machine run, and a clock.
#[derive(Debug)]
pub struct Monitor<Bus, Model, Pin, Delay> {
    sensor: Lis3dh<Bus>,
    model: Model,
    pin: Pin,
    delay: Delay,
    may_run: bool,
    /// Windows in a row that say otherwise.
    against: u8,
}

impl<Bus: I2c, Model: Classifier, Pin: OutputPin, Delay: DelayNs> Monitor<Bus, Model, Pin, Delay> {
    /// The machine may not run until windows say so; configure the pin as low.
    pub const fn new(sensor: Lis3dh<Bus>, model: Model, pin: Pin, delay: Delay) -> Self {
        Self { sensor, model, pin, delay, may_run: false, against: 0 }
    }

    /// Takes one window, predicts, and drives the pin: about a third of a second.
    ///
    /// # Errors
    /// [`Fault`]; the pin is low then, if it obeys. The next call starts with a new try.
    pub fn step(&mut self) -> Result<Status, Fault<Model::Error>> {
        let seen = self.look();
        match seen {
            Ok((class, _)) => self.weigh(class.is_good()),
            Err(_) => (self.may_run, self.against) = (false, 0),
        }
        // Every time, not only when it changes: a disturbed output does not stay so.
        let driven = self.pin.set_state(self.may_run.into());
        driven.map_err(|error| Fault::Pin(error.kind()))?;
        let (class, retries) = seen?;
        Ok(Status { class, may_run: self.may_run, retries })
    }

    /// Steps for ever, and tells what each has given.
    pub fn run(&mut self, mut report: impl FnMut(&Result<Status, Fault<Model::Error>>)) -> ! {
        loop {
            let step = self.step();
            if step.is_err() {
                self.delay.delay_ms(PAUSE_MS);
            }
            report(&step);
        }
    }

    /// Gives the bus and the pin back.
    pub fn release(self) -> (Bus, Pin) {
        (self.sensor.release(), self.pin)
    }

    /// The class of the next window, and the tries that failed before.
    fn look(&mut self) -> Result<(Class, u8), Fault<Model::Error>> {
        let mut retries = 0;
        loop {
            match self.attempt() {
                Ok(class) => return Ok((class, retries)),
                Err(fault) if retries + 1 >= TRIES => return Err(fault),
                Err(_) => retries += 1,
            }
            self.delay.delay_ms(PAUSE_MS);
        }
    }

    fn attempt(&mut self) -> Result<Class, Fault<Model::Error>> {
        let mut window = [0; INPUTS];
        self.sensor.window(&mut self.delay, &mut window).map_err(Fault::Sensor)?;
        self.model.classify(&window).map_err(Fault::Model)
    }

    /// Changes its mind after [`CONFIRM`] windows in a row.
    fn weigh(&mut self, is_good: bool) {
        self.against = if is_good == self.may_run { 0 } else { self.against + 1 };
        if self.against >= CONFIRM {
            (self.may_run, self.against) = (is_good, 0);
        }
    }
}
