//! A step of training under a mask: against the multiply-adds that it must do, at the rate that the
//! processor has at best, against dense training by Tamis' own matrix products, and against numpy
//! with dense weights times the mask.

use std::ops::ControlFlow::Continue;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use pulp::{Arch, Simd, WithSimd};
use serde::{Deserialize, Serialize};
use tamis::learn::deep::backprop::{Backprop as _, Batch};
use tamis::learn::loss::Labels;
use tamis::learn::masked::{self, Params};
use tamis::learn::optimiser::Optimiser;
use tamis::network::mask::initial::{Initial, Law};

use super::noise::Noise;
use crate::data::{Problem, Task};
use crate::mask::{MaskOptions, Method, SourceNetwork, find};
use crate::operator::Stop;
use crate::operator::backprop::Engine;
use crate::train::dense::Rates;
use crate::train::dense::imp::imp;
use crate::train::dense::job::ImpJob;
use crate::train::mask::Layers;
use crate::train::{Budget, ImpSettings, pool};
use crate::{Error, Result};

const NETWORKS: [&[usize]; 2] = [&[784, 300, 100, 10], &[784, 1000, 1000, 1000, 10]];
const DENSITIES: [f64; 2] = [0.02, 0.1];
/// Rows of a batch, and batches of an epoch.
const BATCH: usize = 128;
const STEPS: usize = 32;

/// Steps of one network at one density.
#[derive(Debug, Serialize)]
pub(super) struct MaskedReport {
    widths: Vec<usize>,
    density: f64,
    kept: usize,
    /// Milliseconds of a step on one thread, and on all.
    one_thread_ms: f64,
    all_threads_ms: f64,
    /// Billions of multiply-adds a second on one thread: three for each kept weight and row.
    gfma: f64,
    /// Those over the most that one core does.
    of_peak: f64,
    /// Bytes a kept weight takes: weight, index, links, gradient and momentum.
    bytes_per_weight: f64,
    /// Milliseconds of a step of dense training, on one thread, and its ratio to ours.
    dense_ms: f64,
    over_dense: f64,
    /// Milliseconds of a step of numpy, on one thread, and its ratio to ours.
    numpy_ms: Option<f64>,
    over_numpy: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(super) struct MaskedReports {
    /// Billions of multiply-adds that one core does at best in a second.
    peak_gfma: f64,
    steps: Vec<MaskedReport>,
}

/// Measures every network; `numpy` is a Python that has it.
pub(super) fn run(rounds: usize, seed: u64, numpy: Option<&Path>) -> Result<MaskedReports> {
    let mut steps = Vec::new();
    // Before and after: a processor may change its clock.
    let mut peak_gfma = peak();
    for widths in NETWORKS {
        let dense_ms = dense_step(widths, rounds, seed)?;
        for density in DENSITIES {
            let report = network(widths, density, rounds, seed)?;
            let numpy_ms = numpy.map(|python| numpy_step(python, widths, density)).transpose()?;
            steps.push(MaskedReport {
                dense_ms,
                over_dense: dense_ms / report.one_thread_ms,
                numpy_ms,
                over_numpy: numpy_ms.map(|ms| ms / report.one_thread_ms),
                ..report
            });
            peak_gfma = peak_gfma.max(peak());
        }
    }
    steps.iter_mut().for_each(|step| step.of_peak = step.gfma / peak_gfma);
    Ok(MaskedReports { peak_gfma, steps })
}

fn network(widths: &[usize], density: f64, rounds: usize, seed: u64) -> Result<MaskedReport> {
    let network = SourceNetwork::from_seed(widths, Initial { seed, law: Law::HeNormal })?;
    let options = MaskOptions::new(Method::Random, Budget::density(density));
    let stop = Stop::new();
    let mask = find(&network, &options, None, &stop, |_| ())?.mask;
    let kept = mask.index().len();
    let mut start = network.start(mask)?;
    // As large as sparse layers need it.
    let scale = (1.0 / density).sqrt() as f32;
    start.values.iter_mut().for_each(|value| *value *= scale);
    let layers = Layers::new(&start);
    let (rows, inputs, outputs) = (BATCH * STEPS, widths[0], widths[widths.len() - 1]);
    let Noise { data, classes } = Noise::new(rows, inputs, outputs, seed)?;
    let (mut index, mut value) = (vec![0; kept], vec![0.0; kept]);
    let mut stack = layers.stack(&mut index, &mut value)?;
    let params = Params { epochs: 1, batch: BATCH, rate: 0.01, seed, ..Params::SGD };
    let mut memory = vec![0; masked::words(kept, params.optimiser)];
    let mut bytes = 0;
    let mut step = |threads: usize| -> Result<f64> {
        pool(threads)?.install(|| {
            let labels = Labels::classes(&classes, outputs);
            let mut engine = Engine::new(&data, 1.0 / 256.0, labels, &stack, &stop)?;
            if threads == 1 {
                bytes = engine.link_bytes() + 8 * kept + 4 * memory.len();
            }
            // Once untimed, so that everything is in memory.
            let all = Batch { positions: 0..BATCH, order: None };
            engine.gradient(&stack, &all, &mut vec![0.0; kept])?;
            let mut fastest = f64::INFINITY;
            for _ in 0..rounds {
                let began = Instant::now();
                masked::run(&mut engine, &mut stack, &params, &mut memory, |_| Continue(()))?;
                fastest = fastest.min(began.elapsed().as_secs_f64());
            }
            Ok(1000.0 * fastest / STEPS as f64)
        })
    };
    let (one_thread_ms, all_threads_ms) = (step(1)?, step(0)?);
    Ok(MaskedReport {
        widths: widths.to_vec(),
        density,
        kept,
        one_thread_ms,
        all_threads_ms,
        gfma: (3 * kept * BATCH) as f64 / one_thread_ms / 1e6,
        of_peak: 0.0,
        bytes_per_weight: bytes as f64 / kept as f64,
        dense_ms: 0.0,
        over_dense: 0.0,
        numpy_ms: None,
        over_numpy: None,
    })
}

/// Milliseconds of a step of dense training on one thread: the baseline before it prunes.
fn dense_step(widths: &[usize], rounds: usize, seed: u64) -> Result<f64> {
    /// Batches of an epoch: dense steps are slow.
    const STEPS: usize = 2;
    let [inputs, hidden @ .., outputs] = widths else { return Ok(f64::NAN) };
    let Noise { data, classes } = Noise::new(BATCH * STEPS, *inputs, *outputs, seed)?;
    let labels = classes.into_iter().map(f32::from).collect();
    let problem = Problem { data, labels, task: Task::Multiclass };
    let settings = ImpSettings {
        // The first, which begins with an allocation, is not timed.
        epochs: u32::try_from(rounds).unwrap_or(u32::MAX).saturating_add(1),
        batch: BATCH,
        optimiser: Optimiser::Sgd { momentum: 0.9 },
        rates: Some(Rates::constant(0.01)),
        ..ImpSettings::default()
    };
    let job = ImpJob::new(&problem, &settings, Budget::density(1.0), hidden, seed)?;
    let (mut began, mut fastest) = (None, f64::INFINITY);
    let mut observe = |_| {
        let now = Instant::now();
        if let Some(began) = began.replace(now) {
            fastest = fastest.min((now - began).as_secs_f64());
        }
        true
    };
    pool(1)?.install(|| imp(&problem, &job, None, &Stop::new(), &mut observe))?;
    Ok(1000.0 * fastest / STEPS as f64)
}

/// Billions of multiply-adds in a second, of as many at a time as hide the time that each takes.
fn peak() -> f64 {
    struct Chains;
    impl WithSimd for Chains {
        type Output = f64;
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> f64 {
            const CHAINS: usize = 12;
            const TURNS: usize = 200_000;
            let (factor, term) = (simd.splat_f32s(0.999_9), simd.splat_f32s(1e-4));
            let mut chains = [simd.splat_f32s(1.0); CHAINS];
            let mut fastest = f64::INFINITY;
            for _ in 0..20 {
                let began = Instant::now();
                for _ in 0..TURNS {
                    chains.iter_mut().for_each(|x| *x = simd.mul_add_f32s(*x, factor, term));
                }
                std::hint::black_box(&mut chains);
                fastest = fastest.min(began.elapsed().as_secs_f64());
            }
            let lanes = size_of::<S::f32s>() / size_of::<f32>();
            (CHAINS * TURNS * lanes) as f64 / fastest / 1e9
        }
    }
    Arch::new().dispatch(Chains)
}

/// Milliseconds of a step of numpy.
fn numpy_step(python: &Path, widths: &[usize], density: f64) -> Result<f64> {
    #[derive(Deserialize)]
    struct Step {
        ms: f64,
    }
    let sizes: Vec<_> = widths.iter().map(ToString::to_string).collect();
    let output = Command::new(python)
        .args(["-c", include_str!("masked.py")])
        .arg(format!("{}:{density}", sizes.join(",")))
        .envs(
            ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"].map(|name| (name, "1")),
        )
        .output()
        .map_err(|error| Error::io("cannot run Python", python, error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str::<Step>(text.trim()).map(|step| step.ms).map_err(|_| {
        Error::new("NumPy has measured nothing")
            .at(python)
            .expected("a Python with numpy")
            .got(String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("no output"))
            .help("pass one that has it, or leave --numpy out")
    })
}

impl std::fmt::Display for MaskedReports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "a step under a mask, {BATCH} rows; one core has {:.0} GFMA/s at best",
            self.peak_gfma
        )?;
        for step in &self.steps {
            let widths: Vec<_> = step.widths.iter().map(ToString::to_string).collect();
            write!(
                f,
                "  {} at {} %: {:.3} ms ({:.1} GFMA/s, {:.0} % of that), all threads {:.3} ms, {:.1} bytes a weight",
                widths.join("-"),
                100.0 * step.density,
                step.one_thread_ms,
                step.gfma,
                100.0 * step.of_peak,
                step.all_threads_ms,
                step.bytes_per_weight,
            )?;
            let (dense, over) = (step.dense_ms, step.over_dense);
            write!(f, "; dense {dense:.2} ms, {over:.1} times as long")?;
            match (step.numpy_ms, step.over_numpy) {
                (Some(ms), Some(over)) => {
                    writeln!(f, "; NumPy {ms:.2} ms, {over:.1} times as long")?;
                }
                _ => writeln!(f)?,
            }
        }
        if self.steps.iter().any(|step| step.numpy_ms.is_none()) {
            writeln!(f, "  skipped: NumPy; --numpy PYTHON measures it beside")?;
        }
        Ok(())
    }
}
