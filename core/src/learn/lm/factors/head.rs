//! The second layer: outputs that are summed up where they are open.
//!
//! `f(x) = z_0 + sum_(k>0) relu(z_k)`, z being the outputs of the network, so that the derivative
//! of f is that of the outputs, of those that are open. With a residual r, descending the loss
//! means what it means for several outputs with the residual r in the places of a row that are
//! open, and 0 in the others; a normal product sums up the outputs along the direction where they
//! are open, and puts that sum in their places.

use crate::base::error::Result;
use crate::base::math::norm2;
use crate::learn::lm::fit::{Fit, Head};
use crate::network::gates::Gates;
use crate::network::weights::Block;
use crate::operator::factored::{Factored, GradientMut, Tangent, open_words};
use crate::operator::sensing::head_mut;

/// Bits of a word.
const BITS: usize = u32::BITS as usize;

impl<S: Factored> Fit<'_, S> {
    /// Whether outputs are summed up.
    pub(super) fn is_summed(&self) -> bool {
        matches!(self.head, Head::Sum(_))
    }

    /// Holds the outputs that are open now, where they are summed up.
    pub(super) fn hold_open(&mut self) {
        let (rows, c) = (self.rows(), self.outputs().max(1));
        let Head::Sum(open) = &mut self.head else { return };
        for (open, r) in open.chunks_mut(open_words(c)).zip(self.residual.chunks(c)).take(rows) {
            for (word, r) in open.iter_mut().zip(r.chunks(BITS)) {
                *word = r.iter().rev().fold(0, |word, r| word << 1 | u32::from(*r != 0.0));
            }
            open.iter_mut().take(1).for_each(|word| *word |= 1);
        }
    }

    /// `dw`, `dwt` = `JᵀJ p` under `gates`, and for outputs that are summed up under those that are
    /// held open; the residual is lost.
    pub(super) fn net_normal(
        &mut self,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        sides: GradientMut<'_>,
    ) -> Result<(), S::Source> {
        let (words, entries) =
            (self.rows().saturating_mul(open_words(self.outputs())), self.entries());
        let image = head_mut(&mut *self.residual, entries)?;
        match &self.head {
            Head::Each => self.sensing.net_normal_at(gates, tangent, sides, image, self.scratch),
            Head::Sum(open) => {
                let open = open.get(..words).unwrap_or(&[]);
                self.sensing.net_sum_normal_at(gates, tangent, open, sides, image, self.scratch)
            }
        }
    }

    /// The mean square, over the rows where the neuron of activation `a` is open, of what one more
    /// of it adds to the labels, and the number of these rows. The residual must be current.
    pub(super) fn reach(&self, wt: Block<'_>, a: &[f32]) -> (f32, usize) {
        let open = a.iter().filter(|&&a| a > 0.0).count();
        if !self.is_summed() {
            return (wt.values().iter().map(|v| v * v).sum(), open);
        }
        let mut total = 0.0;
        for (_, r) in
            a.iter().zip(self.residual().chunks(self.outputs().max(1))).filter(|(a, _)| **a > 0.0)
        {
            let sum: f32 = wt.entries().filter(|&(k, _)| is_open(r, k)).map(|(_, v)| v).sum();
            total += sum * sum;
        }
        (total / open.max(1) as f32, open)
    }

    /// The squared norms of the activation `a` as the outputs of `wt` see it, one for each of its
    /// weights. The residual must be current.
    pub(super) fn norms_at<'o>(
        &self,
        a: &[f32],
        wt: Block<'_>,
        out: &mut impl Iterator<Item = &'o mut f32>,
    ) {
        let whole = norm2(a);
        for ((k, _), out) in wt.entries().zip(out) {
            *out = if self.is_summed() && k > 0 { self.norm_at(a, k) } else { whole };
        }
    }

    /// The squared norm of the activation `a` on the rows where output k is open.
    fn norm_at(&self, a: &[f32], k: usize) -> f32 {
        let rows = a.iter().zip(self.residual().chunks(self.outputs().max(1)));
        rows.filter(|(_, r)| is_open(r, k)).map(|(a, _)| a * a).sum()
    }

    /// The part of the rows where each output is open. The residual must be current.
    pub(super) fn open_parts(&self, out: &mut [f32]) {
        out.fill(if self.is_summed() { 0.0 } else { 1.0 });
        if !self.is_summed() {
            return;
        }
        let part = 1.0 / self.rows().max(1) as f32;
        for r in self.residual().chunks(self.outputs().max(1)) {
            for (k, out) in out.iter_mut().enumerate() {
                *out += if is_open(r, k) { part } else { 0.0 };
            }
        }
    }

    /// `out = Rᵀ a`, and the squared norms of `a` where the outputs are open.
    pub(super) fn transpose_open(&self, a: &[f32], out: &mut [f32], norms: &mut [f32]) {
        out.fill(0.0);
        norms.fill(0.0);
        for (a, r) in a.iter().zip(self.residual().chunks(self.outputs().max(1))) {
            if *a == 0.0 {
                continue;
            }
            for (k, ((out, norm), r)) in out.iter_mut().zip(&mut *norms).zip(r).enumerate() {
                *out += a * r;
                *norm += if k == 0 || *r != 0.0 { a * a } else { 0.0 };
            }
        }
    }
}

/// Whether output k is open in a row of residuals.
pub(super) fn is_open(r: &[f32], k: usize) -> bool {
    k == 0 || r.get(k).is_some_and(|r| *r != 0.0)
}
