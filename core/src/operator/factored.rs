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
use crate::operator::sensing::{Done, Rows, Sensing};
use crate::operator::tables::Tables;
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
/// n is the number of local rows of the current batch, c that of the outputs. What is n×c is a row
/// vector of n·c numbers, row by row ([`Tables`]).
///
/// # Errors
/// As those of [`Sensing`].
#[allow(clippy::missing_errors_doc, reason = "those of the trait")]
pub trait Factored: Sensing<Machine: Tables> {
    /// Floats of scratch that these operations need, for batches of up to `batch` rows.
    fn net_scratch(&self, batch: usize) -> usize {
        provided::scratch(batch, self.inputs())
    }

    /// `out = sum_i (A_i w_i) wt_i^T`, n×c.
    fn net_forward(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        out: &mut Rows<Self>,
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
        r: &Rows<Self>,
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
        r: &Rows<Self>,
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
        out: &mut Rows<Self>,
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
        image: &mut Rows<Self>,
        scratch: &mut [f32],
    ) -> Done<Self> {
        provided::normal_at(self, gates, tangent, out, image, scratch)
    }

    /// `out = J^T J p` of a network whose outputs are summed up where they are open: a row
    /// of J is the sum of those rows of the J of [`Self::net_along`]. `open` says where, see
    /// [`Tables::sum_active`]; `image` is n×c of room.
    fn net_sum_normal_at(
        &mut self,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        open: &Rows<Self>,
        out: GradientMut<'_>,
        image: &mut Rows<Self>,
        scratch: &mut [f32],
    ) -> Done<Self> {
        provided::sum_normal_at(self, gates, tangent, open, out, image, scratch)
    }
}

/// The provided bodies of [`Factored`], as functions, so that an override can be compared with
/// them.
#[allow(clippy::missing_errors_doc, reason = "those of the trait's methods")]
pub mod provided {
    use super::{
        Done, Factored, Gates, GradientMut, Network, Range, Result, Rows, Tables, Tangent, error,
    };
    use crate::network::net::Head;
    use crate::operator::machine::Machine;
    use crate::operator::sensing::carve;
    use crate::operator::tables::open_words;

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
        out: &mut Rows<S>,
        scratch: &mut [f32],
    ) -> Done<S> {
        net.check(sensing.inputs(), sensing.blocks()).map_err(error::Error::widen)?;
        let (n, c) = (sensing.local_rows(), net.outputs());
        error::length("outputs", S::Machine::len(out), n.saturating_mul(c))?;
        if let Head::Signs(_) = net.head() {
            return sensing.forward(gates, net.w(), out);
        }
        let image = sensing.machine().rows_in(carve("scratch", scratch, n)?.0);
        sensing.machine().fill(out, 0.0);
        let mut wt = net.wt();
        for block in net.w().blocks() {
            let to = wt.take_block(block.neuron());
            sensing.machine().fill(image, 0.0);
            sensing.apply(gates, block, image)?;
            sensing.machine().add_outer(image, to, c, out);
        }
        Ok(())
    }

    /// [`Factored::net_gradient`], block by block. Scratch: 2 n.
    pub fn gradient<S: Factored + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        net: Network<'_>,
        r: &Rows<S>,
        blocks: Range<usize>,
        out: GradientMut<'_>,
        scratch: &mut [f32],
    ) -> Done<S> {
        let (d, c) = check(sensing, net, r)?;
        out.check_panel(net, &blocks).map_err(error::Error::widen)?;
        let GradientMut { w: dw, wt: dwt } = out;
        let (image, rest) = carve("scratch", scratch, sensing.local_rows())?;
        let (back, _) = carve("scratch", rest, sensing.local_rows())?;
        let machine = sensing.machine();
        let (image, back) = (machine.rows_in(image), machine.rows_in(back));
        let panels = dw.chunks_mut(d.max(1)).zip(dwt.chunks_mut(c.max(1)));
        for (i, (dw, dwt)) in blocks.zip(panels) {
            sensing.machine().project(r, net.wt().block(i), c, back);
            sensing.adjoint(gates, i, back, dw)?;
            sensing.machine().fill(image, 0.0);
            sensing.apply(gates, net.w().block(i), image)?;
            sensing.machine().transpose(r, image, dwt);
        }
        Ok(())
    }

    /// [`Factored::net_gradient_at`]: whole blocks, of which the support is kept. Scratch: 2 n + d.
    pub fn gradient_at<S: Factored + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        net: Network<'_>,
        r: &Rows<S>,
        out: GradientMut<'_>,
        scratch: &mut [f32],
    ) -> Done<S> {
        let (d, c) = check(sensing, net, r)?;
        out.check_support(net).map_err(error::Error::widen)?;
        let GradientMut { w: mut dw, wt: mut dwt } = out;
        let (image, rest) = carve("scratch", scratch, sensing.local_rows())?;
        let (back, rest) = carve("scratch", rest, sensing.local_rows())?;
        let (column, _) = carve("scratch", rest, d)?;
        let machine = sensing.machine();
        let (image, back) = (machine.rows_in(image), machine.rows_in(back));
        dwt.fill(0.0);
        let (mut w, mut wt) = (net.w(), net.wt());
        for i in 0..sensing.blocks() {
            let (from, to) = (w.take_block(i), wt.take_block(i));
            let at = take(&mut dw, from.values().len());
            let out = take(&mut dwt, to.values().len());
            if !from.is_empty() {
                sensing.machine().project(r, to, c, back);
                column.fill(0.0);
                sensing.adjoint(gates, i, back, column)?;
                for (out, (j, _)) in at.iter_mut().zip(from.entries()) {
                    *out = column.get(j).copied().unwrap_or(0.0);
                }
            }
            if !to.is_empty() {
                sensing.machine().fill(image, 0.0);
                sensing.apply(gates, from, image)?;
                sensing.machine().transpose_at(r, image, to, c, out);
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
        image: &mut Rows<S>,
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
        open: &Rows<S>,
        out: GradientMut<'_>,
        image: &mut Rows<S>,
        scratch: &mut [f32],
    ) -> Done<S> {
        let c = tangent.net.outputs();
        check_open(sensing.local_rows(), c, S::Machine::len(open)).map_err(error::Error::widen)?;
        sensing.net_along(gates, tangent, image, scratch)?;
        sensing.machine().sum_active(open, c, image);
        sensing.net_gradient_at(gates, tangent.net, image, out, scratch)
    }

    /// Checks that so many words are a bit for every row and output.
    ///
    /// # Errors
    /// [`error::Error::Length`] if there are more or fewer.
    pub fn check_open(rows: usize, outputs: usize, words: usize) -> Result<()> {
        let what = "bits of the open outputs";
        error::length(what, words, rows.saturating_mul(open_words(outputs)))
    }

    /// [`Factored::net_along`], block by block. Scratch: 2 n.
    pub fn along<S: Factored + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        image: &mut Rows<S>,
        scratch: &mut [f32],
    ) -> Done<S> {
        let Tangent { net, p } = tangent;
        let (_, c) = check(sensing, net, image)?;
        check_tangent(tangent).map_err(error::Error::widen)?;
        let (activation, rest) = carve("scratch", scratch, sensing.local_rows())?;
        let (tangent, _) = carve("scratch", rest, sensing.local_rows())?;
        let machine = sensing.machine();
        let (activation, tangent) = (machine.rows_in(activation), machine.rows_in(tangent));
        machine.fill(image, 0.0);
        let (mut w, mut wt, mut pw, mut pwt) = (net.w(), net.wt(), p.w(), p.wt());
        for i in 0..sensing.blocks() {
            let (from, to) = (w.take_block(i), wt.take_block(i));
            let (along, along_out) = (pw.take_block(i), pwt.take_block(i));
            if from.is_empty() || to.is_empty() {
                continue;
            }
            sensing.machine().fill(activation, 0.0);
            sensing.apply(gates, from, activation)?;
            sensing.machine().fill(tangent, 0.0);
            sensing.apply(gates, along, tangent)?;
            sensing.machine().add_outer(tangent, to, c, image);
            sensing.machine().add_outer(activation, along_out, c, image);
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

    /// The first `len` elements, which leave the slice.
    pub(crate) fn take<'a>(slice: &mut &'a mut [f32], len: usize) -> &'a mut [f32] {
        let (first, rest) = core::mem::take(slice).split_at_mut_checked(len).unwrap_or_default();
        *slice = rest;
        first
    }

    /// d and c, if network and residual fit the operator.
    pub(crate) fn check<S: Factored + ?Sized>(
        sensing: &S,
        net: Network<'_>,
        r: &Rows<S>,
    ) -> Result<(usize, usize), S::Source> {
        net.check(sensing.inputs(), sensing.blocks()).map_err(error::Error::widen)?;
        let weighted = usize::from(matches!(net.head(), Head::Weights(_)));
        error::range("network with output weights", weighted, 1, 1)?;
        let c = net.outputs();
        error::length("residual", S::Machine::len(r), sensing.local_rows().saturating_mul(c))?;
        Ok((sensing.inputs(), c))
    }
}
