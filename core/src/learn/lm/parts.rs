//! Which part `b_i` of each neuron is to be turned where single inputs leave it open, by least squares:
//! b in [0, 1] that minimises `|l + Σ b_i w_i|` in the metric of the inputs.

use super::model::main_input;
use super::neuron::add_dense;
use super::orient::OPEN;
use crate::network::weights::{Block, Weights};

/// Sweeps of the coordinate descent.
const SWEEPS: u32 = 300;

pub(super) struct Parts<'v> {
    pub(super) w: Weights<'v>,
    pub(super) scales: &'v [f32],
    /// b of each neuron with weights, in their order; [`OPEN`] before [`Self::settle`].
    pub(super) part: &'v mut [f32],
    /// 1 for those that stay as they are, else 0.
    pub(super) decided: &'v mut [f32],
    /// `l + Σ b_i w_i`.
    pub(super) left: &'v mut [f32],
}

impl<'v> Parts<'v> {
    /// Takes those that are open for such, and finds their parts.
    pub(super) fn settle(&mut self) {
        for (part, decided) in self.part.iter_mut().zip(&mut *self.decided) {
            *decided = if *part == OPEN { 0.0 } else { 1.0 };
            *part = part.max(0.0);
        }
        self.descend();
    }

    /// Rounds those of several weights, the surest first, each to what leaves less once the others make up for it; of the
    /// input that it nearly reads alone a part may be left.
    pub(super) fn round(&mut self) {
        while let Some((nth, block)) = self.surest() {
            let near = if self.part.get(nth).is_some_and(|part| *part > 0.5) { 1.0 } else { 0.0 };
            let [first, other] = [near, 1.0 - near].map(|part| {
                self.set(nth, block, part);
                self.descend();
                self.square(main_input(block, self.scales))
            });
            if first <= other {
                self.set(nth, block, near);
                self.descend();
            }
        }
    }

    /// Of those of several weights that are not decided, the one nearest to 0 or 1.
    fn surest(&self) -> Option<(usize, Block<'v>)> {
        let unsure = |part: f32| part.min(1.0 - part);
        let of = self.part.iter().zip(&*self.decided).enumerate().zip(self.w.blocks());
        let open =
            of.filter(|((_, (_, decided)), block)| **decided == 0.0 && block.values().len() > 1);
        let surest = open.min_by(|a, b| unsure(*a.0.1.0).total_cmp(&unsure(*b.0.1.0)));
        surest.map(|((nth, _), block)| (nth, block))
    }

    /// Decides the part of the nth neuron.
    fn set(&mut self, nth: usize, block: Block<'_>, new: f32) {
        let of = self.part.get_mut(nth).zip(self.decided.get_mut(nth));
        let Some((part, decided)) = of else { return };
        add_dense(self.left, block, new - *part);
        (*part, *decided) = (new, 1.0);
    }

    /// Coordinate descent over those that are not decided.
    fn descend(&mut self) {
        let Self { w, scales, part, decided, left } = self;
        let scale2 = |j: usize| scales.get(j).map_or(0.0, |c| c * c);
        for _ in 0..SWEEPS {
            let mut moved = false;
            let blocks = w.blocks().zip(&**decided);
            for (part, (block, _)) in part.iter_mut().zip(blocks).filter(|of| *of.1.1 == 0.0) {
                let (mut along, mut norm) = (0.0, 0.0);
                for (j, w) in block.entries() {
                    along += scale2(j) * w * left.get(j).copied().unwrap_or(0.0);
                    norm += scale2(j) * w * w;
                }
                let new = (*part - along / norm).clamp(0.0, 1.0);
                if new.is_finite() && new != *part {
                    add_dense(left, block, new - *part);
                    (*part, moved) = (new, true);
                }
            }
            if !moved {
                break;
            }
        }
    }

    /// The square of what is left of all inputs but one.
    fn square(&self, but: Option<usize>) -> f32 {
        let of = self.left.iter().zip(self.scales).enumerate();
        of.filter(|(j, _)| Some(*j) != but).map(|(_, (l, c))| c * c * l * l).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neurons_of_several_weights_are_rounded_to_what_parts_of_others_make_up_for() {
        // One of each input, and one of both. Where all of that is turned, the others first take up what they can, and
        // 0.3 of it, which would be rounded to nothing, makes up for the rest.
        let (index, value) = ([0, 3, 4, 5], [2.0, 2.0, 1.0, 1.0]);
        let w = Weights::new(2, 3, &index, &value).unwrap();
        for (singles, turned) in [([0.65, 0.65], 1.0), ([0.8, 0.3], 0.0)] {
            let mut left = singles.map(|part: f32| -2.0 * part - turned);
            let (mut part, mut decided) = ([OPEN; 3], [0.0; 3]);
            let mut parts = Parts {
                w,
                scales: &[1.0, 3.0],
                part: &mut part,
                decided: &mut decided,
                left: &mut left,
            };
            parts.settle();
            assert!((parts.part[2] - 0.3 * turned).abs() < 1e-3);
            parts.round();
            assert!(left.iter().all(|l| l.abs() < 1e-4), "{turned} {left:?}");
            assert!(
                part.iter()
                    .zip([singles[0], singles[1], turned])
                    .all(|(a, b)| (a - b).abs() < 1e-4)
            );
        }
    }

    #[test]
    fn decided_parts_stay() {
        let (index, value) = ([0, 2], [1.0, 1.0]);
        let w = Weights::new(2, 2, &index, &value).unwrap();
        let (mut part, mut decided, mut left) = ([1.0, OPEN], [0.0; 2], [-0.5, 0.0]);
        let mut parts =
            Parts { w, scales: &[1.0; 2], part: &mut part, decided: &mut decided, left: &mut left };
        parts.settle();
        parts.round();
        assert_eq!((part, decided, left), ([1.0, 0.5], [1.0, 0.0], [0.0, 0.0]));
    }
}
