//! One cell of an experiment on matrix sensing.

use faer::{Mat, MatRef, Side};
use tamis::base::rng::{Rng, stream};

use super::certificate::certificate;
use super::descent::{Descended, Settings, descend};
use super::lasso::Lasso;
use super::problem::{Drawn, Problem, check, target};
use crate::Result;
use crate::lab::experiment::course::{Course, gpu_name};
use crate::lab::experiment::record::Solved;
use crate::lab::experiment::spec::{Method, Metric, Point, Sensed, SensingData};
use crate::lab::experiment::theory::measured::Measured;
use crate::lab::plot::{Bins, Histogram};
use crate::operator::{Device, GpuProducts, Stop};
use crate::{Error, base::room_for};

const START: u64 = stream::USER + (0x7e32 << 32);
/// The gradient that fine-tuning ends at, and its most steps.
const TUNED: f64 = 1e-9;
const TUNING_STEPS: u32 = 20_000;
/// Fractions of the recipe's lambda among which validation chooses.
const FOLDS: usize = 5;
const FACTORS: [f64; 8] = [0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0];
/// Draws of an estimate of restricted isometry.
const ISOMETRY: u32 = 200;
/// Bins of the histogram of norms of columns.
const BINS: usize = 50;

/// What a cell asks for.
pub(in super::super) struct Task<'a> {
    pub(in super::super) method: Method,
    pub(in super::super) data: &'a SensingData,
    pub(in super::super) of: Sensed,
    pub(in super::super) at: Point,
    pub(in super::super) steps: u32,
    pub(in super::super) seed: u64,
    /// Where products of large matrices are made.
    pub(in super::super) device: &'a Device,
    pub(in super::super) stop: &'a Stop,
}

/// Senses, prunes and fine-tunes as the method says.
pub(in super::super) fn sense(task: &Task<'_>) -> Result<Solved> {
    let Point { m: k, s: r, d, .. } = task.at;
    check(d, k, r)?;
    let bytes = (8 * d as u64).saturating_mul(8 * (k + d) as u64);
    room_for("the matrices", bytes, "choose fewer rows or columns in the spec")?;
    let problem = task.problem(0, task.at.n);
    let mut course = Course::start();
    let (mut measured, descended) = match task.method {
        Method::Greedy => task.greedy(&problem)?,
        _ => task.vanilla(&problem)?,
    };
    measured.insert(Metric::GradientNorm, descended.gradient);
    measured.insert(Metric::Loss, descended.loss);
    measured.insert(Metric::IterateNorm, descended.largest);
    measured.insert(Metric::DescentSteps, descended.steps.into());
    let isometry = problem.isometry(r, ISOMETRY, task.seed);
    measured.extend(isometry.map(|own| (Metric::Isometry, own)));
    course.see_all(&descended.losses);
    let norms = norms(descended.u.as_ref(), descended.dropped);
    let histograms = vec![relative(&norms, task.method.title())];
    let device = problem.gpu_for(d, k).and_then(|_| gpu_name(task.device.name()));
    Ok(Solved { measured, histograms, device, ..course.ended(None) })
}

impl Task<'_> {
    /// Of `count` measurements from the first on, behind the last of which the first comes again.
    fn problem(&self, first: usize, count: usize) -> Problem {
        let own = target(self.at.d, self.at.s, self.of.sr, self.seed);
        if self.at.n == 0 {
            return Problem::population(own, GpuProducts::on(self.device));
        }
        let (kind, sigma, seed) = (self.data.measurements, self.of.sigma, self.seed);
        let drawn = Drawn { kind, first, count, all: self.at.n, sigma, seed };
        Problem::measured(own, drawn)
    }

    /// The group lasso of eq. 10, or that of the spec.
    fn lasso(&self) -> Lasso {
        let [lambda, beta] = self.of.lasso(self.at);
        Lasso { lambda, beta }
    }

    /// The norm of the gradient at which a point counts as stationary.
    fn goal(&self) -> f64 {
        let (k, r) = (self.at.m as f64, self.at.s as f64);
        let by_recipe = self.of.sr.powi(3) / (k.sqrt() * r.powf(2.5));
        self.of.goal.unwrap_or(by_recipe.min(1e-4))
    }

    fn settings(&self, lasso: Lasso) -> Settings {
        let Sensed { step, momentum, .. } = self.of;
        let (steps, goal, seed) = (self.steps, self.goal(), self.seed);
        Settings { lasso, step, momentum, steps, goal, seed }
    }

    fn start(&self) -> Mat<f64> {
        let mut rng = Rng::new(self.seed, START);
        Mat::from_fn(self.at.d, self.at.m, |_, _| self.of.start * f64::from(rng.normal()))
    }

    /// Descent with the group lasso, the prune at `2 √beta`, and fine-tuning.
    fn greedy(&self, problem: &Problem) -> Result<(Measured, Descended)> {
        let mut lasso = self.lasso();
        if self.of.validated {
            lasso.lambda = self.validated(lasso)?;
        }
        let found = descend(problem, self.start(), &self.settings(lasso), self.stop)?;
        let norms = norms(found.u.as_ref(), found.dropped);
        let own = certificate(problem, found.u.as_ref(), found.dropped, &lasso, self.seed)?;
        let pruned = pruned(found.u.as_ref(), &lasso);
        let tuned = self.tuned(problem, pruned.clone())?;
        let is_closed = lasso.lambda >= 2.0 * self.of.sr.powi(2) * lasso.beta.sqrt();
        let mut measured = Measured::from([
            (Metric::Lambda, lasso.lambda),
            (Metric::SmoothingBeta, lasso.beta),
            (Metric::Columns, above(&norms, 0.5)),
            (Metric::Kept, pruned.ncols() as f64),
            (Metric::PrunedError, problem.error(pruned.as_ref())),
            (Metric::TunedError, problem.error(tuned.u.as_ref())),
            (Metric::LeastCurvature, own.least),
            (Metric::LanczosCurvature, own.by_lanczos),
            (Metric::ClosedDirection, f64::from(u8::from(is_closed))),
            (Metric::Success, self.success(problem, pruned.as_ref())),
        ]);
        measured.extend(self.noise_form(pruned_dof).map(|own| (Metric::NoiseForm, own)));
        // Without a column that stays there is no curvature by Lanczos.
        measured.retain(|_, value| value.is_finite());
        Ok((measured, found))
    }

    /// Descent without a group lasso; of [`Method::Truncated`] what is left of it in rank r.
    fn vanilla(&self, problem: &Problem) -> Result<(Measured, Descended)> {
        let start = self.start();
        let found = descend(problem, start.clone(), &self.settings(Lasso::NONE), self.stop)?;
        let own = norms(found.u.as_ref(), 0);
        let mut measured = Measured::from([
            (Metric::Columns, above(&own, 0.5)),
            (Metric::NearLargest, above(&own, 0.99)),
        ]);
        if self.method == Method::Truncated {
            let cut = truncated(found.u.as_ref(), self.at.s)?;
            let tuned = self.tuned(problem, cut.clone())?;
            measured.insert(Metric::Kept, self.at.s as f64);
            measured.insert(Metric::PrunedError, problem.error(cut.as_ref()));
            measured.insert(Metric::TunedError, problem.error(tuned.u.as_ref()));
            measured.extend(self.noise_form(pruned_dof).map(|own| (Metric::NoiseForm, own)));
            return Ok((measured, found));
        }
        measured.insert(Metric::Kept, self.at.m as f64);
        measured.insert(Metric::TunedError, problem.error(found.u.as_ref()));
        measured.extend(self.noise_form(whole_dof).map(|own| (Metric::NoiseForm, own)));
        if self.at.s == 1 {
            let along = problem.target.transpose() * &start;
            let along: Vec<f64> = (0..self.at.m).map(|j| along[(0, j)].abs()).collect();
            measured.insert(Metric::Correlation, correlation(&own, &along));
        }
        Ok((measured, found))
    }

    fn tuned(&self, problem: &Problem, u: Mat<f64>) -> Result<Descended> {
        let steps = self.steps.max(TUNING_STEPS);
        let settings = Settings { goal: TUNED, steps, ..self.settings(Lasso::NONE) };
        descend(problem, u, &settings, self.stop)
    }

    /// Whether exactly r columns are left, with the error of Theorem 3.
    fn success(&self, problem: &Problem, pruned: MatRef<'_, f64>) -> f64 {
        let is_near = problem.error(pruned) <= 0.5 * self.of.sr * self.of.sr;
        f64::from(u8::from(pruned.ncols() == self.at.s && is_near))
    }

    /// `σ √(p/n)` for p free numbers, under noise.
    fn noise_form(&self, free: fn(Point) -> f64) -> Option<f64> {
        let n = self.at.n as f64;
        (self.of.sigma > 0.0).then(|| self.of.sigma * (free(self.at) / n).sqrt())
    }

    /// The lambda whose pruned and tuned models have the least loss on measurements that they were not
    /// fitted to, over [`FOLDS`] folds.
    fn validated(&self, recipe: Lasso) -> Result<f64> {
        let n = self.at.n;
        if n < FOLDS {
            return Err(Error::new("a lambda cannot be validated without measurements")
                .expected(format_args!("n of {FOLDS} or more"))
                .got(n)
                .help("take validated out of the spec, or give it measurements"));
        }
        let mut losses = [0.0; FACTORS.len()];
        for fold in 0..FOLDS {
            let (first, next) = (fold * n / FOLDS, (fold + 1) * n / FOLDS);
            let (own, held) =
                (self.problem(next, n - (next - first)), self.problem(first, next - first));
            for (factor, sum) in FACTORS.iter().zip(&mut losses) {
                let lasso = Lasso { lambda: factor * recipe.lambda, ..recipe };
                let found = descend(&own, self.start(), &self.settings(lasso), self.stop)?;
                let tuned = self.tuned(&own, pruned(found.u.as_ref(), &lasso))?;
                *sum += held.by_matrix(tuned.u.as_ref()).0;
            }
        }
        let best = FACTORS.iter().zip(losses).min_by(|(_, a), (_, b)| a.total_cmp(b));
        Ok(best.map_or(recipe.lambda, |(factor, _)| factor * recipe.lambda))
    }
}

/// `rd - r(r - 1)/2`, the free numbers of a symmetric matrix of rank r.
fn pruned_dof(at: Point) -> f64 {
    let (r, d) = (at.s as f64, at.d as f64);
    r * d - r * (r - 1.0) / 2.0
}

/// `kd`.
fn whole_dof(at: Point) -> f64 {
    (at.m * at.d) as f64
}

fn norms(u: MatRef<'_, f64>, dropped: usize) -> Vec<f64> {
    u.col_iter().map(|column| column.norm_l2()).chain(vec![0.0; dropped]).collect()
}

/// Columns above so much of the largest norm.
fn above(norms: &[f64], share: f64) -> f64 {
    let most = norms.iter().copied().fold(0.0, f64::max);
    norms.iter().filter(|norm| most > 0.0 && **norm > share * most).count() as f64
}

/// Norms as fractions of the largest.
fn relative(norms: &[f64], label: &str) -> Histogram {
    let most = norms.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let bins = Bins { low: 0.0, high: 1.0, count: BINS, log: false };
    Histogram::of(label, bins, norms.iter().map(|norm| (norm / most) as f32))
}

/// The columns of norm above `2 √beta`.
fn pruned(u: MatRef<'_, f64>, lasso: &Lasso) -> Mat<f64> {
    let stays: Vec<usize> =
        (0..u.ncols()).filter(|&j| u.col(j).norm_l2() > 2.0 * lasso.beta.sqrt()).collect();
    Mat::from_fn(u.nrows(), stays.len(), |i, j| u[(i, stays[j])])
}

/// A factor of the best approximation of `U Uᵀ` by rank r.
fn truncated(u: MatRef<'_, f64>, r: usize) -> Result<Mat<f64>> {
    let square = u * u.transpose();
    let own = square.self_adjoint_eigen(Side::Lower).map_err(|error| {
        Error::new("the eigenvalues of U Uᵀ were not found")
            .got(format_args!("{error:?}"))
            .help("choose another seed")
    })?;
    let d = u.nrows();
    let (values, vectors) = (own.S().column_vector(), own.U());
    // Rising.
    Ok(Mat::from_fn(d, r, |i, j| values[d - 1 - j].max(0.0).sqrt() * vectors[(i, d - 1 - j)]))
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len() as f64;
    let mean = |of: &[f64]| of.iter().sum::<f64>() / n;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let sum = |f: &dyn Fn(f64, f64) -> f64| {
        a.iter().zip(b).map(|(a, b)| f(a - mean_a, b - mean_b)).sum::<f64>()
    };
    sum(&|a, b| a * b) / (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::CPU;

    fn solve(method: Method, at: Point, of: Sensed, steps: u32) -> Measured {
        let data = SensingData { samples: 0, inputs: 1, measurements: Default::default() };
        let stop = Stop::new();
        let task = Task { method, data: &data, of, at, steps, seed: 1, device: &CPU, stop: &stop };
        sense(&task).unwrap().measured
    }

    fn at(d: usize, k: usize, r: usize, n: usize) -> Point {
        Point { m: k, s: r, n, d, variant: 0 }
    }

    #[test]
    fn group_lasso_leaves_exactly_the_rank() {
        let of = Sensed { sr: 0.5, ..Sensed::default() };
        let own = solve(Method::Greedy, at(30, 40, 3, 0), of, 15_000);
        assert_eq!((own[&Metric::Kept], own[&Metric::Success]), (3.0, 1.0), "{own:?}");
        assert!(own[&Metric::PrunedError] < 0.125 && own[&Metric::TunedError] < 1e-6, "{own:?}");
        assert!(own[&Metric::LeastCurvature] > -1e-6, "{own:?}");
        assert!(own[&Metric::IterateNorm] <= 3.0, "{own:?}");
    }

    #[test]
    fn without_it_many_columns_are_large() {
        let of = Sensed { lambda: Some(0.02), beta: Some(1e-2), ..Sensed::default() };
        let plain = solve(Method::Vanilla, at(40, 40, 4, 0), of, 3000);
        let own = solve(Method::Greedy, at(40, 40, 4, 0), of, 3000);
        assert_eq!(own[&Metric::Columns], 4.0, "{own:?}");
        assert!(plain[&Metric::Columns] > 8.0, "{plain:?}");
    }

    #[test]
    fn tuned_error_under_noise_is_the_free_numbers() {
        let of = Sensed { sigma: 0.3, ..Sensed::default() };
        let own = solve(Method::Greedy, at(12, 12, 2, 2000), of, 15_000);
        assert_eq!(own[&Metric::Kept], 2.0, "{own:?}");
        let cut = solve(Method::Truncated, at(12, 12, 2, 2000), of, 4000);
        for own in [own, cut] {
            let ratio = own[&Metric::TunedError] / own[&Metric::NoiseForm];
            assert!((0.7..1.3).contains(&ratio), "{ratio} {own:?}");
        }
    }

    #[test]
    fn norms_are_proportional_to_the_start() {
        let of = Sensed { start: 1e-5, goal: Some(1e-6), ..Sensed::default() };
        let own = solve(Method::Vanilla, at(30, 30, 1, 0), of, 3000);
        assert!(own[&Metric::Correlation] > 0.9999, "{own:?}");
    }

    #[test]
    fn a_rank_above_the_columns_is_refused() {
        assert!(check(10, 3, 4).is_err() && check(10, 3, 0).is_err() && check(10, 3, 3).is_ok());
    }
}
