//! The published method for several outputs: each step against dense arithmetic in double
//! precision, results that do not depend on the panel, exact budgets, divergence.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by it"
)]

mod dense;

use dense::{Dense, Found, Problem, Sizes};
use proptest::prelude::*;
use tamis::Error;
use tamis::base::budget::WORD;
use tamis::base::rng::{seed_of, stream};
use tamis::learn::loss::Labels;
use tamis::learn::train::{Rank, Refresh, Schedule, SeveralOutputs, Standin, Trials};
use tamis::network::gates::Gates;

fn schedule(step_size: f32) -> Schedule<'static, SeveralOutputs> {
    Schedule {
        epochs: 1,
        seed: 9,
        head: SeveralOutputs {
            step_size,
            rank: Rank::Exact,
            convex_epochs: 0,
            standin: Standin::FirstEpoch,
            keep_standins: false,
            ..Schedule::paper(&Labels::values(&[]), 5, 10).head
        },
        ..Schedule::paper(&Labels::values(&[]), 5, 10)
    }
}

#[test]
fn steps_are_those_of_dense_arithmetic() {
    let usual = schedule(0.4).head;
    // Gates of the weights; random ones at first, with steps from random values; older ones; random
    // values in every step; and random gates to the end.
    for head in [
        usual,
        SeveralOutputs { convex_epochs: 2, keep_standins: true, ..usual },
        SeveralOutputs { convex_epochs: 1, refresh: Refresh::Every(2), ..usual },
        SeveralOutputs {
            convex_epochs: 1,
            standin: Standin::EveryEpoch,
            keep_standins: true,
            ..usual
        },
        SeveralOutputs { refresh: Refresh::Never, keep_standins: true, ..usual },
    ] {
        for (values, seed) in [(true, 1), (true, 2), (false, 3), (false, 4)] {
            check_steps(head, values, seed);
        }
    }
}

fn check_steps(head: SeveralOutputs, values: bool, seed: u64) {
    let problem = Problem::new(Sizes { n: 60, d: 7, m: 5, c: 3, s: 12 }, seed);
    let mut random = vec![0.0_f32; 35];
    for (i, h) in random.chunks_mut(7).enumerate() {
        Gates::seeded(9).gate(i).generator(h);
    }
    let random: Vec<f64> = random.into_iter().map(f64::from).collect();
    let mut at = Dense { w: vec![0.0; 35], wt: vec![0.0; 15] };
    let mut held = at.w.clone();
    for epochs in 1..6 {
        // A first epoch of one step, with random values, then without.
        let run = Schedule { epochs, head, ..schedule(0.4) };
        let Found { dense: found, info, .. } =
            problem.train(problem.goal(values), &run, 2, 0, |_| true).unwrap();
        let generators = match head.refresh {
            // A step more than epochs.
            Refresh::Every(_) if head.convex_epochs > 0 && epochs <= head.convex_epochs + 1 => {
                Some(&random)
            }
            Refresh::Every(1) if head.keep_standins => Some(&at.w),
            Refresh::Every(1) => None,
            Refresh::Every(every) => {
                if (epochs - 2 - head.convex_epochs).is_multiple_of(every) {
                    held.clone_from(&at.w);
                }
                Some(&held)
            }
            Refresh::Never => Some(&random),
        };
        let generators = generators.map(Vec::as_slice);
        let stands = epochs == 1 || head.standin == Standin::EveryEpoch;
        let (g, with) = problem.gradient(&at, values, stands.then_some(9), generators);
        let from = if head.keep_standins { &with } else { &at };
        let mut all: Vec<f64> = from
            .w
            .iter()
            .chain(&from.wt)
            .zip(g.w.iter().chain(&g.wt))
            .map(|(w, g)| w + 0.4 * g)
            .collect();
        let mut sizes: Vec<f64> = all.iter().map(|v| v.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let least = sizes[all.len() - problem.sizes.s];
        let next = sizes[all.len() - problem.sizes.s - 1];
        assert!(least > 1.001 * next || least == 0.0, "a tie: choose another seed");
        all.iter_mut().filter(|v| v.abs() < least).for_each(|v| *v = 0.0);
        let expected = Dense { wt: all.split_off(35), w: all };
        let pairs = expected.w.iter().chain(&expected.wt).zip(found.w.iter().chain(&found.wt));
        for (a, b) in pairs {
            assert!((a - b).abs() < 1e-4 * (1.0 + a.abs()), "{head:?}, epoch {epochs}: {a} {b}");
            assert_eq!(*a == 0.0, *b == 0.0, "{head:?}, epoch {epochs}");
        }
        assert_eq!(info.steps, epochs);
        assert_eq!(info.nnz, found.w.iter().chain(&found.wt).filter(|v| **v != 0.0).count());
        at = found;
    }
}

#[test]
fn wide_sketch_ranks_by_sum_of_all_steps() {
    let problem = Problem::new(Sizes { n: 60, d: 7, m: 5, c: 3, s: 12 }, 1);
    let run = Schedule {
        head: SeveralOutputs { rank: Rank::Sketch { decay: 1.0 }, ..schedule(0.4).head },
        ..schedule(0.4)
    };
    // After one step from zero the sum is the step itself: most of the exact selection is found.
    let exact = problem.train(problem.goal(true), &schedule(0.4), 2, 0, |_| true).unwrap();
    let found = problem.train(problem.goal(true), &run, 2, 0, |_| true).unwrap();
    let entries = |found: &Found| -> Vec<(u32, u32)> {
        found.index.iter().copied().zip(found.bits.iter().copied()).collect()
    };
    let common = entries(&found).iter().filter(|e| entries(&exact).contains(e)).count();
    assert!(common >= 5, "{common} of 12");
    assert_eq!(found.index.len(), 12);
    // A sketch that forgets at once ranks by the last step.
    let other = Schedule {
        epochs: 4,
        head: SeveralOutputs { rank: Rank::Sketch { decay: 0.0 }, ..run.head },
        ..run
    };
    let kept = Schedule { epochs: 4, ..run };
    let go = |run| problem.train(problem.goal(true), run, 2, 0, |_| true).unwrap().index;
    assert_ne!(go(&other), go(&kept));
}

#[test]
fn settings_of_the_paper() {
    let step = |goal: Labels<'_>, m, s| Schedule::paper(&goal, m, s).head.step_size;
    // 6 · 10^0.536 = 20.6
    assert_eq!(step(Labels::values(&[]), 10, 20), 2.0);
    assert_eq!(step(Labels::values(&[]), 10, 21), 0.005);
    assert_eq!(step(Labels::classes(&[], 10), 10, 20), 0.001);
}

#[test]
fn diverging_run_errors_and_safe_run_recovers() {
    for rank in [Rank::Exact, Rank::Sketch { decay: 1.0 }] {
        let problem = Problem::new(Sizes { n: 200, d: 8, m: 6, c: 3, s: 20 }, 5);
        let wild = Schedule {
            epochs: 60,
            head: SeveralOutputs { rank, ..schedule(500.0).head },
            ..schedule(500.0)
        };
        let error = problem.train(problem.goal(true), &wild, 3, 0, |_| true).unwrap_err();
        assert!(matches!(error, Error::Diverged { step: 1.. }), "{error:?}");
        let Found { info, undone, .. } =
            problem.train(problem.goal(true), &wild.safe(), 3, 0, |_| true).unwrap();
        let zero = problem.y.iter().map(|y| y * y).sum::<f32>() / problem.y.len() as f32;
        assert!(undone > 2 && info.loss < 0.7 * zero, "{rank:?}: {undone} {} of {zero}", info.loss);
    }
}

#[test]
fn safe_run_never_ends_above_lowest_seen_loss() {
    let problem = Problem::new(Sizes { n: 120, d: 8, m: 6, c: 3, s: 15 }, 6);
    for step_size in [0.1, 1.0, 4.0, 30.0] {
        let run = Schedule { epochs: 30, batch: 40, ..schedule(step_size) }.safe();
        let mut last = f32::INFINITY;
        for epochs in 1..20 {
            let run = Schedule { epochs, ..run };
            let info = problem.train(problem.goal(true), &run, 2, 0, |_| true).unwrap().info;
            // No weights at all are given up for the first ones that are not much worse.
            let loss = if info.nnz > 0 { info.loss } else { f32::INFINITY };
            assert!(loss <= last, "{step_size} {epochs}: {loss} after {last}");
            last = loss;
        }
    }
}

#[test]
fn classes_are_learnt() {
    let problem = Problem::new(Sizes { n: 400, d: 8, m: 6, c: 3, s: 24 }, 7);
    let run = Schedule {
        epochs: 60,
        batch: 50,
        head: SeveralOutputs { standin: Standin::EveryEpoch, ..schedule(0.5).head },
        ..schedule(0.5)
    }
    .safe();
    let info = problem.train(problem.goal(false), &run, 2, 0, |_| true).unwrap().info;
    assert!(info.loss < 0.5 * 3.0_f32.ln(), "{}", info.loss);
    assert_eq!(info.steps, 60 * 8);
}

#[test]
fn the_best_trial_continues_from_its_weights() {
    let problem = Problem::new(Sizes { n: 90, d: 7, m: 5, c: 3, s: 12 }, 2);
    let part = Problem {
        sizes: Sizes { n: 40, ..problem.sizes },
        x: problem.x[..40 * 7].to_vec(),
        y: problem.y[..40 * 3].to_vec(),
        ..problem.clone()
    };
    let part = Problem { classes: problem.classes[..40].to_vec(), ..part };
    for (values, rank) in
        [(true, Rank::Exact), (true, Rank::Sketch { decay: 1.0 }), (false, Rank::Exact)]
    {
        let one = Schedule {
            epochs: 4,
            batch: 15,
            head: SeveralOutputs { rank, ..schedule(if values { 0.3 } else { 1.0 }).head },
            ..schedule(if values { 0.3 } else { 1.0 })
        };
        let run = Schedule { trials: Trials { count: 5, rows: 40 }, ..one };
        let starts: Vec<Found> = (0..5)
            .map(|k| Schedule { seed: seed_of(9, stream::TRIAL, k), ..one })
            .map(|start| part.train(part.goal(values), &start, 2, 0, |_| true).unwrap())
            .collect();
        let losses: Vec<f32> = starts.iter().map(|found| found.info.loss).collect();
        let best = starts.iter().min_by(|a, b| a.info.loss.total_cmp(&b.info.loss)).unwrap();
        // Ended with the last start: the best one, which runs again whatever the observer says. A
        // sketch hashes by the seed of the whole run, so its starts are others.
        let mut told = 0;
        let ended = problem.train(problem.goal(values), &run, 2, 0, |p| {
            told = told.max(p.trial);
            p.step < 5 * 4 * 3
        });
        let ended = ended.unwrap();
        assert_eq!((told, ended.info.trials, ended.info.stopped), (5, 5, true));
        if rank == Rank::Exact {
            assert_eq!(ended.network(), best.network(), "{losses:?}");
            assert!(losses.iter().any(|loss| *loss > 1.01 * best.info.loss), "{losses:?}");
        }
        // Ended with the first of them that there are, the best so far.
        let first = problem.train(problem.goal(values), &run, 2, 0, |p| p.step < 4 * 3).unwrap();
        assert!((first.info.trials, first.info.steps) == (1, 0));
        assert!(rank != Rank::Exact || first.network() == starts[0].network());
        // To its end: no worse than where it went on from by much, and all steps are told of the
        // right start.
        let mut of = Vec::new();
        let whole = problem.train(problem.goal(values), &run, 2, 0, |p| {
            of.push(p.trial);
            true
        });
        let whole = whole.unwrap();
        let last = of.iter().position(|&trial| trial == 0).unwrap();
        assert!(of[last..].iter().all(|&trial| trial == 0) && of.len() - last == 4 * 6);
        assert_eq!((whole.info.steps, whole.info.trials), (4 * 6, 5));
        assert!(whole.info.loss < ended.info.loss, "{} {}", whole.info.loss, ended.info.loss);
    }
}

#[test]
fn a_start_that_diverges_is_none() {
    let problem = Problem::new(Sizes { n: 90, d: 7, m: 5, c: 3, s: 12 }, 2);
    let run = Schedule { epochs: 40, trials: Trials { count: 3, rows: 30 }, ..schedule(500.0) };
    assert!(matches!(
        problem.train(problem.goal(true), &run, 2, 0, |_| true),
        Err(Error::Diverged { .. })
    ));
    // A safe run begins anew then.
    let Found { info, undone, .. } =
        problem.train(problem.goal(true), &run.safe(), 2, 0, |_| true).unwrap();
    assert!(undone > 2 && info.trials == 3 && info.nnz > 0);
    // Starts that do not diverge within their few steps, but are worse than no weights: a run goes
    // on from none of them.
    for step_size in [3.0, 6.0, 12.0, 25.0] {
        let run = Schedule { epochs: 2, ..run }.safe();
        let run = Schedule { head: SeveralOutputs { step_size, ..run.head }, ..run };
        let found = problem.train(problem.goal(true), &run, 2, 0, |_| true).unwrap();
        let zero = problem.y.iter().map(|y| y * y).sum::<f32>() / problem.y.len() as f32;
        assert!(found.info.loss <= 2.0 * zero, "{step_size}: {} {zero}", found.info.loss);
    }
    let none = Schedule { trials: Trials { count: 2, rows: 0 }, ..run };
    assert!(matches!(
        problem.train(problem.goal(true), &none, 2, 0, |_| true),
        Err(Error::Range { .. })
    ));
}

#[test]
fn a_run_ends_where_the_observer_says() {
    let problem = Problem::new(Sizes { n: 60, d: 7, m: 5, c: 3, s: 12 }, 1);
    let run = Schedule { epochs: 9, batch: 20, ..schedule(0.1) };
    let short = problem.train(problem.goal(true), &run, 2, 0, |p| p.step < 3).unwrap();
    assert!(short.info.stopped && short.info.steps == 3);
    let whole =
        problem.train(problem.goal(true), &Schedule { epochs: 1, ..run }, 2, 0, |_| true).unwrap();
    assert_eq!(short.network(), whole.network());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_panel_is_bit_identical_and_budget_exact(
        seed in 0_u64..1000,
        (n, d, m, c) in (1_usize..30, 1_usize..8, 1_usize..7, 2_usize..5),
        part in 0.0_f64..1.0,
        (values, safe, sketch) in any::<(bool, bool, bool)>(),
        batch in 0_usize..12,
        standin in prop_oneof![Just(Standin::FirstEpoch), Just(Standin::EveryEpoch)],
    ) {
        let s = 1 + (part * (m * (d + c) - 1) as f64) as usize;
        let problem = Problem::new(Sizes { n, d, m, c, s }, seed);
        let rank = if sketch { Rank::Sketch { decay: 0.9 } } else { Rank::Exact };
        let run = Schedule { epochs: 3, batch, seed, head: SeveralOutputs { rank, safe, standin, ..schedule(0.05).head }, ..schedule(0.05) };
        let goal = problem.goal(values);
        let one = problem.train(goal, &run, 1, 0, |_| true).unwrap();
        prop_assert!(one.index.len() <= s && one.info.loss.is_finite());
        for panel in [2, m] {
            let other = problem.train(goal, &run, panel, 0, |_| true).unwrap();
            prop_assert_eq!(one.network(), other.network());
        }
        match problem.train(goal, &run, 1, -1, |_| true) {
            Err(Error::Budget { needed, got }) => prop_assert_eq!(needed - got, WORD),
            other => prop_assert!(false, "{:?}", other.map(|done| done.index)),
        }
    }
}

#[test]
fn bad_sizes_and_settings_are_refused() {
    let problem = Problem::new(Sizes { n: 20, d: 3, m: 2, c: 2, s: 4 }, 1);
    let go = |problem: &Problem, goal, run: &Schedule<'_, SeveralOutputs>| {
        problem.train(goal, run, 1, 0, |_| true).map(|_| ()).unwrap_err()
    };
    let run = schedule(0.1);
    let range = |error| match error {
        Error::Range { what, .. } => what,
        other => panic!("{other:?}"),
    };
    let of = |s| Problem { sizes: Sizes { s, ..problem.sizes }, ..problem.clone() };
    assert_eq!(range(go(&of(0), problem.goal(true), &run)), "nonzero weights (nnz)");
    assert_eq!(range(go(&of(11), problem.goal(true), &run)), "nonzero weights (nnz)");
    assert_eq!(range(go(&problem, Labels::classes(&[2; 20], 2), &run)), "label");
    assert_eq!(range(go(&problem, Labels::classes(&[2; 20], 1), &run)), "label");
    assert_eq!(range(go(&problem, Labels::classes(&[0; 20], 0), &run)), "outputs");
    assert_eq!(range(go(&problem, problem.goal(true), &Schedule { epochs: 0, ..run })), "epochs");
    assert_eq!(
        range(go(
            &problem,
            problem.goal(true),
            &Schedule { head: SeveralOutputs { step_size: -1.0, ..run.head }, ..run }
        )),
        "step size"
    );
    let nan = Schedule { head: SeveralOutputs { step_size: f32::NAN, ..run.head }, ..run };
    assert!(matches!(go(&problem, problem.goal(true), &nan), Error::NotFinite { .. }));
    assert!(matches!(go(&problem, Labels::values(&[f32::NAN; 40]), &run), Error::NotFinite { .. }));
    assert!(matches!(go(&problem, Labels::values(&[0.0; 41]), &run), Error::Length { .. }));
    assert!(matches!(go(&problem, Labels::classes(&[0; 19], 2), &run), Error::Length { .. }));
}
