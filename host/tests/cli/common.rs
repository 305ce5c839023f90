//! Runs the binary and looks at what it leaves.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// The binary, to be run in `folder`.
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tamis"));
    command.current_dir(folder).args(arguments);
    command
}

pub(crate) fn run(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

/// Runs a line, split at spaces, that must work; its standard output.
pub(crate) fn ok(folder: &Path, line: &str) -> String {
    let output = run(folder, &line.split_whitespace().collect::<Vec<_>>());
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{line}\n{out}{err}");
    // But for what is worse than the obvious.
    let loud = [
        "warning: the model is no better than ",
        "warning: on rows that were left out ",
        "warning: the outputs are far from ",
    ];
    let said = err.lines().filter(|line| !loud.iter().any(|loud| line.starts_with(loud)));
    assert_eq!(said.count(), 0, "{line}: nothing on standard error where it is no terminal\n{err}");
    out
}

/// Runs a line with `--json` that must work: the one object that it prints.
pub(crate) fn json(folder: &Path, line: &str) -> Value {
    let out = ok(folder, &format!("{line} --json"));
    assert_eq!(out.lines().count(), 1, "{out}");
    let value: Value = serde_json::from_str(&out).unwrap();
    assert!(value.is_object());
    value
}

/// Runs a line that must fail with one clear error, exit code 1, and leave `folder` as it was; the
/// error.
pub(crate) fn fails(folder: &Path, line: &str) -> String {
    ends_with(folder, line, 1)
}

/// Runs a line of settings that do not go together, exit code 2; the one clear error.
pub(crate) fn misuses(folder: &Path, line: &str) -> String {
    ends_with(folder, line, 2)
}

fn ends_with(folder: &Path, line: &str, code: i32) -> String {
    let before = listing(folder);
    let output = run(folder, &line.split_whitespace().collect::<Vec<_>>());
    let error = error_of(line, &output, code);
    assert_eq!(listing(folder), before, "{line}: something was left or changed");
    error
}

/// The one clear error that a line has failed with, exit code 1.
pub(crate) fn refusal(line: &str, output: &Output) -> String {
    error_of(line, output, 1)
}

fn error_of(line: &str, output: &Output, code: i32) -> String {
    let (out, err) = texts(output);
    assert_eq!(output.status.code(), Some(code), "{line}\n{out}{err}");
    assert!(err.starts_with("error: ") && err.matches("error").count() >= 1, "{line}\n{err}");
    let heads = err.lines().filter(|text| !text.starts_with(' ')).count();
    assert_eq!(heads, 1, "{line}: one error, its details indented\n{err}");
    assert!(!err.contains("panicked") && !err.contains("internal error"), "{line}\n{err}");
    assert!(err.contains("help: "), "{line}: no remedy\n{err}");
    assert_eq!(out, "", "{line}");
    err
}

pub(crate) fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

/// Every file under a folder with its length and content hash.
pub(crate) fn listing(folder: &Path) -> Vec<(PathBuf, u64, u64)> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.push((path.clone(), 0, 0));
            found.extend(listing(&path));
        } else {
            let content = std::fs::read(&path).unwrap();
            let mut hasher = DefaultHasher::new();
            content.hash(&mut hasher);
            found.push((path, content.len() as u64, hasher.finish()));
        }
    }
    found.sort();
    found
}

/// A folder with a small planted problem in `p/` (400×12, 3 hidden, 6 nonzeros) and a model
/// `m.tamis` of it.
pub(crate) fn prepared() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    ok(
        folder.path(),
        "generate planted --samples 400 --inputs 12 --hidden 3 --nnz 6 --seed 0 -o p -q",
    );
    ok(folder.path(), &format!("{TRAIN} -o m.tamis -q"));
    folder
}

/// Trains on the prepared problem, but for the output.
pub(crate) const TRAIN: &str =
    "train --data p/X.npy --labels p/y.npy --task regression --hidden 3 --nnz 6";

pub(crate) fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} is no number in {value}"))
}
