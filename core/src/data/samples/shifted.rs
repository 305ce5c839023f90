//! Pictures that are moved whenever they are read, so that a network learns more than the few there are.

use super::Samples;
use crate::base::error::{self, Result};
use crate::base::rng::{Rng, stream};

/// Another source's rows as pictures, row by row of their pixels, each moved by at most `most` whole pixels in
/// either direction whenever it is read; what comes in from outside is 0.
///
/// Reading a row again gives another move: which one is a function of the seed and of the number of the draw, which counts
/// the rows read unless [`Samples::draw`] says another. It takes no memory beside the caller's row.
///
/// [`RowByRow`](crate::learn::deep::backprop::RowByRow) trains on moved rows, grows weights by the moves that the next
/// step sees, and takes losses, such as those on validation rows, of rows that are not moved.
///
/// ```
/// use tamis::data::samples::{Rows, Samples, Shifted};
/// let picture = [1.0, 2.0, 3.0, 4.0];
/// let mut moved = Shifted::new(Rows::new(&picture, 4)?, 2, 1, 7)?;
/// let mut row = [0.0; 4];
/// let sums: [f32; 3] = core::array::from_fn(|_| {
///     moved.row(0, &mut row).unwrap();
///     row.iter().sum()
/// });
/// assert!(sums.iter().any(|&sum| sum < 10.0), "some pixels have left the picture");
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Shifted<X> {
    inner: X,
    width: usize,
    /// Of a row; a number behind them stays.
    pixels: usize,
    most: usize,
    seed: u64,
    /// That of the next row; none for rows that stay.
    draw: Option<u64>,
}

impl<X: Samples> Shifted<X> {
    /// Pictures of `width` pixels a row, moved by at most `most`, from draw 0 on.
    ///
    /// # Errors
    /// [`Error::Length`](crate::Error::Length) for rows that are not whole rows of so many pixels;
    /// [`Error::Range`](crate::Error::Range) for a width of 0, or moves as large as the picture.
    pub fn new(inner: X, width: usize, most: usize, seed: u64) -> Result<Self> {
        let pixels = inner.inputs();
        Self::of(inner, pixels, width, most, seed)
    }

    /// The same of rows with a number behind the picture, which stays: a constant input.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn beside_constant(inner: X, width: usize, most: usize, seed: u64) -> Result<Self> {
        let pixels = inner.inputs().saturating_sub(1);
        Self::of(inner, pixels, width, most, seed)
    }

    fn of(inner: X, pixels: usize, width: usize, most: usize, seed: u64) -> Result<Self> {
        error::range("pixels in a row", width, 1, pixels)?;
        error::length("inputs", pixels, pixels - pixels % width)?;
        error::range("pixels to move by", most, 0, width.min(pixels / width) - 1)?;
        Ok(Self { inner, width, pixels, most, seed, draw: Some(0) })
    }
}

impl<X: Samples> Samples for Shifted<X> {
    type Source = X::Source;

    fn samples(&self) -> usize {
        self.inner.samples()
    }

    fn inputs(&self) -> usize {
        self.inner.inputs()
    }

    fn row(&mut self, k: usize, out: &mut [f32]) -> Result<(), Self::Source> {
        self.inner.row(k, out)?;
        let Some(draw) = self.draw else { return Ok(()) };
        self.draw = Some(draw.wrapping_add(1));
        let mut rng = Rng::new(self.seed, stream::SHIFT.wrapping_add(draw));
        let most = self.most as i32;
        let mut by = || rng.below(2 * self.most as u32 + 1) as i32 - most;
        let (down, right) = (by(), by());
        shift(out.get_mut(..self.pixels).unwrap_or_default(), self.width, down, right);
        Ok(())
    }

    fn draw(&mut self, draw: Option<u64>) {
        self.draw = draw;
    }
}

/// Moves a picture; moves are smaller than it.
fn shift(picture: &mut [f32], width: usize, down: i32, right: i32) {
    let (rows, cols) = (down.unsigned_abs() as usize, right.unsigned_abs() as usize);
    let (len, outside) = (picture.len(), (rows * width).min(picture.len()));
    // As one move along all pixels; those that come round an edge are outside.
    let along = down as isize * width as isize + right as isize;
    let by = along.unsigned_abs().min(len);
    if along > 0 {
        picture.copy_within(..len - by, by);
    } else {
        picture.copy_within(by.., 0);
    }
    let zero = |part: Option<&mut [f32]>| part.into_iter().for_each(|part| part.fill(0.0));
    zero(if down > 0 { picture.get_mut(..outside) } else { picture.get_mut(len - outside..) });
    for row in picture.chunks_exact_mut(width) {
        let edge = width.saturating_sub(cols);
        zero(if right > 0 { row.get_mut(..cols) } else { row.get_mut(edge..) });
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::Rows;
    use super::*;
    use crate::Error;
    use std::vec::Vec;

    /// Three rows of four pixels, each its own number.
    fn picture() -> Vec<f32> {
        (1..=12).map(|k| k as f32).collect()
    }

    #[test]
    fn every_move_is_that_of_each_pixel() {
        for down in -2..=2_i32 {
            for right in -3..=3_i32 {
                let mut moved = picture();
                shift(&mut moved, 4, down, right);
                for (k, &got) in moved.iter().enumerate() {
                    let (row, col) = ((k / 4) as i32 - down, (k % 4) as i32 - right);
                    let is_inside = (0..3).contains(&row) && (0..4).contains(&col);
                    let expected = if is_inside { (row * 4 + col + 1) as f32 } else { 0.0 };
                    assert_eq!(got.to_bits(), expected.to_bits(), "{down}, {right}: {moved:?}");
                }
            }
        }
    }

    #[test]
    fn all_moves_come_and_their_draws_repeat_them() {
        let pixels = picture();
        let source = || Shifted::new(Rows::new(&pixels, 12).unwrap(), 4, 1, 3).unwrap();
        let (mut first, mut row) = (source(), [0.0; 12]);
        let mut rows = Vec::new();
        for _ in 0..200 {
            first.row(0, &mut row).unwrap();
            rows.push(row.map(f32::to_bits));
        }
        let mut again = source();
        again.draw(Some(150));
        for expected in &rows[150..152] {
            again.row(0, &mut row).unwrap();
            assert_eq!(row.map(f32::to_bits), *expected);
        }
        again.draw(None);
        again.row(0, &mut row).unwrap();
        assert_eq!(row[..], pixels);
        rows.sort_unstable();
        rows.dedup();
        assert_eq!(rows.len(), 9);
    }

    #[test]
    fn pictures_that_do_not_fit_are_refused() {
        let pixels = picture();
        let made = |width, most| Shifted::new(Rows::new(&pixels, 12).unwrap(), width, most, 0);
        assert!(matches!(made(5, 1), Err(Error::Length { .. })));
        // One number behind the picture stays.
        let rows = Rows::new(&pixels[..7], 7).unwrap();
        assert!(Shifted::new(rows, 3, 1, 0).is_err());
        let mut behind = Shifted::beside_constant(rows, 3, 1, 0).unwrap();
        let mut row = [0.0; 7];
        for _ in 0..9 {
            behind.row(0, &mut row).unwrap();
            assert_eq!(row[6].to_bits(), 7.0_f32.to_bits());
        }
        assert!(matches!(made(0, 0), Err(Error::Range { .. })));
        assert!(matches!(made(4, 3), Err(Error::Range { .. })));
        assert!(made(4, 2).is_ok());
    }
}
