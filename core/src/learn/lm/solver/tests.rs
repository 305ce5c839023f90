//! Levenberg-Marquardt steps and their conjugate gradients, on small matrices in memory.

extern crate std;
use super::*;
use crate::base::math::{axpy, dot};
use crate::base::rng::Rng;
use std::{vec, vec::Vec};

/// `y - A w` for a matrix in memory, and what was asked of it.
struct Linear {
    columns: Vec<Vec<f32>>,
    y: Vec<f32>,
    w: Vec<f32>,
    /// Makes every trial fail.
    is_stubborn: bool,
    set_ups: u32,
    products: u32,
    trials: u32,
    restored: u32,
}

impl Linear {
    fn new(columns: &[&[f32]], y: &[f32]) -> Self {
        let (columns, w) = (columns.iter().map(|a| a.to_vec()).collect(), vec![0.0; columns.len()]);
        let (set_ups, products, trials, restored) = (0, 0, 0, 0);
        Self { columns, y: y.to_vec(), w, is_stubborn: false, set_ups, products, trials, restored }
    }

    /// `s` columns of normal numbers, each `shared` of the first one and of a length of its own,
    /// and labels; 3 s rows.
    fn normal(s: usize, shared: f32) -> Self {
        let mut rng = Rng::new(3, 0);
        let mut normal = || (0..3 * s).map(|_| rng.normal()).collect::<Vec<f32>>();
        let mut columns: Vec<Vec<f32>> = (0..s).map(|_| normal()).collect();
        let first = columns[0].clone();
        for (column, k) in columns.iter_mut().zip(0_i32..) {
            let length = 10.0_f32.powi(k % 7 - 3);
            for (a, b) in column.iter_mut().zip(&first) {
                *a = length * (shared * b + *a);
            }
        }
        let columns: Vec<&[f32]> = columns.iter().map(Vec::as_slice).collect();
        Self::new(&columns, &normal())
    }

    fn residual(&self, w: &[f32]) -> Vec<f32> {
        let mut r = self.y.clone();
        for (column, w) in self.columns.iter().zip(w) {
            axpy(-w, column, &mut r);
        }
        r
    }

    fn loss_of(&self, w: &[f32]) -> f32 {
        let r = self.residual(w);
        dot(&r, &r) / r.len() as f32
    }

    /// `JᵀJ + λ diag(JᵀJ)` in double precision.
    fn matrix(&self, lambda: f64) -> Vec<Vec<f64>> {
        let dot = |a: &[f32], b: &[f32]| -> f64 {
            a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
        };
        let mut matrix: Vec<Vec<f64>> =
            self.columns.iter().map(|a| self.columns.iter().map(|b| dot(a, b)).collect()).collect();
        for (k, row) in matrix.iter_mut().enumerate() {
            row[k] *= 1.0 + lambda;
        }
        matrix
    }
}

impl Equations for Linear {
    type Source = core::convert::Infallible;

    fn values(&self) -> &[f32] {
        &self.w
    }

    fn terms(&self) -> usize {
        self.y.len()
    }

    fn set_up(&mut self, rhs: &mut [f32], diagonal: &mut [f32]) -> Result<()> {
        self.set_ups += 1;
        let r = self.residual(&self.w);
        for ((column, rhs), d) in self.columns.iter().zip(rhs).zip(diagonal) {
            (*rhs, *d) = (dot(column, &r), dot(column, column));
        }
        Ok(())
    }

    fn multiply(&mut self, p: &[f32], out: &mut [f32]) -> Result<()> {
        self.products += 1;
        let mut image = vec![0.0; self.y.len()];
        self.columns.iter().zip(p).for_each(|(column, p)| axpy(*p, column, &mut image));
        self.columns.iter().zip(out).for_each(|(column, out)| *out = dot(column, &image));
        Ok(())
    }

    fn loss(&mut self, values: Option<&[f32]>) -> Result<f32> {
        let Some(values) = values else {
            self.restored += 1;
            return Ok(0.0);
        };
        self.trials += 1;
        Ok(if self.is_stubborn { f32::NAN } else { self.loss_of(values) })
    }
}

fn solver(s: usize, products: u32) -> Solver<'static> {
    Solver::new(core::array::from_fn(|_| vec![0.0; s].leak()), products)
}

/// [`Solver::improve`] of these equations.
fn improve(
    solver: &mut Solver<'_>,
    equations: &mut Linear,
    loss: f32,
    steps: u32,
    goal: f32,
) -> Result<f32> {
    solver.improve(loss, steps, goal, |solver, loss| {
        let Stepped { loss, values } = solver.step(equations, loss)?;
        equations.w.iter_mut().zip(values).for_each(|(w, v)| *w = *v);
        Ok(loss)
    })
}

/// The step δ of a solver on these equations, and what it says to win.
fn solved(equations: &mut Linear, lambda: f32, products: u32) -> (Vec<f32>, f32) {
    let s = equations.w.len();
    let mut solver = solver(s, products);
    let Solver { rhs, diagonal, .. } = &mut solver;
    equations.set_up(rhs, diagonal).unwrap();
    solver.lambda = lambda;
    let won = solver.solve(equations).unwrap();
    (solver.delta.to_vec(), won)
}

/// The solution of a small dense system, by elimination with pivots.
fn eliminated(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).unwrap();
        a.swap(k, pivot);
        b.swap(k, pivot);
        let (above, below) = a.split_at_mut(k + 1);
        for (row, i) in below.iter_mut().zip(k + 1..) {
            let factor = row[k] / above[k][k];
            row.iter_mut().zip(&above[k]).for_each(|(a, pivot)| *a -= factor * pivot);
            b[i] -= factor * b[k];
        }
    }
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| a[k][j] * b[j]).sum();
        b[k] = (b[k] - known) / a[k][k];
    }
    b
}

#[test]
fn damped_solve_reaches_one_percent_in_preconditioner_norm() {
    for (shared, lambda) in [(0.0, 1e-2), (0.0, 0.5), (1.5, 1e-2), (1.5, 1e-4)] {
        let mut equations = Linear::normal(12, shared);
        let (delta, won) = solved(&mut equations, lambda, 120);
        let matrix = equations.matrix(f64::from(lambda));
        let rhs: Vec<f64> =
            equations.columns.iter().map(|a| f64::from(dot(a, &equations.y))).collect();
        let norm = |g: &[f64]| -> f64 {
            g.iter()
                .zip(&matrix)
                .enumerate()
                .map(|(k, (g, row))| g * g / row[k])
                .sum::<f64>()
                .sqrt()
        };
        let left: Vec<f64> = matrix
            .iter()
            .zip(&rhs)
            .map(|(row, b)| b - row.iter().zip(&delta).map(|(a, d)| a * f64::from(*d)).sum::<f64>())
            .collect();
        let relative = norm(&left) / norm(&rhs);
        assert!(relative < 1.02e-2, "{shared} {lambda}: {relative}");
        // To the tolerance, and not to the last digit: products are what a step costs.
        assert!(relative > 1e-6 && equations.products <= 12, "{relative}, {}", equations.products);
        // In the norm of the equations themselves the solution is as close.
        let exact = eliminated(matrix.clone(), rhs.clone());
        let win = |delta: &mut dyn Iterator<Item = f64>| -> f64 {
            delta.zip(&rhs).map(|(d, b)| d * b).sum()
        };
        let most = win(&mut exact.iter().copied());
        assert!(
            (f64::from(won) - win(&mut delta.iter().map(|d| f64::from(*d)))).abs() < 1e-4 * most
        );
        assert!((f64::from(won) / most - 1.0).abs() < 1e-2, "{won} of {most}");
    }
}

#[test]
fn the_scale_of_the_columns_does_not_matter() {
    // At right angles one product is all it takes, whatever their lengths.
    let mut equations =
        Linear::new(&[&[1e-3, 0.0, 0.0], &[0.0, 1.0, 0.0], &[0.0, 0.0, 4e3]], &[1.0, 2.0, 3.0]);
    let (delta, _) = solved(&mut equations, 0.25, 100);
    assert_eq!(equations.products, 1);
    for (delta, exact) in delta.iter().zip([1e3, 2.0, 7.5e-4]) {
        assert!((delta * 1.25 / exact - 1.0).abs() < 1e-5, "{delta} {exact}");
    }
    // Powers of two change the bits of no product.
    let mut equations = Linear::normal(8, 1.0);
    let (delta, won) = solved(&mut equations, 1e-2, 100);
    for (column, k) in equations.columns.iter_mut().zip(0_i32..) {
        column.iter_mut().for_each(|a| *a *= 2.0_f32.powi(3 * k - 12));
    }
    let (scaled, same) = solved(&mut equations, 1e-2, 100);
    assert_eq!(won, same);
    for ((a, b), k) in delta.iter().zip(&scaled).zip(0_i32..) {
        assert_eq!(*a, b * 2.0_f32.powi(3 * k - 12));
    }
}

#[test]
fn attempt_takes_at_most_allowed_products() {
    let mut equations = Linear::normal(40, 3.0);
    let (_, most) = solved(&mut equations, 1e-6, 1000);
    let needed = equations.products;
    assert!(needed > 12, "{needed}");
    let mut last = 0.0;
    for products in [1, 3, 12] {
        let mut equations = Linear::normal(40, 3.0);
        let (_, won) = solved(&mut equations, 1e-6, products);
        assert_eq!(equations.products, products);
        // Each wins something more.
        assert!(won > last && won < most);
        last = won;
    }
    let mut equations = Linear::normal(40, 3.0);
    assert_eq!(solved(&mut equations, 1e-6, 0), (vec![0.0; 40], 0.0));
    assert_eq!(equations.products, 0);
}

#[test]
fn zero_rhs_takes_no_product_and_no_trial() {
    let mut equations = Linear::new(&[&[1.0, 2.0, 0.0], &[0.0, 1.0, 0.0]], &[0.0, 0.0, 5.0]);
    let loss = equations.loss_of(&[0.0; 2]);
    assert_eq!(improve(&mut solver(2, 100), &mut equations, loss, 9, 0.0), Ok(loss));
    assert_eq!((equations.w, equations.products, equations.trials), (vec![0.0; 2], 0, 0));
    // The step was looked for once.
    assert_eq!((equations.set_ups, equations.restored), (1, 1));
}

#[test]
fn zero_column_keeps_its_weight_bit_identical() {
    let mut equations =
        Linear::new(&[&[1.0, 2.0, 0.0], &[0.0; 3], &[0.0, 1.0, 1.0]], &[1.0, 4.0, 2.0]);
    equations.w = vec![0.0, 0.1, 0.0];
    let loss = equations.loss_of(&equations.w);
    let least = improve(&mut solver(3, 100), &mut equations, loss, 40, 0.0).unwrap();
    assert!(
        least < 1e-10 && equations.w[1].to_bits() == 0.1_f32.to_bits(),
        "{least} {:?}",
        equations.w
    );
    assert!((equations.w[0] - 1.0).abs() < 1e-4 && (equations.w[2] - 2.0).abs() < 1e-4);
    // Nothing else is there, so nothing is tried.
    let mut nothing = Linear::new(&[&[0.0; 3]], &[1.0; 3]);
    assert_eq!(improve(&mut solver(1, 100), &mut nothing, 1.0, 9, 0.0), Ok(1.0));
    assert_eq!((nothing.w, nothing.products, nothing.trials), (vec![0.0], 0, 0));
}

#[test]
fn collinear_columns_share_in_proportion_to_length() {
    // Once and twice the same column: the damping decides, and it sees lengths only.
    let a = [1.0, -2.0, 3.0, 0.5];
    let twice = a.map(|a| -2.0 * a);
    let mut equations = Linear::new(&[&a, &twice], &a.map(|a| 4.0 * a));
    let loss = equations.loss_of(&[0.0; 2]);
    let least = improve(&mut solver(2, 100), &mut equations, loss, 40, 0.0).unwrap();
    assert!(least < 1e-10 * loss, "{least}");
    assert!((equations.w[0] - 2.0).abs() < 1e-4 && (equations.w[1] + 1.0).abs() < 1e-4);
}

#[test]
fn failed_step_is_damped_seven_times_then_discarded() {
    let mut equations = Linear::normal(6, 0.5);
    equations.w = vec![0.25, -0.1, 0.3, 1e-3, 0.0, -0.0];
    equations.is_stubborn = true;
    let (before, loss) = (equations.w.clone(), equations.loss_of(&equations.w));
    let mut solver = solver(6, 100);
    solver.lambda = 1e-6;
    assert_eq!(improve(&mut solver, &mut equations, loss, 9, 0.0), Ok(loss));
    assert!(before.iter().zip(&equations.w).all(|(a, b)| a.to_bits() == b.to_bits()));
    assert_eq!((equations.set_ups, equations.trials, equations.restored), (1, 7, 1));
    // From 1e-5 on.
    let expected = 1e-5 * 8.0_f32.powi(7);
    assert!((solver.lambda / expected - 1.0).abs() < 1e-5, "{}", solver.lambda);
    // The next step begins at 0.1.
    improve(&mut solver, &mut equations, loss, 1, 0.0).unwrap();
    let expected = 0.1 * 8.0_f32.powi(7);
    assert!((solver.lambda / expected - 1.0).abs() < 1e-5, "{}", solver.lambda);
}

#[test]
fn successful_step_cuts_damping_to_a_fifth() {
    let mut equations = Linear::normal(6, 0.5);
    let loss = equations.loss_of(&[0.0; 6]);
    let mut solver = solver(6, 100);
    let after = improve(&mut solver, &mut equations, loss, 1, 0.0).unwrap();
    assert!(after < loss && after == equations.loss_of(&equations.w));
    assert_eq!((equations.trials, equations.restored, solver.lambda), (1, 0, LAMBDA_START / 5.0));
    equations.w.fill(0.0);
    solver.lambda = 2e-6;
    improve(&mut solver, &mut equations, loss, 1, 0.0).unwrap();
    assert_eq!(solver.lambda, 1e-6);
    // An edit that the equations do not see damps again, and never less than before.
    solver.damp();
    assert_eq!(solver.lambda, 1e-2);
    solver.lambda = 0.05;
    solver.damp();
    assert_eq!(solver.lambda, 0.05);
}

#[test]
fn steps_end_at_goal_or_without_gain() {
    let mut equations = Linear::normal(6, 0.5);
    let loss = equations.loss_of(&[0.0; 6]);
    assert_eq!(improve(&mut solver(6, 100), &mut equations, loss, 9, loss), Ok(loss));
    assert_eq!((equations.set_ups, &equations.w), (0, &vec![0.0; 6]));
    let mut last = loss;
    for steps in 1..=2 {
        let mut equations = Linear::normal(6, 0.5);
        let least = improve(&mut solver(6, 100), &mut equations, loss, steps, 0.0).unwrap();
        assert!(least < last && equations.set_ups == steps, "{steps}");
        last = least;
    }
    // In the end the gain is a rounding error, and not worth a trial.
    let least = improve(&mut solver(6, 100), &mut equations, loss, 1000, 0.0).unwrap();
    let (set_ups, trials) = (equations.set_ups, equations.trials);
    assert!(set_ups < 30 && trials < set_ups, "{set_ups} {trials}");
    assert_eq!(improve(&mut solver(6, 100), &mut equations, least, 1, 0.0), Ok(least));
    assert_eq!((equations.set_ups, equations.trials), (set_ups + 1, trials));
}

#[test]
fn stopped_run_makes_two_attempts_of_eight_products() {
    let mut equations = Linear::normal(40, 3.0);
    equations.is_stubborn = true;
    let loss = equations.loss_of(&[0.0; 40]);
    let mut ended = solver(40, 120);
    ended.lambda = 1e-6;
    ended.hurry();
    improve(&mut ended, &mut equations, loss, 1, 0.0).unwrap();
    assert_eq!((equations.trials, equations.products), (2, 16));
    // It never makes more than before.
    let mut ended = solver(40, 5);
    ended.hurry();
    improve(&mut ended, &mut equations, loss, 1, 0.0).unwrap();
    assert_eq!((equations.trials, equations.products), (4, 26));
}

#[test]
fn non_finite_values_are_named_without_a_step() {
    let mut equations = Linear::new(&[&[1.0, f32::MAX], &[1.0, 0.0]], &[1.0, f32::MAX]);
    let refused = improve(&mut solver(2, 100), &mut equations, 1.0, 1, 0.0);
    assert!(
        matches!(refused, Err(error::Error::NotFinite { what: "gradient", at: 0 })),
        "{refused:?}"
    );
    equations.y = vec![0.0; 2];
    let refused = improve(&mut solver(2, 100), &mut equations, 1.0, 1, 0.0);
    assert!(
        matches!(refused, Err(error::Error::NotFinite { what: "squared column norms", at: 0 })),
        "{refused:?}"
    );
    let set_ups = equations.set_ups;
    assert_eq!(
        improve(&mut solver(2, 100), &mut equations, f32::INFINITY, 1, 0.0),
        Ok(f32::INFINITY)
    );
    assert_eq!(equations.set_ups, set_ups);
}
