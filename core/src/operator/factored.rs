//! Products of the network with c outputs, `Yhat = sum_i (A_i w_i) wt_i^T`, built on the primitives
//! of [`Sensing`].
//!
//! Outputs and residuals are n×c, row by row. With a residual R, descending the loss means adding
//!
//! ```text
//! to w_i   A_i^T (R wt_i)      an n-vector first, never a d×c product
//! to wt_i  R^T (A_i w_i)
//! ```
//!
//! which is all that cross-entropy and least squares with several outputs need of the data. The
//! full gradient *adds* to its output, so that a sum over batches needs no further buffer.

use crate::base::error::{self, Result};
use crate::network::gates::Gates;
use crate::network::net::Network;
use crate::operator::machine::Host;
use crate::operator::sensing::{Done, Sensing};
use core::ops::Range;

/// Room for a gradient by both sides: whole blocks, or a number for each nonzero.
#[derive(Debug)]
pub struct GradientMut<'a> {
    /// By W.
    pub w: &'a mut [f32],
    /// By Wt.
    pub wt: &'a mut [f32],
}

impl<'a> GradientMut<'a> {
    /// Splits a buffer into `first` numbers of W and those of Wt; both empty if it is too short.
    pub fn split(buffer: &'a mut [f32], first: usize) -> Self {
        let (w, wt) = buffer.split_at_mut_checked(first).unwrap_or_default();
        Self { w, wt }
    }

    /// Checks that it has room for these blocks.
    ///
    /// # Errors
    /// [`error::Error::Range`] for blocks that `net` does not have, [`error::Error::Length`] for
    /// other lengths.
    pub fn check_panel(&self, net: Network<'_>, blocks: &Range<usize>) -> Result<()> {
        let (w, count) = (net.w(), blocks.len());
        error::range("block", blocks.end, blocks.start, w.hidden())?;
        error::length("gradient panel", self.w.len(), count.saturating_mul(w.inputs()))?;
        let outputs = count.saturating_mul(net.outputs());
        error::length("gradient panel of the outputs", self.wt.len(), outputs)
    }

    /// Checks that it has room for a number for each nonzero.
    ///
    /// # Errors
    /// [`error::Error::Length`] for other lengths.
    pub fn check_support(&self, net: Network<'_>) -> Result<()> {
        error::length("restricted gradient", self.w.len(), net.w().nnz())?;
        error::length("restricted gradient of the outputs", self.wt.len(), net.wt().nnz())
    }

    pub(crate) fn reborrow(&mut self) -> GradientMut<'_> {
        GradientMut { w: self.w, wt: self.wt }
    }
}

/// A network and a direction on its support.
#[derive(Debug, Clone, Copy)]
pub struct Tangent<'a> {
    /// The network.
    pub net: Network<'a>,
    /// The direction, whose support is that of `net`.
    pub p: Network<'a>,
}

/// Products with networks of several outputs; everything has a provided body.
///
/// n is the number of local rows of the current batch, c that of the outputs. Row vectors are those
/// of the [`Host`].
///
/// # Errors
/// As those of [`Sensing`].
#[allow(clippy::missing_errors_doc, reason = "those of the trait")]
pub trait Factored: Sensing<Machine = Host> {
    /// Floats of scratch that these operations need, for batches of up to `batch` rows.
    fn net_scratch(&self, batch: usize) -> usize {
        provided::scratch(batch, self.inputs())
    }

    /// `out = sum_i (A_i w_i) wt_i^T`, n×c.
    fn net_forward(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<Self> {
        provided::forward(self, gates, net, out, scratch)
    }

    /// `out.w_i += A_i^T (R wt_i)` and `out.wt_i += R^T (A_i w_i)` for a range of p blocks: the
    /// full gradient, to be streamed panel by panel. `r` is n×c, `out.w` has length p·d, `out.wt`
    /// p·c.
    fn net_gradient(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        r: &[f32],
        blocks: Range<usize>,
        out: GradientMut<'_>,
        scratch: &mut [f32],
    ) -> Done<Self> {
        provided::gradient(self, gates, net, r, blocks, out, scratch)
    }

    /// `out` = that gradient on the network's own nonzeros only, n·s work: one entry per
    /// nonzero of W and of Wt.
    fn net_gradient_at(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        r: &[f32],
        out: GradientMut<'_>,
        scratch: &mut [f32],
    ) -> Done<Self> {
        provided::gradient_at(self, gates, net, r, out, scratch)
    }

    /// `out = J p`, n×c, J being the derivative of the outputs along the network's own nonzeros
    /// under fixed gates, `J p = sum_i (A_i p_i) wt_i^T + (A_i w_i) pt_i^T`; `p` has the network's
    /// support.
    fn net_along(
        &mut self,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<Self> {
        provided::along(self, gates, tangent, out, scratch)
    }

    /// `out = J^T J p`, J as in [`Self::net_along`]; `p` has the network's support, `image`
    /// is n×c of room.
    fn net_normal_at(
        &mut self,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        out: GradientMut<'_>,
        image: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<Self> {
        provided::normal_at(self, gates, tangent, out, image, scratch)
    }

    /// `out = J^T J p` of a network whose outputs are summed up where they are open: a row
    /// of J is the sum of those rows of the J of [`Self::net_along`]. Bit `k % 32` of word `k / 32`
    /// of the [`open_words`] of a row in `open` says whether output k is open there; `image` is n×c
    /// of room.
    fn net_sum_normal_at(
        &mut self,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        open: &[u32],
        out: GradientMut<'_>,
        image: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<Self> {
        provided::sum_normal_at(self, gates, tangent, open, out, image, scratch)
    }
}

/// Words that hold a bit for each of c outputs.
///
/// ```
/// assert_eq!([1, 32, 33].map(tamis::operator::factored::open_words), [1, 1, 2]);
/// ```
#[must_use]
pub const fn open_words(outputs: usize) -> usize {
    outputs.div_ceil(u32::BITS as usize)
}

/// The provided bodies of [`Factored`], as functions, so that an override can be compared with
/// them.
#[allow(clippy::missing_errors_doc, reason = "those of the trait's methods")]
pub mod provided {
    use super::{
        Done, Factored, Gates, GradientMut, Network, Range, Result, Tangent, error, open_words,
    };
    use crate::network::net::Head;
    use crate::network::weights::Block;
    use crate::operator::sensing::carve;

    /// [`Factored::net_scratch`]: two vectors over the batch and one over the inputs.
    #[must_use]
    pub const fn scratch(batch: usize, inputs: usize) -> usize {
        batch.saturating_mul(2).saturating_add(inputs)
    }

    /// [`Factored::net_forward`], block by block. Scratch: n.
    pub fn forward<S: Factored + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        net: Network<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<S> {
        net.check(sensing.inputs(), sensing.blocks()).map_err(error::Error::widen)?;
        let (n, c) = (sensing.local_rows(), net.outputs());
        error::length("outputs", out.len(), n.saturating_mul(c))?;
        if let Head::Signs(_) = net.head() {
            return sensing.forward(gates, net.w(), out);
        }
        let (image, _) = carve("scratch", scratch, n)?;
        out.fill(0.0);
        let mut wt = net.wt();
        for block in net.w().blocks() {
            let to = wt.take_block(block.neuron());
            image.fill(0.0);
            sensing.apply(gates, block, image)?;
            for (out, a) in out.chunks_mut(c.max(1)).zip(&*image) {
                add_outputs(to, *a, out);
            }
        }
        Ok(())
    }

    /// [`Factored::net_gradient`], block by block. Scratch: 2 n.
    pub fn gradient<S: Factored + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        net: Network<'_>,
        r: &[f32],
        blocks: Range<usize>,
        out: GradientMut<'_>,
        scratch: &mut [f32],
    ) -> Done<S> {
        let (d, c) = check(sensing, net, r)?;
        out.check_panel(net, &blocks).map_err(error::Error::widen)?;
        let GradientMut { w: dw, wt: dwt } = out;
        let (image, rest) = carve("scratch", scratch, sensing.local_rows())?;
        let (back, _) = carve("scratch", rest, sensing.local_rows())?;
        let panels = dw.chunks_mut(d.max(1)).zip(dwt.chunks_mut(c.max(1)));
        for (i, (dw, dwt)) in blocks.zip(panels) {
            residual_of(net.wt().block(i), r, c, back);
            sensing.adjoint(gates, i, back, dw)?;
            image.fill(0.0);
            sensing.apply(gates, net.w().block(i), image)?;
            for (a, r) in image.iter().zip(r.chunks(c.max(1))) {
                for (out, r) in dwt.iter_mut().zip(r) {
                    *out += r * a;
                }
            }
        }
        Ok(())
    }

    /// [`Factored::net_gradient_at`]: whole blocks, of which the support is kept. Scratch: 2 n + d.
    pub fn gradient_at<S: Factored + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        net: Network<'_>,
        r: &[f32],
        out: GradientMut<'_>,
        scratch: &mut [f32],
    ) -> Done<S> {
        let (d, c) = check(sensing, net, r)?;
        out.check_support(net).map_err(error::Error::widen)?;
        let GradientMut { w: mut dw, wt: mut dwt } = out;
        let (image, rest) = carve("scratch", scratch, sensing.local_rows())?;
        let (back, rest) = carve("scratch", rest, sensing.local_rows())?;
        let (column, _) = carve("scratch", rest, d)?;
        dwt.fill(0.0);
        let (mut w, mut wt) = (net.w(), net.wt());
        for i in 0..sensing.blocks() {
            let (from, to) = (w.take_block(i), wt.take_block(i));
            let at = take(&mut dw, from.values().len());
            let out = take(&mut dwt, to.values().len());
            if !from.is_empty() {
                residual_of(to, r, c, back);
                column.fill(0.0);
                sensing.adjoint(gates, i, back, column)?;
                for (out, (j, _)) in at.iter_mut().zip(from.entries()) {
                    *out = column.get(j).copied().unwrap_or(0.0);
                }
            }
            if !to.is_empty() {
                image.fill(0.0);
                sensing.apply(gates, from, image)?;
                for (a, r) in image.iter().zip(r.chunks(c.max(1))) {
                    for (out, (k, _)) in out.iter_mut().zip(to.entries()) {
                        *out += r.get(k).copied().unwrap_or(0.0) * a;
                    }
                }
            }
        }
        Ok(())
    }

    /// [`Factored::net_normal_at`]: outputs along p, and their gradient. Scratch: 2 n
    /// + d.
    pub fn normal_at<S: Factored + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        out: GradientMut<'_>,
        image: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<S> {
        along(sensing, gates, tangent, image, scratch)?;
        sensing.net_gradient_at(gates, tangent.net, image, out, scratch)
    }

    /// [`Factored::net_sum_normal_at`]: outputs along p, their sum in the place of
    /// those that are open, and the gradient of that. `work` is n×c of room, and scratch: 2 n + d.
    pub fn sum_normal_at<S: Factored + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        open: &[u32],
        out: GradientMut<'_>,
        image: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<S> {
        check_open(sensing.local_rows(), tangent.net.outputs(), open)
            .map_err(error::Error::widen)?;
        sensing.net_along(gates, tangent, image, scratch)?;
        let c = tangent.net.outputs().max(1);
        for (open, image) in open.chunks(open_words(c)).zip(image.chunks_mut(c)) {
            let bits = |k: usize| open.get(k / 32).is_some_and(|word| word >> (k % 32) & 1 == 1);
            let sum = image.iter().enumerate().filter(|&(k, _)| bits(k)).map(|(_, x)| x).sum();
            for (k, x) in image.iter_mut().enumerate() {
                *x = if bits(k) { sum } else { 0.0 };
            }
        }
        sensing.net_gradient_at(gates, tangent.net, image, out, scratch)
    }

    /// Checks that there is a bit for every row and output.
    ///
    /// # Errors
    /// [`error::Error::Length`] if there are more or fewer.
    pub fn check_open(rows: usize, outputs: usize, open: &[u32]) -> Result<()> {
        error::length(
            "bits of the open outputs",
            open.len(),
            rows.saturating_mul(open_words(outputs)),
        )
    }

    /// [`Factored::net_along`], block by block. Scratch: 2 n.
    pub fn along<S: Factored + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        image: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<S> {
        let Tangent { net, p } = tangent;
        let (_, c) = check(sensing, net, image)?;
        check_tangent(tangent).map_err(error::Error::widen)?;
        let (activation, rest) = carve("scratch", scratch, sensing.local_rows())?;
        let (tangent, _) = carve("scratch", rest, sensing.local_rows())?;
        image.fill(0.0);
        let (mut w, mut wt, mut pw, mut pwt) = (net.w(), net.wt(), p.w(), p.wt());
        for i in 0..sensing.blocks() {
            let (from, to) = (w.take_block(i), wt.take_block(i));
            let (along, along_out) = (pw.take_block(i), pwt.take_block(i));
            if from.is_empty() || to.is_empty() {
                continue;
            }
            activation.fill(0.0);
            sensing.apply(gates, from, activation)?;
            tangent.fill(0.0);
            sensing.apply(gates, along, tangent)?;
            for ((out, a), t) in image.chunks_mut(c.max(1)).zip(&*activation).zip(&*tangent) {
                add_outputs(to, *t, out);
                add_outputs(along_out, *a, out);
            }
        }
        Ok(())
    }

    /// Whether `p` has the support of `net`.
    ///
    /// # Errors
    /// [`error::Error::Length`] or [`error::Error::Unsorted`] if it has not.
    pub fn check_tangent(tangent: Tangent<'_>) -> Result<()> {
        let Tangent { net, p } = tangent;
        for (side, along) in [(net.w(), p.w()), (net.wt(), p.wt())] {
            along.check(side.inputs(), side.hidden())?;
            error::length("direction on the support", along.nnz(), side.nnz())?;
            if let Some(at) = along.index().iter().zip(side.index()).position(|(a, b)| a != b) {
                return Err(error::Error::Unsorted { at });
            }
        }
        Ok(())
    }

    /// `out += a wt_i` for one row.
    #[inline]
    pub(crate) fn add_outputs(wt: Block<'_>, a: f32, out: &mut [f32]) {
        for (k, value) in wt.entries() {
            if let Some(out) = out.get_mut(k) {
                *out += value * a;
            }
        }
    }

    /// The first `len` elements, which leave the slice.
    pub(crate) fn take<'a>(slice: &mut &'a mut [f32], len: usize) -> &'a mut [f32] {
        let (first, rest) = core::mem::take(slice).split_at_mut_checked(len).unwrap_or_default();
        *slice = rest;
        first
    }

    /// `out = R wt_i`.
    fn residual_of(wt: Block<'_>, r: &[f32], c: usize, out: &mut [f32]) {
        for (out, r) in out.iter_mut().zip(r.chunks(c.max(1))) {
            *out = wt.dot(r);
        }
    }

    /// d and c, if network and residual fit the operator.
    pub(crate) fn check<S: Factored + ?Sized>(
        sensing: &S,
        net: Network<'_>,
        r: &[f32],
    ) -> Result<(usize, usize), S::Source> {
        net.check(sensing.inputs(), sensing.blocks()).map_err(error::Error::widen)?;
        let weighted = usize::from(matches!(net.head(), Head::Weights(_)));
        error::range("network with output weights", weighted, 1, 1)?;
        error::length("residual", r.len(), sensing.local_rows().saturating_mul(net.outputs()))?;
        Ok((sensing.inputs(), net.outputs()))
    }
}
