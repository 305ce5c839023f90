//! A change of the support of recipe `dynamic`, beside its steps: what is dropped, the gradients of
//! all weights on some rows, and what is grown.

use std::ops::ControlFlow::Continue;
use std::time::Instant;

use serde::Serialize;
use tamis::learn::deep::Stack;
use tamis::learn::deep::dynamic::{self, Params};
use tamis::learn::loss::Labels;

use super::noise::Noise;
use crate::Result;
use crate::operator::Stop;
use crate::operator::backprop::Engine;
use crate::train::pool;

const WIDTHS: [usize; 3] = [784, 1000, 10];
const DENSITY: f64 = 0.02;
const BATCH: usize = 128;
const STEPS: usize = 32;

/// A change of the support, and a step, in milliseconds.
#[derive(Debug, Serialize)]
pub(super) struct SupportReport {
    widths: [usize; 3],
    nnz: usize,
    /// Rows that gradients are taken on.
    rows: usize,
    one_thread_ms: f64,
    all_threads_ms: f64,
    /// Of a step between changes, on one thread.
    step_ms: f64,
}

/// Measures runs that change the support often and runs that do not.
pub(super) fn run(rounds: usize, seed: u64) -> Result<SupportReport> {
    let [inputs, hidden, outputs] = WIDTHS;
    let dense = inputs * hidden + hidden * outputs;
    let nnz = (DENSITY * dense as f64) as usize;
    let often = Params { factor: 1.0, epochs: 1, every: 4, warmup: 0, seed, ..Params::new(nnz) };
    let never = Params { every: u32::MAX, ..often };
    let Noise { data, classes } = Noise::new(BATCH * STEPS, inputs, outputs, seed)?;
    let activations = inputs + hidden;
    let (mut index, mut value) = (vec![0; nnz], vec![0.0; nnz]);
    // Milliseconds of a change and of a step.
    let mut measure = |threads: usize| -> Result<[f64; 2]> {
        pool(threads)?.install(|| {
            let words = dynamic::words(often.moments, nnz, activations, outputs, inputs);
            let mut memory = vec![0; words];
            let mut seconds = [f64::INFINITY; 2];
            let mut changes = 0;
            for _ in 0..rounds {
                for (params, fastest) in [often, never].iter().zip(&mut seconds) {
                    let mut stack = Stack::new(inputs, &mut index, &mut value);
                    dynamic::start(&mut stack, &[hidden, outputs], params, &mut memory)?;
                    let labels = Labels::classes(&classes, outputs);
                    let stop = Stop::new();
                    let engine = Engine::new(&data, 1.0 / 256.0, labels, &stack, &stop)?;
                    let mut engine = engine.growing();
                    let began = Instant::now();
                    let (own, none) = (&mut memory, None);
                    let info =
                        dynamic::run(&mut engine, &mut stack, params, own, none, |_| Continue(()))?;
                    *fastest = fastest.min(began.elapsed().as_secs_f64());
                    changes = info.changes.max(changes);
                }
            }
            let [often, never] = seconds;
            let change = (often - never) / f64::from(changes.max(1));
            Ok([1000.0 * change, 1000.0 * never / STEPS as f64])
        })
    };
    let ([one_thread_ms, step_ms], [all_threads_ms, _]) = (measure(1)?, measure(0)?);
    let rows = often.rows;
    Ok(SupportReport { widths: WIDTHS, nnz, rows, one_thread_ms, all_threads_ms, step_ms })
}

impl std::fmt::Display for SupportReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let widths = self.widths.map(|width| width.to_string()).join("-");
        let Self { nnz, rows, one_thread_ms, all_threads_ms, step_ms, .. } = self;
        writeln!(
            f,
            "a change of the support of {widths}, {nnz} weights, gradients on {rows} rows: {one_thread_ms:.2} ms, all threads \
             {all_threads_ms:.2} ms; a step of {BATCH} rows {step_ms:.2} ms"
        )
    }
}
