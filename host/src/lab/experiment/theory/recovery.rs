//! Theorem 1: a planted vector, recovered step by step from `y = A w*`.

use std::convert::Infallible;

use tamis::base::rng::{Rng, stream};
use tamis::learn::iht::{self, Params};
use tamis::network::gates::Gates;
use tamis::network::net::EntriesMut;
use tamis::network::weights::Weights;
use tamis::operator::sensing::{HostSensing, Work};

use super::generators::{Generators, distinct};
use crate::Result;
use crate::base::statistics::LeastSquares;
use crate::operator::Stop;

const PLANTED: u64 = stream::USER + (0x7e01 << 32);

/// Loss over its start at which a recovery ends; single precision reaches about 1e-13.
const END: f64 = 1e-11;

/// Planted weights: flat indices, rising, and a value each.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Planted {
    pub(crate) index: Vec<u32>,
    pub(crate) value: Vec<f32>,
}

impl Planted {
    /// A `ReLU` network of s/k random generators with standard normal output weights, of either sign:
    /// its gates are those of its generators, so it computes `y = A w*`. s is a multiple of k.
    pub(crate) fn network(generators: &Generators, s: usize, seed: u64) -> Self {
        let mut rng = Rng::new(seed, PLANTED);
        let k = generators.get(0).0.len();
        let mut neurons = distinct(&mut rng, generators.len(), s / k.max(1));
        neurons.sort_unstable();
        let mut own = Self::default();
        for i in neurons {
            let output = rng.normal();
            let (index, value) = generators.get(i);
            own.index.extend(index);
            own.value.extend(value.iter().map(|h| output * h));
        }
        own
    }

    /// s standard normal values at random places of `columns`; s is at most that.
    pub(crate) fn sparse(columns: usize, s: usize, seed: u64) -> Self {
        let mut rng = Rng::new(seed, PLANTED);
        let mut index: Vec<u32> =
            distinct(&mut rng, columns, s).into_iter().map(|j| j as u32).collect();
        index.sort_unstable();
        let value = index.iter().map(|_| rng.normal()).collect();
        Self { index, value }
    }

    /// `|w - w*|₂ / |w*|₂`.
    pub(crate) fn error(&self, w: Weights<'_>) -> f64 {
        let (mut wrong, mut all) = (0.0, 0.0);
        let mut found = w.index().iter().zip(w.value()).peekable();
        for (j, planted) in self.index.iter().zip(&self.value) {
            while let Some((_, extra)) = found.next_if(|(own, _)| *own < j) {
                wrong += f64::from(*extra).powi(2);
            }
            let own = found.next_if(|(own, _)| *own == j).map_or(0.0, |(_, v)| f64::from(*v));
            wrong += (own - f64::from(*planted)).powi(2);
            all += f64::from(*planted).powi(2);
        }
        wrong += found.map(|(_, extra)| f64::from(*extra).powi(2)).sum::<f64>();
        (wrong / all).sqrt()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Recovery {
    /// `f(w) = |y - A w|²` at w = 0 and after each step.
    pub(crate) losses: Vec<f64>,
    /// `|w - w*|₂ / |w*|₂` at the end.
    pub(crate) error: f64,
    pub(crate) nnz: usize,
    /// Reads of all rows.
    pub(crate) reads: u64,
}

impl Recovery {
    /// One that has not begun, or failed.
    pub(crate) const NONE: Self =
        Self { losses: Vec::new(), error: f64::INFINITY, nnz: 0, reads: 0 };

    /// The loss at the end, as a fraction of that of w = 0.
    pub(crate) fn left(&self) -> f64 {
        self.losses.last().map_or(1.0, |last| last / self.losses[0])
    }
}

/// Recovers `planted` from its measurements with `budget` nonzeros, from w = 0 on; ends sooner where
/// the loss has fallen to [`END`].
pub(crate) fn recover<S: HostSensing<Source = Infallible>>(
    sensing: &mut S,
    gates: Gates<'_>,
    planted: &Planted,
    params: &Params<'_>,
    budget: usize,
    steps: u32,
    stop: &Stop,
) -> Result<Recovery> {
    let (n, d, m) = (sensing.local_rows(), sensing.inputs(), sensing.blocks());
    let mut labels = vec![0.0; n];
    sensing.forward(gates, Weights::new(d, m, &planted.index, &planted.value)?, &mut labels)?;
    let panel = (3 * budget).max(2 * d * sensing.panel());
    let [mut residual, mut panel, mut scratch] =
        [n, panel, sensing.scratch(n)].map(|len| vec![0.0; len]);
    let (mut now, mut next) = (Planted::default(), Planted::default());
    let mut done = Recovery::NONE;
    for step in 0..=steps {
        if stop.asked() {
            return Err(tamis::Error::Stopped.into());
        }
        next.index.resize(budget, 0);
        next.value.resize(budget, 0.0);
        let mut work: Work<'_> = Work {
            residual: &mut residual,
            panel: &mut panel,
            scratch: &mut scratch,
            strips: None,
        };
        let w = Weights::new(d, m, &now.index, &now.value)?;
        let out = EntriesMut { index: &mut next.index, value: &mut next.value };
        let info = iht::step(sensing, gates, &labels, w, params, out, &mut work)?;
        let loss = f64::from(info.loss);
        done.losses.push(loss);
        done.reads += u64::from(info.reads);
        if step == steps || loss <= END * done.losses[0] {
            break;
        }
        next.index.truncate(info.nnz);
        next.value.truncate(info.nnz);
        std::mem::swap(&mut now, &mut next);
    }
    let w = Weights::new(d, m, &now.index, &now.value)?;
    (done.error, done.nnz) = (planted.error(w), w.nnz());
    Ok(done)
}

/// The line through `log10` of losses, one per step; none of fewer than three above 0.
pub(crate) fn line(losses: &[f64]) -> Option<LeastSquares> {
    let points = losses.iter().enumerate().filter(|(_, loss)| **loss > 0.0);
    let points: Vec<[f64; 2]> = points.map(|(step, loss)| [step as f64, loss.log10()]).collect();
    if points.len() < 3 { None } else { LeastSquares::through(&points) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Matrix, Values};
    use crate::operator::{Blocked, Layout};
    use tamis::learn::iht::{Refine, Step};
    use tamis::operator::gaussian::Gaussian;

    #[test]
    fn errors_are_relative_to_planted_vector_norm() {
        let own = Planted { index: vec![1, 4], value: vec![3.0, 4.0] };
        let error =
            |index: &[u32], value: &[f32]| own.error(Weights::new(6, 1, index, value).unwrap());
        assert_eq!(error(&[1, 4], &[3.0, 4.0]), 0.0);
        assert_eq!(error(&[], &[]), 1.0);
        // Off by 3, 0 and 4 at the places 1, 4 and 5.
        assert!((error(&[4, 5], &[4.0, 4.0]) - 1.0).abs() < 1e-12);
        assert!((error(&[0, 1], &[5.0, 3.0]) - (41.0_f64).sqrt() / 5.0).abs() < 1e-12);
    }

    #[test]
    fn linear_convergence_is_told_from_sublinear() {
        let sublinear: Vec<f64> = (0..100).map(|k| 1.0 / f64::from(1 + k)).collect();
        let linear: Vec<f64> = (0..100).map(|k| 5.0 * 0.7_f64.powi(k)).collect();
        let (bent, straight) = (line(&sublinear).unwrap(), line(&linear).unwrap());
        assert!(bent.r_squared < 0.9 && straight.r_squared > 1.0 - 1e-9, "{bent:?} {straight:?}");
        assert!((straight.slope - 0.7_f64.log10()).abs() < 1e-9);
        assert_eq!(line(&[1.0, 0.5]), None);
    }

    /// Theorem 1 on a small network: exact recovery along a line, as fast as alpha and beta
    /// promise.
    #[test]
    fn theory_step_recovers_planted_network_linearly() {
        let (n, d) = (1500, 6);
        let own = Generators::patterns(d, 1);
        let mut x = vec![0.0; n * d];
        Rng::new(1, 0).fill_normal(&mut x);
        let data = Matrix::new(n, d, Values::F32(x)).unwrap();
        let mut operator = Blocked::new(data, own.len(), 8, Layout::new(own.len(), d)).unwrap();
        let planted = Planted::network(&own, 2, 4);
        let params =
            Params { step: Step::Theory { beta: 2.0 }, refine: Refine::None, must_keep: &[] };
        let gates = own.gates().unwrap();
        let found = recover(&mut operator, gates, &planted, &params, 2, 300, &Stop::new()).unwrap();
        assert!(found.error < 1e-4 && found.left() <= END && found.nnz == 2, "{found:?}");
        let line = line(&found.losses).unwrap();
        assert!(line.r_squared > 0.99 && line.slope < -0.05, "{line:?}");
    }

    /// Far above and far below the number of measurements that recovery needs.
    #[test]
    fn gaussian_sensing_needs_enough_measurements() {
        let d = 60;
        let solve = |n: usize, seed: u64| {
            let mut sensing = Gaussian::new(seed, n, d, 1).unwrap();
            let planted = Planted::sparse(d, 4, seed);
            let params = Params { step: Step::Normalised, refine: Refine::None, must_keep: &[] };
            recover(&mut sensing, Gates::seeded(0), &planted, &params, 4, 300, &Stop::new())
        };
        for seed in 0..5 {
            assert!(solve(50, seed).unwrap().error < 1e-4, "seed {seed}");
            assert!(solve(5, seed).map_or(1.0, |found| found.error) > 0.05, "seed {seed}");
        }
    }

    #[test]
    fn a_run_that_is_ended_gives_nothing() {
        let stop = Stop::new();
        stop.ask();
        let mut sensing = Gaussian::new(0, 9, 9, 1).unwrap();
        let params = Params::PAPER;
        let planted = Planted::sparse(9, 2, 0);
        assert!(recover(&mut sensing, Gates::seeded(0), &planted, &params, 2, 5, &stop).is_err());
    }
}
