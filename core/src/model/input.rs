//! What an input row may be: floats, bytes, scaled bytes, or anything that gives its numbers one by one.

/// One row of inputs, read number by number where a weight needs it.
///
/// ```
/// use tamis::model::Input;
///
/// /// Readings of a 12-bit converter.
/// struct Adc<'a>(&'a [u16]);
///
/// impl Input for Adc<'_> {
///     fn len(&self) -> usize { self.0.len() }
///     fn at(&self, i: usize) -> Option<f32> { self.0.get(i).map(|&reading| f32::from(reading)) }
/// }
/// assert_eq!(Adc(&[7, 4095]).at(1), Some(4095.0));
/// ```
pub trait Input {
    /// Numbers in the row.
    fn len(&self) -> usize;

    /// The number at `i`; `None` past the end.
    fn at(&self, i: usize) -> Option<f32>;

    /// Whether the row has no numbers.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Input for [f32] {
    fn len(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn at(&self, i: usize) -> Option<f32> {
        self.get(i).copied()
    }
}

/// Bytes stand for the numbers 0 to 255.
impl Input for [u8] {
    fn len(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn at(&self, i: usize) -> Option<f32> {
        self.get(i).map(|&byte| f32::from(byte))
    }
}

/// Bytes that stand for `byte * scale`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaled<'a> {
    /// The row.
    pub bytes: &'a [u8],
    /// What 1 stands for; 1/255 for pixels from 0 to 1.
    pub scale: f32,
}

impl Input for Scaled<'_> {
    fn len(&self) -> usize {
        self.bytes.len()
    }

    #[inline(always)]
    fn at(&self, i: usize) -> Option<f32> {
        self.bytes.at(i).map(|number| number * self.scale)
    }
}
