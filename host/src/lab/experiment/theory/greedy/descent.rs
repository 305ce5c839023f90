//! Descent with momentum on the loss and the group lasso, with columns dropped on the way.

use faer::{Mat, MatRef};
use tamis::base::rng::{Rng, stream};

use super::super::lanczos::{Wanted, ends};
use super::lasso::Lasso;
use super::problem::{Problem, Slope, largest_row};
use crate::operator::Stop;
use crate::{Error, Result};

/// Stream of perturbations.
const NOISE: u64 = stream::USER + (0x7e33 << 32);
/// Steps between two looks at columns to drop.
const EVERY: u32 = 10;
/// Columns below this fraction of √beta are dropped, once all that is left of them shrinks.
const DROPPED: f64 = 1e-3;
/// Norms of gradients down to which single precision leads.
const ROUGH: f64 = 1e-5;
/// A loss beyond this multiple of the first one diverges.
const DIVERGED: f64 = 1e6;
/// Radius of a perturbation, and most of them.
const RADIUS: f64 = 1e-3;
const PERTURBATIONS: u32 = 5;

#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub(super) lasso: Lasso,
    pub(super) step: f64,
    /// Without it `t/(t + 3)`, t the steps since it last led uphill (B. O'Donoghue and E. Candès, 2015).
    pub(super) momentum: Option<f64>,
    pub(super) steps: u32,
    /// The norm of the gradient at which the descent ends.
    pub(super) goal: f64,
    pub(super) seed: u64,
}

/// Where a descent ended.
pub(super) struct Descended {
    /// The columns that were not dropped.
    pub(super) u: Mat<f64>,
    pub(super) dropped: usize,
    /// Without the group lasso.
    pub(super) loss: f64,
    pub(super) gradient: f64,
    pub(super) steps: u32,
    /// The largest `|U|_2` of all steps, from above: Theorem 8 asks for 3 at most.
    pub(super) largest: f64,
    /// Objectives, step by step.
    pub(super) losses: Vec<f64>,
}

/// Descends from `u`. A stationary point with a direction of descent is left by a perturbation, as
/// in perturbed gradient descent; without a group lasso there is none.
pub(super) fn descend(
    problem: &Problem,
    mut u: Mat<f64>,
    of: &Settings,
    stop: &Stop,
) -> Result<Descended> {
    let columns = u.ncols();
    let mut velocity = Mat::<f64>::zeros(u.nrows(), columns);
    let mut gradient = velocity.clone();
    let has_lasso = of.lasso.lambda > 0.0;
    let (mut losses, mut largest, mut perturbed) = (Vec::new(), 0.0_f64, 0);
    let (mut step, mut since) = (0, 0_u32);
    let mut is_rough = of.goal >= ROUGH;
    loop {
        if stop.asked() {
            return Err(Error::interrupted());
        }
        // Single precision is for the way, not for where it ends.
        let single =
            if is_rough { problem.single_gradient(u.as_ref(), &mut gradient)? } else { None };
        let is_single = single.is_some();
        let Slope { loss, row } =
            single.unwrap_or_else(|| problem.gradient(u.as_ref(), &mut gradient));
        let mut objective = loss;
        if has_lasso {
            objective += of.lasso.value(u.as_ref());
            of.lasso.add_gradient(u.as_ref(), &mut gradient);
        }
        losses.push(objective);
        largest = largest.max(norm_bound(u.as_ref(), row));
        if !objective.is_finite() || objective > DIVERGED * losses[0].max(1.0) {
            return Err(Error::new("the descent diverges")
                .expected("objectives that fall")
                .got(format_args!("{objective:e} after {step} steps"))
                .help("choose a shorter step in the spec"));
        }
        let norm = gradient.norm_l2();
        let is_still = norm <= of.goal;
        if is_single && (is_still || step == of.steps) {
            is_rough = false;
            losses.pop();
            continue;
        }
        if is_still && has_lasso && step < of.steps {
            let before = u.ncols();
            drop_columns(problem, &mut u, &mut velocity, &mut gradient, of);
            if u.ncols() < before {
                continue;
            }
        }
        if is_still && has_lasso && perturbed < PERTURBATIONS && step < of.steps {
            let least = least_curvature(problem, u.as_ref(), &of.lasso, of.seed);
            if least < -of.goal.sqrt() {
                perturbed += 1;
                perturb(&mut u, of.seed, perturbed);
                velocity.fill(0.0);
                step += 1;
                continue;
            }
        }
        if is_still || step == of.steps {
            let dropped = columns - u.ncols();
            return Ok(Descended {
                u,
                dropped,
                loss,
                gradient: norm,
                steps: step,
                largest,
                losses,
            });
        }
        let uphill: f64 =
            gradient.col_iter().zip(velocity.col_iter()).map(|(g, v)| g.transpose() * v).sum();
        since = if of.momentum.is_none() && uphill > 0.0 { 0 } else { since + 1 };
        let momentum = of.momentum.unwrap_or(f64::from(since) / f64::from(since + 3));
        for ((v, g), u) in velocity.col_iter_mut().zip(gradient.col_iter()).zip(u.col_iter_mut()) {
            for ((v, g), u) in v.iter_mut().zip(g.iter()).zip(u.iter_mut()) {
                *v = momentum * *v - of.step * g;
                *u += *v;
            }
        }
        step += 1;
        if has_lasso && step % EVERY == 0 {
            drop_columns(problem, &mut u, &mut velocity, &mut gradient, of);
        }
    }
}

/// `|U|_2` from above: `|UᵀU|_2 <= |U|_F²`, which is near where few columns are left, and the sum of
/// magnitudes of a row of `UᵀU` where many small ones are.
fn norm_bound(u: MatRef<'_, f64>, row: Option<f64>) -> f64 {
    let frobenius = u.norm_l2();
    if frobenius <= 3.0 {
        return frobenius;
    }
    let row = row.unwrap_or_else(|| largest_row((u.transpose() * u).as_ref()));
    row.sqrt().min(frobenius)
}

/// Drops columns near 0 where the curvature at a column of 0 is positive in all directions: there
/// they would shrink from step to step.
fn drop_columns(
    problem: &Problem,
    u: &mut Mat<f64>,
    velocity: &mut Mat<f64>,
    gradient: &mut Mat<f64>,
    of: &Settings,
) {
    let limit = (DROPPED * DROPPED) * of.lasso.beta;
    let squares: Vec<f64> = u.col_iter().map(|column| column.squared_norm_l2()).collect();
    let stays: Vec<usize> = (0..squares.len()).filter(|&j| squares[j] > limit).collect();
    if stays.len() == squares.len() || at_zero(problem, u.as_ref(), &of.lasso, of.seed) <= 0.0 {
        return;
    }
    let chosen = |of: &Mat<f64>| Mat::from_fn(of.nrows(), stays.len(), |i, j| of[(i, stays[j])]);
    (*u, *velocity, *gradient) = (chosen(u), chosen(velocity), chosen(gradient));
}

/// The least curvature of the objective in a column that is 0.
pub(super) fn at_zero(problem: &Problem, u: MatRef<'_, f64>, lasso: &Lasso, seed: u64) -> f64 {
    let (_, by_matrix) = problem.by_matrix(u);
    let least = ends(u.nrows(), seed, Wanted::Both, |v, out| {
        out.iter_mut().enumerate().for_each(|(j, out)| {
            let column = by_matrix.col(j);
            *out = 2.0 * column.iter().zip(v).map(|(a, v)| a * v).sum::<f64>();
        });
    });
    least.least + lasso.at_zero()
}

/// The least eigenvalue of the Hessian of the objective over the columns of `u`, by Lanczos.
pub(super) fn least_curvature(
    problem: &Problem,
    u: MatRef<'_, f64>,
    lasso: &Lasso,
    seed: u64,
) -> f64 {
    let (d, k) = (u.nrows(), u.ncols());
    if k == 0 {
        return f64::INFINITY;
    }
    let (_, by_matrix) = problem.by_matrix(u);
    let mut product = Mat::zeros(d, k);
    let found = ends(d * k, seed, Wanted::Both, |v, out| {
        let v = MatRef::from_column_major_slice(v, d, k);
        problem.hessian(&by_matrix, u, v, &mut product);
        lasso.add_product(u, v, &mut product);
        for (own, out) in product.col_iter().zip(out.chunks_exact_mut(d)) {
            out.iter_mut().zip(own.iter()).for_each(|(out, own)| *out = *own);
        }
    });
    found.least
}

/// Adds a vector of a ball, uniform in it.
fn perturb(u: &mut Mat<f64>, seed: u64, time: u32) {
    let mut rng = Rng::new(seed, NOISE + u64::from(time));
    let noise = Mat::from_fn(u.nrows(), u.ncols(), |_, _| f64::from(rng.normal()));
    let numbers = (u.nrows() * u.ncols()) as f64;
    let radius = RADIUS * f64::from(rng.uniform()).powf(1.0 / numbers);
    *u += &noise * faer::Scale(radius / noise.norm_l2());
}
