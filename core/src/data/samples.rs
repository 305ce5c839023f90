//! Where the rows of the data come from: a slice, bytes in flash, a seed, a sensor, an SPI flash
//! chip.
//!
//! An algorithm asks for one row at a time and gives the buffer, which is what lets a device train on
//! more data than its RAM holds. What comes only once, from a sensor, goes to a [`Window`].

mod shifted;
mod window;

pub use shifted::Shifted;
pub use window::{Value, Window};

use crate::base::error::{self, Error, Result};
use crate::base::rng::{Permutation, Rng, stream};
use core::convert::Infallible;

/// Rows of d inputs, read on demand.
pub trait Samples {
    /// What reading may fail with; [`Infallible`] for data in memory.
    type Source: core::fmt::Debug;

    /// n, the number of rows.
    fn samples(&self) -> usize;

    /// d, the number of inputs of a row.
    fn inputs(&self) -> usize;

    /// Writes row `k` to `out`, which has length d.
    ///
    /// # Errors
    /// [`Error::Range`] for a row that is not there, [`Error::Length`] for a buffer of another
    /// length, [`Error::Source`] if reading fails.
    fn row(&mut self, k: usize, out: &mut [f32]) -> Result<(), Self::Source>;

    /// The next row is draw number `draw`, and those behind it the next ones, where rows are changed whenever
    /// they are read ([`Shifted`]); none for rows as they are. Others have no use for it.
    fn draw(&mut self, draw: Option<u64>) {
        let _ = draw;
    }
}

impl<S: Samples + ?Sized> Samples for &mut S {
    type Source = S::Source;

    fn samples(&self) -> usize {
        (**self).samples()
    }

    fn inputs(&self) -> usize {
        (**self).inputs()
    }

    fn row(&mut self, k: usize, out: &mut [f32]) -> Result<(), Self::Source> {
        (**self).row(k, out)
    }

    fn draw(&mut self, draw: Option<u64>) {
        (**self).draw(draw);
    }
}

/// Rows of 32-bit floats in memory, row-major.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    values: &'a [f32],
    inputs: usize,
}

impl<'a> Rows<'a> {
    /// Views `values` as rows of `inputs` numbers.
    ///
    /// # Errors
    /// [`Error::Range`] if `inputs` is 0, [`Error::Length`] if the values are not whole rows,
    /// [`Error::NotFinite`] with the position of the first value that is not a number.
    pub fn new(values: &'a [f32], inputs: usize) -> Result<Self> {
        whole_rows(values.len(), inputs)?;
        error::finite("samples", values)?;
        Ok(Self { values, inputs })
    }
}

impl Samples for Rows<'_> {
    type Source = Infallible;

    fn samples(&self) -> usize {
        self.values.len() / self.inputs.max(1)
    }

    fn inputs(&self) -> usize {
        self.inputs
    }

    fn row(&mut self, k: usize, out: &mut [f32]) -> Result<()> {
        out.copy_from_slice(row_of(self.values, self.inputs, k, out.len())?);
        Ok(())
    }
}

/// Rows of bytes, such as pixels in flash; byte b stands for `b * scale`.
#[derive(Debug, Clone, Copy)]
pub struct ByteRows<'a> {
    values: &'a [u8],
    inputs: usize,
    scale: f32,
}

impl<'a> ByteRows<'a> {
    /// Views `values` as rows of `inputs` bytes.
    ///
    /// # Errors
    /// As [`Rows::new`]; the scale must be finite too.
    pub fn new(values: &'a [u8], inputs: usize, scale: f32) -> Result<Self> {
        whole_rows(values.len(), inputs)?;
        error::finite("scale of the samples", &[scale])?;
        Ok(Self { values, inputs, scale })
    }
}

impl Samples for ByteRows<'_> {
    type Source = Infallible;

    fn samples(&self) -> usize {
        self.values.len() / self.inputs.max(1)
    }

    fn inputs(&self) -> usize {
        self.inputs
    }

    fn row(&mut self, k: usize, out: &mut [f32]) -> Result<()> {
        let row = row_of(self.values, self.inputs, k, out.len())?;
        out.iter_mut().zip(row).for_each(|(out, &byte)| *out = f32::from(byte) * self.scale);
        Ok(())
    }
}

/// Standard normal rows, a function of the seed: data sets of any size in no memory at all.
#[derive(Debug, Clone, Copy)]
pub struct NormalRows {
    seed: u64,
    samples: usize,
    inputs: usize,
}

impl NormalRows {
    /// `samples` rows of `inputs` standard normal numbers; row k depends on the seed and k only.
    #[must_use]
    pub const fn new(seed: u64, samples: usize, inputs: usize) -> Self {
        Self { seed, samples, inputs }
    }
}

impl Samples for NormalRows {
    type Source = Infallible;

    fn samples(&self) -> usize {
        self.samples
    }

    fn inputs(&self) -> usize {
        self.inputs
    }

    fn row(&mut self, k: usize, out: &mut [f32]) -> Result<()> {
        check(k, self.samples, out.len(), self.inputs)?;
        Rng::new(self.seed, stream::DATA + k as u64).fill_normal(out);
        Ok(())
    }
}

/// Another source's rows in a seeded random order, in constant memory; [`Self::position`] orders
/// the labels alike.
#[derive(Debug, Clone, Copy)]
pub struct Shuffled<S> {
    inner: S,
    order: Permutation,
}

impl<S: Samples> Shuffled<S> {
    /// Shuffles the rows of `inner`; the order depends on the seed and the number of rows only.
    pub fn new(inner: S, seed: u64) -> Self {
        let order = Permutation::new(seed, stream::ROWS, inner.samples());
        Self { inner, order }
    }

    /// Which row of the inner source stands at position `k`.
    pub fn position(&self, k: usize) -> usize {
        self.order.get(k)
    }
}

impl<S: Samples> Samples for Shuffled<S> {
    type Source = S::Source;

    fn samples(&self) -> usize {
        self.inner.samples()
    }

    fn inputs(&self) -> usize {
        self.inner.inputs()
    }

    fn row(&mut self, k: usize, out: &mut [f32]) -> Result<(), Self::Source> {
        self.inner.row(self.order.get(k), out)
    }

    fn draw(&mut self, draw: Option<u64>) {
        self.inner.draw(draw);
    }
}

/// Rows that a function writes: a file, a sensor ring, a simulation.
///
/// ```
/// use tamis::data::samples::{FnRows, Samples};
/// let mut ramp = FnRows::new(4, 2, |k, out: &mut [f32]| { out.fill(k as f32); Ok::<(), ()>(()) });
/// let mut row = [0.0; 2];
/// ramp.row(3, &mut row).unwrap();
/// assert_eq!(row, [3.0, 3.0]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct FnRows<F> {
    samples: usize,
    inputs: usize,
    read: F,
}

impl<E, F: FnMut(usize, &mut [f32]) -> core::result::Result<(), E>> FnRows<F> {
    /// `read(k, out)` writes row `k` of `samples` to `out`, which has length `inputs`.
    pub fn new(samples: usize, inputs: usize, read: F) -> Self {
        Self { samples, inputs, read }
    }
}

impl<E: core::fmt::Debug, F: FnMut(usize, &mut [f32]) -> core::result::Result<(), E>> Samples
    for FnRows<F>
{
    type Source = E;

    fn samples(&self) -> usize {
        self.samples
    }

    fn inputs(&self) -> usize {
        self.inputs
    }

    fn row(&mut self, k: usize, out: &mut [f32]) -> Result<(), E> {
        check(k, self.samples, out.len(), self.inputs)?;
        (self.read)(k, out).map_err(Error::Source)
    }
}

/// Rows of bytes in a serial NOR flash chip on any `embedded-hal` SPI bus: read command 0x03,
/// 24-bit addresses, as [`crate::data::spi::SpiFlash`] reads chips of up to 16 MiB.
///
/// A row's bytes are read into the caller's float buffer and widened there, so no further memory is
/// needed.
#[cfg(feature = "embedded-hal")]
#[derive(Debug)]
pub struct SpiRows<Spi> {
    spi: Spi,
    address: u32,
    samples: usize,
    inputs: usize,
    scale: f32,
}

#[cfg(feature = "embedded-hal")]
impl<Spi: embedded_hal::spi::SpiDevice> SpiRows<Spi> {
    /// `samples` rows of `inputs` bytes from `address` on; byte b stands for `b * scale`.
    ///
    /// # Errors
    /// [`Error::Range`] if the rows do not end within the chip's 24-bit address space,
    /// [`Error::NotFinite`] for a scale that is no number.
    pub fn new(spi: Spi, address: u32, samples: usize, inputs: usize, scale: f32) -> Result<Self> {
        let end = samples.saturating_mul(inputs).saturating_add(address as usize);
        error::range("last address in flash", end, 0, 1 << 24)?;
        error::finite("scale of the samples", &[scale])?;
        Ok(Self { spi, address, samples, inputs, scale })
    }
}

#[cfg(feature = "embedded-hal")]
impl<Spi: embedded_hal::spi::SpiDevice> Samples for SpiRows<Spi> {
    type Source = Spi::Error;

    fn samples(&self) -> usize {
        self.samples
    }

    fn inputs(&self) -> usize {
        self.inputs
    }

    fn row(&mut self, k: usize, out: &mut [f32]) -> Result<(), Spi::Error> {
        check(k, self.samples, out.len(), self.inputs)?;
        let at = self.address + (k * self.inputs) as u32;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(out);
        // The bytes come to the last quarter of the buffer; widening from the front never overtakes
        // them.
        let start = 3 * self.inputs;
        let raw = bytes.get_mut(start..).unwrap_or_default();
        crate::data::spi::read(&mut self.spi, at, false, raw).map_err(Error::Source)?;
        for j in 0..self.inputs {
            let number = bytes.get(start + j).map_or(0.0, |&byte| f32::from(byte) * self.scale);
            if let Some(word) = bytes.as_chunks_mut().0.get_mut(j) {
                *word = number.to_ne_bytes();
            }
        }
        Ok(())
    }
}

fn whole_rows(len: usize, inputs: usize) -> Result<()> {
    error::range("inputs", inputs, 1, u32::MAX as usize)?;
    error::length("samples", len, len - len % inputs)
}

fn row_of<T>(values: &[T], inputs: usize, k: usize, room: usize) -> Result<&[T]> {
    error::length("row buffer", room, inputs)?;
    let max = (values.len() / inputs.max(1)).saturating_sub(1);
    let none = Error::Range { what: "row", min: 0, max, got: k };
    values.chunks_exact(inputs.max(1)).nth(k).ok_or(none)
}

/// Checks the number of a row and the length of the buffer for it.
fn check<S>(k: usize, samples: usize, room: usize, inputs: usize) -> Result<(), S> {
    error::range("row", k, 0, samples.saturating_sub(1))?;
    error::length("row buffer", room, inputs)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;

    fn all(mut samples: impl Samples<Source: std::fmt::Debug>) -> vec::Vec<f32> {
        let mut out = vec![0.0; samples.samples() * samples.inputs()];
        let inputs = samples.inputs();
        for (k, row) in out.chunks_mut(inputs).enumerate() {
            samples.row(k, row).unwrap();
        }
        out
    }

    #[test]
    fn rows_bytes_and_functions_give_their_values() {
        assert_eq!(all(Rows::new(&[1.0, 2.0, 3.0, 4.0], 2).unwrap()), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(all(ByteRows::new(&[0, 128, 255, 1], 2, 0.5).unwrap()), [0.0, 64.0, 127.5, 0.5]);
    }

    #[test]
    fn shuffling_keeps_every_row() {
        let values: vec::Vec<f32> = (0..300).map(|i| i as f32).collect();
        let shuffled = Shuffled::new(Rows::new(&values, 3).unwrap(), 5);
        let mixed = all(shuffled);
        assert_ne!(mixed, values);
        for (k, row) in mixed.chunks(3).enumerate() {
            assert_eq!(row[0] as usize, 3 * shuffled.position(k));
        }
        let mut sorted = mixed.clone();
        sorted.sort_by(f32::total_cmp);
        assert_eq!(sorted, values);
    }

    #[test]
    fn normal_rows_do_not_depend_on_each_other() {
        let (few, many) = (all(NormalRows::new(1, 2, 5)), all(NormalRows::new(1, 9, 5)));
        assert_eq!(few[..], many[..10]);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        assert!(matches!(Rows::new(&[1.0; 5], 2), Err(Error::Length { expected: 4, got: 5, .. })));
        assert!(matches!(Rows::new(&[1.0; 5], 0), Err(Error::Range { what: "inputs", .. })));
        assert!(matches!(Rows::new(&[1.0, f32::NAN], 2), Err(Error::NotFinite { at: 1, .. })));
        let mut rows = Rows::new(&[1.0; 4], 2).unwrap();
        assert!(matches!(
            rows.row(2, &mut [0.0; 2]),
            Err(Error::Range { what: "row", max: 1, got: 2, .. })
        ));
        assert!(matches!(
            rows.row(0, &mut [0.0; 3]),
            Err(Error::Length { expected: 2, got: 3, .. })
        ));
        let mut failing = FnRows::new(1, 1, |_, _: &mut [f32]| Err("bus"));
        assert_eq!(failing.row(0, &mut [0.0]), Err(Error::Source("bus")));
    }

    #[cfg(feature = "embedded-hal")]
    mod spi {
        use super::*;
        use embedded_hal::spi::{ErrorKind, ErrorType, Operation, SpiDevice};

        /// A flash chip whose byte at address a is a modulo 251.
        struct Chip;

        impl ErrorType for Chip {
            type Error = ErrorKind;
        }

        impl SpiDevice for Chip {
            fn transaction(
                &mut self,
                operations: &mut [Operation<'_, u8>],
            ) -> core::result::Result<(), ErrorKind> {
                let [Operation::Write([0x03, a, b, c]), Operation::Read(out)] = operations else {
                    return Err(ErrorKind::Other);
                };
                let start = u32::from_be_bytes([0, *a, *b, *c]);
                for (i, byte) in out.iter_mut().enumerate() {
                    *byte = ((start + i as u32) % 251) as u8;
                }
                Ok(())
            }
        }

        #[test]
        fn rows_come_from_the_chip() {
            let expected: vec::Vec<f32> =
                (1000..1000 + 35).map(|a| (a % 251) as f32 * 2.0).collect();
            assert_eq!(all(SpiRows::new(Chip, 1000, 5, 7, 2.0).unwrap()), expected);
            assert!(SpiRows::new(Chip, 1 << 24, 1, 1, 1.0).is_err());
            assert!(SpiRows::new(Chip, 0, 1, 1, f32::NAN).is_err());
        }
    }
}
