//! One cell of a check: its data from its seed, what its method measures of them.

use std::convert::Infallible;

use rayon::prelude::*;
use tamis::base::dims::Dims;
use tamis::base::rng::{seed_of, stream};
use tamis::learn::iht::{Params, Refine, Step};
use tamis::network::gates::Gates;
use tamis::operator::gaussian::Gaussian;
use tamis::operator::sensing::HostSensing;

use super::assumption::{self, Assumption};
use super::coverage;
use super::curvature::{self, Extremes, Supports};
use super::generators::{self, Generators};
use super::greedy;
use super::measured::Measured;
use super::prob::{self, Pruned};
use super::recovery::{self, Planted, Recovery};
use super::sketch::Sketch;
use crate::base::room_for;
use crate::base::statistics::median;
use crate::data::{Matrix, planted};
use crate::lab::experiment::cell::{Cell, Job};
use crate::lab::experiment::course::Course;
use crate::lab::experiment::record::{Quality, Solved};
use crate::lab::experiment::spec::{Data, Directions, Law, Method, Metric, Part, Point};
use crate::operator::{Blocked, Layout, Stop};
use crate::train::pool;
use crate::{Error, Result};

/// Seeds of the draws of a cell, see [`tamis::base::rng::seed_of`].
const DRAW: u64 = stream::USER + (0x7e03 << 32);

/// Seed of the neurons whose gates are looked for among those of generators.
const PLANTED: u64 = stream::USER + (0x7e04 << 32);
/// An alpha that is not told from 0.
const DEPENDENT: f64 = 1e-4;
/// A relative error below which a vector counts as recovered.
const RECOVERED: f64 = 1e-3;
/// The loss, as a fraction of that of w = 0, that steps are counted to.
const GOAL: f64 = 1e-8;

pub(in crate::lab::experiment) fn measure(job: &Job<'_>) -> Result<Solved> {
    let Job { part, cell, on, stop } = *job;
    let work = Work { part, cell, at: cell.point(part), stop };
    pool(on.threads)?.install(|| match &part.data {
        Data::Gaussian { .. } if cell.method == Method::Curvature => {
            let (course, Point { n, d, m, .. }) = (Course::start(), work.at);
            let mut sensing = Gaussian::new(cell.seed, n, d, m)?;
            let independent = curvature::independent(work.at.s, n as f64);
            let forms = Measured::from([
                (Metric::AlphaIndependent, independent.alpha),
                (Metric::BetaIndependent, independent.beta),
            ]);
            work.curvature(&mut sensing, Gates::seeded(0), None, forms, course)
        }
        Data::Gaussian { .. } => work.sense(Course::start()),
        Data::Gates { generators, weights, .. } => work.gates(*generators, *weights),
        Data::Sketch { weights, .. } => work.sketch(*weights),
        Data::Sensing(data) => {
            let (at, seed, steps, method) = (work.at, cell.seed, part.epochs, cell.method);
            let of = part.variant(at).sensing.unwrap_or_default();
            let device = on.device;
            greedy::sense(&greedy::Task { method, data, of, at, steps, seed, device, stop })
        }
        data if data.is_random() => work.random(),
        _ => Err(Error::new("nothing of the theory is measured on such data")
            .expected("data of kind gates, gaussian or sketch")
            .got(cell.method.name())
            .help("choose another method")),
    })
}

/// Extreme eigenvalues over the kinds of supports.
struct Found {
    random: Extremes,
    /// None without gates.
    aligned: Option<Extremes>,
    /// None where generators have no opposites.
    opposite: Option<Extremes>,
}

struct Work<'a> {
    part: &'a Part,
    cell: &'a Cell,
    at: Point,
    stop: &'a Stop,
}

impl Work<'_> {
    fn draws(&self) -> u32 {
        self.part.draws.unwrap_or(1)
    }

    fn gates(&self, directions: Directions, weights: usize) -> Result<Solved> {
        let (Point { m, s, n, d, .. }, seed) = (self.at, self.cell.seed);
        let help = "choose fewer generators, rows or inputs in the spec";
        room_for("the rows", (n as u64).saturating_mul(4 * d as u64), help)?;
        room_for("the gates", (n as u64 / 8 + 8).saturating_mul(m as u64), help)?;
        let own = match directions {
            Directions::Patterns => Generators::patterns(d, weights),
            Directions::Gaussian => Generators::gaussian(d, weights, m, generators::seed(seed)),
        };
        let (data, gates) = (planted::samples(&Dims::new(n, d, 1, 1), seed)?, own.gates()?);
        let data_bytes = 4 * (n * d) as u64;
        let mut course = Course::start();
        let operator = |data: Matrix, nnz: usize| -> Result<Blocked> {
            let mut operator = Blocked::new(data, m, nnz, Layout::new(m, d))?;
            operator.heed(Some(self.stop.clone()));
            Ok(operator)
        };
        let limit = || (Metric::GammaLimit, assumption::limit(&own));
        let solved = match self.cell.method {
            Method::Assumption => {
                let Assumption { eps, gamma } = assumption::measure(data, gates, own.len());
                course.see(0.0, f64::NAN);
                let both = [(Metric::Gamma, gamma), (Metric::Eps, eps)];
                let measured = both.into_iter().chain([limit()]).collect();
                Solved { measured, ..course.ended(None) }
            }
            Method::Coverage => {
                let drawn = Generators::gaussian(d, weights, self.draws() as usize, PLANTED ^ seed);
                let measured = coverage::measure(&data, &own, &drawn)?;
                course.see(0.0, f64::NAN);
                Solved { measured, ..course.ended(None) }
            }
            Method::Curvature => {
                let form = (s <= m).then(|| (Metric::BetaForm, f64::midpoint(s as f64, 1.0)));
                let (name, gamma) = limit();
                let many = curvature::bound(s, f64::INFINITY, gamma);
                let few = curvature::bound(s, n as f64, gamma);
                let mut measured: Measured = form.into_iter().chain([(name, gamma)]).collect();
                measured.extend([
                    (Metric::AlphaLimit, many.alpha),
                    (Metric::BetaLimit, many.beta),
                    (Metric::BetaBound, few.beta),
                ]);
                measured.extend((few.alpha > 0.0).then_some((Metric::AlphaBound, few.alpha)));
                self.curvature(&mut operator(data, s)?, gates, Some(&own), measured, course)?
            }
            _ => {
                let all = (2 * self.budget(s) + s).min(m * d);
                let planted = Planted::network(&own, s, seed);
                self.converge(&mut operator(data, all)?, &own, &planted, all, course)?
            }
        };
        Ok(Solved { data_bytes, ..solved })
    }

    /// s~, the nonzeros that iterates may have.
    fn budget(&self, s: usize) -> usize {
        let inflated = (self.part.inflation.unwrap_or(1.0) * s as f64).ceil() as usize;
        inflated.clamp(1, self.at.m * self.at.d)
    }

    fn curvature<S: HostSensing<Source = Infallible>>(
        &self,
        sensing: &mut S,
        gates: Gates<'_>,
        own: Option<&Generators>,
        mut measured: Measured,
        mut course: Course,
    ) -> Result<Solved> {
        let Found { random, aligned, opposite } = self.extremes(sensing, gates, own, self.at.s)?;
        measured.extend([(Metric::Alpha, random.alpha), (Metric::Beta, random.beta)]);
        if let Some(Extremes { alpha, beta }) = aligned {
            measured.extend([(Metric::AlphaAligned, alpha), (Metric::BetaAligned, beta)]);
        }
        measured.extend(opposite.map(|of| (Metric::AlphaOpposite, of.alpha)));
        course.see(0.0, f64::NAN);
        Ok(Solved { measured, ..course.ended(None) })
    }

    /// Eigenvalues over all kinds of supports that there are.
    fn extremes<S: HostSensing<Source = Infallible>>(
        &self,
        sensing: &mut S,
        gates: Gates<'_>,
        own: Option<&Generators>,
        s: usize,
    ) -> Result<Found> {
        let (draws, seed) = (self.draws(), self.cell.seed);
        let mut of = |supports| curvature::extremes(sensing, gates, supports, s, draws, seed);
        let pairs = own.map_or_else(Vec::new, Generators::opposites);
        let has_four = s >= 4 && pairs.len() >= 2;
        Ok(Found {
            random: of(Supports::Random)?,
            aligned: (self.at.m > 1).then(|| of(Supports::OneInput)).transpose()?,
            opposite: has_four.then(|| of(Supports::Opposite(&pairs))).transpose()?,
        })
    }

    fn recover<S: HostSensing<Source = Infallible>>(
        &self,
        sensing: &mut S,
        gates: Gates<'_>,
        planted: &Planted,
        beta: f64,
    ) -> Result<Recovery> {
        let plain = |step| Params { step, refine: Refine::None, must_keep: &[] };
        let params = match self.cell.method {
            Method::Theory => plain(Step::Theory { beta: beta as f32 }),
            Method::Normalised => plain(Step::Normalised),
            _ => Params::PAPER,
        };
        let (budget, steps) = (self.budget(self.at.s), self.part.epochs);
        recovery::recover(sensing, gates, planted, &params, budget, steps, self.stop)
    }

    /// A planted network, with eigenvalues over supports of `columns` columns.
    fn converge<S: HostSensing<Source = Infallible>>(
        &self,
        sensing: &mut S,
        own: &Generators,
        planted: &Planted,
        columns: usize,
        mut course: Course,
    ) -> Result<Solved> {
        let gates = own.gates()?;
        let Found { random, aligned, opposite } =
            self.extremes(sensing, gates, Some(own), columns)?;
        let aligned = aligned.unwrap_or(random);
        let opposite = opposite.map(|of| of.alpha);
        // Steps that are too long for the supports that they meet diverge.
        let (alpha, beta) = (random.alpha, random.beta.max(aligned.beta));
        let found = self.recover(sensing, gates, planted, beta)?;
        course.see_all(&found.losses);
        let condition = beta / alpha;
        let mut measured = Measured::from([
            (Metric::Success, f64::from(u8::from(found.error < RECOVERED))),
            (Metric::Error, found.error),
            (Metric::LossLeft, found.left()),
            (Metric::Alpha, alpha),
            (Metric::AlphaAligned, aligned.alpha),
            (Metric::Beta, beta),
        ]);
        if alpha > DEPENDENT {
            measured.insert(Metric::StepsForm, condition * (1.0 / GOAL).ln());
        }
        let least = alpha.min(aligned.alpha).min(opposite.unwrap_or(alpha));
        let inflation = 32.0 * (beta / least).powi(2);
        let has_enough = least > 0.0 && inflation <= self.part.inflation.unwrap_or(1.0);
        measured.insert(Metric::Premise, f64::from(u8::from(has_enough)));
        // What is dependent has an alpha of rounding errors.
        measured.extend((least > DEPENDENT).then_some((Metric::Inflation, inflation)));
        measured.extend(opposite.map(|alpha| (Metric::AlphaOpposite, alpha)));
        let steps = found.losses.iter().position(|loss| *loss <= GOAL * found.losses[0]);
        measured.extend(steps.map(|steps| (Metric::Steps, steps as f64)));
        if let Some(line) = recovery::line(&found.losses) {
            measured.insert(Metric::Rate, -line.slope);
            measured.insert(Metric::Straight, line.r_squared);
        }
        if self.cell.method == Method::Theory && alpha > DEPENDENT {
            // The error on a support shrinks by 1 - eta alpha a step, the loss by its square.
            let rate = -2.0 * (1.0 - 2.0 * alpha / (3.0 * beta)).log10();
            measured.insert(Metric::RateForm, rate);
        }
        let loss = found.left() * found.losses[0] / self.at.n as f64;
        let quality = Quality { loss, ..Quality::default() };
        let (nnz, passes) = (found.nnz, found.reads as f64);
        Ok(Solved { measured, nnz, passes, train: Some(quality), ..course.ended(None) })
    }

    /// The error of sketched products, over the draws or, without a number of these, over all.
    fn sketch(&self, law: Law) -> Result<Solved> {
        let (at, seed) = (self.at, self.cell.seed);
        let help = "choose fewer inputs or samples in the spec";
        room_for("the rows", (at.n as u64).saturating_mul(8 * at.d as u64), help)?;
        let mut course = Course::start();
        let movement = self.part.variant(at).movement.unwrap_or(0.0);
        let of = |claim: Method| Sketch::new(claim, at, law, movement, seed);
        let mut measured = Measured::new();
        if self.cell.method == Method::SketchRatio {
            let [own, uniform] =
                [Method::SketchNormalTrained, Method::SketchUniform].map(|claim| of(claim).forms());
            measured.insert(Metric::UniformRatio, own.exact / uniform.exact);
            measured.insert(Metric::PrintedRatio, own.printed / uniform.printed);
        } else {
            let sketch = of(self.cell.method);
            let forms = sketch.forms();
            measured.insert(Metric::ExactForm, forms.exact);
            measured.insert(Metric::PrintedForm, forms.printed);
            measured.extend(forms.repaired.map(|form| (Metric::RepairedForm, form)));
            match self.part.draws {
                None => drop(measured.insert(Metric::SketchError, sketch.enumerated())),
                Some(draws) => {
                    let found = sketch.sampled(draws, self.stop)?;
                    measured.insert(Metric::SketchError, found.mean);
                    measured.insert(Metric::StandardError, found.error);
                }
            }
        }
        course.see(0.0, f64::NAN);
        Ok(Solved { measured, ..course.ended(None) })
    }

    /// Random matrices, numbers, convolutions and networks.
    fn random(&self) -> Result<Solved> {
        let Work { at, stop, .. } = *self;
        let (draws, seed, method) = (self.draws(), self.cell.seed, self.cell.method);
        let of = self.part.variant(at).entries.unwrap_or_default();
        let mut course = Course::start();
        let measured = match (&self.part.data, method) {
            (Data::Networks(data), _) => {
                prob::pruned(&Pruned { method, data, of, at, seed }, stop)?
            }
            (Data::Convolutions { .. }, _) => prob::convolution(method, &of, at, seed)?,
            (&Data::Matrices { least_entries, .. }, _) => {
                let task = prob::Draws { of, at, draws, least_entries, seed, stop };
                let is_constant = method == Method::Constant;
                if is_constant { prob::constant(&task) } else { prob::norms(&task) }?
            }
            (_, Method::Balls) => prob::balls(at, draws, seed),
            (_, own) => prob::order(1 + i32::from(own == Method::OrderSecond), at, draws, seed),
        };
        course.see(0.0, f64::NAN);
        Ok(Solved { measured, ..course.ended(None) })
    }

    /// Several vectors from measurements of their own each: how many are recovered.
    fn sense(&self, mut course: Course) -> Result<Solved> {
        let draws = self.draws();
        let draw = |k: u32| -> Result<Recovery> {
            let Point { m, s, n, d, .. } = self.at;
            let seed = seed_of(self.cell.seed, DRAW, k);
            let mut sensing = Gaussian::new(seed, n, d, m)?;
            let planted = Planted::sparse(m * d, s, seed);
            let gates = Gates::seeded(0);
            let mut beta = 1.0;
            if self.cell.method == Method::Theory {
                let s = (2 * self.budget(s) + s).min(m * d);
                let random = Supports::Random;
                beta = curvature::extremes(&mut sensing, gates, random, s, 1, seed)?.beta;
            }
            match self.recover(&mut sensing, gates, &planted, beta) {
                // With too few measurements steps may grow without end: nothing is recovered.
                Err(_) if !self.stop.asked() => Ok(Recovery::NONE),
                found => found,
            }
        };
        let found = (0..draws).into_par_iter().map(draw).collect::<Result<Vec<Recovery>>>()?;
        let errors: Vec<f64> = found.iter().map(|own| own.error).collect();
        let recovered = errors.iter().filter(|error| **error < RECOVERED).count();
        let mut measured = Measured::from([(Metric::Success, recovered as f64 / f64::from(draws))]);
        if let Some(error) = median(errors).filter(|error| error.is_finite()) {
            measured.insert(Metric::Error, error);
        }
        let passes = found.iter().map(|found| found.reads as f64).sum();
        let nnz = found.iter().map(|found| found.nnz).max().unwrap_or(0);
        course.see_all(&found[0].losses);
        Ok(Solved { measured, passes, nnz, ..course.ended(None) })
    }
}
