//! Several sizes: warm and cold starts, folds, and what cannot be.

use tamis::dims::Dims;
use tamis::gates::Signs;
use tamis::lm::Params;
use tamis_host::data::planted;
use tamis_host::operator::Stop;
use tamis_host::run::{
    self, AnnealOptions, LayerRecipe, Limits, Options, OutputsOptions, PathOptions, Problem, RecoverOptions,
    Size, Task, score_model, train_path,
};

const DIMS: Dims = Dims::new(900, 20, 4, 16);

fn problem(noise: f32) -> Problem {
    let planted = planted::network(DIMS, Signs::Positive, 2).unwrap();
    let mut rng = tamis::rng::Rng::new(5, 0);
    let labels = planted.labels.iter().map(|y| y + noise * rng.normal()).collect();
    Problem { data: planted.data, labels, task: Task::Regression }
}

fn options(sizes: &[usize], recipe: LayerRecipe<'static>) -> PathOptions<'static> {
    PathOptions {
        hidden: 4,
        sizes: sizes.to_vec(),
        recipe,
        warm: true,
        folds: 0,
        limits: Limits::NONE,
        threads: 1,
        seed: 3,
    }
}

fn lm() -> LayerRecipe<'static> {
    LayerRecipe::Lm(RecoverOptions::new(4, Size::Nonzeros(0)))
}

/// For labels with noise, where a search knows no end of its own.
fn short() -> LayerRecipe<'static> {
    let usual = RecoverOptions::new(4, Size::Nonzeros(0));
    LayerRecipe::Lm(RecoverOptions { params: Params { kicks: 1, ..usual.params }, ..usual })
}

fn paper() -> LayerRecipe<'static> {
    let s = Size::Nonzeros(0);
    LayerRecipe::Paper(Options::new(4, s), OutputsOptions { safe: true, ..OutputsOptions::new(4, s) })
}

#[test]
fn a_warm_path_is_exact_from_the_planted_size_on_and_takes_fewer_passes() {
    let problem = problem(0.0);
    let path = |warm| {
        let options = PathOptions { warm, ..options(&[8, 16, 24], lm()) };
        train_path(&problem, &options, &Stop::new(), |_| true).unwrap()
    };
    let (warm, cold) = (path(true), path(false));
    for path in [&warm, &cold] {
        let psnr: Vec<f64> = path.report.points.iter().map(|point| point.psnr_db.unwrap()).collect();
        assert!(psnr[0] < 60.0 && psnr[1] > 120.0 && psnr[2] > 120.0, "{psnr:?}");
        assert_eq!((path.report.chosen_nnz, path.chosen()), (None, None));
        for (point, model) in path.report.points.iter().zip(&path.models) {
            assert!(point.nnz <= point.requested_nnz);
            let loss = score_model(model, &problem).unwrap().loss;
            assert!((loss - point.loss).abs() <= 1e-3 * loss + 1e-14, "{loss} {}", point.loss);
        }
    }
    let starts = |path: &run::PathOutcome| path.report.points.iter().map(|p| p.warm).collect::<Vec<_>>();
    assert_eq!((starts(&warm), starts(&cold)), (vec![false, true, true], vec![false; 3]));
    // The size after the exact one has nothing left to find.
    assert!(warm.report.points[2].passes < 0.5 * cold.report.points[2].passes);
    // Cold trainings are those of one size.
    let alone = RecoverOptions { threads: 1, ..RecoverOptions::new(4, Size::Nonzeros(16)) };
    let alone = run::recover(problem, &alone, &Stop::new(), |_| true).unwrap();
    assert_eq!(alone.model, cold.models[1]);
}

#[test]
fn folds_choose_the_planted_size_under_noise_and_are_the_same_again() {
    let problem = problem(0.05);
    let options = PathOptions { folds: 4, ..options(&[8, 16, 40], short()) };
    let mut seen = Vec::new();
    let path = train_path(&problem, &options, &Stop::new(), |progress| {
        if seen.last() != Some(&(progress.training, progress.nnz, progress.fold)) {
            seen.push((progress.training, progress.nnz, progress.fold));
        }
        true
    })
    .unwrap();
    assert_eq!(path.report.chosen_nnz, Some(16));
    assert_eq!(path.chosen(), Some(path.models[1].as_slice()));
    let points = &path.report.points;
    assert!(points.iter().all(|point| point.fold_losses.len() == 4));
    // Rows trained on flatter the largest network, rows left out do not.
    assert!(points[2].loss < points[1].loss && points[0].cv_loss > points[1].cv_loss);
    assert!((points[1].cv_loss.unwrap().sqrt() / 0.05 - 1.0).abs() < 0.2);
    let folds = std::iter::once(None).chain((0..4).map(Some));
    let expected: Vec<_> = folds.flat_map(|fold| [8, 16, 40].map(|nnz| (nnz, fold))).collect();
    let seen: Vec<_> = seen.into_iter().map(|(_, nnz, fold)| (nnz, fold)).collect();
    assert_eq!(seen, expected);
    let again = train_path(&problem, &options, &Stop::new(), |_| true).unwrap();
    assert_eq!((again.models, &again.report.points[1].fold_losses), (path.models, &points[1].fold_losses));
}

#[test]
fn every_recipe_has_paths() {
    let problem = problem(0.0);
    let path = train_path(&problem, &options(&[6, 16], paper()), &Stop::new(), |_| true).unwrap();
    let points = &path.report.points;
    assert_eq!((points[0].warm, points[1].warm, path.report.recipe), (false, true, "paper-safe"));
    assert!(points[1].loss < points[0].loss);

    let classes: Vec<f32> = problem.labels.iter().map(|y| f32::from(u8::from(*y > 1.0))).collect();
    let classes = Problem { labels: classes, task: Task::Multiclass, ..problem.clone() };
    let anneal = LayerRecipe::Anneal(AnnealOptions::new(4, Size::Nonzeros(0)));
    let asked = PathOptions { folds: 2, ..options(&[12, 24], anneal) };
    let path = train_path(&classes, &asked, &Stop::new(), |_| true).unwrap();
    assert!(path.report.points.iter().all(|point| !point.warm && point.cv_accuracy.unwrap() > 0.8));

    let made = planted::deep(1500, 12, &[4, 4], 1, 16, 1).unwrap();
    let deep = Problem { data: made.data, labels: made.labels, task: Task::Regression };
    let second = RecoverOptions { second: Some(4), ..RecoverOptions::new(4, Size::Nonzeros(0)) };
    let path =
        train_path(&deep, &options(&[12, 16, 20], LayerRecipe::Lm(second)), &Stop::new(), |_| true).unwrap();
    let points = &path.report.points;
    assert!(points[2].warm && points[2].psnr_db.unwrap() > 110.0, "{points:?}");

    let made = planted::deep(1500, 12, &[4], 3, 18, 1).unwrap();
    let several = Problem { data: made.data, labels: made.labels, task: Task::Regression };
    let path = train_path(&several, &options(&[9, 18], lm()), &Stop::new(), |_| true).unwrap();
    let points = &path.report.points;
    assert!(points[1].warm && points[1].psnr_db.unwrap() > 110.0, "{points:?}");
    let path = train_path(&several, &options(&[9, 18], paper()), &Stop::new(), |_| true).unwrap();
    assert!(!path.report.points[1].warm);
}

#[test]
fn mixed_signs_and_labels_of_any_scale_start_warm() {
    let planted = planted::network(DIMS, Signs::Balanced, 2).unwrap();
    let labels = planted.labels.iter().map(|y| 300.0 * y).collect();
    let problem = Problem { data: planted.data, labels, task: Task::Regression };
    let path = train_path(&problem, &options(&[16, 24], lm()), &Stop::new(), |_| true).unwrap();
    let points = &path.report.points;
    assert!(points.iter().all(|point| point.psnr_db.unwrap() > 120.0), "{points:?}");
    assert!(points[1].passes < 0.5 * points[0].passes, "{points:?}");
}

#[test]
fn rare_classes_are_in_every_training_or_refused() {
    let mut problem = problem(0.0);
    let anneal = LayerRecipe::Anneal(AnnealOptions::new(4, Size::Nonzeros(0)));
    let asked = PathOptions { folds: 3, ..options(&[12], anneal) };
    let mut with = |rare: &[usize]| {
        problem.task = Task::Multiclass;
        problem.labels = (0..900).map(|k| if rare.contains(&k) { 2.0 } else { (k % 2) as f32 }).collect();
        train_path(&problem, &asked, &Stop::new(), |_| true)
    };
    let path = with(&[7, 8]).unwrap();
    assert!(path.report.points[0].fold_losses.iter().all(|loss| loss.is_finite()), "{:?}", path.report);
    let error = with(&[7]).unwrap_err().to_string();
    assert!(error.contains("1 of class 2"), "{error}");
}

#[test]
fn a_path_that_is_ended_gives_what_was_done() {
    let problem = problem(0.05);
    let asked = PathOptions { folds: 3, ..options(&[8, 16, 40], short()) };
    let ended = |training| {
        train_path(&problem, &asked, &Stop::new(), |progress| progress.training < training).unwrap()
    };
    let path = ended(1);
    assert_eq!((path.models.len(), path.report.stopped, path.report.chosen_nnz), (2, true, None));
    let path = ended(5);
    assert_eq!((path.models.len(), path.report.points[2].cv_loss, path.report.chosen_nnz), (3, None, None));
}

#[test]
fn what_cannot_be_says_so() {
    let problem = problem(0.0);
    let refused = |options: PathOptions<'_>| {
        train_path(&problem, &options, &Stop::new(), |_| true).unwrap_err().to_string()
    };
    for sizes in [&[][..], &[5, 5], &[9, 5], &(1..200).collect::<Vec<_>>()] {
        assert!(refused(options(sizes, lm())).contains("--nnz"), "{sizes:?}");
    }
    for folds in [1, 101, 100_000] {
        assert!(refused(PathOptions { folds, ..options(&[5], lm()) }).contains("--folds"), "{folds}");
    }
    assert!(refused(options(&[5, 10_000], lm())).contains("10000"));
    // A start of other sizes.
    let from = RecoverOptions::new(4, Size::Nonzeros(8));
    let from = run::recover(problem.clone(), &from, &Stop::new(), |_| true).unwrap();
    let other = RecoverOptions::new(5, Size::Nonzeros(8));
    let error = run::recover_from(problem.clone(), &other, &from, &Stop::new(), |_| true).unwrap_err();
    assert!(error.to_string().contains("5 neurons") && error.to_string().contains("4 neurons"), "{error}");
    // The published method has positive signs, or half of them negative.
    let other = Options::new(4, Size::Nonzeros(8));
    let free = RecoverOptions { signs: Some(Signs::Free), ..RecoverOptions::new(4, Size::Nonzeros(8)) };
    let free = run::recover(problem.clone(), &free, &Stop::new(), |_| true).unwrap();
    let error = run::train_from(problem, &other, &free, &Stop::new(), |_| true).unwrap_err();
    assert!(error.to_string().contains("recipe lm"), "{error}");
}
