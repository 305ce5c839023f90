//! The loss of a network of several outputs, and its equations: both sides change at once,
//!
//! ```text
//! J p = sum_i (A_i p_i) wt_i^T + (A_i w_i) pt_i^T
//! ```
//!
//! Columns of J: `x_j 1[z_i > 0] ⊗ wt_i` for the weight from input j, `relu(z_i) ⊗ e_k` for the one
//! to output k, so that the diagonal of `JᵀJ` is `|A_ij|² |wt_i|²` and `|relu(z_i)|²`.

use super::OutputLayer;
use crate::base::error::Result;
use crate::learn::lm::fit::Fit;
use crate::learn::lm::sides::Sides;
use crate::learn::lm::solver::Equations;
use crate::network::net::Network;
use crate::network::weights::runs;
use crate::operator::factored::{Factored, GradientMut, Tangent, provided};
use crate::operator::sensing::{Rows, row_head};

impl<S: Factored, H: OutputLayer<S>> Fit<'_, S, H> {
    /// Mean squared error of `net` over all entries, whose residual stays in [`Self::residual`];
    /// infinity where it is no number.
    #[inline(never)]
    pub(super) fn net_loss(&mut self, net: Network<'_>) -> Result<f32, S::Source> {
        self.read();
        H::forward(self, net)?;
        self.mean_square()
    }
}

/// A network on its support.
pub(super) struct Jacobian<'f, 'a, 'n, S: Factored, H> {
    fit: &'f mut Fit<'a, S, H>,
    net: &'f Sides<'n>,
    buffer: &'f mut Rows<S>,
    /// Whether other weights were tried, so that the outputs that are open are theirs.
    tried: bool,
}

impl<'f, 'a, 'n, S: Factored, H> Jacobian<'f, 'a, 'n, S, H> {
    /// With memory for one number a row.
    pub(super) fn new(
        fit: &'f mut Fit<'a, S, H>,
        net: &'f Sides<'n>,
        buffer: &'f mut Rows<S>,
    ) -> Self {
        Self { fit, net, buffer, tried: false }
    }
}

impl<S: Factored, H: OutputLayer<S>> Equations for Jacobian<'_, '_, '_, S, H> {
    type Source = S::Source;

    fn values(&self) -> &[f32] {
        self.net.all_values()
    }

    fn terms(&self) -> usize {
        self.fit.terms()
    }

    fn set_up(&mut self, rhs: &mut [f32], diagonal: &mut [f32]) -> Result<(), S::Source> {
        let net = self.net.view();
        let (w, wt, rows) = (net.w(), net.wt(), self.fit.rows());
        let gates = self.fit.gates(w);
        let sides = GradientMut::split(rhs, w.nnz());
        let Fit { sensing, head, residual, scratch, outputs, .. } = &mut *self.fit;
        let residual = head.residual(residual, rows, *outputs);
        sensing.net_gradient_at(gates, net, residual, sides, scratch)?;
        let (of_w, mut of_wt) = diagonal.split_at_mut_checked(w.nnz()).unwrap_or_default();
        self.fit.sensing.diagonal_at(gates, w.index(), of_w, self.fit.scratch)?;
        self.fit.read();
        self.fit.read();
        let image = row_head::<S>(&mut *self.buffer, rows)?;
        let mut runs = runs(w.inputs(), w.index()).peekable();
        for to in wt.blocks() {
            let from = w.block(to.neuron());
            self.fit.image(gates, from, image)?;
            while runs.next_if(|(i, _)| *i < to.neuron()).is_some() {}
            if let Some((_, run)) = runs.next_if(|(i, _)| *i == to.neuron()) {
                let norm = H::mean_square(self.fit, to, image);
                of_w.get_mut(run).unwrap_or_default().iter_mut().for_each(|d| *d *= norm);
            }
            let whole = self.fit.norm2(image)?;
            let norms = provided::take(&mut of_wt, to.values().len());
            H::norms_at(self.fit, image, to, whole, norms);
        }
        Ok(())
    }

    fn multiply(&mut self, p: &[f32], out: &mut [f32]) -> Result<(), S::Source> {
        let (net, along) = (self.net.view(), self.net.with(p));
        let gates = self.fit.gates(net.w());
        let (w, wt) = out.split_at_mut_checked(net.w().nnz()).unwrap_or_default();
        // Between two trials the residual is free: it is that of no weights.
        if core::mem::take(&mut self.tried) {
            H::reopen(self.fit, net)?;
        }
        H::normal(self.fit, gates, Tangent { net, p: along }, GradientMut { w, wt })?;
        self.fit.read();
        Ok(())
    }

    fn loss(&mut self, values: Option<&[f32]>) -> Result<f32, S::Source> {
        self.tried = values.is_some();
        self.fit.net_loss(self.net.with(values.unwrap_or(self.net.all_values())))
    }
}
