//! Cover: every row whose label no neuron is open for is given to the neuron that is nearest to
//! opening there.
//!
//! Such a *dark* row has no gradient, so neither steps nor growth ever see it, however bright its
//! label is, and a search ends with it. With a cover the row counts with the activation of its
//! neuron as it is, `(σ y - z_i)²` in place of `y²`, in the loss, in the equations of a step, and
//! in the gradient that growth looks at. Where no row is dark that is the loss of the network; for
//! one neuron on a fixed support it is convex once all labels that are not 0 are covered.
//!
//! It takes two more products of the neurons concerned for each product, and three numbers a row,
//! so it is for few rows ([`crate::base::budget::Recovery::is_wide`]) and few weights for their
//! labels, where dark rows are what stalls a search. Output weights are positive: among neurons of
//! either sign a row is seldom dark, and a linear term is open everywhere. It looks at rows one by
//! one, so it is for rows that can be read here ([`Machine::numbers`]).

use super::fit::Fit;
use crate::base::error::Result;
use crate::base::math::norm2;
use crate::network::gates::Signs;
use crate::network::weights::{Weights, runs};
use crate::operator::machine::Machine;
use crate::operator::sensing::{Rows, Sensing, head_mut};

/// The owner of a row that is not dark.
const LIGHT: u32 = u32::MAX;
/// That of a dark row before one is found. Neurons have smaller numbers, since one of them has
/// inputs.
const NOBODY: u32 = u32::MAX - 1;

/// Which neuron covers which row. Without buffers there is no cover.
#[derive(Default)]
pub(super) struct Cover<'a> {
    /// The owner of each row, under the weights whose loss was computed last.
    owners: &'a mut [u32],
    /// The same for the weights that the equations are those of.
    held: &'a mut [u32],
    /// One number a row.
    image: &'a mut [f32],
    /// One number a weight.
    part: &'a mut [f32],
    is_on: bool,
}

impl<'a> Cover<'a> {
    /// Off; the buffers are for three numbers a row and one for each weight that there is room for,
    /// or empty.
    pub(super) fn new(
        owners: &'a mut [u32],
        held: &'a mut [u32],
        image: &'a mut [f32],
        part: &'a mut [f32],
    ) -> Self {
        owners.fill(LIGHT);
        held.fill(LIGHT);
        Self { owners, held, image, part, is_on: false }
    }

    /// From the next loss on, where there are buffers.
    pub(super) fn switch(&mut self, is_on: bool) {
        self.is_on = is_on && !self.owners.is_empty();
        self.owners.fill(LIGHT);
    }

    pub(super) fn is_on(&self) -> bool {
        self.is_on
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

/// Whether no neuron is open for a label y whose residual is r: with neurons of either sign none
/// may be missing.
fn is_dark(signs: Signs, y: f32, r: f32) -> bool {
    !signs.both() && y > 0.0 && r >= y
}

impl<S: Sensing> Fit<'_, S> {
    /// Finds the owners of dark rows, and makes what they leave of the labels the residual there.
    /// `loss` is the mean square without a cover, and the residual that of `w`; returns the mean
    /// square with it.
    #[inline(never)]
    pub(super) fn cover(&mut self, w: Weights<'_>, loss: f32) -> Result<f32, S::Source> {
        if !self.cover.is_on || !loss.is_finite() {
            return Ok(loss);
        }
        let (rows, signs, open) = (self.rows(), self.signs, self.open());
        let cover = core::mem::take(&mut self.cover);
        let owners = head_mut(&mut *cover.owners, rows)?;
        let image = head_mut(&mut *cover.image, rows)?;
        let mut any = false;
        for ((owner, y), r) in
            owners.iter_mut().zip(self.targets()).zip(numbers::<S>(self.residual()))
        {
            *owner = if is_dark(signs, y, *r) { NOBODY } else { LIGHT };
            any |= *owner == NOBODY;
        }
        let mut loss = loss;
        if any {
            for block in w.blocks() {
                let i = block.neuron() as u32;
                let z = self.sensing.machine().rows_in(image);
                self.image(open, block, z)?;
                let (targets, residual) = self.targets_and_residual();
                for (((owner, z), y), r) in
                    owners.iter_mut().zip(&*image).zip(targets).zip(residual)
                {
                    let left = y - z;
                    if *owner != LIGHT && (*owner == NOBODY || left < *r) {
                        (*owner, *r) = (i, left);
                    }
                }
            }
            loss = norm2(numbers::<S>(self.residual())) / rows as f32;
        }
        self.cover = cover;
        Ok(if loss.is_finite() { loss } else { f32::INFINITY })
    }

    /// What covered rows add to `Jᵀ r` and, about, to `diag(JᵀJ)`: the mean square of a column for
    /// each row. The owners stay those of the equations.
    pub(super) fn cover_gradient(
        &mut self,
        w: Weights<'_>,
        rhs: &mut [f32],
        diagonal: &mut [f32],
    ) -> Result<(), S::Source> {
        if !self.cover.is_on {
            return Ok(());
        }
        let (rows, open, scratch) = (self.rows(), self.open(), &mut *self.scratch);
        let cover = &mut self.cover;
        cover.held.copy_from_slice(cover.owners);
        let residual = numbers::<S>(self.residual).get(..rows).unwrap_or(&[]);
        for (i, run) in runs(w.inputs(), w.index()) {
            let support = w.index().get(run.clone()).unwrap_or(&[]);
            let count = cover.held.iter().filter(|owner| **owner as usize == i).count();
            let Some(owned) = cover.owned(i, residual).map(|owned| owned.len()) else { continue };
            let part = head_mut(&mut *cover.part, support.len())?;
            let owned = self.sensing.machine().rows_in(head_mut(cover.image, owned)?);
            self.sensing.gradient_at(open, support, owned, part, scratch)?;
            add(rhs.get_mut(run.clone()), part, 1.0);
            self.sensing.diagonal_at(open, support, part, scratch)?;
            add(diagonal.get_mut(run), part, count as f32 / rows as f32);
            self.rows_read = self.rows_read.saturating_add(2 * rows as u64);
        }
        Ok(())
    }

    /// What covered rows add to `JᵀJ p`.
    pub(super) fn cover_product(
        &mut self,
        p: Weights<'_>,
        out: &mut [f32],
    ) -> Result<(), S::Source> {
        if !self.cover.is_on || self.cover.held.iter().all(|owner| *owner == LIGHT) {
            return Ok(());
        }
        let (rows, open, scratch) = (self.rows(), self.open(), &mut *self.scratch);
        let Cover { held, image, part, .. } = &mut self.cover;
        let image = head_mut(image, rows)?;
        for (i, run) in runs(p.inputs(), p.index()) {
            if !held.iter().any(|owner| *owner as usize == i) {
                continue;
            }
            image.fill(0.0);
            let z = self.sensing.machine().rows_in(image);
            self.sensing.apply(open, p.block(i), z)?;
            for (z, owner) in image.iter_mut().zip(&**held) {
                if *owner as usize != i {
                    *z = 0.0;
                }
            }
            let support = p.index().get(run.clone()).unwrap_or(&[]);
            let part = head_mut(part, support.len())?;
            let z = self.sensing.machine().rows_in(image);
            self.sensing.gradient_at(open, support, z, part, scratch)?;
            add(out.get_mut(run), part, 1.0);
            self.rows_read = self.rows_read.saturating_add(rows as u64);
        }
        Ok(())
    }
}

/// The numbers of rows that can be read here.
pub(super) fn numbers<S: Sensing>(rows: &Rows<S>) -> &[f32] {
    S::Machine::numbers(rows).unwrap_or(&[])
}

/// `out += factor part`.
fn add(out: Option<&mut [f32]>, part: &[f32], factor: f32) {
    out.unwrap_or_default().iter_mut().zip(part).for_each(|(out, x)| *out += factor * x);
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::learn::lm::bench::Bench;
    use crate::learn::lm::bench::tests::{D, N, with};
    use crate::learn::lm::problem::Problem;
    use std::{vec, vec::Vec};

    const W: [f32; D] = [1.0, -2.0, 0.5, 0.25];
    /// `|W · x|` has two neurons …
    const BOTH: [(f32, [f32; D]); 2] = [(1.0, W), (1.0, [-1.0, 2.0, -0.5, -0.25])];
    /// … and both of these are closed on the rows of one.
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
    fn steps<S: Sensing>(bench: &mut Bench<'_, S>) -> (f32, f32) {
        let before = bench.loss().unwrap();
        bench.improve(before, 20, 0.0).unwrap();
        bench.fit.cover.switch(false);
        (before, bench.loss().unwrap())
    }

    #[test]
    fn rows_that_all_neurons_are_closed_on_are_fitted_with_a_cover_only() {
        with(Signs::Positive, &BOTH, &AWAY, |bench| {
            let (before, after) = steps(bench);
            assert!(after > 0.5 * before && after > 1e-2, "{before} {after}");
        });
        with(Signs::Positive, &BOTH, &AWAY, |bench| {
            bench.fit.cover = cover(N, 64);
            bench.fit.cover.switch(true);
            let (before, after) = steps(bench);
            assert!(before > 1e-2 && after < 1e-11, "{before} {after}");
        });
    }

    #[test]
    fn dark_rows_belong_to_the_nearest_neuron() {
        let net = [(0, -1.0), (5, 2.0), (8, -0.1)];
        with(Signs::Positive, &BOTH, &net, |bench| {
            let plain = bench.loss().unwrap();
            let residual = bench.fit.residual().to_vec();
            bench.fit.cover = cover(N, 64);
            bench.fit.cover.switch(true);
            assert!(bench.loss().unwrap() > plain);
            let (targets, mut seen) = (bench.fit.targets().collect::<Vec<_>>(), 0_u32);
            for (k, (y, r)) in targets.iter().zip(&residual).enumerate() {
                let (owner, left) = (bench.fit.cover.owners[k], bench.fit.residual()[k]);
                assert_eq!(owner != LIGHT, r >= y, "row {k}");
                if owner == LIGHT {
                    assert_eq!(left, *r);
                } else {
                    // What is left is the label and how far the owner is from opening.
                    assert!(left >= *y);
                    seen |= 1 << owner;
                }
            }
            // Neurons 0 and 2 open on the same rows, and 2 is always nearer.
            assert_eq!(seen & 0b101, 0b100);
        });
        with(Signs::Balanced, &BOTH, &net, |bench| {
            let plain = bench.loss().unwrap();
            bench.fit.cover = cover(N, 64);
            bench.fit.cover.switch(true);
            assert_eq!(bench.loss().unwrap(), plain, "neurons of either sign need no cover");
        });
    }

    #[test]
    fn gradient_and_product_are_those_of_the_covered_loss() {
        let net = [(4, -0.9), (5, 1.8), (7, 0.3), (8, 0.2), (9, 0.4), (11, -0.7)];
        with(Signs::Positive, &[(1.0, W), (1.0, [0.0, 1.0, 1.0, 0.0])], &net, |bench| {
            bench.fit.cover = cover(N, 64);
            bench.fit.cover.switch(true);
            let loss = bench.loss().unwrap();
            let s = net.len();
            let (mut rhs, mut diagonal) = (vec![0.0; s], vec![0.0; s]);
            {
                let Bench { fit, net, .. } = &mut *bench;
                let w = net.view();
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
                    bench.net.values()[j] += step;
                    let loss = bench.loss().unwrap();
                    bench.net.values()[j] -= step;
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
            let product = |fit: &mut Fit<'_, _>, p: &[f32]| {
                let mut out = vec![0.0; s];
                let index: Vec<u32> = net.iter().map(|entry| entry.0).collect();
                fit.cover_product(Weights::new(D, 7, &index, p).unwrap(), &mut out).unwrap();
                out
            };
            let unit =
                |j: usize| -> Vec<f32> { (0..s).map(|k| f32::from(u8::from(k == j))).collect() };
            let columns: Vec<Vec<f32>> =
                (0..s).map(|j| product(&mut bench.fit, &unit(j))).collect();
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
        with(Signs::Positive, &BOTH, &AWAY, |bench| {
            let plain = bench.loss().unwrap();
            bench.fit.cover.switch(true);
            assert_eq!(bench.loss().unwrap(), plain);
            assert!(bench.fit.cover.owned(1, &[1.0; N]).is_none());
        });
    }

    #[test]
    fn a_row_is_dark_where_a_label_above_zero_gets_nothing_from_neurons_that_are_all_positive() {
        assert!(is_dark(Signs::Positive, 1.0, 1.0) && is_dark(Signs::Positive, 1.0, 1.5));
        assert!(!is_dark(Signs::Positive, 1.0, 0.99) && !is_dark(Signs::Positive, 0.0, 0.0));
        assert!(!is_dark(Signs::Positive, -1.0, 0.0) && !is_dark(Signs::Positive, 1.0, f32::NAN));
        assert!(!is_dark(Signs::Balanced, 1.0, 1.0) && !is_dark(Signs::Free, 1.0, 1.0));
    }

    #[test]
    fn a_neuron_owns_the_residual_of_its_rows_and_nothing_once_the_cover_is_off() {
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
