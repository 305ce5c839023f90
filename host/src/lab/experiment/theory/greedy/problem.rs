//! What is sensed, and the loss of a model of it with its derivatives.
//!
//! Measurements are functions of the seed and are never stored. Where their Gram matrix, P×P with
//! P = d(d + 1)/2, has room, it holds all that the loss needs of them, exactly and whatever n is;
//! else they are drawn again for each gradient.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use rayon::prelude::*;
use tamis::base::rng::{Rng, seed_of, stream};

use super::super::lanczos::dot;
use crate::lab::experiment::spec::Measurements;
use crate::operator::{GpuProducts, MatrixLines};
use crate::{Error, Result};

const TARGET: u64 = stream::USER + (0x7e30 << 32);
/// Measurements and their noise, see [`seed_of`].
const MEASURED: u64 = stream::USER + (0x7e31 << 32);
/// Most bytes of a Gram matrix.
const GRAM_BYTES: usize = 1 << 30;
/// Measurements whose sums are under way at once: fixed, so that threads change nothing.
const GROUP: usize = 64;

/// `U* U*ᵀ`, and how it is seen.
pub(super) struct Problem {
    /// `U*`, d×r.
    pub(super) target: Mat<f64>,
    seen: Seen,
    /// Makes large products of the population loss.
    gpu: Option<GpuProducts>,
}

/// Multiply-adds of a product from which on a GPU makes it.
const LARGE: usize = 1 << 23;

/// The loss, and what its gradient has shown by the way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slope {
    pub(super) loss: f64,
    /// See [`largest_row`], of `UᵀU`, where that was made.
    pub(super) row: Option<f64>,
}

/// The largest sum of magnitudes of a row, no less than the largest eigenvalue of a symmetric matrix.
pub(super) fn largest_row(of: MatRef<'_, f64>) -> f64 {
    // Its columns are its rows, and lie together.
    of.col_iter().map(|own| own.iter().map(|x| x.abs()).sum()).fold(0.0, f64::max)
}

/// A problem of fewer rows, and a point of it.
pub(super) struct Reduced {
    pub(super) problem: Problem,
    pub(super) u: Mat<f64>,
}

enum Seen {
    /// The population loss.
    Whole,
    /// `x Gram x - 2 labels x + square`, x the numbers of a symmetric matrix.
    Gram {
        gram: Mat<f64>,
        labels: Vec<f64>,
        square: f64,
    },
    Drawn(Drawn),
}

/// Measurements, and what they are of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drawn {
    pub(super) kind: Measurements,
    /// The first, and how many; behind the last of `all` comes the first again.
    pub(super) first: usize,
    pub(super) count: usize,
    pub(super) all: usize,
    pub(super) sigma: f64,
    pub(super) seed: u64,
}

/// A d×r factor with orthogonal columns of norms evenly from 1 to `least`.
pub(super) fn target(d: usize, r: usize, least: f64, seed: u64) -> Mat<f64> {
    let mut rng = Rng::new(seed, TARGET);
    let normal = Mat::from_fn(d, r, |_, _| f64::from(rng.normal()));
    let basis = normal.qr().compute_thin_Q();
    let value = |j: usize| 1.0 - (1.0 - least) * j as f64 / (r.max(2) - 1) as f64;
    Mat::from_fn(d, r, |i, j| value(j) * basis[(i, j)])
}

impl Problem {
    pub(super) fn population(target: Mat<f64>, gpu: Option<GpuProducts>) -> Self {
        Self { target, seen: Seen::Whole, gpu }
    }

    /// The problem of these measurements, by their Gram matrix where that has room.
    pub(super) fn measured(target: Mat<f64>, drawn: Drawn) -> Self {
        let numbers = numbers_of(target.nrows());
        if numbers.saturating_mul(numbers).saturating_mul(8) > GRAM_BYTES {
            return Self::drawn(target, drawn);
        }
        let square = &target * target.transpose();
        let mut gram = Mat::zeros(numbers, numbers);
        let (mut labels, mut squares) = (vec![0.0; numbers], 0.0);
        let rows = 512.min(drawn.count.max(1));
        for first in (0..drawn.count).step_by(rows) {
            let own: Vec<(Vec<f64>, f64)> = (first..drawn.count.min(first + rows))
                .into_par_iter()
                .map(|at| {
                    let (matrix, noise) = drawn.draw(at, target.nrows());
                    let own = flat(matrix.as_ref());
                    let label = dot(&own, &flat(square.as_ref())) + noise;
                    (own, label)
                })
                .collect();
            let block = Mat::from_fn(numbers, own.len(), |i, k| own[k].0[i]);
            let scale = 1.0 / drawn.count as f64;
            matmul(&mut gram, Accum::Add, &block, block.transpose(), scale, Par::Seq);
            for (own, label) in &own {
                labels.iter_mut().zip(own).for_each(|(sum, a)| *sum += scale * label * a);
                squares += scale * label * label;
            }
        }
        Self { target, seen: Seen::Gram { gram, labels, square: squares }, gpu: None }
    }

    /// The population loss within the span of `u` and the target, beside which neither has anything.
    pub(super) fn reduced(&self, u: MatRef<'_, f64>) -> Option<Reduced> {
        let (d, k, r) = (u.nrows(), u.ncols(), self.target.ncols());
        let Seen::Whole = self.seen else { return None };
        if k + r >= d {
            return None;
        }
        let both =
            Mat::from_fn(d, k + r, |i, j| if j < k { u[(i, j)] } else { self.target[(i, j - k)] });
        let basis = both.qr().compute_thin_Q();
        let target = basis.transpose() * &self.target;
        Some(Reduced { problem: Self::population(target, None), u: basis.transpose() * u })
    }

    /// The same with measurements drawn again whenever they are needed.
    pub(super) fn drawn(target: Mat<f64>, drawn: Drawn) -> Self {
        Self { target, seen: Seen::Drawn(drawn), gpu: None }
    }

    /// Whether the loss is held as a Gram matrix.
    #[cfg(test)]
    fn has_gram(&self) -> bool {
        matches!(self.seen, Seen::Gram { .. })
    }

    /// `|U Uᵀ - U* U*ᵀ|_F`.
    pub(super) fn error(&self, u: MatRef<'_, f64>) -> f64 {
        self.residual(u).norm_l2()
    }

    fn residual(&self, u: MatRef<'_, f64>) -> Mat<f64> {
        let d = u.nrows();
        let mut residual = Mat::zeros(d, d);
        matmul(&mut residual, Accum::Replace, u, u.transpose(), 1.0, Par::Seq);
        matmul(&mut residual, Accum::Add, &self.target, self.target.transpose(), -1.0, Par::Seq);
        residual
    }

    /// The loss and its gradient by `U Uᵀ`, d×d.
    pub(super) fn by_matrix(&self, u: MatRef<'_, f64>) -> (f64, Mat<f64>) {
        match &self.seen {
            Seen::Whole => {
                let residual = self.residual(u);
                (residual.squared_norm_l2(), residual * faer::Scale(2.0))
            }
            Seen::Gram { gram, labels, square } => {
                let x = flat((u * u.transpose()).as_ref());
                let mut product = self.product(gram, &x);
                let loss = dot(&x, &product) - 2.0 * dot(labels, &x) + square;
                product.iter_mut().zip(labels).for_each(|(p, label)| *p = 2.0 * (*p - label));
                (loss.max(0.0), square_of(&product, u.nrows()))
            }
            Seen::Drawn(drawn) => {
                let target = &self.target * self.target.transpose();
                let difference = u * u.transpose() - target;
                drawn.sums(difference.as_ref(), |noise| -noise)
            }
        }
    }

    /// The change of the gradient by `U Uᵀ` along a symmetric matrix.
    pub(super) fn bend(&self, along: MatRef<'_, f64>) -> Mat<f64> {
        match &self.seen {
            Seen::Whole => along * faer::Scale(2.0),
            Seen::Gram { gram, .. } => {
                let product = self.product(gram, &flat(along));
                square_of(&product.iter().map(|p| 2.0 * p).collect::<Vec<_>>(), along.nrows())
            }
            Seen::Drawn(drawn) => drawn.sums(along, |_| 0.0).1,
        }
    }

    fn product(&self, gram: &Mat<f64>, x: &[f64]) -> Vec<f64> {
        let x = MatRef::from_column_major_slice(x, x.len(), 1);
        let mut out = Mat::zeros(x.nrows(), 1);
        matmul(&mut out, Accum::Replace, gram, x, 1.0, Par::Seq);
        out.col(0).iter().copied().collect()
    }

    /// The loss of U, and sets `out` to its gradient by U.
    pub(super) fn gradient(&self, u: MatRef<'_, f64>, out: &mut Mat<f64>) -> Slope {
        let Seen::Whole = self.seen else {
            let (loss, by_matrix) = self.by_matrix(u);
            matmul(out, Accum::Replace, &by_matrix, u, 2.0, Par::Seq);
            return Slope { loss, row: None };
        };
        // 4 (U (Uᵀ U) - U* (U*ᵀ U)): small products once few columns are left.
        let mut own = Mat::zeros(u.ncols(), u.ncols());
        matmul(&mut own, Accum::Replace, u.transpose(), u, 1.0, Par::Seq);
        matmul(&mut *out, Accum::Replace, u, &own, 4.0, Par::Seq);
        let loss = self.less_target(u, own.squared_norm_l2(), out);
        Slope { loss, row: Some(largest_row(own.as_ref())) }
    }

    /// The loss and its gradient of the population from `|UᵀU|²` and `4 U Uᵀ U`, which is in `out`.
    fn less_target(&self, u: MatRef<'_, f64>, own: f64, out: &mut Mat<f64>) -> f64 {
        let target = self.target.as_ref();
        let mut shared = Mat::zeros(target.ncols(), u.ncols());
        matmul(&mut shared, Accum::Replace, target.transpose(), u, 1.0, Par::Seq);
        matmul(&mut *out, Accum::Add, target, &shared, -4.0, Par::Seq);
        let whole = (target.transpose() * target).squared_norm_l2();
        (own - 2.0 * shared.squared_norm_l2() + whole).max(0.0)
    }

    /// What makes the products of d×k factors, where that is a GPU.
    pub(super) fn gpu_for(&self, d: usize, k: usize) -> Option<&GpuProducts> {
        self.gpu.as_ref().filter(|_| d.saturating_mul(k).saturating_mul(k) >= LARGE)
    }

    /// The same by products of a GPU in single precision, where there is one and they are large.
    ///
    /// # Errors
    /// The device fails.
    pub(super) fn single_gradient(
        &self,
        u: MatRef<'_, f64>,
        out: &mut Mat<f64>,
    ) -> Result<Option<Slope>> {
        let (d, k) = (u.nrows(), u.ncols());
        let Some(gpu) = self.gpu_for(d, k) else { return Ok(None) };
        let columns = MatrixLines { values: single(u), inner: d };
        let rows = MatrixLines { values: single(u.transpose()), inner: k };
        let own = MatrixLines { values: gpu.multiply(&columns, &columns)?, inner: k };
        let product = gpu.multiply(&rows, &own)?;
        for (j, column) in out.col_iter_mut().enumerate() {
            column.iter_mut().enumerate().for_each(|(i, out)| {
                *out = 4.0 * f64::from(product[i * k + j]);
            });
        }
        let square = own.values.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        let row = |row: &[f32]| row.iter().map(|&x| f64::from(x.abs())).sum::<f64>();
        let row = Some(own.values.chunks(k).map(row).fold(0.0, f64::max));
        Ok(Some(Slope { loss: self.less_target(u, square, out), row }))
    }

    /// Sets `out` to the product of the Hessian of the loss by U with `v`; `by_matrix` is of `u`.
    pub(super) fn hessian(
        &self,
        by_matrix: &Mat<f64>,
        u: MatRef<'_, f64>,
        v: MatRef<'_, f64>,
        out: &mut Mat<f64>,
    ) {
        let half = u * v.transpose();
        let along = &half + half.transpose();
        let bend = self.bend(along.as_ref());
        matmul(&mut *out, Accum::Replace, by_matrix, v, 2.0, Par::Seq);
        matmul(out, Accum::Add, &bend, u, 2.0, Par::Seq);
    }

    /// The largest relative error of `(1/n) Σ <A_i, X>²` over random symmetric X of rank r and norm 1:
    /// an estimate of the constant of restricted isometry from below; none of the population loss.
    pub(super) fn isometry(&self, r: usize, draws: u32, seed: u64) -> Option<f64> {
        let Seen::Gram { gram, .. } = &self.seen else { return None };
        let d = self.target.nrows();
        let draw = |draw_at: u32| {
            let mut rng = Rng::new(seed_of(seed, MEASURED + 2, draw_at), 0);
            let factor = Mat::from_fn(d, r, |_, _| f64::from(rng.normal()));
            let signs =
                Mat::from_fn(d, r, |i, j| factor[(i, j)] * if j % 2 == 0 { 1.0 } else { -1.0 });
            let matrix = &factor * signs.transpose();
            let x = flat(matrix.as_ref());
            (dot(&x, &self.product(gram, &x)) / dot(&x, &x) - 1.0).abs()
        };
        Some((0..draws).map(draw).fold(0.0, f64::max))
    }
}

impl Drawn {
    /// A symmetric matrix that measures as measurement `at` does, and the noise of its label.
    fn draw(&self, at: usize, d: usize) -> (Mat<f64>, f64) {
        let mut rng =
            Rng::new(seed_of(self.seed, MEASURED, ((self.first + at) % self.all.max(1)) as u32), 0);
        let matrix = match self.kind {
            Measurements::Gaussian => {
                let own = Mat::from_fn(d, d, |_, _| f64::from(rng.normal()));
                Mat::from_fn(d, d, |i, j| f64::midpoint(own[(i, j)], own[(j, i)]))
            }
            Measurements::Quadratic => {
                let x: Vec<f64> = (0..d).map(|_| f64::from(rng.normal())).collect();
                Mat::from_fn(d, d, |i, j| x[i] * x[j])
            }
        };
        (matrix, self.sigma * f64::from(rng.normal()))
    }

    /// With `t_i = <A_i, of> + shift(noise)` the mean of `t_i²` and of `2 t_i A_i`.
    fn sums(&self, of: MatRef<'_, f64>, shift: impl Fn(f64) -> f64 + Sync) -> (f64, Mat<f64>) {
        let d = of.nrows();
        let x = flat(of);
        let groups = self.count.div_ceil(GROUP);
        let group = |group: usize| {
            let (mut loss, mut sum) = (0.0, Mat::<f64>::zeros(d, d));
            for at in group * GROUP..self.count.min((group + 1) * GROUP) {
                let (matrix, noise) = self.draw(at, d);
                let t = dot(&flat(matrix.as_ref()), &x) + shift(noise);
                loss += t * t;
                sum += matrix * faer::Scale(2.0 * t);
            }
            (loss, sum)
        };
        let all: Vec<(f64, Mat<f64>)> = (0..groups).into_par_iter().map(group).collect();
        let scale = 1.0 / self.count as f64;
        let (mut loss, mut sum) = (0.0, Mat::<f64>::zeros(d, d));
        for (own_loss, own) in all {
            loss += scale * own_loss;
            sum += own * faer::Scale(scale);
        }
        (loss, sum)
    }
}

/// The columns of a matrix in single precision, one after the other.
fn single(of: MatRef<'_, f64>) -> Vec<f32> {
    of.col_iter().flat_map(|column| column.iter().map(|&x| x as f32)).collect()
}

/// Refuses what no problem can be.
pub(super) fn check(d: usize, k: usize, r: usize) -> Result<()> {
    if (1..=k.min(d)).contains(&r) {
        return Ok(());
    }
    Err(Error::new("no matrix has this rank")
        .expected("s, the rank, from 1 to m and d")
        .got(format_args!("s = {r}, m = {k}, d = {d}"))
        .help("choose other sizes in the spec"))
}

/// Numbers of a symmetric d×d matrix.
const fn numbers_of(d: usize) -> usize {
    d * (d + 1) / 2
}

/// The numbers of a symmetric matrix, those off the diagonal times √2, so that products of matrices
/// are products of these.
fn flat(matrix: MatRef<'_, f64>) -> Vec<f64> {
    let d = matrix.nrows();
    let root = std::f64::consts::SQRT_2;
    let mut numbers = Vec::with_capacity(numbers_of(d));
    for j in 0..d {
        numbers.extend((0..j).map(|i| root * matrix[(i, j)]));
        numbers.push(matrix[(j, j)]);
    }
    numbers
}

/// The symmetric matrix of these numbers.
fn square_of(numbers: &[f64], d: usize) -> Mat<f64> {
    let root = std::f64::consts::FRAC_1_SQRT_2;
    Mat::from_fn(d, d, |i, j| {
        let (low, high) = (i.min(j), i.max(j));
        let own = numbers[numbers_of(high) + low];
        if i == j { own } else { root * own }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems() -> Vec<Problem> {
        let own = |kind| Drawn { kind, first: 0, count: 150, all: 150, sigma: 0.1, seed: 4 };
        let at = || target(6, 2, 0.5, 3);
        vec![
            Problem::population(at(), None),
            Problem::measured(at(), own(Measurements::Gaussian)),
            Problem::drawn(at(), own(Measurements::Gaussian)),
            Problem::measured(at(), own(Measurements::Quadratic)),
        ]
    }

    fn model(seed: u64) -> Mat<f64> {
        let mut rng = Rng::new(seed, 0);
        Mat::from_fn(6, 4, |_, _| 0.4 * f64::from(rng.normal()))
    }

    fn inner(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
        a.col_iter().zip(b.col_iter()).map(|(a, b)| a.transpose() * b).sum()
    }

    #[test]
    fn targets_have_their_singular_values() {
        let values = target(9, 3, 0.2, 1).singular_values().unwrap();
        for (own, expected) in values.iter().zip([1.0, 0.6, 0.2]) {
            assert!((own - expected).abs() < 1e-6, "{values:?}");
        }
    }

    #[test]
    fn gram_and_drawn_measurements_agree() {
        let all = problems();
        assert!(all[1].has_gram() && !all[2].has_gram());
        let u = model(1);
        let mut gradients = [Mat::zeros(6, 4), Mat::zeros(6, 4)];
        let losses = [1, 2].map(|k| all[k].gradient(u.as_ref(), &mut gradients[k - 1]).loss);
        assert!((losses[0] - losses[1]).abs() < 1e-9 * losses[0], "{losses:?}");
        assert!((&gradients[0] - &gradients[1]).norm_l2() < 1e-9 * gradients[0].norm_l2());
    }

    #[test]
    fn gradients_and_hessians_match_differences() {
        for (which, problem) in problems().iter().enumerate() {
            let (u, v) = (model(1), model(2));
            let step = 1e-5;
            let moved = |by: f64| &u + &v * faer::Scale(by);
            let at = |by: f64| {
                let mut gradient = Mat::zeros(6, 4);
                let loss = problem.gradient(moved(by).as_ref(), &mut gradient).loss;
                (loss, gradient)
            };
            let (_, gradient) = at(0.0);
            let difference = (at(step).0 - at(-step).0) / (2.0 * step);
            let along = inner(&gradient, &v);
            assert!(
                (along - difference).abs() < 1e-6 * along.abs(),
                "{which}: {along} {difference}"
            );
            let mut product = Mat::zeros(6, 4);
            let (_, by_matrix) = problem.by_matrix(u.as_ref());
            problem.hessian(&by_matrix, u.as_ref(), v.as_ref(), &mut product);
            let difference = (at(step).1 - at(-step).1) * faer::Scale(0.5 / step);
            let error = (&product - &difference).norm_l2() / product.norm_l2();
            assert!(error < 1e-6, "{which}: {error}");
        }
    }

    #[test]
    fn many_measurements_are_nearly_isometric() {
        let of = |count| {
            let drawn = Drawn {
                kind: Measurements::Gaussian,
                first: 0,
                count,
                all: count,
                sigma: 0.0,
                seed: 1,
            };
            let problem = Problem::measured(target(6, 2, 1.0, 3), drawn);
            problem.isometry(2, 50, 1).unwrap()
        };
        assert!(of(20_000) < 0.05 && of(60) > 0.1, "{} {}", of(20_000), of(60));
        assert_eq!(problems()[0].isometry(2, 5, 1), None);
    }
}
