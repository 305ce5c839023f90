//! The second layer: outputs that are summed up where they are active.
//!
//! `f(x) = z_0 + sum_(k>0) relu(z_k)`, z being the outputs of the network: descending the loss means
//! what it means for several outputs with the residual in the places of a row that are active, and
//! 0 in the others. A normal product sums up the outputs along the direction where they are active,
//! and puts that sum in their places.

use super::{OutputLayer, SecondLayer};
use crate::base::error::Result;
use crate::base::math::{Sum, norm2, sqrt};
use crate::learn::lm::fit::{Fit, Readout};
use crate::learn::lm::model::OutputBuffers;
use crate::network::gates::Gates;
use crate::network::net::Network;
use crate::network::weights::Block;
use crate::operator::factored::{Factored, GradientMut, Tangent};
use crate::operator::machine::Along;
use crate::operator::machine::Host;
use crate::operator::sensing::head_mut;
use crate::operator::tables::open_words;

const BITS: usize = u32::BITS as usize;

impl<S: Factored<Machine = Host>> Readout<S> for SecondLayer<'_> {
    fn subtract(fit: &mut Fit<'_, S, Self>) -> Result<f32, S::Source> {
        let (entries, c, targets) = (fit.entries(), fit.outputs.max(1), fit.targets());
        let mut total = Sum::default();
        for (out, y) in head_mut(&mut *fit.residual, entries)?.chunks_mut(c).zip(targets) {
            let r = subtract(out, y);
            total.add(r * r);
        }
        Ok(total.value())
    }

    /// The residual is that of output 0.
    fn along_labels(fit: &mut Fit<'_, S, Self>) -> Along {
        let (mut product, mut norm2) = (Sum::default(), Sum::default());
        for (y, r) in fit.targets().zip(fit.residual.iter().step_by(fit.outputs.max(1))) {
            product.add(y * (y - r));
            norm2.add((y - r) * (y - r));
        }
        Along { product: product.value(), norm2: norm2.value() }
    }
}

impl<S: Factored<Machine = Host>> OutputLayer<S> for SecondLayer<'_> {
    const FREE: usize = 1;

    fn new_outputs(_most: usize) -> usize {
        1
    }

    fn hold_active(fit: &mut Fit<'_, S, Self>) {
        let (rows, c) = (fit.rows(), fit.outputs.max(1));
        let active = fit.head.active.chunks_mut(open_words(c));
        for (active, r) in active.zip(fit.residual.chunks(c)).take(rows) {
            for (word, r) in active.iter_mut().zip(r.chunks(BITS)) {
                *word = r.iter().rev().fold(0, |word, r| word << 1 | u32::from(*r != 0.0));
            }
            active.iter_mut().take(1).for_each(|word| *word |= 1);
        }
    }

    fn normal(
        fit: &mut Fit<'_, S, Self>,
        gates: Gates<'_>,
        at: Tangent<'_>,
        out: GradientMut<'_>,
    ) -> Result<(), S::Source> {
        let words = fit.rows().saturating_mul(open_words(fit.outputs));
        let entries = fit.entries();
        let image = head_mut(&mut *fit.residual, entries)?;
        let active = fit.head.active.get(..words).unwrap_or(&[]);
        fit.sensing.net_sum_normal_at(
            gates,
            at,
            bytemuck::cast_slice(active),
            out,
            image,
            fit.scratch,
        )
    }

    fn mean_square(fit: &mut Fit<'_, S, Self>, wt: Block<'_>, a: &[f32]) -> f32 {
        let (mut total, mut rows) = (0.0, 0_usize);
        for (_, r) in a.iter().zip(residual_rows(fit)).filter(|(a, _)| **a > 0.0) {
            let sum: f32 = wt.entries().filter(|&(k, _)| is_active(r, k)).map(|(_, v)| v).sum();
            total += sum * sum;
            rows += 1;
        }
        total / rows.max(1) as f32
    }

    fn norm_at(fit: &mut Fit<'_, S, Self>, a: &[f32], k: usize, whole: f32) -> f32 {
        if k == 0 {
            return whole;
        }
        let rows = a.iter().zip(residual_rows(fit)).filter(|(_, r)| is_active(r, k));
        rows.map(|(a, _)| a * a).sum()
    }

    fn active_shares(fit: &mut Fit<'_, S, Self>, out: &mut [f32]) {
        out.fill(0.0);
        let row = 1.0 / fit.rows().max(1) as f32;
        for r in residual_rows(fit) {
            for (k, out) in out.iter_mut().enumerate() {
                *out += if is_active(r, k) { row } else { 0.0 };
            }
        }
    }

    fn choose(
        fit: &mut Fit<'_, S, Self>,
        z: &[f32],
        length: f32,
        l: usize,
        out: &mut OutputBuffers<'_, S>,
    ) -> f32 {
        let OutputBuffers { entries, along, other: norms, .. } = out;
        along.fill(0.0);
        norms.fill(0.0);
        for (a, r) in z.iter().zip(residual_rows(fit)).filter(|(a, _)| **a != 0.0) {
            for (k, ((out, norm), r)) in along.iter_mut().zip(&mut **norms).zip(r).enumerate() {
                *out += a * r;
                *norm += if k == 0 || *r != 0.0 { a * a } else { 0.0 };
            }
        }
        // What a handful of rows say is not to be trusted.
        let least = 0.01 * length * length * fit.rows() as f32;
        let norm = |k: usize| norms.get(k).copied().filter(|norm| *norm > least);
        let key = |k: usize, g: f32| norm(k).map_or(0.0, |norm| g / sqrt(norm));
        let value = |k: usize, won: f32| norm(k).map_or(0.0, |norm| won * length / sqrt(norm));
        entries.choose(along, 0, l, key, value);
        let view = entries.view(fit.sensing.blocks());
        let won = view.block(0).entries().map(|(k, v)| v * v * norm(k).unwrap_or(0.0));
        won.sum::<f32>() / (length * length)
    }

    fn saliences(
        fit: &mut Fit<'_, S, Self>,
        net: Network<'_>,
        wt: Block<'_>,
        _size: f32,
        z: &mut [f32],
        out: &mut [f32],
    ) -> Result<(), S::Source> {
        let rows = fit.rows() as f32;
        fit.image(fit.gates(net.w()), net.w().block(wt.neuron()), z)?;
        let whole = norm2(z);
        for ((k, v), out) in wt.entries().zip(out) {
            let norm = Self::norm_at(fit, z, k, whole);
            // Weights without a gate stay, and do not count.
            *out = if k == 0 { f32::INFINITY } else { v.abs() * sqrt(norm / rows) };
        }
        Ok(())
    }
}

/// The residuals of each row that is selected, c each.
pub(super) fn residual_rows<'f, S: Factored<Machine = Host>>(
    fit: &'f Fit<'_, S, SecondLayer<'_>>,
) -> core::slice::Chunks<'f, f32> {
    fit.residual().chunks(fit.outputs.max(1))
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
