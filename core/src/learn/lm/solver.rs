//! Levenberg-Marquardt steps whose equations are solved by conjugate gradients, for any model.
//!
//! With the gates of the current weights a network is linear in small changes of its weights,
//! `δ -> J δ`. One step solves `(JᵀJ + λ diag(JᵀJ)) δ = Jᵀ r` to a relative residual, matrix-free, and is
//! accepted only if the loss of the true network falls; λ is the only length there is. Scaling by
//! the diagonal (Marquardt 1963) makes the result independent of the scale of the columns.

use crate::base::error::{self, Result};
use crate::operator::sensing::head_mut;
#[allow(unused_imports, reason = "documentation names it")]
use crate::operator::solve::Solved;
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
/// Attempts of one step, and products of one attempt, once the run was ended.
const HURRIED_ATTEMPTS: u32 = 2;
const HURRIED_PRODUCTS: u32 = 8;
/// Conjugate gradients end at this relative residual, in the norm of the preconditioner, if not
/// before.
const TOLERANCE: f32 = 1e-2;
/// A step that is to win less than this fraction of the loss is not worth a try in single
/// precision.
const WORTHLESS: f32 = 1e-6;

/// A network around its current weights, which stay the same: one step's equations.
pub(super) trait Equations {
    /// What reading the data may fail with.
    type Source;

    /// The weights, one per unknown.
    fn values(&self) -> &[f32];

    /// Residuals that are squared: the sum of their squares is so many times the loss.
    fn terms(&self) -> usize;

    /// `Jᵀ r` and `diag(JᵀJ)` at the current weights, whose residual is current.
    fn set_up(&mut self, rhs: &mut [f32], diagonal: &mut [f32]) -> Result<(), Self::Source>;

    /// `out = JᵀJ p`.
    fn multiply(&mut self, p: &[f32], out: &mut [f32]) -> Result<(), Self::Source>;

    /// Solves with this matrix; what [`Solved::won`] says.
    fn solve(
        &mut self,
        system: solve::Equations<'_>,
        unknowns: Unknowns<'_>,
    ) -> Result<f32, Self::Source> {
        let solved = conjugate_gradients(system, unknowns, |p, h| self.multiply(p, h))?;
        Ok(solved.won)
    }

    /// The loss of other weights on the same support; the residual is theirs from then on.
    fn try_out(&mut self, values: &[f32]) -> Result<f32, Self::Source>;

    /// Makes the residual that of the current weights again.
    fn restore(&mut self) -> Result<(), Self::Source>;
}

/// Where a step leads.
pub(super) struct Stepped<'v> {
    /// The loss, not above that before.
    pub(super) loss: f32,
    /// The weights it is of, where these are new.
    pub(super) values: Option<&'v [f32]>,
}

/// The damping, and six vectors on the support.
#[derive(Default)]
pub(super) struct Solver<'a> {
    vectors: Vectors<'a>,
    /// Attempts of one step, and products of one attempt, at the most.
    attempts: u32,
    products: u32,
    /// λ.
    lambda: f32,
}

/// Six vectors on the support, the caller's. Outside of [`Solver::improve`] all are free.
#[derive(Default)]
pub(super) struct Vectors<'a> {
    /// `Jᵀ r`.
    pub(super) rhs: &'a mut [f32],
    /// The residual of the equations.
    pub(super) g: &'a mut [f32],
    /// The direction of conjugate gradients.
    pub(super) p: &'a mut [f32],
    /// The equations' matrix times `p`; weights that are tried.
    pub(super) h: &'a mut [f32],
    /// `diag(JᵀJ)`.
    pub(super) diagonal: &'a mut [f32],
    /// The step δ.
    pub(super) delta: &'a mut [f32],
}

impl<'a> Vectors<'a> {
    pub(super) fn new([rhs, g, p, h, diagonal, delta]: [&'a mut [f32]; 6]) -> Self {
        Self { rhs, g, p, h, diagonal, delta }
    }

    /// Two of them, free for others between two fits: one for numbers, one for indices.
    pub(super) fn spare(&mut self) -> (&mut [f32], &mut [u32]) {
        (&mut *self.p, bytemuck::cast_slice_mut(&mut *self.g))
    }
}

impl<'a> Solver<'a> {
    /// Solves with at most `products` products an attempt.
    pub(super) fn new(vectors: Vectors<'a>, products: u32) -> Self {
        Self { vectors, attempts: ATTEMPTS, products, lambda: LAMBDA_START }
    }

    /// The vectors, free for others between two fits.
    pub(super) fn free(&mut self) -> &mut Vectors<'a> {
        &mut self.vectors
    }

    /// λ of the next step.
    pub(super) fn lambda(&self) -> f32 {
        self.lambda
    }

    /// Goes on with this λ.
    pub(super) fn set_lambda(&mut self, lambda: f32) {
        self.lambda = lambda;
    }

    /// Makes few attempts of few products from now on.
    pub(super) fn hurry(&mut self) {
        (self.attempts, self.products) = (HURRIED_ATTEMPTS, self.products.min(HURRIED_PRODUCTS));
    }

    /// Damps the next step as after a change that the equations do not see.
    pub(super) fn damp(&mut self) {
        self.lambda = self.lambda.max(LAMBDA_START);
    }

    /// At most `steps` Levenberg-Marquardt steps from the current weights, whose loss is `loss` and
    /// whose residual is current; fewer where no more can be won, or where `goal` is reached.
    /// `step` makes one ([`Self::step`]) and takes its weights. Returns the new loss, which is not
    /// above the old one.
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

    /// One step: equations, a trial, and another one with more damping where the loss does not
    /// fall.
    pub(super) fn step<E: Equations>(
        &mut self,
        equations: &mut E,
        loss: f32,
    ) -> Result<Stepped<'_>, E::Source> {
        let (s, terms) = (equations.values().len(), equations.terms());
        if s == 0 || !loss.is_finite() {
            return Ok(Stepped { loss, values: None });
        }
        let rhs = head_mut(&mut *self.vectors.rhs, s)?;
        let diagonal = head_mut(&mut *self.vectors.diagonal, s)?;
        equations.set_up(rhs, diagonal)?;
        error::finite("gradient", rhs)?;
        error::finite("squared column norms", diagonal)?;
        self.lambda = self.lambda.min(LAMBDA_CAP);
        for _ in 0..self.attempts {
            let won = self.solve(equations)?;
            if !(won > WORTHLESS * loss * terms as f32) {
                break;
            }
            let Vectors { h, delta, .. } = &mut self.vectors;
            // The vector h is free once the equations are solved: it holds the weights that are
            // tried.
            let h = head_mut(h, s)?;
            for (new, (old, delta)) in h.iter_mut().zip(equations.values().iter().zip(&**delta)) {
                *new = old + delta;
            }
            let trial = equations.try_out(h)?;
            if trial < loss {
                self.lambda = (self.lambda / 5.0).max(LAMBDA_LEAST);
                return Ok(Stepped { loss: trial, values: self.vectors.h.get(..s) });
            }
            self.lambda = 8.0 * self.lambda.max(LAMBDA_RETRY);
        }
        equations.restore()?;
        Ok(Stepped { loss, values: None })
    }

    /// `delta` from the equations of this step; returns `rhs · delta`, twice what the linear model
    /// wins.
    #[inline(never)]
    fn solve<E: Equations>(&mut self, equations: &mut E) -> Result<f32, E::Source> {
        let s = equations.values().len();
        let Vectors { rhs, g, p, h, diagonal, delta } = &mut self.vectors;
        let system = solve::Equations {
            rhs: head_mut(rhs, s)?,
            diagonal: head_mut(diagonal, s)?,
            lambda: self.lambda,
            tolerance: TOLERANCE,
            products: self.products,
        };
        let [delta, g, p, h] = [delta, g, p, h].map(|v| head_mut::<_, E::Source>(v, s));
        equations.solve(system, Unknowns { delta: delta?, g: g?, p: p?, h: h? })
    }
}

#[cfg(test)]
mod tests;
