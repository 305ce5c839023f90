//! The dense baseline on a planted problem: what the published setting gives, and what enough steps
//! give.

use tamis::base::dims::Dims;
use tamis::network::gates::Signs;
use tamis_host::data::planted;
use tamis_host::data::{Problem, Task};
use tamis_host::model::{MAX_PSNR_DB, Score};
use tamis_host::train::dense::Rates;
use tamis_host::train::{ImpSettings, Report};
use tamis_host::{Budget, Options, Recipe};

fn problem() -> Problem {
    let planted = planted::network(Dims::new(3000, 100, 10, 50), Signs::Positive, 0).unwrap();
    Problem { data: planted.data, labels: planted.labels, task: Task::Regression }
}

fn train(settings: ImpSettings) -> Report {
    let recipe = Recipe::Imp(settings);
    let options = Options { recipe, hidden: vec![10], ..Options::new(Budget::nnz(50)) };
    tamis_host::train(&problem(), options).unwrap().report
}

/// PSNR of predicting the same number for every row.
fn constant(value: f32) -> f64 {
    let labels = problem().labels;
    Score::new(Task::Regression, &labels, &vec![value; labels.len()]).psnr_db.unwrap()
}

#[test]
fn enough_pruning_steps_beat_constants_published_barely_learn() {
    let labels = problem().labels;
    let zero = constant(0.0);
    let mean = constant(labels.iter().sum::<f32>() / labels.len() as f32);
    let usual = ImpSettings::default();
    let honest = train(ImpSettings {
        epochs: 15,
        batch: 32,
        rates: Some(Rates::constant(0.01)),
        ..usual.clone()
    });
    let published = train(ImpSettings { epochs: 15, batch: 0, ..usual });
    let [honest_db, published_db] = [&honest, &published].map(|report| report.psnr_db.unwrap());
    assert!(honest_db > zero + 15.0 && honest_db > mean + 8.0, "{honest_db} {zero} {mean}");
    assert!(published_db < zero + 1.0 && published_db < mean, "{published_db} {zero} {mean}");
    assert!(honest_db < MAX_PSNR_DB);
    // 15 steps at a time against 94 a pass.
    for (report, steps) in [(&published, 15), (&honest, 15 * 94)] {
        let imp = report.imp().unwrap();
        assert_eq!((imp.dense_nnz, report.nnz, imp.rounds), (1010, 50, 30));
        assert_eq!(report.steps, steps * 31);
        assert!(imp.levels.windows(2).all(|pair| pair[1].nnz < pair[0].nnz));
        let dense = 4 * (4 * 1010 + imp.batch as u64 * 11);
        assert_eq!(imp.dense_bytes, dense);
    }
}
