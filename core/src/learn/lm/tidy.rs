//! Edits that take a network to an equivalent or simpler one: turn neurons round, merge those that
//! share a hinge.

use super::bench::{Bench, scaled};
use super::problem::Problem;
use crate::base::error::Result;
use crate::base::math::sqrt;
use crate::network::weights::Weights;
use crate::operator::machine::Machine;
use crate::operator::sensing::{Sensing, row_head};

/// A neuron is turned round where that leaves less than this part of the loss.
pub(super) const FLIP: f32 = 0.999;

impl<S: Sensing> Bench<'_, S> {
    /// Turns neurons round, `w_i -> -w_i`, where that alone lowers the loss, which is `loss`, and
    /// fits if any was turned. The residual must be current. Returns the loss.
    pub(super) fn turn_round(&mut self, loss: f32) -> Result<f32, S::Source> {
        let rows = self.fit.rows();
        let mut total = loss * self.fit.batch_rows();
        let mut flipped = 0;
        for i in self.first()..self.blocks() {
            let range = self.net.range(i);
            if range.is_empty() {
                continue;
            }
            let z = row_head::<S>(&mut *self.single.z, rows)?;
            let t = row_head::<S>(&mut *self.single.t, rows)?;
            let gates = self.fit.gates(self.net.view());
            self.fit.image(gates, self.net.view().block(i), z)?;
            negate(self.net.values().get_mut(range.clone()));
            let gates = self.fit.gates(self.net.view());
            self.fit.image(gates, self.net.view().block(i), t)?;
            let residual = row_head::<S>(&mut *self.fit.residual, rows)?;
            let mut after = [self.fit.sensing.machine().exchange(z, t, residual)];
            self.fit.sensing.sum(&mut after)?;
            let [after] = after;
            if after < FLIP * total {
                total = after;
                self.fit.sensing.machine().copy(z, residual);
                flipped += 1;
            } else {
                negate(self.net.values().get_mut(range));
            }
        }
        if flipped == 0 {
            return Ok(loss);
        }
        self.task.flips = self.task.flips.saturating_add(flipped);
        self.refit(2)
    }

    /// Makes one of two neurons whose cosine, in the metric of the columns, is above `least` in
    /// magnitude: they share a hinge. Those that are open on the same rows add up. Of those that
    /// are open on opposite rows the weaker one is its own mirror image and a linear function,
    /// `relu(z) = z + relu(-z)`, so they merge where there is a linear term. Returns how many
    /// vanished; nothing is fitted.
    #[inline(never)]
    pub(super) fn join(&mut self, least: f32) -> Result<u32, S::Source> {
        let d = self.inputs();
        let mut merged = 0;
        for i in self.first()..self.blocks() {
            if self.net.range(i).is_empty() {
                continue;
            }
            for j in i + 1..self.blocks() {
                let w = self.net.view();
                if w.block(j).is_empty() {
                    continue;
                }
                let (cosine, first_is_stronger) = compare(w, (i, j), self.columns.scales());
                let is_equal_sign = self.fit.signs.sign(i) == self.fit.signs.sign(j);
                let is_mirrored = (cosine > 0.0) != is_equal_sign;
                if !(cosine.abs() > least) || (is_mirrored && self.linear() == 0) {
                    continue;
                }
                let (to, from) = if first_is_stronger { (i, j) } else { (j, i) };
                self.single.entries.take(w.block(from), to, d);
                self.net.remove(from);
                self.add_single(if is_mirrored { -1.0 } else { 1.0 })?;
                if is_mirrored {
                    self.single.entries.shift(to, 0, d);
                    self.add_single(1.0)?;
                }
                merged += 1;
                if from == i {
                    break;
                }
            }
        }
        self.task.merges = self.task.merges.saturating_add(merged);
        Ok(merged)
    }
}

/// Changes all signs.
pub(super) fn negate(values: Option<&mut [f32]>) {
    values.unwrap_or_default().iter_mut().for_each(|v| *v = -*v);
}

/// The cosine of neurons i and j in the metric of the columns, and whether i is at least as long.
pub(super) fn compare(w: Weights<'_>, (i, j): (usize, usize), scales: &[f32]) -> (f32, bool) {
    let (a, b) = (w.block(i), w.block(j));
    let mut others = scaled(b, scales).peekable();
    let mut product = 0.0;
    for (at, x) in scaled(a, scales) {
        while others.next_if(|&(j, _)| j < at).is_some() {}
        if let Some((_, y)) = others.next_if(|&(j, _)| j == at) {
            product += x * y;
        }
    }
    let norm = |block| scaled(block, scales).map(|(_, x)| x * x).sum::<f32>();
    let (a, b) = (norm(a), norm(b));
    (product / sqrt(a * b), a >= b)
}

#[cfg(test)]
mod tests {
    use super::compare;
    use crate::base::math::sqrt;
    use crate::learn::lm::bench::tests::{even, with, with_rows};
    use crate::learn::lm::problem::Problem;
    use crate::network::gates::Signs;
    use crate::network::weights::Weights;

    const W: [f32; 4] = [1.0, -2.0, 0.5, 0.0];

    #[test]
    fn a_neuron_that_points_the_wrong_way_is_turned_round() {
        let net = [(4, -1.0), (5, 2.0), (6, -0.5), (8, 1.0)];
        with(Signs::Positive, &[(1.0, W), (1.0, [1.0, 0.0, 0.0, 0.0])], &net, |bench| {
            let loss = bench.loss().unwrap();
            assert!(bench.flip(loss).unwrap() < 1e-10 && loss > 1e-2);
            let is_up: [bool; 4] = core::array::from_fn(|at| bench.net.view().value()[at] > 0.0);
            assert_eq!((bench.task.flips, is_up), (1, [true, false, true, true]));
        });
    }

    #[test]
    fn neurons_that_are_open_on_the_same_rows_add_up() {
        let net = [(0, 0.25), (1, -0.5), (2, 0.125), (8, 0.75), (9, -1.5), (10, 0.375), (12, 1.0)];
        with(Signs::Positive, &[(1.0, W), (1.0, [1.0, 0.0, 0.0, 0.0])], &net, |bench| {
            assert_eq!(bench.merge(0.999).unwrap(), 1);
            assert!(bench.loss().unwrap() < 1e-12);
            assert_eq!((bench.net.view().index(), bench.task.merges), (&[8, 9, 10, 12][..], 1));
        });
    }

    #[test]
    fn mirrored_neurons_merge_through_the_linear_term_and_not_without() {
        // 3 relu(z) + relu(-z), z = w·x, is 2 relu(z) + |z|.
        let minus = W.map(|w| -w);
        let planted = [(3.0, W), (1.0, minus)];
        let net = [(4, 3.0), (5, -6.0), (6, 1.5), (12, -1.0), (13, 2.0), (14, -0.5)];
        with(Signs::Free, &planted, &net, |bench| {
            assert_eq!(bench.merge(0.999).unwrap(), 0);
            bench.add_linear().unwrap();
            assert_eq!(bench.merge(0.999).unwrap(), 1);
            assert!(bench.loss().unwrap() < 1e-10);
            assert_eq!((bench.live(), bench.counted()), (1, 3));
        });
    }

    #[test]
    fn the_way_down_ends_at_s_weights_and_m_neurons() {
        let net: [(u32, f32); 28] = core::array::from_fn(|j| (j as u32, 1.0 + (j % 5) as f32));
        with(Signs::Positive, &[(1.0, W)], &net, |bench| {
            let loss = bench.loss().unwrap();
            let mut reports = 0;
            let report = |_: &_, _| {
                reports += 1;
                true
            };
            let loss = bench.thin(loss, report).unwrap();
            assert!(bench.counted() <= 6 && (1..=10).contains(&reports), "{reports}");
            let loss = bench.narrow(loss).unwrap();
            assert!(bench.live() <= 3 && loss.is_finite());
        });
    }

    #[test]
    fn a_neuron_that_points_the_right_way_stays_to_the_bit() {
        with(
            Signs::Positive,
            &[(1.0, W), (1.0, [1.0, 0.0, 0.0, 0.0])],
            &[(4, 0.9), (5, -2.1), (8, 1.0)],
            |bench| {
                let loss = bench.loss().unwrap();
                let before: [u32; 3] =
                    core::array::from_fn(|at| bench.net.view().value()[at].to_bits());
                assert_eq!((bench.flip(loss).unwrap(), bench.task.flips), (loss, 0));
                assert!(bench.net.view().value().iter().map(|w| w.to_bits()).eq(before));
            },
        );
    }

    #[test]
    fn a_neuron_that_fits_either_way_stays() {
        // |x_0| and one half of it: either half leaves as much on rows with their mirror images.
        let minus = [-1.0, 0.0, 0.0, 0.0];
        with_rows(
            even(),
            Signs::Positive,
            &[(1.0, [1.0, 0.0, 0.0, 0.0]), (1.0, minus)],
            &[(4, 1.0)],
            |bench| {
                let loss = bench.loss().unwrap();
                assert_eq!((bench.flip(loss).unwrap(), bench.task.flips), (loss, 0));
                assert!(bench.net.view().value()[0] > 0.0);
            },
        );
    }

    #[test]
    fn neurons_become_one_above_the_cosine_only_and_the_stronger_one_takes_the_weights() {
        // A cosine of 0.8 on rows of equal columns.
        let net = [(4, 2.0), (8, 4.0), (9, 3.0)];
        for (least, merged) in [(0.79, 1), (0.81, 0)] {
            with_rows(even(), Signs::Positive, &[(1.0, W)], &net, |bench| {
                assert_eq!(bench.merge(least).unwrap(), merged);
                assert_eq!(bench.task.merges, merged);
                let (index, sum): (&[u32], f32) =
                    if merged == 1 { (&[8, 9], 6.0) } else { (&[4, 8, 9], 2.0) };
                let unit = bench.net.view().value().last().unwrap() / 3.0;
                assert_eq!(
                    (bench.net.view().index(), bench.net.view().value()[0]),
                    (index, sum * unit)
                );
            });
        }
        // Of equal ones the first one does.
        with_rows(even(), Signs::Positive, &[(1.0, W)], &[(4, 2.0), (8, 2.0)], |bench| {
            assert_eq!((bench.merge(0.99).unwrap(), bench.net.view().index()), (1, &[4][..]));
        });
    }

    #[test]
    fn a_neuron_merges_with_all_that_share_its_hinge() {
        let net = [(0, 1.0), (4, 3.0), (8, 2.0), (13, 1.0), (16, 0.5)];
        with_rows(
            even(),
            Signs::Positive,
            &[(6.5, [1.0, 0.0, 0.0, 0.0]), (1.0, [0.0, 1.0, 0.0, 0.0])],
            &net,
            |bench| {
                assert_eq!(bench.merge(0.999).unwrap(), 3);
                assert_eq!(bench.net.view().index(), [4, 13]);
                assert!(bench.loss().unwrap() < 1e-12);
            },
        );
    }

    #[test]
    fn neurons_of_opposite_signs_that_point_one_way_are_mirror_images() {
        // Block 1 is open above, block 2 below: both together are linear.
        let net = [(4, 1.0), (5, -2.0), (6, 0.5), (8, 1.0), (9, -2.0), (10, 0.5)];
        let minus = W.map(|w| -w);
        with(Signs::Free, &[(1.0, W), (-1.0, minus)], &net, |bench| {
            assert!(bench.loss().unwrap() < 1e-12);
            assert_eq!(bench.merge(0.999).unwrap(), 0);
            bench.add_linear().unwrap();
            assert_eq!(bench.merge(0.999).unwrap(), 1);
            assert!(bench.loss().unwrap() < 1e-12);
            // Nothing is left of either, and all is in the linear term.
            assert!(
                bench
                    .net
                    .view()
                    .blocks()
                    .skip(1)
                    .all(|block| block.values().iter().all(|w| w.abs() < 1e-6))
            );
        });
    }

    #[test]
    fn the_cosine_is_that_of_the_metric_of_the_columns() {
        let w = Weights::new(4, 3, &[0, 1, 3, 5, 6, 7, 9], &[1.0, 2.0, 4.0, 2.0, 9.0, -1.0, 1.0])
            .unwrap();
        let scales = [3.0, 0.5, 0.0, 1.0];
        // (3, 1, 0, 4) and (0, 1, 0, -1): -3 over the root of 26 and that of 2.
        let (cosine, is_longer) = compare(w, (0, 1), &scales);
        assert!((cosine + 3.0 / sqrt(52.0)).abs() < 1e-6 && is_longer, "{cosine}");
        let (same, is_longer) = compare(w, (1, 0), &scales);
        assert!(same == cosine && !is_longer);
        assert_eq!(compare(w, (2, 2), &scales), (1.0, true));
    }
}
