//! The GPU backend: lints, its suite, and the command line that is built with it. It runs on the first
//! driver that there is, which is Mesa's software one where there is no GPU.

use crate::checks::cargo;
use crate::command::Cmd;
use crate::host::Seen;
use crate::install;
use crate::part::{Context, Outcome, Stop};
use std::fs;
use std::path::Path;

/// Where drivers for Vulkan are listed.
const DRIVERS: [&str; 2] = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"];

pub(crate) fn run(_: &Context) -> Outcome {
    if cfg!(target_os = "linux") && !DRIVERS.iter().any(|folder| has_files(Path::new(folder))) {
        install::debian(&["mesa-vulkan-drivers"])?;
    }
    let lints = "clippy -p tamis-gpu --features wgpu --all-targets -- -D warnings";
    cargo(lints).run()?;
    cargo("clippy -p tamis-host --features gpu --lib --bins -- -D warnings").run()?;
    let suite = cargo("test -p tamis-gpu --features wgpu --test all");
    let line = cargo("test -p tamis-host --features gpu --test cli gpu");
    let mut passed = 0;
    for command in [suite, line] {
        let seen = Seen::of(quiet(command))?;
        if seen.passed == 0 {
            return Err(Stop::Failed("no test ran".into()));
        }
        passed += seen.passed;
    }
    Ok(format!("{passed} tests").into())
}

const DENSE: &str = "--manifest-path gpu/dense/Cargo.toml";

/// Dense networks on burn: lints, and training beside that of the CPU, on burn's own CPU backend.
pub(crate) fn dense(_: &Context) -> Outcome {
    cargo("clippy --all-targets").words(DENSE).words("-- -D warnings").run()?;
    let seen = Seen::of(cargo("test").words(DENSE))?;
    match seen.passed {
        0 => Err(Stop::Failed("no test ran".into())),
        passed => Ok(format!("{passed} tests").into()),
    }
}

/// Mesa complains of the variable where it is not set, and needs no such folder.
fn quiet(command: Cmd) -> Cmd {
    command.env("XDG_RUNTIME_DIR", std::env::temp_dir())
}

fn has_files(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some())
}
