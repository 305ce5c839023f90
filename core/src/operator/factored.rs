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
//!
//! Outputs that are summed up where they are positive, as those of a second layer are, and the
//! residuals of such a sum are never a table: n numbers, and a bit for every row and output
//! ([`Residual::Open`]).

use crate::base::error::{self, Result};
use crate::network::gates::Gates;
use crate::network::net::Network;
use crate::operator::sensing::{Done, Rows, Sensing};
use crate::operator::tables::{Residual, Tables};
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

    /// `out = z_0 + sum_(k>0) relu(z_k)`, n numbers, z being the outputs; `open` is set to those that
    /// are summed up, output 0 and those that are positive, as in [`Residual::Open`].
    fn net_sum_forward(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        open: &mut Rows<Self>,
        out: &mut Rows<Self>,
        scratch: &mut [f32],
    ) -> Done<Self> {
        provided::sum_forward(self, gates, net, open, out, scratch)
    }

    /// `out.w_i += A_i^T (R wt_i)` and `out.wt_i += R^T (A_i w_i)` for a range of p blocks: the
    /// full gradient, to be streamed panel by panel. `out.w` has length p·d, `out.wt` p·c.
    fn net_gradient(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        r: Residual<'_, Rows<Self>>,
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
        r: Residual<'_, Rows<Self>>,
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
    /// of J is the sum of those rows of the J of [`Self::net_along`]. `open` says where, as in
    /// [`Residual::Open`]; `image` is n numbers of room.
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
        Done, Factored, Gates, GradientMut, Network, Range, Residual, Result, Rows, Tables,
        Tangent, error,
    };
    use crate::network::net::Head;
    use crate::network::weights::{Block, Weights};
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

    /// [`Factored::net_sum_forward`], output by output. Scratch: 2 n.
    pub fn sum_forward<S: Factored + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        net: Network<'_>,
        open: &mut Rows<S>,
        out: &mut Rows<S>,
        scratch: &mut [f32],
    ) -> Done<S> {
        let (n, c) = (sensing.local_rows(), check_sum(sensing, net, open, out)?);
        let (image, rest) = carve("scratch", scratch, n)?;
        let (z, _) = carve("scratch", rest, n)?;
        let machine = sensing.machine();
        let (image, z) = (machine.rows_in(image), machine.rows_in(z));
        machine.fill(out, 0.0);
        // No bit is set.
        machine.fill(open, 0.0);
        for k in 0..c {
            sensing.machine().fill(z, 0.0);
            let mut w = net.w();
            for to in net.wt().blocks() {
                let from = w.take_block(to.neuron());
                let Some(value) = to.weight(k) else { continue };
                sensing.machine().fill(image, 0.0);
                sensing.apply(gates, from, image)?;
                let value = [value];
                let wt = Weights::new(1, 1, &[0], &value).map_err(error::Error::widen)?;
                sensing.machine().add_outer(image, wt.block(0), 1, z);
            }
            sensing.machine().add_output(z, k, c, open, out);
        }
        Ok(())
    }

    /// [`Factored::net_gradient`], block by block. Scratch: 2 n.
    pub fn gradient<S: Factored + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        net: Network<'_>,
        r: Residual<'_, Rows<S>>,
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
        r: Residual<'_, Rows<S>>,
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
        let r = Residual::Each(&*image);
        sensing.net_gradient_at(gates, tangent.net, r, out, scratch)
    }

    /// [`Factored::net_sum_normal_at`]: the sum of the open outputs along p, and its gradient.
    /// Scratch: 2 n + d.
    pub fn sum_normal_at<S: Factored + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        open: &Rows<S>,
        out: GradientMut<'_>,
        image: &mut Rows<S>,
        scratch: &mut [f32],
    ) -> Done<S> {
        let c = check_sum(sensing, tangent.net, open, image)?;
        sensing.machine().fill(image, 0.0);
        each_along(sensing, gates, tangent, scratch, |machine, a, wt| {
            machine.add_open(a, wt, open, c, image);
        })?;
        let r = Residual::Open { r: image, open };
        sensing.net_gradient_at(gates, tangent.net, r, out, scratch)
    }

    /// Checks that so many words are a bit for every row and output.
    fn check_open(rows: usize, outputs: usize, words: usize) -> Result<()> {
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
        let (_, c) = check(sensing, tangent.net, Residual::Each(&*image))?;
        sensing.machine().fill(image, 0.0);
        each_along(sensing, gates, tangent, scratch, |machine, a, wt| {
            machine.add_outer(a, wt, c, image);
        })
    }

    /// Calls `add` with each part of `J p`: n numbers, and the output weights by which they count.
    fn each_along<S: Factored + ?Sized>(
        sensing: &mut S,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        scratch: &mut [f32],
        mut add: impl FnMut(&mut S::Machine, &Rows<S>, Block<'_>),
    ) -> Done<S> {
        check_tangent(tangent).map_err(error::Error::widen)?;
        let Tangent { net, p } = tangent;
        let (activation, rest) = carve("scratch", scratch, sensing.local_rows())?;
        let (change, _) = carve("scratch", rest, sensing.local_rows())?;
        let machine = sensing.machine();
        let (activation, change) = (machine.rows_in(activation), machine.rows_in(change));
        let (mut w, mut wt, mut pw, mut pwt) = (net.w(), net.wt(), p.w(), p.wt());
        for i in 0..sensing.blocks() {
            let (from, to) = (w.take_block(i), wt.take_block(i));
            let (along, along_out) = (pw.take_block(i), pwt.take_block(i));
            if from.is_empty() || to.is_empty() {
                continue;
            }
            sensing.machine().fill(activation, 0.0);
            sensing.apply(gates, from, activation)?;
            sensing.machine().fill(change, 0.0);
            sensing.apply(gates, along, change)?;
            add(sensing.machine(), change, to);
            add(sensing.machine(), activation, along_out);
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
        r: Residual<'_, Rows<S>>,
    ) -> Result<(usize, usize), S::Source> {
        let (n, c) = (sensing.local_rows(), check_weighted(sensing, net)?);
        check_residual::<S::Machine>(r, n, c).map_err(error::Error::widen)?;
        Ok((sensing.inputs(), c))
    }

    /// Checks that residuals are those of so many rows and outputs.
    ///
    /// # Errors
    /// [`error::Error::Length`] if there are more or fewer.
    pub fn check_residual<M: Machine>(
        r: Residual<'_, M::Rows>,
        rows: usize,
        outputs: usize,
    ) -> Result<()> {
        match r {
            Residual::Each(r) => error::length("residual", M::len(r), rows.saturating_mul(outputs)),
            Residual::Open { r, open } => {
                error::length("residual", M::len(r), rows)?;
                check_open(rows, outputs, M::len(open))
            }
        }
    }

    /// c, if the network fits the operator and has output weights, and a sum of its outputs, `out`, has
    /// room for n numbers and for a bit for every row and output.
    ///
    /// # Errors
    /// [`error::Error::Range`] or [`error::Error::Length`] for what does not fit.
    pub fn check_sum<S: Factored + ?Sized>(
        sensing: &S,
        net: Network<'_>,
        open: &Rows<S>,
        out: &Rows<S>,
    ) -> Result<usize, S::Source> {
        let (n, c) = (sensing.local_rows(), check_weighted(sensing, net)?);
        error::length("sum of the outputs", S::Machine::len(out), n)?;
        check_open(n, c, S::Machine::len(open)).map_err(error::Error::widen)?;
        Ok(c)
    }

    /// c, if the network fits the operator and has output weights.
    fn check_weighted<S: Factored + ?Sized>(
        sensing: &S,
        net: Network<'_>,
    ) -> Result<usize, S::Source> {
        net.check(sensing.inputs(), sensing.blocks()).map_err(error::Error::widen)?;
        let weighted = usize::from(matches!(net.head(), Head::Weights(_)));
        error::range("network with output weights", weighted, 1, 1)?;
        Ok(net.outputs())
    }
}
