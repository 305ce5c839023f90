//! How one neuron of several outputs is formed: a birth alternates its sides, a split halves the
//! side of the inputs.
//!
//! Both look at the current residual and leave the entries in buffers; they change no network.

use super::Factors;
use crate::base::error::Result;
use crate::base::math::{norm2, sqrt};
use crate::base::rng::{Rng, stream};
use crate::learn::lm::neuron::{BIRTH_STEPS, atom};
use crate::learn::lm::support::add;
use crate::network::gates::Gates;
use crate::operator::factored::Factored;
use crate::operator::sensing::head_mut;

/// What a birth starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::learn::lm) enum Seedling {
    /// `relu(x_j)` for the even number `2 j`, `relu(-x_j)` for the odd one after it.
    Atom(u32),
    /// A random gate and random output weights of this seed.
    Random(u64),
    /// A random gate of this seed, and one output alone: `2 k` for output k, `2 k + 1` for its
    /// negative.
    Output(u64, u32),
}

impl<S: Factored> Factors<'_, S> {
    /// Forms a birth as neuron 0 of at most `k` and `l` weights: given w, `wt = Rᵀ a / |a|²`
    /// truncated to the l entries that win most; given wt, `Aᵀ (R wt) / c²` under the gate of w
    /// truncated to k entries; and so on. Returns what it could win at once.
    #[inline(never)]
    pub(super) fn birth(
        &mut self,
        seedling: Seedling,
        (k, l): (usize, usize),
    ) -> Result<f32, S::Source> {
        let rows = self.fit.rows();
        let Self { fit, single, columns, along, back, .. } = self;
        let back = head_mut(back, rows)?;
        let scales = columns.scales();
        match seedling {
            Seedling::Atom(number) => {
                let (j, sign) = atom(number);
                let c = scales.get(j).copied().unwrap_or(0.0);
                single.entries.unit(j as u32, if c > 0.0 { sign / c } else { 0.0 });
            }
            Seedling::Random(seed) => {
                Rng::new(seed, stream::OUTPUTS).fill_normal(along);
                fit.project(along, back);
                fit.correlate(Gates::seeded(seed), 0, Some(back), single.dense)?;
                single.entries.climb(single.dense, scales, (0, k));
            }
            Seedling::Output(seed, number) => {
                let (output, sign) = atom(number);
                along.fill(0.0);
                along.iter_mut().skip(output).take(1).for_each(|v| *v = sign);
                fit.project(along, back);
                fit.correlate(Gates::seeded(seed), 0, Some(back), single.dense)?;
                single.entries.climb(single.dense, scales, (0, k));
            }
        }
        for _ in 0..BIRTH_STEPS {
            if !(self.answer(l)? > 0.0) {
                return Ok(0.0);
            }
            let (d, m) = (self.inputs(), self.blocks());
            let Self { fit, single, columns, out, back, .. } = self;
            let back = head_mut(back, rows)?;
            let wt = out.view(fit.outputs(), m).block(0);
            for (back, r) in back.iter_mut().zip(fit.residual().chunks(fit.outputs().max(1))) {
                *back = wt.dot(r);
            }
            let gates = fit.gates(single.entries.view(d, m));
            fit.correlate(gates, 0, Some(back), single.dense)?;
            single.entries.climb(single.dense, columns.scales(), (0, k));
        }
        self.answer(l)
    }

    /// Brings the single neuron to unit activation and gives it the `l` output weights that win
    /// most, of the least squares of the residual; returns what they win.
    fn answer(&mut self, l: usize) -> Result<f32, S::Source> {
        let (d, m, rows) = (self.inputs(), self.blocks(), self.fit.rows());
        let Self { fit, single, out, along, other, .. } = self;
        let z = head_mut(&mut *single.z, rows)?;
        let w = single.entries.view(d, m);
        let gates = fit.gates(w);
        fit.image(gates, w.block(0), z)?;
        let length = sqrt(norm2(z) / rows as f32);
        if !(length > 0.0 && length.is_finite()) {
            return Ok(0.0);
        }
        single.entries.scale(1.0 / length);
        if fit.is_summed() {
            fit.transpose_open(z, along, other);
            // What a handful of rows say is not to be trusted.
            let least = 0.01 * length * length * rows as f32;
            let norm = |k: usize| other.get(k).copied().filter(|norm| *norm > least);
            let key = |k: usize, g: f32| norm(k).map_or(0.0, |norm| g / sqrt(norm));
            let value = |k: usize, won: f32| norm(k).map_or(0.0, |norm| won * length / sqrt(norm));
            out.choose(along, (0, l), key, value);
            let gain = out
                .view(fit.outputs(), m)
                .block(0)
                .entries()
                .map(|(k, v)| v * v * norm(k).unwrap_or(0.0))
                .sum::<f32>();
            let gain = gain / (length * length);
            return Ok(if gain.is_finite() { gain } else { 0.0 });
        }
        fit.transpose(z, along);
        // Of unit activation: |a|² is n.
        let size = length * rows as f32;
        out.choose(along, (0, l), |_, g| g, |_, g| g / size);
        let gain = out.value().iter().map(|v| v * v).sum::<f32>() * rows as f32;
        Ok(if gain.is_finite() { gain } else { 0.0 })
    }

    /// What the atom of this number could win with `l` output weights, unrefined.
    pub(super) fn atom(&mut self, number: u32, l: usize) -> Result<f32, S::Source> {
        let (j, sign) = atom(number);
        let c = self.columns.scales().get(j).copied().unwrap_or(0.0);
        self.single.entries.unit(j as u32, if c > 0.0 { sign / c } else { 0.0 });
        let before = self.fit.rows_read;
        let gain = self.answer(l)?;
        // One column of d.
        self.fit.rows_read = before.saturating_add((self.fit.rows() / self.inputs().max(1)) as u64);
        Ok(gain)
    }

    /// Forms δ of at most `k` weights such that `w_i/2 ± δ` are the halves of neuron `i`, both with
    /// its output weights; returns what the split could win at once.
    pub(super) fn split(&mut self, i: usize, k: usize, seed: u64) -> Result<f32, S::Source> {
        let rows = self.fit.rows();
        let Self { fit, net, single, columns, back, .. } = self;
        let back = head_mut(back, rows)?;
        let (w, wt) = (net.view().w().block(i), net.view().wt().block(i));
        let norm = sqrt(wt.values().iter().map(|v| v * v).sum());
        if !(norm > 0.0) {
            return Ok(0.0);
        }
        // Along the unit vector of its output weights the network is one of a single output.
        for (back, r) in back.iter_mut().zip(fit.residual().chunks(fit.outputs().max(1))) {
            *back = wt.dot(r) / norm;
        }
        single.split(fit, columns.scales(), (w, k), (seed, Some(back)))
    }

    /// Gives neuron `i` the entries of the single neuron and its output weights, in addition to
    /// what it has; both must fit.
    pub(super) fn add_formed(&mut self, i: usize) -> Result<(), S::Source> {
        let (d, c) = (self.inputs(), self.outputs());
        let Self { net, single, out, .. } = self;
        single.entries.shift(0, i, d);
        out.shift(0, i, c);
        net.edit_w(|w| add(w, single.entries.index(), single.entries.value()))?;
        net.edit_wt(|wt| add(wt, out.index(), out.value()))
    }
}
