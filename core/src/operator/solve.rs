//! Conjugate gradients for damped normal equations on a support.

use crate::base::error::Result;
use crate::base::math::{axpy, dot, norm2};

/// `(A_S^T A_S + lambda D) delta = b`, D being the diagonal of `A_S^T A_S` (Marquardt 1963), and when
/// to end.
#[derive(Debug, Clone, Copy)]
pub struct Equations<'a> {
    /// The diagonal of `A_S^T A_S`, which is the preconditioner too; an entry of 0 has no equation,
    /// and its unknown stays. Where there is none, equations have neither preconditioner nor damping.
    pub diagonal: Option<&'a [f32]>,
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
    /// The solution; before, where it starts.
    pub delta: &'a mut [f32],
    /// The residual of the equations there.
    pub g: &'a mut [f32],
    /// The direction.
    pub p: &'a mut [f32],
    /// The matrix times the direction.
    pub h: &'a mut [f32],
}

/// What a solve has done.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Solved {
    /// Steps that changed the solution.
    pub steps: u32,
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
    let Equations { diagonal, lambda, tolerance, .. } = equations;
    let Unknowns { delta, g, p, h } = unknowns;
    let len = diagonal.map_or(g.len(), <[f32]>::len);
    debug_assert!([delta.len(), g.len(), p.len(), h.len()] == [len; 4]);
    let damping = 1.0 + lambda;
    let mut slope = slope_of(g, diagonal, damping);
    let (goal, mut beta) = (tolerance * tolerance * slope, 0.0);
    p.fill(0.0);
    let mut done = Solved::default();
    while done.products < equations.products && slope > goal {
        turn(p, beta, g, diagonal, damping);
        multiply(p, h)?;
        done.products += 1;
        for ((h, p), d) in h.iter_mut().zip(&*p).zip(diagonal.unwrap_or(&[])) {
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
        done.steps += 1;
        let next = slope_of(g, diagonal, damping);
        (slope, beta) = (next, next / slope);
    }
    Ok(done)
}

/// An entry of the preconditioned residual. A column without norm has no equation: its weight stays.
fn solved(diagonal: f32, damping: f32, g: f32) -> f32 {
    if diagonal > 0.0 { g / (diagonal * damping) } else { 0.0 }
}

/// The product of the residual with the preconditioned one. Not inlined, nor is [`turn`], so that
/// what they hold is not on the stack below the products.
#[inline(never)]
fn slope_of(g: &[f32], diagonal: Option<&[f32]>, damping: f32) -> f32 {
    let Some(diagonal) = diagonal else { return norm2(g) };
    g.iter().zip(diagonal).fold(0.0, |sum, (g, d)| sum + solved(*d, damping, *g) * g)
}

/// `p = beta p` and the preconditioned residual.
#[inline(never)]
fn turn(p: &mut [f32], beta: f32, g: &[f32], diagonal: Option<&[f32]>, damping: f32) {
    let Some(diagonal) = diagonal else {
        return p.iter_mut().zip(g).for_each(|(p, g)| *p = g + beta * *p);
    };
    for ((p, g), d) in p.iter_mut().zip(g).zip(diagonal) {
        *p = solved(*d, damping, *g) + beta * *p;
    }
}
