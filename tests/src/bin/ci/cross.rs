//! A compiler for the firmware's targets.
//!
//! Usually rustup's, with `rustup target add`. Where rustup cannot download, Debian's packages hold
//! a compiler and the sources of `core`, which is then built with the firmware; that needs
//! `RUSTC_BOOTSTRAP`, which is set for this one command and nowhere else, and a linker, which
//! rustup's host toolchain has. `TAMIS_CROSS=debian` takes the second way at once.

use crate::command::Cmd;
use crate::install;
use crate::part::Stop;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Debian's compiler, its cargo and the library sources it needs to build `core`.
const DEBIAN: [(&str, &str); 3] = [
    ("/usr/bin/rustc", "rustc-web"),
    ("/usr/bin/cargo", "cargo-web"),
    ("/usr/lib/rustlib/src/rust/library/core/Cargo.toml", "rust-web-src"),
];

/// How to build for the targets.
#[derive(Debug)]
pub(crate) enum Cross {
    Rustup,
    Debian { linker: PathBuf },
}

/// Finds or installs a compiler for all the targets.
pub(crate) fn compiler(targets: &[&str]) -> Result<Cross, Stop> {
    if rustup(targets) {
        return Ok(Cross::Rustup);
    }
    let absent: Vec<&str> = DEBIAN
        .iter()
        .filter(|(path, _)| !Path::new(path).exists())
        .map(|&(_, package)| package)
        .collect();
    if !absent.is_empty() {
        install::debian(&absent)?;
    }
    let linker = linker()
        .ok_or_else(|| Stop::Missing("no rust-lld and no ld.lld to link for the targets".into()))?;
    Ok(Cross::Debian { linker })
}

/// Whether the default toolchain builds for the targets, or can be made to.
pub(crate) fn rustup(targets: &[&str]) -> bool {
    !is_debian_forced() && (has_targets(targets) || add_targets(targets))
}

fn is_debian_forced() -> bool {
    std::env::var("TAMIS_CROSS").is_ok_and(|way| way == "debian")
}

/// What builds for the targets, as it names itself.
pub(crate) fn version(targets: &[&str]) -> Result<String, Stop> {
    let program = match compiler(targets)? {
        Cross::Rustup => "rustc",
        Cross::Debian { .. } => DEBIAN[0].0,
    };
    let words = Cmd::new(program).words("--version").ask().unwrap_or_default();
    Ok(words.split(' ').take(2).collect::<Vec<_>>().join(" "))
}

impl Cross {
    /// `cargo build` for every target.
    pub(crate) fn build(&self, targets: &[&str]) -> Cmd {
        let command = match self {
            Self::Rustup => Cmd::new("cargo").words("build"),
            Self::Debian { linker } => {
                debian_cargo(linker, targets).words("build -Zbuild-std=core")
            }
        };
        targets.iter().fold(command, |command, target| command.args(["--target", target]))
    }
}

fn debian_cargo(linker: &Path, targets: &[&str]) -> Cmd {
    let command = Cmd::new(DEBIAN[1].0)
        .env("RUSTC", DEBIAN[0].0)
        .env("RUSTC_BOOTSTRAP", "1")
        .without("RUSTUP_TOOLCHAIN");
    targets.iter().fold(command, |command, target| command.env(linker_variable(target), linker))
}

/// The variable by which cargo learns a target's linker.
fn linker_variable(target: &str) -> String {
    format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace(['-', '.'], "_"))
}

fn has_targets(targets: &[&str]) -> bool {
    let Some(sysroot) = sysroot() else { return false };
    targets.iter().all(|target| sysroot.join("lib/rustlib").join(target).join("lib").is_dir())
}

fn add_targets(targets: &[&str]) -> bool {
    // rustup does not wait for another rustup.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock();
    install::find("rustup").is_some()
        && Cmd::new("rustup").words("target add").args(targets).within(600).run().is_ok()
        && has_targets(targets)
}

/// LLVM's linker: in the host's part of the Rust toolchain, or the system's.
fn linker() -> Option<PathBuf> {
    let sysroot = sysroot()?;
    let version = Cmd::new("rustc").words("-vV").ask()?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "))?;
    let own = sysroot.join("lib/rustlib").join(host).join("bin/rust-lld");
    if own.is_file() { Some(own) } else { install::find("ld.lld") }
}

fn sysroot() -> Option<PathBuf> {
    Cmd::new("rustc").words("--print sysroot").ask().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linkers_are_named_as_cargo_reads_them() {
        assert_eq!(
            linker_variable("thumbv8m.main-none-eabihf"),
            "CARGO_TARGET_THUMBV8M_MAIN_NONE_EABIHF_LINKER"
        );
    }

    #[test]
    fn target_without_toolchain_is_reported_absent() {
        assert!(has_targets(&[]));
        assert!(!has_targets(&["no-such-target"]));
    }
}
