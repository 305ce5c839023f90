//! Cover: every row whose label no neuron is active for is given to the neuron that is nearest to
//! activity there.
//!
//! Such a *dark* row has no gradient, so neither steps nor growth ever see it. With a cover the row
//! counts with the activation of its neuron as it is, `(σ y - z_i)²` in place of `y²`, in the loss,
//! in the equations of a step, and in the gradient that growth looks at. It takes two more products
//! of the neurons concerned for each product, so it is for few rows
//! ([`crate::base::budget::Recovery::is_wide`]), few weights for their labels, and positive output
//! weights: among neurons of either sign a row is seldom dark. Rows must be readable here
//! ([`Machine::numbers`]), and all be held here.

use crate::network::gates::Signs;
#[cfg(doc)]
use crate::operator::machine::Machine;

/// The owner of a row that is not dark.
pub(super) const LIGHT: u32 = u32::MAX;
/// That of a dark row before one is found; neurons have smaller numbers.
pub(super) const NOBODY: u32 = u32::MAX - 1;

/// Which neuron covers which row. Without buffers there is no cover.
#[derive(Default)]
pub(super) struct Cover<'a> {
    /// The owner of each row, under the weights whose loss was computed last.
    pub(super) owners: &'a mut [u32],
    /// The same for the weights that the equations are those of.
    pub(super) of_equations: &'a mut [u32],
    pub(super) image: &'a mut [f32],
    pub(super) buffer: &'a mut [f32],
    pub(super) is_on: bool,
}

impl<'a> Cover<'a> {
    /// Off; the buffers have one number a row or, the last, a weight that there is room for, or are
    /// empty.
    pub(super) fn new(
        owners: &'a mut [u32],
        of_equations: &'a mut [u32],
        image: &'a mut [f32],
        buffer: &'a mut [f32],
    ) -> Self {
        owners.fill(LIGHT);
        of_equations.fill(LIGHT);
        Self { owners, of_equations, image, buffer, is_on: false }
    }

    /// From the next loss on, where there are buffers.
    pub(super) fn switch(&mut self, is_on: bool) {
        self.is_on = is_on && !self.owners.is_empty();
        self.owners.fill(LIGHT);
    }

    /// `r` on the rows that neuron `i` owns and 0 elsewhere; none where it owns none.
    pub(super) fn owned(&mut self, i: usize, r: &[f32]) -> Option<&mut [f32]> {
        let own = |owner: u32| owner as usize == i;
        if !self.is_on || !self.owners.iter().any(|owner| own(*owner)) {
            return None;
        }
        let image = self.image.get_mut(..r.len())?;
        for ((out, owner), r) in image.iter_mut().zip(&*self.owners).zip(r) {
            *out = if own(*owner) { *r } else { 0.0 };
        }
        Some(image)
    }
}

/// Whether no neuron is active for a label y whose residual is r.
pub(super) fn is_dark(signs: Signs, y: f32, r: f32) -> bool {
    !signs.both() && y > 0.0 && r >= y
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::learn::lm::fit::Fit;
    use crate::learn::lm::goal::OneOutput;
    use crate::learn::lm::model::Model;
    use crate::learn::lm::model::Support;
    use crate::learn::lm::signed::tests::{D, N, with};
    use crate::network::weights::Weights;
    use crate::operator::sensing::Sensing;
    use std::{vec, vec::Vec};

    const W: [f32; D] = [1.0, -2.0, 0.5, 0.25];
    /// `|W · x|` has two neurons …
    const BOTH: [(f32, [f32; D]); 2] = [(1.0, W), (1.0, [-1.0, 2.0, -0.5, -0.25])];
    /// … and both of these are inactive on the rows of one.
    const AWAY: [(u32, f32); 2 * D] = [
        (4, -0.9),
        (5, 1.8),
        (6, -0.45),
        (7, -0.225),
        (8, -0.2),
        (9, 0.4),
        (10, -0.1),
        (11, -0.05),
    ];

    /// A cover of so many rows and weights.
    fn cover(rows: usize, room: usize) -> Cover<'static> {
        let words = |len| vec![0; len].leak();
        Cover::new(words(rows), words(rows), vec![0.0; rows].leak(), vec![0.0; room].leak())
    }

    /// Fits [`AWAY`] in some steps: losses before and after, the latter without a cover.
    fn steps<S: Sensing>(model: &mut Model<'_, S, OneOutput>) -> (f32, f32) {
        let before = model.loss().unwrap();
        model.improve(before, 20, 0.0).unwrap();
        model.fit.cover.switch(false);
        (before, model.loss().unwrap())
    }

    #[test]
    fn rows_without_active_neuron_need_cover_to_fit() {
        with(Signs::Positive, &BOTH, &AWAY, |model| {
            let (before, after) = steps(model);
            assert!(after > 0.5 * before && after > 1e-2, "{before} {after}");
        });
        with(Signs::Positive, &BOTH, &AWAY, |model| {
            model.fit.cover = cover(N, 64);
            model.fit.cover.switch(true);
            let (before, after) = steps(model);
            assert!(before > 1e-2 && after < 1e-11, "{before} {after}");
        });
    }

    #[test]
    fn dark_rows_belong_to_the_nearest_neuron() {
        let net = [(0, -1.0), (5, 2.0), (8, -0.1)];
        with(Signs::Positive, &BOTH, &net, |model| {
            let plain = model.loss().unwrap();
            let residual = model.fit.residual().to_vec();
            model.fit.cover = cover(N, 64);
            model.fit.cover.switch(true);
            assert!(model.loss().unwrap() > plain);
            let (targets, mut seen) = (model.fit.targets().collect::<Vec<_>>(), 0_u32);
            for (k, (y, r)) in targets.iter().zip(&residual).enumerate() {
                let (owner, left) = (model.fit.cover.owners[k], model.fit.residual()[k]);
                assert_eq!(owner != LIGHT, r >= y, "row {k}");
                if owner == LIGHT {
                    assert_eq!(left, *r);
                } else {
                    // What is left is the label and how far the owner is from activity.
                    assert!(left >= *y);
                    seen |= 1 << owner;
                }
            }
            // Neurons 0 and 2 active on the same rows, and 2 is always nearer.
            assert_eq!(seen & 0b101, 0b100);
        });
        with(Signs::Balanced, &BOTH, &net, |model| {
            let plain = model.loss().unwrap();
            model.fit.cover = cover(N, 64);
            model.fit.cover.switch(true);
            assert_eq!(model.loss().unwrap(), plain, "neurons of either sign need no cover");
        });
    }

    #[test]
    fn gradient_and_product_are_those_of_covered_loss() {
        let net = [(4, -0.9), (5, 1.8), (7, 0.3), (8, 0.2), (9, 0.4), (11, -0.7)];
        with(Signs::Positive, &[(1.0, W), (1.0, [0.0, 1.0, 1.0, 0.0])], &net, |model| {
            model.fit.cover = cover(N, 64);
            model.fit.cover.switch(true);
            let loss = model.loss().unwrap();
            let s = net.len();
            let (mut rhs, mut diagonal) = (vec![0.0; s], vec![0.0; s]);
            {
                let Model { fit, net, .. } = &mut *model;
                let w = net.view().w();
                let gates = fit.gates(w);
                let residual = fit.residual().to_vec();
                fit.sensing
                    .gradient_at(gates, w.index(), &residual, &mut rhs, fit.scratch)
                    .unwrap();
                fit.cover_gradient(w, &mut rhs, &mut diagonal).unwrap();
            }
            assert!(diagonal.iter().all(|d| *d >= 0.0) && diagonal.iter().any(|d| *d > 0.0));
            // Loss n falls by 2 rhs per unit of a weight.
            for (j, g) in rhs.iter().enumerate() {
                let step = 2e-3;
                let mut around = [step, -step].map(|step| {
                    model.net.values().0[j] += step;
                    let loss = model.loss().unwrap();
                    model.net.values().0[j] -= step;
                    loss
                });
                around[0] -= around[1];
                let slope = -around[0] / (2.0 * step) * N as f32 / 2.0;
                assert!(
                    (slope - g).abs() < 0.02 * g.abs().max(1.0),
                    "weight {j}: {slope} {g}, loss {loss}"
                );
            }
            // The product is a sum of squares: zero for no change, symmetric, never negative.
            let product = |fit: &mut Fit<'_, _, _>, p: &[f32]| {
                let mut out = vec![0.0; s];
                let index: Vec<u32> = net.iter().map(|entry| entry.0).collect();
                fit.cover_product(Weights::new(D, 7, &index, p).unwrap(), &mut out).unwrap();
                out
            };
            let unit =
                |j: usize| -> Vec<f32> { (0..s).map(|k| f32::from(u8::from(k == j))).collect() };
            let columns: Vec<Vec<f32>> =
                (0..s).map(|j| product(&mut model.fit, &unit(j))).collect();
            for (i, column) in columns.iter().enumerate() {
                assert!(column[i] >= 0.0);
                for (j, other) in columns.iter().enumerate() {
                    assert!((column[j] - other[i]).abs() < 1e-4 * (1.0 + column[i].abs()));
                }
            }
            assert!(columns[0][0] > 0.0 && columns[0][3] == 0.0, "neurons share no covered row");
        });
    }

    #[test]
    fn without_buffers_there_is_no_cover() {
        with(Signs::Positive, &BOTH, &AWAY, |model| {
            let plain = model.loss().unwrap();
            model.fit.cover.switch(true);
            assert_eq!(model.loss().unwrap(), plain);
            assert!(model.fit.cover.owned(1, &[1.0; N]).is_none());
        });
    }

    #[test]
    fn dark_rows_lack_output_for_a_positive_label() {
        assert!(is_dark(Signs::Positive, 1.0, 1.0) && is_dark(Signs::Positive, 1.0, 1.5));
        assert!(!is_dark(Signs::Positive, 1.0, 0.99) && !is_dark(Signs::Positive, 0.0, 0.0));
        assert!(!is_dark(Signs::Positive, -1.0, 0.0) && !is_dark(Signs::Positive, 1.0, f32::NAN));
        assert!(!is_dark(Signs::Balanced, 1.0, 1.0) && !is_dark(Signs::Free, 1.0, 1.0));
    }

    #[test]
    fn neuron_owns_residual_only_while_cover_is_on() {
        let mut cover = cover(4, 1);
        cover.switch(true);
        cover.owners.copy_from_slice(&[2, LIGHT, 1, 2]);
        let r = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(cover.owned(2, &r), Some(&mut [1.0, 0.0, 0.0, 4.0][..]));
        assert_eq!(cover.owned(1, &r), Some(&mut [0.0, 0.0, 3.0, 0.0][..]));
        assert_eq!(cover.owned(0, &r), None);
        cover.is_on = false;
        assert_eq!(cover.owned(2, &r), None);
        cover.switch(true);
        assert_eq!(cover.owned(2, &r), None);
        assert_eq!(*cover.owners, [LIGHT; 4]);
    }
}
