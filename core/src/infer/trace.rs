//! What every layer gives on a row, as lines of text: to find out where a device and the host
//! differ.
//!
//! [`Trace`] predicts as [`model`] and [`quantised`] do and hands every number to a console, a
//! serial port or a log, without a float in text and without memory of its own. `tamis compare`
//! does the same on the host and shows the first number that differs.
//!
//! ```text
//! @tamis 1 integers 0123abcd          version, kind of numbers, checksum of the model file
//! @tamis row 0 784 89abcdef           number of the row, its length and the CRC-32 of what it holds
//! @tamis 0 0 00000007                 layer, neuron, and the 32 bits of its number
//! @tamis end 37 5f3c2b1a              numbers of the row, and the CRC-32 of layers, neurons and bits
//! @tamis done 1                       rows
//! ```
//!
//! Numbers are decimal, bits and checksums hexadecimal. Checksums are CRC-32 (ISO-HDLC) of
//! little-endian bytes: of a row of floats the bits, whatever it was read from, of a row of
//! integers the bytes; of numbers three words each. Other lines may stand between these.

use crate::Result;
use crate::infer::model::{self, Input};
use crate::infer::quantised;
use crc::{CRC_32_ISO_HDLC, Crc, Digest, Table};

/// The version of the lines that are written.
pub const VERSION: u32 = 1;
/// What every line starts with.
pub const PREFIX: &str = "@tamis";
/// The most bytes of a line.
pub const MAX_LINE: usize = 48;

/// Without a table: rows are short, and a microcontroller has better use for the flash.
static CRC: Crc<u32, Table<0>> = Crc::<u32, Table<0>>::new(&CRC_32_ISO_HDLC);

/// The numbers that layers of a model give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Of `f32`: the bits of a number are its bits.
    Floats,
    /// Of 8-bit integers: a number is a byte or an `i32`, and the bits are those of an `i32`.
    Integers,
}

impl Kind {
    /// As the lines say it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Floats => "floats",
            Self::Integers => "integers",
        }
    }
}

/// Writes lines by `put`, each without its newline and of at most [`MAX_LINE`] bytes.
///
/// ```
/// use tamis::infer::model::{Activation, Csr, Layer, Model, Sum};
/// use tamis::infer::trace::{Kind, Trace};
///
/// // f(x) = relu(x_0 - 0.5 x_2) - relu(2 x_1)
/// let hidden = Csr::new(3, &[2, 1], &[0, 2, 1], &[1.0, -0.5, 2.0], Activation::Relu)?;
/// let model = Model::new(&[Layer::Csr(hidden), Layer::Sum(Sum::new(2, &[0b10])?)])?;
///
/// let mut log = String::new();
/// let mut trace = Trace::new(Kind::Floats, 0x0123_abcd, |line: &str| log += &format!("{line}\n"));
/// trace.floats(&model.chain(), &[3.0, 0.25, 1.0][..], &mut [], &mut [0.0])?;
/// trace.finish();
/// let lines: Vec<_> = log.lines().collect();
/// assert_eq!(lines[0], "@tamis 1 floats 0123abcd");
/// assert_eq!(lines[2..5], ["@tamis 0 0 40200000", "@tamis 0 1 3f000000", "@tamis 1 0 40000000"]);
/// assert_eq!(lines.last(), Some(&"@tamis done 1"));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug)]
pub struct Trace<P> {
    put: P,
    rows: u32,
}

impl<P: FnMut(&str)> Trace<P> {
    /// Writes the first line, for a model whose file has this
    /// [`checksum`](crate::store::wire::checksum).
    #[must_use]
    pub fn new(kind: Kind, checksum: u32, mut put: P) -> Self {
        Line::new().word(VERSION).text(kind.name()).bits(checksum).put(&mut put);
        Self { put, rows: 0 }
    }

    /// Predicts a row with a model of floats, and writes it and every number that a layer gives.
    ///
    /// # Errors
    /// As [`model::Chain::predict_observed`]; of a row that is refused nothing is written.
    pub fn floats<X, const KERNELS: u16>(
        &mut self,
        model: &model::Chain<'_, KERNELS>,
        x: &X,
        scratch: &mut [f32],
        out: &mut [f32],
    ) -> Result<()>
    where
        X: Input + ?Sized,
    {
        let mut row = Row::new(self.rows, &mut self.put);
        let values = || (0..x.len()).filter_map(|i| x.at(i)).map(f32::to_le_bytes);
        model.predict_observed(x, scratch, out, |layer, neuron, value| {
            row.number(x.len(), values(), [layer as u32, neuron as u32, value.to_bits()]);
        })?;
        row.end();
        self.rows = self.rows.wrapping_add(1);
        Ok(())
    }

    /// Predicts a row with a model of integers, and writes it and every number that a layer gives.
    ///
    /// # Errors
    /// As [`quantised::Chain::predict_observed`]; of a row that is refused nothing is written.
    pub fn integers<const KERNELS: u16>(
        &mut self,
        model: &quantised::Chain<'_, KERNELS>,
        x: &[u8],
        scratch: &mut [i32],
        out: &mut [i32],
    ) -> Result<()> {
        let mut row = Row::new(self.rows, &mut self.put);
        model.predict_observed(x, scratch, out, |layer, neuron, value| {
            let bytes = x.iter().map(|&byte| [byte]);
            row.number(x.len(), bytes, [layer as u32, neuron as u32, value as u32]);
        })?;
        row.end();
        self.rows = self.rows.wrapping_add(1);
        Ok(())
    }

    /// Writes the last line, which says how many rows there were.
    pub fn finish(mut self) {
        Line::new().text("done").word(self.rows).put(&mut self.put);
    }
}

/// The lines of one row.
struct Row<'a, P> {
    put: &'a mut P,
    row: u32,
    numbers: u32,
    sum: Digest<'static, u32, Table<0>>,
}

impl<'a, P: FnMut(&str)> Row<'a, P> {
    fn new(row: u32, put: &'a mut P) -> Self {
        Self { put, row, numbers: 0, sum: CRC.digest() }
    }

    /// A number; before the first one comes the line of the row, so that a row that is refused has
    /// none.
    fn number<const N: usize>(
        &mut self,
        len: usize,
        row: impl Iterator<Item = [u8; N]>,
        number: [u32; 3],
    ) {
        if self.numbers == 0 {
            let mut sum = CRC.digest();
            row.for_each(|bytes| sum.update(&bytes));
            let line = Line::new().text("row").word(self.row).word(len as u32);
            line.bits(sum.finalize()).put(self.put);
        }
        let [layer, neuron, bits] = number;
        number.iter().for_each(|word| self.sum.update(&word.to_le_bytes()));
        self.numbers = self.numbers.wrapping_add(1);
        Line::new().word(layer).word(neuron).bits(bits).put(self.put);
    }

    fn end(self) {
        Line::new().text("end").word(self.numbers).bits(self.sum.finalize()).put(self.put);
    }
}

/// The checksum of the numbers of a row, as its last line has it.
pub fn checksum(numbers: impl IntoIterator<Item = [u32; 3]>) -> u32 {
    let mut sum = CRC.digest();
    numbers.into_iter().flatten().for_each(|word| sum.update(&word.to_le_bytes()));
    sum.finalize()
}

/// A line under construction, made without `core::fmt`, which takes more flash than a model.
struct Line {
    bytes: [u8; MAX_LINE],
    used: usize,
}

impl Line {
    fn new() -> Self {
        let line = Self { bytes: [0; MAX_LINE], used: 0 };
        line.bytes(PREFIX.as_bytes())
    }

    /// The longest line has room: the prefix, a word, two numbers of ten digits and eight of bits.
    fn bytes(mut self, bytes: &[u8]) -> Self {
        for &byte in bytes {
            if let Some(slot) = self.bytes.get_mut(self.used) {
                *slot = byte;
                self.used += 1;
            }
        }
        self
    }

    fn text(self, text: &str) -> Self {
        self.bytes(b" ").bytes(text.as_bytes())
    }

    fn word(self, value: u32) -> Self {
        let (mut digits, mut rest, mut count) = ([0_u8; 10], value, 0);
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            (rest, count) = (rest / 10, count + 1);
            if rest == 0 {
                break;
            }
        }
        let from = digits.len().saturating_sub(count);
        self.bytes(b" ").bytes(digits.get(from..).unwrap_or_default())
    }

    fn bits(self, value: u32) -> Self {
        (0..8).rev().fold(self.bytes(b" "), |line, place| {
            let digit = (value >> (4 * place)) as u8 & 15;
            line.bytes(&[if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }])
        })
    }

    fn put<P: FnMut(&str)>(self, put: &mut P) {
        let text = self.bytes.get(..self.used).and_then(|bytes| core::str::from_utf8(bytes).ok());
        put(text.unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::Error;
    use crate::infer::model::{Activation, Csr, Layer, Scaled, Sum};
    use std::string::{String, ToString};
    use std::vec::Vec;

    /// Two layers of rows under a sum; the last hidden one is never in memory.
    fn traced(
        predict: impl FnOnce(&mut Trace<&mut dyn FnMut(&str)>, &model::Chain<'_>) -> Result<()>,
    ) -> Vec<String> {
        let first = Csr::new(2, &[1, 1, 2], &[0, 1, 0, 1], &[1.0, 2.0, 1.0, 1.0], Activation::Relu)
            .unwrap();
        let second = Csr::new(3, &[1, 2], &[2, 0, 1], &[3.0, 1.0, -1.0], Activation::Relu).unwrap();
        let sum = Sum::new(2, &[0b10]).unwrap();
        let layers = [Layer::Csr(first), Layer::Csr(second), Layer::Sum(sum)];
        let mut lines = Vec::new();
        let mut put = |line: &str| lines.push(line.to_string());
        let put: &mut dyn FnMut(&str) = &mut put;
        let mut trace = Trace::new(Kind::Floats, 0xfeed, put);
        let _ = predict(&mut trace, &model::Chain::new(&layers).unwrap());
        trace.finish();
        lines
    }

    #[test]
    fn every_layer_is_traced_even_when_never_stored() {
        let lines =
            traced(|trace, model| trace.floats(model, &[5.0, 1.0][..], &mut [0.0; 3], &mut [0.0]));
        let numbers =
            [(0, 0, 5.0), (0, 1, 2.0), (0, 2, 6.0), (1, 0, 18.0), (1, 1, 3.0), (2, 0, 15.0_f32)];
        let sum = checksum(numbers.map(|(layer, neuron, value)| [layer, neuron, value.to_bits()]));
        assert_eq!(lines[0], "@tamis 1 floats 0000feed");
        for (line, (layer, neuron, value)) in lines[2..].iter().zip(numbers) {
            assert_eq!(*line, std::format!("@tamis {layer} {neuron} {:08x}", value.to_bits()));
        }
        assert_eq!(
            lines[8..],
            [std::format!("@tamis end 6 {sum:08x}"), "@tamis done 1".to_string()]
        );
    }

    #[test]
    fn row_checksum_is_independent_of_input_type() {
        fn lines<X: Input + ?Sized>(x: &X) -> Vec<String> {
            traced(|trace, model| trace.floats(model, x, &mut [0.0; 3], &mut [0.0]))
        }
        let (floats, bytes) = (lines(&[10.0, 2.0][..]), lines(&[10_u8, 2][..]));
        let (scaled, other) =
            (lines(&Scaled { bytes: &[20, 4], scale: 0.5 }), lines(&[10.0, 3.0][..]));
        assert_eq!((&floats, &floats), (&bytes, &scaled));
        assert_ne!(floats[1], other[1]);
        assert!(floats[1].starts_with("@tamis row 0 2 "), "{}", floats[1]);
    }

    #[test]
    fn a_row_that_is_refused_leaves_nothing_behind() {
        let lines = traced(|trace, model| {
            let error = trace.floats(model, &[5.0][..], &mut [0.0; 3], &mut [0.0]);
            assert_eq!(error, Err(Error::Length { what: "input row", expected: 2, got: 1 }));
            trace.floats(model, &[5.0, 1.0][..], &mut [0.0; 3], &mut [0.0])
        });
        assert_eq!(lines.len(), 10);
        assert!(lines[1].starts_with("@tamis row 0 "));
    }

    #[test]
    fn the_longest_line_has_room() {
        let mut longest = String::new();
        Line::new().text("row").word(u32::MAX).word(u32::MAX).bits(u32::MAX).put(
            &mut |line: &str| {
                longest = line.to_string();
            },
        );
        assert_eq!(longest, "@tamis row 4294967295 4294967295 ffffffff");
        assert!(longest.len() <= MAX_LINE);
    }
}
