//! Batches in strips of rows: the results of a stored residual up to rounding, in memory that does
//! not grow with the rows.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by it"
)]

use core::ops::ControlFlow::Continue;
use tamis::base::budget::gated_words;
use tamis::base::dims::Dims;
use tamis::base::rng::{Rng, stream};
use tamis::data::samples::Rows;
use tamis::learn::iht::{Params, Refine, Step};
use tamis::learn::loss::Labels;
use tamis::learn::start::Start;
use tamis::learn::train::{
    OneOutput, Rank, Refresh, Schedule, SeveralOutputs, Standin, Trials, run,
};
use tamis::operator::factored::Factored;
use tamis::operator::gated::Gated;
use tamis::operator::sensing::Sensing;

const N: usize = 180;
const D: usize = 9;
const M: usize = 5;
const S: usize = 8;
const C: usize = 3;
/// The whole batch, and strips of which some divide it and some do not.
const STRIPS: [usize; 5] = [0, 1, 7, 60, 179];

fn normals(len: usize, seed: u64) -> Vec<f32> {
    let mut rng = Rng::new(seed, stream::ROWS);
    (0..len).map(|_| rng.normal()).collect()
}

/// Labels of a network with a weight to every neuron, and noise.
fn labels(x: &[f32], outputs: usize) -> Vec<f32> {
    let noise = normals(N * outputs, 5);
    let row = |k: usize, c: usize| {
        let hidden = (0..M).map(|i| (x[k * D + (i + c) % D] * (1.0 + i as f32)).max(0.0));
        hidden.sum::<f32>() + 0.1 * noise[k * outputs + c]
    };
    (0..N).flat_map(|k| (0..outputs).map(move |c| (k, c))).map(|(k, c)| row(k, c)).collect()
}

fn close(a: &[f32], b: &[f32], what: &str) {
    let scale = a.iter().fold(0.0_f32, |most, v| most.max(v.abs()));
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= 2e-4 * scale, "{what}: {a} {b}");
    }
}

#[test]
fn one_output_in_strips_equals_stored_residual() {
    let x = normals(N * D, 1);
    let y = labels(&x, 1);
    let mut rows = vec![0.0; gated_words(D, M)];
    let armijo = Refine::Armijo { steps: 3, decrease: 0.9, halvings: 10 };
    let cg = Refine::ConjugateGradient { steps: 3, tolerance: 1e-4 };
    for (step, refine) in [
        (Step::Normalised, armijo),
        (Step::Normalised, cg),
        (Step::Fixed(0.2), Refine::None),
        (Step::Theory { beta: 3.0 }, armijo),
    ] {
        for (batch, trials) in [(0, Trials::NONE), (70, Trials { count: 2, rows: 50 })] {
            for must_keep in [&[][..], &[2, 40]] {
                let params = Params { step, refine, must_keep };
                let with = |strip| Schedule {
                    epochs: 4,
                    batch,
                    strip,
                    trials,
                    must_keep: params.must_keep,
                    head: OneOutput {
                        refresh: Refresh::Every(2),
                        step: params.step,
                        refine: params.refine,
                        ..Schedule::PAPER.head
                    },
                    ..Schedule::PAPER
                };
                let results = STRIPS.map(|strip| {
                    let schedule = with(strip);
                    let mut sensing =
                        Gated::new(Rows::new(&x, D).unwrap(), M, 2, &mut rows).unwrap();
                    let mut budget = schedule.budget(Dims::new(N, D, M, S), sensing.panel(), 0);
                    budget.scratch = sensing.scratch(budget.strip);
                    let mut memory = vec![0; budget.words()];
                    let trained = run(
                        &mut sensing,
                        Labels::values(&y),
                        S,
                        Start::Zero,
                        &schedule,
                        &mut memory,
                        |_| Continue(()),
                    )
                    .unwrap();
                    let w = trained.network.w();
                    (strip, w.index().to_vec(), w.value().to_vec(), trained.info)
                });
                let (_, index, value, info) = results[0].clone();
                assert!(!index.is_empty() && info.loss > 0.0);
                for (strip, other_index, other_value, other) in &results[1..] {
                    let what = format!("{params:?}, batch {batch}, strips of {strip}");
                    assert_eq!(&index, other_index, "{what}");
                    close(&value, other_value, &what);
                    close(&[info.loss], &[other.loss], &what);
                    assert_eq!((info.steps, info.trials), (other.steps, other.trials), "{what}");
                    let again = *strip < if batch == 0 { N } else { batch };
                    assert_eq!(
                        other.passes > info.passes,
                        again,
                        "{what}: {} {}",
                        other.passes,
                        info.passes
                    );
                }
            }
        }
    }
}

#[test]
fn several_outputs_in_strips_equal_stored_residual() {
    let x = normals(N * D, 2);
    let y = labels(&x, C);
    let largest = |row: &[f32]| (0..C).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap() as u16;
    let classes: Vec<u16> = y.chunks(C).map(largest).collect();
    let mut rows = vec![0.0; gated_words(D, M)];
    for goal in [Labels::values(&y), Labels::classes(&classes, C)] {
        for (k, rank) in [Rank::Exact, Rank::Sketch { decay: 0.9 }].into_iter().enumerate() {
            for (batch, safe) in [(0, true), (70, false)] {
                let head = |safe| {
                    let own = SeveralOutputs {
                        step_size: 0.1,
                        rank,
                        refresh: Refresh::Every(2),
                        standin: [Standin::FirstEpoch, Standin::EveryEpoch][k],
                        ..SeveralOutputs::paper(&goal, M, S)
                    };
                    if safe { own.safe() } else { own }
                };
                let with = |strip| Schedule {
                    epochs: 5,
                    batch,
                    strip,
                    head: head(safe),
                    ..Schedule::paper(&goal, M, S)
                };
                let results = STRIPS.map(|strip| {
                    let schedule = with(strip);
                    let mut sensing =
                        Gated::new(Rows::new(&x, D).unwrap(), M, 2, &mut rows).unwrap();
                    let mut budget = schedule.budget(Dims::new(N, D, M, S), C, sensing.panel(), 0);
                    budget.scratch = sensing.net_scratch(budget.strip);
                    let mut memory = vec![0; budget.words()];
                    let trained =
                        run(&mut sensing, goal, S, Start::Zero, &schedule, &mut memory, |_| {
                            Continue(())
                        })
                        .unwrap();
                    let (w, wt) = (trained.network.w(), trained.network.wt());
                    let index = [w.index(), wt.index()].concat();
                    (strip, index, [w.value(), wt.value()].concat(), trained.info)
                });
                let (_, index, value, info) = results[0].clone();
                assert!(!index.is_empty() && info.loss > 0.0);
                for (strip, other_index, other_value, other) in &results[1..] {
                    let what = format!("{goal:.20?}, {rank:?}, batch {batch}, strips of {strip}");
                    assert_eq!(&index, other_index, "{what}");
                    close(&value, other_value, &what);
                    close(&[info.loss], &[other.loss], &what);
                }
            }
        }
    }
}

#[test]
fn strip_memory_is_independent_of_row_count() {
    let words = |rows, strip| {
        let schedule = Schedule { strip, ..Schedule::PAPER };
        schedule.budget(Dims::new(rows, 100, 20, 50), 1, strip.max(1) + 100).words()
    };
    assert_eq!(words(50_000, 64), words(50_000_000, 64));
    assert_eq!(words(50_000, 0) - words(50_000, 64), 50_000 - 64 - 100 - 63);
    let net = |rows, strip| {
        let schedule = Schedule { strip, ..Schedule::paper(&Labels::values(&[]), 20, 50) };
        schedule.budget(Dims::new(rows, 100, 20, 50), 10, 1, 100).words()
    };
    assert_eq!(net(50_000, 64), net(50_000_000, 64));
    assert_eq!(net(50_000, 0) - net(50_000, 64), 10 * (50_000 - 64));
}
