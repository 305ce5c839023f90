//! Cover: every row whose label no neuron is open for is given to the neuron that is nearest to opening there.
//!
//! Such a *dark* row has no gradient, so neither steps nor growth ever see it, however bright its label is, and a search
//! ends with it. With a cover the row counts with the activation of its neuron as it is, `(σ y - z_i)²` in place of `y²`,
//! in the loss, in the equations of a step, and in the gradient that growth looks at. Where no row is dark that is
//! the loss of the network; for one neuron on a fixed support it is convex once all labels that are not 0 are covered.
//!
//! It takes two more products of the neurons concerned for each product, and three numbers a row, so it is for problems of
//! few rows: where there are at least as many inputs as rows ([`crate::budget::Recovery::is_wide`]), and labels can be fitted
//! in many ways, what stalls a search are dark rows. Networks of several outputs and those with a linear term, which is
//! open everywhere, need none.

use super::fit::Fit;
use crate::error::Result;
use crate::gates::Signs;
use crate::math::norm2;
use crate::sensing::{Sensing, head_mut};
use crate::weights::{Weights, runs};

/// The owner of a row that is not dark.
const LIGHT: u32 = u32::MAX;
/// That of a dark row before one is found. Neurons have smaller numbers, since one of them has inputs.
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
    /// Off; the buffers are for three numbers a row and one for each weight that there is room for, or empty.
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

    /// `r` on the rows that neuron `i` owns and 0 elsewhere; none where it owns none.
    pub(super) fn owned(&mut self, i: usize, r: &[f32]) -> Option<&[f32]> {
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

/// Whether no neuron is open for a label y whose residual is r.
fn is_dark(signs: Signs, y: f32, r: f32) -> bool {
    (y > 0.0 && r >= y) || (signs.both() && y < 0.0 && r <= y)
}

impl<S: Sensing> Fit<'_, S> {
    /// Finds the owners of dark rows, and makes what they leave of the labels the residual there. `loss` is the mean square
    /// without a cover, and the residual that of `w`; returns the mean square with it.
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
        for ((owner, y), r) in owners.iter_mut().zip(self.targets()).zip(self.residual()) {
            *owner = if is_dark(signs, y, *r) { NOBODY } else { LIGHT };
            any |= *owner == NOBODY;
        }
        let mut loss = loss;
        if any {
            for block in w.blocks() {
                let (i, sign) = (block.neuron(), signs.sign(block.neuron()));
                self.image(open, block, image)?;
                let (targets, residual) = self.targets_and_residual();
                for (((owner, z), y), r) in owners.iter_mut().zip(&*image).zip(targets).zip(residual) {
                    let left = y - z;
                    if *owner != LIGHT && sign * y > 0.0 && (*owner == NOBODY || left.abs() < r.abs()) {
                        (*owner, *r) = (i as u32, left);
                    }
                }
            }
            loss = norm2(self.residual()) / rows as f32;
        }
        self.cover = cover;
        Ok(if loss.is_finite() { loss } else { f32::INFINITY })
    }

    /// What covered rows add to `Jᵀ r` and, about, to `diag(JᵀJ)`: the mean square of a column for each row. The owners stay those
    /// of the equations.
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
        let residual = self.residual.get(..rows).unwrap_or(&[]);
        for (i, run) in runs(w.inputs(), w.index()) {
            let support = w.index().get(run.clone()).unwrap_or(&[]);
            let count = cover.held.iter().filter(|owner| **owner as usize == i).count();
            let Some(owned) = cover.owned(i, residual).map(<[f32]>::len) else { continue };
            let part = head_mut(&mut *cover.part, support.len())?;
            self.sensing.gradient_at(open, support, head_mut(cover.image, owned)?, part, scratch)?;
            add(rhs.get_mut(run.clone()), part, 1.0);
            self.sensing.diagonal_at(open, support, part, scratch)?;
            add(diagonal.get_mut(run), part, count as f32 / rows as f32);
            self.rows_read = self.rows_read.saturating_add(2 * rows as u64);
        }
        Ok(())
    }

    /// What covered rows add to `JᵀJ p`.
    pub(super) fn cover_product(&mut self, p: Weights<'_>, out: &mut [f32]) -> Result<(), S::Source> {
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
            self.sensing.apply(open, p.block(i), image)?;
            for (z, owner) in image.iter_mut().zip(&**held) {
                if *owner as usize != i {
                    *z = 0.0;
                }
            }
            let support = p.index().get(run.clone()).unwrap_or(&[]);
            let part = head_mut(part, support.len())?;
            self.sensing.gradient_at(open, support, image, part, scratch)?;
            add(out.get_mut(run), part, 1.0);
            self.rows_read = self.rows_read.saturating_add(rows as u64);
        }
        Ok(())
    }
}

/// `out += factor part`.
fn add(out: Option<&mut [f32]>, part: &[f32], factor: f32) {
    out.unwrap_or_default().iter_mut().zip(part).for_each(|(out, x)| *out += factor * x);
}
