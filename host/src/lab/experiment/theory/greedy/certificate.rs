//! Whether a point is an approximate second-order stationary point: the norm of its gradient, and
//! the least eigenvalue of its Hessian.
//!
//! Where columns are 0 the Hessian falls apart exactly: into the block of the other columns, and
//! for each column of 0 a copy of one d×d block. That of the population loss falls apart further: into
//! the span of U and the target, of few dimensions, and what is beside it, where each dimension has a
//! copy of one block of a row and column for each column of U.

use faer::{Mat, MatRef, Side};

use super::descent::{at_zero, least_curvature};
use super::lasso::Lasso;
use super::problem::{Problem, Reduced};
use crate::{Error, Result};

/// Most rows of a block whose eigenvalues are all taken; of larger ones Lanczos finds the least.
const LARGEST: usize = 1500;

/// The curvature at a point.
#[derive(Debug, Clone, Copy)]
pub(super) struct Certificate {
    /// The least eigenvalue of the Hessian: of all blocks.
    pub(super) least: f64,
    /// That of the block of the other columns by Lanczos, to hold it to.
    pub(super) by_lanczos: f64,
}

/// The certificate of the columns `u` beside `zeros` columns of 0.
pub(super) fn certificate(
    problem: &Problem,
    u: MatRef<'_, f64>,
    zeros: usize,
    lasso: &Lasso,
    seed: u64,
) -> Result<Certificate> {
    let by_lanczos = least_curvature(problem, u, lasso, seed);
    let least = match problem.reduced(u) {
        Some(Reduced { problem, u }) => {
            let within = blocks(&problem, u.as_ref(), zeros, lasso, seed, by_lanczos)?;
            // Beside the span nothing is missing: at a column of 0 there is the group lasso alone.
            let dead = if zeros > 0 { lasso.at_zero() } else { f64::INFINITY };
            within.min(beside(u.as_ref(), lasso)?).min(dead)
        }
        None => blocks(problem, u, zeros, lasso, seed, by_lanczos)?,
    };
    Ok(Certificate { least, by_lanczos })
}

/// Of the block of the columns `u`, and of that of a column of 0 where there is one.
fn blocks(
    problem: &Problem,
    u: MatRef<'_, f64>,
    zeros: usize,
    lasso: &Lasso,
    seed: u64,
    by_lanczos: f64,
) -> Result<f64> {
    let active = match u.nrows() * u.ncols() {
        0 => f64::INFINITY,
        1..=LARGEST => least_of_block(problem, u, lasso)?,
        _ => by_lanczos,
    };
    let dead = match u.nrows() {
        _ if zeros == 0 => f64::INFINITY,
        0..=LARGEST => least_at_zero(problem, u, lasso)?,
        _ => at_zero(problem, u, lasso, seed),
    };
    Ok(active.min(dead))
}

/// Of a dimension beside the span: `4 UᵀU` and the slopes of the group lasso.
fn beside(u: MatRef<'_, f64>, lasso: &Lasso) -> Result<f64> {
    if u.ncols() == 0 {
        return Ok(f64::INFINITY);
    }
    let mut block = u.transpose() * u * faer::Scale(4.0);
    for j in 0..u.ncols() {
        block[(j, j)] += lasso.slope(u.col(j).squared_norm_l2());
    }
    least(block.as_ref())
}

/// By all eigenvalues of the block, whose columns are products with unit vectors.
fn least_of_block(problem: &Problem, u: MatRef<'_, f64>, lasso: &Lasso) -> Result<f64> {
    let (d, k) = (u.nrows(), u.ncols());
    let (_, by_matrix) = problem.by_matrix(u);
    let mut block = Mat::zeros(d * k, d * k);
    let mut product = Mat::zeros(d, k);
    for at in 0..d * k {
        let mut unit = Mat::zeros(d, k);
        unit[(at % d, at / d)] = 1.0;
        problem.hessian(&by_matrix, u, unit.as_ref(), &mut product);
        lasso.add_product(u, unit.as_ref(), &mut product);
        for j in 0..k {
            for i in 0..d {
                block[(j * d + i, at)] = product[(i, j)];
            }
        }
    }
    least(block.as_ref())
}

/// By all eigenvalues of the block of one column of 0.
fn least_at_zero(problem: &Problem, u: MatRef<'_, f64>, lasso: &Lasso) -> Result<f64> {
    let (_, by_matrix) = problem.by_matrix(u);
    Ok(2.0 * least(by_matrix.as_ref())? + lasso.at_zero())
}

fn least(block: MatRef<'_, f64>) -> Result<f64> {
    let values = block.self_adjoint_eigenvalues(Side::Lower).map_err(|error| {
        Error::new("the eigenvalues of a Hessian were not found")
            .got(format_args!("{error:?}"))
            .help("choose another seed")
    })?;
    Ok(values.first().copied().unwrap_or(f64::INFINITY))
}

#[cfg(test)]
mod tests {
    use super::super::problem::target;
    use super::*;

    /// The split is the whole Hessian, with a span of fewer dimensions and without.
    #[test]
    fn blocks_have_the_least_eigenvalue_of_all() {
        let lasso = Lasso { lambda: 0.02, beta: 0.01 };
        for (scale, d) in [(1.0, 5), (0.3, 5), (0.3, 4), (0.9, 9), (0.02, 9)] {
            let problem = Problem::population(target(d, 2, 0.7, 1), None);
            assert_eq!(problem.reduced(problem.target.as_ref()).is_some(), d > 4);
            let active = &problem.target * faer::Scale(scale);
            let all = Mat::from_fn(d, 4, |i, j| if j < 2 { active[(i, j)] } else { 0.0 });
            let own = certificate(&problem, active.as_ref(), 2, &lasso, 1).unwrap();
            let whole = least_of_block(&problem, all.as_ref(), &lasso).unwrap();
            assert!((own.least - whole).abs() < 1e-12, "{own:?} {whole}");
            assert!((own.by_lanczos - own.least).abs() < 1e-3 || own.least < own.by_lanczos);
        }
        let problem = Problem::population(target(5, 2, 0.7, 1), None);
        // Rotations of the columns change no loss, and at 0 alone the target is a way down.
        let zero = certificate(&problem, Mat::zeros(5, 0).as_ref(), 4, &lasso, 1).unwrap();
        assert!((zero.least - (0.4 - 4.0)).abs() < 1e-12, "{zero:?}");
    }
}
