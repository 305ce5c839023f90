//! What a part of `cargo ci` is, and what it may end in.

/// One part.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) runs: Runs,
}

/// When a part runs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Runs {
    /// When it is named, and when none is.
    Always(Run),
    /// As `Always`, at the same time as those listed behind it: for one that shares no folder with
    /// them.
    Beside(Run),
    /// Only when it is named.
    WhenNamed(Run),
}

pub(crate) type Run = fn(&Context) -> Outcome;

/// What the command line says beside the parts' names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    /// The parts were asked for by name, so their tools may be installed even if that takes
    /// minutes.
    pub(crate) named: bool,
    /// Seconds that each fuzz target runs.
    pub(crate) fuzz_seconds: u64,
}

/// What a part that passed says, or why there is no success.
pub(crate) type Outcome = Result<Report, Stop>;

/// A note for the table, and checks that did not run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) note: String,
    pub(crate) skipped: Vec<Skipped>,
}

impl From<String> for Report {
    fn from(note: String) -> Self {
        Self { note, skipped: Vec::new() }
    }
}

/// Checks of a part that did not run, for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skipped {
    pub(crate) count: usize,
    pub(crate) why: String,
    /// What is missing can be installed.
    pub(crate) installable: bool,
}

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

impl Stop {
    pub(crate) fn why(&self) -> &str {
        let (Self::Failed(why) | Self::Missing(why) | Self::Excused(why)) = self;
        why
    }
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
