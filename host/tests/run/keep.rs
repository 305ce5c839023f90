//! Searches that are ended and gone on with: the same bits and counters as without a break, and
//! nothing but a whole checkpoint of the same search is taken.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use tamis::base::dims::Dims;
use tamis::base::rng::Rng;
use tamis::learn::lm::Params;
use tamis::network::gates::Signs;
use tamis_host::base::Limits;
use tamis_host::data::{Problem, Task};
use tamis_host::data::{Values, planted};
use tamis_host::operator::Stop;
use tamis_host::train::{
    Checkpoint, CheckpointFile, CheckpointOptions, LmOptions, Memory, Start, checkpoint_file,
    train_with,
};
use tamis_host::{Budget, Options, Recipe, Trained};

/// Labels of one column with positive or any signs, of three columns, or of two layers; with noise,
/// so that all stages come up, or without.
fn problem(kind: u64, seed: u64) -> (Problem, Options) {
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
    let params =
        Params { rows: 80, perturbations: 2, steps: 120, random_neurons: 1, ..Params::DEFAULT };
    let validation = if kind.is_multiple_of(5) { 0.2 } else { 0.0 };
    let recipe = Recipe::Lm(LmOptions { params, validation, ..LmOptions::default() });
    let hidden = [Some(3), second].into_iter().flatten().collect();
    let options = Options { hidden, recipe, seed, threads: 1, ..Options::new(Budget::nnz(9)) };
    (Problem { data, labels, task: Task::Regression }, options)
}

/// All that must be the same, bit for bit.
fn bits(outcome: &Trained) -> impl PartialEq + std::fmt::Debug + use<> {
    let report = &outcome.report;
    let search = report.search().unwrap();
    let counters =
        [report.epochs, search.moves, search.tried, search.kicks, search.merges, search.flips];
    let losses = [Some(report.loss), search.validation_loss, Some(report.passes)]
        .map(|x| x.map(f64::to_bits));
    (outcome.model.bytes().to_vec(), counters, losses, (search.exact, search.early, report.limit))
}

fn recover(problem: &Problem, options: &Options) -> Trained {
    tamis_host::train(problem, options.clone()).unwrap()
}

/// The same with checkpoints in a file, all of them written.
fn kept(options: &Options, path: &Path) -> Options {
    let checkpoint = CheckpointOptions { every: Duration::ZERO, ..CheckpointOptions::resume(path) };
    Options { checkpoint: Some(checkpoint), ..options.clone() }
}

/// Runs from where the file is, until `steps` more steps are done or the search is.
fn part(problem: &Problem, options: &Options, path: &Path, steps: u32) -> Trained {
    let mut left = steps;
    let outcome =
        train_with(problem.clone(), &kept(options, path), Start::Zero, &Stop::new(), |_| {
            left = left.saturating_sub(1);
            if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
    outcome.unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn interrupted_search_gives_the_uninterrupted_result(kind in 0_u64..30, seed in any::<u64>(), steps in 1_u32..60) {
        let (problem, options) = problem(kind, seed);
        let whole = recover(&problem, &options);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("search");
        let mut ends = Vec::new();
        let rest = loop {
            // A part that ends within a stage begins it again: each is longer than the last.
            let outcome = part(&problem, &options, &path, steps * (ends.len() as u32 + 1));
            ends.push(outcome.report.resumed_steps);
            if !outcome.report.stopped {
                break outcome;
            }
        };
        prop_assert_eq!(bits(&rest), bits(&whole));
        prop_assert!(ends.is_sorted() && ends[0] == 0, "{:?}", ends);
        // The file stays, and gives the same again.
        prop_assert_eq!(bits(&part(&problem, &options, &path, u32::MAX)), bits(&whole));
    }
}

#[test]
fn pass_limit_spans_resumes_time_limit_is_each() {
    let (problem, options) = problem(0, 5);
    let whole = recover(&problem, &options);
    let half = whole.report.passes / 2.0;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("search");
    let limited = |passes| {
        let limits = Limits { passes: Some(passes), time: None };
        Options { limits, ..options.clone() }
    };
    let first = part(&problem, &limited(half), &path, u32::MAX);
    assert_eq!(first.report.limit, Some("passes"));
    // Limits are no setting of the search; neither is the number of threads.
    let more = Options { threads: 2, ..limited(2.0 * whole.report.passes) };
    let second = part(&problem, &more, &path, u32::MAX);
    assert!(second.report.resumed_steps > 0);
    assert_eq!(bits(&second), bits(&whole));
    // All parts together have made these passes: nothing is left for a third one, which ends at
    // once.
    let third = part(&problem, &limited(half), &path, u32::MAX);
    assert_eq!(third.report.limit, Some("passes"));
    assert!(third.report.steps <= whole.report.steps, "{:?}", third.report);
}

/// A checkpoint as it is stored, its reader and a folder for it; the longest that there is.
fn stored(kind: u64) -> (Vec<u8>, CheckpointFile, tempfile::TempDir) {
    let (problem, options) = problem(kind, 1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("search");
    let file = checkpoint_file(&path, &problem, &options).unwrap();
    let mut longest = Vec::new();
    train_with(problem, &kept(&options, &path), Start::Zero, &Stop::new(), |_| {
        let bytes = fs::read(&path).unwrap_or_default();
        if bytes.len() > longest.len() {
            longest = bytes;
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    (longest, file, folder)
}

#[test]
fn what_is_written_is_what_is_read() {
    for kind in 0..3 {
        let (bytes, file, folder) = stored(kind);
        assert!(file.parse(&bytes).is_ok());
        assert!(file.load().unwrap().is_some_and(|kept: Checkpoint| kept.steps() > 0));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        fs::remove_file(folder.path().join("search")).unwrap();
        assert!(file.load().unwrap().is_none());
    }
}

#[test]
fn every_cut_and_every_changed_bit_is_refused() {
    for kind in [1, 2] {
        let (bytes, keep, _folder) = stored(kind);
        for len in 0..bytes.len() {
            let error = keep.parse(&bytes[..len]).unwrap_err().to_string();
            assert!(
                error.contains("damaged") || (len < 8 && error.contains("not a checkpoint")),
                "{error}"
            );
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
const TERMS: usize = 28;

/// Where the numbers and the counts of a checkpoint begin.
fn places(keep: &CheckpointFile, bytes: &[u8]) -> (usize, usize) {
    assert_eq!(keep.parse(bytes).unwrap_err().to_string().lines().count(), 4);
    let counts = 16 + 8 * TERMS + 4 * tamis::learn::lm::State::WORDS;
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
            let sum = CheckpointFile::checksum(&changed);
            changed[12..16].copy_from_slice(&sum.to_le_bytes());
            let error = keep.parse(&changed).unwrap_err().to_string();
            assert!(error.contains("damaged"), "{at}, {word}: {error}");
        };
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        refused(state, 13); // a stage
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
fn search_checkpoint_of_other_settings_names_the_difference() {
    let (bytes, _, _folder) = stored(0);
    let parse = |change: &dyn Fn(&mut Problem, &mut Options)| {
        let (mut problem, mut options) = problem(0, 1);
        change(&mut problem, &mut options);
        checkpoint_file("none", &problem, &options).unwrap().parse(&bytes).map(|_| ())
    };
    parse(&|_, _| ()).unwrap();
    parse(&|_, options| options.threads = 7).unwrap();
    let refused = |what: &str, change: &dyn Fn(&mut Problem, &mut Options)| {
        let error = parse(change).unwrap_err().to_string();
        assert!(
            error.contains("other data or") && error.contains(&format!("expected: {what}")),
            "{error}"
        );
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
    refused("--hidden", &|_, options| options.hidden = vec![4]);
    refused("--nnz", &|_, options| options.budget = Budget::nnz(10));
    refused("--seed", &|_, options| options.seed = 2);
    let changed = |what: &str, change: &dyn Fn(&mut LmOptions)| {
        refused(what, &|_, options| {
            let Recipe::Lm(lm) = &mut options.recipe else { unreachable!() };
            change(lm);
        });
    };
    changed("--signs", &|lm| lm.signs = Some(Signs::Balanced));
    changed("rows of the validation split", &|lm| lm.validation = 0.3);
    changed("--patience", &|lm| lm.params.validation_patience = 1);
    changed("--search-rows", &|lm| lm.params.rows = 81);
    changed("--kicks", &|lm| lm.params.perturbations = 3);
    changed("--idle-kicks", &|lm| lm.params.patience = 5);
    changed("steps", &|lm| lm.params.steps = 121);
    changed("loss of an exact fit", &|lm| lm.params.exact = 1e-10);
    changed("random neurons", &|lm| lm.params.random_neurons = 2);
    changed("last steps", &|lm| lm.params.final_steps = 1);
    changed("polishing", &|lm| lm.params.polish = 1);
    changed("spare", &|lm| lm.params.spare = 1);
    changed("products", &|lm| lm.params.products = 1);
    refused("neurons of a panel", &|_, options| options.memory = Memory::Panel(1));
}

#[test]
fn the_plan_counts_two_of_the_longest_checkpoints() {
    for kind in 0..3 {
        let (problem, options) = problem(kind, 1);
        let plan = |options: &Options| recover(&problem, options).report.total_bytes() as usize;
        let folder = tempfile::tempdir().unwrap();
        let most = (plan(&kept(&options, &folder.path().join("search"))) - plan(&options)) / 2;
        let (longest, ..) = stored(kind);
        assert!(longest.len() <= most && longest.len() * 2 > most, "{} of {most}", longest.len());
    }
}
