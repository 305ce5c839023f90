//! Masks as sketches (paper SKETCH: N. Bar and R. Giryes, arXiv 2305.17559, section 4): the expected error
//! `E |Xᵀ(m ⊙ w) - Xᵀ w|²` of s draws, by enumeration of all draws and by Monte Carlo.
//!
//! X is d×n with rows `X_k`, m counts how often k was drawn, over `s p_k`. Masks are drawn for
//! w0, `p_k ∝ |X_k| |w0_k|`, or uniformly; products are those of w0 or of `w* = w0 + t g`, g standard
//! normal, which stands for trained weights.

use rayon::prelude::*;
use tamis::base::rng::{Rng, seed_of, stream};
use tamis::network::mask::sketch;

use crate::Result;
use crate::lab::experiment::spec::{Law, Method, Point};
use crate::operator::Stop;

const WEIGHTS: u64 = stream::USER + (0x7e10 << 32);
const MOVES: u64 = stream::USER + (0x7e11 << 32);
const ROWS: u64 = stream::USER + (0x7e12 << 32);
const SCALES: u64 = stream::USER + (0x7e13 << 32);
/// Seeds of the draws, see [`seed_of`].
const DRAWS: u64 = stream::USER + (0x7e14 << 32);
/// Inputs of the network whose tangent features are sketched.
const INPUTS: usize = 7;

/// What a claim is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Setting {
    /// Whether X is normal with variance 1/n and drawn anew with every mask; else it is given.
    is_normal: bool,
    /// Whether the product is of w*; else of w0.
    is_moved: bool,
    is_uniform: bool,
}

impl Setting {
    const fn of(claim: Method) -> Self {
        Self {
            is_normal: matches!(
                claim,
                Method::SketchNormal | Method::SketchNormalTrained | Method::SketchUniform
            ),
            is_moved: matches!(
                claim,
                Method::SketchTrained | Method::SketchNormalTrained | Method::SketchUniform
            ),
            is_uniform: matches!(claim, Method::SketchUniform),
        }
    }
}

/// What the paper prints for the expected error, and what it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Forms {
    pub(super) exact: f64,
    pub(super) printed: f64,
    /// Lemma 4.2 with `|w|₁` in place of `|w|₂`.
    pub(super) repaired: Option<f64>,
}

/// A mean over draws.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    pub(super) mean: f64,
    pub(super) error: f64,
}

/// One instance of a claim.
pub(super) struct Sketch {
    claim: Method,
    at: Point,
    seed: u64,
    /// w0, and what the product is of.
    drawn_for: Vec<f32>,
    weights: Vec<f32>,
    /// X, row by row, where it is given: normal rows times factors from 1/2 to 2, or derivatives.
    rows: Vec<f32>,
}

impl Sketch {
    /// The claim with weights of a law, moved by `movement` in their units.
    pub(super) fn new(claim: Method, at: Point, law: Law, movement: f64, seed: u64) -> Self {
        let Point { n, d, .. } = at;
        let mut rng = Rng::new(seed, WEIGHTS);
        let drawn_for: Vec<f32> = (0..d)
            .map(|_| match law {
                Law::Ones => 1.0,
                Law::Normal => rng.normal(),
                Law::Bounded => {
                    let sign = if rng.below(2) == 0 { 1.0 } else { -1.0 };
                    sign * (0.5 + rng.uniform())
                }
            })
            .collect();
        let setting = Setting::of(claim);
        let (mut moves, mut scales) = (Rng::new(seed, MOVES), Rng::new(seed, SCALES));
        let step = if setting.is_moved { movement as f32 } else { 0.0 };
        let weights = drawn_for.iter().map(|w| w + step * moves.normal()).collect();
        let mut rows = Vec::new();
        if claim == Method::SketchTangent {
            rows = tangents(&drawn_for, &normal_rows(seed, n, INPUTS));
        } else if !setting.is_normal {
            rows = normal_rows(seed, n, d);
            for row in rows.chunks_mut(n) {
                let factor = 0.5 + 1.5 * scales.uniform();
                row.iter_mut().for_each(|x| *x *= factor);
            }
        }
        Self { claim, at, seed, drawn_for, weights, rows }
    }

    /// The closed forms; of one draw where the point has no number of them.
    pub(super) fn forms(&self) -> Forms {
        let (s, d, n) = (self.at.s.max(1) as f64, self.at.d as f64, self.at.n);
        let sum = |term: &dyn Fn(f64, f64) -> f64| -> f64 {
            let pairs = self.drawn_for.iter().zip(&self.weights);
            pairs.map(|(&w0, &w)| term(w0.into(), w.into())).sum::<f64>()
        };
        let norm1 = sum(&|w0, _| w0.abs());
        let square = sum(&|_, w| w * w);
        let relative = sum(&|w0, w| w * w / w0.abs());
        // E |X_j| E |X_k| for two rows.
        let c = mean_norm(n).powi(2);
        let forms = |exact: f64, printed: f64| Forms {
            exact: exact / s,
            printed: printed / s,
            repaired: None,
        };
        match self.claim {
            Method::SketchNormal => Forms {
                repaired: Some(norm1 * norm1 / s),
                ..forms(c * (norm1 * norm1 - square), square)
            },
            Method::SketchUniform => forms((d - 1.0) * square, d * square),
            Method::SketchWeights | Method::SketchTrained | Method::SketchTangent => {
                let norms = self.norms();
                let terms = norms.iter().zip(&self.drawn_for).zip(&self.weights);
                let (mut drawn, mut own) = (0.0, 0.0);
                for ((norm, &w0), &w) in terms {
                    drawn += norm * f64::from(w0.abs());
                    own += norm * f64::from(w).powi(2) / f64::from(w0.abs());
                }
                let exact = drawn * own - squared_norm(&self.product(|w, _| w));
                forms(exact, exact)
            }
            _ => {
                let moved = sum(&|w0, w| (w - w0).powi(2));
                let moved1 = sum(&|w0, w| (w - w0).abs());
                let least =
                    self.drawn_for.iter().fold(f32::INFINITY, |least, w| least.min(w.abs()));
                let printed = norm1 * (moved / f64::from(least) + 2.0 * moved1 + norm1);
                forms(c * (norm1 * relative - square), printed)
            }
        }
    }

    /// The expected error over all `d^s` draws; of normal X over the directions of its rows and
    /// over their norms.
    ///
    /// Given the norms, rows have independent directions, so the error of a mask m is
    /// `sum_k (m_k - 1)² w_k² |X_k|²`. Its expectation is a polynomial of degree 2 in each norm, so
    /// that a law of two values with the same mean and variance gives that over the norms.
    pub(super) fn enumerated(&self) -> f64 {
        let d = self.at.d;
        if !Setting::of(self.claim).is_normal {
            let error = |mask: &[f64]| squared_norm(&self.product(|w, k| (mask[k] - 1.0) * w));
            return self.over_draws(&self.norms(), error);
        }
        let mean = mean_norm(self.at.n);
        let deviation = (1.0 - mean * mean).max(0.0).sqrt();
        let mut sum = 0.0;
        for signs in 0..1_u64 << d {
            let side = |k: usize| if signs >> k & 1 == 0 { 1.0 } else { -1.0 };
            let norms: Vec<f64> = (0..d).map(|k| mean + side(k) * deviation).collect();
            let error = |mask: &[f64]| {
                let terms = mask.iter().zip(&self.weights).zip(&norms);
                terms.map(|((m, &w), norm)| ((m - 1.0) * f64::from(w) * norm).powi(2)).sum::<f64>()
            };
            sum += self.over_draws(&norms, error);
        }
        sum / (1_u64 << d) as f64
    }

    /// A mean over all sequences of s draws, each with its probability.
    fn over_draws(&self, norms: &[f64], of: impl Fn(&[f64]) -> f64) -> f64 {
        let (d, s) = (self.at.d, self.at.s);
        let p = self.probabilities(norms);
        let (mut drawn, mut mean) = (vec![0; s], 0.0);
        loop {
            let mut mask = vec![0.0; d];
            drawn.iter().for_each(|&k: &usize| mask[k] += 1.0 / (s as f64 * p[k]));
            mean += drawn.iter().map(|&k| p[k]).product::<f64>() * of(&mask);
            let Some(next) = drawn.iter().rposition(|&k| k + 1 < d) else { return mean };
            drawn[next] += 1;
            drawn[next + 1..].fill(0);
        }
    }

    fn probabilities(&self, norms: &[f64]) -> Vec<f64> {
        if Setting::of(self.claim).is_uniform {
            return vec![1.0 / norms.len() as f64; norms.len()];
        }
        let own = norms.iter().zip(&self.drawn_for).map(|(norm, &w)| norm * f64::from(w.abs()));
        let sum: f64 = own.clone().sum();
        own.map(|p| p / sum).collect()
    }

    /// The mean error of so many masks that Algorithm 1 draws, 2 or more.
    pub(super) fn sampled(&self, draws: u32, stop: &Stop) -> Result<Estimate> {
        let all = (1..=draws).into_par_iter().map(|k| {
            if stop.asked() {
                return Err(tamis::Error::Stopped.into());
            }
            self.sample(seed_of(self.seed, DRAWS, k))
        });
        let all = all.collect::<Result<Vec<f64>>>()?;
        let count = f64::from(draws);
        let mean = all.iter().sum::<f64>() / count;
        let squares: f64 = all.iter().map(|error| (error - mean).powi(2)).sum();
        Ok(Estimate { mean, error: (squares / (count * (count - 1.0))).sqrt() })
    }

    /// The error of one mask.
    fn sample(&self, seed: u64) -> Result<f64> {
        let Point { n, d, s, .. } = self.at;
        let setting = Setting::of(self.claim);
        let drawn = setting.is_normal.then(|| normal_rows(seed, n, d));
        let rows = drawn.as_ref().unwrap_or(&self.rows);
        let mut p = vec![1.0 / d as f32; d];
        if !setting.is_uniform {
            let norms: Vec<f32> = rows.chunks(n).map(|row| norm(row) as f32).collect();
            sketch::best_probabilities(&norms, &self.drawn_for, &mut p)?;
        }
        let mut mask = vec![0.0; d];
        sketch::draw(&p, s, seed, &mut mask)?;
        Ok(squared_norm(&product(rows, n, &self.weights, |w, k| (f64::from(mask[k]) - 1.0) * w)))
    }

    fn norms(&self) -> Vec<f64> {
        self.rows.chunks(self.at.n).map(norm).collect()
    }

    fn product(&self, factor: impl Fn(f64, usize) -> f64) -> Vec<f64> {
        product(&self.rows, self.at.n, &self.weights, factor)
    }
}

/// `Xᵀ v`, v being `factor` of each weight and its place.
fn product(rows: &[f32], n: usize, w: &[f32], factor: impl Fn(f64, usize) -> f64) -> Vec<f64> {
    let mut out = vec![0.0; n];
    for (k, (row, &w)) in rows.chunks(n).zip(w).enumerate() {
        let v = factor(w.into(), k);
        out.iter_mut().zip(row).for_each(|(out, &x)| *out += v * f64::from(x));
    }
    out
}

/// d×n normal numbers of variance 1/n.
fn normal_rows(seed: u64, n: usize, d: usize) -> Vec<f32> {
    let mut rows = vec![0.0; n * d];
    Rng::new(seed, ROWS).fill_normal(&mut rows);
    let scale = 1.0 / (n as f32).sqrt();
    rows.iter_mut().for_each(|x| *x *= scale);
    rows
}

/// The derivatives of `v · relu(W x)` by the weights, those of W row by row and then v, one row
/// each; `inputs` are the samples x, column by column.
fn tangents(weights: &[f32], inputs: &[f32]) -> Vec<f32> {
    let (neurons, n) = (weights.len() / (INPUTS + 1), inputs.len() / INPUTS);
    let (first, second) = weights.split_at(neurons * INPUTS);
    let mut rows = vec![0.0; weights.len() * n];
    let (of_first, of_second) = rows.split_at_mut(first.len() * n);
    for (h, (w, &v)) in first.chunks(INPUTS).zip(second).enumerate() {
        for k in 0..n {
            let x = |i: usize| inputs[i * n + k];
            let z: f32 = w.iter().enumerate().map(|(i, w)| w * x(i)).sum();
            if z > 0.0 {
                of_second[h * n + k] = z;
                (0..INPUTS).for_each(|i| of_first[(h * INPUTS + i) * n + k] = v * x(i));
            }
        }
    }
    rows
}

fn norm(row: &[f32]) -> f64 {
    row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt()
}

fn squared_norm(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum()
}

/// The mean norm of n normal numbers of variance 1/n. Of variance 1 it is `√(2/π)` for one, and for
/// n + 1 it is n over that for n.
fn mean_norm(n: usize) -> f64 {
    let one = std::f64::consts::FRAC_2_PI.sqrt();
    (1..n).fold(one, |mean, k| k as f64 / mean) / (n as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIMS: [Method; 5] = [
        Method::SketchWeights,
        Method::SketchNormal,
        Method::SketchTrained,
        Method::SketchNormalTrained,
        Method::SketchUniform,
    ];

    fn sketch(claim: Method, s: usize, d: usize) -> Sketch {
        let at = Point { m: 0, s, n: 7, d, variant: 0 };
        Sketch::new(claim, at, Law::Bounded, 0.3, 5)
    }

    #[test]
    fn all_draws_give_the_closed_forms() {
        for claim in CLAIMS {
            for s in [1, 3] {
                let own = sketch(claim, s, 5);
                let (found, exact) = (own.enumerated(), own.forms().exact);
                assert!((found / exact - 1.0).abs() < 1e-12, "{claim:?} {s}: {found} {exact}");
            }
        }
    }

    /// Probabilities for other weights give another error, and for the best ones the least.
    #[test]
    fn other_probabilities_give_another_error() {
        for claim in [Method::SketchWeights, Method::SketchNormal] {
            let mut own = sketch(claim, 2, 4);
            let least = own.enumerated();
            own.drawn_for[1] *= 1.1;
            let found = own.enumerated();
            assert!(found > least * (1.0 + 1e-5), "{claim:?}: {found} {least}");
        }
    }

    #[test]
    fn algorithm_1_draws_what_the_forms_say() {
        for claim in CLAIMS {
            let own = sketch(claim, 4, 12);
            let found = own.sampled(20_000, &Stop::new()).unwrap();
            let exact = own.forms().exact;
            let off = (found.mean - exact).abs() / found.error;
            assert!(off < 4.0 && found.error < 0.02 * exact, "{claim:?}: {found:?} {exact}");
        }
    }

    /// Outputs are homogeneous of degree 2 in the weights, so `Jᵀ w` is twice the output.
    #[test]
    fn tangent_features_are_those_of_the_network() {
        let own = sketch(Method::SketchTangent, 3, 8 * 4);
        let inputs = normal_rows(5, 7, INPUTS);
        for (k, twice) in own.product(|w, _| w).into_iter().enumerate() {
            let neuron = |h: usize| {
                let w = &own.weights[h * INPUTS..][..INPUTS];
                let z: f32 = (0..INPUTS).map(|i| w[i] * inputs[i * 7 + k]).sum();
                f64::from(own.weights[4 * INPUTS + h] * z.max(0.0))
            };
            let output: f64 = (0..4).map(neuron).sum();
            assert!((twice - 2.0 * output).abs() < 1e-5 && output != 0.0, "{twice} {output}");
        }
        let found = own.sampled(5000, &Stop::new()).unwrap();
        let exact = own.forms().exact;
        assert!((found.mean - exact).abs() < 4.0 * found.error, "{found:?} {exact}");
    }

    #[test]
    fn threads_change_no_bit() {
        let own = sketch(Method::SketchNormalTrained, 3, 9);
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| own.sampled(501, &Stop::new()).unwrap())
        };
        assert_eq!(run(1), run(3));
    }

    #[test]
    fn mean_norms_are_known_for_few_numbers() {
        assert!((mean_norm(1) - 0.797_884_560_8).abs() < 1e-9);
        // A Rayleigh number: √(π/2), over √2.
        assert!((mean_norm(2) - 0.886_226_925_5).abs() < 1e-9);
        assert!((mean_norm(20).powi(2) - 0.9753).abs() < 1e-4);
    }
}
