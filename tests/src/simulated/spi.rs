//! A serial flash chip on an SPI bus.

use embedded_hal::spi::{Error, ErrorKind, ErrorType, Operation, SpiDevice};

/// A chip that knows the read commands, 0x03 with three bytes of address and 0x13 with four.
#[derive(Debug, Clone)]
pub struct Chip<'a> {
    bytes: &'a [u8],
    reads: u32,
    fails: Option<u32>,
}

/// Why a transaction failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BusFault {
    /// The bus gave up halfway.
    Broken,
    /// Not a command of the chip, or an address beyond it.
    Command,
}

impl Error for BusFault {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Other
    }
}

impl<'a> Chip<'a> {
    /// A chip that holds `bytes`, from address 0 on.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, reads: 0, fails: None }
    }

    /// The read of this number, from 0, will fail when half of its bytes are there.
    #[must_use]
    pub fn failing_in(self, read: u32) -> Self {
        Self { fails: Some(read), ..self }
    }

    /// Reads so far.
    #[must_use]
    pub fn reads(&self) -> u32 {
        self.reads
    }

    fn read(&mut self, command: &[u8], out: &mut [u8]) -> Option<()> {
        let at = match command {
            [0x03, a, b, c] => u32::from_be_bytes([0, *a, *b, *c]),
            [0x13, a, b, c, d] => u32::from_be_bytes([*a, *b, *c, *d]),
            _ => return None,
        } as usize;
        out.copy_from_slice(self.bytes.get(at..)?.get(..out.len())?);
        Some(())
    }
}

impl ErrorType for Chip<'_> {
    type Error = BusFault;
}

impl SpiDevice for Chip<'_> {
    fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), BusFault> {
        let [Operation::Write(command), Operation::Read(out)] = operations else {
            return Err(BusFault::Command);
        };
        let broken = self.fails == Some(self.reads);
        let there = if broken { out.len() / 2 } else { out.len() };
        self.reads += 1;
        self.read(command, out.get_mut(..there).unwrap_or_default()).ok_or(BusFault::Command)?;
        if broken { Err(BusFault::Broken) } else { Ok(()) }
    }
}
