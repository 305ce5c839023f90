//! Attempts of networks of several hidden layers, and what is left of them wherever they are ended.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

use std::ops::ControlFlow;
use std::time::Duration;

use tamis::learn::deep::{shrink, tune};
use tamis_host::base::Limits;
use tamis_host::data::{Matrix, Values, planted};
use tamis_host::data::{Problem, Task};
use tamis_host::operator::Stop;
use tamis_host::train::{
    LayersDetails, LayersOptions, LmOptions, Progress, Report, Start, train_with,
};
use tamis_host::{Budget, Options, Recipe, Result, Trained};

const NNZ: usize = 30;

fn problem() -> Problem {
    let made = planted::deep(600, 12, &[6, 5], 4, NNZ, 4).unwrap();
    Problem { data: made.data, labels: made.labels, task: Task::Regression }
}

fn options(grow: &[f64]) -> Options {
    let tune = tune::Params { epochs: 5, batch: 64, ..tune::Params::DEFAULT };
    let shrink = shrink::Params { levels: 4, tune };
    Options {
        hidden: vec![6, 5],
        recipe: Recipe::Lm(LmOptions { layer_kicks: 0, ..LmOptions::default() }),
        layers: Some(LayersOptions {
            grow: grow.to_vec(),
            shrink,
            tune,
            ..LayersOptions::default()
        }),
        limits: Limits { passes: Some(4000.0), ..Limits::NONE },
        threads: 2,
        ..Options::new(Budget::nnz(NNZ))
    }
}

fn train(options: &Options) -> Trained {
    tamis_host::train(&problem(), options.clone()).unwrap()
}

fn layers(report: &Report) -> &LayersDetails {
    report.layers().unwrap()
}

/// Trains, and goes on as long as the observer says so.
fn watched(
    options: &Options,
    mut goes_on: impl FnMut(&Progress) -> bool + Send,
) -> Result<Trained> {
    train_with(problem(), options, Start::Zero, &Stop::new(), |progress| match goes_on(progress) {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    })
}

#[test]
fn the_best_of_all_attempts_is_the_result() {
    let singles: Vec<f64> = [1.0, 2.0, 3.0]
        .iter()
        .map(|&grow| {
            let mut options = options(&[grow]);
            // As the first of three may take.
            options.limits.passes = Some(4000.0 / 2.0);
            let report = train(&options).report;
            assert_eq!((layers(&report).attempts, report.nnz), (1, NNZ));
            report.loss
        })
        .collect();
    let mut attempts = Vec::new();
    let outcome = watched(&options(&[1.0, 2.0, 3.0]), |progress| {
        attempts.push(progress.stage.attempt);
        true
    })
    .unwrap();
    let report = &outcome.report;
    assert!(attempts.is_sorted() && attempts.first() == Some(&0) && attempts.last() == Some(&2));
    assert_eq!((layers(report).attempts, report.nnz), (3, NNZ), "{report:?}");
    // The first attempt is the same run; later ones have the rows in another order.
    assert!(report.loss <= singles[0], "{singles:?} {report:?}");
    assert!(singles.iter().any(|&loss| loss != singles[0]), "{singles:?}");
    // Threads change nothing, and factors that come to the same count are one attempt.
    let mut one = options(&[1.0, 1.0, 2.0, 3.0, 2.0]);
    one.threads = 1;
    let again = train(&one);
    assert_eq!((again.model.bytes(), layers(&again.report).attempts), (outcome.model.bytes(), 3));
}

/// Ends a run where `ends` says so first.
fn ended(ends: impl Fn(&Progress) -> bool + Send + Sync) -> Result<Report> {
    let mut is_over = false;
    let done = watched(&options(&[3.0, 2.0]), |progress| {
        is_over |= ends(progress);
        !is_over
    })?;
    Ok(done.report)
}

#[test]
fn run_stopped_anywhere_never_exceeds_requested_nnz() {
    let error = ended(|p| p.stage.layer == 0).unwrap_err();
    assert!(error.is_interrupted(), "{error}");
    for (attempt, layer, step) in
        [(0, 1, 1), (0, 2, 3), (0, 2, 22), (1, 0, 1), (1, 1, 1), (1, 2, 3)]
    {
        let report =
            ended(|p| (p.stage.attempt, p.stage.layer) == (attempt, layer) && p.step >= step)
                .unwrap();
        let what = format!("attempt {attempt}, layer {layer}, step {step}: {report:?}");
        assert!(
            report.stopped && report.nnz == NNZ && layers(&report).attempts == attempt + 1,
            "{what}"
        );
        assert!(report.loss.is_finite(), "{what}");
        let nnz: usize = layers(&report).layers.iter().map(|layer| layer.nnz).sum();
        assert!(nnz < NNZ, "what leads to the outputs has weights too: {what}");
    }
}

#[test]
fn time_limit_ends_all_attempts_with_a_model() {
    let mut options = options(&[3.0, 2.0, 4.0]);
    options.limits = Limits { time: Some(Duration::from_millis(30)), passes: None };
    let report = train(&options).report;
    assert_eq!((report.limit, report.nnz), (Some("time"), NNZ), "{report:?}");
    // Time is left for a fit after the weights are dropped.
    assert!(layers(&report).tune_epochs >= 2, "{report:?}");
}

#[test]
fn pass_limit_covers_all_attempts_plus_final_fit() {
    // A layer's search takes some hundred passes to come down to its share of the weights.
    for (limit, more) in [(20.0, 800.0), (300.0, 800.0), (3000.0, 1000.0)] {
        let mut options = options(&[3.0, 2.0, 4.0]);
        options.limits.passes = Some(limit);
        let report = train(&options).report;
        assert!(report.passes <= limit + more, "{limit}: {report:?}");
        assert!(report.nnz == NNZ && layers(&report).tune_epochs > 1, "{limit}: {report:?}");
        assert!(report.limit.is_some() || limit > 1000.0, "{report:?}");
    }
}

#[test]
fn degenerate_data_leave_no_partial_run() {
    // All labels 0: nothing is exact but a model without weights, and no attempt fails.
    let mut problem = problem();
    problem.labels.fill(0.0);
    match tamis_host::train(&problem, options(&[3.0, 1.0])) {
        Ok(done) => assert!(done.report.loss == 0.0, "{:?}", done.report),
        Err(error) => assert!(!error.is_interrupted(), "{error}"),
    }
    let data = Matrix::new(3, 2, Values::F32(vec![0.0; 6])).unwrap();
    let nothing = Problem { data, labels: vec![1.0; 6], task: Task::Regression };
    assert!(tamis_host::train(&nothing, options(&[2.0])).is_err());
}

#[test]
fn even_shares_lose_what_a_layer_throws_away() {
    let of = |even| {
        let layers = options(&[1.0]).layers.map(|layers| LayersOptions {
            even,
            tune: tune::Params { epochs: 0, ..layers.tune },
            ..layers
        });
        train(&Options { layers, ..options(&[1.0]) }).report
    };
    let (published, back) = (of(true), of(false));
    let shares = |report: &Report| -> Vec<usize> {
        layers(report).layers.iter().map(|layer| layer.share).collect()
    };
    assert_eq!(shares(&published), [NNZ / 2, NNZ / 2]);
    // The first layer gives up its weights to the outputs.
    assert!(published.nnz < NNZ && back.nnz == NNZ, "{} {}", published.nnz, back.nnz);
    assert_eq!(shares(&back)[1], NNZ - layers(&back).layers[0].nnz);
}
