//! The network as a linear measurement of its weights: `A = [A_1 … A_m]`, `A_i = diag(gate_i) X` of
//! size n×d.
//!
//! [`Sensing`] is all that the algorithms know of data and machine. Two products per block are
//! required, which *add* to their output; everything done in bulk has a provided body, which is its
//! specification and the oracle of its tests ([`provided`]). An operator holds data and scratch and
//! no state of the optimiser. n is the number of local rows of the current batch, see
//! [`Sensing::select`].

use crate::base::error::{self, Result};
use crate::base::math::axpy;
use crate::network::gates::Gates;
use crate::network::score::{GradientStep, Panel, Score as _};
use crate::network::top::Top;
use crate::network::weights::{Block, Weights, runs};
use crate::operator::machine::{Host, Machine};
use crate::operator::solve::{Equations, Solved, Unknowns};
use core::ops::Range;

/// The row vectors of an operator.
pub type Rows<S> = <<S as Sensing>::Machine as Machine>::Rows;

/// What an operation returns that writes its result to an argument.
pub type Done<S> = Result<(), <S as Sensing>::Source>;

/// A measurement operator with m blocks of size n×d.
///
/// Its rows may be spread over processes, each with an operator of its own: products are local, and
/// an algorithm adds up what it has of all local rows by one [`Self::sum`]. Such an operator
/// overrides [`Self::local`], [`Self::batch_rows`] and [`Self::sum`] together. Steps of hard
/// thresholding ([`crate::learn::iht`]) and searches with one output ([`crate::learn::lm`]) run on
/// it; what does not asks for the labels of all rows, and refuses fewer.
///
/// # Errors
/// Of every operation: [`error::Error::Length`], [`error::Error::Range`] or
/// [`error::Error::Unsorted`] for what does not fit, [`error::Error::Source`] if reading the data
/// or reaching other processes fails.
#[allow(clippy::missing_errors_doc, reason = "those of the trait")]
pub trait Sensing {
    /// What reading the data may fail with.
    type Source: core::fmt::Debug;

    /// What holds row vectors: [`Host`] where they are slices of floats.
    type Machine: Machine;

    /// What holds row vectors.
    fn machine(&mut self) -> &mut Self::Machine;

    /// Rows of the whole data.
    fn rows(&self) -> usize;

    /// n, rows of the current batch that are held here: the length of row vectors.
    fn local_rows(&self) -> usize;

    /// Rows of the current batch, wherever they are held: what means are taken over.
    fn batch_rows(&self) -> usize {
        self.local_rows()
    }

    /// Maps a range of rows of the whole data to the range of those held here: it is
    /// [`Self::local_rows`] long once these rows are selected, may be empty, and rises with them.
    /// Held rows keep the order of the data; labels are those of held rows.
    fn local(&self, rows: Range<usize>) -> Range<usize> {
        rows
    }

    /// Adds up what every process has of its local rows; nothing where all rows are here. Called
    /// after all strips of a sum, never within another operation.
    fn sum(&mut self, _numbers: &mut [f32]) -> Done<Self> {
        Ok(())
    }

    /// d, columns of a block.
    fn inputs(&self) -> usize;

    /// m, blocks.
    fn blocks(&self) -> usize;

    /// Makes `rows` the current batch.
    ///
    /// # Errors
    /// [`error::Error::Range`] if the rows are not all there.
    fn select(&mut self, rows: Range<usize>) -> Done<Self>;

    /// `out += A_i w_i`, i the block's neuron; `out` has length n.
    fn apply(&mut self, gates: Gates<'_>, w: Block<'_>, out: &mut Rows<Self>) -> Done<Self>;

    /// `out += A_i^T v`; `v` has length n, `out` length d.
    fn adjoint(
        &mut self,
        gates: Gates<'_>,
        i: usize,
        v: &Rows<Self>,
        out: &mut [f32],
    ) -> Done<Self>;

    /// p, blocks per gradient call that suit this operator; the panel's memory is the caller's.
    fn panel(&self) -> usize {
        1
    }

    /// Floats of scratch that the bulk operations need, for batches of up to `batch` rows.
    fn scratch(&self, batch: usize) -> usize {
        provided::scratch(batch, self.inputs())
    }

    /// Whether any product needs [`Self::scratch`], or that of networks with output weights, under gates of
    /// weights. Where not, it is for restricted products under random gates alone: [`Self::apply`],
    /// [`Self::adjoint`], [`Self::gradient`] and [`Self::column_norms`] then need none.
    fn always_needs_scratch(&self) -> bool {
        true
    }

    /// The same gates, for restricted products on this support: an operator may compute those of
    /// the support's neurons once and mark what it returns ([`Gates::held`]). Marked gates give
    /// what unmarked ones do, after another batch or other held gates too.
    fn hold<'g>(&mut self, gates: Gates<'g>, _support: &[u32]) -> Result<Gates<'g>, Self::Source> {
        Ok(gates)
    }

    /// [`Self::hold`] of the same gates, closed on rows where r is 0: restricted products are those of the
    /// other rows, on this batch and until gates are held again. None where this operator cannot.
    fn hold_where<'g>(
        &mut self,
        _gates: Gates<'g>,
        _support: &[u32],
        _r: &Rows<Self>,
    ) -> Result<Option<Gates<'g>>, Self::Source> {
        Ok(None)
    }

    /// `out = A w`, length n.
    fn forward(&mut self, gates: Gates<'_>, w: Weights<'_>, out: &mut Rows<Self>) -> Done<Self> {
        provided::forward(self, gates, w, out)
    }

    /// `out_i = A_i^T r` for a range of p blocks; `r` has length n, `out` length p·d.
    fn gradient(
        &mut self,
        gates: Gates<'_>,
        r: &Rows<Self>,
        blocks: Range<usize>,
        out: &mut [f32],
    ) -> Done<Self> {
        provided::gradient(self, gates, r, blocks, out)
    }

    /// Offers the entries of `w + eta A_i^T r` for the p blocks of a panel to a selection: all of
    /// them, or those at least that are the largest, as many as it can take. `memory` has length
    /// p·d. It adds up over processes itself.
    fn offer_step(
        &mut self,
        gates: Gates<'_>,
        r: &Rows<Self>,
        of: &Stepped<'_>,
        memory: &mut [f32],
        top: &mut Top<'_>,
    ) -> Done<Self> {
        provided::offer_step(self, gates, r, of, memory, top)
    }

    /// `out = A_S^T r` on a support S of s flat indices: n·s work instead of n·m·d; `out` has
    /// length s.
    fn gradient_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        r: &Rows<Self>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<Self> {
        provided::gradient_at(self, gates, support, r, out, scratch)
    }

    /// `out = A_S^T A_S p` on the support of `p`, in one pass over the data where overridden; `out`
    /// has length s.
    fn normal_at(
        &mut self,
        gates: Gates<'_>,
        p: Weights<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<Self> {
        provided::normal_at(self, gates, p, out, scratch)
    }

    /// Solves damped normal equations on a support by conjugate gradients: all products of a solve
    /// in one call. The one operation that adds up over processes itself, after each product.
    fn solve_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        equations: Equations<'_>,
        unknowns: Unknowns<'_>,
        scratch: &mut [f32],
    ) -> Result<Solved, Self::Source> {
        provided::solve_at(self, gates, support, equations, unknowns, scratch)
    }

    /// The diagonal of `A_S^T A_S`, squared norms of the columns of a support; `out` has length s.
    fn diagonal_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<Self> {
        provided::diagonal_at(self, gates, support, out, scratch)
    }

    /// Squared column norms of a range of p blocks; `out` has length p·d.
    fn column_norms(
        &mut self,
        gates: Gates<'_>,
        blocks: Range<usize>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<Self> {
        provided::column_norms(self, gates, blocks, out, scratch)
    }
}

/// Some blocks of weights after a gradient step.
#[derive(Debug, Clone)]
pub struct Stepped<'a> {
    /// The blocks, and the weights before the step.
    pub panel: Panel<'a>,
    /// The step.
    pub step: GradientStep,
}

impl Stepped<'_> {
    /// Offers all entries, given the gradient of the panel, which they take the place of.
    pub(crate) fn offer(&self, gradient: &mut [f32], top: &mut Top<'_>) {
        self.step.panel(&self.panel, gradient);
        top.offer(self.panel.first(), gradient);
    }
}

/// An operator whose row vectors are slices of floats.
pub trait HostSensing: Sensing<Machine = Host> {}

impl<S: Sensing<Machine = Host> + ?Sized> HostSensing for S {}

/// Buffers that an algorithm shares with the operator, all the caller's; lengths as
/// [`crate::base::budget::Training`] says.
#[derive(Debug)]
pub struct Work<'a, R: ?Sized = [f32]> {
    /// One number per row of the batch, or of a strip of it.
    pub residual: &'a mut R,
    /// A gradient panel, or three vectors on the support.
    pub panel: &'a mut [f32],
    /// Scratch of the operator.
    pub scratch: &'a mut [f32],
    /// The batch, where the residual has not room for all of it; none where it has.
    pub strips: Option<Strips<'a>>,
}

/// A batch that is gone through in strips of rows, as many as the residual has room for: the memory
/// of a step then does not grow with the batch, and each use of the residual computes it again.
#[derive(Debug)]
pub struct Strips<'a> {
    /// The rows of the batch, which is selected before and after.
    pub rows: Range<usize>,
    /// As long as a gradient panel and as the support: what a strip adds to a sum over all of them.
    pub part: &'a mut [f32],
}

/// Selects the strips of `rows` one after the other, `strip` rows each, and calls `body` with the
/// local rows of the batch that they are; then the batch again.
pub(crate) fn each_strip<S: Sensing + ?Sized>(
    sensing: &mut S,
    rows: &Range<usize>,
    strip: usize,
    mut body: impl FnMut(&mut S, Range<usize>) -> Done<S>,
) -> Done<S> {
    let first = sensing.local(rows.clone()).start;
    for at in rows.clone().step_by(strip.max(1)) {
        let part = at..(at + strip.max(1)).min(rows.end);
        sensing.select(part.clone())?;
        let local = sensing.local(part);
        body(sensing, local.start - first..local.end - first)?;
    }
    sensing.select(rows.clone())
}

/// `out` = the sum of what `product` gives for every strip.
pub(crate) fn add_up<S: Sensing + ?Sized>(
    sensing: &mut S,
    strips: &mut Strips<'_>,
    strip: usize,
    out: &mut [f32],
    mut product: impl FnMut(&mut S, Range<usize>, &mut [f32]) -> Done<S>,
) -> Done<S> {
    let sum = head_mut(strips.part, out.len())?;
    out.fill(0.0);
    each_strip(sensing, &strips.rows, strip, |sensing, part| {
        product(sensing, part, sum)?;
        axpy(1.0, sum, out);
        Ok(())
    })
}

/// The first `len` floats of a buffer, and the rest.
pub(crate) fn carve<'a, S>(
    what: &'static str,
    buffer: &'a mut [f32],
    len: usize,
) -> Result<(&'a mut [f32], &'a mut [f32]), S> {
    let got = buffer.len();
    buffer.split_at_mut_checked(len).ok_or(error::Error::Length { what, expected: len, got })
}

/// The first `len` elements of a slice.
pub(crate) fn head_mut<T, S>(slice: &mut [T], len: usize) -> Result<&mut [T], S> {
    let got = slice.len();
    slice.get_mut(..len).ok_or(error::Error::Length { what: "support", expected: len, got })
}

/// The first `len` rows of a vector.
pub(crate) fn row_head<S: Sensing + ?Sized>(
    rows: &mut Rows<S>,
    len: usize,
) -> Result<&mut Rows<S>, S::Source> {
    let got = S::Machine::len(rows);
    S::Machine::head_mut(rows, len).ok_or(error::Error::Length { what: "rows", expected: len, got })
}

/// The provided bodies of [`Sensing`], as functions, so that an override can be compared with them.
#[allow(clippy::missing_errors_doc, reason = "those of the trait's methods")]
pub mod provided {
    use super::{
        Block, Done, Equations, Gates, Machine, Range, Result, Rows, Sensing, Solved, Stepped, Top,
        Unknowns, Weights, carve, error, runs,
    };
    use crate::operator::solve::conjugate_gradients;

    /// [`Sensing::scratch`]: a vector over the batch and one over the inputs.
    #[must_use]
    pub const fn scratch(batch: usize, inputs: usize) -> usize {
        batch.saturating_add(inputs)
    }

    /// [`Sensing::forward`], block by block.
    pub fn forward<S: Sensing + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        w: Weights<'_>,
        out: &mut Rows<S>,
    ) -> Done<S> {
        error::length("forward output", S::Machine::len(out), sensing.local_rows())?;
        sensing.machine().fill(out, 0.0);
        w.blocks().try_for_each(|block| sensing.apply(gates, block, out))
    }

    /// [`Sensing::gradient`], block by block.
    pub fn gradient<S: Sensing + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        r: &Rows<S>,
        blocks: Range<usize>,
        out: &mut [f32],
    ) -> Done<S> {
        let d = sensing.inputs();
        error::length("gradient panel", out.len(), blocks.len().saturating_mul(d))?;
        out.fill(0.0);
        for (i, out) in blocks.zip(out.chunks_mut(d.max(1))) {
            sensing.adjoint(gates, i, r, out)?;
        }
        Ok(())
    }

    /// [`Sensing::offer_step`]: all entries, by way of [`Sensing::gradient`].
    pub fn offer_step<S: Sensing + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        r: &Rows<S>,
        of: &Stepped<'_>,
        memory: &mut [f32],
        top: &mut Top<'_>,
    ) -> Done<S> {
        sensing.gradient(gates, r, of.panel.blocks.clone(), memory)?;
        sensing.sum(memory)?;
        of.offer(memory, top);
        Ok(())
    }

    /// [`Sensing::gradient_at`]: whole blocks, of which the support is kept. Scratch: d.
    pub fn gradient_at<S: Sensing + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        support: &[u32],
        r: &Rows<S>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<S> {
        let d = sensing.inputs();
        error::length("restricted gradient", out.len(), support.len())?;
        let (block, _) = carve("scratch", scratch, d)?;
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
    pub fn normal_at<S: Sensing + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        p: Weights<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<S> {
        let n = sensing.local_rows();
        let (both, _) = carve("scratch", scratch, n + sensing.inputs())?;
        let (image, rest) = both.split_at_mut(n);
        let image = sensing.machine().rows_in(image);
        sensing.forward(gates, p, image)?;
        sensing.gradient_at(gates, p.index(), image, out, rest)
    }

    /// [`Sensing::solve_at`], product by product. Not inlined, so that what it holds is on the stack
    /// in its own call only.
    #[inline(never)]
    pub fn solve_at<S: Sensing + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        support: &[u32],
        equations: Equations<'_>,
        unknowns: Unknowns<'_>,
        scratch: &mut [f32],
    ) -> Result<Solved, S::Source> {
        let (d, m) = (sensing.inputs(), sensing.blocks());
        conjugate_gradients(equations, unknowns, |p, h| {
            let p = Weights::new(d, m, support, p).map_err(error::Error::widen)?;
            sensing.normal_at(gates, p, h, scratch)?;
            sensing.sum(h)
        })
    }

    /// [`Sensing::diagonal_at`]: one unit vector after the other. Scratch: n.
    pub fn diagonal_at<S: Sensing + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        support: &[u32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<S> {
        let (n, d) = (sensing.local_rows(), sensing.inputs());
        error::length("diagonal", out.len(), support.len())?;
        let image = sensing.machine().rows_in(carve("scratch", scratch, n)?.0);
        for (i, run) in runs(d, support) {
            let picks = support.get(run.clone()).unwrap_or(&[]);
            for (out, &j) in out.get_mut(run).unwrap_or(&mut []).iter_mut().zip(picks) {
                sensing.machine().fill(image, 0.0);
                sensing.apply(gates, Block::unit(i, d, &[j]), image)?;
                *out = sensing.machine().squares(image);
            }
        }
        Ok(())
    }

    /// [`Sensing::column_norms`]: one unit vector after the other. Scratch: n.
    pub fn column_norms<S: Sensing + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        blocks: Range<usize>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<S> {
        let (n, d) = (sensing.local_rows(), sensing.inputs());
        error::range("block", blocks.end, blocks.start, sensing.blocks())?;
        error::length("column norms", out.len(), blocks.len().saturating_mul(d))?;
        let image = sensing.machine().rows_in(carve("scratch", scratch, n)?.0);
        for (i, out) in blocks.zip(out.chunks_mut(d.max(1))) {
            for (j, out) in out.iter_mut().enumerate() {
                sensing.machine().fill(image, 0.0);
                sensing.apply(gates, Block::unit(i, d, &[(i * d + j) as u32]), image)?;
                *out = sensing.machine().squares(image);
            }
        }
        Ok(())
    }
}
