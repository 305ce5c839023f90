//! What ignored tests need, and where it is. The reason of `#[ignore = "…"]` is the name here.

use crate::command::{Cmd, root};
use crate::install;
use std::env;
use std::path::PathBuf;

/// Whether something that tests need is at hand.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is, and these variables of the environment say where.
    Here(Vec<(&'static str, PathBuf)>),
    Missing {
        why: String,
        installable: bool,
    },
}

/// A reason of `#[ignore]`, and how what it names is looked for.
type Need = (&'static str, fn() -> Found);

const NEEDS: &[Need] = &[
    ("needs MNIST in TAMIS_DATA", || files(&["mnist/train-images-idx3-ubyte.gz"])),
    ("needs MNIST and CIFAR-10 in TAMIS_DATA", || {
        files(&["mnist/train-images-idx3-ubyte.gz", "cifar/image0.png"])
    }),
    ("needs onnxruntime in TAMIS_PYTHON", python),
    ("needs scikit-learn in TAMIS_PYTHON", python),
    ("needs the right to mount a disk", mount),
];

/// What a test needs that is ignored for `reason`.
pub(crate) fn find(reason: &str) -> Found {
    match NEEDS.iter().find(|(name, _)| *name == reason) {
        Some((_, find)) => find(),
        None => excused(reason.to_owned()),
    }
}

fn excused(why: String) -> Found {
    Found::Missing { why, installable: false }
}

/// Files of the data folder: `TAMIS_DATA`, or `shared/data` beside the repository.
fn files(names: &[&str]) -> Found {
    let beside = root().join("../shared/data");
    let folder = env::var_os("TAMIS_DATA").map_or(beside, PathBuf::from);
    match names.iter().find(|name| !folder.join(name).exists()) {
        None => Found::Here(vec![("TAMIS_DATA", folder)]),
        Some(name) => excused(format!("no {name}; TAMIS_DATA names its folder")),
    }
}

/// A Python with onnxruntime and scikit-learn: `TAMIS_PYTHON`, that of the search path, or one in
/// `target/tools`, installed there first.
fn python() -> Found {
    let here = |python: PathBuf| Found::Here(vec![("TAMIS_PYTHON", python)]);
    let folder = root().join("target/tools/python");
    let own = folder.join("bin/python");
    let named = env::var_os("TAMIS_PYTHON").map(PathBuf::from);
    let tried = named.into_iter().chain(["python3".into(), own.clone()]);
    if let Some(python) = tried.into_iter().find(has_both) {
        return here(python);
    }
    let installed = install::programs(&[("python3", "python3-venv")])
        .and_then(|()| Cmd::new("python3").words("-m venv").args([&folder]).run())
        .and_then(|()| {
            Cmd::new(&own)
                .words("-m pip install --quiet onnxruntime scikit-learn==1.9.1")
                .within(600)
                .run()
        });
    match installed {
        Ok(()) if has_both(&own) => here(own),
        _ => {
            let why = "no Python with both: pip install onnxruntime scikit-learn, and name the Python in TAMIS_PYTHON";
            Found::Missing { why: why.into(), installable: true }
        }
    }
}

fn has_both(python: &PathBuf) -> bool {
    Cmd::new(python).args(["-c", "import onnxruntime, sklearn"]).ask().is_some()
}

/// The right to mount a small disk, as root has outside of containers.
fn mount() -> Found {
    let folder = root().join("target/mount");
    let mounted = std::fs::create_dir_all(&folder).is_ok()
        && Cmd::new("mount").words("-t tmpfs -o size=64k tmpfs").args([&folder]).ask().is_some();
    if mounted && Cmd::new("umount").args([&folder]).ask().is_some() {
        return Found::Here(Vec::new());
    }
    excused("no right to mount a disk".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Reasons of `#[ignore]` in the tests of a folder.
    fn reasons(folder: &str) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(reasons(path.to_str().unwrap()));
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let rests =
                    text.lines().filter_map(|line| line.trim().strip_prefix("#[ignore = \""));
                found.extend(rests.map(|rest| rest.trim_end_matches("\"]").to_owned()));
            }
        }
        found
    }

    #[test]
    fn ignore_reasons_and_needs_match_one_to_one() {
        let found: Vec<_> =
            ["core/tests", "host/tests", "tests/tests"].into_iter().flat_map(reasons).collect();
        for reason in &found {
            assert!(NEEDS.iter().any(|(name, _)| name == reason), "nobody looks for {reason:?}");
        }
        for (name, _) in NEEDS {
            assert!(found.iter().any(|reason| reason == name), "no test {name}");
        }
    }

    #[test]
    fn other_reasons_are_said_as_they_are() {
        assert_eq!(
            find("it is slow"),
            Found::Missing { why: "it is slow".into(), installable: false }
        );
    }
}
