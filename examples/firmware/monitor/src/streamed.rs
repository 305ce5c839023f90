//! The network in a chip on an SPI bus: for those that the flash of the device has no room for.

use crate::classifier::{Class, Classifier, SCRATCH, named};
use crate::{INPUTS, Window};
use embedded_hal::spi::{Error, ErrorKind, ErrorType, Operation, SpiDevice};
use tamis::base::error::length;
use tamis::data::spi::{ReadError, SpiFlash};
use tamis::store::stream::QuantisedModel;

/// Words of the buffer in which the weights pass by: a multiple of what a row of the network takes
/// makes the reads few.
const BUFFER: usize = 32;

/// Why the network cannot be read.
pub type StreamError = tamis::Error<ReadError<ErrorKind>>;

/// A network whose weights are read from a flash chip in each prediction.
#[derive(Debug)]
pub struct Streamed<Spi> {
    model: QuantisedModel<SpiFlash<Kinds<Spi>>>,
    buffer: [u32; BUFFER],
}

impl<Spi: SpiDevice> Streamed<Spi> {
    /// The network whose file starts at byte `start` of a chip of `capacity` bytes; all of it is
    /// checked here.
    ///
    /// # Errors
    /// Those of [`QuantisedModel::open`]; [`tamis::Error::Length`] for a network that takes other
    /// windows, or gives other classes.
    pub fn open(spi: Spi, capacity: u32, start: u32) -> Result<Self, StreamError> {
        let mut buffer = [0; BUFFER];
        let model = QuantisedModel::open(SpiFlash::new(Kinds(spi), capacity), start, &mut buffer)?;
        length("bytes of a window", model.inputs(), INPUTS)?;
        length("classes", model.outputs(), Class::ALL.len())?;
        Ok(Self { model, buffer })
    }

    /// Gives the bus back.
    pub fn release(self) -> Spi {
        self.model.release().release().0
    }
}

impl<Spi: SpiDevice> Classifier for Streamed<Spi> {
    type Error = StreamError;

    fn classify(&mut self, window: &Window) -> Result<Class, StreamError> {
        let mut sums = [0; Class::ALL.len()];
        let class = self.model.classify(window, &mut self.buffer, &mut [0; SCRATCH], &mut sums)?;
        named(class)
    }
}

/// A bus whose errors are of the kinds that all buses have, so that one type of error fits them
/// all.
#[derive(Debug)]
struct Kinds<Spi>(Spi);

impl<Spi: SpiDevice> ErrorType for Kinds<Spi> {
    type Error = ErrorKind;
}

impl<Spi: SpiDevice> SpiDevice for Kinds<Spi> {
    fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), ErrorKind> {
        self.0.transaction(operations).map_err(|error| error.kind())
    }
}
