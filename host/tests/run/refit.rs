//! Least squares on the support of finished models.

use tamis::base::dims::Dims;
use tamis::base::rng::Rng;
use tamis::network::gates::Signs;
use tamis_host::base::Limits;
use tamis_host::data::planted;
use tamis_host::data::{Problem, Task};
use tamis_host::model::ModelFile;
use tamis_host::operator::Stop;
use tamis_host::train;
use tamis_host::train::{FinetuneMethod, FinetuneOptions, FinetuneOutcome};
use tamis_host::{Budget, Options};

fn options(method: FinetuneMethod) -> FinetuneOptions {
    FinetuneOptions {
        method,
        params: tamis::learn::deep::tune::Params::DEFAULT,
        steps: 100,
        limits: Limits::NONE,
        threads: 1,
    }
}

fn stored(model: &[u8]) -> ModelFile {
    ModelFile::from_bytes(model).unwrap()
}

fn fit(model: &[u8], problem: &Problem, method: FinetuneMethod) -> FinetuneOutcome {
    train::finetune(&stored(model), problem.clone(), &options(method), &Stop::new(), |_| true)
        .unwrap()
}

/// Labels of one column with signs, or of three columns, on 800 rows; and a model of it.
fn trained(kind: usize) -> (Problem, Vec<u8>) {
    let dims = Dims::new(800, 12, 4, 14);
    let (data, labels) = match kind {
        0 => planted::network(dims, Signs::Positive, 1).map(|made| (made.data, made.labels)),
        1 => planted::network(dims, Signs::Balanced, 1).map(|made| (made.data, made.labels)),
        _ => planted::factored(dims, 3, 1).map(|made| (made.data, made.labels)),
    }
    .unwrap();
    let problem = Problem { data, labels, task: Task::Regression };
    let options = Options { hidden: vec![4], threads: 1, ..Options::new(Budget::nnz(14)) };
    let model = tamis_host::train(&problem, options).unwrap().model.bytes().to_vec();
    (problem, model)
}

#[test]
fn an_old_model_takes_on_new_labels_exactly() {
    for kind in 0..3 {
        let (mut problem, model) = trained(kind);
        // The same network with labels of another unit.
        problem.labels.iter_mut().for_each(|y| *y *= 1.7);
        let fitted = fit(&model, &problem, FinetuneMethod::Auto);
        let r = &fitted.report;
        assert_eq!(r.method, "least-squares");
        assert!(r.psnr_db_before.unwrap() < 40.0 && r.psnr_db.unwrap() > 110.0, "{kind}: {r:?}");
        let (before, after) = (stored(&model), stored(&fitted.model));
        let (before, after) = (before.view().unwrap(), after.view().unwrap());
        let columns = |view: &tamis::store::wire::View<'_>| {
            let layers = view.model().layers().iter();
            layers
                .filter_map(|l| {
                    if let tamis::infer::model::Layer::Csr(c) = l {
                        Some(c.columns().to_vec())
                    } else {
                        None
                    }
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(columns(&before), columns(&after));
        assert_eq!(before.task(), after.task());
    }
}

#[test]
fn least_squares_matches_or_beats_adam_and_start() {
    for kind in 0..3 {
        let (mut problem, model) = trained(kind);
        let mut rng = Rng::new(3, 0);
        problem.labels.iter_mut().for_each(|y| *y = 0.8 * *y + 0.3 * rng.normal());
        let [exact, adam] = [FinetuneMethod::LeastSquares, FinetuneMethod::Adam]
            .map(|method| fit(&model, &problem, method));
        assert_eq!((exact.report.method, adam.report.method), ("least-squares", "adam"));
        assert!(
            exact.report.loss <= 1.001 * adam.report.loss,
            "{kind}: {:?} {:?}",
            exact.report,
            adam.report
        );
        // What is fitted already stays.
        let again = fit(&exact.model, &problem, FinetuneMethod::LeastSquares);
        assert!(
            again.report.loss <= exact.report.loss && again.report.epochs < 40,
            "{:?}",
            again.report
        );
    }
}

#[test]
fn models_without_least_squares_use_adam_or_fail() {
    let made = planted::deep(600, 10, &[3, 3], 1, 12, 1).unwrap();
    let problem = Problem { data: made.data, labels: made.labels, task: Task::Regression };
    let two = Options { hidden: vec![3, 3], threads: 1, ..Options::new(Budget::nnz(12)) };
    let model = tamis_host::train(&problem, two).unwrap().model.bytes().to_vec();
    assert_eq!(fit(&model, &problem, FinetuneMethod::Auto).report.method, "adam");
    let exact = options(FinetuneMethod::LeastSquares);
    let error =
        train::finetune(&stored(&model), problem, &exact, &Stop::new(), |_| true).unwrap_err();
    assert!(error.to_string().contains("several hidden layers"), "{error}");
}

#[test]
fn stopped_fit_returns_the_best_so_far() {
    let (mut problem, model) = trained(0);
    let mut rng = Rng::new(3, 0);
    problem.labels.iter_mut().for_each(|y| *y = 0.5 * *y + 0.3 * rng.normal());
    let exact = options(FinetuneMethod::LeastSquares);
    let first =
        train::finetune(&stored(&model), problem.clone(), &exact, &Stop::new(), |_| false).unwrap();
    assert!(
        first.report.stopped
            && first.report.epochs == 1
            && first.report.loss < first.report.loss_before
    );
    let stop = Stop::new();
    stop.ask();
    let error = train::finetune(&stored(&model), problem, &exact, &stop, |_| true).unwrap_err();
    assert!(error.is_interrupted(), "{error}");
}
