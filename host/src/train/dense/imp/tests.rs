//! Whole runs: what is left, what comes back, and what is refused.

use super::*;
use crate::data::{Matrix, Task, Values, planted};
use crate::train::dense::{Head, Optimiser, Rates, Shape};
use std::path::Path;
use tamis::base::dims::Dims;
use tamis::network::gates::Signs;

fn planted(rows: usize) -> planted::Planted {
    planted::network(Dims::new(rows, 10, 3, 8), Signs::Positive, 2).unwrap()
}

fn options() -> ImpOptions {
    let shape = Shape::new(10, &[6, 4], 1, Head::Weights).unwrap();
    let usual = ImpOptions::new(shape, Task::Regression, 11);
    ImpOptions { epochs: 4, batch: 64, rewind: 1, rates: Rates::constant(0.01), ..usual }
}

fn train(options: &ImpOptions, keep: Option<&LevelFolder>) -> Result<Imp> {
    let planted = planted(300);
    let set = &Problem { data: planted.data, labels: planted.labels, task: Task::Regression };
    imp(set, Some(set), options, keep, &Stop::new(), |_| true)
}

fn count(mask: &[bool]) -> usize {
    mask.iter().filter(|&&kept| kept).count()
}

#[test]
fn rounds_drop_their_part_and_end_at_exactly_s() {
    let shape = Shape::new(10, &[10], 1, Head::Weights).unwrap();
    let counts = |nnz, part| {
        ImpOptions { part, ..ImpOptions::new(shape.clone(), Task::Regression, nnz) }.counts()
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
fn the_mask_only_shrinks_and_the_result_has_exactly_s() {
    for (optimiser, part) in
        [(Optimiser::Adam, 0.1), (Optimiser::Sgd { momentum: 0.9 }, 0.2), (Optimiser::Adam, 1.0)]
    {
        let options = ImpOptions { optimiser, part, rates: Rates::constant(0.003), ..options() };
        let folder = tempfile::tempdir().unwrap();
        let keep = LevelFolder { folder: folder.path().into(), resume: false, levels: true };
        let done = train(&options, Some(&keep)).unwrap();
        assert_eq!((count(&done.mask), done.levels.len()), (11, options.counts().len()));
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
    let run = |threads, keep: Option<&LevelFolder>| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| train(&ImpOptions { batch: 0, ..options() }, keep)).unwrap()
    };
    let one = run(1, None);
    let folder = tempfile::tempdir().unwrap();
    let keep = LevelFolder { folder: folder.path().join("new/run"), resume: true, levels: false };
    assert_eq!([run(3, None), run(2, Some(&keep))], [one.clone(), one]);
}

#[test]
fn a_run_goes_on_to_the_same_bits_from_every_level() {
    let options = options();
    let whole = train(&options, None).unwrap();
    let planted = planted(300);
    let set = &Problem { data: planted.data, labels: planted.labels, task: Task::Regression };
    let folder = tempfile::tempdir().unwrap();
    let keep = LevelFolder { folder: folder.path().into(), resume: true, levels: false };
    // Every call does a level and two epochs more, until all are done.
    let (mut calls, mut stopped) = (0, true);
    while stopped {
        let mut first = None;
        let part = imp(set, Some(set), &options, Some(&keep), &Stop::new(), |progress| {
            let first = *first.get_or_insert(progress.level);
            progress.level == first || progress.epoch % 3 != 0
        });
        let part = part.unwrap();
        assert_eq!(count(&part.mask), options.nnz);
        calls += 1;
        stopped = part.stopped;
        if !stopped {
            assert_eq!(part, whole);
        }
    }
    assert!(calls > 5, "{calls}");
    // A finished run is there at once.
    let again =
        imp(set, Some(set), &options, Some(&keep), &Stop::new(), |_| panic!("trained again"))
            .unwrap();
    assert_eq!(again, whole);
}

#[test]
fn other_settings_other_data_and_damaged_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let new = LevelFolder { folder: folder.path().into(), resume: false, levels: false };
    let keep = LevelFolder { resume: true, ..new.clone() };
    let whole = train(&options(), Some(&keep)).unwrap();
    let error = |options: &ImpOptions, keep| train(options, Some(keep)).unwrap_err().to_string();
    assert!(error(&options(), &new).contains("--resume"));
    for (name, other) in [
        ("seed", ImpOptions { seed: 1, ..options() }),
        ("nnz", ImpOptions { nnz: 12, ..options() }),
        ("rates", ImpOptions { rates: Rates::constant(0.1), ..options() }),
        (
            "hidden",
            ImpOptions { shape: Shape::new(10, &[4, 6], 1, Head::Weights).unwrap(), ..options() },
        ),
    ] {
        let error = error(&other, &keep);
        assert!(
            error.contains("other settings") && error.contains(&format!("expected: {name}")),
            "{error}"
        );
    }
    let mut planted = planted(300);
    planted.labels[7] += 1.0;
    let set = &Problem { data: planted.data, labels: planted.labels, task: Task::Regression };
    let other =
        imp(set, None, &options(), Some(&keep), &Stop::new(), |_| true).unwrap_err().to_string();
    assert!(other.contains("expected: data"), "{other}");
    let path = folder.path().join("imp.npz");
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(train(&options(), Some(&keep)).unwrap(), whole);
    // Every cut and every flip of a byte is refused or changes nothing, and never panics.
    for at in (0..bytes.len()).step_by(37) {
        let mut wrong = bytes.clone();
        wrong[at] ^= 0x10;
        std::fs::write(&path, &wrong).unwrap();
        if let Ok(found) = train(&options(), Some(&keep)) {
            assert_eq!(found, whole, "flip at {at}");
        }
        std::fs::write(&path, &bytes[..at]).unwrap();
        assert!(train(&options(), Some(&keep)).is_err(), "cut at {at}");
    }
}

#[test]
fn an_end_before_the_first_step_has_no_result_and_later_ones_have_s_weights() {
    let planted = planted(300);
    let set = &Problem { data: planted.data, labels: planted.labels, task: Task::Regression };
    let stop = Stop::new();
    stop.ask();
    assert!(imp(set, None, &options(), None, &stop, |_| true).unwrap_err().is_interrupted());
    for epochs in [1, 6] {
        let done = imp(set, None, &options(), None, &Stop::new(), |p| p.epoch < epochs).unwrap();
        assert_eq!((done.stopped, count(&done.mask)), (true, 11));
        assert_eq!(done.levels.len(), usize::from(epochs > 4));
    }
}

#[test]
fn weights_of_zero_survive_where_they_are_needed() {
    let options = ImpOptions {
        epochs: 1,
        rewind: 0,
        rates: Rates { rate: 1e-30, ..Rates::constant(1.0) },
        ..options()
    };
    let data = Matrix::new(4, 10, Values::U8(vec![0; 40])).unwrap();
    let stop = Stop::new();
    let problem = Problem { data, labels: vec![0.0; 4], task: Task::Regression };
    let mut run = Run::new(&problem, None, &options, &stop);
    run.weights.fill(0.0);
    run.weights[50] = -1.0;
    run.prune(11).unwrap();
    let kept: Vec<usize> = (0..run.mask.len()).filter(|&j| run.mask[j]).collect();
    assert_eq!(kept, [&(0..10).collect::<Vec<_>>()[..], &[50]].concat());
}

#[test]
fn steps_that_diverge_are_named() {
    let options = ImpOptions {
        optimiser: Optimiser::Sgd { momentum: 0.9 },
        rates: Rates::constant(f32::MAX),
        ..options()
    };
    let error = train(&options, None).unwrap_err().to_string();
    assert!(error.contains("diverged") && error.contains("--rate"), "{error}");
}

#[test]
fn sets_and_settings_out_of_bounds_are_refused() {
    let refused = |options: ImpOptions| train(&options, None).unwrap_err().to_string();
    assert!(refused(ImpOptions { nnz: 0, ..options() }).contains("--nnz 1 to 88"));
    assert!(refused(ImpOptions { nnz: 89, ..options() }).contains("--nnz 1 to 88"));
    assert!(refused(ImpOptions { part: 0.0, ..options() }).contains("--prune-part"));
    assert!(refused(ImpOptions { part: f64::NAN, ..options() }).contains("--prune-part"));
    assert!(refused(ImpOptions { rewind: 4, ..options() }).contains("--rewind 0 to 3"));
    let other = Shape::new(9, &[6], 1, Head::Weights).unwrap();
    assert!(refused(ImpOptions { shape: other, ..options() }).contains("columns"));
    let other = Shape::new(10, &[6], 2, Head::Weights).unwrap();
    assert!(refused(ImpOptions { shape: other.clone(), ..options() }).contains("labels"));
    assert!(
        refused(ImpOptions { shape: other, task: Task::Multiclass, ..options() })
            .contains("classes")
    );
}
