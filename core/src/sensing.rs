//! The network as a linear measurement of its weights: `A = [A_1 … A_m]`, `A_i = diag(gate_i) X` of size n×d.
//!
//! [`Sensing`] is all that the algorithms know of data and machine. Two products per block are required; everything
//! done in bulk has a provided body, which is its specification and the oracle of its tests ([`provided`]). Host and
//! GPU override the bulk operations. Gates are an argument of every call, so an operator holds data and scratch and
//! no state of the optimiser.
//!
//! The first two products *add* to their output, so that a sum over blocks needs no further buffer. n is the number
//! of rows of the current batch, see [`Sensing::select`].

use crate::error::{self, Result};
use crate::gates::Gates;
use crate::math::axpy;
use crate::weights::{Block, Weights, runs};
use core::ops::Range;

/// A measurement operator with m blocks of size n×d.
pub trait Sensing {
    /// What reading the data may fail with.
    type Source: core::fmt::Debug;

    /// Rows of the whole data.
    fn rows(&self) -> usize;

    /// n, rows of the current batch.
    fn samples(&self) -> usize;

    /// d, columns of a block.
    fn inputs(&self) -> usize;

    /// m, blocks.
    fn blocks(&self) -> usize;

    /// Makes `rows` the current batch.
    ///
    /// # Errors
    /// [`error::Error::Range`] if the rows are not all there.
    fn select(&mut self, rows: Range<usize>) -> Result<(), Self::Source>;

    /// `out += A_i w_i`, i the block's neuron; `out` has length n.
    ///
    /// # Errors
    /// A wrong length, or reading the data failed.
    fn apply(&mut self, gates: Gates<'_>, w: Block<'_>, out: &mut [f32]) -> Result<(), Self::Source>;

    /// `out += A_i^T v`; `v` has length n, `out` length d.
    ///
    /// # Errors
    /// A wrong length, or reading the data failed.
    fn adjoint(&mut self, gates: Gates<'_>, i: usize, v: &[f32], out: &mut [f32])
    -> Result<(), Self::Source>;

    /// p, blocks per gradient call that suit this operator; the panel's memory is the caller's.
    fn panel(&self) -> usize {
        1
    }

    /// Floats of scratch that the bulk operations need, for batches of up to `batch` rows.
    fn scratch(&self, batch: usize) -> usize {
        batch + self.inputs()
    }

    /// Says that restricted products with these gates on this support follow: an operator may compute the gates of
    /// the support's neurons once, and use them as long as [`Gates::key`] and the neurons stay the same.
    ///
    /// # Errors
    /// A wrong support, or reading the data failed.
    fn hold(&mut self, gates: Gates<'_>, support: &[u32]) -> Result<(), Self::Source> {
        let _ = (gates, support);
        Ok(())
    }

    /// `out = A w`, length n.
    ///
    /// # Errors
    /// A wrong length, or reading the data failed.
    fn forward(&mut self, gates: Gates<'_>, w: Weights<'_>, out: &mut [f32]) -> Result<(), Self::Source> {
        provided::forward(self, gates, w, out)
    }

    /// `out_i = A_i^T r` for a range of p blocks; `r` has length n, `out` length p·d.
    ///
    /// # Errors
    /// A wrong length, or reading the data failed.
    fn gradient(
        &mut self,
        gates: Gates<'_>,
        r: &[f32],
        blocks: Range<usize>,
        out: &mut [f32],
    ) -> Result<(), Self::Source> {
        provided::gradient(self, gates, r, blocks, out)
    }

    /// `out = A_S^T r` on a support S of s flat indices: n·s work instead of n·m·d; `out` has length s.
    ///
    /// # Errors
    /// A wrong length or support, or reading the data failed.
    fn gradient_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        r: &[f32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Self::Source> {
        provided::gradient_at(self, gates, support, r, out, scratch)
    }

    /// `out = A_S^T A_S p` on the support of `p`, in one pass over the data where overridden; `out` has length s.
    ///
    /// # Errors
    /// A wrong length, or reading the data failed.
    fn normal_at(
        &mut self,
        gates: Gates<'_>,
        p: Weights<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Self::Source> {
        provided::normal_at(self, gates, p, out, scratch)
    }

    /// The diagonal of `A_S^T A_S`, squared norms of the columns of a support; `out` has length s.
    ///
    /// # Errors
    /// A wrong length or support, or reading the data failed.
    fn diagonal_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Self::Source> {
        provided::diagonal_at(self, gates, support, out, scratch)
    }

    /// Squared column norms of a range of p blocks; `out` has length p·d.
    ///
    /// # Errors
    /// A wrong length, or reading the data failed.
    fn column_norms(
        &mut self,
        gates: Gates<'_>,
        blocks: Range<usize>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Self::Source> {
        provided::column_norms(self, gates, blocks, out, scratch)
    }
}

/// Buffers that an algorithm shares with the operator, all the caller's; lengths as [`crate::budget::Training`] says.
#[derive(Debug)]
pub struct Work<'a> {
    /// One float per row of the batch, or of a strip of it.
    pub residual: &'a mut [f32],
    /// A gradient panel, or three vectors on the support.
    pub panel: &'a mut [f32],
    /// Scratch of the operator.
    pub scratch: &'a mut [f32],
    /// The batch, where the residual has not room for all of it; none where it has.
    pub strips: Option<Strips<'a>>,
}

/// A batch that is gone through in strips of rows, as many as the residual has room for: the memory of a step then does not
/// grow with the batch, and each use of the residual computes it again.
#[derive(Debug)]
pub struct Strips<'a> {
    /// The rows of the batch, which is selected before and after.
    pub rows: Range<usize>,
    /// As long as a gradient panel and as the support: what a strip adds to a sum over all of them.
    pub part: &'a mut [f32],
}

/// Selects the strips of `rows` one after the other, `strip` rows each, and calls `body` with the rows of the batch that they are;
/// then the batch again.
pub(crate) fn each_strip<S: Sensing + ?Sized>(
    sensing: &mut S,
    rows: &Range<usize>,
    strip: usize,
    mut body: impl FnMut(&mut S, Range<usize>) -> Result<(), S::Source>,
) -> Result<(), S::Source> {
    for at in (0..rows.len()).step_by(strip.max(1)) {
        let part = at..(at + strip.max(1)).min(rows.len());
        sensing.select(rows.start + part.start..rows.start + part.end)?;
        body(sensing, part)?;
    }
    sensing.select(rows.clone())
}

/// `out` = the sum of what `product` gives for every strip.
pub(crate) fn add_up<S: Sensing + ?Sized>(
    sensing: &mut S,
    (strips, strip): (&mut Strips<'_>, usize),
    out: &mut [f32],
    mut product: impl FnMut(&mut S, Range<usize>, &mut [f32]) -> Result<(), S::Source>,
) -> Result<(), S::Source> {
    let sum = head_mut(strips.part, out.len())?;
    out.fill(0.0);
    each_strip(sensing, &strips.rows, strip, |sensing, part| {
        product(sensing, part, sum)?;
        axpy(1.0, sum, out);
        Ok(())
    })
}

/// The first `len` floats of a buffer, and the rest.
pub(crate) fn carve<S>(buffer: &mut [f32], len: usize) -> Result<(&mut [f32], &mut [f32]), S> {
    let got = buffer.len();
    buffer.split_at_mut_checked(len).ok_or(error::Error::Length { what: "panel", expected: len, got })
}

/// The first `len` elements of a slice.
pub(crate) fn head_mut<T, S>(slice: &mut [T], len: usize) -> Result<&mut [T], S> {
    let got = slice.len();
    slice.get_mut(..len).ok_or(error::Error::Length { what: "support", expected: len, got })
}

/// Calls `body(sensing, first block, panel)` over all blocks, as many at a time as `parts` panels fit the buffer.
pub(crate) fn panels<S: Sensing + ?Sized>(
    sensing: &mut S,
    buffer: &mut [f32],
    parts: usize,
    mut body: impl FnMut(&mut S, usize, &mut [f32]) -> Result<(), S::Source>,
) -> Result<(), S::Source> {
    let (d, m) = (sensing.inputs(), sensing.blocks());
    let room = buffer.len() / (parts * d).max(1);
    if room == 0 {
        return Err(error::Error::Length { what: "panel", expected: parts * d, got: buffer.len() });
    }
    let p = room.min(sensing.panel()).max(1);
    for first in (0..m).step_by(p) {
        let len = parts * d * p.min(m - first);
        body(sensing, first, head_mut(buffer, len)?)?;
    }
    Ok(())
}

/// Calls `use_it(position, |A_j|²)` for every index j of a support in order, neuron by neuron.
pub(crate) fn norms_at<S: Sensing>(
    sensing: &mut S,
    gates: Gates<'_>,
    support: &[u32],
    work: &mut Work<'_>,
    mut use_it: impl FnMut(usize, f32),
) -> Result<(), S::Source> {
    let d = sensing.inputs();
    for (i, run) in runs(d, support) {
        let norms = head_mut(work.panel, d)?;
        let mut of_block =
            |sensing: &mut S, norms: &mut [f32]| sensing.column_norms(gates, i..i + 1, norms, work.scratch);
        match &mut work.strips {
            None => of_block(sensing, norms)?,
            Some(strips) => {
                let strip = (strips, work.residual.len());
                add_up(sensing, strip, norms, |sensing, _, norms| of_block(sensing, norms))?;
            }
        }
        for at in run {
            let Some(&j) = support.get(at) else { continue };
            use_it(at, norms.get((j as usize).wrapping_sub(i * d)).copied().unwrap_or(0.0));
        }
    }
    Ok(())
}

/// The first rows of another operator: a trial on a part of the data costs a part of the time.
#[derive(Debug)]
pub struct First<'a, S: ?Sized> {
    inner: &'a mut S,
    rows: usize,
}

impl<'a, S: Sensing + ?Sized> First<'a, S> {
    /// The first `rows` rows of `inner`, or all of them if there are fewer.
    ///
    /// # Errors
    /// [`error::Error::Range`] if `rows` is 0.
    pub fn new(inner: &'a mut S, rows: usize) -> Result<Self, S::Source> {
        let rows = rows.min(inner.rows());
        inner.select(0..rows)?;
        Ok(Self { inner, rows })
    }
}

impl<S: Sensing + ?Sized> Sensing for First<'_, S> {
    type Source = S::Source;

    fn rows(&self) -> usize {
        self.rows
    }

    fn samples(&self) -> usize {
        self.inner.samples()
    }

    fn inputs(&self) -> usize {
        self.inner.inputs()
    }

    fn blocks(&self) -> usize {
        self.inner.blocks()
    }

    fn select(&mut self, rows: Range<usize>) -> Result<(), Self::Source> {
        error::range("rows of the batch", rows.end, rows.start.saturating_add(1), self.rows)?;
        self.inner.select(rows)
    }

    fn apply(&mut self, gates: Gates<'_>, w: Block<'_>, out: &mut [f32]) -> Result<(), Self::Source> {
        self.inner.apply(gates, w, out)
    }

    fn adjoint(
        &mut self,
        gates: Gates<'_>,
        i: usize,
        v: &[f32],
        out: &mut [f32],
    ) -> Result<(), Self::Source> {
        self.inner.adjoint(gates, i, v, out)
    }

    fn panel(&self) -> usize {
        self.inner.panel()
    }

    fn scratch(&self, batch: usize) -> usize {
        self.inner.scratch(batch)
    }

    fn hold(&mut self, gates: Gates<'_>, support: &[u32]) -> Result<(), Self::Source> {
        self.inner.hold(gates, support)
    }

    fn forward(&mut self, gates: Gates<'_>, w: Weights<'_>, out: &mut [f32]) -> Result<(), Self::Source> {
        self.inner.forward(gates, w, out)
    }

    fn gradient(
        &mut self,
        gates: Gates<'_>,
        r: &[f32],
        blocks: Range<usize>,
        out: &mut [f32],
    ) -> Result<(), Self::Source> {
        self.inner.gradient(gates, r, blocks, out)
    }

    fn gradient_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        r: &[f32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Self::Source> {
        self.inner.gradient_at(gates, support, r, out, scratch)
    }

    fn normal_at(
        &mut self,
        gates: Gates<'_>,
        p: Weights<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Self::Source> {
        self.inner.normal_at(gates, p, out, scratch)
    }

    fn diagonal_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Self::Source> {
        self.inner.diagonal_at(gates, support, out, scratch)
    }

    fn column_norms(
        &mut self,
        gates: Gates<'_>,
        blocks: Range<usize>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Self::Source> {
        self.inner.column_norms(gates, blocks, out, scratch)
    }
}

/// The provided bodies of [`Sensing`], as functions, so that an override can be compared with them.
pub mod provided {
    use super::{Block, Gates, Range, Result, Sensing, Weights, error, runs};

    /// [`Sensing::forward`], block by block.
    ///
    /// # Errors
    /// As the trait's.
    pub fn forward<S: Sensing + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        w: Weights<'_>,
        out: &mut [f32],
    ) -> Result<(), S::Source> {
        error::length("forward output", out.len(), sensing.samples())?;
        out.fill(0.0);
        w.blocks().try_for_each(|block| sensing.apply(gates, block, out))
    }

    /// [`Sensing::gradient`], block by block.
    ///
    /// # Errors
    /// As the trait's.
    pub fn gradient<S: Sensing + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        r: &[f32],
        blocks: Range<usize>,
        out: &mut [f32],
    ) -> Result<(), S::Source> {
        let d = sensing.inputs();
        error::length("gradient panel", out.len(), blocks.len().saturating_mul(d))?;
        out.fill(0.0);
        for (i, out) in blocks.zip(out.chunks_mut(d.max(1))) {
            sensing.adjoint(gates, i, r, out)?;
        }
        Ok(())
    }

    /// [`Sensing::gradient_at`]: whole blocks, of which the support is kept. Scratch: d.
    ///
    /// # Errors
    /// As the trait's.
    pub fn gradient_at<S: Sensing + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        support: &[u32],
        r: &[f32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), S::Source> {
        let d = sensing.inputs();
        error::length("restricted gradient", out.len(), support.len())?;
        let block = part(scratch, d)?;
        for (i, run) in runs(d, support) {
            block.fill(0.0);
            sensing.adjoint(gates, i, r, block)?;
            let picks = support.get(run.clone()).unwrap_or(&[]);
            for (out, &j) in out.get_mut(run).unwrap_or(&mut []).iter_mut().zip(picks) {
                *out = block.get((j as usize).wrapping_sub(i * d)).copied().unwrap_or(0.0);
            }
        }
        Ok(())
    }

    /// [`Sensing::normal_at`]: forward, then the restricted gradient. Scratch: n + d.
    ///
    /// # Errors
    /// As the trait's.
    pub fn normal_at<S: Sensing + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        p: Weights<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), S::Source> {
        let n = sensing.samples();
        let needed = n + sensing.inputs();
        let (image, rest) = part(scratch, needed)?.split_at_mut(n);
        sensing.forward(gates, p, image)?;
        sensing.gradient_at(gates, p.index(), image, out, rest)
    }

    /// [`Sensing::diagonal_at`]: one unit vector after the other. Scratch: n.
    ///
    /// # Errors
    /// As the trait's.
    pub fn diagonal_at<S: Sensing + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        support: &[u32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), S::Source> {
        let (n, d) = (sensing.samples(), sensing.inputs());
        error::length("diagonal", out.len(), support.len())?;
        let image = part(scratch, n)?;
        for (i, run) in runs(d, support) {
            let picks = support.get(run.clone()).unwrap_or(&[]);
            for (out, &j) in out.get_mut(run).unwrap_or(&mut []).iter_mut().zip(picks) {
                image.fill(0.0);
                sensing.apply(gates, Block::unit(i, d, &[j]), image)?;
                *out = image.iter().fold(0.0, |sum, x| sum + x * x);
            }
        }
        Ok(())
    }

    /// [`Sensing::column_norms`]: one unit vector after the other. Scratch: n.
    ///
    /// # Errors
    /// As the trait's.
    pub fn column_norms<S: Sensing + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        blocks: Range<usize>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), S::Source> {
        let (n, d) = (sensing.samples(), sensing.inputs());
        error::range("block", blocks.end, blocks.start, sensing.blocks())?;
        error::length("column norms", out.len(), blocks.len().saturating_mul(d))?;
        let image = part(scratch, n)?;
        for (i, out) in blocks.zip(out.chunks_mut(d.max(1))) {
            for (j, out) in out.iter_mut().enumerate() {
                image.fill(0.0);
                sensing.apply(gates, Block::unit(i, d, &[(i * d + j) as u32]), image)?;
                *out = image.iter().fold(0.0, |sum, x| sum + x * x);
            }
        }
        Ok(())
    }

    /// The first `len` floats of a scratch buffer.
    fn part<S>(scratch: &mut [f32], len: usize) -> Result<&mut [f32], S> {
        let got = scratch.len();
        scratch.get_mut(..len).ok_or(error::Error::Length { what: "scratch", expected: len, got })
    }
}
