//! Doing away with the linear term l at the end of a search, so that only neurons are left.
//!
//! Since `relu(w·x) = w·x + relu(-w·x)`, flipping those neurons i with `b_i = 1` cancels l where
//! `l + Σ b_i w_i = 0`. Where the fit is exact, single inputs say most of b ([`super::orient`]). The rest of b, in [0, 1],
//! minimises `|l + Σ b_i w_i|` and is rounded ([`super::parts`]); but of a neuron with one weight a part may be turned,
//! `relu(z) - b z = (1 - b) relu(z) + b relu(-z)`, where there is room for a second one, and neurons that nearly read one
//! input alone make up for what is left of it. What then is left of l is dropped, or becomes a neuron of either sign,
//! `l·x = relu(l·x) - relu(-l·x)`: the better network of at most s weights and m neurons is taken.

use super::goal::OneOutput;
use super::model::{Model, main_input, square_in};
use super::neuron::{Forming, add_dense};
use super::orient::OPEN;
use super::parts::Parts;
use super::sides::Sides;
use crate::base::error::Result;
use crate::base::math::sqrt;
use crate::operator::sensing::{Sensing, head_mut};

/// A fit is exact below this part of the mean square of the labels.
const EXACT: f32 = 1e-9;
/// So many roots of the loss are what weights are told from 0 by.
const USELESS: f32 = 3.0;
/// Steps after folding.
const STEPS: u32 = 5;

impl<S: Sensing> Model<'_, S, OneOutput> {
    /// Folds the linear term of a network of at most s weights besides it, and goes down to m
    /// neurons; returns the loss.
    pub(super) fn fold(
        &mut self,
        loss: f32,
        buffers: [&mut Sides<'_>; 2],
    ) -> Result<f32, S::Source> {
        self.task.info.folds = self.task.info.folds.saturating_add(1);
        let least = (loss <= EXACT * self.fit.power).then_some(USELESS * sqrt(loss));
        if let Some(least) = least {
            self.drop_small(least);
        }
        self.cancel(least)?;
        self.better_of(
            buffers,
            |model| model.refit(STEPS).and_then(|loss| model.narrow(loss)),
            |model| {
                if !model.add_pair_of_left()? {
                    return Ok(None);
                }
                let loss = model.refit(STEPS)?;
                let loss = model.thin(loss, |_, _| true)?;
                model.narrow(loss).map(Some)
            },
        )
    }

    /// Flips neurons so that they cancel the linear term, what is left of which stays in the dense
    /// row. Of an exact fit, `least` is the size of weights below which nothing is told from 0.
    fn cancel(&mut self, least: Option<f32>) -> Result<(), S::Source> {
        let numbers = self.first()..self.blocks();
        self.single.dense.fill(0.0);
        add_dense(self.single.dense, self.net.view().w().block(0), 1.0);
        self.net.remove(0);
        let live = self.net.view().w().blocks().count();
        if let Some(least) = least {
            self.orient(least)?;
        } else {
            head_mut(self.solver.p, live)?.fill(OPEN);
        }
        let mut parts = Parts {
            w: self.net.view().w(),
            scales: self.columns.scales(),
            part: head_mut(self.solver.p, live)?,
            decided: head_mut(self.solver.rhs, live)?,
            left: self.single.dense,
        };
        parts.settle();
        // Those of an exact fit that are turned in part make up for what rounding the others leaves.
        if least.is_some() {
            parts.round();
        }
        let (mut places, mut split) = (0.., 0);
        for i in numbers {
            if self.is_vacant(i) {
                continue;
            }
            let part = places.next().and_then(|nth| self.solver.p.get(nth)).copied().unwrap_or(0.0);
            let block = self.net.view().w().block(i);
            let size = sqrt(square_in(block, self.columns.scales()));
            let is_part = least.is_some_and(|least| part.min(1.0 - part) * size > least);
            if is_part && block.values().len() == 1 {
                let list = self.solver.rhs.get_mut(split).zip(self.solver.delta.get_mut(split));
                if let Some((to, to_part)) = list {
                    (*to, *to_part, split) = (i as f32, part, split + 1);
                }
                continue;
            }
            self.turn(i, part);
        }
        for nth in 0..split {
            let of = |vector: &[f32]| vector.get(nth).copied().unwrap_or(0.0);
            let (i, part) = (of(self.solver.rhs) as usize, of(self.solver.delta));
            self.turn_part(i, part)?;
        }
        if let Some(least) = least {
            (0..self.inputs()).try_for_each(|j| self.absorb(j, least))?;
        }
        Ok(())
    }

    /// Gives what is left of input j to neurons that nearly read it alone, `l x = relu(l x) - relu(-l x)`: to one of
    /// that sign, or a new one, and from one of the other sign that is steeper.
    fn absorb(&mut self, j: usize, least: f32) -> Result<(), S::Source> {
        let left = self.single.dense.get(j).copied().unwrap_or(0.0);
        let size = left.abs() * self.columns.scales().get(j).copied().unwrap_or(0.0);
        let Some((from, steep)) = self.nearly_single(j, -left).filter(|_| size > least) else {
            return Ok(());
        };
        let to = self.nearly_single(j, left).map(|(to, _)| to);
        let new = self.vacant(1.0).filter(|_| self.net.nnz() < self.task.nnz);
        if !(steep > left.abs()) || to.or(new).is_none() {
            return Ok(());
        }
        for i in [Some(from), to].into_iter().flatten() {
            self.weight_mut(i, j).into_iter().for_each(|w| *w += left);
        }
        if let (None, Some(new)) = (to, new) {
            self.add_weight(new, j, left)?;
        }
        self.single.dense.get_mut(j).into_iter().for_each(|l| *l = 0.0);
        Ok(())
    }

    /// The steepest neuron that is added and nearly reads input j alone, with this sign; and how steep.
    fn nearly_single(&self, j: usize, sign: f32) -> Option<(usize, f32)> {
        let scales = self.columns.scales();
        let single = self.neurons().filter_map(|block| {
            let w = block.weight(j)?;
            let is_added = self.fit.signs.sign(block.neuron()) > 0.0;
            let is_it = w * sign > 0.0 && is_added && main_input(block, scales) == Some(j);
            is_it.then_some((block.neuron(), w.abs()))
        });
        single.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Turns neuron `i` where more than half of it is to be turned.
    fn turn(&mut self, i: usize, part: f32) {
        let turned = if part > 0.5 { 1.0 } else { 0.0 };
        add_dense(self.single.dense, self.net.view().w().block(i), turned - part);
        if turned > 0.0 {
            self.negate(i);
        }
    }

    /// Turns a part of a neuron with one weight: a second neuron has it then. Without room for one all of it is
    /// turned or nothing.
    fn turn_part(&mut self, i: usize, part: f32) -> Result<(), S::Source> {
        let to = self.vacant(self.fit.signs.sign(i));
        let (Some(to), true) = (to, self.net.nnz() < self.task.nnz) else {
            self.turn(i, part);
            return Ok(());
        };
        self.single.entries.take(self.net.view().w().block(i), to);
        self.single.entries.scale(-part);
        self.add_single(1.0)?;
        self.net.values_of(i).0.iter_mut().for_each(|w| *w *= 1.0 - part);
        Ok(())
    }

    /// Adds the largest entries of the dense row as a neuron of either sign, if there is room.
    fn add_pair_of_left(&mut self) -> Result<bool, S::Source> {
        let (Some(up), Some(down)) = (self.vacant(1.0), self.vacant(-1.0)) else {
            return Ok(false);
        };
        let size = ((self.net.room() - self.net.nnz()) / 2).min(self.task.nnz);
        let of = Forming { scales: self.columns.scales(), neuron: up, size };
        self.single.entries.sift(self.single.dense, of);
        if self.single.entries.index().is_empty() {
            return Ok(false);
        }
        self.add_single(1.0)?;
        self.single.entries.shift(up, down);
        self.add_single(1.0)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use crate::learn::lm::model::Support;
    use crate::learn::lm::sides::Sides;
    use crate::learn::lm::signed::tests::{D, P, with};
    use crate::network::gates::Signs;
    use crate::network::net::Shape;

    const W: [f32; D] = [1.0, -2.0, 0.5, 0.0];

    /// Folds and returns the loss and how many neurons are left.
    fn folded(planted: &[(f32, [f32; D])], net: &[(u32, f32)]) -> (f32, usize) {
        let mut result = (0.0, 0);
        with(Signs::Free, planted, net, |model| {
            let (mut a, mut b) =
                ((std::vec![0; 16], std::vec![0.0; 16]), (std::vec![0; 16], std::vec![0.0; 16]));
            let mut scratch = Sides::new(Shape::signed(D, P, Signs::Positive), &mut a.0, &mut a.1);
            let mut other = Sides::new(Shape::signed(D, P, Signs::Positive), &mut b.0, &mut b.1);
            assert!(model.loss().unwrap() < 1e-10);
            let loss = model.fold(1.0, [&mut scratch, &mut other]).unwrap();
            assert_eq!((model.linear(), model.task.info.folds), (0, 1));
            assert!(model.counted() <= model.task.nnz && model.live() <= model.task.hidden);
            assert_eq!(model.loss().unwrap(), loss);
            result = (loss, model.live());
        });
        result
    }

    #[test]
    fn neuron_flips_where_that_cancels_linear_term() {
        // relu(z) = z + relu(-z).
        let (loss, live) =
            folded(&[(1.0, W)], &[(0, 1.0), (1, -2.0), (2, 0.5), (4, -1.0), (5, 2.0), (6, -0.5)]);
        assert!(loss < 1e-10 && live == 1, "{loss}, {live}");
    }

    #[test]
    fn linear_remainder_becomes_neuron_of_either_sign() {
        let minus = W.map(|w| -w);
        let (loss, live) = folded(&[(1.0, W), (-1.0, minus)], &[(0, 1.0), (1, -2.0), (2, 0.5)]);
        assert!(loss < 1e-10 && live == 2, "{loss}, {live}");
    }

    #[test]
    fn linear_remainder_is_dropped_without_room_for_pair() {
        // The linear term is a half of a neuron: flipped or not, a half of it is left, and all
        // blocks are taken.
        let net: [(u32, f32); 7] =
            [(0, 0.5), (4, 1.0), (9, 1.0), (14, 1.0), (19, 1.0), (20, -1.0), (25, -1.0)];
        let mut reference = 0.0;
        with(Signs::Free, &[(1.0, W)], &net, |model| {
            let (mut a, mut b) =
                ((std::vec![0; 16], std::vec![0.0; 16]), (std::vec![0; 16], std::vec![0.0; 16]));
            let mut scratch = Sides::new(Shape::signed(D, P, Signs::Positive), &mut a.0, &mut a.1);
            let mut other = Sides::new(Shape::signed(D, P, Signs::Positive), &mut b.0, &mut b.1);
            model.task.hidden = 6;
            let loss = model.fold(1.0, [&mut scratch, &mut other]).unwrap();
            assert_eq!((model.live(), model.linear(), model.counted()), (6, 0, 6));
            assert_eq!(model.loss().unwrap(), loss);
            reference = loss;
        });
        assert!(reference > 1e-3);
    }

    #[test]
    fn partial_flips_leave_remainder_in_linear_term() {
        // 0.7 of W is cancelled best by flipping it, which leaves -0.3; a third of W by leaving it.
        for (part, turned, left) in [(0.7, true, -0.3), (0.3, false, 0.3), (1.0, true, 0.0)] {
            let net =
                [(0, -part), (1, 2.0 * part), (2, -0.5 * part), (4, 1.0), (5, -2.0), (6, 0.5)];
            with(Signs::Free, &[(1.0, W)], &net, |model| {
                model.cancel(None).unwrap();
                let w = model.net.view();
                assert_eq!(w.w().index(), [4, 5, 6]);
                let scale = w.w().value()[0].abs();
                assert_eq!(w.w().value()[0] < 0.0, turned);
                let expected = W.map(|w| -left * scale * w);
                let close = model
                    .single
                    .dense
                    .iter()
                    .zip(&expected)
                    .all(|(a, b)| (a - b).abs() < 1e-5 * scale);
                assert!(close, "{part}: {:?} {expected:?}", model.single.dense);
            });
        }
    }

    #[test]
    fn neurons_that_nearly_read_one_input_take_up_what_is_left_of_it() {
        let steep = [(8, -1.1), (9, -0.05)];
        let also = [(8, -1.1), (9, -0.05), (16, 0.2), (17, 0.01)];
        let both = [(8, -1.1), (9, -0.5)];
        // A new neuron, one that is there, one that is not steep enough, and one that reads another input too.
        for (net, left, expected, rest) in [
            (&steep[..], 0.3, &[(8, -0.8), (9, -0.05), (4, 0.3)][..], 0.0),
            (&also, 0.3, &[(8, -0.8), (9, -0.05), (16, 0.5), (17, 0.01)], 0.0),
            (&also, -0.1, &[(8, -1.2), (9, -0.05), (16, 0.1), (17, 0.01)], 0.0),
            (&steep, 1.2, &steep, 1.2),
            (&steep, -0.3, &steep, -0.3),
            (&both, 0.3, &both, 0.3),
            (&steep, 1e-7, &steep, 1e-7),
        ] {
            with(Signs::Unoriented, &[], net, |model| {
                let unit = model.net.view().w().value()[0] / -1.1;
                model.single.dense.fill(0.0);
                model.single.dense[0] = unit * left;
                model.absorb(0, 1e-5 * unit).unwrap();
                assert!((model.single.dense[0] - unit * rest).abs() < 1e-6 * unit);
                let mut expected = expected.to_vec();
                expected.sort_by_key(|(j, _)| *j);
                let w = model.net.view().w();
                assert!(w.index().iter().eq(expected.iter().map(|(j, _)| j)), "{:?}", w.index());
                let close = |(w, e): (&f32, &(u32, f32))| (w / unit - e.1).abs() < 1e-6;
                assert!(w.value().iter().zip(&expected).all(close), "{left} {:?}", w.value());
            });
        }
    }
}
