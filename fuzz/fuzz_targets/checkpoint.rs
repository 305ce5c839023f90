//! Any bytes as a checkpoint of a search: reading them never panics, and a search resumes from what
//! is read, to a model within its bounds.
//!
//! The checksum and the terms of the search refuse nearly every changed input, so the same bytes
//! are tried again with these corrected.
#![no_main]

use std::ops::ControlFlow;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tamis::base::dims::Dims;
use tamis::learn::lm::Params;
use tamis::network::gates::Signs;
use tamis_host::data::planted;
use tamis_host::data::{Problem, Task};
use tamis_host::operator::Stop;
use tamis_host::train::{
    CheckpointFile, CheckpointOptions, LmOptions, Start, checkpoint_file, train_with,
};
use tamis_host::{Budget, Options, Recipe};

/// The longest input; what fits the searches is shorter.
const MOST: usize = 4096;
/// Calls of the observer before a resumed search is ended.
const CALLS: u32 = 6;

/// A search, its checkpoint file, and the bytes of a checkpoint up to where its state begins.
struct Search {
    problem: Problem,
    options: Options,
    file: CheckpointFile,
    head: Vec<u8>,
}

/// Bytes of magic, version, checksum and terms.
const HEAD: usize = 16 + 8 * 26;

static SEARCHES: LazyLock<[Search; 3]> = LazyLock::new(|| {
    let dims = Dims::new(12, 3, 2, 4);
    let problem = |data, labels| Problem { data, labels, task: Task::Regression };
    let one = |signs| {
        let made = planted::network(dims, signs, 1).unwrap();
        problem(made.data, made.labels)
    };
    let several = planted::factored(dims, 2, 1).unwrap();
    let several = problem(several.data, several.labels);
    let free = LmOptions { signs: Some(Signs::Free), validation: 0.25, ..lm_options() };
    [
        search(one(Signs::Positive), lm_options()),
        search(one(Signs::Balanced), free),
        search(several, lm_options()),
    ]
});

fn lm_options() -> LmOptions {
    let params = Params { perturbations: 2, steps: 30, ..Params::DEFAULT };
    LmOptions { params, ..LmOptions::default() }
}

fn search(problem: Problem, lm: LmOptions) -> Search {
    let options = Options::new(Budget::nnz(4));
    let options = Options { hidden: vec![2], recipe: Recipe::Lm(lm), threads: 1, ..options };
    let path = std::env::temp_dir().join(format!("tamis-fuzz-{}", std::process::id()));
    let saving = Options { checkpoint: Some(CheckpointOptions::resume(&path)), ..options.clone() };
    tamis_host::train(&problem, saving).unwrap();
    let whole = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let file = checkpoint_file(&path, &problem, &options).unwrap();
    file.parse(&whole).unwrap();
    let head = whole[..HEAD].to_vec();
    Search { problem, options, file, head }
}

fuzz_target!(|bytes: &[u8]| {
    let mut corrected = bytes[..bytes.len().min(MOST)].to_vec();
    for search in &*SEARCHES {
        search.check(bytes);
        if corrected.len() >= HEAD {
            corrected[..HEAD].copy_from_slice(&search.head);
            let sum = CheckpointFile::checksum(&corrected);
            corrected[12..16].copy_from_slice(&sum.to_le_bytes());
            search.check(&corrected);
        }
    }
});

impl Search {
    fn check(&self, bytes: &[u8]) {
        let Ok(checkpoint) = self.file.parse(bytes) else { return };
        let mut left = CALLS;
        let outcome = train_with(
            self.problem.clone(),
            &self.options,
            Start::Checkpoint(&checkpoint),
            &Stop::new(),
            |_| {
                // Steps after its end are told too.
                left = left.saturating_sub(1);
                if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            },
        );
        // Weights beyond the range of floats are an error, and so is a number of rows that there
        // are not.
        let Ok(outcome) = outcome else { return };
        assert!(
            outcome.report.nnz <= 4 && outcome.report.live.first() <= 2,
            "{:?}",
            outcome.report
        );
    }
}
