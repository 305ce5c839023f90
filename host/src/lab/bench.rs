//! Speed as ratios within one run: the blocked operator against the matrix product it rests on,
//! against the core's reference operator, and two threads against one; and training under a mask
//! (`masked`) or on a support that moves (`support`).
//!
//! Machines differ and are noisy; what is compared is timed in turn, round by round, and the
//! fastest round of each counts.

#[cfg(feature = "gpu")]
pub(crate) mod gpu;
mod masked;
mod noise;
mod support;

use crate::base::error::{Error, Result};
use crate::base::room_for;
use crate::data::{Values, planted};
use crate::operator::{Blocked, Layout};
use crate::train::dense::product::{Mat, product as matrix_product};
use crate::train::{check_dims, pool};
use serde::Serialize;
use std::fmt;
use std::path::Path;
use std::time::Instant;
use tamis::base::budget;
use tamis::base::dims::Dims;
use tamis::data::samples::Rows;
use tamis::network::gates::{Gates, Signs};
use tamis::operator::gated::Gated;
use tamis::operator::sensing::Sensing;

#[derive(Debug, Serialize)]
pub(crate) struct BenchReport {
    /// Hardware threads.
    threads: usize,
    shapes: Vec<ShapeReport>,
    masked: masked::MaskedReports,
    support: support::SupportReport,
}

/// Figures of one problem size; rates are of one thread, ratios above 1 where the first is faster.
#[derive(Debug, Serialize)]
struct ShapeReport {
    samples: usize,
    inputs: usize,
    hidden: usize,
    nnz: usize,
    /// Rate of the matrix product alone, in billions of operations a second (two per multiply-add).
    gemm_gflops: f64,
    /// Rate of the whole gradient, gates included; dense operations as for the product.
    gradient_gflops: f64,
    gradient_over_gemm: f64,
    /// Gradient on one thread over two threads, in seconds; null on a machine with one.
    two_threads_over_one: Option<f64>,
    /// Gradient of the core's reference operator over the blocked one's, in seconds.
    blocked_over_reference: f64,
    /// Rate of `A_S^T A_S p`, in billions of multiply-adds on the support a second.
    normal_gmacs: f64,
    /// [`PRODUCTS`] of these over the same with a Gram matrix, where that is a few megabytes.
    products_over_gram: Option<f64>,
}

/// Products in a row, as conjugate gradients need them on inputs that have a mean.
const PRODUCTS: usize = 40;

/// Measures every shape on so many rows; of all rounds the fastest counts. `numpy` is a Python that
/// has it.
pub(crate) fn run(
    samples: usize,
    rounds: usize,
    seed: u64,
    numpy: Option<&Path>,
) -> Result<BenchReport> {
    if rounds == 0 {
        return Err(Error::new("there is nothing to measure")
            .expected("--rounds 1 or more")
            .got(0)
            .help("15 is the default"));
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut shapes = Vec::new();
    for (hidden, nnz) in [(10, 50), (100, 500)] {
        shapes.push(shape(Dims::new(samples, 100, hidden, nnz), threads, rounds, seed)?);
    }
    let masked = masked::run(rounds, seed, numpy)?;
    let support = support::run(rounds, seed)?;
    Ok(BenchReport { threads, shapes, masked, support })
}

fn shape(dims: Dims, threads: usize, rounds: usize, seed: u64) -> Result<ShapeReport> {
    check_dims(&dims)?;
    let Dims { samples: n, inputs: d, hidden: m, nnz: s, .. } = dims;
    // The rows four times, and a column for every neuron.
    let bytes = (n as u64).saturating_mul(4 * (4 * d + m) as u64);
    room_for("the data of the benchmark", bytes, "choose smaller --samples")?;
    let problem = planted::network(dims, Signs::Positive, seed)?;
    let w = problem.weights()?;
    let gates = Gates::of(w, Signs::Positive, Default::default(), seed, 1);
    let labels = &problem.labels;
    let Values::F32(rows) = problem.data.values.clone() else {
        return Err(Error::new("planted data are not floats"));
    };
    let layout = Layout::new(m, d);
    let mut blocked = Blocked::new(problem.data.clone(), m, s, layout)?;
    let with_gram = layout.with_gram([s, s]);
    let mut cached = Blocked::new(problem.data.clone(), m, s, with_gram)?;
    // The product takes what the gradient takes: all neurons that have weights, at the panel's
    // width.
    let columns = w.blocks().count();
    let right: Vec<f32> = (0..n * columns).map(|at| labels[at / columns]).collect();
    let [mut panel, mut product, mut sums] = [m * d, d * columns, s].map(|len| vec![0.0; len]);
    let mut products = |blocked: &mut Blocked, count: usize| -> tamis::Result<f64> {
        let gates = blocked.hold(gates, w.index())?;
        timed(|| (0..count).try_for_each(|_| blocked.normal_at(gates, w, &mut sums, &mut [])))
    };
    let (one, two) = (pool(1)?, pool(2)?);
    // Seconds of the fastest round.
    let mut fastest = [f64::INFINITY; 6];
    for _ in 0..rounds {
        let gemm = timed(|| {
            let (rows, right) = (Mat::new(&rows, n, d), Mat::new(&right, n, columns));
            matrix_product(&mut product, false, 1.0, right.t(), rows);
            Ok(())
        })?;
        let mut gradient = || timed(|| blocked.gradient(gates, labels, 0..m, &mut panel));
        let alone = one.install(&mut gradient)?;
        let pair = if threads > 1 { two.install(&mut gradient)? } else { f64::INFINITY };
        let [normal, many, gram] = one.install(|| -> tamis::Result<_> {
            let own = [products(&mut blocked, 1)?, products(&mut blocked, PRODUCTS)?];
            Ok([own[0], own[1], products(&mut cached, PRODUCTS)?])
        })?;
        let times = [gemm, alone, pair, normal, many, gram];
        fastest.iter_mut().zip(times).for_each(|(fastest, time)| *fastest = fastest.min(time));
    }
    let [gemm, gradient, pair, normal, many, gram] = fastest;
    // The reference operator is slower by orders of magnitude: a fraction of the rows, once.
    let few = (n / 50).max(1);
    let mut memory = vec![0.0; budget::gated_words(d, m)];
    let mut reference = Gated::new(Rows::new(&rows[..few * d], d)?, m, m, &mut memory)?;
    let reference = timed(|| reference.gradient(gates, &labels[..few], 0..m, &mut panel))?
        * n as f64
        / few as f64;

    let work = 2.0 * (n * d * columns) as f64;
    Ok(ShapeReport {
        samples: n,
        inputs: d,
        hidden: m,
        nnz: s,
        gemm_gflops: work / gemm / 1e9,
        gradient_gflops: work / gradient / 1e9,
        gradient_over_gemm: gemm / gradient,
        two_threads_over_one: (threads > 1).then_some(gradient / pair),
        blocked_over_reference: reference / gradient,
        normal_gmacs: 2.0 * (n * s) as f64 / normal / 1e9,
        products_over_gram: (with_gram.gram > 0).then_some(many / gram),
    })
}

impl fmt::Display for BenchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "hardware threads: {}", self.threads)?;
        for s in &self.shapes {
            let ShapeReport { samples, inputs, hidden, nnz, .. } = s;
            writeln!(f, "\n{samples} rows, {inputs} inputs, {hidden} neurons, {nnz} nonzeros")?;
            writeln!(f, "  matrix product alone    {:8.1} GFLOP/s, one thread", s.gemm_gflops)?;
            writeln!(f, "  gradient, gates and all {:8.1} GFLOP/s, one thread", s.gradient_gflops)?;
            writeln!(f, "    of the product's rate {:8.0} %", 100.0 * s.gradient_over_gemm)?;
            match s.two_threads_over_one {
                Some(ratio) => writeln!(f, "    two threads           {ratio:8.2} times one")?,
                None => writeln!(f, "    two threads           SKIPPED(one hardware thread)")?,
            }
            writeln!(f, "    over the reference    {:8.1} times faster", s.blocked_over_reference)?;
            let rate = s.normal_gmacs;
            writeln!(f, "  restricted product      {rate:8.1} G multiply-adds/s, one thread")?;
            if let Some(ratio) = s.products_over_gram {
                writeln!(f, "    {PRODUCTS} by a Gram matrix  {ratio:8.1} times faster")?;
            }
        }
        write!(f, "\n{}{}", self.masked, self.support)
    }
}

fn timed(work: impl FnOnce() -> tamis::Result<()>) -> tamis::Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_a_positive_number() {
        let report = run(2000, 1, 0, None).unwrap();
        for shape in report.shapes {
            let figures = [
                shape.gemm_gflops,
                shape.gradient_gflops,
                shape.gradient_over_gemm,
                shape.two_threads_over_one.unwrap_or(1.0),
                shape.blocked_over_reference,
                shape.normal_gmacs,
                shape.products_over_gram.unwrap_or(1.0),
            ];
            assert!(figures.iter().all(|f| f.is_finite() && *f > 0.0), "{figures:?}");
        }
    }
}
