//! The loss of a network of one output, and the equations of its steps, with the rows that are
//! [covered](super::cover).

use super::cover::{LIGHT, NOBODY, is_dark};
use super::fit::{Fit, Readout, cut};
use super::solver::Equations;
use crate::base::error::{Error, Result};
use crate::base::math::norm2;
use crate::network::gates::Gates;
use crate::network::weights::{Weights, runs};
use crate::operator::machine::Machine;
use crate::operator::sensing::{Rows, Sensing, head_mut, row_head};
use crate::operator::solve::{self, Unknowns, conjugate_gradients};

impl<S: Sensing, H: Readout<S>> Fit<'_, S, H> {
    /// Mean squared error of `w` with its [cover](super::cover), whose residual stays in
    /// [`Self::residual`]; infinity where it is no number.
    #[inline(never)]
    pub(super) fn loss(&mut self, w: Weights<'_>) -> Result<f32, S::Source> {
        let (rows, gates) = (self.rows(), self.gates(w));
        self.read();
        let out = row_head::<S>(self.residual, rows)?;
        if w.nnz() == 0 {
            self.sensing.machine().fill(out, 0.0);
        } else {
            self.sensing.forward(gates, w, out)?;
        }
        let loss = self.mean_square()?;
        self.cover(w, loss)
    }

    /// Finds the owners of dark rows, and makes what they leave of the labels the residual there;
    /// the loss with a cover, `loss` being that without.
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
                let targets = self.targets();
                let residual = S::Machine::numbers_mut(self.residual).unwrap_or_default();
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

    /// What covered rows add to `Jᵀ r` and, about, to `diag(JᵀJ)`: a mean square for each row.
    pub(super) fn cover_gradient(
        &mut self,
        w: Weights<'_>,
        rhs: &mut [f32],
        diagonal: &mut [f32],
    ) -> Result<(), S::Source> {
        if !self.cover.is_on {
            return Ok(());
        }
        let (rows, open) = (self.rows(), self.open());
        self.cover.of_equations.copy_from_slice(self.cover.owners);
        for (i, run) in runs(w.inputs(), w.index()) {
            let residual = numbers::<S>(self.residual).get(..rows).unwrap_or(&[]);
            if self.cover.owned(i, residual).is_none() {
                continue;
            }
            let support = w.index().get(run.clone()).unwrap_or(&[]);
            self.add_image(support, rhs.get_mut(run.clone()))?;
            let part = head_mut(self.cover.buffer, support.len())?;
            self.sensing.diagonal_at(open, support, part, self.scratch)?;
            let count = self.cover.owners.iter().filter(|owner| **owner as usize == i).count();
            add(diagonal.get_mut(run), part, count as f32 / rows as f32);
            self.read();
        }
        Ok(())
    }

    /// What covered rows add to `JᵀJ p`.
    pub(super) fn cover_product(
        &mut self,
        p: Weights<'_>,
        out: &mut [f32],
    ) -> Result<(), S::Source> {
        if !self.cover.is_on || self.cover.of_equations.iter().all(|owner| *owner == LIGHT) {
            return Ok(());
        }
        let (rows, open) = (self.rows(), self.open());
        for (i, run) in runs(p.inputs(), p.index()) {
            let Self { sensing, cover, .. } = self;
            if !cover.of_equations.iter().any(|owner| *owner as usize == i) {
                continue;
            }
            let image = head_mut(cover.image, rows)?;
            image.fill(0.0);
            let z = sensing.machine().rows_in(image);
            sensing.apply(open, p.block(i), z)?;
            for (z, owner) in image.iter_mut().zip(&*cover.of_equations) {
                if *owner as usize != i {
                    *z = 0.0;
                }
            }
            let support = p.index().get(run.clone()).unwrap_or(&[]);
            self.add_image(support, out.get_mut(run))?;
        }
        Ok(())
    }

    /// Adds `A_iᵀ z` on the support of neuron i to `out`, z being the image of the cover.
    fn add_image(&mut self, support: &[u32], out: Option<&mut [f32]>) -> Result<(), S::Source> {
        let (rows, open) = (self.rows(), self.open());
        let Self { sensing, cover, scratch, .. } = self;
        let part = head_mut(cover.buffer, support.len())?;
        let z = sensing.machine().rows_in(head_mut(cover.image, rows)?);
        sensing.gradient_at(open, support, z, part, scratch)?;
        add(out, part, 1.0);
        self.read();
        Ok(())
    }
}

/// A network of one output on its support: `J = A_S`.
pub(super) struct Jacobian<'f, 'a, 'w, S: Sensing, H> {
    pub(super) fit: &'f mut Fit<'a, S, H>,
    pub(super) w: Weights<'w>,
    /// Those of the weights, held once the equations are set up.
    gates: Gates<'w>,
    /// Whether products leave rows without residual out themselves, since the gates are open there.
    by_hand: bool,
    /// For such products: outputs, and the residual of the weights.
    image: &'f mut Rows<S>,
    kept: &'f mut Rows<S>,
}

fn with<'v, E>(w: Weights<'v>, values: &'v [f32]) -> Result<Weights<'v>, E> {
    Weights::new(w.inputs(), w.hidden(), w.index(), values).map_err(Error::widen)
}

impl<S: Sensing, H: Readout<S>> Equations for Jacobian<'_, '_, '_, S, H> {
    type Source = S::Source;

    fn values(&self) -> &[f32] {
        self.w.value()
    }

    fn terms(&self) -> usize {
        self.fit.terms()
    }

    fn set_up(&mut self, rhs: &mut [f32], diagonal: &mut [f32]) -> Result<(), S::Source> {
        let (w, rows) = (self.w, self.fit.rows());
        let slack = self.fit.slack;
        let Fit { sensing, residual, scratch, rows_read, .. } = &mut *self.fit;
        let residual = cut::<S>(residual, rows);
        let part =
            if slack > 0.0 { sensing.hold_where(self.gates, w.index(), residual)? } else { None };
        self.by_hand = slack > 0.0 && part.is_none();
        if self.by_hand {
            // That of other weights takes its place when they are tried. The diagonal is that of all
            // rows, which damps more.
            sensing.machine().copy(residual, row_head::<S>(&mut *self.kept, rows)?);
        }
        self.gates = match part {
            Some(gates) => gates,
            None => sensing.hold(self.gates, w.index())?,
        };
        sensing.gradient_at(self.gates, w.index(), residual, rhs, scratch)?;
        sensing.diagonal_at(self.gates, w.index(), diagonal, scratch)?;
        sensing.sum(rhs)?;
        sensing.sum(diagonal)?;
        *rows_read = rows_read.saturating_add(2 * rows as u64);
        self.fit.cover_gradient(w, rhs, diagonal)
    }

    fn multiply(&mut self, p: &[f32], out: &mut [f32]) -> Result<(), S::Source> {
        let direction = with(self.w, p)?;
        if self.by_hand {
            self.multiply_by_hand(direction, out)?;
        } else {
            self.fit.sensing.normal_at(self.gates, direction, out, self.fit.scratch)?;
        }
        self.fit.sensing.sum(out)?;
        self.fit.read();
        self.fit.cover_product(direction, out)
    }

    fn solve(
        &mut self,
        system: solve::Equations<'_>,
        unknowns: Unknowns<'_>,
    ) -> Result<(), S::Source> {
        if self.fit.cover.is_on || self.by_hand {
            // Covered rows add to every product, and those without residual to none.
            return conjugate_gradients(system, unknowns, |p, h| self.multiply(p, h)).map(drop);
        }
        let Fit { sensing, scratch, .. } = &mut *self.fit;
        let solved = sensing.solve_at(self.gates, self.w.index(), system, unknowns, scratch)?;
        let rows = (self.fit.rows() as u64).saturating_mul(solved.products.into());
        self.fit.rows_read = self.fit.rows_read.saturating_add(rows);
        Ok(())
    }

    fn loss(&mut self, values: Option<&[f32]>) -> Result<f32, S::Source> {
        let w = values.map_or(Ok(self.w), |values| with(self.w, values))?;
        self.fit.loss(w)
    }
}

impl<'f, 'a, 'w, S: Sensing, H: Readout<S>> Jacobian<'f, 'a, 'w, S, H> {
    /// With memory for two numbers a row.
    pub(super) fn new(
        fit: &'f mut Fit<'a, S, H>,
        w: Weights<'w>,
        [image, kept]: [&'f mut Rows<S>; 2],
    ) -> Self {
        Self { gates: fit.gates(w), fit, w, by_hand: false, image, kept }
    }

    /// `out = JᵀJ p` of the rows that have a residual.
    fn multiply_by_hand(&mut self, p: Weights<'_>, out: &mut [f32]) -> Result<(), S::Source> {
        let rows = self.fit.rows();
        let Fit { sensing, scratch, .. } = &mut *self.fit;
        let z = row_head::<S>(&mut *self.image, rows)?;
        sensing.forward(self.gates, p, z)?;
        sensing.machine().keep(z, cut::<S>(self.kept, rows));
        sensing.gradient_at(self.gates, p.index(), z, out, scratch)
    }
}

/// The numbers of rows that can be read here.
pub(super) fn numbers<S: Sensing>(rows: &Rows<S>) -> &[f32] {
    S::Machine::numbers(rows).unwrap_or(&[])
}

fn add(out: Option<&mut [f32]>, part: &[f32], factor: f32) {
    out.unwrap_or_default().iter_mut().zip(part).for_each(|(out, x)| *out += factor * x);
}
