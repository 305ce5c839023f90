//! Extreme eigenvalues of a symmetric operator that is known by its products (Lanczos), and the
//! spectral norm of a dense matrix.

use pulp::Arch;
use tamis::base::rng::{Rng, stream};

/// Stream of first vectors.
const START: u64 = stream::USER + (0x7e20 << 32);
/// Products between two looks at the eigenvalues.
const EVERY: usize = 8;
/// Change of an eigenvalue between two looks, relative to the largest magnitude, below which it
/// has converged; eigenvalues converge from within.
const STILL: f64 = 1e-6;
/// Lanes of a sum in single precision.
const LANES: usize = 64;

/// The ends of a spectrum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ends {
    pub(super) least: f64,
    pub(super) largest: f64,
}

/// Which ends have to converge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Largest,
    Both,
}

/// The ends of the spectrum of a symmetric n×n operator; `product(v, out)` sets `out` to its
/// product with `v`. At most n steps, and at most 300.
///
/// Vectors are not made orthogonal again, which repeats eigenvalues inside the spectrum and leaves
/// its ends as they are.
pub(super) fn ends(
    n: usize,
    seed: u64,
    wanted: Wanted,
    mut product: impl FnMut(&[f64], &mut [f64]),
) -> Ends {
    let mut rng = Rng::new(seed, START);
    let mut v: Vec<f64> = (0..n).map(|_| f64::from(rng.normal())).collect();
    let length = norm(&v);
    scale(&mut v, 1.0 / length);
    let (mut before, mut next) = (vec![0.0; n], vec![0.0; n]);
    let (mut diagonal, mut beside) = (Vec::new(), Vec::<f64>::new());
    let mut last = Ends { least: f64::NAN, largest: f64::NAN };
    let steps = n.min(300);
    for step in 1..=steps {
        product(&v, &mut next);
        let alpha = dot(&v, &next);
        let beta = beside.last().copied().unwrap_or(0.0);
        for ((next, v), before) in next.iter_mut().zip(&v).zip(&before) {
            *next -= alpha * v + beta * before;
        }
        diagonal.push(alpha);
        let beta = norm(&next);
        let bound = diagonal.iter().fold(0.0_f64, |most, alpha| most.max(alpha.abs()));
        let ended = step == steps || beta <= f64::EPSILON * bound;
        if ended || step % EVERY == 0 {
            let own = tridiagonal(&diagonal, &beside);
            let unit = STILL * own.largest.abs().max(own.least.abs());
            let moved = match wanted {
                Wanted::Largest => (own.largest - last.largest).abs(),
                Wanted::Both => {
                    (own.largest - last.largest).abs().max((own.least - last.least).abs())
                }
            };
            last = own;
            // NaN at the first look.
            if ended || moved <= unit {
                break;
            }
        }
        beside.push(beta);
        scale(&mut next, 1.0 / beta);
        std::mem::swap(&mut before, &mut v);
        std::mem::swap(&mut v, &mut next);
    }
    last
}

/// The ends of the spectrum of a symmetric tridiagonal matrix, by bisection on the number of
/// eigenvalues below a point (Sturm).
fn tridiagonal(diagonal: &[f64], beside: &[f64]) -> Ends {
    let n = diagonal.len();
    let beside = |i: usize| if i == 0 || i >= n { 0.0 } else { beside[i - 1] };
    // Gershgorin.
    let reach = |i: usize| beside(i).abs() + beside(i + 1).abs();
    let low = (0..n).map(|i| diagonal[i] - reach(i)).fold(f64::INFINITY, f64::min);
    let high = (0..n).map(|i| diagonal[i] + reach(i)).fold(f64::NEG_INFINITY, f64::max);
    let below = |x: f64| {
        let mut pivot = 1.0;
        (0..n)
            .filter(|&i| {
                pivot = diagonal[i] - x - beside(i) * beside(i) / pivot;
                if pivot == 0.0 {
                    pivot = f64::MIN_POSITIVE;
                }
                pivot < 0.0
            })
            .count()
    };
    let find = |count: usize| {
        let (mut low, mut high) = (low, high);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if below(middle) >= count { high = middle } else { low = middle }
        }
        f64::midpoint(low, high)
    };
    Ends { least: find(1), largest: find(n) }
}

/// The spectral norm of a dense matrix of `columns` columns, row by row, to about 1e-6 of itself.
pub(super) fn spectral_norm(matrix: &[f32], columns: usize, seed: u64) -> f64 {
    let arch = Arch::new();
    let (mut x, mut y) = (vec![0.0_f32; columns], vec![0.0_f32; columns]);
    let ends = ends(columns, seed, Wanted::Largest, |v, out| {
        x.iter_mut().zip(v).for_each(|(x, v)| *x = *v as f32);
        y.fill(0.0);
        sweep(arch, matrix, &x, &mut y);
        out.iter_mut().zip(&y).for_each(|(out, y)| *out = f64::from(*y));
    });
    ends.largest.max(0.0).sqrt()
}

/// `y += Aᵀ A x`, with one read of A.
fn sweep(arch: Arch, matrix: &[f32], x: &[f32], y: &mut [f32]) {
    // Only a closure that may run once is inlined into the vector code.
    fn once(arch: Arch, work: impl FnOnce()) {
        arch.dispatch(work);
    }
    once(
        arch,
        #[inline(always)]
        || {
            for row in matrix.chunks_exact(x.len()) {
                let product = product(row, x);
                row.iter().zip(y.iter_mut()).for_each(|(a, y)| *y += a * product);
            }
        },
    );
}

/// A product over lanes, so that vectors hold partial sums.
#[inline(always)]
fn product(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0_f32; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f32 = a_chunks.remainder().iter().zip(b_chunks.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a_chunks.zip(b_chunks) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f32>() + rest
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

fn scale(a: &mut [f64], by: f64) {
    a.iter_mut().for_each(|a| *a *= by);
}

#[cfg(test)]
mod tests {
    use faer::{Mat, Side};

    use super::*;

    #[test]
    fn norms_match_a_full_decomposition() {
        for (rows, columns, seed) in [(1, 1, 0), (3, 70, 1), (70, 3, 2), (96, 96, 3), (40, 129, 4)]
        {
            let mut matrix = vec![0.0; rows * columns];
            Rng::new(seed, 0).fill_normal(&mut matrix);
            let full = Mat::from_fn(rows, columns, |i, j| f64::from(matrix[i * columns + j]));
            let exact = full.singular_values().unwrap()[0];
            let own = spectral_norm(&matrix, columns, seed);
            assert!((own / exact - 1.0).abs() < 2e-5, "{rows}×{columns}: {own} {exact}");
        }
    }

    #[test]
    fn both_ends_match_a_full_decomposition() {
        let n = 60;
        let mut half = vec![0.0; n * n];
        Rng::new(5, 0).fill_normal(&mut half);
        let full = Mat::from_fn(n, n, |i, j| f64::from(half[i * n + j] + half[j * n + i]));
        let all = full.self_adjoint_eigenvalues(Side::Lower).unwrap();
        let own = ends(n, 1, Wanted::Both, |v, out| {
            for (i, out) in out.iter_mut().enumerate() {
                *out = (0..n).map(|j| full[(i, j)] * v[j]).sum();
            }
        });
        assert!((own.least - all[0]).abs() < 1e-4 * all[n - 1], "{own:?} {}", all[0]);
        assert!((own.largest - all[n - 1]).abs() < 1e-4 * all[n - 1], "{own:?} {}", all[n - 1]);
    }

    /// A multiple of the identity ends after one step.
    #[test]
    fn one_eigenvalue_is_both_ends() {
        let own = ends(7, 1, Wanted::Both, |v, out| {
            out.iter_mut().zip(v).for_each(|(out, v)| *out = -3.0 * v);
        });
        assert!((own.least + 3.0).abs() < 1e-12 && (own.largest + 3.0).abs() < 1e-12, "{own:?}");
    }
}
