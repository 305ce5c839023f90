//! Searches that are ended and gone on with: the same bits and counters as without a break, and nothing but a whole checkpoint
//! of the same search is taken.

use std::fs;

use proptest::prelude::*;
use tamis::dims::Dims;
use tamis::gates::Signs;
use tamis::lm::{Params, Progress};
use tamis::rng::Rng;
use tamis_host::data::{Values, planted};
use tamis_host::operator::Stop;
use tamis_host::run::{self, Keep, Kept, Limits, Memory, Outcome, Problem, RecoverOptions, Size, Task};

/// Labels of one column with positive or any signs, of three columns, or of two layers; with noise, so that all stages come up, or without.
fn problem(kind: u64, seed: u64) -> (Problem, RecoverOptions) {
    let dims = Dims::new(300, 8, 3, 9);
    let second = (kind % 4 == 3).then_some(3);
    let (data, mut labels) = match kind % 3 {
        _ if second.is_some() => {
            planted::deep(300, 8, &[3, 3], 1, 9, seed).map(|made| (made.data, made.labels))
        }
        0 => planted::network(dims, Signs::Positive, seed).map(|made| (made.data, made.labels)),
        1 => planted::network(dims, Signs::Balanced, seed).map(|made| (made.data, made.labels)),
        _ => planted::factored(dims, 3, seed).map(|made| (made.data, made.labels)),
    }
    .unwrap();
    if kind.is_multiple_of(2) {
        let mut rng = Rng::new(seed, 99);
        labels.iter_mut().for_each(|y| *y += 0.1 * rng.normal());
    }
    if second.is_some() {
        labels.iter_mut().for_each(|y| *y = (*y + 0.01 * seed as f32 % 3.0).max(0.0));
    }
    let params = Params { seed, rows: 80, kicks: 2, steps: 120, random_births: 1, ..Params::DEFAULT };
    let validation = if kind.is_multiple_of(5) { 0.2 } else { 0.0 };
    let usual = RecoverOptions::new(3, Size::Nonzeros(9));
    let options = RecoverOptions { params, second, validation, checkpoints: true, threads: 1, ..usual };
    (Problem { data, labels, task: Task::Regression }, options)
}

/// All that must be the same, bit for bit.
fn bits(outcome: &Outcome) -> impl PartialEq + std::fmt::Debug + use<> {
    let report = &outcome.report;
    let search = report.search.unwrap();
    let counters = [report.steps, search.moves, search.tried, search.kicks, search.merges, search.flips];
    let losses =
        [Some(report.loss), search.validation_loss, Some(report.passes)].map(|x| x.map(f64::to_bits));
    (outcome.model.clone(), counters, losses, (search.exact, search.early, report.limit))
}

fn recover(problem: &Problem, options: &RecoverOptions) -> Outcome {
    run::recover(problem.clone(), options, &Stop::new(), |_| true).unwrap()
}

/// Runs from where the file is, until `steps` more steps are done or the search is.
fn part(problem: &Problem, options: &RecoverOptions, keep: &mut Keep, steps: u32) -> Outcome {
    let kept = keep.load().unwrap();
    let mut left = steps;
    let observe = |progress: &Progress<'_>| {
        keep.see(progress).unwrap();
        left = left.saturating_sub(u32::from(progress.checkpoint.is_none()));
        left > 0
    };
    let outcome = match &kept {
        Some(kept) => run::resume(problem.clone(), options, kept, &Stop::new(), observe),
        None => run::recover(problem.clone(), options, &Stop::new(), observe),
    };
    keep.flush().unwrap();
    outcome.unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_search_in_parts_gives_what_it_gives_in_one(kind in 0_u64..30, seed in any::<u64>(), steps in 1_u32..60) {
        let (problem, options) = problem(kind, seed);
        let whole = recover(&problem, &options);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("search");
        let mut ends = Vec::new();
        let rest = loop {
            // A part that ends within a stage begins it again: each is longer than the last.
            let mut keep = Keep::new(&path, &problem, &options).unwrap();
            let outcome = part(&problem, &options, &mut keep, steps * (ends.len() as u32 + 1));
            ends.push(outcome.report.resumed_steps);
            if !outcome.report.stopped {
                break outcome;
            }
        };
        prop_assert_eq!(bits(&rest), bits(&whole));
        prop_assert!(ends.is_sorted() && ends[0] == 0, "{:?}", ends);
        // The file stays, and gives the same again.
        let mut keep = Keep::new(&path, &problem, &options).unwrap();
        prop_assert_eq!(bits(&part(&problem, &options, &mut keep, u32::MAX)), bits(&whole));
    }
}

#[test]
fn a_limit_on_passes_counts_all_parts_and_one_on_time_each() {
    let (problem, options) = problem(0, 5);
    let whole = recover(&problem, &options);
    let half = whole.report.passes / 2.0;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("search");
    let limited = |passes| RecoverOptions { limits: Limits { passes: Some(passes), time: None }, ..options };
    let first = part(&problem, &limited(half), &mut Keep::new(&path, &problem, &options).unwrap(), u32::MAX);
    assert_eq!(first.report.limit, Some("passes"));
    // Limits are no setting of the search; neither is the number of threads.
    let mut keep =
        Keep::new(&path, &problem, &RecoverOptions { threads: 2, ..limited(whole.report.passes) }).unwrap();
    let second = part(&problem, &limited(2.0 * whole.report.passes), &mut keep, u32::MAX);
    assert!(second.report.resumed_steps > 0);
    assert_eq!(bits(&second), bits(&whole));
    // All parts together have made these passes: nothing is left for a third one, which ends at once.
    let third = part(&problem, &limited(half), &mut Keep::new(&path, &problem, &options).unwrap(), u32::MAX);
    assert_eq!(third.report.limit, Some("passes"));
    assert!(third.report.steps <= whole.report.steps, "{:?}", third.report);
}

/// A checkpoint as it is stored, its keeper and a file for it; the longest that there is.
fn stored(kind: u64) -> (Vec<u8>, Keep, tempfile::TempDir) {
    let (problem, options) = problem(kind, 1);
    let folder = tempfile::tempdir().unwrap();
    let mut keep = Keep::new(folder.path().join("search"), &problem, &options).unwrap();
    let mut longest = Vec::new();
    run::recover(problem, &options, &Stop::new(), |progress| {
        keep.see(progress).unwrap();
        if keep.bytes().len() > longest.len() {
            longest = keep.bytes().to_vec();
        }
        true
    })
    .unwrap();
    (longest, keep, folder)
}

#[test]
fn what_is_written_is_what_is_read() {
    for kind in 0..3 {
        let (bytes, mut keep, folder) = stored(kind);
        let path = folder.path().join("search");
        assert!(keep.parse(&bytes).is_ok() && !path.exists());
        assert!(keep.load().unwrap().is_none());
        assert!(keep.flush().unwrap() && !keep.flush().unwrap());
        let stored = keep.bytes().to_vec();
        assert_eq!(fs::read(&path).unwrap(), stored);
        assert!(keep.load().unwrap().is_some_and(|kept: Kept| kept.steps() > 0));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[test]
fn every_cut_and_every_changed_bit_is_refused() {
    for kind in [1, 2] {
        let (bytes, keep, _folder) = stored(kind);
        for len in 0..bytes.len() {
            let error = keep.parse(&bytes[..len]).unwrap_err().to_string();
            assert!(error.contains("damaged") || (len < 8 && error.contains("not a checkpoint")), "{error}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(keep.parse(&longer).unwrap_err().to_string().contains("damaged"));
        for bit in 0..8 * bytes.len() {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let error = keep.parse(&changed).unwrap_err().to_string();
            let expected = match bit / 8 {
                ..8 => "not a checkpoint",
                8..12 => "version",
                _ => "damaged",
            };
            assert!(error.contains(expected) && error.contains("help: "), "bit {bit}: {error}");
        }
    }
}

/// Terms of a search: the common ones and its own.
const TERMS: usize = 27;

/// Where the numbers and the counts of a checkpoint begin.
fn places(keep: &Keep, bytes: &[u8]) -> (usize, usize) {
    assert_eq!(keep.parse(bytes).unwrap_err().to_string().lines().count(), 4);
    let counts = 16 + 8 * TERMS + 4 * tamis::lm::State::WORDS;
    (16 + 8 * TERMS, counts)
}

/// Bytes whose checksum is right and whose content is not.
#[test]
fn no_count_index_or_number_is_believed() {
    for kind in [1, 2] {
        let (bytes, keep, _folder) = stored(kind);
        let (state, counts) = places(&keep, &bytes[..bytes.len() - 1]);
        let refused = |at: usize, word: u32| {
            let mut changed = bytes.clone();
            changed[at..at + 4].copy_from_slice(&word.to_le_bytes());
            let sum = Keep::checksum(&changed);
            changed[12..16].copy_from_slice(&sum.to_le_bytes());
            let error = keep.parse(&changed).unwrap_err().to_string();
            assert!(error.contains("damaged"), "{at}, {word}: {error}");
        };
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        refused(state, 10); // a stage
        refused(state + 4 * 4, f32::NAN.to_bits()); // the damping
        for count in (counts..counts + 24).step_by(4) {
            for other in [u32::MAX, u32::MAX / 8, 1 << 20, word(count) + 1] {
                refused(count, other);
            }
        }
        let entries = counts + 24;
        assert!(word(counts) > 1);
        refused(entries, u32::MAX); // an index outside
        refused(entries, word(entries + 4)); // one twice
        refused(entries + 4 * word(counts) as usize, f32::INFINITY.to_bits()); // a weight
    }
}

#[test]
fn a_search_on_other_data_or_with_other_settings_is_told_what_differs() {
    let (bytes, _, _folder) = stored(0);
    let parse = |change: &dyn Fn(&mut Problem, &mut RecoverOptions)| {
        let (mut problem, mut options) = problem(0, 1);
        change(&mut problem, &mut options);
        Keep::new("none", &problem, &options).unwrap().parse(&bytes).map(|_| ())
    };
    parse(&|_, _| ()).unwrap();
    parse(&|_, options| options.threads = 7).unwrap();
    let refused = |what: &str, change: &dyn Fn(&mut Problem, &mut RecoverOptions)| {
        let error = parse(change).unwrap_err().to_string();
        assert!(error.contains("other data or") && error.contains(&format!("expected: {what}")), "{error}");
    };
    refused("checksum of the samples", &|problem, _| {
        let Values::F32(values) = &mut problem.data.values else { unreachable!() };
        values.swap(0, 8);
    });
    refused("checksum of the labels", &|problem, _| problem.labels.swap(3, 4));
    refused("rows", &|problem, _| {
        let Values::F32(values) = &mut problem.data.values else { unreachable!() };
        values.truncate(299 * 8);
        problem.labels.truncate(299);
        problem.data.rows = 299;
    });
    refused("--task", &|problem, _| {
        problem.task = Task::Binary;
        problem.labels.iter_mut().for_each(|y| *y = f32::from(u8::from(*y > 0.0)));
    });
    refused("--hidden", &|_, options| options.hidden = 4);
    refused("--nnz", &|_, options| options.size = Size::Nonzeros(10));
    refused("--seed", &|_, options| options.params.seed = 2);
    refused("--signs", &|_, options| options.signs = Some(Signs::Balanced));
    refused("rows held out", &|_, options| options.validation = 0.3);
    refused("--patience", &|_, options| options.params.validation_patience = 1);
    refused("--search-rows", &|_, options| options.params.rows = 81);
    refused("--kicks", &|_, options| options.params.kicks = 3);
    refused("--idle-kicks", &|_, options| options.params.patience = 5);
    refused("steps", &|_, options| options.params.steps = 121);
    refused("loss of an exact fit", &|_, options| options.params.exact = 1e-10);
    refused("random births", &|_, options| options.params.random_births = 2);
    refused("last steps", &|_, options| options.params.final_steps = 1);
    refused("polishing", &|_, options| options.params.polish = 1);
    refused("spare", &|_, options| options.params.spare = 1);
    refused("products", &|_, options| options.params.products = 1);
    refused("births", &|_, options| options.params.births = false);
    refused("tidying", &|_, options| options.params.tidy = false);
    refused("neurons of a panel", &|_, options| options.memory = Memory::Panel(1));
}

#[test]
fn the_plan_counts_two_of_the_longest_checkpoints() {
    for kind in 0..3 {
        let (problem, options) = problem(kind, 1);
        let plan = |checkpoints| {
            let options = RecoverOptions { checkpoints, ..options };
            recover(&problem, &options).report.plan.total_bytes() as usize
        };
        let most = (plan(true) - plan(false)) / 2;
        let (longest, ..) = stored(kind);
        assert!(longest.len() <= most && longest.len() * 2 > most, "{} of {most}", longest.len());
    }
}
