//! Which way the neurons of an exact fit with a linear term point, input by input.
//!
//! Where `l + Σ b_i w_i = 0` with b in {0, 1}, so says each input alone: of the few neurons with
//! weights from it, one choice of b gives 0 to the precision of the fit, and all others are far from
//! it. So choices of the input with the fewest undecided neurons are tried, all of them, and where
//! one is best by far its neurons are decided, which leaves fewer for the other inputs. A neuron of one
//! weight may be turned in part, and then another choice may be near 0 by chance: sums that are as near as the
//! fit is precise decide first, the nearest of the others where there is no such sum. What is left in the end is for the least
//! squares of [`super::fold`].

use super::goal::OneOutput;
use super::model::{Model, scaled, square_in};
use super::neuron::add_dense;
use crate::base::error::Result;
use crate::base::math::sqrt;
use crate::network::weights::Block;
use crate::operator::sensing::{Sensing, head_mut};

/// Undecided neurons of an input whose choices are tried: 2^14 sums.
const MOST: usize = 14;
/// At first a sum counts as 0 below so many times what weights are told from 0 by; where no input has one, the
/// smallest sum of all inputs does …
const CLOSE: f32 = 4.0;
/// … up to this part of the mean size of weights, …
const NEAR: f32 = 2e-3;
/// … where the next best is so many times as large.
const FAR: f32 = 8.0;
/// An undecided neuron, of those that parts are found for.
pub(super) const OPEN: f32 = -1.0;

/// The best of all choices, as bits, and how far from 0 its sum and that of the next best are.
struct Choice {
    bits: u32,
    best: f32,
    second: f32,
}

/// The choice of summands whose sum with `left` is nearest 0.
fn choose(left: f32, summands: &[f32]) -> Choice {
    let mut choice = Choice { bits: 0, best: left.abs(), second: f32::INFINITY };
    for bits in 1..1_u32 << summands.len().min(MOST) {
        let mut sum = left;
        for (place, summand) in summands.iter().enumerate() {
            if bits >> place & 1 == 1 {
                sum += summand;
            }
        }
        let size = sum.abs();
        if size < choice.best {
            choice = Choice { bits, best: size, second: choice.best };
        } else if size < choice.second {
            choice.second = size;
        }
    }
    choice
}

impl<S: Sensing> Model<'_, S, OneOutput> {
    /// Decides neurons, whose linear parts go into the dense row, which holds the linear term. `p` of
    /// the solver then has 0, 1 or [`OPEN`] for each neuron with weights, in their order. Weights below `least`,
    /// in the metric of the inputs, are not told from 0.
    #[inline(never)]
    pub(super) fn orient(&mut self, least: f32) -> Result<(), S::Source> {
        let Self { solver, net, columns, single, .. } = self;
        let (w, d) = (net.view().w(), columns.scales.len());
        let live = w.blocks().count();
        let parts = head_mut(&mut *solver.p, live)?;
        parts.fill(OPEN);
        let tried = head_mut(&mut *solver.h, d)?;
        tried.fill(0.0);
        let scales = &*columns.scales;
        let squares: f32 = w.blocks().map(|block| square_in(block, scales)).sum();
        let size = sqrt(squares / w.nnz().max(1) as f32);
        // Sums are no more precise than floats of their size.
        let (most, least) = (NEAR * size, least.max(f32::EPSILON * size));
        let first = most.min(CLOSE * least);
        let (mut near, mut nearest) = (first, f32::INFINITY);
        let place = |block: Block<'_>, j: usize| {
            scaled(block, scales).find(|(of, _)| *of == j).map(|(_, w)| w)
        };
        loop {
            // The undecided neurons of each input, and the input with the fewest.
            let counts = head_mut(&mut *solver.rhs, d)?;
            counts.fill(0.0);
            for (block, _) in w.blocks().zip(&*parts).filter(|(_, part)| **part == OPEN) {
                for (j, _) in block.entries() {
                    counts.get_mut(j).into_iter().for_each(|count| *count += 1.0);
                }
            }
            let open = counts.iter().zip(&*tried).enumerate();
            let open = open.filter(|(_, (count, tried))| {
                **count > 0.0 && **count <= MOST as f32 && **tried == 0.0
            });
            let fewest = open.min_by(|a, b| a.1.0.total_cmp(b.1.0));
            let Some((j, _)) = fewest else {
                if !(nearest.is_finite() && nearest <= most) {
                    return Ok(());
                }
                (near, nearest) = (nearest, f32::INFINITY);
                tried.fill(0.0);
                continue;
            };
            let mut summands = heapless::Vec::<f32, MOST>::new();
            for (block, part) in w.blocks().zip(&*parts) {
                if let (true, Some(w)) = (*part == OPEN, place(block, j)) {
                    // There are no more than were counted.
                    let pushed = summands.push(w);
                    debug_assert!(pushed.is_ok(), "more than {MOST}");
                }
            }
            let left = single.dense.get(j).zip(scales.get(j)).map_or(0.0, |(l, c)| l * c);
            let choice = choose(left, &summands);
            let is_clear = choice.second > FAR * choice.best.max(least);
            if !(is_clear && choice.best <= near) {
                nearest = if is_clear { nearest.min(choice.best) } else { nearest };
                tried.get_mut(j).into_iter().for_each(|tried| *tried = 1.0);
                continue;
            }
            tried.fill(0.0);
            (near, nearest) = (first, f32::INFINITY);
            let mut nth = 0;
            for (block, part) in w.blocks().zip(&mut *parts) {
                if *part != OPEN || place(block, j).is_none() {
                    continue;
                }
                *part = (choice.bits >> nth & 1) as f32;
                nth += 1;
                if *part == 1.0 {
                    add_dense(single.dense, block, 1.0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::lm::signed::tests::with;
    use crate::network::gates::Signs;

    #[test]
    fn sums_that_are_near_zero_by_chance_decide_nothing() {
        // Part of the first neuron is to be turned, and all of the second: its weight from x_0 all but cancels
        // the linear term as it is, which x_1 contradicts.
        let net = [(4, 1.2893), (8, -0.7076), (9, -0.2301), (13, 0.4391), (17, 0.2891)];
        for unit in [1.0, 1e-4, 1e5] {
            with(Signs::Free, &[(1.0, [1.0; 4])], &net, |model| {
                // Inputs in another unit, and weights that make up for it.
                model.columns.scales.iter_mut().for_each(|c| *c *= unit);
                model.net.values().0.iter_mut().for_each(|w| *w /= unit);
                let scale = model.net.view().w().value()[0] / 1.2893;
                let linear = [-0.7064 + 0.7076, 0.2301, 0.0, 0.0];
                for least in [1e-6 * scale * unit, 0.0] {
                    for (to, l) in model.single.dense.iter_mut().zip(linear) {
                        *to = scale * l;
                    }
                    model.orient(least).unwrap();
                    assert_eq!(model.solver.p[..4], [OPEN, 1.0, 0.0, 0.0]);
                }
            });
        }
    }

    #[test]
    fn all_choices_are_tried() {
        let Choice { bits, best, second } = choose(-3.75, &[1.0, 2.5, 4.0, 1.25]);
        assert_eq!((bits, best), (0b1010, 0.0));
        assert!((second - 0.25).abs() < 1e-6, "{second}");
        assert_eq!((choose(0.0, &[]).bits, choose(0.5, &[]).best), (0, 0.5));
        assert_eq!(choose(-1.0, &[1.0]).second, 1.0);
    }
}
