//! What an input row may be: floats, bytes, scaled bytes, or anything that gives its numbers one by
//! one.

use super::entries::{Entries, WINDOW};

/// One row of inputs, read number by number where a weight needs it.
///
/// ```
/// use tamis::infer::model::Input;
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

    /// Adds the entries of one window of [`Blocks`](super::Blocks), which starts at column `start`,
    /// to `out`, `counts` for each row; `None` past the end. For numbers that lie in memory an
    /// array in place of checked reads is faster.
    fn add_window(
        &self,
        start: usize,
        counts: &[u8],
        entries: &mut Entries<'_>,
        out: &mut [f32],
    ) -> Option<()> {
        entries.add(counts, out, |index| self.at(start.wrapping_add(index)))
    }

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

    fn add_window(
        &self,
        start: usize,
        counts: &[u8],
        entries: &mut Entries<'_>,
        out: &mut [f32],
    ) -> Option<()> {
        match window(self, start) {
            Some(x) => entries.add_from(counts, out, x, |number| number),
            None => entries.add(counts, out, |index| self.at(start.wrapping_add(index))),
        }
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

    fn add_window(
        &self,
        start: usize,
        counts: &[u8],
        entries: &mut Entries<'_>,
        out: &mut [f32],
    ) -> Option<()> {
        match window(self, start) {
            Some(x) => entries.add_from(counts, out, x, f32::from),
            None => entries.add(counts, out, |index| self.at(start.wrapping_add(index))),
        }
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

    fn add_window(
        &self,
        start: usize,
        counts: &[u8],
        entries: &mut Entries<'_>,
        out: &mut [f32],
    ) -> Option<()> {
        match window(self.bytes, start) {
            Some(x) => entries.add_from(counts, out, x, |byte| f32::from(byte) * self.scale),
            None => entries.add(counts, out, |index| self.at(start.wrapping_add(index))),
        }
    }
}

/// The numbers of a window, which an index of `u8` cannot leave.
fn window<T>(x: &[T], start: usize) -> Option<&[T; WINDOW]> {
    x.get(start..)?.first_chunk()
}
