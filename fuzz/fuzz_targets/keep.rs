//! Any bytes as a checkpoint of a search: reading them never panics; what is read is gone on from, to a model within its bounds.
//!
//! A checksum and the terms of the search stop nearly every changed input at the door, so the same bytes are tried again with
//! these put right.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tamis::dims::Dims;
use tamis::gates::Signs;
use tamis::lm::Params;
use tamis_host::data::planted;
use tamis_host::operator::Stop;
use tamis_host::run::{self, Keep, Problem, RecoverOptions, Size, Task};

/// The longest input; what fits the searches is shorter.
const MOST: usize = 4096;
/// Calls of the observer before a search that goes on is ended.
const CALLS: u32 = 6;

/// A search, its keeper, and the bytes of a whole checkpoint of it up to where its state begins.
struct Search {
    problem: Problem,
    options: RecoverOptions,
    keep: Keep,
    head: Vec<u8>,
}

/// Bytes of magic, version, checksum and terms.
const HEAD: usize = 16 + 8 * 26;

static SEARCHES: LazyLock<[Search; 3]> = LazyLock::new(|| {
    let dims = Dims::new(12, 3, 2, 4);
    let one = |signs| planted::network(dims, signs, 1).map(|made| (made.data, made.labels)).unwrap();
    let several = planted::factored(dims, 2, 1).map(|made| (made.data, made.labels)).unwrap();
    let free = RecoverOptions { signs: Some(Signs::Free), validation: 0.25, ..usual() };
    [search(one(Signs::Positive), usual()), search(one(Signs::Balanced), free), search(several, usual())]
});

fn usual() -> RecoverOptions {
    let params = Params { kicks: 2, steps: 30, ..Params::DEFAULT };
    RecoverOptions { params, threads: 1, ..RecoverOptions::new(2, Size::Nonzeros(4)) }
}

fn search((data, labels): (tamis_host::data::Matrix, Vec<f32>), options: RecoverOptions) -> Search {
    let problem = Problem { data, labels, task: Task::Regression };
    let mut keep = Keep::new("never written", &problem, &options).unwrap();
    run::recover(problem.clone(), &options, &Stop::new(), |progress| keep.see(progress).is_ok()).unwrap();
    let whole = keep.bytes().to_vec();
    keep.parse(&whole).unwrap();
    let head = whole[..HEAD].to_vec();
    Search { problem, options, keep, head }
}

fuzz_target!(|bytes: &[u8]| {
    let mut mended = bytes[..bytes.len().min(MOST)].to_vec();
    for search in &*SEARCHES {
        search.check(bytes);
        if mended.len() >= HEAD {
            mended[..HEAD].copy_from_slice(&search.head);
            let sum = Keep::checksum(&mended);
            mended[12..16].copy_from_slice(&sum.to_le_bytes());
            search.check(&mended);
        }
    }
});

impl Search {
    fn check(&self, bytes: &[u8]) {
        let Ok(kept) = self.keep.parse(bytes) else { return };
        let mut left = CALLS;
        let outcome = run::resume(self.problem.clone(), &self.options, &kept, &Stop::new(), |_| {
            // Steps after its end are told too.
            left = left.saturating_sub(1);
            left > 0
        });
        // Weights beyond the range of floats are an error, and so is a number of rows that there are not.
        let Ok(outcome) = outcome else { return };
        assert!(outcome.report.nnz <= 4 && outcome.report.live <= 2, "{:?}", outcome.report);
    }
}
