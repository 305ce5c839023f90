//! Several sizes: warm and cold starts, folds, and what cannot be.

use std::ops::ControlFlow;

use tamis::base::dims::Dims;
use tamis::learn::lm::Params;
use tamis::network::gates::Signs;
use tamis_host::data::planted;
use tamis_host::data::{Problem, Task};
use tamis_host::model::score_model;
use tamis_host::operator::Stop;
use tamis_host::train::{
    AnnealOptions, LmOptions, OutputsOptions, PaperOptions, PathOptions, PathOutcome, Start,
    train_path, train_with,
};
use tamis_host::{Budget, Options, Recipe, Result};

const DIMS: Dims = Dims::new(900, 20, 4, 16);

fn problem(noise: f32) -> Problem {
    let planted = planted::network(DIMS, Signs::Positive, 2).unwrap();
    let mut rng = tamis::base::rng::Rng::new(5, 0);
    let labels = planted.labels.iter().map(|y| y + noise * rng.normal()).collect();
    Problem { data: planted.data, labels, task: Task::Regression }
}

fn options(recipe: Recipe) -> Options {
    Options { hidden: vec![4], recipe, threads: 1, seed: 3, ..Options::new(Budget::nnz(1)) }
}

fn sizes(sizes: &[usize], folds: usize) -> PathOptions {
    PathOptions { sizes: sizes.to_vec(), warm: true, folds }
}

fn try_path(problem: &Problem, options: &Options, sizes: &PathOptions) -> Result<PathOutcome> {
    train_path(problem, options, sizes, &Stop::new(), |_| ControlFlow::Continue(()))
}

fn train(problem: &Problem, recipe: Recipe, at: &[usize], folds: usize) -> PathOutcome {
    try_path(problem, &options(recipe), &sizes(at, folds)).unwrap()
}

fn lm() -> Recipe {
    Recipe::Lm(LmOptions::default())
}

/// For labels with noise, where a search knows no end of its own.
fn short() -> Recipe {
    let usual = LmOptions::default();
    Recipe::Lm(LmOptions { params: Params { perturbations: 1, ..usual.params }, ..usual })
}

fn paper(safe: bool) -> Recipe {
    let outputs = OutputsOptions { safe, ..OutputsOptions::PUBLISHED };
    Recipe::Paper(PaperOptions { outputs, ..PaperOptions::default() })
}

#[test]
fn warm_path_is_exact_and_takes_fewer_passes() {
    let problem = problem(0.0);
    let path = |warm| {
        try_path(&problem, &options(lm()), &PathOptions { warm, ..sizes(&[8, 16, 24], 0) }).unwrap()
    };
    let (warm, cold) = (path(true), path(false));
    for path in [&warm, &cold] {
        let psnr: Vec<f64> =
            path.report.points.iter().map(|point| point.psnr_db.unwrap()).collect();
        assert!(psnr[0] < 60.0 && psnr[1] > 120.0 && psnr[2] > 120.0, "{psnr:?}");
        assert!(path.report.chosen_nnz.is_none() && path.chosen().is_none());
        for (point, model) in path.report.points.iter().zip(&path.models) {
            assert!(point.nnz <= point.requested_nnz);
            let loss = score_model(model.bytes(), &problem).unwrap().loss;
            assert!((loss - point.loss).abs() <= 1e-3 * loss + 1e-14, "{loss} {}", point.loss);
        }
    }
    let starts = |path: &PathOutcome| path.report.points.iter().map(|p| p.warm).collect::<Vec<_>>();
    assert_eq!((starts(&warm), starts(&cold)), (vec![false, true, true], vec![false; 3]));
    // The size after the exact one has nothing left to find.
    assert!(warm.report.points[2].passes < 0.5 * cold.report.points[2].passes);
    // Cold trainings are those of one size.
    let alone = Options { budget: Budget::nnz(16), ..options(lm()) };
    let alone = tamis_host::train(&problem, alone).unwrap();
    assert_eq!(alone.model.bytes(), cold.models[1].bytes());
}

#[test]
fn cross_validation_picks_planted_nnz_under_noise_reproducibly() {
    let problem = problem(0.05);
    let sizes = sizes(&[8, 16, 40], 4);
    let mut seen = Vec::new();
    let path = train_path(&problem, &options(short()), &sizes, &Stop::new(), |progress| {
        let now = (progress.stage.training, progress.stage.nnz, progress.stage.fold);
        if seen.last() != Some(&now) {
            seen.push(now);
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(path.report.chosen_nnz, Some(16));
    assert_eq!(path.chosen().map(|model| model.bytes()), Some(path.models[1].bytes()));
    let points = &path.report.points;
    assert!(points.iter().all(|point| point.fold_losses.len() == 4));
    // Rows trained on flatter the largest network, rows left out do not.
    assert!(points[2].loss < points[1].loss && points[0].cv_loss > points[1].cv_loss);
    assert!((points[1].cv_loss.unwrap().sqrt() / 0.05 - 1.0).abs() < 0.2);
    let folds = std::iter::once(None).chain((0..4).map(Some));
    let expected: Vec<_> = folds.flat_map(|fold| [8, 16, 40].map(|nnz| (nnz, fold))).collect();
    let seen: Vec<_> = seen.into_iter().map(|(_, nnz, fold)| (nnz, fold)).collect();
    assert_eq!(seen, expected);
    let again = try_path(&problem, &options(short()), &sizes).unwrap();
    let bytes =
        |path: &PathOutcome| path.models.iter().map(|m| m.bytes().to_vec()).collect::<Vec<_>>();
    assert_eq!(bytes(&again), bytes(&path));
    assert_eq!(again.report.points[1].fold_losses, points[1].fold_losses);
}

#[test]
fn every_recipe_has_paths() {
    let problem = problem(0.0);
    let path = train(&problem, paper(false), &[6, 16], 0);
    let points = &path.report.points;
    assert_eq!((points[0].warm, points[1].warm, path.report.recipe), (false, true, "paper"));
    assert!(points[1].loss < points[0].loss);

    let classes: Vec<f32> = problem.labels.iter().map(|y| f32::from(u8::from(*y > 1.0))).collect();
    let classes = Problem { labels: classes, task: Task::Multiclass, ..problem.clone() };
    let path = train(&classes, Recipe::Anneal(AnnealOptions::default()), &[12, 24], 2);
    assert!(path.report.points.iter().all(|point| !point.warm && point.cv_accuracy.unwrap() > 0.8));

    let made = planted::deep(1500, 12, &[4, 4], 1, 16, 1).unwrap();
    let deep = Problem { data: made.data, labels: made.labels, task: Task::Regression };
    let two = Options { hidden: vec![4, 4], ..options(lm()) };
    let path = try_path(&deep, &two, &sizes(&[16, 20], 0)).unwrap();
    let points = &path.report.points;
    assert!(points[1].warm && points[1].psnr_db.unwrap() > 110.0, "{points:?}");

    let made = planted::deep(1500, 12, &[4], 3, 18, 1).unwrap();
    let several = Problem { data: made.data, labels: made.labels, task: Task::Regression };
    let path = train(&several, lm(), &[9, 18], 0);
    let points = &path.report.points;
    assert!(points[1].warm && points[1].psnr_db.unwrap() > 110.0, "{points:?}");
    let path = train(&several, paper(true), &[9, 18], 0);
    assert!(!path.report.points[1].warm && path.report.recipe == "paper-safe");
}

#[test]
fn mixed_signs_and_any_label_scale_start_warm() {
    let planted = planted::network(DIMS, Signs::Balanced, 2).unwrap();
    let labels = planted.labels.iter().map(|y| 300.0 * y).collect();
    let problem = Problem { data: planted.data, labels, task: Task::Regression };
    let path = train(&problem, lm(), &[16, 24], 0);
    let points = &path.report.points;
    assert!(points.iter().all(|point| point.psnr_db.unwrap() > 120.0), "{points:?}");
    assert!(points[1].passes < 0.5 * points[0].passes, "{points:?}");
}

#[test]
fn rare_classes_are_in_every_training_or_refused() {
    let mut problem = problem(0.0);
    let anneal = options(Recipe::Anneal(AnnealOptions::default()));
    let mut with = |rare: &[usize]| {
        problem.task = Task::Multiclass;
        problem.labels =
            (0..900).map(|k| if rare.contains(&k) { 2.0 } else { (k % 2) as f32 }).collect();
        try_path(&problem, &anneal, &sizes(&[12], 3))
    };
    let path = with(&[7, 8]).unwrap();
    assert!(
        path.report.points[0].fold_losses.iter().all(|loss| loss.is_finite()),
        "{:?}",
        path.report
    );
    let error = with(&[7]).unwrap_err().to_string();
    assert!(error.contains("1 of class 2"), "{error}");
}

#[test]
fn stopped_path_returns_completed_networks() {
    let problem = problem(0.05);
    let ended = |training| {
        let observe =
            |progress: &tamis_host::train::Progress| match progress.stage.training < training {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            };
        train_path(&problem, &options(short()), &sizes(&[8, 16, 40], 3), &Stop::new(), observe)
            .unwrap()
    };
    let path = ended(1);
    assert_eq!((path.models.len(), path.report.stopped, path.report.chosen_nnz), (2, true, None));
    let path = ended(5);
    assert_eq!(
        (path.models.len(), path.report.points[2].cv_loss, path.report.chosen_nnz),
        (3, None, None)
    );
}

#[test]
fn what_cannot_be_says_so() {
    let problem = problem(0.0);
    let refused = |at: &[usize], folds| {
        try_path(&problem, &options(lm()), &sizes(at, folds)).unwrap_err().to_string()
    };
    for sizes in [&[][..], &[5, 5], &[9, 5], &(1..200).collect::<Vec<_>>()] {
        assert!(refused(sizes, 0).contains("--nnz"), "{sizes:?}");
    }
    for folds in [1, 101, 100_000] {
        assert!(refused(&[5], folds).contains("--folds"), "{folds}");
    }
    assert!(refused(&[5, 10_000], 0).contains("10000"));
    // A start of other sizes.
    let with = |hidden, recipe| Options {
        hidden: vec![hidden],
        budget: Budget::nnz(8),
        ..options(recipe)
    };
    let error = |options: &Options, from| {
        let start = Start::Network(from);
        let go_on = |_: &_| ControlFlow::Continue(());
        train_with(problem.clone(), options, start, &Stop::new(), go_on).unwrap_err().to_string()
    };
    let from = tamis_host::train(&problem, with(4, lm())).unwrap();
    let other = error(&with(5, lm()), &from);
    assert!(other.contains("5 neurons") && other.contains("4 neurons"), "{other}");
    // The published method has positive signs, or half of them negative.
    let free = Recipe::Lm(LmOptions { signs: Some(Signs::Free), ..LmOptions::default() });
    let free = tamis_host::train(&problem, with(4, free)).unwrap();
    assert!(error(&with(4, paper(false)), &free).contains("recipe lm"));
}
