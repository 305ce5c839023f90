//! A serial NOR flash chip, read over any `embedded-hal` SPI bus.
//!
//! With the feature `embedded-storage` it is a
//! [`ReadNorFlash`](embedded_storage::nor_flash::ReadNorFlash), for a
//! [`crate::store::stream::Model`] that is larger than the flash of the device.

use embedded_hal::spi::{Operation, SpiDevice};

/// Bytes that three bytes of address reach.
const NEAR: u32 = 1 << 24;

/// A chip of so many bytes: of up to 16 MiB with read command 0x03 and three bytes of address, of
/// more with 0x13 and four.
///
/// ```
/// use embedded_hal::spi::{ErrorKind, ErrorType, Operation, SpiDevice};
/// use tamis::data::spi::{ReadError, SpiFlash};
///
/// /// A chip of 4096 bytes on a bus: byte a is a modulo 256.
/// struct Bus;
/// # impl ErrorType for Bus { type Error = ErrorKind; }
/// # impl SpiDevice for Bus {
/// #     fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), ErrorKind> {
/// #         let [Operation::Write([0x03, _, _, low]), Operation::Read(out)] = operations else { panic!() };
/// #         out.iter_mut().zip(*low..).for_each(|(out, a)| *out = a);
/// #         Ok(())
/// #     }
/// # }
/// let mut flash = SpiFlash::new(Bus, 4096);
/// let mut bytes = [0; 3];
/// flash.read(0x107, &mut bytes)?;
/// assert_eq!(bytes, [7, 8, 9]);
/// assert_eq!(flash.read(4094, &mut bytes), Err(ReadError::Bounds { end: 4097, capacity: 4096 }));
/// # Ok::<(), ReadError<ErrorKind>>(())
/// ```
#[derive(Debug)]
pub struct SpiFlash<Spi> {
    spi: Spi,
    capacity: u32,
}

/// Why a chip could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ReadError<E> {
    /// The bus failed in the read that began here; what it gave is of no use.
    Bus {
        /// Address of the first byte.
        at: u32,
        /// What the bus says.
        source: E,
    },
    /// Bytes beyond the chip.
    Bounds {
        /// The address behind the last of them.
        end: usize,
        /// Bytes of the chip.
        capacity: usize,
    },
}

impl<E: core::fmt::Debug> core::fmt::Display for ReadError<E> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Bus { at, source } => {
                write!(f, "the bus failed in the read at {at:#x}: {source:?}")
            }
            Self::Bounds { end, capacity } => {
                write!(f, "a read up to {end} of a chip of {capacity} bytes")
            }
        }
    }
}

impl<E: core::fmt::Debug> core::error::Error for ReadError<E> {}

impl<Spi: SpiDevice> SpiFlash<Spi> {
    /// A chip of `capacity` bytes.
    #[must_use]
    pub const fn new(spi: Spi, capacity: u32) -> Self {
        Self { spi, capacity }
    }

    /// Reads from `at` on.
    ///
    /// # Errors
    /// [`ReadError::Bounds`] for bytes beyond the chip, [`ReadError::Bus`] with the address if the
    /// bus fails.
    pub fn read(&mut self, at: u32, out: &mut [u8]) -> Result<(), ReadError<Spi::Error>> {
        let (end, capacity) = (out.len().saturating_add(at as usize), self.capacity as usize);
        if end > capacity {
            return Err(ReadError::Bounds { end, capacity });
        }
        let done = read(&mut self.spi, at, self.capacity > NEAR, out);
        done.map_err(|source| ReadError::Bus { at, source })
    }

    /// Gives the bus back.
    pub fn release(self) -> Spi {
        self.spi
    }
}

/// One read; `is_far` for four bytes of address.
pub(crate) fn read<Spi: SpiDevice>(
    spi: &mut Spi,
    at: u32,
    is_far: bool,
    out: &mut [u8],
) -> Result<(), Spi::Error> {
    let [top, high, mid, low] = at.to_be_bytes();
    let (near, far) = ([0x03, high, mid, low], [0x13, top, high, mid, low]);
    let command = if is_far { &far[..] } else { &near[..] };
    spi.transaction(&mut [Operation::Write(command), Operation::Read(out)])
}

#[cfg(feature = "embedded-storage")]
mod storage {
    use super::{ReadError, SpiDevice, SpiFlash};
    use embedded_storage::nor_flash::{ErrorType, NorFlashError, NorFlashErrorKind, ReadNorFlash};

    impl<E: core::fmt::Debug> NorFlashError for ReadError<E> {
        fn kind(&self) -> NorFlashErrorKind {
            match self {
                Self::Bus { .. } => NorFlashErrorKind::Other,
                Self::Bounds { .. } => NorFlashErrorKind::OutOfBounds,
            }
        }
    }

    impl<Spi: SpiDevice> ErrorType for SpiFlash<Spi> {
        type Error = ReadError<Spi::Error>;
    }

    impl<Spi: SpiDevice> ReadNorFlash for SpiFlash<Spi> {
        const READ_SIZE: usize = 1;

        fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Self::Error> {
            Self::read(self, offset, bytes)
        }

        fn capacity(&self) -> usize {
            self.capacity as usize
        }
    }
}
