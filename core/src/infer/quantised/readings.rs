//! How readings of sensors, and other numbers, become the bytes that a model of integers takes.

use crate::base::error::{length, tri};
use crate::{Error, Result};

/// What the integers of a model stand for. Predictions need none of it but for the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scales {
    input: u32,
    output: u32,
    /// The byte of an input that stands for 0.
    pub zero: u8,
    /// The least output of a model of one output that is class 1.
    pub threshold: i32,
}

impl Scales {
    /// An input byte `q` stands for `input * (q - zero)`, an output `y` for `output * y`; class 1
    /// starts at `threshold`.
    ///
    /// # Errors
    /// [`Error::NotFinite`] for a scale that is NaN, infinite, zero or negative.
    pub const fn new(input: f32, output: f32, zero: u8, threshold: i32) -> Result<Self> {
        Self::of(input.to_bits(), output.to_bits(), zero, threshold)
    }

    /// The same of the bits of the scales; no float is computed with.
    pub(crate) const fn of(input: u32, output: u32, zero: u8, threshold: i32) -> Result<Self> {
        tri!(check_scale(input, 0));
        tri!(check_scale(output, 1));
        Ok(Self { input, output, zero, threshold })
    }

    /// Scale and zero of the inputs.
    pub const fn reading(&self) -> Reading {
        Reading { scale: self.input(), zero: self.zero as i32 }
    }

    /// What one step of an input byte stands for.
    pub const fn input(&self) -> f32 {
        f32::from_bits(self.input)
    }

    /// What one step of an output stands for.
    pub const fn output(&self) -> f32 {
        f32::from_bits(self.output)
    }

    /// The byte next to a number: rounded, halves away from zero, and cut to 0 to 255; `zero` for
    /// NaN.
    pub fn byte(&self, number: f32) -> u8 {
        self.reading().byte(number)
    }
}

/// Checks the bits of scale `at`: a positive number.
pub(crate) const fn check_scale(bits: u32, at: usize) -> Result<()> {
    // Positive floats are in the order of their bits, from the least to below infinity.
    if bits == 0 || bits >= f32::INFINITY.to_bits() {
        return Err(Error::NotFinite { what: "scales above 0", at });
    }
    Ok(())
}

/// A scale and a zero for each input: byte `q` of input `j` stands for `scale_j (q - zero_j)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Columns<'a> {
    scales: &'a [f32],
    zeros: &'a [i32],
}

impl<'a> Columns<'a> {
    /// One of both for each input.
    ///
    /// # Errors
    /// [`Error::Length`] for lists of different lengths, [`Error::NotFinite`] at the first scale
    /// that is not above 0 or not finite.
    pub const fn new(scales: &'a [f32], zeros: &'a [i32]) -> Result<Self> {
        tri!(length("zeros of the inputs", zeros.len(), scales.len()));
        let mut left = scales;
        while let [scale, behind @ ..] = left {
            tri!(check_scale(scale.to_bits(), scales.len() - left.len()));
            left = behind;
        }
        Ok(Self { scales, zeros })
    }

    /// What one step of the byte of each input stands for.
    pub const fn scales(&self) -> &'a [f32] {
        self.scales
    }

    /// What stands for 0 in each input: beyond 0 to 255 where 0 is far from its range.
    pub const fn zeros(&self) -> &'a [i32] {
        self.zeros
    }
}

/// Scale and zero of an input: byte `q` stands for `scale (q - zero)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// What one step stands for.
    pub scale: f32,
    /// What stands for 0.
    pub zero: i32,
}

impl Reading {
    /// The byte next to a number: rounded, halves away from zero, and cut to 0 to 255; `zero` for
    /// NaN.
    pub fn byte(self, number: f32) -> u8 {
        let steps = libm::roundf(number / self.scale);
        let steps = if steps.is_nan() { 0.0 } else { steps };
        (steps + self.zero as f32).clamp(0.0, 255.0) as u8
    }
}

/// How numbers become bytes: by one scale for all inputs, or by one for each.
///
/// ```
/// use tamis::infer::quantised::{Columns, Readings, Scales};
///
/// // Degrees from -20 on in halves, and pascals from 99 000 on in tens.
/// let columns = Columns::new(&[0.5, 10.0], &[40, -9_900])?;
/// let readings = Readings::new(Scales::new(1.0, 1.0, 0, 0)?, Some(columns));
/// let mut bytes = [0; 2];
/// readings.quantise_input(&[21.3, 100_050.0], &mut bytes)?;
/// assert_eq!(bytes, [40 + 43, 105]);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Readings<'a> {
    scales: Scales,
    columns: Option<Columns<'a>>,
}

impl<'a> Readings<'a> {
    /// By the scale and zero of all inputs, or those of each where there are some.
    pub const fn new(scales: Scales, columns: Option<Columns<'a>>) -> Self {
        Self { scales, columns }
    }

    /// Scale and zero of all inputs, and the output and threshold.
    pub(crate) const fn all(&self) -> Scales {
        self.scales
    }

    /// Scale and zero of each input, where they differ.
    pub const fn columns(&self) -> Option<Columns<'a>> {
        self.columns
    }

    /// Scale and zero of an input.
    pub fn of(&self, input: usize) -> Reading {
        let own = self.columns.and_then(|Columns { scales, zeros }| {
            Some(Reading { scale: *scales.get(input)?, zero: *zeros.get(input)? })
        });
        own.unwrap_or(self.scales.reading())
    }

    /// The byte next to a number of an input, as [`Reading::byte`] has it.
    pub fn byte(&self, input: usize, number: f32) -> u8 {
        self.of(input).byte(number)
    }

    /// Writes the byte of each number of a row.
    ///
    /// # Errors
    /// [`Error::Length`] for another number of bytes, or of columns.
    pub fn quantise_input(&self, row: &[f32], bytes: &mut [u8]) -> Result<()> {
        length("bytes of a row", bytes.len(), row.len())?;
        if let Some(columns) = self.columns {
            length("input row", row.len(), columns.scales.len())?;
        }
        for (input, (byte, &number)) in bytes.iter_mut().zip(row).enumerate() {
            *byte = self.byte(input, number);
        }
        Ok(())
    }
}
