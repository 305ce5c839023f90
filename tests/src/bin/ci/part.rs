//! The parts of `cargo ci` as data, and what a part may end in.

use crate::{checks, costs, deploy, firmware, qemu, tools};

/// One part.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Runs when no part is named.
    pub(crate) default: bool,
    pub(crate) run: fn(&Context) -> Outcome,
}

/// What the command line says beside the parts' names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    /// The parts were asked for by name, so their tools may be installed even if that takes minutes.
    pub(crate) named: bool,
    /// Seconds that each fuzz target runs.
    pub(crate) fuzz_seconds: u64,
}

/// A note for the table, or why there is no success.
pub(crate) type Outcome = Result<String, Stop>;

/// Why a part did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It ran and something is wrong.
    Failed(String),
    /// It could not run for want of something that can be installed.
    Missing(String),
    /// It did not run, and that is as intended.
    Excused(String),
}

/// What the closing line counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passed,
    Failed,
    Skipped,
}

impl Verdict {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::Skipped => "skipped",
        }
    }
}

const fn part(name: &'static str, about: &'static str, run: fn(&Context) -> Outcome) -> Part {
    Part { name, about, default: true, run }
}

/// Every part, cheapest first.
pub(crate) const PARTS: &[Part] = &[
    part("fmt", "formatting", checks::fmt),
    part("clippy", "lints, warnings denied", checks::clippy),
    part("docs", "documentation builds, warnings denied", checks::docs),
    part("features", "the core with each of its features", checks::features),
    part("host", "unit, integration and doc tests", checks::host),
    part("msrv", "the workspace builds with its minimum Rust version", checks::msrv),
    part("qemu", "the conformance cases on emulated microcontrollers", qemu::run),
    part("deploy", "the deploy example's firmware predicts as the host does", deploy::run),
    part(
        "firmware",
        "the example firmware of four chips lints and builds, within its flash and RAM",
        firmware::run,
    ),
    part("gpu", "the GPU backend's suite", checks::gpu),
    part("deny", "bans, licenses and sources of dependencies", tools::deny),
    Part {
        name: "costs",
        about: "measures what models take on each board, and writes core/src/price/table.rs",
        default: false,
        run: costs::run,
    },
    Part {
        name: "estimates",
        about: "what models take on each board against what is estimated, as in qemu",
        default: false,
        run: costs::estimates,
    },
    Part {
        name: "fuzz",
        about: "every fuzz target for the given seconds, 60 by default",
        default: false,
        run: tools::fuzz,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_no_numbers() {
        for (i, part) in PARTS.iter().enumerate() {
            assert!(part.name.parse::<u64>().is_err());
            assert!(PARTS[..i].iter().all(|other| other.name != part.name), "{}", part.name);
        }
    }
}
