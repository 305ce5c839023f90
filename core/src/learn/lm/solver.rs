//! Levenberg-Marquardt steps whose equations are solved by conjugate gradients, for any model.
//!
//! With the gates of the current weights a network is linear in small changes of its weights,
//! `δ -> J δ`. One step solves `(JᵀJ + λ diag(JᵀJ)) δ = Jᵀ r` to a relative residual, matrix-free.

use crate::base::error::{self, Result};
use crate::base::math::dot;
use crate::operator::sensing::head_mut;
use crate::operator::solve::{self, Unknowns, conjugate_gradients};

/// Damping at the start and after a move.
pub(super) const LAMBDA_START: f32 = 1e-2;
/// Damping at the start of a step is at most this.
const LAMBDA_CAP: f32 = 0.1;
/// Damping never falls below this.
const LAMBDA_LEAST: f32 = 1e-6;
/// Least damping after a step that failed, before it is raised.
const LAMBDA_RETRY: f32 = 1e-5;
/// Attempts of one step.
const ATTEMPTS: u32 = 7;
/// The same once the run was ended, and products of one attempt then.
const HURRIED_ATTEMPTS: u32 = 2;
const HURRIED_PRODUCTS: u32 = 8;
/// Conjugate gradients end at this relative residual, in the norm of the preconditioner.
const TOLERANCE: f32 = 1e-2;
/// A step that is to win less than this fraction of the loss is not worth a try.
const WORTHLESS: f32 = 1e-6;

/// A network around its current weights, which stay the same: one step's equations.
pub(super) trait Equations {
    type Source;

    fn values(&self) -> &[f32];

    /// Residuals that are squared: the sum of their squares is so many times the loss.
    fn terms(&self) -> usize;

    /// `Jᵀ r` and `diag(JᵀJ)` at the current weights, whose residual is current.
    fn set_up(&mut self, rhs: &mut [f32], diagonal: &mut [f32]) -> Result<(), Self::Source>;

    /// `out = JᵀJ p`.
    fn multiply(&mut self, p: &[f32], out: &mut [f32]) -> Result<(), Self::Source>;

    /// Solves with this matrix.
    fn solve(
        &mut self,
        system: solve::Equations<'_>,
        unknowns: Unknowns<'_>,
    ) -> Result<(), Self::Source> {
        conjugate_gradients(system, unknowns, |p, h| self.multiply(p, h)).map(drop)
    }

    /// The loss of other weights on the same support, or of the current ones; the residual is theirs
    /// from then on.
    fn loss(&mut self, values: Option<&[f32]>) -> Result<f32, Self::Source>;
}

pub(super) struct Stepped<'v> {
    /// The loss, not above that before.
    pub(super) loss: f32,
    /// The weights it is of; empty where they stay.
    pub(super) values: &'v [f32],
}

/// The damping, and six vectors on the support, which are free outside of [`Solver::improve`].
pub(super) struct Solver<'a> {
    /// Attempts of one step, and products of one attempt, at the most.
    attempts: u32,
    products: u32,
    pub(super) lambda: f32,
    pub(super) rhs: &'a mut [f32],
    /// The residual of the equations.
    pub(super) g: &'a mut [f32],
    /// The direction of conjugate gradients.
    pub(super) p: &'a mut [f32],
    /// The equations' matrix times `p`; weights that are tried.
    pub(super) h: &'a mut [f32],
    pub(super) diagonal: &'a mut [f32],
    pub(super) delta: &'a mut [f32],
}

impl<'a> Solver<'a> {
    /// Solves with at most `products` products an attempt.
    pub(super) fn new(vectors: [&'a mut [f32]; 6], products: u32) -> Self {
        let [rhs, g, p, h, diagonal, delta] = vectors;
        let (attempts, lambda) = (ATTEMPTS, LAMBDA_START);
        Self { attempts, products, lambda, rhs, g, p, h, diagonal, delta }
    }

    /// The first `len` elements of two vectors, `p` and `g`: one for numbers, one for indices.
    pub(super) fn spare<E>(&mut self, len: usize) -> Result<(&mut [f32], &mut [u32]), E> {
        Ok((head_mut(self.p, len)?, head_mut(bytemuck::cast_slice_mut(self.g), len)?))
    }

    /// Makes few attempts of few products from now on.
    pub(super) fn hurry(&mut self) {
        (self.attempts, self.products) = (HURRIED_ATTEMPTS, self.products.min(HURRIED_PRODUCTS));
    }

    /// Damps the next step as after a change that the equations do not see.
    pub(super) fn damp(&mut self) {
        self.lambda = self.lambda.max(LAMBDA_START);
    }

    /// At most `steps` Levenberg-Marquardt steps from weights whose residual is current; fewer where
    /// no more can be won, or `goal` is reached. `step` makes one ([`Self::step`]) and takes its
    /// weights. Returns the new loss, not above the old one.
    #[inline(never)]
    pub(super) fn improve<E>(
        &mut self,
        mut loss: f32,
        steps: u32,
        goal: f32,
        mut step: impl FnMut(&mut Self, f32) -> Result<f32, E>,
    ) -> Result<f32, E> {
        for _ in 0..steps {
            if loss <= goal {
                break;
            }
            let before = loss;
            loss = step(self, loss)?;
            if loss >= before {
                break;
            }
        }
        Ok(loss)
    }

    /// One step: equations, a trial, and more with more damping while the loss does not fall.
    pub(super) fn step<E: Equations>(
        &mut self,
        equations: &mut E,
        loss: f32,
    ) -> Result<Stepped<'_>, E::Source> {
        let (s, terms) = (equations.values().len(), equations.terms());
        if s == 0 || !loss.is_finite() {
            return Ok(Stepped { loss, values: &[] });
        }
        let (rhs, diagonal) = (head_mut(self.rhs, s)?, head_mut(self.diagonal, s)?);
        equations.set_up(rhs, diagonal)?;
        error::finite("gradient", rhs)?;
        error::finite("squared column norms", diagonal)?;
        self.lambda = self.lambda.min(LAMBDA_CAP);
        for _ in 0..self.attempts {
            let won = self.solve(equations)?;
            if !(won > WORTHLESS * loss * terms as f32) {
                break;
            }
            // h is free once the equations are solved: it holds the weights that are tried.
            let h = head_mut(self.h, s)?;
            for (new, (old, delta)) in h.iter_mut().zip(equations.values().iter().zip(&*self.delta))
            {
                *new = old + delta;
            }
            let trial = equations.loss(Some(h))?;
            if trial < loss {
                self.lambda = (self.lambda / 5.0).max(LAMBDA_LEAST);
                return Ok(Stepped { loss: trial, values: self.h.get(..s).unwrap_or(&[]) });
            }
            self.lambda = 8.0 * self.lambda.max(LAMBDA_RETRY);
        }
        equations.loss(None)?;
        Ok(Stepped { loss, values: &[] })
    }

    /// `delta` from the equations of this step; `rhs · delta`, twice what the linear model wins.
    #[inline(never)]
    fn solve<E: Equations>(&mut self, equations: &mut E) -> Result<f32, E::Source> {
        let s = equations.values().len();
        let Self { rhs, g, p, h, diagonal, delta, lambda, products, .. } = self;
        let system = solve::Equations {
            diagonal: Some(head_mut(diagonal, s)?),
            lambda: *lambda,
            tolerance: TOLERANCE,
            products: *products,
        };
        let (rhs, delta, g) = (head_mut(rhs, s)?, head_mut(delta, s)?, head_mut(g, s)?);
        let (p, h) = (head_mut(p, s)?, head_mut(h, s)?);
        delta.fill(0.0);
        g.copy_from_slice(rhs);
        equations.solve(system, Unknowns { delta: &mut *delta, g, p, h })?;
        Ok(dot(rhs, delta))
    }
}

/// These entries, (flat index, value), in two vectors, as far as there is room.
pub(super) fn entries<'v>(
    index: &'v mut [f32],
    value: &'v mut [f32],
    of: impl Iterator<Item = (u32, f32)>,
) -> (&'v [u32], &'v [f32]) {
    let index: &mut [u32] = bytemuck::cast_slice_mut(index);
    let mut len = 0;
    for ((index, value), entry) in index.iter_mut().zip(&mut *value).zip(of) {
        (*index, *value) = entry;
        len += 1;
    }
    (index.get(..len).unwrap_or(&[]), value.get(..len).unwrap_or(&[]))
}

#[cfg(test)]
mod tests;
