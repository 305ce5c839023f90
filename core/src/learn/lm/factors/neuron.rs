//! How one neuron of several outputs is formed from the current residual: by alternating its sides,
//! or by splitting the side of the inputs. No network is changed.

use super::{OutputLayer, Weighted};
use crate::base::error::Result;
use crate::base::math::{norm2, sqrt};
use crate::base::rng::{Rng, stream};
use crate::learn::lm::candidate::{Origin, atom};
use crate::learn::lm::model::{Model, square};
use crate::learn::lm::neuron::{FORM_STEPS, Forming};
use crate::network::gates::Gates;
use crate::operator::factored::Factored;
use crate::operator::sensing::head_mut;

impl<S: Factored, H: OutputLayer<S> + Weighted> Model<'_, S, H> {
    /// Forms a new neuron as neuron 0 of at most `size` and `l` weights, by alternating its sides:
    /// given w, `wt = Rᵀ a / |a|²`; given wt, `Aᵀ (R wt) / c²` under the gate of w; each truncated.
    /// Returns what it could win at once.
    #[inline(never)]
    pub(super) fn alternate(
        &mut self,
        origin: Origin,
        size: usize,
        l: usize,
    ) -> Result<f32, S::Source> {
        let rows = self.fit.rows();
        let Self { fit, single, columns, out, .. } = self;
        let (along, back) = (&mut *out.along, head_mut(out.back, rows)?);
        let scales = columns.scales();
        let of = Forming { scales, neuron: 0, size };
        match origin {
            Origin::Atom(number) => single.entries.atom(number, 0, scales),
            Origin::Random(seed) | Origin::Output(seed, _) => {
                if let Origin::Output(_, number) = origin {
                    let (output, sign) = atom(number);
                    along.fill(0.0);
                    along.iter_mut().skip(output).take(1).for_each(|v| *v = sign);
                } else {
                    Rng::new(seed, stream::OUTPUTS).fill_normal(along);
                }
                fit.project(along, back);
                fit.correlate(Gates::seeded(seed), 0, Some(back), single.dense)?;
                single.entries.climb(single.dense, of);
            }
        }
        for _ in 0..FORM_STEPS {
            if !(self.answer(l)? > 0.0) {
                return Ok(0.0);
            }
            let m = self.blocks();
            let Self { fit, single, columns, out, .. } = self;
            let back = head_mut(out.back, rows)?;
            let wt = out.entries.view(m).block(0);
            for (back, r) in back.iter_mut().zip(fit.residual_rows()) {
                *back = wt.dot(r);
            }
            fit.correlate(fit.gates(single.entries.view(m)), 0, Some(back), single.dense)?;
            let of = Forming { scales: columns.scales(), neuron: 0, size };
            single.entries.climb(single.dense, of);
        }
        self.answer(l)
    }

    /// Brings the single neuron to unit activation and gives it the `l` output weights of least
    /// squares that win most; returns what they win.
    fn answer(&mut self, l: usize) -> Result<f32, S::Source> {
        let (m, rows) = (self.blocks(), self.fit.rows());
        let Self { fit, single, out, .. } = self;
        let (z, w) = (head_mut(single.z, rows)?, single.entries.view(m));
        fit.image(fit.gates(w), w.block(0), z)?;
        let length = sqrt(norm2(z) / rows as f32);
        if !(length > 0.0 && length.is_finite()) {
            return Ok(0.0);
        }
        single.entries.scale(1.0 / length);
        let gain = H::choose(fit, z, length, l, out);
        Ok(if gain.is_finite() { gain } else { 0.0 })
    }

    /// What the atom of this number could win, unrefined.
    pub(super) fn gain_of_atom(&mut self, number: u32) -> Result<f32, S::Source> {
        self.single.entries.atom(number, 0, self.columns.scales());
        let before = self.fit.rows_read;
        let gain = self.answer(self.new_outputs())?;
        // One column of d.
        self.fit.rows_read = before.saturating_add((self.fit.rows() / self.inputs().max(1)) as u64);
        Ok(gain)
    }

    /// Forms δ such that `w_i/2 ± δ` are the halves of neuron `i`, both with its output weights;
    /// returns what the split could win at once.
    pub(super) fn split(&mut self, i: usize, seed: u64) -> Result<f32, S::Source> {
        let (rows, size) = (self.fit.rows(), self.new_size().min(self.spare_room() / 2));
        let Self { fit, net, single, columns, out, .. } = self;
        let back = head_mut(out.back, rows)?;
        let (w, wt) = (net.view().w().block(i), net.view().wt().block(i));
        let norm = sqrt(square(wt));
        if !(norm > 0.0) {
            return Ok(0.0);
        }
        // Along the unit vector of its output weights the network is one of a single output.
        for (back, r) in back.iter_mut().zip(fit.residual_rows()) {
            *back = wt.dot(r) / norm;
        }
        let of = Forming { scales: columns.scales(), neuron: i, size };
        single.split(fit, of, w, seed, Some(back))
    }

    /// Weights from the inputs of a new neuron: its share of half of s, as far as there is room.
    pub(super) fn new_size(&self) -> usize {
        self.share().min(self.inputs()).min(self.spare_room() / 2)
    }

    /// The same to the outputs.
    pub(super) fn new_outputs(&self) -> usize {
        let spare = self.spare_room() - self.new_size();
        H::new_outputs(self.share().min(self.fit.outputs).min(spare))
    }

    fn share(&self) -> usize {
        self.task.nnz.div_ceil(2 * self.task.hidden.max(1)).max(2)
    }

    fn spare_room(&self) -> usize {
        self.net.room().saturating_sub(self.task.work_size())
    }
}
