//! Tables of several numbers a row: outputs, residuals and labels of networks with several outputs.
//!
//! A table is a row vector of n·c numbers, row by row.

use crate::base::bits::is_set;
use crate::base::error::{self, Result};
use crate::base::math;
use crate::network::weights::Block;
use crate::operator::loss;
use crate::operator::machine::{Along, Host, Machine};
use core::ops::Range;
use core::slice::Chunks;

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
    fn project(
        &mut self,
        r: Residual<'_, Self::Rows>,
        wt: Block<'_>,
        c: usize,
        out: &mut Self::Rows,
    );

    /// `out += Rᵀ a`, length c.
    fn transpose(&mut self, r: Residual<'_, Self::Rows>, a: &Self::Rows, out: &mut [f32]);

    /// `out += Rᵀ a` at the outputs that `wt` leads to.
    fn transpose_at(
        &mut self,
        r: Residual<'_, Self::Rows>,
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

    /// Adds output k, of numbers z, to a sum of outputs ([`Residual::Open`]): marks it where it is open,
    /// which is where `z > 0`, output 0 everywhere, and there `out += z`.
    fn add_output(
        &mut self,
        z: &Self::Rows,
        k: usize,
        c: usize,
        open: &mut Self::Rows,
        out: &mut Self::Rows,
    );

    /// `out += a b`, b being the sum of those weights of `wt` that lead to open outputs.
    fn add_open(
        &mut self,
        a: &Self::Rows,
        wt: Block<'_>,
        open: &Self::Rows,
        c: usize,
        out: &mut Self::Rows,
    );

    /// `out` = the fraction of the rows where each output is open, length c.
    fn open_shares(&mut self, open: &Self::Rows, out: &mut [f32]);

    /// `out = Rᵀ a` of the residual r where outputs are open, and `norms = sum a²` over the rows where
    /// each is, both of length c.
    fn transpose_open(
        &mut self,
        r: &Self::Rows,
        open: &Self::Rows,
        a: &Self::Rows,
        out: &mut [f32],
        norms: &mut [f32],
    );

    /// `out = sum a²` over the rows where an output is open, for each that `wt` leads to; `whole`,
    /// the sum over all rows, for output 0.
    fn open_norms(
        &mut self,
        open: &Self::Rows,
        a: &Self::Rows,
        wt: Block<'_>,
        c: usize,
        whole: f32,
        out: &mut [f32],
    );

    /// The mean square of the sum of those weights of `wt` that lead to open outputs, over the rows
    /// where `a > 0`.
    fn open_square(&mut self, open: &Self::Rows, a: &Self::Rows, wt: Block<'_>, c: usize) -> f32;

    /// `(r · φ, |φ|²)`, `φ = relu(a - ratio b)`.
    fn pair(&mut self, r: &Self::Rows, a: &Self::Rows, b: &Self::Rows, ratio: f32) -> Along;
}

/// Residuals R of n rows and c outputs.
#[derive(Debug)]
pub enum Residual<'r, R: ?Sized> {
    /// A number for every row and output: a table.
    Each(&'r R),
    /// Of a sum of outputs, one number a row: that of each of its open outputs, and 0 of the others.
    Open {
        /// n numbers.
        r: &'r R,
        /// The [`open_words`] of each row; bit `k % 32` of word `k / 32` says whether output k is
        /// open.
        open: &'r R,
    },
}

impl<R: ?Sized> Clone for Residual<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: ?Sized> Copy for Residual<'_, R> {}

impl<'r, R: ?Sized> Residual<'r, R> {
    /// The same with other vectors in the place of each.
    pub fn map<'t, T: ?Sized>(self, to: impl Fn(&'r R) -> &'t T) -> Residual<'t, T> {
        match self {
            Self::Each(r) => Residual::Each(to(r)),
            Self::Open { r, open } => Residual::Open { r: to(r), open: to(open) },
        }
    }
}

impl<'r> Residual<'r, [f32]> {
    /// Those of row `at`, all 0 where there is no such row.
    pub(super) fn row(self, at: usize, c: usize) -> RowResidual<'r> {
        match self {
            Self::Each(r) => RowResidual::Each(row_of(r, at, c)),
            Self::Open { r, open } => {
                let open = row_of(bytemuck::cast_slice(open), at, open_words(c));
                RowResidual::Open { r: r.get(at).copied().unwrap_or(0.0), open }
            }
        }
    }
}

/// Row `at` of a table of c numbers a row; none where there is no such row.
fn row_of<T>(table: &[T], at: usize, c: usize) -> &[T] {
    let first = at.saturating_mul(c);
    table.get(first..first.saturating_add(c)).unwrap_or(&[])
}

/// The residuals of one row.
#[derive(Debug, Clone, Copy)]
pub(super) enum RowResidual<'r> {
    Each(&'r [f32]),
    Open { r: f32, open: &'r [u32] },
}

impl RowResidual<'_> {
    /// That of output k.
    pub(super) fn at(&self, k: usize) -> f32 {
        match *self {
            Self::Each(r) => r.get(k).copied().unwrap_or(0.0),
            Self::Open { r, open } => {
                if is_set(open, k) {
                    r
                } else {
                    0.0
                }
            }
        }
    }

    /// `R wt`.
    pub(super) fn dot(&self, wt: Block<'_>) -> f32 {
        match *self {
            Self::Each(r) => wt.dot(r),
            Self::Open { r, open } => r * open_sum(wt, open),
        }
    }

    /// `out += a Rᵀ`.
    pub(super) fn add_to(&self, a: f32, out: &mut [f32]) {
        match *self {
            Self::Each(r) => math::axpy(a, r, out),
            Self::Open { r, open } => {
                let open = out.iter_mut().enumerate().filter(|&(k, _)| is_set(open, k));
                open.for_each(|(_, out)| *out += a * r);
            }
        }
    }
}

/// The sum of those weights that lead to open outputs.
fn open_sum(wt: Block<'_>, open: &[u32]) -> f32 {
    wt.entries().filter(|&(k, _)| is_set(open, k)).map(|(_, v)| v).sum()
}

/// The bits of each row.
fn rows_of(open: &[f32], c: usize) -> Chunks<'_, u32> {
    bytemuck::cast_slice(open).chunks(open_words(c).max(1))
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

    fn project(&mut self, r: Residual<'_, [f32]>, wt: Block<'_>, c: usize, out: &mut [f32]) {
        for (at, out) in out.iter_mut().enumerate() {
            *out = r.row(at, c).dot(wt);
        }
    }

    fn transpose(&mut self, r: Residual<'_, [f32]>, a: &[f32], out: &mut [f32]) {
        for (at, a) in a.iter().enumerate().filter(|(_, a)| **a != 0.0) {
            r.row(at, out.len()).add_to(*a, out);
        }
    }

    fn transpose_at(
        &mut self,
        r: Residual<'_, [f32]>,
        a: &[f32],
        wt: Block<'_>,
        c: usize,
        out: &mut [f32],
    ) {
        for (at, a) in a.iter().enumerate() {
            let r = r.row(at, c);
            for (out, (k, _)) in out.iter_mut().zip(wt.entries()) {
                *out += r.at(k) * a;
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

    fn add_output(&mut self, z: &[f32], k: usize, c: usize, open: &mut [f32], out: &mut [f32]) {
        let open: &mut [u32] = bytemuck::cast_slice_mut(open);
        let rows = z.iter().zip(open.chunks_mut(open_words(c).max(1))).zip(out);
        for ((z, open), out) in rows {
            *out += open_output(k, *z, open);
        }
    }

    fn add_open(&mut self, a: &[f32], wt: Block<'_>, open: &[f32], c: usize, out: &mut [f32]) {
        for ((out, a), open) in out.iter_mut().zip(a).zip(rows_of(open, c)) {
            *out += a * open_sum(wt, open);
        }
    }

    fn open_shares(&mut self, open: &[f32], out: &mut [f32]) {
        let open = rows_of(open, out.len());
        let row = 1.0 / open.len().max(1) as f32;
        out.fill(0.0);
        for open in open {
            RowResidual::Open { r: 1.0, open }.add_to(row, out);
        }
    }

    fn transpose_open(
        &mut self,
        r: &[f32],
        open: &[f32],
        a: &[f32],
        out: &mut [f32],
        norms: &mut [f32],
    ) {
        out.fill(0.0);
        norms.fill(0.0);
        let rows = a.iter().zip(r).zip(rows_of(open, out.len()));
        for ((a, r), open) in rows.filter(|((a, _), _)| **a != 0.0) {
            RowResidual::Open { r: *r, open }.add_to(*a, out);
            RowResidual::Open { r: *a, open }.add_to(*a, norms);
        }
    }

    fn open_norms(
        &mut self,
        open: &[f32],
        a: &[f32],
        wt: Block<'_>,
        c: usize,
        whole: f32,
        out: &mut [f32],
    ) {
        for (out, (k, _)) in out.iter_mut().zip(wt.entries()) {
            let rows = a.iter().zip(rows_of(open, c)).filter(|(_, open)| is_set(open, k));
            *out = if k == 0 { whole } else { rows.map(|(a, _)| a * a).sum() };
        }
    }

    fn open_square(&mut self, open: &[f32], a: &[f32], wt: Block<'_>, c: usize) -> f32 {
        let (mut total, mut rows) = (0.0, 0_usize);
        for (_, open) in a.iter().zip(rows_of(open, c)).filter(|(a, _)| **a > 0.0) {
            let sum = open_sum(wt, open);
            total += sum * sum;
            rows += 1;
        }
        total / rows.max(1) as f32
    }

    fn pair(&mut self, r: &[f32], a: &[f32], b: &[f32], ratio: f32) -> Along {
        let mut along = Along::default();
        for ((a, b), r) in a.iter().zip(b).zip(r) {
            let phi = (a - ratio * b).max(0.0);
            along.product += r * phi;
            along.norm2 += phi * phi;
        }
        along
    }
}

/// Marks output k where it is open; what it adds to the sum.
pub(super) fn open_output(k: usize, z: f32, open: &mut [u32]) -> f32 {
    let is_open = k == 0 || z > 0.0;
    if !is_open {
        return 0.0;
    }
    open.iter_mut().skip(k / 32).take(1).for_each(|word| *word |= 1 << (k % 32));
    z
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
