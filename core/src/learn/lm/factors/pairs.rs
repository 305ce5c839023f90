//! New neurons in a second layer, `relu(a_i - t a_j)` of two activations of the first.

use super::SecondLayer;
use crate::base::error::Result;
use crate::base::math::{norm2, sqrt};
use crate::learn::lm::candidate::{BATCH, Candidate, Candidates, Move, Pair, rank};
use crate::learn::lm::model::{Model, Support};
use crate::learn::lm::support::add;
use crate::operator::factored::Factored;
use crate::operator::sensing::head_mut;

/// t, for activations of unit mean square.
const RATIOS: [f32; 3] = [0.5, 1.0, 2.0];

impl<S: Factored> Model<'_, S, SecondLayer<'_>> {
    /// Lists the best new neurons `relu(a_i / |a_i| - t a_j / |a_j|)` in the second layer.
    pub(super) fn rank_pairs(&mut self, list: &mut Candidates) -> Result<(), S::Source> {
        let mut pairs = heapless::Vec::<Candidate, { 2 * BATCH }>::new();
        for i in 0..self.blocks() {
            if self.activation(i, false)?.is_none() {
                continue;
            }
            for j in 0..self.blocks() {
                if i == j || self.activation(j, true)?.is_none() {
                    continue;
                }
                let pair = |ratio| Move::Pair(Pair { first: i, other: j, ratio });
                let mut best = Candidate { gain: 0.0, kind: pair(0) };
                for ratio in 0..RATIOS.len() {
                    let (gain, _) = self.pair(ratio);
                    if gain > best.gain {
                        best = Candidate { gain, kind: pair(ratio) };
                    }
                }
                rank(&mut pairs, best);
            }
        }
        for pair in pairs {
            rank(list, pair);
        }
        Ok(())
    }

    /// Brings the activation of neuron i to unit mean square, as the first of two or as the other
    /// one; what its root was, none where it is never active.
    fn activation(&mut self, i: usize, is_other: bool) -> Result<Option<f32>, S::Source> {
        let rows = self.fit.rows();
        let Self { fit, net, single, .. } = self;
        let block = net.view().w().block(i);
        if block.is_empty() {
            return Ok(None);
        }
        let out = head_mut(if is_other { &mut *single.t } else { &mut *single.z }, rows)?;
        let gates = fit.gates(net.view().w());
        fit.image(gates, block, out)?;
        let size = sqrt(norm2(out) / rows as f32);
        if !(size > 0.0) {
            return Ok(None);
        }
        out.iter_mut().for_each(|a| *a /= size);
        Ok(Some(size))
    }

    /// What a pair could win, and its factor, which must be positive: a neuron of the second layer
    /// counts once, and its sign is free only as far as it is linear.
    fn pair(&self, ratio: usize) -> (f32, f32) {
        let t = RATIOS.get(ratio).copied().unwrap_or(1.0);
        let (mut along, mut norm) = (0.0, 0.0);
        let rows = self.fit.residual_rows();
        for ((a, b), r) in self.single.z.iter().zip(&*self.single.t).zip(rows) {
            let phi = (a - t * b).max(0.0);
            along += r.first().copied().unwrap_or(0.0) * phi;
            norm += phi * phi;
        }
        let factor = along / norm;
        if factor > 0.0 && factor.is_finite() { (along * factor, factor) } else { (0.0, 0.0) }
    }

    /// Adds a pair, in place of the weakest neuron of the second layer where there is no room;
    /// false, and no change, if the pair wins nothing.
    pub(super) fn form_pair(&mut self, pair: Pair) -> Result<bool, S::Source> {
        let Pair { first: i, other: j, ratio } = pair;
        let (Some(first), Some(other)) = (self.activation(i, false)?, self.activation(j, true)?)
        else {
            return Ok(false);
        };
        let (_, factor) = self.pair(ratio);
        if !(factor > 0.0) {
            return Ok(false);
        }
        let Some(k) = self.vacate_output() else { return Ok(false) };
        if self.net.room() - self.net.nnz() < 2 {
            self.threshold(self.counted().saturating_sub(2))?;
        }
        let (c, t) = (self.outputs(), RATIOS.get(ratio).copied().unwrap_or(1.0));
        let (up, down) =
            (((i * c + k) as u32, factor / first), ((j * c + k) as u32, -factor * t / other));
        let [(a, v), (b, w)] = if i < j { [up, down] } else { [down, up] };
        self.net.edit_wt(|wt| add(wt, &[a, b], &[v, w]))?;
        // Making room may have emptied one of the two.
        self.net.clear_halves();
        Ok(true)
    }
}
