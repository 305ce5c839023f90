//! What made the results: compiler, commit and machine.

use std::path::Path;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Environment {
    pub(crate) toolchain: String,
    /// The commit of the sources that the program lies in, `-dirty` where they were changed.
    pub(crate) commit: Option<String>,
    pub(crate) cpu: Option<String>,
    pub(crate) cores: usize,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) system: String,
}

impl Environment {
    pub(crate) fn here() -> Self {
        let line = |file: &str, name: &str| {
            let text = std::fs::read_to_string(file).ok()?;
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let kilobytes = line("/proc/meminfo", "MemTotal")
            .and_then(|v| v.split(' ').next()?.parse::<u64>().ok());
        Self {
            toolchain: option_env!("TAMIS_RUSTC").unwrap_or("rustc, version unknown").to_owned(),
            commit: commit(),
            cpu: line("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: kilobytes.map(|kilobytes| kilobytes * 1024),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        }
    }
}

/// A hash of the sources that results depend on.
pub(crate) const CODE: Option<&str> = option_env!("TAMIS_CODE");

/// The variable that tells the process of a cell what its parent has found.
pub(crate) const COMMIT_VARIABLE: &str = "TAMIS_COMMIT";

/// The commit of the sources that the program was built from, where it lies in their folder.
pub(crate) fn commit() -> Option<String> {
    if let Ok(commit) = std::env::var(COMMIT_VARIABLE) {
        return (!commit.is_empty()).then_some(commit);
    }
    // Of no other folder that the program was copied to.
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?.canonicalize().ok()?;
    let program = std::env::current_exe().ok()?.canonicalize().ok()?;
    if !program.starts_with(&sources) {
        return None;
    }
    let mut git = std::process::Command::new("git");
    let describe = ["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"];
    git.arg("-C").arg(sources).args(describe);
    let output = git.stdin(std::process::Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
