//! Whole runs: what is left, what comes back, and what is refused.

use super::*;
use crate::data::{Matrix, Task, Values, planted};
use crate::train::budget::Budget;
use crate::train::dense::Rates;
use crate::train::dense::job::ImpSettings;
use tamis::base::dims::Dims;
use tamis::learn::optimiser::Optimiser;
use tamis::network::gates::Signs;

fn problem() -> Problem {
    let planted = planted::network(Dims::new(300, 10, 3, 8), Signs::Positive, 2).unwrap();
    Problem { data: planted.data, labels: planted.labels, task: Task::Regression }
}

fn settings() -> ImpSettings {
    let rates = Some(Rates::constant(0.01));
    ImpSettings { epochs: 4, batch: 64, rewind: 1, rates, test: Some(problem()), ..default() }
}

fn default() -> ImpSettings {
    ImpSettings::default()
}

fn job<'a>(problem: &Problem, settings: &'a ImpSettings, nnz: usize) -> Result<ImpJob<'a>> {
    ImpJob::new(problem, settings, Budget::nnz(nnz), &[6, 4], 0)
}

fn train(settings: &ImpSettings, folder: Option<&Path>) -> Result<Imp> {
    let problem = problem();
    kept(&problem, &job(&problem, settings, 11)?, folder, true, &mut |_| true)
}

/// A run that can save all of its levels.
fn kept(
    problem: &Problem,
    job: &ImpJob<'_>,
    folder: Option<&Path>,
    resume: bool,
    observe: &mut dyn FnMut(Epoch) -> bool,
) -> Result<Imp> {
    let mut saved = |error: Option<Error>| assert!(error.is_none(), "{error:?}");
    let keep = folder.map(|folder| Keep { folder, resume, saved: &mut saved });
    imp(problem, job, keep, &Stop::new(), observe)
}

fn count(mask: &[bool]) -> usize {
    mask.iter().filter(|&&kept| kept).count()
}

#[test]
fn rounds_prune_their_fraction_ending_at_exactly_s() {
    let counts = |nnz, prune| {
        let settings = ImpSettings { prune, ..default() };
        ImpJob::new(&problem(), &settings, Budget::nnz(nnz), &[10], 0).unwrap().counts()
    };
    assert_eq!(counts(90, 0.1), [110, 99, 90]);
    assert_eq!(counts(95, 0.1), [110, 99, 95]);
    assert_eq!(counts(110, 0.1), [110]);
    assert_eq!(counts(3, 1.0), [110, 3]);
    let last = counts(1, 0.1);
    // Under one weight of ten, one is dropped.
    assert_eq!(last[last.len() - 10..], [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(counts(106, 0.001), [110, 109, 108, 107, 106]);
}

#[test]
fn mask_only_shrinks_and_result_has_exactly_s() {
    for (optimiser, prune) in
        [(Optimiser::Adam, 0.1), (Optimiser::Sgd { momentum: 0.9 }, 0.2), (Optimiser::Adam, 1.0)]
    {
        let rates = Some(Rates::constant(0.003));
        let settings = ImpSettings { optimiser, prune, rates, keep_levels: true, ..settings() };
        let folder = tempfile::tempdir().unwrap();
        let done = train(&settings, Some(folder.path())).unwrap();
        let levels = job(&problem(), &settings, 11).unwrap().counts().len();
        assert_eq!((count(&done.mask), done.levels.len()), (11, levels));
        assert!(done.weights.iter().zip(&done.mask).all(|(&w, &kept)| (w != 0.0) == kept));
        let masks: Vec<Vec<u8>> =
            (0..done.levels.len()).map(|level| level_mask(folder.path(), level)).collect();
        for (level, pair) in masks.windows(2).enumerate() {
            assert!(pair[0].iter().zip(&pair[1]).all(|(before, after)| after <= before));
            assert_eq!(pair[0].iter().filter(|&&kept| kept == 1).count(), done.levels[level].nnz);
        }
        assert!(masks[0].iter().all(|&kept| kept == 1));
        assert_eq!(
            masks[masks.len() - 1].iter().map(|&kept| kept == 1).collect::<Vec<_>>(),
            done.mask
        );
        let rows: Vec<usize> = done.levels.iter().map(|level| level.test.unwrap().rows).collect();
        assert_eq!(rows, vec![300; done.levels.len()]);
    }
}

#[test]
fn sizes_of_one_run_are_runs_of_their_own() {
    let problem = problem();
    for retrain in [true, false] {
        let settings = ImpSettings { retrain, ..settings() };
        // One of them is a level that others go on from, and one all weights.
        let sizes = [job(&problem, &settings, 11).unwrap().shape.weights(), 70, 60, 59, 11];
        let least = job(&problem, &settings, 11).unwrap();
        let mut own = Vec::new();
        let mut observe = |epoch: Epoch| {
            own.extend(epoch.size);
            true
        };
        let mut all = Vec::new();
        let mut done = |sized| {
            all.push(sized);
            Ok(())
        };
        imp_of_sizes(&problem, &least, &sizes, &Stop::new(), &mut observe, &mut done).unwrap();
        for (sized, nnz) in all.iter().zip(sizes) {
            let job = job(&problem, &settings, nnz).unwrap();
            let one = imp(&problem, &job, None, &Stop::new(), &mut |_| true).unwrap();
            assert_eq!((count(&one.mask), &sized.imp), (nnz, &one));
        }
        own.dedup();
        assert_eq!(own, if retrain { &sizes[..] } else { &sizes[..1] });
        assert!(all.windows(2).all(|pair| pair[0].imp.steps <= pair[1].imp.steps));
    }
}

#[test]
fn last_pruning_without_retraining_keeps_trained_weights() {
    let (problem, settings) = (problem(), settings());
    let counts = job(&problem, &settings, 11).unwrap().counts();
    let run = |settings: &ImpSettings, nnz| {
        let job = job(&problem, settings, nnz).unwrap();
        imp(&problem, &job, None, &Stop::new(), &mut |_| true).unwrap()
    };
    let above = run(&settings, counts[counts.len() - 2]);
    let pruned = run(&ImpSettings { retrain: false, ..settings }, 11);
    assert_eq!((count(&pruned.mask), pruned.steps), (11, above.steps));
    let kept = above.weights.iter().zip(&pruned.mask).map(|(&w, &kept)| if kept { w } else { 0.0 });
    assert_eq!(pruned.weights, kept.collect::<Vec<f32>>());
}

/// The mask of all layers that a file of a level holds.
fn level_mask(folder: &Path, level: usize) -> Vec<u8> {
    let (mut file, len) =
        crate::base::file::open(&folder.join(format!("level-{level:03}.npz"))).unwrap();
    let mut all = Vec::new();
    for (l, width) in [10, 6, 4].into_iter().enumerate() {
        let name = format!("mask{l}");
        let mask = crate::data::npz::read(&mut file, len, Some(&name)).unwrap();
        assert_eq!(mask.cols, width);
        let Values::U8(values) = mask.values else { panic!("a mask is bytes") };
        all.extend(values);
    }
    all
}

#[test]
fn threads_and_the_folder_change_no_bit() {
    let run = |threads, folder: Option<&Path>| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| train(&ImpSettings { batch: 0, ..settings() }, folder)).unwrap()
    };
    let one = run(1, None);
    let folder = tempfile::tempdir().unwrap();
    let new = folder.path().join("new/run");
    assert_eq!([run(3, None), run(2, Some(&new))], [one.clone(), one]);
}

#[test]
fn every_level_resumes_bit_identically() {
    let settings = settings();
    let whole = train(&settings, None).unwrap();
    let problem = problem();
    let job = job(&problem, &settings, 11).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let keep = Some(folder.path());
    // Every call does a level and two epochs more, until all are done.
    let level = |epoch: u64| if epoch <= 4 { 0 } else { 1 + (epoch - 5) / 3 };
    let (mut calls, mut stopped) = (0, true);
    while stopped {
        let mut first = None;
        let mut observe = |progress: Epoch| {
            let level = level(progress.epoch);
            level == *first.get_or_insert(level) || !progress.epoch.is_multiple_of(3)
        };
        let part = kept(&problem, &job, keep, true, &mut observe).unwrap();
        assert_eq!(count(&part.mask), job.nnz);
        calls += 1;
        stopped = part.stopped;
        if !stopped {
            assert_eq!(part, whole);
        }
    }
    assert!(calls > 5, "{calls}");
    // A finished run is there at once.
    let mut never = |_| panic!("trained again");
    let again = kept(&problem, &job, keep, true, &mut never).unwrap();
    assert_eq!(again, whole);
}

#[test]
fn a_level_that_cannot_be_saved_ends_no_run() {
    let settings = ImpSettings { keep_levels: true, ..settings() };
    let whole = train(&settings, None).unwrap();
    let (problem, folder) = (problem(), tempfile::tempdir().unwrap());
    let job = job(&problem, &settings, 11).unwrap();
    // A folder lies where the second level is to go.
    std::fs::create_dir(folder.path().join("level-001.npz")).unwrap();
    let mut errors = Vec::new();
    let mut saved = |error: Option<Error>| errors.push(error.is_some());
    let keep = Keep { folder: folder.path(), resume: false, saved: &mut saved };
    let done = imp(&problem, &job, Some(keep), &Stop::new(), &mut |_| true).unwrap();
    assert_eq!(done, whole);
    let lost = |level: usize| level == 1;
    assert_eq!(errors, (0..whole.levels.len()).map(lost).collect::<Vec<_>>());
    // What is saved is of the last level.
    let mut never = |_| panic!("trained again");
    assert_eq!(kept(&problem, &job, Some(folder.path()), true, &mut never).unwrap(), whole);
}

#[test]
fn foreign_or_damaged_checkpoints_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let keep = folder.path();
    let whole = train(&settings(), Some(keep)).unwrap();
    let mut problem = problem();
    let error = |problem: &Problem, settings: &ImpSettings, nnz, hidden: &[usize], seed, resume| {
        let job = ImpJob::new(problem, settings, Budget::nnz(nnz), hidden, seed).unwrap();
        let done = kept(problem, &job, Some(keep), resume, &mut |_| true);
        done.unwrap_err().to_string()
    };
    let usual = &settings();
    assert!(error(&problem, usual, 11, &[6, 4], 0, false).contains("--resume"));
    let rates = &ImpSettings { rates: Some(Rates::constant(0.1)), ..settings() };
    for (name, error) in [
        ("seed", error(&problem, usual, 11, &[6, 4], 1, true)),
        ("nnz", error(&problem, usual, 12, &[6, 4], 0, true)),
        ("rates", error(&problem, rates, 11, &[6, 4], 0, true)),
        ("hidden", error(&problem, usual, 11, &[4, 6], 0, true)),
    ] {
        assert!(
            error.contains("other settings") && error.contains(&format!("expected: {name}")),
            "{error}"
        );
    }
    problem.labels[7] += 1.0;
    let other = error(&problem, usual, 11, &[6, 4], 0, true);
    assert!(other.contains("expected: data"), "{other}");
    let path = folder.path().join("imp.npz");
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(train(&settings(), Some(keep)).unwrap(), whole);
    // Every cut and every flip of a byte is refused or changes nothing, and never panics.
    for at in (0..bytes.len()).step_by(37) {
        let mut wrong = bytes.clone();
        wrong[at] ^= 0x10;
        std::fs::write(&path, &wrong).unwrap();
        if let Ok(found) = train(&settings(), Some(keep)) {
            assert_eq!(found, whole, "flip at {at}");
        }
        std::fs::write(&path, &bytes[..at]).unwrap();
        assert!(train(&settings(), Some(keep)).is_err(), "cut at {at}");
    }
}

#[test]
fn stop_before_first_step_gives_no_result() {
    let (problem, settings) = (problem(), settings());
    let job = job(&problem, &settings, 11).unwrap();
    let stop = Stop::new();
    stop.ask();
    let ended = imp(&problem, &job, None, &stop, &mut |_| true).unwrap_err();
    assert!(ended.is_interrupted());
    for epochs in [1, 6] {
        let mut observe = |progress: Epoch| progress.epoch < epochs;
        let done = imp(&problem, &job, None, &Stop::new(), &mut observe).unwrap();
        assert_eq!((done.stopped, count(&done.mask)), (true, 11));
        assert_eq!(done.levels.len(), usize::from(epochs > 4));
    }
}

#[test]
fn weights_of_zero_survive_where_they_are_needed() {
    let data = Matrix::new(4, 10, Values::U8(vec![0; 40])).unwrap();
    let problem = Problem { data, labels: vec![0.0; 4], task: Task::Regression };
    let (settings, stop) = (settings(), Stop::new());
    let job = job(&problem, &settings, 11).unwrap();
    let mut run = Run::new(&problem, &job, &stop).unwrap();
    run.training.weights.fill(0.0);
    run.training.weights[50] = -1.0;
    run.prune(11).unwrap();
    let kept: Vec<usize> = (0..run.training.mask.len()).filter(|&j| run.training.mask[j]).collect();
    assert_eq!(kept, [&(0..10).collect::<Vec<_>>()[..], &[50]].concat());
}

#[test]
fn steps_that_diverge_are_named() {
    let settings = ImpSettings {
        optimiser: Optimiser::Sgd { momentum: 0.9 },
        rates: Some(Rates::constant(f32::MAX)),
        ..settings()
    };
    let error = train(&settings, None).unwrap_err().to_string();
    assert!(error.contains("diverged") && error.contains("--rate"), "{error}");
}

#[test]
fn settings_out_of_bounds_are_refused() {
    let refused =
        |settings: ImpSettings, nnz| job(&problem(), &settings, nnz).unwrap_err().to_string();
    assert!(refused(settings(), 0).contains("--nnz 1 to 88"));
    assert!(refused(settings(), 89).contains("--nnz 1 to 88"));
    assert!(refused(ImpSettings { prune: 0.0, ..settings() }, 11).contains("--prune-fraction"));
    assert!(
        refused(ImpSettings { prune: f64::NAN, ..settings() }, 11).contains("--prune-fraction")
    );
    assert!(refused(ImpSettings { rewind: 4, ..settings() }, 11).contains("--rewind 0 to 3"));
}
