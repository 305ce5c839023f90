//! Where the rows of an operator live: vectors of one number a row, and what is done with them
//! besides products. With several numbers a row they are [tables](super::tables).
//!
//! Labels, residuals and activations are as long as the data. An algorithm never reads them: it
//! holds a [`Machine::Rows`] of its operator, which are numbers in its own memory on the [`Host`]
//! and may be the handle of a buffer elsewhere, and asks for sums. So a step moves what has the
//! size of the support, and the panels that it asks for.

use crate::base::error::{self, Result};
use crate::base::math::{self, Sum, norm2};
use crate::base::rng::Rng;
use core::fmt::Debug;

/// What holds row vectors and computes with them. The bodies of [`Host`] are the specification.
///
/// Vectors of one call have one length but where it says otherwise; sums are over the rows that are
/// held here.
pub trait Machine {
    /// A vector of one number a row, or of several.
    type Rows: ?Sized + Debug + 'static;

    /// Labels that are classes, one a row.
    type Classes: ?Sized + Debug + 'static;

    /// A vector of as many numbers as the memory has floats, perhaps none, which are not set; the
    /// machine may keep a handle in the memory.
    fn rows_in<'m>(&mut self, memory: &'m mut [f32]) -> &'m mut Self::Rows;

    /// Numbers of a vector.
    fn len(rows: &Self::Rows) -> usize;

    /// The first `len` numbers of a vector; none where it has fewer.
    fn head(rows: &Self::Rows, len: usize) -> Option<&Self::Rows>;

    /// As [`Self::head`].
    fn head_mut(rows: &mut Self::Rows, len: usize) -> Option<&mut Self::Rows>;

    /// The numbers, where they are in memory that can be read here.
    fn numbers(rows: &Self::Rows) -> Option<&[f32]>;

    /// As [`Self::numbers`].
    fn numbers_mut(rows: &mut Self::Rows) -> Option<&mut [f32]>;

    /// `out = x`.
    fn fill(&mut self, out: &mut Self::Rows, x: f32);

    /// `out` = standard normal numbers.
    fn fill_normal(&mut self, out: &mut Self::Rows, rng: &mut Rng);

    /// `out = from`.
    fn copy(&mut self, from: &Self::Rows, out: &mut Self::Rows);

    /// `a · b`.
    fn dot(&mut self, a: &Self::Rows, b: &Self::Rows) -> f32;

    /// The largest magnitude; NaN where a number is not finite.
    fn largest(&mut self, a: &Self::Rows) -> f32;

    /// `|a|²`, added up in order.
    fn squares(&mut self, a: &Self::Rows) -> f32;

    /// Rows on which `sign a > 0`.
    fn count_active(&mut self, a: &Self::Rows, sign: f32) -> usize;

    /// Squared error: turns outputs into residuals, `out = scale y - out`, y being the labels from
    /// row `first` on; `|out|²`.
    ///
    /// # Errors
    /// [`error::Error::Length`] for fewer labels.
    fn residual(
        &mut self,
        labels: &Self::Rows,
        first: usize,
        scale: f32,
        out: &mut Self::Rows,
    ) -> Result<f32>;

    /// `r = min(r + slack y, 0)` where r < 0 and y > 0, y being the labels from row `first` on: outputs from
    /// y to `(1 + slack) y` have no residual then; `|r|²`.
    fn slacken(&mut self, labels: &Self::Rows, first: usize, slack: f32, r: &mut Self::Rows)
    -> f32;

    /// `z = 0` where `r = 0`.
    fn keep(&mut self, z: &mut Self::Rows, r: &Self::Rows);

    /// `|scale y|²`, y being the `rows` labels from row `first` on.
    fn power(&mut self, labels: &Self::Rows, first: usize, scale: f32, rows: usize) -> f32;

    /// `(y · f, |f|²)` of the scaled labels and the outputs `f = y - r`.
    fn fit(&mut self, labels: &Self::Rows, first: usize, scale: f32, r: &Self::Rows) -> Along;

    /// `z += r - t`: the residual r with outputs z in place of t. `|z|²`, added up in order.
    fn exchange(&mut self, z: &mut Self::Rows, t: &Self::Rows, r: &Self::Rows) -> f32;

    /// `t *= v r (1 - |z| / band)₊ / length`.
    fn near_hinge(&mut self, t: &mut Self::Rows, z: &Self::Rows, r: &Self::Rows, hinge: Hinge);

    /// `(r · φ, |φ|²)`, φ being what two neurons of these activations have over one of activation z.
    fn halves(&mut self, r: &Self::Rows, z: &Self::Rows, t: &Self::Rows, halves: Halves) -> Along;
}

/// A product with a direction, and the direction's squared norm.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Along {
    /// The product.
    pub product: f32,
    /// The squared norm.
    pub norm2: f32,
}

/// Where a neuron opens, for [`Machine::near_hinge`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hinge {
    /// v, the neuron's output sign.
    pub sign: f32,
    /// Activations below this are near.
    pub band: f32,
    /// What the result is divided by.
    pub length: f32,
}

/// Two neurons in place of one of activation z: `p z + a t` and `(1 - p) z - a t`, for
/// [`Machine::halves`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Halves {
    /// v, the neuron's output sign.
    pub sign: f32,
    /// p, the share of the first.
    pub share: f32,
    /// a, of the direction t.
    pub length: f32,
}

/// Rows in the caller's memory, where the algorithm runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Host;

impl Host {
    /// The scaled labels from row `first` on.
    pub(super) fn labels(labels: &[f32], first: usize, scale: f32) -> impl Iterator<Item = f32> {
        labels.get(first..).unwrap_or(&[]).iter().map(move |y| scale * y)
    }
}

impl Machine for Host {
    type Rows = [f32];
    type Classes = [u16];

    fn rows_in<'m>(&mut self, memory: &'m mut [f32]) -> &'m mut [f32] {
        memory
    }

    fn len(rows: &[f32]) -> usize {
        rows.len()
    }

    fn head(rows: &[f32], len: usize) -> Option<&[f32]> {
        rows.get(..len)
    }

    fn head_mut(rows: &mut [f32], len: usize) -> Option<&mut [f32]> {
        rows.get_mut(..len)
    }

    fn numbers(rows: &[f32]) -> Option<&[f32]> {
        Some(rows)
    }

    fn numbers_mut(rows: &mut [f32]) -> Option<&mut [f32]> {
        Some(rows)
    }

    fn fill(&mut self, out: &mut [f32], x: f32) {
        out.fill(x);
    }

    fn fill_normal(&mut self, out: &mut [f32], rng: &mut Rng) {
        rng.fill_normal(out);
    }

    fn copy(&mut self, from: &[f32], out: &mut [f32]) {
        out.iter_mut().zip(from).for_each(|(out, x)| *out = *x);
    }

    fn dot(&mut self, a: &[f32], b: &[f32]) -> f32 {
        math::dot(a, b)
    }

    fn largest(&mut self, a: &[f32]) -> f32 {
        if a.iter().all(|x| x.is_finite()) {
            a.iter().fold(0.0_f32, |most, x| most.max(x.abs()))
        } else {
            f32::NAN
        }
    }

    fn squares(&mut self, a: &[f32]) -> f32 {
        a.iter().fold(0.0, |sum, x| sum + x * x)
    }

    fn count_active(&mut self, a: &[f32], sign: f32) -> usize {
        a.iter().filter(|&&a| sign * a > 0.0).count()
    }

    fn residual(
        &mut self,
        labels: &[f32],
        first: usize,
        scale: f32,
        out: &mut [f32],
    ) -> Result<f32> {
        let held = labels.len().saturating_sub(first);
        error::length("labels", held.min(out.len()), out.len())?;
        for (out, y) in out.iter_mut().zip(Self::labels(labels, first, scale)) {
            *out = y - *out;
        }
        Ok(norm2(out))
    }

    fn slacken(&mut self, labels: &[f32], first: usize, slack: f32, r: &mut [f32]) -> f32 {
        for (r, most) in r.iter_mut().zip(Self::labels(labels, first, slack)) {
            if *r < 0.0 {
                *r = (*r + most.max(0.0)).min(0.0);
            }
        }
        norm2(r)
    }

    fn keep(&mut self, z: &mut [f32], r: &[f32]) {
        for (z, r) in z.iter_mut().zip(r) {
            if *r == 0.0 {
                *z = 0.0;
            }
        }
    }

    fn power(&mut self, labels: &[f32], first: usize, scale: f32, rows: usize) -> f32 {
        let mut sum = Sum::default();
        Self::labels(labels, first, scale).take(rows).for_each(|y| sum.add(y * y));
        sum.value()
    }

    fn fit(&mut self, labels: &[f32], first: usize, scale: f32, r: &[f32]) -> Along {
        let (mut along, mut norm) = (Sum::default(), Sum::default());
        for (y, r) in Self::labels(labels, first, scale).zip(r) {
            along.add(y * (y - r));
            norm.add((y - r) * (y - r));
        }
        Along { product: along.value(), norm2: norm.value() }
    }

    fn exchange(&mut self, z: &mut [f32], t: &[f32], r: &[f32]) -> f32 {
        let mut after = 0.0;
        for ((z, t), r) in z.iter_mut().zip(t).zip(r) {
            *z += r - t;
            after += *z * *z;
        }
        after
    }

    fn near_hinge(&mut self, t: &mut [f32], z: &[f32], r: &[f32], hinge: Hinge) {
        let Hinge { sign, band, length } = hinge;
        for ((t, z), r) in t.iter_mut().zip(z).zip(r) {
            *t *= sign * r * (1.0 - z.abs() / band).max(0.0) / length;
        }
    }

    fn halves(&mut self, r: &[f32], z: &[f32], t: &[f32], halves: Halves) -> Along {
        let Halves { sign: v, share, length: a } = halves;
        let relu = |x: f32| (v * x).max(0.0);
        let mut along = Along::default();
        for ((z, t), r) in z.iter().zip(t).zip(r) {
            let other = 1.0 - share;
            let change = v * (relu(share * z + a * t) + relu(other * z - a * t) - relu(*z));
            along.product += r * change;
            along.norm2 += change * change;
        }
        along
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residuals_above_labels_lose_their_slack() {
        // From the second on, of which outputs up to 1.5 times those above 0 have no residual.
        let labels = [9.0, 2.0, 2.0, 2.0, 2.0, 0.0, -2.0];
        let mut r = [0.5, -0.5, -1.0, -1.5, -0.5, -0.5];
        let squares = Host.slacken(&labels, 1, 0.5, &mut r[..4]);
        assert_eq!((r, squares), ([0.5, 0.0, 0.0, -0.5, -0.5, -0.5], 0.5));
        assert_eq!(Host.slacken(&labels, 5, 0.5, &mut r[4..]), 0.5);
        assert_eq!(r[4..], [-0.5, -0.5]);
        let mut z = [7.0; 6];
        Host.keep(&mut z, &r);
        assert_eq!(z, [7.0, 0.0, 0.0, 7.0, 7.0, 7.0]);
    }
}
