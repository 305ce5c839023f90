//! Weights that an exact fit may do without, since they are small or others make up for them.
//!
//! Two neurons of nearly one direction may share the weight from an input that only one of them needs:
//! with `c` what they have in common, `relu(a c + u x_j) + relu(b c + v x_j)` is nearly that of other sizes and weights of the
//! same sums `a + b` and `u + v` and the same `u²/a + v²/b`, and so nearly `relu(a' c) + relu(b' c + (u + v) x_j)` with
//! `b' = (u + v)² / (u²/a + v²/b)`. Steps of a fit hardly see the difference.

use super::goal::OneOutput;
use super::model::{Model, Small, cosine, scaled, square, square_in};
use crate::base::math::sqrt;
use crate::operator::sensing::Sensing;

/// Neurons with a cosine above this may share weights.
const SHARING: f32 = 0.99;

impl<S: Sensing> Model<'_, S, OneOutput> {
    /// Drops weights of neurons below `least`, in the metric of the inputs.
    pub(super) fn drop_useless(&mut self, least: f32) {
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

    /// Drops the smallest of these weights of neurons, or hands it over to a neuron that shares it; its size.
    pub(super) fn drop_smallest(&mut self, small: Small) -> Option<f32> {
        let scales = self.columns.scales();
        let largest = self.neurons().map(|block| square_in(block, scales)).fold(0.0, f32::max);
        let turned = small.turned * sqrt(largest);
        let mut least: Option<(usize, usize, f32)> = None;
        for block in self.neurons() {
            for (j, size) in scaled(block, scales).map(|(j, w)| (j, w.abs())) {
                let is_least = least.is_none_or(|(.., least)| size < least);
                if is_least && size > small.above && size < small.below {
                    let i = block.neuron();
                    if size * size * size < turned || self.sharer(i, j).is_some() {
                        least = Some((i, j, size));
                    }
                }
            }
        }
        let (i, j, size) = least?;
        if let Some(to) = self.sharer(i, j) {
            self.hand_over(j, i, to);
        }
        let dropped = i * self.inputs() + j;
        self.net.edit_w(|w| w.retain(|j, _| j as usize != dropped));
        Some(size)
    }

    /// The neuron with which neuron `i` may share its weight from input j, which turns that one further.
    fn sharer(&self, i: usize, j: usize) -> Option<usize> {
        let (scales, signs) = (self.columns.scales(), self.fit.signs);
        let block = self.net.view().w().block(i);
        let turned = |k: usize| {
            let block = self.net.view().w().block(k);
            let of = block.entries().find_map(|(at, w)| (at == j).then_some(w * w));
            of.unwrap_or(0.0) / square(block)
        };
        let own = turned(i);
        let shares = |k: usize, other| {
            k != i && signs.sign(k) == signs.sign(i) && cosine(other, block, scales) > SHARING
        };
        let mut others = self.neurons().map(|other| (other.neuron(), other));
        others.find(|&(k, other)| shares(k, other) && turned(k) > own).map(|(k, _)| k)
    }

    /// Gives the weight of neuron `from` from input j to neuron `to`, and shares what they have in common so that their
    /// sum changes least. The weight stays behind as it is.
    fn hand_over(&mut self, j: usize, from: usize, to: usize) {
        let of = |i| {
            let block = self.net.view().w().block(i);
            let own = block.entries().find_map(|(at, w)| (at == j).then_some(w)).unwrap_or(0.0);
            (own, sqrt((square(block) - own * own).max(0.0)))
        };
        let ((u, a), (v, b)) = (of(from), of(to));
        let steep = (u + v) * (u + v) / (u * u / a + v * v / b);
        let left = a + b - steep;
        if !(steep > 0.0 && left > 0.0 && steep.is_finite()) {
            return;
        }
        for (i, factor) in [(from, left / a), (to, steep / b)] {
            let at = self.net.view().w().block(i).entries().position(|(at, _)| at == j);
            for (nth, w) in self.net.values_of(i).0.iter_mut().enumerate() {
                match (Some(nth) == at, i == to) {
                    (false, _) => *w *= factor,
                    (true, is_to) => *w = if is_to { u + v } else { *w },
                }
            }
        }
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
