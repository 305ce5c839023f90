//! Weights that an exact fit may do without, since they are small or others make up for them.
//!
//! Neurons of nearly one direction may share the weight from an input that only one of them needs: with `c` what they
//! have in common, `Σ relu(a_i c + u_i x_j)` is nearly that of other sizes and weights with the same sums of `a_i`, of
//! `u_i` and of `u_i² / a_i`, and so nearly `relu(a c) + relu(b c + u x_j)` with `u = Σ u_i` and `b = u² / Σ (u_i² / a_i)`.
//! Steps of a fit hardly see the difference.

use super::goal::OneOutput;
use super::model::{Model, Small, cosine, scaled, square, square_in};
use crate::base::math::sqrt;
use crate::operator::sensing::Sensing;

/// Neurons with a cosine above this may share weights.
const SHARING: f32 = 0.99;

impl<S: Sensing> Model<'_, S, OneOutput> {
    /// Drops weights of neurons below `least`, in the metric of the inputs.
    pub(super) fn drop_small(&mut self, least: f32) {
        let free = self.first() * self.inputs();
        let Self { net, columns, .. } = self;
        let d = columns.scales.len();
        net.edit_w(|w| {
            w.retain(|j, w| {
                let c = columns.scales.get(j as usize % d).copied().unwrap_or(0.0);
                (j as usize) < free || w.abs() * c >= least
            });
        });
    }

    /// Drops the smallest of these weights of neurons, and of those of any size above `small.above` that a neuron shares,
    /// to which it is handed over; its size.
    pub(super) fn drop_smallest(&mut self, small: Small) -> Option<f32> {
        let scales = self.columns.scales();
        let largest = self.neurons().map(|block| square_in(block, scales)).fold(0.0, f32::max);
        let turned = small.turned * sqrt(largest);
        let mut least: Option<(usize, usize, f32)> = None;
        for block in self.neurons() {
            let is_shared = self.neurons().any(|other| self.shares(other.neuron(), block.neuron()));
            for (j, size) in scaled(block, scales).map(|(j, w)| (j, w.abs())) {
                let is_least = least.is_none_or(|(.., least)| size < least);
                let i = block.neuron();
                let is_small = size < small.below && size * size * size < turned;
                let is_candidate = is_least && size > small.above;
                if is_candidate && (is_small || is_shared && self.sharer(i, j).is_some()) {
                    least = Some((i, j, size));
                }
            }
        }
        let (i, j, size) = least?;
        if let Some(to) = self.sharer(i, j) {
            self.hand_over(j, to);
        }
        let dropped = i * self.inputs() + j;
        self.net.edit_w(|w| w.retain(|j, _| j as usize != dropped));
        Some(size)
    }

    /// Of the neurons with which neuron `i` may share its weight from input j the one that it turns furthest; none where
    /// that is `i`.
    fn sharer(&self, i: usize, j: usize) -> Option<usize> {
        let turned = |k: usize| {
            let (own, rest) = self.sizes(k, j);
            own * own / (own * own + rest * rest)
        };
        let others = self.neurons().map(|other| other.neuron()).filter(|&k| self.shares(k, i));
        let furthest = others.max_by(|a, b| turned(*a).total_cmp(&turned(*b)));
        furthest.filter(|&k| turned(k) > turned(i))
    }

    /// Whether two neurons are nearly one.
    fn shares(&self, k: usize, i: usize) -> bool {
        let (w, signs) = (self.net.view().w(), self.fit.signs);
        let cosine = cosine(w.block(k), w.block(i), self.columns.scales());
        k != i && signs.sign(k) == signs.sign(i) && cosine > SHARING
    }

    /// The weight of a neuron from input j, and the norm of the others.
    fn sizes(&self, i: usize, j: usize) -> (f32, f32) {
        let block = self.net.view().w().block(i);
        let own = block.weight(j).unwrap_or(0.0);
        (own, sqrt((square(block) - own * own).max(0.0)))
    }

    /// Gives the weights from input j of all neurons that share it to neuron `to`, and shares what they have in common so
    /// that their sum changes least.
    fn hand_over(&mut self, j: usize, to: usize) {
        let (mut common, mut turn, mut second) = (0.0, 0.0, 0.0);
        for i in self.first()..self.blocks() {
            let (own, rest) = self.sizes(i, j);
            if (i == to || self.shares(i, to)) && own != 0.0 {
                (common, turn, second) = (common + rest, turn + own, second + own * own / rest);
            }
        }
        let (steep, (_, before)) = (turn * turn / second, self.sizes(to, j));
        let left = (common - steep) / (common - before);
        if !(steep > 0.0 && left > 0.0 && steep.is_finite() && left.is_finite()) {
            return;
        }
        let d = self.inputs();
        // Which neurons share is asked of `to` as it was.
        for i in self.first()..self.blocks() {
            if i != to && self.shares(i, to) && self.sizes(i, j).0 != 0.0 {
                self.net.values_of(i).0.iter_mut().for_each(|w| *w *= left);
                self.net.edit_w(|w| w.retain(|at, _| at as usize != i * d + j));
            }
        }
        self.net.values_of(to).0.iter_mut().for_each(|w| *w *= steep / before);
        self.weight_mut(to, j).into_iter().for_each(|w| *w = turn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::lm::model::Support;
    use crate::learn::lm::signed::tests::{D, with};
    use crate::network::gates::Signs;

    #[test]
    fn shared_weight_is_handed_over_so_that_the_sum_changes_least() {
        // What the second neuron has of x_1 belongs to the first.
        let planted: [(f32, [f32; D]); 2] =
            [(1.0, [1.5, 0.2, 0.0, 0.0]), (1.0, [1.0, 0.0, 0.0, 0.0])];
        let (u, v) = (0.01, 0.19);
        // Of the same sums and squares.
        let fit = |a: f32| u * u / a + v * v / (2.5 - a) - 0.2 * 0.2 / 1.5;
        let (mut low, mut high) = (0.2, 2.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if (fit(middle) < 0.0) == (fit(low) < 0.0) { low = middle } else { high = middle }
        }
        let net = [(0, 2.5 - low), (1, v), (4, low), (5, u)];
        with(Signs::Positive, &planted, &net, |model| {
            let before = model.loss().unwrap();
            let small = Small { above: 0.0, below: 0.01, turned: 0.0 };
            assert!(model.drop_smallest(small).is_some_and(|size| size > 0.0));
            assert_eq!(model.net.view().w().index(), [0, 1, 4]);
            let after = model.loss().unwrap();
            assert!(after < 0.1 * before && after < 1e-13, "{before:e} {after:e}");
        });
    }

    #[test]
    fn weights_of_neurons_of_other_directions_or_signs_are_not_shared() {
        let net = [(0, 1.5), (1, 0.02), (4, 1.0), (5, 0.001), (8, -1.0), (9, -0.001), (17, 1.0)];
        for (signs, sharer) in [(Signs::Balanced, None), (Signs::Positive, Some(0))] {
            with(signs, &[], &net, |model| {
                assert_eq!([0, 1, 2, 4].map(|i| model.sharer(i, 1)), [None, sharer, None, None]);
            });
        }
    }
}
