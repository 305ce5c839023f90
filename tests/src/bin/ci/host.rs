//! The tests of the workspace. Those that need more than Rust are `#[ignore]`d with what they need;
//! they run where it is at hand, and are counted where it is not.

use crate::checks::cargo;
use crate::command::{Cmd, each};
use crate::needs::{self, Found};
use crate::part::{Context, Outcome, Report, Skipped, Stop};
use std::collections::BTreeMap;

/// What the test runner said.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) passed: usize,
    /// Names of ignored tests by the reason.
    ignored: BTreeMap<String, Vec<String>>,
}

impl Seen {
    /// Runs tests, and reads what their runner prints.
    pub(crate) fn of(command: Cmd) -> Result<Self, Stop> {
        let mut seen = Self::default();
        command.lines(|line| seen.read(line))?;
        Ok(seen)
    }

    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        for (reason, names) in other.ignored {
            self.ignored.entry(reason).or_default().extend(names);
        }
    }

    fn read(&mut self, line: &str) {
        if let Some((name, reason)) = ignored(line) {
            self.ignored.entry(reason.to_owned()).or_default().push(name.to_owned());
        } else if let Some(passed) = passed(line) {
            self.passed += passed;
        }
    }
}

/// All tests, as groups that run at once: each of them alone leaves processors idle at its end, and
/// programs that count memory have a single test. Whatever a program is called, one group has it.
const GROUPS: [&str; 4] = ["--test a*", "--test [!a]*", "--lib --bins", "--doc"];

/// What they are of. The tests of `tamis-gpu` need a device: `cargo ci gpu`.
const TESTS: &str = "test --workspace --exclude tamis-gpu";

pub(crate) fn run(_: &Context) -> Outcome {
    cargo(TESTS).words("--no-run").run()?;
    let mut seen = Seen::default();
    for group in each(&GROUPS, |group| Seen::of(cargo(TESTS).words(group))) {
        seen.add(group?);
    }
    let mut skipped = Vec::new();
    let (mut names, mut variables) = (Vec::new(), Vec::new());
    for (reason, tests) in &seen.ignored {
        match needs::find(reason) {
            Found::Here(more) => {
                names.extend(tests);
                variables.extend(more);
            }
            Found::Missing { why, installable } => {
                skipped.push(Skipped { count: tests.len(), why, installable });
            }
        }
    }
    if !names.is_empty() {
        let command = cargo(TESTS).words("--tests -- --ignored --exact").args(&names);
        let command =
            variables.iter().fold(command, |command, (name, value)| command.env(name, value));
        let more = Seen::of(command)?;
        if more.passed != names.len() {
            return Err(Stop::Failed(format!(
                "{} of {} ignored tests ran",
                more.passed,
                names.len()
            )));
        }
        seen.passed += more.passed;
    }
    Ok(Report { note: format!("{} tests", seen.passed), skipped })
}

/// Name and reason of a test that was ignored: `test NAME ... ignored, REASON`.
fn ignored(line: &str) -> Option<(&str, &str)> {
    let (name, result) = line.strip_prefix("test ")?.split_once(" ... ignored")?;
    Some((name, result.strip_prefix(", ").unwrap_or("it is ignored, without a reason")))
}

/// Tests of one program that passed: `test result: ok. N passed; …`.
fn passed(line: &str) -> Option<usize> {
    line.strip_prefix("test result: ok. ")?.split_once(" passed")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "\
running 4 tests
test files::mnist ... ignored, needs MNIST
test files::names_are_read ... ok
test errors::full_disk ... ignored
test files::other ... ignored, needs MNIST

test result: ok. 1 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out; finished in 0.30s

running 2 tests
test a ... ok
test b ... ok

test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.01s
";

    #[test]
    fn ignored_tests_are_parsed_from_runner_output() {
        let mut seen = Seen::default();
        PRINTED.lines().for_each(|line| seen.read(line));
        assert_eq!(seen.passed, 3);
        let reasons: Vec<_> =
            seen.ignored.iter().map(|(reason, names)| (&**reason, names.len())).collect();
        assert_eq!(reasons, [("it is ignored, without a reason", 1), ("needs MNIST", 2)]);
        assert_eq!(seen.ignored["needs MNIST"], ["files::mnist", "files::other"]);
    }
}
