//! Tables of several numbers a row: outputs, residuals and labels of networks with several outputs.
//!
//! A table is a row vector of n·c numbers, row by row.

use crate::base::bits::is_set;
use crate::base::error::{self, Result};
use crate::base::math::{self, Sum};
use crate::network::weights::Block;
use crate::operator::loss;
use crate::operator::machine::{Along, Host, Machine};
use core::ops::Range;

/// A machine that computes with tables of c numbers a row. The bodies of [`Host`] are the
/// specification.
///
/// A block of Wt has weights of c outputs. Vectors have one number for each row of the table.
pub trait Tables: Machine {
    /// Rows that have a class.
    fn classes(labels: &Self::Classes) -> usize;

    /// Checks that all labels are classes that c outputs tell apart.
    ///
    /// # Errors
    /// [`error::Error::Range`] for a label that is none.
    fn check_classes(&mut self, labels: &Self::Classes, c: usize) -> Result<()>;

    /// [`crate::learn::loss::cross_entropy`] of `rows`, whose outputs are `out`.
    ///
    /// # Errors
    /// As that.
    fn cross_entropy(
        &mut self,
        labels: &Self::Classes,
        rows: Range<usize>,
        c: usize,
        out: &mut Self::Rows,
    ) -> Result<f32>;

    /// Rows of a range whose outputs say their class ([`crate::learn::loss::class`]).
    fn count_right(
        &mut self,
        labels: &Self::Classes,
        rows: Range<usize>,
        c: usize,
        out: &Self::Rows,
    ) -> usize;

    /// `out *= factor`.
    fn scale(&mut self, out: &mut Self::Rows, factor: f32);

    /// `out /= divisor`.
    fn divide(&mut self, out: &mut Self::Rows, divisor: f32);

    /// `out = R wt`.
    fn project(&mut self, r: &Self::Rows, wt: Block<'_>, c: usize, out: &mut Self::Rows);

    /// `out += Rᵀ a`, length c.
    fn transpose(&mut self, r: &Self::Rows, a: &Self::Rows, out: &mut [f32]);

    /// `out += Rᵀ a` at the outputs that `wt` leads to.
    fn transpose_at(
        &mut self,
        r: &Self::Rows,
        a: &Self::Rows,
        wt: Block<'_>,
        c: usize,
        out: &mut [f32],
    );

    /// `out += a wtᵀ`.
    fn add_outer(&mut self, a: &Self::Rows, wt: Block<'_>, c: usize, out: &mut Self::Rows);

    /// `out += a wtᵀ - b newᵀ`, wt and new being of the same outputs.
    fn exchange_outer(
        &mut self,
        a: &Self::Rows,
        wt: Block<'_>,
        b: &Self::Rows,
        new: Block<'_>,
        c: usize,
        out: &mut Self::Rows,
    );

    /// Puts the sum of the active outputs of a row in their places, and 0 in the others. `active`
    /// has the [`open_words`] of each row, whose bit `k % 32` of word `k / 32` says whether output
    /// k is active.
    fn sum_active(&mut self, active: &Self::Rows, c: usize, out: &mut Self::Rows);

    /// Turns outputs z into residuals of a second layer, `r = scale y - z_0 - sum_k relu(z_k)`: in
    /// the places of the active outputs, of which a residual that is not 0 tells, and 0 in the
    /// others. Output 0 is always active. `|r|²`; y is the label from row `first` on.
    fn second_residual(
        &mut self,
        labels: &Self::Rows,
        first: usize,
        scale: f32,
        c: usize,
        out: &mut Self::Rows,
    ) -> f32;

    /// Writes which outputs are active in such residuals, for [`Self::sum_active`].
    fn mark_active(&mut self, r: &Self::Rows, c: usize, active: &mut Self::Rows);

    /// `out` = the fraction of the rows where each output is active in such residuals, length c.
    fn active_shares(&mut self, r: &Self::Rows, out: &mut [f32]);

    /// `out = Rᵀ a` with such residuals, and `norms = sum a²` over the rows where each output is
    /// active, both of length c.
    fn transpose_active(
        &mut self,
        r: &Self::Rows,
        a: &Self::Rows,
        out: &mut [f32],
        norms: &mut [f32],
    );

    /// `out = sum a²` over the rows where an output is active in such residuals, for each that `wt`
    /// leads to; `whole`, the sum over all rows, for output 0.
    fn active_norms(
        &mut self,
        r: &Self::Rows,
        a: &Self::Rows,
        wt: Block<'_>,
        c: usize,
        whole: f32,
        out: &mut [f32],
    );

    /// The mean square of the sum of those weights of `wt` that lead to active outputs, over the
    /// rows where `a > 0`.
    fn active_square(&mut self, r: &Self::Rows, a: &Self::Rows, wt: Block<'_>, c: usize) -> f32;

    /// `(r · φ, |φ|²)` with the residual of output 0, `φ = relu(a - ratio b)`.
    fn pair(
        &mut self,
        r: &Self::Rows,
        a: &Self::Rows,
        b: &Self::Rows,
        ratio: f32,
        c: usize,
    ) -> Along;
}

/// Words that hold a bit for each of c outputs.
///
/// ```
/// assert_eq!([1, 32, 33].map(tamis::operator::tables::open_words), [1, 1, 2]);
/// ```
#[must_use]
pub const fn open_words(outputs: usize) -> usize {
    outputs.div_ceil(u32::BITS as usize)
}

impl Tables for Host {
    fn classes(labels: &[u16]) -> usize {
        labels.len()
    }

    fn check_classes(&mut self, labels: &[u16], c: usize) -> Result<()> {
        let last = loss::classes(c).saturating_sub(1);
        labels.iter().try_for_each(|&label| error::range("label", label.into(), 0, last))
    }

    fn cross_entropy(
        &mut self,
        labels: &[u16],
        rows: Range<usize>,
        c: usize,
        out: &mut [f32],
    ) -> Result<f32> {
        loss::cross_entropy(labels.get(rows).unwrap_or(&[]), c, out)
    }

    fn count_right(&mut self, labels: &[u16], rows: Range<usize>, c: usize, out: &[f32]) -> usize {
        let rows = out.chunks(c.max(1)).zip(labels.get(rows).unwrap_or(&[]));
        rows.filter(|(out, label)| loss::class(out) == usize::from(**label)).count()
    }

    fn scale(&mut self, out: &mut [f32], factor: f32) {
        math::scale(factor, out);
    }

    fn divide(&mut self, out: &mut [f32], divisor: f32) {
        out.iter_mut().for_each(|out| *out /= divisor);
    }

    fn project(&mut self, r: &[f32], wt: Block<'_>, c: usize, out: &mut [f32]) {
        for (out, r) in out.iter_mut().zip(r.chunks(c.max(1))) {
            *out = wt.dot(r);
        }
    }

    fn transpose(&mut self, r: &[f32], a: &[f32], out: &mut [f32]) {
        for (a, r) in a.iter().zip(r.chunks(out.len().max(1))) {
            if *a != 0.0 {
                out.iter_mut().zip(r).for_each(|(out, r)| *out += a * r);
            }
        }
    }

    fn transpose_at(&mut self, r: &[f32], a: &[f32], wt: Block<'_>, c: usize, out: &mut [f32]) {
        for (a, r) in a.iter().zip(r.chunks(c.max(1))) {
            for (out, (k, _)) in out.iter_mut().zip(wt.entries()) {
                *out += r.get(k).copied().unwrap_or(0.0) * a;
            }
        }
    }

    fn add_outer(&mut self, a: &[f32], wt: Block<'_>, c: usize, out: &mut [f32]) {
        for (out, a) in out.chunks_mut(c.max(1)).zip(a) {
            add_row(wt, *a, out);
        }
    }

    fn exchange_outer(
        &mut self,
        a: &[f32],
        wt: Block<'_>,
        b: &[f32],
        new: Block<'_>,
        c: usize,
        out: &mut [f32],
    ) {
        for ((out, a), b) in out.chunks_mut(c.max(1)).zip(a).zip(b) {
            for ((k, v), u) in wt.entries().zip(new.values()) {
                if let Some(out) = out.get_mut(k) {
                    *out += a * v - b * u;
                }
            }
        }
    }

    fn sum_active(&mut self, active: &[f32], c: usize, out: &mut [f32]) {
        let active: &[u32] = bytemuck::cast_slice(active);
        for (active, out) in active.chunks(open_words(c).max(1)).zip(out.chunks_mut(c.max(1))) {
            let bits = |k: usize| is_set(active, k);
            let sum = out.iter().enumerate().filter(|&(k, _)| bits(k)).map(|(_, x)| x).sum();
            for (k, x) in out.iter_mut().enumerate() {
                *x = if bits(k) { sum } else { 0.0 };
            }
        }
    }

    fn second_residual(
        &mut self,
        labels: &[f32],
        first: usize,
        scale: f32,
        c: usize,
        out: &mut [f32],
    ) -> f32 {
        let mut total = Sum::default();
        for (out, y) in out.chunks_mut(c.max(1)).zip(Self::labels(labels, first, scale)) {
            let r = subtract(out, y);
            total.add(r * r);
        }
        total.value()
    }

    fn mark_active(&mut self, r: &[f32], c: usize, active: &mut [f32]) {
        let active: &mut [u32] = bytemuck::cast_slice_mut(active);
        let rows = active.chunks_mut(open_words(c).max(1)).zip(r.chunks(c.max(1)));
        for (active, r) in rows {
            for (word, r) in active.iter_mut().zip(r.chunks(u32::BITS as usize)) {
                *word = r.iter().rev().fold(0, |word, r| word << 1 | u32::from(*r != 0.0));
            }
            active.iter_mut().take(1).for_each(|word| *word |= 1);
        }
    }

    fn active_shares(&mut self, r: &[f32], out: &mut [f32]) {
        let c = out.len().max(1);
        out.fill(0.0);
        let row = 1.0 / (r.len() / c).max(1) as f32;
        for r in r.chunks(c) {
            for (k, out) in out.iter_mut().enumerate() {
                *out += if is_active(r, k) { row } else { 0.0 };
            }
        }
    }

    fn transpose_active(&mut self, r: &[f32], a: &[f32], out: &mut [f32], norms: &mut [f32]) {
        out.fill(0.0);
        norms.fill(0.0);
        let rows = a.iter().zip(r.chunks(out.len().max(1)));
        for (a, r) in rows.filter(|(a, _)| **a != 0.0) {
            for (k, ((out, norm), r)) in out.iter_mut().zip(&mut *norms).zip(r).enumerate() {
                *out += a * r;
                *norm += if k == 0 || *r != 0.0 { a * a } else { 0.0 };
            }
        }
    }

    fn active_norms(
        &mut self,
        r: &[f32],
        a: &[f32],
        wt: Block<'_>,
        c: usize,
        whole: f32,
        out: &mut [f32],
    ) {
        for (out, (k, _)) in out.iter_mut().zip(wt.entries()) {
            let rows = a.iter().zip(r.chunks(c.max(1))).filter(|(_, r)| is_active(r, k));
            *out = if k == 0 { whole } else { rows.map(|(a, _)| a * a).sum() };
        }
    }

    fn active_square(&mut self, r: &[f32], a: &[f32], wt: Block<'_>, c: usize) -> f32 {
        let (mut total, mut rows) = (0.0, 0_usize);
        for (_, r) in a.iter().zip(r.chunks(c.max(1))).filter(|(a, _)| **a > 0.0) {
            let sum: f32 = wt.entries().filter(|&(k, _)| is_active(r, k)).map(|(_, v)| v).sum();
            total += sum * sum;
            rows += 1;
        }
        total / rows.max(1) as f32
    }

    fn pair(&mut self, r: &[f32], a: &[f32], b: &[f32], ratio: f32, c: usize) -> Along {
        let mut along = Along::default();
        for ((a, b), r) in a.iter().zip(b).zip(r.chunks(c.max(1))) {
            let phi = (a - ratio * b).max(0.0);
            along.product += r.first().copied().unwrap_or(0.0) * phi;
            along.norm2 += phi * phi;
        }
        along
    }
}

/// Puts the residual of one row, `y` minus the sum of its active outputs, in their places.
fn subtract(out: &mut [f32], y: f32) -> f32 {
    let Some((first, others)) = out.split_first_mut() else { return y };
    let mut r = y - *first;
    for z in &*others {
        r -= z.max(0.0);
    }
    *first = r;
    // An active output is told by a residual that is not 0, so one of 0 becomes the least there is.
    let active = if r == 0.0 { f32::MIN_POSITIVE } else { r };
    for z in others {
        *z = if *z > 0.0 { active } else { 0.0 };
    }
    r
}

/// Whether output k is active in a row of residuals.
fn is_active(r: &[f32], k: usize) -> bool {
    k == 0 || r.get(k).is_some_and(|r| *r != 0.0)
}

/// `out += a wt` for one row.
#[inline]
pub(crate) fn add_row(wt: Block<'_>, a: f32, out: &mut [f32]) {
    for (k, value) in wt.entries() {
        if let Some(out) = out.get_mut(k) {
            *out += value * a;
        }
    }
}
