//! Conjugate gradients for damped normal equations on a support.

use crate::base::error::Result;
use crate::base::math::{axpy, dot};

/// `(A_S^T A_S + lambda D) delta = rhs`, D being the diagonal of `A_S^T A_S` (Marquardt 1963), and
/// when to end.
#[derive(Debug, Clone, Copy)]
pub struct Equations<'a> {
    /// The right-hand side, one number per entry of the support.
    pub rhs: &'a [f32],
    /// The diagonal of `A_S^T A_S`; an entry of 0 has no equation, and its unknown stays 0.
    pub diagonal: &'a [f32],
    /// The damping.
    pub lambda: f32,
    /// Ends at this relative residual, in the norm of the preconditioner.
    pub tolerance: f32,
    /// Products at the most.
    pub products: u32,
}

/// Vectors of a solve, each as long as the support.
#[derive(Debug)]
pub struct Unknowns<'a> {
    /// The solution.
    pub delta: &'a mut [f32],
    /// The residual of the equations.
    pub g: &'a mut [f32],
    /// The direction.
    pub p: &'a mut [f32],
    /// The matrix times the direction.
    pub h: &'a mut [f32],
}

/// What a solve has done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Solved {
    /// `rhs · delta`, twice what the linear model wins.
    pub won: f32,
    /// Products.
    pub products: u32,
}

/// Solves by conjugate gradients preconditioned with the diagonal; `multiply` writes `A_S^T A_S p`
/// to its second argument.
///
/// # Errors
/// Those of `multiply`.
pub fn conjugate_gradients<E>(
    equations: Equations<'_>,
    unknowns: Unknowns<'_>,
    mut multiply: impl FnMut(&[f32], &mut [f32]) -> Result<(), E>,
) -> Result<Solved, E> {
    let Equations { rhs, diagonal, lambda, tolerance, .. } = equations;
    let Unknowns { delta, g, p, h } = unknowns;
    debug_assert!([diagonal.len(), delta.len(), g.len(), p.len(), h.len()] == [rhs.len(); 5]);
    let damping = 1.0 + lambda;
    // A column without norm has no equation: its weight stays.
    let solved =
        |diagonal: f32, g: f32| if diagonal > 0.0 { g / (diagonal * damping) } else { 0.0 };
    delta.fill(0.0);
    g.iter_mut().zip(rhs).for_each(|(g, rhs)| *g = *rhs);
    let mut slope = 0.0;
    for ((p, g), d) in p.iter_mut().zip(&*g).zip(diagonal) {
        *p = solved(*d, *g);
        slope += *p * g;
    }
    let goal = tolerance * tolerance * slope;
    let mut products = 0;
    while products < equations.products && slope > goal {
        multiply(p, h)?;
        products += 1;
        for ((h, p), d) in h.iter_mut().zip(&*p).zip(diagonal) {
            *h += lambda * d * p;
        }
        let curvature = dot(p, h);
        let length = slope / curvature;
        // A NaN ends it too.
        if curvature.is_nan() || curvature <= 0.0 || !length.is_finite() {
            break;
        }
        axpy(length, p, delta);
        axpy(-length, h, g);
        let mut next = 0.0;
        for (g, d) in g.iter().zip(diagonal) {
            next += solved(*d, *g) * g;
        }
        let beta = next / slope;
        for ((p, g), d) in p.iter_mut().zip(&*g).zip(diagonal) {
            *p = solved(*d, *g) + beta * *p;
        }
        slope = next;
    }
    Ok(Solved { won: dot(rhs, delta), products })
}
